/* The calls of lbmsdm.h that exist for each type, all 340: what is put in by index, by name or by iterator comes out
 * again, before and after the way over bytes. One table of types; each row becomes a test. */
#include <wchar.h>

#include <lbm/lbmsdm.h>

#include "um_test.h"

#define TYPES(call)                                                                                                    \
    call(boolean, BOOLEAN, PLAIN, uint8_t) call(int8, INT8, PLAIN, int8_t) call(uint8, UINT8, PLAIN, uint8_t)          \
        call(int16, INT16, PLAIN, int16_t) call(uint16, UINT16, PLAIN, uint16_t) call(int32, INT32, PLAIN, int32_t)    \
            call(uint32, UINT32, PLAIN, uint32_t) call(int64, INT64, PLAIN, int64_t)                                   \
                call(uint64, UINT64, PLAIN, uint64_t) call(float, FLOAT, PLAIN, float)                                 \
                    call(double, DOUBLE, PLAIN, double) call(decimal, DECIMAL, STRUCTURE, lbmsdm_decimal_t)            \
                        call(timestamp, TIMESTAMP, STRUCTURE, struct timeval)                                          \
                            call(message, MESSAGE, MESSAGE, lbmsdm_msg_t) call(string, STRING, TEXT, char)             \
                                call(unicode, UNICODE, SIZED, wchar_t) call(blob, BLOB, SIZED, unsigned char)

/* Two values of each type, different in every byte where there are several. */
static const uint8_t boolean_values[] = {1, 0};
static const int8_t int8_values[] = {-128, 0x42};
static const uint8_t uint8_values[] = {0xff, 1};
static const int16_t int16_values[] = {-32768, 0x1ead};
static const uint16_t uint16_values[] = {0xfedc, 1};
static const int32_t int32_values[] = {INT32_MIN, 12345};
static const uint32_t uint32_values[] = {0xfedcba98u, 2};
static const int64_t int64_values[] = {INT64_MIN, 0x0123456789abcdef};
static const uint64_t uint64_values[] = {0xfedcba9876543210u, 3};
static const float float_values[] = {-1.5e-30f, 3.25f};
static const double double_values[] = {1.7976931348623157e308, -0.1};
static const lbmsdm_decimal_t decimal_values[] = {{INT64_MIN, -128}, {31415, -2}};
static const struct timeval timestamp_values[] = {{1700000000, 123456}, {-1, 999999}};
static const char *const string_values[] = {"two words \xc3\xa9", ""};
static const wchar_t *const unicode_values[] = {L"a\u00e9\u20ac\U0001f600", L""};
static const size_t unicode_sizes[] = {4, 0};
static const unsigned char *const blob_values[] = {(const unsigned char *)"\0\xff\0", (const unsigned char *)""};
static const size_t blob_sizes[] = {3, 0};

/* A message with one field, or with none. */
static lbmsdm_msg_t *message_value(int i)
{
    static lbmsdm_msg_t *values[2];
    if (values[i] == NULL) {
        lbmsdm_msg_create(&values[i]);
        if (i == 0) {
            lbmsdm_msg_add_string(values[i], "inner", "text");
        }
    }
    return values[i];
}

static bool same_decimal(const lbmsdm_decimal_t *a, const lbmsdm_decimal_t *b)
{
    return a->mant == b->mant && a->exp == b->exp;
}

static bool same_timestamp(const struct timeval *a, const struct timeval *b)
{
    return a->tv_sec == b->tv_sec && a->tv_usec == b->tv_usec;
}

static bool same_message(lbmsdm_msg_t *a, lbmsdm_msg_t *b)
{
    size_t len = lbmsdm_msg_get_datalen(a);
    return len == lbmsdm_msg_get_datalen(b) && memcmp(lbmsdm_msg_get_data(a), lbmsdm_msg_get_data(b), len) == 0;
}

/* The parameters of value i, and whether a getter gives it. */
#define VALUE_PLAIN(t, i) t##_values[i]
#define VALUE_STRUCTURE(t, i) &t##_values[i]
#define VALUE_MESSAGE(t, i) message_value(i)
#define VALUE_TEXT(t, i) t##_values[i]
#define VALUE_SIZED(t, i) t##_values[i], t##_sizes[i]

#define GIVES_PLAIN(t, c, i, getter, ...)                                                                              \
    ({                                                                                                                 \
        c got;                                                                                                         \
        getter(__VA_ARGS__, &got) == LBMSDM_SUCCESS &&memcmp(&got, &t##_values[i], sizeof got) == 0;                   \
    })
#define GIVES_STRUCTURE(t, c, i, getter, ...)                                                                          \
    ({                                                                                                                 \
        c got;                                                                                                         \
        getter(__VA_ARGS__, &got) == LBMSDM_SUCCESS &&same_##t(&got, &t##_values[i]);                                  \
    })
#define GIVES_MESSAGE(t, c, i, getter, ...)                                                                            \
    ({                                                                                                                 \
        c *got = NULL;                                                                                                 \
        bool same = getter(__VA_ARGS__, &got) == LBMSDM_SUCCESS && same_message(got, message_value(i));                \
        if (got != NULL) {                                                                                             \
            lbmsdm_msg_destroy(got);                                                                                   \
        }                                                                                                              \
        same;                                                                                                          \
    })
#define GIVES_TEXT(t, c, i, getter, ...)                                                                               \
    ({                                                                                                                 \
        c got[64];                                                                                                     \
        size_t size = strlen(t##_values[i]) + 1, less = size - 1;                                                      \
        getter(__VA_ARGS__, got, &less) == LBMSDM_INSUFFICIENT_BUFFER_LENGTH &&less ==                                 \
            size &&getter(__VA_ARGS__, got, &size) == LBMSDM_SUCCESS &&size == less &&strcmp(got, t##_values[i]) == 0; \
    })
#define GIVES_SIZED(t, c, i, getter, ...)                                                                              \
    ({                                                                                                                 \
        c got[64];                                                                                                     \
        size_t size = sizeof got / sizeof *got, less = 0;                                                              \
        int small = t##_sizes[i] == 0 ? LBMSDM_SUCCESS : LBMSDM_INSUFFICIENT_BUFFER_LENGTH;                            \
        getter(__VA_ARGS__, got, &less) == small &&less == t##_sizes[i] &&                                             \
            getter(__VA_ARGS__, got, &size) == LBMSDM_SUCCESS &&size == t##_sizes[i] &&                                \
            memcmp(got, t##_values[i], size * sizeof *got) == 0;                                                       \
    })

/* What the message is after a way over bytes. */
static lbmsdm_msg_t *over_bytes(lbmsdm_msg_t *msg)
{
    lbmsdm_msg_t *again = NULL;
    lbmsdm_msg_parse(&again, lbmsdm_msg_get_data(msg), lbmsdm_msg_get_datalen(msg));
    return again;
}

#define OK(call) CHECK_EQ(call, LBMSDM_SUCCESS)

#define ONE_TYPE(t, T, kind, c)                                                                                        \
    /* "s" is i; "a" is the array {i, k, i}. */                                                                        \
    static void expect_##t(lbmsdm_msg_t *msg, int i, int k)                                                            \
    {                                                                                                                  \
        lbmsdm_iter_t *iter;                                                                                           \
        CHECK(msg != NULL);                                                                                            \
        CHECK_EQ(lbmsdm_msg_get_type_name(msg, "s"), LBMSDM_TYPE_##T);                                                 \
        CHECK_EQ(lbmsdm_msg_get_type_idx(msg, 1), LBMSDM_TYPE_ARRAY_##T);                                              \
        CHECK_EQ(lbmsdm_msg_get_elemcnt_name(msg, "s"), 1);                                                            \
        CHECK_EQ(lbmsdm_msg_get_elemcnt_idx(msg, 1), 3);                                                               \
        CHECK(GIVES_##kind(t, c, i, lbmsdm_msg_get_##t##_idx, msg, 0));                                                \
        CHECK(GIVES_##kind(t, c, i, lbmsdm_msg_get_##t##_name, msg, "S"));                                             \
        CHECK(GIVES_##kind(t, c, i, lbmsdm_msg_get_##t##_elem_idx, msg, 1, 0));                                        \
        CHECK(GIVES_##kind(t, c, k, lbmsdm_msg_get_##t##_elem_name, msg, "a", 1));                                     \
        OK(lbmsdm_iter_create(&iter, msg));                                                                            \
        OK(lbmsdm_iter_first(iter));                                                                                   \
        CHECK(GIVES_##kind(t, c, i, lbmsdm_iter_get_##t, iter));                                                       \
        OK(lbmsdm_iter_next(iter));                                                                                    \
        CHECK(GIVES_##kind(t, c, i, lbmsdm_iter_get_##t##_elem, iter, 2));                                             \
        OK(lbmsdm_iter_destroy(iter));                                                                                 \
    }                                                                                                                  \
    TEST(t##_goes_in_and_out_by_index_name_and_iterator)                                                               \
    {                                                                                                                  \
        lbmsdm_msg_t *msg, *again;                                                                                     \
        lbmsdm_iter_t *iter;                                                                                           \
        OK(lbmsdm_msg_create(&msg));                                                                                   \
        OK(lbmsdm_msg_add_##t(msg, "s", VALUE_##kind(t, 0)));                                                          \
        OK(lbmsdm_msg_add_##t##_array(msg, "a"));                                                                      \
        OK(lbmsdm_msg_add_##t##_elem_idx(msg, 1, VALUE_##kind(t, 0)));                                                 \
        OK(lbmsdm_msg_add_##t##_elem_name(msg, "A", VALUE_##kind(t, 1)));                                              \
        OK(lbmsdm_iter_create(&iter, msg));                                                                            \
        OK(lbmsdm_iter_first(iter));                                                                                   \
        CHECK_EQ(lbmsdm_iter_add_##t##_elem(iter, VALUE_##kind(t, 0)), LBMSDM_FAILURE);                                \
        CHECK_EQ(lbmsdm_errnum(), LBMSDM_ERR_NOT_ARRAY);                                                               \
        OK(lbmsdm_iter_next(iter));                                                                                    \
        OK(lbmsdm_iter_add_##t##_elem(iter, VALUE_##kind(t, 0)));                                                      \
        expect_##t(msg, 0, 1);                                                                                         \
        expect_##t(again = over_bytes(msg), 0, 1);                                                                     \
        lbmsdm_msg_destroy(again);                                                                                     \
        /* Elements are set in all three ways: to {1, 0, 1}. */                                                        \
        OK(lbmsdm_msg_set_##t##_elem_idx(msg, 1, 0, VALUE_##kind(t, 1)));                                              \
        OK(lbmsdm_msg_set_##t##_elem_name(msg, "a", 1, VALUE_##kind(t, 0)));                                           \
        OK(lbmsdm_iter_set_##t##_elem(iter, 2, VALUE_##kind(t, 1)));                                                   \
        CHECK_EQ(lbmsdm_iter_set_##t##_elem(iter, 3, VALUE_##kind(t, 1)), LBMSDM_FAILURE);                             \
        CHECK_EQ(lbmsdm_errnum(), LBMSDM_ERR_ELEMENT_NOT_FOUND);                                                       \
        OK(lbmsdm_msg_set_##t##_idx(msg, 0, VALUE_##kind(t, 1)));                                                      \
        expect_##t(msg, 1, 0);                                                                                         \
        expect_##t(again = over_bytes(msg), 1, 0);                                                                     \
        lbmsdm_msg_destroy(again);                                                                                     \
        /* The same by way of nothing: null, scalars made arrays and back. */                                          \
        OK(lbmsdm_msg_set_null_idx(msg, 0));                                                                           \
        OK(lbmsdm_msg_set_null_name(msg, "a"));                                                                        \
        CHECK_EQ(lbmsdm_msg_get_elemcnt_idx(msg, 1), 0);                                                               \
        OK(lbmsdm_msg_set_##t##_name(msg, "s", VALUE_##kind(t, 0)));                                                   \
        OK(lbmsdm_iter_first(iter));                                                                                   \
        OK(lbmsdm_iter_set_##t##_array(iter));                                                                         \
        CHECK_EQ(lbmsdm_msg_get_type_idx(msg, 0), LBMSDM_TYPE_ARRAY_##T);                                              \
        OK(lbmsdm_iter_set_##t(iter, VALUE_##kind(t, 0)));                                                             \
        OK(lbmsdm_msg_set_##t##_idx(msg, 1, VALUE_##kind(t, 0)));                                                      \
        OK(lbmsdm_msg_set_##t##_array_idx(msg, 1));                                                                    \
        OK(lbmsdm_msg_add_##t##_elem_idx(msg, 1, VALUE_##kind(t, 1)));                                                 \
        OK(lbmsdm_msg_set_##t##_array_name(msg, "a"));                                                                 \
        CHECK_EQ(lbmsdm_msg_get_elemcnt_idx(msg, 1), 0);                                                               \
        OK(lbmsdm_msg_set_null_idx(msg, 1));                                                                           \
        OK(lbmsdm_msg_add_##t##_elem_idx(msg, 1, VALUE_##kind(t, 0)));                                                 \
        OK(lbmsdm_msg_add_##t##_elem_idx(msg, 1, VALUE_##kind(t, 0)));                                                 \
        OK(lbmsdm_msg_add_##t##_elem_idx(msg, 1, VALUE_##kind(t, 1)));                                                 \
        OK(lbmsdm_msg_add_##t##_elem_idx(msg, 1, VALUE_##kind(t, 0)));                                                 \
        OK(lbmsdm_msg_del_elem_idx(msg, 1, 1));                                                                        \
        expect_##t(msg, 0, 1);                                                                                         \
        expect_##t(again = over_bytes(msg), 0, 1);                                                                     \
        lbmsdm_msg_destroy(again);                                                                                     \
        OK(lbmsdm_iter_destroy(iter));                                                                                 \
        OK(lbmsdm_msg_destroy(msg));                                                                                   \
    }

TYPES(ONE_TYPE)
