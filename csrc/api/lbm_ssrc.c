/* lbm_ssrc_*: smart sources. Argument checks in front of core/um_smart_source.c, and
 * the sends. Creation, deletion and statistics from any thread; buffers and sends of
 * a transport session from one thread at a time. */
#include <lbm/lbm.h>

#include "base/um_error.h"
#include "core/um_request.h"
#include "core/um_smart_source.h"

#define likely(x) __builtin_expect(!!(x), 1)

int lbm_ssrc_create(lbm_ssrc_t **ssrcp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_ssrc_cb_proc proc, void *clientd,
                    lbm_event_queue_t *evq)
{
    return um_smart_source_create(ssrcp, ctx, topic, proc, clientd, evq);
}

int lbm_ssrc_delete(lbm_ssrc_t *ssrc)
{
    return um_smart_source_delete(ssrc);
}

int lbm_ssrc_get_available_data_space(lbm_ssrc_t *ssrc, int *length)
{
    if (um_smart_source_check(ssrc, "lbm_ssrc_get_available_data_space") != 0) {
        return -1;
    }
    if (length == NULL) {
        return um_error(UM_EINVAL, "CoreApi-10160-13", "lbm_ssrc_get_available_data_space: length must be valid");
    }
    *length = (int)ssrc->space;
    return 0;
}

int lbm_ssrc_buff_get(lbm_ssrc_t *const ssrc, char **const usr_bufp, const int flags)
{
    if (!likely(um_smart_source_usable(ssrc))) {
        return um_smart_source_check(ssrc, "lbm_ssrc_buff_get");
    }
    if (usr_bufp == NULL) {
        return um_error(UM_EINVAL, "CoreApi-10160-14", "lbm_ssrc_buff_get: usr_bufp must be valid");
    }
    return um_smart_source_get(ssrc, usr_bufp);
}

int lbm_ssrc_buff_put(lbm_ssrc_t *const ssrc, const char *usr_bufp)
{
    if (!likely(um_smart_source_usable(ssrc))) {
        return um_smart_source_check(ssrc, "lbm_ssrc_buff_put");
    }
    return um_smart_source_put(ssrc, usr_bufp);
}

/* ---- sending ---- */

static inline int send_payload(lbm_ssrc_t *ssrc, const char *payload, size_t len, const char *api)
{
    lbm_context_t *ctx = ssrc->src.ctx;
    bool waited;
    int rc = um_source_send_plain(&ssrc->src, payload, len, LBM_MSG_FLUSH, &waited);
    return likely(rc == 0 && !waited) ? 0 : um_source_waited(ctx, &ssrc->src, rc, 0, api);
}

/* Everything but the message itself; *payload is what goes out. */
static int check_send(lbm_ssrc_t *ssrc, const char *buffer, size_t len, int flags, const lbm_ssrc_send_ex_info_t *info,
                      const char *api, const char **payload)
{
    if (um_smart_source_check(ssrc, api) != 0) {
        return -1;
    }
    if (flags != 0) {
        return um_error(UM_EINVAL, "CoreApi-10160-16",
                        "%s: topic [%s]: flags 0x%x: must be 0: each message of a smart source goes out at once", api,
                        ssrc->src.topic->base.name, flags);
    }
    if (buffer == NULL) {
        return um_error(UM_EINVAL, "CoreApi-10160-17", "%s: usr_bufp must be valid: call lbm_ssrc_buff_get()", api);
    }
    bool supplied = info != NULL && (info->flags & LBM_SSRC_SEND_EX_FLAG_USER_SUPPLIED_BUFFER);
    if (um_smart_source_inspect(ssrc, buffer, api) != 0) {
        return -1;
    }
    if (supplied && info->usr_supplied_buffer == NULL && len > 0) {
        return um_error(UM_EINVAL, "CoreApi-10160-18", "%s: usr_supplied_buffer must be valid", api);
    }
    if (!supplied && len > ssrc->space) {
        return um_error(
            UM_EINVAL, "CoreApi-10160-19",
            "%s: topic [%s]: length %zu: a buffer has %zu bytes (smart_src_max_message_length, datagram size "
            "of the transport); send longer messages with LBM_SSRC_SEND_EX_FLAG_USER_SUPPLIED_BUFFER",
            api, ssrc->src.topic->base.name, len, ssrc->space);
    }
    *payload = supplied ? info->usr_supplied_buffer : buffer;
    return 0;
}

static void report_numbers(lbm_ssrc_t *ssrc, const lbm_ssrc_send_ex_info_t *info, const struct um_send *sent)
{
    bool wanted =
        (info->flags & LBM_SSRC_SEND_EX_FLAG_SEQUENCE_NUMBER_INFO) ||
        ((info->flags & LBM_SSRC_SEND_EX_FLAG_SEQUENCE_NUMBER_INFO_FRAGONLY) && sent->first_sqn != sent->last_sqn);
    if (!wanted || ssrc->proc == NULL) {
        return;
    }
    lbm_src_event_sequence_number_info_t numbers = {.first_sequence_number = sent->first_sqn,
                                                    .last_sequence_number = sent->last_sqn};
    if (info->flags & LBM_SSRC_SEND_EX_FLAG_UME_CLIENTD) {
        numbers.msg_clientd = info->ume_msg_clientd;
    }
    ssrc->proc(ssrc, LBM_SRC_EVENT_SEQUENCE_NUMBER_INFO, &numbers, ssrc->clientd);
}

/* What is sent with an `info`: the payload and what comes with it. */
struct smart_message {
    struct um_chain_writer chain;
    struct iovec pieces[2]; /* payload, properties */
    struct um_send send;
};

/* 0, or -1: its headers are refused. */
static int prepare(lbm_ssrc_t *ssrc, struct smart_message *m, const char *buffer, const struct iovec *payload,
                   const lbm_ssrc_send_ex_info_t *info, const char *api)
{
    struct um_slice properties = {0};
    m->chain.len = 0;
    if (info != NULL && um_smart_source_headers(ssrc, buffer, info, api, &m->chain, &properties) != 0) {
        return -1;
    }
    m->pieces[0] = *payload;
    m->pieces[1] = (struct iovec){(void *)properties.ptr, properties.len};
    m->send = (struct um_send){.iov = m->pieces,
                               .iovcnt = properties.len > 0 ? 2 : 1,
                               .len = payload->iov_len + properties.len,
                               .flags = LBM_MSG_FLUSH,
                               .chain = m->chain.bytes,
                               .chain_len = m->chain.len};
    return 0;
}

/* With headers, events or fragments. */
static int send_message(lbm_ssrc_t *ssrc, struct um_send *send, const lbm_ssrc_send_ex_info_t *info, const char *api)
{
    lbm_context_t *ctx = ssrc->src.ctx;
    int rc = um_source_send(&ssrc->src, send);
    if (rc != 0 || send->waited) {
        um_source_waited(ctx, &ssrc->src, rc, 0, api);
    }
    if (rc == 0 && info != NULL) {
        report_numbers(ssrc, info, send);
    }
    return rc;
}

static __attribute__((noinline)) int send_checked(lbm_ssrc_t *ssrc, const char *buffer, size_t len, int flags,
                                                  const lbm_ssrc_send_ex_info_t *info)
{
    const char *payload;
    if (check_send(ssrc, buffer, len, flags, info, "lbm_ssrc_send_ex", &payload) != 0) {
        return -1;
    }
    if (info == NULL) {
        return send_payload(ssrc, payload, len, "lbm_ssrc_send_ex");
    }
    struct smart_message message;
    if (prepare(ssrc, &message, buffer, &(struct iovec){(void *)payload, len}, info, "lbm_ssrc_send_ex") != 0) {
        return -1;
    }
    return send_message(ssrc, &message.send, info, "lbm_ssrc_send_ex");
}

int lbm_ssrc_send_ex(lbm_ssrc_t *ssrc, const char *usr_bufp, size_t len, int flags, lbm_ssrc_send_ex_info_t *info)
{
    if (likely(um_smart_source_usable(ssrc) && info == NULL && flags == 0 && usr_bufp != NULL && len <= ssrc->space &&
               ssrc->checks == 0)) {
        return send_payload(ssrc, usr_bufp, len, "lbm_ssrc_send_ex");
    }
    return send_checked(ssrc, usr_bufp, len, flags, info);
}

/* The request is there before its message is sent: responses may come before the call returns. */
int lbm_ssrc_send_request_ex(lbm_request_t **reqp, lbm_ssrc_t *ssrc, const char *usr_bufp, size_t len,
                             lbm_request_cb_proc proc, void *clientd, lbm_event_queue_t *evq, int send_flags,
                             lbm_ssrc_send_ex_info_t *exinfo)
{
    static const char api[] = "lbm_ssrc_send_request_ex";
    const struct um_request_call call = {reqp, proc, clientd, evq};
    const char *payload;
    if (check_send(ssrc, usr_bufp, len, send_flags, exinfo, api, &payload) != 0) {
        return -1;
    }
    if (evq != NULL) {
        return um_error(UM_EINVAL, "CoreApi-10160-20", "%s: evq must be NULL: smart sources have no event queue", api);
    }
    if (len > ssrc->space) {
        return um_error(UM_EINVAL, "CoreApi-10160-21",
                        "%s: topic [%s]: length %zu: must be at most %zu: requests of smart sources are not fragmented",
                        api, ssrc->src.topic->base.name, len, ssrc->space);
    }
    struct smart_message message;
    if (prepare(ssrc, &message, usr_bufp, &(struct iovec){(void *)payload, len}, exinfo, api) != 0 ||
        um_request_open(ssrc->src.ctx, &call, api, "Core-10160-23", "Sending request") != 0) {
        return -1;
    }
    struct um_request_headers headers;
    um_request_headers(*reqp, &headers);
    message.send.headers = headers.bytes;
    message.send.headers_len = sizeof headers.bytes;
    message.send.first_header = headers.first;
    if (send_message(ssrc, &message.send, exinfo, api) != 0) {
        um_request_abandon(reqp);
        return -1;
    }
    return 0;
}

/* ---- options, statistics ---- */

struct dump_call {
    const lbm_ssrc_t *ssrc;
    int *count;
    lbm_config_option_t *dump;
};

static int do_dump(struct um_source_options *opts, void *arg)
{
    struct dump_call *call = arg;
    um_smart_source_in_force(call->ssrc, opts);
    return um_options_dump(UM_SCOPE_SOURCE, opts, call->count, call->dump);
}

int lbm_ssrc_topic_dump(lbm_ssrc_t *ssrc, int *size, lbm_config_option_t *opts)
{
    struct dump_call call = {ssrc, size, opts};
    return um_smart_source_check(ssrc, "lbm_ssrc_topic_dump") == 0 ? um_source_with_options(&ssrc->src, do_dump, &call)
                                                                   : -1;
}

int lbm_ssrc_retrieve_transport_stats(lbm_ssrc_t *ssrc, lbm_src_transport_stats_t *stats)
{
    if (um_smart_source_check(ssrc, "lbm_ssrc_retrieve_transport_stats") != 0) {
        return -1;
    }
    if (stats == NULL) {
        return um_error(UM_EINVAL, "CoreApi-10160-22", "lbm_ssrc_retrieve_transport_stats: stats must be valid");
    }
    return um_src_stream_stats(&ssrc->src.stream, stats);
}

int lbm_ssrc_reset_transport_stats(lbm_ssrc_t *ssrc)
{
    if (um_smart_source_check(ssrc, "lbm_ssrc_reset_transport_stats") != 0) {
        return -1;
    }
    um_src_stream_stats_reset(&ssrc->src.stream);
    return 0;
}
