/* What collectors and the batches taken from them share: chunks of messages,
 * names of topics and sources. A store lives until its collector and all its
 * batches are gone. Chunks are filled by core/collector.c under its lock and
 * read through batches by any thread; names under the collector's lock. */
#ifndef UM_CORE_COLLECTOR_STORE_H
#define UM_CORE_COLLECTOR_STORE_H

#include <stdatomic.h>
#include <stdbool.h>

#include <lbm/um.h>

#include "base/um_lock.h"
#include "base/um_map.h"

struct um_store;

/* Messages one behind the other. Written while it has one owner, then only read. */
struct um_chunk {
    atomic_int refs; /* any thread: the collector and each batch that looks at it */
    unsigned char *data;
    size_t data_len, data_cap;
    um_record_t *records;
    size_t count, record_cap;
    struct um_chunk *next_free; /* store->lock */
};

/* Names by index; tables that became too small stay for the batches that look at them. */
struct um_names {
    const char **table;
    size_t count, cap;
    struct um_map index; /* name -> index + 1 */
    const char ***old;
    size_t old_count;
};

struct um_store {
    atomic_int refs;                 /* any thread */
    struct um_names topics, sources; /* collector's lock */
    struct um_lock lock;
    struct um_chunk *free_chunks; /* lock */
    unsigned free_count;          /* lock */
};

struct um_store *um_store_create(void); /* refs 1; NULL: out of memory */
void um_store_ref(struct um_store *store);
void um_store_unref(struct um_store *store);

/* Index of a name, added when it is new. False: out of memory. */
bool um_names_index(struct um_names *names, const char *name, uint32_t *index);

struct um_chunk *um_chunk_get(struct um_store *store); /* empty, refs 1; NULL: out of memory */
void um_chunk_unref(struct um_store *store, struct um_chunk *chunk);
/* Makes room for one record and len bytes; false: out of memory, the chunk is as it was. */
bool um_chunk_grow(struct um_chunk *chunk, size_t len);

static inline bool um_chunk_has_room(const struct um_chunk *chunk, size_t len)
{
    return chunk->count < chunk->record_cap && len <= chunk->data_cap - chunk->data_len;
}

/* The records [first, first + count) of the chunk; offsets of these are rewritten to count from the start of the batch.
 * NULL: out of memory. Names as of now: the collector's lock. */
um_batch_t *um_batch_create(struct um_store *store, struct um_chunk *chunk, size_t first, size_t count);
void um_batch_destroy(um_batch_t *batch);

#endif
