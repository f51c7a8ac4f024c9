/* Pollers of shared memory, and the sessions they look at. See um_shm_poller.h. */
#include "transport/shm/um_shm_poller.h"

/* ---- the poller ---- */

void um_shm_poller_init(struct um_shm_poller *poller, const struct um_shm_poller_kind *kind)
{
    poller->kind = kind;
    poller->control.fd = -1;
    um_list_init(&poller->polled);
}

static void thread_main(struct um_shm_thread *thread)
{
    struct um_shm_poller *poller = UM_CONTAINER_OF(thread, struct um_shm_poller, thread);
    poller->kind->main(poller);
}

static void free_poller(struct um_shm_thread *thread)
{
    struct um_shm_poller *poller = UM_CONTAINER_OF(thread, struct um_shm_poller, thread);
    um_shm_control_close(&poller->control);
    if (poller->kind->fini != NULL) {
        poller->kind->fini(poller);
    }
    um_free(poller); /* the first member of what was allocated */
}

int um_shm_poller_start(struct um_shm_poller *poller, int cpu)
{
    if (poller->started) {
        return 0;
    }
    if (um_shm_thread_start(poller->base.env, &poller->thread, poller->kind->thread, thread_main, free_poller) != 0) {
        return -1;
    }
    poller->started = true;
    um_shm_thread_pin(&poller->thread, cpu, poller->kind->cpu_option);
    return 0;
}

void um_shm_poller_destroy(struct um_rcv_transport *transport)
{
    struct um_shm_poller *poller = um_shm_poller_of(transport);
    if (!poller->started) {
        free_poller(&poller->thread);
        return;
    }
    atomic_store_explicit(&poller->thread.stop, true, memory_order_relaxed);
    poller->kind->wake(poller);
}

void um_shm_poller_each(struct um_shm_poller *poller, void (*fn)(struct um_shm_rcv_session *session, uint64_t now_ns))
{
    struct um_loop *loop = poller->base.env->loop;
    for (struct um_list *it = poller->polled.next; it != &poller->polled; it = poller->next) {
        poller->next = it->next;
        fn(um_shm_polled(it), um_loop_now(loop));
    }
    poller->next = NULL;
}

/* ---- its sessions ---- */

void um_shm_rcv_session_init(struct um_shm_rcv_session *session, struct um_shm_poller *poller,
                             const struct um_rcv_session_ops *ops)
{
    session->base.ops = ops;
    session->poller = poller;
    session->slot = -1;
    um_list_init(&session->node);
}

int um_shm_rcv_session_attach(struct um_shm_rcv_session *session, const struct um_rcv_session_key *key)
{
    return um_shm_attach(&session->segment, session->poller->kind->segments, key->session_id,
                         (uint16_t)key->transport_id);
}

int um_shm_rcv_session_take_slot(struct um_shm_rcv_session *session, uint32_t flags, uint64_t *start)
{
    session->slot = um_shm_slot_take(&session->segment, flags, session->poller->control.session_id, start);
    return session->slot >= 0 ? 0 : -1;
}

void um_shm_rcv_session_poll(struct um_shm_rcv_session *session)
{
    struct um_shm_poller *poller = session->poller;
    if (um_list_empty(&session->node)) {
        um_lock_take(&poller->lock);
        um_list_push_back(&poller->polled, &session->node);
        um_lock_give(&poller->lock);
        poller->kind->wake(poller);
    }
}

void um_shm_rcv_session_stop(struct um_rcv_session *base)
{
    struct um_shm_rcv_session *session = um_shm_rcv_session_of(base);
    struct um_shm_poller *poller = session->poller;
    if (!um_list_empty(&session->node)) {
        if (poller->next == &session->node) {
            poller->next = session->node.next;
        }
        um_lock_take(&poller->lock);
        um_list_remove(&session->node);
        um_lock_give(&poller->lock);
    }
    if (session->slot >= 0) {
        um_shm_slot_leave(&session->segment, session->slot);
        session->slot = -1;
    }
    um_shm_close(&session->segment);
}

void um_shm_rcv_session_destroy(struct um_rcv_session *base)
{
    um_shm_rcv_session_stop(base);
    um_free(um_shm_rcv_session_of(base)); /* the first member of what was allocated */
}
