/* Objects do not survive fork: the child's copies have no threads. Each object
 * keeps the generation it was made in; the child's generation differs. */
#ifndef UM_CORE_FORK_H
#define UM_CORE_FORK_H

#include <stdatomic.h>

extern atomic_uint um_forks; /* internal */

/* Registers the handler on first use. Any thread. */
unsigned um_fork_generation(void);

/* The same once an object has been made. */
static inline unsigned um_fork_generation_now(void)
{
    return atomic_load_explicit(&um_forks, memory_order_relaxed);
}

#endif
