/* Statistics of the transports that carry immediate messages. Immediate messages do not exist yet, so neither do such
 * transports: retrieving finds none, resetting has nothing to do. Any thread. */
#include <lbm/lbm.h>

#include "base/um_error.h"
#include "core/um_context.h"

static int retrieve_none(lbm_context_t *ctx, int *num, int size, const void *stats, const char *api)
{
    if (um_context_check_messaging(ctx, api) != 0) {
        return -1;
    }
    if (num == NULL || (*num > 0 && stats == NULL)) {
        return um_error(UM_EINVAL, "CoreApi-9012-1", "%s: %s must be valid", api, num == NULL ? "num" : "stats");
    }
    if (size <= 0 || *num < 0) {
        return um_error(UM_EINVAL, "CoreApi-9012-2", "%s: size %d, num %d: size must be above 0, num not below", api,
                        size, *num);
    }
    *num = 0;
    return 0;
}

int lbm_context_retrieve_im_src_transport_stats(lbm_context_t *ctx, int *num, int size,
                                                lbm_src_transport_stats_t *stats)
{
    return retrieve_none(ctx, num, size, stats, "lbm_context_retrieve_im_src_transport_stats");
}

int lbm_context_retrieve_im_rcv_transport_stats(lbm_context_t *ctx, int *num, int size,
                                                lbm_rcv_transport_stats_t *stats)
{
    return retrieve_none(ctx, num, size, stats, "lbm_context_retrieve_im_rcv_transport_stats");
}

int lbm_context_reset_im_src_transport_stats(lbm_context_t *ctx)
{
    return um_context_check_messaging(ctx, "lbm_context_reset_im_src_transport_stats");
}

int lbm_context_reset_im_rcv_transport_stats(lbm_context_t *ctx)
{
    return um_context_check_messaging(ctx, "lbm_context_reset_im_rcv_transport_stats");
}
