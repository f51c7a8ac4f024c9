/* Multicast immediate messages through the public interface: who gets them, the session that comes and goes, what is
 * refused, losses, statistics. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/um_mem.h"

#include "core/um_context.h"
#include "core/um_mim_receiver.h"
#include "core/um_mim_sender.h"
#include "um_test.h"
#include "um_test_log.h"
#include "um_test_net.h"
#include "um_test_rcv.h"
#include "um_test_thread.h"
#include "wire/um_lbmc.h"
#include "wire/um_lbtrm.h"

#define GROUP "224.0.10.9"

static lbm_context_attr_t *mim_attr(void)
{
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "mim_address", GROUP));
    MUST(lbm_context_attr_str_setopt(attr, "transport_lbtrm_source_port_low", "0"));
    MUST(lbm_context_attr_str_setopt(attr, "transport_lbtrm_source_port_high", "0"));
    return attr;
}

static lbm_context_t *mim_context(void)
{
    return net_context_with(mim_attr());
}

static lbm_context_t *mim_context_with(const char *option, const char *value)
{
    lbm_context_attr_t *attr = mim_attr();
    MUST(lbm_context_attr_str_setopt(attr, option, value));
    return net_context_with(attr);
}

static void send_text(lbm_context_t *ctx, const char *topic, const char *text)
{
    MUST(lbm_multicast_immediate_message(ctx, topic, text, strlen(text), LBM_SRC_BLOCK));
}

static int immediate_cb(lbm_context_t *ctx, lbm_msg_t *msg, void *clientd)
{
    (void)ctx;
    return recorder_cb(NULL, msg, clientd);
}

static int source_sessions(lbm_context_t *ctx, lbm_src_transport_stats_t *stats)
{
    int num = stats != NULL ? 1 : 0;
    lbm_context_retrieve_im_src_transport_stats(ctx, &num, sizeof *stats, stats);
    return num;
}

/* ---- who gets them ---- */

TEST(context_receives_none_and_joins_nothing_unless_an_address_is_set)
{
    TEST_NEEDS_NET();
    lbm_context_t *quiet = net_context(), *sender = mim_context(),
                  *off = mim_context_with("mim_incoming_address", "0.0.0.0");
    struct recorder nothing = RECORDER_INIT, all = RECORDER_INIT;
    CHECK(quiet->mim_receiver == NULL && off->mim_receiver == NULL && sender->mim_receiver != NULL);
    CHECK_EQ(source_sessions(sender, NULL), 0);
    MUST(lbm_context_rcv_immediate_msgs(quiet, immediate_cb, &nothing, NULL));
    MUST(lbm_context_rcv_immediate_msgs(sender, immediate_cb, &all, NULL));
    send_text(sender, NULL, "a");
    send_text(off, NULL, "b");
    CHECK(recorder_wait(&all, LBM_MSG_DATA, 2)); /* its own as well: everybody on the group gets them */
    CHECK_EQ(recorder_count(&nothing, LBM_MSG_DATA), 0);
    MUST(lbm_context_delete(quiet));
    MUST(lbm_context_delete(off));
    MUST(lbm_context_delete(sender));
}

TEST(topic_wildcard_and_topicless_messages_reach_the_others_on_the_group)
{
    TEST_NEEDS_NET();
    lbm_context_t *sender = net_context_with(mim_attr()), *hearer = mim_context();
    struct recorder topic = RECORDER_INIT, wild = RECORDER_INIT, bare = RECORDER_INIT, other = RECORDER_INIT;
    lbm_rcv_t *rcv = net_recording_receiver(hearer, "topicName", &topic);
    lbm_wildcard_rcv_t *w;
    MUST(lbm_wildcard_rcv_create(&w, hearer, "^wild", NULL, NULL, recorder_cb, &wild, NULL));
    MUST(lbm_context_rcv_immediate_msgs(hearer, immediate_cb, &bare, NULL));
    MUST(lbm_context_rcv_immediate_topic_msgs(hearer, immediate_cb, &other, NULL));
    send_text(sender, "topicName", "a");
    send_text(sender, "wild.1", "b");
    send_text(sender, NULL, "c");
    send_text(sender, "nobody", "d");
    send_text(sender, "topicName", "e");
    CHECK(recorder_wait(&topic, LBM_MSG_DATA, 2));
    CHECK(recorder_reads(&topic, "0=a 4=e "));
    CHECK(recorder_reads(&wild, "1=b "));
    CHECK(recorder_reads(&bare, "2=c "));
    CHECK(recorder_reads(&other, "3=d "));
    CHECK_STR(topic.topic, "topicName");
    CHECK_EQ(topic.flags, LBM_MSG_FLAG_IMMEDIATE);
    CHECK_EQ(bare.flags, LBM_MSG_FLAG_IMMEDIATE | LBM_MSG_FLAG_TOPICLESS);
    char group[64];
    unsigned port, session, destination;
    CHECK_EQ(sscanf(topic.source, "LBTRM:127.0.0.1:%u:%8x:%63[0-9.]:%u", &port, &session, group, &destination), 4);
    CHECK_STR(group, GROUP);
    CHECK_EQ(destination, 14401);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_wildcard_rcv_delete(w));
    MUST(lbm_context_delete(sender));
    MUST(lbm_context_delete(hearer));
}

TEST(message_has_a_largest_size_and_a_topic_its_own)
{
    TEST_NEEDS_NET();
    static const char data[UM_MIM_MESSAGE_MAX + 1];
    char topic[248];
    lbm_context_t *ctx = mim_context();
    struct recorder all = RECORDER_INIT;
    memset(topic, 't', sizeof topic);
    topic[246] = '\0';
    MUST(lbm_context_rcv_immediate_topic_msgs(ctx, immediate_cb, &all, NULL));
    MUST(lbm_multicast_immediate_message(ctx, topic, data, UM_MIM_MESSAGE_MAX, 0));
    MUST(lbm_multicast_immediate_message(ctx, topic, NULL, 0, LBM_MSG_FLUSH));
    CHECK(recorder_wait(&all, LBM_MSG_DATA, 2));
    CHECK_EQ(all.bytes, UM_MIM_MESSAGE_MAX);
    CHECK_STR(all.topic, topic);
    CHECK_EQ(lbm_multicast_immediate_message(ctx, NULL, data, sizeof data, 0), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_CONTAINS(lbm_errmsg(), "length 7867: must be at most 7866");
    topic[246] = 't';
    topic[247] = '\0';
    CHECK_EQ(lbm_multicast_immediate_message(ctx, topic, data, 1, 0), -1);
    CHECK_EQ(lbm_multicast_immediate_message(ctx, NULL, NULL, 1, 0), -1);
    CHECK_EQ(lbm_multicast_immediate_message(NULL, NULL, data, 1, 0), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    MUST(lbm_context_delete(ctx));
}

TEST(message_larger_than_a_datagram_comes_whole_or_in_pieces_as_the_option_says)
{
    TEST_NEEDS_NET();
    static const char data[3000];
    static const char *const ordered[] = {"1", "0"};
    for (int i = 0; i < 2; i++) {
        lbm_context_attr_t *attr = mim_attr();
        MUST(lbm_context_attr_str_setopt(attr, "transport_lbtrm_source_datagram_max_size", "1400"));
        MUST(lbm_context_attr_str_setopt(attr, "mim_ordered_delivery", ordered[i]));
        lbm_context_t *ctx = net_context_with(attr);
        struct recorder all = RECORDER_INIT;
        MUST(lbm_context_rcv_immediate_topic_msgs(ctx, immediate_cb, &all, NULL));
        MUST(lbm_multicast_immediate_message(ctx, "t", data, sizeof data, 0));
        CHECK(recorder_wait(&all, LBM_MSG_DATA, i == 0 ? 1 : 3));
        CHECK_EQ(all.bytes, sizeof data);
        CHECK_EQ(all.sqn, 2);
        MUST(lbm_context_delete(ctx));
    }
}

/* ---- the session ---- */

static bool session_goes(lbm_context_t *ctx)
{
    for (int i = 0; i < HANG_SECONDS * 1000; i++) {
        if (source_sessions(ctx, NULL) == 0) {
            return true;
        }
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return false;
}

TEST(session_ends_after_the_deletion_timeout_and_the_next_send_opens_another)
{
    TEST_NEEDS_NET();
    lbm_context_t *sender = mim_context_with("mim_src_deletion_timeout", "50"), *hearer = mim_context();
    struct recorder all = RECORDER_INIT;
    char first[128];
    MUST(lbm_context_rcv_immediate_msgs(hearer, immediate_cb, &all, NULL));
    send_text(sender, NULL, "a");
    CHECK(recorder_wait(&all, LBM_MSG_DATA, 1));
    memcpy(first, all.source, sizeof first);
    CHECK(session_goes(sender));
    send_text(sender, NULL, "b");
    CHECK(recorder_wait(&all, LBM_MSG_DATA, 2));
    CHECK(recorder_reads(&all, "0=a 0=b "));
    CHECK(strcmp(first, all.source) != 0);
    MUST(lbm_context_delete(sender));
    MUST(lbm_context_delete(hearer));
}

TEST(statistics_of_its_sessions_are_those_of_immediate_messages_alone)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = mim_context();
    struct recorder all = RECORDER_INIT;
    lbm_src_transport_stats_t src_stats;
    lbm_rcv_transport_stats_t rcv_stats;
    int num = 1;
    MUST(lbm_context_rcv_immediate_msgs(ctx, immediate_cb, &all, NULL));
    for (int i = 0; i < 3; i++) {
        send_text(ctx, NULL, "a");
    }
    CHECK(recorder_wait(&all, LBM_MSG_DATA, 3));
    CHECK_EQ(source_sessions(ctx, &src_stats), 1);
    CHECK_EQ(src_stats.type, LBM_TRANSPORT_STAT_LBTRM);
    CHECK_EQ(src_stats.transport.lbtrm.msgs_sent, 3);
    CHECK_STR(src_stats.source, all.source);
    MUST(lbm_context_retrieve_im_rcv_transport_stats(ctx, &num, sizeof rcv_stats, &rcv_stats));
    CHECK_EQ(num, 1);
    CHECK_EQ(rcv_stats.transport.lbtrm.lbm_msgs_rcved, 3);
    CHECK_STR(rcv_stats.source, all.source);
    num = 0;
    CHECK_EQ(lbm_context_retrieve_im_rcv_transport_stats(ctx, &num, sizeof rcv_stats, NULL), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(num, 1);
    num = 1;
    MUST(lbm_context_retrieve_src_transport_stats(ctx, &num, &src_stats));
    CHECK_EQ(num, 0);
    num = 1;
    MUST(lbm_context_retrieve_rcv_transport_stats(ctx, &num, &rcv_stats));
    CHECK_EQ(num, 0);
    MUST(lbm_context_reset_im_src_transport_stats(ctx));
    MUST(lbm_context_reset_im_rcv_transport_stats(ctx));
    CHECK_EQ(source_sessions(ctx, &src_stats), 1);
    CHECK_EQ(src_stats.transport.lbtrm.msgs_sent, 0);
    MUST(lbm_context_delete(ctx));
}

TEST(source_that_names_the_group_and_port_shares_no_session_with_it)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = mim_context();
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    lbm_src_transport_stats_t stats;
    int num = 1;
    send_text(ctx, NULL, "a");
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", "lbt-rm"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_lbtrm_multicast_address", GROUP));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_lbtrm_destination_port", "14401"));
    MUST(lbm_src_topic_alloc(&topic, ctx, "t", attr));
    MUST(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL));
    lbm_src_topic_attr_delete(attr);
    net_send(src, "x");
    MUST(lbm_context_retrieve_src_transport_stats(ctx, &num, &stats));
    CHECK_EQ(num, 1);
    CHECK_EQ(stats.transport.lbtrm.msgs_sent, 1);
    CHECK_EQ(source_sessions(ctx, &stats), 1);
    CHECK_EQ(stats.transport.lbtrm.msgs_sent, 1);
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

/* ---- sends that cannot go at once ---- */

struct wakeups {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int count, flags;
};

static int wakeup_cb(lbm_context_t *ctx, int event, void *ed, void *clientd)
{
    struct wakeups *wakeups = clientd;
    (void)ctx;
    pthread_mutex_lock(&wakeups->lock);
    if (event == LBM_SRC_EVENT_WAKEUP) {
        wakeups->count++;
        wakeups->flags |= ((lbm_src_event_wakeup_t *)ed)->flags;
    }
    pthread_cond_broadcast(&wakeups->changed);
    pthread_mutex_unlock(&wakeups->lock);
    return 0;
}

/* So slow that a second message of 2000 bytes waits for seconds. */
static lbm_context_t *slow_context(struct wakeups *wakeups, lbm_event_queue_t *evq)
{
    const lbm_context_src_event_func_t function = {.func = wakeup_cb, .evq = evq, .clientd = wakeups};
    lbm_context_attr_t *attr = mim_attr();
    MUST(lbm_context_attr_str_setopt(attr, "transport_lbtrm_data_rate_limit", "100000"));
    MUST(lbm_context_attr_setopt(attr, "source_event_function", (void *)&function, sizeof function));
    return net_context_with(attr);
}

static void fill_up(lbm_context_t *ctx)
{
    static const char data[2000];
    int rc = 0;
    for (int i = 0; i < 1000 && rc == 0; i++) {
        rc = lbm_multicast_immediate_message(ctx, NULL, data, sizeof data, LBM_SRC_NONBLOCK);
    }
    CHECK_EQ(rc, -1);
    CHECK_EQ(lbm_errnum(), LBM_EWOULDBLOCK);
}

TEST(nonblocking_send_beyond_the_rate_limit_is_refused_and_the_context_hears_when_it_may_go_on)
{
    TEST_NEEDS_NET();
    struct wakeups wakeups = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    lbm_context_t *ctx = slow_context(&wakeups, NULL);
    fill_up(ctx);
    pthread_mutex_lock(&wakeups.lock);
    while (wakeups.count == 0) {
        pthread_cond_wait(&wakeups.changed, &wakeups.lock);
    }
    CHECK_EQ(wakeups.flags, LBM_SRC_EVENT_WAKEUP_FLAG_MIM);
    pthread_mutex_unlock(&wakeups.lock);
    MUST(lbm_context_delete(ctx));
}

TEST(wakeups_go_through_the_event_queue_of_the_option)
{
    TEST_NEEDS_NET();
    struct wakeups wakeups = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    lbm_event_queue_t *evq;
    MUST(lbm_event_queue_create(&evq, NULL, NULL, NULL));
    lbm_context_t *ctx = slow_context(&wakeups, evq);
    fill_up(ctx);
    while (wakeups.count == 0) {
        MUST(lbm_event_dispatch(evq, 100));
    }
    CHECK_EQ(wakeups.flags, LBM_SRC_EVENT_WAKEUP_FLAG_MIM);
    fill_up(ctx); /* one that nobody takes goes with the context */
    MUST(lbm_context_delete(ctx));
    MUST(lbm_event_queue_delete(evq));
}

struct blocked {
    lbm_context_t *ctx;
    atomic_int tid, sent;
    int rc, error;
};

static void *send_until_refused(void *arg)
{
    static const char data[2000];
    struct blocked *blocked = arg;
    blocked->tid = um_test_thread_id();
    while ((blocked->rc = lbm_multicast_immediate_message(blocked->ctx, NULL, data, sizeof data, LBM_SRC_BLOCK)) == 0) {
        blocked->sent++;
    }
    blocked->error = lbm_errnum();
    return NULL;
}

TEST(thread_that_waits_in_a_send_returns_when_the_context_is_deleted)
{
    TEST_NEEDS_NET();
    struct wakeups wakeups = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct blocked blocked = {.ctx = slow_context(&wakeups, NULL)};
    pthread_t thread;
    fill_up(blocked.ctx);
    pthread_create(&thread, NULL, send_until_refused, &blocked);
    int before;
    do { /* until it waits: not for long, the rate limit lets it go on */
        before = blocked.sent;
        nanosleep(&(struct timespec){0, 20000000}, NULL);
    } while (blocked.tid == 0 || !um_test_thread_sleeps(blocked.tid) || blocked.sent != before);
    MUST(lbm_context_delete(blocked.ctx));
    pthread_join(thread, NULL);
    CHECK_EQ(blocked.rc, -1);
    CHECK_EQ(blocked.error, LBM_EINVAL);
}

static int answering_cb(lbm_context_t *ctx, lbm_msg_t *msg, void *clientd)
{
    atomic_int *rc = clientd;
    if (msg->topic_name[0] == '\0') {
        *rc = lbm_multicast_immediate_message(ctx, "answer", "y", 1, LBM_SRC_BLOCK);
    }
    return 0;
}

TEST(callback_of_the_context_may_send_the_first_one)
{
    TEST_NEEDS_NET();
    lbm_context_t *asker = mim_context(), *answerer = mim_context();
    struct recorder answers = RECORDER_INIT;
    atomic_int rc = -2;
    MUST(lbm_context_rcv_immediate_topic_msgs(asker, immediate_cb, &answers, NULL));
    MUST(lbm_context_rcv_immediate_msgs(answerer, answering_cb, &rc, NULL));
    send_text(asker, NULL, "x");
    bool came = recorder_wait(&answers, LBM_MSG_DATA, 1);
    MUST(lbm_context_delete(asker));
    MUST(lbm_context_delete(answerer)); /* the callback has returned */
    CHECK(came && rc == 0);
}

TEST(sequential_context_sends_and_receives)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = mim_context_with("operational_mode", "sequential");
    struct recorder all = RECORDER_INIT;
    MUST(lbm_context_rcv_immediate_msgs(ctx, immediate_cb, &all, NULL));
    send_text(ctx, NULL, "a");
    for (int i = 0; i < 3000 && recorder_count(&all, LBM_MSG_DATA) == 0; i++) {
        MUST(lbm_context_process_events(ctx, 10));
    }
    CHECK(recorder_reads(&all, "0=a "));
    MUST(lbm_context_delete(ctx));
}

/* ---- requests ---- */

static int on_response(lbm_request_t *req, lbm_msg_t *msg, void *clientd)
{
    (void)req;
    return recorder_cb(NULL, msg, clientd);
}

static int responder_cb(lbm_context_t *ctx, lbm_msg_t *msg, void *clientd)
{
    (void)ctx;
    if (msg->type == LBM_MSG_REQUEST && msg->response != NULL) {
        lbm_send_response(msg->response, "answer", 6, LBM_SRC_NONBLOCK);
    }
    return recorder_cb(NULL, msg, clientd);
}

TEST(request_is_answered_by_everybody_who_hears_it)
{
    TEST_NEEDS_NET();
    lbm_context_t *asker = mim_context(), *first = mim_context(), *second = mim_context();
    struct recorder requests[2] = {RECORDER_INIT, RECORDER_INIT}, responses = RECORDER_INIT;
    lbm_request_t *req;
    MUST(lbm_context_rcv_immediate_topic_msgs(first, responder_cb, &requests[0], NULL));
    MUST(lbm_context_rcv_immediate_msgs(second, responder_cb, &requests[1], NULL));
    MUST(lbm_multicast_immediate_request(&req, asker, "t", "ask", 3, on_response, &responses, NULL, LBM_SRC_BLOCK));
    CHECK(recorder_wait(&responses, LBM_MSG_RESPONSE, 1));
    MUST(lbm_request_delete(req));
    MUST(lbm_multicast_immediate_request(&req, asker, NULL, "ask", 3, on_response, &responses, NULL, LBM_SRC_BLOCK));
    CHECK(recorder_wait(&responses, LBM_MSG_RESPONSE, 2));
    CHECK_EQ(responses.bytes, 12);
    MUST(lbm_request_delete(req));
    MUST(lbm_context_delete(asker));
    MUST(lbm_context_delete(first));
    MUST(lbm_context_delete(second));
}

TEST(request_arrives_as_one_and_its_mistakes_leave_none)
{
    TEST_NEEDS_NET();
    lbm_context_t *asker = mim_context(), *hearer = mim_context();
    struct recorder requests = RECORDER_INIT, responses = RECORDER_INIT;
    lbm_request_t *req, *none = (lbm_request_t *)&none;
    MUST(lbm_context_rcv_immediate_topic_msgs(hearer, immediate_cb, &requests, NULL));
    MUST(lbm_multicast_immediate_request(&req, asker, "t", "ask", 3, on_response, &responses, NULL, LBM_SRC_BLOCK));
    CHECK(req != NULL && recorder_wait(&requests, LBM_MSG_REQUEST, 1));
    CHECK_EQ(requests.bytes, 3);
    CHECK_STR(requests.topic, "t");
    CHECK_EQ(requests.flags, LBM_MSG_FLAG_IMMEDIATE);
    MUST(lbm_request_delete(req));
    CHECK_EQ(lbm_multicast_immediate_request(&none, asker, "t", "ask", 3, NULL, NULL, NULL, 0), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK(none == (lbm_request_t *)&none); /* untouched, as lbm.h says */
    CHECK_EQ(lbm_multicast_immediate_request(NULL, asker, "t", "ask", 3, on_response, NULL, NULL, 0), -1);
    CHECK_EQ(lbm_multicast_immediate_request(&none, asker, "", "ask", 3, on_response, NULL, NULL, 0), -1);
    MUST(lbm_context_delete(asker));
    MUST(lbm_context_delete(hearer));
}

/* ---- losses ---- */

static struct {
    pthread_mutex_t lock;
    int count;
    char source[128];
} lost = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int loss_cb(const char *source, lbm_uint_t sqn, void *clientd)
{
    pthread_mutex_lock(&lost.lock);
    lost.count++;
    snprintf(lost.source, sizeof lost.source, "%s", source);
    pthread_mutex_unlock(&lost.lock);
    return clientd == &lost ? 0 : -1;
}

static int losses(void)
{
    pthread_mutex_lock(&lost.lock);
    int count = lost.count;
    pthread_mutex_unlock(&lost.lock);
    return count;
}

/* Those behind a gap wait for their turn, and are still for their topic. */
TEST(what_the_network_loses_is_repaired_and_comes_in_order)
{
    TEST_NEEDS_NET();
    enum { MESSAGES = 500 };
    lbm_context_t *sender = mim_context(), *hearer;
    lbm_context_attr_t *attr = mim_attr();
    struct recorder even = RECORDER_INIT, odd = RECORDER_INIT;
    MUST(lbm_context_attr_str_setopt(attr, "mim_nak_initial_backoff_interval", "5"));
    MUST(lbm_context_attr_str_setopt(attr, "mim_nak_backoff_interval", "20"));
    hearer = net_context_with(attr);
    lbm_rcv_t *even_rcv = net_recording_receiver(hearer, "even", &even);
    lbm_rcv_t *odd_rcv = net_recording_receiver(hearer, "odd", &odd);
    send_text(sender, "even", "0");
    CHECK(recorder_wait(&even, LBM_MSG_DATA, 1));
    lbm_set_lbtrm_loss_rate(10);
    for (int i = 1; i < MESSAGES; i++) {
        send_text(sender, i % 2 == 0 ? "even" : "odd", "x");
        if (i % 50 == 0) {
            nanosleep(&(struct timespec){0, 1000000}, NULL); /* several datagrams of the reader */
        }
    }
    bool came = recorder_wait(&even, LBM_MSG_DATA, MESSAGES / 2) && recorder_wait(&odd, LBM_MSG_DATA, MESSAGES / 2);
    lbm_set_lbtrm_loss_rate(0);
    CHECK(came);
    CHECK_EQ(recorder_count(&even, LBM_MSG_DATA), MESSAGES / 2);
    CHECK_EQ(recorder_count(&odd, LBM_MSG_DATA), MESSAGES / 2);
    CHECK_EQ(even.sqn, MESSAGES - 2);
    CHECK_EQ(odd.sqn, MESSAGES - 1);
    MUST(lbm_rcv_delete(even_rcv));
    MUST(lbm_rcv_delete(odd_rcv));
    MUST(lbm_context_delete(sender));
    MUST(lbm_context_delete(hearer));
}

TEST(what_cannot_be_repaired_is_told_to_the_loss_function)
{
    TEST_NEEDS_NET();
    const lbm_mim_unrecloss_func_t function = {.func = loss_cb, .clientd = &lost};
    lbm_context_attr_t *attr = mim_attr();
    struct recorder all = RECORDER_INIT;
    lost.count = 0;
    MUST(lbm_context_attr_str_setopt(attr, "mim_send_naks", "0"));
    MUST(lbm_context_attr_str_setopt(attr, "mim_nak_generation_interval", "20"));
    MUST(lbm_context_attr_setopt(attr, "mim_unrecoverable_loss_function", (void *)&function, sizeof function));
    lbm_context_t *sender = mim_context(), *hearer = net_context_with(attr);
    MUST(lbm_context_rcv_immediate_msgs(hearer, immediate_cb, &all, NULL));
    send_text(sender, NULL, "0");
    CHECK(recorder_wait(&all, LBM_MSG_DATA, 1));
    lbm_set_lbtrm_loss_rate(100);
    send_text(sender, NULL, "1");
    for (int i = 0; i < HANG_SECONDS * 1000 && losses() == 0;
         i++) { /* until it was lost, and others after it were not */
        lbm_set_lbtrm_loss_rate(i % 20 == 10 ? 0 : 100);
        send_text(sender, NULL, "2");
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    lbm_set_lbtrm_loss_rate(0);
    MUST(lbm_context_delete(sender));
    MUST(lbm_context_delete(hearer)); /* no callback runs any more */
    CHECK(lost.count > 0);
    CHECK_STR(lost.source, all.source);
}

TEST(what_cannot_be_repaired_is_told_as_messages_too)
{
    TEST_NEEDS_NET();
    lbm_context_attr_t *attr = mim_attr();
    struct recorder all = RECORDER_INIT, losses_told = RECORDER_INIT;
    MUST(lbm_context_attr_str_setopt(attr, "mim_send_naks", "0"));
    MUST(lbm_context_attr_str_setopt(attr, "mim_nak_generation_interval", "20"));
    lbm_context_t *sender = mim_context(), *hearer = net_context_with(attr);
    MUST(lbm_context_rcv_immediate_msgs(hearer, immediate_cb, &all, NULL));
    MUST(um_immediate_loss(hearer, immediate_cb, &losses_told));
    send_text(sender, NULL, "0");
    CHECK(recorder_wait(&all, LBM_MSG_DATA, 1));
    lbm_set_lbtrm_loss_rate(100);
    send_text(sender, NULL, "1");
    for (int i = 0; i < HANG_SECONDS * 1000 && recorder_count(&losses_told, LBM_MSG_UNRECOVERABLE_LOSS) == 0; i++) {
        lbm_set_lbtrm_loss_rate(i % 20 == 10 ? 0 : 100);
        send_text(sender, NULL, "2");
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    lbm_set_lbtrm_loss_rate(0);
    MUST(um_immediate_loss(hearer, NULL, NULL));
    CHECK_EQ(um_immediate_loss(NULL, immediate_cb, NULL), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    MUST(lbm_context_delete(sender));
    MUST(lbm_context_delete(hearer));
    CHECK(losses_told.counts[LBM_MSG_UNRECOVERABLE_LOSS] > 0);
    CHECK_EQ(losses_told.counts[LBM_MSG_DATA], 0);
    CHECK_EQ(all.counts[LBM_MSG_UNRECOVERABLE_LOSS], 0);
    CHECK_STR(losses_told.source, all.source);
    CHECK_STR(losses_told.topic, "");
}

/* ---- strangers ---- */

struct forger {
    int fd;
    struct sockaddr_in to;
};

static void forger_open(struct forger *forger)
{
    struct ip_mreqn via = {.imr_address.s_addr = htonl(INADDR_LOOPBACK)};
    forger->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    forger->to =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(14401), .sin_addr.s_addr = inet_addr(GROUP)};
    if (forger->fd < 0 || setsockopt(forger->fd, IPPROTO_IP, IP_MULTICAST_IF, &via, sizeof via) != 0) {
        abort();
    }
}

static void forger_put(const struct forger *forger, const uint8_t *bytes, size_t len)
{
    if (sendto(forger->fd, bytes, len, 0, (const struct sockaddr *)&forger->to, sizeof forger->to) != (ssize_t)len) {
        abort();
    }
}

static void forge_sm(const struct forger *forger, uint32_t session_id)
{
    uint8_t packet[UM_LBTRM_SM_LEN];
    const struct um_lbtrm_session session = {14390, session_id};
    forger_put(forger, packet, um_lbtrm_put_sm(packet, &session, 0, 5, 0, 3));
}

struct count_call {
    lbm_context_t *ctx;
    struct um_mim_receiver_counts counts;
};

static int count_on_loop(void *arg)
{
    struct count_call *call = arg;
    um_mim_receiver_counts(call->ctx->mim_receiver, &call->counts);
    return 0;
}

static struct um_mim_receiver_counts counts_of(lbm_context_t *ctx)
{
    struct count_call call = {.ctx = ctx};
    MUST(um_loop_call(ctx->loop, count_on_loop, &call));
    return call.counts;
}

/* A few at a time, so that the socket holds them and the second has room for them. */
static void forge_many(const struct forger *forger, lbm_context_t *ctx, uint32_t first, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct um_mim_receiver_counts before = counts_of(ctx);
        forge_sm(forger, first + i);
        for (int turn = 0; turn < 1000; turn++) {
            struct um_mim_receiver_counts now = counts_of(ctx);
            if (now.unproved != before.unproved || now.replaced != before.replaced || now.refused != before.refused) {
                break;
            }
            nanosleep(&(struct timespec){0, 100000}, NULL);
        }
    }
}

TEST(x1_senders_that_send_nothing_are_bounded_and_take_no_genuine_ones_place)
{
    TEST_NEEDS_NET();
    lbm_context_t *sender = mim_context(), *hearer = mim_context();
    struct recorder all = RECORDER_INIT;
    struct forger forger;
    MUST(lbm_context_rcv_immediate_msgs(hearer, immediate_cb, &all, NULL));
    send_text(sender, NULL, "a");
    CHECK(recorder_wait(&all, LBM_MSG_DATA, 1));
    forger_open(&forger);
    forge_many(&forger, hearer, 1, UM_MIM_UNPROVED_MAX + 50);
    struct um_mim_receiver_counts counts = counts_of(hearer);
    CHECK_EQ(counts.senders, 1);
    CHECK(counts.unproved <= UM_MIM_UNPROVED_MAX && counts.senders + counts.unproved <= UM_MIM_PER_ADDRESS_MAX);
    CHECK(counts.replaced > 0);
    send_text(sender, NULL, "b");
    CHECK(recorder_wait(&all, LBM_MSG_DATA, 2));
    CHECK(recorder_reads(&all, "0=a 1=b "));
    close(forger.fd);
    MUST(lbm_context_delete(sender));
    MUST(lbm_context_delete(hearer));
}

TEST(m3_messages_of_sources_on_the_group_are_no_immediate_ones)
{
    TEST_NEEDS_NET();
    lbm_context_t *hearer = mim_context();
    struct recorder all = RECORDER_INIT;
    struct forger forger;
    uint8_t packet[64];
    const struct um_lbtrm_session session = {14390, 77};
    MUST(lbm_context_rcv_immediate_msgs(hearer, immediate_cb, &all, NULL));
    forger_open(&forger);
    size_t len = um_lbtrm_put_data(packet, &session, 0, 0, 3, false);
    um_lbmc_put_data_hdr(packet + len, UM_LBMC_HDR_DATA, 16, 0, 0);
    memset(packet + len + 12, 'x', 4);
    forger_put(&forger, packet, len + 16);
    for (int i = 0; i < HANG_SECONDS * 1000 && counts_of(hearer).foreign == 0; i++) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    CHECK_EQ(counts_of(hearer).foreign, 1);
    um_context_stats_t stats;
    MUST(um_context_stats(hearer, &stats));
    CHECK_EQ(stats.mim_foreign, 1);
    CHECK_EQ(counts_of(hearer).senders, 0);
    CHECK_EQ(recorder_count(&all, LBM_MSG_DATA), 0);
    close(forger.fd);
    MUST(lbm_context_delete(hearer));
}

TEST(sender_that_fell_silent_is_forgotten)
{
    TEST_NEEDS_NET();
    lbm_context_t *sender = mim_context(), *hearer = mim_context_with("mim_activity_timeout", "50");
    struct recorder all = RECORDER_INIT;
    MUST(lbm_context_rcv_immediate_msgs(hearer, immediate_cb, &all, NULL));
    send_text(sender, NULL, "a");
    CHECK(recorder_wait(&all, LBM_MSG_DATA, 1));
    MUST(lbm_context_delete(sender));
    for (int i = 0; i < HANG_SECONDS * 1000 && counts_of(hearer).ended == 0; i++) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    CHECK(counts_of(hearer).ended > 0);
    /* A sender that was late by its time has ended once before, and is a new one. */
    for (int i = 0; i < HANG_SECONDS * 1000 && counts_of(hearer).senders + counts_of(hearer).unproved > 0; i++) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    um_context_stats_t stats;
    MUST(um_context_stats(hearer, &stats));
    CHECK(stats.mim_ended > 0);
    CHECK_EQ(stats.mim_senders, 0);
    CHECK_EQ(counts_of(hearer).senders + counts_of(hearer).unproved, 0);
    MUST(lbm_context_delete(hearer));
}

/* ---- failures ---- */

static atomic_long allocations_left;

static bool fail_later(size_t size)
{
    return atomic_fetch_sub(&allocations_left, 1) == 0;
}

/* Each allocation of a creation, a send and a delivery fails once: an error, or a message that does not come. */
TEST(every_allocation_may_fail)
{
    TEST_NEEDS_NET();
    bool reached = true;
    for (long n = 0; reached && n < 2000; n += 1 + n / 40) {
        lbm_context_attr_t *attr = mim_attr();
        lbm_context_t *ctx = NULL;
        MUST(lbm_context_attr_str_setopt(attr, "operational_mode", "sequential"));
        atomic_store(&allocations_left, n);
        um_mem_set_fail_hook(fail_later);
        if (lbm_context_create(&ctx, attr, NULL, NULL) == 0) {
            for (int i = 0; i < 3; i++) {
                lbm_multicast_immediate_message(ctx, "t", "x", 1, LBM_SRC_NONBLOCK);
                lbm_context_process_events(ctx, 1);
            }
        }
        um_mem_set_fail_hook(NULL);
        reached = atomic_load(&allocations_left) < 0;
        if (ctx != NULL) {
            struct recorder all = RECORDER_INIT; /* the next one comes */
            MUST(lbm_context_rcv_immediate_msgs(ctx, immediate_cb, &all, NULL));
            for (int i = 0; i < 3000 && recorder_count(&all, LBM_MSG_DATA) == 0; i++) {
                MUST(lbm_multicast_immediate_message(ctx, NULL, "y", 1, LBM_SRC_NONBLOCK));
                MUST(lbm_context_process_events(ctx, 5));
            }
            CHECK(recorder_count(&all, LBM_MSG_DATA) > 0);
            MUST(lbm_context_delete(ctx));
        }
        lbm_context_attr_delete(attr);
    }
}
