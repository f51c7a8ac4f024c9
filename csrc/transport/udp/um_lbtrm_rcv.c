/* An LBT-RM receive session on a socket: puts the engine between its group's
 * socket and the generic session. NAKs go by unicast from one socket of the
 * context. Everything runs on the loop. */
#include <errno.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "net/um_socket.h"
#include "transport/lbtr/um_lbtrm_receiver.h"
#include "transport/udp/um_lbtrm_channel.h"
#include "transport/um_local_addr.h"

struct um_lbtrm_rcv {
    struct um_udp_session common;
    struct um_lbtrm_channel *channel; /* NULL: stopped */
    struct um_lbtrm_channel_key key;
    struct um_lbtrm_receiver *engine;
};

static struct um_lbtrm_rcv *rcv_of(struct um_udp_session *session)
{
    return UM_CONTAINER_OF(session, struct um_lbtrm_rcv, common);
}

static struct um_lbtrm_rcv *of_base(const struct um_rcv_session *base)
{
    return UM_CONTAINER_OF(base, struct um_lbtrm_rcv, common.base);
}

/* ---- input ---- */

void um_lbtrm_rcv_datagram(struct um_lbtrm_rcv *rcv, uint64_t now_ns)
{
    const struct um_udp_datagram *datagram = &rcv->common.owner->datagram;
    um_udp_session_enter(&rcv->common);
    um_lbtrm_receiver_on_packet(rcv->engine, now_ns, datagram->data, datagram->len, datagram->from_ip);
}

void um_lbtrm_rcv_malformed(struct um_lbtrm_rcv *rcv, enum um_lbtr_rc rc)
{
    um_lbtr_counters_drop(um_lbtrm_receiver_counters(rcv->engine), rc);
}

static void on_timer(struct um_udp_session *session, uint64_t now_ns)
{
    um_lbtrm_receiver_on_timer(rcv_of(session)->engine, now_ns);
}

static struct um_udp_socket *socket_of(struct um_udp_session *session)
{
    struct um_lbtrm_rcv *rcv = rcv_of(session);
    return rcv->channel != NULL ? um_lbtrm_channel_own_socket(rcv->channel) : NULL;
}

static const struct um_udp_engine engine_calls = {
    .on_timer = on_timer,
    .socket = socket_of,
    .generation_option = "no repair came in time (transport_lbtrm_nak_generation_interval)",
    .buffer_option = "transport_lbtrm_receiver_socket_buffer",
};

/* ---- output of the engine ---- */

static void send_nak(void *io, const uint8_t *data, size_t len)
{
    struct um_lbtrm_rcv *rcv = io;
    struct um_udp_receivers *receivers = rcv->common.owner;
    if (rcv->channel == NULL) {
        return; /* over: nothing that was missing is wanted any more */
    }
    um_udp_send(receivers, receivers->nak_fd, data, len, rcv->key.ip, (uint16_t)rcv->key.port);
    um_udp_watch_drops(&rcv->common, um_loop_now(receivers->env->loop));
}

static void end(void *io, uint64_t now_ns, enum um_lbtr_end why)
{
    struct um_lbtrm_rcv *rcv = io;
    um_log(UM_LOG_INFO, "Core-9006-11", "%s: nothing heard for the time of transport_lbtrm_%s_timeout: session ended",
           rcv->common.base.source, rcv->common.base.state == UM_RCV_JOINING ? "preactivity" : "activity");
    um_rcv_session_lost(&rcv->common.base, now_ns);
}

static const struct um_lbtrm_receiver_ops outputs = {.nak = send_nak,
                                                     .deliver = um_udp_session_deliver,
                                                     .lost = um_udp_session_lost,
                                                     .begin = um_udp_session_heard,
                                                     .end = end,
                                                     .set_timer = um_udp_session_set_timer};

/* ---- operations of the generic session ---- */

static void op_stop(struct um_rcv_session *base)
{
    struct um_lbtrm_rcv *rcv = of_base(base);
    struct um_lbtrm_channel *channel = rcv->channel;
    um_udp_session_stop(&rcv->common);
    rcv->channel = NULL;
    um_lbtrm_channel_remove(channel, &rcv->key);
    um_lbtrm_channel_release(channel);
}

static void op_destroy(struct um_rcv_session *base)
{
    struct um_lbtrm_rcv *rcv = of_base(base);
    if (rcv->channel != NULL) {
        op_stop(base);
    }
    um_lbtrm_receiver_destroy(rcv->engine);
    um_free(rcv);
}

static bool op_complete_before(struct um_rcv_session *base, uint32_t position)
{
    return um_lbtrm_receiver_complete_before(of_base(base)->engine, position);
}

static void op_fill_stats(const struct um_rcv_session *base, lbm_rcv_transport_stats_t *out)
{
    out->type = LBM_TRANSPORT_STAT_LBTRM;
    um_lbtrm_receiver_stats(of_base(base)->engine, &out->transport.lbtrm);
    out->transport.lbtrm.lbm_msgs_rcved = base->msgs_rcved;
    out->transport.lbtrm.lbm_msgs_no_topic_rcved = base->msgs_no_topic;
    out->transport.lbtrm.lbm_reqs_rcved = base->reqs_rcved;
}

static void op_reset_stats(struct um_rcv_session *base)
{
    um_lbtrm_receiver_stats_reset(of_base(base)->engine);
}

static const struct um_rcv_transport_ops ops = {.stop = op_stop,
                                                .destroy = op_destroy,
                                                .complete_before = op_complete_before,
                                                .fill_stats = op_fill_stats,
                                                .reset_stats = op_reset_stats,
                                                .compare = um_lbtrm_receiver_compare};

/* ---- joining ---- */

static struct um_lbtrm_receiver_config read_options(const struct um_udp_receivers *receivers,
                                                    const struct um_receiver_options *opts,
                                                    const struct um_rcv_session_key *key)
{
    return (struct um_lbtrm_receiver_config){
        .source_ip = key->ip,
        .session = {.ucast_port = (uint16_t)key->port, .session_id = key->session_id},
        .naks = {.initial_ns = um_udp_interval_ns(opts->transport_lbtrm_nak_initial_backoff_interval,
                                                  opts->um_transport_lbtrm_nak_initial_backoff_interval_us),
                 .backoff_ns = um_udp_interval_ns(opts->transport_lbtrm_nak_backoff_interval,
                                                  opts->um_transport_lbtrm_nak_backoff_interval_us),
                 .suppress_ns = um_udp_interval_ns(opts->transport_lbtrm_nak_suppress_interval,
                                                   opts->um_transport_lbtrm_nak_suppress_interval_us),
                 .generation_ns = um_udp_interval_ns(opts->transport_lbtrm_nak_generation_interval,
                                                     opts->um_transport_lbtrm_nak_generation_interval_us),
                 .send_naks = opts->transport_lbtrm_send_naks != 0,
                 .lead_max = (uint32_t)receivers->env->opts->um_lead_maximum},
        .activity_ns = opts->transport_lbtrm_activity_timeout * UM_NS_PER_MS,
        .preactivity_ns = opts->transport_lbtrm_preactivity_timeout * UM_NS_PER_MS,
    };
}

static int open_nak_socket(struct um_udp_receivers *receivers)
{
    struct um_iface iface;
    int err;
    if (receivers->nak_fd >= 0) {
        return 0;
    }
    if (um_multicast_iface(receivers->env->opts, &iface) != 0) {
        return -1;
    }
    receivers->nak_fd = um_socket_udp(iface.addr, 0, false, &err);
    return receivers->nak_fd >= 0 ? 0 : -1;
}

static int join(struct um_lbtrm_rcv *rcv, const struct um_receiver_options *opts, const struct um_rcv_session_key *key)
{
    struct um_udp_receivers *receivers = rcv->common.owner;
    rcv->channel = um_lbtrm_channel_get(receivers, key->group, (uint16_t)key->dest_port);
    if (rcv->channel == NULL) {
        return -1;
    }
    if (open_nak_socket(receivers) != 0 || um_lbtrm_channel_add(rcv->channel, &rcv->key, rcv) != 0) {
        um_lbtrm_channel_release(rcv->channel);
        rcv->channel = NULL;
        return -1;
    }
    return 0;
}

struct um_rcv_session *um_lbtrm_session_create(struct um_udp_receivers *receivers,
                                               const struct um_receiver_options *opts,
                                               const struct um_rcv_session_key *key)
{
    struct um_lbtrm_receiver_config config = read_options(receivers, opts, key);
    uint64_t now_ns = um_loop_now(receivers->env->loop);
    struct um_lbtrm_rcv *rcv = um_calloc(1, sizeof *rcv);
    if (rcv == NULL) {
        um_error_nomem("LBT-RM receive session", sizeof *rcv);
        return NULL;
    }
    um_udp_session_init(&rcv->common, receivers, opts, &engine_calls, &ops);
    rcv->key = (struct um_lbtrm_channel_key){.ip = key->ip, .port = key->port, .session_id = key->session_id};
    if (join(rcv, opts, key) != 0) {
        um_udp_session_stop(&rcv->common);
        um_free(rcv);
        return NULL;
    }
    rcv->engine = um_lbtrm_receiver_create(&config, &receivers->rng, &outputs, rcv, now_ns);
    if (rcv->engine == NULL) {
        op_stop(&rcv->common.base);
        um_free(rcv);
        um_error_nomem("LBT-RM receive session", sizeof *rcv);
        return NULL;
    }
    if (receivers->nak_cutoff) {
        um_lbtrm_receiver_set_nak_cutoff(rcv->engine, now_ns, true);
    }
    return &rcv->common.base;
}

void um_udp_receivers_set_nak_cutoff(struct um_udp_receivers *receivers, bool cutoff)
{
    uint64_t now_ns = um_loop_now(receivers->env->loop);
    struct um_list *node;
    receivers->nak_cutoff = cutoff;
    UM_LIST_FOREACH(node, &receivers->sessions)
    {
        struct um_udp_session *session = UM_CONTAINER_OF(node, struct um_udp_session, node);
        if (session->base.key.type == LBM_TRANSPORT_TYPE_LBTRM) {
            um_lbtrm_receiver_set_nak_cutoff(rcv_of(session)->engine, now_ns, cutoff);
        }
    }
}
