/* Calls that this version does not implement yet: smart sources.
 * Each one records LBM_EOPNOTSUPP with the name of the feature and fails. Called from application threads. */
#include <lbm/lbm.h>

#include "api/not_implemented/um_not_implemented.h"

#define FEATURE "smart sources are"
#define MODULE UM_MODULE_LBM

UM_NOT_IMPLEMENTED(lbm_ssrc_create, lbm_ssrc_t **ssrcp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_ssrc_cb_proc proc,
                   void *clientd, lbm_event_queue_t *evq)
UM_NOT_IMPLEMENTED(lbm_ssrc_delete, lbm_ssrc_t *ssrc)
UM_NOT_IMPLEMENTED(lbm_ssrc_get_available_data_space, lbm_ssrc_t *ssrc, int *length)
UM_NOT_IMPLEMENTED(lbm_ssrc_send_ex, lbm_ssrc_t *ssrc, const char *usr_bufp, size_t len, int flags,
                   lbm_ssrc_send_ex_info_t *info)
UM_NOT_IMPLEMENTED(lbm_ssrc_buff_get, lbm_ssrc_t *const ssrc, char **const usr_bufp, const int flags)
UM_NOT_IMPLEMENTED(lbm_ssrc_buff_put, lbm_ssrc_t *const ssrc, const char *usr_bufp)
UM_NOT_IMPLEMENTED(lbm_ssrc_topic_dump, lbm_ssrc_t *ssrc, int *size, lbm_config_option_t *opts)
UM_NOT_IMPLEMENTED(lbm_ssrc_retrieve_transport_stats, lbm_ssrc_t *ssrc, lbm_src_transport_stats_t *stats)
UM_NOT_IMPLEMENTED(lbm_ssrc_reset_transport_stats, lbm_ssrc_t *ssrc)
