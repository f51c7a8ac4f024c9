/* Clocks. Engines never call these: they are given now_ns. */
#ifndef UM_BASE_CLOCK_H
#define UM_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t um_clock_ns(void) /* monotonic */
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static inline uint64_t um_clock_wall_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

#endif
