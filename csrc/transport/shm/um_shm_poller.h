/* Receiving from shared memory for a loop: what LBT-SMX and LBT-IPC have in common. A poller is the state of either
 * transport: the thread that looks at the segments of joined sessions, as guest of the loop, and those it looks at.
 * Sessions themselves are in the pool of the loop (um_rcv_pool.h), as everybody's. "lock" = poller.lock is held, which
 * comes after the turn of the loop. */
#ifndef UM_TRANSPORT_SHM_POLLER_H
#define UM_TRANSPORT_SHM_POLLER_H

#include "base/um_lock.h"
#include "base/um_mem.h"
#include "transport/session/um_rcv_transport.h"
#include "transport/shm/um_shm_segment.h"
#include "transport/shm/um_shm_thread.h"

struct um_shm_poller;

/* What differs. */
struct um_shm_poller_kind {
    enum um_shm_kind segments;
    const char *thread;                         /* its name */
    const char *cpu_option;                     /* says where it is kept */
    void (*main)(struct um_shm_poller *poller); /* the thread: polls until um_shm_poller_stopped() */
    void (*wake)(struct um_shm_poller *poller); /* it is to look again, if it sleeps. Any thread */
    void (*fini)(struct um_shm_poller *poller); /* what the transport has beside. NULL: nothing */
};

/* First member of what a transport keeps. */
struct um_shm_poller {
    struct um_rcv_transport base;
    const struct um_shm_poller_kind *kind;
    struct um_shm_thread thread;          /* started: see there */
    struct um_shm_control_object control; /* shows the context to tools and sources */
    bool started;                         /* [loop] */
    struct um_lock lock;                  /* keeps segments mapped while the poller looks without the turn */
    struct um_list polled;                /* [loop] and lock; either suffices to read */
    struct um_list *next; /* [loop] the session that um_shm_poller_each() comes to after the present one */
};

/* First member of a transport's session. */
struct um_shm_rcv_session {
    struct um_rcv_session base;
    struct um_shm_poller *poller;
    struct um_list node; /* poller->polled; empty: not looked at */
    struct um_shm_segment segment;
    int slot; /* -1: none */
};

static inline struct um_shm_poller *um_shm_poller_of(struct um_rcv_transport *transport)
{
    return UM_CONTAINER_OF(transport, struct um_shm_poller, base);
}

static inline struct um_shm_rcv_session *um_shm_rcv_session_of(const struct um_rcv_session *session)
{
    return UM_CONTAINER_OF((struct um_rcv_session *)session, struct um_shm_rcv_session, base);
}

static inline struct um_shm_rcv_session *um_shm_polled(struct um_list *node)
{
    return UM_CONTAINER_OF(node, struct um_shm_rcv_session, node);
}

/* Any thread. */
static inline bool um_shm_poller_stopped(struct um_shm_poller *poller)
{
    return atomic_load_explicit(&poller->thread.stop, memory_order_relaxed);
}

/* ---- the poller [loop] ---- */

void um_shm_poller_init(struct um_shm_poller *poller, const struct um_shm_poller_kind *kind);
/* The thread runs, on this processor (-1: any). -1 + error. */
int um_shm_poller_start(struct um_shm_poller *poller, int cpu);
/* No sessions are left. The thread ends; it is joined by um_shm_threads_join(), and the memory freed then. */
void um_shm_poller_destroy(struct um_rcv_transport *transport);
/* Poller [loop]: each polled session once. `fn` may end any of them. */
void um_shm_poller_each(struct um_shm_poller *poller, void (*fn)(struct um_shm_rcv_session *session, uint64_t now_ns));

/* ---- its sessions [loop] ---- */

void um_shm_rcv_session_init(struct um_shm_rcv_session *session, struct um_shm_poller *poller,
                             const struct um_rcv_session_ops *ops);
/* Map the segment of this key. -1 + error. */
int um_shm_rcv_session_attach(struct um_shm_rcv_session *session, const struct um_rcv_session_key *key);
/* A slot in the segment; *start: where reading begins. -1 + error. */
int um_shm_rcv_session_take_slot(struct um_shm_rcv_session *session, uint32_t flags, uint64_t *start);
/* From now on the poller looks at it. */
void um_shm_rcv_session_poll(struct um_shm_rcv_session *session);
/* um_rcv_session_ops: the poller does not look at it any more, slot and segment are left. Harmless when done before. */
void um_shm_rcv_session_stop(struct um_rcv_session *base);
void um_shm_rcv_session_destroy(struct um_rcv_session *base);

#endif
