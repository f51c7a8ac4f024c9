/*
 * Texts of messages as Arrow wants them: UTF-8 and nothing else. What is none is replaced as Python's "replace" does,
 * so that columns show what the messages by themselves show. Any thread. Compiled into um_cffi.binding._native behind
 * um_py_pdm.c by build.py.
 */

/* Bytes of the character at `at`, or, negative, of what is replaced by one U+FFFD. */
static int um_py_utf8_step(const unsigned char *at, size_t len)
{
    unsigned char lead = at[0], low = 0x80, high = 0xbf;
    int more;
    if (lead < 0x80)
        return 1;
    if (lead >= 0xc2 && lead <= 0xdf) {
        more = 1;
    } else if (lead >= 0xe0 && lead <= 0xef) {
        more = 2;
        low = lead == 0xe0 ? 0xa0 : low;
        high = lead == 0xed ? 0x9f : high; /* no surrogates */
    } else if (lead >= 0xf0 && lead <= 0xf4) {
        more = 3;
        low = lead == 0xf0 ? 0x90 : low;
        high = lead == 0xf4 ? 0x8f : high;
    } else {
        return -1;
    }
    for (int i = 1; i <= more; i++) {
        if ((size_t)i >= len || at[i] < low || at[i] > high)
            return -i;
        low = 0x80;
        high = 0xbf;
    }
    return more + 1;
}

/* Whether all bytes are ASCII: eight at a time, the last ones twice. */
static inline int um_py_utf8_ascii(const unsigned char *at, size_t len)
{
    uint64_t all = 0, word;
    if (len < 8) {
        unsigned char bytes = 0;
        for (size_t i = 0; i < len; i++)
            bytes |= at[i];
        return bytes < 0x80;
    }
    for (size_t i = 0; i + 8 < len; i += 8) {
        memcpy(&word, at + i, 8);
        all |= word;
    }
    memcpy(&word, at + len - 8, 8);
    return ((all | word) & 0x8080808080808080u) == 0;
}

static int um_py_utf8_valid(const unsigned char *at, size_t len)
{
    if (um_py_utf8_ascii(at, len))
        return 1;
    for (size_t i = 0; i < len;) {
        int step = um_py_utf8_step(at + i, len - i);
        if (step < 0)
            return 0;
        i += (size_t)step;
    }
    return 1;
}

/* Writes at most 3 * len bytes; how many. */
static size_t um_py_utf8_replaced(unsigned char *out, const unsigned char *at, size_t len)
{
    static const unsigned char replacement[] = {0xef, 0xbf, 0xbd};
    size_t written = 0;
    for (size_t i = 0; i < len;) {
        int step = um_py_utf8_step(at + i, len - i);
        size_t bytes = step < 0 ? sizeof replacement : (size_t)step;
        memcpy(out + written, step < 0 ? replacement : at + i, bytes);
        written += bytes;
        i += (size_t)(step < 0 ? -step : step);
    }
    return written;
}

/* The length of a text in a field of `len` bytes, filled up with zeros. */
static inline size_t um_py_pdm_trimmed(const unsigned char *at, size_t len)
{
    while (len >= 8) {
        uint64_t word;
        memcpy(&word, at + len - 8, 8);
        if (word != 0)
            break;
        len -= 8;
    }
    while (len > 0 && at[len - 1] == 0)
        len--;
    return len;
}
