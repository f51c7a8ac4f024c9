/* The filter that compresses. A stream has memory for frames only while a part of one is
 * on its way: at most one buffer in each direction, and one for a frame that is longer
 * than the room it is read into. A peer makes it expand no more than a frame at a time. */
#include "net/um_lz4_stream.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "base/um_buf.h"
#include "base/um_error.h"
#include "base/um_mem.h"
#include "net/um_lz4_frame.h"

#define BUFFERS_KEPT 16u
/* liblz4 never makes less of this many bytes. */
#define INCOMPRESSIBLE_LEN 12u

struct um_lz4 {
    void *library;
    int (*compress)(const char *from, char *to, int len, int room);
    int (*decompress)(const char *from, char *to, int len, int room);
    struct um_buf_pool *pool; /* of buffers of UM_LZ4_FRAME_MAX bytes */
};

/* Bytes [at, end) of a buffer; NULL: none. */
struct bytes {
    struct um_buf *buf;
    uint32_t at, end;
};

struct lz4_stream {
    struct um_stream below;
    struct um_lz4 *lz4;
    uint8_t hello[UM_LZ4_HELLO_LEN]; /* what has come of the other side's */
    uint8_t hello_sent, hello_got;
    struct bytes in;    /* frames as they came */
    struct bytes plain; /* of a frame that did not fit where it was read to */
    struct bytes out;   /* frames that are not below yet */
};

static size_t bytes_len(const struct bytes *bytes)
{
    return bytes->end - bytes->at;
}

static bool bytes_reserve(struct bytes *bytes, struct um_buf_pool *pool)
{
    if (bytes->buf == NULL) {
        *bytes = (struct bytes){.buf = um_buf_get(pool)};
    }
    return bytes->buf != NULL;
}

static void bytes_free(struct bytes *bytes)
{
    if (bytes->buf != NULL) {
        um_buf_unref(bytes->buf);
        *bytes = (struct bytes){0};
    }
}

/* `len` bytes of it have been used. */
static void bytes_used(struct bytes *bytes, size_t len)
{
    bytes->at += (uint32_t)len;
    if (bytes->at == bytes->end) {
        bytes_free(bytes);
    }
}

/* ---- what the stream shows of the one below ---- */

static int ends_as_below(struct um_stream *stream)
{
    const struct lz4_stream *s = stream->state;
    if (s->below.end == UM_STREAM_EOF && bytes_len(&s->in) > 0) {
        return um_stream_ended(stream, UM_STREAM_FAILED, 0, "the stream ended within a compressed frame");
    }
    return um_stream_ended(stream, s->below.end, s->below.err, s->below.reason);
}

/* A frame lies there whole, or what lies there is none. */
static bool has_frame(const struct lz4_stream *s)
{
    struct um_lz4_frame frame;
    return s->in.buf != NULL && um_lz4_get_frame(s->in.buf->data + s->in.at, bytes_len(&s->in), &frame) != UM_LZ4_MORE;
}

static void show(struct um_stream *stream)
{
    const struct lz4_stream *s = stream->state;
    stream->read_wants = s->below.read_wants;
    stream->write_wants = s->below.write_wants;
    stream->unsent = s->out.buf != NULL || s->below.unsent;
    stream->pending = s->plain.buf != NULL || s->below.pending || has_frame(s);
}

/* ---- writing ---- */

/* Moves on what is held back, here and below. False: the end. */
static bool push(struct um_stream *stream)
{
    struct lz4_stream *s = stream->state;
    ssize_t sent = 1;
    while (s->out.buf != NULL && sent > 0) {
        sent = um_stream_write(&s->below, s->out.buf->data + s->out.at, bytes_len(&s->out));
        if (sent > 0) {
            bytes_used(&s->out, (size_t)sent);
        }
    }
    if (sent < 0 || !um_stream_flush(&s->below)) {
        ends_as_below(stream);
        return false;
    }
    return true;
}

/* There is room for it as it is. */
static void put_frame(struct lz4_stream *s, const uint8_t *data, size_t len)
{
    uint8_t *frame = s->out.buf->data + s->out.end, *block = frame + UM_LZ4_FRAME_HDR_LEN;
    int made = 0;
    if (len > INCOMPRESSIBLE_LEN) {
        made = s->lz4->compress((const char *)data, (char *)block, (int)len, (int)len - 1);
    }
    if (made <= 0) {
        memcpy(block, data, len);
    }
    size_t comp_len = made > 0 ? (size_t)made : len;
    um_lz4_put_frame(frame, len, comp_len);
    s->out.end += (uint32_t)(UM_LZ4_FRAME_HDR_LEN + comp_len);
}

/* As many pieces as surely find room in the buffer, of which one always does. Their bytes. */
static size_t put_frames(struct lz4_stream *s, const struct iovec *iov, int count)
{
    size_t taken = 0;
    for (int i = 0; i < count; i++) {
        for (size_t at = 0, part; at < iov[i].iov_len; at += part) {
            part = iov[i].iov_len - at < UM_LZ4_BLOCK_MAX ? iov[i].iov_len - at : UM_LZ4_BLOCK_MAX;
            if (UM_LZ4_FRAME_HDR_LEN + part > s->out.buf->capacity - s->out.end) {
                return taken;
            }
            put_frame(s, (const uint8_t *)iov[i].iov_base + at, part);
            taken += part;
        }
    }
    return taken;
}

static ssize_t lz4_write(struct um_stream *stream, const struct iovec *iov, int count)
{
    struct lz4_stream *s = stream->state;
    size_t taken = 0;
    if (!push(stream)) {
        return -1;
    }
    if (s->out.buf == NULL && count > 0) {
        if (!bytes_reserve(&s->out, s->lz4->pool)) {
            return um_stream_ended(stream, UM_STREAM_FAILED, ENOMEM, NULL);
        }
        taken = put_frames(s, iov, count);
        if (taken == 0) {
            bytes_free(&s->out);
        }
        if (!push(stream)) {
            return -1;
        }
    }
    show(stream);
    return (ssize_t)taken;
}

/* ---- reading ---- */

/* Bytes that came; 0; -1. What is left of a frame moves to where the whole of it fits. */
static ssize_t fill(struct um_stream *stream)
{
    struct lz4_stream *s = stream->state;
    if (!bytes_reserve(&s->in, s->lz4->pool)) {
        return um_stream_ended(stream, UM_STREAM_FAILED, ENOMEM, NULL);
    }
    uint8_t *data = s->in.buf->data;
    if (s->in.at > 0) {
        memmove(data, data + s->in.at, bytes_len(&s->in));
        s->in.end -= s->in.at;
        s->in.at = 0;
    }
    ssize_t got = um_stream_read(&s->below, data + s->in.end, s->in.buf->capacity - s->in.end);
    if (got < 0) {
        return ends_as_below(stream);
    }
    s->in.end += (uint32_t)got;
    bytes_used(&s->in, 0); /* silent streams need no memory */
    return got;
}

/* False: the block is not what the frame says. */
static bool unpack_block(const struct lz4_stream *s, const struct um_lz4_frame *frame, uint8_t *to)
{
    const uint8_t *block = s->in.buf->data + s->in.at + UM_LZ4_FRAME_HDR_LEN;
    if (um_lz4_is_stored(frame)) {
        memcpy(to, block, frame->orig_len);
        return true;
    }
    return s->lz4->decompress((const char *)block, (char *)to, frame->comp_len, frame->orig_len) == frame->orig_len;
}

/* The frame goes to the room there is, or to memory of its own. Bytes put into the room; -1: the end. */
static ssize_t unpack_frame(struct um_stream *stream, const struct um_lz4_frame *frame, uint8_t *to, size_t room)
{
    struct lz4_stream *s = stream->state;
    bool fits = frame->orig_len <= room;
    if (!fits && !bytes_reserve(&s->plain, s->lz4->pool)) {
        return um_stream_ended(stream, UM_STREAM_FAILED, ENOMEM, NULL);
    }
    if (!unpack_block(s, frame, fits ? to : s->plain.buf->data)) {
        bytes_free(&s->plain);
        return um_stream_ended(stream, UM_STREAM_FAILED, 0,
                               "CoreApi-9565-23: a compressed frame does not expand to the length it says");
    }
    bytes_used(&s->in, UM_LZ4_FRAME_HDR_LEN + (size_t)frame->comp_len);
    s->plain.end = fits ? 0 : frame->orig_len;
    return fits ? frame->orig_len : 0;
}

static size_t take_plain(struct lz4_stream *s, uint8_t *to, size_t room)
{
    size_t part = bytes_len(&s->plain) < room ? bytes_len(&s->plain) : room;
    memcpy(to, s->plain.buf->data + s->plain.at, part);
    bytes_used(&s->plain, part);
    return part;
}

/* Whole frames that have come, as far as there is room; of one that is longer than all of it, a part. Bytes; -1: the
 * end. What is wrong behind good frames shows in the next call. */
static ssize_t unpack(struct um_stream *stream, uint8_t *data, size_t len)
{
    struct lz4_stream *s = stream->state;
    size_t got = 0;
    while (got < len) {
        struct um_lz4_frame frame;
        if (s->plain.buf != NULL) {
            got += take_plain(s, data + got, len - got);
            continue;
        }
        enum um_lz4_rc rc =
            s->in.buf == NULL ? UM_LZ4_MORE : um_lz4_get_frame(s->in.buf->data + s->in.at, bytes_len(&s->in), &frame);
        if (rc == UM_LZ4_MORE || (got > 0 && (rc == UM_LZ4_CORRUPT || frame.orig_len > len - got))) {
            break;
        }
        if (rc == UM_LZ4_CORRUPT) {
            return um_stream_ended(stream, UM_STREAM_FAILED, 0,
                                   "CoreApi-9565-23: a compressed frame has lengths that cannot be");
        }
        ssize_t put = unpack_frame(stream, &frame, data + got, len - got);
        if (put < 0) {
            return got > 0 ? (ssize_t)got : -1;
        }
        got += (size_t)put;
    }
    return (ssize_t)got;
}

static ssize_t lz4_read(struct um_stream *stream, void *data, size_t len)
{
    ssize_t got = unpack(stream, data, len);
    if (got == 0) {
        got = fill(stream);
        got = got > 0 ? unpack(stream, data, len) : got;
    }
    show(stream);
    return got;
}

/* ---- the beginning ---- */

/* 1: sent. 0: not yet. -1: the end. */
static int send_hello(struct um_stream *stream)
{
    struct lz4_stream *s = stream->state;
    uint8_t hello[UM_LZ4_HELLO_LEN];
    um_lz4_put_hello(hello);
    ssize_t sent = 1;
    while (s->hello_sent < sizeof hello && sent > 0) {
        sent = um_stream_write(&s->below, hello + s->hello_sent, sizeof hello - s->hello_sent);
        s->hello_sent = (uint8_t)(s->hello_sent + (sent > 0 ? sent : 0));
    }
    if (sent < 0 || !um_stream_flush(&s->below)) {
        return ends_as_below(stream);
    }
    return s->hello_sent == sizeof hello && !s->below.unsent;
}

/* 1: it has come. 0: not yet. -1: the end. Nothing behind it is read. */
static int read_hello(struct um_stream *stream)
{
    struct lz4_stream *s = stream->state;
    for (;;) {
        switch (um_lz4_check_hello(s->hello, s->hello_got)) {
        case UM_LZ4_WHOLE:
            return 1;
        case UM_LZ4_CORRUPT:
            return um_stream_ended(stream, UM_STREAM_FAILED, 0,
                                   "Core-9565-38: the other side does not begin with the hello of LZ4 compression: "
                                   "its context has another setting of compression");
        case UM_LZ4_MORE:
            break;
        }
        ssize_t got = um_stream_read(&s->below, s->hello + s->hello_got, sizeof s->hello - s->hello_got);
        if (got <= 0) {
            return got < 0 ? ends_as_below(stream) : 0;
        }
        s->hello_got = (uint8_t)(s->hello_got + got);
    }
}

static int lz4_open(struct um_stream *stream)
{
    struct lz4_stream *s = stream->state;
    int rc = um_stream_open_below(stream, &s->below);
    if (rc <= 0) {
        return rc;
    }
    int sent = send_hello(stream), got = sent < 0 ? -1 : read_hello(stream);
    if (got < 0) {
        return -1;
    }
    stream->open_wants = (uint8_t)((sent == 0 ? s->below.write_wants : 0) | (got == 0 ? s->below.read_wants : 0));
    show(stream);
    return sent == 1 && got == 1;
}

/* ---- beginning and end ---- */

static void lz4_close(struct um_stream *stream, enum um_stream_closing how)
{
    struct lz4_stream *s = stream->state;
    if (stream->opened && stream->end == UM_STREAM_LIVES) {
        push(stream);
    }
    um_stream_close(&s->below, how);
    bytes_free(&s->in);
    bytes_free(&s->plain);
    bytes_free(&s->out);
    um_free(s);
}

static const struct um_stream_ops lz4_ops = {lz4_open, lz4_read, lz4_write, lz4_close};

int um_lz4_cover(struct um_lz4 *lz4, struct um_stream *stream)
{
    struct lz4_stream *s = um_calloc(1, sizeof *s);
    if (s == NULL) {
        return um_error_nomem("compressed stream", sizeof *s);
    }
    s->lz4 = lz4;
    um_stream_cover(stream, &s->below, &lz4_ops, s);
    stream->open_wants = s->below.opened ? UM_FD_READ | UM_FD_WRITE : s->below.open_wants;
    return 0;
}

/* ISO C has no cast from an object pointer to a function. */
static bool find(void *library, const char *name, void *out)
{
    void *found = dlsym(library, name);
    memcpy(out, &found, sizeof found);
    return found != NULL;
}

struct um_lz4 *um_lz4_create(void)
{
    struct um_lz4 *lz4 = um_calloc(1, sizeof *lz4);
    if (lz4 == NULL || (lz4->pool = um_buf_pool_create(UM_LZ4_FRAME_MAX, BUFFERS_KEPT)) == NULL) {
        um_free(lz4);
        um_error_nomem("compression", sizeof *lz4);
        return NULL;
    }
    lz4->library = dlopen("liblz4.so.1", RTLD_NOW | RTLD_LOCAL);
    if (lz4->library == NULL || !find(lz4->library, "LZ4_compress_default", &lz4->compress) ||
        !find(lz4->library, "LZ4_decompress_safe", &lz4->decompress)) {
        const char *why = dlerror();
        um_error(UM_EOPNOTSUPP, "CoreApi-9727-02",
                 "context option compression lz4: liblz4 cannot be used: %s; install it (Debian: liblz4-1), or set "
                 "compression none",
                 why != NULL ? why : "not found");
        um_lz4_destroy(lz4);
        return NULL;
    }
    return lz4;
}

void um_lz4_destroy(struct um_lz4 *lz4)
{
    if (lz4 == NULL) {
        return;
    }
    um_buf_pool_release(lz4->pool);
    if (lz4->library != NULL) {
        dlclose(lz4->library);
    }
    um_free(lz4);
}
