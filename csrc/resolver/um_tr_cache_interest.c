/* Interest of the core in topics: who is offered sources, told of their end and of
 * their absence, and when a service asks again. Part of the cache; its thread. */
#include "resolver/um_tr_cache_private.h"

#define INTERNAL_NO_SOURCE_THRESHOLD 10

static uint32_t saturated(uint64_t value)
{
    return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

/* ---- notices to the core ---- */

/* Subscribers present now; those added by the callbacks learn of the source when they subscribe. */
void trc_offer(struct um_tr_cache *cache, struct um_tr_entry *entry, const struct um_tr_source *source)
{
    struct um_tr_topic *next;
    for (struct um_tr_topic *topic = entry->subscribers; topic != NULL; topic = next) {
        if (!topic->dead && topic->receiving && cache->events.on_source != NULL) {
            cache->events.on_source(topic->user, source);
        }
        next = topic->next;
    }
}

void trc_tell_gone(struct um_tr_cache *cache, struct um_tr_entry *entry, const struct um_tr_source *source)
{
    struct um_tr_topic *next;
    for (struct um_tr_topic *topic = entry->subscribers; topic != NULL; topic = next) {
        if (!topic->dead && cache->events.on_source_gone != NULL) {
            cache->events.on_source_gone(topic->user, source);
        }
        next = topic->next;
    }
}

static void notify_no_source(struct um_tr_cache *cache, struct um_tr_topic *topic, bool internal)
{
    if (cache->events.on_no_source != NULL) {
        cache->events.on_no_source(topic->user, internal);
    }
}

/* The application's threshold is for its own receivers, that of 10 queries for the linger of a wildcard's. at_once: no
 * queries exist that could be counted; then only the latter are told. */
static void tell_no_source(struct um_tr_cache *cache, struct um_tr_entry *entry, bool at_once)
{
    struct um_tr_topic *next;
    for (struct um_tr_topic *topic = entry->subscribers; topic != NULL; topic = next) {
        uint32_t threshold = topic->no_source_threshold;
        bool due = !at_once && threshold != 0 && entry->link.word >= threshold && !topic->notified;
        bool internal_due = topic->internal && (at_once || entry->link.word >= INTERNAL_NO_SOURCE_THRESHOLD);
        if (due && !topic->dead && topic->receiving) {
            topic->notified = true;
            notify_no_source(cache, topic, false);
        }
        if (internal_due && !topic->dead && !topic->internal_notified) {
            topic->internal_notified = true;
            notify_no_source(cache, topic, true);
        }
        next = topic->next;
    }
}

void trc_source_lost(struct um_tr_cache *cache, struct um_tr_entry *entry)
{
    struct um_tr_service *service;
    bool asked = false;
    if (entry->subscribers == NULL) {
        return;
    }
    TRC_EACH_SERVICE(service, cache)
    {
        asked |= service->ops.source_lost != NULL && service->ops.source_lost(service->user, entry);
    }
    if (entry->source_count == 0 && !asked) {
        tell_no_source(cache, entry, true);
    }
}

bool um_tr_cache_query_needed(const struct um_tr_entry *entry)
{
    for (const struct um_tr_topic *topic = entry->subscribers; topic != NULL; topic = topic->next) {
        if (entry->source_count < topic->sources_threshold) {
            return true;
        }
    }
    return false;
}

void um_tr_cache_query_sent(struct um_tr_cache *cache, uint64_t now_ns, struct um_tr_entry *entry)
{
    um_tr_cache_enter(cache, now_ns);
    if (entry->source_count == 0) {
        entry->link.word++;
        tell_no_source(cache, entry, false);
    }
    um_tr_cache_leave(cache);
}

/* ---- interest ---- */

static void tell_unwanted(struct um_tr_cache *cache, struct um_tr_entry *entry, size_t services)
{
    for (size_t i = 0; i < services; i++) {
        struct um_tr_service *service = cache->services[i];
        if (service->ops.topic_unwanted != NULL) {
            service->ops.topic_unwanted(service->user, entry);
        }
    }
    entry->schedule = NULL;
}

/* All services know of it, or none. */
static int tell_wanted(struct um_tr_cache *cache, struct um_tr_entry *entry, const struct um_tr_timing *asking)
{
    for (size_t i = 0; i < cache->service_count; i++) {
        struct um_tr_service *service = cache->services[i];
        if (service->ops.topic_wanted != NULL && service->ops.topic_wanted(service->user, entry, asking) != 0) {
            tell_unwanted(cache, entry, i);
            return -1;
        }
    }
    return 0;
}

static bool received(const struct um_tr_entry *entry)
{
    for (const struct um_tr_topic *topic = entry->subscribers; topic != NULL; topic = topic->next) {
        if (topic->receiving) {
            return true;
        }
    }
    return false;
}

#define OFFERED_TOGETHER 64

static void make_all_due(struct um_tr_entry *entry)
{
    struct um_list *lists[] = {&entry->ageing, &entry->kept}, *it;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        UM_LIST_FOREACH(it, lists[i])
        {
            UM_CONTAINER_OF(it, struct trc_source, node)->offer_due = true;
        }
    }
}

static size_t take_due(struct um_tr_entry *entry, struct trc_source *out[OFFERED_TOGETHER])
{
    size_t count = 0;
    struct um_list *lists[] = {&entry->ageing, &entry->kept}, *it;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        UM_LIST_FOREACH(it, lists[i])
        {
            struct trc_source *source = UM_CONTAINER_OF(it, struct trc_source, node);
            if (source->offer_due && count < OFFERED_TOGETHER) {
                source->offer_due = false;
                out[count++] = source;
            }
        }
    }
    return count;
}

/* Joins what the cache already knows. Callbacks move sources from list to list and withdraw them: some are taken out at
 * a time, and the lists looked at anew. Whoever begins another walk inside takes what was due here, so that all is
 * offered once more. */
static void offer_known(struct um_tr_cache *cache, struct um_tr_entry *entry, struct um_tr_topic *topic)
{
    struct trc_source *some[OFFERED_TOGETHER];
    uint64_t walk;
    do {
        size_t count;
        walk = ++cache->offer_walks;
        make_all_due(entry);
        while (walk == cache->offer_walks && (count = take_due(entry, some)) > 0) {
            for (size_t i = 0; i < count; i++) {
                struct um_tr_source copy;
                if (!some[i]->dead && !topic->dead && cache->events.on_source != NULL) {
                    trc_source_tell(some[i], &copy);
                    cache->events.on_source(topic->user, &copy);
                }
            }
        }
    } while (walk != cache->offer_walks && !topic->dead);
}

static struct um_tr_topic *new_topic(struct um_tr_cache *cache, const char *name, size_t len,
                                     const struct um_tr_timing *asking)
{
    struct um_tr_topic *topic = um_calloc(1, sizeof *topic);
    struct um_tr_entry *entry = topic == NULL ? NULL : trc_entry_get(cache, name, len);
    if (entry == NULL) {
        um_error_nomem("topic interest", sizeof *topic);
        um_free(topic);
        return NULL;
    }
    if (entry->subscribers == NULL) {
        if (tell_wanted(cache, entry, asking) != 0) {
            um_error_nomem("topic interest", sizeof *topic);
            trc_entry_release_if_empty(cache, entry);
            um_free(topic);
            return NULL;
        }
        entry->link.word = 0;
        cache->wanted_topics++;
    }
    topic->entry = entry;
    topic->next = entry->subscribers;
    entry->subscribers = topic;
    return topic;
}

struct um_tr_topic *um_tr_cache_lookup(struct um_tr_cache *cache, uint64_t now_ns, const char *topic,
                                       const struct um_tr_interest *interest, void *topic_user)
{
    size_t len = strlen(topic);
    if (len == 0 || len > UM_TR_NAME_MAX) {
        um_error(UM_EINVAL, "Resolver-3", "topic of %zu characters: must have 1..%d", len, UM_TR_NAME_MAX);
        return NULL;
    }
    um_tr_cache_enter(cache, now_ns);
    struct um_tr_topic *added = new_topic(cache, topic, len, interest->asking);
    if (added != NULL) {
        added->user = topic_user;
        added->sources_threshold = saturated(interest->sources_threshold);
        added->no_source_threshold = saturated(interest->no_source_threshold);
    }
    um_tr_cache_leave(cache);
    return added;
}

void um_tr_cache_receive(struct um_tr_cache *cache, uint64_t now_ns, struct um_tr_topic *topic, bool internal)
{
    um_tr_cache_enter(cache, now_ns);
    struct um_tr_entry *entry = topic->entry;
    topic->internal |= internal;
    if (!topic->receiving) {
        bool first = !received(entry);
        struct um_tr_service *service;
        topic->receiving = true;
        trc_update_unresolved(cache, entry);
        TRC_EACH_SERVICE(service, cache)
        {
            if (first && service->ops.topic_received != NULL) {
                service->ops.topic_received(service->user, entry);
            }
        }
        offer_known(cache, entry, topic);
    }
    um_tr_cache_leave(cache);
}

/* Nobody receives from the sources of this topic any more. */
static void release_sources(struct um_tr_cache *cache, struct um_tr_entry *entry)
{
    struct um_list *it, *next;
    UM_LIST_FOREACH_SAFE(it, next, &entry->kept)
    {
        struct trc_source *source = UM_CONTAINER_OF(it, struct trc_source, node);
        if (source->used) {
            source->used = false;
            trc_source_file(cache, source);
        }
    }
    if (cache->config.remember) {
        return;
    }
    struct um_list *lists[] = {&entry->ageing, &entry->kept};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        while (!um_list_empty(lists[i])) {
            trc_source_unlink(cache, UM_CONTAINER_OF(um_list_first(lists[i]), struct trc_source, node));
        }
    }
}

void um_tr_cache_unsubscribe(struct um_tr_cache *cache, uint64_t now_ns, struct um_tr_topic *topic)
{
    um_tr_cache_enter(cache, now_ns);
    struct um_tr_entry *entry = topic->entry;
    struct um_tr_topic **at = &entry->subscribers;
    while (*at != topic) {
        at = &(*at)->next;
    }
    *at = topic->next;
    topic->dead = true;
    trc_bury(cache, &topic->grave);
    if (entry->subscribers == NULL) {
        cache->wanted_topics--;
        tell_unwanted(cache, entry, cache->service_count);
        release_sources(cache, entry);
    }
    trc_update_unresolved(cache, entry);
    trc_entry_release_if_empty(cache, entry);
    um_tr_cache_leave(cache);
}

void um_tr_topic_set_thresholds(struct um_tr_topic *topic, uint64_t sources_threshold, uint64_t no_source_threshold,
                                bool internal)
{
    topic->sources_threshold = saturated(sources_threshold);
    topic->no_source_threshold = saturated(no_source_threshold);
    topic->internal = internal;
}

unsigned um_tr_topic_sources(const struct um_tr_topic *topic)
{
    return topic->entry->source_count;
}

/* ---- all of it to one service ---- */

static int tell_entry(struct um_tr_service *service, struct um_tr_entry *entry)
{
    if (entry->subscribers == NULL) {
        return 0;
    }
    if (service->ops.topic_wanted != NULL && service->ops.topic_wanted(service->user, entry, NULL) != 0) {
        return -1;
    }
    if (received(entry) && service->ops.topic_received != NULL) {
        service->ops.topic_received(service->user, entry);
    }
    return 0;
}

int um_tr_service_tell_wanted(struct um_tr_service *service, uint64_t now_ns)
{
    struct um_tr_cache *cache = service->cache;
    size_t cursor = 0;
    int rc = 0;
    um_tr_cache_enter(cache, now_ns);
    struct um_table_link *link = NULL;
    while (rc == 0 && (link = um_table_next(&cache->entries, &cursor, link)) != NULL) {
        rc = tell_entry(service, UM_CONTAINER_OF(link, struct um_tr_entry, link));
    }
    rc = rc == 0 ? trc_tell_patterns(service) : rc;
    um_tr_cache_leave(cache);
    return rc;
}
