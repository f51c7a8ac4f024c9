/* The messages of the specification: written byte for byte, read in both orders, cut everywhere, each byte changed. */
#include "um_test_pdm.h"

static uint8_t bytes[512], other[512];

/* Whether the message is written as these bytes. */
static bool writes(lbmpdm_msg_t *msg, const char *hex)
{
    size_t len = unhex(hex, bytes);
    memset(other, 0xaa, sizeof other);
    return lbmpdm_msg_get_length(msg) == len && lbmpdm_msg_serialize(msg, (char *)other) == PDM_SUCCESS &&
           memcmp(bytes, other, len) == 0 && other[len] == 0xaa && memcmp(lbmpdm_msg_get_data(msg), bytes, len) == 0;
}

static int read_hex(lbmpdm_msg_t *msg, const char *hex)
{
    return lbmpdm_msg_deserialize(msg, (const char *)bytes, (uint32_t)unhex(hex, bytes));
}

static bool has_three(lbmpdm_msg_t *msg)
{
    uint8_t yes = 9;
    int32_t seven = 0;
    float pi = 0;
    size_t a = 1, b = 4, c = 4;
    return lbmpdm_msg_get_field_value(msg, 0, &yes, &a) == PDM_SUCCESS &&
           lbmpdm_msg_get_field_value(msg, 1, &seven, &b) == PDM_SUCCESS &&
           lbmpdm_msg_get_field_value(msg, 2, &pi, &c) == PDM_SUCCESS && yes == 1 && seven == 7 && pi == 3.14f;
}

TEST(three_fields_are_written_as_in_the_specification)
{
    lbmpdm_defn_t *defn = pdm_define(1001, 1, 0, pdm_three, 3);
    lbmpdm_msg_t *msg;
    CHECK_EQ(lbmpdm_msg_create(&msg, defn, 0), PDM_SUCCESS);
    CHECK_EQ(pdm_fill_three(msg), 0);
    CHECK(writes(msg, HEX_A));
    CHECK_EQ(lbmpdm_msg_set_incl_defn_flag(msg), 0);
    CHECK(writes(msg, HEX_B));
    CHECK_EQ(lbmpdm_msg_unset_incl_defn_flag(msg), 0);
    CHECK(writes(msg, HEX_A));
    CHECK_EQ(lbmpdm_msg_and_defn_delete(msg), 0);
}

TEST(the_flag_against_empty_offset_tables_leaves_them_out)
{
    lbmpdm_defn_t *defn = pdm_define(1001, 1, 0, pdm_three, 3);
    lbmpdm_msg_t *msg;
    CHECK_EQ(lbmpdm_msg_create(&msg, defn, 0x100), PDM_SUCCESS);
    CHECK_EQ(pdm_fill_three(msg), 0);
    CHECK(writes(msg, HEX_A_NO_TABLE));
    CHECK_EQ(lbmpdm_msg_and_defn_delete(msg), 0);
}

TEST(three_fields_are_read_in_both_orders_and_without_a_table)
{
    lbmpdm_defn_t *defn = pdm_define(1001, 1, 0, pdm_three, 3);
    lbmpdm_msg_t *msg;
    CHECK_EQ(lbmpdm_msg_create(&msg, defn, 0), PDM_SUCCESS);
    static const char *const forms[] = {HEX_A, HEX_A_BIG, HEX_A_NO_TABLE, HEX_B};
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(read_hex(msg, forms[i]), PDM_SUCCESS);
        CHECK(has_three(msg));
        CHECK(writes(msg, HEX_A)); /* in the order of this host, with the table */
        CHECK(lbmpdm_msg_get_defn(msg) == defn);
    }
    CHECK_EQ(lbmpdm_msg_and_defn_delete(msg), 0);
}

TEST(a_definition_that_came_along_is_adopted)
{
    lbmpdm_msg_t *msg;
    CHECK_EQ(lbmpdm_msg_create(&msg, NULL, 0), PDM_SUCCESS);
    CHECK_EQ(read_hex(msg, HEX_A), PDM_FAILURE);
    CHECK_EQ(lbmpdm_errnum(), PDM_ERR_DEFN_INVALID);
    CHECK_EQ(read_hex(msg, HEX_B), PDM_SUCCESS);
    CHECK(has_three(msg));
    CHECK_EQ(lbmpdm_defn_get_field_info_int_name(lbmpdm_msg_get_defn(msg), 2), 102);
    CHECK_EQ(read_hex(msg, HEX_A), PDM_SUCCESS); /* known from now on */
    CHECK_EQ(lbmpdm_msg_and_defn_delete(msg), 0);
}

TEST(a_definition_alone_is_written_and_read_as_in_the_specification)
{
    lbmpdm_defn_t *defn = pdm_define(1001, 1, 0, pdm_three, 3), *copy;
    uint32_t len = 0;
    size_t expected = unhex(HEX_B_DEFN, bytes);
    CHECK_EQ(lbmpdm_defn_get_length(defn), expected);
    CHECK_EQ(lbmpdm_defn_serialize(defn, (char *)other, &len), PDM_SUCCESS);
    CHECK_EQ(len, expected);
    CHECK(memcmp(bytes, other, len) == 0);
    CHECK_EQ(lbmpdm_defn_create(&copy, 1, 5, 5, 5, PDM_DEFN_STR_FIELD_NAMES), PDM_SUCCESS);
    CHECK_EQ(lbmpdm_defn_deserialize(copy, (const char *)other, len, PDM_FALSE), PDM_SUCCESS);
    CHECK_EQ(lbmpdm_defn_get_id(copy), 1001);
    CHECK_EQ(lbmpdm_defn_get_num_fields(copy), 3);
    CHECK(lbmpdm_defn_is_finalized(copy));
    CHECK_EQ(lbmpdm_defn_get_field_handle_by_int_name(copy, 101), 1);
    CHECK_EQ(lbmpdm_defn_deserialize(copy, (const char *)other, len, PDM_TRUE), PDM_FAILURE);
    CHECK_EQ(lbmpdm_errnum(), PDM_ERR_DEFN_INVALID);
    CHECK_EQ(lbmpdm_defn_get_id(copy), 1001); /* as before */
    CHECK_EQ(lbmpdm_defn_delete(copy), 0);
    CHECK_EQ(lbmpdm_defn_delete(defn), 0);
}

TEST(nine_fields_are_written_and_read_as_in_the_specification)
{
    lbmpdm_defn_t *defn = pdm_define(1002, 1, 0, pdm_nine, 9);
    lbmpdm_msg_t *msg, *copy;
    CHECK_EQ(lbmpdm_msg_create(&msg, defn, 0), PDM_SUCCESS);
    CHECK_EQ(lbmpdm_msg_create(&copy, defn, 0), PDM_SUCCESS);
    CHECK_EQ(pdm_fill_nine(msg), 0);
    CHECK(writes(msg, HEX_C));
    CHECK_EQ(lbmpdm_msg_set_incl_defn_flag(msg), 0);
    CHECK_EQ(lbmpdm_msg_get_length(msg), 415);
    CHECK_EQ(read_hex(copy, HEX_C), PDM_SUCCESS);
    CHECK(writes(copy, HEX_C));
    CHECK(has_three(copy));
    CHECK_EQ(lbmpdm_msg_is_field_set(copy, 3), PDM_FALSE);
    char text[22];
    int32_t numbers[5];
    size_t len = sizeof text, count = 5;
    CHECK_EQ(lbmpdm_msg_get_field_value(copy, 5, text, &len), PDM_SUCCESS);
    CHECK_STR(text, "variable length value");
    CHECK_EQ(lbmpdm_msg_get_field_value_vec(copy, 7, numbers, NULL, &count), PDM_SUCCESS);
    CHECK_EQ(count, 5);
    CHECK_EQ(numbers[4], 5);
    CHECK_EQ(lbmpdm_msg_delete(copy), 0);
    CHECK_EQ(lbmpdm_msg_and_defn_delete(msg), 0);
}

TEST(names_decimals_and_nested_messages_are_written_and_read_as_in_the_specification)
{
    lbmpdm_defn_t *three = pdm_define(1001, 1, 0, pdm_three, 3), *defn = pdm_define(3001, 1, 2, pdm_named, 5);
    lbmpdm_msg_t *sub, *msg, *copy, *inner;
    CHECK_EQ(lbmpdm_msg_create(&sub, three, 0), PDM_SUCCESS);
    CHECK_EQ(lbmpdm_msg_create(&msg, defn, PDM_MSG_FLAG_INCL_DEFN), PDM_SUCCESS);
    CHECK_EQ(pdm_fill_three(sub), 0);
    CHECK_EQ(pdm_fill_named(msg, sub), 0);
    CHECK(writes(msg, HEX_D));
    CHECK_EQ(lbmpdm_msg_create(&copy, NULL, PDM_MSG_FLAG_INCL_DEFN), PDM_SUCCESS);
    CHECK_EQ(read_hex(copy, HEX_D), PDM_SUCCESS);
    CHECK(writes(copy, HEX_D));
    lbmpdm_decimal_t price = {0, 0};
    lbmpdm_timestamp_t at = {0, 0};
    size_t a = sizeof price, b = sizeof at, c = sizeof inner;
    CHECK_EQ(lbmpdm_msg_get_field_value(copy, 0, &price, &a), PDM_SUCCESS);
    CHECK_EQ(lbmpdm_msg_get_field_value(copy, 1, &at, &b), PDM_SUCCESS);
    CHECK(price.mant == 31415 && price.exp == -2 && at.tv_secs == 1700000000 && at.tv_usecs == 123456);
    CHECK_EQ(lbmpdm_msg_create(&inner, three, 0), PDM_SUCCESS);
    CHECK_EQ(lbmpdm_msg_get_field_value(copy, 2, inner, &c), PDM_SUCCESS);
    CHECK(has_three(inner));
    CHECK_EQ(lbmpdm_msg_delete(inner), 0);
    CHECK_EQ(lbmpdm_msg_and_defn_delete(copy), 0);
    CHECK_EQ(lbmpdm_msg_and_defn_delete(msg), 0);
    CHECK_EQ(lbmpdm_msg_and_defn_delete(sub), 0);
}

/* The bytes end where the memory does, so that a read beyond them is seen. */
static int read_exactly(lbmpdm_msg_t *msg, const uint8_t *from, size_t len)
{
    char *exact = malloc(len == 0 ? 1 : len);
    memcpy(exact, from, len);
    int rc = lbmpdm_msg_deserialize(msg, exact, (uint32_t)len);
    free(exact);
    return rc;
}

TEST(every_cut_message_is_refused_and_leaves_no_values)
{
    static const char *const forms[] = {HEX_A, HEX_A_BIG, HEX_B, HEX_C, HEX_D};
    lbmpdm_defn_t *defns[] = {pdm_define(1001, 1, 0, pdm_three, 3), NULL, NULL, pdm_define(1002, 1, 0, pdm_nine, 9),
                              NULL};
    for (int i = 0; i < 5; i++) {
        lbmpdm_msg_t *msg;
        size_t len = unhex(forms[i], bytes);
        CHECK_EQ(lbmpdm_msg_create(&msg, i == 1 ? defns[0] : defns[i], 0), PDM_SUCCESS);
        for (size_t cut = 0; cut < len; cut++) {
            CHECK_EQ(read_exactly(msg, bytes, cut), PDM_FAILURE);
            CHECK_EQ(lbmpdm_errnum(), PDM_ERR_MSG_INVALID);
        }
        CHECK_EQ(read_exactly(msg, bytes, len), PDM_SUCCESS);
        CHECK_EQ(lbmpdm_msg_is_field_set(msg, 0), PDM_TRUE);
        CHECK_EQ(read_exactly(msg, bytes, len - 1), PDM_FAILURE);
        CHECK_EQ(lbmpdm_msg_is_field_set(msg, 0), PDM_FALSE);
        CHECK_EQ(lbmpdm_msg_get_length(msg), 0);
        if (defns[i] == NULL && i != 1) {
            CHECK_EQ(lbmpdm_msg_and_defn_delete(msg), 0);
        } else {
            CHECK_EQ(lbmpdm_msg_delete(msg), 0);
        }
    }
    CHECK_EQ(lbmpdm_defn_delete(defns[0]), 0);
    CHECK_EQ(lbmpdm_defn_delete(defns[3]), 0);
}

/* Whatever is accepted can be written again, and what was written is accepted. */
TEST(every_byte_changed_gives_an_error_or_a_message_that_can_be_written)
{
    static const char *const forms[] = {HEX_B, HEX_D};
    static uint8_t copy[512];
    for (int i = 0; i < 2; i++) {
        size_t len = unhex(forms[i], bytes);
        for (size_t at = 0; at < len; at++) {
            for (int change = 1; change < 256; change = change * 2 + 1) {
                lbmpdm_msg_t *msg, *again;
                memcpy(copy, bytes, len);
                copy[at] ^= (uint8_t)change;
                CHECK_EQ(lbmpdm_msg_create(&msg, NULL, PDM_MSG_FLAG_INCL_DEFN), PDM_SUCCESS);
                CHECK_EQ(lbmpdm_msg_create(&again, NULL, 0), PDM_SUCCESS);
                if (read_exactly(msg, copy, len) == PDM_SUCCESS) {
                    char *data = lbmpdm_msg_get_data(msg);
                    CHECK(data != NULL);
                    CHECK_EQ(lbmpdm_msg_deserialize(again, data, lbmpdm_msg_get_length(msg)), PDM_SUCCESS);
                }
                CHECK_EQ(lbmpdm_msg_and_defn_delete(again), 0);
                CHECK_EQ(lbmpdm_msg_and_defn_delete(msg), 0);
            }
        }
    }
}

struct bad {
    const char *what;
    size_t at;
    uint32_t value;
    int errnum;
};

/* In message B resp. D: the place of a word and what it is set to. */
static const struct bad bad_b[] = {
    {"length beyond the bytes", 12, 0x9a, PDM_ERR_MSG_INVALID},
    {"segment of 4 GiB", 20, 0xffffffff, PDM_ERR_MSG_INVALID},
    {"number of fields", 28, 0x7fffffff, PDM_ERR_DEFN_INVALID},
    {"no fields", 28, 0, PDM_ERR_DEFN_INVALID},
    {"id of the definition", 24, 1002, PDM_ERR_DEFN_INVALID},
    {"fixed section", 36, 10, PDM_ERR_DEFN_INVALID},
    {"length of the entries", 40, 83, PDM_ERR_DEFN_INVALID},
    {"id of a field twice", 44, 1, PDM_ERR_DEFN_INVALID},
    {"id of a field too large", 44, 3, PDM_ERR_DEFN_INVALID},
    {"length of a field", 48, 2, PDM_ERR_DEFN_INVALID},
    {"length of a name with integer names", 66, 1, PDM_ERR_DEFN_INVALID},
    {"same name twice", 62, 101, PDM_ERR_DEFN_INVALID},
    {"unknown segment", 16, 7, PDM_ERR_MSG_INVALID},
    {"table not of entries", 132, 1, PDM_ERR_MSG_INVALID},
};
static const struct bad bad_d[] = {
    {"entry of a name too long", 0x2c, 0x7fffffff, PDM_ERR_DEFN_INVALID},
    {"name without end", 0x4a, 0x0b707070, PDM_ERR_DEFN_INVALID},
    {"offset inside the fixed section", 0xea, 16, PDM_ERR_MSG_INVALID},
    {"offset of 2 GiB", 0xea, 0x7fffffff, PDM_ERR_MSG_INVALID},
    {"negative offset", 0xea, 0xffffffff, PDM_ERR_MSG_INVALID},
    {"offset at the end", 0xea, 89, PDM_ERR_MSG_INVALID},
    {"two entries of a field", 0xee, 2, PDM_ERR_MSG_INVALID},
    {"entry of a fixed-required field", 0xee, 0, PDM_ERR_MSG_INVALID},
    {"length of a nested message", 0x117, 0x1000, PDM_ERR_MSG_INVALID},
    {"length of an element", 0x148, 0x1000, PDM_ERR_MSG_INVALID},
};

static void check_bad(const char *hex, const struct bad *bad, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        lbmpdm_msg_t *msg;
        size_t len = unhex(hex, bytes);
        memcpy(bytes + bad[i].at, &bad[i].value, 4);
        CHECK_EQ(lbmpdm_msg_create(&msg, NULL, 0), PDM_SUCCESS);
        if (read_exactly(msg, bytes, len) == PDM_SUCCESS || lbmpdm_errnum() != bad[i].errnum) {
            TEST_FAIL("%s: %d %s", bad[i].what, lbmpdm_errnum(), lbmpdm_errmsg());
        }
        CHECK_EQ(lbmpdm_msg_and_defn_delete(msg), 0);
    }
}

TEST(wrong_lengths_ids_and_offsets_are_refused_with_their_error)
{
    check_bad(HEX_B, bad_b, sizeof bad_b / sizeof bad_b[0]);
    check_bad(HEX_D, bad_d, sizeof bad_d / sizeof bad_d[0]);
}

TEST(a_total_before_counted_elements_is_not_believed)
{
    lbmpdm_msg_t *msg;
    CHECK_EQ(lbmpdm_msg_create(&msg, NULL, 0), PDM_SUCCESS);
    size_t len = unhex(HEX_D, bytes);
    bytes[0x144] = 0xff;
    CHECK_EQ(read_exactly(msg, bytes, len), PDM_SUCCESS);
    CHECK_EQ(lbmpdm_msg_and_defn_delete(msg), 0);
}

TEST(entries_may_be_in_any_order_and_of_unknown_fields)
{
    lbmpdm_defn_t *defn = pdm_define(1002, 1, 0, pdm_nine, 9);
    lbmpdm_msg_t *msg;
    CHECK_EQ(lbmpdm_msg_create(&msg, defn, 0), PDM_SUCCESS);
    CHECK_EQ(read_hex(msg, "feca1ca7 10010100 ea030000 8f000000 00000000 18000000 07000000 3f000000 63000000 29000000"
                           "05000000 25000000 ff000000 57000000 01 07000000 c3f54840 48656c6c6f20576f726c642100"
                           "010001 616161616100 626262626200 16000000 7661726961626c65206c656e6774682076616c756500"
                           "14000000 01000000 02000000 03000000 04000000 05000000"),
             PDM_SUCCESS);
    CHECK(writes(msg, HEX_C));
    CHECK_EQ(lbmpdm_msg_and_defn_delete(msg), 0);
}

TEST(unknown_segments_are_passed_over_when_they_say_so)
{
    lbmpdm_defn_t *defn = pdm_define(1001, 1, 0, pdm_three, 3);
    lbmpdm_msg_t *msg;
    CHECK_EQ(lbmpdm_msg_create(&msg, defn, 0), PDM_SUCCESS);
    CHECK_EQ(read_hex(msg, "feca1ca7 10010100 e9030000 34000000 09000000 00000000 00800000 03000000 010203"
                           "ff000000 09000000 01 07000000 c3f54840"),
             PDM_SUCCESS);
    CHECK(has_three(msg));
    CHECK_EQ(read_hex(msg, "feca1ca7 10010100 e9030000 34000000 09000000 00000000 00000000 03000000 010203"
                           "ff000000 09000000 01 07000000 c3f54840"),
             PDM_FAILURE);
    CHECK_EQ(lbmpdm_errnum(), PDM_ERR_MSG_INVALID);
    CHECK_EQ(lbmpdm_msg_and_defn_delete(msg), 0);
}

TEST(bytes_behind_the_message_are_ignored)
{
    lbmpdm_defn_t *defn = pdm_define(1001, 1, 0, pdm_three, 3);
    lbmpdm_msg_t *msg;
    CHECK_EQ(lbmpdm_msg_create(&msg, defn, 0), PDM_SUCCESS);
    CHECK_EQ(read_hex(msg, HEX_A "ffffff"), PDM_SUCCESS);
    CHECK(writes(msg, HEX_A));
    CHECK_EQ(lbmpdm_msg_and_defn_delete(msg), 0);
}
