/* Source sessions over UDP, private to csrc/transport/udp: what LBT-RM and LBT-RU
 * share. A session joins a source session (batching, waiting), an engine (numbers,
 * window, repairs, limits) and its sockets. "lock" = the session lock is held, in a
 * sender's thread or on the loop; [loop] = on the context's loop. */
#ifndef UM_TRANSPORT_UDP_UDP_SRC_SESSION_H
#define UM_TRANSPORT_UDP_UDP_SRC_SESSION_H

#include "base/um_list.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "net/um_udp.h"
#include "net/um_udp_send.h"
#include "transport/lbtr/um_lbtr_src_engine.h"
#include "transport/session/um_loss_rate.h"
#include "transport/udp/um_udp_nakers.h"
#include "transport/udp/um_udp_stamps.h"
#include "transport/session/um_src_batch.h"
#include "transport/session/um_src_pool.h"

struct um_udp_src_session;
struct um_udp_sources;

/* What differs between the two; lock, unless marked. Members that may be NULL say so. */
struct um_udp_src_kind {
    void (*on_packet)(struct um_udp_src_session *source, uint64_t now_ns, const struct um_udp_datagram *datagram);
    void (*after_timer)(struct um_udp_src_session *source); /* may be NULL */
    void (*stats)(const struct um_udp_src_session *source, lbm_src_transport_stats_t *out);
    void (*after)(struct um_udp_src_session *source); /* [loop] no lock: events that became due; may be NULL */
    void (*forget_topic)(struct um_udp_src_session *source, uint32_t tidx); /* [loop] no lock; may be NULL */
    void (*fini)(struct um_udp_src_session *source); /* [loop] what the session has beside; may be NULL */
};

/* First member of either session. */
struct um_udp_src_session {
    struct um_src_session base;
    const struct um_udp_src_kind *kind;
    struct um_lbtr_src_engine *engine; /* fixed; its content: lock */
    struct um_udp_sources *pool;
    /* fixed after creation */
    bool trains;                /* datagrams may be kept together for one system call */
    uint16_t port;              /* host order: where NAKs (and all else clients send) arrive */
    struct in_addr addr, shown; /* of that port; in source strings: as addr, but not INADDR_ANY if it can be helped */
    uint32_t session_id;
    enum um_loss_kind loss; /* deliberate loss that applies */
    /* lock */
    struct um_datagram datagram; /* the open slot */
    struct um_udp_out out;
    struct um_udp_stamps *stamps; /* fixed; NULL: none are wanted; its content: lock */
    struct um_udp_nakers nakers;
    uint64_t timer_due_ns; /* when the engine wants its timer; UM_NEVER: not at all */
    bool timer_wanted;     /* the command arms it */
    bool write_wanted;     /* EPOLLOUT is being waited for, or has been asked for */
    uint64_t failed_told;  /* datagrams the system refused, as last logged */
    bool report_wanted;    /* the command logs that datagrams could not be sent */
    bool own_come_last;    /* senders of other sessions were told before: ours are, by the command */
    bool own_due;          /* the command tells them */
    /* any thread */
    atomic_bool kicked; /* the engine's timer function is to run soon */
    /* [loop] */
    struct um_udp_socket in;
    struct um_fd in_fd, out_fd; /* LBT-RU sends on `in` and leaves out_fd.fd at -1 */
    struct um_timer timer;
};

/* The source sessions of one context and transport. */
struct um_udp_sources {
    struct um_src_transport base;
    struct um_lbtr_limiter limiter;
    struct um_lbtr_limiter smart_limiter; /* of the sessions of smart sources: it limits repairs only */
    struct um_udp_reader *reader;         /* [loop] */
};

/* What a transport gives to the shared part when it makes a session. */
struct um_udp_src_session_config {
    const struct um_src_session_ops *ops;
    const struct um_udp_src_kind *kind;
    size_t datagram_max;       /* as configured, whole UDP payload */
    size_t transport_overhead; /* of a DATA packet */
    size_t window_size, window_limit;
    bool one_topic, connectionless;
    bool smart;                    /* of smart sources: `datagram_max` is what um_udp_smart_datagram() says */
    const struct um_iface *stamps; /* not NULL: report when datagrams left through this interface */
};

static inline struct um_udp_src_session *um_udp_src_session_of(const struct um_src_session *base)
{
    return UM_CONTAINER_OF((struct um_src_session *)base, struct um_udp_src_session, base);
}

static inline struct um_udp_sources *um_udp_sources_of(struct um_src_transport *transport)
{
    return UM_CONTAINER_OF(transport, struct um_udp_sources, base);
}

/* um_udp_sources.c [loop] */
struct um_src_transport *um_udp_sources_create(struct um_transport_env *env,
                                               const struct um_lbtr_limiter_config *limits);
void um_udp_sources_destroy(struct um_src_transport *base);
/* um_src_transport_ops.compare */
void um_lbtrm_src_engine_compare(const struct um_src_session *base, const struct um_source_options *opts,
                                 const char *topic);
void um_lbtru_src_engine_compare(const struct um_src_session *base, const struct um_source_options *opts,
                                 const char *topic);
size_t um_udp_datagram_limit(size_t configured, const char *option); /* what one UDP datagram can hold */
/* The datagrams of a smart session: no longer than its messages with their headers need. */
size_t um_udp_smart_datagram(const struct um_source_options *opts, size_t datagram_max, size_t transport_overhead);
/* Buffers of its window. 0 + UM_EINVAL: more than the machine has memory for. */
uint32_t um_udp_smart_buffers(uint32_t wanted, size_t datagram_max, const char *option, const char *topic);
static inline struct um_lbtr_limiter *um_udp_limiter(struct um_udp_sources *pool, bool smart)
{
    return smart ? &pool->smart_limiter : &pool->limiter;
}

/* um_udp_src_session.c */
/* [loop] Opens `source->in` on a port of the range (um_udp_open_range) and notes which one. 0, UM_UDP_NO_PORT or -1,
 * with error. */
int um_udp_src_session_open_in(struct um_udp_src_session *source, struct um_udp_sources *pool,
                               const struct um_udp_config *config, const struct um_port_range *range);
/* [loop] The sockets are open: `source->in`, and `out_fd` to send on; `source->engine` is made.
 * On failure nothing is closed. */
int um_udp_src_session_open(struct um_udp_src_session *source, struct um_udp_sources *pool,
                            const struct um_udp_src_session_config *config, const struct um_source_options *opts,
                            int out_fd, bool connected);
void um_udp_src_session_close(struct um_src_session *base); /* [loop] ends and frees the session */
/* Lock. The outputs of both engines. */
void um_udp_src_session_put(struct um_udp_src_session *source, const struct sockaddr_in *to, const uint8_t *head,
                            size_t head_len, const uint8_t *body, size_t body_len);
void um_udp_src_session_set_timer(void *io, uint64_t due_ns);
void um_udp_src_session_kick(void *io);
void um_udp_src_session_relieved(void *io);
bool um_udp_src_session_full(void *io);
#define UM_UDP_SRC_OUTPUTS                                                                                             \
    {                                                                                                                  \
        .set_timer = um_udp_src_session_set_timer, .kick = um_udp_src_session_kick,                                    \
        .relieved = um_udp_src_session_relieved, .full = um_udp_src_session_full                                       \
    }
/* Lock given up meanwhile. Operations that are the same for both (um_src_session_ops). */
struct um_datagram *um_udp_src_session_acquire(struct um_src_session *base);
void um_udp_src_session_transmit(struct um_src_session *base, struct um_datagram *datagram);
void um_udp_src_session_push(struct um_src_session *base);
void um_udp_src_session_wait(struct um_src_session *base);
void um_udp_src_session_resume(struct um_src_session *base);
void um_udp_src_session_interrupt(struct um_src_session *base);
bool um_udp_src_session_is_relieved(const struct um_src_session *base);
void um_udp_src_session_on_command(struct um_src_session *base);
void um_udp_src_session_forget_topic(struct um_src_session *base, uint32_t tidx);
void um_udp_src_session_stats(struct um_src_session *base, lbm_src_transport_stats_t *out);
void um_udp_src_session_stats_reset(struct um_src_session *base);
int um_udp_src_session_naks(struct um_src_session *base, struct um_src_nak_count *out, int max);
#define UM_UDP_SOURCE_OPS                                                                                              \
    .acquire = um_udp_src_session_acquire, .transmit = um_udp_src_session_transmit, .push = um_udp_src_session_push,   \
    .wait = um_udp_src_session_wait, .resume = um_udp_src_session_resume, .interrupt = um_udp_src_session_interrupt,   \
    .relieved = um_udp_src_session_is_relieved, .on_command = um_udp_src_session_on_command,                           \
    .forget_topic = um_udp_src_session_forget_topic, .stats = um_udp_src_session_stats,                                \
    .stats_reset = um_udp_src_session_stats_reset, .naks = um_udp_src_session_naks

#endif
