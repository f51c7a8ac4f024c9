/* Pairs of connected byte streams, driven by the test: each side is called only when what it waits for has happened. */
#ifndef UM_SUPPORT_TEST_STREAMS_H
#define UM_SUPPORT_TEST_STREAMS_H

#include "net/um_socket.h"
#include "net/um_stream.h"
#include "um_test_loop.h"

/* A connected pair of streams, both under the same layer. */
struct pair {
    struct um_stream a, b; /* a connects, b accepts */
    int listener;
    uint16_t port;
};

static inline bool ready(const struct um_stream *stream, uint32_t wants)
{
    struct pollfd pfd = {.fd = stream->fd,
                         .events = (short)((wants & UM_FD_READ ? POLLIN : 0) | (wants & UM_FD_WRITE ? POLLOUT : 0))};
    return poll(&pfd, 1, 0) > 0;
}

static inline bool pair_start(struct pair *pair, const struct um_stream_layer *layer)
{
    struct in_addr loopback = {.s_addr = htonl(INADDR_LOOPBACK)}, any = {0};
    struct sockaddr_in peer;
    pair->port = 0;
    pair->listener = test_listen(&pair->port);
    um_stream_init(&pair->b);
    if (um_stream_connect(&pair->a, any, loopback, pair->port, layer) != 0) {
        return false;
    }
    for (int rc = 0; rc == 0;) {
        rc = um_stream_accept(&pair->b, pair->listener, &peer);
    }
    um_socket_set_nodelay(pair->a.fd, true); /* what is written arrives at once */
    um_socket_set_nodelay(pair->b.fd, true);
    return layer == NULL || layer->cover(layer, &pair->b, UM_STREAM_ACCEPTS) == 0;
}

/* Open both sides; each is called only when what it waits for has happened. */
static inline bool pair_open(struct pair *pair)
{
    uint64_t give_up = um_clock_ns() + HANG_LIMIT_NS;
    while ((!pair->a.opened || !pair->b.opened) && um_clock_ns() < give_up) {
        struct um_stream *sides[2] = {&pair->a, &pair->b};
        for (int i = 0; i < 2; i++) {
            if (!sides[i]->opened && ready(sides[i], sides[i]->open_wants) && um_stream_open(sides[i]) < 0) {
                return false;
            }
        }
    }
    return pair->a.opened && pair->b.opened;
}

static inline void pair_close(struct pair *pair)
{
    um_stream_close(&pair->a, UM_STREAM_NOW);
    um_stream_close(&pair->b, UM_STREAM_NOW);
    close(pair->listener);
}

/* Carry `len` counted bytes each way, waiting only by the rules. False: stuck, or a byte is wrong. */
static inline bool carry(struct pair *pair, size_t len)
{
    struct um_stream *side[2] = {&pair->a, &pair->b};
    size_t sent[2] = {0}, got[2] = {0};
    uint64_t give_up = um_clock_ns() + HANG_LIMIT_NS;
    while ((got[0] < len || got[1] < len || side[0]->unsent || side[1]->unsent) && um_clock_ns() < give_up) {
        for (int i = 0; i < 2; i++) {
            struct um_stream *stream = side[i];
            bool writes = sent[i] < len;
            uint32_t interest = um_stream_interest(stream, UM_FD_READ | (writes ? UM_FD_WRITE : 0));
            uint8_t out[60], in[50];
            if (!stream->pending && !ready(stream, interest)) {
                continue;
            }
            size_t part = len - sent[i] < sizeof out ? len - sent[i] : sizeof out;
            for (size_t k = 0; k < part; k++) {
                out[k] = (uint8_t)(sent[i] + k + (size_t)i);
            }
            struct iovec iov[2] = {{out, part / 2}, {out + part / 2, part - part / 2}};
            ssize_t n = um_stream_writev(stream, iov, writes ? 2 : 0);
            if (n < 0) {
                return false;
            }
            sent[i] += (size_t)n;
            n = um_stream_read(stream, in, sizeof in);
            if (n < 0) {
                return false;
            }
            for (ssize_t k = 0; k < n; k++, got[i]++) {
                if (in[k] != (uint8_t)(got[i] + (size_t)!i)) {
                    return false;
                }
            }
        }
    }
    return got[0] == len && got[1] == len;
}

#endif
