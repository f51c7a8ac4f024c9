/* Engine of UDP topic resolution: life, ticks, datagrams in and out, statistics.
 * Driven by the agents (um_resolver.c) or the simulator; one thread.
 * What is known of topics is in the cache (um_tr_cache.h). */
#include "resolver/um_tr_private.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "base/um_error.h"

#define UDP_IP_HEADERS 28

static const uint64_t lane_ticks[UM_TR_LANE_COUNT] = {
    [UM_TR_LANE_INITIAL_ADVERT] = UM_TR_INITIAL_ADVERT_TICK_NS, [UM_TR_LANE_SUSTAIN_ADVERT] = UM_TR_SUSTAIN_TICK_NS,
    [UM_TR_LANE_INITIAL_QUERY] = UM_TR_INITIAL_QUERY_TICK_NS,   [UM_TR_LANE_SUSTAIN_QUERY] = UM_TR_SUSTAIN_TICK_NS,
    [UM_TR_LANE_WILDCARD_QUERY] = UM_TR_WILDCARD_TICK_NS,
};

/* ---- nesting and the timer ---- */

static uint64_t next_wakeup(const struct um_tr_engine *engine)
{
    uint64_t next = engine->tm_due_ns;
    for (int i = 0; i < UM_TR_LANE_COUNT; i++) {
        uint64_t due = um_tr_lane_next(&engine->lanes[i]);
        next = due < next ? due : next;
    }
    uint64_t cache = um_tr_cache_due(engine->cache);
    next = cache < next ? cache : next;
    uint64_t request = tr_requests_next(engine);
    return request < next ? request : next;
}

void tr_enter(struct um_tr_engine *engine, uint64_t now_ns)
{
    engine->depth++;
    engine->now_ns = now_ns > engine->now_ns ? now_ns : engine->now_ns;
    um_tr_cache_enter(engine->cache, engine->now_ns);
}

void tr_leave(struct um_tr_engine *engine)
{
    um_tr_cache_leave(engine->cache);
    if (--engine->depth == 0 && engine->wakeup_stale) {
        engine->wakeup_stale = false;
        engine->ops.set_timer(engine->io, next_wakeup(engine));
    }
}

/* One timer serves both; the cache may be called by others than the engine. */
static void cache_set_timer(void *owner, uint64_t due_ns)
{
    struct um_tr_engine *engine = owner;
    engine->wakeup_stale = true;
    if (engine->depth == 0) {
        engine->wakeup_stale = false;
        engine->ops.set_timer(engine->io, next_wakeup(engine));
    }
}

/* ---- tasks ---- */

const struct um_tr_timing *tr_intern_timing(struct um_tr_engine *engine, const struct um_tr_timing *timing)
{
    struct um_list *it;
    UM_LIST_FOREACH(it, &engine->timings)
    {
        struct tr_timing *known = UM_CONTAINER_OF(it, struct tr_timing, node);
        const struct um_tr_timing *t = &known->timing;
        if (t->min_initial_ns == timing->min_initial_ns && t->max_initial_ns == timing->max_initial_ns &&
            t->initial_duration_ns == timing->initial_duration_ns && t->sustain_ns == timing->sustain_ns &&
            t->sustain_duration_ns == timing->sustain_duration_ns && t->first_at_once == timing->first_at_once) {
            return t;
        }
    }
    struct tr_timing *added = um_malloc(sizeof *added);
    if (added == NULL) {
        um_error_nomem("topic resolution timing", sizeof *added);
        return NULL;
    }
    added->timing = *timing;
    um_list_push_front(&engine->timings, &added->node);
    return &added->timing;
}

void tr_task_init(struct tr_task *task, enum tr_task_kind kind, const struct um_tr_timing *timing)
{
    um_list_init(&task->item.node);
    task->item.kind = kind;
    task->timing = timing;
    task->schedule.phase = UM_TR_QUIESCENT;
    task->schedule.due_ns = UM_NEVER;
}

static enum um_tr_lane_kind task_lane(const struct tr_task *task)
{
    bool initial = task->schedule.phase == UM_TR_INITIAL;
    switch (task->item.kind) {
    case TR_TASK_ADVERT:
        return initial ? UM_TR_LANE_INITIAL_ADVERT : UM_TR_LANE_SUSTAIN_ADVERT;
    case TR_TASK_QUERY:
        return initial ? UM_TR_LANE_INITIAL_QUERY : UM_TR_LANE_SUSTAIN_QUERY;
    default:
        return UM_TR_LANE_WILDCARD_QUERY;
    }
}

void tr_task_place(struct um_tr_engine *engine, struct tr_task *task)
{
    engine->wakeup_stale = true;
    if (task->schedule.due_ns == UM_NEVER) {
        um_list_remove(&task->item.node);
        um_list_push_back(&engine->quiet[task->item.kind], &task->item.node);
        return;
    }
    um_tr_lane_place(&engine->lanes[task_lane(task)], &task->item, task->schedule.due_ns);
}

void tr_task_idle(struct tr_task *task)
{
    um_list_remove(&task->item.node);
}

uint32_t tr_own_hash(const struct um_tr_engine *engine, const char *name, size_t len)
{
    return engine->config.hash != NULL ? engine->config.hash(name, len, engine->config.hash_user)
                                       : um_hash_bytes(name, len);
}

uint32_t tr_engine_ms(const struct um_tr_engine *engine)
{
    return (uint32_t)((engine->now_ns - engine->start_ns) / UM_NS_PER_MS);
}

/* ---- sending ---- */

void um_tr_engine_count_unknown_sender(struct um_tr_engine *engine)
{
    engine->stats.unknown_sender++;
}

void um_tr_engine_count_sent(struct um_tr_engine *engine, enum um_tr_sent result, size_t len)
{
    if (result == UM_TR_SENT) {
        engine->stats.datagrams_sent++;
        engine->stats.bytes_sent += len + UDP_IP_HEADERS;
    } else if (result == UM_TR_SEND_FAILED) {
        engine->stats.send_failed++;
    }
}

void tr_send(struct um_tr_engine *engine, const uint8_t *data, size_t len)
{
    um_tr_engine_count_sent(engine, engine->ops.send(engine->io, data, len), len);
}

/* A learnt domain ID is told to others while it can help them: with a timeout, only while a router is heard. */
static bool tells_domain(const struct um_tr_engine *engine)
{
    if (engine->domain_id == 0) {
        return false;
    }
    int timeout = engine->config.domain_timeout;
    return timeout < 1 || engine->now_ns - engine->router_heard_ns <= (uint64_t)timeout * UM_NS_PER_SEC;
}

void tr_refresh_trailer(struct um_tr_engine *engine)
{
    const struct um_tr_config *config = &engine->config;
    if (!config->extended_options && um_stream_settings_plain(&config->streams)) {
        engine->trailer_len = 0;
        return;
    }
    bool domain = tells_domain(engine);
    if (engine->trailer_len != 0 && domain == engine->trailer_has_domain) {
        return;
    }
    struct um_lbmr_trailer trailer = {.has_source_id = true,
                                      .has_source_type = true,
                                      .has_version = true,
                                      .version = UM_TR_WIRE_VERSION,
                                      .has_domain = domain,
                                      .domain_id = engine->domain_id};
    memcpy(trailer.source_id, config->ctxinst, 8);
    trailer.version_flags = (uint16_t)((config->streams.encryption ? UM_LBMR_VERSION_TLS : 0) |
                                       (config->streams.compression ? UM_LBMR_VERSION_COMPRESSION : 0));
    engine->trailer_len = um_lbmr_encode_trailer(engine->trailer, &trailer);
    engine->trailer_has_domain = domain;
}

void tr_begin_datagram(struct um_tr_engine *engine, struct um_lbmr_builder *builder, uint8_t type, bool source_side)
{
    size_t limit = source_side ? engine->config.source_datagram_max : engine->config.receiver_datagram_max;
    tr_refresh_trailer(engine);
    um_lbmr_begin(builder, engine->buffer, TR_BUFFER, limit, type, engine->trailer, engine->trailer_len);
}

void tr_flush_datagram(struct um_tr_engine *engine, struct um_lbmr_builder *builder)
{
    if (!um_lbmr_builder_empty(builder)) {
        tr_send(engine, engine->buffer, um_lbmr_finish(builder));
    }
}

/* ---- ticks ---- */

static bool add_task_record(struct um_tr_engine *engine, struct um_lbmr_builder *builder, struct tr_task *task)
{
    switch (task->item.kind) {
    case TR_TASK_ADVERT:
        return tr_advert_add_record(engine, builder, UM_CONTAINER_OF(task, struct um_tr_advert, task));
    case TR_TASK_QUERY:
        return tr_query_add_record(builder, UM_CONTAINER_OF(task, struct tr_query, task));
    default: {
        const struct um_tr_wanted *wanted = UM_CONTAINER_OF(task, struct tr_stream, task)->wanted;
        return um_lbmr_add_wildcard_tqr(builder, LBM_WILDCARD_RCV_PATTERN_TYPE_PCRE, wanted->text, wanted->len);
    }
    }
}

static void task_sent(struct um_tr_engine *engine, struct tr_task *task, bool really)
{
    switch (task->item.kind) {
    case TR_TASK_ADVERT:
        tr_advert_sent(engine, UM_CONTAINER_OF(task, struct um_tr_advert, task));
        return; /* may be gone */
    case TR_TASK_QUERY:
        tr_query_sent(engine, UM_CONTAINER_OF(task, struct tr_query, task), really);
        return; /* may be gone */
    default:
        um_tr_schedule_sent(&task->schedule, task->timing, engine->now_ns);
        tr_task_place(engine, task);
        task->item.flags |= TR_QUERIED;
        return;
    }
}

static bool task_suppressed(const struct tr_task *task)
{
    return task->item.kind == TR_TASK_QUERY && tr_query_suppressed(UM_CONTAINER_OF(task, struct tr_query, task));
}

static void run_lane(struct um_tr_engine *engine, enum um_tr_lane_kind kind)
{
    struct um_tr_lane *lane = &engine->lanes[kind];
    struct um_lbmr_builder builder;
    struct um_tr_item *item;
    uint8_t type = kind == UM_TR_LANE_WILDCARD_QUERY ? UM_LBMR_WC_TQRS : UM_LBMR_NORMAL;
    bool source_side = kind == UM_TR_LANE_INITIAL_ADVERT || kind == UM_TR_LANE_SUSTAIN_ADVERT;
    if (!um_tr_lane_tick(lane, engine->now_ns)) {
        return;
    }
    tr_begin_datagram(engine, &builder, type, source_side);
    while ((item = um_tr_lane_take(lane)) != NULL) {
        struct tr_task *task = UM_CONTAINER_OF(item, struct tr_task, item);
        if (task_suppressed(task)) {
            task_sent(engine, task, false);
            continue;
        }
        size_t before = builder.len;
        bool fits = add_task_record(engine, &builder, task);
        if (!fits) {
            tr_flush_datagram(engine, &builder);
            tr_begin_datagram(engine, &builder, type, source_side);
            before = builder.len;
            fits = add_task_record(engine, &builder, task);
        }
        if (builder.tqrs + builder.tirs == 1) {
            um_tr_limiter_overhead(&lane->limiter, UM_LBMR_HEADER_LEN + engine->trailer_len);
        }
        um_tr_limiter_record(&lane->limiter, builder.len - before);
        engine->stats.records_sent[kind] += fits;
        task_sent(engine, task, true);
    }
    tr_flush_datagram(engine, &builder);
}

void um_tr_engine_on_timer(struct um_tr_engine *engine, uint64_t now_ns)
{
    tr_enter(engine, now_ns);
    engine->wakeup_stale = true;
    for (int kind = 0; kind < UM_TR_LANE_COUNT; kind++) {
        run_lane(engine, kind);
    }
    if (engine->tm_due_ns <= engine->now_ns) {
        tr_tm_flush(engine);
    }
    tr_requests_run(engine);
    um_tr_cache_on_timer(engine->cache, engine->now_ns);
    tr_leave(engine);
}

void um_tr_engine_flush(struct um_tr_engine *engine, uint64_t now_ns)
{
    tr_enter(engine, now_ns);
    tr_tm_flush(engine);
    tr_leave(engine);
}

/* ---- receiving ---- */

static void drop(struct um_tr_engine *engine, enum um_lbmr_fault fault, unsigned detail, uint32_t from_ip,
                 uint16_t from_port, size_t len)
{
    char origin[INET_ADDRSTRLEN], text[256];
    switch (um_lbmr_fault_counter(fault)) {
    case UM_LBMR_COUNT_VERSION:
        engine->stats.dropped_version++;
        break;
    case UM_LBMR_COUNT_TYPE:
        engine->stats.dropped_type++;
        break;
    default:
        engine->stats.dropped_malformed++;
        break;
    }
    if (fault == UM_LBMR_FAULT_EXT_TYPE) {
        uint8_t *seen = &engine->ext_types_logged[(detail & 0xFF) / 8];
        uint8_t bit = (uint8_t)(1u << (detail % 8));
        if ((*seen & bit) != 0) {
            return;
        }
        *seen |= bit;
    }
    inet_ntop(AF_INET, &from_ip, origin, sizeof origin);
    um_lbmr_fault_text(fault, detail, origin, from_port, len, text, sizeof text);
    um_log_limited(um_log_of_ip(from_ip), engine->now_ns, UM_LOG_WARNING, um_lbmr_fault_id(fault), "%s", text);
}

/* Contexts with other encryption or compression settings are another world; daemons and routers belong to all. */
static bool same_world(const struct um_tr_engine *engine, const struct um_lbmr_msg *msg)
{
    const struct um_lbmr_trailer *trailer = &msg->trailer;
    if (um_lbmr_is_keepalive(msg) || (trailer->has_source_type && trailer->source_type != UM_LBMR_SOURCE_APPLICATION)) {
        return true;
    }
    bool tls = (trailer->version_flags & UM_LBMR_VERSION_TLS) != 0;
    bool compression = (trailer->version_flags & UM_LBMR_VERSION_COMPRESSION) != 0;
    return tls == engine->config.streams.encryption && compression == engine->config.streams.compression;
}

static void learn_domain(struct um_tr_engine *engine, const struct um_lbmr_trailer *trailer)
{
    bool router = trailer->has_source_type && trailer->source_type == UM_LBMR_SOURCE_ROUTER;
    if (router) {
        engine->router_heard_ns = engine->now_ns;
    }
    if (!trailer->has_domain || trailer->domain_id == 0 || (!router && engine->config.domain_timeout == 0)) {
        return;
    }
    if (engine->domain_id == 0) {
        engine->domain_id = trailer->domain_id;
        if (!router && engine->config.domain_timeout > 0) {
            engine->router_heard_ns = engine->now_ns; /* the sender tells it only while it hears one */
        }
        um_log(UM_LOG_INFO, "Core-6259-7", "context resides in domain ID %u, learnt from topic resolution",
               engine->domain_id);
    } else if (engine->domain_id != trailer->domain_id) {
        um_log_limited(um_log_of_ip(engine->from_ip), engine->now_ns, UM_LOG_WARNING, "Core-6259-8",
                       "domain ID %u of a peer ignored: this context resides in domain ID %u", trailer->domain_id,
                       engine->domain_id);
    }
}

static void take_records(struct um_tr_engine *engine, const struct um_lbmr_msg *msg, uint32_t from_ip,
                         enum um_lbmr_fault *fault, unsigned *detail)
{
    struct um_lbmr_cursor cursor;
    struct um_lbmr_tqr tqr;
    struct um_lbmr_tir tir;
    um_lbmr_records(msg, &cursor);
    if (msg->type == UM_LBMR_TOPIC_MGMT) {
        tr_take_topic_mgmt(engine, &cursor);
    } else {
        while (um_lbmr_next_tqr(&cursor, &tqr)) {
            if (msg->type == UM_LBMR_WC_TQRS) {
                tr_take_wildcard_query(engine, &tqr);
            } else {
                tr_take_query(engine, tqr.name, tqr.len);
            }
        }
        while (um_lbmr_next_tir(&cursor, &tir)) {
            tr_take_tir(engine, &tir, from_ip);
        }
    }
    *fault = cursor.fault;
    *detail = cursor.detail;
}

void um_tr_engine_on_packet(struct um_tr_engine *engine, uint64_t now_ns, const uint8_t *data, size_t len,
                            uint32_t from_ip, uint16_t from_port)
{
    struct um_lbmr_msg msg;
    unsigned detail;
    tr_enter(engine, now_ns);
    engine->from_ip = from_ip;
    engine->stats.datagrams_received++;
    engine->stats.bytes_received += len + UDP_IP_HEADERS;
    enum um_lbmr_fault fault = um_lbmr_parse(data, len, &msg, &detail);
    if (fault == UM_LBMR_OK && !same_world(engine, &msg)) {
        engine->stats.dropped_type++;
        tr_leave(engine);
        return;
    }
    if (fault == UM_LBMR_OK) {
        fault = um_lbmr_check_type(&msg, &detail);
    }
    if (fault == UM_LBMR_OK) {
        learn_domain(engine, &msg.trailer);
        if (msg.type == UM_LBMR_EXT) {
            tr_take_extended(engine, &msg, &fault, &detail);
        } else if (msg.type == UM_LBMR_QUEUE_RES) {
            fault = um_lbmr_validate_message(&msg, &detail);
        } else if (!um_lbmr_is_keepalive(&msg)) {
            take_records(engine, &msg, from_ip, &fault, &detail);
        }
    }
    if (fault != UM_LBMR_OK) {
        drop(engine, fault, detail, from_ip, from_port, len);
    }
    tr_leave(engine);
}

/* ---- life and figures ---- */

/* The cache, with datagrams as its first service. */
static int create_cache(struct um_tr_engine *engine, const struct um_resolver_events *events, void *user)
{
    struct um_tr_cache_config config = {.remember = engine->config.cache, .max = engine->config.cache_max};
    struct um_tr_cache_owner owner = {.set_timer = cache_set_timer, .owner = engine};
    engine->cache = um_tr_cache_create(&config, &owner, events, user, engine->start_ns);
    if (engine->cache != NULL) {
        engine->hearsay = um_tr_cache_add_service(engine->cache, UM_TR_HEARSAY, &tr_hearsay_ops, engine);
    }
    return engine->hearsay == NULL ? -1 : 0;
}

static void init_lists(struct um_tr_engine *engine)
{
    for (int i = 0; i < UM_TR_LANE_COUNT; i++) {
        um_tr_lane_init(&engine->lanes[i], lane_ticks[i], &engine->config.rates[i], engine->start_ns);
    }
    for (int i = 0; i < TR_TASK_KINDS; i++) {
        um_list_init(&engine->quiet[i]);
    }
    um_list_init(&engine->timings);
    um_list_init(&engine->tm_queue);
    um_list_init(&engine->requests);
}

struct um_tr_engine *um_tr_engine_create(const struct um_tr_config *config, const struct um_tr_ops *ops, void *io,
                                         const struct um_resolver_events *events, void *user, uint64_t now_ns)
{
    struct um_tr_engine *engine = um_calloc(1, sizeof *engine);
    if (engine == NULL) {
        um_error_nomem("topic resolution engine", sizeof *engine);
        return NULL;
    }
    engine->config = *config;
    engine->ops = *ops;
    engine->io = io;
    engine->start_ns = engine->now_ns = now_ns;
    engine->had_ns = engine->had_asked_ns = now_ns;
    engine->tm_due_ns = UM_NEVER;
    init_lists(engine);
    engine->buffer = um_malloc(TR_BUFFER);
    engine->pattern_cache = um_pattern_cache_create(TR_PATTERN_CACHE);
    if (engine->buffer == NULL || engine->pattern_cache == NULL) {
        um_error_nomem("topic resolution engine", TR_BUFFER);
        um_tr_engine_destroy(engine);
        return NULL;
    }
    if (create_cache(engine, events, user) != 0) {
        um_tr_engine_destroy(engine);
        return NULL;
    }
    tr_refresh_trailer(engine);
    return engine;
}

void um_tr_engine_set_host_id(struct um_tr_engine *engine, uint32_t host_id)
{
    engine->config.host_id = host_id;
}

static void free_tasks(struct um_list *list)
{
    struct um_list *it, *next;
    UM_LIST_FOREACH_SAFE(it, next, list)
    {
        struct tr_task *task = UM_CONTAINER_OF(it, struct tr_task, item.node);
        switch (task->item.kind) {
        case TR_TASK_ADVERT:
            um_free(UM_CONTAINER_OF(task, struct um_tr_advert, task));
            break;
        case TR_TASK_QUERY:
            um_free(UM_CONTAINER_OF(task, struct tr_query, task));
            break;
        default:
            um_free(UM_CONTAINER_OF(task, struct tr_stream, task));
            break;
        }
    }
}

/* Adverts, queries and streams: each is in a lane or quiescent. */
static void free_all_tasks(struct um_tr_engine *engine)
{
    for (int kind = 0; kind < UM_TR_LANE_COUNT; kind++) {
        struct um_tr_lane *lane = &engine->lanes[kind];
        free_tasks(&lane->ready);
        for (size_t slot = 0; slot < UM_TR_LANE_SLOTS; slot++) {
            free_tasks(&lane->slots[slot]);
        }
    }
    for (int kind = 0; kind < TR_TASK_KINDS; kind++) {
        free_tasks(&engine->quiet[kind]);
    }
    um_table_free(&engine->sources_by_topic);
}

void um_tr_engine_destroy(struct um_tr_engine *engine)
{
    if (engine == NULL) {
        return;
    }
    free_all_tasks(engine);
    um_tr_cache_destroy(engine->cache);
    tr_ext_free(engine);
    struct um_list *it, *next;
    UM_LIST_FOREACH_SAFE(it, next, &engine->timings)
    {
        um_free(UM_CONTAINER_OF(it, struct tr_timing, node));
    }
    um_pattern_cache_destroy(engine->pattern_cache);
    um_free(engine->buffer);
    um_free(engine);
}

struct um_tr_cache *um_tr_engine_cache(const struct um_tr_engine *engine)
{
    return engine->cache;
}

uint32_t um_tr_engine_domain_id(const struct um_tr_engine *engine)
{
    return engine->domain_id;
}

void um_tr_engine_set_domain_id(struct um_tr_engine *engine, uint32_t domain_id)
{
    engine->domain_id = domain_id;
}

bool um_tr_engine_has_sources(const struct um_tr_engine *engine)
{
    return engine->advert_count > 0;
}

bool um_tr_engine_has_receivers(const struct um_tr_engine *engine)
{
    return um_tr_cache_wanted_topics(engine->cache) > 0 || um_tr_cache_has_patterns(engine->cache);
}

void um_tr_engine_get_stats(const struct um_tr_engine *engine, struct um_tr_stats *out)
{
    struct um_tr_cache_stats cache;
    um_tr_cache_get_stats(engine->cache, &cache);
    *out = engine->stats;
    out->source_topics = engine->advert_topics;
    out->receiver_topics = cache.topics;
    out->unresolved_topics = cache.unresolved_topics;
    out->cache_refused = cache.cache_refused;
    out->cache_expired = cache.cache_expired;
}

void um_tr_engine_reset_stats(struct um_tr_engine *engine)
{
    memset(&engine->stats, 0, sizeof engine->stats);
    um_tr_cache_reset_stats(engine->cache);
}
