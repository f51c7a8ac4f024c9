/* lbm_context_rcv_immediate_* and lbm_unicast_immediate_*: argument checks in front of
 * core/um_immediate.c and core/um_uim.c. Any thread; calls that need the loop are
 * carried to it. */
#include <lbm/lbm.h>
#include <lbm/um.h>

#include "base/um_error.h"
#include "core/um_context.h"
#include "core/um_event_queue.h"
#include "core/um_immediate.h"
#include "core/um_request.h"
#include "core/um_uim.h"

/* ---- functions of the application ---- */

/* A function given at run time replaces that of the option, which reads back what is in force. */
struct function_call {
    lbm_context_t *ctx;
    enum um_immediate_function which;
    lbm_context_rcv_immediate_msgs_func_t function;
};

/* [loop] */
static int set_on_loop(void *arg)
{
    struct function_call *call = arg;
    struct um_context_options *opts = &call->ctx->opts;
    if (um_immediate_set_function(call->ctx->immediates, call->which, &call->function) != 0) {
        return -1;
    }
    if (call->which == UM_IMMEDIATE_LOSS) {
        return 0; /* no option tells of it */
    }
    *(call->which == UM_IMMEDIATE_TOPICLESS ? &opts->immediate_message_receiver_function
                                            : &opts->immediate_message_topic_receiver_function) = call->function;
    return 0;
}

static int set_function(lbm_context_t *ctx, enum um_immediate_function which,
                        const lbm_context_rcv_immediate_msgs_func_t *function, const char *api)
{
    struct function_call call = {ctx, which, *function};
    if (um_context_check_messaging(ctx, api) != 0 ||
        (function->evq != NULL && um_event_queue_check(function->evq, api) != 0)) {
        return -1;
    }
    return um_loop_call(ctx->loop, set_on_loop, &call);
}

int lbm_context_rcv_immediate_msgs(lbm_context_t *ctx, lbm_immediate_msg_cb_proc proc, void *clientd,
                                   lbm_event_queue_t *evq)
{
    const lbm_context_rcv_immediate_msgs_func_t function = {.func = proc, .evq = evq, .clientd = clientd};
    return set_function(ctx, UM_IMMEDIATE_TOPICLESS, &function, __func__);
}

int lbm_context_rcv_immediate_topic_msgs(lbm_context_t *ctx, lbm_immediate_msg_cb_proc proc, void *clientd,
                                         lbm_event_queue_t *evq)
{
    const lbm_context_rcv_immediate_msgs_func_t function = {.func = proc, .evq = evq, .clientd = clientd};
    return set_function(ctx, UM_IMMEDIATE_TOPIC, &function, __func__);
}

int um_immediate_loss(lbm_context_t *ctx, lbm_immediate_msg_cb_proc proc, void *clientd)
{
    const lbm_context_rcv_immediate_msgs_func_t function = {.func = proc, .clientd = clientd};
    return set_function(ctx, UM_IMMEDIATE_LOSS, &function, __func__);
}

/* ---- sending ---- */

int lbm_unicast_immediate_message(lbm_context_t *ctx, const char *target, const char *topic, const char *data,
                                  size_t len, int flags)
{
    const struct um_uim_send send = {.target = target, .topic = topic, .data = data, .len = len, .flags = flags};
    return um_context_check_messaging(ctx, __func__) != 0 ? -1 : um_uim_send(ctx->uim, &send, __func__);
}

/* The request is there before its message is sent: responses may come before the call returns. */
int lbm_unicast_immediate_request(lbm_request_t **reqp, lbm_context_t *ctx, const char *target, const char *topic,
                                  const char *data, size_t len, lbm_request_cb_proc proc, void *clientd,
                                  lbm_event_queue_t *evq, int flags)
{
    const struct um_request_call call = {reqp, proc, clientd, evq};
    struct um_request_headers headers;
    if (um_request_open(ctx, &call, __func__, "Core-5688-3723", "Sending unicast immediate request") != 0) {
        return -1;
    }
    um_request_headers(*reqp, &headers);
    const struct um_uim_send send = {.target = target,
                                     .topic = topic,
                                     .data = data,
                                     .len = len,
                                     .flags = flags,
                                     .headers = headers.bytes,
                                     .headers_len = sizeof headers.bytes,
                                     .first_header = headers.first};
    if (um_uim_send(ctx->uim, &send, __func__) != 0) {
        um_request_abandon(reqp);
        return -1;
    }
    return 0;
}
