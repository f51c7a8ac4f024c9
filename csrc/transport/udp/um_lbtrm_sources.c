/* LBT-RM sources: which group and session a topic goes to, the sockets of a session,
 * and the engine behind it. Creation and end on the loop; outputs of the engine under
 * the session lock. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/um_error.h"
#include "base/um_fork.h"
#include "base/um_mem.h"
#include "base/um_random.h"
#include "net/um_link_watch.h"
#include "net/um_socket.h"
#include "transport/lbtr/um_lbtrm_source.h"
#include "transport/udp/um_udp_source.h"
#include "transport/um_local_addr.h"

struct um_lbtrm_session_source {
    struct um_udp_source udp;
    struct um_lbtrm_source *engine;
    struct sockaddr_in group; /* fixed */
};

static struct um_lbtrm_session_source *rm_of(const struct um_udp_source *udp)
{
    return UM_CONTAINER_OF((struct um_udp_source *)udp, struct um_lbtrm_session_source, udp);
}

/* ---- the engine ---- */

static void send_packet(void *io, const uint8_t *head, size_t head_len, const uint8_t *body, size_t body_len)
{
    struct um_lbtrm_session_source *source = io;
    um_udp_source_put(&source->udp, &source->group, head, head_len, body, body_len);
}

static const struct um_lbtrm_source_ops engine_ops = {
    .send = send_packet,
    .set_timer = um_udp_source_set_timer,
    .kick = um_udp_source_kick,
    .relieved = um_udp_source_relieved,
    .full = um_udp_source_full,
};

static uint8_t *acquire(struct um_udp_source *udp, size_t *capacity)
{
    return um_lbtrm_source_acquire(rm_of(udp)->engine, capacity);
}

static enum um_lbtr_commit commit(struct um_udp_source *udp, uint64_t now_ns, size_t len, size_t user_bytes)
{
    return um_lbtrm_source_commit(rm_of(udp)->engine, now_ns, len, user_bytes);
}

static bool may_send(struct um_udp_source *udp, bool tell)
{
    return um_lbtrm_source_may_send(rm_of(udp)->engine, tell);
}

static void on_packet(struct um_udp_source *udp, uint64_t now_ns, const struct um_udp_datagram *datagram)
{
    um_lbtrm_source_on_packet(rm_of(udp)->engine, now_ns, datagram->data, datagram->len);
}

static void on_timer(struct um_udp_source *udp, uint64_t now_ns)
{
    um_lbtrm_source_on_timer(rm_of(udp)->engine, now_ns);
}

static void pin(struct um_udp_source *udp, uint64_t index)
{
    um_lbtrm_source_pin(rm_of(udp)->engine, index);
}

static const struct um_lbtr_source_counters *counters(const struct um_udp_source *udp)
{
    return um_lbtrm_source_counters(rm_of(udp)->engine);
}

static void stats(const struct um_udp_source *udp, lbm_src_transport_stats_t *out)
{
    out->type = LBM_TRANSPORT_STAT_LBTRM;
    um_lbtrm_source_stats(rm_of(udp)->engine, &out->transport.lbtrm);
}

static void stats_reset(struct um_udp_source *udp)
{
    um_lbtrm_source_stats_reset(rm_of(udp)->engine);
}

static size_t unsent(const struct um_udp_source *udp)
{
    lbm_src_transport_stats_lbtrm_t now;
    um_lbtrm_source_stats(rm_of(udp)->engine, &now);
    return now.rctlr_data_msgs;
}

static void destroy(struct um_udp_source *udp)
{
    um_lbtrm_source_destroy(rm_of(udp)->engine);
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
    .unsent = unsent,
    .destroy = destroy,
};

/* ---- the session ---- */

static void source_info(const struct um_src_session *base, lbm_transport_source_info_t *out)
{
    const struct um_lbtrm_session_source *source = rm_of(um_udp_source_of(base));
    memset(out, 0, sizeof *out);
    out->type = LBM_TRANSPORT_TYPE_LBTRM;
    out->src_ip = source->udp.addr.s_addr;
    out->src_port = source->udp.port;
    out->session_id = source->udp.session_id;
    out->mc_group = source->group.sin_addr.s_addr;
    out->dest_port = ntohs(source->group.sin_port);
}

/* Nobody connects to a multicast session. */
static void announce(struct um_src_session *base, struct um_src_stream *stream)
{
}

static const struct um_src_session_ops session_ops = {
    .datagram_option = "transport_lbtrm_datagram_max_size",
    .blocked_by = "the rate limit of LBT-RM is used up (transport_lbtrm_data_rate_limit)",
    UM_UDP_SOURCE_OPS,
    .announce = announce,
    .source_info = source_info,
};

/* Socket on which a session's datagrams leave, on the interface of multicast. *connected: to the group. */
static int open_out(const struct um_context_options *opts, const struct um_iface *iface,
                    const struct sockaddr_in *group, bool *connected)
{
    int err = 0, ttl = opts->resolver_multicast_ttl, loop = 1;
    int fd = um_socket_udp(iface->addr, 0, false, &err);
    struct ip_mreqn via = {.imr_address = iface->addr, .imr_ifindex = (int)iface->index};
    if (fd < 0) {
        return -1;
    }
    if (setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &via, sizeof via) != 0 ||
        setsockopt(fd, IPPROTO_IP, IP_MULTICAST_TTL, &ttl, sizeof ttl) != 0 ||
        setsockopt(fd, IPPROTO_IP, IP_MULTICAST_LOOP, &loop, sizeof loop) != 0) {
        err = errno;
        um_fd_close(fd);
        return um_error_os(err, "CoreApi-9004-4",
                           "LBT-RM source: cannot send multicast on interface %s; set resolver_multicast_interface",
                           iface->name);
    }
    um_socket_set_sndbuf(fd, opts->transport_lbtrm_source_socket_buffer, "transport_lbtrm_source_socket_buffer",
                         "Core-5688-3274");
    *connected = connect(fd, (const struct sockaddr *)group, sizeof *group) == 0; /* not while the interface is down */
    return fd;
}

static int open_in(struct um_udp_sources *pool, struct um_lbtrm_session_source *source)
{
    const struct um_context_options *opts = pool->env->opts;
    struct um_udp_config config = {.datagram_max = UM_LBTR_DATAGRAM_MAX < opts->transport_lbtrm_datagram_max_size
                                                       ? UM_LBTR_DATAGRAM_MAX
                                                       : opts->transport_lbtrm_datagram_max_size,
                                   .socket_buffer = opts->transport_lbtrm_receiver_socket_buffer,
                                   .socket_buffer_option = "transport_lbtrm_receiver_socket_buffer",
                                   .socket_buffer_log = "Core-5688-3290"};
    int rc = um_udp_source_open_in(&source->udp, pool, &config, opts->transport_lbtrm_source_port_low,
                                   opts->transport_lbtrm_source_port_high,
                                   "transport_lbtrm_source_port_low to transport_lbtrm_source_port_high");
    if (rc == UM_UDP_NO_PORT) {
        return um_error(UM_EOS, "CoreApi-5688-3287",
                        "no UDP port for the NAKs of an LBT-RM source in transport_lbtrm_source_port_low %u to "
                        "transport_lbtrm_source_port_high %u; widen the range, or set both to 0 for any free port",
                        opts->transport_lbtrm_source_port_low, opts->transport_lbtrm_source_port_high);
    }
    return rc;
}

static struct um_lbtrm_source *make_engine(struct um_udp_sources *pool, const struct um_source_options *opts,
                                           struct um_lbtrm_session_source *source, size_t datagram_max)
{
    struct um_lbtrm_source_config config = {
        .session = {source->udp.port, source->udp.session_id},
        .tgsz = opts->transport_lbtrm_tgsz,
        .datagram_max = datagram_max,
        .window_size = opts->transport_lbtrm_transmission_window_size,
        .window_limit = opts->transport_lbtrm_transmission_window_limit,
        .ignore_ns = opts->transport_lbtrm_ignore_interval * UM_NS_PER_MS,
        .sm_min_ns = opts->transport_lbtrm_sm_minimum_interval * UM_NS_PER_MS,
        .sm_max_ns = opts->transport_lbtrm_sm_maximum_interval * UM_NS_PER_MS,
    };
    struct um_lbtrm_source *made = um_lbtrm_source_create(&config, &pool->limiter, &engine_ops, source);
    if (made == NULL) {
        um_error_nomem("LBT-RM source session", sizeof config);
    }
    return made;
}

/* The sockets are open. Takes over nothing when it fails. */
static int open_session(struct um_udp_sources *pool, const struct um_source_options *opts,
                        struct um_lbtrm_session_source *source, const struct um_iface *iface, int out_fd,
                        bool connected)
{
    const struct um_context_options *copts = pool->env->opts;
    size_t wanted = copts->transport_lbtrm_source_datagram_max_size != 0
                        ? copts->transport_lbtrm_source_datagram_max_size
                        : copts->transport_lbtrm_datagram_max_size;
    size_t datagram_max = um_udp_datagram_limit(wanted, session_ops.datagram_option);
    struct um_udp_source_config config = {.ops = &session_ops,
                                          .engine = &engine,
                                          .datagram_max = datagram_max,
                                          .transport_overhead = UM_LBTRM_DATA_HDR,
                                          .window_size = opts->transport_lbtrm_transmission_window_size,
                                          .window_limit = opts->transport_lbtrm_transmission_window_limit,
                                          .connectionless = true,
                                          .stamps = copts->transport_lbtrm_source_timestamp != 0 ? iface : NULL};
    source->engine = make_engine(pool, opts, source, datagram_max);
    if (source->engine == NULL) {
        return -1;
    }
    if (um_udp_source_open(&source->udp, pool, &config, opts, out_fd, connected) != 0) {
        um_lbtrm_source_destroy(source->engine);
        return -1;
    }
    return 0;
}

static struct um_udp_source *session_create(struct um_udp_sources *pool, const struct um_source_options *opts,
                                            struct in_addr group, bool in_pool)
{
    struct um_iface iface;
    bool connected = false;
    if (um_multicast_iface(pool->env->opts, &iface) != 0) {
        return NULL;
    }
    struct um_lbtrm_session_source *source = um_calloc(1, sizeof *source);
    if (source == NULL) {
        um_error_nomem("LBT-RM source session", sizeof *source);
        return NULL;
    }
    source->group = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_addr = group, .sin_port = opts->transport_lbtrm_destination_port};
    source->udp.addr = source->udp.shown = iface.addr;
    source->udp.in_pool = in_pool;
    source->udp.pool_port = opts->transport_lbtrm_destination_port;
    source->udp.session_id = um_random_u32_nonzero();
    source->udp.loss = UM_LOSS_LBTRM_SRC;
    if (open_in(pool, source) != 0) {
        um_free(source);
        return NULL;
    }
    int out_fd = open_out(pool->env->opts, &iface, &source->group, &connected);
    if (out_fd >= 0 && open_session(pool, opts, source, &iface, out_fd, connected) == 0) {
        um_link_watch_add(&pool->env->links, pool->env->loop, iface.addr.s_addr);
        return &source->udp;
    }
    if (out_fd >= 0) {
        um_fd_close(out_fd);
    }
    um_udp_close(&source->udp.in);
    um_free(source);
    return NULL;
}

/* ---- mapping ---- */

static struct um_udp_source *find(struct um_udp_sources *pool, struct in_addr group, uint16_t port)
{
    struct um_list *it;
    UM_LIST_FOREACH(it, &pool->sessions)
    {
        struct um_udp_source *source = UM_CONTAINER_OF(it, struct um_udp_source, node);
        const struct sockaddr_in *has = &rm_of(source)->group;
        if (has->sin_addr.s_addr == group.s_addr && has->sin_port == port) {
            return source;
        }
    }
    return NULL;
}

static struct um_udp_source *choose(struct um_udp_sources *pool, const struct um_source_options *opts)
{
    const struct um_context_options *copts = pool->env->opts;
    uint32_t low = ntohl(copts->transport_lbtrm_multicast_address_low.s_addr);
    uint32_t high = ntohl(copts->transport_lbtrm_multicast_address_high.s_addr);
    struct in_addr group = opts->transport_lbtrm_multicast_address;
    uint16_t port = opts->transport_lbtrm_destination_port;
    if (group.s_addr != INADDR_ANY) {
        struct um_udp_source *source = find(pool, group, port);
        bool in_pool = ntohl(group.s_addr) >= low && ntohl(group.s_addr) <= high;
        return source != NULL ? source : session_create(pool, opts, group, in_pool);
    }
    uint32_t active = (uint32_t)um_udp_sources_count(pool, port);
    if (active > high - low) {
        return um_udp_sources_pick(pool, port);
    }
    for (uint32_t i = low; i - low <= active; i++) { /* among one more than there are, one is free */
        group.s_addr = htonl(i);
        if (find(pool, group, port) == NULL) {
            break;
        }
    }
    return session_create(pool, opts, group, true);
}

static int attach(struct um_src_transport *base, const struct um_source_options *opts, const char *topic,
                  struct um_src_stream *stream)
{
    struct um_udp_source *source = choose(UM_CONTAINER_OF(base, struct um_udp_sources, base), opts);
    if (source == NULL) {
        return -1;
    }
    if (!um_list_empty(&source->base.streams)) {
        um_lbtrm_source_compare(source, opts, topic);
    }
    um_src_session_add(&source->base, stream);
    return 0;
}

static int check(const struct um_context_options *opts)
{
    if (ntohl(opts->transport_lbtrm_multicast_address_low.s_addr) >
        ntohl(opts->transport_lbtrm_multicast_address_high.s_addr)) {
        char low[INET_ADDRSTRLEN], high[INET_ADDRSTRLEN];
        inet_ntop(AF_INET, &opts->transport_lbtrm_multicast_address_low, low, sizeof low);
        inet_ntop(AF_INET, &opts->transport_lbtrm_multicast_address_high, high, sizeof high);
        return um_error(
            UM_EINVAL, "CoreApi-8812-5",
            "transport_lbtrm_multicast_address_low %s: must not be above transport_lbtrm_multicast_address_high %s",
            low, high);
    }
    if (opts->transport_lbtrm_source_port_low > opts->transport_lbtrm_source_port_high) {
        return um_error(UM_EINVAL, "CoreApi-8812-4",
                        "transport_lbtrm_source_port_low %u: must not be above transport_lbtrm_source_port_high %u",
                        opts->transport_lbtrm_source_port_low, opts->transport_lbtrm_source_port_high);
    }
    return 0;
}

static struct um_src_transport *create(struct um_transport_env *env)
{
    struct um_lbtr_limiter_config limits = {.data_bps = env->opts->transport_lbtrm_data_rate_limit,
                                            .retransmit_bps = env->opts->transport_lbtrm_retransmit_rate_limit,
                                            .interval_ns = env->opts->transport_lbtrm_rate_interval * UM_NS_PER_MS,
                                            .retransmissions_count = true};
    return um_udp_sources_create(env, &um_lbtrm_src_transport, &limits, env->opts->transport_lbtrm_datagram_max_size);
}

const struct um_src_transport_ops um_lbtrm_src_transport = {
    .type = LBM_SRC_TOPIC_ATTR_TRANSPORT_LBTRM,
    .name = "lbt-rm",
    .check = check,
    .create = create,
    .destroy = um_udp_sources_destroy,
    .attach = attach,
    .stats = um_udp_sources_stats,
    .stats_reset = um_udp_sources_stats_reset,
    .flush = um_udp_sources_flush,
};
