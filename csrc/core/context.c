/* The context: creation and deletion of everything it owns in the right order,
 * and the glue between the resolver, the request port and the modules above.
 * Created and deleted by application threads; the parts are made on the loop. */
#include "core/um_context.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "base/um_random.h"
#include "core/um_event_queue.h"
#include "base/um_fork.h"
#include "core/um_object_counts.h"
#include "core/um_receiver.h"
#include "core/um_source.h"
#include "core/um_user_fds.h"
#include "core/um_user_timers.h"
#include "net/um_link_watch.h"
#include "net/um_onload.h"
#include "transport/shm/um_shm_segment.h"
#include "transport/shm/um_shm_thread.h"
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

static void um_context_on_uim(void *user, const struct um_lbmc_msg *msg, const struct sockaddr_in *from,
                              uint64_t now_ns)
{
    lbm_context_t *ctx = user;
    if ((msg->present & UM_LBMC_HAS_SSF_CREQ) != 0) {
        if (ctx->src_transports == NULL || !um_src_transports_on_ssf_creq(ctx->src_transports, &msg->ssf_creq)) {
            atomic_fetch_add_explicit(&ctx->counters.unicast_unmatched, 1, memory_order_relaxed);
            um_log_limited(&ctx->unmatched_log, now_ns, 10 * UM_NS_PER_SEC, UM_LOG_INFO, "Core-1060-17",
                           "filter request for session %u, receiver %u, topic index %u: nothing like it here: ignored",
                           msg->ssf_creq.transport_idx, msg->ssf_creq.client_idx, msg->ssf_creq.topic_idx);
        }
        return;
    }
    atomic_fetch_add_explicit(&ctx->counters.unicast_unsupported, 1, memory_order_relaxed);
    um_log_limited(&ctx->unsupported_log, now_ns, 10 * UM_NS_PER_SEC, UM_LOG_NOTICE, "Core-1060-4",
                   "message of type 0x%02x at the request port dropped: requests, responses and immediate messages are "
                   "not supported in this version",
                   msg->next_hdr);
}

static const struct um_uim_events um_context_uim_events = {.on_message = um_context_on_uim};

/* ---- names ---- */

static pthread_mutex_t um_context_names_lock = PTHREAD_MUTEX_INITIALIZER;
UM_FORK_GUARD(um_context_names_lock)
static struct um_list um_context_names = {&um_context_names, &um_context_names}; /* lock: name_node */

static void um_context_name_enter(lbm_context_t *ctx)
{
    const char *name = ctx->opts.context_name;
    bool duplicate = false;
    if (name == NULL || name[0] == '\0') {
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
        um_log(UM_LOG_WARNING, "Core-1060-10",
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

static int um_context_check_options(const struct um_context_options *opts)
{
    if (opts->use_tls != 0 || opts->compression != 0) {
        return um_error(UM_EOPNOTSUPP, "CoreApi-1060-5", "%s %d: not implemented in this version; leave it at 0",
                        opts->use_tls != 0 ? "use_tls" : "compression",
                        opts->use_tls != 0 ? opts->use_tls : opts->compression);
    }
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
    ctx->env.request_port = um_uim_port(ctx->uim);
    ctx->env.request_ip = um_uim_addr(ctx->uim);
    atomic_init(&ctx->env.next_transport_idx, 1);
    um_list_init(&ctx->env.threads);
}

/* [loop] What only messaging contexts have. */
static int um_context_open_messaging(lbm_context_t *ctx)
{
    ctx->uim = um_uim_create(ctx->loop, &ctx->opts, ctx->instance, &um_context_uim_events, ctx);
    if (ctx->uim == NULL) {
        return -1;
    }
    um_context_init_env(ctx);
    ctx->src_transports = um_src_transports_create(&ctx->env);
    if (ctx->src_transports == NULL) {
        return -1;
    }
    ctx->rcv_sessions = um_rcv_sessions_create(&ctx->env, ctx->uim);
    if (ctx->rcv_sessions == NULL) {
        return -1;
    }
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
    return 0;
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
    ctx->fds = um_user_fds_create(ctx);
    return ctx->fds != NULL ? 0 : -1;
}

/* [loop] The reverse of um_context_open, at whatever point that stopped. */
static int um_context_close(void *arg)
{
    lbm_context_t *ctx = arg;
    um_user_fds_destroy(ctx->fds);
    um_user_timers_destroy(ctx->timers);
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
    }
    um_src_transports_destroy(ctx->src_transports);
    um_link_watch_destroy(ctx->env.links);
    if (ctx->uim != NULL) {
        um_uim_destroy(ctx->uim);
    }
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
    ctx->fork_generation = um_fork_generation();
    static const uint8_t zero[sizeof ctx->instance];
    do {
        um_random_bytes(ctx->instance, sizeof ctx->instance);
    } while (memcmp(ctx->instance, zero, sizeof zero) == 0);
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
    if (um_context_check_options(&ctx->opts) < 0 || (ctx->loop = um_context_make_loop(ctx)) == NULL) {
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
    *out = ctx;
    return 0;
}

/* ---- deletion ---- */

static int um_context_check_empty(const lbm_context_t *ctx, const char *api)
{
    int live = atomic_load_explicit(&ctx->live_objects, memory_order_acquire);
    if (live == 0) {
        return 0;
    }
    um_error(UM_EOP, "CoreApi-1060-8", "%s: %d sources or receivers still exist; delete them first", api, live);
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
    if (um_context_check(ctx, api) < 0 || um_event_cancel_check(cbinfo, api) < 0 ||
        um_loop_call_api(ctx->loop, api, um_context_close_for_good, &call) < 0) {
        return -1;
    }
    um_context_free(ctx);
    um_object_count(UM_OBJECT_CONTEXT, -1);
    if (cbinfo != NULL && cbinfo->cbproc != NULL) {
        cbinfo->cbproc(0, cbinfo->clientd);
    }
    return 0;
}

/* ---- sequential mode ---- */

int um_context_process_events(lbm_context_t *ctx, lbm_ulong_t msec, uint64_t user_time_ns)
{
    uint64_t now = msec != 0 ? um_clock_ns() : 0;
    uint64_t until = msec > (UINT64_MAX - now) / UM_NS_PER_MS ? UINT64_MAX : now + msec * UM_NS_PER_MS;
    int rc;
    do {
        uint64_t left_ms = (until - now + UM_NS_PER_MS - 1) / UM_NS_PER_MS;
        rc = um_loop_run_once(ctx->loop, left_ms > INT_MAX ? INT_MAX : (int)left_ms, user_time_ns);
        if (msec != 0 && rc == 0) {
            now = um_clock_ns();
        }
    } while (rc == 0 && now < until);
    return rc < 0 ? -1 : 0;
}
