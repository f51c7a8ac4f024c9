/* Receivers that are made with subscriptions to channels (um.h): nothing of a replay comes before these hold, for
 * plain, hot failover and wildcard receivers, with and without event queue. */
#include "um_test.h"

#include <lbm/lbm.h>
#include <lbm/um.h>

#include "um_test_net.h"
#include "um_test_rcv.h"

#define MESSAGES 400
#define ROUNDS 4
#define LAST_CHANNEL 4294967295u

/* Message i is on channel_of[i % 4]; the last one is on none. */
static const int64_t channel_of[] = {-1, 7, 8, LAST_CHANNEL};

enum kind { PLAIN, QUEUED, MERGED, PATTERN };

/* What one receiver was given: messages of no channel and of channel 7, in the order they were sent. */
struct heard {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int count, bad, next; /* lock */
    lbm_topic_t *topic;   /* of a receiver whose callback makes others */
};

static int hear(struct heard *h, const lbm_msg_t *msg, bool is_channel)
{
    if (msg->type != LBM_MSG_DATA) {
        return 0;
    }
    int number = -1;
    memcpy(&number, msg->data, sizeof number);
    pthread_mutex_lock(&h->lock);
    bool on_channel = msg->channel_info != NULL;
    bool right =
        number == h->next && on_channel == is_channel && (!on_channel || msg->channel_info->channel_number == 7);
    h->bad += !right || msg->len != sizeof number;
    h->next = number + (number % 4 == 0 ? 1 : 3); /* those in between are of channels that nobody wants */
    h->count++;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
    return 0;
}

static int on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv;
    return hear(clientd, msg, false);
}

static int on_channel(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv;
    return hear(clientd, msg, true);
}

static lbm_src_t *replaying_source(lbm_context_t *ctx, bool hf)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "late_join", "1"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "retransmit_retention_size_threshold", "10000000"));
    MUST(lbm_src_topic_alloc(&topic, ctx, "first", attr));
    lbm_src_topic_attr_delete(attr);
    MUST(hf ? lbm_hf_src_create(&src, ctx, topic, NULL, NULL, NULL)
            : lbm_src_create(&src, ctx, topic, NULL, NULL, NULL));
    return src;
}

static void send_all(lbm_src_t *src, bool hf)
{
    lbm_src_channel_info_t *channel[4] = {NULL};
    for (int i = 1; i < 4; i++) {
        MUST(lbm_src_channel_create(&channel[i], src, (lbm_uint32_t)channel_of[i]));
    }
    for (int i = 0; i <= MESSAGES; i++) {
        lbm_src_send_ex_info_t info = {.flags = i % 4 > 0 ? LBM_SRC_SEND_EX_FLAG_CHANNEL : 0,
                                       .channel_info = channel[i % 4]};
        int flags = LBM_SRC_BLOCK | (i == MESSAGES ? LBM_MSG_FLUSH : 0);
        MUST(hf ? lbm_hf_src_send_ex(src, (char *)&i, sizeof i, (lbm_uint_t)i, flags, &info)
                : lbm_src_send_ex(src, (char *)&i, sizeof i, flags, &info));
    }
    for (int i = 1; i < 4; i++) {
        MUST(lbm_src_channel_delete(channel[i]));
    }
}

struct receiver {
    lbm_rcv_t *plain;
    lbm_hf_rcv_t *merged;
    lbm_wildcard_rcv_t *pattern;
    lbm_event_queue_t *evq;
};

static void create(struct receiver *r, enum kind kind, lbm_context_t *ctx, struct heard *h)
{
    const um_channel_subscription_t channels[] = {{7, on_channel, h}, {9, NULL, NULL}};
    lbm_rcv_topic_attr_t *attr;
    lbm_topic_t *topic;
    *r = (struct receiver){NULL};
    MUST(lbm_rcv_topic_attr_create(&attr));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "unrecognized_channel_behavior", "discard"));
    if (kind == QUEUED) {
        MUST(lbm_event_queue_create(&r->evq, NULL, NULL, NULL));
    }
    if (kind == PATTERN) {
        MUST(
            um_wildcard_rcv_create_on_channels(&r->pattern, ctx, "^fir", attr, NULL, on_message, h, NULL, channels, 2));
    } else {
        MUST(lbm_rcv_topic_lookup(&topic, ctx, "first", attr));
        MUST(kind == MERGED ? um_hf_rcv_create_on_channels(&r->merged, ctx, topic, on_message, h, NULL, channels, 2)
                            : um_rcv_create_on_channels(&r->plain, ctx, topic, on_message, h, r->evq, channels, 2));
    }
    lbm_rcv_topic_attr_delete(attr);
}

static void discard(struct receiver *r)
{
    if (r->plain != NULL) {
        MUST(lbm_rcv_delete(r->plain));
    } else if (r->merged != NULL) {
        MUST(lbm_hf_rcv_delete(r->merged));
    } else {
        MUST(lbm_wildcard_rcv_delete(r->pattern));
    }
    if (r->evq != NULL) {
        MUST(lbm_event_queue_delete(r->evq));
    }
}

static int count_of(struct heard *h)
{
    pthread_mutex_lock(&h->lock);
    int count = h->count;
    pthread_mutex_unlock(&h->lock);
    return count;
}

static bool all_came(struct heard *h, lbm_event_queue_t *evq, int count)
{
    for (int i = 0; evq != NULL && i < HANG_SECONDS * 1000 && count_of(h) < count; i++) {
        while (lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL) > 0) {
        }
        sleep_ms(1);
    }
    pthread_mutex_lock(&h->lock);
    bool ok = wait_for_count(&h->changed, &h->lock, &h->count, count);
    pthread_mutex_unlock(&h->lock);
    return ok;
}

/* Half of the messages are on the channels that are wanted, and the last one. */
static void replay_to(enum kind kind)
{
    lbm_context_t *sending = net_context();
    lbm_src_t *src = replaying_source(sending, kind == MERGED);
    send_all(src, kind == MERGED);
    for (int round = 0; round < ROUNDS; round++) {
        struct heard h = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
        struct receiver r;
        lbm_context_t *receiving = net_context();
        create(&r, kind, receiving, &h);
        CHECK(all_came(&h, r.evq, MESSAGES / 2 + 1));
        discard(&r);
        CHECK_EQ(h.bad, 0);
        CHECK_EQ(h.count, MESSAGES / 2 + 1);
        MUST(lbm_context_delete(receiving));
    }
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(sending));
}

TEST(a_replay_comes_to_a_receiver_as_its_channels_say_from_the_first_message_on)
{
    TEST_NEEDS_NET();
    replay_to(PLAIN);
}

TEST(a_replay_comes_into_an_event_queue_as_the_channels_say)
{
    TEST_NEEDS_NET();
    replay_to(QUEUED);
}

TEST(a_replay_comes_to_a_hot_failover_receiver_as_its_channels_say)
{
    TEST_NEEDS_NET();
    replay_to(MERGED);
}

TEST(a_replay_comes_to_a_wildcard_receiver_as_its_channels_say)
{
    TEST_NEEDS_NET();
    replay_to(PATTERN);
}

TEST(subscriptions_of_the_beginning_end_as_others_do)
{
    TEST_NEEDS_NET();
    struct heard h = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct receiver r;
    lbm_context_t *ctx = net_context();
    create(&r, PLAIN, ctx, &h);
    CHECK_EQ(lbm_rcv_subscribe_channel(r.plain, 7, NULL, NULL), -1);
    CHECK_CONTAINS(lbm_errmsg(), "channel 7: is subscribed already");
    MUST(lbm_rcv_unsubscribe_channel(r.plain, 7));
    MUST(lbm_rcv_subscribe_channel(r.plain, 7, on_channel, &h));
    discard(&r);
    create(&r, PATTERN, ctx, &h);
    MUST(lbm_wildcard_rcv_unsubscribe_channel(r.pattern, 9));
    CHECK_EQ(lbm_wildcard_rcv_unsubscribe_channel(r.pattern, 9), -1);
    discard(&r);
    MUST(lbm_context_delete(ctx));
}

static void refused(int rc, int errnum, const char *text)
{
    CHECK_EQ(rc, -1);
    CHECK_EQ(lbm_errnum(), errnum);
    CHECK_CONTAINS(lbm_errmsg(), text);
}

static int create_inside(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct heard *h = clientd;
    lbm_rcv_t *other;
    lbm_wildcard_rcv_t *pattern;
    lbm_context_t *ctx = lbm_context_from_rcv(rcv);
    const um_channel_subscription_t channel = {7, NULL, NULL};
    if (msg->type == LBM_MSG_DATA) {
        lbm_topic_t *topic = h->topic;
        refused(um_rcv_create_on_channels(&other, ctx, topic, on_message, h, NULL, &channel, 1), LBM_EOP,
                "um_rcv_create_on_channels");
        refused(um_wildcard_rcv_create_on_channels(&pattern, ctx, "x", NULL, NULL, on_message, h, NULL, &channel, 1),
                LBM_EOP, "um_wildcard_rcv_create_on_channels");
        pthread_mutex_lock(&h->lock);
        h->count++;
        pthread_cond_broadcast(&h->changed);
        pthread_mutex_unlock(&h->lock);
    }
    return 0;
}

TEST(wrong_subscriptions_are_named_and_nothing_is_made)
{
    TEST_NEEDS_NET();
    struct heard h = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    const um_channel_subscription_t twice[] = {{7, NULL, NULL}, {LAST_CHANNEL, NULL, NULL}, {7, on_channel, &h}};
    um_object_counts_t counts;
    lbm_topic_t *topic;
    lbm_rcv_t *rcv;
    lbm_hf_rcv_t *hf;
    lbm_wildcard_rcv_t *wrcv;
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = net_source(ctx, "first");
    MUST(lbm_rcv_topic_lookup(&topic, ctx, "first", NULL));
    refused(um_rcv_create_on_channels(&rcv, ctx, topic, on_message, &h, NULL, twice, 3), LBM_EINVAL,
            "um_rcv_create_on_channels: channel 7: is subscribed already");
    refused(um_hf_rcv_create_on_channels(&hf, ctx, topic, on_message, &h, NULL, twice, 3), LBM_EINVAL,
            "um_hf_rcv_create_on_channels: channel 7");
    refused(um_wildcard_rcv_create_on_channels(&wrcv, ctx, "^f", NULL, NULL, on_message, &h, NULL, twice, 3),
            LBM_EINVAL, "um_wildcard_rcv_create_on_channels: channel 7");
    refused(um_rcv_create_on_channels(&rcv, ctx, topic, on_message, &h, NULL, NULL, 1), LBM_EINVAL,
            "channels: must not be NULL when count is 1");
    refused(um_wildcard_rcv_create_on_channels(&wrcv, ctx, "^f", NULL, NULL, on_message, &h, NULL, NULL, 2), LBM_EINVAL,
            "channels: must not be NULL when count is 2");
    refused(um_rcv_create_on_channels(NULL, ctx, topic, on_message, &h, NULL, twice, 1), LBM_EINVAL, "rcvp");
    MUST(um_object_counts(&counts));
    CHECK_EQ(counts.receivers, 0);
    MUST(um_rcv_create_on_channels(&rcv, ctx, topic, create_inside, &h, NULL, NULL, 0));
    h.topic = topic;
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    MUST(lbm_src_send(src, "x", 1, LBM_MSG_FLUSH));
    CHECK(all_came(&h, NULL, 1));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}
