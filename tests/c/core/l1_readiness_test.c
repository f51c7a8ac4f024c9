/* Requirement L1: a publisher can know when its receivers are there, and everything it sends from then on arrives.
 * No waiting by the clock: each message is sent the moment readiness is reported. */
#include "um_test.h"
#include "um_test_net.h"
#include "um_test_rcv.h"

#define ROUNDS 10
#define MESSAGES 200

/* Everything from the first number sent, in order, none missing. */
struct counter {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int next;
    bool wrong;
};

static int count_cb(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct counter *c = clientd;
    (void)rcv;
    pthread_mutex_lock(&c->lock);
    if (msg->type == LBM_MSG_DATA) {
        int number;
        memcpy(&number, msg->data, sizeof number);
        c->wrong |= msg->len != sizeof number || number != c->next;
        c->next = number + 1;
    }
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    return 0;
}

static bool all_arrived(struct counter *c)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += HANG_SECONDS;
    int rc = 0;
    pthread_mutex_lock(&c->lock);
    while (c->next < MESSAGES && rc == 0) {
        rc = pthread_cond_timedwait(&c->changed, &c->lock, &until);
    }
    bool ok = c->next == MESSAGES && !c->wrong;
    if (!ok) {
        fprintf(stderr, "next %d, wrong %d\n", c->next, c->wrong);
    }
    pthread_mutex_unlock(&c->lock);
    return ok;
}

static void send_all(lbm_src_t *src)
{
    for (int i = 0; i < MESSAGES; i++) {
        MUST(lbm_src_send(src, (const char *)&i, sizeof i, i == MESSAGES - 1 ? LBM_MSG_FLUSH : 0));
    }
}

TEST(l1_what_is_sent_after_the_source_has_its_receivers_arrives)
{
    TEST_NEEDS_NET();
    for (int round = 0; round < ROUNDS; round++) {
        struct counter counters[3];
        lbm_context_t *ctx = net_context(), *others[3];
        lbm_rcv_t *receivers[3];
        lbm_src_t *src = round % 2 ? net_source(ctx, "l1") : NULL; /* the source first, or the receivers */
        for (int i = 0; i < 3; i++) {
            counters[i] = (struct counter){PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, false};
            others[i] = net_context();
            receivers[i] = net_receiver(others[i], "l1", NULL, count_cb, &counters[i], NULL);
        }
        src = src != NULL ? src : net_source(ctx, "l1");
        CHECK_EQ(um_src_wait_receivers(src, 3, HANG_SECONDS * 1000), 0);
        send_all(src);
        for (int i = 0; i < 3; i++) {
            CHECK(all_arrived(&counters[i]));
            lbm_rcv_delete(receivers[i]);
            lbm_context_delete(others[i]);
        }
        lbm_src_delete(src);
        lbm_context_delete(ctx);
    }
}

TEST(l1_what_is_sent_after_the_receiver_is_ready_arrives)
{
    TEST_NEEDS_NET();
    for (int round = 0; round < ROUNDS; round++) {
        struct counter counter = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, false};
        lbm_context_t *ctx = net_context(), *other = net_context();
        lbm_rcv_t *rcv = net_receiver(other, "l1", NULL, count_cb, &counter, NULL);
        lbm_src_t *src = net_source(ctx, "l1");
        CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
        send_all(src);
        CHECK(all_arrived(&counter));
        lbm_rcv_delete(rcv);
        lbm_src_delete(src);
        lbm_context_delete(other);
        lbm_context_delete(ctx);
    }
}

/* The CONNECT event is where a program without um.h begins. */
static int on_source_event(lbm_src_t *src, int event, void *ed, void *clientd)
{
    (void)ed;
    (void)clientd;
    if (event == LBM_SRC_EVENT_CONNECT) {
        send_all(src);
    }
    return 0;
}

TEST(l1_what_is_sent_inside_the_connect_event_arrives)
{
    TEST_NEEDS_NET();
    for (int round = 0; round < ROUNDS; round++) {
        struct counter counter = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, false};
        lbm_context_t *ctx = net_context(), *other = net_context();
        lbm_rcv_t *rcv = net_receiver(other, "l1", NULL, count_cb, &counter, NULL);
        lbm_topic_t *topic;
        lbm_src_t *src;
        MUST(lbm_src_topic_alloc(&topic, ctx, "l1", NULL));
        MUST(lbm_src_create(&src, ctx, topic, on_source_event, NULL, NULL));
        CHECK(all_arrived(&counter));
        lbm_rcv_delete(rcv);
        lbm_src_delete(src);
        lbm_context_delete(other);
        lbm_context_delete(ctx);
    }
}
