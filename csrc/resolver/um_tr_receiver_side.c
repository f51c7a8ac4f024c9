/* UDP topic resolution, receiver side: advertisements of others into the cache,
 * queries for the topics that it says are wanted. Part of the engine; its thread. */
#include "resolver/um_tr_private.h"

#include <arpa/inet.h>

#include "base/um_error.h"
#include "wire/um_transport_place.h"

#define CLASS_D_FIRST 0xe0000000u /* multicast, reserved and broadcast addresses */

_Static_assert(UM_TR_NAME_MAX == UM_LBMR_NAME_MAX, "a topic that the cache takes must fit into a record");

/* ---- advertisements ---- */

/* It offers something over a request port, and has none. */
static void tell_portless(struct um_tr_engine *engine, const struct um_lbmr_tir *tir,
                          const struct um_lbmr_option *option)
{
    bool late_join = (option->u.exfunc.functionality & UM_LBMR_EXFUNC_LATE_JOIN) != 0;
    char shown[256];
    um_log_limited(um_log_of_ip(engine->from_ip), engine->now_ns, UM_LOG_WARNING,
                   late_join ? "Core-5988-5" : "Core-6361-2",
                   "Topic Advertisement [%s] contains %s, but its port is set to zero: ignored",
                   um_tr_printable(tir->name, shown), late_join ? "late join" : "EXFUNC information");
}

static void read_options(struct um_tr_engine *engine, const struct um_lbmr_tir *tir, uint32_t from_ip,
                         struct um_tr_source *out)
{
    struct um_lbmr_option option;
    size_t offset = 0;
    while (um_lbmr_next_option(tir, &offset, &option)) {
        switch (option.type) {
        case UM_LBMR_OPT_OTID:
            out->has_otid = true;
            memcpy(out->otid, option.u.otid, sizeof out->otid);
            break;
        case UM_LBMR_OPT_CTXINST:
            out->has_ctxinst = true;
            memcpy(out->ctxinst, option.u.instance.bytes, sizeof out->ctxinst);
            break;
        case UM_LBMR_OPT_COST:
            out->cost = option.u.cost.cost;
            break;
        case UM_LBMR_OPT_DOMAIN:
            out->domain_id = option.u.domain_id;
            break;
        case UM_LBMR_OPT_EXFUNC:
            if (option.u.exfunc.src_port == 0) {
                tell_portless(engine, tir, &option);
                break;
            }
            out->functionality = option.u.exfunc.functionality;
            out->request_ip = option.u.exfunc.src_ip == 0 ? from_ip : option.u.exfunc.src_ip;
            out->request_port = option.u.exfunc.src_port;
            break;
        default:
            break;
        }
    }
}

static void read_info(const struct um_lbmr_tir *tir, uint32_t from_ip, lbm_transport_source_info_t *out)
{
    const struct um_lbmr_transport *transport = &tir->transport;
    memset(out, 0, sizeof *out);
    out->type = transport->code;
    out->session_id = transport->session_id;
    out->topic_idx = tir->index;
    if (um_transport_place(transport->code) == UM_PLACE_MEMORY) {
        out->transport_id = transport->transport_id;
        return;
    }
    out->src_ip = transport->ip == 0 ? from_ip : transport->ip;
    out->src_port = transport->port;
    out->dest_port = transport->dest_port;
    out->mc_group = transport->group;
}

static bool ignorable(const struct um_tr_engine *engine, const struct um_lbmr_tir *tir)
{
    const struct um_lbmr_transport *transport = &tir->transport;
    bool memory = um_transport_place(transport->code) == UM_PLACE_MEMORY;
    return !transport->known ||
           (memory && engine->ops.host_is_local != NULL && !engine->ops.host_is_local(engine->io, transport->host_id));
}

/* Nobody can be reached there, so only a broken or hostile sender says so. */
static bool unreachable(const lbm_transport_source_info_t *info)
{
    return um_transport_place(info->type) == UM_PLACE_ADDRESS &&
           (info->src_port == 0 || info->src_ip == 0 || ntohl(info->src_ip) >= CLASS_D_FIRST);
}

void tr_take_tir(struct um_tr_engine *engine, const struct um_lbmr_tir *tir, uint32_t from_ip)
{
    struct um_tr_source told;
    char shown[256];
    if (ignorable(engine, tir)) {
        return;
    }
    memset(&told, 0, sizeof told);
    told.topic = tir->name;
    told.told_by = from_ip;
    read_info(tir, from_ip, &told.info);
    if (unreachable(&told.info)) {
        engine->stats.dropped_malformed++;
        um_log_limited(um_log_of_ip(from_ip), engine->now_ns, UM_LOG_WARNING, "Resolver-13",
                       "advertisement of topic [%s] with an address or port that no source can have: dropped",
                       um_tr_printable(tir->name, shown));
        return;
    }
    read_options(engine, tir, from_ip, &told);
    if (told.cost < 0) {
        um_tr_cache_gone(engine->hearsay, engine->now_ns, &told);
    } else {
        um_tr_cache_found(engine->hearsay, engine->now_ns, &told);
    }
}

/* ---- queries ---- */

/* Services are told from inside the cache, whoever called it. */
static struct um_tr_engine *enter_from_cache(void *service)
{
    struct um_tr_engine *engine = service;
    tr_enter(engine, um_tr_cache_now(engine->cache));
    return engine;
}

static int topic_wanted(void *service, struct um_tr_entry *entry, const struct um_tr_timing *asking)
{
    struct tr_query *query = um_calloc(1, sizeof *query);
    if (query == NULL) {
        return -1;
    }
    struct um_tr_engine *engine = enter_from_cache(service);
    query->entry = entry;
    tr_task_init(&query->task, TR_TASK_QUERY, asking);
    um_tr_entry_set_schedule(entry, query);
    um_tr_schedule_start(&query->task.schedule, asking, engine->now_ns);
    tr_task_place(engine, &query->task);
    tr_leave(engine);
    return 0;
}

static void topic_unwanted(void *service, struct um_tr_entry *entry)
{
    struct um_tr_engine *engine = enter_from_cache(service);
    struct tr_query *query = um_tr_entry_schedule(entry);
    if ((query->task.item.flags & TR_QUERIED) != 0) {
        size_t len;
        const char *name = um_tr_entry_name(entry, &len);
        tr_tm_queue(engine, UM_LBMR_TM_LEAVE, 0, name, len);
    }
    tr_task_idle(&query->task);
    um_free(query);
    tr_leave(engine);
}

/* Ask again when the loss leaves the topic below a threshold. */
static bool source_lost(void *service, struct um_tr_entry *entry)
{
    struct um_tr_engine *engine = enter_from_cache(service);
    struct tr_task *task = &((struct tr_query *)um_tr_entry_schedule(entry))->task;
    if (task->schedule.phase == UM_TR_QUIESCENT && um_tr_cache_query_needed(entry)) {
        um_tr_schedule_sustain(&task->schedule, task->timing, engine->now_ns);
        tr_task_place(engine, task);
    }
    bool asked = engine->config.queries_possible && task->timing->sustain_ns != 0;
    tr_leave(engine);
    return asked;
}

const struct um_tr_service_ops tr_hearsay_ops = {.topic_wanted = topic_wanted,
                                                 .topic_unwanted = topic_unwanted,
                                                 .pattern_wanted = tr_stream_start,
                                                 .pattern_unwanted = tr_stream_stop,
                                                 .source_lost = source_lost};

bool tr_query_add_record(struct um_lbmr_builder *builder, const struct tr_query *query)
{
    size_t len;
    const char *name = um_tr_entry_name(query->entry, &len);
    return um_lbmr_add_tqr(builder, name, len);
}

bool tr_query_suppressed(const struct tr_query *query)
{
    return !um_tr_cache_query_needed(query->entry);
}

void tr_query_sent(struct um_tr_engine *engine, struct tr_query *query, bool really)
{
    struct tr_task *task = &query->task;
    um_tr_schedule_sent(&task->schedule, task->timing, engine->now_ns);
    tr_task_place(engine, task);
    if (really) {
        task->item.flags |= TR_QUERIED;
        um_tr_cache_query_sent(engine->cache, engine->now_ns, query->entry);
    }
}

/* ---- what the core wants ---- */

struct um_tr_topic *um_tr_engine_lookup(struct um_tr_engine *engine, uint64_t now_ns, const char *topic,
                                        const struct um_tr_query_options *options, void *topic_user)
{
    tr_enter(engine, now_ns);
    struct um_tr_interest interest = {.asking = tr_intern_timing(engine, &options->timing),
                                      .sources_threshold = options->sources_threshold,
                                      .no_source_threshold = options->no_source_threshold};
    struct um_tr_topic *added = interest.asking == NULL
                                    ? NULL
                                    : um_tr_cache_lookup(engine->cache, engine->now_ns, topic, &interest, topic_user);
    tr_leave(engine);
    return added;
}

void um_tr_engine_receive(struct um_tr_engine *engine, uint64_t now_ns, struct um_tr_topic *topic, bool internal)
{
    tr_enter(engine, now_ns);
    um_tr_cache_receive(engine->cache, engine->now_ns, topic, internal);
    tr_leave(engine);
}

struct um_tr_topic *um_tr_engine_subscribe(struct um_tr_engine *engine, uint64_t now_ns, const char *topic,
                                           const struct um_tr_query_options *options, bool internal, void *topic_user)
{
    tr_enter(engine, now_ns);
    struct um_tr_topic *added = um_tr_engine_lookup(engine, now_ns, topic, options, topic_user);
    if (added != NULL) {
        um_tr_engine_receive(engine, now_ns, added, internal);
    }
    tr_leave(engine);
    return added;
}

void um_tr_engine_unsubscribe(struct um_tr_engine *engine, uint64_t now_ns, struct um_tr_topic *topic)
{
    tr_enter(engine, now_ns);
    um_tr_cache_unsubscribe(engine->cache, engine->now_ns, topic);
    tr_leave(engine);
}

bool um_tr_engine_source_facts(const struct um_tr_engine *engine, const char *topic,
                               const lbm_transport_source_info_t *info, struct um_tr_source *out)
{
    return um_tr_cache_source_facts(engine->cache, topic, info, out);
}

void um_tr_engine_source_used(struct um_tr_engine *engine, uint64_t now_ns, const char *topic,
                              const lbm_transport_source_info_t *info)
{
    tr_enter(engine, now_ns);
    um_tr_cache_source_used(engine->cache, engine->now_ns, topic, info);
    tr_leave(engine);
}

void um_tr_engine_source_ended(struct um_tr_engine *engine, uint64_t now_ns, const char *topic,
                               const lbm_transport_source_info_t *info)
{
    tr_enter(engine, now_ns);
    um_tr_cache_source_ended(engine->cache, engine->now_ns, topic, info);
    tr_leave(engine);
}
