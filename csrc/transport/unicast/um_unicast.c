/* The unicast layer of a context: reads its options, binds the request port, puts the
 * incoming and the outgoing side together, and finds who handles what arrives. Runs on
 * the loop except where um_unicast.h says any thread. */
#include "transport/unicast/um_unicast.h"

#include <arpa/inet.h>
#include <unistd.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "net/um_socket.h"
#include "transport/session/um_local_addr.h"
#include "transport/session/um_loss_rate.h"
#include "transport/unicast/um_unicast_parts.h"

struct handler {
    um_unicast_handler fn;
    void *user;
};

struct um_unicast {
    struct um_unicast_in *incoming; /* NULL: request port not bound */
    struct um_unicast_out *outgoing;
    uint16_t port;
    struct in_addr addr;
    struct in_addr local_addr; /* outgoing connections come from there; INADDR_ANY: from any */
    uint8_t ctxinst[8];
    const struct um_unicast_events *events;
    void *user;
    struct handler controls[256], data[16]; /* [loop] by header code, by type */
    struct um_unicast_counters counters;    /* counted by both sides */
};

static void on_message(void *user, const struct um_lbmc_msg *msg, struct um_buf *buf, const struct sockaddr_in *from,
                       uint64_t now_ns)
{
    struct um_unicast *unicast = user;
    bool control = msg->type == UM_LBMC_CONTROL;
    if (!control && um_loss_drop(UM_LOSS_UIM)) {
        return;
    }
    const struct handler *handler =
        control ? &unicast->controls[um_lbmc_subject(msg)] : &unicast->data[msg->type & 0x0f];
    if (handler->fn != NULL) {
        handler->fn(handler->user, msg, buf, from, now_ns);
    } else if (unicast->events->on_message != NULL) {
        unicast->events->on_message(unicast->user, msg, from, now_ns);
    }
}

static int listen_on_request_port(const struct um_context_options *opts, struct in_addr addr, uint16_t *port)
{
    uint16_t fixed = ntohs(opts->request_tcp_port);
    bool reuse = opts->request_tcp_reuseaddr != 0;
    if (fixed == 0) {
        bool told = false;
        struct um_port_range range = UM_PORT_RANGE(opts, request_tcp_port, UM_RANGE_REQUEST_TCP, &told);
        return um_socket_tcp_listen_range(addr, &range, opts->request_tcp_listen_backlog, reuse, port);
    }
    int err = 0;
    int fd = um_socket_tcp_listen(addr, fixed, opts->request_tcp_listen_backlog, reuse, port, &err);
    return fd >= 0 ? fd : um_error_os(err, "Core-9003-1", "request_tcp_port %u: cannot listen", fixed);
}

static int open_incoming(struct um_unicast *unicast, struct um_loop *loop, const struct um_context_options *opts)
{
    struct um_unicast_in_config config = {.loop = loop,
                                          .ctxinst = unicast->ctxinst,
                                          .on_message = on_message,
                                          .user = unicast,
                                          .keepalive_ms = (unsigned)opts->request_tcp_activity_timeout,
                                          .counters = &unicast->counters};
    if (um_local_addr(&opts->request_tcp_interface, &opts->default_interface, &unicast->addr) != 0) {
        return -1;
    }
    int fd = listen_on_request_port(opts, unicast->addr, &unicast->port);
    if (fd < 0) {
        return -1;
    }
    unicast->incoming = um_unicast_in_create(&config, fd);
    return unicast->incoming != NULL ? 0 : -1;
}

static int open_outgoing(struct um_unicast *unicast, struct um_loop *loop, const struct um_context_options *opts)
{
    int keepalive_ms = opts->response_tcp_activity_timeout;
    struct um_unicast_out_config config = {.loop = loop,
                                           .request_addr = unicast->addr,
                                           .request_port = unicast->port,
                                           .queue_limit = opts->response_session_maximum_buffer,
                                           .send_buffer = opts->response_session_sender_socket_buffer,
                                           .deletion_timeout_ns = um_ms_ns(opts->response_tcp_deletion_timeout),
                                           .nodelay = opts->response_tcp_nodelay != 0,
                                           .counters = &unicast->counters};
    config.keepalive_ms = (unsigned)(keepalive_ms < 0 ? opts->request_tcp_activity_timeout : keepalive_ms);
    memcpy(config.ctxinst, unicast->ctxinst, sizeof config.ctxinst);
    if (um_local_addr(&opts->response_tcp_interface, &opts->default_interface, &config.local_addr) != 0) {
        return -1;
    }
    unicast->local_addr = config.local_addr;
    unicast->outgoing = um_unicast_out_create(&config);
    return unicast->outgoing != NULL ? 0 : -1;
}

struct um_unicast *um_unicast_create(struct um_loop *loop, const struct um_context_options *opts,
                                     const uint8_t ctxinst[8], const struct um_unicast_events *events, void *user)
{
    struct um_unicast *unicast = um_calloc(1, sizeof *unicast);
    if (unicast == NULL) {
        um_error_nomem("request port", sizeof *unicast);
        return NULL;
    }
    memcpy(unicast->ctxinst, ctxinst, sizeof unicast->ctxinst);
    unicast->events = events;
    unicast->user = user;
    if ((opts->request_tcp_bind_request_port != 0 && open_incoming(unicast, loop, opts) != 0) ||
        open_outgoing(unicast, loop, opts) != 0) {
        um_unicast_destroy(unicast);
        return NULL;
    }
    return unicast;
}

void um_unicast_close(struct um_unicast *unicast)
{
    um_unicast_out_close(unicast->outgoing);
}

void um_unicast_destroy(struct um_unicast *unicast)
{
    if (unicast == NULL) {
        return;
    }
    um_unicast_in_destroy(unicast->incoming);
    um_unicast_out_destroy(unicast->outgoing);
    um_free(unicast);
}

uint16_t um_unicast_port(const struct um_unicast *unicast)
{
    return unicast->port;
}

struct in_addr um_unicast_addr(const struct um_unicast *unicast)
{
    return unicast->addr;
}

void um_unicast_in_force(const struct um_unicast *unicast, struct um_context_options *out)
{
    if (unicast->incoming != NULL) {
        out->request_tcp_port = htons(unicast->port);
        out->request_tcp_interface = um_interface_value(unicast->addr);
    }
    out->response_tcp_interface = um_interface_value(unicast->local_addr);
}

void um_unicast_set_layer(struct um_unicast *unicast, const struct um_stream_layer *layer)
{
    if (unicast->incoming != NULL) {
        um_unicast_in_set_layer(unicast->incoming, layer);
    }
    unicast->outgoing->config.layer = layer;
}

void um_unicast_on_control(struct um_unicast *unicast, uint8_t header, um_unicast_handler fn, void *user)
{
    unicast->controls[header] = (struct handler){fn, user};
}

void um_unicast_on_data(struct um_unicast *unicast, enum um_lbmc_type type, um_unicast_handler fn, void *user)
{
    unicast->data[type & 0x0f] = (struct handler){fn, user};
}

int um_unicast_send(struct um_unicast *unicast, const struct um_unicast_send *send)
{
    return um_unicast_out_send(unicast->outgoing, send);
}

int um_unicast_send_control(struct um_unicast *unicast, uint32_t ip, uint16_t port, uint8_t first_header,
                            const uint8_t *record, size_t record_len)
{
    uint8_t fixed[UM_LBMC_CONTROL_HDR_LEN];
    struct iovec iov[2] = {{fixed, sizeof fixed}, {(void *)record, record_len}};
    um_lbmc_put_control_hdr(fixed, first_header, 0); /* the layer writes the length */
    struct um_unicast_send send = {
        .ip = ip, .port = port, .heading = UM_UNICAST_TO_ADDRESS, .iov = iov, .iovcnt = 2, .nonblocking = true};
    return um_unicast_out_send(unicast->outgoing, &send);
}

int um_unicast_send_bare(struct um_unicast *unicast, uint32_t from_ip, uint32_t ip, uint16_t port,
                         const uint8_t *message, size_t len)
{
    struct iovec iov = {(void *)message, len};
    struct um_unicast_send send = {
        .ip = ip, .port = port, .from_ip = from_ip, .iov = &iov, .iovcnt = 1, .nonblocking = true};
    return um_unicast_out_send(unicast->outgoing, &send);
}

int um_unicast_hold(struct um_unicast *unicast, uint32_t ip, uint16_t port, struct um_unicast_hold *hold)
{
    return um_unicast_out_hold(unicast->outgoing, ip, port, hold);
}

void um_unicast_release(struct um_unicast *unicast, struct um_unicast_hold *hold)
{
    um_unicast_out_release(unicast->outgoing, hold);
}

void um_unicast_listen(struct um_unicast *unicast, struct um_unicast_listener *listener)
{
    um_unicast_out_listen(unicast->outgoing, listener);
}

void um_unicast_unlisten(struct um_unicast *unicast, struct um_unicast_listener *listener)
{
    um_unicast_out_unlisten(unicast->outgoing, listener);
}

void um_unicast_waker_cancel(struct um_unicast *unicast, struct um_unicast_waker *waker)
{
    um_unicast_out_cancel_waker(unicast->outgoing, waker);
}

void um_unicast_stats(const struct um_unicast *unicast, struct um_unicast_stats *out)
{
    const struct um_unicast_counters *counters = &unicast->counters;
#define READ(name) .name = atomic_load_explicit(&counters->name, memory_order_relaxed)
    *out = (struct um_unicast_stats){READ(msgs_rcved),
                                     READ(msgs_malformed),
                                     READ(msgs_foreign),
                                     READ(corrupt_connections),
                                     READ(msgs_duplicate),
                                     READ(msgs_no_stream),
                                     READ(accepted),
                                     READ(refused),
                                     READ(displaced),
                                     READ(expired),
                                     READ(msgs_sent),
                                     READ(msgs_dropped),
                                     READ(destinations_refused),
                                     READ(incoming),
                                     READ(outgoing)};
#undef READ
}
