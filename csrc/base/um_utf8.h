/* UTF-8: whether bytes are characters, and making them so. Pure; any thread. */
#ifndef UM_BASE_UTF8_H
#define UM_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Bytes of the character that the text begins with, which has a NUL at its end; 0: it begins with none. */
static inline size_t um_utf8_len(const unsigned char *text)
{
    size_t len = text[0] < 0x80 ? 1 : text[0] >= 0xc2 && text[0] < 0xe0 ? 2 : (text[0] & 0xf0) == 0xe0 ? 3 : 4;
    if (len == 4 && (text[0] < 0xf0 || text[0] > 0xf4)) {
        return 0;
    }
    for (size_t i = 1; i < len; i++) {
        if ((text[i] & 0xc0) != 0x80) { /* the NUL, too */
            return 0;
        }
    }
    bool too_long = (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xf0 && text[1] < 0x90);
    bool no_character = (text[0] == 0xed && text[1] >= 0xa0) || (text[0] == 0xf4 && text[1] >= 0x90);
    return too_long || no_character ? 0 : len;
}

/* What is no character becomes U+FFFD, byte by byte; what has no room is cut off. `text` NULL: empty. Returns `out`. */
static inline char *um_utf8_copy(char *out, size_t size, const char *text)
{
    const unsigned char *at = (const unsigned char *)(text != NULL ? text : "");
    size_t to = 0;
    while (*at != '\0') {
        size_t len = um_utf8_len(at), put = len > 0 ? len : 3;
        if (to + put >= size) {
            break;
        }
        memcpy(out + to, len > 0 ? (const char *)at : "\xef\xbf\xbd", put);
        to += put;
        at += len > 0 ? len : 1;
    }
    out[to] = '\0';
    return out;
}

#endif
