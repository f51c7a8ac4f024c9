/* Delivery controller in virtual time: ordering, reassembly, gaps, bursts,
 * bounds and hostile input. Deliveries are recorded as text. */
#include <stdarg.h>

#include "base/um_mem.h"
#include "base/um_timer.h"
#include "delivery/um_dc.h"
#include "um_test.h"

#define MS UM_NS_PER_MS

static char out[1 << 16]; /* "d5 L6 B7+1024 " */
static uint64_t timer_due;
static uint8_t last_payload[1 << 20];
static size_t last_len;
static struct um_dc_delivery last;
static struct um_lbmc_msg seen_msg;
static uint64_t missing_seen;

static void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *fmt, ...)
{
    size_t used = strlen(out);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(out + used, sizeof out - used, fmt, ap);
    va_end(ap);
}

static void on_deliver(void *user, const struct um_dc_delivery *d, uint64_t now_ns)
{
    (void)user, (void)now_ns;
    last = *d;
    seen_msg = *d->msg;
    last_len = d->len;
    if (d->len <= sizeof last_payload) {
        memcpy(last_payload, d->data, d->len);
    }
    note("d%u ", d->sqn);
}

static void on_loss(void *user, uint32_t sqn, uint64_t now_ns)
{
    (void)user, (void)now_ns;
    note("L%u ", sqn);
}

static void on_burst(void *user, uint32_t first, uint32_t count, uint64_t now_ns)
{
    (void)user, (void)now_ns;
    note("B%u+%u ", first, count);
}

static void on_set_timer(void *user, uint64_t due_ns)
{
    (void)user;
    timer_due = due_ns;
}

static void on_missing(void *user, uint32_t first, uint32_t count, uint64_t now_ns)
{
    (void)user, (void)first, (void)now_ns;
    missing_seen += count;
}

static const struct um_dc_ops OPS = {
    .deliver = on_deliver, .loss = on_loss, .burst_loss = on_burst, .set_timer = on_set_timer, .missing = on_missing};

static struct um_dc_config config_default(int mode)
{
    return (struct um_dc_config){.ordered_delivery = mode,
                                 .maximum_burst_loss = 1024,
                                 .gap_timeout_ns = 10000 * MS,
                                 .loss_check_interval_ns = 0,
                                 .map_entries_max = 200000,
                                 .reassembly_size_max = 1 << 20};
}

static struct um_dc *dc_new(const struct um_dc_config *config)
{
    out[0] = '\0';
    timer_due = UM_NEVER;
    missing_seen = 0;
    last_len = 0;
    memset(&last, 0, sizeof last);
    return um_dc_create(config, &OPS, NULL);
}

static void put(struct um_dc *dc, uint64_t now, uint32_t sqn)
{
    struct um_buf *buf = um_buf_alloc(8);
    memcpy(buf->data, &sqn, 4);
    struct um_lbmc_msg msg = {.sqn = sqn, .payload = {buf->data, 4}};
    um_dc_on_data(dc, now, &msg, buf);
    um_buf_unref(buf);
}

static void put_frag_len(struct um_dc *dc, uint64_t now, uint32_t first, uint32_t sqn, uint32_t offset, uint32_t size,
                         uint32_t total)
{
    struct um_buf *buf = um_buf_alloc(size + 1);
    for (uint32_t i = 0; i < size; i++) {
        buf->data[i] = (uint8_t)((offset + i) * 7);
    }
    struct um_lbmc_msg msg = {.sqn = sqn,
                              .present = UM_LBMC_HAS_FRAG,
                              .payload = {buf->data, size},
                              .frag = {.first_sqn = first, .offset = offset, .len = total}};
    um_dc_on_data(dc, now, &msg, buf);
    um_buf_unref(buf);
}

/* Fragment k of a message cut into 10-byte fragments. */
static void put_frag(struct um_dc *dc, uint64_t now, uint32_t first, uint32_t k, uint32_t total)
{
    uint32_t offset = k * 10;
    put_frag_len(dc, now, first, first + k, offset, total - offset < 10 ? total - offset : 10, total);
}

static bool payload_intact(size_t len)
{
    if (last_len != len) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (last_payload[i] != (uint8_t)(i * 7)) {
            return false;
        }
    }
    return true;
}

TEST(messages_in_order_are_delivered_as_they_come)
{
    struct um_dc_config config = config_default(1);
    struct um_dc *dc = dc_new(&config);
    for (uint32_t i = 0; i < 5; i++) {
        put(dc, i, 7 + i);
    }
    CHECK_STR(out, "d7 d8 d9 d10 d11 ");
    CHECK_EQ(um_dc_stats(dc).delivered, 5);
    um_dc_destroy(dc);
}

static bool refuse(size_t size)
{
    (void)size;
    return true;
}

TEST(in_order_delivery_allocates_nothing)
{
    struct um_dc_config config = config_default(1);
    struct um_dc *dc = dc_new(&config);
    put(dc, 0, 0);
    struct um_buf *buf = um_buf_alloc(8);
    memset(buf->data, 0, 8);
    um_mem_set_fail_hook(refuse);
    for (uint32_t sqn = 1; sqn < 100; sqn++) {
        struct um_lbmc_msg msg = {.sqn = sqn, .payload = {buf->data, 4}};
        um_dc_on_data(dc, sqn, &msg, buf);
    }
    um_mem_set_fail_hook(NULL);
    um_buf_unref(buf);
    CHECK_EQ(um_dc_stats(dc).delivered, 100);
    um_dc_destroy(dc);
}

TEST(ordered_mode_waits_for_the_missing_one)
{
    struct um_dc_config config = config_default(1);
    struct um_dc *dc = dc_new(&config);
    put(dc, 0, 0);
    put(dc, 1, 2);
    put(dc, 2, 3);
    CHECK_STR(out, "d0 ");
    CHECK_EQ(um_dc_held(dc), 2);
    CHECK_EQ(missing_seen, 1);
    put(dc, 3, 1);
    CHECK_STR(out, "d0 d1 d2 d3 ");
    CHECK_EQ(um_dc_held(dc), 0);
    um_dc_destroy(dc);
}

TEST(arrival_mode_delivers_late_ones_late)
{
    struct um_dc_config config = config_default(-1);
    struct um_dc *dc = dc_new(&config);
    put(dc, 0, 0);
    put(dc, 1, 2);
    put(dc, 2, 3);
    put(dc, 3, 1);
    CHECK_STR(out, "d0 d2 d3 d1 ");
    um_dc_destroy(dc);
}

TEST(repetitions_are_dropped_in_every_mode)
{
    for (int mode = -1; mode <= 1; mode++) {
        struct um_dc_config config = config_default(mode);
        struct um_dc *dc = dc_new(&config);
        put(dc, 0, 0);
        put(dc, 0, 1);
        put(dc, 0, 1);
        put(dc, 0, 0);
        put(dc, 0, 2);
        CHECK_STR(out, "d0 d1 d2 ");
        CHECK_EQ(um_dc_stats(dc).discards[UM_DC_DUPLICATE], 2);
        um_dc_destroy(dc);
    }
}

TEST(outside_the_duplicate_window_arrival_mode_lets_old_ones_through)
{
    struct um_dc_config config = config_default(-1);
    struct um_dc *dc = dc_new(&config);
    for (uint32_t i = 0; i < 4097; i++) {
        put(dc, 0, i);
    }
    out[0] = '\0';
    put(dc, 0, 1);
    CHECK_STR(out, "");
    put(dc, 0, 0);
    CHECK_STR(out, "d0 ");
    um_dc_destroy(dc);
}

TEST(sequence_numbers_wrap)
{
    struct um_dc_config config = config_default(1);
    struct um_dc *dc = dc_new(&config);
    put(dc, 0, 0xFFFFFFFEu);
    put(dc, 0, 0);
    put(dc, 0, 1);
    put(dc, 0, 0xFFFFFFFFu);
    CHECK_STR(out, "d4294967294 d4294967295 d0 d1 ");
    um_dc_destroy(dc);
}

TEST(expired_gap_is_reported_on_the_next_arrival_only)
{
    struct um_dc_config config = config_default(1);
    struct um_dc *dc = dc_new(&config);
    for (uint32_t i = 1; i <= 10; i++) {
        if (i != 5) {
            put(dc, i, i);
        }
    }
    um_dc_on_timer(dc, 9999 * MS); /* not yet due */
    CHECK_STR(out, "d1 d2 d3 d4 ");
    CHECK_EQ(timer_due, UM_NEVER);
    put(dc, 10001 * MS, 11);
    CHECK_STR(out, "d1 d2 d3 d4 L5 d6 d7 d8 d9 d10 d11 ");
    um_dc_destroy(dc);
}

TEST(loss_check_reports_without_traffic)
{
    struct um_dc_config config = config_default(1);
    config.loss_check_interval_ns = 500 * MS;
    struct um_dc *dc = dc_new(&config);
    put(dc, 0, 0);
    CHECK_EQ(timer_due, UM_NEVER);
    put(dc, 0, 2);
    uint64_t now = 0;
    int scans = 0;
    while (timer_due != UM_NEVER) {
        now = timer_due;
        timer_due = UM_NEVER;
        um_dc_on_timer(dc, now);
        scans++;
        CHECK(scans < 100);
    }
    CHECK_EQ(now, 10000 * MS);
    CHECK_STR(out, "d0 L1 d2 ");
    um_dc_destroy(dc);
}

TEST(without_gap_timeout_loss_is_reported_at_once)
{
    struct um_dc_config config = config_default(1);
    config.gap_timeout_ns = 0;
    struct um_dc *dc = dc_new(&config);
    put(dc, 0, 0);
    put(dc, 0, 3);
    CHECK_STR(out, "d0 L1 L2 d3 ");
    CHECK_EQ(um_dc_stats(dc).lost, 2);
    um_dc_destroy(dc);
}

TEST(on_an_ordered_transport_a_tsni_waits_for_the_data_behind_it)
{
    struct um_dc_config config = config_default(1);
    config.gap_timeout_ns = 0;
    struct um_dc *dc = dc_new(&config);
    put(dc, 0, 0);
    um_dc_on_tsni(dc, 0, 4);
    CHECK_STR(out, "d0 ");
    put(dc, 0, 1);
    put(dc, 0, 3);
    CHECK_STR(out, "d0 d1 L2 d3 ");
    um_dc_on_tsni(dc, 0, 4);
    CHECK_STR(out, "d0 d1 L2 d3 L4 ");
    put(dc, 0, 5);
    CHECK_STR(out, "d0 d1 L2 d3 L4 d5 ");
    um_dc_destroy(dc);
}

TEST(tsni_reveals_a_lost_tail)
{
    struct um_dc_config config = config_default(1);
    struct um_dc *dc = dc_new(&config);
    put(dc, 0, 0);
    um_dc_on_tsni(dc, 5000 * MS, 0);
    um_dc_on_tsni(dc, 5000 * MS, 1);
    um_dc_on_tsni(dc, 10000 * MS, 1);
    CHECK_STR(out, "d0 ");
    um_dc_on_tsni(dc, 15000 * MS, 1);
    CHECK_STR(out, "d0 L1 ");
    um_dc_destroy(dc);
}

TEST(tsni_before_any_data_marks_the_start)
{
    struct um_dc_config config = config_default(1);
    struct um_dc *dc = dc_new(&config);
    um_dc_on_tsni(dc, 0, 0xFFFFFFFFu); /* nothing sent yet */
    put(dc, 1, 1);
    CHECK_STR(out, "");
    put(dc, 2, 0);
    CHECK_STR(out, "d0 d1 ");
    um_dc_destroy(dc);
}

TEST(gap_of_the_limit_is_one_burst_and_one_less_is_single_losses)
{
    struct um_dc_config config = config_default(1);
    config.gap_timeout_ns = 0;
    struct um_dc *dc = dc_new(&config);
    put(dc, 0, 0);
    put(dc, 0, 1024);
    CHECK_EQ(um_dc_stats(dc).lost, 1023);
    CHECK_EQ(um_dc_stats(dc).bursts, 0);
    out[0] = '\0';
    put(dc, 0, 1025 + 1024);
    CHECK_STR(out, "B1025+1024 d2049 ");
    um_dc_destroy(dc);
}

TEST(burst_drops_what_was_held_and_goes_on)
{
    struct um_dc_config config = config_default(1);
    struct um_dc *dc = dc_new(&config);
    put(dc, 0, 9);
    for (uint32_t i = 11; i <= 30; i++) {
        put(dc, 0, i);
    }
    put(dc, 0, 1055);
    CHECK_STR(out, "d9 B10+1045 d1055 ");
    CHECK_EQ(um_dc_held(dc), 0);
    um_dc_destroy(dc);
}

TEST(loss_before_anything_was_heard_of_the_source_is_silent)
{
    struct um_dc_config config = config_default(1);
    config.gap_timeout_ns = 0;
    struct um_dc *dc = dc_new(&config);
    put_frag(dc, 0, 10, 1, 30); /* joined in the middle of a message */
    put(dc, 0, 15);
    CHECK_STR(out, "d15 ");
    um_dc_destroy(dc);
}

TEST(f20_a_first_message_of_which_only_the_beginning_came_is_reported_as_lost)
{
    for (int mode = -1; mode <= 1; mode += 2) {
        struct um_dc_config config = config_default(mode);
        config.gap_timeout_ns = 0;
        struct um_dc *dc = dc_new(&config);
        put_frag(dc, 0, 10, 0, 40);
        put_frag(dc, 0, 10, 3, 40);
        CHECK_STR(out, "L11 L12 ");
        put(dc, 0, 14);
        CHECK_STR(out, "L11 L12 d14 ");
        um_dc_destroy(dc);
    }
}

TEST(f20_what_was_lost_after_the_source_told_where_it_stands_is_reported)
{
    struct um_dc_config config = config_default(1);
    config.gap_timeout_ns = 0;
    struct um_dc *dc = dc_new(&config);
    um_dc_on_tsni(dc, 0, 0xFFFFFFFFu);
    put_frag(dc, 0, 0, 2, 30);
    CHECK_STR(out, "L0 L1 ");
    um_dc_destroy(dc);

    dc = dc_new(&config); /* more than a burst, and in the middle of a message */
    um_dc_on_tsni(dc, 0, 99);
    put_frag(dc, 0, 100, 1100, 20000);
    CHECK_STR(out, "B100+1100 ");
    um_dc_destroy(dc);

    dc = dc_new(&config); /* nothing arrived at all */
    um_dc_on_tsni(dc, 0, 99);
    um_dc_on_tsni(dc, 0, 99);
    CHECK_STR(out, "");
    um_dc_on_tsni(dc, 5000 * MS, 101);
    um_dc_on_tsni(dc, 10000 * MS, 101);
    CHECK_STR(out, "L100 L101 ");
    um_dc_destroy(dc);
}

TEST(f20_a_hint_that_cannot_be_is_not_believed)
{
    struct um_dc_config config = config_default(1);
    config.gap_timeout_ns = 0;
    struct um_dc *dc = dc_new(&config);
    um_dc_on_tsni(dc, 0, 1u << 30);
    put(dc, 0, 7); /* an older number than the one it told: the stream begins here */
    put(dc, 0, 9);
    CHECK_STR(out, "d7 L8 d9 ");
    um_dc_destroy(dc);
}

TEST(fragments_become_one_message)
{
    for (int mode = -1; mode <= 1; mode += 2) {
        struct um_dc_config config = config_default(mode);
        struct um_dc *dc = dc_new(&config);
        put(dc, 0, 0);
        put_frag(dc, 0, 1, 0, 25);
        put_frag(dc, 0, 1, 1, 25);
        CHECK_STR(out, "d0 ");
        put_frag(dc, 0, 1, 2, 25);
        CHECK_STR(out, "d0 d3 ");
        CHECK(payload_intact(25));
        CHECK_EQ(last.first_sqn, 1);
        CHECK_EQ(last.frag_offset, 20);
        CHECK_EQ(last.frag_total, 25);
        CHECK(last.fragmented && !last.fragment);
        put(dc, 0, 4);
        CHECK_STR(out, "d0 d3 d4 ");
        um_dc_destroy(dc);
    }
}

TEST(fragments_out_of_order_become_whole_in_both_reassembling_modes)
{
    static const uint32_t order[] = {3, 1, 4, 2};
    for (int mode = -1; mode <= 1; mode += 2) {
        struct um_dc_config config = config_default(mode);
        struct um_dc *dc = dc_new(&config);
        put(dc, 0, 0);
        put_frag(dc, 0, 1, 0, 45);
        for (int i = 0; i < 4; i++) {
            put_frag(dc, 0, 1, order[i], 45);
        }
        CHECK_STR(out, "d0 d5 ");
        CHECK(payload_intact(45));
        CHECK_EQ(um_dc_reassembly_bytes(dc), 0);
        um_dc_destroy(dc);
    }
}

TEST(mode_zero_delivers_every_fragment)
{
    struct um_dc_config config = config_default(0);
    struct um_dc *dc = dc_new(&config);
    put_frag(dc, 0, 5, 0, 25);
    CHECK(last.fragment && last.frag_offset == 0);
    put_frag(dc, 0, 5, 2, 25);
    CHECK(last.fragment && last.frag_offset == 20);
    put_frag(dc, 0, 5, 1, 25);
    CHECK_STR(out, "d5 d7 d6 ");
    um_dc_destroy(dc);
}

TEST(joining_in_the_middle_of_a_message_waits_for_the_next_one)
{
    for (int mode = -1; mode <= 1; mode += 2) {
        struct um_dc_config config = config_default(mode);
        struct um_dc *dc = dc_new(&config);
        put_frag(dc, 0, 1, 1, 30);
        put_frag(dc, 0, 1, 2, 30);
        put(dc, 0, 4);
        CHECK_STR(out, "d4 ");
        CHECK_EQ(um_dc_stats(dc).lost, 0);
        um_dc_destroy(dc);
    }
}

TEST(a_lost_fragment_loses_the_message_with_one_event)
{
    for (int mode = -1; mode <= 1; mode += 2) {
        struct um_dc_config config = config_default(mode);
        config.gap_timeout_ns = 0;
        struct um_dc *dc = dc_new(&config);
        put(dc, 0, 0);
        put_frag(dc, 0, 1, 0, 40);
        put_frag(dc, 0, 1, 2, 40);
        put_frag(dc, 0, 1, 3, 40);
        put(dc, 0, 5);
        CHECK_STR(out, "d0 L2 d5 ");
        CHECK_EQ(um_dc_reassembly_bytes(dc), 0);
        um_dc_destroy(dc);
    }
}

TEST(an_unfinished_message_is_reported_when_the_next_begins)
{
    struct um_dc_config config = config_default(1);
    struct um_dc *dc = dc_new(&config);
    put(dc, 0, 0);
    put_frag(dc, 0, 1, 0, 40);
    put(dc, 0, 2);
    CHECK_STR(out, "d0 L1 d2 ");
    um_dc_destroy(dc);
}

TEST(impossible_fragment_headers_are_discarded)
{
    struct um_dc_config config = config_default(1);
    config.gap_timeout_ns = 0;
    struct um_dc *dc = dc_new(&config);
    put(dc, 0, 0);
    put_frag_len(dc, 0, 1, 1, 0, 20, 10);           /* longer than the message */
    put_frag_len(dc, 0, 1, 1, 0, 0, 10);            /* empty */
    put_frag_len(dc, 0, 1, 1, 0, 10, 0);            /* message of no length */
    put_frag_len(dc, 0, 2, 1, 0, 10, 20);           /* first after itself */
    put_frag_len(dc, 0, 1, 1, 5, 10, 20);           /* first fragment, but an offset */
    put_frag_len(dc, 0, 0, 1, 0, 10, 20);           /* second fragment, no offset */
    put_frag_len(dc, 0, 0, 1, 0xFFFFFFFFu, 10, 20); /* overflow */
    CHECK_STR(out, "d0 ");
    CHECK_EQ(um_dc_stats(dc).discards[UM_DC_MALFORMED], 7);
    um_dc_destroy(dc);
}

TEST(fragments_that_disagree_about_the_length_lose_the_message)
{
    struct um_dc_config config = config_default(1);
    struct um_dc *dc = dc_new(&config);
    put(dc, 0, 0);
    put_frag(dc, 0, 1, 0, 40);
    put_frag(dc, 0, 1, 1, 41);
    put_frag(dc, 0, 1, 2, 40);
    put(dc, 0, 4);
    CHECK_STR(out, "d0 L2 d4 ");
    um_dc_destroy(dc);
}

TEST(a_message_beyond_the_size_limit_is_reported_lost)
{
    struct um_dc_config config = config_default(1);
    config.reassembly_size_max = 100;
    struct um_dc *dc = dc_new(&config);
    put(dc, 0, 0);
    put_frag(dc, 0, 1, 0, 101);
    put_frag(dc, 0, 1, 1, 101);
    CHECK_EQ(um_dc_reassembly_bytes(dc), 0);
    put(dc, 0, 3);
    CHECK_STR(out, "d0 L1 d3 ");
    CHECK_EQ(um_dc_stats(dc).discards[UM_DC_REASSEMBLY], 1);
    um_dc_destroy(dc);
}

TEST(x2_a_claimed_length_allocates_nothing_until_bytes_arrive)
{
    struct um_dc_config config = config_default(1);
    config.reassembly_size_max = 1u << 31;
    struct um_dc *dc = dc_new(&config);
    put_frag(dc, 0, 1, 0, 1u << 30);
    CHECK(um_dc_reassembly_bytes(dc) <= 64 * 1024);
    um_dc_destroy(dc);
    config.ordered_delivery = -1;
    dc = dc_new(&config);
    put(dc, 0, 0);
    put_frag_len(dc, 0, 1, 2, (1u << 30) - 10, 10, 1u << 30); /* far into a message nobody has seen */
    CHECK_EQ(um_dc_reassembly_bytes(dc), 0);
    CHECK_STR(out, "d0 L2 ");
    um_dc_destroy(dc);
}

TEST(at_most_64_messages_are_in_progress)
{
    struct um_dc_config config = config_default(-1);
    struct um_dc *dc = dc_new(&config);
    put(dc, 0, 0);
    for (uint32_t i = 0; i < 65; i++) {
        put_frag(dc, 0, 1 + 2 * i, 0, 20);
    }
    CHECK_STR(out, "d0 L1 ");
    CHECK(um_dc_reassembly_bytes(dc) <= 64 * 20);
    for (uint32_t i = 1; i < 65; i++) {
        put_frag(dc, 0, 1 + 2 * i, 1, 20);
    }
    CHECK_EQ(um_dc_stats(dc).delivered, 65);
    CHECK_EQ(um_dc_reassembly_bytes(dc), 0);
    um_dc_destroy(dc);
}

TEST(order_map_limit_gives_up_the_oldest_gap)
{
    struct um_dc_config config = config_default(1);
    config.map_entries_max = 10;
    struct um_dc *dc = dc_new(&config);
    put(dc, 0, 0);
    for (uint32_t i = 2; i < 12; i++) {
        put(dc, 0, i);
    }
    CHECK_STR(out, "d0 ");
    put(dc, 0, 12);
    CHECK_STR(out, "d0 L1 d2 d3 d4 d5 d6 d7 d8 d9 d10 d11 d12 ");
    CHECK_EQ(um_dc_stats(dc).map_overflow, 1);
    um_dc_destroy(dc);
}

TEST(hostile_jumps_cost_one_event)
{
    struct um_dc_config config = config_default(1);
    config.maximum_burst_loss = UINT32_MAX;
    struct um_dc *dc = dc_new(&config);
    put(dc, 0, 0);
    put(dc, 0, 0x40000000u);
    CHECK_STR(out, "d0 B1+1073741823 d1073741824 ");
    um_dc_on_tsni(dc, 0, 0x60000000u); /* more than 2^20 ahead: not believed */
    put(dc, 0, 0x40000001u);
    CHECK_STR(out, "d0 B1+1073741823 d1073741824 d1073741825 ");
    CHECK_EQ(um_dc_stats(dc).discards[UM_DC_MALFORMED], 1);
    um_dc_destroy(dc);
}

TEST(batch_marks_of_first_and_last_fragment_are_joined)
{
    struct um_dc_config config = config_default(1);
    struct um_dc *dc = dc_new(&config);
    struct um_buf *buf = um_buf_alloc(16);
    memset(buf->data, 0, 16);
    struct um_lbmc_msg msg = {.sqn = 0,
                              .present = UM_LBMC_HAS_FRAG | UM_LBMC_HAS_BATCH,
                              .batch_flags = UM_LBMC_BATCH_START,
                              .payload = {buf->data, 8},
                              .frag = {.first_sqn = 0, .offset = 0, .len = 16}};
    um_dc_on_data(dc, 0, &msg, buf);
    msg.sqn = 1;
    msg.frag.offset = 8;
    msg.batch_flags = UM_LBMC_BATCH_END;
    um_dc_on_data(dc, 0, &msg, buf);
    um_buf_unref(buf);
    CHECK_STR(out, "d1 ");
    CHECK_EQ(last.batch_flags, UM_LBMC_BATCH_START | UM_LBMC_BATCH_END);
    um_dc_destroy(dc);
}

TEST(big_message_is_whole)
{
    struct um_dc_config config = config_default(1);
    config.reassembly_size_max = 64u << 20;
    struct um_dc *dc = dc_new(&config);
    uint32_t total = 20u << 20, step = 60000;
    struct um_buf *buf = um_buf_alloc(step);
    uint32_t sqn = 0;
    for (uint32_t offset = 0; offset < total; offset += step, sqn++) {
        uint32_t size = total - offset < step ? total - offset : step;
        memset(buf->data, (int)(sqn & 0xFF), size);
        struct um_lbmc_msg msg = {.sqn = sqn,
                                  .present = UM_LBMC_HAS_FRAG,
                                  .payload = {buf->data, size},
                                  .frag = {.first_sqn = 0, .offset = offset, .len = total}};
        um_dc_on_data(dc, 0, &msg, buf);
        CHECK(um_dc_reassembly_bytes(dc) <= 4ull * (offset + size) + 65536);
    }
    um_buf_unref(buf);
    CHECK_EQ(last_len, total);
    CHECK_EQ(um_dc_reassembly_bytes(dc), 0);
    um_dc_destroy(dc);
}

static long countdown;
static bool fail_nth(size_t size)
{
    (void)size;
    return countdown-- == 0;
}

TEST(every_failing_allocation_is_survived)
{
    for (int mode = -1; mode <= 1; mode++) {
        for (long n = 0; n < 60; n++) {
            struct um_dc_config config = config_default(mode);
            struct um_dc *dc = dc_new(&config);
            CHECK(dc != NULL);
            for (uint32_t i = 0; i < 40; i++) {
                struct um_buf *buf = um_buf_alloc(16);
                memset(buf->data, 0, 16);
                uint32_t sqn = i ^ 5u; /* out of order in groups of eight */
                struct um_lbmc_msg msg = {.sqn = sqn, .payload = {buf->data, 10}};
                if (sqn % 4 >= 2) {
                    uint32_t first = sqn / 4 * 4 + 2;
                    msg.present = UM_LBMC_HAS_FRAG;
                    msg.frag.first_sqn = first;
                    msg.frag.offset = (sqn - first) * 10;
                    msg.frag.len = 20;
                }
                countdown = i == 0 ? n : countdown;
                um_mem_set_fail_hook(fail_nth);
                um_dc_on_data(dc, i, &msg, buf);
                um_mem_set_fail_hook(NULL);
                um_buf_unref(buf);
            }
            put(dc, 20000 * MS, 45);
            CHECK(um_dc_stats(dc).delivered + um_dc_stats(dc).lost > 20);
            um_dc_destroy(dc);
        }
    }
}

/* ---- the end of the source ---- */

TEST(f38_what_lies_behind_gaps_is_delivered_at_the_end_after_the_losses)
{
    struct um_dc_config config = config_default(1);
    struct um_dc *dc = dc_new(&config);
    put(dc, 0, 1);
    put(dc, 0, 4); /* 2 and 3 are missing */
    put(dc, 0, 5);
    put(dc, 0, 7); /* and 6 */
    CHECK_STR(out, "d1 ");
    CHECK(um_dc_waits(dc, 0));
    CHECK(!um_dc_waits(dc, 10000 * MS));
    um_dc_end(dc, 1 * MS);
    CHECK_STR(out, "d1 L2 L3 d4 d5 L6 d7 ");
    um_dc_finish(dc, 1 * MS);
    CHECK_EQ(um_dc_stats(dc).lost, 3);
    CHECK_EQ(um_dc_stats(dc).discards[UM_DC_UNFINISHED], 0);
    um_dc_destroy(dc);
}

TEST(f38_numbers_that_only_a_tsni_told_of_are_lost_at_the_end)
{
    struct um_dc_config config = config_default(1);
    config.gap_timeout_ns = 0; /* TCP */
    struct um_dc *dc = dc_new(&config);
    put(dc, 0, 1);
    um_dc_on_tsni(dc, 0, 3);
    CHECK_STR(out, "d1 ");
    um_dc_end(dc, 0);
    CHECK_STR(out, "d1 L2 L3 ");
    um_dc_destroy(dc);
}

TEST(f38_a_message_that_is_not_whole_at_the_end_is_a_loss_in_every_mode_that_reassembles)
{
    for (int mode = -1; mode <= 1; mode += 2) {
        struct um_dc_config config = config_default(mode);
        struct um_dc *dc = dc_new(&config);
        put(dc, 0, 1);
        put_frag_len(dc, 0, 2, 2, 0, 10, 30);
        put_frag_len(dc, 0, 2, 3, 10, 10, 30); /* the third fragment never comes */
        um_dc_end(dc, 0);
        CHECK_STR(out, "d1 L2 ");
        CHECK_EQ(um_dc_stats(dc).discards[UM_DC_UNFINISHED], 1);
        CHECK_EQ(um_dc_reassembly_bytes(dc), 0);
        um_dc_end(dc, 0);
        CHECK_STR(out, "d1 L2 ");
        um_dc_destroy(dc);
    }
}

/* ---- where the stream begins ---- */

static uint32_t transport_at; /* position of what is handed on */
static bool repairing;        /* something before it may still come */
static bool watched;
static size_t cut_messages;
static uint32_t wanted_first, wanted_count; /* the gap offered to recovery last */
static bool wants;

static uint32_t on_position(void *user)
{
    (void)user;
    return transport_at;
}

static bool on_complete_before(void *user, uint32_t position)
{
    (void)user;
    return !repairing || position != 7;
}

static void on_opening(void *user, bool on)
{
    (void)user;
    watched = on;
}

static void on_opening_cut(void *user, size_t messages, size_t bytes, uint64_t now_ns)
{
    (void)user, (void)now_ns;
    cut_messages = messages;
    CHECK(bytes >= messages * 8);
}

static bool on_recovery_wanted(void *user, uint32_t first, uint32_t count, uint64_t now_ns)
{
    (void)user, (void)now_ns;
    wanted_first = first;
    wanted_count = count;
    return wants;
}

static const struct um_dc_ops REPAIRED = {.deliver = on_deliver,
                                          .loss = on_loss,
                                          .burst_loss = on_burst,
                                          .set_timer = on_set_timer,
                                          .missing = on_missing,
                                          .position = on_position,
                                          .complete_before = on_complete_before,
                                          .opening = on_opening,
                                          .opening_cut = on_opening_cut,
                                          .recovery_wanted = on_recovery_wanted};

static struct um_dc *dc_repaired(const struct um_dc_config *config)
{
    um_dc_destroy(dc_new(config)); /* clears what was noted */
    transport_at = 7;
    repairing = true;
    watched = false;
    wants = false;
    cut_messages = 0;
    wanted_count = 0;
    return um_dc_create(config, &REPAIRED, NULL);
}

static void complete(struct um_dc *dc, uint64_t now)
{
    repairing = false;
    um_dc_on_progress(dc, now);
}

TEST(l1_what_the_transport_repairs_late_comes_before_what_came_first)
{
    struct um_dc_config config = config_default(1);
    struct um_dc *dc = dc_repaired(&config);
    put(dc, 0, 101);
    put(dc, 1, 103);
    put(dc, 1, 102);
    put(dc, 2, 102); /* again */
    um_dc_on_progress(dc, 2);
    CHECK_STR(out, "");
    CHECK(watched);
    CHECK(um_dc_waits(dc, 0));
    CHECK_EQ(um_dc_held(dc), 4);
    transport_at = 9; /* the first one's counts */
    put(dc, 3, 100);
    complete(dc, 4);
    CHECK_STR(out, "d100 d101 d102 d103 ");
    CHECK(!watched);
    CHECK_EQ(um_dc_stats(dc).discards[UM_DC_DUPLICATE], 1);
    CHECK_EQ(missing_seen, 0);
    um_dc_destroy(dc);
}

TEST(a_stream_of_which_nothing_is_missing_begins_at_once)
{
    struct um_dc_config config = config_default(1);
    for (int mode = -1; mode <= 1; mode++) {
        config.ordered_delivery = mode;
        struct um_dc *dc = dc_repaired(&config);
        repairing = mode != 1; /* the others do not wait */
        put(dc, 0, 5);
        CHECK_STR(out, "d5 ");
        CHECK(!watched);
        um_dc_destroy(dc);
    }
}

TEST(l1_more_than_a_burst_may_be_repaired_at_the_beginning)
{
    struct um_dc_config config = config_default(1);
    struct um_dc *dc = dc_repaired(&config);
    um_dc_on_tsni(dc, 0, 0xFFFFFFFFu);
    put(dc, 0, 3000);
    for (uint32_t i = 0; i < 3000; i++) {
        put(dc, 1, i);
    }
    complete(dc, 2);
    CHECK_EQ(um_dc_stats(dc).delivered, 3001);
    CHECK_EQ(um_dc_stats(dc).bursts, 0);
    um_dc_destroy(dc);
}

TEST(what_a_repair_brings_from_before_the_join_is_not_the_beginning)
{
    struct um_dc_config config = config_default(1);
    struct um_dc *dc = dc_repaired(&config);
    put(dc, 0, 51);
    put(dc, 0, 49);
    put(dc, 0, 52);
    complete(dc, 1);
    CHECK_STR(out, "d51 d52 ");
    CHECK_EQ(um_dc_stats(dc).discards[UM_DC_BEFORE], 1);
    um_dc_destroy(dc);
}

TEST(l1_what_followed_the_number_told_belongs_to_the_beginning_even_behind_a_loss)
{
    struct um_dc_config config = config_default(1);
    struct um_dc *dc = dc_repaired(&config);
    um_dc_on_tsni(dc, 0, 99);
    put(dc, 0, 102);
    put(dc, 0, 100);
    complete(dc, 1);
    CHECK_STR(out, "d100 ");
    put(dc, 10001 * MS, 103); /* 101 is given up */
    CHECK_STR(out, "d100 L101 d102 d103 ");
    um_dc_destroy(dc);
}

TEST(numbers_told_while_a_stream_is_opening_open_it_or_show_its_tail)
{
    struct um_dc_config config = config_default(1);
    struct um_dc *dc = dc_repaired(&config);
    put(dc, 0, 10);
    um_dc_on_tsni(dc, 0, 11);
    complete(dc, 1);
    CHECK_STR(out, "d10 ");
    CHECK_EQ(missing_seen, 1);
    um_dc_end(dc, 2);
    CHECK_STR(out, "d10 L11 ");
    um_dc_destroy(dc);

    dc = dc_repaired(&config); /* no data at all: begun by what the source tells, and waited for all the same */
    um_dc_on_tsni(dc, 0, 9);
    um_dc_on_tsni(dc, 1, 4000);
    CHECK(watched);
    put(dc, 1, 4000);
    for (uint32_t i = 10; i < 4000; i++) {
        put(dc, 2, i);
    }
    complete(dc, 3);
    CHECK_EQ(um_dc_stats(dc).delivered, 3991);
    CHECK_EQ(um_dc_stats(dc).lost, 0);
    um_dc_destroy(dc);

    dc = dc_repaired(&config); /* and nothing of it comes */
    um_dc_on_tsni(dc, 0, 9);
    um_dc_on_tsni(dc, 1, 11);
    complete(dc, 2);
    um_dc_end(dc, 2);
    CHECK_STR(out, "L10 L11 ");
    um_dc_destroy(dc);
}

TEST(a_beginning_in_the_middle_of_a_message_waits_for_its_first_fragment)
{
    struct um_dc_config config = config_default(1);
    struct um_dc *dc = dc_repaired(&config);
    put_frag(dc, 0, 50, 2, 30);
    put_frag(dc, 0, 50, 1, 30);
    put_frag(dc, 0, 50, 0, 30);
    complete(dc, 1);
    CHECK_STR(out, "d52 ");
    CHECK(payload_intact(30));
    um_dc_destroy(dc);

    dc = dc_repaired(&config); /* which never comes */
    put_frag(dc, 0, 50, 2, 30);
    complete(dc, 1);
    put(dc, 2, 53);
    CHECK_STR(out, "d53 ");
    CHECK_EQ(um_dc_stats(dc).discards[UM_DC_HEADLESS], 1);
    um_dc_destroy(dc);
}

TEST(a_beginning_is_held_up_to_a_size_and_then_handed_on)
{
    struct um_dc_config config = config_default(1);
    config.map_entries_max = 5;
    struct um_dc *dc = dc_repaired(&config);
    put(dc, 0, 12);
    put(dc, 0, 10);
    put(dc, 0, 13);
    put(dc, 0, 14);
    CHECK_STR(out, "");
    put(dc, 0, 15);
    CHECK_STR(out, "d10 ");
    CHECK_EQ(cut_messages, 5);
    CHECK_EQ(um_dc_stats(dc).openings_cut, 1);
    put(dc, 0, 11);
    CHECK_STR(out, "d10 d11 d12 d13 d14 d15 ");
    um_dc_destroy(dc);

    config.map_entries_max = 0; /* by the buffers that are kept */
    dc = dc_repaired(&config);
    uint32_t sqn = 0;
    for (; um_dc_stats(dc).openings_cut == 0 && sqn < 1000; sqn++) {
        struct um_buf *mine = um_buf_alloc(1 << 20);
        struct um_lbmc_msg msg = {.sqn = sqn, .payload = {mine->data, 4}};
        memset(mine->data, 0, 4);
        um_dc_on_data(dc, 0, &msg, mine);
        um_buf_unref(mine);
    }
    CHECK_EQ(sqn, 64);
    CHECK_EQ(um_dc_stats(dc).delivered, 64);
    um_dc_destroy(dc);
}

TEST(what_is_held_of_a_beginning_is_delivered_at_the_end_and_counted_with_the_receiver)
{
    struct um_dc_config config = config_default(1);
    struct um_dc *dc = dc_repaired(&config);
    put(dc, 0, 5);
    put(dc, 0, 7);
    um_dc_end(dc, 1);
    CHECK_STR(out, "d5 L6 d7 ");
    CHECK(!watched);
    um_dc_destroy(dc);

    dc = dc_repaired(&config);
    put(dc, 0, 5);
    put(dc, 0, 7);
    um_dc_finish(dc, 1);
    CHECK_STR(out, "");
    CHECK_EQ(um_dc_stats(dc).discards[UM_DC_UNFINISHED], 2);
    CHECK_EQ(um_dc_held(dc), 0);
    CHECK(!watched);
    um_dc_destroy(dc);
}

/* ---- recovery ---- */

static void put_recovered(struct um_dc *dc, uint64_t now, uint32_t sqn)
{
    struct um_buf *buf = um_buf_alloc(8);
    memcpy(buf->data, &sqn, 4);
    struct um_lbmc_msg msg = {.sqn = sqn, .present = UM_LBMC_LATE_JOINED, .payload = {buf->data, 4}};
    um_dc_on_data(dc, now, &msg, buf);
    um_buf_unref(buf);
}

static struct um_dc *dc_recovering(const struct um_dc_config *config)
{
    struct um_dc *dc = dc_repaired(config);
    repairing = false;
    wants = true;
    return dc;
}

TEST(a_late_joiner_gets_what_is_older_than_its_first_message_first)
{
    struct um_dc_range range;
    uint32_t next;
    for (uint32_t base = 0; base != 0xFFFFFFFCu * 2; base += 0xFFFFFFFCu) { /* over the wrap, too */
        struct um_dc_config config = config_default(1);
        struct um_dc *dc = dc_recovering(&config);
        um_dc_await_recovery(dc);
        put(dc, 0, base + 5);
        put(dc, 1, base + 6);
        CHECK_STR(out, "");
        put_recovered(dc, 2, base + 1); /* not asked for yet */
        CHECK_EQ(um_dc_stats(dc).discards[UM_DC_UNASKED], 1);
        CHECK(um_dc_expect(dc, 3, base + 1, 3)); /* 4 was sent in between: offered */
        CHECK_EQ(wanted_first, base + 4);
        CHECK_EQ(wanted_count, 1);
        CHECK(um_dc_next_missing(dc, base, &range));
        CHECK_EQ(range.first, base + 1);
        CHECK_EQ(range.count, 4);
        CHECK_EQ(um_dc_due(dc), base + 1);
        put_recovered(dc, 4, base + 2);
        put_recovered(dc, 5, base + 2); /* answers twice */
        CHECK(!um_dc_in_order(dc, &next));
        CHECK(um_dc_next_missing(dc, base + 2, &range));
        CHECK_EQ(range.first, base + 3);
        put_recovered(dc, 6, base + 1);
        CHECK_EQ(seen_msg.present, UM_LBMC_LATE_JOINED);
        put_recovered(dc, 20000 * MS, base + 4);
        put_recovered(dc, 20000 * MS, base + 3);
        char expected[200] = "";
        for (uint32_t i = 1; i <= 6; i++) {
            snprintf(expected + strlen(expected), 20, "d%u ", base + i);
        }
        CHECK_STR(out, expected);
        CHECK_EQ(um_dc_stats(dc).discards[UM_DC_DUPLICATE], 1);
        CHECK_EQ(um_dc_stats(dc).expected, 3);
        CHECK(!um_dc_next_missing(dc, base, &range));
        CHECK(um_dc_in_order(dc, &next));
        um_dc_destroy(dc);
    }
}

TEST(what_is_expected_before_anything_live_is_no_burst_and_neither_is_what_lies_between)
{
    struct um_dc_config config = config_default(1);
    struct um_dc *dc = dc_recovering(&config);
    uint32_t next;
    CHECK(um_dc_expect(dc, 0, 0, 5000));
    for (uint32_t i = 0; i < 5000; i++) {
        put_recovered(dc, 0, i);
    }
    CHECK_EQ(um_dc_stats(dc).delivered, 5000);
    CHECK(!um_dc_in_order(dc, &next));
    put(dc, 1, 8000); /* sent while it was recovered */
    CHECK_EQ(wanted_count, 3000);
    CHECK_EQ(um_dc_stats(dc).bursts, 0);
    put(dc, 2, 8001);
    out[0] = '\0';
    put(dc, 2, 8001 + 1025); /* but this is one, and recovery ends with it */
    CHECK_STR(out, "B5000+4026 d9026 ");
    struct um_dc_range range;
    CHECK(!um_dc_next_missing(dc, 0, &range));
    um_dc_destroy(dc);
}

TEST(what_recovery_owns_is_not_given_up_by_the_timer_of_the_transport)
{
    struct um_dc_config config = config_default(1);
    struct um_dc *dc = dc_recovering(&config);
    put(dc, 0, 0);
    put(dc, 0, 2); /* recovery wants 1 */
    wants = false;
    put(dc, 0, 4); /* 3 is the transport's */
    put(dc, 11000 * MS, 5);
    CHECK_STR(out, "d0 ");
    put_recovered(dc, 11000 * MS, 1); /* now it is the turn of 3, and its time is over */
    CHECK_STR(out, "d0 d1 d2 L3 d4 d5 ");
    um_dc_destroy(dc);

    config.ordered_delivery = -1; /* here they do not wait for each other */
    dc = dc_recovering(&config);
    put(dc, 0, 0);
    put(dc, 0, 2);
    wants = false;
    put(dc, 0, 4);
    put(dc, 11000 * MS, 5);
    CHECK_STR(out, "d0 d2 d4 d5 L3 ");
    put_recovered(dc, 11000 * MS, 1);
    CHECK_STR(out, "d0 d2 d4 d5 L3 d1 ");
    um_dc_destroy(dc);
}

TEST(over_an_ordered_transport_recovery_has_its_time_all_the_same)
{
    struct um_dc_config config = config_default(1);
    config.gap_timeout_ns = 0;
    struct um_dc *dc = dc_recovering(&config);
    put(dc, 0, 0);
    put(dc, 0, 2);
    put(dc, 0, 3);
    CHECK_STR(out, "d0 ");
    put_recovered(dc, 5, 1);
    CHECK_STR(out, "d0 d1 d2 d3 ");
    um_dc_destroy(dc);
}

TEST(abandoned_numbers_are_lost_or_skipped_when_it_is_their_turn)
{
    struct um_dc_config config = config_default(1);
    struct um_dc *dc = dc_recovering(&config);
    CHECK(um_dc_expect(dc, 0, 0, 10));
    put(dc, 0, 10);
    CHECK(um_dc_abandon(dc, 1, 2, 2, UM_DC_LOST));
    CHECK(um_dc_abandon(dc, 1, 5, 3, UM_DC_SKIPPED));
    CHECK_STR(out, "");
    put_recovered(dc, 2, 0);
    CHECK_STR(out, "d0 ");
    put_recovered(dc, 2, 1);
    CHECK_STR(out, "d0 d1 L2 L3 ");
    put_recovered(dc, 2, 6); /* after all, and before its turn */
    put_recovered(dc, 2, 4);
    CHECK_STR(out, "d0 d1 L2 L3 d4 d6 ");
    put_recovered(dc, 2, 3);
    CHECK_EQ(um_dc_stats(dc).discards[UM_DC_LATE], 1);
    CHECK(um_dc_abandon(dc, 3, 0, 100, UM_DC_LOST));
    CHECK_STR(out, "d0 d1 L2 L3 d4 d6 L8 L9 d10 ");
    CHECK_EQ(um_dc_stats(dc).skipped, 2);
    CHECK_EQ(um_dc_stats(dc).lost, 4);
    um_dc_destroy(dc);

    dc = dc_recovering(&config); /* many are one event */
    CHECK(um_dc_expect(dc, 0, 0xFFFF0000u, 100000));
    put(dc, 0, 34464);
    CHECK(um_dc_abandon(dc, 1, 0xFFFF0000u, 100000, UM_DC_LOST));
    CHECK_STR(out, "B4294901760+100000 d34464 ");
    um_dc_destroy(dc);
}

TEST(what_the_transport_owns_is_not_recoverys_to_abandon)
{
    struct um_dc_config config = config_default(1);
    struct um_dc *dc = dc_recovering(&config);
    put(dc, 0, 0);
    wants = false;
    put(dc, 0, 2);
    CHECK(um_dc_abandon(dc, 1, 0, 100, UM_DC_LOST));
    CHECK_STR(out, "d0 ");
    um_dc_destroy(dc);
}

TEST(a_recovery_that_never_answers_has_abandoned_everything_after_its_time)
{
    for (int mode = -1; mode <= 1; mode++) {
        struct um_dc_config config = config_default(mode);
        config.recovery_timeout_ns = 5000 * MS;
        struct um_dc *dc = dc_recovering(&config);
        CHECK(um_dc_expect(dc, 0, 0, 3));
        CHECK_EQ(timer_due, 5000 * MS);
        put_recovered(dc, 4000 * MS, 0); /* it is there */
        um_dc_on_timer(dc, 5000 * MS);
        CHECK_EQ(timer_due, 9000 * MS);
        CHECK(um_dc_waits(dc, 5000 * MS));
        timer_due = UM_NEVER;
        um_dc_on_timer(dc, 9000 * MS);
        CHECK_STR(out, "d0 L1 L2 ");
        CHECK_EQ(timer_due, UM_NEVER);
        um_dc_destroy(dc);
    }
}

TEST(a_recovery_that_gives_up_a_number_is_there)
{
    for (int mode = -1; mode <= 1; mode++) {
        struct um_dc_config config = config_default(mode);
        config.recovery_timeout_ns = 5000 * MS;
        struct um_dc *dc = dc_recovering(&config);
        CHECK(um_dc_expect(dc, 0, 0, 3));
        CHECK(um_dc_abandon(dc, 4000 * MS, 0, 1, UM_DC_LOST));
        um_dc_on_timer(dc, 5000 * MS);
        CHECK_STR(out, "L0 ");
        um_dc_on_timer(dc, 9000 * MS);
        CHECK_STR(out, "L0 L1 L2 ");
        um_dc_destroy(dc);
    }
}

TEST(in_arrival_mode_live_messages_do_not_wait_for_older_ones)
{
    struct um_dc_range range;
    for (int mode = -1; mode <= 0; mode++) {
        struct um_dc_config config = config_default(mode);
        struct um_dc *dc = dc_recovering(&config);
        um_dc_await_recovery(dc);
        put(dc, 0, 10);
        put(dc, 0, 11);
        CHECK_STR(out, "d10 d11 ");
        CHECK(!um_dc_expect(dc, 1, 3, 3)); /* 6 to 9 lie between: it does not end where the stream began */
        CHECK(!um_dc_next_missing(dc, 0, &range));
        CHECK(um_dc_expect(dc, 1, 7, 3));
        put_recovered(dc, 2, 8);
        put_recovered(dc, 2, 8);
        put_recovered(dc, 2, 10);
        put_recovered(dc, 2, 6); /* not asked for */
        CHECK_STR(out, "d10 d11 d8 ");
        CHECK(um_dc_abandon(dc, 3, 7, 1, UM_DC_LOST));
        put_recovered(dc, 4, 9);
        CHECK_STR(out, "d10 d11 d8 L7 d9 ");
        put(dc, 5, 12);
        CHECK(um_dc_expect(dc, 6, 8, 3)); /* all known */
        CHECK(!um_dc_next_missing(dc, 7, &range));
        um_dc_destroy(dc);
    }
}

TEST(in_order_it_is_too_late_to_expect_what_lies_before_a_delivery)
{
    struct um_dc_config config = config_default(1);
    struct um_dc *dc = dc_recovering(&config);
    put(dc, 0, 10);
    CHECK(!um_dc_expect(dc, 1, 0, 10));
    CHECK(um_dc_expect(dc, 1, 0, 0));
    CHECK(um_dc_expect(dc, 1, 10, 3)); /* of which 11 and 12 are still to come */
    put(dc, 2, 13);
    put_recovered(dc, 3, 11);
    put_recovered(dc, 3, 12);
    CHECK_STR(out, "d10 d11 d12 d13 ");
    CHECK(!um_dc_expect(dc, 1, 14, 0xFFFFFFF0u));
    um_dc_destroy(dc);
}

TEST(what_is_missing_before_the_first_message_is_asked_for_while_the_transport_repairs)
{
    struct um_dc_config config = config_default(1);
    struct um_dc_range range;
    for (int told = 0; told < 2; told++) { /* late join has brought a range, or nothing */
        struct um_dc *dc = dc_recovering(&config);
        repairing = true;
        if (told == 0) {
            um_dc_await_recovery(dc);
            put(dc, 1, 13);
            CHECK_STR(out, "");
            CHECK(um_dc_expect(dc, 1, 10, 2));
        } else {
            um_dc_await_recovery(dc);
            um_dc_expect_next(dc, 1, 10);
            put(dc, 2, 13);
        }
        CHECK(!um_dc_opens(dc));
        CHECK(um_dc_waits_for_recovery(dc, &range));
        CHECK_EQ(range.first, 10);
        CHECK_EQ(range.count, 3);
        put(dc, 3, 11); /* the transport brings it after all */
        put_recovered(dc, 4, 10);
        put_recovered(dc, 4, 12);
        CHECK_STR(out, "d10 d11 d12 d13 ");
        um_dc_destroy(dc);
    }
}

TEST(without_recovery_of_gaps_the_transport_is_waited_for)
{
    struct um_dc_config config = config_default(1);
    struct um_dc *dc = dc_recovering(&config);
    repairing = true;
    wants = false;
    um_dc_on_tsni(dc, 1, 9);
    put(dc, 2, 13);
    CHECK(um_dc_opens(dc));
    put(dc, 3, 10);
    put(dc, 3, 11);
    put(dc, 3, 12);
    complete(dc, 4);
    CHECK_STR(out, "d10 d11 d12 d13 ");
    um_dc_destroy(dc);
}

TEST(live_messages_too_far_beyond_are_left_to_recovery)
{
    struct um_dc_config config = config_default(1);
    config.caching_proximity = 10;
    struct um_dc_range range;
    struct um_dc *dc = dc_recovering(&config);
    CHECK(um_dc_expect(dc, 0, 0, 20));
    for (uint32_t i = 20; i < 30; i++) {
        put(dc, 1, i);
    }
    CHECK_EQ(um_dc_held(dc), 0);
    CHECK_EQ(um_dc_stats(dc).discards[UM_DC_DEFERRED], 10);
    CHECK(um_dc_next_missing(dc, 0, &range));
    CHECK_EQ(range.count, 30); /* one gap */
    for (uint32_t i = 0; i < 22; i++) {
        put_recovered(dc, 2, i);
    }
    put(dc, 3, 30);
    CHECK_EQ(um_dc_held(dc), 1); /* 9 beyond 21 */
    for (uint32_t i = 22; i < 30; i++) {
        put_recovered(dc, 2, i);
    }
    CHECK_EQ(um_dc_stats(dc).delivered, 31);
    CHECK_EQ(um_dc_stats(dc).lost, 0);
    um_dc_destroy(dc);

    config.caching_proximity = 0; /* by what is held */
    config.recovery_entries_max = 3;
    dc = dc_recovering(&config);
    put(dc, 0, 0);
    for (uint32_t i = 2; i < 10; i++) {
        put(dc, 0, i);
    }
    CHECK_EQ(um_dc_held(dc), 3);
    put_recovered(dc, 1, 1);
    CHECK_STR(out, "d0 d1 d2 d3 d4 ");
    CHECK(um_dc_next_missing(dc, 0, &range));
    CHECK_EQ(range.first, 5);
    CHECK_EQ(range.count, 5);
    um_dc_destroy(dc);
}

TEST(fragments_that_recovery_brings_become_whole_with_live_ones)
{
    struct um_dc_config config = config_default(1);
    struct um_dc *dc = dc_recovering(&config);
    um_dc_await_recovery(dc);
    put_frag(dc, 0, 50, 2, 30);
    CHECK(um_dc_expect(dc, 1, 50, 2));
    struct um_buf *buf = um_buf_alloc(20);
    for (uint32_t i = 0; i < 20; i++) {
        buf->data[i] = (uint8_t)(i * 7);
    }
    for (uint32_t k = 0; k < 2; k++) {
        struct um_lbmc_msg msg = {.sqn = 50 + k,
                                  .present = UM_LBMC_HAS_FRAG | UM_LBMC_RECOVERED,
                                  .payload = {buf->data + k * 10, 10},
                                  .frag = {.first_sqn = 50, .offset = k * 10, .len = 30}};
        um_dc_on_data(dc, 2, &msg, buf);
    }
    um_buf_unref(buf);
    CHECK_STR(out, "d52 ");
    CHECK(payload_intact(30));
    um_dc_destroy(dc);
}

/* ---- memory ---- */

TEST(a_held_message_keeps_the_headers_that_delivery_uses)
{
    struct um_dc_config config = config_default(1);
    struct um_dc *dc = dc_new(&config);
    struct um_buf *buf = um_buf_alloc(100);
    memset(buf->data, 9, 100);
    buf->data[1] = 3 + 20; /* length of the header with the chain */
    struct um_lbmc_msg msg = {.sqn = 2,
                              .present = UM_LBMC_HAS_REQUEST | UM_LBMC_HAS_CTXINSTR | UM_LBMC_HAS_BATCH |
                                         UM_LBMC_HAS_STAMP | UM_LBMC_HAS_APPHDR_CHAIN | UM_LBMC_HAS_STREAM,
                              .stamp_ns = 123456789012345,
                              .batch_flags = UM_LBMC_BATCH_END,
                              .request = {.qidx = 5, .port = 6, .ip = 7},
                              .apphdr_chain = {buf->data + 3, 20},
                              .ctxinstr = buf->data + 7,
                              .payload = {buf->data + 30, 70}};
    put(dc, 0, 0);
    um_dc_on_data(dc, 0, &msg, buf);
    memset(&msg, 0, sizeof msg);
    struct um_lbmc_msg filler = {.sqn = 1, .payload = {buf->data, 1}};
    um_dc_on_data(dc, 0, &filler, buf);
    CHECK_EQ(last.sqn, 2);
    CHECK_EQ(last.batch_flags, UM_LBMC_BATCH_END);
    CHECK(last_len == 70 && last_payload[0] == 9);
    CHECK_EQ(seen_msg.present, UM_LBMC_HAS_REQUEST | UM_LBMC_HAS_CTXINSTR | UM_LBMC_HAS_BATCH | UM_LBMC_HAS_STAMP |
                                   UM_LBMC_HAS_APPHDR_CHAIN);
    CHECK(seen_msg.ctxinstr == buf->data + 7);
    CHECK_EQ(seen_msg.stamp_ns, 123456789012345);
    CHECK(seen_msg.request.qidx == 5 && seen_msg.request.port == 6 && seen_msg.request.ip == 7);
    CHECK(seen_msg.apphdr_chain.ptr == buf->data + 3 && seen_msg.apphdr_chain.len == 20);
    um_buf_unref(buf);
    um_dc_destroy(dc);
}

static uint8_t part_seen[32]; /* chain or old header of the last delivery */
static size_t part_len;

static void keep_part(void *user, const struct um_dc_delivery *d, uint64_t now_ns)
{
    bool chain = (d->msg->present & UM_LBMC_HAS_APPHDR_CHAIN) != 0;
    const struct um_slice *part = chain ? &d->msg->apphdr_chain : &d->msg->apphdr;
    on_deliver(user, d, now_ns);
    part_len = chain || (d->msg->present & UM_LBMC_HAS_APPHDR) != 0 ? part->len : 0;
    if (part_len > 0 && part_len <= sizeof part_seen) {
        memcpy(part_seen, part->ptr, part_len);
    }
}

static const struct um_dc_ops PART_OPS = {
    .deliver = keep_part, .loss = on_loss, .burst_loss = on_burst, .set_timer = on_set_timer};

static struct um_dc *dc_of_parts(void)
{
    struct um_dc_config config = config_default(1);
    um_dc_destroy(dc_new(&config)); /* nothing seen yet */
    part_len = 0;
    return um_dc_create(&config, &PART_OPS, NULL);
}

/* Out of shared memory a copy is held: of the application headers, too. */
TEST(a_held_copy_keeps_chains_and_headers_of_old)
{
    for (int old = 0; old < 2; old++) {
        struct um_dc *dc = dc_of_parts();
        uint8_t bytes[64];
        for (size_t i = 0; i < sizeof bytes; i++) {
            bytes[i] = (uint8_t)(i + 100);
        }
        bytes[1] = 3 + 20; /* length of the header */
        uint32_t part = old ? UM_LBMC_HAS_APPHDR : UM_LBMC_HAS_APPHDR_CHAIN;
        struct um_lbmc_msg msg = {.sqn = 1,
                                  .present = part | UM_LBMC_HAS_REQUEST | UM_LBMC_HAS_CTXINSTR,
                                  .apphdr_chain = {bytes + 3, 20},
                                  .apphdr = {bytes + 2, 21},
                                  .ctxinstr = bytes + 7,
                                  .payload = {bytes + 30, 30}};
        put(dc, 0, 0);
        msg.sqn = 2;
        um_dc_on_data(dc, 0, &msg, NULL);
        memset(bytes, 0, sizeof bytes);
        struct um_lbmc_msg filler = {.sqn = 1, .payload = {bytes, 1}};
        um_dc_on_data(dc, 0, &filler, NULL);
        CHECK_STR(out, "d0 d1 d2 ");
        CHECK_EQ(part_len, old ? 21 : 20);
        CHECK(part_seen[5] == (old ? 107 : 108) && part_seen[part_len - 1] == 122);
        CHECK(last_len == 30 && last_payload[0] == 130 && last_payload[29] == 159);
        um_dc_destroy(dc);
    }
}

/* Senders put the chain on every fragment; who does so on one only is understood as well. */
TEST(the_chain_of_a_fragmented_message_may_be_on_any_fragment)
{
    for (uint32_t with = 0; with < 3; with++) {
        struct um_dc *dc = dc_of_parts();
        for (uint32_t k = 0; k < 3; k++) {
            struct um_buf *buf = um_buf_alloc(32);
            memset(buf->data, 5, 32);
            struct um_lbmc_msg msg = {.sqn = k,
                                      .present = UM_LBMC_HAS_FRAG | (k == with ? UM_LBMC_HAS_APPHDR_CHAIN : 0),
                                      .apphdr_chain = {buf->data, 5},
                                      .payload = {buf->data + 8, 10},
                                      .frag = {.first_sqn = 0, .offset = k * 10, .len = 30}};
            um_dc_on_data(dc, 0, &msg, buf);
            memset(buf->data, 6, 32);
            um_buf_unref(buf);
        }
        um_dc_destroy(dc);
        CHECK_STR(out, "d2 ");
        CHECK_EQ(part_len, 5);
        CHECK(part_seen[0] == 5 && part_seen[4] == 5);
    }
}

TEST(a_stream_in_order_is_small_and_becomes_small_again)
{
    struct um_dc_config config = config_default(1);
    struct um_dc *dc = dc_new(&config);
    put(dc, 0, 0);
    size_t plain = um_dc_bytes(dc);
    CHECK(plain <= 192);
    put(dc, 0, 5);
    CHECK(um_dc_bytes(dc) > plain);
    for (uint32_t i = 1; i < 5; i++) {
        put(dc, 0, i);
    }
    CHECK(um_dc_bytes(dc) <= plain + 300); /* what there is to tell of it */
    um_dc_destroy(dc);
}

TEST(one_message_is_taken_in_its_turn_and_not_beside_a_gap)
{
    for (int mode = -1; mode <= 1; mode++) {
        struct um_dc_config config = config_default(mode);
        struct um_dc *dc = dc_new(&config);
        CHECK(!um_dc_take(dc, 5)); /* the stream begins with what the controller is given */
        put(dc, 0, 5);
        CHECK(!um_dc_take(dc, 5));
        CHECK(!um_dc_take(dc, 7));
        CHECK(um_dc_take(dc, 6));
        CHECK_EQ(um_dc_stats(dc).delivered, 2);
        put(dc, 0, 8);
        CHECK(!um_dc_take(dc, 9));
        put(dc, 0, 7);
        CHECK(um_dc_take(dc, 9));
        CHECK_EQ(um_dc_stats(dc).delivered, 5);
        um_dc_destroy(dc);
    }
}
