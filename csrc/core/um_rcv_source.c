/* One topic of one source as topic resolution and the bounds on joins see it: when
 * it is joined, whether it has proved itself, what follows its end. What receives
 * from it is its flow, which may belong to another loop. Runs on the loop of the
 * context. A join that brings nothing is tried again. */
#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "core/um_rcv_mail.h"
#include "core/um_rcv_private.h"
#include "core/um_rcv_routes.h"
#include "wire/um_source_string.h"

static lbm_context_t *context_of(const struct um_rcv_source *source)
{
    return source->topic->base.ctx;
}

bool um_rcv_same_source(const lbm_transport_source_info_t *a, const lbm_transport_source_info_t *b)
{
    return a->type == b->type && a->src_ip == b->src_ip && a->src_port == b->src_port &&
           a->session_id == b->session_id && a->topic_idx == b->topic_idx && a->mc_group == b->mc_group &&
           a->dest_port == b->dest_port && a->transport_id == b->transport_id;
}

struct um_rcv_source *um_rcv_source_find(struct um_rcv_topic *topic, const lbm_transport_source_info_t *info)
{
    struct um_rcv_joining *joining = um_rcv_joins_find(topic->base.ctx->rcv_joins, &topic->joins, info);
    return joining == NULL ? NULL : UM_CONTAINER_OF(joining, struct um_rcv_source, joining);
}

/* ---- news of the flow ---- */

static void notify_deleted(struct um_rcv_source *source)
{
    const lbm_rcv_src_notification_func_t *func = &source->flow.opts->source_notification_function;
    if (func->delete_func != NULL) {
        char text[UM_SOURCE_STRING_MAX];
        func->delete_func(um_rcv_flow_source(&source->flow, text), func->clientd, source->flow.clientd);
    }
}

void um_rcv_source_on_bos(struct um_rcv_source *source)
{
    lbm_context_t *ctx = context_of(source);
    um_rcv_joins_heard(ctx->rcv_joins, &source->joining, um_loop_now(ctx->loop));
    if (source->retry != NULL) {
        um_join_retry_forget(source->retry, true, um_loop_now(ctx->loop));
        source->retry = NULL;
    }
}

void um_rcv_source_on_proof(struct um_rcv_source *source)
{
    lbm_context_t *ctx = context_of(source);
    source->proved = true;
    source->topic->proved++;
    um_rcv_hearsay_remove(ctx->rcv_hearsay, &source->hearer);
    um_resolver_source_used(ctx->resolver, source->topic->base.name, &source->joining.offer.info);
    struct um_list *node;
    UM_LIST_FOREACH(node, &source->topic->receivers)
    {
        um_wildcard_heard(UM_CONTAINER_OF(node, lbm_rcv_t, topic_node));
    }
}

/* The join brought nothing. What ended a moment ago, or is not there at all, is left to its next advertisement. */
static void join_failed(struct um_rcv_source *source, const char *why)
{
    struct um_rcv_topic *topic = source->topic;
    lbm_context_t *ctx = context_of(source);
    lbm_transport_source_info_t info = source->joining.offer.info;
    struct um_join_retry *retry = source->retry;
    uint64_t now_ns = um_loop_now(ctx->loop);
    bool quiet = source->flow.stream.again || source->flow.stream.over;
    char text[UM_SOURCE_STRING_MAX];
    um_join_retries_count_failure(ctx->join_retries);
    um_log_limited(um_log_of(topic->base.name), now_ns, quiet ? UM_LOG_DEBUG : UM_LOG_NOTICE, "Core-20202-3",
                   "topic [%s]: source [%s] brings nothing: %s%s", topic->base.name,
                   um_rcv_flow_source(&source->flow, text), why, quiet ? "" : "; it is tried again every few seconds");
    source->retry = NULL;
    if (retry != NULL && !source->flow.stream.over) {
        um_join_retry_failed(retry, now_ns);
        return;
    }
    if (retry != NULL) {
        um_join_retry_forget(retry, false, now_ns);
    } else if (!quiet) {
        um_join_retries_keep(ctx->join_retries, &topic->retries, &info, false, now_ns);
    }
    um_resolver_source_ended(ctx->resolver, topic->base.name, &info);
}

/* No loop has anything of it any more. */
static void free_source(struct um_rcv_source *source)
{
    um_rcv_flow_fini(&source->flow);
    um_rcv_mail_destroy(source->flow.mail);
    if (source->route != NULL) {
        um_rcv_route_release(source->route);
    }
    um_free(source);
}

static void finish(struct um_rcv_source *source)
{
    if (source->flow.bos_seen) {
        notify_deleted(source);
    }
    free_source(source);
}

/* Its flow is over, or on another loop about to be. */
static void remove_source(struct um_rcv_source *source)
{
    lbm_context_t *ctx = context_of(source);
    uint64_t now_ns = um_loop_now(ctx->loop);
    um_list_remove(&source->node);
    um_rcv_hearsay_remove(ctx->rcv_hearsay, &source->hearer);
    source->topic->proved -= source->proved;
    if (source->retry != NULL) {
        um_join_retry_forget(source->retry, false, now_ns);
    }
    um_rcv_joins_end(ctx->rcv_joins, &source->joining, now_ns);
    if (source->flow.mail == NULL) {
        finish(source);
        return;
    }
    source->closing = true;
    source->topic->closing++;
    um_rcv_mail_order(source->flow.mail, UM_RCV_ORDER_CLOSE, NULL);
}

void um_rcv_source_on_closed(struct um_rcv_source *source)
{
    struct um_rcv_topic *topic = source->topic;
    finish(source);
    topic->closing--;
    um_rcv_topic_discard(topic);
}

/* A session that was lost without a word of its source is joined again: its other end may still be there. */
static void look_back(struct um_rcv_topic *topic, const lbm_transport_source_info_t *info, enum um_rcv_flow_end why,
                      bool over, bool proved)
{
    lbm_context_t *ctx = topic->base.ctx;
    uint64_t now_ns = um_loop_now(ctx->loop);
    if (why == UM_RCV_FLOW_WITHDRAWN || (why == UM_RCV_FLOW_LOST && over)) {
        um_rcv_note_ending(topic, info, now_ns);
    } else if (why == UM_RCV_FLOW_LOST) {
        um_join_retries_keep(ctx->join_retries, &topic->retries, info, proved, now_ns);
    }
    if (why != UM_RCV_FLOW_WITHDRAWN) {
        um_resolver_source_ended(ctx->resolver, topic->base.name, info);
    }
}

void um_rcv_source_on_end(struct um_rcv_source *source, enum um_rcv_flow_end why)
{
    struct um_rcv_topic *topic = source->topic;
    lbm_transport_source_info_t info = source->joining.offer.info;
    bool over = source->flow.stream.over, proved = source->proved;
    bool failed = why == UM_RCV_FLOW_FAILED || (why == UM_RCV_FLOW_LOST && !source->flow.bos_seen);
    if (failed) {
        join_failed(source, why == UM_RCV_FLOW_FAILED ? um_rcv_mail_failure(source->flow.mail)
                                                      : "nothing was received from it");
    }
    remove_source(source);
    if (!failed) {
        look_back(topic, &info, why, over, proved);
    }
    /* Without UDP queries nobody counts them unanswered: the linger starts with the loss of the last source. */
    if (um_list_empty(&topic->sources) && topic->base.ctx->opts.resolver_disable_udp_topic_resolution) {
        struct um_list *node;
        UM_LIST_FOREACH(node, &topic->receivers)
        {
            um_wildcard_linger(UM_CONTAINER_OF(node, lbm_rcv_t, topic_node));
        }
    }
}

/* What it tells after it was ordered to close is no news any more. */
void um_rcv_source_on_news(struct um_rcv_source *source, unsigned news, enum um_rcv_flow_end why)
{
    if ((news & UM_RCV_NEWS_BOS) != 0 && !source->closing) {
        um_rcv_source_on_bos(source);
    }
    if ((news & UM_RCV_NEWS_PROOF) != 0 && !source->closing) {
        um_rcv_source_on_proof(source);
    }
    if ((news & UM_RCV_NEWS_END) != 0 && !source->closing) {
        um_rcv_source_on_end(source, why);
    }
}

void um_rcv_sources_release(lbm_context_t *ctx)
{
    um_rcv_flows_release(&ctx->rcv_lane);
    um_rcv_lanes_release_held(ctx);
}

/* ---- joining and leaving ---- */

/* The cost function may reject a source; other costs choose between routes and mean nothing here. */
static bool rejected(struct um_rcv_topic *topic, const struct um_tr_source *found)
{
    const lbm_src_cost_func_t *func = &topic->base.ctx->opts.source_cost_evaluation_function;
    if (func->cost_cb == NULL) {
        return false;
    }
    lbm_uint32_t cost = found->cost < 0 ? 0 : (lbm_uint32_t)found->cost;
    return func->cost_cb(topic->base.name, &found->info, 0, cost, func->clientd) == LBM_SRC_COST_FUNCTION_REJECT;
}

static struct um_rcv_source *new_source(struct um_rcv_topic *topic, const lbm_transport_source_info_t *info,
                                        uint64_t now_ns)
{
    struct um_rcv_source *source = um_calloc(1, sizeof *source);
    if (source == NULL) {
        um_error_nomem("receiver's source", sizeof *source);
        return NULL;
    }
    source->topic = topic;
    source->joining.offer.info = *info; /* the flow looks at it before the join begins */
    um_rcv_hearer_init(&source->hearer);
    lbm_context_t *ctx = topic->base.ctx;
    if (um_rcv_route_take(ctx, info, &source->route) != 0) {
        um_free(source);
        return NULL;
    }
    struct um_rcv_lane *lane = source->route != NULL ? um_rcv_route_lane(source->route) : &ctx->rcv_lane;
    struct um_tr_source facts;
    bool known = um_resolver_source_facts(ctx->resolver, topic->base.name, info, &facts);
    int rc =
        um_rcv_flow_init(&source->flow, source, lane, um_rcv_ended_lately(topic, info, now_ns), known ? &facts : NULL);
    if (rc == 0 && lane != &ctx->rcv_lane && (source->flow.mail = um_rcv_mail_create(&source->flow)) == NULL) {
        um_error_nomem("mail of a source", sizeof *source);
        um_rcv_flow_fini(&source->flow);
        rc = -1;
    }
    if (rc != 0) {
        if (source->route != NULL) {
            um_rcv_route_release(source->route);
        }
        um_free(source);
        return NULL;
    }
    return source;
}

/* The object for the source, and its place among the joins under way. NULL + error. */
static struct um_rcv_source *begin_join(struct um_rcv_topic *topic, enum um_rcv_join_kind kind,
                                        const struct um_rcv_join_offer *offer, uint64_t now_ns)
{
    struct um_rcv_source *source = new_source(topic, &offer->info, now_ns);
    if (source != NULL &&
        um_rcv_joins_begin(topic->base.ctx->rcv_joins, &topic->joins, kind, offer, &source->joining, now_ns) != 0) {
        free_source(source);
        um_error_nomem("join", sizeof *offer);
        return NULL;
    }
    return source;
}

static void join(struct um_rcv_topic *topic, enum um_rcv_join_kind kind, const struct um_rcv_join_offer *offer,
                 struct um_join_retry *retry)
{
    lbm_context_t *ctx = topic->base.ctx;
    uint64_t now_ns = um_loop_now(ctx->loop);
    struct um_rcv_source *source = begin_join(topic, kind, offer, now_ns);
    if (source == NULL) {
        um_log_limited(um_log_of(topic->base.name), now_ns, UM_LOG_ERR, "Core-20202-2",
                       "topic [%s]: cannot receive from a source, trying again: %s", topic->base.name, um_errmsg());
        um_join_retries_count_failure(ctx->join_retries);
        if (retry != NULL) {
            um_join_retry_failed(retry, now_ns);
        } else {
            um_join_retries_keep(ctx->join_retries, &topic->retries, &offer->info, false, now_ns);
        }
        return;
    }
    source->retry = retry;
    um_rcv_audience_ref(topic->audience);
    if (source->flow.mail != NULL) {
        um_rcv_mail_order(source->flow.mail, UM_RCV_ORDER_BEGIN, topic->audience);
    } else if (um_rcv_flow_begin(&source->flow, topic->audience) != 0) {
        join_failed(source, um_errmsg());
        um_rcv_joins_end(ctx->rcv_joins, &source->joining, now_ns);
        free_source(source);
        return;
    }
    const void *session = source->flow.mail != NULL ? (const void *)source->route : source->flow.stream.session;
    um_list_push_back(&topic->sources, &source->node);
    um_rcv_hearsay_add(ctx->rcv_hearsay, &topic->hearsay, session, &source->hearer, now_ns);
    struct um_list *node;
    UM_LIST_FOREACH(node, &topic->receivers)
    {
        um_wildcard_keep(UM_CONTAINER_OF(node, lbm_rcv_t, topic_node));
    }
}

/* Joins that are tried again have a bound of their own. */
static void try_again(struct um_join_retry_topic *retries, struct um_join_retry *retry,
                      const lbm_transport_source_info_t *info, uint64_t now_ns)
{
    struct um_rcv_topic *topic = UM_CONTAINER_OF(retries, struct um_rcv_topic, retries);
    struct um_rcv_join_offer offer = {.info = *info};
    if (um_rcv_source_find(topic, info) != NULL) {
        um_join_retry_forget(retry, false, now_ns); /* it is being joined: if that fails, there will be an entry */
        return;
    }
    join(topic, UM_RCV_JOIN_FREE, &offer, retry);
}

static void join_given_up(struct um_join_retry_topic *retries, const lbm_transport_source_info_t *info, const char *why,
                          uint64_t now_ns)
{
    struct um_rcv_topic *topic = UM_CONTAINER_OF(retries, struct um_rcv_topic, retries);
    lbm_context_t *ctx = topic->base.ctx;
    char text[UM_SOURCE_STRING_MAX] = "";
    um_source_string_format(info, text, sizeof text);
    um_log_limited(um_log_of(topic->base.name), now_ns, UM_LOG_NOTICE, "Core-20202-5",
                   "topic [%s]: source [%s] is tried again when it is next advertised: %s", topic->base.name, text,
                   why);
    um_resolver_source_ended(ctx->resolver, topic->base.name, info);
}

const struct um_join_retry_ops um_rcv_join_retry_ops = {.attempt = try_again, .given_up = join_given_up};

/* Topic resolution says that it is gone. */
static void withdrawn(struct um_rcv_source *source)
{
    source->joining.withdrawn = true;
    if (source->flow.mail != NULL) {
        um_rcv_mail_order(source->flow.mail, UM_RCV_ORDER_WITHDRAWN, NULL);
    } else {
        um_rcv_flow_withdrawn(&source->flow);
    }
}

/* It is advertised again. */
static void keep(struct um_rcv_source *source)
{
    if (!source->joining.withdrawn) {
        return;
    }
    source->joining.withdrawn = false;
    if (source->flow.mail == NULL) {
        um_rcv_flow_keep(&source->flow);
    } else {
        um_rcv_mail_order(source->flow.mail, UM_RCV_ORDER_KEEP, NULL);
    }
}

void um_rcv_source_join(struct um_rcv_topic *topic, const struct um_tr_source *found)
{
    if (topic->audience == NULL) {
        return;
    }
    struct um_rcv_source *source = um_rcv_source_find(topic, &found->info);
    if (source != NULL) {
        keep(source);
        source->joining.heard_ns = um_loop_now(topic->base.ctx->loop);
        if (source->proved) {
            um_resolver_source_used(topic->base.ctx->resolver, topic->base.name, &found->info);
        }
        return;
    }
    lbm_context_t *ctx = topic->base.ctx;
    struct um_join_retry *retry = um_join_retries_find(ctx->join_retries, &topic->retries, &found->info);
    if (retry != NULL) {
        um_join_retry_heard(retry, um_loop_now(ctx->loop)); /* it has a time of its own */
        return;
    }
    struct um_rcv_join_offer offer = {found->info, found->cost, found->told_by};
    enum um_rcv_join_kind kind = um_rcv_routes_join_kind(ctx, &found->info);
    if (!rejected(topic, found) &&
        um_rcv_joins_may(ctx->rcv_joins, &topic->joins, kind, &offer, um_loop_now(ctx->loop))) {
        join(topic, kind, &offer, NULL);
    }
}

void um_rcv_source_gone(struct um_rcv_topic *topic, const lbm_transport_source_info_t *info)
{
    lbm_context_t *ctx = topic->base.ctx;
    struct um_rcv_source *source = um_rcv_source_find(topic, info);
    struct um_join_retry *retry = um_join_retries_find(ctx->join_retries, &topic->retries, info);
    um_rcv_joins_forget(ctx->rcv_joins, &topic->joins, info);
    if (source != NULL) {
        withdrawn(source);
    } else if (retry != NULL) {
        um_join_retry_forget(retry, false, um_loop_now(ctx->loop));
    }
}

static void join_again(struct um_rcv_join_topic *joins, const struct um_rcv_join_offer *offer, uint64_t now_ns)
{
    struct um_rcv_topic *topic = UM_CONTAINER_OF(joins, struct um_rcv_topic, joins);
    struct um_tr_source found = {
        .topic = topic->base.name, .info = offer->info, .cost = offer->cost, .told_by = offer->told_by};
    um_rcv_source_join(topic, &found);
}

static void yield_join(struct um_rcv_joining *joining, uint64_t now_ns)
{
    struct um_rcv_source *source = UM_CONTAINER_OF(joining, struct um_rcv_source, joining);
    if (source->retry != NULL && !joining->withdrawn) {
        um_join_retry_failed(source->retry, now_ns);
        source->retry = NULL;
    }
    um_rcv_source_leave(source);
}

/* A source that fell silent before its turn may be there all the same. */
static void join_later(struct um_rcv_join_topic *joins, const struct um_rcv_join_offer *offer, uint64_t now_ns)
{
    struct um_rcv_topic *topic = UM_CONTAINER_OF(joins, struct um_rcv_topic, joins);
    if (um_rcv_source_find(topic, &offer->info) != NULL) {
        return;
    }
    lbm_context_t *ctx = topic->base.ctx;
    if (!um_join_retries_keep(ctx->join_retries, &topic->retries, &offer->info, false, now_ns)) {
        um_resolver_source_ended(ctx->resolver, topic->base.name, &offer->info); /* whoever lists it is asked again */
    }
}

const struct um_rcv_join_ops um_rcv_join_ops = {join_again, yield_join, join_later};

static void make_way(struct um_rcv_hearer *hearer, uint64_t now_ns)
{
    struct um_rcv_source *source = UM_CONTAINER_OF(hearer, struct um_rcv_source, hearer);
    if (source->flow.mail != NULL) {
        um_rcv_mail_order(source->flow.mail, UM_RCV_ORDER_MAKE_WAY, NULL);
    } else {
        um_rcv_flow_make_way(&source->flow);
    }
}

const struct um_rcv_hearsay_ops um_rcv_hearsay_ops = {make_way};

void um_rcv_source_leave(struct um_rcv_source *source)
{
    if (source->flow.mail == NULL) {
        um_rcv_flow_close(&source->flow);
    }
    remove_source(source);
}

void um_rcv_sources_set_audience(struct um_rcv_topic *topic)
{
    struct um_list *node;
    UM_LIST_FOREACH(node, &topic->sources)
    {
        struct um_rcv_flow *flow = &UM_CONTAINER_OF(node, struct um_rcv_source, node)->flow;
        um_rcv_audience_ref(topic->audience);
        if (flow->mail != NULL) {
            um_rcv_mail_order(flow->mail, UM_RCV_ORDER_AUDIENCE, topic->audience);
        } else {
            um_rcv_flow_set_audience(flow, topic->audience);
        }
    }
}
