/* What LBT-RM and LBT-RU receive sessions have in common: the read pass over a socket, the timer of the engine, the way
 * of a payload up to the streams. Private to transport/udp. Everything is [loop]. */
#ifndef UM_TRANSPORT_UDP_UDP_RCV_SESSION_H
#define UM_TRANSPORT_UDP_UDP_RCV_SESSION_H

#include "base/um_log.h"
#include "base/um_mem.h"
#include "base/um_random.h"
#include "base/um_timer.h"
#include "net/um_loop.h"
#include "net/um_udp.h"
#include "transport/lbtr/um_lbtr_rcv_engine.h"
#include "transport/udp/um_udp_receivers.h"
#include "transport/session/um_loss_rate.h"

/* Reads of a socket per wake-up, before others get their turn. */
#define UM_UDP_READS_PER_PASS 8

struct um_udp_receivers {
    struct um_rcv_transport base;
    struct um_udp_reader *reader;    /* NULL before the first session */
    struct um_udp_datagram datagram; /* being handed on */
    struct um_rng rng;
    struct um_list pass;     /* um_udp_rcv_session.pass_node: sessions the present read brought something for */
    struct um_list channels; /* LBT-RM, groups joined: um_lbtrm_channel.c */
    int nak_fd;              /* LBT-RM; -1 before the first session */
    bool nak_cutoff;         /* LBT-RM */
    bool range_told;         /* LBT-RU: that the default range of its ports is used up */
    struct um_rcv_datagram_counts counts; /* without the sockets that are open */
};

struct um_udp_rcv_session;

/* A reason for a log line. */
struct um_udp_text {
    char text[240];
};

/* What differs between the two, beside where datagrams come from. */
struct um_udp_rcv_kind {
    struct um_udp_socket *(*socket)(struct um_udp_rcv_session *session); /* that it receives on; NULL: it has stopped */
    int (*out)(const struct um_udp_rcv_session *session); /* descriptor on which it sends to the source */
    void (*close)(struct um_udp_rcv_session *session);    /* no more datagrams; also of what was opened in part. Once */
    void (*begun)(struct um_udp_rcv_session *session);    /* something was heard of the source. NULL: that is no news */
    bool shares_socket;                                   /* with the other sessions of its group */
    const char *buffer_option;                            /* for log lines: size of the receive buffer */
    const char *end_log;                                  /* id of the line that tells the end */
    /* Why the engine has ended, with the option, its limit and what was measured. */
    void (*describe_end)(const struct um_udp_rcv_session *session, enum um_lbtr_end why, uint64_t now_ns,
                         struct um_udp_text *out);
    /* For log lines: the options that rule the session; [1] those of immediate messages. */
    struct um_udp_rcv_names {
        const char *generation;  /* what bounds the time of repairs */
        const char *activity;    /* how long the source may be silent ... */
        const char *preactivity; /* ... before anything was heard of it. NULL: as later */
    } names[2];
};

/* First member of either session. */
struct um_udp_rcv_session {
    struct um_rcv_session base;
    struct um_udp_receivers *owner;
    const struct um_udp_rcv_kind *kind;
    struct um_lbtr_rcv_engine *engine; /* from um_udp_rcv_session_joined() on */
    bool stopped;
    uint32_t source_ip;               /* network order: where what it sends goes ... */
    uint16_t source_port;             /* ... and the port, host order */
    struct um_receiver_options first; /* of the first receiver: numbers only, no strings are looked at */
    struct um_list pass_node;         /* owner's pass */
    struct um_timer timer;
    uint64_t due_ns; /* of the timer; UM_NEVER */
    uint64_t lost_datagrams;
    uint64_t drops_told, drops_due_ns; /* um_udp_watch_drops() */
};

static inline const struct um_udp_rcv_names *um_udp_rcv_names_of(const struct um_udp_rcv_session *session)
{
    return &session->kind->names[session->base.immediate ? 1 : 0];
}

/* The source was silent for longer than an option allows. */
void um_udp_rcv_describe_silence(const struct um_udp_rcv_session *session, const char *option, lbm_ulong_t limit_ms,
                                 uint64_t now_ns, struct um_udp_text *out);

static inline struct um_udp_receivers *um_udp_receivers_of(struct um_rcv_transport *transport)
{
    return UM_CONTAINER_OF(transport, struct um_udp_receivers, base);
}

static inline struct um_udp_rcv_session *um_udp_rcv_session_of(struct um_rcv_session *session)
{
    return UM_CONTAINER_OF(session, struct um_udp_rcv_session, base);
}

/* um_udp_receivers.c */
/* Makes room for datagrams of such a size once; 0, or -1 + error. */
int um_udp_receivers_open_reader(struct um_udp_receivers *receivers, size_t datagram_max);
/* Send without waiting; what the kernel does not take is lost, counted and logged. */
void um_udp_send(struct um_udp_receivers *receivers, int fd, const uint8_t *data, size_t len, uint32_t ip,
                 uint16_t port);
/* Log that the present datagram belongs to no session. */
void um_udp_tell_unknown(struct um_udp_receivers *receivers, const char *where);
/* Something is missing: does the kernel drop datagrams at this socket? Looks once a second. */
void um_udp_watch_drops(struct um_udp_rcv_session *session, uint64_t now_ns);
/* Everything the socket has now, up to a bound: `on_datagram` is called with receivers->datagram set, and must not
 * touch `user` when it has closed the socket. Sessions entered with um_udp_rcv_session_enter() get their turn at the
 * end.
 */
void um_udp_read_pass(struct um_udp_receivers *receivers, struct um_udp_socket *sock, uint64_t now_ns,
                      enum um_loss_kind loss, void (*on_datagram)(void *user, uint64_t now_ns), void *user);

/* Let the loop read the socket, which is open on the interface `via`; on failure (-1 + error) it is closed. */
int um_udp_watch(struct um_udp_receivers *receivers, struct um_udp_socket *sock, struct um_fd *ufd,
                 void (*on_readable)(struct um_fd *ufd, uint32_t ready, uint64_t now_ns), struct in_addr via);
/* Close it; its counts are kept. */
void um_udp_unwatch(struct um_udp_receivers *receivers, struct um_udp_socket *sock, struct um_fd *ufd);

/* um_udp_rcv_session.c */
void um_udp_rcv_session_init(struct um_udp_rcv_session *session, struct um_udp_receivers *receivers,
                             const struct um_receiver_options *opts, const struct um_rcv_session_key *key,
                             const struct um_udp_rcv_kind *kind, const struct um_rcv_session_ops *ops);
/* The end of a join: the session receives, and this is its engine. NULL: there was no memory for that; the session is
 * freed. Returns the session, or NULL + error. */
struct um_rcv_session *um_udp_rcv_session_joined(struct um_udp_rcv_session *session, struct um_lbtr_rcv_engine *engine);
void um_udp_rcv_session_enter(struct um_udp_rcv_session *session); /* into the present pass */
void um_udp_rcv_sessions_end_pass(struct um_udp_receivers *receivers, uint64_t now_ns);
void um_udp_rcv_session_malformed(struct um_udp_rcv_session *session, enum um_lbtr_rc rc); /* put down to it */
/* What engines of both put out; `io` is the session. */
extern const struct um_lbtr_rcv_outputs um_udp_rcv_outputs;
/* Operations that are the same for both (um_rcv_session_ops). */
void um_udp_rcv_session_stop(struct um_rcv_session *base);
void um_udp_rcv_session_destroy(struct um_rcv_session *base);
bool um_udp_rcv_session_complete_before(struct um_rcv_session *base, uint32_t position);
void um_udp_rcv_session_reset_stats(struct um_rcv_session *base);
#define UM_UDP_RCV_SESSION_OPS                                                                                         \
    .stop = um_udp_rcv_session_stop, .destroy = um_udp_rcv_session_destroy,                                            \
    .complete_before = um_udp_rcv_session_complete_before, .reset_stats = um_udp_rcv_session_reset_stats,              \
    .kernel_drops = um_udp_rcv_session_kernel_drops

/* One warning for each option in which `opts` asks for something else than what the session was joined with. */
void um_lbtrm_rcv_engine_compare(const struct um_rcv_session *session, const struct um_receiver_options *opts);
void um_lbtru_rcv_engine_compare(const struct um_rcv_session *session, const struct um_receiver_options *opts);
/* An interval of the options: milliseconds, unless the extension in microseconds is set. */
static inline uint64_t um_udp_interval_ns(lbm_ulong_t ms, lbm_ulong_t us)
{
    return us != 0 ? um_us_ns(us) : um_ms_ns(ms);
}
/* struct um_lbtr_nak_config of the options whose names begin like this. */
#define UM_UDP_NAK_CONFIG(receivers, opts, transport)                                                                  \
    {                                                                                                                  \
        .initial_ns = um_udp_interval_ns((opts)->transport##_nak_initial_backoff_interval,                             \
                                         (opts)->um_##transport##_nak_initial_backoff_interval_us),                    \
        .backoff_ns = um_udp_interval_ns((opts)->transport##_nak_backoff_interval,                                     \
                                         (opts)->um_##transport##_nak_backoff_interval_us),                            \
        .suppress_ns = um_udp_interval_ns((opts)->transport##_nak_suppress_interval,                                   \
                                          (opts)->um_##transport##_nak_suppress_interval_us),                          \
        .generation_ns = um_udp_interval_ns((opts)->transport##_nak_generation_interval,                               \
                                            (opts)->um_##transport##_nak_generation_interval_us),                      \
        .send_naks = (opts)->transport##_send_naks != 0,                                                               \
        .lead_max = (uint32_t)(receivers)->base.env->opts->um_lead_maximum                                             \
    }
/* Longest datagram to be received. */
size_t um_udp_receive_size(lbm_uint_t own, lbm_uint_t common);

#endif
