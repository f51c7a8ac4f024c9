/* Fuzz target: compressed streams. The first 8 bytes choose how the rest comes and is read: what a peer sends, hello
 * and frames, must give the same bytes and the same end in pieces as at once; and what is written comes out again. */
#include <stdlib.h>
#include <string.h>

#include "base/um_bytes.h"
#include "base/um_random.h"
#include "net/um_lz4_stream.h"

#define ROOM 70000u
#define EXPANDED_MAX (8u << 20) /* then the rest of an input is not looked at: it takes time */

/* The stream below: bytes that come, and bytes that went. */
struct wire {
    const uint8_t *data;
    size_t len, at;
    uint8_t *out;
    size_t out_len, out_room;
    struct um_rng *rng; /* NULL: everything at once */
};

static int wire_open(struct um_stream *stream)
{
    return 1;
}

static ssize_t wire_read(struct um_stream *stream, void *data, size_t len)
{
    struct wire *wire = stream->state;
    size_t part = wire->len - wire->at < len ? wire->len - wire->at : len;
    if (part == 0) {
        return um_stream_ended(stream, UM_STREAM_EOF, 0, NULL);
    }
    if (wire->rng != NULL) {
        size_t step = (size_t)um_rng_range(wire->rng, 0, 40); /* 0: none for now */
        part = part < step ? part : step;
    }
    memcpy(data, wire->data + wire->at, part);
    wire->at += part;
    return (ssize_t)part;
}

static ssize_t wire_write(struct um_stream *stream, const struct iovec *iov, int count)
{
    struct wire *wire = stream->state;
    size_t taken = 0;
    for (int i = 0; i < count; i++) {
        size_t most = wire->rng != NULL ? (size_t)um_rng_range(wire->rng, 0, 60) : iov[i].iov_len;
        size_t part = iov[i].iov_len < most ? iov[i].iov_len : most;
        if (part > wire->out_room - wire->out_len) {
            abort(); /* frames are not longer than that */
        }
        memcpy(wire->out + wire->out_len, iov[i].iov_base, part);
        wire->out_len += part;
        taken += part;
        if (part < iov[i].iov_len) {
            break;
        }
    }
    return (ssize_t)taken;
}

static void wire_close(struct um_stream *stream, enum um_stream_closing how)
{
}

static const struct um_stream_ops wire_ops = {wire_open, wire_read, wire_write, wire_close};

static void start(struct um_stream *stream, struct wire *wire, struct um_lz4 *lz4)
{
    um_stream_init(stream);
    stream->ops = &wire_ops;
    stream->state = wire;
    stream->opened = true;
    if (um_lz4_cover(lz4, stream) != 0) {
        abort();
    }
}

struct outcome {
    uint64_t bytes, hash;
    bool opened, cut;
    enum um_stream_end end;
};

static void read_all(struct um_lz4 *lz4, const uint8_t *data, size_t len, struct um_rng *rng, struct outcome *out)
{
    static uint8_t got[ROOM];
    uint8_t hello[64];
    struct wire wire = {.data = data, .len = len, .out = hello, .out_room = sizeof hello, .rng = rng};
    struct um_stream stream;
    int rc;
    ssize_t n = 0;
    *out = (struct outcome){0};
    start(&stream, &wire, lz4);
    while ((rc = um_stream_open(&stream)) == 0) {
    }
    out->opened = rc == 1;
    while (out->opened && n >= 0 && !out->cut) {
        size_t room = rng != NULL ? (size_t)um_rng_range(rng, 1, um_rng_range(rng, 0, 7) == 0 ? ROOM : 500) : ROOM;
        n = um_stream_read(&stream, got, room);
        if (n > (ssize_t)room) {
            abort();
        }
        for (ssize_t i = 0; i < n; i++) {
            out->hash = (out->hash ^ got[i]) * 1099511628211u;
        }
        out->bytes += n > 0 ? (uint64_t)n : 0;
        out->cut = out->bytes > EXPANDED_MAX;
    }
    out->end = stream.end;
    um_stream_close(&stream, UM_STREAM_NOW);
}

/* What one stream writes another one reads. */
static void round_trip(struct um_lz4 *lz4, const uint8_t *data, size_t len, struct um_rng *rng)
{
    static const uint8_t hello[8] = {0x55, 0x4d, 0x5a, 0x31, 1, 0, 0, 0};
    size_t room = sizeof hello + 5 * len + 64;
    uint8_t *frames = malloc(room);
    struct wire wire = {.data = hello, .len = sizeof hello, .out = frames, .out_room = room, .rng = rng};
    struct um_stream stream;
    struct outcome read;
    uint64_t hash = 0;
    if (frames == NULL) {
        return;
    }
    start(&stream, &wire, lz4);
    while (um_stream_open(&stream) == 0) {
    }
    for (size_t at = 0; at < len;) {
        size_t part = (size_t)um_rng_range(rng, 1, len - at);
        ssize_t n = um_stream_write(&stream, data + at, part);
        if (n < 0 || n > (ssize_t)part) {
            abort();
        }
        at += (size_t)n;
    }
    while (stream.unsent) {
        um_stream_flush(&stream);
    }
    um_stream_close(&stream, UM_STREAM_NOW);
    read_all(lz4, frames, wire.out_len, rng, &read);
    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ data[i]) * 1099511628211u;
    }
    if (!read.cut && (read.bytes != len || read.hash != hash || read.end != UM_STREAM_EOF)) {
        abort();
    }
    free(frames);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct um_lz4 *lz4;
    struct outcome whole, pieces;
    struct um_rng rng;
    if (len < 8 || (lz4 == NULL && (lz4 = um_lz4_create()) == NULL)) {
        return 0;
    }
    um_rng_seed(&rng, um_get64(data));
    read_all(lz4, data + 8, len - 8, NULL, &whole);
    read_all(lz4, data + 8, len - 8, &rng, &pieces);
    if (whole.opened != pieces.opened || whole.end != pieces.end || whole.cut != pieces.cut ||
        (!whole.cut && (whole.bytes != pieces.bytes || whole.hash != pieces.hash))) {
        abort();
    }
    round_trip(lz4, data + 8, len - 8, &rng);
    return 0;
}
