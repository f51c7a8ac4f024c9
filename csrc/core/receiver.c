/* Receiver topics and receivers: lookup, creation and deletion, handing messages
 * to callbacks and queues, live options. Objects live on the loop; calls from
 * other threads go through its mailbox. */
#include <string.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "core/um_object_counts.h"
#include "core/um_rcv_private.h"

#define WILDCARD_NO_SOURCE_QUERIES 10u /* unanswered queries before an internal receiver lingers */
#define START_RETRY_NS UM_NS_PER_SEC

int um_receivers_init(lbm_context_t *ctx)
{
    um_map_init(&ctx->rcv_topics, NULL);
    um_list_init(&ctx->receivers);
    um_list_init(&ctx->wildcard_receivers);
    um_list_init(&ctx->held_sources);
    return 0;
}

static void free_topic(struct um_rcv_topic *topic)
{
    um_rcv_forget_endings(topic);
    um_options_clear(UM_SCOPE_RECEIVER, &topic->opts);
    um_topic_fini(&topic->base);
    um_free(topic);
}

static void free_cached_topic(const void *key, size_t len, void *value, void *arg)
{
    free_topic(value);
}

void um_receivers_destroy(lbm_context_t *ctx)
{
    um_map_foreach(&ctx->rcv_topics, free_cached_topic, NULL);
    um_map_clear(&ctx->rcv_topics);
}

/* ---- topics ---- */

struct um_rcv_topic *um_rcv_topic_find(lbm_context_t *ctx, const char *name)
{
    return um_map_get(&ctx->rcv_topics, name, strlen(name));
}

struct um_rcv_topic *um_rcv_topic_add(lbm_context_t *ctx, const char *name, struct um_receiver_options *opts)
{
    struct um_rcv_topic *topic = um_calloc(1, sizeof *topic);
    if (topic == NULL || um_topic_init(&topic->base, ctx, UM_TOPIC_RECEIVER, name) != 0) {
        um_free(topic);
        um_error_nomem("receiver topic", sizeof *topic);
        return NULL;
    }
    if (um_map_put(&ctx->rcv_topics, name, strlen(name), topic) != 0) {
        um_topic_fini(&topic->base);
        um_free(topic);
        um_error_nomem("receiver topic", sizeof *topic);
        return NULL;
    }
    topic->opts = *opts;
    um_list_init(&topic->receivers);
    um_list_init(&topic->sources);
    um_list_init(&topic->endings);
    return topic;
}

void um_rcv_topic_discard(struct um_rcv_topic *topic)
{
    if (!topic->looked_up && um_list_empty(&topic->receivers)) {
        um_map_remove(&topic->base.ctx->rcv_topics, topic->base.name, strlen(topic->base.name));
        free_topic(topic);
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
        lookup->differs = !um_options_equal(UM_SCOPE_RECEIVER, &lookup->topic->opts, lookup->opts);
    }
    if (lookup->topic != NULL) {
        lookup->topic->looked_up = true;
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

/* ---- handing over messages ---- */

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
    static struct um_log_limit limit;
    um_log_limited(&limit, um_clock_ns(), UM_NS_PER_SEC, UM_LOG_WARNING, "Core-20203-2",
                   "topic [%s]: message receiver function returned -1; the value must be 0", msg->pub.topic_name);
}

static void run_event(struct um_event *event)
{
    struct um_msg *msg = UM_CONTAINER_OF(event, struct um_msg, event);
    lbm_rcv_t *rcv = msg->rcv;
    um_rcv_call(rcv, msg);
    um_msg_release(msg);
    um_rcv_unref(rcv);
}

static void discard_event(struct um_event *event)
{
    struct um_msg *msg = UM_CONTAINER_OF(event, struct um_msg, event);
    lbm_rcv_t *rcv = msg->rcv;
    um_msg_release(msg);
    um_rcv_unref(rcv);
}

static const struct um_event_ops EVENT_OPS = {run_event, discard_event, UM_EVENT_DATA, false};
static const struct um_event_ops WILDCARD_EVENT_OPS = {run_event, discard_event, UM_EVENT_WILDCARD, false};

/* Takes over the library hold of `msg`. */
static void enqueue(lbm_rcv_t *rcv, struct um_msg *msg)
{
    atomic_fetch_add_explicit(&rcv->refs, 1, memory_order_relaxed);
    msg->rcv = rcv;
    msg->event.ops = rcv->wildcard != NULL ? &WILDCARD_EVENT_OPS : &EVENT_OPS;
    msg->event.owner = rcv->events;
    um_event_enqueue(rcv->evq, rcv->events, &msg->event);
}

static void count_not_queued(lbm_rcv_t *rcv)
{
    rcv->not_queued++;
    static struct um_log_limit limit;
    um_log_limited(&limit, um_clock_ns(), UM_NS_PER_SEC, UM_LOG_ERR, "Core-20203-3",
                   "topic [%s]: out of memory for an event; it is not delivered", rcv->topic->base.name);
}

/* BOS of every session that was active before this receiver existed. */
static void greet(lbm_rcv_t *rcv)
{
    struct um_list *node;
    rcv->greeted = true;
    UM_LIST_FOREACH(node, &rcv->topic->sources)
    {
        struct um_rcv_source *source = UM_CONTAINER_OF(node, struct um_rcv_source, node);
        if (source->bos_seen) {
            um_rcv_deliver_event(rcv, LBM_MSG_BOS, source->msg->pub.source, source->clientd);
        }
    }
}

void um_rcv_deliver(lbm_rcv_t *rcv, struct um_msg *msg)
{
    if (__builtin_expect(!rcv->greeted, 0)) {
        greet(rcv);
    }
    if (rcv->evq != NULL) {
        struct um_msg *copy = um_msg_clone(msg);
        if (copy == NULL) {
            count_not_queued(rcv);
            return;
        }
        enqueue(rcv, copy);
        return;
    }
    if (__builtin_expect(rcv->ctx->opts.receiver_callback_service_time_enabled != 0, 0)) {
        uint64_t before_ns = um_clock_ns();
        um_rcv_call(rcv, msg);
        record_service_time(rcv->ctx, um_clock_ns() - before_ns);
        return;
    }
    um_rcv_call(rcv, msg);
}

void um_rcv_deliver_event(lbm_rcv_t *rcv, int type, const char *source, void *source_clientd)
{
    struct um_msg *msg = um_msg_create(source, rcv->topic->base.name);
    if (msg == NULL) {
        count_not_queued(rcv);
        return;
    }
    uint64_t wall_ns = um_loop_wall_now(rcv->ctx->loop);
    msg->pub.type = type;
    msg->pub.source_clientd = source_clientd;
    msg->pub.tsp.tv_sec = (long)(wall_ns / UM_NS_PER_SEC);
    msg->pub.tsp.tv_usec = (long)(wall_ns % UM_NS_PER_SEC / 1000);
    if (rcv->evq != NULL) {
        enqueue(rcv, msg);
        return;
    }
    um_rcv_call(rcv, msg);
    um_msg_release(msg);
}

/* ---- receivers ---- */

void um_rcv_unref(lbm_rcv_t *rcv)
{
    if (atomic_fetch_sub_explicit(&rcv->refs, 1, memory_order_acq_rel) == 1) {
        um_free(rcv);
    }
}

/* Queries unanswered until "no source": the application's threshold, or what internal receivers need for their linger.
 */
static void apply_thresholds(struct um_rcv_topic *topic)
{
    if (topic->tr == NULL) {
        return;
    }
    uint64_t no_source = topic->opts.resolution_no_source_notification_threshold;
    struct um_list *node;
    UM_LIST_FOREACH(node, &topic->receivers)
    {
        if (no_source == 0 && UM_CONTAINER_OF(node, lbm_rcv_t, topic_node)->wildcard != NULL) {
            no_source = WILDCARD_NO_SOURCE_QUERIES;
        }
    }
    um_resolver_topic_set_thresholds(topic->tr, topic->opts.resolution_number_of_sources_query_threshold, no_source);
}

void um_rcv_start(lbm_rcv_t *rcv, uint64_t now_ns)
{
    struct um_rcv_topic *topic = rcv->topic;
    if (topic->tr == NULL) {
        topic->tr = um_resolver_subscribe(topic->base.ctx->resolver, topic->base.name, &topic->opts,
                                          rcv->wildcard != NULL, topic);
        if (topic->tr == NULL) {
            um_log(UM_LOG_ERR, "Core-20203-4", "topic [%s]: not resolved yet, trying again: %s", topic->base.name,
                   um_errmsg());
            um_timer_arm(um_rcv_wheel(topic), &rcv->timer, now_ns + START_RETRY_NS);
            return;
        }
    }
    apply_thresholds(topic);
    if (!rcv->greeted) {
        greet(rcv);
    }
}

/* Not started yet, or the linger of an internal receiver is over. */
static void on_timer(struct um_timer *timer, uint64_t now_ns)
{
    lbm_rcv_t *rcv = UM_CONTAINER_OF(timer, lbm_rcv_t, timer);
    if (rcv->topic->tr == NULL || !rcv->greeted) {
        um_rcv_start(rcv, now_ns);
    } else if (rcv->wildcard != NULL) {
        um_wildcard_linger_over(rcv);
    }
}

lbm_rcv_t *um_rcv_new(struct um_rcv_topic *topic, lbm_rcv_cb_proc proc, void *clientd, lbm_event_queue_t *evq,
                      lbm_wildcard_rcv_t *wildcard)
{
    lbm_rcv_t *rcv = um_calloc(1, sizeof *rcv);
    if (rcv == NULL) {
        um_error_nomem("receiver", sizeof *rcv);
        return NULL;
    }
    rcv->magic = UM_RECEIVER_MAGIC;
    rcv->ctx = topic->base.ctx;
    rcv->topic = topic;
    rcv->proc = proc;
    rcv->clientd = clientd;
    rcv->evq = evq;
    rcv->wildcard = wildcard;
    rcv->collector = wildcard != NULL ? wildcard->collector : NULL;
    atomic_init(&rcv->refs, 1);
    um_event_owner_init(&rcv->own_events, evq);
    rcv->events = wildcard != NULL ? &wildcard->events : &rcv->own_events;
    um_list_init(&rcv->ctx_node);
    um_list_init(&rcv->wildcard_node);
    um_timer_init(&rcv->timer, on_timer);
    um_rcv_topic_counts(topic, &rcv->before);
    um_list_push_back(&topic->receivers, &rcv->topic_node);
    topic->generation++;
    return rcv;
}

void um_rcv_detach(lbm_rcv_t *rcv)
{
    struct um_rcv_topic *topic = rcv->topic;
    um_timer_cancel(um_rcv_wheel(topic), &rcv->timer);
    um_list_remove(&rcv->topic_node);
    topic->generation++;
    um_list_remove(&rcv->ctx_node);
    um_list_remove(&rcv->wildcard_node);
    rcv->topic = NULL;
    rcv->magic = 0;
    if (!um_list_empty(&topic->receivers)) {
        apply_thresholds(topic);
        um_rcv_sources_release(rcv->ctx); /* its collector may have been the full one */
        return;
    }
    struct um_list *node;
    while ((node = um_list_first(&topic->sources)) != NULL) {
        um_rcv_source_leave(UM_CONTAINER_OF(node, struct um_rcv_source, node));
    }
    if (topic->tr != NULL) {
        um_resolver_unsubscribe(topic->base.ctx->resolver, topic->tr);
        topic->tr = NULL;
    }
    um_rcv_forget_endings(topic); /* whoever comes next has been told nothing */
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
    lbm_rcv_t **rcvp;
};

/* Callbacks may follow at once, so the caller's pointer is set first; they come from the timer, not from inside this
 * call, because the caller may hold a lock that its callbacks take. */
static int create_on_loop(void *arg)
{
    struct create *create = arg;
    struct um_collector_link *collector;
    if (um_collector_attach(create->proc, create->clientd, create->topic->base.ctx, &collector) != 0) {
        return -1;
    }
    lbm_rcv_t *rcv = um_rcv_new(create->topic, create->proc, create->clientd, create->evq, NULL);
    if (rcv == NULL) {
        um_collector_detach(collector);
        return -1;
    }
    rcv->collector = collector;
    um_list_push_back(&rcv->ctx->receivers, &rcv->ctx_node);
    atomic_fetch_add(&rcv->ctx->live_objects, 1);
    um_object_count(UM_OBJECT_RECEIVER, 1);
    um_timer_arm(um_rcv_wheel(rcv->topic), &rcv->timer, 0);
    *create->rcvp = rcv;
    return 0;
}

int um_receiver_create(lbm_rcv_t **rcvp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_rcv_cb_proc proc, void *clientd,
                       lbm_event_queue_t *evq)
{
    static const char api[] = "lbm_rcv_create";
    if (um_context_check_messaging(ctx, api) != 0) {
        return -1;
    }
    if (rcvp == NULL || proc == NULL) {
        return um_error(UM_EINVAL, "CoreApi-20203-6", "%s: %s: must not be NULL", api, rcvp == NULL ? "rcvp" : "proc");
    }
    if (um_topic_check(topic, ctx, UM_TOPIC_RECEIVER, api) != 0 ||
        (evq != NULL && um_event_queue_check(evq, api) != 0) ||
        um_collector_check_receiver(proc, clientd, evq, api) != 0) {
        return -1;
    }
    struct create create = {(struct um_rcv_topic *)topic, proc, clientd, evq, rcvp};
    return um_loop_call_api(ctx->loop, api, create_on_loop, &create);
}

static int delete_on_loop(void *arg)
{
    lbm_rcv_t *rcv = arg;
    um_rcv_detach(rcv);
    um_collector_detach(rcv->collector);
    rcv->collector = NULL;
    um_object_count(UM_OBJECT_RECEIVER, -1);
    return 0;
}

static void on_events_idle(struct um_event_owner *owner)
{
    um_rcv_unref(UM_CONTAINER_OF(owner, lbm_rcv_t, own_events));
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
    if (um_loop_call_api(ctx->loop, api, delete_on_loop, rcv) != 0) {
        return -1;
    }
    atomic_fetch_sub(&ctx->live_objects, 1);
    return um_event_owner_close(&rcv->own_events, cbinfo, on_events_idle);
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
    struct um_rcv_source *joined = um_rcv_source_find(topic_user, &source->info);
    if (joined != NULL) {
        um_rcv_source_withdrawn(joined);
    }
}

void um_receivers_on_no_source(void *topic_user)
{
    struct um_rcv_topic *topic = topic_user;
    struct um_list *node;
    UM_LIST_FOREACH(node, &topic->receivers)
    {
        lbm_rcv_t *rcv = UM_CONTAINER_OF(node, lbm_rcv_t, topic_node);
        if (rcv->wildcard != NULL) {
            um_wildcard_linger(rcv);
        } else if (topic->opts.resolution_no_source_notification_threshold != 0) {
            um_rcv_deliver_event(rcv, LBM_MSG_NO_SOURCE_NOTIFICATION, "", NULL);
        }
    }
}

/* ---- live options ---- */

struct option_call {
    lbm_rcv_t *rcv;
    const char *name;
    const void *value;
    size_t value_len;
    const char *text;
    void *out;
    size_t *out_len;
    int *count;
    lbm_config_option_t *dump;
};

static int setopt_on_loop(void *arg)
{
    struct option_call *c = arg;
    struct um_receiver_options *opts = &c->rcv->topic->opts;
    int rc = c->text != NULL ? um_options_str_set(UM_SCOPE_RECEIVER, opts, c->name, c->text, true)
                             : um_options_set(UM_SCOPE_RECEIVER, opts, c->name, c->value, c->value_len, true);
    if (rc == 0) {
        apply_thresholds(c->rcv->topic);
    }
    return rc;
}

static int getopt_on_loop(void *arg)
{
    struct option_call *c = arg;
    return um_options_get(UM_SCOPE_RECEIVER, &c->rcv->topic->opts, c->name, c->out, c->out_len);
}

static int str_getopt_on_loop(void *arg)
{
    struct option_call *c = arg;
    return um_options_str_get(UM_SCOPE_RECEIVER, &c->rcv->topic->opts, c->name, c->out, c->out_len);
}

static int dump_on_loop(void *arg)
{
    struct option_call *c = arg;
    return um_options_dump(UM_SCOPE_RECEIVER, &c->rcv->topic->opts, c->count, c->dump);
}

int um_receiver_setopt(lbm_rcv_t *rcv, const char *name, const void *value, size_t len, const char *text)
{
    struct option_call call = {.rcv = rcv, .name = name, .value = value, .value_len = len, .text = text};
    return um_loop_call(rcv->ctx->loop, setopt_on_loop, &call);
}

int um_receiver_getopt(lbm_rcv_t *rcv, const char *name, void *value, size_t *len)
{
    struct option_call call = {.rcv = rcv, .name = name, .out = value, .out_len = len};
    return um_loop_call(rcv->ctx->loop, getopt_on_loop, &call);
}

int um_receiver_str_getopt(lbm_rcv_t *rcv, const char *name, char *text, size_t *len)
{
    struct option_call call = {.rcv = rcv, .name = name, .out = text, .out_len = len};
    return um_loop_call(rcv->ctx->loop, str_getopt_on_loop, &call);
}

int um_receiver_dump(lbm_rcv_t *rcv, int *count, lbm_config_option_t *out)
{
    struct option_call call = {.rcv = rcv, .count = count, .dump = out};
    return um_loop_call(rcv->ctx->loop, dump_on_loop, &call);
}
