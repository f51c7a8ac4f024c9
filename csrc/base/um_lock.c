/* The slow halves of um_lock: spinning for a moment, then sleeping on a futex. */
#define _GNU_SOURCE
#include "base/um_lock.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define UM_LOCK_SPINS 100

static void futex_wait(atomic_int *word, int expected, const struct timespec *timeout)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, timeout, NULL, 0);
}

static void futex_wake(atomic_int *word, int count)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

_Thread_local unsigned long um_lock_waits;

void um_lock_contended(struct um_lock *lock)
{
    um_lock_waits++;
    for (int i = 0; i < UM_LOCK_SPINS; i++) {
        int free_state = 0;
        if (atomic_load_explicit(&lock->state, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong_explicit(&lock->state, &free_state, 1, memory_order_acquire,
                                                    memory_order_relaxed)) {
            return;
        }
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
    }
    while (atomic_exchange_explicit(&lock->state, 2, memory_order_acquire) != 0) {
        futex_wait(&lock->state, 2, NULL);
    }
}

void um_lock_wake(struct um_lock *lock)
{
    futex_wake(&lock->state, 1);
}

static void condition_wait(struct um_condition *condition, struct um_lock *lock, const struct timespec *timeout)
{
    int seen = atomic_load_explicit(&condition->signals, memory_order_relaxed);
    condition->sleepers++;
    um_lock_give(lock);
    futex_wait(&condition->signals, seen, timeout);
    um_lock_take(lock);
    condition->sleepers--;
}

void um_condition_wait(struct um_condition *condition, struct um_lock *lock)
{
    condition_wait(condition, lock, NULL);
}

void um_condition_wait_for(struct um_condition *condition, struct um_lock *lock, uint64_t timeout_ns)
{
    const struct timespec timeout = {(time_t)(timeout_ns / 1000000000u), (long)(timeout_ns % 1000000000u)};
    condition_wait(condition, lock, &timeout);
}

void um_condition_signal_all(struct um_condition *condition)
{
    if (condition->sleepers > 0) {
        atomic_fetch_add_explicit(&condition->signals, 1, memory_order_relaxed);
        futex_wake(&condition->signals, INT_MAX);
    }
}
