/* Unicast immediate messages between contexts: whom they reach, requests among them, how they are addressed and what is
 * refused. Connections are in uim_connections_test.c. */
#include "core/um_context.h"
#include "core/um_object_counts.h"
#include "core/um_uim.h"
#include "core/um_xsp.h"
#include "um_test_uim.h"
#include "um_test_xsp.h"

/* ---- whom they reach ---- */

TEST(uim_topic_wildcard_fallback_and_topicless_reach_their_callback_in_the_addressed_context_alone)
{
    TEST_NEEDS_NET();
    lbm_context_t *sender = open_context(NULL, NULL), *ctx[2] = {open_context(NULL, NULL), open_context(NULL, NULL)};
    struct recorder topic[2] = {RECORDER_INIT, RECORDER_INIT}, wild[2] = {RECORDER_INIT, RECORDER_INIT},
                    other[2] = {RECORDER_INIT, RECORDER_INIT}, bare[2] = {RECORDER_INIT, RECORDER_INIT};
    lbm_rcv_t *rcv[2];
    lbm_wildcard_rcv_t *w[2];
    for (int i = 0; i < 2; i++) {
        rcv[i] = net_recording_receiver(ctx[i], "quote.a", &topic[i]);
        MUST(lbm_wildcard_rcv_create(&w[i], ctx[i], "^quote", NULL, NULL, recorder_cb, &wild[i], NULL));
        MUST(lbm_context_rcv_immediate_topic_msgs(ctx[i], immediate_cb, &other[i], NULL));
        MUST(lbm_context_rcv_immediate_msgs(ctx[i], immediate_cb, &bare[i], NULL));
    }
    struct target target = target_of(ctx[0]);
    MUST(send_text(sender, target.text, "quote.a", "one", LBM_SRC_BLOCK));
    MUST(send_text(sender, target.text, "quote.b", "two", LBM_SRC_NONBLOCK));
    MUST(send_text(sender, target.text, "order.c", "three", 0));
    MUST(send_text(sender, target.text, NULL, "four", 0));
    CHECK(recorder_wait(&bare[0], LBM_MSG_DATA, 1));
    CHECK(recorder_reads(&topic[0], "0=one "));
    CHECK(recorder_reads(&wild[0], "1=two "));
    CHECK(recorder_reads(&other[0], "2=three "));
    CHECK(recorder_reads(&bare[0], "3=four "));
    CHECK_STR(topic[0].source, target_of(sender).text);
    CHECK_EQ(topic[0].flags, LBM_MSG_FLAG_IMMEDIATE);
    CHECK_EQ(bare[0].flags, LBM_MSG_FLAG_IMMEDIATE | LBM_MSG_FLAG_TOPICLESS);
    MUST(send_text(sender, target_of(ctx[1]).text, "quote.a", "five", 0));
    CHECK(recorder_wait(&topic[1], LBM_MSG_DATA, 1));
    CHECK(recorder_reads(&topic[1], "0=five ")); /* numbers are of the destination */
    CHECK(recorder_reads(&bare[1], ""));
    CHECK(recorder_reads(&topic[0], "0=one "));
    for (int i = 0; i < 2; i++) {
        MUST(lbm_rcv_delete(rcv[i]));
        MUST(lbm_wildcard_rcv_delete(w[i]));
        MUST(lbm_context_delete(ctx[i]));
    }
    MUST(lbm_context_delete(sender));
}

TEST(uim_event_queues_get_them)
{
    TEST_NEEDS_NET();
    lbm_context_t *sender = open_context(NULL, NULL), *ctx = open_context(NULL, NULL);
    lbm_event_queue_t *evq;
    struct recorder bare = RECORDER_INIT;
    MUST(lbm_event_queue_create(&evq, NULL, NULL, NULL));
    MUST(lbm_context_rcv_immediate_msgs(ctx, immediate_cb, &bare, evq));
    MUST(send_text(sender, target_of(ctx).text, NULL, "a", 0));
    CHECK(recorder_dispatch(&bare, evq, LBM_MSG_DATA, 1));
    CHECK(pthread_equal(bare.thread, pthread_self()));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
    MUST(lbm_event_queue_delete(evq));
}

TEST(uim_source_target_reaches_the_publisher)
{
    TEST_NEEDS_NET();
    lbm_context_t *pub = open_context(NULL, NULL), *sub = open_context(NULL, NULL);
    struct recorder data = RECORDER_INIT, bare = RECORDER_INIT;
    MUST(lbm_context_rcv_immediate_msgs(pub, immediate_cb, &bare, NULL));
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "late_join", "1"));
    MUST(lbm_src_topic_alloc(&topic, pub, "t", attr));
    MUST(lbm_src_create(&src, pub, topic, NULL, NULL, NULL));
    lbm_rcv_t *rcv = net_recording_receiver(sub, "t", &data);
    MUST(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000));
    net_send(src, "x");
    CHECK(recorder_wait(&data, LBM_MSG_DATA, 1));
    struct target with_index, session;
    snprintf(with_index.text, sizeof with_index.text, "SOURCE:%s", data.source);
    session = with_index;
    *strchr(session.text, '[') = '\0';
    MUST(send_text(sub, with_index.text, NULL, "a", 0));
    MUST(send_text(sub, session.text, NULL, "b", 0));
    CHECK(recorder_wait(&bare, LBM_MSG_DATA, 2));
    CHECK(recorder_reads(&bare, "0=a 1=b "));

    CHECK_EQ(send_text(sub, "SOURCE:TCP:127.0.0.1:9:1234abcd[7]", NULL, "c", 0), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_CONTAINS(lbm_errmsg(), "SOURCE:TCP:127.0.0.1:9:1234abcd[7]\": no such source is known");
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_src_topic_attr_delete(attr));
    MUST(lbm_context_delete(sub));
    MUST(lbm_context_delete(pub));
}

TEST(uim_source_without_a_request_port_is_an_error_with_its_remedy)
{
    TEST_NEEDS_NET();
    lbm_context_t *pub = open_context(NULL, NULL), *sub = open_context(NULL, NULL);
    struct recorder data = RECORDER_INIT;
    lbm_src_t *src = net_source(pub, "t");
    lbm_rcv_t *rcv = net_recording_receiver(sub, "t", &data);
    MUST(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000));
    net_send(src, "x");
    CHECK(recorder_wait(&data, LBM_MSG_DATA, 1));
    struct target target;
    snprintf(target.text, sizeof target.text, "SOURCE:%s", data.source);
    CHECK_EQ(send_text(sub, target.text, NULL, "a", 0), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_CONTAINS(lbm_errmsg(), "set late_join 1 there");
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(sub));
    MUST(lbm_context_delete(pub));
}

static pthread_t context_thread;

static int thread_cb(lbm_context_t *ctx, lbm_msg_t *msg, void *clientd)
{
    context_thread = pthread_self();
    atomic_fetch_add((atomic_int *)clientd, 1);
    return 0;
}

/* Also when the sessions of the topic are on an XSP, whose own request port takes none. */
TEST(uim_come_on_the_context_thread_and_not_at_the_port_of_an_xsp)
{
    TEST_NEEDS_NET();
    watch_log("Core-10138-110");
    lbm_context_t *sender = open_context(NULL, NULL);
    struct mapper mapper = {0};
    lbm_context_t *ctx = net_context_with(mapping_attr(map, &mapper));
    mapper.xsps[0] = xsp_with(ctx, "embedded", NULL, NULL);
    mapper.count = 1;
    struct recorder r = RECORDER_INIT;
    atomic_int calls = 0;
    lbm_src_t *src = net_source(sender, "t");
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "t", &r);
    MUST(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000));
    net_send(src, "x");
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 1));
    pthread_t xsp_thread = r.thread;
    MUST(lbm_context_rcv_immediate_msgs(ctx, thread_cb, &calls, NULL));
    MUST(send_text(sender, target_of(ctx).text, NULL, "a", 0));
    MUST(send_text(sender, target_of(ctx).text, "t", "b", 0));
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 2));
    CHECK(wait_above(&calls, 1));
    CHECK(!pthread_equal(xsp_thread, context_thread));
    CHECK(pthread_equal(r.thread, context_thread));

    struct um_rcv_lane *lane = um_xsp_lane(ctx, mapper.xsps[0]);
    struct target target;
    snprintf(target.text, sizeof target.text, "TCP:127.0.0.1:%u", um_unicast_port(um_xsp_unicast(lane)));
    MUST(send_text(sender, target.text, NULL, "c", 0));
    for (int i = 0; i < HANG_SECONDS * 1000 && hits() == 0; i++) {
        sleep_ms(1);
    }
    CHECK_CONTAINS(log_line, "can not send unicast immediate messages to transport threads. Source 127.0.0.1:");
    CHECK_EQ(atomic_load(&calls), 1);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_xsp_delete(mapper.xsps[0]));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
    MUST(lbm_log(NULL, NULL));
}

/* ---- requests ---- */

static int answer(lbm_msg_t *msg, const char *text)
{
    return msg->type == LBM_MSG_REQUEST && msg->response != NULL
               ? lbm_send_response(msg->response, text, strlen(text), LBM_SRC_NONBLOCK)
               : -1;
}

static int answering_cb(lbm_context_t *ctx, lbm_msg_t *msg, void *clientd)
{
    MUST(answer(msg, clientd));
    return 0;
}

static int answering_rcv_cb(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    if (msg->type == LBM_MSG_REQUEST) {
        MUST(answer(msg, clientd));
    }
    return 0;
}

static int response_cb(lbm_request_t *req, lbm_msg_t *msg, void *clientd)
{
    return recorder_cb(NULL, msg, clientd);
}

/* By whatever takes the request, and by each of several; nothing is left. */
TEST(uim_requests_are_answered_by_all_who_get_them)
{
    TEST_NEEDS_NET();
    lbm_context_t *sender = open_context(NULL, NULL), *ctx = open_context(NULL, NULL);
    lbm_event_queue_t *evq;
    MUST(lbm_event_queue_create(&evq, NULL, NULL, NULL));
    lbm_rcv_t *a = net_receiver(ctx, "two", NULL, answering_rcv_cb, "a", NULL);
    lbm_rcv_t *b = net_receiver(ctx, "two", NULL, answering_rcv_cb, "b", evq);
    lbm_wildcard_rcv_t *w;
    MUST(lbm_wildcard_rcv_create(&w, ctx, "^wild", NULL, NULL, answering_rcv_cb, "w", NULL));
    MUST(lbm_context_rcv_immediate_topic_msgs(ctx, answering_cb, "t", evq));
    MUST(lbm_context_rcv_immediate_msgs(ctx, answering_cb, "n", NULL));
    static const char *const topics[] = {"two", "wild.1", "other", NULL};
    static const int answers[] = {2, 1, 1, 1};
    struct target target = target_of(ctx);
    for (int i = 0; i < 4; i++) {
        lbm_request_t *req;
        struct recorder r = RECORDER_INIT;
        MUST(lbm_unicast_immediate_request(&req, sender, target.text, topics[i], "q", 1, response_cb, &r, NULL, 0));
        for (int n = 0; n < HANG_SECONDS * 1000 && recorder_count(&r, LBM_MSG_RESPONSE) < answers[i]; n++) {
            lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL);
            sleep_ms(1);
        }
        CHECK_EQ(recorder_count(&r, LBM_MSG_RESPONSE), answers[i]);
        MUST(lbm_request_delete(req));
    }
    MUST(lbm_rcv_delete(a));
    MUST(lbm_rcv_delete(b));
    MUST(lbm_wildcard_rcv_delete(w));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
    MUST(lbm_event_queue_delete(evq));
    CHECK_EQ(um_object_count_of(UM_OBJECT_RESPONSE), 0);
    CHECK_EQ(um_object_count_of(UM_OBJECT_REQUEST), 0);
}

TEST(uim_requests_that_cannot_be_sent_leave_nothing)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = open_context(NULL, NULL);
    lbm_request_t *req = (lbm_request_t *)&req;
    struct recorder r = RECORDER_INIT;
    CHECK_EQ(lbm_unicast_immediate_request(&req, ctx, "nonsense", NULL, "q", 1, response_cb, &r, NULL, 0), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_CONTAINS(lbm_errmsg(), "lbm_unicast_immediate_request: target \"nonsense\"");
    CHECK(req == (lbm_request_t *)&req); /* untouched, as lbm.h says */
    CHECK_EQ(lbm_unicast_immediate_request(&req, ctx, target_of(ctx).text, NULL, "q", 1, NULL, &r, NULL, 0), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    char topic[247];
    static char data[UM_UIM_MAX_LEN];
    memset(topic, 'n', 246);
    topic[246] = '\0';
    CHECK_EQ(lbm_unicast_immediate_request(&req, ctx, target_of(ctx).text, topic, data, sizeof data, response_cb, &r,
                                           NULL, 0),
             -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_CONTAINS(lbm_errmsg(), "together they must be at most");
    CHECK_EQ(um_object_count_of(UM_OBJECT_REQUEST), 0);
    MUST(lbm_context_delete(ctx));
}

/* A stranger asks in the name of others: nobody here wants it, so nobody is connected to. */
TEST(uim_requests_that_nobody_wants_open_no_connection)
{
    TEST_NEEDS_NET();
    lbm_context_t *sender = open_context(NULL, NULL), *ctx = open_context(NULL, NULL);
    lbm_request_t *req;
    struct recorder r = RECORDER_INIT, bare = RECORDER_INIT;
    MUST(lbm_unicast_immediate_request(&req, sender, target_of(ctx).text, "t", "q", 1, response_cb, &r, NULL, 0));
    MUST(lbm_context_rcv_immediate_msgs(ctx, immediate_cb, &bare, NULL));
    MUST(send_text(sender, target_of(ctx).text, NULL, "after", 0));
    CHECK(recorder_wait(&bare, LBM_MSG_DATA, 1));
    CHECK_EQ(layer_of(ctx).outgoing, 0);
    MUST(lbm_request_delete(req));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
}

/* ---- limits and errors ---- */

TEST(uim_bad_targets_are_errors_that_show_them_and_what_they_must_be)
{
    TEST_NEEDS_NET();
    static const char *const bad[] = {NULL,
                                      "",
                                      "TCP",
                                      "TCP:",
                                      "TCP:1.2.3.4",
                                      "TCP:1.2.3.4:",
                                      "TCP:1.2.3.4:0",
                                      "TCP:1.2.3.4:65536",
                                      "TCP:1.2.3.4:14391x",
                                      "TCP:1.2.3.4:14391:1",
                                      "TCP:0.0.0.0:14391",
                                      "TCP:300.2.3.4:14391",
                                      "TCP:host:14391",
                                      "TCP:4294967296:1.2.3.4:14391",
                                      "TCP:-1:1.2.3.4:14391",
                                      "TCP:1:2:1.2.3.4:14391",
                                      "UDP:1.2.3.4:14391",
                                      "tcp:1.2.3.4:14391",
                                      " TCP:1.2.3.4:14391",
                                      "SOURCE:",
                                      "SOURCE:TCP:1.2.3.4",
                                      "SOURCE:nonsense"};
    lbm_context_t *ctx = open_context(NULL, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_EQ(send_text(ctx, bad[i], NULL, "a", 0), -1);
        CHECK_EQ(lbm_errnum(), LBM_EINVAL);
        CHECK_CONTAINS(lbm_errmsg(), "lbm_unicast_immediate_message: target \"");
        CHECK_CONTAINS(lbm_errmsg(), bad[i] != NULL ? bad[i] : "NULL");
        CHECK_CONTAINS(lbm_errmsg(), "must be TCP:ip:port, TCP:domain:ip:port or SOURCE:source-string");
    }
    CHECK_EQ(layer_of(ctx).outgoing, 0);
    MUST(lbm_context_delete(ctx));
}

TEST(uim_of_every_allowed_length_arrive_and_longer_ones_are_refused)
{
    TEST_NEEDS_NET();
    lbm_context_t *sender = open_context(NULL, NULL), *ctx = open_context(NULL, NULL);
    struct recorder bare = RECORDER_INIT, other = RECORDER_INIT;
    MUST(lbm_context_rcv_immediate_msgs(ctx, immediate_cb, &bare, NULL));
    MUST(lbm_context_rcv_immediate_topic_msgs(ctx, immediate_cb, &other, NULL));
    struct target target = target_of(ctx);
    static char data[UM_UIM_MAX_LEN + 1];
    char topic[248];
    memset(topic, 'n', sizeof topic);
    MUST(lbm_unicast_immediate_message(sender, target.text, NULL, data, UM_UIM_MAX_LEN, 0));
    MUST(lbm_unicast_immediate_message(sender, target.text, NULL, NULL, 0, 0));
    CHECK_EQ(lbm_unicast_immediate_message(sender, target.text, NULL, data, UM_UIM_MAX_LEN + 1, 0), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_CONTAINS(lbm_errmsg(), "len 65265");
    CHECK_CONTAINS(lbm_errmsg(), "at most 65264");
    CHECK_EQ(lbm_unicast_immediate_message(sender, target.text, NULL, NULL, 1, 0), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    size_t sum = UM_UIM_MAX_LEN;
    int messages = 0;
    for (size_t len = 200; len <= 246; len++) { /* where a message has no room for all its headers any more */
        topic[len] = '\0';
        MUST(lbm_unicast_immediate_message(sender, target.text, topic, data, UM_UIM_MAX_LEN, 0));
        topic[len] = 'n';
        sum += UM_UIM_MAX_LEN;
        messages++;
    }
    topic[247] = '\0';
    CHECK_EQ(send_text(sender, target.text, topic, "a", 0), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(send_text(sender, target.text, "", "a", 0), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK(recorder_wait(&bare, LBM_MSG_DATA, 2));
    CHECK(recorder_wait(&other, LBM_MSG_DATA, messages));
    CHECK_EQ(bare.bytes + other.bytes, sum);
    CHECK_EQ(strlen(other.topic), 246);
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
}

TEST(uim_to_nowhere_are_accepted_and_told_of_in_the_log)
{
    TEST_NEEDS_NET();
    watch_log("Core-5927-1");
    lbm_context_t *ctx = open_context(NULL, NULL);
    MUST(send_text(ctx, "TCP:127.0.0.1:9", NULL, "a", 0));
    for (int i = 0; i < HANG_SECONDS * 1000 && hits() == 0; i++) {
        sleep_ms(1);
    }
    CHECK_CONTAINS(log_line, "Couldn't establish immediate message channel for destination 127.0.0.1:9");
    CHECK_EQ(log_level, LBM_LOG_ERR);
    MUST(lbm_context_delete(ctx));
    MUST(lbm_log(NULL, NULL));
}
