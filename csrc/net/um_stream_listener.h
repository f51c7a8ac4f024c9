/* A listening socket that hands on byte streams, and pauses where the system has no
 * descriptors or memory left instead of spinning, and where its filters have enough to do.
 * Everything is [loop]. */
#ifndef UM_NET_STREAM_LISTENER_H
#define UM_NET_STREAM_LISTENER_H

#include "base/um_clock.h"
#include "net/um_stream.h"

#define UM_LISTENER_PAUSE_NS (100 * UM_NS_PER_MS)

/* Embedded in its owner's structure. */
struct um_stream_listener {
    struct um_loop *loop;
    struct um_fd ufd;
    struct um_timer timer;               /* armed while accepting pauses */
    int burst;                           /* connections taken in one pass */
    const struct um_stream_layer *layer; /* what streams will be covered with, which may ask for a pause; may be NULL */
    /* A new stream, not covered yet: taken over. */
    void (*on_stream)(struct um_stream_listener *listener, struct um_stream *stream, const struct sockaddr_in *peer,
                      uint64_t now_ns);
    /* Accepting pauses because of this errno value; not told when the filters ask for it. */
    void (*on_pause)(struct um_stream_listener *listener, int err, uint64_t now_ns);
};

/* The other fields are set by the owner. 0, or -1 + error: then `fd` is still the caller's. */
int um_stream_listener_start(struct um_stream_listener *listener, struct um_loop *loop, int fd);
void um_stream_listener_stop(struct um_stream_listener *listener); /* closes the socket */

#endif
