/* The transmission window: datagrams of a source session, oldest first, packed into
 * chunks of memory. A message is written into the open slot and stays there until it
 * is evicted. Owned by a source engine; same thread or lock as the engine. */
#ifndef UM_TRANSPORT_LBTR_WINDOW_H
#define UM_TRANSPORT_LBTR_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UM_LBTR_HEADROOM 24u                    /* before the payload, for the packet header */
#define UM_LBTR_WINDOW_DATAGRAMS_MAX (1u << 20) /* receivers do not ask further back */

struct um_lbtr_slot {
    uint64_t index; /* of the datagram in the session, from 0 */
    uint32_t len;
    uint32_t user_bytes;
    uint8_t headroom[UM_LBTR_HEADROOM];
    uint8_t data[]; /* payload, directly behind the headroom */
};

struct um_lbtr_chunk;

struct um_lbtr_window {
    size_t size, limit; /* fixed: user bytes; memory, 0 = none */
    size_t chunk_size;
    uint32_t datagrams_max; /* fixed */
    bool reserved;          /* fixed: chunks stay when they are spent */
    struct um_lbtr_chunk *oldest, *newest, *spare;
    struct um_lbtr_slot *open; /* acquired, not committed */
    size_t oldest_at;          /* offset of the oldest slot in its chunk */
    uint64_t first, end;       /* indexes [first, end) are kept */
    size_t user_bytes;
    size_t payload_bytes;
    size_t memory; /* of the slots kept, with their headers and entries */
};

void um_lbtr_window_init(struct um_lbtr_window *window, size_t size, size_t limit);
/* All memory at once, for so many datagrams with up to `capacity` bytes each; it is never given back. What a full
 * socket keeps beyond that is allocated. False: out of memory, nothing is kept. */
bool um_lbtr_window_init_reserved(struct um_lbtr_window *window, uint32_t datagrams, size_t capacity);
void um_lbtr_window_free(struct um_lbtr_window *window);
/* The open slot with room for `capacity` bytes; the one already open if there is one. NULL: out of memory. */
struct um_lbtr_slot *um_lbtr_window_acquire(struct um_lbtr_window *window, size_t capacity);
/* Close the open slot. Older ones are evicted to make room, but none with index `keep` or above. */
struct um_lbtr_slot *um_lbtr_window_commit(struct um_lbtr_window *window, size_t len, size_t user_bytes, uint64_t keep);

/* Of the datagram whose payload this is. */
static inline uint64_t um_lbtr_slot_index(const uint8_t *data)
{
    return ((const struct um_lbtr_slot *)(const void *)(data - offsetof(struct um_lbtr_slot, data)))->index;
}

static inline size_t um_lbtr_window_count(const struct um_lbtr_window *window)
{
    return (size_t)(window->end - window->first);
}

#endif
