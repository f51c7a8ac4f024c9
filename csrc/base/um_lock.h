/* A lock for paths where every nanosecond counts: two atomic operations inline
 * when nobody contends, a futex otherwise; and a condition to go with it.
 * Any thread; not recursive; not for use across processes. */
#ifndef UM_BASE_LOCK_H
#define UM_BASE_LOCK_H

#include <stdatomic.h>
#include <stdint.h>

/* 0 free, 1 taken, 2 taken and somebody sleeps. Zeroed memory is a free lock. */
struct um_lock {
    atomic_int state;
};

/* Signals since creation. Zeroed memory is ready for use. */
struct um_condition {
    atomic_int signals;
    int sleepers; /* lock */
};

/* How often the calling thread found a lock taken: for tests. */
extern _Thread_local unsigned long um_lock_waits;

void um_lock_contended(struct um_lock *lock); /* internal */
void um_lock_wake(struct um_lock *lock);      /* internal */

static inline void um_lock_take(struct um_lock *lock)
{
    int free_state = 0;
    if (!atomic_compare_exchange_strong_explicit(&lock->state, &free_state, 1, memory_order_acquire,
                                                 memory_order_relaxed)) {
        um_lock_contended(lock);
    }
}

static inline void um_lock_give(struct um_lock *lock)
{
    if (atomic_exchange_explicit(&lock->state, 0, memory_order_release) == 2) {
        um_lock_wake(lock);
    }
}

/* Both with the lock held; wait gives it up meanwhile and may return without a signal. */
void um_condition_wait(struct um_condition *condition, struct um_lock *lock);
void um_condition_wait_for(struct um_condition *condition, struct um_lock *lock, uint64_t timeout_ns);
void um_condition_signal_all(struct um_condition *condition);

#endif
