/* A lock granted in the order of asking: nobody who asks again at once can keep
 * the others out. Two atomic operations inline when nobody contends, a futex
 * otherwise. Any thread; not recursive; not for use across processes. */
#ifndef UM_BASE_TURN_H
#define UM_BASE_TURN_H

#include <stdatomic.h>
#include <stdbool.h>

/* Zeroed memory is a free turn. */
struct um_turn {
    atomic_uint next;     /* tickets given out; any thread */
    atomic_uint serving;  /* the ticket whose turn it is, and futex; written by the holder */
    atomic_uint sleepers; /* any thread */
};

void um_turn_wait(struct um_turn *turn, unsigned ticket); /* internal */
void um_turn_wake(struct um_turn *turn);                  /* internal */

static inline void um_turn_take(struct um_turn *turn)
{
    unsigned ticket = atomic_fetch_add_explicit(&turn->next, 1, memory_order_relaxed);
    if (atomic_load_explicit(&turn->serving, memory_order_acquire) != ticket) {
        um_turn_wait(turn, ticket);
    }
}

/* False: somebody has it. */
static inline bool um_turn_try(struct um_turn *turn)
{
    unsigned serving = atomic_load_explicit(&turn->serving, memory_order_acquire);
    return atomic_compare_exchange_strong_explicit(&turn->next, &serving, serving + 1, memory_order_relaxed,
                                                   memory_order_relaxed);
}

/* The holder asks: does somebody wait for it? */
static inline bool um_turn_wanted(const struct um_turn *turn)
{
    return atomic_load_explicit(&turn->next, memory_order_relaxed) -
               atomic_load_explicit(&turn->serving, memory_order_relaxed) >
           1;
}

/* The store and the load are sequentially consistent: a sleeper is either seen here, or sees its turn. */
static inline void um_turn_give(struct um_turn *turn)
{
    unsigned serving = atomic_load_explicit(&turn->serving, memory_order_relaxed);
    atomic_store_explicit(&turn->serving, serving + 1, memory_order_seq_cst);
    if (atomic_load_explicit(&turn->sleepers, memory_order_seq_cst) != 0) {
        um_turn_wake(turn);
    }
}

#endif
