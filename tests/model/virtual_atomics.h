/* The atomics of <stdatomic.h> as steps of virtual threads. To be included before
 * the production sources that are to run there. What is not here does not compile. */
#ifndef UM_VIRTUAL_ATOMICS_H
#define UM_VIRTUAL_ATOMICS_H

#include <stdatomic.h>

#include "virtual_threads.h"

#undef atomic_init
#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_exchange_explicit
#undef atomic_fetch_add_explicit
#undef atomic_thread_fence
#undef atomic_load
#undef atomic_store
#undef atomic_exchange
#undef atomic_fetch_add

#define atomic_init(at, value) __atomic_store_n(at, value, __ATOMIC_RELAXED) /* before there are threads */
#define VT_VALUE(at) __typeof__(*(at) + 0)
#define atomic_load_explicit(at, order) ((VT_VALUE(at))vt_load((const void *)(at), sizeof *(at), order))
#define atomic_store_explicit(at, value, order) vt_store((void *)(at), sizeof *(at), (uint64_t)(value), order)
#define atomic_exchange_explicit(at, value, order)                                                                     \
    ({ (VT_VALUE(at)) vt_exchange((void *)(at), sizeof *(at), (uint64_t)(value), order); })
#define atomic_fetch_add_explicit(at, value, order)                                                                    \
    ({ (VT_VALUE(at)) vt_add((void *)(at), sizeof *(at), (uint64_t)(value), order); })
#define atomic_thread_fence(order) vt_fence(order)

#endif
