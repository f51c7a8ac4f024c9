/* What a hot failover receiver keeps, and what is not its own: messages that wait and the memory they take, what an
 * application frees with a source, messages that another receiver has kept, sessions on other loops. */
#include "um_test_xsp.h"

#define HF_32 LBM_SRC_SEND_EX_FLAG_HF_32
#define NEVER "600000" /* milliseconds */

struct heard {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int data, passed, losses, eos, bos;
    unsigned last;             /* hot failover number, or topic sequence number of what is passed through */
    bool disorder;             /* that went back */
    const void *clientds[100]; /* by hot failover number */
    bool keep;                 /* the first message with data */
    lbm_msg_t *kept;
    int kept_flags; /* as they were in the callback */
};

#define HEARD_INIT                                                                                                     \
    {                                                                                                                  \
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER                                         \
    }

static void note_data(struct heard *h, lbm_msg_t *msg)
{
    h->disorder |= h->data > 0 && msg->sequence_number < h->last;
    h->last = msg->sequence_number;
    h->data++;
    h->clientds[msg->sequence_number % 100] = msg->source_clientd;
    if (h->keep && h->kept == NULL) {
        MUST(lbm_msg_retain(msg));
        h->kept = msg;
        h->kept_flags = msg->flags;
    }
}

static int on_msg(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct heard *h = clientd;
    (void)rcv;
    pthread_mutex_lock(&h->lock);
    h->passed += (msg->flags & LBM_MSG_FLAG_HF_PASS_THROUGH) != 0;
    h->bos += msg->type == LBM_MSG_BOS;
    h->eos += msg->type == LBM_MSG_EOS;
    h->losses += msg->type == LBM_MSG_UNRECOVERABLE_LOSS || msg->type == LBM_MSG_UNRECOVERABLE_LOSS_BURST;
    if (msg->type == LBM_MSG_DATA) {
        note_data(h, msg);
    }
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
    return 0;
}

static bool heard_wait(struct heard *h, const int *count, int least)
{
    pthread_mutex_lock(&h->lock);
    bool ok = wait_for_count(&h->changed, &h->lock, count, least);
    pthread_mutex_unlock(&h->lock);
    return ok;
}

static lbm_src_t *hf_source(lbm_context_t *ctx, const char *transport)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", transport));
    MUST(lbm_src_topic_alloc(&topic, ctx, "hot", attr));
    MUST(lbm_hf_src_create(&src, ctx, topic, NULL, NULL, NULL));
    MUST(lbm_src_topic_attr_delete(attr));
    return src;
}

static lbm_rcv_topic_attr_t *waiting(const char *interval_us)
{
    lbm_rcv_topic_attr_t *attr;
    MUST(lbm_rcv_topic_attr_create(&attr));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "transport_lbtrm_activity_timeout", "90000"));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "transport_lbtrm_nak_generation_interval", NEVER));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "transport_lbtru_nak_generation_interval", NEVER));
    if (interval_us != NULL) {
        MUST(lbm_rcv_topic_attr_str_setopt(attr, "um_transport_lbtrm_nak_generation_interval_us", interval_us));
        MUST(lbm_rcv_topic_attr_str_setopt(attr, "um_transport_lbtru_nak_generation_interval_us", interval_us));
    }
    return attr;
}

/* Takes the attributes. */
static lbm_hf_rcv_t *hf_receiver(lbm_context_t *ctx, lbm_rcv_topic_attr_t *attr, struct heard *heard)
{
    lbm_topic_t *topic;
    lbm_hf_rcv_t *hf;
    MUST(lbm_rcv_topic_lookup(&topic, ctx, "hot", attr));
    MUST(lbm_rcv_topic_attr_delete(attr));
    MUST(lbm_hf_rcv_create(&hf, ctx, topic, on_msg, heard, NULL));
    return hf;
}

struct pair {
    lbm_context_t *ctx[2], *receiving;
    lbm_src_t *src[2];
    lbm_hf_rcv_t *hf;
    struct heard heard;
};

static void begin(struct pair *p, lbm_rcv_topic_attr_t *attr)
{
    *p = (struct pair){.heard = HEARD_INIT, .receiving = net_context()};
    for (int i = 0; i < 2; i++) {
        p->ctx[i] = net_context();
        p->src[i] = hf_source(p->ctx[i], "tcp");
    }
    p->hf = hf_receiver(p->receiving, attr, &p->heard);
    MUST(um_rcv_wait_ready(lbm_rcv_from_hf_rcv(p->hf), 2, HANG_SECONDS * 1000));
}

static void end(struct pair *p)
{
    MUST(lbm_hf_rcv_delete(p->hf));
    for (int i = 0; i < 2; i++) {
        if (p->src[i] != NULL) {
            MUST(lbm_src_delete(p->src[i]));
        }
        MUST(lbm_context_delete(p->ctx[i]));
    }
    MUST(lbm_context_delete(p->receiving));
}

static void give(struct pair *p, int i, unsigned number)
{
    MUST(lbm_hf_src_send(p->src[i], "x", 1, number, LBM_MSG_FLUSH));
}

/* ---- memory ---- */

TEST(the_properties_of_messages_that_wait_count_as_their_memory)
{
    TEST_NEEDS_NET();
    enum { TEXT = 1 << 20, COUNT = 80 };
    struct pair p;
    lbm_msg_properties_t *properties;
    char *text = malloc(TEXT);
    memset(text, 'x', TEXT);
    begin(&p, waiting(NULL));
    give(&p, 0, 1);
    CHECK(heard_wait(&p.heard, &p.heard.data, 1));
    MUST(lbm_msg_properties_create(&properties));
    MUST(lbm_msg_properties_set(properties, "t", text, LBM_MSG_PROPERTY_STRING, TEXT));
    lbm_src_send_ex_info_t info = {.flags = LBM_SRC_SEND_EX_FLAG_PROPERTIES, .properties = properties};
    for (unsigned i = 0; i < COUNT; i++) {
        MUST(lbm_hf_src_send_ex(p.src[1], "x", 1, 5 + i, LBM_MSG_FLUSH, &info));
    }
    CHECK(heard_wait(&p.heard, &p.heard.losses, 3)); /* 2, 3 and 4 are given up for want of room */
    CHECK(heard_wait(&p.heard, &p.heard.data, 1 + COUNT));
    MUST(lbm_msg_properties_delete(properties));
    free(text);
    end(&p);
}

TEST(an_interval_in_microseconds_rules_how_long_a_gap_waits)
{
    TEST_NEEDS_NET();
    struct pair p;
    begin(&p, waiting("50000"));
    give(&p, 0, 1);
    CHECK(heard_wait(&p.heard, &p.heard.data, 1));
    give(&p, 1, 3);
    CHECK(heard_wait(&p.heard, &p.heard.losses, 1));
    CHECK(heard_wait(&p.heard, &p.heard.data, 2));
    end(&p);
}

/* ---- what goes with a source ---- */

static void *create_clientd(const char *source, void *clientd)
{
    (void)source;
    (void)clientd;
    return malloc(16);
}

static int delete_clientd(const char *source, void *clientd, void *source_clientd)
{
    (void)source;
    atomic_fetch_add((atomic_int *)clientd, 1);
    free(source_clientd);
    return 0;
}

TEST(messages_of_a_source_that_is_gone_have_nothing_that_was_freed_with_it)
{
    TEST_NEEDS_NET();
    atomic_int deleted = 0;
    struct pair p;
    lbm_rcv_topic_attr_t *attr = waiting(NULL);
    lbm_rcv_src_notification_func_t func = {
        .create_func = create_clientd, .delete_func = delete_clientd, .clientd = &deleted};
    MUST(lbm_rcv_topic_attr_setopt(attr, "source_notification_function", &func, sizeof func));
    begin(&p, attr);
    give(&p, 0, 1);
    CHECK(heard_wait(&p.heard, &p.heard.data, 1));
    CHECK(p.heard.clientds[1] != NULL);
    give(&p, 1, 4);
    MUST(lbm_src_delete(p.src[1]));
    p.src[1] = NULL;
    CHECK(heard_wait(&p.heard, &p.heard.eos, 1));
    CHECK(wait_above(&deleted, 1));
    give(&p, 0, 2);
    give(&p, 0, 3);
    CHECK(heard_wait(&p.heard, &p.heard.data, 4));
    CHECK(p.heard.clientds[4] == NULL);
    CHECK(p.heard.clientds[3] == p.heard.clientds[1]);
    end(&p);
}

/* ---- several receivers ---- */

static void share_a_topic(bool hf_first)
{
    lbm_context_t *ctx = net_context(), *sending = net_context();
    struct heard plain = HEARD_INIT, hot = HEARD_INIT;
    plain.keep = hot.keep = true;
    lbm_src_t *src = hf_source(sending, "tcp");
    lbm_hf_rcv_t *hf = hf_first ? hf_receiver(ctx, waiting(NULL), &hot) : NULL;
    lbm_rcv_t *rcv = net_receiver(ctx, "hot", NULL, on_msg, &plain, NULL);
    if (hf == NULL) {
        hf = hf_receiver(ctx, waiting(NULL), &hot);
    }
    CHECK(heard_wait(&plain, &plain.bos, 1) && heard_wait(&hot, &hot.bos, 1));
    MUST(lbm_src_send(src, "x", 1, LBM_MSG_FLUSH)); /* without a number */
    CHECK(heard_wait(&plain, &plain.data, 1) && heard_wait(&hot, &hot.data, 1));
    CHECK_EQ(plain.kept_flags & LBM_MSG_FLAG_HF_PASS_THROUGH, 0);
    CHECK_EQ(plain.kept->flags & LBM_MSG_FLAG_HF_PASS_THROUGH, 0);
    CHECK_EQ(hot.kept_flags & LBM_MSG_FLAG_HF_PASS_THROUGH, LBM_MSG_FLAG_HF_PASS_THROUGH);
    CHECK_EQ(hot.kept->flags & LBM_MSG_FLAG_HF_PASS_THROUGH, LBM_MSG_FLAG_HF_PASS_THROUGH);
    MUST(lbm_hf_rcv_delete(hf));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_msg_delete(plain.kept));
    MUST(lbm_msg_delete(hot.kept));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(sending));
    MUST(lbm_context_delete(ctx));
}

TEST(what_is_passed_through_is_so_for_this_receiver_alone)
{
    TEST_NEEDS_NET();
    share_a_topic(false);
    share_a_topic(true);
}

/* ---- other loops ---- */

/* There it is not merged, so the flow has to order it and to tell what is lost. */
TEST(what_comes_on_an_xsp_is_in_the_order_of_its_source)
{
    TEST_NEEDS_NET();
    enum { COUNT = 300 };
    struct mapper m = {0};
    struct heard heard = HEARD_INIT;
    lbm_context_t *sender = sending_context(), *ctx = world(&m, 1);
    lbm_src_t *src = hf_source(sender, "lbt-rm");
    lbm_hf_rcv_t *hf = hf_receiver(ctx, waiting(NULL), &heard);
    MUST(um_rcv_wait_ready(lbm_rcv_from_hf_rcv(hf), 1, HANG_SECONDS * 1000));
    lbm_set_lbtrm_loss_rate(30);
    for (unsigned i = 0; i < COUNT; i++) {
        MUST(lbm_hf_src_send(src, "x", 1, i, LBM_MSG_FLUSH));
    }
    lbm_set_lbtrm_loss_rate(0);
    CHECK(heard_wait(&heard, &heard.data, COUNT));
    CHECK(!heard.disorder);
    CHECK(heard.passed >= COUNT);
    MUST(lbm_hf_rcv_delete(hf));
    MUST(lbm_src_delete(src));
    end_world(ctx, &m);
    MUST(lbm_context_delete(sender));
}
