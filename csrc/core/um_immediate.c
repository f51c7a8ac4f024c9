/* Who gets immediate messages. See um_immediate.h. One message template for all of
 * them; what goes to an event queue is a copy, as with every other message. */
#include "core/um_immediate.h"

#include <stdatomic.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "core/um_rcv_private.h"
#include "core/um_response.h"

/* A function of the application. It goes when its last event has left its queue. */
struct um_immediate_handler {
    lbm_context_t *ctx;
    lbm_context_rcv_immediate_msgs_func_t function;
    const struct um_event_ops *ops;
    struct um_event_owner owner;
};

struct um_immediates {
    lbm_context_t *ctx;
    struct um_immediate_handler *handlers[UM_IMMEDIATE_FUNCTIONS]; /* NULL: none */
    struct um_msg *msg;                                            /* template */
    const struct um_immediate *present;                            /* what is being handed out */
    _Atomic uint64_t fates[UM_IMMEDIATE_FATES];                    /* any thread reads */
    _Atomic uint64_t immediates_dropped;                           /* of these; any thread reads */
};

/* ---- functions of the application ---- */

static void call(const struct um_immediate_handler *handler, struct um_msg *msg)
{
    lbm_context_rcv_immediate_msgs_func_t function = handler->function; /* it may be replaced by its own call */
    if (function.func(handler->ctx, &msg->pub, function.clientd) != 0) {
        um_rcv_log_refusal(msg);
    }
}

static void run_event(struct um_event *event)
{
    struct um_msg *msg = UM_CONTAINER_OF(event, struct um_msg, event);
    call(msg->handler, msg);
    um_msg_release(msg);
}

static void discard_event(struct um_event *event)
{
    um_msg_release(UM_CONTAINER_OF(event, struct um_msg, event));
}

static const struct um_event_ops EVENT_OPS[UM_IMMEDIATE_FUNCTIONS] = {
    [UM_IMMEDIATE_TOPICLESS] = {run_event, discard_event, UM_EVENT_TOPICLESS_IM, false},
    [UM_IMMEDIATE_TOPIC] = {run_event, discard_event, UM_EVENT_DATA, false}};

static void on_owner_idle(struct um_event_owner *owner)
{
    um_free(UM_CONTAINER_OF(owner, struct um_immediate_handler, owner));
}

int um_immediate_set_function(struct um_immediates *immediates, enum um_immediate_function which,
                              const lbm_context_rcv_immediate_msgs_func_t *function)
{
    struct um_immediate_handler *before = immediates->handlers[which], *handler = NULL;
    if (function->func != NULL) {
        handler = um_calloc(1, sizeof *handler);
        if (handler == NULL) {
            return um_error_nomem("immediate message receiver", sizeof *handler);
        }
        handler->ctx = immediates->ctx;
        handler->function = *function;
        handler->ops = &EVENT_OPS[which];
        um_event_owner_init(&handler->owner, function->evq);
    }
    immediates->handlers[which] = handler;
    if (before != NULL) {
        um_event_owner_close(&before->owner, NULL, on_owner_idle);
    }
    return 0;
}

static void count(struct um_immediates *immediates, enum um_immediate_fate fate)
{
    atomic_fetch_add_explicit(&immediates->fates[fate], 1, memory_order_relaxed);
    if (fate >= UM_IMMEDIATE_NOBODY) {
        atomic_fetch_add_explicit(&immediates->immediates_dropped, 1, memory_order_relaxed);
    }
}

/* Somebody here gets the message: the way back of a request is opened, not for what nobody wants. */
static void open_response(void *arg)
{
    struct um_immediates *immediates = arg;
    const struct um_immediate *immediate = immediates->present;
    if (immediate->request != NULL && immediates->msg->pub.response == NULL) {
        immediates->msg->pub.response = um_response_create(immediates->ctx, immediate->request, immediate->from_ip);
    }
}

static bool hand_to_function(struct um_immediates *immediates, enum um_immediate_function which)
{
    struct um_immediate_handler *handler = immediates->handlers[which];
    if (handler == NULL) {
        return false;
    }
    open_response(immediates);
    if (handler->function.evq == NULL && immediates->msg->pub.response == NULL) {
        call(handler, immediates->msg);
        return true;
    }
    struct um_msg *copy = um_msg_clone(immediates->msg); /* each who gets a request answers it by itself */
    if (copy == NULL) {
        count(immediates, UM_IMMEDIATE_NO_MEMORY);
        return true;
    }
    if (handler->function.evq == NULL) {
        call(handler, copy);
        um_msg_release(copy);
        return true;
    }
    copy->handler = handler;
    copy->event.ops = handler->ops;
    copy->event.owner = &handler->owner;
    um_event_enqueue(handler->function.evq, &handler->owner, &copy->event);
    return true;
}

/* ---- receivers ---- */

/* Receivers of wildcards on the topic are not meant: they have their turn when there is no other. */
static bool hand_to_receivers(struct um_immediates *immediates, const char *topic_name)
{
    const struct um_rcv_topic *topic = um_rcv_topic_find(immediates->ctx, topic_name);
    bool any = false;
    if (topic == NULL) {
        return false;
    }
    struct um_list *node;
    UM_LIST_FOREACH(node, &topic->receivers)
    {
        lbm_rcv_t *rcv = UM_CONTAINER_OF(node, lbm_rcv_t, topic_node);
        if (rcv->wildcard == NULL) {
            open_response(immediates);
            um_rcv_deliver(rcv, immediates->msg);
            any = true;
        }
    }
    return any;
}

/* ---- messages ---- */

static bool topic_possible(const struct um_immediate *immediate)
{
    return immediate->topic == NULL || (immediate->topic_len > 0 && immediate->topic_len <= UM_TOPIC_NAME_MAX &&
                                        memchr(immediate->topic, '\0', immediate->topic_len) == NULL);
}

static void fill(struct um_immediates *immediates, const struct um_immediate *immediate)
{
    struct um_msg *msg = immediates->msg;
    lbm_msg_t *pub = &msg->pub;
    size_t topic_len = immediate->topic != NULL ? immediate->topic_len : 0;
    uint64_t wall_ns = um_loop_wall_now(immediates->ctx->loop);
    size_t source_len = strnlen(immediate->source, sizeof pub->source - 1);
    memcpy(pub->source, immediate->source, source_len);
    pub->source[source_len] = '\0';
    if (topic_len > 0) {
        memcpy(pub->topic_name, immediate->topic, topic_len);
    }
    pub->topic_name[topic_len] = '\0';
    pub->type = immediate->request != NULL ? LBM_MSG_REQUEST : LBM_MSG_DATA;
    pub->flags = immediate->flags | LBM_MSG_FLAG_IMMEDIATE | (topic_len == 0 ? LBM_MSG_FLAG_TOPICLESS : 0);
    pub->data = (const char *)immediate->data;
    pub->len = immediate->len;
    pub->sequence_number = immediate->sqn;
    pub->hr_timestamp = immediate->arrival;
    pub->tsp.tv_sec = (long)(wall_ns / UM_NS_PER_SEC);
    pub->tsp.tv_usec = (long)(wall_ns % UM_NS_PER_SEC / 1000);
    pub->fragment_info = NULL;
    um_msg_mark(msg, UM_MSG_FRAGMENT, immediate->is_fragment);
    if (immediate->fragment != NULL) {
        msg->frag = *immediate->fragment;
        pub->fragment_info = &msg->frag;
    }
    msg->buf = immediate->buf;
}

static enum um_immediate_fate hand_out(struct um_immediates *immediates)
{
    struct um_msg *msg = immediates->msg;
    if ((msg->pub.flags & LBM_MSG_FLAG_TOPICLESS) != 0) {
        return hand_to_function(immediates, UM_IMMEDIATE_TOPICLESS) ? UM_IMMEDIATE_TO_FUNCTION : UM_IMMEDIATE_NOBODY;
    }
    if (hand_to_receivers(immediates, msg->pub.topic_name)) {
        return UM_IMMEDIATE_TO_RECEIVERS;
    }
    if (um_wildcards_deliver(immediates->ctx, msg, open_response, immediates)) {
        return UM_IMMEDIATE_TO_WILDCARDS;
    }
    return hand_to_function(immediates, UM_IMMEDIATE_TOPIC) ? UM_IMMEDIATE_TO_FUNCTION : UM_IMMEDIATE_NOBODY;
}

static void tell_dropped(struct um_immediates *immediates, const struct um_immediate *immediate,
                         enum um_immediate_fate fate)
{
    uint64_t now_ns = um_loop_now(immediates->ctx->loop);
    if (fate == UM_IMMEDIATE_MALFORMED) {
        um_log_limited(um_log_of(immediate->source), now_ns, UM_LOG_INFO, "Core-20221-1",
                       "immediate message from %s dropped: a topic of %zu bytes, or with a NUL in it: must be 1..%u "
                       "characters",
                       immediate->source, immediate->topic_len, UM_TOPIC_NAME_MAX);
    } else if (fate == UM_IMMEDIATE_NOBODY) {
        um_log_limited(um_log_of(immediate->source), now_ns, UM_LOG_INFO, "Core-20221-2",
                       "immediate message from %s dropped: no receiver for its topic and no %s", immediate->source,
                       immediate->topic != NULL ? "immediate_message_topic_receiver_function"
                                                : "immediate_message_receiver_function");
    }
}

enum um_immediate_fate um_immediate_deliver(struct um_immediates *immediates, const struct um_immediate *immediate)
{
    enum um_immediate_fate fate = UM_IMMEDIATE_MALFORMED;
    if (topic_possible(immediate)) {
        fill(immediates, immediate);
        immediates->present = immediate;
        um_msg_mark(immediates->msg, UM_MSG_DELIVERING, true);
        fate = hand_out(immediates);
        um_msg_mark(immediates->msg, UM_MSG_DELIVERING, false);
        immediates->msg = um_msg_template_next(immediates->msg);
        um_response_free(immediates->msg->pub.response); /* those who got the message have their own */
        immediates->msg->pub.response = NULL;
    }
    count(immediates, fate);
    if (fate >= UM_IMMEDIATE_NOBODY) {
        tell_dropped(immediates, immediate, fate);
    }
    return fate;
}

void um_immediate_lost(struct um_immediates *immediates, const char *source, uint32_t sqn, uint32_t count, bool burst)
{
    static const uint8_t nothing;
    struct um_immediate_handler *handler = immediates->handlers[UM_IMMEDIATE_LOSS];
    const struct um_immediate event = {.source = source, .data = &nothing, .sqn = sqn};
    if (handler == NULL) {
        return;
    }
    fill(immediates, &event);
    struct um_msg *msg = immediates->msg;
    msg->pub.type = burst ? LBM_MSG_UNRECOVERABLE_LOSS_BURST : LBM_MSG_UNRECOVERABLE_LOSS;
    msg->lost = burst ? count : 0;
    um_msg_mark(msg, UM_MSG_DELIVERING, true);
    call(handler, msg);
    um_msg_mark(immediates->msg, UM_MSG_DELIVERING, false);
    immediates->msg->lost = 0;
    immediates->msg = um_msg_template_next(immediates->msg);
}

uint64_t um_immediate_dropped(const struct um_immediates *immediates)
{
    return atomic_load_explicit(&immediates->immediates_dropped, memory_order_relaxed);
}

void um_immediate_counts(const struct um_immediates *immediates, uint64_t out[UM_IMMEDIATE_FATES])
{
    for (int fate = 0; fate < UM_IMMEDIATE_FATES; fate++) {
        out[fate] = atomic_load_explicit(&immediates->fates[fate], memory_order_relaxed);
    }
}

/* ---- creation and deletion ---- */

struct um_immediates *um_immediates_create(lbm_context_t *ctx)
{
    struct um_immediates *immediates = um_calloc(1, sizeof *immediates);
    if (immediates == NULL || (immediates->msg = um_msg_create("", "")) == NULL) {
        um_free(immediates);
        um_error_nomem("immediate messages", sizeof *immediates);
        return NULL;
    }
    immediates->ctx = ctx;
    um_msg_mark(immediates->msg, UM_MSG_TEMPLATE, true);
    if (um_immediate_set_function(immediates, UM_IMMEDIATE_TOPICLESS, &ctx->opts.immediate_message_receiver_function) !=
            0 ||
        um_immediate_set_function(immediates, UM_IMMEDIATE_TOPIC,
                                  &ctx->opts.immediate_message_topic_receiver_function) != 0) {
        um_immediates_destroy(immediates);
        return NULL;
    }
    return immediates;
}

void um_immediates_destroy(struct um_immediates *immediates)
{
    static const lbm_context_rcv_immediate_msgs_func_t none;
    if (immediates == NULL) {
        return;
    }
    for (int which = 0; which < UM_IMMEDIATE_FUNCTIONS; which++) {
        um_immediate_set_function(immediates, which, &none);
    }
    um_msg_release(immediates->msg);
    um_free(immediates);
}
