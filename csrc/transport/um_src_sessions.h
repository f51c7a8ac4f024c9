/* The source sessions of one context and transport: what the operations of every
 * transport (um_src_transport_ops) do with all of them. [loop], no lock held. */
#ifndef UM_TRANSPORT_SRC_SESSIONS_H
#define UM_TRANSPORT_SRC_SESSIONS_H

#include "transport/um_src_batch.h"

/* The session of a node in the transport's list. */
typedef struct um_src_session *(*um_src_session_at)(struct um_list *node);

/* One entry for each session: returns the number there are, fills up to max. */
int um_src_sessions_stats(struct um_list *sessions, um_src_session_at at, lbm_src_transport_stats_t *out, int max);
void um_src_sessions_stats_reset(struct um_list *sessions, um_src_session_at at);
void um_src_sessions_flush(struct um_list *sessions, um_src_session_at at);

/* The stream of a topic in a session; NULL: there is none. */
struct um_src_stream *um_src_session_stream(struct um_src_session *session, uint32_t tidx);

#endif
