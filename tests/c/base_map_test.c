/* The hash maps against a naive model, and the string hashes. */
#include "um_test.h"

#include "base/um_map.h"
#include "base/um_mem.h"
#include "base/um_random.h"

static bool fail_all(size_t size)
{
    return true;
}

TEST(map_agrees_with_a_naive_model_under_random_operations)
{
    static int values[512];
    void *model[512] = {NULL};
    struct um_map map;
    struct um_rng rng;
    um_map_init(&map, NULL);
    um_rng_seed(&rng, 7);
    size_t count = 0;
    for (int step = 0; step < 50000; step++) {
        unsigned k = (unsigned)um_rng_range(&rng, 0, 511);
        char key[16];
        size_t len = (size_t)snprintf(key, sizeof key, "topic%u", k);
        if (um_rng_range(&rng, 0, 2) != 0) {
            void *value = &values[um_rng_range(&rng, 0, 511)];
            count += model[k] == NULL;
            CHECK_EQ(um_map_put(&map, key, len, value), 0);
            model[k] = value;
        } else {
            count -= model[k] != NULL;
            CHECK(um_map_remove(&map, key, len) == model[k]);
            model[k] = NULL;
        }
        CHECK(um_map_get(&map, key, len) == model[k]);
        CHECK_EQ(um_map_count(&map), count);
    }
    um_map_clear(&map);
    CHECK_EQ(um_map_count(&map), 0);
    CHECK(um_map_get(&map, "topic1", 6) == NULL);
}

static void remove_given(const void *key, size_t len, void *value, void *arg)
{
    struct um_map *map = arg;
    um_map_remove(map, key, len);
}

TEST(map_foreach_may_remove_the_entry_it_is_given)
{
    struct um_map map;
    um_map_init(&map, um_hash_classic);
    for (int i = 0; i < 1000; i++) {
        CHECK_EQ(um_map_put(&map, &i, sizeof i, &map), 0);
    }
    um_map_foreach(&map, remove_given, &map);
    CHECK_EQ(um_map_count(&map), 0);
    um_map_clear(&map);
}

TEST(map_is_unchanged_when_memory_runs_out)
{
    struct um_map map;
    um_map_init(&map, NULL);
    um_mem_set_fail_hook(fail_all);
    int rc = um_map_put(&map, "a", 1, &map);
    um_mem_set_fail_hook(NULL);
    CHECK_EQ(rc, -1);
    CHECK_EQ(um_map_count(&map), 0);
    CHECK_EQ(um_map_put(&map, "a", 1, &map), 0);
    um_mem_set_fail_hook(fail_all);
    rc = um_map_put(&map, "b", 1, &map);
    um_mem_set_fail_hook(NULL);
    CHECK_EQ(rc, -1);
    CHECK(um_map_get(&map, "a", 1) == &map);
    CHECK(um_map_get(&map, "b", 1) == NULL);
    um_map_clear(&map);
}

TEST(u32_map_agrees_with_a_naive_model_under_random_operations)
{
    static int values[300];
    void *model[300] = {NULL};
    struct um_u32_map map;
    struct um_rng rng;
    um_u32_map_init(&map);
    um_rng_seed(&rng, 11);
    size_t count = 0;
    for (int step = 0; step < 50000; step++) {
        uint32_t k = (uint32_t)um_rng_range(&rng, 0, 299);
        uint32_t key = k << 20; /* collides in the low bits */
        if (um_rng_range(&rng, 0, 2) != 0) {
            count += model[k] == NULL;
            model[k] = &values[k];
            CHECK_EQ(um_u32_map_put(&map, key, model[k]), 0);
        } else {
            count -= model[k] != NULL;
            um_u32_map_remove(&map, key);
            model[k] = NULL;
        }
        CHECK_EQ(map.count, count);
        uint32_t probe = (uint32_t)um_rng_range(&rng, 0, 299);
        CHECK(um_u32_map_get(&map, probe << 20) == model[probe]);
    }
    um_u32_map_clear(&map);
}

TEST(u32_map_cursor_visits_every_entry_once)
{
    struct um_u32_map map;
    um_u32_map_init(&map);
    static char seen[1000];
    memset(seen, 0, sizeof seen);
    for (uint32_t i = 0; i < 1000; i++) {
        CHECK_EQ(um_u32_map_put(&map, i, &seen[i]), 0);
    }
    size_t cursor = 0;
    uint32_t key;
    void *value;
    int visits = 0;
    while (um_u32_map_next(&map, &cursor, &key, &value)) {
        CHECK(value == &seen[key]);
        CHECK_EQ(seen[key]++, 0);
        visits++;
    }
    CHECK_EQ(visits, 1000);
    um_u32_map_clear(&map);
}

TEST(hashes_give_their_published_values)
{
    CHECK_EQ(um_hash_djb2("a", 1), 5381u * 33u + 'a');
    CHECK_EQ(um_hash_sdbm("ab", 2), (uint32_t)'a' * 65599u + 'b');
    CHECK_EQ(um_hash_classic("ab", 2), 31u * 'a' + 'b');
    CHECK_EQ(um_hash_murmur2("", 0), 0);
    CHECK(um_hash_murmur2("topic1", 6) != um_hash_murmur2("topic2", 6));
}
