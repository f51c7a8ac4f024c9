/* lbmht.h: HyperTopic receivers, in front of core/um_hypertopic.c. The header
 * says per call which threads may use it. */
#include <lbm/lbmht.h>

#include "core/um_hypertopic.h"

int lbm_hypertopic_rcv_init(lbm_hypertopic_rcv_t **hrcvp, lbm_context_t *ctx, const char *prefix,
                            lbm_event_queue_t *evq)
{
    return um_hypertopic_init(hrcvp, ctx, prefix, evq);
}

int lbm_hypertopic_rcv_add(lbm_hypertopic_rcv_t *hrcv, const char *pattern, lbm_hypertopic_rcv_cb_proc proc,
                           void *clientd)
{
    return um_hypertopic_add(hrcv, pattern, proc, clientd);
}

int lbm_hypertopic_rcv_delete(lbm_hypertopic_rcv_t *hrcv, const char *pattern, lbm_hypertopic_rcv_cb_proc proc,
                              void *clientd, lbm_delete_cb_info_t *cbinfo)
{
    return um_hypertopic_delete(hrcv, pattern, proc, clientd, cbinfo);
}

int lbm_hypertopic_rcv_destroy(lbm_hypertopic_rcv_t *hrcv)
{
    return um_hypertopic_destroy(hrcv);
}
