/* lbm_hf_src_*: sources whose messages carry a number that is the same on every
 * source of the topic. Any thread; sends of one source one after the other. */
#include <lbm/lbm.h>

#include "api/um_source_calls.h"
#include "base/um_error.h"
#include "wire/um_lbmc_hf.h"

int lbm_hf_src_create(lbm_src_t **srcp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_src_cb_proc proc, void *clientd,
                      lbm_event_queue_t *evq)
{
    return um_source_create_hf(srcp, ctx, topic, proc, clientd, evq);
}

/* One message to be sent. */
struct hf_call {
    const lbm_iovec_t *iov;
    int num;
    int flags;
    const lbm_src_send_ex_info_t *info; /* NULL: none */
    const char *api;
    struct um_lbmc_hf hf;
};

/* The number that `info` gives instead of `sqn`, and what it says of the message. */
static int read_info(struct hf_call *call, lbm_uint_t sqn)
{
    int flags = call->info != NULL ? call->info->flags : 0;
    if ((flags & LBM_SRC_SEND_EX_FLAG_HF_32) && (flags & LBM_SRC_SEND_EX_FLAG_HF_64)) {
        return um_error(UM_EINVAL, "CoreApi-5402-3",
                        "%s: LBM_SRC_SEND_EX_FLAG_HF_32 and LBM_SRC_SEND_EX_FLAG_HF_64 exclude each other", call->api);
    }
    call->hf.wide = (flags & LBM_SRC_SEND_EX_FLAG_HF_64) != 0;
    call->hf.sqn = call->hf.wide                          ? call->info->hf_sqn.u64
                   : (flags & LBM_SRC_SEND_EX_FLAG_HF_32) ? call->info->hf_sqn.u32
                                                          : sqn;
    call->hf.flags |= (flags & LBM_SRC_SEND_EX_FLAG_HF_OPTIONAL) ? UM_LBMC_HF_OPTIONAL : 0;
    return 0;
}

/* The first numbered message that was sent decides. */
static int check_width(const lbm_src_t *src, const struct hf_call *call)
{
    enum um_source_hf known = atomic_load_explicit(&src->hf, memory_order_relaxed);
    if (known == UM_SOURCE_HF_32 && call->hf.wide) {
        return um_error(UM_EOP, "CoreApi-5402-4", "%s: 32 bit hf src cannot send non-32bit sequence number", call->api);
    }
    if (known == UM_SOURCE_HF_64 && !call->hf.wide) {
        return um_error(UM_EOP, "CoreApi-5402-5", "%s: 64 bit hf src cannot send non-64bit sequence number", call->api);
    }
    return 0;
}

static int send_numbered(lbm_src_t *src, const struct hf_call *call)
{
    uint8_t header[UM_LBMC_HF_HEADER_MAX];
    size_t header_len = um_lbmc_put_hf_header(header, UM_LBMC_HDR_DATA, &call->hf);
    const struct um_src_parts parts = {
        .chain = header, .chain_len = header_len, .data = call->iov->iov_base, .len = call->iov->iov_len};
    bool number_alone = call->num == 1 && (call->info == NULL || call->info->flags == 0);
    if (number_alone && um_source_send_parts(src, &parts, call->flags)) {
        return 0;
    }
    struct um_send send = {.iov = (const struct iovec *)call->iov,
                           .iovcnt = call->num,
                           .flags = call->flags,
                           .chain = header,
                           .chain_len = (uint8_t)header_len};
    return um_source_call_send(src, &send, call->info, call->api);
}

/* `src` is a live source, the pieces are checked. */
static int send_checked(lbm_src_t *src, struct hf_call *call, lbm_uint_t sqn)
{
    if (read_info(call, sqn) != 0) {
        return -1;
    }
    lbm_src_send_ex_info_t rest; /* without what is told by `call->hf` */
    if (call->info != NULL) {
        rest = *call->info;
        rest.flags &= ~UM_HF_FLAGS;
        call->info = &rest;
    }
    if (um_source_call_check(src, call->iov, call->num, call->info, call->api) != 0) {
        return -1;
    }
    if (atomic_load_explicit(&src->hf, memory_order_relaxed) == UM_SOURCE_NOT_HF) {
        return um_error(UM_EINVAL, "CoreApi-5402-8", "%s: topic [%s]: src must be created by lbm_hf_src_create",
                        call->api, src->topic->base.name);
    }
    if (call->flags & LBM_MSG_BUFF_ALLOC) {
        return um_error(UM_EOPNOTSUPP, "CoreApi-5402-9", "%s: LBM_MSG_BUFF_ALLOC: not with hot failover", call->api);
    }
    if (check_width(src, call) != 0) {
        return -1;
    }
    bool first = atomic_load_explicit(&src->hf, memory_order_relaxed) == UM_SOURCE_HF;
    int rc = send_numbered(src, call);
    if (rc == 0 && first) {
        atomic_store_explicit(&src->hf, call->hf.wide ? UM_SOURCE_HF_64 : UM_SOURCE_HF_32, memory_order_relaxed);
    }
    return rc;
}

int lbm_hf_src_send_ex(lbm_src_t *src, const char *msg, size_t len, lbm_uint_t sqn, int flags,
                       lbm_src_send_ex_info_t *exinfo)
{
    const lbm_iovec_t iov = {.iov_base = (char *)msg, .iov_len = len};
    struct hf_call call = {.iov = &iov, .num = 1, .flags = flags, .info = exinfo, .api = "lbm_hf_src_send_ex"};
    return send_checked(src, &call, sqn);
}

/* The short way of a source that has sent numbers of 32 bits. False: nothing has happened; what is wrong with the
 * message, if anything, the long way knows. */
static bool send_short(lbm_src_t *src, const char *msg, size_t len, lbm_uint_t sqn, int flags)
{
    uint8_t header[UM_CHAIN_SINGLE_U32];
    if (!um_source_is_usable(src) || (msg == NULL && len > 0) || (flags & LBM_MSG_BUFF_ALLOC) ||
        atomic_load_explicit(&src->hf, memory_order_relaxed) != UM_SOURCE_HF_32) {
        return false;
    }
    um_chain_put_single_u32(header, UM_CHAIN_HF_SQN, sqn);
    return um_source_send_one_element(src, header, msg, len, flags);
}

int lbm_hf_src_send(lbm_src_t *src, const char *msg, size_t len, lbm_uint_t sqn, int flags)
{
    if (send_short(src, msg, len, sqn, flags)) {
        return 0;
    }
    const lbm_iovec_t iov = {.iov_base = (char *)msg, .iov_len = len};
    struct hf_call call = {.iov = &iov, .num = 1, .flags = flags, .api = "lbm_hf_src_send"};
    return send_checked(src, &call, sqn);
}

int lbm_hf_src_sendv_ex(lbm_src_t *src, const lbm_iovec_t *iov, int num, lbm_uint_t sqn, int flags,
                        lbm_src_send_ex_info_t *exinfo)
{
    struct hf_call call = {.iov = iov, .num = num, .flags = flags, .info = exinfo, .api = "lbm_hf_src_sendv_ex"};
    return send_checked(src, &call, sqn);
}

int lbm_hf_src_sendv(lbm_src_t *src, const lbm_iovec_t *iov, int num, lbm_uint_t sqn, int flags)
{
    struct hf_call call = {.iov = iov, .num = num, .flags = flags, .api = "lbm_hf_src_sendv"};
    return send_checked(src, &call, sqn);
}

int lbm_hf_src_send_rcv_reset(lbm_src_t *src, int flags, lbm_src_send_ex_info_t *exinfo)
{
    static const char api[] = "lbm_hf_src_send_rcv_reset";
    if (exinfo == NULL || (exinfo->flags & (LBM_SRC_SEND_EX_FLAG_HF_32 | LBM_SRC_SEND_EX_FLAG_HF_64)) == 0) {
        return um_error(UM_EINVAL, "CoreApi-5402-10",
                        "%s: exinfo must hold the number that comes next, with LBM_SRC_SEND_EX_FLAG_HF_32 or "
                        "LBM_SRC_SEND_EX_FLAG_HF_64",
                        api);
    }
    const lbm_iovec_t nothing = {.iov_base = NULL, .iov_len = 0};
    struct hf_call call = {
        .iov = &nothing, .num = 1, .flags = flags, .info = exinfo, .api = api, .hf = {.flags = UM_LBMC_HF_RESET}};
    return send_checked(src, &call, 0);
}
