/* Multicast agent of topic resolution: the group socket that listens and the
 * socket that sends. Created and used on the context's loop. */
#define _GNU_SOURCE
#include "resolver/um_tr_agent.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/um_error.h"
#include "base/um_fork.h"
#include "base/um_mem.h"
#include "base/um_iface.h"
#include "net/um_socket.h"

#define RESOLVER_REMEDY                                                                                                \
    "set resolver_multicast_interface to a multicast-capable interface, or use resolver_unicast_daemon with an lbmrd"

struct um_tr_multicast {
    struct um_fd in;
    bool listening;
    int out_fd;
    uint32_t out_ip;
    uint16_t out_port;
    struct um_loop *loop;
    struct um_tr_inbox *inbox;
    struct um_tr_engine *engine;
};

static int choose_interface(const struct um_context_options *opts, struct um_iface *out)
{
    const lbm_ipv4_address_mask_t *own = &opts->resolver_multicast_interface;
    if (own->addr != 0) {
        return um_iface_match(own->addr, own->bits, out);
    }
    if (opts->default_interface.addr != 0) {
        return um_iface_match(opts->default_interface.addr, opts->default_interface.bits, out);
    }
    return um_iface_default_multicast("resolver_multicast_interface", out);
}

static void forward(void *arg, uint64_t now_ns, const uint8_t *data, size_t len, uint32_t from_ip, uint16_t from_port)
{
    struct um_tr_multicast *agent = arg;
    um_tr_engine_on_packet(agent->engine, now_ns, data, len, from_ip, from_port);
}

static void on_readable(struct um_fd *ufd, uint32_t ready, uint64_t now_ns)
{
    struct um_tr_multicast *agent = UM_CONTAINER_OF(ufd, struct um_tr_multicast, in);
    um_tr_inbox_read(agent->inbox, ufd->fd, now_ns, forward, agent);
}

static int join(int fd, struct in_addr group, const struct um_iface *iface)
{
    struct ip_mreqn request = {.imr_multiaddr = group, .imr_address = iface->addr, .imr_ifindex = (int)iface->index};
    int off = 0;
    if (setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof request) != 0) {
        char text[INET_ADDRSTRLEN];
        int saved = errno;
        inet_ntop(AF_INET, &group, text, sizeof text);
        return um_error_os(saved, "CoreApi-5688-3361",
                           "resolver_multicast_incoming_address %s: cannot join on interface %s; " RESOLVER_REMEDY,
                           text, iface->name);
    }
    setsockopt(fd, IPPROTO_IP, IP_MULTICAST_ALL, &off, sizeof off);
    return 0;
}

static int open_in(struct um_tr_multicast *agent, const struct um_context_options *opts, const struct um_iface *iface)
{
    struct in_addr group = opts->resolver_multicast_incoming_address;
    uint16_t port = ntohs(opts->resolver_multicast_incoming_port);
    int err = 0;
    int fd = um_socket_udp(group, port, true, &err);
    if (fd < 0) {
        return um_error_os(err, "CoreApi-5688-3360",
                           "resolver_multicast_incoming_port %u: cannot bind; " RESOLVER_REMEDY, port);
    }
    um_socket_set_rcvbuf(fd, opts->resolver_multicast_receiver_socket_buffer,
                         um_size_origin(opts->default_buffers.resolver_multicast_receiver_socket_buffer),
                         "resolver_multicast_receiver_socket_buffer", "Core-5688-3362");
    um_fd_init(&agent->in, fd, on_readable);
    if (join(fd, group, iface) != 0 || um_loop_add_fd(agent->loop, &agent->in, UM_FD_READ) != 0) {
        um_fd_close(fd);
        return -1;
    }
    agent->listening = true;
    return 0;
}

static int open_out(struct um_tr_multicast *agent, const struct um_context_options *opts, const struct um_iface *iface)
{
    struct in_addr any = {.s_addr = iface->addr.s_addr};
    int err = 0;
    agent->out_fd = um_socket_udp(any, 0, false, &err);
    if (agent->out_fd < 0) {
        return um_error_os(err, "CoreApi-5688-3363", "topic resolution socket on interface %s; " RESOLVER_REMEDY,
                           iface->name);
    }
    struct ip_mreqn via = {.imr_address = iface->addr, .imr_ifindex = (int)iface->index};
    int ttl = opts->resolver_multicast_ttl, loop = 1;
    if (setsockopt(agent->out_fd, IPPROTO_IP, IP_MULTICAST_IF, &via, sizeof via) != 0 ||
        setsockopt(agent->out_fd, IPPROTO_IP, IP_MULTICAST_TTL, &ttl, sizeof ttl) != 0 ||
        setsockopt(agent->out_fd, IPPROTO_IP, IP_MULTICAST_LOOP, &loop, sizeof loop) != 0) {
        int saved = errno;
        return um_error_os(saved, "CoreApi-5688-3364",
                           "resolver_multicast_interface %s: cannot send multicast; " RESOLVER_REMEDY, iface->name);
    }
    agent->out_ip = opts->resolver_multicast_outgoing_address.s_addr;
    agent->out_port = ntohs(opts->resolver_multicast_outgoing_port);
    return 0;
}

struct um_tr_multicast *um_tr_multicast_create(struct um_loop *loop, const struct um_context_options *opts,
                                               struct um_tr_inbox *inbox, struct um_tr_engine *engine)
{
    struct um_iface iface;
    struct um_tr_multicast *agent = um_calloc(1, sizeof *agent);
    if (agent == NULL) {
        um_error_nomem("multicast topic resolution", sizeof *agent);
        return NULL;
    }
    agent->loop = loop;
    agent->inbox = inbox;
    agent->engine = engine;
    agent->out_fd = -1;
    if (choose_interface(opts, &iface) != 0 || open_out(agent, opts, &iface) != 0 ||
        (opts->resolver_multicast_incoming_address.s_addr != 0 && open_in(agent, opts, &iface) != 0)) {
        um_tr_multicast_close(agent);
        return NULL;
    }
    return agent;
}

enum um_tr_sent um_tr_multicast_send(struct um_tr_multicast *agent, const uint8_t *data, size_t len)
{
    return um_tr_send_to(agent->out_fd, agent->out_ip, agent->out_port, data, len);
}

/* The socket that sends is bound to the address of the interface. */
void um_tr_multicast_in_force(const struct um_tr_multicast *agent, struct um_context_options *out)
{
    out->resolver_multicast_interface =
        (lbm_ipv4_address_mask_t){.addr = um_socket_local_addr(agent->out_fd).s_addr, .bits = 32};
    if (agent->listening) {
        out->resolver_multicast_receiver_socket_buffer =
            um_socket_rcvbuf(agent->in.fd, out->resolver_multicast_receiver_socket_buffer);
    }
}

void um_tr_multicast_close(struct um_tr_multicast *agent)
{
    if (agent == NULL) {
        return;
    }
    if (agent->listening) {
        um_loop_remove_fd(agent->loop, &agent->in);
        um_fd_close(agent->in.fd);
    }
    if (agent->out_fd >= 0) {
        um_fd_close(agent->out_fd);
    }
    um_free(agent);
}
