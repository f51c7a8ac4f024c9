/* Memory behind collectors: chunks and their reuse, tables of names, batches as
 * views of chunks. Called by the collector and, for releases, by any thread. */
#include "core/um_collector_store.h"

#include <string.h>

#include "base/um_mem.h"
#include "core/um_object_counts.h"

#define CHUNKS_KEPT 2u
#define FIRST_DATA 65536u
#define FIRST_RECORDS 1024u
#define FIRST_NAMES 16u

struct batch {
    um_batch_t pub; /* first: what the application holds */
    struct um_store *store;
    struct um_chunk *chunk;
};

/* ---- store ---- */

static struct um_book *book_create(uint64_t number)
{
    struct um_book *book = um_calloc(1, sizeof *book);
    if (book != NULL) {
        atomic_init(&book->refs, 1);
        book->number = number;
        um_map_init(&book->topics.index, NULL);
        um_map_init(&book->sources.index, NULL);
    }
    return book;
}

struct um_store *um_store_create(void)
{
    struct um_store *store = um_calloc(1, sizeof *store);
    if (store != NULL && (store->book = book_create(1)) == NULL) {
        um_free(store);
        return NULL;
    }
    if (store != NULL) {
        atomic_init(&store->refs, 1);
    }
    return store;
}

void um_store_ref(struct um_store *store)
{
    atomic_fetch_add_explicit(&store->refs, 1, memory_order_relaxed);
}

static void names_free(struct um_names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        um_free((char *)names->table[i]);
    }
    for (size_t i = 0; i < names->old_count; i++) {
        um_free(names->old[i]);
    }
    um_free(names->old);
    um_free(names->table);
    um_map_clear(&names->index);
}

static void book_unref(struct um_book *book)
{
    if (book != NULL && atomic_fetch_sub_explicit(&book->refs, 1, memory_order_acq_rel) == 1) {
        names_free(&book->topics);
        names_free(&book->sources);
        um_free(book);
    }
}

static void chunk_free(struct um_chunk *chunk)
{
    um_free(chunk->data);
    um_free(chunk->records);
    um_free(chunk);
}

void um_store_unref(struct um_store *store)
{
    if (atomic_fetch_sub_explicit(&store->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    struct um_chunk *chunk;
    while ((chunk = store->free_chunks) != NULL) {
        store->free_chunks = chunk->next_free;
        chunk_free(chunk);
    }
    book_unref(store->book);
    um_free(store);
}

/* ---- names ---- */

/* The larger table gets the same pointers; nobody who reads the old one is disturbed. */
static bool names_grow(struct um_names *names)
{
    size_t cap = names->cap == 0 ? FIRST_NAMES : 2 * names->cap;
    const char **table = um_malloc(cap * sizeof *table);
    if (table == NULL) {
        return false;
    }
    if (names->table != NULL) {
        const char ***old = um_realloc(names->old, (names->old_count + 1) * sizeof *old);
        if (old == NULL) {
            um_free(table);
            return false;
        }
        names->old = old;
        names->old[names->old_count++] = names->table;
        memcpy(table, names->table, names->count * sizeof *table);
    }
    names->table = table;
    names->cap = cap;
    return true;
}

bool um_names_find(const struct um_names *names, const char *name, uint32_t *index)
{
    uintptr_t found = (uintptr_t)um_map_get(&names->index, name, strlen(name));
    *index = (uint32_t)(found - 1);
    return found != 0;
}

bool um_names_index(struct um_names *names, const char *name, uint32_t *index, size_t *bytes)
{
    size_t len = strlen(name);
    if (um_names_find(names, name, index)) {
        return true;
    }
    if (names->count == names->cap && !names_grow(names)) {
        return false;
    }
    char *copy = um_strdup(name);
    if (copy == NULL || um_map_put(&names->index, name, len, (void *)(uintptr_t)(names->count + 1)) != 0) {
        um_free(copy);
        return false;
    }
    *index = (uint32_t)names->count;
    names->table[names->count++] = copy;
    *bytes += names->count > UM_NAMES_FREE ? 2 * len + UM_NAME_COST : 0;
    return true;
}

/* ---- chunks ---- */

bool um_chunk_begin(struct um_store *store, struct um_chunk *chunk)
{
    struct um_book *next = NULL;
    if (store->book->topics.count + store->book->sources.count >= UM_NAMES_MAX) {
        next = book_create(store->book->number + 1);
    }
    if (next != NULL) {
        book_unref(store->book);
        store->book = next;
    }
    atomic_fetch_add_explicit(&store->book->refs, 1, memory_order_relaxed);
    chunk->book = store->book;
    return next != NULL;
}

struct um_chunk *um_chunk_get(struct um_store *store)
{
    um_lock_take(&store->lock);
    struct um_chunk *chunk = store->free_chunks;
    if (chunk != NULL) {
        store->free_chunks = chunk->next_free;
        store->free_count--;
    }
    um_lock_give(&store->lock);
    if (chunk == NULL) {
        chunk = um_calloc(1, sizeof *chunk);
        if (chunk == NULL) {
            return NULL;
        }
    }
    atomic_init(&chunk->refs, 1);
    chunk->data_len = 0;
    chunk->count = 0;
    chunk->name_bytes = 0;
    return chunk;
}

void um_chunk_unref(struct um_store *store, struct um_chunk *chunk)
{
    if (atomic_fetch_sub_explicit(&chunk->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    book_unref(chunk->book);
    chunk->book = NULL;
    um_lock_take(&store->lock);
    bool keep = store->free_count < CHUNKS_KEPT;
    if (keep) {
        chunk->next_free = store->free_chunks;
        store->free_chunks = chunk;
        store->free_count++;
    }
    um_lock_give(&store->lock);
    if (!keep) {
        chunk_free(chunk);
    }
}

static bool grow_records(struct um_chunk *chunk)
{
    size_t cap = chunk->record_cap == 0 ? FIRST_RECORDS : 2 * chunk->record_cap;
    um_record_t *records = um_realloc(chunk->records, cap * sizeof *records);
    if (records == NULL) {
        return false;
    }
    chunk->records = records;
    chunk->record_cap = cap;
    return true;
}

static bool grow_data(struct um_chunk *chunk, size_t len)
{
    size_t cap = chunk->data_cap == 0 ? FIRST_DATA : 2 * chunk->data_cap;
    if (cap - chunk->data_len < len) {
        cap = chunk->data_len + len;
    }
    unsigned char *data = um_realloc(chunk->data, cap);
    if (data == NULL) {
        return false;
    }
    chunk->data = data;
    chunk->data_cap = cap;
    return true;
}

bool um_chunk_grow(struct um_chunk *chunk, size_t len)
{
    return (chunk->count < chunk->record_cap || grow_records(chunk)) &&
           (len <= chunk->data_cap - chunk->data_len || grow_data(chunk, len));
}

/* ---- batches ---- */

um_batch_t *um_batch_create(struct um_store *store, struct um_chunk *chunk, size_t first, size_t count)
{
    static const unsigned char nothing[1];
    struct batch *batch = um_malloc(sizeof *batch);
    if (batch == NULL) {
        return NULL;
    }
    um_record_t *records = chunk->records + first;
    size_t start = records[0].offset;
    size_t end = first + count < chunk->count ? records[count].offset : chunk->data_len;
    for (size_t i = 0; start != 0 && i < count; i++) {
        records[i].offset -= start;
    }
    batch->pub = (um_batch_t){
        .data = chunk->data != NULL ? chunk->data + start : nothing,
        .data_len = end - start,
        .records = records,
        .count = count,
        .topics = chunk->book->topics.table,
        .topic_count = chunk->book->topics.count,
        .sources = chunk->book->sources.table,
        .source_count = chunk->book->sources.count,
        .names = chunk->book->number,
    };
    batch->store = store;
    batch->chunk = chunk;
    um_store_ref(store);
    atomic_fetch_add_explicit(&chunk->refs, 1, memory_order_relaxed);
    um_object_count(UM_OBJECT_BATCH, 1);
    return &batch->pub;
}

void um_batch_destroy(um_batch_t *pub)
{
    struct batch *batch = (struct batch *)pub;
    um_chunk_unref(batch->store, batch->chunk);
    um_store_unref(batch->store);
    um_free(batch);
    um_object_count(UM_OBJECT_BATCH, -1);
}
