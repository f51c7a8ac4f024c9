/* lbm_xsp_*: argument checks; the work is in core/um_xsp.c. The attribute objects are in lbm_attr.c. Any thread but
 * those of contexts and XSPs, where lbm.h does not say otherwise. */
#include <lbm/lbm.h>

#include "base/um_error.h"
#include "core/um_context.h"
#include "core/um_event_queue.h"
#include "core/um_xsp.h"

int lbm_xsp_create(lbm_xsp_t **xspp, lbm_context_t *ctx, lbm_context_attr_t *cattr, lbm_xsp_attr_t *attr)
{
    return um_xsp_create(xspp, ctx, cattr, attr);
}

int lbm_xsp_delete(lbm_xsp_t *xsp)
{
    return um_xsp_delete(xsp);
}

int lbm_xsp_process_events(lbm_xsp_t *xsp, lbm_ulong_t msec)
{
    return um_xsp_process_events(xsp, msec);
}

int lbm_xsp_unblock(lbm_xsp_t *xsp)
{
    return um_xsp_unblock(xsp);
}

static int check_fd(const lbm_xsp_t *xsp, const char *api, lbm_handle_t handle, lbm_ulong_t ev)
{
    if (um_xsp_check(xsp, api) != 0) {
        return -1;
    }
    if (handle < 0) {
        return um_error(UM_EINVAL, "CoreApi-20210-10", "%s: handle %d: must be an open descriptor", api, handle);
    }
    if (ev == 0 || (ev & ~(lbm_ulong_t)LBM_FD_EVENT_ALL) != 0) {
        return um_error(UM_EINVAL, "CoreApi-20210-11", "%s: ev 0x%lx: must be LBM_FD_EVENT_* bits", api,
                        (unsigned long)ev);
    }
    return 0;
}

int lbm_xsp_register_fd(lbm_xsp_t *xsp, lbm_handle_t handle, lbm_fd_cb_proc proc, void *clientd, lbm_event_queue_t *evq,
                        lbm_ulong_t ev)
{
    static const char api[] = "lbm_xsp_register_fd";
    if (check_fd(xsp, api, handle, ev) != 0 || (evq != NULL && um_event_queue_check(evq, api) != 0)) {
        return -1;
    }
    if (proc == NULL) {
        return um_error(UM_EINVAL, "CoreApi-20210-12", "%s: proc must be valid", api);
    }
    return um_xsp_register_fd(xsp, handle, proc, clientd, evq, ev);
}

int lbm_xsp_cancel_fd(lbm_xsp_t *xsp, lbm_handle_t handle, lbm_ulong_t ev)
{
    return check_fd(xsp, "lbm_xsp_cancel_fd", handle, ev) != 0 ? -1 : um_xsp_cancel_fd(xsp, handle, ev);
}

int lbm_xsp_dump(lbm_xsp_t *xsp, int *size, lbm_config_option_t *opts)
{
    static const char api[] = "lbm_xsp_dump";
    if (um_xsp_check(xsp, api) != 0) {
        return -1;
    }
    if (size == NULL || opts == NULL) {
        return um_error(UM_EINVAL, "CoreApi-20210-9", "%s: %s must be valid", api, size == NULL ? "size" : "opts");
    }
    return um_xsp_dump(xsp, size, opts);
}
