/* The lbmrd engine with a plain integer as clock and a recording send function. */
#include <arpa/inet.h>
#include <errno.h>

#include "base/um_log.h"
#include "resolver/um_lbmrd_engine.h"
#include "um_test.h"
#include "wire/um_lbmr.h"

#define MS 1000000ull

static struct {
    int count;
    int fail_port; /* sends to this port fail */
    struct {
        uint32_t ip;
        uint16_t port;
        size_t len;
        uint8_t data[512];
    } sent[64];
} wire;

static int record_send(void *arg, uint32_t ip, uint16_t port, const uint8_t *data, size_t len)
{
    if (port == wire.fail_port) {
        return ENETUNREACH;
    }
    if (wire.count < 64 && len <= sizeof(wire.sent[0].data)) {
        wire.sent[wire.count].ip = ip;
        wire.sent[wire.count].port = port;
        wire.sent[wire.count].len = len;
        memcpy(wire.sent[wire.count].data, data, len);
    }
    wire.count++;
    return 0;
}

static int drop_log(int level, const char *message, void *clientd)
{
    return 0;
}

static uint32_t ip(const char *text)
{
    return inet_addr(text);
}

static struct um_lbmrd *make_engine(size_t max_clients)
{
    struct um_lbmrd_config config = {.ttl_ns = 2000 * MS,
                                     .activity_ns = 500 * MS,
                                     .max_clients = max_clients,
                                     .own_ip = ip("10.0.0.1"),
                                     .own_port = 15380,
                                     .send = record_send};
    memset(&wire, 0, sizeof(wire));
    um_log_set_proc(drop_log, NULL);
    return um_lbmrd_create(&config, 0);
}

static size_t make_query(uint8_t *out, size_t capacity)
{
    struct um_lbmr_builder builder;
    um_lbmr_begin(&builder, out, capacity, capacity, UM_LBMR_NORMAL, NULL, 0);
    um_lbmr_add_tqr(&builder, "orders", 6);
    return um_lbmr_finish(&builder);
}

static size_t make_advertisement(uint8_t *out, size_t capacity, const char *address)
{
    uint8_t record[UM_LBMR_TIR_MAX];
    struct um_lbmr_tir_writer writer;
    struct um_lbmr_builder builder;
    struct um_lbmr_transport transport = {.code = UM_LBMR_TCP, .known = true, .ip = ip(address), .port = 14371};
    um_lbmr_tir_begin(&writer, record, sizeof(record), "orders", 7);
    size_t len = um_lbmr_tir_end(&writer, &transport);
    um_lbmr_begin(&builder, out, capacity, capacity, UM_LBMR_NORMAL, NULL, 0);
    um_lbmr_add_tir(&builder, record, len);
    return um_lbmr_finish(&builder);
}

static void keepalive_from(struct um_lbmrd *engine, uint64_t now, const char *address, uint16_t port)
{
    uint8_t bytes[4] = {0x02, 0, 0, 0};
    um_lbmrd_on_datagram(engine, now, bytes, sizeof(bytes), ip(address), port);
}

TEST(keepalive_is_answered_and_not_forwarded)
{
    struct um_lbmrd *engine = make_engine(10);
    keepalive_from(engine, 0, "10.0.0.2", 1000);
    keepalive_from(engine, 0, "10.0.0.3", 1000);
    CHECK_EQ(wire.count, 2);
    CHECK_EQ(wire.sent[1].ip, ip("10.0.0.3"));
    CHECK_EQ(wire.sent[1].len, 4);
    CHECK(memcmp(wire.sent[1].data, "\0\0\0\0", 4) == 0);
    CHECK_EQ(um_lbmrd_clients(engine), 2);
    um_lbmrd_destroy(engine);
}

TEST(a_query_goes_to_every_client_and_back_to_its_sender)
{
    struct um_lbmrd *engine = make_engine(10);
    uint8_t query[64];
    keepalive_from(engine, 0, "10.0.0.2", 1000);
    keepalive_from(engine, 0, "10.0.0.2", 1001);
    wire.count = 0;
    size_t len = make_query(query, sizeof(query));
    um_lbmrd_on_datagram(engine, 0, query, len, ip("10.0.0.3"), 1000);
    CHECK_EQ(wire.count, 3);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(wire.sent[i].len, len);
        CHECK(memcmp(wire.sent[i].data, query, len) == 0);
    }
    um_lbmrd_destroy(engine);
}

TEST(an_unset_address_becomes_the_senders)
{
    struct um_lbmrd *engine = make_engine(10);
    uint8_t tir[256], expected[256];
    size_t len = make_advertisement(tir, sizeof(tir), "0.0.0.0");
    size_t expected_len = make_advertisement(expected, sizeof(expected), "10.0.0.9");
    um_lbmrd_on_datagram(engine, 0, tir, len, ip("10.0.0.9"), 1000);
    CHECK_EQ(wire.count, 1);
    CHECK_EQ(wire.sent[0].len, expected_len);
    CHECK(memcmp(wire.sent[0].data, expected, expected_len) == 0);
    um_lbmrd_destroy(engine);
}

TEST(a_set_address_stays)
{
    struct um_lbmrd *engine = make_engine(10);
    uint8_t tir[256], copy[256];
    size_t len = make_advertisement(tir, sizeof(tir), "10.7.7.7");
    memcpy(copy, tir, len);
    um_lbmrd_on_datagram(engine, 0, tir, len, ip("10.0.0.9"), 1000);
    CHECK(memcmp(wire.sent[0].data, copy, len) == 0);
    um_lbmrd_destroy(engine);
}

TEST(a_silent_client_is_gone_after_ttl_plus_activity)
{
    struct um_lbmrd *engine = make_engine(10);
    keepalive_from(engine, 0, "10.0.0.2", 1000);
    uint64_t now = 0;
    while (um_lbmrd_clients(engine) > 0 && now < 10000 * MS) {
        now = um_lbmrd_next_timer(engine);
        um_lbmrd_on_timer(engine, now);
    }
    CHECK_EQ(now / MS, 2500);
    um_lbmrd_destroy(engine);
}

TEST(a_client_that_is_heard_stays)
{
    struct um_lbmrd *engine = make_engine(10);
    keepalive_from(engine, 0, "10.0.0.2", 1000);
    keepalive_from(engine, 0, "10.0.0.3", 1000);
    for (uint64_t now = 500 * MS; now <= 10000 * MS; now += 500 * MS) {
        keepalive_from(engine, now, "10.0.0.2", 1000);
        um_lbmrd_on_timer(engine, now);
    }
    CHECK_EQ(um_lbmrd_clients(engine), 1);
    um_lbmrd_destroy(engine);
}

TEST(a_full_table_still_forwards_for_newcomers)
{
    struct um_lbmrd *engine = make_engine(2);
    uint8_t query[64];
    keepalive_from(engine, 0, "10.0.0.2", 1000);
    keepalive_from(engine, 0, "10.0.0.3", 1000);
    size_t len = make_query(query, sizeof(query));
    wire.count = 0;
    um_lbmrd_on_datagram(engine, 0, query, len, ip("10.0.0.4"), 1000);
    CHECK_EQ(wire.count, 2);
    CHECK_EQ(um_lbmrd_clients(engine), 2);
    CHECK_EQ(um_lbmrd_stats(engine)->refused_clients, 1);
    um_lbmrd_destroy(engine);
}

TEST(an_error_to_one_client_does_not_stop_the_others)
{
    struct um_lbmrd *engine = make_engine(10);
    uint8_t query[64];
    for (uint16_t port = 1000; port < 1004; port++) {
        keepalive_from(engine, 0, "10.0.0.2", port);
    }
    wire.count = 0;
    wire.fail_port = 1001;
    size_t len = make_query(query, sizeof(query));
    um_lbmrd_on_datagram(engine, 0, query, len, ip("10.0.0.2"), 1000);
    CHECK_EQ(wire.count, 3);
    CHECK_EQ(um_lbmrd_stats(engine)->send_errors, 1);
    um_lbmrd_destroy(engine);
}

TEST(invalid_datagrams_are_counted_and_make_no_client)
{
    struct um_lbmrd *engine = make_engine(10);
    uint8_t query[64];
    size_t len = make_query(query, sizeof(query));
    for (size_t cut = 0; cut < len; cut++) {
        uint8_t part[64];
        memcpy(part, query, cut);
        um_lbmrd_on_datagram(engine, 0, part, cut, ip("10.0.0.2"), 1000);
    }
    CHECK_EQ(wire.count, 0);
    CHECK_EQ(um_lbmrd_clients(engine), 0);
    CHECK_EQ(um_lbmrd_stats(engine)->invalid, len);
    um_lbmrd_destroy(engine);
}

TEST(a_datagram_in_the_daemons_own_name_does_not_circle)
{
    struct um_lbmrd *engine = make_engine(10);
    uint8_t query[64];
    size_t len = make_query(query, sizeof(query));
    um_lbmrd_on_datagram(engine, 0, query, len, ip("10.0.0.1"), 15380);
    CHECK_EQ(wire.count, 0);
    CHECK_EQ(um_lbmrd_clients(engine), 0);
    CHECK_EQ(um_lbmrd_stats(engine)->from_self, 1);
    um_lbmrd_destroy(engine);
}

TEST(two_daemons_that_are_each_others_clients_do_not_circle)
{
    struct um_lbmrd *engine = make_engine(10);
    uint8_t bytes[256];
    keepalive_from(engine, 0, "10.0.0.9", 15380); /* forged: the address of another daemon */
    wire.count = 0;
    size_t len = make_advertisement(bytes, sizeof(bytes), "0.0.0.0");
    um_lbmrd_on_datagram(engine, 10 * MS, bytes, len, ip("10.0.0.2"), 1000);
    CHECK_EQ(wire.count, 2);
    memcpy(bytes, wire.sent[0].data, len);
    um_lbmrd_on_datagram(engine, 11 * MS, bytes, len, ip("10.0.0.9"), 15380); /* what that one makes of it */
    CHECK_EQ(wire.count, 2);
    CHECK_EQ(um_lbmrd_stats(engine)->circling, 1);
    len = make_advertisement(bytes, sizeof(bytes), "0.0.0.0");
    um_lbmrd_on_datagram(engine, 20 * MS, bytes, len, ip("10.0.0.2"), 1000); /* its own repetition is no circle */
    CHECK_EQ(wire.count, 4);
    um_lbmrd_destroy(engine);
}
