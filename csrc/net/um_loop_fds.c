/* The descriptors of a loop: the epoll set, and the few that a busy-waiting loop
 * reads without asking epoll. Called by the owner of the loop, which is also who
 * runs their callbacks. */
#include "net/um_loop_parts.h"

#include <errno.h>

#include "base/um_error.h"

#define HOT_NS (50 * UM_NS_PER_MS) /* hot so long after something came */

void um_fd_init(struct um_fd *ufd, int fd, void (*fn)(struct um_fd *, uint32_t, uint64_t))
{
    *ufd = (struct um_fd){.fd = fd, .fn = fn};
}

static uint32_t um_fd_to_epoll(uint32_t interest)
{
    return ((interest & UM_FD_READ) != 0 ? (uint32_t)EPOLLIN : 0) |
           ((interest & UM_FD_WRITE) != 0 ? (uint32_t)EPOLLOUT : 0) |
           ((interest & UM_FD_EXCEPT) != 0 ? (uint32_t)EPOLLPRI : 0) |
           ((interest & UM_FD_HANGUP) != 0 ? (uint32_t)EPOLLRDHUP : 0);
}

static uint32_t um_fd_from_epoll(uint32_t events, uint32_t interest)
{
    uint32_t ready = ((events & EPOLLIN) != 0 ? UM_FD_READ : 0) | ((events & EPOLLOUT) != 0 ? UM_FD_WRITE : 0) |
                     ((events & EPOLLPRI) != 0 ? UM_FD_EXCEPT : 0);
    if ((events & EPOLLRDHUP) != 0) {
        ready |= UM_FD_HANGUP;
    }
    if ((events & (EPOLLERR | EPOLLHUP)) != 0) {
        /* Whoever reads or writes finds the error by doing so. */
        ready |= UM_FD_HANGUP | (interest & (UM_FD_READ | UM_FD_WRITE));
    }
    return ready;
}

/* ---- hot descriptors of a busy-waiting loop ---- */

static struct um_hot *um_loop_hot_of(struct um_loop *loop, const struct um_fd *ufd)
{
    for (int i = 0; i < UM_LOOP_HOT && loop->hot_count > 0; i++) {
        if (loop->hot[i].ufd == ufd) {
            return &loop->hot[i];
        }
    }
    return NULL;
}

static void um_loop_forget_hot(struct um_loop *loop, struct um_hot *hot)
{
    hot->ufd->interest = 0; /* it is not in the epoll set */
    hot->ufd = NULL;
    loop->hot_count--;
}

/* It has become quiet: epoll tells when something comes. */
static void um_loop_cool(struct um_loop *loop, struct um_hot *hot)
{
    struct um_fd *ufd = hot->ufd;
    struct epoll_event event = {.events = um_fd_to_epoll(UM_FD_READ), .data.ptr = ufd};
    if (epoll_ctl(loop->epfd, EPOLL_CTL_ADD, ufd->fd, &event) == 0) { /* otherwise it stays hot */
        um_loop_forget_hot(loop, hot);
        ufd->interest = UM_FD_READ;
    }
}

static void um_loop_warm(struct um_loop *loop, struct um_fd *ufd)
{
    struct epoll_event ignored = {0};
    if (loop->wait != UM_LOOP_BUSY_WAIT || ufd->arrivals == NULL || ufd->interest != UM_FD_READ ||
        loop->hot_count == UM_LOOP_HOT) {
        return;
    }
    struct um_hot *place = loop->hot;
    while (place->ufd != NULL) {
        place++;
    }
    if (epoll_ctl(loop->epfd, EPOLL_CTL_DEL, ufd->fd, &ignored) == 0) {
        *place = (struct um_hot){ufd, loop->now_ns};
        loop->hot_count++;
    }
}

/* How many had something. */
int um_loop_read_hot(struct um_loop *loop)
{
    int got = 0;
    for (int i = 0; i < UM_LOOP_HOT; i++) {
        struct um_hot *hot = &loop->hot[i];
        struct um_fd *ufd = hot->ufd;
        if (ufd == NULL) {
            continue;
        }
        uint32_t before = *ufd->arrivals;
        ufd->fn(ufd, UM_FD_READ, loop->now_ns);
        if (hot->ufd != ufd) {
            got++; /* it has been removed */
        } else if (*ufd->arrivals != before) {
            hot->last_ns = loop->now_ns;
            got++;
        } else if (loop->now_ns - hot->last_ns > HOT_NS) {
            um_loop_cool(loop, hot);
        }
    }
    return got;
}

/* ---- the set ---- */

/* A descriptor is in the epoll set exactly while it has an interest: an unwanted hang-up must not make the loop spin.
 */
int um_loop_set_interest(struct um_loop *loop, struct um_fd *ufd, uint32_t interest)
{
    if (ufd->interest == interest) {
        return 0;
    }
    struct um_hot *hot = um_loop_hot_of(loop, ufd);
    if (hot != NULL) {
        um_loop_forget_hot(loop, hot);
        if (interest == 0) {
            return 0;
        }
    }
    struct epoll_event event = {.events = um_fd_to_epoll(interest), .data.ptr = ufd};
    int op = ufd->interest == 0 ? EPOLL_CTL_ADD : interest == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
    if (epoll_ctl(loop->epfd, op, ufd->fd, &event) < 0) {
        return um_error_os(errno, "CoreApi-1010-4", "epoll_ctl on descriptor %d", ufd->fd);
    }
    ufd->interest = interest;
    return 0;
}

int um_loop_add_fd(struct um_loop *loop, struct um_fd *ufd, uint32_t interest)
{
    ufd->interest = 0;
    return um_loop_set_interest(loop, ufd, interest);
}

void um_loop_remove_fd(struct um_loop *loop, struct um_fd *ufd)
{
    struct um_hot *hot = um_loop_hot_of(loop, ufd);
    if (hot != NULL) {
        um_loop_forget_hot(loop, hot);
    }
    if (ufd->interest != 0) {
        struct epoll_event ignored = {0};
        epoll_ctl(loop->epfd, EPOLL_CTL_DEL, ufd->fd, &ignored);
        ufd->interest = 0;
    }
    loop->flags |= UM_LOOP_FD_REMOVED;
    for (int i = loop->ready_i; i < loop->ready_count; i++) {
        if (loop->ready[i].data.ptr == ufd) {
            loop->ready[i].data.ptr = NULL;
        }
    }
}

void um_loop_dispatch(struct um_loop *loop, int count)
{
    loop->ready_count = count;
    for (loop->ready_i = 0; loop->ready_i < loop->ready_count;) {
        struct epoll_event *event = &loop->ready[loop->ready_i++];
        struct um_fd *ufd = event->data.ptr;
        if (ufd != NULL) {
            uint32_t ready = um_fd_from_epoll(event->events, ufd->interest);
            /* An earlier callback of this pass may have withdrawn the interest. */
            ready &= ufd->interest != 0 ? ufd->interest | UM_FD_HANGUP : 0;
            if (ready == UM_FD_READ) {
                um_loop_warm(loop, ufd);
            }
            if (ready != 0) {
                ufd->fn(ufd, ready, loop->now_ns);
            }
        }
    }
    loop->ready_count = 0;
}
