/* Receiving UDP sockets and the reader they share: recvmmsg into one large pooled
 * buffer, which goes back to its front when no message was kept and otherwise is
 * used up from where the last datagram ended. Runs on the loop of the context. */
#define _GNU_SOURCE
#include "net/um_udp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/um_error.h"
#include "base/um_fork.h"
#include "base/um_log.h"
#include "base/um_mem.h"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define NS_PER_SEC 1000000000ull

/* A buffer takes at least this much, so that datagrams kept one by one share it. */
#define BUFFER_MIN (256u * 1024u)
#define BUFFER_MAX (4u * 1024u * 1024u)
#define BUFFERS_KEPT 8u

/* What one packet needs with offload: the kernel joins datagrams up to the longest UDP payload. The odd rest keeps the
 * beginnings of packets out of the same cache sets. */
#define OFFLOAD_SLOT (65536u + 11u * 64u)
#define ALIGNMENT 64u

#define BATCH_DEFAULT 16u
#define BATCH_OFFLOAD 8u /* packets of many datagrams */
#define BATCH_MAX 1024u  /* the system takes no more in one call */

#define CONTROL_SIZE 192u /* of a packet: its group, time and datagram size */

struct slot {
    struct iovec iov;
    struct sockaddr_in from;
    char control[CONTROL_SIZE] __attribute__((aligned(8)));
};

struct um_udp_reader {
    unsigned batch;
    bool offload;
    size_t slot_size;
    struct um_buf_pool *pool;
    struct um_buf *buf; /* NULL: the next read takes one */
    size_t used;        /* bytes of buf that may be kept by somebody */
    bool crowded;       /* messages are being kept: move datagrams together */
    unsigned count, next;
    size_t end;                    /* behind the last datagram of this read */
    struct um_udp_datagram packet; /* the rest of a packet of several datagrams */
    size_t packet_left, datagram_size;
    struct mmsghdr *headers;
    struct slot *slots;
};

static size_t aligned(size_t size)
{
    return (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
}

struct um_udp_reader *um_udp_reader_create(unsigned batch, size_t datagram_max, bool offload)
{
    size_t slot_size = offload ? OFFLOAD_SLOT : aligned(datagram_max + 1); /* room, and never nothing */
    unsigned most = BUFFER_MAX / slot_size < BATCH_MAX ? BUFFER_MAX / slot_size : BATCH_MAX;
    batch = batch != 0 ? batch : offload ? BATCH_OFFLOAD : BATCH_DEFAULT;
    batch = batch < most ? batch : most;
    size_t buffer = batch * slot_size > BUFFER_MIN ? batch * slot_size : BUFFER_MIN;
    struct um_udp_reader *reader = um_calloc(1, sizeof *reader);
    if (reader == NULL) {
        return NULL;
    }
    reader->batch = batch;
    reader->offload = offload;
    reader->slot_size = slot_size;
    reader->pool = um_buf_pool_create(buffer, BUFFERS_KEPT);
    reader->headers = um_calloc(batch, sizeof *reader->headers);
    reader->slots = um_calloc(batch, sizeof *reader->slots);
    if (reader->pool == NULL || reader->headers == NULL || reader->slots == NULL) {
        um_udp_reader_destroy(reader);
        return NULL;
    }
    for (unsigned i = 0; i < batch; i++) {
        struct msghdr *header = &reader->headers[i].msg_hdr;
        header->msg_iov = &reader->slots[i].iov;
        header->msg_iovlen = 1;
        header->msg_name = &reader->slots[i].from;
    }
    return reader;
}

void um_udp_reader_destroy(struct um_udp_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    if (reader->buf != NULL) {
        um_buf_unref(reader->buf);
    }
    um_buf_pool_release(reader->pool);
    um_free(reader->headers);
    um_free(reader->slots);
    um_free(reader);
}

/* ---- opening ---- */

void um_udp_card_stamps(int fd, const struct um_iface *iface)
{
    struct hwtstamp_config wanted = {.tx_type = HWTSTAMP_TX_ON, .rx_filter = HWTSTAMP_FILTER_ALL};
    struct ifreq request = {.ifr_data = (void *)&wanted};
    memcpy(request.ifr_name, iface->name,
           strnlen(iface->name, sizeof request.ifr_name - 1)); /* the rest is zero already */
    (void)ioctl(fd, SIOCSHWTSTAMP, &request);
}

static void enable_stamps(struct um_udp_socket *sock, const struct um_iface *iface)
{
    int flags = SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_RAW_HARDWARE |
                SOF_TIMESTAMPING_SOFTWARE;
    if (iface != NULL) {
        um_udp_card_stamps(sock->fd, iface);
    }
    sock->timestamps = setsockopt(sock->fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof flags) == 0;
    if (!sock->timestamps) {
        um_log(UM_LOG_WARNING, "Core-9106-120", "receiving without time stamps: SO_TIMESTAMPING: %s", strerror(errno));
    }
}

static void set_up(const struct um_udp_reader *reader, struct um_udp_socket *sock, const struct um_udp_config *config,
                   const struct um_iface *iface)
{
    int on = 1;
    um_socket_set_rcvbuf(sock->fd, config->socket_buffer, config->socket_buffer_origin, config->socket_buffer_option,
                         config->socket_buffer_log);
    sock->datagram_max = config->datagram_max;
    if (reader->offload) {
        (void)setsockopt(sock->fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on); /* kernels before 5.0 do without */
    }
    if (config->timestamps) {
        enable_stamps(sock, iface);
    }
}

static int join_group(int fd, struct in_addr group, uint16_t port, const struct um_iface *iface)
{
    struct ip_mreqn request = {.imr_multiaddr = group, .imr_address = iface->addr, .imr_ifindex = (int)iface->index};
    int off = 0;
    if (setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof request) != 0) {
        int saved = errno;
        char text[INET_ADDRSTRLEN];
        inet_ntop(AF_INET, &group, text, sizeof text);
        return um_error_os(saved, "CoreApi-9006-1", "%s:%u: cannot join the group on interface %s", text, port,
                           iface->name);
    }
    if (setsockopt(fd, IPPROTO_IP, IP_MULTICAST_ALL, &off, sizeof off) != 0) {
        return um_error_os(errno, "CoreApi-9006-2", "IP_MULTICAST_ALL");
    }
    return 0;
}

/* There was no socket to bind; else it was not bound. */
static int not_bound(int err)
{
    return err == EMFILE || err == ENFILE || err == ENOBUFS || err == ENOMEM ? -1 : UM_UDP_NOT_BOUND;
}

/* Bound to the group itself a socket sees nothing else. Where that cannot be done, the destination of each datagram
 * tells. */
static int bind_group(struct um_udp_socket *sock, struct in_addr group, uint16_t port, bool any_address)
{
    int err = 0, on = 1;
    sock->fd = any_address ? -1 : um_socket_udp(group, port, true, &err);
    if (sock->fd >= 0) {
        return 0;
    }
    if (!any_address && err != EADDRNOTAVAIL && err != EINVAL) {
        return not_bound(err);
    }
    sock->fd = um_socket_udp((struct in_addr){.s_addr = htonl(INADDR_ANY)}, port, true, &err);
    if (sock->fd < 0) {
        return not_bound(err);
    }
    sock->check_group = true;
    if (setsockopt(sock->fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof on) != 0) {
        um_error_os(errno, "CoreApi-9006-3", "IP_PKTINFO");
        um_udp_close(sock);
        return -1;
    }
    return 0;
}

int um_udp_open_group(struct um_udp_reader *reader, struct um_udp_socket *sock, const struct um_udp_config *config,
                      struct in_addr group, uint16_t port, const struct um_iface *iface, bool any_address)
{
    *sock = (struct um_udp_socket){.fd = -1, .group = group};
    int rc = bind_group(sock, group, port, any_address);
    if (rc != 0) {
        return rc;
    }
    if (join_group(sock->fd, group, port, iface) != 0) {
        um_udp_close(sock);
        return -1;
    }
    set_up(reader, sock, config, iface);
    return 0;
}

int um_udp_open_range(struct um_udp_reader *reader, struct um_udp_socket *sock, const struct um_udp_config *config,
                      struct in_addr addr, const struct um_port_range *range)
{
    int err = EADDRINUSE;
    *sock = (struct um_udp_socket){.fd = -1};
    for (unsigned port = range->low; port <= range->high && sock->fd < 0; port++) {
        sock->fd = um_socket_udp(addr, (uint16_t)port, false, &err);
        if (sock->fd < 0 && err != EADDRINUSE) {
            return not_bound(err);
        }
    }
    if (sock->fd < 0 && um_port_range_gives_way(range)) {
        sock->fd = um_socket_udp(addr, 0, false, &err);
    }
    if (sock->fd < 0) {
        um_port_range_used_up(range, "CoreApi-9006-4");
        return UM_UDP_NO_PORT;
    }
    set_up(reader, sock, config, NULL);
    return 0;
}

void um_udp_close(struct um_udp_socket *sock)
{
    if (sock->fd >= 0) {
        um_fd_close(sock->fd);
        sock->fd = -1;
    }
}

uint64_t um_udp_kernel_drops(const struct um_udp_socket *sock)
{
    uint32_t info[SK_MEMINFO_VARS] = {0};
    socklen_t len = sizeof info;
    if (sock->fd < 0 || getsockopt(sock->fd, SOL_SOCKET, SO_MEMINFO, info, &len) != 0) {
        return 0;
    }
    return (uint32_t)(info[SK_MEMINFO_DROPS] - sock->drops_base);
}

void um_udp_counts_reset(struct um_udp_socket *sock)
{
    sock->drops_base += um_udp_kernel_drops(sock);
    sock->foreign = sock->oversized = sock->read_errors = 0;
}

/* ---- reading ---- */

/* Point the slots at the free part of the buffer. Returns how many fit; 0: out of memory. */
static unsigned prepare(struct um_udp_reader *reader, const struct um_udp_socket *sock)
{
    if (reader->buf != NULL && reader->buf->capacity - reader->used < reader->slot_size) {
        um_buf_unref(reader->buf);
        reader->buf = NULL;
    }
    if (reader->buf == NULL) {
        reader->buf = um_buf_get(reader->pool);
        reader->used = 0;
    }
    if (reader->buf == NULL) {
        return 0;
    }
    size_t fit = (reader->buf->capacity - reader->used) / reader->slot_size;
    unsigned count = fit < reader->batch ? (unsigned)fit : reader->batch;
    bool control = sock->check_group || sock->timestamps || reader->offload;
    for (unsigned i = 0; i < count; i++) {
        struct slot *slot = &reader->slots[i];
        struct msghdr *header = &reader->headers[i].msg_hdr;
        slot->iov.iov_base = reader->buf->data + reader->used + i * reader->slot_size;
        slot->iov.iov_len = reader->slot_size;
        header->msg_namelen = sizeof slot->from;
        header->msg_control = control ? slot->control : NULL;
        header->msg_controllen = control ? CONTROL_SIZE : 0;
    }
    return count;
}

int um_udp_read(struct um_udp_reader *reader, struct um_udp_socket *sock, bool *more)
{
    reader->count = reader->next = 0;
    reader->packet_left = 0;
    *more = false;
    unsigned room = prepare(reader, sock);
    if (room == 0) {
        sock->read_errors++;
        return 0;
    }
    int got = recvmmsg(sock->fd, reader->headers, room, 0, NULL);
    if (got < 0) {
        sock->read_errors += errno != EAGAIN && errno != EINTR;
        return 0;
    }
    sock->packets += (uint32_t)got;
    reader->count = (unsigned)got;
    reader->end = reader->used;
    *more = reader->count == room;
    return got;
}

/* What the kernel says about a packet beside its bytes. */
static void read_control(struct msghdr *header, struct um_udp_datagram *packet, size_t *datagram_size,
                         uint32_t *destination)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c != NULL; c = CMSG_NXTHDR(header, c)) {
        if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
            int size;
            memcpy(&size, CMSG_DATA(c), sizeof size);
            *datagram_size = size > 0 ? (size_t)size : *datagram_size;
        } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
            struct in_pktinfo info;
            memcpy(&info, CMSG_DATA(c), sizeof info);
            *destination = info.ipi_addr.s_addr;
        } else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_TIMESTAMPING) {
            struct scm_timestamping stamps;
            memcpy(&stamps, CMSG_DATA(c), sizeof stamps);
            const struct timespec *card = &stamps.ts[2];
            const struct timespec *ts = card->tv_sec != 0 || card->tv_nsec != 0 ? card : &stamps.ts[0];
            packet->stamp_ns = (uint64_t)ts->tv_sec * NS_PER_SEC + (uint64_t)ts->tv_nsec;
        }
    }
}

/* While messages are being kept, datagrams are moved together, so that what is kept fills its buffers. */
static void place(struct um_udp_reader *reader, uint8_t *data, size_t len, struct um_udp_datagram *packet)
{
    uint8_t *to = reader->buf->data + reader->end;
    if (reader->crowded && to != data) {
        memmove(to, data, len);
        data = to;
    }
    packet->data = data;
    reader->end = aligned((size_t)(data - reader->buf->data) + len);
}

/* Take up the next packet. False: it is to be dropped. */
static bool open_packet(struct um_udp_reader *reader, struct um_udp_socket *sock)
{
    unsigned i = reader->next++;
    struct slot *slot = &reader->slots[i];
    struct msghdr *header = &reader->headers[i].msg_hdr;
    struct um_udp_datagram *packet = &reader->packet;
    size_t len = reader->headers[i].msg_len;
    uint32_t destination = sock->group.s_addr;
    packet->stamp_ns = 0;
    reader->datagram_size = len;
    if (header->msg_controllen != 0) {
        read_control(header, packet, &reader->datagram_size, &destination);
    }
    if (sock->check_group && destination != sock->group.s_addr) {
        sock->foreign++;
        return false;
    }
    packet->oversized = (header->msg_flags & MSG_TRUNC) != 0;
    packet->from_ip = slot->from.sin_addr.s_addr;
    packet->from_port = ntohs(slot->from.sin_port);
    packet->buf = reader->buf;
    place(reader, slot->iov.iov_base, len, packet);
    reader->packet_left = len;
    return true;
}

/* All datagrams are handed on. What nobody kept is used again. */
static void finish(struct um_udp_reader *reader)
{
    if (reader->count == 0) {
        return;
    }
    reader->count = reader->next = 0;
    reader->crowded = !um_buf_is_ours(reader->buf);
    reader->used = reader->crowded ? reader->end : 0;
    if (reader->used > reader->buf->capacity) { /* by the alignment of the last one */
        reader->used = reader->buf->capacity;
    }
}

static void split(struct um_udp_reader *reader, struct um_udp_datagram *out)
{
    size_t len = reader->packet_left < reader->datagram_size ? reader->packet_left : reader->datagram_size;
    *out = reader->packet;
    out->len = len;
    reader->packet.data += len;
    reader->packet_left -= len;
}

bool um_udp_next(struct um_udp_reader *reader, struct um_udp_socket *sock, struct um_udp_datagram *out)
{
    for (;;) {
        if (reader->packet_left > 0) {
            split(reader, out);
            out->oversized |= out->len > sock->datagram_max;
            sock->oversized += out->oversized;
            return true;
        }
        if (reader->next >= reader->count) {
            finish(reader);
            return false;
        }
        if (open_packet(reader, sock) && reader->packet_left == 0) { /* an empty datagram */
            *out = reader->packet;
            out->len = 0;
            return true;
        }
    }
}
