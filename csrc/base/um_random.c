/* xoshiro256** for engines that must replay, kernel entropy for identities.
 * A um_rng belongs to one thread; the um_random_* functions may be called from any. */
#include "base/um_random.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/um_clock.h"

static uint64_t um_splitmix64(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

void um_rng_seed(struct um_rng *rng, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        rng->state[i] = um_splitmix64(&seed);
    }
}

static inline uint64_t um_rotl64(uint64_t value, int bits)
{
    return (value << bits) | (value >> (64 - bits));
}

uint64_t um_rng_u64(struct um_rng *rng)
{
    uint64_t *s = rng->state;
    uint64_t result = um_rotl64(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = um_rotl64(s[3], 45);
    return result;
}

uint32_t um_rng_u32(struct um_rng *rng)
{
    return (uint32_t)(um_rng_u64(rng) >> 32);
}

uint64_t um_rng_range(struct um_rng *rng, uint64_t low, uint64_t high)
{
    uint64_t span = high - low + 1;
    if (span == 0) {
        return um_rng_u64(rng);
    }
    uint64_t value = um_rng_u64(rng);
    if (value > UINT64_MAX - span) { /* so rarely that the two divisions cost nothing */
        /* Reject the tail that would favour small values. */
        uint64_t limit = UINT64_MAX - (UINT64_MAX % span + 1) % span;
        while (value > limit) {
            value = um_rng_u64(rng);
        }
    }
    return low + value % span;
}

void um_random_bytes(void *out, size_t len)
{
    uint8_t *cursor = out;
    while (len > 0) {
        ssize_t got = getrandom(cursor, len, 0);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        cursor += got;
        len -= (size_t)got;
    }
    if (len > 0) {
        static atomic_ulong calls;
        struct um_rng rng;
        um_rng_seed(&rng, um_clock_ns() ^ um_clock_wall_ns() * 31 ^ (uint64_t)getpid() << 40 ^
                              atomic_fetch_add(&calls, 1) * 0x9e3779b97f4a7c15ull);
        for (; len > 0; len--) {
            *cursor++ = (uint8_t)um_rng_u64(&rng);
        }
    }
}

uint32_t um_random_u32_nonzero(void)
{
    uint32_t value;
    do {
        um_random_bytes(&value, sizeof value);
    } while (value == 0);
    return value;
}
