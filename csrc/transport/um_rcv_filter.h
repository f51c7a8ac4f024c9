/* Source-side filtering on the receiving side: tells a source which topics this
 * context wants on a session. Called by um_rcv_session.c on the loop. */
#ifndef UM_TRANSPORT_RCV_FILTER_H
#define UM_TRANSPORT_RCV_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/um_uim.h"
#include "wire/um_lbmc.h"

struct um_rcv_session;

/* The source filters: remember how to reach it and include every topic attached. */
void um_rcv_filter_on_init(struct um_rcv_session *session, struct um_uim *uim, const struct um_lbmc_ssf_init *init);
/* Ask for (or against) one topic; nothing when the source does not filter. A request for a topic that cannot be sent is
 * repeated through um_rcv_session_retry_filter(). */
void um_rcv_filter_set(struct um_rcv_session *session, struct um_uim *uim, uint32_t tidx, bool include);
void um_rcv_filter_include_all(struct um_rcv_session *session, struct um_uim *uim);

#endif
