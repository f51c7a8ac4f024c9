/* Forming one LBMC message out of a send: its headers, its share of the payload.
 * Used by the parts of a source session and by transports that take over sending.
 * Lock of the session. */
#ifndef UM_TRANSPORT_SESSION_SRC_MESSAGE_H
#define UM_TRANSPORT_SESSION_SRC_MESSAGE_H

#include "transport/session/um_src_batch.h"

/* Reads the payload of a send piece by piece. */
struct um_gather {
    const struct iovec *iov;
    size_t skip;
};

/* The optional headers of one LBMC message. */
struct um_record_plan {
    const struct um_send *send;
    uint32_t tidx;
    uint16_t batch_flags; /* wire bits; 0 = no BATCH header */
    bool fragmented;
    uint32_t first_sqn, offset;
};

size_t um_record_headers_len(const struct um_record_plan *plan);
/* One LBMC message with `len` bytes of payload. */
void um_record_write(uint8_t *out, const struct um_record_plan *plan, uint32_t sqn, struct um_gather *from, size_t len);
/* User bytes per fragment; *whole_max: the longest message that needs no fragments. 0 + error when the headers leave
 * no room. */
size_t um_fragment_size(const struct um_src_session *session, const struct um_send *send, bool marked,
                        size_t *whole_max);

#endif
