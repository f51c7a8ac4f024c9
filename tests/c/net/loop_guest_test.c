/* Guests of a loop: exclusion, fairness both ways, timers and descriptors they touch while the host waits. */
#include "um_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_mem.h"
#include "base/um_turn.h"
#include "net/um_loop.h"

#define ROUNDS 20000
#define HANG_NS (60 * UM_NS_PER_SEC)

struct shared {
    struct um_loop *loop;
    long plain; /* [loop] */
    long guest_rounds;
    atomic_bool stop;
    atomic_bool begun; /* the guest was there once: the host may be through before its thread starts */
    bool always;       /* the guest asks again at once */
};

static int count_up(void *arg)
{
    struct shared *s = arg;
    s->plain++;
    return 0;
}

static void *guest(void *arg)
{
    struct shared *s = arg;
    while (!atomic_load(&s->stop)) {
        um_loop_guest_enter(s->loop);
        s->plain++;
        s->guest_rounds++;
        um_loop_guest_leave(s->loop);
        atomic_store(&s->begun, true);
        if (!s->always) {
            sched_yield();
        }
    }
    return NULL;
}

static void *trying_guest(void *arg)
{
    struct shared *s = arg;
    while (!atomic_load(&s->stop)) {
        if (um_loop_guest_try_enter(s->loop)) {
            s->plain++;
            s->guest_rounds++;
            um_loop_guest_leave(s->loop);
        }
        sched_yield();
    }
    return NULL;
}

static void check_exclusion(bool embedded, enum um_loop_wait wait)
{
    struct shared s = {.loop = um_loop_create(embedded, wait, "test"), .always = true};
    pthread_t threads[2];
    CHECK(s.loop != NULL);
    CHECK_EQ(pthread_create(&threads[0], NULL, guest, &s), 0);
    CHECK_EQ(pthread_create(&threads[1], NULL, trying_guest, &s), 0);
    for (uint64_t until = um_clock_ns() + HANG_NS; !atomic_load(&s.begun) && um_clock_ns() < until;) {
        usleep(100);
    }
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_EQ(um_loop_call(s.loop, count_up, &s), 0);
    }
    atomic_store(&s.stop, true);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    CHECK(s.guest_rounds > 0);
    CHECK_EQ(s.plain, s.guest_rounds + ROUNDS);
    um_loop_destroy(s.loop);
}

TEST(guests_and_calls_exclude_each_other_and_none_is_kept_out)
{
    check_exclusion(true, UM_LOOP_PEND);
    check_exclusion(false, UM_LOOP_PEND);
}

TEST(a_host_that_never_sleeps_lets_guests_in)
{
    check_exclusion(true, UM_LOOP_BUSY_WAIT);
}

static atomic_int fired;

static void on_timer(struct um_timer *timer, uint64_t now_ns)
{
    atomic_store(&fired, 1);
}

TEST(a_timer_armed_by_a_guest_wakes_the_host)
{
    struct um_loop *loop = um_loop_create(true, UM_LOOP_PEND, "test");
    struct um_timer timer;
    um_timer_init(&timer, on_timer);
    atomic_store(&fired, 0);
    usleep(20000); /* the host waits without end now */
    um_loop_guest_enter(loop);
    CHECK(um_loop_on_thread(loop));
    CHECK(um_loop_in_any());
    um_timer_arm(um_loop_wheel(loop), &timer, um_loop_now(loop) + UM_NS_PER_MS);
    um_loop_guest_leave(loop);
    CHECK(!um_loop_on_thread(loop));
    CHECK(!um_loop_in_any());
    uint64_t until = um_clock_ns() + HANG_NS;
    while (!atomic_load(&fired) && um_clock_ns() < until) {
        usleep(1000);
    }
    CHECK(atomic_load(&fired));
    um_loop_destroy(loop);
}

static int refuse_inside(void *arg)
{
    return um_loop_call_api(arg, "lbm_some_call", refuse_inside, arg);
}

TEST(a_call_inside_a_guest_runs_at_once_and_through_the_api_is_refused)
{
    struct um_loop *loop = um_loop_create(true, UM_LOOP_PEND, "test");
    um_loop_guest_enter(loop);
    CHECK_EQ(um_loop_call(loop, refuse_inside, loop), -1);
    CHECK_EQ(um_errnum(), UM_EOP);
    um_loop_guest_leave(loop);
    um_loop_destroy(loop);
}

/* A descriptor that the host's epoll has found ready is removed by a guest before the host has its turn back. */
struct pipe_end {
    struct um_fd ufd;
    int peer;
    atomic_int removed, calls_after;
};

static void on_ready(struct um_fd *ufd, uint32_t ready, uint64_t now_ns)
{
    struct pipe_end *end = UM_CONTAINER_OF(ufd, struct pipe_end, ufd);
    if (atomic_load(&end->removed)) {
        atomic_fetch_add(&end->calls_after, 1);
    }
}

TEST(a_descriptor_removed_by_a_guest_is_not_reported_any_more)
{
    struct um_loop *loop = um_loop_create(true, UM_LOOP_PEND, "test");
    for (int i = 0; i < 2000; i++) {
        struct pipe_end end = {.peer = -1};
        int fds[2];
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
        um_fd_init(&end.ufd, fds[0], on_ready);
        um_loop_guest_enter(loop);
        CHECK_EQ(um_loop_add_fd(loop, &end.ufd, UM_FD_READ), 0);
        um_loop_guest_leave(loop);
        um_loop_guest_enter(loop);
        CHECK_EQ(write(fds[1], "x", 1), 1); /* the host wakes, and waits for the turn */
        if (i % 2 == 0) {
            usleep(20);
        }
        um_loop_remove_fd(loop, &end.ufd);
        end.ufd.interest = UM_FD_READ; /* what an owner who frees it may put there */
        atomic_store(&end.removed, 1);
        um_loop_guest_leave(loop);
        um_loop_guest_enter(loop); /* after the host's pass */
        um_loop_guest_leave(loop);
        CHECK_EQ(atomic_load(&end.calls_after), 0);
        close(fds[0]);
        close(fds[1]);
    }
    um_loop_destroy(loop);
}

static void *take_in_order(void *arg)
{
    struct um_turn *turn = arg;
    um_turn_take(turn);
    um_turn_give(turn);
    return NULL;
}

TEST(a_turn_tells_its_holder_that_somebody_waits)
{
    struct um_turn turn = {0};
    pthread_t thread;
    um_turn_take(&turn);
    CHECK(!um_turn_wanted(&turn));
    CHECK(!um_turn_try(&turn));
    CHECK_EQ(pthread_create(&thread, NULL, take_in_order, &turn), 0);
    uint64_t until = um_clock_ns() + HANG_NS;
    while (!um_turn_wanted(&turn) && um_clock_ns() < until) {
        usleep(100);
    }
    CHECK(um_turn_wanted(&turn));
    usleep(2000); /* it sleeps by now */
    um_turn_give(&turn);
    pthread_join(thread, NULL);
    CHECK(um_turn_try(&turn));
    um_turn_give(&turn);
}
