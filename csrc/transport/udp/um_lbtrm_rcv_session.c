/* An LBT-RM receive session on a socket: puts the engine between its group's
 * socket and the generic session. NAKs go by unicast from one socket of the
 * context. Everything runs on the loop. */
#include "base/um_error.h"
#include "base/um_mem.h"
#include "net/um_socket.h"
#include "transport/lbtr/um_lbtrm_rcv_engine.h"
#include "transport/udp/um_lbtrm_channel.h"
#include "transport/session/um_local_addr.h"

struct um_lbtrm_rcv_session {
    struct um_udp_rcv_session common;
    struct um_lbtrm_channel *channel; /* NULL: stopped */
    struct um_lbtrm_channel_key key;
};

static struct um_lbtrm_rcv_session *rm_of(const struct um_udp_rcv_session *session)
{
    return UM_CONTAINER_OF((struct um_udp_rcv_session *)session, struct um_lbtrm_rcv_session, common);
}

/* ---- what differs from LBT-RU ---- */

static struct um_udp_socket *socket_of(struct um_udp_rcv_session *session)
{
    struct um_lbtrm_channel *channel = rm_of(session)->channel;
    return channel != NULL ? um_lbtrm_channel_own_socket(channel) : NULL;
}

static int nak_socket(const struct um_udp_rcv_session *session)
{
    return session->owner->nak_fd;
}

static void leave_channel(struct um_udp_rcv_session *session)
{
    struct um_lbtrm_rcv_session *rcv = rm_of(session);
    struct um_lbtrm_channel *channel = rcv->channel;
    if (channel != NULL) {
        rcv->channel = NULL;
        um_lbtrm_channel_remove(channel, &rcv->key);
        um_lbtrm_channel_release(channel);
    }
}

static void begun(struct um_udp_rcv_session *session)
{
    um_lbtrm_channel_heard(rm_of(session)->channel);
}

/* Silence is the one reason there is. */
static void describe_end(const struct um_udp_rcv_session *session, enum um_lbtr_end why, uint64_t now_ns,
                         struct um_udp_text *out)
{
    const struct um_udp_rcv_names *names = um_udp_rcv_names_of(session);
    lbm_ulong_t preactivity_ms = session->first.transport_lbtrm_preactivity_timeout;
    bool never = session->base.state == UM_RCV_JOINING && preactivity_ms != 0;
    um_udp_rcv_describe_silence(session, never ? names->preactivity : names->activity,
                                never ? preactivity_ms : session->first.transport_lbtrm_activity_timeout, now_ns, out);
}

static const struct um_udp_rcv_kind kind = {
    .socket = socket_of,
    .out = nak_socket,
    .close = leave_channel,
    .begun = begun,
    .shares_socket = true,
    .buffer_option = "transport_lbtrm_receiver_socket_buffer",
    .end_log = "Core-9006-11",
    .describe_end = describe_end,
    .names = {{.generation = "transport_lbtrm_nak_generation_interval",
               .activity = "transport_lbtrm_activity_timeout",
               .preactivity = "transport_lbtrm_preactivity_timeout"},
              {.generation = "mim_nak_generation_interval", .activity = "mim_activity_timeout"}},
};

/* ---- operations of the generic session ---- */

static void op_fill_stats(const struct um_rcv_session *base, lbm_rcv_transport_stats_t *out)
{
    out->type = LBM_TRANSPORT_STAT_LBTRM;
    um_lbtrm_rcv_engine_stats(um_udp_rcv_session_of((struct um_rcv_session *)base)->engine, &out->transport.lbtrm);
    UM_RCV_LBM_COUNTS(base, out->transport.lbtrm);
}

static void op_from_start(struct um_rcv_session *base)
{
    um_lbtrm_rcv_engine_from_start(um_udp_rcv_session_of(base)->engine);
}

static const struct um_rcv_session_ops ops = {UM_UDP_RCV_SESSION_OPS, .fill_stats = op_fill_stats,
                                              .from_start = op_from_start, .compare = um_lbtrm_rcv_engine_compare};

/* ---- joining ---- */

static struct um_lbtrm_rcv_engine_config read_options(const struct um_udp_receivers *receivers,
                                                      const struct um_receiver_options *opts,
                                                      const struct um_rcv_session_key *key)
{
    return (struct um_lbtrm_rcv_engine_config){
        .source_ip = key->ip,
        .session = {.ucast_port = (uint16_t)key->port, .session_id = key->session_id},
        .naks = UM_UDP_NAK_CONFIG(receivers, opts, transport_lbtrm),
        .activity_ns = um_ms_ns(opts->transport_lbtrm_activity_timeout),
        .preactivity_ns = um_ms_ns(opts->transport_lbtrm_preactivity_timeout),
    };
}

static int open_nak_socket(struct um_udp_receivers *receivers)
{
    struct um_iface iface;
    int err;
    if (receivers->nak_fd >= 0) {
        return 0;
    }
    if (um_multicast_iface(receivers->base.env->opts, &iface) != 0) {
        return -1;
    }
    receivers->nak_fd = um_socket_udp(iface.addr, 0, false, &err);
    return receivers->nak_fd >= 0 ? 0 : -1;
}

static int join_group(struct um_lbtrm_rcv_session *rcv, const struct um_rcv_session_key *key)
{
    struct um_udp_receivers *receivers = rcv->common.owner;
    rcv->channel = um_lbtrm_channel_get(receivers, key->group, (uint16_t)key->dest_port);
    if (rcv->channel == NULL) {
        return -1;
    }
    if (open_nak_socket(receivers) != 0 || um_lbtrm_channel_add(rcv->channel, &rcv->key, &rcv->common) != 0) {
        um_lbtrm_channel_release(rcv->channel);
        rcv->channel = NULL;
        return -1;
    }
    return 0;
}

static struct um_rcv_session *join(struct um_rcv_transport *transport, const struct um_receiver_options *opts,
                                   const struct um_rcv_session_key *key)
{
    struct um_udp_receivers *receivers = um_udp_receivers_of(transport);
    struct um_lbtrm_rcv_engine_config config = read_options(receivers, opts, key);
    struct um_lbtrm_rcv_session *rcv = um_calloc(1, sizeof *rcv);
    if (rcv == NULL) {
        um_error_nomem("LBT-RM receive session", sizeof *rcv);
        return NULL;
    }
    um_udp_rcv_session_init(&rcv->common, receivers, opts, key, &kind, &ops);
    rcv->key = (struct um_lbtrm_channel_key){.ip = key->ip, .port = key->port, .session_id = key->session_id};
    if (join_group(rcv, key) != 0) {
        um_udp_rcv_session_destroy(&rcv->common.base);
        return NULL;
    }
    return um_udp_rcv_session_joined(&rcv->common,
                                     um_lbtrm_rcv_engine_create(&config, &receivers->rng, &um_udp_rcv_outputs,
                                                                &rcv->common, um_loop_now(transport->env->loop)));
}

/* ---- operations of the transport ---- */

static void op_key(const lbm_transport_source_info_t *info, struct um_rcv_session_key *key)
{
    um_rcv_key_by_address(info, key);
    key->group = info->mc_group;
    key->dest_port = info->dest_port;
}

static bool op_place_heard(const struct um_rcv_transport *transport, const struct um_rcv_session_key *key)
{
    return um_lbtrm_channel_in_use(um_udp_receivers_of((struct um_rcv_transport *)transport), key->group,
                                   (uint16_t)key->dest_port);
}

/* NAKs need the socket from the first datagram on: what opens in part is closed with the channel. */
static int op_listen(struct um_rcv_transport *transport, uint32_t group, uint16_t port,
                     struct um_rcv_listener *listener)
{
    struct um_udp_receivers *receivers = um_udp_receivers_of(transport);
    struct um_lbtrm_channel *channel = um_lbtrm_channel_get(receivers, group, port);
    if (channel == NULL) {
        return -1;
    }
    if (open_nak_socket(receivers) != 0 || um_lbtrm_channel_set_listener(channel, listener) != 0) {
        um_lbtrm_channel_release(channel);
        return -1;
    }
    return 0;
}

static void op_unlisten(struct um_rcv_transport *transport, uint32_t group, uint16_t port,
                        struct um_rcv_listener *listener)
{
    um_lbtrm_channel_remove_listener(um_udp_receivers_of(transport), group, port, listener);
}

static uint64_t op_gap_timeout_ns(const struct um_receiver_options *opts)
{
    return um_udp_interval_ns(opts->transport_lbtrm_nak_generation_interval,
                              opts->um_transport_lbtrm_nak_generation_interval_us);
}

static void op_set_nak_cutoff(struct um_rcv_transport *transport, bool cutoff)
{
    struct um_udp_receivers *receivers = um_udp_receivers_of(transport);
    uint64_t now_ns = um_loop_now(transport->env->loop);
    struct um_list *node;
    receivers->nak_cutoff = cutoff;
    UM_LIST_FOREACH(node, &transport->sessions)
    {
        struct um_udp_rcv_session *session = UM_CONTAINER_OF(node, struct um_udp_rcv_session, base.transport_node);
        um_lbtr_rcv_engine_set_nak_cutoff(session->engine, now_ns, cutoff);
    }
}

const struct um_rcv_transport_ops um_lbtrm_rcv_transport = {
    .type = LBM_TRANSPORT_TYPE_LBTRM,
    .name = "LBT-RM",
    .join_kind = UM_RCV_JOIN_GROUP,
    .create = um_udp_receivers_create,
    .destroy = um_udp_receivers_destroy,
    .key = op_key,
    .join = join,
    .place_heard = op_place_heard,
    .gap_timeout_ns = op_gap_timeout_ns,
    .listen = op_listen,
    .unlisten = op_unlisten,
    .set_nak_cutoff = op_set_nak_cutoff,
    .counts = um_udp_receivers_counts,
    .counts_reset = um_udp_receivers_counts_reset,
};
