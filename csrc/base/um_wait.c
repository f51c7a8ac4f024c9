/* Conditions on the monotonic clock, as pthread_condattr_setclock() makes them. Owns nothing. Any thread. */
#include "base/um_wait.h"

#include <time.h>

void um_cond_init(pthread_cond_t *condition)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attr);
    pthread_condattr_destroy(&attr);
}

void um_cond_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until_ns)
{
    const struct timespec until = {(time_t)(until_ns / 1000000000u), (long)(until_ns % 1000000000u)};
    pthread_cond_timedwait(condition, lock, &until);
}
