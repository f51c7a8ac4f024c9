/* Receive sessions of LBT-IPC and whoever polls them for a loop (um_shm_poller.h): a thread of the library, or the
 * application inside lbm_context_process_lbtipc_messages. The poller is a guest of the loop: while it has the turn it
 * owns everything that is marked [loop], so callbacks run on it as on the context's thread. Private to
 * csrc/transport/ipc. "poller" = the one thread that polls; with the turn of the loop where [loop] is added. "poll" =
 * the poll lock is held, which comes after the turn. */
#ifndef UM_TRANSPORT_IPC_IPC_RCV_SESSION_H
#define UM_TRANSPORT_IPC_IPC_RCV_SESSION_H

#include "base/um_log.h"
#include "transport/ipc/um_ipc_ring.h"
#include "transport/shm/um_shm_poller.h"

struct um_ipc_receivers {
    struct um_shm_poller poller; /* its control object is slept on: made with the first session, or when sequential */
    struct um_buf_pool *pool;
    bool sequential, busy_wait; /* fixed */
    uint64_t linger;            /* fixed: looks before going to sleep */
    uint64_t checked_ns;        /* poller: when the sources were last checked */
    atomic_bool processing;     /* sequential: somebody is inside the process call */
    atomic_bool unblock;        /* sequential: any thread */
};

struct um_ipc_rcv_session {
    struct um_shm_rcv_session shm;
    bool waits;                  /* fixed: the source waits for us (receiver-paced) */
    bool greeted;                /* poller: the first look was made */
    struct um_ipc_reader reader; /* poller */
    struct um_buf *buf;          /* [loop] */
    uint32_t used;               /* [loop] bytes of buf that messages may refer to */
    uint64_t timeout_ns;         /* activity timeout; 0: none */
    uint64_t activity;           /* [loop] as last seen */
    uint64_t active_ns;          /* [loop] when the source was last known to be active */
    uint64_t overruns_logged;    /* [loop] */
    uint64_t datagrams;          /* [loop] */
};

static inline struct um_ipc_rcv_session *um_ipc_rcv_session_of(struct um_shm_rcv_session *session)
{
    return UM_CONTAINER_OF(session, struct um_ipc_rcv_session, shm);
}

static inline struct um_ipc_receivers *um_ipc_receivers_of(struct um_rcv_transport *transport)
{
    return UM_CONTAINER_OF(transport, struct um_ipc_receivers, poller.base);
}

/* Anything to do for this session? Poller, poll. */
static inline bool um_ipc_rcv_session_due(const struct um_ipc_rcv_session *rcv)
{
    return !rcv->greeted || um_ipc_readable(&rcv->reader) || !um_shm_is_ready(rcv->shm.segment.header);
}

/* poller [loop]: a bounded number of records; does the source live? */
void um_ipc_rcv_session_read(struct um_shm_rcv_session *session, uint64_t now_ns);
void um_ipc_rcv_session_check(struct um_shm_rcv_session *session, uint64_t now_ns);

/* um_ipc_receivers.c, operations of the transport */
struct um_rcv_transport *um_ipc_receivers_create(struct um_transport_env *env);
int um_ipc_receivers_process(struct um_rcv_transport *transport, uint64_t wait_ms, uint64_t rounds);
int um_ipc_receivers_unblock(struct um_rcv_transport *transport);

/* [loop] The poller exists, and has something to sleep on. -1 + error. */
int um_ipc_receivers_start(struct um_ipc_receivers *receivers);

#endif
