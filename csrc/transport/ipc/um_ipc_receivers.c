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
#include "transport/ipc/um_ipc_rcv_session.h"
#include "transport/shm/um_shm_spin.h"

#define BUFFER_SIZE (256u * 1024u)
#define BUFFERS_KEPT 16u
#define NAP_MAX_NS (250 * UM_NS_PER_MS) /* also the time a receiver is deaf to a source that cannot wake it */
#define CHECK_NS (250 * UM_NS_PER_MS)
#define ROUNDS_BETWEEN_CLOCKS 1024u

/* Any thread. */
static void wake(struct um_shm_poller *poller)
{
    _Atomic uint32_t *futex = &poller->control.map->futex;
    um_shm_futex_bump(futex);
    syscall(SYS_futex, futex, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* ---- looking and reading (poller) ---- */

static bool anything_due(struct um_ipc_receivers *receivers)
{
    struct um_list *it;
    bool due = false;
    um_lock_take(&receivers->poller.lock);
    UM_LIST_FOREACH(it, &receivers->poller.polled)
    {
        due |= um_ipc_rcv_session_due(um_ipc_rcv_session_of(um_shm_polled(it)));
    }
    um_lock_give(&receivers->poller.lock);
    return due;
}

/* True: there was something to read. */
static bool read_all(struct um_ipc_receivers *receivers)
{
    if (!anything_due(receivers)) {
        return false;
    }
    um_loop_guest_enter(receivers->poller.base.env->loop);
    um_shm_poller_each(&receivers->poller, um_ipc_rcv_session_read);
    um_loop_guest_leave(receivers->poller.base.env->loop);
    return true;
}

static void check_sources(struct um_ipc_receivers *receivers)
{
    uint64_t now = um_clock_ns();
    if (now - receivers->checked_ns >= CHECK_NS) {
        receivers->checked_ns = now;
        um_loop_guest_enter(receivers->poller.base.env->loop);
        um_shm_poller_each(&receivers->poller, um_ipc_rcv_session_check);
        um_loop_guest_leave(receivers->poller.base.env->loop);
    }
}

/* ---- sleeping (poller) ---- */

/* Say in every session that we sleep, or that we do not. True: no need to sleep. */
static bool announce(struct um_ipc_receivers *receivers, bool asleep)
{
    struct um_list *it;
    um_lock_take(&receivers->poller.lock);
    UM_LIST_FOREACH(it, &receivers->poller.polled)
    {
        struct um_shm_rcv_session *session = um_shm_polled(it);
        atomic_store_explicit(&session->segment.slots[session->slot].waiting, asleep, memory_order_relaxed);
    }
    um_lock_give(&receivers->poller.lock);
    /* Pairs with the fence of a source between its tail and its look at who sleeps: one of both sees the other. */
    um_shm_fence_of_sleeper();
    return asleep && anything_due(receivers);
}

/* Until something may be there, or `wait_ns` is over. */
static void nap(struct um_ipc_receivers *receivers, uint64_t wait_ns)
{
    _Atomic uint32_t *futex = &receivers->poller.control.map->futex;
    /* Before the last look: a wake-up between that and the sleep changes it. */
    uint32_t seen = um_shm_futex_seen(futex);
    if (!announce(receivers, true) && !um_shm_poller_stopped(&receivers->poller) &&
        !atomic_load_explicit(&receivers->unblock, memory_order_relaxed)) {
        uint64_t ns = wait_ns < NAP_MAX_NS ? wait_ns : NAP_MAX_NS;
        const struct timespec timeout = {(time_t)(ns / UM_NS_PER_SEC), (long)(ns % UM_NS_PER_SEC)};
        syscall(SYS_futex, futex, FUTEX_WAIT, seen, &timeout, NULL, 0);
    }
    announce(receivers, false);
}

/* ---- the library's thread ---- */

static void pend(struct um_ipc_receivers *receivers)
{
    while (!um_shm_poller_stopped(&receivers->poller)) {
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
    for (unsigned round = 0; !um_shm_poller_stopped(&receivers->poller); round++) {
        if (!read_all(receivers)) {
            um_shm_spin_once(&spin);
        }
        if (round % ROUNDS_BETWEEN_CLOCKS == 0) {
            check_sources(receivers);
        }
    }
}

static void thread_main(struct um_shm_poller *poller)
{
    struct um_ipc_receivers *receivers = UM_CONTAINER_OF(poller, struct um_ipc_receivers, poller);
    if (receivers->busy_wait) {
        busy_wait(receivers);
    } else {
        pend(receivers);
    }
}

static void fini(struct um_shm_poller *poller)
{
    um_buf_pool_release(UM_CONTAINER_OF(poller, struct um_ipc_receivers, poller)->pool);
}

static const struct um_shm_poller_kind kind = {.segments = UM_SHM_IPC,
                                               .thread = "um:lbtipc",
                                               .cpu_option = "um_lbtipc_receiver_thread_cpu",
                                               .main = thread_main,
                                               .wake = wake,
                                               .fini = fini};

int um_ipc_receivers_start(struct um_ipc_receivers *receivers)
{
    struct um_shm_poller *poller = &receivers->poller;
    if (poller->control.map == NULL && um_shm_control_create(&poller->control, UM_SHM_IPC) != 0) {
        return -1;
    }
    return receivers->sequential ? 0
                                 : um_shm_poller_start(poller, poller->base.env->opts->um_lbtipc_receiver_thread_cpu);
}

struct um_rcv_transport *um_ipc_receivers_create(struct um_transport_env *env)
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
    um_shm_poller_init(&receivers->poller, &kind);
    receivers->pool = pool;
    receivers->sequential = opts->transport_lbtipc_receiver_operational_mode == LBM_CTX_ATTR_OP_SEQUENTIAL;
    receivers->busy_wait = opts->transport_lbtipc_receiver_thread_behavior == LBM_CTX_ATTR_IPC_RCV_THREAD_BUSY_WAIT;
    receivers->linger = opts->transport_lbtipc_pend_behavior_linger_loop_count;
    receivers->linger = receivers->linger > 0 ? receivers->linger : 1;
    /* An application that receives by itself may call before there is a session. */
    if (receivers->sequential && um_ipc_receivers_start(receivers) != 0) {
        um_shm_poller_destroy(&receivers->poller.base);
        return NULL;
    }
    return &receivers->poller.base;
}

/* ---- sequential mode: the application's thread ---- */

static struct um_ipc_receivers *sequential(struct um_rcv_transport *transport)
{
    struct um_ipc_receivers *receivers = transport != NULL ? um_ipc_receivers_of(transport) : NULL;
    return receivers != NULL && receivers->sequential ? receivers : NULL;
}

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
           !atomic_load_explicit(&receivers->unblock, memory_order_relaxed)) {
        nap(receivers, until - now);
        found = read_all(receivers);
        check_sources(receivers);
    }
    check_sources(receivers);
}

int um_ipc_receivers_process(struct um_rcv_transport *transport, uint64_t wait_ms, uint64_t rounds)
{
    struct um_ipc_receivers *receivers = sequential(transport);
    if (receivers == NULL) {
        return not_sequential("lbm_context_process_lbtipc_messages");
    }
    if (!um_shm_claim(&receivers->processing)) {
        return um_error(UM_EOP, "CoreApi-5688-664",
                        "lbm_context_process_lbtipc_messages: another thread is inside; use one thread at a time");
    }
    uint64_t wait_ns = um_ms_ns(wait_ms);
    for (uint64_t i = 0; rounds == 0 || i < rounds; i++) {
        if (atomic_exchange_explicit(&receivers->unblock, false, memory_order_relaxed)) {
            break;
        }
        process_round(receivers, wait_ns);
    }
    um_shm_unclaim(&receivers->processing);
    return 0;
}

int um_ipc_receivers_unblock(struct um_rcv_transport *transport)
{
    struct um_ipc_receivers *receivers = sequential(transport);
    if (receivers == NULL) {
        return not_sequential("lbm_context_lbtipc_unblock");
    }
    atomic_store_explicit(&receivers->unblock, true, memory_order_relaxed);
    wake(&receivers->poller);
    return 0;
}
