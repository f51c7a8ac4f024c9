/* Receivers end to end: a source and receivers in contexts of one process, over
 * TCP and multicast resolution on a private loopback network. */
#include <stdatomic.h>

#include "base/um_mem.h"
#include "core/um_context.h"
#include "core/um_rcv_private.h"
#include "um_test_rcv.h"

/* ---- the ordinary life of a receiver ---- */

TEST(receiver_sees_bos_messages_in_order_and_eos)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct recorder r = RECORDER_INIT;
    lbm_src_t *src = net_source(ctx, "life");
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "life", &r);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    net_send(src, "a");
    net_send(src, "b");
    net_send(src, "c");
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 3));
    MUST(lbm_src_delete(src));
    CHECK(recorder_wait(&r, LBM_MSG_EOS, 1));
    CHECK_STR(r.text, "BOS 0=a 1=b 2=c EOS ");
    CHECK_STR(r.topic, "life");
    CHECK_EQ(strncmp(r.source, "TCP:127.0.0.1:", 14), 0);
    CHECK(strchr(r.source, '[') != NULL);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_context_delete(ctx));
}

TEST(source_string_has_no_topic_index_when_the_option_says_so)
{
    TEST_NEEDS_NET();
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "source_includes_topic_index", "0"));
    lbm_context_t *ctx = net_context_with(attr);
    struct recorder r = RECORDER_INIT;
    lbm_src_t *src = net_source(ctx, "noindex");
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "noindex", &r);
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 1));
    CHECK(strchr(r.source, '[') == NULL);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

TEST(a_new_source_is_joined_after_eos)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context(), *other = net_context();
    struct recorder r = RECORDER_INIT;
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "again", &r);
    for (int round = 1; round <= 2; round++) {
        lbm_src_t *src = net_source(other, "again");
        CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
        net_send(src, "x");
        CHECK(recorder_wait(&r, LBM_MSG_DATA, round));
        MUST(lbm_src_delete(src));
        CHECK(recorder_wait(&r, LBM_MSG_EOS, round));
    }
    CHECK_STR(r.text, "BOS 0=x EOS BOS 0=x EOS ");
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_context_delete(other));
    MUST(lbm_context_delete(ctx));
}

static atomic_int ready_at_eos;

static int note_ready_cb(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    if (msg->type == LBM_MSG_EOS) {
        atomic_store(&ready_at_eos, um_rcv_ready(rcv));
    }
    return recorder_cb(rcv, msg, clientd);
}

TEST(a_source_is_not_ready_any_more_when_its_eos_comes)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct recorder r = RECORDER_INIT;
    lbm_src_t *src = net_source(ctx, "gone");
    lbm_rcv_t *rcv = net_receiver(ctx, "gone", NULL, note_ready_cb, &r, NULL);
    atomic_store(&ready_at_eos, -1);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    MUST(lbm_src_delete(src));
    CHECK(recorder_wait(&r, LBM_MSG_EOS, 1));
    CHECK_EQ(atomic_load(&ready_at_eos), 0);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_context_delete(ctx));
}

static char order_seen[64];

static int order_cb(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv;
    if (msg->type == LBM_MSG_DATA) {
        strcat(order_seen, clientd);
    }
    return 0;
}

TEST(receivers_of_one_topic_are_called_in_the_order_of_creation)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct recorder r = RECORDER_INIT;
    lbm_src_t *src = net_source(ctx, "order");
    lbm_rcv_t *first = net_receiver(ctx, "order", NULL, order_cb, "1", NULL);
    lbm_rcv_t *second = net_receiver(ctx, "order", NULL, order_cb, "2", NULL);
    lbm_rcv_t *last = net_recording_receiver(ctx, "order", &r);
    CHECK_EQ(um_rcv_wait_ready(last, 1, HANG_SECONDS * 1000), 0);
    order_seen[0] = '\0';
    net_send(src, "a");
    net_send(src, "b");
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 2));
    CHECK_STR(order_seen, "1212");
    MUST(lbm_rcv_delete(first));
    net_send(src, "c");
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 3));
    CHECK_STR(order_seen, "12122");
    MUST(lbm_rcv_delete(second));
    MUST(lbm_rcv_delete(last));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

TEST(receiver_created_on_an_active_session_gets_bos_without_traffic)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct recorder first = RECORDER_INIT, second = RECORDER_INIT;
    lbm_src_t *src = net_source(ctx, "late");
    lbm_rcv_t *a = net_recording_receiver(ctx, "late", &first);
    CHECK(recorder_wait(&first, LBM_MSG_BOS, 1));
    lbm_rcv_t *b = net_recording_receiver(ctx, "late", &second);
    CHECK_EQ(um_rcv_wait_ready(b, 1, HANG_SECONDS * 1000), 0);
    CHECK_EQ(recorder_count(&second, LBM_MSG_BOS), 1);
    net_send(src, "x");
    CHECK(recorder_wait(&second, LBM_MSG_DATA, 1));
    CHECK_STR(second.text, "BOS 0=x ");
    CHECK_EQ(recorder_count(&first, LBM_MSG_BOS), 1);
    MUST(lbm_rcv_delete(a));
    MUST(lbm_rcv_delete(b));
    CHECK_EQ(recorder_count(&first, LBM_MSG_EOS), 0); /* deleting a receiver gives no EOS */
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

TEST(waiting_for_readiness_times_out_without_a_source)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct recorder r = RECORDER_INIT;
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "nobody", &r);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, 20), -1);
    CHECK_EQ(lbm_errnum(), LBM_ETIMEDOUT);
    CHECK_EQ(um_rcv_ready(rcv), 0);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_context_delete(ctx));
}

/* ---- messages ---- */

static lbm_msg_t *kept;

static int keep_first_cb(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    if (msg->type == LBM_MSG_DATA && kept == NULL) {
        MUST(lbm_msg_retain(msg));
        kept = msg;
    }
    return recorder_cb(rcv, msg, clientd);
}

TEST(retained_message_outlives_later_messages_and_its_context)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct recorder r = RECORDER_INIT;
    lbm_src_t *src = net_source(ctx, "kept");
    kept = NULL;
    lbm_rcv_t *rcv = net_receiver(ctx, "kept", NULL, keep_first_cb, &r, NULL);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    net_send(src, "precious");
    for (int i = 0; i < 1000; i++) {
        MUST(lbm_src_send(src, "next", 4, LBM_SRC_BLOCK));
    }
    MUST(lbm_src_flush(src));
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 1001));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    CHECK_EQ(kept->len, 8);
    CHECK_EQ(memcmp(kept->data, "precious", 8), 0);
    CHECK_EQ(kept->sequence_number, 0);
    CHECK_STR(kept->topic_name, "kept");
    CHECK_EQ(lbm_msg_delete(kept), 0);
}

static lbm_msg_fragment_info_t frag_info;
static int frag_rc, frag_is;
static bool payload_ok;

/* The bytes of a large message from `offset` on. */
UM_TEST_OWN_BYTES static void large_bytes(unsigned char *to, size_t len, size_t offset)
{
    for (size_t i = 0; i < len; i++) {
        to[i] = (unsigned char)((offset + i) * 13 >> 3);
    }
}

static int big_cb(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    if (msg->type == LBM_MSG_DATA) {
        frag_rc = lbm_msg_retrieve_fragment_info(msg, &frag_info);
        frag_is = lbm_msg_is_fragment(msg);
        size_t offset = frag_is ? frag_info.offset : 0;
        unsigned char expected[4096];
        for (size_t at = 0; at < msg->len; at += sizeof expected) {
            size_t len = msg->len - at < sizeof expected ? msg->len - at : sizeof expected;
            large_bytes(expected, len, offset + at);
            payload_ok = payload_ok && memcmp(msg->data + at, expected, len) == 0;
        }
    }
    return recorder_cb(rcv, msg, clientd);
}

static void send_big(lbm_src_t *src, size_t len)
{
    unsigned char *data = malloc(len);
    large_bytes(data, len, 0);
    MUST(lbm_src_send(src, (char *)data, len, LBM_MSG_FLUSH | LBM_SRC_BLOCK));
    free(data);
}

/* Each message tells in its payload of which topic it is. */
struct named {
    atomic_int seen, wrong, kept_count;
    lbm_msg_t *kept[64];
};

static bool names_its_topic(const lbm_msg_t *msg)
{
    return strlen(msg->topic_name) == msg->len && memcmp(msg->topic_name, msg->data, msg->len) == 0 &&
           strncmp(msg->source, "TCP:127.0.0.1:", 14) == 0 && strcmp(msg->source_clientd, msg->source) == 0;
}

static void *remember_source(const char *source, void *clientd)
{
    (void)clientd;
    return strdup(source);
}

static int forget_source(const char *source, void *clientd, void *source_clientd)
{
    (void)source;
    (void)clientd;
    free(source_clientd);
    return 0;
}

static int check_names(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv;
    struct named *named = clientd;
    if (msg->type != LBM_MSG_DATA) {
        return 0;
    }
    atomic_fetch_add(&named->wrong, !names_its_topic(msg));
    if (atomic_load(&named->seen) % 7 == 0 && atomic_load(&named->kept_count) < 64) {
        named->wrong += lbm_msg_retain(msg) != 0;
        named->kept[atomic_fetch_add(&named->kept_count, 1)] = msg;
    }
    atomic_fetch_add(&named->seen, 1);
    return 0;
}

TEST(messages_of_many_sources_by_turns_name_their_own_topic_and_source)
{
    TEST_NEEDS_NET();
    enum { TOPICS = UM_RCV_TEMPLATES_MAX + 20, ROUNDS = 5 };
    lbm_src_t *sources[TOPICS];
    lbm_rcv_t *receivers[TOPICS];
    struct named named = {0};
    char name[32];
    lbm_rcv_topic_attr_t *attr;
    lbm_rcv_src_notification_func_t func = {remember_source, forget_source, NULL};
    lbm_context_t *ctx = net_context();
    MUST(lbm_rcv_topic_attr_create(&attr));
    MUST(lbm_rcv_topic_attr_setopt(attr, "source_notification_function", &func, sizeof func));
    for (int i = 0; i < TOPICS; i++) {
        snprintf(name, sizeof name, "turns/%d", i);
        sources[i] = net_source(ctx, name);
        receivers[i] = net_receiver(ctx, name, attr, check_names, &named, NULL);
    }
    lbm_rcv_topic_attr_delete(attr);
    for (int i = 0; i < TOPICS; i++) {
        MUST(um_rcv_wait_ready(receivers[i], 1, HANG_SECONDS * 1000));
    }
    for (int i = 0; i < ROUNDS * TOPICS; i++) {
        snprintf(name, sizeof name, "turns/%d", i % TOPICS);
        net_send(sources[i % TOPICS], name);
    }
    for (int i = 0; i < HANG_SECONDS * 1000 && atomic_load(&named.seen) < ROUNDS * TOPICS; i++) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    CHECK_EQ(atomic_load(&named.seen), ROUNDS * TOPICS);
    for (int i = 0; i < atomic_load(&named.kept_count); i++) {
        atomic_fetch_add(&named.wrong, !names_its_topic(named.kept[i]));
        MUST(lbm_msg_delete(named.kept[i]));
    }
    CHECK_EQ(atomic_load(&named.wrong), 0);
    for (int i = 0; i < TOPICS; i++) {
        MUST(lbm_rcv_delete(receivers[i]));
        MUST(lbm_src_delete(sources[i]));
    }
    MUST(lbm_context_delete(ctx));
}

TEST(fragmented_message_arrives_whole_with_information_on_its_last_fragment)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct recorder r = RECORDER_INIT;
    lbm_src_t *src = net_source(ctx, "big");
    lbm_rcv_t *rcv = net_receiver(ctx, "big", NULL, big_cb, &r, NULL);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    payload_ok = true;
    send_big(src, 1000000);
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 1));
    CHECK(payload_ok);
    CHECK_EQ(r.bytes, 1000000);
    CHECK_EQ(frag_rc, 0);
    CHECK_EQ(frag_is, 0);
    CHECK_EQ(frag_info.start_sequence_number, 0);
    CHECK_EQ(frag_info.total_message_length, 1000000);
    CHECK(frag_info.offset > 900000);
    CHECK(r.sqn > 10);
    net_send(src, "small");
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 2));
    CHECK_EQ(frag_rc, -1);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

TEST(message_of_a_hundred_megabytes_arrives_whole)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context(), *sctx = net_context();
    struct recorder r = RECORDER_INIT;
    lbm_src_t *src = net_source(sctx, "huge");
    lbm_rcv_t *rcv = net_receiver(ctx, "huge", NULL, big_cb, &r, NULL);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    payload_ok = true;
    send_big(src, 100u << 20);
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 1));
    CHECK(payload_ok);
    CHECK_EQ(r.bytes, 100u << 20);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(sctx));
    MUST(lbm_context_delete(ctx));
}

TEST(ordered_delivery_0_delivers_the_fragments)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct recorder r = RECORDER_INIT;
    lbm_rcv_topic_attr_t *attr;
    MUST(lbm_rcv_topic_attr_create(&attr));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "ordered_delivery", "0"));
    lbm_src_t *src = net_source(ctx, "pieces");
    lbm_rcv_t *rcv = net_receiver(ctx, "pieces", attr, big_cb, &r, NULL);
    lbm_rcv_topic_attr_delete(attr);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    payload_ok = true;
    send_big(src, 150000);
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 3));
    CHECK(payload_ok);
    CHECK_EQ(r.bytes, 150000);
    CHECK_EQ(frag_is, 1);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

/* ---- notification options ---- */

static int created, deleted;
static char created_source[128];
static int clientd_value;

static void *on_created(const char *source, void *clientd)
{
    (void)clientd;
    created++;
    snprintf(created_source, sizeof created_source, "%s", source);
    return &clientd_value;
}

static int on_deleted(const char *source, void *clientd, void *source_clientd)
{
    (void)clientd;
    deleted += source_clientd == &clientd_value && strcmp(source, created_source) == 0;
    return 0;
}

TEST(source_notifications_are_balanced_and_set_source_clientd)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct recorder r = RECORDER_INIT;
    lbm_rcv_topic_attr_t *attr;
    lbm_rcv_src_notification_func_t func = {on_created, on_deleted, NULL};
    MUST(lbm_rcv_topic_attr_create(&attr));
    MUST(lbm_rcv_topic_attr_setopt(attr, "source_notification_function", &func, sizeof func));
    created = deleted = 0;
    lbm_src_t *src = net_source(ctx, "noted");
    lbm_rcv_t *rcv = net_receiver(ctx, "noted", attr, recorder_cb, &r, NULL);
    lbm_rcv_topic_attr_delete(attr);
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 1));
    CHECK_EQ(created, 1);
    CHECK_STR(created_source, r.source);
    CHECK(r.source_clientd == &clientd_value);
    int other;
    CHECK_EQ(lbm_rcv_msg_source_clientd(rcv, "TCP:1.2.3.4:5:6", &other), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(lbm_rcv_msg_source_clientd(rcv, r.source, &other), 0);
    net_send(src, "x");
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 1));
    CHECK(r.source_clientd == &other);
    CHECK_EQ(lbm_rcv_msg_source_clientd(rcv, r.source, &clientd_value), 0);
    MUST(lbm_rcv_delete(rcv));
    CHECK_EQ(deleted, 1);
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

static int costs_asked;

static lbm_uint32_t reject_all(const char *topic, const lbm_transport_source_info_t *transport, lbm_uint32_t hops,
                               lbm_uint32_t cost, void *clientd)
{
    (void)topic, (void)transport, (void)hops, (void)cost, (void)clientd;
    __atomic_fetch_add(&costs_asked, 1, __ATOMIC_RELAXED);
    return LBM_SRC_COST_FUNCTION_REJECT;
}

TEST(source_rejected_by_the_cost_function_is_not_joined)
{
    TEST_NEEDS_NET();
    lbm_context_attr_t *attr = net_context_attr();
    lbm_src_cost_func_t func = {reject_all, NULL};
    MUST(lbm_context_attr_setopt(attr, "source_cost_evaluation_function", &func, sizeof func));
    lbm_context_t *ctx = net_context_with(attr);
    struct recorder r = RECORDER_INIT;
    lbm_src_t *src = net_source(ctx, "dear");
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "dear", &r);
    for (int i = 0; i < 1000 && __atomic_load_n(&costs_asked, __ATOMIC_RELAXED) == 0; i++) {
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    CHECK(__atomic_load_n(&costs_asked, __ATOMIC_RELAXED) > 0);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, 100), -1);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

TEST(no_source_notification_comes_once_when_queries_stay_unanswered)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct recorder r = RECORDER_INIT;
    lbm_rcv_topic_attr_t *attr;
    MUST(lbm_rcv_topic_attr_create(&attr));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "resolution_no_source_notification_threshold", "3"));
    lbm_rcv_t *rcv = net_receiver(ctx, "lonely", attr, recorder_cb, &r, NULL);
    lbm_rcv_topic_attr_delete(attr);
    CHECK(recorder_wait(&r, LBM_MSG_NO_SOURCE_NOTIFICATION, 1));
    CHECK_STR(r.source, "");
    CHECK_STR(r.topic, "lonely");
    nanosleep(&(struct timespec){0, 500000000}, NULL);
    CHECK_EQ(recorder_count(&r, LBM_MSG_NO_SOURCE_NOTIFICATION), 1);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_context_delete(ctx));
}

/* Programs come and go with topics for as long as they run; what the library keeps of them is bounded. */
TEST(f21_topics_that_were_looked_up_do_not_pile_up)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct recorder r = RECORDER_INIT;
    for (int i = 0; i < 3000; i++) {
        char name[32];
        snprintf(name, sizeof name, "passing.%d", i);
        MUST(lbm_rcv_delete(net_receiver(ctx, name, NULL, recorder_cb, &r, NULL)));
    }
    lbm_topic_t *topic;
    MUST(lbm_rcv_topic_lookup(&topic, ctx, "kept", NULL)); /* a call to the loop: what follows reads behind it */
    CHECK(ctx->rcv_topics.count <= 1024 + 1);
    for (int i = 0; i < 2000; i++) {
        char name[32];
        snprintf(name, sizeof name, "passing again.%d", i);
        MUST(lbm_rcv_delete(net_receiver(ctx, name, NULL, recorder_cb, &r, NULL)));
    }
    lbm_rcv_t *rcv;
    MUST(lbm_rcv_create(&rcv, ctx, topic, recorder_cb, &r, NULL)); /* looked up long ago, and still good */
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_context_delete(ctx));
}

TEST(f23_a_topic_that_is_only_looked_up_is_asked_for_and_counted)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct recorder r = RECORDER_INIT;
    lbm_topic_t *topic;
    lbm_context_stats_t stats;
    MUST(lbm_rcv_topic_lookup(&topic, ctx, "lonely", NULL));
    do { /* a query goes out without a receiver */
        nanosleep(&(struct timespec){0, 10000000}, NULL);
        MUST(lbm_context_retrieve_stats(ctx, &stats));
    } while (stats.tr_dgrams_sent == 0);
    CHECK_EQ(stats.tr_rcv_topics, 1);
    CHECK_EQ(stats.tr_rcv_unresolved_topics, 0);
    lbm_rcv_t *rcv = net_receiver(ctx, "lonely", NULL, recorder_cb, &r, NULL);
    do { /* its timer starts it */
        MUST(lbm_context_retrieve_stats(ctx, &stats));
    } while (stats.tr_rcv_unresolved_topics != 1);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_context_retrieve_stats(ctx, &stats));
    CHECK_EQ(stats.tr_rcv_topics, 0);
    MUST(lbm_context_delete(ctx));
}

/* ---- refusals ---- */

static int refused_errnums[4];

static int forbidden_cb(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    if (msg->type == LBM_MSG_DATA) {
        lbm_context_t *ctx = lbm_context_from_rcv(rcv);
        lbm_topic_t *topic;
        lbm_wildcard_rcv_t *wrcv;
        refused_errnums[0] = lbm_rcv_delete(rcv) == -1 ? lbm_errnum() : 0;
        refused_errnums[1] = lbm_rcv_topic_lookup(&topic, ctx, "x", NULL) == -1 ? lbm_errnum() : 0;
        refused_errnums[2] =
            lbm_wildcard_rcv_create(&wrcv, ctx, "x", NULL, NULL, recorder_cb, clientd, NULL) == -1 ? lbm_errnum() : 0;
        refused_errnums[3] = lbm_msg_delete(msg) == -1 ? lbm_errnum() : 0;
    }
    recorder_cb(rcv, msg, clientd);
    return -1; /* only logged */
}

TEST(creating_and_deleting_inside_a_callback_is_refused)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct recorder r = RECORDER_INIT;
    lbm_src_t *src = net_source(ctx, "forbidden");
    lbm_rcv_t *rcv = net_receiver(ctx, "forbidden", NULL, forbidden_cb, &r, NULL);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    net_send(src, "x");
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 1));
    CHECK_EQ(refused_errnums[0], LBM_EOP);
    CHECK_EQ(refused_errnums[1], LBM_EOP);
    CHECK_EQ(refused_errnums[2], LBM_EOP);
    CHECK_EQ(refused_errnums[3], LBM_EINVAL);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

TEST(wrong_arguments_are_refused_with_a_text)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context(), *other = net_context();
    lbm_topic_t *topic, *foreign, *same;
    lbm_rcv_t *rcv = NULL;
    char name[300];
    memset(name, 'n', sizeof name);
    name[247] = '\0';
    CHECK_EQ(lbm_rcv_topic_lookup(&topic, ctx, name, NULL), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    name[246] = '\0';
    CHECK_EQ(lbm_rcv_topic_lookup(&topic, ctx, name, NULL), 0);
    CHECK_EQ(lbm_rcv_topic_lookup(&topic, ctx, "", NULL), -1);
    CHECK_EQ(lbm_rcv_topic_lookup(&topic, ctx, NULL, NULL), -1);
    CHECK_EQ(lbm_rcv_topic_lookup(&topic, NULL, "t", NULL), -1);
    CHECK_EQ(lbm_rcv_topic_lookup(&topic, ctx, "t", NULL), 0);
    CHECK_EQ(lbm_rcv_topic_lookup(&same, ctx, "t", NULL), 0);
    CHECK(same == topic);
    CHECK_EQ(lbm_rcv_topic_lookup(&foreign, other, "t", NULL), 0);
    CHECK_EQ(lbm_rcv_create(&rcv, ctx, foreign, recorder_cb, NULL, NULL), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_CONTAINS(lbm_errmsg(), "another context");
    CHECK_EQ(lbm_rcv_create(&rcv, ctx, topic, NULL, NULL, NULL), -1);
    CHECK_EQ(lbm_rcv_create(&rcv, ctx, NULL, recorder_cb, NULL, NULL), -1);
    CHECK_EQ(lbm_rcv_delete(NULL), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK(lbm_context_from_rcv(NULL) == NULL);
    MUST(lbm_context_delete(other));
    MUST(lbm_context_delete(ctx));
}

/* ---- statistics and options ---- */

TEST(transport_statistics_by_source_and_all)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct recorder r = RECORDER_INIT;
    lbm_src_t *src = net_source(ctx, "counted");
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "counted", &r);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    for (int i = 0; i < 10; i++) {
        net_send(src, "x");
    }
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 10));
    lbm_rcv_transport_stats_t stats;
    CHECK_EQ(lbm_rcv_retrieve_transport_stats(rcv, r.source, &stats), 0);
    CHECK_EQ(stats.type, LBM_TRANSPORT_STAT_TCP);
    CHECK_EQ(stats.transport.tcp.lbm_msgs_rcved, 10);
    CHECK(strchr(stats.source, '[') == NULL);
    CHECK_EQ(strncmp(stats.source, r.source, strlen(stats.source)), 0);
    CHECK_EQ(lbm_rcv_retrieve_transport_stats(rcv, "TCP:9.9.9.9:1:2", &stats), -1);
    CHECK_CONTAINS(lbm_errmsg(), "could not find the given source transport session");

    lbm_rcv_transport_stats_t all[2];
    int num = 0;
    CHECK_EQ((lbm_rcv_retrieve_all_transport_stats)(rcv, &num, all), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(num, 1);
    num = 2;
    CHECK_EQ(lbm_rcv_retrieve_all_transport_stats_ex(rcv, &num, sizeof all[0], all), 0);
    CHECK_EQ(num, 1);
    CHECK_EQ(all[0].transport.tcp.lbm_msgs_rcved, 10);
    num = 2;
    CHECK_EQ(lbm_context_retrieve_rcv_transport_stats_ex(ctx, &num, sizeof all[0], all), 0);
    CHECK_EQ(num, 1);
    CHECK_EQ(lbm_rcv_reset_transport_stats(rcv, r.source), 0);
    CHECK_EQ(lbm_rcv_retrieve_transport_stats(rcv, r.source, &stats), 0);
    CHECK_EQ(stats.transport.tcp.lbm_msgs_rcved, 0);
    CHECK_EQ(lbm_rcv_reset_all_transport_stats(rcv), 0);
    CHECK_EQ(lbm_context_reset_rcv_transport_stats(ctx), 0);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

TEST(live_options_are_read_and_only_thresholds_are_set)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct recorder r = RECORDER_INIT;
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "options", &r);
    lbm_ulong_t value = 5, back = 0;
    size_t len = sizeof back;
    CHECK_EQ(lbm_rcv_setopt(rcv, "resolution_number_of_sources_query_threshold", &value, sizeof value), 0);
    CHECK_EQ(lbm_rcv_getopt(rcv, "resolution_number_of_sources_query_threshold", &back, &len), 0);
    CHECK_EQ(back, 5);
    CHECK_EQ(lbm_rcv_str_setopt(rcv, "ordered_delivery", "0"), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    char text[128];
    len = sizeof text;
    CHECK_EQ(lbm_rcv_str_getopt(rcv, "ordered_delivery", text, &len), 0);
    CHECK_STR(text, "1");
    int count = lbm_rcv_topic_attr_option_size();
    CHECK(count > 10);
    lbm_config_option_t *dump = calloc((size_t)count, sizeof *dump);
    CHECK_EQ(lbm_rcv_topic_dump(rcv, &count, dump), 0);
    CHECK_EQ(count, lbm_rcv_topic_attr_option_size());
    free(dump);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_context_delete(ctx));
}

TEST(an_option_set_on_one_receiver_is_not_changed_on_another_topic)
{
    TEST_NEEDS_NET();
    static const char option[] = "resolution_number_of_sources_query_threshold";
    lbm_context_t *ctx = net_context();
    struct recorder r = RECORDER_INIT;
    lbm_rcv_t *one = net_recording_receiver(ctx, "options/one", &r);
    lbm_rcv_t *two = net_recording_receiver(ctx, "options/two", &r);
    CHECK(one->topic->opts == two->topic->opts);
    lbm_ulong_t value = 5, set = 0, other = 0;
    size_t len = sizeof set;
    CHECK_EQ(lbm_rcv_setopt(one, option, &value, sizeof value), 0);
    CHECK_EQ(lbm_rcv_getopt(one, option, &set, &len), 0);
    CHECK_EQ(lbm_rcv_getopt(two, option, &other, &len), 0);
    CHECK_EQ(set, 5);
    CHECK_EQ(other, 10000000);
    MUST(lbm_rcv_delete(one));
    MUST(lbm_rcv_delete(two));
    MUST(lbm_context_delete(ctx));
}

static int slow_recorder_cb(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    if (msg->type == LBM_MSG_DATA) {
        nanosleep(&(struct timespec){0, 2000000}, NULL);
    }
    return recorder_cb(rcv, msg, clientd);
}

TEST(service_times_are_kept_when_enabled)
{
    TEST_NEEDS_NET();
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "receiver_callback_service_time_enabled", "1"));
    lbm_context_t *ctx = net_context_with(attr);
    struct recorder r = RECORDER_INIT;
    lbm_src_t *src = net_source(ctx, "timed");
    lbm_topic_t *topic;
    lbm_rcv_t *rcv;
    MUST(lbm_rcv_topic_lookup(&topic, ctx, "timed", NULL));
    MUST(lbm_rcv_create(&rcv, ctx, topic, slow_recorder_cb, &r, NULL));
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    net_send(src, "x");
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 1));
    net_send(src, "y");
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 2));
    lbm_context_stats_t stats;
    CHECK_EQ(lbm_context_retrieve_stats(ctx, &stats), 0);
    CHECK(stats.rcv_cb_svc_time_max >= 2000); /* microseconds */
    CHECK(stats.rcv_cb_svc_time_max >= stats.rcv_cb_svc_time_min);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

/* ---- event queues ---- */

TEST(with_an_event_queue_the_dispatching_thread_gets_everything)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_event_queue_t *evq;
    MUST(lbm_event_queue_create(&evq, NULL, NULL, NULL));
    struct recorder r = RECORDER_INIT;
    lbm_src_t *src = net_source(ctx, "queued");
    lbm_rcv_t *rcv = net_receiver(ctx, "queued", NULL, recorder_cb, &r, evq);
    CHECK(lbm_event_queue_from_rcv(rcv) == evq);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    for (int i = 0; i < 3; i++) {
        net_send(src, "abc");
    }
    CHECK(recorder_dispatch(&r, evq, LBM_MSG_DATA, 3));
    CHECK_STR(r.text, "BOS 0=abc 1=abc 2=abc ");
    CHECK(pthread_equal(r.thread, pthread_self()));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_event_queue_delete(evq));
}

static int cancelled;

static void on_cancelled(int dispatch_thrd, void *clientd)
{
    (void)dispatch_thrd, (void)clientd;
    cancelled++;
}

TEST(events_pending_at_deletion_are_never_delivered_and_the_cancel_callback_comes_once)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_event_queue_t *evq;
    lbm_event_queue_attr_t *attr;
    MUST(lbm_event_queue_attr_create(&attr));
    MUST(lbm_event_queue_attr_str_setopt(attr, "queue_cancellation_callbacks_enabled", "1"));
    MUST(lbm_event_queue_create(&evq, NULL, NULL, attr));
    lbm_event_queue_attr_delete(attr);
    struct recorder queued = RECORDER_INIT, direct = RECORDER_INIT;
    lbm_src_t *src = net_source(ctx, "pending");
    lbm_rcv_t *rcv = net_receiver(ctx, "pending", NULL, recorder_cb, &queued, evq);
    lbm_rcv_t *watch = net_recording_receiver(ctx, "pending", &direct);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    for (int i = 0; i < 1000; i++) {
        MUST(lbm_src_send(src, "x", 1, LBM_SRC_BLOCK));
    }
    MUST(lbm_src_flush(src));
    CHECK(recorder_wait(&direct, LBM_MSG_DATA, 1000));
    lbm_event_queue_cancel_cb_info_t info = {evq, on_cancelled, NULL};
    cancelled = 0;
    MUST(lbm_rcv_delete_ex(rcv, &info));
    while (lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL) > 0) {
    }
    CHECK_EQ(cancelled, 1);
    CHECK_EQ(recorder_count(&queued, LBM_MSG_DATA), 0);
    MUST(lbm_rcv_delete(watch));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_event_queue_delete(evq));
}

static int keep_all_cb(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv;
    lbm_msg_t **list = clientd;
    if (msg->type == LBM_MSG_DATA) {
        MUST(lbm_msg_retain(msg));
        for (int i = 0; i < 16; i++) {
            if (list[i] == NULL) {
                list[i] = msg;
                break;
            }
        }
    }
    return 0;
}

TEST(queued_messages_can_be_retained_and_deleted_after_everything_is_gone)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_event_queue_t *evq;
    MUST(lbm_event_queue_create(&evq, NULL, NULL, NULL));
    lbm_msg_t *list[16] = {0};
    lbm_src_t *src = net_source(ctx, "keepq");
    lbm_rcv_t *rcv = net_receiver(ctx, "keepq", NULL, keep_all_cb, list, evq);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    for (int i = 0; i < 16; i++) {
        char text[8];
        snprintf(text, sizeof text, "m%02d", i);
        net_send(src, text);
    }
    for (int i = 0; i < HANG_SECONDS * 1000 && list[15] == NULL; i++) {
        while (lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL) > 0) {
        }
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    CHECK(list[15] != NULL);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_event_queue_delete(evq));
    for (int i = 0; i < 16; i++) {
        char text[8];
        snprintf(text, sizeof text, "m%02d", i);
        CHECK_EQ(memcmp(list[i]->data, text, 3), 0);
        CHECK_EQ(lbm_msg_delete(list[i]), 0);
    }
}

/* ---- without memory ---- */

static int allocations_left;

static bool fail_when_spent(size_t size)
{
    (void)size;
    return __atomic_fetch_sub(&allocations_left, 1, __ATOMIC_RELAXED) == 0;
}

TEST(every_failing_allocation_while_creating_receivers_is_an_error_and_leaks_nothing)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = net_source(ctx, "torture");
    int failures = 0;
    for (int n = 0; n < 60; n++) {
        struct recorder r = RECORDER_INIT;
        lbm_topic_t *topic = NULL;
        lbm_rcv_t *rcv = NULL;
        lbm_wildcard_rcv_t *w = NULL;
        char name[32];
        snprintf(name, sizeof name, "torture.%d", n);
        __atomic_store_n(&allocations_left, n, __ATOMIC_RELAXED);
        um_mem_set_fail_hook(fail_when_spent);
        int rc = lbm_rcv_topic_lookup(&topic, ctx, name, NULL);
        rc = rc == 0 ? lbm_rcv_create(&rcv, ctx, topic, recorder_cb, &r, NULL) : rc;
        rc = rc == 0 ? lbm_wildcard_rcv_create(&w, ctx, "^torture$", NULL, NULL, recorder_cb, &r, NULL) : rc;
        um_mem_set_fail_hook(NULL);
        if (rc != 0) {
            failures++;
            CHECK_CONTAINS(lbm_errmsg(), "out of memory");
            CHECK_EQ(lbm_errnum(), LBM_ENOMEM);
        }
        if (w != NULL) {
            MUST(lbm_wildcard_rcv_delete(w));
        }
        if (rcv != NULL) {
            MUST(lbm_rcv_delete(rcv));
        }
    }
    CHECK(failures > 3);
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

TEST(every_failing_allocation_while_joining_is_survived_and_later_receivers_work)
{
    TEST_NEEDS_NET();
    lbm_context_t *sctx = net_context(), *ctx = net_context();
    lbm_src_t *src = net_source(sctx, "joined");
    for (int n = 0; n < 40; n++) {
        struct recorder r = RECORDER_INIT;
        lbm_topic_t *topic;
        lbm_rcv_t *rcv;
        MUST(lbm_rcv_topic_lookup(&topic, ctx, "joined", NULL));
        MUST(lbm_rcv_create(&rcv, ctx, topic, recorder_cb, &r, NULL));
        __atomic_store_n(&allocations_left, n, __ATOMIC_RELAXED);
        um_mem_set_fail_hook(fail_when_spent);
        um_rcv_wait_ready(rcv, 1, 20);
        um_mem_set_fail_hook(NULL);
        MUST(lbm_rcv_delete(rcv));
    }
    struct recorder r = RECORDER_INIT;
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "joined", &r);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    net_send(src, "x");
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 1));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sctx));
}

static int slow_at_first_cb(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    return recorder_count(clientd, LBM_MSG_DATA) < 50 ? slow_recorder_cb(rcv, msg, clientd)
                                                      : recorder_cb(rcv, msg, clientd);
}

TEST(a_final_advertisement_does_not_overtake_the_messages_of_a_slow_receiver)
{
    TEST_NEEDS_NET();
    enum { COUNT = 500, LEN = 8000 };
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "transport_tcp_maximum_ports", "1"));
    lbm_context_t *sctx = net_context_with(attr), *ctx = net_context();
    lbm_src_topic_attr_t *sattr;
    MUST(lbm_src_topic_attr_create(&sattr));
    MUST(lbm_src_topic_attr_str_setopt(sattr, "resolver_send_final_advertisements", "1"));
    MUST(lbm_src_topic_attr_str_setopt(sattr, "transport_session_maximum_buffer", "16000000"));
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_alloc(&topic, sctx, "final", sattr));
    MUST(lbm_src_create(&src, sctx, topic, NULL, NULL, NULL));
    lbm_src_topic_attr_delete(sattr);
    lbm_src_t *other = net_source(sctx, "keeps the session"); /* so that the connection stays */
    struct recorder r = RECORDER_INIT;
    lbm_rcv_t *rcv = net_receiver(ctx, "final", NULL, slow_at_first_cb, &r, NULL);
    lbm_rcv_t *other_rcv = net_receiver(ctx, "keeps the session", NULL, recorder_cb, &r, NULL);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    CHECK_EQ(um_rcv_wait_ready(other_rcv, 1, HANG_SECONDS * 1000), 0);
    static char data[LEN];
    for (int i = 0; i < COUNT; i++) {
        MUST(lbm_src_send(src, data, sizeof data, LBM_SRC_BLOCK));
    }
    MUST(lbm_src_delete(src));
    CHECK(recorder_wait(&r, LBM_MSG_EOS, 1));
    CHECK_EQ(recorder_count(&r, LBM_MSG_DATA), COUNT);
    CHECK_EQ(um_rcv_ready(other_rcv), 1);
    MUST(lbm_rcv_delete(other_rcv));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(other));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sctx));
}
