/* Receive sessions against a scripted source on a loopback socket. */
#include "transport/session/um_rcv_session.h"

#include <limits.h>

#include "base/um_error.h"
#include "base/um_random.h"
#include "um_test_loop.h"

#define SESSION_ID 0x644c8862u

struct world {
    struct um_loop *loop;
    struct um_context_options opts;
    struct um_receiver_options rcv_opts;
    struct um_transport_env env;
    struct um_unicast *unicast;
    struct um_rcv_sessions *sessions;
    int listener; /* the source */
    uint16_t port;
    lbm_transport_source_info_t info;
};

/* A stream and what it was told. */
struct sink {
    struct um_rcv_stream stream;
    struct world *world;
    int bos, eos, read_ends;
    uint64_t data, bytes, tsnis, requests;
    uint32_t last_sqn, last_tsni;
    bool out_of_order, data_before_bos;
    void (*on_data)(struct sink *sink, const struct um_lbmc_msg *msg, struct um_buf *buf);
    void (*on_bos)(struct sink *sink);
    void (*on_eos)(struct sink *sink);
    struct sink *other;
};

static struct sink *sink_of(struct um_rcv_stream *stream)
{
    return (struct sink *)stream;
}

static void on_data(struct um_rcv_stream *stream, const struct um_lbmc_msg *msg, struct um_buf *buf, uint64_t now_ns)
{
    struct sink *sink = sink_of(stream);
    sink->out_of_order |= sink->data != 0 && msg->sqn != sink->last_sqn + 1;
    sink->data_before_bos |= sink->bos == 0;
    sink->last_sqn = msg->sqn;
    sink->data++;
    sink->bytes += msg->payload.len;
    sink->requests += (msg->present & UM_LBMC_HAS_REQUEST) != 0;
    if (sink->on_data != NULL) {
        sink->on_data(sink, msg, buf);
    }
}

static void on_tsni(struct um_rcv_stream *stream, uint32_t last_sqn, uint64_t now_ns)
{
    sink_of(stream)->tsnis++;
    sink_of(stream)->last_tsni = last_sqn;
}

static void on_bos(struct um_rcv_stream *stream)
{
    sink_of(stream)->bos++;
    if (sink_of(stream)->on_bos != NULL) {
        sink_of(stream)->on_bos(sink_of(stream));
    }
}

static void on_eos(struct um_rcv_stream *stream)
{
    sink_of(stream)->eos++;
    if (sink_of(stream)->on_eos != NULL) {
        sink_of(stream)->on_eos(sink_of(stream));
    }
}

static void on_read_end(struct um_rcv_stream *stream, uint64_t now_ns)
{
    sink_of(stream)->read_ends++;
}

static const struct um_rcv_stream_events events = {
    .on_data = on_data, .on_tsni = on_tsni, .on_bos = on_bos, .on_eos = on_eos, .on_read_end = on_read_end};

/* The three pieces that a test may want to start with other options. */
static void world_options(struct world *world)
{
    memset(world, 0, sizeof *world);
    test_log_start();
    test_options(&world->opts);
}

static bool world_start(struct world *world)
{
    static const uint8_t instance[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    static const struct um_unicast_events uim_events = {NULL};
    world->loop = um_loop_create(false, UM_LOOP_PEND, "test");
    world->env.loop = world->loop;
    world->env.opts = &world->opts;
    world->env.ctxinst = instance;
    world->unicast = um_unicast_create(world->loop, &world->opts, instance, &uim_events, NULL);
    world->sessions = um_rcv_sessions_create(&world->env, world->unicast);
    world->listener = test_listen(&world->port);
    world->info.type = LBM_TRANSPORT_TYPE_TCP;
    world->info.src_ip = htonl(INADDR_LOOPBACK);
    world->info.src_port = world->port;
    world->info.session_id = SESSION_ID;
    return world->loop != NULL && world->unicast != NULL && world->sessions != NULL && world->listener >= 0;
}

static bool world_open(struct world *world)
{
    world_options(world);
    return world_start(world);
}

static void world_close(struct world *world)
{
    um_rcv_sessions_destroy(world->sessions);
    um_unicast_destroy(world->unicast);
    um_loop_destroy(world->loop);
    close(world->listener);
    um_log_set_proc(NULL, NULL);
}

struct join_args {
    struct world *world;
    struct sink *sink;
};

static int do_join(void *arg)
{
    struct join_args *args = arg;
    return um_rcv_sessions_join(args->world->sessions, &args->world->info, &args->world->rcv_opts, &args->sink->stream);
}

static int join(struct world *world, struct sink *sink, uint32_t tidx)
{
    memset(&sink->stream, 0, sizeof sink->stream);
    sink->world = world;
    sink->stream.events = &events;
    sink->stream.tidx = tidx;
    struct join_args args = {world, sink};
    return um_loop_call(world->loop, do_join, &args);
}

static size_t put_message(uint8_t *p, uint32_t tidx, uint32_t sqn, size_t payload)
{
    um_lbmc_put_data_hdr(p, UM_LBMC_HDR_DATA, (uint16_t)(12 + payload), tidx, sqn);
    memset(p + 12, (int)(sqn * 31 & 0xff), payload);
    return 12 + payload;
}

static bool send_message(struct world *world, int fd, uint32_t tidx, uint32_t sqn, size_t payload)
{
    uint8_t bytes[UM_LBMC_MAX_MSGLEN];
    return test_write(world->loop, fd, bytes, put_message(bytes, tidx, sqn, payload));
}

/* Accept and read the session id. */
static int accept_receiver(struct world *world)
{
    uint8_t got[12], expected[12];
    int fd = test_accept(world->loop, world->listener);
    um_lbmc_encode_tcp_sid(expected, SESSION_ID);
    if (fd >= 0 && (!test_read(world->loop, fd, got, 12) || memcmp(got, expected, 12) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

TEST(receiver_sends_its_session_id_first_and_gets_bos_with_the_first_message)
{
    struct world world;
    struct sink sink = {0};
    CHECK(world_open(&world));
    CHECK_EQ(join(&world, &sink, 7), 0);
    char expected[64];
    snprintf(expected, sizeof expected, "TCP:127.0.0.1:%u:644c8862", world.port);
    CHECK_STR(um_rcv_stream_source(&sink.stream), expected);
    int fd = accept_receiver(&world);
    CHECK(fd >= 0);
    test_run_for_ms(world.loop, 5);
    CHECK_EQ(sink.bos, 0);
    CHECK(send_message(&world, fd, 7, 0, 5));
    CHECK(RUN_UNTIL(world.loop, sink.data == 1));
    CHECK_EQ(sink.bos, 1);
    CHECK(!sink.data_before_bos);
    CHECK_EQ(sink.read_ends, 1);
    CHECK(test_silent(fd));
    close(fd);
    CHECK(RUN_UNTIL(world.loop, sink.eos == 1));
    CHECK(sink.stream.session == NULL);
    world_close(&world);
}

TEST(no_session_id_is_sent_to_a_source_that_has_none)
{
    struct world world;
    struct sink sink = {0};
    CHECK(world_open(&world));
    world.info.session_id = 0;
    CHECK_EQ(join(&world, &sink, 7), 0);
    int fd = test_accept(world.loop, world.listener);
    CHECK(fd >= 0);
    CHECK(send_message(&world, fd, 7, 0, 5));
    CHECK(RUN_UNTIL(world.loop, sink.data == 1));
    CHECK(test_silent(fd));
    close(fd);
    world_close(&world);
}

TEST(two_topics_of_one_session_get_bos_though_only_one_has_data)
{
    struct world world;
    struct sink a = {0}, b = {0}, again = {0};
    lbm_rcv_transport_stats_t stats;
    CHECK(world_open(&world));
    CHECK_EQ(join(&world, &a, 1), 0);
    CHECK_EQ(join(&world, &b, 2), 0);
    CHECK_EQ(join(&world, &again, 2), -1);
    int fd = accept_receiver(&world);
    CHECK(send_message(&world, fd, 1, 0, 100));
    CHECK(send_message(&world, fd, 3, 0, 10));
    CHECK(RUN_UNTIL(world.loop, um_rcv_stream_stats(&a.stream, &stats) == 0 && stats.transport.tcp.bytes_rcved == 134));
    CHECK_EQ(a.bos + b.bos, 2);
    CHECK_EQ(b.data, 0);
    CHECK_EQ(stats.type, LBM_TRANSPORT_STAT_TCP);
    CHECK_EQ(stats.transport.tcp.lbm_msgs_rcved, 2);
    CHECK_EQ(stats.transport.tcp.lbm_msgs_no_topic_rcved, 1);
    CHECK_EQ(um_rcv_sessions_stats(world.sessions, &stats, 0), 1);
    um_rcv_sessions_stats_reset(world.sessions);
    CHECK_EQ(um_rcv_sessions_stats(world.sessions, &stats, 1), 1);
    CHECK_EQ(stats.transport.tcp.bytes_rcved, 0);
    um_rcv_stream_leave(&a.stream);
    CHECK_EQ(um_rcv_sessions_stats(world.sessions, &stats, 1), 1);
    um_rcv_stream_leave(&b.stream);
    CHECK_EQ(um_rcv_sessions_stats(world.sessions, &stats, 1), 0);
    CHECK(test_closed(world.loop, fd));
    CHECK_EQ(a.eos + b.eos, 0);
    close(fd);
    world_close(&world);
}

TEST(topic_that_joins_an_active_session_gets_bos_after_the_call)
{
    struct world world;
    struct sink a = {0}, b = {0};
    CHECK(world_open(&world));
    CHECK_EQ(join(&world, &a, 1), 0);
    int fd = accept_receiver(&world);
    CHECK(send_message(&world, fd, 1, 0, 1));
    CHECK(RUN_UNTIL(world.loop, a.bos == 1));
    CHECK_EQ(join(&world, &b, 2), 0);
    CHECK_EQ(b.bos, 0);
    CHECK(RUN_UNTIL(world.loop, b.bos == 1));
    CHECK(send_message(&world, fd, 2, 9, 1));
    CHECK(RUN_UNTIL(world.loop, b.data == 1));
    CHECK_EQ(a.bos + b.bos, 2);
    close(fd);
    CHECK(RUN_UNTIL(world.loop, a.eos + b.eos == 2));
    world_close(&world);
}

TEST(tsni_and_requests_reach_their_topics_and_control_counts_no_message)
{
    struct world world;
    struct sink a = {0}, b = {0};
    lbm_rcv_transport_stats_t stats;
    uint8_t bytes[64];
    uint32_t tidx[3] = {2, 99, 1}, last[3] = {20, 0, UM_LBMC_TSNI_NONE};
    CHECK(world_open(&world));
    CHECK_EQ(join(&world, &a, 1), 0);
    CHECK_EQ(join(&world, &b, 2), 0);
    int fd = accept_receiver(&world);
    size_t len = um_lbmc_encode_tsni(bytes, tidx, last, 3);
    CHECK(test_write(world.loop, fd, bytes, len));
    um_lbmc_put_data_hdr(bytes, UM_LBMC_HDR_REQUEST, 28, 1, 0);
    um_lbmc_put_request(bytes + 12, UM_LBMC_HDR_DATA, 5, htonl(INADDR_LOOPBACK), 1000);
    CHECK(test_write(world.loop, fd, bytes, 28));
    CHECK(test_write(world.loop, fd, "\x01\xff\x00\x04", 4)); /* end of transport: ignored */
    CHECK(RUN_UNTIL(world.loop, a.data == 1));
    CHECK_EQ(a.bos + b.bos, 2);
    CHECK_EQ(a.tsnis, 1);
    CHECK_EQ(a.last_tsni, UM_LBMC_TSNI_NONE);
    CHECK_EQ(b.last_tsni, 20);
    CHECK_EQ(a.requests, 1);
    CHECK_EQ(um_rcv_stream_stats(&a.stream, &stats), 0);
    CHECK_EQ(stats.transport.tcp.lbm_msgs_rcved, 1);
    CHECK_EQ(stats.transport.tcp.lbm_reqs_rcved, 1);
    close(fd);
    world_close(&world);
}

TEST(f22_retransmissions_and_proxied_messages_are_counted)
{
    struct world world;
    struct sink a = {0};
    uint8_t bytes[32];
    CHECK(world_open(&world));
    CHECK_EQ(join(&world, &a, 1), 0);
    int fd = accept_receiver(&world);
    const uint8_t types[] = {UM_LBMC_RETRANS, UM_LBMC_PRORX, UM_LBMC_MESSAGE};
    for (size_t i = 0; i < sizeof types; i++) {
        um_lbmc_put_data_hdr(bytes, UM_LBMC_HDR_DATA, 13, 1, 0);
        bytes[0] = (uint8_t)((bytes[0] & 0xf0) | types[i]);
        bytes[12] = 'x';
        CHECK(test_write(world.loop, fd, bytes, 13));
    }
    CHECK(RUN_UNTIL(world.loop, a.data == 1));
    CHECK_EQ(um_rcv_stream_unsupported(&a.stream), 2);
    close(fd);
    world_close(&world);
}

/* --- ten thousand messages --- */

#define MANY 10000
#define KEPT_MAX 200

struct kept {
    struct um_buf *buf;
    const uint8_t *data;
    size_t len;
    uint8_t value;
};

static struct kept kept[KEPT_MAX];
static size_t kept_count;
static size_t *many_lengths;
static bool many_ok;

static bool filled_with(const uint8_t *data, size_t len, uint8_t value)
{
    return len == 0 || (data[0] == value && memcmp(data, data + 1, len - 1) == 0);
}

static void check_and_keep(struct sink *sink, const struct um_lbmc_msg *msg, struct um_buf *buf)
{
    uint8_t value = (uint8_t)(msg->sqn * 31);
    many_ok = many_ok && msg->payload.len == many_lengths[msg->sqn] &&
              filled_with(msg->payload.ptr, msg->payload.len, value) && msg->payload.ptr >= buf->data &&
              msg->payload.ptr + msg->payload.len <= buf->data + buf->capacity;
    if (msg->sqn % 50 == 0 && kept_count < KEPT_MAX) {
        um_buf_ref(buf);
        kept[kept_count++] = (struct kept){buf, msg->payload.ptr, msg->payload.len, value};
    }
}

TEST(ten_thousand_messages_arrive_whole_and_retained_ones_stay_untouched)
{
    struct world world;
    struct um_rng rng;
    struct sink sink = {.on_data = check_and_keep};
    size_t total = 0, at = 0;
    um_rng_seed(&rng, 11);
    many_lengths = malloc(MANY * sizeof *many_lengths);
    many_ok = true;
    kept_count = 0;
    for (int i = 0; i < MANY; i++) {
        many_lengths[i] = (size_t)um_rng_range(&rng, 0, i % 100 == 7 ? 65523 : 300);
        total += 12 + many_lengths[i];
    }
    uint8_t *stream = malloc(total);
    for (uint32_t i = 0; i < MANY; i++) {
        at += put_message(stream + at, 5, i, many_lengths[i]);
    }
    CHECK(world_open(&world));
    CHECK_EQ(join(&world, &sink, 5), 0);
    int fd = accept_receiver(&world), one = 1;
    setsockopt(fd, IPPROTO_TCP, 1 /* TCP_NODELAY */, &one, sizeof one);
    bool written = true;
    for (at = 0; at < total && written;) {
        size_t step = at < 2000 ? 1 : (size_t)um_rng_range(&rng, 1, um_rng_range(&rng, 0, 9) == 0 ? 20 : 65536);
        step = step < total - at ? step : total - at;
        written = test_write(world.loop, fd, stream + at, step);
        um_loop_run_once(world.loop, 0, 0);
        at += step;
    }
    CHECK(written);
    CHECK(RUN_UNTIL(world.loop, sink.data == MANY));
    CHECK(many_ok);
    CHECK(!sink.out_of_order);
    CHECK_EQ(sink.bytes, total - 12 * MANY);
    close(fd);
    CHECK(RUN_UNTIL(world.loop, sink.eos == 1));
    world_close(&world); /* buffers outlive the session and its owner */
    CHECK_EQ(kept_count, KEPT_MAX);
    for (size_t i = 0; i < kept_count; i++) {
        CHECK(filled_with(kept[i].data, kept[i].len, kept[i].value));
        um_buf_unref(kept[i].buf);
    }
    free(stream);
    free(many_lengths);
}

/* --- the ends of sessions --- */

static bool corrupt_stream_ends_the_session(const uint8_t *bytes, size_t len)
{
    struct world world;
    struct sink a = {0}, b = {0};
    bool ok = world_open(&world) && join(&world, &a, 1) == 0 && join(&world, &b, 2) == 0;
    int fd = accept_receiver(&world);
    ok = ok && send_message(&world, fd, 1, 0, 3) && test_write(world.loop, fd, bytes, len);
    ok = ok && RUN_UNTIL(world.loop, a.eos + b.eos == 2) && a.data == 1 && test_log_count("Core-6036-1") == 1;
    ok = ok && test_closed(world.loop, fd);
    close(fd);
    world_close(&world);
    return ok;
}

TEST(corrupt_streams_close_the_connection_with_one_log_line)
{
    CHECK(corrupt_stream_ends_the_session((const uint8_t *)"\0\0\0\0\0\0\0\0\0\0\0\0", 12));
    CHECK(corrupt_stream_ends_the_session((const uint8_t *)"\0\0\0\x03\0\0\0\0\0\0\0\0", 12));
    CHECK(corrupt_stream_ends_the_session((const uint8_t *)"\0\0\0\x0b\0\0\0\0\0\0\0\0", 12));
    CHECK(corrupt_stream_ends_the_session((const uint8_t *)"\x10\0\0\x0c\0\0\0\0\0\0\0\0", 12));
    CHECK(corrupt_stream_ends_the_session((const uint8_t *)"\x05\0\0\x0c\0\0\0\0\0\0\0\0", 12));
}

TEST(message_with_a_bad_header_chain_is_dropped_and_the_session_goes_on)
{
    struct world world;
    struct sink sink = {0};
    CHECK(world_open(&world));
    CHECK_EQ(join(&world, &sink, 1), 0);
    int fd = accept_receiver(&world);
    CHECK(test_write(world.loop, fd, "\0\x01\0\x0e\0\0\0\x01\0\0\0\0\0\0", 14));
    CHECK(RUN_UNTIL(world.loop, sink.bos == 1)); /* activity all the same */
    CHECK(send_message(&world, fd, 1, 1, 3));
    CHECK(RUN_UNTIL(world.loop, sink.data == 1));
    CHECK_EQ(sink.last_sqn, 1);
    CHECK_EQ(sink.eos, 0);
    close(fd);
    world_close(&world);
}

TEST(failed_connect_reports_eos_and_is_not_repeated_within_a_second)
{
    struct world world;
    struct sink sink = {0};
    CHECK(world_open(&world));
    close(world.listener);
    CHECK_EQ(join(&world, &sink, 1), 0);
    CHECK_EQ(sink.eos, 0);
    CHECK(RUN_UNTIL(world.loop, sink.eos == 1));
    CHECK_EQ(sink.bos, 0);
    CHECK_EQ(test_log_count("Core-5688-324"), 1);
    uint64_t failed_ns = um_clock_ns();
    world.listener = test_listen(&world.port);
    CHECK(world.listener >= 0);
    CHECK_EQ(join(&world, &sink, 1), 0);
    int fd = accept_receiver(&world);
    CHECK(fd >= 0);
    CHECK(um_clock_ns() - failed_ns > 900 * UM_NS_PER_MS);
    CHECK(send_message(&world, fd, 1, 0, 0));
    CHECK(RUN_UNTIL(world.loop, sink.data == 1));
    close(fd);
    world_close(&world);
}

TEST(silent_session_ends_after_the_activity_timeout_and_data_keeps_it_alive)
{
    struct world world;
    struct sink sink = {0};
    world_options(&world);
    world.rcv_opts.transport_tcp_activity_timeout = 100;
    world.rcv_opts.transport_tcp_activity_method = 2;
    CHECK(world_start(&world));
    CHECK_EQ(join(&world, &sink, 1), 0);
    int fd = accept_receiver(&world);
    uint64_t virtual_ns = um_clock_ns(); /* the rest runs on a clock of its own */
    for (uint32_t i = 0; i < 10; i++) {
        uint8_t bytes[16];
        CHECK(write(fd, bytes, put_message(bytes, 1, i, 1)) == 13);
        for (int tries = 0; tries < 4000 && sink.data == i; tries++) {
            CHECK_EQ(um_loop_run_once(world.loop, 5, virtual_ns), 0);
        }
        CHECK_EQ(sink.data, i + 1);
        virtual_ns += 90 * UM_NS_PER_MS;
    }
    CHECK_EQ(um_loop_run_once(world.loop, 0, virtual_ns), 0);
    CHECK_EQ(sink.eos, 0);
    virtual_ns += 20 * UM_NS_PER_MS;
    CHECK_EQ(um_loop_run_once(world.loop, 0, virtual_ns), 0);
    CHECK_EQ(sink.eos, 1);
    close(fd);
    world_close(&world);
}

TEST(source_of_another_transport_cannot_be_joined_and_is_logged_once)
{
    struct world world;
    struct sink sink = {0};
    CHECK(world_open(&world));
    world.info.type = LBM_TRANSPORT_TYPE_BROKER;
    CHECK_EQ(join(&world, &sink, 1), -1);
    CHECK_EQ(join(&world, &sink, 1), -1);
    CHECK_EQ(test_log_count("cannot be joined"), 1);
    world_close(&world);
}

/* --- callbacks that leave and join --- */

static void leave_self(struct sink *sink, const struct um_lbmc_msg *msg, struct um_buf *buf)
{
    um_rcv_stream_leave(&sink->stream);
}

static void leave_other(struct sink *sink, const struct um_lbmc_msg *msg, struct um_buf *buf)
{
    um_rcv_stream_leave(&sink->other->stream);
}

static void leave_both(struct sink *sink, const struct um_lbmc_msg *msg, struct um_buf *buf)
{
    um_rcv_stream_leave(&sink->other->stream);
    um_rcv_stream_leave(&sink->stream);
}

static void leave_both_on_bos(struct sink *sink)
{
    leave_both(sink, NULL, NULL);
}

static void rejoin(struct sink *sink)
{
    if (sink->eos == 1) {
        join(sink->world, sink, sink->stream.tidx);
    }
}

static void join_other(struct sink *sink, const struct um_lbmc_msg *msg, struct um_buf *buf)
{
    if (sink->other->stream.session == NULL) {
        join(sink->world, sink->other, 2);
    }
}

static bool send_to_both(struct world *world, int fd)
{
    uint8_t bytes[256];
    size_t len = 0;
    for (uint32_t i = 0; i < 4; i++) {
        len += put_message(bytes + len, 1 + i % 2, i / 2, 10);
    }
    return test_write(world->loop, fd, bytes, len);
}

TEST(stream_may_leave_in_its_own_callback)
{
    struct world world;
    struct sink a = {.on_data = leave_self}, b = {0};
    CHECK(world_open(&world));
    CHECK_EQ(join(&world, &a, 1), 0);
    CHECK_EQ(join(&world, &b, 2), 0);
    int fd = accept_receiver(&world);
    CHECK(send_to_both(&world, fd));
    CHECK(RUN_UNTIL(world.loop, b.data == 2));
    CHECK_EQ(a.data, 1);
    CHECK_EQ(a.read_ends, 0);
    close(fd);
    world_close(&world);
}

TEST(stream_may_make_another_one_leave)
{
    struct world world;
    struct sink a = {.on_data = leave_other}, b = {0};
    a.other = &b;
    CHECK(world_open(&world));
    CHECK_EQ(join(&world, &a, 1), 0);
    CHECK_EQ(join(&world, &b, 2), 0);
    int fd = accept_receiver(&world);
    CHECK(send_to_both(&world, fd));
    CHECK(RUN_UNTIL(world.loop, a.data == 2));
    CHECK_EQ(b.data, 0);
    CHECK_EQ(b.bos, 1);
    close(fd);
    world_close(&world);
}

TEST(last_stream_may_leave_in_any_callback)
{
    for (int i = 0; i < 2; i++) {
        struct world world;
        struct sink a = {.on_data = i == 0 ? leave_both : NULL, .on_bos = i == 1 ? leave_both_on_bos : NULL}, b = {0};
        a.other = &b;
        CHECK(world_open(&world));
        CHECK_EQ(join(&world, &a, 1), 0);
        CHECK_EQ(join(&world, &b, 2), 0);
        int fd = accept_receiver(&world);
        CHECK(send_to_both(&world, fd));
        CHECK(test_closed(world.loop, fd));
        CHECK_EQ(a.data, i == 0 ? 1 : 0);
        CHECK_EQ(b.data, 0);
        CHECK_EQ(a.eos + b.eos, 0);
        close(fd);
        world_close(&world);
    }
}

TEST(stream_may_join_again_when_its_session_ends)
{
    struct world world;
    struct sink a = {.on_eos = rejoin}, b = {.on_eos = rejoin};
    CHECK(world_open(&world));
    CHECK_EQ(join(&world, &a, 1), 0);
    CHECK_EQ(join(&world, &b, 2), 0);
    int fd = accept_receiver(&world);
    CHECK(send_to_both(&world, fd));
    CHECK(RUN_UNTIL(world.loop, a.data == 2 && b.data == 2));
    close(fd);
    fd = accept_receiver(&world);
    CHECK(fd >= 0);
    CHECK_EQ(a.eos + b.eos, 2);
    CHECK(send_to_both(&world, fd));
    CHECK(RUN_UNTIL(world.loop, a.data == 4 && b.data == 4));
    CHECK_EQ(a.bos + b.bos, 4);
    close(fd);
    world_close(&world);
}

TEST(topic_joined_in_a_callback_has_bos_before_the_data_that_follows_in_the_same_read)
{
    struct world world;
    struct sink a = {.on_data = join_other}, b = {0};
    a.other = &b;
    CHECK(world_open(&world));
    CHECK_EQ(join(&world, &a, 1), 0);
    int fd = accept_receiver(&world);
    CHECK(send_to_both(&world, fd));
    CHECK(RUN_UNTIL(world.loop, b.data == 2));
    CHECK_EQ(b.bos, 1);
    CHECK(!b.data_before_bos);
    test_run_for_ms(world.loop, 5);
    CHECK_EQ(b.bos, 1);
    close(fd);
    world_close(&world);
}

/* --- back-pressure --- */

static void pause_self(struct sink *sink, const struct um_lbmc_msg *msg, struct um_buf *buf)
{
    um_rcv_session_pause(&sink->stream);
}

static int do_resume(void *arg)
{
    um_rcv_session_resume(arg);
    return 0;
}

TEST(paused_session_is_not_read_until_every_stream_resumes)
{
    struct world world;
    struct sink a = {.on_data = pause_self}, b = {.on_data = pause_self};
    static uint8_t bytes[16 * 1024 * 1024];
    size_t len = 0, sent = 0;
    uint32_t count = 0;
    while (len + 2 * 10012 <= sizeof bytes) {
        len += put_message(bytes + len, 1, count, 10000);
        len += put_message(bytes + len, 2, count, 10000);
        count++;
    }
    CHECK(world_open(&world));
    CHECK_EQ(join(&world, &a, 1), 0);
    CHECK_EQ(join(&world, &b, 2), 0);
    int fd = accept_receiver(&world);
    for (int i = 0; i < 300; i++) { /* until the kernel takes no more */
        ssize_t put = send(fd, bytes + sent, len - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        sent += put > 0 ? (size_t)put : 0;
        um_loop_run_once(world.loop, 1, 0);
    }
    CHECK(a.data >= 1 && b.data >= 1);
    CHECK(a.data + b.data < 64); /* one buffer at most */
    CHECK(sent < len);
    a.on_data = b.on_data = NULL;
    uint64_t before = a.data;
    CHECK_EQ(um_loop_call(world.loop, do_resume, &a.stream), 0);
    test_run_for_ms(world.loop, 5);
    CHECK_EQ(a.data, before);
    um_rcv_stream_leave(&b.stream); /* a stream that leaves no longer holds it */
    CHECK(test_write(world.loop, fd, bytes + sent, len - sent));
    CHECK(RUN_UNTIL(world.loop, a.data == count));
    CHECK(!a.out_of_order);
    close(fd);
    CHECK(RUN_UNTIL(world.loop, a.eos == 1));
    world_close(&world);
}

/* --- source-side filtering --- */

static bool read_creq(struct world *world, int fd, uint8_t mode, uint32_t tidx)
{
    uint8_t got[20], expected[20];
    struct um_lbmc_ssf_creq creq = {.mode = mode, .transport_idx = 3, .topic_idx = tidx, .client_idx = 8};
    um_lbmc_encode_ssf_creq(expected, &creq);
    return test_read(world->loop, fd, got, sizeof got) && memcmp(got, expected, sizeof got) == 0;
}

static bool send_ssf_init(struct world *world, int fd, uint16_t port, uint32_t ip)
{
    uint8_t bytes[24];
    struct um_lbmc_ssf_init init = {.flags = 0x40, .transport_idx = 3, .client_idx = 8, .port = port, .ip = ip};
    um_lbmc_encode_ssf_init(bytes, &init);
    return test_write(world->loop, fd, bytes, sizeof bytes);
}

TEST(filtering_source_is_told_each_topic_at_its_request_port)
{
    struct world world;
    struct sink a = {0}, b = {0};
    uint16_t request_port = 0;
    CHECK(world_open(&world));
    int requests = test_listen(&request_port);
    CHECK_EQ(join(&world, &a, 1), 0);
    int fd = accept_receiver(&world);
    CHECK(send_ssf_init(&world, fd, request_port, 0)); /* address left out: that of the session */
    int unicast = test_accept(world.loop, requests);
    CHECK(unicast >= 0);
    CHECK(read_creq(&world, unicast, 0, 1));
    CHECK_EQ(a.bos, 1);
    CHECK_EQ(test_log_count("Core-7421-1"), 1);
    CHECK_EQ(join(&world, &b, 2), 0);
    CHECK(read_creq(&world, unicast, 0, 2));
    um_rcv_stream_leave(&a.stream);
    CHECK(read_creq(&world, unicast, 1, 1));
    CHECK_EQ(join(&world, &a, 1), 0);
    CHECK(read_creq(&world, unicast, 0, 1));
    close(unicast); /* lost: everything included is told again over the next connection */
    unicast = test_accept(world.loop, requests);
    CHECK(unicast >= 0);
    CHECK(read_creq(&world, unicast, 0, 2));
    CHECK(read_creq(&world, unicast, 0, 1));
    test_run_for_ms(world.loop, 10);
    CHECK(test_silent(unicast));
    close(unicast);
    close(requests);
    close(fd);
    world_close(&world);
}

TEST(sources_that_give_no_address_for_filter_requests_are_logged_once_in_a_while)
{
    struct world world;
    struct sink a = {0};
    uint16_t request_port = 0;
    CHECK(world_open(&world));
    int requests = test_listen(&request_port);
    for (int i = 1; i <= 3; i++) { /* each a session of its own */
        CHECK_EQ(join(&world, &a, 1), 0);
        int fd = accept_receiver(&world);
        CHECK(send_ssf_init(&world, fd, request_port, 0));
        CHECK(RUN_UNTIL(world.loop, a.bos == i));
        close(fd);
        CHECK(RUN_UNTIL(world.loop, a.eos == i));
    }
    CHECK_EQ(test_log_count("Core-7421-1"), 1);
    close(requests);
    world_close(&world);
}

TEST(filtering_source_without_request_port_is_logged_once_in_a_while)
{
    struct world world;
    struct sink a = {0};
    CHECK(world_open(&world));
    CHECK_EQ(join(&world, &a, 1), 0);
    int fd = accept_receiver(&world);
    CHECK(send_ssf_init(&world, fd, 0, 0));
    CHECK(send_ssf_init(&world, fd, 0, 0) && send_ssf_init(&world, fd, 0, 0));
    uint16_t request_port = 0;
    int requests = test_listen(&request_port);
    CHECK(send_ssf_init(&world, fd, request_port, 0));
    int unicast = test_accept(world.loop, requests); /* it has seen them all */
    CHECK(unicast >= 0);
    CHECK_EQ(a.bos, 1);
    CHECK_EQ(test_log_count("Core-5988-2"), 1);
    close(unicast);
    close(requests);
    close(fd);
    world_close(&world);
}

TEST(destroying_the_sessions_reports_nothing)
{
    struct world world;
    struct sink a = {0}, b = {0};
    CHECK(world_open(&world));
    CHECK_EQ(join(&world, &a, 1), 0);
    CHECK_EQ(join(&world, &b, 2), 0);
    int fd = accept_receiver(&world);
    CHECK(send_to_both(&world, fd));
    CHECK(RUN_UNTIL(world.loop, b.data == 2));
    world_close(&world);
    CHECK_EQ(a.eos + b.eos, 0);
    CHECK(a.stream.session == NULL);
    close(fd);
}

/* --- without memory --- */

static int do_create(void *arg)
{
    struct world *world = arg;
    struct um_rcv_sessions *sessions = um_rcv_sessions_create(&world->env, NULL);
    um_rcv_sessions_destroy(sessions);
    return sessions != NULL ? 0 : -1;
}

TEST(every_failing_allocation_of_a_join_is_an_error_or_an_eos)
{
    bool reached = true;
    long failures = 0;
    for (long n = 0; reached; n++) {
        struct world world;
        struct sink a = {0}, b = {0};
        CHECK(world_open(&world));
        test_fail_start(n);
        int created = um_loop_call(world.loop, do_create, &world);
        int joined = join(&world, &a, 1) + join(&world, &b, 2);
        reached = test_fail_stop();
        if (reached) {
            CHECK(created != 0 || joined != 0);
            CHECK_EQ(um_errnum(), UM_ENOMEM);
            failures++;
        } else {
            CHECK(created == 0 && joined == 0);
        }
        world_close(&world);
    }
    CHECK(failures >= 4);
}

TEST(no_memory_for_the_next_buffer_ends_the_session)
{
    struct world world;
    struct sink sink = {.on_data = check_and_keep};
    CHECK(world_open(&world));
    CHECK_EQ(join(&world, &sink, 5), 0);
    int fd = accept_receiver(&world);
    size_t lengths[64];
    many_lengths = lengths;
    kept_count = 0;
    CHECK(send_message(&world, fd, 5, 0, lengths[0] = 10)); /* this one is kept, so the buffer cannot be reused */
    CHECK(RUN_UNTIL(world.loop, sink.data == 1));
    test_fail_start(0);
    for (uint32_t i = 1; i < 40 && sink.eos == 0; i++) {
        uint8_t bytes[20012];
        put_message(bytes, 5, i, lengths[i] = 20000);
        send(fd, bytes, sizeof bytes, MSG_NOSIGNAL);
        test_run_for_ms(world.loop, 2);
    }
    bool ended = RUN_UNTIL(world.loop, sink.eos == 1);
    CHECK(test_fail_stop());
    CHECK(ended);
    CHECK_EQ(kept_count, 1);
    um_buf_unref(kept[0].buf);
    close(fd);
    world_close(&world);
}
