/* Sending on an LBT-IPC session: datagrams into the ring, and, receiver-paced,
 * waiting for the room that receivers leave. Everything under the session lock,
 * in the thread that sends or on the loop. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/um_clock.h"
#include "base/um_mem.h"
#include "transport/ipc/um_ipc_src_session.h"
#include "transport/shm/um_shm_spin.h"

#define SPINS 200
#define NAP_NS (5 * UM_NS_PER_MS)
#define SLOW_NS UM_NS_PER_SEC              /* a receiver that holds the source up for so long is named in the log, */
#define SLOW_AGAIN_NS (10 * UM_NS_PER_SEC) /* and again so much later */

static struct um_ipc_src_session *session_of(const struct um_src_session *base)
{
    return UM_CONTAINER_OF((struct um_src_session *)base, struct um_ipc_src_session, base);
}

/* False: no room. */
static bool put(struct um_ipc_src_session *session, struct um_datagram *datagram)
{
    if (!um_ipc_write(&session->writer, UM_IPC_DATA, datagram->data, datagram->len)) {
        return false;
    }
    session->datagrams_sent++;
    session->bytes_sent += datagram->len;
    if (session->base.clients == 0) {
        session->base.drops.unheard_bytes += datagram->len;
    }
    um_datagram_unref(&session->base, datagram);
    return true;
}

static void keep_stuck(struct um_ipc_src_session *session, struct um_datagram *datagram)
{
    datagram->next_free = NULL;
    if (session->stuck == NULL) {
        session->stuck = datagram;
        session->stuck_since_ns = um_clock_ns();
    } else {
        session->stuck_last->next_free = datagram;
    }
    session->stuck_last = datagram;
    session->base.blocked = true;
    if (session->base.waiters == 0) {
        um_loop_post(session->base.env->loop, &session->base.command); /* arms the timer that tries again */
    }
}

void um_ipc_transmit(struct um_src_session *base, struct um_datagram *datagram)
{
    struct um_ipc_src_session *session = session_of(base);
    if (um_shm_join_epoch(session->segment.header) != session->epoch) {
        um_ipc_clients_look(session);
    }
    if (session->stuck == NULL && put(session, datagram)) {
        um_ipc_clients_wake(session);
    } else {
        keep_stuck(session, datagram);
    }
}

void um_ipc_send_stuck(struct um_ipc_src_session *session)
{
    bool sent = false;
    while (session->stuck != NULL) {
        struct um_datagram *datagram = session->stuck, *next = datagram->next_free;
        if (!put(session, datagram)) {
            break;
        }
        session->stuck = next;
        sent = true;
    }
    if (sent) {
        uint64_t now = um_clock_ns();
        session->stuck_ns += now - session->stuck_since_ns;
        session->stuck_since_ns = now;
        um_ipc_clients_wake(session);
    }
    session->base.blocked = session->stuck != NULL;
    if (sent && session->stuck == NULL) {
        um_src_session_relieve(&session->base);
    }
}

size_t um_ipc_drop_stuck(struct um_ipc_src_session *session)
{
    size_t bytes = 0;
    while (session->stuck != NULL) {
        struct um_datagram *datagram = session->stuck;
        session->stuck = datagram->next_free;
        bytes += datagram->len;
        um_datagram_unref(&session->base, datagram);
    }
    session->base.drops.unsent_bytes += bytes;
    session->base.blocked = false;
    return bytes;
}

bool um_ipc_relieved(const struct um_src_session *base)
{
    return !base->blocked;
}

/* ---- waiting ---- */

/* Most waits are short: watch the position of the slowest receiver for a moment, without the lock. */
static void spin(struct um_ipc_src_session *session)
{
    int slowest = um_ipc_slowest(&session->writer);
    if (slowest < 0) {
        return;
    }
    _Atomic uint64_t *pos = &session->segment.slots[slowest].read_pos;
    uint64_t before = atomic_load_explicit(pos, memory_order_relaxed);
    um_src_session_unlock(&session->base);
    for (int i = 0; i < SPINS && atomic_load_explicit(pos, memory_order_relaxed) == before; i++) {
        um_shm_relax();
    }
    um_src_session_lock(&session->base);
}

static void name_the_slow(struct um_ipc_src_session *session)
{
    struct um_ipc_news *news = &session->news;
    uint64_t now = um_clock_ns();
    int slowest = um_ipc_slowest(&session->writer);
    if (slowest >= 0 && now - session->stuck_since_ns >= SLOW_NS && now >= news->slow_next_ns) {
        news->slow_pid = um_shm_slot_pid(&session->segment.slots[slowest]);
        news->slow_ms = (now - session->stuck_since_ns) / UM_NS_PER_MS;
        news->slow_next_ns = now + SLOW_AGAIN_NS;
        um_ipc_clients_news(session);
    }
}

/* Sleep until a receiver has read on. The fence pairs with that of the receiver between its position and its look at
 * src_waiting: one of both sees the other. */
static void nap(struct um_ipc_src_session *session)
{
    struct um_shm_header *header = session->segment.header;
    static const struct timespec timeout = {0, NAP_NS};
    uint32_t seen = um_shm_futex_seen(&header->space_futex);
    atomic_store_explicit(&header->src_waiting, 1, memory_order_relaxed);
    um_shm_fence_of_sleeper();
    long rc = 0;
    if (!um_ipc_make_room(&session->writer, session->stuck->len)) {
        um_src_session_unlock(&session->base);
        rc = syscall(SYS_futex, &header->space_futex, FUTEX_WAIT, seen, &timeout, NULL, 0);
        rc = rc != 0 ? errno : 0;
        um_src_session_lock(&session->base);
    }
    atomic_store_explicit(&header->src_waiting, 0, memory_order_relaxed);
    if (rc == ETIMEDOUT) {
        um_ipc_clients_reap(session);
        name_the_slow(session);
    }
}

void um_ipc_wait(struct um_src_session *base)
{
    struct um_ipc_src_session *session = session_of(base);
    spin(session);
    um_ipc_send_stuck(session);
    if (session->stuck != NULL) {
        nap(session);
        um_ipc_send_stuck(session);
    }
}

void um_ipc_resume(struct um_src_session *base)
{
    if (session_of(base)->stuck != NULL) {
        um_loop_post(base->env->loop, &base->command);
    }
}

void um_ipc_interrupt(struct um_src_session *base)
{
    _Atomic uint32_t *futex = &session_of(base)->segment.header->space_futex;
    um_shm_futex_bump(futex);
    syscall(SYS_futex, futex, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
