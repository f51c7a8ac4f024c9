/* A source session of LBT-SMX: the segment, its ring and whoever writes it. The
 * pool of sessions is in um_smx_sources.c, sending in um_smx_send.c. */
#ifndef UM_TRANSPORT_SMX_SOURCE_H
#define UM_TRANSPORT_SMX_SOURCE_H

#include "base/um_mem.h"
#include "transport/shm/um_shm_segment.h"
#include "transport/smx/um_smx_ring.h"
#include "transport/um_src_batch.h"
#include "transport/um_src_transport.h"

/* The writer belongs to the session lock for the general sends; lbm_src_buff_acquire() and its kin are serialised by
 * their callers and take the lock only to wait. */
struct um_smx_session {
    struct um_src_session base; /* first */
    struct um_smx_writer writer;
    bool count;                             /* fixed: transport_lbtsmx_message_statistics_enabled */
    _Atomic uint64_t msgs_sent, bytes_sent; /* writer; read by any thread */
    _Atomic uint32_t blocked_by;            /* process that holds the writer up now, 0: none; any thread reads */
    _Atomic uint64_t blocked_ns;            /* all waiting of senders so far; any thread reads */
    _Atomic uint64_t receivers_lost;        /* slots taken from dead receivers, or given up for an impossible cursor */
    uint32_t evictions_told;                /* lock: writer.evicted as of the last log line */
    struct um_shm_segment segment;
    struct um_smx_sources *pool;    /* [loop] */
    struct um_list node;            /* [loop] pool->sessions */
    bool explicit_id;               /* fixed */
    uint64_t window;                /* fixed: as asked for by the first source */
    struct um_timer activity_timer; /* [loop] session message: activity + 1 */
    struct um_timer watch_timer;    /* [loop] dead receivers */
    struct um_timer stall_timer;    /* [loop] armed while a refused sender waits for its WAKEUP */
};

struct um_smx_sources {
    struct um_src_transport base; /* first */
    struct um_transport_env *env;
    struct um_list sessions;
    unsigned next; /* round robin over the pool */
};

static inline struct um_smx_session *um_smx_session_of(struct um_src_session *base)
{
    return UM_CONTAINER_OF(base, struct um_smx_session, base);
}

extern const struct um_src_session_ops um_smx_session_ops;

/* um_smx_send.c */
extern const struct um_src_takeover um_smx_takeover;
/* Is there room for a message, as seen by somebody who does not hold the lock? Lock. */
bool um_smx_relieved(const struct um_src_session *base);
/* Frees the slots of dead receivers, tells of impossible cursors. Returns how many went. Lock or [loop]. */
unsigned um_smx_reap(struct um_smx_session *session);

/* The calls of the same names in lbm.h, on a stream whose session is LBT-SMX. -1 + error. */
void um_smx_buffs_cancel(struct um_src_stream *stream);
int um_smx_acquire_slowly(struct um_src_stream *stream, void **buffer, size_t len, int flags); /* internal */

static inline bool um_smx_is(const struct um_src_stream *stream)
{
    return stream->session != NULL && stream->session->ops == &um_smx_session_ops;
}

static inline void um_smx_count(struct um_smx_session *session, uint64_t msgs, uint64_t bytes)
{
    if (__builtin_expect(session->count, 0)) {
        msgs += atomic_load_explicit(&session->msgs_sent, memory_order_relaxed);
        bytes += atomic_load_explicit(&session->bytes_sent, memory_order_relaxed);
        atomic_store_explicit(&session->msgs_sent, msgs, memory_order_relaxed);
        atomic_store_explicit(&session->bytes_sent, bytes, memory_order_relaxed);
    }
}

static inline void um_smx_count_claim(struct um_smx_session *session, struct um_src_stream *stream, size_t len)
{
    stream->next_sqn++;
    stream->messages_sent++;
    stream->bytes_sent += len;
    um_smx_count(session, 1, len + UM_SMX_RECORD_HEADER);
}

static inline __attribute__((always_inline)) int um_smx_buff_acquire(struct um_src_stream *stream, void **buffer,
                                                                     size_t len, int flags)
{
    struct um_smx_session *session = um_smx_session_of(stream->session);
    if (__builtin_expect(len <= session->writer.payload_max, 1)) {
        struct um_smx_record *record = um_smx_claim(&session->writer, len, stream->tidx, stream->next_sqn);
        if (__builtin_expect(record != NULL, 1)) {
            um_smx_count_claim(session, stream, len);
            *buffer = record->payload;
            return 0;
        }
    }
    return um_smx_acquire_slowly(stream, buffer, len, flags);
}

static inline void um_smx_buffs_complete(struct um_src_stream *stream)
{
    um_smx_publish(&um_smx_session_of(stream->session)->writer);
}

/* What lbm_src_topic_alloc() tells of options that mean nothing to LBT-SMX. */
void um_smx_notices(const struct um_source_options *opts, const char *topic);

#endif
