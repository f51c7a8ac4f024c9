/* Compressed byte streams on the wire: a hello from each side, then frames of one LZ4
 * block each (no dictionary, every block by itself). Only their outsides: what is in a
 * block is liblz4's business. Pure; network byte order. */
#ifndef UM_NET_LZ4_FRAME_H
#define UM_NET_LZ4_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/um_bytes.h"

#define UM_LZ4_HELLO_LEN 8u
#define UM_LZ4_FRAME_HDR_LEN 4u
#define UM_LZ4_BLOCK_MAX 65535u /* bytes of a frame, before compression and, since it may not grow, after */
#define UM_LZ4_FRAME_MAX (UM_LZ4_FRAME_HDR_LEN + UM_LZ4_BLOCK_MAX)

struct um_lz4_frame {
    uint16_t orig_len; /* 1.. */
    uint16_t comp_len; /* 1..orig_len; equal: stored as it is */
};

enum um_lz4_rc {
    UM_LZ4_WHOLE,  /* what was asked for is there */
    UM_LZ4_MORE,   /* nothing wrong so far */
    UM_LZ4_CORRUPT /* close the connection */
};

void um_lz4_put_hello(uint8_t hello[UM_LZ4_HELLO_LEN]);
/* The first bytes of a stream, as many as have come; wrong ones show at once. The reserved bytes may have any value. */
enum um_lz4_rc um_lz4_check_hello(const uint8_t *data, size_t len);

static inline void um_lz4_put_frame(uint8_t *data, size_t orig_len, size_t comp_len)
{
    um_put16(data, (uint16_t)orig_len);
    um_put16(data + 2, (uint16_t)comp_len);
}

/* The frame that begins at `data`. WHOLE: its block, comp_len bytes, lies behind the header. */
static inline enum um_lz4_rc um_lz4_get_frame(const uint8_t *data, size_t len, struct um_lz4_frame *frame)
{
    if (len < UM_LZ4_FRAME_HDR_LEN) {
        return UM_LZ4_MORE;
    }
    frame->orig_len = um_get16(data);
    frame->comp_len = um_get16(data + 2);
    if (frame->comp_len == 0 || frame->comp_len > frame->orig_len) {
        return UM_LZ4_CORRUPT;
    }
    return len - UM_LZ4_FRAME_HDR_LEN < frame->comp_len ? UM_LZ4_MORE : UM_LZ4_WHOLE;
}

static inline bool um_lz4_is_stored(const struct um_lz4_frame *frame)
{
    return frame->comp_len == frame->orig_len;
}

#endif
