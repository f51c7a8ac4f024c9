/* Equal options of live objects, once for all of them. See um_shared_options.h. */
#include "config/um_shared_options.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_fork.h"
#include "base/um_hash.h"
#include "base/um_mem.h"
#include "base/um_table.h"
#include "config/um_option_table.h"

struct shared_options {
    struct um_table_link link; /* [lock] */
    atomic_uint refs;          /* any thread; reaches 0 and leaves it under the lock only */
    enum um_option_scope scope;
    _Alignas(max_align_t) unsigned char options[]; /* fixed */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
UM_FORK_GUARD(lock)
static struct um_table table; /* [lock] by contents */

static struct shared_options *of(const void *shared)
{
    return UM_CONTAINER_OF(shared, struct shared_options, options);
}

/* ---- contents ---- */

/* What is beside the options. */
static void *ranges_of(enum um_option_scope scope, const void *options, size_t *size)
{
    struct um_receiver_options *receiver = (struct um_receiver_options *)options;
    *size = scope == UM_SCOPE_RECEIVER ? sizeof receiver->default_ranges : 0;
    return scope == UM_SCOPE_RECEIVER ? receiver->default_ranges : NULL;
}

static uint32_t hash_of(enum um_option_scope scope, const void *options)
{
    size_t size;
    const void *ranges = ranges_of(scope, options, &size);
    return um_options_hash(scope, options) ^ (size > 0 ? um_hash_bytes(ranges, size) : 0);
}

static bool same(enum um_option_scope scope, const void *a, const void *b)
{
    size_t size;
    const void *ranges = ranges_of(scope, a, &size);
    return um_options_equal(scope, a, b) && (size == 0 || memcmp(ranges, ranges_of(scope, b, &size), size) == 0);
}

/* ---- sharing ---- */

/* Lock. One more reference on what is equal, or NULL. */
static struct shared_options *find(enum um_option_scope scope, const void *options, uint32_t hash)
{
    for (struct um_table_link *link = um_table_find(&table, hash); link != NULL; link = um_table_find_next(link)) {
        struct shared_options *entry = UM_CONTAINER_OF(link, struct shared_options, link);
        if (entry->scope == scope && same(scope, entry->options, options)) {
            atomic_fetch_add_explicit(&entry->refs, 1, memory_order_relaxed);
            return entry;
        }
    }
    return NULL;
}

static struct shared_options *new_entry(enum um_option_scope scope)
{
    struct shared_options *entry = um_calloc(1, sizeof *entry + um_options_size(scope));
    if (entry != NULL) {
        atomic_init(&entry->refs, 1);
        entry->scope = scope;
    }
    return entry;
}

/* Lock. NULL: out of memory. */
static struct shared_options *add(enum um_option_scope scope, const void *options, uint32_t hash)
{
    struct shared_options *entry = new_entry(scope);
    if (entry == NULL) {
        return NULL;
    }
    memcpy(entry->options, options, um_options_size(scope));
    if (um_table_add(&table, &entry->link, hash) != 0) {
        um_free(entry);
        return NULL;
    }
    return entry;
}

const void *um_options_share(enum um_option_scope scope, void *options)
{
    uint32_t hash = hash_of(scope, options);
    pthread_mutex_lock(&lock);
    struct shared_options *entry = find(scope, options, hash);
    bool found = entry != NULL;
    if (!found) {
        entry = add(scope, options, hash);
    }
    pthread_mutex_unlock(&lock);
    if (entry == NULL) {
        um_error_nomem("options", sizeof *entry + um_options_size(scope));
        return NULL;
    }
    if (found) {
        um_options_clear(scope, options);
    }
    return entry->options;
}

const void *um_options_share_changed(const void *shared, int (*change)(void *options, void *arg), void *arg)
{
    enum um_option_scope scope = of(shared)->scope;
    struct shared_options *draft = new_entry(scope);
    if (draft == NULL) {
        um_error_nomem("options", sizeof *draft + um_options_size(scope));
        return NULL;
    }
    if (um_options_copy(scope, draft->options, shared) != 0) {
        um_free(draft);
        return NULL;
    }
    size_t size;
    void *ranges = ranges_of(scope, draft->options, &size);
    if (size > 0) {
        memcpy(ranges, ranges_of(scope, shared, &size), size);
    }
    const void *result = change(draft->options, arg) == 0 ? um_options_share(scope, draft->options) : NULL;
    if (result == NULL) {
        um_options_clear(scope, draft->options);
    }
    um_free(draft);
    return result;
}

/* ---- references ---- */

void um_options_hold(const void *shared)
{
    atomic_fetch_add_explicit(&of(shared)->refs, 1, memory_order_relaxed);
}

/* Not the last one. */
static bool drop_one(struct shared_options *entry)
{
    unsigned refs = atomic_load_explicit(&entry->refs, memory_order_relaxed);
    while (refs > 1) {
        if (atomic_compare_exchange_weak_explicit(&entry->refs, &refs, refs - 1, memory_order_release,
                                                  memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

void um_options_drop(const void *shared)
{
    if (shared == NULL || drop_one(of(shared))) {
        return;
    }
    struct shared_options *entry = of(shared);
    pthread_mutex_lock(&lock);
    bool last = atomic_fetch_sub_explicit(&entry->refs, 1, memory_order_acq_rel) == 1;
    if (last) {
        um_table_remove(&table, &entry->link);
    }
    if (table.count == 0) {
        um_table_free(&table);
    }
    pthread_mutex_unlock(&lock);
    if (last) {
        um_options_clear(entry->scope, entry->options);
        um_free(entry);
    }
}

size_t um_options_shared_count(void)
{
    pthread_mutex_lock(&lock);
    size_t count = table.count;
    pthread_mutex_unlock(&lock);
    return count;
}
