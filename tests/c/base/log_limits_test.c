/* Log lines by identifier and origin: one in 60 s, then how many were left out; and the bounds of it. Virtual time. */
#include "um_test.h"

#include <pthread.h>

#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_log_limits.h"

#define SECOND 1000000000ull
#define MINUTE (60 * SECOND)

static struct um_log_limits limits;

static bool takes(uint64_t now_ns, const char *id, uint64_t origin)
{
    return um_log_limits_take(&limits, now_ns, id, origin, UM_LOG_WARNING);
}

TEST(one_line_of_an_identifier_and_origin_is_logged_in_a_minute)
{
    um_log_limits_clear(&limits);
    CHECK(takes(SECOND, "A-1", 7));
    CHECK(!takes(SECOND, "A-1", 7));
    CHECK(!takes(SECOND + MINUTE - 1, "A-1", 7));
    CHECK(takes(SECOND, "A-1", 8));
    CHECK(takes(SECOND, "A-2", 7));
}

TEST(then_it_is_told_how_many_were_left_out_and_the_next_is_logged)
{
    struct um_log_left_out due;
    um_log_limits_clear(&limits);
    CHECK(um_log_limits_due_ns(&limits) == UINT64_MAX);
    CHECK(takes(SECOND, "A-1", 7));
    um_log_limits_words(&limits, "A-1", 7, "the first");
    for (int i = 0; i < 5; i++) {
        CHECK(!takes(2 * SECOND, "A-1", 7));
    }
    CHECK(um_log_limits_due_ns(&limits) == SECOND + MINUTE);
    CHECK(!um_log_limits_next_due(&limits, SECOND + MINUTE - 1, &due));
    CHECK(um_log_limits_next_due(&limits, SECOND + MINUTE, &due));
    CHECK_STR(due.id, "A-1");
    CHECK_STR(due.words, "the first");
    CHECK_EQ(due.count, 5);
    CHECK_EQ(due.level, UM_LOG_WARNING);
    CHECK(!um_log_limits_next_due(&limits, SECOND + MINUTE, &due));
    CHECK(takes(SECOND + MINUTE, "A-1", 7));
}

TEST(where_nothing_was_left_out_nothing_is_told)
{
    struct um_log_left_out due;
    um_log_limits_clear(&limits);
    CHECK(takes(0, "A-1", 7));
    CHECK(!um_log_limits_next_due(&limits, MINUTE, &due));
    CHECK(um_log_limits_due_ns(&limits) == UINT64_MAX);
    CHECK(takes(MINUTE, "A-1", 7));
}

TEST(what_comes_late_to_be_told_counts_as_left_out_until_then)
{
    struct um_log_left_out due;
    um_log_limits_clear(&limits);
    CHECK(takes(0, "A-1", 7));
    CHECK(!takes(1, "A-1", 7));
    CHECK(!takes(2 * MINUTE, "A-1", 7));
    CHECK(um_log_limits_next_due(&limits, 2 * MINUTE, &due));
    CHECK_EQ(due.count, 2);
    CHECK(takes(2 * MINUTE, "A-1", 7));
}

TEST(a_clock_a_little_behind_opens_nothing_one_that_begins_anew_does)
{
    um_log_limits_clear(&limits);
    CHECK(takes(MINUTE, "A-1", 7));
    CHECK(!takes(MINUTE - SECOND, "A-1", 7));
    um_log_limits_clear(&limits);
    CHECK(takes(10 * MINUTE, "A-1", 7));
    CHECK(takes(0, "A-1", 7));
}

TEST(lines_without_an_origin_are_alike)
{
    um_log_limits_clear(&limits);
    CHECK(takes(0, "A-1", UM_LOG_ORIGIN_ALL));
    CHECK(!takes(1, "A-1", UM_LOG_ORIGIN_ALL));
    CHECK(takes(1, "A-2", UM_LOG_ORIGIN_ALL));
}

/* Strangers choose their addresses. */
TEST(a_flood_of_origins_is_a_bounded_number_of_lines_of_each_identifier)
{
    struct um_log_left_out due;
    unsigned lines = 0;
    uint64_t left_out = 0;
    um_log_limits_clear(&limits);
    for (uint64_t i = 0; i < 100000; i++) {
        lines += takes(i, "A-1", i);
    }
    CHECK_EQ(lines, UM_LOG_ORIGINS_EACH + 1);
    while (um_log_limits_next_due(&limits, MINUTE + SECOND, &due)) {
        left_out += due.count;
    }
    CHECK_EQ(lines + left_out, 100000);
    CHECK(takes(MINUTE + SECOND, "A-1", 5)); /* the places are free again */
}

TEST(a_flood_of_identifiers_and_origins_leaves_one_line_for_each_identifier_at_least)
{
    static char names[100][8];
    struct um_log_left_out due;
    unsigned lines = 0;
    um_log_limits_clear(&limits);
    for (unsigned id = 0; id < 100; id++) {
        unsigned before = lines;
        snprintf(names[id], sizeof(names[id]), "B-%u", id);
        for (uint64_t i = 0; i < 1000; i++) {
            lines += takes(i, names[id], i);
        }
        CHECK(lines > before);
    }
    CHECK_EQ(lines, UM_LOG_ORIGINS + 100);
    while (um_log_limits_next_due(&limits, MINUTE + SECOND, &due)) {
    }
    CHECK(takes(MINUTE + SECOND, "B-99", 1) && takes(MINUTE + SECOND, "B-99", 2));
}

/* Places are taken and freed in any order; what was taken is never more than was asked for, and no line is forgotten.
 */
TEST(every_line_is_either_logged_or_counted)
{
    static const char *const ids[] = {"C-1", "C-2", "C-3"};
    struct um_log_left_out due;
    uint64_t lines = 0, counted = 0, state = 1, now_ns = 0;
    um_log_limits_clear(&limits);
    for (unsigned i = 0; i < 200000; i++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        now_ns += (state >> 33) % SECOND;
        while (i % 7 == 0 && um_log_limits_next_due(&limits, now_ns, &due)) {
            counted += due.count;
        }
        lines += takes(now_ns, ids[(state >> 40) % 3], (state >> 48) % 200);
    }
    while (um_log_limits_next_due(&limits, now_ns + 2 * MINUTE, &due)) {
        counted += due.count;
    }
    CHECK_EQ(lines + counted, 200000);
    CHECK(lines > 1000 && counted > 1000);
}

static char line[4096];
static int lines_logged, line_level;

static int on_log(int level, const char *message, void *clientd)
{
    snprintf(line, sizeof(line), "%s", message);
    line_level = level;
    __atomic_fetch_add(&lines_logged, 1, __ATOMIC_RELAXED);
    return 0;
}

static void say(uint64_t now_ns, struct um_log_origin origin)
{
    int so_far = __atomic_load_n(&lines_logged, __ATOMIC_RELAXED); /* threads say, too */
    um_log_limited(origin, now_ns, UM_LOG_NOTICE, "Core-1-2", "words %d", so_far);
}

TEST(the_log_tells_what_was_left_out_when_a_loop_asks)
{
    lines_logged = 0;
    um_log_set_proc(on_log, NULL);
    CHECK(um_log_due_ns() == UINT64_MAX);
    for (int i = 0; i < 10; i++) {
        say(SECOND + (uint64_t)i, um_log_of_ip(1));
    }
    CHECK_EQ(lines_logged, 1);
    CHECK_STR(line, "Core-1-2: words 0");
    CHECK(um_log_due_ns() == SECOND + MINUTE);
    um_log_tell_left_out(SECOND + MINUTE);
    CHECK_EQ(lines_logged, 2);
    CHECK_STR(line, "Core-1-2: 9 similar lines were left out in the last 60 s: words 0");
    CHECK_EQ(line_level, UM_LOG_NOTICE);
    CHECK(um_log_due_ns() == UINT64_MAX);
    um_log_set_proc(NULL, NULL);
}

TEST(the_next_line_comes_behind_the_count_of_those_before_it)
{
    lines_logged = 0;
    um_log_set_proc(on_log, NULL);
    say(SECOND, um_log_of("10.1.2.3"));
    say(SECOND, um_log_of("10.1.2.3"));
    say(SECOND + MINUTE, um_log_of("10.1.2.4"));
    CHECK_EQ(lines_logged, 3);
    CHECK_STR(line, "Core-1-2: words 1"); /* made before the count was told */
    um_log_set_proc(NULL, NULL);
}

TEST(whoever_takes_the_log_has_been_told_of_nothing)
{
    lines_logged = 0;
    um_log_set_proc(on_log, NULL);
    say(SECOND, um_log_of_all());
    um_log_set_proc(on_log, NULL);
    say(SECOND, um_log_of_all());
    CHECK_EQ(lines_logged, 2);
    CHECK(um_log_left_out(um_log_of_all(), SECOND, "Core-1-2"));
    CHECK(!um_log_left_out(um_log_of_all(), SECOND, "Core-1-3"));
    um_log_set_proc(NULL, NULL);
}

/* The callback may log itself, and set another callback: no lock is held. */
static int relog(int level, const char *message, void *clientd)
{
    if (lines_logged++ < 3) {
        um_log_limited(um_log_of_ip((uint32_t)lines_logged), SECOND, UM_LOG_NOTICE, "Core-1-4", "again");
        um_log_tell_left_out(SECOND);
    }
    return 0;
}

TEST(the_callback_of_the_log_may_log)
{
    lines_logged = 0;
    um_log_set_proc(relog, NULL);
    say(SECOND, um_log_of_all());
    CHECK_EQ(lines_logged, 4);
    um_log_set_proc(NULL, NULL);
}

enum { THREADS = 4, LINES = 10000 };

static void *log_often(void *unused)
{
    for (int i = 0; i < LINES; i++) {
        say(SECOND, um_log_of_ip(1));
    }
    return unused;
}

TEST(threads_share_the_limits_and_no_line_left_out_is_forgotten)
{
    pthread_t threads[THREADS];
    char expected[64];
    lines_logged = 0;
    um_log_set_proc(on_log, NULL);
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, log_often, NULL);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK_EQ(lines_logged, 1);
    um_log_tell_left_out(SECOND + MINUTE);
    um_log_set_proc(NULL, NULL);
    snprintf(expected, sizeof(expected), " %d similar lines", THREADS * LINES - 1);
    CHECK_EQ(lines_logged, 2);
    CHECK_CONTAINS(line, expected);
}

TEST(an_allocation_that_has_failed_is_told_by_a_loop)
{
    lines_logged = 0;
    um_log_set_proc(on_log, NULL);
    um_error_nomem("a thing", 17);
    CHECK_EQ(lines_logged, 0); /* its caller may hold a lock */
    CHECK_EQ(um_log_due_ns(), 0);
    um_log_tell_left_out(SECOND);
    CHECK_EQ(lines_logged, 1);
    CHECK_STR(line, "Core-10055-131: a thing: an allocation of 17 bytes has failed");
    CHECK_EQ(line_level, UM_LOG_ERR);
    um_error_nomem("a thing", 17);
    um_log_tell_left_out(2 * SECOND);
    CHECK_EQ(lines_logged, 1);
    CHECK(um_log_due_ns() == SECOND + MINUTE);
    um_log_set_proc(NULL, NULL);
}
