/* The cache of definitions: what it keeps, replaces and removes, and eight threads at once. */
#include <pthread.h>

#include "um_test_pdm.h"

static const struct pdm_spec one[] = {{1, NULL, PDM_TYPE_INT32, false, 0, 0}};

TEST(acceptance_5_definitions_are_found_replaced_and_removed)
{
    lbmpdm_defn_t *nothing = pdm_define(0, 1, 0, one, 1), *defns[4], *found = NULL;
    CHECK_EQ(lbmpdm_cache_init(0), 0);
    CHECK_EQ(lbmpdm_cache_init(8), 0);
    CHECK_EQ(lbmpdm_cache_struct_add(nothing), 0); /* id 0 is never kept */
    CHECK_EQ(lbmpdm_cache_struct_find(&found, 0), -1);
    CHECK(found == NULL);
    CHECK_EQ(lbmpdm_defn_delete(nothing), 0);
    for (int i = 0; i < 4; i++) {
        defns[i] = pdm_define(9, 1, (int8_t)(i == 3 ? 2 : i), one, 1);
        CHECK_EQ(lbmpdm_cache_struct_add(defns[i]), 0);
    }
    CHECK_EQ(lbmpdm_cache_struct_find(&found, 9), 0); /* the newest, replaced by the last */
    CHECK(found == defns[3]);
    CHECK_EQ(lbmpdm_defn_delete(defns[3]), -1); /* the cache's */
    CHECK_EQ(lbmpdm_errnum(), PDM_ERR_EINVAL);
    CHECK_EQ(lbmpdm_defn_delete(defns[2]), 0); /* replaced: ours again */
    CHECK_EQ(lbmpdm_cache_struct_find_by_version(&found, 9, 1, 1), 0);
    CHECK(found == defns[1]);
    CHECK_EQ(lbmpdm_cache_struct_remove_by_version(9, 1, 1), 0);
    CHECK_EQ(lbmpdm_cache_struct_find_by_version(&found, 9, 1, 1), -1);
    CHECK_EQ(lbmpdm_cache_struct_find_by_version(&found, 9, 1, 0), 0);
    CHECK_EQ(lbmpdm_cache_struct_remove(9), 0);
    CHECK_EQ(lbmpdm_cache_struct_find(&found, 9), -1);
    CHECK_EQ(lbmpdm_cache_struct_remove(9), 0); /* nothing to do */
    CHECK_EQ(lbmpdm_cache_struct_add(pdm_define(10, 1, 0, one, 1)), 0);
    CHECK_EQ(lbmpdm_cache_clear_all(), 0);
    CHECK_EQ(lbmpdm_cache_struct_find(&found, 10), -1);
}

TEST(versions_above_127_are_newer)
{
    lbmpdm_defn_t *old = pdm_define(9, 1, 0, one, 1), *new = pdm_define(9, (int8_t)200, 0, one, 1), *found;
    CHECK_EQ(lbmpdm_cache_struct_add(new), 0);
    CHECK_EQ(lbmpdm_cache_struct_add(old), 0);
    CHECK_EQ(lbmpdm_cache_struct_find(&found, 9), 0);
    CHECK(found == new);
    CHECK_EQ(lbmpdm_cache_struct_find_by_version(&found, 9, 200, 0), 0);
    CHECK_EQ(lbmpdm_cache_clear_all(), 0);
}

TEST(definitions_that_are_not_finalized_are_refused)
{
    lbmpdm_defn_t *defn;
    CHECK_EQ(lbmpdm_defn_create(&defn, 1, 9, 1, 0, PDM_DEFN_INT_FIELD_NAMES), 0);
    CHECK_EQ(lbmpdm_cache_struct_add(defn), -1);
    CHECK_EQ(lbmpdm_errnum(), PDM_ERR_DEFN_INVALID);
    CHECK_EQ(lbmpdm_defn_delete(defn), 0);
}

TEST(removal_leaves_messages_their_definition)
{
    lbmpdm_msg_t *msg;
    int32_t value = 1;
    lbmpdm_defn_t *defn = pdm_define(9, 1, 0, one, 1);
    CHECK_EQ(lbmpdm_cache_struct_add(defn), 0);
    CHECK_EQ(lbmpdm_msg_create(&msg, defn, 0), 0);
    CHECK_EQ(lbmpdm_cache_clear_all(), 0);
    CHECK_EQ(lbmpdm_msg_set_field_value(msg, 0, &value, 4), 0);
    CHECK_EQ(lbmpdm_msg_get_length(msg), 36);
    CHECK_EQ(lbmpdm_msg_delete(msg), 0);
}

#define THREADS 8
#define ROUNDS 12500

/* Each has ids of its own to remove, and finds those of all. */
static void *work(void *arg)
{
    int32_t own = 100 + (int32_t)(intptr_t)arg;
    static const char data[] = "\xfe\xca\x1c\xa7\x10\x00\x01\x00\x32\x00\x00\x00\x1c\x00\x00\x00"
                               "\xff\x00\x00\x00\x04\x00\x00\x00\x01\x00\x00\x00";
    lbmpdm_msg_t *msg;
    if (lbmpdm_msg_create(&msg, NULL, PDM_MSG_FLAG_TRY_LOAD_DEFN_FROM_CACHE) != 0) {
        return "create";
    }
    for (int i = 0; i < ROUNDS; i++) {
        lbmpdm_defn_t *defn = pdm_define(own, 1, (int8_t)(i % 3), one, 1), *found;
        if (lbmpdm_cache_struct_add(defn) != 0 || lbmpdm_cache_struct_find_by_version(&found, own, 1, i % 3) != 0 ||
            found != defn || lbmpdm_cache_struct_remove(own) != 0 || lbmpdm_cache_struct_find(&found, own) == 0) {
            return "cache";
        }
        if (lbmpdm_msg_deserialize(msg, data, sizeof data - 1) != 0) {
            return "shared definition";
        }
    }
    return lbmpdm_msg_delete(msg) == 0 ? NULL : "delete";
}

TEST(eight_threads_add_find_and_remove)
{
    pthread_t threads[THREADS];
    CHECK_EQ(lbmpdm_cache_struct_add(pdm_define(50, 1, 0, one, 1)), 0);
    for (intptr_t i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, work, (void *)i), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *problem;
        CHECK_EQ(pthread_join(threads[i], &problem), 0);
        if (problem != NULL) {
            TEST_FAIL("thread %d: %s", i, (const char *)problem);
        }
    }
    CHECK_EQ(lbmpdm_cache_clear_all(), 0);
}
