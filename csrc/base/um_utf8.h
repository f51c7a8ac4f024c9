/* UTF-8: whether bytes are characters. Pure; any thread. */
#ifndef UM_BASE_UTF8_H
#define UM_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

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

#endif
