/* Open requests and unfinished responses: what is taken, what strangers can do. */
#include "delivery/um_request_table.h"

#include "base/um_mem.h"
#include "um_test.h"

#define SECOND 1000000000ull

static atomic_uint next_index;

static void start(struct um_request_table *table)
{
    atomic_store(&next_index, 1);
    um_request_table_init(table, &next_index);
}

static struct um_response_sender sender(uint64_t id)
{
    struct um_response_sender from;
    memcpy(from.id, &id, sizeof from.id);
    return from;
}

/* One response, or with total > len a fragment of one. */
static enum um_response_rc feed(struct um_request_table *table, uint64_t now_ns, uint32_t index, uint64_t from,
                                uint32_t sqn, uint32_t first_sqn, uint32_t offset, uint32_t len, uint32_t total,
                                struct um_response *out)
{
    static const uint8_t bytes[4096] = {1, 2, 3};
    const struct um_response_sender who = sender(from);
    struct um_lbmc_msg msg = {.tidx = index, .sqn = sqn, .payload = {bytes, len}};
    if (total > len) {
        msg.present = UM_LBMC_HAS_FRAG;
        msg.frag.first_sqn = first_sqn;
        msg.frag.offset = offset;
        msg.frag.len = total;
    }
    return um_request_table_on_response(table, now_ns, &msg, NULL, &who, out);
}

TEST(indexes_count_from_one_and_skip_zero_and_those_that_are_open)
{
    struct um_request_table table;
    struct um_request_entry a, b, c;
    start(&table);
    CHECK_EQ(um_request_table_open(&table, &a), 0);
    CHECK_EQ(a.index, 1);
    atomic_store(&next_index, UINT32_MAX);
    CHECK_EQ(um_request_table_open(&table, &b), 0);
    CHECK_EQ(b.index, UINT32_MAX);
    CHECK_EQ(um_request_table_open(&table, &c), 0);
    CHECK_EQ(c.index, 2);
    um_request_table_close(&table, &b);
    CHECK_EQ(b.index, 0);
    um_request_table_close(&table, &b); /* no matter */
    um_request_table_fini(&table);
    CHECK(a.index == 0 && c.index == 0);
}

TEST(a_response_is_taken_while_its_request_is_open_only)
{
    struct um_request_table table;
    struct um_request_entry entry;
    struct um_response out;
    start(&table);
    CHECK_EQ(feed(&table, 0, 1, 7, 0, 0, 0, 10, 10, &out), UM_RESPONSE_UNKNOWN);
    CHECK_EQ(um_request_table_open(&table, &entry), 0);
    for (uint32_t i = 0; i < 3; i++) { /* as many as like to answer */
        CHECK_EQ(feed(&table, 0, 1, 7 + i, 0, 0, 0, 10, 10, &out), UM_RESPONSE_COMPLETE);
        CHECK(out.entry == &entry && out.len == 10 && !out.owned);
    }
    um_request_table_close(&table, &entry);
    CHECK_EQ(feed(&table, 0, 1, 7, 1, 0, 0, 10, 10, &out), UM_RESPONSE_UNKNOWN);
    CHECK(table.counts.delivered == 3 && table.counts.unknown == 2);
    um_request_table_fini(&table);
}

TEST(fragments_of_several_responders_to_one_request_do_not_mix)
{
    struct um_request_table table;
    struct um_request_entry entry;
    struct um_response out;
    start(&table);
    CHECK_EQ(um_request_table_open(&table, &entry), 0);
    CHECK_EQ(feed(&table, 0, 1, 7, 0, 0, 0, 100, 200, &out), UM_RESPONSE_PENDING);
    CHECK_EQ(feed(&table, 0, 1, 8, 0, 0, 0, 150, 300, &out), UM_RESPONSE_PENDING);
    CHECK_EQ(table.partial_count, 2);
    CHECK_EQ(feed(&table, 0, 1, 8, 1, 0, 150, 150, 300, &out), UM_RESPONSE_COMPLETE);
    CHECK(out.len == 300 && out.sqn == 0 && out.owned);
    um_buf_unref(out.buf);
    CHECK_EQ(feed(&table, 0, 1, 7, 1, 0, 100, 100, 200, &out), UM_RESPONSE_COMPLETE);
    CHECK_EQ(out.len, 200);
    um_buf_unref(out.buf);
    CHECK(table.partial_count == 0 && table.partial_bytes == 0);
    um_request_table_fini(&table);
}

TEST(an_unfinished_response_is_given_up_in_time_and_its_memory_given_back)
{
    struct um_request_table table;
    struct um_request_entry entry;
    struct um_response out;
    start(&table);
    CHECK_EQ(um_request_table_next_ns(&table), UINT64_MAX);
    CHECK_EQ(um_request_table_open(&table, &entry), 0);
    CHECK_EQ(feed(&table, 5 * SECOND, 1, 7, 0, 0, 0, 100, 200, &out), UM_RESPONSE_PENDING);
    CHECK_EQ(um_request_table_next_ns(&table), 5 * SECOND + UM_RESPONSE_EXPIRY_NS);
    um_request_table_expire(&table, 5 * SECOND + UM_RESPONSE_EXPIRY_NS - 1);
    CHECK_EQ(table.partial_count, 1);
    um_request_table_expire(&table, 5 * SECOND + UM_RESPONSE_EXPIRY_NS);
    CHECK(table.partial_count == 0 && table.partial_bytes == 0 && table.counts.unfinished == 1);
    CHECK_EQ(um_request_table_next_ns(&table), UINT64_MAX);
    um_request_table_fini(&table);
}

TEST(what_is_unfinished_goes_with_its_request)
{
    struct um_request_table table;
    struct um_request_entry entry[2];
    struct um_response out;
    start(&table);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(um_request_table_open(&table, &entry[i]), 0);
        CHECK_EQ(feed(&table, 0, entry[i].index, 7, 0, 0, 0, 100, 200, &out), UM_RESPONSE_PENDING);
    }
    um_request_table_close(&table, &entry[0]);
    CHECK_EQ(table.partial_count, 1);
    um_request_table_fini(&table);
    CHECK(table.partial_count == 0 && table.partial_bytes == 0);
}

/* Every index and every sender, with one request open. */
TEST(a_hundred_thousand_forged_responses_deliver_for_open_indexes_only_and_keep_little)
{
    struct um_request_table table;
    struct um_request_entry entry;
    struct um_response out;
    start(&table);
    atomic_store(&next_index, 500);
    CHECK_EQ(um_request_table_open(&table, &entry), 0);
    for (uint32_t index = 1; index <= 1000; index++) {
        enum um_response_rc rc = feed(&table, 0, index, index, 0, 0, 0, 10, 10, &out);
        CHECK_EQ(rc, index == 500 ? UM_RESPONSE_COMPLETE : UM_RESPONSE_UNKNOWN);
    }
    CHECK_EQ(table.partial_count, 0);
    for (uint32_t i = 0; i < 100000; i++) { /* beginnings that nobody finishes, each of another responder */
        CHECK_EQ(feed(&table, i, 500, 1000 + i, 0, 0, 0, 1000, 1u << 28, &out), UM_RESPONSE_PENDING);
        CHECK(table.partial_count <= UM_RESPONSE_PARTIALS_MAX);
    }
    CHECK(table.partial_bytes <= (size_t)UM_RESPONSE_PARTIALS_MAX * 65536);
    CHECK_EQ(table.counts.unfinished, 100000 - UM_RESPONSE_PARTIALS_MAX);
    CHECK_EQ(feed(&table, 0, 500, 3, 0, 0, 0, 10, 10, &out), UM_RESPONSE_COMPLETE); /* the genuine one still comes */
    um_request_table_fini(&table);
    CHECK_EQ(table.partial_bytes, 0);
}

TEST(fragments_that_lie_about_themselves_are_dropped_and_counted)
{
    struct um_request_table table;
    struct um_request_entry entry;
    struct um_response out;
    start(&table);
    CHECK_EQ(um_request_table_open(&table, &entry), 0);
    CHECK_EQ(feed(&table, 0, 1, 7, 0, 0, 0, 100, UINT32_MAX, &out), UM_RESPONSE_DROPPED); /* larger than may be */
    CHECK_EQ(feed(&table, 0, 1, 7, 9, 0, 150, 100, 200, &out), UM_RESPONSE_DROPPED);      /* beyond its end */
    CHECK(table.partial_bytes <= 4096);
    CHECK(table.counts.delivered == 0 && table.counts.malformed + table.counts.unfinished >= 2);
    um_request_table_fini(&table);
}
