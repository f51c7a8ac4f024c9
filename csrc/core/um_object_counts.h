/* How many objects of applications are alive in this process, for leak checks.
 * Counted where they are created and deleted, by any thread. */
#ifndef UM_CORE_OBJECT_COUNTS_H
#define UM_CORE_OBJECT_COUNTS_H

#include <stdatomic.h>

enum um_object {
    UM_OBJECT_CONTEXT,
    UM_OBJECT_SOURCE,
    UM_OBJECT_RECEIVER, /* wildcard receivers too */
    UM_OBJECT_MESSAGE,  /* retained */
    UM_OBJECT_BATCH,
    UM_OBJECT_COLLECTOR,
    UM_OBJECT_REQUEST,
    UM_OBJECT_RESPONSE, /* those of messages included */
    UM_OBJECT_KINDS
};

extern atomic_llong um_object_counters[UM_OBJECT_KINDS]; /* internal */

static inline void um_object_count(enum um_object kind, int change)
{
    atomic_fetch_add_explicit(&um_object_counters[kind], change, memory_order_relaxed);
}

static inline long long um_object_count_of(enum um_object kind)
{
    return atomic_load_explicit(&um_object_counters[kind], memory_order_relaxed);
}

#endif
