/*
 * The C half of the Python binding: what runs on threads of the library and may not wait for Python.
 * Log lines and source events are put into bounded queues here and fetched by Python threads; a sender that must wait
 * waits here for the source's WAKEUP event, in slices, so that Python gets to handle signals in between.
 * Compiled into um_cffi.binding._native by build.py.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include <lbm/lbm.h>
#include <lbm/um.h>

#define UM_PY_TEXT_MAX 1024
#define UM_PY_LOG_LINES_MAX 10000
#define UM_PY_EVENTS_MAX 65536

/* One log line or source event on its way to Python. */
typedef struct um_py_item_stct {
    struct um_py_item_stct *next;
    uint64_t owner; /* number of the source object, 0 for log lines */
    int kind;       /* log level or LBM_SRC_EVENT_* */
    uint32_t first; /* sequence numbers, 0 if the event has none */
    uint32_t last;
    int64_t timestamp_ns; /* 0 if the event has none */
    char text[UM_PY_TEXT_MAX];
} um_py_item_t;

/* A bounded queue with a descriptor that is readable while something waits. Any thread puts, one takes. */
typedef struct um_py_queue_stct {
    atomic_int
        refs; /* any thread: Python's, until it deletes the queue, and one of each source that puts events here */
    pthread_mutex_t lock;
    um_py_item_t *head, *tail; /* lock */
    size_t count, limit;       /* lock */
    uint64_t dropped;          /* lock */
    int fd;                    /* lock; -1: deleted, nothing is put or waits any more */
} um_py_queue_t;

static um_py_queue_t *um_py_queue_create(size_t limit)
{
    um_py_queue_t *queue = calloc(1, sizeof *queue);
    if (queue == NULL)
        return NULL;
    queue->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (queue->fd < 0) {
        free(queue);
        return NULL;
    }
    atomic_init(&queue->refs, 1);
    pthread_mutex_init(&queue->lock, NULL);
    queue->limit = limit;
    return queue;
}

static void um_py_queue_unref(um_py_queue_t *queue)
{
    if (atomic_fetch_sub(&queue->refs, 1) == 1) {
        pthread_mutex_destroy(&queue->lock);
        free(queue);
    }
}

/* For Python, which calls nothing else on it afterwards. Sources may still put events; those are dropped. */
static void um_py_queue_delete(um_py_queue_t *queue)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->head != NULL) {
        um_py_item_t *item = queue->head;
        queue->head = item->next;
        free(item);
    }
    queue->tail = NULL;
    queue->count = 0;
    close(queue->fd);
    queue->fd = -1;
    pthread_mutex_unlock(&queue->lock);
    um_py_queue_unref(queue);
}

static int um_py_queue_fd(um_py_queue_t *queue)
{
    return queue->fd;
}

static void um_py_fd_set(int fd)
{
    uint64_t one = 1;
    ssize_t written = write(fd, &one, sizeof one);
    (void)written; /* a full counter is readable all the same */
}

static void um_py_fd_clear(int fd)
{
    uint64_t count;
    ssize_t got = read(fd, &count, sizeof count);
    (void)got;
}

/* For Python: an event loop has seen the descriptor. */
static void um_py_clear_fd(int fd)
{
    um_py_fd_clear(fd);
}

/* Wakes whoever waits for the descriptor, without an item. */
static void um_py_queue_wake(um_py_queue_t *queue)
{
    um_py_fd_set(queue->fd);
}

static void um_py_queue_put(um_py_queue_t *queue, uint64_t owner, int kind, const char *text, uint32_t first,
                            uint32_t last, int64_t timestamp_ns)
{
    um_py_item_t *item = malloc(sizeof *item);
    if (item != NULL) {
        item->next = NULL;
        item->owner = owner;
        item->kind = kind;
        item->first = first;
        item->last = last;
        item->timestamp_ns = timestamp_ns;
        strncpy(item->text, text, sizeof item->text - 1);
        item->text[sizeof item->text - 1] = 0;
    }
    pthread_mutex_lock(&queue->lock);
    if (item == NULL || queue->fd < 0 || queue->count >= queue->limit) {
        queue->dropped++;
        free(item);
    } else {
        if (queue->tail != NULL)
            queue->tail->next = item;
        else
            queue->head = item;
        queue->tail = item;
        queue->count++;
    }
    if (queue->fd >= 0)
        um_py_fd_set(queue->fd);
    pthread_mutex_unlock(&queue->lock);
}

/* 1 and the oldest item, which the caller frees; 0 when there is none, and the descriptor is clear then. */
static int um_py_queue_take(um_py_queue_t *queue, um_py_item_t **itemp)
{
    pthread_mutex_lock(&queue->lock);
    um_py_item_t *item = queue->head;
    if (item == NULL) {
        um_py_fd_clear(queue->fd);
    } else {
        queue->head = item->next;
        if (queue->head == NULL)
            queue->tail = NULL;
        queue->count--;
    }
    pthread_mutex_unlock(&queue->lock);
    *itemp = item;
    return item != NULL;
}

static void um_py_item_free(um_py_item_t *item)
{
    free(item);
}

static uint64_t um_py_queue_dropped(um_py_queue_t *queue)
{
    pthread_mutex_lock(&queue->lock);
    uint64_t dropped = queue->dropped;
    pthread_mutex_unlock(&queue->lock);
    return dropped;
}

/* ---- log ---- */

static int um_py_on_log(int level, const char *message, void *clientd)
{
    um_py_queue_put(clientd, 0, level, message, 0, 0, 0);
    return 0;
}

/* The queue that gets the library's log lines from now on; NULL brings back standard error. */
static int um_py_log_to(um_py_queue_t *queue)
{
    return lbm_log(queue != NULL ? um_py_on_log : NULL, queue);
}

/* One for each process, used by threads of the library until the end: not a leak. */
static um_py_queue_t *um_py_log_queue_create(void)
{
    um_py_queue_t *queue = um_py_queue_create(UM_PY_LOG_LINES_MAX);
#ifdef __SANITIZE_ADDRESS__
    __lsan_ignore_object(queue);
#endif
    return queue;
}

static um_py_queue_t *um_py_event_queue_create(void)
{
    return um_py_queue_create(UM_PY_EVENTS_MAX);
}

/* ---- sources ---- */

/*
 * One LBT-SMX session of this process. The library has general sends publish everything that is acquired, so sends and
 * acquired messages take turns.
 */
typedef struct um_py_turn_stct {
    pthread_mutex_t lock;         /* held by sends while they are in the library */
    _Atomic(const void *) holder; /* whose turn it is: the um_py_source_t that has acquired messages which are not
                                     complete, the turn itself while a send is in the library; NULL: nobody's */
} um_py_turn_t;

static um_py_turn_t *um_py_turn_create(void)
{
    um_py_turn_t *turn = calloc(1, sizeof *turn);
    if (turn != NULL)
        pthread_mutex_init(&turn->lock, NULL);
    return turn;
}

/* 1: it is `who`'s turn now; 0: it is that of *other, which may be `who`. */
static inline int um_py_turn_try(um_py_turn_t *turn, const void *who, const void **other)
{
    *other = NULL;
    return atomic_compare_exchange_strong_explicit(&turn->holder, other, who, memory_order_acquire,
                                                   memory_order_relaxed);
}

static inline void um_py_turn_over(um_py_turn_t *turn)
{
    atomic_store_explicit(&turn->holder, NULL, memory_order_release);
}

/* For a send, after the one before: 0; -1 while messages of the session are acquired. */
static int um_py_turn_lock(um_py_turn_t *turn)
{
    const void *other;
    pthread_mutex_lock(&turn->lock);
    if (um_py_turn_try(turn, turn, &other))
        return 0;
    pthread_mutex_unlock(&turn->lock);
    return -1;
}

static void um_py_turn_unlock(um_py_turn_t *turn)
{
    um_py_turn_over(turn);
    pthread_mutex_unlock(&turn->lock);
}

static void um_py_turn_delete(um_py_turn_t *turn)
{
    pthread_mutex_destroy(&turn->lock);
    free(turn);
}

static unsigned um_py_generation; /* number of forks behind this process; GIL */

static void um_py_forked_again(void)
{
    um_py_generation++;
}

/*
 * One source of the binding: what its event callback needs, and who is inside a send. Outlives the lbm_src_t, also when
 * that cannot be deleted, and the last use of the source object.
 */
typedef struct um_py_source_stct {
    atomic_int refs; /* any thread: the source object's, and the lbm_src_t's */
    uint64_t owner;
    um_py_queue_t *events; /* NULL: nobody wants them; has a reference */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* any of the following */
    lbm_src_t *src;         /* NULL before creation and once closing */
    int senders;            /* inside a call on src */
    uint64_t wakeups;       /* WAKEUP events so far */
    int fd;                 /* readable after a WAKEUP, for event loops; -1 until wanted */
    um_py_turn_t *turn;     /* of its session; NULL: not LBT-SMX. Set before Python may send */
    unsigned generation;    /* the following belong to whoever has the GIL */
    int sealed;             /* nothing may be acquired any more */
    size_t acquired;        /* messages acquired and not complete */
    size_t exports;         /* views of these */
    uint64_t published;     /* times that acquired messages were completed or given back */
} um_py_source_t;

static um_py_source_t *um_py_source_create(uint64_t owner, um_py_queue_t *events)
{
    um_py_source_t *state = calloc(1, sizeof *state);
    if (state == NULL)
        return NULL;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&state->changed, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&state->lock, NULL);
    atomic_init(&state->refs, 1);
    state->owner = owner;
    state->fd = -1;
    state->events = events;
    if (events != NULL)
        atomic_fetch_add(&events->refs, 1);
    state->generation = um_py_generation;
    return state;
}

/* For Python: nothing refers to the source object any more. */
static void um_py_source_delete(um_py_source_t *state)
{
    if (atomic_fetch_sub(&state->refs, 1) != 1)
        return;
    if (state->events != NULL)
        um_py_queue_unref(state->events);
    if (state->fd >= 0)
        close(state->fd);
    pthread_mutex_destroy(&state->lock);
    pthread_cond_destroy(&state->changed);
    free(state);
}

/* The source exists: it keeps the state until um_py_source_close() has deleted it. */
static void um_py_source_open(um_py_source_t *state, lbm_src_t *src)
{
    atomic_fetch_add(&state->refs, 1);
    pthread_mutex_lock(&state->lock);
    state->src = src;
    pthread_mutex_unlock(&state->lock);
}

static void um_py_source_take_turns(um_py_source_t *state, um_py_turn_t *turn)
{
    state->turn = turn;
}

/* The source, kept from being deleted until um_py_source_leave(); NULL with LBM_EINVAL when it is closed. */
static lbm_src_t *um_py_source_enter(um_py_source_t *state, uint64_t *wakeups)
{
    pthread_mutex_lock(&state->lock);
    lbm_src_t *src = state->src;
    if (src != NULL)
        state->senders++;
    *wakeups = state->wakeups;
    pthread_mutex_unlock(&state->lock);
    if (src == NULL)
        lbm_seterr(LBM_EINVAL, "the source is closed");
    return src;
}

/* Before a send: 0; -1 while messages of the session are acquired. um_py_send_over() afterwards. */
static int um_py_send_turn(um_py_source_t *state)
{
    if (state->turn == NULL || um_py_turn_lock(state->turn) == 0)
        return 0;
    lbm_seterr(LBM_EOP, "messages acquired from the LBT-SMX session are not complete: complete() or cancel() first");
    return -1;
}

static void um_py_send_over(um_py_source_t *state)
{
    if (state->turn != NULL)
        um_py_turn_unlock(state->turn);
}

static void um_py_source_leave(um_py_source_t *state)
{
    pthread_mutex_lock(&state->lock);
    if (--state->senders == 0 && state->src == NULL)
        pthread_cond_broadcast(&state->changed);
    pthread_mutex_unlock(&state->lock);
}

/* Deletes the source once the calls on it have returned; those that wait for room end with LBM_EINVAL. -1: the library
 * refuses, and the source is as it was. */
static int um_py_source_close(um_py_source_t *state)
{
    pthread_mutex_lock(&state->lock);
    lbm_src_t *src = state->src;
    state->src = NULL;
    pthread_cond_broadcast(&state->changed);
    while (state->senders > 0)
        pthread_cond_wait(&state->changed, &state->lock);
    pthread_mutex_unlock(&state->lock);
    if (src == NULL)
        return 0;
    if (lbm_src_delete(src) != 0) {
        pthread_mutex_lock(&state->lock);
        state->src = src;
        pthread_mutex_unlock(&state->lock);
        return -1;
    }
    um_py_source_delete(state);
    return 0;
}

/* The descriptor that becomes readable with a WAKEUP; -1 when there can be none. */
static int um_py_source_fd(um_py_source_t *state)
{
    pthread_mutex_lock(&state->lock);
    if (state->fd < 0)
        state->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int fd = state->fd;
    pthread_mutex_unlock(&state->lock);
    return fd;
}

static void um_py_source_on_wakeup(um_py_source_t *state)
{
    pthread_mutex_lock(&state->lock);
    state->wakeups++;
    if (state->fd >= 0)
        um_py_fd_set(state->fd);
    pthread_cond_broadcast(&state->changed);
    pthread_mutex_unlock(&state->lock);
}

/* lbm_src_cb_proc of every source of the binding. */
static int um_py_on_source_event(lbm_src_t *src, int event, void *ed, void *clientd)
{
    um_py_source_t *state = clientd;
    const char *text = "";
    uint32_t first = 0, last = 0;
    int64_t timestamp_ns = 0;
    switch (event) {
    case LBM_SRC_EVENT_WAKEUP:
        um_py_source_on_wakeup(state);
        break;
    case LBM_SRC_EVENT_CONNECT:
    case LBM_SRC_EVENT_DISCONNECT:
    case LBM_SRC_EVENT_UME_REGISTRATION_ERROR:
    case LBM_SRC_EVENT_UME_STORE_UNRESPONSIVE:
    case LBM_SRC_EVENT_UMQ_REGISTRATION_ERROR:
        text = ed != NULL ? ed : "";
        break;
    case LBM_SRC_EVENT_SEQUENCE_NUMBER_INFO:
        if (ed != NULL) {
            const lbm_src_event_sequence_number_info_t *info = ed;
            first = info->first_sequence_number;
            last = info->last_sequence_number;
        }
        break;
    case LBM_SRC_EVENT_TIMESTAMP:
        if (ed != NULL) {
            const lbm_src_event_timestamp_info_t *info = ed;
            first = last = info->sequence_number;
            timestamp_ns = (int64_t)info->hr_timestamp.tv_sec * 1000000000 + (int64_t)info->hr_timestamp.tv_nsec;
        }
        break;
    default:
        break;
    }
    if (state->events != NULL)
        um_py_queue_put(state->events, state->owner, event, text, first, last, timestamp_ns);
    return 0;
}

static void um_py_deadline(struct timespec *at, int slice_ms)
{
    clock_gettime(CLOCK_MONOTONIC, at);
    at->tv_sec += slice_ms / 1000;
    at->tv_nsec += (long)(slice_ms % 1000) * 1000000;
    if (at->tv_nsec >= 1000000000) {
        at->tv_sec++;
        at->tv_nsec -= 1000000000;
    }
}

#define UM_PY_SPINS 400    /* looks for room in shared memory before waiting for a WAKEUP */
#define UM_PY_SPIN_NS 5000 /* between two of them */

/* Receivers of shared memory make room within microseconds, and WAKEUP comes from a timer: look again soon. */
static void um_py_spin(void)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        sched_yield();
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000000000 + (now.tv_nsec - begin.tv_nsec) < UM_PY_SPIN_NS);
}

/*
 * Waits for a WAKEUP after the `seen`-th or the closing of the source; 0 when the deadline has passed first. *spins
 * counts the looks since something was sent.
 */
static int um_py_await_room(um_py_source_t *state, uint64_t seen, const struct timespec *deadline, unsigned *spins)
{
    int result = 0;
    if (state->turn != NULL && (*spins)++ < UM_PY_SPINS) {
        um_py_spin();
        return 1;
    }
    pthread_mutex_lock(&state->lock);
    while (state->wakeups == seen && state->src != NULL && result == 0)
        result = pthread_cond_timedwait(&state->changed, &state->lock, deadline);
    int worth_it = state->wakeups != seen || state->src == NULL;
    pthread_mutex_unlock(&state->lock);
    return worth_it;
}

/* One attempt that never waits: 0, or -1 as lbm_src_send() with LBM_SRC_NONBLOCK. */
static int um_py_try_send(um_py_source_t *state, const char *data, size_t len, int flags)
{
    uint64_t wakeups;
    lbm_src_t *src = um_py_source_enter(state, &wakeups);
    if (src == NULL)
        return -1;
    int result = um_py_send_turn(state);
    if (result == 0) {
        result = lbm_src_send(src, data, len, flags | LBM_SRC_NONBLOCK);
        um_py_send_over(state);
    }
    um_py_source_leave(state);
    return result;
}

/* As um_py_try_send(), one message gathered from segments. */
static int um_py_try_sendv(um_py_source_t *state, const lbm_iovec_t *iov, int num, int flags)
{
    uint64_t wakeups;
    lbm_src_t *src = um_py_source_enter(state, &wakeups);
    if (src == NULL)
        return -1;
    int result = um_py_send_turn(state);
    if (result == 0) {
        result = lbm_src_sendv(src, iov, num, flags | LBM_SRC_NONBLOCK | LBM_MSG_IOV_GATHER);
        um_py_send_over(state);
    }
    um_py_source_leave(state);
    return result;
}

/*
 * Sends one message, waiting up to slice_ms milliseconds for room; from segments when iov is given. 0; -1 with
 * LBM_EWOULDBLOCK: call again; otherwise -1 as lbm_src_send().
 */
static int um_py_send(um_py_source_t *state, const char *data, size_t len, const lbm_iovec_t *iov, int num, int flags,
                      int slice_ms)
{
    struct timespec deadline;
    unsigned spins = 0;
    um_py_deadline(&deadline, slice_ms);
    for (;;) {
        uint64_t seen;
        if (um_py_source_enter(state, &seen) == NULL)
            return -1;
        um_py_source_leave(state);
        int result = iov != NULL ? um_py_try_sendv(state, iov, num, flags) : um_py_try_send(state, data, len, flags);
        if (result == 0 || lbm_errnum() != LBM_EWOULDBLOCK || !um_py_await_room(state, seen, &deadline, &spins))
            return result;
    }
}

/*
 * Sends messages of one buffer as um_src_send_many() (offsets given) or um_src_send_array() (offsets NULL), waiting
 * for room up to slice_ms milliseconds. Goes on at *sent and adds to it; results as um_py_send().
 */
static int um_py_send_many(um_py_source_t *state, const char *base, const uint64_t *offsets, const uint32_t *lengths,
                           size_t stride, size_t length, size_t count, int flags, int slice_ms, size_t *sent)
{
    struct timespec deadline;
    unsigned spins = 0;
    um_py_deadline(&deadline, slice_ms);
    while (*sent < count) {
        uint64_t seen;
        size_t done = 0, left = count - *sent;
        lbm_src_t *src = um_py_source_enter(state, &seen);
        if (src == NULL)
            return -1;
        int how = flags | LBM_SRC_NONBLOCK;
        int result = um_py_send_turn(state);
        if (result == 0) {
            result = offsets != NULL ? um_src_send_many(src, base, offsets + *sent, lengths + *sent, left, how, &done)
                                     : um_src_send_array(src, base + *sent * stride, stride, length, left, how, &done);
            um_py_send_over(state);
        }
        um_py_source_leave(state);
        *sent += done;
        spins = done > 0 ? 0 : spins;
        if (result != 0 &&
            (slice_ms == 0 || lbm_errnum() != LBM_EWOULDBLOCK || !um_py_await_room(state, seen, &deadline, &spins)))
            return result;
    }
    return 0;
}

/* lbm_src_flush(), which publishes as sends do. */
static int um_py_flush(um_py_source_t *state)
{
    uint64_t wakeups;
    lbm_src_t *src = um_py_source_enter(state, &wakeups);
    if (src == NULL)
        return -1;
    int result = um_py_send_turn(state);
    if (result == 0) {
        result = lbm_src_flush(src);
        um_py_send_over(state);
    }
    um_py_source_leave(state);
    return result;
}

/* lbm_flush_all() while nothing is acquired from any of the sessions. */
static int um_py_flush_all(lbm_context_t *ctx, um_py_turn_t *const *turns, int count)
{
    int locked = 0, result = -1;
    while (locked < count && um_py_turn_lock(turns[locked]) == 0)
        locked++;
    if (locked < count)
        lbm_seterr(LBM_EOP, "messages acquired from an LBT-SMX session are not complete: complete() or cancel() first");
    else
        result = lbm_flush_all(ctx);
    while (locked > 0)
        um_py_turn_unlock(turns[--locked]);
    return result;
}

/* The callbacks themselves: what cffi gives as the address of a function is a wrapper of its own. */
static lbm_src_cb_proc um_py_source_proc(void)
{
    return um_py_on_source_event;
}

static lbm_rcv_cb_proc um_py_collector_proc(void)
{
    return um_collector_rcv_cb;
}

/* ---- statistics: members of anonymous unions are out of cffi's reach ---- */

static const void *um_py_src_transport(const lbm_src_transport_stats_t *stats)
{
    return &stats->transport;
}

static const void *um_py_rcv_transport(const lbm_rcv_transport_stats_t *stats)
{
    return &stats->transport;
}
