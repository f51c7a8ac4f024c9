/* Collectors: gathering and taking, splitting, waking, the bound with and without
 * back-pressure, names, life of batches; unit and over TCP. */
#include <poll.h>
#include <unistd.h>

#include "um_test_rcv.h"

#include "base/um_clock.h"
#include "base/um_mem.h"
#include "core/collector.h"
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

static struct feeder feeder_new(size_t max_bytes)
{
    struct feeder feeder = {.ctx = net_context()};
    feeder.rcv = net_receiver(feeder.ctx, "by hand", NULL, nothing, NULL, NULL);
    MUST(um_collector_create(&feeder.collector, max_bytes));
    return feeder;
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

TEST(without_back_pressure_the_newest_is_dropped_and_one_record_tells)
{
    TEST_NEEDS_NET();
    struct feeder feeder = feeder_new(3 * (sizeof(um_record_t) + 4));
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
    CHECK(record_is(batch, 3, LBM_MSG_UNRECOVERABLE_LOSS, 3, ""));
    um_batch_release(batch);
    feed(&feeder, "T", "S", LBM_MSG_DATA, 10,
         "larger than everything that fits, and still accepted when it is alone: "
         "a bound that can never be met would stop everything for good. ...........");
    CHECK_EQ(um_collector_take(feeder.collector, 0, 0, &batch), 1);
    CHECK_EQ(batch->records[0].sequence_number, 10);
    um_batch_release(batch);
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
    int rc = um_collector_take(arg, 0, -1, &batch);
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
    CHECK_EQ(um_collector_take(NULL, 0, 0, &batch), -1);
    CHECK_EQ(um_collector_take(feeder.collector, 0, 0, NULL), -1);
    CHECK_EQ(um_collector_take(feeder.collector, 0, -2, &batch), -1);
    CHECK_CONTAINS(lbm_errmsg(), "timeout_ms -2");
    CHECK_EQ(um_collector_stats(NULL, &stats), -1);
    CHECK_EQ(um_collector_fd(NULL), -1);
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
static long life_of_a_collector(struct feeder *feeder, struct feeding *feeding, um_collector_stats_t *stats)
{
    if (um_collector_create(&feeder->collector, 0) != 0) {
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

TEST(every_failed_allocation_is_survived_and_every_message_accounted_for)
{
    TEST_NEEDS_NET();
    struct feeder feeder = feeder_new(0);
    MUST(um_collector_delete(feeder.collector));
    struct um_msg *msg = um_msg_create("S", "T");
    struct feeding feeding = {&feeder, msg};
    long n = 0;
    for (bool reached = true; reached && n < 10000; n++) {
        um_collector_stats_t stats = {0};
        atomic_store(&fail_in, n);
        um_mem_set_fail_hook(fail_hook);
        long data = life_of_a_collector(&feeder, &feeding, &stats);
        reached = atomic_load(&fail_in) < 0;
        um_mem_set_fail_hook(NULL);
        if (data >= 0) {
            CHECK_EQ(data, stats.messages);
            CHECK_EQ(stats.messages + stats.dropped, 200);
            CHECK_EQ(stats.queued_messages, 0);
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
    for (uint64_t give_up = um_clock_ns() + 2 * UM_NS_PER_SEC; um_clock_ns() < give_up && accepted < 100000;) {
        if (lbm_src_send(pair.src, data, sizeof data, LBM_SRC_NONBLOCK) == 0) {
            accepted++;
        } else if (wait_paused(pair.collector)) {
            nanosleep(&(struct timespec){0, 10000000}, NULL);
            if (lbm_src_send(pair.src, data, sizeof data, LBM_SRC_NONBLOCK) != 0) {
                break;
            }
            accepted++;
        }
    }
    CHECK(wait_paused(pair.collector));
    CHECK_EQ(lbm_src_send(pair.src, data, sizeof data, LBM_SRC_NONBLOCK), -1);
    CHECK_EQ(lbm_errnum(), LBM_EWOULDBLOCK);
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
