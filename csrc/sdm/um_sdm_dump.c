/* SDM messages as one line of text: {name=value, ...}. What does not fit is cut. The form is in docs/decisions.md. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sdm/um_sdm.h"

struct line {
    char *at, *end; /* end: where the last byte, the NUL, may be */
};

static void put(struct line *out, const char *text, size_t len)
{
    size_t room = (size_t)(out->end - out->at);
    len = len > room ? room : len;
    memcpy(out->at, text, len);
    out->at += len;
}

static void __attribute__((format(printf, 2, 3))) print(struct line *out, const char *format, ...)
{
    char text[64];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    put(out, text, (size_t)len);
}

/* The digits of a float or double with a point, whatever the locale has there. */
static void put_real(struct line *out, int digits, double real)
{
    char text[64];
    snprintf(text, sizeof text, "%.*g", digits, real);
    for (const char *p = text; *p != '\0';) {
        size_t plain = strspn(p, "0123456789+-abcdefghijklmnopqrstuvwxyz");
        put(out, p, plain);
        p += plain;
        size_t point = strcspn(p, "0123456789");
        if (point != 0) {
            put(out, ".", 1);
        }
        p += point;
    }
}

/* Text with the escapes of C; `quoted` also those of quotes and backslashes. */
static void put_text(struct line *out, const char *text, size_t len, bool quoted)
{
    static const char letters[] = "abtnvfr"; /* 7 to 13 */
    for (size_t i = 0; i < len && out->at < out->end; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 7 && c <= 13) {
            print(out, "\\%c", letters[c - 7]);
        } else if (c < ' ' || c == 0x7f) {
            print(out, "\\%03o", c);
        } else if (quoted && (c == '"' || c == '\\')) {
            print(out, "\\%c", c);
        } else {
            put(out, text + i, 1);
        }
    }
}

static void put_message(struct line *out, const lbmsdm_msg_t *msg);

static void put_cell(struct line *out, uint16_t type, const void *cell)
{
    const struct um_sdm_bytes *bytes = cell;
    const lbmsdm_decimal_t *decimal = cell;
    const struct timeval *at = cell;
    int64_t value;
    switch (type) {
    case LBMSDM_TYPE_BOOLEAN:
        print(out, "%s", *(const uint8_t *)cell != 0 ? "true" : "false");
        break;
    case LBMSDM_TYPE_UINT64:
        print(out, "%llu", (unsigned long long)*(const uint64_t *)cell);
        break;
    case LBMSDM_TYPE_FLOAT:
        put_real(out, 9, *(const float *)cell);
        break;
    case LBMSDM_TYPE_DOUBLE:
        put_real(out, 17, *(const double *)cell);
        break;
    case LBMSDM_TYPE_DECIMAL:
        print(out, "%llde%d", (long long)decimal->mant, decimal->exp);
        break;
    case LBMSDM_TYPE_TIMESTAMP:
        print(out, "%lld.%06ld", (long long)at->tv_sec, (long)at->tv_usec);
        break;
    case LBMSDM_TYPE_MESSAGE:
        put_message(out, *(lbmsdm_msg_t *const *)cell);
        break;
    case LBMSDM_TYPE_STRING:
        put(out, "\"", 1);
        put_text(out, bytes->ptr, bytes->len, true);
        put(out, "\"", 1);
        break;
    case LBMSDM_TYPE_UNICODE:
        print(out, "<unicode %zu>", bytes->len);
        break;
    case LBMSDM_TYPE_BLOB:
        print(out, "<blob %zu>", bytes->len);
        break;
    default:
        um_sdm_convert(type, cell, LBMSDM_TYPE_INT64, &value);
        print(out, "%lld", (long long)value);
        break;
    }
}

static void put_array(struct line *out, const struct um_sdm_field *field)
{
    uint16_t type = um_sdm_scalar(field->type);
    put(out, "[", 1);
    for (uint32_t i = 0; i < field->count && out->at < out->end; i++) {
        put(out, ", ", i == 0 ? 0 : 2);
        put_cell(out, type, field->cells + i * um_sdm_cell_size(type));
    }
    put(out, "]", 1);
}

static void put_message(struct line *out, const lbmsdm_msg_t *msg)
{
    put(out, "{", 1);
    for (uint32_t i = 0; i < msg->count && out->at < out->end; i++) {
        const struct um_sdm_field *field = &msg->fields[i];
        put(out, ", ", i == 0 ? 0 : 2);
        put_text(out, field->name, field->name_len, false);
        put(out, "=", 1);
        if (field->null) {
            put(out, "null", 4);
        } else if (um_sdm_is_array(field)) {
            put_array(out, field);
        } else {
            put_cell(out, field->type, &field->one);
        }
    }
    put(out, "}", 1);
}

void um_sdm_msg_dump(const lbmsdm_msg_t *msg, char *buffer, size_t size)
{
    struct line out = {buffer, buffer + size - 1};
    put_message(&out, msg);
    *out.at = '\0';
}
