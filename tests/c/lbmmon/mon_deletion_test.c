/* Objects that are deleted while they are monitored: the deletion waits for a look at them and for nothing else, and no
 * sample touches what is gone. Run under the thread and the address sanitizer. */
#include <unistd.h>

#include <lbm/lbmmon.h>

#include "um_test.h"
#include "um_test_net.h"
#include "um_test_mon.h"

#include "base/um_clock.h"
#include "lbmmon/um_mon_objects.h"
#include "lbmmon/um_mon_sctl.h"

static atomic_ulong packets;
static atomic_bool hold; /* own_send waits while it is set */
static atomic_bool held; /* and says that it does */

static int count_send(const char *data, size_t len, void *clientd)
{
    packets++;
    while (hold) {
        held = true;
        sleep_ms(1);
    }
    held = false;
    return 0;
}

static const lbmmon_transport_func_t counting = {.mSend = count_send};

static lbmmon_sctl_t *counting_sender(void)
{
    lbmmon_sctl_t *control;
    packets = 0;
    MON_MUST(lbmmon_sctl_create(&control, lbmmon_format_csv_module(), NULL, &counting, NULL));
    return control;
}

struct sampler {
    lbmmon_sctl_t *control;
    atomic_bool stop;
};

static void *sample_all_the_time(void *arg)
{
    struct sampler *sampler = arg;
    while (!sampler->stop) {
        MON_MUST(lbmmon_sctl_sample(sampler->control));
    }
    return NULL;
}

/* One round of every kind of object, monitored and deleted without a word to the controller. */
static void live_and_die(lbm_context_t *ctx, lbmmon_sctl_t *control, int round)
{
    struct recorder r = RECORDER_INIT;
    lbm_event_queue_t *evq;
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "deleted", &r);
    lbm_src_t *src = net_source(ctx, "deleted");
    MUST(lbm_event_queue_create(&evq, NULL, NULL, NULL));
    MON_MUST(lbmmon_rcv_monitor(control, rcv, NULL, 0));
    MON_MUST(lbmmon_src_monitor(control, src, NULL, 0));
    MON_MUST(lbmmon_evq_monitor(control, evq, NULL, 0));
    if (round % 4 == 0) {
        MUST(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000));
    }
    MUST(lbm_src_send(src, "x", 1, LBM_MSG_FLUSH));
    if (round % 3 == 0) {
        MON_MUST(lbmmon_src_unmonitor(control, src));
    }
    MUST(lbm_src_delete(src));
    MUST(lbm_event_queue_delete(evq));
    MUST(lbm_rcv_delete(rcv));
}

TEST(objects_come_and_go_while_they_are_sampled)
{
    TEST_NEEDS_NET();
    lbmmon_sctl_t *control = counting_sender();
    struct sampler sampler = {.control = control};
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, sample_all_the_time, &sampler) == 0);
    for (int round = 0; round < 12; round++) {
        lbm_context_t *ctx = net_lean_context();
        MON_MUST(lbmmon_context_monitor(control, ctx, NULL, 0));
        for (int i = 0; i < 4; i++) {
            live_and_die(ctx, control, round * 4 + i);
        }
        MUST(lbm_context_delete(ctx));
    }
    sampler.stop = true;
    pthread_join(thread, NULL);
    CHECK(packets > 0);
    MON_MUST(lbmmon_sctl_destroy(control));
    CHECK_EQ(atomic_load(&um_monitored_objects), 0); /* nothing is remembered of them */
}

/* A transport that does not return holds up samples; it holds up neither sends nor deletions. */
TEST(a_transport_that_has_stopped_holds_up_no_object)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = net_source(ctx, "free");
    lbmmon_sctl_t *control = counting_sender();
    MON_MUST(lbmmon_src_monitor(control, src, NULL, 1));
    hold = true;
    for (int i = 0; i < HANG_SECONDS * 1000 && !held; i++) {
        sleep_ms(1);
    }
    CHECK(held);
    MUST(lbm_src_send(src, "x", 1, LBM_MSG_FLUSH));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx)); /* all of this while the thread is inside the transport */
    CHECK(held);
    hold = false;
    MON_MUST(lbmmon_sctl_destroy(control));
}

static void *sample_until_refused(void *arg)
{
    while (lbmmon_sctl_sample(arg) == 0) {
    }
    return lbmmon_errnum() == LBMMON_EINVAL ? arg : NULL;
}

static void *destroy(void *arg)
{
    MON_MUST(lbmmon_sctl_destroy(arg));
    return NULL;
}

/* The controller's thread is held in a sample of its interval: what is asked for meanwhile is never begun. */
TEST(who_waits_for_a_sample_of_a_controller_that_is_destroyed_is_told)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbmmon_sctl_t *control = counting_sender();
    pthread_t asking, destroying;
    void *told = NULL;
    hold = true;
    MON_MUST(lbmmon_context_monitor(control, ctx, "held", 1));
    while (!held) {
        sleep_ms(1);
    }
    REQUIRE(pthread_create(&asking, NULL, sample_until_refused, control) == 0);
    for (uint64_t asked = 0; asked == 0; sleep_ms(1)) {
        pthread_mutex_lock(&um_mon_lock);
        asked = control->request.asked;
        pthread_mutex_unlock(&um_mon_lock);
    }
    REQUIRE(pthread_create(&destroying, NULL, destroy, control) == 0);
    pthread_join(asking, &told);
    CHECK(told != NULL);
    hold = false;
    pthread_join(destroying, NULL);
    MUST(lbm_context_delete(ctx));
}

/* The other way round: a deletion waits as long as somebody looks at the object. */
static lbm_src_t *looked_at;
static atomic_bool deleted;

static void *delete_source(void *arg)
{
    MUST(lbm_src_delete(looked_at));
    deleted = true;
    return NULL;
}

TEST(a_deletion_waits_for_a_look_at_the_object)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbmmon_sctl_t *control = counting_sender();
    pthread_t thread;
    looked_at = net_source(ctx, "busy");
    deleted = false;
    MON_MUST(lbmmon_src_monitor(control, looked_at, NULL, 0));
    pthread_mutex_lock(&um_mon_lock);
    struct um_mon_object *object = um_mon_object_find(looked_at);
    bool used = um_mon_object_use(object);
    pthread_mutex_unlock(&um_mon_lock);
    CHECK(used);
    REQUIRE(pthread_create(&thread, NULL, delete_source, NULL) == 0);
    pthread_mutex_lock(&um_mon_lock);
    while (!object->closing) {
        pthread_mutex_unlock(&um_mon_lock);
        sleep_ms(1);
        pthread_mutex_lock(&um_mon_lock);
    }
    CHECK(!um_mon_object_use(object)); /* nobody begins to look */
    CHECK(!deleted);
    um_mon_object_release(object);
    pthread_mutex_unlock(&um_mon_lock);
    pthread_join(thread, NULL);
    CHECK(deleted);
    MON_MUST(lbmmon_sctl_destroy(control));
    MUST(lbm_context_delete(ctx));
}

/* A deletion that fails leaves the object monitored. */
TEST(an_object_whose_deletion_failed_is_still_monitored)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = net_source(ctx, "alive");
    lbmmon_sctl_t *control = counting_sender();
    MON_MUST(lbmmon_context_monitor(control, ctx, NULL, 0));
    CHECK_EQ(lbm_context_delete(ctx), -1); /* it has a source */
    MON_MUST(lbmmon_sctl_sample(control));
    CHECK(packets > 0);
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    packets = 0;
    MON_MUST(lbmmon_sctl_sample(control));
    CHECK_EQ(packets, 0);
    MON_MUST(lbmmon_sctl_destroy(control));
}

/* Automatic monitoring: begun and ended again and again, by several threads. */
static void *monitored_lives(void *arg)
{
    for (int i = 0; i < 6; i++) {
        lbm_context_attr_t *attr = net_context_attr();
        MUST(lbm_context_attr_str_setopt(attr, "request_tcp_bind_request_port", "0"));
        MUST(lbm_context_attr_str_setopt(attr, "monitor_interval", "1"));
        MUST(lbm_context_attr_str_setopt(attr, "monitor_transport_opts", MON_NET));
        lbm_context_t *ctx = net_context_with(attr);
        lbm_src_t *src = net_source(ctx, "auto");
        MUST(lbm_src_delete(src));
        MUST(lbm_context_delete(ctx));
    }
    return NULL;
}

TEST(automatic_monitoring_begins_and_ends_with_the_objects_of_several_threads)
{
    TEST_NEEDS_NET();
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, monitored_lives, NULL) == 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK_EQ(atomic_load(&um_monitored_objects), 0);
}
