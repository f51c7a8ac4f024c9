/* Hash map from bytes to pointer (keys are copied) and from uint32 to pointer.
 * Not thread-safe: the owner locks or confines it to one thread. Grows by
 * doubling; lookups never allocate. */
#ifndef UM_BASE_MAP_H
#define UM_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/um_hash.h"

struct um_map {
    struct um_map_entry **buckets;
    size_t bucket_count; /* power of two */
    size_t count;
    uint32_t (*hash)(const void *key, size_t len);
};

/* `hash` NULL: um_hash_bytes, as it must be where keys come from the network. Allocates nothing until the first put. */
void um_map_init(struct um_map *map, uint32_t (*hash)(const void *key, size_t len));
void um_map_clear(struct um_map *map); /* frees keys and table, not the values */
void *um_map_get(const struct um_map *map, const void *key, size_t len);
/* Returns 0, or -1 out of memory (map unchanged, no error text set). Replaces the value of an existing key. */
int um_map_put(struct um_map *map, const void *key, size_t len, void *value);
void *um_map_remove(struct um_map *map, const void *key, size_t len); /* the removed value or NULL */
/* Iterate in unspecified order; the callback may remove the entry it is given, nothing else. */
void um_map_foreach(struct um_map *map, void (*fn)(const void *key, size_t len, void *value, void *arg), void *arg);

static inline size_t um_map_count(const struct um_map *map)
{
    return map->count;
}

struct um_u32_map {
    uint32_t *keys;
    void **values;   /* NULL value = free slot */
    size_t capacity; /* power of two, 0 before the first put */
    size_t count;
};

void um_u32_map_init(struct um_u32_map *map);
void um_u32_map_clear(struct um_u32_map *map);
int um_u32_map_put(struct um_u32_map *map, uint32_t key, void *value); /* value must not be NULL */
void *um_u32_map_remove(struct um_u32_map *map, uint32_t key);
bool um_u32_map_next(const struct um_u32_map *map, size_t *cursor, uint32_t *key,
                     void **value); /* cursor starts at 0 */

static inline void *um_u32_map_get(const struct um_u32_map *map, uint32_t key)
{
    if (map->count == 0) {
        return NULL;
    }
    size_t mask = map->capacity - 1;
    size_t slot = um_hash_u32(key) & mask;
    while (map->values[slot] != NULL) {
        if (map->keys[slot] == key) {
            return map->values[slot];
        }
        slot = (slot + 1) & mask;
    }
    return NULL;
}

/* What resolver_string_hash_function names; of fixed seed, so never for keys from the network. */
uint32_t um_hash_murmur2(const void *key, size_t len);
uint32_t um_hash_classic(const void *key, size_t len);
uint32_t um_hash_djb2(const void *key, size_t len);
uint32_t um_hash_sdbm(const void *key, size_t len);

#endif
