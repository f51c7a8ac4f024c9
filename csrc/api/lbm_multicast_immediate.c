/* lbm_multicast_immediate_*: argument checks in front of core/um_mim_sender.c. Any thread. */
#include <lbm/lbm.h>

#include "base/um_error.h"
#include "core/um_context.h"
#include "core/um_mim_sender.h"
#include "core/um_request.h"
#include "core/um_topic.h"

static int check(const lbm_context_t *ctx, const char *topic, const char *data, size_t len, const char *api)
{
    if (um_context_check_messaging(ctx, api) != 0 || (topic != NULL && um_topic_name_check(topic, api) != 0)) {
        return -1;
    }
    if (data == NULL && len > 0) {
        return um_error(UM_EINVAL, "CoreApi-20223-7", "%s: data must be valid", api);
    }
    if (len > UM_MIM_MESSAGE_MAX) {
        return um_error(UM_EINVAL, "CoreApi-20223-8", "%s: length %zu: must be at most %u bytes", api, len,
                        UM_MIM_MESSAGE_MAX);
    }
    return 0;
}

int lbm_multicast_immediate_message(lbm_context_t *ctx, const char *topic, const char *data, size_t len, int flags)
{
    const struct um_mim_message message = {.topic = topic, .data = data, .len = len, .flags = flags};
    return check(ctx, topic, data, len, __func__) == 0 ? um_mim_send(ctx->mim_sender, &message) : -1;
}

/* The request is there before its message is sent: responses may come before the call returns. */
int lbm_multicast_immediate_request(lbm_request_t **reqp, lbm_context_t *ctx, const char *topic, const char *data,
                                    size_t len, lbm_request_cb_proc proc, void *clientd, lbm_event_queue_t *evq,
                                    int flags)
{
    const struct um_request_call call = {reqp, proc, clientd, evq};
    struct um_request_headers headers;
    if (check(ctx, topic, data, len, __func__) != 0 ||
        um_request_open(ctx, &call, __func__, "Core-5688-3919", "Sending multicast immediate request") != 0) {
        return -1;
    }
    um_request_headers(*reqp, &headers);
    const struct um_mim_message message = {.topic = topic,
                                           .data = data,
                                           .len = len,
                                           .flags = flags,
                                           .headers = headers.bytes,
                                           .headers_len = sizeof headers.bytes,
                                           .first_header = headers.first};
    if (um_mim_send(ctx->mim_sender, &message) != 0) {
        um_request_abandon(reqp);
        return -1;
    }
    return 0;
}
