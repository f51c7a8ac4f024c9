/* Intrusive hash table: links live in the owner's structure, keys are compared
 * by the caller, who walks the links of one hash. Grows by doubling; a failed
 * growth only makes chains longer. One thread. */
#ifndef UM_RESOLVER_TR_TABLE_H
#define UM_RESOLVER_TR_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct um_tr_link {
    struct um_tr_link *next;
    uint32_t hash;
};

struct um_tr_table {
    struct um_tr_link **buckets;
    size_t capacity; /* power of two, 0 before the first add */
    size_t count;
};

int um_tr_table_add(struct um_tr_table *table, struct um_tr_link *link, uint32_t hash); /* -1: out of memory */
void um_tr_table_remove(struct um_tr_table *table, struct um_tr_link *link);
/* Links with this hash: first, then next until NULL. */
struct um_tr_link *um_tr_table_find(const struct um_tr_table *table, uint32_t hash);
struct um_tr_link *um_tr_table_find_next(const struct um_tr_link *link);
/* Every link; the caller must not add or remove meanwhile. Start with *cursor 0 and link NULL. */
struct um_tr_link *um_tr_table_next(const struct um_tr_table *table, size_t *cursor, struct um_tr_link *link);
void um_tr_table_free(struct um_tr_table *table); /* the buckets, not the owners */

#endif
