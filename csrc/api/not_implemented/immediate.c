/* Calls that this version does not implement yet: unicast and multicast immediate messages.
 * Each one records LBM_EOPNOTSUPP with the name of the feature and fails. Called from application threads. */
#include <lbm/lbm.h>

#include "api/not_implemented/um_not_implemented.h"

#define FEATURE "immediate messages are"
#define MODULE UM_MODULE_LBM

UM_NOT_IMPLEMENTED(lbm_context_rcv_immediate_msgs, lbm_context_t *ctx, lbm_immediate_msg_cb_proc proc, void *clientd,
                   lbm_event_queue_t *evq)
UM_NOT_IMPLEMENTED(lbm_context_rcv_immediate_topic_msgs, lbm_context_t *ctx, lbm_immediate_msg_cb_proc proc,
                   void *clientd, lbm_event_queue_t *evq)
UM_NOT_IMPLEMENTED(lbm_unicast_immediate_message, lbm_context_t *ctx, const char *target, const char *topic,
                   const char *data, size_t len, int flags)
UM_NOT_IMPLEMENTED(lbm_unicast_immediate_request, lbm_request_t **reqp, lbm_context_t *ctx, const char *target,
                   const char *topic, const char *data, size_t len, lbm_request_cb_proc proc, void *clientd,
                   lbm_event_queue_t *evq, int flags)
UM_NOT_IMPLEMENTED(lbm_multicast_immediate_message, lbm_context_t *ctx, const char *topic, const char *data, size_t len,
                   int flags)
UM_NOT_IMPLEMENTED(lbm_multicast_immediate_request, lbm_request_t **reqp, lbm_context_t *ctx, const char *topic,
                   const char *data, size_t len, lbm_request_cb_proc proc, void *clientd, lbm_event_queue_t *evq,
                   int flags)
