/* lbm_hf_rcv_*: receivers that merge the sources of their topic, in front of
 * core/um_receiver.c. The header says per call which threads may use it. */
#include <lbm/lbm.h>

#include "base/um_error.h"
#include "core/um_receiver.h"

int lbm_hf_rcv_create(lbm_hf_rcv_t **hfrcvp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_rcv_cb_proc proc,
                      void *clientd, lbm_event_queue_t *evq)
{
    return um_receiver_create_hf(hfrcvp, ctx, topic, proc, clientd, evq, NULL, "lbm_hf_rcv_create");
}

int lbm_hf_rcv_delete(lbm_hf_rcv_t *hfrcv)
{
    static const char api[] = "lbm_hf_rcv_delete";
    return um_receiver_check_hf(hfrcv, api) == 0 ? um_receiver_delete(um_receiver_of_hf(hfrcv), NULL, api) : -1;
}

int lbm_hf_rcv_delete_ex(lbm_hf_rcv_t *hfrcv, lbm_event_queue_cancel_cb_info_t *cbinfo)
{
    static const char api[] = "lbm_hf_rcv_delete_ex";
    return um_receiver_check_hf(hfrcv, api) == 0 ? um_receiver_delete(um_receiver_of_hf(hfrcv), cbinfo, api) : -1;
}

lbm_hf_rcv_t *lbm_hf_rcv_from_rcv(lbm_rcv_t *rcv)
{
    return um_receiver_check(rcv, "lbm_hf_rcv_from_rcv") == 0 ? um_receiver_hf(rcv) : NULL;
}

lbm_rcv_t *lbm_rcv_from_hf_rcv(lbm_hf_rcv_t *hfrcv)
{
    return um_receiver_check_hf(hfrcv, "lbm_rcv_from_hf_rcv") == 0 ? um_receiver_of_hf(hfrcv) : NULL;
}

int lbm_hf_rcv_topic_dump(lbm_hf_rcv_t *hfrcv, int *size, lbm_config_option_t *opts)
{
    static const char api[] = "lbm_hf_rcv_topic_dump";
    if (um_receiver_check_hf(hfrcv, api) != 0) {
        return -1;
    }
    if (size == NULL || opts == NULL) {
        return um_error(UM_EINVAL, "CoreApi-20206-4", "%s: %s: must not be NULL", api, size == NULL ? "size" : "opts");
    }
    return um_receiver_dump(um_receiver_of_hf(hfrcv), size, opts);
}
