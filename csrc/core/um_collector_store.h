/* What collectors and the batches taken from them share: chunks of messages,
 * names of topics and sources in books of which an old one goes with its chunks. A store lives until its collector and
 * all its batches are gone. Chunks are filled by core/um_collector_gather.c under its lock and read through batches by
 * any thread; names under the collector's lock. */
#ifndef UM_CORE_COLLECTOR_STORE_H
#define UM_CORE_COLLECTOR_STORE_H

#include <stdatomic.h>
#include <stdbool.h>

#include <lbm/um.h>

#include "base/um_lock.h"
#include "base/um_map.h"
#include "core/um_record_tail.h"

struct um_store;

#define UM_NAMES_MAX 16384u /* in a book; the next chunk begins a new one */
#define UM_NAMES_FREE 1024u /* of a kind in a book; those beyond count towards the bound of the collector */
#define UM_NAME_COST 128u   /* bytes that a name counts for beside its text: copies, index, tables, about */

/* Messages one behind the other. Written while it has one owner, then only read. */
struct um_chunk {
    atomic_int refs; /* any thread: the collector and each batch that looks at it */
    unsigned char *data;
    size_t data_len, data_cap;
    um_record_t *records;
    size_t count, record_cap;
    struct um_book *book;       /* what the records' indexes mean; NULL: no records */
    size_t name_bytes;          /* collector's lock: what the names that it brought into the book count for */
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

/* Names of some chunks that follow each other. */
struct um_book {
    atomic_int refs;                 /* any thread: the store, while it is the newest, and each chunk */
    uint64_t number;                 /* constant: counts the books of the store */
    struct um_names topics, sources; /* collector's lock */
};

struct um_store {
    atomic_int refs;      /* any thread */
    struct um_book *book; /* collector's lock: the newest */
    struct um_lock lock;
    struct um_chunk *free_chunks; /* lock */
    unsigned free_count;          /* lock */
};

struct um_store *um_store_create(void); /* refs 1; NULL: out of memory */
void um_store_ref(struct um_store *store);
void um_store_unref(struct um_store *store);

/* Index of a name; false: it is not in the table. */
bool um_names_find(const struct um_names *names, const char *name, uint32_t *index);
/* Index of a name, added when it is new; *bytes then grows by what it counts for. False: out of memory. */
bool um_names_index(struct um_names *names, const char *name, uint32_t *index, size_t *bytes);

/* An empty chunk gets the newest book. True: that is another than before, and what was known of indexes is void. A full
 * book is followed by a new one, unless memory is short. */
bool um_chunk_begin(struct um_store *store, struct um_chunk *chunk);

struct um_chunk *um_chunk_get(struct um_store *store); /* empty, refs 1; NULL: out of memory */
void um_chunk_unref(struct um_store *store, struct um_chunk *chunk);
/* Makes room for one record and len bytes; false: out of memory, the chunk is as it was. */
bool um_chunk_grow(struct um_chunk *chunk, size_t len);

/* What a record and its kin take up in a chunk: the payload and its tail. */
static inline size_t um_record_room(const um_record_t *record, const unsigned char *payload)
{
    return record->length + ((record->flags & UM_RECORD_TAIL) != 0 ? um_tail_len_of(record, payload) : 0);
}

static inline bool um_chunk_has_room(const struct um_chunk *chunk, size_t len)
{
    return chunk->count < chunk->record_cap && len <= chunk->data_cap - chunk->data_len;
}

/* The records [first, first + count) of the chunk; offsets of these are rewritten to count from the start of the batch.
 * NULL: out of memory. Names as of now: the collector's lock. */
um_batch_t *um_batch_create(struct um_store *store, struct um_chunk *chunk, size_t first, size_t count);
void um_batch_destroy(um_batch_t *batch);

#endif
