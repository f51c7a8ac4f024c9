/* Values of fields, one at a time, by scalar type: made from what the caller gives, copied, freed, and how long they
 * are in memory and on the wire. The table below is the only place that knows the sizes. */
#include <string.h>

#include "base/um_mem.h"
#include "sdm/um_sdm.h"

#define TYPE_COUNT 18

static const struct {
    const char *name;
    uint8_t cell_size;
    uint8_t fixed_len; /* on the wire; 0: variable */
} types[TYPE_COUNT] = {
    [LBMSDM_TYPE_INVALID] = {"invalid", 0, 0},
    [LBMSDM_TYPE_BOOLEAN] = {"boolean", 1, 1},
    [LBMSDM_TYPE_INT8] = {"int8", 1, 1},
    [LBMSDM_TYPE_UINT8] = {"uint8", 1, 1},
    [LBMSDM_TYPE_INT16] = {"int16", 2, 2},
    [LBMSDM_TYPE_UINT16] = {"uint16", 2, 2},
    [LBMSDM_TYPE_INT32] = {"int32", 4, 4},
    [LBMSDM_TYPE_UINT32] = {"uint32", 4, 4},
    [LBMSDM_TYPE_INT64] = {"int64", 8, 8},
    [LBMSDM_TYPE_UINT64] = {"uint64", 8, 8},
    [LBMSDM_TYPE_FLOAT] = {"float", sizeof(float), 4},
    [LBMSDM_TYPE_DOUBLE] = {"double", sizeof(double), 8},
    [LBMSDM_TYPE_DECIMAL] = {"decimal", sizeof(lbmsdm_decimal_t), 9},
    [LBMSDM_TYPE_TIMESTAMP] = {"timestamp", sizeof(struct timeval), 12},
    [LBMSDM_TYPE_MESSAGE] = {"message", sizeof(lbmsdm_msg_t *), 0},
    [LBMSDM_TYPE_STRING] = {"string", sizeof(struct um_sdm_bytes), 0},
    [LBMSDM_TYPE_UNICODE] = {"unicode", sizeof(struct um_sdm_bytes), 0},
    [LBMSDM_TYPE_BLOB] = {"blob", sizeof(struct um_sdm_bytes), 0},
};

bool um_sdm_type_known(uint16_t type)
{
    uint16_t scalar = um_sdm_scalar(type);
    return scalar > LBMSDM_TYPE_INVALID && scalar < TYPE_COUNT;
}

const char *um_sdm_type_name(uint16_t type)
{
    return um_sdm_type_known(type) ? types[um_sdm_scalar(type)].name : types[0].name;
}

size_t um_sdm_cell_size(uint16_t type)
{
    return types[type].cell_size;
}

size_t um_sdm_fixed_len(uint16_t type)
{
    return types[type].fixed_len;
}

static bool is_scalar_value(wchar_t c)
{
    return c >= 0 && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
}

static size_t utf8_len(const struct um_sdm_bytes *text)
{
    const wchar_t *wide = text->ptr;
    size_t len = 0;
    for (size_t i = 0; i < text->len; i++) {
        len += wide[i] < 0x80 ? 1 : wide[i] < 0x800 ? 2 : wide[i] < 0x10000 ? 3 : 4;
    }
    return len;
}

size_t um_sdm_cell_len(uint16_t type, const void *cell)
{
    switch (type) {
    case LBMSDM_TYPE_MESSAGE:
        return (*(lbmsdm_msg_t *const *)cell)->length;
    case LBMSDM_TYPE_UNICODE:
        return utf8_len(cell);
    case LBMSDM_TYPE_STRING:
    case LBMSDM_TYPE_BLOB:
        return ((const struct um_sdm_bytes *)cell)->len;
    default:
        return types[type].fixed_len;
    }
}

/* A copy of `len` units of `size` bytes, and `extra` more bytes that are zero. */
static int copy_bytes(struct um_sdm_bytes *to, const void *from, size_t len, size_t size, size_t extra)
{
    *to = (struct um_sdm_bytes){NULL, len};
    if (len == 0) {
        return LBMSDM_SUCCESS;
    }
    to->ptr = um_malloc(len * size + extra);
    if (to->ptr == NULL) {
        return um_sdm_no_memory(len * size + extra);
    }
    memcpy(to->ptr, from, len * size);
    memset((char *)to->ptr + len * size, 0, extra);
    return LBMSDM_SUCCESS;
}

static int make_bytes(uint16_t type, struct um_sdm_bytes *cell, struct um_sdm_given given)
{
    if (given.value == NULL && (type == LBMSDM_TYPE_STRING || given.len != 0)) {
        return um_sdm_error(LBMSDM_ERR_EINVAL, "Value must not be NULL");
    }
    size_t len = type == LBMSDM_TYPE_STRING ? strlen(given.value) : given.len;
    if (len > UM_SDM_LENGTH_MAX) {
        return um_sdm_error(LBMSDM_ERR_ADDING_FIELD, "a value of %zu units is longer than a message may be (%u bytes)",
                            len, UM_SDM_LENGTH_MAX);
    }
    if (type == LBMSDM_TYPE_UNICODE) {
        for (size_t i = 0; i < len; i++) {
            if (!is_scalar_value(((const wchar_t *)given.value)[i])) {
                return um_sdm_error(LBMSDM_ERR_UNICODE_CONVERSION, "character %zu (0x%lx) is no Unicode scalar value",
                                    i, (unsigned long)((const wchar_t *)given.value)[i]);
            }
        }
    }
    return copy_bytes(cell, given.value, len, type == LBMSDM_TYPE_UNICODE ? sizeof(wchar_t) : 1,
                      type == LBMSDM_TYPE_STRING);
}

static int make_message(lbmsdm_msg_t **cell, const lbmsdm_msg_t *value)
{
    if (um_sdm_depth(value) >= UM_SDM_DEPTH_MAX) {
        return um_sdm_error(LBMSDM_ERR_ADDING_FIELD, "messages may be inside each other at most %d deep",
                            UM_SDM_DEPTH_MAX);
    }
    *cell = um_sdm_msg_clone(value);
    return *cell == NULL ? LBMSDM_FAILURE : LBMSDM_SUCCESS;
}

int um_sdm_cell_make(uint16_t type, void *cell, struct um_sdm_given given)
{
    if (type >= LBMSDM_TYPE_STRING) {
        return make_bytes(type, cell, given);
    }
    if (given.value == NULL) {
        return um_sdm_error(LBMSDM_ERR_EINVAL, "Value must not be NULL");
    }
    if (type == LBMSDM_TYPE_MESSAGE) {
        return make_message(cell, given.value);
    }
    if (type == LBMSDM_TYPE_TIMESTAMP) {
        const struct timeval *at = given.value;
        if (at->tv_usec < 0 || at->tv_usec >= 1000000) {
            return um_sdm_error(LBMSDM_ERR_EINVAL, "tv_usec %ld: must be 0..999999", (long)at->tv_usec);
        }
    }
    memcpy(cell, given.value, types[type].cell_size);
    if (type == LBMSDM_TYPE_BOOLEAN) {
        *(uint8_t *)cell = *(uint8_t *)cell != 0;
    }
    return LBMSDM_SUCCESS;
}

int um_sdm_cell_copy(uint16_t type, void *to, const void *from)
{
    if (type == LBMSDM_TYPE_MESSAGE) {
        lbmsdm_msg_t *copy = um_sdm_msg_clone(*(lbmsdm_msg_t *const *)from);
        *(lbmsdm_msg_t **)to = copy;
        return copy == NULL ? LBMSDM_FAILURE : LBMSDM_SUCCESS;
    }
    if (type >= LBMSDM_TYPE_STRING) {
        const struct um_sdm_bytes *bytes = from;
        return copy_bytes(to, bytes->ptr, bytes->len, type == LBMSDM_TYPE_UNICODE ? sizeof(wchar_t) : 1,
                          type == LBMSDM_TYPE_STRING);
    }
    memcpy(to, from, types[type].cell_size);
    return LBMSDM_SUCCESS;
}

void um_sdm_cell_free(uint16_t type, void *cell)
{
    if (type == LBMSDM_TYPE_MESSAGE) {
        um_sdm_msg_destroy(*(lbmsdm_msg_t **)cell);
    } else if (type >= LBMSDM_TYPE_STRING) {
        um_free(((struct um_sdm_bytes *)cell)->ptr);
    }
}

static unsigned depth_of_field(const struct um_sdm_field *field)
{
    unsigned deepest = 0;
    if (um_sdm_scalar(field->type) != LBMSDM_TYPE_MESSAGE || field->null) {
        return 0;
    }
    if (!um_sdm_is_array(field)) {
        return um_sdm_depth(field->one.message);
    }
    for (uint32_t i = 0; i < field->count; i++) {
        unsigned depth = um_sdm_depth(((lbmsdm_msg_t *const *)(const void *)field->cells)[i]);
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest;
}

/* 1 for a message without others in it. */
unsigned um_sdm_depth(const lbmsdm_msg_t *msg)
{
    unsigned deepest = 0;
    for (uint32_t i = 0; i < msg->count; i++) {
        unsigned depth = depth_of_field(&msg->fields[i]);
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest + 1;
}
