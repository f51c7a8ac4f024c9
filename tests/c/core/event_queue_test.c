/* Event queues: dispatch modes, order, purge, cancellation callbacks, warnings, statistics, threads. */
#include "um_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include <lbm/lbm.h>

#include "base/um_clock.h"
#include "base/um_mem.h"
#include "core/um_event_queue.h"

struct note {
    struct um_event event;
    int number;
};

static atomic_int runs, discards;
static int order[64];
static void (*inside)(int number);

static void note_run(struct um_event *event)
{
    struct note *note = UM_CONTAINER_OF(event, struct note, event);
    int at = atomic_fetch_add(&runs, 1);
    if (at < 64) {
        order[at] = note->number;
    }
    if (inside != NULL) {
        inside(note->number);
    }
    um_free(note);
}

static void note_discard(struct um_event *event)
{
    atomic_fetch_add(&discards, 1);
    um_free(UM_CONTAINER_OF(event, struct note, event));
}

static const struct um_event_ops note_ops = {.run = note_run, .discard = note_discard, .event_class = UM_EVENT_DATA};
static const struct um_event_ops sync_ops = {.run = note_run, .discard = note_discard, .after_closes = true};

static void put_ops(lbm_event_queue_t *evq, struct um_event_owner *owner, int number, const struct um_event_ops *ops)
{
    struct note *note = um_calloc(1, sizeof *note);
    if (note == NULL) {
        abort();
    }
    note->event.ops = ops;
    note->number = number;
    um_event_enqueue(evq, owner, &note->event);
}

static void put(lbm_event_queue_t *evq, struct um_event_owner *owner, int number)
{
    put_ops(evq, owner, number, &note_ops);
}

static lbm_event_queue_t *make(const char *option, const char *value, lbm_event_queue_monitor_proc monitor)
{
    lbm_event_queue_attr_t *attr;
    lbm_event_queue_t *evq = NULL;
    atomic_store(&runs, 0);
    atomic_store(&discards, 0);
    inside = NULL;
    if (lbm_event_queue_attr_create(&attr) == 0 &&
        (option == NULL || lbm_event_queue_attr_str_setopt(attr, option, value) == 0) &&
        lbm_event_queue_create(&evq, monitor, NULL, attr) != 0) {
        evq = NULL;
    }
    lbm_event_queue_attr_delete(attr);
    return evq;
}

TEST(poll_runs_one_event_and_never_waits)
{
    lbm_event_queue_t *evq = make(NULL, NULL, NULL);
    CHECK(evq != NULL);
    CHECK_EQ(lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL), 0);
    put(evq, NULL, 1);
    put(evq, NULL, 2);
    CHECK_EQ(lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL), 1);
    CHECK_EQ(lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL), 1);
    CHECK_EQ(lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL), 0);
    CHECK_EQ(order[0], 1);
    CHECK_EQ(order[1], 2);
    CHECK_EQ(lbm_event_queue_delete(evq), 0);
}

TEST(block_runs_what_stands_before_the_unblock_event)
{
    lbm_event_queue_t *evq = make(NULL, NULL, NULL);
    for (int i = 0; i < 5; i++) {
        put(evq, NULL, i);
    }
    CHECK_EQ(lbm_event_dispatch_unblock(evq), 0);
    put(evq, NULL, 5);
    CHECK_EQ(lbm_event_dispatch(evq, LBM_EVENT_QUEUE_BLOCK), 5);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(order[i], i);
    }
    CHECK_EQ(lbm_event_queue_delete(evq), 0);
    CHECK_EQ(atomic_load(&discards), 1);
}

static void *late_event(void *arg)
{
    usleep(60000);
    put(arg, NULL, 1);
    return NULL;
}

TEST(a_time_limit_is_tested_only_after_an_event)
{
    lbm_event_queue_t *evq = make(NULL, NULL, NULL);
    pthread_t thread;
    uint64_t start = um_clock_ns();
    CHECK_EQ(pthread_create(&thread, NULL, late_event, evq), 0);
    CHECK_EQ(lbm_event_dispatch(evq, 10), 1);
    CHECK(um_clock_ns() - start >= 60000000);
    pthread_join(thread, NULL);
    lbm_event_queue_delete(evq);
}

TEST(shutdown_drops_events_and_refuses_new_ones_but_dispatchers_can_be_released)
{
    lbm_event_queue_t *evq = make(NULL, NULL, NULL);
    put(evq, NULL, 1);
    CHECK_EQ(lbm_event_dispatch_unblock(evq), 0);
    CHECK_EQ(lbm_event_queue_shutdown(evq), 0);
    put(evq, NULL, 2);
    CHECK_EQ(atomic_load(&discards), 2);
    CHECK_EQ(lbm_event_dispatch(evq, LBM_EVENT_QUEUE_BLOCK), 0);
    CHECK_EQ(lbm_event_queue_delete(evq), 0);
}

TEST(size_needs_its_option)
{
    lbm_event_queue_t *evq = make(NULL, NULL, NULL);
    CHECK_EQ(lbm_event_queue_size(evq), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_CONTAINS(lbm_errmsg(), "queue_size_warning");
    CHECK_EQ(lbm_event_queue_str_setopt(evq, "queue_size_warning", "10"), 0); /* live */
    put(evq, NULL, 1);
    CHECK_EQ(lbm_event_queue_size(evq), 1);
    lbm_event_queue_delete(evq);
}

static int warned, warned_event;
static size_t warned_size;
static pthread_t warned_thread;
static int on_monitor(lbm_event_queue_t *evq, int event, size_t size, lbm_ulong_t delay_us, void *clientd)
{
    if (warned++ == 0) {
        warned_event = event;
        warned_size = size;
        warned_thread = pthread_self();
    }
    return 0;
}

TEST(the_monitor_is_told_at_the_eleventh_event_when_the_limit_is_ten)
{
    for (int count = 10; count <= 11; count++) {
        lbm_event_queue_t *evq = make("queue_size_warning", "10", on_monitor);
        warned = 0;
        for (int i = 0; i < count; i++) {
            put(evq, NULL, i);
        }
        while (lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL) > 0) {
        }
        CHECK_EQ(warned, count - 10);
        lbm_event_queue_delete(evq);
    }
    CHECK_EQ(warned_event, LBM_EVENT_QUEUE_SIZE_WARNING);
    CHECK_EQ(warned_size, 11);
}

TEST(an_event_that_waited_too_long_is_reported)
{
    lbm_event_queue_t *evq = make("queue_delay_warning", "1000", on_monitor);
    warned = 0;
    put(evq, NULL, 1);
    usleep(5000);
    CHECK_EQ(lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL), 1);
    CHECK_EQ(warned, 1);
    CHECK_EQ(warned_event, LBM_EVENT_QUEUE_DELAY_WARNING);
    lbm_event_queue_delete(evq);
}

TEST(an_enqueue_notification_comes_on_the_enqueuing_thread)
{
    lbm_event_queue_t *evq = make("queue_enqueue_notification", "1", on_monitor);
    warned = 0;
    put(evq, NULL, 1);
    CHECK_EQ(warned, 1);
    CHECK_EQ(warned_event, LBM_EVENT_QUEUE_ENQUEUE_NOTIFICATION);
    CHECK_EQ(warned_size, 1);
    CHECK(pthread_equal(warned_thread, pthread_self()));
    lbm_event_queue_delete(evq);
}

static int idles, cancels, cancel_thread;
static void on_idle(struct um_event_owner *owner)
{
    idles++;
}
static void on_cancel(int dispatch_thread, void *clientd)
{
    cancels++;
    cancel_thread = dispatch_thread;
}

TEST(closing_an_owner_makes_its_thousand_events_vanish_and_only_those)
{
    static const char *const purge[] = {"1", "0"};
    for (int i = 0; i < 2; i++) {
        lbm_event_queue_t *evq = make("queue_objects_purged_on_close", purge[i], NULL);
        struct um_event_owner owner, other;
        um_event_owner_init(&owner, evq);
        um_event_owner_init(&other, evq);
        idles = 0;
        for (int n = 0; n < 1000; n++) {
            put(evq, &owner, n);
            put(evq, &other, n);
        }
        CHECK_EQ(um_event_owner_close(&owner, NULL, on_idle), 0);
        CHECK_EQ(idles, i == 0);
        put(evq, &owner, 1000); /* closed: discarded at once */
        lbm_event_dispatch_unblock(evq);
        CHECK_EQ(lbm_event_dispatch(evq, LBM_EVENT_QUEUE_BLOCK), 1000);
        CHECK_EQ(idles, 1);
        CHECK_EQ(atomic_load(&discards), 1001);
        CHECK_EQ(um_event_owner_close(&other, NULL, on_idle), 0);
        CHECK_EQ(idles, 2);
        lbm_event_queue_delete(evq);
    }
}

TEST(a_cancel_callback_needs_a_queue_made_for_it)
{
    lbm_event_queue_t *evq = make(NULL, NULL, NULL);
    struct um_event_owner owner;
    um_event_owner_init(&owner, evq);
    lbm_event_queue_cancel_cb_info_t info = {evq, on_cancel, NULL};
    idles = 0;
    CHECK_EQ(um_event_owner_close(&owner, &info, on_idle), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(idles, 0);
    lbm_event_queue_delete(evq);
}

TEST(a_cancel_callback_comes_inside_the_call_when_nothing_is_pending)
{
    lbm_event_queue_t *evq = make("queue_cancellation_callbacks_enabled", "1", NULL);
    struct um_event_owner owner;
    um_event_owner_init(&owner, evq);
    lbm_event_queue_cancel_cb_info_t info = {evq, on_cancel, NULL};
    cancels = idles = 0;
    put(evq, &owner, 1); /* purged */
    CHECK_EQ(um_event_owner_close(&owner, &info, on_idle), 0);
    CHECK_EQ(cancels, 1);
    CHECK_EQ(cancel_thread, 0);
    CHECK_EQ(idles, 1);
    lbm_event_queue_delete(evq);
}

static struct um_event_owner closing;
static lbm_event_queue_cancel_cb_info_t closing_info;
static void close_inside(int number)
{
    um_event_owner_close(&closing, &closing_info, on_idle);
}

TEST(an_object_closed_by_its_own_callback_reports_after_the_callback)
{
    lbm_event_queue_t *evq = make("queue_cancellation_callbacks_enabled", "1", NULL);
    um_event_owner_init(&closing, evq);
    closing_info = (lbm_event_queue_cancel_cb_info_t){evq, on_cancel, NULL};
    cancels = idles = 0;
    inside = close_inside;
    put(evq, &closing, 1);
    put(evq, &closing, 2);
    CHECK_EQ(lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL), 1);
    CHECK_EQ(cancels, 1);
    CHECK_EQ(cancel_thread, 1);
    CHECK_EQ(idles, 1);
    CHECK_EQ(atomic_load(&discards), 1);
    CHECK_EQ(lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL), 0);
    lbm_event_queue_delete(evq);
}

static atomic_bool hold, holding, synced, cancelled_first;
static void hold_inside(int number)
{
    if (number == 1) {
        atomic_store(&holding, true);
        while (atomic_load(&hold)) {
            usleep(1000);
        }
    } else {
        atomic_store(&cancelled_first, cancels == 1);
        atomic_store(&synced, true);
    }
}

static void *dispatch_block(void *arg)
{
    lbm_event_dispatch(arg, LBM_EVENT_QUEUE_BLOCK);
    return NULL;
}

TEST(an_event_sync_waits_for_the_callback_of_the_deleted_object)
{
    lbm_event_queue_t *evq = make("queue_cancellation_callbacks_enabled", "1", NULL);
    struct um_event_owner owner;
    pthread_t threads[2];
    um_event_owner_init(&owner, evq);
    lbm_event_queue_cancel_cb_info_t info = {evq, on_cancel, NULL};
    inside = hold_inside;
    cancels = 0;
    atomic_store(&hold, true);
    atomic_store(&holding, false);
    atomic_store(&synced, false);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, dispatch_block, evq), 0);
    }
    put(evq, &owner, 1);
    while (!atomic_load(&holding)) {
        usleep(1000);
    }
    CHECK_EQ(um_event_owner_close(&owner, &info, NULL), 0);
    put_ops(evq, NULL, 2, &sync_ops);
    usleep(20000);
    CHECK(!atomic_load(&synced)); /* the second dispatcher is free, but the callback still runs */
    atomic_store(&hold, false);
    while (!atomic_load(&synced)) {
        usleep(1000);
    }
    CHECK(atomic_load(&cancelled_first));
    for (int i = 0; i < 2; i++) {
        lbm_event_dispatch_unblock(evq);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    lbm_event_queue_delete(evq);
}

TEST(a_queue_is_not_deleted_under_its_dispatchers)
{
    lbm_event_queue_t *evq = make(NULL, NULL, NULL);
    pthread_t thread;
    inside = hold_inside;
    atomic_store(&hold, true);
    atomic_store(&holding, false);
    CHECK_EQ(pthread_create(&thread, NULL, dispatch_block, evq), 0);
    put(evq, NULL, 1);
    while (!atomic_load(&holding)) {
        usleep(1000);
    }
    CHECK_EQ(lbm_event_queue_delete(evq), -1);
    CHECK_EQ(lbm_errnum(), LBM_EOP);
    atomic_store(&hold, false);
    lbm_event_dispatch_unblock(evq);
    pthread_join(thread, NULL);
    CHECK_EQ(lbm_event_queue_delete(evq), 0);
}

TEST(statistics_count_classes_ages_and_services)
{
    lbm_event_queue_t *evq = make("queue_count_enabled", "1", NULL);
    lbm_event_queue_stats_t stats;
    CHECK_EQ(lbm_event_queue_str_setopt(evq, "queue_age_enabled", "1"), 0);
    CHECK_EQ(lbm_event_queue_str_setopt(evq, "queue_service_time_enabled", "1"), 0);
    put(evq, NULL, 1);
    put(evq, NULL, 2);
    put_ops(evq, NULL, 3, &sync_ops);
    usleep(2000);
    CHECK_EQ(lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL), 1);
    CHECK_EQ(lbm_event_queue_retrieve_stats(evq, &stats), 0);
    CHECK_EQ(stats.data_msgs, 1);
    CHECK_EQ(stats.data_msgs_tot, 2);
    CHECK_EQ(stats.callback_events_tot, 1);
    CHECK_EQ(stats.events, 2);
    CHECK_EQ(stats.events_tot, 3);
    CHECK(stats.age_min >= 2000);
    CHECK_EQ(lbm_event_queue_reset_stats(evq), 0);
    CHECK_EQ(lbm_event_queue_retrieve_stats(evq, &stats), 0);
    CHECK_EQ(stats.data_msgs, 1); /* a snapshot */
    CHECK_EQ(stats.data_msgs_tot, 0);
    CHECK_EQ(stats.age_max, 0);
    lbm_event_queue_delete(evq);
}

#define PRODUCERS 3
#define PER_PRODUCER 5000
static void *produce(void *arg)
{
    for (int i = 0; i < PER_PRODUCER; i++) {
        put(arg, NULL, i);
    }
    return NULL;
}

TEST(many_producers_and_dispatchers_lose_nothing)
{
    lbm_event_queue_t *evq = make(NULL, NULL, NULL);
    pthread_t producers[PRODUCERS], dispatchers[2];
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(pthread_create(&dispatchers[i], NULL, dispatch_block, evq), 0);
    }
    for (int i = 0; i < PRODUCERS; i++) {
        CHECK_EQ(pthread_create(&producers[i], NULL, produce, evq), 0);
    }
    for (int i = 0; i < PRODUCERS; i++) {
        pthread_join(producers[i], NULL);
    }
    for (int i = 0; i < 2; i++) {
        lbm_event_dispatch_unblock(evq);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(dispatchers[i], NULL);
    }
    CHECK_EQ(atomic_load(&runs), PRODUCERS * PER_PRODUCER);
    CHECK_EQ(lbm_event_queue_delete(evq), 0);
}

TEST(handles_and_arguments_are_checked)
{
    CHECK_EQ(lbm_event_dispatch(NULL, 0), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_CONTAINS(lbm_errmsg(), "evq must be valid");
    CHECK_EQ(lbm_event_queue_create(NULL, NULL, NULL, NULL), -1);
    lbm_event_queue_t *evq = make(NULL, NULL, NULL);
    CHECK_EQ(lbm_event_queue_str_setopt(evq, "queue_cancellation_callbacks_enabled", "1"), -1); /* not live */
    CHECK_EQ(lbm_event_queue_retrieve_stats(evq, NULL), -1);
    lbm_event_queue_delete(evq);
}

/* An owner whose event is part of it, as timers have: one runs, one is queued. */
struct embedding {
    struct um_event_owner owner;
    struct um_event event;
    atomic_int discarded;
};

static void embedded_run(struct um_event *event)
{
}

static void embedded_discard(struct um_event *event)
{
    usleep(20000); /* the running callback ends meanwhile */
    atomic_fetch_add(&UM_CONTAINER_OF(event, struct embedding, event)->discarded, 1);
}

static const struct um_event_ops embedded_ops = {.run = embedded_run, .discard = embedded_discard};

static void embedding_on_idle(struct um_event_owner *owner)
{
    idles++;
    um_free(UM_CONTAINER_OF(owner, struct embedding, owner));
}

static void *release_soon(void *arg)
{
    usleep(5000);
    atomic_store(&hold, false);
    return NULL;
}

TEST(an_owner_that_holds_its_events_outlives_their_discarding)
{
    lbm_event_queue_t *evq = make(NULL, NULL, NULL);
    struct embedding *embedding = um_calloc(1, sizeof *embedding);
    pthread_t dispatcher, releaser;
    um_event_owner_init(&embedding->owner, evq);
    embedding->event.ops = &embedded_ops;
    um_list_init(&embedding->event.node);
    inside = hold_inside;
    idles = 0;
    atomic_store(&hold, true);
    atomic_store(&holding, false);
    CHECK_EQ(pthread_create(&dispatcher, NULL, dispatch_block, evq), 0);
    put(evq, &embedding->owner, 1);
    while (!atomic_load(&holding)) {
        usleep(1000);
    }
    um_event_enqueue(evq, &embedding->owner, &embedding->event);
    CHECK_EQ(pthread_create(&releaser, NULL, release_soon, NULL), 0);
    CHECK_EQ(um_event_owner_close(&embedding->owner, NULL, embedding_on_idle), 0);
    lbm_event_dispatch_unblock(evq);
    pthread_join(dispatcher, NULL);
    pthread_join(releaser, NULL);
    CHECK_EQ(idles, 1);
    lbm_event_queue_delete(evq);
}

TEST(f18_closing_many_owners_looks_at_their_own_events_only)
{
    enum { OWNERS = 500, EVENTS = 40 };
    static struct um_event_owner owners[OWNERS];
    lbm_event_queue_t *evq = make("queue_objects_purged_on_close", "1", NULL);
    idles = 0;
    for (int i = 0; i < OWNERS; i++) {
        um_event_owner_init(&owners[i], evq);
    }
    for (int n = 0; n < EVENTS; n++) {
        for (int i = 0; i < OWNERS; i++) {
            put(evq, &owners[i], n);
        }
    }
    for (int i = OWNERS - 1; i >= 0; i--) { /* those that stand last go first */
        CHECK_EQ(um_event_owner_close(&owners[i], NULL, on_idle), 0);
    }
    CHECK_EQ(idles, OWNERS);
    CHECK_EQ(atomic_load(&discards), OWNERS * EVENTS);
    CHECK_EQ(um_event_queue_steps(evq), OWNERS * EVENTS);
    lbm_event_queue_delete(evq);
}

static lbm_event_queue_t *counted_queue;
static struct um_event_owner counted_owner;

static void dispatch_in_callback(int number)
{
    inside = NULL;
    if (um_event_owner_close(&counted_owner, NULL, on_idle) == 0) {
        while (lbm_event_dispatch(counted_queue, LBM_EVENT_QUEUE_POLL) > 0) {
        }
    }
}

/* Timers wait until the callback of a deleted object is over: each is passed over once, and then runs in its turn. */
TEST(f18_events_that_wait_for_a_deletion_are_passed_over_once)
{
    enum { WAITING = 20, OTHERS = 20 };
    counted_queue = make(NULL, NULL, NULL);
    um_event_owner_init(&counted_owner, counted_queue);
    idles = 0;
    put(counted_queue, &counted_owner, 100);
    for (int n = 0; n < WAITING; n++) {
        put_ops(counted_queue, NULL, n, &sync_ops);
    }
    for (int n = 0; n < OTHERS; n++) {
        put(counted_queue, NULL, 200 + n);
    }
    inside = dispatch_in_callback;
    while (lbm_event_dispatch(counted_queue, LBM_EVENT_QUEUE_POLL) > 0) {
    }
    CHECK_EQ(idles, 1);
    CHECK_EQ(atomic_load(&runs), 1 + WAITING + OTHERS);
    CHECK_EQ(um_event_queue_steps(counted_queue), WAITING);
    for (int i = 0; i < OTHERS; i++) {
        CHECK_EQ(order[1 + i], 200 + i);
    }
    for (int i = 0; i < WAITING; i++) {
        CHECK_EQ(order[1 + OTHERS + i], i);
    }
    lbm_event_queue_delete(counted_queue);
}
