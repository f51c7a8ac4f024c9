/* The tails of records: way back, number of hot failover and properties behind the payload, through every way that a
 * record takes in a collector; and properties as bytes. */
#include <stdio.h>

#include "um_test_rcv.h"

#include "core/um_collector.h"
#include "core/um_message.h"
#include "core/um_properties.h"
#include "core/um_rcv_private.h"
#include "core/um_record_tail.h"

struct feeder {
    lbm_context_t *ctx;
    lbm_rcv_t *rcv;
    um_collector_t *collector;
    const lbm_msg_t *msg;
};

static int nothing(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    return 0;
}

static struct feeder feeder_new(size_t max_bytes, int on_full)
{
    struct feeder feeder = {.ctx = net_context()};
    feeder.rcv = net_receiver(feeder.ctx, "by hand", NULL, nothing, NULL, NULL);
    MUST(um_collector_create_ex(&feeder.collector, max_bytes, on_full));
    return feeder;
}

static void feeder_delete(struct feeder *feeder)
{
    MUST(um_collector_delete(feeder->collector));
    MUST(lbm_rcv_delete(feeder->rcv));
    MUST(lbm_context_delete(feeder->ctx));
}

static int feed_on_loop(void *arg)
{
    struct feeder *feeder = arg;
    um_collector_append(feeder->collector, feeder->rcv, feeder->msg);
    return 0;
}

/* A message whose payload is its number in text; `many` properties n0, n1, ... with the same number. */
static void feed(struct feeder *feeder, const char *topic, int type, int flags, uint64_t number, int many)
{
    struct um_msg *msg = um_msg_create("S", topic);
    struct lbm_msg_properties_t_stct of_message = {0};
    char text[32], name[16];
    lbm_msg_properties_t *p;
    const void *bytes;
    size_t len;
    MUST(lbm_msg_properties_create(&p));
    for (int i = 0; i < many; i++) {
        snprintf(name, sizeof name, "n%d", i);
        MUST(lbm_msg_properties_set(p, name, &number, LBM_MSG_PROPERTY_LONG, sizeof number));
    }
    MUST(um_msg_properties_bytes(p, &bytes, &len));
    um_properties_of_message(&of_message, (struct um_slice){bytes, len});
    msg->pub.properties = many > 0 ? &of_message : NULL;
    msg->pub.type = type;
    msg->pub.flags = flags;
    msg->pub.sequence_number = (lbm_uint_t)number;
    if (flags & LBM_MSG_FLAG_HF_64) {
        msg->pub.hf_sequence_number.u64 = number;
    } else {
        msg->pub.hf_sequence_number.u32 = (lbm_uint32_t)number;
    }
    msg->pub.data = text;
    msg->pub.len = (size_t)snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    feeder->msg = &msg->pub;
    MUST(um_loop_call(feeder->ctx->loop, feed_on_loop, feeder));
    msg->pub.properties = NULL;
    um_msg_release(msg);
    um_properties_empty(&of_message);
    MUST(lbm_msg_properties_delete(p));
}

static bool has_properties(const um_record_tail_t *tail, uint64_t number, int many)
{
    lbm_msg_properties_t *p;
    char name[16];
    uint64_t value = 0;
    bool right = true;
    if (many == 0 || tail->properties == NULL) {
        return many == 0 && tail->properties == NULL && tail->properties_len == 0;
    }
    MUST(um_msg_properties_read(&p, tail->properties, tail->properties_len));
    for (int i = 0; i < many; i++) {
        int type = LBM_MSG_PROPERTY_LONG;
        size_t size = sizeof value;
        snprintf(name, sizeof name, "n%d", i);
        right = right && lbm_msg_properties_get(p, name, &value, &type, &size) == 0 && value == number;
    }
    MUST(lbm_msg_properties_delete(p));
    return right;
}

/* The record is what feed() gave, its tail included. */
static bool is(const um_batch_t *batch, size_t at, int flags, uint64_t number, int many)
{
    const um_record_t *record = &batch->records[at];
    const unsigned char *payload = batch->data + record->offset;
    um_record_tail_t tail;
    char text[32];
    int len = snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    if (at >= batch->count || um_record_tail(record, payload, &tail) != 0 ||
        record->offset + record->length + tail.len > batch->data_len) {
        return false;
    }
    uint64_t told = (flags & UM_RECORD_HF) != 0 ? number : 0;
    return record->length == (uint32_t)len && memcmp(payload, text, (size_t)len) == 0 && tail.hf_number == told &&
           (record->flags & UM_RECORD_TAIL) == (flags | (many > 0 ? UM_MSG_FLAG_PROPERTIES : 0)) &&
           has_properties(&tail, number, many);
}

static um_batch_t *take(struct feeder *feeder, size_t most)
{
    um_batch_t *batch = NULL;
    MUST(um_collector_take(feeder->collector, most, 0, &batch) - 1);
    return batch;
}

TEST(what_is_behind_the_payloads_comes_with_them_however_batches_are_cut)
{
    TEST_NEEDS_NET();
    for (size_t most = 1; most <= 7; most++) {
        struct feeder feeder = feeder_new(0, UM_ON_FULL_PAUSE);
        uint64_t next = 0;
        feed(&feeder, "A", LBM_MSG_DATA, 0, 0, 0);
        feed(&feeder, "A", LBM_MSG_DATA, 0, 1, 3);
        feed(&feeder, "B", LBM_MSG_DATA, LBM_MSG_FLAG_HF_32, 2, 0);
        feed(&feeder, "A", LBM_MSG_DATA, LBM_MSG_FLAG_HF_64, 3, 40);
        feed(&feeder, "A", LBM_MSG_DATA, 0, 4, 0);
        while (next < 5) {
            static const int flags[] = {0, 0, LBM_MSG_FLAG_HF_32, LBM_MSG_FLAG_HF_64, 0};
            static const int many[] = {0, 3, 0, 40, 0};
            um_batch_t *batch = take(&feeder, most);
            for (size_t i = 0; i < batch->count; i++, next++) {
                CHECK(is(batch, i, flags[next], next, many[next]));
            }
            um_batch_release(batch);
        }
        feeder_delete(&feeder);
    }
}

TEST(numbers_of_64_bits_are_whole)
{
    TEST_NEEDS_NET();
    struct feeder feeder = feeder_new(0, UM_ON_FULL_PAUSE);
    feed(&feeder, "A", LBM_MSG_DATA, LBM_MSG_FLAG_HF_64, UINT64_MAX, 0);
    um_batch_t *batch = take(&feeder, 0);
    CHECK(is(batch, 0, LBM_MSG_FLAG_HF_64, UINT64_MAX, 0));
    um_batch_release(batch);
    feeder_delete(&feeder);
}

TEST(a_conflated_message_has_the_properties_of_the_newest)
{
    TEST_NEEDS_NET();
    struct feeder feeder = feeder_new(0, UM_ON_FULL_CONFLATE);
    feed(&feeder, "A", LBM_MSG_DATA, 0, 1, 50);
    feed(&feeder, "B", LBM_MSG_DATA, LBM_MSG_FLAG_HF_32, 2, 3);
    feed(&feeder, "A", LBM_MSG_DATA, 0, 3, 2);
    feed(&feeder, "B", LBM_MSG_DATA, 0, 4, 0);
    feed(&feeder, "C", LBM_MSG_DATA, 0, 5, 0);
    feed(&feeder, "C", LBM_MSG_DATA, LBM_MSG_FLAG_HF_64, 6, 60);
    um_batch_t *batch = take(&feeder, 0);
    CHECK_EQ(batch->count, 3);
    CHECK(is(batch, 0, 0, 3, 2));
    CHECK(is(batch, 1, 0, 4, 0));
    CHECK(is(batch, 2, LBM_MSG_FLAG_HF_64, 6, 60));
    um_batch_release(batch);
    um_collector_stats_t stats;
    MUST(um_collector_stats(feeder.collector, &stats));
    CHECK_EQ(stats.queued_bytes, 0);
    feeder_delete(&feeder);
}

/* Properties count towards the bound, and what is given back is what was taken up. */
TEST(properties_count_towards_the_bound)
{
    TEST_NEEDS_NET();
    const size_t bound = 64 * 1024;
    struct feeder feeder = feeder_new(bound, UM_ON_FULL_DROP_OLDEST);
    um_collector_stats_t stats;
    for (uint64_t i = 0; i < 300; i++) {
        feed(&feeder, "A", LBM_MSG_DATA, i % 2 ? LBM_MSG_FLAG_HF_32 : 0, i, 40);
        MUST(um_collector_stats(feeder.collector, &stats));
        CHECK(stats.queued_bytes <= bound);
    }
    CHECK(stats.dropped > 200);
    uint64_t left = 300 - stats.dropped, next = stats.dropped;
    um_batch_t *batch = take(&feeder, 0); /* the burst, before all others */
    um_batch_release(batch);
    while (left > 0) {
        batch = take(&feeder, 0);
        for (size_t i = 0; i < batch->count; i++, next++, left--) {
            CHECK(is(batch, i, next % 2 ? LBM_MSG_FLAG_HF_32 : 0, next, 40));
        }
        um_batch_release(batch);
    }
    MUST(um_collector_stats(feeder.collector, &stats));
    CHECK_EQ(stats.queued_bytes, 0);
    feeder_delete(&feeder);
}

TEST(an_event_that_outlives_the_messages_before_it_keeps_its_number)
{
    TEST_NEEDS_NET();
    struct feeder feeder = feeder_new(16 * 1024, UM_ON_FULL_DROP_OLDEST);
    bool found = false;
    feed(&feeder, "A", LBM_MSG_HF_RESET, LBM_MSG_FLAG_HF_64, 1ull << 40, 0);
    for (uint64_t i = 0; i < 40; i++) {
        feed(&feeder, "A", LBM_MSG_DATA, 0, i, 40);
    }
    um_batch_t *batch = take(&feeder, 0);
    for (size_t i = 0; i < batch->count; i++) {
        um_record_tail_t tail;
        const um_record_t *record = &batch->records[i];
        MUST(um_record_tail(record, batch->data + record->offset, &tail));
        found = found || (record->type == LBM_MSG_HF_RESET && tail.hf_number == 1ull << 40 && tail.properties == NULL);
    }
    CHECK(found);
    um_batch_release(batch);
    feeder_delete(&feeder);
}

TEST(a_caller_of_an_earlier_version_gets_what_it_knows_of_a_tail)
{
    um_record_t record = {.flags = LBM_MSG_FLAG_HF_64};
    uint64_t number = 77;
    um_record_tail_t tail;
    memset(&tail, 0x55, sizeof tail);
    MUST(um_record_tail_sized(&record, &number, &tail, offsetof(um_record_tail_t, hf_number)));
    CHECK_EQ(tail.len, 8);
    CHECK_EQ(tail.hf_number, 0x5555555555555555ull);
    MUST(um_record_tail(&record, &number, &tail));
    CHECK_EQ(tail.hf_number, 77);
    CHECK_EQ(um_record_tail(NULL, &number, &tail), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(um_record_tail(&record, NULL, &tail), -1);
    CHECK_EQ(um_record_tail_sized(&record, &number, NULL, 8), -1);
}

/* ---- properties as bytes ---- */

TEST(properties_read_from_bytes_are_those_that_were_written)
{
    lbm_msg_properties_t *p, *again;
    const void *bytes, *others;
    size_t len, other_len;
    int value = -5, type = LBM_MSG_PROPERTY_INT;
    MUST(lbm_msg_properties_create(&p));
    MUST(lbm_msg_properties_set(p, "n", &value, LBM_MSG_PROPERTY_INT, sizeof value));
    MUST(lbm_msg_properties_set(p, "t", "text", LBM_MSG_PROPERTY_STRING, 4));
    MUST(um_msg_properties_bytes(p, &bytes, &len));
    MUST(um_msg_properties_read(&again, bytes, len));
    MUST(lbm_msg_properties_delete(p));
    MUST(um_msg_properties_bytes(again, &others, &other_len));
    CHECK_EQ(other_len, len);
    size_t size = sizeof value;
    value = 0;
    MUST(lbm_msg_properties_get(again, "n", &value, &type, &size));
    CHECK_EQ(value, -5);
    MUST(lbm_msg_properties_set(again, "n", &len, LBM_MSG_PROPERTY_LONG, 8)); /* it is an object as others */
    char text[8];
    type = LBM_MSG_PROPERTY_STRING;
    size = sizeof text;
    MUST(lbm_msg_properties_get(again, "t", text, &type, &size));
    CHECK_STR(text, "text");
    MUST(lbm_msg_properties_delete(again));
}

TEST(malformed_bytes_are_refused)
{
    lbm_msg_properties_t *p, *out;
    const void *bytes;
    unsigned char copy[256];
    size_t len;
    MUST(lbm_msg_properties_create(&p));
    MUST(lbm_msg_properties_set(p, "text", "text", LBM_MSG_PROPERTY_STRING, 4));
    MUST(um_msg_properties_bytes(p, &bytes, &len));
    for (size_t cut = 0; cut < len; cut++) {
        memcpy(copy, bytes, len);
        CHECK_EQ(um_msg_properties_read(&out, copy, cut), -1);
        CHECK_EQ(lbm_errnum(), LBM_EINVAL);
        CHECK(out == NULL);
    }
    copy[0] ^= 1;
    CHECK_EQ(um_msg_properties_read(&out, copy, len), -1);
    CHECK_EQ(um_msg_properties_read(NULL, bytes, len), -1);
    CHECK_EQ(um_msg_properties_read(&out, NULL, len), -1);
    CHECK_EQ(um_msg_properties_bytes(NULL, &bytes, &len), -1);
    CHECK_EQ(um_msg_properties_bytes(p, NULL, &len), -1);
    CHECK_EQ(um_msg_properties_bytes(p, &bytes, NULL), -1);
    MUST(lbm_msg_properties_delete(p));
}

/* Everything a tail can have, and each of it left out, reads back as it was put. */
TEST(tails_with_a_channel_read_back)
{
    static const int parts[] = {UM_MSG_FLAG_ANSWERABLE, LBM_MSG_FLAG_HF_64, UM_MSG_FLAG_PROPERTIES,
                                UM_MSG_FLAG_CHANNEL};
    char way_back[sizeof(lbm_serialized_response_t)], properties[] = "properties";
    unsigned char bytes[sizeof way_back + sizeof properties + 64];
    memset(way_back, 'w', sizeof way_back);
    const um_record_tail_t put = {.way_back = way_back,
                                  .hf_number = 77,
                                  .properties = properties,
                                  .properties_len = sizeof properties,
                                  .channel = 4294967295};
    for (unsigned set = 0; set < 16; set++) {
        um_record_t record = {.length = 3};
        for (unsigned i = 0; i < 4; i++) {
            record.flags |= set & 1u << i ? parts[i] : 0;
        }
        um_record_tail_t got;
        memset(bytes, 'x', sizeof bytes);
        um_tail_put(bytes + record.length, record.flags, &put);
        CHECK_EQ(um_record_tail(&record, bytes, &got), 0);
        CHECK_EQ(got.len, um_tail_len(record.flags, &put));
        CHECK_EQ(bytes[record.length + got.len], 'x');
        CHECK(set & 1 ? memcmp(got.way_back, way_back, sizeof way_back) == 0 : got.way_back == NULL);
        CHECK_EQ(got.hf_number, set & 2 ? 77 : 0);
        CHECK(set & 4 ? memcmp(got.properties, properties, sizeof properties) == 0 : got.properties == NULL);
        CHECK_EQ(got.channel, set & 8 ? 4294967295 : 0);
    }
}
