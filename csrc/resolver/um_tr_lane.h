/* A lane holds the topics of one phase kind: a wheel of future due times in
 * ticks, a round-robin queue of those due now, and the lane's rate limiter.
 * No scan over topics: a tick touches what is due. Called by the engine. */
#ifndef UM_RESOLVER_TR_LANE_H
#define UM_RESOLVER_TR_LANE_H

#include <stddef.h>
#include <stdint.h>

#include "base/um_list.h"
#include "resolver/um_tr_limiter.h"

#define UM_TR_LANE_SLOTS 256

/* Embedded in whatever is scheduled; in at most one lane. */
struct um_tr_item {
    struct um_list node;
    uint64_t due_tick : 48;
    uint64_t kind : 8; /* these two are the owner's: there is room for them anyhow */
    uint64_t flags : 8;
};

struct um_tr_lane {
    struct um_list slots[UM_TR_LANE_SLOTS];
    struct um_list ready;
    struct um_list mark; /* in `ready` while a tick is worked off: what comes after it waits for the next tick */
    uint64_t start_ns;
    uint64_t tick_ns;
    int64_t last_tick; /* the last one processed, -1 before the first */
    struct um_tr_limiter limiter;
};

void um_tr_lane_init(struct um_tr_lane *lane, uint64_t tick_ns, const struct um_tr_rate *rate, uint64_t now_ns);
/* Place or move an item; UM_NEVER just removes it. */
void um_tr_lane_place(struct um_tr_lane *lane, struct um_tr_item *item, uint64_t due_ns);
/* Advance to now: collects what became due and opens a new limiter interval. false: no new tick has begun. */
bool um_tr_lane_tick(struct um_tr_lane *lane, uint64_t now_ns);
/* The next item of this tick, still in the lane; NULL when the limiter says stop or every item had its turn. The
 * caller places it anew before it asks again. */
struct um_tr_item *um_tr_lane_take(struct um_tr_lane *lane);
/* When the next tick with work is; UM_NEVER when the lane is empty. */
uint64_t um_tr_lane_next(const struct um_tr_lane *lane);

#endif
