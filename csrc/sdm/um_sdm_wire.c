/* The serialized form of SDM messages, docs/wire.md: written from a message, read into one. The reader checks every
 * length before it is used, allocates nothing for counts that the bytes cannot hold, and reads the whole tree, so that
 * nothing malformed is met later. */
#include <string.h>

#include "base/um_bytes.h"
#include "base/um_mem.h"
#include "sdm/um_sdm.h"

#define MAGIC 0x554d5344u /* "UMSD" */
#define VERSION 1
#define FIELD_NULL 0x01

/* ---- writing ---- */

static uint8_t *put_unicode(const struct um_sdm_bytes *text, uint8_t *out)
{
    const wchar_t *wide = text->ptr;
    for (size_t i = 0; i < text->len; i++) {
        uint32_t c = (uint32_t)wide[i];
        if (c < 0x80) {
            *out++ = (uint8_t)c;
            continue;
        }
        if (c < 0x800) {
            *out++ = (uint8_t)(0xc0 | c >> 6);
        } else if (c < 0x10000) {
            *out++ = (uint8_t)(0xe0 | c >> 12);
            *out++ = (uint8_t)(0x80 | (c >> 6 & 0x3f));
        } else {
            *out++ = (uint8_t)(0xf0 | c >> 18);
            *out++ = (uint8_t)(0x80 | (c >> 12 & 0x3f));
            *out++ = (uint8_t)(0x80 | (c >> 6 & 0x3f));
        }
        *out++ = (uint8_t)(0x80 | (c & 0x3f));
    }
    return out;
}

static uint8_t *put_variable(uint16_t type, const void *cell, uint8_t *out)
{
    const struct um_sdm_bytes *bytes = cell;
    if (type == LBMSDM_TYPE_MESSAGE) {
        return um_sdm_msg_encode(*(lbmsdm_msg_t *const *)cell, out);
    }
    if (type == LBMSDM_TYPE_UNICODE) {
        return put_unicode(bytes, out);
    }
    if (bytes->len != 0) {
        memcpy(out, bytes->ptr, bytes->len);
    }
    return out + bytes->len;
}

static uint8_t *put_fixed(uint16_t type, const void *cell, uint8_t *out)
{
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    size_t len = um_sdm_fixed_len(type);
    if (type == LBMSDM_TYPE_DECIMAL) {
        const lbmsdm_decimal_t *decimal = cell;
        um_put64(out, (uint64_t)decimal->mant);
        out[8] = (uint8_t)decimal->exp;
    } else if (type == LBMSDM_TYPE_TIMESTAMP) {
        const struct timeval *at = cell;
        um_put64(out, (uint64_t)at->tv_sec);
        um_put32(out + 8, (uint32_t)at->tv_usec);
    } else if (len == 1) {
        *out = *(const uint8_t *)cell;
    } else if (len == 2) {
        memcpy(&u16, cell, sizeof u16);
        um_put16(out, u16);
    } else if (len == 4) {
        memcpy(&u32, cell, sizeof u32);
        um_put32(out, u32);
    } else {
        memcpy(&u64, cell, sizeof u64);
        um_put64(out, u64);
    }
    return out + len;
}

static uint8_t *put_array(const struct um_sdm_field *field, uint8_t *out)
{
    uint16_t type = um_sdm_scalar(field->type);
    size_t size = um_sdm_cell_size(type);
    um_put32(out, field->count);
    out += 4;
    for (uint32_t i = 0; i < field->count; i++) {
        const uint8_t *cell = field->cells + i * size;
        if (um_sdm_fixed_len(type) != 0) {
            out = put_fixed(type, cell, out);
        } else {
            uint8_t *end = put_variable(type, cell, out + 4);
            um_put32(out, (uint32_t)(end - out - 4));
            out = end;
        }
    }
    return out;
}

uint8_t *um_sdm_msg_encode(const lbmsdm_msg_t *msg, uint8_t *out)
{
    um_put32(out, MAGIC);
    out[4] = VERSION;
    out[5] = 0;
    um_put16(out + 6, (uint16_t)msg->count);
    um_put32(out + 8, (uint32_t)msg->length);
    out += UM_SDM_HEADER_LEN;
    for (uint32_t i = 0; i < msg->count; i++) {
        const struct um_sdm_field *field = &msg->fields[i];
        um_put16(out, field->type);
        out[2] = field->null ? FIELD_NULL : 0;
        out[3] = field->name_len;
        um_put32(out + 4, (uint32_t)field->value_len);
        memcpy(out + UM_SDM_FIELD_HEADER_LEN, field->name, field->name_len);
        out += UM_SDM_FIELD_HEADER_LEN + field->name_len;
        if (field->null) {
            continue;
        }
        out = um_sdm_is_array(field)               ? put_array(field, out)
              : um_sdm_fixed_len(field->type) != 0 ? put_fixed(field->type, &field->one, out)
                                                   : put_variable(field->type, &field->one, out);
    }
    return out;
}

const uint8_t *um_sdm_msg_data(lbmsdm_msg_t *msg)
{
    if (!msg->data_stale) {
        return msg->data;
    }
    if (msg->data_size < msg->length) {
        uint8_t *data = um_malloc(msg->length);
        if (data == NULL) {
            um_sdm_no_memory(msg->length);
            return NULL;
        }
        um_free(msg->data);
        msg->data = data;
        msg->data_size = msg->length;
    }
    um_sdm_msg_encode(msg, msg->data);
    msg->data_stale = false;
    return msg->data;
}

/* ---- reading ---- */

struct reader {
    const uint8_t *at, *end;
    const uint8_t *begin; /* for the texts of errors */
    unsigned depth;
};

static int malformed(const struct reader *in, const char *what)
{
    return um_sdm_error(LBMSDM_ERR_MSG_INVALID, "malformed message: %s, at byte %zu of %zu (level %u)", what,
                        (size_t)(in->at - in->begin), (size_t)(in->end - in->begin), in->depth);
}

static size_t left(const struct reader *in)
{
    return (size_t)(in->end - in->at);
}

static int read_message(lbmsdm_msg_t *msg, struct reader *in, bool exactly);

static int get_fixed(uint16_t type, void *cell, const uint8_t *data, const struct reader *in)
{
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    if (type == LBMSDM_TYPE_DECIMAL) {
        *(lbmsdm_decimal_t *)cell = (lbmsdm_decimal_t){(int64_t)um_get64(data), (int8_t)data[8]};
        return LBMSDM_SUCCESS;
    }
    if (type == LBMSDM_TYPE_TIMESTAMP) {
        struct timeval at = {(time_t)(int64_t)um_get64(data), (suseconds_t)um_get32(data + 8)};
        *(struct timeval *)cell = at;
        return at.tv_usec < 1000000 ? LBMSDM_SUCCESS : malformed(in, "the microseconds of a timestamp");
    }
    switch (um_sdm_fixed_len(type)) {
    case 1:
        *(uint8_t *)cell = type == LBMSDM_TYPE_BOOLEAN ? *data != 0 : *data;
        break;
    case 2:
        u16 = um_get16(data);
        memcpy(cell, &u16, sizeof u16);
        break;
    case 4:
        u32 = um_get32(data);
        memcpy(cell, &u32, sizeof u32);
        break;
    default:
        u64 = um_get64(data);
        memcpy(cell, &u64, sizeof u64);
        break;
    }
    return LBMSDM_SUCCESS;
}

/* One character of UTF-8 at *at; -1 for what is none: overlong, cut, surrogates, beyond U+10FFFF. */
static int32_t next_character(const uint8_t **at, const uint8_t *end)
{
    const uint8_t *p = *at;
    static const uint32_t lowest[] = {0, 0x80, 0x800, 0x10000};
    unsigned more = *p < 0x80 ? 0 : *p >= 0xc2 && *p < 0xe0 ? 1 : (*p & 0xf0) == 0xe0 ? 2 : (*p & 0xf8) == 0xf0 ? 3 : 4;
    if (more == 4 || (size_t)(end - p) <= more) {
        return -1;
    }
    uint32_t c = more == 0 ? *p : *p & (0x3fu >> more);
    for (unsigned i = 1; i <= more; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return -1;
        }
        c = c << 6 | (p[i] & 0x3fu);
    }
    *at = p + more + 1;
    return c < lowest[more] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff) ? -1 : (int32_t)c;
}

static int get_unicode(struct um_sdm_bytes *text, const uint8_t *data, size_t len, const struct reader *in)
{
    size_t characters = 0;
    *text = (struct um_sdm_bytes){NULL, 0};
    for (const uint8_t *at = data; at < data + len; characters++) {
        if (next_character(&at, data + len) < 0) {
            return um_sdm_error(LBMSDM_ERR_UNICODE_CONVERSION,
                                "malformed message: character %zu is no UTF-8 (level %u)", characters, in->depth);
        }
    }
    if (characters == 0) {
        return LBMSDM_SUCCESS;
    }
    wchar_t *wide = um_malloc(characters * sizeof *wide);
    if (wide == NULL) {
        return um_sdm_no_memory(characters * sizeof *wide);
    }
    *text = (struct um_sdm_bytes){wide, characters};
    for (const uint8_t *at = data; at < data + len;) {
        *wide++ = (wchar_t)next_character(&at, data + len);
    }
    return LBMSDM_SUCCESS;
}

static int get_bytes(uint16_t type, struct um_sdm_bytes *bytes, const uint8_t *data, size_t len,
                     const struct reader *in)
{
    *bytes = (struct um_sdm_bytes){NULL, len};
    if (len == 0) {
        return LBMSDM_SUCCESS;
    }
    if (type == LBMSDM_TYPE_STRING && memchr(data, 0, len) != NULL) {
        return malformed(in, "a NUL inside a string");
    }
    uint8_t *copy = um_malloc(len + 1);
    if (copy == NULL) {
        return um_sdm_no_memory(len + 1);
    }
    memcpy(copy, data, len);
    copy[len] = 0;
    bytes->ptr = copy;
    return LBMSDM_SUCCESS;
}

static int get_nested(lbmsdm_msg_t **cell, const lbmsdm_msg_t *outer, const uint8_t *data, size_t len,
                      const struct reader *in)
{
    struct reader inner = {data, data + len, data, in->depth + 1};
    if (inner.depth > UM_SDM_DEPTH_MAX) {
        return malformed(in, "messages inside each other more than 32 deep");
    }
    *cell = um_sdm_msg_create(&outer->attr);
    if (*cell == NULL) {
        return LBMSDM_FAILURE;
    }
    if (read_message(*cell, &inner, true) != LBMSDM_SUCCESS) {
        um_sdm_msg_destroy(*cell);
        return LBMSDM_FAILURE;
    }
    return LBMSDM_SUCCESS;
}

/* A value of `len` bytes; nothing is left behind on failure. */
static int get_cell(const lbmsdm_msg_t *msg, uint16_t type, void *cell, const uint8_t *data, size_t len,
                    const struct reader *in)
{
    if (type == LBMSDM_TYPE_MESSAGE) {
        return get_nested(cell, msg, data, len, in);
    }
    if (type == LBMSDM_TYPE_UNICODE) {
        return get_unicode(cell, data, len, in);
    }
    if (type > LBMSDM_TYPE_MESSAGE) {
        return get_bytes(type, cell, data, len, in);
    }
    return len != um_sdm_fixed_len(type) ? malformed(in, "the length of a value") : get_fixed(type, cell, data, in);
}

/* The next element: its bytes, with the length before it taken off. */
static int element_bytes(size_t fixed, const uint8_t **at, const uint8_t *end, size_t *len, const struct reader *in)
{
    *len = fixed;
    if (fixed == 0) {
        if (end - *at < 4) {
            return malformed(in, "the elements of an array");
        }
        *len = um_get32(*at);
        *at += 4;
    }
    return *len > (size_t)(end - *at) ? malformed(in, "the length of an element") : LBMSDM_SUCCESS;
}

static int get_array(const lbmsdm_msg_t *msg, struct um_sdm_field *field, const uint8_t *at, size_t len,
                     const struct reader *in)
{
    const uint8_t *end = at + len;
    uint16_t type = um_sdm_scalar(field->type);
    size_t size = um_sdm_cell_size(type), fixed = um_sdm_fixed_len(type);
    if (len < 4) {
        return malformed(in, "the length of an array");
    }
    uint32_t count = um_get32(at);
    at += 4;
    if (count > (len - 4) / (fixed != 0 ? fixed : 4)) {
        return malformed(in, "the number of elements");
    }
    if (count != 0) {
        field->cells = um_malloc(count * size);
        if (field->cells == NULL) {
            return um_sdm_no_memory(count * size);
        }
        field->capacity = count;
    }
    while (field->count < count) {
        size_t bytes;
        if (element_bytes(fixed, &at, end, &bytes, in) != LBMSDM_SUCCESS ||
            get_cell(msg, type, field->cells + field->count * size, at, bytes, in) != LBMSDM_SUCCESS) {
            um_sdm_field_drop(field);
            return LBMSDM_FAILURE;
        }
        field->count++;
        at += bytes;
    }
    if (at != end) {
        um_sdm_field_drop(field);
        return malformed(in, "bytes behind the elements of an array");
    }
    return LBMSDM_SUCCESS;
}

static int get_value(const lbmsdm_msg_t *msg, struct um_sdm_field *field, const uint8_t *data, const struct reader *in)
{
    if (field->null) {
        return field->value_len != 0 ? malformed(in, "the value of a null field") : LBMSDM_SUCCESS;
    }
    return um_sdm_is_array(field) ? get_array(msg, field, data, field->value_len, in)
                                  : get_cell(msg, field->type, &field->one, data, field->value_len, in);
}

static int check_name(lbmsdm_msg_t *msg, struct um_sdm_field *field, const char *name, const struct reader *in)
{
    if (field->name_len == 0 || memchr(name, 0, field->name_len) != NULL) {
        return malformed(in, "the name of a field");
    }
    if (um_sdm_name_check(&msg->attr, name, field->name_len) != LBMSDM_SUCCESS) {
        return LBMSDM_FAILURE;
    }
    field->hash = um_sdm_name_hash(name, field->name_len);
    if (msg->attr.name_tree != 0 && um_sdm_names_find(msg, name, field->name_len, field->hash) != NULL) {
        return um_sdm_error(LBMSDM_ERR_DUPLICATE_FIELD, "%.*s: the message has two fields of this name",
                            (int)field->name_len, name);
    }
    return LBMSDM_SUCCESS;
}

static int read_field(lbmsdm_msg_t *msg, struct reader *in)
{
    if (left(in) < UM_SDM_FIELD_HEADER_LEN) {
        return malformed(in, "cut in a field");
    }
    const uint8_t *p = in->at;
    struct um_sdm_field field = {
        .type = um_get16(p), .null = p[2] == FIELD_NULL, .name_len = p[3], .value_len = um_get32(p + 4)};
    if (!um_sdm_type_known(field.type)) {
        return malformed(in, "the type of a field");
    }
    if ((p[2] & ~FIELD_NULL) != 0) {
        return malformed(in, "the flags of a field");
    }
    if (left(in) - UM_SDM_FIELD_HEADER_LEN < (uint64_t)field.name_len + field.value_len) {
        return malformed(in, "the lengths of a field");
    }
    const char *name = (const char *)p + UM_SDM_FIELD_HEADER_LEN;
    if (check_name(msg, &field, name, in) != LBMSDM_SUCCESS) {
        return LBMSDM_FAILURE;
    }
    field.name = um_strndup(name, field.name_len);
    if (field.name == NULL) {
        return um_sdm_no_memory(field.name_len + 1u);
    }
    if (get_value(msg, &field, (const uint8_t *)name + field.name_len, in) != LBMSDM_SUCCESS) {
        um_free(field.name);
        return LBMSDM_FAILURE;
    }
    msg->fields[msg->count++] = field;
    um_sdm_names_added(msg);
    in->at += UM_SDM_FIELD_HEADER_LEN + field.name_len + field.value_len;
    return LBMSDM_SUCCESS;
}

static int read_message(lbmsdm_msg_t *msg, struct reader *in, bool exactly)
{
    const uint8_t *p = in->at;
    if (left(in) < UM_SDM_HEADER_LEN) {
        return malformed(in, "shorter than a header");
    }
    if (um_get32(p) != MAGIC || p[4] != VERSION || p[5] != 0) {
        return malformed(in, "no SDM message of a version that is known");
    }
    uint32_t fields = um_get16(p + 6), length = um_get32(p + 8);
    if (length > UM_SDM_LENGTH_MAX || length > left(in) || (exactly && length != left(in)) ||
        length < UM_SDM_HEADER_LEN + (uint64_t)fields * (UM_SDM_FIELD_HEADER_LEN + 1)) {
        return malformed(in, "the length of the message");
    }
    if (fields != 0 && um_sdm_msg_reserve(msg, fields) != LBMSDM_SUCCESS) {
        return LBMSDM_FAILURE;
    }
    in->end = p + length;
    in->at += UM_SDM_HEADER_LEN;
    for (uint32_t i = 0; i < fields; i++) {
        if (read_field(msg, in) != LBMSDM_SUCCESS) {
            return LBMSDM_FAILURE;
        }
    }
    if (in->at != in->end) {
        return malformed(in, "bytes behind the last field");
    }
    msg->length = length;
    return LBMSDM_SUCCESS;
}

int um_sdm_msg_decode(lbmsdm_msg_t *msg, const uint8_t *data, size_t len)
{
    struct reader in = {data, data + len, data, 1};
    int done = read_message(msg, &in, false);
    if (done != LBMSDM_SUCCESS) {
        um_sdm_msg_clear(msg);
    }
    return done;
}
