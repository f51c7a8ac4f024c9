/* Sending on a stream: the fast paths of small messages, with and without elements
 * beside the payload, messages with headers or of several fragments, and runs of
 * many. The caller's thread, under the session lock, down to the system call. */
#include <limits.h>
#include <string.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "transport/session/um_src_message.h"
#include "transport/session/um_src_numbers.h"
#include "transport/session/um_src_parts.h"

#define UM_RUN_ROUND 1024u /* messages of a run that enter the batch under one lock */

static int send_fragments(struct um_src_session *session, struct um_src_stream *stream, struct um_send *send,
                          struct um_record_plan *plan, size_t size, bool may_wait)
{
    struct um_gather from = {send->iov, 0};
    uint16_t marks = plan->batch_flags;
    uint32_t count = (uint32_t)((send->len + size - 1) / size);
    int rc = 0;
    plan->fragmented = true;
    plan->first_sqn = um_src_number_next(stream);
    send->last_sqn = send->first_sqn + count - 1;
    stream->special |= UM_STREAM_IN_MESSAGE;
    session->open_messages++;
    um_src_collect(session);
    for (uint32_t k = 0; k < count && rc == 0; k++) {
        size_t len = send->len - plan->offset < size ? send->len - plan->offset : size;
        bool last = k + 1 == count;
        if (k > 0 && may_wait && um_src_session_blocked(session)) {
            um_src_push(session);
            send->waited = true;
            rc = um_src_wait_turn(session, stream, true);
            if (rc != 0) {
                break;
            }
            um_src_collect(session);
        }
        plan->batch_flags = (k == 0 ? marks & UM_LBMC_BATCH_START : 0) | (last ? marks & UM_LBMC_BATCH_END : 0);
        size_t headers = um_record_headers_len(plan);
        uint8_t *out = um_src_batch_reserve(session, stream->tidx, headers + len);
        if (out == NULL) {
            rc = -1;
            break;
        }
        bool was_empty = out == session->batch->data;
        uint32_t sqn = um_src_numbers_take(stream, 1);
        um_record_write(out, plan, sqn, &from, len);
        um_src_keep(stream, sqn, out, headers, headers + len);
        stream->last_data_ns = session->batch_start_ns;
        plan->offset += (uint32_t)len;
        if (last) {
            session->open_messages--;
        }
        um_src_batch_added(session, len, was_empty, last && (send->flags & LBM_MSG_FLUSH));
    }
    um_src_push(session);
    if (plan->offset < send->len) { /* cut off: its remaining numbers are never sent, so receivers report the loss */
        session->open_messages--;
        um_src_numbers_take(stream, send->last_sqn - um_src_number_last(stream));
    }
    stream->special &= ~(unsigned)UM_STREAM_IN_MESSAGE;
    um_src_wake_waiters(session);
    um_src_session_relieve(session); /* a send refused because of this message gets its WAKEUP */
    return rc;
}

int um_src_send_now(struct um_src_session *session, struct um_src_stream *stream, struct um_send *send, uint16_t marks)
{
    struct um_record_plan plan = {.send = send, .tidx = stream->tidx, .batch_flags = marks};
    size_t whole_max;
    size_t size = um_fragment_size(session, send, marks != 0, &whole_max);
    if (size == 0) {
        return -1;
    }
    send->first_sqn = send->last_sqn = um_src_number_next(stream);
    if (send->len > whole_max) {
        bool may_wait =
            !(send->flags & LBM_SRC_NONBLOCK) && !send->unconditional && !um_loop_in_family(session->env->loop);
        return send_fragments(session, stream, send, &plan, size, may_wait);
    }
    size_t headers = um_record_headers_len(&plan);
    uint8_t *out = um_src_batch_reserve(session, stream->tidx, headers + send->len);
    if (out == NULL) {
        return -1;
    }
    bool was_empty = out == session->batch->data;
    struct um_gather from = {send->iov, 0};
    um_record_write(out, &plan, um_src_numbers_take(stream, 1), &from, send->len);
    um_src_keep(stream, send->first_sqn, out, headers, headers + send->len);
    stream->last_data_ns = session->batch_start_ns;
    session->flush_at += send->beside_len;
    um_src_batch_added(session, send->len, was_empty, send->flags & LBM_MSG_FLUSH);
    return 0;
}

/* Lock; admitted. A number that is brought and not used is none. */
static int send_admitted(struct um_src_session *session, struct um_src_stream *stream, struct um_send *send)
{
    bool explicit = (stream->special & UM_STREAM_EXPLICIT_BATCH) || (send->flags & LBM_MSG_COMPLETE_BATCH);
    uint32_t before = um_src_number_next(stream);
    if (send->brings_number && um_src_number_bring(stream, send->number) != 0) {
        return -1;
    }
    int rc = explicit ? um_src_send_explicit(session, stream, send) : um_src_send_now(session, stream, send, 0);
    if (send->brings_number) {
        um_src_number_settle(stream, send->number, before);
    }
    return rc;
}

static __attribute__((noinline)) int send_slow(struct um_src_stream *stream, struct um_send *send)
{
    struct um_src_session *session = stream->session;
    if (session == NULL) {
        return um_src_closing_error();
    }
    if (send->len > INT32_MAX) {
        return um_error(UM_EINVAL, "CoreApi-5688-3236", "send: length %zu: must be at most %d bytes", send->len,
                        INT32_MAX);
    }
    send->waited = false;
    if (session->ops->takeover != NULL) {
        return session->ops->takeover->send(stream, send);
    }
    um_src_session_lock(session);
    int rc = um_src_session_admitted(session, stream, send);
    if (rc == 0) {
        if (stream->special & UM_STREAM_TSNI_QUIET) {
            um_src_tsni_resume(session, stream);
        }
        rc = send_admitted(session, stream, send);
        if (rc == 0) {
            um_src_count(stream, send->len);
        }
    }
    um_src_session_unlock(session);
    return rc;
}

static __attribute__((noinline)) int send_plain_slow(struct um_src_stream *stream, const void *data, size_t len,
                                                     int flags, bool *waited)
{
    if (stream->session != NULL && stream->session->ops->takeover != NULL) {
        return stream->session->ops->takeover->send_plain(stream, data, len, flags, waited);
    }
    struct iovec iov = {(void *)data, len};
    struct um_send send = {.iov = &iov, .iovcnt = 1, .len = len, .flags = flags};
    int rc = send_slow(stream, &send);
    *waited = send.waited;
    return rc;
}

static inline __attribute__((always_inline)) void put_parts(uint8_t *out, const struct um_src_parts *parts)
{
    if (parts->chain_len == UM_CHAIN_SINGLE_U32) {
        memcpy(out, parts->chain, UM_CHAIN_SINGLE_U32); /* of known length: without a call */
    } else if (parts->chain_len > 0) {
        memcpy(out, parts->chain, parts->chain_len);
    }
    out += parts->chain_len;
    if (parts->len > 0) {
        memcpy(out, parts->data, parts->len);
        out += parts->len;
    }
    if (parts->behind_len > 0) {
        memcpy(out, parts->behind, parts->behind_len);
    }
}

/* Lock. The message goes into the batch, which has room for it. Its number. */
static inline __attribute__((always_inline)) uint32_t append(struct um_src_session *session,
                                                             struct um_src_stream *stream,
                                                             const struct um_src_parts *parts, bool flush, bool keep)
{
    struct um_datagram *batch = session->batch;
    size_t len = parts->len + parts->behind_len, headers = UM_LBMC_DATA_HDR_LEN + parts->chain_len;
    size_t total = headers + len;
    uint8_t *out = batch->data + batch->len;
    bool was_empty = batch->len == 0;
    if (was_empty) {
        session->batch_start_ns = um_clock_ns();
    }
    uint32_t sqn = um_src_numbers_take(stream, 1);
    um_lbmc_put_data_hdr(out, parts->chain_len > 0 ? UM_LBMC_HDR_APPHDR_CHAIN : UM_LBMC_HDR_DATA, (uint16_t)total,
                         stream->tidx, sqn);
    put_parts(out + UM_LBMC_DATA_HDR_LEN, parts);
    if (keep) {
        um_src_keep(stream, sqn, out, headers, total);
    }
    batch->len += (uint32_t)total;
    stream->last_data_ns = session->batch_start_ns;
    session->batch_user_bytes += len;
    session->flush_at += parts->beside_len;
    um_src_count(stream, len);
    if (flush || session->batch_user_bytes >= session->flush_at) {
        session->sent_ns = was_empty ? session->batch_start_ns : 0;
        if (flush) {
            um_src_session_flush(session);
        } else {
            um_src_batch_full(session);
        }
        session->sent_ns = 0;
    } else if (unlikely(was_empty)) {
        um_src_batch_added(session, 0, true, false);
    }
    return sqn;
}

static inline bool has_room(const struct um_src_session *session, size_t total)
{
    const struct um_datagram *batch = session->batch;
    return !um_src_session_blocked(session) && batch != NULL && batch->len + total <= session->datagram_max;
}

/* The fast path of a stream whose messages are kept. False: it is special otherwise, or does not fit. */
static __attribute__((noinline)) bool append_special(struct um_src_session *session, struct um_src_stream *stream,
                                                     const void *data, size_t len, bool flush)
{
    if (stream->special != UM_STREAM_KEPT || !has_room(session, UM_LBMC_DATA_HDR_LEN + len)) {
        return false;
    }
    append(session, stream, &(struct um_src_parts){.data = data, .len = len}, flush, true);
    return true;
}

/* Lock; the message is short enough to go in one piece. False: it does not fit the fast path now. */
static inline bool append_plain(struct um_src_session *session, struct um_src_stream *stream, const void *data,
                                size_t len, bool flush)
{
    const struct um_datagram *batch = session->batch;
    if (unlikely(stream->special != 0 || um_src_session_blocked(session) || batch == NULL ||
                 batch->len + UM_LBMC_DATA_HDR_LEN + len >
                     session->datagram_max)) { /* has_room(), spelled out: faster */
        return append_special(session, stream, data, len, flush);
    }
    append(session, stream, &(struct um_src_parts){.data = data, .len = len}, flush, false);
    return true;
}

int um_src_stream_send_plain(struct um_src_stream *stream, const void *data, size_t len, int flags, bool *waited)
{
    struct um_src_session *session = stream->session;
    if (unlikely(session == NULL || (flags & LBM_MSG_COMPLETE_BATCH) || len >= session->plain_end)) {
        return send_plain_slow(stream, data, len, flags, waited);
    }
    um_src_session_lock(session);
    bool done = append_plain(session, stream, data, len, flags & LBM_MSG_FLUSH);
    um_src_session_unlock(session);
    if (unlikely(!done)) {
        return send_plain_slow(stream, data, len, flags, waited);
    }
    *waited = false;
    return 0;
}

/* In one datagram, also with what a fragment of it would have; and now. */
static inline bool has_room_for(const struct um_src_session *session, const struct um_src_stream *stream,
                                const struct um_src_parts *parts)
{
    size_t len = parts->len + parts->behind_len, headers = UM_LBMC_DATA_HDR_LEN + parts->chain_len;
    return len < session->plain_end && headers + UM_LBMC_FRAG_HDR_LEN + len <= session->datagram_max &&
           (stream->special & ~(unsigned)UM_STREAM_KEPT) == 0 && has_room(session, headers + len);
}

static inline bool send_parts(struct um_src_stream *stream, const struct um_src_parts *parts, int flags, uint32_t *sqn)
{
    struct um_src_session *session = stream->session;
    if (unlikely(session == NULL || (flags & LBM_MSG_COMPLETE_BATCH) || session->plain_end == 0)) {
        return false;
    }
    um_src_session_lock(session);
    bool room = has_room_for(session, stream, parts);
    if (likely(room)) {
        *sqn = append(session, stream, parts, flags & LBM_MSG_FLUSH, true);
    }
    um_src_session_unlock(session);
    return room;
}

/* One element before the payload: the length of the headers is known where this is compiled. */
static inline __attribute__((always_inline)) bool send_single(struct um_src_stream *stream,
                                                              const struct um_src_parts *parts, int flags)
{
    struct um_src_session *session = stream->session;
    if (unlikely(session == NULL || (flags & LBM_MSG_COMPLETE_BATCH) || parts->len >= session->plain_end)) {
        return false;
    }
    um_src_session_lock(session);
    bool room = has_room_for(session, stream, parts);
    if (likely(room)) {
        append(session, stream, parts, flags & LBM_MSG_FLUSH, true);
    }
    um_src_session_unlock(session);
    return room;
}

bool um_src_stream_send_single(struct um_src_stream *stream, const uint8_t chain[UM_CHAIN_SINGLE_U32], const void *data,
                               size_t len, int flags)
{
    const struct um_src_parts parts = {.chain = chain, .chain_len = UM_CHAIN_SINGLE_U32, .data = data, .len = len};
    return send_single(stream, &parts, flags);
}

bool um_src_stream_send_beside(struct um_src_stream *stream, const uint8_t chain[UM_CHAIN_SINGLE_U32],
                               struct um_slice data, struct um_slice beside, int flags)
{
    const struct um_src_parts parts = {.chain = chain,
                                       .chain_len = UM_CHAIN_SINGLE_U32,
                                       .data = data.ptr,
                                       .len = data.len,
                                       .behind = beside.ptr,
                                       .behind_len = beside.len,
                                       .beside_len = data.len > 0 ? beside.len : 0};
    return send_single(stream, &parts, flags);
}

bool um_src_stream_send_parts(struct um_src_stream *stream, const struct um_src_parts *parts, int flags)
{
    uint32_t sqn;
    return send_parts(stream, parts, flags, &sqn);
}

int um_src_stream_send(struct um_src_stream *stream, struct um_send *send)
{
    const struct iovec *iov = send->iov;
    if (send->headers_len == 0 && !send->brings_number && (send->iovcnt == 1 || send->iovcnt == 2)) {
        const struct um_src_parts parts = {.chain = send->chain,
                                           .chain_len = send->chain_len,
                                           .data = iov[0].iov_base,
                                           .len = iov[0].iov_len,
                                           .behind = send->iovcnt == 2 ? iov[1].iov_base : NULL,
                                           .behind_len = send->iovcnt == 2 ? iov[1].iov_len : 0,
                                           .beside_len = send->beside_len};
        if (send_parts(stream, &parts, send->flags, &send->first_sqn)) {
            send->last_sqn = send->first_sqn;
            send->waited = false;
            return 0;
        }
    }
    return send_slow(stream, send);
}

/* Deleting the source waits for the run, whose next message then fails. */
static void run_begins(struct um_src_session *session, struct um_src_stream *stream)
{
    um_src_session_lock(session);
    stream->waiters++;
    um_src_session_unlock(session);
}

static void run_ends(struct um_src_session *session, struct um_src_stream *stream)
{
    um_src_session_lock(session);
    stream->waiters--;
    if (stream->special & UM_STREAM_CLOSING) {
        um_condition_signal_all(&session->changed);
    }
    um_src_session_unlock(session);
}

static inline const uint8_t *run_data(const struct um_send_run *run, size_t i)
{
    return run->base + (run->offsets != NULL ? run->offsets[i] : i * run->stride);
}

static inline size_t run_length(const struct um_send_run *run, size_t i)
{
    return run->lengths != NULL ? run->lengths[i] : run->length;
}

/* What can go by the fast path, under one lock; between two rounds other threads and the loop have their turn. */
static void run_fast(struct um_src_session *session, struct um_src_stream *stream, struct um_send_run *run)
{
    size_t end = run->count - run->sent > UM_RUN_ROUND ? run->sent + UM_RUN_ROUND : run->count;
    um_src_session_lock(session);
    um_src_collect(session);
    while (run->sent < end) {
        size_t len = run_length(run, run->sent);
        bool flush = (run->flags & LBM_MSG_FLUSH) && run->sent + 1 == run->count;
        if (len >= session->plain_end || !append_plain(session, stream, run_data(run, run->sent), len, flush)) {
            break;
        }
        run->sent++;
    }
    um_src_push(session);
    um_src_session_unlock(session);
}

/* The next one by the path that can wait, fragment, hold or fail. */
static int run_slow(struct um_src_stream *stream, struct um_send_run *run)
{
    int flags = run->flags;
    bool waited;
    flags &= run->sent == 0 ? ~0 : ~LBM_MSG_START_BATCH;
    flags &= run->sent + 1 == run->count ? ~0 : ~(LBM_MSG_END_BATCH | LBM_MSG_FLUSH);
    int rc = send_plain_slow(stream, run_data(run, run->sent), run_length(run, run->sent), flags, &waited);
    run->waited |= waited;
    run->sent += rc == 0;
    return rc;
}

int um_src_stream_send_run(struct um_src_stream *stream, struct um_send_run *run)
{
    struct um_src_session *session = stream->session;
    bool marked = run->flags & LBM_MSG_COMPLETE_BATCH;
    int rc = 0;
    run->sent = 0;
    run->waited = false;
    if (session == NULL) {
        return um_src_closing_error();
    }
    if (session->ops->takeover != NULL) {
        return session->ops->takeover->send_run(stream, run);
    }
    run_begins(session, stream);
    while (run->sent < run->count && rc == 0) {
        size_t before = run->sent;
        if (!marked) {
            run_fast(session, stream, run);
        }
        if (run->sent - before < UM_RUN_ROUND && run->sent < run->count) {
            rc = run_slow(stream, run);
        }
    }
    run_ends(session, stream);
    return rc;
}

void um_src_stream_flush(struct um_src_stream *stream)
{
    struct um_src_session *session = stream->session;
    if (session->ops->takeover != NULL) {
        session->ops->takeover->flush(stream);
        return;
    }
    um_src_session_lock(session);
    um_src_release_held(session, stream);
    um_src_session_flush(session);
    um_src_session_unlock(session);
}
