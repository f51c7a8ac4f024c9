/* Batched receive and sending of topic resolution datagrams. Context's loop. */
#define _GNU_SOURCE
#include "resolver/um_tr_agent.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/um_debug.h"
#include "base/um_error.h"
#include "base/um_mem.h"

#define BATCHES_PER_CALL 32
#define BYTES_PER_CALL (128u * 1024u) /* some 3,000 records: then timers have their turn, whatever comes in */
#define SEND_RETRY_MS 10

struct um_tr_inbox {
    struct mmsghdr headers[UM_TR_BATCH];
    struct iovec vectors[UM_TR_BATCH];
    struct sockaddr_in from[UM_TR_BATCH];
    uint8_t *data; /* UM_TR_BATCH datagrams; the kernel touches only what arrives */
};

struct um_tr_inbox *um_tr_inbox_create(void)
{
    struct um_tr_inbox *inbox = um_calloc(1, sizeof *inbox);
    uint8_t *data = um_malloc((size_t)UM_TR_BATCH * UM_TR_DATAGRAM);
    if (inbox == NULL || data == NULL) {
        um_free(inbox);
        um_free(data);
        um_error_nomem("topic resolution receive buffers", (unsigned long)UM_TR_BATCH * UM_TR_DATAGRAM);
        return NULL;
    }
    inbox->data = data;
    return inbox;
}

void um_tr_inbox_free(struct um_tr_inbox *inbox)
{
    if (inbox != NULL) {
        um_free(inbox->data);
        um_free(inbox);
    }
}

static int receive_batch(struct um_tr_inbox *inbox, int fd)
{
    for (int i = 0; i < UM_TR_BATCH; i++) {
        inbox->vectors[i] = (struct iovec){inbox->data + (size_t)i * UM_TR_DATAGRAM, UM_TR_DATAGRAM};
        inbox->headers[i].msg_hdr = (struct msghdr){.msg_name = &inbox->from[i],
                                                    .msg_namelen = sizeof inbox->from[i],
                                                    .msg_iov = &inbox->vectors[i],
                                                    .msg_iovlen = 1};
    }
    return recvmmsg(fd, inbox->headers, UM_TR_BATCH, MSG_DONTWAIT, NULL);
}

static const char *text_of(uint32_t ip, char *out)
{
    return inet_ntop(AF_INET, &ip, out, INET_ADDRSTRLEN);
}

void um_tr_inbox_read(struct um_tr_inbox *inbox, int fd, uint64_t now_ns,
                      void (*fn)(void *arg, uint64_t now_ns, const uint8_t *data, size_t len, uint32_t from_ip,
                                 uint16_t from_port),
                      void *arg)
{
    size_t bytes = 0;
    for (int batch = 0; batch < BATCHES_PER_CALL && bytes < BYTES_PER_CALL; batch++) {
        int count = receive_batch(inbox, fd);
        for (int i = 0; i < count; i++) {
            bytes += inbox->headers[i].msg_len;
            UM_DEBUG(UM_DEBUG_RESOLVER, "datagram of %u bytes from %s:%u", inbox->headers[i].msg_len,
                     text_of(inbox->from[i].sin_addr.s_addr, (char[INET_ADDRSTRLEN]){""}),
                     (unsigned)ntohs(inbox->from[i].sin_port));
            fn(arg, now_ns, inbox->vectors[i].iov_base, inbox->headers[i].msg_len, inbox->from[i].sin_addr.s_addr,
               ntohs(inbox->from[i].sin_port));
        }
        if (count < UM_TR_BATCH) {
            return;
        }
    }
}

enum um_tr_sent um_tr_send_to(int fd, uint32_t ip, uint16_t port, const uint8_t *data, size_t len)
{
    UM_DEBUG(UM_DEBUG_RESOLVER, "datagram of %zu bytes to %s:%u", len, text_of(ip, (char[INET_ADDRSTRLEN]){""}),
             (unsigned)port);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = ip, .sin_port = htons(port)};
    for (int attempt = 0; attempt < 3; attempt++) {
        if (sendto(fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT, (struct sockaddr *)&to, sizeof to) >= 0) {
            return UM_TR_SENT;
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK) {
            struct pollfd wait = {.fd = fd, .events = POLLOUT};
            poll(&wait, 1, SEND_RETRY_MS);
        } else if (errno != EINTR && errno != ECONNREFUSED) { /* refused: the answer to an earlier datagram */
            break;
        }
    }
    return UM_TR_SEND_FAILED;
}
