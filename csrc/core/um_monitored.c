/* The facts that monitoring asks of objects, gathered on their loop. See um_monitored.h. Owns the number of monitored
 * objects. */
#include "core/um_monitored.h"

#include <stdio.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_iface.h"
#include "base/um_mem.h"
#include "core/um_rcv_private.h"
#include "wire/um_source_string.h"

atomic_uint um_monitored_objects;

/* ---- creation ---- */

void um_monitored_created(enum um_monitored_kind kind, void *object, const struct um_monitor_settings *settings)
{
    if (settings->interval_sec > 0) {
        um_monitor.created(kind, object, settings);
    }
}

/* Receivers and patterns have an interval only: the rest is their context's. */
static struct um_monitor_settings settings_of(const lbm_context_t *ctx, unsigned long interval_sec)
{
    return (struct um_monitor_settings){.interval_sec = interval_sec,
                                        .transport = ctx->opts.monitor_transport,
                                        .format = ctx->opts.monitor_format,
                                        .transport_opts = ctx->opts.monitor_transport_opts,
                                        .format_opts = ctx->opts.monitor_format_opts,
                                        .appid = ctx->opts.monitor_appid};
}

void um_monitored_context_created(lbm_context_t *ctx)
{
    const struct um_monitor_settings settings = settings_of(ctx, ctx->reactor_only ? 0 : ctx->opts.monitor_interval);
    um_monitored_created(UM_MONITORED_CONTEXT, ctx, &settings);
}

void um_monitored_receiver_created(lbm_rcv_t *rcv)
{
    const struct um_monitor_settings settings = settings_of(rcv->ctx, rcv->topic->opts->monitor_interval);
    um_monitored_created(UM_MONITORED_RECEIVER, rcv, &settings);
}

void um_monitored_wildcard_created(lbm_wildcard_rcv_t *wrcv)
{
    const struct um_monitor_settings settings = settings_of(wrcv->ctx, wrcv->opts.monitor_interval);
    um_monitored_created(UM_MONITORED_WILDCARD, wrcv, &settings);
}

/* ---- deletion ---- */

int um_monitored_closing(void *object, struct um_loop *loop, bool *told)
{
    *told = false;
    if (atomic_load(&um_monitored_objects) == 0) {
        return 0;
    }
    if (loop != NULL && um_loop_wait_begin(loop) < 0) {
        return -1;
    }
    um_monitor.closing(object);
    if (loop != NULL) {
        um_loop_wait_end();
    }
    *told = true;
    return 0;
}

/* ---- facts ---- */

struct facts_call {
    lbm_context_t *ctx;
    struct um_monitored_facts *out;
};

static int facts_on_loop(void *arg)
{
    struct facts_call *call = arg;
    const lbm_context_t *ctx = call->ctx;
    call->out->ip = ctx->env.request_ip.s_addr;
    memcpy(call->out->instance, ctx->instance, sizeof call->out->instance);
    call->out->domain_id = um_resolver_domain_id(ctx->resolver);
    return 0;
}

int um_monitored_facts(lbm_context_t *ctx, struct um_monitored_facts *out)
{
    struct facts_call call = {ctx, out};
    memset(out, 0, sizeof *out);
    return um_context_check_messaging(ctx, "monitoring") < 0 ? -1 : um_loop_call(ctx->loop, facts_on_loop, &call);
}

/* ---- interest ---- */

struct topic_call {
    lbm_rcv_t *rcv;
    struct um_monitored_topic *out;
};

static void describe(const struct um_rcv_topic *topic, const struct um_rcv_source *source, lbm_rcv_topic_stats_t *out)
{
    struct um_tr_source known;
    const lbm_transport_source_info_t *info = &source->joining.offer.info;
    lbm_transport_source_info_t session = *info;
    session.topic_idx = 0;
    snprintf(out->topic, sizeof out->topic, "%s", topic->base.name);
    out->flags = LBM_RCV_TOPIC_STATS_FLAG_SRC_CREATED;
    if (um_source_string_format(&session, out->source, sizeof out->source) < 0) {
        out->source[0] = '\0';
    }
    if (um_resolver_source_facts(topic->base.ctx->resolver, topic->base.name, info, &known) && known.has_otid) {
        memcpy(out->otid, known.otid, sizeof out->otid);
    }
    out->topic_idx = info->topic_idx;
}

static int topic_on_loop(void *arg)
{
    struct topic_call *call = arg;
    const struct um_rcv_topic *topic = call->rcv->topic;
    struct um_list *node;
    size_t count = 0;
    snprintf(call->out->name, sizeof call->out->name, "%s", topic->base.name);
    UM_LIST_FOREACH(node, &topic->sources)
    {
        count += UM_CONTAINER_OF(node, struct um_rcv_source, node)->proved;
    }
    if (count == 0) {
        return 0;
    }
    call->out->sources = um_calloc(count, sizeof *call->out->sources);
    if (call->out->sources == NULL) {
        return um_error_nomem("sources of a topic", count * sizeof *call->out->sources);
    }
    UM_LIST_FOREACH(node, &topic->sources)
    {
        const struct um_rcv_source *source = UM_CONTAINER_OF(node, struct um_rcv_source, node);
        if (source->proved) {
            describe(topic, source, &call->out->sources[call->out->count++]);
        }
    }
    return 0;
}

int um_monitored_topic(lbm_rcv_t *rcv, struct um_monitored_topic *out)
{
    struct topic_call call = {rcv, out};
    memset(out, 0, sizeof *out);
    return um_receiver_check(rcv, "monitoring") < 0 ? -1 : um_loop_call(rcv->ctx->loop, topic_on_loop, &call);
}

void um_monitored_pattern(const lbm_wildcard_rcv_t *wrcv, lbm_wildcard_rcv_stats_t *out)
{
    memset(out, 0, sizeof *out);
    snprintf(out->pattern, sizeof out->pattern, "%s", wrcv->pattern);
    out->type = (lbm_uint8_t)wrcv->opts.pattern_type;
}
