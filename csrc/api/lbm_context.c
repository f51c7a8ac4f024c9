/* lbm_context_*: argument checks, option access and statistics in front of
 * core/um_context.c. Any thread; calls that need the loop are carried to it. */
#include <stdio.h>
#include <string.h>

#include <lbm/lbm.h>

#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "base/um_timer.h"
#include "core/um_context.h"

#define UM_TOPIC_RES_FLAGS                                                                                             \
    (LBM_TOPIC_RES_REQUEST_WILDCARD_QUERY | LBM_TOPIC_RES_REQUEST_QUERY | LBM_TOPIC_RES_REQUEST_ADVERTISEMENT |        \
     LBM_TOPIC_RES_REQUEST_RESERVED1 | LBM_TOPIC_RES_REQUEST_CONTEXT_ADVERTISEMENT |                                   \
     LBM_TOPIC_RES_REQUEST_CONTEXT_QUERY | LBM_TOPIC_RES_REQUEST_GW_REMOTE_INTEREST)

static int um_must_be_valid(const void *argument, const char *api, const char *name)
{
    return argument != NULL ? 0 : um_error(UM_EINVAL, "CoreApi-1061-1", "%s: %s must be valid", api, name);
}

/* ---- life ---- */

int lbm_context_create(lbm_context_t **ctxp, const lbm_context_attr_t *attr, lbm_daemon_event_cb_proc proc,
                       void *clientd)
{
    um_config_start();
    return um_must_be_valid(ctxp, "lbm_context_create", "ctxp") < 0
               ? -1
               : um_context_create(ctxp, attr, false, "lbm_context_create");
}

int lbm_context_reactor_only_create(lbm_context_t **ctxp, const lbm_context_attr_t *attr)
{
    um_config_start();
    return um_must_be_valid(ctxp, "lbm_context_reactor_only_create", "ctxp") < 0
               ? -1
               : um_context_create(ctxp, attr, true, "lbm_context_reactor_only_create");
}

int lbm_context_delete(lbm_context_t *ctx)
{
    return um_context_delete(ctx, NULL, "lbm_context_delete");
}

int lbm_context_delete_ex(lbm_context_t *ctx, lbm_event_queue_cancel_cb_info_t *cbinfo)
{
    return um_context_delete(ctx, cbinfo, "lbm_context_delete_ex");
}

static int um_context_name_ignored(const char *api)
{
    um_log(UM_LOG_WARNING, "Core-1061-2", "%s: deprecated and without effect; set the option context_name", api);
    return LBM_OK;
}

int lbm_context_set_name(lbm_context_t *ctx, const char *name)
{
    return um_context_name_ignored("lbm_context_set_name");
}

int lbm_context_get_name(lbm_context_t *ctx, char *name, size_t *size)
{
    return um_context_name_ignored("lbm_context_get_name");
}

/* ---- sequential mode ---- */

static int um_context_check_sequential(lbm_context_t *ctx, const char *api)
{
    if (um_context_check(ctx, api) < 0) {
        return -1;
    }
    if (um_loop_embedded(ctx->loop)) {
        return um_error(UM_EINVAL, "CoreApi-1061-6",
                        "%s: operational_mode is embedded: must be sequential for this call", api);
    }
    return 0;
}

static int um_context_check_processing(lbm_context_t *ctx, const char *api)
{
    if (um_context_check_sequential(ctx, api) < 0) {
        return -1;
    }
    if (um_loop_in_family(ctx->loop)) {
        return um_error(UM_EOP, "CoreApi-1061-13", "%s: must not be called in a callback of the same context", api);
    }
    return 0;
}

int lbm_context_process_events(lbm_context_t *ctx, lbm_ulong_t msec)
{
    return um_context_check_processing(ctx, "lbm_context_process_events") < 0 ? -1
                                                                              : um_context_process_events(ctx, msec, 0);
}

int lbm_context_process_events_ex(lbm_context_t *ctx, lbm_ulong_t msec, lbm_process_events_info_t *info)
{
    const char *api = "lbm_context_process_events_ex";
    if (um_context_check_processing(ctx, api) < 0) {
        return -1;
    }
    if (info == NULL) {
        return um_context_process_events(ctx, msec, 0);
    }
    if ((info->flags & ~(LBM_PROC_EVENT_EX_FLAG_USER_TIME | LBM_PROC_EVENT_EX_FLAG_NO_MAIN_LOOP_MUTEX)) != 0) {
        return um_error(UM_EINVAL, "CoreApi-1061-3", "%s: flags 0x%x: must be LBM_PROC_EVENT_EX_FLAG_* bits", api,
                        (unsigned)info->flags);
    }
    if ((info->flags & LBM_PROC_EVENT_EX_FLAG_NO_MAIN_LOOP_MUTEX) != 0 && atomic_load(&ctx->lanes.count) > 0) {
        return um_error(UM_EOP, "CoreApi-1061-15",
                        "%s: LBM_PROC_EVENT_EX_FLAG_NO_MAIN_LOOP_MUTEX: the context must have no XSPs", api);
    }
    if ((info->flags & LBM_PROC_EVENT_EX_FLAG_USER_TIME) == 0) {
        return um_context_process_events(ctx, msec, 0);
    }
    if (msec != 0) {
        return um_error(UM_EINVAL, "CoreApi-1061-4", "%s: msec %lu: must be 0 with LBM_PROC_EVENT_EX_FLAG_USER_TIME",
                        api, (unsigned long)msec);
    }
    uint64_t now_ns = (uint64_t)info->time_val.tv_sec * UM_NS_PER_SEC + (uint64_t)info->time_val.tv_usec * 1000;
    if (now_ns == 0) {
        return um_error(UM_EINVAL, "CoreApi-1061-5", "%s: time_val 0: must be the present time", api);
    }
    return um_context_process_events(ctx, 0, now_ns);
}

int lbm_context_unblock(lbm_context_t *ctx)
{
    return um_context_check_sequential(ctx, "lbm_context_unblock") < 0 ? -1 : um_loop_unblock(ctx->loop);
}

int lbm_context_process_lbtipc_messages(lbm_context_t *ctx, lbm_ulong_t msec, lbm_ulong_t loop_count)
{
    const char *api = "lbm_context_process_lbtipc_messages";
    if (um_context_check_messaging(ctx, api) < 0) {
        return -1;
    }
    if (um_loop_in_family(ctx->loop)) {
        return um_error(UM_EOP, "CoreApi-1061-14", "%s: must not be called in a callback of the same context", api);
    }
    return um_rcv_sessions_process(ctx->rcv_sessions, LBM_TRANSPORT_TYPE_LBTIPC, msec, loop_count);
}

int lbm_context_lbtipc_unblock(lbm_context_t *ctx)
{
    if (um_context_check_messaging(ctx, "lbm_context_lbtipc_unblock") < 0) {
        return -1;
    }
    return um_rcv_sessions_unblock(ctx->rcv_sessions, LBM_TRANSPORT_TYPE_LBTIPC);
}

/* ---- topic resolution ---- */

struct um_context_tr_request {
    lbm_context_t *ctx;
    uint16_t flags;
    uint32_t interval_ms, duration_sec;
};

static int um_context_tr_request_on_loop(void *arg)
{
    struct um_context_tr_request *request = arg;
    return um_resolver_request(request->ctx->resolver, request->flags, request->interval_ms, request->duration_sec);
}

int lbm_context_topic_resolution_request(lbm_context_t *ctx, lbm_ushort_t flags, lbm_ulong_t interval_msec,
                                         lbm_ulong_t duration_sec)
{
    const char *api = "lbm_context_topic_resolution_request";
    if (um_context_check_messaging(ctx, api) < 0) {
        return -1;
    }
    if (flags == 0 || (flags & ~UM_TOPIC_RES_FLAGS) != 0) {
        return um_error(UM_EINVAL, "CoreApi-1061-8", "%s: flags 0x%x: must be LBM_TOPIC_RES_REQUEST_* bits", api,
                        flags);
    }
    struct um_context_tr_request request = {ctx, flags,
                                            interval_msec > UINT32_MAX ? UINT32_MAX : (uint32_t)interval_msec,
                                            duration_sec > UINT32_MAX ? UINT32_MAX : (uint32_t)duration_sec};
    return um_loop_call(ctx->loop, um_context_tr_request_on_loop, &request);
}

static int um_context_nak_cutoff_on_lane(struct um_rcv_lane *lane, void *arg)
{
    um_rcv_sessions_set_nak_cutoff(lane->sessions, atomic_load(&lane->ctx->nak_cutoff));
    return 0;
}

int lbm_context_set_nak_cutoff(lbm_context_t *ctx, int flags)
{
    const char *api = "lbm_context_set_nak_cutoff";
    if (um_context_check_messaging(ctx, api) < 0) {
        return -1;
    }
    if (flags != LBM_NAK_CUTOFF_FLAG_DISABLE_NAKS && flags != LBM_NAK_CUTOFF_FLAG_ENABLE_NAKS) {
        return um_error(UM_EINVAL, "CoreApi-1061-9",
                        "%s: flags 0x%x: must be LBM_NAK_CUTOFF_FLAG_DISABLE_NAKS or LBM_NAK_CUTOFF_FLAG_ENABLE_NAKS",
                        api, (unsigned)flags);
    }
    atomic_store(&ctx->nak_cutoff, flags == LBM_NAK_CUTOFF_FLAG_DISABLE_NAKS);
    return um_rcv_lanes_each(ctx, um_context_nak_cutoff_on_lane, NULL);
}

/* ---- options of the live object ---- */

struct um_context_option {
    lbm_context_t *ctx;
    const char *name;
    const void *value;
    size_t len;
    void *out;
    size_t *len_out;
};

static int um_context_set_on_loop(void *arg)
{
    struct um_context_option *o = arg;
    return um_options_set(UM_SCOPE_CONTEXT, &o->ctx->opts, o->name, o->value, o->len, true);
}

static int um_context_str_set_on_loop(void *arg)
{
    struct um_context_option *o = arg;
    return um_options_str_set(UM_SCOPE_CONTEXT, &o->ctx->opts, o->name, o->value, true);
}

static int um_context_get_on_loop(void *arg)
{
    struct um_context_option *o = arg;
    struct um_context_options seen;
    if (um_context_in_force(o->ctx, &seen) != 0) {
        return -1;
    }
    int rc = um_options_get(UM_SCOPE_CONTEXT, &seen, o->name, o->out, o->len_out);
    um_context_in_force_clear(o->ctx, &seen);
    return rc;
}

static int um_context_str_get_on_loop(void *arg)
{
    struct um_context_option *o = arg;
    struct um_context_options seen;
    if (um_context_in_force(o->ctx, &seen) != 0) {
        return -1;
    }
    int rc = um_options_str_get(UM_SCOPE_CONTEXT, &seen, o->name, o->out, o->len_out);
    um_context_in_force_clear(o->ctx, &seen);
    return rc;
}

static int um_context_option_access(lbm_context_t *ctx, const char *api, int (*on_loop)(void *arg),
                                    struct um_context_option *option)
{
    if (um_context_check(ctx, api) < 0 || um_must_be_valid(option->name, api, "optname") < 0 ||
        um_must_be_valid(option->value != NULL ? option->value : option->out, api, "optval") < 0) {
        return -1;
    }
    option->ctx = ctx;
    return um_loop_call(ctx->loop, on_loop, option);
}

int lbm_context_setopt(lbm_context_t *ctx, const char *optname, const void *optval, size_t optlen)
{
    struct um_context_option option = {.name = optname, .value = optval, .len = optlen};
    return um_context_option_access(ctx, "lbm_context_setopt", um_context_set_on_loop, &option);
}

int lbm_context_str_setopt(lbm_context_t *ctx, const char *optname, const char *optval)
{
    struct um_context_option option = {.name = optname, .value = optval};
    return um_context_option_access(ctx, "lbm_context_str_setopt", um_context_str_set_on_loop, &option);
}

int lbm_context_getopt(lbm_context_t *ctx, const char *optname, void *optval, size_t *optlen)
{
    struct um_context_option option = {.name = optname, .out = optval, .len_out = optlen};
    return um_must_be_valid(optlen, "lbm_context_getopt", "optlen") < 0
               ? -1
               : um_context_option_access(ctx, "lbm_context_getopt", um_context_get_on_loop, &option);
}

int lbm_context_str_getopt(lbm_context_t *ctx, const char *optname, char *optval, size_t *optlen)
{
    struct um_context_option option = {.name = optname, .out = optval, .len_out = optlen};
    return um_must_be_valid(optlen, "lbm_context_str_getopt", "optlen") < 0
               ? -1
               : um_context_option_access(ctx, "lbm_context_str_getopt", um_context_str_get_on_loop, &option);
}

struct um_context_dump {
    lbm_context_t *ctx;
    int *size;
    lbm_config_option_t *opts;
};

static int um_context_dump_on_loop(void *arg)
{
    struct um_context_dump *dump = arg;
    struct um_context_options seen;
    if (um_context_in_force(dump->ctx, &seen) != 0) {
        return -1;
    }
    int rc = um_options_dump(UM_SCOPE_CONTEXT, &seen, dump->size, dump->opts);
    um_context_in_force_clear(dump->ctx, &seen);
    return rc;
}

int lbm_context_dump(lbm_context_t *ctx, int *size, lbm_config_option_t *opts)
{
    struct um_context_dump dump = {ctx, size, opts};
    if (um_context_check(ctx, "lbm_context_dump") < 0 || um_must_be_valid(size, "lbm_context_dump", "size") < 0 ||
        um_must_be_valid(opts, "lbm_context_dump", "opts") < 0) {
        return -1;
    }
    return um_loop_call(ctx->loop, um_context_dump_on_loop, &dump);
}

/* ---- context statistics ---- */

struct um_context_stats_call {
    lbm_context_t *ctx;
    lbm_context_stats_t *out;
};

static int um_context_stats_on_loop(void *arg)
{
    struct um_context_stats_call *call = arg;
    const struct um_context_counters *counters = &call->ctx->counters;
    lbm_context_stats_t *out = call->out;
    memset(out, 0, sizeof *out);
    um_resolver_stats(call->ctx->resolver, out);
    out->send_blocked = atomic_load_explicit(&counters->send_blocked, memory_order_relaxed);
    out->send_would_block = atomic_load_explicit(&counters->send_would_block, memory_order_relaxed);
    out->resp_blocked = atomic_load_explicit(&counters->resp_blocked, memory_order_relaxed);
    out->resp_would_block = atomic_load_explicit(&counters->resp_would_block, memory_order_relaxed);
    out->fragments_lost = atomic_load_explicit(&counters->fragments_lost, memory_order_relaxed);
    out->fragments_unrecoverably_lost =
        atomic_load_explicit(&counters->fragments_unrecoverably_lost, memory_order_relaxed);
    struct um_unicast_stats unicast;
    um_unicast_stats(call->ctx->unicast, &unicast);
    out->uim_dup_msgs_rcved = unicast.msgs_duplicate - counters->uim_duplicates_before;
    out->uim_msgs_no_stream_rcved = unicast.msgs_no_stream - counters->uim_no_stream_before;
    out->rcv_cb_svc_time_min = atomic_load_explicit(&counters->rcv_cb_svc_time_min, memory_order_relaxed);
    out->rcv_cb_svc_time_max = atomic_load_explicit(&counters->rcv_cb_svc_time_max, memory_order_relaxed);
    out->rcv_cb_svc_time_mean = atomic_load_explicit(&counters->rcv_cb_svc_time_mean, memory_order_relaxed);
    return 0;
}

static int um_context_udp_stats_on_lane(struct um_rcv_lane *lane, void *arg)
{
    lbm_context_stats_t *out = arg;
    struct um_rcv_datagram_counts lbtrm = {0}, lbtru = {0};
    um_rcv_sessions_add_counts(lane->sessions, LBM_TRANSPORT_TYPE_LBTRM, &lbtrm);
    um_rcv_sessions_add_counts(lane->sessions, LBM_TRANSPORT_TYPE_LBTRU, &lbtru);
    out->lbtrm_unknown_msgs_rcved += lbtrm.unjoined;
    out->lbtru_unknown_msgs_rcved += lbtru.unjoined;
    return 0;
}

int lbm_context_retrieve_stats(lbm_context_t *ctx, lbm_context_stats_t *stats)
{
    struct um_context_stats_call call = {ctx, stats};
    if (um_context_check_messaging(ctx, "lbm_context_retrieve_stats") < 0 ||
        um_must_be_valid(stats, "lbm_context_retrieve_stats", "stats") < 0) {
        return -1;
    }
    return um_loop_call(ctx->loop, um_context_stats_on_loop, &call) < 0
               ? -1
               : um_rcv_lanes_each(ctx, um_context_udp_stats_on_lane, stats);
}

static int um_context_stats_reset_on_loop(void *arg)
{
    lbm_context_t *ctx = arg;
    struct um_context_counters *counters = &ctx->counters;
    atomic_ulong *all[] = {
        &counters->send_blocked,        &counters->send_would_block,    &counters->resp_blocked,
        &counters->resp_would_block,    &counters->fragments_lost,      &counters->fragments_unrecoverably_lost,
        &counters->rcv_cb_svc_time_min, &counters->rcv_cb_svc_time_max, &counters->rcv_cb_svc_time_mean};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        atomic_store_explicit(all[i], 0, memory_order_relaxed);
    }
    struct um_unicast_stats unicast;
    um_unicast_stats(ctx->unicast, &unicast);
    counters->uim_duplicates_before = unicast.msgs_duplicate;
    counters->uim_no_stream_before = unicast.msgs_no_stream;
    um_resolver_stats_reset(ctx->resolver);
    return 0;
}

static int um_context_udp_stats_reset_on_lane(struct um_rcv_lane *lane, void *arg)
{
    um_rcv_sessions_counts_reset(lane->sessions);
    return 0;
}

int lbm_context_reset_stats(lbm_context_t *ctx)
{
    return um_context_check_messaging(ctx, "lbm_context_reset_stats") < 0 ||
                   um_loop_call(ctx->loop, um_context_stats_reset_on_loop, ctx) < 0
               ? -1
               : um_rcv_lanes_each(ctx, um_context_udp_stats_reset_on_lane, NULL);
}

/* ---- transport statistics: arrays of elements whose size the caller gives ---- */

struct um_context_transport_stats {
    lbm_context_t *ctx;
    const char *api;
    int *num;
    size_t stride;
    void *out;
    size_t element; /* our size of one element */
    char *elements; /* gathered */
    int count;
};

/* Room for `more` elements behind those gathered; NULL + error. */
static void *um_context_more_stats(struct um_context_transport_stats *call, int more)
{
    size_t size = (size_t)(call->count + more) * call->element;
    char *elements = um_realloc(call->elements, size);
    if (elements == NULL) {
        um_error_nomem("transport statistics", size);
        return NULL;
    }
    call->elements = elements;
    char *room = elements + (size_t)call->count * call->element;
    memset(room, 0, (size_t)more * call->element);
    call->count += more;
    return room;
}

static int um_context_gather_src(void *arg)
{
    struct um_context_transport_stats *call = arg;
    int count = um_src_transports_stats(call->ctx->src_transports, NULL, 0);
    void *room = count == 0 ? NULL : um_context_more_stats(call, count);
    if (room != NULL) {
        um_src_transports_stats(call->ctx->src_transports, room, count);
    }
    return room != NULL || count == 0 ? 0 : -1;
}

static int um_context_gather_rcv(struct um_rcv_lane *lane, void *arg)
{
    int count = um_rcv_sessions_stats(lane->sessions, NULL, 0);
    void *room = count == 0 ? NULL : um_context_more_stats(arg, count);
    if (room != NULL) {
        um_rcv_sessions_stats(lane->sessions, room, count);
    }
    return room != NULL || count == 0 ? 0 : -1;
}

static int um_context_check_transport_stats(struct um_context_transport_stats *call, int size)
{
    if (um_context_check_messaging(call->ctx, call->api) < 0 || um_must_be_valid(call->num, call->api, "num") < 0 ||
        (*call->num > 0 && um_must_be_valid(call->out, call->api, "stats") < 0)) {
        return -1;
    }
    if (size <= 0 || *call->num < 0) {
        return um_error(UM_EINVAL, "CoreApi-1061-12", "%s: size %d, num %d: size must be above 0, num not below",
                        call->api, size, *call->num);
    }
    call->stride = (size_t)size;
    return 0;
}

/* The caller's array, if it is large enough, gets what was gathered. */
static int um_context_hand_out_stats(struct um_context_transport_stats *call, int rc)
{
    int given = *call->num;
    size_t copied = call->stride < call->element ? call->stride : call->element;
    if (rc == 0) {
        *call->num = call->count;
    }
    if (rc == 0 && call->count > given) {
        rc = um_error(UM_EINVAL, "CoreApi-1061-11", "%s: the array of %d elements is too small: %d are needed",
                      call->api, given, call->count);
    }
    for (int i = 0; rc == 0 && i < call->count; i++) {
        memcpy((char *)call->out + (size_t)i * call->stride, call->elements + (size_t)i * call->element, copied);
    }
    um_free(call->elements);
    return rc;
}

int lbm_context_retrieve_src_transport_stats_ex(lbm_context_t *ctx, int *num, int size,
                                                lbm_src_transport_stats_t *stats)
{
    struct um_context_transport_stats call = {.ctx = ctx,
                                              .api = "lbm_context_retrieve_src_transport_stats",
                                              .num = num,
                                              .out = stats,
                                              .element = sizeof *stats};
    return um_context_check_transport_stats(&call, size) < 0
               ? -1
               : um_context_hand_out_stats(&call, um_loop_call(ctx->loop, um_context_gather_src, &call));
}

int lbm_context_retrieve_rcv_transport_stats_ex(lbm_context_t *ctx, int *num, int size,
                                                lbm_rcv_transport_stats_t *stats)
{
    struct um_context_transport_stats call = {.ctx = ctx,
                                              .api = "lbm_context_retrieve_rcv_transport_stats",
                                              .num = num,
                                              .out = stats,
                                              .element = sizeof *stats};
    return um_context_check_transport_stats(&call, size) < 0
               ? -1
               : um_context_hand_out_stats(&call, um_rcv_lanes_each(ctx, um_context_gather_rcv, &call));
}

/* The header also has macros of these names, which pass the size. */
int(lbm_context_retrieve_src_transport_stats)(lbm_context_t *ctx, int *num, lbm_src_transport_stats_t *stats)
{
    return lbm_context_retrieve_src_transport_stats_ex(ctx, num, sizeof *stats, stats);
}

int(lbm_context_retrieve_rcv_transport_stats)(lbm_context_t *ctx, int *num, lbm_rcv_transport_stats_t *stats)
{
    return lbm_context_retrieve_rcv_transport_stats_ex(ctx, num, sizeof *stats, stats);
}

static int um_context_reset_src_on_loop(void *arg)
{
    lbm_context_t *ctx = arg;
    um_src_transports_stats_reset(ctx->src_transports);
    return 0;
}

static int um_context_reset_rcv_on_lane(struct um_rcv_lane *lane, void *arg)
{
    um_rcv_sessions_stats_reset(lane->sessions);
    return 0;
}

int lbm_context_reset_src_transport_stats(lbm_context_t *ctx)
{
    return um_context_check_messaging(ctx, "lbm_context_reset_src_transport_stats") < 0
               ? -1
               : um_loop_call(ctx->loop, um_context_reset_src_on_loop, ctx);
}

int lbm_context_reset_rcv_transport_stats(lbm_context_t *ctx)
{
    return um_context_check_messaging(ctx, "lbm_context_reset_rcv_transport_stats") < 0
               ? -1
               : um_rcv_lanes_each(ctx, um_context_reset_rcv_on_lane, NULL);
}
