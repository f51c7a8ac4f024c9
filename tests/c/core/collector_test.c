/* Collectors: gathering and taking, splitting, waking, the bound with and without
 * back-pressure, names, life of batches; unit and over TCP. */
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "um_test_rcv.h"
#include "um_test_shm.h"

#include "base/um_clock.h"
#include "base/um_mem.h"
#include "core/um_collector.h"
#include "core/um_collector_tally.h"
#include "core/um_collector_store.h"
#include "core/um_message.h"
#include "core/um_rcv_private.h"

#define WAIT_MS (HANG_SECONDS * 1000)

/* A receiver that exists only to be handed to the callback; messages made by hand. */
struct feeder {
    lbm_context_t *ctx;
    lbm_rcv_t *rcv;
    um_collector_t *collector;
};

static int nothing(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    return 0;
}

static struct feeder feeder_new_ex(size_t max_bytes, int on_full)
{
    struct feeder feeder = {.ctx = net_context()};
    feeder.rcv = net_receiver(feeder.ctx, "by hand", NULL, nothing, NULL, NULL);
    MUST(um_collector_create_ex(&feeder.collector, max_bytes, on_full));
    return feeder;
}

static struct feeder feeder_new(size_t max_bytes)
{
    return feeder_new_ex(max_bytes, UM_ON_FULL_PAUSE);
}

static void feeder_delete(struct feeder *feeder)
{
    if (feeder->collector != NULL) {
        MUST(um_collector_delete(feeder->collector));
    }
    MUST(lbm_rcv_delete(feeder->rcv));
    MUST(lbm_context_delete(feeder->ctx));
}

/* On the context thread, where messages come from. */
struct feeding {
    struct feeder *feeder;
    struct um_msg *msg;
};

static int feed_on_loop(void *arg)
{
    struct feeding *feeding = arg;
    return um_collector_rcv_cb(feeding->feeder->rcv, &feeding->msg->pub, feeding->feeder->collector);
}

static void feed_stamped(struct feeder *feeder, const char *topic, const char *source, int type, uint32_t sqn,
                         const char *text, lbm_timespec_t hr_timestamp)
{
    struct um_msg *msg = um_msg_create(source, topic);
    msg->pub.hr_timestamp = hr_timestamp;
    msg->pub.type = type;
    msg->pub.sequence_number = sqn;
    msg->pub.data = text;
    msg->pub.len = strlen(text);
    struct feeding feeding = {feeder, msg};
    MUST(um_loop_call(feeder->ctx->loop, feed_on_loop, &feeding));
    um_msg_release(msg);
}

static void feed(struct feeder *feeder, const char *topic, const char *source, int type, uint32_t sqn, const char *text)
{
    feed_stamped(feeder, topic, source, type, sqn, text, (lbm_timespec_t){0});
}

/* A burst of so many messages that were lost. */
static bool burst_is(const um_batch_t *batch, size_t i, uint32_t sqn, uint64_t count)
{
    const um_record_t *r = &batch->records[i];
    return i < batch->count && r->type == LBM_MSG_UNRECOVERABLE_LOSS_BURST && r->sequence_number == sqn &&
           r->length == sizeof count && r->offset + r->length <= batch->data_len &&
           memcmp(batch->data + r->offset, &count, sizeof count) == 0;
}

static bool record_is(const um_batch_t *batch, size_t i, int type, uint32_t sqn, const char *text)
{
    const um_record_t *r = &batch->records[i];
    return i < batch->count && r->type == type && r->sequence_number == sqn && r->length == strlen(text) &&
           r->offset + r->length <= batch->data_len && memcmp(batch->data + r->offset, text, r->length) == 0;
}

TEST(records_have_no_padding)
{
    CHECK_EQ(sizeof(um_record_t), 40);
    CHECK_EQ(offsetof(um_record_t, timestamp_ns), 32);
}

TEST(time_of_the_network_card_is_that_of_the_record_and_marked)
{
    TEST_NEEDS_NET();
    struct feeder feeder = feeder_new(0);
    um_batch_t *batch = NULL;
    lbm_timespec_t card = {.tv_sec = 1234567890, .tv_nsec = 987654321};
    feed(&feeder, "A", "S", LBM_MSG_DATA, 1, "read");
    feed_stamped(&feeder, "A", "S", LBM_MSG_DATA, 2, "stamped", card);
    CHECK_EQ(um_collector_take(feeder.collector, 0, 0, &batch), 1);
    CHECK_EQ(batch->count, 2);
    CHECK_EQ(batch->records[0].flags & UM_MSG_FLAG_HR_TIMESTAMP, 0);
    CHECK(batch->records[0].timestamp_ns > 1234567890987654321);
    CHECK_EQ(batch->records[1].flags, UM_MSG_FLAG_HR_TIMESTAMP);
    CHECK_EQ(batch->records[1].timestamp_ns, 1234567890987654321);
    um_batch_release(batch);
    feeder_delete(&feeder);
}

TEST(what_is_gathered_is_taken_in_order_with_its_names)
{
    TEST_NEEDS_NET();
    struct feeder feeder = feeder_new(0);
    um_batch_t *batch = NULL;
    int64_t before = (int64_t)um_clock_wall_ns();
    CHECK_EQ(um_collector_take(feeder.collector, 0, 0, &batch), 0);
    feed(&feeder, "A", "S1", LBM_MSG_BOS, 0, "ignored");
    feed(&feeder, "A", "S1", LBM_MSG_DATA, 7, "one");
    feed(&feeder, "B", "S1", LBM_MSG_REQUEST, 8, "three");
    feed(&feeder, "A", "S2", LBM_MSG_DATA, 9, "");
    feed(&feeder, "A", "S1", LBM_MSG_UNRECOVERABLE_LOSS, 10, "");
    feed(&feeder, "A", "", LBM_MSG_NO_SOURCE_NOTIFICATION, 0, "");
    CHECK_EQ(um_collector_take(feeder.collector, 0, 0, &batch), 1);
    CHECK_EQ(batch->count, 6);
    CHECK(record_is(batch, 0, LBM_MSG_BOS, 0, ""));
    CHECK(record_is(batch, 1, LBM_MSG_DATA, 7, "one"));
    CHECK(record_is(batch, 2, LBM_MSG_REQUEST, 8, "three"));
    CHECK(record_is(batch, 3, LBM_MSG_DATA, 9, ""));
    CHECK(record_is(batch, 4, LBM_MSG_UNRECOVERABLE_LOSS, 10, ""));
    CHECK(record_is(batch, 5, LBM_MSG_NO_SOURCE_NOTIFICATION, 0, ""));
    CHECK_EQ(batch->data_len, 8);
    CHECK_STR(batch->topics[batch->records[2].topic], "B");
    CHECK_STR(batch->topics[batch->records[1].topic], "A");
    CHECK_STR(batch->sources[batch->records[1].source], "S1");
    CHECK_STR(batch->sources[batch->records[3].source], "S2");
    CHECK(batch->records[1].timestamp_ns >= before - (int64_t)UM_NS_PER_SEC);
    CHECK(batch->records[1].timestamp_ns <= (int64_t)um_clock_wall_ns());
    um_collector_stats_t stats;
    MUST(um_collector_stats(feeder.collector, &stats));
    CHECK_EQ(stats.messages, 3);
    CHECK_EQ(stats.bytes, 8);
    CHECK_EQ(stats.taken, 6);
    CHECK_EQ(stats.queued_messages + stats.queued_bytes, 0);
    um_batch_release(batch);
    feeder_delete(&feeder);
}

/* Feeds messages of so many sources that were never seen before, from a number on. */
static void feed_strangers(struct feeder *feeder, unsigned first, unsigned count)
{
    for (unsigned i = first; i < first + count; i++) {
        char source[32];
        snprintf(source, sizeof source, "TCP:%u", i);
        feed(feeder, "T", source, LBM_MSG_DATA, i, "x");
    }
}

static bool names_are_right(const um_batch_t *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const um_record_t *r = &batch->records[i];
        char source[32];
        snprintf(source, sizeof source, "TCP:%u", r->sequence_number);
        if (r->source >= batch->source_count || strcmp(batch->sources[r->source], source) != 0 ||
            r->topic >= batch->topic_count || strcmp(batch->topics[r->topic], "T") != 0) {
            return false;
        }
    }
    return true;
}

TEST(f21_names_of_sources_that_come_and_go_do_not_pile_up)
{
    TEST_NEEDS_NET();
    struct feeder feeder = feeder_new(0);
    um_batch_t *kept = NULL, *batch;
    size_t most = 0;
    for (unsigned first = 0; first < 3 * UM_NAMES_MAX; first += 1024) {
        feed_strangers(&feeder, first, 1024);
        for (size_t left = 1024; left > 0; left -= 512) {
            CHECK_EQ(um_collector_take(feeder.collector, 512, 0, &batch), 1);
            CHECK_EQ(batch->count, 512);
            CHECK(names_are_right(batch));
            most = batch->source_count > most ? batch->source_count : most;
            if (kept == NULL) {
                kept = batch;
            } else {
                um_batch_release(batch);
            }
        }
        um_collector_stats_t stats;
        MUST(um_collector_stats(feeder.collector, &stats));
        CHECK_EQ(stats.queued_bytes, 0);
    }
    CHECK(most <= UM_NAMES_MAX + 2 * 1024); /* the chunk being filled begins before the last one is counted */
    CHECK_EQ(kept->names, 1);
    CHECK(names_are_right(kept));
    feed_strangers(&feeder, 7, 1); /* seen long ago */
    CHECK_EQ(um_collector_take(feeder.collector, 0, 0, &batch), 1);
    CHECK(names_are_right(batch));
    CHECK(batch->names >= 3);
    um_batch_release(batch);
    um_batch_release(kept);
    feeder_delete(&feeder);
}

TEST(f21_names_count_towards_the_bound)
{
    TEST_NEEDS_NET();
    struct feeder feeder = feeder_new(64 * 1024);
    um_batch_t *batch;
    um_collector_stats_t stats;
    feed_strangers(&feeder, 0, 1500);
    MUST(um_collector_stats(feeder.collector, &stats));
    CHECK(stats.messages < UM_NAMES_FREE + 64 * 1024 / UM_NAME_COST);
    while (um_collector_take(feeder.collector, 0, 0, &batch) == 1) {
        um_batch_release(batch);
    }
    feed_strangers(&feeder, 1500, 1); /* there is room again */
    CHECK_EQ(um_collector_take(feeder.collector, 0, 0, &batch), 1);
    CHECK(names_are_right(batch));
    um_batch_release(batch);
    feeder_delete(&feeder);
}

TEST(f21_a_full_collector_takes_no_names_of_what_it_drops)
{
    TEST_NEEDS_NET();
    const size_t bound = 64 * 1024, loss_room = 64 * 1024, one_name = 2 * UM_NAME_COST;
    struct feeder feeder = feeder_new(bound);
    um_batch_t *batch;
    um_collector_stats_t stats;
    feed_strangers(&feeder, 0, 5000);
    for (unsigned i = 0; i < 1000; i++) {
        char topic[32];
        snprintf(topic, sizeof topic, "T%u", i);
        feed(&feeder, topic, "TCP:1", LBM_MSG_BOS, 0, "");
    }
    MUST(um_collector_stats(feeder.collector, &stats));
    CHECK(stats.queued_bytes <= bound + loss_room + one_name);
    CHECK(stats.dropped >= 5000 + 1000 - (bound + loss_room) / sizeof(um_record_t));
    while (um_collector_take(feeder.collector, 0, 0, &batch) == 1) {
        um_batch_release(batch);
    }
    feed_strangers(&feeder, 4999, 1); /* there is room for its name now */
    CHECK_EQ(um_collector_take(feeder.collector, 0, 0, &batch), 1);
    CHECK(names_are_right(batch));
    um_batch_release(batch);
    feeder_delete(&feeder);
}

TEST(a_chunk_is_cut_into_batches_that_count_from_zero)
{
    TEST_NEEDS_NET();
    struct feeder feeder = feeder_new(0);
    um_batch_t *a, *b, *c;
    feed(&feeder, "T", "S", LBM_MSG_DATA, 0, "zero");
    feed(&feeder, "T", "S", LBM_MSG_DATA, 1, "one");
    feed(&feeder, "T", "S", LBM_MSG_DATA, 2, "two");
    CHECK_EQ(um_collector_take(feeder.collector, 2, 0, &a), 1);
    feed(&feeder, "T", "S", LBM_MSG_DATA, 3, "three");
    CHECK_EQ(um_collector_take(feeder.collector, 2, 0, &b), 1);
    CHECK_EQ(um_collector_take(feeder.collector, 0, 0, &c), 1);
    CHECK_EQ(a->count, 2);
    CHECK_EQ(a->data_len, 7);
    CHECK(record_is(a, 1, LBM_MSG_DATA, 1, "one"));
    CHECK_EQ(b->count, 1);
    CHECK_EQ(b->data_len, 3);
    CHECK_EQ(b->records[0].offset, 0);
    CHECK(b->data == a->data + a->data_len); /* not copied */
    CHECK(record_is(b, 0, LBM_MSG_DATA, 2, "two"));
    CHECK(record_is(c, 0, LBM_MSG_DATA, 3, "three"));
    um_batch_release(a);
    CHECK(record_is(b, 0, LBM_MSG_DATA, 2, "two"));
    um_batch_release(c);
    um_batch_release(b);
    feeder_delete(&feeder);
}

TEST(batches_outlive_their_collector)
{
    TEST_NEEDS_NET();
    struct feeder feeder = feeder_new(0);
    um_batch_t *first, *later;
    feed(&feeder, "T", "S", LBM_MSG_DATA, 1, "kept");
    CHECK_EQ(um_collector_take(feeder.collector, 0, 0, &first), 1);
    for (int i = 0; i < 100; i++) { /* tables of names grow meanwhile */
        char name[16];
        snprintf(name, sizeof name, "T%d", i);
        feed(&feeder, name, "S", LBM_MSG_DATA, 2, "more");
    }
    CHECK_EQ(um_collector_take(feeder.collector, 0, 0, &later), 1);
    feeder_delete(&feeder);
    CHECK_EQ(first->topic_count, 1);
    CHECK_STR(first->topics[0], "T");
    CHECK(record_is(first, 0, LBM_MSG_DATA, 1, "kept"));
    CHECK_EQ(later->topic_count, 101);
    CHECK_STR(later->topics[later->records[99].topic], "T99");
    um_object_counts_t counts;
    MUST(um_object_counts(&counts));
    CHECK_EQ(counts.batches, 2);
    CHECK_EQ(counts.collectors, 0);
    um_batch_release(first);
    um_batch_release(later);
    MUST(um_object_counts(&counts));
    CHECK_EQ(counts.batches, 0);
}

static void without_room_for_the_newest(int on_full)
{
    struct feeder feeder = feeder_new_ex(3 * (sizeof(um_record_t) + 4), on_full);
    um_batch_t *batch;
    for (uint32_t i = 0; i < 10; i++) {
        feed(&feeder, "T", "S", LBM_MSG_DATA, i, "four");
    }
    um_collector_stats_t stats;
    MUST(um_collector_stats(feeder.collector, &stats));
    CHECK_EQ(stats.messages, 3);
    CHECK_EQ(stats.dropped, 7);
    CHECK_EQ(um_collector_take(feeder.collector, 0, 0, &batch), 1);
    CHECK(record_is(batch, 2, LBM_MSG_DATA, 2, "four"));
    CHECK_EQ(batch->count, 10); /* messages without a source have a record each */
    CHECK(burst_is(batch, 3, 3, 1));
    um_batch_release(batch);
    feed(&feeder, "T", "S", LBM_MSG_DATA, 10,
         "larger than everything that fits, and still accepted when it is alone: "
         "a bound that can never be met would stop everything for good. ...........");
    CHECK_EQ(um_collector_take(feeder.collector, 0, 0, &batch), 1);
    CHECK_EQ(batch->records[0].sequence_number, 10);
    um_batch_release(batch);
    feeder_delete(&feeder);
}

TEST(without_back_pressure_the_newest_is_dropped_and_bursts_tell)
{
    TEST_NEEDS_NET();
    without_room_for_the_newest(UM_ON_FULL_PAUSE);
    without_room_for_the_newest(UM_ON_FULL_DROP_NEWEST);
}

/* Takes everything; the sum of what bursts tell of, and of messages. */
static void take_sums(um_collector_t *collector, uint64_t *lost, uint64_t *messages)
{
    um_batch_t *batch;
    *lost = *messages = 0;
    while (um_collector_take(collector, 0, 0, &batch) == 1) {
        for (size_t i = 0; i < batch->count; i++) {
            const um_record_t *r = &batch->records[i];
            uint64_t count = 0;
            if (r->type == LBM_MSG_UNRECOVERABLE_LOSS_BURST) {
                memcpy(&count, batch->data + r->offset, sizeof count);
            }
            *lost += count;
            *messages += r->type == LBM_MSG_DATA;
        }
        um_batch_release(batch);
    }
}

TEST(the_oldest_is_dropped_and_a_burst_for_each_topic_comes_first)
{
    TEST_NEEDS_NET();
    struct feeder feeder = feeder_new_ex(4 * (sizeof(um_record_t) + 4), UM_ON_FULL_DROP_OLDEST);
    um_batch_t *batch;
    feed(&feeder, "A", "S", LBM_MSG_BOS, 0, "");
    for (uint32_t i = 0; i < 10; i++) {
        feed(&feeder, i % 2 == 0 ? "A" : "B", "S", LBM_MSG_DATA, i, "four");
    }
    CHECK_EQ(um_collector_take(feeder.collector, 0, 0, &batch), 1);
    CHECK_EQ(batch->count, 3);
    CHECK(record_is(batch, 0, LBM_MSG_BOS, 0, ""));
    CHECK(burst_is(batch, 1, 0, 3));
    CHECK(burst_is(batch, 2, 1, 3));
    CHECK_STR(batch->topics[batch->records[1].topic], "A");
    CHECK_STR(batch->topics[batch->records[2].topic], "B");
    CHECK_STR(batch->sources[batch->records[2].source], "S");
    um_batch_release(batch);
    CHECK_EQ(um_collector_take(feeder.collector, 1, 0, &batch), 1);
    CHECK(record_is(batch, 0, LBM_MSG_DATA, 6, "four"));
    um_batch_release(batch);
    /* Half taken: the rest is the oldest still. */
    for (uint32_t i = 10; i < 12; i++) {
        feed(&feeder, "A", "S", LBM_MSG_DATA, i, "four");
    }
    CHECK_EQ(um_collector_take(feeder.collector, 0, 0, &batch), 1);
    CHECK(batch->count == 1 && burst_is(batch, 0, 7, 1));
    um_batch_release(batch);
    uint64_t lost, messages;
    take_sums(feeder.collector, &lost, &messages);
    CHECK_EQ(messages, 4);
    um_collector_stats_t stats;
    MUST(um_collector_stats(feeder.collector, &stats));
    CHECK_EQ(stats.dropped, 7);
    CHECK_EQ(stats.messages, 12);
    CHECK_EQ(stats.queued_messages + stats.queued_bytes, 0);
    /* One that never fits is taken all the same when it is alone. */
    char large[1000];
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = 0;
    feed(&feeder, "A", "S", LBM_MSG_DATA, 12, "four");
    feed(&feeder, "A", "S", LBM_MSG_DATA, 13, large);
    CHECK_EQ(um_collector_take(feeder.collector, 0, 0, &batch), 1);
    CHECK(burst_is(batch, 0, 12, 1));
    um_batch_release(batch);
    CHECK_EQ(um_collector_take(feeder.collector, 0, 0, &batch), 1);
    CHECK(record_is(batch, 0, LBM_MSG_DATA, 13, large));
    um_batch_release(batch);
    feeder_delete(&feeder);
}

static uint64_t dropped_of(um_collector_t *collector, const char *source)
{
    uint64_t count = 77;
    MUST(um_collector_dropped(collector, source, &count));
    return count;
}

TEST(what_is_dropped_is_counted_for_its_source)
{
    TEST_NEEDS_NET();
    static const int modes[] = {UM_ON_FULL_PAUSE, UM_ON_FULL_DROP_NEWEST, UM_ON_FULL_DROP_OLDEST, UM_ON_FULL_CONFLATE};
    for (size_t mode = 0; mode < sizeof modes / sizeof *modes; mode++) {
        size_t room = modes[mode] == UM_ON_FULL_CONFLATE ? UM_NAME_COST : 0;
        struct feeder feeder = feeder_new_ex(4 * (sizeof(um_record_t) + 8 + room), modes[mode]);
        um_collector_stats_t stats;
        for (uint32_t i = 0; i < 30; i++) {
            char topic[16];
            snprintf(topic, sizeof topic, "T%u", i);
            feed(&feeder, topic, i % 3 == 0 ? "one" : "two", LBM_MSG_DATA, i, "four");
        }
        MUST(um_collector_stats(feeder.collector, &stats));
        uint64_t one = dropped_of(feeder.collector, "one"), two = dropped_of(feeder.collector, "two");
        CHECK(one > 5 && two > one);
        CHECK_EQ(one + two, stats.dropped);
        CHECK_EQ(dropped_of(feeder.collector, "three"), 0);
        feeder_delete(&feeder);
    }
}

TEST(only_the_sources_that_lost_something_last_are_remembered)
{
    struct um_tally tally;
    char source[32];
    um_tally_init(&tally);
    for (unsigned i = 0; i < 2 * UM_TALLY_SOURCES_MAX; i++) {
        snprintf(source, sizeof source, "TCP:%u", i);
        um_tally_add(&tally, source);
        um_tally_add(&tally, "steady");
    }
    CHECK_EQ(um_map_count(&tally.sources), UM_TALLY_SOURCES_MAX);
    CHECK_EQ(um_tally_of(&tally, "steady"), 2 * UM_TALLY_SOURCES_MAX);
    CHECK_EQ(um_tally_of(&tally, source), 1);
    CHECK_EQ(um_tally_of(&tally, "TCP:0"), 0);
    um_tally_clear(&tally);
}

TEST(the_newest_of_each_topic_replaces_the_one_before_in_its_place)
{
    TEST_NEEDS_NET();
    struct feeder feeder = feeder_new_ex(0, UM_ON_FULL_CONFLATE);
    um_batch_t *batch;
    um_collector_stats_t stats;
    feed(&feeder, "A", "S", LBM_MSG_BOS, 0, "");
    feed(&feeder, "A", "S", LBM_MSG_DATA, 0, "one");
    feed(&feeder, "B", "S", LBM_MSG_DATA, 1, "two");
    feed(&feeder, "A", "T", LBM_MSG_DATA, 7, "longer than before");
    feed(&feeder, "B", "S", LBM_MSG_DATA, 2, "");
    feed(&feeder, "A", "S", LBM_MSG_EOS, 0, "");
    MUST(um_collector_stats(feeder.collector, &stats));
    CHECK_EQ(stats.queued_messages, 4);
    CHECK_EQ(stats.conflated, 2);
    CHECK_EQ(stats.dropped, 0);
    CHECK_EQ(um_collector_take(feeder.collector, 0, 0, &batch), 1);
    CHECK(batch->count == 1 && record_is(batch, 0, LBM_MSG_BOS, 0, ""));
    um_batch_release(batch);
    CHECK_EQ(um_collector_take(feeder.collector, 1, 0, &batch), 1);
    CHECK(batch->count == 1 && record_is(batch, 0, LBM_MSG_DATA, 7, "longer than before"));
    CHECK_STR(batch->topics[batch->records[0].topic], "A");
    CHECK_STR(batch->sources[batch->records[0].source], "T");
    um_batch_release(batch);
    feed(&feeder, "A", "T", LBM_MSG_DATA, 8, "again");
    feed(&feeder, "B", "S", LBM_MSG_DATA, 3, "newest");
    CHECK_EQ(um_collector_take(feeder.collector, 0, 0, &batch), 1);
    CHECK(batch->count == 1 && record_is(batch, 0, LBM_MSG_DATA, 3, "newest"));
    um_batch_release(batch);
    CHECK_EQ(um_collector_take(feeder.collector, 0, 0, &batch), 1);
    CHECK(batch->count == 1 && record_is(batch, 0, LBM_MSG_EOS, 0, ""));
    um_batch_release(batch);
    CHECK_EQ(um_collector_take(feeder.collector, 0, 0, &batch), 1);
    CHECK(batch->count == 1 && record_is(batch, 0, LBM_MSG_DATA, 8, "again"));
    um_batch_release(batch);
    MUST(um_collector_stats(feeder.collector, &stats));
    CHECK_EQ(stats.queued_messages + stats.queued_bytes, 0);
    CHECK_EQ(stats.conflated, 3);
    CHECK_EQ(stats.messages, 6);
    feeder_delete(&feeder);
}

static void feed_topics(struct feeder *feeder, unsigned count, uint32_t sqn)
{
    for (unsigned i = 0; i < count; i++) {
        char topic[32];
        snprintf(topic, sizeof topic, "T%u", i);
        feed(feeder, topic, "S", LBM_MSG_DATA, sqn, "value");
    }
}

TEST(too_many_topics_to_conflate_drop_those_that_waited_longest)
{
    TEST_NEEDS_NET();
    enum { TOPICS = 5000, BOUND = 100000 };
    struct feeder feeder = feeder_new_ex(BOUND, UM_ON_FULL_CONFLATE);
    um_collector_stats_t stats;
    uint64_t lost, messages;
    feed(&feeder, "T0", "S", LBM_MSG_BOS, 0, "");
    feed_topics(&feeder, TOPICS, 1);
    MUST(um_collector_stats(feeder.collector, &stats));
    CHECK(stats.queued_bytes <= BOUND);
    CHECK_EQ(stats.conflated, 0);
    CHECK(stats.dropped > 0);
    take_sums(feeder.collector, &lost, &messages);
    CHECK_EQ(lost, stats.dropped);
    CHECK_EQ(lost + messages, TOPICS);
    MUST(um_collector_stats(feeder.collector, &stats));
    CHECK_EQ(stats.queued_messages + stats.queued_bytes, 0);
    feed_topics(&feeder, 100, 2);
    feed_topics(&feeder, 100, 3);
    take_sums(feeder.collector, &lost, &messages);
    CHECK_EQ(lost, 0);
    CHECK_EQ(messages, 100);
    feeder_delete(&feeder);
}

/* Ten thousand topics that change all the time, in front of a taker that is slower. */
enum { BUSY_TOPICS = 10000, BUSY_ROUNDS = 100 };

struct busy {
    struct feeder *feeder;
    struct um_msg **messages;
    uint32_t round; /* the last that was fed */
    atomic_bool over;
    size_t most; /* records that waited at once */
    um_collector_stats_t stats;
};

static int feed_round_on_loop(void *arg)
{
    struct busy *busy = arg;
    busy->round++;
    for (uint32_t i = 0; i < BUSY_TOPICS; i++) {
        struct um_msg *msg = busy->messages[i];
        uint32_t value[2] = {i, busy->round};
        msg->pub.data = (const char *)value;
        msg->pub.len = sizeof value;
        um_collector_rcv_cb(busy->feeder->rcv, &msg->pub, busy->feeder->collector);
    }
    return 0;
}

static void *feed_busily(void *arg)
{
    struct busy *busy = arg;
    while (busy->round < BUSY_ROUNDS) {
        um_collector_stats_t stats;
        MUST(um_loop_call(busy->feeder->ctx->loop, feed_round_on_loop, busy));
        MUST(um_collector_stats(busy->feeder->collector, &stats));
        busy->most = stats.queued_messages > busy->most ? stats.queued_messages : busy->most;
    }
    atomic_store(&busy->over, true);
    return NULL;
}

TEST(ten_thousand_busy_topics_are_conflated_in_the_room_of_one_message_each)
{
    TEST_NEEDS_NET();
    struct feeder feeder = feeder_new_ex(0, UM_ON_FULL_CONFLATE);
    struct busy busy = {.feeder = &feeder, .messages = calloc(BUSY_TOPICS, sizeof *busy.messages)};
    uint32_t *newest = calloc(BUSY_TOPICS, sizeof *newest);
    for (uint32_t i = 0; i < BUSY_TOPICS; i++) {
        char topic[32];
        snprintf(topic, sizeof topic, "T%u", i);
        busy.messages[i] = um_msg_create("S", topic);
        busy.messages[i]->pub.type = LBM_MSG_DATA;
    }
    pthread_t thread;
    um_batch_t *batch;
    uint64_t taken = 0;
    bool backwards = false;
    MUST(pthread_create(&thread, NULL, feed_busily, &busy));
    for (bool last = false; !last;) {
        last = atomic_load(&busy.over);
        while (um_collector_take(feeder.collector, last ? 0 : 100, 0, &batch) == 1) {
            for (size_t i = 0; i < batch->count; i++) {
                uint32_t value[2];
                memcpy(value, batch->data + batch->records[i].offset, sizeof value);
                backwards |= value[1] <= newest[value[0]];
                newest[value[0]] = value[1];
            }
            taken += batch->count;
            um_batch_release(batch);
            if (!last) {
                break;
            }
        }
    }
    pthread_join(thread, NULL);
    MUST(um_collector_stats(feeder.collector, &busy.stats));
    CHECK(!backwards);
    CHECK(busy.most <= BUSY_TOPICS);
    CHECK_EQ(busy.stats.dropped, 0);
    CHECK_EQ(busy.stats.messages, (uint64_t)BUSY_TOPICS * BUSY_ROUNDS);
    CHECK_EQ(taken + busy.stats.conflated, busy.stats.messages);
    CHECK_EQ(busy.stats.queued_messages + busy.stats.queued_bytes, 0);
    for (uint32_t i = 0; i < BUSY_TOPICS; i++) {
        CHECK(newest[i] == BUSY_ROUNDS);
        um_msg_release(busy.messages[i]);
    }
    free(newest);
    free(busy.messages);
    feeder_delete(&feeder);
}

/* Bytes of the program that are in memory, and those that allocations have now: 0 where a sanitizer has an allocator of
 * its own, which keeps what was freed for a while. */
struct sizes {
    long resident, allocated;
};

static struct sizes sizes_now(void)
{
    struct mallinfo2 info = mallinfo2();
    struct sizes sizes = {.allocated = (long)(info.uordblks + info.hblkhd)};
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    MUST(file == NULL || fscanf(file, "%*s %ld", &pages) != 1 ? -1 : 0);
    fclose(file);
    sizes.resident = sizes.allocated != 0 ? pages * sysconf(_SC_PAGESIZE) : 0;
    return sizes;
}

/* Every topic changes three times, and a part of them is taken. */
static void conflate_round(struct feeder *feeder, struct busy *busy)
{
    um_batch_t *batch;
    for (int i = 0; i < 3; i++) {
        MUST(um_loop_call(feeder->ctx->loop, feed_round_on_loop, busy));
    }
    for (int i = 0; i < 3 && um_collector_take(feeder->collector, 0, 0, &batch) == 1; i++) {
        um_batch_release(batch);
    }
}

TEST(memory_is_flat_while_ten_thousand_topics_are_conflated)
{
    TEST_NEEDS_NET();
    const int warm_up = UM_TEST_SANITIZED ? 3 : 30; /* a sanitizer does not tell what is measured here */
    const int rounds = UM_TEST_SANITIZED ? 10 : 100;
    struct feeder feeder = feeder_new_ex(0, UM_ON_FULL_CONFLATE);
    struct busy busy = {.feeder = &feeder, .messages = calloc(BUSY_TOPICS, sizeof *busy.messages)};
    um_collector_stats_t stats;
    for (uint32_t i = 0; i < BUSY_TOPICS; i++) {
        char topic[32];
        snprintf(topic, sizeof topic, "T%u", i);
        busy.messages[i] = um_msg_create("S", topic);
        busy.messages[i]->pub.type = LBM_MSG_DATA;
    }
    struct sizes before = {0}, after;
    for (int round = 0; round < warm_up + rounds; round++) {
        if (round == warm_up) {
            before = sizes_now();
        }
        conflate_round(&feeder, &busy);
    }
    after = sizes_now();
    MUST(um_collector_stats(feeder.collector, &stats));
    CHECK_EQ(stats.messages, 3ull * BUSY_TOPICS * (unsigned)(warm_up + rounds));
    CHECK(stats.queued_messages <= BUSY_TOPICS);
    CHECK(stats.conflated > stats.messages / 2);
    /* A record that stays behind in each round for every topic would be 40 MB or more. */
    CHECK(after.allocated - before.allocated < 1 << 20);
    CHECK(after.resident - before.resident < 1 << 20);
    for (uint32_t i = 0; i < BUSY_TOPICS; i++) {
        um_msg_release(busy.messages[i]);
    }
    free(busy.messages);
    feeder_delete(&feeder);
}

TEST(what_no_burst_had_room_for_is_told_of_without_names)
{
    TEST_NEEDS_NET();
    enum { MESSAGES = 5000 };
    struct feeder feeder = feeder_new_ex(sizeof(um_record_t), UM_ON_FULL_DROP_NEWEST);
    um_collector_stats_t stats;
    uint64_t lost, messages;
    for (uint32_t i = 0; i < MESSAGES; i++) {
        feed(&feeder, "T", "S", LBM_MSG_DATA, i, "value");
    }
    MUST(um_collector_stats(feeder.collector, &stats));
    CHECK(stats.queued_messages < MESSAGES / 2);
    take_sums(feeder.collector, &lost, &messages);
    CHECK_EQ(lost, stats.dropped);
    CHECK_EQ(lost + messages, MESSAGES);
    feeder_delete(&feeder);
}

TEST(the_descriptor_is_readable_while_records_wait)
{
    TEST_NEEDS_NET();
    struct feeder feeder = feeder_new(0);
    um_batch_t *batch;
    feed(&feeder, "T", "S", LBM_MSG_DATA, 1, "before");
    struct pollfd pfd = {.fd = um_collector_fd(feeder.collector), .events = POLLIN};
    CHECK(pfd.fd >= 0);
    CHECK_EQ(um_collector_fd(feeder.collector), pfd.fd);
    CHECK_EQ(poll(&pfd, 1, 0), 1);
    feed(&feeder, "T", "S", LBM_MSG_DATA, 2, "after");
    CHECK_EQ(um_collector_take(feeder.collector, 1, 0, &batch), 1);
    um_batch_release(batch);
    CHECK_EQ(poll(&pfd, 1, 0), 1); /* one is left */
    CHECK_EQ(um_collector_take(feeder.collector, 0, 0, &batch), 1);
    um_batch_release(batch);
    CHECK_EQ(poll(&pfd, 1, 0), 0);
    feed(&feeder, "T", "S", LBM_MSG_DATA, 3, "again");
    CHECK_EQ(poll(&pfd, 1, 0), 1);
    feeder_delete(&feeder);
}

TEST(the_descriptor_is_readable_while_it_is_kept)
{
    TEST_NEEDS_NET();
    struct feeder feeder = feeder_new(0);
    um_batch_t *batch = NULL;
    MUST(um_collector_keep_readable(feeder.collector, 1));
    struct pollfd poller = {.fd = um_collector_fd(feeder.collector), .events = POLLIN};
    CHECK_EQ(poll(&poller, 1, 0), 1);
    feed(&feeder, "A", "S", LBM_MSG_DATA, 1, "x");
    CHECK_EQ(um_collector_take(feeder.collector, 0, 0, &batch), 1);
    um_batch_release(batch);
    CHECK_EQ(poll(&poller, 1, 0), 1);
    MUST(um_collector_keep_readable(feeder.collector, 0));
    CHECK_EQ(poll(&poller, 1, 0), 0);
    MUST(um_collector_keep_readable(feeder.collector, 1));
    CHECK_EQ(poll(&poller, 1, 0), 1);
    feed(&feeder, "A", "S", LBM_MSG_DATA, 2, "y");
    MUST(um_collector_keep_readable(feeder.collector, 0));
    CHECK_EQ(poll(&poller, 1, 0), 1);
    feeder_delete(&feeder);
}

TEST(waking_makes_the_next_take_return_nothing)
{
    TEST_NEEDS_NET();
    struct feeder feeder = feeder_new(0);
    um_batch_t *batch;
    MUST(um_collector_wake(feeder.collector));
    CHECK_EQ(um_collector_take(feeder.collector, 0, -1, &batch), 0);
    CHECK_EQ(um_collector_take(feeder.collector, 0, 1, &batch), 0);
    feed(&feeder, "T", "S", LBM_MSG_DATA, 1, "x");
    MUST(um_collector_wake(feeder.collector));
    CHECK_EQ(um_collector_take(feeder.collector, 0, -1, &batch), 0);
    CHECK_EQ(um_collector_take(feeder.collector, 0, -1, &batch), 1);
    um_batch_release(batch);
    feeder_delete(&feeder);
}

static void *take_forever(void *arg)
{
    um_batch_t *batch = NULL;
    int rc;
    do { /* refused while wait_until_asleep() is inside */
        rc = um_collector_take(arg, 0, -1, &batch);
    } while (rc == -1 && lbm_errnum() == LBM_EOP);
    um_batch_release(rc == 1 ? batch : NULL);
    return (void *)(intptr_t)rc;
}

static void wait_until_asleep(um_collector_t *collector)
{
    um_batch_t *batch;
    while (um_collector_take(collector, 0, 0, &batch) == 0) { /* refused once the other thread is inside */
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
}

TEST(deleting_wakes_a_waiting_taker)
{
    TEST_NEEDS_NET();
    struct feeder feeder = feeder_new(0);
    pthread_t taker;
    pthread_create(&taker, NULL, take_forever, feeder.collector);
    wait_until_asleep(feeder.collector);
    CHECK_EQ(lbm_errnum(), LBM_EOP);
    CHECK_CONTAINS(lbm_errmsg(), "one thread at a time");
    MUST(um_collector_delete(feeder.collector));
    feeder.collector = NULL;
    void *rc;
    pthread_join(taker, &rc);
    CHECK_EQ((intptr_t)rc, 0);
    feeder_delete(&feeder);
}

TEST(a_message_wakes_a_waiting_taker)
{
    TEST_NEEDS_NET();
    struct feeder feeder = feeder_new(0);
    pthread_t taker;
    pthread_create(&taker, NULL, take_forever, feeder.collector);
    wait_until_asleep(feeder.collector);
    feed(&feeder, "T", "S", LBM_MSG_DATA, 1, "x");
    void *rc;
    pthread_join(taker, &rc);
    CHECK_EQ((intptr_t)rc, 1);
    feeder_delete(&feeder);
}

static int take_inside(lbm_context_t *ctx, const void *clientd)
{
    struct recorder *r = (struct recorder *)clientd;
    um_batch_t *batch;
    r->sqn = um_collector_take((um_collector_t *)r->source_clientd, 0, 1000, &batch) == -1 ? lbm_errnum() : 0;
    lbm_msg_t finished = {.type = LBM_MSG_DATA, .data = "", .sequence_number = r->sqn};
    return recorder_cb(NULL, &finished, r);
}

TEST(bad_uses_are_refused)
{
    TEST_NEEDS_NET();
    struct feeder feeder = feeder_new(0);
    um_batch_t *batch;
    um_collector_stats_t stats;
    lbm_rcv_t *rcv;
    lbm_topic_t *topic;
    lbm_event_queue_t *evq;
    CHECK_EQ(um_collector_create(NULL, 0), -1);
    CHECK_EQ(um_collector_create_ex(&feeder.collector, 0, 4), -1);
    CHECK_CONTAINS(lbm_errmsg(), "on_full 4");
    CHECK_EQ(um_collector_take(NULL, 0, 0, &batch), -1);
    CHECK_EQ(um_collector_take(feeder.collector, 0, 0, NULL), -1);
    CHECK_EQ(um_collector_take(feeder.collector, 0, -2, &batch), -1);
    CHECK_CONTAINS(lbm_errmsg(), "timeout_ms -2");
    CHECK_EQ(um_collector_stats(NULL, &stats), -1);
    CHECK_EQ(um_collector_fd(NULL), -1);
    CHECK_EQ(um_collector_dropped(NULL, "S", &stats.dropped), -1);
    CHECK_EQ(um_collector_dropped(feeder.collector, NULL, &stats.dropped), -1);
    CHECK_EQ(um_collector_dropped(feeder.collector, "S", NULL), -1);
    CHECK_EQ(um_collector_wake(NULL), -1);
    CHECK_EQ(um_collector_delete(NULL), -1);
    CHECK_EQ(um_object_counts(NULL), -1);
    um_batch_release(NULL);
    MUST(lbm_rcv_topic_lookup(&topic, feeder.ctx, "T", NULL));
    CHECK_EQ(lbm_rcv_create(&rcv, feeder.ctx, topic, um_collector_rcv_cb, NULL, NULL), -1);
    CHECK_CONTAINS(lbm_errmsg(), "live collector");
    MUST(lbm_event_queue_create(&evq, NULL, NULL, NULL));
    CHECK_EQ(lbm_rcv_create(&rcv, feeder.ctx, topic, um_collector_rcv_cb, feeder.collector, evq), -1);
    CHECK_CONTAINS(lbm_errmsg(), "evq: must be NULL");
    MUST(lbm_event_queue_delete(evq));
    struct recorder inside = RECORDER_INIT;
    inside.source_clientd = feeder.collector;
    MUST(lbm_schedule_timer(feeder.ctx, take_inside, &inside, NULL, 0));
    CHECK(recorder_wait(&inside, LBM_MSG_DATA, 1));
    CHECK_EQ(inside.sqn, LBM_EOP);
    feeder_delete(&feeder);
}

/* ---- without memory ---- */

static atomic_long fail_in = -1;

static bool fail_hook(size_t size)
{
    return atomic_load(&fail_in) >= 0 && atomic_fetch_sub(&fail_in, 1) == 0;
}

static int feed_growing(void *arg)
{
    struct feeding *feeding = arg;
    static char data[3000];
    feeding->msg->pub.data = data;
    feeding->msg->pub.len = sizeof data;
    for (uint32_t i = 0; i < 200; i++) {
        feeding->msg->pub.sequence_number = i;
        snprintf(feeding->msg->pub.topic_name, sizeof feeding->msg->pub.topic_name, "T%u", i % 40);
        um_collector_rcv_cb(feeding->feeder->rcv, &feeding->msg->pub, feeding->feeder->collector);
    }
    return 0;
}

/* One life of a collector: 200 messages of 40 topics in three batches. Returns how many payload messages came out. */
static long life_of_a_collector(struct feeder *feeder, struct feeding *feeding, um_collector_stats_t *stats,
                                size_t max_bytes, int on_full)
{
    if (um_collector_create_ex(&feeder->collector, max_bytes, on_full) != 0) {
        return -1;
    }
    MUST(um_loop_call(feeder->ctx->loop, feed_growing, feeding));
    long data = 0;
    for (int i = 0, rc = 0; i < 8; i++) {
        um_batch_t *batch;
        rc = um_collector_take(feeder->collector, i < 2 ? 60 : 0, 0, &batch);
        for (size_t k = 0; rc == 1 && k < batch->count; k++) {
            data += batch->records[k].type == LBM_MSG_DATA;
        }
        um_batch_release(rc == 1 ? batch : NULL);
    }
    MUST(um_collector_stats(feeder->collector, stats));
    MUST(um_collector_delete(feeder->collector));
    return data;
}

static void survive(int on_full, size_t max_bytes)
{
    struct feeder feeder = feeder_new(0);
    MUST(um_collector_delete(feeder.collector));
    struct um_msg *msg = um_msg_create("S", "T");
    struct feeding feeding = {&feeder, msg};
    long n = 0;
    for (bool reached = true; reached && n < 10000; n++) {
        um_collector_stats_t stats = {0};
        atomic_store(&fail_in, n);
        um_mem_set_fail_hook(fail_hook);
        long data = life_of_a_collector(&feeder, &feeding, &stats, max_bytes, on_full);
        reached = atomic_load(&fail_in) < 0;
        um_mem_set_fail_hook(NULL);
        if (data >= 0 && on_full == UM_ON_FULL_PAUSE) {
            CHECK_EQ(data, stats.messages);
            CHECK_EQ(stats.messages + stats.dropped, 200);
            CHECK_EQ(stats.queued_messages, 0);
        } else if (data >= 0) {
            /* What was dropped before it was gathered is not among the messages, what had to go later is. */
            CHECK((uint64_t)data + stats.conflated + stats.dropped >= stats.messages);
            CHECK((uint64_t)data + stats.conflated + stats.dropped + stats.queued_messages >= 200);
        }
    }
    CHECK(n > 60);
    um_object_counts_t counts;
    MUST(um_object_counts(&counts));
    CHECK_EQ(counts.collectors + counts.batches, 0);
    um_msg_release(msg);
    feeder.collector = NULL;
    feeder_delete(&feeder);
}

TEST(every_failed_allocation_is_survived_and_every_message_accounted_for)
{
    TEST_NEEDS_NET();
    survive(UM_ON_FULL_PAUSE, 0);
}

TEST(every_failed_allocation_is_survived_when_the_oldest_goes)
{
    TEST_NEEDS_NET();
    survive(UM_ON_FULL_DROP_OLDEST, 100000);
}

TEST(every_failed_allocation_is_survived_when_messages_are_conflated)
{
    TEST_NEEDS_NET();
    survive(UM_ON_FULL_CONFLATE, 100000);
}

/* ---- over TCP ---- */

struct pair {
    lbm_context_t *here, *there;
    lbm_src_t *src;
    lbm_rcv_t *rcv;
    um_collector_t *collector;
};

static struct pair pair_new(const char *topic, size_t max_bytes)
{
    struct pair pair = {.here = net_context(), .there = net_context()};
    MUST(um_collector_create(&pair.collector, max_bytes));
    pair.rcv = net_receiver(pair.here, topic, NULL, um_collector_rcv_cb, pair.collector, NULL);
    pair.src = net_source(pair.there, topic);
    MUST(um_src_wait_receivers(pair.src, 1, WAIT_MS));
    MUST(um_rcv_wait_ready(pair.rcv, 1, WAIT_MS));
    return pair;
}

static void pair_delete(struct pair *pair)
{
    if (pair->rcv != NULL) {
        MUST(lbm_rcv_delete(pair->rcv));
    }
    MUST(um_collector_delete(pair->collector));
    MUST(lbm_src_delete(pair->src));
    MUST(lbm_context_delete(pair->here));
    MUST(lbm_context_delete(pair->there));
}

struct sending {
    lbm_src_t *src;
    uint32_t count;
    size_t len;
};

static void *send_counted(void *arg)
{
    struct sending *sending = arg;
    char data[1024] = {0};
    for (uint32_t i = 0; i < sending->count; i++) {
        memcpy(data, &i, sizeof i);
        MUST(lbm_src_send(sending->src, data, sending->len, LBM_SRC_BLOCK));
    }
    MUST(lbm_src_flush(sending->src));
    return NULL;
}

/* Takes until `count` messages have come, in order and complete; -1 otherwise. `pause_ns` after each batch. */
static long take_counted(um_collector_t *collector, uint32_t count, size_t len, size_t max_messages, long pause_ns)
{
    uint32_t next = 0;
    while (next < count) {
        um_batch_t *batch;
        if (um_collector_take(collector, max_messages, WAIT_MS, &batch) != 1) {
            fprintf(stderr, "nothing came after %u messages\n", next);
            return -1;
        }
        for (size_t i = 0; i < batch->count; i++) {
            const um_record_t *r = &batch->records[i];
            uint32_t number;
            if (r->type != LBM_MSG_DATA) {
                continue;
            }
            memcpy(&number, batch->data + r->offset, sizeof number);
            if (number != next || r->sequence_number != next || r->length != len) {
                fprintf(stderr, "message %u: number %u sqn %u length %u\n", next, number, r->sequence_number,
                        r->length);
                um_batch_release(batch);
                return -1;
            }
            next++;
        }
        um_batch_release(batch);
        if (pause_ns > 0) {
            nanosleep(&(struct timespec){0, pause_ns}, NULL);
        }
    }
    return next;
}

TEST(messages_and_events_of_a_source_arrive_in_order)
{
    TEST_NEEDS_NET();
    struct pair pair = pair_new("ordered", 0);
    struct sending sending = {pair.src, 50000, 64};
    pthread_t sender;
    pthread_create(&sender, NULL, send_counted, &sending);
    CHECK_EQ(take_counted(pair.collector, sending.count, sending.len, 0, 0), sending.count);
    pthread_join(sender, NULL);
    um_collector_stats_t stats;
    MUST(um_collector_stats(pair.collector, &stats));
    CHECK_EQ(stats.messages, 50000);
    CHECK_EQ(stats.taken, 50001); /* BOS */
    CHECK_EQ(stats.dropped + stats.pauses, 0);
    CHECK_EQ(um_collector_delete(pair.collector), -1);
    CHECK_EQ(lbm_errnum(), LBM_EOP);
    CHECK_CONTAINS(lbm_errmsg(), "1 receivers");
    pair_delete(&pair);
}

TEST(the_end_of_a_source_is_a_record)
{
    TEST_NEEDS_NET();
    struct pair pair = pair_new("ended", 0);
    char source[128];
    MUST(lbm_src_send(pair.src, "last", 4, LBM_MSG_FLUSH));
    MUST(lbm_src_delete(pair.src));
    int types[8], seen = 0;
    while (seen < 3) {
        um_batch_t *batch;
        CHECK_EQ(um_collector_take(pair.collector, 0, WAIT_MS, &batch), 1);
        for (size_t i = 0; i < batch->count && seen < 8; i++) {
            types[seen++] = batch->records[i].type;
            snprintf(source, sizeof source, "%s", batch->sources[batch->records[i].source]);
        }
        um_batch_release(batch);
    }
    CHECK_EQ(types[0], LBM_MSG_BOS);
    CHECK_EQ(types[1], LBM_MSG_DATA);
    CHECK_EQ(types[2], LBM_MSG_EOS);
    CHECK_CONTAINS(source, "TCP:127.0.0.1:");
    pair.src = net_source(pair.there, "ended");
    pair_delete(&pair);
}

TEST(a_slow_taker_over_tcp_loses_nothing)
{
    TEST_NEEDS_NET();
    struct pair pair = pair_new("slow", 256 * 1024);
    struct sending sending = {pair.src, 20000, 1000};
    pthread_t sender;
    pthread_create(&sender, NULL, send_counted, &sending);
    CHECK_EQ(take_counted(pair.collector, sending.count, sending.len, 500, 2000000), sending.count);
    pthread_join(sender, NULL);
    um_collector_stats_t stats;
    MUST(um_collector_stats(pair.collector, &stats));
    CHECK(stats.pauses > 0);
    CHECK_EQ(stats.dropped, 0);
    pair_delete(&pair);
}

/* Waits until the collector has held the session: then nothing grows any more. */
static bool wait_paused(um_collector_t *collector)
{
    um_collector_stats_t stats = {0};
    for (int i = 0; i < WAIT_MS && stats.pauses == 0; i++) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
        MUST(um_collector_stats(collector, &stats));
    }
    return stats.pauses > 0;
}

TEST(what_waits_is_bounded_and_the_source_feels_it)
{
    TEST_NEEDS_NET();
    struct pair pair = pair_new("bounded", 256 * 1024);
    char data[1000] = {0};
    long accepted = 0;
    for (int refused = 0; refused < 20;) { /* in a row: buffers of the kernel may still grow */
        if (lbm_src_send(pair.src, data, sizeof data, LBM_SRC_NONBLOCK) == 0) {
            CHECK(++accepted < 1000000);
            refused = 0;
        } else {
            CHECK_EQ(lbm_errnum(), LBM_EWOULDBLOCK);
            CHECK(wait_paused(pair.collector));
            refused++;
            nanosleep(&(struct timespec){0, 10000000}, NULL);
        }
    }
    um_collector_stats_t stats;
    MUST(um_collector_stats(pair.collector, &stats));
    CHECK(stats.queued_bytes <= 256 * 1024 + 2 * 256 * 1024); /* the bound and one receive buffer */
    CHECK(stats.messages < (uint64_t)accepted);
    long taken = 0;
    while (taken < accepted) {
        um_batch_t *batch;
        CHECK_EQ(um_collector_take(pair.collector, 0, WAIT_MS, &batch), 1);
        for (size_t i = 0; i < batch->count; i++) {
            taken += batch->records[i].type == LBM_MSG_DATA;
        }
        um_batch_release(batch);
    }
    CHECK_EQ(taken, accepted);
    pair_delete(&pair);
}

TEST(another_receiver_of_the_topic_goes_on_when_the_full_one_is_deleted)
{
    TEST_NEEDS_NET();
    struct pair pair = pair_new("shared", 64 * 1024);
    struct recorder r = RECORDER_INIT;
    lbm_rcv_t *other = net_recording_receiver(pair.here, "shared", &r);
    struct sending sending = {pair.src, 20000, 1000};
    pthread_t sender;
    pthread_create(&sender, NULL, send_counted, &sending);
    CHECK(wait_paused(pair.collector));
    MUST(lbm_rcv_delete(pair.rcv));
    pair.rcv = NULL;
    pthread_join(sender, NULL);
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 20000 - 5000));
    MUST(lbm_rcv_delete(other));
    pair_delete(&pair);
}

TEST(a_held_source_may_end_and_its_receiver_may_go)
{
    TEST_NEEDS_NET();
    struct pair pair = pair_new("held", 64 * 1024);
    struct sending sending = {pair.src, 2000, 1000};
    send_counted(&sending);
    CHECK(wait_paused(pair.collector));
    MUST(lbm_src_delete(pair.src));
    um_batch_t *batch;
    bool ended = false;
    while (!ended) {
        CHECK_EQ(um_collector_take(pair.collector, 100, WAIT_MS, &batch), 1);
        ended = batch->records[batch->count - 1].type == LBM_MSG_EOS;
        um_batch_release(batch);
    }
    pair.src = net_source(pair.there, "held");
    pair_delete(&pair);
}

/* The final advertisement comes by another way than the messages, which wait for the collector. */
TEST(f38_a_withdrawn_source_whose_session_is_left_unread_is_heard_to_its_end)
{
    TEST_NEEDS_NET();
    enum { COUNT = 900 };
    struct pair pair = pair_new("unread", 64 * 1024);
    MUST(lbm_src_delete(pair.src));
    pair.src = net_withdrawn_source(pair.there, "unread", "tcp");
    MUST(um_src_wait_receivers(pair.src, 1, WAIT_MS));
    struct sending sending = {pair.src, COUNT, 1000};
    send_counted(&sending);
    CHECK(wait_paused(pair.collector));
    lbm_src_t *other = net_source(pair.there, "keeps the session"); /* or the connection would say that it ends */
    MUST(lbm_src_delete(pair.src));
    pair.src = other;
    nanosleep(&(struct timespec){1, 0}, NULL); /* much longer than a source is waited for that sends nothing */
    CHECK_EQ(take_counted(pair.collector, COUNT, 1000, 0, 0), COUNT);
    pair_delete(&pair);
}

/* One of several sequential contexts that feed a collector: the test decides which of them gets on. */
struct lane {
    lbm_context_t *ctx, *there;
    lbm_src_t *src;
    lbm_rcv_t *rcv;
    pthread_t sender;
    struct sending sending;
};

static void lane_open(struct lane *lane, const char *topic, um_collector_t *collector)
{
    lane->ctx = net_sequential_context();
    lane->there = net_context();
    lane->rcv = net_receiver(lane->ctx, topic, NULL, um_collector_rcv_cb, collector, NULL);
    lane->src = net_source(lane->there, topic);
    lane->sending = (struct sending){lane->src, 10000, 1000};
}

static void lane_close(struct lane *lane)
{
    MUST(lbm_rcv_delete(lane->rcv));
    MUST(lbm_src_delete(lane->src));
    MUST(lbm_context_delete(lane->ctx));
    MUST(lbm_context_delete(lane->there));
}

/* Runs the context until its source is known, or the collector has held sessions so many times. */
static bool lane_run_until(struct lane *lane, um_collector_t *collector, uint64_t pauses)
{
    um_collector_stats_t stats = {0};
    for (int i = 0; i < WAIT_MS; i++) {
        MUST(lbm_context_process_events(lane->ctx, 1));
        MUST(um_collector_stats(collector, &stats));
        if (pauses == 0 ? um_receiver_ready_sources(lane->rcv) > 0 : stats.pauses >= pauses) {
            return true;
        }
    }
    return false;
}

static uint32_t take_all(um_collector_t *collector)
{
    um_batch_t *batch;
    uint32_t messages = 0;
    while (um_collector_take(collector, 0, 0, &batch) == 1) {
        for (size_t i = 0; i < batch->count; i++) {
            messages += batch->records[i].type == LBM_MSG_DATA;
        }
        um_batch_release(batch);
    }
    return messages;
}

TEST(f15_a_collector_fed_by_two_contexts_releases_the_sessions_of_both)
{
    TEST_NEEDS_NET();
    struct lane lanes[2];
    um_collector_t *collector;
    MUST(um_collector_create(&collector, 64 * 1024));
    for (int i = 0; i < 2; i++) {
        lane_open(&lanes[i], i == 0 ? "first" : "second", collector);
        CHECK(lane_run_until(&lanes[i], collector, 0));
    }
    for (int i = 0; i < 2; i++) {
        pthread_create(&lanes[i].sender, NULL, send_counted, &lanes[i].sending);
    }
    CHECK(lane_run_until(&lanes[0], collector, 1)); /* both sources are held now */
    CHECK(lane_run_until(&lanes[1], collector, 2));
    uint32_t messages = take_all(collector);        /* both contexts are told */
    CHECK(lane_run_until(&lanes[0], collector, 3)); /* and the first has filled it again before the second looks */
    for (int i = 0; i < 5; i++) {
        MUST(lbm_context_process_events(lanes[1].ctx, 0));
    }
    for (int i = 0; i < WAIT_MS && messages < 20000; i++) {
        messages += take_all(collector);
        MUST(lbm_context_process_events(lanes[0].ctx, 1));
        MUST(lbm_context_process_events(lanes[1].ctx, 1));
    }
    CHECK_EQ(messages, 20000);
    for (int i = 0; i < 2; i++) {
        pthread_join(lanes[i].sender, NULL);
        lane_close(&lanes[i]);
    }
    MUST(um_collector_delete(collector));
}

/* The context hears that there is room in the very pass in which it looks whether the withdrawn source still sends. */
TEST(f38_a_late_context_reads_what_a_withdrawn_source_has_sent_before_it_ends_it)
{
    TEST_NEEDS_NET();
    enum { COUNT = 900 };
    struct lane lane;
    um_collector_t *collector;
    MUST(um_collector_create(&collector, 64 * 1024));
    lane_open(&lane, "late", collector);
    MUST(lbm_src_delete(lane.src));
    lane.src = net_withdrawn_source(lane.there, "late", "tcp");
    CHECK(lane_run_until(&lane, collector, 0));
    lane.sending = (struct sending){lane.src, COUNT, 1000};
    send_counted(&lane.sending);
    CHECK(lane_run_until(&lane, collector, 1));
    lbm_src_t *other = net_source(lane.there, "keeps the session");
    MUST(lbm_src_delete(lane.src));
    lane.src = other;
    for (int i = 0; i < 20; i++) { /* the advertisement comes; the session is left unread */
        MUST(lbm_context_process_events(lane.ctx, 20));
    }
    uint32_t messages = 0;
    for (int i = 0; i < WAIT_MS && messages < COUNT; i++) {
        if (i < 4) {
            nanosleep(&(struct timespec){0, 300000000}, NULL); /* longer than the source is waited for */
        }
        messages += take_all(collector);
        MUST(lbm_context_process_events(lane.ctx, i < 4 ? 0 : 1));
    }
    CHECK_EQ(messages, COUNT);
    lane_close(&lane);
    MUST(um_collector_delete(collector));
}

TEST(a_wildcard_receiver_gathers_all_its_topics)
{
    TEST_NEEDS_NET();
    lbm_context_t *here = net_context(), *there = net_context();
    um_collector_t *collector;
    lbm_wildcard_rcv_t *wild;
    MUST(um_collector_create(&collector, 0));
    MUST(lbm_wildcard_rcv_create(&wild, here, "^W", NULL, NULL, um_collector_rcv_cb, collector, NULL));
    lbm_src_t *one = net_source(there, "W1"), *two = net_source(there, "W2");
    um_object_counts_t counts;
    MUST(um_object_counts(&counts));
    CHECK_EQ(counts.contexts, 2);
    CHECK_EQ(counts.sources, 2);
    CHECK_EQ(counts.receivers, 1);
    CHECK_EQ(counts.collectors, 1);
    bool begun[2] = {false, false}, data[2] = {false, false};
    while (!data[0] || !data[1]) {
        um_batch_t *batch;
        CHECK_EQ(um_collector_take(collector, 0, WAIT_MS, &batch), 1);
        for (size_t i = 0; i < batch->count; i++) {
            const um_record_t *r = &batch->records[i];
            bool second = strcmp(batch->topics[r->topic], "W2") == 0;
            begun[second] |= r->type == LBM_MSG_BOS;
            data[second] |= r->type == LBM_MSG_DATA;
        }
        um_batch_release(batch);
        if (begun[0] && begun[1] && !data[0] && !data[1]) {
            lbm_rcv_transport_stats_t stats[2];
            int sessions = 2;
            MUST(um_wildcard_rcv_wait_ready(wild, 2, WAIT_MS));
            CHECK_EQ(um_wildcard_rcv_ready(wild), 2);
            CHECK_EQ(um_wildcard_rcv_wait_ready(wild, 3, 10), -1);
            CHECK_EQ(lbm_errnum(), LBM_ETIMEDOUT);
            MUST(um_wildcard_rcv_transport_stats(wild, &sessions, stats));
            CHECK(sessions >= 1 && stats[0].type == LBM_TRANSPORT_STAT_TCP);
            net_send(one, "1");
            net_send(two, "2");
            begun[0] = false;
        }
    }
    CHECK_EQ(um_collector_delete(collector), -1);
    MUST(lbm_wildcard_rcv_delete(wild));
    MUST(um_collector_delete(collector));
    MUST(lbm_src_delete(one));
    MUST(lbm_src_delete(two));
    MUST(lbm_context_delete(here));
    MUST(lbm_context_delete(there));
    MUST(um_object_counts(&counts));
    CHECK_EQ(counts.contexts + counts.sources + counts.receivers + counts.collectors + counts.messages, 0);
}

static int retain_it(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    lbm_msg_t **kept = clientd;
    if (msg->type == LBM_MSG_DATA) {
        MUST(lbm_msg_retain(msg));
        MUST(lbm_msg_retain(msg));
        __atomic_store_n(kept, msg, __ATOMIC_RELEASE);
    }
    return 0;
}

TEST(retained_messages_are_counted_and_gathering_goes_on_beside_them)
{
    TEST_NEEDS_NET();
    struct pair pair = pair_new("retained", 0);
    lbm_msg_t *kept = NULL;
    lbm_rcv_t *other = net_receiver(pair.here, "retained", NULL, retain_it, &kept, NULL);
    MUST(um_rcv_wait_ready(other, 1, WAIT_MS));
    net_send(pair.src, "keep");
    while (__atomic_load_n(&kept, __ATOMIC_ACQUIRE) == NULL) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    um_object_counts_t counts;
    MUST(um_object_counts(&counts));
    CHECK_EQ(counts.messages, 1);
    MUST(lbm_msg_delete(kept));
    MUST(um_object_counts(&counts));
    CHECK_EQ(counts.messages, 1);
    MUST(lbm_rcv_delete(other)); /* the message outlives its receiver */
    MUST(lbm_msg_delete(kept));
    MUST(um_object_counts(&counts));
    CHECK_EQ(counts.messages, 0);
    net_send(pair.src, "next");
    size_t got = 0;
    while (got < 2) {
        um_batch_t *batch;
        CHECK_EQ(um_collector_take(pair.collector, 0, WAIT_MS, &batch), 1);
        for (size_t i = 0; i < batch->count; i++) {
            if (batch->records[i].type == LBM_MSG_DATA) {
                CHECK(memcmp(batch->data + batch->records[i].offset, got == 0 ? "keep" : "next", 4) == 0);
                CHECK_STR(batch->topics[batch->records[i].topic], "retained");
                got++;
            }
        }
        um_batch_release(batch);
    }
    pair_delete(&pair);
}
