/* Timer wheel: intrusive timers driven by the owner's notion of now.
 * Not thread-safe; confined to the thread that runs the loop (or to a test). */
#ifndef UM_BASE_TIMER_H
#define UM_BASE_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/um_list.h"

#define UM_NS_PER_MS 1000000ull
#define UM_NS_PER_SEC 1000000000ull
#define UM_NEVER UINT64_MAX

/* A time as options give it, in nanoseconds. What 64 bits cannot hold becomes 146 years, so that a long time never
 * turns into a short one, and a few of them may be added to the clock. */
#define UM_LONGEST_NS (UINT64_MAX / 4)

static inline uint64_t um_time_ns(uint64_t value, uint64_t unit_ns)
{
    return value < UM_LONGEST_NS / unit_ns ? value * unit_ns : UM_LONGEST_NS;
}

static inline uint64_t um_s_ns(uint64_t seconds)
{
    return um_time_ns(seconds, UM_NS_PER_SEC);
}

static inline uint64_t um_ms_ns(uint64_t milliseconds)
{
    return um_time_ns(milliseconds, UM_NS_PER_MS);
}

static inline uint64_t um_us_ns(uint64_t microseconds)
{
    return um_time_ns(microseconds, UM_NS_PER_MS / 1000);
}

struct um_timer_wheel;
struct um_timer {
    struct um_list node;
    uint64_t due_ns;
    void (*fn)(struct um_timer *timer, uint64_t now_ns); /* may re-arm or free the timer */
};

struct um_timer_wheel *um_timer_wheel_create(uint64_t now_ns); /* NULL: out of memory */
void um_timer_wheel_destroy(struct um_timer_wheel *wheel);     /* armed timers are forgotten, not called */
void um_timer_init(struct um_timer *timer, void (*fn)(struct um_timer *timer, uint64_t now_ns));
/* Arm or re-arm. Never fails. A due time in the past fires at the next run, after timers already due. */
void um_timer_arm(struct um_timer_wheel *wheel, struct um_timer *timer, uint64_t due_ns);
void um_timer_cancel(struct um_timer_wheel *wheel, struct um_timer *timer); /* harmless when not armed */
bool um_timer_armed(const struct um_timer *timer);
/* Earliest time at which run() may have work; UM_NEVER when nothing is armed. Never later than the earliest due time.
 */
uint64_t um_timer_next(const struct um_timer_wheel *wheel);
/* Fire everything due at now_ns in order of due time; timers armed by callbacks with due <= now fire in the next run.
 */
int um_timer_run(struct um_timer_wheel *wheel, uint64_t now_ns);

#endif
