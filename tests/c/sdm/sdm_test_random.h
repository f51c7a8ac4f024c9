/* Random SDM messages from a seed, through the public calls: every type, scalar and array, null, nested. */
#ifndef UM_TESTS_SDM_RANDOM_H
#define UM_TESTS_SDM_RANDOM_H

#include <stdio.h>
#include <string.h>

#include <lbm/lbmsdm.h>

#include "base/um_random.h"

/* Texts and bytes of up to 40 units; characters from all lengths of UTF-8. */
struct sdm_random_value {
    uint64_t bits;
    double real;
    lbmsdm_decimal_t decimal;
    struct timeval at;
    char text[41], bytes[40];
    wchar_t wide[40];
    size_t len;
};

static inline wchar_t sdm_random_character(struct um_rng *rng)
{
    static const uint32_t ranges[][2] = {
        {0, 0x7f}, {0x80, 0x7ff}, {0x800, 0xd7ff}, {0xe000, 0xffff}, {0x10000, 0x10ffff}};
    const uint32_t *range = ranges[um_rng_range(rng, 0, 4)];
    return (wchar_t)um_rng_range(rng, range[0], range[1]);
}

static inline void sdm_random_value(struct um_rng *rng, struct sdm_random_value *value)
{
    memset(value, 0, sizeof *value);
    value->bits = um_rng_u64(rng) >> um_rng_range(rng, 0, 63);
    memcpy(&value->real, &(uint64_t){um_rng_u64(rng)}, sizeof value->real);
    value->decimal.mant = (int64_t)um_rng_u64(rng);
    value->decimal.exp = (int8_t)um_rng_u32(rng);
    value->at.tv_sec = (time_t)um_rng_u64(rng);
    value->at.tv_usec = (suseconds_t)um_rng_range(rng, 0, 999999);
    value->len = um_rng_range(rng, 0, 40);
    for (size_t i = 0; i < value->len; i++) {
        value->text[i] = (char)um_rng_range(rng, 1, 255);
        value->bytes[i] = (char)um_rng_u32(rng);
        value->wide[i] = sdm_random_character(rng);
    }
}

static inline lbmsdm_msg_t *sdm_random_message(struct um_rng *rng, unsigned levels);

/* A scalar field (`name`), or an element of the last field (`name` NULL). */
static inline int sdm_random_add(struct um_rng *rng, lbmsdm_msg_t *msg, const char *name, uint16_t type,
                                 unsigned levels)
{
    struct sdm_random_value v;
    size_t last = (size_t)lbmsdm_msg_get_fldcnt(msg) - 1;
    int done;
    sdm_random_value(rng, &v);
#define ADD(t, ...)                                                                                                    \
    (name != NULL ? lbmsdm_msg_add_##t(msg, name, __VA_ARGS__) : lbmsdm_msg_add_##t##_elem_idx(msg, last, __VA_ARGS__))
    switch (type) {
    case LBMSDM_TYPE_BOOLEAN:
        return ADD(boolean, (uint8_t)v.bits);
    case LBMSDM_TYPE_INT8:
        return ADD(int8, (int8_t)v.bits);
    case LBMSDM_TYPE_UINT8:
        return ADD(uint8, (uint8_t)v.bits);
    case LBMSDM_TYPE_INT16:
        return ADD(int16, (int16_t)v.bits);
    case LBMSDM_TYPE_UINT16:
        return ADD(uint16, (uint16_t)v.bits);
    case LBMSDM_TYPE_INT32:
        return ADD(int32, (int32_t)v.bits);
    case LBMSDM_TYPE_UINT32:
        return ADD(uint32, (uint32_t)v.bits);
    case LBMSDM_TYPE_INT64:
        return ADD(int64, (int64_t)v.bits);
    case LBMSDM_TYPE_UINT64:
        return ADD(uint64, v.bits);
    case LBMSDM_TYPE_FLOAT:
        return ADD(float, (float)v.real);
    case LBMSDM_TYPE_DOUBLE:
        return ADD(double, v.real);
    case LBMSDM_TYPE_DECIMAL:
        return ADD(decimal, &v.decimal);
    case LBMSDM_TYPE_TIMESTAMP:
        return ADD(timestamp, &v.at);
    case LBMSDM_TYPE_STRING:
        return ADD(string, v.text);
    case LBMSDM_TYPE_UNICODE:
        return ADD(unicode, v.wide, v.len);
    case LBMSDM_TYPE_BLOB:
        return ADD(blob, v.bytes, v.len);
    default: {
        lbmsdm_msg_t *inner = sdm_random_message(rng, levels == 0 ? 0 : levels - 1);
        if (inner == NULL) {
            return -1;
        }
        done = ADD(message, inner);
        lbmsdm_msg_destroy(inner);
        return done;
    }
    }
#undef ADD
}

/* An empty array field of a type, by way of a null field: that is how one changes a type. */
static inline int sdm_random_array(struct um_rng *rng, lbmsdm_msg_t *msg, const char *name, uint16_t type)
{
    static int (*const adders[])(lbmsdm_msg_t *, const char *) = {
        NULL,
        lbmsdm_msg_add_boolean_array,
        lbmsdm_msg_add_int8_array,
        lbmsdm_msg_add_uint8_array,
        lbmsdm_msg_add_int16_array,
        lbmsdm_msg_add_uint16_array,
        lbmsdm_msg_add_int32_array,
        lbmsdm_msg_add_uint32_array,
        lbmsdm_msg_add_int64_array,
        lbmsdm_msg_add_uint64_array,
        lbmsdm_msg_add_float_array,
        lbmsdm_msg_add_double_array,
        lbmsdm_msg_add_decimal_array,
        lbmsdm_msg_add_timestamp_array,
        lbmsdm_msg_add_message_array,
        lbmsdm_msg_add_string_array,
        lbmsdm_msg_add_unicode_array,
        lbmsdm_msg_add_blob_array,
    };
    return adders[type](msg, name);
}

static inline int sdm_random_field(struct um_rng *rng, lbmsdm_msg_t *msg, unsigned number, unsigned levels)
{
    char name[260];
    int len = snprintf(name, sizeof name, "field%u", number);
    if (um_rng_range(rng, 0, 15) == 0) { /* as long as a name may be */
        memset(name + len, 'x', (size_t)(LBMSDM_MAX_FIELD_NAME_LENGTH - len));
        name[LBMSDM_MAX_FIELD_NAME_LENGTH] = '\0';
    }
    uint16_t type = (uint16_t)um_rng_range(rng, LBMSDM_TYPE_BOOLEAN, LBMSDM_TYPE_BLOB);
    if (type == LBMSDM_TYPE_MESSAGE && levels == 0) {
        type = LBMSDM_TYPE_INT32;
    }
    if (um_rng_range(rng, 0, 1) == 0) {
        if (sdm_random_add(rng, msg, name, type, levels) != 0) {
            return -1;
        }
    } else {
        if (sdm_random_array(rng, msg, name, type) != 0) {
            return -1;
        }
        for (uint64_t i = um_rng_range(rng, 0, 12); i > 0; i--) {
            if (sdm_random_add(rng, msg, NULL, type, levels > 1 ? 1 : 0) != 0) {
                return -1;
            }
        }
    }
    return um_rng_range(rng, 0, 9) == 0 ? lbmsdm_msg_set_null_idx(msg, (size_t)lbmsdm_msg_get_fldcnt(msg) - 1) : 0;
}

/* NULL when a call failed. */
static inline lbmsdm_msg_t *sdm_random_message(struct um_rng *rng, unsigned levels)
{
    lbmsdm_msg_t *msg;
    if (lbmsdm_msg_create(&msg) != 0) {
        return NULL;
    }
    unsigned fields = (unsigned)um_rng_range(rng, 0, um_rng_range(rng, 0, 19) == 0 ? 100 : 14);
    for (unsigned i = 0; i < fields; i++) {
        if (sdm_random_field(rng, msg, i, levels) != 0) {
            lbmsdm_msg_destroy(msg);
            return NULL;
        }
    }
    return msg;
}

#endif
