/* Handlers of fork(): they take and give the process-wide locks around it, and in the child count the fork and close
 * what belongs to the parent. Owns the record of own descriptors. Handlers run in the forking thread. */
#include "base/um_fork.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/um_early.h"
#include "base/um_wait.h"

#define GUARDS_MAX 16
#define FDS_MAX (1 << 20) /* those above stay open in children */

atomic_uint um_forks;

static pthread_mutex_t *locks[GUARDS_MAX];     /* constant once the constructors have run */
static pthread_cond_t *conditions[GUARDS_MAX]; /* the same */
static void (*calls[GUARDS_MAX])(void);        /* the same */
static unsigned lock_count, condition_count;   /* the same */
static unsigned call_count;                    /* the same */
static _Atomic uint64_t own_fds[FDS_MAX / 64];
static atomic_int highest_fd; /* that ever was in own_fds */

void um_fork_guard_lock(pthread_mutex_t *lock)
{
    if (lock_count == GUARDS_MAX) {
        abort(); /* a mistake of the library, found by whatever loads it first */
    }
    locks[lock_count++] = lock;
}

void um_fork_guard_condition(pthread_cond_t *condition)
{
    if (condition_count == GUARDS_MAX) {
        abort();
    }
    conditions[condition_count++] = condition;
    um_cond_init(condition);
}

void um_fork_guard_child(void (*in_child)(void))
{
    if (call_count == GUARDS_MAX) {
        abort();
    }
    calls[call_count++] = in_child;
}

static void before_fork(void)
{
    for (unsigned i = 0; i < lock_count; i++) {
        pthread_mutex_lock(locks[i]);
    }
}

static void after_fork(void)
{
    for (unsigned i = lock_count; i-- > 0;) {
        pthread_mutex_unlock(locks[i]);
    }
}

static void after_fork_in_child(void)
{
    atomic_fetch_add_explicit(&um_forks, 1, memory_order_relaxed);
    for (int word = 0; word <= atomic_load(&highest_fd) / 64; word++) {
        uint64_t fds = atomic_exchange(&own_fds[word], 0);
        for (; fds != 0; fds &= fds - 1) {
            close(word * 64 + __builtin_ctzll(fds));
        }
    }
    for (unsigned i = 0; i < condition_count; i++) {
        um_cond_init(conditions[i]); /* the threads that wait are the parent's */
    }
    for (unsigned i = 0; i < call_count; i++) {
        calls[i]();
    }
    after_fork();
}

/* With the library, not with the first object: the start-up and the log have their locks before. */
UM_RUN_EARLY static void register_handlers(void)
{
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

int um_fd_own(int fd)
{
    if (fd < 0 || fd >= FDS_MAX) {
        return fd;
    }
    int highest = atomic_load(&highest_fd);
    while (fd > highest && !atomic_compare_exchange_weak(&highest_fd, &highest, fd)) {
    }
    atomic_fetch_or(&own_fds[fd / 64], (uint64_t)1 << fd % 64);
    return fd;
}

void um_fd_close(int fd)
{
    int saved = errno;
    if (fd >= 0 && fd < FDS_MAX) {
        atomic_fetch_and(&own_fds[fd / 64], ~((uint64_t)1 << fd % 64));
    }
    close(fd);
    errno = saved;
}
