/* lbm_src_*: sending, flushing, live options and statistics of sources; and the
 * readiness calls of um.h for sources. Any thread; no protocol logic. */
#include <lbm/lbm.h>
#include <lbm/um.h>

#include "base/um_error.h"
#include "core/um_source.h"
#include "transport/smx/um_smx_source.h"

#define likely(x) __builtin_expect(!!(x), 1)

_Static_assert(sizeof(lbm_iovec_t) == sizeof(struct iovec) &&
                   offsetof(lbm_iovec_t, iov_base) == offsetof(struct iovec, iov_base) &&
                   offsetof(lbm_iovec_t, iov_len) == offsetof(struct iovec, iov_len),
               "lbm_iovec_t is passed on as struct iovec");

/* What a send can ask for through lbm_src_send_ex_info_t that is not there yet. */
static const struct {
    int flag;
    const char *what;
} not_available[] = {
    {LBM_SRC_SEND_EX_FLAG_APPHDR_CHAIN, "application headers"},
    {LBM_SRC_SEND_EX_FLAG_UMQ_MESSAGE_ID_INFO, "queue message ids"},
    {LBM_SRC_SEND_EX_FLAG_CHANNEL, "channels"},
    {LBM_SRC_SEND_EX_FLAG_UMQ_INDEX, "queue indexes"},
    {LBM_SRC_SEND_EX_FLAG_UMQ_TOTAL_LIFETIME, "message lifetimes"},
    {LBM_SRC_SEND_EX_FLAG_HF_OPTIONAL, "hot failover"},
    {LBM_SRC_SEND_EX_FLAG_HF_32, "hot failover"},
    {LBM_SRC_SEND_EX_FLAG_HF_64, "hot failover"},
    {LBM_SRC_SEND_EX_FLAG_PROPERTIES, "message properties"},
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

/* Count a send that waited or was refused. The source may be gone: another thread deleted it while the call waited. */
static __attribute__((noinline)) int count_wait(lbm_context_t *ctx, const lbm_src_t *src, int rc, int flags,
                                                const char *api)
{
    if (rc == 0) {
        atomic_fetch_add_explicit(&ctx->counters.send_blocked, 1, memory_order_relaxed);
    } else if (um_errnum() == UM_EWOULDBLOCK) {
        um_source_refused(ctx, src, flags, api);
    }
    return rc;
}

static __attribute__((noinline)) int bad_send(const lbm_src_t *src, int flags, const char *api)
{
    if (um_source_check(src, api) != 0) {
        return -1;
    }
    if (flags & LBM_MSG_BUFF_ALLOC) {
        return um_error(UM_EOPNOTSUPP, "CoreApi-5688-3254",
                        "%s: LBM_MSG_BUFF_ALLOC: zero-copy sends are not implemented", api);
    }
    return um_error(UM_EINVAL, "CoreApi-5688-3255", "%s: message must be valid", api);
}

static bool source_usable(const lbm_src_t *src)
{
    return src != NULL && src->magic == UM_SOURCE_MAGIC && src->fork_generation == um_fork_generation_now();
}

int lbm_src_send(lbm_src_t *src, const char *msg, size_t len, int flags)
{
    if (!likely(source_usable(src) && (msg != NULL || len == 0) && !(flags & LBM_MSG_BUFF_ALLOC))) {
        return bad_send(src, flags, "lbm_src_send");
    }
    lbm_context_t *ctx = src->ctx;
    bool waited;
    int rc = um_src_stream_send_plain(&src->stream, msg, len, flags, &waited);
    return likely(rc == 0 && !waited) ? 0 : count_wait(ctx, src, rc, flags, "lbm_src_send");
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
    if (!source_usable(src) || (run->base == NULL && run->count > 0) || (run->flags & LBM_MSG_BUFF_ALLOC)) {
        return bad_send(src, run->flags, api);
    }
    lbm_context_t *ctx = src->ctx;
    int rc = um_src_stream_send_run(&src->stream, run);
    if (sent != NULL) {
        *sent = run->sent;
    }
    return rc == 0 && !run->waited ? 0 : count_wait(ctx, src, rc, run->flags, api);
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

static int check_info(const lbm_src_t *src, const lbm_src_send_ex_info_t *info, const char *api)
{
    if (um_smx_is(&src->stream)) {
        return um_error(UM_EINVAL, "CoreApi-6976-69",
                        "%s: topic [%s]: LBT-SMX has none of the extended options: info must be NULL", api,
                        src->topic->base.name);
    }
    if ((info->flags & LBM_SRC_SEND_EX_FLAG_PROPERTIES) && info->properties == NULL) {
        return um_error(UM_EINVAL, "CoreApi-6020-8", "%s: properties must be valid", api);
    }
    for (size_t i = 0; i < sizeof not_available / sizeof not_available[0]; i++) {
        if (info->flags & not_available[i].flag) {
            return um_error(UM_EOPNOTSUPP, "CoreApi-5688-3257", "%s: flag 0x%x: %s are not implemented in this version",
                            api, not_available[i].flag, not_available[i].what);
        }
    }
    return 0;
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
static int send_gathered(lbm_src_t *src, const lbm_iovec_t *iov, int num, int flags, const lbm_src_send_ex_info_t *info,
                         const char *api)
{
    struct um_send send = {.iov = (const struct iovec *)iov, .iovcnt = num, .flags = flags};
    for (int i = 0; i < num; i++) {
        send.len += iov[i].iov_len;
    }
    lbm_context_t *ctx = src->ctx;
    int rc = um_src_stream_send(&src->stream, &send);
    if (rc != 0 || send.waited) {
        count_wait(ctx, src, rc, flags, api);
    }
    if (rc == 0 && info != NULL) {
        report_numbers(src, info, send.first_sqn, send.last_sqn);
    }
    return rc;
}

/* Flags of piece i when every piece is a message: batch marks at the ends, one flush after the last. A group that may
 * not wait, and whose first message was accepted, is accepted whole. */
static int send_each(lbm_src_t *src, const lbm_iovec_t *iov, int num, int flags)
{
    lbm_context_t *ctx = src->ctx;
    bool waited = false, may_wait = !(flags & LBM_SRC_NONBLOCK) && !um_loop_on_thread(ctx->loop);
    int rc = 0;
    for (int i = 0; i < num && rc == 0; i++) {
        struct um_send send = {
            .iov = (const struct iovec *)&iov[i], .iovcnt = 1, .len = iov[i].iov_len, .flags = flags};
        send.flags &= i == 0 ? ~0 : ~LBM_MSG_START_BATCH;
        send.flags &= i == num - 1 ? ~0 : ~(LBM_MSG_END_BATCH | LBM_MSG_FLUSH);
        send.unconditional = i > 0 && !may_wait;
        send.leads = i == 0 && num > 1 && !may_wait;
        rc = um_src_stream_send(&src->stream, &send);
        waited |= send.waited;
    }
    return rc != 0 || waited ? count_wait(ctx, src, rc, flags, "lbm_src_sendv") : 0;
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
    if (!source_usable(src) || (msg == NULL && len > 0) || (flags & LBM_MSG_BUFF_ALLOC)) {
        return bad_send(src, flags, "lbm_src_send_ex");
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

int lbm_src_flush(lbm_src_t *src)
{
    if (um_source_check(src, "lbm_src_flush") != 0) {
        return -1;
    }
    if (um_loop_on_thread(src->ctx->loop)) {
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
