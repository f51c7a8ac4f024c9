/* Calls that this version does not implement yet: lbmht.h.
 * Each one records LBM_EOPNOTSUPP with the name of the feature and fails. Called from application threads. */
#include <lbm/lbmht.h>

#include "api/not_implemented/um_not_implemented.h"

#define FEATURE "HyperTopic receivers are"
#define MODULE UM_MODULE_LBM

UM_NOT_IMPLEMENTED(lbm_hypertopic_rcv_init, lbm_hypertopic_rcv_t **hrcvp, lbm_context_t *ctx, const char *prefix,
                   lbm_event_queue_t *evq)
UM_NOT_IMPLEMENTED(lbm_hypertopic_rcv_add, lbm_hypertopic_rcv_t *hrcv, const char *pattern,
                   lbm_hypertopic_rcv_cb_proc proc, void *clientd)
UM_NOT_IMPLEMENTED(lbm_hypertopic_rcv_delete, lbm_hypertopic_rcv_t *hrcv, const char *pattern,
                   lbm_hypertopic_rcv_cb_proc proc, void *clientd, lbm_delete_cb_info_t *cbinfo)
UM_NOT_IMPLEMENTED(lbm_hypertopic_rcv_destroy, lbm_hypertopic_rcv_t *hrcv)
