/* Getters of SDM fields for other types than the field's: every pair of numbers by a table of values, and every pair
 * with something that is no number, which cannot be read. By all six ways to read. */
#include <math.h>

#include <lbm/lbmsdm.h>

#include "um_test.h"

union value {
    uint8_t u8;
    int8_t i8;
    uint16_t u16;
    int16_t i16;
    uint32_t u32;
    int32_t i32;
    uint64_t u64;
    int64_t i64;
    float f;
    double d;
    lbmsdm_decimal_t dec;
    struct timeval at;
    lbmsdm_msg_t *message;
    char bytes[64];
};

static const struct row {
    uint16_t type;
    union value value;
    uint8_t b;
    int8_t i8;
    uint8_t u8;
    int16_t i16;
    uint16_t u16;
    int32_t i32;
    uint32_t u32;
    int64_t i64;
    uint64_t u64;
    float f;
    double d;
    lbmsdm_decimal_t dec;
} rows[] = {
#include "sdm_conversion_rows.h"
};

#define ROWS (sizeof rows / sizeof rows[0])

/* Field 0 is a scalar of the type, field 1 an array with it as the second element. */
#define PUT(t, ...)                                                                                                    \
    (lbmsdm_msg_add_##t(msg, "s", __VA_ARGS__) == 0 && lbmsdm_msg_add_##t##_array(msg, "a") == 0 &&                    \
     lbmsdm_msg_add_##t##_elem_idx(msg, 1, __VA_ARGS__) == 0 &&                                                        \
     lbmsdm_msg_add_##t##_elem_idx(msg, 1, __VA_ARGS__) == 0)

static bool put(lbmsdm_msg_t *msg, uint16_t type, const union value *v)
{
    bool ok = false;
    lbmsdm_msg_t *inner;
    switch (type) {
    case LBMSDM_TYPE_BOOLEAN:
        return PUT(boolean, v->u8);
    case LBMSDM_TYPE_INT8:
        return PUT(int8, v->i8);
    case LBMSDM_TYPE_UINT8:
        return PUT(uint8, v->u8);
    case LBMSDM_TYPE_INT16:
        return PUT(int16, v->i16);
    case LBMSDM_TYPE_UINT16:
        return PUT(uint16, v->u16);
    case LBMSDM_TYPE_INT32:
        return PUT(int32, v->i32);
    case LBMSDM_TYPE_UINT32:
        return PUT(uint32, v->u32);
    case LBMSDM_TYPE_INT64:
        return PUT(int64, v->i64);
    case LBMSDM_TYPE_UINT64:
        return PUT(uint64, v->u64);
    case LBMSDM_TYPE_FLOAT:
        return PUT(float, v->f);
    case LBMSDM_TYPE_DOUBLE:
        return PUT(double, v->d);
    case LBMSDM_TYPE_DECIMAL:
        return PUT(decimal, &v->dec);
    case LBMSDM_TYPE_TIMESTAMP:
        return PUT(timestamp, &v->at);
    case LBMSDM_TYPE_MESSAGE:
        if (lbmsdm_msg_create(&inner) == 0) {
            ok = PUT(message, inner);
            lbmsdm_msg_destroy(inner);
        }
        return ok;
    case LBMSDM_TYPE_STRING:
        return PUT(string, "12");
    case LBMSDM_TYPE_UNICODE:
        return PUT(unicode, L"12", 2);
    default:
        return PUT(blob, "12", 2);
    }
}

/* The ways to read: by index, name, iterator; the scalar or the element. */
enum { WAYS = 6 };

#define GET(t, ...)                                                                                                    \
    (way == 0   ? lbmsdm_msg_get_##t##_idx(msg, 0, __VA_ARGS__)                                                        \
     : way == 1 ? lbmsdm_msg_get_##t##_name(msg, "s", __VA_ARGS__)                                                     \
     : way == 2 ? lbmsdm_iter_get_##t(on_scalar, __VA_ARGS__)                                                          \
     : way == 3 ? lbmsdm_msg_get_##t##_elem_idx(msg, 1, 1, __VA_ARGS__)                                                \
     : way == 4 ? lbmsdm_msg_get_##t##_elem_name(msg, "a", 1, __VA_ARGS__)                                             \
                : lbmsdm_iter_get_##t##_elem(on_array, 1, __VA_ARGS__))

static int get(lbmsdm_msg_t *msg, uint16_t type, int way, union value *v)
{
    lbmsdm_iter_t *on_scalar, *on_array;
    size_t size = sizeof v->bytes / sizeof(wchar_t);
    int done;
    if (lbmsdm_iter_create(&on_scalar, msg) != 0 || lbmsdm_iter_first(on_scalar) != 0 ||
        lbmsdm_iter_create(&on_array, msg) != 0 || lbmsdm_iter_first(on_array) != 0 ||
        lbmsdm_iter_next(on_array) != 0) {
        abort();
    }
    switch (type) {
    case LBMSDM_TYPE_BOOLEAN:
        done = GET(boolean, &v->u8);
        break;
    case LBMSDM_TYPE_INT8:
        done = GET(int8, &v->i8);
        break;
    case LBMSDM_TYPE_UINT8:
        done = GET(uint8, &v->u8);
        break;
    case LBMSDM_TYPE_INT16:
        done = GET(int16, &v->i16);
        break;
    case LBMSDM_TYPE_UINT16:
        done = GET(uint16, &v->u16);
        break;
    case LBMSDM_TYPE_INT32:
        done = GET(int32, &v->i32);
        break;
    case LBMSDM_TYPE_UINT32:
        done = GET(uint32, &v->u32);
        break;
    case LBMSDM_TYPE_INT64:
        done = GET(int64, &v->i64);
        break;
    case LBMSDM_TYPE_UINT64:
        done = GET(uint64, &v->u64);
        break;
    case LBMSDM_TYPE_FLOAT:
        done = GET(float, &v->f);
        break;
    case LBMSDM_TYPE_DOUBLE:
        done = GET(double, &v->d);
        break;
    case LBMSDM_TYPE_DECIMAL:
        done = GET(decimal, &v->dec);
        break;
    case LBMSDM_TYPE_TIMESTAMP:
        done = GET(timestamp, &v->at);
        break;
    case LBMSDM_TYPE_MESSAGE:
        done = GET(message, &v->message);
        break;
    case LBMSDM_TYPE_STRING:
        done = GET(string, v->bytes, &size);
        break;
    case LBMSDM_TYPE_UNICODE:
        done = GET(unicode, (wchar_t *)(void *)v->bytes, &size);
        break;
    default:
        done = GET(blob, v->bytes, &size);
        break;
    }
    lbmsdm_iter_destroy(on_scalar);
    lbmsdm_iter_destroy(on_array);
    return done;
}

static bool same_real(double a, double b)
{
    return a == b ? signbit(a) == signbit(b) : isnan(a) && isnan(b);
}

static bool is_expected(const struct row *row, uint16_t type, const union value *v)
{
    switch (type) {
    case LBMSDM_TYPE_BOOLEAN:
        return v->u8 == row->b;
    case LBMSDM_TYPE_INT8:
        return v->i8 == row->i8;
    case LBMSDM_TYPE_UINT8:
        return v->u8 == row->u8;
    case LBMSDM_TYPE_INT16:
        return v->i16 == row->i16;
    case LBMSDM_TYPE_UINT16:
        return v->u16 == row->u16;
    case LBMSDM_TYPE_INT32:
        return v->i32 == row->i32;
    case LBMSDM_TYPE_UINT32:
        return v->u32 == row->u32;
    case LBMSDM_TYPE_INT64:
        return v->i64 == row->i64;
    case LBMSDM_TYPE_UINT64:
        return v->u64 == row->u64;
    case LBMSDM_TYPE_FLOAT:
        return same_real(v->f, row->f);
    case LBMSDM_TYPE_DOUBLE:
        return same_real(v->d, row->d);
    default:
        return v->dec.mant == row->dec.mant && v->dec.exp == row->dec.exp;
    }
}

TEST(numbers_are_read_as_every_other_type_of_numbers)
{
    bool seen[LBMSDM_TYPE_BLOB + 1] = {false};
    for (size_t i = 0; i < ROWS; i++) {
        lbmsdm_msg_t *msg;
        CHECK_EQ(lbmsdm_msg_create(&msg), 0);
        CHECK(put(msg, rows[i].type, &rows[i].value));
        seen[rows[i].type] = true;
        for (uint16_t type = LBMSDM_TYPE_BOOLEAN; type <= LBMSDM_TYPE_DECIMAL; type++) {
            for (int way = 0; way < WAYS; way++) {
                union value got = {.u64 = 0x5555555555555555};
                if (get(msg, type, way, &got) != LBMSDM_SUCCESS || !is_expected(&rows[i], type, &got)) {
                    TEST_FAIL("row %zu (type %u) as type %u: 0x%llx %.17g", i, rows[i].type, type,
                              (unsigned long long)got.u64, got.d);
                }
            }
        }
        lbmsdm_msg_destroy(msg);
    }
    for (int type = LBMSDM_TYPE_BOOLEAN; type <= LBMSDM_TYPE_DECIMAL; type++) {
        CHECK(seen[type]);
    }
}

TEST(what_is_no_number_is_read_as_nothing_else)
{
    for (uint16_t from = LBMSDM_TYPE_BOOLEAN; from <= LBMSDM_TYPE_BLOB; from++) {
        lbmsdm_msg_t *msg;
        const union value value = {.at = {1, 2}};
        CHECK_EQ(lbmsdm_msg_create(&msg), 0);
        CHECK(put(msg, from, &value));
        for (uint16_t to = LBMSDM_TYPE_BOOLEAN; to <= LBMSDM_TYPE_BLOB; to++) {
            bool can = from == to || (from <= LBMSDM_TYPE_DECIMAL && to <= LBMSDM_TYPE_DECIMAL);
            for (int way = 0; way < WAYS; way++) {
                union value got;
                int done = get(msg, to, way, &got);
                CHECK_EQ(done, can ? LBMSDM_SUCCESS : LBMSDM_FAILURE);
                if (!can) {
                    CHECK_EQ(lbmsdm_errnum(), LBMSDM_ERR_CANNOT_CONVERT);
                } else if (to == LBMSDM_TYPE_MESSAGE) {
                    lbmsdm_msg_destroy(got.message);
                }
            }
        }
        lbmsdm_msg_destroy(msg);
    }
}
