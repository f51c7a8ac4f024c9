/* Hot failover numbers in headers of messages. See um_lbmc_hf.h. */
#include "wire/um_lbmc_hf.h"

#include <lbm/lbm.h>

#define CHAIN_HDR_LEN 4u
#define ELEMENT_HDR_LEN 4u
#define END_OF_CHAIN 0xFFu
#define LEN_32 (ELEMENT_HDR_LEN + 4u)
#define LEN_64 (ELEMENT_HDR_LEN + 8u)

size_t um_lbmc_put_hf_element(uint8_t *p, uint8_t next, const struct um_lbmc_hf *hf)
{
    size_t len = hf->wide ? LEN_64 : LEN_32;
    p[0] = next;
    p[1] = (uint8_t)len;
    um_put16(p + 2, hf->flags);
    if (hf->wide) {
        um_put32(p + 4, (uint32_t)(hf->sqn >> 32));
    }
    um_put32(p + len - 4, (uint32_t)hf->sqn);
    return len;
}

size_t um_lbmc_put_hf_header(uint8_t *p, uint8_t next, const struct um_lbmc_hf *hf)
{
    size_t len = CHAIN_HDR_LEN + um_lbmc_put_hf_element(p + CHAIN_HDR_LEN, END_OF_CHAIN, hf);
    p[0] = next;
    p[1] = (uint8_t)len;
    p[2] = 0;
    p[3] = LBM_CHAIN_ELEM_HF_SQN;
    return len;
}

static bool read_element(const uint8_t *p, size_t len, struct um_lbmc_hf *out)
{
    if (len != LEN_32 && len != LEN_64) {
        return false;
    }
    out->wide = len == LEN_64;
    out->flags = um_get16(p + 2) & UM_LBMC_HF_FLAGS;
    out->sqn = um_get32(p + len - 4) | (out->wide ? (uint64_t)um_get32(p + 4) << 32 : 0);
    return true;
}

/* The type of an element stands in the one before it; that of the first one before all of them. */
bool um_lbmc_get_hf(struct um_slice chain, struct um_lbmc_hf *out)
{
    if (chain.len == 0) {
        return false;
    }
    uint8_t type = chain.ptr[0];
    size_t pos = 1;
    while (type != END_OF_CHAIN && chain.len - pos >= ELEMENT_HDR_LEN) {
        const uint8_t *p = chain.ptr + pos;
        size_t len = p[1];
        if (len < ELEMENT_HDR_LEN || len > chain.len - pos) {
            return false;
        }
        if (type == LBM_CHAIN_ELEM_HF_SQN) {
            return read_element(p, len, out);
        }
        type = p[0];
        pos += len;
    }
    return false;
}
