/* Shared by the LBMSRS decoders and encoders: fields taken from a batch one after
 * the other, and put into a buffer that has room for them. Not for others. */
#ifndef UM_WIRE_UM_LBMSRS_CUT_H
#define UM_WIRE_UM_LBMSRS_CUT_H

#include "wire/um_lbmsrs.h"

/* What is left of a batch. The first fault stays, and every take after it gives nothing. */
struct um_lbmsrs_cut {
    const uint8_t *at, *end;
    enum um_lbmsrs_rc rc;
};

static inline struct um_lbmsrs_cut um_lbmsrs_cut(struct um_slice bytes)
{
    const uint8_t *end = bytes.len > 0 ? bytes.ptr + bytes.len : bytes.ptr;
    return (struct um_lbmsrs_cut){bytes.ptr, end, UM_LBMSRS_OK};
}

static inline const uint8_t *um_lbmsrs_take(struct um_lbmsrs_cut *cut, size_t len)
{
    if (cut->rc != UM_LBMSRS_OK || (size_t)(cut->end - cut->at) < len) {
        cut->rc = cut->rc != UM_LBMSRS_OK ? cut->rc : UM_LBMSRS_SHORT;
        return NULL;
    }
    const uint8_t *from = cut->at;
    cut->at += len;
    return from;
}

static inline uint8_t um_lbmsrs_take8(struct um_lbmsrs_cut *cut)
{
    const uint8_t *p = um_lbmsrs_take(cut, 1);
    return p != NULL ? *p : 0;
}

static inline uint16_t um_lbmsrs_take16(struct um_lbmsrs_cut *cut)
{
    const uint8_t *p = um_lbmsrs_take(cut, 2);
    return p != NULL ? um_get16(p) : 0;
}

static inline uint32_t um_lbmsrs_take32(struct um_lbmsrs_cut *cut)
{
    const uint8_t *p = um_lbmsrs_take(cut, 4);
    return p != NULL ? um_get32(p) : 0;
}

static inline uint64_t um_lbmsrs_take64(struct um_lbmsrs_cut *cut)
{
    const uint8_t *p = um_lbmsrs_take(cut, 8);
    return p != NULL ? um_get64(p) : 0;
}

static inline uint32_t um_lbmsrs_take_ip(struct um_lbmsrs_cut *cut)
{
    const uint8_t *p = um_lbmsrs_take(cut, 4);
    uint32_t ip = 0;
    if (p != NULL) {
        memcpy(&ip, p, 4);
    }
    return ip;
}

/* A string with its length, which counts the NUL; the slice does not. */
static inline struct um_slice um_lbmsrs_take_string(struct um_lbmsrs_cut *cut, bool may_be_empty)
{
    size_t len = um_lbmsrs_take8(cut);
    const uint8_t *p = um_lbmsrs_take(cut, len);
    if (cut->rc == UM_LBMSRS_OK && (len < (may_be_empty ? 1u : 2u) || memchr(p, 0, len) != p + len - 1)) {
        cut->rc = UM_LBMSRS_BAD_STRING;
    }
    return cut->rc == UM_LBMSRS_OK ? (struct um_slice){p, len - 1} : (struct um_slice){NULL, 0};
}

static inline uint8_t *um_lbmsrs_put8(uint8_t *p, uint8_t value)
{
    *p = value;
    return p + 1;
}

static inline uint8_t *um_lbmsrs_put16(uint8_t *p, uint16_t value)
{
    um_put16(p, value);
    return p + 2;
}

static inline uint8_t *um_lbmsrs_put32(uint8_t *p, uint32_t value)
{
    um_put32(p, value);
    return p + 4;
}

static inline uint8_t *um_lbmsrs_put64(uint8_t *p, uint64_t value)
{
    um_put64(p, value);
    return p + 8;
}

static inline uint8_t *um_lbmsrs_put_bytes(uint8_t *p, const void *bytes, size_t len)
{
    if (len > 0) {
        memcpy(p, bytes, len);
    }
    return p + len;
}

static inline uint8_t *um_lbmsrs_put_string(uint8_t *p, struct um_slice text)
{
    p = um_lbmsrs_put8(p, (uint8_t)(text.len + 1));
    p = um_lbmsrs_put_bytes(p, text.ptr, text.len);
    return um_lbmsrs_put8(p, 0);
}

#endif
