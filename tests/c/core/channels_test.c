/* Spectrum channels through the public interface: what each subscription and each option makes of messages with and
 * without a channel, over the transports, through fragments, queues, recovery, patterns, merges and XSPs. */
#include "um_test.h"

#include <lbm/lbm.h>
#include <lbm/um.h>

#include "um_test_xsp.h"

#define BIG 200000

/* What came, as text: "R-=ab " to the receiver's callback without channel_info, "A7=ab " to that of tag A with it. */
struct heard {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char text[8192];
    int count, bos, bad;
    bool keep; /* the first one */
    lbm_msg_t *kept;
};

#define HEARD_INIT                                                                                                     \
    {                                                                                                                  \
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER                                         \
    }

struct tag {
    struct heard *heard;
    char letter;
};

static void note(struct heard *h, char letter, const lbm_msg_t *msg)
{
    size_t used = strlen(h->text);
    int flags = msg->channel_info != NULL ? msg->channel_info->flags : LBM_MSG_FLAG_NUMBERED_CHANNEL;
    char number[16] = "-";
    if (msg->channel_info != NULL) {
        snprintf(number, sizeof number, "%u", msg->channel_info->channel_number);
    }
    snprintf(h->text + used, sizeof h->text - used, "%c%s=%.*s ", letter, number, msg->len < 8 ? (int)msg->len : 1,
             msg->data);
    h->bad += flags != LBM_MSG_FLAG_NUMBERED_CHANNEL;
}

static int hear(struct heard *h, char letter, lbm_msg_t *msg)
{
    pthread_mutex_lock(&h->lock);
    h->bos += msg->type == LBM_MSG_BOS;
    if (msg->type == LBM_MSG_DATA || msg->type == LBM_MSG_REQUEST) {
        note(h, letter, msg);
        h->count++;
        if (h->keep && h->kept == NULL) {
            MUST(lbm_msg_retain(msg));
            h->kept = msg;
        }
    } else {
        h->bad += letter != 'R' || msg->channel_info != NULL;
    }
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
    return 0;
}

static int on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv;
    return hear(clientd, 'R', msg);
}

static int on_tagged(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv;
    const struct tag *tag = clientd;
    return hear(tag->heard, tag->letter, msg);
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
    bool same = strcmp(h->text, text) == 0 && h->bad == 0;
    if (!same) {
        fprintf(stderr, "heard: %s(bad %d)\n", h->text, h->bad);
    }
    pthread_mutex_unlock(&h->lock);
    return same;
}

static void heard_free(struct heard *h)
{
    if (h->kept != NULL) {
        MUST(lbm_msg_delete(h->kept));
    }
}

/* ---- sending ---- */

#define NO_CHANNEL (-1)

static void send_on(lbm_src_t *src, int64_t number, const char *data, size_t len)
{
    lbm_src_channel_info_t *channel = NULL;
    lbm_src_send_ex_info_t info = {.flags = 0};
    if (number != NO_CHANNEL) {
        MUST(lbm_src_channel_create(&channel, src, (lbm_uint32_t)number));
        info.flags = LBM_SRC_SEND_EX_FLAG_CHANNEL;
        info.channel_info = channel;
    }
    MUST(lbm_src_send_ex(src, data, len, LBM_MSG_FLUSH | LBM_SRC_BLOCK, &info));
    if (channel != NULL) {
        MUST(lbm_src_channel_delete(channel));
    }
}

static void say(lbm_src_t *src, int64_t number, const char *text)
{
    send_on(src, number, text, strlen(text));
}

static lbm_src_t *late_join_source(lbm_context_t *ctx, const char *name, const char *transport)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", transport));
    MUST(lbm_src_topic_attr_str_setopt(attr, "late_join", "1"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "retransmit_retention_size_threshold", "10000000"));
    MUST(lbm_src_topic_alloc(&topic, ctx, name, attr));
    lbm_src_topic_attr_delete(attr);
    MUST(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL));
    return src;
}

/* Pairs of options and values, up to NULL. */
static lbm_rcv_t *receiver_with(lbm_context_t *ctx, const char *name, const char *const *options, struct heard *h,
                                lbm_event_queue_t *evq)
{
    lbm_rcv_topic_attr_t *attr;
    MUST(lbm_rcv_topic_attr_create(&attr));
    for (; options != NULL && options[0] != NULL; options += 2) {
        MUST(lbm_rcv_topic_attr_str_setopt(attr, options[0], options[1]));
    }
    lbm_rcv_t *rcv = net_receiver(ctx, name, attr, on_message, h, evq);
    lbm_rcv_topic_attr_delete(attr);
    return rcv;
}

static bool ready(lbm_rcv_t *rcv)
{
    return um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000) == 0;
}

/* ---- what is delivered to whom ---- */

/* Ends with a message of the subscribed channel, which every combination delivers. */
static void combination(const char *null_channel, const char *unrecognized, int count, const char *wanted)
{
    const char *const options[] = {"null_channel_behavior", null_channel, "unrecognized_channel_behavior", unrecognized,
                                   NULL};
    struct heard h = HEARD_INIT;
    struct tag tag = {&h, 'A'};
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = net_source(ctx, "matrix");
    lbm_rcv_t *rcv = receiver_with(ctx, "matrix", options, &h, NULL);
    MUST(lbm_rcv_subscribe_channel(rcv, 2, on_tagged, &tag));
    CHECK(ready(rcv));
    for (int round = 0; round < 2; round++) {
        say(src, NO_CHANNEL, "n");
        say(src, 1, "one");
        say(src, 2, "two");
        say(src, 4294967295, "max");
    }
    say(src, 2, "end");
    CHECK(heard_wait(&h, count));
    CHECK(heard_reads(&h, wanted));
    CHECK_EQ(h.bos, 1);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

TEST(messages_go_where_the_options_say)
{
    TEST_NEEDS_NET();
    combination("deliver", "deliver", 9,
                "R-=n R1=one A2=two R4294967295=max R-=n R1=one A2=two R4294967295=max A2=end ");
    combination("discard", "deliver", 7, "R1=one A2=two R4294967295=max R1=one A2=two R4294967295=max A2=end ");
    combination("deliver", "discard", 5, "R-=n A2=two R-=n A2=two A2=end ");
    combination("discard", "discard", 3, "A2=two A2=two A2=end ");
}

TEST(a_receiver_without_subscriptions_sees_no_channels_and_gets_what_its_options_leave)
{
    TEST_NEEDS_NET();
    const char *const no_channels[] = {"unrecognized_channel_behavior", "discard", NULL};
    const char *const channels_only[] = {"null_channel_behavior", "discard", NULL};
    struct heard all = HEARD_INIT, plain = HEARD_INIT, numbered = HEARD_INIT;
    lbm_context_t *ctx = net_context(), *second = net_context(), *third = net_context();
    lbm_src_t *src = net_source(ctx, "none");
    lbm_rcv_t *a = receiver_with(ctx, "none", NULL, &all, NULL);
    lbm_rcv_t *b = receiver_with(second, "none", no_channels, &plain, NULL);
    lbm_rcv_t *c = receiver_with(third, "none", channels_only, &numbered, NULL);
    CHECK(ready(a) && ready(b) && ready(c));
    say(src, 1, "one");
    say(src, NO_CHANNEL, "n");
    say(src, 0, "nil");
    CHECK(heard_wait(&all, 3) && heard_wait(&plain, 1) && heard_wait(&numbered, 2));
    CHECK(heard_reads(&all, "R-=one R-=n R-=nil "));
    CHECK(heard_reads(&plain, "R-=n "));
    CHECK(heard_reads(&numbered, "R-=one R-=nil "));
    MUST(lbm_rcv_delete(a));
    MUST(lbm_rcv_delete(b));
    MUST(lbm_rcv_delete(c));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(second));
    MUST(lbm_context_delete(third));
}

/* Its only receiver is called by a short way for messages in their turn, by a longer one for others: they take turns,
 * and what the application keeps stays. */
TEST(plain_messages_channels_properties_and_fragments_come_as_they_were_sent)
{
    TEST_NEEDS_NET();
    static char big[BIG];
    struct heard h = HEARD_INIT;
    struct tag tag = {&h, 'A'};
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = net_source(ctx, "turns");
    lbm_rcv_t *rcv = receiver_with(ctx, "turns", NULL, &h, NULL);
    lbm_msg_properties_t *properties;
    int32_t one = 1;
    MUST(lbm_msg_properties_create(&properties));
    MUST(lbm_msg_properties_set(properties, "p", &one, LBM_MSG_PROPERTY_INT, sizeof one));
    lbm_src_send_ex_info_t info = {.flags = LBM_SRC_SEND_EX_FLAG_PROPERTIES, .properties = properties};
    memset(big, 'b', sizeof big);
    CHECK(ready(rcv));
    h.keep = true;
    for (int round = 0; round < 2; round++) {
        say(src, NO_CHANNEL, "n");
        say(src, 7, "seven");
        MUST(lbm_src_send_ex(src, "pp", 2, LBM_MSG_FLUSH | LBM_SRC_BLOCK, &info));
        say(src, 7, "again");
        say(src, NO_CHANNEL, "m");
        send_on(src, 7, big, sizeof big);
        say(src, 8, "eight");
        say(src, NO_CHANNEL, "");
        CHECK(heard_wait(&h, 8 * (round + 1)));
        MUST(lbm_rcv_subscribe_channel(rcv, round == 0 ? 7 : 8, on_tagged, &tag));
    }
    CHECK(heard_reads(&h, "R-=n R-=seven R-=pp R-=again R-=m R-=b R-=eight R-= "
                          "R-=n A7=seven R-=pp A7=again R-=m A7=b R8=eight R-= "));
    CHECK(h.kept != NULL && h.kept->len == 1 && h.kept->data[0] == 'n');
    heard_free(&h);
    MUST(lbm_msg_properties_delete(properties));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

TEST(subscriptions_come_and_go_while_the_receiver_lives)
{
    TEST_NEEDS_NET();
    const char *const few[] = {"channel_map_tablesz", "2", NULL}; /* several in a bucket */
    struct heard h = HEARD_INIT;
    struct tag a = {&h, 'A'}, b = {&h, 'B'};
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = net_source(ctx, "changing");
    lbm_rcv_t *rcv = receiver_with(ctx, "changing", few, &h, NULL);
    CHECK(ready(rcv));
    for (lbm_uint32_t i = 0; i < 6; i++) {
        MUST(lbm_rcv_subscribe_channel(rcv, i, i % 2 == 0 ? on_tagged : NULL, &a));
    }
    for (lbm_uint32_t i = 0; i < 6; i++) {
        say(src, i, "x");
    }
    CHECK(heard_wait(&h, 6));
    MUST(lbm_rcv_unsubscribe_channel(rcv, 2));
    MUST(lbm_rcv_unsubscribe_channel(rcv, 0));
    MUST(lbm_rcv_subscribe_channel(rcv, 2, on_tagged, &b));
    say(src, 0, "y");
    say(src, 2, "y");
    say(src, 4, "y");
    CHECK(heard_wait(&h, 9));
    for (lbm_uint32_t i = 1; i < 6; i++) {
        MUST(lbm_rcv_unsubscribe_channel(rcv, i));
    }
    say(src, 4, "z");
    CHECK(heard_wait(&h, 10));
    CHECK(heard_reads(&h, "A0=x R1=x A2=x R3=x A4=x R5=x R0=y B2=y A4=y R-=z "));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

/* ---- transports, fragments, recovery, other things in the message ---- */

static int on_response(lbm_request_t *req, lbm_msg_t *msg, void *clientd)
{
    (void)req, (void)msg, (void)clientd;
    return 0;
}

static void send_rich(lbm_src_t *src)
{
    lbm_msg_properties_t *p;
    lbm_src_channel_info_t *channel;
    lbm_request_t *req;
    int value = 5;
    MUST(lbm_msg_properties_create(&p));
    MUST(lbm_msg_properties_set(p, "n", &value, LBM_MSG_PROPERTY_INT, sizeof value));
    MUST(lbm_src_channel_create(&channel, src, 7));
    lbm_src_send_ex_info_t info = {.flags = LBM_SRC_SEND_EX_FLAG_CHANNEL | LBM_SRC_SEND_EX_FLAG_PROPERTIES,
                                   .channel_info = channel,
                                   .properties = p};
    MUST(lbm_src_send_ex(src, "both", 4, LBM_MSG_FLUSH | LBM_SRC_BLOCK, &info));
    MUST(lbm_send_request_ex(&req, src, "ask", 3, on_response, NULL, NULL, LBM_MSG_FLUSH | LBM_SRC_BLOCK, &info));
    MUST(lbm_request_delete(req));
    MUST(lbm_src_channel_delete(channel));
    MUST(lbm_msg_properties_delete(p));
}

#define STORY "R-=a A7=b A7=x R8=c A7=both A7=ask R-=e "
#define STORY_MESSAGES 7

static void send_story(lbm_src_t *src)
{
    static char big[BIG];
    memset(big, 'x', sizeof big);
    say(src, NO_CHANNEL, "a");
    say(src, 7, "b");
    send_on(src, 7, big, sizeof big);
    say(src, 8, "c");
    send_rich(src);
    say(src, NO_CHANNEL, "e");
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

static void story_over(const char *transport)
{
    const char *const late_join[] = {"use_late_join", "1", NULL};
    struct heard live = HEARD_INIT, late = HEARD_INIT;
    struct tag of_live = {&live, 'A'}, of_late = {&late, 'A'};
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = late_join_source(ctx, "story", transport);
    lbm_rcv_t *rcv = receiver_with(ctx, "story", NULL, &live, NULL);
    MUST(lbm_rcv_subscribe_channel(rcv, 7, on_tagged, &of_live));
    CHECK(ready(rcv));
    send_story(src);
    CHECK(heard_wait(&live, STORY_MESSAGES));
    CHECK(heard_reads(&live, STORY));
    lbm_context_t *other = idle_context();
    lbm_rcv_t *joiner = receiver_with(other, "story", late_join, &late, NULL);
    MUST(lbm_rcv_subscribe_channel(joiner, 7, on_tagged, &of_late));
    CHECK(heard_when_it_runs(other, &late, STORY_MESSAGES));
    CHECK(heard_reads(&late, STORY));
    MUST(lbm_rcv_delete(joiner));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(other));
    MUST(lbm_context_delete(ctx));
}

TEST(channels_are_kept_over_tcp_live_and_for_late_joiners)
{
    TEST_NEEDS_NET();
    story_over("TCP");
}

TEST(channels_are_kept_over_lbtrm_live_and_for_late_joiners)
{
    TEST_NEEDS_NET();
    story_over("LBT-RM");
}

TEST(channels_are_kept_over_lbtru_live_and_for_late_joiners)
{
    TEST_NEEDS_NET();
    story_over("LBT-RU");
}

TEST(channels_are_kept_over_ipc_live_and_for_late_joiners)
{
    TEST_NEEDS_NET();
    story_over("LBT-IPC");
}

TEST(smx_carries_no_channels_and_says_so)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_src_t *smx = source_over(ctx, "memory", "LBT-SMX", NULL), *tcp = net_source(ctx, "stream");
    lbm_src_channel_info_t *channel;
    CHECK_EQ(lbm_src_channel_create(&channel, smx, 1), -1);
    CHECK_EQ(lbm_errnum(), LBM_EOPNOTSUPP);
    CHECK_CONTAINS(lbm_errmsg(), "LBT-SMX carries no channels");
    MUST(lbm_src_channel_create(&channel, tcp, 1));
    lbm_src_send_ex_info_t info = {.flags = LBM_SRC_SEND_EX_FLAG_CHANNEL, .channel_info = channel};
    CHECK_EQ(lbm_src_send_ex(smx, "x", 1, 0, &info), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    MUST(lbm_src_channel_delete(channel));
    MUST(lbm_src_delete(smx));
    MUST(lbm_src_delete(tcp));
    MUST(lbm_context_delete(ctx));
}

/* Messages through memory take a short way to a single receiver: not to one that does not want all of them. */
TEST(messages_over_smx_have_no_channel)
{
    TEST_NEEDS_NET();
    const char *const channels_only[] = {"null_channel_behavior", "discard", NULL};
    struct heard all = HEARD_INIT, none = HEARD_INIT;
    struct tag tag = {&all, 'A'};
    lbm_context_t *ctx = net_context(), *other = net_context();
    lbm_src_t *src = source_over(ctx, "memory", "LBT-SMX", NULL);
    lbm_rcv_t *a = receiver_with(ctx, "memory", NULL, &all, NULL);
    lbm_rcv_t *b = receiver_with(other, "memory", channels_only, &none, NULL);
    MUST(lbm_rcv_subscribe_channel(a, 0, on_tagged, &tag));
    CHECK(ready(a) && ready(b));
    for (int i = 0; i < 5; i++) {
        MUST(lbm_src_send(src, "x", 1, LBM_MSG_FLUSH | LBM_SRC_BLOCK));
    }
    CHECK(heard_wait(&all, 5));
    CHECK(heard_reads(&all, "R-=x R-=x R-=x R-=x R-=x "));
    um_rcv_stats_t stats = {0};
    for (int i = 0; i < HANG_SECONDS * 1000 && stats.delivered < 5; i++) {
        MUST(um_rcv_stats(b, NULL, &stats));
        sleep_ms(1);
    }
    CHECK_EQ(stats.delivered, 5);
    CHECK(heard_reads(&none, ""));
    MUST(lbm_rcv_delete(a));
    MUST(lbm_rcv_delete(b));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(other));
}

TEST(fragments_that_are_delivered_one_by_one_take_the_channel_of_their_message)
{
    TEST_NEEDS_NET();
    const char *const fragments[] = {"ordered_delivery", "0", NULL};
    static char big[BIG];
    struct heard h = HEARD_INIT;
    struct tag tag = {&h, 'A'};
    memset(big, 'x', sizeof big);
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = net_source(ctx, "pieces");
    lbm_rcv_t *rcv = receiver_with(ctx, "pieces", fragments, &h, NULL);
    MUST(lbm_rcv_subscribe_channel(rcv, 7, on_tagged, &tag));
    CHECK(ready(rcv));
    send_on(src, 7, big, sizeof big);
    say(src, NO_CHANNEL, "end");
    CHECK(heard_wait(&h, 5)); /* of 65535 bytes at most */
    CHECK(heard_reads(&h, "A7=x A7=x A7=x A7=x R-=end "));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

TEST(application_headers_go_beside_a_channel_and_do_not_show_it)
{
    TEST_NEEDS_NET();
    struct heard h = HEARD_INIT;
    h.keep = true;
    lbm_apphdr_chain_t *chain;
    lbm_apphdr_chain_iter_t *iter;
    lbm_src_channel_info_t *channel;
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = net_source(ctx, "headers");
    lbm_rcv_t *rcv = receiver_with(ctx, "headers", NULL, &h, NULL);
    MUST(lbm_rcv_subscribe_channel(rcv, 7, NULL, NULL));
    CHECK(ready(rcv));
    MUST(lbm_src_channel_create(&channel, src, 7));
    MUST(lbm_apphdr_chain_create(&chain));
    lbm_apphdr_chain_elem_t elem = {.type = LBM_CHAIN_ELEM_USER_DATA, .subtype = 3, .data = "abc", .len = 3};
    MUST(lbm_apphdr_chain_append_elem(chain, &elem));
    lbm_src_send_ex_info_t info = {.flags = LBM_SRC_SEND_EX_FLAG_CHANNEL | LBM_SRC_SEND_EX_FLAG_APPHDR_CHAIN,
                                   .channel_info = channel,
                                   .apphdr_chain = chain};
    MUST(lbm_src_send_ex(src, "x", 1, LBM_MSG_FLUSH, &info));
    CHECK(heard_wait(&h, 1));
    CHECK(heard_reads(&h, "R7=x "));
    MUST(lbm_apphdr_chain_iter_create_from_msg(&iter, h.kept));
    CHECK_EQ((int)lbm_apphdr_chain_iter_current(&iter)->subtype, 3);
    CHECK_EQ(lbm_apphdr_chain_iter_next(&iter), -1);
    MUST(lbm_apphdr_chain_iter_delete(iter));
    heard_free(&h);
    MUST(lbm_apphdr_chain_delete(chain));
    MUST(lbm_src_channel_delete(channel));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

/* ---- several receivers, messages that are kept ---- */

TEST(each_receiver_of_a_topic_sees_its_own_view_and_keeps_it)
{
    TEST_NEEDS_NET();
    static const char *const transports[] = {"TCP", "LBT-IPC"};
    for (size_t i = 0; i < sizeof transports / sizeof transports[0]; i++) {
        struct heard first = HEARD_INIT, second = HEARD_INIT, third = HEARD_INIT;
        struct tag tag = {&first, 'A'}, third_tag = {&third, 'C'};
        first.keep = second.keep = third.keep = true;
        lbm_context_t *ctx = net_context();
        lbm_src_t *src = source_over(ctx, "views", transports[i], NULL);
        lbm_rcv_t *a = receiver_with(ctx, "views", NULL, &first, NULL);
        lbm_rcv_t *b = receiver_with(ctx, "views", NULL, &second, NULL);
        lbm_rcv_t *c = receiver_with(ctx, "views", NULL, &third, NULL);
        MUST(lbm_rcv_subscribe_channel(a, 7, on_tagged, &tag));
        MUST(lbm_rcv_subscribe_channel(c, 8, on_tagged, &third_tag));
        CHECK(ready(a));
        say(src, 7, "kept");
        for (int k = 0; k < 50; k++) {
            say(src, k % 2 == 0 ? 8 : NO_CHANNEL, "other");
        }
        CHECK(heard_wait(&first, 51) && heard_wait(&second, 51) && heard_wait(&third, 51));
        CHECK_CONTAINS(first.text, "A7=kept R8=other R-=other R8=other ");
        CHECK_CONTAINS(second.text, "R-=kept R-=other R-=other ");
        CHECK_CONTAINS(third.text, "R7=kept C8=other R-=other C8=other ");
        CHECK_EQ(first.bad + second.bad + third.bad, 0);
        CHECK(first.kept->channel_info != NULL && first.kept->channel_info->channel_number == 7);
        CHECK(second.kept->channel_info == NULL);
        CHECK(third.kept->channel_info != NULL && third.kept->channel_info->channel_number == 7);
        CHECK(memcmp(first.kept->data, "kept", 4) == 0 && memcmp(second.kept->data, "kept", 4) == 0);
        MUST(lbm_rcv_delete(a));
        MUST(lbm_rcv_delete(b));
        MUST(lbm_rcv_delete(c));
        MUST(lbm_src_delete(src));
        MUST(lbm_context_delete(ctx));
        heard_free(&first);
        heard_free(&second);
        heard_free(&third);
    }
}

/* ---- event queues ---- */

static lbm_event_queue_t *queue_with_cancel_callbacks(void)
{
    lbm_event_queue_attr_t *attr;
    lbm_event_queue_t *evq;
    MUST(lbm_event_queue_attr_create(&attr));
    MUST(lbm_event_queue_attr_str_setopt(attr, "queue_cancellation_callbacks_enabled", "1"));
    MUST(lbm_event_queue_attr_str_setopt(attr, "queue_size_warning", "1000000")); /* its size can be asked for */
    MUST(lbm_event_queue_create(&evq, NULL, NULL, attr));
    lbm_event_queue_attr_delete(attr);
    return evq;
}

static void dispatch_until(lbm_event_queue_t *evq, struct heard *h, int count)
{
    for (int i = 0; i < HANG_SECONDS * 1000 && h->count < count; i++) { /* this thread alone dispatches */
        if (lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL) == 0) {
            sleep_ms(1);
        }
    }
}

static void on_cancelled(int dispatch_thread, void *clientd)
{
    *(int *)clientd = dispatch_thread ? 2 : 1;
}

static bool queued(lbm_event_queue_t *evq, int count)
{
    for (int i = 0; i < HANG_SECONDS * 1000 && lbm_event_queue_size(evq) < count; i++) {
        sleep_ms(1);
    }
    return lbm_event_queue_size(evq) >= count;
}

TEST(queued_messages_of_a_channel_are_delivered_to_it_until_it_is_unsubscribed)
{
    TEST_NEEDS_NET();
    struct heard h = HEARD_INIT;
    struct tag tag = {&h, 'A'};
    int cancelled = 0;
    lbm_event_queue_t *evq = queue_with_cancel_callbacks();
    lbm_event_queue_cancel_cb_info_t cbinfo = {.event_queue = evq, .cbproc = on_cancelled, .clientd = &cancelled};
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = net_source(ctx, "queued");
    lbm_rcv_t *rcv = receiver_with(ctx, "queued", NULL, &h, evq);
    MUST(lbm_rcv_subscribe_channel(rcv, 7, on_tagged, &tag));
    MUST(lbm_rcv_subscribe_channel(rcv, 8, on_tagged, &tag));
    CHECK(ready(rcv));
    say(src, 7, "a");
    say(src, 8, "b");
    say(src, NO_CHANNEL, "c");
    dispatch_until(evq, &h, 3);
    CHECK(heard_reads(&h, "A7=a A8=b R-=c "));
    say(src, 7, "x"); /* of a channel that is unsubscribed before they are dispatched */
    say(src, 7, "x");
    say(src, 8, "d");
    CHECK(queued(evq, 3));
    MUST(lbm_rcv_unsubscribe_channel_ex(rcv, 7, &cbinfo));
    CHECK_EQ(cancelled, 0);
    dispatch_until(evq, &h, 4);
    CHECK_EQ(cancelled, 2); /* on the thread that dispatches, after the last one of the channel */
    say(src, 7, "e");
    dispatch_until(evq, &h, 5);
    CHECK(heard_reads(&h, "A7=a A8=b R-=c A8=d R7=e "));
    cancelled = 0;
    MUST(lbm_rcv_unsubscribe_channel_ex(rcv, 8, &cbinfo));
    CHECK_EQ(cancelled, 1); /* nothing is queued */
    MUST(lbm_rcv_subscribe_channel(rcv, 9, on_tagged, &tag));
    say(src, 9, "left"); /* behind when the receiver goes */
    CHECK(queued(evq, 1));
    MUST(lbm_rcv_delete(rcv));
    while (lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL) > 0) {
    }
    CHECK_EQ(h.count, 5);
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_event_queue_delete(evq));
}

/* ---- patterns, merges ---- */

TEST(subscriptions_of_a_wildcard_receiver_hold_for_present_and_future_topics)
{
    TEST_NEEDS_NET();
    struct heard h = HEARD_INIT;
    struct tag a = {&h, 'A'}, b = {&h, 'B'};
    int cancelled = 0;
    lbm_event_queue_t *evq = queue_with_cancel_callbacks();
    lbm_event_queue_cancel_cb_info_t cbinfo = {.event_queue = evq, .cbproc = on_cancelled, .clientd = &cancelled};
    lbm_wildcard_rcv_t *wrcv;
    lbm_context_t *ctx = net_context();
    MUST(lbm_wildcard_rcv_create(&wrcv, ctx, "^wild\\.", NULL, NULL, on_message, &h, evq));
    MUST(lbm_wildcard_rcv_subscribe_channel(wrcv, 7, on_tagged, &a));
    lbm_src_t *first = net_source(ctx, "wild.1");
    CHECK_EQ(um_wildcard_rcv_wait_ready(wrcv, 1, HANG_SECONDS * 1000), 0);
    MUST(lbm_wildcard_rcv_subscribe_channel(wrcv, 8, on_tagged, &b));
    lbm_src_t *second = net_source(ctx, "wild.2");
    CHECK_EQ(um_wildcard_rcv_wait_ready(wrcv, 2, HANG_SECONDS * 1000), 0);
    say(first, 7, "f");
    say(first, 8, "f");
    say(first, 9, "f");
    dispatch_until(evq, &h, 3);
    say(second, 7, "s");
    say(second, 8, "s");
    dispatch_until(evq, &h, 5);
    CHECK_EQ(lbm_wildcard_rcv_unsubscribe_channel(wrcv, 9), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    MUST(lbm_wildcard_rcv_unsubscribe_channel(wrcv, 7));
    MUST(lbm_wildcard_rcv_unsubscribe_channel_ex(wrcv, 8, &cbinfo));
    CHECK_EQ(cancelled, 1);
    say(second, 7, "t");
    dispatch_until(evq, &h, 6);
    CHECK(heard_reads(&h, "A7=f B8=f R9=f A7=s B8=s R-=t "));
    MUST(lbm_wildcard_rcv_delete(wrcv));
    MUST(lbm_src_delete(first));
    MUST(lbm_src_delete(second));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_event_queue_delete(evq));
}

static void give(lbm_src_t *src, lbm_src_channel_info_t *channel, lbm_uint_t number)
{
    lbm_src_send_ex_info_t info = {.flags = LBM_SRC_SEND_EX_FLAG_CHANNEL, .channel_info = channel};
    MUST(lbm_hf_src_send_ex(src, "h", 1, number, LBM_MSG_FLUSH, &info));
}

TEST(hot_failover_merges_first_and_gives_to_channels_then)
{
    TEST_NEEDS_NET();
    struct heard h = HEARD_INIT;
    struct tag tag = {&h, 'A'};
    lbm_topic_t *topic;
    lbm_src_t *src[2];
    lbm_src_channel_info_t *seven, *eight;
    lbm_hf_rcv_t *hf;
    lbm_context_t *ctx[2] = {net_context(), net_context()}, *receiving = net_context();
    for (int i = 0; i < 2; i++) {
        MUST(lbm_src_topic_alloc(&topic, ctx[i], "hot", NULL));
        MUST(lbm_hf_src_create(&src[i], ctx[i], topic, NULL, NULL, NULL));
    }
    MUST(lbm_rcv_topic_lookup(&topic, receiving, "hot", NULL));
    MUST(lbm_hf_rcv_create(&hf, receiving, topic, on_message, &h, NULL));
    MUST(lbm_rcv_subscribe_channel(lbm_rcv_from_hf_rcv(hf), 7, on_tagged, &tag));
    CHECK_EQ(um_rcv_wait_ready(lbm_rcv_from_hf_rcv(hf), 2, HANG_SECONDS * 1000), 0);
    MUST(lbm_src_channel_create(&seven, src[0], 7));
    MUST(lbm_src_channel_create(&eight, src[0], 8));
    for (int i = 0; i < 2; i++) {
        give(src[i], seven, 1);
        give(src[i], eight, 2);
        give(src[i], seven, 3);
    }
    for (int i = 0; i < 2; i++) { /* the last of each source */
        MUST(lbm_src_send(src[i], "e", 1, LBM_MSG_FLUSH));
    }
    CHECK(heard_wait(&h, 5));
    for (int i = 0; i < 2; i++) { /* wherever they came */
        char *end = strstr(h.text, "R-=e ");
        CHECK(end != NULL);
        memmove(end, end + 5, strlen(end + 5) + 1);
    }
    CHECK(heard_reads(&h, "A7=h R8=h A7=h "));
    MUST(lbm_src_channel_delete(seven));
    MUST(lbm_src_channel_delete(eight));
    MUST(lbm_hf_rcv_delete(hf));
    for (int i = 0; i < 2; i++) {
        MUST(lbm_src_delete(src[i]));
        MUST(lbm_context_delete(ctx[i]));
    }
    MUST(lbm_context_delete(receiving));
}

/* ---- two threads: an XSP delivers while this one subscribes ---- */

static int count_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv;
    atomic_fetch_add((atomic_int *)clientd, msg->type == LBM_MSG_DATA);
    return 0;
}

TEST(no_callback_of_a_channel_on_an_xsp_follows_its_unsubscription)
{
    TEST_NEEDS_NET();
    struct mapper m = {.count = 0};
    atomic_int plain = 0, taken = 0;
    lbm_context_t *ctx = world(&m, 1), *sending = sending_context();
    lbm_src_t *src = net_source(sending, "busy");
    lbm_rcv_t *rcv = net_receiver(ctx, "busy", NULL, count_message, &plain, NULL);
    CHECK(ready(rcv));
    int sent = 0;
    for (int round = 0; round < 20; round++) {
        MUST(lbm_rcv_subscribe_channel(rcv, 7, count_message, &taken));
        int before = atomic_load(&taken);
        for (; atomic_load(&taken) == before; sent++) { /* comes to it sooner or later */
            say(src, 7, "x");
        }
        MUST(lbm_rcv_unsubscribe_channel(rcv, 7));
        int now = atomic_load(&taken), others = atomic_load(&plain);
        say(src, 7, "x");
        sent++;
        CHECK(wait_above(&plain, others + 1));
        CHECK_EQ(atomic_load(&taken), now);
    }
    for (int i = 0; i < HANG_SECONDS * 1000 && atomic_load(&plain) + atomic_load(&taken) < sent; i++) {
        sleep_ms(1);
    }
    CHECK_EQ(atomic_load(&plain) + atomic_load(&taken), sent);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    end_world(ctx, &m);
    MUST(lbm_context_delete(sending));
}

/* ---- wrong calls ---- */

static void refused(int rc, int errnum, const char *text)
{
    CHECK_EQ(rc, -1);
    CHECK_EQ(lbm_errnum(), errnum);
    CHECK_CONTAINS(lbm_errmsg(), text);
}

struct inside {
    struct heard heard;
    lbm_wildcard_rcv_t *wrcv;
};

static int subscribe_inside(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct inside *inside = clientd;
    if (msg->type == LBM_MSG_DATA) {
        refused(lbm_rcv_subscribe_channel(rcv, 1, NULL, NULL), LBM_EOP, "lbm_rcv_subscribe_channel");
        refused(lbm_rcv_unsubscribe_channel(rcv, 1), LBM_EOP, "lbm_rcv_unsubscribe_channel");
    }
    return hear(&inside->heard, 'R', msg);
}

static int subscribe_internal(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct inside *inside = clientd;
    if (msg->type == LBM_MSG_DATA) {
        refused(lbm_rcv_subscribe_channel(rcv, 1, NULL, NULL), LBM_EINVAL, "wildcard receiver");
        refused(lbm_wildcard_rcv_subscribe_channel(inside->wrcv, 1, NULL, NULL), LBM_EOP,
                "lbm_wildcard_rcv_subscribe_channel");
    }
    return hear(&inside->heard, 'R', msg);
}

TEST(subscribing_in_a_callback_of_the_context_is_refused)
{
    TEST_NEEDS_NET();
    struct inside plain = {.heard = HEARD_INIT}, wild = {.heard = HEARD_INIT};
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = net_source(ctx, "inside");
    lbm_rcv_t *rcv = net_receiver(ctx, "inside", NULL, subscribe_inside, &plain, NULL);
    MUST(lbm_wildcard_rcv_create(&wild.wrcv, ctx, "^inside", NULL, NULL, subscribe_internal, &wild, NULL));
    CHECK(ready(rcv));
    CHECK_EQ(um_wildcard_rcv_wait_ready(wild.wrcv, 1, HANG_SECONDS * 1000), 0);
    say(src, 1, "x");
    CHECK(heard_wait(&plain.heard, 1) && heard_wait(&wild.heard, 1));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_wildcard_rcv_delete(wild.wrcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

TEST(wrong_arguments_are_named)
{
    TEST_NEEDS_NET();
    struct heard h = HEARD_INIT;
    lbm_event_queue_t *plain_queue;
    lbm_src_channel_info_t *channel;
    MUST(lbm_event_queue_create(&plain_queue, NULL, NULL, NULL));
    lbm_event_queue_cancel_cb_info_t cbinfo = {.event_queue = plain_queue, .cbproc = on_cancelled};
    lbm_src_send_ex_info_t info = {.flags = LBM_SRC_SEND_EX_FLAG_CHANNEL};
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = net_source(ctx, "wrong");
    lbm_rcv_t *rcv = receiver_with(ctx, "wrong", NULL, &h, NULL);
    refused(lbm_src_channel_create(&channel, NULL, 1), LBM_EINVAL, "lbm_src_channel_create");
    refused(lbm_src_channel_create(NULL, src, 1), LBM_EINVAL, "chnp");
    refused(lbm_src_channel_delete(NULL), LBM_EINVAL, "lbm_src_channel_delete");
    refused(lbm_src_send_ex(src, "x", 1, 0, &info), LBM_EINVAL, "channel_info");
    refused(lbm_rcv_subscribe_channel(NULL, 1, NULL, NULL), LBM_EINVAL, "lbm_rcv_subscribe_channel");
    refused(lbm_wildcard_rcv_subscribe_channel(NULL, 1, NULL, NULL), LBM_EINVAL, "wrcv");
    refused(lbm_wildcard_rcv_unsubscribe_channel(NULL, 1), LBM_EINVAL, "wrcv");
    refused(lbm_rcv_unsubscribe_channel(rcv, 1), LBM_EINVAL, "channel 1: must have been subscribed");
    MUST(lbm_rcv_subscribe_channel(rcv, 1, NULL, NULL));
    refused(lbm_rcv_subscribe_channel(rcv, 1, NULL, NULL), LBM_EINVAL, "channel 1: is subscribed already");
    refused(lbm_rcv_unsubscribe_channel_ex(rcv, 1, &cbinfo), LBM_EINVAL, "queue_cancellation_callbacks_enabled");
    MUST(lbm_rcv_unsubscribe_channel(rcv, 1));
    refused(lbm_rcv_unsubscribe_channel(rcv, 1), LBM_EINVAL, "channel 1");
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_event_queue_delete(plain_queue));
}
