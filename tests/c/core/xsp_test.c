/* XSPs: sessions mapped to further loops of a context, who runs what, in which
 * order things may be deleted, and that loops do not wait for each other. On a
 * private loopback network. */
#include "base/um_clock.h"
#include "base/um_mem.h"
#include "base/um_timer.h"
#include "um_test_xsp.h"

/* ---- who runs what ---- */

TEST(callbacks_run_on_the_thread_of_the_xsp_and_the_mapping_on_that_of_the_context)
{
    TEST_NEEDS_NET();
    struct mapper m = {0};
    struct recorder r = RECORDER_INIT;
    lbm_context_t *sender = sending_context(), *ctx = world(&m, 1);
    lbm_src_t *src = net_source(sender, "threads");
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "threads", &r);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    net_send(src, "a");
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 1));
    CHECK(pthread_equal(r.thread, thread_of_xsp(m.xsps[0])));
    CHECK(!pthread_equal(r.thread, thread_of_context(ctx)));
    CHECK(pthread_equal(m.thread, thread_of_context(ctx)));
    CHECK_EQ(atomic_load(&m.calls), 1);
    CHECK_EQ(m.topic_idx, 0);
    CHECK_EQ(strncmp(m.source, r.source, strlen(m.source)), 0);
    MUST(lbm_src_delete(src));
    CHECK(recorder_wait(&r, LBM_MSG_EOS, 1));
    CHECK_STR(r.text, "BOS 0=a EOS ");
    MUST(lbm_rcv_delete(rcv));
    end_world(ctx, &m);
    MUST(lbm_context_delete(sender));
}

TEST(a_mapping_of_null_is_the_context)
{
    TEST_NEEDS_NET();
    struct mapper m = {0};
    struct recorder r = RECORDER_INIT;
    lbm_context_t *sender = sending_context(), *ctx = world(&m, 0);
    lbm_src_t *src = net_source(sender, "null");
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "null", &r);
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 1));
    CHECK(pthread_equal(r.thread, thread_of_context(ctx)));
    CHECK_EQ(atomic_load(&m.calls), 1);
    MUST(lbm_src_delete(src));
    MUST(lbm_rcv_delete(rcv));
    end_world(ctx, &m);
    MUST(lbm_context_delete(sender));
}

TEST(all_topics_of_a_session_are_on_its_xsp_and_it_is_mapped_once)
{
    TEST_NEEDS_NET();
    struct mapper m = {0};
    struct recorder a = RECORDER_INIT, b = RECORDER_INIT;
    lbm_context_t *sender = sending_context(), *ctx = world(&m, 2);
    lbm_src_t *one = source_over(sender, "one", "lbtrm", "224.0.77.1");
    lbm_src_t *two = source_over(sender, "two", "lbtrm", "224.0.77.1");
    lbm_rcv_t *first = net_recording_receiver(ctx, "one", &a), *second = net_recording_receiver(ctx, "two", &b);
    net_send(one, "x");
    net_send(two, "y");
    CHECK(recorder_wait(&a, LBM_MSG_BOS, 1));
    CHECK(recorder_wait(&b, LBM_MSG_BOS, 1));
    CHECK_EQ(atomic_load(&m.calls), 1);
    CHECK(pthread_equal(a.thread, b.thread));
    MUST(lbm_rcv_delete(first));
    MUST(lbm_rcv_delete(second));
    MUST(lbm_src_delete(one));
    MUST(lbm_src_delete(two));
    end_world(ctx, &m);
    MUST(lbm_context_delete(sender));
}

TEST(another_session_on_the_same_group_and_port_has_the_same_xsp_without_being_asked_for)
{
    TEST_NEEDS_NET();
    struct mapper m = {0};
    struct recorder r = RECORDER_INIT;
    lbm_context_t *sender = sending_context(), *other = sending_context(), *ctx = world(&m, 2);
    lbm_src_t *one = source_over(sender, "same", "lbtrm", "224.0.77.2");
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "same", &r);
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 1));
    pthread_t thread = r.thread;
    lbm_src_t *two = source_over(other, "same", "lbtrm", "224.0.77.2");
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 2));
    CHECK(pthread_equal(r.thread, thread));
    CHECK_EQ(atomic_load(&m.calls), 1);
    MUST(lbm_src_delete(one));
    MUST(lbm_src_delete(two));
    MUST(lbm_rcv_delete(rcv));
    end_world(ctx, &m);
    MUST(lbm_context_delete(sender));
    MUST(lbm_context_delete(other));
}

TEST(shared_memory_stays_with_the_context_and_nobody_is_asked)
{
    TEST_NEEDS_NET();
    struct mapper m = {0};
    struct recorder r = RECORDER_INIT;
    lbm_context_t *sender = sending_context(), *ctx = world(&m, 1);
    lbm_src_t *src = source_over(sender, "ring", "lbtsmx", NULL);
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "ring", &r);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    net_send(src, "s");
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 1));
    CHECK_EQ(atomic_load(&m.calls), 0);
    MUST(lbm_src_delete(src));
    MUST(lbm_rcv_delete(rcv));
    end_world(ctx, &m);
    MUST(lbm_context_delete(sender));
}

TEST(a_receiver_that_comes_later_hears_bos_on_the_xsp)
{
    TEST_NEEDS_NET();
    struct mapper m = {0};
    struct recorder a = RECORDER_INIT, b = RECORDER_INIT;
    lbm_context_t *sender = sending_context(), *ctx = world(&m, 1);
    lbm_src_t *src = net_source(sender, "later");
    lbm_rcv_t *first = net_recording_receiver(ctx, "later", &a);
    CHECK_EQ(um_rcv_wait_ready(first, 1, HANG_SECONDS * 1000), 0);
    net_send(src, "a");
    CHECK(recorder_wait(&a, LBM_MSG_DATA, 1));
    lbm_rcv_t *second = net_recording_receiver(ctx, "later", &b);
    CHECK(recorder_wait(&b, LBM_MSG_BOS, 1));
    CHECK(pthread_equal(a.thread, b.thread));
    net_send(src, "b");
    CHECK(recorder_wait(&a, LBM_MSG_DATA, 2));
    CHECK(recorder_wait(&b, LBM_MSG_DATA, 1));
    um_rcv_stats_t stats;
    MUST(um_rcv_stats(first, NULL, &stats));
    CHECK_EQ(stats.delivered, 2);
    MUST(um_rcv_stats(second, NULL, &stats));
    CHECK_EQ(stats.delivered, 1);
    CHECK_EQ(stats.sources, 1);
    MUST(lbm_rcv_delete(first));
    net_send(src, "c");
    CHECK(recorder_wait(&b, LBM_MSG_DATA, 2));
    CHECK_EQ(recorder_count(&a, LBM_MSG_DATA), 2);
    MUST(lbm_src_delete(src));
    CHECK(recorder_wait(&b, LBM_MSG_EOS, 1));
    MUST(um_rcv_stats(second, NULL, &stats));
    CHECK_EQ(stats.delivered, 2);
    MUST(lbm_rcv_delete(second));
    end_world(ctx, &m);
    MUST(lbm_context_delete(sender));
}

/* ---- loops do not wait for each other ---- */

struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int inside;
    bool met;
};

/* Returns when two threads are inside at once. */
static int meet(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct meeting *meeting = clientd;
    if (msg->type != LBM_MSG_DATA) {
        return 0;
    }
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += HANG_SECONDS;
    int rc = 0;
    pthread_mutex_lock(&meeting->lock);
    if (++meeting->inside == 2) {
        meeting->met = true;
        pthread_cond_broadcast(&meeting->changed);
    }
    while (!meeting->met && rc == 0) {
        rc = pthread_cond_timedwait(&meeting->changed, &meeting->lock, &until);
    }
    meeting->inside--;
    pthread_mutex_unlock(&meeting->lock);
    return 0;
}

TEST(two_xsps_receive_two_groups_at_the_same_time)
{
    TEST_NEEDS_NET();
    struct mapper m = {0};
    struct meeting meeting = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    lbm_context_t *sender = sending_context(), *ctx = world(&m, 2);
    lbm_src_t *one = source_over(sender, "left", "lbtrm", "224.0.77.3");
    lbm_src_t *two = source_over(sender, "right", "lbtrm", "224.0.77.4");
    lbm_rcv_t *left = net_receiver(ctx, "left", NULL, meet, &meeting, NULL);
    lbm_rcv_t *right = net_receiver(ctx, "right", NULL, meet, &meeting, NULL);
    CHECK_EQ(um_rcv_wait_ready(left, 1, HANG_SECONDS * 1000), 0);
    CHECK_EQ(um_rcv_wait_ready(right, 1, HANG_SECONDS * 1000), 0);
    CHECK_EQ(atomic_load(&m.calls), 2);
    net_send(one, "l");
    net_send(two, "r");
    for (int i = 0; i < HANG_SECONDS * 1000; i++) {
        pthread_mutex_lock(&meeting.lock);
        bool met = meeting.met;
        pthread_mutex_unlock(&meeting.lock);
        if (met) {
            break;
        }
        sleep_ms(1);
    }
    MUST(lbm_rcv_delete(left));
    MUST(lbm_rcv_delete(right));
    CHECK(meeting.met);
    MUST(lbm_src_delete(one));
    MUST(lbm_src_delete(two));
    end_world(ctx, &m);
    MUST(lbm_context_delete(sender));
}

struct gate {
    sem_t entered, open;
    atomic_int delivered;
};

static int wait_at_gate(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct gate *gate = clientd;
    if (msg->type == LBM_MSG_DATA) {
        sem_post(&gate->entered);
        REQUIRE(wait_sem(&gate->open));
        atomic_fetch_add(&gate->delivered, 1);
    }
    return 0;
}

TEST(a_slow_callback_on_an_xsp_delays_neither_timers_nor_joins_of_the_context)
{
    TEST_NEEDS_NET();
    struct mapper m = {0};
    struct gate gate = {0};
    struct recorder r = RECORDER_INIT;
    sem_init(&gate.entered, 0, 0);
    sem_init(&gate.open, 0, 0);
    lbm_context_t *sender = sending_context(), *ctx = world(&m, 2);
    lbm_src_t *slow = net_source(sender, "slow"), *quick = net_source(sender, "quick");
    lbm_rcv_t *rcv = net_receiver(ctx, "slow", NULL, wait_at_gate, &gate, NULL);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    net_send(slow, "s");
    CHECK(wait_sem(&gate.entered));
    (void)thread_of_context(ctx); /* a timer runs */
    lbm_rcv_t *other = net_recording_receiver(ctx, "quick", &r);
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 1));
    net_send(quick, "q");
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 1));
    CHECK_EQ(atomic_load(&gate.delivered), 0);
    sem_post(&gate.open);
    MUST(lbm_rcv_delete(rcv));
    CHECK_EQ(atomic_load(&gate.delivered), 1);
    MUST(lbm_rcv_delete(other));
    MUST(lbm_src_delete(slow));
    MUST(lbm_src_delete(quick));
    end_world(ctx, &m);
    MUST(lbm_context_delete(sender));
}

struct fleeting {
    atomic_int deleted, messages, late;
};

static int note_late(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct fleeting *f = clientd;
    atomic_fetch_add(&f->late, atomic_load(&f->deleted));
    atomic_fetch_add(&f->messages, msg->type == LBM_MSG_DATA);
    return 0;
}

struct pump {
    lbm_src_t *src;
    atomic_int stop;
};

static void *pump_main(void *arg)
{
    struct pump *p = arg;
    while (!atomic_load(&p->stop)) {
        lbm_src_send(p->src, "pumped", 6, LBM_MSG_FLUSH | LBM_SRC_NONBLOCK);
        sleep_ms(1);
    }
    return NULL;
}

TEST(no_callback_comes_after_the_deletion_of_a_receiver_that_an_xsp_delivers_to)
{
    TEST_NEEDS_NET();
    struct mapper m = {0};
    struct recorder r = RECORDER_INIT;
    lbm_context_t *sender = sending_context(), *ctx = world(&m, 1);
    struct pump pump = {.src = net_source(sender, "deleted")};
    lbm_rcv_t *stays = net_recording_receiver(ctx, "deleted", &r);
    CHECK_EQ(um_rcv_wait_ready(stays, 1, HANG_SECONDS * 1000), 0);
    pthread_t thread;
    pthread_create(&thread, NULL, pump_main, &pump);
    static struct fleeting f[20];
    for (int i = 0; i < 20; i++) {
        lbm_rcv_t *rcv = net_receiver(ctx, "deleted", NULL, note_late, &f[i], NULL);
        CHECK(i % 4 == 3 || wait_above(&f[i].messages, 1)); /* some are deleted before anything came */
        MUST(lbm_rcv_delete(rcv));
        atomic_store(&f[i].deleted, 1);
    }
    MUST(lbm_rcv_delete(stays)); /* the last one: the session is left */
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(atomic_load(&f[i].late), 0);
    }
    atomic_store(&pump.stop, 1);
    pthread_join(thread, NULL);
    MUST(lbm_src_delete(pump.src));
    end_world(ctx, &m);
    MUST(lbm_context_delete(sender));
}

static int tick(lbm_context_t *ctx, const void *clientd)
{
    atomic_fetch_add((atomic_int *)(uintptr_t)clientd, 1);
    lbm_schedule_timer(ctx, tick, (void *)(uintptr_t)clientd, NULL, 1);
    return 0;
}

TEST(four_sessions_on_four_xsps_and_timers_of_the_context_go_on_together)
{
    TEST_NEEDS_NET();
    enum { SESSIONS = 4, MESSAGES = 500 };
    static const char *const names[SESSIONS] = {"s0", "s1", "s2", "s3"};
    struct mapper m = {0};
    static struct recorder r[SESSIONS];
    static atomic_int ticks;
    lbm_context_t *sender = sending_context(), *ctx = world(&m, SESSIONS);
    lbm_src_t *src[SESSIONS];
    lbm_rcv_t *rcv[SESSIONS];
    CHECK(lbm_schedule_timer(ctx, tick, &ticks, NULL, 1) != -1);
    for (int i = 0; i < SESSIONS; i++) {
        pthread_mutex_init(&r[i].lock, NULL);
        pthread_cond_init(&r[i].changed, NULL);
        src[i] = net_source(sender, names[i]);
        rcv[i] = net_recording_receiver(ctx, names[i], &r[i]);
    }
    for (int i = 0; i < SESSIONS; i++) {
        CHECK_EQ(um_rcv_wait_ready(rcv[i], 1, HANG_SECONDS * 1000), 0);
    }
    int ticks_before = atomic_load(&ticks);
    for (int n = 0; n < MESSAGES; n++) {
        for (int i = 0; i < SESSIONS; i++) {
            net_send(src[i], "m");
        }
        if (n % 100 == 0) {
            lbm_context_stats_t stats;
            um_rcv_stats_t counts;
            MUST(lbm_context_retrieve_stats(ctx, &stats));
            MUST(um_rcv_stats(rcv[0], NULL, &counts));
        }
    }
    for (int i = 0; i < SESSIONS; i++) {
        CHECK(recorder_wait(&r[i], LBM_MSG_DATA, MESSAGES));
        for (int j = 0; j < i; j++) {
            CHECK(!pthread_equal(r[i].thread, r[j].thread));
        }
    }
    CHECK(wait_above(&ticks, ticks_before + 1));
    lbm_rcv_transport_stats_t stats[8];
    int num = 8;
    MUST(lbm_context_retrieve_rcv_transport_stats(ctx, &num, stats));
    CHECK_EQ(num, SESSIONS);
    num = 2;
    CHECK_EQ(lbm_context_retrieve_rcv_transport_stats(ctx, &num, stats), -1);
    CHECK_EQ(num, SESSIONS);
    num = 1;
    MUST(lbm_rcv_retrieve_all_transport_stats(rcv[2], &num, stats));
    CHECK_EQ(num, 1);
    CHECK_EQ(stats[0].transport.tcp.lbm_msgs_rcved, MESSAGES);
    MUST(lbm_rcv_retrieve_transport_stats(rcv[1], r[1].source, stats));
    CHECK_EQ(stats[0].transport.tcp.lbm_msgs_rcved, MESSAGES);
    CHECK_EQ(lbm_rcv_retrieve_transport_stats(rcv[1], r[2].source, stats), -1);
    for (int i = 0; i < SESSIONS; i++) {
        MUST(lbm_rcv_delete(rcv[i]));
        MUST(lbm_src_delete(src[i]));
    }
    end_world(ctx, &m);
    MUST(lbm_context_delete(sender));
}

/* ---- event queues, wildcards, source notifications ---- */

TEST(a_receiver_with_an_event_queue_gets_what_an_xsp_receives)
{
    TEST_NEEDS_NET();
    struct mapper m = {0};
    struct recorder r = RECORDER_INIT;
    lbm_event_queue_t *evq;
    MUST(lbm_event_queue_create(&evq, NULL, NULL, NULL));
    lbm_context_t *sender = sending_context(), *ctx = world(&m, 1);
    lbm_src_t *src = net_source(sender, "queued");
    lbm_rcv_t *rcv = net_receiver(ctx, "queued", NULL, recorder_cb, &r, evq);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    net_send(src, "a");
    CHECK(recorder_dispatch(&r, evq, LBM_MSG_DATA, 1));
    CHECK(pthread_equal(r.thread, pthread_self()));
    CHECK_STR(r.text, "BOS 0=a ");
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    end_world(ctx, &m);
    MUST(lbm_context_delete(sender));
    MUST(lbm_event_queue_delete(evq));
}

TEST(a_wildcard_receiver_receives_on_xsps_and_goes_while_they_deliver)
{
    TEST_NEEDS_NET();
    struct mapper m = {0};
    struct recorder r = RECORDER_INIT;
    lbm_wildcard_rcv_t *wrcv;
    lbm_context_t *sender = sending_context(), *ctx = world(&m, 2);
    struct pump one = {.src = net_source(sender, "wild.1")}, two = {.src = net_source(sender, "wild.2")};
    MUST(lbm_wildcard_rcv_create(&wrcv, ctx, "^wild", NULL, NULL, recorder_cb, &r, NULL));
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 2));
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, pump_main, &one);
    pthread_create(&threads[1], NULL, pump_main, &two);
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 20));
    um_rcv_stats_t stats;
    MUST(um_wildcard_rcv_stats(wrcv, &stats));
    CHECK(stats.delivered >= 20);
    CHECK_EQ(stats.sources, 2);
    MUST(lbm_wildcard_rcv_delete(wrcv));
    int seen = recorder_count(&r, LBM_MSG_DATA);
    sleep_ms(20);
    CHECK_EQ(recorder_count(&r, LBM_MSG_DATA), seen);
    atomic_store(&one.stop, 1);
    atomic_store(&two.stop, 1);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    MUST(lbm_src_delete(one.src));
    MUST(lbm_src_delete(two.src));
    end_world(ctx, &m);
    MUST(lbm_context_delete(sender));
}

struct notified {
    pthread_t created, deleted;
    atomic_int creations, deletions;
};

static void *on_created(const char *source, void *clientd)
{
    struct notified *n = clientd;
    n->created = pthread_self();
    atomic_fetch_add(&n->creations, 1);
    return n;
}

static int on_deleted(const char *source, void *clientd, void *source_clientd)
{
    struct notified *n = clientd;
    n->deleted = pthread_self();
    REQUIRE(source_clientd == n);
    atomic_fetch_add(&n->deletions, 1);
    return 0;
}

TEST(source_notifications_run_on_the_thread_of_the_context)
{
    TEST_NEEDS_NET();
    struct mapper m = {0};
    struct recorder r = RECORDER_INIT;
    struct notified n = {0};
    lbm_rcv_topic_attr_t *attr;
    lbm_rcv_src_notification_func_t func = {on_created, on_deleted, &n};
    MUST(lbm_rcv_topic_attr_create(&attr));
    MUST(lbm_rcv_topic_attr_setopt(attr, "source_notification_function", &func, sizeof func));
    lbm_context_t *sender = sending_context(), *ctx = world(&m, 1);
    lbm_src_t *src = net_source(sender, "notified");
    lbm_rcv_t *rcv = net_receiver(ctx, "notified", attr, recorder_cb, &r, NULL);
    lbm_rcv_topic_attr_delete(attr);
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 1));
    pthread_t thread = thread_of_context(ctx);
    CHECK(pthread_equal(n.created, thread));
    CHECK(r.source_clientd == &n);
    MUST(lbm_rcv_delete(rcv));
    CHECK_EQ(atomic_load(&n.deletions), 1);
    CHECK(pthread_equal(n.deleted, thread));
    MUST(lbm_src_delete(src));
    end_world(ctx, &m);
    MUST(lbm_context_delete(sender));
}

/* ---- sequential ---- */

TEST(a_sequential_xsp_receives_while_the_application_processes_its_events)
{
    TEST_NEEDS_NET();
    struct mapper m = {0};
    struct recorder r = RECORDER_INIT;
    lbm_context_t *sender = sending_context(), *ctx = world(&m, 0);
    m.xsps[0] = xsp_with(ctx, "sequential", NULL, NULL);
    m.count = 1;
    lbm_src_t *src = net_source(sender, "sequential");
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "sequential", &r);
    CHECK(wait_above(&m.calls, 1));
    sleep_ms(20);
    CHECK_EQ(recorder_count(&r, LBM_MSG_BOS), 0);
    for (int i = 0; i < HANG_SECONDS * 100 && recorder_count(&r, LBM_MSG_BOS) == 0; i++) {
        MUST(lbm_xsp_process_events(m.xsps[0], 10));
    }
    CHECK(pthread_equal(r.thread, pthread_self()));
    net_send(src, "a");
    for (int i = 0; i < HANG_SECONDS * 100 && recorder_count(&r, LBM_MSG_DATA) == 0; i++) {
        MUST(lbm_xsp_process_events(m.xsps[0], 10));
    }
    CHECK_EQ(recorder_count(&r, LBM_MSG_DATA), 1);
    MUST(lbm_xsp_process_events(m.xsps[0], 0));
    MUST(lbm_xsp_unblock(m.xsps[0]));
    MUST(lbm_xsp_process_events(m.xsps[0], HANG_SECONDS * 1000)); /* returns at once */
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    end_world(ctx, &m);
    MUST(lbm_context_delete(sender));
}

/* Until then its messages would go to the first one alone. */
TEST(a_source_is_ready_for_a_second_receiver_when_the_xsp_has_heard_of_it)
{
    TEST_NEEDS_NET();
    struct mapper m = {0};
    struct recorder a = RECORDER_INIT, b = RECORDER_INIT;
    lbm_context_t *sender = sending_context(), *ctx = world(&m, 0);
    m.xsps[0] = xsp_with(ctx, "sequential", NULL, NULL);
    m.count = 1;
    lbm_src_t *src = net_source(sender, "second");
    lbm_rcv_t *first = net_recording_receiver(ctx, "second", &a);
    for (int i = 0; i < HANG_SECONDS * 100 && um_rcv_ready(first) == 0; i++) {
        MUST(lbm_xsp_process_events(m.xsps[0], 10));
    }
    lbm_rcv_t *second = net_recording_receiver(ctx, "second", &b);
    CHECK_EQ(um_rcv_ready(first), 1);
    CHECK_EQ(um_rcv_ready(second), 0);
    CHECK_EQ(um_rcv_wait_ready(second, 1, 0), -1);
    for (int i = 0; i < HANG_SECONDS * 100 && um_rcv_wait_ready(second, 1, 0) != 0; i++) {
        MUST(lbm_xsp_process_events(m.xsps[0], 10));
    }
    CHECK_EQ(um_rcv_wait_ready(second, 1, 0), 0);
    net_send(src, "a");
    for (int i = 0; i < HANG_SECONDS * 100 && recorder_count(&b, LBM_MSG_DATA) == 0; i++) {
        MUST(lbm_xsp_process_events(m.xsps[0], 10));
    }
    CHECK_STR(a.text, "BOS 0=a ");
    CHECK_STR(b.text, "BOS 0=a ");
    MUST(lbm_rcv_delete(second));
    CHECK_EQ(um_rcv_ready(first), 1);
    MUST(lbm_src_delete(src));
    for (int i = 0; i < HANG_SECONDS * 100 && um_rcv_ready(first) == 1; i++) {
        MUST(lbm_xsp_process_events(m.xsps[0], 10));
    }
    CHECK_EQ(um_rcv_ready(first), 0);
    MUST(lbm_rcv_delete(first));
    end_world(ctx, &m);
    MUST(lbm_context_delete(sender));
}

struct processor {
    lbm_xsp_t *xsp;
    atomic_int stop, failed;
};

static void *process_xsp(void *arg)
{
    struct processor *p = arg;
    while (!atomic_load(&p->stop)) {
        atomic_fetch_add(&p->failed, lbm_xsp_process_events(p->xsp, 1) != 0);
    }
    return NULL;
}

/* One thread processes the XSP's events, another one registers, sends and schedules; the context has its own thread. */
TEST(a_sequential_xsp_with_descriptors_goes_on_beside_timers_of_its_context)
{
    TEST_NEEDS_NET();
    enum { ROUNDS = 50 };
    struct mapper m = {0};
    struct recorder r = RECORDER_INIT;
    static atomic_int ticks;
    lbm_context_t *sender = sending_context(), *ctx = world(&m, 0);
    struct processor p = {.xsp = xsp_with(ctx, "sequential", NULL, NULL)};
    m.xsps[0] = p.xsp;
    m.count = 1;
    pthread_t thread;
    pthread_create(&thread, NULL, process_xsp, &p);
    CHECK(lbm_schedule_timer(ctx, tick, &ticks, NULL, 1) != -1);
    lbm_src_t *src = net_source(sender, "descriptors");
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "descriptors", &r);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    for (int i = 0; i < ROUNDS; i++) {
        net_send(src, "d");
        CHECK(pthread_equal(thread_of_xsp(p.xsp), thread)); /* registers a descriptor, and cancels it */
    }
    CHECK(recorder_wait(&r, LBM_MSG_DATA, ROUNDS));
    CHECK(pthread_equal(r.thread, thread));
    CHECK(wait_above(&ticks, 2));
    MUST(lbm_rcv_delete(rcv)); /* while its events are processed */
    MUST(lbm_src_delete(src));
    atomic_store(&p.stop, 1);
    MUST(lbm_xsp_unblock(p.xsp));
    pthread_join(thread, NULL);
    CHECK_EQ(atomic_load(&p.failed), 0);
    end_world(ctx, &m);
    MUST(lbm_context_delete(sender));
}

TEST(an_embedded_xsp_refuses_what_a_sequential_one_does)
{
    TEST_NEEDS_NET();
    struct mapper m = {0};
    lbm_context_t *ctx = world(&m, 1);
    CHECK_EQ(lbm_xsp_process_events(m.xsps[0], 0), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(lbm_xsp_unblock(m.xsps[0]), -1);
    end_world(ctx, &m);
}

/* ---- the last session leaves ---- */

struct zero {
    struct recorder *r;
    pthread_t thread;
    int eos;
    bool delete_it;
    int deleted;
    atomic_int calls;
};

static int on_zero(lbm_xsp_t *xsp, void *clientd)
{
    struct zero *z = clientd;
    z->thread = pthread_self();
    z->eos = recorder_count(z->r, LBM_MSG_EOS);
    z->deleted = z->delete_it ? lbm_xsp_delete(xsp) : 1;
    atomic_fetch_add(&z->calls, 1);
    return 0;
}

TEST(zero_transports_comes_after_eos_on_the_context_and_may_delete_the_xsp)
{
    TEST_NEEDS_NET();
    struct mapper m = {0};
    struct recorder r = RECORDER_INIT;
    struct zero z = {.r = &r, .delete_it = true};
    lbm_context_t *sender = sending_context(), *ctx = world(&m, 0);
    m.xsps[0] = xsp_with(ctx, "embedded", on_zero, &z);
    m.count = 1;
    lbm_src_t *src = net_source(sender, "zero");
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "zero", &r);
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 1));
    CHECK_EQ(atomic_load(&z.calls), 0);
    MUST(lbm_src_delete(src));
    CHECK(wait_above(&z.calls, 1));
    CHECK_EQ(z.eos, 1);
    CHECK_EQ(z.deleted, 0);
    CHECK(pthread_equal(z.thread, thread_of_context(ctx)));
    m.count = 0;
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
}

TEST(zero_transports_comes_when_the_last_receiver_is_deleted_too)
{
    TEST_NEEDS_NET();
    struct mapper m = {0};
    struct recorder r = RECORDER_INIT;
    struct zero z = {.r = &r};
    lbm_context_t *sender = sending_context(), *ctx = world(&m, 0);
    m.xsps[0] = xsp_with(ctx, "embedded", on_zero, &z);
    m.count = 1;
    lbm_src_t *src = net_source(sender, "zero2");
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "zero2", &r);
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 1));
    MUST(lbm_rcv_delete(rcv));
    CHECK(wait_above(&z.calls, 1));
    CHECK_EQ(z.eos, 0);
    end_world(ctx, &m);
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(sender));
}

/* ---- an XSP of another context ---- */

static struct {
    pthread_mutex_t lock;
    int foreign;
} logged = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int on_log(int level, const char *message, void *clientd)
{
    pthread_mutex_lock(&logged.lock);
    logged.foreign += strstr(message, "Core-10138-51") != NULL;
    pthread_mutex_unlock(&logged.lock);
    return 0;
}

TEST(an_xsp_of_another_context_is_logged_once_in_a_while_and_the_context_receives)
{
    TEST_NEEDS_NET();
    struct mapper m = {0};
    struct recorder r = RECORDER_INIT, again = RECORDER_INIT;
    lbm_context_t *sender = sending_context(), *second = sending_context(), *ctx = world(&m, 0);
    lbm_xsp_t *foreign = xsp_with(sender, "embedded", NULL, NULL);
    m.xsps[0] = foreign;
    m.count = 1;
    MUST(lbm_log(on_log, NULL));
    lbm_src_t *src = net_source(sender, "foreign");
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "foreign", &r);
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 1));
    CHECK(pthread_equal(r.thread, thread_of_context(ctx)));
    lbm_src_t *other = net_source(second, "foreign.2"); /* another session */
    lbm_rcv_t *other_rcv = net_recording_receiver(ctx, "foreign.2", &again);
    CHECK(recorder_wait(&again, LBM_MSG_BOS, 1));
    MUST(lbm_log(NULL, NULL));
    CHECK_EQ(atomic_load(&m.calls), 2);
    CHECK_EQ(logged.foreign, 1);
    m.count = 0;
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_rcv_delete(other_rcv));
    MUST(lbm_src_delete(other));
    MUST(lbm_context_delete(second));
    end_world(ctx, &m);
    MUST(lbm_src_delete(src));
    MUST(lbm_xsp_delete(foreign));
    MUST(lbm_context_delete(sender));
}

/* ---- where objects may be made and deleted ---- */

struct maker {
    lbm_xsp_t *xsp;
    int rc;
    atomic_int calls;
};

static lbm_xsp_t *make_in_mapping(lbm_context_t *ctx, lbm_new_transport_info_t *info, void *clientd)
{
    struct maker *maker = clientd;
    maker->rc = lbm_xsp_create(&maker->xsp, ctx, NULL, NULL);
    REQUIRE(lbm_xsp_delete(maker->xsp) == -1); /* not here */
    REQUIRE(lbm_errnum() == LBM_EOP);
    atomic_fetch_add(&maker->calls, 1);
    return maker->xsp;
}

TEST(an_xsp_may_be_made_in_the_mapping_function)
{
    TEST_NEEDS_NET();
    struct maker maker = {0};
    struct recorder r = RECORDER_INIT;
    lbm_context_t *sender = sending_context(), *ctx = net_context_with(mapping_attr(make_in_mapping, &maker));
    lbm_src_t *src = net_source(sender, "made");
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "made", &r);
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 1));
    CHECK_EQ(maker.rc, 0);
    CHECK(pthread_equal(r.thread, thread_of_xsp(maker.xsp)));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_xsp_delete(maker.xsp));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(sender));
}

/* A receiver is deleted while the first XSP is made in the mapping function: the deletion, which waits for the
 * context's thread, began when there was none. */
struct first_xsp {
    lbm_rcv_t *rcv;
    lbm_xsp_t *xsp;
    pthread_t thread;
    sem_t inside;
    atomic_int mapped, deleting, deleted, deleted_inside;
};

static void *delete_first(void *arg)
{
    struct first_xsp *f = arg;
    atomic_store(&f->deleting, 1);
    MUST(lbm_rcv_delete(f->rcv));
    atomic_store(&f->deleted, 1);
    return NULL;
}

/* The second session is mapped before the thread of the context does anything else: the deletion waits until the XSP
 * is inside the receiver's function. */
static lbm_xsp_t *make_first_xsp(lbm_context_t *ctx, lbm_new_transport_info_t *info, void *clientd)
{
    struct first_xsp *f = clientd;
    if (atomic_fetch_add(&f->mapped, 1) > 0) {
        REQUIRE(wait_sem(&f->inside));
        return f->xsp;
    }
    pthread_create(&f->thread, NULL, delete_first, f);
    wait_above(&f->deleting, 1);
    sleep_ms(20); /* it has asked by then, or the deletion is one that began later, as it does most of the time */
    MUST(lbm_xsp_create(&f->xsp, ctx, NULL, NULL));
    return f->xsp;
}

static int stay_inside(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct first_xsp *f = clientd;
    sem_post(&f->inside);
    for (int i = 0; i < 300 && atomic_load(&f->deleted) == 0; i++) {
        sleep_ms(1);
    }
    atomic_fetch_add(&f->deleted_inside, atomic_load(&f->deleted));
    return 0;
}

TEST(an_xsp_made_while_a_deletion_waits_for_the_context_is_waited_for_too)
{
    TEST_NEEDS_NET();
    static struct first_xsp f;
    sem_init(&f.inside, 0, 0);
    lbm_context_t *sender = sending_context(), *other = sending_context();
    lbm_context_t *ctx = net_context_with(mapping_attr(make_first_xsp, &f));
    lbm_src_t *src = net_source(sender, "first"), *second = net_source(other, "first");
    um_topic_source_t known[2];
    size_t count = 0;
    for (int i = 0; i < HANG_SECONDS * 100 && count < 2; i++) {
        sleep_ms(10);
        count = 2;
        MUST(um_context_topics(ctx, "^first$", known, sizeof known[0], &count));
    }
    CHECK_EQ(count, 2); /* the receiver is offered both at once */
    lbm_topic_t *topic;
    MUST(lbm_rcv_topic_lookup(&topic, ctx, "first", NULL));
    MUST(lbm_rcv_create(&f.rcv, ctx, topic, stay_inside, &f, NULL));
    CHECK(wait_above(&f.mapped, 2));
    pthread_join(f.thread, NULL);
    CHECK_EQ(atomic_load(&f.deleted_inside), 0);
    MUST(lbm_xsp_delete(f.xsp));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_src_delete(src));
    MUST(lbm_src_delete(second));
    MUST(lbm_context_delete(sender));
    MUST(lbm_context_delete(other));
}

/* What each call answers in a callback, and its text. */
struct refused {
    lbm_xsp_t *xsp;
    lbm_context_t *other;
    atomic_int calls;
    int create, delete_xsp, delete_rcv, create_ctx, process, errnum;
    char text[5][300];
};

static void try_calls(struct refused *f, lbm_context_t *ctx, lbm_rcv_t *rcv)
{
    lbm_xsp_t *xsp;
    lbm_context_t *made;
    f->errnum = LBM_EOP;
    f->create = lbm_xsp_create(&xsp, ctx, NULL, NULL);
    snprintf(f->text[0], sizeof f->text[0], "%s", lbm_errmsg());
    f->errnum = lbm_errnum() == LBM_EOP ? f->errnum : lbm_errnum();
    f->delete_xsp = lbm_xsp_delete(f->xsp);
    snprintf(f->text[1], sizeof f->text[1], "%s", lbm_errmsg());
    f->errnum = lbm_errnum() == LBM_EOP ? f->errnum : lbm_errnum();
    f->create_ctx = lbm_context_create(&made, NULL, NULL, NULL);
    f->errnum = lbm_errnum() == LBM_EOP ? f->errnum : lbm_errnum();
    if (rcv != NULL) {
        f->delete_rcv = lbm_rcv_delete(rcv);
        snprintf(f->text[2], sizeof f->text[2], "%s", lbm_errmsg());
        f->errnum = lbm_errnum() == LBM_EOP ? f->errnum : lbm_errnum();
    }
    atomic_fetch_add(&f->calls, 1);
}

static struct {
    lbm_context_t *ctx;
    struct refused *f;
} refusing;

static int try_on_data(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    if (msg->type == LBM_MSG_DATA) {
        try_calls(clientd, refusing.ctx, rcv);
    }
    return 0;
}

static int try_on_timer(lbm_context_t *ctx, const void *clientd)
{
    try_calls((struct refused *)(uintptr_t)clientd, ctx, NULL);
    return 0;
}

static void check_refused(const struct refused *f)
{
    CHECK_EQ(f->create, -1);
    CHECK_EQ(f->delete_xsp, -1);
    CHECK_EQ(f->create_ctx, -1);
    CHECK_EQ(f->errnum, LBM_EOP);
    CHECK_CONTAINS(f->text[0], "lbm_xsp_create");
    CHECK_CONTAINS(f->text[1], "lbm_xsp_delete");
}

TEST(callbacks_of_xsps_and_contexts_may_not_make_or_delete_them)
{
    TEST_NEEDS_NET();
    struct mapper m = {0};
    lbm_context_t *sender = sending_context(), *ctx = world(&m, 1);
    struct refused on_xsp = {.xsp = m.xsps[0]}, on_ctx = {.xsp = m.xsps[0]};
    refusing.ctx = ctx;
    lbm_src_t *src = net_source(sender, "refused");
    lbm_rcv_t *rcv = net_receiver(ctx, "refused", NULL, try_on_data, &on_xsp, NULL);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    net_send(src, "t");
    CHECK(wait_above(&on_xsp.calls, 1));
    check_refused(&on_xsp);
    CHECK_EQ(on_xsp.delete_rcv, -1);
    CHECK_CONTAINS(on_xsp.text[2], "lbm_rcv_delete");
    CHECK(lbm_schedule_timer(ctx, try_on_timer, &on_ctx, NULL, 0) != -1);
    CHECK(wait_above(&on_ctx.calls, 1));
    check_refused(&on_ctx);
    CHECK_EQ(lbm_xsp_delete(m.xsps[0]), -1); /* its session is still there */
    CHECK_EQ(lbm_errnum(), LBM_EOP);
    CHECK_CONTAINS(lbm_errmsg(), "lbm_xsp_delete");
    MUST(lbm_rcv_delete(rcv));
    CHECK_EQ(lbm_context_delete(ctx), -1); /* its XSP is still there */
    CHECK_EQ(lbm_errnum(), LBM_EOP);
    MUST(lbm_src_delete(src));
    end_world(ctx, &m);
    MUST(lbm_context_delete(sender));
    CHECK_EQ(lbm_xsp_delete(NULL), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
}

TEST(xsps_are_deleted_in_any_order_once_their_sessions_are_gone)
{
    TEST_NEEDS_NET();
    for (int order = 0; order < 4; order++) {
        struct mapper m = {0};
        struct recorder a = RECORDER_INIT, b = RECORDER_INIT;
        lbm_context_t *sender = sending_context(), *ctx = world(&m, 2);
        lbm_src_t *one = net_source(sender, "o1"), *two = net_source(sender, "o2");
        lbm_rcv_t *first = net_recording_receiver(ctx, "o1", &a);
        CHECK(recorder_wait(&a, LBM_MSG_BOS, 1));
        lbm_rcv_t *second = net_recording_receiver(ctx, "o2", &b);
        CHECK(recorder_wait(&b, LBM_MSG_BOS, 1));
        if (order % 2 == 0) { /* sources first */
            MUST(lbm_src_delete(one));
            MUST(lbm_src_delete(two));
        }
        MUST(lbm_rcv_delete(first));
        MUST(lbm_xsp_delete(m.xsps[0])); /* the other one still receives */
        if (order < 2) {
            MUST(lbm_rcv_delete(second));
            MUST(lbm_xsp_delete(m.xsps[1]));
        } else {
            lbm_xsp_t *late = xsp_with(ctx, "embedded", NULL, NULL);
            MUST(lbm_rcv_delete(second));
            MUST(lbm_xsp_delete(late));
            MUST(lbm_xsp_delete(m.xsps[1]));
        }
        MUST(lbm_context_delete(ctx));
        if (order % 2 != 0) {
            MUST(lbm_src_delete(one));
            MUST(lbm_src_delete(two));
        }
        MUST(lbm_context_delete(sender));
    }
}

struct asking {
    lbm_context_t *ctx;
    sem_t entered, open, asked;
    int pipe[2];
};

static void ask(struct asking *asking)
{
    lbm_rcv_transport_stats_t stats[1];
    int count = 1;
    lbm_context_retrieve_rcv_transport_stats(asking->ctx, &count,
                                             stats); /* may be refused: the other one waits for us */
}

static int ask_in_callback(lbm_context_t *ctx, lbm_handle_t handle, lbm_ulong_t ev, void *clientd)
{
    struct asking *asking = clientd;
    char byte;
    REQUIRE(read(handle, &byte, 1) == 1);
    sem_post(&asking->entered);
    REQUIRE(wait_sem(&asking->open));
    ask(asking);
    return 0;
}

static void *ask_in_thread(void *arg)
{
    struct asking *asking = arg;
    ask(asking);
    sem_post(&asking->asked);
    return NULL;
}

static void *open_later(void *arg)
{
    usleep(50000); /* to where the deletion waits */
    sem_post(&((struct asking *)arg)->open);
    return NULL;
}

/* Deletion waits for a thread that waits for the XSP, whose callback asks the context, which deletes. */
TEST(an_xsp_is_deleted_while_a_thread_and_its_own_callback_ask_for_statistics)
{
    TEST_NEEDS_NET();
    struct mapper m = {0};
    struct asking asking = {.ctx = world(&m, 1)};
    pthread_t asks, opens;
    sem_init(&asking.entered, 0, 0);
    sem_init(&asking.open, 0, 0);
    sem_init(&asking.asked, 0, 0);
    CHECK_EQ(pipe(asking.pipe), 0);
    MUST(lbm_xsp_register_fd(m.xsps[0], asking.pipe[0], ask_in_callback, &asking, NULL, LBM_FD_EVENT_READ));
    CHECK_EQ(write(asking.pipe[1], "x", 1), 1);
    CHECK(wait_sem(&asking.entered));
    pthread_create(&asks, NULL, ask_in_thread, &asking);
    usleep(50000); /* to where it waits for the XSP; sooner, there is nothing to see */
    pthread_create(&opens, NULL, open_later, &asking);
    if (lbm_xsp_delete(m.xsps[0]) != 0) { /* the callback was at it first */
        CHECK_EQ(lbm_errnum(), LBM_EOP);
        CHECK(wait_sem(&asking.asked));
        MUST(lbm_xsp_delete(m.xsps[0]));
    }
    pthread_join(opens, NULL);
    pthread_join(asks, NULL);
    MUST(lbm_context_delete(asking.ctx));
    close(asking.pipe[0]);
    close(asking.pipe[1]);
}

TEST(what_excludes_xsps_is_refused)
{
    TEST_NEEDS_NET();
    lbm_context_attr_t *attr = net_context_attr();
    lbm_xsp_t *xsp;
    MUST(lbm_context_attr_str_setopt(attr, "operational_mode", "sequential"));
    lbm_context_t *ctx = net_context_with(attr);
    MUST(lbm_xsp_create(&xsp, ctx, NULL, NULL));
    lbm_process_events_info_t info = {.flags = LBM_PROC_EVENT_EX_FLAG_NO_MAIN_LOOP_MUTEX};
    CHECK_EQ(lbm_context_process_events_ex(ctx, 0, &info), -1);
    CHECK_EQ(lbm_errnum(), LBM_EOP);
    MUST(lbm_xsp_delete(xsp));
    MUST(lbm_context_process_events_ex(ctx, 0, &info));
    MUST(lbm_context_delete(ctx));
    attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "delivery_control_message_batching", "1"));
    ctx = net_context_with(attr);
    CHECK_EQ(lbm_xsp_create(&xsp, ctx, NULL, NULL), -1);
    CHECK_CONTAINS(lbm_errmsg(), "delivery_control_message_batching");
    MUST(lbm_context_delete(ctx));
}

TEST(an_xsp_has_options_of_its_own_and_a_request_port_more)
{
    TEST_NEEDS_NET();
    lbm_context_attr_t *attr = net_context_attr(), *cattr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "request_tcp_port_low", "24391"));
    MUST(lbm_context_attr_str_setopt(attr, "request_tcp_port_high", "24392"));
    MUST(lbm_context_attr_str_setopt(cattr, "request_tcp_bind_request_port", "0"));
    lbm_context_t *ctx = net_context_with(attr);
    lbm_xsp_t *one, *two, *three;
    MUST(lbm_xsp_create(&one, ctx, NULL, NULL));
    CHECK_EQ(lbm_xsp_create(&two, ctx, NULL, NULL), -1); /* both ports are in use */
    CHECK_CONTAINS(lbm_errmsg(), "request_tcp_port");
    MUST(lbm_xsp_create(&three, ctx, cattr, NULL)); /* this one binds none */
    lbm_context_attr_delete(cattr);
    lbm_config_option_t opts[8];
    int size = 8;
    MUST(lbm_xsp_dump(one, &size, opts));
    CHECK_EQ(size, 1); /* functions are not dumped */
    CHECK_STR(opts[0].oname, "operational_mode");
    CHECK_STR(opts[0].val, "embedded");
    MUST(lbm_xsp_delete(one));
    MUST(lbm_xsp_delete(three));
    MUST(lbm_context_delete(ctx));
}

/* ---- without memory ---- */

static int allocations_left;

static bool fail_when_spent(size_t size)
{
    (void)size;
    return __atomic_fetch_sub(&allocations_left, 1, __ATOMIC_RELAXED) == 0;
}

static void fail_at(int n)
{
    __atomic_store_n(&allocations_left, n, __ATOMIC_RELAXED);
    um_mem_set_fail_hook(n < 0 ? NULL : fail_when_spent);
}

TEST(every_failing_allocation_while_an_xsp_is_made_is_an_error_and_leaks_nothing)
{
    TEST_NEEDS_NET();
    struct mapper m = {0};
    lbm_context_t *ctx = world(&m, 0);
    int failures = 0;
    for (int n = 0; n < 60; n++) {
        lbm_xsp_t *xsp = NULL;
        fail_at(n);
        int rc = lbm_xsp_create(&xsp, ctx, NULL, NULL);
        fail_at(-1);
        failures += rc != 0;
        CHECK(rc == 0 || lbm_errnum() == LBM_ENOMEM);
        if (rc == 0) {
            MUST(lbm_xsp_delete(xsp));
        }
    }
    CHECK(failures > 3);
    end_world(ctx, &m);
}

TEST(every_failing_allocation_while_an_xsp_joins_is_survived)
{
    TEST_NEEDS_NET();
    struct mapper m = {0};
    lbm_context_t *sender = sending_context(), *ctx = world(&m, 1);
    lbm_src_t *src = net_source(sender, "poor");
    for (int n = 0; n < 30; n++) {
        struct recorder r = RECORDER_INIT;
        lbm_topic_t *topic;
        lbm_rcv_t *rcv;
        MUST(lbm_rcv_topic_lookup(&topic, ctx, "poor", NULL));
        fail_at(n);
        int rc = lbm_rcv_create(&rcv, ctx, topic, recorder_cb, &r, NULL);
        for (int i = 0; rc == 0 && i < 20 && um_rcv_ready(rcv) == 0; i++) {
            sleep_ms(1);
        }
        fail_at(-1);
        if (rc == 0) {
            CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0); /* in the end it is joined */
            net_send(src, "p");
            CHECK(recorder_wait(&r, LBM_MSG_DATA, 1));
            MUST(lbm_rcv_delete(rcv));
        }
    }
    MUST(lbm_src_delete(src));
    end_world(ctx, &m);
    MUST(lbm_context_delete(sender));
}

/* After a receiver of the same topic has gone, an XSP may still have the list that it was on: the next to go needs
 * memory for another one. Which of the two threads is first cannot be arranged, so it is tried until it happens. */
TEST(a_wildcard_receiver_that_could_not_be_deleted_hears_and_is_deleted_later)
{
    TEST_NEEDS_NET();
    struct mapper m = {0};
    lbm_context_t *sender = sending_context(), *ctx = world(&m, 1);
    lbm_src_t *src = net_source(sender, "kept.1");
    struct recorder stays = RECORDER_INIT;
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "kept.1", &stays);
    int failures = 0;
    uint64_t end_ns = um_clock_ns() + HANG_SECONDS * UM_NS_PER_SEC;
    for (int i = 0; failures < 3 && (i < 50 || failures == 0) && um_clock_ns() < end_ns; i++) {
        struct recorder r = RECORDER_INIT, passing = RECORDER_INIT;
        lbm_wildcard_rcv_t *wrcv;
        MUST(lbm_wildcard_rcv_create(&wrcv, ctx, "^kept", NULL, NULL, recorder_cb, &r, NULL));
        CHECK(recorder_wait(&r, LBM_MSG_BOS, 1));
        lbm_rcv_t *gone = net_recording_receiver(ctx, "kept.1", &passing);
        CHECK_EQ(um_rcv_wait_ready(gone, 1, HANG_SECONDS * 1000), 0);
        MUST(lbm_rcv_delete(gone));
        fail_at(0);
        int rc = lbm_wildcard_rcv_delete(wrcv);
        int errnum = rc == 0 ? 0 : lbm_errnum();
        fail_at(-1);
        if (rc == 0) {
            continue;
        }
        failures++;
        CHECK_EQ(errnum, LBM_ENOMEM);
        char name[32];
        snprintf(name, sizeof name, "kept.new.%d", i);
        lbm_src_t *newer = net_source(sender, name);
        CHECK(recorder_wait(&r, LBM_MSG_BOS, 2)); /* topics that come are matched as before */
        net_send(src, "k");
        CHECK(recorder_wait(&r, LBM_MSG_DATA, 1));
        MUST(lbm_wildcard_rcv_delete(wrcv));
        MUST(lbm_src_delete(newer));
    }
    CHECK(failures > 0);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    end_world(ctx, &m);
    MUST(lbm_context_delete(sender));
}
