/* The loop: calls, posts, timers, descriptors, ownership, and what must not deadlock. */
#include "um_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_mem.h"
#include "net/um_loop.h"

static int add_one(void *arg)
{
    return ++*(int *)arg;
}

static int fail_with_text(void *arg)
{
    return um_error(UM_EOP, "T-1", "said on the loop");
}

TEST(a_call_runs_on_the_embedded_thread_and_returns_its_result)
{
    struct um_loop *loop = um_loop_create(true, UM_LOOP_PEND, "test");
    CHECK(loop != NULL);
    int n = 4;
    CHECK(!um_loop_on_thread(loop));
    CHECK_EQ(um_loop_call(loop, add_one, &n), 5);
    um_error(UM_EINVAL, "T-0", "older");
    CHECK_EQ(um_loop_call(loop, fail_with_text, NULL), -1);
    CHECK_EQ(um_errnum(), UM_EOP);
    CHECK_STR(um_errmsg(), "T-1: said on the loop");
    um_loop_destroy(loop);
}

static int call_inside(void *arg)
{
    int n = 0;
    int rc = um_loop_call(arg, add_one, &n);
    return rc == 1 && um_loop_call_api(arg, "lbm_some_call", add_one, &n) == -1 && um_errnum() == UM_EOP &&
                   strstr(um_errmsg(), "lbm_some_call") != NULL && um_loop_on_thread(arg)
               ? 0
               : -1;
}

TEST(the_owner_may_call_at_once_but_not_through_the_api)
{
    for (int embedded = 0; embedded < 2; embedded++) {
        struct um_loop *loop = um_loop_create(embedded, UM_LOOP_PEND, "test");
        CHECK_EQ(um_loop_call(loop, call_inside, loop), 0);
        um_loop_destroy(loop);
    }
}

TEST(in_sequential_mode_a_call_needs_nobody_to_process_events)
{
    struct um_loop *loop = um_loop_create(false, UM_LOOP_PEND, "test");
    int n = 0;
    CHECK_EQ(um_loop_call(loop, add_one, &n), 1);
    CHECK_EQ(um_loop_run_once(loop, 0, 0), 0);
    um_loop_destroy(loop);
}

struct caller {
    struct um_loop *loop;
    int *shared;
    int rounds;
};

static void *caller_thread(void *arg)
{
    struct caller *caller = arg;
    for (int i = 0; i < caller->rounds; i++) {
        um_loop_call(caller->loop, add_one, caller->shared);
    }
    return NULL;
}

/* Callers race with each other (and with run_once); add_one is not atomic: only one thread at a time may own the loop.
 */
static void hammer(struct um_loop *loop, bool process)
{
    int shared = 0;
    pthread_t threads[4];
    struct caller caller = {loop, &shared, 2000};
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, caller_thread, &caller), 0);
    }
    for (int i = 0; process && i < 500; i++) {
        CHECK(um_loop_run_once(loop, 1, 0) >= 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK_EQ(shared, 8000);
}

TEST(one_thread_at_a_time_owns_the_loop)
{
    struct um_loop *loops[] = {um_loop_create(true, UM_LOOP_PEND, "pend"),
                               um_loop_create(true, UM_LOOP_BUSY_WAIT, "busy"),
                               um_loop_create(false, UM_LOOP_PEND, "seq"), um_loop_create(false, UM_LOOP_PEND, "seq2"),
                               um_loop_create(false, UM_LOOP_BUSY_WAIT, "seqbusy")};
    for (int i = 0; i < 5; i++) {
        CHECK(loops[i] != NULL);
        hammer(loops[i], i >= 3);
        um_loop_destroy(loops[i]);
    }
}

struct counting {
    struct um_command command;
    struct um_loop *loop;
    atomic_int ran;
};

static void on_counting(struct um_command *cmd)
{
    struct counting *counting = UM_CONTAINER_OF(cmd, struct counting, command);
    if (atomic_fetch_add(&counting->ran, 1) < 9) {
        um_loop_post(counting->loop, cmd);
    }
}

static int barrier(void *arg)
{
    return 0;
}

TEST(a_command_may_post_itself_again_and_pending_ones_run_before_the_end)
{
    for (int embedded = 0; embedded < 2; embedded++) {
        struct counting counting = {.loop = um_loop_create(embedded, UM_LOOP_PEND, "test")};
        um_command_init(&counting.command, on_counting);
        um_loop_post(counting.loop, &counting.command);
        if (!embedded) {                                    /* a thread of its own may have run the first one by now */
            um_loop_post(counting.loop, &counting.command); /* already posted: no effect */
        }
        while (atomic_load(&counting.ran) < 10) {
            CHECK(embedded || um_loop_run_once(counting.loop, 0, 0) >= 0);
        }
        um_loop_call(counting.loop, barrier, NULL);
        CHECK_EQ(atomic_load(&counting.ran), 10);
        um_loop_post(counting.loop, &counting.command);
        um_loop_destroy(counting.loop);
        CHECK_EQ(atomic_load(&counting.ran), 11);
    }
}

static int unpost(void *arg)
{
    struct counting *counting = arg;
    um_loop_post(counting->loop, &counting->command);
    um_loop_unpost(counting->loop, &counting->command);
    return 0;
}

TEST(a_withdrawn_command_does_not_run)
{
    struct counting counting = {.loop = um_loop_create(true, UM_LOOP_PEND, "test")};
    um_command_init(&counting.command, on_counting);
    um_loop_call(counting.loop, unpost, &counting);
    um_loop_call(counting.loop, barrier, NULL);
    um_loop_destroy(counting.loop);
    CHECK_EQ(atomic_load(&counting.ran), 0);
}

struct ticking {
    struct um_timer timer;
    struct um_loop *loop;
    atomic_int fires;
    uint64_t due_ns;
    atomic_bool early;
};

static void on_tick(struct um_timer *timer, uint64_t now_ns)
{
    struct ticking *ticking = UM_CONTAINER_OF(timer, struct ticking, timer);
    if (um_clock_ns() < ticking->due_ns) {
        atomic_store(&ticking->early, true);
    }
    ticking->due_ns = um_loop_now(ticking->loop) + 1500000;
    um_timer_arm(um_loop_wheel(ticking->loop), timer, ticking->due_ns);
    atomic_fetch_add(&ticking->fires, 1);
}

static int arm_ticking(void *arg)
{
    struct ticking *ticking = arg;
    um_timer_init(&ticking->timer, on_tick);
    ticking->due_ns = um_loop_now(ticking->loop) + 1000000;
    um_timer_arm(um_loop_wheel(ticking->loop), &ticking->timer, ticking->due_ns);
    return 0;
}

TEST(timers_fire_on_the_loop_and_never_early)
{
    for (int wait = UM_LOOP_PEND; wait <= UM_LOOP_BUSY_WAIT; wait++) {
        struct ticking ticking = {.loop = um_loop_create(true, wait, "test")};
        CHECK_EQ(um_loop_call(ticking.loop, arm_ticking, &ticking), 0);
        while (atomic_load(&ticking.fires) < 20) {
            usleep(1000);
        }
        um_loop_destroy(ticking.loop);
        CHECK(!atomic_load(&ticking.early));
    }
}

#define PAIRS 8
struct reader {
    struct um_fd ufd;
    int peer;
};
static struct reader *readers[PAIRS];
static struct um_loop *reader_loop;
static int reads;

/* The first reader that runs removes and frees all the others, whose events are in the same batch. */
static void on_readable(struct um_fd *ufd, uint32_t ready, uint64_t now_ns)
{
    reads++;
    for (int i = 0; i < PAIRS; i++) {
        um_loop_remove_fd(reader_loop, &readers[i]->ufd);
        close(readers[i]->ufd.fd);
        close(readers[i]->peer);
        um_free(readers[i]);
    }
}

TEST(a_callback_may_remove_and_free_descriptors_whose_events_wait_in_the_same_batch)
{
    reads = 0;
    reader_loop = um_loop_create(false, UM_LOOP_PEND, "test");
    for (int i = 0; i < PAIRS; i++) {
        int pair[2];
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
        readers[i] = um_calloc(1, sizeof **readers);
        um_fd_init(&readers[i]->ufd, pair[0], on_readable);
        readers[i]->peer = pair[1];
        CHECK_EQ(um_loop_add_fd(reader_loop, &readers[i]->ufd, UM_FD_READ), 0);
        CHECK_EQ(write(pair[1], "x", 1), 1);
    }
    CHECK_EQ(um_loop_run_once(reader_loop, 1000, 0), 0);
    CHECK_EQ(reads, 1);
    um_loop_destroy(reader_loop);
}

static uint32_t last_ready;
static int ready_calls;
static void on_ready(struct um_fd *ufd, uint32_t ready, uint64_t now_ns)
{
    last_ready = ready;
    ready_calls++;
}

TEST(interest_follows_the_application_and_a_hang_up_is_reported)
{
    struct um_loop *loop = um_loop_create(false, UM_LOOP_PEND, "test");
    int pair[2];
    struct um_fd ufd;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    um_fd_init(&ufd, pair[0], on_ready);
    ready_calls = 0;
    CHECK_EQ(um_loop_add_fd(loop, &ufd, 0), 0);
    um_loop_run_once(loop, 0, 0);
    CHECK_EQ(ready_calls, 0);
    CHECK_EQ(um_loop_set_interest(loop, &ufd, UM_FD_WRITE), 0);
    um_loop_run_once(loop, 0, 0);
    CHECK_EQ(last_ready, UM_FD_WRITE);
    close(pair[1]);
    CHECK_EQ(um_loop_set_interest(loop, &ufd, UM_FD_READ), 0);
    um_loop_run_once(loop, 0, 0);
    CHECK_EQ(last_ready, UM_FD_READ | UM_FD_HANGUP);
    ready_calls = 0;
    CHECK_EQ(um_loop_set_interest(loop, &ufd, 0), 0);
    um_loop_run_once(loop, 0, 0);
    CHECK_EQ(ready_calls, 0); /* no interest: a dead peer does not make the loop spin */
    um_loop_remove_fd(loop, &ufd);
    close(pair[0]);
    CHECK_EQ(um_loop_add_fd(loop, &ufd, UM_FD_READ), -1);
    CHECK_EQ(um_errnum(), UM_EOS);
    um_loop_destroy(loop);
}

static void *unblock_thread(void *arg)
{
    usleep(20000);
    um_loop_unblock(arg);
    return NULL;
}

TEST(unblock_ends_the_running_or_the_next_pass)
{
    struct um_loop *loop = um_loop_create(false, UM_LOOP_PEND, "test");
    um_loop_unblock(loop);
    CHECK_EQ(um_loop_run_once(loop, -1, 0), 1);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, unblock_thread, loop), 0);
    CHECK_EQ(um_loop_run_once(loop, -1, 0), 1);
    pthread_join(thread, NULL);
    CHECK_EQ(um_loop_run_once(loop, 0, 0), 0);
    um_loop_destroy(loop);
}

TEST(only_sequential_loops_are_run_by_the_application)
{
    struct um_loop *loop = um_loop_create(true, UM_LOOP_PEND, "test");
    CHECK_EQ(um_loop_run_once(loop, 0, 0), -1);
    CHECK_EQ(um_errnum(), UM_EINVAL);
    CHECK_CONTAINS(um_errmsg(), "sequential");
    um_loop_destroy(loop);
}

TEST(user_time_drives_timers_and_must_not_go_back)
{
    struct ticking ticking = {.loop = um_loop_create(false, UM_LOOP_PEND, "test")};
    const uint64_t start = 1700000000ull * UM_NS_PER_SEC;
    CHECK_EQ(um_loop_run_once(ticking.loop, 0, start), 0);
    CHECK_EQ(um_loop_call(ticking.loop, arm_ticking, &ticking), 0);
    CHECK_EQ(um_loop_run_once(ticking.loop, 0, start + 999999), 0);
    CHECK_EQ(atomic_load(&ticking.fires), 0);
    CHECK_EQ(um_loop_run_once(ticking.loop, 0, start + 1000000), 0);
    CHECK_EQ(atomic_load(&ticking.fires), 1);
    CHECK_EQ(um_loop_run_once(ticking.loop, 0, start), -1);
    CHECK_EQ(um_errnum(), UM_EINVAL);
    um_loop_destroy(ticking.loop);
}

struct cross {
    struct um_loop *other;
    pthread_barrier_t *meet;
    int rc, errnum, n;
};

static int call_the_other(void *arg)
{
    struct cross *cross = arg;
    pthread_barrier_wait(cross->meet); /* both loops are inside a callback */
    cross->rc = um_loop_call(cross->other, add_one, &cross->n);
    cross->errnum = um_errnum();
    return 0;
}

struct cross_run {
    struct um_loop *loop;
    struct cross *cross;
};

static void *cross_thread(void *arg)
{
    struct cross_run *run = arg;
    um_loop_call(run->loop, call_the_other, run->cross);
    return NULL;
}

TEST(two_contexts_that_call_each_other_from_callbacks_do_not_deadlock)
{
    struct um_loop *a = um_loop_create(true, UM_LOOP_PEND, "a"), *b = um_loop_create(true, UM_LOOP_PEND, "b");
    pthread_barrier_t meet;
    pthread_barrier_init(&meet, NULL, 2);
    struct cross to_b = {.other = b, .meet = &meet}, to_a = {.other = a, .meet = &meet};
    struct cross_run run = {a, &to_b};
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, cross_thread, &run), 0);
    um_loop_call(b, call_the_other, &to_a);
    pthread_join(thread, NULL);
    /* At least one succeeds; a refusal says EOP. */
    CHECK(to_a.rc == 1 || to_b.rc == 1);
    CHECK(to_a.rc == 1 || to_a.errnum == UM_EOP);
    CHECK(to_b.rc == 1 || to_b.errnum == UM_EOP);
    pthread_barrier_destroy(&meet);
    um_loop_destroy(a);
    um_loop_destroy(b);
}

static int nth;
static bool fail_nth(size_t size)
{
    return nth-- == 0;
}

TEST(creation_survives_the_failure_of_every_allocation)
{
    for (int n = 0; n < 2; n++) {
        nth = n;
        um_mem_set_fail_hook(fail_nth);
        struct um_loop *loop = um_loop_create(true, UM_LOOP_PEND, "test");
        um_mem_set_fail_hook(NULL);
        CHECK(loop == NULL);
        CHECK_EQ(um_errnum(), UM_ENOMEM);
    }
}

/* ---- a busy-waiting loop reads what is busy without asking epoll ---- */

struct hot_fd {
    struct um_fd ufd;
    struct um_loop *loop;
    uint32_t arrivals;
    atomic_int got, empty;
    bool remove_at_next;
};

static void on_hot(struct um_fd *ufd, uint32_t ready, uint64_t now_ns)
{
    struct hot_fd *hot = UM_CONTAINER_OF(ufd, struct hot_fd, ufd);
    char byte;
    if (recv(ufd->fd, &byte, 1, MSG_DONTWAIT) != 1) {
        hot->empty++;
        return;
    }
    hot->arrivals++;
    hot->got++;
    if (hot->remove_at_next) {
        um_loop_remove_fd(hot->loop, ufd);
    }
}

static int watch_hot(void *arg)
{
    struct hot_fd *hot = arg;
    um_fd_init(&hot->ufd, hot->ufd.fd, on_hot);
    hot->ufd.arrivals = &hot->arrivals;
    return um_loop_add_fd(hot->loop, &hot->ufd, UM_FD_READ);
}

static int forget_hot(void *arg)
{
    struct hot_fd *hot = arg;
    um_loop_remove_fd(hot->loop, &hot->ufd);
    return 0;
}

static bool wait_for(atomic_int *count, int value)
{
    for (int i = 0; i < 20000 && atomic_load(count) < value; i++) {
        usleep(1000);
    }
    return atomic_load(count) >= value;
}

static int empty_reads(const struct hot_fd hot[4])
{
    return hot[0].empty + hot[1].empty + hot[2].empty + hot[3].empty;
}

static int nothing(void *arg)
{
    return 0;
}

/* Until none is read in a hundred passes of the loop: each call needs one. */
static bool wait_not_read(struct um_loop *loop, const struct hot_fd hot[4])
{
    for (uint64_t until = um_clock_ns() + 30 * UM_NS_PER_SEC; um_clock_ns() < until;) {
        int before = empty_reads(hot);
        for (int i = 0; i < 100; i++) {
            um_loop_call(loop, nothing, NULL);
        }
        if (empty_reads(hot) == before) {
            return true;
        }
    }
    return false;
}

TEST(busy_descriptors_are_read_in_every_pass_until_they_are_quiet_or_removed)
{
    struct um_loop *loop = um_loop_create(true, UM_LOOP_BUSY_WAIT, "hot");
    struct hot_fd hot[4]; /* more than a loop reads by itself */
    int far[4];
    memset(hot, 0, sizeof hot);
    for (int i = 0; i < 4; i++) {
        int pair[2];
        CHECK_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
        hot[i].loop = loop;
        hot[i].ufd.fd = pair[0];
        far[i] = pair[1];
        CHECK_EQ(um_loop_call(loop, watch_hot, &hot[i]), 0);
    }
    for (int round = 1; round <= 3; round++) {
        for (int i = 0; i < 4; i++) {
            CHECK_EQ(send(far[i], "x", 1, 0), 1);
            CHECK(wait_for(&hot[i].got, round));
        }
    }
    CHECK(empty_reads(hot) > 0);     /* some were read though nothing had come */
    CHECK(wait_not_read(loop, hot)); /* quiet: epoll watches them again */
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(send(far[i], "x", 1, 0), 1);
        CHECK(wait_for(&hot[i].got, 4));
    }
    hot[0].remove_at_next = true; /* in its own callback */
    CHECK_EQ(send(far[0], "x", 1, 0), 1);
    CHECK(wait_for(&hot[0].got, 5));
    CHECK_EQ(send(far[0], "x", 1, 0), 1);
    for (int i = 1; i < 4; i++) {
        CHECK_EQ(um_loop_call(loop, forget_hot, &hot[i]), 0);
        CHECK_EQ(send(far[i], "x", 1, 0), 1);
    }
    usleep(20000);
    CHECK_EQ(hot[0].got, 5);
    CHECK_EQ(hot[1].got + hot[2].got + hot[3].got, 12);
    um_loop_destroy(loop);
    for (int i = 0; i < 4; i++) {
        close(hot[i].ufd.fd);
        close(far[i]);
    }
}
