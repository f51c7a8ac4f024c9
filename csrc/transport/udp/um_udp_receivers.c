/* What the UDP receive sessions of a context share: the reader and its passes,
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
#include "transport/udp/um_lbtrm_channel.h"
#include "transport/udp/um_udp_session.h"

#define LOG_INTERVAL_NS (10 * UM_NS_PER_SEC)

struct um_udp_receivers *um_udp_receivers_create(struct um_transport_env *env)
{
    struct um_udp_receivers *receivers = um_calloc(1, sizeof *receivers);
    if (receivers == NULL) {
        um_error_nomem("UDP receivers", sizeof *receivers);
        return NULL;
    }
    uint64_t seed;
    um_random_bytes(&seed, sizeof seed);
    um_rng_seed(&receivers->rng, seed);
    receivers->env = env;
    receivers->nak_fd = -1;
    um_list_init(&receivers->pass);
    um_list_init(&receivers->sessions);
    um_list_init(&receivers->channels);
    um_loss_rate_init();
    return receivers;
}

void um_udp_receivers_destroy(struct um_udp_receivers *receivers)
{
    if (receivers == NULL) {
        return;
    }
    if (receivers->nak_fd >= 0) {
        um_fd_close(receivers->nak_fd);
    }
    um_udp_reader_destroy(receivers->reader);
    um_free(receivers);
}

int um_udp_receivers_open_reader(struct um_udp_receivers *receivers)
{
    if (receivers->reader != NULL) {
        return 0;
    }
    const struct um_context_options *opts = receivers->env->opts;
    size_t rm =
        um_udp_receive_size(opts->transport_lbtrm_receiver_datagram_max_size, opts->transport_lbtrm_datagram_max_size);
    size_t ru =
        um_udp_receive_size(opts->transport_lbtru_receiver_datagram_max_size, opts->transport_lbtru_datagram_max_size);
    receivers->reader = um_udp_reader_create(opts->multiple_receive_maximum_datagrams, rm > ru ? rm : ru,
                                             opts->um_udp_segmentation_offload != 0);
    return receivers->reader != NULL ? 0 : um_error_nomem("UDP receive buffers", rm);
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
        um_log_limited(&receivers->send_log, um_loop_now(receivers->env->loop), LOG_INTERVAL_NS, UM_LOG_WARNING,
                       "Core-9006-8", "sending to the source at %s:%u: %s", text, port, strerror(saved));
    }
}

/* ---- reading ---- */

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
    um_udp_sessions_end_pass(receivers, now_ns);
}

void um_udp_tell_unknown(struct um_udp_receivers *receivers, const char *where)
{
    char text[INET_ADDRSTRLEN];
    struct in_addr from = {.s_addr = receivers->datagram.from_ip};
    inet_ntop(AF_INET, &from, text, sizeof text);
    um_log_limited(&receivers->unknown_log, um_loop_now(receivers->env->loop), LOG_INTERVAL_NS, UM_LOG_DEBUG,
                   "Core-9006-10", "%s: datagrams of %s:%u belong to no session joined here: ignored", where, text,
                   receivers->datagram.from_port);
}

/* ---- counts ---- */

static void add_socket(struct um_udp_rcv_counts *counts, const struct um_udp_socket *sock)
{
    counts->foreign += sock->foreign;
    counts->oversized += sock->oversized;
    counts->read_errors += sock->read_errors;
    counts->kernel_drops += um_udp_kernel_drops(sock);
}

void um_udp_bank_socket(struct um_udp_receivers *receivers, const struct um_udp_socket *sock)
{
    add_socket(&receivers->counts, sock);
}

/* Sessions of LBT-RU have a socket each; those of LBT-RM share one per group. */
static struct um_udp_socket *own_socket(struct um_udp_session *session)
{
    return session->base.key.type == LBM_TRANSPORT_TYPE_LBTRU ? session->engine->socket(session) : NULL;
}

static void for_each_socket(const struct um_udp_receivers *receivers,
                            void (*fn)(struct um_udp_socket *sock, struct um_udp_rcv_counts *counts),
                            struct um_udp_rcv_counts *counts)
{
    struct um_list *node;
    UM_LIST_FOREACH(node, &receivers->channels)
    {
        fn(um_lbtrm_channel_socket(node), counts);
    }
    UM_LIST_FOREACH(node, &receivers->sessions)
    {
        struct um_udp_socket *sock = own_socket(UM_CONTAINER_OF(node, struct um_udp_session, node));
        if (sock != NULL) {
            fn(sock, counts);
        }
    }
}

static void count_socket(struct um_udp_socket *sock, struct um_udp_rcv_counts *counts)
{
    add_socket(counts, sock);
}

static void reset_socket(struct um_udp_socket *sock, struct um_udp_rcv_counts *counts)
{
    um_udp_counts_reset(sock);
}

void um_udp_receivers_counts(const struct um_udp_receivers *receivers, struct um_udp_rcv_counts *out)
{
    *out = receivers->counts;
    for_each_socket(receivers, count_socket, out);
}

void um_udp_receivers_counts_reset(struct um_udp_receivers *receivers)
{
    memset(&receivers->counts, 0, sizeof receivers->counts);
    for_each_socket(receivers, reset_socket, NULL);
}

uint64_t um_udp_session_kernel_drops(const struct um_rcv_session *base)
{
    struct um_udp_session *session = um_udp_session_of((struct um_rcv_session *)base);
    const struct um_udp_socket *sock = session->engine->socket(session);
    return sock != NULL ? um_udp_kernel_drops(sock) : 0; /* none: the session is over, its last events are told */
}

/* A gap that the kernel itself has made deserves to be told, because it can be cured. */
void um_udp_watch_drops(struct um_udp_session *session, uint64_t now_ns)
{
    if (now_ns < session->drops_due_ns) {
        return;
    }
    session->drops_due_ns = now_ns + UM_NS_PER_SEC;
    uint64_t drops = um_udp_kernel_drops(session->engine->socket(session)), told = session->drops_told;
    session->drops_told = drops;
    if (drops > told || (drops < told && drops > 0)) { /* less: the counts have been reset meanwhile */
        um_log_limited(&session->owner->drop_log, now_ns, LOG_INTERVAL_NS, UM_LOG_WARNING, "Core-9006-9",
                       "%s: the kernel has dropped %llu datagrams at this socket because its receive buffer was full; "
                       "raise %s, and the system's limit with `sysctl -w net.core.rmem_max=<bytes>`",
                       session->base.source, (unsigned long long)drops, session->engine->buffer_option);
    }
}
