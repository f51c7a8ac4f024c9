/* The hash of every table whose keys come from the network: keyed with a secret
 * of the process, so that nobody outside can choose keys that meet in one bucket.
 * Any thread. */
#ifndef UM_BASE_HASH_H
#define UM_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Drawn from the kernel before constructors of the application; never changes except by um_hash_set_key(). */
extern uint64_t um_hash_key[2];

/* SipHash-1-3, folded to 32 bits: for tables, which compare the keys. */
uint32_t um_hash_bytes(const void *data, size_t len);
/* All of it: in place of the bytes, where they are not kept. */
uint64_t um_hash64_bytes(const void *data, size_t len);

/* Two rounds of multiply and fold: for numbers, on paths where SipHash would be felt. */
static inline uint32_t um_hash_u32(uint32_t key)
{
    uint64_t hash = (key ^ um_hash_key[0]) * (um_hash_key[1] | 1u);
    hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15ull;
    return (uint32_t)(hash >> 32);
}

/* For simulations that must replay; before the first table is filled. */
void um_hash_set_key(uint64_t first, uint64_t second);

#endif
