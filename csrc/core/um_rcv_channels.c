/* Subscriptions of receivers to channels. See um_rcv_channels.h. */
#include "core/um_rcv_channels.h"

#include "base/um_error.h"
#include "base/um_mem.h"
#include "config/um_attr.h"
#include "core/um_rcv_private.h"

/* ---- the table ---- */

struct um_rcv_channels *um_rcv_channels_new(size_t buckets)
{
    if (buckets == 0 || buckets > SIZE_MAX / sizeof(void *) / 2) {
        buckets = buckets == 0 ? 1 : SIZE_MAX / sizeof(void *) / 2;
    }
    struct um_rcv_channels *channels = um_calloc(1, sizeof *channels + buckets * sizeof channels->heads[0]);
    if (channels != NULL) {
        channels->buckets = buckets;
    }
    return channels;
}

void um_rcv_channels_free(struct um_rcv_channels *channels)
{
    for (size_t i = 0; channels != NULL && i < channels->buckets; i++) {
        struct um_rcv_channel *channel = atomic_load_explicit(&channels->heads[i], memory_order_relaxed), *next;
        for (; channel != NULL; channel = next) {
            next = atomic_load_explicit(&channel->next, memory_order_relaxed);
            um_rcv_channel_unref(channel, false);
        }
    }
    um_free(channels);
}

static _Atomic(struct um_rcv_channel *) *bucket_of(struct um_rcv_channels *channels, lbm_uint32_t number)
{
    return &channels->heads[number % channels->buckets];
}

struct um_rcv_channel *um_rcv_channel_find(struct um_rcv_channels *channels, lbm_uint32_t number)
{
    struct um_rcv_channel *channel = atomic_load_explicit(bucket_of(channels, number), memory_order_acquire);
    while (channel != NULL && channel->number != number) {
        channel = atomic_load_explicit(&channel->next, memory_order_acquire);
    }
    return channel;
}

bool um_rcv_channels_add(struct um_rcv_channels *channels, lbm_uint32_t number, lbm_rcv_cb_proc proc, void *clientd)
{
    struct um_rcv_channel *channel = um_calloc(1, sizeof *channel);
    if (channel == NULL) {
        return false;
    }
    _Atomic(struct um_rcv_channel *) *head = bucket_of(channels, number);
    channel->number = number;
    channel->proc = proc;
    channel->clientd = clientd;
    atomic_init(&channel->refs, 1);
    atomic_init(&channel->next, atomic_load_explicit(head, memory_order_relaxed));
    atomic_store_explicit(head, channel, memory_order_release);
    atomic_fetch_add_explicit(&channels->count, 1, memory_order_relaxed);
    return true;
}

/* Its own `next` stays: a loop that is at it goes on from there. */
struct um_rcv_channel *um_rcv_channels_take_out(struct um_rcv_channels *channels, lbm_uint32_t number)
{
    _Atomic(struct um_rcv_channel *) *at = bucket_of(channels, number);
    struct um_rcv_channel *channel = atomic_load_explicit(at, memory_order_relaxed);
    while (channel != NULL && channel->number != number) {
        at = &channel->next;
        channel = atomic_load_explicit(at, memory_order_relaxed);
    }
    if (channel != NULL) {
        atomic_store_explicit(at, atomic_load_explicit(&channel->next, memory_order_relaxed), memory_order_release);
        atomic_fetch_sub_explicit(&channels->count, 1, memory_order_relaxed);
    }
    return channel;
}

void um_rcv_channel_unref(struct um_rcv_channel *channel, bool dispatching)
{
    if (atomic_fetch_sub_explicit(&channel->refs, 1, memory_order_acq_rel) == 1) {
        if (channel->cancel_proc != NULL) {
            channel->cancel_proc(dispatching, channel->cancel_clientd);
        }
        um_free(channel);
    }
}

/* ---- messages ---- */

static struct um_rcv_channels *channels_of(const lbm_rcv_t *rcv)
{
    return atomic_load_explicit(rcv->wildcard != NULL ? &rcv->wildcard->channels : &rcv->channels,
                                memory_order_acquire);
}

void um_rcv_channels_want(lbm_rcv_t *rcv, int null_channel, int unrecognized)
{
    rcv->wants_channels_only = null_channel == LBM_RCV_TOPIC_ATTR_CHANNEL_BEHAVIOR_DISCARD_MSGS;
    rcv->wants_subscribed_only = unrecognized == LBM_RCV_TOPIC_ATTR_CHANNEL_BEHAVIOR_DISCARD_MSGS;
}

enum um_rcv_channel_fate um_rcv_channel_fate(const lbm_rcv_t *rcv, const struct um_msg *msg,
                                             struct um_rcv_channel **channel, bool *shown)
{
    *channel = NULL;
    *shown = false;
    if (msg->pub.type != LBM_MSG_DATA && msg->pub.type != LBM_MSG_REQUEST) {
        return UM_RCV_TO_RECEIVER;
    }
    if (msg->channel.flags == 0) {
        return rcv->wants_channels_only ? UM_RCV_UNWANTED : UM_RCV_TO_RECEIVER;
    }
    struct um_rcv_channels *channels = channels_of(rcv);
    if (channels != NULL && atomic_load_explicit(&channels->count, memory_order_relaxed) > 0) {
        *shown = true;
        *channel = um_rcv_channel_find(channels, msg->channel.channel_number);
    }
    if (*channel != NULL) {
        return UM_RCV_TO_CHANNEL;
    }
    return rcv->wants_subscribed_only ? UM_RCV_UNWANTED : UM_RCV_TO_RECEIVER;
}

/* ---- calls ---- */

struct change {
    const struct um_channel_call *call;
    lbm_rcv_cb_proc proc;
    void *clientd;
    const lbm_event_queue_cancel_cb_info_t *cbinfo;
    struct um_rcv_channel *out; /* no longer in the table */
};

static lbm_context_t *context_of(const struct um_channel_call *call)
{
    return call->wrcv != NULL ? call->wrcv->ctx : call->rcv->ctx;
}

static _Atomic(struct um_rcv_channels *) *table_of(const struct um_channel_call *call)
{
    return call->wrcv != NULL ? &call->wrcv->channels : &call->rcv->channels;
}

static size_t buckets_for(const struct um_channel_call *call)
{
    size_t buckets = 1, len = sizeof buckets;
    if (call->wrcv == NULL) {
        return call->rcv->topic->opts->channel_map_tablesz;
    }
    um_attr_get((const struct um_attr *)call->wrcv->attr, "channel_map_tablesz", &buckets, &len);
    return buckets;
}

/* The table, made with the first channel. NULL: out of memory. */
static struct um_rcv_channels *table_for(const struct um_channel_call *call)
{
    struct um_rcv_channels *channels = atomic_load_explicit(table_of(call), memory_order_relaxed);
    if (channels == NULL && (channels = um_rcv_channels_new(buckets_for(call))) != NULL) {
        atomic_store_explicit(table_of(call), channels, memory_order_release);
    }
    return channels;
}

static int subscribe(const struct um_channel_call *call, lbm_rcv_cb_proc proc, void *clientd)
{
    struct um_rcv_channels *channels = table_for(call);
    if (channels != NULL && um_rcv_channel_find(channels, call->number) != NULL) {
        return um_error(UM_EINVAL, "CoreApi-20232-1", "%s: channel %u: is subscribed already", call->api, call->number);
    }
    if (channels == NULL || !um_rcv_channels_add(channels, call->number, proc, clientd)) {
        return um_error_nomem("channel", sizeof(struct um_rcv_channel));
    }
    return 0;
}

static int subscribe_on_loop(void *arg)
{
    const struct change *change = arg;
    return subscribe(change->call, change->proc, change->clientd);
}

int um_rcv_channels_begin(struct um_channel_call *call, const struct um_channel_list *list)
{
    if (list == NULL) {
        return 0;
    }
    if (list->count > 0 && list->channels == NULL) {
        return um_error(UM_EINVAL, "CoreApi-20232-8", "%s: channels: must not be NULL when count is %zu", call->api,
                        list->count);
    }
    for (size_t i = 0; i < list->count; i++) {
        call->number = list->channels[i].channel;
        if (subscribe(call, list->channels[i].proc, list->channels[i].clientd) != 0) {
            return -1;
        }
    }
    return 0;
}

static int check(const struct um_channel_call *call)
{
    if (call->wrcv != NULL) {
        return 0;
    }
    if (um_receiver_check(call->rcv, call->api) != 0) {
        return -1;
    }
    if (call->rcv->hf != NULL && call->rcv->hf->member != NULL) {
        return um_error(UM_EOPNOTSUPP, "CoreApi-20232-7",
                        "%s: rcv %p belongs to an HFX, which gives all channels to its own callback", call->api,
                        (void *)call->rcv);
    }
    return call->rcv->wildcard == NULL
               ? 0
               : um_error(UM_EINVAL, "CoreApi-20232-2",
                          "%s: rcv %p belongs to a wildcard receiver: subscribe that one to channels instead",
                          call->api, (void *)call->rcv);
}

int um_rcv_subscribe_channel(const struct um_channel_call *call, lbm_rcv_cb_proc proc, void *clientd)
{
    struct change change = {.call = call, .proc = proc, .clientd = clientd};
    return check(call) != 0 ? -1 : um_loop_call_api(context_of(call)->loop, call->api, subscribe_on_loop, &change);
}

static int unsubscribe_on_loop(void *arg)
{
    struct change *change = arg;
    const struct um_channel_call *call = change->call;
    struct um_rcv_channels *channels = atomic_load_explicit(table_of(call), memory_order_relaxed);
    change->out = channels == NULL ? NULL : um_rcv_channels_take_out(channels, call->number);
    if (change->out == NULL) {
        return um_error(UM_EINVAL, "CoreApi-20232-3", "%s: channel %u: must have been subscribed", call->api,
                        call->number);
    }
    if (change->cbinfo != NULL) {
        change->out->cancel_proc = change->cbinfo->cbproc;
        change->out->cancel_clientd = change->cbinfo->clientd;
    }
    atomic_store_explicit(&change->out->closed, true, memory_order_release);
    return 0;
}

static int nothing_more(void *arg)
{
    return 0;
}

int um_rcv_unsubscribe_channel(const struct um_channel_call *call, const lbm_event_queue_cancel_cb_info_t *cbinfo)
{
    struct change change = {.call = call, .cbinfo = cbinfo};
    if (check(call) != 0 || um_event_cancel_check(cbinfo, call->api) != 0 ||
        um_rcv_delete_on_loops(context_of(call), call->api, unsubscribe_on_loop, nothing_more, &change) != 0) {
        return -1;
    }
    um_rcv_channel_unref(change.out, false); /* no loop is at it any more */
    return 0;
}
