/* Intrusive hash table: links live in the owner's structure, keys are compared
 * by the caller, who walks the links of one hash. Grows by doubling; a failed
 * growth only makes chains longer. One thread. */
#ifndef UM_BASE_TABLE_H
#define UM_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct um_table_link {
    struct um_table_link *next;
    uint32_t hash;
    uint32_t word; /* the owner's: there is room for it anyhow */
};

struct um_table {
    struct um_table_link **buckets;
    size_t capacity; /* power of two, 0 before the first add */
    size_t count;
};

int um_table_add(struct um_table *table, struct um_table_link *link, uint32_t hash); /* -1: out of memory */
void um_table_remove(struct um_table *table, struct um_table_link *link);
/* Links with this hash: first, then next until NULL. */
struct um_table_link *um_table_find(const struct um_table *table, uint32_t hash);
struct um_table_link *um_table_find_next(const struct um_table_link *link);
/* Every link; the caller must not add or remove meanwhile. Start with *cursor 0 and link NULL. */
struct um_table_link *um_table_next(const struct um_table *table, size_t *cursor, struct um_table_link *link);

/* A walk in steps, between which links may be added and removed. Zeroed: at the beginning. */
struct um_table_scan {
    size_t bucket;
    bool done;
    bool cut; /* links of a chain longer than a step were left out: the table could not grow */
};
/* The next step: up to `room` links. Those that are in the table from the first step to the last are met once, others
 * at most once. May return 0 before scan->done. */
size_t um_table_scan(const struct um_table *table, struct um_table_scan *scan, struct um_table_link **out, size_t room);
void um_table_free(struct um_table *table); /* the buckets, not the owners */

#endif
