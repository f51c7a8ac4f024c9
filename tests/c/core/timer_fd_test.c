/* Application timers and descriptors, on the context thread and through an event queue. */
#include "um_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lbm/lbm.h>

#include "base/um_clock.h"

static lbm_context_t *make(const char *mode)
{
    lbm_context_t *ctx = NULL;
    lbm_context_attr_t *attr;
    if (lbm_context_attr_create(&attr) == 0) {
        lbm_context_attr_str_setopt(attr, "operational_mode", mode);
        lbm_context_reactor_only_create(&ctx, attr);
        lbm_context_attr_delete(attr);
    }
    return ctx;
}

static atomic_int fires;
static atomic_ullong fired_at;
static atomic_int own_id;
static int on_timer(lbm_context_t *ctx, const void *clientd)
{
    atomic_store(&fired_at, um_clock_ns());
    atomic_fetch_add(&fires, 1);
    return 0;
}

static void wait_queued(lbm_event_queue_t *evq, int count)
{
    while (lbm_event_queue_size(evq) < count) {
        usleep(1000);
    }
}

static void wait_fires(int count)
{
    while (atomic_load(&fires) < count) {
        usleep(1000);
    }
}

TEST(a_timer_fires_once_and_not_early)
{
    lbm_context_t *ctx = make("embedded");
    CHECK(ctx != NULL);
    atomic_store(&fires, 0);
    uint64_t start = um_clock_ns();
    int id = lbm_schedule_timer(ctx, on_timer, NULL, NULL, 30);
    CHECK(id >= 0);
    wait_fires(1);
    CHECK(atomic_load(&fired_at) - start >= 27000000);
    usleep(50000);
    CHECK_EQ(atomic_load(&fires), 1);
    void *clientd = &fires;
    CHECK_EQ(lbm_cancel_timer(ctx, id, &clientd), 0); /* long gone: not an error */
    CHECK(clientd == NULL);
    CHECK_EQ(lbm_context_delete(ctx), 0);
}

TEST(a_cancelled_timer_does_not_fire_and_gives_its_pointer_back)
{
    lbm_context_t *ctx = make("embedded");
    atomic_store(&fires, 0);
    int id = lbm_schedule_timer(ctx, on_timer, &fires, NULL, 600000);
    void *clientd = NULL;
    CHECK_EQ(lbm_cancel_timer(ctx, id, &clientd), 0);
    CHECK(clientd == &fires);
    CHECK_EQ(lbm_context_delete(ctx), 0);
    CHECK_EQ(atomic_load(&fires), 0);
}

TEST(the_time_of_a_cancelled_timer_passes_without_it)
{
    lbm_context_t *ctx = make("sequential");
    lbm_process_events_info_t info = {LBM_PROC_EVENT_EX_FLAG_USER_TIME, {1000, 0}};
    void *clientd = NULL;
    atomic_store(&fires, 0);
    CHECK_EQ(lbm_context_process_events_ex(ctx, 0, &info), 0);
    int id = lbm_schedule_timer(ctx, on_timer, &fires, NULL, 500);
    CHECK(lbm_schedule_timer(ctx, on_timer, NULL, NULL, 600) >= 0);
    CHECK_EQ(lbm_context_process_events_ex(ctx, 0, &info), 0);
    CHECK_EQ(lbm_cancel_timer(ctx, id, &clientd), 0);
    CHECK(clientd == &fires);
    info.time_val.tv_sec = 1001;
    CHECK_EQ(lbm_context_process_events_ex(ctx, 0, &info), 0);
    CHECK_EQ(lbm_context_process_events_ex(ctx, 0, &info), 0);
    CHECK_EQ(atomic_load(&fires), 1); /* the other one */
    CHECK_EQ(lbm_context_delete(ctx), 0);
}

static int on_third_cancels_itself(lbm_context_t *ctx, const void *clientd)
{
    while (atomic_load(&own_id) == 0) { /* the thread that schedules may be held up */
        usleep(1000);
    }
    if (atomic_fetch_add(&fires, 1) == 2) {
        lbm_cancel_timer(ctx, atomic_load(&own_id), NULL);
    }
    return 0;
}

TEST(a_recurring_timer_repeats_until_it_cancels_itself)
{
    lbm_context_t *ctx = make("embedded");
    atomic_store(&fires, 0);
    atomic_store(&own_id, 0);
    atomic_store(&own_id, lbm_schedule_timer_recurring(ctx, on_third_cancels_itself, NULL, NULL, 5));
    wait_fires(3);
    usleep(50000);
    CHECK_EQ(atomic_load(&fires), 3);
    CHECK_EQ(lbm_context_delete(ctx), 0);
}

static int on_chain(lbm_context_t *ctx, const void *clientd)
{
    if (atomic_fetch_add(&fires, 1) < 9) {
        lbm_schedule_timer(ctx, on_chain, NULL, NULL, 0);
    }
    return 0;
}

TEST(a_callback_may_schedule_a_timer)
{
    lbm_context_t *ctx = make("embedded");
    atomic_store(&fires, 0);
    CHECK(lbm_schedule_timer(ctx, on_chain, NULL, NULL, 0) >= 0);
    wait_fires(10);
    CHECK_EQ(lbm_context_delete(ctx), 0);
}

static lbm_event_queue_t *make_queue(void)
{
    lbm_event_queue_t *evq = NULL;
    lbm_event_queue_attr_t *attr;
    if (lbm_event_queue_attr_create(&attr) == 0) {
        lbm_event_queue_attr_str_setopt(attr, "queue_cancellation_callbacks_enabled", "1");
        lbm_event_queue_attr_str_setopt(attr, "queue_size_warning", "1000000"); /* what waits is counted */
        lbm_event_queue_create(&evq, NULL, NULL, attr);
        lbm_event_queue_attr_delete(attr);
    }
    return evq;
}

/* A dispatch with a time limit may serve more than one event; this serves exactly `count`. */
static void serve(lbm_event_queue_t *evq, int count)
{
    while (count > 0) {
        int served = lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL);
        count -= served;
        usleep(served > 0 ? 0 : 1000);
    }
}

static atomic_int cancels;
static void on_cancelled(int dispatch_thread, void *clientd)
{
    atomic_fetch_add(&cancels, 1);
}

TEST(a_timer_with_a_queue_fires_in_dispatch_and_a_queued_expiry_can_be_cancelled)
{
    lbm_context_t *ctx = make("embedded");
    lbm_event_queue_t *evq = make_queue();
    lbm_event_queue_cancel_cb_info_t info = {evq, on_cancelled, NULL};
    atomic_store(&fires, 0);
    atomic_store(&cancels, 0);
    CHECK(lbm_schedule_timer(ctx, on_timer, NULL, evq, 1) >= 0);
    serve(evq, 1);
    CHECK_EQ(atomic_load(&fires), 1);
    int once = lbm_schedule_timer(ctx, on_timer, NULL, evq, 0);
    int again = lbm_schedule_timer_recurring(ctx, on_timer, NULL, evq, 2);
    wait_queued(evq, 2); /* both have expired */
    CHECK_EQ(lbm_cancel_timer_ex(ctx, once, NULL, &info), 0);
    CHECK_EQ(lbm_cancel_timer_ex(ctx, again, NULL, &info), 0);
    CHECK_EQ(lbm_cancel_timer_ex(ctx, again, NULL, &info), 0); /* unknown: still reported */
    CHECK_EQ(atomic_load(&cancels), 3);
    CHECK_EQ(lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL), 0);
    CHECK_EQ(atomic_load(&fires), 1);
    CHECK_EQ(lbm_context_delete(ctx), 0);
    CHECK_EQ(lbm_event_queue_delete(evq), 0);
}

static void *dispatch_block(void *arg)
{
    lbm_event_dispatch(arg, LBM_EVENT_QUEUE_BLOCK);
    return NULL;
}

TEST(timers_survive_scheduling_and_cancelling_from_several_threads)
{
    lbm_context_t *ctx = make("embedded");
    lbm_event_queue_t *evq = make_queue();
    pthread_t thread;
    atomic_store(&fires, 0);
    CHECK_EQ(pthread_create(&thread, NULL, dispatch_block, evq), 0);
    for (int i = 0; i < 2000; i++) {
        int id = i % 3 == 0 ? lbm_schedule_timer_recurring(ctx, on_timer, NULL, i % 2 ? evq : NULL, 1)
                            : lbm_schedule_timer(ctx, on_timer, NULL, i % 2 ? evq : NULL, (lbm_ulong_t)(i % 4));
        CHECK(id >= 0);
        if (i % 3 == 0 || i % 5 == 0) {
            CHECK_EQ(lbm_cancel_timer(ctx, id, NULL), 0);
        }
    }
    CHECK_EQ(lbm_context_delete(ctx), 0); /* timers that are left are cancelled */
    lbm_event_dispatch_unblock(evq);
    pthread_join(thread, NULL);
    CHECK_EQ(lbm_event_queue_delete(evq), 0);
}

TEST(sequential_timers_fire_only_while_events_are_processed)
{
    lbm_context_t *ctx = make("sequential");
    CHECK(ctx != NULL);
    atomic_store(&fires, 0);
    CHECK(lbm_schedule_timer(ctx, on_timer, NULL, NULL, 1) >= 0);
    usleep(30000);
    CHECK_EQ(atomic_load(&fires), 0);
    CHECK_EQ(lbm_context_process_events(ctx, 0), 0);
    CHECK_EQ(atomic_load(&fires), 1);
    uint64_t start = um_clock_ns();
    CHECK_EQ(lbm_context_process_events(ctx, 20), 0);
    CHECK(um_clock_ns() - start >= 20000000);
    CHECK_EQ(lbm_context_unblock(ctx), 0);
    CHECK_EQ(lbm_context_process_events(ctx, 600000), 0); /* returns at once */
    CHECK_EQ(lbm_context_delete(ctx), 0);
}

TEST(user_time_needs_no_wait_and_must_not_go_back)
{
    lbm_context_t *ctx = make("sequential");
    lbm_process_events_info_t info = {LBM_PROC_EVENT_EX_FLAG_USER_TIME, {1000, 0}};
    atomic_store(&fires, 0);
    CHECK_EQ(lbm_context_process_events_ex(ctx, 1, &info), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(lbm_context_process_events_ex(ctx, 0, &info), 0);
    CHECK(lbm_schedule_timer(ctx, on_timer, NULL, NULL, 5000) >= 0);
    CHECK_EQ(lbm_context_process_events_ex(ctx, 0, &info), 0);
    info.time_val.tv_sec = 1006;
    CHECK_EQ(lbm_context_process_events_ex(ctx, 0, &info), 0);
    CHECK_EQ(lbm_context_process_events_ex(ctx, 0, &info), 0);
    CHECK_EQ(atomic_load(&fires), 1);
    info.time_val.tv_sec = 1005;
    CHECK_EQ(lbm_context_process_events_ex(ctx, 0, &info), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(lbm_context_delete(ctx), 0);
}

/* ---- descriptors ---- */

static atomic_int reads;
static atomic_ulong read_events;
static int on_readable(lbm_context_t *ctx, lbm_handle_t fd, lbm_ulong_t ev, void *clientd)
{
    char byte;
    if (read(fd, &byte, 1) == 1) {
        atomic_fetch_add(&reads, 1);
    }
    atomic_store(&read_events, ev);
    return 0;
}

TEST(a_readable_descriptor_is_reported_until_it_is_cancelled)
{
    lbm_context_t *ctx = make("embedded");
    int pair[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    atomic_store(&reads, 0);
    CHECK_EQ(lbm_register_fd(ctx, pair[0], on_readable, NULL, NULL, LBM_FD_EVENT_READ), 0);
    CHECK_EQ(lbm_register_fd(ctx, pair[0], on_readable, NULL, NULL, LBM_FD_EVENT_READ), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(write(pair[1], "abc", 3), 3);
    while (atomic_load(&reads) < 3) { /* level triggered: one byte each time */
        usleep(1000);
    }
    CHECK_EQ(atomic_load(&read_events), LBM_FD_EVENT_READ);
    CHECK_EQ(lbm_cancel_fd(ctx, pair[0], LBM_FD_EVENT_READ), 0);
    CHECK_EQ(lbm_cancel_fd(ctx, pair[0], LBM_FD_EVENT_READ), -1);
    CHECK_EQ(write(pair[1], "x", 1), 1);
    usleep(20000);
    CHECK_EQ(atomic_load(&reads), 3);
    close(pair[0]);
    close(pair[1]);
    CHECK_EQ(lbm_context_delete(ctx), 0);
}

TEST(a_descriptor_with_a_queue_has_one_event_pending_and_a_cancel_removes_it)
{
    lbm_context_t *ctx = make("embedded");
    lbm_event_queue_t *evq = make_queue();
    lbm_event_queue_cancel_cb_info_t info = {evq, on_cancelled, NULL};
    int pair[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    atomic_store(&reads, 0);
    atomic_store(&cancels, 0);
    CHECK_EQ(lbm_register_fd(ctx, pair[0], on_readable, NULL, evq, LBM_FD_EVENT_READ), 0);
    CHECK_EQ(write(pair[1], "abc", 3), 3);
    serve(evq, 2); /* the first enables the descriptor again */
    CHECK_EQ(atomic_load(&reads), 2);
    wait_queued(evq, 1); /* the third */
    CHECK_EQ(lbm_cancel_fd_ex(ctx, pair[0], LBM_FD_EVENT_ALL, &info), 0);
    CHECK_EQ(atomic_load(&cancels), 1);
    CHECK_EQ(lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL), 0);
    close(pair[0]);
    close(pair[1]);
    CHECK_EQ(lbm_context_delete(ctx), 0);
    CHECK_EQ(lbm_event_queue_delete(evq), 0);
}

static atomic_int closes;
static int on_close(lbm_context_t *ctx, lbm_handle_t fd, lbm_ulong_t ev, void *clientd)
{
    lbm_cancel_fd(ctx, fd, LBM_FD_EVENT_ALL); /* everything of this descriptor, from its own callback */
    atomic_fetch_add(&closes, 1);
    return 0;
}

TEST(a_callback_may_cancel_all_registrations_of_its_descriptor)
{
    lbm_context_t *ctx = make("embedded");
    int pair[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    atomic_store(&closes, 0);
    CHECK_EQ(lbm_register_fd(ctx, pair[0], on_close, NULL, NULL, LBM_FD_EVENT_CLOSE), 0);
    CHECK_EQ(lbm_register_fd(ctx, pair[0], on_close, NULL, NULL, LBM_FD_EVENT_EXCEPT), 0);
    close(pair[1]);
    while (atomic_load(&closes) < 1) {
        usleep(1000);
    }
    usleep(10000);
    CHECK_EQ(atomic_load(&closes), 1);
    CHECK_EQ(lbm_cancel_fd(ctx, pair[0], LBM_FD_EVENT_ALL), -1);
    close(pair[0]);
    CHECK_EQ(lbm_context_delete(ctx), 0);
}

/* ---- the reactor-only context itself ---- */

static atomic_int refused;
static lbm_context_t *other;
static int on_forbidden(lbm_context_t *ctx, const void *clientd)
{
    lbm_context_t *made = NULL;
    int ok = lbm_context_delete(ctx) == -1 && lbm_errnum() == LBM_EOP;
    ok = ok && lbm_context_reactor_only_create(&made, NULL) == -1 && lbm_errnum() == LBM_EOP && made == NULL;
    ok = ok && lbm_context_process_events(other, 0) == 0;
    atomic_store(&refused, ok ? 1 : -1);
    return 0;
}

TEST(a_callback_that_creates_or_deletes_a_context_is_refused_not_deadlocked)
{
    lbm_context_t *ctx = make("embedded");
    other = make("sequential");
    atomic_store(&refused, 0);
    CHECK(lbm_schedule_timer(ctx, on_forbidden, NULL, NULL, 0) >= 0);
    while (atomic_load(&refused) == 0) {
        usleep(1000);
    }
    CHECK_EQ(atomic_load(&refused), 1);
    CHECK_EQ(lbm_context_delete(ctx), 0);
    CHECK_EQ(lbm_context_delete(other), 0);
}

TEST(a_reactor_only_context_refuses_messaging)
{
    lbm_context_t *ctx = make("embedded");
    lbm_context_stats_t stats;
    CHECK_EQ(lbm_context_retrieve_stats(ctx, &stats), -1);
    CHECK_EQ(lbm_errnum(), LBM_EOP);
    CHECK_EQ(lbm_context_set_nak_cutoff(ctx, LBM_NAK_CUTOFF_FLAG_DISABLE_NAKS), -1);
    CHECK_EQ(lbm_errnum(), LBM_EOP);
    CHECK_EQ(lbm_context_process_events(ctx, 0), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(lbm_context_delete(ctx), 0);
}

TEST(a_child_of_fork_gets_an_error_from_inherited_objects)
{
    lbm_context_t *ctx = make("embedded");
    lbm_event_queue_t *evq = make_queue();
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        int ok = lbm_schedule_timer(ctx, on_timer, NULL, NULL, 0) == -1 && lbm_errnum() == LBM_EINVAL &&
                 strstr(lbm_errmsg(), "fork") != NULL && lbm_context_delete(ctx) == -1 &&
                 lbm_event_dispatch(evq, 0) == -1 && lbm_errnum() == LBM_EINVAL;
        _exit(ok ? 0 : 1);
    }
    int status = -1;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    CHECK_EQ(lbm_context_delete(ctx), 0);
    CHECK_EQ(lbm_event_queue_delete(evq), 0);
}
