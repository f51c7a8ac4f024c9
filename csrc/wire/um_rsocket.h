/* RSocket 1.0 framing over TCP, as far as the SRS protocol uses it: frames are
 * decoded, encoded, and cut out of a byte stream. The reader allocates, up to
 * its bound; the rest are pure functions. One owner at a time. */
#ifndef UM_WIRE_UM_RSOCKET_H
#define UM_WIRE_UM_RSOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/um_bytes.h"

#define UM_RSOCKET_PREFIX_LEN 3               /* the frame length, which does not count itself */
#define UM_RSOCKET_HEAD_LEN 9                 /* prefix, stream, type and flags: where a body begins */
#define UM_RSOCKET_REQUEST_STREAM_HEAD_LEN 13 /* with the initial request N */
#define UM_RSOCKET_FRAME_MAX 0xffffffu        /* largest value of the frame length */
#define UM_RSOCKET_STREAM_MAX 0x7fffffffu

enum um_rsocket_type {
    UM_RSOCKET_SETUP = 0x01,
    UM_RSOCKET_LEASE = 0x02,
    UM_RSOCKET_KEEPALIVE = 0x03,
    UM_RSOCKET_REQUEST_RESPONSE = 0x04,
    UM_RSOCKET_REQUEST_FNF = 0x05,
    UM_RSOCKET_REQUEST_STREAM = 0x06,
    UM_RSOCKET_REQUEST_CHANNEL = 0x07,
    UM_RSOCKET_REQUEST_N = 0x08,
    UM_RSOCKET_CANCEL = 0x09,
    UM_RSOCKET_PAYLOAD = 0x0a,
    UM_RSOCKET_ERROR = 0x0b,
    UM_RSOCKET_METADATA_PUSH = 0x0c,
    UM_RSOCKET_RESUME = 0x0d,
    UM_RSOCKET_RESUME_OK = 0x0e,
    UM_RSOCKET_EXT = 0x3f
};

#define UM_RSOCKET_IGNORE 0x0200u
#define UM_RSOCKET_METADATA 0x0100u
#define UM_RSOCKET_FOLLOWS 0x0080u  /* requests and PAYLOAD */
#define UM_RSOCKET_RESPOND 0x0080u  /* KEEPALIVE */
#define UM_RSOCKET_RESUMES 0x0080u  /* SETUP: a resume token is there */
#define UM_RSOCKET_COMPLETE 0x0040u /* PAYLOAD, CHANNEL */
#define UM_RSOCKET_LEASES 0x0040u   /* SETUP */
#define UM_RSOCKET_NEXT 0x0020u     /* PAYLOAD */

enum um_rsocket_error {
    UM_RSOCKET_INVALID_SETUP = 0x001,
    UM_RSOCKET_UNSUPPORTED_SETUP = 0x002,
    UM_RSOCKET_REJECTED_SETUP = 0x003,
    UM_RSOCKET_REJECTED_RESUME = 0x004,
    UM_RSOCKET_CONNECTION_ERROR = 0x101,
    UM_RSOCKET_CONNECTION_CLOSE = 0x102,
    UM_RSOCKET_APPLICATION_ERROR = 0x201,
    UM_RSOCKET_REJECTED = 0x202,
    UM_RSOCKET_CANCELED = 0x203,
    UM_RSOCKET_INVALID = 0x204
};

/* One frame; slices point into the bytes it was decoded from. Members that the type does not have are zero. */
struct um_rsocket_frame {
    uint8_t type;
    uint16_t flags;
    uint32_t stream;
    uint16_t major, minor;                           /* SETUP */
    uint32_t keepalive_ms, lifetime_ms;              /* SETUP */
    struct um_slice token, metadata_mime, data_mime; /* SETUP */
    uint32_t request_n;                              /* REQUEST_STREAM, REQUEST_CHANNEL, REQUEST_N */
    uint32_t error;                                  /* ERROR; its text is `data` */
    uint64_t position;                               /* KEEPALIVE */
    struct um_slice metadata;
    struct um_slice data;
};

/* The frame in `body`, which begins behind the length prefix. False: shorter than its type demands, a reserved bit is
 * set, a stream where there may be none or none where there must be one, or a request for 0 frames or more than 2^31-1.
 * Unknown types decode with everything in `data`: whoever reads decides. */
bool um_rsocket_decode(const uint8_t *body, size_t len, struct um_rsocket_frame *out);

/* Bytes the frame takes, prefix included; 0: it has more than a frame can hold. */
size_t um_rsocket_len(const struct um_rsocket_frame *frame);
/* Writes the whole frame, prefix included. 0: no room, or more than a frame can hold. */
size_t um_rsocket_encode(const struct um_rsocket_frame *frame, uint8_t *out, size_t room);

/* The first UM_RSOCKET_HEAD_LEN bytes of a frame whose body is `body_len` bytes: for who has written those already. */
void um_rsocket_put_head(uint8_t *out, uint32_t stream, enum um_rsocket_type type, uint16_t flags, size_t body_len);

/* The SETUP that libum sends. */
void um_rsocket_setup(struct um_rsocket_frame *out, uint32_t keepalive_ms, uint32_t lifetime_ms);

/* ---- cutting a byte stream into frames ---------------------------------- */

/* Keeps the partial frame at the end of what has come, and grows only with bytes that really came: announcing a large
 * frame costs the other side as much as it costs us. */
struct um_rsocket_reader {
    uint8_t *data; /* NULL while nothing is kept */
    size_t capacity, len;
    size_t frame_max; /* longest frame accepted, as its length prefix says it */
    bool used;        /* the frame handed out last lies in `data` */
};

enum um_rsocket_rc {
    UM_RSOCKET_FRAME,    /* *frame is one; valid until the next call, and as long as the input */
    UM_RSOCKET_MORE,     /* the input is used up */
    UM_RSOCKET_CORRUPT,  /* not a frame: close the connection */
    UM_RSOCKET_TOO_LONG, /* longer than frame_max: close the connection */
    UM_RSOCKET_NO_MEMORY /* close the connection */
};

void um_rsocket_reader_init(struct um_rsocket_reader *reader, size_t frame_max);
void um_rsocket_reader_free(struct um_rsocket_reader *reader);
/* The next frame of what is kept and of *input, which moves on. After anything but FRAME and MORE only freeing it is
 * of use. */
enum um_rsocket_rc um_rsocket_read(struct um_rsocket_reader *reader, struct um_slice *input,
                                   struct um_rsocket_frame *frame);

#endif
