/* LBT-RM and LBT-RU receive sessions on real sockets against scripted sources:
 * joining, telling sessions apart, NAKs, losses, timeouts, counts, buffers. */
#include "um_test_loop.h"
#include "um_test_net.h"
#include "um_test_udp.h"

#include <netinet/udp.h>

#include "base/um_error.h"
#include "net/um_udp.h"
#include "transport/session/um_loss_rate.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define TIDX 77
#define RUN(world, condition) CHECK(RUN_UNTIL((world)->loop, (condition)))

/* Let the loop take what is there already. */
static void settle(struct udp_world *world)
{
    for (int i = 0; i < 20; i++) {
        um_loop_run_once(world->loop, 1, 0);
    }
}

static int stats_on_loop(void *arg)
{
    void **args = arg;
    um_rcv_sessions_add_counts(args[0], UM_RCV_EVERY_TYPE, args[1]);
    return 0;
}

static struct um_rcv_datagram_counts counts_of(struct udp_world *world)
{
    struct um_rcv_datagram_counts counts = {0};
    void *args[] = {world->sessions, &counts};
    um_loop_call(world->loop, stats_on_loop, args);
    return counts;
}

static int reset_on_loop(void *arg)
{
    um_rcv_sessions_counts_reset(arg);
    return 0;
}

static void reset_counts(struct udp_world *world)
{
    um_loop_call(world->loop, reset_on_loop, world->sessions);
}

static lbm_rcv_transport_stats_t stats_of(struct udp_sink *sink)
{
    lbm_rcv_transport_stats_t stats;
    memset(&stats, 0, sizeof stats);
    um_rcv_stream_stats(&sink->stream, &stats);
    return stats;
}

/* Start the world and join one LBT-RM source in it, the only one of most tests. */
static void rm_join_one(struct udp_world *world, struct udp_source *source, struct udp_sink *sink)
{
    CHECK(udp_world_start(world));
    rm_source_open(source, GROUP_A, 0x1234);
    lbm_transport_source_info_t info = rm_info(source, TIDX);
    CHECK_EQ(udp_join(world, sink, &info, TIDX), 0);
}

/* The next packet of a type from an LBT-RU receiver. */
static bool get_packet(struct udp_world *world, struct udp_source *source, enum um_lbtru_type type,
                       struct um_lbtru_packet *out)
{
    static uint8_t packet[2048];
    ssize_t got;
    return RUN_UNTIL(world->loop, (got = udp_get(source, packet, sizeof packet)) >= 0 &&
                                      um_lbtru_decode(packet, (size_t)got, out) == UM_LBTR_OK && out->type == type);
}

static void put_syn(struct udp_source *source)
{
    uint8_t packet[64];
    udp_put(source, packet, um_lbtru_put_sm(packet, source->session_id, true, 0, 0xffffffffu, 0));
}

/* Join an LBT-RU source in a running world, connected. */
static void ru_join_one(struct udp_world *world, struct udp_source *source, struct udp_sink *sink)
{
    struct um_lbtru_packet packet;
    ru_source_open(source, 0x1234);
    lbm_transport_source_info_t info = ru_info(source, TIDX);
    CHECK_EQ(udp_join(world, sink, &info, TIDX), 0);
    CHECK(get_packet(world, source, UM_LBTRU_CREQ, &packet));
    put_syn(source);
    RUN(world, sink->bos == 1);
}

#define NEVER_MS 600000 /* what is asked for once is not asked for again while a test lasts, however slow it is */

/* ---- LBT-RM ---- */

TEST(a_group_is_joined_and_bos_comes_before_the_first_message)
{
    TEST_NEEDS_NET();
    struct udp_world world;
    struct udp_source source;
    struct udp_sink sink = {0};
    udp_world_options(&world);
    rm_join_one(&world, &source, &sink);
    char expected[128];
    snprintf(expected, sizeof expected, "LBTRM:127.0.0.1:%u:00001234:224.0.10.1:24400", source.port);
    CHECK_STR(um_rcv_stream_source(&sink.stream), expected);
    for (uint32_t i = 0; i < 10; i++) {
        rm_send(&source, i, TIDX, 100);
    }
    RUN(&world, sink.data == 10);
    CHECK_EQ(sink.bos, 1);
    CHECK(!sink.data_before_bos && !sink.bytes_wrong);
    CHECK(sink.read_ends > 0);
    CHECK_EQ(sink.stamp_ns, 0);
    lbm_rcv_transport_stats_t stats = stats_of(&sink);
    CHECK_EQ(stats.type, LBM_TRANSPORT_STAT_LBTRM);
    CHECK_EQ(stats.transport.lbtrm.msgs_rcved, 10);
    CHECK_EQ(stats.transport.lbtrm.bytes_rcved, 10 * (20 + 12 + 100));
    CHECK_EQ(stats.transport.lbtrm.lbm_msgs_rcved, 10);
    CHECK_EQ(stats.transport.lbtrm.lost, 0);
    CHECK(stats.transport.lbtrm.nak_stm_min == (lbm_ulong_t)-1);
    udp_leave(&sink);
    CHECK_EQ(sink.eos, 0);
    udp_source_close(&source);
    udp_world_close(&world);
}

TEST(a_session_message_alone_brings_bos_and_shows_the_loss_of_the_last_datagram)
{
    TEST_NEEDS_NET();
    struct udp_world world;
    struct udp_source source;
    struct udp_sink sink = {0};
    uint8_t packet[2048];
    udp_world_options(&world);
    world.rcv_opts.transport_lbtrm_nak_initial_backoff_interval = 0;
    world.rcv_opts.transport_lbtrm_nak_backoff_interval = NEVER_MS;
    rm_join_one(&world, &source, &sink);
    struct um_lbtrm_session session = {source.port, source.session_id};
    udp_put(&source, packet, um_lbtrm_put_sm(packet, &session, 0, 4, 0, 3));
    RUN(&world, sink.bos == 1);
    CHECK_EQ(sink.data, 0);
    udp_put(&source, packet, um_lbtrm_put_sm(packet, &session, 1, 5, 0, 3)); /* 5 was lost */
    ssize_t got = -1;
    RUN(&world, (got = udp_get(&source, packet, sizeof packet)) >= 0);
    struct um_lbtrm_packet nak;
    CHECK_EQ(um_lbtrm_decode(packet, (size_t)got, &nak), UM_LBTR_OK);
    CHECK_EQ(nak.type, UM_LBTRM_NAK);
    CHECK_EQ(nak.list.count, 1);
    CHECK_EQ(um_lbtr_list_at(&nak.list, 0), 5);
    CHECK_EQ(nak.session.session_id, source.session_id);
    CHECK_EQ(nak.session.ucast_port, source.port);
    uint8_t repair[256];
    udp_put(&source, repair, rm_data(&source, repair, 5, TIDX, 5, 10, true));
    RUN(&world, sink.data == 1);
    lbm_rcv_transport_stats_t stats = stats_of(&sink);
    CHECK_EQ(stats.transport.lbtrm.lost, 1);
    CHECK_EQ(stats.transport.lbtrm.naks_sent, 1);
    CHECK_EQ(stats.transport.lbtrm.nak_pckts_sent, 1);
    CHECK_EQ(stats.transport.lbtrm.nak_tx_max, 1);
    udp_source_close(&source);
    udp_world_close(&world);
}

TEST(sessions_on_one_socket_are_told_apart_and_strangers_are_counted)
{
    TEST_NEEDS_NET();
    struct udp_world world;
    struct udp_source one, two, stranger;
    struct udp_sink sink_one = {0}, sink_two = {0};
    CHECK(udp_world_open(&world));
    rm_source_open(&one, GROUP_A, 1);
    rm_source_open(&two, GROUP_A, 2);
    rm_source_open(&stranger, GROUP_A, 3);
    lbm_transport_source_info_t info_one = rm_info(&one, TIDX), info_two = rm_info(&two, TIDX);
    CHECK_EQ(udp_join(&world, &sink_one, &info_one, TIDX), 0);
    CHECK_EQ(udp_join(&world, &sink_two, &info_two, TIDX), 0);
    for (uint32_t i = 0; i < 20; i++) {
        rm_send(&one, i, TIDX, 50);
        rm_send(&two, i, TIDX, 60);
        rm_send(&stranger, i, TIDX, 70);
    }
    uint8_t forged[256];
    one.session_id = 99; /* right address and port, another session */
    udp_put(&one, forged, rm_data(&one, forged, 20, TIDX, 20, 10, false));
    RUN(&world, sink_one.data == 20 && sink_two.data == 20 && counts_of(&world).unjoined == 21);
    CHECK_EQ(sink_one.bytes, 20 * 50);
    CHECK_EQ(sink_two.bytes, 20 * 60);
    udp_leave(&sink_one);
    rm_send(&two, 20, TIDX, 60);
    RUN(&world, sink_two.data == 21); /* the socket stays as long as it is needed */
    udp_source_close(&one);
    udp_source_close(&two);
    udp_source_close(&stranger);
    udp_world_close(&world);
}

/* Who keeps a group open of which nothing was heard is responsible for its descriptor, whoever opened it. */
TEST(f5_a_group_costs_a_descriptor_until_something_was_heard_on_it)
{
    TEST_NEEDS_NET();
    struct udp_world world;
    struct udp_source one, two;
    struct udp_sink sink = {0};
    CHECK(udp_world_open(&world));
    rm_source_open(&one, GROUP_A, 1);
    rm_source_open(&two, GROUP_A, 2);
    lbm_transport_source_info_t info_one = rm_info(&one, TIDX), info_two = rm_info(&two, TIDX);
    CHECK_EQ(um_rcv_sessions_join_kind(world.sessions, &info_two), UM_RCV_JOIN_GROUP);
    CHECK_EQ(udp_join(&world, &sink, &info_one, TIDX), 0);
    CHECK_EQ(um_rcv_sessions_join_kind(world.sessions, &info_one), UM_RCV_JOIN_FREE);
    CHECK_EQ(um_rcv_sessions_join_kind(world.sessions, &info_two), UM_RCV_JOIN_GROUP);
    rm_send(&two, 0, TIDX, 50); /* a stranger so far: it proves nothing */
    RUN(&world, counts_of(&world).unjoined == 1);
    CHECK_EQ(um_rcv_sessions_join_kind(world.sessions, &info_two), UM_RCV_JOIN_GROUP);
    rm_send(&one, 0, TIDX, 50);
    RUN(&world, sink.bos == 1);
    CHECK_EQ(um_rcv_sessions_join_kind(world.sessions, &info_two), UM_RCV_JOIN_MEMORY);
    udp_leave(&sink);
    udp_source_close(&one);
    udp_source_close(&two);
    udp_world_close(&world);
}

TEST(malformed_datagrams_are_put_down_to_the_only_session_there_is)
{
    TEST_NEEDS_NET();
    struct udp_world world;
    struct udp_source source;
    struct udp_sink sink = {0};
    udp_world_options(&world);
    rm_join_one(&world, &source, &sink);
    uint8_t good[256];
    size_t len = rm_data(&source, good, 0, TIDX, 0, 10, false);
    udp_put(&source, good, 7); /* too short even to tell the session */
    good[0] = 0x10;            /* version 1 */
    udp_put(&source, good, len);
    good[0] = 0x05; /* no such type */
    udp_put(&source, good, len);
    good[0] = 0x00;
    good[1] = 0x7f; /* an option that may not be ignored */
    good[20] = 0;
    good[21] = 4;
    good[22] = good[23] = 0;
    udp_put(&source, good, len);
    udp_put(&source, good, 0);
    RUN(&world, stats_of(&sink).transport.lbtrm.dgrams_dropped_hdr == 1 &&
                    stats_of(&sink).transport.lbtrm.dgrams_dropped_size == 2);
    lbm_rcv_transport_stats_t stats = stats_of(&sink);
    CHECK_EQ(stats.transport.lbtrm.dgrams_dropped_version, 1);
    CHECK_EQ(stats.transport.lbtrm.dgrams_dropped_type, 1);
    CHECK_EQ(counts_of(&world).unjoined, 0);
    CHECK_EQ(sink.data, 0);
    /* a broken message inside a good datagram: the rest of the datagram is lost, the session goes on */
    len = rm_data(&source, good, 0, TIDX, 0, 10, false);
    good[20] = 0xf0;
    udp_put(&source, good, len);
    rm_send(&source, 1, TIDX, 10);
    RUN(&world, sink.data == 1);
    CHECK_EQ(um_rcv_stream_malformed(&sink.stream), 1);
    udp_source_close(&source);
    udp_world_close(&world);
}

TEST(m3_every_nak_of_two_receivers_reaches_its_own_source_on_one_host_group_and_port)
{
    TEST_NEEDS_NET();
    struct udp_world worlds[2];
    struct udp_source sources[2];
    struct udp_sink sinks[2][2];
    uint8_t packet[2048];
    memset(sinks, 0, sizeof sinks);
    for (int s = 0; s < 2; s++) {
        rm_source_open(&sources[s], GROUP_A, 0x100u + (unsigned)s);
    }
    for (int w = 0; w < 2; w++) {
        udp_world_options(&worlds[w]);
        worlds[w].rcv_opts.transport_lbtrm_nak_initial_backoff_interval = 0;
        worlds[w].rcv_opts.transport_lbtrm_nak_backoff_interval = NEVER_MS;
        CHECK(udp_world_start(&worlds[w]));
        for (int s = 0; s < 2; s++) {
            lbm_transport_source_info_t info = rm_info(&sources[s], TIDX);
            CHECK_EQ(udp_join(&worlds[w], &sinks[w][s], &info, TIDX), 0);
        }
    }
    for (int s = 0; s < 2; s++) {
        for (uint32_t i = 0; i < 10; i++) {
            if (i != 3u + (unsigned)s) { /* each source loses another one */
                rm_send(&sources[s], i, TIDX, 20);
            }
        }
    }
    int naks[2] = {0, 0};
    for (int s = 0; s < 2; s++) {
        ssize_t got = -1;
        CHECK(RUN_UNTIL(worlds[0].loop, ({
                            um_loop_run_once(worlds[1].loop, 0, 0);
                            got = udp_get(&sources[s], packet, sizeof packet);
                            if (got >= 0) {
                                struct um_lbtrm_packet nak;
                                CHECK_EQ(um_lbtrm_decode(packet, (size_t)got, &nak), UM_LBTR_OK);
                                CHECK_EQ(nak.session.session_id, sources[s].session_id);
                                CHECK_EQ(nak.list.count, 1);
                                CHECK_EQ(um_lbtr_list_at(&nak.list, 0), 3 + s);
                                naks[s]++;
                            }
                            naks[s] == 2;
                        })));
    }
    for (int w = 0; w < 2; w++) {
        for (int s = 0; s < 2; s++) {
            CHECK_EQ(sinks[w][s].data, 9);
            CHECK_EQ(stats_of(&sinks[w][s]).transport.lbtrm.naks_sent, 1);
        }
        udp_world_close(&worlds[w]);
    }
    udp_source_close(&sources[0]);
    udp_source_close(&sources[1]);
}

TEST(m4_datagrams_of_a_group_that_others_on_the_host_joined_do_not_reach_us)
{
    TEST_NEEDS_NET();
    struct udp_world a, b;
    struct udp_source source_a, source_b;
    struct udp_sink sink_a = {0}, sink_b = {0};
    CHECK(udp_world_open(&a));
    CHECK(udp_world_open(&b));
    rm_source_open(&source_a, GROUP_A, 1);
    rm_source_open(&source_b, GROUP_B, 2);
    lbm_transport_source_info_t info_a = rm_info(&source_a, TIDX), info_b = rm_info(&source_b, TIDX);
    CHECK_EQ(udp_join(&a, &sink_a, &info_a, TIDX), 0);
    CHECK_EQ(udp_join(&b, &sink_b, &info_b, TIDX), 0);
    for (uint32_t i = 0; i < 50; i++) {
        rm_send(&source_b, i, TIDX, 20);
        rm_send(&source_a, i, TIDX, 20);
    }
    RUN(&b, sink_b.data == 50);
    RUN(&a, sink_a.data == 50);
    settle(&a);
    CHECK_EQ(counts_of(&a).unjoined, 0); /* not even seen */
    CHECK_EQ(counts_of(&b).unjoined, 0);
    udp_source_close(&source_a);
    udp_source_close(&source_b);
    udp_world_close(&a);
    udp_world_close(&b);
}

/* Systems that cannot bind to a group hand over everything for the port. */
TEST(m4_where_the_kernel_does_not_keep_groups_apart_datagrams_are_dropped_unread_and_counted)
{
    TEST_NEEDS_NET();
    struct um_udp_reader *reader = um_udp_reader_create(0, 8192, false);
    struct um_udp_config config = {.datagram_max = 8192};
    struct um_udp_socket sock, other;
    struct um_udp_datagram datagram;
    struct udp_source source_a, source_b;
    struct um_iface lo;
    bool more;
    int on = 1;
    CHECK(reader != NULL);
    CHECK_EQ(um_iface_match(htonl(INADDR_LOOPBACK), 32, &lo), 0);
    struct in_addr group_a = {htonl(GROUP_A)}, group_b = {htonl(GROUP_B)};
    CHECK_EQ(um_udp_open_group(reader, &sock, &config, group_a, GROUP_PORT, &lo, true), 0);
    CHECK_EQ(um_udp_open_group(reader, &other, &config, group_b, GROUP_PORT, &lo, true), 0);
    rm_source_open(&source_a, GROUP_A, 1);
    rm_source_open(&source_b, GROUP_B, 2);
    rm_send(&source_b, 0, TIDX, 20);
    CHECK_EQ(um_udp_read(reader, &sock, &more), 0); /* IP_MULTICAST_ALL is off */
    CHECK_EQ(setsockopt(sock.fd, IPPROTO_IP, IP_MULTICAST_ALL, &on, sizeof on), 0);
    rm_send(&source_b, 0, TIDX, 20);
    rm_send(&source_a, 7, TIDX, 20);
    CHECK_EQ(um_udp_read(reader, &sock, &more), 2);
    CHECK(um_udp_next(reader, &sock, &datagram));
    CHECK_EQ(um_get32(datagram.data + 8), 7);
    CHECK(!um_udp_next(reader, &sock, &datagram));
    CHECK_EQ(sock.foreign, 1);
    um_udp_close(&sock);
    um_udp_close(&other);
    um_udp_reader_destroy(reader);
    udp_source_close(&source_a);
    udp_source_close(&source_b);
}

TEST(o3_what_the_kernel_drops_is_counted_per_socket_and_told_with_the_cure)
{
    TEST_NEEDS_NET();
    struct udp_world world;
    struct udp_source source;
    struct udp_sink sink = {0};
    udp_world_options(&world);
    world.opts.transport_lbtrm_receiver_socket_buffer = 8192;
    world.rcv_opts.transport_lbtrm_nak_initial_backoff_interval = 0;
    rm_join_one(&world, &source, &sink);
    for (uint32_t i = 0; i < 200; i++) { /* nobody reads meanwhile */
        rm_send(&source, i, TIDX, 1000);
    }
    RUN(&world, sink.data > 0);
    settle(&world);
    uint64_t missing = 200 - sink.data;
    CHECK(missing > 0);
    CHECK_EQ(counts_of(&world).kernel_drops, missing);
    CHECK_EQ(um_rcv_stream_kernel_drops(&sink.stream), missing);
    rm_send(&source, 200, TIDX, 10); /* shows the gap: the reason is logged */
    RUN(&world, test_log_count("net.core.rmem_max") == 1);
    CHECK_CONTAINS(test_log, "transport_lbtrm_receiver_socket_buffer");
    reset_counts(&world); /* as after a reset of the statistics: fewer are news again */
    um_loop_run_once(world.loop, 0, 1);
    um_loop_run_once(world.loop, 0, 1 + 11 * UM_NS_PER_SEC);
    um_log_set_proc(test_log_proc, NULL); /* the line is due again */
    for (uint32_t i = 201; i < 300; i++) {
        rm_send(&source, i, TIDX, 1000);
    }
    settle(&world);
    CHECK(counts_of(&world).kernel_drops > 0 && counts_of(&world).kernel_drops < missing);
    rm_send(&source, 300, TIDX, 10);
    RUN(&world, test_log_count("net.core.rmem_max") == 2);
    missing = counts_of(&world).kernel_drops;
    udp_leave(&sink);
    CHECK_EQ(counts_of(&world).kernel_drops, missing); /* survives the socket */
    udp_source_close(&source);
    udp_world_close(&world);
}

TEST(o3_a_clamped_receive_buffer_of_a_session_is_reported_once_for_many_sessions)
{
    TEST_NEEDS_NET();
    struct udp_world world;
    struct udp_source sources[4];
    struct udp_sink sinks[4];
    memset(sinks, 0, sizeof sinks);
    udp_world_options(&world);
    world.opts.transport_lbtrm_receiver_socket_buffer = 1000000001;
    CHECK(udp_world_start(&world));
    for (unsigned i = 0; i < 4; i++) {
        rm_source_open(&sources[i], GROUP_A + i, i + 1);
        lbm_transport_source_info_t info = rm_info(&sources[i], TIDX);
        CHECK_EQ(udp_join(&world, &sinks[i], &info, TIDX), 0);
        udp_source_close(&sources[i]);
    }
    int told = test_log_count("transport_lbtrm_receiver_socket_buffer 1000000001");
    udp_world_close(&world);
    CHECK(told <= 1);
    CHECK_EQ(told, test_log_count("sysctl -w net.core.rmem_max=1000000001"));
}

TEST(silence_before_the_first_packet_ends_in_eos_without_bos)
{
    TEST_NEEDS_NET();
    struct udp_world world;
    struct udp_source source;
    struct udp_sink sink = {0};
    udp_world_options(&world);
    world.rcv_opts.transport_lbtrm_preactivity_timeout = 50;
    rm_join_one(&world, &source, &sink);
    RUN(&world, sink.eos == 1);
    CHECK_EQ(sink.bos, 0);
    CHECK(sink.stream.session == NULL);
    lbm_transport_source_info_t info = rm_info(&source, TIDX);
    CHECK_EQ(udp_join(&world, &sink, &info, TIDX), 0); /* at once: nothing holds it back */
    rm_send(&source, 8, TIDX, 10);
    RUN(&world, sink.data == 1);
    udp_source_close(&source);
    udp_world_close(&world);
}

TEST(silence_after_data_ends_the_session_on_all_topics)
{
    TEST_NEEDS_NET();
    struct udp_world world;
    struct udp_source source;
    struct udp_sink one = {0}, two = {0};
    udp_world_options(&world);
    world.rcv_opts.transport_lbtrm_activity_timeout = 50;
    CHECK(udp_world_start(&world));
    rm_source_open(&source, GROUP_A, 0x1234);
    lbm_transport_source_info_t info = rm_info(&source, TIDX);
    CHECK_EQ(udp_join(&world, &one, &info, TIDX), 0);
    CHECK_EQ(udp_join(&world, &two, &info, TIDX + 1), 0);
    rm_send(&source, 0, TIDX, 10);
    RUN(&world, one.eos == 1 && two.eos == 1);
    CHECK_EQ(one.bos, 1);
    CHECK_EQ(two.bos, 1); /* also without data of its own */
    CHECK_CONTAINS(test_log, "transport_lbtrm_activity_timeout");
    udp_source_close(&source);
    udp_world_close(&world);
}

static void ask_for_statistics(struct udp_sink *sink)
{
    struct udp_sink *other = sink->arg;
    lbm_rcv_transport_stats_t stats;
    if (other->stream.session != NULL) { /* EOS has not been told to it yet */
        CHECK_EQ(um_rcv_stream_kernel_drops(&other->stream), 0);
        CHECK_EQ(um_rcv_stream_stats(&other->stream, &stats), 0);
        sink->arg = NULL;
    }
}

static void check_statistics_during_eos(struct udp_world *world, struct udp_source *source,
                                        const lbm_transport_source_info_t *info)
{
    struct udp_sink one = {.on_eos = ask_for_statistics}, two = {.on_eos = ask_for_statistics};
    one.arg = &two;
    two.arg = &one;
    CHECK_EQ(udp_join(world, &one, info, TIDX), 0);
    CHECK_EQ(udp_join(world, &two, info, TIDX + 1), 0);
    RUN(world, one.eos == 1 && two.eos == 1);
    CHECK(one.arg == NULL || two.arg == NULL);
    udp_source_close(source);
}

TEST(statistics_of_a_session_may_be_asked_for_while_its_end_is_told)
{
    TEST_NEEDS_NET();
    struct udp_world world;
    struct udp_source source;
    udp_world_options(&world);
    world.rcv_opts.transport_lbtrm_preactivity_timeout = 20;
    world.rcv_opts.transport_lbtru_connect_interval = 5;
    world.rcv_opts.transport_lbtru_maximum_connect_attempts = 2;
    CHECK(udp_world_start(&world));
    rm_source_open(&source, GROUP_A, 0x1234);
    lbm_transport_source_info_t info = rm_info(&source, TIDX);
    check_statistics_during_eos(&world, &source, &info);
    ru_source_open(&source, 0x1234);
    info = ru_info(&source, TIDX);
    check_statistics_during_eos(&world, &source, &info);
    udp_world_close(&world);
}

TEST(the_first_receiver_of_a_session_decides_and_others_are_told)
{
    TEST_NEEDS_NET();
    struct udp_world world;
    struct udp_source rm, ru;
    struct udp_sink sinks[6] = {0};
    CHECK(udp_world_open(&world));
    rm_source_open(&rm, GROUP_A, 1);
    ru_source_open(&ru, 2);
    lbm_transport_source_info_t rm_source = rm_info(&rm, TIDX), ru_source = ru_info(&ru, TIDX);
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_EQ(udp_join(&world, &sinks[i], &rm_source, TIDX + i), 0);
        CHECK_EQ(udp_join(&world, &sinks[2 + i], &ru_source, TIDX + i), 0);
    }
    CHECK(strstr(test_log, "further receiver") == NULL);
    world.rcv_opts.transport_lbtrm_nak_backoff_interval = 333;
    world.rcv_opts.transport_lbtru_send_naks = 0;
    CHECK_EQ(udp_join(&world, &sinks[4], &rm_source, TIDX + 4), 0);
    CHECK_EQ(udp_join(&world, &sinks[5], &ru_source, TIDX + 4), 0);
    CHECK_CONTAINS(test_log, "transport_lbtrm_nak_backoff_interval 333 of a further receiver is ignored");
    CHECK_CONTAINS(test_log, "joined by its first one with 200");
    CHECK_CONTAINS(test_log, "transport_lbtru_send_naks 0 of a further receiver is ignored");
    CHECK(strstr(test_log, "activity_timeout") == NULL);
    udp_source_close(&rm);
    udp_source_close(&ru);
    udp_world_close(&world);
}

TEST(naks_stop_at_the_cutoff_and_start_again)
{
    TEST_NEEDS_NET();
    struct udp_world world;
    struct udp_source source, later;
    struct udp_sink sink = {0}, sink_later = {0};
    uint8_t packet[2048];
    udp_world_options(&world);
    world.rcv_opts.transport_lbtrm_nak_initial_backoff_interval = 1;
    world.rcv_opts.transport_lbtrm_nak_backoff_interval = 1;
    CHECK(udp_world_start(&world));
    rm_source_open(&source, GROUP_A, 1);
    rm_source_open(&later, GROUP_A, 2);
    lbm_transport_source_info_t info = rm_info(&source, TIDX), info_later = rm_info(&later, TIDX);
    CHECK_EQ(udp_join(&world, &sink, &info, TIDX), 0);
    um_rcv_sessions_set_nak_cutoff(world.sessions, true);
    CHECK_EQ(udp_join(&world, &sink_later, &info_later, TIDX), 0);
    for (int i = 0; i < 2; i++) {
        struct udp_source *s = i == 0 ? &source : &later;
        rm_send(s, 0, TIDX, 10);
        rm_send(s, 2, TIDX, 10);
    }
    RUN(&world, sink.data == 2 && sink_later.data == 2);
    settle(&world);
    CHECK(udp_get(&source, packet, sizeof packet) < 0);
    CHECK(udp_get(&later, packet, sizeof packet) < 0);
    CHECK_EQ(stats_of(&sink).transport.lbtrm.lost, 1);
    um_rcv_sessions_set_nak_cutoff(world.sessions, false);
    RUN(&world, udp_get(&source, packet, sizeof packet) > 0);
    RUN(&world, udp_get(&later, packet, sizeof packet) > 0);
    udp_source_close(&source);
    udp_source_close(&later);
    udp_world_close(&world);
}

TEST(nak_intervals_in_microseconds_replace_those_in_milliseconds)
{
    TEST_NEEDS_NET();
    struct udp_world world;
    struct udp_source source;
    struct udp_sink sink = {0};
    uint8_t packet[2048];
    udp_world_options(&world);
    world.rcv_opts.transport_lbtrm_nak_initial_backoff_interval = 1000000; /* would be a hang */
    world.rcv_opts.transport_lbtrm_nak_backoff_interval = 1000000;
    world.rcv_opts.um_transport_lbtrm_nak_initial_backoff_interval_us = 200;
    world.rcv_opts.um_transport_lbtrm_nak_backoff_interval_us = 500;
    rm_join_one(&world, &source, &sink);
    rm_send(&source, 0, TIDX, 10);
    rm_send(&source, 2, TIDX, 10);
    for (int naks = 0; naks < 3; naks++) {
        RUN(&world, udp_get(&source, packet, sizeof packet) > 0);
    }
    udp_source_close(&source);
    udp_world_close(&world);
}

TEST(losses_on_purpose_are_counted)
{
    TEST_NEEDS_NET();
    struct udp_world world;
    struct udp_source source;
    struct udp_sink sink = {0};
    udp_world_options(&world);
    rm_join_one(&world, &source, &sink);
    um_loss_rate_set(UM_LOSS_LBTRM_RCV, 150);
    for (uint32_t i = 0; i < 10; i++) {
        rm_send(&source, i, TIDX, 10);
    }
    bool all = RUN_UNTIL(world.loop, counts_of(&world).injected == 10);
    um_loss_rate_set(UM_LOSS_LBTRM_RCV, 0);
    CHECK(all);
    CHECK_EQ(sink.data, 0);
    rm_send(&source, 10, TIDX, 10);
    RUN(&world, sink.data == 1);
    udp_source_close(&source);
    udp_world_close(&world);
}

TEST(datagrams_beyond_the_receivers_maximum_are_dropped_and_counted)
{
    TEST_NEEDS_NET();
    for (int offload = 0; offload < 2; offload++) {
        struct udp_world world;
        struct udp_source source;
        struct udp_sink sink = {0};
        udp_world_options(&world);
        world.opts.transport_lbtrm_receiver_datagram_max_size = 600;
        world.opts.transport_lbtru_receiver_datagram_max_size = 600;
        world.opts.um_udp_segmentation_offload = offload;
        rm_join_one(&world, &source, &sink);
        rm_send(&source, 0, TIDX, 600 - 32);
        rm_send(&source, 1, TIDX, 600 - 32 + 1 + 64);
        rm_send(&source, 2, TIDX, 600 - 32);
        RUN(&world, sink.data == 2);
        CHECK_EQ(counts_of(&world).oversized, 1);
        CHECK_EQ(stats_of(&sink).transport.lbtrm.dgrams_dropped_size, 1);
        CHECK(!sink.bytes_wrong);
        struct udp_sink ru_sink = {0};
        udp_source_close(&source);
        ru_join_one(&world, &source, &ru_sink);
        ru_send(&source, 0, TIDX, 600 - 32);
        ru_send(&source, 1, TIDX, 600 - 32 + 1 + 64);
        ru_send(&source, 2, TIDX, 600 - 32);
        RUN(&world, ru_sink.data == 2);
        CHECK_EQ(stats_of(&ru_sink).transport.lbtru.dgrams_dropped_size, 1);
        udp_source_close(&source);
        udp_world_close(&world);
    }
}

TEST(datagrams_that_the_kernel_joined_are_taken_apart)
{
    TEST_NEEDS_NET();
    struct udp_world world;
    struct udp_source source;
    struct udp_sink sink = {0};
    static uint8_t bytes[65536];
    udp_world_options(&world);
    rm_join_one(&world, &source, &sink);
    size_t len = 0, one = 0;
    for (uint32_t i = 0; i < 40; i++) {
        one = rm_data(&source, bytes + len, i, TIDX, i, 700, false);
        len += one;
    }
    len += rm_data(&source, bytes + len, 40, TIDX, 40, 33, false); /* the last may be shorter */
    int size = (int)one;
    if (setsockopt(source.fd, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof size) != 0) {
        TEST_SKIP("the kernel has no UDP segmentation offload");
    }
    udp_put(&source, bytes, len);
    RUN(&world, sink.data == 41);
    CHECK(!sink.bytes_wrong);
    CHECK_EQ(sink.bytes, 40 * 700 + 33);
    CHECK_EQ(stats_of(&sink).transport.lbtrm.msgs_rcved, 41);
    CHECK_EQ(stats_of(&sink).transport.lbtrm.lost, 0);
    udp_source_close(&source);
    udp_world_close(&world);
}

TEST(time_stamps_of_the_kernel_come_with_messages_when_asked_for)
{
    TEST_NEEDS_NET();
    struct udp_world world;
    struct udp_source source;
    struct udp_sink sink = {0};
    udp_world_options(&world);
    world.opts.transport_lbtrm_receiver_timestamp = 1;
    rm_join_one(&world, &source, &sink);
    uint64_t before = um_clock_wall_ns(), last = 0;
    uint32_t datagram = 0;
    for (int stamped = 0; stamped < 5 && datagram < 10000; datagram++) { /* the kernel takes a moment to begin */
        rm_send(&source, datagram, TIDX, 10);
        RUN(&world, sink.data == datagram + 1);
        CHECK(sink.stamp_ns >= last);
        last = sink.stamp_ns;
        stamped += last != 0;
    }
    CHECK(last + UM_NS_PER_SEC > before && last < um_clock_wall_ns() + UM_NS_PER_SEC);
    udp_source_close(&source);
    udp_world_close(&world);
}

/* ---- buffers ---- */

#define KEEP 3000

struct keeper {
    struct um_buf *bufs[KEEP];
    const uint8_t *data[KEEP];
    uint32_t sqns[KEEP];
    int every, count;
};

static void keep_some(struct udp_sink *sink, const struct um_lbmc_msg *msg, struct um_buf *buf)
{
    struct keeper *keeper = sink->arg;
    if (msg->sqn % (uint32_t)keeper->every == 0 && keeper->count < KEEP) {
        um_buf_ref(buf);
        keeper->bufs[keeper->count] = buf;
        keeper->data[keeper->count] = msg->payload.ptr;
        keeper->sqns[keeper->count++] = msg->sqn;
    }
}

static long allocations, allocated_bytes;
static bool count_allocation(size_t size)
{
    allocations++;
    allocated_bytes += (long)size;
    return false;
}

static void check_kept(int every, bool one_by_one, long bytes_max)
{
    static struct keeper keeper;
    struct udp_world world;
    struct udp_source source;
    struct udp_sink sink = {.on_data = keep_some, .arg = &keeper};
    keeper.count = 0;
    keeper.every = every;
    udp_world_options(&world);
    rm_join_one(&world, &source, &sink);
    allocations = allocated_bytes = 0;
    um_mem_set_fail_hook(count_allocation);
    for (uint32_t i = 0; i < KEEP; i++) {
        rm_send(&source, i, TIDX, 200);
        if (one_by_one || i % 50 == 49) {
            RUN(&world, sink.data == i + 1);
        }
    }
    um_mem_set_fail_hook(NULL);
    CHECK(!sink.bytes_wrong);
    for (int i = 0; i < keeper.count; i++) {
        for (int at = 0; at < 200; at++) {
            CHECK_EQ(keeper.data[i][at], udp_fill(keeper.sqns[i]));
        }
    }
    CHECK(allocated_bytes <= bytes_max);
    udp_source_close(&source);
    udp_world_close(&world);
    for (int i = 0; i < keeper.count; i++) {
        um_buf_unref(keeper.bufs[i]); /* also when everything else is gone */
    }
}

TEST(messages_kept_by_the_application_are_untouched_by_later_reads)
{
    TEST_NEEDS_NET();
    check_kept(1, true, 4 << 20);  /* 3000 datagrams of 232 bytes share few buffers ... */
    check_kept(1, false, 4 << 20); /* ... also when they come many at a time */
    check_kept(100, false, 64 << 20);
}

/* Datagrams 1 to 2000 in order; the first was there. */
static void check_no_allocation(struct udp_world *world, struct udp_source *source, struct udp_sink *sink,
                                void (*send)(struct udp_source *, uint32_t, uint32_t, size_t))
{
    send(source, 0, TIDX, 100);
    RUN(world, sink->data == 1); /* takes its first buffer */
    allocations = 0;
    um_mem_set_fail_hook(count_allocation);
    for (uint32_t i = 1; i < 2000; i++) {
        send(source, i, TIDX, 100);
        if (i % 37 == 0) {
            um_loop_run_once(world->loop, 0, 0);
        }
    }
    bool all = RUN_UNTIL(world->loop, sink->data == 2000);
    um_mem_set_fail_hook(NULL);
    CHECK(all);
    CHECK_EQ(allocations, 0);
}

TEST(receiving_in_order_allocates_nothing)
{
    TEST_NEEDS_NET();
    for (int offload = 0; offload < 2; offload++) {
        struct udp_world world;
        struct udp_source source;
        struct udp_sink sink = {0};
        udp_world_options(&world);
        world.opts.um_udp_segmentation_offload = offload;
        rm_join_one(&world, &source, &sink);
        check_no_allocation(&world, &source, &sink, rm_send);
        udp_source_close(&source);
        udp_world_close(&world);
    }
}

/* ---- beginnings ---- */

struct seen {
    uint32_t sqns[64];
    int count;
    int leave_at; /* the stream leaves with this message; 0: never */
};

static void note_sqn(struct udp_sink *sink, const struct um_lbmc_msg *msg, struct um_buf *buf)
{
    struct seen *seen = sink->arg;
    seen->sqns[seen->count++] = msg->sqn;
    if (seen->count == seen->leave_at) {
        um_rcv_stream_leave(&sink->stream);
    }
}

static void rm_send_as(struct udp_source *source, uint32_t datagram, uint32_t sqn, bool retransmission)
{
    uint8_t bytes[256];
    udp_put(source, bytes, rm_data(source, bytes, datagram, TIDX, sqn, 10, retransmission));
}

static void rm_send_sm(struct udp_source *source, uint32_t lead)
{
    uint8_t packet[64];
    struct um_lbtrm_session session = {source->port, source->session_id};
    udp_put(source, packet, um_lbtrm_put_sm(packet, &session, 0, lead, 0, 3));
}

static void open_ready(struct udp_world *world, struct udp_source *source, struct udp_sink *sink, struct seen *seen)
{
    CHECK(udp_world_start(world));
    rm_source_open(source, GROUP_A, 1);
    lbm_transport_source_info_t info = rm_info(source, TIDX);
    memset(sink, 0, sizeof *sink);
    sink->on_data = note_sqn;
    sink->arg = seen;
    CHECK_EQ(udp_join_ordered(world, sink, &info, TIDX), 0);
    rm_send_sm(source, 4);
    RUN(world, sink->bos == 1); /* ready: what is sent from here on is to arrive */
}

TEST(a_first_message_that_is_lost_after_bos_comes_before_the_second)
{
    TEST_NEEDS_NET();
    struct udp_world world;
    struct udp_source source;
    struct udp_sink sink;
    struct seen seen = {.count = 0};
    udp_world_options(&world);
    open_ready(&world, &source, &sink, &seen);
    rm_send_as(&source, 6, 101, false); /* 5 was lost */
    rm_send_as(&source, 7, 102, false);
    settle(&world);
    CHECK_EQ(seen.count, 0);
    rm_send_as(&source, 5, 100, true);
    rm_send_as(&source, 8, 103, false);
    RUN(&world, seen.count == 4);
    for (uint32_t i = 0; i < 4; i++) {
        CHECK_EQ(seen.sqns[i], 100 + i);
    }
    rm_send_as(&source, 10, 105, false); /* later gaps are no business of the beginning */
    RUN(&world, um_dc_stats(sink.dc).missing == 1);
    CHECK_EQ(seen.count, 4);
    udp_source_close(&source);
    udp_world_close(&world);
}

TEST(a_beginning_that_does_not_come_is_waited_for_until_it_is_given_up)
{
    TEST_NEEDS_NET();
    struct udp_world world;
    struct udp_source source;
    struct udp_sink sink;
    struct seen seen = {.count = 0};
    udp_world_options(&world);
    world.rcv_opts.transport_lbtrm_nak_generation_interval = 50;
    open_ready(&world, &source, &sink, &seen);
    rm_send_as(&source, 6, 101, false);
    RUN(&world, seen.count == 1);
    CHECK_EQ(stats_of(&sink).transport.lbtrm.unrecovered_tmo, 1);
    udp_source_close(&source);
    udp_world_close(&world);
}

TEST(a_beginning_is_held_up_to_a_size_and_what_was_held_is_handed_on)
{
    TEST_NEEDS_NET();
    enum { SIZE = 8000, MOST = (64 << 20) / SIZE };
    static uint8_t bytes[65536];
    struct udp_world world;
    struct udp_source source;
    struct udp_sink sink;
    struct seen seen = {.count = 0};
    udp_world_options(&world);
    world.rcv_opts.transport_lbtrm_nak_generation_interval = 3600000;
    open_ready(&world, &source, &sink, &seen);
    sink.on_data = NULL; /* counts */
    uint32_t sent = 0;
    while (sink.data == 0 && sent <= MOST) { /* 5 was lost */
        udp_put(&source, bytes, rm_data(&source, bytes, 6 + sent, TIDX, 101 + sent, SIZE, false));
        um_loop_run_once(world.loop, 10, 0);
        sent++;
    }
    CHECK(sent > MOST / 2); /* buffers count whole */
    CHECK_EQ(sink.data, sent);
    CHECK_EQ(um_dc_stats(sink.dc).openings_cut, 1);
    CHECK(!sink.bytes_wrong);
    udp_source_close(&source);
    udp_world_close(&world);
}

TEST(what_is_held_of_a_beginning_comes_before_eos_and_goes_with_the_stream)
{
    TEST_NEEDS_NET();
    for (int leave_at = 0; leave_at < 3; leave_at++) {
        struct udp_world world;
        struct udp_source source;
        struct udp_sink sink;
        struct seen seen = {.leave_at = leave_at};
        udp_world_options(&world);
        world.rcv_opts.transport_lbtrm_activity_timeout = leave_at == 0 ? 2000 : 3600000;
        world.rcv_opts.transport_lbtrm_nak_generation_interval = leave_at == 1 ? 50 : 3600000;
        open_ready(&world, &source, &sink, &seen);
        for (uint32_t i = 0; i < 5; i++) {
            rm_send_as(&source, 6 + i, 101 + i, false);
        }
        if (leave_at == 2) {
            settle(&world);
            udp_leave(&sink);
            CHECK_EQ(seen.count, 0);
        } else {
            RUN(&world, sink.eos == 1 || sink.stream.session == NULL);
            CHECK_EQ(seen.count, leave_at == 0 ? 5 : 1);
            CHECK_EQ(sink.eos, leave_at == 0);
        }
        udp_source_close(&source);
        udp_world_close(&world);
    }
}

TEST(old_messages_in_a_repair_for_others_are_not_taken_for_the_beginning)
{
    TEST_NEEDS_NET();
    struct udp_world world;
    struct udp_source source;
    struct udp_sink other, sink = {0};
    struct seen ignored = {.count = 0}, seen = {.count = 0};
    udp_world_options(&world);
    open_ready(&world, &source, &other, &ignored); /* has no data of its own below */
    udp_leave(&other);
    other.bos = 0;
    lbm_transport_source_info_t info = rm_info(&source, TIDX);
    CHECK_EQ(udp_join(&world, &other, &info, TIDX + 1), 0);
    rm_send_sm(&source, 4);
    RUN(&world, other.bos == 1);
    rm_send_as(&source, 6, 50, false); /* 5 is missing; nobody here wants this topic yet */
    settle(&world);
    sink.on_data = note_sqn;
    sink.arg = &seen;
    CHECK_EQ(udp_join_ordered(&world, &sink, &info, TIDX), 0);
    rm_send_as(&source, 7, 51, false);
    settle(&world);
    CHECK_EQ(seen.count, 0);
    rm_send_as(&source, 5, 49, true); /* sent before the join */
    RUN(&world, seen.count == 1);
    CHECK_EQ(seen.sqns[0], 51);
    udp_source_close(&source);
    udp_world_close(&world);
}

/* ---- ends inside callbacks, failures ---- */

static void leave_all(struct udp_sink *sink, const struct um_lbmc_msg *msg, struct um_buf *buf)
{
    um_rcv_stream_leave(&sink->stream);
    if (sink->arg != NULL) {
        um_rcv_stream_leave(&((struct udp_sink *)sink->arg)->stream);
    }
}

static void leave_on_bos(struct udp_sink *sink)
{
    um_rcv_stream_leave(&sink->stream);
}

TEST(a_callback_may_leave_the_last_session_of_the_socket_it_is_read_from)
{
    TEST_NEEDS_NET();
    for (int on_bos = 0; on_bos < 2; on_bos++) {
        struct udp_world world;
        struct udp_source one, two;
        struct udp_sink sink_two = {0}, sink_one = {0};
        CHECK(udp_world_open(&world));
        rm_source_open(&one, GROUP_A, 1);
        rm_source_open(&two, GROUP_A, 2);
        lbm_transport_source_info_t info_one = rm_info(&one, TIDX), info_two = rm_info(&two, TIDX);
        CHECK_EQ(udp_join(&world, &sink_one, &info_one, TIDX), 0);
        CHECK_EQ(udp_join(&world, &sink_two, &info_two, TIDX), 0);
        sink_one.arg = &sink_two;
        sink_one.on_data = on_bos ? NULL : leave_all;
        sink_one.on_bos = on_bos ? leave_on_bos : NULL;
        sink_two.on_bos = on_bos ? leave_on_bos : NULL;
        rm_send(&two, 0, TIDX, 10);
        for (uint32_t i = 0; i < 30; i++) { /* more than one read takes */
            rm_send(&one, i, TIDX, 10);
            rm_send(&two, i + 1, TIDX, 10);
        }
        RUN(&world, sink_one.stream.session == NULL && sink_two.stream.session == NULL);
        settle(&world);
        CHECK_EQ(sink_one.data, on_bos ? 0 : 1);
        CHECK_EQ(sink_one.eos + sink_two.eos, 0);
        udp_source_close(&one);
        udp_source_close(&two);
        udp_world_close(&world);
    }
}

#define STRAY_PORT 24370

static void check_failing_allocations(bool ru)
{
    struct udp_source source;
    bool reached = true;
    if (ru) {
        ru_source_open(&source, 5);
    } else {
        rm_source_open(&source, GROUP_A, 5);
    }
    lbm_transport_source_info_t info = ru ? ru_info(&source, TIDX) : rm_info(&source, TIDX);
    for (long n = 0; reached; n++) {
        struct udp_world world;
        struct udp_sink sink = {0};
        CHECK(udp_world_open(&world));
        if (ru) { /* data for an earlier receiver on this port is there at once */
            world.rcv_opts.transport_lbtru_port_low = world.rcv_opts.transport_lbtru_port_high = STRAY_PORT;
            source.to = (struct sockaddr_in){
                .sin_family = AF_INET, .sin_port = htons(STRAY_PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        }
        test_fail_start(n);
        int rc = udp_join(&world, &sink, &info, TIDX);
        if (ru) {
            ru_send(&source, 0, TIDX + 1, 10);
        }
        settle(&world);
        reached = test_fail_stop();
        CHECK(rc == 0 || um_errnum() == UM_ENOMEM);
        CHECK(rc == 0 || sink.stream.session == NULL);
        CHECK(rc != 0 || sink.eos == 1 || sink.stream.session != NULL);
        udp_world_close(&world);
        CHECK(n < 100);
    }
    udp_source_close(&source);
}

TEST(every_failing_allocation_of_a_join_is_an_error_or_an_eos)
{
    TEST_NEEDS_NET();
    check_failing_allocations(false);
    check_failing_allocations(true);
}

TEST(a_group_that_cannot_be_joined_is_an_error_that_names_it)
{
    TEST_NEEDS_NET();
    struct udp_world world;
    struct udp_source source;
    struct udp_sink sink = {0};
    CHECK(udp_world_open(&world));
    rm_source_open(&source, 0x7f000001u, 5); /* no multicast address */
    lbm_transport_source_info_t info = rm_info(&source, TIDX);
    CHECK_EQ(udp_join(&world, &sink, &info, TIDX), -1);
    CHECK_CONTAINS(um_errmsg(), "127.0.0.1:24400");
    udp_source_close(&source);
    udp_world_close(&world);
}

/* ---- LBT-RU ---- */

TEST(lbtru_requests_acknowledges_receives_and_ends_with_a_reset)
{
    TEST_NEEDS_NET();
    struct udp_world world;
    struct udp_source source;
    struct udp_sink sink = {0};
    struct um_lbtru_packet packet;
    uint8_t bytes[64];
    udp_world_options(&world);
    world.rcv_opts.transport_lbtru_nak_backoff_interval = NEVER_MS;
    CHECK(udp_world_start(&world));
    ru_source_open(&source, 0xabcdef01u);
    lbm_transport_source_info_t info = ru_info(&source, TIDX);
    CHECK_EQ(udp_join(&world, &sink, &info, TIDX), 0);
    CHECK_CONTAINS(um_rcv_stream_source(&sink.stream), "LBT-RU:127.0.0.1:");
    CHECK(get_packet(&world, &source, UM_LBTRU_CREQ, &packet));
    CHECK(packet.has_sid && packet.sid == 0xabcdef01u);
    CHECK(get_packet(&world, &source, UM_LBTRU_CREQ, &packet)); /* asks again */
    CHECK_EQ(sink.bos, 0);
    put_syn(&source);
    CHECK(get_packet(&world, &source, UM_LBTRU_ACK, &packet));
    CHECK_EQ(sink.bos, 1);
    ru_send(&source, 0, TIDX, 10);
    ru_send(&source, 2, TIDX, 10);
    CHECK(get_packet(&world, &source, UM_LBTRU_NAK, &packet));
    CHECK_EQ(um_lbtr_list_at(&packet.list, 0), 1);
    ru_send(&source, 1, TIDX, 10);
    RUN(&world, sink.data == 3);
    lbm_rcv_transport_stats_t stats = stats_of(&sink);
    CHECK_EQ(stats.type, LBM_TRANSPORT_STAT_LBTRU);
    CHECK_EQ(stats.transport.lbtru.msgs_rcved, 3);
    CHECK_EQ(stats.transport.lbtru.lbm_msgs_rcved, 3);
    CHECK_EQ(stats.transport.lbtru.naks_sent, 1);
    CHECK(!sink.bytes_wrong);
    udp_put(&source, bytes, um_lbtru_put_rst(bytes));
    RUN(&world, sink.eos == 1);
    CHECK_EQ(udp_join(&world, &sink, &info, TIDX), 0); /* at once */
    CHECK(get_packet(&world, &source, UM_LBTRU_CREQ, &packet));
    udp_source_close(&source);
    udp_world_close(&world);
}

TEST(lbtru_gives_up_after_the_last_connection_attempt_and_strangers_are_counted)
{
    TEST_NEEDS_NET();
    struct udp_world world;
    struct udp_source source, stranger;
    struct udp_sink sink = {0};
    struct um_lbtru_packet packet;
    udp_world_options(&world);
    world.rcv_opts.transport_lbtru_connect_interval = 20;
    world.rcv_opts.transport_lbtru_maximum_connect_attempts = 3;
    CHECK(udp_world_start(&world));
    ru_source_open(&source, 1);
    ru_source_open(&stranger, 1);
    lbm_transport_source_info_t info = ru_info(&source, TIDX);
    CHECK_EQ(udp_join(&world, &sink, &info, TIDX), 0);
    CHECK(get_packet(&world, &source, UM_LBTRU_CREQ, &packet));
    stranger.to = source.to;
    put_syn(&stranger); /* right session id, other port */
    RUN(&world, sink.eos == 1);
    CHECK_EQ(sink.bos, 0);
    CHECK_EQ(counts_of(&world).unjoined, 1);
    int more = 0;
    uint8_t bytes[64];
    while (udp_get(&source, bytes, sizeof bytes) >= 0) {
        more++;
    }
    CHECK_EQ(more, 2);
    udp_source_close(&source);
    udp_source_close(&stranger);
    udp_world_close(&world);
}

TEST(lbtru_port_range_is_obeyed_and_its_end_is_an_error_that_names_it)
{
    TEST_NEEDS_NET();
    struct udp_world world;
    struct udp_source sources[3];
    struct udp_sink sinks[3];
    struct um_lbtru_packet packet;
    memset(sinks, 0, sizeof sinks);
    udp_world_options(&world);
    world.rcv_opts.transport_lbtru_port_low = 24360;
    world.rcv_opts.transport_lbtru_port_high = 24361;
    CHECK(udp_world_start(&world));
    for (uint32_t i = 0; i < 3; i++) {
        ru_source_open(&sources[i], i + 1);
        lbm_transport_source_info_t info = ru_info(&sources[i], TIDX);
        CHECK_EQ(udp_join(&world, &sinks[i], &info, TIDX), i < 2 ? 0 : -1);
        if (i < 2) {
            CHECK(get_packet(&world, &sources[i], UM_LBTRU_CREQ, &packet));
            CHECK_EQ(ntohs(sources[i].to.sin_port), 24360 + i);
        }
    }
    CHECK_CONTAINS(um_errmsg(), "transport_lbtru_port_low");
    CHECK_CONTAINS(um_errmsg(), "24360..24361");
    for (int i = 0; i < 3; i++) {
        udp_source_close(&sources[i]);
    }
    udp_world_close(&world);
}

TEST(lbtru_receiving_in_order_allocates_nothing)
{
    TEST_NEEDS_NET();
    struct udp_world world;
    struct udp_source source;
    struct udp_sink sink = {0};
    CHECK(udp_world_open(&world));
    ru_join_one(&world, &source, &sink);
    check_no_allocation(&world, &source, &sink, ru_send);
    udp_source_close(&source);
    udp_world_close(&world);
}

/* ---- groups on which everybody is heard ---- */

struct heard {
    struct um_rcv_listener listener;
    struct udp_world *world;
    struct udp_sink sinks[2];
    int strangers;
    bool join;
};

static void on_stranger(struct um_rcv_listener *listener, const lbm_transport_source_info_t *info, uint64_t now_ns)
{
    struct heard *heard = (struct heard *)listener;
    int index = heard->strangers++;
    if (heard->join && index < 2) {
        struct udp_sink *sink = &heard->sinks[index];
        sink->world = heard->world;
        sink->stream = (struct um_rcv_stream){.events = &udp_sink_events, .tidx = TIDX, .immediate = true};
        CHECK_EQ(um_rcv_sessions_join(heard->world->sessions, info, &heard->world->rcv_opts, &sink->stream), 0);
    }
}

static int listen_on_loop(void *arg)
{
    struct heard *heard = arg;
    heard->listener.on_stranger = on_stranger;
    return um_rcv_sessions_listen(heard->world->sessions, htonl(GROUP_A), GROUP_PORT, &heard->listener);
}

static int unlisten_on_loop(void *arg)
{
    struct heard *heard = arg;
    um_rcv_sessions_unlisten(heard->world->sessions, htonl(GROUP_A), GROUP_PORT, &heard->listener);
    return 0;
}

static int sessions_on_loop(void *arg)
{
    struct udp_world *world = arg;
    lbm_rcv_transport_stats_t stats;
    um_rcv_sessions_immediate_stats_reset(world->sessions);
    return um_rcv_sessions_stats(world->sessions, NULL, 0) * 10 +
           um_rcv_sessions_immediate_stats(world->sessions, &stats, 1);
}

TEST(a_listener_may_join_whoever_is_heard_with_the_datagram_that_told_of_him)
{
    TEST_NEEDS_NET();
    struct udp_world world;
    struct udp_source one, two;
    struct heard heard = {.world = &world, .join = true};
    uint8_t packet[256];
    CHECK(udp_world_open(&world));
    CHECK_EQ(um_loop_call(world.loop, listen_on_loop, &heard), 0);
    CHECK_EQ(um_loop_call(world.loop, listen_on_loop, &heard), -1);
    CHECK_CONTAINS(um_errmsg(), "224.0.10.1:24400");
    rm_source_open(&one, GROUP_A, 1);
    rm_source_open(&two, GROUP_A, 2);
    rm_send(&one, 5, TIDX, 10);
    RUN(&world, heard.sinks[0].data == 1 && heard.sinks[0].last_sqn == 5);
    struct um_lbtrm_session session = {two.port, two.session_id};
    udp_put(&two, packet, um_lbtrm_put_nak(packet, &session, (uint32_t[]){3}, 1)); /* tells nothing of where it is */
    udp_put(&two, packet, um_lbtrm_put_sm(packet, &session, 0, 7, 7, 3));
    RUN(&world, heard.sinks[1].bos == 1);
    rm_send(&two, 8, TIDX, 10);
    RUN(&world, heard.sinks[1].data == 1);
    CHECK_EQ(heard.strangers, 2);
    CHECK_EQ(um_loop_call(world.loop, sessions_on_loop, &world), 2);
    udp_leave(&heard.sinks[0]);
    udp_leave(&heard.sinks[1]);
    heard.join = false;
    rm_send(&one, 6, TIDX, 10); /* the group is still joined */
    RUN(&world, heard.strangers == 3 && counts_of(&world).unjoined == 2);
    CHECK_EQ(um_loop_call(world.loop, unlisten_on_loop, &heard), 0);
    rm_send(&one, 7, TIDX, 10);
    settle(&world);
    CHECK_EQ(heard.strangers, 3);
    CHECK_EQ(um_loop_call(world.loop, listen_on_loop, &heard), 0);
    CHECK_EQ(um_loop_call(world.loop, unlisten_on_loop, &heard), 0);
    udp_source_close(&one);
    udp_source_close(&two);
    udp_world_close(&world);
}
