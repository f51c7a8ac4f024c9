/* Topic resolution, source side: advertised sources, their records, answers to
 * queries, final advertisements. Part of the engine; its thread. */
#include "resolver/um_tr_private.h"

#include "base/um_error.h"

#define FINAL_COUNT 3
#define DOMAIN_OPTION_LEN 8

/* What a pattern from the network may cost: an honest one takes a fraction of a microsecond for each topic. */
#define PATTERN_FREE_NS UM_NS_PER_MS
#define PATTERN_TOPIC_NS 5000u
#define PATTERN_CHECKS 8 /* the time is looked at after each of the first so many topics, then after every so many */
#define DISTRUST_NS UM_NS_PER_SEC

static void fill_transport(const struct um_tr_engine *engine, const lbm_transport_source_info_t *info,
                           struct um_lbmr_transport *out)
{
    memset(out, 0, sizeof *out);
    out->code = (uint8_t)info->type;
    out->ip = info->src_ip;
    out->group = info->mc_group;
    out->session_id = info->session_id;
    out->port = info->src_port;
    out->dest_port = info->dest_port;
    out->transport_id = (uint16_t)info->transport_id;
    out->host_id = engine->config.host_id;
    out->session_less = !engine->config.extended_options && (out->code == UM_LBMR_TCP || out->code == UM_LBMR_LBTRU);
}

static bool shared_memory(uint8_t code)
{
    return code == UM_LBMR_LBTIPC || code == UM_LBMR_LBTSMX;
}

/* The source's identity in the whole network; fixed at creation, also when the domain is learnt later. */
static void make_otid(const struct um_tr_engine *engine, const struct um_lbmr_transport *transport, uint32_t index,
                      uint8_t otid[32])
{
    memset(otid, 0, 32);
    otid[0] = 1;
    otid[1] = transport->code;
    um_put32(otid + 4, engine->domain_id);
    memcpy(otid + 8, engine->config.ctxinst, 8);
    um_put32(otid + 16, index);
    um_put32(otid + 20, transport->session_id);
    if (shared_memory(transport->code)) {
        um_put32(otid + 24, transport->host_id);
        um_put16(otid + 28, transport->transport_id);
    } else {
        memcpy(otid + 24, &transport->ip, 4);
        um_put16(otid + 28, transport->port);
        um_put16(otid + 30, transport->code == UM_LBMR_LBTRM ? transport->dest_port : 0);
    }
}

static void add_options(const struct um_tr_engine *engine, struct um_lbmr_tir_writer *writer,
                        const struct um_tr_advert_spec *spec, const struct um_lbmr_transport *transport)
{
    struct um_lbmr_option option;
    if (spec->functionality != 0) {
        option = (struct um_lbmr_option){.type = UM_LBMR_OPT_EXFUNC, .flags = UM_LBMR_IGNORE16};
        option.u.exfunc.functionality = spec->functionality;
        option.u.exfunc.src_ip = spec->request_ip;
        option.u.exfunc.src_port = spec->request_port;
        um_lbmr_tir_option(writer, &option);
    }
    option = (struct um_lbmr_option){.type = UM_LBMR_OPT_OTID, .flags = UM_LBMR_IGNORE16};
    make_otid(engine, transport, spec->info.topic_idx, option.u.otid);
    um_lbmr_tir_option(writer, &option);
    option = (struct um_lbmr_option){.type = UM_LBMR_OPT_CTXINST, .flags = UM_LBMR_IGNORE8};
    memcpy(option.u.instance.bytes, engine->config.ctxinst, 8);
    um_lbmr_tir_option(writer, &option);
}

static bool topic_advertised(const struct um_tr_engine *engine, uint32_t hash, const char *topic, size_t len)
{
    struct um_tr_link *link = um_tr_table_find(&engine->sources_by_topic, hash);
    for (; link != NULL; link = um_tr_table_find_next(link)) {
        const struct um_tr_advert *advert = UM_CONTAINER_OF(link, struct um_tr_advert, link);
        if (advert->name_len == len && memcmp(advert->record, topic, len) == 0) {
            return true;
        }
    }
    return false;
}

static struct um_tr_advert *new_advert(struct um_tr_engine *engine, const struct um_tr_advert_spec *spec,
                                       const struct um_tr_advert_options *options, const struct um_tr_timing *timing)
{
    uint8_t record[UM_LBMR_TIR_MAX];
    struct um_lbmr_tir_writer writer;
    struct um_lbmr_transport transport;
    fill_transport(engine, &spec->info, &transport);
    um_lbmr_tir_begin(&writer, record, sizeof record, spec->topic, spec->info.topic_idx);
    if (engine->config.extended_options) {
        add_options(engine, &writer, spec, &transport);
    }
    size_t len = um_lbmr_tir_end(&writer, &transport);
    struct um_tr_advert *advert = um_calloc(1, sizeof *advert + len + DOMAIN_OPTION_LEN);
    if (advert == NULL) {
        um_error_nomem("advertised source", sizeof *advert + len + DOMAIN_OPTION_LEN);
        return NULL;
    }
    memcpy(advert->record, record, len);
    advert->record_len = (uint16_t)len;
    advert->name_len = (uint16_t)strlen(spec->topic);
    advert->immediate_response = options->immediate_response;
    advert->final_advertisements = options->final_advertisements;
    advert->has_options = engine->config.extended_options;
    advert->answered_tick = UINT32_MAX;
    tr_task_init(&advert->task, TR_TASK_ADVERT, timing);
    return advert;
}

struct um_tr_advert *um_tr_engine_advertise(struct um_tr_engine *engine, uint64_t now_ns,
                                            const struct um_tr_advert_spec *spec,
                                            const struct um_tr_advert_options *options)
{
    size_t len = strlen(spec->topic);
    if (len == 0 || len > UM_LBMR_NAME_MAX) {
        um_error(UM_EINVAL, "Resolver-3", "topic of %zu characters: must have 1..%d", len, UM_LBMR_NAME_MAX);
        return NULL;
    }
    tr_enter(engine, now_ns);
    const struct um_tr_timing *timing = tr_intern_timing(engine, &options->timing);
    struct um_tr_advert *advert = timing == NULL ? NULL : new_advert(engine, spec, options, timing);
    if (advert != NULL) {
        uint32_t hash = tr_hash(engine, spec->topic, len);
        bool known = topic_advertised(engine, hash, spec->topic, len);
        if (um_tr_table_add(&engine->sources_by_topic, &advert->link, hash) != 0) {
            um_error_nomem("source cache", 0);
            um_free(advert);
            advert = NULL;
        } else {
            engine->advert_topics += known ? 0 : 1;
            um_list_push_back(&engine->adverts, &advert->all);
            um_tr_schedule_start(&advert->task.schedule, timing, engine->now_ns);
            tr_task_place(engine, &advert->task);
        }
    }
    tr_leave(engine);
    return advert;
}

static void free_advert(struct um_tr_advert *advert)
{
    tr_task_idle(&advert->task);
    um_list_remove(&advert->all);
    um_free(advert);
}

/* The record becomes: topic, fixed part, OTID, cost -1, transport block. Shorter than what it replaces. */
static void make_final_record(struct um_tr_advert *advert)
{
    uint8_t copy[UM_LBMR_TIR_MAX + UM_LBMR_HEADER_LEN] = {0, 0, 0, 1};
    struct um_lbmr_msg msg = {.type = UM_LBMR_NORMAL, .tirs = 1};
    struct um_lbmr_cursor cursor;
    struct um_lbmr_tir tir;
    struct um_lbmr_tir_writer writer;
    struct um_lbmr_option option;
    size_t offset = 0;
    memcpy(copy + UM_LBMR_HEADER_LEN, advert->record, advert->record_len);
    msg.bytes = (struct um_slice){copy, UM_LBMR_HEADER_LEN + advert->record_len};
    um_lbmr_records(&msg, &cursor);
    um_lbmr_next_tir(&cursor, &tir);
    um_lbmr_tir_begin(&writer, advert->record, advert->record_len, tir.name, tir.index);
    while (um_lbmr_next_option(&tir, &offset, &option)) {
        if (option.type == UM_LBMR_OPT_OTID) {
            um_lbmr_tir_option(&writer, &option);
        }
    }
    option = (struct um_lbmr_option){.type = UM_LBMR_OPT_COST, .flags = UM_LBMR_IGNORE8};
    option.u.cost.cost = -1;
    um_lbmr_tir_option(&writer, &option);
    advert->record_len = (uint16_t)um_lbmr_tir_end(&writer, &tir.transport);
}

void um_tr_engine_withdraw(struct um_tr_engine *engine, uint64_t now_ns, struct um_tr_advert *advert)
{
    tr_enter(engine, now_ns);
    um_tr_table_remove(&engine->sources_by_topic, &advert->link);
    if (!topic_advertised(engine, advert->link.hash, (const char *)advert->record, advert->name_len)) {
        engine->advert_topics--;
    }
    if (advert->final_advertisements && advert->has_options) {
        make_final_record(advert);
        advert->state = TR_ADVERT_FINAL;
        advert->finals_left = FINAL_COUNT;
        advert->has_domain = true; /* nothing more is put into this record */
        um_list_remove(&advert->all);
        um_list_push_back(&engine->adverts, &advert->all);
        advert->task.schedule.phase = UM_TR_SUSTAIN;
        advert->task.schedule.due_ns = engine->now_ns;
        tr_task_place(engine, &advert->task);
    } else {
        free_advert(advert);
    }
    tr_leave(engine);
}

/* The domain was learnt after the record was made: put its option at the end of the options. */
static void insert_domain(const struct um_tr_engine *engine, struct um_tr_advert *advert)
{
    uint8_t *fixed = advert->record + advert->name_len + 1;
    uint8_t *options = fixed + 8;
    size_t total = um_get16(options + 2);
    uint8_t *at = options + total;
    memmove(at + DOMAIN_OPTION_LEN, at, fixed[1]);
    at[0] = UM_LBMR_OPT_DOMAIN;
    at[1] = DOMAIN_OPTION_LEN;
    um_put16(at + 2, UM_LBMR_IGNORE16);
    um_put32(at + 4, engine->domain_id);
    um_put16(options + 2, (uint16_t)(total + DOMAIN_OPTION_LEN));
    advert->record_len += DOMAIN_OPTION_LEN;
    advert->has_domain = true;
}

bool tr_advert_add_record(struct um_tr_engine *engine, struct um_lbmr_builder *builder, struct um_tr_advert *advert)
{
    if (engine->domain_id != 0 && advert->has_options && !advert->has_domain) {
        insert_domain(engine, advert);
    }
    return um_lbmr_add_tir(builder, advert->record, advert->record_len);
}

void tr_advert_sent(struct um_tr_engine *engine, struct um_tr_advert *advert)
{
    if (advert->state == TR_ADVERT_FINAL) {
        if (--advert->finals_left == 0) {
            free_advert(advert);
            return;
        }
        advert->task.schedule.due_ns = engine->now_ns + UM_TR_SUSTAIN_TICK_NS;
    } else {
        um_tr_schedule_sent(&advert->task.schedule, advert->task.timing, engine->now_ns);
    }
    tr_task_place(engine, &advert->task);
}

/* May this source answer at once? At most one immediate answer per source and 10 ms tick. */
static bool may_answer(const struct um_tr_engine *engine, struct um_tr_advert *advert)
{
    uint32_t tick = (uint32_t)((engine->now_ns - engine->start_ns) / UM_TR_INITIAL_ADVERT_TICK_NS);
    if (advert->answered_tick == tick) {
        return false;
    }
    advert->answered_tick = tick;
    return true;
}

/* One source was asked for. With `builder`, answers of one query share datagrams. */
static void answer(struct um_tr_engine *engine, struct um_tr_advert *advert, struct um_lbmr_builder *builder)
{
    struct tr_task *task = &advert->task;
    if (!advert->immediate_response) {
        um_tr_schedule_asked(&task->schedule, task->timing, engine->now_ns);
        tr_task_place(engine, task);
        return;
    }
    if (!may_answer(engine, advert)) {
        return;
    }
    if (!tr_advert_add_record(engine, builder, advert)) {
        tr_flush_datagram(engine, builder);
        tr_begin_datagram(engine, builder, UM_LBMR_NORMAL, true);
        tr_advert_add_record(engine, builder, advert);
    }
    um_tr_schedule_answered(&task->schedule, task->timing, engine->now_ns);
    tr_task_place(engine, task);
}

void tr_take_query(struct um_tr_engine *engine, const char *topic, size_t len)
{
    struct um_tr_link *link = um_tr_table_find(&engine->sources_by_topic, tr_hash(engine, topic, len));
    for (; link != NULL; link = um_tr_table_find_next(link)) {
        struct um_tr_advert *advert = UM_CONTAINER_OF(link, struct um_tr_advert, link);
        if (advert->name_len == len && memcmp(advert->record, topic, len) == 0) {
            struct um_lbmr_builder builder; /* an answer goes alone in its datagram */
            tr_begin_datagram(engine, &builder, UM_LBMR_NORMAL, true);
            answer(engine, advert, &builder);
            tr_flush_datagram(engine, &builder);
        }
    }
}

/* Limits of PCRE2 hold for one start in one topic; all topics and all the patterns of a datagram make minutes of it. */
static bool too_costly(const struct um_tr_engine *engine, uint64_t started_ns, unsigned topics)
{
    if (engine->ops.cpu_ns == NULL || (topics > PATTERN_CHECKS && topics % PATTERN_CHECKS != 0)) {
        return false;
    }
    return engine->ops.cpu_ns(engine->io) - started_ns > PATTERN_FREE_NS + (uint64_t)topics * PATTERN_TOPIC_NS;
}

/* Those known to be cheap go on being answered, new ones after a while. */
static void distrust_patterns(struct um_tr_engine *engine, const struct um_lbmr_tqr *query)
{
    char shown[UM_LBMR_NAME_MAX + 1];
    engine->stats.refused_patterns++;
    engine->patterns_trusted_ns = engine->now_ns + DISTRUST_NS;
    um_pattern_cache_drop(engine->pattern_cache, query->name, query->len);
    um_log_limited(&engine->source_log, engine->now_ns, 10 * UM_NS_PER_SEC, UM_LOG_WARNING, "Resolver-14",
                   "wildcard query [%s] takes too long: dropped, and for a second all patterns not known to be good",
                   tr_printable(query->name, shown));
}

void tr_take_wildcard_query(struct um_tr_engine *engine, const struct um_lbmr_tqr *query)
{
    struct um_pattern_error error;
    struct um_lbmr_builder builder;
    struct um_list *it, *next;
    char shown[UM_LBMR_NAME_MAX + 1];
    if (query->pattern_type != LBM_WILDCARD_RCV_PATTERN_TYPE_PCRE) {
        engine->stats.refused_patterns++;
        um_log_limited(&engine->source_log, engine->now_ns, 10 * UM_NS_PER_SEC, UM_LOG_WARNING, "Core-5688-3404",
                       "LBMR WC TQR Type 0x%x [%s] not understood. Dropping.", query->pattern_type,
                       tr_printable(query->name, shown));
        return;
    }
    if (um_list_empty(&engine->adverts)) {
        return;
    }
    if (engine->now_ns < engine->patterns_trusted_ns &&
        !um_pattern_cache_has(engine->pattern_cache, query->name, query->len)) {
        engine->stats.refused_patterns++;
        return;
    }
    const struct um_pattern *pattern = um_pattern_cache_get(engine->pattern_cache, query->name, query->len, &error);
    if (pattern == NULL) {
        engine->stats.refused_patterns++;
        um_log_limited(&engine->source_log, engine->now_ns, 10 * UM_NS_PER_SEC, UM_LOG_WARNING, "Core-5688-3402",
                       "LBMR WC TQR pcre_compile [%s] malformed [%zu][%s]. Dropping.", tr_printable(query->name, shown),
                       error.offset, error.text);
        return;
    }
    uint64_t started_ns = engine->ops.cpu_ns != NULL ? engine->ops.cpu_ns(engine->io) : 0;
    unsigned topics = 0;
    tr_begin_datagram(engine, &builder, UM_LBMR_NORMAL, true);
    UM_LIST_FOREACH_SAFE(it, next, &engine->adverts)
    {
        struct um_tr_advert *advert = UM_CONTAINER_OF(it, struct um_tr_advert, all);
        int code = 0;
        if (advert->state != TR_ADVERT_LIVE) {
            continue;
        }
        enum um_pattern_result result =
            um_pattern_match(pattern, (const char *)advert->record, advert->name_len, &code);
        if (result == UM_PATTERN_ERROR) {
            um_log_limited(&engine->source_log, engine->now_ns, 10 * UM_NS_PER_SEC, UM_LOG_WARNING, "Core-5688-3405",
                           "LBMR WC TQR pcre_exec [%s][%s][%d] error %d", tr_printable(query->name, shown),
                           (const char *)advert->record, advert->name_len, code);
            break; /* a pattern that runs into a limit on one topic would do so on the next */
        }
        if (result == UM_PATTERN_YES) {
            answer(engine, advert, &builder);
        }
        if (too_costly(engine, started_ns, ++topics)) {
            distrust_patterns(engine, query);
            break;
        }
    }
    tr_flush_datagram(engine, &builder);
}

void tr_source_side_free(struct um_tr_engine *engine)
{
    struct um_list *it, *next;
    UM_LIST_FOREACH_SAFE(it, next, &engine->adverts)
    {
        free_advert(UM_CONTAINER_OF(it, struct um_tr_advert, all));
    }
    um_tr_table_free(&engine->sources_by_topic);
}
