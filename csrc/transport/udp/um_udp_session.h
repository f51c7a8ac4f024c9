/* What LBT-RM and LBT-RU receive sessions have in common: the read pass over a socket, the timer of the engine, the way
 * of a payload up to the streams. Private to transport/udp. Everything is [loop]. */
#ifndef UM_TRANSPORT_UDP_SESSION_H
#define UM_TRANSPORT_UDP_SESSION_H

#include "base/um_log.h"
#include "base/um_mem.h"
#include "base/um_random.h"
#include "base/um_timer.h"
#include "net/um_udp.h"
#include "transport/lbtr/um_lbtr_reception.h"
#include "transport/udp/um_udp_receivers.h"
#include "transport/um_loss_rate.h"

/* Reads of a socket per wake-up, before others get their turn. */
#define UM_UDP_READS_PER_PASS 8

struct um_udp_receivers {
    struct um_transport_env *env;
    struct um_udp_reader *reader;    /* NULL before the first session */
    struct um_udp_datagram datagram; /* being handed on */
    struct um_rng rng;
    struct um_list pass;     /* um_udp_session.pass_node: sessions the present read brought something for */
    struct um_list sessions; /* um_udp_session.node: all */
    struct um_list channels; /* groups joined: um_lbtrm_channel.c */
    int nak_fd;              /* -1 before the first LBT-RM session */
    bool nak_cutoff;
    struct um_udp_rcv_counts counts; /* without the sockets that are open */
    struct um_log_limit unknown_log, send_log, drop_log;
};

struct um_udp_session;

/* What differs between the two. */
struct um_udp_engine {
    void (*on_timer)(struct um_udp_session *session, uint64_t now_ns);
    struct um_udp_socket *(*socket)(struct um_udp_session *session); /* NULL: the session is over */
    const char *generation_option; /* for log lines: what bounds the time of repairs */
    const char *buffer_option;     /* for log lines: size of the receive buffer */
};

/* First member of either session. */
struct um_udp_session {
    struct um_rcv_session base;
    struct um_udp_receivers *owner;
    const struct um_udp_engine *engine;
    struct um_receiver_options first; /* of the first receiver: numbers only, no strings are looked at */
    struct um_list node;              /* owner's sessions */
    struct um_list pass_node;         /* owner's pass */
    struct um_timer timer;
    uint64_t due_ns; /* of the timer; UM_NEVER */
    uint64_t lost_datagrams;
    uint64_t drops_told, drops_due_ns; /* um_udp_watch_drops() */
    struct um_log_limit malformed_log, lost_log;
};

static inline struct um_udp_session *um_udp_session_of(struct um_rcv_session *session)
{
    return UM_CONTAINER_OF(session, struct um_udp_session, base);
}

/* um_udp_receivers.c */
int um_udp_receivers_open_reader(struct um_udp_receivers *receivers); /* 0, or -1 + error */
/* Send without waiting; what the kernel does not take is lost, counted and logged. */
void um_udp_send(struct um_udp_receivers *receivers, int fd, const uint8_t *data, size_t len, uint32_t ip,
                 uint16_t port);
/* Log that the present datagram belongs to no session. */
void um_udp_tell_unknown(struct um_udp_receivers *receivers, const char *where);
/* Take over the counts of a socket that is about to be closed. */
void um_udp_bank_socket(struct um_udp_receivers *receivers, const struct um_udp_socket *sock);
/* Something is missing: does the kernel drop datagrams at this socket? Looks once a second. */
void um_udp_watch_drops(struct um_udp_session *session, uint64_t now_ns);
/* Everything the socket has now, up to a bound: `on_datagram` is called with receivers->datagram set, and must not
 * touch `user` when it has closed the socket. Sessions entered with um_udp_session_enter() get their turn at the end.
 */
void um_udp_read_pass(struct um_udp_receivers *receivers, struct um_udp_socket *sock, uint64_t now_ns,
                      enum um_loss_kind loss, void (*on_datagram)(void *user, uint64_t now_ns), void *user);

/* um_udp_session.c */
void um_udp_session_init(struct um_udp_session *session, struct um_udp_receivers *receivers,
                         const struct um_receiver_options *opts, const struct um_udp_engine *engine,
                         const struct um_rcv_transport_ops *ops);
void um_udp_session_stop(struct um_udp_session *session);
void um_udp_session_enter(struct um_udp_session *session); /* into the present pass */
void um_udp_sessions_end_pass(struct um_udp_receivers *receivers, uint64_t now_ns);
/* Outputs of the engines; `io` is the session. */
void um_udp_session_set_timer(void *io, uint64_t due_ns);
void um_udp_session_deliver(void *io, uint64_t now_ns, const struct um_slice *payload, uint32_t sqn,
                            bool retransmission);
void um_udp_session_lost(void *io, uint64_t now_ns, uint32_t first, uint32_t count, enum um_lbtr_loss why);
void um_udp_session_heard(void *io, uint64_t now_ns);
/* One warning for each option in which `opts` asks for something else than what the session was joined with. */
void um_lbtrm_receiver_compare(const struct um_rcv_session *session, const struct um_receiver_options *opts);
void um_lbtru_receiver_compare(const struct um_rcv_session *session, const struct um_receiver_options *opts);
/* An interval of the options: milliseconds, unless the extension in microseconds is set. */
uint64_t um_udp_interval_ns(lbm_ulong_t ms, lbm_ulong_t us);
/* Longest datagram to be received. */
size_t um_udp_receive_size(lbm_uint_t own, lbm_uint_t common);

#endif
