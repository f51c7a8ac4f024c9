/* What a loss on a session of LBT-RM means for topics and messages: other topics do not wait for it, and a message of
 * many datagrams comes whole all the same. */
#include "um_test_rcv.h"

/* What came on any topic, in the order in which it came: "a0 b0 ". */
struct story {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char text[256];
    int count;
};

static int tell(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct story *story = clientd;
    (void)rcv;
    if (msg->type == LBM_MSG_BOS || msg->type == LBM_MSG_EOS) {
        return 0;
    }
    pthread_mutex_lock(&story->lock);
    size_t used = strlen(story->text);
    snprintf(story->text + used, sizeof story->text - used, "%s%u ", msg->type == LBM_MSG_DATA ? msg->topic_name : "?",
             msg->sequence_number);
    story->count++;
    pthread_cond_broadcast(&story->changed);
    pthread_mutex_unlock(&story->lock);
    return 0;
}

static bool story_reads(struct story *story, int count, const char *text)
{
    pthread_mutex_lock(&story->lock);
    bool ok = wait_for_count(&story->changed, &story->lock, &story->count, count) && strcmp(story->text, text) == 0;
    if (!ok) {
        fprintf(stderr, "came: %s\n", story->text);
    }
    pthread_mutex_unlock(&story->lock);
    return ok;
}

/* Heard of before it sends. */
static lbm_src_t *source(lbm_context_t *ctx, const char *name)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", "LBT-RM"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_topic_sequence_number_info_interval", "50"));
    MUST(lbm_src_topic_alloc(&topic, ctx, name, attr));
    MUST(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL));
    lbm_src_topic_attr_delete(attr);
    return src;
}

/* Whose gaps stay open for ten minutes unless they are filled. */
static lbm_rcv_t *receiver(lbm_context_t *ctx, const char *name, lbm_rcv_cb_proc proc, void *clientd)
{
    lbm_rcv_topic_attr_t *attr;
    MUST(lbm_rcv_topic_attr_create(&attr));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "transport_lbtrm_nak_generation_interval", "600000"));
    lbm_rcv_t *rcv = net_receiver(ctx, name, attr, proc, clientd, NULL);
    lbm_rcv_topic_attr_delete(attr);
    MUST(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000));
    return rcv;
}

TEST(a_gap_of_one_topic_does_not_delay_another_one_of_the_session)
{
    TEST_NEEDS_NET();
    struct story story = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    lbm_context_t *sender = net_context(), *ctx = net_context();
    lbm_src_t *a = source(sender, "a"), *b = source(sender, "b");
    lbm_rcv_t *ra = receiver(ctx, "a", tell, &story), *rb = receiver(ctx, "b", tell, &story);
    net_send(a, "first");
    CHECK(story_reads(&story, 1, "a0 "));
    net_send(b, "first");
    CHECK(story_reads(&story, 2, "a0 b0 "));
    MUST(lbm_context_set_nak_cutoff(ctx, LBM_NAK_CUTOFF_FLAG_DISABLE_NAKS));
    lbm_set_lbtrm_src_loss_rate(100);
    net_send(a, "lost");
    lbm_set_lbtrm_src_loss_rate(0);
    net_send(a, "waits");
    net_send(b, "does not");
    CHECK(story_reads(&story, 3, "a0 b0 b1 "));
    MUST(lbm_context_set_nak_cutoff(ctx, LBM_NAK_CUTOFF_FLAG_ENABLE_NAKS));
    CHECK(story_reads(&story, 5, "a0 b0 b1 a1 a2 "));
    MUST(lbm_rcv_delete(ra));
    MUST(lbm_rcv_delete(rb));
    MUST(lbm_src_delete(a));
    MUST(lbm_src_delete(b));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
}

#define BIG 100000u

struct arrival {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int count, wrong;
};

static int check_arrival(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct arrival *arrival = clientd;
    (void)rcv;
    if (msg->type == LBM_MSG_BOS) {
        return 0;
    }
    pthread_mutex_lock(&arrival->lock);
    arrival->wrong += msg->type != LBM_MSG_DATA || msg->len != BIG;
    for (unsigned i = 0; arrival->wrong == 0 && i < BIG; i++) {
        arrival->wrong += (unsigned char)msg->data[i] != (unsigned char)(i * 7 + (unsigned)arrival->count);
    }
    arrival->count++;
    pthread_cond_broadcast(&arrival->changed);
    pthread_mutex_unlock(&arrival->lock);
    return 0;
}

TEST(messages_of_a_hundred_thousand_bytes_come_whole_though_one_datagram_in_a_hundred_is_lost)
{
    TEST_NEEDS_NET();
    enum { MESSAGES = 8 };
    static char data[BIG];
    struct arrival arrival = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    lbm_context_t *sender = net_context(), *ctx = net_context();
    lbm_src_t *src = source(sender, "big");
    lbm_rcv_t *rcv = receiver(ctx, "big", check_arrival, &arrival);
    lbm_set_lbtrm_src_loss_rate(1);
    for (unsigned n = 0; n < MESSAGES; n++) {
        for (unsigned i = 0; i < BIG; i++) {
            data[i] = (char)(i * 7 + n);
        }
        MUST(lbm_src_send(src, data, BIG, LBM_MSG_FLUSH));
    }
    lbm_set_lbtrm_src_loss_rate(0);
    pthread_mutex_lock(&arrival.lock);
    CHECK(wait_for_count(&arrival.changed, &arrival.lock, &arrival.count, MESSAGES));
    CHECK_EQ(arrival.wrong, 0);
    pthread_mutex_unlock(&arrival.lock);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
}
