/* TCP source and receive sessions over an awkward byte stream: what encryption and compression will be to them. */
#include <pthread.h>
#include <stdatomic.h>

#include "base/um_error.h"
#include "transport/session/um_rcv_session.h"
#include "transport/session/um_src_pool.h"
#include "transport/tcp/um_tcp_src_session.h"
#include "um_test_awkward.h"
#include "um_test_loop.h"

struct world {
    struct um_loop *loop;
    struct um_context_options opts;
    struct um_source_options src_opts;
    struct um_receiver_options rcv_opts;
    struct um_transport_env env;
    struct um_src_transport *sources;
    struct um_rcv_sessions *sessions;
    struct um_src_stream source;
    int connects, disconnects;
    struct um_rcv_stream sink;
    int bos, eos;
    uint64_t fragments, bytes, wrong;
    uint32_t next_sqn;
};

static struct world *w;

static void on_connect(struct um_src_stream *stream, const char *client)
{
    w->connects++;
}

static void on_disconnect(struct um_src_stream *stream, const char *client)
{
    w->disconnects++;
}

static void on_wakeup(struct um_src_stream *stream)
{
}

static const struct um_src_stream_events src_events = {on_connect, on_disconnect, on_wakeup, NULL, NULL};

static void on_data(struct um_rcv_stream *stream, const struct um_lbmc_msg *msg, struct um_buf *buf, uint64_t now_ns)
{
    w->wrong += w->fragments != 0 && msg->sqn != w->next_sqn;
    for (size_t i = 0; i < msg->payload.len; i++) {
        w->wrong += msg->payload.ptr[i] != (uint8_t)(w->bytes + i);
    }
    w->next_sqn = msg->sqn + 1;
    w->fragments++;
    w->bytes += msg->payload.len;
}

static void on_tsni(struct um_rcv_stream *stream, uint32_t last_sqn, uint64_t now_ns)
{
}

static void on_bos(struct um_rcv_stream *stream)
{
    w->bos++;
}

static void on_eos(struct um_rcv_stream *stream)
{
    w->eos++;
}

static const struct um_rcv_stream_events rcv_events = {
    .on_data = on_data, .on_tsni = on_tsni, .on_bos = on_bos, .on_eos = on_eos};

static int do_open(void *arg)
{
    w->sources = um_src_pool_create(&um_tcp_src_transport, &w->env);
    w->sessions = um_rcv_sessions_create(&w->env, NULL);
    w->source = (struct um_src_stream){.events = &src_events, .tidx = 7};
    return um_src_pool_attach(w->sources, &w->src_opts, "topic", &w->source);
}

static bool world_open(struct world *world, const struct um_stream_layer *layer)
{
    static const uint8_t instance[8] = {1};
    memset(world, 0, sizeof *world);
    w = world;
    test_log_start();
    test_options(&w->opts);
    w->opts.transport_tcp_datagram_max_size = 65535;
    w->opts.transport_tcp_maximum_ports = 1;
    w->src_opts.implicit_batching_interval = 200;
    w->src_opts.implicit_batching_minimum_length = 2048;
    w->src_opts.transport_session_maximum_buffer = 4096;
    w->src_opts.transport_tcp_listen_backlog = 5;
    w->src_opts.transport_tcp_nodelay = 1;
    w->src_opts.transport_tcp_use_session_id = 1;
    w->loop = um_loop_create(false, UM_LOOP_PEND, "test");
    w->env.loop = w->loop;
    w->env.opts = &w->opts;
    w->env.ctxinst = instance;
    w->env.stream_layer = layer;
    return um_loop_call(w->loop, do_open, NULL) == 0;
}

static int do_detach(void *arg)
{
    um_src_stream_detach(&w->source);
    return 0;
}

static int do_close(void *arg)
{
    um_rcv_sessions_destroy(w->sessions);
    um_src_pool_destroy(w->sources);
    return 0;
}

static void world_close(void)
{
    um_loop_call(w->loop, do_close, NULL);
    um_loop_destroy(w->loop);
    um_log_set_proc(NULL, NULL);
}

static int do_join(void *arg)
{
    lbm_transport_source_info_t info;
    um_src_stream_source_info(&w->source, &info);
    w->sink = (struct um_rcv_stream){.events = &rcv_events, .tidx = 7};
    return um_rcv_sessions_join(w->sessions, &info, &w->rcv_opts, &w->sink);
}

static uint16_t source_port(void)
{
    lbm_transport_source_info_t info;
    um_src_stream_source_info(&w->source, &info);
    return info.src_port;
}

/* The next `len` bytes of the counted stream. */
static int send_counted(size_t *sent, size_t len, int flags)
{
    uint8_t data[5000];
    for (size_t i = 0; i < len; i++) {
        data[i] = (uint8_t)(*sent + i);
    }
    struct iovec iov = {data, len};
    struct um_send send = {.iov = &iov, .iovcnt = 1, .len = len, .flags = flags};
    int rc = um_src_stream_send(&w->source, &send);
    *sent += rc == 0 ? len : 0;
    return rc;
}

static void everything_arrives_over(const struct um_stream_layer *layer, int messages)
{
    struct world world;
    size_t sent = 0;
    CHECK(world_open(&world, layer));
    CHECK_EQ(um_loop_call(w->loop, do_join, NULL), 0);
    CHECK(RUN_UNTIL(w->loop, w->connects == 1 && w->bos == 1));
    for (int i = 0; i < messages; i++) {
        size_t len = (size_t)(i * 37 % 500 + (i % 20 == 0 ? 3000 : 1));
        CHECK(RUN_UNTIL(w->loop, send_counted(&sent, len, LBM_SRC_NONBLOCK | LBM_MSG_FLUSH) == 0));
    }
    CHECK(RUN_UNTIL(w->loop, w->bytes == sent));
    CHECK_EQ(w->wrong, 0);
    CHECK_EQ(um_loop_call(w->loop, do_detach, NULL), 0);
    CHECK(RUN_UNTIL(w->loop, w->eos == 1));
    world_close();
    CHECK_EQ(awkward_live, 0);
}

TEST(everything_arrives_over_an_awkward_stream)
{
    everything_arrives_over(&awkward_layer, 60);
}

TEST(everything_arrives_over_two_awkward_streams)
{
    everything_arrives_over(&awkward_twice, 20);
}

static void *send_blocking(void *arg)
{
    size_t *sent = arg;
    for (int i = 0; i < 40; i++) {
        if (send_counted(sent, 700, LBM_MSG_FLUSH) != 0) {
            break;
        }
    }
    return NULL;
}

TEST(blocking_sender_moves_the_queue_of_an_awkward_stream_itself)
{
    struct world world;
    size_t sent = 0;
    pthread_t thread;
    CHECK(world_open(&world, &awkward_layer));
    CHECK_EQ(um_loop_call(w->loop, do_join, NULL), 0);
    CHECK(RUN_UNTIL(w->loop, w->connects == 1 && w->bos == 1));
    pthread_create(&thread, NULL, send_blocking, &sent);
    CHECK(RUN_UNTIL(w->loop, w->bytes == 40 * 700));
    pthread_join(thread, NULL);
    CHECK_EQ(sent, 40 * 700);
    CHECK_EQ(w->wrong, 0);
    world_close();
    CHECK_EQ(awkward_live, 0);
}

TEST(source_reports_a_client_only_when_its_stream_is_open)
{
    struct world world;
    struct um_src_drops drops = {0};
    CHECK(world_open(&world, &awkward_layer));
    int silent = test_connect(source_port()), wrong = test_connect(source_port());
    CHECK(test_write(w->loop, wrong, "GET / HTTP/1.0\r\n", 16));
    CHECK(RUN_UNTIL(w->loop, (um_src_stream_drops(&w->source, &drops), drops.unopened == 1)));
    CHECK_EQ(w->connects, 0);
    CHECK_EQ(test_log_count("not an awkward stream"), 1);
    size_t sent = 0;
    CHECK_EQ(send_counted(&sent, 10, LBM_MSG_FLUSH), 0); /* to nobody */
    CHECK_EQ(um_loop_call(w->loop, do_detach, NULL), 0); /* frees what is still being opened */
    CHECK_EQ(w->connects + w->disconnects, 0);
    close(silent);
    close(wrong);
    world_close();
    CHECK_EQ(awkward_live, 0);
}

/* As RUN_UNTIL, at a time that the test says. */
#define RUN_AT(second, condition)                                                                                      \
    ({                                                                                                                 \
        for (int ms_ = 0; ms_ < 30000 && !(condition); ms_++) {                                                        \
            um_loop_run_once(w->loop, 0, (second)*UM_NS_PER_SEC);                                                      \
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);                                                   \
        }                                                                                                              \
        (condition);                                                                                                   \
    })

TEST(connection_that_does_not_open_within_five_seconds_is_given_up_and_others_stay)
{
    struct world world;
    struct um_src_drops drops = {0};
    CHECK(world_open(&world, &awkward_layer));
    CHECK_EQ(um_loop_call(w->loop, do_join, NULL), 0);
    CHECK(RUN_AT(1, w->connects == 1));
    int silent = test_connect(source_port());
    CHECK(RUN_AT(1, awkward_live == 3));
    CHECK_EQ(um_loop_run_once(w->loop, 0, 5 * UM_NS_PER_SEC), 0);
    um_src_stream_drops(&w->source, &drops);
    CHECK_EQ(drops.unopened, 0);
    CHECK(RUN_AT(7, (um_src_stream_drops(&w->source, &drops), drops.unopened == 1)));
    CHECK_EQ(test_log_count("Core-5688-3934"), 1);
    CHECK_EQ(test_log_count("negotiate timeout with peer"), 1);
    CHECK_EQ(awkward_live, 2); /* both ends of the one that opened */
    CHECK_EQ(w->disconnects, 0);
    close(silent);
    CHECK_EQ(um_loop_call(w->loop, do_detach, NULL), 0);
    world_close();
    CHECK_EQ(awkward_live, 0);
}

TEST(connections_that_do_not_open_are_bounded)
{
    struct world world;
    struct um_src_drops drops = {0};
    enum { EXTRA = 6, COUNT = UM_TCP_OPENING_MAX + EXTRA };
    int fds[COUNT];
    CHECK(world_open(&world, &awkward_layer));
    for (int i = 0; i < COUNT; i++) {
        fds[i] = test_connect(source_port());
        CHECK(fds[i] >= 0);
        um_loop_run_once(w->loop, 1, 0);
    }
    CHECK(RUN_UNTIL(w->loop, (um_src_stream_drops(&w->source, &drops), drops.unopened >= EXTRA)));
    CHECK(awkward_live <= UM_TCP_OPENING_MAX); /* the first have left if this took five seconds */
    for (int i = 0; i < COUNT; i++) {
        close(fds[i]);
    }
    CHECK(RUN_UNTIL(w->loop, awkward_live == 0));
    CHECK_EQ(um_loop_call(w->loop, do_detach, NULL), 0);
    world_close();
}

/* Closed by the other side, which is told behind its greeting. */
static bool is_over(int fd)
{
    char bytes[64];
    ssize_t got;
    do {
        got = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    } while (got > 0);
    return got == 0 || errno != EAGAIN;
}

TEST(a_stranger_who_opens_no_stream_keeps_nobody_else_out)
{
    struct world world;
    struct um_src_drops drops = {0};
    int strangers[UM_TCP_OPENING_MAX];
    CHECK(world_open(&world, &awkward_layer));
    CHECK_EQ(um_loop_run_once(w->loop, 0, UM_NS_PER_SEC), 0);
    for (int i = 0; i < UM_TCP_OPENING_MAX; i++) {
        strangers[i] = test_connect_from("127.0.0.66", source_port());
        CHECK(strangers[i] >= 0);
        CHECK(RUN_AT(1, awkward_live == i + 1));
    }
    int other = test_connect_from("127.0.0.77", source_port()); /* opens none either, but is only one */
    CHECK(RUN_AT(1, (um_src_stream_drops(&w->source, &drops), drops.unopened == 1)));
    CHECK_EQ(um_loop_call(w->loop, do_join, NULL), 0);
    CHECK(RUN_AT(1, w->connects == 1 && w->bos == 1));
    um_src_stream_drops(&w->source, &drops);
    CHECK_EQ(drops.unopened, 2);
    CHECK(RUN_AT(1, is_over(strangers[1]))); /* the oldest */
    CHECK(is_over(strangers[0]) && !is_over(other));
    for (int i = 0; i < UM_TCP_OPENING_MAX; i++) {
        close(strangers[i]);
    }
    close(other);
    CHECK_EQ(um_loop_call(w->loop, do_detach, NULL), 0);
    world_close();
    CHECK_EQ(awkward_live, 0);
}

static atomic_int clients_refused;

static bool refuse_clients(size_t size)
{
    bool refused = size == sizeof(struct um_tcp_client);
    atomic_fetch_add(&clients_refused, refused);
    return refused;
}

TEST(connections_refused_for_want_of_memory_are_logged_once_in_a_while)
{
    struct world world;
    int fds[3];
    CHECK(world_open(&world, NULL));
    um_mem_set_fail_hook(refuse_clients);
    for (int i = 0; i < 3; i++) {
        fds[i] = test_connect(source_port());
        CHECK(fds[i] >= 0);
        CHECK(RUN_AT(1, atomic_load(&clients_refused) == i + 1));
        CHECK(RUN_AT(1, is_over(fds[i])));
    }
    um_mem_set_fail_hook(NULL);
    CHECK_EQ(test_log_count("Core-5688-3931"), 1);
    for (int i = 0; i < 3; i++) {
        close(fds[i]);
    }
    CHECK_EQ(um_loop_call(w->loop, do_detach, NULL), 0);
    world_close();
}

TEST(receiver_of_a_source_without_the_filter_ends_with_the_reason)
{
    struct world world;
    CHECK(world_open(&world, NULL));
    struct um_transport_env other = w->env;
    other.stream_layer = &awkward_layer;
    um_rcv_sessions_destroy(w->sessions);
    w->sessions = um_rcv_sessions_create(&other, NULL);
    CHECK_EQ(um_loop_call(w->loop, do_join, NULL), 0);
    CHECK(RUN_UNTIL(w->loop, w->eos == 1));
    CHECK_EQ(w->bos, 0);
    CHECK_CONTAINS(test_log, "not an awkward stream");
    CHECK_EQ(um_loop_call(w->loop, do_detach, NULL), 0);
    world_close();
    CHECK_EQ(awkward_live, 0);
}

TEST(failure_of_the_stream_ends_the_session)
{
    struct world world;
    size_t sent = 0;
    CHECK(world_open(&world, &awkward_layer));
    CHECK_EQ(um_loop_call(w->loop, do_join, NULL), 0);
    CHECK(RUN_UNTIL(w->loop, w->connects == 1 && w->bos == 1));
    awkward_fail_reads = 0;
    CHECK_EQ(send_counted(&sent, 100, LBM_MSG_FLUSH), 0);
    CHECK(RUN_UNTIL(w->loop, w->eos == 1 || w->disconnects == 1));
    awkward_fail_reads = -1;
    CHECK(RUN_UNTIL(w->loop, w->disconnects == 1));
    CHECK_EQ(um_loop_call(w->loop, do_detach, NULL), 0);
    world_close();
    CHECK_EQ(awkward_live, 0);
}
