/* The processor's cycle counter, calibrated against the clock: two readings cost
 * less than what lbmlatping measures. Any thread. */
#ifndef EX_TICKS_H
#define EX_TICKS_H

#include <stdint.h>
#include <time.h>

static inline uint64_t ex_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#endif
}

#endif
