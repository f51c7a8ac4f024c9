/* A TCP receive session: connects to a source, reads its stream of LBMC
 * messages and feeds them to the generic session. Called by um_rcv_session.c on
 * the loop. */
#ifndef UM_TRANSPORT_TCP_RECEIVER_H
#define UM_TRANSPORT_TCP_RECEIVER_H

#include <stdint.h>

#include "base/um_buf.h"
#include "transport/um_rcv_transport.h"

/* Nothing happens on the network before it is started. NULL + error: out of memory, or the interface option matches
 * nothing. */
struct um_rcv_session *um_tcp_receiver_create(struct um_transport_env *env, const struct um_receiver_options *opts,
                                              const struct um_rcv_session_key *key, struct um_buf_pool *pool);

#endif
