/* Sources through the public interface: creation rules, events, sends of all
 * forms, live options, statistics, deletion; with receivers in the same process
 * over TCP and multicast resolution on a private loopback network. */
#include <pthread.h>
#include <sys/wait.h>

#include "um_test_rcv.h"

struct seen {
    pthread_mutex_t lock;
    int connects, disconnects, wakeups, numbers;
    lbm_src_event_sequence_number_info_t info;
    char client[64];
    pthread_t thread;
};

static struct seen seen;

static void seen_reset(void)
{
    memset(&seen, 0, sizeof seen);
    pthread_mutex_init(&seen.lock, NULL);
}

static int on_event(lbm_src_t *src, int event, void *ed, void *clientd)
{
    struct seen *s = clientd;
    pthread_mutex_lock(&s->lock);
    s->thread = pthread_self();
    if (event == LBM_SRC_EVENT_CONNECT) {
        snprintf(s->client, sizeof s->client, "%s", (const char *)ed);
        s->connects++;
    } else if (event == LBM_SRC_EVENT_DISCONNECT) {
        s->disconnects++;
    } else if (event == LBM_SRC_EVENT_WAKEUP) {
        s->wakeups += ((lbm_src_event_wakeup_t *)ed)->flags == LBM_SRC_EVENT_WAKEUP_FLAG_NORMAL;
    } else if (event == LBM_SRC_EVENT_SEQUENCE_NUMBER_INFO) {
        s->info = *(lbm_src_event_sequence_number_info_t *)ed;
        s->numbers++;
    }
    pthread_mutex_unlock(&s->lock);
    return 0;
}

static int seen_get(const int *field)
{
    pthread_mutex_lock(&seen.lock);
    int value = *field;
    pthread_mutex_unlock(&seen.lock);
    return value;
}

static bool seen_wait(const int *field, int value)
{
    for (int i = 0; i < HANG_SECONDS * 1000 && seen_get(field) < value; i++) {
        usleep(1000);
    }
    return seen_get(field) >= value;
}

static lbm_src_t *make_source(lbm_context_t *ctx, const char *name, lbm_src_topic_attr_t *attr, lbm_event_queue_t *evq)
{
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_alloc(&topic, ctx, name, attr));
    MUST(lbm_src_create(&src, ctx, topic, on_event, &seen, evq));
    return src;
}

static lbm_src_topic_attr_t *attr_with(const char *name, const char *value)
{
    lbm_src_topic_attr_t *attr;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_tcp_interface", "127.0.0.1"));
    MUST(lbm_src_topic_attr_str_setopt(attr, name, value));
    return attr;
}

TEST(topic_names_have_1_to_246_characters)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_topic_t *topic = NULL;
    char name[248];
    memset(name, 'x', sizeof name);
    name[247] = 0;
    CHECK_EQ(lbm_src_topic_alloc(&topic, ctx, name, NULL), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(lbm_src_topic_alloc(&topic, ctx, "", NULL), -1);
    CHECK_EQ(lbm_src_topic_alloc(&topic, ctx, NULL, NULL), -1);
    CHECK_EQ(lbm_src_topic_alloc(NULL, ctx, "a", NULL), -1);
    CHECK_EQ(lbm_src_topic_alloc(&topic, NULL, "a", NULL), -1);
    CHECK(topic == NULL);
    name[246] = 0;
    CHECK_EQ(lbm_src_topic_alloc(&topic, ctx, name, NULL), 0); /* never used: freed with the context */
    MUST(lbm_context_delete(ctx));
}

TEST(a_topic_object_carries_one_source_of_its_own_context)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context(), *other = net_context();
    lbm_topic_t *topic;
    lbm_src_t *src, *second = NULL;
    MUST(lbm_src_topic_alloc(&topic, ctx, "one", NULL));
    CHECK_EQ(lbm_src_create(&second, other, topic, NULL, NULL, NULL), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    MUST(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL));
    CHECK_EQ(lbm_src_create(&second, ctx, topic, NULL, NULL, NULL), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK(second == NULL);
    CHECK(lbm_topic_from_src(src) == topic);
    CHECK(lbm_context_from_src(src) == ctx);
    CHECK(lbm_event_queue_from_src(src) == NULL);
    CHECK_EQ(lbm_context_delete(ctx), -1); /* a source is left */
    CHECK_EQ(lbm_errnum(), LBM_EOP);
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(other));
}

TEST(other_transports_are_refused_by_name)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_src_topic_attr_t *attr = attr_with("transport", "broker");
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_alloc(&topic, ctx, "rm", attr));
    CHECK_EQ(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL), -1);
    CHECK_EQ(lbm_errnum(), LBM_EOPNOTSUPP);
    CHECK_CONTAINS(lbm_errmsg(), "broker");
    MUST(lbm_src_topic_attr_delete(attr));
    MUST(lbm_context_delete(ctx));
}

TEST(connect_and_disconnect_name_the_client)
{
    TEST_NEEDS_NET();
    seen_reset();
    lbm_context_t *ctx = net_context(), *other = net_context();
    lbm_src_t *src = make_source(ctx, "events", NULL, NULL);
    CHECK_EQ(um_src_receivers(src), 0);
    CHECK_EQ(um_src_wait_receivers(src, 1, 1), -1);
    CHECK_EQ(lbm_errnum(), LBM_ETIMEDOUT);
    struct recorder r = RECORDER_INIT;
    lbm_rcv_t *rcv = net_recording_receiver(other, "events", &r);
    CHECK_EQ(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000), 0);
    CHECK(seen_wait(&seen.connects, 1));
    CHECK_EQ(strncmp(seen.client, "TCP:127.0.0.1:", 14), 0);
    MUST(lbm_src_send(src, "now", 3, LBM_MSG_FLUSH)); /* after CONNECT: reaches the receiver */
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 1));
    CHECK_STR(r.text, "BOS 0=now ");
    MUST(lbm_rcv_delete(rcv));
    CHECK(seen_wait(&seen.disconnects, 1));
    CHECK_EQ(seen.connects, 1);
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(other));
    MUST(lbm_context_delete(ctx));
}

TEST(events_go_through_the_event_queue_of_the_source)
{
    TEST_NEEDS_NET();
    seen_reset();
    lbm_context_t *ctx = net_context(), *other = net_context();
    lbm_event_queue_t *evq;
    MUST(lbm_event_queue_create(&evq, NULL, NULL, NULL));
    lbm_src_t *src = make_source(ctx, "queued", NULL, evq);
    CHECK(lbm_event_queue_from_src(src) == evq);
    struct recorder r = RECORDER_INIT;
    lbm_rcv_t *rcv = net_recording_receiver(other, "queued", &r);
    CHECK_EQ(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000), 0);
    for (int i = 0; i < HANG_SECONDS * 1000 && seen.connects == 0; i++) {
        lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL);
        usleep(1000);
    }
    CHECK_EQ(seen.connects, 1);
    CHECK(pthread_equal(seen.thread, pthread_self()));
    CHECK_EQ(strncmp(seen.client, "TCP:127.0.0.1:", 14), 0);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src)); /* whatever is still queued is dropped */
    while (lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL) > 0) {
    }
    MUST(lbm_event_queue_delete(evq));
    MUST(lbm_context_delete(other));
    MUST(lbm_context_delete(ctx));
}

TEST(sends_of_all_forms_arrive_with_their_numbers)
{
    TEST_NEEDS_NET();
    seen_reset();
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = make_source(ctx, "forms", NULL, NULL);
    struct recorder r = RECORDER_INIT;
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "forms", &r);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    lbm_iovec_t iov[3] = {{"ab", 2}, {"cd", 2}, {"ef", 2}};
    MUST(lbm_src_send(src, "a", 1, 0));
    MUST(lbm_src_sendv(src, iov, 3, 0));
    MUST(lbm_src_sendv(src, iov, 3, LBM_MSG_IOV_GATHER));
    lbm_src_send_ex_info_t info = {.flags =
                                       LBM_SRC_SEND_EX_FLAG_SEQUENCE_NUMBER_INFO | LBM_SRC_SEND_EX_FLAG_UME_CLIENTD,
                                   .ume_msg_clientd = &seen};
    MUST(lbm_src_send_ex(src, "b", 1, 0, &info));
    CHECK_EQ(seen.numbers, 1); /* inside the send */
    CHECK(pthread_equal(seen.thread, pthread_self()));
    CHECK_EQ(seen.info.first_sequence_number, 5);
    CHECK_EQ(seen.info.last_sequence_number, 5);
    CHECK(seen.info.msg_clientd == &seen);
    info.flags = LBM_SRC_SEND_EX_FLAG_SEQUENCE_NUMBER_INFO_FRAGONLY;
    MUST(lbm_src_sendv_ex(src, iov, 2, 0, &info));
    CHECK_EQ(seen.numbers, 1);
    MUST(lbm_src_flush(src));
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 7));
    CHECK_STR(r.text, "BOS 0=a 1=ab 2=cd 3=ef 4=abcdef 5=b 6=abcd ");
    static char big[200000];
    MUST(lbm_src_send_ex(src, big, sizeof big, LBM_MSG_FLUSH, &info));
    CHECK_EQ(seen.numbers, 2);
    CHECK_EQ(seen.info.first_sequence_number, 7);
    CHECK_EQ(seen.info.last_sequence_number, 10);
    MUST(lbm_src_send(src, "end", 3, 0));
    MUST(lbm_flush_all(ctx));
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 9));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

TEST(wrong_arguments_of_sends_are_refused)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = net_source(ctx, "wrong");
    lbm_iovec_t iov[1] = {{NULL, 5}};
    lbm_src_send_ex_info_t info = {.flags = LBM_SRC_SEND_EX_FLAG_PROPERTIES};
    CHECK_EQ(lbm_src_send(NULL, "x", 1, 0), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(lbm_src_send(src, NULL, 1, 0), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(lbm_src_send(src, NULL, 0, 0), 0);
    CHECK_EQ(lbm_src_send(src, "x", (size_t)INT32_MAX + 1, 0), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(lbm_src_send(src, "x", 1, LBM_MSG_BUFF_ALLOC), -1);
    CHECK_EQ(lbm_errnum(), LBM_EOPNOTSUPP);
    CHECK_EQ(lbm_src_send(src, "x", 1, LBM_MSG_END_BATCH), -1);
    CHECK_EQ(lbm_errnum(), LBM_EOP);
    CHECK_EQ(lbm_src_sendv(src, iov, 0, 0), -1);
    CHECK_EQ(lbm_src_sendv(src, NULL, 1, 0), -1);
    CHECK_EQ(lbm_src_sendv(src, iov, 1, 0), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(lbm_src_send_ex(src, "x", 1, 0, &info), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    info.flags = LBM_SRC_SEND_EX_FLAG_CHANNEL;
    CHECK_EQ(lbm_src_send_ex(src, "x", 1, 0, &info), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(lbm_src_flush(NULL), -1);
    CHECK_EQ(lbm_flush_all(NULL), -1);
    CHECK_EQ(lbm_src_delete(NULL), -1);
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

TEST(batching_options_change_while_the_source_lives_and_others_do_not)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = net_source(ctx, "live");
    struct recorder r = RECORDER_INIT;
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "live", &r);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    MUST(lbm_src_str_setopt(src, "implicit_batching_interval", "100000"));
    MUST(lbm_src_send(src, "wait", 4, 0));
    usleep(300000);
    CHECK_EQ(recorder_count(&r, LBM_MSG_DATA), 0);
    size_t one = 1;
    MUST(lbm_src_setopt(src, "implicit_batching_minimum_length", &one, sizeof one));
    MUST(lbm_src_send(src, "go", 2, 0));
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 2));
    char text[100];
    size_t len = sizeof text;
    MUST(lbm_src_str_getopt(src, "implicit_batching_minimum_length", text, &len));
    CHECK_STR(text, "1");
    lbm_ulong_t interval;
    len = sizeof interval;
    MUST(lbm_src_getopt(src, "implicit_batching_interval", &interval, &len));
    CHECK_EQ(interval, 100000);
    CHECK_EQ(lbm_src_str_setopt(src, "transport_tcp_nodelay", "0"), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(lbm_src_str_setopt(src, "no_such_option", "0"), -1);
    int size = lbm_src_topic_attr_option_size();
    lbm_config_option_t *dump = calloc((size_t)size, sizeof *dump);
    MUST(lbm_src_topic_dump(src, &size, dump));
    CHECK(size > 50);
    free(dump);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

TEST(statistics_name_the_session_and_count_its_clients)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context(), *other = net_context();
    lbm_src_t *src = net_source(ctx, "stats");
    lbm_src_transport_stats_t stats;
    MUST(lbm_src_retrieve_transport_stats(src, &stats));
    CHECK_EQ(stats.type, LBM_TRANSPORT_STAT_TCP);
    CHECK_EQ(strncmp(stats.source, "TCP:", 4), 0);
    CHECK(strchr(stats.source, '[') == NULL);
    CHECK_EQ(stats.transport.tcp.num_clients, 0);
    struct recorder r = RECORDER_INIT;
    lbm_rcv_t *rcv = net_recording_receiver(other, "stats", &r);
    CHECK_EQ(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000), 0);
    MUST(lbm_src_retrieve_transport_stats(src, &stats));
    CHECK_EQ(stats.transport.tcp.num_clients, 1);
    MUST(lbm_src_reset_transport_stats(src));
    MUST(lbm_src_retrieve_transport_stats(src, &stats));
    CHECK_EQ(stats.transport.tcp.num_clients, 1); /* a snapshot, not a counter */
    CHECK_EQ(lbm_src_retrieve_transport_stats(src, NULL), -1);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(other));
    MUST(lbm_context_delete(ctx));
}

/* ---- inside callbacks ---- */

static int callback_rc[4], callback_errnum[4], callback_done;
static lbm_topic_t *callback_topic;

static int try_everything(lbm_context_t *ctx, const void *clientd)
{
    lbm_src_t *src = (lbm_src_t *)clientd, *made;
    lbm_topic_t *topic;
    callback_rc[0] = lbm_src_topic_alloc(&topic, ctx, "inside", NULL);
    callback_errnum[0] = lbm_errnum();
    callback_rc[1] = lbm_src_create(&made, ctx, callback_topic, NULL, NULL, NULL);
    callback_errnum[1] = lbm_errnum();
    callback_rc[2] = lbm_src_delete(src);
    callback_errnum[2] = lbm_errnum();
    callback_rc[3] = lbm_src_send(src, "x", 1, LBM_MSG_FLUSH);
    __atomic_store_n(&callback_done, 1, __ATOMIC_RELEASE);
    return 0;
}

TEST(creating_and_deleting_inside_a_callback_is_refused_and_sending_works)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = net_source(ctx, "callback");
    MUST(lbm_src_topic_alloc(&callback_topic, ctx, "callback2", NULL));
    CHECK(lbm_schedule_timer(ctx, try_everything, src, NULL, 1) >= 0);
    for (int i = 0; i < HANG_SECONDS * 1000 && !__atomic_load_n(&callback_done, __ATOMIC_ACQUIRE); i++) {
        usleep(1000);
    }
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(callback_rc[i], -1);
        CHECK_EQ(callback_errnum[i], LBM_EOP);
    }
    CHECK_EQ(callback_rc[3], 0);
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

static int cancelled, cancel_thread;

static void on_cancel(int dispatch_thrd, void *clientd)
{
    cancel_thread = dispatch_thrd;
    cancelled++;
}

TEST(delete_ex_calls_back_when_no_event_of_the_source_is_left)
{
    TEST_NEEDS_NET();
    seen_reset();
    lbm_context_t *ctx = net_context();
    lbm_event_queue_attr_t *qattr;
    lbm_event_queue_t *evq, *plain;
    MUST(lbm_event_queue_attr_create(&qattr));
    MUST(lbm_event_queue_attr_str_setopt(qattr, "queue_cancellation_callbacks_enabled", "1"));
    MUST(lbm_event_queue_create(&evq, NULL, NULL, qattr));
    MUST(lbm_event_queue_create(&plain, NULL, NULL, NULL));
    lbm_src_t *src = make_source(ctx, "cancel", NULL, evq);
    lbm_event_queue_cancel_cb_info_t info = {.event_queue = plain, .cbproc = on_cancel, .clientd = NULL};
    CHECK_EQ(lbm_src_delete_ex(src, &info), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    info.event_queue = evq;
    MUST(lbm_src_delete_ex(src, &info));
    for (int i = 0; i < HANG_SECONDS * 1000 && cancelled == 0; i++) {
        lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL);
        usleep(1000);
    }
    CHECK_EQ(cancelled, 1);
    MUST(lbm_event_queue_delete(evq));
    MUST(lbm_event_queue_delete(plain));
    MUST(lbm_event_queue_attr_delete(qattr));
    MUST(lbm_context_delete(ctx));
}

TEST(a_child_process_cannot_use_the_sources_of_its_parent)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = net_source(ctx, "fork");
    pid_t pid = fork();
    if (pid == 0) {
        bool ok = lbm_src_send(src, "x", 1, 0) == -1 && lbm_errnum() == LBM_EINVAL && lbm_src_delete(src) == -1;
        _exit(ok ? 0 : 1);
    }
    int status = -1;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}
