/* Writes and reads the fields of CSV records. Owns nothing. Any thread. */
#include "lbmmon/um_mon_csv_text.h"

#include <stdio.h>
#include <string.h>

/* ---- writing ---- */

static void put(struct um_mon_csv_writer *w, const char *bytes, size_t len)
{
    if (w->len + len <= w->room) {
        memcpy(w->out + w->len, bytes, len);
    }
    w->len += len;
}

static void begin_field(struct um_mon_csv_writer *w)
{
    if (w->len > 0) {
        put(w, &w->separator, 1);
    }
}

void um_mon_csv_put_decimal(struct um_mon_csv_writer *w, int value)
{
    char text[16];
    begin_field(w);
    put(w, text, (size_t)snprintf(text, sizeof text, "%d", value));
}

void um_mon_csv_put_hex(struct um_mon_csv_writer *w, unsigned long long value)
{
    char text[24];
    begin_field(w);
    put(w, text, (size_t)snprintf(text, sizeof text, "%llx", value));
}

void um_mon_csv_put_text(struct um_mon_csv_writer *w, const char *text, size_t max)
{
    begin_field(w);
    put(w, "\"", 1);
    put(w, text, strnlen(text, max));
    put(w, "\"", 1);
}

void um_mon_csv_put_bytes(struct um_mon_csv_writer *w, const unsigned char *bytes, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    begin_field(w);
    for (size_t i = 0; i < len; i++) {
        const char two[2] = {digits[bytes[i] >> 4], digits[bytes[i] & 15]};
        put(w, two, 2);
    }
}

void um_mon_csv_put_record(struct um_mon_csv_writer *w, const struct um_mon_record *record, const void *counters)
{
    for (size_t i = 0; i < record->count; i++) {
        um_mon_csv_put_hex(w, um_mon_field_get(&record->fields[i], counters));
    }
}

/* ---- reading ---- */

void um_mon_csv_reader_init(struct um_mon_csv_reader *r, const char *text, size_t len, char separator)
{
    /* Some senders count the NUL at the end of the text. */
    while (len > 0 && (text[len - 1] == '\0' || text[len - 1] == '\n')) {
        len--;
    }
    *r = (struct um_mon_csv_reader){.at = text, .end = text + len, .separator = separator, .over = len == 0};
}

/* The bytes up to `stop`, which is a separator or the end, have been used. */
static void leave_field(struct um_mon_csv_reader *r, const char *stop)
{
    r->over = stop == r->end;
    r->at = stop == r->end ? stop : stop + 1;
}

static const char *field_end(const struct um_mon_csv_reader *r)
{
    const char *stop = memchr(r->at, r->separator, (size_t)(r->end - r->at));
    return stop != NULL ? stop : r->end;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool um_mon_csv_get_decimal(struct um_mon_csv_reader *r, int *out)
{
    const char *stop = field_end(r);
    int value = 0;
    if (r->over || stop == r->at || stop - r->at > 9) {
        return false;
    }
    for (const char *p = r->at; p < stop; p++) {
        if (*p < '0' || *p > '9') {
            return false;
        }
        value = value * 10 + (*p - '0');
    }
    *out = value;
    leave_field(r, stop);
    return true;
}

bool um_mon_csv_get_hex(struct um_mon_csv_reader *r, unsigned long long *out)
{
    const char *stop = field_end(r);
    unsigned long long value = 0;
    if (r->over || stop == r->at) {
        return false;
    }
    for (const char *p = r->at; p < stop; p++) {
        int digit = hex_digit(*p);
        if (digit < 0) {
            return false;
        }
        value = value << 4 | (unsigned)digit; /* the first digits of a number that is too long are shifted out */
    }
    *out = value;
    leave_field(r, stop);
    return true;
}

/* The quote behind which the field ends; quotes inside of a name are part of it. */
static const char *closing_quote(const struct um_mon_csv_reader *r, const char *from)
{
    for (const char *p = from; p < r->end; p++) {
        if (*p == '"' && (p + 1 == r->end || p[1] == r->separator)) {
            return p;
        }
    }
    return NULL;
}

bool um_mon_csv_get_text(struct um_mon_csv_reader *r, char *out, size_t room)
{
    if (r->over || r->at == r->end || *r->at != '"') {
        return false;
    }
    const char *from = r->at + 1;
    const char *quote = closing_quote(r, from);
    if (quote == NULL || (size_t)(quote - from) >= room || memchr(from, '\0', (size_t)(quote - from)) != NULL) {
        return false;
    }
    memcpy(out, from, (size_t)(quote - from));
    out[quote - from] = '\0';
    leave_field(r, quote + 1);
    return true;
}

bool um_mon_csv_get_bytes(struct um_mon_csv_reader *r, unsigned char *out, size_t len)
{
    const char *stop = field_end(r);
    if (r->over || (size_t)(stop - r->at) != 2 * len) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        int high = hex_digit(r->at[2 * i]), low = hex_digit(r->at[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        out[i] = (unsigned char)(high << 4 | low);
    }
    leave_field(r, stop);
    return true;
}

bool um_mon_csv_get_record(struct um_mon_csv_reader *r, const struct um_mon_record *record, bool may_miss,
                           void *counters)
{
    for (size_t i = 0; i < record->count; i++) {
        unsigned long long value = 0;
        if (!(r->over && may_miss) && !um_mon_csv_get_hex(r, &value)) {
            return false;
        }
        um_mon_field_set(&record->fields[i], counters, (lbm_ulong_t)value);
    }
    return true;
}
