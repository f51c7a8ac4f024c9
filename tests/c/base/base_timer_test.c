/* The timer wheel against a sorted list, and what callbacks may do. */
#include "um_test.h"

#include "base/um_mem.h"
#include "base/um_random.h"
#include "base/um_timer.h"

#define TIMERS 300

struct probe {
    struct um_timer timer;
    uint64_t expected; /* UM_NEVER: not armed */
    uint64_t fired_at;
    int fires;
};

static struct probe probes[TIMERS];
static struct um_timer_wheel *wheel;
static uint64_t last_due;
static bool order_broken, early;

static void on_probe(struct um_timer *timer, uint64_t now_ns)
{
    struct probe *probe = UM_CONTAINER_OF(timer, struct probe, timer);
    order_broken |= probe->expected < last_due;
    early |= now_ns < probe->expected;
    last_due = probe->expected;
    probe->expected = UM_NEVER;
    probe->fired_at = now_ns;
    probe->fires++;
}

static uint64_t random_delay(struct um_rng *rng)
{
    static const uint64_t spans[] = {1000, 3000000, 70000000, 5000000000ull, 400000000000ull, 1ull << 50, 1ull << 62};
    return um_rng_range(rng, 0, spans[um_rng_range(rng, 0, 6)]);
}

/* A random walk: arms, cancels and runs; after each run everything due has fired, nothing else has. */
static void random_walk(uint64_t start, uint64_t seed)
{
    struct um_rng rng;
    um_rng_seed(&rng, seed);
    uint64_t now = start;
    wheel = um_timer_wheel_create(now);
    CHECK(wheel != NULL);
    for (int i = 0; i < TIMERS; i++) {
        um_timer_init(&probes[i].timer, on_probe);
        probes[i].expected = UM_NEVER;
        probes[i].fires = 0;
    }
    for (int step = 0; step < 4000; step++) {
        struct probe *probe = &probes[um_rng_range(&rng, 0, TIMERS - 1)];
        switch (um_rng_range(&rng, 0, 5)) {
        case 0:
            um_timer_cancel(wheel, &probe->timer);
            probe->expected = UM_NEVER;
            break;
        case 1: {
            uint64_t next = um_timer_next(wheel);
            now = um_rng_range(&rng, 0, 1) != 0 && next != UM_NEVER && next > now
                      ? next
                      : now + random_delay(&rng) % (1ull << 52);
            last_due = 0;
            um_timer_run(wheel, now);
            break;
        }
        default:
            probe->expected = now + random_delay(&rng);
            um_timer_arm(wheel, &probe->timer, probe->expected);
        }
        uint64_t earliest = UM_NEVER;
        for (int i = 0; i < TIMERS; i++) {
            CHECK_EQ(um_timer_armed(&probes[i].timer), probes[i].expected != UM_NEVER);
            earliest = probes[i].expected < earliest ? probes[i].expected : earliest;
        }
        CHECK(um_timer_next(wheel) <= earliest);
        CHECK((um_timer_next(wheel) == UM_NEVER) <= (earliest == UM_NEVER));
        CHECK(!order_broken);
        CHECK(!early);
    }
    um_timer_wheel_destroy(wheel);
    for (int i = 0; i < TIMERS; i++) {
        CHECK(!um_timer_armed(&probes[i].timer));
    }
}

TEST(timers_fire_in_order_never_early_and_never_twice)
{
    for (uint64_t seed = 1; seed <= 10 && !um_test_failed; seed++) {
        random_walk(seed * 123456789ull, seed);
    }
}

TEST(timers_survive_the_crossing_of_every_digit_of_the_tick)
{
    /* Starts one tick before each digit carries. */
    for (unsigned digit = 1; digit < 7 && !um_test_failed; digit++) {
        random_walk((1ull << (20 + 6 * digit)) - 5, 100 + digit);
    }
}

TEST(everything_due_fires_in_one_run_however_far_time_jumps)
{
    wheel = um_timer_wheel_create(0);
    for (int i = 0; i < TIMERS; i++) {
        um_timer_init(&probes[i].timer, on_probe);
        probes[i].fires = 0;
        probes[i].expected = (uint64_t)(TIMERS - i) * 777777777ull;
        um_timer_arm(wheel, &probes[i].timer, probes[i].expected);
    }
    last_due = 0;
    CHECK_EQ(um_timer_run(wheel, TIMERS * 777777777ull - 1), TIMERS - 1);
    CHECK_EQ(um_timer_run(wheel, TIMERS * 777777777ull), 1);
    CHECK(!order_broken);
    CHECK(um_timer_next(wheel) == UM_NEVER);
    um_timer_wheel_destroy(wheel);
}

TEST(next_does_not_make_the_owner_spin_inside_a_tick)
{
    wheel = um_timer_wheel_create(0);
    struct um_timer *timer = &probes[0].timer;
    um_timer_init(timer, on_probe);
    um_timer_arm(wheel, timer, 10 * UM_NS_PER_SEC + 999999);
    last_due = 0;
    probes[0].expected = 10 * UM_NS_PER_SEC + 999999;
    int wakeups = 0;
    uint64_t now = 0;
    while (um_timer_armed(timer) && wakeups < 100) {
        now = um_timer_next(wheel);
        um_timer_run(wheel, now);
        wakeups++;
    }
    CHECK_EQ(now, 10 * UM_NS_PER_SEC + 999999);
    CHECK(wakeups <= 8);
    um_timer_wheel_destroy(wheel);
}

static int rearms;
static void on_rearm(struct um_timer *timer, uint64_t now_ns)
{
    rearms++;
    um_timer_arm(wheel, timer, 0); /* long past */
}

TEST(a_timer_armed_for_the_past_by_a_callback_waits_for_the_next_run)
{
    struct um_timer timer;
    wheel = um_timer_wheel_create(5000);
    um_timer_init(&timer, on_rearm);
    um_timer_arm(wheel, &timer, 1);
    rearms = 0;
    for (int i = 1; i <= 3; i++) {
        CHECK_EQ(um_timer_run(wheel, 6000), 1);
        CHECK_EQ(rearms, i);
        CHECK(um_timer_next(wheel) <= 6000);
    }
    um_timer_wheel_destroy(wheel);
}

static struct um_timer victim;
static void on_cancel_victim(struct um_timer *timer, uint64_t now_ns)
{
    um_timer_cancel(wheel, &victim);
}
static void on_victim(struct um_timer *timer, uint64_t now_ns)
{
    early = true; /* must not run */
}

TEST(a_callback_may_cancel_a_timer_that_is_due_in_the_same_run)
{
    struct um_timer killer;
    early = false;
    wheel = um_timer_wheel_create(0);
    um_timer_init(&killer, on_cancel_victim);
    um_timer_init(&victim, on_victim);
    um_timer_arm(wheel, &victim, 2000);
    um_timer_arm(wheel, &killer, 1000);
    CHECK_EQ(um_timer_run(wheel, 5000000), 1);
    CHECK(!early);
    CHECK(um_timer_next(wheel) == UM_NEVER);
    um_timer_wheel_destroy(wheel);
}

static void on_free(struct um_timer *timer, uint64_t now_ns)
{
    um_free(timer);
}

TEST(a_callback_may_free_its_timer)
{
    wheel = um_timer_wheel_create(0);
    for (int i = 0; i < 10; i++) {
        struct um_timer *timer = um_malloc(sizeof *timer);
        CHECK(timer != NULL);
        um_timer_init(timer, on_free);
        um_timer_arm(wheel, timer, (uint64_t)i * 100000000);
    }
    CHECK_EQ(um_timer_run(wheel, UM_NS_PER_SEC), 10);
    um_timer_wheel_destroy(wheel);
}

static int order[1000], order_count;
struct numbered {
    struct um_timer timer;
    int number;
};
static void on_numbered(struct um_timer *timer, uint64_t now_ns)
{
    order[order_count++] = UM_CONTAINER_OF(timer, struct numbered, timer)->number;
}

TEST(timers_of_one_due_time_fire_in_the_order_they_were_armed)
{
    static struct numbered timers[1000];
    wheel = um_timer_wheel_create(0);
    order_count = 0;
    for (int i = 0; i < 1000; i++) {
        timers[i].number = i;
        um_timer_init(&timers[i].timer, on_numbered);
        um_timer_arm(wheel, &timers[i].timer, 500);
    }
    CHECK_EQ(um_timer_run(wheel, 500), 1000);
    for (int i = 0; i < 1000; i++) {
        CHECK_EQ(order[i], i);
    }
    um_timer_wheel_destroy(wheel);
}

/* 2^58 milliseconds are 0 nanoseconds modulo 2^64: as an interval it kept the context thread for ever. */
TEST(f19_a_time_beyond_reason_stays_long)
{
    const uint64_t century = 100ull * 365 * 86400 * UM_NS_PER_SEC;
    CHECK_EQ(um_ms_ns(10000), 10000 * UM_NS_PER_MS);
    CHECK_EQ(um_us_ns(50), 50000);
    CHECK_EQ(um_s_ns(60), 60 * UM_NS_PER_SEC);
    for (unsigned bit = 45; bit < 64; bit++) {
        CHECK(um_s_ns(1ull << bit) > century && um_ms_ns(1ull << bit) > century);
        CHECK(um_us_ns(1ull << bit) >= um_us_ns(1ull << 45));
        CHECK(century + 2 * um_ms_ns(1ull << bit) > century); /* may be added to the clock */
    }
    CHECK_EQ(um_ms_ns(UINT64_MAX), UM_LONGEST_NS);
}
