/* The C half of the Python binding, as threads of Python use it: queues that
 * several threads fill, sends that wait while others close the source. Runs
 * under the thread sanitizer; the tests in Python cannot. */
#include "um_test_rcv.h"

#include <poll.h>

#pragma GCC diagnostic ignored "-Wunused-function"
#include "../../../um_cffi/binding/um_py_bridge.c"

#define WAIT_MS (HANG_SECONDS * 1000)
#define PER_THREAD 500

struct putter {
    um_py_queue_t *queue;
    uint64_t number;
};

static void *put_many(void *arg)
{
    struct putter *putter = arg;
    for (uint32_t i = 0; i < PER_THREAD; i++) {
        um_py_queue_put(putter->queue, putter->number, 0, "event", i, i, 0);
    }
    return NULL;
}

TEST(what_threads_put_is_taken_in_the_order_of_each)
{
    um_py_queue_t *queue = um_py_event_queue_create();
    CHECK(queue != NULL);
    pthread_t threads[3];
    struct putter putters[3];
    uint32_t next[3] = {0, 0, 0};
    for (int i = 0; i < 3; i++) {
        putters[i] = (struct putter){queue, (uint64_t)i};
        pthread_create(&threads[i], NULL, put_many, &putters[i]);
    }
    for (int got = 0; got < 3 * PER_THREAD;) {
        struct pollfd pfd = {.fd = um_py_queue_fd(queue), .events = POLLIN};
        CHECK_EQ(poll(&pfd, 1, WAIT_MS), 1);
        for (um_py_item_t *item; um_py_queue_take(queue, &item); um_py_item_free(item), got++) {
            CHECK_EQ(item->first, next[item->owner]++);
        }
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK_EQ(um_py_queue_dropped(queue), 0);
    um_py_queue_delete(queue);
}

TEST(a_full_queue_drops_and_counts)
{
    um_py_queue_t *queue = um_py_queue_create(2);
    CHECK(queue != NULL);
    for (uint32_t i = 0; i < 5; i++) {
        um_py_queue_put(queue, 1, 2, "text", i, 0, 0);
    }
    CHECK_EQ(um_py_queue_dropped(queue), 3);
    um_py_item_t *item;
    CHECK(um_py_queue_take(queue, &item));
    CHECK_EQ(item->first, 0);
    CHECK_STR(item->text, "text");
    um_py_item_free(item);
    um_py_queue_delete(queue); /* with one left in it */
}

struct bridged {
    lbm_context_t *here, *there;
    um_collector_t *collector;
    lbm_rcv_t *rcv;
    um_py_queue_t *events;
    um_py_source_t *source;
    atomic_int refused; /* 1: a deletion was refused as it should be, 2: it was not */
};

static void bridged_open(struct bridged *b, size_t queue_bytes)
{
    lbm_topic_t *topic;
    lbm_src_t *src;
    lbm_src_topic_attr_t *attr;
    memset(b, 0, sizeof *b);
    b->here = net_context();
    b->there = net_context();
    MUST(um_collector_create(&b->collector, queue_bytes));
    MUST(lbm_rcv_topic_lookup(&topic, b->here, "bridge", NULL));
    MUST(lbm_rcv_create(&b->rcv, b->here, topic, um_py_collector_proc(), b->collector, NULL));
    b->events = um_py_event_queue_create();
    b->source = um_py_source_create(7, b->events);
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_tcp_sender_socket_buffer", "20000"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_session_maximum_buffer", "65536"));
    MUST(lbm_src_topic_alloc(&topic, b->there, "bridge", attr));
    MUST(lbm_src_topic_attr_delete(attr));
    MUST(lbm_src_create(&src, b->there, topic, um_py_source_proc(), b->source, NULL));
    um_py_source_open(b->source, src);
    MUST(um_src_wait_receivers(src, 1, WAIT_MS));
    MUST(um_rcv_wait_ready(b->rcv, 1, WAIT_MS));
}

static void bridged_close(struct bridged *b)
{
    MUST(um_py_source_close(b->source));
    MUST(lbm_rcv_delete(b->rcv));
    MUST(um_collector_delete(b->collector));
    MUST(lbm_context_delete(b->here));
    MUST(lbm_context_delete(b->there));
    um_py_source_delete(b->source);
    um_py_queue_delete(b->events);
}

static void *send_until_closed(void *arg)
{
    um_py_source_t *source = arg;
    static char data[1000 * 100];
    for (;;) {
        size_t sent = 0;
        if (um_py_send(source, data, 1000, NULL, 0, 0, 20) != 0 && lbm_errnum() != LBM_EWOULDBLOCK) {
            return (void *)(intptr_t)lbm_errnum();
        }
        if (um_py_send_many(source, data, NULL, NULL, 1000, 1000, 100, LBM_MSG_FLUSH, 20, &sent) != 0 &&
            lbm_errnum() != LBM_EWOULDBLOCK) {
            return (void *)(intptr_t)lbm_errnum();
        }
    }
}

TEST(closing_ends_sends_of_other_threads_also_those_that_wait)
{
    TEST_NEEDS_NET();
    for (int round = 0; round < 12; round++) {
        bool waiting = round % 2 == 0;
        struct bridged b;
        pthread_t threads[3];
        bridged_open(&b, waiting ? 4096 : 0); /* nobody takes: with a small bound senders come to wait */
        for (int i = 0; i < 3; i++) {
            pthread_create(&threads[i], NULL, send_until_closed, b.source);
        }
        um_collector_stats_t stats;
        do {
            MUST(um_collector_stats(b.collector, &stats));
        } while (waiting ? stats.pauses == 0 : stats.messages == 0);
        MUST(um_py_source_close(b.source));
        for (int i = 0; i < 3; i++) {
            void *error;
            pthread_join(threads[i], &error);
            CHECK_EQ((intptr_t)error, LBM_EINVAL);
        }
        bridged_close(&b);
    }
}

static void *send_numbers(void *arg)
{
    for (uint64_t i = 0; i < PER_THREAD; i++) {
        while (um_py_send(arg, (const char *)&i, sizeof i, NULL, 0, LBM_MSG_FLUSH, 100) != 0) {
            if (lbm_errnum() != LBM_EWOULDBLOCK) {
                return (void *)1;
            }
        }
    }
    return NULL;
}

TEST(several_senders_and_one_taker_lose_nothing)
{
    TEST_NEEDS_NET();
    struct bridged b;
    pthread_t threads[3];
    bridged_open(&b, 0);
    for (int i = 0; i < 3; i++) {
        pthread_create(&threads[i], NULL, send_numbers, b.source);
    }
    for (size_t got = 0; got < 3 * PER_THREAD;) {
        um_batch_t *batch;
        CHECK_EQ(um_collector_take(b.collector, 0, WAIT_MS, &batch), 1);
        for (size_t i = 0; i < batch->count; i++) {
            got += batch->records[i].type == LBM_MSG_DATA;
        }
        um_batch_release(batch);
    }
    for (int i = 0; i < 3; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        CHECK(failed == NULL);
    }
    um_py_item_t *item = NULL;
    for (int ms = 0; ms < WAIT_MS && !um_py_queue_take(b.events, &item); ms++) {
        usleep(1000); /* it is told after it counts as a receiver */
    }
    CHECK(item != NULL);
    CHECK_EQ(item->kind, LBM_SRC_EVENT_CONNECT);
    CHECK_EQ(item->owner, 7);
    um_py_item_free(item);
    bridged_close(&b);
}

TEST(log_lines_come_through_the_queue_until_it_is_given_back)
{
    TEST_NEEDS_NET();
    um_py_queue_t *queue = um_py_log_queue_create();
    MUST(um_py_log_to(queue));
    lbm_logf(LBM_LOG_WARNING, "line %d", 5);
    MUST(um_py_log_to(NULL));
    um_py_item_t *item = NULL;
    bool found = false;
    while (um_py_queue_take(queue, &item)) {
        found = found || (item->kind == LBM_LOG_WARNING && strstr(item->text, "line 5") != NULL);
        um_py_item_free(item);
    }
    CHECK(found);
    um_py_queue_delete(queue);
}

/* As when Python has forgotten a source that the library has refused to delete. */
TEST(f2_events_of_a_source_that_could_not_be_deleted_find_what_they_need)
{
    TEST_NEEDS_NET();
    struct bridged b;
    bridged_open(&b, 4096);
    lbm_src_t *src = b.source->src;
    um_py_item_t *connected = NULL; /* the receiver's, told on the context's thread: nothing comes after it */
    for (int ms = 0; !um_py_queue_take(b.events, &connected) && ms < WAIT_MS; ms++) {
        usleep(1000);
    }
    CHECK(connected != NULL);
    um_py_item_free(connected);
    um_py_source_delete(b.source); /* as for an object that is gone */
    um_py_queue_delete(b.events);
    CHECK_EQ(um_py_on_source_event(src, LBM_SRC_EVENT_WAKEUP, NULL, b.source), 0);
    CHECK_EQ(um_py_on_source_event(src, LBM_SRC_EVENT_CONNECT, "somebody", b.source), 0);
    CHECK_EQ(atomic_load(&b.source->refs), 1);
    CHECK_EQ(b.source->wakeups, 1);
    CHECK_EQ(b.events->count, 0);
    CHECK_EQ(b.events->dropped, 2);
    MUST(um_py_source_close(b.source)); /* the last reference to both */
    MUST(lbm_rcv_delete(b.rcv));
    MUST(um_collector_delete(b.collector));
    MUST(lbm_context_delete(b.here));
    MUST(lbm_context_delete(b.there));
}

static int deletes_itself(lbm_context_t *ctx, const void *clientd)
{
    struct bridged *b = (struct bridged *)clientd;
    atomic_store(&b->refused, um_py_source_close(b->source) == -1 && lbm_errnum() == LBM_EOP ? 1 : 2);
    return 0;
}

TEST(f2_a_source_that_the_library_refuses_to_delete_goes_on)
{
    TEST_NEEDS_NET();
    struct bridged b;
    bridged_open(&b, 1 << 20);
    MUST(lbm_schedule_timer(b.there, deletes_itself, &b, NULL, 1));
    for (int ms = 0; atomic_load(&b.refused) == 0 && ms < WAIT_MS; ms++) {
        usleep(1000);
    }
    CHECK_EQ(atomic_load(&b.refused), 1);
    CHECK_EQ(um_py_try_send(b.source, "x", 1, LBM_MSG_FLUSH), 0);
    bridged_close(&b);
}
