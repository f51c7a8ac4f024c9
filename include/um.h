/**
 * Extensions of libum beyond the lbm_* interface: readiness, so that a program knows when publisher and subscriber have
 * found each other, and the library's own version. Everything here returns 0 or a count on success and -1 on failure
 * with the reason in lbm_errnum() and lbm_errmsg().
 */
#ifndef UM_H_INCLUDED
#define UM_H_INCLUDED

#include "lbm/lbm.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Version of this library as "major.minor.patch". Static text, never NULL; do not free.
 * May be called in a context-thread callback: yes.
 */
LBMExpDLL const char *um_version(void);

/**
 * Number of sources from which the receiver has processed the beginning of the session (BOS) and whose session is still
 * alive. Over TCP and LBT-RU every message sent after the source's CONNECT event for this receiving context reaches the
 * receiver; over the other transports every message sent after the receiver counted the source does.
 * Returns the count, or -1 with LBM_EINVAL when rcv is NULL.
 * May be called in a context-thread callback: yes.
 */
LBMExpDLL int um_rcv_ready(lbm_rcv_t *rcv);

/**
 * Number of receiving contexts connected to the transport session of the source. Defined for TCP and LBT-RU, where the
 * source keeps a list of its clients; on the other transports -1 with LBM_EOPNOTSUPP.
 * A session carries many topics: a connected context may have joined for another topic of the same session.
 * May be called in a context-thread callback: yes.
 */
LBMExpDLL int um_src_receivers(lbm_src_t *src);

/**
 * Blocks until um_rcv_ready() is at least `sources`, or until timeout_ms milliseconds have passed. The receiver must
 * not be deleted meanwhile; in sequential mode another thread must run the context. Returns 0 when ready; -1 with
 * LBM_ETIMEDOUT at the end of the time, LBM_EINVAL for NULL or a negative number, LBM_EOP on the context thread. May be
 * called in a context-thread callback: no.
 */
LBMExpDLL int um_rcv_wait_ready(lbm_rcv_t *rcv, int sources, int timeout_ms);

/**
 * Blocks until um_src_receivers() is at least `receivers`, or until timeout_ms milliseconds have passed. Results and
 * rules as for um_rcv_wait_ready(). May be called in a context-thread callback: no.
 */
LBMExpDLL int um_src_wait_receivers(lbm_src_t *src, int receivers, int timeout_ms);

#ifdef __cplusplus
}
#endif

#endif
