/* SipHash-1-3 (Aumasson, Bernstein) and the key of the process. See um_hash.h. */
#include "base/um_hash.h"

#include <string.h>

#include "base/um_early.h"
#include "base/um_random.h"

uint64_t um_hash_key[2];

UM_RUN_EARLY static void draw_key(void)
{
    um_random_bytes(um_hash_key, sizeof um_hash_key);
}

void um_hash_set_key(uint64_t first, uint64_t second)
{
    um_hash_key[0] = first;
    um_hash_key[1] = second;
}

static inline uint64_t rotate(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

static inline void round_of(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
}

uint64_t um_hash64_bytes(const void *data, size_t len)
{
    const uint8_t *at = data;
    uint64_t v[4] = {um_hash_key[0] ^ 0x736f6d6570736575ull, um_hash_key[1] ^ 0x646f72616e646f6dull,
                     um_hash_key[0] ^ 0x6c7967656e657261ull, um_hash_key[1] ^ 0x7465646279746573ull};
    uint64_t word, last = (uint64_t)len << 56;
    for (; len >= sizeof word; at += sizeof word, len -= sizeof word) {
        memcpy(&word, at, sizeof word);
        v[3] ^= word;
        round_of(v);
        v[0] ^= word;
    }
    for (size_t i = 0; i < len; i++) {
        last |= (uint64_t)at[i] << (8 * i);
    }
    v[3] ^= last;
    round_of(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    round_of(v);
    round_of(v);
    round_of(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint32_t um_hash_bytes(const void *data, size_t len)
{
    uint64_t hash = um_hash64_bytes(data, len);
    return (uint32_t)(hash ^ hash >> 32);
}
