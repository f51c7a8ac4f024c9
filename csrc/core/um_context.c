/* The context: creation and deletion of everything it owns in the right order,
 * and the glue between the resolver, the request port and the modules above.
 * Created and deleted by application threads; the parts are made on the loop. */
#include "core/um_context.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <arpa/inet.h>

#include "base/um_clock.h"
#include "base/um_debug.h"
#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "base/um_random.h"
#include "core/um_event_queue.h"
#include "base/um_fork.h"
#include "core/um_context_events.h"
#include "core/um_immediate.h"
#include "core/um_mim_receiver.h"
#include "core/um_mim_sender.h"
#include "core/um_monitored.h"
#include "core/um_object_counts.h"
#include "core/um_receiver.h"
#include "core/um_request.h"
#include "core/um_response.h"
#include "core/um_retransmission.h"
#include "core/um_source.h"
#include "core/um_uim.h"
#include "core/um_user_fds.h"
#include "core/um_user_timers.h"
#include "net/um_link_watch.h"
#include "net/um_onload.h"
#include "transport/shm/um_shm_segment.h"
#include "transport/shm/um_shm_thread.h"
#include "wire/um_lbtr.h"
#include "wire/um_source_string.h"

/* ---- checks of handles ---- */

int um_context_check(const lbm_context_t *ctx, const char *api)
{
    if (ctx == NULL || ctx->magic != UM_CONTEXT_MAGIC) {
        return um_error(UM_EINVAL, "CoreApi-1060-1", "%s: ctx must be valid", api);
    }
    if (ctx->fork_generation != um_fork_generation()) {
        return um_error(UM_EINVAL, "CoreApi-1060-2",
                        "%s: the context was inherited through fork; create a new one in the child", api);
    }
    return 0;
}

int um_context_check_messaging(const lbm_context_t *ctx, const char *api)
{
    if (um_context_check(ctx, api) < 0) {
        return -1;
    }
    if (ctx->reactor_only) {
        return um_error(
            UM_EOP, "CoreApi-1060-3",
            "%s: the context was made by lbm_context_reactor_only_create, for timers and descriptors only; use "
            "lbm_context_create",
            api);
    }
    return 0;
}

/* ---- events of the modules below [loop] ---- */

static void um_context_on_any_source(void *user, const struct um_tr_source *source)
{
    lbm_context_t *ctx = user;
    const lbm_src_notify_func_t *notify = &ctx->opts.resolver_source_notification_function;
    char text[UM_SOURCE_STRING_MAX];
    lbm_transport_source_info_t info = source->info;
    if (!ctx->opts.source_includes_topic_index) {
        info.topic_idx = 0;
    }
    if (notify->notifyfunc != NULL && um_source_string_format(&info, text, sizeof text) >= 0) {
        notify->notifyfunc(source->topic, text, notify->clientd);
    }
}

static const struct um_resolver_events um_context_resolver_events = {.on_source = um_receivers_on_source,
                                                                     .on_source_gone = um_receivers_on_source_gone,
                                                                     .on_no_source = um_receivers_on_no_source,
                                                                     .on_pattern_match = um_wildcard_on_pattern_match,
                                                                     .on_pattern_incomplete =
                                                                         um_wildcard_on_pattern_incomplete,
                                                                     .on_any_source = um_context_on_any_source};

static void um_context_on_ssf_creq(void *user, const struct um_lbmc_msg *msg, struct um_buf *buf,
                                   const struct sockaddr_in *from, uint64_t now_ns)
{
    lbm_context_t *ctx = user;
    bool well_formed = (msg->present & UM_LBMC_HAS_SSF_CREQ) != 0;
    if (!well_formed || ctx->src_transports == NULL ||
        !um_src_transports_on_ssf_creq(ctx->src_transports, &msg->ssf_creq, from->sin_addr.s_addr)) {
        const struct um_lbmc_ssf_creq creq = well_formed ? msg->ssf_creq : (struct um_lbmc_ssf_creq){0};
        atomic_fetch_add_explicit(&ctx->counters.unicast_unmatched, 1, memory_order_relaxed);
        um_log_limited(
            um_log_of_ip(from->sin_addr.s_addr), now_ns, UM_LOG_INFO, "Core-1060-17",
            "filter request for session %u, receiver %u, topic index %u: nothing like it here, or of another "
            "address than this request: ignored",
            creq.transport_idx, creq.client_idx, creq.topic_idx);
    }
}

/* What nobody handles. */
static void um_context_on_unicast(void *user, const struct um_lbmc_msg *msg, const struct sockaddr_in *from,
                                  uint64_t now_ns)
{
    lbm_context_t *ctx = user;
    atomic_fetch_add_explicit(&ctx->counters.unicast_unsupported, 1, memory_order_relaxed);
    um_log_limited(um_log_of_ip(from->sin_addr.s_addr), now_ns, UM_LOG_NOTICE, "Core-1060-4",
                   "message with header 0x%02x at the request port dropped: it is of no use to this version",
                   msg->next_hdr);
}

/* Messages with data at the request port: responses are told from the rest by their index. */
static void um_context_on_message(void *user, const struct um_lbmc_msg *msg, struct um_buf *buf,
                                  const struct sockaddr_in *from, uint64_t now_ns)
{
    lbm_context_t *ctx = user;
    if (um_request_is_response(msg)) {
        um_requests_on_response(ctx, msg, buf, from, now_ns);
    } else {
        um_uim_on_message(ctx->uim, msg, buf, from, now_ns);
    }
}

static const struct um_unicast_events um_context_unicast_events = {.on_message = um_context_on_unicast};

/* ---- names ---- */

static pthread_mutex_t um_context_names_lock = PTHREAD_MUTEX_INITIALIZER;
UM_FORK_GUARD(um_context_names_lock)
static struct um_list um_context_names = {&um_context_names, &um_context_names}; /* lock: name_node */

static void um_context_name_enter(lbm_context_t *ctx)
{
    const char *name = ctx->opts.context_name;
    bool duplicate = false;
    if (name == NULL || name[0] == '\0' || strcmp(name, UM_MONITORING_CONTEXT_NAME) == 0) {
        return;
    }
    struct um_list *node;
    pthread_mutex_lock(&um_context_names_lock);
    UM_LIST_FOREACH(node, &um_context_names)
    {
        duplicate |= strcmp(UM_CONTAINER_OF(node, lbm_context_t, name_node)->opts.context_name, name) == 0;
    }
    um_list_push_back(&um_context_names, &ctx->name_node);
    pthread_mutex_unlock(&um_context_names_lock);
    if (duplicate) {
        um_log(UM_LOG_WARNING, "Core-10960-200",
               "context_name \"%s\": another context of this process has the same name; give each its own", name);
    }
}

static void um_context_name_leave(lbm_context_t *ctx)
{
    pthread_mutex_lock(&um_context_names_lock);
    um_list_remove(&ctx->name_node);
    pthread_mutex_unlock(&um_context_names_lock);
}

/* ---- creation ---- */

int um_context_check_options(const struct um_context_options *opts)
{
    if (opts->operational_mode != LBM_CTX_ATTR_OP_EMBEDDED && opts->operational_mode != LBM_CTX_ATTR_OP_SEQUENTIAL) {
        return um_error(UM_EINVAL, "CoreApi-1060-6", "operational_mode %d: must be embedded (1) or sequential (3)",
                        opts->operational_mode);
    }
    return 0;
}

static void um_context_init_env(lbm_context_t *ctx)
{
    ctx->env.loop = ctx->loop;
    ctx->env.opts = &ctx->opts;
    ctx->env.ctxinst = ctx->instance;
    ctx->env.request_port = um_unicast_port(ctx->unicast);
    ctx->env.request_ip = um_unicast_addr(ctx->unicast);
    ctx->env.stream_settings = &ctx->filters.settings;
    ctx->env.stream_layer = um_stream_filters_layer(&ctx->filters);
    um_list_init(&ctx->env.threads);
}

/* [loop] What only messaging contexts have. */
static int um_context_open_messaging(lbm_context_t *ctx)
{
    ctx->unicast = um_unicast_create(ctx->loop, &ctx->opts, ctx->instance, &um_context_unicast_events, ctx);
    if (ctx->unicast == NULL) {
        return -1;
    }
    um_unicast_set_layer(ctx->unicast, um_stream_filters_layer(&ctx->filters));
    ctx->uim = um_uim_create(ctx);
    if (ctx->uim == NULL) {
        return -1;
    }
    um_unicast_on_control(ctx->unicast, UM_LBMC_HDR_SSF_CREQ, um_context_on_ssf_creq, ctx);
    um_unicast_on_data(ctx->unicast, UM_LBMC_MESSAGE, um_context_on_message, ctx);
    if ((ctx->requests = um_requests_create(ctx)) == NULL || (ctx->responder = um_responder_create(ctx)) == NULL) {
        return -1;
    }
    um_context_init_env(ctx);
    ctx->src_transports = um_src_transports_create(&ctx->env);
    if (ctx->src_transports == NULL) {
        return -1;
    }
    ctx->rcv_sessions = um_rcv_sessions_create(&ctx->env, ctx->unicast);
    if (ctx->rcv_sessions == NULL) {
        return -1;
    }
    um_rcv_lane_init(&ctx->rcv_lane, ctx, ctx->loop, ctx->rcv_sessions, ctx->unicast);
    uint32_t host_id = um_shm_host_id();
    ctx->resolver = host_id == 0
                        ? NULL
                        : um_resolver_create(ctx->loop, &ctx->opts, ctx->instance, &um_context_resolver_events, ctx);
    if (ctx->resolver == NULL) {
        return -1;
    }
    um_resolver_set_host_id(ctx->resolver, host_id);
    if (um_resolver_set_context_info(ctx->resolver, ctx->opts.context_name, ctx->env.request_ip.s_addr,
                                     ctx->env.request_port) < 0 ||
        um_sources_init(ctx) < 0) {
        return -1;
    }
    ctx->sources_ready = true;
    if (um_receivers_init(ctx) < 0) {
        return -1;
    }
    ctx->receivers_ready = true;
    ctx->immediates = um_immediates_create(ctx);
    if (ctx->immediates == NULL || (ctx->events = um_context_events_create(ctx)) == NULL) {
        return -1;
    }
    ctx->mim_sender = um_mim_sender_create(ctx, ctx->events);
    return ctx->mim_sender != NULL ? um_mim_receiver_create(ctx, &ctx->mim_receiver) : -1;
}

/* [loop] */
static int um_context_open(void *arg)
{
    lbm_context_t *ctx = arg;
    bool onload = um_onload_enter(ctx->opts.onload_acceleration_stack_name);
    int rc = ctx->reactor_only ? 0 : um_context_open_messaging(ctx);
    um_onload_leave(onload);
    if (rc < 0) {
        return -1;
    }
    ctx->timers = um_user_timers_create(ctx);
    if (ctx->timers == NULL) {
        return -1;
    }
    ctx->fds = um_user_fds_create(ctx, ctx->loop);
    return ctx->fds != NULL ? 0 : -1;
}

/* [loop] The reverse of um_context_open, at whatever point that stopped. */
static int um_context_close(void *arg)
{
    lbm_context_t *ctx = arg;
    um_user_fds_destroy(ctx->fds);
    um_user_timers_destroy(ctx->timers);
    um_mim_sender_destroy(ctx->mim_sender);
    um_mim_receiver_destroy(ctx->mim_receiver);
    um_immediates_destroy(ctx->immediates);
    if (ctx->receivers_ready) {
        um_receivers_destroy(ctx);
    }
    if (ctx->sources_ready) {
        um_sources_destroy(ctx);
    }
    if (ctx->resolver != NULL) {
        um_resolver_destroy(ctx->resolver);
    }
    if (ctx->rcv_sessions != NULL) {
        um_rcv_sessions_destroy(ctx->rcv_sessions);
        um_rcv_templates_clear(&ctx->rcv_lane.templates);
    }
    um_rcv_recoveries_close(&ctx->rcv_lane.recoveries);
    um_retransmissions_destroy(ctx->retransmissions);
    um_src_transports_destroy(ctx->src_transports);
    um_link_watch_destroy(ctx->env.links);
    um_requests_close(ctx->requests);
    um_responder_close(ctx->responder);
    um_context_events_destroy(ctx->events);
    if (ctx->unicast != NULL) {
        um_unicast_destroy(ctx->unicast);
    }
    um_uim_destroy(ctx->uim);
    return 0;
}

static lbm_context_t *um_context_new(const lbm_context_attr_t *attr, bool reactor_only)
{
    lbm_context_t *ctx = um_calloc(1, sizeof *ctx);
    if (ctx == NULL) {
        um_error_nomem("context", sizeof *ctx);
        return NULL;
    }
    if (um_context_options_resolve(attr, &ctx->opts) < 0) {
        um_free(ctx);
        return NULL;
    }
    ctx->reactor_only = reactor_only;
    um_rcv_lanes_init(&ctx->lanes);
    um_map_init(&ctx->routes, NULL);
    ctx->fork_generation = um_fork_generation();
    static const uint8_t zero[sizeof ctx->instance];
    do {
        um_random_bytes(ctx->instance, sizeof ctx->instance);
    } while (memcmp(ctx->instance, zero, sizeof zero) == 0);
    atomic_init(&ctx->next_request_idx, 1);
    atomic_init(&ctx->next_topic_idx, um_random_u32_nonzero());
    um_list_init(&ctx->name_node);
    um_list_init(&ctx->src_topics);
    um_list_init(&ctx->sources);
    um_list_init(&ctx->receivers);
    um_list_init(&ctx->wildcard_receivers);
    return ctx;
}

static void um_context_free(lbm_context_t *ctx)
{
    um_context_name_leave(ctx);
    um_shm_threads_join(&ctx->env);
    um_loop_destroy(ctx->loop);
    um_stream_filters_clear(&ctx->filters);
    um_map_clear(&ctx->routes);
    um_options_clear(UM_SCOPE_CONTEXT, &ctx->opts);
    um_free(ctx);
}

static struct um_loop *um_context_make_loop(const lbm_context_t *ctx)
{
    char name[16];
    const char *own = ctx->opts.context_name;
    snprintf(name, sizeof name, "um:%s", own != NULL && own[0] != '\0' ? own : "context");
    return um_loop_create(ctx->opts.operational_mode == LBM_CTX_ATTR_OP_EMBEDDED,
                          ctx->opts.file_descriptor_management_behavior == LBM_CTX_ATTR_FD_MANAGEMENT_BEHAVIOR_BUSY_WAIT
                              ? UM_LOOP_BUSY_WAIT
                              : UM_LOOP_PEND,
                          name);
}

/* One line with what whoever helps asks first. */
static void log_start(const lbm_context_t *ctx)
{
    char instance[2 * sizeof ctx->instance + 1], address[INET_ADDRSTRLEN] = "none";
    const char *name = ctx->opts.context_name;
    for (size_t i = 0; i < sizeof ctx->instance; i++) {
        snprintf(instance + 2 * i, 3, "%02x", ctx->instance[i]);
    }
    if (ctx->env.request_port != 0) {
        inet_ntop(AF_INET, &ctx->env.request_ip, address, sizeof address);
    }
    bool embedded = ctx->opts.operational_mode == LBM_CTX_ATTR_OP_EMBEDDED;
    um_log(UM_LOG_INFO, "Core-10403-150",
           "context %p created: name[%s] instance[%s] libum %s, process %ld, %s mode, request port %s:%u, %s%s%s",
           (void *)ctx, name != NULL ? name : "", instance, UM_VERSION, (long)getpid(),
           embedded ? "embedded" : "sequential", address, (unsigned)ctx->env.request_port,
           ctx->reactor_only ? "no messaging" : "messaging", ctx->opts.use_tls ? ", TLS" : "",
           ctx->opts.compression != 0 ? ", compression" : "");
}

int um_context_create(lbm_context_t **out, const lbm_context_attr_t *attr, bool reactor_only, const char *api)
{
    if (um_loop_in_any()) {
        return um_error(
            UM_EOP, "CoreApi-1060-7",
            "%s: must not be called in a callback that runs on a context thread; call it from another thread", api);
    }
    lbm_context_t *ctx = um_context_new(attr, reactor_only);
    if (ctx == NULL) {
        return -1;
    }
    if (um_context_check_options(&ctx->opts) < 0 ||
        (!reactor_only && um_stream_filters_init(&ctx->filters, &ctx->opts) < 0) ||
        (ctx->loop = um_context_make_loop(ctx)) == NULL) {
        um_context_free(ctx);
        return -1;
    }
    if (um_loop_call(ctx->loop, um_context_open, ctx) < 0) {
        struct um_error_state why;
        um_error_save(&why);
        um_loop_call(ctx->loop, um_context_close, ctx);
        um_context_free(ctx);
        um_error_restore(&why);
        return -1;
    }
    um_context_name_enter(ctx);
    ctx->magic = UM_CONTEXT_MAGIC;
    um_object_count(UM_OBJECT_CONTEXT, 1);
    log_start(ctx);
    um_monitored_context_created(ctx);
    *out = ctx;
    return 0;
}

/* ---- options in force [loop] ---- */

/* Datagrams of LBT-RM and LBT-RU are those of UDP. */
static void limit_datagrams(struct um_context_options *out)
{
    lbm_uint_t *sizes[] = {
        &out->transport_lbtrm_datagram_max_size,          &out->transport_lbtru_datagram_max_size,
        &out->transport_lbtrm_source_datagram_max_size,   &out->transport_lbtru_source_datagram_max_size,
        &out->transport_lbtrm_receiver_datagram_max_size, &out->transport_lbtru_receiver_datagram_max_size};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        *sizes[i] = *sizes[i] > UM_LBTR_DATAGRAM_MAX ? UM_LBTR_DATAGRAM_MAX : *sizes[i];
    }
}

int um_context_in_force(const lbm_context_t *ctx, struct um_context_options *out)
{
    *out = ctx->opts;
    if (ctx->reactor_only) {
        return 0;
    }
    struct um_option_list *daemons = &out->resolver_unicast_daemon;
    if (daemons->count > 0) {
        size_t size = daemons->count * sizeof(lbm_ucast_resolver_entry_t);
        void *copy = um_malloc(size);
        if (copy == NULL) {
            return um_error_nomem("resolver_unicast_daemon", size);
        }
        memcpy(copy, daemons->items, size);
        daemons->items = copy;
    }
    um_unicast_in_force(ctx->unicast, out);
    um_resolver_in_force(ctx->resolver, out);
    limit_datagrams(out);
    return 0;
}

void um_context_in_force_clear(const lbm_context_t *ctx, struct um_context_options *out)
{
    if (out->resolver_unicast_daemon.items != ctx->opts.resolver_unicast_daemon.items) {
        um_free(out->resolver_unicast_daemon.items);
    }
}

/* ---- deletion ---- */

static int um_context_check_empty(const lbm_context_t *ctx, const char *api)
{
    int live = atomic_load_explicit(&ctx->live_objects, memory_order_acquire);
    unsigned xsps = atomic_load(&ctx->lanes.count);
    if (live == 0 && xsps == 0) {
        return 0;
    }
    if (live == 0) {
        um_error(UM_EOP, "CoreApi-1060-8", "%s: %u XSPs still exist; delete them first", api, xsps);
    } else {
        um_error(UM_EOP, "CoreApi-1060-8", "%s: %d sources or receivers still exist; delete them first", api, live);
    }
    um_log(UM_LOG_ERR, "Core-1060-9", "%s", um_errmsg());
    return -1;
}

struct um_context_close_call {
    lbm_context_t *ctx;
    const char *api;
};

/* [loop] */
static int um_context_close_for_good(void *arg)
{
    struct um_context_close_call *call = arg;
    if (um_context_check_empty(call->ctx, call->api) < 0) {
        return -1;
    }
    call->ctx->magic = 0;
    return um_context_close(call->ctx);
}

int um_context_delete(lbm_context_t *ctx, lbm_event_queue_cancel_cb_info_t *cbinfo, const char *api)
{
    struct um_context_close_call call = {ctx, api};
    bool told;
    if (um_context_check(ctx, api) < 0 || um_event_cancel_check(cbinfo, api) < 0 ||
        um_loop_refuses(ctx->loop, api) < 0) {
        return -1;
    }
    /* A sample may wait for its XSPs, whose callbacks may wait for the context whose callback this is. */
    if ((um_loop_in_any() && um_context_check_empty(ctx, api) < 0) || um_monitored_closing(ctx, ctx->loop, &told) < 0) {
        return -1;
    }
    if (um_loop_call_api(ctx->loop, api, um_context_close_for_good, &call) < 0) {
        um_monitored_closed(told, ctx, false);
        return -1;
    }
    um_monitored_closed(told, ctx, true);
    um_context_free(ctx);
    um_object_count(UM_OBJECT_CONTEXT, -1);
    UM_DEBUG(UM_DEBUG_OBJECT, "context %p ends", (void *)ctx); /* its address only */
    if (cbinfo != NULL && cbinfo->cbproc != NULL) {
        cbinfo->cbproc(0, cbinfo->clientd);
    }
    return 0;
}

/* ---- sequential mode ---- */

int um_context_process_events(lbm_context_t *ctx, lbm_ulong_t msec, uint64_t user_time_ns)
{
    return um_loop_process_events(ctx->loop, msec, user_time_ns);
}
