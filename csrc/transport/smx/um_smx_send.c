/* Sending on LBT-SMX: general sends under the session lock, buffers in shared
 * memory handed to the application, and waiting for slow receivers. The caller's
 * thread; no system call while there is room. */
#include "transport/smx/um_smx_src_session.h"

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_log.h"
#include "transport/shm/um_shm_spin.h"
#include "transport/session/um_src_parts.h"

#define DEATH_TEST_NS UM_NS_PER_MS
#define ROUNDS_PER_LOOK 256 /* of spinning on the slowest cursor between two scans */
#define RUN_PUBLISH 32u     /* messages of a run that are published together */

/* ---- receivers that do not advance ---- */

unsigned um_smx_reap(struct um_smx_src_session *session)
{
    unsigned gone = 0;
    if (!um_shm_claim(&session->reaping)) {
        return 0; /* somebody is at it */
    }
    for (uint32_t i = 0; i < session->segment.max_receivers; i++) {
        uint32_t pid = um_shm_slot_pid(&session->segment.slots[i]);
        if (um_shm_slot_reap(&session->segment, i)) {
            gone++;
            um_log_limited(um_log_of(session->segment.path), um_clock_ns(), UM_LOG_NOTICE, "Core-6976-145",
                           "LBT-SMX:%x:%u: receiver in process %u is gone: its slot is free",
                           session->segment.session_id, session->segment.transport_id, pid);
        }
    }
    um_shm_unclaim(&session->reaping);
    if (gone > 0) {
        atomic_fetch_add_explicit(&session->receivers_lost, gone, memory_order_relaxed);
        um_shm_reclaim_dead(UM_SHM_SMX); /* the control objects of their contexts */
    }
    return gone;
}

/* Lock. What a log callback does is its own affair: the loop tells, without the lock. */
static void note_evictions(struct um_smx_src_session *session)
{
    uint32_t more = session->writer.evicted - session->evictions_noted;
    if (more > 0) {
        session->evictions_noted += more;
        session->evictions_untold += more;
        atomic_fetch_add_explicit(&session->receivers_lost, more, memory_order_relaxed);
        um_loop_post(session->base.env->loop, &session->base.command);
    }
}

void um_smx_tell_evictions(struct um_smx_src_session *session)
{
    um_src_session_lock(&session->base);
    uint32_t count = session->evictions_untold;
    session->evictions_untold = 0;
    um_src_session_unlock(&session->base);
    if (count > 0) {
        um_log_limited(um_log_of(session->segment.path), um_clock_ns(), UM_LOG_ERR, "Core-6976-146",
                       "LBT-SMX:%x:%u: %u receivers wrote an impossible position and lost their slots",
                       session->segment.session_id, session->segment.transport_id, count);
    }
}

bool um_smx_relieved(const struct um_src_session *base)
{
    struct um_smx_src_session *session = um_smx_src_session_of((struct um_src_session *)base);
    if (!um_smx_has_room(&session->segment, &session->wanted)) {
        return false;
    }
    atomic_store_explicit(&session->blocked_by, 0, memory_order_relaxed);
    return true;
}

/* Until the slowest receiver has moved, for a while at most. No lock: the segment stays while the stream has waiters.
 */
static void spin_on_laggard(struct um_smx_src_session *session, int32_t laggard, struct um_shm_spin *spin)
{
    struct um_shm_slot *slot = laggard < 0 ? NULL : &session->segment.slots[laggard];
    uint64_t seen = slot == NULL ? 0 : atomic_load_explicit(&slot->read_pos, memory_order_relaxed);
    for (int i = 0; i < ROUNDS_PER_LOOK; i++) {
        um_shm_spin_once(spin);
        if (slot == NULL || atomic_load_explicit(&slot->read_pos, memory_order_relaxed) != seen ||
            atomic_load_explicit(&slot->in_use, memory_order_relaxed) == UM_SHM_SLOT_FREE) {
            return;
        }
    }
}

static int too_many(const struct um_smx_src_session *session, size_t len)
{
    return um_error(
        UM_EOP, "CoreApi-6976-3",
        "too many outstanding buffers: %llu bytes are acquired and not completed, no room for %zu more in a "
        "window of %llu; call lbm_src_buffs_complete first",
        (unsigned long long)(session->writer.claimed - session->writer.published), len,
        (unsigned long long)session->writer.ring_len);
}

/* Lock, given up between two looks. */
static int spin_for_room(struct um_smx_src_session *session, struct um_src_stream *stream, size_t len)
{
    struct um_shm_spin spin = {0};
    uint64_t begun_ns = um_clock_ns(), tested_ns = begun_ns;
    enum um_smx_claim room = UM_SMX_FULL;
    stream->waiters++;
    while (!(stream->special & UM_STREAM_CLOSING) && (room = um_smx_refill(&session->writer, len)) == UM_SMX_FULL) {
        int32_t laggard = session->writer.laggard;
        uint32_t pid = laggard < 0 ? 0 : um_shm_slot_pid(&session->segment.slots[laggard]);
        atomic_store_explicit(&session->blocked_by, pid, memory_order_relaxed);
        um_src_session_unlock(&session->base);
        spin_on_laggard(session, laggard, &spin);
        uint64_t now_ns = um_clock_ns();
        if (now_ns - tested_ns >= DEATH_TEST_NS) {
            um_smx_reap(session);
            tested_ns = now_ns;
        }
        um_src_session_lock(&session->base);
    }
    stream->waiters--;
    atomic_store_explicit(&session->blocked_by, 0, memory_order_relaxed);
    atomic_fetch_add_explicit(&session->blocked_ns, um_clock_ns() - begun_ns, memory_order_relaxed);
    note_evictions(session);
    if (stream->special & UM_STREAM_CLOSING) {
        um_condition_signal_all(&session->base.changed);
        return um_src_closing_error();
    }
    return room == UM_SMX_CLAIMED ? 0 : too_many(session, len);
}

/* Lock. The ring has no room by the last scan: look again, wait if that is allowed. */
static __attribute__((noinline)) int make_room(struct um_smx_src_session *session, struct um_src_stream *stream,
                                               size_t len, int flags, bool *waited)
{
    enum um_smx_claim room = um_smx_refill(&session->writer, len);
    if (room == UM_SMX_CLAIMED) {
        atomic_store_explicit(&session->blocked_by, 0, memory_order_relaxed);
        note_evictions(session);
        return 0;
    }
    if (room == UM_SMX_TOO_MANY) {
        return too_many(session, len);
    }
    if ((flags & LBM_SRC_NONBLOCK) || um_loop_in_family(session->base.env->loop)) {
        int32_t laggard = session->writer.laggard;
        uint32_t pid = laggard < 0 ? 0 : um_shm_slot_pid(&session->segment.slots[laggard]);
        atomic_store_explicit(&session->blocked_by, pid, memory_order_relaxed);
        session->wanted = um_smx_wanted(&session->writer);
        int rc = um_src_session_refuse(&session->base, stream);
        um_loop_post(session->base.env->loop, &session->base.command); /* arms the timer that looks for room */
        return rc;
    }
    *waited = true;
    return spin_for_room(session, stream, len);
}

static int too_long(const struct um_smx_src_session *session, size_t len)
{
    return um_error(UM_EINVAL, "CoreApi-6976-6",
                    "message of %zu bytes: LBT-SMX does not fragment, at most %u bytes fit "
                    "(transport_lbtsmx_datagram_max_size minus 16)",
                    len, session->writer.payload_max);
}

/* Lock. Room for one message whose payload the caller then writes; NULL + error. */
static inline uint8_t *claim(struct um_smx_src_session *session, struct um_src_stream *stream, size_t len, int flags,
                             bool *waited)
{
    if (unlikely(len > session->writer.payload_max)) {
        too_long(session, len);
        return NULL;
    }
    struct um_smx_record *record = um_smx_claim(&session->writer, len, stream->tidx, um_src_number_next(stream));
    if (unlikely(record == NULL)) {
        if (make_room(session, stream, len, flags, waited) != 0) {
            return NULL;
        }
        record = um_smx_claim(&session->writer, len, stream->tidx, um_src_number_next(stream));
    }
    um_smx_count_claim(&session->writer, stream, len);
    return record->payload;
}

/* ---- general sends: each message is published at once ---- */

static int closed_or(struct um_src_stream *stream)
{
    return stream->special & UM_STREAM_CLOSING ? um_src_closing_error() : 0;
}

static int send_plain(struct um_src_stream *stream, const void *data, size_t len, int flags, bool *waited)
{
    struct um_smx_src_session *session = um_smx_src_session_of(stream->session);
    int rc = -1;
    *waited = false;
    um_src_session_lock(&session->base);
    if (likely(closed_or(stream) == 0)) {
        uint8_t *out = claim(session, stream, len, flags, waited);
        if (likely(out != NULL)) {
            if (len > 0) {
                memcpy(out, data, len);
            }
            um_smx_publish(&session->writer);
            rc = 0;
        }
    }
    um_src_session_unlock(&session->base);
    return rc;
}

static void copy_pieces(uint8_t *out, const struct um_send *send)
{
    for (int i = 0; i < send->iovcnt; i++) {
        if (send->iov[i].iov_len > 0) {
            memcpy(out, send->iov[i].iov_base, send->iov[i].iov_len);
            out += send->iov[i].iov_len;
        }
    }
}

static int send_gathered(struct um_src_stream *stream, struct um_send *send)
{
    struct um_smx_src_session *session = um_smx_src_session_of(stream->session);
    int rc = -1;
    if (send->headers_len > 0) {
        return um_error(UM_EINVAL, "CoreApi-6976-69",
                        "send: LBT-SMX carries no requests, properties or application headers");
    }
    um_src_session_lock(&session->base);
    uint32_t before = um_src_number_next(stream);
    if (closed_or(stream) == 0 && (!send->brings_number || um_src_number_bring(stream, send->number) == 0)) {
        uint8_t *out = claim(session, stream, send->len, send->flags, &send->waited);
        if (out != NULL) {
            copy_pieces(out, send);
            send->first_sqn = send->last_sqn = um_src_number_last(stream);
            um_smx_publish(&session->writer);
            rc = 0;
        }
        if (send->brings_number) {
            um_src_number_settle(stream, send->number, before);
        }
    }
    um_src_session_unlock(&session->base);
    return rc;
}

/* Messages of a run are published in groups, and before anything that may wait. */
static int send_run(struct um_src_stream *stream, struct um_send_run *run)
{
    struct um_smx_src_session *session = um_smx_src_session_of(stream->session);
    struct um_smx_writer *writer = &session->writer;
    unsigned unpublished = 0;
    int rc = 0;
    um_src_session_lock(&session->base);
    while (run->sent < run->count && (rc = closed_or(stream)) == 0) {
        size_t len = run->lengths != NULL ? run->lengths[run->sent] : run->length;
        const uint8_t *data = run->base + (run->offsets != NULL ? run->offsets[run->sent] : run->sent * run->stride);
        if (unpublished++ >= RUN_PUBLISH || !um_smx_reaches(writer, UM_SMX_RECORD_SIZE(writer, len))) {
            um_smx_publish(writer);
            unpublished = 1;
        }
        uint8_t *out = claim(session, stream, len, run->flags, &run->waited);
        if (out == NULL) {
            rc = -1;
            break;
        }
        if (len > 0) {
            memcpy(out, data, len);
        }
        run->sent++;
    }
    um_smx_publish(writer);
    um_src_session_unlock(&session->base);
    return rc;
}

static void flush(struct um_src_stream *stream)
{
    struct um_smx_src_session *session = um_smx_src_session_of(stream->session);
    um_src_session_lock(&session->base);
    um_smx_publish(&session->writer);
    um_src_session_unlock(&session->base);
}

/* ---- buffers handed to the application; its callers take turns by themselves ---- */

static __attribute__((noinline)) int acquire_slowly(struct um_src_stream *stream, void **buffer, size_t len, int flags,
                                                    const char *call)
{
    struct um_smx_src_session *session = um_smx_src_session_of(stream->session);
    bool waited = false;
    um_src_session_lock(&session->base);
    uint8_t *out = closed_or(stream) == 0 ? claim(session, stream, len, flags, &waited) : NULL;
    um_src_session_unlock(&session->base);
    *buffer = out;
    if (out == NULL && um_errnum() == UM_EWOULDBLOCK) {
        stream->events->on_no_buffer(stream, flags, call);
    }
    return out != NULL ? 0 : -1;
}

static inline __attribute__((always_inline)) int acquire_from(struct um_smx_writer *writer,
                                                              struct um_src_stream *stream, void **buffer, size_t len,
                                                              int flags, const char *call)
{
    uint64_t size = UM_SMX_RECORD_SIZE(writer, len);
    if (likely(len <= writer->payload_max && um_smx_reaches(writer, size))) {
        *buffer = um_smx_claim_reached(writer, size, len, stream->tidx, um_src_number_next(stream))->payload;
        um_smx_count_claim(writer, stream, len);
        return 0;
    }
    return acquire_slowly(stream, buffer, len, flags, call);
}

static int acquire(struct um_src_stream *stream, void **buffer, size_t len, int flags)
{
    return acquire_from(um_smx_writer_of(stream), stream, buffer, len, flags, "lbm_src_buff_acquire");
}

static void complete(struct um_src_stream *stream)
{
    um_smx_publish(um_smx_writer_of(stream));
}

static int complete_and_acquire(struct um_src_stream *stream, void **buffer, size_t len, int flags)
{
    struct um_smx_writer *writer = um_smx_writer_of(stream);
    um_smx_publish(writer);
    return acquire_from(writer, stream, buffer, len, flags, "lbm_src_buffs_complete_and_acquire");
}

static void cancel(struct um_src_stream *stream)
{
    struct um_smx_writer *writer = um_smx_writer_of(stream);
    uint64_t bytes;
    uint32_t count = um_smx_cancel(writer, stream->tidx, &bytes);
    um_src_numbers_give_back(stream, count);
    atomic_fetch_sub_explicit(&stream->messages_sent, count, memory_order_relaxed);
    atomic_fetch_sub_explicit(&stream->bytes_sent, bytes, memory_order_relaxed);
    if (writer->counting) {
        um_smx_count(writer, -(uint64_t)count, -(bytes + (uint64_t)count * UM_SMX_RECORD_HEADER));
    }
}

static const struct um_src_buffers buffers = {
    .acquire = acquire, .complete = complete, .complete_and_acquire = complete_and_acquire, .cancel = cancel};

const struct um_src_takeover um_smx_takeover = {
    .send = send_gathered, .send_plain = send_plain, .send_run = send_run, .flush = flush, .buffers = &buffers};
