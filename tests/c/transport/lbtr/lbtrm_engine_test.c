/* LBT-RM engines in virtual time: schedules, NAK timing, answers, limits, counters. */
#include "um_test.h"

#include "base/um_mem.h"
#include "transport/lbtr/um_lbtrm_rcv_engine.h"
#include "transport/lbtr/um_lbtrm_src_engine.h"

#define MS UM_NS_PER_MS
#define SEC UM_NS_PER_SEC
#define T0 (100 * SEC)
#define IP 0x0100000au

static const struct um_lbtrm_session session = {14390, 0xe0679abb};

/* What an engine put out; the test is single-threaded and looks at the newest. */
static struct {
    unsigned data, repairs, sms, naks, ncfs, delivered, lost, begins, ends, relieved;
    uint8_t last[10000], first_data[10000];
    size_t last_len;
    uint32_t asked[4096];
    unsigned asked_count, nak_largest, ncf_numbers[UM_LBTR_REASONS];
    uint32_t repaired[4096];
    uint64_t ncf_bytes;
    uint64_t due;
    enum um_lbtr_loss why;
    bool full; /* what the socket would say */
} out;

static void keep(const uint8_t *head, size_t head_len, const uint8_t *body, size_t body_len)
{
    memcpy(out.last, head, head_len);
    if (body_len > 0) {
        memcpy(out.last + head_len, body, body_len);
    }
    out.last_len = head_len + body_len;
}

static void on_send(void *io, const uint8_t *head, size_t head_len, const uint8_t *body, size_t body_len)
{
    struct um_lbtrm_packet p;
    keep(head, head_len, body, body_len);
    um_lbtrm_decode(out.last, out.last_len, &p);
    out.sms += p.type == UM_LBTRM_SM;
    if (p.type == UM_LBTRM_NCF) {
        out.ncfs++;
        out.ncf_bytes += head_len;
        out.ncf_numbers[p.reason] += (unsigned)p.list.count;
    } else if (p.type == UM_LBTRM_DATA && p.retransmission) {
        out.repaired[out.repairs++ % 4096] = p.sqn;
    } else if (p.type == UM_LBTRM_DATA && out.data++ == 0) {
        memcpy(out.first_data, out.last, out.last_len);
    }
}

static void on_nak(void *io, const uint8_t *data, size_t len)
{
    struct um_lbtrm_packet p;
    keep(data, len, NULL, 0);
    um_lbtrm_decode(out.last, len, &p);
    out.naks++;
    out.nak_largest = p.list.count > out.nak_largest ? (unsigned)p.list.count : out.nak_largest;
    for (size_t i = 0; i < p.list.count; i++) {
        out.asked[out.asked_count++ % 4096] = um_lbtr_list_at(&p.list, i);
    }
}

static void on_deliver(void *io, uint64_t now_ns, const struct um_slice *payload, uint32_t sqn, bool retransmission)
{
    out.delivered++;
}

static void on_lost(void *io, uint64_t now_ns, uint32_t first, uint32_t count, enum um_lbtr_loss why)
{
    out.lost += count;
    out.why = why;
}

static void on_begin(void *io, uint64_t now_ns)
{
    out.begins++;
}

static void on_end(void *io, uint64_t now_ns, enum um_lbtr_end why)
{
    out.ends++;
}

static void set_timer(void *io, uint64_t due_ns)
{
    out.due = due_ns;
}

static void on_kick(void *io)
{
    out.due = 0;
}

static void on_relieved(void *io)
{
    out.relieved++;
}

static bool is_full(void *io)
{
    return out.full;
}

static const struct um_lbtr_rcv_outputs receiver_ops = {on_nak, on_deliver, on_lost, on_begin, on_end, set_timer, NULL};
static const struct um_lbtrm_src_engine_ops source_ops = {on_send, {set_timer, on_kick, on_relieved, is_full}};

/* ---- receivers ---- */

static struct um_rng rng;

static struct um_lbtr_rcv_engine *receiver_with(bool send_naks)
{
    memset(&out, 0, sizeof out);
    um_rng_seed(&rng, 5);
    return um_lbtrm_rcv_engine_create(
        &(struct um_lbtrm_rcv_engine_config){
            IP, session, {50 * MS, 200 * MS, SEC, 10 * SEC, send_naks, 0}, 60 * SEC, 3 * SEC},
        &rng, &receiver_ops, NULL, T0);
}

static struct um_lbtr_rcv_engine *new_receiver(void)
{
    return receiver_with(true);
}

static void give(struct um_lbtr_rcv_engine *r, uint64_t now, uint32_t sqn, uint32_t trail, bool retransmission)
{
    uint8_t packet[UM_LBTRM_DATA_HDR + 4];
    um_lbtrm_put_data(packet, &session, sqn, trail, 3, retransmission);
    memset(packet + UM_LBTRM_DATA_HDR, 1, 4);
    um_lbtrm_rcv_engine_on_packet(r, now, packet, sizeof packet, IP);
}

static void give_sm(struct um_lbtr_rcv_engine *r, uint64_t now, uint32_t lead, uint32_t trail)
{
    uint8_t packet[UM_LBTRM_SM_LEN];
    um_lbtrm_put_sm(packet, &session, 0, lead, trail, 3);
    um_lbtrm_rcv_engine_on_packet(r, now, packet, sizeof packet, IP);
}

static void give_ncf(struct um_lbtr_rcv_engine *r, uint64_t now, uint32_t trail, enum um_lbtr_reason reason,
                     uint32_t sqn)
{
    uint8_t packet[UM_LBTRM_NCF_HDR + 4];
    um_lbtrm_put_ncf(packet, &session, trail, reason, &sqn, 1);
    um_lbtrm_rcv_engine_on_packet(r, now, packet, sizeof packet, IP);
}

/* Let timers fire up to `until`; returns the time of the first NAK, or 0. */
static uint64_t run_receiver(struct um_lbtr_rcv_engine *r, uint64_t until)
{
    uint64_t first = 0;
    unsigned naks = out.naks;
    while (out.due <= until && out.ends == 0) {
        uint64_t now = out.due;
        out.due = UM_NEVER;
        um_lbtr_rcv_engine_on_timer(r, now);
        first = first == 0 && out.naks > naks ? now : first;
    }
    return first;
}

TEST(in_order_datagrams_are_delivered_and_begin_the_session)
{
    struct um_lbtr_rcv_engine *r = new_receiver();
    for (uint32_t i = 0; i < 10; i++) {
        give(r, T0 + i * MS, 0xfffffffbu + i, 0xfffffff0u, false);
    }
    CHECK(out.delivered == 10 && out.begins == 1 && out.lost == 0);
    CHECK_EQ(um_lbtr_rcv_engine_counters(r)->lost, 0);
    um_lbtr_rcv_engine_destroy(r);
}

static unsigned allocations;

static bool count_allocation(size_t size)
{
    allocations++;
    return false;
}

TEST(in_order_path_allocates_nothing)
{
    struct um_lbtr_rcv_engine *r = new_receiver();
    give(r, T0, 0, 0, false);
    um_mem_set_fail_hook(count_allocation);
    for (uint32_t i = 1; i < 10000; i++) {
        give(r, T0 + i * 1000, i, 0, false);
    }
    um_mem_set_fail_hook(NULL);
    CHECK_EQ(allocations, 0);
    CHECK_EQ(out.delivered, 10000);
    um_lbtr_rcv_engine_destroy(r);
}

TEST(first_nak_comes_within_the_randomised_initial_interval)
{
    uint64_t sum = 0;
    for (int trial = 0; trial < 1000; trial++) {
        struct um_lbtr_rcv_engine *r = new_receiver();
        um_rng_seed(&rng, (uint64_t)trial);
        give(r, T0, 4, 0, false);
        give(r, T0, 6, 0, false);
        uint64_t at = run_receiver(r, T0 + 80 * MS);
        um_lbtr_rcv_engine_destroy(r);
        CHECK(out.naks == 1 && out.asked_count == 1 && out.asked[0] == 5);
        CHECK(at >= T0 + 25 * MS && at <= T0 + 75 * MS);
        sum += at - T0;
    }
    CHECK(sum / 1000 > 47 * MS && sum / 1000 < 53 * MS);
}

TEST(unanswered_naks_repeat_until_the_time_is_over)
{
    struct um_lbtr_rcv_engine *r = new_receiver();
    give(r, T0, 0, 0, false);
    give(r, T0, 2, 0, false);
    run_receiver(r, T0 + 9999 * MS);
    CHECK(out.naks >= 40 && out.naks <= 62 && out.lost == 0);
    unsigned naks = out.naks;
    run_receiver(r, T0 + 20 * SEC);
    CHECK(out.naks == naks && out.lost == 1 && out.why == UM_LBTR_LOSS_TIME);
    CHECK_EQ(um_lbtr_rcv_engine_counters(r)->unrecovered_tmo, 1);
    give(r, T0 + 21 * SEC, 1, 0, true); /* late, but the first one */
    give(r, T0 + 21 * SEC, 1, 0, true);
    CHECK_EQ(um_lbtr_rcv_engine_counters(r)->late_data, 1);
    CHECK_EQ(um_lbtr_rcv_engine_counters(r)->duplicate_data, 1);
    um_lbtr_rcv_engine_destroy(r);
}

TEST(confirmation_suppresses_naks_even_before_the_first)
{
    struct um_lbtr_rcv_engine *r = new_receiver();
    give(r, T0, 0, 0, false);
    give(r, T0, 2, 0, false);
    give_ncf(r, T0 + MS, 0, UM_LBTR_NAK_IGNORED, 1);
    give_ncf(r, T0 + 2 * MS, 0, UM_LBTR_NAK_SHED, 1); /* a second one adds nothing */
    uint64_t at = run_receiver(r, T0 + 5 * SEC);
    CHECK(at >= T0 + SEC && at <= T0 + 1300 * MS);
    struct um_lbtr_receiver_counters *c = um_lbtr_rcv_engine_counters(r);
    CHECK(c->ncfs[UM_LBTR_NAK_IGNORED] == 1 && c->ncfs[UM_LBTR_NAK_SHED] == 1);
    um_lbtr_rcv_engine_destroy(r);
}

TEST(do_not_retry_ends_the_naks_and_gives_up)
{
    struct um_lbtr_rcv_engine *r = new_receiver();
    give(r, T0, 0, 0, false);
    give(r, T0, 2, 0, false);
    give_ncf(r, T0 + MS, 2, UM_LBTR_DO_NOT_RETRY, 1);
    run_receiver(r, T0 + 20 * SEC);
    CHECK(out.naks == 0 && out.lost == 1 && out.why == UM_LBTR_LOSS_WINDOW);
    CHECK_EQ(um_lbtr_rcv_engine_counters(r)->unrecovered_txw, 1);
    um_lbtr_rcv_engine_destroy(r);
}

TEST(x1_do_not_retry_is_not_believed_when_data_contradicts)
{
    struct um_lbtr_rcv_engine *r = new_receiver();
    give(r, T0, 0, 0, false);
    give(r, T0, 2, 0, false);
    give_ncf(r, T0 + MS, 3, UM_LBTR_DO_NOT_RETRY, 1);
    give_sm(r, T0 + 2 * MS, 1000000, 3);
    give(r, T0 + 3 * MS, 3, 0, false); /* the trail of the source says it is still there */
    run_receiver(r, T0 + 3 * SEC);
    CHECK(out.lost == 0 && out.naks > 0);
    give(r, T0 + 3 * SEC, 1, 0, true);
    CHECK_EQ(out.delivered, 4);
    for (uint32_t sqn = 4; sqn < 1000; sqn++) {
        give(r, T0 + 4 * SEC, sqn, 0, false);
    }
    CHECK_EQ(out.delivered, 1000);
    um_lbtr_rcv_engine_destroy(r);
}

TEST(x1_forged_lead_neither_skips_data_nor_floods_the_source)
{
    struct um_lbtr_rcv_engine *r = new_receiver();
    give(r, T0, 0, 0, false);
    give_sm(r, T0, 1u << 20, 0);
    run_receiver(r, T0 + SEC);
    CHECK(out.naks <= 100);
    run_receiver(r, T0 + 30 * SEC);
    unsigned lost = out.lost;
    for (uint32_t sqn = 1; sqn < 1000; sqn++) {
        give(r, T0 + 31 * SEC, sqn, 0, false);
    }
    CHECK(out.delivered == 1000 && out.lost == lost);
    give(r, T0 + 31 * SEC, 1001, 0, false);
    CHECK(run_receiver(r, T0 + 32 * SEC) != 0); /* losses are still found */
    give_sm(r, T0 + 33 * SEC, 3u << 20, 0);
    CHECK_EQ(um_lbtr_rcv_engine_counters(r)->dropped_other, 1);
    um_lbtr_rcv_engine_destroy(r);
}

TEST(trail_that_two_datagrams_tell_gives_up_at_once)
{
    struct um_lbtr_rcv_engine *r = new_receiver();
    give(r, T0, 0, 0, false);
    give(r, T0, 10, 0, false);
    give(r, T0, 11, 5, false);
    CHECK_EQ(out.lost, 0);
    give(r, T0, 12, 6, false);
    CHECK(out.lost == 4 && out.why == UM_LBTR_LOSS_WINDOW);
    give(r, T0, 6, 6, true);
    CHECK(out.lost == 5 && out.delivered == 5);
    um_lbtr_rcv_engine_destroy(r);
}

TEST(f9_trail_that_one_datagram_tells_is_believed_when_none_contradicts)
{
    struct um_lbtr_rcv_engine *r = new_receiver();
    give(r, T0, 0, 0, false);
    give(r, T0, 10, 0, false);
    give(r, T0, 11, 11, false);
    give(r, T0 + MS, 12, 0, false); /* the source has everything */
    run_receiver(r, T0 + 5 * SEC);
    CHECK(out.lost == 0 && out.naks > 0);
    give(r, T0 + 5 * SEC, 13, 13, false); /* and now silence */
    run_receiver(r, T0 + 5 * SEC + 990 * MS);
    CHECK_EQ(out.lost, 0);
    run_receiver(r, T0 + 6 * SEC);
    CHECK(out.lost == 9 && out.why == UM_LBTR_LOSS_WINDOW);
    um_lbtr_rcv_engine_destroy(r);
}

TEST(session_message_reveals_tail_loss)
{
    struct um_lbtr_rcv_engine *r = new_receiver();
    give(r, T0, 0, 0, false);
    give_sm(r, T0 + 200 * MS, 1, 0);
    uint64_t at = run_receiver(r, T0 + 300 * MS);
    CHECK(at >= T0 + 225 * MS && at <= T0 + 275 * MS && out.asked[0] == 1);
    um_lbtr_rcv_engine_destroy(r);
}

TEST(session_that_began_while_its_receiver_listened_is_asked_for_its_start)
{
    struct um_lbtr_rcv_engine *r = new_receiver();
    um_lbtrm_rcv_engine_from_start(r);
    give(r, T0, 2, 0, false);
    run_receiver(r, T0 + 100 * MS);
    CHECK(out.delivered == 1 && out.asked_count == 2 && out.asked[0] == 0 && out.asked[1] == 1);
    give(r, T0 + 100 * MS, 0, 0, true);
    give(r, T0 + 100 * MS, 1, 0, true);
    CHECK(out.delivered == 3 && um_lbtr_rcv_engine_complete_before(r, 3));
    um_lbtr_rcv_engine_destroy(r);
}

TEST(session_message_tells_of_a_start_that_was_lost)
{
    struct um_lbtr_rcv_engine *r = new_receiver();
    um_lbtrm_rcv_engine_from_start(r);
    give_sm(r, T0, 0, 0);
    run_receiver(r, T0 + 100 * MS);
    CHECK(out.asked_count == 1 && out.asked[0] == 0);
    give(r, T0 + 100 * MS, 0, 0, true);
    CHECK_EQ(out.delivered, 1);
    um_lbtr_rcv_engine_destroy(r);
}

TEST(start_is_not_asked_for_when_it_is_far_gone_or_nobody_listened)
{
    static const uint32_t numbers[][2] = {{UM_LBTRM_START_MAX + 1, 0}, {5, 1}, {5, 0}};
    for (int i = 0; i < 3; i++) {
        struct um_lbtr_rcv_engine *r = new_receiver();
        if (i < 2) {
            um_lbtrm_rcv_engine_from_start(r);
        }
        give(r, T0, numbers[i][0], numbers[i][1], false);
        run_receiver(r, T0 + 2 * SEC);
        CHECK(out.delivered == 1 && out.asked_count == 0);
        um_lbtr_rcv_engine_destroy(r);
    }
}

TEST(gap_of_a_thousand_takes_three_packets)
{
    struct um_lbtr_rcv_engine *r = new_receiver();
    give(r, T0, 0, 0, false);
    give(r, T0, 1001, 0, false);
    run_receiver(r, T0 + 80 * MS);
    CHECK(out.naks == 3 && out.asked_count == 1000 && out.nak_largest == 365);
    for (uint32_t i = 0; i < 1000; i++) {
        CHECK_EQ(out.asked[i], i + 1);
    }
    CHECK(um_lbtr_rcv_engine_counters(r)->naks_sent == 1000 && um_lbtr_rcv_engine_counters(r)->nak_pckts_sent == 3);
    um_lbtr_rcv_engine_destroy(r);
}

TEST(naks_can_be_switched_off_by_option_and_by_cutoff)
{
    struct um_lbtr_rcv_engine *r = receiver_with(false);
    give(r, T0, 0, 0, false);
    give(r, T0, 2, 0, false);
    run_receiver(r, T0 + 20 * SEC);
    CHECK(out.naks == 0 && out.lost == 1 && um_lbtr_rcv_engine_counters(r)->lost == 1);
    um_lbtr_rcv_engine_destroy(r);
    r = new_receiver();
    give(r, T0, 0, 0, false);
    give(r, T0, 2, 0, false);
    um_lbtr_rcv_engine_set_nak_cutoff(r, T0, true);
    run_receiver(r, T0 + SEC);
    CHECK_EQ(out.naks, 0);
    um_lbtr_rcv_engine_set_nak_cutoff(r, T0 + SEC, false);
    uint64_t at = run_receiver(r, T0 + 1080 * MS);
    CHECK(at >= T0 + 1025 * MS && at <= T0 + 1075 * MS);
    um_lbtr_rcv_engine_destroy(r);
}

TEST(swapped_datagrams_count_as_lost_and_out_of_order_without_nak)
{
    struct um_lbtr_rcv_engine *r = new_receiver();
    lbm_rcv_transport_stats_lbtrm_t stats;
    give(r, T0, 0, 0, false);
    give(r, T0, 2, 0, false);
    give(r, T0 + MS, 1, 0, false);
    run_receiver(r, T0 + SEC);
    um_lbtrm_rcv_engine_stats(r, &stats);
    CHECK(stats.msgs_rcved == 3 && stats.lost == 1 && stats.out_of_order == 1 && stats.naks_sent == 0);
    CHECK(stats.nak_stm_min == (lbm_ulong_t)-1 && stats.nak_tx_min == (lbm_ulong_t)-1 && stats.nak_stm_max == 0);
    um_lbtr_rcv_engine_destroy(r);
}

TEST(repairs_move_the_recovery_statistics)
{
    struct um_lbtr_rcv_engine *r = new_receiver();
    lbm_rcv_transport_stats_lbtrm_t stats;
    give(r, T0, 0, 0, false);
    give(r, T0, 2, 0, false);
    run_receiver(r, T0 + 80 * MS);
    give(r, T0 + 80 * MS, 1, 0, true);
    um_lbtrm_rcv_engine_stats(r, &stats);
    CHECK(stats.nak_stm_min == 80 && stats.nak_stm_mean == 80 && stats.nak_stm_max == 80);
    CHECK(stats.nak_tx_min == 1 && stats.nak_tx_mean == 1 && stats.nak_tx_max == 1 && stats.out_of_order == 0);
    um_lbtr_counters_reset(um_lbtr_rcv_engine_counters(r));
    um_lbtrm_rcv_engine_stats(r, &stats);
    CHECK(stats.msgs_rcved == 0 && stats.nak_stm_min == (lbm_ulong_t)-1);
    um_lbtr_rcv_engine_destroy(r);
}

TEST(every_dropped_packet_has_its_counter)
{
    struct um_lbtr_rcv_engine *r = new_receiver();
    uint8_t packet[UM_LBTRM_DATA_HDR + 1] = {0};
    struct um_lbtr_receiver_counters *c = um_lbtr_rcv_engine_counters(r);
    um_lbtrm_put_data(packet, &session, 0, 0, 3, false);
    packet[0] = 5;
    um_lbtrm_rcv_engine_on_packet(r, T0, packet, sizeof packet, IP);
    packet[0] = 0x10;
    um_lbtrm_rcv_engine_on_packet(r, T0, packet, sizeof packet, IP);
    um_lbtrm_rcv_engine_on_packet(r, T0, packet, 7, IP);
    packet[0] = 0;
    packet[1] = 0x7f;
    um_lbtrm_rcv_engine_on_packet(r, T0, packet, sizeof packet, IP);
    CHECK(c->dropped_type == 1 && c->dropped_version == 1 && c->dropped_size == 1 && c->dropped_hdr == 1);
    packet[1] = 0;
    um_lbtrm_rcv_engine_on_packet(r, T0, packet, sizeof packet, IP + 1);
    packet[7]++;
    um_lbtrm_rcv_engine_on_packet(r, T0, packet, sizeof packet, IP);
    CHECK(c->dropped_other == 2 && out.delivered == 0 && out.begins == 0);
    um_lbtr_rcv_engine_destroy(r);
}

TEST(silence_ends_the_session)
{
    struct um_lbtr_rcv_engine *r = new_receiver();
    run_receiver(r, T0 + 4 * SEC);
    CHECK(out.ends == 1 && out.begins == 0); /* nothing ever came: the shorter time */
    um_lbtr_rcv_engine_destroy(r);
    r = new_receiver();
    give(r, T0 + SEC, 0, 0, false);
    give_sm(r, T0 + 40 * SEC, 0, 0);
    run_receiver(r, T0 + 99 * SEC);
    CHECK_EQ(out.ends, 0);
    run_receiver(r, T0 + 101 * SEC);
    CHECK_EQ(out.ends, 1);
    um_lbtr_rcv_engine_destroy(r);
}

TEST(stream_that_went_too_far_ahead_is_taken_up_again)
{
    struct um_lbtr_rcv_engine *r = new_receiver();
    give(r, T0, 0, 0, false);
    for (uint32_t i = 0; i < 100; i++) {
        give(r, T0 + SEC, 5000000 + i, 4900000, false);
    }
    CHECK(out.delivered == 1 + 100 - 15 && out.lost == 5000000 + 15 - 1);
    um_lbtr_rcv_engine_destroy(r);
}

TEST(number_of_ranges_is_bounded)
{
    struct um_lbtr_rcv_engine *r = new_receiver();
    for (uint32_t i = 0; i < 200000; i++) {
        give(r, T0, 2 * i, 0, false);
    }
    CHECK_EQ(out.delivered, 200000);
    CHECK_EQ(out.lost, 199999 - UM_LBTR_GAPS_MAX);
    um_lbtr_rcv_engine_destroy(r);
}

TEST(x1_origin_from_a_session_message_gives_way_to_the_first_datagram)
{
    struct um_lbtr_rcv_engine *r = new_receiver();
    give_sm(r, T0, 1000000, 999000);
    give(r, T0 + MS, 7, 0, false); /* older than the origin: the session message was wrong */
    give(r, T0 + 2 * MS, 8, 0, false);
    CHECK(out.delivered == 2 && out.lost == 0);
    give(r, T0 + 3 * MS, 6, 0, false); /* older than the first datagram: nothing to wait for */
    CHECK(out.delivered == 2 && um_lbtr_rcv_engine_counters(r)->duplicate_data == 1);
    um_lbtr_rcv_engine_destroy(r);
}

TEST(trail_beyond_the_number_makes_no_origin)
{
    struct um_lbtr_rcv_engine *r = new_receiver();
    give(r, T0, 5, 9, false);
    give_sm(r, T0, 5, 9);
    CHECK(out.delivered == 0 && um_lbtr_rcv_engine_counters(r)->dropped_other == 2);
    give(r, T0, 100, 90, false);
    CHECK(out.delivered == 1);
    um_lbtr_rcv_engine_destroy(r);
}

/* Gaps found together wait each for a time of its own: riding along would undo the suppression in a crowd. */
TEST(each_gap_waits_for_its_own_time)
{
    struct um_lbtr_rcv_engine *r = new_receiver();
    for (uint32_t i = 0; i <= 60; i += 2) {
        give(r, T0, i, 0, false);
    }
    CHECK(run_receiver(r, T0 + 76 * MS) != 0);
    CHECK(out.asked_count == 30 && out.naks >= 25);
    um_lbtr_rcv_engine_destroy(r);
}

TEST(x1_hearsay_costs_one_packet_in_a_backoff_interval_until_a_datagram_proves_it)
{
    struct um_lbtr_rcv_engine *r = new_receiver();
    give(r, T0, 0, 0, false);
    give_sm(r, T0, 100000, 0);
    run_receiver(r, T0 + SEC);
    CHECK(out.naks >= 4 && out.naks <= 6);
    unsigned before = out.naks;
    give(r, T0 + SEC, 50000, 0, false); /* half of it is true */
    run_receiver(r, T0 + SEC + 500 * MS);
    CHECK(out.naks > before + 100);
    um_lbtr_rcv_engine_destroy(r);
}

TEST(x1_claim_falls_when_the_source_knows_of_less)
{
    struct um_lbtr_rcv_engine *r = new_receiver();
    give(r, T0, 0, 0, false);
    give_sm(r, T0, 100000, 0); /* forged */
    run_receiver(r, T0 + 20 * SEC);
    CHECK_EQ(out.lost, 100000);
    give(r, T0 + 20 * SEC, 1, 0, false);
    unsigned before = out.asked_count;
    give_sm(r, T0 + 21 * SEC, 2, 0); /* 2 was lost, and nothing follows it */
    run_receiver(r, T0 + 22 * SEC);
    CHECK(out.asked_count > before && out.asked[(out.asked_count - 1) % 4096] == 2);
    give(r, T0 + 22 * SEC, 2, 0, true);
    CHECK(out.delivered == 3 && run_receiver(r, T0 + 50 * SEC) == 0);
    um_lbtr_rcv_engine_destroy(r);
}

static size_t largest_allocation;

static bool note_size(size_t size)
{
    largest_allocation = size > largest_allocation ? size : largest_allocation;
    return false;
}

TEST(forged_confirmations_do_not_split_ranges_without_end)
{
    struct um_lbtr_rcv_engine *r = new_receiver();
    static uint8_t packet[UM_LBTRM_NCF_HDR + 4 * 16000];
    static uint32_t sqns[16000];
    give(r, T0, 0, 0, false);
    give(r, T0, 900000, 0, false);
    for (unsigned i = 0; i < 16000; i++) {
        sqns[i] = 800000 - 2 * i;
    }
    size_t len = um_lbtrm_put_ncf(packet, &session, 0, UM_LBTR_NAK_IGNORED, sqns, 16000);
    um_mem_set_fail_hook(note_size);
    um_lbtrm_rcv_engine_on_packet(r, T0, packet, len, IP);
    um_mem_set_fail_hook(NULL);
    CHECK(largest_allocation > 0 && largest_allocation <= 4096 * sizeof(struct um_lbtr_gap));
    run_receiver(r, T0 + 3 * SEC);
    CHECK(out.naks > 0 && out.lost == 0);
    um_lbtr_rcv_engine_destroy(r);
}

/* ---- sources ---- */

static struct um_lbtr_limiter limiter;

static struct um_lbtr_src_engine *source_with(uint64_t data_bps, uint64_t rx_bps, size_t window)
{
    memset(&out, 0, sizeof out);
    out.due = UM_NEVER;
    um_lbtr_limiter_init(&limiter, &(struct um_lbtr_limiter_config){data_bps, rx_bps, 10 * MS, true});
    return um_lbtrm_src_engine_create(
        &(struct um_lbtrm_src_engine_config){session, 8, 8192, window, 0, 500 * MS, 200 * MS, 10 * SEC, 0, 0}, &limiter,
        &source_ops, NULL);
}

static enum um_lbtr_commit put(struct um_lbtr_src_engine *s, uint64_t now, size_t len)
{
    size_t room;
    memset(um_lbtr_src_engine_acquire(s, &room), 'x', len);
    return um_lbtr_src_engine_commit(s, now, len, len);
}

static void ask(struct um_lbtr_src_engine *s, uint64_t now, uint32_t first, unsigned count)
{
    uint8_t packet[UM_LBTRM_NAK_HDR + 4 * 1000];
    uint32_t sqns[1000];
    for (unsigned i = 0; i < count; i++) {
        sqns[i] = first + i;
    }
    um_lbtrm_src_engine_on_packet(s, now, packet, um_lbtrm_put_nak(packet, &session, sqns, count));
}

static void run_source(struct um_lbtr_src_engine *s, uint64_t until)
{
    while (out.due <= until) {
        uint64_t now = out.due;
        out.due = UM_NEVER;
        um_lbtr_src_engine_on_timer(s, now);
    }
}

TEST(session_messages_back_off)
{
    static const unsigned at[] = {200, 600, 1400, 3000, 6200, 12600, 22600, 32600};
    struct um_lbtr_src_engine *s = source_with(10000000, 5000000, 65536);
    run_source(s, T0);
    CHECK_EQ(out.sms, 0);
    put(s, T0, 10);
    for (unsigned i = 0; i < 8; i++) {
        run_source(s, T0 + at[i] * MS - 1);
        CHECK_EQ(out.sms, i);
        run_source(s, T0 + at[i] * MS + 20 * MS);
        CHECK_EQ(out.sms, i + 1);
        struct um_lbtrm_packet p;
        CHECK_EQ(um_lbtrm_decode(out.last, out.last_len, &p), UM_LBTR_OK);
        CHECK(p.type == UM_LBTRM_SM && p.sqn == i && p.lead == 0 && p.trail == 0);
    }
    for (unsigned i = 0; i < 50; i++) {
        put(s, T0 + 40 * SEC + i * 100 * MS, 10);
        run_source(s, T0 + 40 * SEC + i * 100 * MS + 99 * MS);
    }
    CHECK_EQ(out.sms, 8);
    um_lbtr_src_engine_destroy(s);
}

TEST(repair_is_the_same_datagram_with_a_flag)
{
    struct um_lbtr_src_engine *s = source_with(10000000, 5000000, 65536);
    put(s, T0, 100);
    put(s, T0, 100);
    ask(s, T0 + MS, 0, 1);
    CHECK(out.repairs == 1 && out.last_len == 120 && out.last[16] == 0xa0);
    CHECK(memcmp(out.last, out.first_data, 12) == 0 && memcmp(out.last + 17, out.first_data + 17, 103) == 0);
    um_lbtr_src_engine_destroy(s);
}

TEST(repeated_naks_are_ignored_and_told_once)
{
    struct um_lbtr_src_engine *s = source_with(10000000, 5000000, 65536);
    put(s, T0, 100);
    ask(s, T0 + MS, 0, 1);
    CHECK(out.repairs == 1 && out.ncfs == 0);
    ask(s, T0 + 101 * MS, 0, 1);
    CHECK(out.repairs == 1 && out.ncf_numbers[UM_LBTR_NAK_IGNORED] == 1);
    ask(s, T0 + 151 * MS, 0, 1);
    CHECK(out.repairs == 1 && out.ncfs == 1);
    ask(s, T0 + 502 * MS, 0, 1);
    CHECK(out.repairs == 2 && out.ncfs == 1);
    CHECK(um_lbtr_src_engine_counters(s)->naks_rcved == 4 && um_lbtr_src_engine_counters(s)->naks_ignored == 2);
    um_lbtr_src_engine_destroy(s);
}

TEST(window_keeps_its_size_and_refuses_what_left_it)
{
    struct um_lbtr_src_engine *s = source_with(1000000000, 5000000, 65536);
    lbm_src_transport_stats_lbtrm_t stats;
    struct um_lbtrm_packet p;
    for (unsigned i = 0; i < 100; i++) {
        put(s, T0, 1000);
        CHECK_EQ(um_lbtrm_decode(out.last, out.last_len, &p), UM_LBTR_OK);
        CHECK_EQ(p.trail, i < 65 ? 0 : i - 64);
    }
    um_lbtrm_src_engine_stats(s, &stats);
    CHECK(stats.txw_msgs == 65 && stats.txw_bytes == 65000 && stats.msgs_sent == 100 && stats.bytes_sent == 102000);
    ask(s, T0, 3, 1);
    CHECK_EQ(um_lbtrm_decode(out.last, out.last_len, &p), UM_LBTR_OK);
    CHECK(p.type == UM_LBTRM_NCF && p.reason == UM_LBTR_DO_NOT_RETRY && p.trail == 35 && out.repairs == 0);
    ask(s, T0, 100, 5); /* not sent yet */
    CHECK(out.ncfs == 1 && out.repairs == 0);
    um_lbtr_src_engine_destroy(s);
}

TEST(retransmissions_queue_behind_their_limit_oldest_first)
{
    struct um_lbtr_src_engine *s =
        source_with(100000000, 816000, 1000000); /* one datagram of 1020 bytes per interval */
    lbm_src_transport_stats_lbtrm_t stats;
    for (unsigned i = 0; i < 50; i++) {
        put(s, T0 + i * 10 * MS, 1000);
    }
    uint64_t t = T0 + SEC;
    run_source(s, t - 1);
    ask(s, t, 25, 25);
    ask(s, t, 0, 25);
    CHECK(out.repairs == 1 && out.ncf_numbers[UM_LBTR_RX_DELAY] == 49);
    um_lbtrm_src_engine_stats(s, &stats);
    CHECK(stats.rctlr_rx_msgs == 49 && stats.naks_rx_delay_ignored == 49);
    run_source(s, t + 100 * MS);
    CHECK_EQ(out.repairs, 11);
    run_source(s, t + 490 * MS);
    CHECK_EQ(out.repairs, 50);
    for (uint32_t i = 0; i < 25; i++) {
        CHECK_EQ(out.repaired[i + 1], i);
    }
    um_lbtr_src_engine_destroy(s);
}

TEST(naks_beyond_a_second_of_retransmissions_are_shed)
{
    struct um_lbtr_src_engine *s = source_with(100000000, 816000, 10000000);
    lbm_src_transport_stats_lbtrm_t stats;
    for (unsigned i = 0; i < 1000; i++) {
        put(s, T0 + i * MS, 1000);
    }
    ask(s, T0 + 2 * SEC, 0, 1000);
    um_lbtrm_src_engine_stats(s, &stats);
    CHECK(stats.rctlr_rx_msgs >= 95 && stats.rctlr_rx_msgs <= 105);
    CHECK(stats.naks_shed == 1000 - 1 - stats.rctlr_rx_msgs && out.ncf_numbers[UM_LBTR_NAK_SHED] == stats.naks_shed);
    um_lbtr_src_engine_destroy(s);
}

TEST(oldest_numbers_come_first_however_the_list_is_ordered)
{
    struct um_lbtr_src_engine *s =
        source_with(100000000, 8000000, 1 << 20); /* 10,000 bytes of repairs in an interval */
    uint8_t packet[UM_LBTRM_NAK_HDR + 4 * 100];
    uint32_t sqns[100];
    for (unsigned i = 0; i < 100; i++) {
        put(s, T0 + i * MS, 1000);
        sqns[i] = 99 - i;
    }
    memset(&out, 0, sizeof out);
    um_lbtrm_src_engine_on_packet(s, T0 + SEC, packet, um_lbtrm_put_nak(packet, &session, sqns, 100));
    CHECK(out.repairs == 9 && out.repaired[0] == 0 && out.repaired[8] == 8);
    um_lbtr_src_engine_destroy(s);
}

TEST(confirmations_take_a_quarter_of_the_retransmission_limit_at_most)
{
    struct um_lbtr_src_engine *s = source_with(10000000, 800000, 65536);
    for (unsigned i = 0; i < 60; i++) {
        put(s, T0 + i * MS, 1000);
    }
    memset(&out, 0, sizeof out);
    for (unsigned i = 0; i < 10000; i++) { /* for what was never kept: each is refused */
        ask(s, T0 + SEC + i * 1000, i * 365 - 400000000u, 365);
    }
    CHECK(out.ncf_bytes > 20000 && out.ncf_bytes <= 25000);
    CHECK(um_lbtr_src_engine_counters(s)->ncfs_withheld > 9000);
    um_lbtr_src_engine_destroy(s);
}

TEST(m3_naks_of_other_sessions_change_nothing)
{
    struct um_lbtr_src_engine *s = source_with(10000000, 5000000, 65536);
    uint8_t packet[UM_LBTRM_NAK_HDR + 4];
    put(s, T0, 100);
    for (int i = 0; i < 2; i++) {
        struct um_lbtrm_session other = {(uint16_t)(session.ucast_port + i), session.session_id + 1 - (uint32_t)i};
        um_lbtrm_src_engine_on_packet(s, T0, packet, um_lbtrm_put_nak(packet, &other, (uint32_t[]){0}, 1));
    }
    CHECK(out.repairs == 0 && out.ncfs == 0 && um_lbtr_src_engine_counters(s)->naks_rcved == 0);
    CHECK_EQ(um_lbtr_src_engine_counters(s)->packets_ignored, 2);
    um_lbtr_src_engine_destroy(s);
}

TEST(forged_naks_cause_no_more_than_the_limits_allow)
{
    struct um_lbtr_src_engine *s = source_with(10000000, 800000, 65536);
    for (unsigned i = 0; i < 60; i++) {
        put(s, T0 + i * MS, 1000);
    }
    memset(&out, 0, sizeof out);
    out.due = UM_NEVER;
    for (unsigned i = 0; i < 10000; i++) {
        ask(s, T0 + SEC + i * 100000, i * 37 - 3000000u, 300);
        ask(s, T0 + SEC + i * 100000, 0, 60);
        run_source(s, T0 + SEC + i * 100000);
    }
    CHECK(out.repairs <= 105 && out.ncfs <= 3300);
    um_lbtr_src_engine_destroy(s);
}

TEST(data_limit_holds_one_datagram_blocks_and_relieves)
{
    struct um_lbtr_src_engine *s = source_with(8000000, 4000000, 10000000); /* 10000 bytes per interval */
    for (unsigned i = 0; i < 10; i++) {
        CHECK(um_lbtr_src_engine_may_send(s, false));
        CHECK_EQ(put(s, T0, 980), UM_LBTR_SENT);
    }
    CHECK(um_lbtr_src_engine_may_send(s, false));
    CHECK_EQ(put(s, T0, 980), UM_LBTR_HELD);
    CHECK(!um_lbtr_src_engine_may_send(s, true));
    struct um_lbtr_src_engine *other = um_lbtrm_src_engine_create(
        &(struct um_lbtrm_src_engine_config){session, 8, 8192, 65536, 0, 500 * MS, 200 * MS, 10 * SEC, 0, 0}, &limiter,
        &source_ops, NULL);
    CHECK(!um_lbtr_src_engine_may_send(other, false));
    CHECK_EQ(out.data, 10);
    run_source(s, T0 + 10 * MS);
    CHECK(out.data == 11 && out.relieved == 1 && um_lbtr_src_engine_may_send(other, false));
    run_source(s, T0 + 50 * MS);
    CHECK_EQ(out.relieved, 1);
    um_lbtr_src_engine_destroy(other);
    um_lbtr_src_engine_destroy(s);
}

TEST(datagram_larger_than_an_allowance_leaves_after_some_intervals)
{
    struct um_lbtr_src_engine *s = source_with(800000, 400000, 10000000); /* 1000 bytes per interval */
    CHECK_EQ(put(s, T0, 2500), UM_LBTR_HELD);
    run_source(s, T0 + 10 * MS);
    CHECK_EQ(out.data, 0);
    run_source(s, T0 + 30 * MS);
    CHECK_EQ(out.data, 1);
    um_lbtr_src_engine_destroy(s);
}

TEST(waiting_originals_are_not_starved_by_repairs)
{
    struct um_lbtr_src_engine *s = source_with(8000000, 4000000, 10000000); /* 10000 and 5000 bytes per interval */
    for (unsigned i = 0; i < 100; i++) {
        put(s, T0 + i * 10 * MS, 1000);
    }
    uint64_t t = T0 + 2 * SEC;
    run_source(s, t - 1);
    ask(s, t, 0, 100);
    unsigned data = out.data;
    CHECK_EQ(put(s, t, 7000), UM_LBTR_HELD);
    run_source(s, t + 40 * MS);
    CHECK_EQ(out.data, data + 1);
    um_lbtr_src_engine_destroy(s);
}

static unsigned failing_at;

static bool fail_from(size_t size)
{
    return failing_at-- == 0;
}

TEST(every_failed_allocation_is_survived)
{
    for (unsigned n = 0; n < 60; n++) {
        failing_at = UINT32_MAX;
        struct um_lbtr_rcv_engine *r = new_receiver();
        failing_at = n;
        um_mem_set_fail_hook(fail_from);
        for (uint32_t i = 0; i < 200; i++) {
            give(r, T0, 3 * i, 0, false);
        }
        struct um_lbtr_src_engine *s = source_with(1000000000, 1000000, 65536);
        for (unsigned i = 0; s != NULL && i < 2000; i++) {
            size_t room;
            uint8_t *payload = um_lbtr_src_engine_acquire(s, &room);
            if (payload != NULL) {
                memset(payload, 0, 20);
                um_lbtr_src_engine_commit(s, T0, 20, 20);
            }
        }
        if (s != NULL) {
            ask(s, T0, 0, 900);
            um_lbtr_src_engine_destroy(s);
        }
        um_mem_set_fail_hook(NULL);
        um_lbtr_rcv_engine_destroy(r);
    }
}

/* ---- a socket that takes no more ---- */

TEST(while_the_socket_is_full_data_and_repairs_wait_and_nothing_unsent_is_evicted)
{
    static struct um_lbtr_limiter limiter;
    struct um_lbtr_limiter_config limits = {.interval_ns = 10 * MS, .retransmissions_count = true};
    struct um_lbtrm_src_engine_config config = {.session = session,
                                                .tgsz = 8,
                                                .datagram_max = 1472,
                                                .window_size = 5000,
                                                .ignore_ns = 500 * MS,
                                                .sm_min_ns = 200 * MS,
                                                .sm_max_ns = 10 * SEC};
    memset(&out, 0, sizeof out);
    um_lbtr_limiter_init(&limiter, &limits);
    struct um_lbtr_src_engine *source = um_lbtrm_src_engine_create(&config, &limiter, &source_ops, NULL);
    size_t capacity;
    for (int i = 0; i < 3; i++) {
        memset(um_lbtr_src_engine_acquire(source, &capacity), i, 1000);
        CHECK_EQ(um_lbtr_src_engine_commit(source, T0, 1000, 1000), UM_LBTR_SENT);
    }
    CHECK_EQ(out.data, 3);
    out.full = true;
    uint8_t nak[64];
    um_lbtrm_src_engine_on_packet(source, T0, nak, um_lbtrm_put_nak(nak, &session, (uint32_t[]){1}, 1));
    CHECK_EQ(out.repairs, 0);
    um_lbtr_src_engine_pin(source, 2); /* the third is still on its way out of the socket */
    for (int i = 3; i < 20; i++) {
        memset(um_lbtr_src_engine_acquire(source, &capacity), i, 1000);
        CHECK_EQ(um_lbtr_src_engine_commit(source, T0, 1000, 1000), UM_LBTR_HELD);
        CHECK(um_lbtr_limiter_blocked(&limiter));
    }
    CHECK_EQ(out.data, 3);
    lbm_src_transport_stats_lbtrm_t stats;
    um_lbtrm_src_engine_stats(source, &stats);
    CHECK_EQ(stats.rctlr_data_msgs, 17);
    CHECK_EQ(stats.txw_msgs, 18); /* from the pinned one on */
    um_lbtr_src_engine_on_timer(source, T0 + 10 * MS);
    CHECK_EQ(out.data, 3);
    out.full = false;
    um_lbtr_src_engine_pin(source, UINT64_MAX);
    um_lbtr_src_engine_on_timer(source, T0 + 20 * MS);
    CHECK_EQ(out.data, 20);
    CHECK_EQ(out.last[20], 19); /* the newest, with its contents */
    CHECK(!um_lbtr_limiter_blocked(&limiter));
    um_lbtr_src_engine_destroy(source);
}
