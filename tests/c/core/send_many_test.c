/* um_src_send_many and um_src_send_array: what one call sends, what it reports
 * when it stops, and that each message is as if sent alone. */
#include "um_test_rcv.h"

#include "base/um_clock.h"
#include "base/um_timer.h"
#include "core/um_source.h"
#include "um_test_thread.h"
#include "transport/session/um_src_batch.h"

#define WAIT_MS (HANG_SECONDS * 1000)

struct pair {
    lbm_context_t *here, *there;
    lbm_src_t *src;
    lbm_rcv_t *rcv;
    struct recorder seen;
};

static void pair_open(struct pair *pair, const char *topic)
{
    memset(pair, 0, sizeof *pair);
    pair->seen = (struct recorder)RECORDER_INIT;
    pair->here = net_context();
    pair->there = net_context();
    pair->rcv = net_recording_receiver(pair->here, topic, &pair->seen);
    pair->src = net_source(pair->there, topic);
    MUST(um_src_wait_receivers(pair->src, 1, WAIT_MS));
    MUST(um_rcv_wait_ready(pair->rcv, 1, WAIT_MS));
}

static void pair_close(struct pair *pair)
{
    MUST(lbm_rcv_delete(pair->rcv));
    if (pair->src != NULL) {
        MUST(lbm_src_delete(pair->src));
    }
    MUST(lbm_context_delete(pair->here));
    MUST(lbm_context_delete(pair->there));
}

TEST(every_message_of_a_buffer_arrives_as_one)
{
    TEST_NEEDS_NET();
    struct pair pair;
    pair_open(&pair, "many");
    static const char base[] = "one|two||three";
    const uint64_t offsets[] = {0, 4, 8, 9, 0};
    const uint32_t lengths[] = {3, 3, 0, 5, 3};
    size_t sent = 99;
    MUST(um_src_send_many(pair.src, base, offsets, lengths, 5, LBM_MSG_FLUSH, &sent));
    CHECK_EQ(sent, 5);
    CHECK(recorder_wait(&pair.seen, LBM_MSG_DATA, 5));
    CHECK_STR(pair.seen.text, "BOS 0=one 1=two 2= 3=three 4=one ");
    pair_close(&pair);
}

TEST(an_array_goes_by_stride_and_length)
{
    TEST_NEEDS_NET();
    struct pair pair;
    pair_open(&pair, "array");
    size_t sent = 0;
    MUST(um_src_send_array(pair.src, "ab..cd..ef", 4, 2, 3, LBM_MSG_FLUSH | LBM_SRC_BLOCK, &sent));
    CHECK_EQ(sent, 3);
    MUST(um_src_send_array(pair.src, "same", 0, 4, 2, LBM_MSG_FLUSH, NULL));
    MUST(um_src_send_array(pair.src, NULL, 0, 0, 0, LBM_MSG_FLUSH, &sent));
    CHECK_EQ(sent, 0);
    CHECK(recorder_wait(&pair.seen, LBM_MSG_DATA, 5));
    CHECK_STR(pair.seen.text, "BOS 0=ab 1=cd 2=ef 3=same 4=same ");
    pair_close(&pair);
}

TEST(batch_marks_go_to_the_ends)
{
    TEST_NEEDS_NET();
    struct pair pair;
    pair_open(&pair, "marks");
    MUST(um_src_send_array(pair.src, "abc", 1, 1, 3, LBM_MSG_START_BATCH | LBM_MSG_END_BATCH, NULL));
    CHECK(recorder_wait(&pair.seen, LBM_MSG_DATA, 3));
    CHECK_STR(pair.seen.text, "BOS 0=a 1=b 2=c ");
    CHECK_EQ(pair.seen.flags, LBM_MSG_FLAG_END_BATCH);
    pair_close(&pair);
}

TEST(large_and_small_messages_mix)
{
    TEST_NEEDS_NET();
    struct pair pair;
    pair_open(&pair, "mixed");
    enum { LARGE = 300000, COUNT = 3000 };
    char *base = calloc(1, LARGE);
    uint64_t *offsets = calloc(COUNT, sizeof *offsets);
    uint32_t *lengths = calloc(COUNT, sizeof *lengths);
    size_t sent, total = 0;
    for (int i = 0; i < COUNT; i++) {
        lengths[i] = i % 1000 == 500 ? LARGE : 10;
        total += lengths[i];
    }
    MUST(um_src_send_many(pair.src, base, offsets, lengths, COUNT, LBM_MSG_FLUSH, &sent));
    CHECK_EQ(sent, COUNT);
    CHECK(recorder_wait(&pair.seen, LBM_MSG_DATA, COUNT));
    CHECK_EQ(pair.seen.bytes, total);
    um_src_stats_t stats;
    MUST(um_src_stats(pair.src, &stats));
    CHECK_EQ(stats.messages_sent, COUNT);
    CHECK_EQ(stats.bytes_sent, total);
    free(base);
    free(offsets);
    free(lengths);
    pair_close(&pair);
}

/* A receiver whose context does not run: what is sent to it piles up. */
struct stalled {
    lbm_context_t *here, *there;
    lbm_src_t *src;
    lbm_rcv_t *rcv;
};

static void run_until_connected(struct stalled *s)
{
    while (um_src_receivers(s->src) == 0 || um_rcv_ready(s->rcv) == 0) {
        MUST(lbm_context_process_events(s->here, 5));
    }
}

static int count_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    *(size_t *)clientd += msg->type == LBM_MSG_DATA;
    return 0;
}

static void stalled_open(struct stalled *s, const char *topic, size_t *received)
{
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "operational_mode", "sequential"));
    s->here = net_context_with(attr);
    s->there = net_context();
    s->rcv = net_receiver(s->here, topic, NULL, count_message, received, NULL);
    s->src = net_source(s->there, topic);
    run_until_connected(s);
}

static void stalled_close(struct stalled *s)
{
    MUST(lbm_rcv_delete(s->rcv));
    if (s->src != NULL) {
        MUST(lbm_src_delete(s->src));
    }
    MUST(lbm_context_delete(s->here));
    MUST(lbm_context_delete(s->there));
}

TEST(a_non_blocking_run_stops_at_the_first_refused_and_goes_on_there)
{
    TEST_NEEDS_NET();
    struct stalled s;
    size_t received = 0, sent = 0, done = 0;
    enum { COUNT = 200000, LEN = 200 };
    char data[LEN] = {0};
    stalled_open(&s, "refused", &received);
    CHECK_EQ(um_src_send_array(s.src, data, 0, LEN, COUNT, LBM_SRC_NONBLOCK, &sent), -1);
    CHECK_EQ(lbm_errnum(), LBM_EWOULDBLOCK);
    CHECK(sent > 0 && sent < COUNT);
    done = sent;
    for (uint64_t give_up = um_clock_ns() + HANG_SECONDS * UM_NS_PER_SEC; done < COUNT && um_clock_ns() < give_up;) {
        MUST(lbm_context_process_events(s.here, 1));
        um_src_send_array(s.src, data, 0, LEN, COUNT - done, LBM_SRC_NONBLOCK, &sent);
        done += sent;
    }
    CHECK_EQ(done, COUNT);
    um_src_stats_t stats;
    MUST(um_src_stats(s.src, &stats));
    CHECK_EQ(stats.messages_sent, COUNT);
    for (uint64_t give_up = um_clock_ns() + HANG_SECONDS * UM_NS_PER_SEC;
         received < COUNT && um_clock_ns() < give_up;) {
        MUST(lbm_context_process_events(s.here, 1));
    }
    CHECK_EQ(received, COUNT);
    stalled_close(&s);
}

struct blocking {
    lbm_src_t *src;
    size_t count, sent;
    int rc, errnum;
    atomic_int tid;
};

static void *send_blocking(void *arg)
{
    struct blocking *b = arg;
    static char data[200];
    atomic_store(&b->tid, um_test_thread_id());
    b->rc = um_src_send_array(b->src, data, 0, sizeof data, b->count, LBM_SRC_BLOCK, &b->sent);
    b->errnum = lbm_errnum();
    return NULL;
}

TEST(a_blocking_run_waits_for_the_receiver)
{
    TEST_NEEDS_NET();
    struct stalled s;
    size_t received = 0;
    stalled_open(&s, "waited", &received);
    struct blocking b = {.src = s.src, .count = 100000};
    pthread_t thread;
    pthread_create(&thread, NULL, send_blocking, &b);
    for (uint64_t give_up = um_clock_ns() + HANG_SECONDS * UM_NS_PER_SEC;
         received < b.count && um_clock_ns() < give_up;) {
        MUST(lbm_context_process_events(s.here, 1));
    }
    CHECK_EQ(received, b.count);
    pthread_join(thread, NULL);
    CHECK_EQ(b.rc, 0);
    CHECK_EQ(b.sent, b.count);
    stalled_close(&s);
}

static int waiting(lbm_src_t *src)
{
    struct um_src_session *session = src->stream.session;
    um_src_session_lock(session);
    int waiters = session->waiters;
    um_src_session_unlock(session);
    return waiters;
}

TEST(deleting_the_source_ends_a_waiting_run)
{
    TEST_NEEDS_NET();
    struct stalled s;
    size_t received = 0;
    stalled_open(&s, "deleted", &received);
    struct blocking b = {.src = s.src, .count = 1000000};
    pthread_t thread;
    pthread_create(&thread, NULL, send_blocking, &b);
    um_src_stats_t stats = {0};
    uint64_t before;
    do { /* until it stands still: it waits, and the kernels move nothing more */
        before = stats.messages_sent;
        nanosleep(&(struct timespec){0, 20000000}, NULL);
        MUST(um_src_stats(s.src, &stats));
    } while (waiting(s.src) == 0 || !um_test_thread_sleeps(atomic_load(&b.tid)) || stats.messages_sent != before);
    MUST(lbm_src_delete(s.src));
    s.src = NULL;
    pthread_join(thread, NULL);
    CHECK_EQ(b.rc, -1);
    CHECK_EQ(b.errnum, LBM_EINVAL);
    CHECK_EQ(b.sent, before);
    stalled_close(&s);
}

TEST(runs_of_several_threads_do_not_mix_up_numbers)
{
    TEST_NEEDS_NET();
    struct pair pair;
    pair_open(&pair, "threads");
    struct blocking runs[3];
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        runs[i] = (struct blocking){.src = pair.src, .count = 10000};
        pthread_create(&threads[i], NULL, send_blocking, &runs[i]);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        CHECK_EQ(runs[i].sent, 10000);
    }
    MUST(lbm_src_flush(pair.src));
    CHECK(recorder_wait(&pair.seen, LBM_MSG_DATA, 30000));
    CHECK_EQ(pair.seen.sqn, 29999);
    pair_close(&pair);
}

TEST(bad_arguments_are_refused)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = net_source(ctx, "arguments");
    const uint64_t offsets[] = {0};
    const uint32_t lengths[] = {1};
    size_t sent = 7;
    CHECK_EQ(um_src_send_many(NULL, "x", offsets, lengths, 1, 0, &sent), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(sent, 0);
    CHECK_EQ(um_src_send_many(src, NULL, offsets, lengths, 1, 0, &sent), -1);
    CHECK_EQ(um_src_send_many(src, "x", NULL, lengths, 1, 0, &sent), -1);
    CHECK_CONTAINS(lbm_errmsg(), "offsets");
    CHECK_EQ(um_src_send_many(src, "x", offsets, NULL, 1, 0, NULL), -1);
    CHECK_CONTAINS(lbm_errmsg(), "lengths");
    CHECK_EQ(um_src_send_array(src, NULL, 1, 1, 1, 0, &sent), -1);
    CHECK_EQ(um_src_send_array(src, "x", 1, 1, 1, LBM_MSG_BUFF_ALLOC, &sent), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(um_src_send_array(src, "x", 0, (size_t)INT32_MAX + 1, 1, 0, &sent), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(um_src_send_array(src, "xy", 1, 1, 2, LBM_MSG_END_BATCH, &sent), -1); /* END without START at the second */
    CHECK_EQ(lbm_errnum(), LBM_EOP);
    CHECK_EQ(sent, 1);
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}
