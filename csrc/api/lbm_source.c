/* lbm_src_*: sending, flushing, live options and statistics of sources; and the
 * readiness calls of um.h for sources. Any thread; no protocol logic. */
#include <lbm/lbm.h>
#include <lbm/um.h>

#include "api/um_source_calls.h"
#include "base/um_error.h"
#include "core/um_request.h"
#include "core/um_send_extras.h"
#include "core/um_source.h"

#define likely(x) __builtin_expect(!!(x), 1)

_Static_assert(sizeof(lbm_iovec_t) == sizeof(struct iovec) &&
                   offsetof(lbm_iovec_t, iov_base) == offsetof(struct iovec, iov_base) &&
                   offsetof(lbm_iovec_t, iov_len) == offsetof(struct iovec, iov_len),
               "lbm_iovec_t is passed on as struct iovec");

enum {
    QUEUING_FLAGS = LBM_SRC_SEND_EX_FLAG_UMQ_MESSAGE_ID_INFO | LBM_SRC_SEND_EX_FLAG_UMQ_INDEX |
                    LBM_SRC_SEND_EX_FLAG_UMQ_TOTAL_LIFETIME
};

int lbm_src_topic_alloc(lbm_topic_t **topicp, lbm_context_t *ctx, const char *symbol, const lbm_src_topic_attr_t *attr)
{
    return um_source_topic_alloc(topicp, ctx, symbol, attr);
}

int lbm_src_create(lbm_src_t **srcp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_src_cb_proc proc, void *clientd,
                   lbm_event_queue_t *evq)
{
    return um_source_create(srcp, ctx, topic, proc, clientd, evq);
}

int lbm_src_delete(lbm_src_t *src)
{
    return um_source_delete(src, NULL, "lbm_src_delete");
}

int lbm_src_delete_ex(lbm_src_t *src, lbm_event_queue_cancel_cb_info_t *cbinfo)
{
    return um_source_delete(src, cbinfo, "lbm_src_delete_ex");
}

lbm_context_t *lbm_context_from_src(lbm_src_t *src)
{
    return um_source_check(src, "lbm_context_from_src") == 0 ? src->ctx : NULL;
}

lbm_topic_t *lbm_topic_from_src(lbm_src_t *src)
{
    return um_source_check(src, "lbm_topic_from_src") == 0 ? &src->topic->base : NULL;
}

lbm_event_queue_t *lbm_event_queue_from_src(lbm_src_t *src)
{
    return um_source_check(src, "lbm_event_queue_from_src") == 0 ? src->evq : NULL;
}

/* ---- sending ---- */

static __attribute__((noinline)) int bad_send(const lbm_src_t *src, int flags, const char *api)
{
    if (um_source_check(src, api) != 0) {
        return -1;
    }
    if (flags & LBM_MSG_BUFF_ALLOC) {
        return um_error(UM_EINVAL, "CoreApi-5688-3254", "%s: LBM_MSG_BUFF_ALLOC: only with lbm_src_send()", api);
    }
    return um_error(UM_EINVAL, "CoreApi-5688-3255", "%s: message must be valid", api);
}

int lbm_src_alloc_msg_buff(lbm_src_t *const src, void **const usr_bufp, const size_t len, void **const lbm_hdl,
                           const int flags)
{
    static const char api[] = "lbm_src_alloc_msg_buff";
    if (um_source_check(src, api) != 0) {
        return -1;
    }
    if (usr_bufp == NULL || lbm_hdl == NULL) {
        return um_error(UM_EINVAL, "CoreApi-20233-5", "%s: %s: must not be NULL", api,
                        usr_bufp == NULL ? "usr_bufp" : "lbm_hdl");
    }
    return um_src_msg_buff_alloc(src, usr_bufp, len, lbm_hdl);
}

/* Of a handle; or what is wrong with the send. */
static __attribute__((noinline)) int send_odd(lbm_src_t *src, const char *msg, size_t len, int flags)
{
    if (!um_source_is_usable(src) || !(flags & LBM_MSG_BUFF_ALLOC)) {
        return bad_send(src, flags, "lbm_src_send");
    }
    lbm_context_t *ctx = src->ctx;
    bool waited;
    int rc = um_src_msg_buff_send(src, msg, len, flags, &waited);
    return rc == 0 && !waited ? 0 : um_source_waited(ctx, src, rc, flags, "lbm_src_send");
}

int lbm_src_send(lbm_src_t *src, const char *msg, size_t len, int flags)
{
    if (!likely(um_source_is_usable(src) && (msg != NULL || len == 0) && !(flags & LBM_MSG_BUFF_ALLOC))) {
        return send_odd(src, msg, len, flags);
    }
    lbm_context_t *ctx = src->ctx;
    bool waited;
    int rc = um_source_send_plain(src, msg, len, flags, &waited);
    return likely(rc == 0 && !waited) ? 0 : um_source_waited(ctx, src, rc, flags, "lbm_src_send");
}

static int check_pieces(const lbm_src_t *src, const lbm_iovec_t *iov, int num, const char *api)
{
    if (um_source_check(src, api) != 0) {
        return -1;
    }
    if (iov == NULL || num <= 0) {
        return um_error(UM_EINVAL, "CoreApi-5688-3256", "%s: iov must be valid and num (%d) at least 1", api, num);
    }
    for (int i = 0; i < num; i++) {
        if (iov[i].iov_base == NULL && iov[i].iov_len > 0) {
            return um_error(UM_EINVAL, "CoreApi-5688-3256", "%s: iov[%d].iov_base must be valid", api, i);
        }
        if (iov[i].iov_len > INT32_MAX) {
            return um_error(UM_EINVAL, "CoreApi-5688-3236", "%s: length %zu: must be at most %d bytes", api,
                            iov[i].iov_len, INT32_MAX);
        }
    }
    return 0;
}

static int send_run(lbm_src_t *src, struct um_send_run *run, size_t *sent, const char *api)
{
    if (sent != NULL) {
        *sent = 0;
    }
    if (!um_source_is_usable(src) || (run->base == NULL && run->count > 0) || (run->flags & LBM_MSG_BUFF_ALLOC)) {
        return bad_send(src, run->flags, api);
    }
    lbm_context_t *ctx = src->ctx;
    int rc = um_source_send_run(src, run);
    if (sent != NULL) {
        *sent = run->sent;
    }
    return rc == 0 && !run->waited ? 0 : um_source_waited(ctx, src, rc, run->flags, api);
}

int um_src_send_many(lbm_src_t *src, const void *base, const uint64_t *offsets, const uint32_t *lengths, size_t count,
                     int flags, size_t *sent)
{
    if (count > 0 && (offsets == NULL || lengths == NULL)) {
        if (sent != NULL) {
            *sent = 0;
        }
        return um_error(UM_EINVAL, "CoreApi-5688-3261", "um_src_send_many: %s: must not be NULL",
                        offsets == NULL ? "offsets" : "lengths");
    }
    struct um_send_run run = {.base = base, .offsets = offsets, .lengths = lengths, .count = count, .flags = flags};
    return send_run(src, &run, sent, "um_src_send_many");
}

int um_src_send_array(lbm_src_t *src, const void *base, size_t stride, size_t length, size_t count, int flags,
                      size_t *sent)
{
    struct um_send_run run = {.base = base, .stride = stride, .length = length, .count = count, .flags = flags};
    return send_run(src, &run, sent, "um_src_send_array");
}

/* Queuing takes place where the options of the source ask for it. (No source with a broker's transport can be made.) */
static bool asks_for_queuing(const struct um_source_options *opts)
{
    return opts->umq_ulb_application_set.count > 0;
}

/* Flags of queuing mean nothing to a source that does not queue; existing programs set them all the same. */
static int check_queuing_flags(const lbm_src_t *src, int flags, const char *api)
{
    if (asks_for_queuing(src->topic->opts)) {
        return um_error(UM_EOPNOTSUPP, "CoreApi-5688-3257", "%s: flag 0x%x: %s are not implemented in this version",
                        api, flags & QUEUING_FLAGS, "queue message ids, indexes and lifetimes");
    }
    atomic_bool *told = &src->ctx->queuing_flags_told;
    if (!atomic_load_explicit(told, memory_order_relaxed) &&
        !atomic_exchange_explicit(told, true, memory_order_relaxed)) {
        um_log(
            UM_LOG_NOTICE, "Core-5688-3263",
            "%s: topic [%s]: flags 0x%x belong to queuing and are ignored by a source that does not queue (said once "
            "for each context)",
            api, src->topic->base.name, flags & QUEUING_FLAGS);
    }
    return 0;
}

static int check_info(const lbm_src_t *src, const lbm_src_send_ex_info_t *info, const char *api)
{
    if (um_src_stream_plain_only(&src->stream)) {
        return um_error(UM_EINVAL, "CoreApi-6976-69",
                        "%s: topic [%s]: LBT-SMX has none of the extended options: info must be NULL", api,
                        src->topic->base.name);
    }
    if ((info->flags & UM_HF_FLAGS) != 0) {
        return um_error(UM_EINVAL, "CoreApi-5402-7", "%s: flag 0x%x: only with the sends of lbm_hf_src_*", api,
                        info->flags & UM_HF_FLAGS);
    }
    if ((info->flags & LBM_SRC_SEND_EX_FLAG_PROPERTIES) && um_send_properties_check(info->properties, api) != 0) {
        return -1;
    }
    if ((info->flags & LBM_SRC_SEND_EX_FLAG_APPHDR_CHAIN) && um_apphdr_check(info->apphdr_chain, api) != 0) {
        return -1;
    }
    if ((info->flags & LBM_SRC_SEND_EX_FLAG_CHANNEL) && um_send_channel_check(info->channel_info, api) != 0) {
        return -1;
    }
    return (info->flags & QUEUING_FLAGS) != 0 ? check_queuing_flags(src, info->flags, api) : 0;
}

static void report_numbers(lbm_src_t *src, const lbm_src_send_ex_info_t *info, uint32_t first, uint32_t last)
{
    bool wanted = (info->flags & LBM_SRC_SEND_EX_FLAG_SEQUENCE_NUMBER_INFO) ||
                  ((info->flags & LBM_SRC_SEND_EX_FLAG_SEQUENCE_NUMBER_INFO_FRAGONLY) && first != last);
    if (!wanted || src->proc == NULL) {
        return;
    }
    lbm_src_event_sequence_number_info_t numbers = {.first_sequence_number = first, .last_sequence_number = last};
    if (info->flags & LBM_SRC_SEND_EX_FLAG_UME_CLIENTD) {
        numbers.msg_clientd = info->ume_msg_clientd;
    }
    src->proc(src, LBM_SRC_EVENT_SEQUENCE_NUMBER_INFO, &numbers, src->clientd);
}

/* All pieces as one message. */
static int send_whole(lbm_src_t *src, struct um_send *send, const lbm_src_send_ex_info_t *info, const char *api)
{
    for (int i = 0; i < send->iovcnt; i++) {
        send->len += send->iov[i].iov_len;
    }
    lbm_context_t *ctx = src->ctx;
    int rc = info == NULL || (info->flags & UM_SEND_EXTRAS) == 0 ? um_source_send(src, send)
                                                                 : um_source_send_extras(src, send, info, api);
    if (rc != 0 || send->waited) {
        um_source_waited(ctx, src, rc, send->flags, api);
    }
    if (rc == 0 && info != NULL) {
        report_numbers(src, info, send->first_sqn, send->last_sqn);
    }
    return rc;
}

int um_source_call_check(const lbm_src_t *src, const lbm_iovec_t *iov, int num, const lbm_src_send_ex_info_t *info,
                         const char *api)
{
    return check_pieces(src, iov, num, api) == 0 && (info == NULL || check_info(src, info, api) == 0) ? 0 : -1;
}

int um_source_call_send(lbm_src_t *src, struct um_send *send, const lbm_src_send_ex_info_t *info, const char *api)
{
    return send_whole(src, send, info, api);
}

static int send_gathered(lbm_src_t *src, const lbm_iovec_t *iov, int num, int flags, const lbm_src_send_ex_info_t *info,
                         const char *api)
{
    struct um_send send = {.iov = (const struct iovec *)iov, .iovcnt = num, .flags = flags};
    return send_whole(src, &send, info, api);
}

/* Flags of piece i when every piece is a message: batch marks at the ends, one flush after the last. A group that may
 * not wait, and whose first message was accepted, is accepted whole. */
static int send_each(lbm_src_t *src, const lbm_iovec_t *iov, int num, int flags)
{
    lbm_context_t *ctx = src->ctx;
    bool waited = false, may_wait = !(flags & LBM_SRC_NONBLOCK) && !um_loop_in_family(ctx->loop);
    int rc = 0;
    for (int i = 0; i < num && rc == 0; i++) {
        struct um_send send = {
            .iov = (const struct iovec *)&iov[i], .iovcnt = 1, .len = iov[i].iov_len, .flags = flags};
        send.flags &= i == 0 ? ~0 : ~LBM_MSG_START_BATCH;
        send.flags &= i == num - 1 ? ~0 : ~(LBM_MSG_END_BATCH | LBM_MSG_FLUSH);
        send.unconditional = i > 0 && !may_wait;
        send.leads = i == 0 && num > 1 && !may_wait;
        rc = um_source_send(src, &send);
        waited |= send.waited;
    }
    return rc != 0 || waited ? um_source_waited(ctx, src, rc, flags, "lbm_src_sendv") : 0;
}

int lbm_src_sendv(lbm_src_t *src, const lbm_iovec_t *iov, int num, int flags)
{
    if (check_pieces(src, iov, num, "lbm_src_sendv") != 0) {
        return -1;
    }
    return flags & LBM_MSG_IOV_GATHER ? send_gathered(src, iov, num, flags, NULL, "lbm_src_sendv")
                                      : send_each(src, iov, num, flags);
}

int lbm_src_send_ex(lbm_src_t *src, const char *msg, size_t len, int flags, lbm_src_send_ex_info_t *info)
{
    if (info == NULL) {
        return lbm_src_send(src, msg, len, flags);
    }
    if (!um_source_is_usable(src) || (msg == NULL && len > 0) || (flags & LBM_MSG_BUFF_ALLOC)) {
        return bad_send(src, flags, "lbm_src_send_ex");
    }
    const struct um_slice data = {(const uint8_t *)msg, len};
    if (um_source_send_single(src, data, flags, info)) {
        return 0;
    }
    if (check_info(src, info, "lbm_src_send_ex") != 0) {
        return -1;
    }
    lbm_iovec_t iov = {.iov_base = (char *)msg, .iov_len = len};
    return send_gathered(src, &iov, 1, flags, info, "lbm_src_send_ex");
}

int lbm_src_sendv_ex(lbm_src_t *src, const lbm_iovec_t *iov, int num, int flags, lbm_src_send_ex_info_t *info)
{
    if (check_pieces(src, iov, num, "lbm_src_sendv_ex") != 0 ||
        (info != NULL && check_info(src, info, "lbm_src_sendv_ex") != 0)) {
        return -1;
    }
    return send_gathered(src, iov, num, flags, info, "lbm_src_sendv_ex");
}

/* ---- requests ---- */

/* The request is there before its message is sent: responses may come before the call returns. */
static int send_request(lbm_src_t *src, const lbm_iovec_t *iov, const struct um_request_call *call, int flags,
                        const lbm_src_send_ex_info_t *info, const char *api)
{
    if (!um_source_is_usable(src) || (iov->iov_base == NULL && iov->iov_len > 0) || (flags & LBM_MSG_BUFF_ALLOC)) {
        return bad_send(src, flags, api);
    }
    if (um_src_stream_plain_only(&src->stream)) {
        return um_error(UM_EOPNOTSUPP, "CoreApi-6976-70", "%s: topic [%s]: LBT-SMX carries no requests", api,
                        src->topic->base.name);
    }
    if (info != NULL && (info->flags & LBM_SRC_SEND_EX_FLAG_APPHDR_CHAIN)) {
        return um_error(UM_EINVAL, "CoreApi-6021-9", "%s: requests have no application headers", api);
    }
    if ((info != NULL && check_info(src, info, api) != 0) ||
        um_request_open(src->ctx, call, api, "Core-5688-3691", "Sending request") != 0) {
        return -1;
    }
    struct um_request_headers headers;
    um_request_headers(*call->reqp, &headers);
    struct um_send send = {.iov = (const struct iovec *)iov,
                           .iovcnt = 1,
                           .flags = flags,
                           .headers = headers.bytes,
                           .headers_len = sizeof headers.bytes,
                           .first_header = headers.first};
    if (send_whole(src, &send, info, api) != 0) {
        um_request_abandon(call->reqp);
        return -1;
    }
    return 0;
}

int lbm_send_request(lbm_request_t **reqp, lbm_src_t *src, const char *data, size_t len, lbm_request_cb_proc proc,
                     void *clientd, lbm_event_queue_t *evq, int send_flags)
{
    const lbm_iovec_t iov = {.iov_base = (char *)data, .iov_len = len};
    const struct um_request_call call = {reqp, proc, clientd, evq};
    return send_request(src, &iov, &call, send_flags, NULL, "lbm_send_request");
}

int lbm_send_request_ex(lbm_request_t **reqp, lbm_src_t *src, const char *data, size_t len, lbm_request_cb_proc proc,
                        void *clientd, lbm_event_queue_t *evq, int send_flags, lbm_src_send_ex_info_t *exinfo)
{
    const lbm_iovec_t iov = {.iov_base = (char *)data, .iov_len = len};
    const struct um_request_call call = {reqp, proc, clientd, evq};
    return send_request(src, &iov, &call, send_flags, exinfo, "lbm_send_request_ex");
}

int lbm_src_flush(lbm_src_t *src)
{
    if (um_source_check(src, "lbm_src_flush") != 0) {
        return -1;
    }
    if (um_loop_in_family(src->ctx->loop)) {
        return um_error(UM_EOP, "CoreApi-5688-3260",
                        "lbm_src_flush: must not be called in a callback that runs on the context thread; send with "
                        "LBM_MSG_FLUSH there");
    }
    um_src_stream_flush(&src->stream);
    return 0;
}

static int flush_on_loop(void *arg)
{
    um_src_transports_flush(((lbm_context_t *)arg)->src_transports);
    return 0;
}

int lbm_flush_all(lbm_context_t *ctx)
{
    if (um_context_check(ctx, "lbm_flush_all") != 0) {
        return -1;
    }
    return ctx->src_transports == NULL ? 0 : um_loop_call(ctx->loop, flush_on_loop, ctx);
}

/* ---- options of a live source ---- */

struct option_call {
    const char *name;
    const void *value;
    void *out;
    size_t len;
    size_t *len_inout;
    int *count;
    lbm_config_option_t *dump;
};

static int do_set(struct um_source_options *opts, void *arg)
{
    struct option_call *call = arg;
    return um_options_set(UM_SCOPE_SOURCE, opts, call->name, call->value, call->len, true);
}

static int do_str_set(struct um_source_options *opts, void *arg)
{
    struct option_call *call = arg;
    return um_options_str_set(UM_SCOPE_SOURCE, opts, call->name, call->value, true);
}

static int do_get(struct um_source_options *opts, void *arg)
{
    struct option_call *call = arg;
    return um_options_get(UM_SCOPE_SOURCE, opts, call->name, call->out, call->len_inout);
}

static int do_str_get(struct um_source_options *opts, void *arg)
{
    struct option_call *call = arg;
    return um_options_str_get(UM_SCOPE_SOURCE, opts, call->name, call->out, call->len_inout);
}

static int do_dump(struct um_source_options *opts, void *arg)
{
    struct option_call *call = arg;
    return um_options_dump(UM_SCOPE_SOURCE, opts, call->count, call->dump);
}

int lbm_src_setopt(lbm_src_t *src, const char *optname, const void *optval, size_t optlen)
{
    struct option_call call = {.name = optname, .value = optval, .len = optlen};
    return um_source_check(src, "lbm_src_setopt") == 0 ? um_source_with_options(src, do_set, &call) : -1;
}

int lbm_src_str_setopt(lbm_src_t *src, const char *optname, const char *optval)
{
    struct option_call call = {.name = optname, .value = optval};
    return um_source_check(src, "lbm_src_str_setopt") == 0 ? um_source_with_options(src, do_str_set, &call) : -1;
}

int lbm_src_getopt(lbm_src_t *src, const char *optname, void *optval, size_t *optlen)
{
    struct option_call call = {.name = optname, .out = optval, .len_inout = optlen};
    return um_source_check(src, "lbm_src_getopt") == 0 ? um_source_with_options(src, do_get, &call) : -1;
}

int lbm_src_str_getopt(lbm_src_t *src, const char *optname, char *optval, size_t *optlen)
{
    struct option_call call = {.name = optname, .out = optval, .len_inout = optlen};
    return um_source_check(src, "lbm_src_str_getopt") == 0 ? um_source_with_options(src, do_str_get, &call) : -1;
}

int lbm_src_topic_dump(lbm_src_t *src, int *size, lbm_config_option_t *opts)
{
    struct option_call call = {.count = size, .dump = opts};
    return um_source_check(src, "lbm_src_topic_dump") == 0 ? um_source_with_options(src, do_dump, &call) : -1;
}

/* ---- statistics, readiness ---- */

int lbm_src_retrieve_transport_stats(lbm_src_t *src, lbm_src_transport_stats_t *stats)
{
    if (um_source_check(src, "lbm_src_retrieve_transport_stats") != 0) {
        return -1;
    }
    if (stats == NULL) {
        return um_error(UM_EINVAL, "CoreApi-5688-3258", "lbm_src_retrieve_transport_stats: stats must be valid");
    }
    return um_src_stream_stats(&src->stream, stats);
}

int lbm_src_reset_transport_stats(lbm_src_t *src)
{
    if (um_source_check(src, "lbm_src_reset_transport_stats") != 0) {
        return -1;
    }
    um_src_stream_stats_reset(&src->stream);
    return 0;
}

int um_src_receivers(lbm_src_t *src)
{
    return um_source_check(src, "um_src_receivers") == 0 ? um_src_stream_clients(&src->stream) : -1;
}

int um_src_wait_receivers(lbm_src_t *src, int receivers, int timeout_ms)
{
    if (um_source_check(src, "um_src_wait_receivers") != 0) {
        return -1;
    }
    if (receivers < 0 || timeout_ms < 0) {
        return um_error(UM_EINVAL, "CoreApi-5688-3259",
                        "um_src_wait_receivers: receivers %d and timeout_ms %d: must be 0 or more", receivers,
                        timeout_ms);
    }
    return um_source_wait_receivers(src, receivers, timeout_ms);
}
