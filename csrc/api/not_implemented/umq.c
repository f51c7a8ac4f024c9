/* Calls that this version does not implement yet: queuing and ultra load balancing.
 * Each one records LBM_EOPNOTSUPP with the name of the feature and fails. Called from application threads. */
#include <lbm/lbm.h>

#include "api/not_implemented/um_not_implemented.h"

#define FEATURE "queuing (UMQ, ULB) is"
#define MODULE UM_MODULE_LBM

UM_NOT_IMPLEMENTED(lbm_msg_retrieve_msgid, lbm_msg_t *msg, lbm_umq_msgid_t *id)
UM_NOT_IMPLEMENTED(lbm_msg_retrieve_umq_index, lbm_msg_t *msg, lbm_umq_index_info_t *info)
UM_NOT_IMPLEMENTED(lbm_msg_umq_reassign, lbm_msg_t *msg, int flags)
UM_NOT_IMPLEMENTED(lbm_rcv_umq_deregister, lbm_rcv_t *rcv, const char *queue_name)
UM_NOT_IMPLEMENTED(lbm_rcv_umq_index_stop_assignment, lbm_rcv_t *rcv, const char *queue_name)
UM_NOT_IMPLEMENTED(lbm_rcv_umq_index_start_assignment, lbm_rcv_t *rcv, const char *queue_name)
UM_NOT_IMPLEMENTED(lbm_rcv_umq_index_reserve, lbm_rcv_t *rcv, const char *queue_name, lbm_umq_index_info_t *index_info)
UM_NOT_IMPLEMENTED(lbm_rcv_umq_index_release, lbm_rcv_t *rcv, const char *queue_name, lbm_umq_index_info_t *index_info)
UM_NOT_IMPLEMENTED(lbm_wildcard_rcv_umq_index_stop_assignment, lbm_wildcard_rcv_t *wrcv, const char *queue_name)
UM_NOT_IMPLEMENTED(lbm_wildcard_rcv_umq_index_start_assignment, lbm_wildcard_rcv_t *wrcv, const char *queue_name)
UM_NOT_IMPLEMENTED(lbm_wildcard_rcv_umq_index_release, lbm_wildcard_rcv_t *wrcv, const char *queue_name,
                   lbm_umq_index_info_t *index_info)
UM_NOT_IMPLEMENTED(lbm_wildcard_rcv_umq_deregister, lbm_wildcard_rcv_t *wrcv, const char *queue_name)
UM_NOT_IMPLEMENTED(lbm_queue_immediate_message, lbm_context_t *ctx, const char *qname, const char *topic,
                   const char *data, size_t len, int flags, lbm_src_send_ex_info_t *info)
UM_NOT_IMPLEMENTED(lbm_ctx_umq_get_inflight, lbm_context_t *ctx, const char *qname, int *inflight,
                   lbm_flight_size_set_inflight_cb_proc proc, void *clientd)
UM_NOT_IMPLEMENTED(lbm_umq_ctx_msg_stable, lbm_context_t *ctx, const char *qname, lbm_umq_msgid_t *msg_id)
UM_NOT_IMPLEMENTED(lbm_ctx_umq_queue_topic_list, lbm_context_t *ctx, const char *queue_name,
                   lbm_async_operation_func_t *async_opfunc)
UM_NOT_IMPLEMENTED(lbm_umq_msg_selector_create, lbm_umq_msg_selector_t **selector, char *str, lbm_uint16_t len)
UM_NOT_IMPLEMENTED(lbm_umq_msg_selector_delete, lbm_umq_msg_selector_t *selector)
UM_NOT_IMPLEMENTED(lbm_rcv_umq_queue_msg_list, lbm_rcv_t *rcv, const char *queue_name, lbm_umq_msg_selector_t *selector,
                   lbm_async_operation_func_t *async_opfunc)
UM_NOT_IMPLEMENTED(lbm_rcv_umq_queue_msg_retrieve, lbm_rcv_t *rcv, const char *queue_name, lbm_umq_msgid_t *msgids,
                   int num_msgids, lbm_async_operation_func_t *async_opfunc)
UM_NOT_IMPLEMENTED(lbm_async_operation_status, lbm_async_operation_handle_t handle, int flags)
UM_NOT_IMPLEMENTED(lbm_async_operation_cancel, lbm_async_operation_handle_t handle, int flags)
