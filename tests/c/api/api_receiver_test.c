/* Receiver topics, receivers, wildcard receivers and messages as an application sees them, through the public headers
 * only. */
#include "um_test.h"

#include <stdatomic.h>

#include <lbm/lbm.h>
#include <lbm/um.h>

#include "um_test_log.h"
#include "um_test_rcv.h"

static int ignore(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    return 0;
}

/* ---- topics ---- */

static lbm_rcv_topic_attr_t *receiver_attr(const char *option, const char *value)
{
    lbm_rcv_topic_attr_t *attr;
    MUST(lbm_rcv_topic_attr_create(&attr));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, option, value));
    return attr;
}

TEST(a_topic_keeps_the_attributes_of_its_first_lookup_and_says_so)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_rcv_topic_attr_t *first = receiver_attr("ordered_delivery", "0");
    lbm_rcv_topic_attr_t *other = receiver_attr("ordered_delivery", "1");
    lbm_topic_t *topic, *again;
    lbm_rcv_t *rcv;
    watch_log("Core-5688-1793");
    CHECK_EQ(lbm_rcv_topic_lookup(&topic, ctx, "kept", first), 0);
    CHECK_EQ(lbm_rcv_topic_lookup(&again, ctx, "kept", first), 0);
    CHECK(again == topic);
    CHECK_EQ(lbm_rcv_topic_lookup(&again, ctx, "kept", NULL), 0);
    CHECK_EQ(log_hits, 0);
    CHECK_EQ(lbm_rcv_topic_lookup(&again, ctx, "kept", other), 0);
    CHECK(again == topic);
    CHECK_EQ(log_hits, 1);
    CHECK_EQ(log_level, LBM_LOG_WARNING);
    CHECK_CONTAINS(log_line, "topic [kept]: requested receiver attributes ignored");
    /* The objects may go right after the lookup. */
    CHECK_EQ(lbm_rcv_topic_attr_delete(first), 0);
    CHECK_EQ(lbm_rcv_topic_attr_delete(other), 0);
    CHECK_EQ(lbm_rcv_create(&rcv, ctx, topic, ignore, NULL, NULL), 0);
    char text[80];
    size_t len = sizeof text;
    CHECK_EQ(lbm_rcv_str_getopt(rcv, "ordered_delivery", text, &len), 0);
    CHECK_STR(text, "0");
    CHECK_EQ(lbm_rcv_delete(rcv), 0);
    CHECK_EQ(lbm_context_delete(ctx), 0);
    lbm_log(NULL, NULL);
}

TEST(every_option_of_living_objects_can_be_dumped)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_event_queue_t *evq;
    lbm_wildcard_rcv_t *wrcv;
    MUST(lbm_event_queue_create(&evq, NULL, NULL, NULL));
    MUST(lbm_wildcard_rcv_create(&wrcv, ctx, "^none$", NULL, NULL, ignore, NULL, NULL));
    lbm_src_t *src = net_source(ctx, "dump");
    lbm_rcv_t *rcv = net_receiver(ctx, "dump", NULL, ignore, NULL, NULL);
    lbm_config_option_t *opts = calloc(512, sizeof *opts);
    int sizes[5], size;
    sizes[0] = size = lbm_context_attr_option_size();
    CHECK_EQ(lbm_context_dump(ctx, &size, opts), 0);
    CHECK(size > 100 && size <= sizes[0]);
    CHECK_STR(opts[0].type, "context");
    size = lbm_src_topic_attr_option_size();
    CHECK_EQ(lbm_src_topic_dump(src, &size, opts), 0);
    CHECK_STR(opts[0].type, "source");
    size = lbm_rcv_topic_attr_option_size();
    CHECK_EQ(lbm_rcv_topic_dump(rcv, &size, opts), 0);
    CHECK_STR(opts[0].type, "receiver");
    size = lbm_wildcard_rcv_attr_option_size();
    CHECK_EQ(lbm_wildcard_rcv_dump(wrcv, &size, opts), 0);
    CHECK_STR(opts[0].type, "wildcard_receiver");
    size = lbm_event_queue_attr_option_size();
    CHECK_EQ(lbm_event_queue_dump(evq, &size, opts), 0);
    CHECK_STR(opts[0].type, "event_queue");
    CHECK(opts[0].oname[0] != '\0');
    free(opts);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_wildcard_rcv_delete(wrcv));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_event_queue_delete(evq));
}

TEST(options_fixed_at_creation_cannot_be_changed_on_living_objects)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_event_queue_t *evq;
    lbm_wildcard_rcv_t *wrcv;
    MUST(lbm_event_queue_create(&evq, NULL, NULL, NULL));
    MUST(lbm_wildcard_rcv_create(&wrcv, ctx, "^none$", NULL, NULL, ignore, NULL, NULL));
    lbm_src_t *src = net_source(ctx, "fixed");
    lbm_rcv_t *rcv = net_receiver(ctx, "fixed", NULL, ignore, NULL, NULL);
    struct {
        int rc;
        int errnum;
    } results[] = {
        {lbm_context_str_setopt(ctx, "operational_mode", "sequential"), lbm_errnum()},
        {lbm_src_str_setopt(src, "transport", "lbt-rm"), lbm_errnum()},
        {lbm_rcv_str_setopt(rcv, "ordered_delivery", "0"), lbm_errnum()},
        {lbm_wildcard_rcv_str_setopt(wrcv, "pattern_type", "regex"), lbm_errnum()},
        {lbm_event_queue_str_setopt(evq, "queue_cancellation_callbacks_enabled", "1"), lbm_errnum()},
        {lbm_event_queue_str_setopt(evq, "no_such_option", "1"), lbm_errnum()},
    };
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        CHECK_EQ(results[i].rc, -1);
        CHECK_EQ(results[i].errnum, LBM_EINVAL);
    }
    CHECK_EQ(lbm_event_queue_str_setopt(evq, "queue_size_warning", "10"), 0);
    CHECK_EQ(lbm_event_queue_size(evq), 0);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_wildcard_rcv_delete(wrcv));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_event_queue_delete(evq));
}

/* ---- deleting with a cancel callback ---- */

struct cancel {
    atomic_int calls;
    atomic_int dispatch_thread;
    atomic_int messages_after; /* delivered after the cancel callback */
};

static void on_cancel(int dispatch_thrd, void *clientd)
{
    struct cancel *c = clientd;
    atomic_store(&c->dispatch_thread, dispatch_thrd);
    atomic_fetch_add(&c->calls, 1);
}

static int note_late(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct cancel *c = clientd;
    atomic_fetch_add(&c->messages_after, atomic_load(&c->calls));
    return 0;
}

static lbm_event_queue_t *cancelling_queue(void)
{
    lbm_event_queue_t *evq;
    lbm_event_queue_attr_t *attr;
    MUST(lbm_event_queue_attr_create(&attr));
    MUST(lbm_event_queue_attr_str_setopt(attr, "queue_cancellation_callbacks_enabled", "1"));
    MUST(lbm_event_queue_create(&evq, NULL, NULL, attr));
    MUST(lbm_event_queue_attr_delete(attr));
    return evq;
}

TEST(every_delete_with_a_cancel_callback_reports_once)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_event_queue_t *evq = cancelling_queue();
    struct cancel c = {0};
    lbm_event_queue_cancel_cb_info_t info = {evq, on_cancel, &c};
    lbm_topic_t *topic;
    lbm_src_t *src;
    lbm_wildcard_rcv_t *wrcv;
    MUST(lbm_src_topic_alloc(&topic, ctx, "cancelled", NULL));
    MUST(lbm_src_create(&src, ctx, topic, NULL, NULL, evq));
    lbm_rcv_t *rcv = net_receiver(ctx, "cancelled", NULL, note_late, &c, evq);
    MUST(lbm_wildcard_rcv_create(&wrcv, ctx, "^canc", NULL, NULL, note_late, &c, evq));
    MUST(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000));
    for (int i = 0; i < 100; i++) {
        net_send(src, "m");
    }
    CHECK_EQ(lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL), 1);
    CHECK_EQ(lbm_wildcard_rcv_delete_ex(wrcv, &info), 0);
    CHECK_EQ(c.calls, 1);
    CHECK_EQ(c.dispatch_thread, 0);
    c.calls = 0;
    CHECK_EQ(lbm_rcv_delete_ex(rcv, &info), 0);
    CHECK_EQ(c.calls, 1);
    CHECK_EQ(lbm_src_delete_ex(src, &info), 0);
    CHECK_EQ(c.calls, 2);
    while (lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL) > 0) {
    }
    CHECK_EQ(c.messages_after, 0);
    CHECK_EQ(lbm_context_delete_ex(ctx, &info), 0);
    CHECK_EQ(c.calls, 3);
    CHECK_EQ(c.dispatch_thread, 0);
    CHECK_EQ(lbm_event_queue_delete(evq), 0);
}

TEST(a_cancel_callback_without_a_queue_is_refused_and_the_object_lives_on)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct cancel c = {0};
    lbm_event_queue_cancel_cb_info_t info = {NULL, on_cancel, &c};
    lbm_rcv_t *rcv = net_receiver(ctx, "t", NULL, ignore, NULL, NULL);
    CHECK_EQ(lbm_rcv_delete_ex(rcv, &info), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(c.calls, 0);
    CHECK(lbm_context_from_rcv(rcv) == ctx);
    CHECK_EQ(lbm_rcv_delete_ex(rcv, NULL), 0);
    CHECK_EQ(lbm_context_delete(ctx), 0);
}

/* queue_objects_purged_on_close 0: the events stay until they are taken, then they are dropped. */
TEST(unpurged_events_are_dropped_when_dequeued_and_the_report_comes_from_the_dispatcher)
{
    TEST_NEEDS_NET();
    lbm_event_queue_t *evq;
    lbm_event_queue_attr_t *attr;
    MUST(lbm_event_queue_attr_create(&attr));
    MUST(lbm_event_queue_attr_str_setopt(attr, "queue_cancellation_callbacks_enabled", "1"));
    MUST(lbm_event_queue_attr_str_setopt(attr, "queue_objects_purged_on_close", "0"));
    MUST(lbm_event_queue_attr_str_setopt(attr, "queue_size_warning", "1000000"));
    MUST(lbm_event_queue_create(&evq, NULL, NULL, attr));
    MUST(lbm_event_queue_attr_delete(attr));
    lbm_context_t *ctx = net_context();
    struct cancel c = {0};
    lbm_event_queue_cancel_cb_info_t info = {evq, on_cancel, &c};
    lbm_src_t *src = net_source(ctx, "unpurged");
    lbm_rcv_t *rcv = net_receiver(ctx, "unpurged", NULL, note_late, &c, evq);
    MUST(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000));
    for (int i = 0; i < 100; i++) {
        net_send(src, "m");
    }
    for (int i = 0; i < HANG_SECONDS * 1000 && lbm_event_queue_size(evq) < 101; i++) { /* with the BOS */
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    CHECK_EQ(lbm_event_queue_size(evq), 101);
    CHECK_EQ(lbm_rcv_delete_ex(rcv, &info), 0);
    CHECK_EQ(c.calls, 0);
    CHECK_EQ(lbm_event_queue_size(evq), 101);
    CHECK_EQ(lbm_event_dispatch_unblock(evq), 0);
    CHECK_EQ(lbm_event_dispatch(evq, LBM_EVENT_QUEUE_BLOCK), 0);
    CHECK_EQ(c.calls, 1);
    CHECK_EQ(c.dispatch_thread, 1);
    CHECK_EQ(c.messages_after, 0);
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_event_queue_delete(evq));
}

/* ---- wildcard receivers ---- */

static atomic_int created, deleted;

static int on_created(const char *topic, lbm_rcv_topic_attr_t *attr, void *clientd)
{
    atomic_fetch_add(&created, strcmp(topic, "ab1") == 0 && attr != NULL);
    return 0;
}

static int on_deleted(const char *topic, void *clientd)
{
    atomic_fetch_add(&deleted, strcmp(topic, "ab1") == 0);
    return 0;
}

TEST(a_pattern_decides_about_anchors_itself_and_callbacks_come_once_for_each_topic)
{
    TEST_NEEDS_NET();
    created = deleted = 0;
    lbm_context_t *ctx = net_context();
    lbm_wildcard_rcv_attr_t *attr;
    lbm_wildcard_rcv_create_func_t create_func = {on_created, NULL};
    lbm_wildcard_rcv_delete_func_t delete_func = {on_deleted, NULL};
    MUST(lbm_wildcard_rcv_attr_create(&attr));
    MUST(lbm_wildcard_rcv_attr_setopt(attr, "receiver_create_callback", &create_func, sizeof create_func));
    MUST(lbm_wildcard_rcv_attr_setopt(attr, "receiver_delete_callback", &delete_func, sizeof delete_func));
    struct recorder anchored = RECORDER_INIT, anywhere = RECORDER_INIT;
    lbm_wildcard_rcv_t *w1, *w2;
    lbm_src_t *cab1 = net_source(ctx, "cab1");
    lbm_src_t *ab1 = net_source(ctx, "ab1");
    MUST(lbm_wildcard_rcv_create(&w1, ctx, "^ab.*", NULL, attr, recorder_cb, &anchored, NULL));
    MUST(lbm_wildcard_rcv_create(&w2, ctx, "ab", NULL, NULL, recorder_cb, &anywhere, NULL));
    MUST(lbm_wildcard_rcv_attr_delete(attr));
    CHECK(recorder_wait(&anchored, LBM_MSG_BOS, 1));
    CHECK(recorder_wait(&anywhere, LBM_MSG_BOS, 2));
    net_send(cab1, "c");
    net_send(ab1, "a");
    CHECK(recorder_wait(&anywhere, LBM_MSG_DATA, 2));
    CHECK(recorder_wait(&anchored, LBM_MSG_DATA, 1));
    CHECK_EQ(recorder_count(&anchored, LBM_MSG_DATA), 1);
    CHECK_STR(anchored.topic, "ab1");
    CHECK_EQ(created, 1);
    CHECK_EQ(deleted, 0);
    CHECK(lbm_context_from_wildcard_rcv(w1) == ctx);
    CHECK(lbm_event_queue_from_wildcard_rcv(w1) == NULL);
    MUST(lbm_wildcard_rcv_delete(w1));
    CHECK_EQ(deleted, 1);
    MUST(lbm_wildcard_rcv_delete(w2));
    MUST(lbm_src_delete(ab1));
    MUST(lbm_src_delete(cab1));
    MUST(lbm_context_delete(ctx));
}

TEST(old_pattern_types_work_with_a_warning)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_wildcard_rcv_attr_t *attr;
    lbm_wildcard_rcv_t *wrcv;
    char text[80];
    size_t len = sizeof text;
    watch_log("Core-20205-3");
    MUST(lbm_wildcard_rcv_attr_create(&attr));
    MUST(lbm_wildcard_rcv_attr_str_setopt(attr, "pattern_type", "regex"));
    CHECK_EQ(lbm_wildcard_rcv_create(&wrcv, ctx, "^[[:alpha:]]+$", NULL, attr, ignore, NULL, NULL), 0);
    CHECK_EQ(log_hits, 1);
    CHECK_EQ(log_level, LBM_LOG_WARNING);
    CHECK_CONTAINS(log_line, "deprecated");
    CHECK_EQ(lbm_wildcard_rcv_str_getopt(wrcv, "pattern_type", text, &len), 0);
    CHECK_STR(text, "regex");
    MUST(lbm_wildcard_rcv_delete(wrcv));
    MUST(lbm_wildcard_rcv_attr_str_setopt(attr, "pattern_type", "appcb"));
    CHECK_EQ(lbm_wildcard_rcv_create(&wrcv, ctx, "p", NULL, attr, ignore, NULL, NULL), -1); /* no pattern_callback */
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_CONTAINS(lbm_errmsg(), "pattern_callback");
    MUST(lbm_wildcard_rcv_attr_delete(attr));
    MUST(lbm_context_delete(ctx));
    lbm_log(NULL, NULL);
}

/* ---- messages ---- */

struct keeper {
    _Atomic(lbm_msg_t *) kept;
    atomic_int refusals; /* delete of a message that was not retained */
};

static int keep_first(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct keeper *k = clientd;
    if (msg->type == LBM_MSG_DATA && atomic_load(&k->kept) == NULL) {
        if (lbm_msg_delete(msg) == -1 && lbm_errnum() == LBM_EINVAL) {
            atomic_fetch_add(&k->refusals, 1);
        }
        MUST(lbm_msg_retain(msg));
        atomic_store(&k->kept, msg);
    }
    return 0;
}

/* Every documented field of a message that does not apply is 0, NULL or empty. */
static int check_fields(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    atomic_int *wrong = clientd;
    lbm_msg_fragment_info_t info;
    bool bad = msg->response != NULL || msg->properties != NULL || msg->channel_info != NULL ||
               msg->source_clientd != NULL || msg->source[0] == '\0' || msg->flags != 0;
    if (msg->type == LBM_MSG_DATA) {
        bad |= msg->len != 1 || msg->data == NULL || msg->tsp.tv_sec == 0 || msg->hr_timestamp.tv_sec != 0;
    } else {
        bad |= msg->len != 0;
    }
    bad |= lbm_msg_is_fragment(msg) != 0 || lbm_msg_retrieve_fragment_info(msg, &info) != -1 ||
           lbm_errnum() != LBM_EINVAL || lbm_msg_retrieve_gateway_info(msg, NULL) != -1;
    atomic_fetch_add(wrong, bad);
    return 0;
}

TEST(a_message_is_kept_by_retain_alone_and_its_unused_fields_are_empty)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct keeper keeper = {0};
    atomic_int wrong = 0;
    lbm_src_t *src = net_source(ctx, "kept");
    lbm_rcv_t *rcv = net_receiver(ctx, "kept", NULL, keep_first, &keeper, NULL);
    lbm_rcv_t *strict = net_receiver(ctx, "kept", NULL, check_fields, &wrong, NULL);
    struct recorder recorder = RECORDER_INIT;
    lbm_rcv_t *last = net_recording_receiver(ctx, "kept", &recorder);
    MUST(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000));
    net_send(src, "A");
    for (int i = 0; i < 1000; i++) {
        MUST(lbm_src_send(src, "z", 1, LBM_SRC_BLOCK));
    }
    CHECK_EQ(lbm_src_flush(src), 0);
    CHECK(recorder_wait(&recorder, LBM_MSG_DATA, 1001));
    lbm_msg_t *kept = keeper.kept;
    CHECK(kept != NULL);
    CHECK_EQ(kept->len, 1);
    CHECK_EQ(kept->data[0], 'A');
    CHECK_EQ(keeper.refusals, 1);
    CHECK_EQ(lbm_msg_delete(kept), 0);
    MUST(lbm_rcv_delete(last));
    MUST(lbm_rcv_delete(strict));
    MUST(lbm_rcv_delete(rcv));
    CHECK_EQ(wrong, 0);
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

TEST(a_topic_without_messages_gets_the_beginning_and_the_end_of_its_session)
{
    TEST_NEEDS_NET();
    lbm_context_t *sender = net_context(), *ctx = net_context();
    struct recorder a = RECORDER_INIT, b = RECORDER_INIT;
    lbm_src_t *src_a = net_source(sender, "A"), *src_b = net_source(sender, "B");
    lbm_rcv_t *rcv_a = net_recording_receiver(ctx, "A", &a), *rcv_b = net_recording_receiver(ctx, "B", &b);
    CHECK(recorder_wait(&a, LBM_MSG_BOS, 1));
    CHECK(recorder_wait(&b, LBM_MSG_BOS, 1));
    net_send(src_a, "x");
    CHECK(recorder_wait(&a, LBM_MSG_DATA, 1));
    MUST(lbm_src_delete(src_a));
    MUST(lbm_src_delete(src_b));
    CHECK(recorder_wait(&b, LBM_MSG_EOS, 1));
    CHECK(recorder_wait(&a, LBM_MSG_EOS, 1));
    CHECK_STR(b.text, "BOS EOS ");
    MUST(lbm_rcv_delete(rcv_b));
    MUST(lbm_rcv_delete(rcv_a));
    CHECK_EQ(recorder_count(&a, LBM_MSG_EOS), 1); /* deleting a receiver gives no EOS */
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
}

/* ---- every new source, whatever its topic ---- */

static pthread_mutex_t notified_lock = PTHREAD_MUTEX_INITIALIZER;
static char notified_topic[256], notified_source[128];

static int on_new_source(const char *topic, const char *source, void *clientd)
{
    pthread_mutex_lock(&notified_lock);
    snprintf(notified_topic, sizeof notified_topic, "%s", topic);
    snprintf(notified_source, sizeof notified_source, "%s", source);
    pthread_mutex_unlock(&notified_lock);
    return 0;
}

static bool source_notified(const char *includes_index, bool index)
{
    lbm_context_attr_t *attr = net_context_attr();
    lbm_src_notify_func_t func = {on_new_source, NULL};
    MUST(lbm_context_attr_setopt(attr, "resolver_source_notification_function", &func, sizeof func));
    MUST(lbm_context_attr_str_setopt(attr, "source_includes_topic_index", includes_index));
    lbm_context_t *ctx = net_context_with(attr), *sender = net_context();
    notified_topic[0] = '\0';
    lbm_src_t *src = net_source(sender, "noticed");
    bool ok = false;
    for (int i = 0; i < HANG_SECONDS * 1000 && !ok; i++) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
        pthread_mutex_lock(&notified_lock);
        ok = strcmp(notified_topic, "noticed") == 0 && strncmp(notified_source, "TCP:127.0.0.1:", 14) == 0 &&
             (strchr(notified_source, '[') != NULL) == index;
        pthread_mutex_unlock(&notified_lock);
    }
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(sender));
    MUST(lbm_context_delete(ctx));
    return ok;
}

TEST(new_sources_are_notified_without_a_receiver_and_with_an_index_only_if_it_is_wanted)
{
    TEST_NEEDS_NET();
    CHECK(source_notified("1", true));
    CHECK(source_notified("0", false));
}

/* ---- names ---- */

TEST(contexts_of_the_same_name_are_told_apart_with_a_warning)
{
    TEST_NEEDS_NET();
    lbm_context_attr_t *attr = net_context_attr();
    lbm_context_t *first, *second;
    MUST(lbm_context_attr_str_setopt(attr, "context_name", "twin"));
    watch_log("Core-10960-200");
    MUST(lbm_context_create(&first, attr, NULL, NULL));
    CHECK_EQ(log_hits, 0);
    MUST(lbm_context_create(&second, attr, NULL, NULL));
    CHECK_EQ(log_hits, 1);
    CHECK_EQ(log_level, LBM_LOG_WARNING);
    CHECK_CONTAINS(log_line, "\"twin\"");
    MUST(lbm_context_delete(first));
    MUST(lbm_context_delete(second));
    MUST(lbm_context_create(&first, attr, NULL, NULL));
    CHECK_EQ(log_hits, 1);
    MUST(lbm_context_delete(first));
    MUST(lbm_context_attr_delete(attr));
    lbm_log(NULL, NULL);
}

TEST(the_reason_stands_in_the_error_of_a_pattern_however_long)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_wildcard_rcv_t *wrcv = NULL;
    char pattern[4000];
    memset(pattern, '(', sizeof pattern);
    pattern[sizeof pattern - 1] = '\0';
    CHECK_EQ(lbm_wildcard_rcv_create(&wrcv, ctx, pattern, NULL, NULL, ignore, NULL, NULL), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_CONTAINS(lbm_errmsg(), "...\": does not compile: ");
    CHECK(wrcv == NULL);
    CHECK_EQ(lbm_context_delete(ctx), 0);
}
