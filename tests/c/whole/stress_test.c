/* Everything at once for a few seconds: senders, sources and receivers that come
 * and go, wildcard receivers, event queues with several dispatchers, timers, and
 * messages kept beyond their callbacks, deleted by other threads. A steady pair
 * beside it must lose nothing. Meant for the thread sanitizer; UM_STRESS_SECONDS
 * sets the length. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <unistd.h>

#include "um_test_net.h"
#include "um_test_rcv.h"

#define TOPICS 4
#define KEPT 64
#define STEADY_SENDERS 2

static lbm_context_t *pub, *sub, *seq;
static lbm_event_queue_t *evq;
static atomic_bool stop, stop_dispatch;
static atomic_ulong received, timers_fired, sent_steady, got_steady, lost_steady, disordered_steady;

static struct {
    pthread_mutex_t lock;
    lbm_msg_t *msgs[KEPT];
    int count;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void nap(unsigned us)
{
    nanosleep(&(struct timespec){0, (long)us * 1000}, NULL);
}

static void topic_name(char *out, unsigned n)
{
    snprintf(out, 32, "stress.%u", n % TOPICS);
}

/* ---- receiving ---- */

static int on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    unsigned long n = atomic_fetch_add(&received, 1);
    if (n % 7 == 0 && lbm_msg_retain(msg) == 0) {
        lbm_msg_t *old = NULL;
        pthread_mutex_lock(&kept.lock);
        if (kept.count < KEPT) {
            kept.msgs[kept.count++] = msg;
        } else {
            old = kept.msgs[n % KEPT];
            kept.msgs[n % KEPT] = msg;
        }
        pthread_mutex_unlock(&kept.lock);
        if (old != NULL) {
            lbm_msg_delete(old);
        }
    }
    return 0;
}

static uint32_t steady_next;

static int on_steady(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    if (msg->type == LBM_MSG_DATA) {
        const lbm_msg_fragment_info_t *info = msg->fragment_info;
        uint32_t first = info != NULL ? info->start_sequence_number : msg->sequence_number;
        if (first != steady_next) {
            atomic_fetch_add(&disordered_steady, 1);
        }
        steady_next = msg->sequence_number + 1;
        atomic_fetch_add(&got_steady, 1);
    } else if (msg->type != LBM_MSG_BOS && msg->type != LBM_MSG_EOS) {
        atomic_fetch_add(&lost_steady, 1);
    }
    return 0;
}

static void *receivers_come_and_go(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    for (unsigned n = 0; !atomic_load(&stop); n++) {
        char name[32];
        topic_name(name, (unsigned)rand_r(&seed));
        lbm_context_t *ctx = n % 3 == 0 ? seq : sub;
        lbm_rcv_t *rcv = net_receiver(ctx, name, NULL, on_message, NULL, n % 2 == 0 ? evq : NULL);
        nap((unsigned)rand_r(&seed) % 20000);
        MUST(lbm_rcv_delete(rcv));
    }
    return NULL;
}

static void *wildcards_come_and_go(void *arg)
{
    unsigned seed = 77;
    for (unsigned n = 0; !atomic_load(&stop); n++) {
        lbm_wildcard_rcv_t *wrcv;
        MUST(
            lbm_wildcard_rcv_create(&wrcv, sub, "^stress\\..*", NULL, NULL, on_message, NULL, n % 2 == 0 ? evq : NULL));
        nap((unsigned)rand_r(&seed) % 40000);
        MUST(lbm_wildcard_rcv_delete(wrcv));
    }
    return NULL;
}

static int on_timer(lbm_context_t *ctx, const void *clientd);

/* A queue of its own that is deleted as soon as its receiver and timer are gone. */
static void *queues_come_and_go(void *arg)
{
    unsigned seed = 99;
    while (!atomic_load(&stop)) {
        lbm_event_queue_t *q;
        char name[32];
        topic_name(name, (unsigned)rand_r(&seed));
        MUST(lbm_event_queue_create(&q, NULL, NULL, NULL));
        lbm_rcv_t *rcv = net_receiver(sub, name, NULL, on_message, NULL, q);
        for (int i = 0; i < 10; i++) {
            MUST(lbm_event_dispatch(q, LBM_EVENT_QUEUE_POLL));
            int id = lbm_schedule_timer(sub, on_timer, NULL, q, 0);
            MUST(id);
            nap((unsigned)rand_r(&seed) % 1000);
            (void)lbm_cancel_timer(sub, id, NULL);
        }
        MUST(lbm_rcv_delete(rcv));
        MUST(lbm_event_queue_delete(q));
    }
    return NULL;
}

static void *dispatch(void *arg)
{
    while (!atomic_load(&stop_dispatch)) {
        MUST(lbm_event_dispatch(evq, LBM_EVENT_QUEUE_BLOCK));
    }
    return NULL;
}

static void *process(void *arg)
{
    while (!atomic_load(&stop_dispatch)) {
        MUST(lbm_context_process_events(seq, 5));
    }
    return NULL;
}

/* ---- sending ---- */

static int on_source_event(lbm_src_t *src, int event, void *ed, void *clientd)
{
    return 0;
}

static lbm_src_t *stress_source(const char *name, lbm_event_queue_t *q)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_session_maximum_buffer", "20000"));
    MUST(lbm_src_topic_alloc(&topic, pub, name, attr));
    lbm_src_topic_attr_delete(attr);
    MUST(lbm_src_create(&src, pub, topic, on_source_event, NULL, q));
    return src;
}

static void send_some(lbm_src_t *src, unsigned *seed, unsigned count)
{
    static const int flags[] = {0, LBM_MSG_FLUSH, LBM_SRC_NONBLOCK, LBM_SRC_BLOCK, LBM_MSG_FLUSH | LBM_SRC_NONBLOCK};
    static const size_t sizes[] = {0, 10, 100, 1000, 9000, 100000};
    char *data = calloc(1, 100000);
    for (unsigned i = 0; i < count; i++) {
        size_t len = sizes[(unsigned)rand_r(seed) % (i % 16 == 0 ? 6 : 4)];
        if (lbm_src_send(src, data, len, flags[(unsigned)rand_r(seed) % 5]) == -1 && lbm_errnum() != LBM_EWOULDBLOCK) {
            must(-1, "lbm_src_send");
        }
    }
    free(data);
}

static void *sources_come_and_go(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    for (unsigned n = 0; !atomic_load(&stop); n++) {
        char name[32];
        topic_name(name, (unsigned)rand_r(&seed));
        lbm_src_t *src = stress_source(name, n % 2 == 0 ? evq : NULL);
        for (int i = 0; i < 4; i++) {
            send_some(src, &seed, 50);
            nap((unsigned)rand_r(&seed) % 5000);
        }
        MUST(lbm_src_delete(src));
    }
    return NULL;
}

static void *steady_sender(void *arg)
{
    lbm_src_t *src = arg;
    static char data[40000];
    for (unsigned n = 0; !atomic_load(&stop); n++) {
        size_t len = n % 200 == 0 ? sizeof data : n % 300;
        MUST(lbm_src_send(src, data, len, n % 5 == 0 ? LBM_MSG_FLUSH | LBM_SRC_BLOCK : LBM_SRC_BLOCK));
        atomic_fetch_add(&sent_steady, 1);
        if (n % 100 == 0) {
            nap(200);
        }
    }
    return NULL;
}

/* ---- timers ---- */

static int on_timer(lbm_context_t *ctx, const void *clientd)
{
    atomic_fetch_add(&timers_fired, 1);
    if (clientd != NULL) {
        MUST(lbm_schedule_timer(ctx, on_timer, NULL, NULL, 1));
    }
    return 0;
}

static void *timers(void *arg)
{
    unsigned seed = 5;
    int ids[32] = {0};
    while (!atomic_load(&stop)) {
        unsigned slot = (unsigned)rand_r(&seed) % 32;
        lbm_context_t *ctx = slot % 2 == 0 ? sub : pub;
        if (ids[slot] > 0) {
            (void)lbm_cancel_timer(ctx, ids[slot], NULL);
        }
        lbm_event_queue_t *q = slot % 4 < 2 ? evq : NULL;
        lbm_ulong_t ms = (lbm_ulong_t)rand_r(&seed) % 3;
        ids[slot] = slot % 3 == 0 ? lbm_schedule_timer_recurring(ctx, on_timer, NULL, q, ms + 1)
                                  : lbm_schedule_timer(ctx, on_timer, slot % 5 == 0 ? &stop : NULL, q, ms);
        MUST(ids[slot]);
        nap((unsigned)rand_r(&seed) % 500);
    }
    return NULL;
}

static lbm_context_t *stress_context(bool sequential)
{
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "transport_tcp_port_low", "0"));
    MUST(lbm_context_attr_str_setopt(attr, "transport_tcp_port_high", "0"));
    MUST(lbm_context_attr_str_setopt(attr, "transport_tcp_maximum_ports", "2"));
    if (sequential) {
        MUST(lbm_context_attr_str_setopt(attr, "operational_mode", "sequential"));
    }
    return net_context_with(attr);
}

static int quiet(int level, const char *message, void *clientd)
{
    return 0;
}

static unsigned stress_seconds(void)
{
    const char *text = getenv("UM_STRESS_SECONDS");
    return text != NULL ? (unsigned)atoi(text) : 3;
}

TEST(everything_at_once_loses_nothing_of_a_steady_pair)
{
    TEST_NEEDS_NET();
    lbm_log(quiet, NULL);
    pub = stress_context(false);
    sub = stress_context(false);
    seq = stress_context(true);
    MUST(lbm_event_queue_create(&evq, NULL, NULL, NULL));
    lbm_src_t *steady = stress_source("steady", NULL);
    lbm_rcv_t *steady_rcv = net_receiver(sub, "steady", NULL, on_steady, NULL, NULL);
    for (int i = 0; i < HANG_SECONDS * 1000 && um_rcv_ready(steady_rcv) < 1; i++) {
        nap(1000);
    }

    pthread_t servers[3], threads[10];
    int n = 0;
    pthread_create(&servers[0], NULL, dispatch, NULL);
    pthread_create(&servers[1], NULL, dispatch, NULL);
    pthread_create(&servers[2], NULL, process, NULL);
    for (uintptr_t i = 1; i <= 2; i++) {
        pthread_create(&threads[n++], NULL, receivers_come_and_go, (void *)i);
        pthread_create(&threads[n++], NULL, sources_come_and_go, (void *)(i + 10));
    }
    pthread_create(&threads[n++], NULL, wildcards_come_and_go, NULL);
    pthread_create(&threads[n++], NULL, queues_come_and_go, NULL);
    pthread_create(&threads[n++], NULL, timers, NULL);
    for (int i = 0; i < STEADY_SENDERS; i++) {
        pthread_create(&threads[n++], NULL, steady_sender, steady);
    }
    sleep(stress_seconds());
    atomic_store(&stop, true);
    for (int i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
    }
    MUST(lbm_src_flush(steady));
    for (int i = 0; i < HANG_SECONDS * 1000 && atomic_load(&got_steady) < atomic_load(&sent_steady); i++) {
        nap(1000);
    }
    atomic_store(&stop_dispatch, true);
    MUST(lbm_event_dispatch_unblock(evq));
    MUST(lbm_event_dispatch_unblock(evq));
    for (int i = 0; i < 3; i++) {
        pthread_join(servers[i], NULL);
    }
    MUST(lbm_rcv_delete(steady_rcv));
    MUST(lbm_src_delete(steady));
    MUST(lbm_context_delete(seq));
    MUST(lbm_context_delete(sub));
    MUST(lbm_context_delete(pub));
    MUST(lbm_event_queue_delete(evq));
    for (int i = 0; i < kept.count; i++) {
        MUST(lbm_msg_delete(kept.msgs[i]));
    }
    lbm_log(NULL, NULL);
    CHECK(atomic_load(&received) > 0);
    CHECK(atomic_load(&timers_fired) > 0);
    CHECK(atomic_load(&got_steady) > 0);
    CHECK_EQ(atomic_load(&got_steady), atomic_load(&sent_steady));
    CHECK_EQ(atomic_load(&lost_steady), 0);
    CHECK_EQ(atomic_load(&disordered_steady), 0);
}
