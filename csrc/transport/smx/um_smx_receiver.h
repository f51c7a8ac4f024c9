/* Receive sessions of LBT-SMX and the thread that polls them for a context. The
 * thread is a guest of the loop: while it holds the turn it owns everything that
 * is marked [loop], so callbacks run on it as on the context's thread. */
#ifndef UM_TRANSPORT_SMX_RECEIVER_H
#define UM_TRANSPORT_SMX_RECEIVER_H

#include "transport/um_rcv_transport.h"

struct um_smx_receivers;

/* [loop] The thread starts with the first session. NULL + error. */
struct um_smx_receivers *um_smx_receivers_create(struct um_transport_env *env);
/* [loop] No sessions are left. The thread ends; it is joined by um_shm_threads_join(). */
void um_smx_receivers_destroy(struct um_smx_receivers *receivers);

/* [loop] Attaches to the segment and takes a slot. NULL + error. */
struct um_rcv_session *um_smx_receiver_create(struct um_smx_receivers *receivers,
                                              const struct um_receiver_options *opts,
                                              const struct um_rcv_session_key *key);

#endif
