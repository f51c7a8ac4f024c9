/* LBT-RU sources: which port and session a topic goes to, the socket of a session,
 * the engine behind it, its clients' events and filters. Creation, end and reception
 * on the loop; outputs of the engine under the session lock. */
#include <arpa/inet.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_hash.h"
#include "base/um_random.h"
#include "net/um_link_watch.h"
#include "net/um_socket.h"
#include "transport/udp/um_lbtru_peers.h"
#include "transport/session/um_local_addr.h"

struct um_lbtru_src_session {
    struct um_udp_src_session udp;
    enum um_lbtru_ssf ssf;  /* fixed */
    uint32_t transport_idx; /* fixed: random */
    struct um_lbtru_peers peers;
    const struct um_lbtru_peer *only; /* lock: what is sent now is for this client alone */
    uint64_t no_memory_told;          /* [loop] */
    /* Connection requests that mean nothing: how many since the last log line, and the last of them. */
    uint32_t odd_requests;            /* lock */
    uint16_t odd_code;                /* lock */
    struct um_lbtru_address odd_from; /* lock */
};

static struct um_lbtru_src_session *ru_of(const struct um_udp_src_session *udp)
{
    return UM_CONTAINER_OF((struct um_udp_src_session *)udp, struct um_lbtru_src_session, udp);
}

/* ---- outputs of the engine: lock ---- */

static void send_packet(void *io, const struct um_lbtru_address *to, const uint8_t *head, size_t head_len,
                        const uint8_t *body, size_t body_len)
{
    struct um_lbtru_src_session *source = io;
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(to->port), .sin_addr = {to->ip}};
    um_udp_src_session_put(&source->udp, &sin, head, head_len, body, body_len);
}

static void on_boundary(void *io)
{
    struct um_lbtru_src_session *source = io;
    um_src_session_flush(&source->udp.base);
}

static void on_connected(void *io, const struct um_lbtru_address *client)
{
    struct um_lbtru_src_session *source = io;
    source->udp.base.clients++;
    um_lbtru_peers_add(&source->peers, client);
    um_loop_post(source->udp.base.env->loop, &source->udp.base.command);
}

static void on_disconnected(void *io, const struct um_lbtru_address *client, uint64_t silent_ns)
{
    struct um_lbtru_src_session *source = io;
    source->udp.base.clients--;
    um_lbtru_peers_remove(&source->peers, client, silent_ns);
    um_loop_post(source->udp.base.env->loop, &source->udp.base.command);
}

static bool peer_wants(const struct um_lbtru_src_session *source, const struct um_lbtru_peer *peer, uint32_t tidx)
{
    bool listed = um_u32_map_get(&peer->topics, tidx) != NULL;
    return source->ssf == UM_LBTRU_SSF_EXCLUSION ? !listed : listed;
}

/* With filtering a datagram has messages of one topic only. */
static uint32_t topic_of(const uint8_t *payload)
{
    return payload[0] == UM_LBMC_CONTROL ? um_get32(payload + 8) /* TSNI with one record */ : um_get32(payload + 4);
}

static bool is_at(const struct um_lbtru_address *address, const struct um_lbtru_address *client)
{
    return address->ip == client->ip && address->port == client->port;
}

static bool wanted(void *io, const struct um_lbtru_address *client, const uint8_t *payload, size_t len)
{
    struct um_lbtru_src_session *source = io;
    if (source->only != NULL) {
        return client != NULL && is_at(&source->only->address, client);
    }
    if (client == NULL) {
        return source->ssf == UM_LBTRU_SSF_NONE;
    }
    if (source->ssf == UM_LBTRU_SSF_NONE) {
        return true;
    }
    const struct um_lbtru_peer *peer = um_lbtru_peers_find(&source->peers, client);
    bool wants = peer == NULL || peer->unfiltered || peer_wants(source, peer, topic_of(payload));
    source->udp.base.drops.filtered_bytes += wants ? 0 : len;
    return wants;
}

static void on_odd_request(void *io, const struct um_lbtru_address *from, uint16_t code)
{
    struct um_lbtru_src_session *source = io;
    source->odd_requests++;
    source->odd_code = code;
    source->odd_from = *from;
}

static uint32_t first_number(void *io, const struct um_lbtru_address *client, uint64_t epoch)
{
    const struct um_lbtru_src_session *source = io;
    const struct {
        uint64_t epoch, transport_idx;
        uint32_t ip, port, session_id, zero;
    } secret = {epoch, source->transport_idx, client->ip, client->port, source->udp.session_id, 0};
    return um_hash_bytes(&secret, sizeof secret);
}

static const struct um_lbtru_src_engine_ops engine_ops = {
    .send = send_packet,
    .common = UM_UDP_SRC_OUTPUTS,
    .boundary = on_boundary,
    .connected = on_connected,
    .disconnected = on_disconnected,
    .wanted = wanted,
    .unknown_request = on_odd_request,
    .first_number = first_number,
};

/* ---- the engine ---- */

/* False: out of memory. */
static bool put_ssf_init(struct um_lbtru_src_session *source, const struct um_lbtru_peer *peer)
{
    const struct um_transport_env *env = source->udp.base.env;
    struct um_lbmc_ssf_init init = {
        .flags = source->ssf == UM_LBTRU_SSF_INCLUSION ? 0x40 : 0x20,
        .transport = LBM_TRANSPORT_TYPE_LBTRU,
        .transport_idx = source->transport_idx,
        .client_idx = peer->idx,
        .port = env->request_port,
        .ip = env->request_ip.s_addr,
    };
    uint8_t message[24];
    size_t len = um_lbmc_encode_ssf_init(message, &init);
    return um_src_session_put_alone(&source->udp.base, message, len);
}

/* What makes a new client ready: the last numbers of the topics it will get. Out of memory: with the next packet or
 * timer of the session. */
static void greet(struct um_lbtru_src_session *source)
{
    struct um_lbtru_peer *peer;
    bool room = true;
    while (room && (peer = um_lbtru_peers_ungreeted(&source->peers)) != NULL) {
        um_src_session_flush(&source->udp.base);
        source->only = peer;
        room = source->ssf == UM_LBTRU_SSF_NONE || put_ssf_init(source, peer);
        if (room && source->ssf != UM_LBTRU_SSF_INCLUSION) {
            room = um_src_session_tell_numbers(&source->udp.base, NULL);
        }
        source->only = NULL;
        if (room) {
            um_list_remove(&peer->greet_node);
        }
    }
}

static void on_packet(struct um_udp_src_session *udp, uint64_t now_ns, const struct um_udp_datagram *datagram)
{
    struct um_lbtru_src_session *source = ru_of(udp);
    struct um_lbtru_address from = {datagram->from_ip, datagram->from_port};
    uint64_t before = um_lbtru_src_engine_strangers(source->udp.engine).answered;
    um_lbtru_src_engine_on_packet(udp->engine, now_ns, datagram->data, datagram->len, &from);
    udp->base.drops.strangers += um_lbtru_src_engine_strangers(source->udp.engine).answered - before;
    greet(source);
}

/* Clients that wait for it may have room now. */
static void after_timer(struct um_udp_src_session *udp)
{
    greet(ru_of(udp));
}

static void stats(const struct um_udp_src_session *udp, lbm_src_transport_stats_t *out)
{
    out->type = LBM_TRANSPORT_STAT_LBTRU;
    um_lbtru_src_engine_stats(udp->engine, &out->transport.lbtru);
}

static void report_odd_requests(struct um_lbtru_src_session *source)
{
    char ip[INET_ADDRSTRLEN];
    um_src_session_lock(&source->udp.base);
    bool any = source->odd_requests > 0;
    uint16_t code = source->odd_code;
    struct um_lbtru_address from = source->odd_from;
    source->odd_requests = 0;
    um_src_session_unlock(&source->udp.base);
    if (any) {
        inet_ntop(AF_INET, &from.ip, ip, sizeof ip);
        um_log_limited(um_log_of_ip(from.ip), um_loop_now(source->udp.base.env->loop), UM_LOG_WARNING, "Core-5688-1797",
                       "LBT-RU source on port %u: connection request with unknown code %u from %s:%u ignored",
                       source->udp.port, code, ip, from.port);
    }
}

static void after(struct um_udp_src_session *udp)
{
    struct um_lbtru_src_session *source = ru_of(udp);
    um_lbtru_peers_report(&source->peers, &udp->base);
    report_odd_requests(source);
    um_src_session_lock(&udp->base);
    uint64_t no_memory = source->peers.no_memory;
    um_src_session_unlock(&udp->base);
    if (no_memory != source->no_memory_told) {
        source->no_memory_told = no_memory;
        um_log(UM_LOG_ERR, "Core-9004-5",
               "LBT-RU source on port %u: out of memory: %llu receivers are served without CONNECT events or filters",
               udp->port, (unsigned long long)no_memory);
    }
}

static void forget_topic(struct um_udp_src_session *udp, uint32_t tidx)
{
    struct um_lbtru_src_session *source = ru_of(udp);
    struct um_list *it;
    um_src_session_lock(&udp->base);
    UM_LIST_FOREACH(it, &source->peers.all)
    {
        um_u32_map_remove(&UM_CONTAINER_OF(it, struct um_lbtru_peer, node)->topics, tidx);
    }
    um_src_session_unlock(&udp->base);
}

static void fini(struct um_udp_src_session *udp)
{
    um_lbtru_peers_free(&ru_of(udp)->peers);
}

static const struct um_udp_src_kind kind = {.on_packet = on_packet,
                                            .after_timer = after_timer,
                                            .stats = stats,
                                            .after = after,
                                            .forget_topic = forget_topic,
                                            .fini = fini};

/* ---- the session ---- */

static void source_info(const struct um_src_session *base, lbm_transport_source_info_t *out)
{
    const struct um_udp_src_session *udp = um_udp_src_session_of(base);
    memset(out, 0, sizeof *out);
    out->type = LBM_TRANSPORT_TYPE_LBTRU;
    out->src_ip = udp->addr.s_addr;
    out->src_port = udp->port;
    out->session_id = udp->session_id;
}

static void announce(struct um_src_session *base, struct um_src_stream *stream)
{
    um_lbtru_peers_announce(&ru_of(um_udp_src_session_of(base))->peers, stream);
}

static void in_force(const struct um_src_session *base, struct um_source_options *out)
{
    const struct um_udp_src_session *source = um_udp_src_session_of(base);
    out->transport_lbtru_port = htons(source->port);
    out->transport_lbtru_interface = um_interface_value(source->addr);
}

static const struct um_src_session_ops session_ops = {
    .options = "transport_lbtru_",
    .in_force = in_force,
    .datagram_option = "transport_lbtru_datagram_max_size",
    .blocked_by = "the rate limit of LBT-RU is used up (transport_lbtru_data_rate_limit)",
    UM_UDP_SOURCE_OPS,
    .announce = announce,
    .source_info = source_info,
};

static size_t datagram_size(const struct um_context_options *opts)
{
    return um_udp_datagram_limit(opts->transport_lbtru_source_datagram_max_size != 0
                                     ? opts->transport_lbtru_source_datagram_max_size
                                     : opts->transport_lbtru_datagram_max_size,
                                 session_ops.datagram_option);
}

static struct um_lbtr_src_engine *make_engine(struct um_udp_sources *pool, const struct um_source_options *opts,
                                              struct um_lbtru_src_session *source, size_t datagram_max,
                                              uint32_t buffers)
{
    struct um_lbtru_src_engine_config config = {
        .session_id = source->udp.session_id,
        .datagram_max = datagram_max,
        .buffers = buffers,
        .window_size = opts->transport_lbtru_transmission_window_size,
        .window_limit = opts->transport_lbtru_transmission_window_limit,
        .ignore_ns = um_ms_ns(opts->transport_lbtru_ignore_interval),
        .sm_min_ns = um_ms_ns(opts->transport_lbtru_sm_minimum_interval),
        .sm_max_ns = um_ms_ns(opts->transport_lbtru_sm_maximum_interval),
        .client_activity_ns = um_ms_ns(opts->transport_lbtru_client_activity_timeout),
        .client_map_size = opts->transport_lbtru_client_map_size,
    };
    struct um_lbtr_src_engine *made =
        um_lbtru_src_engine_create(&config, um_udp_limiter(pool, buffers != 0), &engine_ops, source);
    if (made == NULL) {
        um_error_nomem("LBT-RU source session", sizeof config);
    }
    return made;
}

static int open_socket(struct um_udp_sources *pool, struct um_lbtru_src_session *source,
                       const struct um_port_range *range)
{
    const struct um_context_options *opts = pool->base.env->opts;
    struct um_udp_config config = {.datagram_max = UM_LBTR_DATAGRAM_MAX,
                                   .socket_buffer = opts->transport_lbtru_receiver_socket_buffer,
                                   .socket_buffer_origin =
                                       um_size_origin(opts->default_buffers.transport_lbtru_receiver_socket_buffer),
                                   .socket_buffer_option = "transport_lbtru_receiver_socket_buffer",
                                   .socket_buffer_log = "Core-5688-3290"};
    if (um_udp_src_session_open_in(&source->udp, pool, &config, range) != 0) {
        return -1;
    }
    um_socket_set_sndbuf(source->udp.in.fd, opts->transport_lbtru_source_socket_buffer,
                         um_size_origin(opts->default_buffers.transport_lbtru_source_socket_buffer),
                         "transport_lbtru_source_socket_buffer", "Core-5688-3290");
    return 0;
}

/* The socket is open. Takes over nothing when it fails. */
static int open_session(struct um_udp_sources *pool, const struct um_source_options *opts,
                        struct um_lbtru_src_session *source, const char *smart)
{
    size_t overhead = source->udp.session_id != 0 ? UM_LBTRU_DATA_HDR_MAX : UM_LBTRU_DATA_HDR_MAX - UM_LBTRU_OPTION_LEN;
    size_t datagram_max = datagram_size(pool->base.env->opts);
    uint32_t buffers = 0;
    if (smart != NULL) {
        datagram_max = um_udp_smart_datagram(opts, datagram_max, overhead);
        buffers =
            um_udp_smart_buffers((uint32_t)opts->transport_lbtru_smart_src_transmission_window_buffer_count,
                                 datagram_max, "transport_lbtru_smart_src_transmission_window_buffer_count", smart);
        if (buffers == 0) {
            return -1;
        }
    }
    struct um_udp_src_session_config config = {.ops = &session_ops,
                                               .kind = &kind,
                                               .datagram_max = datagram_max,
                                               .transport_overhead = overhead,
                                               .smart = smart != NULL,
                                               .window_size = opts->transport_lbtru_transmission_window_size,
                                               .window_limit = opts->transport_lbtru_transmission_window_limit,
                                               .one_topic = source->ssf != UM_LBTRU_SSF_NONE};
    source->udp.engine = make_engine(pool, opts, source, datagram_max, buffers);
    if (source->udp.engine == NULL) {
        return -1;
    }
    if (um_udp_src_session_open(&source->udp, pool, &config, opts, -1, false) != 0) {
        um_lbtr_src_engine_destroy(source->udp.engine);
        return -1;
    }
    source->udp.base.filtering = source->ssf != UM_LBTRU_SSF_NONE;
    if (smart != NULL) {
        source->udp.base.first.transport_lbtru_smart_src_transmission_window_buffer_count = (int)buffers;
    }
    return 0;
}

/* `smart`: the topic, if it is that of a smart source. */
static struct um_udp_src_session *session_create(struct um_udp_sources *pool, const struct um_source_options *opts,
                                                 const struct um_port_range *range, const char *smart)
{
    struct in_addr addr;
    if (um_listen_addr(&opts->transport_lbtru_interface, &pool->base.env->opts->default_interface, &addr) != 0) {
        return NULL;
    }
    struct um_lbtru_src_session *source = um_calloc(1, sizeof *source);
    if (source == NULL) {
        um_error_nomem("LBT-RU source session", sizeof *source);
        return NULL;
    }
    um_lbtru_peers_init(&source->peers);
    source->ssf = (enum um_lbtru_ssf)opts->transport_source_side_filtering_behavior;
    source->transport_idx = um_random_u32_nonzero();
    source->udp.addr = addr;
    source->udp.shown = addr.s_addr == INADDR_ANY ? um_shown_addr(pool->base.env->opts) : addr;
    source->udp.session_id = opts->transport_lbtru_use_session_id != 0 ? um_random_u32_nonzero() : 0;
    source->udp.loss = UM_LOSS_LBTRU_SRC;
    if (open_socket(pool, source, range) != 0) {
        um_free(source);
        return NULL;
    }
    if (open_session(pool, opts, source, smart) != 0) {
        um_udp_close(&source->udp.in);
        um_free(source);
        return NULL;
    }
    um_link_watch_add(&pool->base.env->links, pool->base.env->loop, addr.s_addr);
    return &source->udp;
}

/* ---- the pool ---- */

static void place_of(const struct um_source_options *opts, struct um_src_place *place)
{
    place->id = ntohs(opts->transport_lbtru_port);
    place->named = place->id != 0;
}

static uint64_t limit(const struct um_context_options *opts)
{
    return opts->transport_lbtru_maximum_ports;
}

static struct um_udp_src_session *open_named(struct um_udp_sources *pool, const struct um_source_options *opts,
                                             uint16_t port, const char *smart)
{
    static const char option[] = "transport_lbtru_port";
    const struct um_port_range fixed = {.low_option = option, .high_option = option, .low = port, .high = port};
    const struct um_port_range any = {.low_option = option, .high_option = option};
    struct um_udp_src_session *source = session_create(pool, opts, &fixed, smart);
    if (source == NULL && opts->transport_lbtru_allow_ephemeral != 0) {
        source = session_create(pool, opts, &any, smart);
    }
    return source;
}

static struct um_udp_src_session *open_free(struct um_udp_sources *pool, const struct um_source_options *opts,
                                            const char *smart)
{
    const struct um_context_options *copts = pool->base.env->opts;
    const struct um_port_range range =
        UM_PORT_RANGE(copts, transport_lbtru_port, UM_RANGE_LBTRU, &pool->base.range_told);
    return session_create(pool, opts, &range, smart);
}

/* Whoever named it, a session is one of the pool; a port that could not be had is remembered. */
static struct um_src_session *open_source(struct um_src_transport *base, const struct um_source_options *opts,
                                          const char *topic, struct um_src_place *place)
{
    struct um_udp_sources *pool = um_udp_sources_of(base);
    const char *smart = place->smart ? topic : NULL;
    struct um_udp_src_session *source =
        place->named ? open_named(pool, opts, (uint16_t)place->id, smart) : open_free(pool, opts, smart);
    if (source == NULL) {
        return NULL;
    }
    place->alias = place->named && place->id != source->port ? place->id : 0;
    place->id = source->port;
    place->counted = true;
    return &source->base;
}

static int accepts(const struct um_source_options *opts)
{
    int filtering = opts->transport_source_side_filtering_behavior;
    if (filtering < UM_LBTRU_SSF_NONE || filtering > UM_LBTRU_SSF_EXCLUSION) {
        return um_error(
            UM_EOPNOTSUPP, "CoreApi-5688-3238",
            "transport_source_side_filtering_behavior %d: not implemented; none, inclusion and exclusion are",
            filtering);
    }
    return 0;
}

/* ---- source-side filtering ---- */

/* Lock. The messages sent so far go by the old list, the ones after by the new. */
static void change_filter(struct um_lbtru_src_session *source, struct um_lbtru_peer *peer, struct um_src_stream *stream,
                          bool include)
{
    bool list = include == (source->ssf == UM_LBTRU_SSF_INCLUSION);
    um_src_session_flush(&source->udp.base);
    bool wanted_before = peer_wants(source, peer, stream->tidx);
    if (!list) {
        um_u32_map_remove(&peer->topics, stream->tidx);
    } else if (um_u32_map_put(&peer->topics, stream->tidx, peer) != 0) {
        source->peers.no_memory++;
        peer->unfiltered = true; /* more than it wants is better than less */
    }
    if (include && !wanted_before) {
        source->only = peer;
        um_src_session_tell_numbers(&source->udp.base, stream);
        source->only = NULL;
    }
}

static bool on_ssf_creq(struct um_src_transport *base, const struct um_lbmc_ssf_creq *creq, uint32_t from_ip)
{
    struct um_list *it;
    UM_LIST_FOREACH(it, &base->sessions)
    {
        struct um_lbtru_src_session *source = UM_CONTAINER_OF(it, struct um_lbtru_src_session, udp.base.pool_node);
        if (source->transport_idx != creq->transport_idx || source->ssf == UM_LBTRU_SSF_NONE) {
            continue;
        }
        struct um_src_stream *stream = um_src_session_stream(&source->udp.base, creq->topic_idx);
        um_src_session_lock(&source->udp.base);
        struct um_lbtru_peer *peer = um_lbtru_peers_by_idx(&source->peers, creq->client_idx);
        bool meant = peer != NULL && peer->address.ip == from_ip && stream != NULL && creq->mode <= 1;
        if (meant) {
            change_filter(source, peer, stream, creq->mode == 0);
        }
        um_src_session_unlock(&source->udp.base);
        return meant;
    }
    return false;
}

/* ---- the transport ---- */

static int check(const struct um_context_options *opts)
{
    if (opts->transport_lbtru_port_low > opts->transport_lbtru_port_high) {
        return um_error(UM_EINVAL, "CoreApi-8812-6",
                        "transport_lbtru_port_low %u: must not be above transport_lbtru_port_high %u (context)",
                        opts->transport_lbtru_port_low, opts->transport_lbtru_port_high);
    }
    return 0;
}

static struct um_src_transport *create(struct um_transport_env *env)
{
    struct um_lbtr_limiter_config limits = {.data_bps = env->opts->transport_lbtru_data_rate_limit,
                                            .retransmit_bps = env->opts->transport_lbtru_retransmit_rate_limit,
                                            .interval_ns = um_ms_ns(env->opts->transport_lbtru_rate_interval)};
    return um_udp_sources_create(env, &limits);
}

static uint64_t retransmit_limit(const struct um_context_options *opts)
{
    return opts->transport_lbtru_retransmit_rate_limit;
}

const struct um_src_transport_ops um_lbtru_src_transport = {
    .type = LBM_SRC_TOPIC_ATTR_TRANSPORT_LBTRU,
    .name = "lbt-ru",
    .check = check,
    .create = create,
    .destroy = um_udp_sources_destroy,
    .accepts = accepts,
    .place = place_of,
    .limit = limit,
    .open = open_source,
    .compare = um_lbtru_src_engine_compare,
    .close = um_udp_src_session_close,
    .on_ssf_creq = on_ssf_creq,
    .retains = true,
    .smart = true,
    .retention_least = 8192,
    .retransmit_limit = retransmit_limit,
};
