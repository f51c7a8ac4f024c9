/* Batches of a source session: buffers, when a batch goes out, and the two timers
 * that see to it when no send does. Sends run in the caller's thread under the
 * session lock; timers on the loop. */
#include "transport/session/um_src_batch.h"

#include <string.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_mem.h"
#include "transport/session/um_src_parts.h"

#define UM_ADAPTIVE_IDLE_NS UM_NS_PER_MS
#define UM_TIMER_SLACK_NS 100000u  /* fire rather than re-arm for less than this */
#define UM_COALESCE_NS 20000u      /* a full batch joins the next one when the last went out less than this ago */
#define UM_COALESCE_MIN_LENGTH 64u /* implicit_batching_minimum_length below this asks for no batching at all */
#define UM_DRAIN_NS UM_NS_PER_MS

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
        datagram->data = (uint8_t *)(datagram + 1);
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
        *copy = *datagram;
        copy->data = (uint8_t *)(copy + 1);
        memcpy(copy->data, datagram->data, datagram->len);
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

static struct um_datagram *next_batch(struct um_src_session *session)
{
    return session->ops->acquire != NULL ? session->ops->acquire(session) : um_datagram_get(session);
}

static void flush_at_time(struct um_src_session *session, uint64_t now_ns)
{
    struct um_datagram *datagram = session->batch;
    datagram->continues = session->open_messages > 0;
    datagram->user_bytes = (uint32_t)session->batch_user_bytes;
    session->batch = NULL;
    session->batch_user_bytes = 0;
    session->flush_at = session->minimum_length;
    session->last_transmit_ns = now_ns;
    session->ops->transmit(session, datagram);
    session->batch = next_batch(session);
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
void um_src_batch_full(struct um_src_session *session)
{
    if (session->coalesce_max == 0) {
        um_src_session_flush(session);
        return;
    }
    uint64_t now = um_src_session_clock(session);
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

uint8_t *um_src_batch_reserve(struct um_src_session *session, uint32_t tidx, size_t len)
{
    if (session->batch != NULL &&
        (session->batch->len + len > session->datagram_max || (session->one_topic && session->batch_tidx != tidx))) {
        um_src_session_flush(session);
    }
    if (session->batch == NULL) {
        session->batch = next_batch(session);
        if (session->batch == NULL) {
            um_error_nomem("send: batch buffer", session->datagram_max);
            return NULL;
        }
    }
    if (session->batch->len == 0) {
        session->batch_start_ns = um_clock_ns();
    }
    session->batch_tidx = tidx;
    uint8_t *out = session->batch->data + session->batch->len;
    session->batch->len += (uint32_t)len;
    return out;
}

bool um_src_session_put_alone(struct um_src_session *session, const uint8_t *message, size_t len)
{
    um_src_session_flush(session);
    uint8_t *out = um_src_batch_reserve(session, 0, len);
    if (out == NULL) {
        return false;
    }
    memcpy(out, message, len);
    um_src_session_flush(session);
    return true;
}

/* Adaptive: a message into an empty buffer leaves at once when the session was idle. */
static bool adaptive_flush(const struct um_src_session *session, bool was_empty)
{
    return session->adaptive && was_empty && !um_src_session_blocked(session) &&
           session->batch_start_ns - session->last_transmit_ns > UM_ADAPTIVE_IDLE_NS;
}

void um_src_batch_added(struct um_src_session *session, size_t user_len, bool was_empty, bool flush)
{
    session->batch_user_bytes += user_len;
    if (flush || adaptive_flush(session, was_empty)) {
        um_src_session_flush(session);
    } else if (session->batch_user_bytes >= session->flush_at) {
        um_src_batch_full(session);
    } else if (was_empty) {
        request_timer(session);
    }
}

/* ---- timers ---- */

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

void um_src_batch_timers_init(struct um_src_session *session)
{
    um_timer_init(&session->interval_timer, on_interval_timer);
    um_timer_init(&session->drain_timer, on_drain_timer);
}

void um_src_batch_timers_arm(struct um_src_session *session)
{
    if (session->timer_wanted) {
        bool started = session->batch != NULL && session->batch->len > 0;
        uint64_t age = started ? um_clock_ns() - session->batch_start_ns : 0;
        arm_interval(session, um_loop_now(session->env->loop), age);
    }
    if (session->drain_wanted && !um_timer_armed(&session->drain_timer)) {
        um_timer_arm(um_loop_wheel(session->env->loop), &session->drain_timer,
                     um_loop_now(session->env->loop) + UM_DRAIN_NS);
    }
}

void um_src_batch_timers_cancel(struct um_src_session *session)
{
    um_timer_cancel(um_loop_wheel(session->env->loop), &session->interval_timer);
    um_timer_cancel(um_loop_wheel(session->env->loop), &session->drain_timer);
}
