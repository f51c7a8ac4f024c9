/* The hot failover number of a message: an element of its APPHDR_CHAIN header
 * (docs/wire.md). Pure functions on bytes; any thread. */
#ifndef UM_WIRE_LBMC_HF_H
#define UM_WIRE_LBMC_HF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/um_bytes.h"
#include "wire/um_lbmc_chain.h"

#define UM_LBMC_HF_HEADER_MAX 16u /* chain header and element of a 64-bit number */

enum um_lbmc_hf_flags { UM_LBMC_HF_OPTIONAL = 0x0001, UM_LBMC_HF_RESET = 0x0002 };
#define UM_LBMC_HF_FLAGS (UM_LBMC_HF_OPTIONAL | UM_LBMC_HF_RESET)

struct um_lbmc_hf {
    uint64_t sqn;
    bool wide;      /* 64 bits; else 32 */
    uint16_t flags; /* enum um_lbmc_hf_flags */
};

/* The element alone, or a whole APPHDR_CHAIN header with nothing else in it: write at p, return the length. `next` is
 * the type of the following element, or the code of the following header. */
size_t um_lbmc_put_hf_element(uint8_t *p, uint8_t next, const struct um_lbmc_hf *hf);
size_t um_lbmc_put_hf_header(uint8_t *p, uint8_t next, const struct um_lbmc_hf *hf);

/* The first number in `chain`, the apphdr_chain of a decoded message. False: it has none, or its elements do not fit
 * the header. */
bool um_lbmc_get_hf(struct um_slice chain, struct um_lbmc_hf *out);

/* The same where a number of 32 bits is all there is. False: it is something else. Hot path. */
static inline bool um_lbmc_get_hf_alone(struct um_slice chain, struct um_lbmc_hf *out)
{
    const uint8_t *p = chain.ptr;
    if (chain.len != UM_CHAIN_SINGLE_U32 - UM_CHAIN_HDR_LEN + 1 || p[0] != UM_CHAIN_HF_SQN || p[1] != UM_CHAIN_NONE ||
        p[2] != UM_CHAIN_SINGLE_U32 - UM_CHAIN_HDR_LEN) {
        return false;
    }
    *out = (struct um_lbmc_hf){.sqn = um_get32(p + 5), .flags = um_get16(p + 3) & UM_LBMC_HF_FLAGS};
    return true;
}

#endif
