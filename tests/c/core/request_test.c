/* Requests and responses through the public interface: over each transport that carries
 * them, to one and to several responders, through event queues, kept and sent elsewhere
 * as bytes, late, large, without room, without a port. */
#include <semaphore.h>

#include "um_test.h"
#include "um_test_log.h"
#include "um_test_net.h"
#include "um_test_rcv.h"

static bool log_seen(void)
{
    pthread_mutex_lock(&log_lock);
    bool seen = log_hits > 0;
    pthread_mutex_unlock(&log_lock);
    return seen;
}

/* ---- what a requester sees ---- */

struct answers {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int count;
    size_t bytes;
    char last[64], source[128];
    int type;
    size_t topic_len;
    unsigned sqn;
    bool wrong; /* not the bytes that were sent */
    lbm_request_t *delete_in_callback;
    lbm_msg_t *kept;
    bool keep;
};

#define ANSWERS_INIT                                                                                                   \
    {                                                                                                                  \
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER                                         \
    }

static int on_answer(lbm_request_t *req, lbm_msg_t *msg, void *clientd)
{
    struct answers *a = clientd;
    pthread_mutex_lock(&a->lock);
    a->bytes += msg->len;
    snprintf(a->last, sizeof a->last, "%.*s", (int)(msg->len < 60 ? msg->len : 60), msg->data);
    snprintf(a->source, sizeof a->source, "%s", msg->source);
    a->topic_len = strlen(msg->topic_name);
    a->type = msg->type;
    a->sqn = msg->sequence_number;
    for (size_t i = 0; msg->len > 60 && i < msg->len; i++) {
        a->wrong |= msg->data[i] != (char)(i * 7);
    }
    if (a->keep && a->kept == NULL) {
        a->wrong |= lbm_msg_retain(msg) != 0;
        a->kept = msg;
    }
    if (a->delete_in_callback != NULL) {
        a->wrong |= a->delete_in_callback != req || lbm_request_delete(req) != 0;
        a->delete_in_callback = NULL;
    }
    a->count++;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
    return 0;
}

static bool answers_wait(struct answers *a, int count)
{
    pthread_mutex_lock(&a->lock);
    bool ok = wait_for_count(&a->changed, &a->lock, &a->count, count) && !a->wrong;
    if (!ok) {
        fprintf(stderr, "%d of %d answers, wrong %d\n", a->count, count, a->wrong);
    }
    pthread_mutex_unlock(&a->lock);
    return ok;
}

static int answers_count(struct answers *a)
{
    pthread_mutex_lock(&a->lock);
    int count = a->count;
    pthread_mutex_unlock(&a->lock);
    return count;
}

/* ---- what a responder does ---- */

struct responder {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int requests;
    int answers;           /* to each request, in the callback */
    const char *text;      /* of an answer; NULL: the request's own bytes */
    lbm_response_t *taken; /* of the last request, when `take` */
    lbm_msg_t *kept;       /* when `keep` */
    bool take, keep, failed;
    char topic[256];
};

#define RESPONDER_INIT(how)                                                                                            \
    {                                                                                                                  \
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, how                                    \
    }

static int on_request(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv;
    struct responder *r = clientd;
    if (msg->type != LBM_MSG_REQUEST) {
        return 0;
    }
    pthread_mutex_lock(&r->lock);
    r->failed |= msg->response == NULL;
    for (int i = 0; i < r->answers; i++) {
        const char *data = r->text != NULL ? r->text : msg->data;
        size_t len = r->text != NULL ? strlen(r->text) : msg->len;
        r->failed |= lbm_send_response(msg->response, data, len, LBM_SRC_NONBLOCK) == -1;
    }
    if (r->take) {
        r->taken = msg->response;
        msg->response = NULL;
    }
    if (r->keep) {
        r->failed |= lbm_msg_retain(msg) != 0;
        r->kept = msg;
    }
    snprintf(r->topic, sizeof r->topic, "%s", msg->topic_name);
    r->requests++;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    return 0;
}

static bool requests_wait(struct responder *r, int count)
{
    pthread_mutex_lock(&r->lock);
    bool ok = wait_for_count(&r->changed, &r->lock, &r->requests, count) && !r->failed;
    pthread_mutex_unlock(&r->lock);
    return ok;
}

/* ---- both ---- */

static lbm_src_t *source_over(lbm_context_t *ctx, const char *name, const char *transport)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", transport));
    MUST(lbm_src_topic_alloc(&topic, ctx, name, attr));
    MUST(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL));
    lbm_src_topic_attr_delete(attr);
    return src;
}

static lbm_request_t *ask(lbm_src_t *src, const char *text, struct answers *a)
{
    lbm_request_t *req;
    MUST(lbm_send_request(&req, src, text, strlen(text), on_answer, a, NULL, LBM_MSG_FLUSH | LBM_SRC_BLOCK));
    return req;
}

static bool ready(lbm_rcv_t *rcv, int sources)
{
    return um_rcv_wait_ready(rcv, sources, HANG_SECONDS * 1000) == 0;
}

static lbm_ulong_t retained_or_open(void)
{
    um_object_counts_t counts;
    memset(&counts, 0, sizeof counts);
    MUST(um_object_counts(&counts));
    return (lbm_ulong_t)counts.messages + (lbm_ulong_t)counts.requests + (lbm_ulong_t)counts.responses;
}

static bool answered_over(const char *transport)
{
    struct answers a = ANSWERS_INIT;
    struct responder r = RESPONDER_INIT(.answers = 1);
    lbm_context_t *asks = net_context(), *responds = net_context();
    lbm_src_t *src = source_over(asks, "rr", transport);
    lbm_rcv_t *rcv = net_receiver(responds, "rr", NULL, on_request, &r, NULL);
    bool ok = ready(rcv, 1);
    lbm_request_t *req = ask(src, "how late is it", &a);
    ok = ok && answers_wait(&a, 1) && requests_wait(&r, 1);
    ok = ok && strcmp(a.last, "how late is it") == 0 && a.type == LBM_MSG_RESPONSE && a.topic_len == 0 &&
         strncmp(a.source, "TCP:127.0.0.1:", 14) == 0 && a.sqn == 0 && strcmp(r.topic, "rr") == 0;
    MUST(lbm_request_delete(req));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(responds));
    MUST(lbm_context_delete(asks));
    return ok && retained_or_open() == 0;
}

TEST(a_request_over_tcp_is_answered)
{
    TEST_NEEDS_NET();
    CHECK(answered_over("tcp"));
}

TEST(a_request_over_lbtrm_is_answered)
{
    TEST_NEEDS_NET();
    CHECK(answered_over("lbt-rm"));
}

TEST(a_request_over_lbtru_is_answered)
{
    TEST_NEEDS_NET();
    CHECK(answered_over("lbt-ru"));
}

TEST(a_request_over_lbtipc_is_answered)
{
    TEST_NEEDS_NET();
    CHECK(answered_over("lbt-ipc"));
}

TEST(lbtsmx_carries_no_requests_and_says_so)
{
    TEST_NEEDS_NET();
    struct answers a = ANSWERS_INIT;
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = source_over(ctx, "rr", "lbt-smx");
    lbm_request_t *req = (lbm_request_t *)&a;
    CHECK_EQ(lbm_send_request(&req, src, "x", 1, on_answer, &a, NULL, 0), -1);
    CHECK_EQ(lbm_errnum(), LBM_EOPNOTSUPP);
    CHECK(req == (lbm_request_t *)&a && retained_or_open() == 0); /* untouched, as lbm.h says */
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

TEST(two_responders_with_three_responses_each_are_six_callbacks_of_one_request)
{
    TEST_NEEDS_NET();
    struct answers a = ANSWERS_INIT;
    struct responder r[2] = {RESPONDER_INIT(.answers = 3), RESPONDER_INIT(.answers = 3)};
    lbm_context_t *asks = net_context(), *responds[2] = {net_context(), net_context()};
    lbm_src_t *src = net_source(asks, "rr");
    lbm_rcv_t *rcv[2];
    for (int i = 0; i < 2; i++) {
        rcv[i] = net_receiver(responds[i], "rr", NULL, on_request, &r[i], NULL);
        CHECK(ready(rcv[i], 1));
    }
    lbm_request_t *req = ask(src, "everybody?", &a);
    CHECK(answers_wait(&a, 6));
    MUST(lbm_request_delete(req));
    for (int i = 0; i < 2; i++) {
        MUST(lbm_rcv_delete(rcv[i]));
        MUST(lbm_context_delete(responds[i]));
    }
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(asks));
    CHECK_EQ(a.count, 6);
    CHECK_EQ(retained_or_open(), 0);
}

TEST(two_receivers_of_one_context_have_a_response_each_and_share_its_numbers)
{
    TEST_NEEDS_NET();
    struct answers a = ANSWERS_INIT;
    struct responder r[2] = {RESPONDER_INIT(.take = true), RESPONDER_INIT(.keep = true)};
    lbm_context_t *asks = net_context(), *responds = net_context();
    lbm_src_t *src = net_source(asks, "rr");
    lbm_rcv_t *rcv[2];
    for (int i = 0; i < 2; i++) {
        rcv[i] = net_receiver(responds, "rr", NULL, on_request, &r[i], NULL);
        CHECK(ready(rcv[i], 1));
    }
    lbm_request_t *req = ask(src, "who", &a);
    CHECK(requests_wait(&r[0], 1) && requests_wait(&r[1], 1));
    CHECK(r[0].taken != NULL && r[1].kept->response != NULL && r[0].taken != r[1].kept->response);
    CHECK(lbm_send_response(r[0].taken, "I", 1, 0) != -1);
    CHECK(answers_wait(&a, 1));
    CHECK_EQ(a.sqn, 0);
    MUST(lbm_response_delete(r[0].taken));
    CHECK(lbm_send_response(r[1].kept->response, "too", 3, 0) != -1);
    CHECK(answers_wait(&a, 2));
    CHECK_EQ(a.sqn, 1);
    MUST(lbm_msg_delete(r[1].kept));
    MUST(lbm_request_delete(req));
    MUST(lbm_rcv_delete(rcv[0]));
    MUST(lbm_rcv_delete(rcv[1]));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(responds));
    MUST(lbm_context_delete(asks));
    CHECK_EQ(retained_or_open(), 0);
}

TEST(requests_and_responses_go_through_event_queues)
{
    TEST_NEEDS_NET();
    struct answers a = ANSWERS_INIT;
    struct responder r = RESPONDER_INIT(.answers = 2);
    lbm_event_queue_t *evq;
    MUST(lbm_event_queue_create(&evq, NULL, NULL, NULL));
    lbm_context_t *asks = net_context(), *responds = net_context();
    lbm_src_t *src = net_source(asks, "rr");
    lbm_rcv_t *rcv = net_receiver(responds, "rr", NULL, on_request, &r, evq);
    CHECK(ready(rcv, 1));
    lbm_request_t *req;
    MUST(lbm_send_request(&req, src, "q", 1, on_answer, &a, evq, LBM_MSG_FLUSH));
    for (int i = 0; i < HANG_SECONDS * 1000 && answers_count(&a) < 2; i++) {
        if (lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL) == 0) {
            nanosleep(&(struct timespec){0, 1000000}, NULL);
        }
    }
    CHECK_EQ(answers_count(&a), 2);
    CHECK(!r.failed && r.requests == 1);
    MUST(lbm_request_delete(req));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(responds));
    MUST(lbm_context_delete(asks));
    MUST(lbm_event_queue_delete(evq));
    CHECK_EQ(retained_or_open(), 0);
}

static void fill(char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        data[i] = (char)(i * 7);
    }
}

TEST(a_response_of_five_megabytes_arrives)
{
    TEST_NEEDS_NET();
    enum { LEN = 5 * 1024 * 1024 };
    struct answers a = ANSWERS_INIT;
    struct responder r = RESPONDER_INIT(.take = true);
    lbm_context_t *asks = net_context(), *responds = net_context();
    lbm_src_t *src = net_source(asks, "rr");
    lbm_rcv_t *rcv = net_receiver(responds, "rr", NULL, on_request, &r, NULL);
    CHECK(ready(rcv, 1));
    lbm_request_t *req = ask(src, "all of it", &a);
    CHECK(requests_wait(&r, 1));
    char *data = malloc(LEN);
    fill(data, LEN);
    CHECK(lbm_send_response(r.taken, data, LEN, LBM_SRC_BLOCK) != -1);
    CHECK(answers_wait(&a, 1));
    CHECK_EQ(a.bytes, LEN);
    CHECK(lbm_send_response(r.taken, data, LEN, LBM_SRC_NONBLOCK) !=
          -1); /* whole, as there was room for its beginning */
    CHECK(answers_wait(&a, 2));
    free(data);
    MUST(lbm_response_delete(r.taken));
    MUST(lbm_request_delete(req));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(responds));
    MUST(lbm_context_delete(asks));
    CHECK_EQ(retained_or_open(), 0);
}

TEST(a_request_of_many_fragments_is_one_request_with_one_response)
{
    TEST_NEEDS_NET();
    enum { LEN = 300000 };
    struct answers a = ANSWERS_INIT;
    struct responder r = RESPONDER_INIT(.answers = 1);
    lbm_context_t *asks = net_context(), *responds = net_context();
    lbm_src_t *src = source_over(asks, "rr", "lbt-rm");
    lbm_rcv_t *rcv = net_receiver(responds, "rr", NULL, on_request, &r, NULL);
    CHECK(ready(rcv, 1));
    char *data = malloc(LEN);
    fill(data, LEN);
    lbm_request_t *req;
    MUST(lbm_send_request(&req, src, data, LEN, on_answer, &a, NULL, LBM_MSG_FLUSH));
    CHECK(answers_wait(&a, 1));
    CHECK(requests_wait(&r, 1)); /* it counts after it has answered */
    CHECK(a.bytes == LEN && r.requests == 1);
    free(data);
    MUST(lbm_request_delete(req));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(responds));
    MUST(lbm_context_delete(asks));
}

TEST(a_response_after_the_request_was_deleted_is_ignored_and_logged)
{
    TEST_NEEDS_NET();
    struct answers a = ANSWERS_INIT, other = ANSWERS_INIT;
    struct responder r = RESPONDER_INIT(.take = true);
    lbm_context_t *asks = net_context(), *responds = net_context();
    lbm_src_t *src = net_source(asks, "rr");
    lbm_rcv_t *rcv = net_receiver(responds, "rr", NULL, on_request, &r, NULL);
    CHECK(ready(rcv, 1));
    watch_log("Core-5688-3698");
    lbm_request_t *req = ask(src, "first", &a);
    CHECK(requests_wait(&r, 1));
    lbm_response_t *late = r.taken;
    MUST(lbm_request_delete(req));
    req = ask(src, "second", &other);
    CHECK(requests_wait(&r, 2));
    CHECK(lbm_send_response(late, "late", 4, 0) != -1);
    CHECK(lbm_send_response(r.taken, "in time", 7, 0) != -1); /* behind it on the same connection */
    CHECK(answers_wait(&other, 1));
    CHECK_EQ(answers_count(&a), 0);
    CHECK(log_seen());
    um_context_stats_t stats;
    MUST(um_context_stats(asks, &stats));
    CHECK_EQ(stats.responses_unknown, 1);
    MUST(lbm_response_delete(late));
    MUST(lbm_response_delete(r.taken));
    MUST(lbm_request_delete(req));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(responds));
    MUST(lbm_context_delete(asks));
}

TEST(a_request_is_deleted_in_its_own_callback)
{
    TEST_NEEDS_NET();
    struct answers a = ANSWERS_INIT;
    struct responder r = RESPONDER_INIT(.take = true);
    lbm_context_t *asks = net_context(), *responds = net_context();
    lbm_src_t *src = net_source(asks, "rr");
    lbm_rcv_t *rcv = net_receiver(responds, "rr", NULL, on_request, &r, NULL);
    CHECK(ready(rcv, 1));
    pthread_mutex_lock(&a.lock);
    a.delete_in_callback = ask(src, "once", &a);
    pthread_mutex_unlock(&a.lock);
    CHECK(requests_wait(&r, 1));
    for (int i = 0; i < 3; i++) {
        CHECK(lbm_send_response(r.taken, "a", 1, 0) != -1);
    }
    CHECK(answers_wait(&a, 1));
    MUST(lbm_response_delete(r.taken));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(responds));
    MUST(lbm_context_delete(asks));
    CHECK_EQ(a.count, 1);
    CHECK_EQ(retained_or_open(), 0);
}

TEST(a_retained_response_outlives_its_request_and_its_context)
{
    TEST_NEEDS_NET();
    struct answers a = ANSWERS_INIT;
    a.keep = true;
    struct responder r = RESPONDER_INIT(.answers = 1);
    lbm_context_t *asks = net_context(), *responds = net_context();
    lbm_src_t *src = net_source(asks, "rr");
    lbm_rcv_t *rcv = net_receiver(responds, "rr", NULL, on_request, &r, NULL);
    CHECK(ready(rcv, 1));
    lbm_request_t *req = ask(src, "keep this", &a);
    CHECK(answers_wait(&a, 1));
    MUST(lbm_request_delete(req));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(responds));
    MUST(lbm_context_delete(asks));
    CHECK(a.kept->len == 9 && memcmp(a.kept->data, "keep this", 9) == 0);
    MUST(lbm_msg_delete(a.kept));
    CHECK_EQ(retained_or_open(), 0);
}

TEST(requests_and_responses_live_on_without_their_contexts_and_only_wait_to_be_deleted)
{
    TEST_NEEDS_NET();
    struct answers a = ANSWERS_INIT;
    struct responder r = RESPONDER_INIT(.take = true);
    lbm_context_t *asks = net_context(), *responds = net_context();
    lbm_src_t *src = net_source(asks, "rr");
    lbm_rcv_t *rcv = net_receiver(responds, "rr", NULL, on_request, &r, NULL);
    CHECK(ready(rcv, 1));
    watch_log("Core-20213-6");
    lbm_request_t *req = ask(src, "still there?", &a);
    CHECK(requests_wait(&r, 1));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(responds));
    MUST(lbm_context_delete(asks));
    CHECK(log_seen());
    CHECK_EQ(lbm_send_response(r.taken, "no", 2, 0), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    lbm_serialized_response_t *bytes = lbm_serialize_response(r.taken);
    CHECK(bytes != NULL);
    MUST(lbm_serialized_response_delete(bytes));
    MUST(lbm_response_delete(r.taken));
    MUST(lbm_request_delete(req));
    CHECK_EQ(retained_or_open(), 0);
}

TEST(a_response_taken_as_bytes_to_another_context_answers_the_request)
{
    TEST_NEEDS_NET();
    struct answers a = ANSWERS_INIT;
    struct responder r = RESPONDER_INIT(.take = true);
    lbm_context_t *asks = net_context(), *responds = net_context(), *third = net_context();
    lbm_src_t *src = net_source(asks, "rr");
    lbm_rcv_t *rcv = net_receiver(responds, "rr", NULL, on_request, &r, NULL);
    CHECK(ready(rcv, 1));
    lbm_request_t *req = ask(src, "whoever", &a);
    CHECK(requests_wait(&r, 1));
    lbm_serialized_response_t *bytes = lbm_serialize_response(r.taken), copy;
    CHECK(bytes != NULL);
    copy = *bytes;
    MUST(lbm_serialized_response_delete(bytes));
    MUST(lbm_response_delete(r.taken));
    lbm_response_t *resp = lbm_deserialize_response(third, &copy);
    CHECK(resp != NULL);
    CHECK(lbm_send_response(resp, "from C", 6, 0) != -1);
    CHECK(answers_wait(&a, 1));
    CHECK_STR(a.last, "from C");
    MUST(lbm_response_delete(resp));
    memset(&copy, 0, sizeof copy);
    CHECK(lbm_deserialize_response(third, &copy) == NULL);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    MUST(lbm_request_delete(req));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(third));
    MUST(lbm_context_delete(responds));
    MUST(lbm_context_delete(asks));
    CHECK_EQ(retained_or_open(), 0);
}

/* Answers all requests of a batch; returns how many there were, -1: a record is not as it was sent. */
static int answer_batch(lbm_context_t *ctx, const um_batch_t *batch, const char *text)
{
    int answered = 0;
    for (size_t i = 0; i < batch->count; i++) {
        const um_record_t *record = &batch->records[i];
        const unsigned char *payload = batch->data + record->offset;
        lbm_serialized_response_t way_back;
        if (record->type != LBM_MSG_REQUEST) {
            continue;
        }
        if ((record->flags & UM_MSG_FLAG_ANSWERABLE) == 0 || record->length != strlen(text) ||
            memcmp(payload, text, record->length) != 0 ||
            record->offset + record->length + sizeof way_back > batch->data_len) {
            return -1;
        }
        memcpy(&way_back, payload + record->length, sizeof way_back);
        lbm_response_t *resp = lbm_deserialize_response(ctx, &way_back);
        if (resp == NULL || lbm_send_response(resp, "batched", 7, 0) == -1 || lbm_response_delete(resp) != 0) {
            return -1;
        }
        answered++;
    }
    return answered;
}

static void answer_from_a_collector(int on_full)
{
    struct answers a = ANSWERS_INIT;
    lbm_context_t *asks = net_context(), *responds = net_context();
    um_collector_t *collector;
    um_batch_t *batch;
    MUST(um_collector_create_ex(&collector, 0, on_full));
    lbm_src_t *src = net_source(asks, "rr");
    lbm_rcv_t *rcv = net_receiver(responds, "rr", NULL, um_collector_rcv_cb, collector, NULL);
    CHECK(ready(rcv, 1));
    lbm_request_t *req[3] = {ask(src, "what?", &a), ask(src, "what?", &a), ask(src, "what?", &a)};
    int answered = 0, wanted = on_full == UM_ON_FULL_CONFLATE ? 1 : 3;
    while (answered >= 0 && answered < wanted && um_collector_take(collector, 0, HANG_SECONDS * 1000, &batch) == 1) {
        int some = answer_batch(responds, batch, "what?");
        answered = some < 0 ? -1 : answered + some;
        um_batch_release(batch);
    }
    CHECK(answered >= wanted);
    CHECK(answers_wait(&a, answered));
    CHECK_STR(a.last, "batched");
    for (int i = 0; i < 3; i++) {
        MUST(lbm_request_delete(req[i]));
    }
    MUST(lbm_rcv_delete(rcv));
    MUST(um_collector_delete(collector));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(responds));
    MUST(lbm_context_delete(asks));
    CHECK_EQ(retained_or_open(), 0);
}

TEST(a_request_that_a_collector_gathered_is_answered_by_the_bytes_behind_its_payload)
{
    TEST_NEEDS_NET();
    answer_from_a_collector(UM_ON_FULL_PAUSE);
}

TEST(a_request_that_replaced_another_in_a_collector_is_answered)
{
    TEST_NEEDS_NET();
    answer_from_a_collector(UM_ON_FULL_CONFLATE);
}

TEST(a_request_without_a_bound_port_is_sent_with_a_warning_and_cannot_be_answered)
{
    TEST_NEEDS_NET();
    struct answers a = ANSWERS_INIT;
    struct responder r = RESPONDER_INIT(.take = true);
    lbm_context_t *asks = net_lean_context(), *responds = net_context();
    lbm_src_t *src = net_source(asks, "rr");
    lbm_rcv_t *rcv = net_receiver(responds, "rr", NULL, on_request, &r, NULL);
    CHECK(ready(rcv, 1));
    watch_log("Core-5688-3691");
    lbm_request_t *req = ask(src, "deaf", &a);
    CHECK(log_seen());
    watch_log("Core-5988-1");
    CHECK(requests_wait(&r, 1));
    CHECK_EQ(lbm_send_response(r.taken, "?", 1, 0), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    MUST(lbm_response_delete(r.taken));
    MUST(lbm_request_delete(req));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(responds));
    MUST(lbm_context_delete(asks));
}

TEST(a_request_that_nobody_receives_is_open_until_it_is_deleted)
{
    TEST_NEEDS_NET();
    struct answers a = ANSWERS_INIT;
    lbm_context_t *asks = net_context();
    lbm_src_t *src = net_source(asks, "nobody");
    lbm_request_t *req = ask(src, "hello?", &a);
    CHECK_EQ(retained_or_open(), 1);
    MUST(lbm_request_delete(req));
    CHECK_EQ(retained_or_open(), 0);
    CHECK_EQ(answers_count(&a), 0);
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(asks));
}

/* ---- callbacks of two contexts that delete each other's requests ---- */

struct crossing {
    sem_t entered, go, left;
    lbm_request_t *other;
    int rc;
};

static int delete_the_other(lbm_request_t *req, lbm_msg_t *msg, void *clientd)
{
    struct crossing *c = clientd;
    sem_post(&c->entered);
    sem_wait(&c->go);
    c->rc = lbm_request_delete(c->other);
    sem_post(&c->left);
    return 0;
}

static bool passed(sem_t *sem)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += HANG_SECONDS;
    return sem_timedwait(sem, &until) == 0;
}

static lbm_request_t *ask_crossing(lbm_src_t *src, struct crossing *c)
{
    lbm_request_t *req;
    sem_init(&c->entered, 0, 0);
    sem_init(&c->go, 0, 0);
    sem_init(&c->left, 0, 0);
    MUST(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000));
    MUST(lbm_send_request(&req, src, "x", 1, delete_the_other, c, NULL, LBM_MSG_FLUSH));
    REQUIRE(passed(&c->entered));
    return req;
}

TEST(callbacks_that_delete_each_others_requests_do_not_wait_in_a_circle)
{
    TEST_NEEDS_NET();
    struct responder left_r = RESPONDER_INIT(.answers = 1), right_r = RESPONDER_INIT(.answers = 1);
    struct crossing left = {0}, right = {0};
    lbm_context_t *left_ctx = net_context(), *right_ctx = net_context(), *responds = net_context();
    lbm_src_t *left_src = net_source(left_ctx, "left"), *right_src = net_source(right_ctx, "right");
    lbm_rcv_t *left_rcv = net_receiver(responds, "left", NULL, on_request, &left_r, NULL);
    lbm_rcv_t *right_rcv = net_receiver(responds, "right", NULL, on_request, &right_r, NULL);
    right.other = ask_crossing(left_src, &left);
    left.other = ask_crossing(right_src, &right);
    sem_post(&left.go);
    sem_post(&right.go);
    REQUIRE(passed(&left.left) && passed(&right.left));
    CHECK(left.rc == 0 && right.rc == 0);
    MUST(lbm_rcv_delete(left_rcv));
    MUST(lbm_rcv_delete(right_rcv));
    MUST(lbm_src_delete(left_src));
    MUST(lbm_src_delete(right_src));
    MUST(lbm_context_delete(left_ctx));
    MUST(lbm_context_delete(right_ctx));
    MUST(lbm_context_delete(responds));
    CHECK_EQ(retained_or_open(), 0);
}

TEST(senseless_arguments_are_refused_and_leave_no_request)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = net_source(ctx, "rr");
    lbm_request_t *req = (lbm_request_t *)&req;
    CHECK_EQ(lbm_send_request(&req, src, "x", 1, NULL, NULL, NULL, 0), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK(req == (lbm_request_t *)&req && strstr(lbm_errmsg(), "CoreApi-10571-2") != NULL);
    CHECK_EQ(lbm_send_request(NULL, src, "x", 1, on_answer, NULL, NULL, 0), -1);
    CHECK_EQ(lbm_send_request(&req, NULL, "x", 1, on_answer, NULL, NULL, 0), -1);
    CHECK_EQ(lbm_send_request(&req, src, NULL, 1, on_answer, NULL, NULL, 0), -1);
    CHECK_EQ(lbm_request_delete(NULL), -1);
    CHECK_EQ(lbm_send_response(NULL, "x", 1, 0), -1);
    CHECK_EQ(lbm_response_delete(NULL), -1);
    CHECK(lbm_serialize_response(NULL) == NULL && lbm_deserialize_response(ctx, NULL) == NULL);
    CHECK_EQ(lbm_serialized_response_delete(NULL), -1);
    CHECK_EQ(retained_or_open(), 0);
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

/* ---- many ---- */

enum { MANY = 10000, RESPONDERS = 3 };

TEST(ten_thousand_open_requests_are_answered_by_three_responders)
{
    TEST_NEEDS_NET();
    struct answers a = ANSWERS_INIT;
    struct responder r[RESPONDERS] = {RESPONDER_INIT(.answers = 1), RESPONDER_INIT(.answers = 1),
                                      RESPONDER_INIT(.answers = 1)};
    static lbm_request_t *requests[MANY];
    lbm_context_t *asks = net_context(), *responds[RESPONDERS];
    lbm_src_t *src = net_source(asks, "rr");
    lbm_rcv_t *rcv[RESPONDERS];
    for (int i = 0; i < RESPONDERS; i++) { /* which answer in their callbacks, where they cannot wait for room */
        lbm_context_attr_t *attr = net_context_attr();
        MUST(lbm_context_attr_str_setopt(attr, "response_session_maximum_buffer", "16777216"));
        responds[i] = net_context_with(attr);
        rcv[i] = net_receiver(responds[i], "rr", NULL, on_request, &r[i], NULL);
        CHECK(ready(rcv[i], 1));
    }
    for (int i = 0; i < MANY; i++) {
        MUST(lbm_send_request(&requests[i], src, "q", 1, on_answer, &a, NULL, LBM_SRC_BLOCK));
    }
    MUST(lbm_src_flush(src));
    CHECK(answers_wait(&a, MANY * RESPONDERS));
    for (int i = 0; i < MANY; i++) {
        MUST(lbm_request_delete(requests[i]));
    }
    for (int i = 0; i < RESPONDERS; i++) {
        CHECK(requests_wait(&r[i], MANY)); /* it counts after it has answered */
        MUST(lbm_rcv_delete(rcv[i]));
        MUST(lbm_context_delete(responds[i]));
    }
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(asks));
    CHECK_EQ(a.count, MANY * RESPONDERS);
    CHECK_EQ(retained_or_open(), 0);
}

/* ---- threads ---- */

struct answering {
    lbm_response_t *resp;
    bool failed;
};

static void *answer_many(void *arg)
{
    struct answering *answering = arg;
    for (int i = 0; i < 1000; i++) {
        answering->failed |= lbm_send_response(answering->resp, "x", 1, LBM_SRC_BLOCK) == -1;
    }
    return NULL;
}

TEST(several_threads_answer_one_request_while_another_deletes_it)
{
    TEST_NEEDS_NET();
    struct answers a = ANSWERS_INIT;
    struct responder r = RESPONDER_INIT(.take = true);
    lbm_context_t *asks = net_context(), *responds = net_context();
    lbm_src_t *src = net_source(asks, "rr");
    lbm_rcv_t *rcv = net_receiver(responds, "rr", NULL, on_request, &r, NULL);
    CHECK(ready(rcv, 1));
    lbm_request_t *req = ask(src, "many", &a);
    CHECK(requests_wait(&r, 1));
    struct answering answering[3];
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        answering[i] = (struct answering){.resp = r.taken};
        CHECK_EQ(pthread_create(&threads[i], NULL, answer_many, &answering[i]), 0);
    }
    CHECK(answers_wait(&a, 10));
    MUST(lbm_request_delete(req));
    int at_deletion = answers_count(&a);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        CHECK(!answering[i].failed);
    }
    CHECK_EQ(answers_count(&a), at_deletion); /* no callback after the deletion has returned */
    MUST(lbm_response_delete(r.taken));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(responds));
    MUST(lbm_context_delete(asks));
    CHECK_EQ(retained_or_open(), 0);
}

/* ---- the context hears when it may go on ---- */

struct wakeups {
    pthread_mutex_t lock;
    int count, flags;
};

static int wakeup_cb(lbm_context_t *ctx, int event, void *ed, void *clientd)
{
    (void)ctx;
    struct wakeups *wakeups = clientd;
    pthread_mutex_lock(&wakeups->lock);
    if (event == LBM_SRC_EVENT_WAKEUP) {
        wakeups->count++;
        wakeups->flags |= ((lbm_src_event_wakeup_t *)ed)->flags;
    }
    pthread_mutex_unlock(&wakeups->lock);
    return 0;
}

static bool woken(struct wakeups *wakeups, int flags)
{
    pthread_mutex_lock(&wakeups->lock);
    bool ok = wakeups->count > 0 && wakeups->flags == flags;
    pthread_mutex_unlock(&wakeups->lock);
    return ok;
}

TEST(answers_to_a_requester_that_does_not_read_would_block_are_counted_and_followed_by_a_wakeup)
{
    TEST_NEEDS_NET();
    struct answers a = ANSWERS_INIT;
    struct responder r = RESPONDER_INIT(.take = true);
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "operational_mode", "sequential"));
    lbm_context_t *asks = net_context_with(attr);
    attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "response_session_maximum_buffer", "20000"));
    struct wakeups wakeups = {.lock = PTHREAD_MUTEX_INITIALIZER};
    const lbm_context_src_event_func_t function = {.func = wakeup_cb, .clientd = &wakeups};
    MUST(lbm_context_attr_setopt(attr, "source_event_function", (void *)&function, sizeof function));
    lbm_context_t *responds = net_context_with(attr);
    lbm_src_t *src = net_source(asks, "rr");
    lbm_rcv_t *rcv = net_receiver(responds, "rr", NULL, on_request, &r, NULL);
    for (int i = 0; i < HANG_SECONDS * 100 && um_rcv_ready(rcv) == 0; i++) {
        MUST(lbm_context_process_events(asks, 10));
    }
    lbm_request_t *req = ask(src, "flood me", &a);
    CHECK(requests_wait(&r, 1)); /* from here on nobody reads */
    static char block[10000];
    int rc = 0;
    for (int i = 0; i < 100000 && rc != -1; i++) {
        rc = lbm_send_response(r.taken, block, sizeof block, LBM_SRC_NONBLOCK);
    }
    CHECK_EQ(rc, -1);
    CHECK_EQ(lbm_errnum(), LBM_EWOULDBLOCK);
    lbm_context_stats_t stats;
    MUST(lbm_context_retrieve_stats(responds, &stats));
    CHECK_EQ(stats.resp_would_block, 1);
    for (int i = 0; i < HANG_SECONDS * 100 && !woken(&wakeups, LBM_SRC_EVENT_WAKEUP_FLAG_RESPONSE); i++) {
        MUST(lbm_context_process_events(asks, 10)); /* now it reads */
    }
    CHECK(woken(&wakeups, LBM_SRC_EVENT_WAKEUP_FLAG_RESPONSE));
    MUST(lbm_response_delete(r.taken));
    MUST(lbm_request_delete(req));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(responds));
    MUST(lbm_context_delete(asks));
    CHECK_EQ(retained_or_open(), 0);
}
