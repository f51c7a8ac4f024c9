/* Sources, their events and statistics as an application sees them, through the public headers only. */
#include "um_test.h"

#include <stdatomic.h>
#include <stddef.h>

#include <lbm/lbm.h>
#include <lbm/um.h>

#include "um_test_rcv.h"

/* ---- events ---- */

struct events {
    atomic_int connects, disconnects, numbers;
    pthread_t connect_thread, number_thread;
    char client[64];
    unsigned first, last;
    void *msg_clientd;
};

static int on_event(lbm_src_t *src, int event, void *ed, void *clientd)
{
    struct events *e = clientd;
    if (event == LBM_SRC_EVENT_CONNECT) {
        snprintf(e->client, sizeof e->client, "%s", (const char *)ed);
        e->connect_thread = pthread_self();
        atomic_fetch_add(&e->connects, 1);
    } else if (event == LBM_SRC_EVENT_DISCONNECT) {
        atomic_fetch_add(&e->disconnects, 1);
    } else if (event == LBM_SRC_EVENT_SEQUENCE_NUMBER_INFO) {
        const lbm_src_event_sequence_number_info_t *info = ed;
        e->number_thread = pthread_self();
        e->first = info->first_sequence_number;
        e->last = info->last_sequence_number;
        e->msg_clientd = info->msg_clientd;
        atomic_fetch_add(&e->numbers, 1);
    }
    return 0;
}

static lbm_src_t *source_with_events(lbm_context_t *ctx, const char *name, struct events *e, lbm_event_queue_t *evq)
{
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_alloc(&topic, ctx, name, NULL));
    MUST(lbm_src_create(&src, ctx, topic, on_event, e, evq));
    return src;
}

static bool wait_count(atomic_int *count, int wanted)
{
    for (int i = 0; i < HANG_SECONDS * 1000 && atomic_load(count) < wanted; i++) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return atomic_load(count) >= wanted;
}

static bool dispatch_count(lbm_event_queue_t *evq, atomic_int *count, int wanted)
{
    for (int i = 0; i < HANG_SECONDS * 1000 && atomic_load(count) < wanted; i++) {
        if (lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL) == 0) {
            nanosleep(&(struct timespec){0, 1000000}, NULL);
        }
    }
    return atomic_load(count) >= wanted;
}

TEST(a_source_on_a_session_with_clients_is_told_of_each)
{
    TEST_NEEDS_NET();
    lbm_context_t *sender = net_context_with(({
        lbm_context_attr_t *attr = net_context_attr();
        MUST(lbm_context_attr_str_setopt(attr, "transport_tcp_maximum_ports", "1"));
        attr;
    }));
    lbm_context_t *ctx = net_context();
    struct events first = {0}, second = {0};
    lbm_src_t *a = source_with_events(sender, "A", &first, NULL);
    lbm_rcv_t *rcv = net_receiver(ctx, "A", NULL, recorder_cb, &(struct recorder)RECORDER_INIT, NULL);
    CHECK(wait_count(&first.connects, 1));
    lbm_src_t *b = source_with_events(sender, "B", &second, NULL);
    CHECK(wait_count(&second.connects, 1));
    CHECK_STR(second.client, first.client);
    CHECK_CONTAINS(first.client, "TCP:127.0.0.1:");
    CHECK(lbm_context_from_src(b) == sender);
    MUST(lbm_rcv_delete(rcv));
    CHECK(wait_count(&first.disconnects, 1));
    CHECK(wait_count(&second.disconnects, 1));
    MUST(lbm_src_delete(a));
    MUST(lbm_src_delete(b));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
}

TEST(with_a_queue_connects_are_dispatched_and_sequence_numbers_come_inside_the_send)
{
    TEST_NEEDS_NET();
    lbm_context_t *sender = net_context(), *ctx = net_context();
    lbm_event_queue_t *evq;
    MUST(lbm_event_queue_create(&evq, NULL, NULL, NULL));
    struct events e = {0};
    int mine;
    lbm_src_t *src = source_with_events(sender, "numbers", &e, evq);
    CHECK(lbm_event_queue_from_src(src) == evq);
    lbm_rcv_t *rcv = net_receiver(ctx, "numbers", NULL, recorder_cb, &(struct recorder)RECORDER_INIT, NULL);
    MUST(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000));
    CHECK_EQ(e.connects, 0);
    lbm_src_send_ex_info_t info = {.flags =
                                       LBM_SRC_SEND_EX_FLAG_SEQUENCE_NUMBER_INFO | LBM_SRC_SEND_EX_FLAG_UME_CLIENTD,
                                   .ume_msg_clientd = &mine};
    CHECK_EQ(lbm_src_send_ex(src, "m", 1, 0, &info), 0);
    CHECK_EQ(e.numbers, 1);
    CHECK(pthread_equal(e.number_thread, pthread_self()));
    CHECK_EQ(e.first, e.last);
    CHECK(e.msg_clientd == &mine);
    CHECK(dispatch_count(evq, &e.connects, 1));
    CHECK(pthread_equal(e.connect_thread, pthread_self()));
    /* Only for fragmented messages. */
    unsigned before = e.last;
    info.flags = LBM_SRC_SEND_EX_FLAG_SEQUENCE_NUMBER_INFO_FRAGONLY;
    CHECK_EQ(lbm_src_send_ex(src, "m", 1, 0, &info), 0);
    CHECK_EQ(e.numbers, 1);
    size_t len = 200000;
    char *big = calloc(1, len);
    CHECK_EQ(lbm_src_send_ex(src, big, len, 0, &info), 0);
    free(big);
    CHECK_EQ(e.numbers, 2);
    CHECK_EQ(e.first, before + 2);
    CHECK(e.last > e.first);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
    MUST(lbm_event_queue_delete(evq));
}

/* ---- sends ---- */

TEST(pieces_are_messages_unless_gathered_and_empty_messages_are_legal)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct recorder r = RECORDER_INIT;
    lbm_src_t *src = net_source(ctx, "pieces");
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "pieces", &r);
    MUST(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000));
    lbm_iovec_t iov[] = {{(char *)"a", 1}, {(char *)"", 0}, {(char *)"bc", 2}};
    CHECK_EQ(lbm_src_sendv(src, iov, 3, LBM_MSG_FLUSH), 0);
    CHECK_EQ(lbm_src_sendv(src, iov, 3, LBM_MSG_FLUSH | LBM_MSG_IOV_GATHER), 0);
    CHECK_EQ(lbm_src_sendv_ex(src, iov, 3, LBM_MSG_FLUSH, NULL), 0);
    CHECK_EQ(lbm_src_send(src, NULL, 0, LBM_MSG_FLUSH), 0);
    CHECK_EQ(lbm_src_send(src, "n", 1, LBM_SRC_NONBLOCK | LBM_SRC_BLOCK | LBM_MSG_FLUSH), 0);
    CHECK_EQ(lbm_src_send(src, "u", 1, (int)0x40000000 | LBM_MSG_FLUSH), 0); /* unknown bits are ignored */
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 8));
    char expected[128] = "BOS ";
    const char *texts[] = {"a", "", "bc", "abc", "abc", "", "n", "u"};
    unsigned sqn = r.sqn - 7;
    for (int i = 0; i < 8; i++) {
        size_t used = strlen(expected);
        snprintf(expected + used, sizeof expected - used, "%u=%s ", sqn + (unsigned)i, texts[i]);
    }
    CHECK_STR(r.text, expected);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

struct flags {
    atomic_int count;
    int flags[16];
};

static int keep_flags(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct flags *f = clientd;
    if (msg->type == LBM_MSG_DATA) {
        f->flags[atomic_load(&f->count) & 15] = msg->flags;
        atomic_fetch_add(&f->count, 1);
    }
    return 0;
}

TEST(an_explicit_batch_marks_its_first_and_last_message_and_needs_a_start)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct flags f = {0};
    lbm_src_t *src = net_source(ctx, "batch");
    lbm_rcv_t *rcv = net_receiver(ctx, "batch", NULL, keep_flags, &f, NULL);
    MUST(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000));
    CHECK_EQ(lbm_src_send(src, "m", 1, LBM_MSG_END_BATCH), -1);
    CHECK_EQ(lbm_errnum(), LBM_EOP);
    for (int i = 0; i < 10; i++) {
        int mark = i == 0 ? LBM_MSG_START_BATCH : i == 9 ? LBM_MSG_END_BATCH : 0;
        CHECK_EQ(lbm_src_send(src, "m", 1, mark), 0);
    }
    CHECK_EQ(lbm_src_send(src, "m", 1, LBM_MSG_COMPLETE_BATCH | LBM_MSG_FLUSH), 0);
    CHECK(wait_count(&f.count, 11));
    CHECK_EQ(f.flags[0], LBM_MSG_FLAG_START_BATCH);
    CHECK_EQ(f.flags[5], 0);
    CHECK_EQ(f.flags[9], LBM_MSG_FLAG_END_BATCH);
    CHECK_EQ(f.flags[10], LBM_MSG_FLAG_START_BATCH | LBM_MSG_FLAG_END_BATCH);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

TEST(what_later_versions_bring_is_refused_by_name)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = net_source(ctx, "later");
    CHECK_EQ(lbm_src_send(src, "m", 1, LBM_MSG_BUFF_ALLOC), -1);
    CHECK_EQ(lbm_errnum(), LBM_EOPNOTSUPP);
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

/* ---- statistics in arrays ---- */

#define SESSIONS 3

/* Elements of another version of the structure: `stride` bytes each, as many of them known as both sides have. */
static bool sources_fill(lbm_context_t *ctx, size_t stride, int entries)
{
    char *array = malloc(stride * (size_t)entries);
    memset(array, 0x5a, stride * (size_t)entries);
    int num = entries;
    bool ok =
        lbm_context_retrieve_src_transport_stats_ex(ctx, &num, (int)stride, (lbm_src_transport_stats_t *)array) == 0 &&
        num == SESSIONS;
    for (int i = 0; i < SESSIONS && ok; i++) {
        const lbm_src_transport_stats_t *stats = (const lbm_src_transport_stats_t *)(array + (size_t)i * stride);
        ok = stats->type == LBM_TRANSPORT_STAT_TCP && strncmp(stats->source, "TCP:", 4) == 0 &&
             strchr(stats->source, '[') == NULL;
        for (size_t byte = sizeof *stats; byte < stride && ok; byte++) {
            ok = array[(size_t)i * stride + byte] == 0x5a;
        }
    }
    for (size_t byte = stride * SESSIONS; byte < stride * (size_t)entries && ok; byte++) {
        ok = array[byte] == 0x5a; /* entries beyond the number are not touched */
    }
    free(array);
    return ok;
}

static bool receivers_fill(lbm_context_t *ctx, lbm_rcv_t *rcv, size_t stride)
{
    char *array = malloc(stride * SESSIONS);
    int num = SESSIONS;
    bool ok =
        lbm_context_retrieve_rcv_transport_stats_ex(ctx, &num, (int)stride, (lbm_rcv_transport_stats_t *)array) == 0 &&
        num == SESSIONS;
    num = SESSIONS;
    ok = ok &&
         lbm_rcv_retrieve_all_transport_stats_ex(rcv, &num, (int)stride, (lbm_rcv_transport_stats_t *)array) == 0 &&
         num == SESSIONS;
    for (int i = 0; i < SESSIONS && ok; i++) {
        const lbm_rcv_transport_stats_t *stats = (const lbm_rcv_transport_stats_t *)(array + (size_t)i * stride);
        ok = stats->type == LBM_TRANSPORT_STAT_TCP && strncmp(stats->source, "TCP:", 4) == 0;
    }
    free(array);
    return ok;
}

TEST(arrays_of_statistics_have_elements_of_the_size_the_caller_says)
{
    TEST_NEEDS_NET();
    lbm_context_t *sender = net_context(), *ctx = net_context();
    lbm_src_t *src[SESSIONS];
    for (int i = 0; i < SESSIONS; i++) {
        src[i] = net_source(sender, "arrays"); /* each on a port of its own */
    }
    struct recorder r = RECORDER_INIT;
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "arrays", &r);
    MUST(um_rcv_wait_ready(rcv, SESSIONS, HANG_SECONDS * 1000));
    size_t src_size = sizeof(lbm_src_transport_stats_t), rcv_size = sizeof(lbm_rcv_transport_stats_t);
    CHECK(sources_fill(sender, src_size, SESSIONS));
    CHECK(sources_fill(sender, src_size + 64, SESSIONS + 2));
    CHECK(sources_fill(sender, offsetof(lbm_src_transport_stats_t, transport), SESSIONS));
    CHECK(receivers_fill(ctx, rcv, rcv_size));
    CHECK(receivers_fill(ctx, rcv, rcv_size + 8));
    CHECK(receivers_fill(ctx, rcv, offsetof(lbm_rcv_transport_stats_t, transport)));

    lbm_src_transport_stats_t one_src;
    lbm_rcv_transport_stats_t one_rcv;
    int num = 1;
    CHECK_EQ(lbm_context_retrieve_src_transport_stats(sender, &num, &one_src), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(num, SESSIONS);
    num = 0;
    CHECK_EQ(lbm_context_retrieve_rcv_transport_stats(ctx, &num, NULL), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(num, SESSIONS);
    num = 2;
    CHECK_EQ(lbm_rcv_retrieve_all_transport_stats(rcv, &num, &one_rcv), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(num, SESSIONS);
    num = 1;
    CHECK_EQ(lbm_context_retrieve_im_src_transport_stats(sender, &num, sizeof one_src, &one_src), 0);
    CHECK_EQ(num, 0);

    MUST(lbm_rcv_delete(rcv));
    for (int i = 0; i < SESSIONS; i++) {
        MUST(lbm_src_delete(src[i]));
    }
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
}

TEST(counters_count_and_reset_and_snapshots_stay)
{
    TEST_NEEDS_NET();
    lbm_context_t *sender = net_context(), *ctx = net_context();
    struct recorder r = RECORDER_INIT;
    lbm_src_t *src = net_source(sender, "counters");
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "counters", &r);
    MUST(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000));
    for (int i = 0; i < 10; i++) {
        net_send(src, "12345678");
    }
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 10));
    lbm_rcv_transport_stats_t stats;
    lbm_src_transport_stats_t src_stats;
    lbm_context_stats_t context_stats;
    CHECK_EQ(lbm_rcv_retrieve_transport_stats(rcv, r.source, &stats), 0); /* the index is allowed */
    CHECK_EQ(stats.transport.tcp.lbm_msgs_rcved, 10);
    CHECK(stats.transport.tcp.bytes_rcved >= 10 * (8 + 8));
    CHECK_EQ(stats.transport.tcp.lbm_msgs_no_topic_rcved, 0);
    *strchr(r.source, '[') = '\0';
    CHECK_EQ(lbm_rcv_reset_transport_stats(rcv, r.source), 0);
    CHECK_EQ(lbm_rcv_retrieve_transport_stats(rcv, r.source, &stats), 0);
    CHECK_EQ(stats.transport.tcp.lbm_msgs_rcved, 0);
    CHECK_STR(stats.source, r.source);
    CHECK_EQ(lbm_src_reset_transport_stats(src), 0);
    CHECK_EQ(lbm_src_retrieve_transport_stats(src, &src_stats), 0);
    CHECK_EQ(src_stats.transport.tcp.num_clients, 1);
    CHECK_STR(src_stats.source, r.source);
    CHECK_EQ(lbm_context_retrieve_stats(sender, &context_stats), 0);
    CHECK(context_stats.tr_dgrams_sent > 0);
    CHECK(context_stats.tr_bytes_sent > context_stats.tr_dgrams_sent);
    CHECK(context_stats.tr_src_topics == 1);
    CHECK_EQ(context_stats.send_blocked, 0);
    CHECK_EQ(context_stats.resp_blocked, 0);
    CHECK_EQ(lbm_context_retrieve_stats(ctx, &context_stats), 0);
    CHECK(context_stats.tr_dgrams_rcved > 0);
    CHECK(context_stats.tr_rcv_topics == 1);
    CHECK_EQ(context_stats.rcv_cb_svc_time_max, 0); /* receiver_callback_service_time_enabled 0 */
    CHECK_EQ(lbm_context_reset_stats(ctx), 0);
    CHECK_EQ(lbm_context_retrieve_stats(ctx, &context_stats), 0);
    CHECK_EQ(context_stats.tr_rcv_topics, 1);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
}

/* ---- interfaces ---- */

static bool listens_on(const char *default_interface, const char *tcp_interface, const char *expected)
{
    lbm_context_t *ctx;
    lbm_context_attr_t *attr = net_context_attr();
    lbm_src_topic_attr_t *source_attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    lbm_src_transport_stats_t stats;
    MUST(lbm_context_attr_str_setopt(attr, "default_interface", default_interface));
    ctx = net_context_with(attr);
    MUST(lbm_src_topic_attr_create(&source_attr));
    MUST(lbm_src_topic_attr_str_setopt(source_attr, "transport_tcp_interface", tcp_interface));
    MUST(lbm_src_topic_alloc(&topic, ctx, "where", source_attr));
    MUST(lbm_src_topic_attr_delete(source_attr));
    MUST(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL));
    MUST(lbm_src_retrieve_transport_stats(src, &stats));
    bool ok = strncmp(stats.source, expected, strlen(expected)) == 0;
    if (!ok) {
        fprintf(stderr, "[%s], expected [%s]\n", stats.source, expected);
    }
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    return ok;
}

TEST(a_source_listens_on_its_interface_else_on_the_default_one_and_never_shows_no_address)
{
    TEST_NEEDS_NET();
    CHECK(listens_on("127.0.0.1/32", "0.0.0.0", "TCP:127.0.0.1:"));
    CHECK(listens_on("0.0.0.0", "127.0.0.0/8", "TCP:127.0.0.1:"));
    CHECK(listens_on("0.0.0.0", "0.0.0.0", "TCP:127.0.0.1:")); /* that of topic resolution */
}
