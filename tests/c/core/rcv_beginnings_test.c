/* Where a source begins for a receiver that joins it while a datagram of its session is missing, and what is told when
 * that is not waited for any longer. On a private loopback network. */
#include <stdatomic.h>

#include "um_test_net.h"
#include "um_test_rcv.h"

#include <lbm/um.h>

#define HELD "4"

static atomic_int told;
static atomic_bool told_topic;

static int count_told(int level, const char *message, void *clientd)
{
    if (strstr(message, "Core-9006-15") != NULL) {
        atomic_store(&told_topic, level == LBM_LOG_WARNING && strstr(message, "[beginnings/second]") != NULL);
        atomic_fetch_add(&told, 1);
    }
    return 0;
}

static lbm_src_t *source(lbm_context_t *ctx, const char *name)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", "lbtrm"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_lbtrm_multicast_address", "224.0.77.20"));
    MUST(lbm_src_topic_alloc(&topic, ctx, name, attr));
    MUST(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL));
    lbm_src_topic_attr_delete(attr);
    return src;
}

static lbm_rcv_t *patient_receiver(lbm_context_t *ctx, const char *name, struct recorder *r)
{
    lbm_rcv_topic_attr_t *attr;
    MUST(lbm_rcv_topic_attr_create(&attr));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "transport_lbtrm_nak_generation_interval", "600000"));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "transport_lbtrm_nak_initial_backoff_interval", "300000"));
    lbm_rcv_t *rcv = net_receiver(ctx, name, attr, recorder_cb, r, NULL);
    lbm_rcv_topic_attr_delete(attr);
    return rcv;
}

/* Sends until one was lost. */
static void lose_one(lbm_src_t *src, lbm_context_t *receiving)
{
    um_context_stats_t stats = {0};
    lbm_set_lbtrm_loss_rate(100);
    for (int i = 0; i < HANG_SECONDS * 100 && stats.udp_injected == 0; i++) {
        net_send(src, "lost");
        usleep(10000);
        MUST(um_context_stats(receiving, &stats));
    }
    lbm_set_lbtrm_loss_rate(0);
}

/* For all that its receiver knows the datagram that is missing has the first messages of the second topic. */
TEST(a_beginning_that_is_cut_for_its_size_is_counted_and_told_with_topic_and_source)
{
    TEST_NEEDS_NET();
    struct recorder first = RECORDER_INIT, second = RECORDER_INIT;
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "delivery_control_maximum_total_map_entries", HELD));
    lbm_context_t *sending = net_lean_context(), *receiving = net_context_with(attr);
    lbm_src_t *one = source(sending, "beginnings/first"), *two = source(sending, "beginnings/second");
    lbm_rcv_t *rcv = patient_receiver(receiving, "beginnings/first", &first);
    atomic_store(&told, 0);
    MUST(lbm_log(count_told, NULL));
    for (int i = 0; i < HANG_SECONDS * 100 && recorder_count(&first, LBM_MSG_DATA) == 0; i++) {
        net_send(one, "first");
        usleep(10000);
    }
    lbm_rcv_t *later = patient_receiver(receiving, "beginnings/second", &second);
    lose_one(one, receiving);
    um_rcv_stats_t stats = {0};
    for (int i = 0; i < HANG_SECONDS * 100 && stats.openings_cut == 0; i++) {
        net_send(two, "second");
        usleep(10000);
        MUST(um_rcv_stats(later, NULL, &stats));
    }
    CHECK_EQ(stats.openings_cut, 1);
    CHECK(recorder_wait(&second, LBM_MSG_DATA, 4)); /* what was held is delivered */
    CHECK_EQ(atomic_load(&told), 1);
    CHECK(atomic_load(&told_topic));
    MUST(lbm_log(NULL, NULL));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_rcv_delete(later));
    MUST(lbm_src_delete(one));
    MUST(lbm_src_delete(two));
    MUST(lbm_context_delete(receiving));
    MUST(lbm_context_delete(sending));
}

static atomic_int map_told;

static int count_map_told(int level, const char *message, void *clientd)
{
    if (strstr(message, "Core-7506-2: topic [beginnings/full] source [LBTRM:") == message && level == LBM_LOG_WARNING) {
        atomic_fetch_add(&map_told, 1);
    }
    return 0;
}

TEST(a_gap_that_is_given_up_because_too_much_waits_behind_it_is_told_with_topic_and_source)
{
    TEST_NEEDS_NET();
    struct recorder r = RECORDER_INIT;
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "delivery_control_maximum_total_map_entries", HELD));
    lbm_context_t *sending = net_lean_context(), *receiving = net_context_with(attr);
    lbm_src_t *src = source(sending, "beginnings/full");
    lbm_rcv_t *rcv = patient_receiver(receiving, "beginnings/full", &r);
    MUST(lbm_log(count_map_told, NULL));
    for (int i = 0; i < HANG_SECONDS * 100 && recorder_count(&r, LBM_MSG_DATA) == 0; i++) {
        net_send(src, "first");
        usleep(10000);
    }
    lose_one(src, receiving);
    CHECK_EQ(atomic_load(&map_told), 0);
    for (int i = 0; i < HANG_SECONDS * 100 && recorder_count(&r, LBM_MSG_UNRECOVERABLE_LOSS) == 0; i++) {
        net_send(src, "behind");
        usleep(10000);
    }
    CHECK(recorder_wait(&r, LBM_MSG_UNRECOVERABLE_LOSS, 1));
    CHECK_EQ(atomic_load(&map_told), 1);
    MUST(lbm_log(NULL, NULL));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(receiving));
    MUST(lbm_context_delete(sending));
}
