/* What an application may do inside its callbacks on the context thread, through the public headers only: what would
 * wait for that very thread is LBM_EOP and names the call, everything else works; on a dispatch thread and at the end
 * nothing is restricted. */
#include "um_test.h"

#include <stdatomic.h>
#include <unistd.h>

#include <lbm/lbm.h>
#include <lbm/um.h>

#include "um_test_rcv.h"

struct objects {
    lbm_context_t *ctx;
    lbm_event_queue_t *evq;
    lbm_topic_t *free_topic; /* of a source that does not exist yet */
    lbm_topic_t *rcv_topic;
    lbm_src_t *src;
    lbm_rcv_t *rcv;
    lbm_wildcard_rcv_t *wrcv;
    int problems;
    atomic_int done;
};

static int ignore(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    return 0;
}

static int ignore_timer(lbm_context_t *ctx, const void *clientd)
{
    return 0;
}

static int ignore_fd(lbm_context_t *ctx, lbm_handle_t handle, lbm_ulong_t ev, void *clientd)
{
    return 0;
}

static void expect_eop(struct objects *o, const char *call, int rc)
{
    size_t name_len = strcspn(call, "(");
    char name[128];
    snprintf(name, sizeof name, "%.*s:", (int)name_len, call);
    if (rc != -1 || lbm_errnum() != LBM_EOP || strstr(lbm_errmsg(), name) == NULL) {
        fprintf(stderr, "%s: returned %d, error %d: %s\n", call, rc, lbm_errnum(), lbm_errmsg());
        o->problems++;
    }
    lbm_seterr(0, "");
}
#define EOP(call) expect_eop(o, #call, call)

static void expect_ok(struct objects *o, const char *call, int rc)
{
    if (rc < 0) {
        fprintf(stderr, "%s: error %d: %s\n", call, lbm_errnum(), lbm_errmsg());
        o->problems++;
    }
}
#define WORKS(call) expect_ok(o, #call, call)

static void try_what_waits(struct objects *o)
{
    lbm_context_t *ctx = NULL;
    lbm_topic_t *topic = NULL;
    lbm_src_t *src = NULL;
    lbm_rcv_t *rcv = NULL;
    lbm_wildcard_rcv_t *wrcv = NULL;
    EOP(lbm_context_create(&ctx, NULL, NULL, NULL));
    EOP(lbm_context_reactor_only_create(&ctx, NULL));
    EOP(lbm_context_delete(o->ctx));
    EOP(lbm_context_delete_ex(o->ctx, NULL));
    EOP(lbm_src_topic_alloc(&topic, o->ctx, "inside", NULL));
    EOP(lbm_src_create(&src, o->ctx, o->free_topic, NULL, NULL, NULL));
    EOP(lbm_src_delete(o->src));
    EOP(lbm_src_delete_ex(o->src, NULL));
    EOP(lbm_src_flush(o->src));
    EOP(lbm_rcv_topic_lookup(&topic, o->ctx, "inside", NULL));
    EOP(lbm_rcv_create(&rcv, o->ctx, o->rcv_topic, ignore, NULL, NULL));
    EOP(lbm_rcv_delete(o->rcv));
    EOP(lbm_rcv_delete_ex(o->rcv, NULL));
    EOP(lbm_wildcard_rcv_create(&wrcv, o->ctx, "^inside$", NULL, NULL, ignore, NULL, NULL));
    EOP(lbm_wildcard_rcv_delete(o->wrcv));
    EOP(lbm_wildcard_rcv_delete_ex(o->wrcv, NULL));
    EOP(lbm_event_dispatch(o->evq, LBM_EVENT_QUEUE_BLOCK));
    EOP(um_src_wait_receivers(o->src, 99, 10000));
    EOP(um_rcv_wait_ready(o->rcv, 99, 10000));
    o->problems += ctx != NULL || topic != NULL || src != NULL || rcv != NULL || wrcv != NULL;
}

static void try_what_does_not(struct objects *o)
{
    char text[256];
    size_t len = sizeof text;
    int num = 16, id;
    lbm_context_stats_t context_stats;
    lbm_src_transport_stats_t src_stats[16];
    lbm_rcv_transport_stats_t rcv_stats[16];
    lbm_event_queue_stats_t queue_stats;
    int fds[2];
    WORKS(lbm_src_send(o->src, "inside", 6, LBM_SRC_NONBLOCK | LBM_MSG_FLUSH));
    WORKS(lbm_flush_all(o->ctx));
    WORKS(id = lbm_schedule_timer(o->ctx, ignore_timer, NULL, NULL, 100000));
    WORKS(lbm_cancel_timer(o->ctx, id, NULL));
    WORKS(lbm_context_retrieve_stats(o->ctx, &context_stats));
    WORKS(lbm_context_reset_stats(o->ctx));
    WORKS(lbm_context_retrieve_src_transport_stats(o->ctx, &num, src_stats));
    WORKS((num = 16, lbm_context_retrieve_rcv_transport_stats(o->ctx, &num, rcv_stats)));
    WORKS(lbm_src_retrieve_transport_stats(o->src, src_stats));
    WORKS((num = 16, lbm_rcv_retrieve_all_transport_stats(o->rcv, &num, rcv_stats)));
    WORKS(lbm_event_queue_retrieve_stats(o->evq, &queue_stats));
    WORKS(lbm_context_str_getopt(o->ctx, "operational_mode", text, &len));
    WORKS((len = sizeof text, lbm_src_str_getopt(o->src, "transport", text, &len)));
    WORKS((len = sizeof text, lbm_rcv_str_getopt(o->rcv, "ordered_delivery", text, &len)));
    WORKS(lbm_src_str_setopt(o->src, "implicit_batching_interval", "100"));
    WORKS(lbm_context_topic_resolution_request(o->ctx, LBM_TOPIC_RES_REQUEST_QUERY, 1000, 0));
    WORKS(lbm_event_dispatch_unblock(o->evq));
    WORKS(um_src_receivers(o->src));
    WORKS(um_rcv_ready(o->rcv));
    if (pipe(fds) == 0) {
        WORKS(lbm_register_fd(o->ctx, fds[0], ignore_fd, NULL, NULL, LBM_FD_EVENT_READ));
        WORKS(lbm_cancel_fd(o->ctx, fds[0], LBM_FD_EVENT_READ));
        close(fds[0]);
        close(fds[1]);
    }
}

static int in_timer(lbm_context_t *ctx, const void *clientd)
{
    struct objects *o = (struct objects *)clientd;
    try_what_waits(o);
    try_what_does_not(o);
    atomic_store(&o->done, 1);
    return 0;
}

static int in_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct objects *o = clientd;
    if (msg->type == LBM_MSG_DATA && atomic_load(&o->done) == 0) {
        try_what_waits(o);
        try_what_does_not(o);
        atomic_store(&o->done, 1);
    }
    return 0;
}

static bool wait_done(struct objects *o)
{
    for (int i = 0; i < HANG_SECONDS * 1000 && atomic_load(&o->done) == 0; i++) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return atomic_load(&o->done) != 0;
}

static void make_objects(struct objects *o, lbm_rcv_cb_proc proc, lbm_event_queue_t *queue)
{
    o->ctx = net_context();
    MUST(lbm_event_queue_create(&o->evq, NULL, NULL, NULL));
    MUST(lbm_src_topic_alloc(&o->free_topic, o->ctx, "unused", NULL));
    o->src = net_source(o->ctx, "callbacks");
    MUST(lbm_rcv_topic_lookup(&o->rcv_topic, o->ctx, "callbacks", NULL));
    MUST(lbm_rcv_create(&o->rcv, o->ctx, o->rcv_topic, proc, o, queue));
    MUST(lbm_wildcard_rcv_create(&o->wrcv, o->ctx, "^none$", NULL, NULL, ignore, NULL, NULL));
}

static void delete_objects(struct objects *o)
{
    MUST(lbm_wildcard_rcv_delete(o->wrcv));
    MUST(lbm_rcv_delete(o->rcv));
    MUST(lbm_src_delete(o->src));
    MUST(lbm_context_delete(o->ctx));
    MUST(lbm_event_queue_delete(o->evq));
}

TEST(a_timer_callback_on_the_context_thread_is_refused_what_would_wait_for_it)
{
    TEST_NEEDS_NET();
    struct objects o = {0};
    make_objects(&o, ignore, NULL);
    CHECK(lbm_schedule_timer(o.ctx, in_timer, &o, NULL, 0) >= 0);
    CHECK(wait_done(&o));
    CHECK_EQ(o.problems, 0);
    delete_objects(&o);
}

TEST(a_message_callback_on_the_context_thread_is_refused_what_would_wait_for_it)
{
    TEST_NEEDS_NET();
    struct objects o = {0};
    make_objects(&o, in_message, NULL);
    MUST(um_rcv_wait_ready(o.rcv, 1, HANG_SECONDS * 1000));
    net_send(o.src, "go");
    CHECK(wait_done(&o));
    CHECK_EQ(o.problems, 0);
    delete_objects(&o);
}

/* ---- dispatch threads have no restrictions ---- */

static int everything_in_dispatch(lbm_context_t *ctx, const void *clientd)
{
    struct objects *o = (struct objects *)clientd;
    lbm_context_t *other;
    lbm_event_queue_t *evq;
    lbm_topic_t *topic;
    lbm_src_t *src;
    lbm_rcv_t *rcv;
    lbm_wildcard_rcv_t *wrcv;
    WORKS(lbm_src_topic_alloc(&topic, ctx, "dispatched", NULL));
    WORKS(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL));
    WORKS(lbm_src_send(src, "m", 1, LBM_SRC_BLOCK));
    WORKS(lbm_src_flush(src));
    WORKS(lbm_rcv_topic_lookup(&topic, ctx, "dispatched", NULL));
    WORKS(lbm_rcv_create(&rcv, ctx, topic, ignore, NULL, NULL));
    WORKS(lbm_wildcard_rcv_create(&wrcv, ctx, "^dis", NULL, NULL, ignore, NULL, NULL));
    WORKS(lbm_event_queue_create(&evq, NULL, NULL, NULL));
    WORKS(lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL));
    WORKS(lbm_event_queue_delete(evq));
    WORKS(lbm_wildcard_rcv_delete(wrcv));
    WORKS(lbm_rcv_delete(rcv));
    WORKS(lbm_src_delete(src));
    WORKS(lbm_context_reactor_only_create(&other, NULL));
    WORKS(lbm_context_delete(other));
    atomic_store(&o->done, 1);
    return 0;
}

TEST(a_callback_on_a_dispatch_thread_may_create_and_delete)
{
    TEST_NEEDS_NET();
    struct objects o = {0};
    make_objects(&o, ignore, NULL);
    CHECK(lbm_schedule_timer(o.ctx, everything_in_dispatch, &o, o.evq, 0) >= 0);
    for (int i = 0; i < HANG_SECONDS * 1000 && atomic_load(&o.done) == 0; i++) {
        CHECK(lbm_event_dispatch(o.evq, LBM_EVENT_QUEUE_POLL) >= 0);
        usleep(1000);
    }
    CHECK_EQ(o.done, 1);
    CHECK_EQ(o.problems, 0);
    delete_objects(&o);
}

static int process_inside(lbm_context_t *ctx, const void *clientd)
{
    struct objects *o = (struct objects *)clientd;
    lbm_process_events_info_t info = {.flags = 0};
    EOP(lbm_context_process_events(ctx, 0));
    EOP(lbm_context_process_events_ex(ctx, 0, &info));
    WORKS(lbm_context_unblock(ctx));
    return in_timer(ctx, clientd);
}

TEST(a_sequential_context_refuses_the_same_inside_process_events)
{
    TEST_NEEDS_NET();
    struct objects o = {0};
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "operational_mode", "sequential"));
    o.ctx = net_context_with(attr);
    MUST(lbm_event_queue_create(&o.evq, NULL, NULL, NULL));
    MUST(lbm_src_topic_alloc(&o.free_topic, o.ctx, "unused", NULL));
    o.src = net_source(o.ctx, "callbacks");
    MUST(lbm_rcv_topic_lookup(&o.rcv_topic, o.ctx, "callbacks", NULL));
    MUST(lbm_rcv_create(&o.rcv, o.ctx, o.rcv_topic, ignore, &o, NULL));
    MUST(lbm_wildcard_rcv_create(&o.wrcv, o.ctx, "^none$", NULL, NULL, ignore, NULL, NULL));
    CHECK(lbm_schedule_timer(o.ctx, process_inside, &o, NULL, 0) >= 0);
    CHECK_EQ(o.done, 0);
    CHECK_EQ(lbm_context_process_events(o.ctx, 10), 0);
    CHECK_EQ(o.done, 1);
    CHECK_EQ(o.problems, 0);
    /* Outside of callbacks the thread that processes events may do all of it. */
    CHECK_EQ(lbm_src_flush(o.src), 0);
    delete_objects(&o);
}
