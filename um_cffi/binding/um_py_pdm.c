/*
 * Pre-defined messages of one fixed layout, many at once: their fixed-required sections one behind the other. Any
 * thread; nothing is kept. Compiled into um_cffi.binding._native behind um_py_bridge.c by build.py.
 */
#include <string.h>

#include <lbm/lbmpdm.h>

static uint32_t um_py_pdm_word(const unsigned char *at, int big)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return big ? __builtin_bswap32(value) : value;
}

/* The data segment of a message of this definition, or NULL. `key` is the definition's major, minor and id, the last in
 * the order of this host. */
static const unsigned char *um_py_pdm_data(const unsigned char *at, uint32_t length, const unsigned char *key,
                                           uint32_t section, int *big)
{
    static const unsigned char little_magic[] = {0xfe, 0xca, 0x1c, 0xa7}, big_magic[] = {0xa7, 0x1c, 0xca, 0xfe};
    uint32_t id;
    if (length < 16 || at[4] >> 4 != 1)
        return NULL;
    *big = memcmp(at, big_magic, 4) == 0;
    if (!*big && memcmp(at, little_magic, 4) != 0)
        return NULL;
    memcpy(&id, key + 2, 4);
    uint32_t total = um_py_pdm_word(at + 12, *big), place = 16;
    if (memcmp(at + 6, key, 2) != 0 || um_py_pdm_word(at + 8, *big) != id || total < 16 || total > length)
        return NULL;
    for (unsigned type = at[5]; type != 0xff;) {
        if (total - place < 8)
            return NULL;
        uint32_t size = um_py_pdm_word(at + place + 4, *big);
        if (size > total - place - 8)
            return NULL;
        if (type == 0)
            return size >= section ? at + place + 8 : NULL;
        if (type > 2 && (at[place + 1] & 0x80) == 0)
            return NULL;
        type = at[place];
        place += 8 + size;
    }
    return NULL;
}

/* Copies the sections of `count` messages at base + offsets[i] (steps of `stride` bytes from one offset or length to
 * the next) to `out`. big_endian[i] tells which are in the other order of bytes. The number of the first message that
 * is not of this definition, or `count`. */
static size_t um_py_pdm_gather(const char *base, size_t size, const char *offsets, const char *lengths, size_t stride,
                               size_t count, const char *key, uint32_t section, char *out, unsigned char *big_endian,
                               int *some_big)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t offset;
        uint32_t length;
        int big;
        memcpy(&offset, offsets + i * stride, sizeof offset);
        memcpy(&length, lengths + i * stride, sizeof length);
        if (offset > size || length > size - offset)
            return i;
        const unsigned char *data =
            um_py_pdm_data((const unsigned char *)base + offset, length, (const unsigned char *)key, section, &big);
        if (data == NULL)
            return i;
        memcpy(out + i * section, data, section);
        big_endian[i] = (unsigned char)big;
        *some_big |= big;
    }
    return count;
}
