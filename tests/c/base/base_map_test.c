/* The hash maps against a naive model, and the string hashes. */
#include "um_test.h"
#include "um_test_murmur.h"

#include <stdlib.h>

#include "base/um_hash.h"
#include "base/um_map.h"
#include "base/um_mem.h"
#include "base/um_random.h"
#include "base/um_table.h"

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

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

enum { KEYS = 60000 };

static size_t distinct(uint32_t *hashes)
{
    size_t count = 1;
    qsort(hashes, KEYS, sizeof *hashes, by_value);
    for (size_t i = 1; i < KEYS; i++) {
        count += hashes[i] != hashes[i - 1];
    }
    return count;
}

/* Whoever knows a hash without a key makes as many keys as he likes that all have the same. */
TEST(f6_keys_that_collide_in_murmur2_do_not_collide_in_a_map)
{
    static uint32_t hashes[KEYS];
    struct um_map map;
    um_map_init(&map, NULL);
    for (uint32_t i = 0; i < KEYS; i++) {
        char name[16];
        murmur2_twin(i, name);
        CHECK_EQ(um_hash_murmur2(name, 12), um_hash_murmur2("AAAAAAAAAAAA", 12));
        hashes[i] = map.hash(name, 12);
    }
    CHECK(distinct(hashes) > KEYS - 100);
}

TEST(f6_numbers_that_are_equal_in_their_low_bits_do_not_collide)
{
    static uint32_t hashes[KEYS];
    for (uint32_t i = 0; i < KEYS; i++) {
        hashes[i] = um_hash_u32(i << 14) & 0xffffu;
    }
    CHECK(distinct(hashes) > KEYS / 2);
}

TEST(f6_the_hashes_depend_on_every_byte_and_on_the_key)
{
    uint64_t key[2] = {um_hash_key[0], um_hash_key[1]};
    uint8_t bytes[40] = {0};
    CHECK(key[0] != 0 || key[1] != 0);
    for (size_t len = 1; len <= sizeof bytes; len++) {
        uint32_t before = um_hash_bytes(bytes, len);
        CHECK(um_hash_bytes(bytes, len - 1) != before);
        for (size_t i = 0; i < len; i++) {
            bytes[i] ^= 0x80;
            CHECK(um_hash_bytes(bytes, len) != before);
            bytes[i] ^= 0x80;
        }
        for (int half = 0; half < 2; half++) {
            um_hash_set_key(key[0] ^ (half == 0), key[1] ^ (uint64_t)(half == 1) << 40);
            CHECK(um_hash_bytes(bytes, len) != before);
            CHECK(um_hash_u32((uint32_t)len) != 0);
            um_hash_set_key(key[0], key[1]);
        }
    }
}

/* ---- a program whose own constructors use the library ---- */

static struct um_map early_map;
static uint64_t early_key[2];

static __attribute__((constructor)) void fill_a_map_before_main(void)
{
    um_map_init(&early_map, NULL);
    um_map_put(&early_map, "orders", 6, &early_map);
    early_key[0] = um_hash_key[0];
    early_key[1] = um_hash_key[1];
}

TEST(f6_a_constructor_of_the_application_finds_the_key_drawn)
{
    CHECK(early_key[0] != 0 || early_key[1] != 0);
    CHECK(um_map_get(&early_map, "orders", 6) == &early_map);
    um_map_clear(&early_map);
}

/* ---- a table walked in steps ---- */

struct walked {
    struct um_table_link link;
    unsigned met;
    bool stays, in;
};

enum { WALKED = 20000, WALK_ROOM = 32 };

/* Those that stay from the first step to the last are met once, whatever comes and goes meanwhile. */
TEST(a_walk_in_steps_meets_every_link_once_while_the_table_grows_and_shrinks)
{
    static struct walked links[WALKED];
    struct um_table table = {0};
    struct um_table_scan scan = {0};
    struct um_table_link *some[WALK_ROOM];
    struct um_rng rng;
    um_rng_seed(&rng, 11);
    size_t added = 0;
    for (; added < WALKED / 8; added++) {
        links[added].stays = added % 3 != 0;
        links[added].in = um_table_add(&table, &links[added].link, (uint32_t)um_rng_range(&rng, 0, UINT32_MAX)) == 0;
    }
    size_t capacity = table.capacity, steps = 0;
    while (!scan.done) {
        size_t count = um_table_scan(&table, &scan, some, WALK_ROOM);
        CHECK(count <= WALK_ROOM);
        steps++;
        for (size_t i = 0; i < count; i++) {
            UM_CONTAINER_OF(some[i], struct walked, link)->met++;
        }
        for (int i = 0; i < 300 && added < WALKED; i++, added++) {
            links[added].in =
                um_table_add(&table, &links[added].link, (uint32_t)um_rng_range(&rng, 0, UINT32_MAX)) == 0;
            struct walked *leaves = &links[um_rng_range(&rng, 0, added)];
            if (leaves->in && !leaves->stays) {
                um_table_remove(&table, &leaves->link);
                leaves->in = false;
            }
        }
    }
    CHECK(table.capacity > 2 * capacity);
    CHECK(steps > 50 && !scan.cut);
    for (size_t i = 0; i < WALKED; i++) {
        CHECK(links[i].stays ? links[i].met == 1 : links[i].met <= 1);
    }
    um_table_free(&table);
}

TEST(a_chain_longer_than_a_step_is_cut_and_said_so)
{
    static struct walked links[100];
    struct um_table table = {0};
    struct um_table_scan scan = {0};
    struct um_table_link *some[WALK_ROOM];
    size_t met = 0;
    for (size_t i = 0; i < 100; i++) {
        CHECK_EQ(um_table_add(&table, &links[i].link, 7), 0); /* all in one bucket */
    }
    while (!scan.done) {
        met += um_table_scan(&table, &scan, some, WALK_ROOM);
    }
    CHECK_EQ(met, WALK_ROOM);
    CHECK(scan.cut);
    um_table_free(&table);
}
