/* What services tell the cache of topic resolution, and what the core says of the
 * sources it receives from: found, again, withdrawn, used, ended. Part of the
 * cache; its thread. */
#include "resolver/um_tr_cache_private.h"

static uint8_t lists_that_have(const struct um_tr_cache *cache, const struct trc_source *source)
{
    return source->tellers & cache->lists;
}

/* One source that services describe with different addresses: its identity tells. */
static struct trc_source *find_identity(const struct um_list *sources, const struct um_tr_source *told)
{
    struct um_list *it;
    UM_LIST_FOREACH(it, sources)
    {
        struct trc_source *source = UM_CONTAINER_OF(it, struct trc_source, node);
        struct um_tr_source known;
        if (source->otid_form != UM_TR_OTID_NONE) {
            trc_source_tell(source, &known);
            if (memcmp(known.otid, told->otid, sizeof known.otid) == 0) {
                return source;
            }
        }
    }
    return NULL;
}

/* A stranger has the sources in use or on a list searched, which he cannot multiply; a list has all of them searched.
 */
static struct trc_source *find_told(const struct um_tr_service *service, const struct um_tr_entry *entry,
                                    const struct um_tr_source *told)
{
    struct um_tr_cache *cache = service->cache;
    struct trc_source *source = trc_source_find(cache, entry, &told->info);
    if (source != NULL || !told->has_otid || cache->lists == 0) {
        return source;
    }
    source = find_identity(&entry->kept, told);
    return source != NULL || service->kind == UM_TR_HEARSAY ? source : find_identity(&entry->ageing, told);
}

void trc_withdraw(struct um_tr_cache *cache, struct trc_source *source)
{
    struct um_tr_entry *entry = source->entry;
    struct um_tr_source copy;
    trc_source_tell(source, &copy);
    copy.cost = -1;
    trc_source_unlink(cache, source);
    trc_tell_gone(cache, entry, &copy);
    if (!entry->dead) {
        trc_source_lost(cache, entry);
        trc_entry_release_if_empty(cache, entry);
    }
}

static bool contradicts(struct um_tr_cache *cache, const struct trc_source *source, const struct um_tr_source *told)
{
    struct um_tr_source known;
    if (source->otid_form == UM_TR_OTID_NONE || !told->has_otid) {
        return false;
    }
    trc_source_tell(source, &known);
    if (memcmp(known.otid, told->otid, sizeof known.otid) == 0) {
        return false;
    }
    um_log_limited(um_log_of_ip(told->told_by), cache->now_ns, UM_LOG_WARNING, "Core-6190-1",
                   "LBMR TIR contained inconsistent transport information.");
    return true;
}

/* A source known before: newer options replace the old ones; another OTID on the same session and index is an error. */
static enum um_tr_taken again(struct um_tr_service *service, struct trc_source *source, const struct um_tr_source *told)
{
    struct um_tr_cache *cache = service->cache;
    struct um_tr_entry *entry = source->entry;
    struct um_tr_source copy;
    if (contradicts(cache, source, told)) {
        return UM_TR_CONTRADICTS;
    }
    source->tellers |= service->bit;
    source->stale &= (uint8_t)~service->bit;
    if (service->kind == UM_TR_LIST || lists_that_have(cache, source) == 0) {
        source->told_by = told->told_by;
    }
    trc_source_update(source, told);
    trc_source_file(cache, source);
    if (entry->subscribers == NULL && !entry->match_due) {
        return UM_TR_TAKEN_KNOWN;
    }
    trc_source_tell(source, &copy);
    trc_offer(cache, entry, &copy);
    if (!entry->dead && entry->match_due) {
        entry->match_due = false;
        trc_match_patterns(cache, entry->name);
    }
    return UM_TR_TAKEN_KNOWN;
}

/* NULL: it cannot be remembered. */
static struct trc_source *remember(struct um_tr_service *service, struct um_tr_entry *entry,
                                   const struct um_tr_source *told)
{
    struct um_tr_cache *cache = service->cache;
    bool wanted = cache->config.remember || (entry != NULL && entry->subscribers != NULL);
    if (!wanted || !trc_age_make_room(cache, entry, told->info.src_ip, service->kind == UM_TR_LIST)) {
        return NULL;
    }
    entry = trc_entry_get(cache, told->topic, strlen(told->topic)); /* making room may have emptied it */
    struct trc_source *source = entry == NULL ? NULL : trc_source_new(cache, entry, told, service->bit);
    if (source == NULL && entry != NULL) {
        trc_entry_release_if_empty(cache, entry);
    }
    return source;
}

static enum um_tr_taken discovered(struct um_tr_service *service, struct um_tr_entry *entry,
                                   const struct um_tr_source *told)
{
    struct um_tr_cache *cache = service->cache;
    struct trc_source *source = remember(service, entry, told);
    if (cache->events.on_any_source != NULL) {
        cache->events.on_any_source(cache->user, told);
    }
    if (source != NULL && !source->dead) {
        trc_offer(cache, source->entry, told);
    }
    if (cache->config.remember) {
        trc_match_patterns(cache, told->topic); /* of what is not remembered, too: its receiver asks for it */
    }
    return source != NULL ? UM_TR_TAKEN_NEW : UM_TR_NOT_KEPT;
}

enum um_tr_taken um_tr_cache_found(struct um_tr_service *service, uint64_t now_ns, const struct um_tr_source *told)
{
    struct um_tr_cache *cache = service->cache;
    um_tr_cache_enter(cache, now_ns);
    enum um_tr_taken taken = UM_TR_NOT_KEPT;
    struct um_tr_entry *entry = um_tr_cache_entry(cache, told->topic, strlen(told->topic));
    struct trc_source *source = entry == NULL ? NULL : find_told(service, entry, told);
    if (source != NULL) {
        taken = again(service, source, told);
    } else if (entry != NULL || cache->config.remember || cache->events.on_any_source != NULL) {
        taken = discovered(service, entry, told);
    }
    um_tr_cache_leave(cache);
    return taken;
}

/* Another list that has it, in connection, keeps it. What datagrams say of it does not. */
static bool listed_elsewhere(struct um_tr_service *service, struct trc_source *source)
{
    struct um_tr_cache *cache = service->cache;
    if (service->kind == UM_TR_HEARSAY) {
        return false;
    }
    source->tellers &= (uint8_t)~service->bit;
    source->stale &= (uint8_t)~service->bit;
    return (source->tellers & cache->present) != 0;
}

void um_tr_cache_gone(struct um_tr_service *service, uint64_t now_ns, const struct um_tr_source *told)
{
    struct um_tr_cache *cache = service->cache;
    um_tr_cache_enter(cache, now_ns);
    struct um_tr_entry *entry = um_tr_cache_entry(cache, told->topic, strlen(told->topic));
    struct trc_source *source = entry == NULL ? NULL : find_told(service, entry, told);
    if (source != NULL && !listed_elsewhere(service, source)) {
        trc_withdraw(cache, source);
    } else if (source == NULL &&
               entry != NULL) { /* a join that failed took it from the cache: is to be tried no more */
        struct um_tr_source copy = *told;
        copy.cost = -1;
        trc_tell_gone(cache, entry, &copy);
    }
    um_tr_cache_leave(cache);
}

/* ---- what the core says ---- */

static struct trc_source *source_named(const struct um_tr_cache *cache, const char *topic,
                                       const lbm_transport_source_info_t *info)
{
    struct um_tr_entry *entry = um_tr_cache_entry(cache, topic, strlen(topic));
    return entry == NULL ? NULL : trc_source_find(cache, entry, info);
}

bool um_tr_cache_source_facts(const struct um_tr_cache *cache, const char *topic,
                              const lbm_transport_source_info_t *info, struct um_tr_source *out)
{
    const struct trc_source *source = source_named(cache, topic, info);
    if (source != NULL) {
        trc_source_tell(source, out);
    }
    return source != NULL;
}

void um_tr_cache_source_used(struct um_tr_cache *cache, uint64_t now_ns, const char *topic,
                             const lbm_transport_source_info_t *info)
{
    um_tr_cache_enter(cache, now_ns);
    struct trc_source *source = source_named(cache, topic, info);
    if (source != NULL && !source->used && source->entry->subscribers != NULL) {
        source->used = true;
        trc_source_file(cache, source);
    }
    um_tr_cache_leave(cache);
}

void um_tr_cache_source_ended(struct um_tr_cache *cache, uint64_t now_ns, const char *topic,
                              const lbm_transport_source_info_t *info)
{
    um_tr_cache_enter(cache, now_ns);
    struct trc_source *source = source_named(cache, topic, info);
    if (source != NULL) {
        struct um_tr_service *service;
        struct um_tr_source copy;
        uint8_t lists = lists_that_have(cache, source);
        trc_source_tell(source, &copy);
        trc_source_forget(cache, source);
        TRC_EACH_SERVICE(service, cache)
        {
            if ((lists & service->bit) != 0 && service->ops.source_ended != NULL) {
                service->ops.source_ended(service->user, &copy);
            }
        }
    }
    um_tr_cache_leave(cache);
}
