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
#include "transport/lbtr/um_lbtrm_src_engine.h"
#include "transport/udp/um_udp_src_session.h"
#include "transport/session/um_local_addr.h"

struct um_lbtrm_src_session {
    struct um_udp_src_session udp;
    struct sockaddr_in group; /* fixed */
};

static struct um_lbtrm_src_session *rm_of(const struct um_udp_src_session *udp)
{
    return UM_CONTAINER_OF((struct um_udp_src_session *)udp, struct um_lbtrm_src_session, udp);
}

/* ---- the engine ---- */

static void send_packet(void *io, const uint8_t *head, size_t head_len, const uint8_t *body, size_t body_len)
{
    struct um_lbtrm_src_session *source = io;
    um_udp_src_session_put(&source->udp, &source->group, head, head_len, body, body_len);
}

static const struct um_lbtrm_src_engine_ops engine_ops = {.send = send_packet, .common = UM_UDP_SRC_OUTPUTS};

static void on_packet(struct um_udp_src_session *udp, uint64_t now_ns, const struct um_udp_datagram *datagram)
{
    um_lbtrm_src_engine_on_packet(udp->engine, now_ns, datagram->data, datagram->len);
}

static void stats(const struct um_udp_src_session *udp, lbm_src_transport_stats_t *out)
{
    out->type = LBM_TRANSPORT_STAT_LBTRM;
    um_lbtrm_src_engine_stats(udp->engine, &out->transport.lbtrm);
}

static const struct um_udp_src_kind kind = {.on_packet = on_packet, .stats = stats};

/* ---- the session ---- */

static void source_info(const struct um_src_session *base, lbm_transport_source_info_t *out)
{
    const struct um_lbtrm_src_session *source = rm_of(um_udp_src_session_of(base));
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

static void in_force(const struct um_src_session *base, struct um_source_options *out)
{
    const struct um_lbtrm_src_session *source = rm_of(um_udp_src_session_of(base));
    out->transport_lbtrm_multicast_address = source->group.sin_addr;
    out->transport_lbtrm_destination_port = source->group.sin_port;
}

static const struct um_src_session_ops session_ops = {
    .options = "transport_lbtrm_",
    .in_force = in_force,
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
    um_socket_set_sndbuf(fd, opts->transport_lbtrm_source_socket_buffer,
                         um_size_origin(opts->default_buffers.transport_lbtrm_source_socket_buffer),
                         "transport_lbtrm_source_socket_buffer", "Core-5688-3274");
    *connected = connect(fd, (const struct sockaddr *)group, sizeof *group) == 0; /* not while the interface is down */
    return fd;
}

static int open_in(struct um_udp_sources *pool, struct um_lbtrm_src_session *source)
{
    const struct um_context_options *opts = pool->base.env->opts;
    struct um_udp_config config = {.datagram_max = UM_LBTR_DATAGRAM_MAX,
                                   .socket_buffer = opts->transport_lbtrm_receiver_socket_buffer,
                                   .socket_buffer_origin =
                                       um_size_origin(opts->default_buffers.transport_lbtrm_receiver_socket_buffer),
                                   .socket_buffer_option = "transport_lbtrm_receiver_socket_buffer",
                                   .socket_buffer_log = "Core-5688-3290"};
    const struct um_port_range range =
        UM_PORT_RANGE(opts, transport_lbtrm_source_port, UM_RANGE_LBTRM_SOURCE, &pool->base.range_told);
    int rc = um_udp_src_session_open_in(&source->udp, pool, &config, &range);
    if (rc == UM_UDP_NO_PORT) {
        return um_error(UM_EOS, "CoreApi-5688-3287",
                        "no UDP port for the NAKs of an LBT-RM source in transport_lbtrm_source_port_low %u to "
                        "transport_lbtrm_source_port_high %u; widen the range, or set both to 0 for any free port",
                        opts->transport_lbtrm_source_port_low, opts->transport_lbtrm_source_port_high);
    }
    return rc;
}

static struct um_lbtr_src_engine *make_engine(struct um_udp_sources *pool, const struct um_source_options *opts,
                                              struct um_lbtrm_src_session *source, size_t datagram_max,
                                              uint32_t buffers)
{
    struct um_lbtrm_src_engine_config config = {
        .session = {source->udp.port, source->udp.session_id},
        .tgsz = opts->transport_lbtrm_tgsz,
        .datagram_max = datagram_max,
        .window_size = opts->transport_lbtrm_transmission_window_size,
        .window_limit = opts->transport_lbtrm_transmission_window_limit,
        .buffers = buffers,
        .ignore_ns = um_ms_ns(opts->transport_lbtrm_ignore_interval),
        .sm_min_ns = um_ms_ns(opts->transport_lbtrm_sm_minimum_interval),
        .sm_max_ns = um_ms_ns(opts->transport_lbtrm_sm_maximum_interval),
    };
    struct um_lbtr_src_engine *made =
        um_lbtrm_src_engine_create(&config, um_udp_limiter(pool, buffers != 0), &engine_ops, source);
    if (made == NULL) {
        um_error_nomem("LBT-RM source session", sizeof config);
    }
    return made;
}

/* The sockets are open. Takes over nothing when it fails. */
static int open_session(struct um_udp_sources *pool, const struct um_source_options *opts,
                        struct um_lbtrm_src_session *source, const struct um_iface *iface, int out_fd, bool connected,
                        const char *smart)
{
    const struct um_context_options *copts = pool->base.env->opts;
    size_t wanted = copts->transport_lbtrm_source_datagram_max_size != 0
                        ? copts->transport_lbtrm_source_datagram_max_size
                        : copts->transport_lbtrm_datagram_max_size;
    size_t datagram_max = um_udp_datagram_limit(wanted, session_ops.datagram_option);
    uint32_t buffers = 0;
    if (smart != NULL) {
        datagram_max = um_udp_smart_datagram(opts, datagram_max, UM_LBTRM_DATA_HDR);
        buffers =
            um_udp_smart_buffers((uint32_t)opts->transport_lbtrm_smart_src_transmission_window_buffer_count,
                                 datagram_max, "transport_lbtrm_smart_src_transmission_window_buffer_count", smart);
        if (buffers == 0) {
            return -1;
        }
    }
    struct um_udp_src_session_config config = {.ops = &session_ops,
                                               .kind = &kind,
                                               .datagram_max = datagram_max,
                                               .transport_overhead = UM_LBTRM_DATA_HDR,
                                               .window_size = opts->transport_lbtrm_transmission_window_size,
                                               .window_limit = opts->transport_lbtrm_transmission_window_limit,
                                               .connectionless = true,
                                               .smart = smart != NULL,
                                               .stamps = copts->transport_lbtrm_source_timestamp != 0 ? iface : NULL};
    source->udp.engine = make_engine(pool, opts, source, datagram_max, buffers);
    if (source->udp.engine == NULL) {
        return -1;
    }
    if (um_udp_src_session_open(&source->udp, pool, &config, opts, out_fd, connected) != 0) {
        um_lbtr_src_engine_destroy(source->udp.engine);
        return -1;
    }
    if (smart != NULL) {
        source->udp.base.first.transport_lbtrm_smart_src_transmission_window_buffer_count = (int)buffers;
    }
    return 0;
}

/* `smart`: the topic, if it is that of a smart source. */
static struct um_src_session *session_create(struct um_udp_sources *pool, const struct um_source_options *opts,
                                             struct in_addr group, const char *smart)
{
    struct um_iface iface;
    bool connected = false;
    if (um_multicast_iface(pool->base.env->opts, &iface) != 0) {
        return NULL;
    }
    struct um_lbtrm_src_session *source = um_calloc(1, sizeof *source);
    if (source == NULL) {
        um_error_nomem("LBT-RM source session", sizeof *source);
        return NULL;
    }
    source->group = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_addr = group, .sin_port = opts->transport_lbtrm_destination_port};
    source->udp.addr = source->udp.shown = iface.addr;
    source->udp.session_id = um_random_u32_nonzero();
    source->udp.loss = UM_LOSS_LBTRM_SRC;
    if (open_in(pool, source) != 0) {
        um_free(source);
        return NULL;
    }
    int out_fd = open_out(pool->base.env->opts, &iface, &source->group, &connected);
    if (out_fd >= 0 && open_session(pool, opts, source, &iface, out_fd, connected, smart) == 0) {
        um_link_watch_add(&pool->base.env->links, pool->base.env->loop, iface.addr.s_addr);
        return &source->udp.base;
    }
    if (out_fd >= 0) {
        um_fd_close(out_fd);
    }
    um_udp_close(&source->udp.in);
    um_free(source);
    return NULL;
}

/* ---- the pool ---- */

static void place_of(const struct um_source_options *opts, struct um_src_place *place)
{
    place->id = ntohl(opts->transport_lbtrm_multicast_address.s_addr);
    place->part = opts->transport_lbtrm_destination_port;
    place->named = place->id != 0;
}

static uint32_t lowest(const struct um_context_options *opts)
{
    return ntohl(opts->transport_lbtrm_multicast_address_low.s_addr);
}

static uint32_t highest(const struct um_context_options *opts)
{
    return ntohl(opts->transport_lbtrm_multicast_address_high.s_addr);
}

static uint64_t limit(const struct um_context_options *opts)
{
    return (uint64_t)highest(opts) - lowest(opts) + 1;
}

/* A group of the range is one of the pool, whoever named it. */
static struct um_src_session *open_source(struct um_src_transport *base, const struct um_source_options *opts,
                                          const char *topic, struct um_src_place *place)
{
    struct um_udp_sources *pool = um_udp_sources_of(base);
    uint32_t low = lowest(base->env->opts), high = highest(base->env->opts);
    if (!place->named && !um_src_pool_free_id(base, place->part, low, high, &place->id)) {
        um_error(UM_EOS, "CoreApi-9004-7",
                 "every group from transport_lbtrm_multicast_address_low to transport_lbtrm_multicast_address_high has "
                 "a session");
        return NULL;
    }
    place->counted = place->shared = place->id >= low && place->id <= high;
    return session_create(pool, opts, (struct in_addr){htonl(place->id)}, place->smart ? topic : NULL);
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
                                            .interval_ns = um_ms_ns(env->opts->transport_lbtrm_rate_interval),
                                            .retransmissions_count = true};
    return um_udp_sources_create(env, &limits);
}

static uint64_t retransmit_limit(const struct um_context_options *opts)
{
    return opts->transport_lbtrm_retransmit_rate_limit;
}

const struct um_src_transport_ops um_lbtrm_src_transport = {
    .type = LBM_SRC_TOPIC_ATTR_TRANSPORT_LBTRM,
    .name = "lbt-rm",
    .check = check,
    .create = create,
    .destroy = um_udp_sources_destroy,
    .place = place_of,
    .limit = limit,
    .open = open_source,
    .compare = um_lbtrm_src_engine_compare,
    .close = um_udp_src_session_close,
    .retains = true,
    .smart = true,
    .msg_buffs = true,
    .retention_least = 8192,
    .retransmit_limit = retransmit_limit,
};
