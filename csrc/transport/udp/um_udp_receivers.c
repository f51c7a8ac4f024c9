/* What the receive sessions of a loop over one UDP transport share: the reader and its passes,
 * sending, counts. Everything runs on the loop. */
#include "transport/udp/um_udp_receivers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/um_error.h"
#include "base/um_fork.h"
#include "base/um_mem.h"
#include "net/um_link_watch.h"
#include "transport/udp/um_lbtrm_channel.h"
#include "transport/udp/um_udp_rcv_session.h"

struct um_rcv_transport *um_udp_receivers_create(struct um_transport_env *env)
{
    struct um_udp_receivers *receivers = um_calloc(1, sizeof *receivers);
    if (receivers == NULL) {
        um_error_nomem("UDP receivers", sizeof *receivers);
        return NULL;
    }
    uint64_t seed;
    um_random_bytes(&seed, sizeof seed);
    um_rng_seed(&receivers->rng, seed);
    receivers->nak_fd = -1;
    um_list_init(&receivers->pass);
    um_list_init(&receivers->channels);
    um_loss_rate_init();
    return &receivers->base;
}

void um_udp_receivers_destroy(struct um_rcv_transport *base)
{
    struct um_udp_receivers *receivers = um_udp_receivers_of(base);
    if (receivers->nak_fd >= 0) {
        um_fd_close(receivers->nak_fd);
    }
    um_udp_reader_destroy(receivers->reader);
    um_free(receivers);
}

int um_udp_receivers_open_reader(struct um_udp_receivers *receivers, size_t datagram_max)
{
    const struct um_context_options *opts = receivers->base.env->opts;
    if (receivers->reader == NULL) {
        receivers->reader = um_udp_reader_create(opts->multiple_receive_maximum_datagrams, datagram_max,
                                                 opts->um_udp_segmentation_offload != 0);
    }
    return receivers->reader != NULL ? 0 : um_error_nomem("UDP receive buffers", datagram_max);
}

/* ---- sending ---- */

void um_udp_send(struct um_udp_receivers *receivers, int fd, const uint8_t *data, size_t len, uint32_t ip,
                 uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = ip};
    if (sendto(fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT, (struct sockaddr *)&to, sizeof to) < 0) {
        char text[INET_ADDRSTRLEN];
        int saved = errno;
        receivers->counts.unsent++;
        inet_ntop(AF_INET, &to.sin_addr, text, sizeof text);
        um_log_limited(um_log_of_ip(ip), um_loop_now(receivers->base.env->loop), UM_LOG_WARNING, "Core-9006-8",
                       "sending to the source at %s:%u: %s", text, port, strerror(saved));
    }
}

/* ---- reading ---- */

static void add_socket(struct um_rcv_datagram_counts *counts, const struct um_udp_socket *sock)
{
    counts->foreign += sock->foreign;
    counts->oversized += sock->oversized;
    counts->read_errors += sock->read_errors;
    counts->kernel_drops += um_udp_kernel_drops(sock);
}

int um_udp_watch(struct um_udp_receivers *receivers, struct um_udp_socket *sock, struct um_fd *ufd,
                 void (*on_readable)(struct um_fd *ufd, uint32_t ready, uint64_t now_ns), struct in_addr via)
{
    struct um_transport_env *env = receivers->base.env;
    um_fd_init(ufd, sock->fd, on_readable);
    ufd->arrivals = &sock->packets;
    if (um_loop_add_fd(env->loop, ufd, UM_FD_READ) != 0) {
        um_udp_close(sock);
        return -1;
    }
    um_link_watch_add(&env->links, env->loop, via.s_addr);
    return 0;
}

void um_udp_unwatch(struct um_udp_receivers *receivers, struct um_udp_socket *sock, struct um_fd *ufd)
{
    add_socket(&receivers->counts, sock);
    um_loop_remove_fd(receivers->base.env->loop, ufd);
    um_udp_close(sock);
}

void um_udp_read_pass(struct um_udp_receivers *receivers, struct um_udp_socket *sock, uint64_t now_ns,
                      enum um_loss_kind loss, void (*on_datagram)(void *user, uint64_t now_ns), void *user)
{
    bool more = true;
    for (int i = 0; i < UM_UDP_READS_PER_PASS && more && sock->fd >= 0; i++) {
        um_udp_read(receivers->reader, sock, &more);
        while (um_udp_next(receivers->reader, sock, &receivers->datagram)) {
            if (um_loss_drop(loss)) {
                receivers->counts.injected++;
            } else {
                on_datagram(user, now_ns);
            }
        }
    }
    um_udp_rcv_sessions_end_pass(receivers, now_ns);
}

void um_udp_tell_unknown(struct um_udp_receivers *receivers, const char *where)
{
    char text[INET_ADDRSTRLEN];
    struct in_addr from = {.s_addr = receivers->datagram.from_ip};
    inet_ntop(AF_INET, &from, text, sizeof text);
    um_log_limited(um_log_of_ip(from.s_addr), um_loop_now(receivers->base.env->loop), UM_LOG_DEBUG, "Core-9006-10",
                   "%s: datagrams of %s:%u belong to no session joined here: ignored", where, text,
                   receivers->datagram.from_port);
}

/* ---- counts ---- */

static void for_each_socket(const struct um_udp_receivers *receivers,
                            void (*fn)(struct um_udp_socket *sock, struct um_rcv_datagram_counts *counts),
                            struct um_rcv_datagram_counts *counts)
{
    struct um_list *node;
    UM_LIST_FOREACH(node, &receivers->channels)
    {
        fn(um_lbtrm_channel_socket(node), counts);
    }
    UM_LIST_FOREACH(node, &receivers->base.sessions)
    {
        struct um_udp_rcv_session *session = UM_CONTAINER_OF(node, struct um_udp_rcv_session, base.transport_node);
        struct um_udp_socket *sock = session->kind->shares_socket ? NULL : session->kind->socket(session);
        if (sock != NULL) {
            fn(sock, counts);
        }
    }
}

static void count_socket(struct um_udp_socket *sock, struct um_rcv_datagram_counts *counts)
{
    add_socket(counts, sock);
}

static void reset_socket(struct um_udp_socket *sock, struct um_rcv_datagram_counts *counts)
{
    um_udp_counts_reset(sock);
}

void um_udp_receivers_counts(const struct um_rcv_transport *base, struct um_rcv_datagram_counts *sum)
{
    const struct um_udp_receivers *receivers = um_udp_receivers_of((struct um_rcv_transport *)base);
    const struct um_rcv_datagram_counts *banked = &receivers->counts;
    sum->unjoined += banked->unjoined;
    sum->foreign += banked->foreign;
    sum->oversized += banked->oversized;
    sum->kernel_drops += banked->kernel_drops;
    sum->read_errors += banked->read_errors;
    sum->unsent += banked->unsent;
    sum->injected += banked->injected;
    sum->false_leads += banked->false_leads;
    for_each_socket(receivers, count_socket, sum);
}

void um_udp_receivers_counts_reset(struct um_rcv_transport *base)
{
    struct um_udp_receivers *receivers = um_udp_receivers_of(base);
    memset(&receivers->counts, 0, sizeof receivers->counts);
    for_each_socket(receivers, reset_socket, NULL);
}

uint64_t um_udp_rcv_session_kernel_drops(const struct um_rcv_session *base)
{
    struct um_udp_rcv_session *session = um_udp_rcv_session_of((struct um_rcv_session *)base);
    const struct um_udp_socket *sock = session->kind->socket(session);
    return sock != NULL ? um_udp_kernel_drops(sock) : 0; /* none: the session is over, its last events are told */
}

/* A gap that the kernel itself has made deserves to be told, because it can be cured. */
void um_udp_watch_drops(struct um_udp_rcv_session *session, uint64_t now_ns)
{
    if (now_ns < session->drops_due_ns) {
        return;
    }
    session->drops_due_ns = now_ns + UM_NS_PER_SEC;
    uint64_t drops = um_udp_kernel_drops(session->kind->socket(session)), told = session->drops_told;
    session->drops_told = drops;
    if (drops > told || (drops < told && drops > 0)) { /* less: the counts have been reset meanwhile */
        um_log_limited(um_log_of(session->base.source), now_ns, UM_LOG_WARNING, "Core-9006-9",
                       "%s: the kernel has dropped %llu datagrams at this socket because its receive buffer was full; "
                       "raise %s, and the system's limit with `sysctl -w net.core.rmem_max=<bytes>`",
                       session->base.source, (unsigned long long)drops, session->kind->buffer_option);
    }
}
