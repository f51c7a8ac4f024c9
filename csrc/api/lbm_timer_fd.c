/* lbm_schedule_timer*, lbm_cancel_timer*, lbm_register_fd, lbm_cancel_fd*:
 * argument checks in front of core/um_user_timers.c and core/um_user_fds.c. Any thread, callbacks included. */
#include <lbm/lbm.h>

#include "base/um_error.h"
#include "base/um_timer.h"
#include "core/um_context.h"
#include "core/um_event_queue.h"
#include "core/um_user_fds.h"
#include "core/um_user_timers.h"

static int um_timer_check(lbm_context_t *ctx, const char *api, lbm_timer_cb_proc proc, lbm_event_queue_t *evq)
{
    if (um_context_check(ctx, api) < 0 || (evq != NULL && um_event_queue_check(evq, api) < 0)) {
        return -1;
    }
    return proc != NULL ? 0 : um_error(UM_EINVAL, "CoreApi-1062-1", "%s: proc must be valid", api);
}

static uint64_t um_delay_ns(lbm_ulong_t delay_ms)
{
    const uint64_t longest_ms = UINT64_MAX / 4 / UM_NS_PER_MS; /* more than a century */
    return (delay_ms < longest_ms ? delay_ms : longest_ms) * UM_NS_PER_MS;
}

int lbm_schedule_timer(lbm_context_t *ctx, lbm_timer_cb_proc proc, void *clientd, lbm_event_queue_t *evq,
                       lbm_ulong_t delay)
{
    return um_timer_check(ctx, "lbm_schedule_timer", proc, evq) < 0
               ? -1
               : um_user_timer_schedule(ctx->timers, proc, clientd, evq, um_delay_ns(delay), false);
}

int lbm_schedule_timer_recurring(lbm_context_t *ctx, lbm_timer_cb_proc proc, void *clientd, lbm_event_queue_t *evq,
                                 lbm_ulong_t delay)
{
    return um_timer_check(ctx, "lbm_schedule_timer_recurring", proc, evq) < 0
               ? -1
               : um_user_timer_schedule(ctx->timers, proc, clientd, evq, um_delay_ns(delay), true);
}

int lbm_cancel_timer(lbm_context_t *ctx, int id, void **clientdp)
{
    return um_context_check(ctx, "lbm_cancel_timer") < 0 ? -1 : um_user_timer_cancel(ctx->timers, id, clientdp, NULL);
}

int lbm_cancel_timer_ex(lbm_context_t *ctx, int id, void **clientdp, lbm_event_queue_cancel_cb_info_t *cbinfo)
{
    return um_context_check(ctx, "lbm_cancel_timer_ex") < 0 ? -1
                                                            : um_user_timer_cancel(ctx->timers, id, clientdp, cbinfo);
}

static int um_fd_check(lbm_context_t *ctx, const char *api, lbm_handle_t handle, lbm_ulong_t ev)
{
    if (um_context_check(ctx, api) < 0) {
        return -1;
    }
    if (handle < 0) {
        return um_error(UM_EINVAL, "CoreApi-1062-2", "%s: handle %d: must be an open descriptor", api, handle);
    }
    if (ev == 0 || (ev & ~(lbm_ulong_t)LBM_FD_EVENT_ALL) != 0) {
        return um_error(UM_EINVAL, "CoreApi-1062-3", "%s: ev 0x%lx: must be LBM_FD_EVENT_* bits", api,
                        (unsigned long)ev);
    }
    return 0;
}

int lbm_register_fd(lbm_context_t *ctx, lbm_handle_t handle, lbm_fd_cb_proc proc, void *clientd, lbm_event_queue_t *evq,
                    lbm_ulong_t ev)
{
    if (um_fd_check(ctx, "lbm_register_fd", handle, ev) < 0 ||
        (evq != NULL && um_event_queue_check(evq, "lbm_register_fd") < 0)) {
        return -1;
    }
    if (proc == NULL) {
        return um_error(UM_EINVAL, "CoreApi-1062-4", "lbm_register_fd: proc must be valid");
    }
    return um_user_fd_register(ctx->fds, handle, proc, clientd, evq, ev);
}

int lbm_cancel_fd(lbm_context_t *ctx, lbm_handle_t handle, lbm_ulong_t ev)
{
    return lbm_cancel_fd_ex(ctx, handle, ev, NULL);
}

int lbm_cancel_fd_ex(lbm_context_t *ctx, lbm_handle_t handle, lbm_ulong_t ev, lbm_event_queue_cancel_cb_info_t *cbinfo)
{
    return um_fd_check(ctx, "lbm_cancel_fd", handle, ev) < 0 ? -1 : um_user_fd_cancel(ctx->fds, handle, ev, cbinfo);
}
