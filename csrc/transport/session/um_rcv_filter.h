/* Source-side filtering on the receiving side: tells a source which topics this
 * context wants on a session. Called by um_rcv_session.c on the loop. */
#ifndef UM_TRANSPORT_SESSION_RCV_FILTER_H
#define UM_TRANSPORT_SESSION_RCV_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/unicast/um_unicast.h"
#include "wire/um_lbmc.h"

struct um_rcv_session;
struct um_rcv_stream;

/* The source filters: remember how to reach it and include every topic attached. */
void um_rcv_filter_on_init(struct um_rcv_session *session, struct um_unicast *unicast,
                           const struct um_lbmc_ssf_init *init);
/* Ask for (or against) the topic of a stream; nothing when the source does not filter. A request for a topic that
 * cannot be sent is due, and um_rcv_session_retry_filter() has um_rcv_filter_go_on() called. */
void um_rcv_filter_set(struct um_rcv_session *session, struct um_unicast *unicast, struct um_rcv_stream *stream,
                       bool include);
void um_rcv_filter_go_on(struct um_rcv_session *session,
                         struct um_unicast *unicast); /* what is due, until it is refused */
/* Its request port has forgotten all, or may have: every topic is due. */
void um_rcv_filter_include_all(struct um_rcv_session *session, struct um_unicast *unicast);

#endif
