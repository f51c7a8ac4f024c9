/* Channels of smart sources: what receivers see of each use of a buffer, live and late, in one piece and in many; that
 * a send allocates nothing; wrong calls. */
#include <stdatomic.h>

#include <lbm/lbm.h>
#include <lbm/um.h>

#include "base/um_mem.h"
#include "um_test.h"
#include "um_test_rcv.h"

#define CHANNEL LBM_SSRC_SEND_EX_FLAG_CHANNEL
#define UPDATE LBM_SSRC_SEND_EX_FLAG_UPDATE_CHANNEL
#define REBUILD LBM_SSRC_SEND_EX_FLAG_REBUILD_BUFFER

/* All but the messages "first", as text: "7=a ", "-=b " without channel; of long messages one character. */
struct heard {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char text[8192];
    int firsts, count, bad;
};

#define HEARD_INIT                                                                                                     \
    {                                                                                                                  \
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER                                         \
    }

static void note(struct heard *h, const lbm_msg_t *msg)
{
    size_t used = strlen(h->text);
    char number[16] = "-";
    if (msg->channel_info != NULL) {
        snprintf(number, sizeof number, "%u", msg->channel_info->channel_number);
    }
    snprintf(h->text + used, sizeof h->text - used, "%s=%.*s ", number, msg->len < 8 ? (int)msg->len : 1, msg->data);
    h->count++;
}

static int on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv;
    struct heard *h = clientd;
    pthread_mutex_lock(&h->lock);
    if (msg->type == LBM_MSG_DATA && msg->len == 5 && memcmp(msg->data, "first", 5) == 0) {
        h->firsts++;
    } else if (msg->type == LBM_MSG_DATA) {
        note(h, msg);
    }
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
    return 0;
}

static bool heard_wait(struct heard *h, int count)
{
    pthread_mutex_lock(&h->lock);
    bool ok = wait_for_count(&h->changed, &h->lock, &h->count, count);
    pthread_mutex_unlock(&h->lock);
    return ok;
}

static int heard_count(struct heard *h)
{
    pthread_mutex_lock(&h->lock);
    int count = h->count;
    pthread_mutex_unlock(&h->lock);
    return count;
}

static bool heard_reads(struct heard *h, const char *text)
{
    pthread_mutex_lock(&h->lock);
    bool same = strcmp(h->text, text) == 0;
    if (!same) {
        fprintf(stderr, "heard: %s\n", h->text);
    }
    pthread_mutex_unlock(&h->lock);
    return same;
}

static lbm_ssrc_t *smart_source(lbm_context_t *ctx, const char *transport, const char *channels, const char *late_join)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_ssrc_t *ssrc;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", transport));
    MUST(lbm_src_topic_attr_str_setopt(attr, "smart_src_enable_spectrum_channel", channels));
    MUST(lbm_src_topic_attr_str_setopt(attr, "late_join", late_join));
    MUST(lbm_src_topic_alloc(&topic, ctx, "smart", attr));
    lbm_src_topic_attr_delete(attr);
    MUST(lbm_ssrc_create(&ssrc, ctx, topic, NULL, NULL, NULL));
    return ssrc;
}

static lbm_rcv_t *receiver(lbm_context_t *ctx, const char *late_join, struct heard *h)
{
    lbm_rcv_topic_attr_t *attr;
    MUST(lbm_rcv_topic_attr_create(&attr));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "use_late_join", late_join));
    lbm_rcv_t *rcv = net_receiver(ctx, "smart", attr, on_message, h, NULL);
    lbm_rcv_topic_attr_delete(attr);
    MUST(lbm_rcv_subscribe_channel(rcv, 7, NULL, NULL));
    return rcv;
}

static void send_with(lbm_ssrc_t *ssrc, char *buffer, const char *text, int flags, lbm_uint32_t channel)
{
    lbm_ssrc_send_ex_info_t info = {.flags = flags, .channel = channel};
    memcpy(buffer, text, strlen(text));
    MUST(lbm_ssrc_send_ex(ssrc, buffer, strlen(text), 0, &info));
}

/* Does nothing until this thread lets it: subscriptions are there before anything is received. */
static lbm_context_t *idle_context(void)
{
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "operational_mode", "sequential"));
    return net_context_with(attr);
}

static bool heard_when_it_runs(lbm_context_t *ctx, struct heard *h, int count)
{
    for (int i = 0; i < HANG_SECONDS * 1000 && heard_count(h) < count; i++) {
        MUST(lbm_context_process_events(ctx, 1));
    }
    return heard_count(h) >= count;
}

/* The first messages of a session may come before its receivers are there. */
static bool until_heard(lbm_ssrc_t *ssrc, char *buffer, struct heard *h)
{
    int firsts = 0;
    for (int i = 0; i < HANG_SECONDS * 1000 && firsts == 0; i++) {
        send_with(ssrc, buffer, "first", 0, 0);
        nanosleep(&(struct timespec){0, 1000000}, NULL);
        pthread_mutex_lock(&h->lock);
        firsts = h->firsts;
        pthread_mutex_unlock(&h->lock);
    }
    return firsts > 0;
}

/* A number is that of the first send with the buffer, until it is told another one. */
static void send_story(lbm_ssrc_t *ssrc, char *buffer)
{
    static char big[20000];
    char *other;
    memset(big, 'x', sizeof big);
    send_with(ssrc, buffer, "a", CHANNEL, 7);
    send_with(ssrc, buffer, "b", CHANNEL, 8);
    send_with(ssrc, buffer, "c", CHANNEL | UPDATE, 9);
    send_with(ssrc, buffer, "d", CHANNEL, 10);
    send_with(ssrc, buffer, "e", CHANNEL | REBUILD, 4294967295);
    send_with(ssrc, buffer, "f", UPDATE, 11);
    send_with(ssrc, buffer, "g", 0, 12);
    MUST(lbm_ssrc_send_ex(ssrc, buffer, 1, 0, NULL));
    MUST(lbm_ssrc_buff_get(ssrc, &other, 0));
    send_with(ssrc, other, "i", CHANNEL, 13);
    lbm_ssrc_send_ex_info_t info = {
        .flags = CHANNEL | LBM_SSRC_SEND_EX_FLAG_USER_SUPPLIED_BUFFER, .channel = 1, .usr_supplied_buffer = big};
    MUST(lbm_ssrc_send_ex(ssrc, other, sizeof big, 0, &info));
    MUST(lbm_ssrc_buff_put(ssrc, other));
    MUST(lbm_ssrc_buff_get(ssrc, &other, 0)); /* the same one, and new */
    send_with(ssrc, other, "k", CHANNEL, 14);
    MUST(lbm_ssrc_buff_put(ssrc, other));
}
#define STORY "7=a 7=b 9=c 9=d 4294967295=e 11=f -=g -=g 13=i 13=x 14=k "
#define STORY_MESSAGES 11

static void story_over(const char *transport)
{
    TEST_NEEDS_NET();
    struct heard live = HEARD_INIT, late = HEARD_INIT;
    char *buffer;
    lbm_context_t *sending = net_context(), *ctx = net_context(), *later = idle_context();
    lbm_ssrc_t *ssrc = smart_source(sending, transport, "1", "1");
    MUST(lbm_ssrc_buff_get(ssrc, &buffer, 0));
    lbm_rcv_t *rcv = receiver(ctx, "0", &live);
    CHECK(until_heard(ssrc, buffer, &live));
    send_story(ssrc, buffer);
    CHECK(heard_wait(&live, STORY_MESSAGES));
    CHECK(heard_reads(&live, STORY));
    lbm_rcv_t *joiner = receiver(later, "1", &late);
    CHECK(heard_when_it_runs(later, &late, STORY_MESSAGES));
    CHECK(heard_reads(&late, STORY));
    MUST(lbm_rcv_delete(joiner));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_ssrc_delete(ssrc));
    MUST(lbm_context_delete(sending));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(later));
}

TEST(channels_of_buffers_come_over_lbtrm_live_and_to_late_joiners)
{
    story_over("LBT-RM");
}

TEST(channels_of_buffers_come_over_lbtru_live_and_to_late_joiners)
{
    story_over("LBT-RU");
}

/* ---- what a send costs ---- */

static _Thread_local int allocations;

static bool count_allocation(size_t size)
{
    (void)size;
    allocations++;
    return false;
}

TEST(sends_on_a_channel_allocate_nothing)
{
    TEST_NEEDS_NET();
    char *buffer;
    lbm_context_t *ctx = net_context();
    lbm_ssrc_t *ssrc = smart_source(ctx, "LBT-RM", "1", "1");
    MUST(lbm_ssrc_buff_get(ssrc, &buffer, 0));
    send_with(ssrc, buffer, "a", CHANNEL, 7);
    um_mem_set_fail_hook(count_allocation);
    um_free(um_malloc(1));
    int counted = allocations;
    for (lbm_uint32_t i = 0; i < 10000; i++) {
        send_with(ssrc, buffer, "b", CHANNEL | UPDATE, i);
    }
    int made = allocations - counted;
    um_mem_set_fail_hook(NULL);
    CHECK_EQ(counted, 1); /* the counter counts */
    CHECK_EQ(made, 0);
    MUST(lbm_ssrc_delete(ssrc));
    MUST(lbm_context_delete(ctx));
}

/* ---- wrong calls ---- */

static bool refused(int rc, const char *text)
{
    bool ok = rc == -1 && lbm_errnum() == LBM_EINVAL && strstr(lbm_errmsg(), text) != NULL;
    if (!ok) {
        fprintf(stderr, "rc %d, error %d: %s\n", rc, lbm_errnum(), lbm_errmsg());
    }
    return ok;
}

TEST(wrong_uses_of_channels_are_named)
{
    TEST_NEEDS_NET();
    char *buffer, own[8] = "own";
    lbm_ssrc_send_ex_info_t info = {.flags = CHANNEL, .channel = 7};
    lbm_context_t *ctx = net_context(), *other = net_context();
    lbm_ssrc_t *without = smart_source(ctx, "LBT-RM", "0", "0"), *ssrc = smart_source(other, "LBT-RM", "1", "0");
    MUST(lbm_ssrc_buff_get(without, &buffer, 0));
    CHECK(refused(lbm_ssrc_send_ex(without, buffer, 1, 0, &info), "smart_src_enable_spectrum_channel 1"));
    MUST(lbm_ssrc_buff_get(ssrc, &buffer, 0));
    CHECK(refused(lbm_ssrc_send_ex(ssrc, own, 1, 0, &info), "with a buffer of the smart source"));
    info.flags = CHANNEL | UPDATE;
    CHECK(refused(lbm_ssrc_send_ex(ssrc, buffer, 1, 0, &info), "was not sent on a channel yet"));
    MUST(lbm_ssrc_delete(ssrc));
    MUST(lbm_ssrc_delete(without));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(other));
}
