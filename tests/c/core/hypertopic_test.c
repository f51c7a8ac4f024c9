/* HyperTopic receivers: what patterns match, and the calls. */
#include "base/um_mem.h"
#include "core/um_hypertopic.h"
#include "um_test_rcv.h"

static void expression_of(const char *prefix, const char *pattern, const char *wanted)
{
    char *expression = um_hypertopic_expression(prefix, pattern, "test");
    CHECK_STR(expression, wanted);
    um_free(expression);
}

TEST(patterns_become_expressions)
{
    expression_of("", "a/b", "^a/b\\z");
    expression_of("p.", "*/b/*", "^p\\.[^/]*/b/[^/]*\\z");
    expression_of("p/", "a/>", "^p/a/(?s:.*)\\z");
    expression_of("", ">", "^(?s:.*)\\z");
    expression_of("", "a*/>b", "^a\\*/>b\\z");
    expression_of("", "a//", "^a//\\z");
    expression_of("(x)", "", "^\\(x\\)\\z");
    CHECK(um_hypertopic_expression("", ">/a", "test") == NULL);
}

struct heard {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char tag[16];    /* of the messages that are looked at: others are of an earlier attempt */
    char text[1024]; /* "topic:clientd " of each */
    int data, all, ends, ended, dispatching;
    lbm_hypertopic_rcv_t *hrcv;
    bool wrong;
};

static struct heard heard = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void look_at(lbm_msg_t *msg, const char *branch)
{
    bool ours = msg->len == strlen(heard.tag) && memcmp(msg->data, heard.tag, msg->len) == 0;
    size_t used = strlen(heard.text);
    heard.all++;
    heard.data += ours;
    heard.ends += msg->len == 3 && memcmp(msg->data, "end", 3) == 0;
    if (ours) {
        snprintf(heard.text + used, sizeof heard.text - used, "%s:%s ", msg->topic_name, branch);
    }
}

static int on_message(lbm_hypertopic_rcv_t *hrcv, lbm_msg_t *msg, void *clientd)
{
    pthread_mutex_lock(&heard.lock);
    heard.wrong |= hrcv != heard.hrcv;
    if (msg->type == LBM_MSG_DATA) {
        look_at(msg, clientd);
    }
    pthread_cond_broadcast(&heard.changed);
    pthread_mutex_unlock(&heard.lock);
    return 0;
}

static void on_deleted(int dispatching, void *clientd)
{
    pthread_mutex_lock(&heard.lock);
    heard.ended++;
    heard.dispatching = dispatching;
    heard.wrong |= clientd != &heard;
    pthread_mutex_unlock(&heard.lock);
}

static void begin(lbm_hypertopic_rcv_t *hrcv)
{
    pthread_mutex_lock(&heard.lock);
    heard.hrcv = hrcv;
    heard.all = heard.ended = 0;
    pthread_mutex_unlock(&heard.lock);
}

static void begin_attempt(int attempt)
{
    pthread_mutex_lock(&heard.lock);
    snprintf(heard.tag, sizeof heard.tag, "try %d", attempt);
    heard.text[0] = '\0';
    heard.data = heard.ends = 0;
    pthread_mutex_unlock(&heard.lock);
}

/* False: not so many yet, perhaps because a receiver has not joined the source. */
static bool came(const int *count, int wanted)
{
    bool ok = false;
    for (int i = 0; i < 20 && !ok; i++) {
        pthread_mutex_lock(&heard.lock);
        ok = *count >= wanted;
        pthread_mutex_unlock(&heard.lock);
        if (!ok) {
            sleep_ms(5);
        }
    }
    return ok;
}

static int text_order(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "topic:a topic:b " to "a b ". */
static void sort_branches(const char *topic, char *out)
{
    char *found[8], copy[1024], *state;
    int n = 0;
    pthread_mutex_lock(&heard.lock);
    strcpy(copy, heard.text);
    pthread_mutex_unlock(&heard.lock);
    for (char *word = strtok_r(copy, " ", &state); word != NULL && n < 8; word = strtok_r(NULL, " ", &state)) {
        CHECK(strncmp(word, topic, strlen(topic)) == 0 && word[strlen(topic)] == ':');
        found[n++] = word + strlen(topic) + 1;
    }
    qsort(found, (size_t)n, sizeof found[0], text_order);
    out[0] = '\0';
    for (int i = 0; i < n; i++) {
        strcat(strcat(out, found[i]), " ");
    }
}

/* Which branches get one message on `topic`, `wanted` of them, and no more: what is sent behind it has come. */
static void branches_of(lbm_src_t *src, const char *topic, int wanted, char *out)
{
    static int attempt;
    bool all = false;
    for (int i = 0; i < HANG_SECONDS * 10 && !all; i++) {
        begin_attempt(++attempt);
        net_send(src, heard.tag);
        all = came(&heard.data, wanted);
    }
    CHECK(all);
    net_send(src, "end");
    pthread_mutex_lock(&heard.lock);
    CHECK(wait_for_count(&heard.changed, &heard.lock, &heard.ends, wanted));
    CHECK(!heard.wrong);
    pthread_mutex_unlock(&heard.lock);
    sort_branches(topic, out);
}

TEST(a_message_goes_to_the_callback_of_each_pattern_that_matches)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context(), *sending = net_context();
    lbm_hypertopic_rcv_t *hrcv;
    char out[64];
    MUST(lbm_hypertopic_rcv_init(&hrcv, ctx, "top/", NULL));
    begin(hrcv);
    MUST(lbm_hypertopic_rcv_add(hrcv, "a/*", on_message, "one"));
    MUST(lbm_hypertopic_rcv_add(hrcv, "a/>", on_message, "rest"));
    MUST(lbm_hypertopic_rcv_add(hrcv, "a/b", on_message, "text"));
    lbm_src_t *both = net_source(sending, "top/a/b"), *deep = net_source(sending, "top/a/b/c");
    branches_of(both, "top/a/b", 3, out);
    CHECK_STR(out, "one rest text ");
    branches_of(deep, "top/a/b/c", 1, out);
    CHECK_STR(out, "rest ");
    MUST(lbm_hypertopic_rcv_delete(hrcv, "a/*", on_message, "one", NULL));
    CHECK_EQ(lbm_hypertopic_rcv_delete(hrcv, "a/*", on_message, "one", NULL), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    branches_of(both, "top/a/b", 2, out);
    CHECK_STR(out, "rest text ");
    lbm_delete_cb_info_t info = {on_deleted, &heard};
    MUST(lbm_hypertopic_rcv_delete(hrcv, "a/>", on_message, "rest", &info));
    CHECK_EQ(heard.ended, 1);
    CHECK_EQ(heard.dispatching, 0);
    CHECK(!heard.wrong);
    MUST(lbm_hypertopic_rcv_destroy(hrcv)); /* with the one that is left */
    MUST(lbm_src_delete(both));
    MUST(lbm_src_delete(deep));
    MUST(lbm_context_delete(sending));
    MUST(lbm_context_delete(ctx));
}

TEST(with_an_event_queue_the_end_of_a_pattern_comes_after_its_events)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context(), *sending = net_context();
    lbm_hypertopic_rcv_t *hrcv;
    lbm_event_queue_t *evq;
    lbm_event_queue_attr_t *attr;
    MUST(lbm_event_queue_attr_create(&attr));
    MUST(lbm_event_queue_attr_str_setopt(attr, "queue_objects_purged_on_close", "0"));
    MUST(lbm_event_queue_create(&evq, NULL, NULL, attr));
    lbm_event_queue_attr_delete(attr);
    MUST(lbm_hypertopic_rcv_init(&hrcv, ctx, NULL, evq));
    begin(hrcv);
    MUST(lbm_hypertopic_rcv_add(hrcv, "q/*", on_message, "q"));
    lbm_src_t *src = net_source(sending, "q/1");
    for (int i = 0; i < HANG_SECONDS * 100 && heard.all == 0; i++) {
        net_send(src, "x");
        while (lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL) > 0) {
        }
        sleep_ms(1);
    }
    CHECK(heard.all > 0);
    lbm_delete_cb_info_t info = {on_deleted, &heard};
    MUST(lbm_hypertopic_rcv_delete(hrcv, "q/*", on_message, "q", &info));
    MUST(lbm_hypertopic_rcv_destroy(hrcv));
    for (int i = 0; i < HANG_SECONDS * 1000 && heard.ended == 0; i++) {
        lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL);
    }
    CHECK_EQ(heard.ended, 1);
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(sending));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_event_queue_delete(evq));
}

TEST(arguments_are_checked)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_hypertopic_rcv_t *hrcv;
    CHECK_EQ(lbm_hypertopic_rcv_init(NULL, ctx, "", NULL), -1);
    CHECK_EQ(lbm_hypertopic_rcv_init(&hrcv, NULL, "", NULL), -1);
    MUST(lbm_hypertopic_rcv_init(&hrcv, ctx, NULL, NULL));
    CHECK_EQ(lbm_hypertopic_rcv_add(hrcv, NULL, on_message, NULL), -1);
    CHECK_EQ(lbm_hypertopic_rcv_add(hrcv, "a", NULL, NULL), -1);
    CHECK_EQ(lbm_hypertopic_rcv_add(hrcv, "a/>/b", on_message, NULL), -1);
    CHECK_EQ(lbm_hypertopic_rcv_add(NULL, "a", on_message, NULL), -1);
    CHECK_EQ(lbm_hypertopic_rcv_delete(hrcv, NULL, on_message, NULL, NULL), -1);
    CHECK_EQ(lbm_hypertopic_rcv_destroy(NULL), -1);
    MUST(lbm_hypertopic_rcv_destroy(hrcv));
    MUST(lbm_context_delete(ctx));
}
