/* The reactor: epoll, timer wheel and mailbox, and the ownership protocol that
 * lets one thread at a time run it: its host (embedded thread,
 * lbm_context_process_events, or a caller of um_loop_call while nobody else
 * does) or a guest. Callbacks run on the owner without the lock held. */
#define _GNU_SOURCE
#include "net/um_loop.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "base/um_turn.h"

#define UM_LOOP_HOT 2                      /* descriptors read without asking epoll, while busy-waiting */
#define UM_LOOP_HOT_NS (50 * UM_NS_PER_MS) /* so long after something came */
#define UM_LOOP_HOT_PASSES 8u              /* epoll is asked once in so many passes meanwhile */
#define UM_LOOP_BATCH 64

/* Who runs the mailbox, the descriptors and the timers. */
enum um_loop_host {
    UM_HOST_NONE,
    UM_HOST_CALL,   /* a caller of um_loop_call, for the time of one command */
    UM_HOST_EVENTS, /* um_loop_run_once */
    UM_HOST_THREAD  /* the embedded thread, for its whole life */
};

/* A descriptor that a busy-waiting loop reads without asking epoll. */
struct um_hot {
    struct um_fd *ufd; /* NULL: free place */
    uint64_t last_ns;  /* when something came */
};

struct um_loop {
    int epfd, wakefd;
    bool embedded;
    enum um_loop_wait wait;
    struct um_fd wake;
    struct um_timer_wheel *wheel; /* [loop] */

    pthread_mutex_t lock;
    pthread_cond_t changed;  /* a call completed, or the ownership was given up */
    enum um_loop_host host;  /* lock */
    struct um_list commands; /* lock */
    struct um_list running;  /* lock: commands of the present pass */
    atomic_size_t pending;   /* commands not yet begun; written under the lock */
    bool asleep;             /* lock: the host may be waiting in epoll */
    bool unblock;            /* lock */
    atomic_bool stop;        /* written under the lock */
    pthread_t thread;
    char thread_name[16];

    /* Whoever has the turn is the owner: the host, except while it waits in epoll, or a guest. Nobody waits for the
     * turn with the lock held. */
    struct um_turn turn;
    _Atomic(const void *) owner; /* identity of the thread that has the turn */
    uint64_t wakes_ns;           /* [loop] when the host in epoll wakes by itself; 0: not waiting, or woken */
    bool fd_removed;             /* [loop] since the host gave up the turn: what epoll found may be gone */

    struct um_loop *outer;      /* [loop] loop that the owning thread owned already */
    struct um_loop *waiting_on; /* um_loop_wait_lock: loop for which the owner waits */

    uint64_t now_ns;                         /* [loop] */
    uint64_t wall_ns;                        /* [loop] 0: not read in this pass */
    bool user_time;                          /* [loop] the application provides the time */
    uint64_t user_last_ns;                   /* [loop] */
    int64_t user_offset_ns;                  /* [loop] loop time minus user time */
    int ready_count, ready_i;                /* [loop] dispatch in progress: removed entries are blanked */
    struct um_log_limit wait_failed;         /* [loop] */
    struct um_hot hot[UM_LOOP_HOT];          /* [loop] read in every pass, and not in the epoll set meanwhile */
    unsigned hot_count, pass;                /* [loop] */
    struct epoll_event ready[UM_LOOP_BATCH]; /* [loop] */
};

/* A command with somebody waiting for its result. */
struct um_call {
    struct um_command command;
    struct um_loop *loop;
    int (*fn)(void *arg);
    void *arg;
    int result;
    bool done; /* loop lock */
    struct um_error_state error;
};

/* Identity of a thread is the address of this variable; its value is the innermost loop the thread owns. */
static _Thread_local struct um_loop *um_loop_current;

/* Guards every waiting_on: who waits for whom, so that no circle closes. */
static pthread_mutex_t um_loop_wait_lock = PTHREAD_MUTEX_INITIALIZER;

static const void *um_loop_self(void)
{
    return &um_loop_current;
}

bool um_loop_on_thread(const struct um_loop *loop)
{
    return atomic_load_explicit(&loop->owner, memory_order_acquire) == um_loop_self();
}

bool um_loop_in_any(void)
{
    return um_loop_current != NULL;
}

bool um_loop_user_time(const struct um_loop *loop)
{
    return loop->user_time;
}

/* ---- time ---- */

static void um_loop_refresh(struct um_loop *loop)
{
    loop->wall_ns = 0;
    if (!loop->user_time) {
        uint64_t now = um_clock_ns();
        loop->now_ns = now > loop->now_ns ? now : loop->now_ns;
    }
}

static int um_loop_set_user_time(struct um_loop *loop, uint64_t user_time_ns)
{
    loop->wall_ns = 0;
    if (loop->user_time && user_time_ns < loop->user_last_ns) {
        return um_error(UM_EINVAL, "CoreApi-1010-1", "time_val: must not go back (%llu ns before the previous call)",
                        (unsigned long long)(loop->user_last_ns - user_time_ns));
    }
    if (!loop->user_time) {
        um_loop_refresh(loop);
        loop->user_offset_ns = (int64_t)(loop->now_ns - user_time_ns);
        loop->user_time = true;
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

/* ---- ownership ---- */

static void um_loop_turn_taken(struct um_loop *loop)
{
    atomic_store_explicit(&loop->owner, um_loop_self(), memory_order_release);
    loop->outer = um_loop_current;
    um_loop_current = loop;
}

static void um_loop_take_turn(struct um_loop *loop)
{
    um_turn_take(&loop->turn);
    um_loop_turn_taken(loop);
}

static void um_loop_give_turn(struct um_loop *loop)
{
    um_loop_current = loop->outer;
    loop->outer = NULL;
    atomic_store_explicit(&loop->owner, NULL, memory_order_release);
    um_turn_give(&loop->turn);
}

/* lock held, not the turn */
static void um_loop_host_leaves(struct um_loop *loop)
{
    loop->host = UM_HOST_NONE;
    pthread_cond_broadcast(&loop->changed);
}

/* The caller is about to wait for `loop`: mark the loops it owns, unless one of them is what `loop` waits for in turn.
 */
static int um_loop_wait_begin(struct um_loop *loop)
{
    if (um_loop_current == NULL) {
        return 0;
    }
    int rc = 0;
    pthread_mutex_lock(&um_loop_wait_lock);
    for (struct um_loop *next = loop; next != NULL && rc == 0; next = next->waiting_on) {
        rc = um_loop_on_thread(next) ? -1 : 0;
    }
    for (struct um_loop *mine = um_loop_current; rc == 0 && mine != NULL; mine = mine->outer) {
        mine->waiting_on = loop;
    }
    pthread_mutex_unlock(&um_loop_wait_lock);
    return rc == 0
               ? 0
               : um_error(
                     UM_EOP, "CoreApi-1010-2",
                     "contexts wait for each other: the callback in progress on the other context must return first; "
                     "make this call outside callbacks");
}

static void um_loop_wait_end(void)
{
    if (um_loop_current == NULL) {
        return;
    }
    pthread_mutex_lock(&um_loop_wait_lock);
    for (struct um_loop *mine = um_loop_current; mine != NULL; mine = mine->outer) {
        mine->waiting_on = NULL;
    }
    pthread_mutex_unlock(&um_loop_wait_lock);
}

/* ---- mailbox ---- */

static void um_loop_wakeup(struct um_loop *loop)
{
    uint64_t one = 1;
    ssize_t rc;
    do {
        rc = write(loop->wakefd, &one, sizeof one);
    } while (rc < 0 && errno == EINTR);
}

/* lock held; true: the caller must um_loop_wakeup() after unlocking */
static bool um_loop_must_wake(struct um_loop *loop)
{
    bool wake = loop->asleep;
    loop->asleep = false;
    return wake;
}

static void um_loop_on_wake(struct um_fd *ufd, uint32_t ready, uint64_t now_ns)
{
    uint64_t count;
    if (read(ufd->fd, &count, sizeof count) < 0) {
        return; /* EAGAIN: another wake-up was merged into this one */
    }
}

void um_command_init(struct um_command *cmd, void (*fn)(struct um_command *cmd))
{
    um_list_init(&cmd->node);
    cmd->fn = fn;
    cmd->posted = false;
}

/* lock held */
static void um_loop_enqueue(struct um_loop *loop, struct um_command *cmd)
{
    cmd->posted = true;
    um_list_push_back(&loop->commands, &cmd->node);
    atomic_fetch_add_explicit(&loop->pending, 1, memory_order_release);
}

/* lock held */
static void um_loop_dequeue(struct um_loop *loop, struct um_command *cmd)
{
    um_list_remove(&cmd->node);
    cmd->posted = false;
    atomic_fetch_sub_explicit(&loop->pending, 1, memory_order_release);
}

void um_loop_post(struct um_loop *loop, struct um_command *cmd)
{
    pthread_mutex_lock(&loop->lock);
    bool wake = false;
    if (!cmd->posted) {
        um_loop_enqueue(loop, cmd);
        wake = um_loop_must_wake(loop);
    }
    pthread_mutex_unlock(&loop->lock);
    if (wake) {
        um_loop_wakeup(loop);
    }
}

void um_loop_unpost(struct um_loop *loop, struct um_command *cmd)
{
    pthread_mutex_lock(&loop->lock);
    if (cmd->posted) {
        um_loop_dequeue(loop, cmd);
    }
    pthread_mutex_unlock(&loop->lock);
}

/* Run what is in the mailbox now; what is posted meanwhile waits for the next pass. */
static int um_loop_run_commands(struct um_loop *loop)
{
    if (atomic_load_explicit(&loop->pending, memory_order_acquire) == 0) {
        return 0;
    }
    int ran = 0;
    pthread_mutex_lock(&loop->lock);
    struct um_list *node;
    while ((node = um_list_first(&loop->commands)) != NULL) {
        um_list_remove(node);
        um_list_push_back(&loop->running, node);
    }
    while ((node = um_list_first(&loop->running)) != NULL) {
        struct um_command *cmd = UM_CONTAINER_OF(node, struct um_command, node);
        um_loop_dequeue(loop, cmd);
        pthread_mutex_unlock(&loop->lock);
        cmd->fn(cmd);
        ran++;
        pthread_mutex_lock(&loop->lock);
    }
    pthread_mutex_unlock(&loop->lock);
    return ran;
}

/* ---- calls ---- */

static void um_call_execute(struct um_call *call)
{
    call->result = call->fn(call->arg);
    if (call->result < 0) {
        um_error_save(&call->error);
    }
}

static void um_call_on_loop(struct um_command *cmd)
{
    struct um_call *call = UM_CONTAINER_OF(cmd, struct um_call, command);
    struct um_loop *loop = call->loop;
    um_call_execute(call);
    pthread_mutex_lock(&loop->lock);
    call->done = true;
    pthread_cond_broadcast(&loop->changed);
    pthread_mutex_unlock(&loop->lock);
}

/* Sequential mode and no host (lock held): run the command here. */
static void um_call_as_owner(struct um_loop *loop, struct um_call *call)
{
    if (call->command.posted) {
        um_loop_dequeue(loop, &call->command);
    }
    loop->host = UM_HOST_CALL;
    pthread_mutex_unlock(&loop->lock);
    um_loop_take_turn(loop);
    um_loop_refresh(loop);
    um_call_execute(call);
    um_loop_give_turn(loop);
    pthread_mutex_lock(&loop->lock);
    um_loop_host_leaves(loop);
    call->done = true;
}

int um_loop_call(struct um_loop *loop, int (*fn)(void *arg), void *arg)
{
    if (um_loop_on_thread(loop)) {
        return fn(arg);
    }
    if (um_loop_wait_begin(loop) < 0) {
        return -1;
    }
    struct um_call call = {.loop = loop, .fn = fn, .arg = arg};
    um_command_init(&call.command, um_call_on_loop);
    pthread_mutex_lock(&loop->lock);
    if (loop->embedded || loop->host != UM_HOST_NONE) {
        um_loop_enqueue(loop, &call.command);
        if (um_loop_must_wake(loop)) {
            um_loop_wakeup(loop);
        }
    }
    while (!call.done) {
        /* A command already taken by a host that is running it is no longer posted: wait for it. */
        bool free = !loop->embedded && loop->host == UM_HOST_NONE;
        if (free) {
            um_call_as_owner(loop, &call);
        } else {
            pthread_cond_wait(&loop->changed, &loop->lock);
        }
    }
    pthread_mutex_unlock(&loop->lock);
    um_loop_wait_end();
    if (call.result < 0) {
        um_error_restore(&call.error);
    }
    return call.result;
}

int um_loop_call_api(struct um_loop *loop, const char *api, int (*fn)(void *arg), void *arg)
{
    if (um_loop_on_thread(loop)) {
        return um_error(
            UM_EOP, "CoreApi-1010-3",
            "%s: must not be called in a callback that runs on the context thread; call it from another thread, "
            "or receive through an event queue",
            api);
    }
    return um_loop_call(loop, fn, arg);
}

/* ---- descriptors ---- */

void um_fd_init(struct um_fd *ufd, int fd, void (*fn)(struct um_fd *, uint32_t, uint64_t))
{
    *ufd = (struct um_fd){.fd = fd, .fn = fn};
}

static uint32_t um_fd_to_epoll(uint32_t interest)
{
    return ((interest & UM_FD_READ) != 0 ? (uint32_t)EPOLLIN : 0) |
           ((interest & UM_FD_WRITE) != 0 ? (uint32_t)EPOLLOUT : 0) |
           ((interest & UM_FD_EXCEPT) != 0 ? (uint32_t)EPOLLPRI : 0) |
           ((interest & UM_FD_HANGUP) != 0 ? (uint32_t)EPOLLRDHUP : 0);
}

static uint32_t um_fd_from_epoll(uint32_t events, uint32_t interest)
{
    uint32_t ready = ((events & EPOLLIN) != 0 ? UM_FD_READ : 0) | ((events & EPOLLOUT) != 0 ? UM_FD_WRITE : 0) |
                     ((events & EPOLLPRI) != 0 ? UM_FD_EXCEPT : 0);
    if ((events & EPOLLRDHUP) != 0) {
        ready |= UM_FD_HANGUP;
    }
    if ((events & (EPOLLERR | EPOLLHUP)) != 0) {
        /* Whoever reads or writes finds the error by doing so. */
        ready |= UM_FD_HANGUP | (interest & (UM_FD_READ | UM_FD_WRITE));
    }
    return ready;
}

/* ---- hot descriptors of a busy-waiting loop ---- */

static struct um_hot *um_loop_hot_of(struct um_loop *loop, const struct um_fd *ufd)
{
    for (int i = 0; i < UM_LOOP_HOT && loop->hot_count > 0; i++) {
        if (loop->hot[i].ufd == ufd) {
            return &loop->hot[i];
        }
    }
    return NULL;
}

static void um_loop_forget_hot(struct um_loop *loop, struct um_hot *hot)
{
    hot->ufd->interest = 0; /* it is not in the epoll set */
    hot->ufd = NULL;
    loop->hot_count--;
}

/* It has become quiet: epoll tells when something comes. */
static void um_loop_cool(struct um_loop *loop, struct um_hot *hot)
{
    struct um_fd *ufd = hot->ufd;
    struct epoll_event event = {.events = um_fd_to_epoll(UM_FD_READ), .data.ptr = ufd};
    if (epoll_ctl(loop->epfd, EPOLL_CTL_ADD, ufd->fd, &event) == 0) { /* otherwise it stays hot */
        um_loop_forget_hot(loop, hot);
        ufd->interest = UM_FD_READ;
    }
}

static void um_loop_warm(struct um_loop *loop, struct um_fd *ufd)
{
    struct epoll_event ignored = {0};
    if (loop->wait != UM_LOOP_BUSY_WAIT || ufd->arrivals == NULL || ufd->interest != UM_FD_READ ||
        loop->hot_count == UM_LOOP_HOT) {
        return;
    }
    struct um_hot *place = loop->hot;
    while (place->ufd != NULL) {
        place++;
    }
    if (epoll_ctl(loop->epfd, EPOLL_CTL_DEL, ufd->fd, &ignored) == 0) {
        *place = (struct um_hot){ufd, loop->now_ns};
        loop->hot_count++;
    }
}

/* How many had something. */
static int um_loop_read_hot(struct um_loop *loop)
{
    int got = 0;
    for (int i = 0; i < UM_LOOP_HOT; i++) {
        struct um_hot *hot = &loop->hot[i];
        struct um_fd *ufd = hot->ufd;
        if (ufd == NULL) {
            continue;
        }
        uint32_t before = *ufd->arrivals;
        ufd->fn(ufd, UM_FD_READ, loop->now_ns);
        if (hot->ufd != ufd) {
            got++; /* it has been removed */
        } else if (*ufd->arrivals != before) {
            hot->last_ns = loop->now_ns;
            got++;
        } else if (loop->now_ns - hot->last_ns > UM_LOOP_HOT_NS) {
            um_loop_cool(loop, hot);
        }
    }
    return got;
}

/* A descriptor is in the epoll set exactly while it has an interest: an unwanted hang-up must not make the loop spin.
 */
int um_loop_set_interest(struct um_loop *loop, struct um_fd *ufd, uint32_t interest)
{
    if (ufd->interest == interest) {
        return 0;
    }
    struct um_hot *hot = um_loop_hot_of(loop, ufd);
    if (hot != NULL) {
        um_loop_forget_hot(loop, hot);
        if (interest == 0) {
            return 0;
        }
    }
    struct epoll_event event = {.events = um_fd_to_epoll(interest), .data.ptr = ufd};
    int op = ufd->interest == 0 ? EPOLL_CTL_ADD : interest == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
    if (epoll_ctl(loop->epfd, op, ufd->fd, &event) < 0) {
        return um_error_os(errno, "CoreApi-1010-4", "epoll_ctl on descriptor %d", ufd->fd);
    }
    ufd->interest = interest;
    return 0;
}

int um_loop_add_fd(struct um_loop *loop, struct um_fd *ufd, uint32_t interest)
{
    ufd->interest = 0;
    return um_loop_set_interest(loop, ufd, interest);
}

void um_loop_remove_fd(struct um_loop *loop, struct um_fd *ufd)
{
    struct um_hot *hot = um_loop_hot_of(loop, ufd);
    if (hot != NULL) {
        um_loop_forget_hot(loop, hot);
    }
    if (ufd->interest != 0) {
        struct epoll_event ignored = {0};
        epoll_ctl(loop->epfd, EPOLL_CTL_DEL, ufd->fd, &ignored);
        ufd->interest = 0;
    }
    loop->fd_removed = true;
    for (int i = loop->ready_i; i < loop->ready_count; i++) {
        if (loop->ready[i].data.ptr == ufd) {
            loop->ready[i].data.ptr = NULL;
        }
    }
}

static void um_loop_dispatch(struct um_loop *loop, int count)
{
    loop->ready_count = count;
    for (loop->ready_i = 0; loop->ready_i < loop->ready_count;) {
        struct epoll_event *event = &loop->ready[loop->ready_i++];
        struct um_fd *ufd = event->data.ptr;
        if (ufd != NULL) {
            uint32_t ready = um_fd_from_epoll(event->events, ufd->interest);
            /* An earlier callback of this pass may have withdrawn the interest. */
            ready &= ufd->interest != 0 ? ufd->interest | UM_FD_HANGUP : 0;
            if (ready == UM_FD_READ) {
                um_loop_warm(loop, ufd);
            }
            if (ready != 0) {
                ufd->fn(ufd, ready, loop->now_ns);
            }
        }
    }
    loop->ready_count = 0;
}

/* ---- passes ---- */

/* Wait at most until `until_ns` with the precision the kernel offers (epoll_pwait2 since 5.11, else milliseconds). */
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
    uint64_t next = um_timer_next(loop->wheel);
    uint64_t until = next < deadline_ns ? next : deadline_ns;
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
    loop->fd_removed = false;
    um_loop_give_turn(loop);
    int count = um_loop_epoll(loop, wait_ns);
    int saved = errno;
    um_loop_take_turn(loop);
    errno = saved;
    loop->wakes_ns = 0;
    return loop->fd_removed && count > 0 ? 0 : count; /* readiness is level-triggered: the next pass finds it again */
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
        loop->asleep = um_list_empty(&loop->commands) && !loop->stop && !loop->unblock;
        wait_ns = loop->asleep ? wait_ns : 0;
        pthread_mutex_unlock(&loop->lock);
    }
    bool skip = loop->hot_count > 0 && ++loop->pass % UM_LOOP_HOT_PASSES != 0 && !um_turn_wanted(&loop->turn);
    int count = skip ? 0 : um_loop_await(loop, wait_ns);
    int saved = errno;
    if (wait_ns != 0) {
        pthread_mutex_lock(&loop->lock);
        loop->asleep = false;
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
            um_log_limited(&loop->wait_failed, loop->now_ns, 10 * UM_NS_PER_SEC, UM_LOG_ERR, "Core-1010-6",
                           "context thread: %s", um_errmsg());
            usleep(1000); /* do not spin on a broken descriptor */
        }
    }
    um_loop_run_commands(loop);
    um_loop_give_turn(loop);
    pthread_mutex_lock(&loop->lock);
    um_loop_host_leaves(loop);
    pthread_mutex_unlock(&loop->lock);
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
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&loop->thread, NULL, um_loop_main, loop);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
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
    loop->wait = wait;
    strncpy(loop->thread_name, thread_name, sizeof loop->thread_name - 1);
    pthread_mutex_init(&loop->lock, NULL);
    pthread_cond_init(&loop->changed, NULL);
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
        pthread_mutex_unlock(&loop->lock);
        um_loop_take_turn(loop);
        um_loop_run_commands(loop);
        um_loop_give_turn(loop);
        pthread_mutex_lock(&loop->lock);
        um_loop_host_leaves(loop);
    }
    pthread_mutex_unlock(&loop->lock);
    if (loop->embedded) {
        pthread_join(loop->thread, NULL);
    }
    um_loop_free(loop);
}

/* ---- sequential mode ---- */

/* Become the host and owner; short calls of other threads are waited for, another run_once is an error. */
static int um_loop_enter(struct um_loop *loop)
{
    if (um_loop_on_thread(loop)) {
        return um_error(UM_EOP, "CoreApi-1010-10",
                        "processing events: must not be called in a callback of the same context");
    }
    if (um_loop_wait_begin(loop) < 0) {
        return -1;
    }
    pthread_mutex_lock(&loop->lock);
    while (loop->host == UM_HOST_CALL) {
        pthread_cond_wait(&loop->changed, &loop->lock);
    }
    bool entered = loop->host == UM_HOST_NONE;
    if (entered) {
        loop->host = UM_HOST_EVENTS;
    }
    pthread_mutex_unlock(&loop->lock);
    if (entered) {
        um_loop_take_turn(loop);
    }
    um_loop_wait_end();
    if (!entered) {
        return um_error(
            UM_EOP, "CoreApi-1010-11",
            "processing events: another thread is processing the events of this context; use one thread at a time");
    }
    return 0;
}

/* Takes the mark that um_loop_unblock left. */
static bool um_loop_take_unblock(struct um_loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    bool unblocked = loop->unblock || atomic_load_explicit(&loop->stop, memory_order_relaxed);
    loop->unblock = false;
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
        loop->user_time = false;
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
    um_loop_give_turn(loop);
    pthread_mutex_lock(&loop->lock);
    um_loop_host_leaves(loop);
    pthread_mutex_unlock(&loop->lock);
    return rc < 0 ? -1 : unblocked ? 1 : 0;
}

int um_loop_unblock(struct um_loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    loop->unblock = true;
    if (um_loop_must_wake(loop)) {
        um_loop_wakeup(loop);
    }
    pthread_mutex_unlock(&loop->lock);
    return 0;
}

/* ---- guests ---- */

void um_loop_guest_enter(struct um_loop *loop)
{
    um_loop_take_turn(loop);
    um_loop_refresh(loop);
}

bool um_loop_guest_try_enter(struct um_loop *loop)
{
    if (!um_turn_try(&loop->turn)) {
        return false;
    }
    um_loop_turn_taken(loop);
    um_loop_refresh(loop);
    return true;
}

void um_loop_guest_tick(struct um_loop *loop)
{
    um_loop_refresh(loop);
}

bool um_loop_guest_wanted(const struct um_loop *loop)
{
    return um_turn_wanted(&loop->turn);
}

void um_loop_guest_leave(struct um_loop *loop)
{
    bool sooner = um_timer_next(loop->wheel) < loop->wakes_ns;
    if (sooner) {
        loop->wakes_ns = 0;
    }
    um_loop_give_turn(loop);
    if (sooner) {
        um_loop_wakeup(loop);
    }
}
