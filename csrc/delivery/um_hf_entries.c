/* Entries in blocks. See um_hf_entries.h. */
#include "delivery/um_hf_entries.h"

#include <string.h>

#include "base/um_mem.h"

#define BLOCK 128u /* entries */
#define FIRST_BLOCKS 8u

struct um_hf_block {
    unsigned first, end; /* those in use */
    struct um_hf_entry list[BLOCK];
};

static struct um_hf_block *block_at(const struct um_hf_entries *e, size_t i)
{
    return e->blocks[e->head + i];
}

struct um_hf_entry *um_hf_entries_first(const struct um_hf_entries *e)
{
    struct um_hf_block *block = block_at(e, 0);
    return &block->list[block->first];
}

struct um_hf_entry *um_hf_entries_last(const struct um_hf_entries *e)
{
    struct um_hf_block *block = block_at(e, e->block_count - 1);
    return &block->list[block->end - 1];
}

struct um_hf_entry *um_hf_entries_at(const struct um_hf_entries *e, struct um_hf_at at)
{
    return at.block < e->block_count ? &block_at(e, at.block)->list[at.index] : NULL;
}

static bool is_before(const struct um_hf_entry *entry, uint64_t number, bool wide)
{
    return um_hf_number_diff(entry->number, number, wide) < 0;
}

/* First the block: the first one whose last entry is not before it. */
struct um_hf_at um_hf_entries_find(const struct um_hf_entries *e, uint64_t number, bool wide)
{
    size_t low = 0, high = e->block_count;
    if (e->count == 0 || is_before(um_hf_entries_last(e), number, wide)) {
        return (struct um_hf_at){e->block_count, 0};
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct um_hf_block *block = block_at(e, middle);
        if (is_before(&block->list[block->end - 1], number, wide)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    const struct um_hf_block *block = block_at(e, low);
    unsigned from = block->first, to = block->end;
    while (from < to) {
        unsigned middle = from + (to - from) / 2;
        if (is_before(&block->list[middle], number, wide)) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return (struct um_hf_at){low, from};
}

/* Room for one more block. False: no memory. */
static bool make_room(struct um_hf_entries *e)
{
    if (e->head + e->block_count < e->capacity) {
        return true;
    }
    if (e->head > 0 && e->head >= e->capacity / 2) {
        memmove(e->blocks, e->blocks + e->head, e->block_count * sizeof *e->blocks);
        e->head = 0;
        return true;
    }
    size_t capacity = e->capacity == 0 ? FIRST_BLOCKS : 2 * e->capacity;
    struct um_hf_block **blocks = um_realloc(e->blocks, capacity * sizeof *blocks);
    if (blocks == NULL) {
        return false;
    }
    e->blocks = blocks;
    e->capacity = capacity;
    return true;
}

/* An empty one before the block `at`. NULL: no memory. */
static struct um_hf_block *add_block(struct um_hf_entries *e, size_t at)
{
    struct um_hf_block *block = make_room(e) ? um_malloc(sizeof *block) : NULL;
    if (block != NULL) {
        struct um_hf_block **place = &e->blocks[e->head + at];
        block->first = block->end = 0;
        memmove(place + 1, place, (e->block_count - at) * sizeof *place);
        *place = block;
        e->block_count++;
    }
    return block;
}

/* The second half of a full block gets one of its own. */
static bool split(struct um_hf_entries *e, size_t at)
{
    struct um_hf_block *upper = add_block(e, at + 1);
    if (upper == NULL) {
        return false;
    }
    struct um_hf_block *lower = block_at(e, at);
    memcpy(upper->list, lower->list + BLOCK / 2, (BLOCK - BLOCK / 2) * sizeof upper->list[0]);
    upper->end = BLOCK - BLOCK / 2;
    lower->end = BLOCK / 2;
    return true;
}

static void put(struct um_hf_block *block, unsigned index, const struct um_hf_entry *entry)
{
    if (block->end < BLOCK) {
        memmove(&block->list[index + 1], &block->list[index], (block->end - index) * sizeof *entry);
        block->end++;
    } else { /* there is room at its beginning */
        memmove(&block->list[block->first - 1], &block->list[block->first], (index - block->first) * sizeof *entry);
        block->first--;
        index--;
    }
    block->list[index] = *entry;
}

bool um_hf_entries_insert(struct um_hf_entries *e, struct um_hf_at at, const struct um_hf_entry *entry)
{
    if (at.block == e->block_count) { /* behind all of them */
        if (e->block_count == 0 || block_at(e, e->block_count - 1)->end == BLOCK) {
            if (add_block(e, e->block_count) == NULL) {
                return false;
            }
        }
        at.block = e->block_count - 1;
        at.index = block_at(e, at.block)->end;
    } else if (block_at(e, at.block)->first == 0 && block_at(e, at.block)->end == BLOCK) {
        if (!split(e, at.block)) {
            return false;
        }
        if (at.index > BLOCK / 2) {
            at.block++;
            at.index -= BLOCK / 2;
        }
    }
    put(block_at(e, at.block), at.index, entry);
    e->count++;
    return true;
}

struct um_hf_entry um_hf_entries_take_first(struct um_hf_entries *e)
{
    struct um_hf_block *block = block_at(e, 0);
    struct um_hf_entry entry = block->list[block->first++];
    if (block->first == block->end) {
        um_free(block);
        e->head++;
        e->block_count--;
    }
    if (--e->count == 0) {
        e->head = 0;
    }
    return entry;
}

void um_hf_entries_each(const struct um_hf_entries *e, void (*fn)(void *held, void *arg), void *arg)
{
    for (size_t i = 0; i < e->block_count; i++) {
        const struct um_hf_block *block = block_at(e, i);
        for (unsigned k = block->first; k < block->end; k++) {
            if (block->list[k].held != NULL) {
                fn(block->list[k].held, arg);
            }
        }
    }
}

void um_hf_entries_free(struct um_hf_entries *e)
{
    um_free(e->blocks);
    *e = (struct um_hf_entries){0};
}
