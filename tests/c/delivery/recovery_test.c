/* Recovery of one stream: when it asks for what. The times of the specification; information that makes no sense. */
#include "base/um_mem.h"
#include "base/um_timer.h"
#include "delivery/um_recovery.h"
#include "um_test.h"

#define ASKED_MAX 64

static struct {
    struct um_dc *dc;
    struct um_recovery recovery;
    uint64_t now_ns, due_ns;
    uint32_t asked[ASKED_MAX];
    uint64_t asked_ns[ASKED_MAX];
    unsigned asked_count, infos, lasts, skipped, senseless, otr, alerts;
    uint32_t delivered[ASKED_MAX];
    unsigned delivered_count, lost, bursts, late_joined, recovered;
    bool repairs; /* the transport still does, before the stream begins */
    uint32_t low, wanted, high, chosen, beyond;
    unsigned choices;
} world;

static uint32_t proximity = 5000;

static void on_deliver(void *user, const struct um_dc_delivery *d, uint64_t now_ns)
{
    world.delivered[world.delivered_count++ % ASKED_MAX] = d->sqn;
    world.late_joined += (d->msg->present & UM_LBMC_LATE_JOINED) != 0;
    world.recovered += (d->msg->present & UM_LBMC_RECOVERED) != 0;
}

static void on_loss(void *user, uint32_t sqn, uint64_t now_ns)
{
    world.lost++;
}

static void on_burst(void *user, uint32_t first, uint32_t count, uint64_t now_ns)
{
    world.lost += count;
    world.bursts++;
}

static void on_dc_timer(void *user, uint64_t due_ns)
{
}

static bool on_wanted(void *user, uint32_t first, uint32_t count, uint64_t now_ns)
{
    return um_recovery_wanted(&world.recovery, first, count, now_ns);
}

static bool complete_before(void *user, uint32_t position)
{
    return !world.repairs;
}

static const struct um_dc_ops DC_OPS = {.complete_before = complete_before,
                                        .deliver = on_deliver,
                                        .loss = on_loss,
                                        .burst_loss = on_burst,
                                        .set_timer = on_dc_timer,
                                        .recovery_wanted = on_wanted};

static void ask_info(void *user, bool has_low, uint32_t low)
{
    world.infos++;
}

static void ask(void *user, uint32_t sqn)
{
    world.asked[world.asked_count % ASKED_MAX] = sqn;
    world.asked_ns[world.asked_count++ % ASKED_MAX] = world.now_ns;
}

static void ask_last(void *user)
{
    world.lasts++;
}

static void set_timer(void *user, uint64_t due_ns)
{
    world.due_ns = due_ns;
}

static void note(void *user, enum um_recovery_note what, uint32_t count, uint64_t now_ns)
{
    world.skipped += what == UM_RECOVERY_SKIPPED;
    world.senseless += what == UM_RECOVERY_SENSELESS;
    world.otr += what == UM_RECOVERY_OTR_ALERT || what == UM_RECOVERY_OTR_AGAIN;
    world.alerts += what == UM_RECOVERY_OTR_ALERT;
    world.beyond += what == UM_RECOVERY_BEYOND;
}

static const struct um_recovery_ops OPS = {
    .ask_info = ask_info, .ask = ask, .ask_last = ask_last, .set_timer = set_timer, .note = note};

static uint32_t begin_at(void *user, uint32_t low, uint32_t wanted, uint32_t high)
{
    world.choices++;
    world.low = low;
    world.wanted = wanted;
    world.high = high;
    return world.chosen;
}

static const struct um_recovery_ops CHOOSING_OPS = {
    .ask_info = ask_info, .ask = ask, .ask_last = ask_last, .set_timer = set_timer, .begin = begin_at, .note = note};

static struct um_recovery_config defaults(void)
{
    return (struct um_recovery_config){.late_join = true,
                                       .info_interval_ns = UM_NS_PER_SEC,
                                       .info_maximum = 60,
                                       .request_interval_ns = 500 * UM_NS_PER_MS,
                                       .request_timeout_ns = 10 * UM_NS_PER_SEC,
                                       .request_outstanding = 10,
                                       .ask_last = true,
                                       .last_interval_ns = UM_NS_PER_SEC,
                                       .last_maximum = 60,
                                       .otr_delay_ns = 2 * UM_NS_PER_SEC,
                                       .otr_interval_ns = UM_NS_PER_SEC,
                                       .otr_interval_max_ns = 10 * UM_NS_PER_SEC,
                                       .otr_timeout_ns = 60 * UM_NS_PER_SEC,
                                       .otr_outstanding = 200,
                                       .otr_entries_threshold = 10000};
}

static void begin_in_mode(const struct um_recovery_config *config, int ordered_delivery)
{
    const struct um_dc_config dc = {.ordered_delivery = ordered_delivery,
                                    .maximum_burst_loss = 1024,
                                    .gap_timeout_ns = 10 * UM_NS_PER_SEC,
                                    .reassembly_size_max = 1u << 20,
                                    .caching_proximity = proximity,
                                    .recovery_entries_max = config->off_transport ? config->otr_entries_threshold : 0,
                                    .recovers_bursts = config->off_transport};
    memset(&world, 0, sizeof world);
    world.now_ns = 100 * UM_NS_PER_SEC;
    world.due_ns = UM_NEVER;
    world.dc = um_dc_create(&dc, &DC_OPS, NULL);
    um_recovery_init(&world.recovery, config, &OPS, NULL, world.dc);
    um_recovery_start(&world.recovery, world.now_ns);
}

static void begin(const struct um_recovery_config *config)
{
    begin_in_mode(config, 1);
}

static void end(void)
{
    um_recovery_fini(&world.recovery);
    um_dc_destroy(world.dc);
}

static void run(uint64_t until_ns)
{
    while (world.due_ns <= until_ns) {
        world.now_ns = world.due_ns > world.now_ns ? world.due_ns : world.now_ns;
        world.due_ns = UM_NEVER;
        um_recovery_on_timer(&world.recovery, world.now_ns);
    }
    world.now_ns = until_ns;
}

static bool arrives(uint32_t sqn, bool recovered)
{
    struct um_lbmc_msg msg = {.type = recovered ? UM_LBMC_RETRANS : UM_LBMC_MESSAGE, .sqn = sqn};
    struct um_buf *buf = um_buf_alloc(16);
    bool taken = true;
    msg.payload = (struct um_slice){buf->data, 4};
    if (recovered) {
        taken = um_recovery_on_data(&world.recovery, world.now_ns, &msg, buf);
    } else {
        um_dc_on_data(world.dc, world.now_ns, &msg, buf);
    }
    um_buf_unref(buf);
    return taken;
}

TEST(information_is_asked_for_so_many_times_and_then_the_stream_goes_on_without)
{
    struct um_recovery_config config = defaults();
    begin(&config);
    CHECK(arrives(7, false));
    CHECK(arrives(8, false));
    run(world.now_ns + 59 * UM_NS_PER_SEC + UM_NS_PER_MS);
    CHECK_EQ(world.infos, 60);
    CHECK_EQ(world.skipped, 0);
    CHECK_EQ(world.delivered_count, 0);
    run(world.now_ns + UM_NS_PER_SEC);
    CHECK_EQ(world.infos, 60);
    CHECK_EQ(world.skipped, 1);
    CHECK_EQ(world.delivered_count, 2);
    CHECK(arrives(9, false));
    CHECK_EQ(world.delivered_count, 3);
    end();
}

TEST(what_is_retained_comes_before_what_is_live_a_few_requests_at_a_time)
{
    struct um_recovery_config config = defaults();
    begin(&config);
    CHECK(arrives(50, false));
    um_recovery_on_info(&world.recovery, world.now_ns, 20, 49);
    CHECK_EQ(world.asked_count, 10);
    for (uint32_t sqn = 20; sqn < 50; sqn++) {
        CHECK_EQ(world.asked[sqn - 20], sqn);
        CHECK(arrives(sqn, true));
        CHECK(!arrives(sqn, true)); /* nobody asks any more */
        CHECK(world.recovery.request_count <= 10);
    }
    CHECK_EQ(world.asked_count, 30);
    CHECK_EQ(world.delivered_count, 31);
    for (uint32_t i = 0; i < 31; i++) {
        CHECK_EQ(world.delivered[i], 20 + i);
    }
    end();
}

/* An answer opens the next request; what was asked before is still asked again in its own time. */
TEST(requests_are_repeated_each_in_its_time)
{
    struct um_recovery_config config = defaults();
    config.request_outstanding = 2;
    begin(&config);
    um_recovery_on_info(&world.recovery, world.now_ns, 0, 9);
    uint64_t start_ns = world.now_ns;
    run(start_ns + 300 * UM_NS_PER_MS);
    CHECK(arrives(1, true));
    CHECK_EQ(world.asked_count, 3); /* 0, 1, 2 */
    run(start_ns + 900 * UM_NS_PER_MS);
    CHECK_EQ(world.asked_count, 5);
    CHECK_EQ(world.asked[3], 0);
    CHECK_EQ(world.asked_ns[3] - start_ns, 500 * UM_NS_PER_MS);
    CHECK_EQ(world.asked[4], 2);
    CHECK_EQ(world.asked_ns[4] - start_ns, 800 * UM_NS_PER_MS);
    end();
}

/* 59 and 60 alone are wanted, but 50 came on the transport: from there on nothing is left out. */
TEST(what_came_on_the_transport_is_kept_whatever_maximum_is_asked_for)
{
    struct um_recovery_config config = defaults();
    config.request_maximum = 2;
    begin(&config);
    CHECK(arrives(50, false));
    um_recovery_on_info(&world.recovery, world.now_ns, 0, 60);
    run(world.now_ns);
    CHECK_EQ(world.asked_count, 10);
    CHECK_EQ(world.asked[0], 51);
    CHECK_EQ(world.asked[9], 60);
    CHECK_EQ(world.delivered_count, 1);
    CHECK_EQ(world.delivered[0], 50);
    end();
}

/* The source had told its numbers before it sent the next ones; they were overtaken, and lie around the wrap. */
TEST(what_was_overtaken_around_the_wrap_is_asked_for_also_as_messages_come)
{
    struct um_recovery_config config = defaults();
    begin_in_mode(&config, 0);
    CHECK(arrives(2, false));
    um_recovery_on_info(&world.recovery, world.now_ns, UINT32_MAX - 3, UINT32_MAX - 2);
    run(world.now_ns);
    CHECK_EQ(world.asked_count, 6);
    for (uint32_t i = 0; i < world.asked_count; i++) {
        CHECK_EQ(world.asked[i], UINT32_MAX - 3 + i);
        CHECK(arrives(world.asked[i], true));
    }
    CHECK_EQ(world.delivered_count, 7);
    end();
}

TEST(a_source_that_had_sent_nothing_has_sent_something_before_its_answer_is_here)
{
    struct um_recovery_config config = defaults();
    begin_in_mode(&config, 0);
    CHECK(arrives(2, false));
    um_recovery_on_info(&world.recovery, world.now_ns, 0, UINT32_MAX);
    run(world.now_ns);
    CHECK_EQ(world.asked_count, 2);
    CHECK(arrives(0, true));
    CHECK(arrives(1, true));
    CHECK_EQ(world.delivered_count, 3);
    end();
}

/* 52 is missing while the replay goes on, 56 when it is over: that one is the transport's. */
TEST(gaps_belong_to_the_replay_until_it_is_over)
{
    struct um_recovery_config config = defaults();
    begin(&config);
    CHECK(arrives(50, false));
    um_recovery_on_info(&world.recovery, world.now_ns, 48, 49);
    CHECK(arrives(51, false));
    CHECK(arrives(53, false));
    run(world.now_ns);
    CHECK_EQ(world.asked_count, 3);
    CHECK_EQ(world.asked[2], 52);
    CHECK(arrives(52, true));
    CHECK(arrives(48, true));
    CHECK(arrives(49, true));
    CHECK_EQ(world.delivered_count, 6);
    CHECK_EQ(world.late_joined, 3);
    CHECK_EQ(world.recovered, 0);
    CHECK(arrives(54, false));
    CHECK(arrives(56, false));
    run(world.now_ns + UM_NS_PER_SEC);
    CHECK_EQ(world.asked_count, 3);
    end();
}

/* Messages are delivered as they come, so that a gap was recovered from before the replay is known. */
TEST(a_number_that_is_asked_for_is_not_asked_for_once_more_by_the_replay)
{
    struct um_recovery_config config = defaults();
    config.off_transport = true;
    config.otr_delay_ns = 0;
    begin_in_mode(&config, 0);
    CHECK(arrives(50, false));
    CHECK(arrives(52, false));
    run(world.now_ns);
    CHECK_EQ(world.asked_count, 1);
    CHECK_EQ(world.asked[0], 51);
    um_recovery_on_info(&world.recovery, world.now_ns, 48, 52);
    run(world.now_ns);
    CHECK_EQ(world.asked_count, 3);
    CHECK_EQ(world.asked[1], 48);
    CHECK_EQ(world.asked[2], 49);
    CHECK(arrives(51, true));
    CHECK(!arrives(51, true));
    CHECK_EQ(world.delivered_count, 3);
    end();
}

/* It may be long before the transport repairs what is missing in front of the first message. Whoever is faster brings
 * it; it is delivered once. */
TEST(a_replay_does_not_wait_until_the_transport_has_repaired_its_beginning)
{
    struct um_recovery_config config = defaults();
    begin(&config);
    world.repairs = true;
    CHECK(arrives(50, false));
    um_recovery_on_info(&world.recovery, world.now_ns, 48, 49);
    run(world.now_ns + 20 * UM_NS_PER_MS);
    CHECK_EQ(world.asked_count, 2);
    CHECK_EQ(world.asked[0], 48);
    CHECK_EQ(world.asked[1], 49);
    CHECK_EQ(world.delivered_count, 0);
    CHECK(arrives(48, true));
    CHECK(arrives(49, false));
    CHECK(arrives(49, true)); /* the answer to what was asked for; not delivered once more */
    CHECK_EQ(world.delivered_count, 3);
    world.repairs = false;
    um_dc_on_progress(world.dc, world.now_ns);
    run(world.now_ns + UM_NS_PER_SEC);
    CHECK_EQ(world.asked_count, 2);
    end();
}

static bool no_memory(size_t size)
{
    (void)size;
    return true;
}

TEST(without_memory_for_requests_they_are_sent_later)
{
    struct um_recovery_config config = defaults();
    config.request_outstanding = 100;
    begin(&config);
    um_recovery_on_info(&world.recovery, world.now_ns, 0, 15); /* room for sixteen */
    CHECK_EQ(world.asked_count, 16);
    CHECK(arrives(20, false));
    for (uint32_t sqn = 0; sqn < 16; sqn++) {
        world.recovery.requests[sqn].next_ns = UM_NEVER; /* nothing else brings it back */
    }
    um_mem_set_fail_hook(no_memory);
    run(world.now_ns);
    um_mem_set_fail_hook(NULL);
    CHECK_EQ(world.asked_count, 16);
    run(world.now_ns + config.request_interval_ns);
    CHECK_EQ(world.asked_count, 20);
    end();
}

/* With few under way each answer opens the next request, as above. */
TEST(with_many_under_way_an_eighth_of_them_opens_together)
{
    struct um_recovery_config config = defaults();
    config.request_outstanding = 64;
    begin(&config);
    um_recovery_on_info(&world.recovery, world.now_ns, 0, 199);
    CHECK_EQ(world.asked_count, 64);
    for (uint32_t sqn = 0; sqn < 200; sqn++) {
        CHECK(arrives(sqn, true));
        uint32_t looked = (sqn + 1) / 8 * 8;
        CHECK_EQ(world.asked_count, 64 + looked < 200 ? 64 + looked : 200);
    }
    CHECK_EQ(world.delivered_count, 200);
    CHECK_EQ(world.recovery.request_count, 0);
    end();
}

/* The oldest of those under way comes last, again and again, so that answered ones stand among open ones; numbers wrap.
 */
TEST(answers_find_their_requests_in_whatever_order_they_come)
{
    struct um_recovery_config config = defaults();
    config.request_outstanding = 64;
    uint32_t first = UINT32_MAX - 99, count = 512;
    begin(&config);
    um_recovery_on_info(&world.recovery, world.now_ns, first, first + count - 1);
    for (uint32_t step = 0; step < count; step += 32) {
        for (uint32_t i = 32; i-- > 0;) {
            uint32_t sqn = first + step + i * 5 % 32;
            CHECK(um_recovery_asked(&world.recovery, sqn));
            CHECK(arrives(sqn, true));
            CHECK(!um_recovery_asked(&world.recovery, sqn));
            CHECK(!arrives(sqn, true));
            CHECK(world.recovery.request_count <= 64);
        }
    }
    CHECK_EQ(world.recovery.stats.asked, count);
    CHECK_EQ(world.delivered_count, count);
    CHECK_EQ(world.recovery.request_count, 0);
    CHECK(world.recovery.request_capacity <= 128);
    end();
}

/* The first answer is lost: what is asked for beyond it, and held, ends at the window. */
TEST(no_more_is_asked_for_than_may_be_held_behind_what_is_missing)
{
    struct um_recovery_config config = defaults();
    config.window = 30;
    begin(&config);
    um_recovery_on_info(&world.recovery, world.now_ns, UINT32_MAX - 3, 99);
    for (uint32_t sqn = UINT32_MAX - 2; sqn != 26; sqn++) {
        CHECK(arrives(sqn, true));
    }
    CHECK_EQ(world.asked_count, 30);
    CHECK_EQ(um_dc_held(world.dc), 29);
    CHECK(arrives(UINT32_MAX - 3, true));
    CHECK_EQ(world.delivered_count, 30);
    CHECK_EQ(world.asked_count, 40);
    end();
}

TEST(requests_under_way_are_bounded_whatever_the_option_says)
{
    struct um_recovery_config config = defaults();
    config.request_outstanding = 100000;
    begin(&config);
    um_recovery_on_info(&world.recovery, world.now_ns, 0, 99999);
    CHECK_EQ(world.recovery.request_count, UM_RECOVERY_OUTSTANDING_MAX);
    end();
}

/* Counted from the newest number that was recovered, or that is in order: 4 beyond it is held, 5 is left to recovery.
 */
TEST(live_messages_are_held_within_the_proximity_of_what_is_recovered)
{
    struct um_recovery_config config = defaults();
    proximity = 5;
    config.request_outstanding = 3;
    begin(&config);
    um_recovery_on_info(&world.recovery, world.now_ns, 40, 41);
    CHECK(arrives(42, false));
    CHECK(arrives(43, false)); /* 39 + 4 */
    CHECK_EQ(um_dc_held(world.dc), 2);
    CHECK(arrives(44, false));
    CHECK_EQ(um_dc_held(world.dc), 2);
    CHECK(arrives(41, true));  /* 40 is missing */
    CHECK(arrives(45, false)); /* 41 + 4 */
    CHECK_EQ(um_dc_held(world.dc), 4);
    CHECK(arrives(46, false));
    CHECK_EQ(um_dc_held(world.dc), 4);
    proximity = 5000;
    end();
}

/* What was chosen, where it begins then, and how many numbers are asked for. */
static void check_choice(uint32_t chosen, uint32_t begins, unsigned asked, unsigned beyond)
{
    struct um_recovery_config config = defaults();
    config.request_maximum = 4;
    begin(&config);
    world.recovery.ops = &CHOOSING_OPS;
    world.chosen = chosen;
    um_recovery_on_info(&world.recovery, world.now_ns, UINT32_MAX - 1, 5);
    CHECK_EQ(world.choices, 1);
    CHECK_EQ(world.low, UINT32_MAX - 1);
    CHECK_EQ(world.wanted, 2);
    CHECK_EQ(world.high, 5);
    CHECK_EQ(world.asked_count, asked);
    CHECK_EQ(world.beyond, beyond);
    for (uint32_t i = 0; i < asked; i++) {
        CHECK_EQ(world.asked[i], begins + i);
        CHECK(arrives(begins + i, true));
    }
    CHECK(arrives(7, false)); /* 6 is lost, and missed whatever was chosen */
    run(world.now_ns);
    CHECK_EQ(world.asked[asked], 6);
    CHECK(arrives(6, true));
    CHECK_EQ(world.delivered_count, asked + 2);
    end();
}

TEST(the_application_chooses_where_the_replay_begins)
{
    check_choice(UINT32_MAX, UINT32_MAX, 7, 0);
    check_choice(3, 3, 3, 0);
    check_choice(6, 6, 0, 0);
    check_choice(7, 6, 0, 1);
    check_choice(UINT32_MAX - 5, UINT32_MAX - 1, 8, 1);
}

TEST(a_paused_recovery_asks_for_nothing_more_until_it_goes_on)
{
    struct um_recovery_config config = defaults();
    begin(&config);
    um_recovery_on_info(&world.recovery, world.now_ns, 0, 29);
    um_recovery_pause(&world.recovery);
    for (uint32_t sqn = 0; sqn < 9; sqn++) {
        CHECK(arrives(sqn, true));
    }
    CHECK_EQ(world.asked_count, 10);
    run(world.now_ns + 500 * UM_NS_PER_MS);
    CHECK_EQ(world.asked_count, 11); /* what was asked for is asked for again */
    CHECK_EQ(world.asked[10], 9);
    um_recovery_resume(&world.recovery, world.now_ns);
    run(world.now_ns);
    CHECK_EQ(world.asked_count, 20);
    CHECK_EQ(world.asked[19], 18);
    end();
}

TEST(so_many_messages_back_from_the_newest_and_what_came_before_that_is_told)
{
    struct um_recovery_config config = defaults();
    config.request_maximum = 10;
    begin(&config);
    um_recovery_on_info(&world.recovery, world.now_ns, 0, 22);
    CHECK_EQ(world.asked_count, 10);
    CHECK_EQ(world.asked[0], 13);
    CHECK(arrives(25, false)); /* 23 and 24 were sent while it joined */
    run(world.now_ns);
    for (uint32_t sqn = 13; sqn < 25; sqn++) {
        CHECK(arrives(sqn, true));
        run(world.now_ns);
    }
    CHECK_EQ(world.delivered_count, 13);
    CHECK_EQ(world.lost, 0);
    end();
}

TEST(a_request_without_an_answer_is_repeated_and_given_up)
{
    struct um_recovery_config config = defaults();
    begin(&config);
    um_recovery_on_info(&world.recovery, world.now_ns, 5, 5);
    uint64_t start_ns = world.now_ns;
    run(start_ns + 9900 * UM_NS_PER_MS);
    CHECK_EQ(world.asked_count, 20);
    CHECK_EQ(world.asked_ns[1] - start_ns, 500 * UM_NS_PER_MS);
    CHECK_EQ(world.lost, 0);
    run(start_ns + 10500 * UM_NS_PER_MS);
    CHECK_EQ(world.asked_count, 20);
    CHECK_EQ(world.lost, 1);
    CHECK(arrives(6, false));
    CHECK_EQ(world.delivered_count, 1);
    CHECK_EQ(world.due_ns, UM_NEVER);
    end();
}

TEST(of_a_source_that_has_sent_nothing_the_first_message_is_missed_when_it_is_lost)
{
    struct um_recovery_config config = defaults();
    begin(&config);
    um_recovery_on_info(&world.recovery, world.now_ns, 0, UINT32_MAX);
    run(world.now_ns + 5 * UM_NS_PER_SEC + UM_NS_PER_MS);
    CHECK_EQ(world.lasts, 6);
    um_recovery_on_last(&world.recovery, world.now_ns, UINT32_MAX);
    run(world.now_ns + 100 * UM_NS_PER_SEC);
    CHECK_EQ(world.lasts, 6);
    CHECK(arrives(1, false));
    run(world.now_ns);
    CHECK_EQ(world.asked_count, 1);
    CHECK(arrives(0, true));
    CHECK_EQ(world.delivered_count, 2);
    end();
}

TEST(the_last_number_is_asked_for_so_many_times)
{
    struct um_recovery_config config = defaults();
    begin(&config);
    um_recovery_on_info(&world.recovery, world.now_ns, 0, UINT32_MAX);
    run(world.now_ns + 1000 * UM_NS_PER_SEC);
    CHECK_EQ(world.lasts, 60);
    CHECK_EQ(world.due_ns, UM_NEVER);
    end();
}

TEST(the_last_number_is_not_asked_for_without_the_option)
{
    struct um_recovery_config config = defaults();
    config.ask_last = false;
    begin(&config);
    um_recovery_on_info(&world.recovery, world.now_ns, 0, UINT32_MAX);
    run(world.now_ns + 100 * UM_NS_PER_SEC);
    CHECK_EQ(world.lasts, 0);
    end();
}

TEST(information_with_a_range_of_all_numbers_is_ignored)
{
    struct um_recovery_config config = defaults();
    begin(&config);
    CHECK(arrives(50, false));
    um_recovery_on_info(&world.recovery, world.now_ns, 50, 48); /* 2^32 - 1 numbers */
    um_recovery_on_info(&world.recovery, world.now_ns, 50, 50 + (1u << 29));
    CHECK_EQ(world.senseless, 2);
    CHECK_EQ(world.asked_count, 0);
    um_recovery_on_info(&world.recovery, world.now_ns, 45, 49);
    CHECK_EQ(world.asked_count, 5);
    um_recovery_on_info(&world.recovery, world.now_ns, 0, 49); /* a second answer */
    um_recovery_on_info(&world.recovery, world.now_ns, 45, 60);
    run(world.now_ns);
    CHECK_EQ(world.asked_count, 5);
    end();
}

TEST(a_range_with_nothing_behind_it_does_not_keep_the_live_stream_nor_memory)
{
    struct um_recovery_config config = defaults();
    begin(&config);
    CHECK(arrives(5, false));
    um_recovery_on_info(&world.recovery, world.now_ns, 5, 5 + (1u << 27));
    CHECK_EQ(world.delivered_count, 1);
    for (uint32_t sqn = 6; sqn < 30; sqn++) {
        CHECK(arrives(sqn, false));
    }
    CHECK_EQ(world.delivered_count, 25);
    CHECK(world.recovery.request_count <= 10);
    CHECK(um_dc_bytes(world.dc) < 10000);
    end();
}

TEST(off_transport_recovery_begins_after_its_delay_and_doubles_its_interval)
{
    static const uint64_t at_s[] = {2, 3, 5, 9, 17, 27, 37, 47, 57};
    struct um_recovery_config config = defaults();
    config.late_join = false;
    config.off_transport = true;
    begin(&config);
    CHECK(arrives(0, false));
    CHECK(arrives(2, false));
    uint64_t start_ns = world.now_ns;
    run(start_ns + 61 * UM_NS_PER_SEC);
    CHECK_EQ(world.asked_count, sizeof at_s / sizeof at_s[0]);
    for (unsigned i = 0; i < world.asked_count; i++) {
        CHECK_EQ(world.asked[i], 1);
        CHECK_EQ((world.asked_ns[i] - start_ns) / UM_NS_PER_SEC, at_s[i]);
    }
    CHECK_EQ(world.lost, 0);
    run(start_ns + 68 * UM_NS_PER_SEC);
    CHECK_EQ(world.lost, 1);
    CHECK_EQ(world.otr, 1);
    CHECK_EQ(world.delivered_count, 2);
    end();
}

TEST(off_transport_recovery_asks_for_numbers_beyond_half_of_all_from_its_first_request_on)
{
    struct um_recovery_config config = defaults();
    config.late_join = false;
    config.off_transport = true;
    begin(&config);
    CHECK(arrives(0x90000000u, false));
    CHECK(arrives(0x90000002u, false));
    run(world.now_ns + 3 * UM_NS_PER_SEC / 2 + UM_NS_PER_SEC);
    CHECK_EQ(world.asked_count, 1);
    CHECK_EQ(world.asked[0], 0x90000001u);
    end();
}

TEST(off_transport_recovery_asks_for_so_many_at_a_time_and_ends_when_the_transport_is_faster)
{
    struct um_recovery_config config = defaults();
    config.late_join = false;
    config.off_transport = true;
    config.otr_outstanding = 200;
    begin(&config);
    CHECK(arrives(0, false));
    CHECK(arrives(301, false));
    run(world.now_ns + 1900 * UM_NS_PER_MS);
    CHECK_EQ(world.asked_count, 0);
    run(world.now_ns + 200 * UM_NS_PER_MS);
    CHECK_EQ(world.asked_count, 200);
    for (uint32_t sqn = 1; sqn < 301; sqn++) {
        CHECK(arrives(sqn, false)); /* repairs */
    }
    CHECK_EQ(world.delivered_count, 302);
    run(world.now_ns + 100 * UM_NS_PER_SEC);
    CHECK_EQ(world.asked_count, 200);
    CHECK_EQ(world.recovery.request_count, 0);
    CHECK_EQ(world.lost, 0);
    end();
}

static struct um_recovery_config recovering_bursts(void)
{
    struct um_recovery_config config = defaults();
    config.late_join = false;
    config.off_transport = true;
    config.otr_burst = 1024;
    return config;
}

TEST(off_transport_recovery_brings_bursts_too)
{
    struct um_recovery_config config = recovering_bursts();
    begin(&config);
    CHECK(arrives(0, false));
    CHECK(arrives(3001, false));
    run(world.now_ns + 2 * UM_NS_PER_SEC);
    CHECK_EQ(world.asked_count, 200);
    for (uint32_t sqn = 1; sqn < 3001; sqn++) {
        CHECK(arrives(sqn, true));
    }
    CHECK_EQ(world.delivered_count, 3002);
    CHECK_EQ(world.lost, 0);
    CHECK_EQ(world.recovery.request_count, 0);
    end();
}

TEST(without_off_transport_recovery_a_burst_is_lost_at_once)
{
    struct um_recovery_config config = recovering_bursts();
    config.off_transport = false;
    begin(&config);
    CHECK(arrives(0, false));
    CHECK(arrives(1025, false));
    CHECK_EQ(world.bursts, 1);
    CHECK_EQ(world.lost, 1024);
    CHECK_EQ(world.delivered_count, 2);
    end();
}

/* Number by number, 200 at a time, it would take a minute for each 200. */
TEST(a_burst_of_which_nothing_comes_in_its_time_is_one_burst_loss)
{
    struct um_recovery_config config = recovering_bursts();
    begin(&config);
    CHECK(arrives(0, false));
    CHECK(arrives(4001, false));
    run(world.now_ns + 60 * UM_NS_PER_SEC);
    CHECK_EQ(world.lost, 0);
    run(world.now_ns + 20 * UM_NS_PER_SEC);
    CHECK_EQ(world.bursts, 1);
    CHECK_EQ(world.lost, 4000);
    CHECK_EQ(world.delivered_count, 2);
    CHECK(arrives(4002, false));
    CHECK_EQ(world.delivered_count, 3);
    end();
}

/* The source answers, but no longer has the oldest: the others come. */
TEST(of_a_burst_that_is_answered_only_what_has_no_answer_is_lost)
{
    struct um_recovery_config config = recovering_bursts();
    begin(&config);
    CHECK(arrives(0, false));
    CHECK(arrives(2001, false));
    run(world.now_ns + 2 * UM_NS_PER_SEC);
    for (uint32_t sqn = 2; sqn < 2001; sqn++) {
        run(world.now_ns + 10 * UM_NS_PER_MS);
        CHECK(arrives(sqn, true));
    }
    CHECK_EQ(world.lost, 0);
    run(world.now_ns + 80 * UM_NS_PER_SEC);
    CHECK_EQ(world.lost, 1);
    CHECK_EQ(world.bursts, 0);
    CHECK_EQ(world.delivered_count, 2001);
    end();
}

TEST(off_transport_recovery_begins_at_once_when_too_much_waits)
{
    struct um_recovery_config config = defaults();
    config.late_join = false;
    config.off_transport = true;
    config.otr_entries_threshold = 10;
    begin(&config);
    CHECK(arrives(0, false));
    for (uint32_t sqn = 2; sqn < 11; sqn++) {
        CHECK(arrives(sqn, false));
    }
    run(world.now_ns);
    CHECK_EQ(world.asked_count, 0); /* nine wait */
    CHECK(arrives(11, false));
    CHECK(arrives(12, false)); /* is left to recovery: there are ten */
    run(world.now_ns);
    CHECK_EQ(world.asked_count, 2);
    CHECK_EQ(world.asked[0], 1);
    CHECK_EQ(world.asked[1], 12);
    CHECK(arrives(1, true));
    CHECK(arrives(12, true));
    CHECK_EQ(world.delivered_count, 13);
    CHECK_EQ(world.recovered, 2);
    CHECK_EQ(world.late_joined, 0);
    end();
}

TEST(recovery_that_begins_again_and_again_is_an_alert_once_in_its_time)
{
    struct um_recovery_config config = defaults();
    config.late_join = false;
    config.off_transport = true;
    config.otr_alert_cooldown_ns = 300 * UM_NS_PER_SEC;
    begin(&config);
    for (uint32_t i = 0; i < 80; i++) { /* every ten seconds a gap of one */
        CHECK(arrives(2 * i, false));
        run(world.now_ns + 10 * UM_NS_PER_SEC);
        if (i > 0) {
            CHECK(arrives(2 * i - 1, true));
        }
    }
    CHECK_EQ(world.otr, 79);
    CHECK_EQ(world.alerts, 3);
    end();
}
