/* File descriptors watched for the application (lbm_register_fd). Any thread,
 * callbacks included; readiness is reported on the loop or through an event queue. */
#ifndef UM_CORE_USER_FDS_H
#define UM_CORE_USER_FDS_H

#include <lbm/lbm.h>

#include "net/um_loop.h"

struct um_user_fds;

/* `loop`: the context's, or that of one of its XSPs. NULL + error */
struct um_user_fds *um_user_fds_create(lbm_context_t *ctx, struct um_loop *loop);
void um_user_fds_destroy(struct um_user_fds *fds); /* [loop] cancels what is left */

int um_user_fd_register(struct um_user_fds *fds, lbm_handle_t handle, lbm_fd_cb_proc proc, void *clientd,
                        lbm_event_queue_t *evq, lbm_ulong_t ev);
int um_user_fd_cancel(struct um_user_fds *fds, lbm_handle_t handle, lbm_ulong_t ev,
                      lbm_event_queue_cancel_cb_info_t *cbinfo);

#endif
