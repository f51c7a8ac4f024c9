/* Callbacks of two contexts that delete each other's receivers while one of these is sampled: nobody waits in a circle.
 * Run under the thread and the address sanitizer. */
#include <semaphore.h>
#include <unistd.h>

#include <lbm/lbmmon.h>

#include "um_test.h"
#include "um_test_net.h"
#include "um_test_mon.h"
#include "um_test_xsp.h"

#include "lbmmon/um_mon_objects.h"

static int no_send(const char *data, size_t len, void *clientd)
{
    return 0;
}

static const lbmmon_transport_func_t nowhere = {.mSend = no_send};

/* What a callback deletes, and when. */
struct deletion {
    sem_t entered, go;
    lbm_rcv_t *victim;
    int rc, errnum;
    sem_t done;
};

static int delete_other(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct deletion *deletion = clientd;
    if (msg->type == LBM_MSG_DATA) {
        sem_post(&deletion->entered);
        REQUIRE(wait_sem(&deletion->go));
        deletion->rc = lbm_rcv_delete(deletion->victim);
        deletion->errnum = deletion->rc == 0 ? 0 : lbm_errnum();
        sem_post(&deletion->done);
    }
    return 0;
}

static void init(struct deletion *deletion)
{
    sem_init(&deletion->entered, 0, 0);
    sem_init(&deletion->go, 0, 0);
    sem_init(&deletion->done, 0, 0);
}

/* Waits until somebody looks at the object. */
static bool is_looked_at(void *handle)
{
    bool used = false;
    for (int i = 0; i < HANG_SECONDS * 1000 && !used; i++) {
        pthread_mutex_lock(&um_mon_lock);
        used = um_mon_object_find(handle)->users > 0;
        pthread_mutex_unlock(&um_mon_lock);
        sleep_ms(1);
    }
    return used;
}

static void *sample(void *arg)
{
    MON_MUST(lbmmon_sctl_sample(arg));
    return NULL;
}

/* The sampling thread waits for the XSP, the XSP for the plain context, whose callback must not wait for the sampling
 * thread. */
TEST(a_receiver_on_an_xsp_that_is_sampled_is_not_waited_for_in_a_callback)
{
    TEST_NEEDS_NET();
    struct mapper m = {0};
    struct deletion plain_deletes = {0}, xsp_deletes = {0};
    init(&plain_deletes);
    init(&xsp_deletes);
    lbm_context_t *sender = sending_context(), *mapped = world(&m, 1), *plain = net_context();
    lbm_src_t *to_plain = net_source(sender, "plain"), *to_mapped = net_source(sender, "mapped");
    lbm_rcv_t *in_plain = net_receiver(plain, "plain", NULL, delete_other, &plain_deletes, NULL);
    lbm_rcv_t *in_mapped = net_receiver(mapped, "mapped", NULL, delete_other, &xsp_deletes, NULL);
    plain_deletes.victim = in_mapped;
    xsp_deletes.victim = in_plain;
    CHECK_EQ(um_rcv_wait_ready(in_plain, 1, HANG_SECONDS * 1000), 0);
    CHECK_EQ(um_rcv_wait_ready(in_mapped, 1, HANG_SECONDS * 1000), 0);
    net_send(to_mapped, "m");
    net_send(to_plain, "p");
    REQUIRE(wait_sem(&xsp_deletes.entered) && wait_sem(&plain_deletes.entered));

    lbmmon_sctl_t *control;
    pthread_t thread;
    MON_MUST(lbmmon_sctl_create(&control, lbmmon_format_csv_module(), NULL, &nowhere, NULL));
    MON_MUST(lbmmon_rcv_monitor(control, in_mapped, NULL, 0));
    REQUIRE(pthread_create(&thread, NULL, sample, control) == 0);
    REQUIRE(is_looked_at(in_mapped));
    sem_post(&plain_deletes.go);
    REQUIRE(wait_sem(&plain_deletes.done)); /* while the other callback still holds up the sample */
    CHECK_EQ(plain_deletes.rc, -1);
    CHECK_EQ(plain_deletes.errnum, LBM_EOP);
    sem_post(&xsp_deletes.go);
    REQUIRE(wait_sem(&xsp_deletes.done));
    CHECK_EQ(xsp_deletes.rc, 0);

    pthread_join(thread, NULL);
    MON_MUST(lbmmon_sctl_destroy(control));
    MUST(lbm_rcv_delete(in_mapped));
    MUST(lbm_src_delete(to_plain));
    MUST(lbm_src_delete(to_mapped));
    end_world(mapped, &m);
    MUST(lbm_context_delete(plain));
    MUST(lbm_context_delete(sender));
}

/* The sampling thread waits for one context, whose callback must not wait for the other one in turn. */
TEST(of_two_contexts_whose_callbacks_wait_for_each_other_and_a_sample_one_is_refused)
{
    TEST_NEEDS_NET();
    struct deletion left_deletes = {0}, right_deletes = {0};
    init(&left_deletes);
    init(&right_deletes);
    lbm_context_t *sender = sending_context(), *left = net_context(), *right = net_context();
    lbm_src_t *to_left = net_source(sender, "left"), *to_right = net_source(sender, "right");
    lbm_rcv_t *in_left = net_receiver(left, "left", NULL, delete_other, &left_deletes, NULL);
    lbm_rcv_t *in_right = net_receiver(right, "right", NULL, delete_other, &right_deletes, NULL);
    left_deletes.victim = in_right;
    right_deletes.victim = in_left;
    CHECK_EQ(um_rcv_wait_ready(in_left, 1, HANG_SECONDS * 1000), 0);
    CHECK_EQ(um_rcv_wait_ready(in_right, 1, HANG_SECONDS * 1000), 0);
    net_send(to_left, "l");
    net_send(to_right, "r");
    REQUIRE(wait_sem(&left_deletes.entered) && wait_sem(&right_deletes.entered));

    lbmmon_sctl_t *control;
    pthread_t thread;
    MON_MUST(lbmmon_sctl_create(&control, lbmmon_format_csv_module(), NULL, &nowhere, NULL));
    MON_MUST(lbmmon_rcv_monitor(control, in_right, NULL, 0));
    REQUIRE(pthread_create(&thread, NULL, sample, control) == 0);
    REQUIRE(is_looked_at(in_right));
    sem_post(&left_deletes.go);
    bool closing = false;
    for (int i = 0; i < HANG_SECONDS * 1000 && !closing; i++) { /* it waits for the sample */
        pthread_mutex_lock(&um_mon_lock);
        closing = um_mon_object_find(in_right)->closing;
        pthread_mutex_unlock(&um_mon_lock);
        sleep_ms(1);
    }
    CHECK(closing);
    sem_post(&right_deletes.go);
    REQUIRE(wait_sem(&right_deletes.done) && wait_sem(&left_deletes.done));
    CHECK_EQ(right_deletes.rc, -1);
    CHECK_EQ(right_deletes.errnum, LBM_EOP);
    CHECK_EQ(left_deletes.rc, 0);

    pthread_join(thread, NULL);
    MON_MUST(lbmmon_sctl_destroy(control));
    MUST(lbm_rcv_delete(in_left));
    MUST(lbm_src_delete(to_left));
    MUST(lbm_src_delete(to_right));
    MUST(lbm_context_delete(left));
    MUST(lbm_context_delete(right));
    MUST(lbm_context_delete(sender));
}
