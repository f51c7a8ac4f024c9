/* See um_link_watch.h. */
#define _GNU_SOURCE
#include "net/um_link_watch.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/um_fork.h"
#include "base/um_iface.h"
#include "base/um_log.h"
#include "base/um_mem.h"

enum { LINKS_MAX = 16, MESSAGE_BYTES = 16384 };

enum link_state {
    LINK_UNKNOWN, /* the kernel has not answered the first question yet */
    LINK_DOWN,
    LINK_UP,
};

struct link {
    unsigned index;
    char name[32];
    enum link_state state;
    uint32_t downs; /* times the carrier was lost, as the kernel counts */
    uint64_t down_since_ns;
};

struct um_link_watch { /* all [loop] */
    struct um_loop *loop;
    struct um_fd ufd;
    struct link links[LINKS_MAX];
    size_t used;
};

/* Asks for the present state of a link; the answer is a message like those of changes. */
static void ask(struct um_link_watch *watch, const struct link *link)
{
    struct {
        struct nlmsghdr header;
        struct ifinfomsg body;
    } request = {.header = {.nlmsg_len = sizeof request, .nlmsg_type = RTM_GETLINK, .nlmsg_flags = NLM_F_REQUEST},
                 .body = {.ifi_family = AF_UNSPEC, .ifi_index = (int)link->index}};
    (void)send(watch->ufd.fd, &request, sizeof request, MSG_NOSIGNAL);
}

static void went_down(struct link *link, uint64_t now_ns)
{
    link->down_since_ns = now_ns;
    um_log(UM_LOG_WARNING, "Core-9030-1",
           "interface %s is down: nothing passes until it is up again; receivers then ask for what they missed",
           link->name);
}

static void came_up(const struct link *link, uint64_t now_ns)
{
    um_log(UM_LOG_NOTICE, "Core-9030-2", "interface %s is up again after %.2f s", link->name,
           (double)(now_ns - link->down_since_ns) / 1e9);
}

/* The kernel may hold a loss of carrier back until the carrier has returned: the count of losses tells. */
static void on_state(struct link *link, enum link_state state, uint32_t downs, uint64_t now_ns)
{
    bool missed = link->state == LINK_UP && state == LINK_UP && downs != link->downs;
    if (missed || (link->state == LINK_UP && state == LINK_DOWN)) {
        went_down(link, now_ns);
    }
    if (missed || (link->state == LINK_DOWN && state == LINK_UP)) {
        came_up(link, now_ns);
    }
    link->state = state;
    link->downs = downs;
}

static void on_link(struct um_link_watch *watch, const struct nlmsghdr *header, uint64_t now_ns)
{
    const struct ifinfomsg *info = NLMSG_DATA(header);
    uint32_t downs = 0;
    if (header->nlmsg_len < NLMSG_LENGTH(sizeof *info)) {
        return;
    }
    int left = (int)(header->nlmsg_len - NLMSG_LENGTH(sizeof *info));
    for (const struct rtattr *at = IFLA_RTA(info); RTA_OK(at, left); at = RTA_NEXT(at, left)) {
        if (at->rta_type == IFLA_CARRIER_DOWN_COUNT && RTA_PAYLOAD(at) >= sizeof downs) {
            memcpy(&downs, RTA_DATA(at), sizeof downs);
        }
    }
    bool up =
        header->nlmsg_type == RTM_NEWLINK && (info->ifi_flags & IFF_UP) != 0 && (info->ifi_flags & IFF_RUNNING) != 0;
    for (size_t i = 0; i < watch->used; i++) {
        if (watch->links[i].index == (unsigned)info->ifi_index) {
            on_state(&watch->links[i], up ? LINK_UP : LINK_DOWN, downs, now_ns);
        }
    }
}

static void on_readable(struct um_fd *ufd, uint32_t ready, uint64_t now_ns)
{
    struct um_link_watch *watch = UM_CONTAINER_OF(ufd, struct um_link_watch, ufd);
    union {
        struct nlmsghdr header;
        char bytes[MESSAGE_BYTES];
    } message;
    (void)ready;
    for (;;) {
        struct sockaddr_nl from = {0};
        socklen_t from_len = sizeof from;
        ssize_t len = recvfrom(ufd->fd, &message, sizeof message, MSG_DONTWAIT, (struct sockaddr *)&from, &from_len);
        if (len < 0 && errno == ENOBUFS) { /* messages were lost: ask for the present state */
            for (size_t i = 0; i < watch->used; i++) {
                ask(watch, &watch->links[i]);
            }
            continue;
        }
        if (len <= 0) {
            return;
        }
        if (from.nl_pid != 0) { /* only the kernel is believed */
            continue;
        }
        int left = (int)len; /* below 0 behind the padding of the last message */
        for (const struct nlmsghdr *at = &message.header; NLMSG_OK(at, left); at = NLMSG_NEXT(at, left)) {
            if (at->nlmsg_type == RTM_NEWLINK || at->nlmsg_type == RTM_DELLINK) {
                on_link(watch, at, now_ns);
            }
        }
    }
}

static struct um_link_watch *create(struct um_loop *loop)
{
    struct um_link_watch *watch = um_calloc(1, sizeof *watch);
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
    if (watch == NULL) {
        return NULL;
    }
    watch->loop = loop;
    um_fd_init(&watch->ufd, um_fd_own(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE)),
               on_readable);
    if (watch->ufd.fd < 0 || bind(watch->ufd.fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        um_loop_add_fd(loop, &watch->ufd, UM_FD_READ) != 0) {
        um_log(UM_LOG_DEBUG, "Core-9030-3", "links are not watched: %s", strerror(errno));
        if (watch->ufd.fd >= 0) {
            um_fd_close(watch->ufd.fd);
        }
        um_free(watch);
        return NULL;
    }
    return watch;
}

static void add_link(struct um_link_watch *watch, const struct um_iface *iface)
{
    for (size_t i = 0; i < watch->used; i++) {
        if (watch->links[i].index == iface->index) {
            return;
        }
    }
    if (watch->used < LINKS_MAX) {
        struct link *link = &watch->links[watch->used++];
        link->index = iface->index;
        snprintf(link->name, sizeof link->name, "%s", iface->name);
        ask(watch, link);
    }
}

void um_link_watch_add(struct um_link_watch **watch, struct um_loop *loop, uint32_t addr_net)
{
    struct um_iface *ifaces = NULL;
    int count = um_iface_list(&ifaces);
    for (int i = 0; i < count; i++) {
        const struct um_iface *iface = &ifaces[i];
        bool meant = addr_net == INADDR_ANY ? iface->up && iface->multicast : iface->addr.s_addr == addr_net;
        if (!meant || iface->loopback) {
            continue;
        }
        if (*watch == NULL) {
            *watch = create(loop);
        }
        if (*watch != NULL) {
            add_link(*watch, iface);
        }
    }
    um_free(ifaces);
}

void um_link_watch_destroy(struct um_link_watch *watch)
{
    if (watch != NULL) {
        um_loop_remove_fd(watch->loop, &watch->ufd);
        um_fd_close(watch->ufd.fd);
        um_free(watch);
    }
}
