/* Byte streams over TCP: connecting, accepting, and the plain stream, which is one
 * system call for each call. Knows no thread and no loop. */
#define _GNU_SOURCE
#include "net/um_stream.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/um_error.h"
#include "base/um_fork.h"
#include "net/um_socket.h"

#define UM_SEND_FLAGS (MSG_NOSIGNAL | MSG_DONTWAIT)
#define UM_SWALLOW_READS 64

int um_stream_ended(struct um_stream *stream, enum um_stream_end end, int err, const char *reason)
{
    if (stream->end == UM_STREAM_LIVES) {
        stream->end = end;
        stream->err = err;
        stream->reason = reason;
    }
    return -1;
}

const char *um_stream_reason(const struct um_stream *stream)
{
    if (stream->reason != NULL) {
        return stream->reason;
    }
    return stream->err != 0 ? strerror(stream->err) : "closed by the other side";
}

static int um_stream_failed(struct um_stream *stream, int err)
{
    return um_stream_ended(stream, UM_STREAM_FAILED, err, NULL);
}

/* ---- plain TCP ---- */

/* A free port of the ephemeral range can connect to itself. */
static bool plain_is_own_peer(int fd, const struct sockaddr_in *peer)
{
    struct sockaddr_in local;
    socklen_t len = sizeof local;
    return getsockname(fd, (struct sockaddr *)&local, &len) == 0 && local.sin_port == peer->sin_port &&
           local.sin_addr.s_addr == peer->sin_addr.s_addr;
}

static int plain_open(struct um_stream *stream)
{
    int error = 0;
    socklen_t len = sizeof error;
    if (getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0) {
        error = errno;
    }
    if (error != 0) {
        return um_stream_failed(stream, error);
    }
    struct sockaddr_in peer;
    len = sizeof peer;
    if (getpeername(stream->fd, (struct sockaddr *)&peer, &len) != 0) {
        return errno == ENOTCONN ? 0 : um_stream_failed(stream, errno);
    }
    return plain_is_own_peer(stream->fd, &peer) ? um_stream_failed(stream, ECONNREFUSED) : 1;
}

static ssize_t plain_read(struct um_stream *stream, void *data, size_t len)
{
    ssize_t got;
    do {
        got = recv(stream->fd, data, len, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got > 0) {
        return got;
    }
    if (got == 0) {
        return um_stream_ended(stream, UM_STREAM_EOF, 0, NULL);
    }
    return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : um_stream_failed(stream, errno);
}

static ssize_t plain_write(struct um_stream *stream, const struct iovec *iov, int count)
{
    if (count == 0) {
        return 0;
    }
    struct msghdr msg = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)count};
    ssize_t sent;
    do {
        sent = count == 1 ? send(stream->fd, iov->iov_base, iov->iov_len, UM_SEND_FLAGS)
                          : sendmsg(stream->fd, &msg, UM_SEND_FLAGS);
    } while (sent < 0 && errno == EINTR);
    if (sent >= 0) {
        return sent;
    }
    bool later = errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == ENOMEM;
    return later ? 0 : um_stream_failed(stream, errno);
}

static void plain_swallow(int fd)
{
    char data[4096];
    for (int i = 0; i < UM_SWALLOW_READS && recv(fd, data, sizeof data, MSG_DONTWAIT) > 0; i++) {
    }
}

/* Ended by shutdown() too: another thread may hold on to the socket in poll(). */
static void plain_close(struct um_stream *stream, enum um_stream_closing how)
{
    if (how == UM_STREAM_GENTLY) {
        plain_swallow(stream->fd);
    }
    shutdown(stream->fd, SHUT_RDWR);
    um_fd_close(stream->fd);
}

static const struct um_stream_ops plain_ops = {plain_open, plain_read, plain_write, plain_close};

static void plain_start(struct um_stream *stream, int fd, bool opened)
{
    *stream = (struct um_stream){.ops = &plain_ops,
                                 .fd = fd,
                                 .open_wants = UM_FD_WRITE,
                                 .read_wants = UM_FD_READ,
                                 .write_wants = UM_FD_WRITE,
                                 .opened = opened};
}

/* ---- beginning and end ---- */

void um_stream_init(struct um_stream *stream)
{
    *stream = (struct um_stream){.fd = -1};
}

int um_stream_connect(struct um_stream *stream, struct in_addr from, struct in_addr to, uint16_t port,
                      const struct um_stream_layer *layer)
{
    int fd = um_socket_tcp_connect(from, to, port);
    if (fd < 0) {
        return -1;
    }
    plain_start(stream, fd, false);
    if (layer != NULL && layer->cover(layer, stream, UM_STREAM_CONNECTS) != 0) {
        um_stream_close(stream, UM_STREAM_NOW);
        return -1;
    }
    return 0;
}

int um_stream_connect_from(struct um_stream *stream, struct in_addr from, uint16_t from_port, struct in_addr to,
                           uint16_t port)
{
    int fd = um_socket_tcp_connect_from(from, from_port, to, port);
    if (fd < 0) {
        return -1;
    }
    plain_start(stream, fd, false);
    return 0;
}

int um_stream_accept(struct um_stream *stream, int listen_fd, struct sockaddr_in *peer)
{
    for (;;) {
        socklen_t len = sizeof *peer;
        int fd = um_fd_own(accept4(listen_fd, (struct sockaddr *)peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (fd >= 0) {
            plain_start(stream, fd, true);
            return 1;
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return 0;
        }
        if (errno != EINTR && errno != ECONNABORTED && errno != EPROTO) {
            return -1;
        }
    }
}

bool um_stream_peer_has_left(const struct um_stream *stream)
{
    char byte;
    ssize_t got = recv(stream->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

void um_stream_cover(struct um_stream *stream, struct um_stream *below, const struct um_stream_ops *ops, void *state)
{
    *below = *stream;
    stream->ops = ops;
    stream->state = state;
    stream->opened = false;
}

int um_stream_open_below(struct um_stream *stream, struct um_stream *below)
{
    int rc = um_stream_open(below);
    stream->negotiates = rc > 0 || below->negotiates;
    if (rc == 0) {
        stream->open_wants = below->open_wants;
    }
    return rc < 0 ? um_stream_ended(stream, below->end, below->err, below->reason) : rc;
}

void um_stream_abort(struct um_stream *stream)
{
    if (stream->fd >= 0) {
        shutdown(stream->fd, SHUT_RDWR);
        um_stream_failed(stream, ECONNABORTED);
    }
}

void um_stream_close(struct um_stream *stream, enum um_stream_closing how)
{
    if (stream->ops != NULL) {
        stream->ops->close(stream, how);
        um_stream_init(stream);
    }
}

/* ---- addresses ---- */

struct sockaddr_in um_stream_local(const struct um_stream *stream)
{
    struct sockaddr_in local;
    socklen_t len = sizeof local;
    if (stream->fd < 0 || getsockname(stream->fd, (struct sockaddr *)&local, &len) != 0) {
        local = (struct sockaddr_in){0};
    }
    return local;
}

struct sockaddr_in um_stream_peer(const struct um_stream *stream)
{
    struct sockaddr_in peer;
    socklen_t len = sizeof peer;
    if (stream->fd < 0 || getpeername(stream->fd, (struct sockaddr *)&peer, &len) != 0) {
        peer = (struct sockaddr_in){0};
    }
    return peer;
}
