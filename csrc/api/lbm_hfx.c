/* lbm_hfx_*: hot failover over several contexts, in front of core/um_hfx.c; the
 * attribute objects are in lbm_attr.c. The header says per call which threads may
 * use it. */
#include <lbm/lbm.h>

#include "base/um_error.h"
#include "core/um_hfx.h"
#include "core/um_receiver.h"

int lbm_hfx_create(lbm_hfx_t **hfxp, lbm_hfx_attr_t *cattr, const char *symbol, lbm_rcv_cb_proc proc,
                   lbm_event_queue_t *evq)
{
    return um_hfx_create(hfxp, cattr, symbol, proc, evq);
}

int lbm_hfx_delete(lbm_hfx_t *hfx)
{
    return um_hfx_delete(hfx, NULL, "lbm_hfx_delete");
}

int lbm_hfx_delete_ex(lbm_hfx_t *hfx, lbm_event_queue_cancel_cb_info_t *cbinfo)
{
    return um_hfx_delete(hfx, cbinfo, "lbm_hfx_delete_ex");
}

int lbm_hfx_rcv_create(lbm_hfx_rcv_t **hfrcvp, lbm_hfx_t *hfx, lbm_context_t *ctx, lbm_rcv_topic_attr_t *rattr,
                       void *clientd)
{
    return um_hfx_rcv_create(hfrcvp, hfx, ctx, rattr, clientd);
}

lbm_rcv_t *lbm_rcv_from_hfx_rcv(lbm_hfx_rcv_t *hfxrcv)
{
    return um_hfx_check_rcv(hfxrcv, "lbm_rcv_from_hfx_rcv") == 0 ? hfxrcv->rcv : NULL;
}

int lbm_hfx_rcv_delete(lbm_hfx_rcv_t *hfrcv)
{
    return um_hfx_rcv_delete(hfrcv, NULL, "lbm_hfx_rcv_delete");
}

int lbm_hfx_rcv_delete_ex(lbm_hfx_rcv_t *hfrcv, lbm_event_queue_cancel_cb_info_t *cbinfo)
{
    return um_hfx_rcv_delete(hfrcv, cbinfo, "lbm_hfx_rcv_delete_ex");
}

/* ---- options ---- */

static int check_out(const void *first, const char *first_name, const void *second, const char *second_name,
                     const char *api)
{
    return first != NULL && second != NULL ? 0
                                           : um_error(UM_EINVAL, "CoreApi-20217-9", "%s: %s: must not be NULL", api,
                                                      first == NULL ? first_name : second_name);
}

int lbm_hfx_setopt(lbm_hfx_t *hfx, const char *optname, const void *optval, size_t optlen)
{
    static const char api[] = "lbm_hfx_setopt";
    return um_hfx_check(hfx, api) != 0 || check_out(optname, "optname", optval, "optval", api) != 0
               ? -1
               : um_options_set(UM_SCOPE_HFX, &hfx->opts, optname, optval, optlen, true);
}

int lbm_hfx_str_setopt(lbm_hfx_t *hfx, const char *optname, const char *optval)
{
    static const char api[] = "lbm_hfx_str_setopt";
    return um_hfx_check(hfx, api) != 0 || check_out(optname, "optname", optval, "optval", api) != 0
               ? -1
               : um_options_str_set(UM_SCOPE_HFX, &hfx->opts, optname, optval, true);
}

int lbm_hfx_getopt(lbm_hfx_t *hfx, const char *optname, void *optval, size_t *optlen)
{
    return um_hfx_check(hfx, "lbm_hfx_getopt") != 0 ? -1
                                                    : um_options_get(UM_SCOPE_HFX, &hfx->opts, optname, optval, optlen);
}

int lbm_hfx_str_getopt(lbm_hfx_t *hfx, const char *optname, char *optval, size_t *optlen)
{
    return um_hfx_check(hfx, "lbm_hfx_str_getopt") != 0
               ? -1
               : um_options_str_get(UM_SCOPE_HFX, &hfx->opts, optname, optval, optlen);
}

int lbm_hfx_dump(lbm_hfx_t *hfx, int *size, lbm_config_option_t *opts)
{
    static const char api[] = "lbm_hfx_dump";
    return um_hfx_check(hfx, api) != 0 || check_out(size, "size", opts, "opts", api) != 0
               ? -1
               : um_options_dump(UM_SCOPE_HFX, &hfx->opts, size, opts);
}

int lbm_hfx_rcv_topic_dump(lbm_hfx_rcv_t *hfxrcv, int *size, lbm_config_option_t *opts)
{
    static const char api[] = "lbm_hfx_rcv_topic_dump";
    return um_hfx_check_rcv(hfxrcv, api) != 0 || check_out(size, "size", opts, "opts", api) != 0
               ? -1
               : um_receiver_dump(hfxrcv->rcv, size, opts);
}
