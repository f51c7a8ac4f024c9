/* A message that is kept until its turn comes: its number, a reference on the
 * bytes and the few header fields that delivery needs; one cache line. Used by
 * the delivery controller only; same thread as the engine. */
#ifndef UM_DELIVERY_HELD_H
#define UM_DELIVERY_HELD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/um_buf.h"
#include "wire/um_lbmc.h"

struct um_held {
    struct um_buf *buf;  /* holds the bytes */
    const uint8_t *data; /* the payload in it */
    uint64_t stamp_ns;
    uint32_t len, sqn;
    uint32_t present; /* enum um_lbmc_present: of what is kept */
    struct {
        uint32_t first_sqn, offset, len;
    } frag;
    uint32_t request_qidx, request_ip;
    uint16_t request_port;
    uint16_t batch_flags;
    uint16_t part_back;     /* topic name, else application header chain: so far before the payload */
    uint16_t instance_back; /* CTXINSTR of a request, the same; 0: in a copy, behind it */
};

/* Keeps the bytes: by a reference on `buf`, or by a copy where they lie in shared memory (`buf` NULL). False: out of
 * memory. */
bool um_held_keep(struct um_held *held, const struct um_lbmc_msg *msg, struct um_buf *buf);
/* The message again, with what was kept of its headers: as the decoder fills only what `present` names. */
void um_held_view(const struct um_held *held, struct um_lbmc_msg *out);
void um_held_release(struct um_held *held); /* gives the bytes back; the structure is the caller's */

#endif
