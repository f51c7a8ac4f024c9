/* The receivers of an LBT-IPC source session as their slots show them: who came,
 * who went, who died, who sleeps. Looked at by senders and timers under the
 * session lock; events are reported by the loop. */
#define _GNU_SOURCE
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_mem.h"
#include "transport/ipc/um_ipc_src_session.h"

int um_ipc_clients_init(struct um_ipc_src_session *session)
{
    uint32_t count = session->segment.max_receivers;
    session->clients = um_calloc(count, sizeof *session->clients);
    session->active = um_calloc(count, sizeof *session->active);
    if (session->clients == NULL || session->active == NULL) {
        um_free(session->clients);
        um_free(session->active);
        return um_error_nomem("receiver slots of an LBT-IPC session", count * sizeof *session->clients);
    }
    for (uint32_t i = 0; i < count; i++) {
        session->clients[i].signal.fd = -1;
    }
    return 0;
}

void um_ipc_clients_fini(struct um_ipc_src_session *session)
{
    for (uint32_t i = 0; i < session->segment.max_receivers; i++) {
        um_shm_control_close(&session->clients[i].signal);
    }
    um_free(session->clients);
    um_free(session->active);
}

/* ---- who is there ---- */

static void left(struct um_ipc_src_session *session, struct um_ipc_client *client)
{
    um_shm_control_close(&client->signal);
    client->active = false;
    session->clients_changed = true;
}

static void came(struct um_ipc_src_session *session, struct um_ipc_client *client, const struct um_shm_slot *slot)
{
    uint32_t context_id = atomic_load_explicit(&slot->ctx_session_id, memory_order_relaxed);
    client->active = true;
    client->generation = atomic_load_explicit(&slot->generation, memory_order_relaxed);
    client->pid = um_shm_slot_pid(slot);
    snprintf(client->text, sizeof client->text, "LBT-IPC:%x:%u", context_id, client->pid);
    session->clients_changed = true;
    if ((atomic_load_explicit(&slot->flags, memory_order_relaxed) & UM_SHM_SLOT_BUSY_WAIT) == 0 &&
        um_shm_control_attach(&client->signal, UM_SHM_IPC, context_id) != 0) {
        session->news.deaf_pid = client->pid;
        snprintf(session->news.deaf_why, sizeof session->news.deaf_why, "%s", um_errmsg());
        um_ipc_clients_news(session);
    }
}

void um_ipc_clients_look(struct um_ipc_src_session *session)
{
    struct um_shm_segment *segment = &session->segment;
    session->epoch = um_shm_join_epoch(segment->header);
    int count = 0;
    for (uint32_t i = 0; i < segment->max_receivers; i++) {
        struct um_ipc_client *client = &session->clients[i];
        const struct um_shm_slot *slot = &segment->slots[i];
        bool active = um_shm_slot_state(slot) >= UM_SHM_SLOT_ACTIVE;
        uint32_t generation = atomic_load_explicit(&slot->generation, memory_order_relaxed);
        if (client->active && (!active || client->generation != generation)) {
            left(session, client);
        }
        if (active && !client->active) {
            came(session, client, slot);
        }
        if (client->active) {
            session->active[count++] = (uint16_t)i;
        }
    }
    session->base.clients = count;
    if (session->clients_changed) {
        um_loop_post(session->base.env->loop, &session->base.command);
    }
}

void um_ipc_clients_reap(struct um_ipc_src_session *session)
{
    struct um_shm_segment *segment = &session->segment;
    for (uint32_t i = 0; i < segment->max_receivers; i++) {
        uint32_t pid = um_shm_slot_pid(&segment->slots[i]);
        if (um_shm_slot_reap(segment, i)) {
            session->receivers_lost++;
            session->clients[i].gone_pid = pid;
            um_ipc_clients_news(session);
        }
    }
    if (um_shm_join_epoch(segment->header) != session->epoch) {
        um_ipc_clients_look(session);
    }
}

/* ---- waking ---- */

static void wake(struct um_ipc_client *client)
{
    if (client->signal.fd >= 0) {
        _Atomic uint32_t *futex = &client->signal.map->futex;
        um_shm_futex_bump(futex);
        syscall(SYS_futex, futex, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
}

/* The fence pairs with that of a receiver between announcing its sleep and its last look: one of both sees the other.
 */
void um_ipc_clients_wake(struct um_ipc_src_session *session)
{
    um_shm_fence_of_waker();
    for (int i = 0; i < session->base.clients; i++) {
        struct um_shm_slot *slot = &session->segment.slots[session->active[i]];
        if (atomic_load_explicit(&slot->waiting, memory_order_relaxed) != 0 &&
            atomic_exchange_explicit(&slot->waiting, 0, memory_order_relaxed) != 0) {
            wake(&session->clients[session->active[i]]);
        }
    }
}

/* ---- what is logged ---- */

void um_ipc_clients_news(struct um_ipc_src_session *session)
{
    session->news.any = true;
    um_loop_post(session->base.env->loop, &session->base.command);
}

static void tell_gone(struct um_ipc_src_session *session)
{
    for (uint32_t i = 0; i < session->segment.max_receivers; i++) {
        um_src_session_lock(&session->base);
        uint32_t pid = session->clients[i].gone_pid;
        session->clients[i].gone_pid = 0;
        um_src_session_unlock(&session->base);
        if (pid != 0) {
            um_log(UM_LOG_NOTICE, "Core-5688-654",
                   "%s: the receiver of process %u is gone without leaving: slot %u freed", session->segment.path, pid,
                   i);
        }
    }
}

void um_ipc_clients_tell(struct um_ipc_src_session *session)
{
    um_src_session_lock(&session->base);
    struct um_ipc_news news = session->news;
    session->news.any = false;
    session->news.deaf_pid = session->news.slow_pid = 0;
    um_src_session_unlock(&session->base);
    if (!news.any) {
        return;
    }
    tell_gone(session);
    if (news.deaf_pid != 0) {
        um_log_limited(
            um_log_of(session->segment.path), um_clock_ns(), UM_LOG_WARNING, "Core-5688-651",
            "%s: the receiver of process %u cannot be woken (%s): it will look by itself, four times a second",
            session->segment.path, news.deaf_pid, news.deaf_why);
    }
    if (news.slow_pid != 0) {
        um_log_limited(um_log_of(session->segment.path), um_clock_ns(), UM_LOG_NOTICE, "Core-5688-655",
                       "%s: waiting for the receiver of process %u, which has not read for %llu ms (receiver-paced)",
                       session->segment.path, news.slow_pid, (unsigned long long)news.slow_ms);
    }
}

/* ---- reporting ---- */

static void report(struct um_ipc_src_session *session, const char *client, bool connect)
{
    struct um_list *it, *tmp;
    UM_LIST_FOREACH_SAFE(it, tmp, &session->base.streams)
    {
        struct um_src_stream *stream = UM_CONTAINER_OF(it, struct um_src_stream, node);
        if (connect && stream->announce_pending) {
            continue; /* told with all others when its turn comes */
        }
        if (connect) {
            stream->events->on_connect(stream, client);
        } else {
            stream->events->on_disconnect(stream, client);
        }
    }
}

/* What changed in one slot since it was told. */
static void report_slot(struct um_ipc_src_session *session, struct um_ipc_client *client)
{
    char text[sizeof client->text];
    um_src_session_lock(&session->base);
    bool active = client->active;
    memcpy(text, client->text, sizeof text);
    um_src_session_unlock(&session->base);
    if (client->told && (!active || strcmp(client->told_text, text) != 0)) {
        client->told = false;
        report(session, client->told_text, false);
    }
    if (active && !client->told) {
        client->told = true;
        memcpy(client->told_text, text, sizeof text);
        report(session, text, true);
    }
}

/* The numbers of all topics go out first: a receiver that is told of learns from them where it stands. */
void um_ipc_clients_report(struct um_ipc_src_session *session)
{
    um_src_session_lock(&session->base);
    bool changed = session->clients_changed;
    session->clients_changed = false;
    if (changed && session->base.clients > 0 && !session->base.blocked) {
        um_src_session_tell_numbers(&session->base, NULL);
    }
    um_src_session_unlock(&session->base);
    for (uint32_t i = 0; changed && i < session->segment.max_receivers; i++) {
        report_slot(session, &session->clients[i]);
    }
}

void um_ipc_clients_announce(struct um_src_session *base, struct um_src_stream *stream)
{
    struct um_ipc_src_session *session = UM_CONTAINER_OF(base, struct um_ipc_src_session, base);
    for (uint32_t i = 0; i < session->segment.max_receivers; i++) {
        if (session->clients[i].told) {
            stream->events->on_connect(stream, session->clients[i].told_text);
        }
    }
}
