/* Calls that this version does not implement yet: XSP objects; their attribute objects are implemented in csrc/config.
 * Each one records LBM_EOPNOTSUPP with the name of the feature and fails. Called from application threads. */
#include <lbm/lbm.h>

#include "api/not_implemented/um_not_implemented.h"

#define FEATURE "transport services provider (XSP) threads are"
#define MODULE UM_MODULE_LBM

UM_NOT_IMPLEMENTED(lbm_xsp_create, lbm_xsp_t **xspp, lbm_context_t *ctx, lbm_context_attr_t *cattr,
                   lbm_xsp_attr_t *attr)
UM_NOT_IMPLEMENTED(lbm_xsp_delete, lbm_xsp_t *xsp)
UM_NOT_IMPLEMENTED(lbm_xsp_process_events, lbm_xsp_t *xsp, lbm_ulong_t msec)
UM_NOT_IMPLEMENTED(lbm_xsp_unblock, lbm_xsp_t *xsp)
UM_NOT_IMPLEMENTED(lbm_xsp_register_fd, lbm_xsp_t *xsp, lbm_handle_t handle, lbm_fd_cb_proc proc, void *clientd,
                   lbm_event_queue_t *evq, lbm_ulong_t ev)
UM_NOT_IMPLEMENTED(lbm_xsp_cancel_fd, lbm_xsp_t *xsp, lbm_handle_t handle, lbm_ulong_t ev)
UM_NOT_IMPLEMENTED(lbm_xsp_dump, lbm_xsp_t *xsp, int *size, lbm_config_option_t *opts)
