/* The poller of a context's LBT-IPC sessions: looks at all rings without a lock on
 * the data path, takes the turn of the loop when something is there, and sleeps on
 * one futex for all sources. A thread of the library, or the application's. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_mem.h"
#include "transport/ipc/um_ipc_rcv.h"
#include "transport/shm/um_shm_spin.h"

#define BUFFER_SIZE (256u * 1024u)
#define BUFFERS_KEPT 16u
#define NAP_MAX_NS (250 * UM_NS_PER_MS) /* also the time a receiver is deaf to a source that cannot wake it */
#define CHECK_NS (250 * UM_NS_PER_MS)
#define ROUNDS_BETWEEN_CLOCKS 1024u

static struct um_ipc_rcv *rcv_at(struct um_list *node)
{
    return UM_CONTAINER_OF(node, struct um_ipc_rcv, node);
}

/* ---- the sessions ---- */

void um_ipc_receivers_add(struct um_ipc_rcv *rcv)
{
    struct um_ipc_receivers *receivers = rcv->receivers;
    um_lock_take(&receivers->poll_lock);
    um_list_push_back(&receivers->sessions, &rcv->node);
    um_lock_give(&receivers->poll_lock);
    um_ipc_receivers_wake(receivers);
}

void um_ipc_receivers_remove(struct um_ipc_rcv *rcv)
{
    struct um_ipc_receivers *receivers = rcv->receivers;
    if (receivers->next == &rcv->node) {
        receivers->next = rcv->node.next;
    }
    um_lock_take(&receivers->poll_lock);
    um_list_remove(&rcv->node);
    um_lock_give(&receivers->poll_lock);
}

void um_ipc_receivers_wake(struct um_ipc_receivers *receivers)
{
    _Atomic uint32_t *futex = &receivers->signal.map->futex;
    atomic_fetch_add_explicit(futex, 1, memory_order_seq_cst);
    syscall(SYS_futex, futex, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* ---- looking and reading (poller) ---- */

static bool anything_due(struct um_ipc_receivers *receivers)
{
    struct um_list *it;
    bool due = false;
    um_lock_take(&receivers->poll_lock);
    UM_LIST_FOREACH(it, &receivers->sessions)
    {
        due |= um_ipc_rcv_due(rcv_at(it));
    }
    um_lock_give(&receivers->poll_lock);
    return due;
}

/* Each session once. A callback may end any of them: um_ipc_receivers_remove() then moves `next` on. */
static void for_each(struct um_ipc_receivers *receivers, void (*fn)(struct um_ipc_rcv *rcv, uint64_t now_ns))
{
    struct um_loop *loop = receivers->env->loop;
    for (struct um_list *it = receivers->sessions.next; it != &receivers->sessions; it = receivers->next) {
        receivers->next = it->next;
        fn(rcv_at(it), um_loop_now(loop));
    }
    receivers->next = NULL;
}

static bool stopped(struct um_ipc_receivers *receivers)
{
    return atomic_load_explicit(&receivers->thread.stop, memory_order_acquire);
}

/* True: there was something to read. */
static bool read_all(struct um_ipc_receivers *receivers)
{
    if (!anything_due(receivers)) {
        return false;
    }
    um_loop_guest_enter(receivers->env->loop);
    for_each(receivers, um_ipc_rcv_read);
    um_loop_guest_leave(receivers->env->loop);
    return true;
}

static void check_sources(struct um_ipc_receivers *receivers)
{
    uint64_t now = um_clock_ns();
    if (now - receivers->checked_ns >= CHECK_NS) {
        receivers->checked_ns = now;
        um_loop_guest_enter(receivers->env->loop);
        for_each(receivers, um_ipc_rcv_check);
        um_loop_guest_leave(receivers->env->loop);
    }
}

/* ---- sleeping (poller) ---- */

/* Say in every session that we sleep, or that we do not. True: no need to sleep. */
static bool announce(struct um_ipc_receivers *receivers, bool asleep)
{
    struct um_list *it;
    um_lock_take(&receivers->poll_lock);
    UM_LIST_FOREACH(it, &receivers->sessions)
    {
        struct um_ipc_rcv *rcv = rcv_at(it);
        atomic_store_explicit(&rcv->segment.slots[rcv->slot].waiting, asleep, memory_order_relaxed);
    }
    um_lock_give(&receivers->poll_lock);
    /* Pairs with the fence of a source between its tail and its look at who sleeps: one of both sees the other. */
    atomic_thread_fence(memory_order_seq_cst);
    return asleep && anything_due(receivers);
}

/* Until something may be there, or `wait_ns` is over. */
static void nap(struct um_ipc_receivers *receivers, uint64_t wait_ns)
{
    _Atomic uint32_t *futex = &receivers->signal.map->futex;
    /* Before the last look: a wake-up between that and the sleep changes it. */
    uint32_t seen = atomic_load_explicit(futex, memory_order_acquire);
    if (!announce(receivers, true) && !stopped(receivers) &&
        !atomic_load_explicit(&receivers->unblock, memory_order_acquire)) {
        uint64_t ns = wait_ns < NAP_MAX_NS ? wait_ns : NAP_MAX_NS;
        const struct timespec timeout = {(time_t)(ns / UM_NS_PER_SEC), (long)(ns % UM_NS_PER_SEC)};
        syscall(SYS_futex, futex, FUTEX_WAIT, seen, &timeout, NULL, 0);
    }
    announce(receivers, false);
}

/* ---- the library's thread ---- */

static void pend(struct um_ipc_receivers *receivers)
{
    while (!stopped(receivers)) {
        bool found = false;
        for (uint64_t i = 0; i < receivers->linger && !found; i++) {
            found = read_all(receivers);
        }
        if (!found) {
            nap(receivers, NAP_MAX_NS);
        }
        check_sources(receivers);
    }
}

static void busy_wait(struct um_ipc_receivers *receivers)
{
    struct um_shm_spin spin = {0};
    for (unsigned round = 0; !stopped(receivers); round++) {
        if (!read_all(receivers)) {
            um_shm_spin_once(&spin);
        }
        if (round % ROUNDS_BETWEEN_CLOCKS == 0) {
            check_sources(receivers);
        }
    }
}

static void thread_main(struct um_shm_thread *thread)
{
    struct um_ipc_receivers *receivers = UM_CONTAINER_OF(thread, struct um_ipc_receivers, thread);
    if (receivers->busy_wait) {
        busy_wait(receivers);
    } else {
        pend(receivers);
    }
}

static void free_receivers(struct um_shm_thread *thread)
{
    struct um_ipc_receivers *receivers = UM_CONTAINER_OF(thread, struct um_ipc_receivers, thread);
    um_shm_control_close(&receivers->signal);
    um_buf_pool_release(receivers->pool);
    um_free(receivers);
}

int um_ipc_receivers_start(struct um_ipc_receivers *receivers)
{
    if (receivers->signal.map == NULL && um_shm_control_create(&receivers->signal, UM_SHM_IPC) != 0) {
        return -1;
    }
    if (!receivers->sequential && !receivers->started) {
        if (um_shm_thread_start(receivers->env, &receivers->thread, "um:lbtipc", thread_main, free_receivers) != 0) {
            return -1;
        }
        receivers->started = true;
        um_shm_thread_pin(&receivers->thread, receivers->env->opts->um_lbtipc_receiver_thread_cpu,
                          "um_lbtipc_receiver_thread_cpu");
    }
    return 0;
}

struct um_ipc_receivers *um_ipc_receivers_create(struct um_transport_env *env)
{
    const struct um_context_options *opts = env->opts;
    struct um_ipc_receivers *receivers = um_calloc(1, sizeof *receivers);
    struct um_buf_pool *pool =
        um_buf_pool_create(BUFFER_SIZE, opts->transport_lbtipc_recycle_receive_buffers ? BUFFERS_KEPT : 1);
    if (receivers == NULL || pool == NULL) {
        if (pool != NULL) {
            um_buf_pool_release(pool);
        }
        um_free(receivers);
        um_error_nomem("LBT-IPC receive side", sizeof *receivers);
        return NULL;
    }
    receivers->env = env;
    receivers->pool = pool;
    receivers->sequential = opts->transport_lbtipc_receiver_operational_mode == LBM_CTX_ATTR_OP_SEQUENTIAL;
    receivers->busy_wait = opts->transport_lbtipc_receiver_thread_behavior == LBM_CTX_ATTR_IPC_RCV_THREAD_BUSY_WAIT;
    receivers->linger = opts->transport_lbtipc_pend_behavior_linger_loop_count;
    receivers->linger = receivers->linger > 0 ? receivers->linger : 1;
    receivers->signal.fd = -1;
    um_list_init(&receivers->sessions);
    /* An application that receives by itself may call before there is a session. */
    if (receivers->sequential && um_ipc_receivers_start(receivers) != 0) {
        free_receivers(&receivers->thread);
        return NULL;
    }
    return receivers;
}

void um_ipc_receivers_destroy(struct um_ipc_receivers *receivers)
{
    if (receivers == NULL) {
        return;
    }
    if (receivers->started) {
        atomic_store_explicit(&receivers->thread.stop, true, memory_order_release);
        um_ipc_receivers_wake(receivers);
    } else {
        free_receivers(&receivers->thread);
    }
}

/* ---- sequential mode: the application's thread ---- */

static int not_sequential(const char *call)
{
    return um_error(UM_EINVAL, "CoreApi-5688-663",
                    "%s: transport_lbtipc_receiver_operational_mode must be sequential for this call", call);
}

/* Look; nothing there: wait, look again. */
static void process_round(struct um_ipc_receivers *receivers, uint64_t wait_ns)
{
    bool found = false;
    for (uint64_t i = 0; i < receivers->linger && !found; i++) {
        found = read_all(receivers);
    }
    uint64_t until = found || wait_ns == 0 ? 0 : um_clock_ns() + wait_ns, now;
    while (!found && until != 0 && (now = um_clock_ns()) < until &&
           !atomic_load_explicit(&receivers->unblock, memory_order_acquire)) {
        nap(receivers, until - now);
        found = read_all(receivers);
        check_sources(receivers);
    }
    check_sources(receivers);
}

int um_ipc_receivers_process(struct um_ipc_receivers *receivers, uint64_t wait_ms, uint64_t rounds)
{
    if (!receivers->sequential) {
        return not_sequential("lbm_context_process_lbtipc_messages");
    }
    if (atomic_exchange(&receivers->processing, true)) {
        return um_error(UM_EOP, "CoreApi-5688-664",
                        "lbm_context_process_lbtipc_messages: another thread is inside; use one thread at a time");
    }
    uint64_t wait_ns = wait_ms > UINT64_MAX / 2 / UM_NS_PER_MS ? UINT64_MAX / 2 : wait_ms * UM_NS_PER_MS;
    for (uint64_t i = 0; rounds == 0 || i < rounds; i++) {
        if (atomic_exchange(&receivers->unblock, false)) {
            break;
        }
        process_round(receivers, wait_ns);
    }
    atomic_store(&receivers->processing, false);
    return 0;
}

int um_ipc_receivers_unblock(struct um_ipc_receivers *receivers)
{
    if (!receivers->sequential) {
        return not_sequential("lbm_context_lbtipc_unblock");
    }
    atomic_store(&receivers->unblock, true);
    um_ipc_receivers_wake(receivers);
    return 0;
}
