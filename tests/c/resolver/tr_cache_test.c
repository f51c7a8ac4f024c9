/* The cache of topic resolution without any protocol: two or three services feed
 * it with plain structures, and the clock is an integer. What is known, who keeps
 * it, when it is forgotten, and what the core and the services are told. */
#define _GNU_SOURCE
#include "um_test.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "resolver/um_tr_cache.h"
#include "resolver/um_tr_otid.h"
#include "um_test_torture.h"

#define SEC UM_NS_PER_SEC
#define HOUR (3600 * SEC)

/* ---- a core and its services ---- */

struct told {
    unsigned wanted, received, unwanted, patterns, patterns_unwanted, lost, ended;
    char last[64];
    bool asks;   /* answer of source_lost */
    bool refuse; /* no memory for a topic */
};

struct core {
    struct um_tr_cache *cache;
    struct um_tr_service *udp, *srs, *other;
    struct told udp_told, srs_told, other_told;
    uint64_t now_ns, due_ns;
    unsigned sources, gone, no_source, no_source_internal, matches, incomplete, any;
    struct um_tr_source last;
    int refuse_match;
    struct um_tr_topic *drop_when_gone; /* unsubscribed from inside */
    uint32_t use_inside;                /* sources of index 1.. that are used as soon as one is offered */
    struct um_tr_topic *receive_inside; /* when one is offered */
};

static void on_source(void *topic_user, const struct um_tr_source *source)
{
    struct core *core = topic_user;
    core->sources++;
    core->last = *source;
    for (uint32_t index = 1; index <= core->use_inside; index++) {
        lbm_transport_source_info_t info = source->info;
        info.topic_idx = index;
        um_tr_cache_source_used(core->cache, core->now_ns, source->topic, &info);
    }
    if (core->receive_inside != NULL) {
        struct um_tr_topic *topic = core->receive_inside;
        core->receive_inside = NULL;
        um_tr_cache_receive(core->cache, core->now_ns, topic, false);
    }
}

static void on_source_gone(void *topic_user, const struct um_tr_source *source)
{
    struct core *core = topic_user;
    core->gone++;
    core->last = *source;
    if (core->drop_when_gone != NULL) {
        um_tr_cache_unsubscribe(core->cache, core->now_ns, core->drop_when_gone);
        core->drop_when_gone = NULL;
    }
}

static void on_no_source(void *topic_user, bool internal)
{
    struct core *core = topic_user;
    core->no_source += !internal;
    core->no_source_internal += internal;
}

static int on_pattern_match(void *pattern_user, const char *topic)
{
    struct core *core = pattern_user;
    core->matches += core->refuse_match == 0;
    return core->refuse_match;
}

static void on_any_source(void *user, const struct um_tr_source *source)
{
    ((struct core *)user)->any++;
}

static void on_pattern_incomplete(void *pattern_user)
{
    ((struct core *)pattern_user)->incomplete++;
}

static void set_timer(void *owner, uint64_t due_ns)
{
    ((struct core *)owner)->due_ns = due_ns;
}

static int topic_wanted(void *service, struct um_tr_entry *entry, const struct um_tr_timing *asking)
{
    struct told *told = service;
    size_t len;
    if (told->refuse) {
        return -1;
    }
    told->wanted++;
    snprintf(told->last, sizeof told->last, "%.63s", um_tr_entry_name(entry, &len));
    return 0;
}

static void topic_received(void *service, struct um_tr_entry *entry)
{
    ((struct told *)service)->received++;
}

static void topic_unwanted(void *service, struct um_tr_entry *entry)
{
    ((struct told *)service)->unwanted++;
}

static int pattern_wanted(void *service, struct um_tr_wanted *wanted, const struct um_tr_timing *asking)
{
    struct told *told = service;
    told->patterns++;
    snprintf(told->last, sizeof told->last, "%.63s", wanted->text);
    return 0;
}

static void pattern_unwanted(void *service, struct um_tr_wanted *wanted)
{
    ((struct told *)service)->patterns_unwanted++;
}

static bool source_lost(void *service, struct um_tr_entry *entry)
{
    struct told *told = service;
    told->lost++;
    return told->asks;
}

static void source_ended(void *service, const struct um_tr_source *source)
{
    struct told *told = service;
    told->ended++;
    snprintf(told->last, sizeof told->last, "%.63s", source->topic);
}

static const struct um_tr_service_ops ops = {.topic_wanted = topic_wanted,
                                             .topic_received = topic_received,
                                             .topic_unwanted = topic_unwanted,
                                             .pattern_wanted = pattern_wanted,
                                             .pattern_unwanted = pattern_unwanted,
                                             .source_lost = source_lost,
                                             .source_ended = source_ended};

static int core_open(struct core *core, size_t max)
{
    static const struct um_resolver_events events = {.on_source = on_source,
                                                     .on_source_gone = on_source_gone,
                                                     .on_no_source = on_no_source,
                                                     .on_pattern_match = on_pattern_match,
                                                     .on_any_source = on_any_source,
                                                     .on_pattern_incomplete = on_pattern_incomplete};
    struct um_tr_cache_config config = {.remember = true, .max = max};
    memset(core, 0, sizeof *core);
    core->now_ns = SEC;
    core->due_ns = UM_NEVER;
    struct um_tr_cache_owner owner = {.set_timer = set_timer, .owner = core};
    core->cache = um_tr_cache_create(&config, &owner, &events, core, core->now_ns);
    if (core->cache == NULL) {
        return -1;
    }
    core->udp = um_tr_cache_add_service(core->cache, UM_TR_HEARSAY, &ops, &core->udp_told);
    core->srs = um_tr_cache_add_service(core->cache, UM_TR_LIST, &ops, &core->srs_told);
    core->other = um_tr_cache_add_service(core->cache, UM_TR_LIST, &ops, &core->other_told);
    if (core->udp == NULL || core->srs == NULL || core->other == NULL) {
        um_tr_cache_destroy(core->cache);
        return -1;
    }
    um_tr_service_connected(core->srs, core->now_ns);
    um_tr_service_connected(core->other, core->now_ns);
    return 0;
}

/* Time passes, and the timer is served when it is due. */
static void pass(struct core *core, uint64_t ns)
{
    uint64_t end_ns = core->now_ns + ns;
    while (core->due_ns <= end_ns) {
        core->now_ns = core->due_ns > core->now_ns ? core->due_ns : core->now_ns;
        core->due_ns = UM_NEVER; /* whoever wants it again says so */
        um_tr_cache_on_timer(core->cache, core->now_ns);
        core->due_ns = um_tr_cache_due(core->cache);
    }
    core->now_ns = end_ns;
}

static struct um_tr_source source_at(const char *topic, uint32_t ip, uint32_t index)
{
    struct um_tr_source source = {.topic = topic, .told_by = htonl(ip)};
    source.info.type = LBM_TRANSPORT_TYPE_TCP;
    source.info.src_ip = htonl(ip);
    source.info.src_port = 14371;
    source.info.session_id = 7;
    source.info.topic_idx = index;
    return source;
}

static enum um_tr_taken found(struct core *core, struct um_tr_service *service, const char *topic, uint32_t index)
{
    struct um_tr_source source = source_at(topic, 0x0a000002u, index);
    return um_tr_cache_found(service, core->now_ns, &source);
}

static void gone(struct core *core, struct um_tr_service *service, const char *topic, uint32_t index)
{
    struct um_tr_source source = source_at(topic, 0x0a000002u, index);
    um_tr_cache_gone(service, core->now_ns, &source);
}

static struct um_tr_topic *look_up(struct core *core, const char *topic)
{
    struct um_tr_interest interest = {.sources_threshold = 10000000, .no_source_threshold = 3};
    return um_tr_cache_lookup(core->cache, core->now_ns, topic, &interest, core);
}

static struct um_tr_topic *receive(struct core *core, const char *topic)
{
    struct um_tr_topic *added = look_up(core, topic);
    if (added != NULL) {
        um_tr_cache_receive(core->cache, core->now_ns, added, false);
    }
    return added;
}

static size_t topics_known(const struct core *core)
{
    struct um_tr_cache_stats stats;
    um_tr_cache_get_stats(core->cache, &stats);
    return stats.topics;
}

static bool matches_orders(void *pattern_user, const char *topic)
{
    return strncmp(topic, "orders", 6) == 0;
}

static struct um_tr_pattern *want_pattern(struct core *core, const char *text)
{
    return um_tr_cache_subscribe_pattern(core->cache, core->now_ns, text, LBM_WILDCARD_RCV_PATTERN_TYPE_PCRE, NULL,
                                         matches_orders, core);
}

/* ---- sources ---- */

TEST(a_source_reaches_those_who_receive_and_those_who_come_later)
{
    struct core core;
    CHECK_EQ(core_open(&core, 0), 0);
    struct um_tr_topic *topic = look_up(&core, "orders");
    CHECK_EQ(found(&core, core.udp, "orders", 1), UM_TR_TAKEN_NEW);
    CHECK_EQ(core.any, 1);
    CHECK_EQ(core.sources, 0); /* looked up, not received yet */
    um_tr_cache_receive(core.cache, core.now_ns, topic, false);
    CHECK_EQ(core.sources, 1);
    CHECK_EQ(found(&core, core.udp, "orders", 1), UM_TR_TAKEN_KNOWN);
    CHECK_EQ(core.sources, 2); /* offered again: a failed join is tried anew */
    CHECK_EQ(core.any, 1);
    gone(&core, core.udp, "orders", 1);
    CHECK_EQ(core.gone, 1);
    CHECK_EQ(core.last.cost, -1);
    CHECK_EQ(um_tr_topic_sources(topic), 0);
    um_tr_cache_destroy(core.cache);
}

TEST(what_was_told_of_a_source_comes_back_as_it_was)
{
    struct core core;
    static const int types[] = {LBM_TRANSPORT_TYPE_TCP, LBM_TRANSPORT_TYPE_LBTRU, LBM_TRANSPORT_TYPE_LBTRM,
                                LBM_TRANSPORT_TYPE_LBTIPC, LBM_TRANSPORT_TYPE_LBTSMX};
    CHECK_EQ(core_open(&core, 0), 0);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        char name[16];
        struct um_tr_source told = {.topic = name, .has_otid = true, .has_ctxinst = true, .request_port = 14391};
        bool memory = types[i] == LBM_TRANSPORT_TYPE_LBTIPC || types[i] == LBM_TRANSPORT_TYPE_LBTSMX;
        bool multicast = types[i] == LBM_TRANSPORT_TYPE_LBTRM;
        snprintf(name, sizeof name, "type.%zu", i);
        told.info.type = types[i];
        told.info.src_ip = memory ? 0 : htonl(0x0a000001);
        told.info.src_port = memory ? 0 : 14371;
        told.info.dest_port = multicast ? 14400 : 0;
        told.info.mc_group = multicast ? htonl(0xe0090a0b) : 0;
        told.info.transport_id = memory ? 20001 : 0;
        told.info.session_id = 0xbeef;
        told.info.topic_idx = 99;
        told.request_ip = htonl(0x0a000001);
        told.functionality = 3;
        told.cost = 5;
        told.domain_id = 2;
        told.told_by = htonl(0x0a000009);
        memcpy(told.ctxinst, "instance", 8);
        struct um_tr_otid_own own = {.domain_id = 2, .place = 0};
        um_tr_otid_make(&told.info, told.ctxinst, &own, told.otid);
        told.otid[31] ^= i == 1 ? 0x55 : 0; /* made in another way than ours */
        CHECK_EQ(um_tr_cache_found(core.udp, core.now_ns, &told), UM_TR_TAKEN_NEW);
        CHECK(receive(&core, name) != NULL);
        CHECK_STR(core.last.topic, name);
        CHECK(memcmp(&core.last.info, &told.info, sizeof told.info) == 0);
        CHECK(core.last.has_otid && memcmp(core.last.otid, told.otid, sizeof told.otid) == 0);
        CHECK(core.last.has_ctxinst && memcmp(core.last.ctxinst, told.ctxinst, 8) == 0);
        CHECK_EQ(core.last.request_ip, told.request_ip);
        CHECK_EQ(core.last.request_port, told.request_port);
        CHECK_EQ(core.last.functionality, told.functionality);
        CHECK_EQ(core.last.cost, told.cost);
        CHECK_EQ(core.last.domain_id, told.domain_id);
        CHECK_EQ(core.last.told_by, told.told_by);
        told.otid[8] ^= 1; /* another source on the same transport and index */
        CHECK_EQ(um_tr_cache_found(core.udp, core.now_ns, &told), UM_TR_CONTRADICTS);
    }
    um_tr_cache_destroy(core.cache);
}

TEST(a_source_on_two_lists_stays_until_both_withdraw_it)
{
    struct core core;
    CHECK_EQ(core_open(&core, 0), 0);
    struct um_tr_topic *topic = receive(&core, "orders");
    CHECK_EQ(found(&core, core.srs, "orders", 1), UM_TR_TAKEN_NEW);
    CHECK_EQ(found(&core, core.other, "orders", 1), UM_TR_TAKEN_KNOWN);
    gone(&core, core.srs, "orders", 1);
    CHECK_EQ(core.gone, 0);
    CHECK_EQ(um_tr_topic_sources(topic), 1);
    gone(&core, core.other, "orders", 1);
    CHECK_EQ(core.gone, 1);
    CHECK_EQ(um_tr_topic_sources(topic), 0);
    um_tr_cache_destroy(core.cache);
}

TEST(a_list_withdraws_what_datagrams_know_and_datagrams_what_a_list_has)
{
    struct core core;
    CHECK_EQ(core_open(&core, 0), 0);
    struct um_tr_topic *topic = receive(&core, "orders");
    for (int by_list = 0; by_list < 2; by_list++) {
        found(&core, core.udp, "orders", 1);
        found(&core, core.srs, "orders", 1);
        CHECK_EQ(um_tr_topic_sources(topic), 1);
        gone(&core, by_list ? core.srs : core.udp, "orders", 1);
        CHECK_EQ(um_tr_topic_sources(topic), 0);
        CHECK_EQ(core.gone, by_list + 1);
    }
    um_tr_cache_destroy(core.cache);
}

TEST(a_list_in_connection_is_needed_to_keep_a_source_from_another_list)
{
    struct core core;
    CHECK_EQ(core_open(&core, 0), 0);
    receive(&core, "orders");
    found(&core, core.srs, "orders", 1);
    found(&core, core.other, "orders", 1);
    um_tr_service_lost(core.other, core.now_ns);
    CHECK_EQ(core.gone, 0); /* the loss of a service is no news of a source */
    gone(&core, core.srs, "orders", 1);
    CHECK_EQ(core.gone, 1);
    um_tr_cache_destroy(core.cache);
}

TEST(services_that_name_one_source_by_different_addresses_mean_the_one)
{
    struct core core;
    struct um_tr_source by_list = source_at("orders", 0x0a000002u, 1),
                        by_datagram = source_at("orders", 0xc0a80101u, 1);
    by_list.has_otid = by_datagram.has_otid = true;
    memset(by_list.otid, 0x42, sizeof by_list.otid);
    memset(by_datagram.otid, 0x42, sizeof by_datagram.otid);
    for (int list_first = 0; list_first < 2; list_first++) {
        CHECK_EQ(core_open(&core, 0), 0);
        struct um_tr_topic *topic = receive(&core, "orders");
        um_tr_cache_found(list_first ? core.srs : core.udp, core.now_ns, list_first ? &by_list : &by_datagram);
        CHECK_EQ(um_tr_cache_found(list_first ? core.udp : core.srs, core.now_ns, list_first ? &by_datagram : &by_list),
                 UM_TR_TAKEN_KNOWN);
        CHECK_EQ(um_tr_topic_sources(topic), 1);
        CHECK_EQ(core.last.info.src_ip, list_first ? by_list.info.src_ip : by_datagram.info.src_ip);
        um_tr_cache_gone(core.srs, core.now_ns, &by_list);
        CHECK_EQ(um_tr_topic_sources(topic), 0);
        um_tr_cache_destroy(core.cache);
    }
}

TEST(a_list_is_told_when_the_session_of_its_source_ended_and_may_bring_it_back)
{
    struct core core;
    CHECK_EQ(core_open(&core, 0), 0);
    struct um_tr_topic *topic = receive(&core, "orders");
    struct um_tr_source source = source_at("orders", 0x0a000002u, 1);
    found(&core, core.srs, "orders", 1);
    um_tr_cache_source_used(core.cache, core.now_ns, "orders", &source.info);
    um_tr_cache_source_ended(core.cache, core.now_ns, "orders", &source.info);
    CHECK_EQ(um_tr_topic_sources(topic), 0);
    CHECK_EQ(core.srs_told.ended, 1);
    CHECK_STR(core.srs_told.last, "orders");
    CHECK_EQ(core.udp_told.ended + core.other_told.ended, 0);
    CHECK_EQ(core.gone, 0); /* the core has said so itself */
    CHECK_EQ(found(&core, core.srs, "orders", 1), UM_TR_TAKEN_NEW);
    CHECK_EQ(core.sources, 2);
    um_tr_cache_destroy(core.cache);
}

TEST(a_withdrawal_ends_a_join_that_the_cache_knows_nothing_of)
{
    struct core core;
    CHECK_EQ(core_open(&core, 0), 0);
    receive(&core, "orders");
    gone(&core, core.srs, "orders", 1);
    gone(&core, core.udp, "orders", 2);
    gone(&core, core.udp, "others", 1);
    CHECK_EQ(core.gone, 2);
    um_tr_cache_destroy(core.cache);
}

/* ---- a list that comes back ---- */

TEST(what_a_list_does_not_tell_again_after_it_came_back_is_withdrawn)
{
    struct core core;
    CHECK_EQ(core_open(&core, 0), 0);
    struct um_tr_topic *topic = receive(&core, "orders");
    for (uint32_t i = 1; i <= 3; i++) {
        found(&core, core.srs, "orders", i);
    }
    found(&core, core.other, "orders", 3);
    pass(&core, HOUR);
    CHECK_EQ(um_tr_topic_sources(topic), 3);
    um_tr_service_lost(core.srs, core.now_ns);
    pass(&core, HOUR);
    CHECK_EQ(um_tr_topic_sources(topic), 3); /* the service being away changes nothing */
    um_tr_service_connected(core.srs, core.now_ns);
    CHECK_EQ(found(&core, core.srs, "orders", 1), UM_TR_TAKEN_KNOWN);
    pass(&core, UM_TR_RELIST_NS - 1);
    CHECK_EQ(core.gone, 0);
    pass(&core, 1);
    CHECK_EQ(core.gone, 1); /* 2; 3 is on the other list */
    CHECK_EQ(um_tr_topic_sources(topic), 2);
    gone(&core, core.other, "orders", 3);
    CHECK_EQ(um_tr_topic_sources(topic), 1); /* nobody has it any more */
    um_tr_cache_destroy(core.cache);
}

TEST(a_list_that_goes_while_it_tells_anew_withdraws_nothing)
{
    struct core core;
    CHECK_EQ(core_open(&core, 0), 0);
    struct um_tr_topic *topic = receive(&core, "orders");
    found(&core, core.srs, "orders", 1);
    for (int i = 0; i < 5; i++) {
        um_tr_service_lost(core.srs, core.now_ns);
        pass(&core, SEC);
        um_tr_service_connected(core.srs, core.now_ns);
        pass(&core, UM_TR_RELIST_NS / 2);
    }
    CHECK_EQ(um_tr_topic_sources(topic), 1);
    pass(&core, UM_TR_RELIST_NS);
    CHECK_EQ(um_tr_topic_sources(topic), 0);
    um_tr_cache_destroy(core.cache);
}

TEST(thousands_of_sources_are_withdrawn_bit_by_bit_though_callbacks_leave_meanwhile)
{
    struct core core;
    CHECK_EQ(core_open(&core, 0), 0);
    core.drop_when_gone = receive(&core, "orders");
    for (uint32_t i = 0; i < 3500; i++) {
        found(&core, core.srs, "orders", i);
    }
    um_tr_service_lost(core.srs, core.now_ns);
    um_tr_service_connected(core.srs, core.now_ns);
    pass(&core, UM_TR_RELIST_NS + SEC);
    CHECK_EQ(core.gone, 1);
    CHECK_EQ(topics_known(&core), 0);
    um_tr_cache_destroy(core.cache);
}

/* ---- what services are told ---- */

TEST(services_hear_of_the_first_interest_and_the_last)
{
    struct core core;
    CHECK_EQ(core_open(&core, 0), 0);
    struct um_tr_topic *first = look_up(&core, "orders");
    CHECK_EQ(core.srs_told.wanted, 1);
    CHECK_EQ(core.srs_told.received, 0);
    um_tr_cache_receive(core.cache, core.now_ns, first, false);
    struct um_tr_topic *second = receive(&core, "orders");
    CHECK_EQ(core.srs_told.wanted, 1);
    CHECK_EQ(core.srs_told.received, 1);
    um_tr_cache_unsubscribe(core.cache, core.now_ns, first);
    CHECK_EQ(core.srs_told.unwanted, 0);
    um_tr_cache_unsubscribe(core.cache, core.now_ns, second);
    CHECK_EQ(core.srs_told.unwanted, 1);
    CHECK_EQ(core.udp_told.unwanted, 1);
    CHECK_EQ(topics_known(&core), 0);
    um_tr_cache_destroy(core.cache);
}

TEST(a_service_in_connection_again_is_told_all_that_is_wanted)
{
    struct core core;
    CHECK_EQ(core_open(&core, 0), 0);
    receive(&core, "orders");
    look_up(&core, "quotes");
    found(&core, core.udp, "unwanted", 1);
    want_pattern(&core, "^a");
    want_pattern(&core, "^a");
    want_pattern(&core, "^b");
    CHECK_EQ(core.srs_told.patterns, 2); /* each text once */
    memset(&core.srs_told, 0, sizeof core.srs_told);
    CHECK_EQ(um_tr_service_tell_wanted(core.srs, core.now_ns), 0);
    CHECK_EQ(core.srs_told.wanted, 2);
    CHECK_EQ(core.srs_told.received, 1);
    CHECK_EQ(core.srs_told.patterns, 2);
    core.srs_told.refuse = true;
    CHECK_EQ(um_tr_service_tell_wanted(core.srs, core.now_ns), -1);
    um_tr_cache_destroy(core.cache);
}

TEST(a_topic_that_one_service_cannot_take_is_wanted_of_none)
{
    struct core core;
    CHECK_EQ(core_open(&core, 0), 0);
    core.srs_told.refuse = true;
    CHECK(look_up(&core, "orders") == NULL);
    CHECK_EQ(core.udp_told.wanted, 1);
    CHECK_EQ(core.udp_told.unwanted, 1);
    CHECK_EQ(core.other_told.wanted, 0);
    CHECK_EQ(topics_known(&core), 0);
    CHECK_EQ(um_tr_cache_wanted_topics(core.cache), 0);
    um_tr_cache_destroy(core.cache);
}

/* ---- thresholds ---- */

TEST(the_absence_of_sources_is_told_once_for_each_time_that_there_is_none)
{
    struct core core;
    CHECK_EQ(core_open(&core, 0), 0);
    receive(&core, "orders");
    struct um_tr_entry *entry = um_tr_cache_entry(core.cache, "orders", 6);
    for (int round = 1; round <= 2; round++) {
        for (int i = 0; i < 5; i++) {
            CHECK_EQ(core.no_source, round - 1 + (i >= 3));
            um_tr_cache_query_sent(core.cache, core.now_ns, entry);
        }
        found(&core, core.udp, "orders", 1);
        um_tr_cache_query_sent(core.cache, core.now_ns, entry);
        core.udp_told.asks = true;
        gone(&core, core.udp, "orders", 1);
    }
    CHECK_EQ(core.udp_told.lost, 2);
    CHECK_EQ(core.no_source_internal, 0);
    um_tr_cache_destroy(core.cache);
}

TEST(receivers_of_wildcards_hear_at_once_when_nobody_can_ask)
{
    struct core core;
    CHECK_EQ(core_open(&core, 0), 0);
    struct um_tr_topic *topic = look_up(&core, "orders");
    um_tr_cache_receive(core.cache, core.now_ns, topic, true);
    for (int asks = 1; asks >= 0; asks--) {
        core.udp_told.asks = asks != 0;
        found(&core, core.udp, "orders", 1);
        gone(&core, core.udp, "orders", 1);
        CHECK_EQ(core.no_source_internal, !asks);
    }
    CHECK_EQ(core.no_source, 0);
    um_tr_cache_destroy(core.cache);
}

TEST(a_topic_needs_queries_while_it_has_fewer_sources_than_some_receiver_asks_for)
{
    struct core core;
    struct um_tr_interest interest = {.sources_threshold = 2};
    CHECK_EQ(core_open(&core, 0), 0);
    struct um_tr_topic *topic = um_tr_cache_lookup(core.cache, core.now_ns, "orders", &interest, &core);
    struct um_tr_entry *entry = um_tr_cache_entry(core.cache, "orders", 6);
    found(&core, core.udp, "orders", 1);
    CHECK(um_tr_cache_query_needed(entry));
    found(&core, core.srs, "orders", 2);
    CHECK(!um_tr_cache_query_needed(entry));
    um_tr_topic_set_thresholds(topic, UINT64_MAX, 0, false);
    CHECK(um_tr_cache_query_needed(entry));
    um_tr_cache_destroy(core.cache);
}

/* As the callback may: a source that is used is filed elsewhere. */
TEST(sources_that_are_filed_anew_while_they_are_offered_are_each_offered_once)
{
    struct core core;
    CHECK_EQ(core_open(&core, 0), 0);
    for (uint32_t i = 1; i <= 200; i++) {
        found(&core, core.udp, "orders", i);
    }
    core.use_inside = 200;
    struct um_tr_topic *topic = receive(&core, "orders");
    CHECK_EQ(core.sources, 200);
    um_tr_cache_unsubscribe(core.cache, core.now_ns, topic);
    um_tr_cache_destroy(core.cache);
}

TEST(a_second_interest_that_begins_while_sources_are_offered_takes_none_from_the_first)
{
    struct core core, second = {0};
    struct um_tr_interest interest = {0};
    CHECK_EQ(core_open(&core, 0), 0);
    for (uint32_t i = 1; i <= 100; i++) {
        found(&core, core.udp, "orders", i);
    }
    core.receive_inside = um_tr_cache_lookup(core.cache, core.now_ns, "orders", &interest, &second);
    receive(&core, "orders");
    CHECK_EQ(second.sources, 100);
    CHECK(core.sources >= 100);
    CHECK_EQ(core.last.info.topic_idx, 1); /* to the end */
    um_tr_cache_destroy(core.cache);
}

/* ---- patterns ---- */

TEST(patterns_get_the_topics_known_and_those_that_come_each_once)
{
    struct core core;
    CHECK_EQ(core_open(&core, 0), 0);
    found(&core, core.udp, "orders.1", 1);
    found(&core, core.srs, "quotes", 1);
    struct um_tr_pattern *pattern = want_pattern(&core, "^orders");
    CHECK_EQ(core.matches, 1);
    found(&core, core.srs, "orders.2", 1);
    found(&core, core.udp, "orders.2", 1);
    found(&core, core.udp, "orders.2", 2);
    CHECK_EQ(core.matches, 2);
    um_tr_pattern_forget(pattern, "orders.2");
    found(&core, core.udp, "orders.2", 2);
    CHECK_EQ(core.matches, 3);
    um_tr_cache_unsubscribe_pattern(core.cache, core.now_ns, pattern);
    CHECK_EQ(core.srs_told.patterns_unwanted, 1);
    found(&core, core.udp, "orders.3", 1);
    CHECK_EQ(core.matches, 3);
    um_tr_cache_destroy(core.cache);
}

TEST(a_match_that_the_core_has_no_room_for_comes_again)
{
    struct core core;
    CHECK_EQ(core_open(&core, 0), 0);
    struct um_tr_pattern *pattern = want_pattern(&core, "^orders");
    core.refuse_match = 1;
    found(&core, core.udp, "orders.1", 1);
    core.refuse_match = -1;
    found(&core, core.udp, "orders.2", 1);
    CHECK_EQ(core.incomplete, 1);
    core.refuse_match = 0;
    CHECK_EQ(core.matches, 0);
    found(&core, core.udp, "orders.1", 1); /* no room: with the next advertisement */
    CHECK_EQ(core.matches, 1);
    um_tr_match_pattern_again(pattern); /* no memory: when the core says so */
    CHECK_EQ(core.matches, 2);
    um_tr_cache_destroy(core.cache);
}

/* ---- walks over a large cache ---- */

struct onlooker {
    struct core *core;
    unsigned looked, matches;
};

static bool look(void *pattern_user, const char *topic)
{
    struct onlooker *onlooker = pattern_user;
    onlooker->looked++;
    return topic[strlen(topic) - 1] == '7';
}

static int count_match(void *pattern_user, const char *topic)
{
    ((struct onlooker *)pattern_user)->matches++;
    return 0;
}

static int large_core_open(struct core *core, unsigned topics)
{
    static const struct um_resolver_events events = {.on_source = on_source, .on_pattern_match = count_match};
    char name[32];
    struct um_tr_cache_config config = {.remember = true};
    memset(core, 0, sizeof *core);
    core->now_ns = SEC;
    core->due_ns = UM_NEVER;
    struct um_tr_cache_owner owner = {.set_timer = set_timer, .owner = core};
    core->cache = um_tr_cache_create(&config, &owner, &events, core, core->now_ns);
    core->udp = core->cache == NULL ? NULL : um_tr_cache_add_service(core->cache, UM_TR_HEARSAY, &ops, &core->udp_told);
    for (unsigned i = 0; core->udp != NULL && i < topics; i++) {
        snprintf(name, sizeof name, "large.%u", i);
        found(core, core->udp, name, i);
    }
    return core->udp != NULL && topics_known(core) == topics ? 0 : -1;
}

static struct um_tr_pattern *watch(struct onlooker *onlooker, const char *text)
{
    return um_tr_cache_subscribe_pattern(onlooker->core->cache, onlooker->core->now_ns, text,
                                         LBM_WILDCARD_RCV_PATTERN_TYPE_PCRE, NULL, look, onlooker);
}

/* Neither the call nor any run of the timer looks at more than a step; topics come and go meanwhile. */
TEST(a_pattern_is_matched_with_a_large_cache_in_steps)
{
    enum { TOPICS = 20000, LATER = 3000 };
    struct core core;
    struct onlooker one = {.core = &core}, two = {.core = &core};
    char name[32];
    unsigned runs = 0, later = 0;
    CHECK_EQ(large_core_open(&core, TOPICS), 0);
    struct um_tr_pattern *pattern = watch(&one, "7$");
    CHECK(pattern != NULL && one.looked > 0 && one.looked <= UM_TR_CACHE_STEP);
    struct um_tr_pattern *second = watch(&two, "7");
    CHECK(second != NULL && two.looked <= UM_TR_CACHE_STEP);
    while (core.due_ns <= core.now_ns + SEC) {
        unsigned before = one.looked + two.looked;
        pass(&core, core.due_ns - core.now_ns);
        CHECK(one.looked + two.looked - before <= UM_TR_CACHE_STEP);
        runs++;
        for (int i = 0; i < 100 && later < LATER; i++, later++) {
            snprintf(name, sizeof name, "later.%u", later);
            found(&core, core.udp, name, TOPICS + later);
            snprintf(name, sizeof name, "large.%u", later * 5);
            gone(&core, core.udp, name, later * 5); /* none that ends in 7 */
        }
    }
    CHECK(runs >= 2 * TOPICS / UM_TR_CACHE_STEP);
    CHECK_EQ(later, LATER);
    CHECK_EQ(one.matches, (TOPICS + LATER) / 10);
    CHECK_EQ(two.matches, (TOPICS + LATER) / 10);
    um_tr_cache_destroy(core.cache);
}

TEST(a_pattern_given_up_while_it_is_matched_is_asked_no_more)
{
    struct core core;
    struct onlooker one = {.core = &core};
    CHECK_EQ(large_core_open(&core, 3000), 0);
    struct um_tr_pattern *pattern = watch(&one, "7$");
    CHECK(pattern != NULL && one.looked < 3000);
    unsigned looked = one.looked;
    um_tr_match_pattern_again(pattern); /* waits for the end of the walk */
    um_tr_cache_unsubscribe_pattern(core.cache, core.now_ns, pattern);
    pass(&core, SEC);
    CHECK_EQ(one.looked, looked);
    pattern = watch(&one, "7");
    looked = one.looked;
    um_tr_match_pattern_again(pattern);
    pass(&core, SEC);
    CHECK(one.looked - looked > 3000 && one.matches >= 300); /* what matched is not asked for again */
    um_tr_cache_destroy(core.cache);
}

static void count_source(void *arg, const struct um_tr_source *source, bool kept, uint64_t age_ns)
{
    ++*(unsigned *)arg;
}

TEST(the_sources_of_a_large_cache_are_told_in_steps)
{
    struct core core;
    struct um_table_scan scan = {0};
    unsigned told = 0;
    CHECK_EQ(large_core_open(&core, 10000), 0);
    while (!scan.done) {
        unsigned before = told;
        um_tr_cache_some_sources(core.cache, core.now_ns, &scan, count_source, &told);
        CHECK(told - before <= UM_TR_CACHE_STEP);
    }
    CHECK_EQ(told, 10000);
    um_tr_cache_destroy(core.cache);
}

/* ---- time and bounds ---- */

TEST(in_an_hour_a_crowded_cache_forgets_what_is_not_repeated_and_keeps_what_is_used_or_listed)
{
    struct core core;
    struct um_tr_cache_stats stats;
    char name[32];
    CHECK_EQ(core_open(&core, 1000), 0);
    struct um_tr_topic *topic = receive(&core, "used");
    struct um_tr_source used = source_at("used", 0x0a000002u, 1);
    found(&core, core.udp, "used", 1);
    um_tr_cache_source_used(core.cache, core.now_ns, "used", &used.info);
    found(&core, core.srs, "listed", 1);
    for (uint32_t i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "silent.%u", i);
        found(&core, core.udp, name, i);
    }
    for (int minute = 0; minute < 60; minute++) {
        found(&core, core.udp, "repeated", 1);
        pass(&core, 60 * SEC);
    }
    um_tr_cache_get_stats(core.cache, &stats);
    CHECK(stats.topics <= 3 + 100); /* a tenth is no crowd */
    CHECK_EQ(stats.topics + stats.cache_expired, 203);
    CHECK_EQ(um_tr_topic_sources(topic), 1);
    pass(&core, 25 * HOUR);
    CHECK_EQ(topics_known(&core), 2);
    CHECK(um_tr_cache_entry(core.cache, "listed", 6) != NULL);
    um_tr_service_lost(core.srs, core.now_ns); /* for good: from now on it grows old */
    pass(&core, 25 * HOUR);
    CHECK_EQ(topics_known(&core), 1);
    um_tr_cache_unsubscribe(core.cache, core.now_ns, topic);
    pass(&core, 25 * HOUR);
    CHECK_EQ(topics_known(&core), 0);
    CHECK_EQ(core.due_ns, UM_NEVER);
    um_tr_cache_destroy(core.cache);
}

TEST(a_flood_of_datagrams_pushes_out_its_own_and_neither_used_nor_listed_sources)
{
    struct core core;
    struct um_tr_cache_stats stats;
    char name[32];
    CHECK_EQ(core_open(&core, 1000), 0);
    for (uint32_t i = 0; i < 600; i++) {
        snprintf(name, sizeof name, "listed.%u", i);
        CHECK_EQ(found(&core, core.srs, name, i), UM_TR_TAKEN_NEW);
    }
    for (uint32_t i = 0; i < 50000; i++) {
        snprintf(name, sizeof name, "forged.%u", i);
        struct um_tr_source forged = source_at(name, 0x0b000000u + i, i);
        um_tr_cache_found(core.udp, core.now_ns, &forged);
        CHECK(topics_known(&core) <= 1000);
    }
    um_tr_cache_get_stats(core.cache, &stats);
    CHECK_EQ(stats.cache_refused, 49600);
    for (uint32_t i = 0; i < 600; i++) {
        snprintf(name, sizeof name, "listed.%u", i);
        CHECK(um_tr_cache_entry(core.cache, name, strlen(name)) != NULL);
    }
    /* A list takes the room that strangers have, and no more than there is. */
    for (uint32_t i = 600; i < 1000; i++) {
        snprintf(name, sizeof name, "listed.%u", i);
        CHECK_EQ(found(&core, core.srs, name, i), UM_TR_TAKEN_NEW);
    }
    CHECK_EQ(found(&core, core.srs, "listed.1000", 1000), UM_TR_NOT_KEPT);
    CHECK_EQ(found(&core, core.udp, "forged", 1), UM_TR_NOT_KEPT);
    CHECK(receive(&core, "wanted") != NULL); /* what is received has room all the same */
    CHECK_EQ(found(&core, core.udp, "wanted", 1), UM_TR_TAKEN_NEW);
    CHECK_EQ(topics_known(&core), 1001);
    um_tr_cache_destroy(core.cache);
}

TEST(a_topic_or_an_address_has_its_share_and_no_more)
{
    struct core core;
    char name[32];
    CHECK_EQ(core_open(&core, 10000), 0);
    struct um_tr_topic *topic = look_up(&core, "crowded");
    for (uint32_t i = 0; i < 9000; i++) {
        struct um_tr_source forged = source_at("crowded", 0x0b000000u + i, i);
        um_tr_cache_found(core.udp, core.now_ns, &forged);
    }
    CHECK_EQ(um_tr_topic_sources(topic), 4096);
    for (uint32_t i = 0; i < 9000; i++) {
        snprintf(name, sizeof name, "forged.%u", i);
        found(&core, core.udp, name, i);
    }
    CHECK_EQ(topics_known(&core), 1 + 5000);
    /* What is on a list is nobody's share, and pushes nobody out while there is room. */
    found(&core, core.srs, "listed", 1);
    CHECK_EQ(topics_known(&core), 1 + 5000 + 1);
    struct um_tr_source listed = source_at("crowded", 0x0c000000u, 1);
    um_tr_cache_found(core.srs, core.now_ns, &listed);
    CHECK_EQ(um_tr_topic_sources(topic), 4097);
    um_tr_cache_destroy(core.cache);
}

TEST(without_a_cache_only_topics_that_are_wanted_are_remembered)
{
    struct um_tr_cache_config config = {.remember = false};
    struct core core;
    CHECK_EQ(core_open(&core, 0), 0);
    um_tr_cache_destroy(core.cache);
    static const struct um_resolver_events events = {.on_source = on_source};
    struct um_tr_cache_owner owner = {.set_timer = set_timer, .owner = &core};
    core.cache = um_tr_cache_create(&config, &owner, &events, &core, core.now_ns);
    CHECK(core.cache != NULL);
    core.udp = um_tr_cache_add_service(core.cache, UM_TR_HEARSAY, &ops, &core.udp_told);
    CHECK_EQ(found(&core, core.udp, "orders", 1), UM_TR_NOT_KEPT);
    CHECK_EQ(topics_known(&core), 0);
    struct um_tr_topic *topic = receive(&core, "orders");
    CHECK_EQ(found(&core, core.udp, "orders", 1), UM_TR_TAKEN_NEW);
    CHECK_EQ(core.sources, 1);
    um_tr_cache_unsubscribe(core.cache, core.now_ns, topic);
    CHECK_EQ(topics_known(&core), 0);
    um_tr_cache_destroy(core.cache);
}

TEST(there_are_as_many_services_as_have_a_bit)
{
    struct core core;
    CHECK_EQ(core_open(&core, 0), 0);
    for (int i = 3; i < UM_TR_SERVICES_MAX; i++) {
        CHECK(um_tr_cache_add_service(core.cache, UM_TR_LIST, &ops, &core.other_told) != NULL);
    }
    CHECK(um_tr_cache_add_service(core.cache, UM_TR_LIST, &ops, &core.other_told) == NULL);
    um_tr_cache_destroy(core.cache);
}

/* ---- memory ---- */

static size_t asked_for;

static bool count_memory(size_t size)
{
    asked_for += size;
    return false;
}

/* Of what is asked for, tables that grew are counted with all that they were before. */
TEST(a_source_of_a_topic_of_its_own_costs_less_than_300_bytes)
{
    enum { TOPICS = 10000 };
    struct core core;
    char name[32];
    CHECK_EQ(core_open(&core, 0), 0);
    asked_for = 0;
    um_mem_set_fail_hook(count_memory);
    for (uint32_t i = 0; i < TOPICS; i++) {
        snprintf(name, sizeof name, "bench/resolve/topic/%06u", i);
        struct um_tr_source told = source_at(name, 0x0a000002u, i);
        struct um_tr_otid_own own = {.place = told.info.src_ip};
        told.has_otid = told.has_ctxinst = true;
        um_tr_otid_make(&told.info, told.ctxinst, &own, told.otid);
        um_tr_cache_found(core.udp, core.now_ns, &told);
    }
    um_mem_set_fail_hook(NULL);
    CHECK_EQ(topics_known(&core), TOPICS);
    CHECK(asked_for / TOPICS < 300);
    um_tr_cache_destroy(core.cache);
}

/* Everything once; whatever fails, the rest goes on and nothing is lost from sight. */
static void live(void)
{
    struct core core;
    char name[32];
    if (core_open(&core, 40) != 0) {
        return;
    }
    struct um_tr_pattern *pattern = want_pattern(&core, "^orders");
    struct um_tr_topic *topic = receive(&core, "orders.1");
    for (uint32_t i = 0; i < 60; i++) {
        snprintf(name, sizeof name, "orders.%u", i);
        struct um_tr_source source = source_at(name, 0x0a000000u + i % 7, i);
        source.has_otid = i % 3 == 0;
        memset(source.otid, (int)i, sizeof source.otid);
        um_tr_cache_found(i % 2 ? core.udp : core.srs, core.now_ns, &source);
        um_tr_cache_source_used(core.cache, core.now_ns, name, &source.info);
    }
    um_tr_service_lost(core.srs, core.now_ns);
    pass(&core, HOUR);
    um_tr_service_connected(core.srs, core.now_ns);
    struct um_tr_source source = source_at("orders.2", 0x0a000002u, 2);
    um_tr_cache_found(core.srs, core.now_ns, &source);
    pass(&core, HOUR);
    if (topic != NULL) {
        um_tr_cache_unsubscribe(core.cache, core.now_ns, topic);
    }
    if (pattern != NULL) {
        um_tr_match_pattern_again(pattern);
        um_tr_cache_unsubscribe_pattern(core.cache, core.now_ns, pattern);
    }
    pass(&core, 50 * HOUR);
    um_tr_service_lost(core.srs, core.now_ns);
    um_tr_service_lost(core.other, core.now_ns);
    pass(&core, 50 * HOUR);
    CHECK_EQ(topics_known(&core), 0);
    um_tr_cache_destroy(core.cache);
}

TEST(whatever_allocation_fails_the_cache_goes_on_and_frees_all)
{
    int descriptors = open_descriptors();
    torture_name = "tr_cache";
    hang_guard(300);
    for (long n = 0;; n++) {
        fault_arm(FAULT_MEMORY, n, 1, 0);
        live();
        if (!fault_disarm()) {
            CHECK(n > 100);
            break;
        }
        if (um_test_failed) {
            TEST_FAIL("allocation %ld", n);
        }
    }
    hang_guard(0);
    CHECK_EQ(open_descriptors(), descriptors);
    CHECK(!leaks_found());
}
