/* Handing messages and events to the callbacks and queues of receivers. Of the
 * loop of the message's session, and of the thread that dispatches a queue. */
#include "base/um_clock.h"
#include "base/um_log.h"
#include "core/um_rcv_private.h"
#include "wire/um_source_string.h"

static void record_service_time(lbm_context_t *ctx, uint64_t elapsed_ns)
{
    struct um_context_counters *c = &ctx->counters;
    unsigned long us = (unsigned long)(elapsed_ns / 1000);
    unsigned long min = atomic_load_explicit(&c->rcv_cb_svc_time_min, memory_order_relaxed);
    unsigned long max = atomic_load_explicit(&c->rcv_cb_svc_time_max, memory_order_relaxed);
    unsigned long mean = atomic_load_explicit(&c->rcv_cb_svc_time_mean, memory_order_relaxed);
    bool first = max == 0 && mean == 0;
    if (first || us < min) {
        atomic_store_explicit(&c->rcv_cb_svc_time_min, us, memory_order_relaxed);
    }
    if (us > max) {
        atomic_store_explicit(&c->rcv_cb_svc_time_max, us, memory_order_relaxed);
    }
    long step = ((long)us - (long)mean) / 8;
    atomic_store_explicit(&c->rcv_cb_svc_time_mean, first ? us : mean + (unsigned long)step, memory_order_relaxed);
}

void um_rcv_log_refusal(const struct um_msg *msg)
{
    um_log_limited(um_log_of(msg->pub.topic_name), um_clock_ns(), UM_LOG_WARNING, "Core-20203-2",
                   "topic [%s]: message receiver function returned -1; the value must be 0", msg->pub.topic_name);
}

static void call_channel(lbm_rcv_t *rcv, struct um_msg *msg, const struct um_rcv_channel *channel)
{
    if (channel->proc == NULL) {
        um_rcv_call(rcv, msg);
    } else if (channel->proc(rcv, &msg->pub, channel->clientd) != 0) {
        um_rcv_log_refusal(msg);
    }
}

static void run_event(struct um_event *event)
{
    struct um_msg *msg = UM_CONTAINER_OF(event, struct um_msg, event);
    lbm_rcv_t *rcv = msg->rcv;
    struct um_rcv_channel *taker = msg->taker;
    if (taker == NULL) {
        um_rcv_call(rcv, msg);
    } else if (!atomic_load_explicit(&taker->closed, memory_order_acquire)) {
        call_channel(rcv, msg, taker);
    }
    um_msg_release(msg);
    if (taker != NULL) {
        um_rcv_channel_unref(taker, true);
    }
    um_rcv_unref(rcv);
}

static void discard_event(struct um_event *event)
{
    struct um_msg *msg = UM_CONTAINER_OF(event, struct um_msg, event);
    lbm_rcv_t *rcv = msg->rcv;
    struct um_rcv_channel *taker = msg->taker;
    um_msg_release(msg);
    if (taker != NULL) {
        um_rcv_channel_unref(taker, false);
    }
    um_rcv_unref(rcv);
}

static const struct um_event_ops EVENT_OPS = {run_event, discard_event, UM_EVENT_DATA, false};
static const struct um_event_ops WILDCARD_EVENT_OPS = {run_event, discard_event, UM_EVENT_WILDCARD, false};

/* Takes over the library hold of `msg`. `taker`: NULL, or the channel it is for. */
static void enqueue(lbm_rcv_t *rcv, struct um_msg *msg, struct um_rcv_channel *taker)
{
    atomic_fetch_add_explicit(&rcv->refs, 1, memory_order_relaxed);
    if (taker != NULL) {
        atomic_fetch_add_explicit(&taker->refs, 1, memory_order_relaxed);
    }
    msg->rcv = rcv;
    msg->taker = taker;
    msg->event.ops = rcv->wildcard != NULL ? &WILDCARD_EVENT_OPS : &EVENT_OPS;
    msg->event.owner = rcv->wildcard != NULL ? &rcv->wildcard->events : &rcv->events->owner;
    um_event_enqueue(rcv->evq, msg->event.owner, &msg->event);
}

void um_rcv_count_not_queued(lbm_rcv_t *rcv, const char *topic_name)
{
    atomic_fetch_add_explicit(&rcv->not_queued, 1, memory_order_relaxed);
    um_log_limited(um_log_of(topic_name), um_clock_ns(), UM_LOG_ERR, "Core-20203-3",
                   "topic [%s]: out of memory for an event; it is not delivered", topic_name);
}

/* `channel`: NULL, or the one whose callback it is. */
static inline void call(lbm_rcv_t *rcv, struct um_msg *msg, const struct um_rcv_channel *channel)
{
    if (channel == NULL) {
        um_rcv_call(rcv, msg);
    } else {
        call_channel(rcv, msg, channel);
    }
}

static inline void call_timed(lbm_rcv_t *rcv, struct um_msg *msg, const struct um_rcv_channel *channel)
{
    if (__builtin_expect(rcv->ctx->opts.receiver_callback_service_time_enabled != 0, 0)) {
        uint64_t before_ns = um_clock_ns();
        call(rcv, msg, channel);
        record_service_time(rcv->ctx, um_clock_ns() - before_ns);
        return;
    }
    call(rcv, msg, channel);
}

/* On a queue; or a request, which each receiver answers by itself; or what another receiver has kept as it saw it. */
static void deliver_copy(lbm_rcv_t *rcv, const struct um_msg *msg, struct um_rcv_channel *channel, bool shown)
{
    struct um_msg *copy = um_msg_clone(msg);
    if (copy == NULL) {
        um_rcv_count_not_queued(rcv, msg->pub.topic_name);
        return;
    }
    copy->pub.channel_info = shown ? &copy->channel : NULL;
    if (rcv->evq != NULL) {
        enqueue(rcv, copy, channel);
    } else {
        call_timed(rcv, copy, channel);
        um_msg_release(copy);
    }
}

/* Whoever looks at properties for the first time writes into them, and who has kept the message may do so on another
 * thread. A collector takes them as they came. */
static bool is_read(const lbm_rcv_t *rcv, const struct um_msg *msg)
{
    return msg->pub.properties != NULL && rcv->collector == NULL;
}

void um_rcv_hand_over(lbm_rcv_t *rcv, struct um_msg *msg)
{
    struct um_rcv_channel *channel;
    bool shown;
    if (um_rcv_channel_fate(rcv, msg, &channel, &shown) == UM_RCV_UNWANTED) {
        return;
    }
    bool differs = shown != (msg->pub.channel_info != NULL);
    if (rcv->evq != NULL || msg->pub.response != NULL || (msg->replacement != NULL && (differs || is_read(rcv, msg)))) {
        deliver_copy(rcv, msg, channel, shown);
        return;
    }
    msg->pub.channel_info = shown ? &msg->channel : NULL;
    call_timed(rcv, msg, channel);
}

/* Its callback gets whatever comes, at once; it looks at no channel, and nobody has kept the message. */
static inline bool takes_all(const lbm_rcv_t *rcv, const struct um_msg *msg)
{
    return !rcv->indirect && !rcv->wants_subscribed_only && rcv->wildcard == NULL && msg->pub.response == NULL &&
           msg->replacement == NULL && atomic_load_explicit(&rcv->channels, memory_order_relaxed) == NULL;
}

void um_rcv_deliver_numbered(lbm_rcv_t *rcv, struct um_msg *msg)
{
    if (takes_all(rcv, msg)) {
        msg->pub.channel_info = NULL;
        call_timed(rcv, msg, NULL);
    } else if (rcv->hf != NULL) {
        um_rcv_hf_deliver(rcv, msg);
    } else {
        um_rcv_hand_over(rcv, msg);
    }
}

void um_rcv_deliver(lbm_rcv_t *rcv, struct um_msg *msg)
{
    if (__builtin_expect(!rcv->indirect && msg->pub.response == NULL, 1)) {
        call_timed(rcv, msg, NULL);
    } else {
        um_rcv_deliver_numbered(rcv, msg);
    }
}

void um_rcv_deliver_event(lbm_rcv_t *rcv, int type, const char *topic_name, struct um_rcv_flow *flow)
{
    char source[UM_SOURCE_STRING_MAX];
    struct um_msg *msg = um_msg_create(flow != NULL ? um_rcv_flow_source(flow, source) : "", topic_name);
    if (msg == NULL) {
        um_rcv_count_not_queued(rcv, topic_name);
        return;
    }
    uint64_t wall_ns = um_loop_wall_now(flow != NULL ? flow->lane->loop : rcv->ctx->loop);
    msg->pub.type = type;
    msg->pub.flags = rcv->hf != NULL && type != LBM_MSG_BOS ? LBM_MSG_FLAG_HF_PASS_THROUGH : 0;
    msg->pub.source_clientd = flow != NULL ? flow->clientd : NULL;
    msg->pub.tsp.tv_sec = (long)(wall_ns / UM_NS_PER_SEC);
    msg->pub.tsp.tv_usec = (long)(wall_ns % UM_NS_PER_SEC / 1000);
    if (um_rcv_hf_passes_event(rcv, msg)) {
        return;
    }
    if (rcv->evq != NULL) {
        enqueue(rcv, msg, NULL);
        return;
    }
    msg->origin = flow;
    um_rcv_call(rcv, msg);
    msg->origin = NULL;
    um_msg_release(msg);
}
