/* Who may join, and in what order: the engine on a timer wheel in virtual time,
 * with addresses that answer, refuse, or say nothing, and advertisements of
 * forgers that outnumber the genuine ones. */
#include "sim_net.h"
#include "um_test.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/um_mem.h"
#include "core/um_rcv_hearsay.h"
#include "core/um_rcv_joins.h"

#define MS SIM_MS
#define GENUINE 0x0a000002u
#define FORGER 0x0a000063u

struct world;

/* A source being joined. */
struct join {
    struct um_rcv_joining joining; /* first */
    struct um_list node;           /* world->all */
    struct um_timer outcome;       /* what becomes of it */
    bool answers;
    bool heard;
};

struct world {
    struct um_timer_wheel *wheel;
    struct um_rcv_joins *joins;
    struct um_rcv_join_topic topic;
    struct um_list all;
    enum um_rcv_join_kind kind;
    uint64_t now_ns;
    unsigned under_way, most_under_way;
    unsigned genuine, attempts;
    uint64_t silence_ns;    /* 0: forged addresses refuse at once; else they say nothing for so long */
    uint64_t genuine_at_ns; /* when the last genuine source was heard */
    unsigned unheard;
    uint64_t groups_yielded;
};

static struct world *world; /* of the test that runs */

static void drop_join(struct join *join)
{
    um_rcv_joins_end(world->joins, &join->joining, world->now_ns);
    um_timer_cancel(world->wheel, &join->outcome);
    um_list_remove(&join->node);
    world->under_way -= !join->heard;
    free(join);
}

static void on_outcome(struct um_timer *timer, uint64_t now_ns)
{
    struct join *join = UM_CONTAINER_OF(timer, struct join, outcome);
    if (!join->answers) {
        drop_join(join);
        return;
    }
    um_rcv_joins_heard(world->joins, &join->joining, now_ns);
    join->heard = true;
    world->under_way--;
    world->genuine++;
    world->genuine_at_ns = now_ns;
}

/* Worlds of TCP may have LBT-RM as well. */
static enum um_rcv_join_kind kind_of(const struct um_rcv_join_offer *what)
{
    bool group = world->kind == UM_RCV_JOIN_ASKS && what->info.type == LBM_TRANSPORT_TYPE_LBTRM;
    return group ? UM_RCV_JOIN_GROUP : world->kind;
}

static void offer(struct um_rcv_join_topic *topic, const struct um_rcv_join_offer *what, uint64_t now_ns)
{
    if (um_rcv_joins_find(world->joins, topic, &what->info) != NULL ||
        !um_rcv_joins_may(world->joins, topic, kind_of(what), what, now_ns)) {
        return;
    }
    struct join *join = calloc(1, sizeof *join);
    CHECK(join != NULL);
    CHECK_EQ(um_rcv_joins_begin(world->joins, topic, kind_of(what), what, &join->joining, now_ns), 0);
    join->answers = what->info.src_ip == htonl(GENUINE) && what->info.src_port < 100;
    um_list_push_back(&world->all, &join->node);
    um_timer_init(&join->outcome, on_outcome);
    um_timer_arm(world->wheel, &join->outcome, now_ns + (join->answers ? 5 * MS : world->silence_ns));
    world->attempts++;
    world->under_way++;
    world->most_under_way = world->under_way > world->most_under_way ? world->under_way : world->most_under_way;
}

static void yield_join(struct um_rcv_joining *joining, uint64_t now_ns)
{
    world->groups_yielded += kind_of(&joining->offer) == UM_RCV_JOIN_GROUP;
    drop_join(UM_CONTAINER_OF(joining, struct join, joining));
}

static void unheard(struct um_rcv_join_topic *topic, const struct um_rcv_join_offer *what, uint64_t now_ns)
{
    world->unheard++;
}

static void open_world(struct world *w, enum um_rcv_join_kind kind, uint64_t silence_ns)
{
    static const struct um_rcv_join_ops ops = {offer, yield_join, unheard};
    memset(w, 0, sizeof *w);
    world = w;
    w->kind = kind;
    w->silence_ns = silence_ns;
    w->now_ns = SIM_SEC;
    w->wheel = um_timer_wheel_create(w->now_ns);
    w->joins = um_rcv_joins_create(w->wheel, &ops);
    um_rcv_join_topic_init(&w->topic);
    um_list_init(&w->all);
    CHECK(w->joins != NULL && w->wheel != NULL);
}

static void pass(uint64_t ns)
{
    for (uint64_t end_ns = world->now_ns + ns; world->now_ns < end_ns;) {
        world->now_ns += MS;
        um_timer_run(world->wheel, world->now_ns);
    }
}

static void close_world(void)
{
    struct um_rcv_joins_stats stats;
    struct um_list *node;
    um_rcv_joins_forget_topic(world->joins, &world->topic);
    while ((node = um_list_first(&world->all)) != NULL) {
        drop_join(UM_CONTAINER_OF(node, struct join, node));
    }
    um_rcv_joins_stats(world->joins, &stats);
    CHECK_EQ(stats.waiting, 0);
    CHECK_EQ(stats.under_way, 0);
    um_rcv_joins_destroy(world->joins);
    um_timer_wheel_destroy(world->wheel);
}

static void advertised(uint32_t told_by, uint32_t ip, uint16_t port, uint32_t index)
{
    struct um_rcv_join_offer what = {.told_by = htonl(told_by)};
    what.info.type = world->kind == UM_RCV_JOIN_GROUP ? LBM_TRANSPORT_TYPE_LBTRM : LBM_TRANSPORT_TYPE_TCP;
    what.info.src_ip = htonl(ip);
    what.info.src_port = port;
    what.info.mc_group = world->kind == UM_RCV_JOIN_GROUP ? ip : 0;
    what.info.topic_idx = index;
    offer(&world->topic, &what, world->now_ns);
}

/* A datagram with so many sources that are none. */
static void forge(uint32_t told_by, unsigned count, bool many_addresses)
{
    for (unsigned i = 0; i < count; i++) {
        advertised(told_by, many_addresses ? 0x0b000001u + i : FORGER, (uint16_t)(1000 + i), i);
    }
}

/* One source more than may be joined there at a time. */
static void crowd_one_address(void)
{
    for (uint32_t i = 0; i < 65; i++) {
        advertised(FORGER, 0x0d000001u, (uint16_t)(1000 + i), i);
    }
    CHECK_EQ(world->under_way, 64);
}

TEST(f5_two_thousand_forged_advertisements_take_a_bounded_number_of_places)
{
    struct world w;
    struct um_rcv_joins_stats stats;
    for (int kind = UM_RCV_JOIN_ASKS; kind <= UM_RCV_JOIN_GROUP; kind++) {
        open_world(&w, (enum um_rcv_join_kind)kind, 30 * SIM_SEC);
        forge(FORGER, 2000, true);
        CHECK(w.under_way >= 64);
        pass(20 * SIM_SEC);
        CHECK(w.most_under_way <= 192); /* what one who advertises may take */
        um_rcv_joins_stats(w.joins, &stats);
        CHECK(stats.deferred >= 1800);
        CHECK(stats.yielded > 0);
        pass(60 * SIM_SEC);
        um_rcv_joins_stats(w.joins, &stats);
        CHECK_EQ(stats.waiting, 0); /* nobody advertises them any more */
        close_world();
    }
}

TEST(f5_one_address_takes_its_share_only)
{
    struct world w;
    open_world(&w, UM_RCV_JOIN_ASKS, 30 * SIM_SEC);
    forge(FORGER, 2000, false);
    CHECK_EQ(w.under_way, 64);
    advertised(FORGER, GENUINE, 7, 1);
    pass(200 * MS);
    CHECK_EQ(w.genuine, 1);
    close_world();
}

/* The forger goes on, every 50 ms, with addresses that say nothing. */
static void find_genuine_among(uint32_t forger, uint32_t genuine_told_by, bool many_addresses)
{
    for (unsigned i = 0; i < 40; i++) {
        forge(forger, 2000, many_addresses);
        pass(50 * MS);
    }
    uint64_t from_ns = world->now_ns;
    for (unsigned i = 0; i < 100; i++) {
        forge(forger, 2000, many_addresses);
        if (i % 10 == 0) {
            advertised(genuine_told_by, GENUINE, 7, 1);
        }
        pass(50 * MS);
    }
    CHECK_EQ(world->genuine, 1);
    CHECK(world->genuine_at_ns - from_ns < 5 * SIM_SEC);
}

TEST(f5_a_genuine_source_is_joined_within_five_seconds_while_forgeries_keep_coming)
{
    struct world w;
    open_world(&w, UM_RCV_JOIN_ASKS, 30 * SIM_SEC);
    find_genuine_among(FORGER, GENUINE, true); /* the forger names 2,000 addresses, but speaks from one */
    close_world();
    open_world(&w, UM_RCV_JOIN_ASKS, 30 * SIM_SEC);
    find_genuine_among(FORGER, FORGER, false); /* lbmrd speaks for all; the forger names one address */
    close_world();
    open_world(&w, UM_RCV_JOIN_ASKS, 0);
    find_genuine_among(FORGER, FORGER, true); /* lbmrd, and 2,000 addresses that refuse */
    close_world();
    open_world(&w, UM_RCV_JOIN_ASKS, 30 * SIM_SEC);
    find_genuine_among(FORGER, FORGER, true); /* lbmrd, and 2,000 addresses that say nothing */
    close_world();
}

TEST(many_genuine_sources_at_one_address_are_joined_in_turn_and_none_is_broken_off)
{
    struct world w;
    struct um_rcv_joins_stats stats;
    open_world(&w, UM_RCV_JOIN_ASKS, 0);
    for (uint32_t session = 0; session < 2000; session++) {
        struct um_rcv_join_offer what = {.told_by = htonl(GENUINE)};
        what.info.type = LBM_TRANSPORT_TYPE_TCP;
        what.info.src_ip = htonl(GENUINE);
        what.info.src_port = 7;
        what.info.session_id = session;
        offer(&w.topic, &what, w.now_ns);
    }
    pass(SIM_SEC);
    CHECK_EQ(w.genuine, 2000);
    um_rcv_joins_stats(w.joins, &stats);
    CHECK_EQ(stats.yielded, 0);
    CHECK_EQ(stats.forgotten, 0);
    close_world();
}

TEST(f5_one_session_has_a_bounded_number_of_sources_of_a_topic)
{
    struct world w;
    struct um_rcv_joins_stats stats;
    open_world(&w, UM_RCV_JOIN_ASKS, SIM_SEC);
    for (uint32_t index = 0; index < 5000; index++) {
        advertised(FORGER, FORGER, 1000, index);
    }
    CHECK_EQ(w.attempts, 1024);
    um_rcv_joins_stats(w.joins, &stats);
    CHECK_EQ(stats.under_way, 1); /* one session */
    CHECK_EQ(stats.refused, 5000 - 1024);
    close_world();
}

/* Nothing ends silently: who advertised once and waited in vain is handed on to those who try again. */
TEST(f13_sources_that_waited_in_vain_are_handed_on)
{
    struct world w;
    struct um_rcv_joins_stats stats;
    open_world(&w, UM_RCV_JOIN_ASKS, 60 * SIM_SEC); /* whoever has a place keeps it until it must yield */
    forge(FORGER, 2000, true);
    pass(100 * SIM_SEC);
    um_rcv_joins_stats(w.joins, &stats);
    CHECK_EQ(stats.waiting, 0);
    CHECK(w.unheard > 0);
    CHECK_EQ(w.unheard + stats.under_way, 2000);
    close_world();
}

/* An LBT-RM session on the one group, which is open if the kind says so. */
static void advertised_on_group(uint32_t told_by, uint32_t ip, uint16_t port, uint32_t session)
{
    struct um_rcv_join_offer what = {.told_by = htonl(told_by)};
    what.info.type = LBM_TRANSPORT_TYPE_LBTRM;
    what.info.src_ip = htonl(ip);
    what.info.src_port = port;
    what.info.session_id = session;
    what.info.mc_group = htonl(0xef010101u);
    what.info.dest_port = 14400;
    what.info.topic_idx = 1;
    offer(&world->topic, &what, world->now_ns);
}

static void forge_on_group(uint32_t told_by, uint32_t count, bool many_addresses)
{
    for (uint32_t i = 0; i < count; i++) {
        advertised_on_group(told_by, many_addresses ? 0x0b000001u + i : FORGER, (uint16_t)(1000 + i % 50000), i);
    }
}

static void find_genuine_on_group(enum um_rcv_join_kind kind, uint32_t forger, bool many_addresses, unsigned most)
{
    struct world w;
    struct um_rcv_joins_stats stats;
    open_world(&w, kind, 60 * SIM_SEC);
    forge_on_group(forger, 20000, many_addresses);
    CHECK_EQ(w.under_way, most);
    um_rcv_joins_stats(w.joins, &stats);
    CHECK_EQ(stats.under_way, most);
    CHECK(stats.waiting >= 4096);
    uint64_t from_ns = w.now_ns;
    for (unsigned i = 0; i < 50; i++) {
        if (i % 10 == 0) {
            forge_on_group(forger, 20000, many_addresses);
            advertised_on_group(GENUINE, GENUINE, 7, 1);
        }
        pass(100 * MS);
    }
    CHECK_EQ(w.genuine, 1);
    CHECK(w.genuine_at_ns - from_ns < 5 * SIM_SEC);
    CHECK(w.most_under_way <= most + 1);
    pass(10 * SIM_SEC); /* the group has proved itself; the forged sessions have not */
    CHECK(w.most_under_way <= most + 1);
    um_rcv_joins_stats(w.joins, &stats);
    CHECK(stats.yielded > 0);
    close_world();
}

TEST(f5_sessions_of_one_group_are_bounded_one_by_one)
{
    for (int kind = UM_RCV_JOIN_GROUP; kind <= UM_RCV_JOIN_MEMORY; kind++) {
        find_genuine_on_group((enum um_rcv_join_kind)kind, FORGER, true, 3072);   /* of one who advertises */
        find_genuine_on_group((enum um_rcv_join_kind)kind, GENUINE, false, 2048); /* at one address */
    }
}

/* As many groups as may be under way, each with two sessions: a session alone does not keep its group open. */
TEST(f5_a_group_that_makes_room_is_left_by_all_its_sessions)
{
    struct world w;
    open_world(&w, UM_RCV_JOIN_GROUP, 60 * SIM_SEC);
    for (uint32_t group = 0; group < 200; group++) {
        for (uint32_t session = 0; session < 2; session++) {
            struct um_rcv_join_offer what = {.told_by = htonl(FORGER)};
            what.info.type = LBM_TRANSPORT_TYPE_LBTRM;
            what.info.src_ip = htonl(0x0b000001u + group);
            what.info.mc_group = htonl(0xef010101u + group);
            what.info.session_id = session;
            w.kind = session == 0 ? UM_RCV_JOIN_GROUP : UM_RCV_JOIN_MEMORY;
            if (session == 0 || group < 96) {
                offer(&w.topic, &what, w.now_ns);
            }
        }
    }
    CHECK_EQ(w.under_way, 2 * 96);
    pass(11 * SIM_SEC);
    CHECK_EQ(w.under_way, 2 * 96);
    w.kind = UM_RCV_JOIN_GROUP;
    pass(2 * SIM_SEC);
    struct um_list *node;
    UM_LIST_FOREACH(node, &w.all)
    {
        CHECK(ntohl(UM_CONTAINER_OF(node, struct join, node)->joining.offer.info.src_ip) >= 0x0b000001u + 96);
    }
    close_world();
}

static struct um_rcv_join_offer genuine_offer(uint32_t told_by)
{
    struct um_rcv_join_offer what = {.told_by = htonl(told_by)};
    what.info.type = LBM_TRANSPORT_TYPE_TCP;
    what.info.src_ip = htonl(GENUINE);
    what.info.src_port = 7;
    what.info.topic_idx = 1;
    return what;
}

TEST(f5_a_source_that_is_joined_without_its_turn_waits_no_more_and_is_not_joined_twice)
{
    struct world w;
    struct um_rcv_joins_stats stats;
    struct um_rcv_joining first = {0}, second = {0};
    struct um_rcv_join_offer what = genuine_offer(FORGER);
    open_world(&w, UM_RCV_JOIN_ASKS, 200 * SIM_SEC);
    forge(FORGER, 192, true);
    offer(&w.topic, &what, w.now_ns);
    CHECK_EQ(w.attempts, 192);
    um_rcv_joins_stats(w.joins, &stats);
    CHECK_EQ(stats.waiting, 1);
    /* Its session is there by now. */
    CHECK(um_rcv_joins_may(w.joins, &w.topic, UM_RCV_JOIN_FREE, &what, w.now_ns));
    CHECK_EQ(um_rcv_joins_begin(w.joins, &w.topic, UM_RCV_JOIN_FREE, &what, &first, w.now_ns), 0);
    um_rcv_joins_stats(w.joins, &stats);
    CHECK_EQ(stats.waiting, 0);
    CHECK_EQ(um_rcv_joins_begin(w.joins, &w.topic, UM_RCV_JOIN_FREE, &what, &second, w.now_ns), -1);
    CHECK(um_rcv_joins_find(w.joins, &w.topic, &what.info) == &first);
    pass(70 * SIM_SEC);
    CHECK_EQ(w.unheard, 0);
    CHECK_EQ(w.genuine, 0);
    um_rcv_joins_end(w.joins, &first, w.now_ns);
    CHECK(um_rcv_joins_find(w.joins, &w.topic, &what.info) == NULL);
    close_world();
}

/* Everything comes through one daemon; the forger fills the line faster than places become free. */
TEST(f5_who_fills_the_line_makes_room_in_it_and_nobody_is_dropped_silently)
{
    struct world w;
    struct um_rcv_joins_stats stats;
    open_world(&w, UM_RCV_JOIN_ASKS, 60 * SIM_SEC);
    uint32_t waiting = 0;
    for (uint32_t i = 0; i < 20; i++) { /* twenty genuine hosts, a source each: they wait behind 192 addresses */
        forge(FORGER, i == 0 ? 192 : 0, true);
        struct um_rcv_join_offer what = genuine_offer(FORGER);
        what.info.src_ip = htonl(GENUINE + i);
        what.info.src_port = 200;
        offer(&w.topic, &what, w.now_ns);
    }
    for (uint32_t i = 0; i < 20000; i++) {
        advertised(FORGER, 0x0c000001u + i % 10, (uint16_t)(1000 + i), i);
        um_rcv_joins_stats(w.joins, &stats);
        CHECK(stats.waiting <= 4096);
        waiting = (uint32_t)stats.waiting;
    }
    CHECK_EQ(waiting, 4096);
    CHECK_EQ(w.unheard, 20020 - 4096); /* whoever is not in the line was handed on */
    struct um_rcv_join_offer last = genuine_offer(FORGER);
    offer(&w.topic, &last, w.now_ns); /* still enters, at the cost of the longest */
    CHECK_EQ(w.unheard, 20021 - 4096);
    for (uint32_t i = 0; i < 20; i++) {
        struct um_rcv_join_offer what = genuine_offer(FORGER);
        what.info.src_ip = htonl(GENUINE + i);
        what.info.src_port = 200;
        CHECK(um_rcv_joins_forget(w.joins, &w.topic, &what.info)); /* none of those was evicted */
    }
    pass(3 * SIM_SEC);
    CHECK_EQ(w.genuine, 1);
    close_world();
}

/* Two forged senders fill the line after a genuine source; nobody else's place in it is theirs. */
TEST(f5_a_full_line_makes_room_where_most_wait)
{
    struct world w;
    struct um_rcv_joins_stats stats;
    struct um_rcv_join_offer what = genuine_offer(GENUINE);
    open_world(&w, UM_RCV_JOIN_ASKS, 60 * SIM_SEC);
    forge(FORGER, 192, true);
    for (uint32_t i = 0; i < 64; i++) {
        advertised(FORGER + 1, 0x0e000001u + i, 1000, i);
    }
    CHECK_EQ(w.under_way, 256 - 32); /* what a topic may take: now anybody waits */
    offer(&w.topic, &what, w.now_ns);
    for (uint32_t told_by = 2; told_by < 4; told_by++) {
        for (uint32_t i = 0; i < 5000; i++) {
            advertised(FORGER + told_by, 0x0d000001u + (told_by << 16) + i, 1000, i);
        }
    }
    um_rcv_joins_stats(w.joins, &stats);
    CHECK_EQ(stats.waiting, 8192);
    CHECK(um_rcv_joins_forget(w.joins, &w.topic, &what.info)); /* it was there */
    offer(&w.topic, &what, w.now_ns);
    pass(3 * SIM_SEC);
    CHECK_EQ(w.genuine, 1);
    close_world();
}

/* The answers of 64 sources at one address are there and unread when the process that was stopped goes on. */
TEST(joins_yield_for_the_time_in_which_answers_could_be_read)
{
    struct world w;
    struct um_rcv_joins_stats stats;
    open_world(&w, UM_RCV_JOIN_ASKS, 30 * SIM_SEC);
    crowd_one_address();
    for (int stop = 0; stop < 3; stop++) {
        pass(50 * MS);
        w.now_ns += 5 * SIM_SEC;
        um_timer_run(w.wheel, w.now_ns);
    }
    pass(50 * MS); /* with the stops, each of which is one tick: 350 ms */
    um_rcv_joins_stats(w.joins, &stats);
    CHECK_EQ(stats.yielded, 0);
    pass(300 * MS);
    um_rcv_joins_stats(w.joins, &stats);
    CHECK(stats.yielded > 0);
    close_world();
}

/* A loop that is late at every tick makes room all the same. */
TEST(joins_yield_in_a_loop_that_is_always_late)
{
    struct world w;
    struct um_rcv_joins_stats stats;
    open_world(&w, UM_RCV_JOIN_ASKS, 30 * SIM_SEC);
    for (uint32_t i = 0; i < 65; i++) {
        advertised(FORGER, 0x0d000001u, (uint16_t)(1000 + i), i);
    }
    for (int late = 0; late < 20; late++) {
        w.now_ns += 300 * MS;
        um_timer_run(w.wheel, w.now_ns);
    }
    um_rcv_joins_stats(w.joins, &stats);
    CHECK(stats.yielded > 0);
    close_world();
}

static struct um_rcv_join_offer group_offer(uint32_t told_by, uint32_t number)
{
    struct um_rcv_join_offer what = {.told_by = htonl(told_by)};
    what.info.type = LBM_TRANSPORT_TYPE_LBTRM;
    what.info.src_ip = htonl(told_by);
    what.info.src_port = 1;
    what.info.mc_group = htonl(0xef000000u + number);
    what.info.dest_port = 14400;
    what.info.topic_idx = 1;
    return what;
}

/* Joins over TCP that somebody forges run out in every tick; those of silent groups make room all the same. */
TEST(f5_a_kind_whose_joins_always_yield_does_not_keep_others_from_it)
{
    struct world w;
    struct um_rcv_join_topic tcp;
    struct um_rcv_join_offer genuine = group_offer(GENUINE, 1000);
    open_world(&w, UM_RCV_JOIN_ASKS, 600 * SIM_SEC);
    um_rcv_join_topic_init(&tcp);
    for (uint32_t i = 0; i < 256; i++) {
        struct um_rcv_join_offer what = group_offer(FORGER + i % 4, i);
        offer(&w.topic, &what, w.now_ns);
    }
    for (uint32_t i = 0; i < 1500; i++) {
        struct um_rcv_join_offer what = {.told_by = htonl(FORGER)};
        what.info.type = LBM_TRANSPORT_TYPE_TCP;
        what.info.src_ip = htonl(0x0c000000u + i);
        what.info.src_port = 1000;
        offer(&tcp, &what, w.now_ns);
        if (i % 100 == 0) {
            offer(&w.topic, &genuine, w.now_ns);
        }
        pass(10 * MS);
    }
    CHECK_EQ(w.genuine, 1);
    um_rcv_joins_forget_topic(w.joins, &tcp);
    close_world();
}

/* After a stop sockets are read before the timer runs: what joins then has its whole time. */
TEST(joins_that_begin_right_after_a_stop_have_their_time)
{
    struct world w;
    open_world(&w, UM_RCV_JOIN_ASKS, 600 * SIM_SEC);
    for (uint32_t i = 0; i < 100; i++) {
        advertised(FORGER, 0x0d000001u, (uint16_t)(1000 + i), i);
    }
    pass(50 * MS);
    w.now_ns += 5 * SIM_SEC;
    for (uint32_t i = 0; i < 200; i++) {
        struct um_rcv_join_offer what = group_offer(FORGER + i % 4, i);
        offer(&w.topic, &what, w.now_ns);
    }
    um_timer_run(w.wheel, w.now_ns);
    uint64_t before = w.groups_yielded;
    pass(11 * SIM_SEC);
    CHECK_EQ(w.groups_yielded, before);
    pass(2 * SIM_SEC);
    CHECK(w.groups_yielded > before);
    close_world();
}

TEST(f5_a_source_that_is_withdrawn_leaves_the_line)
{
    struct world w;
    struct um_rcv_joins_stats stats;
    struct um_rcv_join_offer what = genuine_offer(FORGER);
    open_world(&w, UM_RCV_JOIN_ASKS, 30 * SIM_SEC);
    forge(FORGER, 192, true);
    offer(&w.topic, &what, w.now_ns);
    CHECK(um_rcv_joins_forget(w.joins, &w.topic, &what.info));
    CHECK(!um_rcv_joins_forget(w.joins, &w.topic, &what.info));
    um_rcv_joins_stats(w.joins, &stats);
    CHECK_EQ(stats.waiting, 0);
    pass(40 * SIM_SEC);
    CHECK_EQ(w.attempts, 192);
    CHECK_EQ(w.unheard, 0);
    close_world();
}

/* It holds its place while what it has sent may still come; then it makes room for good. */
TEST(f5_a_source_that_is_withdrawn_while_it_is_joined_does_not_wait_once_it_has_yielded)
{
    struct world w;
    struct um_rcv_joins_stats stats;
    open_world(&w, UM_RCV_JOIN_ASKS, 30 * SIM_SEC);
    crowd_one_address();
    UM_CONTAINER_OF(um_list_first(&w.all), struct join, node)->joining.withdrawn = true;
    pass(5 * SIM_SEC);
    um_rcv_joins_stats(w.joins, &stats);
    CHECK_EQ(stats.yielded, 1); /* to the one who waited; others would change places for as long as they are heard */
    CHECK_EQ(stats.waiting, 0);
    CHECK_EQ(w.attempts, 65);
    CHECK_EQ(w.unheard, 0);
    close_world();
}

/* ---- sources of which nothing was received ---- */

static struct um_rcv_hearer *displaced[UM_RCV_HEARSAY_MAX];
static unsigned displaced_count;

static void note_displaced(struct um_rcv_hearer *hearer, uint64_t now_ns)
{
    displaced[displaced_count++ % UM_RCV_HEARSAY_MAX] = hearer;
}

static const struct um_rcv_hearsay_ops hearsay_ops = {note_displaced};

/* `count` sources on hearsay: every `per_topic` of them are of one topic, every `per_session` on one session. The first
 * one is heard, and the second one leaves. Then as many as are over `most` make way, from the third on. */
static void hearsay_is_bounded(unsigned count, unsigned per_topic, unsigned per_session, unsigned most)
{
    struct um_timer_wheel *wheel = um_timer_wheel_create(SIM_MS);
    struct um_rcv_hearsay *hearsay = um_rcv_hearsay_create(wheel, &hearsay_ops);
    struct um_rcv_hearer *hearers = calloc(count, sizeof *hearers);
    struct um_rcv_hearsay_topic *topics = calloc(1 + count / per_topic, sizeof *topics);
    struct um_rcv_hearsay_stats stats;
    displaced_count = 0;
    for (unsigned i = 0; i < count; i++) {
        um_rcv_hearer_init(&hearers[i]);
        um_rcv_hearsay_add(hearsay, &topics[i / per_topic], (void *)(uintptr_t)(1 + i / per_session), &hearers[i],
                           SIM_MS);
        if (i < 2) {
            um_rcv_hearsay_remove(hearsay, &hearers[i]);
        }
    }
    CHECK_EQ(displaced_count, 0); /* not from inside */
    um_rcv_hearsay_stats(hearsay, &stats);
    CHECK_EQ(stats.count, most);
    CHECK_EQ(stats.displaced, count - 2 - most);
    um_rcv_hearsay_remove(hearsay, &hearers[2]); /* it was to make way, and is heard at last */
    um_timer_run(wheel, 2 * SIM_MS);
    CHECK_EQ(displaced_count, count - 3 - most);
    for (unsigned i = 0; i < displaced_count; i++) {
        CHECK(displaced[i] == &hearers[3 + i]);
    }
    for (unsigned i = 0; i < count; i++) {
        um_rcv_hearsay_remove(hearsay, &hearers[i]);
    }
    um_rcv_hearsay_stats(hearsay, &stats);
    CHECK_EQ(stats.count, 0);
    um_rcv_hearsay_destroy(hearsay);
    um_timer_wheel_destroy(wheel);
    free(hearers);
    free(topics);
}

TEST(f5_sources_of_a_topic_on_a_session_are_bounded_while_nothing_of_them_is_received)
{
    hearsay_is_bounded(2000, 2000, 2000, UM_RCV_HEARSAY_TOPIC_MAX);
}

TEST(f5_sources_on_a_session_are_bounded_while_nothing_of_them_is_received)
{
    hearsay_is_bounded(6000, 1, 6000, UM_RCV_HEARSAY_SESSION_MAX);
}

TEST(f5_sources_of_a_context_are_bounded_while_nothing_of_them_is_received)
{
    hearsay_is_bounded(20000, 1, 100, UM_RCV_HEARSAY_MAX);
}
