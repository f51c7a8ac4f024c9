/* Calls that this version does not implement yet: HFX objects; their attribute objects are implemented in csrc/config.
 * Each one records LBM_EOPNOTSUPP with the name of the feature and fails. Called from application threads. */
#include <lbm/lbm.h>

#include "api/not_implemented/um_not_implemented.h"

#define FEATURE "hot failover over several contexts (HFX) is"
#define MODULE UM_MODULE_LBM

UM_NOT_IMPLEMENTED(lbm_hfx_create, lbm_hfx_t **hfxp, lbm_hfx_attr_t *cattr, const char *symbol, lbm_rcv_cb_proc proc,
                   lbm_event_queue_t *evq)
UM_NOT_IMPLEMENTED(lbm_hfx_delete, lbm_hfx_t *hfx)
UM_NOT_IMPLEMENTED(lbm_hfx_delete_ex, lbm_hfx_t *hfx, lbm_event_queue_cancel_cb_info_t *cbinfo)
UM_NOT_IMPLEMENTED(lbm_hfx_rcv_create, lbm_hfx_rcv_t **hfrcvp, lbm_hfx_t *hfx, lbm_context_t *ctx,
                   lbm_rcv_topic_attr_t *rattr, void *clientd)
UM_NOT_IMPLEMENTED_VALUE(lbm_rcv_t *, NULL, lbm_rcv_from_hfx_rcv, lbm_hfx_rcv_t *hfxrcv)
UM_NOT_IMPLEMENTED(lbm_hfx_rcv_delete, lbm_hfx_rcv_t *hfrcv)
UM_NOT_IMPLEMENTED(lbm_hfx_rcv_delete_ex, lbm_hfx_rcv_t *hfrcv, lbm_event_queue_cancel_cb_info_t *cbinfo)
UM_NOT_IMPLEMENTED(lbm_hfx_dump, lbm_hfx_t *hfx, int *size, lbm_config_option_t *opts)
UM_NOT_IMPLEMENTED(lbm_hfx_setopt, lbm_hfx_t *hfx, const char *optname, const void *optval, size_t optlen)
UM_NOT_IMPLEMENTED(lbm_hfx_str_setopt, lbm_hfx_t *hfx, const char *optname, const char *optval)
UM_NOT_IMPLEMENTED(lbm_hfx_getopt, lbm_hfx_t *hfx, const char *optname, void *optval, size_t *optlen)
UM_NOT_IMPLEMENTED(lbm_hfx_str_getopt, lbm_hfx_t *hfx, const char *optname, char *optval, size_t *optlen)
UM_NOT_IMPLEMENTED(lbm_hfx_rcv_topic_dump, lbm_hfx_rcv_t *hfxrcv, int *size, lbm_config_option_t *opts)
