/* Receiving LBT-SMX: sessions, and the busy thread that delivers their messages
 * where they lie. Sessions are made, watched and ended on the loop; the thread
 * polls them as a guest of the loop. See um_smx_receiver.h. */
#include "transport/smx/um_smx_receiver.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "transport/shm/um_shm_spin.h"
#include "transport/shm/um_shm_thread.h"
#include "transport/smx/um_smx_ring.h"

#define WATCH_NS UM_NS_PER_SEC
#define LOG_INTERVAL_NS UM_NS_PER_SEC
#define BURST 256  /* messages of a session before the others have their turn */
#define LINGER 256 /* looks at an empty ring before a read ends, when there is but one ring and no batch to hand on */
#define QUICK_POLLS 16  /* polls between two looks at anything but the rings */
#define TICK_EVERY 4    /* rounds of so many polls between two looks at the clock; power of two */
#define STAY_ROUNDS 256 /* before the turn goes round, so that timers are seen to */
#define STATE_EVERY 64  /* idle rounds between two looks at the state of the segments; power of two */

/* The polling thread and what it polls. */
struct um_smx_receivers {
    struct um_shm_thread thread; /* first */
    struct um_transport_env *env;
    struct um_list polled;                /* [loop] smx_receiver.node */
    bool started;                         /* [loop] */
    uint64_t wall_ns;                     /* [loop] time of day at the last look at the clock */
    unsigned linger;                      /* [loop] looks at an empty ring before a read ends */
    struct um_shm_control_object control; /* [loop] shows the context to tools */
    pthread_mutex_t lock;
    pthread_cond_t wake; /* there is something to poll, or stop */
    int polled_count;    /* lock */
};

struct smx_receiver {
    struct um_rcv_session base; /* first */
    struct um_smx_receivers *receivers;
    struct um_list node; /* receivers->polled, from the first message on */
    struct um_shm_segment segment;
    int slot;
    bool count;            /* transport_lbtsmx_message_statistics_enabled */
    uint64_t unknown_told; /* of reader.unknown, counted as malformed */
    struct um_log_limit malformed_limit;
    struct um_smx_reader reader;
    struct um_lbmc_msg msg; /* as the streams expect it; only the changing fields are written */
    struct um_timer start_timer, watch_timer;
    uint64_t activity_timeout_ns;
    uint64_t last_activity, last_pos; /* as seen by the watch */
    uint64_t last_active_ns;
};

static struct smx_receiver *receiver_of(struct um_rcv_session *session)
{
    return UM_CONTAINER_OF(session, struct smx_receiver, base);
}

static struct um_loop *loop_of(const struct smx_receiver *receiver)
{
    return receiver->receivers->env->loop;
}

/* ---- what is polled ---- */

static void set_polled(struct smx_receiver *receiver, bool polled)
{
    struct um_smx_receivers *receivers = receiver->receivers;
    if (polled == !um_list_empty(&receiver->node)) {
        return;
    }
    if (polled) {
        um_list_push_back(&receivers->polled, &receiver->node);
    } else {
        um_list_remove(&receiver->node);
    }
    pthread_mutex_lock(&receivers->lock);
    receivers->polled_count += polled ? 1 : -1;
    pthread_cond_signal(&receivers->wake);
    pthread_mutex_unlock(&receivers->lock);
}

/* ---- messages ---- */

static void tell_unknown(struct smx_receiver *receiver, uint64_t now_ns)
{
    if (receiver->reader.unknown == receiver->unknown_told) {
        return;
    }
    receiver->base.msgs_malformed += receiver->reader.unknown - receiver->unknown_told;
    receiver->unknown_told = receiver->reader.unknown;
    um_log_limited(&receiver->malformed_limit, now_ns, LOG_INTERVAL_NS, UM_LOG_WARNING, "Core-6976-120",
                   "%s: records of an unknown type are passed over", receiver->base.source);
}

static void corrupt(struct smx_receiver *receiver, uint64_t now_ns)
{
    um_log_limited(&receiver->malformed_limit, now_ns, LOG_INTERVAL_NS, UM_LOG_ERR, "Core-6976-147",
                   "%s: what lies at position %llu of the ring is no record: session left", receiver->base.source,
                   (unsigned long long)receiver->reader.pos);
    um_rcv_session_malformed(&receiver->base);
    um_rcv_session_lost(&receiver->base, now_ns);
}

/* By the long way: the first of a read, several receivers, event queues, losses. */
static __attribute__((noinline)) bool deliver_by_message(struct smx_receiver *receiver,
                                                         const struct um_smx_message *message, uint64_t now_ns)
{
    receiver->msg.tidx = message->topic_idx;
    receiver->msg.sqn = message->sqn;
    receiver->msg.payload.ptr = message->data;
    receiver->msg.payload.len = message->len;
    return um_rcv_session_message(&receiver->base, &receiver->msg, NULL, now_ns);
}

/* The short way, for the stream of the last message. Returns how many were delivered. */
static inline unsigned deliver_from_ring(struct smx_receiver *receiver, unsigned most, uint64_t wall_ns)
{
    struct um_rcv_session *session = &receiver->base;
    struct um_rcv_stream *stream = session->last_stream;
    uint64_t bytes = 0;
    if (session->attention || stream == NULL || stream->events->on_ring == NULL) {
        return 0;
    }
    if (!stream->no_read_end && um_list_empty(&stream->touched)) {
        um_list_push_back(&session->touched, &stream->touched);
    }
    struct um_list *others = &receiver->receivers->polled;
    bool alone = others->next == &receiver->node && others->prev == &receiver->node;
    receiver->reader.linger = alone && stream->no_read_end ? receiver->receivers->linger : 0;
    unsigned count = stream->events->on_ring(stream, &receiver->reader, most, wall_ns, &bytes);
    session->msgs_rcved += count;
    session->bytes_rcved += bytes + (uint64_t)count * UM_SMX_RECORD_HEADER;
    return count;
}

/* Deliver what is there, at most a burst. The caller has found the session not idle. False: it ended. */
static bool deliver_burst(struct smx_receiver *receiver, uint64_t now_ns)
{
    struct um_rcv_session *session = &receiver->base;
    struct um_smx_message message;
    enum um_smx_read rc = UM_SMX_IDLE;
    bool alive = true;
    uint64_t wall_ns = receiver->receivers->wall_ns;
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
    uint64_t most = receiver->reader.pos + 2 * receiver->segment.ring_len;
    receiver->receivers->wall_ns = um_loop_wall_now(loop_of(receiver));
    while (has_something(receiver) && receiver->reader.pos < most) {
        if (!deliver_burst(receiver, now_ns)) {
            return;
        }
    }
    um_rcv_session_lost(&receiver->base, now_ns);
}

static bool closed_by_source(const struct smx_receiver *receiver)
{
    return atomic_load_explicit(&receiver->segment.header->state, memory_order_acquire) != UM_SHM_READY;
}

/* ---- the thread ---- */

/* Every session once. */
static inline bool poll_sessions(struct um_smx_receivers *receivers, uint64_t now_ns)
{
    struct um_list *it, *next;
    bool busy = false;
    UM_LIST_FOREACH_SAFE(it, next, &receivers->polled)
    {
        struct smx_receiver *receiver = UM_CONTAINER_OF(it, struct smx_receiver, node);
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
    UM_LIST_FOREACH(it, &receivers->polled)
    {
        struct smx_receiver *receiver = UM_CONTAINER_OF(it, struct smx_receiver, node);
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
    struct um_loop *loop = receivers->env->loop;
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
        if (um_list_empty(&receivers->polled)) {
            return;
        }
    }
}

/* Without sessions the thread sleeps. */
static void wait_for_sessions(struct um_smx_receivers *receivers)
{
    pthread_mutex_lock(&receivers->lock);
    while (receivers->polled_count == 0 && !atomic_load_explicit(&receivers->thread.stop, memory_order_acquire)) {
        pthread_cond_wait(&receivers->wake, &receivers->lock);
    }
    pthread_mutex_unlock(&receivers->lock);
}

static void thread_main(struct um_shm_thread *thread)
{
    struct um_smx_receivers *receivers = UM_CONTAINER_OF(thread, struct um_smx_receivers, thread);
    struct um_loop *loop = receivers->env->loop;
    struct um_shm_spin spin = {0};
    while (!atomic_load_explicit(&thread->stop, memory_order_acquire)) {
        wait_for_sessions(receivers);
        um_loop_guest_enter(loop);
        if (!atomic_load_explicit(&thread->stop, memory_order_acquire)) {
            poll_for_a_while(receivers, &spin);
        }
        um_loop_guest_leave(loop);
    }
}

static void free_receivers(struct um_smx_receivers *receivers)
{
    pthread_cond_destroy(&receivers->wake);
    pthread_mutex_destroy(&receivers->lock);
    um_free(receivers);
}

static void thread_joined(struct um_shm_thread *thread)
{
    free_receivers(UM_CONTAINER_OF(thread, struct um_smx_receivers, thread));
}

struct um_smx_receivers *um_smx_receivers_create(struct um_transport_env *env)
{
    struct um_smx_receivers *receivers = um_calloc(1, sizeof *receivers);
    if (receivers == NULL) {
        um_error_nomem("LBT-SMX receivers", sizeof *receivers);
        return NULL;
    }
    receivers->env = env;
    um_list_init(&receivers->polled);
    pthread_mutex_init(&receivers->lock, NULL);
    pthread_cond_init(&receivers->wake, NULL);
    return receivers;
}

void um_smx_receivers_destroy(struct um_smx_receivers *receivers)
{
    if (receivers == NULL) {
        return;
    }
    um_shm_control_close(&receivers->control);
    if (!receivers->started) {
        free_receivers(receivers);
        return;
    }
    pthread_mutex_lock(&receivers->lock);
    atomic_store_explicit(&receivers->thread.stop, true, memory_order_release);
    pthread_cond_signal(&receivers->wake);
    pthread_mutex_unlock(&receivers->lock);
}

static int start_thread(struct um_smx_receivers *receivers)
{
    if (receivers->started) {
        return 0;
    }
    if (um_shm_thread_start(receivers->env, &receivers->thread, "um:lbtsmx", thread_main, thread_joined) != 0) {
        return -1;
    }
    receivers->started = true;
    um_shm_thread_pin(&receivers->thread, receivers->env->opts->um_lbtsmx_receiver_thread_cpu,
                      "um_lbtsmx_receiver_thread_cpu");
    if (um_shm_control_create(&receivers->control, UM_SHM_SMX) != 0) {
        um_log(UM_LOG_WARNING, "Core-6976-148", "tools will not see this context: %s", um_errmsg());
    }
    return 0;
}

/* ---- joining, watching, leaving [loop] ---- */

static void on_start_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct smx_receiver *receiver = UM_CONTAINER_OF(timer, struct smx_receiver, start_timer);
    um_rcv_session_begin(&receiver->base);
    if (!um_smx_reader_skip(&receiver->reader)) {
        corrupt(receiver, now_ns);
    } else if (um_rcv_session_activity(&receiver->base)) { /* BOS: what is sent from now on arrives */
        set_polled(receiver, true);
    }
    um_rcv_session_end(&receiver->base, now_ns);
}

/* Did the session message, or a message, come since the last look? */
static bool was_active(struct smx_receiver *receiver)
{
    uint64_t activity = atomic_load_explicit(&receiver->segment.header->activity, memory_order_acquire);
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
    bool alive = um_shm_source_alive(&receiver->segment); /* first: a source that closes, dies afterwards */
    if (closed_by_source(receiver)) {
        end_session(receiver, now_ns);
        return;
    }
    if (!alive) {
        um_log(UM_LOG_NOTICE, "Core-6976-149", "%s: the process of the source is gone: session ended",
               receiver->base.source);
        um_shm_unlink(&receiver->segment);
        end_session(receiver, now_ns);
        return;
    }
    if (now_ns - receiver->last_active_ns >= receiver->activity_timeout_ns) {
        um_log(UM_LOG_INFO, "Core-6976-151",
               "%s: no activity for %llu ms (transport_lbtsmx_activity_timeout): session ended", receiver->base.source,
               (unsigned long long)(receiver->activity_timeout_ns / UM_NS_PER_MS));
        um_rcv_session_lost(&receiver->base, now_ns);
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

static void let_go(struct smx_receiver *receiver)
{
    if (receiver->slot >= 0) {
        um_shm_slot_leave(&receiver->segment, receiver->slot);
        receiver->slot = -1;
    }
    um_shm_close(&receiver->segment);
}

static void op_stop(struct um_rcv_session *session)
{
    struct smx_receiver *receiver = receiver_of(session);
    struct um_timer_wheel *wheel = um_loop_wheel(loop_of(receiver));
    um_timer_cancel(wheel, &receiver->start_timer);
    um_timer_cancel(wheel, &receiver->watch_timer);
    set_polled(receiver, false);
    let_go(receiver);
}

static void op_destroy(struct um_rcv_session *session)
{
    struct smx_receiver *receiver = receiver_of(session);
    let_go(receiver);
    um_free(receiver);
}

static void op_fill_stats(const struct um_rcv_session *session, lbm_rcv_transport_stats_t *out)
{
    const struct smx_receiver *receiver = receiver_of((struct um_rcv_session *)session);
    out->type = LBM_TRANSPORT_STAT_LBTSMX;
    if (receiver->count) {
        out->transport.lbtsmx.msgs_rcved = (lbm_ulong_t)session->msgs_rcved;
        out->transport.lbtsmx.bytes_rcved = (lbm_ulong_t)session->bytes_rcved;
        out->transport.lbtsmx.lbm_msgs_rcved = (lbm_ulong_t)session->msgs_rcved;
        out->transport.lbtsmx.lbm_msgs_no_topic_rcved = (lbm_ulong_t)session->msgs_no_topic;
    }
}

static const struct um_rcv_transport_ops ops = {
    .start = op_start, .stop = op_stop, .destroy = op_destroy, .fill_stats = op_fill_stats};

static int join(struct smx_receiver *receiver, const struct um_rcv_session_key *key)
{
    uint64_t start;
    if (um_shm_attach(&receiver->segment, UM_SHM_SMX, key->session_id, (uint16_t)key->transport_id) != 0) {
        return -1;
    }
    receiver->slot =
        um_shm_slot_take(&receiver->segment, UM_SHM_SLOT_BUSY_WAIT, receiver->receivers->control.session_id, &start);
    if (receiver->slot < 0) {
        um_log(UM_LOG_WARNING, "Core-6976-114", "joining failed: %s", um_errmsg());
        return -1;
    }
    um_smx_reader_init(&receiver->reader, &receiver->segment, &receiver->segment.slots[receiver->slot], start);
    return 0;
}

static void read_options(struct smx_receiver *receiver, const struct um_receiver_options *opts)
{
    receiver->activity_timeout_ns = opts->transport_lbtsmx_activity_timeout * UM_NS_PER_MS;
    receiver->count = receiver->receivers->env->opts->transport_lbtsmx_message_statistics_enabled != 0;
    if (opts->transport_lbtsmx_activity_timeout <= receiver->segment.sm_interval_ms) {
        um_log(UM_LOG_WARNING, "Core-6976-152",
               "transport_lbtsmx_activity_timeout %lu: the source tells of itself every %llu ms only "
               "(transport_lbtsmx_sm_interval): a silent source will be taken for gone",
               opts->transport_lbtsmx_activity_timeout, (unsigned long long)receiver->segment.sm_interval_ms);
    }
}

struct um_rcv_session *um_smx_receiver_create(struct um_smx_receivers *receivers,
                                              const struct um_receiver_options *opts,
                                              const struct um_rcv_session_key *key)
{
    if (start_thread(receivers) != 0) {
        return NULL;
    }
    struct smx_receiver *receiver = um_calloc(1, sizeof *receiver);
    if (receiver == NULL) {
        um_error_nomem("LBT-SMX receive session", sizeof *receiver);
        return NULL;
    }
    receiver->base.ops = &ops;
    receiver->receivers = receivers;
    receiver->slot = -1;
    um_list_init(&receiver->node);
    receiver->msg = (struct um_lbmc_msg){.type = UM_LBMC_MESSAGE, .next_hdr = UM_LBMC_HDR_DATA};
    um_timer_init(&receiver->start_timer, on_start_timer);
    um_timer_init(&receiver->watch_timer, on_watch_timer);
    if (join(receiver, key) != 0) {
        let_go(receiver);
        um_free(receiver);
        return NULL;
    }
    read_options(receiver, opts);
    return &receiver->base;
}
