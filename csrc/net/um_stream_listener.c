/* Accepting byte streams on the loop, with pauses when the system cannot. */
#include "net/um_stream_listener.h"

#include <errno.h>

#include "base/um_fork.h"
#include "base/um_mem.h"

static void on_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_stream_listener *listener = UM_CONTAINER_OF(timer, struct um_stream_listener, timer);
    if (um_loop_set_interest(listener->loop, &listener->ufd, UM_FD_READ) != 0) {
        um_timer_arm(um_loop_wheel(listener->loop), timer, now_ns + UM_LISTENER_PAUSE_NS);
    }
}

static void pause_accepting(struct um_stream_listener *listener, uint64_t now_ns)
{
    um_loop_set_interest(listener->loop, &listener->ufd, 0);
    um_timer_arm(um_loop_wheel(listener->loop), &listener->timer, now_ns + UM_LISTENER_PAUSE_NS);
}

static void on_ready(struct um_fd *ufd, uint32_t ready, uint64_t now_ns)
{
    struct um_stream_listener *listener = UM_CONTAINER_OF(ufd, struct um_stream_listener, ufd);
    for (int i = 0; i < listener->burst; i++) {
        struct um_stream stream;
        if (listener->layer != NULL && listener->layer->busy != NULL &&
            listener->layer->busy(listener->layer, now_ns)) {
            pause_accepting(listener, now_ns);
            return;
        }
        struct sockaddr_in peer;
        int rc = um_stream_accept(&stream, ufd->fd, &peer);
        if (rc < 0) {
            int err = errno;
            pause_accepting(listener, now_ns);
            listener->on_pause(listener, err, now_ns);
        }
        if (rc <= 0) {
            return;
        }
        listener->on_stream(listener, &stream, &peer, now_ns);
    }
}

int um_stream_listener_start(struct um_stream_listener *listener, struct um_loop *loop, int fd)
{
    listener->loop = loop;
    um_fd_init(&listener->ufd, fd, on_ready);
    um_timer_init(&listener->timer, on_timer);
    return um_loop_add_fd(loop, &listener->ufd, UM_FD_READ);
}

void um_stream_listener_stop(struct um_stream_listener *listener)
{
    um_timer_cancel(um_loop_wheel(listener->loop), &listener->timer);
    um_loop_remove_fd(listener->loop, &listener->ufd);
    um_fd_close(listener->ufd.fd);
}
