/* lbm_src_channel_*, the subscriptions to channels of receivers and wildcard receivers,
 * and receivers that begin with some (um.h). Any thread; not in callbacks of a loop. */
#include <lbm/lbm.h>
#include <lbm/um.h>

#include "core/um_rcv_channels.h"
#include "core/um_receiver.h"
#include "core/um_send_extras.h"

int lbm_src_channel_create(lbm_src_channel_info_t **chnp, lbm_src_t *src, lbm_uint32_t channel_num)
{
    return um_src_channel_create(chnp, src, channel_num, "lbm_src_channel_create");
}

int lbm_src_channel_delete(lbm_src_channel_info_t *chn)
{
    return um_src_channel_delete(chn, "lbm_src_channel_delete");
}

int lbm_rcv_subscribe_channel(lbm_rcv_t *rcv, lbm_uint32_t channel, lbm_rcv_cb_proc proc, void *clientd)
{
    const struct um_channel_call call = {.rcv = rcv, .number = channel, .api = "lbm_rcv_subscribe_channel"};
    return um_rcv_subscribe_channel(&call, proc, clientd);
}

int lbm_rcv_unsubscribe_channel(lbm_rcv_t *rcv, lbm_uint32_t channel)
{
    const struct um_channel_call call = {.rcv = rcv, .number = channel, .api = "lbm_rcv_unsubscribe_channel"};
    return um_rcv_unsubscribe_channel(&call, NULL);
}

int lbm_rcv_unsubscribe_channel_ex(lbm_rcv_t *rcv, lbm_uint32_t channel, lbm_event_queue_cancel_cb_info_t *cbinfo)
{
    const struct um_channel_call call = {.rcv = rcv, .number = channel, .api = "lbm_rcv_unsubscribe_channel_ex"};
    return um_rcv_unsubscribe_channel(&call, cbinfo);
}

int lbm_wildcard_rcv_subscribe_channel(lbm_wildcard_rcv_t *wrcv, lbm_uint32_t channel, lbm_rcv_cb_proc proc,
                                       void *clientd)
{
    const struct um_channel_call call = {.wrcv = wrcv, .number = channel, .api = "lbm_wildcard_rcv_subscribe_channel"};
    return um_wildcard_check(wrcv, call.api) != 0 ? -1 : um_rcv_subscribe_channel(&call, proc, clientd);
}

static int wildcard_unsubscribe(lbm_wildcard_rcv_t *wrcv, lbm_uint32_t channel,
                                const lbm_event_queue_cancel_cb_info_t *cbinfo, const char *api)
{
    const struct um_channel_call call = {.wrcv = wrcv, .number = channel, .api = api};
    return um_wildcard_check(wrcv, api) != 0 ? -1 : um_rcv_unsubscribe_channel(&call, cbinfo);
}

int lbm_wildcard_rcv_unsubscribe_channel(lbm_wildcard_rcv_t *wrcv, lbm_uint32_t channel)
{
    return wildcard_unsubscribe(wrcv, channel, NULL, "lbm_wildcard_rcv_unsubscribe_channel");
}

int lbm_wildcard_rcv_unsubscribe_channel_ex(lbm_wildcard_rcv_t *wrcv, lbm_uint32_t channel,
                                            lbm_event_queue_cancel_cb_info_t *cbinfo)
{
    return wildcard_unsubscribe(wrcv, channel, cbinfo, "lbm_wildcard_rcv_unsubscribe_channel_ex");
}

/* ---- subscribed before the first message ---- */

int um_rcv_create_on_channels(lbm_rcv_t **rcvp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_rcv_cb_proc proc,
                              void *clientd, lbm_event_queue_t *evq, const um_channel_subscription_t *channels,
                              size_t count)
{
    const struct um_channel_list list = {channels, count};
    return um_receiver_create(rcvp, ctx, topic, proc, clientd, evq, &list, "um_rcv_create_on_channels");
}

int um_hf_rcv_create_on_channels(lbm_hf_rcv_t **hfrcvp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_rcv_cb_proc proc,
                                 void *clientd, lbm_event_queue_t *evq, const um_channel_subscription_t *channels,
                                 size_t count)
{
    const struct um_channel_list list = {channels, count};
    return um_receiver_create_hf(hfrcvp, ctx, topic, proc, clientd, evq, &list, "um_hf_rcv_create_on_channels");
}

int um_wildcard_rcv_create_on_channels(lbm_wildcard_rcv_t **wrcvp, lbm_context_t *ctx, const char *pattern,
                                       const lbm_rcv_topic_attr_t *tattr, const lbm_wildcard_rcv_attr_t *wattr,
                                       lbm_rcv_cb_proc proc, void *clientd, lbm_event_queue_t *evq,
                                       const um_channel_subscription_t *channels, size_t count)
{
    const struct um_channel_list list = {channels, count};
    return um_wildcard_create(wrcvp, ctx, pattern, tattr, wattr, proc, clientd, evq, &list,
                              "um_wildcard_rcv_create_on_channels");
}
