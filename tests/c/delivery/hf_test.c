/* The hot failover engine: the sequences of its description, gaps that are meant and gaps that are not, copies, resets,
 * bounds, and numbers around 2^32 and 2^64. Deliveries are recorded as text. */
#include <inttypes.h>

#include "base/um_mem.h"
#include "base/um_timer.h"
#include "delivery/um_hf.h"
#include "um_test.h"

#define MS UM_NS_PER_MS
#define TIMEOUT (1000 * MS)
#define SOURCES 3

struct rig {
    struct um_hf hf;
    struct um_hf_source sources[SOURCES];
    uint32_t topic[SOURCES]; /* next sequence number */
    uint64_t now, timer;
    int held; /* copies that were not let go */
    bool no_memory;
    char text[2048];
};

static void note(struct rig *rig, const char *format, uint64_t number)
{
    size_t used = strlen(rig->text);
    snprintf(rig->text + used, sizeof rig->text - used, format, number);
}

static void on_deliver(void *user, void *msg, const struct um_lbmc_hf *hf, bool duplicate)
{
    bool optional = (hf->flags & UM_LBMC_HF_OPTIONAL) != 0;
    CHECK(msg != NULL);
    note(user, duplicate ? "%" PRIu64 "dup" : "%" PRIu64, hf->sqn);
    note(user, optional ? "o " : " ", 0);
}

static void on_reset(void *user, void *msg, const struct um_lbmc_hf *hf)
{
    note(user, "RESET%" PRIu64 " ", hf->sqn);
}

static void on_loss(void *user, uint64_t number)
{
    note(user, "LOST%" PRIu64 " ", number);
}

static void on_burst(void *user, uint64_t first, uint64_t count)
{
    note(user, "BURST%" PRIu64 "+", first);
    note(user, "%" PRIu64 " ", count);
}

static void *on_hold(void *user, void *msg)
{
    struct rig *rig = user;
    if (rig->no_memory) {
        return NULL;
    }
    rig->held++;
    return um_malloc(1);
}

static void on_let_go(void *user, void *held)
{
    ((struct rig *)user)->held--;
    um_free(held);
}

static void on_set_timer(void *user, uint64_t due_ns)
{
    ((struct rig *)user)->timer = due_ns;
}

static const struct um_hf_ops OPS = {.deliver = on_deliver,
                                     .reset = on_reset,
                                     .loss = on_loss,
                                     .burst_loss = on_burst,
                                     .hold = on_hold,
                                     .let_go = on_let_go,
                                     .set_timer = on_set_timer};

static const struct um_hf_config ORDERED = {
    .ordered = true, .optional = true, .gap_timeout_ns = TIMEOUT, .maximum_burst_loss = 1024};

static struct rig *begin(const struct um_hf_config *config)
{
    struct rig *rig = um_calloc(1, sizeof *rig);
    rig->now = MS;
    rig->timer = UM_NEVER;
    um_hf_init(&rig->hf, config, &OPS, rig);
    for (int i = 0; i < SOURCES; i++) {
        um_hf_join(&rig->hf, &rig->sources[i]);
    }
    return rig;
}

/* Everything that was held is let go. */
static void end(struct rig *rig)
{
    for (int i = 0; i < SOURCES; i++) {
        um_hf_leave(&rig->hf, &rig->sources[i], rig->now);
    }
    um_hf_fini(&rig->hf, rig->now);
    CHECK_EQ(rig->held, 0);
    CHECK_EQ(rig->hf.bytes, 0);
    um_free(rig);
}

static void arrive(struct rig *rig, int source, uint32_t topic, uint64_t number, bool wide, uint16_t flags)
{
    char msg;
    const struct um_hf_message m = {.hf = {.sqn = number, .wide = wide, .flags = flags},
                                    .first_sqn = topic,
                                    .last_sqn = topic,
                                    .size = 100,
                                    .msg = &msg};
    um_hf_on_message(&rig->hf, &rig->sources[source], &m, rig->now);
}

/* In order on its source. */
static void send(struct rig *rig, int source, uint64_t number)
{
    arrive(rig, source, rig->topic[source]++, number, rig->hf.wide, 0);
}

static void send_optional(struct rig *rig, int source, uint64_t number)
{
    arrive(rig, source, rig->topic[source]++, number, rig->hf.wide, UM_LBMC_HF_OPTIONAL);
}

static void send_reset(struct rig *rig, int source, uint64_t number)
{
    arrive(rig, source, rig->topic[source]++, number, rig->hf.wide, UM_LBMC_HF_RESET);
}

static void lose(struct rig *rig, int source, uint32_t count)
{
    rig->topic[source] += count;
}

static void run_timer(struct rig *rig)
{
    CHECK(rig->timer != UM_NEVER);
    rig->now = rig->timer;
    rig->timer = UM_NEVER;
    um_hf_on_timer(&rig->hf, rig->now);
}

TEST(gaps_that_both_sources_have_made_are_delivered_without_delay)
{
    static const uint64_t numbers[] = {10, 11, 12, 13, 25, 26, 38};
    struct rig *rig = begin(&ORDERED);
    for (size_t i = 0; i < 7; i++) {
        send(rig, 0, numbers[i]);
        send(rig, 1, numbers[i]);
    }
    CHECK_STR(rig->text, "10 11 12 13 25 26 38 ");
    CHECK(rig->timer == UM_NEVER);
    CHECK_EQ(rig->hf.stats.held, 0);
    CHECK_EQ(rig->hf.stats.discards[UM_HF_DUPLICATE], 7);
    end(rig);
}

static void with_optional(const struct um_hf_config *config, const char *text)
{
    struct rig *rig = begin(config);
    for (int i = 0; i < 2; i++) {
        send(rig, i, 10);
        send(rig, i, 11);
        send(rig, i, 12);
        send_optional(rig, i, 13);
        send_optional(rig, i, 14);
        send(rig, i, 15);
        send_optional(rig, i, 16);
        send_optional(rig, i, 17);
        send_optional(rig, i, 18);
        send_optional(rig, i, 19);
        send(rig, i, 20);
    }
    CHECK_STR(rig->text, text);
    CHECK(rig->timer == UM_NEVER);
    end(rig);
}

TEST(optional_messages_come_where_they_are_wanted)
{
    with_optional(&ORDERED, "10 11 12 13o 14o 15 16o 17o 18o 19o 20 ");
}

TEST(optional_messages_count_as_seen_where_they_are_not_wanted)
{
    struct um_hf_config config = ORDERED;
    config.optional = false;
    with_optional(&config, "10 11 12 15 20 ");
}

TEST(an_optional_message_that_waits_counts_as_seen)
{
    struct um_hf_config config = ORDERED;
    config.optional = false;
    struct rig *rig = begin(&config);
    send(rig, 0, 1);
    lose(rig, 0, 1);
    send_optional(rig, 0, 3);
    send(rig, 0, 4);
    send(rig, 1, 1);
    send(rig, 1, 2);
    CHECK_STR(rig->text, "1 2 4 ");
    end(rig);
}

TEST(what_one_source_has_lost_comes_once_from_the_other_one)
{
    struct rig *rig = begin(&ORDERED);
    for (uint64_t n = 1; n <= 4; n++) {
        send(rig, 0, n);
        send(rig, 1, n);
    }
    lose(rig, 0, 1);
    send(rig, 0, 6);
    CHECK_STR(rig->text, "1 2 3 4 ");
    send(rig, 1, 5);
    CHECK_STR(rig->text, "1 2 3 4 5 6 ");
    send(rig, 1, 6);
    send(rig, 0, 7);
    send(rig, 1, 7);
    CHECK_STR(rig->text, "1 2 3 4 5 6 7 ");
    CHECK(rig->timer == UM_NEVER);
    end(rig);
}

TEST(two_sources_cut_in_turn_lose_nothing_and_wait_for_nothing)
{
    struct rig *rig = begin(&ORDERED);
    for (uint64_t n = 1; n <= 100; n++) {
        int up = n / 10 % 2;
        send(rig, up, n);
        lose(rig, !up, 1);
    }
    CHECK_EQ(rig->hf.stats.delivered, 100);
    CHECK_EQ(rig->hf.stats.held, 0);
    end(rig);
}

TEST(a_late_repair_shows_that_a_gap_was_meant)
{
    struct rig *rig = begin(&ORDERED);
    send(rig, 0, 10);
    send(rig, 0, 11);
    lose(rig, 0, 1);
    send(rig, 0, 25);
    CHECK_STR(rig->text, "10 11 ");
    arrive(rig, 0, 2, 13, false, 0); /* 12 was never sent */
    CHECK_STR(rig->text, "10 11 13 25 ");
    CHECK(rig->timer == UM_NEVER);
    end(rig);
}

TEST(another_source_shows_that_a_gap_was_meant)
{
    struct rig *rig = begin(&ORDERED);
    send(rig, 0, 10);
    lose(rig, 0, 1);
    send(rig, 0, 25);
    send(rig, 1, 10);
    CHECK_STR(rig->text, "10 ");
    send(rig, 1, 25); /* what is lost on the first source was without a number */
    CHECK_STR(rig->text, "10 25 ");
    end(rig);
}

TEST(messages_without_a_number_leave_no_gap)
{
    struct rig *rig = begin(&ORDERED);
    send(rig, 0, 10);
    um_hf_on_passed(&rig->hf, &rig->sources[0], rig->topic[0], rig->topic[0], rig->now);
    rig->topic[0]++;
    send(rig, 0, 12);
    CHECK_STR(rig->text, "10 12 ");
    lose(rig, 0, 2);
    send(rig, 0, 20);
    um_hf_on_passed(&rig->hf, &rig->sources[0], 4, 4, rig->now);
    CHECK_STR(rig->text, "10 12 ");
    um_hf_on_passed(&rig->hf, &rig->sources[0], 3, 3, rig->now);
    CHECK_STR(rig->text, "10 12 20 ");
    end(rig);
}

TEST(what_no_source_brings_is_lost_after_its_time)
{
    struct rig *rig = begin(&ORDERED);
    send(rig, 0, 1);
    lose(rig, 0, 2);
    send(rig, 0, 4);
    CHECK_EQ(rig->timer, rig->now + TIMEOUT);
    rig->now += TIMEOUT / 2;
    send(rig, 0, 5);
    lose(rig, 0, 1);
    send(rig, 0, 7);
    run_timer(rig);
    CHECK_STR(rig->text, "1 LOST2 LOST3 4 5 ");
    run_timer(rig);
    CHECK_STR(rig->text, "1 LOST2 LOST3 4 5 LOST6 7 ");
    CHECK(rig->timer == UM_NEVER);
    send(rig, 1, 2); /* too late */
    CHECK_EQ(rig->hf.stats.lost, 3);
    CHECK_STR(rig->text, "1 LOST2 LOST3 4 5 LOST6 7 ");
    end(rig);
}

TEST(many_lost_numbers_are_one_burst)
{
    struct rig *rig = begin(&ORDERED);
    send(rig, 0, 1);
    lose(rig, 0, 1);
    send(rig, 0, 1026);
    run_timer(rig);
    CHECK_STR(rig->text, "1 BURST2+1024 1026 ");
    end(rig);
}

TEST(the_largest_gap_is_delivered_and_a_larger_one_counts_as_old)
{
    struct rig *rig = begin(&ORDERED);
    send(rig, 0, 1);
    send(rig, 0, 1 + 1073741824u);
    send(rig, 0, 2 + 2u * 1073741824u);
    CHECK_STR(rig->text, "1 1073741825 ");
    CHECK_EQ(rig->hf.stats.discards[UM_HF_FAR], 1);
    end(rig);
}

TEST(copies_are_delivered_on_request_behind_the_first_one)
{
    struct um_hf_config config = ORDERED;
    config.duplicates = true;
    struct rig *rig = begin(&config);
    send(rig, 0, 1);
    send(rig, 1, 1);
    lose(rig, 0, 1);
    send(rig, 0, 3);
    lose(rig, 1, 1);
    send(rig, 1, 3);
    CHECK_STR(rig->text, "1 1dup ");
    send(rig, 2, 2);
    CHECK_STR(rig->text, "1 1dup 2 3 3dup ");
    send(rig, 2, 3);
    CHECK_STR(rig->text, "1 1dup 2 3 3dup 3dup ");
    end(rig);
}

TEST(in_arrival_order_nothing_waits_and_nothing_comes_twice)
{
    struct um_hf_config config = ORDERED;
    config.ordered = false;
    struct rig *rig = begin(&config);
    send(rig, 0, 1);
    lose(rig, 0, 2);
    send(rig, 0, 4);
    send(rig, 1, 1);
    lose(rig, 1, 1);
    send(rig, 1, 3);
    send(rig, 1, 4);
    CHECK_STR(rig->text, "1 4 3 ");
    arrive(rig, 0, 1, 2, false, 0);
    arrive(rig, 1, 1, 2, false, 0);
    CHECK_STR(rig->text, "1 4 3 2 ");
    lose(rig, 0, 1);
    send(rig, 0, 6);
    run_timer(rig);
    CHECK_STR(rig->text, "1 4 3 2 6 LOST5 ");
    CHECK_EQ(rig->held, 0);
    end(rig);
}

TEST(the_width_of_the_first_number_rules)
{
    struct rig *rig = begin(&ORDERED);
    send(rig, 0, 1);
    arrive(rig, 1, 0, 2, true, 0);
    CHECK_STR(rig->text, "1 ");
    CHECK_EQ(rig->hf.stats.discards[UM_HF_WIDTH], 1);
    send(rig, 0, 2);
    CHECK_STR(rig->text, "1 2 ");
    end(rig);
}

TEST(numbers_of_32_bits_go_on_behind_the_largest_one)
{
    struct rig *rig = begin(&ORDERED);
    send(rig, 0, 0xfffffffe);
    send(rig, 0, 0xffffffff);
    lose(rig, 0, 1);
    send(rig, 0, 1);
    send(rig, 1, 0xffffffff);
    send(rig, 1, 0);
    send(rig, 1, 1);
    send(rig, 0, 2);
    CHECK_STR(rig->text, "4294967294 4294967295 0 1 2 ");
    lose(rig, 0, 1);
    send(rig, 0, 4);
    run_timer(rig);
    CHECK_STR(rig->text, "4294967294 4294967295 0 1 2 LOST3 4 ");
    end(rig);
}

TEST(numbers_of_64_bits_pass_2_to_the_32_and_go_on_behind_the_largest_one)
{
    struct rig *rig = begin(&ORDERED);
    rig->hf.wide = true;
    send(rig, 0, 0xffffffff);
    send(rig, 0, 0x100000000);
    send(rig, 1, 0x100000001);
    CHECK_STR(rig->text, "4294967295 4294967296 4294967297 ");
    end(rig);
    rig = begin(&ORDERED);
    rig->hf.wide = true;
    send(rig, 0, UINT64_MAX);
    lose(rig, 0, 1);
    send(rig, 0, 1);
    send(rig, 1, 0);
    CHECK_STR(rig->text, "18446744073709551615 0 1 ");
    end(rig);
}

TEST(a_reset_lets_lower_numbers_through)
{
    struct rig *rig = begin(&ORDERED);
    send(rig, 0, 100);
    send(rig, 0, 1);
    CHECK_STR(rig->text, "100 ");
    send_reset(rig, 0, 1);
    send(rig, 0, 1);
    send(rig, 0, 2);
    send(rig, 0, 3);
    CHECK_STR(rig->text, "100 RESET1 1 2 3 ");
    end(rig);
}

TEST(a_restart_without_a_reset_is_old)
{
    struct rig *rig = begin(&ORDERED);
    send(rig, 0, 100);
    send(rig, 1, 1);
    send(rig, 1, 2);
    CHECK_STR(rig->text, "100 ");
    CHECK_EQ(rig->hf.stats.discards[UM_HF_DUPLICATE], 2);
    end(rig);
}

TEST(a_reset_lets_go_of_what_waits)
{
    struct rig *rig = begin(&ORDERED);
    send(rig, 0, 1);
    lose(rig, 0, 1);
    send(rig, 0, 3);
    send_reset(rig, 0, 50);
    CHECK_EQ(rig->held, 0);
    CHECK_EQ(rig->hf.stats.discards[UM_HF_ENDED], 1);
    send(rig, 0, 60); /* nothing of the source is missing */
    CHECK_STR(rig->text, "1 RESET50 60 ");
    CHECK(rig->timer == UM_NEVER);
    end(rig);
}

TEST(a_source_behind_the_reset_of_another_one_changes_nothing)
{
    struct rig *rig = begin(&ORDERED);
    for (uint64_t n = 98; n <= 100; n++) {
        send(rig, 0, n);
    }
    send(rig, 1, 98);
    send_reset(rig, 0, 1);
    send(rig, 0, 1);
    send(rig, 1, 99);
    send(rig, 1, 100);
    send(rig, 0, 2);
    send_reset(rig, 1, 1);
    send(rig, 1, 1);
    send(rig, 1, 2);
    send(rig, 1, 3);
    send(rig, 0, 3);
    CHECK_STR(rig->text, "98 99 100 RESET1 1 2 3 ");
    CHECK_EQ(rig->hf.stats.discards[UM_HF_BEHIND], 2);
    CHECK_EQ(rig->hf.stats.resets, 1);
    end(rig);
}

TEST(a_source_that_never_resets_is_heard_again_when_it_begins_anew)
{
    struct rig *rig = begin(&ORDERED);
    send(rig, 0, 100);
    send(rig, 1, 100);
    send_reset(rig, 0, 1);
    send(rig, 0, 1);
    send(rig, 1, 1);
    send(rig, 1, 2);
    CHECK_STR(rig->text, "100 RESET1 1 2 ");
    end(rig);
}

TEST(messages_that_overtake_a_lost_reset_wait_for_it)
{
    struct rig *rig = begin(&ORDERED);
    send(rig, 0, 100);
    lose(rig, 0, 1);
    send(rig, 0, 1);
    send(rig, 0, 2);
    CHECK_STR(rig->text, "100 ");
    arrive(rig, 0, 1, 1, false, UM_LBMC_HF_RESET);
    CHECK_STR(rig->text, "100 RESET1 1 2 ");
    send(rig, 0, 3);
    CHECK_STR(rig->text, "100 RESET1 1 2 3 ");
    end(rig);
}

static void send_optional_by(struct rig *rig, int source, uint64_t number, bool leaves_optional)
{
    char msg;
    uint32_t topic = rig->topic[source]++;
    const struct um_hf_message m = {.hf = {.sqn = number, .flags = UM_LBMC_HF_OPTIONAL},
                                    .first_sqn = topic,
                                    .last_sqn = topic,
                                    .size = 100,
                                    .leaves_optional = leaves_optional,
                                    .msg = &msg};
    um_hf_on_message(&rig->hf, &rig->sources[source], &m, rig->now);
}

TEST(whether_an_optional_message_is_wanted_is_known_when_a_doubt_about_it_ends)
{
    struct rig *rig = begin(&ORDERED);
    send(rig, 0, 100);
    lose(rig, 0, 1);
    send_optional_by(rig, 0, 1, true);
    send_optional_by(rig, 0, 2, false);
    CHECK_STR(rig->text, "100 ");
    arrive(rig, 0, 1, 1, false, UM_LBMC_HF_RESET);
    CHECK_STR(rig->text, "100 RESET1 2o ");
    end(rig);
}

TEST(messages_that_overtake_a_reset_which_never_comes_are_old)
{
    struct rig *rig = begin(&ORDERED);
    send(rig, 0, 100);
    lose(rig, 0, 1);
    send(rig, 0, 1);
    run_timer(rig);
    CHECK_STR(rig->text, "100 ");
    CHECK_EQ(rig->hf.stats.discards[UM_HF_DUPLICATE], 1);
    CHECK(rig->timer == UM_NEVER);
    end(rig);
}

TEST(a_repair_of_before_the_reset_is_old)
{
    struct rig *rig = begin(&ORDERED);
    send(rig, 0, 98);
    lose(rig, 0, 1);
    send_reset(rig, 0, 1);
    arrive(rig, 0, 1, 99, false, 0);
    send(rig, 0, 1);
    CHECK_STR(rig->text, "98 RESET1 1 ");
    CHECK_EQ(rig->hf.stats.discards[UM_HF_BEHIND], 1);
    CHECK(rig->timer == UM_NEVER);
    end(rig);
}

TEST(a_source_that_runs_ahead_by_any_amount_is_held_within_the_bounds)
{
    struct um_hf_config config = ORDERED;
    config.entries_max = 1000;
    struct rig *rig = begin(&config);
    send(rig, 0, 1);
    lose(rig, 0, 1);
    for (uint64_t n = 3; n < 100000; n++) {
        send(rig, 0, n);
        lose(rig, 0, n % 100 == 0);
        CHECK(um_hf_waiting(&rig->hf) <= 1000);
        rig->text[0] = 0;
    }
    CHECK(rig->hf.stats.given_early > 0);
    CHECK_EQ(rig->hf.stats.lost, 1);
    end(rig);
    config.entries_max = 0;
    config.bytes_max = 100 * 50;
    rig = begin(&config);
    send(rig, 0, 1);
    for (uint64_t n = 3; n < 10000; n += 2) {
        lose(rig, 0, 1);
        send(rig, 0, n);
        CHECK(rig->hf.bytes <= 100 * 50);
        rig->text[0] = 0;
    }
    CHECK_EQ(rig->hf.stats.given_early, rig->hf.stats.lost);
    CHECK_EQ(um_hf_waiting(&rig->hf), 50);
    end(rig);
}

TEST(without_memory_a_number_counts_as_missing)
{
    struct rig *rig = begin(&ORDERED);
    send(rig, 0, 1);
    lose(rig, 0, 1);
    rig->no_memory = true;
    send(rig, 0, 3);
    rig->no_memory = false;
    send(rig, 0, 4);
    CHECK_EQ(rig->hf.stats.discards[UM_HF_NO_ROOM], 1);
    send(rig, 1, 2);
    send(rig, 1, 3);
    CHECK_STR(rig->text, "1 2 3 4 ");
    end(rig);
}

TEST(a_repetition_on_one_source_is_a_copy)
{
    struct rig *rig = begin(&ORDERED);
    send(rig, 0, 1);
    send(rig, 0, 2);
    arrive(rig, 0, 0, 1, false, 0);
    arrive(rig, 0, 1, 2, false, 0);
    send(rig, 0, 3);
    CHECK_STR(rig->text, "1 2 3 ");
    end(rig);
}

/* Numbers that go back over a hole wait for the reset that may be in it, and so does what follows. At the bound all of
 * it is sorted in at once; however much it is, that takes no more of the stack. */
TEST(any_number_of_messages_that_may_follow_a_reset_is_held_within_the_bounds)
{
    struct um_hf_config config = ORDERED;
    config.entries_max = 200000;
    struct rig *rig = begin(&config);
    send(rig, 0, 1000);
    lose(rig, 0, 1);
    send(rig, 0, 5000000);
    lose(rig, 0, 1);
    for (uint64_t n = 0; n < 300000; n++) {
        send(rig, 0, 1002 + 2 * n);
        CHECK(um_hf_waiting(&rig->hf) <= 200000);
        rig->text[0] = 0;
    }
    CHECK(rig->hf.stats.given_early > 0);
    CHECK_EQ(rig->hf.stats.delivered + um_hf_waiting(&rig->hf), 300002);
    end(rig);
}

/* What a source sends backwards, or in any other order, is put in its place without moving everything that waits. */
TEST(what_waits_is_delivered_in_order_whatever_order_it_came_in)
{
    enum { COUNT = 20000 };
    for (int order = 0; order < 3; order++) {
        struct um_hf_config config = ORDERED;
        config.duplicates = order == 2;
        struct rig *rig = begin(&config);
        struct um_hf_source *source = um_calloc(COUNT, sizeof *source); /* each tells of one message only */
        char msg;
        send(rig, 0, UINT32_MAX - 1000);
        for (uint32_t i = 0; i < COUNT; i++) {
            uint32_t place = order == 0   ? COUNT - i
                             : order == 1 ? i * 7919 % COUNT + 1
                                          : i / 2 * 7919 % (COUNT / 2) + 1;
            const struct um_hf_message m = {.hf = {.sqn = UINT32_MAX - 1000 + 2 * place}, .size = 100, .msg = &msg};
            um_hf_join(&rig->hf, &source[i]);
            um_hf_on_message(&rig->hf, &source[i], &m, rig->now);
        }
        CHECK_EQ(um_hf_waiting(&rig->hf), COUNT);
        CHECK_EQ(rig->hf.bytes, 100 * COUNT);
        uint64_t before = UINT32_MAX - 1000;
        while (um_hf_waiting(&rig->hf) > 0) {
            rig->text[0] = 0;
            send(rig, 1, (uint32_t)(before + 1)); /* what is missing */
            before += 2;
            char expected[64];
            snprintf(expected, sizeof expected, "%u %u ", (uint32_t)(before - 1), (uint32_t)before);
            if (order == 2) {
                snprintf(expected + strlen(expected), 32, "%udup ", (uint32_t)before);
            }
            CHECK_STR(rig->text, expected);
        }
        for (uint32_t i = 0; i < COUNT; i++) {
            um_hf_leave(&rig->hf, &source[i], rig->now);
        }
        um_free(source);
        end(rig);
    }
}
