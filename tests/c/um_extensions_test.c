/* um.h: readiness of receivers and sources, told and waited for. */
#include "um_test_rcv.h"

static int drop_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    return 0;
}

static lbm_rcv_t *receiver(lbm_context_t *ctx, const char *name)
{
    lbm_topic_t *topic;
    lbm_rcv_t *rcv;
    MUST(lbm_rcv_topic_lookup(&topic, ctx, name, NULL));
    MUST(lbm_rcv_create(&rcv, ctx, topic, drop_message, NULL, NULL));
    return rcv;
}

TEST(receiver_is_ready_when_each_source_has_begun)
{
    TEST_NEEDS_NET();
    lbm_context_t *here = net_context(), *there = net_context(), *elsewhere = net_context();
    lbm_rcv_t *rcv = receiver(here, "ready");
    CHECK_EQ(um_rcv_ready(rcv), 0);
    CHECK_EQ(um_rcv_wait_ready(rcv, 0, 0), 0);
    lbm_src_t *one = net_source(there, "ready");
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    CHECK_EQ(um_rcv_ready(rcv), 1);
    lbm_src_t *two = net_source(elsewhere, "ready");
    CHECK_EQ(um_rcv_wait_ready(rcv, 2, HANG_SECONDS * 1000), 0);
    CHECK_EQ(um_rcv_ready(rcv), 2);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(one));
    MUST(lbm_src_delete(two));
    MUST(lbm_context_delete(here));
    MUST(lbm_context_delete(there));
    MUST(lbm_context_delete(elsewhere));
}

TEST(source_counts_the_receiving_contexts_of_its_session)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context(), *first = net_context(), *second = net_context();
    lbm_src_t *src = net_source(ctx, "clients");
    CHECK_EQ(um_src_receivers(src), 0);
    lbm_rcv_t *a = receiver(first, "clients"), *b = receiver(second, "clients");
    CHECK_EQ(um_src_wait_receivers(src, 2, HANG_SECONDS * 1000), 0);
    CHECK_EQ(um_src_receivers(src), 2);
    MUST(lbm_rcv_delete(a));
    MUST(lbm_rcv_delete(b));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(first));
    MUST(lbm_context_delete(second));
}

TEST(waiting_ends_with_the_time)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_rcv_t *rcv = receiver(ctx, "nobody");
    lbm_src_t *src = net_source(ctx, "nobody else");
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, 10), -1);
    CHECK_EQ(lbm_errnum(), LBM_ETIMEDOUT);
    CHECK_EQ(um_src_wait_receivers(src, 1, 10), -1);
    CHECK_EQ(lbm_errnum(), LBM_ETIMEDOUT);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

TEST(bad_arguments_are_refused)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_rcv_t *rcv = receiver(ctx, "arguments");
    CHECK_EQ(um_rcv_ready(NULL), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(um_src_receivers(NULL), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(um_src_wait_receivers(NULL, 1, 0), -1);
    CHECK_EQ(um_rcv_wait_ready(NULL, 1, 0), -1);
    CHECK_EQ(um_rcv_wait_ready(rcv, -1, 0), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, -1), -1);
    CHECK_CONTAINS(lbm_errmsg(), "timeout_ms -1");
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_context_delete(ctx));
}

struct inside {
    lbm_rcv_t *rcv;
    lbm_src_t *src;
    int rcv_errnum, src_errnum;
    struct recorder done; /* its lock and condition only */
};

static int wait_inside(lbm_context_t *ctx, const void *clientd)
{
    struct inside *inside = (struct inside *)clientd;
    inside->rcv_errnum = um_rcv_wait_ready(inside->rcv, 1, 1000) == -1 ? lbm_errnum() : 0;
    inside->src_errnum = um_src_wait_receivers(inside->src, 1, 1000) == -1 ? lbm_errnum() : 0;
    lbm_msg_t finished = {.type = LBM_MSG_DATA, .data = ""};
    return recorder_cb(NULL, &finished, &inside->done);
}

TEST(waiting_on_the_context_thread_is_refused_at_once)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct inside inside = {
        .rcv = receiver(ctx, "inside"), .src = net_source(ctx, "inside too"), .done = RECORDER_INIT};
    MUST(lbm_schedule_timer(ctx, wait_inside, &inside, NULL, 0));
    CHECK(recorder_wait(&inside.done, LBM_MSG_DATA, 1));
    CHECK_EQ(inside.rcv_errnum, LBM_EOP);
    CHECK_EQ(inside.src_errnum, LBM_EOP);
    MUST(lbm_rcv_delete(inside.rcv));
    MUST(lbm_src_delete(inside.src));
    MUST(lbm_context_delete(ctx));
}
