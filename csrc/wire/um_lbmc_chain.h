/* The chain of elements in an APPHDR_CHAIN header of LBMC: length of the message
 * properties, channel, hot failover number, application headers. Pure functions
 * on bytes; any thread. What the decoder of LBMC accepted is a well-formed chain. */
#ifndef UM_WIRE_LBMC_CHAIN_H
#define UM_WIRE_LBMC_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/um_bytes.h"

enum um_chain_type {
    UM_CHAIN_CHANNEL = 0x01, /* u32 */
    UM_CHAIN_HF_SQN = 0x02,  /* u32 or u64; flags in `res` */
    UM_CHAIN_GW_INFO = 0x03, /* of old routers */
    UM_CHAIN_APPHDR = 0x04,  /* a single application header; its code in `res` */
    UM_CHAIN_USER_DATA = 0x05,
    UM_CHAIN_PROPERTIES_LEN = 0x06, /* u32: of the properties, which are the end of the message */
    UM_CHAIN_NONE = 0xFF
};

#define UM_CHAIN_HDR_LEN 4u
#define UM_CHAIN_ELEM_LEN 4u /* without its data */
#define UM_CHAIN_MAX 255u    /* the header with all elements */

struct um_chain_elem {
    uint8_t type; /* enum um_chain_type, or one that is not known */
    uint16_t res; /* of USER_DATA the subtype */
    struct um_slice data;
};

/* Elements in their order. `chain` as in struct um_lbmc_msg: type of the first element, then the elements. */
struct um_chain_iter {
    struct um_slice left;
    uint8_t type;
};
void um_chain_begin(struct um_chain_iter *iter, struct um_slice chain);
bool um_chain_next(struct um_chain_iter *iter, struct um_chain_elem *out); /* false: no more, or malformed */
bool um_chain_valid(struct um_slice chain);
/* The first element of this type with at least `min_len` bytes of data. */
bool um_chain_find(struct um_slice chain, uint8_t type, size_t min_len, struct um_chain_elem *out);

/* What receivers look for in a chain, found while it is checked: the first channel and the first length of properties,
 * and whether there are application headers. */
enum um_chain_has { UM_CHAIN_HAS_CHANNEL = 1, UM_CHAIN_HAS_PROPERTIES = 2, UM_CHAIN_HAS_USER_DATA = 4 };
struct um_chain_summary {
    uint32_t has; /* enum um_chain_has */
    uint32_t channel, properties_len;
};
static inline void um_chain_note(struct um_chain_summary *out, uint8_t type, const uint8_t *data, size_t len)
{
    if (type == UM_CHAIN_CHANNEL && len >= 4 && (out->has & UM_CHAIN_HAS_CHANNEL) == 0) {
        out->has |= UM_CHAIN_HAS_CHANNEL;
        out->channel = um_get32(data);
    } else if (type == UM_CHAIN_PROPERTIES_LEN && len >= 4 && (out->has & UM_CHAIN_HAS_PROPERTIES) == 0) {
        out->has |= UM_CHAIN_HAS_PROPERTIES;
        out->properties_len = um_get32(data);
    } else if (type == UM_CHAIN_USER_DATA) {
        out->has |= UM_CHAIN_HAS_USER_DATA;
    }
}

/* False: malformed, and *out says nothing. */
static inline bool um_chain_summarise(struct um_slice chain, struct um_chain_summary *out)
{
    out->has = 0;
    if (chain.len == 0) {
        return true;
    }
    const uint8_t *p = chain.ptr + 1;
    size_t left = chain.len - 1;
    for (uint8_t type = chain.ptr[0]; type != UM_CHAIN_NONE;) {
        if (left < UM_CHAIN_ELEM_LEN || p[1] < UM_CHAIN_ELEM_LEN || p[1] > left) {
            return false;
        }
        um_chain_note(out, type, p + UM_CHAIN_ELEM_LEN, p[1] - UM_CHAIN_ELEM_LEN);
        type = p[0];
        left -= p[1];
        p += p[1];
    }
    return true;
}

/* Is it a header with one element of 4 bytes and the data behind it, what a channel, properties or a number of hot
 * failover alone make? Of any type; what is to be ignored, and flags of the element, may be anything. One comparison.
 * `header` has UM_CHAIN_SINGLE_U32 bytes. */
#define UM_CHAIN_SINGLE_U32 (UM_CHAIN_HDR_LEN + UM_CHAIN_ELEM_LEN + 4u)
static inline bool um_chain_is_single_u32(const uint8_t *header)
{
    static const uint8_t single[8] = {0, UM_CHAIN_SINGLE_U32, 0, 0, UM_CHAIN_NONE, UM_CHAIN_ELEM_LEN + 4u, 0, 0};
    static const uint8_t told[8] = {0xFF, 0xFF, 0, 0, 0xFF, 0xFF, 0, 0};
    return (um_get64(header) & um_get64(told)) == um_get64(single);
}

/* The channel; false: there is none. */
bool um_chain_channel(struct um_slice chain, uint32_t *number);

/* A whole header as it is sent, last before the data. The order of the elements is that of the specification:
 * PROPERTIES_LEN, CHANNEL, HF_SQN, USER_DATA: dissectors know the first only in its place. */
struct um_chain_writer {
    uint8_t bytes[UM_CHAIN_MAX];
    uint8_t len;
    uint8_t link; /* where the type of the next element is to be told */
};
void um_chain_start(struct um_chain_writer *w);
/* NULL: it does not fit. The place for `len` bytes of data. */
uint8_t *um_chain_add(struct um_chain_writer *w, uint8_t type, uint16_t res, size_t len);
bool um_chain_add_u32(struct um_chain_writer *w, uint8_t type, uint16_t res, uint32_t value);

/* A whole header with this one element. */
static inline void um_chain_put_single_u32(uint8_t out[UM_CHAIN_SINGLE_U32], uint8_t type, uint32_t value)
{
    out[0] = 0; /* the data follow */
    out[1] = UM_CHAIN_SINGLE_U32;
    out[2] = 0;
    out[3] = type;
    out[4] = UM_CHAIN_NONE;
    out[5] = UM_CHAIN_ELEM_LEN + 4u;
    um_put16(out + 6, 0);
    um_put32(out + 8, value);
}

#endif
