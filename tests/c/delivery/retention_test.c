/* Retention: which messages stay, by size, age and limit; whole messages; the wrap of the numbers; memory. */
#include "base/um_mem.h"
#include "base/um_timer.h"
#include "delivery/um_retention.h"
#include "um_test.h"
#include "wire/um_lbmc.h"

#define PAYLOAD 36u
#define LEN (UM_LBMC_DATA_HDR_LEN + PAYLOAD)
#define COUNTED (LEN + UM_RETENTION_OVERHEAD)

static uint64_t now_ns = UM_NS_PER_SEC;

static bool keep(struct um_retention *retention, uint32_t sqn)
{
    uint8_t message[LEN];
    um_lbmc_put_data_hdr(message, UM_LBMC_HDR_DATA, LEN, 1, sqn);
    memset(message + UM_LBMC_DATA_HDR_LEN, (int)(sqn & 0xff), PAYLOAD);
    return um_retention_keep(retention, now_ns, sqn, message, LEN);
}

static bool keep_fragment(struct um_retention *retention, uint32_t first, uint32_t number, uint32_t count)
{
    uint8_t message[LEN + UM_LBMC_FRAG_HDR_LEN];
    um_lbmc_put_data_hdr(message, UM_LBMC_HDR_FRAG, sizeof message, 1, first + number);
    um_lbmc_put_frag(message + UM_LBMC_DATA_HDR_LEN, UM_LBMC_HDR_DATA, first, number * PAYLOAD, count * PAYLOAD);
    memset(message + UM_LBMC_DATA_HDR_LEN + UM_LBMC_FRAG_HDR_LEN, 1, PAYLOAD);
    return um_retention_keep(retention, now_ns, first + number, message, sizeof message);
}

static struct um_retention *with(size_t threshold, size_t limit, uint64_t age_ns)
{
    const struct um_retention_config config = {.size_threshold = threshold, .size_limit = limit, .age_ns = age_ns};
    return um_retention_create(&config);
}

static bool keeps(const struct um_retention *retention, uint32_t low, uint32_t high)
{
    uint32_t has_low, has_high;
    if (!um_retention_range(retention, &has_low, &has_high) || has_low != low || has_high != high) {
        return false;
    }
    for (uint32_t sqn = low; sqn != high + 1; sqn++) {
        const struct um_retained *record = um_retention_find(retention, sqn);
        if (record == NULL || record->sqn != sqn || um_get32(record->message + 8) != sqn) {
            return false;
        }
    }
    return um_retention_find(retention, low - 1) == NULL && um_retention_find(retention, high + 1) == NULL;
}

TEST(nothing_is_kept_before_something_was_sent)
{
    struct um_retention *retention = with(0, 0, 0);
    uint32_t low, high;
    CHECK(!um_retention_range(retention, &low, &high));
    CHECK(um_retention_find(retention, 0) == NULL);
    CHECK(um_retention_memory(retention) < 512);
    um_retention_destroy(retention);
}

TEST(without_thresholds_the_newest_message_alone_is_kept)
{
    struct um_retention *retention = with(0, 1u << 20, 0);
    for (uint32_t sqn = 0; sqn < 1000; sqn++) {
        CHECK(keep(retention, sqn));
        CHECK(keeps(retention, sqn, sqn));
    }
    CHECK(um_retention_memory(retention) < 10000);
    um_retention_destroy(retention);
}

TEST(messages_go_when_more_than_the_size_threshold_is_kept)
{
    struct um_retention *retention = with(10 * COUNTED, 0, 0);
    for (uint32_t sqn = 0; sqn < 100; sqn++) {
        CHECK(keep(retention, sqn));
        CHECK(um_retention_size(retention) <= 10 * COUNTED);
    }
    CHECK(keeps(retention, 90, 99));
    um_retention_destroy(retention);
}

TEST(messages_younger_than_the_age_threshold_stay)
{
    struct um_retention *retention = with(0, 0, 5 * UM_NS_PER_SEC);
    for (uint32_t sqn = 0; sqn < 100; sqn++, now_ns += UM_NS_PER_SEC) {
        CHECK(keep(retention, sqn));
    }
    CHECK(keeps(retention, 94, 99));
    um_retention_expire(retention, now_ns + UM_NS_PER_SEC);
    CHECK(keeps(retention, 96, 99));
    um_retention_expire(retention, now_ns + 3600 * UM_NS_PER_SEC);
    CHECK(keeps(retention, 99, 99)); /* the newest one stays */
    um_retention_destroy(retention);
}

TEST(with_both_thresholds_a_message_goes_when_it_is_past_both)
{
    struct um_retention *retention = with(10 * COUNTED, 0, 5 * UM_NS_PER_SEC);
    for (uint32_t sqn = 0; sqn < 100; sqn++) {
        CHECK(keep(retention, sqn));
    }
    CHECK(keeps(retention, 0, 99)); /* too young */
    um_retention_expire(retention, now_ns + 6 * UM_NS_PER_SEC);
    CHECK(keeps(retention, 90, 99)); /* few enough */
    um_retention_destroy(retention);
}

static struct um_retention *with_messages(size_t messages, size_t limit, uint64_t age_ns)
{
    const struct um_retention_config config = {.message_threshold = messages, .size_limit = limit, .age_ns = age_ns};
    return um_retention_create(&config);
}

TEST(messages_go_when_there_are_more_than_the_message_threshold)
{
    struct um_retention *retention = with_messages(10, 0, 0);
    for (uint32_t sqn = 0; sqn < 100; sqn++) {
        CHECK(keep(retention, sqn));
    }
    CHECK(keeps(retention, 90, 99));
    for (uint32_t i = 0; i < 9; i++) { /* fragments of one message */
        CHECK(keep_fragment(retention, 100, i, 9));
    }
    CHECK(keeps(retention, 91, 108));
    um_retention_destroy(retention);
    retention = with_messages(10, 5 * COUNTED, 0);
    for (uint32_t sqn = 0; sqn < 100; sqn++) {
        CHECK(keep(retention, sqn));
    }
    CHECK(keeps(retention, 95, 99)); /* the limit holds */
    um_retention_destroy(retention);
    retention = with_messages(10, 0, 5 * UM_NS_PER_SEC);
    for (uint32_t sqn = 0; sqn < 100; sqn++) {
        CHECK(keep(retention, sqn));
    }
    CHECK(keeps(retention, 0, 99)); /* too young */
    um_retention_expire(retention, now_ns + 6 * UM_NS_PER_SEC);
    CHECK(keeps(retention, 90, 99));
    um_retention_destroy(retention);
}

TEST(the_size_limit_holds_whatever_the_age)
{
    struct um_retention *retention = with(0, 20 * COUNTED, 3600 * UM_NS_PER_SEC);
    for (uint32_t sqn = 0; sqn < 1000; sqn++) {
        CHECK(keep(retention, sqn));
        CHECK(um_retention_size(retention) <= 20 * COUNTED);
    }
    CHECK(keeps(retention, 980, 999));
    um_retention_destroy(retention);
}

TEST(fragments_of_a_message_go_together_and_the_newest_message_stays_whole)
{
    struct um_retention *retention = with(0, 0, 0);
    for (uint32_t i = 0; i < 5; i++) {
        CHECK(keep_fragment(retention, 0, i, 5));
        CHECK(keeps(retention, 0, i));
    }
    CHECK(keep_fragment(retention, 5, 0, 3)); /* the next one begins */
    CHECK(keeps(retention, 5, 5));
    CHECK(keep_fragment(retention, 5, 1, 3));
    CHECK(keep_fragment(retention, 5, 2, 3));
    CHECK(keeps(retention, 5, 7));
    CHECK(keep(retention, 8));
    CHECK(keeps(retention, 8, 8));
    um_retention_destroy(retention);
}

TEST(numbers_wrap)
{
    struct um_retention *retention = with(10 * COUNTED, 0, 0);
    for (uint32_t sqn = UINT32_MAX - 50; sqn != 50; sqn++) {
        CHECK(keep(retention, sqn));
    }
    CHECK(keeps(retention, 40, 49));
    um_retention_destroy(retention);
    retention = with(100 * COUNTED, 0, 0);
    for (uint32_t sqn = UINT32_MAX - 50; sqn != 30; sqn++) {
        CHECK(keep(retention, sqn));
    }
    CHECK(keeps(retention, UINT32_MAX - 50, 29));
    um_retention_destroy(retention);
}

TEST(numbers_that_were_left_out_are_not_found_and_the_others_are)
{
    struct um_retention *retention = with(100000 * COUNTED, 0, 0);
    uint32_t sqn = UINT32_MAX - 3000;
    for (uint32_t i = 0; i < 2000; i++, sqn += 1 + i % 7) {
        CHECK(keep(retention, sqn));
    }
    uint32_t next = UINT32_MAX - 3000, i = 0;
    for (uint32_t seek = next; seek != sqn; seek++) {
        const struct um_retained *record = um_retention_find(retention, seek);
        CHECK_EQ(record != NULL, seek == next);
        next += record != NULL ? 1 + ++i % 7 : 0;
    }
    um_retention_destroy(retention);
}

TEST(a_range_too_wide_to_be_told_loses_its_oldest)
{
    struct um_retention *retention = with(100000 * COUNTED, 0, 0);
    uint32_t low, high;
    for (uint32_t i = 0; i < 2000; i++) {
        CHECK(keep(retention, i << 20));
        CHECK(um_retention_range(retention, &low, &high));
        CHECK(high - low < UM_RETENTION_SPAN_MAX);
    }
    um_retention_destroy(retention);
}

TEST(memory_follows_what_is_counted)
{
    struct um_retention *retention = with(1u << 20, 0, 0);
    uint32_t sqn = 0;
    for (; sqn < 200000; sqn++) {
        CHECK(keep(retention, sqn));
        CHECK(um_retention_memory(retention) < um_retention_size(retention) * 3 / 2 + (2u << 18) + 8192);
    }
    size_t before = um_retention_memory(retention);
    for (; sqn < 400000; sqn++) {
        CHECK(keep(retention, sqn));
    }
    CHECK(um_retention_memory(retention) <= before + (1u << 18));
    um_retention_destroy(retention);
}

TEST(a_run_is_read_while_what_it_holds_goes)
{
    enum { KEPT = 4000 };
    struct um_retention *retention = with(KEPT * COUNTED, 0, 0);
    struct um_retention_run run = {0};
    uint32_t sqn = 0;
    CHECK(um_retention_run_next(&run, 0) == NULL);
    for (; sqn < KEPT; sqn++) {
        CHECK(keep(retention, sqn));
    }
    CHECK(um_retention_open_run(retention, KEPT, &run) == NULL);
    CHECK(um_retention_run_next(&run, KEPT) == NULL);
    const struct um_retained *record = um_retention_open_run(retention, 0, &run);
    CHECK(record != NULL && record->sqn == 0);
    CHECK(um_retention_run_next(&run, 2) == NULL);
    CHECK(um_retention_run_next(&run, 1) != NULL);
    for (; sqn < 4 * KEPT; sqn++) { /* all that was there goes, and its memory is used again */
        CHECK(keep(retention, sqn));
    }
    CHECK(um_retention_find(retention, 2) == NULL);
    size_t memory = um_retention_memory(retention);
    uint32_t next = 2;
    while ((record = um_retention_run_next(&run, next)) != NULL) {
        CHECK(record->sqn == next && um_get32(record->message + 8) == next);
        CHECK(record->message[UM_LBMC_DATA_HDR_LEN] == (next & 0xff));
        next++;
    }
    CHECK(next > 10 && next <= KEPT);
    um_retention_close_run(retention, &run);
    CHECK(um_retention_memory(retention) <= memory);
    CHECK(um_retention_run_next(&run, next) == NULL);
    um_retention_destroy(retention);
}

TEST(a_run_ends_with_what_was_there_when_it_was_opened)
{
    struct um_retention *retention = with(0, 1u << 20, 0);
    struct um_retention_run run = {0};
    for (uint32_t sqn = 0; sqn < 1000; sqn++) { /* one is kept, of a chunk that is read from time to time */
        CHECK(keep(retention, sqn));
        CHECK(um_retention_open_run(retention, sqn, &run) != NULL);
        CHECK(keep(retention, sqn + 1));
        CHECK(um_retention_run_next(&run, sqn + 1) == NULL);
        CHECK(keeps(retention, sqn + 1, sqn + 1));
        sqn++;
    }
    CHECK(um_retention_memory(retention) < 15000);
    um_retention_destroy(retention); /* while the run is open */
}

static unsigned refuse_from, asked;
static bool count_only(size_t size)
{
    (void)size;
    asked++;
    return false;
}

TEST(a_source_that_has_its_size_allocates_nothing_any_more)
{
    struct um_retention *retention = with(1u << 20, 0, 0);
    uint32_t sqn = 0;
    for (; sqn < 50000; sqn++) {
        CHECK(keep(retention, sqn));
    }
    asked = 0;
    um_mem_set_fail_hook(count_only);
    for (; sqn < 150000; sqn++) {
        CHECK(keep(retention, sqn));
    }
    um_mem_set_fail_hook(NULL);
    CHECK_EQ(asked, 0);
    um_retention_destroy(retention);
}

static bool refuse(size_t size)
{
    (void)size;
    return asked++ >= refuse_from;
}

TEST(without_memory_a_message_is_not_kept_and_the_others_are)
{
    struct um_retention *retention = with(1u << 20, 0, 0);
    uint32_t sqn = 0;
    while (um_retention_missed(retention) == 0) {
        refuse_from = sqn < 20 ? 1000 : 0;
        asked = 0;
        um_mem_set_fail_hook(refuse);
        bool kept = keep(retention, sqn++);
        um_mem_set_fail_hook(NULL);
        CHECK_EQ(kept, um_retention_missed(retention) == 0);
    }
    CHECK(keep(retention, sqn));
    CHECK(um_retention_find(retention, sqn) != NULL);
    CHECK(um_retention_find(retention, sqn - 1) == NULL);
    CHECK(um_retention_find(retention, sqn - 2) != NULL);
    um_retention_destroy(retention);
}
