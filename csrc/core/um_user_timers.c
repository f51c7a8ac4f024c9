/* Application timers: id map and hand-over lists under one lock, the wheel part
 * on the loop. A timer is kept alive by the loop and, with an event queue, by
 * its event owner; a cancelled timer is off the map at once and never begins
 * another callback. */
#include "core/um_user_timers.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_list.h"
#include "base/um_map.h"
#include "base/um_mem.h"
#include "base/um_timer.h"
#include "core/um_context.h"
#include "core/um_event_queue.h"
#include "net/um_loop.h"

struct um_user_timers {
    pthread_mutex_t lock;
    lbm_context_t *ctx;
    struct um_loop *loop;
    struct um_u32_map by_id;  /* lock */
    uint32_t last_id;         /* lock */
    struct um_list fresh;     /* lock: to be armed by the loop */
    struct um_list cancelled; /* lock: to be let go by the loop */
    struct um_command command;
    atomic_int refs; /* the context, and each timer */
};

enum timer_state {
    TIMER_ARMED,   /* in the map; the loop has it, or is about to take it up */
    TIMER_EXPIRED, /* in the map; the loop has let go of it: its only event is queued or running */
    TIMER_OVER,    /* not in the map: cancelled, or expired for good; no callback begins any more */
};

struct um_user_timer {
    struct um_timer timer; /* [loop] */
    struct um_list node;   /* timers lock: fresh or cancelled */
    struct um_user_timers *timers;
    int id;
    lbm_timer_cb_proc proc;
    void *clientd;
    uint64_t delay_ns, requested_ns;
    bool recurring;
    enum timer_state state; /* timers lock */
    bool queued;            /* timers lock: the event is in the queue */
    bool enqueueing;        /* timers lock: the loop is putting it there, and may still be when it runs already */
    atomic_int refs;
    struct um_event event;
    struct um_event_owner owner;
};

static void um_user_timers_unref(struct um_user_timers *timers)
{
    if (atomic_fetch_sub_explicit(&timers->refs, 1, memory_order_acq_rel) == 1) {
        um_u32_map_clear(&timers->by_id);
        pthread_mutex_destroy(&timers->lock);
        um_free(timers);
    }
}

static void um_user_timer_unref(struct um_user_timer *ut)
{
    if (atomic_fetch_sub_explicit(&ut->refs, 1, memory_order_acq_rel) == 1) {
        struct um_user_timers *timers = ut->timers;
        um_free(ut);
        um_user_timers_unref(timers);
    }
}

static void um_user_timer_on_idle(struct um_event_owner *owner)
{
    um_user_timer_unref(UM_CONTAINER_OF(owner, struct um_user_timer, owner));
}

/* lock held: off the map, no more callbacks */
static void um_user_timer_end(struct um_user_timer *ut)
{
    ut->state = TIMER_OVER;
    um_u32_map_remove(&ut->timers->by_id, (uint32_t)ut->id);
}

/* ---- through an event queue ---- */

static void um_user_timer_event_run(struct um_event *event)
{
    struct um_user_timer *ut = UM_CONTAINER_OF(event, struct um_user_timer, event);
    struct um_user_timers *timers = ut->timers;
    pthread_mutex_lock(&timers->lock);
    ut->queued = false;
    pthread_mutex_unlock(&timers->lock);
    ut->proc(timers->ctx, ut->clientd);
    pthread_mutex_lock(&timers->lock);
    bool over = ut->state == TIMER_EXPIRED; /* TIMER_OVER: whoever cancelled it closes the owner */
    if (over) {
        um_user_timer_end(ut);
    }
    pthread_mutex_unlock(&timers->lock);
    if (over) {
        um_event_owner_close(&ut->owner, NULL, um_user_timer_on_idle);
    }
}

static void um_user_timer_event_discard(struct um_event *event)
{
    struct um_user_timer *ut = UM_CONTAINER_OF(event, struct um_user_timer, event);
    pthread_mutex_lock(&ut->timers->lock);
    ut->queued = false;
    pthread_mutex_unlock(&ut->timers->lock);
}

static const struct um_event_ops um_user_timer_event_ops = {.run = um_user_timer_event_run,
                                                            .discard = um_user_timer_event_discard,
                                                            .event_class = UM_EVENT_TIMER,
                                                            .after_closes = true};

/* ---- on the loop ---- */

/* lock held; from the scheduled time, missed periods are skipped */
static void um_user_timer_rearm(struct um_user_timer *ut, uint64_t now_ns)
{
    uint64_t due = ut->timer.due_ns + ut->delay_ns;
    if (due <= now_ns) {
        due = now_ns + ut->delay_ns - (now_ns - ut->timer.due_ns) % ut->delay_ns;
    }
    um_timer_arm(um_loop_wheel(ut->timers->loop), &ut->timer, due);
}

static void um_user_timer_fire(struct um_timer *timer, uint64_t now_ns)
{
    struct um_user_timer *ut = UM_CONTAINER_OF(timer, struct um_user_timer, timer);
    struct um_user_timers *timers = ut->timers;
    lbm_event_queue_t *evq = ut->owner.evq;
    lbm_timer_cb_proc proc = ut->proc;
    void *clientd = ut->clientd;
    bool once = !ut->recurring;
    pthread_mutex_lock(&timers->lock);
    if (ut->state != TIMER_ARMED) {
        pthread_mutex_unlock(&timers->lock);
        return;
    }
    if (!once) {
        um_user_timer_rearm(ut, now_ns);
    } else if (evq != NULL) {
        ut->state = TIMER_EXPIRED;
    } else {
        um_user_timer_end(ut);
    }
    bool enqueue = evq != NULL && !ut->queued;
    ut->queued |= enqueue;
    ut->enqueueing = enqueue;
    pthread_mutex_unlock(&timers->lock);
    if (enqueue) {
        um_event_enqueue(evq, &ut->owner, &ut->event);
        pthread_mutex_lock(&timers->lock);
        ut->enqueueing = false;
        pthread_mutex_unlock(&timers->lock);
    } else if (evq == NULL) {
        proc(timers->ctx, clientd); /* may cancel and free a recurring timer */
    }
    if (once) {
        um_user_timer_unref(ut);
    }
}

/* lock held. The due time counts from the call of lbm_schedule_timer, whose clock is not that of user time. */
static void um_user_timer_arm_fresh(struct um_user_timer *ut)
{
    struct um_loop *loop = ut->timers->loop;
    uint64_t from = um_loop_user_time(loop) ? um_loop_now(loop) : ut->requested_ns;
    um_timer_arm(um_loop_wheel(loop), &ut->timer, from + ut->delay_ns);
}

/* Take over what other threads handed in. [loop] */
static void um_user_timers_sync(struct um_user_timers *timers)
{
    struct um_list gone, *node;
    um_list_init(&gone);
    pthread_mutex_lock(&timers->lock);
    while ((node = um_list_first(&timers->fresh)) != NULL) {
        um_list_remove(node);
        um_user_timer_arm_fresh(UM_CONTAINER_OF(node, struct um_user_timer, node));
    }
    while ((node = um_list_first(&timers->cancelled)) != NULL) {
        struct um_user_timer *ut = UM_CONTAINER_OF(node, struct um_user_timer, node);
        um_list_remove(node);
        um_timer_cancel(um_loop_wheel(timers->loop), &ut->timer);
        um_list_push_back(&gone, node);
    }
    pthread_mutex_unlock(&timers->lock);
    while ((node = um_list_first(&gone)) != NULL) {
        um_list_remove(node);
        um_user_timer_unref(UM_CONTAINER_OF(node, struct um_user_timer, node));
    }
}

static void um_user_timers_on_command(struct um_command *cmd)
{
    um_user_timers_sync(UM_CONTAINER_OF(cmd, struct um_user_timers, command));
}

static void um_user_timers_hand_over(struct um_user_timers *timers)
{
    if (um_loop_on_thread(timers->loop)) {
        um_user_timers_sync(timers);
    } else {
        um_loop_post(timers->loop, &timers->command);
    }
}

/* ---- any thread ---- */

static struct um_user_timer *um_user_timer_new(struct um_user_timers *timers, lbm_timer_cb_proc proc, void *clientd,
                                               lbm_event_queue_t *evq, uint64_t delay_ns, bool recurring)
{
    struct um_user_timer *ut = um_calloc(1, sizeof *ut);
    if (ut == NULL) {
        um_error_nomem("timer", sizeof *ut);
        return NULL;
    }
    um_timer_init(&ut->timer, um_user_timer_fire);
    um_list_init(&ut->node);
    um_event_owner_init(&ut->owner, evq);
    um_list_init(&ut->event.node);
    ut->event.ops = &um_user_timer_event_ops;
    ut->timers = timers;
    ut->proc = proc;
    ut->clientd = clientd;
    ut->recurring = recurring;
    ut->delay_ns = recurring && delay_ns == 0 ? UM_NS_PER_MS : delay_ns; /* a period of 0 would never let go */
    ut->requested_ns = um_clock_ns();
    atomic_init(&ut->refs, evq != NULL ? 2 : 1);
    atomic_fetch_add_explicit(&timers->refs, 1, memory_order_relaxed);
    return ut;
}

/* lock held: next free id, 1..INT_MAX */
static int um_user_timers_next_id(struct um_user_timers *timers)
{
    do {
        timers->last_id = timers->last_id < INT_MAX ? timers->last_id + 1 : 1;
    } while (um_u32_map_get(&timers->by_id, timers->last_id) != NULL);
    return (int)timers->last_id;
}

int um_user_timer_schedule(struct um_user_timers *timers, lbm_timer_cb_proc proc, void *clientd, lbm_event_queue_t *evq,
                           uint64_t delay_ns, bool recurring)
{
    struct um_user_timer *ut = um_user_timer_new(timers, proc, clientd, evq, delay_ns, recurring);
    if (ut == NULL) {
        return -1;
    }
    pthread_mutex_lock(&timers->lock);
    int id = ut->id = um_user_timers_next_id(timers);
    int rc = um_u32_map_put(&timers->by_id, (uint32_t)id, ut);
    if (rc == 0) {
        um_list_push_back(&timers->fresh, &ut->node);
    }
    pthread_mutex_unlock(&timers->lock);
    if (rc < 0) {
        um_free(ut);
        um_user_timers_unref(timers);
        return um_error_nomem("timer map", 0);
    }
    um_user_timers_hand_over(timers);
    return id;
}

static int um_user_timers_barrier(void *arg)
{
    return 0;
}

/* lock held: what the loop has of it is handed to the loop, to be let go */
static void um_user_timer_withdraw(struct um_user_timer *ut)
{
    if (ut->state == TIMER_ARMED) {
        um_list_remove(&ut->node);
        um_list_push_back(&ut->timers->cancelled, &ut->node);
    }
    um_user_timer_end(ut);
}

/* No event queue, or no such timer: the callback can only be in progress on the loop. */
static void um_user_timer_report(struct um_user_timers *timers, const lbm_event_queue_cancel_cb_info_t *cbinfo)
{
    if (cbinfo != NULL && cbinfo->cbproc != NULL) {
        (void)um_loop_call(timers->loop, um_user_timers_barrier, NULL);
        cbinfo->cbproc(0, cbinfo->clientd);
    }
}

int um_user_timer_cancel(struct um_user_timers *timers, int id, void **clientdp,
                         lbm_event_queue_cancel_cb_info_t *cbinfo)
{
    if (um_event_cancel_check(cbinfo, "lbm_cancel_timer_ex") < 0) {
        return -1;
    }
    pthread_mutex_lock(&timers->lock);
    struct um_user_timer *ut = id > 0 ? um_u32_map_get(&timers->by_id, (uint32_t)id) : NULL;
    void *clientd = ut != NULL ? ut->clientd : NULL;
    bool queued = ut != NULL && ut->owner.evq != NULL;
    bool enqueueing = ut != NULL && ut->enqueueing;
    if (ut != NULL) {
        um_user_timer_withdraw(ut);
    }
    pthread_mutex_unlock(&timers->lock);
    if (enqueueing) { /* once this call is over the application may delete the queue */
        (void)um_loop_call(timers->loop, um_user_timers_barrier, NULL);
    }
    if (clientdp != NULL) {
        *clientdp = clientd;
    }
    if (ut != NULL) {
        um_user_timers_hand_over(timers);
    }
    if (queued) {
        um_event_owner_close(&ut->owner, cbinfo, um_user_timer_on_idle); /* kept alive by the owner until here */
    } else {
        um_user_timer_report(timers, cbinfo);
    }
    return 0;
}

struct um_user_timers *um_user_timers_create(lbm_context_t *ctx)
{
    struct um_user_timers *timers = um_calloc(1, sizeof *timers);
    if (timers == NULL) {
        um_error_nomem("timers", sizeof *timers);
        return NULL;
    }
    pthread_mutex_init(&timers->lock, NULL);
    timers->ctx = ctx;
    timers->loop = ctx->loop;
    um_u32_map_init(&timers->by_id);
    um_list_init(&timers->fresh);
    um_list_init(&timers->cancelled);
    um_command_init(&timers->command, um_user_timers_on_command);
    atomic_init(&timers->refs, 1);
    return timers;
}

void um_user_timers_destroy(struct um_user_timers *timers)
{
    if (timers == NULL) {
        return;
    }
    size_t cursor = 0;
    pthread_mutex_lock(&timers->lock);
    while (timers->by_id.count > 0) {
        uint32_t id;
        void *value;
        if (!um_u32_map_next(&timers->by_id, &cursor, &id, &value)) {
            cursor = 0; /* removals move entries */
            continue;
        }
        pthread_mutex_unlock(&timers->lock);
        um_user_timer_cancel(timers, (int)id, NULL, NULL);
        pthread_mutex_lock(&timers->lock);
    }
    pthread_mutex_unlock(&timers->lock);
    um_user_timers_sync(timers);
    um_loop_unpost(timers->loop, &timers->command);
    um_user_timers_unref(timers);
}
