/* Receive sessions of LBT-IPC and whoever polls them for a context: a thread of
 * the library, or the application inside lbm_context_process_lbtipc_messages.
 * The poller is a guest of the loop: while it has the turn it owns everything
 * that is marked [loop], so callbacks run on it as on the context's thread. */
#ifndef UM_TRANSPORT_IPC_RECEIVER_H
#define UM_TRANSPORT_IPC_RECEIVER_H

#include "transport/um_rcv_transport.h"

struct um_ipc_receivers;

/* [loop] The thread starts with the first session. NULL + error. */
struct um_ipc_receivers *um_ipc_receivers_create(struct um_transport_env *env);
/* [loop] No sessions are left. The thread ends; it is joined by um_shm_threads_join(). */
void um_ipc_receivers_destroy(struct um_ipc_receivers *receivers);

/* [loop] Attaches to the segment and takes a slot. NULL + error. */
struct um_rcv_session *um_ipc_receiver_create(struct um_ipc_receivers *receivers,
                                              const struct um_receiver_options *opts,
                                              const struct um_rcv_session_key *key);

/* Sequential mode: the caller receives. `rounds` times (0: until unblocked) look for messages, and when there are none
 * wait up to `wait_ms` for some. Not on the loop. 0, or -1 + error: the library's thread does that, another caller is
 * inside. */
int um_ipc_receivers_process(struct um_ipc_receivers *receivers, uint64_t wait_ms, uint64_t rounds);
/* Makes the process call under way, or the next one, return. Any thread. -1 + error: not in sequential mode. */
int um_ipc_receivers_unblock(struct um_ipc_receivers *receivers);

#endif
