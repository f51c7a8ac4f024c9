/* The transport module `udp`: each packet is one datagram. Owns its socket. The sending end is used by a sampling
 * thread, the receiving end by a receive thread. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <lbm/lbmmon.h>

#include "base/um_error.h"
#include "base/um_fork.h"
#include "base/um_iface.h"
#include "base/um_mem.h"
#include "lbmmon/um_mon_error.h"
#include "lbmmon/um_mon_options.h"

enum { DEFAULT_PORT = 2933, DEFAULT_TTL = 16, SOCKET_BUFFER = 4 << 20 };

struct udp {
    int fd;
    struct sockaddr_in to; /* of the sending end */
};

struct options {
    struct in_addr address, group, broadcast, interface; /* 0: not given */
    uint16_t port;
    int ttl;
};

static int fail_os(const char *what)
{
    return um_mon_module_error(UM_MON_UDP, "%s: %s", what, strerror(errno));
}

/* ---- options ---- */

static int read_number(const struct um_mon_option *option, long max, long *out)
{
    char *end;
    *out = strtol(option->value, &end, 10);
    return *end == '\0' && option->value[0] != '\0' && *out >= 0 && *out <= max
               ? 0
               : um_mon_module_error(UM_MON_UDP, "%s \"%.40s\": must be 0..%ld", option->name, option->value, max);
}

static int read_address(const struct um_mon_option *option, struct in_addr *out)
{
    return inet_pton(AF_INET, option->value, out) == 1
               ? 0
               : um_mon_module_error(UM_MON_UDP, "%s \"%.60s\": must be an IPv4 address", option->name, option->value);
}

static int read_interface(const struct um_mon_option *option, struct in_addr *out)
{
    int bits;
    return um_iface_parse(option->value, &out->s_addr, &bits) == 0
               ? 0
               : um_mon_module_error(UM_MON_UDP, "interface \"%.60s\": %s", option->value, um_errmsg());
}

static int read_option(struct options *options, const struct um_mon_option *option)
{
    long number;
    if (strcmp(option->name, "address") == 0) {
        return read_address(option, &options->address);
    }
    if (strcmp(option->name, "mcgroup") == 0) {
        return read_address(option, &options->group) != 0 ? -1
               : IN_MULTICAST(ntohl(options->group.s_addr))
                   ? 0
                   : um_mon_module_error(UM_MON_UDP, "mcgroup \"%.60s\": must be a multicast group", option->value);
    }
    if (strcmp(option->name, "bcaddress") == 0) {
        return read_address(option, &options->broadcast);
    }
    if (strcmp(option->name, "interface") == 0) {
        return read_interface(option, &options->interface);
    }
    if (strcmp(option->name, "port") == 0) {
        int rc = read_number(option, 65535, &number);
        options->port = (uint16_t)number;
        return rc;
    }
    if (strcmp(option->name, "ttl") == 0) {
        int rc = read_number(option, 255, &number);
        options->ttl = (int)number;
        return rc;
    }
    return 0; /* another module's */
}

static int read_options(struct options *out, const char *text)
{
    struct um_mon_option option;
    const char *rest = text;
    *out = (struct options){.port = DEFAULT_PORT, .ttl = DEFAULT_TTL};
    while ((rest = um_mon_option_next(rest, &option)) != NULL) {
        if (read_option(out, &option) != 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- life ---- */

static struct udp *udp_new(void)
{
    struct udp *udp = um_calloc(1, sizeof *udp);
    if (udp == NULL) {
        um_mon_module_error(UM_MON_UDP, "out of memory");
        return NULL;
    }
    udp->fd = um_fd_own(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (udp->fd < 0) {
        fail_os("socket");
        um_free(udp);
        return NULL;
    }
    return udp;
}

static void udp_free(struct udp *udp)
{
    um_fd_close(udp->fd);
    um_free(udp);
}

/* To one host, to a group, or to all hosts of a network. */
static int aim(struct udp *udp, const struct options *options)
{
    int on = 1, ttl = options->ttl;
    udp->to = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(options->port)};
    if (options->group.s_addr != 0) {
        udp->to.sin_addr = options->group;
        if (setsockopt(udp->fd, IPPROTO_IP, IP_MULTICAST_TTL, &ttl, sizeof ttl) != 0 ||
            (options->interface.s_addr != 0 &&
             setsockopt(udp->fd, IPPROTO_IP, IP_MULTICAST_IF, &options->interface, sizeof options->interface) != 0)) {
            return fail_os("mcgroup");
        }
    } else if (options->broadcast.s_addr != 0) {
        udp->to.sin_addr = options->broadcast;
        if (setsockopt(udp->fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof on) != 0) {
            return fail_os("bcaddress");
        }
    } else if (options->address.s_addr != 0) {
        udp->to.sin_addr = options->address;
    } else {
        return um_mon_module_error(UM_MON_UDP, "no destination: set address, mcgroup or bcaddress");
    }
    return 0;
}

static int listen_at(struct udp *udp, const struct options *options)
{
    int on = 1, size = SOCKET_BUFFER;
    bool group = options->group.s_addr != 0;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(options->port)};
    at.sin_addr = group                              ? options->group
                  : options->broadcast.s_addr != 0   ? (struct in_addr){INADDR_ANY}
                  : options->interface.s_addr != 0   ? options->interface
                                                     : options->address;
    setsockopt(udp->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size); /* as much as the kernel grants */
    if (group && setsockopt(udp->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) {
        return fail_os("SO_REUSEADDR");
    }
    if (bind(udp->fd, (struct sockaddr *)&at, sizeof at) != 0) {
        char text[INET_ADDRSTRLEN];
        return um_mon_module_error(UM_MON_UDP, "%s:%u: cannot be bound: %s; set port or interface",
                                   inet_ntop(AF_INET, &at.sin_addr, text, sizeof text), options->port, strerror(errno));
    }
    struct ip_mreq join = {.imr_multiaddr = options->group, .imr_interface = options->interface};
    return !group || setsockopt(udp->fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &join, sizeof join) == 0 ? 0
                                                                                                 : fail_os("mcgroup");
}

/* `ready` makes the socket a sending or a receiving end. */
static int begin(void **client_data, const void *text, int (*ready)(struct udp *udp, const struct options *options),
                 const char *api)
{
    struct options options;
    if (client_data == NULL) {
        return um_mon_module_error(UM_MON_UDP, "%s: TransportClientData: must not be NULL", api);
    }
    struct udp *udp = read_options(&options, text) == 0 ? udp_new() : NULL;
    if (udp == NULL) {
        return -1;
    }
    if (ready(udp, &options) != 0) {
        udp_free(udp);
        return -1;
    }
    *client_data = udp;
    return 0;
}

int lbmmon_transport_udp_initsrc(void **TransportClientData, const void *TransportOptions)
{
    return begin(TransportClientData, TransportOptions, aim, __func__);
}

int lbmmon_transport_udp_initrcv(void **TransportClientData, const void *TransportOptions)
{
    return begin(TransportClientData, TransportOptions, listen_at, __func__);
}

static int finish(struct udp *udp, const char *api)
{
    if (udp == NULL) {
        return um_mon_module_error(UM_MON_UDP, "%s: TransportClientData: must not be NULL", api);
    }
    udp_free(udp);
    return 0;
}

int lbmmon_transport_udp_src_finish(void *TransportClientData)
{
    return finish(TransportClientData, __func__);
}

int lbmmon_transport_udp_rcv_finish(void *TransportClientData)
{
    return finish(TransportClientData, __func__);
}

/* ---- packets ---- */

/* Never waits: what the socket does not take is dropped. */
int lbmmon_transport_udp_send(const char *Data, size_t Length, void *TransportClientData)
{
    const struct udp *udp = TransportClientData;
    if (udp == NULL || Data == NULL) {
        return um_mon_module_error(UM_MON_UDP, "%s: TransportClientData and Data: must not be NULL", __func__);
    }
    ssize_t rc = sendto(udp->fd, Data, Length, MSG_NOSIGNAL, (const struct sockaddr *)&udp->to, sizeof udp->to);
    if (rc < 0 && errno == ECONNREFUSED) { /* of an earlier datagram: nobody listens, which is no fault of this one */
        rc = sendto(udp->fd, Data, Length, MSG_NOSIGNAL, (const struct sockaddr *)&udp->to, sizeof udp->to);
    }
    return rc >= 0 ? 0 : um_mon_module_error(UM_MON_UDP, "a packet of %zu bytes: %s", Length, strerror(errno));
}

int lbmmon_transport_udp_receive(char *Data, size_t *Length, unsigned int TimeoutMS, void *TransportClientData)
{
    const struct udp *udp = TransportClientData;
    if (udp == NULL || Data == NULL || Length == NULL) {
        return um_mon_module_error(UM_MON_UDP, "%s: TransportClientData, Data and Length: must not be NULL", __func__);
    }
    ssize_t len = recv(udp->fd, Data, *Length, MSG_TRUNC);
    if (len < 0 && (errno == EAGAIN || errno == EINTR)) {
        struct pollfd ready = {.fd = udp->fd, .events = POLLIN};
        if (poll(&ready, 1, TimeoutMS > INT32_MAX ? INT32_MAX : (int)TimeoutMS) <= 0) {
            return 1;
        }
        len = recv(udp->fd, Data, *Length, MSG_TRUNC);
    }
    if (len < 0) {
        return errno == EAGAIN || errno == EINTR ? 1 : fail_os("recv");
    }
    size_t room = *Length;
    *Length = (size_t)len;
    return (size_t)len <= room
               ? 0
               : um_mon_module_error(UM_MON_UDP, "a packet of %zd bytes: Length %zu is too small", len, room);
}

const char *lbmmon_transport_udp_errmsg(void)
{
    return um_mon_module_errmsg(UM_MON_UDP);
}

const lbmmon_transport_func_t *lbmmon_transport_udp_module(void)
{
    static const lbmmon_transport_func_t table = {
        .mInitSource = lbmmon_transport_udp_initsrc,
        .mInitReceiver = lbmmon_transport_udp_initrcv,
        .mSend = lbmmon_transport_udp_send,
        .mReceive = lbmmon_transport_udp_receive,
        .mFinishSource = lbmmon_transport_udp_src_finish,
        .mFinishReceiver = lbmmon_transport_udp_rcv_finish,
        .mErrorMessage = lbmmon_transport_udp_errmsg,
    };
    return &table;
}
