/* The ends of requests that nobody brings about: a responder that is killed while thousands are open, a requester that
 * is gone when it is answered, a connection that is not used any more. Contexts whose schedule matters run in time of
 * the test. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <string.h>

#include "core/um_context.h"
#include "um_test.h"
#include "um_test_child.h"
#include "um_test_net.h"
#include "um_test_rcv.h"

static lbm_ulong_t objects(void)
{
    um_object_counts_t counts;
    memset(&counts, 0, sizeof counts);
    MUST(um_object_counts(&counts));
    return (lbm_ulong_t)counts.messages + (lbm_ulong_t)counts.requests + (lbm_ulong_t)counts.responses;
}

static struct um_unicast_stats layer_of(const lbm_context_t *ctx)
{
    struct um_unicast_stats stats = {0};
    um_unicast_stats(ctx->unicast, &stats);
    return stats;
}

/* ---- requesters ---- */

struct answers {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int count, disconnects;
};

#define ANSWERS_INIT                                                                                                   \
    {                                                                                                                  \
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER                                         \
    }

static int on_answer(lbm_request_t *req, lbm_msg_t *msg, void *clientd)
{
    (void)req;
    (void)msg;
    struct answers *a = clientd;
    pthread_mutex_lock(&a->lock);
    a->count++;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
    return 0;
}

static int on_source_event(lbm_src_t *src, int event, void *ed, void *clientd)
{
    (void)src;
    (void)ed;
    struct answers *a = clientd;
    pthread_mutex_lock(&a->lock);
    a->disconnects += event == LBM_SRC_EVENT_DISCONNECT;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
    return 0;
}

static bool reaches(struct answers *a, const int *count, int least)
{
    pthread_mutex_lock(&a->lock);
    bool ok = wait_for_count(&a->changed, &a->lock, count, least);
    if (!ok) {
        fprintf(stderr, "%d of %d\n", *count, least);
    }
    pthread_mutex_unlock(&a->lock);
    return ok;
}

static lbm_src_t *asking_source(lbm_context_t *ctx, struct answers *a)
{
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_alloc(&topic, ctx, "ends", NULL));
    MUST(lbm_src_create(&src, ctx, topic, on_source_event, a, NULL));
    return src;
}

static lbm_request_t *ask(lbm_src_t *src, struct answers *a, int flags)
{
    lbm_request_t *req;
    MUST(lbm_send_request(&req, src, "q", 1, on_answer, a, NULL, LBM_SRC_BLOCK | flags));
    return req;
}

/* ---- a responder that is killed ---- */

enum { MANY = 10000, ANSWERED = MANY / 2 };

static int answer_half(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv;
    int *requests = clientd;
    if (msg->type == LBM_MSG_REQUEST && (*requests)++ < ANSWERED) {
        MUST(lbm_send_response(msg->response, "a", 1, LBM_SRC_NONBLOCK));
    } else if (msg->type == LBM_MSG_REQUEST) {
        MUST(lbm_msg_retain(msg)); /* for a while that never ends */
    }
    return 0;
}

/* It answers the first half of what it is asked, and is killed. */
ROLE(responder)
{
    (void)text;
    (void)shared;
    static int requests;
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "response_session_maximum_buffer", "16777216"));
    lbm_context_t *ctx = net_context_with(attr);
    net_receiver(ctx, "ends", NULL, answer_half, &requests, NULL);
    for (;;) {
        sleep_ms(100);
    }
    return 0;
}

static int answer_cb(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv;
    (void)clientd;
    if (msg->type == LBM_MSG_REQUEST) {
        MUST(lbm_send_response(msg->response, "a", 1, LBM_SRC_NONBLOCK));
    }
    return 0;
}

/* What its requester goes on with: another one answers. */
static bool answered_by_another(lbm_context_t *asks, lbm_src_t *src)
{
    struct answers a = ANSWERS_INIT;
    lbm_context_t *responds = net_context();
    lbm_rcv_t *rcv = net_receiver(responds, "ends", NULL, answer_cb, NULL, NULL);
    bool ok = um_src_wait_receivers(src, 1, HANG_SECONDS * 1000) == 0;
    lbm_request_t *req = ask(src, &a, LBM_MSG_FLUSH);
    ok = ok && reaches(&a, &a.count, 1);
    MUST(lbm_request_delete(req));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_context_delete(responds));
    return ok && layer_of(asks).accepted >= 2;
}

TEST(responder_killed_in_the_middle_of_ten_thousand_requests_is_an_event_and_leaves_nothing)
{
    TEST_NEEDS_NET();
    static lbm_request_t *requests[MANY];
    struct answers a = ANSWERS_INIT;
    pid_t child = um_test_child("responder", NULL, 0, "-");
    lbm_context_t *asks = net_context();
    lbm_src_t *src = asking_source(asks, &a);
    CHECK_EQ(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000), 0);
    for (int i = 0; i < MANY; i++) {
        requests[i] = ask(src, &a, 0);
    }
    MUST(lbm_src_flush(src));
    CHECK(reaches(&a, &a.count, ANSWERED));
    um_test_child_kill(child);
    CHECK(reaches(&a, &a.disconnects, 1));
    for (int i = 0; i < HANG_SECONDS * 1000 && layer_of(asks).incoming > 0; i++) {
        sleep_ms(1);
    }
    CHECK_EQ(layer_of(asks).incoming, 0);
    CHECK_EQ(objects(), MANY); /* they wait for others, until they are deleted */
    CHECK(answered_by_another(asks, src));
    for (int i = 0; i < MANY; i++) {
        MUST(lbm_request_delete(requests[i]));
    }
    CHECK_EQ(a.count, ANSWERED);
    CHECK_EQ(objects(), 0);
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(asks));
}

/* ---- a response that goes from one process to another as bytes ---- */

/* Answers in place of the one that was asked, and waits to be killed. */
ROLE(deputy)
{
    (void)text;
    lbm_context_t *ctx = net_context();
    lbm_response_t *resp = lbm_deserialize_response(ctx, shared);
    if (resp == NULL || lbm_send_response(resp, "a", 1, LBM_SRC_BLOCK) == -1) {
        return 1;
    }
    for (;;) {
        sleep_ms(100);
    }
    return 0;
}

struct asked {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int requests;
    lbm_serialized_response_t bytes;
};

static int serialize_cb(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv;
    struct asked *asked = clientd;
    if (msg->type == LBM_MSG_REQUEST) {
        lbm_serialized_response_t *bytes = lbm_serialize_response(msg->response);
        pthread_mutex_lock(&asked->lock);
        asked->bytes = *bytes;
        asked->requests++;
        pthread_cond_broadcast(&asked->changed);
        pthread_mutex_unlock(&asked->lock);
        MUST(lbm_serialized_response_delete(bytes));
    }
    return 0;
}

TEST(request_heard_by_one_process_is_answered_by_another)
{
    TEST_NEEDS_NET();
    struct answers a = ANSWERS_INIT;
    struct asked asked = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct um_test_shared shared = um_test_shared_make(sizeof asked.bytes);
    lbm_context_t *asks = net_context(), *hears = net_context();
    lbm_src_t *src = asking_source(asks, &a);
    lbm_rcv_t *rcv = net_receiver(hears, "ends", NULL, serialize_cb, &asked, NULL);
    CHECK_EQ(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000), 0);
    lbm_request_t *req = ask(src, &a, LBM_MSG_FLUSH);
    pthread_mutex_lock(&asked.lock);
    bool heard = wait_for_count(&asked.changed, &asked.lock, &asked.requests, 1);
    memcpy(shared.memory, &asked.bytes, sizeof asked.bytes);
    pthread_mutex_unlock(&asked.lock);
    CHECK(heard);
    pid_t deputy = um_test_child("deputy", &shared, 0, "-");
    CHECK(reaches(&a, &a.count, 1));
    um_test_child_kill(deputy);
    um_test_shared_drop(&shared);
    MUST(lbm_request_delete(req));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(hears));
    MUST(lbm_context_delete(asks));
    CHECK_EQ(objects(), 0);
}

/* ---- responders whose time is the test's ---- */

struct responder {
    lbm_context_t *ctx;
    lbm_timeval_t now; /* of ctx, once it runs in time of the test */
    int requests;
    lbm_response_t *taken;
};

static int take_cb(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv;
    struct responder *r = clientd;
    if (msg->type == LBM_MSG_REQUEST) {
        r->requests++;
        r->taken = msg->response;
        msg->response = NULL;
    }
    return 0;
}

static void open_responder(struct responder *r)
{
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "operational_mode", "sequential"));
    *r = (struct responder){.ctx = net_context_with(attr), .now = {1, 0}};
}

static void pass(struct responder *r, long ms)
{
    lbm_process_events_info_t info = {.flags = LBM_PROC_EVENT_EX_FLAG_USER_TIME};
    r->now.tv_usec += ms % 1000 * 1000;
    r->now.tv_sec += ms / 1000 + r->now.tv_usec / 1000000;
    r->now.tv_usec %= 1000000;
    info.time_val = r->now;
    for (int i = 0; i < 5; i++) {
        MUST(lbm_context_process_events_ex(r->ctx, 0, &info));
    }
}

/* Where the context's time is the test's, what stamps its connections has to run on its thread. */
static void do_in_context(struct responder *r, lbm_timer_cb_proc proc)
{
    MUST(lbm_schedule_timer(r->ctx, proc, r, NULL, 0));
    pass(r, 1);
}

static int answer_in_context(lbm_context_t *ctx, const void *clientd)
{
    (void)ctx;
    MUST(lbm_send_response(((const struct responder *)clientd)->taken, "a", 1, LBM_SRC_NONBLOCK));
    return 0;
}

static int delete_in_context(lbm_context_t *ctx, const void *clientd)
{
    (void)ctx;
    MUST(lbm_response_delete(((const struct responder *)clientd)->taken));
    return 0;
}

/* Time stands still meanwhile. */
static bool answer_arrives(struct responder *r, struct answers *a, int count)
{
    int have = 0;
    for (int i = 0; i < HANG_SECONDS * 1000 && have < count; i++) {
        pass(r, 0);
        sleep_ms(1);
        pthread_mutex_lock(&a->lock);
        have = a->count;
        pthread_mutex_unlock(&a->lock);
    }
    return have == count;
}

static void hear_request(struct responder *r, lbm_rcv_t *rcv, lbm_src_t *src, struct answers *a, lbm_request_t **req)
{
    for (int i = 0; i < HANG_SECONDS * 100 && um_rcv_ready(rcv) == 0; i++) {
        MUST(lbm_context_process_events(r->ctx, 10));
    }
    *req = ask(src, a, LBM_MSG_FLUSH);
    for (int i = 0; i < HANG_SECONDS * 100 && r->requests == 0; i++) {
        MUST(lbm_context_process_events(r->ctx, 10));
    }
}

TEST(response_connection_is_held_by_its_response_reused_and_closed_twenty_seconds_after_its_deletion)
{
    TEST_NEEDS_NET();
    struct answers a = ANSWERS_INIT;
    struct responder r;
    lbm_request_t *req;
    open_responder(&r);
    lbm_context_t *asks = net_context();
    lbm_src_t *src = asking_source(asks, &a);
    lbm_rcv_t *rcv = net_receiver(r.ctx, "ends", NULL, take_cb, &r, NULL);
    hear_request(&r, rcv, src, &a, &req);
    CHECK_EQ(r.requests, 1);
    do_in_context(&r, answer_in_context);
    CHECK(answer_arrives(&r, &a, 1));
    for (int i = 0; i < 10; i++) { /* however long its answers take */
        pass(&r, 19000);
    }
    CHECK_EQ(layer_of(r.ctx).outgoing, 1);
    do_in_context(&r, answer_in_context);
    CHECK(answer_arrives(&r, &a, 2));
    CHECK_EQ(layer_of(asks).accepted, 1); /* on the same connection */
    do_in_context(&r, delete_in_context);
    pass(&r, 19900);
    CHECK_EQ(layer_of(r.ctx).outgoing, 1);
    pass(&r, 200);
    CHECK_EQ(layer_of(r.ctx).outgoing, 0);
    for (int i = 0; i < HANG_SECONDS * 1000 && layer_of(asks).incoming > 0; i++) {
        sleep_ms(1);
    }
    CHECK_EQ(layer_of(asks).incoming, 0);
    MUST(lbm_request_delete(req));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(asks));
    MUST(lbm_context_delete(r.ctx));
    CHECK_EQ(objects(), 0);
}

/* ---- requesters that are gone ---- */

static char given_up[512];
static atomic_int lost, gave_up;

static int on_log(int level, const char *message, void *clientd)
{
    (void)clientd;
    atomic_fetch_add(&lost, strncmp(message, "Core-9003-6:", 12) == 0);
    if (level == LBM_LOG_WARNING && strncmp(message, "Core-9003-8:", 12) == 0) {
        snprintf(given_up, sizeof given_up, "%s", message);
        atomic_fetch_add(&gave_up, 1);
    }
    return 0;
}

TEST(requester_that_cannot_be_reached_any_more_is_given_up_with_a_warning_and_a_count)
{
    TEST_NEEDS_NET();
    struct answers a = ANSWERS_INIT;
    struct responder r;
    lbm_request_t *req;
    um_context_stats_t stats;
    MUST(lbm_log(on_log, NULL));
    open_responder(&r);
    lbm_context_t *asks = net_context();
    lbm_src_t *src = asking_source(asks, &a);
    lbm_rcv_t *rcv = net_receiver(r.ctx, "ends", NULL, take_cb, &r, NULL);
    hear_request(&r, rcv, src, &a, &req);
    CHECK_EQ(r.requests, 1);
    do_in_context(&r, answer_in_context);
    CHECK(answer_arrives(&r, &a, 1));
    MUST(lbm_request_delete(req));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(asks));
    for (int i = 0; i < HANG_SECONDS * 1000 && atomic_load(&lost) == 0; i++) {
        pass(&r, 0);
        sleep_ms(1);
    }
    CHECK(atomic_load(&lost) > 0);
    do_in_context(&r, answer_in_context); /* accepted: the requester may come back */
    for (int i = 0; i < 19; i++) {
        pass(&r, 1000);
    }
    MUST(um_context_stats(r.ctx, &stats));
    CHECK_EQ(stats.unicast_unsent, 0);
    for (int i = 0; i < 3; i++) {
        pass(&r, 1000);
    }
    MUST(um_context_stats(r.ctx, &stats));
    CHECK_EQ(stats.unicast_unsent, 1);
    CHECK_EQ(atomic_load(&gave_up), 1);
    CHECK(strstr(given_up, "not reachable for ") != NULL);
    CHECK(strstr(given_up, "response_tcp_deletion_timeout 20000") != NULL);
    CHECK_EQ(layer_of(r.ctx).outgoing, 0);
    MUST(lbm_response_delete(r.taken));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_context_delete(r.ctx));
    MUST(lbm_log(NULL, NULL));
    CHECK_EQ(objects(), 0);
}
