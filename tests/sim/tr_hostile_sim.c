/* Topic resolution among strangers: one engine, a clock that the test moves, and
 * datagrams of forged records. What strangers can make it remember and work is
 * bounded, and the honest are served meanwhile. */
#include "sim_net.h"
#include "um_test.h"
#include "um_test_murmur.h"

#include <arpa/inet.h>
#include <string.h>
#include <time.h>

#include "base/um_mem.h"
#include "resolver/um_tr_engine.h"
#include "wire/um_lbmr.h"

#define FORGER 0x0a000063u
#define FRIEND 0x0a000002u

struct victim {
    struct um_tr_engine *engine;
    uint64_t now_ns;
    uint64_t sent;
    uint64_t cpu_ns, cpu_step_ns; /* the processor clock goes on by a step each time it is read */
    unsigned kept_share;          /* of 100 parts of the time in which the others have the processor */
    unsigned sources, gone, no_source, matches;
    char matched[64]; /* the last one */
    int refuse_match;
    uint8_t bytes[65536];
    struct um_lbmr_builder builder;
};

static enum um_tr_sent victim_send(void *io, const uint8_t *data, size_t len)
{
    ((struct victim *)io)->sent++;
    return UM_TR_SENT;
}

static void victim_set_timer(void *io, uint64_t due_ns)
{
}

static uint64_t victim_cpu_ns(void *io)
{
    struct victim *victim = io;
    return victim->cpu_ns += victim->cpu_step_ns;
}

static uint64_t victim_kept_ns(void *io)
{
    const struct victim *victim = io;
    return victim->now_ns / 100 * victim->kept_share;
}

static void on_source(void *topic_user, const struct um_tr_source *source)
{
    ((struct victim *)topic_user)->sources++;
}

static void on_source_gone(void *topic_user, const struct um_tr_source *source)
{
    ((struct victim *)topic_user)->gone++;
}

static void on_no_source(void *topic_user, bool internal)
{
    ((struct victim *)topic_user)->no_source++;
}

static int on_pattern_match(void *pattern_user, const char *topic)
{
    struct victim *victim = pattern_user;
    if (victim->refuse_match != 0) {
        return victim->refuse_match;
    }
    victim->matches++;
    snprintf(victim->matched, sizeof victim->matched, "%.63s", topic);
    return 0;
}

static void begin(struct victim *victim, uint8_t type)
{
    um_lbmr_begin(&victim->builder, victim->bytes, sizeof victim->bytes, 65507, type, NULL, 0);
}

static void open_victim(struct victim *victim, size_t cache_max)
{
    static const struct um_tr_ops ops = {
        .send = victim_send, .set_timer = victim_set_timer, .cpu_ns = victim_cpu_ns, .kept_ns = victim_kept_ns};
    static const struct um_resolver_events events = {.on_source = on_source,
                                                     .on_source_gone = on_source_gone,
                                                     .on_no_source = on_no_source,
                                                     .on_pattern_match = on_pattern_match};
    struct um_tr_config config = {.cache = true,
                                  .cache_max = cache_max,
                                  .extended_options = true,
                                  .queries_possible = true,
                                  .source_datagram_max = 8192,
                                  .receiver_datagram_max = 8192};
    memset(victim, 0, sizeof *victim);
    victim->now_ns = SIM_SEC;
    victim->engine = um_tr_engine_create(&config, &ops, victim, &events, victim, victim->now_ns);
    CHECK(victim->engine != NULL);
    begin(victim, UM_LBMR_NORMAL);
}

static void deliver(struct victim *victim, uint32_t from_ip)
{
    if (!um_lbmr_builder_empty(&victim->builder)) {
        um_tr_engine_on_packet(victim->engine, victim->now_ns, victim->bytes, um_lbmr_finish(&victim->builder),
                               htonl(from_ip), 12965);
    }
    begin(victim, UM_LBMR_NORMAL);
}

/* An advertisement of a TCP source, put into the datagram under way; a full one is delivered. */
static void advertise(struct victim *victim, uint32_t from_ip, const char *topic, uint32_t ip, uint16_t port,
                      uint32_t index)
{
    uint8_t record[UM_LBMR_TIR_MAX];
    struct um_lbmr_tir_writer writer;
    struct um_lbmr_transport transport = {
        .code = UM_LBMR_TCP, .ip = htonl(ip), .port = port, .session_id = index, .known = true};
    um_lbmr_tir_begin(&writer, record, sizeof record, topic, index);
    size_t len = um_lbmr_tir_end(&writer, &transport);
    if (!um_lbmr_add_tir(&victim->builder, record, len)) {
        deliver(victim, from_ip);
        CHECK(um_lbmr_add_tir(&victim->builder, record, len));
    }
}

static uint64_t processor_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * SIM_SEC + (uint64_t)used.tv_nsec;
}

/* With the hash of fixed seed these took minutes; the bound only ends that. */
TEST(f6_sixty_thousand_topics_that_collide_in_murmur2_cost_what_others_cost)
{
    struct victim victim;
    struct um_tr_stats stats;
    open_victim(&victim, 0);
    uint64_t before_ns = processor_ns();
    for (uint32_t i = 0; i < 60000; i++) {
        char name[13];
        murmur2_twin(i, name);
        advertise(&victim, FORGER, name, FORGER, 14371, i);
    }
    deliver(&victim, FORGER);
    CHECK(processor_ns() - before_ns < 3 * SIM_SEC);
    um_tr_engine_get_stats(victim.engine, &stats);
    CHECK_EQ(stats.receiver_topics, 60000);
    um_tr_engine_destroy(victim.engine);
}

/* ---- the cache ---- */

static bool matches_orders(void *pattern_user, const char *topic)
{
    return strncmp(topic, "orders", 6) == 0;
}

static const struct um_tr_timing no_queries;

static size_t topics_known(struct victim *victim)
{
    struct um_tr_stats stats;
    um_tr_engine_get_stats(victim->engine, &stats);
    return stats.receiver_topics;
}

static void forge_topics(struct victim *victim, uint32_t first, uint32_t count, bool one_address)
{
    for (uint32_t i = first; i < first + count; i++) {
        char name[24];
        snprintf(name, sizeof name, "forged.%u", i);
        advertise(victim, FORGER, name, one_address ? FORGER : 0x0b000001u + i, 14371, i);
    }
    deliver(victim, FORGER);
}

/* Time passes, and the engine's timer with it. */
static void pass(struct victim *victim, uint64_t ns, uint64_t step_ns)
{
    for (uint64_t gone_ns = 0; gone_ns < ns; gone_ns += step_ns) {
        victim->now_ns += step_ns;
        um_tr_engine_on_timer(victim->engine, victim->now_ns);
    }
}

TEST(f7_patterns_get_new_topics_after_any_number_of_forged_sources)
{
    struct victim victim;
    open_victim(&victim, 1000);
    CHECK(um_tr_engine_subscribe_pattern(victim.engine, victim.now_ns, "^orders", 1, &no_queries, matches_orders,
                                         &victim) != NULL);
    forge_topics(&victim, 0, 20000, false);
    CHECK(topics_known(&victim) <= 1000);
    for (uint32_t i = 0; i < 5; i++) {
        char name[24];
        snprintf(name, sizeof name, "orders.%u", i);
        advertise(&victim, FRIEND, name, FRIEND, 14371, i);
        deliver(&victim, FRIEND);
        CHECK_EQ(victim.matches, i + 1);
        CHECK_STR(victim.matched, name);
        forge_topics(&victim, 20000 + 3000 * i, 3000, false);
    }
    um_tr_engine_destroy(victim.engine);
}

TEST(f7_sources_not_heard_of_any_more_are_forgotten)
{
    struct victim victim;
    struct um_tr_stats stats;
    open_victim(&victim, 20000);
    forge_topics(&victim, 0, 6000, false);
    CHECK_EQ(topics_known(&victim), 6000);
    for (unsigned minute = 0; minute < 15; minute++) {
        advertise(&victim, FRIEND, "alive", FRIEND, 14371, 1);
        deliver(&victim, FRIEND);
        pass(&victim, 60 * SIM_SEC, SIM_SEC);
    }
    CHECK(topics_known(&victim) <= 2000); /* a tenth may stay for a day, as quiescent sources say nothing */
    pass(&victim, 86400 * SIM_SEC, 60 * SIM_SEC);
    CHECK_EQ(topics_known(&victim), 0);
    um_tr_engine_get_stats(victim.engine, &stats);
    CHECK_EQ(stats.cache_expired, 6001);
    um_tr_engine_destroy(victim.engine);
}

TEST(f7_the_sources_at_one_address_leave_room_for_those_at_others)
{
    struct victim victim;
    open_victim(&victim, 1000);
    CHECK(um_tr_engine_subscribe_pattern(victim.engine, victim.now_ns, "^orders", 1, &no_queries, matches_orders,
                                         &victim) != NULL);
    victim.refuse_match = -1; /* the core has no memory: the topics are wanted later */
    for (uint32_t i = 0; i < 100; i++) {
        char name[24];
        snprintf(name, sizeof name, "orders.%u", i);
        advertise(&victim, FRIEND, name, FRIEND, 14371, i);
    }
    deliver(&victim, FRIEND);
    forge_topics(&victim, 0, 20000, true);
    CHECK_EQ(topics_known(&victim), 600);
    um_tr_engine_destroy(victim.engine);
}

TEST(f7_a_source_in_use_is_not_forgotten)
{
    struct victim victim;
    struct um_tr_query_options quiet = {.sources_threshold = 1};
    lbm_transport_source_info_t info = {
        .type = LBM_TRANSPORT_TYPE_TCP, .src_ip = htonl(FRIEND), .src_port = 14371, .session_id = 7, .topic_idx = 7};
    open_victim(&victim, 100);
    struct um_tr_topic *topic = um_tr_engine_subscribe(victim.engine, victim.now_ns, "orders", &quiet, false, &victim);
    CHECK(topic != NULL);
    advertise(&victim, FRIEND, "orders", FRIEND, 14371, 7);
    deliver(&victim, FRIEND);
    CHECK_EQ(victim.sources, 1);
    um_tr_engine_source_used(victim.engine, victim.now_ns, "orders", &info);
    forge_topics(&victim, 0, 5000, false);
    pass(&victim, 2 * 86400 * SIM_SEC, 60 * SIM_SEC);
    CHECK_EQ(um_tr_topic_sources(topic), 1);
    um_tr_engine_source_ended(victim.engine, victim.now_ns, "orders", &info);
    CHECK_EQ(um_tr_topic_sources(topic), 0);
    um_tr_engine_destroy(victim.engine);
}

TEST(f7_a_match_without_room_is_offered_again_with_the_next_advertisement)
{
    struct victim victim;
    open_victim(&victim, 0);
    CHECK(um_tr_engine_subscribe_pattern(victim.engine, victim.now_ns, "^orders", 1, &no_queries, matches_orders,
                                         &victim) != NULL);
    victim.refuse_match = 1;
    advertise(&victim, FRIEND, "orders", FRIEND, 14371, 1);
    deliver(&victim, FRIEND);
    victim.refuse_match = 0;
    CHECK_EQ(victim.matches, 0);
    for (int i = 0; i < 3; i++) {
        advertise(&victim, FRIEND, "orders", FRIEND, 14371, 1);
        deliver(&victim, FRIEND);
        CHECK_EQ(victim.matches, 1);
    }
    um_tr_engine_destroy(victim.engine);
}

/* ---- a subscribed topic ---- */

TEST(f5_the_sources_of_a_subscribed_topic_are_bounded_and_the_newest_are_known)
{
    struct victim victim;
    struct um_tr_query_options quiet = {.sources_threshold = 1};
    open_victim(&victim, 0);
    struct um_tr_topic *topic = um_tr_engine_subscribe(victim.engine, victim.now_ns, "orders", &quiet, false, &victim);
    uint64_t before_ns = processor_ns();
    for (uint32_t i = 0; i < 600000; i++) {
        advertise(&victim, FORGER, "orders", 0x0b000001u + i % 1000, 14371, i);
    }
    deliver(&victim, FORGER);
    CHECK(processor_ns() - before_ns < 30 * SIM_SEC); /* walking the list of a topic took minutes */
    CHECK(um_tr_topic_sources(topic) <= 4096);
    advertise(&victim, FRIEND, "orders", FRIEND, 14371, 7);
    deliver(&victim, FRIEND);
    CHECK_EQ(victim.sources, 600001);
    um_tr_engine_destroy(victim.engine);
}

/* ---- queries ---- */

static void ask(struct victim *victim, uint32_t from_ip, const char *pattern)
{
    begin(victim, UM_LBMR_WC_TQRS);
    um_lbmr_add_wildcard_tqr(&victim->builder, LBM_WILDCARD_RCV_PATTERN_TYPE_PCRE, pattern, strlen(pattern));
    deliver(victim, from_ip);
}

static void own_source(struct victim *victim, const char *topic)
{
    struct um_tr_advert_options options = {.immediate_response = true};
    struct um_tr_advert_spec spec = {.topic = topic};
    spec.info.type = LBM_TRANSPORT_TYPE_TCP;
    spec.info.src_port = 14371;
    CHECK(um_tr_engine_advertise(victim->engine, victim->now_ns, &spec, &options) != NULL);
}

/* Each pattern takes less than a query may; all together they would take the whole thread. */
TEST(f11_all_wildcard_queries_together_have_one_budget_of_processor_time)
{
    struct victim victim;
    struct um_tr_stats stats;
    open_victim(&victim, 0);
    own_source(&victim, "orders");
    ask(&victim, FRIEND, "^ord"); /* known to be cheap from here on */
    uint64_t answers = victim.sent;
    CHECK_EQ(answers, 1);
    victim.cpu_step_ns = 400000;
    uint64_t before_ns = victim.cpu_ns;
    for (unsigned i = 0; i < 10000; i++) { /* 10 s, a thousand each second, from 4 addresses */
        char pattern[32];
        snprintf(pattern, sizeof pattern, "(x?)y%u", i);
        victim.now_ns += SIM_MS;
        ask(&victim, FORGER + i % 4, pattern);
        if (i % 1000 == 500) {
            ask(&victim, FRIEND, "^ord");
        }
    }
    /* A fifth of 10 s, and what was saved up; of three steps for a query the engine sees two. */
    CHECK((victim.cpu_ns - before_ns) * 2 / 3 < 2100 * SIM_MS);
    CHECK_EQ(victim.sent - answers, 10); /* the friend was answered each time */
    um_tr_engine_get_stats(victim.engine, &stats);
    CHECK(stats.refused_patterns > 5000);
    um_tr_engine_destroy(victim.engine);
}

/* The processor time that one address takes in 10 s with a thousand queries each second. */
static uint64_t taken_by_one_ns(unsigned kept_share)
{
    struct victim victim;
    open_victim(&victim, 0);
    victim.kept_share = kept_share;
    own_source(&victim, "orders");
    victim.cpu_step_ns = 400000;
    uint64_t before_ns = victim.cpu_ns;
    for (unsigned i = 0; i < 10000; i++) {
        char pattern[32];
        snprintf(pattern, sizeof pattern, "(x?)y%u", i);
        victim.now_ns += SIM_MS;
        ask(&victim, FORGER, pattern);
    }
    um_tr_engine_destroy(victim.engine);
    return (victim.cpu_ns - before_ns) * 2 / 3;
}

TEST(f11_one_address_takes_half_of_the_budget_at_most)
{
    CHECK(taken_by_one_ns(0) < 1100 * SIM_MS);
}

/* The loop has a tenth of a processor: a tenth of that, not all of it. */
TEST(f11_the_budget_is_a_share_of_what_the_thread_gets)
{
    CHECK(taken_by_one_ns(90) < 200 * SIM_MS);
}

/* Too many to be answered one by one are answered by the schedule, many in a datagram. */
TEST(f11_queries_for_topics_have_a_budget_of_answers_at_once)
{
    struct victim victim;
    struct um_tr_stats stats;
    open_victim(&victim, 0);
    for (unsigned i = 0; i < 6000; i++) {
        char name[24];
        snprintf(name, sizeof name, "orders.%u", i);
        own_source(&victim, name);
    }
    pass(&victim, SIM_SEC, 10 * SIM_MS);
    uint64_t before = victim.sent;
    for (unsigned i = 0; i < 6000; i++) {
        char name[24];
        size_t len = (size_t)snprintf(name, sizeof name, "orders.%u", i);
        if (!um_lbmr_add_tqr(&victim.builder, name, len)) {
            deliver(&victim, FORGER);
            um_lbmr_add_tqr(&victim.builder, name, len);
        }
    }
    deliver(&victim, FORGER);
    CHECK_EQ(victim.sent - before, 2500); /* 25 ms, half of what may be saved up */
    um_tr_engine_get_stats(victim.engine, &stats);
    CHECK_EQ(stats.answers_deferred, 3500);
    um_tr_engine_destroy(victim.engine);
}
