/* What a child of fork() must not inherit: objects, which have no threads there; descriptors, with which it would hold
 * ports, groups and connections of its parent; process-wide locks, which threads it does not have may hold. Any thread.
 */
#ifndef UM_FORK_H
#define UM_FORK_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/um_early.h"

extern atomic_uint um_forks; /* internal */

/* Counts the forks since the library was loaded. Each object keeps the generation it was made in; in a child it
 * differs. */
static inline unsigned um_fork_generation(void)
{
    return atomic_load_explicit(&um_forks, memory_order_relaxed);
}

/* A descriptor of the library's own, which children get closed. Passes it on, also -1 (errno is kept). */
int um_fd_own(int fd);
/* Every such descriptor is closed by this call, lest a child close what has got its number since. Keeps errno. */
void um_fd_close(int fd);

/* For process-wide locks under which no other such lock is taken and no application is called: a fork waits for them,
 * so that what they guard is whole in the child. Conditions are made here, for um_wait.h, and are as new in the child.
 * Called by constructors, see the macros. */
void um_fork_guard_lock(pthread_mutex_t *lock);
void um_fork_guard_condition(pthread_cond_t *condition);
/* For what cannot be waited for, because it may take long or be under way in the forking thread: called in each child,
 * with all guarded locks held. */
void um_fork_guard_child(void (*in_child)(void));

#define UM_FORK_GUARD(lock)                                                                                            \
    UM_RUN_EARLY static void um_guard_at_fork_##lock(void)                                                             \
    {                                                                                                                  \
        um_fork_guard_lock(&(lock));                                                                                   \
    }

#define UM_FORK_GUARD_CONDITION(condition)                                                                             \
    UM_RUN_EARLY static void um_guard_at_fork_##condition(void)                                                        \
    {                                                                                                                  \
        um_fork_guard_condition(&(condition));                                                                         \
    }

/* The function in_child mends the lock in each child. */
#define UM_FORK_CHILD_LOCK(lock, in_child)                                                                             \
    UM_RUN_EARLY static void um_guard_at_fork_##lock(void)                                                             \
    {                                                                                                                  \
        um_fork_guard_child(in_child);                                                                                 \
    }

#endif
