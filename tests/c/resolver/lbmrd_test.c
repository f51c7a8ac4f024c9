/* The lbmrd engine with a plain integer as clock and a recording send function. */
#include <arpa/inet.h>
#include <errno.h>

#include "base/um_hash.h"
#include "base/um_log.h"
#include "base/um_log_limits.h"
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

static void record_send_all(void *arg, const struct um_lbmrd_peer *peers, size_t count, const uint8_t *data, size_t len,
                            int *errors)
{
    for (size_t i = 0; i < count; i++) {
        errors[i] = record_send(arg, peers[i].ip, peers[i].port, data, len);
    }
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
                                     .max_address_clients = 256,
                                     .output_rate = 1000000,
                                     .output_burst = 2000000,
                                     .own_ip = ip("10.0.0.1"),
                                     .own_port = 15380,
                                     .send = record_send_all};
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

/* ---- strangers ---- */

static int lines;

static int count_log(int level, const char *message, void *clientd)
{
    lines++;
    return 0;
}

static void query_from(struct um_lbmrd *engine, uint64_t now, uint32_t from, uint16_t port)
{
    uint8_t query[64];
    size_t len = make_query(query, sizeof(query));
    query[len - 2] = (uint8_t)port; /* other bytes each time: nothing that circles */
    query[len - 3] = (uint8_t)(port >> 8);
    query[len - 4] = (uint8_t)from;
    um_lbmrd_on_datagram(engine, now, query, len, from, port);
}

TEST(f10_one_address_has_a_bounded_number_of_clients_and_the_others_still_come_in)
{
    struct um_lbmrd *engine = make_engine(16384);
    for (uint16_t port = 1; port <= 4000; port++) {
        keepalive_from(engine, 0, "10.0.0.66", port);
    }
    CHECK_EQ(um_lbmrd_clients(engine), 256);
    CHECK_EQ(um_lbmrd_stats(engine)->refused_clients, 4000 - 256);
    keepalive_from(engine, 0, "10.0.0.2", 1000);
    CHECK_EQ(um_lbmrd_clients(engine), 257);
    wire.count = 0;
    query_from(engine, 0, ip("10.0.0.67"), 1000); /* a stranger: one copy each, it is a client now */
    CHECK_EQ(wire.count, 258);
    um_lbmrd_destroy(engine);
}

/* 400 forged datagrams to 1,000 clients are 400,000 copies, unless there is a budget. */
static int copies_of_flood(struct um_lbmrd *engine, uint64_t begin, bool forge)
{
    wire.count = 0;
    for (int i = 0; i < 400; i++) {
        query_from(engine, begin + (uint64_t)i * MS, ip("10.1.0.0") + (forge ? htonl((uint32_t)i) : 0),
                   (uint16_t)(2000 + i));
    }
    return wire.count;
}

TEST(f10_what_an_address_may_have_sent_to_others_has_a_budget)
{
    for (int forge = 0; forge < 2; forge++) {
        struct um_lbmrd *engine = make_engine(16384);
        for (uint32_t host = 0; host < 100; host++) {
            for (uint16_t port = 0; port < 10; port++) {
                uint8_t bytes[4] = {0x02, 0, 0, 0};
                um_lbmrd_on_datagram(engine, 0, bytes, sizeof(bytes), htonl(0x0a020000u + host), port);
            }
        }
        for (uint64_t now = 1000 * MS; now <= 11000 * MS; now += 1000 * MS) {
            keepalive_from(engine, now, "10.0.0.2", 1000);
        }
        int copies = copies_of_flood(engine, 11000 * MS, forge);
        CHECK(copies > 1000);
        CHECK(copies < 2500000 / 256); /* the burst, and what comes again in 400 ms */
        CHECK(um_lbmrd_stats(engine)->over_budget > 300);
        wire.count = 0;
        query_from(engine, 11400 * MS, ip("10.0.0.2"), 1000); /* known for ten seconds: has a budget of its own */
        CHECK(wire.count > 1000);
        wire.count = 0;
        query_from(engine, 20000 * MS, ip("10.1.0.0"), 1); /* the budget comes back */
        CHECK(wire.count > 1000);
        um_lbmrd_destroy(engine);
    }
}

/* A datagram as contexts send them; the number makes the bytes different each time. */
static void datagram_from(struct um_lbmrd *engine, uint64_t now, uint32_t from, uint16_t port, size_t len)
{
    static uint32_t number;
    uint8_t bytes[UM_LBMR_TIR_MAX + 2048];
    struct um_lbmr_builder builder;
    um_lbmr_begin(&builder, bytes, sizeof bytes, sizeof bytes, UM_LBMR_NORMAL, NULL, 0);
    for (size_t i = 0; i + 24 < len; i += 20) {
        char topic[32];
        um_lbmr_add_tqr(&builder, topic, (size_t)snprintf(topic, sizeof topic, "topic of %010u", number++));
    }
    um_lbmrd_on_datagram(engine, now, bytes, um_lbmr_finish(&builder), from, port);
}

#define HOSTS 10
#define HOST_CLIENTS 100

static struct um_lbmrd *make_large_engine(void)
{
    struct um_lbmrd_config config = {.ttl_ns = 60000 * MS,
                                     .activity_ns = 60000 * MS,
                                     .max_clients = UM_LBMRD_MAX_CLIENTS,
                                     .max_address_clients = UM_LBMRD_MAX_ADDRESS_CLIENTS,
                                     .output_rate = UM_LBMRD_OUTPUT_RATE,
                                     .output_burst = UM_LBMRD_OUTPUT_BURST,
                                     .max_output_rate = UM_LBMRD_MAX_OUTPUT_RATE,
                                     .start_burst = UM_LBMRD_START_BURST,
                                     .send = record_send_all};
    memset(&wire, 0, sizeof(wire));
    um_log_set_proc(drop_log, NULL);
    return um_lbmrd_create(&config, 0);
}

/* Each client of each host sends one, in equal shares of the time. */
static void all_send(struct um_lbmrd *engine, uint64_t begin, uint64_t duration, size_t len)
{
    for (uint32_t i = 0; i < HOSTS * HOST_CLIENTS; i++) {
        datagram_from(engine, begin + i * duration / (HOSTS * HOST_CLIENTS), htonl(0x0a020000u + i % HOSTS),
                      (uint16_t)(1000 + i / HOSTS), len);
    }
}

TEST(f10_a_thousand_clients_that_start_together_are_within_the_budget)
{
    struct um_lbmrd *engine = make_large_engine();
    for (uint64_t now = 0; now < 1000 * MS; now += 50 * MS) {
        all_send(engine, now, 50 * MS, 200);
    }
    for (uint64_t now = 1000 * MS; now < 15000 * MS; now += 500 * MS) {
        all_send(engine, now, 500 * MS, 200);
    }
    CHECK_EQ(um_lbmrd_stats(engine)->received, HOSTS * HOST_CLIENTS * (20 + 28));
    CHECK_EQ(um_lbmrd_stats(engine)->circling + um_lbmrd_stats(engine)->invalid, 0);
    CHECK_EQ(um_lbmrd_stats(engine)->over_budget, 0);
    um_lbmrd_destroy(engine);
}

struct question {
    uint32_t hash, number;
};

static size_t write_question(uint32_t number, uint8_t bytes[64])
{
    struct um_lbmr_builder builder;
    char topic[32];
    um_lbmr_begin(&builder, bytes, 64, 64, UM_LBMR_NORMAL, NULL, 0);
    um_lbmr_add_tqr(&builder, topic, (size_t)snprintf(topic, sizeof topic, "topic of %010u", number));
    return um_lbmr_finish(&builder);
}

static int by_hash(const void *a, const void *b)
{
    const struct question *one = a, *other = b;
    return one->hash < other->hash ? -1 : one->hash > other->hash;
}

/* Of so many datagrams some 40 pairs are alike in 32 bits of their hash, whatever the key of the process. */
TEST(different_datagrams_of_two_senders_are_both_forwarded_whatever_their_short_hashes)
{
    enum { QUESTIONS = 600000 };
    struct question *questions = calloc(QUESTIONS, sizeof *questions);
    CHECK(questions != NULL);
    uint8_t bytes[64];
    for (uint32_t i = 0; i < QUESTIONS; i++) {
        questions[i] = (struct question){um_hash_bytes(bytes, write_question(i, bytes)), i};
    }
    qsort(questions, QUESTIONS, sizeof *questions, by_hash);
    struct um_lbmrd *engine = make_large_engine();
    unsigned pairs = 0;
    for (uint32_t i = 1; i < QUESTIONS; i++) {
        if (questions[i - 1].hash == questions[i].hash) {
            pairs++;
            size_t len = write_question(questions[i - 1].number, bytes);
            um_lbmrd_on_datagram(engine, pairs * 1000 * MS, bytes, len, ip("10.0.0.2"), 1000);
            len = write_question(questions[i].number, bytes);
            um_lbmrd_on_datagram(engine, pairs * 1000 * MS, bytes, len, ip("10.0.0.3"), 1000);
        }
    }
    CHECK(pairs > 0);
    CHECK_EQ(um_lbmrd_stats(engine)->circling, 0);
    um_lbmrd_destroy(engine);
    free(questions);
}

TEST(f10_who_is_known_may_send_twenty_large_datagrams_a_second_however_many_clients_there_are)
{
    struct um_lbmrd *engine = make_large_engine();
    for (uint64_t now = 0; now <= 11000 * MS; now += 1000 * MS) {
        keepalive_from(engine, now, "10.0.0.2", 1000);
    }
    for (uint32_t i = 1; i < UM_LBMRD_MAX_CLIENTS; i++) {
        uint8_t bytes[4] = {0x02, 0, 0, 0};
        um_lbmrd_on_datagram(engine, 11000 * MS, bytes, sizeof bytes, htonl(0x0a030000u + i / 16), (uint16_t)i);
    }
    for (uint64_t now = 11000 * MS; now < 21000 * MS; now += 50 * MS) {
        datagram_from(engine, now, ip("10.0.0.2"), 1000, 1400);
    }
    CHECK_EQ(um_lbmrd_stats(engine)->over_budget, 0);
    um_lbmrd_destroy(engine);
}

TEST(f10_the_start_is_bounded_for_each_client_and_in_all)
{
    struct um_lbmrd_config config = {.ttl_ns = 60000 * MS,
                                     .activity_ns = 60000 * MS,
                                     .max_clients = 1000,
                                     .max_address_clients = 1000,
                                     .output_rate = 1,
                                     .output_burst = 1,
                                     .start_burst = 1 << 20,
                                     .send = record_send_all};
    memset(&wire, 0, sizeof(wire));
    struct um_lbmrd *engine = um_lbmrd_create(&config, 0);
    for (int i = 0; i < 200; i++) {
        datagram_from(engine, (uint64_t)i * MS, ip("10.0.0.2"), 1000, 100);
    }
    CHECK(wire.count >= 64 && wire.count <= 65); /* and one that the newcomers may overdraw by */
    wire.count = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        datagram_from(engine, 300 * MS, htonl(0x0a030000u + i), 1000, 100);
    }
    CHECK(wire.count > 1000 && wire.count <= (1 << 20) / 256 + 1000);
    wire.count = 0;
    datagram_from(engine, 10001 * MS, ip("10.9.0.1"), 1000, 100); /* came after the start */
    CHECK_EQ(wire.count, 0);
    um_lbmrd_destroy(engine);
}

static uint64_t used_time_ns;

static int costly_send(void *arg, uint32_t to, uint16_t port, const uint8_t *data, size_t len)
{
    used_time_ns += 10000; /* 10 us a copy */
    return record_send(arg, to, port, data, len);
}

static void costly_send_all(void *arg, const struct um_lbmrd_peer *peers, size_t count, const uint8_t *data, size_t len,
                            int *errors)
{
    for (size_t i = 0; i < count; i++) {
        errors[i] = costly_send(arg, peers[i].ip, peers[i].port, data, len);
    }
}

static uint64_t used_time(void *arg)
{
    return used_time_ns;
}

static struct um_lbmrd *make_costly(uint64_t (*had_ns)(void *arg))
{
    struct um_lbmrd_config config = {.ttl_ns = 60000 * MS,
                                     .activity_ns = 60000 * MS,
                                     .max_clients = 2000,
                                     .max_address_clients = 1000,
                                     .output_rate = 1u << 30,
                                     .output_burst = 1u << 30,
                                     .time_rate = 100 * MS,
                                     .time_burst = 200 * MS,
                                     .cpu_ns = used_time,
                                     .had_ns = had_ns,
                                     .send = costly_send_all};
    memset(&wire, 0, sizeof(wire));
    return um_lbmrd_create(&config, 0);
}

TEST(f10_what_newcomers_send_has_a_budget_of_processor_time_and_others_do_not_feel_it)
{
    struct um_lbmrd *engine = make_costly(NULL);
    for (uint64_t now = 0; now <= 11000 * MS; now += 1000 * MS) {
        for (uint16_t port = 1; port <= 1000; port++) {
            keepalive_from(engine, now, "10.0.0.2", port);
        }
    }
    uint64_t before = used_time_ns;
    for (uint32_t i = 0; i < 10000; i++) { /* two seconds: each would take 10 ms and more */
        query_from(engine, 11000 * MS + i * MS / 5, htonl(0x0b000000u + i), (uint16_t)(i + 1));
    }
    CHECK(used_time_ns - before >= 300 * MS);
    CHECK(used_time_ns - before <= 200 * MS + 2 * 100 * MS + 20 * MS); /* burst, rate, one that is overdrawn */
    CHECK_EQ(um_lbmrd_stats(engine)->newcomers_ns, used_time_ns - before);
    CHECK(um_lbmrd_stats(engine)->over_budget > 9900);
    wire.count = 0;
    query_from(engine, 13000 * MS, ip("10.0.0.2"), 1); /* known: pays with bytes of its own */
    CHECK(wire.count >= 1000);
    um_lbmrd_destroy(engine);
}

static uint64_t had_time(void *arg)
{
    return used_time_ns; /* never idle: of all other time somebody else had the processor */
}

TEST(f10_newcomers_have_a_share_of_what_the_daemon_gets_where_that_is_less_than_theirs)
{
    struct um_lbmrd *engine = make_costly(had_time);
    for (uint16_t port = 1; port <= 1000; port++) {
        keepalive_from(engine, 0, "10.0.0.2", port);
    }
    uint64_t before = used_time_ns;
    for (uint32_t i = 0; i < 10000; i++) { /* of 100 s the daemon gets a few: each would take 10 ms and more */
        query_from(engine, (11000 + i * 10) * MS, htonl(0x0b000000u + i), (uint16_t)(i + 1));
    }
    CHECK(used_time_ns - before >= 200 * MS);
    CHECK(used_time_ns - before <= 200 * MS + (used_time_ns - before) / 10 + 20 * MS);
    um_lbmrd_destroy(engine);
}

TEST(f10_a_context_that_sends_no_keepalives_stays_served)
{
    struct um_lbmrd *engine = make_engine(10);
    for (uint64_t now = 0; now <= 30000 * MS; now += 500 * MS) {
        query_from(engine, now, ip("10.0.0.2"), 1000);
        um_lbmrd_on_timer(engine, now);
    }
    CHECK_EQ(um_lbmrd_clients(engine), 1);
    CHECK_EQ(wire.count, 61);
    um_lbmrd_destroy(engine);
}

TEST(f10_in_a_full_table_the_silent_make_room_for_the_new)
{
    struct um_lbmrd_config config = {.ttl_ns = 60000 * MS,
                                     .activity_ns = 60000 * MS,
                                     .max_clients = 3,
                                     .max_address_clients = 3,
                                     .output_rate = 1000000,
                                     .output_burst = 1000000,
                                     .send = record_send_all};
    memset(&wire, 0, sizeof(wire));
    struct um_lbmrd *engine = um_lbmrd_create(&config, 0);
    keepalive_from(engine, 0, "10.9.0.1", 1);
    keepalive_from(engine, 0, "10.9.0.2", 1);
    keepalive_from(engine, 0, "10.0.0.2", 1);
    keepalive_from(engine, 14000 * MS, "10.0.0.2", 1);
    keepalive_from(engine, 14000 * MS, "10.0.0.3", 1);
    CHECK_EQ(um_lbmrd_stats(engine)->refused_clients, 1); /* nobody silent for long enough */
    keepalive_from(engine, 15000 * MS, "10.0.0.3", 1);
    CHECK_EQ(um_lbmrd_stats(engine)->evicted_clients, 1);
    wire.count = 0;
    query_from(engine, 15000 * MS, ip("10.0.0.2"), 1);
    CHECK_EQ(wire.count, 3);
    for (int i = 0; i < 3; i++) {
        CHECK(wire.sent[i].ip != ip("10.9.0.1"));
    }
    um_lbmrd_destroy(engine);
}

TEST(f10_clients_that_come_and_go_cost_few_log_lines)
{
    struct um_lbmrd *engine = make_engine(16384);
    um_log_set_proc(count_log, NULL);
    lines = 0;
    for (uint32_t i = 0; i < 10000; i++) {
        query_from(engine, i * MS / 10, htonl(0x0b000000u + i), (uint16_t)i);
    }
    for (uint64_t now = 1000 * MS; now <= 5000 * MS; now += 500 * MS) {
        um_lbmrd_on_timer(engine, now);
    }
    CHECK_EQ(um_lbmrd_clients(engine), 0);
    CHECK(lines <= 3 * (UM_LOG_ORIGINS_EACH + 2)); /* of each of three kinds */
    um_log_set_proc(drop_log, NULL);
    um_lbmrd_destroy(engine);
}
