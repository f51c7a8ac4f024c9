/* Calls that this version does not implement yet: persistence: registration, acknowledgement and flight size.
 * Each one records LBM_EOPNOTSUPP with the name of the feature and fails. Called from application threads. */
#include <lbm/lbm.h>

#include "api/not_implemented/um_not_implemented.h"

#define FEATURE "persistence (UMP) is"
#define MODULE UM_MODULE_LBM

UM_NOT_IMPLEMENTED(lbm_msg_ume_send_explicit_ack, lbm_msg_t *msg)
UM_NOT_IMPLEMENTED_VALUE(int, 0, lbm_msg_ume_can_send_explicit_ack, lbm_msg_t *msg)
UM_NOT_IMPLEMENTED(lbm_src_ume_deregister, lbm_src_t *src)
UM_NOT_IMPLEMENTED(lbm_ssrc_ume_deregister, lbm_ssrc_t *ssrc)
UM_NOT_IMPLEMENTED(lbm_rcv_ume_deregister, lbm_rcv_t *rcv)
UM_NOT_IMPLEMENTED(lbm_wrcv_ume_deregister, lbm_wildcard_rcv_t *wrcv)
UM_NOT_IMPLEMENTED(lbm_src_get_inflight, lbm_src_t *src, int type, int *inflight,
                   lbm_flight_size_set_inflight_cb_proc proc, void *clientd)
UM_NOT_IMPLEMENTED(lbm_src_get_inflight_ex, lbm_src_t *src, int type, lbm_flight_size_inflight_t *inflight,
                   lbm_flight_size_set_inflight_ex_cb_proc proc, void *clientd)
UM_NOT_IMPLEMENTED(lbm_ssrc_get_inflight, lbm_ssrc_t *ssrc, int type, int *inflight,
                   lbm_flight_size_set_inflight_cb_proc proc, void *clientd)
UM_NOT_IMPLEMENTED(lbm_ssrc_get_inflight_ex, lbm_ssrc_t *ssrc, int type, lbm_flight_size_inflight_t *inflight,
                   lbm_flight_size_set_inflight_ex_cb_proc proc, void *clientd)
UM_NOT_IMPLEMENTED(lbm_ume_src_msg_stable, lbm_src_t *src, lbm_uint32_t sqn)
UM_NOT_IMPLEMENTED_VALUE(lbm_ume_rcv_ack_t *, NULL, lbm_msg_extract_ume_ack, lbm_msg_t *msg)
UM_NOT_IMPLEMENTED(lbm_ume_ack_delete, lbm_ume_rcv_ack_t *ack)
UM_NOT_IMPLEMENTED(lbm_ume_ack_send_explicit_ack, lbm_ume_rcv_ack_t *ack, lbm_uint_t sqn)
UM_NOT_IMPLEMENTED(lbm_ume_ack_mark_not_outstanding, lbm_ume_rcv_ack_t *ack, lbm_uint_t sqn)
