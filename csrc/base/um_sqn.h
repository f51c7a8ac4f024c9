/* Modular 32-bit sequence numbers: a is newer than b when (int32)(a - b) > 0. */
#ifndef UM_BASE_SQN_H
#define UM_BASE_SQN_H

#include <stdbool.h>
#include <stdint.h>

static inline int32_t um_sqn_diff(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b);
}

static inline bool um_sqn_newer(uint32_t a, uint32_t b)
{
    return um_sqn_diff(a, b) > 0;
}

static inline bool um_sqn_older(uint32_t a, uint32_t b)
{
    return um_sqn_diff(a, b) < 0;
}

#endif
