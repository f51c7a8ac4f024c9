/* Receive sessions over UDP against scripted sources on the loopback interface of
 * a private network: a loop with receive sessions, sinks that record, and sources
 * that send what a test writes. Include after um_test_net.h and um_test_loop.h. */
#ifndef UM_SUPPORT_TEST_UDP_H
#define UM_SUPPORT_TEST_UDP_H

#include "delivery/um_dc.h"
#include "transport/session/um_rcv_session.h"
#include "wire/um_lbtrm.h"
#include "wire/um_lbtru.h"

#define GROUP_A 0xe0000a01u /* 224.0.10.1 */
#define GROUP_B 0xe0000a02u
#define GROUP_PORT 24400

struct udp_world {
    struct um_loop *loop;
    struct um_context_options opts;
    struct um_receiver_options rcv_opts;
    struct um_transport_env env;
    struct um_rcv_sessions *sessions;
    struct um_dc *dcs[8]; /* of ordered sinks */
    unsigned dc_count;
};

struct udp_sink {
    struct um_rcv_stream stream;
    struct udp_world *world;
    int bos, eos, read_ends;
    uint64_t data, bytes, tsnis;
    uint32_t last_sqn;
    uint64_t stamp_ns;
    bool bytes_wrong, data_before_bos;
    void (*on_data)(struct udp_sink *sink, const struct um_lbmc_msg *msg, struct um_buf *buf);
    void (*on_bos)(struct udp_sink *sink);
    void (*on_eos)(struct udp_sink *sink);
    void *arg;
    struct um_dc *dc; /* joined by udp_join_ordered() */
    bool ending;
};

static inline struct udp_sink *udp_sink_of(struct um_rcv_stream *stream)
{
    return (struct udp_sink *)stream;
}

static inline uint8_t udp_fill(uint32_t sqn)
{
    return (uint8_t)(sqn * 31 + 7);
}

static inline void udp_on_data(struct um_rcv_stream *stream, const struct um_lbmc_msg *msg, struct um_buf *buf,
                               uint64_t now_ns)
{
    struct udp_sink *sink = udp_sink_of(stream);
    sink->data_before_bos |= sink->bos == 0;
    sink->data++;
    sink->bytes += msg->payload.len;
    sink->last_sqn = msg->sqn;
    sink->stamp_ns = (msg->present & UM_LBMC_HAS_STAMP) != 0 ? msg->stamp_ns : 0;
    for (size_t i = 0; i < msg->payload.len; i++) {
        sink->bytes_wrong |= msg->payload.ptr[i] != udp_fill(msg->sqn);
    }
    if (sink->on_data != NULL) {
        sink->on_data(sink, msg, buf);
    }
}

static inline void udp_on_tsni(struct um_rcv_stream *stream, uint32_t last_sqn, uint64_t now_ns)
{
    udp_sink_of(stream)->tsnis++;
}

static inline void udp_on_bos(struct um_rcv_stream *stream)
{
    struct udp_sink *sink = udp_sink_of(stream);
    sink->bos++;
    if (sink->on_bos != NULL) {
        sink->on_bos(sink);
    }
}

static inline void udp_on_eos(struct um_rcv_stream *stream)
{
    struct udp_sink *sink = udp_sink_of(stream);
    sink->eos++;
    if (sink->on_eos != NULL) {
        sink->on_eos(sink);
    }
}

static inline void udp_on_read_end(struct um_rcv_stream *stream, uint64_t now_ns)
{
    udp_sink_of(stream)->read_ends++;
}

static const struct um_rcv_stream_events udp_sink_events = {.on_data = udp_on_data,
                                                            .on_tsni = udp_on_tsni,
                                                            .on_bos = udp_on_bos,
                                                            .on_eos = udp_on_eos,
                                                            .on_read_end = udp_on_read_end};

/* ---- with a delivery controller in between, as core has it ---- */

static inline void udp_dc_deliver(void *user, const struct um_dc_delivery *delivery, uint64_t now_ns)
{
    struct udp_sink *sink = user;
    if (sink->stream.session != NULL || sink->ending) {
        udp_on_data(&sink->stream, delivery->msg, delivery->buf, now_ns);
    }
}

static inline void udp_dc_loss(void *user, uint32_t sqn, uint64_t now_ns)
{
}

static inline void udp_dc_burst_loss(void *user, uint32_t first_sqn, uint32_t count, uint64_t now_ns)
{
}

static inline void udp_dc_set_timer(void *user, uint64_t due_ns)
{
}

static inline uint32_t udp_dc_position(void *user)
{
    return um_rcv_stream_position(&((struct udp_sink *)user)->stream);
}

static inline bool udp_dc_complete_before(void *user, uint32_t position)
{
    return um_rcv_stream_complete_before(&((struct udp_sink *)user)->stream, position);
}

static inline void udp_dc_opening(void *user, bool on)
{
    um_rcv_stream_watch(&((struct udp_sink *)user)->stream, on);
}

static const struct um_dc_ops udp_dc_ops = {.deliver = udp_dc_deliver,
                                            .loss = udp_dc_loss,
                                            .burst_loss = udp_dc_burst_loss,
                                            .set_timer = udp_dc_set_timer,
                                            .position = udp_dc_position,
                                            .complete_before = udp_dc_complete_before,
                                            .opening = udp_dc_opening};

static inline void udp_ordered_on_data(struct um_rcv_stream *stream, const struct um_lbmc_msg *msg, struct um_buf *buf,
                                       uint64_t now_ns)
{
    um_dc_on_data(udp_sink_of(stream)->dc, now_ns, msg, buf);
}

static inline void udp_ordered_on_progress(struct um_rcv_stream *stream, uint64_t now_ns)
{
    um_dc_on_progress(udp_sink_of(stream)->dc, now_ns);
}

static inline void udp_ordered_on_eos(struct um_rcv_stream *stream)
{
    struct udp_sink *sink = udp_sink_of(stream);
    sink->ending = true;
    um_dc_end(sink->dc, 0);
    udp_on_eos(stream);
}

static const struct um_rcv_stream_events udp_ordered_events = {.on_data = udp_ordered_on_data,
                                                               .on_tsni = udp_on_tsni,
                                                               .on_bos = udp_on_bos,
                                                               .on_eos = udp_ordered_on_eos,
                                                               .on_read_end = udp_on_read_end,
                                                               .on_progress = udp_ordered_on_progress};

/* Options are the defaults on the loopback interface; change them between the two calls. */
static inline void udp_world_options(struct udp_world *world)
{
    memset(world, 0, sizeof *world);
    test_log_start();
    if (um_context_options_resolve(NULL, &world->opts) != 0 ||
        um_receiver_options_resolve(NULL, NULL, 0, "topic", &world->rcv_opts) != 0) {
        abort();
    }
    world->opts.default_interface.addr = htonl(INADDR_LOOPBACK);
    world->opts.default_interface.bits = 32;
    world->rcv_opts.transport_lbtru_port_low = world->rcv_opts.transport_lbtru_port_high = 0;
}

static inline bool udp_world_start(struct udp_world *world)
{
    static const uint8_t instance[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    world->loop = um_loop_create(false, UM_LOOP_PEND, "test");
    world->env.loop = world->loop;
    world->env.opts = &world->opts;
    world->env.ctxinst = instance;
    world->sessions = um_rcv_sessions_create(&world->env, NULL);
    return world->loop != NULL && world->sessions != NULL;
}

static inline bool udp_world_open(struct udp_world *world)
{
    udp_world_options(world);
    return udp_world_start(world);
}

static inline void udp_world_close(struct udp_world *world)
{
    um_rcv_sessions_destroy(world->sessions);
    for (unsigned i = 0; i < world->dc_count; i++) {
        um_dc_destroy(world->dcs[i]);
    }
    um_loop_destroy(world->loop);
    um_options_clear(UM_SCOPE_CONTEXT, &world->opts);
    um_options_clear(UM_SCOPE_RECEIVER, &world->rcv_opts);
    um_log_set_proc(NULL, NULL);
}

struct udp_join {
    struct udp_world *world;
    struct udp_sink *sink;
    const lbm_transport_source_info_t *info;
};

static inline int udp_do_join(void *arg)
{
    struct udp_join *join = arg;
    return um_rcv_sessions_join(join->world->sessions, join->info, &join->world->rcv_opts, &join->sink->stream);
}

static inline int udp_join_as(struct udp_world *world, struct udp_sink *sink, const lbm_transport_source_info_t *info,
                              uint32_t tidx, const struct um_rcv_stream_events *events)
{
    memset(&sink->stream, 0, sizeof sink->stream);
    sink->world = world;
    sink->stream.events = events;
    sink->stream.tidx = tidx;
    struct udp_join join = {world, sink, info};
    return um_loop_call(world->loop, udp_do_join, &join);
}

static inline int udp_join(struct udp_world *world, struct udp_sink *sink, const lbm_transport_source_info_t *info,
                           uint32_t tidx)
{
    return udp_join_as(world, sink, info, tidx, &udp_sink_events);
}

static inline int udp_join_ordered(struct udp_world *world, struct udp_sink *sink,
                                   const lbm_transport_source_info_t *info, uint32_t tidx)
{
    static const struct um_dc_config config = {.ordered_delivery = 1,
                                               .maximum_burst_loss = 1024,
                                               .gap_timeout_ns = 3600 * UM_NS_PER_SEC,
                                               .reassembly_size_max = 1 << 20};
    sink->dc = um_dc_create(&config, &udp_dc_ops, sink);
    if (sink->dc == NULL || world->dc_count == sizeof world->dcs / sizeof world->dcs[0]) {
        abort();
    }
    world->dcs[world->dc_count++] = sink->dc;
    return udp_join_as(world, sink, info, tidx, &udp_ordered_events);
}

static inline int udp_do_leave(void *arg)
{
    um_rcv_stream_leave(arg);
    return 0;
}

static inline void udp_leave(struct udp_sink *sink)
{
    um_loop_call(sink->world->loop, udp_do_leave, &sink->stream);
}

/* ---- scripted sources ---- */

struct udp_source {
    int fd;     /* sends to the group; LBT-RU: the session's socket */
    int nak_fd; /* bound to the unicast port; LBT-RU: fd */
    uint16_t port;
    uint32_t session_id;
    struct sockaddr_in to; /* the group, or the client heard last */
    uint32_t next_sqn;     /* of datagrams */
};

static inline int udp_bound(uint16_t *port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof addr) != 0 ||
        getsockname(fd, (struct sockaddr *)&addr, &len) != 0) {
        abort();
    }
    *port = ntohs(addr.sin_port);
    return fd;
}

static inline void rm_source_open(struct udp_source *source, uint32_t group, uint32_t session_id)
{
    uint16_t any;
    struct ip_mreqn via = {.imr_address.s_addr = htonl(INADDR_LOOPBACK)};
    memset(source, 0, sizeof *source);
    source->fd = udp_bound(&any);
    source->nak_fd = udp_bound(&source->port);
    source->session_id = session_id;
    source->to =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(GROUP_PORT), .sin_addr.s_addr = htonl(group)};
    if (setsockopt(source->fd, IPPROTO_IP, IP_MULTICAST_IF, &via, sizeof via) != 0) {
        abort();
    }
}

static inline void ru_source_open(struct udp_source *source, uint32_t session_id)
{
    memset(source, 0, sizeof *source);
    source->fd = source->nak_fd = udp_bound(&source->port);
    source->session_id = session_id;
}

static inline void udp_source_close(struct udp_source *source)
{
    close(source->fd);
    if (source->nak_fd != source->fd) {
        close(source->nak_fd);
    }
}

static inline lbm_transport_source_info_t rm_info(const struct udp_source *source, uint32_t tidx)
{
    return (lbm_transport_source_info_t){.type = LBM_TRANSPORT_TYPE_LBTRM,
                                         .src_ip = htonl(INADDR_LOOPBACK),
                                         .src_port = source->port,
                                         .dest_port = ntohs(source->to.sin_port),
                                         .mc_group = source->to.sin_addr.s_addr,
                                         .session_id = source->session_id,
                                         .topic_idx = tidx};
}

static inline lbm_transport_source_info_t ru_info(const struct udp_source *source, uint32_t tidx)
{
    return (lbm_transport_source_info_t){.type = LBM_TRANSPORT_TYPE_LBTRU,
                                         .src_ip = htonl(INADDR_LOOPBACK),
                                         .src_port = source->port,
                                         .session_id = source->session_id,
                                         .topic_idx = tidx};
}

static inline void udp_put(struct udp_source *source, const void *bytes, size_t len)
{
    if (sendto(source->fd, bytes, len, 0, (struct sockaddr *)&source->to, sizeof source->to) != (ssize_t)len) {
        abort();
    }
}

/* An LBMC message of one topic. */
static inline size_t udp_put_lbmc(uint8_t *out, uint32_t tidx, uint32_t sqn, size_t payload)
{
    um_lbmc_put_data_hdr(out, UM_LBMC_HDR_DATA, (uint16_t)(12 + payload), tidx, sqn);
    memset(out + 12, udp_fill(sqn), payload);
    return 12 + payload;
}

static inline size_t rm_data(const struct udp_source *source, uint8_t *out, uint32_t datagram, uint32_t tidx,
                             uint32_t sqn, size_t payload, bool retransmission)
{
    struct um_lbtrm_session session = {source->port, source->session_id};
    size_t len = um_lbtrm_put_data(out, &session, datagram, 0, 3, retransmission);
    return len + udp_put_lbmc(out + len, tidx, sqn, payload);
}

/* Datagram number `datagram` with one message of the same number. */
static inline void rm_send(struct udp_source *source, uint32_t datagram, uint32_t tidx, size_t payload)
{
    static uint8_t bytes[65536];
    udp_put(source, bytes, rm_data(source, bytes, datagram, tidx, datagram, payload, false));
}

static inline void ru_send(struct udp_source *source, uint32_t datagram, uint32_t tidx, size_t payload)
{
    static uint8_t bytes[65536];
    size_t len = um_lbtru_put_data(bytes, source->session_id, datagram, 0, false);
    udp_put(source, bytes, len + udp_put_lbmc(bytes + len, tidx, datagram, payload));
}

/* What came to the unicast port, or -1. */
static inline ssize_t udp_get(struct udp_source *source, void *bytes, size_t room)
{
    struct sockaddr_in from;
    socklen_t len = sizeof from;
    ssize_t got = recvfrom(source->nak_fd, bytes, room, 0, (struct sockaddr *)&from, &len);
    if (got >= 0 && source->nak_fd == source->fd) {
        source->to = from;
    }
    return got;
}

#endif
