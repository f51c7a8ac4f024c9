/* Statistics of the transport sessions that carry multicast immediate messages. Any thread; gathered on the loop. */
#include <lbm/lbm.h>

#include <string.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "core/um_context.h"

/* Elements of the caller's size, filled with as much of ours. */
struct gather {
    lbm_context_t *ctx;
    size_t element;
    char *elements;
    int count;
};

static int room_for(struct gather *gather, int count)
{
    gather->count = count;
    if (count == 0) {
        return 0;
    }
    gather->elements = um_calloc((size_t)count, gather->element);
    return gather->elements != NULL ? 0 : um_error_nomem("transport statistics", (size_t)count * gather->element);
}

/* [loop] */
static int gather_src(void *arg)
{
    struct gather *gather = arg;
    struct um_src_transports *transports = gather->ctx->src_transports;
    if (room_for(gather, um_src_transports_apart_stats(transports, NULL, 0)) != 0) {
        return -1;
    }
    um_src_transports_apart_stats(transports, (lbm_src_transport_stats_t *)gather->elements, gather->count);
    return 0;
}

/* [loop] */
static int gather_rcv(void *arg)
{
    struct gather *gather = arg;
    struct um_rcv_sessions *sessions = gather->ctx->rcv_sessions;
    if (room_for(gather, um_rcv_sessions_immediate_stats(sessions, NULL, 0)) != 0) {
        return -1;
    }
    um_rcv_sessions_immediate_stats(sessions, (lbm_rcv_transport_stats_t *)gather->elements, gather->count);
    return 0;
}

static int hand_out(const struct gather *gather, int *num, size_t stride, char *out, const char *api)
{
    int given = *num;
    size_t copied = stride < gather->element ? stride : gather->element;
    *num = gather->count;
    if (gather->count > given) {
        return um_error(UM_EINVAL, "CoreApi-9012-3", "%s: the array of %d elements is too small: %d are needed", api,
                        given, gather->count);
    }
    for (int i = 0; i < gather->count; i++) {
        memcpy(out + (size_t)i * stride, gather->elements + (size_t)i * gather->element, copied);
    }
    return 0;
}

static int retrieve(struct gather *gather, int (*fn)(void *arg), int *num, int size, void *stats, const char *api)
{
    if (um_context_check_messaging(gather->ctx, api) != 0) {
        return -1;
    }
    if (num == NULL || (*num > 0 && stats == NULL)) {
        return um_error(UM_EINVAL, "CoreApi-9012-1", "%s: %s must be valid", api, num == NULL ? "num" : "stats");
    }
    if (size <= 0 || *num < 0) {
        return um_error(UM_EINVAL, "CoreApi-9012-2", "%s: size %d, num %d: size must be above 0, num not below", api,
                        size, *num);
    }
    int rc = um_loop_call(gather->ctx->loop, fn, gather);
    if (rc == 0) {
        rc = hand_out(gather, num, (size_t)size, stats, api);
    }
    um_free(gather->elements);
    return rc;
}

int lbm_context_retrieve_im_src_transport_stats(lbm_context_t *ctx, int *num, int size,
                                                lbm_src_transport_stats_t *stats)
{
    struct gather gather = {.ctx = ctx, .element = sizeof *stats};
    return retrieve(&gather, gather_src, num, size, stats, __func__);
}

int lbm_context_retrieve_im_rcv_transport_stats(lbm_context_t *ctx, int *num, int size,
                                                lbm_rcv_transport_stats_t *stats)
{
    struct gather gather = {.ctx = ctx, .element = sizeof *stats};
    return retrieve(&gather, gather_rcv, num, size, stats, __func__);
}

/* [loop] */
static int reset_src(void *arg)
{
    um_src_transports_apart_stats_reset(arg);
    return 0;
}

/* [loop] */
static int reset_rcv(void *arg)
{
    um_rcv_sessions_immediate_stats_reset(arg);
    return 0;
}

int lbm_context_reset_im_src_transport_stats(lbm_context_t *ctx)
{
    return um_context_check_messaging(ctx, __func__) != 0 ? -1
                                                          : um_loop_call(ctx->loop, reset_src, ctx->src_transports);
}

int lbm_context_reset_im_rcv_transport_stats(lbm_context_t *ctx)
{
    return um_context_check_messaging(ctx, __func__) != 0 ? -1 : um_loop_call(ctx->loop, reset_rcv, ctx->rcv_sessions);
}
