/* Unicast agent of topic resolution: one socket per lbmrd, the choice among
 * them by um_tr_unicast. Created and used on the context's loop. */
#include "resolver/um_tr_agent.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/um_error.h"
#include "base/um_fork.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "base/um_random.h"
#include "base/um_iface.h"
#include "net/um_socket.h"
#include "resolver/um_tr_unicast.h"
#include "wire/um_lbmr.h"

struct lbmrd_socket {
    struct um_fd fd;
    struct um_tr_lbmrd *agent;
    uint32_t ip;   /* network order */
    uint16_t port; /* host order */
    bool open;
};

struct um_tr_lbmrd {
    struct um_loop *loop;
    struct um_tr_inbox *inbox;
    struct um_tr_engine *engine;
    struct um_tr_unicast *unicast;
    struct um_timer timer;
    bool ignore_unknown;
    bool range_told; /* that the default range of ports is used up */
    size_t count;
    struct lbmrd_socket sockets[];
};

bool um_tr_lbmrd_configured(const struct um_context_options *opts)
{
    return opts->resolver_unicast_daemon.count > 0 || opts->resolver_unicast_address.s_addr != 0;
}

static void daemon_text(const struct lbmrd_socket *sock, char out[32])
{
    char ip[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &sock->ip, ip, sizeof ip);
    snprintf(out, 32, "%s:%u", ip, sock->port);
}

static void rearm(struct um_tr_lbmrd *agent)
{
    uint64_t next = um_tr_unicast_next(agent->unicast);
    if (next == UM_NEVER) {
        um_timer_cancel(um_loop_wheel(agent->loop), &agent->timer);
    } else {
        um_timer_arm(um_loop_wheel(agent->loop), &agent->timer, next);
    }
}

static void on_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_tr_lbmrd *agent = UM_CONTAINER_OF(timer, struct um_tr_lbmrd, timer);
    um_tr_unicast_on_timer(agent->unicast, now_ns);
    rearm(agent);
}

static void send_keepalive(void *io, size_t daemon)
{
    struct um_tr_lbmrd *agent = io;
    struct lbmrd_socket *sock = &agent->sockets[daemon];
    uint8_t bytes[UM_LBMR_HEADER_LEN];
    uint8_t type = um_tr_engine_has_sources(agent->engine) ? UM_LBMR_UCAST_SRC_ALIVE : UM_LBMR_UCAST_RCV_ALIVE;
    size_t len = um_lbmr_encode_keepalive(bytes, sizeof bytes, type);
    um_tr_engine_count_sent(agent->engine, um_tr_send_to(sock->fd.fd, sock->ip, sock->port, bytes, len), len);
}

static void went_inactive(void *io, size_t daemon, bool heard_before)
{
    struct um_tr_lbmrd *agent = io;
    char name[32];
    daemon_text(&agent->sockets[daemon], name);
    if (heard_before) {
        um_log(UM_LOG_WARNING, "Core-10654-1", "unicast resolver %s went inactive after having previously been active",
               name);
    } else {
        um_log(UM_LOG_WARNING, "Core-5688-3375", "unicast resolver %s went inactive", name);
    }
}

static void on_datagram(void *arg, uint64_t now_ns, const uint8_t *data, size_t len, uint32_t from_ip,
                        uint16_t from_port)
{
    struct lbmrd_socket *sock = arg;
    struct um_tr_lbmrd *agent = sock->agent;
    bool known = from_ip == sock->ip && from_port == sock->port;
    if (!known && agent->ignore_unknown) {
        char daemon[32], ip[INET_ADDRSTRLEN];
        um_tr_engine_count_unknown_sender(agent->engine);
        daemon_text(sock, daemon);
        inet_ntop(AF_INET, &from_ip, ip, sizeof ip);
        um_log_limited(um_log_of_ip(from_ip), now_ns, UM_LOG_WARNING, "Core-9013-8",
                       "Unicast resolver instance for lbmrd %s received datagram from unknown source %s:%u - dropping",
                       daemon, ip, from_port);
        return;
    }
    if (known) {
        um_tr_unicast_heard(agent->unicast, now_ns, (size_t)(sock - agent->sockets));
    }
    um_tr_engine_on_packet(agent->engine, now_ns, data, len, from_ip, from_port);
}

static void on_readable(struct um_fd *ufd, uint32_t ready, uint64_t now_ns)
{
    struct lbmrd_socket *sock = UM_CONTAINER_OF(ufd, struct lbmrd_socket, fd);
    um_tr_inbox_read(sock->agent->inbox, ufd->fd, now_ns, on_datagram, sock);
}

/* Address to bind: the entry's interface, resolver_unicast_interface, default_interface, any. */
static int choose_address(const struct um_context_options *opts, const lbm_ucast_resolver_entry_t *entry,
                          struct in_addr *out)
{
    const lbm_ipv4_address_mask_t *choices[] = {&entry->iface, &opts->resolver_unicast_interface,
                                                &opts->default_interface};
    struct um_iface iface;
    out->s_addr = INADDR_ANY;
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        if (choices[i]->addr != 0) {
            if (um_iface_match(choices[i]->addr, choices[i]->bits, &iface) != 0) {
                return -1;
            }
            *out = iface.addr;
            return 0;
        }
    }
    return 0;
}

static int bind_range(struct in_addr addr, const struct um_port_range *range)
{
    int err = 0;
    if (range->low > range->high) {
        um_error(UM_EINVAL, "CoreApi-8812-3", "%s %u: must not be above %s %u", range->low_option, range->low,
                 range->high_option, range->high);
        return -1;
    }
    for (unsigned port = range->low; port <= range->high; port++) {
        int fd = um_socket_udp(addr, (uint16_t)port, false, &err);
        if (fd >= 0) {
            return fd;
        }
        if (err != EADDRINUSE && err != EACCES) {
            um_error_os(err, "CoreApi-5688-3365", "unicast topic resolution socket on port %u", port);
            return -1;
        }
    }
    if (um_port_range_gives_way(range)) {
        return um_socket_udp(addr, 0, false, &err);
    }
    return um_error(UM_EOP, "CoreApi-5688-3366",
                    "%s %u, %s %u: no free UDP port; widen the range, or set both to 0 for any free port",
                    range->low_option, range->low, range->high_option, range->high);
}

static int open_socket(struct um_tr_lbmrd *agent, const struct um_context_options *opts,
                       const lbm_ucast_resolver_entry_t *entry, struct lbmrd_socket *sock)
{
    struct in_addr addr;
    uint16_t fixed = ntohs(entry->source_port != 0 ? entry->source_port : opts->resolver_unicast_port);
    int err = 0, fd;
    if (choose_address(opts, entry, &addr) != 0) {
        return -1;
    }
    if (fixed == 0) {
        struct um_port_range range =
            UM_PORT_RANGE(opts, resolver_unicast_port, UM_RANGE_RESOLVER_UNICAST, &agent->range_told);
        fd = bind_range(addr, &range);
    } else {
        fd = um_socket_udp(addr, fixed, false, &err);
        if (fd < 0) {
            um_error_os(err, "CoreApi-5688-3367", "resolver_unicast_daemon source port %u: cannot bind", fixed);
        }
    }
    if (fd < 0) {
        return -1;
    }
    um_socket_set_rcvbuf(fd, opts->resolver_unicast_receiver_socket_buffer,
                         um_size_origin(opts->default_buffers.resolver_unicast_receiver_socket_buffer),
                         "resolver_unicast_receiver_socket_buffer", "Core-5688-3368");
    sock->agent = agent;
    sock->ip = entry->resolver_ip;
    sock->port = ntohs(entry->destination_port);
    um_fd_init(&sock->fd, fd, on_readable);
    if (um_loop_add_fd(agent->loop, &sock->fd, UM_FD_READ) != 0) {
        um_fd_close(fd);
        return -1;
    }
    sock->open = true;
    return 0;
}

static int open_all(struct um_tr_lbmrd *agent, const struct um_context_options *opts)
{
    const lbm_ucast_resolver_entry_t *entries = opts->resolver_unicast_daemon.items;
    lbm_ucast_resolver_entry_t old = {.resolver_ip = opts->resolver_unicast_address.s_addr,
                                      .destination_port = opts->resolver_unicast_destination_port};
    for (size_t i = 0; i < agent->count; i++) {
        const lbm_ucast_resolver_entry_t *entry = i < opts->resolver_unicast_daemon.count ? &entries[i] : &old;
        if (open_socket(agent, opts, entry, &agent->sockets[i]) != 0) {
            return -1;
        }
    }
    return 0;
}

static struct um_tr_unicast *create_rotation(struct um_tr_lbmrd *agent, const struct um_context_options *opts)
{
    static const struct um_tr_unicast_ops ops = {send_keepalive, went_inactive};
    struct um_tr_unicast_config config = {
        .activity_timeout_ns = um_ms_ns(opts->resolver_unicast_activity_timeout),
        .check_interval_ns = um_ms_ns(opts->resolver_unicast_check_interval),
        .change_interval_ns = um_ms_ns(opts->resolver_unicast_change_interval),
        .keepalive_interval_ns = um_ms_ns(opts->resolver_unicast_keepalive_interval),
        .force_alive = opts->resolver_unicast_force_alive != 0,
    };
    uint64_t seed;
    um_random_bytes(&seed, sizeof seed);
    return um_tr_unicast_create(&config, &ops, agent, agent->count, seed, um_loop_now(agent->loop));
}

struct um_tr_lbmrd *um_tr_lbmrd_create(struct um_loop *loop, const struct um_context_options *opts,
                                       struct um_tr_inbox *inbox, struct um_tr_engine *engine)
{
    size_t count = opts->resolver_unicast_daemon.count + (opts->resolver_unicast_address.s_addr != 0 ? 1 : 0);
    if (count > UM_TR_UNICAST_MAX) {
        um_error(UM_EINVAL, "CoreApi-5688-3369", "resolver_unicast_daemon: %zu entries, at most %d are possible", count,
                 UM_TR_UNICAST_MAX);
        return NULL;
    }
    struct um_tr_lbmrd *agent = um_calloc(1, sizeof *agent + count * sizeof agent->sockets[0]);
    if (agent == NULL) {
        um_error_nomem("unicast topic resolution", sizeof *agent);
        return NULL;
    }
    agent->loop = loop;
    agent->inbox = inbox;
    agent->engine = engine;
    agent->count = count;
    agent->ignore_unknown = opts->resolver_unicast_ignore_unknown_source != 0;
    um_timer_init(&agent->timer, on_timer);
    if (open_all(agent, opts) != 0 || (agent->unicast = create_rotation(agent, opts)) == NULL) {
        um_tr_lbmrd_close(agent);
        return NULL;
    }
    rearm(agent);
    return agent;
}

enum um_tr_sent um_tr_lbmrd_send(struct um_tr_lbmrd *agent, const uint8_t *data, size_t len)
{
    int current = um_tr_unicast_current(agent->unicast);
    if (current < 0) {
        return UM_TR_DISCARDED;
    }
    struct lbmrd_socket *sock = &agent->sockets[current];
    um_tr_unicast_sent(agent->unicast, (size_t)current);
    return um_tr_send_to(sock->fd.fd, sock->ip, sock->port, data, len);
}

void um_tr_lbmrd_start(struct um_tr_lbmrd *agent)
{
    um_tr_unicast_start(agent->unicast, um_loop_now(agent->loop));
    rearm(agent);
}

static lbm_ipv4_address_mask_t interface_value(struct in_addr addr)
{
    return (lbm_ipv4_address_mask_t){.addr = addr.s_addr, .bits = addr.s_addr != INADDR_ANY ? 32 : 0};
}

/* The entries of the list come first; the last socket may be that of the deprecated options. */
void um_tr_lbmrd_in_force(const struct um_tr_lbmrd *agent, struct um_context_options *out)
{
    static const lbm_ucast_resolver_entry_t no_interface;
    lbm_ucast_resolver_entry_t *entries = out->resolver_unicast_daemon.items;
    struct in_addr addr;
    for (size_t i = 0; i < agent->count; i++) {
        int fd = agent->sockets[i].fd.fd;
        if (i < out->resolver_unicast_daemon.count) {
            entries[i].iface = interface_value(um_socket_local_addr(fd));
            entries[i].source_port = htons(um_socket_local_port(fd));
        } else {
            out->resolver_unicast_port = htons(um_socket_local_port(fd));
        }
    }
    if (choose_address(out, &no_interface, &addr) == 0) {
        out->resolver_unicast_interface = interface_value(addr);
    }
    out->resolver_unicast_receiver_socket_buffer =
        um_socket_rcvbuf(agent->sockets[0].fd.fd, out->resolver_unicast_receiver_socket_buffer);
}

void um_tr_lbmrd_close(struct um_tr_lbmrd *agent)
{
    if (agent == NULL) {
        return;
    }
    um_timer_cancel(um_loop_wheel(agent->loop), &agent->timer);
    for (size_t i = 0; i < agent->count; i++) {
        if (agent->sockets[i].open) {
            um_loop_remove_fd(agent->loop, &agent->sockets[i].fd);
            um_fd_close(agent->sockets[i].fd.fd);
        }
    }
    um_tr_unicast_destroy(agent->unicast);
    um_free(agent);
}
