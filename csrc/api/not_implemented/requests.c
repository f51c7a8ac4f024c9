/* Calls that this version does not implement yet: the request/response calls.
 * Each one records LBM_EOPNOTSUPP with the name of the feature and fails. Called from application threads. */
#include <lbm/lbm.h>

#include "api/not_implemented/um_not_implemented.h"

#define FEATURE "requests and responses are"
#define MODULE UM_MODULE_LBM

UM_NOT_IMPLEMENTED(lbm_send_response, lbm_response_t *resp, const char *data, size_t len, int flags)
UM_NOT_IMPLEMENTED(lbm_response_delete, lbm_response_t *resp)
UM_NOT_IMPLEMENTED(lbm_serialized_response_delete, lbm_serialized_response_t *serialized_response)
UM_NOT_IMPLEMENTED_VALUE(lbm_serialized_response_t *, NULL, lbm_serialize_response, lbm_response_t *resp)
UM_NOT_IMPLEMENTED_VALUE(lbm_response_t *, NULL, lbm_deserialize_response, lbm_context_t *ctx,
                         lbm_serialized_response_t *serialized_response)
UM_NOT_IMPLEMENTED(lbm_send_request, lbm_request_t **reqp, lbm_src_t *src, const char *data, size_t len,
                   lbm_request_cb_proc proc, void *clientd, lbm_event_queue_t *evq, int send_flags)
UM_NOT_IMPLEMENTED(lbm_send_request_ex, lbm_request_t **reqp, lbm_src_t *src, const char *data, size_t len,
                   lbm_request_cb_proc proc, void *clientd, lbm_event_queue_t *evq, int send_flags,
                   lbm_src_send_ex_info_t *exinfo)
UM_NOT_IMPLEMENTED(lbm_ssrc_send_request_ex, lbm_request_t **reqp, lbm_ssrc_t *ssrc, const char *usr_bufp, size_t len,
                   lbm_request_cb_proc proc, void *clientd, lbm_event_queue_t *evq, int send_flags,
                   lbm_ssrc_send_ex_info_t *exinfo)
UM_NOT_IMPLEMENTED(lbm_request_delete, lbm_request_t *req)
UM_NOT_IMPLEMENTED(lbm_request_delete_ex, lbm_request_t *req, lbm_event_queue_cancel_cb_info_t *cbinfo)
