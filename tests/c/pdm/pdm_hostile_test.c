/* What peers may send that no sender of ours would: values that share their bytes, text without its end, numbers that
 * are no booleans; and definitions whose owner is gone. */
#include "um_test_pdm.h"

#define NESTED 3

/* A message of id 5 whose `count` nested messages are at `offsets` of data that holds message A, with the length before
 * it, twice. */
static size_t nested_message(uint8_t *out, const uint32_t *offsets, uint32_t count)
{
    uint32_t words[64], at = 0, len = 24 + 8 * count + 8 + 2 * 45;
    uint8_t a[41];
    (void)unhex(HEX_A, a);
    memcpy(out, "\xfe\xca\x1c\xa7\x10\x01\x01\x00\x05\x00\x00\x00", 12);
    words[at++] = len;
    words[at++] = 0; /* offset table, the data behind it */
    words[at++] = 8 * count;
    for (uint32_t i = 0; i < count; i++) {
        words[at++] = i;
        words[at++] = offsets[i];
    }
    words[at++] = 0xff;
    words[at++] = 2 * 45;
    memcpy(out + 12, words, at * 4);
    for (int i = 0; i < 2; i++) {
        uint32_t length = sizeof a;
        memcpy(out + len - (size_t)(2 - i) * 45, &length, 4);
        memcpy(out + len - (size_t)(2 - i) * 45 + 4, a, sizeof a);
    }
    return len;
}

static void read_nested(const uint32_t *offsets, uint32_t count, int expected)
{
    static const struct pdm_spec specs[NESTED] = {
        {1, NULL, PDM_TYPE_MESSAGE, true, 0, 0},
        {2, NULL, PDM_TYPE_MESSAGE, true, 0, 0},
        {3, NULL, PDM_TYPE_MESSAGE, true, 0, 0},
    };
    lbmpdm_defn_t *defn = pdm_define(5, 1, 0, specs, NESTED);
    lbmpdm_msg_t *msg;
    uint8_t data[256];
    size_t len = nested_message(data, offsets, count);
    CHECK_EQ(lbmpdm_msg_create(&msg, defn, 0), 0);
    CHECK_EQ(lbmpdm_msg_deserialize(msg, (const char *)data, (uint32_t)len), expected);
    CHECK(expected == 0 || lbmpdm_errnum() == PDM_ERR_MSG_INVALID);
    CHECK_EQ(lbmpdm_msg_and_defn_delete(msg), 0);
}

TEST(nested_messages_together_are_not_longer_than_what_holds_them)
{
    read_nested((const uint32_t[]){0, 45}, 2, 0);
    read_nested((const uint32_t[]){45, 0}, 2, 0);
    read_nested((const uint32_t[]){0, 0}, 2, 0); /* shared, and there is room for both */
    read_nested((const uint32_t[]){0, 45, 0}, 3, -1);
    read_nested((const uint32_t[]){0, 0, 0}, 3, -1);
}

TEST(text_of_fixed_length_ends_in_a_nul_whatever_came)
{
    static const struct pdm_spec specs[] = {
        {1, NULL, PDM_TYPE_FIX_STRING, false, 3, 0},
        {2, NULL, PDM_TYPE_FIX_STRING_ARR, false, 1, 2},
    };
    static const char data[] = "\xfe\xca\x1c\xa7\x10\x00\x01\x00\x05\x00\x00\x00\x20\x00\x00\x00"
                               "\xff\x00\x00\x00\x08\x00\x00\x00"
                               "abcdefgh";
    lbmpdm_defn_t *defn = pdm_define(5, 1, 0, specs, 2);
    lbmpdm_msg_t *msg;
    lbmpdm_field_value_t value;
    char text[4], a[2], b[2], *texts[] = {a, b};
    size_t len = sizeof text, room[] = {2, 2}, count = 2;
    CHECK_EQ(lbmpdm_msg_create(&msg, defn, 0), 0);
    CHECK_EQ(lbmpdm_msg_deserialize(msg, data, sizeof data - 1), 0);
    CHECK_EQ(lbmpdm_msg_get_field_value(msg, 0, text, &len), 0);
    CHECK(memcmp(text, "abc", 4) == 0);
    CHECK_EQ(lbmpdm_msg_get_field_value_vec(msg, 1, texts, room, &count), 0);
    CHECK(memcmp(a, "e", 2) == 0 && memcmp(b, "g", 2) == 0);
    CHECK_EQ(lbmpdm_msg_get_field_value_stct(msg, 0, &value), 0);
    CHECK(value.len == 4 && memcmp(value.value, "abc", 4) == 0);
    CHECK_EQ(lbmpdm_field_value_stct_delete(&value), 0);
    CHECK_EQ(lbmpdm_msg_get_field_value_stct(msg, 1, &value), 0);
    CHECK(value.len_arr[1] == 2 && memcmp(value.value_arr[1], "g", 2) == 0);
    CHECK_EQ(lbmpdm_field_value_stct_delete(&value), 0);
    CHECK_EQ(lbmpdm_msg_set_field_value(msg, 0, "wxyz", 4), -1); /* nor is it sent */
    CHECK_EQ(lbmpdm_errnum(), PDM_ERR_EINVAL);
    CHECK_EQ(lbmpdm_msg_set_field_value(msg, 0, "xyz", 4), 0);
    CHECK_EQ(lbmpdm_msg_and_defn_delete(msg), 0);
}

TEST(booleans_are_true_or_false_whatever_came)
{
    static const struct pdm_spec specs[] = {
        {1, NULL, PDM_TYPE_BOOLEAN, false, 0, 0},
        {2, NULL, PDM_TYPE_BOOLEAN_ARR, false, 0, 2},
    };
    static const char data[] = "\xfe\xca\x1c\xa7\x10\x00\x01\x00\x05\x00\x00\x00\x1b\x00\x00\x00"
                               "\xff\x00\x00\x00\x03\x00\x00\x00\x80\x00\x02";
    lbmpdm_defn_t *defn = pdm_define(5, 1, 0, specs, 2);
    lbmpdm_msg_t *msg;
    uint8_t flag = 9, flags[2] = {9, 9};
    size_t len = 1, count = 2;
    CHECK_EQ(lbmpdm_msg_create(&msg, defn, 0), 0);
    CHECK_EQ(lbmpdm_msg_deserialize(msg, data, sizeof data - 1), 0);
    CHECK_EQ(lbmpdm_msg_get_field_value(msg, 0, &flag, &len), 0);
    CHECK_EQ(flag, PDM_TRUE);
    CHECK_EQ(lbmpdm_msg_get_field_value_vec(msg, 1, flags, NULL, &count), 0);
    CHECK(flags[0] == PDM_FALSE && flags[1] == PDM_TRUE);
    CHECK_EQ(lbmpdm_msg_and_defn_delete(msg), 0);
}

TEST(the_cache_owns_a_definition_whose_owner_had_gone)
{
    lbmpdm_defn_t *defn = pdm_define(1001, 1, 0, pdm_three, 3), *found = NULL;
    lbmpdm_msg_t *msg, *copy;
    uint8_t data[41];
    CHECK_EQ(unhex(HEX_A, data), sizeof data);
    CHECK_EQ(lbmpdm_msg_create(&msg, defn, 0), 0);
    CHECK_EQ(lbmpdm_defn_delete(defn), 0); /* the message keeps it */
    CHECK_EQ(lbmpdm_cache_struct_add(lbmpdm_msg_get_defn(msg)), 0);
    CHECK_EQ(lbmpdm_cache_struct_add(lbmpdm_msg_get_defn(msg)), 0); /* once more is nothing new */
    CHECK_EQ(lbmpdm_msg_delete(msg), 0);
    lbmpdm_defn_t *other = pdm_define(7, 1, 0, pdm_named, 5); /* would be where a freed one was */
    CHECK_EQ(lbmpdm_cache_struct_find(&found, 1001), 0);
    CHECK(found != other);
    CHECK_EQ(lbmpdm_defn_get_num_fields(found), 3);
    CHECK_EQ(lbmpdm_msg_create(&copy, NULL, PDM_MSG_FLAG_TRY_LOAD_DEFN_FROM_CACHE), 0);
    CHECK_EQ(lbmpdm_msg_deserialize(copy, (const char *)data, sizeof data), 0);
    CHECK_EQ(lbmpdm_msg_delete(copy), 0);
    CHECK_EQ(lbmpdm_defn_delete(other), 0);
    CHECK_EQ(lbmpdm_cache_clear_all(), 0);
}

/* Who replaces a definition in the cache owns the old one again, and messages that found it there do not delete it. */
TEST(a_definition_found_in_the_cache_is_not_the_messages_to_delete)
{
    lbmpdm_defn_t *defn = pdm_define(1001, 1, 0, pdm_three, 3);
    lbmpdm_msg_t *msgs[2];
    uint8_t data[41], other[28];
    CHECK_EQ(unhex(HEX_A, data), sizeof data);
    CHECK_EQ(unhex("feca1ca7 10000100 0b000000 1c000000 ff000000 04000000 07000000", other), sizeof other);
    CHECK_EQ(lbmpdm_cache_struct_add(pdm_define(11, 1, 0, pdm_three + 1, 1)), 0);
    CHECK_EQ(lbmpdm_cache_struct_add(defn), 0);
    for (int i = 0; i < 2; i++) {
        uint32_t flags = PDM_MSG_FLAG_TRY_LOAD_DEFN_FROM_CACHE | PDM_MSG_FLAG_DEL_DEFN_WHEN_REPLACED;
        CHECK_EQ(lbmpdm_msg_create(&msgs[i], NULL, flags), 0);
        CHECK_EQ(lbmpdm_msg_deserialize(msgs[i], (const char *)data, sizeof data), 0);
        CHECK(lbmpdm_msg_get_defn(msgs[i]) == defn);
    }
    CHECK_EQ(lbmpdm_cache_struct_add(pdm_define(1001, 1, 0, pdm_three, 3)), 0);
    CHECK_EQ(lbmpdm_msg_deserialize(msgs[0], (const char *)other, sizeof other), 0); /* replaces its definition */
    CHECK_EQ(lbmpdm_msg_and_defn_delete(msgs[1]), 0);
    CHECK_EQ(lbmpdm_defn_get_num_fields(defn), 3);
    CHECK_EQ(lbmpdm_defn_delete(defn), 0);
    CHECK_EQ(lbmpdm_msg_and_defn_delete(msgs[0]), 0);
    CHECK_EQ(lbmpdm_cache_clear_all(), 0);
}
