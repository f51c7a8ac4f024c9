/* Waits of the library while somebody sets the wall clock. This program has a clock_gettime() of its own, whose wall
 * clock differs from the kernel's by whatever a test says: a deadline computed with it is early or late by that. */
#define _GNU_SOURCE
#include <sys/syscall.h>

#include "base/um_clock.h"
#include "base/um_timer.h"
#include "base/um_wait.h"
#include "um_test.h"
#include "um_test_net.h"
#include "um_test_rcv.h"

#define HOUR_S 3600
#define WAIT_MS 100

static atomic_int wall_ahead_s;

int clock_gettime(clockid_t clock, struct timespec *at)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, at);
    if (rc == 0 && clock == CLOCK_REALTIME) {
        at->tv_sec += atomic_load(&wall_ahead_s);
    }
    return rc;
}

/* One wait without result, on a thread of its own: the test can tell that it does not end. */
struct waiting {
    lbm_src_t *src;
    lbm_rcv_t *rcv;
    um_collector_t *collector;
    int (*wait)(struct waiting *w);
    uint64_t waited_ns;
    atomic_bool done;
};

static int wait_receivers(struct waiting *w)
{
    return um_src_wait_receivers(w->src, 1, WAIT_MS);
}

static int wait_ready(struct waiting *w)
{
    return um_rcv_wait_ready(w->rcv, 1, WAIT_MS);
}

static int wait_batch(struct waiting *w)
{
    um_batch_t *batch;
    return um_collector_take(w->collector, 0, WAIT_MS, &batch) == 0 ? -1 : 0;
}

static int wait_condition(struct waiting *w)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t never;
    um_cond_init(&never);
    pthread_mutex_lock(&lock);
    for (uint64_t until_ns = um_clock_ns() + WAIT_MS * UM_NS_PER_MS; um_clock_ns() < until_ns;) {
        um_cond_wait_until(&never, &lock, until_ns);
    }
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&never);
    return -1;
}

static void *waiter(void *arg)
{
    struct waiting *w = arg;
    uint64_t begin_ns = um_clock_ns();
    int rc = w->wait(w);
    w->waited_ns = rc != 0 ? um_clock_ns() - begin_ns : 0;
    atomic_store(&w->done, true);
    return NULL;
}

/* The wait takes its time with the wall clock ahead or behind by so much; a longer one is not found by measuring but by
 * not ending, since the machine may be slow. */
static bool takes_its_time(struct waiting *w, int (*wait)(struct waiting *w), int ahead_s)
{
    pthread_t thread;
    w->wait = wait;
    atomic_store(&w->done, false);
    atomic_store(&wall_ahead_s, ahead_s);
    if (pthread_create(&thread, NULL, waiter, w) != 0) {
        return false;
    }
    for (int ms = 0; !atomic_load(&w->done) && ms < HANG_SECONDS * 1000; ms++) {
        usleep(1000);
    }
    atomic_store(&wall_ahead_s, 0);
    if (!atomic_load(&w->done)) {
        fprintf(stderr, "wall clock %+d s: the wait has not ended\n", ahead_s);
        return false;
    }
    pthread_join(thread, NULL);
    if (w->waited_ns < WAIT_MS * UM_NS_PER_MS) {
        fprintf(stderr, "wall clock %+d s: waited %llu ns only\n", ahead_s, (unsigned long long)w->waited_ns);
    }
    return w->waited_ns >= WAIT_MS * UM_NS_PER_MS;
}

TEST(f17_waits_with_a_timeout_do_not_follow_the_wall_clock)
{
    TEST_NEEDS_NET();
    static int (*const waits[])(struct waiting * w) = {wait_condition, wait_receivers, wait_ready, wait_batch};
    static struct waiting w; /* outlives this function where a wait does not end */
    struct recorder nothing = RECORDER_INIT;
    lbm_context_t *ctx = net_lean_context();
    w.src = net_source(ctx, "clock/source");
    w.rcv = net_recording_receiver(ctx, "clock/receiver", &nothing);
    MUST(um_collector_create(&w.collector, 0));
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        CHECK(takes_its_time(&w, waits[i], -HOUR_S));
        CHECK(takes_its_time(&w, waits[i], HOUR_S));
    }
    MUST(um_collector_delete(w.collector));
    MUST(lbm_rcv_delete(w.rcv));
    MUST(lbm_src_delete(w.src));
    MUST(lbm_context_delete(ctx));
}
