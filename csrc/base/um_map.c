/* Hash maps: bytes to pointer (chained) and uint32 to pointer (open addressing),
 * and the string hashes that the resolver options name.
 * Not thread-safe; the owner confines or locks. */
#include "base/um_map.h"

#include <string.h>

#include "base/um_mem.h"

#define UM_MAP_FIRST_BUCKETS 16u
#define UM_U32_MAP_FIRST_CAPACITY 16u

struct um_map_entry {
    struct um_map_entry *next;
    void *value;
    size_t len;
    uint32_t hash;
    uint8_t key[]; /* followed by a NUL, so that text keys are strings */
};

void um_map_init(struct um_map *map, uint32_t (*hash)(const void *key, size_t len))
{
    *map = (struct um_map){.hash = hash != NULL ? hash : um_hash_bytes};
}

void um_map_clear(struct um_map *map)
{
    for (size_t i = 0; i < map->bucket_count; i++) {
        struct um_map_entry *entry = map->buckets[i];
        while (entry != NULL) {
            struct um_map_entry *next = entry->next;
            um_free(entry);
            entry = next;
        }
    }
    um_free(map->buckets);
    um_map_init(map, map->hash);
}

/* The link that points to the entry of this key, or to the NULL where it would be. */
static struct um_map_entry **um_map_find(const struct um_map *map, uint32_t hash, const void *key, size_t len)
{
    struct um_map_entry **link = &map->buckets[hash & (map->bucket_count - 1)];
    while (*link != NULL && !((*link)->hash == hash && (*link)->len == len && memcmp((*link)->key, key, len) == 0)) {
        link = &(*link)->next;
    }
    return link;
}

void *um_map_get(const struct um_map *map, const void *key, size_t len)
{
    if (map->count == 0) {
        return NULL;
    }
    struct um_map_entry *entry = *um_map_find(map, map->hash(key, len), key, len);
    return entry != NULL ? entry->value : NULL;
}

static int um_map_grow(struct um_map *map)
{
    size_t bucket_count = map->bucket_count != 0 ? map->bucket_count * 2 : UM_MAP_FIRST_BUCKETS;
    struct um_map_entry **buckets = um_calloc(bucket_count, sizeof *buckets);
    if (buckets == NULL) {
        return -1;
    }
    for (size_t i = 0; i < map->bucket_count; i++) {
        struct um_map_entry *entry = map->buckets[i];
        while (entry != NULL) {
            struct um_map_entry *next = entry->next;
            struct um_map_entry **slot = &buckets[entry->hash & (bucket_count - 1)];
            entry->next = *slot;
            *slot = entry;
            entry = next;
        }
    }
    um_free(map->buckets);
    map->buckets = buckets;
    map->bucket_count = bucket_count;
    return 0;
}

int um_map_put(struct um_map *map, const void *key, size_t len, void *value)
{
    /* A failed doubling only makes the chains longer; without any bucket the put fails. */
    if (map->count >= map->bucket_count && um_map_grow(map) < 0 && map->bucket_count == 0) {
        return -1;
    }
    uint32_t hash = map->hash(key, len);
    struct um_map_entry **link = um_map_find(map, hash, key, len);
    if (*link != NULL) {
        (*link)->value = value;
        return 0;
    }
    struct um_map_entry *entry = um_malloc(sizeof *entry + len + 1);
    if (entry == NULL) {
        return -1;
    }
    entry->next = NULL;
    entry->value = value;
    entry->len = len;
    entry->hash = hash;
    memcpy(entry->key, key, len);
    entry->key[len] = 0;
    *link = entry;
    map->count++;
    return 0;
}

void *um_map_remove(struct um_map *map, const void *key, size_t len)
{
    if (map->count == 0) {
        return NULL;
    }
    struct um_map_entry **link = um_map_find(map, map->hash(key, len), key, len);
    struct um_map_entry *entry = *link;
    if (entry == NULL) {
        return NULL;
    }
    void *value = entry->value;
    *link = entry->next;
    um_free(entry);
    map->count--;
    return value;
}

void um_map_foreach(struct um_map *map, void (*fn)(const void *key, size_t len, void *value, void *arg), void *arg)
{
    for (size_t i = 0; i < map->bucket_count; i++) {
        struct um_map_entry *entry = map->buckets[i];
        while (entry != NULL) {
            struct um_map_entry *next = entry->next;
            fn(entry->key, entry->len, entry->value, arg);
            entry = next;
        }
    }
}

void um_u32_map_init(struct um_u32_map *map)
{
    *map = (struct um_u32_map){0};
}

void um_u32_map_clear(struct um_u32_map *map)
{
    um_free(map->keys);
    um_free(map->values);
    um_u32_map_init(map);
}

static size_t um_u32_map_home(const struct um_u32_map *map, uint32_t key)
{
    return um_hash_u32(key) & (map->capacity - 1);
}

/* The slot of the key, or the free slot where it belongs. */
static size_t um_u32_map_slot(const struct um_u32_map *map, uint32_t key)
{
    size_t slot = um_u32_map_home(map, key);
    while (map->values[slot] != NULL && map->keys[slot] != key) {
        slot = (slot + 1) & (map->capacity - 1);
    }
    return slot;
}

static int um_u32_map_grow(struct um_u32_map *map)
{
    struct um_u32_map bigger = {.capacity = map->capacity != 0 ? map->capacity * 2 : UM_U32_MAP_FIRST_CAPACITY,
                                .count = map->count};
    bigger.keys = um_malloc(bigger.capacity * sizeof *bigger.keys);
    bigger.values = um_calloc(bigger.capacity, sizeof *bigger.values);
    if (bigger.keys == NULL || bigger.values == NULL) {
        um_free(bigger.keys);
        um_free(bigger.values);
        return -1;
    }
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->values[i] != NULL) {
            size_t slot = um_u32_map_slot(&bigger, map->keys[i]);
            bigger.keys[slot] = map->keys[i];
            bigger.values[slot] = map->values[i];
        }
    }
    um_free(map->keys);
    um_free(map->values);
    *map = bigger;
    return 0;
}

int um_u32_map_put(struct um_u32_map *map, uint32_t key, void *value)
{
    if ((map->count + 1) * 4 > map->capacity * 3) {
        /* One free slot must remain, or a search for an absent key would not end. */
        if (um_u32_map_grow(map) < 0 && map->count + 1 >= map->capacity) {
            return -1;
        }
    }
    size_t slot = um_u32_map_slot(map, key);
    if (map->values[slot] == NULL) {
        map->keys[slot] = key;
        map->count++;
    }
    map->values[slot] = value;
    return 0;
}

void *um_u32_map_remove(struct um_u32_map *map, uint32_t key)
{
    if (map->count == 0) {
        return NULL;
    }
    size_t mask = map->capacity - 1;
    size_t hole = um_u32_map_slot(map, key);
    void *value = map->values[hole];
    if (value == NULL) {
        return NULL;
    }
    /* Close the gap: move back every follower whose search would now stop at the hole. */
    for (size_t slot = (hole + 1) & mask; map->values[slot] != NULL; slot = (slot + 1) & mask) {
        size_t home = um_u32_map_home(map, map->keys[slot]);
        if (((slot - home) & mask) >= ((slot - hole) & mask)) {
            map->keys[hole] = map->keys[slot];
            map->values[hole] = map->values[slot];
            hole = slot;
        }
    }
    map->values[hole] = NULL;
    map->count--;
    return value;
}

bool um_u32_map_next(const struct um_u32_map *map, size_t *cursor, uint32_t *key, void **value)
{
    for (; *cursor < map->capacity; (*cursor)++) {
        if (map->values[*cursor] != NULL) {
            *key = map->keys[*cursor];
            *value = map->values[*cursor];
            (*cursor)++;
            return true;
        }
    }
    return false;
}

/* MurmurHash2 (Austin Appleby, public domain), seed 0. */
uint32_t um_hash_murmur2(const void *key, size_t len)
{
    const uint32_t multiplier = 0x5bd1e995u;
    const uint8_t *data = key;
    uint32_t hash = (uint32_t)len;
    for (; len >= 4; data += 4, len -= 4) {
        uint32_t word;
        memcpy(&word, data, sizeof word);
        word *= multiplier;
        word ^= word >> 24;
        hash = (hash * multiplier) ^ (word * multiplier);
    }
    uint32_t tail = 0;
    for (size_t i = 0; i < len; i++) {
        tail |= (uint32_t)data[i] << (8 * i);
    }
    if (len > 0) {
        hash = (hash ^ tail) * multiplier;
    }
    hash ^= hash >> 13;
    hash *= multiplier;
    return hash ^ (hash >> 15);
}

uint32_t um_hash_classic(const void *key, size_t len) /* Kernighan and Ritchie, multiplier 31 */
{
    const uint8_t *data = key;
    uint32_t hash = 0;
    for (size_t i = 0; i < len; i++) {
        hash = hash * 31u + data[i];
    }
    return hash;
}

uint32_t um_hash_djb2(const void *key, size_t len) /* Bernstein */
{
    const uint8_t *data = key;
    uint32_t hash = 5381u;
    for (size_t i = 0; i < len; i++) {
        hash = hash * 33u + data[i];
    }
    return hash;
}

uint32_t um_hash_sdbm(const void *key, size_t len)
{
    const uint8_t *data = key;
    uint32_t hash = 0;
    for (size_t i = 0; i < len; i++) {
        hash = hash * 65599u + data[i];
    }
    return hash;
}
