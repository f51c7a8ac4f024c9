/* An LBT-RU receive session on a socket of its own: connection requests,
 * acknowledgements and NAKs go out where data comes in. Everything runs on the
 * loop. */
#include <arpa/inet.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "net/um_link_watch.h"
#include "net/um_loop.h"
#include "transport/lbtr/um_lbtru_receiver.h"
#include "transport/udp/um_udp_session.h"
#include "transport/um_local_addr.h"

struct um_lbtru_rcv {
    struct um_udp_session common;
    struct um_udp_socket sock;
    struct um_fd ufd;
    struct um_lbtru_receiver_config config;
    struct um_lbtru_receiver *engine; /* NULL before the start, and when there was no memory for it */
};

static struct um_lbtru_rcv *rcv_of(struct um_udp_session *session)
{
    return UM_CONTAINER_OF(session, struct um_lbtru_rcv, common);
}

static struct um_lbtru_rcv *of_base(const struct um_rcv_session *base)
{
    return UM_CONTAINER_OF(base, struct um_lbtru_rcv, common.base);
}

/* ---- input ---- */

static void on_datagram(void *user, uint64_t now_ns)
{
    struct um_lbtru_rcv *rcv = user;
    struct um_udp_receivers *receivers = rcv->common.owner;
    const struct um_udp_datagram *datagram = &receivers->datagram;
    if (datagram->from_ip != rcv->config.source_ip || datagram->from_port != rcv->config.source_port ||
        rcv->sock.fd < 0 || rcv->engine == NULL) {
        receivers->counts.lbtru_unknown++;
        um_udp_tell_unknown(receivers, rcv->common.base.source);
        return;
    }
    if (datagram->oversized) {
        um_lbtr_counters_drop(um_lbtru_receiver_counters(rcv->engine), UM_LBTR_SIZE);
        return;
    }
    um_udp_session_enter(&rcv->common);
    um_lbtru_receiver_on_packet(rcv->engine, now_ns, datagram->data, datagram->len, datagram->from_ip,
                                datagram->from_port);
}

static void on_readable(struct um_fd *ufd, uint32_t ready, uint64_t now_ns)
{
    struct um_lbtru_rcv *rcv = UM_CONTAINER_OF(ufd, struct um_lbtru_rcv, ufd);
    struct um_rcv_session *base = &rcv->common.base;
    um_rcv_session_begin(base); /* the socket lives in the session */
    um_udp_read_pass(rcv->common.owner, &rcv->sock, now_ns, UM_LOSS_LBTRU_RCV, on_datagram, rcv);
    um_rcv_session_end(base, now_ns);
}

static void on_timer(struct um_udp_session *session, uint64_t now_ns)
{
    struct um_lbtru_rcv *rcv = rcv_of(session);
    if (rcv->engine != NULL) {
        um_lbtru_receiver_on_timer(rcv->engine, now_ns);
    } else {
        um_rcv_session_lost(&session->base, now_ns);
    }
}

static struct um_udp_socket *socket_of(struct um_udp_session *session)
{
    return &rcv_of(session)->sock;
}

static const struct um_udp_engine engine_calls = {
    .on_timer = on_timer,
    .socket = socket_of,
    .generation_option = "no repair came in time (transport_lbtru_nak_generation_interval)",
    .buffer_option = "transport_lbtru_receiver_socket_buffer",
};

/* ---- output of the engine ---- */

static void send_packet(void *io, const uint8_t *data, size_t len)
{
    struct um_lbtru_rcv *rcv = io;
    struct um_udp_receivers *receivers = rcv->common.owner;
    if (rcv->sock.fd < 0) {
        return; /* over */
    }
    um_udp_send(receivers, rcv->sock.fd, data, len, rcv->config.source_ip, rcv->config.source_port);
    um_udp_watch_drops(&rcv->common, um_loop_now(receivers->env->loop));
}

static void end(void *io, uint64_t now_ns, enum um_lbtr_end why)
{
    static const char *const reasons[] = {
        [UM_LBTR_END_SILENCE] = "nothing heard for the time of transport_lbtru_activity_timeout",
        [UM_LBTR_END_NO_ANSWER] = "no answer to any of transport_lbtru_maximum_connect_attempts requests",
        [UM_LBTR_END_RESET] = "the source does not know this receiver (any more)",
    };
    struct um_lbtru_rcv *rcv = io;
    um_log(UM_LOG_INFO, "Core-9006-12", "%s: %s: session ended", rcv->common.base.source, reasons[why]);
    um_rcv_session_lost(&rcv->common.base, now_ns);
}

static const struct um_lbtru_receiver_ops outputs = {.send = send_packet,
                                                     .deliver = um_udp_session_deliver,
                                                     .lost = um_udp_session_lost,
                                                     .begin = um_udp_session_heard,
                                                     .end = end,
                                                     .set_timer = um_udp_session_set_timer};

/* ---- operations of the generic session ---- */

static void op_start(struct um_rcv_session *base, uint64_t not_before_ns, uint64_t now_ns)
{
    struct um_lbtru_rcv *rcv = of_base(base);
    rcv->engine = um_lbtru_receiver_create(&rcv->config, &rcv->common.owner->rng, &outputs, rcv, now_ns);
    if (rcv->engine == NULL) {
        um_log(UM_LOG_ERR, "Core-9006-13", "%s: out of memory: not joined", base->source);
        um_udp_session_set_timer(&rcv->common, now_ns);
    }
}

static void op_stop(struct um_rcv_session *base)
{
    struct um_lbtru_rcv *rcv = of_base(base);
    um_udp_session_stop(&rcv->common);
    um_udp_bank_socket(rcv->common.owner, &rcv->sock);
    um_loop_remove_fd(rcv->common.owner->env->loop, &rcv->ufd);
    um_udp_close(&rcv->sock);
}

static void op_destroy(struct um_rcv_session *base)
{
    struct um_lbtru_rcv *rcv = of_base(base);
    if (rcv->sock.fd >= 0) {
        op_stop(base);
    }
    if (rcv->engine != NULL) {
        um_lbtru_receiver_destroy(rcv->engine);
    }
    um_free(rcv);
}

static bool op_complete_before(struct um_rcv_session *base, uint32_t position)
{
    return um_lbtru_receiver_complete_before(of_base(base)->engine, position);
}

static void op_fill_stats(const struct um_rcv_session *base, lbm_rcv_transport_stats_t *out)
{
    const struct um_lbtru_rcv *rcv = of_base(base);
    out->type = LBM_TRANSPORT_STAT_LBTRU;
    if (rcv->engine != NULL) {
        um_lbtru_receiver_stats(rcv->engine, &out->transport.lbtru);
    }
    out->transport.lbtru.lbm_msgs_rcved = base->msgs_rcved;
    out->transport.lbtru.lbm_msgs_no_topic_rcved = base->msgs_no_topic;
    out->transport.lbtru.lbm_reqs_rcved = base->reqs_rcved;
}

static void op_reset_stats(struct um_rcv_session *base)
{
    struct um_lbtru_rcv *rcv = of_base(base);
    if (rcv->engine != NULL) {
        um_lbtru_receiver_stats_reset(rcv->engine);
    }
}

static const struct um_rcv_transport_ops ops = {.start = op_start,
                                                .stop = op_stop,
                                                .destroy = op_destroy,
                                                .complete_before = op_complete_before,
                                                .fill_stats = op_fill_stats,
                                                .reset_stats = op_reset_stats,
                                                .compare = um_lbtru_receiver_compare};

/* ---- joining ---- */

static struct um_lbtru_receiver_config read_options(const struct um_udp_receivers *receivers,
                                                    const struct um_receiver_options *opts,
                                                    const struct um_rcv_session_key *key)
{
    return (struct um_lbtru_receiver_config){
        .source_ip = key->ip,
        .source_port = (uint16_t)key->port,
        .session_id = key->session_id,
        .naks = {.initial_ns = um_udp_interval_ns(opts->transport_lbtru_nak_initial_backoff_interval,
                                                  opts->um_transport_lbtru_nak_initial_backoff_interval_us),
                 .backoff_ns = um_udp_interval_ns(opts->transport_lbtru_nak_backoff_interval,
                                                  opts->um_transport_lbtru_nak_backoff_interval_us),
                 .suppress_ns = um_udp_interval_ns(opts->transport_lbtru_nak_suppress_interval,
                                                   opts->um_transport_lbtru_nak_suppress_interval_us),
                 .generation_ns = um_udp_interval_ns(opts->transport_lbtru_nak_generation_interval,
                                                     opts->um_transport_lbtru_nak_generation_interval_us),
                 .send_naks = opts->transport_lbtru_send_naks != 0,
                 .lead_max = (uint32_t)receivers->env->opts->um_lead_maximum},
        .connect_ns = opts->transport_lbtru_connect_interval * UM_NS_PER_MS,
        .connect_attempts = opts->transport_lbtru_maximum_connect_attempts,
        .ack_ns = opts->transport_lbtru_acknowledgement_interval * UM_NS_PER_MS,
        .activity_ns = opts->transport_lbtru_activity_timeout * UM_NS_PER_MS,
    };
}

static int open_socket(struct um_lbtru_rcv *rcv, const struct um_receiver_options *receiver_opts)
{
    struct um_udp_receivers *receivers = rcv->common.owner;
    const struct um_context_options *opts = receivers->env->opts;
    struct in_addr addr;
    struct um_udp_config config = {
        .datagram_max = um_udp_receive_size(opts->transport_lbtru_receiver_datagram_max_size,
                                            opts->transport_lbtru_datagram_max_size),
        .socket_buffer = opts->transport_lbtru_receiver_socket_buffer,
        .socket_buffer_option = "transport_lbtru_receiver_socket_buffer",
        .socket_buffer_log = "Core-5688-3290",
    };
    if (um_local_addr(&receiver_opts->transport_lbtru_interface, &opts->default_interface, &addr) != 0 ||
        um_udp_receivers_open_reader(receivers) != 0 ||
        um_udp_open_range(receivers->reader, &rcv->sock, &config, addr, receiver_opts->transport_lbtru_port_low,
                          receiver_opts->transport_lbtru_port_high,
                          "transport_lbtru_port_low..transport_lbtru_port_high (receiver)") != 0) {
        return -1;
    }
    um_fd_init(&rcv->ufd, rcv->sock.fd, on_readable);
    rcv->ufd.arrivals = &rcv->sock.packets;
    if (um_loop_add_fd(receivers->env->loop, &rcv->ufd, UM_FD_READ) != 0) {
        um_udp_close(&rcv->sock);
        return -1;
    }
    um_link_watch_add(&receivers->env->links, receivers->env->loop, addr.s_addr);
    return 0;
}

struct um_rcv_session *um_lbtru_session_create(struct um_udp_receivers *receivers,
                                               const struct um_receiver_options *opts,
                                               const struct um_rcv_session_key *key)
{
    struct um_lbtru_rcv *rcv = um_calloc(1, sizeof *rcv);
    if (rcv == NULL) {
        um_error_nomem("LBT-RU receive session", sizeof *rcv);
        return NULL;
    }
    um_udp_session_init(&rcv->common, receivers, opts, &engine_calls, &ops);
    rcv->config = read_options(receivers, opts, key);
    if (open_socket(rcv, opts) != 0) {
        um_udp_session_stop(&rcv->common);
        um_free(rcv);
        return NULL;
    }
    return &rcv->common.base;
}
