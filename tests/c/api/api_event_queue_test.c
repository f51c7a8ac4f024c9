/* Event queues, timers, descriptors and sequential contexts as an application sees them, through the public headers
 * only. */
#include "um_test.h"

#include <stdatomic.h>
#include <unistd.h>

#include <lbm/lbm.h>
#include <lbm/um.h>

#include "um_test_rcv.h"

static lbm_event_queue_t *queue_with(const char *option, const char *value, lbm_event_queue_monitor_proc proc)
{
    lbm_event_queue_t *evq;
    lbm_event_queue_attr_t *attr;
    MUST(lbm_event_queue_attr_create(&attr));
    MUST(lbm_event_queue_attr_str_setopt(attr, "queue_size_warning", "1000000"));
    if (option != NULL) {
        MUST(lbm_event_queue_attr_str_setopt(attr, option, value));
    }
    MUST(lbm_event_queue_create(&evq, proc, NULL, attr));
    MUST(lbm_event_queue_attr_delete(attr));
    return evq;
}

static lbm_context_t *reactor(void)
{
    lbm_context_t *ctx;
    MUST(lbm_context_reactor_only_create(&ctx, NULL));
    return ctx;
}

static atomic_int timer_runs;

static int on_timer(lbm_context_t *ctx, const void *clientd)
{
    atomic_fetch_add(&timer_runs, 1);
    return 0;
}

static bool queue_holds(lbm_event_queue_t *evq, int events)
{
    for (int i = 0; i < HANG_SECONDS * 1000 && lbm_event_queue_size(evq) != events; i++) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return lbm_event_queue_size(evq) == events;
}

TEST(dispatching_counts_events_and_an_idle_queue_keeps_waiting)
{
    lbm_context_t *ctx = reactor();
    lbm_event_queue_t *evq = queue_with(NULL, NULL, NULL);
    atomic_store(&timer_runs, 0);
    CHECK_EQ(lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL), 0);
    CHECK_EQ(lbm_event_dispatch_unblock(evq), 0);
    CHECK_EQ(lbm_event_dispatch(evq, LBM_EVENT_QUEUE_BLOCK), 0); /* the unblock event does not count */
    for (int i = 0; i < 5; i++) {
        CHECK(lbm_schedule_timer(ctx, on_timer, NULL, evq, 0) >= 0);
    }
    CHECK(queue_holds(evq, 5));
    CHECK_EQ(lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL), 1);
    CHECK_EQ(lbm_event_dispatch_unblock(evq), 0);
    CHECK_EQ(lbm_event_dispatch(evq, LBM_EVENT_QUEUE_BLOCK), 4);
    CHECK_EQ(timer_runs, 5);
    /* 1 ms is over long before the event comes. */
    CHECK(lbm_schedule_timer(ctx, on_timer, NULL, evq, 100) >= 0);
    CHECK_EQ(lbm_event_dispatch(evq, 1), 1);
    CHECK_EQ(timer_runs, 6);
    CHECK_EQ(lbm_context_delete(ctx), 0);
    CHECK_EQ(lbm_event_queue_delete(evq), 0);
}

static void *dispatch(void *arg)
{
    return (void *)(intptr_t)lbm_event_dispatch(arg, LBM_EVENT_QUEUE_BLOCK);
}

TEST(each_unblock_releases_one_dispatcher_and_a_shut_down_queue_takes_nothing)
{
    lbm_context_t *ctx = reactor();
    lbm_event_queue_t *evq = queue_with(NULL, NULL, NULL);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, dispatch, evq), 0);
    }
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(lbm_event_dispatch_unblock(evq), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    atomic_store(&timer_runs, 0);
    CHECK(lbm_schedule_timer(ctx, on_timer, NULL, evq, 0) >= 0);
    CHECK(queue_holds(evq, 1));
    CHECK_EQ(lbm_event_queue_shutdown(evq), 0);
    CHECK_EQ(lbm_event_queue_size(evq), 0);
    CHECK(lbm_schedule_timer(ctx, on_timer, NULL, evq, 0) >= 0);
    usleep(20000);
    CHECK_EQ(lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL), 0);
    CHECK_EQ(timer_runs, 0);
    CHECK_EQ(lbm_context_delete(ctx), 0);
    CHECK_EQ(lbm_event_queue_delete(evq), 0);
}

static int warnings, warned_size;
static pthread_t monitor_thread;
static atomic_int notifications;

static int on_monitor(lbm_event_queue_t *evq, int event, size_t size, lbm_ulong_t delay_usec, void *clientd)
{
    if (event == LBM_EVENT_QUEUE_ENQUEUE_NOTIFICATION && size == 1 && delay_usec == 0) {
        monitor_thread = pthread_self();
        atomic_fetch_add(&notifications, 1);
    } else if (event & LBM_EVENT_QUEUE_SIZE_WARNING) {
        warnings++;
        warned_size = (int)size;
    }
    return 0;
}

TEST(the_monitor_warns_above_its_size_and_hears_of_each_event_on_the_thread_that_adds_it)
{
    lbm_context_t *ctx = reactor();
    lbm_event_queue_t *evq = queue_with("queue_size_warning", "10", on_monitor);
    for (int i = 0; i < 11; i++) {
        CHECK(lbm_schedule_timer(ctx, on_timer, NULL, evq, 0) >= 0);
    }
    CHECK(queue_holds(evq, 11));
    warnings = 0;
    for (int i = 0; i < 11; i++) {
        CHECK_EQ(lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL), 1);
    }
    CHECK_EQ(warnings, 1);
    CHECK_EQ(warned_size, 11);
    CHECK_EQ(lbm_event_queue_str_setopt(evq, "queue_enqueue_notification", "1"), 0);
    atomic_store(&notifications, 0);
    CHECK(lbm_schedule_timer(ctx, on_timer, NULL, evq, 0) >= 0);
    CHECK(queue_holds(evq, 1));
    for (int i = 0; i < HANG_SECONDS * 1000 && atomic_load(&notifications) == 0; i++) {
        usleep(1000);
    }
    CHECK_EQ(notifications, 1);
    CHECK(!pthread_equal(monitor_thread, pthread_self())); /* the context thread adds timers */
    CHECK_EQ(lbm_context_delete(ctx), 0);
    CHECK_EQ(lbm_event_queue_delete(evq), 0);
}

TEST(cancelling_what_is_over_or_never_was_succeeds)
{
    lbm_context_t *ctx = reactor();
    int mine;
    void *clientd = &mine;
    CHECK_EQ(lbm_cancel_timer(ctx, 12345, &clientd), 0);
    CHECK(clientd == NULL);
    CHECK_EQ(lbm_cancel_timer(ctx, -7, NULL), 0);
    int id = lbm_schedule_timer(ctx, on_timer, &mine, NULL, 100000);
    int other = lbm_schedule_timer(ctx, on_timer, NULL, NULL, 100000);
    CHECK(id >= 0 && other >= 0 && id != other);
    CHECK_EQ(lbm_cancel_timer(ctx, id, &clientd), 0);
    CHECK(clientd == &mine);
    CHECK_EQ(lbm_cancel_timer(ctx, id, &clientd), 0);
    CHECK(clientd == NULL);
    int next = lbm_schedule_timer(ctx, on_timer, NULL, NULL, 100000);
    CHECK(next != id);                    /* not reused soon */
    CHECK_EQ(lbm_context_delete(ctx), 0); /* with live timers */
}

/* ---- sequential contexts ---- */

TEST(sequential_contexts_exchange_messages_on_one_thread_and_only_while_processed)
{
    TEST_NEEDS_NET();
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "operational_mode", "sequential"));
    lbm_context_t *sender, *ctx;
    MUST(lbm_context_create(&sender, attr, NULL, NULL));
    MUST(lbm_context_create(&ctx, attr, NULL, NULL));
    MUST(lbm_context_attr_delete(attr));
    struct recorder r = RECORDER_INIT;
    lbm_src_t *src = net_source(sender, "sequential");
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "sequential", &r);
    for (int i = 0; i < HANG_SECONDS * 100 && r.counts[LBM_MSG_BOS] == 0; i++) {
        CHECK_EQ(lbm_context_process_events(sender, 5), 0);
        CHECK_EQ(lbm_context_process_events(ctx, 5), 0);
    }
    CHECK_EQ(r.counts[LBM_MSG_BOS], 1);
    net_send(src, "now");
    usleep(20000);
    CHECK_EQ(r.counts[LBM_MSG_DATA], 0);
    for (int i = 0; i < HANG_SECONDS * 100 && r.counts[LBM_MSG_DATA] == 0; i++) {
        CHECK_EQ(lbm_context_process_events(ctx, 5), 0);
    }
    CHECK_EQ(r.counts[LBM_MSG_DATA], 1);
    CHECK(pthread_equal(r.thread, pthread_self()));
    /* Nobody reads: a send that does not wait is refused in the end, and never blocks. */
    char *big = calloc(1, 60000);
    int rc = 0;
    for (int i = 0; i < 10000 && rc == 0; i++) {
        rc = lbm_src_send(src, big, 60000, LBM_SRC_NONBLOCK | LBM_MSG_FLUSH);
    }
    free(big);
    CHECK_EQ(rc, -1);
    CHECK_EQ(lbm_errnum(), LBM_EWOULDBLOCK);
    lbm_context_stats_t stats;
    CHECK_EQ(lbm_context_retrieve_stats(sender, &stats), 0);
    CHECK_EQ(stats.send_would_block, 1);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
}

/* ---- descriptors ---- */

static int seen_fd;
static lbm_ulong_t seen_events;

static int on_readable(lbm_context_t *ctx, lbm_handle_t handle, lbm_ulong_t ev, void *clientd)
{
    char byte;
    seen_fd = handle;
    seen_events = ev;
    *(atomic_int *)clientd += read(handle, &byte, 1) == 1;
    return 0;
}

TEST(a_readable_descriptor_comes_through_its_queue_once_for_each_byte)
{
    lbm_context_t *ctx = reactor();
    lbm_event_queue_t *evq = queue_with(NULL, NULL, NULL);
    atomic_int bytes = 0;
    int fds[2];
    CHECK_EQ(pipe(fds), 0);
    CHECK_EQ(lbm_register_fd(ctx, fds[0], on_readable, &bytes, evq, LBM_FD_EVENT_READ), 0);
    CHECK_EQ(lbm_register_fd(ctx, fds[0], on_readable, &bytes, evq, LBM_FD_EVENT_READ), -1); /* one for each bit */
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(write(fds[1], "ab", 2), 2);
    CHECK(queue_holds(evq, 1));
    usleep(5000);
    CHECK_EQ(lbm_event_queue_size(evq), 1); /* disabled until it ran */
    CHECK_EQ(lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL), 1);
    CHECK_EQ(bytes, 1);
    CHECK_EQ(seen_fd, fds[0]);
    CHECK_EQ(seen_events, LBM_FD_EVENT_READ);
    CHECK(queue_holds(evq, 1)); /* level triggered: the other byte */
    CHECK_EQ(lbm_cancel_fd(ctx, fds[0], LBM_FD_EVENT_READ), 0);
    CHECK_EQ(lbm_event_queue_size(evq), 0);
    CHECK_EQ(bytes, 1);
    close(fds[0]);
    close(fds[1]);
    CHECK_EQ(lbm_context_delete(ctx), 0);
    CHECK_EQ(lbm_event_queue_delete(evq), 0);
}
