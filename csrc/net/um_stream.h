/* Byte streams: what TCP sessions and unicast connections read and write. Plain TCP is
 * the bottom; filters (encryption, compression) cover a stream and are streams
 * themselves, so that their users see no difference. A stream does no waiting and no
 * locking: one thread at a time uses it, and its owner says which lock that takes. */
#ifndef UM_NET_STREAM_H
#define UM_NET_STREAM_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "net/um_loop.h"

/* What TLS begins with (a handshake record), and no LBMC message does. */
#define UM_STREAM_TLS_BYTE 0x16

struct um_stream;

/* Why a stream is at its end. */
enum um_stream_end {
    UM_STREAM_LIVES = 0,
    UM_STREAM_EOF,   /* the other side closed it in order */
    UM_STREAM_FAILED /* it broke, was refused, or carries what a filter cannot make sense of: see um_stream_reason() */
};

enum um_stream_closing {
    UM_STREAM_NOW,   /* what the other side has not read yet may be lost */
    UM_STREAM_GENTLY /* what has come is read and thrown away, since closing over unread bytes resets a connection */
};

enum um_stream_role { UM_STREAM_CONNECTS, UM_STREAM_ACCEPTS };

/* How a kind of stream works. One call per system call, or fewer; none per message. */
struct um_stream_ops {
    /* Goes on with what comes before the first byte: the connection, the handshake. 1: open. 0: not yet, when the
     * descriptor is ready for open_wants. -1: the end. */
    int (*open)(struct um_stream *stream);
    /* Bytes read; 0: none for now, when ready for read_wants; -1: the end. Sets `pending`. */
    ssize_t (*read)(struct um_stream *stream, void *data, size_t len);
    /* Bytes taken; 0: none for now, when ready for write_wants; -1: the end. What was taken is the stream's: it need
     * not be offered again and may have changed place since. A filter that holds taken bytes back sets `unsent` and
     * holds no more than it needs for a unit of its own (a record); a call with count 0 only moves those on. */
    ssize_t (*write)(struct um_stream *stream, const struct iovec *iov, int count);
    /* Tells the other side, as far as that does not wait, closes what is covered and frees the state. */
    void (*close)(struct um_stream *stream, enum um_stream_closing how);
};

/* Embedded in its user's structure. All fields belong to whoever may use the stream. */
struct um_stream {
    const struct um_stream_ops *ops;             /* NULL: closed, or never opened */
    void *state;                                 /* of a filter */
    int fd;                                      /* to wait for and to set options on; -1: closed */
    uint8_t open_wants, read_wants, write_wants; /* UM_FD_READ or UM_FD_WRITE: what the last call waits for */
    bool opened;
    bool negotiates; /* the connection is there, a filter is being opened over it */
    bool pending;    /* more can be read though the descriptor may not be readable again: come back without it */
    bool unsent;     /* taken bytes are held back: watch for write_wants, then write or flush */
    enum um_stream_end end;
    int err;            /* errno value of the end; 0: none */
    const char *reason; /* text of the end where there is no errno value; a constant */
};

/* A filter that covers every new stream of its user: part of the environment of sessions. */
struct um_stream_layer {
    /* Covers the stream, see um_stream_cover(). 0, or -1 + error: then the stream is as it was. */
    int (*cover)(const struct um_stream_layer *layer, struct um_stream *stream, enum um_stream_role role);
    /* No more is to be accepted for now, see um_stream_listener.h; NULL: never so. */
    bool (*busy)(const struct um_stream_layer *layer, uint64_t now_ns);
    uint64_t timeout_ns; /* for opening once the connection is there; 0: as its users have it */
};

/* How long the opening of a stream may take from the connection on. */
static inline uint64_t um_stream_layer_timeout(const struct um_stream_layer *layer, uint64_t otherwise_ns)
{
    return layer != NULL && layer->timeout_ns != 0 ? layer->timeout_ns : otherwise_ns;
}

void um_stream_init(struct um_stream *stream); /* closed */
/* Starts a non-blocking connect, from `from` unless that is INADDR_ANY; port in host order. Goes on in
 * um_stream_open(). `layer` NULL: plain TCP. 0, or -1 + error. */
int um_stream_connect(struct um_stream *stream, struct in_addr from, struct in_addr to, uint16_t port,
                      const struct um_stream_layer *layer);
/* The same without a layer, from a port of the caller's: see um_socket_tcp_connect_from(). */
int um_stream_connect_from(struct um_stream *stream, struct in_addr from, uint16_t from_port, struct in_addr to,
                           uint16_t port);
/* Takes one connection from a listening socket. 1: taken. 0: none waits any more. -1: none for now because of errno,
 * for want of descriptors or memory. Connections that ended before they were taken are stepped over. */
int um_stream_accept(struct um_stream *stream, int listen_fd, struct sockaddr_in *peer);
/* Of one just accepted: the other side has closed it, and nothing waits to be read. */
bool um_stream_peer_has_left(const struct um_stream *stream);
/* For filters, in cover(): what the stream was moves to *below, and `ops` and `state` take its place. */
void um_stream_cover(struct um_stream *stream, struct um_stream *below, const struct um_stream_ops *ops, void *state);
/* For filters, in open(): opens what is covered, see there. 1: the filter's own part is next. */
int um_stream_open_below(struct um_stream *stream, struct um_stream *below);
/* For kinds of streams: note the end, once. Returns -1. */
int um_stream_ended(struct um_stream *stream, enum um_stream_end end, int err, const char *reason);
const char *um_stream_reason(const struct um_stream *stream); /* the end in words */
/* Both directions end at once, but the descriptor stays: who watches it learns of the end. For owners that may not
 * close it, because others wait for it. */
void um_stream_abort(struct um_stream *stream);
void um_stream_close(struct um_stream *stream, enum um_stream_closing how); /* none open: no effect */
/* Addresses of the connection; zeroed when there is none. */
struct sockaddr_in um_stream_local(const struct um_stream *stream);
struct sockaddr_in um_stream_peer(const struct um_stream *stream);

static inline int um_stream_open(struct um_stream *stream)
{
    if (stream->opened) {
        return 1;
    }
    int rc = stream->ops->open(stream);
    stream->opened = rc == 1;
    return rc;
}

static inline ssize_t um_stream_read(struct um_stream *stream, void *data, size_t len)
{
    return stream->ops->read(stream, data, len);
}

static inline ssize_t um_stream_writev(struct um_stream *stream, const struct iovec *iov, int count)
{
    return stream->ops->write(stream, iov, count);
}

static inline ssize_t um_stream_write(struct um_stream *stream, const void *data, size_t len)
{
    struct iovec iov = {(void *)data, len};
    return stream->ops->write(stream, &iov, 1);
}

/* Moves on what a filter holds back. False: the end. */
static inline bool um_stream_flush(struct um_stream *stream)
{
    return !stream->unsent || stream->ops->write(stream, NULL, 0) >= 0;
}

/* What to watch the descriptor for while the user wants to read (UM_FD_READ) and has bytes to write (UM_FD_WRITE). */
static inline uint32_t um_stream_interest(const struct um_stream *stream, uint32_t wanted)
{
    if (!stream->opened) {
        return stream->open_wants;
    }
    return ((wanted & UM_FD_READ) ? stream->read_wants : 0u) |
           ((wanted & UM_FD_WRITE) || stream->unsent ? stream->write_wants : 0u);
}

/* What a ready descriptor means for the stream: UM_FD_READ and UM_FD_WRITE. Errors show when it is read. */
static inline uint32_t um_stream_ready(const struct um_stream *stream, uint32_t ready)
{
    uint32_t means = ready & (UM_FD_HANGUP | UM_FD_EXCEPT) ? UM_FD_READ : 0;
    return means | (ready & stream->read_wants ? UM_FD_READ : 0) | (ready & stream->write_wants ? UM_FD_WRITE : 0);
}

#endif
