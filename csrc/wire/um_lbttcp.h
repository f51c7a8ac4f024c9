/* LBT-TCP framing: LBMC messages back to back in a byte stream. The reader cuts
 * the stream into messages inside one receive buffer; where the bytes come from
 * and which buffer is next is the caller's business. Pure; one owner at a time. */
#ifndef UM_WIRE_LBTTCP_H
#define UM_WIRE_LBTTCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/um_lbmc.h"

/* The bytes [start, end) of `data` are received and not yet parsed. */
struct um_lbttcp_reader {
    uint8_t *data;
    size_t capacity;
    size_t start, end;
};

enum um_lbttcp_rc {
    UM_LBTTCP_MESSAGE, /* *msg is a message; its bytes stay in the buffer */
    UM_LBTTCP_DROPPED, /* a well-framed message with a bad header chain was skipped */
    UM_LBTTCP_MORE,    /* the rest is less than one message */
    UM_LBTTCP_CORRUPT  /* not LBMC: close the connection */
};

/* Begin in an empty buffer of at least UM_LBMC_MAX_MSGLEN bytes. */
static inline void um_lbttcp_start(struct um_lbttcp_reader *reader, uint8_t *data, size_t capacity)
{
    reader->data = data;
    reader->capacity = capacity;
    reader->start = 0;
    reader->end = 0;
}

/* Room behind the last byte received: receive there, then um_lbttcp_received(). */
static inline size_t um_lbttcp_room(const struct um_lbttcp_reader *reader)
{
    return reader->capacity - reader->end;
}

static inline void um_lbttcp_received(struct um_lbttcp_reader *reader, size_t len)
{
    reader->end += len;
}

static inline enum um_lbttcp_rc um_lbttcp_next(struct um_lbttcp_reader *reader, struct um_lbmc_msg *msg)
{
    enum um_lbmc_rc rc = um_lbmc_decode(reader->data + reader->start, reader->end - reader->start, msg);
    if (rc == UM_LBMC_OK) {
        reader->start += msg->msglen;
        return UM_LBTTCP_MESSAGE;
    }
    if (rc == UM_LBMC_SHORT) {
        return UM_LBTTCP_MORE;
    }
    if (rc == UM_LBMC_BAD) {
        reader->start += msg->msglen;
        return UM_LBTTCP_DROPPED;
    }
    return UM_LBTTCP_CORRUPT;
}

/* After MORE: must the partial message move before it can be completed? True when its known or largest possible
 * length does not fit between `start` and the end of the buffer, or no room is left at all. */
bool um_lbttcp_must_move(const struct um_lbttcp_reader *reader);

/* Carry on in another buffer (or at the front of the same one): copies only the partial message. */
void um_lbttcp_move(struct um_lbttcp_reader *reader, uint8_t *data, size_t capacity);

#endif
