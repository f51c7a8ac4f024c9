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
    _Atomic uint32_t blocked_by;     /* process that holds the writer up now, 0: none; any thread reads */
    _Atomic uint64_t blocked_ns;     /* all waiting of senders so far; any thread reads */
    _Atomic uint64_t receivers_lost; /* slots taken from dead receivers, or given up for an impossible cursor */
    /* Any thread. One at a time looks for the dead: the locks of slots belong to the segment's descriptor, so that of
     * two threads the first to give a lock back gives it back for both, and the second frees the slot of whoever came.
     */
    atomic_bool reaping;
    uint32_t evictions_noted;  /* lock: of writer.evicted, what receivers_lost has */
    uint32_t evictions_untold; /* lock: not yet in the log */
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
/* Frees the slots of dead receivers. Returns how many went. No lock; the loop, or a sender that the session waits for.
 */
unsigned um_smx_reap(struct um_smx_session *session);
void um_smx_tell_evictions(struct um_smx_session *session); /* [loop] no lock: log them */

/* The calls of the same names in lbm.h, on a stream whose session is LBT-SMX. -1 + error. */
void um_smx_buffs_cancel(struct um_src_stream *stream);
int um_smx_acquire_slowly(struct um_src_stream *stream, void **buffer, size_t len, int flags); /* internal */

static inline bool um_smx_is(const struct um_src_stream *stream)
{
    return stream->writer != NULL;
}

static inline struct um_smx_writer *um_smx_writer_of(const struct um_src_stream *stream)
{
    return stream->writer;
}

static inline void um_smx_count_claim(struct um_smx_writer *writer, struct um_src_stream *stream, size_t len)
{
    stream->next_sqn++;
    um_src_count(stream, len);
    if (__builtin_expect(writer->counting, 0)) {
        um_smx_count(writer, 1, len + UM_SMX_RECORD_HEADER);
    }
}

static inline __attribute__((always_inline)) int um_smx_buff_acquire(struct um_src_stream *stream, void **buffer,
                                                                     size_t len, int flags)
{
    struct um_smx_writer *writer = um_smx_writer_of(stream);
    uint64_t size = UM_SMX_RECORD_SIZE(writer, len);
    if (__builtin_expect(len <= writer->payload_max && um_smx_reaches(writer, size), 1)) {
        *buffer = um_smx_claim_reached(writer, size, len, stream->tidx, stream->next_sqn)->payload;
        um_smx_count_claim(writer, stream, len);
        return 0;
    }
    return um_smx_acquire_slowly(stream, buffer, len, flags);
}

static inline void um_smx_buffs_complete(struct um_src_stream *stream)
{
    um_smx_publish(um_smx_writer_of(stream));
}

/* What lbm_src_topic_alloc() tells of options that mean nothing to LBT-SMX. */
void um_smx_notices(const struct um_source_options *opts, const char *topic);

#endif
