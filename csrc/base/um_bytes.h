/* Unaligned big-endian access. Callers check lengths. */
#ifndef UM_BASE_BYTES_H
#define UM_BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct um_slice {
    const uint8_t *ptr;
    size_t len;
};

static inline uint16_t um_get16(const uint8_t *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return __builtin_bswap16(v);
}

static inline uint32_t um_get32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return __builtin_bswap32(v);
}

static inline uint64_t um_get64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return __builtin_bswap64(v);
}

static inline void um_put16(uint8_t *p, uint16_t v)
{
    v = __builtin_bswap16(v);
    memcpy(p, &v, sizeof v);
}

static inline void um_put32(uint8_t *p, uint32_t v)
{
    v = __builtin_bswap32(v);
    memcpy(p, &v, sizeof v);
}

static inline void um_put64(uint8_t *p, uint64_t v)
{
    v = __builtin_bswap64(v);
    memcpy(p, &v, sizeof v);
}

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "um_bytes.h assumes a little-endian host; add the big-endian variants"
#endif

#endif
