/* The sequence numbers of a stream: nobody else assigns them, and nobody else calls the one who keeps what was sent.
 * Lock of the session; for buffers of a transport by the turns of their callers (um_src_buffers). */
#ifndef UM_TRANSPORT_SESSION_SRC_NUMBERS_H
#define UM_TRANSPORT_SESSION_SRC_NUMBERS_H

#include "transport/session/um_src_session.h"

/* A number that a caller brings may be ahead of the next one by this much: what receivers take for a gap, not for
 * another stream (as far as hostile numbers may lead, 2^20). */
#define UM_SRC_NUMBERS_AHEAD (1u << 20)

/* The next message, or fragment, gets this number. */
static inline uint32_t um_src_number_next(const struct um_src_stream *stream)
{
    return stream->next_sqn;
}

/* As TSNI tell it. */
static inline uint32_t um_src_number_last(const struct um_src_stream *stream)
{
    return stream->next_sqn - 1;
}

/* So many numbers, from the one returned on, are assigned: to what is formed now, or to what will never be sent. */
static inline uint32_t um_src_numbers_take(struct um_src_stream *stream, uint32_t count)
{
    uint32_t first = stream->next_sqn;
    stream->next_sqn = first + count;
    return first;
}

/* The last ones taken, which nobody has seen. */
static inline void um_src_numbers_give_back(struct um_src_stream *stream, uint32_t count)
{
    stream->next_sqn -= count;
}

/* The send brings its own first number, which is the next one until um_src_number_settle(). 0, or -1 + UM_EINVAL: it
 * goes back, or too far ahead. The first message of a stream may have any. */
int um_src_number_bring(struct um_src_stream *stream, uint32_t number);
/* The send is over. Where it has not used the number, the next one is what it was `before`. */
static inline void um_src_number_settle(struct um_src_stream *stream, uint32_t number, uint32_t before)
{
    if (stream->next_sqn == number) {
        stream->next_sqn = before;
    } else {
        stream->numbered = true;
    }
}

/* A message is formed as it goes out: `len` bytes, the first `headers` of which are its headers. */
static inline void um_src_keep(struct um_src_stream *stream, uint32_t sqn, const uint8_t *message, size_t headers,
                               size_t len)
{
    if (__builtin_expect(stream->keeper != NULL, 0)) {
        stream->keeper->keep(stream->keeper, stream, sqn, message, headers, len);
    }
}

#endif
