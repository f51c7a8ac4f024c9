/* The pool of TCP source sessions of a context: which session a topic goes to,
 * creation and end of sessions, source-side-filtering requests, statistics.
 * Everything here runs on the loop, except reading facts of a session. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/um_error.h"
#include "base/um_fork.h"
#include "base/um_mem.h"
#include "base/um_random.h"
#include "net/um_socket.h"
#include "transport/tcp/um_tcp_client.h"
#include "transport/session/um_local_addr.h"

#define UM_KEEPALIVE_MIN_MS 20000u

static struct um_tcp_src_session *session_of(const struct um_src_session *base)
{
    return UM_CONTAINER_OF((struct um_src_session *)base, struct um_tcp_src_session, base);
}

void um_tcp_src_session_text(const struct um_tcp_src_session *session, char *out, size_t size)
{
    char ip[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &session->shown, ip, sizeof ip);
    if (session->reports_id) {
        snprintf(out, size, "TCP:%s:%u:%08x", ip, session->port, session->session_id);
    } else {
        snprintf(out, size, "TCP:%s:%u", ip, session->port);
    }
}

/* ---- sessions ---- */

static void forget_topic(struct um_src_session *base, uint32_t tidx);

static void source_info(const struct um_src_session *base, lbm_transport_source_info_t *out)
{
    const struct um_tcp_src_session *session = UM_CONTAINER_OF(base, struct um_tcp_src_session, base);
    memset(out, 0, sizeof *out);
    out->type = LBM_TRANSPORT_TYPE_TCP;
    out->src_ip = session->addr.s_addr;
    out->src_port = session->port;
    out->session_id = session->reports_id ? session->session_id : 0;
}

static void session_stats(struct um_src_session *base, lbm_src_transport_stats_t *out)
{
    struct um_tcp_src_session *session = UM_CONTAINER_OF(base, struct um_tcp_src_session, base);
    memset(out, 0, sizeof *out);
    out->type = LBM_TRANSPORT_STAT_TCP;
    um_tcp_src_session_text(session, out->source, sizeof out->source);
    um_src_session_lock(base);
    out->transport.tcp.num_clients = (lbm_ulong_t)base->clients;
    out->transport.tcp.bytes_buffered = session->queued_bytes;
    um_src_session_unlock(base);
}

/* Lock. What has been told is counted from here, too. */
static void session_stats_reset(struct um_src_session *base)
{
    struct um_tcp_src_session *session = UM_CONTAINER_OF(base, struct um_tcp_src_session, base);
    session->dropped_new = session->dropped_told = session->unsent_told = 0;
}

static void in_force(const struct um_src_session *base, struct um_source_options *out)
{
    const struct um_tcp_src_session *session = UM_CONTAINER_OF(base, struct um_tcp_src_session, base);
    out->transport_tcp_port = htons(session->port);
    out->transport_tcp_interface = um_interface_value(session->addr);
    out->transport_tcp_activity_timeout = session->keepalive_ms;
    out->transport_session_maximum_buffer = session->limit;
}

static const struct um_src_session_ops session_ops = {
    .options = "transport_tcp_",
    .in_force = in_force,
    .datagram_option = "transport_tcp_datagram_max_size",
    .blocked_by = "a receiver of the session is slow (transport_session_maximum_buffer)",
    .transmit = um_tcp_transmit,
    .wait = um_tcp_wait,
    .resume = um_tcp_resume,
    .interrupt = um_tcp_interrupt,
    .relieved = um_tcp_relieved,
    .announce = um_tcp_src_session_announce,
    .on_command = um_tcp_src_session_on_command,
    .forget_topic = forget_topic,
    .source_info = source_info,
    .stats = session_stats,
    .stats_reset = session_stats_reset,
};

static void take_options(struct um_tcp_src_session *session, const struct um_source_options *opts)
{
    session->behavior = opts->transport_tcp_multiple_receiver_behavior;
    session->ssf = (enum um_tcp_ssf)opts->transport_source_side_filtering_behavior;
    session->limit = opts->transport_session_maximum_buffer > 0 ? opts->transport_session_maximum_buffer : 1;
    size_t coalesce =
        session->behavior == LBM_SRC_TOPIC_ATTR_TCP_MULTI_RECV_NORMAL ? session->limit : session->limit / 4;
    if (session->base.coalesce_max > coalesce) {
        session->base.coalesce_max = coalesce; /* what is dropped for a slow client should not become coarse */
    }
    session->sndbuf = opts->transport_tcp_sender_socket_buffer;
    session->nodelay = opts->transport_tcp_nodelay != 0;
    session->random_order = opts->transport_tcp_multiple_receiver_send_order != 0;
    session->keepalive_ms = (unsigned)opts->transport_tcp_activity_timeout;
    if (session->keepalive_ms > 0 && session->keepalive_ms < UM_KEEPALIVE_MIN_MS) {
        um_log(UM_LOG_WARNING, "Core-8787-8", "transport_tcp_activity_timeout (source) %u: raised to %u",
               session->keepalive_ms, UM_KEEPALIVE_MIN_MS);
        session->keepalive_ms = UM_KEEPALIVE_MIN_MS;
    }
    session->reports_id = opts->transport_tcp_use_session_id != 0;
    session->base.filtering = session->ssf != UM_TCP_SSF_NONE;
}

/* Takes over the listening socket `fd`, also when it fails. */
static struct um_tcp_src_session *session_create(struct um_src_transport *pool, const struct um_source_options *opts,
                                                 int fd, struct in_addr addr, uint16_t port)
{
    struct um_tcp_src_session *session = um_calloc(1, sizeof *session);
    if (session == NULL) {
        um_fd_close(fd);
        um_error_nomem("TCP source session", sizeof *session);
        return NULL;
    }
    struct um_src_session_config config = {.datagram_max = pool->env->opts->transport_tcp_datagram_max_size,
                                           .coalesce = true};
    if (um_src_session_init(&session->base, pool->env, &session_ops, &config, opts) != 0) {
        um_free(session);
        um_fd_close(fd);
        return NULL;
    }
    take_options(session, opts);
    session->addr = addr;
    session->shown = addr.s_addr == INADDR_ANY ? um_shown_addr(pool->env->opts) : addr;
    session->port = port;
    session->session_id = um_random_u32_nonzero();
    session->transport_idx = um_random_u32_nonzero();
    um_rng_seed(&session->rng, session->session_id);
    session->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (session->wake_fd < 0) {
        um_error_os(errno, "CoreApi-5688-3237", "TCP source session: eventfd");
    } else if (um_tcp_src_session_listen(session, fd) == 0) {
        return session;
    } else {
        um_fd_close(session->wake_fd);
    }
    um_fd_close(fd);
    um_src_session_fini(&session->base);
    um_free(session);
    return NULL;
}

static void session_close(struct um_src_session *base)
{
    struct um_tcp_src_session *session = session_of(base);
    struct um_loop *loop = session->base.env->loop;
    um_stream_listener_stop(&session->listener);
    um_tcp_src_session_end_opening(session);
    while (session->base.clients > 0) {
        struct um_tcp_client *client = session->clients[session->base.clients - 1];
        um_src_session_lock(&session->base);
        um_tcp_client_write(client);
        um_src_session_unlock(&session->base);
        um_tcp_client_discard(client, UM_STREAM_GENTLY); /* a reset would lose what it was sent */
    }
    um_tcp_report_drops(session, um_loop_now(loop));
    um_free(session->clients);
    um_free(session->order);
    um_src_session_fini(&session->base);
    um_fd_close(session->wake_fd);
    um_free(session);
}

static void forget_topic(struct um_src_session *base, uint32_t tidx)
{
    struct um_tcp_src_session *session = session_of(base);
    um_src_session_lock(base);
    for (int i = 0; i < base->clients; i++) {
        um_u32_map_remove(&session->clients[i]->topics, tidx);
    }
    um_src_session_unlock(base);
}

/* ---- opening ---- */

static int listen_address(const struct um_src_transport *pool, const struct um_source_options *opts,
                          struct in_addr *out)
{
    return um_listen_addr(&opts->transport_tcp_interface, &pool->env->opts->default_interface, out);
}

static int listen_on(const struct um_source_options *opts, struct in_addr addr, uint16_t port, uint16_t *bound,
                     int *err)
{
    return um_socket_tcp_listen(addr, port, opts->transport_tcp_listen_backlog, opts->transport_tcp_reuseaddr != 0,
                                bound, err);
}

static struct um_tcp_src_session *open_named(struct um_src_transport *pool, const struct um_source_options *opts,
                                             uint16_t port)
{
    struct in_addr addr;
    uint16_t bound;
    int err = 0;
    if (listen_address(pool, opts, &addr) != 0) {
        return NULL;
    }
    int fd = listen_on(opts, addr, port, &bound, &err);
    if (fd < 0) {
        um_error_os(err, "CoreApi-5688-3231", "transport_tcp_port %u: cannot listen there; choose a port that is free",
                    port);
        return NULL;
    }
    return session_create(pool, opts, fd, addr, bound);
}

/* Lowest port of the range that is not active in this context and that nobody else has. */
static struct um_tcp_src_session *open_free(struct um_src_transport *pool, const struct um_source_options *opts)
{
    const struct um_context_options *copts = pool->env->opts;
    const struct um_port_range range =
        UM_PORT_RANGE(copts, transport_tcp_port, UM_RANGE_TRANSPORT_TCP, &pool->range_told);
    struct in_addr addr;
    uint16_t bound;
    int err = EADDRINUSE, fd = -1;
    if (listen_address(pool, opts, &addr) != 0) {
        return NULL;
    }
    for (unsigned port = range.low; port <= range.high && fd < 0 && (err == EADDRINUSE || err == EACCES); port++) {
        if (port == 0 || um_src_pool_find(pool, 0, port) == NULL) {
            fd = listen_on(opts, addr, (uint16_t)port, &bound, &err);
        }
    }
    if (fd < 0 && (err == EADDRINUSE || err == EACCES) && um_port_range_gives_way(&range)) {
        fd = listen_on(opts, addr, 0, &bound, &err);
    }
    if (fd >= 0) {
        return session_create(pool, opts, fd, addr, bound);
    }
    um_error_os(
        err, "CoreApi-5688-3230",
        "no free TCP port in transport_tcp_port_low %u to transport_tcp_port_high %u; widen the range, or set both to "
        "0 for any free port",
        range.low, range.high);
    return NULL;
}

static struct um_src_session *sources_open(struct um_src_transport *pool, const struct um_source_options *opts,
                                           const char *topic, struct um_src_place *place)
{
    struct um_tcp_src_session *session =
        place->named ? open_named(pool, opts, (uint16_t)place->id) : open_free(pool, opts);
    if (session == NULL) {
        return NULL;
    }
    place->id = session->port;
    return &session->base;
}

/* ---- the pool ---- */

static void sources_place(const struct um_source_options *opts, struct um_src_place *place)
{
    place->id = ntohs(opts->transport_tcp_port);
    place->named = place->id != 0;
}

static uint64_t sources_limit(const struct um_context_options *opts)
{
    return opts->transport_tcp_maximum_ports;
}

static void sources_compare(const struct um_src_session *base, const struct um_source_options *opts, const char *topic)
{
    const struct um_tcp_src_session *session = session_of(base);
    const struct um_src_decided list[] = {
        {"Core-5688-1279", "transport_session_maximum_buffer",
         opts->transport_session_maximum_buffer > 0 ? opts->transport_session_maximum_buffer : 1, session->limit},
        {"Core-5688-1280", "transport_tcp_multiple_receiver_behavior",
         (unsigned long)opts->transport_tcp_multiple_receiver_behavior, (unsigned long)session->behavior},
        {"Core-5688-1281", "transport_source_side_filtering_behavior",
         (unsigned long)opts->transport_source_side_filtering_behavior, (unsigned long)session->ssf},
    };
    um_src_pool_warn(topic, "on TCP port", session->port, list, sizeof list / sizeof list[0]);
}

static int sources_accept(const struct um_source_options *opts)
{
    int filtering = opts->transport_source_side_filtering_behavior;
    if (filtering < UM_TCP_SSF_NONE || filtering > UM_TCP_SSF_EXCLUSION) {
        return um_error(
            UM_EOPNOTSUPP, "CoreApi-5688-3238",
            "transport_source_side_filtering_behavior %d: not implemented; none, inclusion and exclusion are",
            filtering);
    }
    return 0;
}

static int sources_check(const struct um_context_options *opts)
{
    if (opts->transport_tcp_port_low > opts->transport_tcp_port_high) {
        return um_error(UM_EINVAL, "CoreApi-8812-2",
                        "transport_tcp_port_low %u: must not be above transport_tcp_port_high %u",
                        opts->transport_tcp_port_low, opts->transport_tcp_port_high);
    }
    return 0;
}

/* ---- source-side filtering ---- */

struct um_tcp_client *um_tcp_src_session_client(struct um_tcp_src_session *session, uint32_t idx)
{
    for (int i = 0; i < session->base.clients; i++) {
        if (session->clients[i]->idx == idx) {
            return session->clients[i];
        }
    }
    return NULL;
}

/* Lock. The messages sent so far go by the old list, the ones after by the new. */
static void change_filter(struct um_tcp_client *client, struct um_src_stream *stream, bool include)
{
    struct um_tcp_src_session *session = client->session;
    bool list = include == (session->ssf == UM_TCP_SSF_INCLUSION);
    um_src_session_flush(&session->base);
    bool wanted = um_tcp_client_wants(client, stream->tidx);
    if (!list) {
        um_u32_map_remove(&client->topics, stream->tidx);
    } else if (um_u32_map_put(&client->topics, stream->tidx, client) != 0) {
        um_tcp_client_fail_no_memory(client); /* it connects again */
        return;
    }
    if (include && !wanted) {
        um_tcp_client_put_tsni(client, stream);
    }
}

static bool sources_on_ssf_creq(struct um_src_transport *pool, const struct um_lbmc_ssf_creq *creq, uint32_t from_ip)
{
    struct um_list *it;
    UM_LIST_FOREACH(it, &pool->sessions)
    {
        struct um_tcp_src_session *session = session_of(UM_CONTAINER_OF(it, struct um_src_session, pool_node));
        if (session->transport_idx != creq->transport_idx || session->ssf == UM_TCP_SSF_NONE) {
            continue;
        }
        struct um_tcp_client *client = um_tcp_src_session_client(session, creq->client_idx);
        struct um_src_stream *stream = um_src_session_stream(&session->base, creq->topic_idx);
        if (client == NULL || client->ip != from_ip || stream == NULL || creq->mode > 1) {
            return false;
        }
        um_src_session_lock(&session->base);
        change_filter(client, stream, creq->mode == 0);
        um_src_session_unlock(&session->base);
        return true;
    }
    return false;
}

const struct um_src_transport_ops um_tcp_src_transport = {
    .type = LBM_SRC_TOPIC_ATTR_TRANSPORT_TCP,
    .name = "tcp",
    .check = sources_check,
    .accepts = sources_accept,
    .place = sources_place,
    .limit = sources_limit,
    .open = sources_open,
    .compare = sources_compare,
    .close = session_close,
    .on_ssf_creq = sources_on_ssf_creq,
    .retains = true,
    .streams = true,
    .retention_least = 65536,
};
