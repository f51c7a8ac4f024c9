/* Receivers that cannot join at first, through the public library: by the time the cause ends both sides of topic
 * resolution are quiescent, so nothing but the receiver's own retries can bring them together. How long a cause may
 * last is shown in virtual time (tests/sim/join_sim.c). */
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "um_test_rcv.h"
#include "um_test_shm.h"

#define QUIESCENT_AFTER_MS 1000 /* initial phases of 200 ms, no sustaining ones */

static lbm_src_t *brief_source(lbm_context_t *ctx, const char *transport)
{
    char option[80];
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", transport));
    MUST(lbm_src_topic_attr_str_setopt(attr, "resolver_advertisement_minimum_initial_duration", "200"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "resolver_advertisement_sustain_interval", "0"));
    /* An idle source speaks more often than receivers wait for it: brief(). */
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_lbtrm_sm_maximum_interval", "400"));
    if (strcmp(transport, "lbtipc") == 0 || strcmp(transport, "lbtsmx") == 0) {
        snprintf(option, sizeof option, "transport_%s_maximum_receivers_per_transport", transport);
        MUST(lbm_src_topic_attr_str_setopt(attr, option, "1"));
        snprintf(option, sizeof option, "transport_%s_transmission_window_size", transport);
        MUST(lbm_src_topic_attr_str_setopt(attr, option, "1048576"));
    }
    MUST(lbm_src_topic_alloc(&topic, ctx, "brief", attr));
    MUST(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL));
    lbm_src_topic_attr_delete(attr);
    return src;
}

static void brief(lbm_rcv_topic_attr_t *attr)
{
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "resolver_query_minimum_initial_duration", "200"));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "resolver_query_sustain_interval", "0"));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "transport_lbtrm_activity_timeout", "1000"));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "transport_lbtru_activity_timeout", "1000"));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "transport_lbtru_connect_interval", "100"));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "transport_lbtru_maximum_connect_attempts", "5"));
}

static atomic_int created, deleted;

static void *count_created(const char *source, void *clientd)
{
    atomic_fetch_add(&created, 1);
    return NULL;
}

static int count_deleted(const char *source, void *clientd, void *source_clientd)
{
    atomic_fetch_add(&deleted, 1);
    return 0;
}

static lbm_rcv_t *brief_receiver(lbm_context_t *ctx, struct recorder *r)
{
    lbm_rcv_topic_attr_t *attr;
    lbm_rcv_src_notification_func_t func = {count_created, count_deleted, NULL};
    atomic_store(&created, 0);
    atomic_store(&deleted, 0);
    MUST(lbm_rcv_topic_attr_create(&attr));
    brief(attr);
    MUST(lbm_rcv_topic_attr_setopt(attr, "source_notification_function", &func, sizeof func));
    lbm_rcv_t *rcv = net_receiver(ctx, "brief", attr, recorder_cb, r, NULL);
    lbm_rcv_topic_attr_delete(attr);
    return rcv;
}

static uint64_t failures(lbm_context_t *ctx)
{
    um_context_stats_t stats;
    MUST(um_context_stats(ctx, &stats));
    return stats.joins_failed;
}

/* The join has failed, and nobody advertises or asks any more. The application has heard nothing of it. */
static bool failed_and_forgotten(lbm_context_t *ctx, struct recorder *r)
{
    for (int i = 0; i < HANG_SECONDS * 1000 && failures(ctx) == 0; i++) {
        usleep(1000);
    }
    usleep(QUIESCENT_AFTER_MS * 1000);
    return failures(ctx) > 0 && recorder_reads(r, "") && atomic_load(&created) == 0 && atomic_load(&deleted) == 0;
}

static bool joins(struct recorder *r)
{
    return recorder_wait(r, LBM_MSG_BOS, 1) && atomic_load(&created) == 1 && atomic_load(&deleted) == 0;
}

/* None is left until the limit is raised again. */
static struct rlimit unlimited;

static void take_all_descriptors(void)
{
    getrlimit(RLIMIT_NOFILE, &unlimited);
    int lowest = dup(0);
    struct rlimit limit = unlimited;
    close(lowest);
    limit.rlim_cur = (rlim_t)lowest;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* Files in shared memory are the segment and what shows the receiving context to tools, if any. */
static void without_descriptors_at_first(const char *transport, int shm_files)
{
    TEST_NEEDS_NET();
    struct recorder r = RECORDER_INIT;
    lbm_context_t *sctx = net_lean_context(), *ctx = net_lean_context();
    lbm_src_t *src = brief_source(sctx, transport);
    take_all_descriptors();
    lbm_rcv_t *rcv = brief_receiver(ctx, &r);
    bool failed = failed_and_forgotten(ctx, &r);
    setrlimit(RLIMIT_NOFILE, &unlimited);
    CHECK(failed);
    CHECK(joins(&r));
    CHECK_EQ(um_test_shm_count(), shm_files);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sctx));
}

TEST(f13_a_tcp_receiver_joins_when_there_are_descriptors_again)
{
    without_descriptors_at_first("tcp", 0);
}

TEST(f13_an_lbtrm_receiver_joins_when_there_are_descriptors_again)
{
    without_descriptors_at_first("lbtrm", 0);
}

TEST(f13_an_lbtru_receiver_joins_when_there_are_descriptors_again)
{
    without_descriptors_at_first("lbtru", 0);
}

TEST(f13_an_lbtipc_receiver_joins_when_there_are_descriptors_again)
{
    without_descriptors_at_first("lbtipc", 2);
}

TEST(f13_an_lbtsmx_receiver_joins_when_there_are_descriptors_again)
{
    without_descriptors_at_first("lbtsmx", 2);
}

static void with_the_slot_taken(const char *transport)
{
    TEST_NEEDS_NET();
    struct recorder first = RECORDER_INIT, r = RECORDER_INIT;
    lbm_context_t *sctx = net_lean_context(), *taker = net_lean_context(), *ctx = net_lean_context();
    lbm_src_t *src = brief_source(sctx, transport);
    lbm_rcv_t *taking = net_recording_receiver(taker, "brief", &first);
    CHECK(recorder_wait(&first, LBM_MSG_BOS, 1));
    lbm_rcv_t *rcv = brief_receiver(ctx, &r);
    CHECK(failed_and_forgotten(ctx, &r));
    MUST(lbm_rcv_delete(taking));
    CHECK(joins(&r));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(taker));
    MUST(lbm_context_delete(sctx));
}

TEST(f13_an_lbtipc_receiver_joins_when_the_only_slot_is_given_back)
{
    with_the_slot_taken("lbtipc");
}

TEST(f13_an_lbtsmx_receiver_joins_when_the_only_slot_is_given_back)
{
    with_the_slot_taken("lbtsmx");
}

static void unreachable_at_first(const char *transport, void (*set_loss_rate)(int rate))
{
    TEST_NEEDS_NET();
    struct recorder r = RECORDER_INIT;
    lbm_context_t *sctx = net_lean_context(), *ctx = net_lean_context();
    lbm_src_t *src = brief_source(sctx, transport);
    set_loss_rate(100);
    lbm_rcv_t *rcv = brief_receiver(ctx, &r);
    bool failed = failed_and_forgotten(ctx, &r);
    set_loss_rate(0);
    CHECK(failed);
    CHECK(joins(&r));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sctx));
}

TEST(f13_an_lbtrm_source_that_could_not_be_heard_is_joined_when_it_can)
{
    unreachable_at_first("lbtrm", lbm_set_lbtrm_loss_rate);
}

TEST(f13_an_lbtru_source_that_could_not_be_reached_is_joined_when_it_can)
{
    unreachable_at_first("lbtru", lbm_set_lbtru_loss_rate);
}

/* What was cut off for longer than its activity timeout had BOS and EOS; the way back is the same. */
static void cut_off_for_a_while(const char *transport, void (*set_loss_rate)(int rate))
{
    TEST_NEEDS_NET();
    struct recorder r = RECORDER_INIT;
    lbm_context_t *sctx = net_lean_context(), *ctx = net_lean_context();
    lbm_src_t *src = brief_source(sctx, transport);
    lbm_rcv_t *rcv = brief_receiver(ctx, &r);
    CHECK(joins(&r));
    set_loss_rate(100);
    bool ended = recorder_wait(&r, LBM_MSG_EOS, 1);
    usleep(QUIESCENT_AFTER_MS * 1000);
    set_loss_rate(0);
    CHECK(ended);
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 2));
    CHECK(recorder_reads(&r, "BOS EOS BOS "));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sctx));
}

TEST(f13_an_lbtrm_session_that_was_cut_off_is_joined_again)
{
    cut_off_for_a_while("lbtrm", lbm_set_lbtrm_loss_rate);
}

TEST(f13_an_lbtru_session_that_was_cut_off_is_joined_again)
{
    cut_off_for_a_while("lbtru", lbm_set_lbtru_loss_rate);
}
