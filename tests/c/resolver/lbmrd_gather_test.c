/* lbmrd with many clients: what several senders say shares datagrams, and nothing else changes. A plain integer is the
 * clock; a recording send function stands for one client of the crowd. */
#include <arpa/inet.h>

#include "base/um_log.h"
#include "base/um_random.h"
#include "resolver/um_lbmrd_engine.h"
#include "um_test.h"
#include "wire/um_lbmr.h"

#define MS 1000000ull
#define CLIENTS 20
#define WAIT (CLIENTS * UM_LBMRD_GATHER_CLIENT_NS)
#define SENT_MAX 4096

struct copy {
    size_t len;
    uint8_t data[1500];
};

/* What the first client got. */
static struct {
    unsigned count;
    struct copy copies[SENT_MAX];
} got;

static void on_send(void *arg, const struct um_lbmrd_peer *peers, size_t count, const uint8_t *data, size_t len,
                    int *errors)
{
    for (size_t i = 0; i < count; i++) {
        errors[i] = 0;
        if (peers[i].ip == inet_addr("10.0.0.10") && peers[i].port == 1000 && got.count < SENT_MAX && len <= 1500) {
            got.copies[got.count].len = len;
            memcpy(got.copies[got.count++].data, data, len);
        }
    }
}

static int drop_log(int level, const char *message, void *clientd)
{
    return 0;
}

static uint32_t client_ip(unsigned client)
{
    return htonl(0x0a00000au + client / 2); /* two of each address */
}

static uint16_t client_port(unsigned client)
{
    return (uint16_t)(1000 + client % 2);
}

static void from(struct um_lbmrd *engine, uint64_t now, unsigned client, const uint8_t *data, size_t len)
{
    uint8_t bytes[1500];
    memcpy(bytes, data, len);
    um_lbmrd_on_datagram(engine, now, bytes, len, client_ip(client), client_port(client));
}

static struct um_lbmrd *make_engine(const struct um_lbmrd_nat *nat)
{
    struct um_lbmrd_config config = {.ttl_ns = 60000 * MS,
                                     .activity_ns = 60000 * MS,
                                     .max_clients = 100,
                                     .max_address_clients = 100,
                                     .output_rate = 1u << 30,
                                     .output_burst = 1u << 30,
                                     .gather_clients = UM_LBMRD_GATHER_CLIENTS,
                                     .gather_client_ns = UM_LBMRD_GATHER_CLIENT_NS,
                                     .own_ip = inet_addr("10.0.0.1"),
                                     .own_port = 15380,
                                     .nat = nat,
                                     .send = on_send};
    uint8_t alive[4] = {0x02, 0, 0, 0};
    um_log_set_proc(drop_log, NULL);
    struct um_lbmrd *engine = um_lbmrd_create(&config, 0);
    for (unsigned i = 0; i < CLIENTS; i++) {
        from(engine, 0, i, alive, sizeof alive);
    }
    got.count = 0;
    return engine;
}

enum world { PLAIN, ENCRYPTED, ROUTER, NAMELESS, BARE };

/* The trailer that this client puts behind its datagrams. */
static size_t make_trailer(uint8_t out[UM_LBMR_TRAILER_MAX], unsigned client, enum world world)
{
    struct um_lbmr_trailer trailer = {.has_source_id = world != NAMELESS,
                                      .has_source_type = true,
                                      .source_type = world == ROUTER ? UM_LBMR_SOURCE_ROUTER : 0,
                                      .has_version = true,
                                      .version = 0x06110000,
                                      .version_flags = world == ENCRYPTED ? UM_LBMR_VERSION_TLS : 0};
    memset(trailer.source_id, (int)client + 1, sizeof trailer.source_id);
    return world == BARE ? 0 : um_lbmr_encode_trailer(out, &trailer);
}

static size_t make(uint8_t out[1500], unsigned client, enum world world, bool question, const char *topic)
{
    uint8_t trailer[UM_LBMR_TRAILER_MAX], record[UM_LBMR_TIR_MAX];
    size_t trailer_len = make_trailer(trailer, client, world);
    struct um_lbmr_transport transport = {.code = UM_LBMR_TCP, .known = true, .port = 14371};
    struct um_lbmr_builder builder;
    struct um_lbmr_tir_writer writer;
    um_lbmr_begin(&builder, out, 1500, 1500, UM_LBMR_NORMAL, trailer, trailer_len);
    if (question) {
        um_lbmr_add_tqr(&builder, topic, strlen(topic));
    } else {
        um_lbmr_tir_begin(&writer, record, sizeof record, topic, 7);
        um_lbmr_add_tir(&builder, record, um_lbmr_tir_end(&writer, &transport));
    }
    return um_lbmr_finish(&builder);
}

static void say(struct um_lbmrd *engine, uint64_t now, unsigned client, enum world world, bool question,
                const char *topic)
{
    uint8_t bytes[1500];
    from(engine, now, client, bytes, make(bytes, client, world, question, topic));
}

/* Of a datagram that is not there, or not valid: zeroes. */
static struct um_lbmr_msg parsed(unsigned copy)
{
    struct um_lbmr_msg msg = {0}, none = {0};
    unsigned detail;
    bool good = copy < got.count &&
                um_lbmr_validate(got.copies[copy].data, got.copies[copy].len, &detail) == UM_LBMR_OK &&
                um_lbmr_parse(got.copies[copy].data, got.copies[copy].len, &msg, &detail) == UM_LBMR_OK;
    return good ? msg : none;
}

static bool is_verbatim(unsigned copy, unsigned client, enum world world, bool question, const char *topic)
{
    uint8_t bytes[1500];
    size_t len = make(bytes, client, world, question, topic);
    um_lbmr_substitute_address(bytes, len, client_ip(client));
    return copy < got.count && got.copies[copy].len == len && memcmp(got.copies[copy].data, bytes, len) == 0;
}

TEST(what_comes_soon_after_something_forwarded_shares_a_datagram)
{
    struct um_lbmrd *engine = make_engine(NULL);
    say(engine, 100 * MS, 1, PLAIN, true, "at once");
    CHECK(got.count == 1 && is_verbatim(0, 1, PLAIN, true, "at once"));
    say(engine, 101 * MS, 2, PLAIN, false, "two");
    say(engine, 101 * MS, 3, PLAIN, true, "asked");
    say(engine, 101 * MS, 5, PLAIN, false, "five");
    CHECK_EQ(got.count, 1);
    CHECK_EQ(um_lbmrd_next_timer(engine), 100 * MS + WAIT);
    um_lbmrd_on_timer(engine, 100 * MS + WAIT - 1);
    CHECK_EQ(got.count, 1);
    um_lbmrd_on_timer(engine, 100 * MS + WAIT);
    CHECK_EQ(got.count, 3);
    struct um_lbmr_msg msg = parsed(1);
    struct um_lbmr_cursor cursor;
    struct um_lbmr_tir tir;
    CHECK(msg.tirs == 2 && msg.tqrs == 0 && !msg.trailer.has_source_id && msg.trailer.version == 0x06110000);
    um_lbmr_records(&msg, &cursor);
    CHECK(um_lbmr_next_tir(&cursor, &tir) && strcmp(tir.name, "two") == 0 && tir.transport.ip == client_ip(2));
    CHECK(um_lbmr_next_tir(&cursor, &tir) && strcmp(tir.name, "five") == 0 && tir.transport.ip == client_ip(5));
    CHECK(is_verbatim(2, 3, PLAIN, true, "asked")); /* nobody to share with */
    CHECK_EQ(um_lbmrd_stats(engine)->gathered, 2);
    say(engine, 200 * MS, 4, PLAIN, false, "later");
    CHECK(got.count == 4 && is_verbatim(3, 4, PLAIN, false, "later"));
    um_lbmrd_destroy(engine);
}

TEST(what_one_sender_says_keeps_its_trailer)
{
    struct um_lbmrd *engine = make_engine(NULL);
    say(engine, 100 * MS, 1, PLAIN, false, "first");
    say(engine, 101 * MS, 2, PLAIN, false, "two");
    say(engine, 101 * MS, 2, PLAIN, false, "three");
    um_lbmrd_on_timer(engine, 200 * MS);
    struct um_lbmr_msg msg = parsed(1);
    CHECK(msg.tirs == 2 && msg.trailer.has_source_id && msg.trailer.source_id[0] == 3);
    um_lbmrd_destroy(engine);
}

TEST(worlds_are_not_mixed_and_what_cannot_be_shared_goes_at_once_behind_what_its_sender_said_before)
{
    struct um_lbmrd *engine = make_engine(NULL);
    say(engine, 100 * MS, 1, PLAIN, false, "first");
    say(engine, 101 * MS, 2, PLAIN, false, "plain");
    say(engine, 101 * MS, 3, ENCRYPTED, false, "encrypted");
    say(engine, 101 * MS, 4, ROUTER, false, "router");
    say(engine, 101 * MS, 5, BARE, true, "bare");
    say(engine, 101 * MS, 6, NAMELESS, true, "nameless");
    CHECK_EQ(got.count, 4);
    CHECK(is_verbatim(1, 4, ROUTER, false, "router") && is_verbatim(2, 5, BARE, true, "bare") &&
          is_verbatim(3, 6, NAMELESS, true, "nameless"));
    say(engine, 101 * MS, 2, NAMELESS, false, "end");
    CHECK(got.count == 6 && is_verbatim(4, 2, PLAIN, false, "plain") && is_verbatim(5, 2, NAMELESS, false, "end"));
    um_lbmrd_on_timer(engine, 200 * MS);
    CHECK(got.count == 7 && is_verbatim(6, 3, ENCRYPTED, false, "encrypted"));
    um_lbmrd_destroy(engine);
}

TEST(with_few_clients_all_goes_as_it_comes)
{
    struct um_lbmrd_config config = {.max_clients = 100,
                                     .max_address_clients = 100,
                                     .ttl_ns = 60000 * MS,
                                     .activity_ns = 60000 * MS,
                                     .output_rate = 1u << 30,
                                     .output_burst = 1u << 30,
                                     .gather_clients = UM_LBMRD_GATHER_CLIENTS,
                                     .gather_client_ns = UM_LBMRD_GATHER_CLIENT_NS,
                                     .send = on_send};
    struct um_lbmrd *engine = um_lbmrd_create(&config, 0);
    got.count = 0;
    for (unsigned i = 0; i < UM_LBMRD_GATHER_CLIENTS - 1; i++) {
        say(engine, 100 * MS, i, PLAIN, true, "asked");
        CHECK(got.count == i + 1 && is_verbatim(i, i, PLAIN, true, "asked"));
    }
    um_lbmrd_destroy(engine);
}

/* Every sender numbers what it says, in its topic names. */
struct said {
    unsigned questions[CLIENTS], advertisements[CLIENTS];
};

static void expect_next(unsigned next[CLIENTS], const char *name)
{
    unsigned client = 0, number = 0;
    CHECK(sscanf(name, "%u/%u/", &client, &number) == 2 && client < CLIENTS);
    CHECK_EQ(number, next[client]);
    next[client]++;
}

static void count_what_came(struct said *came)
{
    struct um_lbmr_cursor cursor;
    struct um_lbmr_tqr tqr;
    struct um_lbmr_tir tir;
    for (unsigned i = 0; i < got.count; i++) {
        struct um_lbmr_msg msg = parsed(i);
        CHECK(msg.tqrs + msg.tirs > 0);
        um_lbmr_records(&msg, &cursor);
        while (um_lbmr_next_tqr(&cursor, &tqr)) {
            expect_next(came->questions, tqr.name);
        }
        while (um_lbmr_next_tir(&cursor, &tir)) {
            expect_next(came->advertisements, tir.name);
        }
        CHECK_EQ(cursor.fault, UM_LBMR_OK);
        CHECK(got.copies[i].len <= 1472);
    }
    got.count = 0;
}

TEST(everything_comes_once_and_in_the_order_of_its_sender_whatever_the_mixture)
{
    struct um_lbmrd *engine = make_engine(NULL);
    static struct said sent, came;
    struct um_rng rng;
    uint64_t now = 100 * MS;
    memset(&sent, 0, sizeof sent);
    memset(&came, 0, sizeof came);
    um_rng_seed(&rng, 17);
    for (unsigned i = 0; i < 20000; i++) {
        unsigned client = (unsigned)um_rng_range(&rng, 0, CLIENTS - 1);
        bool question = um_rng_range(&rng, 0, 1) != 0;
        /* Mostly the same world, so that many share. */
        enum world world = um_rng_range(&rng, 0, 9) != 0 ? PLAIN : (enum world)um_rng_range(&rng, 0, BARE);
        unsigned *number = question ? &sent.questions[client] : &sent.advertisements[client];
        char topic[200];
        int pad = (int)um_rng_range(&rng, 0, 150);
        snprintf(topic, sizeof topic, "%u/%u/%0*d", client, (*number)++, pad, 0);
        now += um_rng_range(&rng, 0, 100000);
        if (um_lbmrd_next_timer(engine) <= now) {
            um_lbmrd_on_timer(engine, now);
        }
        say(engine, now, client, world, question, topic);
        count_what_came(&came);
    }
    um_lbmrd_on_timer(engine, now + 100 * MS);
    count_what_came(&came);
    CHECK(memcmp(&sent, &came, sizeof sent) == 0);
    CHECK(um_lbmrd_stats(engine)->gathered > 10000);
    um_lbmrd_destroy(engine);
}

TEST(what_was_gathered_and_comes_back_from_another_daemon_does_not_circle)
{
    struct um_lbmrd *engine = make_engine(NULL);
    say(engine, 100 * MS, 1, PLAIN, false, "first");
    say(engine, 100 * MS, 2, PLAIN, false, "two");
    say(engine, 100 * MS, 3, PLAIN, false, "three");
    um_lbmrd_on_timer(engine, 110 * MS);
    CHECK_EQ(got.count, 2);
    struct copy gathered = got.copies[1];
    from(engine, 111 * MS, 4, gathered.data, gathered.len);
    um_lbmrd_on_timer(engine, 200 * MS);
    CHECK_EQ(got.count, 2);
    CHECK_EQ(um_lbmrd_stats(engine)->circling, 1);
    from(engine, 250 * MS, 4, gathered.data, gathered.len); /* another daemon's, for all this one knows: as it is */
    CHECK(got.count == 3 && got.copies[2].len == gathered.len);
    CHECK(memcmp(got.copies[2].data, gathered.data, gathered.len) == 0);
    um_lbmrd_destroy(engine);
}

TEST(with_translation_an_advertisement_shares_with_those_of_its_address_only)
{
    struct um_lbmrd_nat *nat = um_lbmrd_nat_create();
    CHECK(nat != NULL && um_lbmrd_nat_ready(nat) == 0);
    struct um_lbmrd *engine = make_engine(nat);
    say(engine, 100 * MS, 0, PLAIN, false, "first");
    say(engine, 101 * MS, 2, PLAIN, false, "two");
    say(engine, 101 * MS, 3, PLAIN, false, "three"); /* the same address */
    say(engine, 101 * MS, 4, PLAIN, false, "four");
    say(engine, 101 * MS, 2, PLAIN, true, "two");
    say(engine, 101 * MS, 4, PLAIN, true, "four");
    um_lbmrd_on_timer(engine, 200 * MS);
    CHECK_EQ(got.count, 4);
    CHECK_EQ(parsed(1).tirs, 2);
    CHECK(is_verbatim(2, 4, PLAIN, false, "four"));
    CHECK_EQ(parsed(3).tqrs, 2);
    um_lbmrd_destroy(engine);
    um_lbmrd_nat_destroy(nat);
}
