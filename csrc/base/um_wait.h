/* Waiting for a pthread condition until a time of um_clock_ns(): the clock that nobody sets. Every condition of the
 * library is made here or by UM_FORK_GUARD_CONDITION, so that no wait follows the wall clock. Any thread. */
#ifndef UM_WAIT_H
#define UM_WAIT_H

#include <pthread.h>
#include <stdint.h>

void um_cond_init(pthread_cond_t *condition);

/* The lock is held, and given up meanwhile. Returns when signaled, at until_ns, or without a reason: look again.
 */
void um_cond_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until_ns);

#endif
