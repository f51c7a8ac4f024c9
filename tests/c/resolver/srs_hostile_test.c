/* The SRS engine against clients that break the rules, are silent, slow or too many: refused, counted, bounded, and the
 * others notice nothing. */
#include <time.h>

#include "base/um_log.h"
#include "base/um_random.h"
#include "um_test_srs.h"

static const struct um_srs_stats *stats_of(const struct test_srs *srs)
{
    return um_srs_engine_stats(srs->engine);
}

static int quiet(int level, const char *message, void *clientd)
{
    return 0;
}

static void start(struct test_srs *srs, void (*change)(struct um_srs_config *))
{
    um_log_set_proc(quiet, NULL);
    test_srs_start(srs, change);
}

TEST(x3_registrations_that_are_not_acceptable_are_refused)
{
    struct test_srs srs;
    struct test_client client = {0};
    start(&srs, NULL);
    test_client_connect(&client, &srs, 1);
    test_client_setup(&client);
    test_client_register(&client, UM_LBMSRS_APPLICATION, 9);
    CHECK(client.peer == NULL);
    CHECK_EQ(client.error, UM_RSOCKET_REJECTED);
    test_client_connect(&client, &srs, 1);
    test_client_setup(&client);
    test_client_register(&client, 3, UM_LBMSRS_FILTER);
    CHECK(client.peer == NULL);
    test_client_connect(&client, &srs, 1);
    test_client_setup(&client);
    test_client_stream(&client, 128); /* before it has registered */
    CHECK(client.peer == NULL);
    test_client_connect(&client, &srs, 1);
    test_client_register(&client, UM_LBMSRS_APPLICATION, UM_LBMSRS_FILTER); /* before its set-up */
    CHECK(client.peer == NULL);
    CHECK_EQ(stats_of(&srs)->refused_clients, 4);
    CHECK_EQ(stats_of(&srs)->active_clients, 0);
    um_srs_engine_destroy(srs.engine);
}

TEST(x3_set_ups_with_impossible_intervals_are_rejected)
{
    static const struct {
        uint32_t keepalive, lifetime;
        bool good;
    } setups[] = {{500, 1000, true},   {499, 20000, false}, {60000, 120000, true},   {60001, 200000, false},
                  {5000, 9999, false}, {5000, 10000, true}, {0x80000000u, 0, false}, {0, 0, false}};
    struct test_srs srs;
    start(&srs, NULL);
    for (size_t i = 0; i < sizeof(setups) / sizeof(setups[0]); i++) {
        struct test_client client = {0};
        struct um_rsocket_frame frame;
        test_client_connect(&client, &srs, 1);
        um_rsocket_setup(&frame, setups[i].keepalive, setups[i].lifetime);
        test_client_send(&client, &frame);
        CHECK_EQ(client.peer != NULL, setups[i].good);
        CHECK_EQ(client.error, setups[i].good ? 0 : UM_RSOCKET_REJECTED_SETUP);
        test_client_leave(&client);
    }
    um_srs_engine_destroy(srs.engine);
}

TEST(x3_who_does_not_register_in_time_is_closed)
{
    struct test_srs srs;
    struct test_client idle = {0}, half = {0}, good = {0};
    start(&srs, NULL);
    test_client_join(&good, &srs, 1, UM_LBMSRS_FILTER);
    test_client_connect(&idle, &srs, 2);
    test_client_connect(&half, &srs, 3);
    test_client_setup(&half);
    for (int i = 0; i < 12; i++) {
        test_client_keepalive(&half); /* which does not prolong it */
        test_client_keepalive(&good);
        test_srs_run(&srs, 1 * SECONDS);
    }
    CHECK(idle.peer == NULL && half.peer == NULL && good.peer != NULL);
    CHECK_EQ(stats_of(&srs)->late_registrations, 2);
    um_srs_engine_destroy(srs.engine);
}

TEST(x3_a_silent_client_is_closed_when_its_lifetime_is_over)
{
    struct test_srs srs;
    struct test_client silent = {0}, good = {0};
    start(&srs, NULL);
    test_client_join(&silent, &srs, 1, UM_LBMSRS_FILTER);
    test_client_join(&good, &srs, 2, UM_LBMSRS_FILTER);
    for (int i = 0; i < 19; i++) {
        test_client_keepalive(&good);
        test_srs_run(&srs, 1 * SECONDS);
    }
    CHECK(silent.peer != NULL);
    test_client_keepalive(&good);
    test_srs_run(&srs, 2 * SECONDS);
    CHECK(silent.peer == NULL && good.peer != NULL);
    CHECK_EQ(stats_of(&srs)->silent_clients, 1);
    CHECK_EQ(good.keepalives, 20);
    um_srs_engine_destroy(srs.engine);
}

static void few(struct um_srs_config *config)
{
    config->max_connections = 20;
    config->max_address_connections = 10;
    config->max_unregistered = 8;
    config->max_address_unregistered = 5;
    config->max_sessions = 15;
}

TEST(x3_connections_have_a_bound_for_each_address_and_in_all)
{
    struct test_srs srs;
    struct test_client client[40] = {0};
    start(&srs, few);
    for (int i = 0; i < 20; i++) {
        test_client_connect(&client[i], &srs, (uint32_t)i);
        CHECK_EQ(client[i].peer != NULL, i < 5);
    }
    for (int i = 20; i < 40; i++) {
        client[i].srs = &srs;
        client[i].peer = um_srs_engine_connect(srs.engine, srs.now, &client[i], (uint32_t)i, 1);
        CHECK_EQ(client[i].peer != NULL, i < 23);
    }
    CHECK_EQ(stats_of(&srs)->refused_connections, 15 + 17);
    test_srs_run(&srs, 11 * SECONDS);
    CHECK_EQ(stats_of(&srs)->late_registrations, 8);
    for (int i = 0; i < 12; i++) {
        test_client_join(&client[i], &srs, (uint32_t)i, UM_LBMSRS_FILTER);
        CHECK_EQ(client[i].peer != NULL, i < 10);
    }
    um_srs_engine_destroy(srs.engine);
}

static void small_state(struct um_srs_config *config)
{
    config->max_state_bytes = 100000;
    config->max_address_bytes = 60000;
    config->max_session_patterns = 3;
    config->max_leaves = 10;
}

TEST(x3_state_has_a_bound_and_what_is_beyond_is_refused_and_counted)
{
    struct test_srs srs;
    struct test_client client = {0};
    char topic[32];
    start(&srs, small_state);
    test_client_join(&client, &srs, 1, UM_LBMSRS_FILTER);
    for (uint32_t i = 0; i < 5000; i++) {
        snprintf(topic, sizeof(topic), "t%u", i);
        test_client_sir(&client, i, topic);
        test_client_say(&client, UM_LBMSRS_RIR, 0, topic, "");
        snprintf(topic, sizeof(topic), "^p%u", i);
        test_client_say(&client, UM_LBMSRS_WIR, 0, topic, "");
        test_client_say(&client, UM_LBMSRS_SLR, i % 20, "t0", TEST_SOURCE);
    }
    CHECK(um_srs_engine_bytes(srs.engine) <= 100000);
    CHECK(stats_of(&srs)->refused_records > 10000);
    CHECK(stats_of(&srs)->active_patterns <= 3);
    CHECK(client.peer != NULL);
    test_client_leave(&client);
    um_srs_engine_destroy(srs.engine);
}

static void short_queue(struct um_srs_config *config)
{
    config->max_queue = 1000;
}

TEST(x3_a_client_that_takes_nothing_is_closed_and_the_others_are_told_all)
{
    struct test_srs srs;
    struct test_client source = {0}, slow = {0}, good = {0};
    start(&srs, short_queue);
    test_client_join(&source, &srs, 1, UM_LBMSRS_FILTER);
    test_client_join(&good, &srs, 3, UM_LBMSRS_FLOOD);
    test_client_grant(&good, 100000);
    test_client_connect(&slow, &srs, 2);
    test_client_setup(&slow);
    test_client_register(&slow, UM_LBMSRS_APPLICATION, UM_LBMSRS_FLOOD);
    test_client_stream(&slow, 1);
    for (uint32_t i = 0; i < 5000; i++) {
        test_client_sir(&source, i, "orders");
        test_srs_run(&srs, 1 * MS);
    }
    test_srs_run(&srs, 100 * MS);
    CHECK(slow.peer == NULL);
    CHECK_EQ(stats_of(&srs)->slow_clients, 1);
    CHECK_EQ(good.sirs, 5000);
    /* What it asks for when it comes back is no reason to close it, however much that is. */
    test_client_connect(&slow, &srs, 2);
    test_client_setup(&slow);
    test_client_register(&slow, UM_LBMSRS_APPLICATION, UM_LBMSRS_FLOOD);
    test_client_stream(&slow, 1);
    test_srs_run(&srs, 1 * SECONDS);
    CHECK(slow.peer != NULL);
    test_client_grant(&slow, 128);
    test_srs_run(&srs, 1 * SECONDS);
    CHECK(slow.sirs >= 5000);
    um_srs_engine_destroy(srs.engine);
}

TEST(x3_streams_that_break_the_rules_end_the_connection)
{
    struct test_srs srs;
    struct test_client client = {0};
    static const struct um_rsocket_frame bad[] = {
        {.type = UM_RSOCKET_REQUEST_FNF, .stream = 6},                              /* even */
        {.type = UM_RSOCKET_REQUEST_FNF, .stream = 3},                              /* used already */
        {.type = UM_RSOCKET_REQUEST_FNF, .stream = 9, .flags = UM_RSOCKET_FOLLOWS}, /* in fragments */
        {.type = UM_RSOCKET_REQUEST_STREAM, .stream = 9, .request_n = 1},           /* a second stream */
        {.type = UM_RSOCKET_PAYLOAD, .stream = 3, .flags = UM_RSOCKET_NEXT},        /* not a client's */
        {.type = UM_RSOCKET_REQUEST_CHANNEL, .stream = 9, .request_n = 1},
        {.type = UM_RSOCKET_SETUP, .major = 1, .keepalive_ms = 5000, .lifetime_ms = 20000},
    };
    start(&srs, NULL);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        test_client_join(&client, &srs, 1, UM_LBMSRS_FILTER);
        CHECK(client.peer != NULL);
        test_client_send(&client, &bad[i]);
        CHECK(client.peer == NULL);
        CHECK(client.error != 0);
    }
    CHECK_EQ(stats_of(&srs)->bad_frames, sizeof(bad) / sizeof(bad[0]));
    um_srs_engine_destroy(srs.engine);
}

TEST(x3_a_broken_batch_keeps_what_came_before_it_and_the_connection)
{
    struct test_srs srs;
    struct test_client client = {0};
    uint8_t otid[UM_LBMSRS_OTID_LEN], instance[UM_LBMSRS_INSTANCE_LEN], data[1024];
    struct um_srs_client_stats stats;
    start(&srs, NULL);
    test_client_join(&client, &srs, 1, UM_LBMSRS_FILTER);
    struct um_lbmsrs_record record = test_record(UM_LBMSRS_SIR, 1, 1, "orders", TEST_SOURCE, otid, instance);
    size_t len = um_lbmsrs_put(&record, data, sizeof(data));
    memset(data + len, 0xff, 50);
    test_client_batch(&client, data, len + 50);
    um_srs_peer_stats(client.peer, &stats);
    CHECK_EQ(stats.invalid_messages, 1);
    CHECK_EQ(stats_of(&srs)->active_sources, 1);
    um_srs_engine_destroy(srs.engine);
}

/* Random clients do random things, half of them nonsense; whatever comes, the sums are right and all is given back. */
TEST(x3_random_clients_leave_nothing_behind)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct test_srs srs;
        struct test_client client[12] = {0};
        struct um_rng rng;
        um_rng_seed(&rng, seed);
        start(&srs, few);
        for (int step = 0; step < 3000; step++) {
            struct test_client *c = &client[um_rng_range(&rng, 0, 11)];
            uint32_t number = (uint32_t)um_rng_range(&rng, 0, 30);
            char topic[16], pattern[16];
            snprintf(topic, sizeof(topic), "t%u", number);
            snprintf(pattern, sizeof(pattern), "^t%u", number % 5);
            if (c->peer == NULL) {
                test_client_join(c, &srs, (uint32_t)um_rng_range(&rng, 1, 9), (uint8_t)um_rng_range(&rng, 0, 3));
                continue;
            }
            switch (um_rng_range(&rng, 0, 12)) {
            case 0:
                test_client_leave(c);
                break;
            case 1:
            case 2:
            case 3:
                test_client_sir(c, number, topic);
                break;
            case 4:
                test_client_say(c, UM_LBMSRS_SDR, number, topic, "");
                break;
            case 5:
                test_client_say(c, UM_LBMSRS_RIR, 0, topic, "");
                break;
            case 6:
                test_client_say(c, UM_LBMSRS_RDR, 0, topic, "");
                break;
            case 7:
                test_client_say(c, UM_LBMSRS_WIR, 0, pattern, "");
                break;
            case 8:
                test_client_say(c, UM_LBMSRS_WDR, 0, pattern, "");
                break;
            case 9:
                test_client_say(c, UM_LBMSRS_SLR, number, topic, TEST_SOURCE);
                break;
            case 10:
                test_client_grant(c, (uint32_t)um_rng_range(&rng, 1, 5));
                break;
            case 11:
                c->blocked = !c->blocked;
                if (!c->blocked) {
                    um_srs_peer_on_writable(c->peer, srs.now);
                }
                break;
            default: {
                uint8_t junk[40];
                for (size_t i = 0; i < sizeof(junk); i++) {
                    junk[i] = (uint8_t)um_rng_u32(&rng);
                }
                test_client_batch(c, junk, sizeof(junk));
            }
            }
            if (um_rng_range(&rng, 0, 3) == 0) {
                test_srs_run(&srs, um_rng_range(&rng, 0, 300) * MS);
            }
        }
        for (int i = 0; i < 12; i++) {
            test_client_leave(&client[i]);
        }
        test_srs_run(&srs, 86500 * SECONDS);
        CHECK_EQ(um_srs_engine_bytes(srs.engine), 0);
        CHECK_EQ(um_srs_engine_topics(srs.engine), 0);
        const struct um_srs_stats *stats = stats_of(&srs);
        CHECK(stats->active_sources == 0 && stats->inactive_sources == 0 && stats->active_clients == 0);
        CHECK(stats->active_interest == 0 && stats->inactive_interest == 0);
        CHECK(stats->active_patterns == 0 && stats->inactive_patterns == 0);
        um_srs_engine_destroy(srs.engine);
    }
}

static void short_leaves(struct um_srs_config *config)
{
    config->max_queue = 100;
}

TEST(x3_answers_to_leaves_do_not_pile_up_for_a_client_that_takes_nothing)
{
    struct test_srs srs;
    struct test_client source = {0}, slow = {0};
    start(&srs, short_leaves);
    test_client_join(&source, &srs, 1, UM_LBMSRS_FILTER);
    test_client_connect(&slow, &srs, 2);
    test_client_setup(&slow);
    test_client_register(&slow, UM_LBMSRS_APPLICATION, UM_LBMSRS_FILTER);
    test_client_stream(&slow, 1);
    for (uint32_t i = 0; i < 200; i++) {
        uint8_t otid[UM_LBMSRS_OTID_LEN], instance[UM_LBMSRS_INSTANCE_LEN];
        struct um_lbmsrs_record leave = test_record(UM_LBMSRS_SLR, 1, i, "orders", TEST_SOURCE, otid, instance);
        test_client_sir(&source, i, "orders");
        test_client_put(&slow, &leave);
        test_srs_run(&srs, 5 * MS);
    }
    test_srs_run(&srs, 1 * SECONDS);
    CHECK(slow.peer == NULL && source.peer != NULL);
    CHECK_EQ(stats_of(&srs)->slow_clients, 1);
    um_srs_engine_destroy(srs.engine);
}

TEST(x3_what_waits_for_a_router_counts_as_taken)
{
    uint64_t bytes[2];
    for (int i = 0; i < 2; i++) {
        struct test_srs srs;
        struct test_client client = {0}, router = {0};
        char topic[32];
        start(&srs, NULL);
        test_client_join(&client, &srs, 1, UM_LBMSRS_FILTER);
        test_client_join(&router, &srs, 2, i == 0 ? UM_LBMSRS_FILTER : UM_LBMSRS_FILTER_FORWARD);
        router.blocked = true;
        test_client_keepalive(&router); /* from now on it takes nothing */
        for (uint32_t t = 0; t < 1000; t++) {
            snprintf(topic, sizeof(topic), "a topic with a long name.%u", t);
            test_client_say(&client, UM_LBMSRS_RIR, 0, topic, "");
        }
        bytes[i] = um_srs_engine_bytes(srs.engine);
        um_srs_engine_destroy(srs.engine);
    }
    CHECK(bytes[1] >= bytes[0] + 1000 * 50);
}

static void small_shares(struct um_srs_config *config)
{
    config->max_address_sessions = 3;
    config->max_address_patterns = 2;
}

TEST(x3_sessions_and_patterns_have_a_bound_for_each_address)
{
    struct test_srs srs;
    struct test_client client[4] = {{0}};
    start(&srs, small_shares);
    for (uint32_t i = 0; i < 4; i++) {
        test_client_join(&client[i], &srs, i, UM_LBMSRS_FILTER);
        CHECK_EQ(client[i].peer != NULL, i < 3);
    }
    test_client_say(&client[0], UM_LBMSRS_WIR, 0, "^a", "");
    test_client_say(&client[1], UM_LBMSRS_WIR, 0, "^b", "");
    test_client_say(&client[2], UM_LBMSRS_WIR, 0, "^b", ""); /* the same takes nothing more */
    test_client_say(&client[2], UM_LBMSRS_WIR, 0, "^c", "");
    CHECK_EQ(stats_of(&srs)->active_patterns, 3);
    CHECK_EQ(stats_of(&srs)->refused_records, 1);
    for (int i = 0; i < 4; i++) {
        test_client_leave(&client[i]);
    }
    um_srs_engine_destroy(srs.engine);
}

static void stay(struct test_srs *srs, struct test_client *client, int seconds)
{
    for (int i = 0; i < seconds; i++) {
        test_client_keepalive(client);
        test_srs_run(srs, 1 * SECONDS);
    }
}

static void room_for_few(struct um_srs_config *config)
{
    config->max_address_bytes = 20000;
    config->source_lifetime_ns = 3 * SECONDS;
}

/* It is closed in a while and comes again, which works once there is room. */
TEST(x3_a_client_whose_records_had_no_room_says_them_again)
{
    struct test_srs srs;
    struct test_client full = {0}, late = {0};
    char topic[32];
    start(&srs, room_for_few);
    test_client_join(&full, &srs, 1, UM_LBMSRS_FILTER);
    test_client_join(&late, &srs, 2, UM_LBMSRS_FILTER);
    for (uint32_t i = 0; i < 100; i++) {
        snprintf(topic, sizeof(topic), "t%u", i);
        test_client_sir(&full, i, topic);
    }
    test_client_sir(&late, 1, "orders");
    test_client_leave(&full);
    CHECK(stats_of(&srs)->refused_records > 0);
    stay(&srs, &late, 59);
    CHECK(late.peer != NULL);
    stay(&srs, &late, 2);
    CHECK(late.peer == NULL);
    CHECK_EQ(late.error, UM_RSOCKET_CONNECTION_ERROR);
    test_client_join(&late, &srs, 2, UM_LBMSRS_FILTER);
    test_client_sir(&late, 1, "orders");
    CHECK_EQ(stats_of(&srs)->active_sources, 1);
    stay(&srs, &late, 100);
    CHECK(late.peer != NULL);
    um_srs_engine_destroy(srs.engine);
}

static uint64_t used_ns(void *arg)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * UM_NS_PER_SEC + (uint64_t)used.tv_nsec;
}

static void with_cpu(struct um_srs_config *config)
{
    config->cpu_ns = used_ns;
}

/* Sanitizers make cheap ones slow as well, but none as slow as this one with such a name. */
TEST(x3_a_pattern_that_takes_long_to_match_is_dropped_and_others_go_on)
{
    struct test_srs srs;
    struct test_client source = {0}, costly = {0}, good = {0};
    char name[241];
    start(&srs, with_cpu);
    memset(name, 'a', sizeof(name) - 1);
    name[sizeof(name) - 2] = 'b';
    name[sizeof(name) - 1] = 0;
    test_client_join(&source, &srs, 1, UM_LBMSRS_FILTER);
    test_client_join(&good, &srs, 2, UM_LBMSRS_FILTER);
    test_client_join(&costly, &srs, 3, UM_LBMSRS_FILTER);
    test_client_say(&good, UM_LBMSRS_WIR, 0, "b$", "");
    test_client_say(&costly, UM_LBMSRS_WIR, 0, "(a|aa){1,9}[cd]", "");
    test_srs_run(&srs, 20 * MS);
    test_client_sir(&source, 1, name); /* matched as a new topic */
    test_srs_run(&srs, 20 * MS);
    CHECK_EQ(stats_of(&srs)->active_patterns, 1);
    CHECK_EQ(good.sirs, 1);
    for (uint32_t i = 2; i < 20; i++) {
        name[0] = (char)('a' + i);
        test_client_sir(&source, i, name);
    }
    test_client_say(&costly, UM_LBMSRS_WIR, 0, "(aa|a){1,9}[cd]", "");
    test_srs_run(&srs, 20 * MS); /* matched when it is listed */
    CHECK_EQ(stats_of(&srs)->active_patterns, 1);
    CHECK_EQ(stats_of(&srs)->refused_records, 2);
    CHECK(costly.peer != NULL);
    um_srs_engine_destroy(srs.engine);
}

TEST(x3_after_a_standstill_nobody_is_closed_before_what_came_was_read)
{
    struct test_srs srs;
    struct test_client good = {0}, silent = {0}, fresh = {0};
    start(&srs, NULL);
    test_client_join(&good, &srs, 1, UM_LBMSRS_FILTER);
    test_client_join(&silent, &srs, 2, UM_LBMSRS_FILTER);
    test_client_connect(&fresh, &srs, 3);
    srs.now += 60 * SECONDS;
    um_srs_engine_on_timer(srs.engine, srs.now);
    CHECK(good.peer != NULL && silent.peer != NULL && fresh.peer != NULL);
    test_client_keepalive(&good);
    test_srs_run(&srs, 3 * SECONDS);
    CHECK(good.peer != NULL && silent.peer == NULL && fresh.peer == NULL);
    um_srs_engine_destroy(srs.engine);
}

static int forged_lines;

static int look_for_lines(int level, const char *message, void *clientd)
{
    forged_lines += strchr(message, '\n') != NULL || strchr(message, '\033') != NULL;
    return 0;
}

TEST(x3_what_clients_say_makes_no_lines_of_the_log)
{
    static const char evil[] = "a\nCRIT: all is lost\033[2J";
    struct test_srs srs;
    struct test_client source = {0}, other = {0};
    start(&srs, small_state);
    um_log_set_proc(look_for_lines, NULL);
    forged_lines = 0;
    test_client_join(&source, &srs, 1, UM_LBMSRS_FILTER);
    test_client_join(&other, &srs, 2, UM_LBMSRS_FILTER);
    test_client_sir(&source, 1, evil);
    test_client_sir(&source, 1, "a\nb");
    test_client_say(&source, UM_LBMSRS_SIR, 2, "orders", "a\nb");
    test_client_say(&source, UM_LBMSRS_SLR, 2, "orders", evil);
    test_client_say(&source, UM_LBMSRS_SDR, 3, evil, "");
    test_client_say(&source, UM_LBMSRS_SDR, 3, "a\nb", "");
    test_client_say(&other, UM_LBMSRS_WIR, 0, "(\n", "");
    CHECK(stats_of(&srs)->refused_records >= 2);
    CHECK_EQ(forged_lines, 0);
    um_srs_engine_destroy(srs.engine);
}
