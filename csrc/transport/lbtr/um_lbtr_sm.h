/* When session messages are due: the minimum interval after data, doubled by every
 * session message up to the maximum. Pure; embedded in the engines. */
#ifndef UM_TRANSPORT_LBTR_SM_H
#define UM_TRANSPORT_LBTR_SM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/um_timer.h"

struct um_lbtr_sm {
    uint64_t min_ns, max_ns; /* fixed */
    uint64_t interval_ns;
    uint64_t due_ns; /* UM_NEVER before the first datagram */
    uint32_t next_sqn;
};

/* An interval of 0 counts as a millisecond: the options allow it, and nothing must be sent without end. */
static inline void um_lbtr_sm_init(struct um_lbtr_sm *sm, uint64_t min_ns, uint64_t max_ns)
{
    min_ns = min_ns < UM_NS_PER_MS ? UM_NS_PER_MS : min_ns;
    *sm = (struct um_lbtr_sm){.min_ns = min_ns, .max_ns = max_ns < min_ns ? min_ns : max_ns, .due_ns = UM_NEVER};
}

/* An original datagram went out, or a client was answered. */
static inline void um_lbtr_sm_restart(struct um_lbtr_sm *sm, uint64_t now_ns)
{
    sm->interval_ns = sm->min_ns;
    sm->due_ns = now_ns + sm->min_ns;
}

/* Is one due? If so it is accounted for, and the next one scheduled. */
static inline bool um_lbtr_sm_take(struct um_lbtr_sm *sm, uint64_t now_ns)
{
    if (now_ns < sm->due_ns) {
        return false;
    }
    sm->interval_ns = sm->interval_ns * 2 < sm->max_ns ? sm->interval_ns * 2 : sm->max_ns;
    sm->due_ns = now_ns + sm->interval_ns;
    return true;
}

#endif
