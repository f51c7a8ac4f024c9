/*
 * Pre-defined messages, many at once: where the segments of each are, and their fixed-required sections one behind the
 * other. Any thread; nothing is kept. Compiled into um_cffi.binding._native behind um_py_bridge.c by build.py.
 */
#include <string.h>

#include <lbm/lbmpdm.h>

/* A message of the definition that was asked for. Data and table may be absent, and are then empty. */
typedef struct um_py_pdm_parts_stct {
    const unsigned char *data, *table;
    uint32_t data_len, table_len;
    uint32_t total; /* bytes of the message */
    int swap;       /* it is in the other order of bytes */
} um_py_pdm_parts_t;

/*
 * The first bytes of a message that has nothing but its fixed section. Messages of one sender are mostly such, and then
 * the same up to the section: those of the first that was read are compared instead of reading them again.
 */
typedef struct um_py_pdm_head_stct {
    unsigned char bytes[32];
    uint32_t size;  /* 24 or, with the empty table of offsets, 32; 0: none is known */
    uint32_t total; /* bytes of the whole message */
} um_py_pdm_head_t;

static inline uint32_t um_py_pdm_word(const unsigned char *at, int swap)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return swap ? __builtin_bswap32(value) : value;
}

static int um_py_pdm_segments(const unsigned char *at, um_py_pdm_parts_t *out)
{
    uint32_t place = 16, total = out->total;
    unsigned seen = 0;
    for (unsigned type = at[5]; type != 0xff;) {
        if (total - place < 8)
            return 0;
        uint32_t size = um_py_pdm_word(at + place + 4, out->swap);
        if (size > total - place - 8)
            return 0;
        if (type > 2 ? (at[place + 1] & 0x80) == 0 : (seen & 1u << type) != 0)
            return 0;
        seen |= type > 2 ? 0 : 1u << type;
        if (type == 0) {
            out->data = at + place + 8;
            out->data_len = size;
        } else if (type == 1) {
            out->table = at + place + 8;
            out->table_len = size;
        }
        type = at[place];
        place += 8 + size;
    }
    return out->table_len % 8 == 0;
}

/* The segments of a message of this definition, checked as the decoder of the library does; 0 when it is none. `key` is
 * the definition's major, minor and id, the last in the order of this host. */
static int um_py_pdm_parse(const unsigned char *at, uint32_t length, const unsigned char *key, um_py_pdm_parts_t *out)
{
    static const unsigned char little_magic[] = {0xfe, 0xca, 0x1c, 0xa7}, big_magic[] = {0xa7, 0x1c, 0xca, 0xfe};
    uint32_t id, one = 1;
    unsigned char little;
    if (length < 16 || at[4] >> 4 != 1 || (at[5] > 2 && at[5] != 0xff))
        return 0;
    memcpy(&id, key + 2, 4);
    memcpy(&little, &one, 1);
    *out = (um_py_pdm_parts_t){.swap = memcmp(at, little ? big_magic : little_magic, 4) == 0};
    if (!out->swap && memcmp(at, little ? little_magic : big_magic, 4) != 0)
        return 0;
    out->total = um_py_pdm_word(at + 12, out->swap);
    if (memcmp(at + 6, key, 2) != 0 || um_py_pdm_word(at + 8, out->swap) != id || out->total < 16 ||
        out->total > length || out->total > 0x7fffffff)
        return 0;
    return um_py_pdm_segments(at, out);
}

/* Keeps the head of a message, when nothing but the section is behind it. */
static void um_py_pdm_remember(um_py_pdm_head_t *head, const unsigned char *at, const um_py_pdm_parts_t *parts,
                               uint32_t section)
{
    if (parts->data == NULL || parts->swap || parts->table_len != 0 || parts->data_len != section)
        return;
    uint32_t size = (uint32_t)(parts->data - at);
    if ((size == 24 || size == 32) && parts->total == size + section) {
        memcpy(head->bytes, at, size);
        head->size = size;
        head->total = parts->total;
    }
}

/* Whether a message begins as the one remembered, and is whole. */
static inline int um_py_pdm_same_head(const um_py_pdm_head_t *head, const unsigned char *at, uint32_t length)
{
    if (head->size == 32)
        return length >= head->total && memcmp(at, head->bytes, 32) == 0;
    return head->size == 24 && length >= head->total && memcmp(at, head->bytes, 24) == 0;
}

/* A few bytes, mostly: two copies that overlap are cheaper than a call. */
static inline void um_py_pdm_copy(unsigned char *out, const unsigned char *from, uint32_t size)
{
    if (size > 32 || size < 8) {
        memcpy(out, from, size);
    } else if (size <= 16) {
        memcpy(out, from, 8);
        memcpy(out + size - 8, from + size - 8, 8);
    } else {
        memcpy(out, from, 16);
        memcpy(out + size - 16, from + size - 16, 16);
    }
}

/* Where message `i` of a table begins: steps of `stride` bytes from one offset or length to the next; NULL when it is
 * not inside the `size` bytes at base. */
static inline const unsigned char *um_py_pdm_at(const char *base, size_t size, const char *offsets, const char *lengths,
                                                size_t stride, size_t i, uint32_t *length)
{
    uint64_t offset;
    memcpy(&offset, offsets + i * stride, sizeof offset);
    memcpy(length, lengths + i * stride, sizeof *length);
    if (offset > size || *length > size - offset)
        return NULL;
    return (const unsigned char *)base + offset;
}

/* Copies the sections of `count` messages to `out`. big_endian[i] tells which are in the other order of bytes. The
 * number of the first message that is not of this definition, or `count`. */
static size_t um_py_pdm_gather(const char *base, size_t size, const char *offsets, const char *lengths, size_t stride,
                               size_t count, const char *key, uint32_t section, char *out, unsigned char *big_endian,
                               int *some_big)
{
    um_py_pdm_head_t head = {.size = 0};
    for (size_t i = 0; i < count; i++) {
        um_py_pdm_parts_t parts;
        uint32_t length;
        const unsigned char *at = um_py_pdm_at(base, size, offsets, lengths, stride, i, &length);
        if (at == NULL)
            return i;
        const unsigned char *data = at + head.size;
        big_endian[i] = 0;
        if (!um_py_pdm_same_head(&head, at, length)) {
            if (!um_py_pdm_parse(at, length, (const unsigned char *)key, &parts) || parts.data_len < section)
                return i;
            um_py_pdm_remember(&head, at, &parts, section);
            data = parts.data;
            big_endian[i] = (unsigned char)parts.swap;
            *some_big |= parts.swap;
        }
        if (section != 0)
            um_py_pdm_copy((unsigned char *)out + i * section, data, section);
    }
    return count;
}
