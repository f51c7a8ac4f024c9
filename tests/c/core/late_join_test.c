/* Late join through the public interface: what a source retained comes first, marked as retransmitted, and the live
 * stream follows without a gap or a repetition. Each transport; the options that rule it; wildcards; XSPs. */
#include "core/um_context.h"
#include "um_test.h"
#include "um_test_net.h"
#include "um_test_rcv.h"

#include "um_test_log.h"

#define ALL "10000000"

/* What came, as text: "R0 R1 2 O3": numbers, R for those that were replayed, O for those recovered from a gap. */
struct replay {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char text[8192];
    int count, lost;
    unsigned bytes;
    bool wrong; /* not the bytes that were sent */
};

#define REPLAY_INIT                                                                                                    \
    {                                                                                                                  \
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER                                         \
    }

static int replay_cb(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct replay *r = clientd;
    pthread_mutex_lock(&r->lock);
    if (msg->type == LBM_MSG_DATA) {
        size_t used = strlen(r->text);
        snprintf(r->text + used, sizeof r->text - used, "%s%s%u", used == 0 ? "" : " ",
                 (msg->flags & LBM_MSG_FLAG_RETRANSMIT) != 0 ? "R"
                 : (msg->flags & LBM_MSG_FLAG_OTR) != 0      ? "O"
                                                             : "",
                 msg->sequence_number);
        r->count++;
        r->bytes += (unsigned)msg->len;
        for (size_t i = 0; i < msg->len; i++) {
            r->wrong |= msg->data[i] != msg->data[0];
        }
    }
    r->lost += msg->type == LBM_MSG_UNRECOVERABLE_LOSS || msg->type == LBM_MSG_UNRECOVERABLE_LOSS_BURST;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    return 0;
}

static bool replay_wait(struct replay *r, int count)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += HANG_SECONDS;
    int rc = 0;
    pthread_mutex_lock(&r->lock);
    while (r->count < count && rc == 0) {
        rc = pthread_cond_timedwait(&r->changed, &r->lock, &until);
    }
    bool ok = r->count >= count && r->lost == 0 && !r->wrong;
    if (!ok) {
        fprintf(stderr, "came: %s; lost %d, wrong %d\n", r->text, r->lost, r->wrong);
    }
    pthread_mutex_unlock(&r->lock);
    return ok;
}

/* What has come so far; more may come meanwhile. */
static const char *replay_text(struct replay *r)
{
    static char text[sizeof r->text];
    pthread_mutex_lock(&r->lock);
    memcpy(text, r->text, sizeof text);
    pthread_mutex_unlock(&r->lock);
    return text;
}

static bool replay_reads(struct replay *r, const char *text)
{
    pthread_mutex_lock(&r->lock);
    bool same = strcmp(r->text, text) == 0;
    if (!same) {
        fprintf(stderr, "came: %s\n", r->text);
    }
    pthread_mutex_unlock(&r->lock);
    return same;
}

static lbm_src_t *retaining_source(lbm_context_t *ctx, const char *topic_name, const char *transport,
                                   const char *threshold)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", transport));
    MUST(lbm_src_topic_attr_str_setopt(attr, "late_join", "1"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "retransmit_retention_size_threshold", threshold));
    MUST(lbm_src_topic_alloc(&topic, ctx, topic_name, attr));
    MUST(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL));
    lbm_src_topic_attr_delete(attr);
    return src;
}

static lbm_rcv_t *receiver(lbm_context_t *ctx, const char *topic, const char *option, const char *value,
                           struct replay *r)
{
    lbm_rcv_topic_attr_t *attr;
    MUST(lbm_rcv_topic_attr_create(&attr));
    if (option != NULL) {
        MUST(lbm_rcv_topic_attr_str_setopt(attr, option, value));
    }
    lbm_rcv_t *rcv = net_receiver(ctx, topic, attr, replay_cb, r, NULL);
    lbm_rcv_topic_attr_delete(attr);
    return rcv;
}

static void send_many(lbm_src_t *src, int count)
{
    for (int i = 0; i < count; i++) {
        net_send(src, "xxxxxxxxxxxxxxxxxxxxxxxxx");
    }
}

/* Late join over one transport, from source to receiver. */
static bool replays_over(const char *transport)
{
    struct replay r = REPLAY_INIT;
    lbm_context_t *sender = net_context(), *ctx = net_context();
    lbm_src_t *src = retaining_source(sender, "late", transport, ALL);
    send_many(src, 25);
    lbm_rcv_t *rcv = receiver(ctx, "late", NULL, NULL, &r);
    bool ok =
        replay_wait(&r, 25) &&
        replay_reads(&r, "R0 R1 R2 R3 R4 R5 R6 R7 R8 R9 R10 R11 R12 R13 R14 R15 R16 R17 R18 R19 R20 R21 R22 R23 R24");
    send_many(src, 5);
    ok = replay_wait(&r, 30) && strstr(replay_text(&r), "29") != NULL && ok;
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
    return ok;
}

TEST(what_was_sent_before_is_replayed_over_tcp)
{
    TEST_NEEDS_NET();
    CHECK(replays_over("tcp"));
}

TEST(what_was_sent_before_is_replayed_over_lbtrm)
{
    TEST_NEEDS_NET();
    CHECK(replays_over("lbt-rm"));
}

TEST(what_was_sent_before_is_replayed_over_lbtru)
{
    TEST_NEEDS_NET();
    CHECK(replays_over("lbt-ru"));
}

TEST(what_was_sent_before_is_replayed_over_lbtipc)
{
    TEST_NEEDS_NET();
    CHECK(replays_over("lbt-ipc"));
}

static um_context_stats_t counts_of(lbm_context_t *ctx)
{
    um_context_stats_t stats;
    MUST(um_context_stats(ctx, &stats));
    return stats;
}

TEST(late_join_is_counted_in_the_statistics_of_both_contexts)
{
    TEST_NEEDS_NET();
    struct replay r = REPLAY_INIT;
    lbm_context_t *sender = net_context(), *ctx = net_context();
    lbm_src_t *src = retaining_source(sender, "late", "tcp", ALL);
    send_many(src, 25);
    CHECK_EQ(counts_of(sender).retransmit_requests, 0);
    lbm_rcv_t *rcv = receiver(ctx, "late", NULL, NULL, &r);
    CHECK(replay_wait(&r, 25));
    um_context_stats_t asks = counts_of(ctx), answers = counts_of(sender);
    CHECK_EQ(asks.recovery_received, 25);
    CHECK(asks.recovery_requests >= 25);
    CHECK_EQ(asks.recovery_timed_out, 0);
    CHECK(answers.retransmit_requests >= 26); /* for information, too */
    CHECK(answers.retransmit_sent >= 25 && answers.retransmit_bytes >= 25 * (25 + 12));
    CHECK_EQ(answers.recovery_requests + asks.retransmit_requests, 0);
    MUST(lbm_rcv_delete(rcv));
    CHECK_EQ(counts_of(ctx).recovery_received, 25); /* also of what is over */
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
}

/* ---- a source that does not answer ---- */

static int mute_on_loop(void *arg)
{
    lbm_context_t *ctx = arg;
    um_unicast_on_control(ctx->unicast, UM_LBMC_HDR_LJI_REQ, NULL, NULL);
    return 0;
}

/* In time of the test, which goes on from where the clock was. */
static void pass_seconds(lbm_context_t *ctx, int seconds)
{
    static lbm_process_events_info_t info = {.flags = LBM_PROC_EVENT_EX_FLAG_USER_TIME, .time_val = {1, 0}};
    for (int i = 0; i <= seconds; i++) {
        for (int k = 0; k < 3; k++) {
            MUST(lbm_context_process_events_ex(ctx, 0, &info));
        }
        info.time_val.tv_sec += i < seconds;
    }
}

TEST(source_that_never_answers_is_asked_sixty_times_told_of_and_its_live_messages_flow)
{
    TEST_NEEDS_NET();
    struct replay r = REPLAY_INIT;
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "operational_mode", "sequential"));
    watch_log("Core-5480-3");
    lbm_context_t *sender = net_context(), *ctx = net_context_with(attr);
    lbm_src_t *src = retaining_source(sender, "late", "tcp", ALL);
    MUST(um_loop_call(sender->loop, mute_on_loop, sender));
    send_many(src, 5);
    pass_seconds(ctx, 0);
    lbm_rcv_t *rcv = receiver(ctx, "late", NULL, NULL, &r);
    for (int i = 0; i < HANG_SECONDS * 1000 && um_rcv_ready(rcv) == 0; i++) { /* time stands still */
        pass_seconds(ctx, 0);
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    CHECK_EQ(um_rcv_ready(rcv), 1);
    pass_seconds(ctx, 59);
    CHECK_EQ(log_hits, 0);
    pass_seconds(ctx, 2);
    CHECK_EQ(log_hits, 1);
    CHECK(strstr(log_line, "no response received to late join initiation request - skipping late join [late]") != NULL);
    for (int i = 0; i < HANG_SECONDS * 1000 && counts_of(sender).unicast_unsupported < 60; i++) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    CHECK_EQ(counts_of(sender).unicast_unsupported, 60);
    send_many(src, 1);
    for (int i = 0; i < HANG_SECONDS * 1000 && r.count == 0; i++) {
        pass_seconds(ctx, 0);
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    CHECK(replay_reads(&r, "5"));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
    MUST(lbm_log(NULL, NULL));
}

static bool replays_with(const char *threshold, const char *option, const char *value, int sent, const char *expected,
                         int count)
{
    struct replay r = REPLAY_INIT;
    lbm_context_t *sender = net_context(), *ctx = net_context();
    lbm_src_t *src = retaining_source(sender, "late", "tcp", threshold);
    send_many(src, sent);
    lbm_rcv_t *rcv = receiver(ctx, "late", option, value, &r);
    if (count == 0) {
        MUST(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000));
        send_many(src, 1);
        count = 1;
    }
    bool ok = replay_wait(&r, count) && replay_reads(&r, expected);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
    return ok;
}

TEST(without_retention_settings_one_message_is_replayed)
{
    TEST_NEEDS_NET();
    CHECK(replays_with("0", NULL, NULL, 23, "R22", 1));
}

TEST(so_many_messages_as_the_receiver_asks_for_are_replayed)
{
    TEST_NEEDS_NET();
    CHECK(replays_with(ALL, "retransmit_request_maximum", "10", 23, "R13 R14 R15 R16 R17 R18 R19 R20 R21 R22", 10));
}

TEST(a_receiver_without_late_join_gets_what_is_sent_from_now_on)
{
    TEST_NEEDS_NET();
    CHECK(replays_with(ALL, "use_late_join", "0", 23, "23", 0));
}

TEST(a_message_of_many_fragments_is_replayed_whole)
{
    TEST_NEEDS_NET();
    struct replay r = REPLAY_INIT;
    lbm_context_t *sender = net_context(), *ctx = net_context();
    lbm_src_t *src = retaining_source(sender, "large", "lbt-rm", ALL);
    static char data[100000];
    memset(data, 'l', sizeof data);
    MUST(lbm_src_send(src, data, sizeof data, LBM_MSG_FLUSH));
    send_many(src, 1);
    lbm_rcv_t *rcv = receiver(ctx, "large", NULL, NULL, &r);
    CHECK(replay_wait(&r, 2));
    CHECK_EQ(r.bytes, sizeof data + 25);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
}

TEST(receivers_of_a_wildcard_join_late_too)
{
    TEST_NEEDS_NET();
    struct replay r = REPLAY_INIT;
    lbm_context_t *sender = net_context(), *ctx = net_context();
    lbm_src_t *src = retaining_source(sender, "wild.card", "tcp", ALL);
    send_many(src, 5);
    lbm_wildcard_rcv_t *wrcv;
    MUST(lbm_wildcard_rcv_create(&wrcv, ctx, "^wild", NULL, NULL, replay_cb, &r, NULL));
    CHECK(replay_wait(&r, 5));
    CHECK(replay_reads(&r, "R0 R1 R2 R3 R4"));
    MUST(lbm_wildcard_rcv_delete(wrcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
}

static lbm_xsp_t *to_xsp(lbm_context_t *ctx, lbm_new_transport_info_t *info, void *clientd)
{
    return *(lbm_xsp_t **)clientd;
}

TEST(on_an_xsp_what_was_sent_before_comes_to_its_own_request_port)
{
    TEST_NEEDS_NET();
    struct replay r = REPLAY_INIT;
    lbm_xsp_t *xsp = NULL;
    lbm_context_t *sender = net_context();
    lbm_context_attr_t *attr = net_context_attr();
    lbm_transport_mapping_func_t map = {.mapping_func = to_xsp, .clientd = &xsp};
    MUST(lbm_context_attr_setopt(attr, "transport_mapping_function", &map, sizeof map));
    lbm_context_t *ctx = net_context_with(attr);
    MUST(lbm_xsp_create(&xsp, ctx, NULL, NULL));
    lbm_src_t *src = retaining_source(sender, "xsp", "tcp", ALL);
    send_many(src, 5);
    lbm_rcv_t *rcv = receiver(ctx, "xsp", NULL, NULL, &r);
    CHECK(replay_wait(&r, 5));
    send_many(src, 1);
    CHECK(replay_wait(&r, 6));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_xsp_delete(xsp));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
}

/* Where the replay begins: chosen by the application, from what it is told. */
struct choice {
    lbm_uint_t by, low, wanted, high;
    char source[128];
    void *source_clientd;
    int calls;
};

static int choose(lbm_ume_rcv_recovery_info_ex_func_info_t *info, void *clientd)
{
    struct choice *choice = clientd;
    choice->low = info->low_sequence_number;
    choice->wanted = info->low_rxreq_max_sequence_number;
    choice->high = info->high_sequence_number;
    choice->source_clientd = info->source_clientd;
    memcpy(choice->source, info->source, sizeof choice->source);
    choice->calls++;
    info->low_sequence_number += choice->by;
    return 0;
}

static void *source_created(const char *source, void *clientd)
{
    (void)source;
    return clientd;
}

static int source_deleted(const char *source, void *clientd, void *source_clientd)
{
    (void)source, (void)clientd, (void)source_clientd;
    return 0;
}

/* 25 messages are retained, 5 wanted by the option. */
static bool begins_with(struct choice *choice, const char *expected, int count)
{
    struct replay r = REPLAY_INIT;
    lbm_ume_rcv_recovery_info_ex_func_t function = {choose, choice};
    lbm_rcv_src_notification_func_t notification = {source_created, source_deleted, choice};
    lbm_context_t *sender = net_context(), *ctx = net_context();
    lbm_src_t *src = retaining_source(sender, "choice", "tcp", ALL);
    send_many(src, 25);
    lbm_rcv_topic_attr_t *attr;
    MUST(lbm_rcv_topic_attr_create(&attr));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "retransmit_request_maximum", "5"));
    MUST(lbm_rcv_topic_attr_setopt(attr, "ume_recovery_sequence_number_info_function", &function, sizeof function));
    MUST(lbm_rcv_topic_attr_setopt(attr, "source_notification_function", &notification, sizeof notification));
    lbm_rcv_t *rcv = net_receiver(ctx, "choice", attr, replay_cb, &r, NULL);
    lbm_rcv_topic_attr_delete(attr);
    bool ok = replay_wait(&r, count) && replay_reads(&r, expected);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
    return ok && choice->calls == 1 && choice->low == 0 && choice->wanted == 20 && choice->high == 24 &&
           choice->source_clientd == choice && strncmp(choice->source, "TCP:", 4) == 0;
}

TEST(the_application_chooses_where_the_replay_begins)
{
    TEST_NEEDS_NET();
    struct choice same = {.by = 0}, other = {.by = 17};
    CHECK(begins_with(&same, "R20 R21 R22 R23 R24", 5));
    CHECK(begins_with(&other, "R17 R18 R19 R20 R21 R22 R23 R24", 8));
}

/* ---- requirements of users ---- */

/* Of a receiver that wants what was sent before, and a source that keeps nothing. */
static void join_in_vain(const char *option, const char *value)
{
    struct replay r = REPLAY_INIT;
    lbm_context_t *sender = net_context(), *ctx = net_context();
    watch_log("Core-20212-2");
    lbm_src_t *src = net_source(sender, "in vain");
    lbm_rcv_t *rcv = receiver(ctx, "in vain", option, value, &r);
    MUST(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
}

TEST(l2_late_join_that_is_not_offered_is_one_line_that_names_the_source_option)
{
    TEST_NEEDS_NET();
    join_in_vain(NULL, NULL);
    CHECK_EQ(log_hits, 1);
    CHECK_EQ(log_level, LBM_LOG_INFO);
    CHECK(strstr(log_line, "[in vain]") != NULL && strstr(log_line, "source option late_join") != NULL);
    CHECK(strstr(log_line, "retransmit_retention_size_threshold") != NULL);
    join_in_vain("retransmit_request_maximum", "10"); /* meant */
    CHECK_EQ(log_hits, 1);
    CHECK_EQ(log_level, LBM_LOG_NOTICE);
    CHECK(strstr(log_line, "source option late_join") != NULL);
    join_in_vain("use_late_join", "0");
    CHECK_EQ(log_hits, 0);
}

#define QUEUE (16u << 10)

/* Takes what a replay of many times the queue brings, a little at a time. False: something is missing. */
static bool take_all(um_collector_t *collector, uint32_t count)
{
    uint32_t next = 0;
    while (next < count) {
        um_collector_stats_t stats;
        um_batch_t *batch;
        MUST(um_collector_stats(collector, &stats));
        if (stats.queued_bytes > 2 * QUEUE || um_collector_take(collector, 100, HANG_SECONDS * 1000, &batch) != 1) {
            return false;
        }
        for (size_t i = 0; i < batch->count; i++) {
            const um_record_t *record = &batch->records[i];
            bool message = record->type == LBM_MSG_DATA;
            if ((!message && record->type != LBM_MSG_BOS) || (message && record->sequence_number != next)) {
                fprintf(stderr, "type %d number %u for %u\n", record->type, record->sequence_number, next);
                um_batch_release(batch);
                return false;
            }
            next += message;
        }
        um_batch_release(batch);
    }
    return true;
}

static bool wait_full(um_collector_t *collector)
{
    um_collector_stats_t stats = {0};
    for (int i = 0; i < HANG_SECONDS * 1000 && stats.queued_bytes < QUEUE - 1000; i++) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
        MUST(um_collector_stats(collector, &stats));
    }
    return stats.queued_bytes >= QUEUE - 1000;
}

/* Nobody takes anything while the receiver is created and the replay begins. */
static bool replays_more_than_the_queue(const char *transport)
{
    enum { MESSAGES = 4000 }; /* 65 bytes each in the queue */
    um_collector_t *collector;
    lbm_context_t *sender = net_context(), *ctx = net_context();
    MUST(um_collector_create(&collector, QUEUE));
    lbm_src_t *src = retaining_source(sender, "long", transport, ALL);
    send_many(src, MESSAGES);
    lbm_rcv_t *rcv = net_receiver(ctx, "long", NULL, um_collector_rcv_cb, collector, NULL);
    bool ok = wait_full(collector);
    nanosleep(&(struct timespec){0, 100000000}, NULL); /* what is asked for too much would come */
    ok = ok && take_all(collector, MESSAGES);
    MUST(lbm_rcv_delete(rcv));
    MUST(um_collector_delete(collector));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
    return ok;
}

TEST(l3_a_replay_of_many_times_the_queue_blocks_nothing_and_loses_nothing)
{
    TEST_NEEDS_NET();
    CHECK(replays_more_than_the_queue("tcp"));
    CHECK(replays_more_than_the_queue("lbt-rm"));
}

/* The stream goes on while it is replayed: nothing is missing at the seam, nothing comes twice. */
TEST(l4_a_receiver_that_joins_at_any_moment_has_everything_in_order)
{
    TEST_NEEDS_NET();
    enum { ROUNDS = 10, BEFORE = 40, AFTER = 300 };
    lbm_context_t *sender = net_context();
    for (int round = 0; round < ROUNDS; round++) {
        struct replay r = REPLAY_INIT;
        char topic[32];
        snprintf(topic, sizeof topic, "seam.%d", round);
        lbm_context_t *ctx = net_context();
        lbm_src_t *src = retaining_source(sender, topic, round % 2 == 0 ? "tcp" : "lbt-rm", ALL);
        send_many(src, BEFORE);
        lbm_rcv_t *rcv = receiver(ctx, topic, NULL, NULL, &r);
        for (int i = 0; i < AFTER; i++) {
            send_many(src, 1);
            nanosleep(&(struct timespec){0, 300000}, NULL);
        }
        CHECK(replay_wait(&r, BEFORE + AFTER));
        for (int i = 0, next = 0; i < BEFORE + AFTER; i++) {
            const char *at = r.text + next;
            int number = atoi(at + (*at == 'R'));
            CHECK_EQ(number, i);
            next += (int)strcspn(at, " ") + 1;
        }
        MUST(lbm_rcv_delete(rcv));
        MUST(lbm_src_delete(src));
        MUST(lbm_context_delete(ctx));
    }
    MUST(lbm_context_delete(sender));
}

/* The transport repairs nothing; off-transport recovery brings what it lost, late joiner or not. */
TEST(with_naks_off_and_loss_recovery_delivers_every_message)
{
    TEST_NEEDS_NET();
    enum { MESSAGES = 600 };
    struct replay r = REPLAY_INIT;
    watch_log("Core-5480-1");
    lbm_context_t *sender = net_context(), *ctx = net_context();
    MUST(lbm_context_set_nak_cutoff(ctx, LBM_NAK_CUTOFF_FLAG_DISABLE_NAKS));
    lbm_src_t *src = retaining_source(sender, "lossy", "lbt-rm", ALL);
    lbm_rcv_topic_attr_t *attr;
    MUST(lbm_rcv_topic_attr_create(&attr));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "use_otr", "1"));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "use_late_join", "0"));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "otr_request_initial_delay", "50"));
    lbm_rcv_t *rcv = net_receiver(ctx, "lossy", attr, replay_cb, &r, NULL);
    lbm_rcv_topic_attr_delete(attr);
    for (int i = 0; i < HANG_SECONDS * 100 && um_rcv_ready(rcv) == 0; i++) {
        send_many(src, 1);
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    CHECK(replay_wait(&r, 1));
    lbm_set_lbtrm_src_loss_rate(5);
    send_many(src, MESSAGES - 20);
    lbm_set_lbtrm_src_loss_rate(0);
    send_many(src, 20);
    CHECK(replay_wait(&r, MESSAGES));
    const char *text = replay_text(&r);
    CHECK(strchr(text, 'O') != NULL && strchr(text, 'R') == NULL);
    CHECK(log_hits >= 1 && log_level == LBM_LOG_WARNING &&
          strstr(log_line, "OTR Initiated for [lossy][LBTRM:") != NULL);
    int last = -1;
    for (const char *at = text; *at != 0; at += strcspn(at, " "), at += *at == ' ') {
        int number = atoi(at + (*at == 'O'));
        CHECK(last < 0 || number == last + 1);
        last = number;
    }
    MUST(lbm_log(NULL, NULL));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
}
