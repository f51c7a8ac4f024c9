/* Retention. See um_retention.h. Records lie one behind the other in chunks, which
 * are freed in the order in which they were filled; a ring of pointers finds them. */
#include "delivery/um_retention.h"

#include <string.h>

#include "base/um_mem.h"
#include "base/um_sqn.h"
#include "wire/um_lbmc.h"

#define CHUNK_MIN 4096u /* a source that keeps one message needs little */
#define CHUNK_MAX (256u << 10)
#define INDEX_MIN 16u
#define FETCHED_AHEAD 8u /* records: who asks for one asks for those behind it next */
#define CACHE_LINE 64u

struct chunk {
    struct chunk *next; /* filled after this one */
    size_t capacity, used;
    size_t records; /* still kept */
    _Alignas(struct um_retained) uint8_t data[];
};

struct um_retention {
    struct um_retention_config config;
    struct um_retained **index; /* ring */
    size_t head, count, capacity;
    size_t messages;            /* records that begin one */
    size_t size;                /* as counted */
    struct chunk *first, *last; /* in order of filling */
    struct chunk *spare;        /* ready for use: at most one, or a list of what is reserved */
    struct chunk *read;         /* of the run that is open; NULL: none is */
    bool read_alone;            /* that one is in none of the lists any more */
    size_t reserved;            /* bytes of each chunk of that list; 0: none is */
    size_t memory;              /* chunks */
    uint64_t missed;
};

static void free_chunk(struct um_retention *retention, struct chunk *chunk)
{
    if (chunk != NULL) {
        retention->memory -= sizeof *chunk + chunk->capacity;
        um_free(chunk);
    }
}

void um_retention_destroy(struct um_retention *retention)
{
    if (retention == NULL) {
        return;
    }
    while (retention->first != NULL) {
        struct chunk *chunk = retention->first;
        retention->first = chunk->next;
        free_chunk(retention, chunk);
    }
    while (retention->spare != NULL) {
        struct chunk *chunk = retention->spare;
        retention->spare = chunk->next;
        free_chunk(retention, chunk);
    }
    if (retention->read_alone) {
        free_chunk(retention, retention->read);
    }
    um_free(retention->index);
    um_free(retention);
}

/* ---- the ring ---- */

static struct um_retained *at(const struct um_retention *retention, size_t i)
{
    return retention->index[(retention->head + i) & (retention->capacity - 1)];
}

static bool grow_index(struct um_retention *retention)
{
    size_t capacity = retention->capacity == 0 ? INDEX_MIN : retention->capacity * 2;
    struct um_retained **index = um_malloc(capacity * sizeof *index);
    if (index == NULL) {
        return false;
    }
    for (size_t i = 0; i < retention->count; i++) {
        index[i] = at(retention, i);
    }
    um_free(retention->index);
    retention->index = index;
    retention->head = 0;
    retention->capacity = capacity;
    return true;
}

/* ---- the chunks ---- */

static bool has_room(const struct chunk *chunk, size_t size)
{
    return chunk != NULL && chunk->capacity - chunk->used >= size;
}

static struct chunk *allocate_chunk(struct um_retention *retention, size_t capacity)
{
    struct chunk *chunk = um_malloc(sizeof *chunk + capacity);
    if (chunk != NULL) {
        chunk->capacity = capacity;
        retention->memory += sizeof *chunk + capacity;
    }
    return chunk;
}

static size_t record_size(size_t len)
{
    size_t align = _Alignof(struct um_retained);
    return (sizeof(struct um_retained) + len + align - 1) / align * align;
}

/* Chunks for all records, one more while the oldest is still there, and what is lost where they begin and end. */
static bool reserve(struct um_retention *retention)
{
    size_t records = retention->config.records, size = record_size(retention->config.record_max);
    retention->reserved = size > CHUNK_MAX ? size : records * size < CHUNK_MAX ? records * size : CHUNK_MAX;
    while (retention->capacity <= records) {
        if (!grow_index(retention)) {
            return false;
        }
    }
    for (size_t chunks = records / (retention->reserved / size) + 3; chunks > 0; chunks--) {
        struct chunk *chunk = allocate_chunk(retention, retention->reserved);
        if (chunk == NULL) {
            return false;
        }
        memset(chunk->data, 0, chunk->capacity); /* the first records find the pages there */
        chunk->next = retention->spare;
        retention->spare = chunk;
    }
    return true;
}

struct um_retention *um_retention_create(const struct um_retention_config *config)
{
    struct um_retention *retention = um_calloc(1, sizeof *retention);
    if (retention != NULL) {
        retention->config = *config;
        if (config->records > 0 && !reserve(retention)) {
            um_retention_destroy(retention);
            return NULL;
        }
    }
    return retention;
}

/* About as much as is kept anyway: few chunks, and none much larger than the rest. */
static struct chunk *new_chunk(struct um_retention *retention, size_t size)
{
    size_t capacity = retention->size < CHUNK_MIN ? CHUNK_MIN : retention->size;
    capacity = capacity > CHUNK_MAX ? CHUNK_MAX : capacity;
    capacity = capacity < size ? size : capacity;
    struct chunk *chunk = retention->spare;
    if (chunk != NULL && chunk->capacity >= size) {
        retention->spare = chunk->next;
    } else {
        chunk = allocate_chunk(retention, capacity);
        if (chunk == NULL) {
            return NULL;
        }
    }
    chunk->next = NULL;
    chunk->used = 0;
    chunk->records = 0;
    if (retention->last != NULL) {
        retention->last->next = chunk;
    } else {
        retention->first = chunk;
    }
    retention->last = chunk;
    return chunk;
}

static struct um_retained *new_record(struct um_retention *retention, size_t len)
{
    size_t size = record_size(len);
    struct chunk *chunk = has_room(retention->last, size) ? retention->last : new_chunk(retention, size);
    if (chunk == NULL) {
        return NULL;
    }
    struct um_retained *record = (struct um_retained *)(void *)(chunk->data + chunk->used);
    record->place = (uint32_t)chunk->used;
    chunk->used += size;
    chunk->records++;
    return record;
}

/* Or free it; it is in no list. */
static void use_again(struct um_retention *retention, struct chunk *chunk)
{
    if (retention->reserved != 0 && chunk->capacity == retention->reserved) {
        chunk->next = retention->spare;
        retention->spare = chunk;
    } else if (retention->reserved == 0 && (retention->spare == NULL || retention->spare->capacity < chunk->capacity)) {
        free_chunk(retention, retention->spare);
        chunk->next = NULL;
        retention->spare = chunk;
    } else {
        free_chunk(retention, chunk);
    }
}

/* Of the oldest record. */
static void release_record(struct um_retention *retention)
{
    struct chunk *chunk = retention->first;
    if (--chunk->records != 0) {
        return;
    }
    if (chunk == retention->last) {
        chunk->used = chunk == retention->read ? chunk->used : 0;
        return;
    }
    retention->first = chunk->next;
    if (chunk == retention->read) {
        retention->read_alone = true;
    } else {
        use_again(retention, chunk);
    }
}

/* ---- what goes ---- */

static void remove_oldest_record(struct um_retention *retention)
{
    const struct um_retained *oldest = at(retention, 0);
    retention->size -= oldest->len + UM_RETENTION_OVERHEAD;
    retention->messages -= oldest->begins;
    retention->head = (retention->head + 1) & (retention->capacity - 1);
    retention->count--;
    release_record(retention);
}

static void remove_oldest_message(struct um_retention *retention)
{
    do {
        remove_oldest_record(retention);
    } while (!at(retention, 0)->begins); /* there is a later message */
}

static bool may_go(const struct um_retention *retention, uint64_t now_ns)
{
    const struct um_retention_config *config = &retention->config;
    if (config->records != 0) {
        return retention->count > config->records;
    }
    if (config->size_limit != 0 && retention->size > config->size_limit) {
        return true;
    }
    const struct um_retained *oldest = at(retention, 0), *newest = at(retention, retention->count - 1);
    if (newest->sqn - oldest->sqn >= UM_RETENTION_SPAN_MAX) {
        return true;
    }
    return (config->size_threshold == 0 || retention->size > config->size_threshold) &&
           retention->messages > config->message_threshold &&
           (config->age_ns == 0 || (now_ns > oldest->sent_ns && now_ns - oldest->sent_ns > config->age_ns));
}

void um_retention_expire(struct um_retention *retention, uint64_t now_ns)
{
    while (retention->messages > 1 && may_go(retention, now_ns)) {
        remove_oldest_message(retention);
    }
}

/* ---- what comes ---- */

static bool begins_message(const uint8_t *message, size_t len)
{
    struct um_lbmc_msg msg;
    return um_lbmc_decode(message, len, &msg) != UM_LBMC_OK || (msg.present & UM_LBMC_HAS_FRAG) == 0 ||
           msg.frag.offset == 0;
}

bool um_retention_keep(struct um_retention *retention, uint64_t now_ns, uint32_t sqn, const uint8_t *message,
                       size_t len)
{
    struct um_retained *record = NULL;
    if (len <= UINT16_MAX && (retention->count < retention->capacity || grow_index(retention))) {
        record = new_record(retention, len);
    }
    if (record == NULL) {
        retention->missed++;
        return false;
    }
    record->sent_ns = now_ns;
    record->sqn = sqn;
    record->len = (uint16_t)len;
    record->begins = retention->count == 0 || begins_message(message, len);
    memcpy(record->message, message, len);
    retention->index[(retention->head + retention->count) & (retention->capacity - 1)] = record;
    retention->count++;
    retention->messages += record->begins;
    retention->size += len + UM_RETENTION_OVERHEAD;
    um_retention_expire(retention, now_ns);
    return true;
}

/* ---- what is asked ---- */

/* Numbers may have been left out: then it lies before the place where it would be otherwise. */
const struct um_retained *um_retention_find(const struct um_retention *retention, uint32_t sqn)
{
    if (retention->count == 0 ||
        sqn - at(retention, 0)->sqn > at(retention, retention->count - 1)->sqn - at(retention, 0)->sqn) {
        return NULL;
    }
    size_t distance = sqn - at(retention, 0)->sqn;
    size_t low = 0, high = distance < retention->count ? distance : retention->count - 1;
    if (retention->count - high > FETCHED_AHEAD) {
        const char *ahead = (const char *)at(retention, high + FETCHED_AHEAD);
        __builtin_prefetch(ahead);
        __builtin_prefetch(ahead + CACHE_LINE); /* a small one, and it does not begin a line */
    }
    while (low < high) {
        size_t middle = high - (high - low) / 2;
        if (at(retention, high)->sqn == sqn) {
            return at(retention, high);
        }
        if (um_sqn_newer(at(retention, middle)->sqn, sqn)) {
            high = middle - 1;
        } else {
            low = middle;
        }
    }
    return at(retention, low)->sqn == sqn ? at(retention, low) : NULL;
}

/* ---- what is read without the lock ---- */

void um_retention_close_run(struct um_retention *retention, struct um_retention_run *run)
{
    if (retention->read_alone) {
        use_again(retention, retention->read);
    }
    retention->read = NULL;
    retention->read_alone = false;
    *run = (struct um_retention_run){NULL, NULL};
}

const struct um_retained *um_retention_open_run(struct um_retention *retention, uint32_t sqn,
                                                struct um_retention_run *run)
{
    um_retention_close_run(retention, run);
    const struct um_retained *record = um_retention_find(retention, sqn);
    if (record != NULL) {
        const uint8_t *data = (const uint8_t *)record - record->place;
        retention->read = UM_CONTAINER_OF(data, struct chunk, data);
        run->next = (const uint8_t *)record + record_size(record->len);
        run->end = data + retention->read->used;
    }
    return record;
}

const struct um_retained *um_retention_run_next(struct um_retention_run *run, uint32_t sqn)
{
    const struct um_retained *record = (const struct um_retained *)(const void *)run->next;
    if (run->next == run->end || record->sqn != sqn) {
        return NULL;
    }
    run->next += record_size(record->len);
    return record;
}

bool um_retention_range(const struct um_retention *retention, uint32_t *low, uint32_t *high)
{
    if (retention->count == 0) {
        return false;
    }
    *low = at(retention, 0)->sqn;
    *high = at(retention, retention->count - 1)->sqn;
    return true;
}

size_t um_retention_count(const struct um_retention *retention)
{
    return retention->count;
}

size_t um_retention_size(const struct um_retention *retention)
{
    return retention->size;
}

size_t um_retention_memory(const struct um_retention *retention)
{
    return sizeof *retention + retention->memory + retention->capacity * sizeof(struct um_retained *);
}

uint64_t um_retention_missed(const struct um_retention *retention)
{
    return retention->missed;
}
