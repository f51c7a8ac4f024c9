/* Threads of a test under weak memory: they run production code whose atomics were
 * replaced (virtual_atomics.h), one step at a time, in an order drawn from a seed,
 * on one thread of the system. A run that fails can be repeated by its seed.
 *
 * The memory is that of C11 as an abstract machine: each word keeps the history of
 * its stores, each thread a view (how old a store it may still read), each store
 * the view it hands on; sequentially consistent fences share one more. Loads may be
 * stale. Plain bytes, and words declared to be plain, are watched for races by
 * vector clocks: two accesses, one of them a store, that nothing orders. */
#ifndef UM_VIRTUAL_THREADS_H
#define UM_VIRTUAL_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#define VT_THREADS 3

struct vt_scenario {
    const char *name;
    int threads;
    void (*begin)(void); /* before the threads: memory in its first state */
    void (*body[VT_THREADS])(void);
    void (*end)(void); /* after the last thread; may be NULL */
};

/* What went wrong in some run, or NULL. The first run has the number 1; prints the one that failed. */
const char *vt_explore(const struct vt_scenario *scenario, unsigned runs);

/* ---- in a thread ---- */

void vt_fail(const char *fault); /* ends the run; does not return */
unsigned vt_random(unsigned below);
void vt_idle(void);              /* nothing to do before somebody else stores something */
bool vt_lock_try(unsigned lock); /* a lock of the kernel: who gets it sees what was done before it was given */
void vt_lock_wait(unsigned lock);
void vt_lock_give(unsigned lock);
void vt_futex_wait(const void *word, uint32_t seen); /* as the system call: compares with the newest value */
void vt_futex_wake(const void *word);
/* Bytes that nothing but orderings protects. `at` is aligned to 8. */
void vt_plain_store(void *at, uint64_t value);
uint64_t vt_plain_load(const void *at);
/* From now on relaxed accesses there count as plain. In begin(). */
void vt_plain_range(const void *from, const void *to);

/* ---- for virtual_atomics.h; `order` is a memory_order ---- */

uint64_t vt_load(const void *at, unsigned size, int order);
void vt_store(void *at, unsigned size, uint64_t value, int order);
uint64_t vt_exchange(void *at, unsigned size, uint64_t value, int order);
uint64_t vt_add(void *at, unsigned size, uint64_t value, int order);
void vt_fence(int order);

#endif
