/* Calls that this version does not implement yet: the source and receiver calls for channels (spectrum).
 * Each one records LBM_EOPNOTSUPP with the name of the feature and fails. Called from application threads. */
#include <lbm/lbm.h>

#include "api/not_implemented/um_not_implemented.h"

#define FEATURE "channels are"
#define MODULE UM_MODULE_LBM

UM_NOT_IMPLEMENTED(lbm_src_channel_create, lbm_src_channel_info_t **chnp, lbm_src_t *src, lbm_uint32_t channel_num)
UM_NOT_IMPLEMENTED(lbm_src_channel_delete, lbm_src_channel_info_t *chn)
UM_NOT_IMPLEMENTED(lbm_rcv_subscribe_channel, lbm_rcv_t *rcv, lbm_uint32_t channel, lbm_rcv_cb_proc proc, void *clientd)
UM_NOT_IMPLEMENTED(lbm_rcv_unsubscribe_channel, lbm_rcv_t *rcv, lbm_uint32_t channel)
UM_NOT_IMPLEMENTED(lbm_rcv_unsubscribe_channel_ex, lbm_rcv_t *rcv, lbm_uint32_t channel,
                   lbm_event_queue_cancel_cb_info_t *cbinfo)
UM_NOT_IMPLEMENTED(lbm_wildcard_rcv_subscribe_channel, lbm_wildcard_rcv_t *wrcv, lbm_uint32_t channel,
                   lbm_rcv_cb_proc proc, void *clientd)
UM_NOT_IMPLEMENTED(lbm_wildcard_rcv_unsubscribe_channel, lbm_wildcard_rcv_t *wrcv, lbm_uint32_t channel)
UM_NOT_IMPLEMENTED(lbm_wildcard_rcv_unsubscribe_channel_ex, lbm_wildcard_rcv_t *wrcv, lbm_uint32_t channel,
                   lbm_event_queue_cancel_cb_info_t *cbinfo)
