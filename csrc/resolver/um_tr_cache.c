/* The cache of topic resolution: its life, topics by name, time. See
 * um_tr_cache.h; sources, interest, patterns, services and ageing have files of
 * their own. */
#include "resolver/um_tr_cache_private.h"

/* ---- nesting and deferred frees ---- */

uint64_t um_tr_cache_due(const struct um_tr_cache *cache)
{
    uint64_t due_ns = trc_services_due(cache);
    due_ns = cache->walk_due_ns < due_ns ? cache->walk_due_ns : due_ns;
    return cache->ageing_due_ns < due_ns ? cache->ageing_due_ns : due_ns;
}

uint64_t um_tr_cache_now(const struct um_tr_cache *cache)
{
    return cache->now_ns;
}

void um_tr_cache_enter(struct um_tr_cache *cache, uint64_t now_ns)
{
    cache->depth++;
    cache->now_ns = now_ns > cache->now_ns ? now_ns : cache->now_ns;
}

void um_tr_cache_leave(struct um_tr_cache *cache)
{
    if (--cache->depth > 0) {
        return;
    }
    while (cache->graves != NULL) {
        struct trc_grave *grave = cache->graves;
        cache->graves = grave->next;
        um_free(grave);
    }
    uint64_t due_ns = um_tr_cache_due(cache);
    if (due_ns != cache->told_due_ns) {
        cache->told_due_ns = due_ns;
        cache->owner.set_timer(cache->owner.owner, due_ns);
    }
}

void trc_bury(struct um_tr_cache *cache, struct trc_grave *grave)
{
    grave->next = cache->graves;
    cache->graves = grave;
}

void um_tr_cache_on_timer(struct um_tr_cache *cache, uint64_t now_ns)
{
    um_tr_cache_enter(cache, now_ns);
    trc_age_run(cache);
    trc_services_run(cache);
    trc_patterns_run(cache);
    um_tr_cache_leave(cache);
}

/* ---- entries ---- */

struct um_tr_entry *um_tr_cache_entry(const struct um_tr_cache *cache, const char *topic, size_t len)
{
    struct um_table_link *link = um_table_find(&cache->entries, um_hash_bytes(topic, len));
    for (; link != NULL; link = um_table_find_next(link)) {
        struct um_tr_entry *entry = UM_CONTAINER_OF(link, struct um_tr_entry, link);
        if (entry->name_len == len && memcmp(entry->name, topic, len) == 0) {
            return entry;
        }
    }
    return NULL;
}

struct um_tr_entry *trc_entry_get(struct um_tr_cache *cache, const char *topic, size_t len)
{
    struct um_tr_entry *entry = um_tr_cache_entry(cache, topic, len);
    if (entry != NULL) {
        return entry;
    }
    entry = um_calloc(1, offsetof(struct um_tr_entry, name) + len + 1);
    if (entry == NULL) {
        return NULL;
    }
    memcpy(entry->name, topic, len);
    entry->name_len = (uint16_t)len;
    um_list_init(&entry->ageing);
    um_list_init(&entry->kept);
    if (um_table_add(&cache->entries, &entry->link, um_hash_bytes(topic, len)) != 0) {
        um_free(entry);
        return NULL;
    }
    return entry;
}

/* An entry without sources and interest says nothing. */
void trc_entry_release_if_empty(struct um_tr_cache *cache, struct um_tr_entry *entry)
{
    if (entry->dead || entry->subscribers != NULL || entry->source_count != 0) {
        return;
    }
    entry->dead = true;
    um_table_remove(&cache->entries, &entry->link);
    trc_bury(cache, &entry->grave);
}

static bool receiving(const struct um_tr_entry *entry)
{
    for (const struct um_tr_topic *topic = entry->subscribers; topic != NULL; topic = topic->next) {
        if (topic->receiving) {
            return true;
        }
    }
    return false;
}

void trc_update_unresolved(struct um_tr_cache *cache, struct um_tr_entry *entry)
{
    bool unresolved = entry->source_count == 0 && receiving(entry);
    if (unresolved != entry->counted_unresolved) {
        entry->counted_unresolved = unresolved;
        cache->unresolved += unresolved ? 1 : (size_t)-1;
    }
}

const char *um_tr_entry_name(const struct um_tr_entry *entry, size_t *len)
{
    *len = entry->name_len;
    return entry->name;
}

void *um_tr_entry_schedule(const struct um_tr_entry *entry)
{
    return entry->schedule;
}

void um_tr_entry_set_schedule(struct um_tr_entry *entry, void *schedule)
{
    entry->schedule = schedule;
}

/* ---- life and figures ---- */

struct um_tr_cache *um_tr_cache_create(const struct um_tr_cache_config *config, const struct um_tr_cache_owner *owner,
                                       const struct um_resolver_events *events, void *user, uint64_t now_ns)
{
    struct um_tr_cache *cache = um_calloc(1, sizeof *cache);
    if (cache == NULL) {
        um_error_nomem("cache of topic resolution", sizeof *cache);
        return NULL;
    }
    cache->config = *config;
    if (cache->config.max == 0) {
        cache->config.max = UM_TR_CACHE_MAX;
    }
    cache->owner = *owner;
    cache->events = *events;
    cache->user = user;
    cache->start_ns = cache->now_ns = now_ns;
    cache->ageing_due_ns = cache->told_due_ns = cache->walk_due_ns = UM_NEVER;
    um_list_init(&cache->heard);
    um_list_init(&cache->patterns);
    um_list_init(&cache->walks);
    um_u32_map_init(&cache->hosts);
    um_map_init(&cache->wanted, NULL);
    return cache;
}

static void free_sources(struct um_list *list)
{
    struct um_list *it, *next;
    UM_LIST_FOREACH_SAFE(it, next, list)
    {
        struct trc_source *source = UM_CONTAINER_OF(it, struct trc_source, node);
        um_tr_otid_free(&source->otid, source->otid_form);
        um_free(source);
    }
}

static void free_entry(struct um_tr_entry *entry)
{
    free_sources(&entry->ageing);
    free_sources(&entry->kept);
    while (entry->subscribers != NULL) {
        struct um_tr_topic *topic = entry->subscribers;
        entry->subscribers = topic->next;
        um_free(topic);
    }
    um_free(entry);
}

void um_tr_cache_destroy(struct um_tr_cache *cache)
{
    if (cache == NULL) {
        return;
    }
    for (size_t i = 0; i < cache->entries.capacity; i++) {
        struct um_table_link *link = cache->entries.buckets[i];
        while (link != NULL) {
            struct um_table_link *next = link->next;
            free_entry(UM_CONTAINER_OF(link, struct um_tr_entry, link));
            link = next;
        }
    }
    trc_patterns_free(cache);
    trc_services_free(cache);
    trc_age_free(cache);
    um_table_free(&cache->entries);
    um_table_free(&cache->source_keys);
    um_free(cache);
}

size_t um_tr_cache_wanted_topics(const struct um_tr_cache *cache)
{
    return cache->wanted_topics;
}

void um_tr_cache_get_stats(const struct um_tr_cache *cache, struct um_tr_cache_stats *out)
{
    *out = cache->stats;
    out->topics = cache->entries.count;
    out->unresolved_topics = cache->unresolved;
}

void um_tr_cache_reset_stats(struct um_tr_cache *cache)
{
    cache->stats = (struct um_tr_cache_stats){0};
}

const char *um_tr_printable(const char *name, char out[256])
{
    size_t i = 0;
    for (; name[i] != '\0' && i < 255; i++) {
        out[i] = (unsigned char)name[i] < 0x20 || (unsigned char)name[i] >= 0x7f ? '?' : name[i];
    }
    out[i] = '\0';
    return out;
}
