/* lbm_src_channel_* and the subscriptions to channels of receivers and wildcard
 * receivers. Any thread; changes of subscriptions not in callbacks of a loop. */
#include <lbm/lbm.h>

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
