/* Topic resolution, the other messages: topic management, resolution requests,
 * context information. Part of the engine; its thread. */
#include "resolver/um_tr_private.h"

#include "base/um_error.h"

#define USE_ANSWER_INTERVAL_MS 1000
#define CONTEXT_ANSWER_INTERVAL_NS (100 * UM_NS_PER_MS)

/* ---- topic management ---- */

void tr_tm_queue(struct um_tr_engine *engine, uint8_t type, uint8_t flags, const char *name, size_t len)
{
    struct tr_tm_record *record = engine->tm_queued >= TR_TM_QUEUE_MAX ? NULL : um_malloc(sizeof *record + len + 1);
    if (record == NULL) {
        return; /* hints only: routers ask again */
    }
    record->type = type;
    record->flags = flags;
    record->len = (uint16_t)len;
    memcpy(record->name, name, len);
    record->name[len] = '\0';
    um_list_push_back(&engine->tm_queue, &record->node);
    engine->tm_queued++;
    if (engine->tm_due_ns == UM_NEVER) {
        engine->tm_due_ns = engine->now_ns + UM_TR_SUSTAIN_TICK_NS;
        engine->wakeup_stale = true;
    }
}

void tr_tm_flush(struct um_tr_engine *engine)
{
    struct um_lbmr_builder builder;
    tr_begin_datagram(engine, &builder, UM_LBMR_TOPIC_MGMT, false);
    while (!um_list_empty(&engine->tm_queue)) {
        struct tr_tm_record *record = UM_CONTAINER_OF(um_list_first(&engine->tm_queue), struct tr_tm_record, node);
        if (!um_lbmr_add_tmr(&builder, record->type, record->flags, record->name, record->len)) {
            tr_flush_datagram(engine, &builder);
            tr_begin_datagram(engine, &builder, UM_LBMR_TOPIC_MGMT, false);
            continue;
        }
        um_list_remove(&record->node);
        um_free(record);
    }
    tr_flush_datagram(engine, &builder);
    engine->tm_queued = 0;
    engine->tm_due_ns = UM_NEVER;
}

/* Somebody asks whether this topic or pattern is in use: answered now and then. */
static bool answer_due(struct um_tr_engine *engine, struct tr_task *task)
{
    uint32_t now_ms = tr_engine_ms(engine);
    if ((task->item.flags & TR_USE_ANSWERED) != 0 && now_ms - task->schedule.word < USE_ANSWER_INTERVAL_MS) {
        return false;
    }
    task->item.flags |= TR_USE_ANSWERED;
    task->schedule.word = now_ms;
    return true;
}

static void take_use_query(struct um_tr_engine *engine, const struct um_lbmr_tmr *query)
{
    if ((query->flags & UM_LBMR_TM_PCRE) != 0) {
        struct um_tr_wanted *wanted =
            um_tr_cache_wanted(engine->cache, LBM_WILDCARD_RCV_PATTERN_TYPE_PCRE, query->name, query->len);
        struct tr_stream *stream = wanted == NULL ? NULL : wanted->schedule;
        if (stream != NULL && answer_due(engine, &stream->task)) {
            tr_tm_queue(engine, UM_LBMR_TM_USE, UM_LBMR_TM_RESPONSE | UM_LBMR_TM_PCRE, query->name, query->len);
        }
        return;
    }
    struct um_tr_entry *entry = um_tr_cache_entry(engine->cache, query->name, query->len);
    struct tr_query *asked = entry == NULL ? NULL : um_tr_entry_schedule(entry);
    if (asked != NULL && (query->flags & UM_LBMR_TM_POSIX) == 0 && answer_due(engine, &asked->task)) {
        tr_tm_queue(engine, UM_LBMR_TM_USE, UM_LBMR_TM_RESPONSE, query->name, query->len);
    }
}

void tr_take_topic_mgmt(struct um_tr_engine *engine, struct um_lbmr_cursor *cursor)
{
    struct um_lbmr_tmr record;
    while (um_lbmr_next_tmr(cursor, &record)) {
        if (record.type == UM_LBMR_TM_USE && (record.flags & UM_LBMR_TM_RESPONSE) == 0) {
            take_use_query(engine, &record);
        }
    }
}

/* ---- requests ---- */

/* One record of each quiescent task of this kind, through its lane. The list empties: a repeated request costs nothing.
 */
static void wake_quiescent(struct um_tr_engine *engine, enum tr_task_kind kind)
{
    struct um_list *quiet = &engine->quiet[kind];
    while (!um_list_empty(quiet)) {
        struct tr_task *task = UM_CONTAINER_OF(um_list_first(quiet), struct tr_task, item.node);
        um_tr_schedule_once(&task->schedule, engine->now_ns);
        tr_task_place(engine, task);
    }
}

static void send_context_info(struct um_tr_engine *engine)
{
    if (engine->now_ns < engine->context_answer_due_ns) {
        return;
    }
    engine->context_answer_due_ns = engine->now_ns + CONTEXT_ANSWER_INTERVAL_NS;
    struct um_lbmr_ctxinfo info = {.flags = UM_LBMR_CTX_ADDRESS | UM_LBMR_CTX_INSTANCE,
                                   .ip = engine->request_ip,
                                   .port = engine->request_port,
                                   .name = engine->context_name,
                                   .name_len = engine->context_name_len};
    if (engine->context_name != NULL) {
        info.flags |= UM_LBMR_CTX_NAME;
    }
    memcpy(info.instance, engine->config.ctxinst, 8);
    tr_refresh_trailer(engine);
    size_t len = um_lbmr_encode_ctxinfo(engine->buffer, TR_BUFFER, &info, engine->trailer, engine->trailer_len);
    if (len > 0) {
        tr_send(engine, engine->buffer, len);
    }
}

static void send_remote_context_info(struct um_tr_engine *engine)
{
    if (engine->now_ns < engine->context_answer_due_ns) {
        return;
    }
    engine->context_answer_due_ns = engine->now_ns + CONTEXT_ANSWER_INTERVAL_NS;
    struct um_lbmr_rctx record = {.has_address = true,
                                  .has_instance = true,
                                  .has_origin_domain = engine->domain_id != 0,
                                  .address_domain = engine->domain_id,
                                  .origin_domain = engine->domain_id,
                                  .ip = engine->request_ip,
                                  .port = engine->request_port,
                                  .name = engine->context_name,
                                  .name_len = engine->context_name_len};
    memcpy(record.instance, engine->config.ctxinst, 8);
    tr_refresh_trailer(engine);
    size_t len = um_lbmr_encode_rctx(engine->buffer, TR_BUFFER, &record, engine->trailer, engine->trailer_len);
    if (len > 0) {
        tr_send(engine, engine->buffer, len);
    }
}

static void take_request(struct um_tr_engine *engine, uint16_t flags)
{
    if ((flags & LBM_TOPIC_RES_REQUEST_ADVERTISEMENT) != 0) {
        wake_quiescent(engine, TR_TASK_ADVERT);
    }
    if ((flags & LBM_TOPIC_RES_REQUEST_QUERY) != 0) {
        wake_quiescent(engine, TR_TASK_QUERY);
    }
    if ((flags & LBM_TOPIC_RES_REQUEST_WILDCARD_QUERY) != 0) {
        wake_quiescent(engine, TR_TASK_WILDCARD);
    }
    if ((flags & LBM_TOPIC_RES_REQUEST_CONTEXT_ADVERTISEMENT) != 0) {
        send_context_info(engine);
    }
}

static void send_request(struct um_tr_engine *engine, uint16_t flags)
{
    tr_refresh_trailer(engine);
    size_t len = um_lbmr_encode_request(engine->buffer, TR_BUFFER, flags, engine->trailer, engine->trailer_len);
    tr_send(engine, engine->buffer, len);
}

int um_tr_engine_request(struct um_tr_engine *engine, uint64_t now_ns, uint16_t flags, uint32_t interval_ms,
                         uint32_t duration_sec)
{
    const uint16_t known = LBM_TOPIC_RES_REQUEST_GW_REMOTE_INTEREST | LBM_TOPIC_RES_REQUEST_CONTEXT_QUERY |
                           LBM_TOPIC_RES_REQUEST_CONTEXT_ADVERTISEMENT | LBM_TOPIC_RES_REQUEST_RESERVED1 |
                           LBM_TOPIC_RES_REQUEST_ADVERTISEMENT | LBM_TOPIC_RES_REQUEST_QUERY |
                           LBM_TOPIC_RES_REQUEST_WILDCARD_QUERY;
    if (flags == 0 || (flags & (uint16_t)~known) != 0) {
        return um_error(UM_EINVAL, "Resolver-6",
                        "topic resolution request flags 0x%x: must be LBM_TOPIC_RES_REQUEST_* values", flags);
    }
    if (interval_ms == 0 && duration_sec > 0) {
        return um_error(UM_EINVAL, "Resolver-7",
                        "topic resolution request interval_msec 0: must be above 0 when duration_sec is %u",
                        duration_sec);
    }
    struct tr_request *request = NULL;
    if (duration_sec > 0) {
        request = um_calloc(1, sizeof *request);
        if (request == NULL) {
            return um_error_nomem("topic resolution request", sizeof *request);
        }
    }
    tr_enter(engine, now_ns);
    send_request(engine, flags);
    if (request != NULL) {
        request->flags = flags;
        request->interval_ns = um_ms_ns(interval_ms);
        request->due_ns = engine->now_ns + request->interval_ns;
        request->end_ns = engine->now_ns + um_s_ns(duration_sec);
        um_list_push_back(&engine->requests, &request->node);
        engine->wakeup_stale = true;
    }
    tr_leave(engine);
    return 0;
}

void tr_requests_run(struct um_tr_engine *engine)
{
    struct um_list *it, *next;
    UM_LIST_FOREACH_SAFE(it, next, &engine->requests)
    {
        struct tr_request *request = UM_CONTAINER_OF(it, struct tr_request, node);
        if (request->due_ns > engine->now_ns) {
            continue;
        }
        send_request(engine, request->flags);
        request->due_ns += request->interval_ns;
        if (request->due_ns < engine->now_ns) {
            request->due_ns = engine->now_ns + request->interval_ns;
        }
        if (request->due_ns > request->end_ns) {
            um_list_remove(it);
            um_free(request);
        }
    }
}

uint64_t tr_requests_next(const struct um_tr_engine *engine)
{
    uint64_t next = UM_NEVER;
    struct um_list *it;
    UM_LIST_FOREACH(it, &engine->requests)
    {
        const struct tr_request *request = UM_CONTAINER_OF(it, struct tr_request, node);
        next = request->due_ns < next ? request->due_ns : next;
    }
    return next;
}

/* ---- extended messages ---- */

static bool own_name(const struct um_tr_engine *engine, const char *name, size_t len)
{
    return engine->context_name != NULL && name != NULL && len == engine->context_name_len &&
           memcmp(name, engine->context_name, len) == 0;
}

static enum um_lbmr_fault take_rctxinfo(struct um_tr_engine *engine, const struct um_lbmr_msg *msg, unsigned *detail)
{
    struct um_lbmr_cursor cursor;
    struct um_lbmr_rctx record;
    bool asked = false;
    um_lbmr_rctx_records(msg, &cursor);
    while (um_lbmr_next_rctx(&cursor, &record)) {
        asked = asked || (record.query && own_name(engine, record.name, record.name_len));
    }
    *detail = cursor.detail;
    if (cursor.fault == UM_LBMR_OK && asked) {
        send_remote_context_info(engine);
    }
    return cursor.fault;
}

void tr_take_extended(struct um_tr_engine *engine, const struct um_lbmr_msg *msg, enum um_lbmr_fault *fault,
                      unsigned *detail)
{
    struct um_lbmr_ctxinfo info;
    uint16_t flags;
    switch (msg->ext_type) {
    case UM_LBMR_EXT_REQUEST:
        *fault = um_lbmr_decode_request(msg, &flags);
        take_request(engine, flags);
        break;
    case UM_LBMR_EXT_CTXINFO:
        *fault = um_lbmr_decode_ctxinfo(msg, &info);
        if (*fault == UM_LBMR_OK && (info.flags & UM_LBMR_CTX_QUERY) != 0 &&
            own_name(engine, info.name, info.name_len)) {
            send_context_info(engine);
        }
        break;
    case UM_LBMR_EXT_RCTXINFO:
        *fault = take_rctxinfo(engine, msg, detail);
        break;
    default: /* of routers and queuing daemons: checked, not used by a context */
        *fault = um_lbmr_validate_message(msg, detail);
        break;
    }
}

int um_tr_engine_set_context_info(struct um_tr_engine *engine, const char *name, uint32_t request_ip,
                                  uint16_t request_port)
{
    char *copy = NULL;
    if (name != NULL && name[0] != '\0') {
        copy = um_strdup(name);
        if (copy == NULL) {
            return um_error_nomem("context name", strlen(name) + 1);
        }
    }
    um_free(engine->context_name);
    engine->context_name = copy;
    engine->context_name_len = copy == NULL ? 0 : strlen(copy);
    engine->request_ip = request_ip;
    engine->request_port = request_port;
    return 0;
}

void tr_ext_free(struct um_tr_engine *engine)
{
    struct um_list *it, *next;
    UM_LIST_FOREACH_SAFE(it, next, &engine->tm_queue)
    {
        um_free(UM_CONTAINER_OF(it, struct tr_tm_record, node));
    }
    UM_LIST_FOREACH_SAFE(it, next, &engine->requests)
    {
        um_free(UM_CONTAINER_OF(it, struct tr_request, node));
    }
    um_free(engine->context_name);
}
