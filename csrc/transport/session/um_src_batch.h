/* Inside of a source session, for the transports below it: the batch buffers
 * and the operations a transport provides. Not for core.
 * Threads: "lock" = the session lock is held; [loop] as elsewhere. */
#ifndef UM_TRANSPORT_SESSION_SRC_BATCH_H
#define UM_TRANSPORT_SESSION_SRC_BATCH_H

#include "base/um_clock.h"
#include "base/um_lock.h"
#include "transport/session/um_src_session.h"
#include "transport/stream/um_datagram.h"

/* A transport that does not batch takes over the sends of its streams. The functions take the session's lock
 * themselves, call um_src_session_admitted() or do its work, and count in the stream what they accepted. Results and
 * errors as those of um_src_stream_send() and its kin. */
struct um_src_takeover {
    int (*send)(struct um_src_stream *stream, struct um_send *send);
    int (*send_plain)(struct um_src_stream *stream, const void *data, size_t len, int flags, bool *waited);
    int (*send_run)(struct um_src_stream *stream, struct um_send_run *run);
    void (*flush)(struct um_src_stream *stream);
    const struct um_src_buffers *buffers; /* NULL: none */
};

struct um_src_session_ops {
    const char *options;         /* how the names of the transport's options begin: "transport_tcp_" */
    const char *datagram_option; /* names in error texts: what limits the size of a datagram */
    const char *blocked_by;      /* why a send is refused or waits, with the option to look at */
    /* NULL, or the transport takes over sending; then transmit, acquire and push are not used. */
    const struct um_src_takeover *takeover;
    /* Lock. NULL: batches come from the heap. Memory for the next batch, written once and transmitted from where it
     * lies; asked for again only after transmit(). NULL result: out of memory. */
    struct um_datagram *(*acquire)(struct um_src_session *session);
    /* Lock. Put the datagram on its way to every client; takes over one reference. */
    void (*transmit)(struct um_src_session *session, struct um_datagram *datagram);
    /* Lock. May be NULL. While session->collecting is set, transmit() may keep datagrams together; now they must go. */
    void (*push)(struct um_src_session *session);
    /* Lock, given up meanwhile: sleep until something changed. Called by the one waiting thread that polls. */
    void (*wait)(struct um_src_session *session);
    /* Lock. No thread waits any more: whatever is still queued is the loop's to write. */
    void (*resume)(struct um_src_session *session);
    /* Lock. Make the thread inside wait() return. */
    void (*interrupt)(struct um_src_session *session);
    /* Lock. May a sender that was blocked go on (queues at or below half of the limit)? */
    bool (*relieved)(const struct um_src_session *session);
    /* [loop] Report CONNECT of every client to one stream. */
    void (*announce)(struct um_src_session *session, struct um_src_stream *stream);
    /* [loop] The transport's share of the session's command. */
    void (*on_command)(struct um_src_session *session);
    /* [loop] A stream has left. May be NULL. */
    void (*forget_topic)(struct um_src_session *session, uint32_t tidx);
    void (*source_info)(const struct um_src_session *session, lbm_transport_source_info_t *out);
    /* [loop] Write what the session has chosen or rounded: ports, groups, ids, addresses, sizes. */
    void (*in_force)(const struct um_src_session *session, struct um_source_options *out);
    void (*stats)(struct um_src_session *session, lbm_src_transport_stats_t *out);
    void (*stats_reset)(struct um_src_session *session); /* lock; may be NULL */
    /* Lock; may be NULL. See um_src_stream_naks(). */
    int (*naks)(struct um_src_session *session, struct um_src_nak_count *out, int max);
    /* Any thread. NULL: session->clients. */
    int (*clients)(const struct um_src_session *session);
    /* Lock. Adds what only this transport knows. May be NULL. */
    void (*counts)(const struct um_src_session *session, struct um_src_counts *out);
};

/* Where a session is in the pool of its transport. */
struct um_src_place {
    bool named;     /* by the options of its first source */
    uint32_t part;  /* a pool within the pool: LBT-RM has one for each destination port; else 0 */
    uint32_t id;    /* port, transport id, group: as an option of a source names it */
    uint32_t alias; /* the id by which it was named, if it could not be had; 0: none */
    bool counted;   /* one of those whose number the pool limits */
    bool shared;    /* may be picked for sources that name no session */
    bool smart;     /* of smart sources, which share none with others */
    bool apart;     /* of immediate messages: never found, picked or counted among those of sources */
};

#define UM_DATAGRAMS_KEPT 64

struct um_src_session {
    struct um_lock lock;
    struct um_datagram *batch; /* lock; NULL only after an allocation failed */
    size_t batch_user_bytes;   /* lock */
    size_t datagram_max;       /* fixed: room for LBMC messages */
    size_t plain_end;        /* fixed: messages shorter than this go out without FRAG and other headers; 0: takeover */
    size_t header_reserve;   /* fixed: kept free for headers in datagram_max without dynamic reduction */
    size_t minimum_length;   /* lock */
    size_t flush_at;         /* lock: at so many of them it counts as full; properties in them move it on */
    size_t coalesce_max;     /* fixed: full batches may grow to this many bytes under load; 0 = never */
    uint64_t batch_start_ns; /* lock */
    uint64_t sent_ns;        /* lock: the time of a send that has just read the clock and goes out at once; else 0 */
    bool blocked;            /* lock; kept by the transport: a send must wait or be refused */
    const atomic_int *gate;  /* fixed, any thread changes the value: not 0 blocks as well (limits of a context) */
    bool timer_wanted;       /* lock: interval timer armed, or its arming posted */
    bool adaptive;           /* lock */
    bool dynamic_reduction;  /* fixed */
    bool filtering;          /* fixed: TSNI messages carry one topic each */
    bool one_topic;          /* fixed: so do datagrams */
    bool connectionless;     /* fixed: there may be receivers that are not counted as clients */
    bool tell_end;           /* fixed: see um_src_session_config */
    bool smart;              /* fixed: likewise */
    _Atomic uintptr_t smart_thread; /* any thread: whose sends a smart session takes, once it is asked; else 0 */
    bool batches_blocked;           /* fixed: while blocked, what fits into the batch without a flush is accepted */
    bool collecting;                /* lock: more datagrams follow under this lock, see ops->push */
    uint32_t batch_tidx;            /* lock: topic of the batch, kept only with one_topic */
    void *writer; /* fixed: of the transport's own, for calls that go past the session (um_src_buffers); may be NULL */
    const struct um_src_session_ops *ops;
    struct um_transport_env *env;
    uint64_t interval_ns;                        /* lock */
    uint64_t last_transmit_ns;                   /* lock; about when the last datagram went out */
    bool drain_wanted;                           /* lock: drain timer armed, or its arming posted */
    bool held_since_tick;                        /* lock: a full batch was kept back since the last tick of the timer */
    int clients;                                 /* lock; kept by the transport */
    int open_messages;                           /* lock: fragmented messages under way */
    int waiters;                                 /* lock: threads waiting */
    struct um_list line;                         /* lock: of those and those about to go on, see um_src_wait.c */
    bool polling;                                /* lock: one of them is inside ops->wait */
    bool wakeups_wanted;                         /* lock: some stream has wakeup_wanted */
    bool wakeups_due;                            /* lock: condition cleared, events to be reported by the command */
    bool resume_wanted;                          /* lock: some stream has tsni_resume */
    struct um_condition changed;                 /* with lock */
    struct um_datagram *free_list;               /* lock */
    int free_count;                              /* lock */
    struct um_src_drops drops;                   /* lock */
    struct um_list streams;                      /* changed by the loop under the lock: either suffices to read */
    struct um_command command;                   /* posted by any thread, runs on the loop */
    struct um_timer interval_timer;              /* [loop] */
    struct um_timer drain_timer;                 /* [loop] sends full batches kept back when no send follows */
    struct um_timer tsni_flush_timer;            /* [loop] */
    struct um_src_stream *due[UM_LBMC_TSNI_MAX]; /* [loop] */
    int due_count;                               /* [loop] */
    bool announce_wanted;                        /* [loop] */
    struct um_src_transport *pool;               /* [loop] */
    struct um_list pool_node;                    /* [loop] pool->sessions; see there */
    struct um_src_place place;                   /* fixed */
    struct um_source_options first; /* fixed: of the first source; numbers only, no strings are looked at */
};

/* What a transport tells about the session it makes. */
struct um_src_session_config {
    size_t datagram_max;       /* room for LBMC messages in a datagram */
    size_t transport_overhead; /* bytes of transport headers: they are part of what the datagram_max option limits */
    const atomic_int *gate;    /* may be NULL */
    bool coalesce;             /* full batches may join under load */
    bool one_topic, connectionless, batches_blocked;
    bool smart;    /* of smart sources: each message is a datagram, whose size that of the first source decides */
    bool tell_end; /* receivers may be overrun: the last number of a topic goes out when its source is deleted */
};

/* [loop] Asks ops->acquire for the first batch. */
int um_src_session_init(struct um_src_session *session, struct um_transport_env *env,
                        const struct um_src_session_ops *ops, const struct um_src_session_config *config,
                        const struct um_source_options *opts);
void um_src_session_fini(struct um_src_session *session);
void um_src_session_add(struct um_src_session *session, struct um_src_stream *stream);

/* Lock. */
void um_src_session_flush(struct um_src_session *session);
struct um_datagram *um_datagram_get(struct um_src_session *session);      /* refs 1, empty; NULL: out of memory */
struct um_datagram *um_datagram_copy(const struct um_datagram *datagram); /* compact, refs 1; NULL: out of memory */
void um_datagram_unref(struct um_src_session *session, struct um_datagram *datagram);
/* The transport's queues shrank or its clients changed: wake waiting senders, have WAKEUP reported. */
void um_src_session_relieve(struct um_src_session *session);
/* May this send begin? 0; waits for it if it may, sends->waited; or -1 + error. For transports that take over sending.
 */
int um_src_session_admitted(struct um_src_session *session, struct um_src_stream *stream, struct um_send *send);
/* A datagram with the last numbers of streams; what waits goes out before it. With `only` of that stream alone. False +
 * error: out of memory for some of them, which the next TSNI tells. */
bool um_src_session_tell_numbers(struct um_src_session *session, struct um_src_stream *only);
/* A ready-made LBMC message in a datagram of its own. False + error: out of memory. */
bool um_src_session_put_alone(struct um_src_session *session, const uint8_t *message, size_t len);
/* Refuse the send: -1 + UM_EWOULDBLOCK, and WAKEUP follows. */
int um_src_session_refuse(struct um_src_session *session, struct um_src_stream *stream);
uint32_t um_src_stream_last_sqn(const struct um_src_stream *stream); /* as a TSNI tells it */

/* Lock. */
static inline uint64_t um_src_session_clock(const struct um_src_session *session)
{
    return session->sent_ns != 0 ? session->sent_ns : um_clock_ns();
}

static inline bool um_src_session_blocked(const struct um_src_session *session)
{
    return session->blocked || atomic_load_explicit(session->gate, memory_order_acquire) != 0;
}

static inline void um_src_session_lock(struct um_src_session *session)
{
    um_lock_take(&session->lock);
}

static inline void um_src_session_unlock(struct um_src_session *session)
{
    um_lock_give(&session->lock);
}

#endif
