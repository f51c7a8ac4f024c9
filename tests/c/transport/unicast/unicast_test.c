/* The request port and the outgoing unicast connections, on loopback. */
#include "transport/unicast/um_unicast.h"

#include <sys/resource.h>

#include "base/um_error.h"
#include "um_test_loop.h"

static const uint8_t instance[8] = {1, 2, 3, 4, 5, 6, 7, 8};
static const uint8_t foreign_instance[8] = {9, 2, 3, 4, 5, 6, 7, 8};

struct world {
    struct um_loop *loop;
    struct um_context_options opts;
    struct um_unicast *unicast;
    int messages, creqs, reconnects;
    struct um_unicast_listener listener;
    struct um_lbmc_msg last; /* slices are stale */
    uint32_t last_mode;
    size_t payload_bytes;
};

static void on_message(void *user, const struct um_lbmc_msg *msg, const struct sockaddr_in *from, uint64_t now_ns)
{
    struct world *world = user;
    world->messages++;
    world->creqs += (msg->present & UM_LBMC_HAS_SSF_CREQ) != 0;
    world->last = *msg;
    world->payload_bytes += msg->payload.len;
}

static void on_reconnect(struct um_unicast_listener *listener, uint32_t ip, uint16_t port)
{
    UM_CONTAINER_OF(listener, struct world, listener)->reconnects++;
}

static const struct um_unicast_events events = {on_message};

static void world_options(struct world *world)
{
    memset(world, 0, sizeof *world);
    test_log_start();
    test_options(&world->opts);
}

static bool world_start(struct world *world)
{
    world->loop = um_loop_create(false, UM_LOOP_PEND, "test");
    world->unicast = um_unicast_create(world->loop, &world->opts, instance, &events, world);
    return world->unicast != NULL;
}

static bool world_open(struct world *world)
{
    world_options(world);
    world->opts.request_tcp_bind_request_port = 1;
    return world_start(world);
}

static void world_close(struct world *world)
{
    um_unicast_destroy(world->unicast);
    um_loop_destroy(world->loop);
    um_log_set_proc(NULL, NULL);
}

struct send_args {
    struct world *world;
    uint16_t port;
    const uint8_t *message; /* NULL: an SSF_CREQ record through um_unicast_send_control */
    size_t len;
};

static int do_send(void *arg)
{
    static const uint8_t record[16] = {UM_LBMC_HDR_NONE, 16, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3};
    struct send_args *args = arg;
    uint32_t ip = htonl(INADDR_LOOPBACK);
    if (args->message != NULL) {
        return um_unicast_send_bare(args->world->unicast, 0, ip, args->port, args->message, args->len);
    }
    return um_unicast_send_control(args->world->unicast, ip, args->port, UM_LBMC_HDR_SSF_CREQ, record, sizeof record);
}

static int send_control(struct world *world, uint16_t port)
{
    struct send_args args = {world, port, NULL, 0};
    return um_loop_call(world->loop, do_send, &args);
}

static int send_bare(struct world *world, uint16_t port, const uint8_t *message, size_t len)
{
    struct send_args args = {world, port, message, len};
    return um_loop_call(world->loop, do_send, &args);
}

static struct um_unicast_stats stats_of(struct world *world)
{
    struct um_unicast_stats stats;
    um_unicast_stats(world->unicast, &stats);
    return stats;
}

/* --- the request port --- */

TEST(request_port_is_bound_only_when_asked_for)
{
    struct world world;
    world_options(&world);
    CHECK(world_start(&world));
    CHECK_EQ(um_unicast_port(world.unicast), 0);
    world_close(&world);
    CHECK(world_open(&world));
    CHECK(um_unicast_port(world.unicast) != 0);
    CHECK_EQ(um_unicast_addr(world.unicast).s_addr, htonl(INADDR_LOOPBACK));
    world_close(&world);
}

TEST(exhausted_range_and_taken_port_are_errors_that_name_the_option)
{
    struct world first, second;
    CHECK(world_open(&first));
    world_options(&second);
    second.opts.request_tcp_bind_request_port = 1;
    second.opts.request_tcp_port_low = second.opts.request_tcp_port_high = um_unicast_port(first.unicast);
    CHECK(!world_start(&second));
    CHECK_CONTAINS(um_errmsg(), "request_tcp_port_low");
    world_close(&second);
    world_options(&second);
    second.opts.request_tcp_bind_request_port = 1;
    second.opts.request_tcp_port = htons(um_unicast_port(first.unicast));
    CHECK(!world_start(&second));
    CHECK_CONTAINS(um_errmsg(), "request_tcp_port");
    world_close(&second);
    world_close(&first);
}

TEST(messages_arrive_from_any_segmentation)
{
    struct world world;
    uint8_t creq[20], data[112];
    struct um_lbmc_ssf_creq request = {.mode = 1, .transport_idx = 3, .topic_idx = 4, .client_idx = 5};
    CHECK(world_open(&world));
    int fd = test_connect(um_unicast_port(world.unicast));
    um_lbmc_encode_ssf_creq(creq, &request);
    for (size_t i = 0; i < sizeof creq; i++) {
        CHECK(test_write(world.loop, fd, creq + i, 1));
        um_loop_run_once(world.loop, 1, 0);
    }
    CHECK(RUN_UNTIL(world.loop, world.creqs == 1));
    CHECK_EQ(world.last.ssf_creq.mode, 1);
    CHECK_EQ(world.last.ssf_creq.topic_idx, 4);
    memset(data, 'x', sizeof data);
    um_lbmc_put_data_hdr(data, UM_LBMC_HDR_DATA, sizeof data, 0, 0);
    for (int i = 0; i < 3000; i++) { /* past several buffers */
        CHECK(test_write(world.loop, fd, data, sizeof data));
    }
    CHECK(RUN_UNTIL(world.loop, world.messages == 3001));
    CHECK_EQ(world.payload_bytes, 3000 * 100);
    CHECK(test_silent(fd));
    close(fd);
    CHECK(RUN_UNTIL(world.loop, stats_of(&world).incoming == 0));
    world_close(&world);
}

TEST(message_for_another_context_is_dropped)
{
    struct world world;
    uint8_t message[24];
    CHECK(world_open(&world));
    int fd = test_connect(um_unicast_port(world.unicast));
    um_lbmc_put_data_hdr(message, UM_LBMC_HDR_CTXINSTD, 24, 0, 0);
    um_lbmc_put_ctxinst(message + 12, UM_LBMC_HDR_DATA, foreign_instance);
    CHECK(test_write(world.loop, fd, message, 24));
    um_lbmc_put_ctxinst(message + 12, UM_LBMC_HDR_DATA, instance);
    CHECK(test_write(world.loop, fd, message, 24));
    CHECK(RUN_UNTIL(world.loop, world.messages == 1));
    CHECK_EQ(stats_of(&world).msgs_foreign, 1);
    CHECK_EQ(test_log_count("another context"), 1);
    close(fd);
    world_close(&world);
}

TEST(bad_message_is_dropped_and_corrupt_stream_is_closed)
{
    struct world world;
    CHECK(world_open(&world));
    int fd = test_connect(um_unicast_port(world.unicast));
    CHECK(test_write(world.loop, fd, "\x08\x6b\0\x08\xff\x04\0\0\x08\xff\0\x04", 12));
    CHECK(RUN_UNTIL(world.loop, world.messages == 1));
    CHECK_EQ(stats_of(&world).msgs_malformed, 1);
    CHECK(test_write(world.loop, fd, "GET / HTTP/1.0\r\n", 16));
    fcntl(fd, F_SETFL, O_NONBLOCK);
    CHECK(test_closed(world.loop, fd));
    CHECK_EQ(test_log_count("Core-6036-1"), 1);
    CHECK_EQ(stats_of(&world).incoming, 0);
    close(fd);
    world_close(&world);
}

TEST(connections_beyond_the_limit_are_closed)
{
    struct world world;
    enum { EXTRA = 8, COUNT = UM_UNICAST_MAX_INCOMING + EXTRA };
    static int fds[COUNT];
    struct rlimit limit, wanted = {2 * COUNT + 64, 2 * COUNT + 64};
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < wanted.rlim_cur) {
        wanted.rlim_max = limit.rlim_max > wanted.rlim_cur ? limit.rlim_max : wanted.rlim_cur;
        if (setrlimit(RLIMIT_NOFILE, &wanted) != 0) {
            TEST_SKIP("needs more descriptors than the limit allows");
        }
    }
    CHECK(world_open(&world));
    for (int i = 0; i < COUNT; i++) {
        fds[i] = test_connect(um_unicast_port(world.unicast));
        CHECK(fds[i] >= 0);
        um_loop_run_once(world.loop, 0, 0);
    }
    CHECK(RUN_UNTIL(world.loop, stats_of(&world).refused == EXTRA));
    CHECK_EQ(stats_of(&world).incoming, UM_UNICAST_MAX_INCOMING);
    for (int i = 0; i < COUNT; i++) {
        close(fds[i]);
    }
    CHECK(RUN_UNTIL(world.loop, stats_of(&world).incoming == 0));
    world_close(&world);
    setrlimit(RLIMIT_NOFILE, &limit);
}

TEST(accept_without_descriptors_pauses_instead_of_spinning)
{
    struct world world;
    struct rlimit limit, tight;
    CHECK(world_open(&world));
    int fd = test_connect(um_unicast_port(world.unicast));
    getrlimit(RLIMIT_NOFILE, &limit);
    tight = limit;
    tight.rlim_cur = 3;
    setrlimit(RLIMIT_NOFILE, &tight);
    int passes = 0;
    uint64_t until = um_clock_ns() + 50 * UM_NS_PER_MS;
    while (um_clock_ns() < until) {
        um_loop_run_once(world.loop, 10, 0);
        passes++;
    }
    setrlimit(RLIMIT_NOFILE, &limit);
    CHECK(passes < 100);
    CHECK_EQ(test_log_count("accept failed"), 1);
    CHECK(RUN_UNTIL(world.loop, stats_of(&world).accepted == 1));
    close(fd);
    world_close(&world);
}

/* --- outgoing connections --- */

TEST(control_records_carry_stream_and_destination_in_order)
{
    struct world world;
    uint16_t port = 0;
    uint8_t bytes[68];
    struct um_lbmc_msg msg;
    uint32_t stream_id = 0;
    CHECK(world_open(&world));
    int listener = test_listen(&port);
    CHECK_EQ(send_control(&world, port), 0);
    CHECK_EQ(send_control(&world, port), 0);
    int fd = test_accept(world.loop, listener);
    for (uint32_t i = 0; i < 2; i++) {
        CHECK(test_read(world.loop, fd, bytes, sizeof bytes));
        CHECK_EQ(um_lbmc_decode(bytes, sizeof bytes, &msg), UM_LBMC_OK);
        CHECK_EQ(msg.type, UM_LBMC_CONTROL);
        CHECK_EQ(msg.msglen, 68);
        CHECK_EQ(msg.present, UM_LBMC_HAS_STREAM | UM_LBMC_HAS_DESTINATION | UM_LBMC_HAS_SSF_CREQ);
        CHECK_EQ(msg.stream.sqn, i);
        CHECK(i == 0 || msg.stream.stream_id == stream_id);
        stream_id = msg.stream.stream_id;
        CHECK(memcmp(msg.stream.ctxinst, instance, 8) == 0);
        CHECK_EQ(msg.destination.ip, htonl(INADDR_LOOPBACK));
        CHECK_EQ(msg.destination.port, port);
        CHECK_EQ(msg.destination.orig_port, um_unicast_port(world.unicast));
        CHECK_EQ(msg.destination.orig_ip, htonl(INADDR_LOOPBACK));
        CHECK_EQ(msg.ssf_creq.mode, 1);
    }
    CHECK_EQ(stats_of(&world).outgoing, 1);
    close(fd);
    close(listener);
    world_close(&world);
}

TEST(two_contexts_talk_through_their_request_ports)
{
    struct world a, b;
    CHECK(world_open(&a));
    CHECK(world_open(&b));
    CHECK_EQ(send_control(&a, um_unicast_port(b.unicast)), 0);
    CHECK(RUN_UNTIL(b.loop, (um_loop_run_once(a.loop, 0, 0), b.creqs == 1)));
    world_close(&a);
    CHECK(RUN_UNTIL(b.loop, stats_of(&b).incoming == 0));
    world_close(&b);
}

TEST(queue_is_bounded_while_the_destination_does_not_read)
{
    struct world world;
    uint16_t port = 0;
    static uint8_t message[10000];
    uint32_t sent = 0;
    CHECK(world_open(&world));
    int listener = test_listen(&port), small = 4096;
    setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    int rc = 0;
    for (; sent < 10000 && rc == 0; sent += rc == 0) {
        um_lbmc_put_data_hdr(message, UM_LBMC_HDR_DATA, sizeof message, 0, sent);
        rc = send_bare(&world, port, message, sizeof message);
        um_loop_run_once(world.loop, 0, 0);
    }
    CHECK_EQ(rc, -1);
    CHECK_EQ(um_errnum(), UM_EWOULDBLOCK);
    CHECK_CONTAINS(um_errmsg(), "response_session_maximum_buffer");
    int fd = test_accept(world.loop, listener);
    for (uint32_t i = 0; i < sent; i++) {
        struct um_lbmc_msg msg;
        CHECK(test_read(world.loop, fd, message, sizeof message));
        CHECK_EQ(um_lbmc_decode(message, sizeof message, &msg), UM_LBMC_OK);
        CHECK_EQ(msg.sqn, i);
    }
    CHECK_EQ(send_bare(&world, port, message, sizeof message), 0);
    close(fd);
    close(listener);
    world_close(&world);
}

TEST(idle_connection_is_closed_after_the_deletion_timeout_and_made_again_when_needed)
{
    struct world world;
    uint16_t port = 0;
    uint8_t bytes[68];
    world_options(&world);
    world.opts.response_tcp_deletion_timeout = 50;
    CHECK(world_start(&world));
    int listener = test_listen(&port);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(send_control(&world, port), 0);
        int fd = test_accept(world.loop, listener);
        CHECK(test_read(world.loop, fd, bytes, sizeof bytes));
        CHECK(test_closed(world.loop, fd));
        CHECK_EQ(stats_of(&world).outgoing, 0);
        close(fd);
    }
    close(listener);
    world_close(&world);
}

TEST(lost_connection_is_made_again_and_reported_once)
{
    struct world world;
    uint16_t port = 0;
    uint8_t bytes[68];
    struct um_lbmc_msg msg;
    CHECK(world_open(&world));
    world.listener = (struct um_unicast_listener){.loop = world.loop, .fn = on_reconnect};
    um_unicast_listen(world.unicast, &world.listener);
    int listener = test_listen(&port);
    CHECK_EQ(send_control(&world, port), 0);
    int fd = test_accept(world.loop, listener);
    CHECK(test_read(world.loop, fd, bytes, sizeof bytes));
    CHECK_EQ(world.reconnects, 0);
    um_lbmc_decode(bytes, sizeof bytes, &msg);
    uint32_t stream_id = msg.stream.stream_id;
    close(fd);
    fd = test_accept(world.loop, listener);
    CHECK(fd >= 0);
    CHECK(RUN_UNTIL(world.loop, world.reconnects == 1));
    CHECK_EQ(send_control(&world, port), 0);
    CHECK(test_read(world.loop, fd, bytes, sizeof bytes));
    um_lbmc_decode(bytes, sizeof bytes, &msg);
    CHECK_EQ(msg.stream.stream_id, stream_id + 1);
    CHECK_EQ(msg.stream.sqn, 0);
    CHECK_EQ(world.reconnects, 1);
    close(fd);
    close(listener);
    world_close(&world);
}

TEST(message_for_an_unreachable_destination_waits_for_it)
{
    struct world world;
    uint16_t port = 0;
    uint8_t bytes[68];
    CHECK(world_open(&world));
    int listener = test_listen(&port);
    close(listener);
    CHECK_EQ(send_control(&world, port), 0);
    test_run_for_ms(world.loop, 20);
    listener = test_listen(&port);
    CHECK(listener >= 0);
    int fd = test_accept(world.loop, listener);
    CHECK(fd >= 0);
    CHECK(test_read(world.loop, fd, bytes, sizeof bytes));
    close(fd);
    close(listener);
    world_close(&world);
}

TEST(senseless_destinations_and_lengths_are_refused)
{
    struct world world;
    static uint8_t big[70000];
    CHECK(world_open(&world));
    CHECK_EQ(send_bare(&world, 0, big, 12), -1);
    CHECK_EQ(um_errnum(), UM_EINVAL);
    CHECK_EQ(send_bare(&world, 9, big, sizeof big), -1);
    CHECK_EQ(um_errnum(), UM_EINVAL);
    world_close(&world);
}

static int do_create_and_send(void *arg)
{
    struct world *world = arg;
    world->unicast = um_unicast_create(world->loop, &world->opts, instance, &events, world);
    return world->unicast != NULL ? send_control(world, 9) : -1;
}

TEST(every_failing_allocation_is_an_error)
{
    bool reached = true;
    long failures = 0;
    for (long n = 0; reached; n++) {
        struct world world;
        world_options(&world);
        world.opts.request_tcp_bind_request_port = 1;
        world.loop = um_loop_create(false, UM_LOOP_PEND, "test");
        test_fail_start(n);
        int rc = um_loop_call(world.loop, do_create_and_send, &world);
        reached = test_fail_stop();
        CHECK_EQ(rc, reached ? -1 : 0);
        CHECK(!reached || um_errnum() == UM_ENOMEM);
        failures += reached;
        world_close(&world);
    }
    CHECK(failures >= 4);
}
