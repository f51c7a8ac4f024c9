/* Receiver topics and receivers: lookup, creation and deletion. Objects live on
 * the loop; calls from other threads go through its mailbox. */
#include <string.h>

#include "base/um_clock.h"
#include "base/um_debug.h"
#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "config/um_shared_options.h"
#include "core/um_hfx.h"
#include "core/um_monitored.h"
#include "core/um_object_counts.h"
#include "core/um_rcv_private.h"
#include "wire/um_source_string.h"

/* Topics without a receiver are kept for a while, in case a program makes another one without looking it up again. */
#define IDLE_TOPICS_MAX 1024u
#define START_RETRY_NS UM_NS_PER_SEC

int um_receivers_init(lbm_context_t *ctx)
{
    um_list_init(&ctx->receivers);
    um_list_init(&ctx->idle_topics);
    um_list_init(&ctx->wildcard_receivers);
    um_list_init(&ctx->silent_matches);
    ctx->join_retries = um_join_retries_create(um_loop_wheel(ctx->loop), &um_rcv_join_retry_ops);
    if (ctx->join_retries == NULL) {
        return um_error_nomem("joins to be tried again", sizeof *ctx);
    }
    ctx->rcv_joins = um_rcv_joins_create(um_loop_wheel(ctx->loop), &um_rcv_join_ops);
    if (ctx->rcv_joins == NULL) {
        um_join_retries_destroy(ctx->join_retries);
        return um_error_nomem("joins under way", sizeof *ctx);
    }
    ctx->rcv_hearsay = um_rcv_hearsay_create(um_loop_wheel(ctx->loop), &um_rcv_hearsay_ops);
    if (ctx->rcv_hearsay == NULL) {
        um_rcv_joins_destroy(ctx->rcv_joins);
        um_join_retries_destroy(ctx->join_retries);
        return um_error_nomem("sources joined on hearsay", sizeof *ctx);
    }
    return 0;
}

static void free_topic(struct um_rcv_topic *topic)
{
    um_rcv_forget_endings(topic);
    um_options_drop(topic->opts);
    um_topic_free(&topic->base);
}

void um_receivers_destroy(lbm_context_t *ctx)
{
    struct um_table_link *link, *next;
    size_t cursor = 0;
    for (link = um_table_next(&ctx->rcv_topics, &cursor, NULL); link != NULL; link = next) {
        next = um_table_next(&ctx->rcv_topics, &cursor, link);
        free_topic(UM_CONTAINER_OF(link, struct um_rcv_topic, link));
    }
    um_table_free(&ctx->rcv_topics);
    um_join_retries_destroy(ctx->join_retries);
    um_rcv_joins_destroy(ctx->rcv_joins);
    um_rcv_hearsay_destroy(ctx->rcv_hearsay);
}

/* ---- topics ---- */

struct um_rcv_topic *um_rcv_topic_find(lbm_context_t *ctx, const char *name)
{
    struct um_table_link *link = um_table_find(&ctx->rcv_topics, um_hash_bytes(name, strlen(name)));
    for (; link != NULL; link = um_table_find_next(link)) {
        struct um_rcv_topic *topic = UM_CONTAINER_OF(link, struct um_rcv_topic, link);
        if (strcmp(topic->base.name, name) == 0) {
            return topic;
        }
    }
    return NULL;
}

struct um_rcv_topic *um_rcv_topic_add(lbm_context_t *ctx, const char *name, struct um_receiver_options *opts)
{
    struct um_rcv_topic *topic = um_topic_new(sizeof *topic, ctx, UM_TOPIC_RECEIVER, name);
    if (topic == NULL) {
        return NULL;
    }
    if (um_table_add(&ctx->rcv_topics, &topic->link, um_hash_bytes(name, strlen(name))) != 0) {
        um_topic_free(&topic->base);
        um_error_nomem("receiver topic", sizeof *topic);
        return NULL;
    }
    topic->opts = um_options_share(UM_SCOPE_RECEIVER, opts);
    if (topic->opts == NULL) {
        um_table_remove(&ctx->rcv_topics, &topic->link);
        um_topic_free(&topic->base);
        return NULL;
    }
    um_list_init(&topic->receivers);
    um_list_init(&topic->sources);
    um_list_init(&topic->endings);
    um_list_init(&topic->idle_node);
    um_join_retry_topic_init(&topic->retries);
    um_rcv_join_topic_init(&topic->joins);
    return topic;
}

static void stop_idling(struct um_rcv_topic *topic)
{
    if (!um_list_empty(&topic->idle_node)) {
        um_list_remove(&topic->idle_node);
        topic->base.ctx->idle_topic_count--;
    }
}

static void remove_topic(struct um_rcv_topic *topic)
{
    stop_idling(topic);
    um_table_remove(&topic->base.ctx->rcv_topics, &topic->link);
    free_topic(topic);
}

void um_rcv_topic_discard(struct um_rcv_topic *topic)
{
    lbm_context_t *ctx = topic->base.ctx;
    if (!um_list_empty(&topic->receivers) || topic->awaited || topic->closing > 0) {
        return;
    }
    if (!topic->looked_up) {
        remove_topic(topic);
        return;
    }
    stop_idling(topic);
    um_list_push_back(&ctx->idle_topics, &topic->idle_node);
    if (++ctx->idle_topic_count > IDLE_TOPICS_MAX) {
        remove_topic(UM_CONTAINER_OF(um_list_first(&ctx->idle_topics), struct um_rcv_topic, idle_node));
    }
}

/* Queries begin here, not with the first receiver. Without memory they begin with that one after all. */
static void look_for_sources(struct um_rcv_topic *topic)
{
    if (topic->tr == NULL) {
        topic->tr = um_resolver_lookup(topic->base.ctx->resolver, topic->base.name, topic->opts, topic);
    }
}

struct lookup {
    lbm_context_t *ctx;
    const char *name;
    struct um_receiver_options *opts; /* NULL: only look */
    struct um_rcv_topic *topic;       /* out */
    bool added;                       /* out: opts are taken over */
    bool differs;                     /* out: the topic keeps other options than opts */
};

static int lookup_on_loop(void *arg)
{
    struct lookup *lookup = arg;
    lookup->topic = um_rcv_topic_find(lookup->ctx, lookup->name);
    if (lookup->topic == NULL && lookup->opts != NULL) {
        lookup->topic = um_rcv_topic_add(lookup->ctx, lookup->name, lookup->opts);
        if (lookup->topic == NULL) {
            return -1;
        }
        lookup->added = true;
    } else if (lookup->opts != NULL) {
        lookup->differs = !um_options_equal(UM_SCOPE_RECEIVER, lookup->topic->opts, lookup->opts);
    }
    if (lookup->topic != NULL) {
        lookup->topic->looked_up = true;
        lookup->topic->awaited = true;
        stop_idling(lookup->topic);
        look_for_sources(lookup->topic);
    }
    return 0;
}

/* The topic is there, or it is added with `attr`, or it exists with other options than `attr`, which are ignored. */
static int lookup_with_options(struct lookup *lookup, const char *api, const lbm_rcv_topic_attr_t *attr)
{
    struct um_receiver_options opts;
    if (um_receiver_options_resolve(attr, lookup->ctx->opts.context_name, lookup->ctx->opts.um_profile, lookup->name,
                                    &opts) != 0) {
        return -1;
    }
    lookup->opts = &opts;
    int rc = um_loop_call_api(lookup->ctx->loop, api, lookup_on_loop, lookup);
    if (!lookup->added) {
        um_options_clear(UM_SCOPE_RECEIVER, &opts);
    }
    if (rc == 0 && lookup->differs && attr != NULL) {
        um_log(UM_LOG_WARNING, "Core-5688-1793",
               "topic [%s]: requested receiver attributes ignored: the topic keeps those of its first lookup",
               lookup->name);
    }
    return rc;
}

int um_receiver_topic_lookup(lbm_topic_t **topicp, lbm_context_t *ctx, const char *name,
                             const lbm_rcv_topic_attr_t *attr)
{
    static const char api[] = "lbm_rcv_topic_lookup";
    if (um_context_check_messaging(ctx, api) != 0 || um_topic_name_check(name, api) != 0) {
        return -1;
    }
    if (topicp == NULL) {
        return um_error(UM_EINVAL, "CoreApi-20203-1", "%s: topicp: must not be NULL", api);
    }
    struct lookup lookup = {.ctx = ctx, .name = name};
    if (um_loop_call_api(ctx->loop, api, lookup_on_loop, &lookup) != 0) {
        return -1;
    }
    if ((lookup.topic == NULL || attr != NULL) && lookup_with_options(&lookup, api, attr) != 0) {
        return -1;
    }
    *topicp = &lookup.topic->base;
    return 0;
}

/* ---- receivers ---- */

void um_rcv_unref(lbm_rcv_t *rcv)
{
    if (atomic_fetch_sub_explicit(&rcv->refs, 1, memory_order_acq_rel) == 1) {
        um_rcv_hf_free(rcv);
        um_free(rcv->counted);
        um_rcv_channels_free(atomic_load_explicit(&rcv->channels, memory_order_relaxed));
        um_free(rcv->wildcard != NULL ? (void *)rcv->match : rcv->events);
        um_free(rcv);
    }
}

/* Those in force now, and whether receivers of wildcards wait for the lack of a source. */
void um_rcv_apply_thresholds(struct um_rcv_topic *topic)
{
    if (topic->tr == NULL) {
        return;
    }
    bool internal = false;
    struct um_list *node;
    UM_LIST_FOREACH(node, &topic->receivers)
    {
        internal |= UM_CONTAINER_OF(node, lbm_rcv_t, topic_node)->wildcard != NULL;
    }
    um_resolver_topic_set_thresholds(topic->tr, topic->opts->resolution_number_of_sources_query_threshold,
                                     topic->opts->resolution_no_source_notification_threshold, internal);
}

/* ---- audiences ---- */

static void publish(struct um_rcv_topic *topic, struct um_rcv_audience *next)
{
    struct um_list *node;
    UM_LIST_FOREACH(node, &topic->receivers)
    {
        lbm_rcv_t *rcv = UM_CONTAINER_OF(node, lbm_rcv_t, topic_node);
        if (rcv->started) {
            um_rcv_audience_add(next, rcv);
        }
    }
    struct um_rcv_audience *before = topic->audience;
    topic->audience = next;
    um_rcv_sources_set_audience(topic);
    struct um_rcv_audience *spare = um_rcv_audience_recycle(before);
    if (topic->spare == NULL) {
        topic->spare = spare;
    } else {
        um_free(spare);
    }
}

/* With the memory for the next change, which may be that somebody goes. */
static bool start_hearing(lbm_rcv_t *rcv)
{
    struct um_rcv_topic *topic = rcv->topic;
    unsigned count = topic->audience != NULL ? topic->audience->count + 1 : 1;
    struct um_rcv_audience *next = um_rcv_audience_new(count);
    struct um_rcv_audience *spare = next == NULL || count == 1 ? NULL : um_rcv_audience_new(count);
    if (next == NULL || (spare == NULL && count > 1)) {
        um_free(next);
        um_error_nomem("receivers of a topic", count * sizeof rcv);
        return false;
    }
    um_free(topic->spare);
    topic->spare = spare;
    rcv->started = true;
    um_list_remove(&rcv->topic_node); /* they are in the order of their start */
    um_list_push_back(&topic->receivers, &rcv->topic_node);
    publish(topic, next);
    return true;
}

static void stop_hearing(lbm_rcv_t *rcv)
{
    struct um_rcv_topic *topic = rcv->topic;
    rcv->started = false;
    if (topic->audience->count == 1) {
        publish(topic, um_rcv_audience_nobody());
        return;
    }
    struct um_rcv_audience *next = topic->spare;
    topic->spare = NULL;
    publish(topic, next);
}

void um_rcv_start(lbm_rcv_t *rcv, uint64_t now_ns)
{
    struct um_rcv_topic *topic = rcv->topic;
    look_for_sources(topic);
    if (topic->tr == NULL || (!rcv->started && !start_hearing(rcv))) {
        um_log(UM_LOG_ERR, "Core-20203-4", "topic [%s]: not resolved yet, trying again: %s", topic->base.name,
               um_errmsg());
        um_timer_arm(um_rcv_wheel(topic), &rcv->timer, now_ns + START_RETRY_NS);
        return;
    }
    um_rcv_apply_thresholds(topic);
    um_resolver_receive(topic->base.ctx->resolver, topic->tr, rcv->wildcard != NULL);
}

/* Not started yet, or the linger of an internal receiver is over. */
static void on_timer(struct um_timer *timer, uint64_t now_ns)
{
    lbm_rcv_t *rcv = UM_CONTAINER_OF(timer, lbm_rcv_t, timer);
    if (rcv->topic->tr == NULL || !rcv->started) {
        um_rcv_start(rcv, now_ns);
    } else if (rcv->wildcard != NULL) {
        um_wildcard_linger_over(rcv);
    }
}

/* What only some receivers have. */
static bool make_part(lbm_rcv_t *rcv, lbm_event_queue_t *evq, const lbm_wildcard_rcv_t *wildcard)
{
    if (wildcard != NULL) {
        rcv->match = um_calloc(1, sizeof *rcv->match);
        if (rcv->match != NULL) {
            rcv->match->rcv = rcv;
            um_list_init(&rcv->match->node);
            um_list_init(&rcv->match->silent_node);
        }
        return rcv->match != NULL;
    }
    if (evq != NULL) {
        rcv->events = um_calloc(1, sizeof *rcv->events);
        if (rcv->events != NULL) {
            rcv->events->rcv = rcv;
            um_event_owner_init(&rcv->events->owner, evq);
        }
        return rcv->events != NULL;
    }
    return true;
}

lbm_rcv_t *um_rcv_new(struct um_rcv_topic *topic, lbm_rcv_cb_proc proc, void *clientd, lbm_event_queue_t *evq,
                      lbm_wildcard_rcv_t *wildcard)
{
    lbm_rcv_t *rcv = um_calloc(1, sizeof *rcv);
    if (rcv == NULL || !make_part(rcv, evq, wildcard)) {
        um_free(rcv);
        um_error_nomem("receiver", sizeof *rcv);
        return NULL;
    }
    rcv->magic = UM_RECEIVER_MAGIC;
    rcv->ctx = topic->base.ctx;
    rcv->topic = topic;
    rcv->proc = proc;
    rcv->clientd = clientd;
    rcv->evq = evq;
    um_rcv_channels_want(rcv, topic->opts->null_channel_behavior, topic->opts->unrecognized_channel_behavior);
    rcv->indirect = evq != NULL || rcv->wants_channels_only;
    rcv->wildcard = wildcard;
    rcv->collector = wildcard != NULL ? wildcard->collector : NULL;
    atomic_init(&rcv->refs, 1);
    um_list_init(&rcv->ctx_node);
    um_timer_init(&rcv->timer, on_timer);
    um_list_push_back(&topic->receivers, &rcv->topic_node);
    stop_idling(topic);
    return rcv;
}

static void leave_sources(struct um_rcv_topic *topic)
{
    lbm_context_t *ctx = topic->base.ctx;
    struct um_list *node;
    while ((node = um_list_first(&topic->sources)) != NULL) {
        um_rcv_source_leave(UM_CONTAINER_OF(node, struct um_rcv_source, node));
    }
    if (topic->audience != NULL) {
        um_rcv_audience_unref(topic->audience);
        topic->audience = NULL;
    }
    um_free(topic->spare);
    topic->spare = NULL;
    if (topic->tr != NULL) {
        um_resolver_unsubscribe(ctx->resolver, topic->tr);
        topic->tr = NULL;
    }
    um_join_retries_forget_topic(ctx->join_retries, &topic->retries, um_loop_now(ctx->loop));
    um_rcv_joins_forget_topic(ctx->rcv_joins, &topic->joins);
    um_rcv_forget_endings(topic); /* whoever comes next has been told nothing */
}

/* It is there, but while flows of other loops still have the list of the last change. */
int um_rcv_may_detach(lbm_rcv_t *rcv)
{
    struct um_rcv_topic *topic = rcv->topic;
    bool needed = rcv->started && topic->audience->count > 1;
    if (needed && topic->spare == NULL) {
        topic->spare = um_rcv_audience_new(topic->audience->count);
    }
    return !needed || topic->spare != NULL
               ? 0
               : um_error_nomem("receivers of a topic", topic->audience->count * sizeof rcv);
}

void um_rcv_detach(lbm_rcv_t *rcv)
{
    struct um_rcv_topic *topic = rcv->topic;
    bool last = topic->receivers.next == &rcv->topic_node && rcv->topic_node.next == &topic->receivers;
    if (rcv->hf != NULL) {
        rcv->hf->closing = true;
    }
    if (!last && rcv->started) {
        stop_hearing(rcv);
    }
    um_timer_cancel(um_rcv_wheel(topic), &rcv->timer);
    um_list_remove(&rcv->topic_node);
    um_list_remove(&rcv->ctx_node);
    if (rcv->wildcard != NULL) {
        um_list_remove(&rcv->match->node);
    }
    um_wildcard_heard(rcv);
    if (last) {
        leave_sources(topic);
    } else {
        um_rcv_apply_thresholds(topic);
        um_rcv_sources_release(rcv->ctx); /* its collector may have been the full one */
    }
    um_rcv_hf_close(rcv);
    rcv->topic = NULL;
    rcv->magic = 0;
    um_rcv_topic_discard(topic);
}

int um_receiver_check(const lbm_rcv_t *rcv, const char *api)
{
    if (rcv == NULL || rcv->magic != UM_RECEIVER_MAGIC) {
        return um_error(UM_EINVAL, "CoreApi-20203-5", "%s: rcv %p: must be a live receiver", api, (const void *)rcv);
    }
    return um_context_check(rcv->ctx, api);
}

struct create {
    struct um_rcv_topic *topic;
    lbm_rcv_cb_proc proc;
    void *clientd;
    lbm_event_queue_t *evq;
    const struct um_channel_list *channels; /* NULL: none */
    const char *api;
    lbm_rcv_t **rcvp;      /* NULL: */
    lbm_hf_rcv_t **hfrcvp; /* it is to merge its sources; or, when this is NULL, too: */
    lbm_hfx_t *hfx;        /* to be a member of this one */
    lbm_hfx_rcv_t **hfxrcvp;
};

/* The order of a topic's sources is that of whoever had them joined. */
static void warn_of_order(const struct um_rcv_topic *topic, bool hf)
{
    if (!hf && um_rcv_hf_only(topic) && !um_list_empty(&topic->sources) && topic->opts->ordered_delivery == 1) {
        um_log(UM_LOG_WARNING, "Core-20203-12",
               "topic [%s]: its sources were joined for a hot failover receiver alone: over LBT-RM, LBT-RU and LBT-IPC "
               "this receiver gets their messages in order of arrival; create it before that one",
               topic->base.name);
    }
}

static int check_hot_link(const struct um_rcv_topic *topic, bool hf)
{
    return !hf || topic->opts->use_hotlink == 0
               ? 0
               : um_error(UM_EOPNOTSUPP, "CoreApi-11458-101",
                          "lbm_hf_rcv_create: topic [%s]: use_hotlink 1: must be 0 for a hot failover receiver",
                          topic->base.name);
}

/* It has not started. */
static void unmake(lbm_rcv_t *rcv)
{
    if (rcv != NULL) {
        um_list_remove(&rcv->topic_node);
        um_rcv_unref(rcv);
    }
}

/* Callbacks may follow at once, so the caller's pointer is set first; they come from the timer, not from inside this
 * call, because the caller may hold a lock that its callbacks take. */
static int create_on_loop(void *arg)
{
    struct create *create = arg;
    struct um_collector_link *collector;
    if (um_collector_attach(create->proc, create->clientd, create->topic->base.ctx, &collector) != 0) {
        return -1;
    }
    bool hf = create->hfrcvp != NULL || create->hfx != NULL;
    if (check_hot_link(create->topic, hf) != 0) {
        um_collector_detach(collector);
        return -1;
    }
    warn_of_order(create->topic, hf);
    lbm_rcv_t *rcv = um_rcv_new(create->topic, create->proc, create->clientd, create->evq, NULL);
    struct um_channel_call call = {.rcv = rcv, .api = create->api};
    if (rcv == NULL || um_rcv_channels_begin(&call, create->channels) != 0 ||
        (hf && um_rcv_hf_attach(rcv, create->hfx) != 0)) {
        unmake(rcv);
        um_collector_detach(collector);
        return -1;
    }
    create->topic->awaited = false;
    rcv->collector = collector;
    um_list_push_back(&rcv->ctx->receivers, &rcv->ctx_node);
    atomic_fetch_add(&rcv->ctx->live_objects, 1);
    um_object_count(UM_OBJECT_RECEIVER, 1);
    UM_DEBUG(UM_DEBUG_OBJECT, "receiver %p of topic[%s] in context %p", (void *)rcv, create->topic->base.name,
             (void *)rcv->ctx);
    um_timer_arm(um_rcv_wheel(rcv->topic), &rcv->timer, 0);
    um_monitored_receiver_created(rcv);
    if (create->hfx != NULL) {
        *create->hfxrcvp = rcv->hf->member;
        um_hfx_member_open(rcv->hf->member);
    } else if (hf) {
        *create->hfrcvp = rcv->hf;
    } else {
        *create->rcvp = rcv;
    }
    return 0;
}

static int create_receiver(struct create *create, lbm_context_t *ctx, lbm_topic_t *topic)
{
    const char *api = create->api;
    lbm_rcv_cb_proc proc = create->proc;
    lbm_event_queue_t *evq = create->evq;
    if (um_context_check_messaging(ctx, api) != 0) {
        return -1;
    }
    if ((create->rcvp == NULL && create->hfrcvp == NULL && create->hfx == NULL) || proc == NULL) {
        return um_error(UM_EINVAL, "CoreApi-20203-6", "%s: %s: must not be NULL", api, proc == NULL ? "proc" : "rcvp");
    }
    if (um_topic_check(topic, ctx, UM_TOPIC_RECEIVER, api) != 0 ||
        (evq != NULL && um_event_queue_check(evq, api) != 0) ||
        um_collector_check_receiver(proc, create->clientd, evq, api) != 0) {
        return -1;
    }
    create->topic = (struct um_rcv_topic *)topic;
    return um_loop_call_api(ctx->loop, api, create_on_loop, create);
}

int um_receiver_create(lbm_rcv_t **rcvp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_rcv_cb_proc proc, void *clientd,
                       lbm_event_queue_t *evq, const struct um_channel_list *channels, const char *api)
{
    struct create create = {
        .proc = proc, .clientd = clientd, .evq = evq, .channels = channels, .api = api, .rcvp = rcvp};
    return create_receiver(&create, ctx, topic);
}

int um_receiver_create_hf(lbm_hf_rcv_t **hfrcvp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_rcv_cb_proc proc,
                          void *clientd, lbm_event_queue_t *evq, const struct um_channel_list *channels,
                          const char *api)
{
    struct create create = {
        .proc = proc, .clientd = clientd, .evq = evq, .channels = channels, .api = api, .hfrcvp = hfrcvp};
    return create_receiver(&create, ctx, topic);
}

int um_receiver_create_hfx(lbm_hfx_rcv_t **out, lbm_hfx_t *hfx, lbm_context_t *ctx, lbm_topic_t *topic, void *clientd)
{
    struct create create = {.proc = hfx->proc, .clientd = clientd, .evq = hfx->evq, .api = "lbm_hfx_rcv_create"};
    create.hfx = hfx;
    create.hfxrcvp = out;
    return create_receiver(&create, ctx, topic);
}

lbm_hf_rcv_t *um_receiver_hf(const lbm_rcv_t *rcv)
{
    return rcv->hf != NULL && rcv->hf->member == NULL ? rcv->hf : NULL;
}

bool um_receiver_is_inner(const lbm_rcv_t *rcv)
{
    return rcv->hf != NULL;
}

lbm_rcv_t *um_receiver_of_hf(const lbm_hf_rcv_t *hf)
{
    return hf->rcv;
}

int um_receiver_check_hf(const lbm_hf_rcv_t *hf, const char *api)
{
    if (hf == NULL || hf->magic != UM_HF_RECEIVER_MAGIC) {
        return um_error(UM_EINVAL, "CoreApi-20203-13", "%s: hfrcv %p: must be a live hot failover receiver", api,
                        (const void *)hf);
    }
    return um_receiver_check(hf->rcv, api);
}

static int delete_on_loop(void *arg)
{
    lbm_rcv_t *rcv = arg;
    if (um_rcv_may_detach(rcv) != 0) {
        return -1;
    }
    um_rcv_detach(rcv);
    return 0;
}

/* No flow calls it any more. */
static int forget_collector(void *arg)
{
    lbm_rcv_t *rcv = arg;
    um_collector_detach(rcv->collector);
    rcv->collector = NULL;
    um_object_count(UM_OBJECT_RECEIVER, -1);
    UM_DEBUG(UM_DEBUG_OBJECT, "receiver %p ends", (void *)rcv);
    return 0;
}

static void on_events_idle(struct um_event_owner *owner)
{
    um_rcv_unref(UM_CONTAINER_OF(owner, struct um_rcv_events, owner)->rcv);
}

struct deletion {
    lbm_context_t *ctx;
    const char *api;
    int (*detach)(void *arg);
    int (*rest)(void *arg);
    void *arg;
    bool in_callback; /* of any loop */
    bool told_xsps;   /* out: the rest comes when they have heard of it */
};

static int refuse_for_xsps(const lbm_context_t *ctx, const char *api, bool in_callback)
{
    return !in_callback || atomic_load(&ctx->lanes.count) == 0
               ? 0
               : um_error(UM_EOP, "CoreApi-20203-11",
                          "%s: the context has XSPs: must not be called in a callback that runs on the thread of a "
                          "context or of an XSP",
                          api);
}

int um_rcv_may_delete(const lbm_context_t *ctx, const char *api)
{
    return um_loop_refuses(ctx->loop, api) != 0 ? -1 : refuse_for_xsps(ctx, api, um_loop_in_any());
}

/* XSPs come and go on this loop, so there are as many at the end of the call as at its beginning. */
static int detach_on_loop(void *arg)
{
    struct deletion *deletion = arg;
    if (refuse_for_xsps(deletion->ctx, deletion->api, deletion->in_callback) != 0) {
        return -1;
    }
    if (atomic_load(&deletion->ctx->lanes.count) == 0) {
        return deletion->detach(deletion->arg) != 0 ? -1 : deletion->rest(deletion->arg);
    }
    deletion->told_xsps = true;
    return deletion->detach(deletion->arg);
}

/* XSPs may call it until they have heard of its deletion. They are waited for outside the context's loop, which goes on
 * meanwhile; a thread that runs another loop might wait for itself in a circle. */
int um_rcv_delete_on_loops(lbm_context_t *ctx, const char *api, int (*detach)(void *arg), int (*rest)(void *arg),
                           void *arg)
{
    struct deletion deletion = {
        .ctx = ctx, .api = api, .detach = detach, .rest = rest, .arg = arg, .in_callback = um_loop_in_any()};
    if (um_loop_call_api(ctx->loop, api, detach_on_loop, &deletion) != 0) {
        return -1;
    }
    return !deletion.told_xsps ? 0 : um_rcv_lanes_sync(ctx) != 0 ? -1 : um_loop_call(ctx->loop, rest, arg);
}

int um_receiver_delete(lbm_rcv_t *rcv, lbm_event_queue_cancel_cb_info_t *cbinfo, const char *api)
{
    if (um_receiver_check(rcv, api) != 0 || (cbinfo != NULL && um_event_cancel_check(cbinfo, api) != 0)) {
        return -1;
    }
    if (rcv->wildcard != NULL) {
        return um_error(UM_EINVAL, "CoreApi-20203-10",
                        "%s: rcv %p belongs to a wildcard receiver: delete that one instead", api, (void *)rcv);
    }
    lbm_context_t *ctx = rcv->ctx;
    bool told;
    if (um_rcv_may_delete(ctx, api) != 0 || um_monitored_closing(rcv, ctx->loop, &told) != 0) {
        return -1;
    }
    int rc = um_rcv_delete_on_loops(ctx, api, delete_on_loop, forget_collector, rcv);
    um_monitored_closed(told, rcv, rc == 0);
    if (rc != 0) {
        return -1;
    }
    atomic_fetch_sub(&ctx->live_objects, 1);
    if (rcv->events != NULL) {
        return um_event_owner_close(&rcv->events->owner, cbinfo, on_events_idle);
    }
    struct um_rcv_events none = {.rcv = rcv}; /* closed at once */
    um_event_owner_init(&none.owner, NULL);
    return um_event_owner_close(&none.owner, cbinfo, on_events_idle);
}

lbm_context_t *um_receiver_context(const lbm_rcv_t *rcv)
{
    return rcv->ctx;
}

lbm_event_queue_t *um_receiver_event_queue(const lbm_rcv_t *rcv)
{
    return rcv->evq;
}

/* ---- the resolver's events ---- */

void um_receivers_on_source(void *topic_user, const struct um_tr_source *source)
{
    um_rcv_source_join(topic_user, source);
}

void um_receivers_on_source_gone(void *topic_user, const struct um_tr_source *source)
{
    um_rcv_source_gone(topic_user, &source->info);
}

void um_receivers_on_no_source(void *topic_user, bool internal)
{
    struct um_rcv_topic *topic = topic_user;
    struct um_list *node;
    UM_LIST_FOREACH(node, &topic->receivers)
    {
        lbm_rcv_t *rcv = UM_CONTAINER_OF(node, lbm_rcv_t, topic_node);
        if (internal != (rcv->wildcard != NULL)) {
            continue;
        }
        if (internal) {
            um_wildcard_linger(rcv);
        } else if (topic->opts->resolution_no_source_notification_threshold != 0 && atomic_load(&topic->ready) == 0) {
            um_rcv_deliver_event(rcv, LBM_MSG_NO_SOURCE_NOTIFICATION, topic->base.name, NULL);
        }
    }
}
