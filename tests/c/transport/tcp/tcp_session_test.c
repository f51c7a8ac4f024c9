/* Both halves of TCP sessions together: source sessions, receive sessions and request ports on one loop. */
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/um_error.h"
#include "base/um_random.h"
#include "transport/session/um_rcv_session.h"
#include "transport/session/um_src_session.h"
#include "transport/session/um_src_pool.h"
#include "um_test_loop.h"

/* A publishing and a subscribing context on one sequential loop. */
struct world {
    struct um_loop *loop;
    struct um_context_options opts;
    struct um_source_options src_opts;
    struct um_receiver_options rcv_opts;
    struct um_transport_env env;
    struct um_unicast *src_unicast, *rcv_unicast;
    struct um_src_transport *sources;
    struct um_rcv_sessions *sessions;
};

struct source {
    struct um_src_stream stream;
    int connects, disconnects;
};

struct sink {
    struct um_rcv_stream stream;
    int bos, eos;
    uint64_t fragments, bytes, wrong;
    uint32_t next_sqn;
};

static void on_connect(struct um_src_stream *stream, const char *client)
{
    ((struct source *)stream)->connects++;
}

static void on_disconnect(struct um_src_stream *stream, const char *client)
{
    ((struct source *)stream)->disconnects++;
}

static void on_wakeup(struct um_src_stream *stream)
{
}

static const struct um_src_stream_events src_events = {on_connect, on_disconnect, on_wakeup, NULL, NULL};

static void on_data(struct um_rcv_stream *stream, const struct um_lbmc_msg *msg, struct um_buf *buf, uint64_t now_ns)
{
    struct sink *sink = (struct sink *)stream;
    uint8_t value = (uint8_t)stream->tidx;
    const uint8_t *p = msg->payload.ptr;
    bool filled = msg->payload.len == 0 || (p[0] == value && memcmp(p, p + 1, msg->payload.len - 1) == 0);
    sink->wrong += !filled || (sink->fragments != 0 && msg->sqn != sink->next_sqn);
    sink->next_sqn = msg->sqn + 1;
    sink->fragments++;
    sink->bytes += msg->payload.len;
}

static void on_tsni(struct um_rcv_stream *stream, uint32_t last_sqn, uint64_t now_ns)
{
}

static void on_bos(struct um_rcv_stream *stream)
{
    ((struct sink *)stream)->bos++;
}

static void on_eos(struct um_rcv_stream *stream)
{
    ((struct sink *)stream)->eos++;
}

static const struct um_rcv_stream_events rcv_events = {
    .on_data = on_data, .on_tsni = on_tsni, .on_bos = on_bos, .on_eos = on_eos};

static void on_request(void *user, const struct um_lbmc_msg *msg, const struct sockaddr_in *from, uint64_t now_ns)
{
    if ((msg->present & UM_LBMC_HAS_SSF_CREQ) != 0) {
        um_tcp_src_transport.on_ssf_creq(((struct world *)user)->sources, &msg->ssf_creq, from->sin_addr.s_addr);
    }
}

static const struct um_unicast_events unicast_events = {on_request};

static int do_open(void *arg)
{
    static const uint8_t src_instance[8] = {1}, rcv_instance[8] = {2};
    struct world *world = arg;
    world->src_unicast = um_unicast_create(world->loop, &world->opts, src_instance, &unicast_events, world);
    world->rcv_unicast = um_unicast_create(world->loop, &world->opts, rcv_instance, &unicast_events, world);
    world->env.ctxinst = src_instance;
    world->env.request_port = um_unicast_port(world->src_unicast);
    world->env.request_ip = um_unicast_addr(world->src_unicast);
    world->sources = um_src_pool_create(&um_tcp_src_transport, &world->env);
    world->sessions = um_rcv_sessions_create(&world->env, world->rcv_unicast);
    return world->sources != NULL && world->sessions != NULL ? 0 : -1;
}

static bool world_open(struct world *world, int filtering)
{
    memset(world, 0, sizeof *world);
    test_log_start();
    test_options(&world->opts);
    world->opts.transport_tcp_datagram_max_size = 65535;
    world->opts.transport_tcp_maximum_ports = 1;
    world->opts.request_tcp_bind_request_port = 1;
    world->src_opts.implicit_batching_interval = 200;
    world->src_opts.implicit_batching_minimum_length = 2048;
    world->src_opts.transport_session_maximum_buffer = 65536;
    world->src_opts.transport_tcp_listen_backlog = 5;
    world->src_opts.transport_tcp_nodelay = 1;
    world->src_opts.transport_tcp_use_session_id = 1;
    world->src_opts.transport_source_side_filtering_behavior = filtering;
    world->loop = um_loop_create(false, UM_LOOP_PEND, "test");
    world->env.loop = world->loop;
    world->env.opts = &world->opts;
    return um_loop_call(world->loop, do_open, world) == 0;
}

static int do_close(void *arg)
{
    struct world *world = arg;
    um_rcv_sessions_destroy(world->sessions);
    um_src_pool_destroy(world->sources);
    um_unicast_destroy(world->rcv_unicast);
    um_unicast_destroy(world->src_unicast);
    return 0;
}

static void world_close(struct world *world)
{
    um_loop_call(world->loop, do_close, world);
    um_loop_destroy(world->loop);
    um_log_set_proc(NULL, NULL);
}

struct call {
    struct world *world;
    struct source *source;
    struct sink *sink;
    uint32_t tidx;
};

static int do_attach(void *arg)
{
    struct call *call = arg;
    memset(call->source, 0, sizeof *call->source);
    call->source->stream.events = &src_events;
    call->source->stream.tidx = call->tidx;
    return um_src_pool_attach(call->world->sources, &call->world->src_opts, "topic", &call->source->stream);
}

static int do_join(void *arg)
{
    struct call *call = arg;
    lbm_transport_source_info_t info;
    memset(call->sink, 0, sizeof *call->sink);
    um_src_stream_source_info(&call->source->stream, &info);
    call->sink->stream.events = &rcv_events;
    call->sink->stream.tidx = call->source->stream.tidx;
    return um_rcv_sessions_join(call->world->sessions, &info, &call->world->rcv_opts, &call->sink->stream);
}

static int do_leave(void *arg)
{
    um_rcv_stream_leave(&((struct sink *)arg)->stream);
    return 0;
}

static int do_detach(void *arg)
{
    um_src_stream_detach(&((struct source *)arg)->stream);
    return 0;
}

static int attach(struct world *world, struct source *source, uint32_t tidx)
{
    struct call call = {world, source, NULL, tidx};
    return um_loop_call(world->loop, do_attach, &call);
}

static int join(struct world *world, struct source *source, struct sink *sink)
{
    struct call call = {world, source, sink, 0};
    return um_loop_call(world->loop, do_join, &call);
}

/* Send without blocking, running the loop while the source is refused. */
static bool send_filled(struct world *world, struct source *source, size_t len, int flags)
{
    static uint8_t payload[300000];
    memset(payload, (int)source->stream.tidx, len);
    return RUN_UNTIL(world->loop, ({
                         struct iovec iov = {payload, len};
                         struct um_send send = {
                             .iov = &iov, .iovcnt = 1, .len = len, .flags = flags | LBM_SRC_NONBLOCK};
                         um_src_stream_send(&source->stream, &send) == 0;
                     }));
}

static uint64_t no_topic_count(struct world *world)
{
    lbm_rcv_transport_stats_t stats;
    return um_rcv_sessions_stats(world->sessions, &stats, 1) == 1 ? stats.transport.tcp.lbm_msgs_no_topic_rcved : 0;
}

TEST(everything_sent_after_connect_arrives_in_order_on_two_topics)
{
    struct world world;
    struct source a, b;
    struct sink sa, sb;
    struct um_rng rng;
    uint64_t sent[2] = {0, 0};
    um_rng_seed(&rng, 5);
    CHECK(world_open(&world, 0));
    CHECK_EQ(attach(&world, &a, 11), 0);
    CHECK_EQ(attach(&world, &b, 22), 0);
    CHECK(a.stream.session == b.stream.session);
    CHECK_EQ(join(&world, &a, &sa), 0);
    CHECK_EQ(join(&world, &b, &sb), 0);
    CHECK(RUN_UNTIL(world.loop, a.connects == 1 && b.connects == 1));
    CHECK(RUN_UNTIL(world.loop, sa.bos == 1 && sb.bos == 1)); /* through the TSNI of a new client */
    for (int i = 0; i < 3000; i++) {
        size_t len = (size_t)um_rng_range(&rng, 0, i % 100 == 0 ? 300000 : 500);
        sent[i % 2] += len;
        CHECK(send_filled(&world, i % 2 == 0 ? &a : &b, len, 0));
    }
    CHECK(RUN_UNTIL(world.loop, sa.bytes == sent[0] && sb.bytes == sent[1]));
    CHECK_EQ(sa.wrong + sb.wrong, 0);
    CHECK(sa.fragments > 1500);
    CHECK_EQ(um_loop_call(world.loop, do_detach, &a), 0);
    test_run_for_ms(world.loop, 5);
    CHECK_EQ(sa.eos + sb.eos, 0); /* the session lives as long as one of its sources */
    CHECK_EQ(um_loop_call(world.loop, do_detach, &b), 0);
    CHECK(RUN_UNTIL(world.loop, sa.eos == 1 && sb.eos == 1));
    CHECK_EQ(test_log_count("Core-6036-1"), 0);
    world_close(&world);
}

TEST(source_learns_that_its_receiver_left)
{
    struct world world;
    struct source a;
    struct sink sa;
    CHECK(world_open(&world, 0));
    CHECK_EQ(attach(&world, &a, 11), 0);
    for (int i = 1; i <= 3; i++) {
        CHECK_EQ(join(&world, &a, &sa), 0);
        CHECK(RUN_UNTIL(world.loop, a.connects == i && sa.bos == 1));
        CHECK(send_filled(&world, &a, 100, LBM_MSG_FLUSH));
        CHECK(RUN_UNTIL(world.loop, sa.bytes == 100));
        CHECK_EQ(um_loop_call(world.loop, do_leave, &sa), 0);
        CHECK(RUN_UNTIL(world.loop, a.disconnects == i));
        CHECK_EQ(sa.eos, 0);
    }
    CHECK_EQ(um_loop_call(world.loop, do_detach, &a), 0);
    world_close(&world);
}

static int connect_to(const struct source *source)
{
    lbm_transport_source_info_t info;
    um_src_stream_source_info(&source->stream, &info);
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(info.src_port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0 ? fd : -1;
}

/* A source that is late must not take it for a receiver to which it may send. */
TEST(who_left_before_it_was_accepted_is_no_receiver)
{
    struct world world;
    struct source a;
    char byte;
    CHECK(world_open(&world, 0));
    CHECK_EQ(attach(&world, &a, 11), 0);
    int leaves = connect_to(&a), stays = connect_to(&a); /* accepted after the other */
    CHECK(leaves >= 0 && stays >= 0);
    close(leaves);
    CHECK(RUN_UNTIL(world.loop, recv(stays, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1));
    CHECK_EQ(a.connects, 1);
    CHECK_EQ(a.disconnects, 0);
    close(stays);
    CHECK(RUN_UNTIL(world.loop, a.disconnects == 1));
    CHECK_EQ(um_loop_call(world.loop, do_detach, &a), 0);
    world_close(&world);
}

TEST(with_filtering_at_the_source_only_subscribed_topics_cross_the_connection)
{
    struct world world;
    struct source a, b;
    struct sink sa, sb;
    CHECK(world_open(&world, 1));
    CHECK_EQ(attach(&world, &a, 11), 0);
    CHECK_EQ(attach(&world, &b, 22), 0);
    CHECK_EQ(join(&world, &a, &sa), 0);
    CHECK(RUN_UNTIL(world.loop, sa.bos == 1));
    CHECK(RUN_UNTIL(world.loop, ({
                        CHECK(send_filled(&world, &a, 10, LBM_MSG_FLUSH));
                        CHECK(send_filled(&world, &b, 10, LBM_MSG_FLUSH));
                        sa.fragments >= 20;
                    })));
    CHECK_EQ(no_topic_count(&world), 0);
    CHECK_EQ(join(&world, &b, &sb), 0);
    CHECK(RUN_UNTIL(world.loop, (send_filled(&world, &b, 10, LBM_MSG_FLUSH), sb.fragments >= 5)));
    CHECK_EQ(um_loop_call(world.loop, do_leave, &sa), 0);
    struct um_unicast_stats after;
    CHECK(RUN_UNTIL(world.loop,
                    (um_unicast_stats(world.src_unicast, &after), after.msgs_rcved == 3))); /* two in, one out */
    CHECK(send_filled(&world, &b, 10, LBM_MSG_FLUSH)); /* what was under way before the exclusion comes before this */
    CHECK(RUN_UNTIL(world.loop, sb.next_sqn == b.stream.next_sqn));
    uint64_t stray = no_topic_count(&world);
    for (int i = 0; i < 20; i++) {
        CHECK(send_filled(&world, &a, 10, LBM_MSG_FLUSH));
        CHECK(send_filled(&world, &b, 10, LBM_MSG_FLUSH));
    }
    CHECK(RUN_UNTIL(world.loop, sb.next_sqn == b.stream.next_sqn));
    CHECK_EQ(no_topic_count(&world), stray);
    CHECK_EQ(sa.wrong + sb.wrong, 0);
    CHECK_EQ(um_loop_call(world.loop, do_detach, &a), 0);
    CHECK_EQ(um_loop_call(world.loop, do_detach, &b), 0);
    world_close(&world);
}
