/* Wildcard receivers end to end: matching, internal receivers shared with plain
 * ones, callbacks, linger, the three kinds of pattern. */
#include "um_test_rcv.h"

static lbm_wildcard_rcv_t *net_wildcard(lbm_context_t *ctx, const char *pattern, lbm_wildcard_rcv_attr_t *attr,
                                        struct recorder *r)
{
    lbm_wildcard_rcv_t *w;
    MUST(lbm_wildcard_rcv_create(&w, ctx, pattern, NULL, attr, recorder_cb, r, NULL));
    if (attr != NULL) {
        lbm_wildcard_rcv_attr_delete(attr);
    }
    return w;
}

static lbm_wildcard_rcv_attr_t *net_wildcard_attr(void)
{
    lbm_wildcard_rcv_attr_t *attr;
    MUST(lbm_wildcard_rcv_attr_create(&attr));
    return attr;
}

static bool wait_for(int *value, int wanted)
{
    for (int i = 0; i < HANG_SECONDS * 100; i++) {
        if (__atomic_load_n(value, __ATOMIC_ACQUIRE) >= wanted) {
            return true;
        }
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    return false;
}

static int creates, deletes;
static char create_topics[256];

static int on_create(const char *topic, lbm_rcv_topic_attr_t *attr, void *clientd)
{
    (void)attr, (void)clientd;
    strcat(create_topics, topic);
    strcat(create_topics, " ");
    __atomic_fetch_add(&creates, 1, __ATOMIC_RELEASE);
    return 0;
}

static int on_delete(const char *topic, void *clientd)
{
    (void)topic, (void)clientd;
    __atomic_fetch_add(&deletes, 1, __ATOMIC_RELEASE);
    return 0;
}

static void set_callbacks(lbm_wildcard_rcv_attr_t *attr)
{
    lbm_wildcard_rcv_create_func_t create = {on_create, NULL};
    lbm_wildcard_rcv_delete_func_t delete = {on_delete, NULL};
    MUST(lbm_wildcard_rcv_attr_setopt(attr, "receiver_create_callback", &create, sizeof create));
    MUST(lbm_wildcard_rcv_attr_setopt(attr, "receiver_delete_callback", &delete, sizeof delete));
    creates = deletes = 0;
    create_topics[0] = '\0';
}

TEST(matches_topics_known_before_and_found_later)
{
    TEST_NEEDS_NET();
    lbm_context_t *sctx = net_context(), *ctx = net_context();
    struct recorder r = RECORDER_INIT;
    lbm_wildcard_rcv_attr_t *attr = net_wildcard_attr();
    set_callbacks(attr);
    lbm_src_t *before = net_source(sctx, "ab1");
    lbm_src_t *unrelated = net_source(sctx, "cab");
    nanosleep(&(struct timespec){0, 100000000}, NULL);
    lbm_wildcard_rcv_t *w = net_wildcard(ctx, "^ab.*", attr, &r);
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 1));
    lbm_src_t *after = net_source(sctx, "ab2");
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 2));
    CHECK_STR(create_topics, "ab1 ab2 ");
    net_send(before, "x");
    net_send(after, "y");
    net_send(unrelated, "z");
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 2));
    CHECK(lbm_context_from_wildcard_rcv(w) == ctx);
    MUST(lbm_wildcard_rcv_delete(w));
    CHECK_EQ(creates, 2);
    CHECK_EQ(deletes, 2);
    CHECK_EQ(recorder_count(&r, LBM_MSG_DATA), 2);
    CHECK_EQ(recorder_count(&r, LBM_MSG_EOS), 0);
    MUST(lbm_src_delete(before));
    MUST(lbm_src_delete(after));
    MUST(lbm_src_delete(unrelated));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sctx));
}

TEST(plain_and_wildcard_receivers_on_a_topic_each_get_every_message_once)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct recorder plain = RECORDER_INIT, wild = RECORDER_INIT;
    lbm_src_t *src = net_source(ctx, "shared");
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "shared", &plain);
    lbm_wildcard_rcv_t *w = net_wildcard(ctx, "share", NULL, &wild);
    CHECK(recorder_wait(&plain, LBM_MSG_BOS, 1));
    CHECK(recorder_wait(&wild, LBM_MSG_BOS, 1));
    net_send(src, "a");
    net_send(src, "b");
    CHECK(recorder_wait(&plain, LBM_MSG_DATA, 2));
    CHECK(recorder_wait(&wild, LBM_MSG_DATA, 2));
    CHECK_STR(plain.text, "BOS 0=a 1=b ");
    CHECK_STR(wild.text, "BOS 0=a 1=b ");
    int num = 4;
    lbm_rcv_transport_stats_t stats[4];
    CHECK_EQ(lbm_context_retrieve_rcv_transport_stats_ex(ctx, &num, sizeof stats[0], stats), 0);
    CHECK_EQ(num, 1); /* one session under both */
    MUST(lbm_rcv_delete(rcv));
    net_send(src, "c");
    CHECK(recorder_wait(&wild, LBM_MSG_DATA, 3));
    MUST(lbm_wildcard_rcv_delete(w));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

static lbm_rcv_t *internal;

static int internal_cb(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    internal = rcv;
    return recorder_cb(rcv, msg, clientd);
}

TEST(internal_receiver_serves_for_statistics_but_cannot_be_deleted)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct recorder r = RECORDER_INIT;
    lbm_src_t *src = net_source(ctx, "inner");
    lbm_wildcard_rcv_t *w;
    MUST(lbm_wildcard_rcv_create(&w, ctx, "inner", NULL, NULL, internal_cb, &r, NULL));
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 1));
    net_send(src, "x");
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 1));
    lbm_rcv_transport_stats_t stats;
    CHECK_EQ(lbm_rcv_retrieve_transport_stats(internal, r.source, &stats), 0);
    CHECK_EQ(stats.transport.tcp.lbm_msgs_rcved, 1);
    CHECK_EQ(lbm_rcv_delete(internal), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    MUST(lbm_wildcard_rcv_delete(w));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

TEST(topic_without_source_lingers_is_deleted_and_matches_anew)
{
    TEST_NEEDS_NET();
    lbm_context_t *sctx = net_context(), *ctx = net_context();
    struct recorder r = RECORDER_INIT;
    lbm_wildcard_rcv_attr_t *attr = net_wildcard_attr();
    set_callbacks(attr);
    MUST(lbm_wildcard_rcv_attr_str_setopt(attr, "resolver_no_source_linger_timeout", "100"));
    lbm_src_t *src = net_source(sctx, "come.and.go");
    lbm_wildcard_rcv_t *w = net_wildcard(ctx, "and", attr, &r);
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 1));
    MUST(lbm_src_delete(src));
    CHECK(recorder_wait(&r, LBM_MSG_EOS, 1));
    CHECK(wait_for(&deletes, 1));
    CHECK_EQ(recorder_count(&r, LBM_MSG_NO_SOURCE_NOTIFICATION), 0);
    src = net_source(sctx, "come.and.go");
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 2));
    CHECK_EQ(creates, 2);
    MUST(lbm_wildcard_rcv_delete(w));
    CHECK_EQ(deletes, 2);
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sctx));
}

TEST(posix_patterns_match)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct recorder r = RECORDER_INIT;
    lbm_wildcard_rcv_attr_t *attr = net_wildcard_attr();
    MUST(lbm_wildcard_rcv_attr_str_setopt(attr, "pattern_type", "regex"));
    lbm_src_t *src = net_source(ctx, "posix7");
    lbm_wildcard_rcv_t *w = net_wildcard(ctx, "^posix[[:digit:]]$", attr, &r);
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 1));
    CHECK_STR(r.topic, "posix7");
    MUST(lbm_wildcard_rcv_delete(w));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

static int compare_cb(const char *topic, void *clientd)
{
    return strcmp(topic, clientd);
}

TEST(application_callback_decides_the_match)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct recorder r = RECORDER_INIT;
    lbm_wildcard_rcv_attr_t *attr = net_wildcard_attr();
    lbm_wildcard_rcv_compare_func_t func = {compare_cb, "chosen"};
    MUST(lbm_wildcard_rcv_attr_str_setopt(attr, "pattern_type", "appcb"));
    MUST(lbm_wildcard_rcv_attr_setopt(attr, "pattern_callback", &func, sizeof func));
    lbm_src_t *src = net_source(ctx, "chosen"), *other = net_source(ctx, "other");
    lbm_wildcard_rcv_t *w = net_wildcard(ctx, "whatever", attr, &r);
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 1));
    net_send(other, "no");
    net_send(src, "yes");
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 1));
    CHECK_STR(r.text, "BOS 0=yes ");
    MUST(lbm_wildcard_rcv_delete(w));
    MUST(lbm_src_delete(src));
    MUST(lbm_src_delete(other));
    MUST(lbm_context_delete(ctx));
}

TEST(bad_patterns_and_contexts_without_cache_are_refused)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_wildcard_rcv_t *w = NULL;
    CHECK_EQ(lbm_wildcard_rcv_create(&w, ctx, "a(", NULL, NULL, recorder_cb, NULL, NULL), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_CONTAINS(lbm_errmsg(), "does not compile");
    CHECK_EQ(lbm_wildcard_rcv_create(&w, ctx, "", NULL, NULL, recorder_cb, NULL, NULL), -1);
    CHECK_EQ(lbm_wildcard_rcv_create(&w, ctx, "a", NULL, NULL, NULL, NULL, NULL), -1);
    lbm_wildcard_rcv_attr_t *attr = net_wildcard_attr();
    MUST(lbm_wildcard_rcv_attr_str_setopt(attr, "pattern_type", "regex"));
    CHECK_EQ(lbm_wildcard_rcv_create(&w, ctx, "a(", NULL, attr, recorder_cb, NULL, NULL), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    MUST(lbm_wildcard_rcv_attr_str_setopt(attr, "pattern_type", "appcb"));
    CHECK_EQ(lbm_wildcard_rcv_create(&w, ctx, "a", NULL, attr, recorder_cb, NULL, NULL), -1);
    CHECK_CONTAINS(lbm_errmsg(), "pattern_callback");
    lbm_wildcard_rcv_attr_delete(attr);
    MUST(lbm_context_delete(ctx));

    lbm_context_attr_t *cattr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(cattr, "resolver_cache", "0"));
    ctx = net_context_with(cattr);
    CHECK_EQ(lbm_wildcard_rcv_create(&w, ctx, "a", NULL, NULL, recorder_cb, NULL, NULL), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_CONTAINS(lbm_errmsg(), "resolver_cache");
    MUST(lbm_context_delete(ctx));
}

TEST(options_of_a_wildcard_receiver_are_readable)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct recorder r = RECORDER_INIT;
    lbm_wildcard_rcv_t *w = net_wildcard(ctx, "x", NULL, &r);
    char text[128];
    size_t len = sizeof text;
    CHECK_EQ(lbm_wildcard_rcv_str_getopt(w, "pattern_type", text, &len), 0);
    CHECK_STR(text, "pcre");
    CHECK_EQ(lbm_wildcard_rcv_str_setopt(w, "pattern_type", "regex"), -1);
    int count = lbm_wildcard_rcv_attr_option_size();
    lbm_config_option_t *dump = calloc((size_t)count, sizeof *dump);
    CHECK_EQ(lbm_wildcard_rcv_dump(w, &count, dump), 0);
    free(dump);
    MUST(lbm_wildcard_rcv_delete(w));
    MUST(lbm_context_delete(ctx));
}

TEST(wildcard_receiver_with_an_event_queue)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_event_queue_t *evq;
    MUST(lbm_event_queue_create(&evq, NULL, NULL, NULL));
    struct recorder r = RECORDER_INIT;
    lbm_src_t *src = net_source(ctx, "wq");
    lbm_wildcard_rcv_t *w;
    MUST(lbm_wildcard_rcv_create(&w, ctx, "^wq$", NULL, NULL, recorder_cb, &r, evq));
    CHECK(lbm_event_queue_from_wildcard_rcv(w) == evq);
    CHECK(recorder_dispatch(&r, evq, LBM_MSG_BOS, 1));
    for (int i = 0; i < 100; i++) {
        MUST(lbm_src_send(src, "x", 1, LBM_SRC_BLOCK));
    }
    MUST(lbm_src_flush(src));
    CHECK(recorder_dispatch(&r, evq, LBM_MSG_DATA, 50));
    MUST(lbm_wildcard_rcv_delete(w)); /* whatever is still queued vanishes */
    int served = recorder_count(&r, LBM_MSG_DATA);
    while (lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL) > 0) {
    }
    CHECK_EQ(recorder_count(&r, LBM_MSG_DATA), served);
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_event_queue_delete(evq));
}
