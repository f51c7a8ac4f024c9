/* Error text, log, random numbers, buffers, the allocator's hook and what a thread gets of the processors. */
#define _GNU_SOURCE
#include "um_test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/um_clock.h"
#include "base/um_buf.h"
#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "base/um_random.h"
#include "base/um_thread.h"

TEST(an_error_carries_identifier_text_and_leaves_errno_alone)
{
    errno = ENOENT;
    CHECK_EQ(um_error(UM_EINVAL, "CoreApi-1-2", "option %s %d: must be less", "x", 5), -1);
    CHECK_EQ(errno, ENOENT);
    CHECK_EQ(um_errnum(), UM_EINVAL);
    CHECK_STR(um_errmsg(), "CoreApi-1-2: option x 5: must be less");
}

TEST(an_operating_system_error_appends_the_reason)
{
    CHECK_EQ(um_error_os(EADDRINUSE, "CoreApi-1-3", "bind port %d", 4000), -1);
    CHECK_EQ(um_errnum(), UM_EOS);
    CHECK_STR(um_errmsg(), "CoreApi-1-3: bind port 4000: Address already in use");
}

TEST(an_error_text_is_cut_not_overrun)
{
    char longer[2000];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    um_error_os(ENOENT, "CoreApi-1-4", "%s", longer);
    CHECK_EQ(strlen(um_errmsg()), 511);
    um_error(UM_EOP, longer, "text");
    CHECK_EQ(strlen(um_errmsg()), 511);
}

TEST(an_error_may_quote_the_error_before_it)
{
    um_error(UM_EINVAL, "A-1", "inner");
    um_error(UM_EOP, "B-2", "outer (%s)", um_errmsg());
    CHECK_STR(um_errmsg(), "B-2: outer (A-1: inner)");
}

static void *other_thread(void *arg)
{
    um_error(UM_ENOMEM, "T-1", "other thread");
    um_error_save(arg);
    return NULL;
}

TEST(errors_belong_to_a_thread_and_can_be_carried_over)
{
    um_error(UM_EINVAL, "T-0", "mine");
    struct um_error_state state;
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, other_thread, &state), 0);
    pthread_join(thread, NULL);
    CHECK_STR(um_errmsg(), "T-0: mine");
    um_error_restore(&state);
    CHECK_EQ(um_errnum(), UM_ENOMEM);
    CHECK_STR(um_errmsg(), "T-1: other thread");
}

static char logged[4096];
static int logged_level;
static int on_log(int level, const char *message, void *clientd)
{
    logged_level = level;
    snprintf(logged, sizeof logged, "%s", message);
    return 0;
}

TEST(a_log_line_reaches_the_callback_with_its_level)
{
    um_log_set_proc(on_log, NULL);
    um_log(UM_LOG_WARNING, "Core-1-1", "value %d", 7);
    um_log_set_proc(NULL, NULL);
    CHECK_EQ(logged_level, 5);
    CHECK_STR(logged, "Core-1-1: value 7");
}

TEST(a_seed_replays_and_ranges_hold)
{
    struct um_rng a, b;
    um_rng_seed(&a, 42);
    um_rng_seed(&b, 42);
    bool low = false, high = false;
    for (int i = 0; i < 10000; i++) {
        CHECK(um_rng_u64(&a) == um_rng_u64(&b));
        uint64_t v = um_rng_range(&a, 3, 9);
        um_rng_range(&b, 3, 9);
        CHECK(v >= 3 && v <= 9);
        low |= v == 3;
        high |= v == 9;
    }
    CHECK(low && high);
    CHECK_EQ(um_rng_range(&a, 5, 5), 5);
    um_rng_range(&a, 0, UINT64_MAX);
    uint64_t first = 0, second = 0;
    um_random_bytes(&first, sizeof first);
    um_random_bytes(&second, sizeof second);
    CHECK(first != second);
    CHECK(um_random_u32_nonzero() != 0);
}

TEST(a_buffer_returns_to_its_pool_and_outlives_the_owner)
{
    struct um_buf_pool *pool = um_buf_pool_create(100, 1);
    CHECK(pool != NULL);
    struct um_buf *a = um_buf_get(pool), *b = um_buf_get(pool);
    CHECK(a != NULL && b != NULL);
    CHECK_EQ(a->capacity, 100);
    um_buf_ref(a);
    um_buf_unref(a);
    um_buf_unref(a); /* kept */
    um_buf_unref(b); /* freed: one is enough */
    CHECK(um_buf_get(pool) == a);
    um_buf_pool_release(pool);
    memset(a->data, 1, 100);
    um_buf_unref(a); /* frees the pool too; leak checkers watch */
}

static void *unref_thread(void *arg)
{
    struct um_buf **bufs = arg;
    for (int i = 0; i < 1000; i++) {
        um_buf_unref(bufs[i]);
    }
    return NULL;
}

TEST(buffers_may_be_released_by_another_thread)
{
    static struct um_buf *bufs[1000];
    struct um_buf_pool *pool = um_buf_pool_create(16, 10);
    for (int i = 0; i < 1000; i++) {
        bufs[i] = um_buf_get(pool);
        CHECK(bufs[i] != NULL);
        um_buf_ref(bufs[i]);
    }
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, unref_thread, bufs), 0);
    um_buf_pool_release(pool);
    unref_thread(bufs);
    pthread_join(thread, NULL);
}

static bool refuse(size_t size)
{
    return size == 77;
}

TEST(the_hook_makes_chosen_allocations_fail)
{
    um_mem_set_fail_hook(refuse);
    void *bad = um_malloc(77);
    void *good = um_malloc(78);
    um_mem_set_fail_hook(NULL);
    CHECK(bad == NULL);
    CHECK(good != NULL);
    um_free(good);
    CHECK(um_calloc(SIZE_MAX / 2, 4) == NULL);
    char *copy = um_strndup("hello", 3);
    CHECK_STR(copy, "hel");
    um_free(copy);
}

static atomic_bool enough;

static void *be_busy(void *arg)
{
    while (!atomic_load_explicit(&enough, memory_order_relaxed)) {
    }
    return NULL;
}

TEST(time_in_which_a_thread_waits_for_the_processor_is_told)
{
    if (access("/proc/thread-self/schedstat", R_OK) != 0) {
        CHECK_EQ(um_thread_kept_ns(7), 7);
        return;
    }
    cpu_set_t all, one;
    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    CPU_SET((unsigned)sched_getcpu(), &one);
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    pthread_t other;
    uint64_t begun_ns = um_clock_ns(), before_ns = um_thread_kept_ns(UINT64_MAX), kept_ns = before_ns;
    CHECK_EQ(pthread_create(&other, NULL, be_busy, NULL), 0); /* it takes turns with this one on its processor */
    while (kept_ns == before_ns && um_clock_ns() - begun_ns < 30000000000ull) {
        kept_ns = um_thread_kept_ns(UINT64_MAX);
    }
    atomic_store(&enough, true);
    pthread_join(other, NULL);
    CHECK_EQ(sched_setaffinity(0, sizeof all, &all), 0);
    CHECK(kept_ns > before_ns && kept_ns - before_ns <= um_clock_ns() - begun_ns);
}
