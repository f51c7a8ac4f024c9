/* The cache of definitions, one for the process: owns what it holds. Any thread; one lock, under which nothing else is
 * locked. Only the application puts definitions in. */
#include "pdm/um_pdm.h"

#include <pthread.h>

#include "base/um_fork.h"
#include "base/um_hash.h"
#include "base/um_mem.h"

#define BUCKETS_DEFAULT 257
#define BUCKETS_MAX (1u << 20)
#define HELD_MAX 65536

struct held {
    struct held *next;
    lbmpdm_defn_t *defn;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
UM_FORK_GUARD(lock)

static struct held **buckets; /* lock */
static uint32_t bucket_count; /* lock */
static uint32_t held_count;   /* lock */

/* With the lock held, as all below up to the API. */
static int make_buckets(uint32_t count)
{
    if (buckets != NULL) {
        return PDM_SUCCESS;
    }
    buckets = um_calloc(count, sizeof *buckets);
    if (buckets == NULL) {
        return um_pdm_error(PDM_ERR_NOMEM, "cache of definitions: out of memory");
    }
    bucket_count = count;
    return PDM_SUCCESS;
}

static struct held **bucket_of(int32_t id)
{
    return buckets == NULL ? NULL : &buckets[um_hash_u32((uint32_t)id) % bucket_count];
}

static struct held *find_exact(int32_t id, uint8_t major, uint8_t minor)
{
    struct held **bucket = bucket_of(id), *held = bucket == NULL ? NULL : *bucket;
    while (held != NULL && !um_pdm_defn_is(held->defn, id, major, minor)) {
        held = held->next;
    }
    return held;
}

static bool is_newer(const lbmpdm_defn_t *a, const lbmpdm_defn_t *b)
{
    uint8_t major = (uint8_t)b->major, minor = (uint8_t)b->minor;
    return (uint8_t)a->major > major || ((uint8_t)a->major == major && (uint8_t)a->minor > minor);
}

static struct held *find_newest(int32_t id)
{
    struct held **bucket = bucket_of(id), *best = NULL;
    for (struct held *held = bucket == NULL ? NULL : *bucket; held != NULL; held = held->next) {
        if (held->defn->id == id && (best == NULL || is_newer(held->defn, best->defn))) {
            best = held;
        }
    }
    return best;
}

static void remove_link(struct held **link)
{
    struct held *held = *link;
    *link = held->next;
    held_count--;
    atomic_store(&held->defn->in_cache, false);
    (void)um_pdm_defn_disown(held->defn);
    um_free(held);
}

/* Of this id, and with `version` not negative of this version (major * 256 + minor). */
static void remove_all(int32_t id, int version)
{
    struct held **link = bucket_of(id);
    while (link != NULL && *link != NULL) {
        const lbmpdm_defn_t *defn = (*link)->defn;
        if (defn->id == id && (version < 0 || version == (uint8_t)defn->major * 256 + (uint8_t)defn->minor)) {
            remove_link(link);
        } else {
            link = &(*link)->next;
        }
    }
}

static int add(lbmpdm_defn_t *defn)
{
    if (make_buckets(BUCKETS_DEFAULT) != PDM_SUCCESS) {
        return PDM_FAILURE;
    }
    struct held *held = find_exact(defn->id, (uint8_t)defn->major, (uint8_t)defn->minor);
    if (held == NULL) {
        if (held_count == HELD_MAX) {
            return um_pdm_error(PDM_ERR_NOMEM, "the cache holds %d definitions, and no more", HELD_MAX);
        }
        if ((held = um_malloc(sizeof *held)) == NULL) {
            return um_pdm_error(PDM_ERR_NOMEM, "cache of definitions: out of memory");
        }
        struct held **bucket = bucket_of(defn->id);
        *held = (struct held){*bucket, defn};
        *bucket = held;
        held_count++;
    } else if (held->defn != defn) { /* the one that is replaced is the application's again */
        atomic_store(&held->defn->in_cache, false);
        held->defn = defn;
    }
    um_pdm_defn_own(defn);
    atomic_store(&defn->in_cache, true);
    return PDM_SUCCESS;
}

lbmpdm_defn_t *um_pdm_cache_reference(int32_t id, uint8_t major, uint8_t minor, bool any)
{
    pthread_mutex_lock(&lock);
    struct held *held = find_exact(id, major, minor);
    if (held == NULL && any) {
        held = find_newest(id);
    }
    lbmpdm_defn_t *defn = held == NULL ? NULL : held->defn;
    if (defn != NULL) {
        atomic_fetch_add(&defn->references, 1);
    }
    pthread_mutex_unlock(&lock);
    return defn;
}

/* ---- the API ---- */

int lbmpdm_cache_init(uint32_t cache_size)
{
    if (cache_size > BUCKETS_MAX) {
        return um_pdm_error(PDM_ERR_EINVAL, "cache size %u: at most %u", (unsigned)cache_size, BUCKETS_MAX);
    }
    pthread_mutex_lock(&lock);
    int rc = make_buckets(cache_size == 0 ? BUCKETS_DEFAULT : cache_size);
    pthread_mutex_unlock(&lock);
    return rc;
}

int lbmpdm_cache_struct_add(lbmpdm_defn_t *defn)
{
    if (defn == NULL) {
        return um_pdm_error(PDM_ERR_EINVAL, "no definition was given");
    }
    if (!defn->finalized) {
        return um_pdm_error(PDM_ERR_DEFN_INVALID, "definition %d is not finalized", (int)defn->id);
    }
    if (defn->id == 0) {
        return PDM_SUCCESS;
    }
    pthread_mutex_lock(&lock);
    int rc = add(defn);
    pthread_mutex_unlock(&lock);
    return rc;
}

int lbmpdm_cache_struct_remove(int32_t id)
{
    pthread_mutex_lock(&lock);
    remove_all(id, -1);
    pthread_mutex_unlock(&lock);
    return PDM_SUCCESS;
}

int lbmpdm_cache_struct_remove_by_version(int32_t id, uint8_t vers_major, uint8_t vers_minor)
{
    pthread_mutex_lock(&lock);
    remove_all(id, vers_major * 256 + vers_minor);
    pthread_mutex_unlock(&lock);
    return PDM_SUCCESS;
}

/* With the lock held, which is given. */
static int found(const struct held *held, lbmpdm_defn_t **defn, int32_t id)
{
    lbmpdm_defn_t *result = held == NULL ? NULL : held->defn;
    pthread_mutex_unlock(&lock);
    if (result == NULL) {
        return um_pdm_error(PDM_ERR_DEFN_INVALID, "definition %d is not in the cache", (int)id);
    }
    *defn = result;
    return PDM_SUCCESS;
}

int lbmpdm_cache_struct_find(lbmpdm_defn_t **defn, int32_t id)
{
    if (defn == NULL) {
        return um_pdm_error(PDM_ERR_EINVAL, "no place for the definition was given");
    }
    pthread_mutex_lock(&lock);
    return found(find_newest(id), defn, id);
}

int lbmpdm_cache_struct_find_by_version(lbmpdm_defn_t **defn, int32_t id, uint8_t vers_major, uint8_t vers_minor)
{
    if (defn == NULL) {
        return um_pdm_error(PDM_ERR_EINVAL, "no place for the definition was given");
    }
    pthread_mutex_lock(&lock);
    return found(find_exact(id, vers_major, vers_minor), defn, id);
}

int lbmpdm_cache_clear_all(void)
{
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < bucket_count; i++) {
        while (buckets[i] != NULL) {
            remove_link(&buckets[i]);
        }
    }
    pthread_mutex_unlock(&lock);
    return PDM_SUCCESS;
}
