/* Reading and writing the shared words of a segment, for sources and receivers of
 * either transport: what orders them stands here and in the two rings, nowhere
 * else. tools/mutate_fences.py takes away one ordering after the other, and
 * tests/model/production_model.c, which runs this very code, must notice. */
#ifndef UM_TRANSPORT_SHM_WORDS_H
#define UM_TRANSPORT_SHM_WORDS_H

#include "transport/shm/um_shm_segment.h"

/* Everything published before CLOSED is there for whoever sees it. */
static inline void um_shm_set_state(struct um_shm_header *header, enum um_shm_state state)
{
    atomic_store_explicit(&header->state, state, memory_order_release);
}

static inline bool um_shm_is_ready(const struct um_shm_header *header)
{
    return atomic_load_explicit(&header->state, memory_order_acquire) == UM_SHM_READY;
}

/* The session message; nothing depends on it. */
static inline void um_shm_show_activity(struct um_shm_header *header)
{
    atomic_fetch_add_explicit(&header->activity, 1, memory_order_relaxed);
}

static inline uint64_t um_shm_activity(const struct um_shm_header *header)
{
    return atomic_load_explicit(&header->activity, memory_order_relaxed);
}

/* ---- slots ---- */

/* With it comes what the receiver wrote before: its position, who it is; and when it left, its last look at the ring.
 */
static inline uint32_t um_shm_slot_state(const struct um_shm_slot *slot)
{
    return atomic_load_explicit(&slot->in_use, memory_order_acquire);
}

static inline void um_shm_slot_reading(struct um_shm_slot *slot)
{
    atomic_store_explicit(&slot->in_use, UM_SHM_SLOT_READING, memory_order_release);
}

/* A slot has changed: whoever sees the new number sees that. */
static inline void um_shm_slots_changed(struct um_shm_header *header)
{
    atomic_fetch_add_explicit(&header->join_epoch, 1, memory_order_release);
}

static inline uint32_t um_shm_join_epoch(const struct um_shm_header *header)
{
    return atomic_load_explicit(&header->join_epoch, memory_order_acquire);
}

/* ---- one thread at a time, the others do not wait ---- */

static inline bool um_shm_claim(atomic_bool *busy)
{
    return !atomic_exchange_explicit(busy, true, memory_order_acquire);
}

static inline void um_shm_unclaim(atomic_bool *busy)
{
    atomic_store_explicit(busy, false, memory_order_release);
}

/* ---- sleeping ----
 * The sleeper: seen = futex_seen, says that it sleeps, fence_of_sleeper, looks once more, waits while the futex is
 * `seen`. The waker: stores what the other waits for, fence_of_waker, looks for sleepers, futex_bump, wakes. One of the
 * two sees the other. What is stored before futex_bump (an order to stop) is seen by whoever does not sleep for it. */

static inline uint32_t um_shm_futex_seen(const _Atomic uint32_t *futex)
{
    return atomic_load_explicit(futex, memory_order_relaxed); /* the fence acquires */
}

static inline void um_shm_futex_bump(_Atomic uint32_t *futex)
{
    atomic_fetch_add_explicit(futex, 1, memory_order_release);
}

static inline void um_shm_fence_of_sleeper(void)
{
    atomic_thread_fence(memory_order_seq_cst);
}

static inline void um_shm_fence_of_waker(void)
{
    atomic_thread_fence(memory_order_seq_cst);
}

#endif
