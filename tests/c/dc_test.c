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

static const struct um_dc_ops OPS = {on_deliver, on_loss, on_burst, on_set_timer, on_missing, NULL};

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
    CHECK_EQ(um_dc_stats(dc)->delivered, 5);
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
    CHECK_EQ(um_dc_stats(dc)->delivered, 100);
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
        CHECK_EQ(um_dc_stats(dc)->discards[UM_DC_DUPLICATE], 2);
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
    CHECK_EQ(um_dc_stats(dc)->lost, 2);
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
    CHECK_EQ(um_dc_stats(dc)->lost, 1023);
    CHECK_EQ(um_dc_stats(dc)->bursts, 0);
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

TEST(loss_before_the_first_delivery_is_silent)
{
    struct um_dc_config config = config_default(1);
    config.gap_timeout_ns = 0;
    struct um_dc *dc = dc_new(&config);
    put_frag(dc, 0, 10, 0, 30);
    put(dc, 0, 15);
    CHECK_STR(out, "d15 ");
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
        CHECK_EQ(um_dc_stats(dc)->lost, 0);
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
    CHECK_EQ(um_dc_stats(dc)->discards[UM_DC_MALFORMED], 7);
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
    CHECK_EQ(um_dc_stats(dc)->discards[UM_DC_REASSEMBLY], 1);
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
    CHECK_EQ(um_dc_stats(dc)->delivered, 65);
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
    CHECK_EQ(um_dc_stats(dc)->map_overflow, 1);
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
    CHECK_EQ(um_dc_stats(dc)->discards[UM_DC_MALFORMED], 1);
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
            CHECK(um_dc_stats(dc)->delivered + um_dc_stats(dc)->lost > 20);
            um_dc_destroy(dc);
        }
    }
}
