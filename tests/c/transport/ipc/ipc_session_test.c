/* LBT-IPC through the public interface, in one process: sources, receivers, batching and fragments, the rules of ids,
 * both pacings, the two kinds of receive thread and the application's, statistics, events, the end of a session.
 * Resolution runs on a private loopback network, segments lie in a directory of this test's own. */
#define _GNU_SOURCE
#include <dirent.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/um_clock.h"
#include "base/um_timer.h"
#include "transport/shm/um_shm_segment.h"

#define SHM_TRANSPORT "lbt-ipc"
#include "um_test_shm_session.h"

static lbm_context_t *context_option(const char *option, const char *value)
{
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, option, value));
    return net_context_with(attr);
}

TEST(messages_arrive_in_order_and_eos_follows_the_source)
{
    TEST_NEEDS_NET();
    struct pair p;
    pair_open(&p, "ipc/basic");
    net_send(p.src, "a");
    net_send(p.src, "b");
    MUST(lbm_src_send(p.src, "c", 1, 0));
    MUST(lbm_src_send(p.src, "d", 1, 0));
    MUST(lbm_src_flush(p.src));
    CHECK(recorder_wait(&p.rec, LBM_MSG_DATA, 4));
    MUST(lbm_src_delete(p.src));
    p.src = NULL;
    CHECK(recorder_wait(&p.rec, LBM_MSG_EOS, 1));
    CHECK(recorder_reads(&p.rec, "BOS 0=a 1=b 2=c 3=d EOS "));
    CHECK(strncmp(p.rec.source, "LBT-IPC:", 8) == 0);
    CHECK_CONTAINS(p.rec.source, ":20001[");
    pair_close(&p);
    CHECK_EQ(um_test_shm_count(), 0);
}

TEST(a_batch_leaves_with_the_interval_and_large_messages_are_reassembled)
{
    TEST_NEEDS_NET();
    struct pair p;
    static char big[300000];
    pair_open(&p, "ipc/large");
    MUST(lbm_src_send(p.src, "x", 1, 0)); /* the batching timer sends it */
    CHECK(recorder_wait(&p.rec, LBM_MSG_DATA, 1));
    MUST(lbm_src_send(p.src, big, sizeof big, LBM_SRC_BLOCK));
    MUST(lbm_src_flush(p.src));
    CHECK(recorder_wait(&p.rec, LBM_MSG_DATA, 2));
    CHECK_EQ(p.rec.bytes, 1 + sizeof big);
    pair_close(&p);
}

static int ids_of(lbm_context_t *ctx, lbm_src_t *const *srcs, int count, unsigned *out)
{
    lbm_transport_source_info_t info;
    for (int i = 0; i < count; i++) {
        lbm_src_transport_stats_t stats;
        MUST(lbm_src_retrieve_transport_stats(srcs[i], &stats));
        MUST(lbm_transport_source_parse(stats.source, &info, sizeof info));
        out[i] = info.transport_id;
    }
    return count;
}

TEST(ids_come_from_the_range_in_turn_and_explicit_ones_stay_outside)
{
    TEST_NEEDS_NET();
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "transport_lbtipc_id_low", "20001"));
    MUST(lbm_context_attr_str_setopt(attr, "transport_lbtipc_id_high", "20002"));
    lbm_context_t *ctx = net_context_with(attr), *other = net_context();
    lbm_src_t *srcs[6];
    srcs[0] = shm_source(ctx, "ipc/id/0");
    srcs[1] = shm_source_option(ctx, "ipc/id/1", "transport_lbtipc_id", "20010");
    srcs[2] = shm_source(ctx, "ipc/id/2");
    srcs[3] = shm_source(ctx, "ipc/id/3");
    srcs[4] = shm_source_option(ctx, "ipc/id/4", "transport_lbtipc_id", "20010");
    srcs[5] = shm_source(ctx, "ipc/id/5");
    unsigned ids[6];
    ids_of(ctx, srcs, 6, ids);
    CHECK_EQ(ids[0], 20001);
    CHECK_EQ(ids[1], 20010);
    CHECK_EQ(ids[2], 20002);
    CHECK_EQ(ids[3], 20001);
    CHECK_EQ(ids[4], 20010);
    CHECK_EQ(ids[5], 20002);
    lbm_src_t *twin = shm_source(other, "ipc/id/0");
    unsigned id;
    ids_of(other, &twin, 1, &id);
    CHECK_EQ(id, 20001);
    CHECK_EQ(um_test_shm_count(), 4);
    MUST(lbm_src_delete(twin));
    for (int i = 0; i < 6; i++) {
        MUST(lbm_src_delete(srcs[i]));
    }
    CHECK_EQ(um_test_shm_count(), 0);
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(other));
}

TEST(a_range_upside_down_and_the_id_0_are_refused)
{
    TEST_NEEDS_NET();
    lbm_context_attr_t *attr = net_context_attr();
    lbm_context_t *ctx;
    MUST(lbm_context_attr_str_setopt(attr, "transport_lbtipc_id_low", "7"));
    MUST(lbm_context_attr_str_setopt(attr, "transport_lbtipc_id_high", "6"));
    CHECK_EQ(lbm_context_create(&ctx, attr, NULL, NULL), -1);
    CHECK_CONTAINS(lbm_errmsg(), "transport_lbtipc_id_low (7)");
    MUST(lbm_context_attr_str_setopt(attr, "transport_lbtipc_id_low", "0"));
    CHECK_EQ(lbm_context_create(&ctx, attr, NULL, NULL), -1);
    CHECK_CONTAINS(lbm_errmsg(), "transport_lbtipc_id_low 0");
    lbm_context_attr_delete(attr);
}

TEST(f19_windows_beyond_reason_are_refused_at_once)
{
    TEST_NEEDS_NET();
    check_windows_beyond_reason_are_refused("transport_lbtipc_transmission_window_size");
}

TEST(a_second_source_with_other_options_is_warned_and_shares_the_session)
{
    TEST_NEEDS_NET();
    log_start();
    lbm_context_t *ctx = net_context();
    lbm_src_t *a = shm_source_option(ctx, "ipc/warn/a", "transport_lbtipc_id", "77");
    lbm_src_topic_attr_t *attr = shm_attr();
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_lbtipc_id", "77"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_lbtipc_sm_interval", "1234"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_lbtipc_transmission_window_size", "100000"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_lbtipc_behavior", "receiver_paced"));
    lbm_src_t *b = shm_source_with(ctx, "ipc/warn/b", attr, NULL, NULL);
    CHECK(was_logged("Core-5688-1302"));
    CHECK(was_logged("Core-5688-1303"));
    CHECK(was_logged("transport_lbtipc_behavior 1 is ignored"));
    CHECK_EQ(um_test_shm_count(), 1);
    MUST(lbm_src_delete(a));
    MUST(lbm_src_delete(b));
    MUST(lbm_context_delete(ctx));
    lbm_log(NULL, NULL);
}

/* ---- events ---- */

struct events {
    pthread_mutex_t lock;
    int connects, disconnects, wakeups;
    char client[128];
};

static int on_src_event(lbm_src_t *src, int event, void *data, void *clientd)
{
    struct events *e = clientd;
    pthread_mutex_lock(&e->lock);
    e->connects += event == LBM_SRC_EVENT_CONNECT;
    e->disconnects += event == LBM_SRC_EVENT_DISCONNECT;
    e->wakeups += event == LBM_SRC_EVENT_WAKEUP;
    if (event == LBM_SRC_EVENT_CONNECT) {
        snprintf(e->client, sizeof e->client, "%s", (const char *)data);
    }
    pthread_mutex_unlock(&e->lock);
    return 0;
}

/* One of the counters: the context's thread counts. */
static int counted(struct events *e, const int *what)
{
    pthread_mutex_lock(&e->lock);
    int count = *what;
    pthread_mutex_unlock(&e->lock);
    return count;
}

static bool wait_for(struct events *e, const int *what, int count)
{
    for (int i = 0; i < HANG_SECONDS * 1000; i++) {
        if (counted(e, what) >= count) {
            return true;
        }
        usleep(1000);
    }
    return false;
}

TEST(connect_and_disconnect_name_the_receiving_process)
{
    TEST_NEEDS_NET();
    struct events e = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct recorder rec = RECORDER_INIT;
    lbm_context_t *sctx = net_context(), *rctx = net_context();
    lbm_src_t *src = shm_source_with(sctx, "ipc/events", shm_attr(), on_src_event, &e);
    lbm_rcv_t *rcv = net_recording_receiver(rctx, "ipc/events", &rec);
    CHECK(wait_for(&e, &e.connects, 1));
    char pid[16];
    snprintf(pid, sizeof pid, ":%d", (int)getpid());
    CHECK(strncmp(e.client, "LBT-IPC:", 8) == 0);
    CHECK_CONTAINS(e.client, pid);
    net_send(src, "x"); /* after CONNECT nothing is missed */
    CHECK(recorder_wait(&rec, LBM_MSG_DATA, 1));
    CHECK(recorder_reads(&rec, "BOS 0=x "));
    lbm_src_t *late = shm_source_option(sctx, "ipc/events/late", "transport_lbtipc_id", "20001");
    (void)late; /* a second topic of the session */
    MUST(lbm_rcv_delete(rcv));
    CHECK(wait_for(&e, &e.disconnects, 1));
    CHECK_EQ(counted(&e, &e.connects), 1);
    MUST(lbm_src_delete(src));
    MUST(lbm_src_delete(late));
    MUST(lbm_context_delete(rctx));
    MUST(lbm_context_delete(sctx));
}

/* ---- slow receivers ---- */

TEST(source_paced_a_stopped_receiver_never_holds_the_source_up_and_every_overwrite_is_reported_as_loss)
{
    TEST_NEEDS_NET();
    struct gate g = GATE_INIT;
    char bytes[MESSAGE];
    lbm_context_t *sctx = net_context(), *rctx = net_context();
    lbm_src_t *src = shm_source_option(sctx, "ipc/slow", "transport_lbtipc_transmission_window_size", "1048576");
    lbm_rcv_topic_attr_t *rattr;
    MUST(lbm_rcv_topic_attr_create(&rattr));
    MUST(lbm_rcv_topic_attr_str_setopt(rattr, "delivery_control_maximum_burst_loss", "100000000"));
    lbm_rcv_t *rcv = net_receiver(rctx, "ipc/slow", rattr, gated, &g, NULL);
    lbm_rcv_topic_attr_delete(rattr);
    MUST(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000));
    const unsigned count = 70000; /* 100 MB */
    for (unsigned n = 0; n < count; n++) {
        fill(bytes, sizeof bytes, n);
        MUST(lbm_src_send(src, bytes, sizeof bytes, LBM_SRC_NONBLOCK | (n == 0 ? LBM_MSG_FLUSH : 0))); /* not refused */
        CHECK(n != 0 || gate_entered(&g));
    }
    MUST(lbm_src_flush(src));
    gate_open(&g);
    CHECK(gate_wait(&g, count));
    CHECK_EQ(g.bad, 0);
    CHECK_EQ(g.wrong, 0);
    CHECK_EQ(g.bursts, 0);
    CHECK(g.lost > 1000);
    CHECK_EQ(g.data + g.lost, count);
    shm_end(rcv, src, rctx, sctx);
}

/* So many that the source has told where it stands, every 10 ms. */
static void wait_for_datagrams(lbm_context_t *ctx, lbm_ulong_t least)
{
    lbm_rcv_transport_stats_t stats[1];
    for (int i = 0; i < HANG_SECONDS * 1000; i++) {
        int count = 1;
        MUST(lbm_context_retrieve_rcv_transport_stats(ctx, &count, stats));
        if (count == 1 && stats[0].transport.lbtipc.msgs_rcved >= least) {
            return;
        }
        usleep(1000);
    }
    CHECK(!"the source told nothing");
}

/* The context's thread stands in a callback of one topic while the first message of another goes round the ring twice.
 */
TEST(f20_a_first_message_that_the_source_overran_is_reported_as_lost)
{
    TEST_NEEDS_NET();
    static char big[50000000];
    struct gate g = GATE_INIT;
    struct recorder rec = RECORDER_INIT;
    lbm_context_t *sctx = net_context(), *rctx = net_context();
    lbm_src_t *held = shm_source_option(sctx, "ipc/f20/held", "transport_lbtipc_id", "20001");
    lbm_src_topic_attr_t *attr = shm_attr();
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_lbtipc_id", "20001"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_topic_sequence_number_info_interval", "10"));
    lbm_src_t *src = shm_source_with(sctx, "ipc/f20/big", attr, NULL, NULL);
    lbm_rcv_t *held_rcv = net_receiver(rctx, "ipc/f20/held", NULL, gated, &g, NULL);
    lbm_rcv_topic_attr_t *rattr; /* a slow reader is overtaken again: more fragments than a burst are missing then */
    MUST(lbm_rcv_topic_attr_create(&rattr));
    MUST(lbm_rcv_topic_attr_str_setopt(rattr, "delivery_control_maximum_burst_loss", "100000000"));
    lbm_rcv_t *rcv = net_receiver(rctx, "ipc/f20/big", rattr, recorder_cb, &rec, NULL);
    lbm_rcv_topic_attr_delete(rattr);
    MUST(um_rcv_wait_ready(held_rcv, 1, HANG_SECONDS * 1000));
    CHECK(recorder_wait(&rec, LBM_MSG_BOS, 1));
    MUST(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000));
    wait_for_datagrams(rctx, 6);
    net_send(held, "x");
    CHECK(gate_entered(&g));
    MUST(lbm_src_send(src, big, sizeof big, LBM_SRC_BLOCK | LBM_MSG_FLUSH));
    gate_open(&g);
    CHECK(recorder_wait(&rec, LBM_MSG_UNRECOVERABLE_LOSS, 1));
    CHECK_EQ(recorder_count(&rec, LBM_MSG_DATA), 0);
    MUST(lbm_rcv_delete(held_rcv));
    MUST(lbm_src_delete(held));
    shm_end(rcv, src, rctx, sctx);
}

TEST(behind_a_router_loss_is_declared_only_after_the_recovery_timeout)
{
    TEST_NEEDS_NET();
    struct gate g = GATE_INIT;
    char bytes[MESSAGE];
    lbm_context_t *sctx = net_context(), *rctx = net_context();
    lbm_src_t *src = shm_source_option(sctx, "ipc/router", "transport_lbtipc_transmission_window_size", "262144");
    lbm_rcv_topic_attr_t *rattr;
    MUST(lbm_rcv_topic_attr_create(&rattr));
    MUST(lbm_rcv_topic_attr_str_setopt(rattr, "transport_lbtipc_dro_loss_recovery_timeout", "500"));
    MUST(lbm_rcv_topic_attr_str_setopt(rattr, "delivery_control_maximum_burst_loss", "100000000"));
    lbm_rcv_t *rcv = net_receiver(rctx, "ipc/router", rattr, gated, &g, NULL);
    lbm_rcv_topic_attr_delete(rattr);
    MUST(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000));
    for (unsigned n = 0; n < 1000; n++) {
        fill(bytes, sizeof bytes, n);
        MUST(lbm_src_send(src, bytes, sizeof bytes, n == 0 ? LBM_MSG_FLUSH : 0));
        CHECK(n != 0 || gate_entered(&g));
    }
    MUST(lbm_src_flush(src));
    uint64_t begun = um_clock_ns();
    gate_open(&g);
    CHECK(gate_wait(&g, 1000));
    CHECK(um_clock_ns() - begun >= 400 * UM_NS_PER_MS);
    CHECK(g.lost > 0);
    CHECK_EQ(g.data + g.lost, 1000);
    shm_end(rcv, src, rctx, sctx);
}

static lbm_src_t *paced_source(lbm_context_t *ctx, const char *name, lbm_src_cb_proc proc, void *clientd)
{
    lbm_src_topic_attr_t *attr = shm_attr();
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_lbtipc_behavior", "receiver_paced"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_lbtipc_transmission_window_size", "262144"));
    return shm_source_with(ctx, name, attr, proc, clientd);
}

TEST(receiver_paced_a_stopped_receiver_stops_the_source_and_nothing_is_lost)
{
    TEST_NEEDS_NET();
    struct gate g = GATE_INIT;
    lbm_context_t *sctx = net_context(), *rctx = net_context();
    lbm_src_t *src = paced_source(sctx, "ipc/paced", NULL, NULL);
    lbm_rcv_t *rcv = net_receiver(rctx, "ipc/paced", NULL, gated, &g, NULL);
    MUST(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000));
    struct sender s = {.src = src, .count = 20000};
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, send_all, &s), 0);
    CHECK(gate_entered(&g));
    usleep(300000);
    CHECK(atomic_load(&s.sent) < 1000); /* the ring and the batches in front of it */
    gate_open(&g);
    CHECK(gate_wait(&g, s.count));
    pthread_join(thread, NULL);
    CHECK_EQ(s.rc, 0);
    CHECK_EQ(g.data, s.count);
    CHECK_EQ(g.lost + g.bursts + g.bad + g.wrong, 0);
    shm_end(rcv, src, rctx, sctx);
}

TEST(receiver_paced_a_non_blocking_send_is_refused_and_woken_up)
{
    TEST_NEEDS_NET();
    struct gate g = GATE_INIT;
    struct events e = {.lock = PTHREAD_MUTEX_INITIALIZER};
    char bytes[MESSAGE];
    lbm_context_t *sctx = net_context(), *rctx = net_context();
    lbm_src_t *src = paced_source(sctx, "ipc/nonblock", on_src_event, &e);
    lbm_rcv_t *rcv = net_receiver(rctx, "ipc/nonblock", NULL, gated, &g, NULL);
    MUST(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000));
    fill(bytes, sizeof bytes, 0);
    MUST(lbm_src_send(src, bytes, sizeof bytes, LBM_MSG_FLUSH));
    CHECK(gate_entered(&g)); /* what comes before messages has been read: that would make room, too */
    unsigned sent = 1;
    for (;;) {
        fill(bytes, sizeof bytes, sent);
        if (lbm_src_send(src, bytes, sizeof bytes, LBM_SRC_NONBLOCK) != 0) {
            break;
        }
        CHECK(++sent < 100000);
    }
    CHECK_EQ(lbm_errnum(), LBM_EWOULDBLOCK);
    CHECK_CONTAINS(lbm_errmsg(), "transport_lbtipc_transmission_window_size");
    usleep(50000);
    CHECK_EQ(counted(&e, &e.wakeups), 0);
    gate_open(&g);
    CHECK(wait_for(&e, &e.wakeups, 1));
    fill(bytes, sizeof bytes, sent);
    MUST(lbm_src_send(src, bytes, sizeof bytes, LBM_SRC_NONBLOCK | LBM_MSG_FLUSH));
    CHECK(gate_wait(&g, sent + 1));
    CHECK_EQ(g.data, sent + 1);
    CHECK_EQ(g.lost + g.bursts + g.bad + g.wrong, 0);
    shm_end(rcv, src, rctx, sctx);
}

TEST(a_sender_that_waits_is_woken_with_einval_when_its_source_is_deleted)
{
    TEST_NEEDS_NET();
    struct gate g = GATE_INIT;
    lbm_context_t *sctx = net_context(), *rctx = net_context();
    lbm_src_t *src = paced_source(sctx, "ipc/deleted", NULL, NULL);
    lbm_rcv_t *rcv = net_receiver(rctx, "ipc/deleted", NULL, gated, &g, NULL);
    MUST(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000));
    struct sender s = {.src = src, .count = 1000000};
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, send_all, &s), 0);
    wait_until_it_waits(&s);
    MUST(lbm_src_delete(src));
    pthread_join(thread, NULL);
    CHECK_EQ(s.rc, -1);
    CHECK_EQ(s.errnum, LBM_EINVAL);
    gate_open(&g);
    shm_end(rcv, NULL, rctx, sctx);
    CHECK_EQ(um_test_shm_count(), 0);
}

static lbm_src_t *asked;
static atomic_int answers;

static int ask_the_source(int level, const char *message, void *clientd)
{
    um_src_stats_t stats;
    if (strstr(message, "Core-5688-655") != NULL && um_src_stats(asked, &stats) == 0) {
        bool right = strstr(message, "of process") != NULL && stats.blocked_by_pid == (uint32_t)getpid();
        atomic_fetch_add(&answers, right);
    }
    return 0;
}

TEST(a_log_callback_may_ask_the_source_that_the_line_speaks_of)
{
    TEST_NEEDS_NET();
    struct gate g = GATE_INIT;
    lbm_context_t *sctx = net_context(), *rctx = net_context();
    asked = paced_source(sctx, "ipc/log", NULL, NULL);
    lbm_rcv_t *rcv = net_receiver(rctx, "ipc/log", NULL, gated, &g, NULL);
    MUST(um_src_wait_receivers(asked, 1, HANG_SECONDS * 1000));
    struct sender s = {.src = asked, .count = 2000};
    pthread_t thread;
    lbm_log(ask_the_source, NULL);
    CHECK_EQ(pthread_create(&thread, NULL, send_all, &s), 0);
    for (int i = 0; i < HANG_SECONDS * 1000 && atomic_load(&answers) == 0; i++) {
        usleep(1000);
    }
    lbm_log(NULL, NULL);
    CHECK_EQ(atomic_load(&answers), 1);
    gate_open(&g);
    CHECK(gate_wait(&g, s.count));
    pthread_join(thread, NULL);
    shm_end(rcv, asked, rctx, sctx);
}

/* ---- the slots ---- */

TEST(more_receiving_contexts_than_slots_are_told_and_join_when_one_is_free)
{
    TEST_NEEDS_NET();
    log_start();
    lbm_context_t *sctx = net_context(), *rctx[3];
    struct recorder rec[3] = {RECORDER_INIT, RECORDER_INIT, RECORDER_INIT};
    lbm_rcv_t *rcv[3];
    lbm_src_topic_attr_t *attr = shm_attr();
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_lbtipc_maximum_receivers_per_transport", "2"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "resolver_advertisement_sustain_interval", "100"));
    lbm_src_t *src = shm_source_with(sctx, "ipc/slots", attr, NULL, NULL);
    for (int i = 0; i < 3; i++) {
        rctx[i] = net_context();
        rcv[i] = net_recording_receiver(rctx[i], "ipc/slots", &rec[i]);
        if (i < 2) {
            CHECK(recorder_wait(&rec[i], LBM_MSG_BOS, 1));
        }
    }
    for (int i = 0; i < HANG_SECONDS * 100 && !was_logged("no more free receiver slots"); i++) {
        usleep(10000);
    }
    CHECK(was_logged("no more free receiver slots"));
    net_send(src, "a");
    CHECK(recorder_wait(&rec[0], LBM_MSG_DATA, 1));
    CHECK(recorder_wait(&rec[1], LBM_MSG_DATA, 1));
    CHECK_EQ(recorder_count(&rec[2], LBM_MSG_BOS), 0);
    MUST(lbm_rcv_delete(rcv[0]));
    CHECK(recorder_wait(&rec[2], LBM_MSG_BOS, 1));
    net_send(src, "b");
    CHECK(recorder_wait(&rec[1], LBM_MSG_DATA, 2));
    CHECK(recorder_wait(&rec[2], LBM_MSG_DATA, 1));
    MUST(lbm_rcv_delete(rcv[1]));
    MUST(lbm_rcv_delete(rcv[2]));
    MUST(lbm_src_delete(src));
    for (int i = 0; i < 3; i++) {
        MUST(lbm_context_delete(rctx[i]));
    }
    MUST(lbm_context_delete(sctx));
    lbm_log(NULL, NULL);
}

TEST(many_topics_share_a_session_and_one_context_takes_one_slot)
{
    TEST_NEEDS_NET();
    enum { TOPICS = 12 };
    lbm_context_t *sctx = net_context(), *rctx = net_context();
    lbm_src_t *src[TOPICS];
    lbm_rcv_t *rcv[TOPICS];
    static struct recorder rec[TOPICS];
    for (int i = 0; i < TOPICS; i++) {
        char name[32];
        snprintf(name, sizeof name, "ipc/many/%d", i);
        rec[i] = (struct recorder)RECORDER_INIT;
        src[i] = shm_source(sctx, name);
        rcv[i] = net_recording_receiver(rctx, name, &rec[i]);
    }
    for (int i = 0; i < TOPICS; i++) {
        CHECK(recorder_wait(&rec[i], LBM_MSG_BOS, 1));
        CHECK_EQ(um_src_wait_receivers(src[i], 1, HANG_SECONDS * 1000), 0);
    }
    for (int k = 0; k < 100; k++) {
        for (int i = 0; i < TOPICS; i++) {
            MUST(lbm_src_send(src[i], "x", 1, k % 10 == 9 ? LBM_MSG_FLUSH : 0));
        }
    }
    lbm_src_transport_stats_t stats;
    for (int i = 0; i < TOPICS; i++) {
        CHECK(recorder_wait(&rec[i], LBM_MSG_DATA, 100));
        MUST(lbm_src_retrieve_transport_stats(src[i], &stats));
        CHECK_EQ(stats.transport.lbtipc.num_clients, 1);
    }
    for (int i = 0; i < TOPICS; i++) {
        MUST(lbm_rcv_delete(rcv[i]));
        MUST(lbm_src_delete(src[i]));
    }
    MUST(lbm_context_delete(rctx));
    MUST(lbm_context_delete(sctx));
    CHECK_EQ(um_test_shm_count(), 0);
}

/* ---- statistics ---- */

TEST(statistics_of_both_sides_agree)
{
    TEST_NEEDS_NET();
    struct pair p;
    pair_open(&p, "ipc/stats");
    for (int i = 0; i < 10; i++) {
        net_send(p.src, "0123456789");
    }
    CHECK(recorder_wait(&p.rec, LBM_MSG_DATA, 10));
    lbm_src_transport_stats_t s;
    lbm_rcv_transport_stats_t r[4];
    int count = 4;
    MUST(lbm_src_retrieve_transport_stats(p.src, &s));
    MUST(lbm_context_retrieve_rcv_transport_stats(p.rctx, &count, r));
    CHECK_EQ(count, 1);
    CHECK_EQ(s.type, LBM_TRANSPORT_STAT_LBTIPC);
    CHECK_EQ(r[0].type, LBM_TRANSPORT_STAT_LBTIPC);
    CHECK_STR(s.source, r[0].source);
    CHECK_EQ(s.transport.lbtipc.num_clients, 1);
    CHECK(s.transport.lbtipc.msgs_sent >= 10);
    CHECK_EQ(r[0].transport.lbtipc.lbm_msgs_rcved, 10);
    CHECK(r[0].transport.lbtipc.msgs_rcved >= 10);
    CHECK(r[0].transport.lbtipc.bytes_rcved >= 10 * (10 + 12));
    CHECK(r[0].transport.lbtipc.bytes_rcved <= s.transport.lbtipc.bytes_sent);
    CHECK_EQ(r[0].transport.lbtipc.lbm_msgs_no_topic_rcved, 0);
    CHECK_EQ(r[0].transport.lbtipc.lbm_reqs_rcved, 0);
    MUST(lbm_src_reset_transport_stats(p.src));
    MUST(lbm_context_reset_rcv_transport_stats(p.rctx));
    MUST(lbm_src_retrieve_transport_stats(p.src, &s));
    count = 4;
    MUST(lbm_context_retrieve_rcv_transport_stats(p.rctx, &count, r));
    CHECK_EQ(s.transport.lbtipc.msgs_sent, 0);
    CHECK_EQ(s.transport.lbtipc.num_clients, 1);
    CHECK_EQ(r[0].transport.lbtipc.msgs_rcved, 0);
    CHECK_EQ(r[0].transport.lbtipc.lbm_msgs_rcved, 0);
    pair_close(&p);
}

/* ---- how it is received ---- */

static void exchange(lbm_context_t *rctx, const char *name)
{
    struct pair p;
    pair_open_with(&p, net_context(), rctx, name, shm_attr());
    for (int i = 0; i < 1000; i++) {
        MUST(lbm_src_send(p.src, "x", 1, i % 3 == 0 ? LBM_MSG_FLUSH : 0));
    }
    MUST(lbm_src_flush(p.src));
    CHECK(recorder_wait(&p.rec, LBM_MSG_DATA, 1000));
    CHECK(pthread_equal(p.rec.thread, pthread_self()) == 0);
    pair_close(&p);
}

TEST(a_busy_waiting_thread_receives_as_a_pending_one)
{
    TEST_NEEDS_NET();
    exchange(context_option("transport_lbtipc_receiver_thread_behavior", "busy_wait"), "ipc/busy");
    exchange(context_option("transport_lbtipc_pend_behavior_linger_loop_count", "100"), "ipc/linger");
    exchange(context_option("transport_lbtipc_recycle_receive_buffers", "1"), "ipc/recycle");
}

TEST(a_pending_thread_costs_nothing_while_nothing_comes)
{
    TEST_NEEDS_NET();
    struct pair p;
    struct rusage before, after;
    pair_open(&p, "ipc/idle");
    getrusage(RUSAGE_SELF, &before);
    usleep(1000000);
    getrusage(RUSAGE_SELF, &after);
    long us =
        (after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec - before.ru_stime.tv_sec) * 1000000L +
        after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec - before.ru_stime.tv_usec;
    CHECK(us < 200000); /* a spinning thread takes all of a second */
    pair_close(&p);
}

TEST(in_sequential_mode_the_application_receives)
{
    TEST_NEEDS_NET();
    lbm_context_t *sctx = net_context();
    lbm_context_t *rctx = context_option("transport_lbtipc_receiver_operational_mode", "sequential");
    struct recorder rec = RECORDER_INIT;
    lbm_src_t *src = shm_source(sctx, "ipc/sequential");
    lbm_rcv_t *rcv = net_recording_receiver(rctx, "ipc/sequential", &rec);
    MUST(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000));
    net_send(src, "a");
    usleep(50000);
    CHECK_EQ(recorder_count(&rec, LBM_MSG_DATA), 0); /* nobody else does it */
    while (recorder_count(&rec, LBM_MSG_DATA) < 1) {
        MUST(lbm_context_process_lbtipc_messages(rctx, 100, 1));
    }
    CHECK(pthread_equal(rec.thread, pthread_self()));
    net_send(src, "b");
    MUST(lbm_context_process_lbtipc_messages(rctx, 0, 1000)); /* 0: without waiting */
    CHECK(recorder_reads(&rec, "BOS 0=a 1=b "));
    MUST(lbm_context_process_lbtipc_messages(rctx, 0, 10)); /* returns whether or not data came */
    MUST(lbm_src_delete(src));
    while (recorder_count(&rec, LBM_MSG_EOS) < 1) {
        MUST(lbm_context_process_lbtipc_messages(rctx, 100, 1));
    }
    shm_end(rcv, NULL, rctx, sctx);
}

static void *unblock_later(void *arg)
{
    usleep(100000);
    MUST(lbm_context_lbtipc_unblock(arg));
    return NULL;
}

TEST(unblock_ends_the_call_under_way_or_the_next_one)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = context_option("transport_lbtipc_receiver_operational_mode", "sequential");
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, unblock_later, ctx), 0);
    MUST(lbm_context_process_lbtipc_messages(ctx, 100000, 0)); /* without end */
    pthread_join(thread, NULL);
    MUST(lbm_context_lbtipc_unblock(ctx));
    MUST(lbm_context_process_lbtipc_messages(ctx, 0, 0));
    MUST(lbm_context_delete(ctx));
    lbm_context_t *embedded = net_context();
    CHECK_EQ(lbm_context_process_lbtipc_messages(embedded, 0, 1), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_CONTAINS(lbm_errmsg(), "transport_lbtipc_receiver_operational_mode");
    CHECK_EQ(lbm_context_lbtipc_unblock(embedded), -1);
    MUST(lbm_context_delete(embedded));
}

TEST(a_sequential_context_that_nobody_processes_receives_all_the_same)
{
    TEST_NEEDS_NET();
    lbm_context_t *sctx = net_context();
    lbm_context_t *rctx = context_option("operational_mode", "sequential");
    struct recorder rec = RECORDER_INIT;
    lbm_src_t *src = shm_source(sctx, "ipc/unpumped");
    lbm_rcv_t *rcv = net_recording_receiver(rctx, "ipc/unpumped", &rec);
    for (int i = 0; i < HANG_SECONDS * 100 && recorder_count(&rec, LBM_MSG_BOS) == 0; i++) {
        MUST(lbm_context_process_events(rctx, 10)); /* only until it is resolved */
    }
    CHECK_EQ(recorder_count(&rec, LBM_MSG_BOS), 1);
    net_send(src, "a");
    CHECK(recorder_wait(&rec, LBM_MSG_DATA, 1));
    shm_end(rcv, src, rctx, sctx);
}

/* ---- callbacks ---- */

struct echo {
    lbm_src_t *src;
    lbm_context_t *ctx;
    atomic_int create_errnum;
    atomic_int echoed;
};

static int echo_cb(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct echo *e = clientd;
    if (msg->type == LBM_MSG_DATA) {
        lbm_context_t *ctx;
        if (lbm_context_create(&ctx, NULL, NULL, NULL) != 0) {
            atomic_store(&e->create_errnum, lbm_errnum());
        }
        MUST(lbm_src_send(e->src, msg->data, msg->len, LBM_MSG_FLUSH | LBM_SRC_NONBLOCK));
        atomic_fetch_add(&e->echoed, 1);
    }
    return 0;
}

TEST(a_callback_may_send_and_is_under_the_rules_of_the_context_thread)
{
    TEST_NEEDS_NET();
    struct recorder rec = RECORDER_INIT;
    lbm_context_t *a = net_context(), *b = net_context();
    lbm_src_t *ping = shm_source(a, "ipc/ping");
    struct echo e = {.src = shm_source(b, "ipc/pong"), .ctx = b};
    lbm_rcv_t *pinged = net_receiver(b, "ipc/ping", NULL, echo_cb, &e, NULL);
    lbm_rcv_t *ponged = net_recording_receiver(a, "ipc/pong", &rec);
    MUST(um_src_wait_receivers(ping, 1, HANG_SECONDS * 1000));
    MUST(um_src_wait_receivers(e.src, 1, HANG_SECONDS * 1000));
    for (int i = 1; i <= 200; i++) {
        net_send(ping, "p");
        CHECK(recorder_wait(&rec, LBM_MSG_DATA, i));
    }
    CHECK_EQ(atomic_load(&e.create_errnum), LBM_EOP);
    MUST(lbm_rcv_delete(pinged));
    MUST(lbm_rcv_delete(ponged));
    MUST(lbm_src_delete(ping));
    MUST(lbm_src_delete(e.src));
    MUST(lbm_context_delete(a));
    MUST(lbm_context_delete(b));
}

struct keeper {
    pthread_mutex_t lock;
    lbm_msg_t *kept[100];
    int count;
};

static int keep_cb(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct keeper *k = clientd;
    pthread_mutex_lock(&k->lock);
    if (msg->type == LBM_MSG_DATA && k->count < 100) {
        MUST(lbm_msg_retain(msg));
        k->kept[k->count++] = msg;
    }
    pthread_mutex_unlock(&k->lock);
    return 0;
}

static int kept(struct keeper *k)
{
    pthread_mutex_lock(&k->lock);
    int count = k->count;
    pthread_mutex_unlock(&k->lock);
    return count;
}

TEST(retained_messages_outlive_the_ring_and_the_source)
{
    TEST_NEEDS_NET();
    struct keeper k = {.lock = PTHREAD_MUTEX_INITIALIZER};
    char bytes[MESSAGE];
    lbm_context_t *sctx = net_context(), *rctx = net_context();
    lbm_src_t *src = shm_source_option(sctx, "ipc/retain", "transport_lbtipc_transmission_window_size", "131072");
    lbm_rcv_t *rcv = net_receiver(rctx, "ipc/retain", NULL, keep_cb, &k, NULL);
    MUST(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000));
    unsigned n = 0;
    for (; n < HANG_SECONDS * 10000 && kept(&k) < 100; n++) { /* a late receiver misses some: those after them count */
        fill(bytes, sizeof bytes, n);
        MUST(lbm_src_send(src, bytes, sizeof bytes, LBM_MSG_FLUSH));
        usleep(100);
    }
    for (unsigned end = n + 5000; n < end; n++) { /* many times round the ring */
        fill(bytes, sizeof bytes, n);
        MUST(lbm_src_send(src, bytes, sizeof bytes, 0));
    }
    shm_end(rcv, src, rctx, sctx);
    CHECK_EQ(k.count, 100);
    for (int i = 0; i < k.count; i++) {
        CHECK(is_filled(k.kept[i]->data, k.kept[i]->len, k.kept[i]->sequence_number));
        MUST(lbm_msg_delete(k.kept[i]));
    }
}

static int leave_cb(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    return 0;
}

TEST(receivers_join_and_leave_while_messages_flow)
{
    TEST_NEEDS_NET();
    lbm_context_t *sctx = net_context(), *rctx = net_context();
    lbm_src_t *src = paced_source(sctx, "ipc/storm", NULL, NULL);
    struct sender s = {.src = src, .count = 300000};
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, send_all, &s), 0);
    for (int i = 0; i < 100; i++) {
        struct gate g = GATE_INIT;
        g.open = true;
        lbm_rcv_t *rcv = net_receiver(rctx, "ipc/storm", NULL, gated, &g, NULL);
        lbm_rcv_t *idle = net_receiver(rctx, "ipc/storm", NULL, leave_cb, NULL, NULL);
        if (i % 4 == 0 && atomic_load(&s.sent) < s.count - 10000) {
            gate_entered(&g);
        }
        MUST(lbm_rcv_delete(rcv));
        MUST(lbm_rcv_delete(idle));
        CHECK_EQ(g.lost + g.bursts + g.bad + g.wrong, 0);
    }
    pthread_join(thread, NULL);
    CHECK_EQ(s.rc, 0);
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(rctx));
    MUST(lbm_context_delete(sctx));
    CHECK_EQ(um_test_shm_count(), 0);
}

TEST(silence_of_a_living_source_ends_the_session_and_its_return_begins_another)
{
    TEST_NEEDS_NET();
    lbm_context_t *sctx = net_context(), *rctx = net_context();
    struct recorder rec = RECORDER_INIT;
    lbm_src_topic_attr_t *attr = shm_attr();
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_lbtipc_sm_interval", "600000"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "resolver_advertisement_sustain_interval", "200"));
    lbm_src_t *src = shm_source_with(sctx, "ipc/silence", attr, NULL, NULL);
    lbm_rcv_topic_attr_t *rattr;
    MUST(lbm_rcv_topic_attr_create(&rattr));
    MUST(lbm_rcv_topic_attr_str_setopt(rattr, "transport_lbtipc_activity_timeout", "1000"));
    lbm_rcv_t *rcv = net_receiver(rctx, "ipc/silence", rattr, recorder_cb, &rec, NULL);
    lbm_rcv_topic_attr_delete(rattr);
    CHECK(recorder_wait(&rec, LBM_MSG_BOS, 1));
    CHECK(recorder_wait(&rec, LBM_MSG_EOS, 1));
    CHECK(recorder_wait(&rec, LBM_MSG_BOS, 2)); /* the next advertisement */
    for (int i = 0; i < HANG_SECONDS * 100 && recorder_count(&rec, LBM_MSG_DATA) == 0; i++) {
        net_send(src, "a"); /* who is late by a second finds the session silent again */
        usleep(10000);
    }
    CHECK(recorder_wait(&rec, LBM_MSG_DATA, 1));
    shm_end(rcv, src, rctx, sctx);
}

TEST(session_messages_keep_a_silent_session_alive)
{
    TEST_NEEDS_NET();
    lbm_context_t *sctx = net_context(), *rctx = net_context();
    struct recorder rec = RECORDER_INIT;
    lbm_src_t *src = shm_source_option(sctx, "ipc/sm", "transport_lbtipc_sm_interval", "100");
    lbm_rcv_topic_attr_t *rattr;
    MUST(lbm_rcv_topic_attr_create(&rattr));
    MUST(lbm_rcv_topic_attr_str_setopt(rattr, "transport_lbtipc_activity_timeout", "5000"));
    lbm_rcv_t *rcv = net_receiver(rctx, "ipc/sm", rattr, recorder_cb, &rec, NULL);
    lbm_rcv_topic_attr_delete(rattr);
    CHECK(recorder_wait(&rec, LBM_MSG_BOS, 1));
    usleep(8000000);
    CHECK_EQ(recorder_count(&rec, LBM_MSG_EOS), 0);
    shm_end(rcv, src, rctx, sctx);
}

/* ---- where the receive thread runs ---- */

struct placed {
    atomic_int cpus; /* that the thread may run on; 0: no message yet */
};

static int where_cb(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    cpu_set_t set;
    struct placed *p = clientd;
    if (msg->type == LBM_MSG_DATA && sched_getaffinity(0, sizeof set, &set) == 0) {
        atomic_store(&p->cpus, CPU_COUNT(&set));
    }
    return 0;
}

static int cpus_of_receiver(const char *cpu)
{
    struct placed p = {0};
    lbm_context_t *sctx = net_context(), *rctx = context_option("um_lbtipc_receiver_thread_cpu", cpu);
    lbm_src_t *src = shm_source(sctx, "ipc/cpu");
    lbm_rcv_t *rcv = net_receiver(rctx, "ipc/cpu", NULL, where_cb, &p, NULL);
    MUST(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000));
    net_send(src, "x");
    for (int i = 0; i < HANG_SECONDS * 1000 && atomic_load(&p.cpus) == 0; i++) {
        usleep(1000);
    }
    shm_end(rcv, src, rctx, sctx);
    return atomic_load(&p.cpus);
}

TEST(the_receive_thread_can_be_kept_on_one_processor)
{
    TEST_NEEDS_NET();
    cpu_set_t all;
    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    CHECK_EQ(cpus_of_receiver("-1"), CPU_COUNT(&all));
    int first = 0;
    while (!CPU_ISSET(first, &all)) {
        first++;
    }
    char cpu[16];
    snprintf(cpu, sizeof cpu, "%d", first);
    CHECK_EQ(cpus_of_receiver(cpu), 1);
    log_start();
    CHECK_EQ(cpus_of_receiver("4095"), CPU_COUNT(&all)); /* there is none: told, and received all the same */
    CHECK(was_logged("um_lbtipc_receiver_thread_cpu 4095"));
    lbm_log(NULL, NULL);
}
