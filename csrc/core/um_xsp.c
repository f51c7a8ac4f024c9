/* Creation and deletion of XSPs, and what they do beside receiving: descriptors,
 * the sequential mode, the news that the last session has left. The parts are made
 * on the XSP's loop; what the context keeps of it is [loop] of the context. */
#include "core/um_xsp.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "config/um_config.h"
#include "core/um_context.h"
#include "core/um_user_fds.h"
#include "net/um_link_watch.h"
#include "net/um_onload.h"

#define UM_XSP_MAGIC 0x554d5850u /* "UMXP" */
#define KEEPALIVE_DEFAULT_MS 3000u

struct lbm_xsp_t_stct {
    _Atomic uint32_t magic;          /* any thread reads, also while the object is deleted */
    lbm_context_t *ctx;              /* fixed */
    struct um_xsp_options opts;      /* fixed */
    struct um_context_options copts; /* fixed: its own, or as those of the context were */
    bool own_copts;                  /* fixed: its strings and lists are to be freed */
    struct um_loop *loop;            /* fixed */
    struct um_transport_env env;     /* [loop] */
    struct um_unicast *unicast;      /* [loop] */
    struct um_user_fds *fds;         /* [loop] */
    struct um_rcv_lane lane;
    struct um_command zero_transports; /* runs on the context's loop */
};

int um_xsp_check(const lbm_xsp_t *xsp, const char *api)
{
    if (xsp == NULL || xsp->magic != UM_XSP_MAGIC) {
        return um_error(UM_EINVAL, "CoreApi-20210-1", "%s: xsp %p: must be a live XSP", api, (const void *)xsp);
    }
    return um_context_check(xsp->ctx, api);
}

struct um_rcv_lane *um_xsp_lane(lbm_context_t *ctx, const lbm_xsp_t *xsp)
{
    struct um_rcv_lane *lane = &((lbm_xsp_t *)xsp)->lane;
    return um_rcv_lane_known(ctx, lane) ? lane : NULL;
}

const struct um_unicast *um_xsp_unicast(const struct um_rcv_lane *lane)
{
    return lane == &lane->ctx->rcv_lane ? lane->ctx->unicast
                                        : UM_CONTAINER_OF(lane, struct lbm_xsp_t_stct, lane)->unicast;
}

/* ---- the last session has left [loop] of the context ---- */

static void on_unused(struct um_rcv_lane *lane)
{
    lbm_xsp_t *xsp = UM_CONTAINER_OF(lane, struct lbm_xsp_t_stct, lane);
    if (xsp->opts.zero_transports_function.zero_transports_func != NULL) {
        um_loop_post(xsp->ctx->loop, &xsp->zero_transports);
    }
}

/* Another session may have come since; the function may delete the XSP. */
static void on_zero_transports(struct um_command *command)
{
    lbm_xsp_t *xsp = UM_CONTAINER_OF(command, struct lbm_xsp_t_stct, zero_transports);
    lbm_context_t *ctx = xsp->ctx;
    lbm_xsp_zero_transports_func_t func = xsp->opts.zero_transports_function;
    if (xsp->lane.routes > 0) {
        return;
    }
    ctx->zero_transports++;
    func.zero_transports_func(xsp, func.clientd);
    ctx->zero_transports--;
}

/* ---- the parts [loop] ---- */

/* Immediate messages are for the context, whose request port is the one that is told to others. */
static void on_message(void *user, const struct um_lbmc_msg *msg, struct um_buf *buf, const struct sockaddr_in *from,
                       uint64_t now_ns)
{
    lbm_xsp_t *xsp = user;
    char ip[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &from->sin_addr, ip, sizeof ip);
    atomic_fetch_add_explicit(&xsp->ctx->counters.unicast_unsupported, 1, memory_order_relaxed);
    um_log_limited(um_log_of_ip(from->sin_addr.s_addr), now_ns, UM_LOG_WARNING, "Core-10138-110",
                   "can not send unicast immediate messages to transport threads. Source %s:%u.", ip,
                   (unsigned)ntohs(from->sin_port));
}

/* Sources know the request port of the context only. */
static void on_unicast(void *user, const struct um_lbmc_msg *msg, const struct sockaddr_in *from, uint64_t now_ns)
{
    lbm_xsp_t *xsp = user;
    atomic_fetch_add_explicit(&xsp->ctx->counters.unicast_unsupported, 1, memory_order_relaxed);
    um_log_limited(um_log_of_ip(from->sin_addr.s_addr), now_ns, UM_LOG_NOTICE, "Core-20210-2",
                   "message of type 0x%02x at the request port of an XSP dropped: it is of no use to this version",
                   msg->next_hdr);
}

static const struct um_unicast_events UNICAST_EVENTS = {.on_message = on_unicast};

static int open_parts(lbm_xsp_t *xsp)
{
    lbm_context_t *ctx = xsp->ctx;
    xsp->unicast = um_unicast_create(xsp->loop, &xsp->copts, ctx->instance, &UNICAST_EVENTS, xsp);
    if (xsp->unicast == NULL) {
        return -1;
    }
    um_unicast_set_layer(xsp->unicast, um_stream_filters_layer(&ctx->filters));
    um_unicast_on_data(xsp->unicast, UM_LBMC_MESSAGE, on_message, xsp);
    xsp->env = (struct um_transport_env){.loop = xsp->loop,
                                         .opts = &xsp->copts,
                                         .ctxinst = ctx->instance,
                                         .request_port = um_unicast_port(xsp->unicast),
                                         .request_ip = um_unicast_addr(xsp->unicast),
                                         .stream_layer = um_stream_filters_layer(&ctx->filters),
                                         .stream_settings = &ctx->filters.settings};
    um_list_init(&xsp->env.threads);
    struct um_rcv_sessions *sessions = um_rcv_sessions_create(&xsp->env, xsp->unicast);
    if (sessions == NULL) {
        return -1;
    }
    um_rcv_lane_init(&xsp->lane, ctx, xsp->loop, sessions, xsp->unicast);
    xsp->fds = um_user_fds_create(ctx, xsp->loop);
    return xsp->fds != NULL ? 0 : -1;
}

static int open_on_loop(void *arg)
{
    lbm_xsp_t *xsp = arg;
    bool onload = um_onload_enter(xsp->copts.onload_acceleration_stack_name);
    int rc = open_parts(xsp);
    um_onload_leave(onload);
    return rc;
}

/* The reverse, at whatever point that stopped. No session is left. */
static int close_on_loop(void *arg)
{
    lbm_xsp_t *xsp = arg;
    um_user_fds_destroy(xsp->fds);
    if (xsp->lane.sessions != NULL) {
        um_loop_unpost(xsp->loop, &xsp->lane.release);
        um_rcv_sessions_destroy(xsp->lane.sessions);
        um_rcv_recoveries_close(&xsp->lane.recoveries);
        um_rcv_templates_clear(&xsp->lane.templates);
    }
    um_link_watch_destroy(xsp->env.links);
    if (xsp->unicast != NULL) {
        um_unicast_destroy(xsp->unicast);
    }
    return 0;
}

/* ---- creation ---- */

/* In a callback: only in that function of the context. */
static int check_place(lbm_context_t *ctx, const char *api, const unsigned *allowed, const char *where)
{
    if (um_loop_in_any() && !(um_loop_on_thread(ctx->loop) && *allowed > 0)) {
        return um_error(UM_EOP, "CoreApi-20210-3",
                        "%s: must not be called in a callback that runs on the thread of a context or of an XSP, "
                        "except in a %s",
                        api, where);
    }
    return 0;
}

/* [loop] of the context: its options may be changed. */
static int copy_options(void *arg)
{
    lbm_xsp_t *xsp = arg;
    xsp->copts = xsp->ctx->opts;
    return 0;
}

static int resolve_options(lbm_xsp_t *xsp, const lbm_context_attr_t *cattr, const lbm_xsp_attr_t *attr)
{
    if (um_xsp_options_resolve(attr, &xsp->opts) != 0) {
        return -1;
    }
    if (cattr == NULL) {
        return um_loop_call(xsp->ctx->loop, copy_options, xsp);
    }
    if (um_context_options_resolve(cattr, &xsp->copts) != 0) {
        return -1;
    }
    xsp->own_copts = true;
    return um_context_check_options(&xsp->copts);
}

static int check_options(const lbm_xsp_t *xsp, const char *api)
{
    const struct um_context_options *opts = &xsp->copts;
    if (opts->delivery_control_message_batching != 0) {
        return um_error(UM_EINVAL, "CoreApi-20210-4",
                        "%s: delivery_control_message_batching 1: must be 0 in a context with XSPs", api);
    }
    if (opts->ume_proactive_keepalive_interval == 0) {
        um_log(UM_LOG_WARNING, "Core-10190-6",
               "ume_proactive_keepalive_interval 0: must not be 0 with XSPs, the default of %u ms is used",
               KEEPALIVE_DEFAULT_MS);
    }
    return 0;
}

static void free_xsp(lbm_xsp_t *xsp)
{
    if (xsp->loop != NULL) {
        um_loop_destroy(xsp->loop);
    }
    if (xsp->own_copts) {
        um_options_clear(UM_SCOPE_CONTEXT, &xsp->copts);
    }
    um_options_clear(UM_SCOPE_XSP, &xsp->opts);
    um_free(xsp);
}

static int make_loop(lbm_xsp_t *xsp)
{
    bool busy = xsp->copts.file_descriptor_management_behavior == LBM_CTX_ATTR_FD_MANAGEMENT_BEHAVIOR_BUSY_WAIT;
    char name[16];
    const char *own = xsp->ctx->opts.context_name;
    snprintf(name, sizeof name, "xsp:%s", own != NULL && own[0] != '\0' ? own : "context");
    xsp->loop = um_loop_create(xsp->opts.operational_mode == LBM_CTX_ATTR_OP_EMBEDDED,
                               busy ? UM_LOOP_BUSY_WAIT : UM_LOOP_PEND, name);
    if (xsp->loop == NULL) {
        return -1;
    }
    um_loop_join_family(xsp->loop, xsp->ctx->loop);
    return 0;
}

/* [loop] of the context: from here on sessions may be mapped to it. What was told to all loops is told to this one. */
static int enter_context(void *arg)
{
    lbm_xsp_t *xsp = arg;
    um_rcv_lane_enter(&xsp->lane);
    return 0;
}

static int set_cutoff(void *arg)
{
    lbm_xsp_t *xsp = arg;
    um_rcv_sessions_set_nak_cutoff(xsp->lane.sessions, atomic_load(&xsp->ctx->nak_cutoff));
    return 0;
}

static int start(lbm_xsp_t *xsp, const lbm_context_attr_t *cattr, const lbm_xsp_attr_t *attr, const char *api)
{
    if (resolve_options(xsp, cattr, attr) != 0 || check_options(xsp, api) != 0 || make_loop(xsp) != 0) {
        return -1;
    }
    if (um_loop_call(xsp->loop, open_on_loop, xsp) == 0 && um_loop_call(xsp->ctx->loop, enter_context, xsp) == 0) {
        return um_loop_call(xsp->loop, set_cutoff, xsp);
    }
    struct um_error_state why;
    um_error_save(&why);
    um_loop_call(xsp->loop, close_on_loop, xsp);
    um_error_restore(&why);
    return -1;
}

int um_xsp_create(lbm_xsp_t **xspp, lbm_context_t *ctx, const lbm_context_attr_t *cattr, const lbm_xsp_attr_t *attr)
{
    static const char api[] = "lbm_xsp_create";
    if (um_context_check_messaging(ctx, api) != 0 ||
        check_place(ctx, api, &ctx->mapping, "transport_mapping_function") != 0) {
        return -1;
    }
    if (xspp == NULL) {
        return um_error(UM_EINVAL, "CoreApi-20210-5", "%s: xspp: must not be NULL", api);
    }
    lbm_xsp_t *xsp = um_calloc(1, sizeof *xsp);
    if (xsp == NULL) {
        return um_error_nomem("XSP", sizeof *xsp);
    }
    xsp->ctx = ctx;
    um_command_init(&xsp->zero_transports, on_zero_transports);
    if (start(xsp, cattr, attr, api) != 0) {
        struct um_error_state why;
        um_error_save(&why);
        free_xsp(xsp);
        um_error_restore(&why);
        return -1;
    }
    xsp->lane.on_unused = on_unused;
    xsp->magic = UM_XSP_MAGIC;
    *xspp = xsp;
    return 0;
}

/* ---- deletion ---- */

/* [loop] of the context. */
static int retire(void *arg)
{
    lbm_xsp_t *xsp = arg;
    if (xsp->lane.routes > 0) {
        return um_error(
            UM_EOP, "CoreApi-20210-6",
            "lbm_xsp_delete: %u transport sessions are on the XSP; delete the receivers that use them first",
            xsp->lane.routes);
    }
    if (um_rcv_lane_close(&xsp->lane) != 0) {
        return -1;
    }
    if (um_loop_call(xsp->loop, close_on_loop, xsp) != 0) {
        um_rcv_lane_reopen(&xsp->lane);
        return -1;
    }
    um_rcv_lane_leave(&xsp->lane);
    um_loop_unpost(xsp->ctx->loop, &xsp->zero_transports);
    xsp->magic = 0;
    return 0;
}

int um_xsp_delete(lbm_xsp_t *xsp)
{
    static const char api[] = "lbm_xsp_delete";
    if (um_xsp_check(xsp, api) != 0 ||
        check_place(xsp->ctx, api, &xsp->ctx->zero_transports, "zero_transports_function") != 0 ||
        um_loop_call(xsp->ctx->loop, retire, xsp) != 0) {
        return -1;
    }
    free_xsp(xsp);
    return 0;
}

/* ---- the sequential mode ---- */

static int check_sequential(const lbm_xsp_t *xsp, const char *api)
{
    if (um_xsp_check(xsp, api) != 0) {
        return -1;
    }
    if (um_loop_embedded(xsp->loop)) {
        return um_error(UM_EINVAL, "CoreApi-20210-7",
                        "%s: operational_mode of the XSP is embedded: must be sequential for this call", api);
    }
    return 0;
}

int um_xsp_process_events(lbm_xsp_t *xsp, lbm_ulong_t msec)
{
    static const char api[] = "lbm_xsp_process_events";
    if (check_sequential(xsp, api) != 0) {
        return -1;
    }
    if (um_loop_in_family(xsp->loop)) {
        return um_error(UM_EOP, "CoreApi-20210-8", "%s: must not be called in a callback of the same context or XSP",
                        api);
    }
    return um_loop_process_events(xsp->loop, msec, 0);
}

int um_xsp_unblock(lbm_xsp_t *xsp)
{
    return check_sequential(xsp, "lbm_xsp_unblock") != 0 ? -1 : um_loop_unblock(xsp->loop);
}

/* ---- descriptors and options ---- */

int um_xsp_register_fd(lbm_xsp_t *xsp, lbm_handle_t handle, lbm_fd_cb_proc proc, void *clientd, lbm_event_queue_t *evq,
                       lbm_ulong_t ev)
{
    return um_user_fd_register(xsp->fds, handle, proc, clientd, evq, ev);
}

int um_xsp_cancel_fd(lbm_xsp_t *xsp, lbm_handle_t handle, lbm_ulong_t ev)
{
    return um_user_fd_cancel(xsp->fds, handle, ev, NULL);
}

int um_xsp_dump(lbm_xsp_t *xsp, int *size, lbm_config_option_t *opts)
{
    return um_options_dump(UM_SCOPE_XSP, &xsp->opts, size, opts);
}
