/* The reception engine by itself, without packets: what is remembered of forged numbers, how long, and at what cost.
 * The engine is compiled into this test, to count how many ranges it looks at. */
#include "um_test.h"

#include "transport/lbtr/um_lbtr_gaps.h"

static unsigned long looked_at;
#define um_lbtr_gaps_at(gaps, index) (looked_at++, um_lbtr_gaps_at(gaps, index))
#include "transport/lbtr/um_lbtr_doubts.c"
#include "transport/lbtr/um_lbtr_naks.c"
#include "transport/lbtr/um_lbtr_reception.c"

#define MS UM_NS_PER_MS
#define SEC UM_NS_PER_SEC
#define T0 (100 * SEC)

static struct {
    unsigned naks, asked, lost, taken_back;
    uint32_t at; /* taken back to */
} out;

static void on_nak(void *user, const uint32_t *sqns, size_t count)
{
    out.naks++;
    out.asked += (unsigned)count;
}

static void on_lost(void *user, uint64_t now_ns, uint32_t first, uint32_t count, enum um_lbtr_loss why)
{
    out.lost += count;
}

static void on_taken_back(void *user, uint64_t now_ns, uint32_t next)
{
    out.taken_back++;
    out.at = next;
}

static const struct um_lbtr_reception_ops ops = {on_nak, on_lost, on_taken_back};
static struct um_rng rng;

static void begin(struct um_lbtr_reception *rx, uint32_t first)
{
    memset(&out, 0, sizeof out);
    um_rng_seed(&rng, 5);
    um_lbtr_reception_init(rx, &(struct um_lbtr_nak_config){50 * MS, 200 * MS, SEC, 10 * SEC, true, 0}, &ops, NULL,
                           &rng, 365);
    um_lbtr_reception_start(rx, first);
}

static enum um_lbtr_arrival give(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t sqn, uint32_t trail)
{
    return um_lbtr_reception_data(rx, now_ns, sqn, trail, false);
}

static void give_run(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t first, uint32_t end, uint32_t trail)
{
    for (uint32_t sqn = first; sqn != end; sqn++) {
        give(rx, now_ns, sqn, trail);
    }
}

/* ---- the way back from a far lead ---- */

/* The source is idle at `newest`; one more datagram comes from far ahead, and its session message tells the truth. */
static void lie_at(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t newest)
{
    give(rx, now_ns, newest + 5000, newest - 10);
    um_lbtr_reception_sm(rx, now_ns + 100 * MS, newest, newest - 10);
}

TEST(f9_far_lead_is_taken_back_to_where_the_stream_is_not_to_an_earlier_lead)
{
    for (unsigned told = 0; told < 2; told++) { /* did a session message confirm the first lead? */
        struct um_lbtr_reception rx;
        uint32_t first = 0u - 1000000, lead = first + 3000, newest = lead + 3000000;
        begin(&rx, first);
        give(&rx, T0, first, first);
        give(&rx, T0, lead, first);
        give_run(&rx, T0 + MS, first + 1, lead + 1, first); /* all of it as originals: nothing is asked for */
        if (told == 1) {
            um_lbtr_reception_sm(&rx, T0 + 2 * MS, lead, first);
        }
        give_run(&rx, T0 + SEC, lead + 1, newest + 1, lead);
        lie_at(&rx, T0 + 30 * SEC, newest);
        CHECK(out.taken_back == 1 && out.at == newest + 1);
        um_lbtr_reception_free(&rx);
    }
}

TEST(f9_what_came_behind_an_outage_is_not_taken_back_while_the_outage_is_not_repaired)
{
    struct um_lbtr_reception rx;
    begin(&rx, 0);
    give(&rx, T0, 0, 0);
    give_run(&rx, T0 + MS, 3000, 10000, 0);
    lie_at(&rx, T0 + SEC, 9999);
    CHECK(out.taken_back == 1 && out.at == 10000);
    um_lbtr_reception_free(&rx);
}

TEST(f9_what_is_lost_after_a_far_lead_was_filled_is_asked_for_at_full_rate)
{
    struct um_lbtr_reception rx;
    begin(&rx, 0);
    give(&rx, T0, 0, 0);
    give(&rx, T0, 3000, 0);
    give_run(&rx, T0, 1, 4000, 0);
    give_run(&rx, T0 + SEC, 5000, 5010, 0); /* a thousand are lost: three packets */
    um_lbtr_reception_on_timer(&rx, T0 + SEC + 80 * MS);
    CHECK(out.asked == 1000 && out.naks == 3);
    um_lbtr_reception_free(&rx);
}

/* ---- the way back from a number that others came behind ---- */

TEST(f9_row_that_led_back_speaks_no_more_when_the_stream_is_there_again)
{
    struct um_lbtr_reception rx;
    begin(&rx, 0);
    give_run(&rx, T0, 0, 30, 0);
    give(&rx, T0, 99, 0); /* it was 30 */
    for (uint32_t sqn = 31; sqn < 100; sqn++) {
        give(&rx, T0 + (sqn - 30) * MS, sqn, 0);
    }
    CHECK(out.taken_back == 1 && rx.expected == 100);
    for (uint32_t lead = 31; lead < 99; lead++) { /* damaged session messages: what is beyond was received */
        um_lbtr_reception_sm(&rx, T0 + SEC, lead, 0);
        CHECK_EQ(give(&rx, T0 + SEC, lead + 1, 0), UM_LBTR_DUPLICATE);
    }
    CHECK(out.taken_back == 1 && rx.expected == 100);
    um_lbtr_reception_free(&rx);
}

/* Three originals are out of order, and the source pauses. */
TEST(f9_one_lie_after_late_originals_takes_back_nothing)
{
    for (unsigned datagram = 0; datagram < 2; datagram++) {
        struct um_lbtr_reception rx;
        begin(&rx, 0);
        give_run(&rx, T0, 0, 10, 0);
        give(&rx, T0, 20, 0);
        give_run(&rx, T0 + MS, 10, 13, 0);
        if (datagram == 1) {
            give(&rx, T0 + 200 * MS, 13, 0);
        } else {
            um_lbtr_reception_sm(&rx, T0 + 200 * MS, 12, 0);
        }
        um_lbtr_reception_sm(&rx, T0 + 400 * MS, 20, 0);
        CHECK(out.taken_back == 0 && rx.expected == 21);
        CHECK_EQ(um_lbtr_reception_data(&rx, T0 + SEC, 20, 0, true), UM_LBTR_DUPLICATE);
        um_lbtr_reception_free(&rx);
    }
}

/* ---- trails ---- */

#define RANGES 30000u

/* Every second number up to 2 * RANGES is missing: the odd ones. */
static void begin_with_ranges(struct um_lbtr_reception *rx)
{
    begin(rx, 0);
    for (uint32_t i = 0; i <= RANGES; i++) {
        give(rx, T0, 2 * i, 0);
    }
}

TEST(f9_trails_cost_what_they_change_not_what_is_missing)
{
    struct um_lbtr_reception rx;
    begin_with_ranges(&rx);
    give(&rx, T0, 2 * RANGES + 1, RANGES); /* hearsay of one datagram: half of them are doomed */
    looked_at = 0;
    for (unsigned i = 0; i < 100; i++) {
        um_lbtr_reception_sm(&rx, T0 + i * MS, 2 * RANGES + 1, RANGES);
    }
    CHECK(looked_at < 100 * 50);
    give(&rx, T0 + 200 * MS, 2 * RANGES + 2, 0); /* and another one contradicts */
    looked_at = 0;
    for (uint32_t i = 0; i < 100; i++) { /* so do some that are not so far apart */
        give(&rx, T0 + 300 * MS, 2 * RANGES + 3 + i, i % 2 == 0 ? 20 : 0);
    }
    CHECK(looked_at < 100 * 200 && rx.gaps.count == RANGES && out.lost == 0);
    um_lbtr_reception_free(&rx);
}

TEST(f9_each_trail_does_away_with_what_it_was_first_to_tell_of_unless_a_datagram_contradicts)
{
    struct um_lbtr_reception rx;
    begin(&rx, 0u - 100);
    give(&rx, T0, 0u - 100, 0u - 100);
    give(&rx, T0, 901, 0u - 100); /* [-99, 901) is missing */
    um_lbtr_reception_sm(&rx, T0, 901, 1);
    um_lbtr_reception_sm(&rx, T0 + 300 * MS, 901, 201);
    um_lbtr_reception_sm(&rx, T0 + 600 * MS, 901, 901);
    give(&rx, T0 + 700 * MS, 902, 401); /* the source has what begins there */
    um_lbtr_reception_on_timer(&rx, T0 + 999 * MS);
    CHECK_EQ(out.lost, 0);
    um_lbtr_reception_on_timer(&rx, T0 + SEC);
    CHECK_EQ(out.lost, 100);
    um_lbtr_reception_on_timer(&rx, T0 + SEC + 300 * MS);
    CHECK_EQ(out.lost, 300);
    um_lbtr_reception_on_timer(&rx, T0 + 9 * SEC);
    CHECK(out.lost == 1000 && rx.gaps.count == 0); /* [201, 901) was one range when 901 was told */
    um_lbtr_reception_free(&rx);
}

/* ---- half of the number space and more ---- */

#define QUARTER (1u << 30)

/* Without a loss the stream goes on by `count` numbers; the engine's timer comes by now and then. */
static void go_on(struct um_lbtr_reception *rx, uint64_t now_ns, uint64_t count)
{
    while (count > 0) {
        uint32_t part = count < QUARTER / 4 ? (uint32_t)count : QUARTER / 4;
        rx->expected += part - 1; /* as the fast path leaves it */
        rx->claim_end = rx->expected;
        give(rx, now_ns, rx->expected, rx->expected);
        um_lbtr_reception_on_timer(rx, now_ns);
        count -= part;
    }
}

TEST(f9_repeated_datagram_of_a_long_stream_is_not_taken_for_one_before_its_beginning)
{
    for (unsigned quarters = 1; quarters <= 4; quarters++) {
        struct um_lbtr_reception rx;
        begin(&rx, 0u - 10);
        go_on(&rx, T0, (uint64_t)quarters * QUARTER + 1000);
        uint32_t newest = rx.expected - 1;
        CHECK_EQ(give(&rx, T0 + SEC, newest, newest), UM_LBTR_DUPLICATE);
        for (unsigned i = 1; i <= 3; i++) { /* and the source pauses */
            um_lbtr_reception_sm(&rx, T0 + SEC + i * 200 * MS, newest, newest);
        }
        um_lbtr_reception_on_timer(&rx, T0 + 3 * SEC);
        CHECK(out.taken_back == 0 && out.asked == 0 && rx.expected == newest + 1);
        um_lbtr_reception_free(&rx);
    }
}

TEST(f9_what_was_given_up_is_forgotten_before_its_numbers_come_again)
{
    struct um_lbtr_reception rx;
    begin(&rx, 0);
    give(&rx, T0, 0, 0);
    give(&rx, T0, 20, 0);
    um_lbtr_reception_on_timer(&rx, T0 + 11 * SEC);
    CHECK(out.lost == 19 && rx.given_up.count == 1);
    go_on(&rx, T0 + 12 * SEC, (uint64_t)4 * QUARTER);
    CHECK_EQ(give(&rx, T0 + 13 * SEC, 15, 0), UM_LBTR_DUPLICATE);
    CHECK(rx.counters.late_data == 0 && rx.given_up.count == 0);
    um_lbtr_reception_free(&rx);
}

TEST(f9_trail_from_half_the_number_space_ago_gives_no_weight_to_that_of_one_datagram)
{
    struct um_lbtr_reception rx;
    begin(&rx, 0);
    give(&rx, T0, 1, 0);
    give(&rx, T0, 0, 0);
    go_on(&rx, T0 + SEC, (uint64_t)2 * QUARTER + 1000);
    uint32_t next = rx.expected;
    give(&rx, T0 + SEC, next + 10, next + 10);
    CHECK(out.lost == 0 && rx.gaps.count == 1);
    um_lbtr_reception_free(&rx);
}

/* Sixteen in a row from so far ahead are believed, until the stream goes on where it was. */
TEST(f9_stream_forged_from_the_other_end_of_the_number_space_is_found_out)
{
    for (unsigned eighths = 1; eighths <= 3; eighths++) {
        struct um_lbtr_reception rx;
        begin(&rx, 0);
        give_run(&rx, T0, 0, 100, 0);
        uint32_t far = eighths * (QUARTER / 2) + 1000;
        give_run(&rx, T0 + SEC, far, far + 20, far);
        CHECK_EQ(rx.expected, far + 20);
        um_lbtr_reception_on_timer(&rx, T0 + 60 * SEC);
        for (uint32_t i = 0; i < 10; i++) {
            CHECK_EQ(give(&rx, T0 + (61 + i) * SEC, 100 + i, 0), UM_LBTR_ACCEPTED);
        }
        CHECK(out.taken_back == 1 && rx.expected == 110);
        um_lbtr_reception_free(&rx);
    }
}

/* What is half of the number space behind the stream is newer than what a session message claimed of it. */
TEST(f9_session_message_from_the_other_end_of_the_number_space_claims_nothing)
{
    struct um_lbtr_reception rx;
    begin(&rx, 0);
    give(&rx, T0, 0, 0);
    um_lbtr_reception_sm(&rx, T0 + MS, 1000, 0);
    for (uint32_t i = 0; i < 1000; i += 100) {
        um_lbtr_reception_sm(&rx, T0 + 2 * MS, (UINT32_C(1) << 31) + i, 0);
        CHECK_EQ(rx.claim_end, 1001);
    }
    um_lbtr_reception_on_timer(&rx, T0 + 60 * SEC);
    CHECK_EQ(out.lost, 1000);
    um_lbtr_reception_free(&rx);
}
