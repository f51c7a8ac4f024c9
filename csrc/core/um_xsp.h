/* XSP: a further loop of a context, with a receive side and a request port of its
 * own, for the sessions that the application maps to it. Behind lbm_xsp_*; any
 * thread except where refused. */
#ifndef UM_CORE_XSP_H
#define UM_CORE_XSP_H

#include <lbm/lbm.h>

#include "core/um_rcv_lane.h"
#include "transport/unicast/um_unicast.h"

int um_xsp_check(const lbm_xsp_t *xsp, const char *api); /* 0, or -1 + UM_EINVAL */
int um_xsp_create(lbm_xsp_t **xspp, lbm_context_t *ctx, const lbm_context_attr_t *cattr, const lbm_xsp_attr_t *attr);
int um_xsp_delete(lbm_xsp_t *xsp);
int um_xsp_process_events(lbm_xsp_t *xsp, lbm_ulong_t msec);
int um_xsp_unblock(lbm_xsp_t *xsp);
int um_xsp_register_fd(lbm_xsp_t *xsp, lbm_handle_t handle, lbm_fd_cb_proc proc, void *clientd, lbm_event_queue_t *evq,
                       lbm_ulong_t ev);
int um_xsp_cancel_fd(lbm_xsp_t *xsp, lbm_handle_t handle, lbm_ulong_t ev);
int um_xsp_dump(lbm_xsp_t *xsp, int *size, lbm_config_option_t *opts);

/* [loop] of the context. Of an XSP that the application names; NULL: it is none of this context, or being deleted. */
struct um_rcv_lane *um_xsp_lane(lbm_context_t *ctx, const lbm_xsp_t *xsp);
/* [loop] of the lane. Its request port; the context's on the context's own. */
const struct um_unicast *um_xsp_unicast(const struct um_rcv_lane *lane);

#endif
