/* The reactor of a context: time, passes over descriptors, commands and timers,
 * the embedded thread, the sequential mode, creation and end. Its parts: see
 * um_loop_parts.h. Callbacks run on the owner without the lock held. */
#define _GNU_SOURCE
#include "net/um_loop_parts.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "base/um_thread.h"
#include "base/um_wait.h"

#define HOT_PASSES 8u /* while some descriptors are hot, epoll is asked once in so many passes */

/* ---- time ---- */

void um_loop_refresh(struct um_loop *loop)
{
    loop->wall_ns = 0;
    if (!(loop->flags & UM_LOOP_USER_TIME)) {
        uint64_t now = um_clock_ns();
        loop->now_ns = now > loop->now_ns ? now : loop->now_ns;
    }
}

static int um_loop_set_user_time(struct um_loop *loop, uint64_t user_time_ns)
{
    loop->wall_ns = 0;
    if ((loop->flags & UM_LOOP_USER_TIME) && user_time_ns < loop->user_last_ns) {
        return um_error(UM_EINVAL, "CoreApi-1010-1", "time_val: must not go back (%llu ns before the previous call)",
                        (unsigned long long)(loop->user_last_ns - user_time_ns));
    }
    if (!(loop->flags & UM_LOOP_USER_TIME)) {
        um_loop_refresh(loop);
        loop->user_offset_ns = (int64_t)(loop->now_ns - user_time_ns);
        loop->flags |= UM_LOOP_USER_TIME;
    }
    loop->user_last_ns = user_time_ns;
    loop->now_ns = user_time_ns + (uint64_t)loop->user_offset_ns;
    return 0;
}

uint64_t um_loop_now(const struct um_loop *loop)
{
    return loop->now_ns;
}

uint64_t um_loop_wall_now(const struct um_loop *loop)
{
    if (loop->wall_ns == 0) {
        ((struct um_loop *)loop)->wall_ns = um_clock_wall_ns(); /* only a cache changes */
    }
    return loop->wall_ns;
}

struct um_timer_wheel *um_loop_wheel(struct um_loop *loop)
{
    return loop->wheel;
}

bool um_loop_embedded(const struct um_loop *loop)
{
    return loop->embedded;
}

void um_loop_join_family(struct um_loop *loop, struct um_loop *head)
{
    loop->family = head;
}

bool um_loop_user_time(const struct um_loop *loop)
{
    return (loop->flags & UM_LOOP_USER_TIME) != 0;
}

/* ---- passes ---- */

/* Wait at most `wait_ns`, with the precision the kernel offers (epoll_pwait2 since 5.11, else milliseconds). */
static int um_loop_epoll(struct um_loop *loop, uint64_t wait_ns)
{
#ifdef SYS_epoll_pwait2
    static atomic_bool lacking;
    if (wait_ns != 0 && wait_ns != UM_NEVER && !atomic_load_explicit(&lacking, memory_order_relaxed)) {
        struct timespec ts = {.tv_sec = (time_t)(wait_ns / UM_NS_PER_SEC), .tv_nsec = (long)(wait_ns % UM_NS_PER_SEC)};
        int rc = (int)syscall(SYS_epoll_pwait2, loop->epfd, loop->ready, UM_LOOP_BATCH, &ts, NULL, 0);
        if (rc >= 0 || (errno != ENOSYS && errno != EPERM)) {
            return rc;
        }
        atomic_store_explicit(&lacking, true, memory_order_relaxed);
    }
#endif
    int timeout_ms = -1;
    if (wait_ns != UM_NEVER) {
        uint64_t ms = (wait_ns + UM_NS_PER_MS - 1) / UM_NS_PER_MS;
        timeout_ms = ms > 3600000 ? 3600000 : (int)ms;
    }
    return epoll_wait(loop->epfd, loop->ready, UM_LOOP_BATCH, timeout_ms);
}

/* How long the owner may sleep: 0 when there is work, else until the next timer or `deadline_ns`. */
static uint64_t um_loop_sleep_ns(struct um_loop *loop, uint64_t deadline_ns)
{
    uint64_t next = um_timer_next(loop->wheel), left_out = um_log_due_ns();
    uint64_t until = next < deadline_ns ? next : deadline_ns;
    until = left_out < until ? left_out : until;
    if (until == UM_NEVER) {
        return UM_NEVER;
    }
    um_loop_refresh(loop);
    return until > loop->now_ns ? until - loop->now_ns : 0;
}

/* epoll_wait, the turn given up meanwhile when that may take long or a guest waits for it. */
static int um_loop_await(struct um_loop *loop, uint64_t wait_ns)
{
    if (wait_ns == 0 && !um_turn_wanted(&loop->turn)) {
        return um_loop_epoll(loop, 0);
    }
    loop->wakes_ns = wait_ns == 0 ? 0 : wait_ns == UM_NEVER ? UM_NEVER : loop->now_ns + wait_ns;
    loop->flags &= ~(unsigned)UM_LOOP_FD_REMOVED;
    um_loop_give_turn(loop);
    int count = um_loop_epoll(loop, wait_ns);
    int saved = errno;
    um_loop_take_turn(loop);
    errno = saved;
    loop->wakes_ns = 0;
    if ((loop->flags & UM_LOOP_FD_REMOVED) && count > 0) {
        return 0; /* readiness is level-triggered: the next pass finds it again */
    }
    return count;
}

/* One pass: poll or wait for descriptors, then commands, then timers (those that the commands armed included).
 * Returns how much ran, or -1. */
static int um_loop_pass(struct um_loop *loop, uint64_t deadline_ns)
{
    uint64_t wait_ns = 0;
    bool busy = loop->wait == UM_LOOP_BUSY_WAIT;
    if (!busy && deadline_ns != 0) {
        wait_ns = um_loop_sleep_ns(loop, deadline_ns);
    }
    if (wait_ns != 0) {
        pthread_mutex_lock(&loop->lock);
        bool sleeps = um_list_empty(&loop->commands) && !loop->stop && !(loop->marks & UM_LOOP_UNBLOCK);
        loop->marks |= sleeps ? UM_LOOP_ASLEEP : 0;
        wait_ns = sleeps ? wait_ns : 0;
        pthread_mutex_unlock(&loop->lock);
    }
    bool skip = loop->hot_count > 0 && ++loop->pass % HOT_PASSES != 0 && !um_turn_wanted(&loop->turn);
    int count = skip ? 0 : um_loop_await(loop, wait_ns);
    int saved = errno;
    if (wait_ns != 0) {
        pthread_mutex_lock(&loop->lock);
        loop->marks &= ~(unsigned)UM_LOOP_ASLEEP;
        pthread_mutex_unlock(&loop->lock);
    }
    um_loop_refresh(loop);
    int failed = 0;
    if (count < 0) {
        count = 0;
        failed = saved == EINTR ? 0 : um_error_os(saved, "CoreApi-1010-5", "epoll_wait");
    }
    if (count > 0) {
        um_loop_dispatch(loop, count);
    }
    if (loop->hot_count > 0) {
        count += um_loop_read_hot(loop);
    }
    count += um_loop_run_commands(loop);
    if (um_timer_next(loop->wheel) <= loop->now_ns) {
        count += um_timer_run(loop->wheel, loop->now_ns);
    }
    if (um_log_due_ns() <= loop->now_ns) {
        um_log_tell_left_out(loop->now_ns);
    }
    return failed < 0 ? -1 : count;
}

static void *um_loop_main(void *arg)
{
    struct um_loop *loop = arg;
    pthread_setname_np(pthread_self(), loop->thread_name);
    um_loop_take_turn(loop);
    pthread_mutex_lock(&loop->lock);
    loop->host = UM_HOST_THREAD;
    pthread_cond_broadcast(&loop->changed);
    pthread_mutex_unlock(&loop->lock);
    while (!atomic_load_explicit(&loop->stop, memory_order_relaxed)) {
        if (um_loop_pass(loop, UM_NEVER) < 0) {
            um_log_limited(um_log_of(loop->thread_name), loop->now_ns, UM_LOG_ERR, "Core-1010-6", "context thread: %s",
                           um_errmsg());
            usleep(1000); /* do not spin on a broken descriptor */
        }
    }
    um_loop_run_commands(loop);
    um_loop_leave(loop);
    return NULL;
}

/* ---- creation and end ---- */

static void um_loop_free(struct um_loop *loop)
{
    um_timer_wheel_destroy(loop->wheel);
    if (loop->wakefd >= 0) {
        close(loop->wakefd);
    }
    if (loop->epfd >= 0) {
        close(loop->epfd);
    }
    pthread_cond_destroy(&loop->changed);
    pthread_mutex_destroy(&loop->lock);
    um_free(loop);
}

/* Starts the thread with every signal blocked and waits until it owns the loop. */
static int um_loop_start_thread(struct um_loop *loop)
{
    int rc = um_thread_start(&loop->thread, um_loop_main, loop);
    if (rc != 0) {
        return um_error_os(rc, "CoreApi-1010-7", "creating the thread of %s", loop->thread_name);
    }
    pthread_mutex_lock(&loop->lock);
    while (loop->host != UM_HOST_THREAD) {
        pthread_cond_wait(&loop->changed, &loop->lock);
    }
    pthread_mutex_unlock(&loop->lock);
    return 0;
}

static int um_loop_open(struct um_loop *loop)
{
    loop->epfd = epoll_create1(EPOLL_CLOEXEC);
    if (loop->epfd < 0) {
        return um_error_os(errno, "CoreApi-1010-8", "epoll_create1");
    }
    loop->wakefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->wakefd < 0) {
        return um_error_os(errno, "CoreApi-1010-9", "eventfd");
    }
    um_fd_init(&loop->wake, loop->wakefd, um_loop_on_wake);
    if (um_loop_add_fd(loop, &loop->wake, UM_FD_READ) < 0) {
        return -1;
    }
    loop->now_ns = um_clock_ns();
    loop->wheel = um_timer_wheel_create(loop->now_ns);
    return loop->wheel != NULL ? 0 : um_error_nomem("timer wheel", 0);
}

struct um_loop *um_loop_create(bool embedded, enum um_loop_wait wait, const char *thread_name)
{
    struct um_loop *loop = um_calloc(1, sizeof *loop);
    if (loop == NULL) {
        um_error_nomem("event loop", sizeof *loop);
        return NULL;
    }
    loop->epfd = loop->wakefd = -1;
    loop->embedded = embedded;
    loop->family = loop;
    loop->wait = wait;
    strncpy(loop->thread_name, thread_name, sizeof loop->thread_name - 1);
    pthread_mutex_init(&loop->lock, NULL);
    um_cond_init(&loop->changed);
    um_list_init(&loop->commands);
    um_list_init(&loop->running);
    if (um_loop_open(loop) < 0 || (embedded && um_loop_start_thread(loop) < 0)) {
        um_loop_free(loop);
        return NULL;
    }
    return loop;
}

void um_loop_destroy(struct um_loop *loop)
{
    if (loop == NULL) {
        return;
    }
    pthread_mutex_lock(&loop->lock);
    atomic_store_explicit(&loop->stop, true, memory_order_relaxed);
    if (um_loop_must_wake(loop)) {
        um_loop_wakeup(loop);
    }
    if (!loop->embedded) {
        while (loop->host != UM_HOST_NONE) {
            pthread_cond_wait(&loop->changed, &loop->lock);
        }
        loop->host = UM_HOST_CALL;
    }
    pthread_mutex_unlock(&loop->lock);
    if (loop->embedded) {
        pthread_join(loop->thread, NULL);
    } else {
        um_loop_take_turn(loop);
        um_loop_run_commands(loop);
        um_loop_leave(loop);
    }
    um_loop_free(loop);
}

/* ---- sequential mode ---- */

/* Takes the mark that um_loop_unblock left. */
static bool um_loop_take_unblock(struct um_loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    bool unblocked = (loop->marks & UM_LOOP_UNBLOCK) || atomic_load_explicit(&loop->stop, memory_order_relaxed);
    loop->marks &= ~(unsigned)UM_LOOP_UNBLOCK;
    pthread_mutex_unlock(&loop->lock);
    return unblocked;
}

static uint64_t um_loop_deadline(const struct um_loop *loop, int timeout_ms)
{
    return timeout_ms < 0 ? UM_NEVER : timeout_ms == 0 ? 0 : loop->now_ns + (uint64_t)timeout_ms * UM_NS_PER_MS;
}

int um_loop_run_once(struct um_loop *loop, int timeout_ms, uint64_t user_time_ns)
{
    if (loop->embedded) {
        return um_error(UM_EINVAL, "CoreApi-1010-12",
                        "processing events: operational_mode is embedded: must be sequential for this call");
    }
    if (um_loop_enter(loop) < 0) {
        return -1;
    }
    int rc = 0;
    if (user_time_ns != 0) {
        rc = um_loop_set_user_time(loop, user_time_ns);
    } else {
        loop->flags &= ~(unsigned)UM_LOOP_USER_TIME;
        um_loop_refresh(loop);
    }
    uint64_t deadline = um_loop_deadline(loop, timeout_ms);
    bool unblocked = um_loop_take_unblock(loop);
    while (rc == 0) {
        rc = um_loop_pass(loop, unblocked ? 0 : deadline);
        unblocked |= um_loop_take_unblock(loop);
        if (unblocked || deadline == 0 || loop->now_ns >= deadline) {
            break;
        }
    }
    um_loop_leave(loop);
    return rc < 0 ? -1 : unblocked ? 1 : 0;
}

int um_loop_process_events(struct um_loop *loop, unsigned long msec, uint64_t user_time_ns)
{
    uint64_t now = msec != 0 ? um_clock_ns() : 0;
    uint64_t until = msec > (UINT64_MAX - now) / UM_NS_PER_MS ? UINT64_MAX : now + msec * UM_NS_PER_MS;
    int rc;
    do {
        uint64_t left_ms = (until - now + UM_NS_PER_MS - 1) / UM_NS_PER_MS;
        rc = um_loop_run_once(loop, left_ms > INT_MAX ? INT_MAX : (int)left_ms, user_time_ns);
        if (msec != 0 && rc == 0) {
            now = um_clock_ns();
        }
    } while (rc == 0 && now < until);
    return rc < 0 ? -1 : 0;
}

int um_loop_unblock(struct um_loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    loop->marks |= UM_LOOP_UNBLOCK;
    if (um_loop_must_wake(loop)) {
        um_loop_wakeup(loop);
    }
    pthread_mutex_unlock(&loop->lock);
    return 0;
}
