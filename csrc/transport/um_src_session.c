/* Batching, fragmentation, explicit batches and the TSNI schedule of a source
 * session, whatever the transport below. Sends run in the caller's thread under
 * the session lock; timers and the session's command run on the loop. */
#include "transport/um_src_batch.h"

#include <limits.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"

#define UM_HEADER_RESERVE 326u /* fixed worst case subtracted without dynamic_fragmentation_reduction */
#define UM_INTERVAL_MIN_NS (3 * UM_NS_PER_MS)
#define UM_ADAPTIVE_IDLE_NS UM_NS_PER_MS
#define UM_TIMER_SLACK_NS 100000u  /* fire rather than re-arm for less than this */
#define UM_COALESCE_NS 20000u      /* a full batch joins the next one when the last went out less than this ago */
#define UM_COALESCE_MIN_LENGTH 64u /* implicit_batching_minimum_length below this asks for no batching at all */
#define UM_DRAIN_NS UM_NS_PER_MS
#define UM_RUN_ROUND 1024u /* messages of a run that enter the batch under one lock */

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* A message held by an explicit batch: one ready-made LBMC message. */
struct um_held {
    struct um_list node;
    size_t len, user_len;
    int open_change; /* +1: first of several fragments, -1: last of them */
    uint8_t data[];
};

/* Reads the payload of a send piece by piece. */
struct um_gather {
    const struct iovec *iov;
    size_t skip;
};

/* The optional headers of one LBMC message. */
struct um_record_plan {
    const struct um_send *send;
    uint32_t tidx;
    uint16_t batch_flags; /* wire bits; 0 = no BATCH header */
    bool fragmented;
    uint32_t first_sqn, offset;
};

/* ---- batch buffers ---- */

struct um_datagram *um_datagram_get(struct um_src_session *session)
{
    struct um_datagram *datagram = session->free_list;
    if (datagram != NULL) {
        session->free_list = datagram->next_free;
        session->free_count--;
    } else {
        datagram = um_malloc(sizeof *datagram + session->datagram_max);
        if (datagram == NULL) {
            return NULL;
        }
    }
    datagram->refs = 1;
    datagram->len = 0;
    datagram->continues = false;
    datagram->compact = false;
    return datagram;
}

struct um_datagram *um_datagram_copy(const struct um_datagram *datagram)
{
    struct um_datagram *copy = um_malloc(sizeof *copy + datagram->len);
    if (copy != NULL) {
        memcpy(copy, datagram, sizeof *copy + datagram->len);
        copy->refs = 1;
        copy->compact = true;
    }
    return copy;
}

void um_datagram_unref(struct um_src_session *session, struct um_datagram *datagram)
{
    if (--datagram->refs > 0) {
        return;
    }
    if (datagram->compact || session->free_count >= UM_DATAGRAMS_KEPT) {
        um_free(datagram);
        return;
    }
    datagram->next_free = session->free_list;
    session->free_list = datagram;
    session->free_count++;
}

static void request_timer(struct um_src_session *session)
{
    if (!session->timer_wanted) {
        session->timer_wanted = true;
        um_loop_post(session->env->loop, &session->command);
    }
}

static void flush_at_time(struct um_src_session *session, uint64_t now_ns)
{
    struct um_datagram *datagram = session->batch;
    datagram->continues = session->open_messages > 0;
    session->batch = NULL;
    session->batch_user_bytes = 0;
    session->flush_at = session->minimum_length;
    session->last_transmit_ns = now_ns;
    session->ops->transmit(session, datagram);
    session->batch = um_datagram_get(session);
}

/* No clock is read: the start of the batch is near enough for a message that is flushed at once. */
void um_src_session_flush(struct um_src_session *session)
{
    if (session->batch != NULL && session->batch->len > 0) {
        flush_at_time(session, session->batch_start_ns);
    }
}

/* The batch is full. Under load, when the last one has only just gone out, it goes on growing: one system call then
 * carries many batches. Whatever is kept back leaves with a later send or with the drain timer. */
static __attribute__((noinline)) void batch_full(struct um_src_session *session)
{
    uint64_t now = um_clock_ns();
    if (session->batch->len >= session->coalesce_max || session->minimum_length < UM_COALESCE_MIN_LENGTH ||
        now - session->last_transmit_ns >= UM_COALESCE_NS) {
        flush_at_time(session, now);
        return;
    }
    session->flush_at = session->batch_user_bytes + session->minimum_length;
    session->held_since_tick = true;
    if (!session->drain_wanted) {
        session->drain_wanted = true;
        um_loop_post(session->env->loop, &session->command);
    }
}

/* Room for one LBMC message in the batch; what does not fit behind the present contents goes out first. */
static uint8_t *batch_reserve(struct um_src_session *session, size_t len)
{
    if (session->batch != NULL && session->batch->len + len > session->datagram_max) {
        um_src_session_flush(session);
    }
    if (session->batch == NULL) {
        session->batch = um_datagram_get(session);
        if (session->batch == NULL) {
            return NULL;
        }
    }
    if (session->batch->len == 0) {
        session->batch_start_ns = um_clock_ns();
    }
    uint8_t *out = session->batch->data + session->batch->len;
    session->batch->len += (uint32_t)len;
    return out;
}

/* Adaptive: a message into an empty buffer leaves at once when the session was idle. */
static bool adaptive_flush(const struct um_src_session *session, bool was_empty)
{
    return session->adaptive && was_empty && !session->blocked &&
           session->batch_start_ns - session->last_transmit_ns > UM_ADAPTIVE_IDLE_NS;
}

static void batch_added(struct um_src_session *session, size_t user_len, bool was_empty, bool flush)
{
    session->batch_user_bytes += user_len;
    if (flush || adaptive_flush(session, was_empty)) {
        um_src_session_flush(session);
    } else if (session->batch_user_bytes >= session->flush_at) {
        batch_full(session);
    } else if (was_empty) {
        request_timer(session);
    }
}

/* ---- one LBMC message ---- */

static void gather(struct um_gather *from, uint8_t *to, size_t len)
{
    while (len > 0) {
        size_t part = from->iov->iov_len - from->skip;
        if (part > len) {
            part = len;
        }
        if (part > 0) {
            memcpy(to, (const uint8_t *)from->iov->iov_base + from->skip, part);
        }
        to += part;
        len -= part;
        from->skip += part;
        if (from->skip == from->iov->iov_len) {
            from->iov++;
            from->skip = 0;
        }
    }
}

static size_t record_headers_len(const struct um_record_plan *plan)
{
    return UM_LBMC_DATA_HDR_LEN + plan->send->headers_len + (plan->batch_flags != 0 ? 4 : 0) +
           (plan->fragmented ? UM_LBMC_FRAG_HDR_LEN : 0);
}

static void record_write(uint8_t *out, const struct um_record_plan *plan, uint32_t sqn, struct um_gather *from,
                         size_t len)
{
    const struct um_send *send = plan->send;
    uint8_t chain = send->headers_len > 0 ? send->first_header : UM_LBMC_HDR_DATA;
    uint8_t after_batch = plan->fragmented ? UM_LBMC_HDR_FRAG : chain;
    uint8_t first = plan->batch_flags != 0 ? UM_LBMC_HDR_BATCH : after_batch;
    um_lbmc_put_data_hdr(out, first, (uint16_t)(record_headers_len(plan) + len), plan->tidx, sqn);
    out += UM_LBMC_DATA_HDR_LEN;
    if (plan->batch_flags != 0) {
        out += um_lbmc_put_batch(out, after_batch, plan->batch_flags);
    }
    if (plan->fragmented) {
        out += um_lbmc_put_frag(out, chain, plan->first_sqn, plan->offset, (uint32_t)send->len);
    }
    if (send->headers_len > 0) {
        memcpy(out, send->headers, send->headers_len);
        out += send->headers_len;
    }
    gather(from, out, len);
}

/* User bytes per fragment; *whole_max: the longest message that needs no fragments. 0 when the headers leave no room.
 */
static size_t fragment_size(const struct um_src_session *session, const struct um_send *send, bool marked,
                            size_t *whole_max)
{
    size_t headers = UM_LBMC_DATA_HDR_LEN + send->headers_len + (marked ? 4 : 0);
    if (headers + UM_LBMC_FRAG_HDR_LEN >= session->datagram_max) {
        return 0;
    }
    size_t size = session->datagram_max - headers - UM_LBMC_FRAG_HDR_LEN;
    if (session->dynamic_reduction) {
        *whole_max = session->datagram_max - headers;
        return size;
    }
    if (size > session->datagram_max - UM_HEADER_RESERVE) {
        size = session->datagram_max - UM_HEADER_RESERVE;
    }
    *whole_max = size;
    return size;
}

/* ---- waiting ---- */

static void wait_for_change(struct um_src_session *session, struct um_src_stream *stream)
{
    session->waiters++;
    stream->waiters++;
    if (session->polling) {
        um_condition_wait(&session->changed, &session->lock);
    } else {
        session->polling = true;
        session->ops->wait(session);
        session->polling = false;
        um_condition_signal_all(&session->changed); /* another waiting thread takes over the polling */
    }
    stream->waiters--;
    session->waiters--;
    if (stream->special & UM_STREAM_CLOSING) {
        um_condition_signal_all(&session->changed);
    }
}

static void wake_waiters(struct um_src_session *session)
{
    if (session->waiters > 0) {
        um_condition_signal_all(&session->changed);
        if (session->polling) {
            session->ops->interrupt(session);
        }
    }
}

void um_src_session_relieve(struct um_src_session *session)
{
    if ((session->waiters == 0 && !session->wakeups_wanted) || !session->ops->relieved(session)) {
        return;
    }
    wake_waiters(session);
    if (session->wakeups_wanted) {
        session->wakeups_due = true;
        um_loop_post(session->env->loop, &session->command);
    }
}

static int refuse(struct um_src_session *session, struct um_src_stream *stream)
{
    stream->wakeup_wanted = true;
    session->wakeups_wanted = true;
    return um_error(UM_EWOULDBLOCK, "CoreApi-5688-3232",
                    "send would block: a receiver of the session is slow (transport_session_maximum_buffer); "
                    "wait for the wakeup event, or send without LBM_SRC_NONBLOCK outside of callbacks");
}

static int closing_error(void)
{
    return um_error(UM_EINVAL, "CoreApi-5688-3233", "send: the source was deleted while the call waited");
}

/* Wait until `blocked` is over, and until no other thread is inside a message of this stream. Lock. */
static int wait_turn(struct um_src_session *session, struct um_src_stream *stream, bool own_message)
{
    unsigned others = own_message ? 0 : UM_STREAM_IN_MESSAGE;
    bool was_blocked = session->blocked;
    while (!(stream->special & UM_STREAM_CLOSING)) {
        bool held_up = was_blocked ? !session->ops->relieved(session) : session->blocked;
        if (!held_up && !(stream->special & others)) {
            break;
        }
        was_blocked |= session->blocked;
        wait_for_change(session, stream);
    }
    if (session->waiters == 0) {
        session->ops->resume(session);
    }
    return stream->special & UM_STREAM_CLOSING ? closing_error() : 0;
}

static int admit(struct um_src_session *session, struct um_src_stream *stream, struct um_send *send)
{
    if (stream->special & UM_STREAM_CLOSING) {
        return closing_error();
    }
    if ((!session->blocked || send->unconditional) && !(stream->special & UM_STREAM_IN_MESSAGE)) {
        return 0;
    }
    if ((send->flags & LBM_SRC_NONBLOCK) || um_loop_on_thread(session->env->loop)) {
        return refuse(session, stream);
    }
    send->waited = true;
    return wait_turn(session, stream, false);
}

/* ---- sending ---- */

static int send_fragments(struct um_src_session *session, struct um_src_stream *stream, struct um_send *send,
                          struct um_record_plan *plan, size_t size, bool may_wait)
{
    struct um_gather from = {send->iov, 0};
    uint16_t marks = plan->batch_flags;
    uint32_t count = (uint32_t)((send->len + size - 1) / size);
    int rc = 0;
    plan->fragmented = true;
    plan->first_sqn = stream->next_sqn;
    send->last_sqn = send->first_sqn + count - 1;
    stream->special |= UM_STREAM_IN_MESSAGE;
    session->open_messages++;
    for (uint32_t k = 0; k < count && rc == 0; k++) {
        size_t len = send->len - plan->offset < size ? send->len - plan->offset : size;
        bool last = k + 1 == count;
        if (k > 0 && may_wait && session->blocked) {
            send->waited = true;
            rc = wait_turn(session, stream, true);
            if (rc != 0) {
                break;
            }
        }
        plan->batch_flags = (k == 0 ? marks & UM_LBMC_BATCH_START : 0) | (last ? marks & UM_LBMC_BATCH_END : 0);
        uint8_t *out = batch_reserve(session, record_headers_len(plan) + len);
        if (out == NULL) {
            rc = um_error_nomem("send: batch buffer", session->datagram_max);
            break;
        }
        bool was_empty = out == session->batch->data;
        record_write(out, plan, stream->next_sqn++, &from, len);
        stream->last_data_ns = session->batch_start_ns;
        plan->offset += (uint32_t)len;
        if (last) {
            session->open_messages--;
        }
        batch_added(session, len, was_empty, last && (send->flags & LBM_MSG_FLUSH));
    }
    if (plan->offset < send->len) { /* cut off: its remaining numbers are never sent, so receivers report the loss */
        session->open_messages--;
        stream->next_sqn = send->last_sqn + 1;
    }
    stream->special &= ~(unsigned)UM_STREAM_IN_MESSAGE;
    wake_waiters(session);
    um_src_session_relieve(session); /* a send refused because of this message gets its WAKEUP */
    return rc;
}

static int send_now(struct um_src_session *session, struct um_src_stream *stream, struct um_send *send, uint16_t marks)
{
    struct um_record_plan plan = {.send = send, .tidx = stream->tidx, .batch_flags = marks};
    size_t whole_max;
    size_t size = fragment_size(session, send, marks != 0, &whole_max);
    if (size == 0) {
        return um_error(UM_EINVAL, "CoreApi-5688-3234",
                        "send: %zu bytes of message headers do not fit a datagram of %zu bytes "
                        "(transport_tcp_datagram_max_size)",
                        send->headers_len, session->datagram_max);
    }
    send->first_sqn = send->last_sqn = stream->next_sqn;
    if (send->len > whole_max) {
        bool may_wait =
            !(send->flags & LBM_SRC_NONBLOCK) && !send->unconditional && !um_loop_on_thread(session->env->loop);
        return send_fragments(session, stream, send, &plan, size, may_wait);
    }
    uint8_t *out = batch_reserve(session, record_headers_len(&plan) + send->len);
    if (out == NULL) {
        return um_error_nomem("send: batch buffer", session->datagram_max);
    }
    bool was_empty = out == session->batch->data;
    struct um_gather from = {send->iov, 0};
    record_write(out, &plan, stream->next_sqn++, &from, send->len);
    stream->last_data_ns = session->batch_start_ns;
    batch_added(session, send->len, was_empty, send->flags & LBM_MSG_FLUSH);
    return 0;
}

/* ---- explicit batches ---- */

static void free_held(struct um_list *list)
{
    struct um_list *node;
    while ((node = um_list_first(list)) != NULL) {
        um_list_remove(node);
        um_free(UM_CONTAINER_OF(node, struct um_held, node));
    }
}

/* Form the LBMC messages now (their numbers are fixed by this), keep them until the batch ends. */
static int hold(struct um_src_session *session, struct um_src_stream *stream, struct um_send *send, uint16_t marks)
{
    struct um_record_plan plan = {.send = send, .tidx = stream->tidx};
    struct um_gather from = {send->iov, 0};
    struct um_list made;
    size_t whole_max;
    size_t size = fragment_size(session, send, marks != 0, &whole_max);
    if (size == 0) {
        return um_error(UM_EINVAL, "CoreApi-5688-3234",
                        "send: %zu bytes of message headers do not fit a datagram of %zu bytes "
                        "(transport_tcp_datagram_max_size)",
                        send->headers_len, session->datagram_max);
    }
    size = send->len > whole_max ? size : whole_max;
    uint32_t count = send->len > whole_max ? (uint32_t)((send->len + size - 1) / size) : 1;
    um_list_init(&made);
    plan.fragmented = count > 1;
    plan.first_sqn = stream->next_sqn;
    for (uint32_t k = 0; k < count; k++) {
        size_t len = send->len - plan.offset < size ? send->len - plan.offset : size;
        plan.batch_flags =
            (k == 0 ? marks & UM_LBMC_BATCH_START : 0) | (k + 1 == count ? marks & UM_LBMC_BATCH_END : 0);
        size_t total = record_headers_len(&plan) + len;
        struct um_held *held = um_malloc(sizeof *held + total);
        if (held == NULL) {
            free_held(&made);
            return um_error_nomem("send: message held by an explicit batch", sizeof *held + total);
        }
        held->len = total;
        held->user_len = len;
        held->open_change = count == 1 ? 0 : (k == 0) - (k + 1 == count);
        record_write(held->data, &plan, plan.first_sqn + k, &from, len);
        plan.offset += (uint32_t)len;
        um_list_push_back(&made, &held->node);
    }
    struct um_list *node;
    while ((node = um_list_first(&made)) != NULL) {
        um_list_remove(node);
        um_list_push_back(&stream->explicit_batch, node);
    }
    send->first_sqn = plan.first_sqn;
    send->last_sqn = plan.first_sqn + count - 1;
    stream->next_sqn += count;
    return 0;
}

/* Out of memory to the end: what is still held never goes out. A message cut off by this is open no more. Returns the
 * bytes given up. */
static size_t drop_held(struct um_src_session *session, struct um_list *list)
{
    struct um_list *it;
    size_t bytes = 0;
    UM_LIST_FOREACH(it, list)
    {
        const struct um_held *held = UM_CONTAINER_OF(it, struct um_held, node);
        session->open_messages += held->open_change;
        bytes += held->len;
    }
    session->drops.unsent_bytes += bytes;
    free_held(list);
    return bytes;
}

/* The held messages enter the batch one by one by its normal rules. A failed allocation leaves the rest held. */
static int release_held(struct um_src_session *session, struct um_src_stream *stream)
{
    struct um_list *node;
    while ((node = um_list_first(&stream->explicit_batch)) != NULL) {
        struct um_held *held = UM_CONTAINER_OF(node, struct um_held, node);
        uint8_t *out = batch_reserve(session, held->len);
        if (out == NULL) {
            return um_error_nomem("send: batch buffer", session->datagram_max);
        }
        bool was_empty = out == session->batch->data;
        memcpy(out, held->data, held->len);
        stream->last_data_ns = session->batch_start_ns;
        session->open_messages += held->open_change;
        batch_added(session, held->user_len, was_empty, false);
        um_list_remove(node);
        um_free(held);
    }
    return 0;
}

static int send_explicit(struct um_src_session *session, struct um_src_stream *stream, struct um_send *send)
{
    bool open = stream->special & UM_STREAM_EXPLICIT_BATCH;
    bool ends = send->flags & LBM_MSG_END_BATCH;
    uint16_t marks = (send->flags & LBM_MSG_START_BATCH ? UM_LBMC_BATCH_START : 0) | (ends ? UM_LBMC_BATCH_END : 0);
    if (!open && !(marks & UM_LBMC_BATCH_START)) {
        return um_error(UM_EOP, "CoreApi-5688-3235",
                        "send: LBM_MSG_END_BATCH without a message sent with LBM_MSG_START_BATCH before");
    }
    if (!open && ends) {
        return send_now(session, stream, send, marks);
    }
    if (hold(session, stream, send, marks) != 0) {
        return -1;
    }
    if (ends) {
        stream->special &= ~(unsigned)UM_STREAM_EXPLICIT_BATCH;
    } else {
        stream->special |= UM_STREAM_EXPLICIT_BATCH;
    }
    if (!ends && !(send->flags & LBM_MSG_FLUSH)) {
        return 0;
    }
    int rc = release_held(session, stream);
    if (rc == 0 && (send->flags & LBM_MSG_FLUSH)) {
        um_src_session_flush(session);
    }
    return rc;
}

static void resume_tsni(struct um_src_session *session, struct um_src_stream *stream)
{
    stream->special &= ~(unsigned)UM_STREAM_TSNI_QUIET;
    stream->tsni_resume = true;
    session->resume_wanted = true;
    um_loop_post(session->env->loop, &session->command);
}

int um_src_stream_send(struct um_src_stream *stream, struct um_send *send)
{
    struct um_src_session *session = stream->session;
    if (session == NULL) {
        return closing_error();
    }
    if (send->len > INT32_MAX) {
        return um_error(UM_EINVAL, "CoreApi-5688-3236", "send: length %zu: must be at most %d bytes", send->len,
                        INT32_MAX);
    }
    send->waited = false;
    um_src_session_lock(session);
    int rc = admit(session, stream, send);
    if (rc == 0) {
        if (stream->special & UM_STREAM_TSNI_QUIET) {
            resume_tsni(session, stream);
        }
        bool explicit = (stream->special & UM_STREAM_EXPLICIT_BATCH) || (send->flags & LBM_MSG_COMPLETE_BATCH);
        rc = explicit ? send_explicit(session, stream, send) : send_now(session, stream, send, 0);
        if (rc == 0) {
            stream->messages_sent++;
            stream->bytes_sent += send->len;
        }
    }
    um_src_session_unlock(session);
    return rc;
}

static __attribute__((noinline)) int send_plain_slow(struct um_src_stream *stream, const void *data, size_t len,
                                                     int flags, bool *waited)
{
    struct iovec iov = {(void *)data, len};
    struct um_send send = {.iov = &iov, .iovcnt = 1, .len = len, .flags = flags};
    int rc = um_src_stream_send(stream, &send);
    *waited = send.waited;
    return rc;
}

/* Lock; the message is short enough to go in one piece. False: it does not fit the fast path now. */
static inline bool append_plain(struct um_src_session *session, struct um_src_stream *stream, const void *data,
                                size_t len, bool flush)
{
    struct um_datagram *batch = session->batch;
    size_t total = UM_LBMC_DATA_HDR_LEN + len;
    if (unlikely(stream->special != 0 || session->blocked || batch == NULL ||
                 batch->len + total > session->datagram_max)) {
        return false;
    }
    uint8_t *out = batch->data + batch->len;
    bool was_empty = batch->len == 0;
    if (was_empty) {
        session->batch_start_ns = um_clock_ns();
    }
    um_lbmc_put_data_hdr(out, UM_LBMC_HDR_DATA, (uint16_t)total, stream->tidx, stream->next_sqn++);
    if (len > 0) {
        memcpy(out + UM_LBMC_DATA_HDR_LEN, data, len);
    }
    batch->len += (uint32_t)total;
    stream->last_data_ns = session->batch_start_ns;
    session->batch_user_bytes += len;
    stream->messages_sent++;
    stream->bytes_sent += len;
    if (flush) {
        um_src_session_flush(session);
    } else if (session->batch_user_bytes >= session->flush_at) {
        batch_full(session);
    } else if (unlikely(was_empty)) {
        batch_added(session, 0, true, false);
    }
    return true;
}

int um_src_stream_send_plain(struct um_src_stream *stream, const void *data, size_t len, int flags, bool *waited)
{
    struct um_src_session *session = stream->session;
    if (unlikely(session == NULL || (flags & LBM_MSG_COMPLETE_BATCH) || len > session->plain_max)) {
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
    while (run->sent < end) {
        size_t len = run_length(run, run->sent);
        bool flush = (run->flags & LBM_MSG_FLUSH) && run->sent + 1 == run->count;
        if (len > session->plain_max || !append_plain(session, stream, run_data(run, run->sent), len, flush)) {
            break;
        }
        run->sent++;
    }
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
        return closing_error();
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
    um_src_session_lock(session);
    release_held(session, stream);
    um_src_session_flush(session);
    um_src_session_unlock(session);
}

/* ---- TSNI ---- */

uint32_t um_src_stream_last_sqn(const struct um_src_stream *stream)
{
    struct um_list *first = um_list_first(&stream->explicit_batch);
    if (first != NULL) { /* numbers held back have not been sent */
        return um_get32(UM_CONTAINER_OF(first, struct um_held, node)->data + 8) - 1;
    }
    return stream->next_sqn - 1;
}

static void append_tsni(struct um_src_session *session, const uint32_t *tidx, const uint32_t *sqn, size_t count)
{
    uint8_t *out = batch_reserve(session, 8 + 8 * count);
    if (out != NULL) { /* out of memory: the next interval tells it */
        um_lbmc_encode_tsni(out, tidx, sqn, count);
    }
}

static void send_due_tsnis(struct um_src_session *session)
{
    uint32_t tidx[UM_LBMC_TSNI_MAX], sqn[UM_LBMC_TSNI_MAX];
    int count = session->due_count;
    session->due_count = 0;
    um_timer_cancel(um_loop_wheel(session->env->loop), &session->tsni_flush_timer);
    um_src_session_lock(session);
    for (int i = 0; i < count; i++) {
        tidx[i] = session->due[i]->tidx;
        sqn[i] = um_src_stream_last_sqn(session->due[i]);
        session->due[i]->tsni_due = false;
    }
    if (count > 0 && session->clients > 0 && !session->blocked) {
        size_t step = session->filtering ? 1 : (size_t)count;
        for (int i = 0; i < count; i += (int)step) {
            append_tsni(session, tidx + i, sqn + i, step);
        }
        um_src_session_flush(session);
    }
    um_src_session_unlock(session);
}

static void on_tsni_flush_timer(struct um_timer *timer, uint64_t now_ns)
{
    send_due_tsnis(UM_CONTAINER_OF(timer, struct um_src_session, tsni_flush_timer));
}

/* Topics whose timers are due in one pass of the loop share one TSNI message. */
static void on_tsni_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_src_stream *stream = UM_CONTAINER_OF(timer, struct um_src_stream, tsni_timer);
    struct um_src_session *session = stream->session;
    struct um_timer_wheel *wheel = um_loop_wheel(session->env->loop);
    um_src_session_lock(session);
    uint64_t clock = um_clock_ns();
    uint64_t idle = clock > stream->last_data_ns ? clock - stream->last_data_ns : 0;
    bool due = idle + UM_NS_PER_MS >= stream->tsni_interval_ns;
    bool quiet = stream->tsni_active_ns != 0 && idle > stream->tsni_active_ns + stream->tsni_interval_ns / 2;
    if (quiet) {
        stream->special |= UM_STREAM_TSNI_QUIET;
    }
    um_src_session_unlock(session);
    if (quiet) {
        return;
    }
    um_timer_arm(wheel, timer, now_ns + stream->tsni_interval_ns - (due ? 0 : idle));
    if (!due || stream->tsni_due) {
        return;
    }
    stream->tsni_due = true;
    session->due[session->due_count++] = stream;
    if (session->due_count == UM_LBMC_TSNI_MAX) {
        send_due_tsnis(session);
    } else if (!um_timer_armed(&session->tsni_flush_timer)) {
        um_timer_arm(wheel, &session->tsni_flush_timer, now_ns);
    }
}

/* ---- loop ---- */

static void arm_interval(struct um_src_session *session, uint64_t now_ns, uint64_t age_ns)
{
    uint64_t rest = age_ns < session->interval_ns ? session->interval_ns - age_ns : 0;
    um_timer_arm(um_loop_wheel(session->env->loop), &session->interval_timer, now_ns + rest);
}

/* Flush the batch when it is old enough. A younger one was started since: follow it, so that no batch costs a post. */
static void on_interval_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_src_session *session = UM_CONTAINER_OF(timer, struct um_src_session, interval_timer);
    um_src_session_lock(session);
    if (session->batch == NULL || session->batch->len == 0) {
        session->timer_wanted = false;
    } else {
        uint64_t age = um_clock_ns() - session->batch_start_ns;
        if (age + UM_TIMER_SLACK_NS >= session->interval_ns) {
            session->timer_wanted = false;
            um_src_session_flush(session);
        } else {
            arm_interval(session, now_ns, age);
        }
    }
    um_src_session_unlock(session);
}

/* While sends go on the timer follows them, so that keeping a batch back costs no post. */
static void on_drain_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_src_session *session = UM_CONTAINER_OF(timer, struct um_src_session, drain_timer);
    um_src_session_lock(session);
    if (session->batch_user_bytes >= session->minimum_length) {
        um_src_session_flush(session);
    }
    session->drain_wanted = session->held_since_tick;
    session->held_since_tick = false;
    if (session->drain_wanted) {
        um_timer_arm(um_loop_wheel(session->env->loop), timer, now_ns + UM_DRAIN_NS);
    }
    um_src_session_unlock(session);
}

static void report_wakeups(struct um_src_session *session)
{
    struct um_list *it, *tmp;
    UM_LIST_FOREACH_SAFE(it, tmp, &session->streams)
    {
        struct um_src_stream *stream = UM_CONTAINER_OF(it, struct um_src_stream, node);
        um_src_session_lock(session);
        bool wanted = stream->wakeup_wanted;
        stream->wakeup_wanted = false;
        um_src_session_unlock(session);
        if (wanted) {
            stream->events->on_wakeup(stream);
        }
    }
}

static void resume_streams(struct um_src_session *session)
{
    struct um_list *it;
    UM_LIST_FOREACH(it, &session->streams)
    {
        struct um_src_stream *stream = UM_CONTAINER_OF(it, struct um_src_stream, node);
        um_src_session_lock(session);
        bool resume = stream->tsni_resume;
        stream->tsni_resume = false;
        um_src_session_unlock(session);
        if (resume && stream->tsni_interval_ns != 0) {
            um_timer_arm(um_loop_wheel(session->env->loop), &stream->tsni_timer,
                         um_loop_now(session->env->loop) + stream->tsni_interval_ns);
        }
    }
}

static void announce_streams(struct um_src_session *session)
{
    struct um_list *it, *tmp;
    UM_LIST_FOREACH_SAFE(it, tmp, &session->streams)
    {
        struct um_src_stream *stream = UM_CONTAINER_OF(it, struct um_src_stream, node);
        if (stream->announce_pending) {
            stream->announce_pending = false;
            session->ops->announce(session, stream);
        }
    }
}

static void on_command(struct um_command *command)
{
    struct um_src_session *session = UM_CONTAINER_OF(command, struct um_src_session, command);
    um_src_session_lock(session);
    bool wakeups = session->wakeups_due;
    bool resume = session->resume_wanted;
    session->wakeups_due = false;
    session->resume_wanted = false;
    if (wakeups) {
        session->wakeups_wanted = false;
    }
    if (session->timer_wanted) {
        bool started = session->batch != NULL && session->batch->len > 0;
        uint64_t age = started ? um_clock_ns() - session->batch_start_ns : 0;
        arm_interval(session, um_loop_now(session->env->loop), age);
    }
    if (session->drain_wanted && !um_timer_armed(&session->drain_timer)) {
        um_timer_arm(um_loop_wheel(session->env->loop), &session->drain_timer,
                     um_loop_now(session->env->loop) + UM_DRAIN_NS);
    }
    um_src_session_unlock(session);
    if (wakeups) {
        report_wakeups(session);
    }
    if (resume) {
        resume_streams(session);
    }
    if (session->announce_wanted) {
        session->announce_wanted = false;
        announce_streams(session);
    }
    session->ops->on_command(session);
}

int um_src_session_init(struct um_src_session *session, struct um_transport_env *env,
                        const struct um_src_session_ops *ops, size_t datagram_max, const struct um_source_options *opts)
{
    memset(session, 0, sizeof *session);
    session->ops = ops;
    session->env = env;
    session->datagram_max = datagram_max;
    session->dynamic_reduction = env->opts->dynamic_fragmentation_reduction != 0;
    session->plain_max = datagram_max - (session->dynamic_reduction ? UM_LBMC_DATA_HDR_LEN : UM_HEADER_RESERVE);
    session->batch = um_datagram_get(session);
    if (session->batch == NULL) {
        return um_error_nomem("source session: batch buffer", datagram_max);
    }
    session->minimum_length = opts->implicit_batching_minimum_length;
    session->flush_at = session->minimum_length;
    session->coalesce_max = um_loop_embedded(env->loop) ? datagram_max : 0;
    session->adaptive = opts->implicit_batching_type == LBM_SRC_TOPIC_ATTR_IMPLICIT_BATCH_TYPE_ADAPTIVE;
    session->interval_ns = opts->implicit_batching_interval * UM_NS_PER_MS;
    if (session->interval_ns < UM_INTERVAL_MIN_NS) {
        session->interval_ns = UM_INTERVAL_MIN_NS;
    }
    um_list_init(&session->streams);
    um_command_init(&session->command, on_command);
    um_timer_init(&session->interval_timer, on_interval_timer);
    um_timer_init(&session->drain_timer, on_drain_timer);
    um_timer_init(&session->tsni_flush_timer, on_tsni_flush_timer);
    return 0;
}

void um_src_session_fini(struct um_src_session *session)
{
    um_loop_unpost(session->env->loop, &session->command);
    um_timer_cancel(um_loop_wheel(session->env->loop), &session->interval_timer);
    um_timer_cancel(um_loop_wheel(session->env->loop), &session->drain_timer);
    um_timer_cancel(um_loop_wheel(session->env->loop), &session->tsni_flush_timer);
    um_src_session_lock(session); /* a woken sender may still be on its way out of the lock */
    um_free(session->batch);
    while (session->free_list != NULL) {
        struct um_datagram *datagram = session->free_list;
        session->free_list = datagram->next_free;
        um_free(datagram);
    }
    um_src_session_unlock(session);
}

void um_src_session_add(struct um_src_session *session, struct um_src_stream *stream)
{
    um_list_init(&stream->explicit_batch);
    um_timer_init(&stream->tsni_timer, on_tsni_timer);
    stream->next_sqn = 0;
    stream->special = 0;
    stream->wakeup_wanted = false;
    stream->tsni_resume = false;
    stream->tsni_due = false;
    stream->waiters = 0;
    stream->last_data_ns = um_clock_ns();
    um_src_session_lock(session);
    um_list_push_back(&session->streams, &stream->node);
    stream->announce_pending = session->clients > 0;
    um_src_session_unlock(session);
    stream->session = session;
    if (stream->announce_pending) {
        session->announce_wanted = true;
        um_loop_post(session->env->loop, &session->command);
    }
    if (stream->tsni_interval_ns != 0) {
        um_timer_arm(um_loop_wheel(session->env->loop), &stream->tsni_timer,
                     um_loop_now(session->env->loop) + stream->tsni_interval_ns);
    }
}

static void forget_due(struct um_src_session *session, struct um_src_stream *stream)
{
    int kept = 0;
    for (int i = 0; i < session->due_count; i++) {
        if (session->due[i] != stream) {
            session->due[kept++] = session->due[i];
        }
    }
    session->due_count = kept;
}

void um_src_stream_detach(struct um_src_stream *stream)
{
    struct um_src_session *session = stream->session;
    if (session == NULL) {
        return;
    }
    um_timer_cancel(um_loop_wheel(session->env->loop), &stream->tsni_timer);
    forget_due(session, stream);
    um_src_session_lock(session);
    stream->special |= UM_STREAM_CLOSING;
    wake_waiters(session);
    while (stream->waiters > 0) {
        um_condition_wait(&session->changed, &session->lock);
    }
    release_held(session, stream);
    size_t dropped = drop_held(session, &stream->explicit_batch);
    um_src_session_flush(session);
    um_list_remove(&stream->node);
    um_src_session_unlock(session);
    if (dropped > 0) {
        static struct um_log_limit limit;
        um_log_limited(&limit, um_clock_ns(), UM_NS_PER_SEC, UM_LOG_ERR, "Core-5688-3933",
                       "topic index %u: source deleted without memory to send the %zu bytes of an explicit batch",
                       stream->tidx, dropped);
    }
    stream->session = NULL;
    session->ops->stream_gone(session, stream->tidx);
}

/* ---- facts ---- */

void um_src_stream_source_info(const struct um_src_stream *stream, lbm_transport_source_info_t *out)
{
    stream->session->ops->source_info(stream->session, out);
    out->topic_idx = stream->tidx;
}

int um_src_stream_stats(struct um_src_stream *stream, lbm_src_transport_stats_t *out)
{
    stream->session->ops->stats(stream->session, out);
    return 0;
}

void um_src_stream_stats_reset(struct um_src_stream *stream)
{
    um_src_session_lock(stream->session);
    memset(&stream->session->drops, 0, sizeof stream->session->drops);
    um_src_session_unlock(stream->session);
}

void um_src_stream_drops(const struct um_src_stream *stream, struct um_src_drops *out)
{
    um_src_session_lock(stream->session);
    *out = stream->session->drops;
    um_src_session_unlock(stream->session);
}

void um_src_stream_counts(const struct um_src_stream *stream, struct um_src_counts *out)
{
    um_src_session_lock(stream->session);
    out->messages = stream->messages_sent;
    out->bytes = stream->bytes_sent;
    out->clients = stream->session->clients;
    out->drops = stream->session->drops;
    um_src_session_unlock(stream->session);
}

void um_src_stream_set_batching(struct um_src_stream *stream, uint64_t interval_ns, size_t minimum_length,
                                bool adaptive)
{
    struct um_src_session *session = stream->session;
    um_src_session_lock(session);
    um_src_session_flush(session); /* what waits was batched by the old rules, whose timers may not see it any more */
    session->interval_ns = interval_ns < UM_INTERVAL_MIN_NS ? UM_INTERVAL_MIN_NS : interval_ns;
    session->minimum_length = minimum_length;
    session->flush_at = minimum_length;
    session->adaptive = adaptive;
    if (session->timer_wanted) {
        um_loop_post(session->env->loop, &session->command); /* arms anew with the new interval */
    }
    um_src_session_unlock(session);
}

int um_src_stream_clients(const struct um_src_stream *stream)
{
    um_src_session_lock(stream->session);
    int clients = stream->session->clients;
    um_src_session_unlock(stream->session);
    return clients;
}
