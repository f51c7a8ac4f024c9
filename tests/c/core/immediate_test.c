/* Who gets immediate messages that came in, whatever they came by: receivers of the
 * topic, else wildcard receivers, else the functions of the context. */
#include <string.h>

#include "base/um_mem.h"
#include "core/um_context.h"
#include "core/um_immediate.h"
#include "um_test_log.h"
#include "um_test_rcv.h"

struct delivery {
    lbm_context_t *ctx;
    struct um_immediate immediate;
    enum um_immediate_fate fate;
};

static int deliver_on_loop(void *arg)
{
    struct delivery *d = arg;
    d->fate = um_immediate_deliver(d->ctx->immediates, &d->immediate);
    return 0;
}

static enum um_immediate_fate deliver(lbm_context_t *ctx, const char *topic, size_t topic_len, const char *data)
{
    struct delivery d = {.ctx = ctx,
                         .immediate = {.source = "TCP:10.1.2.3:14391",
                                       .topic = (const uint8_t *)topic,
                                       .topic_len = topic_len,
                                       .data = (const uint8_t *)data,
                                       .len = strlen(data),
                                       .sqn = 7}};
    MUST(um_loop_call(ctx->loop, deliver_on_loop, &d));
    return d.fate;
}

static enum um_immediate_fate to_topic(lbm_context_t *ctx, const char *topic, const char *data)
{
    return deliver(ctx, topic, strlen(topic), data);
}

static enum um_immediate_fate topicless(lbm_context_t *ctx, const char *data)
{
    return deliver(ctx, NULL, 0, data);
}

static int immediate_cb(lbm_context_t *ctx, lbm_msg_t *msg, void *clientd)
{
    (void)ctx;
    return recorder_cb(NULL, msg, clientd);
}

TEST(message_without_a_topic_goes_to_its_function_alone)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct recorder bare = RECORDER_INIT, topic = RECORDER_INIT, receiver = RECORDER_INIT;
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "t", &receiver);
    MUST(lbm_context_rcv_immediate_msgs(ctx, immediate_cb, &bare, NULL));
    MUST(lbm_context_rcv_immediate_topic_msgs(ctx, immediate_cb, &topic, NULL));
    CHECK_EQ(topicless(ctx, "a"), UM_IMMEDIATE_TO_FUNCTION);
    CHECK(recorder_reads(&bare, "7=a "));
    CHECK(recorder_reads(&topic, ""));
    CHECK(recorder_reads(&receiver, ""));
    CHECK_STR(bare.source, "TCP:10.1.2.3:14391");
    CHECK_STR(bare.topic, "");
    CHECK_EQ(bare.flags, LBM_MSG_FLAG_IMMEDIATE | LBM_MSG_FLAG_TOPICLESS);
    CHECK(!pthread_equal(bare.thread, pthread_self()));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_context_delete(ctx));
}

TEST(message_to_a_topic_goes_to_all_its_receivers_and_to_no_wildcard)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct recorder first = RECORDER_INIT, second = RECORDER_INIT, wild = RECORDER_INIT, topic = RECORDER_INIT;
    lbm_rcv_t *a = net_recording_receiver(ctx, "quote.a", &first);
    lbm_rcv_t *b = net_recording_receiver(ctx, "quote.a", &second);
    lbm_wildcard_rcv_t *w;
    MUST(lbm_wildcard_rcv_create(&w, ctx, "^quote", NULL, NULL, recorder_cb, &wild, NULL));
    MUST(lbm_context_rcv_immediate_topic_msgs(ctx, immediate_cb, &topic, NULL));
    CHECK_EQ(to_topic(ctx, "quote.a", "x"), UM_IMMEDIATE_TO_RECEIVERS);
    CHECK(recorder_reads(&first, "7=x "));
    CHECK(recorder_reads(&second, "7=x "));
    CHECK(recorder_reads(&wild, ""));
    CHECK(recorder_reads(&topic, ""));
    CHECK_STR(first.topic, "quote.a");
    CHECK_EQ(first.flags, LBM_MSG_FLAG_IMMEDIATE);
    MUST(lbm_rcv_delete(a));
    MUST(lbm_rcv_delete(b));
    CHECK_EQ(to_topic(ctx, "quote.a", "y"), UM_IMMEDIATE_TO_WILDCARDS);
    CHECK(recorder_reads(&wild, "7=y "));
    MUST(lbm_wildcard_rcv_delete(w));
    CHECK_EQ(to_topic(ctx, "quote.a", "z"), UM_IMMEDIATE_TO_FUNCTION);
    CHECK(recorder_reads(&topic, "7=z "));
    CHECK_STR(topic.topic, "quote.a");
    MUST(lbm_context_delete(ctx));
}

TEST(every_wildcard_receiver_that_matches_gets_it_and_no_topic_is_made)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct recorder all = RECORDER_INIT, quotes = RECORDER_INIT, orders = RECORDER_INIT;
    lbm_wildcard_rcv_t *w[3];
    MUST(lbm_wildcard_rcv_create(&w[0], ctx, ".*", NULL, NULL, recorder_cb, &all, NULL));
    MUST(lbm_wildcard_rcv_create(&w[1], ctx, "^quote", NULL, NULL, recorder_cb, &quotes, NULL));
    MUST(lbm_wildcard_rcv_create(&w[2], ctx, "^order", NULL, NULL, recorder_cb, &orders, NULL));
    CHECK_EQ(to_topic(ctx, "quote.b", "x"), UM_IMMEDIATE_TO_WILDCARDS);
    CHECK(recorder_reads(&all, "7=x "));
    CHECK(recorder_reads(&quotes, "7=x "));
    CHECK(recorder_reads(&orders, ""));
    CHECK_EQ(ctx->rcv_topics.count, 0);
    for (int i = 0; i < 3; i++) {
        MUST(lbm_wildcard_rcv_delete(w[i]));
    }
    MUST(lbm_context_delete(ctx));
}

static lbm_context_t *context_of_receiver;

static int asking_cb(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    char text[64];
    size_t len = sizeof text;
    context_of_receiver = lbm_context_from_rcv(rcv);
    *(int *)clientd = lbm_rcv_str_getopt(rcv, "use_otr", text, &len);
    return 0;
}

TEST(receiver_handed_to_a_wildcards_function_may_be_asked)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_wildcard_rcv_t *w;
    int rc = 1;
    MUST(lbm_wildcard_rcv_create(&w, ctx, ".*", NULL, NULL, asking_cb, &rc, NULL));
    CHECK_EQ(to_topic(ctx, "any", "x"), UM_IMMEDIATE_TO_WILDCARDS);
    CHECK_EQ(rc, -1); /* there is no topic whose options it could have */
    CHECK(context_of_receiver == NULL);
    MUST(lbm_wildcard_rcv_delete(w));
    MUST(lbm_context_delete(ctx));
}

TEST(event_queues_get_copies_and_purge_them_with_their_objects)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_event_queue_t *evq;
    struct recorder bare = RECORDER_INIT, topic = RECORDER_INIT, receiver = RECORDER_INIT, wild = RECORDER_INIT;
    MUST(lbm_event_queue_create(&evq, NULL, NULL, NULL));
    lbm_rcv_t *rcv = net_receiver(ctx, "t", NULL, recorder_cb, &receiver, evq);
    lbm_wildcard_rcv_t *w;
    MUST(lbm_wildcard_rcv_create(&w, ctx, "^w", NULL, NULL, recorder_cb, &wild, evq));
    MUST(lbm_context_rcv_immediate_msgs(ctx, immediate_cb, &bare, evq));
    MUST(lbm_context_rcv_immediate_topic_msgs(ctx, immediate_cb, &topic, evq));
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(topicless(ctx, "a"), UM_IMMEDIATE_TO_FUNCTION);
        CHECK_EQ(to_topic(ctx, "t", "b"), UM_IMMEDIATE_TO_RECEIVERS);
        CHECK_EQ(to_topic(ctx, "w1", "c"), UM_IMMEDIATE_TO_WILDCARDS);
        CHECK_EQ(to_topic(ctx, "u", "d"), UM_IMMEDIATE_TO_FUNCTION);
        CHECK(recorder_reads(&bare, i == 0 ? "" : "7=a "));
        if (i == 0) {
            CHECK(recorder_dispatch(&topic, evq, LBM_MSG_DATA, 1));
            CHECK(recorder_reads(&bare, "7=a "));
            CHECK(recorder_reads(&receiver, "7=b "));
            CHECK(recorder_reads(&wild, "7=c "));
            CHECK(recorder_reads(&topic, "7=d "));
        }
    }
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_wildcard_rcv_delete(w));
    MUST(lbm_context_rcv_immediate_topic_msgs(ctx, NULL, NULL, NULL));
    MUST(lbm_context_delete(ctx));
    CHECK_EQ(lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL), 0);
    CHECK(recorder_reads(&bare, "7=a "));
    CHECK(recorder_reads(&topic, "7=d "));
    MUST(lbm_event_queue_delete(evq));
}

static lbm_msg_t *kept[3];
static int kept_count;

static int keeping_cb(lbm_context_t *ctx, lbm_msg_t *msg, void *clientd)
{
    MUST(lbm_msg_retain(msg));
    kept[kept_count++] = msg;
    return 0;
}

TEST(retained_messages_stay_as_they_were)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    kept_count = 0;
    MUST(lbm_context_rcv_immediate_msgs(ctx, keeping_cb, NULL, NULL));
    MUST(lbm_context_rcv_immediate_topic_msgs(ctx, keeping_cb, NULL, NULL));
    char data[] = "one";
    CHECK_EQ(topicless(ctx, data), UM_IMMEDIATE_TO_FUNCTION);
    memcpy(data, "two", 3);
    CHECK_EQ(to_topic(ctx, "second", data), UM_IMMEDIATE_TO_FUNCTION);
    memcpy(data, "six", 3);
    CHECK_EQ(topicless(ctx, data), UM_IMMEDIATE_TO_FUNCTION);
    MUST(lbm_context_delete(ctx));
    static const char *const texts[] = {"one", "two", "six"}, *const topics[] = {"", "second", ""};
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(kept[i]->len, 3);
        CHECK(memcmp(kept[i]->data, texts[i], 3) == 0);
        CHECK_STR(kept[i]->topic_name, topics[i]);
        MUST(lbm_msg_delete(kept[i]));
    }
}

static int replacing_cb(lbm_context_t *ctx, lbm_msg_t *msg, void *clientd)
{
    MUST(lbm_context_rcv_immediate_msgs(ctx, immediate_cb, clientd, NULL));
    return 0;
}

TEST(function_may_replace_itself)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct recorder r = RECORDER_INIT;
    MUST(lbm_context_rcv_immediate_msgs(ctx, replacing_cb, &r, NULL));
    CHECK_EQ(topicless(ctx, "a"), UM_IMMEDIATE_TO_FUNCTION);
    CHECK_EQ(topicless(ctx, "b"), UM_IMMEDIATE_TO_FUNCTION);
    CHECK(recorder_reads(&r, "7=b "));
    MUST(lbm_context_delete(ctx));
}

TEST(functions_of_the_options_are_called)
{
    TEST_NEEDS_NET();
    struct recorder bare = RECORDER_INIT, topic = RECORDER_INIT;
    lbm_context_attr_t *attr = net_context_attr();
    lbm_context_rcv_immediate_msgs_func_t of_bare = {.func = immediate_cb, .clientd = &bare},
                                          of_topic = {.func = immediate_cb, .clientd = &topic};
    MUST(lbm_context_attr_setopt(attr, "immediate_message_receiver_function", &of_bare, sizeof of_bare));
    MUST(lbm_context_attr_setopt(attr, "immediate_message_topic_receiver_function", &of_topic, sizeof of_topic));
    lbm_context_t *ctx = net_context_with(attr);
    CHECK_EQ(topicless(ctx, "a"), UM_IMMEDIATE_TO_FUNCTION);
    CHECK_EQ(to_topic(ctx, "t", "b"), UM_IMMEDIATE_TO_FUNCTION);
    CHECK(recorder_reads(&bare, "7=a "));
    CHECK(recorder_reads(&topic, "7=b "));
    MUST(lbm_context_delete(ctx));
}

TEST(a_collector_gathers_messages_of_both_functions)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    um_collector_t *collector;
    um_batch_t *batch;
    MUST(um_collector_create(&collector, 0));
    MUST(lbm_context_rcv_immediate_msgs(ctx, um_collector_immediate_cb, collector, NULL));
    MUST(lbm_context_rcv_immediate_topic_msgs(ctx, um_collector_immediate_cb, collector, NULL));
    CHECK_EQ(topicless(ctx, "a"), UM_IMMEDIATE_TO_FUNCTION);
    CHECK_EQ(to_topic(ctx, "t", "bc"), UM_IMMEDIATE_TO_FUNCTION);
    CHECK_EQ(um_collector_take(collector, 0, 0, &batch), 1);
    CHECK_EQ(batch->count, 2);
    CHECK_STR(batch->topics[batch->records[0].topic], "");
    CHECK_STR(batch->topics[batch->records[1].topic], "t");
    CHECK_STR(batch->sources[batch->records[0].source], "TCP:10.1.2.3:14391");
    CHECK_EQ(batch->records[0].flags, LBM_MSG_FLAG_IMMEDIATE | LBM_MSG_FLAG_TOPICLESS);
    CHECK_EQ(batch->data_len, 3);
    CHECK(memcmp(batch->data, "abc", 3) == 0);
    um_batch_release(batch);
    MUST(lbm_context_rcv_immediate_msgs(ctx, NULL, NULL, NULL));
    MUST(lbm_context_rcv_immediate_topic_msgs(ctx, NULL, NULL, NULL));
    MUST(um_collector_delete(collector));
    MUST(lbm_context_delete(ctx));
}

TEST(what_nobody_wants_and_topics_that_cannot_be_are_dropped_and_counted)
{
    TEST_NEEDS_NET();
    watch_log("Core-20221-");
    lbm_context_t *ctx = net_context();
    static char name[65536];
    memset(name, 'n', sizeof name);
    struct recorder r = RECORDER_INIT;
    for (int i = 0; i < 1000; i++) {
        CHECK_EQ(topicless(ctx, "a"), UM_IMMEDIATE_NOBODY);
        CHECK_EQ(to_topic(ctx, "t", "a"), UM_IMMEDIATE_NOBODY);
    }
    CHECK(log_hits < 100);
    MUST(lbm_context_rcv_immediate_topic_msgs(ctx, immediate_cb, &r, NULL));
    CHECK_EQ(deliver(ctx, name, sizeof name, "a"), UM_IMMEDIATE_MALFORMED);
    CHECK_EQ(deliver(ctx, name, 247, "a"), UM_IMMEDIATE_MALFORMED);
    CHECK_EQ(deliver(ctx, name, 0, "a"), UM_IMMEDIATE_MALFORMED);
    CHECK_EQ(deliver(ctx, "a\0b", 3, "a"), UM_IMMEDIATE_MALFORMED);
    CHECK_EQ(deliver(ctx, name, 246, "a"), UM_IMMEDIATE_TO_FUNCTION);
    uint64_t counts[UM_IMMEDIATE_FATES];
    um_immediate_counts(ctx->immediates, counts);
    CHECK_EQ(counts[UM_IMMEDIATE_NOBODY], 2000);
    CHECK_EQ(counts[UM_IMMEDIATE_MALFORMED], 4);
    CHECK_EQ(counts[UM_IMMEDIATE_TO_FUNCTION], 1);
    MUST(lbm_context_delete(ctx));
    MUST(lbm_log(NULL, NULL));
}
