/* Topic resolution, receiver side: the cache of advertised sources, interest in
 * topics, queries and their thresholds. Part of the engine; its thread. */
#include "resolver/um_tr_private.h"

#include <arpa/inet.h>

#include "base/um_error.h"

#define INTERNAL_NO_SOURCE_THRESHOLD 10
#define LOG_INTERVAL_NS (10 * UM_NS_PER_SEC)
#define CLASS_D_FIRST 0xe0000000u /* multicast, reserved and broadcast addresses */

/* ---- entries ---- */

struct tr_entry *tr_entry_find(const struct um_tr_engine *engine, const char *topic, size_t len)
{
    struct um_tr_link *link = um_tr_table_find(&engine->entries, tr_hash(engine, topic, len));
    for (; link != NULL; link = um_tr_table_find_next(link)) {
        struct tr_entry *entry = UM_CONTAINER_OF(link, struct tr_entry, link);
        if (entry->name_len == len && memcmp(entry->name, topic, len) == 0) {
            return entry;
        }
    }
    return NULL;
}

static struct tr_entry *entry_create(struct um_tr_engine *engine, const char *topic, size_t len)
{
    struct tr_entry *entry = um_calloc(1, sizeof *entry + len + 1);
    if (entry == NULL) {
        return NULL;
    }
    memcpy(entry->name, topic, len);
    entry->name_len = (uint16_t)len;
    tr_task_init(&entry->task, TR_TASK_QUERY, NULL);
    if (um_tr_table_add(&engine->entries, &entry->link, tr_hash(engine, topic, len)) != 0) {
        um_free(entry);
        return NULL;
    }
    return entry;
}

static void update_unresolved(struct um_tr_engine *engine, struct tr_entry *entry)
{
    bool unresolved = entry->subscribers != NULL && entry->source_count == 0;
    if (unresolved != entry->counted_unresolved) {
        entry->counted_unresolved = unresolved;
        engine->unresolved += unresolved ? 1 : (size_t)-1;
    }
}

/* An entry without sources and interest says nothing. */
static void entry_release_if_empty(struct um_tr_engine *engine, struct tr_entry *entry)
{
    if (entry->dead || entry->subscribers != NULL || entry->sources != NULL) {
        return;
    }
    entry->dead = true;
    tr_task_idle(&entry->task);
    um_tr_table_remove(&engine->entries, &entry->link);
    tr_bury(engine, &entry->grave);
}

/* ---- sources ---- */

static uint32_t source_hash(const struct tr_entry *entry, const lbm_transport_source_info_t *info)
{
    return um_hash_murmur2(info, sizeof *info) ^ entry->link.hash;
}

static struct tr_source *source_find(const struct um_tr_engine *engine, const struct tr_entry *entry,
                                     const lbm_transport_source_info_t *info)
{
    struct um_tr_link *link = um_tr_table_find(&engine->source_keys, source_hash(entry, info));
    for (; link != NULL; link = um_tr_table_find_next(link)) {
        struct tr_source *source = UM_CONTAINER_OF(link, struct tr_source, link);
        if (source->entry == entry && memcmp(&source->info, info, sizeof *info) == 0) {
            return source;
        }
    }
    return NULL;
}

/* A copy for callbacks, which may remove the original; `name` holds the topic. */
static void fill_source(const struct tr_source *source, const char *topic, size_t len, struct um_tr_source *out,
                        char name[UM_LBMR_NAME_MAX + 1])
{
    memset(out, 0, sizeof *out);
    memcpy(name, topic, len);
    name[len] = '\0';
    out->topic = name;
    out->info = source->info;
    memcpy(out->otid, source->otid, sizeof out->otid);
    memcpy(out->ctxinst, source->ctxinst, sizeof out->ctxinst);
    out->has_otid = source->has_otid;
    out->has_ctxinst = source->has_ctxinst;
    out->request_ip = source->request_ip;
    out->request_port = source->request_port;
    out->functionality = source->functionality;
    out->cost = source->cost;
    out->domain_id = source->domain_id;
}

static int source_link(struct um_tr_engine *engine, struct tr_entry *entry, struct tr_source *source)
{
    source->entry = entry;
    if (um_tr_table_add(&engine->source_keys, &source->link, source_hash(entry, &source->info)) != 0) {
        return -1;
    }
    source->next = entry->sources;
    entry->sources = source;
    entry->source_count++;
    entry->unanswered = 0;
    for (struct um_tr_topic *topic = entry->subscribers; topic != NULL; topic = topic->next) {
        topic->notified = false;
    }
    update_unresolved(engine, entry);
    return 0;
}

static void tell_no_source(struct um_tr_engine *engine, struct tr_entry *entry, bool at_once);

static bool queries_possible(const struct um_tr_engine *engine, const struct tr_entry *entry)
{
    const struct um_tr_timing *timing = entry->task.timing;
    return engine->config.queries_possible && timing != NULL && timing->sustain_ns != 0;
}

/* The topic lost a source: ask again when that leaves it below a threshold. */
static void requery(struct um_tr_engine *engine, struct tr_entry *entry)
{
    if (entry->subscribers == NULL) {
        return;
    }
    if (entry->task.schedule.phase == UM_TR_QUIESCENT && tr_query_wanted(entry)) {
        um_tr_schedule_sustain(&entry->task.schedule, entry->task.timing, engine->now_ns);
        tr_task_place(engine, &entry->task);
    }
    if (entry->source_count == 0 && !queries_possible(engine, entry)) {
        tell_no_source(engine, entry, true);
    }
}

static void source_unlink(struct um_tr_engine *engine, struct tr_source *source)
{
    struct tr_entry *entry = source->entry;
    struct tr_source **at = &entry->sources;
    while (*at != source) {
        at = &(*at)->next;
    }
    *at = source->next;
    um_tr_table_remove(&engine->source_keys, &source->link);
    source->dead = true;
    entry->source_count--;
    update_unresolved(engine, entry);
    tr_bury(engine, &source->grave);
}

/* ---- notices to the core ---- */

/* Subscribers present now; those added by the callbacks learn of the source when they subscribe. */
static void offer(struct um_tr_engine *engine, struct tr_entry *entry, const struct um_tr_source *source)
{
    struct um_tr_topic *next;
    for (struct um_tr_topic *topic = entry->subscribers; topic != NULL; topic = next) {
        if (!topic->dead && engine->events.on_source != NULL) {
            engine->events.on_source(topic->user, source);
        }
        next = topic->next;
    }
}

static void tell_gone(struct um_tr_engine *engine, struct tr_entry *entry, const struct um_tr_source *source)
{
    struct um_tr_topic *next;
    for (struct um_tr_topic *topic = entry->subscribers; topic != NULL; topic = next) {
        if (!topic->dead && engine->events.on_source_gone != NULL) {
            engine->events.on_source_gone(topic->user, source);
        }
        next = topic->next;
    }
}

/* at_once: no queries exist that could be counted; only internal receivers are told, for their linger timer. */
static void tell_no_source(struct um_tr_engine *engine, struct tr_entry *entry, bool at_once)
{
    struct um_tr_topic *next;
    for (struct um_tr_topic *topic = entry->subscribers; topic != NULL; topic = next) {
        uint64_t threshold = topic->internal ? INTERNAL_NO_SOURCE_THRESHOLD : topic->no_source_threshold;
        bool reached = at_once ? topic->internal : threshold != 0 && entry->unanswered >= threshold;
        if (!topic->dead && !topic->notified && reached) {
            topic->notified = true;
            if (engine->events.on_no_source != NULL) {
                engine->events.on_no_source(topic->user);
            }
        }
        next = topic->next;
    }
}

/* ---- advertisements ---- */

static void read_options(struct um_tr_engine *engine, const struct um_lbmr_tir *tir, uint32_t from_ip,
                         struct tr_source *out)
{
    struct um_lbmr_option option;
    size_t offset = 0;
    char shown[UM_LBMR_NAME_MAX + 1];
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
                um_log_limited(&engine->source_log, engine->now_ns, LOG_INTERVAL_NS, UM_LOG_WARNING, "Core-6361-2",
                               "Topic Advertisement [%s] contains EXFUNC Info but port is set to zero. "
                               "Ignoring invalid EXFUNC Info.",
                               tr_printable(tir->name, shown));
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
    if (transport->code == UM_LBMR_LBTIPC || transport->code == UM_LBMR_LBTSMX) {
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
    bool memory = transport->code == UM_LBMR_LBTIPC || transport->code == UM_LBMR_LBTSMX;
    return !transport->known ||
           (memory && engine->ops.host_is_local != NULL && !engine->ops.host_is_local(engine->io, transport->host_id));
}

/* Nobody can be reached there, so only a broken or hostile sender says so. */
static bool unreachable(const lbm_transport_source_info_t *info)
{
    bool unicast = info->type == LBM_TRANSPORT_TYPE_TCP || info->type == LBM_TRANSPORT_TYPE_LBTRU;
    return unicast && (info->src_port == 0 || info->src_ip == 0 || ntohl(info->src_ip) >= CLASS_D_FIRST);
}

/* Topics nobody here is interested in are remembered as long as there is room; others always. */
static bool cache_full(struct um_tr_engine *engine, const struct tr_entry *entry)
{
    if ((entry != NULL && entry->subscribers != NULL) || engine->source_keys.count < engine->config.cache_max) {
        return false;
    }
    engine->stats.cache_refused++;
    um_log_limited(&engine->cache_log, engine->now_ns, LOG_INTERVAL_NS, UM_LOG_WARNING, "Resolver-12",
                   "resolver cache: %zu sources, more are not remembered for topics without a receiver (%llu refused); "
                   "are advertisements forged?",
                   engine->source_keys.count, (unsigned long long)engine->stats.cache_refused);
    return true;
}

static void withdrawn(struct um_tr_engine *engine, struct tr_entry *entry, struct tr_source *source)
{
    char name[UM_LBMR_NAME_MAX + 1];
    struct um_tr_source copy;
    fill_source(source, entry->name, entry->name_len, &copy, name);
    copy.cost = -1;
    source_unlink(engine, source);
    tell_gone(engine, entry, &copy);
    if (!entry->dead) {
        requery(engine, entry);
        entry_release_if_empty(engine, entry);
    }
}

/* A source seen before: newer options replace the old ones; another OTID on the same session and index is an error. */
static void refreshed(struct um_tr_engine *engine, struct tr_source *source, const struct tr_source *seen)
{
    char name[UM_LBMR_NAME_MAX + 1];
    struct um_tr_source copy;
    if (source->has_otid && seen->has_otid && memcmp(source->otid, seen->otid, sizeof source->otid) != 0) {
        um_log_limited(&engine->source_log, engine->now_ns, LOG_INTERVAL_NS, UM_LOG_WARNING, "Core-6190-1",
                       "LBMR TIR contained inconsistent transport information.");
        return;
    }
    if (seen->has_otid) {
        source->has_otid = true;
        memcpy(source->otid, seen->otid, sizeof source->otid);
    }
    source->request_ip = seen->request_ip;
    source->request_port = seen->request_port;
    source->functionality = seen->functionality;
    source->cost = seen->cost;
    source->domain_id = seen->domain_id;
    struct tr_entry *entry = source->entry;
    if (entry->subscribers != NULL) {
        fill_source(source, entry->name, entry->name_len, &copy, name);
        offer(engine, entry, &copy);
    }
}

static void discovered(struct um_tr_engine *engine, struct tr_entry *entry, const struct um_lbmr_tir *tir,
                       const struct tr_source *seen)
{
    char name[UM_LBMR_NAME_MAX + 1];
    struct um_tr_source copy;
    bool keep = (engine->config.cache && !cache_full(engine, entry)) || (entry != NULL && entry->subscribers != NULL);
    struct tr_source *source = NULL;
    if (keep) {
        entry = entry != NULL ? entry : entry_create(engine, tir->name, tir->name_len);
        source = entry == NULL ? NULL : um_malloc(sizeof *source);
        if (source == NULL) {
            return; /* out of memory: the next advertisement is another chance */
        }
        *source = *seen;
        if (source_link(engine, entry, source) != 0) {
            um_free(source);
            entry_release_if_empty(engine, entry);
            return;
        }
    }
    fill_source(seen, tir->name, tir->name_len, &copy, name);
    if (engine->events.on_any_source != NULL) {
        engine->events.on_any_source(engine->user, &copy);
    }
    if (source != NULL && !source->dead) {
        offer(engine, entry, &copy);
        tr_match_patterns(engine, name);
    }
}

void tr_take_tir(struct um_tr_engine *engine, const struct um_lbmr_tir *tir, uint32_t from_ip)
{
    struct tr_source seen;
    char shown[UM_LBMR_NAME_MAX + 1];
    struct tr_entry *entry = tr_entry_find(engine, tir->name, tir->name_len);
    if (ignorable(engine, tir) || (entry == NULL && !engine->config.cache && engine->events.on_any_source == NULL)) {
        return;
    }
    memset(&seen, 0, sizeof seen);
    read_info(tir, from_ip, &seen.info);
    if (unreachable(&seen.info)) {
        engine->stats.dropped_malformed++;
        um_log_limited(&engine->source_log, engine->now_ns, LOG_INTERVAL_NS, UM_LOG_WARNING, "Resolver-13",
                       "advertisement of topic [%s] with an address or port that no source can have: dropped",
                       tr_printable(tir->name, shown));
        return;
    }
    read_options(engine, tir, from_ip, &seen);
    struct tr_source *source = entry == NULL ? NULL : source_find(engine, entry, &seen.info);
    if (seen.cost < 0) {
        if (source != NULL) {
            withdrawn(engine, entry, source);
        }
    } else if (source != NULL) {
        refreshed(engine, source, &seen);
    } else {
        discovered(engine, entry, tir, &seen);
    }
}

void um_tr_engine_source_ended(struct um_tr_engine *engine, uint64_t now_ns, const char *topic,
                               const lbm_transport_source_info_t *info)
{
    tr_enter(engine, now_ns);
    lbm_transport_source_info_t key = *info;
    key.transport_idx = 0;
    struct tr_entry *entry = tr_entry_find(engine, topic, strlen(topic));
    struct tr_source *source = entry == NULL ? NULL : source_find(engine, entry, &key);
    if (source != NULL) {
        source_unlink(engine, source);
        requery(engine, entry);
        entry_release_if_empty(engine, entry);
    }
    tr_leave(engine);
}

/* ---- interest and queries ---- */

bool tr_query_wanted(const struct tr_entry *entry)
{
    for (const struct um_tr_topic *topic = entry->subscribers; topic != NULL; topic = topic->next) {
        if (entry->source_count < topic->sources_threshold) {
            return true;
        }
    }
    return false;
}

void tr_query_sent(struct um_tr_engine *engine, struct tr_entry *entry, bool really)
{
    if (!really) {
        return;
    }
    entry->queried = true;
    if (entry->source_count == 0) {
        entry->unanswered++;
        tell_no_source(engine, entry, false);
    }
}

/* Joins what the cache already knows. */
static void offer_known(struct um_tr_engine *engine, struct tr_entry *entry, struct um_tr_topic *topic)
{
    char name[UM_LBMR_NAME_MAX + 1];
    struct um_tr_source copy;
    struct tr_source *next;
    for (struct tr_source *source = entry->sources; source != NULL; source = next) {
        if (!source->dead && !topic->dead && engine->events.on_source != NULL) {
            fill_source(source, entry->name, entry->name_len, &copy, name);
            engine->events.on_source(topic->user, &copy);
        }
        next = source->next;
    }
}

static struct um_tr_topic *new_topic(struct um_tr_engine *engine, const char *name, size_t len,
                                     const struct um_tr_query_options *options)
{
    const struct um_tr_timing *timing = tr_intern_timing(engine, &options->timing);
    struct um_tr_topic *topic = timing == NULL ? NULL : um_calloc(1, sizeof *topic);
    if (topic == NULL) {
        um_error_nomem("topic interest", sizeof *topic);
        return NULL;
    }
    struct tr_entry *entry = tr_entry_find(engine, name, len);
    entry = entry != NULL ? entry : entry_create(engine, name, len);
    if (entry == NULL) {
        um_error_nomem("topic cache entry", sizeof *entry + len);
        um_free(topic);
        return NULL;
    }
    topic->entry = entry;
    if (entry->subscribers == NULL) {
        entry->task.timing = timing;
        entry->unanswered = 0;
        engine->subscribed_topics++;
        um_tr_schedule_start(&entry->task.schedule, timing, engine->now_ns);
        tr_task_place(engine, &entry->task);
    }
    topic->next = entry->subscribers;
    entry->subscribers = topic;
    return topic;
}

struct um_tr_topic *um_tr_engine_subscribe(struct um_tr_engine *engine, uint64_t now_ns, const char *topic,
                                           const struct um_tr_query_options *options, bool internal, void *topic_user)
{
    size_t len = strlen(topic);
    if (len == 0 || len > UM_LBMR_NAME_MAX) {
        um_error(UM_EINVAL, "Resolver-3", "topic of %zu characters: must have 1..%d", len, UM_LBMR_NAME_MAX);
        return NULL;
    }
    tr_enter(engine, now_ns);
    struct um_tr_topic *added = new_topic(engine, topic, len, options);
    if (added != NULL) {
        added->user = topic_user;
        added->internal = internal;
        added->sources_threshold = options->sources_threshold;
        added->no_source_threshold = options->no_source_threshold;
        update_unresolved(engine, added->entry);
        offer_known(engine, added->entry, added);
    }
    tr_leave(engine);
    return added;
}

void um_tr_engine_unsubscribe(struct um_tr_engine *engine, uint64_t now_ns, struct um_tr_topic *topic)
{
    tr_enter(engine, now_ns);
    struct tr_entry *entry = topic->entry;
    struct um_tr_topic **at = &entry->subscribers;
    while (*at != topic) {
        at = &(*at)->next;
    }
    *at = topic->next;
    topic->dead = true;
    tr_bury(engine, &topic->grave);
    if (entry->subscribers == NULL) {
        tr_task_idle(&entry->task);
        entry->task.schedule.due_ns = UM_NEVER;
        entry->task.schedule.phase = UM_TR_QUIESCENT;
        engine->subscribed_topics--;
        if (entry->queried) {
            tr_tm_queue(engine, UM_LBMR_TM_LEAVE, 0, entry->name, entry->name_len);
            entry->queried = false;
        }
        while (!engine->config.cache && entry->sources != NULL) {
            source_unlink(engine, entry->sources);
        }
    }
    update_unresolved(engine, entry);
    entry_release_if_empty(engine, entry);
    tr_leave(engine);
}

void um_tr_topic_set_thresholds(struct um_tr_topic *topic, uint64_t sources_threshold, uint64_t no_source_threshold)
{
    topic->sources_threshold = sources_threshold;
    topic->no_source_threshold = no_source_threshold;
}

unsigned um_tr_topic_sources(const struct um_tr_topic *topic)
{
    return topic->entry->source_count;
}

static void free_entry(struct tr_entry *entry)
{
    while (entry->sources != NULL) {
        struct tr_source *source = entry->sources;
        entry->sources = source->next;
        um_free(source);
    }
    while (entry->subscribers != NULL) {
        struct um_tr_topic *topic = entry->subscribers;
        entry->subscribers = topic->next;
        um_free(topic);
    }
    um_free(entry);
}

void tr_receiver_side_free(struct um_tr_engine *engine)
{
    for (size_t i = 0; i < engine->entries.capacity; i++) {
        struct um_tr_link *link = engine->entries.buckets[i];
        while (link != NULL) {
            struct um_tr_link *next = link->next;
            free_entry(UM_CONTAINER_OF(link, struct tr_entry, link));
            link = next;
        }
    }
    um_tr_table_free(&engine->entries);
    um_tr_table_free(&engine->source_keys);
}
