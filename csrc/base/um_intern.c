/* Structures kept by their bytes. See um_intern.h. */
#include "base/um_intern.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "base/um_fork.h"
#include "base/um_hash.h"
#include "base/um_mem.h"
#include "base/um_table.h"

struct interned {
    struct um_table_link link; /* [lock] */
    size_t refs;               /* [lock] */
    size_t size;
    _Alignas(max_align_t) unsigned char bytes[]; /* fixed */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
UM_FORK_GUARD(lock)
static struct um_table table; /* [lock] */

/* Lock. NULL: there is none. */
static struct interned *find(const void *bytes, size_t size, uint32_t hash)
{
    for (struct um_table_link *link = um_table_find(&table, hash); link != NULL; link = um_table_find_next(link)) {
        struct interned *entry = UM_CONTAINER_OF(link, struct interned, link);
        if (entry->size == size && memcmp(entry->bytes, bytes, size) == 0) {
            return entry;
        }
    }
    return NULL;
}

/* Lock. NULL: out of memory. */
static struct interned *add(const void *bytes, size_t size, uint32_t hash)
{
    struct interned *entry = um_calloc(1, sizeof *entry + size);
    if (entry == NULL || um_table_add(&table, &entry->link, hash) != 0) {
        um_free(entry);
        return NULL;
    }
    entry->size = size;
    memcpy(entry->bytes, bytes, size);
    return entry;
}

const void *um_intern(const void *bytes, size_t size)
{
    uint32_t hash = um_hash_bytes(bytes, size);
    pthread_mutex_lock(&lock);
    struct interned *entry = find(bytes, size, hash);
    if (entry == NULL) {
        entry = add(bytes, size, hash);
    }
    if (entry != NULL) {
        entry->refs++;
    }
    pthread_mutex_unlock(&lock);
    return entry == NULL ? NULL : entry->bytes;
}

void um_intern_drop(const void *interned)
{
    if (interned == NULL) {
        return;
    }
    struct interned *entry = UM_CONTAINER_OF(interned, struct interned, bytes);
    pthread_mutex_lock(&lock);
    bool last = --entry->refs == 0;
    if (last) {
        um_table_remove(&table, &entry->link);
    }
    if (table.count == 0) {
        um_table_free(&table);
    }
    pthread_mutex_unlock(&lock);
    if (last) {
        um_free(entry);
    }
}

size_t um_intern_count(void)
{
    pthread_mutex_lock(&lock);
    size_t count = table.count;
    pthread_mutex_unlock(&lock);
    return count;
}
