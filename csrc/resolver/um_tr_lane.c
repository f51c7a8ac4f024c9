/* Due-lists of topic resolution. See um_tr_lane.h. */
#include "resolver/um_tr_lane.h"

#include "base/um_mem.h"
#include "base/um_timer.h"

void um_tr_lane_init(struct um_tr_lane *lane, uint64_t tick_ns, const struct um_tr_rate *rate, uint64_t now_ns)
{
    for (size_t i = 0; i < UM_TR_LANE_SLOTS; i++) {
        um_list_init(&lane->slots[i]);
    }
    um_list_init(&lane->ready);
    um_list_init(&lane->mark);
    lane->start_ns = now_ns;
    lane->tick_ns = tick_ns;
    lane->last_tick = -1;
    um_tr_limiter_init(&lane->limiter, rate, tick_ns, now_ns);
}

void um_tr_lane_place(struct um_tr_lane *lane, struct um_tr_item *item, uint64_t due_ns)
{
    um_list_remove(&item->node);
    if (due_ns == UM_NEVER) {
        return;
    }
    uint64_t since = due_ns > lane->start_ns ? due_ns - lane->start_ns : 0;
    item->due_tick = (since + lane->tick_ns - 1) / lane->tick_ns;
    if ((int64_t)item->due_tick <= lane->last_tick) {
        um_list_push_back(&lane->ready, &item->node);
        return;
    }
    um_list_push_back(&lane->slots[item->due_tick % UM_TR_LANE_SLOTS], &item->node);
}

/* Moves what one slot holds of the ticks up to `tick` into the queue. */
static void collect(struct um_tr_lane *lane, struct um_list *slot, uint64_t tick)
{
    struct um_list *it, *next;
    UM_LIST_FOREACH_SAFE(it, next, slot)
    {
        struct um_tr_item *item = UM_CONTAINER_OF(it, struct um_tr_item, node);
        if (item->due_tick <= tick) {
            um_list_remove(it);
            um_list_push_back(&lane->ready, it);
        }
    }
}

bool um_tr_lane_tick(struct um_tr_lane *lane, uint64_t now_ns)
{
    int64_t tick = (int64_t)((now_ns - lane->start_ns) / lane->tick_ns);
    if (tick <= lane->last_tick) {
        return false;
    }
    /* After a long sleep one round of the wheel covers every slot. */
    int64_t from = tick - lane->last_tick > UM_TR_LANE_SLOTS ? tick - UM_TR_LANE_SLOTS : lane->last_tick;
    for (int64_t t = from + 1; t <= tick; t++) {
        collect(lane, &lane->slots[t % UM_TR_LANE_SLOTS], (uint64_t)tick);
    }
    lane->last_tick = tick;
    um_tr_limiter_interval(&lane->limiter, now_ns);
    um_list_remove(&lane->mark);
    um_list_push_back(&lane->ready, &lane->mark);
    return true;
}

struct um_tr_item *um_tr_lane_take(struct um_tr_lane *lane)
{
    struct um_list *first = um_list_first(&lane->ready);
    if (first != &lane->mark && first != NULL && um_tr_limiter_allows(&lane->limiter)) {
        return UM_CONTAINER_OF(first, struct um_tr_item, node);
    }
    um_list_remove(&lane->mark);
    return NULL;
}

uint64_t um_tr_lane_next(const struct um_tr_lane *lane)
{
    uint64_t next = (uint64_t)(lane->last_tick + 1);
    if (!um_list_empty(&lane->ready)) {
        return lane->start_ns + next * lane->tick_ns;
    }
    for (uint64_t t = next; t < next + UM_TR_LANE_SLOTS; t++) {
        if (!um_list_empty(&lane->slots[t % UM_TR_LANE_SLOTS])) {
            return lane->start_ns + t * lane->tick_ns;
        }
    }
    return UM_NEVER;
}
