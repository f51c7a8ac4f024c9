/* A source session of LBT-SMX: the segment, its ring and whoever writes it.
 * Sending is in um_smx_send.c. */
#ifndef UM_TRANSPORT_SMX_SMX_SRC_SESSION_H
#define UM_TRANSPORT_SMX_SMX_SRC_SESSION_H

#include "base/um_mem.h"
#include "transport/shm/um_shm_words.h"
#include "transport/smx/um_smx_ring.h"
#include "transport/session/um_src_batch.h"
#include "transport/session/um_src_numbers.h"
#include "transport/session/um_src_pool.h"

/* The writer belongs to whoever sends: general sends hold the session lock, callers of lbm_src_buff_acquire() and its
 * kin take turns and take the lock only to wait. The loop never touches it: when a sender was refused, it compares what
 * that sender left in `wanted` with the cursors of the receivers. */
struct um_smx_src_session {
    struct um_src_session base;  /* first */
    struct um_smx_writer writer; /* the sender */
    struct um_smx_want wanted;   /* lock: room that the sender refused last is waiting for */
    _Atomic uint64_t
        messages_reset; /* of writer.messages and .bytes, what statistics leave out since their last reset */
    _Atomic uint64_t bytes_reset;
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
    uint64_t window;                /* fixed: as asked for by the first source */
    struct um_timer activity_timer; /* [loop] session message: activity + 1 */
    struct um_timer watch_timer;    /* [loop] dead receivers */
    struct um_timer stall_timer;    /* [loop] armed while a refused sender waits for its WAKEUP */
};

static inline struct um_smx_src_session *um_smx_src_session_of(struct um_src_session *base)
{
    return UM_CONTAINER_OF(base, struct um_smx_src_session, base);
}

extern const struct um_src_session_ops um_smx_src_session_ops;

/* um_smx_send.c */
extern const struct um_src_takeover um_smx_takeover;
/* Have receivers made the room that the sender refused last waits for? Lock; the loop. */
bool um_smx_relieved(const struct um_src_session *base);
/* Frees the slots of dead receivers. Returns how many went. No lock; the loop, or a sender that the session waits for.
 */
unsigned um_smx_reap(struct um_smx_src_session *session);
void um_smx_tell_evictions(struct um_smx_src_session *session); /* [loop] no lock: log them */

static inline struct um_smx_writer *um_smx_writer_of(const struct um_src_stream *stream)
{
    return stream->writer;
}

static inline void um_smx_count_claim(struct um_smx_writer *writer, struct um_src_stream *stream, size_t len)
{
    um_src_numbers_take(stream, 1);
    um_src_count(stream, len);
    if (__builtin_expect(writer->counting, 0)) {
        um_smx_count(writer, 1, len + UM_SMX_RECORD_HEADER);
    }
}

#endif
