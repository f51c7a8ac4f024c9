/* Counts the forks between this process and the one that loaded the library.
 * The handler runs in the child, in its only thread. */
#include "core/um_fork.h"

#include <pthread.h>
#include <stdatomic.h>

atomic_uint um_forks;

static void um_fork_in_child(void)
{
    atomic_fetch_add_explicit(&um_forks, 1, memory_order_relaxed);
}

static void um_fork_register(void)
{
    pthread_atfork(NULL, NULL, um_fork_in_child);
}

unsigned um_fork_generation(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, um_fork_register);
    return atomic_load_explicit(&um_forks, memory_order_relaxed);
}
