/* Topic resolution, source side: advertised sources, their records, answers to
 * queries, final advertisements. Part of the engine; its thread. */
#include "resolver/um_tr_private.h"

#include "base/um_error.h"
#include "resolver/um_tr_otid.h"
#include "wire/um_transport_place.h"

#define FINAL_COUNT 3

/* What a pattern from the network may cost: an honest one takes a fraction of a microsecond for each topic. */
#define PATTERN_FREE_NS UM_NS_PER_MS
#define PATTERN_TOPIC_NS 5000u
#define PATTERN_CHECKS 8 /* the time is looked at after each of the first so many topics, then after every so many */
#define DISTRUST_NS UM_NS_PER_SEC
#define ANSWER_NS 10000u /* what an answer of its own is put down as; reading the clock would cost a part of it */

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
    out->session_less = !engine->config.extended_options && um_transport_place(info->type) == UM_PLACE_ADDRESS;
}

/* The source's identity in the whole network; the same also when the domain is learnt later. */
static void make_otid(const struct um_tr_engine *engine, const struct um_tr_advert *advert, uint8_t out[UM_TR_OTID_LEN])
{
    bool memory = um_transport_place(advert->info.type) == UM_PLACE_MEMORY;
    struct um_tr_otid_own own = {.domain_id = advert->domain_id,
                                 .place = memory ? engine->config.host_id : advert->info.src_ip};
    um_tr_otid_make(&advert->info, engine->config.ctxinst, &own, out);
}

void um_tr_engine_advert_source(const struct um_tr_engine *engine, const struct um_tr_advert *advert,
                                struct um_tr_source *out)
{
    memset(out, 0, sizeof *out);
    out->topic = advert->name;
    out->info = advert->info;
    make_otid(engine, advert, out->otid);
    out->has_otid = true;
    memcpy(out->ctxinst, engine->config.ctxinst, sizeof out->ctxinst);
    out->has_ctxinst = true;
    out->request_ip = advert->request_ip;
    out->request_port = advert->request_port;
    out->functionality = advert->functionality;
    out->domain_id = engine->domain_id;
}

static void add_otid(const struct um_tr_engine *engine, struct um_lbmr_tir_writer *writer,
                     const struct um_tr_advert *advert)
{
    struct um_lbmr_option option = {.type = UM_LBMR_OPT_OTID, .flags = UM_LBMR_IGNORE16};
    make_otid(engine, advert, option.u.otid);
    um_lbmr_tir_option(writer, &option);
}

static void add_live_options(const struct um_tr_engine *engine, struct um_lbmr_tir_writer *writer,
                             const struct um_tr_advert *advert)
{
    struct um_lbmr_option option;
    if (advert->functionality != 0) {
        option = (struct um_lbmr_option){.type = UM_LBMR_OPT_EXFUNC, .flags = UM_LBMR_IGNORE16};
        option.u.exfunc.functionality = advert->functionality;
        option.u.exfunc.src_ip = advert->request_ip;
        option.u.exfunc.src_port = advert->request_port;
        um_lbmr_tir_option(writer, &option);
    }
    add_otid(engine, writer, advert);
    option = (struct um_lbmr_option){.type = UM_LBMR_OPT_CTXINST, .flags = UM_LBMR_IGNORE8};
    memcpy(option.u.instance.bytes, engine->config.ctxinst, 8);
    um_lbmr_tir_option(writer, &option);
    if (engine->domain_id != 0) {
        option = (struct um_lbmr_option){.type = UM_LBMR_OPT_DOMAIN, .flags = UM_LBMR_IGNORE16};
        option.u.domain_id = engine->domain_id;
        um_lbmr_tir_option(writer, &option);
    }
}

static void add_final_options(const struct um_tr_engine *engine, struct um_lbmr_tir_writer *writer,
                              const struct um_tr_advert *advert)
{
    struct um_lbmr_option option = {.type = UM_LBMR_OPT_COST, .flags = UM_LBMR_IGNORE8};
    option.u.cost.cost = -1;
    add_otid(engine, writer, advert);
    um_lbmr_tir_option(writer, &option);
}

/* Encoded each time: a record kept would be the larger half of what an advertised source costs. */
bool tr_advert_add_record(struct um_tr_engine *engine, struct um_lbmr_builder *builder,
                          const struct um_tr_advert *advert)
{
    uint8_t record[UM_LBMR_TIR_MAX];
    struct um_lbmr_tir_writer writer;
    struct um_lbmr_transport transport;
    fill_transport(engine, &advert->info, &transport);
    um_lbmr_tir_begin(&writer, record, sizeof record, advert->name, advert->info.topic_idx);
    if (advert->state == TR_ADVERT_FINAL) {
        add_final_options(engine, &writer, advert);
    } else if (engine->config.extended_options) {
        add_live_options(engine, &writer, advert);
    }
    return um_lbmr_add_tir(builder, record, um_lbmr_tir_end(&writer, &transport));
}

static bool topic_advertised(const struct um_tr_engine *engine, uint32_t hash, const char *topic, size_t len)
{
    struct um_table_link *link = um_table_find(&engine->sources_by_topic, hash);
    for (; link != NULL; link = um_table_find_next(link)) {
        const struct um_tr_advert *advert = UM_CONTAINER_OF(link, struct um_tr_advert, link);
        if (advert->name_len == len && memcmp(advert->name, topic, len) == 0) {
            return true;
        }
    }
    return false;
}

static struct um_tr_advert *new_advert(struct um_tr_engine *engine, const struct um_tr_advert_spec *spec,
                                       const struct um_tr_advert_options *options, const struct um_tr_timing *timing)
{
    size_t len = strlen(spec->topic);
    struct um_tr_advert *advert = um_calloc(1, offsetof(struct um_tr_advert, name) + len + 1);
    if (advert == NULL) {
        um_error_nomem("advertised source", sizeof *advert + len);
        return NULL;
    }
    memcpy(advert->name, spec->topic, len);
    advert->name_len = (uint16_t)len;
    advert->info = spec->info;
    advert->functionality = spec->functionality;
    advert->request_ip = spec->request_ip;
    advert->request_port = spec->request_port;
    advert->domain_id = engine->domain_id;
    advert->immediate_response = options->immediate_response;
    advert->final_advertisements = options->final_advertisements;
    advert->task.schedule.word = UINT32_MAX; /* no answer yet */
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
        uint32_t hash = tr_own_hash(engine, spec->topic, len);
        bool known = topic_advertised(engine, hash, spec->topic, len);
        if (um_table_add(&engine->sources_by_topic, &advert->link, hash) != 0) {
            um_error_nomem("source cache", 0);
            um_free(advert);
            advert = NULL;
        } else {
            engine->advert_topics += known ? 0 : 1;
            engine->advert_count++;
            um_tr_schedule_start(&advert->task.schedule, timing, engine->now_ns);
            tr_task_place(engine, &advert->task);
        }
    }
    tr_leave(engine);
    return advert;
}

void um_tr_engine_set_advert_user(struct um_tr_advert *advert, void *user)
{
    advert->user = user;
}

void *um_tr_engine_advert_user(const struct um_tr_advert *advert)
{
    return advert->user;
}

static void free_advert(struct um_tr_engine *engine, struct um_tr_advert *advert)
{
    tr_task_idle(&advert->task);
    engine->advert_count--;
    um_free(advert);
}

void um_tr_engine_withdraw(struct um_tr_engine *engine, uint64_t now_ns, struct um_tr_advert *advert)
{
    tr_enter(engine, now_ns);
    um_table_remove(&engine->sources_by_topic, &advert->link);
    if (!topic_advertised(engine, advert->link.hash, advert->name, advert->name_len)) {
        engine->advert_topics--;
    }
    if (advert->final_advertisements && engine->config.extended_options) {
        advert->state = TR_ADVERT_FINAL;
        advert->finals_left = FINAL_COUNT;
        advert->task.schedule.phase = UM_TR_SUSTAIN;
        advert->task.schedule.due_ns = engine->now_ns;
        tr_task_place(engine, &advert->task);
    } else {
        free_advert(engine, advert);
    }
    tr_leave(engine);
}

void tr_advert_sent(struct um_tr_engine *engine, struct um_tr_advert *advert)
{
    if (advert->state == TR_ADVERT_FINAL) {
        if (--advert->finals_left == 0) {
            free_advert(engine, advert);
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
    if (advert->task.schedule.word == tick) {
        return false;
    }
    advert->task.schedule.word = tick;
    return true;
}

/* The clock of the budget stands while the thread is ready and others run: where it gets less of a processor than
 * strangers may have, they would have all of it otherwise. */
static uint64_t had_ns(struct um_tr_engine *engine)
{
    if (engine->ops.kept_ns == NULL) {
        return engine->now_ns;
    }
    if (engine->now_ns >= engine->had_asked_ns + UM_NS_PER_MS) {
        uint64_t passed_ns = engine->now_ns - engine->had_asked_ns;
        uint64_t kept_ns = engine->ops.kept_ns(engine->io), before_ns = engine->kept_ns;
        uint64_t more_ns = kept_ns > before_ns ? kept_ns - before_ns : 0; /* another thread may drive the loop now */
        engine->had_ns += more_ns < passed_ns ? passed_ns - more_ns : 0;
        engine->kept_ns = kept_ns;
        engine->had_asked_ns = engine->now_ns;
    }
    return engine->had_ns;
}

static uint64_t budget_left(struct um_tr_engine *engine)
{
    return engine->ops.cpu_ns == NULL ? UINT64_MAX
                                      : um_tr_budget_left(&engine->budget, engine->from_ip, had_ns(engine));
}

/* One source was asked for. With `builder`, answers of one query share datagrams. Not at once: by the schedule, whose
 * rate is limited. */
static void answer(struct um_tr_engine *engine, struct um_tr_advert *advert, struct um_lbmr_builder *builder,
                   bool at_once)
{
    struct tr_task *task = &advert->task;
    if (!advert->immediate_response || !at_once) {
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
    struct um_table_link *link = um_table_find(&engine->sources_by_topic, tr_own_hash(engine, topic, len));
    for (; link != NULL; link = um_table_find_next(link)) {
        struct um_tr_advert *advert = UM_CONTAINER_OF(link, struct um_tr_advert, link);
        if (advert->name_len == len && memcmp(advert->name, topic, len) == 0) {
            struct um_lbmr_builder builder; /* an answer goes alone in its datagram */
            bool at_once = budget_left(engine) >= ANSWER_NS;
            engine->stats.answers_deferred += !at_once;
            um_tr_budget_spend(&engine->budget, engine->from_ip, at_once ? ANSWER_NS : 0);
            tr_begin_datagram(engine, &builder, UM_LBMR_NORMAL, true);
            answer(engine, advert, &builder, at_once);
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

/* Is there time left for this pattern? The second half of what was saved up is for those known to be cheap. */
static bool affordable(struct um_tr_engine *engine, const struct um_lbmr_tqr *query)
{
    uint64_t left_ns = budget_left(engine);
    bool known = um_pattern_cache_has(engine->pattern_cache, query->name, query->len);
    if (known ? left_ns > 0 : left_ns > UM_TR_BUDGET_MOST_NS / 4 && engine->now_ns >= engine->patterns_trusted_ns) {
        return true;
    }
    engine->stats.refused_patterns++;
    um_log_limited(um_log_of_ip(engine->from_ip), engine->now_ns, UM_LOG_WARNING, "Resolver-15",
                   "wildcard queries of others take too long: some are not answered (%llu so far)",
                   (unsigned long long)engine->stats.refused_patterns);
    return false;
}

/* Those known to be cheap go on being answered, new ones after a while. */
static void distrust_patterns(struct um_tr_engine *engine, const struct um_lbmr_tqr *query)
{
    char shown[256];
    engine->stats.refused_patterns++;
    engine->patterns_trusted_ns = engine->now_ns + DISTRUST_NS;
    um_pattern_cache_drop(engine->pattern_cache, query->name, query->len);
    um_log_limited(um_log_of_ip(engine->from_ip), engine->now_ns, UM_LOG_WARNING, "Resolver-14",
                   "wildcard query [%s] takes too long: dropped, and for a second all patterns not known to be good",
                   um_tr_printable(query->name, shown));
}

/* Compiles the pattern and answers for the topics that match. */
static void search(struct um_tr_engine *engine, const struct um_lbmr_tqr *query, uint64_t started_ns)
{
    struct um_pattern_error error;
    struct um_lbmr_builder builder;
    struct um_table_link *link = NULL;
    size_t cursor = 0;
    char shown[256];
    const struct um_pattern *pattern = um_pattern_cache_get(engine->pattern_cache, query->name, query->len, &error);
    if (pattern == NULL) {
        engine->stats.refused_patterns++;
        um_log_limited(um_log_of_ip(engine->from_ip), engine->now_ns, UM_LOG_WARNING, "Core-5688-3402",
                       "LBMR WC TQR pcre_compile [%s] malformed [%zu][%s]. Dropping.",
                       um_tr_printable(query->name, shown), error.offset, error.text);
        return;
    }
    unsigned topics = 0;
    tr_begin_datagram(engine, &builder, UM_LBMR_NORMAL, true);
    while ((link = um_table_next(&engine->sources_by_topic, &cursor, link)) != NULL) {
        struct um_tr_advert *advert = UM_CONTAINER_OF(link, struct um_tr_advert, link);
        int code = 0;
        enum um_pattern_result result = um_pattern_match(pattern, advert->name, advert->name_len, &code);
        if (result == UM_PATTERN_ERROR) {
            um_log_limited(um_log_of_ip(engine->from_ip), engine->now_ns, UM_LOG_WARNING, "Core-5688-3405",
                           "LBMR WC TQR pcre_exec [%s][%s][%d] error %d", um_tr_printable(query->name, shown),
                           advert->name, advert->name_len, code);
            engine->stats.refused_patterns++;
            um_pattern_cache_drop(engine->pattern_cache, query->name, query->len);
            break; /* a pattern that runs into a limit on one topic would do so on the next */
        }
        if (result == UM_PATTERN_YES) {
            answer(engine, advert, &builder, true);
        }
        if (too_costly(engine, started_ns, ++topics)) {
            distrust_patterns(engine, query);
            break;
        }
    }
    tr_flush_datagram(engine, &builder);
}

void tr_take_wildcard_query(struct um_tr_engine *engine, const struct um_lbmr_tqr *query)
{
    char shown[256];
    if (query->pattern_type != LBM_WILDCARD_RCV_PATTERN_TYPE_PCRE) {
        engine->stats.refused_patterns++;
        um_log_limited(um_log_of_ip(engine->from_ip), engine->now_ns, UM_LOG_WARNING, "Core-5688-3404",
                       "LBMR WC TQR Type 0x%x [%s] not understood. Dropping.", query->pattern_type,
                       um_tr_printable(query->name, shown));
        return;
    }
    if (engine->sources_by_topic.count == 0 || !affordable(engine, query)) {
        return;
    }
    uint64_t started_ns = engine->ops.cpu_ns != NULL ? engine->ops.cpu_ns(engine->io) : 0;
    search(engine, query, started_ns);
    if (engine->ops.cpu_ns != NULL) {
        um_tr_budget_spend(&engine->budget, engine->from_ip, engine->ops.cpu_ns(engine->io) - started_ns);
    }
}
