/* What waits in the merge of hot failover sources, in the order of its numbers:
 * blocks of entries, so that one that comes in between moves few others, however
 * many there are and in whatever order a source sends. Used by um_hf.c and
 * um_hf_source.c only; their thread. */
#ifndef UM_DELIVERY_HF_ENTRIES_H
#define UM_DELIVERY_HF_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A message that waits, or in arrival order a number. Newest of several copies last. */
struct um_hf_entry {
    uint64_t number, before; /* `before`: the number that its source sent just before; with has_before */
    uint64_t since_ns;       /* the hole before it was seen */
    void *held;              /* NULL: nothing to deliver */
    uint32_t size;
    uint16_t flags; /* enum um_lbmc_hf_flags */
    bool has_before, copy;
};

struct um_hf_block;

struct um_hf_entries {
    struct um_hf_block **blocks; /* none is empty; from `head` on */
    size_t head, block_count, capacity;
    size_t count; /* of entries */
};

/* A place among them; valid until they change. */
struct um_hf_at {
    size_t block;
    unsigned index;
};

/* a - b; numbers wrap at their width. */
static inline int64_t um_hf_number_diff(uint64_t a, uint64_t b, bool wide)
{
    return wide ? (int64_t)(a - b) : (int32_t)((uint32_t)a - (uint32_t)b);
}

struct um_hf_entry *um_hf_entries_first(const struct um_hf_entries *e);                  /* there is one */
struct um_hf_entry *um_hf_entries_last(const struct um_hf_entries *e);                   /* the same */
struct um_hf_entry *um_hf_entries_at(const struct um_hf_entries *e, struct um_hf_at at); /* NULL: behind all of them */
/* The first one that is not before `number`, or behind all of them. */
struct um_hf_at um_hf_entries_find(const struct um_hf_entries *e, uint64_t number, bool wide);
/* False: no memory, nothing has changed. */
bool um_hf_entries_insert(struct um_hf_entries *e, struct um_hf_at at, const struct um_hf_entry *entry);
struct um_hf_entry um_hf_entries_take_first(struct um_hf_entries *e); /* there is one */
/* Calls `fn` for every message that waits. */
void um_hf_entries_each(const struct um_hf_entries *e, void (*fn)(void *held, void *arg), void *arg);
void um_hf_entries_free(struct um_hf_entries *e); /* there is none */

#endif
