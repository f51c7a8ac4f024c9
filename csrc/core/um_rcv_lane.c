/* The receive sides of a context and of its XSPs. See um_rcv_lane.h. */
#include "core/um_rcv_lane.h"

#include "base/um_mem.h"
#include "core/um_context.h"
#include "core/um_rcv_flow.h"

static void on_release(struct um_command *command)
{
    um_rcv_flows_release(UM_CONTAINER_OF(command, struct um_rcv_lane, release));
}

void um_rcv_lane_init(struct um_rcv_lane *lane, lbm_context_t *ctx, struct um_loop *loop,
                      struct um_rcv_sessions *sessions, struct um_unicast *unicast)
{
    lane->ctx = ctx;
    lane->loop = loop;
    lane->sessions = sessions;
    um_rcv_recoveries_open(&lane->recoveries, unicast);
    um_list_init(&lane->flows);
    um_list_init(&lane->held);
    um_list_init(&lane->node);
    um_command_init(&lane->release, on_release);
}

/* ---- the list ---- */

void um_rcv_lanes_init(struct um_rcv_lanes *lanes)
{
    um_list_init(&lanes->list);
}

void um_rcv_lane_enter(struct um_rcv_lane *lane)
{
    struct um_rcv_lanes *lanes = &lane->ctx->lanes;
    um_lock_take(&lanes->lock);
    um_list_push_back(&lanes->list, &lane->node);
    atomic_fetch_add(&lanes->count, 1);
    um_lock_give(&lanes->lock);
}

/* Whoever is counted waits for the lane's loop, whose callbacks may wait for the loop of the caller. */
int um_rcv_lane_close(struct um_rcv_lane *lane)
{
    struct um_rcv_lanes *lanes = &lane->ctx->lanes;
    if (um_loop_wait_begin(lane->loop) != 0) {
        return -1;
    }
    um_lock_take(&lanes->lock);
    lane->closing = true;
    while (lane->users > 0) {
        um_condition_wait(&lanes->changed, &lanes->lock);
    }
    um_lock_give(&lanes->lock);
    um_loop_wait_end();
    return 0;
}

void um_rcv_lane_reopen(struct um_rcv_lane *lane)
{
    struct um_rcv_lanes *lanes = &lane->ctx->lanes;
    um_lock_take(&lanes->lock);
    lane->closing = false;
    um_lock_give(&lanes->lock);
}

void um_rcv_lane_leave(struct um_rcv_lane *lane)
{
    struct um_rcv_lanes *lanes = &lane->ctx->lanes;
    um_lock_take(&lanes->lock);
    um_list_remove(&lane->node);
    atomic_fetch_sub(&lanes->count, 1);
    um_lock_give(&lanes->lock);
}

bool um_rcv_lane_known(lbm_context_t *ctx, const struct um_rcv_lane *lane)
{
    bool known = false;
    struct um_list *node;
    um_lock_take(&ctx->lanes.lock);
    UM_LIST_FOREACH(node, &ctx->lanes.list)
    {
        const struct um_rcv_lane *other = UM_CONTAINER_OF(node, struct um_rcv_lane, node);
        known |= other == lane && !other->closing;
    }
    um_lock_give(&ctx->lanes.lock);
    return known;
}

/* ---- calls ---- */

struct lane_call {
    struct um_rcv_lane *lane;
    int (*fn)(struct um_rcv_lane *lane, void *arg); /* NULL: wait for what was posted before */
    void *arg;
};

static int on_lane(void *arg)
{
    const struct lane_call *call = arg;
    return call->fn(call->lane, call->arg);
}

static int call_lane(struct um_rcv_lane *lane, int (*fn)(struct um_rcv_lane *lane, void *arg), void *arg)
{
    struct lane_call call = {lane, fn, arg};
    return fn == NULL ? um_loop_sync(lane->loop) : um_loop_call(lane->loop, on_lane, &call);
}

/* Lock. The next one that is the calling thread's, or is not; held for the caller. */
static struct um_rcv_lane *hold_next(struct um_rcv_lanes *lanes, struct um_list *after, bool own)
{
    for (struct um_list *node = after->next; node != &lanes->list; node = node->next) {
        struct um_rcv_lane *lane = UM_CONTAINER_OF(node, struct um_rcv_lane, node);
        if (!lane->closing && um_loop_on_thread(lane->loop) == own) {
            lane->users++;
            return lane;
        }
    }
    return NULL;
}

/* A lane that is held stays on the list. */
static int each_xsp(lbm_context_t *ctx, bool own, int (*fn)(struct um_rcv_lane *lane, void *arg), void *arg)
{
    struct um_rcv_lanes *lanes = &ctx->lanes;
    int rc = 0;
    if (atomic_load(&lanes->count) == 0) {
        return 0;
    }
    um_lock_take(&lanes->lock);
    struct um_rcv_lane *lane = hold_next(lanes, &lanes->list, own);
    while (lane != NULL) {
        um_lock_give(&lanes->lock);
        rc = call_lane(lane, fn, arg);
        um_lock_take(&lanes->lock);
        struct um_rcv_lane *next = rc == 0 ? hold_next(lanes, &lane->node, own) : NULL;
        if (--lane->users == 0 && lane->closing) {
            um_condition_signal_all(&lanes->changed);
        }
        lane = next;
    }
    um_lock_give(&lanes->lock);
    return rc;
}

int um_rcv_lanes_each(lbm_context_t *ctx, int (*fn)(struct um_rcv_lane *lane, void *arg), void *arg)
{
    int rc = each_xsp(ctx, true, fn, arg);
    rc = rc != 0 ? rc : call_lane(&ctx->rcv_lane, fn, arg);
    return rc != 0 ? rc : each_xsp(ctx, false, fn, arg);
}

int um_rcv_lanes_sync(lbm_context_t *ctx)
{
    return each_xsp(ctx, false, NULL, NULL) != 0 ? -1 : um_loop_sync(ctx->loop);
}

void um_rcv_lanes_release_held(lbm_context_t *ctx)
{
    struct um_list *node;
    if (atomic_load(&ctx->lanes.count) == 0) {
        return;
    }
    um_lock_take(&ctx->lanes.lock);
    UM_LIST_FOREACH(node, &ctx->lanes.list)
    {
        struct um_rcv_lane *lane = UM_CONTAINER_OF(node, struct um_rcv_lane, node);
        if (!lane->closing) {
            um_loop_post(lane->loop, &lane->release);
        }
    }
    um_lock_give(&ctx->lanes.lock);
}
