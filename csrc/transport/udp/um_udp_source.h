/* Source sessions over UDP, private to csrc/transport/udp: what LBT-RM and LBT-RU
 * share. A session joins a source session (batching, waiting), an engine (numbers,
 * window, repairs, limits) and its sockets. "lock" = the session lock is held, in a
 * sender's thread or on the loop; [loop] = on the context's loop. */
#ifndef UM_TRANSPORT_UDP_SOURCE_H
#define UM_TRANSPORT_UDP_SOURCE_H

#include "base/um_list.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "net/um_udp.h"
#include "net/um_udp_send.h"
#include "transport/lbtr/um_lbtr_answer.h"
#include "transport/lbtr/um_lbtr_limiter.h"
#include "transport/um_loss_rate.h"
#include "transport/udp/um_udp_nakers.h"
#include "transport/udp/um_udp_stamps.h"
#include "transport/um_src_batch.h"
#include "transport/um_src_transport.h"

struct um_udp_source;
struct um_udp_sources;

/* An engine as the shared part sees it; lock. */
struct um_udp_source_engine {
    uint8_t *(*acquire)(struct um_udp_source *source, size_t *capacity);
    enum um_lbtr_commit (*commit)(struct um_udp_source *source, uint64_t now_ns, size_t len, size_t user_bytes);
    bool (*may_send)(struct um_udp_source *source, bool tell);
    void (*on_packet)(struct um_udp_source *source, uint64_t now_ns, const struct um_udp_datagram *datagram);
    void (*on_timer)(struct um_udp_source *source, uint64_t now_ns);
    void (*pin)(struct um_udp_source *source, uint64_t index);
    const struct um_lbtr_source_counters *(*counters)(const struct um_udp_source *source);
    void (*stats)(const struct um_udp_source *source, lbm_src_transport_stats_t *out);
    void (*stats_reset)(struct um_udp_source *source);
    void (*after)(struct um_udp_source *source); /* [loop] no lock: events that became due; may be NULL */
    void (*forget_topic)(struct um_udp_source *source, uint32_t tidx); /* [loop] no lock; may be NULL */
    size_t (*unsent)(const struct um_udp_source *source);              /* datagrams held back */
    void (*destroy)(struct um_udp_source *source);                     /* [loop] of the engine, not of the session */
};

/* First member of either session. */
struct um_udp_source {
    struct um_src_session base;
    const struct um_udp_source_engine *engine;
    struct um_udp_sources *pool;
    struct um_list node; /* pool->sessions: changed by the loop under pool->lock */
    /* fixed after creation */
    bool in_pool;               /* may be picked for sources that name no session */
    uint16_t pool_port;         /* LBT-RM has a pool for each destination port; 0 otherwise */
    bool trains;                /* datagrams may be kept together for one system call */
    uint16_t port;              /* host order: where NAKs (and all else clients send) arrive */
    uint16_t configured_port;   /* LBT-RU: as the source named it, 0 = none */
    struct in_addr addr, shown; /* of that port; in source strings: as addr, but not INADDR_ANY if it can be helped */
    uint32_t session_id;
    enum um_loss_kind loss;         /* deliberate loss that applies */
    struct um_source_options first; /* the values of the first source: numbers only, no strings are looked at */
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
    struct um_log_limit send_log;
};

/* The source sessions of one context and transport. */
struct um_udp_sources {
    struct um_src_transport base;
    struct um_transport_env *env;
    struct um_lbtr_limiter limiter;
    struct um_lock lock;          /* taken before a session's lock */
    struct um_list sessions;      /* changed by the loop under the lock, in order of creation */
    struct um_udp_source *next;   /* [loop] round robin: the next one to be shared; NULL = the first */
    struct um_udp_reader *reader; /* [loop] NULL before the first session */
};

/* What a transport gives to the shared part when it makes a session. */
struct um_udp_source_config {
    const struct um_src_session_ops *ops;
    const struct um_udp_source_engine *engine;
    size_t datagram_max;       /* as configured, whole UDP payload */
    size_t transport_overhead; /* of a DATA packet */
    size_t window_size, window_limit;
    bool one_topic, connectionless;
    const struct um_iface *stamps; /* not NULL: report when datagrams left through this interface */
};

static inline struct um_udp_source *um_udp_source_of(const struct um_src_session *base)
{
    return UM_CONTAINER_OF((struct um_src_session *)base, struct um_udp_source, base);
}

/* um_udp_sources.c [loop] */
struct um_src_transport *um_udp_sources_create(struct um_transport_env *env, const struct um_src_transport_ops *ops,
                                               const struct um_lbtr_limiter_config *limits, size_t datagram_max);
void um_udp_sources_destroy(struct um_src_transport *base);
int um_udp_sources_stats(struct um_src_transport *base, lbm_src_transport_stats_t *out, int max);
void um_udp_sources_stats_reset(struct um_src_transport *base);
void um_udp_sources_flush(struct um_src_transport *base);
/* Of the sessions that may be picked for this pool port: the one whose turn it is (NULL: there is none), their number.
 */
struct um_udp_source *um_udp_sources_pick(struct um_udp_sources *pool, uint16_t port);
int um_udp_sources_count(const struct um_udp_sources *pool, uint16_t port);
/* One warning for each option in which `opts` asks for something else than what the session was made with. */
void um_lbtrm_source_compare(const struct um_udp_source *source, const struct um_source_options *opts,
                             const char *topic);
void um_lbtru_source_compare(const struct um_udp_source *source, const struct um_source_options *opts,
                             const char *topic);
size_t um_udp_datagram_limit(size_t configured, const char *option); /* what one UDP datagram can hold */

/* um_udp_source.c */
/* [loop] Opens `source->in` on a port of the range (um_udp_open_range) and notes which one. 0, UM_UDP_NO_PORT or -1,
 * with error. */
int um_udp_source_open_in(struct um_udp_source *source, struct um_udp_sources *pool, const struct um_udp_config *config,
                          uint16_t low, uint16_t high, const char *what);
/* [loop] The sockets are open: `source->in`, and `out_fd` to send on; the engine is made. Adds the session to the pool.
 * On failure nothing is closed. */
int um_udp_source_open(struct um_udp_source *source, struct um_udp_sources *pool,
                       const struct um_udp_source_config *config, const struct um_source_options *opts, int out_fd,
                       bool connected);
void um_udp_source_close(struct um_udp_source *source); /* [loop] ends and frees the session */
/* Lock. The outputs of both engines. */
void um_udp_source_put(struct um_udp_source *source, const struct sockaddr_in *to, const uint8_t *head, size_t head_len,
                       const uint8_t *body, size_t body_len);
void um_udp_source_set_timer(void *io, uint64_t due_ns);
void um_udp_source_kick(void *io);
void um_udp_source_relieved(void *io);
bool um_udp_source_full(void *io);
/* Lock given up meanwhile. Operations that are the same for both (um_src_session_ops). */
struct um_datagram *um_udp_source_acquire(struct um_src_session *base);
void um_udp_source_transmit(struct um_src_session *base, struct um_datagram *datagram);
void um_udp_source_push(struct um_src_session *base);
void um_udp_source_wait(struct um_src_session *base);
void um_udp_source_resume(struct um_src_session *base);
void um_udp_source_interrupt(struct um_src_session *base);
bool um_udp_source_is_relieved(const struct um_src_session *base);
void um_udp_source_on_command(struct um_src_session *base);
void um_udp_source_stream_gone(struct um_src_session *base, uint32_t tidx);
void um_udp_source_stats(struct um_src_session *base, lbm_src_transport_stats_t *out);
void um_udp_source_stats_reset(struct um_src_session *base);
int um_udp_source_naks(struct um_src_session *base, struct um_src_nak_count *out, int max);
#define UM_UDP_SOURCE_OPS                                                                                              \
    .acquire = um_udp_source_acquire, .transmit = um_udp_source_transmit, .push = um_udp_source_push,                  \
    .wait = um_udp_source_wait, .resume = um_udp_source_resume, .interrupt = um_udp_source_interrupt,                  \
    .relieved = um_udp_source_is_relieved, .on_command = um_udp_source_on_command,                                     \
    .stream_gone = um_udp_source_stream_gone, .stats = um_udp_source_stats, .stats_reset = um_udp_source_stats_reset,  \
    .naks = um_udp_source_naks

#endif
