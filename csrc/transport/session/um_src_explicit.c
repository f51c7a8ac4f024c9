/* Explicit batches: messages between LBM_MSG_START_BATCH and LBM_MSG_END_BATCH are
 * formed at once and held per stream. Called in the sender's thread under the
 * session lock. */
#include "base/um_error.h"
#include "base/um_mem.h"
#include "transport/session/um_src_message.h"
#include "transport/session/um_src_numbers.h"
#include "transport/session/um_src_parts.h"

static void free_held(struct um_list *list)
{
    struct um_list *node;
    while ((node = um_list_first(list)) != NULL) {
        um_list_remove(node);
        um_free(UM_CONTAINER_OF(node, struct um_held, node));
    }
}

/* Form the LBMC messages now (their numbers are fixed by this), keep them until the batch ends. */
static int hold(struct um_src_session *session, struct um_src_stream *stream, struct um_send *send, uint16_t marks)
{
    struct um_record_plan plan = {.send = send, .tidx = stream->tidx};
    struct um_gather from = {send->iov, 0};
    struct um_list made;
    size_t whole_max;
    size_t size = um_fragment_size(session, send, marks != 0, &whole_max);
    if (size == 0) {
        return -1;
    }
    size = send->len > whole_max ? size : whole_max;
    uint32_t count = send->len > whole_max ? (uint32_t)((send->len + size - 1) / size) : 1;
    um_list_init(&made);
    plan.fragmented = count > 1;
    plan.first_sqn = um_src_number_next(stream);
    for (uint32_t k = 0; k < count; k++) {
        size_t len = send->len - plan.offset < size ? send->len - plan.offset : size;
        plan.batch_flags =
            (k == 0 ? marks & UM_LBMC_BATCH_START : 0) | (k + 1 == count ? marks & UM_LBMC_BATCH_END : 0);
        size_t headers = um_record_headers_len(&plan), total = headers + len;
        struct um_held *held = um_malloc(sizeof *held + total);
        if (held == NULL) {
            free_held(&made);
            return um_error_nomem("send: message held by an explicit batch", sizeof *held + total);
        }
        held->len = total;
        held->user_len = len;
        held->headers = headers;
        held->sqn = plan.first_sqn + k;
        held->open_change = count == 1 ? 0 : (k == 0) - (k + 1 == count);
        um_record_write(held->data, &plan, held->sqn, &from, len);
        plan.offset += (uint32_t)len;
        um_list_push_back(&made, &held->node);
    }
    struct um_list *node;
    while ((node = um_list_first(&made)) != NULL) {
        um_list_remove(node);
        um_list_push_back(&stream->explicit_batch, node);
    }
    send->first_sqn = plan.first_sqn;
    send->last_sqn = plan.first_sqn + count - 1;
    um_src_numbers_take(stream, count);
    return 0;
}

/* A message cut off by this is open no more. */
size_t um_src_drop_held(struct um_src_session *session, struct um_list *list)
{
    struct um_list *it;
    size_t bytes = 0;
    UM_LIST_FOREACH(it, list)
    {
        const struct um_held *held = UM_CONTAINER_OF(it, struct um_held, node);
        session->open_messages += held->open_change;
        bytes += held->len;
    }
    session->drops.unsent_bytes += bytes;
    free_held(list);
    return bytes;
}

int um_src_release_held(struct um_src_session *session, struct um_src_stream *stream)
{
    struct um_list *node;
    int rc = 0;
    um_src_collect(session);
    while ((node = um_list_first(&stream->explicit_batch)) != NULL) {
        struct um_held *held = UM_CONTAINER_OF(node, struct um_held, node);
        uint8_t *out = um_src_batch_reserve(session, stream->tidx, held->len);
        if (out == NULL) {
            rc = -1;
            break;
        }
        bool was_empty = out == session->batch->data;
        memcpy(out, held->data, held->len);
        um_src_keep(stream, held->sqn, out, held->headers, held->len);
        stream->last_data_ns = session->batch_start_ns;
        session->open_messages += held->open_change;
        um_src_batch_added(session, held->user_len, was_empty, false);
        um_list_remove(node);
        um_free(held);
    }
    um_src_push(session);
    return rc;
}

int um_src_send_explicit(struct um_src_session *session, struct um_src_stream *stream, struct um_send *send)
{
    bool open = stream->special & UM_STREAM_EXPLICIT_BATCH;
    bool ends = send->flags & LBM_MSG_END_BATCH;
    uint16_t marks = (send->flags & LBM_MSG_START_BATCH ? UM_LBMC_BATCH_START : 0) | (ends ? UM_LBMC_BATCH_END : 0);
    if (!open && !(marks & UM_LBMC_BATCH_START)) {
        return um_error(UM_EOP, "CoreApi-5688-3235",
                        "send: LBM_MSG_END_BATCH without a message sent with LBM_MSG_START_BATCH before");
    }
    if (!open && ends) {
        return um_src_send_now(session, stream, send, marks);
    }
    if (hold(session, stream, send, marks) != 0) {
        return -1;
    }
    if (ends) {
        stream->special &= ~(unsigned)UM_STREAM_EXPLICIT_BATCH;
    } else {
        stream->special |= UM_STREAM_EXPLICIT_BATCH;
    }
    if (!ends && !(send->flags & LBM_MSG_FLUSH)) {
        return 0;
    }
    int rc = um_src_release_held(session, stream);
    if (rc == 0 && (send->flags & LBM_MSG_FLUSH)) {
        um_src_session_flush(session);
    }
    return rc;
}
