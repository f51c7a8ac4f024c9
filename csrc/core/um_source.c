/* Source topics and sources: creation, deletion, events, live options. Control
 * work runs on the context's loop; sends do not pass through here. */
#include "core/um_source.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/um_clock.h"
#include "base/um_debug.h"
#include "base/um_error.h"
#include "base/um_fork.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "base/um_wait.h"
#include "config/um_shared_options.h"
#include "core/um_monitored.h"
#include "core/um_object_counts.h"
#include "core/um_retransmission.h"
#include "wire/um_lbmr.h"

#define CLIENTS_LOOK_NS 2000000u /* receivers of shared memory come without an event */

/* Wakes um_source_wait_receivers of any source. */
static pthread_mutex_t um_clients_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t um_clients_changed;
UM_FORK_GUARD(um_clients_lock)
UM_FORK_GUARD_CONDITION(um_clients_changed)

/* An event on its way through an event queue. */
struct um_source_event {
    struct um_event event;
    lbm_src_t *src;
    int type;
    union {
        char client[64];
        lbm_src_event_wakeup_t wakeup;
        lbm_src_event_timestamp_info_t timestamp;
    } data;
};

int um_sources_init(lbm_context_t *ctx)
{
    um_list_init(&ctx->src_topics);
    um_list_init(&ctx->sources);
    return 0;
}

static void topic_free(struct um_src_topic *topic)
{
    um_options_drop(topic->opts);
    um_topic_free(&topic->base);
}

void um_sources_destroy(lbm_context_t *ctx)
{
    struct um_list *node;
    while ((node = um_list_first(&ctx->src_topics)) != NULL) {
        um_list_remove(node);
        topic_free(UM_CONTAINER_OF(node, struct um_src_topic, ctx_node));
    }
}

int um_source_check(const lbm_src_t *src, const char *api)
{
    if (src == NULL || src->magic != UM_SOURCE_MAGIC) {
        return um_error(UM_EINVAL, "CoreApi-5688-3243", "%s: src must be valid", api);
    }
    if (src->fork_generation != um_fork_generation()) {
        return um_error(UM_EINVAL, "CoreApi-5688-3244",
                        "%s: the source was created before fork(); create contexts and sources in the child", api);
    }
    return 0;
}

/* After a send was refused with UM_EWOULDBLOCK: counts it. Only in a callback of the context is a send refused that may
 * block; this is logged once for each context. Keeps the error. `src` is not looked at otherwise: it may be gone. */
static void refused(lbm_context_t *ctx, const lbm_src_t *src, int flags, const char *api)
{
    atomic_fetch_add_explicit(&ctx->counters.send_would_block, 1, memory_order_relaxed);
    if ((flags & LBM_SRC_NONBLOCK) || atomic_exchange_explicit(&ctx->blocking_send_told, true, memory_order_relaxed)) {
        return;
    }
    struct um_error_state refusal;
    um_error_save(&refusal);
    um_log(
        UM_LOG_WARNING, "Core-5688-3262",
        "%s: topic [%s]: would have to wait in a callback of its own context, and was refused with LBM_EWOULDBLOCK as "
        "with LBM_SRC_NONBLOCK; send from another thread, use an event queue, or send again after the wakeup event "
        "(said once for each context)",
        api, src->topic->base.name);
    um_error_restore(&refusal);
}

int um_source_waited(lbm_context_t *ctx, const lbm_src_t *src, int rc, int flags, const char *api)
{
    if (rc == 0) {
        atomic_fetch_add_explicit(&ctx->counters.send_blocked, 1, memory_order_relaxed);
    } else if (um_errnum() == UM_EWOULDBLOCK) {
        refused(ctx, src, flags, api);
    }
    return rc;
}

/* ---- topics ---- */

static int link_topic(void *arg)
{
    struct um_src_topic *topic = arg;
    um_list_push_back(&topic->base.ctx->src_topics, &topic->ctx_node);
    return 0;
}

/* NULL + error. */
static const struct um_source_options *shared_options(const lbm_src_topic_attr_t *attr, const lbm_context_t *ctx,
                                                      const char *symbol)
{
    struct um_source_options opts;
    if (um_source_options_resolve(attr, ctx->opts.context_name, ctx->opts.um_profile, symbol, &opts) != 0) {
        return NULL;
    }
    const struct um_source_options *shared = um_options_share(UM_SCOPE_SOURCE, &opts);
    if (shared == NULL) {
        um_options_clear(UM_SCOPE_SOURCE, &opts);
    }
    return shared;
}

int um_source_topic_alloc(lbm_topic_t **topicp, lbm_context_t *ctx, const char *symbol,
                          const lbm_src_topic_attr_t *attr)
{
    if (topicp == NULL) {
        return um_error(UM_EINVAL, "CoreApi-5688-3245", "lbm_src_topic_alloc: topicp must be valid");
    }
    if (um_context_check_messaging(ctx, "lbm_src_topic_alloc") != 0 ||
        um_topic_name_check(symbol, "lbm_src_topic_alloc") != 0) {
        return -1;
    }
    um_config_start();
    struct um_src_topic *topic = um_topic_new(sizeof *topic, ctx, UM_TOPIC_SOURCE, symbol);
    if (topic == NULL) {
        return -1;
    }
    topic->opts = shared_options(attr, ctx, symbol);
    if (topic->opts == NULL) {
        um_topic_free(&topic->base);
        return -1;
    }
    um_src_transports_notices(topic->opts, symbol);
    if (um_loop_call_api(ctx->loop, "lbm_src_topic_alloc", link_topic, topic) != 0) {
        topic_free(topic);
        return -1;
    }
    *topicp = &topic->base;
    return 0;
}

/* ---- events ---- */

static void event_run(struct um_event *event)
{
    struct um_source_event *e = UM_CONTAINER_OF(event, struct um_source_event, event);
    e->src->proc(e->src, e->type, &e->data, e->src->clientd);
    um_free(e);
}

static void event_discard(struct um_event *event)
{
    um_free(UM_CONTAINER_OF(event, struct um_source_event, event));
}

static const struct um_event_ops event_ops = {
    .run = event_run,
    .discard = event_discard,
    .event_class = UM_EVENT_SOURCE,
};

/* `data` is a text for CONNECT and DISCONNECT, the structure otherwise. */
static void report(struct um_src_stream *stream, int type, const void *data, size_t len)
{
    lbm_src_t *src = UM_CONTAINER_OF(stream, lbm_src_t, stream);
    if (src->proc == NULL) {
        return;
    }
    if (src->evq == NULL) {
        src->proc(src, type, (void *)data, src->clientd);
        return;
    }
    struct um_source_event *e = um_calloc(1, sizeof *e);
    if (e == NULL) {
        um_log(UM_LOG_ERR, "Core-5688-3248", "source [%s]: out of memory, event %d not delivered",
               src->topic->base.name, type);
        return;
    }
    e->event.ops = &event_ops;
    e->src = src;
    e->type = type;
    memcpy(&e->data, data, len < sizeof e->data ? len : sizeof e->data - 1);
    um_event_enqueue(src->evq, &src->events, &e->event);
}

static void clients_changed(void)
{
    pthread_mutex_lock(&um_clients_lock);
    pthread_cond_broadcast(&um_clients_changed);
    pthread_mutex_unlock(&um_clients_lock);
}

static void on_connect(struct um_src_stream *stream, const char *client)
{
    clients_changed();
    report(stream, LBM_SRC_EVENT_CONNECT, client, strlen(client) + 1);
}

static void on_disconnect(struct um_src_stream *stream, const char *client)
{
    clients_changed();
    report(stream, LBM_SRC_EVENT_DISCONNECT, client, strlen(client) + 1);
}

static void on_wakeup(struct um_src_stream *stream)
{
    lbm_src_event_wakeup_t wakeup = {.flags = LBM_SRC_EVENT_WAKEUP_FLAG_NORMAL};
    report(stream, LBM_SRC_EVENT_WAKEUP, &wakeup, sizeof wakeup);
}

static void on_timestamp(struct um_src_stream *stream, const struct timespec *time, uint32_t sqn)
{
    lbm_src_event_timestamp_info_t info = {.hr_timestamp = {time->tv_sec, time->tv_nsec}, .sequence_number = sqn};
    report(stream, LBM_SRC_EVENT_TIMESTAMP, &info, sizeof info);
}

static void on_no_buffer(struct um_src_stream *stream, int flags, const char *call)
{
    const lbm_src_t *src = UM_CONTAINER_OF(stream, lbm_src_t, stream);
    refused(src->ctx, src, flags, call);
}

static const struct um_src_stream_events stream_events = {
    .on_connect = on_connect,
    .on_disconnect = on_disconnect,
    .on_wakeup = on_wakeup,
    .on_timestamp = on_timestamp,
    .on_no_buffer = on_no_buffer,
};

/* ---- sources ---- */

struct create_call {
    lbm_src_t **srcp;
    lbm_src_t *src;
    const char *api;
};

/* The stream joins its session; from here on the topic is the source's. */
static int attach_on_loop(void *arg)
{
    struct create_call *call = arg;
    lbm_src_t *src = call->src;
    lbm_context_t *ctx = src->ctx;
    struct um_src_topic *topic = src->topic;
    if (topic->src != NULL) {
        return um_error(UM_EINVAL, "CoreApi-5688-3249",
                        "%s: topic [%s] has a source already; call lbm_src_topic_alloc for each source", call->api,
                        topic->base.name);
    }
    src->stream.events = &stream_events;
    src->stream.tidx = atomic_fetch_add(&ctx->next_topic_idx, 1);
    src->stream.tsni_interval_ns = um_ms_ns(topic->opts->transport_topic_sequence_number_info_interval);
    src->stream.tsni_active_ns = um_s_ns(topic->opts->transport_topic_sequence_number_info_active_threshold);
    if (um_src_transports_attach(ctx->src_transports, topic->opts, topic->base.name, &src->stream) != 0) {
        return -1;
    }
    if (src->hf != UM_SOURCE_NOT_HF && um_src_stream_plain_only(&src->stream)) {
        um_src_stream_detach(&src->stream);
        return um_error(UM_EOPNOTSUPP, "CoreApi-5402-6",
                        "lbm_hf_src_create: topic [%s]: LBT-SMX carries no hot failover numbers", topic->base.name);
    }
    topic->src = src;
    return 0;
}

/* Undoes attach_on_loop: the topic can have another source. */
static int detach_on_loop(void *arg)
{
    struct create_call *call = arg;
    um_src_stream_detach(&call->src->stream);
    call->src->topic->src = NULL;
    return 0;
}

/* Others learn of the source. -1 + error: it is detached. */
static int publish_on_loop(void *arg)
{
    struct create_call *call = arg;
    lbm_src_t *src = call->src;
    lbm_context_t *ctx = src->ctx;
    struct um_src_topic *topic = src->topic;
    struct um_tr_advert_spec spec = {.topic = topic->base.name};
    if (um_src_retention_begin(src, &src->retention) != 0) {
        detach_on_loop(call);
        return -1;
    }
    if (src->retention != NULL) {
        spec.functionality |= UM_LBMR_EXFUNC_LATE_JOIN;
        spec.request_ip = ctx->env.request_ip.s_addr;
        spec.request_port = ctx->env.request_port;
    }
    um_src_stream_source_info(&src->stream, &spec.info);
    src->advert = um_resolver_advertise(ctx->resolver, &spec, topic->opts);
    if (src->advert == NULL) {
        detach_on_loop(call);
        um_src_retention_end(src, src->retention);
        return -1;
    }
    um_list_remove(&topic->ctx_node);
    um_list_push_back(&ctx->sources, &src->ctx_node);
    atomic_fetch_add(&ctx->live_objects, 1);
    um_object_count(UM_OBJECT_SOURCE, 1);
    UM_DEBUG(UM_DEBUG_OBJECT, "source %p of topic[%s] in context %p", (void *)src, topic->base.name, (void *)ctx);
    src->magic = UM_SOURCE_MAGIC;
    *call->srcp = src; /* before any event can tell the application of it */
    return 0;
}

static int create_on_loop(void *arg)
{
    return attach_on_loop(arg) == 0 ? publish_on_loop(arg) : -1;
}

int um_source_start(lbm_src_t **srcp, lbm_src_t *src, lbm_event_queue_t *evq, int (*prepare)(lbm_src_t *src),
                    const char *api)
{
    src->fork_generation = um_fork_generation();
    src->evq = evq;
    um_event_owner_init(&src->events, evq);
    struct um_loop *loop = src->ctx->loop;
    struct create_call call = {srcp, src, api};
    if (prepare == NULL) {
        return um_loop_call_api(loop, api, create_on_loop, &call);
    }
    if (um_loop_call_api(loop, api, attach_on_loop, &call) != 0) {
        return -1;
    }
    if (prepare(src) != 0) {
        struct um_error_state failure;
        um_error_save(&failure);
        um_loop_call_api(loop, api, detach_on_loop, &call);
        um_error_restore(&failure);
        return -1;
    }
    return um_loop_call_api(loop, api, publish_on_loop, &call);
}

static int check_hf(const struct um_src_topic *topic, const char *api)
{
    if (topic->opts->use_hotlink != 0) {
        return um_error(UM_EOPNOTSUPP, "CoreApi-11458-100",
                        "%s: topic [%s]: use_hotlink 1: must be 0 for a hot failover source", api, topic->base.name);
    }
    return 0;
}

static int create(lbm_src_t **srcp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_src_cb_proc proc, void *clientd,
                  lbm_event_queue_t *evq, enum um_source_hf hf, const char *api)
{
    if (srcp == NULL) {
        return um_error(UM_EINVAL, "CoreApi-5688-3250", "%s: srcp must be valid", api);
    }
    if (um_context_check(ctx, api) != 0 || um_topic_check(topic, ctx, UM_TOPIC_SOURCE, api) != 0 ||
        (evq != NULL && um_event_queue_check(evq, api) != 0)) {
        return -1;
    }
    struct um_src_topic *src_topic = UM_CONTAINER_OF(topic, struct um_src_topic, base);
    if (!um_src_transports_have(src_topic->opts->transport)) {
        return um_error(UM_EOPNOTSUPP, "CoreApi-5688-3251",
                        "%s: topic [%s]: transport %s is not implemented in this version", api, topic->name,
                        um_src_transports_name(src_topic->opts->transport));
    }
    if (hf != UM_SOURCE_NOT_HF && check_hf(src_topic, api) != 0) {
        return -1;
    }
    lbm_src_t *src = um_calloc(1, sizeof *src);
    if (src == NULL) {
        return um_error_nomem("source", sizeof *src);
    }
    atomic_init(&src->hf, hf);
    src->ctx = ctx;
    src->topic = src_topic;
    src->proc = proc;
    src->clientd = clientd;
    if (um_source_start(srcp, src, evq, NULL, api) != 0) {
        um_free(src);
        return -1;
    }
    return 0;
}

int um_source_create(lbm_src_t **srcp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_src_cb_proc proc, void *clientd,
                     lbm_event_queue_t *evq)
{
    return create(srcp, ctx, topic, proc, clientd, evq, UM_SOURCE_NOT_HF, "lbm_src_create");
}

int um_source_create_hf(lbm_src_t **srcp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_src_cb_proc proc, void *clientd,
                        lbm_event_queue_t *evq)
{
    return create(srcp, ctx, topic, proc, clientd, evq, UM_SOURCE_HF, "lbm_hf_src_create");
}

static int delete_on_loop(void *arg)
{
    lbm_src_t *src = arg;
    src->magic = 0;
    um_resolver_withdraw(src->ctx->resolver, src->advert);
    um_src_stream_detach(&src->stream);
    um_src_retention_end(src, src->retention);
    um_list_remove(&src->ctx_node);
    atomic_fetch_sub(&src->ctx->live_objects, 1);
    um_object_count(UM_OBJECT_SOURCE, -1);
    UM_DEBUG(UM_DEBUG_OBJECT, "source %p ends", (void *)src);
    return 0;
}

static void source_free(struct um_event_owner *owner)
{
    lbm_src_t *src = UM_CONTAINER_OF(owner, lbm_src_t, events);
    um_src_msg_buffs_free(&src->msg_buffs);
    topic_free(src->topic);
    um_free(src);
}

/* The loop runs no callback of the source while it executes the command, so none is in progress afterwards. */
int um_source_delete(lbm_src_t *src, lbm_event_queue_cancel_cb_info_t *cbinfo, const char *api)
{
    bool told;
    if (um_source_check(src, api) != 0 || um_event_cancel_check(cbinfo, api) != 0 ||
        um_loop_refuses(src->ctx->loop, api) != 0 || um_monitored_closing(src, src->ctx->loop, &told) != 0) {
        return -1;
    }
    int rc = um_loop_call_api(src->ctx->loop, api, delete_on_loop, src);
    um_monitored_closed(told, src, rc == 0);
    return rc == 0 ? um_event_owner_close(&src->events, cbinfo, source_free) : -1;
}

/* ---- options ---- */

struct options_call {
    lbm_src_t *src;
    int (*fn)(struct um_source_options *opts, void *arg);
    void *arg;
};

static int options_on_loop(void *arg)
{
    struct options_call *call = arg;
    struct um_source_options before = *call->src->topic->opts; /* its strings and lists are only read */
    um_src_stream_in_force(&call->src->stream, &before);
    struct um_source_options opts = before;
    int rc = call->fn(&opts, call->arg);
    if (before.implicit_batching_interval != opts.implicit_batching_interval ||
        before.implicit_batching_minimum_length != opts.implicit_batching_minimum_length ||
        before.implicit_batching_type != opts.implicit_batching_type) {
        um_src_stream_set_batching(&call->src->stream, um_ms_ns(opts.implicit_batching_interval),
                                   opts.implicit_batching_minimum_length,
                                   opts.implicit_batching_type == LBM_SRC_TOPIC_ATTR_IMPLICIT_BATCH_TYPE_ADAPTIVE);
    }
    return rc;
}

int um_source_with_options(lbm_src_t *src, int (*fn)(struct um_source_options *opts, void *arg), void *arg)
{
    struct options_call call = {src, fn, arg};
    return um_loop_call(src->ctx->loop, options_on_loop, &call);
}

/* ---- readiness ---- */

int um_source_wait_receivers(lbm_src_t *src, int receivers, int timeout_ms)
{
    if (um_loop_in_family(src->ctx->loop)) {
        return um_error(UM_EOP, "CoreApi-5688-3252", "um_src_wait_receivers: not inside a callback of the context");
    }
    uint64_t until_ns = um_clock_ns() + (uint64_t)timeout_ms * UM_NS_PER_MS;
    pthread_mutex_lock(&um_clients_lock);
    for (uint64_t now = um_clock_ns(); um_src_stream_clients(&src->stream) < receivers && now < until_ns;
         now = um_clock_ns()) {
        uint64_t look_again_ns = now + CLIENTS_LOOK_NS;
        um_cond_wait_until(&um_clients_changed, &um_clients_lock, look_again_ns < until_ns ? look_again_ns : until_ns);
    }
    pthread_mutex_unlock(&um_clients_lock);
    if (um_src_stream_clients(&src->stream) >= receivers) {
        return 0;
    }
    return um_error(UM_ETIMEDOUT, "CoreApi-5688-3253", "um_src_wait_receivers: %d of %d receivers after %d ms",
                    um_src_stream_clients(&src->stream), receivers, timeout_ms);
}
