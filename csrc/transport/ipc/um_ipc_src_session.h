/* LBT-IPC source sessions, private to csrc/transport/ipc: the sessions
 * with their segments, and the receivers they know.
 * "lock" = the session lock is held; [loop] = on the context's loop. */
#ifndef UM_TRANSPORT_IPC_IPC_SRC_SESSION_H
#define UM_TRANSPORT_IPC_IPC_SRC_SESSION_H

#include "base/um_log.h"
#include "transport/ipc/um_ipc_ring.h"
#include "transport/session/um_src_batch.h"
#include "transport/session/um_src_pool.h"

/* What the session knows of the receiver in one slot. */
struct um_ipc_client {
    bool active;                         /* lock */
    bool told;                           /* [loop] CONNECT was reported */
    uint32_t generation;                 /* lock */
    uint32_t pid;                        /* lock */
    uint32_t gone_pid;                   /* lock: its process died, which is to be logged; 0: nothing is */
    struct um_shm_control_object signal; /* lock; fd -1: not open, it wakes by itself after a while */
    char text[48];                       /* lock: "LBT-IPC:<session of the receiving context>:<pid>" */
    char told_text[48];                  /* [loop] */
};

/* What is to be logged, without the lock. Lock. */
struct um_ipc_news {
    bool any;
    uint32_t deaf_pid, slow_pid; /* processes of receivers; 0: none */
    char deaf_why[128];
    uint64_t slow_ms, slow_next_ns; /* how long it has not read; not named again before */
};

struct um_ipc_src_session {
    struct um_src_session base;
    struct um_shm_segment segment; /* fixed; the shared words as the ring says */
    struct um_ipc_writer writer;   /* lock */
    bool waits;                    /* fixed: receiver-paced */
    uint64_t sm_interval_ns;       /* fixed */
    size_t window;                 /* fixed: the option */
    /* Datagrams for which receivers have left no room yet (receiver-paced), in order; base.blocked while any. Lock. */
    struct um_datagram *stuck, *stuck_last;
    uint64_t stuck_since_ns;             /* lock: no datagram has left since */
    uint64_t stuck_ns;                   /* lock: time for which something was stuck */
    uint64_t receivers_lost;             /* lock: gone without leaving */
    struct um_ipc_client *clients;       /* by slot */
    uint16_t *active;                    /* lock: slots in use, base.clients of them */
    uint32_t epoch;                      /* lock: join_epoch when the slots were looked at last */
    bool clients_changed;                /* lock: CONNECT and DISCONNECT to be reported by the loop */
    uint64_t datagrams_sent, bytes_sent; /* lock */
    struct um_timer client_timer;        /* [loop] looks for new and dead receivers */
    struct um_timer sm_timer;            /* [loop] */
    struct um_timer stuck_timer;         /* [loop] armed while something is stuck and no thread waits */
    uint64_t reaped_ns;                  /* [loop] when client_timer looked for the dead */
    struct um_ipc_news news;             /* lock */
};

/* um_ipc_clients.c */
int um_ipc_clients_init(struct um_ipc_src_session *session);
void um_ipc_clients_fini(struct um_ipc_src_session *session);
void um_ipc_clients_look(struct um_ipc_src_session *session); /* lock: after a change of join_epoch; never waits */
void um_ipc_clients_wake(
    struct um_ipc_src_session *session); /* lock: those that sleep; after something was published */
void um_ipc_clients_reap(struct um_ipc_src_session *session);   /* lock: frees the slots of the dead; system calls */
void um_ipc_clients_news(struct um_ipc_src_session *session);   /* lock: there is something to be logged */
void um_ipc_clients_tell(struct um_ipc_src_session *session);   /* [loop] no lock: log it */
void um_ipc_clients_report(struct um_ipc_src_session *session); /* [loop] no lock */
void um_ipc_clients_announce(struct um_src_session *base, struct um_src_stream *stream); /* [loop] */

/* um_ipc_send.c: the session operations that send and wait. Lock. */
void um_ipc_transmit(struct um_src_session *base, struct um_datagram *datagram);
void um_ipc_wait(struct um_src_session *base);
void um_ipc_resume(struct um_src_session *base);
void um_ipc_interrupt(struct um_src_session *base);
bool um_ipc_relieved(const struct um_src_session *base);
void um_ipc_send_stuck(struct um_ipc_src_session *session);   /* as much as there is room for */
size_t um_ipc_drop_stuck(struct um_ipc_src_session *session); /* bytes given up */

#endif
