/* LBT-SMX through the public interface, in one process: sources, receivers,
 * buffers in shared memory, the rules of ids and windows, refusals, statistics,
 * the end of a session. Resolution runs on a private loopback network. */
#include <stdatomic.h>
#include <unistd.h>

#define SHM_TRANSPORT "lbtsmx"
#include "um_test_shm_session.h"

#include "core/um_source.h"
#include "transport/shm/um_shm_segment.h"
#include "transport/smx/um_smx_src_session.h"

static void native_send(lbm_src_t *src, const char *text)
{
    void *buffer;
    MUST(lbm_src_buff_acquire(src, &buffer, strlen(text), LBM_SRC_BLOCK));
    memcpy(buffer, text, strlen(text));
    MUST(lbm_src_buffs_complete(src));
}

TEST(messages_sent_either_way_arrive_in_order_and_eos_follows_the_source)
{
    TEST_NEEDS_NET();
    struct pair p;
    int before = um_test_shm_count();
    pair_open(&p, "smx/basic");
    net_send(p.src, "a");
    native_send(p.src, "b");
    MUST(lbm_src_send(p.src, "c", 1, LBM_SRC_BLOCK));
    native_send(p.src, "d");
    CHECK(recorder_wait(&p.rec, LBM_MSG_DATA, 4));
    CHECK(recorder_reads(&p.rec, "BOS 0=a 1=b 2=c 3=d "));
    CHECK(strncmp(p.rec.source, "LBT-SMX:", 8) == 0);
    CHECK_CONTAINS(p.rec.source, ":30001[");
    MUST(lbm_src_delete(p.src));
    p.src = NULL;
    CHECK(recorder_wait(&p.rec, LBM_MSG_EOS, 1));
    pair_close(&p);
    CHECK_EQ(um_test_shm_count(), before);
}

TEST(a_batch_of_buffers_arrives_when_it_is_completed)
{
    TEST_NEEDS_NET();
    struct pair p;
    void *buffer;
    pair_open(&p, "smx/batch");
    for (int i = 0; i < 4; i++) {
        MUST(lbm_src_buff_acquire(p.src, &buffer, 1, 0));
        *(char *)buffer = (char)('a' + i);
    }
    usleep(20000);
    CHECK_EQ(recorder_count(&p.rec, LBM_MSG_DATA), 0);
    MUST(lbm_src_buffs_complete_and_acquire(p.src, &buffer, 1, 0));
    CHECK(recorder_wait(&p.rec, LBM_MSG_DATA, 4));
    *(char *)buffer = 'x';
    MUST(lbm_src_buffs_cancel(p.src));
    native_send(p.src, "e");
    CHECK(recorder_wait(&p.rec, LBM_MSG_DATA, 5));
    CHECK(recorder_reads(&p.rec, "BOS 0=a 1=b 2=c 3=d 4=e "));
    pair_close(&p);
}

TEST(cancelling_takes_back_only_the_buffers_of_the_own_source)
{
    TEST_NEEDS_NET();
    lbm_context_t *sctx = net_context(), *rctx = net_context();
    struct recorder ra = RECORDER_INIT, rb = RECORDER_INIT;
    lbm_src_t *a = shm_source_option(sctx, "smx/cancel/a", "transport_lbtsmx_id", "40");
    lbm_src_t *b = shm_source_option(sctx, "smx/cancel/b", "transport_lbtsmx_id", "40");
    lbm_rcv_t *va = net_recording_receiver(rctx, "smx/cancel/a", &ra),
              *vb = net_recording_receiver(rctx, "smx/cancel/b", &rb);
    CHECK(recorder_wait(&ra, LBM_MSG_BOS, 1) && recorder_wait(&rb, LBM_MSG_BOS, 1));
    MUST(um_src_wait_receivers(a, 1, HANG_SECONDS * 1000));
    void *buffer;
    MUST(lbm_src_buff_acquire(a, &buffer, 1, 0));
    *(char *)buffer = '1';
    MUST(lbm_src_buff_acquire(b, &buffer, 1, 0));
    *(char *)buffer = '2';
    MUST(lbm_src_buff_acquire(a, &buffer, 1, 0));
    *(char *)buffer = '3';
    MUST(lbm_src_buffs_cancel(a));
    MUST(lbm_src_buffs_complete(b));
    native_send(a, "4");
    CHECK(recorder_wait(&ra, LBM_MSG_DATA, 1) && recorder_wait(&rb, LBM_MSG_DATA, 1));
    CHECK(recorder_reads(&ra, "BOS 0=4 "));
    CHECK(recorder_reads(&rb, "BOS 0=2 "));
    MUST(lbm_rcv_delete(va));
    MUST(lbm_rcv_delete(vb));
    MUST(lbm_src_delete(a));
    MUST(lbm_src_delete(b));
    MUST(lbm_context_delete(rctx));
    MUST(lbm_context_delete(sctx));
}

TEST(the_longest_message_is_the_datagram_less_16_bytes)
{
    TEST_NEEDS_NET();
    struct pair p;
    static char big[8200];
    void *buffer;
    pair_open(&p, "smx/longest");
    MUST(lbm_src_send(p.src, big, 8176, 0));
    MUST(lbm_src_buff_acquire(p.src, &buffer, 8176, 0));
    MUST(lbm_src_buffs_complete(p.src));
    CHECK_EQ(lbm_src_send(p.src, big, 8177, 0), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_CONTAINS(lbm_errmsg(), "8176");
    CHECK_EQ(lbm_src_buff_acquire(p.src, &buffer, 8177, 0), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    MUST(lbm_src_send(p.src, big, 0, 0));
    CHECK(recorder_wait(&p.rec, LBM_MSG_DATA, 3));
    CHECK_EQ(p.rec.bytes, 2 * 8176);
    pair_close(&p);
}

TEST(s4_statistics_name_the_process_that_blocks_the_source)
{
    TEST_NEEDS_NET();
    struct gate gate = GATE_INIT;
    lbm_context_t *sctx = net_context(), *rctx = net_context();
    lbm_src_t *src = shm_source(sctx, "smx/s4");
    lbm_rcv_t *rcv = net_receiver(rctx, "smx/s4", NULL, gated, &gate, NULL);
    MUST(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000));
    um_src_stats_t stats;
    MUST(um_src_stats(src, &stats));
    CHECK_EQ(stats.blocked_by_pid, 0);
    struct sender sender = {.src = src, .count = 500};
    pthread_t thread;
    pthread_create(&thread, NULL, send_all, &sender);
    for (int i = 0; i < HANG_SECONDS * 1000 && stats.blocked_by_pid == 0; i++) {
        usleep(1000);
        MUST(um_src_stats(src, &stats));
    }
    CHECK_EQ(stats.blocked_by_pid, getpid());
    gate_open(&gate);
    pthread_join(thread, NULL);
    CHECK_EQ(atomic_load(&sender.sent), 500);
    CHECK(gate_wait(&gate, 500));
    CHECK_EQ(gate.data, 500);
    CHECK_EQ(gate.bad + gate.wrong + gate.lost + gate.bursts, 0);
    MUST(um_src_stats(src, &stats));
    CHECK_EQ(stats.blocked_by_pid, 0);
    CHECK(stats.blocked_ns > 0);
    CHECK_EQ(stats.messages_sent, 500);
    shm_end(rcv, src, rctx, sctx);
}

static atomic_int wakeups;

static int count_wakeups(lbm_src_t *src, int event, void *ed, void *clientd)
{
    (void)src;
    (void)ed;
    (void)clientd;
    if (event == LBM_SRC_EVENT_WAKEUP) {
        atomic_fetch_add(&wakeups, 1);
    }
    return 0;
}

TEST(a_full_window_refuses_without_blocking_and_tells_when_there_is_room)
{
    TEST_NEEDS_NET();
    struct gate gate = GATE_INIT;
    lbm_context_t *sctx = net_context(), *rctx = net_context();
    lbm_src_t *src = shm_source_with(sctx, "smx/nonblock", shm_attr(), count_wakeups, NULL);
    static const char text[1000];
    void *buffer;
    lbm_rcv_t *rcv = net_receiver(rctx, "smx/nonblock", NULL, gated, &gate, NULL);
    MUST(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000));
    MUST(lbm_src_send(src, text, sizeof text, LBM_SRC_NONBLOCK));
    CHECK(gate_entered(&gate)); /* what comes before messages has been read: that would make room, too */
    int sent = 1;
    while (sent < 1000 && lbm_src_send(src, text, sizeof text, LBM_SRC_NONBLOCK) == 0) {
        sent++;
    }
    CHECK(sent > 100 && sent < 131072 / 1000);
    CHECK_EQ(lbm_errnum(), LBM_EWOULDBLOCK);
    CHECK_EQ(lbm_src_buff_acquire(src, &buffer, 1000, LBM_SRC_NONBLOCK), -1);
    CHECK_EQ(lbm_errnum(), LBM_EWOULDBLOCK);
    CHECK_EQ(atomic_load(&wakeups), 0);
    gate_open(&gate);
    for (int i = 0; i < HANG_SECONDS * 1000 && atomic_load(&wakeups) == 0; i++) {
        usleep(1000);
    }
    CHECK_EQ(atomic_load(&wakeups), 1);
    MUST(lbm_src_send(src, text, sizeof text, LBM_SRC_NONBLOCK));
    lbm_context_stats_t stats;
    MUST(lbm_context_retrieve_stats(sctx, &stats));
    CHECK(stats.send_would_block >= 1);
    shm_end(rcv, src, rctx, sctx);
}

/* What um_smx_src_session_of() finds behind the opaque source. */
static struct um_smx_src_session *session_behind(lbm_src_t *src)
{
    return um_smx_src_session_of(src->stream.session);
}

TEST(f1_the_loop_tells_that_there_is_room_without_touching_the_ring_writer)
{
    TEST_NEEDS_NET();
    struct gate gate = GATE_INIT;
    lbm_context_t *sctx = net_context(), *rctx = net_context();
    atomic_store(&wakeups, 0);
    lbm_src_t *src = shm_source_with(sctx, "smx/f1", shm_attr(), count_wakeups, NULL);
    lbm_rcv_t *rcv = net_receiver(rctx, "smx/f1", NULL, gated, &gate, NULL);
    MUST(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000));
    static const char text[1000];
    void *buffer;
    for (int i = 0; i < 90; i++) {
        MUST(lbm_src_send(src, text, sizeof text, LBM_SRC_NONBLOCK));
    }
    int acquired = 0; /* and not completed: the owner's state is in the middle of something */
    while (acquired < 1000 && lbm_src_buff_acquire(src, &buffer, sizeof text, LBM_SRC_NONBLOCK) == 0) {
        acquired++;
    }
    CHECK(acquired > 10 && acquired < 1000);
    CHECK_EQ(lbm_errnum(), LBM_EWOULDBLOCK);
    struct um_smx_src_session *session = session_behind(src);
    struct um_smx_writer before = session->writer;
    gate_open(&gate);
    for (int i = 0; i < HANG_SECONDS * 1000 && atomic_load(&wakeups) == 0; i++) {
        usleep(1000);
    }
    CHECK_EQ(atomic_load(&wakeups), 1);
    MUST(lbm_src_reset_transport_stats(src));
    CHECK(memcmp(&before, &session->writer, sizeof before) == 0);
    MUST(lbm_src_buff_acquire(src, &buffer, sizeof text, LBM_SRC_NONBLOCK)); /* and there is room */
    MUST(lbm_src_buffs_cancel(src));
    shm_end(rcv, src, rctx, sctx);
}

/* A receiver that is gone, or wrote nonsense, must not keep the refused sender from its WAKEUP. */
TEST(f1_room_is_seen_where_the_cursors_are_impossible)
{
    static struct um_shm_slot slots[2];
    struct um_shm_segment segment = {.slots = slots, .max_receivers = 2, .ring_len = 1024};
    const struct um_smx_want want = {.position = 5000, .published = 5800};
    CHECK(um_smx_has_room(&segment, &want)); /* nobody there */
    atomic_store(&slots[1].in_use, UM_SHM_SLOT_READING);
    atomic_store(&slots[1].read_pos, 4999);
    CHECK(!um_smx_has_room(&segment, &want));
    atomic_store(&slots[1].read_pos, 5000);
    CHECK(um_smx_has_room(&segment, &want));
    atomic_store(&slots[1].read_pos, 4775); /* more than the ring behind: no reader of ours */
    CHECK(um_smx_has_room(&segment, &want));
    atomic_store(&slots[1].in_use, UM_SHM_SLOT_ACTIVE); /* just joining: may be far behind for a moment */
    CHECK(!um_smx_has_room(&segment, &want));
    atomic_store(&slots[1].in_use, UM_SHM_SLOT_FREE);
    CHECK(um_smx_has_room(&segment, &want));
}

TEST(deleting_the_source_wakes_a_blocked_sender_with_einval)
{
    TEST_NEEDS_NET();
    struct gate gate = GATE_INIT;
    lbm_context_t *sctx = net_context(), *rctx = net_context();
    lbm_src_t *src = shm_source(sctx, "smx/wake");
    lbm_rcv_t *rcv = net_receiver(rctx, "smx/wake", NULL, gated, &gate, NULL);
    MUST(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000));
    struct sender sender = {.src = src, .count = 1000000};
    pthread_t thread;
    pthread_create(&thread, NULL, send_all, &sender);
    um_src_stats_t stats = {0};
    for (int i = 0; i < HANG_SECONDS * 1000 && stats.blocked_by_pid == 0; i++) {
        usleep(1000);
        MUST(um_src_stats(src, &stats));
    }
    MUST(lbm_src_delete(src));
    pthread_join(thread, NULL);
    CHECK_EQ(sender.rc, -1);
    CHECK_EQ(sender.errnum, LBM_EINVAL);
    gate_open(&gate);
    shm_end(rcv, NULL, rctx, sctx);
}

/* The thread sanitizer watches: between the sender and the deletion there is nothing but what the library does. */
TEST(f4_a_source_is_deleted_while_a_thread_is_in_a_send)
{
    TEST_NEEDS_NET();
    struct gate gate = GATE_INIT;
    lbm_context_t *sctx = net_context(), *rctx = net_context();
    lbm_src_t *src = shm_source(sctx, "smx/f4");
    lbm_rcv_t *rcv = net_receiver(rctx, "smx/f4", NULL, gated, &gate, NULL);
    MUST(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000));
    struct sender sender = {.src = src, .count = 1000000};
    pthread_t thread;
    pthread_create(&thread, NULL, send_all, &sender);
    wait_until_it_waits(&sender); /* asking the source would put the two in an order */
    MUST(lbm_src_delete(src));
    pthread_join(thread, NULL);
    CHECK_EQ(sender.rc, -1);
    CHECK_EQ(sender.errnum, LBM_EINVAL);
    gate_open(&gate);
    shm_end(rcv, NULL, rctx, sctx);
}

TEST(buffers_that_leave_no_room_for_more_are_an_error_even_when_blocking)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = shm_source(ctx, "smx/outstanding");
    void *buffer;
    int got = 0;
    while (got < 100 && lbm_src_buff_acquire(src, &buffer, 8000, LBM_SRC_BLOCK) == 0) {
        got++;
    }
    CHECK(got >= 14 && got <= 16);
    CHECK_EQ(lbm_errnum(), LBM_EOP);
    CHECK_CONTAINS(lbm_errmsg(), "too many outstanding buffers");
    MUST(lbm_src_buffs_complete(src));
    MUST(lbm_src_buff_acquire(src, &buffer, 8000, LBM_SRC_BLOCK));
    MUST(lbm_src_buffs_cancel(src));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

/* ---- ids ---- */

static uint32_t transport_id(lbm_src_t *src)
{
    lbm_src_transport_stats_t stats;
    lbm_transport_source_info_t info;
    MUST(lbm_src_retrieve_transport_stats(src, &stats));
    memset(&info, 0, sizeof info);
    MUST(lbm_transport_source_parse(stats.source, &info, sizeof info));
    return info.transport_id;
}

TEST(ids_come_from_the_pool_in_turn_and_an_explicit_one_does_not_disturb_it)
{
    TEST_NEEDS_NET();
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "transport_lbtsmx_id_low", "20001"));
    MUST(lbm_context_attr_str_setopt(attr, "transport_lbtsmx_id_high", "20002"));
    lbm_context_t *ctx = net_context_with(attr), *other = net_context();
    lbm_src_t *src[6];
    src[0] = shm_source(ctx, "smx/id/0");
    src[1] = shm_source(ctx, "smx/id/1");
    src[2] = shm_source_option(ctx, "smx/id/x", "transport_lbtsmx_id", "20010");
    src[3] = shm_source(ctx, "smx/id/2");
    src[4] = shm_source(ctx, "smx/id/3");
    src[5] = shm_source_option(other, "smx/id/o", "transport_lbtsmx_id", "20001");
    static const unsigned expected[] = {20001, 20002, 20010, 20001, 20002, 20001};
    for (int i = 0; i < 6; i++) {
        CHECK_EQ(transport_id(src[i]), expected[i]);
    }
    for (int i = 0; i < 6; i++) {
        MUST(lbm_src_delete(src[i]));
    }
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(other));
}

/* ---- windows and warnings ---- */

TEST(windows_are_rounded_up_with_a_warning)
{
    TEST_NEEDS_NET();
    log_start();
    lbm_context_t *ctx = net_context();
    lbm_src_t *a = shm_source_option(ctx, "smx/w/24", "transport_lbtsmx_transmission_window_size", "25165824");
    CHECK(was_logged("Core-6976-32") && was_logged("33554432"));
    lbm_src_t *b = shm_source_option(ctx, "smx/w/8", "transport_lbtsmx_transmission_window_size", "8192");
    CHECK(was_logged("Core-6976-11") && was_logged("16384"));
    lbm_src_t *c = shm_source_option(ctx, "smx/w/ok", "transport_lbtsmx_transmission_window_size", "1048576");
    CHECK(!was_logged("1048576"));
    MUST(lbm_src_delete(a));
    MUST(lbm_src_delete(b));
    MUST(lbm_src_delete(c));
    MUST(lbm_context_delete(ctx));
    lbm_log(NULL, NULL);
}

TEST(f19_windows_beyond_reason_are_refused_at_once)
{
    TEST_NEEDS_NET();
    check_windows_beyond_reason_are_refused("transport_lbtsmx_transmission_window_size");
}

TEST(a_later_source_of_a_session_is_told_that_its_options_do_not_count)
{
    TEST_NEEDS_NET();
    log_start();
    lbm_context_t *ctx = net_context();
    lbm_src_t *a = shm_source_option(ctx, "smx/first", "transport_lbtsmx_id", "77");
    lbm_src_topic_attr_t *attr = shm_attr();
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_lbtsmx_id", "77"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_lbtsmx_sm_interval", "500"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_lbtsmx_transmission_window_size", "262144"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_lbtsmx_datagram_max_size", "1024"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_lbtsmx_maximum_receivers_per_transport", "3"));
    lbm_src_t *b = shm_source_with(ctx, "smx/second", attr, NULL, NULL);
    CHECK(was_logged("Core-6976-103") && was_logged("Core-6976-104") && was_logged("Core-6976-105") &&
          was_logged("Core-6976-106"));
    MUST(lbm_src_delete(a));
    MUST(lbm_src_delete(b));
    MUST(lbm_context_delete(ctx));
    lbm_log(NULL, NULL);
}

TEST(what_smx_cannot_do_is_refused_or_noticed)
{
    TEST_NEEDS_NET();
    log_start();
    lbm_context_t *ctx = net_context();
    lbm_src_topic_attr_t *attr = shm_attr();
    MUST(lbm_src_topic_attr_str_setopt(attr, "late_join", "1"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "implicit_batching_type", "adaptive"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "ume_store", "127.0.0.1:14567"));
    lbm_src_t *src = shm_source_with(ctx, "smx/refused", attr, NULL, NULL);
    CHECK(was_logged("Core-6976-6") && was_logged("Core-6976-9") && was_logged("Core-6976-10"));
    lbm_src_send_ex_info_t info = {.flags = LBM_SRC_SEND_EX_FLAG_SEQUENCE_NUMBER_INFO};
    CHECK_EQ(lbm_src_send_ex(src, "x", 1, 0, &info), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_CONTAINS(lbm_errmsg(), "CoreApi-6976-69");
    MUST(lbm_src_send_ex(src, "x", 1, 0, NULL));
    lbm_src_t *tcp = net_source(ctx, "smx/tcp");
    void *buffer;
    CHECK_EQ(lbm_src_buff_acquire(tcp, &buffer, 1, 0), -1);
    CHECK_EQ(lbm_errnum(), LBM_EOPNOTSUPP);
    CHECK_EQ(lbm_src_buffs_complete(tcp), -1);
    CHECK_EQ(lbm_src_buffs_cancel(tcp), -1);
    CHECK_EQ(lbm_src_buffs_complete_and_acquire(tcp, &buffer, 1, 0), -1);
    CHECK_EQ(lbm_errnum(), LBM_EOPNOTSUPP);
    CHECK_EQ(lbm_src_buff_acquire(src, NULL, 1, 0), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    MUST(lbm_src_delete(src));
    MUST(lbm_src_delete(tcp));
    MUST(lbm_context_delete(ctx));
    lbm_log(NULL, NULL);
}

/* ---- messages that are kept ---- */

static lbm_msg_t *retained;

static int retain_first(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    if (msg->type == LBM_MSG_DATA && retained == NULL) {
        MUST(lbm_msg_retain(msg));
        retained = msg;
    }
    return recorder_cb(rcv, msg, clientd);
}

TEST(a_retained_message_survives_the_reuse_of_its_place)
{
    TEST_NEEDS_NET();
    lbm_context_t *sctx = net_context(), *rctx = net_context();
    struct recorder rec = RECORDER_INIT;
    lbm_src_t *src = shm_source(sctx, "smx/retain");
    lbm_rcv_t *rcv = net_receiver(rctx, "smx/retain", NULL, retain_first, &rec, NULL);
    MUST(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000));
    net_send(src, "kept for long");
    static const char other[64] = "overwritten";
    for (int i = 0; i < 100000; i++) {
        MUST(lbm_src_send(src, other, sizeof other, 0));
    }
    CHECK(recorder_wait(&rec, LBM_MSG_DATA, 100001));
    CHECK_EQ(retained->len, 13);
    CHECK(memcmp(retained->data, "kept for long", 13) == 0);
    shm_end(rcv, src, rctx, sctx);
    CHECK(memcmp(retained->data, "kept for long", 13) == 0);
    MUST(lbm_msg_delete(retained));
}

TEST(an_event_queue_gets_copies)
{
    TEST_NEEDS_NET();
    lbm_context_t *sctx = net_context(), *rctx = net_context();
    struct recorder rec = RECORDER_INIT;
    lbm_event_queue_t *evq;
    MUST(lbm_event_queue_create(&evq, NULL, NULL, NULL));
    lbm_src_t *src = shm_source(sctx, "smx/evq");
    lbm_rcv_t *rcv = net_receiver(rctx, "smx/evq", NULL, recorder_cb, &rec, evq);
    MUST(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000));
    for (int i = 0; i < 10000; i++) {
        char text[64];
        snprintf(text, sizeof text, "%d", i % 10);
        MUST(lbm_src_send(src, text, 1, 0));
    }
    CHECK(recorder_dispatch(&rec, evq, LBM_MSG_DATA, 10000));
    CHECK(strncmp(rec.text, "BOS 0=0 1=1 2=2 3=3", 19) == 0);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_event_queue_delete(evq));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(rctx));
    MUST(lbm_context_delete(sctx));
}

static lbm_src_t *asked;
static atomic_int answers;

static int ask_the_source(int level, const char *message, void *clientd)
{
    um_src_stats_t stats;
    if (strstr(message, "Core-6976-146") != NULL && um_src_stats(asked, &stats) == 0 && stats.receivers_lost == 1) {
        atomic_fetch_add(&answers, 1);
    }
    return 0;
}

/* A receiver that nobody is, with a position that cannot be. */
static void impossible_receiver(lbm_src_t *src, struct um_shm_segment *segment)
{
    lbm_src_transport_stats_t stats;
    unsigned session_id, transport_id;
    uint64_t start;
    MUST(lbm_src_retrieve_transport_stats(src, &stats));
    CHECK_EQ(sscanf(stats.source, "LBT-SMX:%x:%u", &session_id, &transport_id), 2);
    MUST(um_shm_attach(segment, UM_SHM_SMX, session_id, (uint16_t)transport_id));
    int slot = um_shm_slot_take(segment, UM_SHM_SLOT_BUSY_WAIT, 0, &start);
    CHECK(slot >= 0);
    atomic_store(&segment->slots[slot].read_pos, UINT64_MAX / 2);
}

TEST(an_impossible_position_costs_the_slot_and_a_log_callback_may_ask_the_source)
{
    TEST_NEEDS_NET();
    lbm_context_t *sctx = net_context(), *rctx = net_context();
    struct um_shm_segment segment;
    struct recorder rec = RECORDER_INIT;
    asked = shm_source(sctx, "smx/impossible");
    lbm_rcv_t *rcv = net_recording_receiver(rctx, "smx/impossible", &rec);
    MUST(um_src_wait_receivers(asked, 1, HANG_SECONDS * 1000));
    impossible_receiver(asked, &segment);
    lbm_log(ask_the_source, NULL);
    for (int i = 0; i < 5000; i++) { /* more than the ring holds */
        char text[4000] = {0};
        MUST(lbm_src_send(asked, text, sizeof text, 0));
    }
    for (int i = 0; i < HANG_SECONDS * 1000 && atomic_load(&answers) == 0; i++) {
        usleep(1000);
    }
    lbm_log(NULL, NULL);
    CHECK_EQ(atomic_load(&answers), 1);
    um_shm_close(&segment);
    shm_end(rcv, asked, rctx, sctx);
}

/* ---- more receivers, slots, statistics ---- */

TEST(a_context_too_many_cannot_join_and_those_before_it_are_not_disturbed)
{
    TEST_NEEDS_NET();
    log_start();
    lbm_context_t *sctx = net_context(), *rctx[3];
    struct recorder rec[3] = {RECORDER_INIT, RECORDER_INIT, RECORDER_INIT};
    lbm_rcv_t *rcv[3];
    lbm_src_t *src = shm_source_option(sctx, "smx/slots", "transport_lbtsmx_maximum_receivers_per_transport", "2");
    for (int i = 0; i < 2; i++) {
        rctx[i] = net_context();
        rcv[i] = net_recording_receiver(rctx[i], "smx/slots", &rec[i]);
    }
    MUST(um_src_wait_receivers(src, 2, HANG_SECONDS * 1000));
    rctx[2] = net_context();
    rcv[2] = net_recording_receiver(rctx[2], "smx/slots", &rec[2]);
    for (int i = 0; i < HANG_SECONDS * 1000 && !was_logged("no more free receiver slots"); i++) {
        usleep(1000);
    }
    CHECK(was_logged("no more free receiver slots"));
    net_send(src, "x");
    CHECK(recorder_wait(&rec[0], LBM_MSG_DATA, 1) && recorder_wait(&rec[1], LBM_MSG_DATA, 1));
    CHECK_EQ(recorder_count(&rec[2], LBM_MSG_BOS), 0);
    MUST(lbm_rcv_delete(rcv[0]));
    CHECK(recorder_wait(&rec[2], LBM_MSG_BOS, 1)); /* at the next advertisement */
    net_send(src, "y");
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

TEST(statistics_count_only_when_they_are_enabled)
{
    TEST_NEEDS_NET();
    for (int enabled = 0; enabled < 2; enabled++) {
        lbm_context_attr_t *sattr = net_context_attr(), *rattr = net_context_attr();
        const char *value = enabled ? "1" : "0";
        MUST(lbm_context_attr_str_setopt(sattr, "transport_lbtsmx_message_statistics_enabled", value));
        MUST(lbm_context_attr_str_setopt(rattr, "transport_lbtsmx_message_statistics_enabled", value));
        lbm_context_t *sctx = net_context_with(sattr), *rctx = net_context_with(rattr);
        struct recorder rec = RECORDER_INIT;
        lbm_src_t *src = shm_source(sctx, "smx/stats");
        lbm_rcv_t *rcv = net_recording_receiver(rctx, "smx/stats", &rec);
        MUST(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000));
        net_send(src, "1234");
        native_send(src, "12");
        CHECK(recorder_wait(&rec, LBM_MSG_DATA, 2));
        lbm_src_transport_stats_t ss;
        lbm_rcv_transport_stats_t rs;
        int num = 1;
        MUST(lbm_src_retrieve_transport_stats(src, &ss));
        MUST((lbm_context_retrieve_rcv_transport_stats)(rctx, &num, &rs));
        CHECK_EQ(num, 1);
        CHECK_EQ(ss.type, LBM_TRANSPORT_STAT_LBTSMX);
        CHECK_EQ(rs.type, LBM_TRANSPORT_STAT_LBTSMX);
        CHECK_STR(ss.source, rs.source);
        CHECK_EQ(ss.transport.lbtsmx.num_clients, 1);
        CHECK_EQ(ss.transport.lbtsmx.msgs_sent, enabled ? 2 : 0);
        CHECK_EQ(ss.transport.lbtsmx.bytes_sent, enabled ? 6 + 32 : 0);
        CHECK_EQ(rs.transport.lbtsmx.msgs_rcved, enabled ? 2 : 0);
        CHECK_EQ(rs.transport.lbtsmx.bytes_rcved, enabled ? 6 + 32 : 0);
        CHECK_EQ(rs.transport.lbtsmx.lbm_msgs_rcved, enabled ? 2 : 0);
        MUST(lbm_src_reset_transport_stats(src));
        MUST(lbm_src_retrieve_transport_stats(src, &ss));
        CHECK_EQ(ss.transport.lbtsmx.msgs_sent, 0);
        shm_end(rcv, src, rctx, sctx);
    }
}

TEST(a_silent_source_ends_at_the_activity_timeout_and_is_joined_again)
{
    TEST_NEEDS_NET();
    lbm_context_t *sctx = net_context(), *rctx = net_context();
    struct recorder rec = RECORDER_INIT;
    lbm_rcv_topic_attr_t *attr;
    MUST(lbm_rcv_topic_attr_create(&attr));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "transport_lbtsmx_activity_timeout", "1500"));
    lbm_src_t *src = shm_source(sctx, "smx/silent");
    lbm_rcv_t *rcv = net_receiver(rctx, "smx/silent", attr, recorder_cb, &rec, NULL);
    lbm_rcv_topic_attr_delete(attr);
    CHECK(recorder_wait(&rec, LBM_MSG_EOS, 1));
    CHECK(recorder_wait(&rec, LBM_MSG_BOS, 2));
    shm_end(rcv, src, rctx, sctx);
}

/* ---- sending from a callback ---- */

struct echo {
    lbm_src_t *back;
    atomic_int rc, delete_rc, delete_errnum;
};

static int echo_cb(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv;
    struct echo *e = clientd;
    if (msg->type == LBM_MSG_DATA) {
        void *buffer;
        e->rc = lbm_src_buff_acquire(e->back, &buffer, msg->len, 0);
        if (e->rc == 0) {
            memcpy(buffer, msg->data, msg->len);
            e->rc = lbm_src_buffs_complete(e->back);
        }
        e->delete_rc = lbm_src_delete(e->back);
        e->delete_errnum = lbm_errnum();
    }
    return 0;
}

TEST(a_callback_may_send_but_not_delete)
{
    TEST_NEEDS_NET();
    lbm_context_t *a = net_context(), *b = net_context();
    struct recorder rec = RECORDER_INIT;
    struct echo echo = {0};
    lbm_src_t *there = shm_source(a, "smx/there");
    echo.back = shm_source(b, "smx/back");
    lbm_rcv_t *ra = net_recording_receiver(a, "smx/back", &rec);
    lbm_rcv_t *rb = net_receiver(b, "smx/there", NULL, echo_cb, &echo, NULL);
    MUST(um_src_wait_receivers(there, 1, HANG_SECONDS * 1000));
    MUST(um_src_wait_receivers(echo.back, 1, HANG_SECONDS * 1000));
    for (int i = 0; i < 1000; i++) {
        native_send(there, "ping");
        CHECK(recorder_wait(&rec, LBM_MSG_DATA, i + 1));
    }
    CHECK_EQ(echo.rc, 0);
    CHECK_EQ(echo.delete_rc, -1);
    CHECK_EQ(echo.delete_errnum, LBM_EOP);
    MUST(lbm_rcv_delete(ra));
    MUST(lbm_rcv_delete(rb));
    MUST(lbm_src_delete(there));
    MUST(lbm_src_delete(echo.back));
    MUST(lbm_context_delete(a));
    MUST(lbm_context_delete(b));
}
