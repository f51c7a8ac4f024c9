/* A filter that makes a byte stream as awkward as the rules of um_stream.h allow. It begins with a handshake, hands out
 * few bytes at a time and keeps the rest (readable without its descriptor being readable), takes few bytes at a time
 * and keeps those the socket did not take, must read credit in order to write and write credit in order to read, and
 * ends with an error when told to. On the wire: 'H' once, then 'D' and a byte of data, or 'C', credit for
 * AWKWARD_CREDIT bytes. */
#ifndef UM_SUPPORT_TEST_AWKWARD_H
#define UM_SUPPORT_TEST_AWKWARD_H

#include <errno.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "net/um_stream.h"

enum { AWKWARD_CREDIT = 256, AWKWARD_READ = 3, AWKWARD_WRITE = 5, AWKWARD_IN = AWKWARD_CREDIT + 64 };

static int awkward_fail_reads = -1; /* reads until one fails; -1: never */
static int awkward_live;            /* filters that exist */

struct awkward {
    struct um_stream below;
    bool greeted, heard, half; /* half: 'D' has come, its byte has not */
    uint8_t in[AWKWARD_IN];
    size_t in_len;
    uint8_t out[16];
    size_t out_len, out_at;
    int credit, consumed, owed;
};

static inline void awkward_put(struct awkward *a, uint8_t byte)
{
    a->out[a->out_len++] = byte;
}

/* 1: everything is out. 0: the socket takes no more. -1: the end. */
static inline int awkward_push(struct um_stream *stream)
{
    struct awkward *a = stream->state;
    if (a->out_len == 0 && a->owed > 0) {
        a->owed--;
        awkward_put(a, 'C');
    }
    while (a->out_at < a->out_len) {
        ssize_t sent = um_stream_write(&a->below, a->out + a->out_at, 1);
        if (sent < 0) {
            return um_stream_ended(stream, UM_STREAM_FAILED, a->below.err, a->below.reason);
        }
        if (sent == 0) {
            break;
        }
        a->out_at++;
    }
    if (a->out_at == a->out_len) {
        a->out_at = a->out_len = 0;
    }
    bool flushed = um_stream_flush(&a->below);
    stream->unsent = a->out_len > 0 || a->owed > 0 || a->below.unsent;
    stream->write_wants = a->below.write_wants;
    stream->pending |= a->below.pending;
    return !flushed ? -1 : !stream->unsent;
}

/* Bytes read from below, as one read gives them; 0; -1. */
static inline ssize_t awkward_pull(struct um_stream *stream)
{
    struct awkward *a = stream->state;
    uint8_t raw[32];
    if (a->in_len + sizeof raw > sizeof a->in) {
        return 0;
    }
    ssize_t got = um_stream_read(&a->below, raw, sizeof raw);
    if (got < 0) {
        return um_stream_ended(stream, a->below.end, a->below.err, a->below.reason);
    }
    for (ssize_t i = 0; i < got; i++) {
        if (a->half) {
            a->in[a->in_len++] = raw[i];
            a->half = false;
        } else if (raw[i] == 'D') {
            a->half = true;
        } else if (raw[i] == 'C') {
            a->credit += AWKWARD_CREDIT;
        } else {
            return um_stream_ended(stream, UM_STREAM_FAILED, EPROTO, "not an awkward stream");
        }
    }
    return got;
}

static inline int awkward_open(struct um_stream *stream)
{
    struct awkward *a = stream->state;
    int rc = um_stream_open(&a->below);
    if (rc <= 0) {
        stream->open_wants = a->below.open_wants;
        return rc == 0 ? 0 : um_stream_ended(stream, a->below.end, a->below.err, a->below.reason);
    }
    if (!a->greeted) {
        a->greeted = true;
        awkward_put(a, 'H');
    }
    if ((rc = awkward_push(stream)) <= 0) {
        stream->open_wants = a->below.write_wants;
        return rc;
    }
    uint8_t byte;
    ssize_t got = um_stream_read(&a->below, &byte, 1);
    if (got <= 0) {
        stream->open_wants = a->below.read_wants;
        return got == 0 ? 0 : um_stream_ended(stream, a->below.end, a->below.err, a->below.reason);
    }
    stream->pending = a->below.pending;
    return byte == 'H' ? 1 : um_stream_ended(stream, UM_STREAM_FAILED, EPROTO, "not an awkward stream");
}

static inline ssize_t awkward_read(struct um_stream *stream, void *data, size_t len)
{
    struct awkward *a = stream->state;
    int rc = awkward_push(stream);
    /* No more is read before the credit is out, unless that waits for something to be read. */
    if (rc < 0 || (rc == 0 && a->below.write_wants == UM_FD_WRITE)) {
        stream->read_wants = a->below.write_wants;
        stream->pending = a->below.pending;
        return rc;
    }
    if (awkward_fail_reads >= 0 && awkward_fail_reads-- == 0) {
        return um_stream_ended(stream, UM_STREAM_FAILED, EPROTO, "awkward on purpose");
    }
    ssize_t got = a->in_len == 0 ? awkward_pull(stream) : 1;
    stream->read_wants = a->below.read_wants;
    size_t take = a->in_len < AWKWARD_READ ? a->in_len : AWKWARD_READ;
    take = take < len ? take : len;
    memcpy(data, a->in, take);
    memmove(a->in, a->in + take, a->in_len - take);
    a->in_len -= take;
    a->consumed += (int)take;
    if (a->consumed >= AWKWARD_CREDIT) {
        a->consumed -= AWKWARD_CREDIT;
        a->owed++;
        awkward_push(stream);
    }
    stream->pending = a->in_len > 0 || a->below.pending || (take == 0 && got > 0);
    return take > 0 ? (ssize_t)take : got < 0 ? -1 : 0;
}

static inline ssize_t awkward_write(struct um_stream *stream, const struct iovec *iov, int count)
{
    struct awkward *a = stream->state;
    int rc = awkward_push(stream);
    if (rc <= 0 || count == 0) {
        return rc < 0 ? -1 : 0;
    }
    while (a->credit == 0) {
        ssize_t got = awkward_pull(stream);
        stream->pending = a->in_len > 0 || a->below.pending;
        if (got <= 0) {
            stream->write_wants = a->below.read_wants;
            return got;
        }
    }
    size_t take = 0;
    for (int i = 0; i < count; i++) {
        for (size_t at = 0; at < iov[i].iov_len && take < AWKWARD_WRITE && a->credit > 0; at++) {
            awkward_put(a, 'D');
            awkward_put(a, ((const uint8_t *)iov[i].iov_base)[at]);
            a->credit--;
            take++;
        }
    }
    return awkward_push(stream) < 0 ? -1 : (ssize_t)take;
}

static inline void awkward_close(struct um_stream *stream, enum um_stream_closing how)
{
    struct awkward *a = stream->state;
    if (stream->opened) {
        awkward_push(stream);
    }
    um_stream_close(&a->below, how);
    __atomic_fetch_sub(&awkward_live, 1, __ATOMIC_RELAXED);
    um_free(a);
}

static const struct um_stream_ops awkward_ops = {awkward_open, awkward_read, awkward_write, awkward_close};

static inline int awkward_cover(const struct um_stream_layer *layer, struct um_stream *stream, enum um_stream_role role)
{
    struct awkward *a = um_calloc(1, sizeof *a);
    if (a == NULL) {
        return um_error_nomem("awkward stream", sizeof *a);
    }
    a->credit = AWKWARD_CREDIT;
    um_stream_cover(stream, &a->below, &awkward_ops, a);
    stream->open_wants = UM_FD_READ | UM_FD_WRITE;
    __atomic_fetch_add(&awkward_live, 1, __ATOMIC_RELAXED);
    return 0;
}

static const struct um_stream_layer awkward_layer = {.cover = awkward_cover};

static inline int awkward_cover_twice(const struct um_stream_layer *layer, struct um_stream *stream,
                                      enum um_stream_role role)
{
    return awkward_cover(layer, stream, role) == 0 ? awkward_cover(layer, stream, role) : -1;
}

static const struct um_stream_layer awkward_twice = {.cover = awkward_cover_twice};

#endif
