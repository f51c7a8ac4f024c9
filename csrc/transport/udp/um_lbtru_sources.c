/* LBT-RU sources: which port and session a topic goes to, the socket of a session,
 * the engine behind it, its clients' events and filters. Creation, end and reception
 * on the loop; outputs of the engine under the session lock. */
#include <arpa/inet.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_random.h"
#include "net/um_link_watch.h"
#include "net/um_socket.h"
#include "transport/udp/um_lbtru_peers.h"
#include "transport/um_local_addr.h"
#include "transport/um_src_sessions.h"

struct um_lbtru_session_source {
    struct um_udp_source udp;
    struct um_lbtru_source *engine;
    enum um_lbtru_ssf ssf;  /* fixed */
    uint32_t transport_idx; /* fixed */
    struct um_lbtru_peers peers;
    const struct um_lbtru_peer *only;        /* lock: what is sent now is for this client alone */
    const struct um_lbtru_address *newcomer; /* lock: what is sent now is not for this client */
    uint64_t no_memory_told;                 /* [loop] */
    /* Connection requests that mean nothing: how many since the last log line, and the last of them. */
    uint32_t odd_requests;            /* lock */
    uint16_t odd_code;                /* lock */
    struct um_lbtru_address odd_from; /* lock */
    struct um_log_limit odd_log;      /* [loop] */
};

static struct um_lbtru_session_source *ru_of(const struct um_udp_source *udp)
{
    return UM_CONTAINER_OF((struct um_udp_source *)udp, struct um_lbtru_session_source, udp);
}

static struct um_lbtru_session_source *ru_of_node(struct um_list *node)
{
    return ru_of(UM_CONTAINER_OF(node, struct um_udp_source, node));
}

/* ---- outputs of the engine: lock ---- */

static void send_packet(void *io, const struct um_lbtru_address *to, const uint8_t *head, size_t head_len,
                        const uint8_t *body, size_t body_len)
{
    struct um_lbtru_session_source *source = io;
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(to->port), .sin_addr = {to->ip}};
    um_udp_source_put(&source->udp, &sin, head, head_len, body, body_len);
}

/* A new client begins at a datagram boundary: what was batched before it came is not for it. */
static void on_connected(void *io, const struct um_lbtru_address *client)
{
    struct um_lbtru_session_source *source = io;
    source->newcomer = client;
    um_src_session_flush(&source->udp.base);
    source->newcomer = NULL;
    source->udp.base.clients++;
    um_lbtru_peers_add(&source->peers, client);
    um_loop_post(source->udp.base.env->loop, &source->udp.base.command);
}

static void on_disconnected(void *io, const struct um_lbtru_address *client)
{
    struct um_lbtru_session_source *source = io;
    source->udp.base.clients--;
    um_lbtru_peers_remove(&source->peers, client);
    um_loop_post(source->udp.base.env->loop, &source->udp.base.command);
}

static bool peer_wants(const struct um_lbtru_session_source *source, const struct um_lbtru_peer *peer, uint32_t tidx)
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
    struct um_lbtru_session_source *source = io;
    if (source->only != NULL) {
        return is_at(&source->only->address, client);
    }
    if (source->newcomer != NULL && is_at(source->newcomer, client)) {
        return false;
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
    struct um_lbtru_session_source *source = io;
    source->odd_requests++;
    source->odd_code = code;
    source->odd_from = *from;
}

static const struct um_lbtru_source_ops engine_ops = {
    .send = send_packet,
    .set_timer = um_udp_source_set_timer,
    .kick = um_udp_source_kick,
    .relieved = um_udp_source_relieved,
    .connected = on_connected,
    .disconnected = on_disconnected,
    .wanted = wanted,
    .full = um_udp_source_full,
    .unknown_request = on_odd_request,
};

/* ---- the engine ---- */

static uint8_t *acquire(struct um_udp_source *udp, size_t *capacity)
{
    return um_lbtru_source_acquire(ru_of(udp)->engine, capacity);
}

static enum um_lbtr_commit commit(struct um_udp_source *udp, uint64_t now_ns, size_t len, size_t user_bytes)
{
    return um_lbtru_source_commit(ru_of(udp)->engine, now_ns, len, user_bytes);
}

static bool may_send(struct um_udp_source *udp, bool tell)
{
    return um_lbtru_source_may_send(ru_of(udp)->engine, tell);
}

/* False: out of memory. */
static bool put_ssf_init(struct um_lbtru_session_source *source, const struct um_lbtru_peer *peer)
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
static void greet(struct um_lbtru_session_source *source)
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

static void on_packet(struct um_udp_source *udp, uint64_t now_ns, const struct um_udp_datagram *datagram)
{
    struct um_lbtru_session_source *source = ru_of(udp);
    struct um_lbtru_address from = {datagram->from_ip, datagram->from_port};
    um_lbtru_source_on_packet(source->engine, now_ns, datagram->data, datagram->len, &from);
    greet(source);
}

static void on_timer(struct um_udp_source *udp, uint64_t now_ns)
{
    um_lbtru_source_on_timer(ru_of(udp)->engine, now_ns);
    greet(ru_of(udp));
}

static void pin(struct um_udp_source *udp, uint64_t index)
{
    um_lbtru_source_pin(ru_of(udp)->engine, index);
}

static const struct um_lbtr_source_counters *counters(const struct um_udp_source *udp)
{
    return um_lbtru_source_counters(ru_of(udp)->engine);
}

static void stats(const struct um_udp_source *udp, lbm_src_transport_stats_t *out)
{
    out->type = LBM_TRANSPORT_STAT_LBTRU;
    um_lbtru_source_stats(ru_of(udp)->engine, &out->transport.lbtru);
}

static void stats_reset(struct um_udp_source *udp)
{
    um_lbtru_source_stats_reset(ru_of(udp)->engine);
}

static void report_odd_requests(struct um_lbtru_session_source *source)
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
        um_log_limited(&source->odd_log, um_loop_now(source->udp.base.env->loop), UM_NS_PER_SEC, UM_LOG_WARNING,
                       "Core-5688-1797",
                       "LBT-RU source on port %u: connection request with unknown code %u from %s:%u ignored",
                       source->udp.port, code, ip, from.port);
    }
}

static void after(struct um_udp_source *udp)
{
    struct um_lbtru_session_source *source = ru_of(udp);
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

static void forget_topic(struct um_udp_source *udp, uint32_t tidx)
{
    struct um_lbtru_session_source *source = ru_of(udp);
    struct um_list *it;
    um_src_session_lock(&udp->base);
    UM_LIST_FOREACH(it, &source->peers.all)
    {
        um_u32_map_remove(&UM_CONTAINER_OF(it, struct um_lbtru_peer, node)->topics, tidx);
    }
    um_src_session_unlock(&udp->base);
}

static size_t unsent(const struct um_udp_source *udp)
{
    return um_lbtru_source_held(ru_of(udp)->engine);
}

static void destroy(struct um_udp_source *udp)
{
    um_lbtru_source_destroy(ru_of(udp)->engine);
    um_lbtru_peers_free(&ru_of(udp)->peers);
}

static const struct um_udp_source_engine engine = {
    .acquire = acquire,
    .commit = commit,
    .may_send = may_send,
    .on_packet = on_packet,
    .on_timer = on_timer,
    .pin = pin,
    .counters = counters,
    .stats = stats,
    .stats_reset = stats_reset,
    .after = after,
    .forget_topic = forget_topic,
    .unsent = unsent,
    .destroy = destroy,
};

/* ---- the session ---- */

static void source_info(const struct um_src_session *base, lbm_transport_source_info_t *out)
{
    const struct um_udp_source *udp = um_udp_source_of(base);
    memset(out, 0, sizeof *out);
    out->type = LBM_TRANSPORT_TYPE_LBTRU;
    out->src_ip = udp->addr.s_addr;
    out->src_port = udp->port;
    out->session_id = udp->session_id;
}

static void announce(struct um_src_session *base, struct um_src_stream *stream)
{
    um_lbtru_peers_announce(&ru_of(um_udp_source_of(base))->peers, stream);
}

static const struct um_src_session_ops session_ops = {
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

static struct um_lbtru_source *make_engine(struct um_udp_sources *pool, const struct um_source_options *opts,
                                           struct um_lbtru_session_source *source)
{
    struct um_lbtru_source_config config = {
        .session_id = source->udp.session_id,
        .datagram_max = datagram_size(pool->env->opts),
        .window_size = opts->transport_lbtru_transmission_window_size,
        .window_limit = opts->transport_lbtru_transmission_window_limit,
        .ignore_ns = opts->transport_lbtru_ignore_interval * UM_NS_PER_MS,
        .sm_min_ns = opts->transport_lbtru_sm_minimum_interval * UM_NS_PER_MS,
        .sm_max_ns = opts->transport_lbtru_sm_maximum_interval * UM_NS_PER_MS,
        .client_activity_ns = opts->transport_lbtru_client_activity_timeout * UM_NS_PER_MS,
        .client_map_size = opts->transport_lbtru_client_map_size,
    };
    struct um_lbtru_source *made = um_lbtru_source_create(&config, &pool->limiter, &engine_ops, source);
    if (made == NULL) {
        um_error_nomem("LBT-RU source session", sizeof config);
    }
    return made;
}

static int open_socket(struct um_udp_sources *pool, struct um_lbtru_session_source *source, uint16_t low, uint16_t high,
                       const char *what)
{
    const struct um_context_options *opts = pool->env->opts;
    struct um_udp_config config = {
        .datagram_max = um_udp_datagram_limit(opts->transport_lbtru_datagram_max_size, session_ops.datagram_option),
        .socket_buffer = opts->transport_lbtru_receiver_socket_buffer,
        .socket_buffer_option = "transport_lbtru_receiver_socket_buffer",
        .socket_buffer_log = "Core-5688-3290"};
    if (um_udp_source_open_in(&source->udp, pool, &config, low, high, what) != 0) {
        return -1;
    }
    um_socket_set_sndbuf(source->udp.in.fd, opts->transport_lbtru_source_socket_buffer,
                         "transport_lbtru_source_socket_buffer", "Core-5688-3290");
    return 0;
}

/* The socket is open. Takes over nothing when it fails. */
static int open_session(struct um_udp_sources *pool, const struct um_source_options *opts,
                        struct um_lbtru_session_source *source)
{
    struct um_udp_source_config config = {.ops = &session_ops,
                                          .engine = &engine,
                                          .datagram_max = datagram_size(pool->env->opts),
                                          .transport_overhead = source->udp.session_id != 0
                                                                    ? UM_LBTRU_DATA_HDR_MAX
                                                                    : UM_LBTRU_DATA_HDR_MAX - UM_LBTRU_OPTION_LEN,
                                          .window_size = opts->transport_lbtru_transmission_window_size,
                                          .window_limit = opts->transport_lbtru_transmission_window_limit,
                                          .one_topic = source->ssf != UM_LBTRU_SSF_NONE};
    source->engine = make_engine(pool, opts, source);
    if (source->engine == NULL) {
        return -1;
    }
    if (um_udp_source_open(&source->udp, pool, &config, opts, -1, false) != 0) {
        um_lbtru_source_destroy(source->engine);
        return -1;
    }
    source->udp.base.filtering = source->ssf != UM_LBTRU_SSF_NONE;
    return 0;
}

static struct um_udp_source *session_create(struct um_udp_sources *pool, const struct um_source_options *opts,
                                            uint16_t low, uint16_t high, const char *what)
{
    struct in_addr addr;
    if (um_listen_addr(&opts->transport_lbtru_interface, &pool->env->opts->default_interface, &addr) != 0) {
        return NULL;
    }
    struct um_lbtru_session_source *source = um_calloc(1, sizeof *source);
    if (source == NULL) {
        um_error_nomem("LBT-RU source session", sizeof *source);
        return NULL;
    }
    um_lbtru_peers_init(&source->peers);
    source->ssf = (enum um_lbtru_ssf)opts->transport_source_side_filtering_behavior;
    source->transport_idx = atomic_fetch_add(&pool->env->next_transport_idx, 1);
    source->udp.addr = addr;
    source->udp.shown = addr.s_addr == INADDR_ANY ? um_shown_addr(pool->env->opts) : addr;
    source->udp.in_pool = true;
    source->udp.session_id = opts->transport_lbtru_use_session_id != 0 ? um_random_u32_nonzero() : 0;
    source->udp.loss = UM_LOSS_LBTRU_SRC;
    if (open_socket(pool, source, low, high, what) != 0) {
        um_free(source);
        return NULL;
    }
    if (open_session(pool, opts, source) != 0) {
        um_udp_close(&source->udp.in);
        um_free(source);
        return NULL;
    }
    um_link_watch_add(&pool->env->links, pool->env->loop, addr.s_addr);
    return &source->udp;
}

/* ---- mapping ---- */

static struct um_udp_source *find(struct um_udp_sources *pool, uint16_t port)
{
    struct um_list *it;
    UM_LIST_FOREACH(it, &pool->sessions)
    {
        struct um_udp_source *source = UM_CONTAINER_OF(it, struct um_udp_source, node);
        if (source->port == port || source->configured_port == port) {
            return source;
        }
    }
    return NULL;
}

static struct um_udp_source *create_explicit(struct um_udp_sources *pool, const struct um_source_options *opts,
                                             uint16_t port)
{
    struct um_udp_source *source = session_create(pool, opts, port, port, "transport_lbtru_port");
    if (source == NULL && opts->transport_lbtru_allow_ephemeral != 0) {
        source = session_create(pool, opts, 0, 0, "transport_lbtru_port");
    }
    if (source != NULL) {
        source->configured_port = port;
    }
    return source;
}

static struct um_udp_source *choose(struct um_udp_sources *pool, const struct um_source_options *opts)
{
    const struct um_context_options *copts = pool->env->opts;
    uint16_t port = ntohs(opts->transport_lbtru_port);
    if (port != 0) {
        struct um_udp_source *source = find(pool, port);
        return source != NULL ? source : create_explicit(pool, opts, port);
    }
    if (um_udp_sources_count(pool, 0) < copts->transport_lbtru_maximum_ports || um_list_empty(&pool->sessions)) {
        return session_create(pool, opts, copts->transport_lbtru_port_low, copts->transport_lbtru_port_high,
                              "transport_lbtru_port_low to transport_lbtru_port_high");
    }
    return um_udp_sources_pick(pool, 0);
}

static int attach(struct um_src_transport *base, const struct um_source_options *opts, const char *topic,
                  struct um_src_stream *stream)
{
    int filtering = opts->transport_source_side_filtering_behavior;
    if (filtering < UM_LBTRU_SSF_NONE || filtering > UM_LBTRU_SSF_EXCLUSION) {
        return um_error(
            UM_EOPNOTSUPP, "CoreApi-5688-3238",
            "transport_source_side_filtering_behavior %d: not implemented; none, inclusion and exclusion are",
            filtering);
    }
    struct um_udp_source *source = choose(UM_CONTAINER_OF(base, struct um_udp_sources, base), opts);
    if (source == NULL) {
        return -1;
    }
    if (!um_list_empty(&source->base.streams)) {
        um_lbtru_source_compare(source, opts, topic);
    }
    um_src_session_add(&source->base, stream);
    return 0;
}

/* ---- source-side filtering ---- */

static struct um_lbtru_peer *find_peer(struct um_lbtru_session_source *source, uint32_t idx)
{
    struct um_list *it;
    UM_LIST_FOREACH(it, &source->peers.all)
    {
        struct um_lbtru_peer *peer = UM_CONTAINER_OF(it, struct um_lbtru_peer, node);
        if (peer->idx == idx) {
            return peer;
        }
    }
    return NULL;
}

/* Lock. The messages sent so far go by the old list, the ones after by the new. */
static void change_filter(struct um_lbtru_session_source *source, struct um_lbtru_peer *peer,
                          struct um_src_stream *stream, bool include)
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

static bool on_ssf_creq(struct um_src_transport *base, const struct um_lbmc_ssf_creq *creq)
{
    struct um_list *it;
    UM_LIST_FOREACH(it, &UM_CONTAINER_OF(base, struct um_udp_sources, base)->sessions)
    {
        struct um_lbtru_session_source *source = ru_of_node(it);
        if (source->transport_idx != creq->transport_idx || source->ssf == UM_LBTRU_SSF_NONE) {
            continue;
        }
        struct um_lbtru_peer *peer = find_peer(source, creq->client_idx);
        struct um_src_stream *stream = um_src_session_stream(&source->udp.base, creq->topic_idx);
        if (peer == NULL || stream == NULL || creq->mode > 1) {
            return false;
        }
        um_src_session_lock(&source->udp.base);
        change_filter(source, peer, stream, creq->mode == 0);
        um_src_session_unlock(&source->udp.base);
        return true;
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
                                            .interval_ns = env->opts->transport_lbtru_rate_interval * UM_NS_PER_MS};
    return um_udp_sources_create(env, &um_lbtru_src_transport, &limits, env->opts->transport_lbtru_datagram_max_size);
}

const struct um_src_transport_ops um_lbtru_src_transport = {
    .type = LBM_SRC_TOPIC_ATTR_TRANSPORT_LBTRU,
    .name = "lbt-ru",
    .check = check,
    .create = create,
    .destroy = um_udp_sources_destroy,
    .attach = attach,
    .on_ssf_creq = on_ssf_creq,
    .stats = um_udp_sources_stats,
    .stats_reset = um_udp_sources_stats_reset,
    .flush = um_udp_sources_flush,
};
