/* um.h for receivers: how many sources are ready, and waiting for them. No state; application threads.
 * The calls for sources are in lbm_source.c. */
#include <lbm/um.h>

#include "base/um_error.h"
#include "core/um_context.h"
#include "core/um_receiver.h"
#include "net/um_loop.h"

int um_rcv_ready(lbm_rcv_t *rcv)
{
    if (um_receiver_check(rcv, "um_rcv_ready") != 0) {
        return -1;
    }
    return um_receiver_ready_sources(rcv);
}

int um_rcv_wait_ready(lbm_rcv_t *rcv, int sources, int timeout_ms)
{
    if (um_receiver_check(rcv, "um_rcv_wait_ready") != 0) {
        return -1;
    }
    if (sources < 0 || timeout_ms < 0) {
        return um_error(UM_EINVAL, "CoreApi-9014-1",
                        "um_rcv_wait_ready: sources %d and timeout_ms %d: must be 0 or more", sources, timeout_ms);
    }
    const struct lbm_context_t_stct *ctx = um_receiver_context(rcv);
    if (um_loop_on_thread(ctx->loop)) {
        return um_error(UM_EOP, "CoreApi-9014-2",
                        "um_rcv_wait_ready: must not be called on the context thread; call it from another thread");
    }
    return um_receiver_wait_ready(rcv, sources, timeout_ms);
}
