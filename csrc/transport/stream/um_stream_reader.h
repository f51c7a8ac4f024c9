/* LBMC messages out of a byte stream: reads into pooled buffers and cuts the bytes into
 * messages that lie where they were read. Used by TCP receive sessions and the request
 * port, each on its loop. What becomes of the messages is the user's business: it asks
 * for one after the other, so that a message costs no indirect call. */
#ifndef UM_TRANSPORT_STREAM_READER_H
#define UM_TRANSPORT_STREAM_READER_H

#include "base/um_buf.h"
#include "net/um_stream.h"
#include "wire/um_lbttcp.h"

struct um_stream_reader {
    struct um_buf_pool *pool; /* of buffers of at least UM_LBMC_MAX_MSGLEN bytes */
    struct um_buf *buf;       /* what messages lie in: refer to it to keep one; NULL: none needed */
    struct um_lbttcp_reader frame;
};

enum um_stream_read_rc {
    UM_STREAM_READ_MORE, /* bytes came, and there may be more to read at once */
    UM_STREAM_READ_LAST, /* bytes came; the stream tells when there is more */
    UM_STREAM_READ_NOTHING,
    UM_STREAM_READ_END, /* of the stream */
    UM_STREAM_READ_NO_MEMORY
};

void um_stream_reader_init(struct um_stream_reader *reader, struct um_buf_pool *pool);
void um_stream_reader_fini(struct um_stream_reader *reader);
/* Gets a buffer ahead of the first read. False: out of memory. */
bool um_stream_reader_reserve(struct um_stream_reader *reader);
/* One read. `got` bytes came: then um_stream_reader_next() until MORE or CORRUPT. */
enum um_stream_read_rc um_stream_reader_read(struct um_stream_reader *reader, struct um_stream *stream, size_t *got);
/* Gives the buffer back when no part of a message is in it: for connections that are mostly silent. */
void um_stream_reader_rest(struct um_stream_reader *reader);

static inline enum um_lbttcp_rc um_stream_reader_next(struct um_stream_reader *reader, struct um_lbmc_msg *msg)
{
    return um_lbttcp_next(&reader->frame, msg);
}

#endif
