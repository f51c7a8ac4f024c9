/* The merge of several contexts: members in and out, the line of what it gives,
 * and who calls the application. See um_hfx.h. On the threads of the members'
 * contexts; with the lock unless noted. */
#include <string.h>

#include "base/um_clock.h"
#include "core/um_hfx.h"
#include "core/um_rcv_private.h"

#define CALLS_AT_ONCE 64 /* then the loop of who delivers gets on, and comes back to the rest */

/* ---- reports ---- */

static struct um_hfx_report *report(lbm_hfx_t *hfx)
{
    hfx->report.any = true;
    return &hfx->report;
}

/* Without the lock: the application may read the log in a callback. */
static void log_report(lbm_hfx_t *hfx, const struct um_hfx_report *r)
{
    uint64_t now_ns = um_clock_ns();
    unsigned long long number = r->number;
    if (r->width) {
        um_log_limited(um_log_of(r->source), now_ns, UM_LOG_WARNING, "Core-5402-1",
                       "topic [%s] source [%s]: hot failover number %llu of another width than those before: dropped",
                       hfx->topic, r->source, number);
    }
    if (r->no_room || r->no_memory) {
        um_log_limited(um_log_of(hfx->topic), now_ns, UM_LOG_ERR, "Core-5402-11",
                       "topic [%s]: out of memory for a message that waits: hot failover number %llu %s", hfx->topic,
                       number, r->no_room ? "counts as missing" : "is not delivered");
    }
    if (r->early) {
        um_log_limited(um_log_of(hfx->topic), now_ns, UM_LOG_WARNING, "Core-5402-12",
                       "topic [%s]: a source runs ahead over gaps in its hot failover numbers: more messages may not "
                       "wait (delivery_control_maximum_total_map_entries, 64 MiB); gaps are given up early",
                       hfx->topic);
    }
    if (r->line) {
        um_log_limited(um_log_of(r->source), now_ns, UM_LOG_WARNING, "Core-5402-13",
                       "topic [%s] source [%s]: 64 MiB of messages wait for the callback in progress: hot failover "
                       "number %llu is refused and counts as missing; the callback must return sooner, or use an event "
                       "queue",
                       hfx->topic, r->source, number);
    }
}

/* ---- the line ---- */

static void hold_receiver(lbm_rcv_t *rcv)
{
    atomic_fetch_add_explicit(&rcv->refs, 1, memory_order_relaxed);
}

static size_t line_size(const struct um_msg *msg)
{
    return um_msg_is(msg, UM_MSG_TEMPLATE) ? 0 : um_msg_kept_size(msg);
}

/* With a hold on its receiver. */
static void put(lbm_hfx_t *hfx, struct um_msg *msg)
{
    hfx->line_bytes += line_size(msg);
    um_list_push_back(&hfx->line, &msg->event.node);
}

static struct um_msg *take_first(lbm_hfx_t *hfx)
{
    struct um_msg *msg = UM_CONTAINER_OF(um_list_first(&hfx->line), struct um_msg, event.node);
    um_list_remove(&msg->event.node);
    hfx->line_bytes -= line_size(msg);
    return msg;
}

/* What comes now is delivered by the thread that has brought it, before it goes back to its loop. */
static bool goes_at_once(const lbm_hfx_t *hfx)
{
    return !hfx->delivering && um_list_empty(&hfx->line);
}

/* A copy that stays, of what came by the same receiver; any thread. NULL: no memory. */
static struct um_msg *keep(const struct um_msg *msg)
{
    struct um_msg *copy = um_msg_clone_kept(msg);
    if (copy != NULL) {
        copy->rcv = msg->rcv;
        hold_receiver(copy->rcv);
    }
    return copy;
}

/* Any thread. */
static void drop(struct um_msg *msg)
{
    lbm_rcv_t *rcv = msg->rcv;
    um_msg_release(msg);
    um_rcv_unref(rcv);
}

/* A template where it can be, a copy of it otherwise. */
static void put_template(lbm_hfx_t *hfx, struct um_msg *msg)
{
    if (goes_at_once(hfx)) {
        hold_receiver(msg->rcv);
        put(hfx, msg);
        return;
    }
    struct um_msg *copy = keep(msg);
    if (copy != NULL) {
        put(hfx, copy);
        return;
    }
    atomic_fetch_add_explicit(&msg->rcv->not_queued, 1, memory_order_relaxed);
    report(hfx)->no_memory = true;
}

/* ---- what the merge gives ---- */

static void on_deliver(void *user, void *given, const struct um_lbmc_hf *told, bool duplicate)
{
    lbm_hfx_t *hfx = user;
    struct um_msg *msg = given;
    if (duplicate) {
        msg->pub.flags |= LBM_MSG_FLAG_HF_DUPLICATE;
    }
    if (um_msg_is(msg, UM_MSG_TEMPLATE)) {
        put_template(hfx, msg);
    } else {
        put(hfx, msg); /* it was held: on_let_go() leaves it to the line */
    }
}

/* An event under the source that was heard last, through the member that is inside. */
static void tell(lbm_hfx_t *hfx, int type, uint64_t sqn, uint32_t count)
{
    lbm_rcv_t *rcv = hfx->inside->rcv;
    uint64_t wall_ns = um_loop_wall_now(rcv->ctx->loop);
    struct um_msg *msg = um_msg_create(hfx->heard, hfx->topic);
    if (msg == NULL) {
        atomic_fetch_add_explicit(&rcv->not_queued, 1, memory_order_relaxed);
        report(hfx)->no_memory = true;
        return;
    }
    msg->pub.type = type;
    msg->pub.tsp.tv_sec = (long)(wall_ns / UM_NS_PER_SEC);
    msg->pub.tsp.tv_usec = (long)(wall_ns % UM_NS_PER_SEC / 1000);
    msg->lost = count;
    um_rcv_hf_number(msg, sqn, hfx->merge.wide);
    msg->rcv = rcv;
    hold_receiver(rcv);
    put(hfx, msg);
}

static void on_reset(void *user, void *msg, const struct um_lbmc_hf *told)
{
    tell(user, LBM_MSG_HF_RESET, told->sqn, 0);
}

static void on_loss(void *user, uint64_t sqn)
{
    tell(user, LBM_MSG_UNRECOVERABLE_LOSS, sqn, 0);
}

static void on_burst_loss(void *user, uint64_t first, uint64_t count)
{
    tell(user, LBM_MSG_UNRECOVERABLE_LOSS_BURST, first, (uint32_t)count);
}

static void *on_hold(void *user, void *msg)
{
    return keep(msg);
}

static void on_let_go(void *user, void *held)
{
    struct um_msg *msg = held;
    if (um_list_empty(&msg->event.node)) {
        drop(msg);
    }
}

static void on_set_timer(void *user, uint64_t due_ns)
{
    ((lbm_hfx_t *)user)->due_ns = due_ns;
}

static void on_discarded(void *user, enum um_hf_discard why, uint64_t sqn, uint64_t now_ns)
{
    lbm_hfx_t *hfx = user;
    if (why == UM_HF_WIDTH || why == UM_HF_NO_ROOM) {
        struct um_hfx_report *r = report(hfx);
        r->width |= why == UM_HF_WIDTH;
        r->no_room |= why == UM_HF_NO_ROOM;
        r->number = sqn;
    }
}

const struct um_hf_ops um_hfx_ops = {.deliver = on_deliver,
                                     .reset = on_reset,
                                     .loss = on_loss,
                                     .burst_loss = on_burst_loss,
                                     .hold = on_hold,
                                     .let_go = on_let_go,
                                     .set_timer = on_set_timer,
                                     .discarded = on_discarded};

/* ---- calls ---- */

static bool is_open(const lbm_hfx_rcv_t *member)
{
    return !um_list_empty(&member->node);
}

/* Whom the application is to see: by whom it came, or, when that one is being deleted, another one. NULL: nobody. */
static lbm_hfx_rcv_t *stand_in(const lbm_hfx_t *hfx, lbm_hfx_rcv_t *member)
{
    if (is_open(member)) {
        return member;
    }
    struct um_list *first = um_list_first(&hfx->members);
    return first != NULL ? UM_CONTAINER_OF(first, lbm_hfx_rcv_t, node) : NULL;
}

/* Without the lock. What the application retains of a template is replaced, by its own thread, which is this one. */
static void call(lbm_hfx_rcv_t *through, struct um_msg *msg)
{
    bool template = um_msg_is(msg, UM_MSG_TEMPLATE);
    lbm_rcv_t *came_by = msg->rcv, *rcv = through->rcv;
    if (rcv != came_by) {
        msg->origin = NULL; /* a session that this one cannot have left unread */
    }
    um_msg_mark(msg, UM_MSG_DELIVERING, true);
    um_rcv_hand_over(rcv, msg);
    um_msg_mark(msg, UM_MSG_DELIVERING, false);
    if (!template && rcv->collector != NULL) {
        um_collector_read_end(rcv->collector);
    }
    if (template && msg->replacement != NULL) {
        came_by->hf->msg = um_msg_template_next(msg);
    }
}

static void call_first(lbm_hfx_t *hfx)
{
    struct um_msg *msg = take_first(hfx);
    lbm_rcv_t *came_by = msg->rcv;
    bool template = um_msg_is(msg, UM_MSG_TEMPLATE);
    lbm_hfx_rcv_t *through = stand_in(hfx, came_by->hf->member);
    hfx->calling = through;
    hfx->refused += through == NULL;
    um_lock_give(&hfx->lock);
    if (through != NULL) {
        call(through, msg);
    }
    if (!template) {
        um_msg_release(msg);
    }
    um_rcv_unref(came_by);
    um_lock_take(&hfx->lock);
    hfx->calling = NULL;
    if (hfx->awaited > 0) {
        um_condition_signal_all(&hfx->called);
    }
}

void um_hfx_have_looked(lbm_hfx_t *hfx)
{
    struct um_list *first = um_list_first(&hfx->members);
    if (first != NULL) {
        lbm_hfx_rcv_t *member = UM_CONTAINER_OF(first, lbm_hfx_rcv_t, node);
        um_loop_post(member->rcv->ctx->loop, &member->look);
    }
}

/* Gives the lock back. */
static void deliver_and_give(lbm_hfx_t *hfx, lbm_hfx_rcv_t *member)
{
    if (!hfx->delivering && !um_list_empty(&hfx->line)) {
        hfx->delivering = true;
        for (int i = 0; i < CALLS_AT_ONCE && !um_list_empty(&hfx->line); i++) {
            call_first(hfx);
        }
        hfx->delivering = false;
        if (!um_list_empty(&hfx->line) && is_open(member)) {
            um_loop_post(member->rcv->ctx->loop, &member->look);
        } else if (!um_list_empty(&hfx->line)) {
            um_hfx_have_looked(hfx);
        }
    }
    struct um_hfx_report told = {.any = hfx->report.any};
    if (told.any) {
        told = hfx->report;
        memcpy(told.source, hfx->heard, sizeof told.source);
        hfx->report = (struct um_hfx_report){.any = false};
    }
    um_lock_give(&hfx->lock);
    if (told.any) {
        log_report(hfx, &told);
    }
}

/* ---- the merge ---- */

struct um_hf *um_hfx_enter(lbm_hfx_rcv_t *member)
{
    lbm_hfx_t *hfx = member->hfx;
    uint64_t now_ns = um_loop_now(member->rcv->ctx->loop);
    um_lock_take(&hfx->lock);
    hfx->inside = member;
    hfx->now_ns = now_ns > hfx->now_ns ? now_ns : hfx->now_ns;
    return &hfx->merge;
}

/* The next look at gaps, in the rhythm of delivery_control_loss_check_interval. */
static void keep_timer(const lbm_hfx_t *hfx, lbm_hfx_rcv_t *member)
{
    uint64_t at_ns = UM_NEVER;
    if (hfx->due_ns != UM_NEVER && hfx->check_ns != 0) {
        at_ns = (hfx->due_ns + hfx->check_ns - 1) / hfx->check_ns * hfx->check_ns;
    }
    if (at_ns == member->timer_ns) {
        return;
    }
    member->timer_ns = at_ns;
    if (at_ns == UM_NEVER) {
        um_timer_cancel(um_loop_wheel(member->rcv->ctx->loop), &member->timer);
    } else {
        um_timer_arm(um_loop_wheel(member->rcv->ctx->loop), &member->timer, at_ns);
    }
}

void um_hfx_leave(lbm_hfx_rcv_t *member)
{
    lbm_hfx_t *hfx = member->hfx;
    if (hfx->check_ns == 0 && hfx->due_ns <= hfx->now_ns) {
        um_hf_on_timer(&hfx->merge, hfx->now_ns);
    }
    if (hfx->merge.stats.given_early != hfx->early_told) {
        hfx->early_told = hfx->merge.stats.given_early;
        report(hfx)->early = true;
    }
    keep_timer(hfx, member);
    hfx->inside = NULL;
    deliver_and_give(hfx, member);
}

static bool has_room(lbm_hfx_t *hfx, uint64_t number)
{
    if (hfx->line_bytes <= UM_HFX_UNCALLED_BYTES_MAX) {
        return true;
    }
    hfx->refused++;
    report(hfx)->line = true;
    hfx->report.number = number;
    return false;
}

bool um_hfx_takes(lbm_hfx_rcv_t *member, const struct um_msg *msg, uint64_t number)
{
    memcpy(member->hfx->heard, msg->pub.source, sizeof member->hfx->heard);
    return has_room(member->hfx, number);
}

static void pass_own(lbm_hfx_rcv_t *member, struct um_msg *msg)
{
    lbm_hfx_t *hfx = member->hfx;
    msg->rcv = member->rcv;
    hold_receiver(msg->rcv);
    um_lock_take(&hfx->lock);
    if (has_room(hfx, 0)) {
        put(hfx, msg);
        msg = NULL;
    }
    deliver_and_give(hfx, member);
    if (msg != NULL) {
        drop(msg);
    }
}

void um_hfx_pass(lbm_hfx_rcv_t *member, struct um_msg *msg)
{
    lbm_hfx_t *hfx = member->hfx;
    if (!um_msg_is(msg, UM_MSG_TEMPLATE)) {
        pass_own(member, msg);
        return;
    }
    um_lock_take(&hfx->lock);
    if (goes_at_once(hfx)) {
        put_template(hfx, msg);
        deliver_and_give(hfx, member);
        return;
    }
    um_lock_give(&hfx->lock);
    struct um_msg *copy = um_msg_clone_kept(msg); /* of a request with a connection: not under the lock */
    if (copy != NULL) {
        pass_own(member, copy);
    } else {
        um_rcv_count_not_queued(member->rcv, hfx->topic);
    }
}

void um_hfx_on_timer(struct um_timer *timer, uint64_t now_ns)
{
    lbm_hfx_rcv_t *member = UM_CONTAINER_OF(timer, lbm_hfx_rcv_t, timer);
    member->timer_ns = UM_NEVER;
    struct um_hf *merge = um_hfx_enter(member);
    if (member->hfx->due_ns <= member->hfx->now_ns) {
        um_hf_on_timer(merge, member->hfx->now_ns);
    }
    um_hfx_leave(member);
}

void um_hfx_on_look(struct um_command *command)
{
    lbm_hfx_rcv_t *member = UM_CONTAINER_OF(command, lbm_hfx_rcv_t, look);
    um_hfx_enter(member);
    um_hfx_leave(member);
}

void um_hfx_counts(lbm_hfx_t *hfx, struct um_hf_stats *out, uint64_t *waiting, uint64_t *refused)
{
    um_lock_take(&hfx->lock);
    *out = hfx->merge.stats;
    *waiting = um_hf_waiting(&hfx->merge);
    *refused = hfx->refused;
    um_lock_give(&hfx->lock);
}

/* No thread but the caller's knows the object any more. */
void um_hfx_empty(lbm_hfx_t *hfx)
{
    um_hf_fini(&hfx->merge, hfx->now_ns);
    while (!um_list_empty(&hfx->line)) {
        drop(take_first(hfx));
        hfx->refused++;
    }
}
