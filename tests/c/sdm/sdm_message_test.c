/* SDM messages: the bytes of the documented examples, names, indexes, nulls, iterators, errors, options, limits. */
#include <limits.h>
#include <locale.h>
#include <pthread.h>
#include <wchar.h>

#include <lbm/lbmsdm.h>

#include "um_test.h"

#define OK(call) CHECK_EQ(call, LBMSDM_SUCCESS)
#define FAILS(call, number)                                                                                            \
    do {                                                                                                               \
        CHECK_EQ(call, LBMSDM_FAILURE);                                                                                \
        CHECK_EQ(lbmsdm_errnum(), number);                                                                             \
    } while (0)

static lbmsdm_msg_t *new_message(void)
{
    lbmsdm_msg_t *msg = NULL;
    if (lbmsdm_msg_create(&msg) != 0) {
        abort();
    }
    return msg;
}

static bool has_bytes(lbmsdm_msg_t *msg, const char *bytes, size_t len)
{
    return lbmsdm_msg_get_datalen(msg) == len && memcmp(lbmsdm_msg_get_data(msg), bytes, len) == 0;
}

static const char *dump(lbmsdm_msg_t *msg)
{
    static char text[1024];
    return lbmsdm_msg_dump(msg, text, sizeof text) == LBMSDM_SUCCESS ? text : lbmsdm_errmsg();
}

/* ---- bytes ---- */

static const char example_1[] = "UMSD\1\0\0\3\0\0\0\x43"
                                "\0\2\0\10\0\0\0\1Field100\x42"
                                "\0\4\0\10\0\0\0\2Field101\x1e\xad"
                                "\0\6\0\10\0\0\0\4Field102\0\0\x30\x39";

static const char example_2[] = "UMSD\1\0\0\6\0\0\0\x92"
                                "\0\x0c\0\2\0\0\0\x09px\0\0\0\0\0\0\x7a\xb7\xfe"
                                "\0\x0d\0\2\0\0\0\x0cts\0\0\0\0\x65\x53\xf1\0\0\1\xe2\x40"
                                "\1\x0f\0\4\0\0\0\x12tags\0\0\0\2\0\0\0\2ab\0\0\0\4cd\xc3\xa9"
                                "\0\7\1\1\0\0\0\0q"
                                "\0\x0e\0\3\0\0\0\x16sub"
                                "UMSD\1\0\0\1\0\0\0\x16\0\1\0\1\0\0\0\1\x61\1"
                                "\1\6\0\1\0\0\0\x0cv\0\0\0\2\0\0\0\1\xff\xff\xff\xfe";

static lbmsdm_msg_t *make_example_1(void)
{
    lbmsdm_msg_t *msg = new_message();
    lbmsdm_msg_add_int8(msg, "Field100", 0x42);
    lbmsdm_msg_add_int16(msg, "Field101", 0x1ead);
    lbmsdm_msg_add_int32(msg, "Field102", 12345);
    return msg;
}

static lbmsdm_msg_t *make_example_2(void)
{
    lbmsdm_msg_t *msg = new_message(), *sub = new_message();
    lbmsdm_msg_add_decimal(msg, "px", &(lbmsdm_decimal_t){31415, -2});
    lbmsdm_msg_add_timestamp(msg, "ts", &(struct timeval){1700000000, 123456});
    lbmsdm_msg_add_string_array(msg, "tags");
    lbmsdm_msg_add_string_elem_name(msg, "tags", "ab");
    lbmsdm_msg_add_string_elem_name(msg, "tags", "cd\xc3\xa9");
    lbmsdm_msg_add_uint32(msg, "q", 7);
    lbmsdm_msg_set_null_name(msg, "q");
    lbmsdm_msg_add_boolean(sub, "a", 200); /* anything but 0 is true */
    lbmsdm_msg_add_message(msg, "sub", sub);
    lbmsdm_msg_destroy(sub);
    lbmsdm_msg_add_int32_array(msg, "v");
    lbmsdm_msg_add_int32_elem_name(msg, "v", 1);
    lbmsdm_msg_add_int32_elem_name(msg, "v", -2);
    return msg;
}

TEST(documented_examples_are_made_byte_for_byte_and_read_back)
{
    lbmsdm_msg_t *one = make_example_1(), *two = make_example_2(), *empty = new_message(), *again;
    CHECK(has_bytes(one, example_1, 67) && sizeof example_1 == 68);
    CHECK(has_bytes(two, example_2, 146) && sizeof example_2 == 147);
    CHECK(has_bytes(empty, "UMSD\1\0\0\0\0\0\0\x0c", 12));
    OK(lbmsdm_msg_parse(&again, example_2, 146));
    CHECK(has_bytes(again, example_2, 146));
    CHECK_STR(dump(again), "{px=31415e-2, ts=1700000000.123456, tags=[\"ab\", \"cd\xc3\xa9\"], q=null, sub={a=true}, "
                           "v=[1, -2]}");
    OK(lbmsdm_msg_parse_reuse(again, example_1, 67));
    CHECK_STR(dump(again), "{Field100=66, Field101=7853, Field102=12345}");
    OK(lbmsdm_msg_parse_reuse(again, lbmsdm_msg_get_data(empty), 12));
    CHECK_EQ(lbmsdm_msg_get_fldcnt(again), 0);
    CHECK_STR(dump(again), "{}");
    lbmsdm_msg_destroy(one);
    lbmsdm_msg_destroy(two);
    lbmsdm_msg_destroy(empty);
    lbmsdm_msg_destroy(again);
}

TEST(bytes_behind_a_message_are_ignored_and_its_options_kept)
{
    char longer[80] = {0};
    lbmsdm_msg_t *msg;
    memcpy(longer, example_1, 67);
    memset(longer + 67, 'x', 13);
    OK(lbmsdm_msg_parse(&msg, longer, sizeof longer));
    CHECK(has_bytes(msg, example_1, 67));
    lbmsdm_msg_destroy(msg);
}

TEST(bytes_given_away_follow_every_change)
{
    lbmsdm_msg_t *msg = make_example_1(), *again;
    size_t before = lbmsdm_msg_get_datalen(msg);
    OK(lbmsdm_msg_add_blob(msg, "itself", lbmsdm_msg_get_data(msg), before)); /* from the memory that changes */
    CHECK_EQ(lbmsdm_msg_get_datalen(msg), before + 8 + 6 + before);
    OK(lbmsdm_msg_parse(&again, lbmsdm_msg_get_data(msg), lbmsdm_msg_get_datalen(msg)));
    CHECK_EQ(lbmsdm_msg_get_fldcnt(again), 4);
    lbmsdm_msg_destroy(again);
    OK(lbmsdm_msg_del_name(msg, "itself"));
    CHECK(has_bytes(msg, example_1, 67));
    OK(lbmsdm_msg_set_int32_idx(msg, 2, 12346));
    CHECK_EQ(lbmsdm_msg_get_data(msg)[66], 0x3a);
    OK(lbmsdm_msg_clear(msg));
    CHECK_EQ(lbmsdm_msg_get_datalen(msg), 12);
    lbmsdm_msg_destroy(msg);
}

/* ---- names and indexes ---- */

TEST(names_are_found_in_any_case_and_kept_as_given)
{
    lbmsdm_msg_t *msg = new_message();
    char name[32];
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "Price_%d_%c", i, 'A' + i % 26);
        OK(lbmsdm_msg_add_int32(msg, name, i));
    }
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "pRICE_%d_%c", i, 'a' + i % 26);
        CHECK_EQ(lbmsdm_msg_get_idx_name(msg, name), i);
        FAILS(lbmsdm_msg_add_int32(msg, name, i), LBMSDM_ERR_DUPLICATE_FIELD);
    }
    CHECK_STR(lbmsdm_msg_get_name_idx(msg, 27), "Price_27_B");
    OK(lbmsdm_msg_add_int8(msg, "\xc3\x84", 1)); /* beyond ASCII nothing is folded */
    OK(lbmsdm_msg_add_int8(msg, "\xc3\xa4", 2));
    lbmsdm_msg_destroy(msg);
}

TEST(fields_behind_a_deleted_one_move_down)
{
    lbmsdm_msg_t *msg = new_message();
    char name[16];
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "f%d", i);
        OK(lbmsdm_msg_add_int32(msg, name, i));
    }
    OK(lbmsdm_msg_del_name(msg, "F10"));
    OK(lbmsdm_msg_del_idx(msg, 0));
    FAILS(lbmsdm_msg_get_idx_name(msg, "f10"), LBMSDM_ERR_FIELD_NOT_FOUND);
    CHECK_CONTAINS(lbmsdm_errmsg(), "f10");
    for (int i = 1; i < 100; i++) {
        snprintf(name, sizeof name, "f%d", i);
        if (i != 10) {
            int32_t value;
            OK(lbmsdm_msg_get_int32_name(msg, name, &value));
            CHECK_EQ(value, i);
            CHECK_EQ(lbmsdm_msg_get_idx_name(msg, name), i - (i > 10 ? 2 : 1));
        }
    }
    OK(lbmsdm_msg_add_int32(msg, "f10", 10));
    CHECK_EQ(lbmsdm_msg_get_idx_name(msg, "f10"), 98);
    FAILS(lbmsdm_msg_del_idx(msg, 99), LBMSDM_ERR_FIELD_NOT_FOUND);
    lbmsdm_msg_destroy(msg);
}

TEST(names_have_1_to_255_bytes)
{
    char name[257];
    lbmsdm_msg_t *msg = new_message(), *again;
    memset(name, 'n', 256);
    name[256] = '\0';
    FAILS(lbmsdm_msg_add_int8(msg, name, 1), LBMSDM_ERR_NAMETOOLONG);
    FAILS(lbmsdm_msg_get_idx_name(msg, name), LBMSDM_ERR_FIELD_NOT_FOUND);
    name[255] = '\0';
    OK(lbmsdm_msg_add_int8(msg, name, 1));
    OK(lbmsdm_msg_parse(&again, lbmsdm_msg_get_data(msg), lbmsdm_msg_get_datalen(msg)));
    CHECK_STR(lbmsdm_msg_get_name_idx(again, 0), name);
    FAILS(lbmsdm_msg_add_int8(msg, "", 1), LBMSDM_ERR_INVALID_FIELD_NAME);
    lbmsdm_msg_destroy(msg);
    lbmsdm_msg_destroy(again);
}

/* ---- null ---- */

TEST(null_fields_have_a_type_and_no_value)
{
    lbmsdm_msg_t *msg = make_example_2();
    int32_t value;
    CHECK_EQ(lbmsdm_msg_is_null_name(msg, "q"), 1);
    CHECK_EQ(lbmsdm_msg_is_null_idx(msg, 0), 0);
    FAILS(lbmsdm_msg_is_null_idx(msg, 6), LBMSDM_ERR_FIELD_NOT_FOUND);
    CHECK_EQ(lbmsdm_msg_get_type_name(msg, "q"), LBMSDM_TYPE_UINT32);
    CHECK_EQ(lbmsdm_msg_get_int32_name(msg, "q", &value), LBMSDM_FIELD_IS_NULL);
    CHECK_EQ(lbmsdm_errnum(), LBMSDM_ERR_FIELD_IS_NULL);
    CHECK_EQ(lbmsdm_msg_get_int32_name(msg, "sub", &value), LBMSDM_FAILURE);
    FAILS(lbmsdm_msg_get_len_name(msg, "q"), LBMSDM_ERR_FIELD_IS_NULL);
    OK(lbmsdm_msg_set_null_name(msg, "v"));
    OK(lbmsdm_msg_set_null_name(msg, "v"));
    CHECK_EQ(lbmsdm_msg_get_int32_elem_name(msg, "v", 0, &value), LBMSDM_FIELD_IS_NULL);
    FAILS(lbmsdm_msg_set_int32_elem_name(msg, "v", 0, 1), LBMSDM_ERR_FIELD_IS_NULL);
    FAILS(lbmsdm_msg_del_elem_name(msg, "v", 0), LBMSDM_ERR_FIELD_IS_NULL);
    FAILS(lbmsdm_msg_get_elemlen_name(msg, "v", 0), LBMSDM_ERR_FIELD_IS_NULL);
    OK(lbmsdm_msg_add_int32_elem_name(msg, "v", 5));
    CHECK_EQ(lbmsdm_msg_get_elemcnt_name(msg, "v"), 1);
    CHECK_EQ(lbmsdm_msg_is_null_name(msg, "v"), 0);
    lbmsdm_msg_destroy(msg);
}

/* ---- iterators ---- */

TEST(iterators_walk_over_all_fields)
{
    lbmsdm_msg_t *msg = make_example_1(), *empty = new_message();
    lbmsdm_iter_t *iter, *none;
    OK(lbmsdm_iter_create(&iter, msg));
    FAILS(lbmsdm_iter_next(iter), LBMSDM_ERR_ITERATOR_INVALID);
    FAILS(lbmsdm_iter_is_null(iter), LBMSDM_ERR_ITERATOR_INVALID);
    CHECK(lbmsdm_iter_get_name(iter) == NULL);
    CHECK_EQ(lbmsdm_iter_get_type(iter), LBMSDM_TYPE_INVALID);
    OK(lbmsdm_iter_first(iter));
    CHECK_STR(lbmsdm_iter_get_name(iter), "Field100");
    CHECK_EQ(lbmsdm_iter_get_elemcnt(iter), 1);
    CHECK_EQ(lbmsdm_iter_get_len(iter), 1);
    OK(lbmsdm_iter_next(iter));
    OK(lbmsdm_iter_next(iter));
    CHECK_EQ(lbmsdm_iter_get_type(iter), LBMSDM_TYPE_INT32);
    CHECK_EQ(lbmsdm_iter_next(iter), LBMSDM_NO_MORE_FIELDS);
    CHECK_EQ(lbmsdm_iter_next(iter), LBMSDM_NO_MORE_FIELDS);
    FAILS(lbmsdm_iter_set_null(iter), LBMSDM_ERR_ITERATOR_INVALID);
    OK(lbmsdm_iter_create(&none, empty));
    CHECK_EQ(lbmsdm_iter_first(none), LBMSDM_NO_MORE_FIELDS);
    OK(lbmsdm_iter_destroy(none));
    OK(lbmsdm_iter_destroy(iter));
    lbmsdm_msg_destroy(msg);
    lbmsdm_msg_destroy(empty);
}

TEST(iterators_outlive_deletions)
{
    lbmsdm_msg_t *msg = make_example_1();
    lbmsdm_iter_t *iter, *other;
    OK(lbmsdm_iter_create(&iter, msg));
    OK(lbmsdm_iter_create(&other, msg));
    OK(lbmsdm_iter_first(iter));
    OK(lbmsdm_iter_first(other));
    OK(lbmsdm_iter_next(other));
    OK(lbmsdm_iter_next(other));
    OK(lbmsdm_iter_del(iter));
    CHECK_STR(lbmsdm_iter_get_name(iter), "Field101");
    FAILS(lbmsdm_iter_get_elemcnt(other), LBMSDM_ERR_ITERATOR_INVALID);
    CHECK_EQ(lbmsdm_iter_next(other), LBMSDM_NO_MORE_FIELDS);
    OK(lbmsdm_iter_del(iter));
    OK(lbmsdm_iter_del(iter));
    FAILS(lbmsdm_iter_del(iter), LBMSDM_ERR_ITERATOR_INVALID);
    CHECK_EQ(lbmsdm_msg_get_fldcnt(msg), 0);
    OK(lbmsdm_iter_destroy(iter));
    OK(lbmsdm_iter_destroy(other));
    lbmsdm_msg_destroy(msg);
}

/* ---- kinds of errors ---- */

TEST(scalars_and_arrays_are_told_apart)
{
    lbmsdm_msg_t *msg = make_example_2();
    lbmsdm_iter_t *iter;
    lbmsdm_decimal_t decimal;
    int32_t value;
    FAILS(lbmsdm_msg_get_int32_name(msg, "v", &value), LBMSDM_ERR_NOT_SCALAR);
    FAILS(lbmsdm_msg_get_len_name(msg, "v"), LBMSDM_ERR_NOT_SCALAR);
    FAILS(lbmsdm_msg_get_decimal_elem_name(msg, "px", 0, &decimal), LBMSDM_ERR_NOT_ARRAY);
    FAILS(lbmsdm_msg_get_elemlen_idx(msg, 0, 0), LBMSDM_ERR_NOT_ARRAY);
    FAILS(lbmsdm_msg_del_elem_idx(msg, 0, 0), LBMSDM_ERR_NOT_ARRAY);
    FAILS(lbmsdm_msg_add_int16_elem_name(msg, "v", 1), LBMSDM_ERR_TYPE_MISMATCH);
    CHECK_CONTAINS(lbmsdm_errmsg(), "v: the elements are of the type int32, not int16");
    FAILS(lbmsdm_msg_set_string_elem_name(msg, "v", 0, "x"), LBMSDM_ERR_TYPE_MISMATCH);
    FAILS(lbmsdm_msg_get_int32_elem_name(msg, "v", 2, &value), LBMSDM_ERR_ELEMENT_NOT_FOUND);
    FAILS(lbmsdm_msg_del_elem_name(msg, "v", SIZE_MAX), LBMSDM_ERR_ELEMENT_NOT_FOUND);
    OK(lbmsdm_iter_create(&iter, msg));
    OK(lbmsdm_iter_first(iter));
    FAILS(lbmsdm_iter_get_elemlen(iter, 0), LBMSDM_ERR_NOT_ARRAY);
    FAILS(lbmsdm_iter_del_elem(iter, 0), LBMSDM_ERR_NOT_ARRAY);
    OK(lbmsdm_iter_destroy(iter));
    lbmsdm_msg_destroy(msg);
}

TEST(lengths_are_those_that_getters_need)
{
    lbmsdm_msg_t *msg = make_example_2();
    CHECK_EQ(lbmsdm_msg_get_len_name(msg, "px"), (int)sizeof(lbmsdm_decimal_t));
    CHECK_EQ(lbmsdm_msg_get_len_idx(msg, 1), (int)sizeof(struct timeval));
    CHECK_EQ(lbmsdm_msg_get_len_name(msg, "sub"), 22);
    CHECK_EQ(lbmsdm_msg_get_elemlen_name(msg, "tags", 1), 5);
    CHECK_EQ(lbmsdm_msg_get_elemlen_name(msg, "v", 1), 4);
    OK(lbmsdm_msg_add_unicode(msg, "u", L"ab\u20ac", 3));
    CHECK_EQ(lbmsdm_msg_get_len_name(msg, "u"), 3 * (int)sizeof(wchar_t));
    OK(lbmsdm_msg_add_blob(msg, "b", NULL, 0));
    CHECK_EQ(lbmsdm_msg_get_len_name(msg, "b"), 0);
    lbmsdm_msg_destroy(msg);
}

TEST(arguments_that_are_missing_are_refused)
{
    lbmsdm_msg_t *msg = make_example_2(), *out;
    size_t size = 0;
    FAILS(lbmsdm_msg_create(NULL), LBMSDM_ERR_EINVAL);
    FAILS(lbmsdm_msg_parse(&out, NULL, 5), LBMSDM_ERR_EINVAL);
    FAILS(lbmsdm_msg_parse(NULL, "", 0), LBMSDM_ERR_EINVAL);
    FAILS(lbmsdm_msg_parse_reuse(NULL, "", 0), LBMSDM_ERR_EINVAL);
    FAILS(lbmsdm_msg_clone(&out, NULL), LBMSDM_ERR_EINVAL);
    FAILS(lbmsdm_msg_clear(NULL), LBMSDM_ERR_EINVAL);
    FAILS(lbmsdm_msg_destroy(NULL), LBMSDM_ERR_EINVAL);
    FAILS(lbmsdm_msg_add_int8(NULL, "a", 1), LBMSDM_ERR_EINVAL);
    FAILS(lbmsdm_msg_add_int8(msg, NULL, 1), LBMSDM_ERR_EINVAL);
    FAILS(lbmsdm_msg_add_int8_array(msg, NULL), LBMSDM_ERR_EINVAL);
    FAILS(lbmsdm_msg_add_string(msg, "a", NULL), LBMSDM_ERR_EINVAL);
    FAILS(lbmsdm_msg_add_decimal(msg, "a", NULL), LBMSDM_ERR_EINVAL);
    FAILS(lbmsdm_msg_add_message(msg, "a", NULL), LBMSDM_ERR_EINVAL);
    FAILS(lbmsdm_msg_add_blob(msg, "a", NULL, 1), LBMSDM_ERR_EINVAL);
    FAILS(lbmsdm_msg_add_timestamp(msg, "a", &(struct timeval){0, 1000000}), LBMSDM_ERR_EINVAL);
    FAILS(lbmsdm_msg_add_timestamp(msg, "a", &(struct timeval){0, -1}), LBMSDM_ERR_EINVAL);
    FAILS(lbmsdm_msg_get_decimal_idx(msg, 0, NULL), LBMSDM_ERR_EINVAL);
    FAILS(lbmsdm_msg_get_string_elem_name(msg, "tags", 0, NULL, NULL), LBMSDM_ERR_EINVAL);
    CHECK_EQ(lbmsdm_msg_get_string_elem_name(msg, "tags", 0, NULL, &size), LBMSDM_INSUFFICIENT_BUFFER_LENGTH);
    CHECK_EQ(size, 3);
    FAILS(lbmsdm_msg_get_string_elem_name(msg, "tags", 0, NULL, &size), LBMSDM_ERR_EINVAL);
    FAILS(lbmsdm_msg_dump(msg, NULL, 5), LBMSDM_ERR_EINVAL);
    FAILS(lbmsdm_msg_dump(msg, (char[1]){0}, 0), LBMSDM_ERR_EINVAL);
    FAILS(lbmsdm_iter_create(NULL, msg), LBMSDM_ERR_EINVAL);
    FAILS(lbmsdm_iter_first(NULL), LBMSDM_ERR_EINVAL);
    FAILS(lbmsdm_iter_next(NULL), LBMSDM_ERR_EINVAL);
    FAILS(lbmsdm_iter_destroy(NULL), LBMSDM_ERR_EINVAL);
    CHECK(lbmsdm_msg_get_data(NULL) == NULL);
    CHECK_EQ(lbmsdm_msg_get_datalen(NULL), 0);
    FAILS(lbmsdm_msg_get_fldcnt(NULL), LBMSDM_ERR_EINVAL);
    FAILS(lbmsdm_msg_get_idx_name(msg, NULL), LBMSDM_ERR_EINVAL);
    CHECK(has_bytes(msg, example_2, 146));
    OK(lbmsdm_win32_static_init());
    lbmsdm_msg_destroy(msg);
}

TEST(characters_that_are_none_are_refused)
{
    lbmsdm_msg_t *msg = new_message();
    FAILS(lbmsdm_msg_add_unicode(msg, "u", (const wchar_t[]){'a', 0xd800}, 2), LBMSDM_ERR_UNICODE_CONVERSION);
    FAILS(lbmsdm_msg_add_unicode(msg, "u", (const wchar_t[]){0xdfff}, 1), LBMSDM_ERR_UNICODE_CONVERSION);
    FAILS(lbmsdm_msg_add_unicode(msg, "u", (const wchar_t[]){0x110000}, 1), LBMSDM_ERR_UNICODE_CONVERSION);
    FAILS(lbmsdm_msg_add_unicode(msg, "u", (const wchar_t[]){-1}, 1), LBMSDM_ERR_UNICODE_CONVERSION);
    OK(lbmsdm_msg_add_unicode(msg, "u", (const wchar_t[]){0, 0xd7ff, 0xe000, 0xffff, 0x10000, 0x10ffff}, 6));
    CHECK_EQ(lbmsdm_msg_get_datalen(msg), 12 + 8 + 1 + 1 + 3 + 3 + 3 + 4 + 4);
    lbmsdm_msg_destroy(msg);
}

/* ---- clones, nested messages, limits ---- */

TEST(nested_messages_are_copies_both_ways)
{
    lbmsdm_msg_t *msg = make_example_1(), *out, *clone;
    OK(lbmsdm_msg_add_message(msg, "me", msg)); /* itself, as it was */
    OK(lbmsdm_msg_get_message_name(msg, "me", &out));
    CHECK(has_bytes(out, example_1, 67));
    OK(lbmsdm_msg_del_idx(out, 0));
    CHECK_STR(dump(msg), "{Field100=66, Field101=7853, Field102=12345, me={Field100=66, Field101=7853, "
                         "Field102=12345}}");
    OK(lbmsdm_msg_clone(&clone, msg));
    OK(lbmsdm_msg_clear(msg));
    CHECK_EQ(lbmsdm_msg_get_fldcnt(clone), 4);
    CHECK_EQ(lbmsdm_msg_get_idx_name(clone, "FIELD101"), 1);
    lbmsdm_msg_destroy(msg);
    lbmsdm_msg_destroy(out);
    lbmsdm_msg_destroy(clone);
}

TEST(messages_nest_32_deep_and_no_deeper)
{
    lbmsdm_msg_t *inner = new_message(), *outer, *again;
    for (int depth = 2; depth <= 32; depth++) {
        outer = new_message();
        if (depth % 2 == 0) {
            OK(lbmsdm_msg_add_message(outer, "m", inner));
        } else {
            OK(lbmsdm_msg_add_message_array(outer, "m"));
            OK(lbmsdm_msg_add_message_elem_idx(outer, 0, inner));
        }
        lbmsdm_msg_destroy(inner);
        inner = outer;
    }
    outer = new_message();
    FAILS(lbmsdm_msg_add_message(outer, "m", inner), LBMSDM_ERR_ADDING_FIELD);
    CHECK_CONTAINS(lbmsdm_errmsg(), "at most 32 deep");
    OK(lbmsdm_msg_parse(&again, lbmsdm_msg_get_data(inner), lbmsdm_msg_get_datalen(inner)));
    lbmsdm_msg_destroy(again);
    lbmsdm_msg_destroy(inner);
    lbmsdm_msg_destroy(outer);
}

TEST(a_message_has_65535_fields_and_no_more)
{
    lbmsdm_msg_t *msg = new_message(), *again;
    char name[16];
    for (int i = 0; i < 65535; i++) {
        snprintf(name, sizeof name, "%d", i);
        if (lbmsdm_msg_add_int8(msg, name, 1) != LBMSDM_SUCCESS) {
            TEST_FAIL("field %d: %s", i, lbmsdm_errmsg());
        }
    }
    FAILS(lbmsdm_msg_add_int8(msg, "more", 1), LBMSDM_ERR_ADDING_FIELD);
    FAILS(lbmsdm_msg_add_int8_array(msg, "more"), LBMSDM_ERR_ADDING_FIELD);
    OK(lbmsdm_msg_parse(&again, lbmsdm_msg_get_data(msg), lbmsdm_msg_get_datalen(msg)));
    CHECK_EQ(lbmsdm_msg_get_fldcnt(again), 65535);
    CHECK_EQ(lbmsdm_msg_get_idx_name(again, "65534"), 65534);
    lbmsdm_msg_destroy(msg);
    lbmsdm_msg_destroy(again);
}

TEST(dumps_are_cut_to_fit_and_escaped)
{
    lbmsdm_msg_t *msg = new_message();
    char text[8] = "xxxxxxx";
    OK(lbmsdm_msg_add_string(msg, "s", "a\"b\\c\n\001\x7f"));
    OK(lbmsdm_msg_add_double(msg, "d", 0.1));
    OK(lbmsdm_msg_add_float(msg, "f", 0.5f));
    OK(lbmsdm_msg_add_uint64(msg, "u", UINT64_MAX));
    OK(lbmsdm_msg_add_unicode(msg, "w", L"abc", 3));
    OK(lbmsdm_msg_add_blob(msg, "b", "12", 2));
    OK(lbmsdm_msg_add_boolean(msg, "line\nbreak", 0));
    CHECK_STR(dump(msg), "{s=\"a\\\"b\\\\c\\n\\001\\177\", d=0.10000000000000001, f=0.5, u=18446744073709551615, "
                         "w=<unicode 3>, b=<blob 2>, line\\nbreak=false}");
    OK(lbmsdm_msg_dump(msg, text, 7));
    CHECK_STR(text, "{s=\"a\\");
    CHECK_EQ(text[7], '\0');
    OK(lbmsdm_msg_dump(msg, text, 1));
    CHECK_STR(text, "");
    lbmsdm_msg_destroy(msg);
}

/* ---- options ---- */

static int option(lbmsdm_msg_attr_t *attr, const char *name)
{
    char text[16] = "";
    int value = -1;
    size_t size = sizeof value, text_size = sizeof text;
    if (lbmsdm_msg_attr_getopt(attr, name, &value, &size) != 0 || size != sizeof value ||
        lbmsdm_msg_attr_str_getopt(attr, name, text, &text_size) != 0 || text_size != strlen(text) + 1 ||
        atoi(text) != value) {
        return -1;
    }
    return value;
}

TEST(options_have_defaults_ranges_and_two_forms)
{
    lbmsdm_msg_attr_t *attr, *copy;
    int value = 0;
    char text[4];
    size_t size = 1;
    OK(lbmsdm_msg_attr_create(&attr));
    CHECK_EQ(option(attr, "field_array_allocation"), 32);
    CHECK_EQ(option(attr, "name_tree"), 1);
    CHECK_EQ(option(attr, "integer_index"), 0);
    OK(lbmsdm_msg_attr_setopt(attr, "name_tree", &value, sizeof value));
    OK(lbmsdm_msg_attr_str_setopt(attr, "field_array_allocation", "7"));
    OK(lbmsdm_msg_attr_dup(&copy, attr));
    OK(lbmsdm_msg_attr_delete(attr));
    CHECK_EQ(option(copy, "name_tree"), 0);
    CHECK_EQ(option(copy, "field_array_allocation"), 7);
    FAILS(lbmsdm_msg_attr_str_setopt(copy, "name_trees", "1"), LBMSDM_ERR_EINVAL);
    FAILS(lbmsdm_msg_attr_str_setopt(copy, "name_tree", "2"), LBMSDM_ERR_EINVAL);
    FAILS(lbmsdm_msg_attr_str_setopt(copy, "name_tree", "-1"), LBMSDM_ERR_EINVAL);
    FAILS(lbmsdm_msg_attr_str_setopt(copy, "name_tree", "yes"), LBMSDM_ERR_EINVAL);
    FAILS(lbmsdm_msg_attr_str_setopt(copy, "field_array_allocation", "99999999999999999999"), LBMSDM_ERR_EINVAL);
    FAILS(lbmsdm_msg_attr_setopt(copy, "name_tree", &value, 1), LBMSDM_ERR_EINVAL);
    FAILS(lbmsdm_msg_attr_setopt(copy, "name_tree", NULL, 4), LBMSDM_ERR_EINVAL);
    FAILS(lbmsdm_msg_attr_getopt(copy, "none", &value, &size), LBMSDM_ERR_EINVAL);
    FAILS(lbmsdm_msg_attr_str_getopt(copy, "field_array_allocation", text, &size), LBMSDM_ERR_EINVAL);
    CHECK_EQ(size, 2);
    OK(lbmsdm_msg_attr_delete(copy));
}

static lbmsdm_msg_attr_t *with(const char *name, const char *value)
{
    lbmsdm_msg_attr_t *attr;
    if (lbmsdm_msg_attr_create(&attr) != 0 || lbmsdm_msg_attr_str_setopt(attr, name, value) != 0) {
        abort();
    }
    return attr;
}

TEST(without_name_tree_duplicates_pass_until_they_are_received)
{
    lbmsdm_msg_attr_t *attr = with("name_tree", "0");
    lbmsdm_msg_t *msg, *again;
    OK(lbmsdm_msg_create_ex(&msg, attr));
    for (int i = 0; i < 20; i++) {
        OK(lbmsdm_msg_add_int32(msg, i % 2 == 0 ? "a" : "A", i));
    }
    CHECK_EQ(lbmsdm_msg_get_idx_name(msg, "A"), 0); /* the first */
    FAILS(lbmsdm_msg_parse(&again, lbmsdm_msg_get_data(msg), lbmsdm_msg_get_datalen(msg)), LBMSDM_ERR_DUPLICATE_FIELD);
    OK(lbmsdm_msg_parse_ex(&again, lbmsdm_msg_get_data(msg), lbmsdm_msg_get_datalen(msg), attr));
    CHECK_EQ(lbmsdm_msg_get_fldcnt(again), 20);
    lbmsdm_msg_destroy(msg);
    lbmsdm_msg_destroy(again);
    lbmsdm_msg_attr_delete(attr);
}

TEST(with_integer_index_names_are_numbers)
{
    lbmsdm_msg_attr_t *attr = with("integer_index", "1");
    lbmsdm_msg_t *msg, *again;
    OK(lbmsdm_msg_create_ex(&msg, attr));
    OK(lbmsdm_msg_add_int8(msg, "1000000", 1));
    OK(lbmsdm_msg_add_int8(msg, "0", 2));
    static const char *const bad[] = {"a", "-1", "01", "1000001", "10000000", "1.", " 1", "+1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        FAILS(lbmsdm_msg_add_int8(msg, bad[i], 1), LBMSDM_ERR_INVALID_FIELD_NAME);
    }
    CHECK_EQ(lbmsdm_msg_get_idx_name(msg, "0"), 1);
    FAILS(lbmsdm_msg_parse_ex(&again, example_1, 67, attr), LBMSDM_ERR_INVALID_FIELD_NAME);
    OK(lbmsdm_msg_clone(&again, msg)); /* options are copied */
    FAILS(lbmsdm_msg_add_int8(again, "a", 1), LBMSDM_ERR_INVALID_FIELD_NAME);
    lbmsdm_msg_destroy(msg);
    lbmsdm_msg_destroy(again);
    lbmsdm_msg_attr_delete(attr);
}

TEST(the_field_table_may_begin_small)
{
    lbmsdm_msg_attr_t *attr = with("field_array_allocation", "0");
    lbmsdm_msg_t *msg;
    char name[16];
    OK(lbmsdm_msg_create_ex(&msg, attr));
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "%d", i);
        OK(lbmsdm_msg_add_int32(msg, name, i));
    }
    CHECK_EQ(lbmsdm_msg_get_idx_name(msg, "99"), 99);
    lbmsdm_msg_destroy(msg);
    OK(lbmsdm_msg_attr_str_setopt(attr, "field_array_allocation", "2147483647")); /* at most as many as there may be */
    OK(lbmsdm_msg_create_ex(&msg, attr));
    OK(lbmsdm_msg_add_int32(msg, "a", 1));
    lbmsdm_msg_destroy(msg);
    lbmsdm_msg_attr_delete(attr);
}

/* ---- errors by thread ---- */

static void *provoke(void *arg)
{
    lbmsdm_msg_t *msg = new_message();
    bool *ok = arg;
    *ok = lbmsdm_errnum() == 0 && strcmp(lbmsdm_errmsg(), "") == 0 && lbmsdm_msg_del_idx(msg, 0) == -1 &&
          lbmsdm_errnum() == LBMSDM_ERR_FIELD_NOT_FOUND;
    lbmsdm_msg_destroy(msg);
    return NULL;
}

TEST(every_thread_has_an_error_of_its_own)
{
    pthread_t thread;
    bool ok = false;
    FAILS(lbmsdm_msg_create(NULL), LBMSDM_ERR_EINVAL);
    CHECK_EQ(pthread_create(&thread, NULL, provoke, &ok), 0);
    pthread_join(thread, NULL);
    CHECK(ok);
    CHECK_EQ(lbmsdm_errnum(), LBMSDM_ERR_EINVAL);
}
