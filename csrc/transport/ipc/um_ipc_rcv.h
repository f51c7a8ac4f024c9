/* Shared by the two files of the LBT-IPC receive side, private to csrc/transport/ipc.
 * "poller" = the one thread that polls; with the turn of the loop where [loop] is
 * added. "poll" = the poll lock is held, which comes after the turn. */
#ifndef UM_TRANSPORT_IPC_RCV_H
#define UM_TRANSPORT_IPC_RCV_H

#include "base/um_lock.h"
#include "base/um_log.h"
#include "transport/ipc/um_ipc_receiver.h"
#include "transport/ipc/um_ipc_ring.h"
#include "transport/shm/um_shm_thread.h"

struct um_ipc_receivers {
    struct um_shm_thread thread; /* started: see there */
    struct um_transport_env *env;
    struct um_buf_pool *pool;
    bool sequential, busy_wait;          /* fixed */
    uint64_t linger;                     /* fixed: looks before going to sleep */
    struct um_shm_control_object signal; /* made with the first session, or at once when sequential; slept on */
    bool started;                        /* [loop] */
    struct um_lock poll_lock;            /* keeps the segments mapped while the poller looks without the turn */
    struct um_list sessions;             /* [loop] and poll; either suffices to read */
    struct um_list *next;                /* [loop] the session the poller reads after the present one */
    uint64_t checked_ns;                 /* poller: when the sources were last checked */
    atomic_bool processing;              /* sequential: somebody is inside the process call */
    atomic_bool unblock;                 /* sequential: any thread */
};

struct um_ipc_rcv {
    struct um_rcv_session base;
    struct um_list node; /* receivers->sessions */
    struct um_ipc_receivers *receivers;
    struct um_shm_segment segment;
    int slot;
    bool waits;                                     /* fixed: the source waits for us (receiver-paced) */
    bool greeted;                                   /* poller: the first look was made */
    struct um_ipc_reader reader;                    /* poller */
    struct um_buf *buf;                             /* [loop] */
    uint32_t used;                                  /* [loop] bytes of buf that messages may refer to */
    uint64_t timeout_ns;                            /* activity timeout; 0: none */
    uint64_t activity;                              /* [loop] as last seen */
    uint64_t active_ns;                             /* [loop] when the source was last known to be active */
    uint64_t overruns_logged;                       /* [loop] */
    uint64_t datagrams;                             /* [loop] */
    struct um_log_limit malformed_log, overrun_log; /* [loop] */
};

/* Anything to do for this session? Poller, poll. */
static inline bool um_ipc_rcv_due(const struct um_ipc_rcv *rcv)
{
    return !rcv->greeted || um_ipc_readable(&rcv->reader) ||
           atomic_load_explicit(&rcv->segment.header->state, memory_order_acquire) != UM_SHM_READY;
}

void um_ipc_rcv_read(struct um_ipc_rcv *rcv, uint64_t now_ns);  /* poller [loop]: a bounded number of records */
void um_ipc_rcv_check(struct um_ipc_rcv *rcv, uint64_t now_ns); /* poller [loop]: does the source live? */

/* [loop] The poller exists, and has something to sleep on. -1 + error. */
int um_ipc_receivers_start(struct um_ipc_receivers *receivers);
void um_ipc_receivers_wake(struct um_ipc_receivers *receivers); /* any thread */
void um_ipc_receivers_add(struct um_ipc_rcv *rcv);              /* [loop] */
void um_ipc_receivers_remove(struct um_ipc_rcv *rcv);           /* [loop] afterwards the poller does not look at it */

#endif
