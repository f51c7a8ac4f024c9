/* The slots of a segment, one for each receiving context: taken and left by the
 * receiver, taken back by the source when the receiver died. The join rule stands
 * in um_shm_segment.h. */
#include "transport/shm/um_shm_parts.h"

#include <unistd.h>

#include "base/um_error.h"

/* Registration lock held. The lock of a slot outlives its in_use word when the receiver died. */
static int find_slot(struct um_shm_segment *segment)
{
    for (uint32_t i = 0; i < segment->max_receivers; i++) {
        if (um_shm_slot_state(&segment->slots[i]) == UM_SHM_SLOT_FREE &&
            um_shm_lock_try(segment, UM_SHM_LOCK_SLOT + i)) {
            return (int)i;
        }
    }
    return um_error(UM_EINVAL, "Core-6976-114", "%s: no more free receiver slots (%u)", segment->path,
                    segment->max_receivers);
}

static void fill_slot(struct um_shm_segment *segment, struct um_shm_slot *slot, uint32_t slot_flags,
                      uint32_t ctx_session_id)
{
    uint32_t pid = (uint32_t)getpid();
    atomic_fetch_add_explicit(&slot->generation, 1, memory_order_relaxed);
    atomic_store_explicit(&slot->pid, pid, memory_order_relaxed);
    slot->start_time = um_shm_start_time(pid);
    atomic_store_explicit(&slot->flags, slot_flags, memory_order_relaxed);
    atomic_store_explicit(&slot->ctx_session_id, ctx_session_id, memory_order_relaxed);
    atomic_store_explicit(&slot->waiting, 0, memory_order_relaxed);
    /* Release, as everything that takes the place of FREE: with it comes the last look of the receiver before. */
    atomic_store_explicit(&slot->in_use, UM_SHM_SLOT_JOINING, memory_order_release);
}

int um_shm_slot_take(struct um_shm_segment *segment, uint32_t slot_flags, uint32_t ctx_session_id, uint64_t *start)
{
    struct um_shm_header *header = segment->header;
    if (um_shm_lock_wait(segment, UM_SHM_LOCK_REGISTRATION) != 0) {
        return -1;
    }
    int index = -1;
    if (!um_shm_is_ready(header)) {
        um_shm_refuse(segment, "state", atomic_load_explicit(&header->state, memory_order_relaxed));
    } else {
        index = find_slot(segment);
    }
    if (index >= 0) {
        struct um_shm_slot *slot = &segment->slots[index];
        fill_slot(segment, slot, slot_flags, ctx_session_id);
        /* Release, as every position: a source that still takes the slot for that of the receiver before knows by it
         * that that one looks at nothing any more. */
        uint64_t tail = atomic_load_explicit(&header->tail, memory_order_relaxed);
        atomic_store_explicit(&slot->read_pos, tail, memory_order_release);
        atomic_store_explicit(&slot->in_use, UM_SHM_SLOT_ACTIVE, memory_order_release);
        atomic_thread_fence(memory_order_seq_cst);
        *start = atomic_load_explicit(&header->tail, memory_order_acquire);
        atomic_store_explicit(&slot->read_pos, *start, memory_order_relaxed); /* the fence has released */
        um_shm_slots_changed(header);
    }
    um_shm_lock_give(segment, UM_SHM_LOCK_REGISTRATION);
    return index;
}

void um_shm_slot_leave(struct um_shm_segment *segment, int index)
{
    atomic_store_explicit(&segment->slots[index].in_use, UM_SHM_SLOT_FREE, memory_order_release);
    um_shm_slots_changed(segment->header);
    um_shm_lock_give(segment, UM_SHM_LOCK_SLOT + (unsigned)index);
}

bool um_shm_slot_reap(struct um_shm_segment *segment, uint32_t index)
{
    struct um_shm_slot *slot = &segment->slots[index];
    if (um_shm_slot_state(slot) == UM_SHM_SLOT_FREE || !um_shm_lock_try(segment, UM_SHM_LOCK_SLOT + index)) {
        return false;
    }
    /* Free now, or freed by its receiver since the look above: both are right with the lock in hand. Relaxed: what that
     * receiver released goes on with the exchange, and the dead read nothing any more. */
    bool was_used = atomic_exchange_explicit(&slot->in_use, UM_SHM_SLOT_FREE, memory_order_relaxed) != UM_SHM_SLOT_FREE;
    if (was_used) {
        um_shm_slots_changed(segment->header);
    }
    um_shm_lock_give(segment, UM_SHM_LOCK_SLOT + index);
    return was_used;
}

uint32_t um_shm_receivers(const struct um_shm_segment *segment, bool reading_only)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < segment->max_receivers; i++) {
        uint32_t state = um_shm_slot_state(&segment->slots[i]);
        count += state >= (reading_only ? UM_SHM_SLOT_READING : UM_SHM_SLOT_ACTIVE);
    }
    return count;
}
