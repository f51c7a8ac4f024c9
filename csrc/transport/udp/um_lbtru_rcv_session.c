/* An LBT-RU receive session on a socket of its own: connection requests,
 * acknowledgements and NAKs go out where data comes in. Everything runs on the
 * loop. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "net/um_loop.h"
#include "net/um_socket.h"
#include "transport/lbtr/um_lbtru_rcv_engine.h"
#include "transport/udp/um_udp_rcv_session.h"
#include "transport/session/um_local_addr.h"

struct um_lbtru_rcv_session {
    struct um_udp_rcv_session common;
    struct um_udp_socket sock;
    struct um_fd ufd;
};

static struct um_lbtru_rcv_session *ru_of(const struct um_udp_rcv_session *session)
{
    return UM_CONTAINER_OF((struct um_udp_rcv_session *)session, struct um_lbtru_rcv_session, common);
}

/* ---- input ---- */

static void on_datagram(void *user, uint64_t now_ns)
{
    struct um_udp_rcv_session *session = user;
    struct um_udp_receivers *receivers = session->owner;
    const struct um_udp_datagram *datagram = &receivers->datagram;
    if (datagram->from_ip != session->source_ip || datagram->from_port != session->source_port || session->stopped) {
        receivers->counts.unjoined++;
        um_udp_tell_unknown(receivers, session->base.source);
        return;
    }
    if (datagram->oversized) {
        um_udp_rcv_session_malformed(session, UM_LBTR_SIZE);
        return;
    }
    um_udp_rcv_session_enter(session);
    um_lbtru_rcv_engine_on_packet(session->engine, now_ns, datagram->data, datagram->len, datagram->from_ip,
                                  datagram->from_port);
}

static void on_readable(struct um_fd *ufd, uint32_t ready, uint64_t now_ns)
{
    struct um_lbtru_rcv_session *rcv = UM_CONTAINER_OF(ufd, struct um_lbtru_rcv_session, ufd);
    struct um_rcv_session *base = &rcv->common.base;
    um_rcv_session_begin(base); /* the socket lives in the session */
    um_udp_read_pass(rcv->common.owner, &rcv->sock, now_ns, UM_LOSS_LBTRU_RCV, on_datagram, &rcv->common);
    um_rcv_session_end(base, now_ns);
}

/* ---- what differs from LBT-RM ---- */

static struct um_udp_socket *socket_of(struct um_udp_rcv_session *session)
{
    return &ru_of(session)->sock;
}

static int out(const struct um_udp_rcv_session *session)
{
    return ru_of(session)->sock.fd;
}

static void close_socket(struct um_udp_rcv_session *session)
{
    struct um_lbtru_rcv_session *rcv = ru_of(session);
    if (rcv->sock.fd >= 0) {
        um_udp_unwatch(session->owner, &rcv->sock, &rcv->ufd);
    }
}

static void describe_end(const struct um_udp_rcv_session *session, enum um_lbtr_end why, uint64_t now_ns,
                         struct um_udp_text *out)
{
    const struct um_receiver_options *opts = &session->first;
    switch (why) {
    case UM_LBTR_END_SILENCE:
        um_udp_rcv_describe_silence(session, um_udp_rcv_names_of(session)->activity,
                                    opts->transport_lbtru_activity_timeout, now_ns, out);
        break;
    case UM_LBTR_END_NO_ANSWER:
        snprintf(out->text, sizeof out->text,
                 "no answer to any of %lu requests (transport_lbtru_maximum_connect_attempts)",
                 opts->transport_lbtru_maximum_connect_attempts);
        break;
    default: /* what the limit is, only the source knows */
        snprintf(out->text, sizeof out->text,
                 "the source does not know this receiver (any more): it has begun anew, or up to %llu ms between two "
                 "acknowledgements were too much for it (transport_lbtru_client_activity_timeout of the source)",
                 (unsigned long long)(um_lbtru_rcv_engine_pause_ns(session->engine, now_ns) / UM_NS_PER_MS));
        break;
    }
}

static const struct um_udp_rcv_kind kind = {
    .socket = socket_of,
    .out = out,
    .close = close_socket,
    .buffer_option = "transport_lbtru_receiver_socket_buffer",
    .end_log = "Core-9006-12",
    .describe_end = describe_end,
    .names = {{.generation = "transport_lbtru_nak_generation_interval",
               .activity = "transport_lbtru_activity_timeout"}},
};

/* ---- operations of the generic session ---- */

static void op_fill_stats(const struct um_rcv_session *base, lbm_rcv_transport_stats_t *out)
{
    out->type = LBM_TRANSPORT_STAT_LBTRU;
    um_lbtru_rcv_engine_stats(um_udp_rcv_session_of((struct um_rcv_session *)base)->engine, &out->transport.lbtru);
    UM_RCV_LBM_COUNTS(base, out->transport.lbtru);
}

static uint32_t op_local_ip(const struct um_rcv_session *base)
{
    const struct um_udp_rcv_session *session = um_udp_rcv_session_of((struct um_rcv_session *)base);
    struct in_addr source = {.s_addr = session->source_ip}, bound = um_socket_local_addr(ru_of(session)->sock.fd);
    return bound.s_addr != INADDR_ANY ? bound.s_addr : um_socket_addr_towards(source).s_addr;
}

static const struct um_rcv_session_ops ops = {UM_UDP_RCV_SESSION_OPS, .fill_stats = op_fill_stats,
                                              .compare = um_lbtru_rcv_engine_compare, .local_ip = op_local_ip};

/* ---- joining ---- */

static struct um_lbtru_rcv_engine_config read_options(const struct um_udp_receivers *receivers,
                                                      const struct um_receiver_options *opts,
                                                      const struct um_rcv_session_key *key)
{
    return (struct um_lbtru_rcv_engine_config){
        .source_ip = key->ip,
        .source_port = (uint16_t)key->port,
        .session_id = key->session_id,
        .naks = UM_UDP_NAK_CONFIG(receivers, opts, transport_lbtru),
        .connect_ns = um_ms_ns(opts->transport_lbtru_connect_interval),
        .connect_attempts = opts->transport_lbtru_maximum_connect_attempts,
        .ack_ns = um_ms_ns(opts->transport_lbtru_acknowledgement_interval),
        .activity_ns = um_ms_ns(opts->transport_lbtru_activity_timeout),
    };
}

static int open_socket(struct um_lbtru_rcv_session *rcv, const struct um_receiver_options *receiver_opts)
{
    struct um_udp_receivers *receivers = rcv->common.owner;
    const struct um_context_options *opts = receivers->base.env->opts;
    struct in_addr addr;
    struct um_udp_config config = {
        .datagram_max = um_udp_receive_size(opts->transport_lbtru_receiver_datagram_max_size,
                                            opts->transport_lbtru_datagram_max_size),
        .socket_buffer = opts->transport_lbtru_receiver_socket_buffer,
        .socket_buffer_origin = um_size_origin(opts->default_buffers.transport_lbtru_receiver_socket_buffer),
        .socket_buffer_option = "transport_lbtru_receiver_socket_buffer",
        .socket_buffer_log = "Core-5688-3290",
    };
    const struct um_port_range range =
        UM_PORT_RANGE(receiver_opts, transport_lbtru_port, UM_RANGE_LBTRU, &receivers->range_told);
    if (um_local_addr(&receiver_opts->transport_lbtru_interface, &opts->default_interface, &addr) != 0 ||
        um_udp_receivers_open_reader(receivers, config.datagram_max) != 0) {
        return -1;
    }
    int rc = um_udp_open_range(receivers->reader, &rcv->sock, &config, addr, &range);
    if (rc == UM_UDP_NO_PORT || rc == UM_UDP_NOT_BOUND) {
        um_log_limited(um_log_of_ip(addr.s_addr), um_loop_now(receivers->base.env->loop), UM_LOG_WARNING,
                       rc == UM_UDP_NO_PORT ? "Core-5688-3300" : "Core-5688-3302", "LBT-RU receiver: %s", um_errmsg());
    }
    if (rc != 0) {
        return -1;
    }
    return um_udp_watch(receivers, &rcv->sock, &rcv->ufd, on_readable, addr);
}

/* The first connection request goes out at once. */
static struct um_rcv_session *join(struct um_rcv_transport *transport, const struct um_receiver_options *opts,
                                   const struct um_rcv_session_key *key)
{
    struct um_udp_receivers *receivers = um_udp_receivers_of(transport);
    struct um_lbtru_rcv_engine_config config = read_options(receivers, opts, key);
    struct um_lbtru_rcv_session *rcv = um_calloc(1, sizeof *rcv);
    if (rcv == NULL) {
        um_error_nomem("LBT-RU receive session", sizeof *rcv);
        return NULL;
    }
    rcv->sock.fd = -1;
    um_udp_rcv_session_init(&rcv->common, receivers, opts, key, &kind, &ops);
    if (open_socket(rcv, opts) != 0) {
        um_udp_rcv_session_destroy(&rcv->common.base);
        return NULL;
    }
    return um_udp_rcv_session_joined(&rcv->common,
                                     um_lbtru_rcv_engine_create(&config, &receivers->rng, &um_udp_rcv_outputs,
                                                                &rcv->common, um_loop_now(transport->env->loop)));
}

/* ---- operations of the transport ---- */

static uint64_t op_gap_timeout_ns(const struct um_receiver_options *opts)
{
    return um_udp_interval_ns(opts->transport_lbtru_nak_generation_interval,
                              opts->um_transport_lbtru_nak_generation_interval_us);
}

static void op_in_force(const struct um_transport_env *env, struct um_receiver_options *out)
{
    um_local_addr_in_force(&out->transport_lbtru_interface, &env->opts->default_interface);
}

const struct um_rcv_transport_ops um_lbtru_rcv_transport = {
    .type = LBM_TRANSPORT_TYPE_LBTRU,
    .name = "LBT-RU",
    .join_kind = UM_RCV_JOIN_ASKS,
    .create = um_udp_receivers_create,
    .destroy = um_udp_receivers_destroy,
    .key = um_rcv_key_by_address,
    .join = join,
    .gap_timeout_ns = op_gap_timeout_ns,
    .in_force = op_in_force,
    .counts = um_udp_receivers_counts,
    .counts_reset = um_udp_receivers_counts_reset,
};
