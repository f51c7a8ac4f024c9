/* Receiving LBT-SMX: sessions, and the busy thread that delivers their messages
 * where they lie. Sessions are made, watched and ended on the loop; the thread
 * polls them as a guest of the loop: while it holds the turn it owns everything that
 * is marked [loop], so callbacks run on it as on the context's thread. */
#include <stdio.h>
#include <string.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "transport/shm/um_shm_poller.h"
#include "transport/shm/um_shm_spin.h"
#include "transport/smx/um_smx_ring.h"

#define WATCH_NS UM_NS_PER_SEC
#define CONTROL_RETRY_NS (500 * UM_NS_PER_MS) /* shorter than the wait before a join is tried again */
#define BURST 256                             /* messages of a session before the others have their turn */
#define LINGER 256 /* looks at an empty ring before a read ends, when there is but one ring and no batch to hand on */
#define QUICK_POLLS 16  /* polls between two looks at anything but the rings */
#define TICK_EVERY 4    /* rounds of so many polls between two looks at the clock; power of two */
#define STAY_ROUNDS 256 /* before the turn goes round, so that timers are seen to */
#define STATE_EVERY 64  /* idle rounds between two looks at the state of the segments; power of two */

struct um_smx_receivers {
    struct um_shm_poller poller; /* it looks at the sessions that have begun */
    struct um_condition changed; /* poller.lock: there is something to poll, or stop */
    uint64_t wall_ns;            /* [loop] time of day at the last look at the clock */
    unsigned linger;             /* [loop] looks at an empty ring before a read ends */
    uint64_t next_control_ns;    /* [loop] the control object is not tried again before, if it could not be made */
};

struct smx_receiver {
    struct um_shm_rcv_session shm;
    bool count;            /* transport_lbtsmx_message_statistics_enabled */
    uint64_t unknown_told; /* of reader.unknown, counted as malformed */
    struct um_smx_reader reader;
    struct um_lbmc_msg msg; /* as the streams expect it; only the changing fields are written */
    struct um_timer start_timer, watch_timer;
    uint64_t activity_timeout_ns;
    uint64_t last_activity, last_pos; /* as seen by the watch */
    uint64_t last_active_ns;
};

static struct um_smx_receivers *smx_of(struct um_shm_poller *poller)
{
    return UM_CONTAINER_OF(poller, struct um_smx_receivers, poller);
}

static struct smx_receiver *receiver_of(const struct um_rcv_session *session)
{
    return UM_CONTAINER_OF(um_shm_rcv_session_of(session), struct smx_receiver, shm);
}

static struct smx_receiver *receiver_at(struct um_list *node)
{
    return UM_CONTAINER_OF(um_shm_polled(node), struct smx_receiver, shm);
}

static struct um_smx_receivers *receivers_of(const struct smx_receiver *receiver)
{
    return smx_of(receiver->shm.poller);
}

static struct um_loop *loop_of(const struct smx_receiver *receiver)
{
    return receiver->shm.poller->base.env->loop;
}

/* ---- messages ---- */

static void tell_unknown(struct smx_receiver *receiver, uint64_t now_ns)
{
    if (receiver->reader.unknown == receiver->unknown_told) {
        return;
    }
    receiver->shm.base.msgs_malformed += receiver->reader.unknown - receiver->unknown_told;
    receiver->unknown_told = receiver->reader.unknown;
    um_log_limited(um_log_of(receiver->shm.base.source), now_ns, UM_LOG_WARNING, "Core-6976-120",
                   "%s: records of an unknown type are passed over", receiver->shm.base.source);
}

static void corrupt(struct smx_receiver *receiver, uint64_t now_ns)
{
    um_log_limited(um_log_of(receiver->shm.base.source), now_ns, UM_LOG_ERR, "Core-6976-147",
                   "%s: what lies at position %llu of the ring is no record: session left", receiver->shm.base.source,
                   (unsigned long long)receiver->reader.pos);
    um_rcv_session_malformed(&receiver->shm.base);
    um_rcv_session_over(&receiver->shm.base, now_ns);
}

/* By the long way: the first of a read, several receivers, event queues, losses. */
static __attribute__((noinline)) bool deliver_by_message(struct smx_receiver *receiver,
                                                         const struct um_smx_message *message, uint64_t now_ns)
{
    receiver->msg.tidx = message->topic_idx;
    receiver->msg.sqn = message->sqn;
    receiver->msg.payload.ptr = message->data;
    receiver->msg.payload.len = message->len;
    return um_rcv_session_message(&receiver->shm.base, &receiver->msg, NULL, now_ns);
}

/* Messages of the stream, as long as they follow each other. Returns how many, *bytes the payload. A function of its
 * own: its loop needs all registers. */
static __attribute__((noinline)) unsigned drain(struct um_smx_reader *reader, uint32_t tidx,
                                                const struct um_rcv_direct *to, unsigned most, uint64_t *bytes)
{
    struct um_smx_reader view = *reader; /* nobody else moves it meanwhile: kept in registers */
    struct um_smx_message m;
    lbm_msg_t *msg = to->msg;
    uint32_t next = to->next, end = next + most;
    uint64_t size, sum = 0;
    unsigned linger = reader->linger;
    view.drained = false;
    while (next != end) {
        if ((size = um_smx_peek(&view, &m)) == 0) {
            if (!view.drained || linger == 0) {
                break;
            }
            um_smx_release(&view);
            linger = um_smx_await(&view, linger);
            continue;
        }
        if (m.sqn != next || m.topic_idx != tidx) {
            break;
        }
        msg->data = (const char *)m.data;
        msg->len = m.len;
        msg->sequence_number = next++;
        view.pos += size;
        sum += m.len;
        if (__builtin_expect(to->proc(to->rcv, msg, to->clientd) != 0, 0)) {
            to->not_zero(msg);
        }
        if (__builtin_expect(*to->kept != NULL, 0)) {
            break;
        }
        if (__builtin_expect(um_smx_release_due(&view), 0)) {
            um_smx_release(&view);
        }
    }
    reader->pos = view.pos;
    reader->released = view.released;
    reader->drained = view.drained;
    *bytes = sum;
    return next - to->next;
}

/* The short way, for the stream of the last message. Returns how many were delivered. */
static inline unsigned deliver_from_ring(struct smx_receiver *receiver, unsigned most, uint64_t wall_ns)
{
    struct um_rcv_session *session = &receiver->shm.base;
    struct um_rcv_stream *stream = session->last_stream;
    const struct um_rcv_stream_events *events = stream != NULL ? stream->events : NULL;
    struct um_rcv_direct to;
    uint64_t bytes;
    if (session->attention || events == NULL || events->direct == NULL) {
        return 0;
    }
    if (!stream->no_read_end && um_list_empty(&stream->touched)) {
        um_list_push_back(&session->touched, &stream->touched);
    }
    struct um_list *others = &receiver->shm.poller->polled;
    bool alone = others->next == &receiver->shm.node && others->prev == &receiver->shm.node;
    receiver->reader.linger = alone && stream->no_read_end ? receivers_of(receiver)->linger : 0;
    if (!events->direct(stream, wall_ns, &to)) {
        return 0;
    }
    unsigned count = drain(&receiver->reader, stream->tidx, &to, most, &bytes);
    events->direct_end(stream, count);
    session->msgs_rcved += count;
    session->bytes_rcved += bytes + (uint64_t)count * UM_SMX_RECORD_HEADER;
    return count;
}

/* Deliver what is there, at most a burst. The caller has found the session not idle. False: it ended. */
static bool deliver_burst(struct smx_receiver *receiver, uint64_t now_ns)
{
    struct um_rcv_session *session = &receiver->shm.base;
    struct um_smx_message message;
    enum um_smx_read rc = UM_SMX_IDLE;
    bool alive = true;
    uint64_t wall_ns = receivers_of(receiver)->wall_ns;
    um_rcv_session_begin(session);
    for (unsigned count = 0, got; alive && count < BURST; count += got) {
        got = deliver_from_ring(receiver, BURST - count, wall_ns);
        if (got > 0) {
            if (receiver->reader.drained) {
                break; /* another look so soon would only take the cache line from the source */
            }
            continue;
        }
        rc = um_smx_next(&receiver->reader, &message);
        if (rc != UM_SMX_MESSAGE) {
            break;
        }
        session->bytes_rcved += UM_SMX_RECORD_HEADER + message.len;
        alive = deliver_by_message(receiver, &message, now_ns);
        if (alive && um_smx_release_due(&receiver->reader)) {
            um_smx_release(&receiver->reader);
        }
        got = 1;
    }
    if (alive) {
        um_smx_release(&receiver->reader);
        tell_unknown(receiver, now_ns);
        if (rc == UM_SMX_CORRUPT) {
            corrupt(receiver, now_ns);
        }
    }
    return um_rcv_session_end(session, now_ns);
}

static bool has_something(const struct smx_receiver *receiver)
{
    return um_smx_commit_at(&receiver->reader) != 0;
}

/* The source is gone: what it published is still delivered, then the session is over. */
static void end_session(struct smx_receiver *receiver, uint64_t now_ns)
{
    uint64_t most = receiver->reader.pos + 2 * receiver->shm.segment.ring_len;
    receivers_of(receiver)->wall_ns = um_loop_wall_now(loop_of(receiver));
    while (has_something(receiver) && receiver->reader.pos < most) {
        if (!deliver_burst(receiver, now_ns)) {
            return;
        }
    }
    um_rcv_session_over(&receiver->shm.base, now_ns);
}

static bool closed_by_source(const struct smx_receiver *receiver)
{
    return !um_shm_is_ready(receiver->shm.segment.header);
}

/* ---- the thread ---- */

/* Every session once. */
static inline bool poll_sessions(struct um_smx_receivers *receivers, uint64_t now_ns)
{
    struct um_list *it, *next;
    bool busy = false;
    UM_LIST_FOREACH_SAFE(it, next, &receivers->poller.polled)
    {
        struct smx_receiver *receiver = receiver_at(it);
        if (!has_something(receiver)) {
            continue;
        }
        busy = true;
        if (!deliver_burst(receiver, now_ns)) {
            break; /* it and its neighbours may be gone */
        }
    }
    return busy;
}

/* A round: as long as nothing comes, with a pause after each look, which leaves the cache line to the source. */
static bool poll_round(struct um_smx_receivers *receivers, uint64_t now_ns)
{
    for (unsigned i = 0; i < QUICK_POLLS; i++) {
        if (poll_sessions(receivers, now_ns)) {
            um_shm_relax();
            return true;
        }
        um_shm_relax();
    }
    return false;
}

static void look_for_closed(struct um_smx_receivers *receivers, uint64_t now_ns)
{
    struct um_list *it;
    UM_LIST_FOREACH(it, &receivers->poller.polled)
    {
        struct smx_receiver *receiver = receiver_at(it);
        if (closed_by_source(receiver)) {
            end_session(receiver, now_ns);
            return; /* the list has changed; the next look sees the rest */
        }
    }
}

/* The clock is read between messages, not in their way. */
static uint64_t tick(struct um_smx_receivers *receivers, struct um_loop *loop)
{
    um_loop_guest_tick(loop);
    receivers->wall_ns = um_loop_wall_now(loop);
    return um_loop_now(loop);
}

/* With the turn. */
static void poll_for_a_while(struct um_smx_receivers *receivers, struct um_shm_spin *spin)
{
    struct um_loop *loop = receivers->poller.base.env->loop;
    uint64_t now_ns = tick(receivers, loop);
    uint32_t idle = 0;
    receivers->linger = spin->crowded ? 0 : LINGER;
    for (uint32_t rounds = 1; rounds <= STAY_ROUNDS && !um_loop_guest_wanted(loop); rounds++) {
        if (poll_round(receivers, now_ns)) {
            idle = 0;
            um_shm_spin_worked(spin);
        } else {
            um_shm_spin_more(spin, QUICK_POLLS);
            if ((++idle & (STATE_EVERY - 1)) == 0) {
                look_for_closed(receivers, now_ns);
            }
        }
        if ((rounds & (TICK_EVERY - 1)) == 0) {
            now_ns = tick(receivers, loop);
        }
        if (um_list_empty(&receivers->poller.polled)) {
            return;
        }
    }
}

/* Without sessions the thread sleeps. */
static void wait_for_sessions(struct um_smx_receivers *receivers)
{
    struct um_shm_poller *poller = &receivers->poller;
    um_lock_take(&poller->lock);
    while (um_list_empty(&poller->polled) && !um_shm_poller_stopped(poller)) {
        um_condition_wait(&receivers->changed, &poller->lock);
    }
    um_lock_give(&poller->lock);
}

static void wake(struct um_shm_poller *poller)
{
    um_lock_take(&poller->lock);
    um_condition_signal_all(&smx_of(poller)->changed);
    um_lock_give(&poller->lock);
}

static void thread_main(struct um_shm_poller *poller)
{
    struct um_loop *loop = poller->base.env->loop;
    struct um_shm_spin spin = {0};
    while (!um_shm_poller_stopped(poller)) {
        wait_for_sessions(smx_of(poller));
        um_loop_guest_enter(loop);
        if (!um_shm_poller_stopped(poller)) {
            poll_for_a_while(smx_of(poller), &spin);
        }
        um_loop_guest_leave(loop);
    }
}

static const struct um_shm_poller_kind kind = {.segments = UM_SHM_SMX,
                                               .thread = "um:lbtsmx",
                                               .cpu_option = "um_lbtsmx_receiver_thread_cpu",
                                               .main = thread_main,
                                               .wake = wake};

static struct um_rcv_transport *create(struct um_transport_env *env)
{
    struct um_smx_receivers *receivers = um_calloc(1, sizeof *receivers);
    if (receivers == NULL) {
        um_error_nomem("LBT-SMX receivers", sizeof *receivers);
        return NULL;
    }
    um_shm_poller_init(&receivers->poller, &kind);
    return &receivers->poller.base;
}

/* What was short at the first join may be there at a later one. */
static void show_context(struct um_smx_receivers *receivers)
{
    uint64_t now_ns = um_clock_ns();
    if (receivers->poller.control.map != NULL || now_ns < receivers->next_control_ns) {
        return;
    }
    receivers->next_control_ns = now_ns + CONTROL_RETRY_NS;
    if (um_shm_control_create(&receivers->poller.control, UM_SHM_SMX) != 0) {
        um_log_limited(um_log_of_all(), now_ns, UM_LOG_WARNING, "Core-6976-148",
                       "tools will not see this context for now: %s", um_errmsg());
    }
}

/* ---- joining, watching, leaving [loop] ---- */

static void on_start_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct smx_receiver *receiver = UM_CONTAINER_OF(timer, struct smx_receiver, start_timer);
    um_rcv_session_begin(&receiver->shm.base);
    if (!um_smx_reader_skip(&receiver->reader)) {
        corrupt(receiver, now_ns);
    } else if (um_rcv_session_activity(&receiver->shm.base)) { /* BOS: what is sent from now on arrives */
        um_shm_rcv_session_poll(&receiver->shm);
    }
    um_rcv_session_end(&receiver->shm.base, now_ns);
}

/* Did the session message, or a message, come since the last look? */
static bool was_active(struct smx_receiver *receiver)
{
    uint64_t activity = um_shm_activity(receiver->shm.segment.header);
    bool active = activity != receiver->last_activity || receiver->reader.pos != receiver->last_pos;
    receiver->last_activity = activity;
    receiver->last_pos = receiver->reader.pos;
    return active;
}

static void on_watch_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct smx_receiver *receiver = UM_CONTAINER_OF(timer, struct smx_receiver, watch_timer);
    if (was_active(receiver)) {
        receiver->last_active_ns = now_ns;
    }
    bool alive = um_shm_source_alive(&receiver->shm.segment); /* first: a source that closes, dies afterwards */
    if (closed_by_source(receiver)) {
        end_session(receiver, now_ns);
        return;
    }
    if (!alive) {
        um_log_limited(um_log_of(receiver->shm.base.source), now_ns, UM_LOG_NOTICE, "Core-6976-149",
                       "%s: the process of the source is gone: session ended", receiver->shm.base.source);
        um_shm_unlink(&receiver->shm.segment);
        end_session(receiver, now_ns);
        return;
    }
    if (now_ns - receiver->last_active_ns >= receiver->activity_timeout_ns) {
        um_log_limited(um_log_of(receiver->shm.base.source), now_ns, UM_LOG_INFO, "Core-6976-151",
                       "%s: no activity for %llu ms (transport_lbtsmx_activity_timeout): session ended",
                       receiver->shm.base.source, (unsigned long long)(receiver->activity_timeout_ns / UM_NS_PER_MS));
        um_rcv_session_lost(&receiver->shm.base, now_ns);
        return;
    }
    um_timer_arm(um_loop_wheel(loop_of(receiver)), timer, now_ns + WATCH_NS);
}

static void op_start(struct um_rcv_session *session, uint64_t not_before_ns, uint64_t now_ns)
{
    struct smx_receiver *receiver = receiver_of(session);
    struct um_timer_wheel *wheel = um_loop_wheel(loop_of(receiver));
    receiver->last_active_ns = now_ns;
    um_timer_arm(wheel, &receiver->start_timer, not_before_ns > now_ns ? not_before_ns : now_ns);
    um_timer_arm(wheel, &receiver->watch_timer, now_ns + WATCH_NS);
}

static void op_stop(struct um_rcv_session *session)
{
    struct smx_receiver *receiver = receiver_of(session);
    struct um_timer_wheel *wheel = um_loop_wheel(loop_of(receiver));
    um_timer_cancel(wheel, &receiver->start_timer);
    um_timer_cancel(wheel, &receiver->watch_timer);
    um_shm_rcv_session_stop(session);
}

static void op_fill_stats(const struct um_rcv_session *session, lbm_rcv_transport_stats_t *out)
{
    const struct smx_receiver *receiver = receiver_of(session);
    out->type = LBM_TRANSPORT_STAT_LBTSMX;
    if (receiver->count) {
        out->transport.lbtsmx.msgs_rcved = (lbm_ulong_t)session->msgs_rcved;
        out->transport.lbtsmx.bytes_rcved = (lbm_ulong_t)session->bytes_rcved;
        out->transport.lbtsmx.lbm_msgs_rcved = (lbm_ulong_t)session->msgs_rcved;
        out->transport.lbtsmx.lbm_msgs_no_topic_rcved = (lbm_ulong_t)session->msgs_no_topic;
    }
}

static const struct um_rcv_session_ops ops = {
    .start = op_start, .stop = op_stop, .destroy = um_shm_rcv_session_destroy, .fill_stats = op_fill_stats};

static int attach(struct smx_receiver *receiver, const struct um_rcv_session_key *key)
{
    uint64_t start;
    if (um_shm_rcv_session_attach(&receiver->shm, key) != 0) {
        return -1;
    }
    if (um_shm_rcv_session_take_slot(&receiver->shm, UM_SHM_SLOT_BUSY_WAIT, &start) != 0) {
        um_log_limited(um_log_of_all(), um_clock_ns(), UM_LOG_WARNING, "Core-6976-114", "joining failed: %s",
                       um_errmsg());
        return -1;
    }
    um_smx_reader_init(&receiver->reader, &receiver->shm.segment, &receiver->shm.segment.slots[receiver->shm.slot],
                       start);
    return 0;
}

static void read_options(struct smx_receiver *receiver, const struct um_receiver_options *opts)
{
    receiver->activity_timeout_ns = um_ms_ns(opts->transport_lbtsmx_activity_timeout);
    receiver->count = receiver->shm.poller->base.env->opts->transport_lbtsmx_message_statistics_enabled != 0;
    if (opts->transport_lbtsmx_activity_timeout <= receiver->shm.segment.sm_interval_ms) {
        um_log(UM_LOG_WARNING, "Core-6976-152",
               "transport_lbtsmx_activity_timeout %lu: the source tells of itself every %llu ms only "
               "(transport_lbtsmx_sm_interval): a silent source will be taken for gone",
               opts->transport_lbtsmx_activity_timeout, (unsigned long long)receiver->shm.segment.sm_interval_ms);
    }
}

/* Attaches to the segment and takes a slot. */
static struct um_rcv_session *join(struct um_rcv_transport *transport, const struct um_receiver_options *opts,
                                   const struct um_rcv_session_key *key)
{
    struct um_smx_receivers *receivers = smx_of(um_shm_poller_of(transport));
    if (um_shm_poller_start(&receivers->poller, transport->env->opts->um_lbtsmx_receiver_thread_cpu) != 0) {
        return NULL;
    }
    show_context(receivers);
    struct smx_receiver *receiver = um_calloc(1, sizeof *receiver);
    if (receiver == NULL) {
        um_error_nomem("LBT-SMX receive session", sizeof *receiver);
        return NULL;
    }
    um_shm_rcv_session_init(&receiver->shm, &receivers->poller, &ops);
    receiver->msg = (struct um_lbmc_msg){.type = UM_LBMC_MESSAGE, .next_hdr = UM_LBMC_HDR_DATA};
    um_timer_init(&receiver->start_timer, on_start_timer);
    um_timer_init(&receiver->watch_timer, on_watch_timer);
    if (attach(receiver, key) != 0) {
        um_shm_rcv_session_destroy(&receiver->shm.base);
        return NULL;
    }
    read_options(receiver, opts);
    return &receiver->shm.base;
}

static bool nobody_there(const struct um_rcv_session_key *key)
{
    return !um_shm_exists(UM_SHM_SMX, key->session_id, (uint16_t)key->transport_id);
}

const struct um_rcv_transport_ops um_smx_rcv_transport = {
    .type = LBM_TRANSPORT_TYPE_LBTSMX,
    .name = "LBT-SMX",
    .join_kind = UM_RCV_JOIN_MEMORY,
    .create = create,
    .destroy = um_shm_poller_destroy,
    .key = um_rcv_key_by_transport_id,
    .join = join,
    .nobody_there = nobody_there,
};
