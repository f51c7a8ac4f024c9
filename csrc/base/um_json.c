/* See um_json.h. */
#include "base/um_json.h"

#include <string.h>

#include "base/um_utf8.h"

struct cursor {
    const char *at, *end;
    const char *why; /* the first thing that was wrong */
};

static bool fail(struct cursor *cursor, const char *why)
{
    cursor->why = cursor->why != NULL ? cursor->why : why;
    return false;
}

static void skip_blanks(struct cursor *cursor)
{
    while (cursor->at < cursor->end && strchr(" \t\r\n", *cursor->at) != NULL && *cursor->at != '\0') {
        cursor->at++;
    }
}

static bool take(struct cursor *cursor, char wanted)
{
    skip_blanks(cursor);
    if (cursor->at == cursor->end || *cursor->at != wanted) {
        return false;
    }
    cursor->at++;
    return true;
}

/* ---- strings ------------------------------------------------------------------ */

static bool put(struct cursor *cursor, char *out, size_t *len, const char *bytes, size_t count)
{
    if (*len + count > UM_JSON_MAX_TEXT) {
        return fail(cursor, "a text of more than 255 bytes");
    }
    memcpy(out + *len, bytes, count);
    *len += count;
    return true;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Characters beyond 16 bits are not taken: nothing that is asked for has one. */
static bool take_code(struct cursor *cursor, char *out, size_t *len)
{
    unsigned code = 0;
    for (int i = 0; i < 4; i++) {
        int digit = cursor->at < cursor->end ? hex_digit(*cursor->at++) : -1;
        if (digit < 0) {
            return fail(cursor, "\\u without four hexadecimal digits");
        }
        code = code << 4 | (unsigned)digit;
    }
    if (code == 0 || (code >= 0xd800 && code <= 0xdfff)) {
        return fail(cursor, "a character that is not taken");
    }
    char bytes[3] = {(char)code};
    size_t count = 1;
    if (code >= 0x800) {
        bytes[0] = (char)(0xe0 | code >> 12);
        bytes[1] = (char)(0x80 | (code >> 6 & 0x3f));
        bytes[2] = (char)(0x80 | (code & 0x3f));
        count = 3;
    } else if (code >= 0x80) {
        bytes[0] = (char)(0xc0 | code >> 6);
        bytes[1] = (char)(0x80 | (code & 0x3f));
        count = 2;
    }
    return put(cursor, out, len, bytes, count);
}

static bool take_escape(struct cursor *cursor, char *out, size_t *len)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (cursor->at == cursor->end) {
        return fail(cursor, "a text without end");
    }
    char c = *cursor->at++;
    if (c == 'u') {
        return take_code(cursor, out, len);
    }
    const char *found = c != '\0' ? strchr(from, c) : NULL;
    return found != NULL ? put(cursor, out, len, &to[found - from], 1) : fail(cursor, "an unknown escape");
}

static bool take_text(struct cursor *cursor, char *out)
{
    size_t len = 0;
    if (!take(cursor, '"')) {
        return fail(cursor, "a text in quotes is expected");
    }
    while (cursor->at < cursor->end && *cursor->at != '"') {
        char c = *cursor->at++;
        if ((unsigned char)c < 0x20) {
            return fail(cursor, "a control character in a text");
        }
        if (!(c == '\\' ? take_escape(cursor, out, &len) : put(cursor, out, &len, &c, 1))) {
            return false;
        }
    }
    out[len] = '\0';
    return take(cursor, '"') || fail(cursor, "a text without end");
}

/* ---- numbers, members, objects ----------------------------------------------------- */

static bool take_number(struct cursor *cursor, uint64_t *out)
{
    const char *begin = cursor->at;
    *out = 0;
    for (; cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9'; cursor->at++) {
        unsigned digit = (unsigned)(*cursor->at - '0');
        if (*out > (UINT64_MAX - digit) / 10) {
            return fail(cursor, "a number of more than 64 bits");
        }
        *out = *out * 10 + digit;
    }
    if (cursor->at == begin || (*begin == '0' && cursor->at - begin > 1)) {
        return fail(cursor, "a value that is neither a text nor a whole number");
    }
    return true;
}

static bool take_member(struct cursor *cursor, struct um_json_member *out)
{
    *out = (struct um_json_member){0};
    if (!take_text(cursor, out->name)) {
        return false;
    }
    if (!take(cursor, ':')) {
        return fail(cursor, "a colon is expected");
    }
    skip_blanks(cursor);
    if (cursor->at < cursor->end && *cursor->at == '"') {
        return take_text(cursor, out->text);
    }
    out->is_number = true;
    return take_number(cursor, &out->number);
}

static bool take_object(struct cursor *cursor, struct um_json_object *out)
{
    out->count = 0;
    if (!take(cursor, '{')) {
        return fail(cursor, "an object is expected");
    }
    if (take(cursor, '}')) {
        return true;
    }
    do {
        if (out->count == UM_JSON_MAX_MEMBERS) {
            return fail(cursor, "more than 16 members");
        }
        if (!take_member(cursor, &out->members[out->count])) {
            return false;
        }
        out->count++;
    } while (take(cursor, ','));
    return take(cursor, '}') || fail(cursor, "a comma or the end of the object is expected");
}

bool um_json_read(const char *data, size_t len, struct um_json_object *out, const char **why)
{
    struct cursor cursor = {data, data + len, NULL};
    bool good = take_object(&cursor, out);
    skip_blanks(&cursor);
    if (good && cursor.at != cursor.end) {
        good = fail(&cursor, "something follows the object");
    }
    *why = cursor.why;
    return good;
}

static const struct um_json_member *find(const struct um_json_object *object, const char *name, bool is_number)
{
    for (unsigned i = 0; i < object->count; i++) {
        if (object->members[i].is_number == is_number && strcmp(object->members[i].name, name) == 0) {
            return &object->members[i];
        }
    }
    return NULL;
}

const char *um_json_text(const struct um_json_object *object, const char *name)
{
    const struct um_json_member *member = find(object, name, false);
    return member != NULL ? member->text : NULL;
}

const uint64_t *um_json_number(const struct um_json_object *object, const char *name)
{
    const struct um_json_member *member = find(object, name, true);
    return member != NULL ? &member->number : NULL;
}

/* ---- writing ---------------------------------------------------------------------------- */

void um_json_put_text(FILE *out, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    fputc('"', out);
    while (*at != '\0') {
        size_t len = um_utf8_len(at);
        if (len == 0) {
            fputs("\\ufffd", out);
        } else if (*at == '"' || *at == '\\') {
            fprintf(out, "\\%c", *at);
        } else if (*at < 0x20 || *at == 0x7f) {
            fprintf(out, "\\u%04x", *at);
        } else {
            fwrite(at, 1, len, out);
        }
        at += len > 0 ? len : 1;
    }
    fputc('"', out);
}
