/* The UIM layer of a context: reads its options, binds the request port and
 * puts the incoming and the outgoing side together. Everything runs on the loop
 * except the plain getters. */
#include "transport/um_uim.h"

#include <arpa/inet.h>
#include <unistd.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "net/um_socket.h"
#include "transport/um_local_addr.h"
#include "transport/um_uim_parts.h"

struct um_uim {
    struct um_uim_incoming *incoming; /* NULL: request port not bound */
    struct um_uim_outgoing *outgoing;
    uint16_t port;
    struct in_addr addr;
    uint8_t ctxinst[8];
    struct um_uim_stats stats; /* counted by both sides */
};

static int listen_on_request_port(const struct um_context_options *opts, struct in_addr addr, uint16_t *port)
{
    uint16_t fixed = ntohs(opts->request_tcp_port);
    bool reuse = opts->request_tcp_reuseaddr != 0;
    if (fixed == 0) {
        return um_socket_tcp_listen_range(addr, opts->request_tcp_port_low, opts->request_tcp_port_high,
                                          opts->request_tcp_listen_backlog, reuse,
                                          "request_tcp_port_low..request_tcp_port_high", port);
    }
    int err = 0;
    int fd = um_socket_tcp_listen(addr, fixed, opts->request_tcp_listen_backlog, reuse, port, &err);
    return fd >= 0 ? fd : um_error_os(err, "Core-9003-1", "request_tcp_port %u: cannot listen", fixed);
}

static int open_incoming(struct um_uim *uim, struct um_loop *loop, const struct um_context_options *opts,
                         const struct um_uim_events *events, void *user)
{
    struct um_uim_incoming_config config = {.loop = loop,
                                            .ctxinst = uim->ctxinst,
                                            .events = events,
                                            .user = user,
                                            .keepalive_ms = (unsigned)opts->request_tcp_activity_timeout,
                                            .stats = &uim->stats};
    if (um_local_addr(&opts->request_tcp_interface, &opts->default_interface, &uim->addr) != 0) {
        return -1;
    }
    int fd = listen_on_request_port(opts, uim->addr, &uim->port);
    if (fd < 0) {
        return -1;
    }
    uim->incoming = um_uim_incoming_create(&config, fd);
    return uim->incoming != NULL ? 0 : -1;
}

static int open_outgoing(struct um_uim *uim, struct um_loop *loop, const struct um_context_options *opts)
{
    int keepalive_ms = opts->response_tcp_activity_timeout;
    struct um_uim_outgoing_config config = {.loop = loop,
                                            .request_addr = uim->addr,
                                            .request_port = uim->port,
                                            .queue_limit = opts->response_session_maximum_buffer,
                                            .send_buffer = opts->response_session_sender_socket_buffer,
                                            .deletion_timeout_ns = opts->response_tcp_deletion_timeout * UM_NS_PER_MS,
                                            .nodelay = opts->response_tcp_nodelay != 0,
                                            .stats = &uim->stats};
    config.keepalive_ms = (unsigned)(keepalive_ms < 0 ? opts->request_tcp_activity_timeout : keepalive_ms);
    memcpy(config.ctxinst, uim->ctxinst, sizeof config.ctxinst);
    if (um_local_addr(&opts->response_tcp_interface, &opts->default_interface, &config.local_addr) != 0) {
        return -1;
    }
    uim->outgoing = um_uim_outgoing_create(&config);
    return uim->outgoing != NULL ? 0 : -1;
}

struct um_uim *um_uim_create(struct um_loop *loop, const struct um_context_options *opts, const uint8_t ctxinst[8],
                             const struct um_uim_events *events, void *user)
{
    struct um_uim *uim = um_calloc(1, sizeof *uim);
    if (uim == NULL) {
        um_error_nomem("request port", sizeof *uim);
        return NULL;
    }
    memcpy(uim->ctxinst, ctxinst, sizeof uim->ctxinst);
    if ((opts->request_tcp_bind_request_port != 0 && open_incoming(uim, loop, opts, events, user) != 0) ||
        open_outgoing(uim, loop, opts) != 0) {
        um_uim_destroy(uim);
        return NULL;
    }
    return uim;
}

void um_uim_destroy(struct um_uim *uim)
{
    if (uim == NULL) {
        return;
    }
    um_uim_incoming_destroy(uim->incoming);
    um_uim_outgoing_destroy(uim->outgoing);
    um_free(uim);
}

uint16_t um_uim_port(const struct um_uim *uim)
{
    return uim->port;
}

struct in_addr um_uim_addr(const struct um_uim *uim)
{
    return uim->addr;
}

int um_uim_send_control(struct um_uim *uim, uint32_t ip, uint16_t port, uint8_t first_header, const uint8_t *record,
                        size_t record_len)
{
    return um_uim_outgoing_send_control(uim->outgoing, ip, port, first_header, record, record_len);
}

int um_uim_send_bare(struct um_uim *uim, uint32_t ip, uint16_t port, const uint8_t *message, size_t len)
{
    return um_uim_outgoing_send(uim->outgoing, ip, port, message, len);
}

void um_uim_on_reconnect(struct um_uim *uim, void (*fn)(void *user, uint32_t ip, uint16_t port), void *user)
{
    um_uim_outgoing_on_reconnect(uim->outgoing, fn, user);
}

void um_uim_stats(const struct um_uim *uim, struct um_uim_stats *out)
{
    *out = uim->stats;
}
