/* Random numbers: a seeded generator for engines (replayable), and seeding from the kernel. */
#ifndef UM_BASE_RANDOM_H
#define UM_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct um_rng {
    uint64_t state[4]; /* xoshiro256** */
};

void um_rng_seed(struct um_rng *rng, uint64_t seed);
uint64_t um_rng_u64(struct um_rng *rng);
uint32_t um_rng_u32(struct um_rng *rng);
uint64_t um_rng_range(struct um_rng *rng, uint64_t low, uint64_t high); /* uniform in [low, high] */

/* Kernel entropy (getrandom); falls back to clock and pid mixing, never fails. */
void um_random_bytes(void *out, size_t len);
uint32_t um_random_u32_nonzero(void);

#endif
