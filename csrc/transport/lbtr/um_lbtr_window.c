/* Transmission window in chunks. See um_lbtr_window.h. */
#include "transport/lbtr/um_lbtr_window.h"

#include <string.h>

#include "base/um_mem.h"

#define CHUNK_MIN 16384u
#define CHUNK_MAX 262144u
#define ENTRY_BYTES 40u /* of a datagram in the number space of a session */

struct um_lbtr_chunk {
    struct um_lbtr_chunk *next;
    size_t capacity, used;
    _Alignas(16) uint8_t bytes[];
};

static size_t slot_bytes(size_t len)
{
    return (sizeof(struct um_lbtr_slot) + len + 7) & ~(size_t)7;
}

void um_lbtr_window_init(struct um_lbtr_window *window, size_t size, size_t limit)
{
    memset(window, 0, sizeof *window);
    window->size = size;
    window->limit = limit;
    window->datagrams_max = UM_LBTR_WINDOW_DATAGRAMS_MAX;
    size_t chunk = size / 16;
    window->chunk_size = chunk < CHUNK_MIN ? CHUNK_MIN : chunk > CHUNK_MAX ? CHUNK_MAX : chunk;
}

void um_lbtr_window_free(struct um_lbtr_window *window)
{
    while (window->oldest != NULL) {
        struct um_lbtr_chunk *chunk = window->oldest;
        window->oldest = chunk->next;
        um_free(chunk);
    }
    while (window->spare != NULL) {
        struct um_lbtr_chunk *chunk = window->spare;
        window->spare = chunk->next;
        um_free(chunk);
    }
    memset(window, 0, sizeof *window);
}

static struct um_lbtr_chunk *new_chunk(size_t capacity)
{
    struct um_lbtr_chunk *chunk = um_malloc(sizeof *chunk + capacity);
    if (chunk != NULL) {
        chunk->next = NULL;
        chunk->capacity = capacity;
        chunk->used = 0;
    }
    return chunk;
}

/* The chunks hold the datagrams, the open slot, and what is lost where chunks begin and end. */
bool um_lbtr_window_init_reserved(struct um_lbtr_window *window, uint32_t datagrams, size_t capacity)
{
    um_lbtr_window_init(window, SIZE_MAX, 0);
    size_t slot = slot_bytes(capacity), all = (datagrams + (size_t)1) * slot;
    size_t each = all / 16 < CHUNK_MAX ? all / 16 : CHUNK_MAX;
    window->chunk_size = each < slot ? slot : each;
    window->datagrams_max = datagrams;
    window->reserved = true;
    size_t slots = window->chunk_size / slot;
    for (size_t chunks = datagrams / slots + 3; chunks > 0; chunks--) {
        struct um_lbtr_chunk *chunk = new_chunk(window->chunk_size);
        if (chunk == NULL) {
            um_lbtr_window_free(window);
            return false;
        }
        memset(chunk->bytes, 0, chunk->capacity); /* the first datagrams find the pages there */
        chunk->next = window->spare;
        window->spare = chunk;
    }
    return true;
}

static bool add_chunk(struct um_lbtr_window *window, size_t need)
{
    struct um_lbtr_chunk *chunk = window->spare;
    if (chunk != NULL && chunk->capacity >= need) {
        window->spare = chunk->next;
    } else {
        chunk = new_chunk(need > window->chunk_size ? need : window->chunk_size);
        if (chunk == NULL) {
            return false;
        }
    }
    chunk->next = NULL;
    chunk->used = 0;
    if (window->newest != NULL) {
        window->newest->next = chunk;
    } else {
        window->oldest = chunk;
        window->oldest_at = 0;
    }
    window->newest = chunk;
    return true;
}

struct um_lbtr_slot *um_lbtr_window_acquire(struct um_lbtr_window *window, size_t capacity)
{
    if (window->open != NULL) {
        return window->open;
    }
    size_t need = slot_bytes(capacity);
    if ((window->newest == NULL || window->newest->capacity - window->newest->used < need) &&
        !add_chunk(window, need)) {
        return NULL;
    }
    window->open = (struct um_lbtr_slot *)(window->newest->bytes + window->newest->used);
    window->open->index = window->end;
    window->open->len = 0;
    return window->open;
}

/* The oldest slot; steps over the end of a chunk. The window is not empty. */
static struct um_lbtr_slot *oldest_slot(struct um_lbtr_window *window)
{
    while (window->oldest_at == window->oldest->used && window->oldest != window->newest) {
        struct um_lbtr_chunk *spent = window->oldest;
        window->oldest = spent->next;
        window->oldest_at = 0;
        if ((window->spare == NULL || window->reserved) && spent->capacity == window->chunk_size) {
            spent->next = window->spare;
            window->spare = spent;
        } else {
            um_free(spent);
        }
    }
    return (struct um_lbtr_slot *)(window->oldest->bytes + window->oldest_at);
}

static void evict(struct um_lbtr_window *window)
{
    struct um_lbtr_slot *slot = oldest_slot(window);
    window->oldest_at += slot_bytes(slot->len);
    window->user_bytes -= slot->user_bytes;
    window->payload_bytes -= slot->len;
    window->memory -= slot_bytes(slot->len) + ENTRY_BYTES;
    window->first++;
}

static bool too_full(const struct um_lbtr_window *window, size_t user_bytes, size_t memory)
{
    return window->user_bytes + user_bytes > window->size ||
           (window->limit != 0 && window->memory + memory > window->limit) ||
           um_lbtr_window_count(window) >= window->datagrams_max;
}

struct um_lbtr_slot *um_lbtr_window_commit(struct um_lbtr_window *window, size_t len, size_t user_bytes, uint64_t keep)
{
    struct um_lbtr_slot *slot = window->open;
    size_t memory = slot_bytes(len) + ENTRY_BYTES;
    slot->len = (uint32_t)len;
    slot->user_bytes = (uint32_t)user_bytes;
    while (window->first < window->end && window->first < keep && too_full(window, user_bytes, memory)) {
        evict(window);
    }
    window->newest->used += slot_bytes(len);
    window->user_bytes += user_bytes;
    window->payload_bytes += len;
    window->memory += memory;
    window->end++;
    window->open = NULL;
    return slot;
}
