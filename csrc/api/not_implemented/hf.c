/* Calls that this version does not implement yet: hot failover sources and receivers.
 * Each one records LBM_EOPNOTSUPP with the name of the feature and fails. Called from application threads. */
#include <lbm/lbm.h>

#include "api/not_implemented/um_not_implemented.h"

#define FEATURE "hot failover is"
#define MODULE UM_MODULE_LBM

UM_NOT_IMPLEMENTED(lbm_hf_src_create, lbm_src_t **srcp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_src_cb_proc proc,
                   void *clientd, lbm_event_queue_t *evq)
UM_NOT_IMPLEMENTED(lbm_hf_src_send, lbm_src_t *src, const char *msg, size_t len, lbm_uint_t sqn, int flags)
UM_NOT_IMPLEMENTED(lbm_hf_src_send_ex, lbm_src_t *src, const char *msg, size_t len, lbm_uint_t sqn, int flags,
                   lbm_src_send_ex_info_t *exinfo)
UM_NOT_IMPLEMENTED(lbm_hf_src_sendv, lbm_src_t *src, const lbm_iovec_t *iov, int num, lbm_uint_t sqn, int flags)
UM_NOT_IMPLEMENTED(lbm_hf_src_sendv_ex, lbm_src_t *src, const lbm_iovec_t *iov, int num, lbm_uint_t sqn, int flags,
                   lbm_src_send_ex_info_t *exinfo)
UM_NOT_IMPLEMENTED(lbm_hf_src_send_rcv_reset, lbm_src_t *src, int flags, lbm_src_send_ex_info_t *exinfo)
UM_NOT_IMPLEMENTED(lbm_hf_rcv_create, lbm_hf_rcv_t **hfrcvp, lbm_context_t *ctx, lbm_topic_t *topic,
                   lbm_rcv_cb_proc proc, void *clientd, lbm_event_queue_t *evq)
UM_NOT_IMPLEMENTED(lbm_hf_rcv_delete, lbm_hf_rcv_t *hfrcv)
UM_NOT_IMPLEMENTED(lbm_hf_rcv_delete_ex, lbm_hf_rcv_t *hfrcv, lbm_event_queue_cancel_cb_info_t *cbinfo)
UM_NOT_IMPLEMENTED_VALUE(lbm_hf_rcv_t *, NULL, lbm_hf_rcv_from_rcv, lbm_rcv_t *rcv)
UM_NOT_IMPLEMENTED_VALUE(lbm_rcv_t *, NULL, lbm_rcv_from_hf_rcv, lbm_hf_rcv_t *hfrcv)
UM_NOT_IMPLEMENTED(lbm_hf_rcv_topic_dump, lbm_hf_rcv_t *hfrcv, int *size, lbm_config_option_t *opts)
