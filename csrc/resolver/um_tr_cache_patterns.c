/* Wildcard interest: matching the topics of the cache against patterns, and the
 * pattern texts that services ask for, each once. Part of the cache; its thread. */
#include "resolver/um_tr_cache_private.h"

static void incomplete(struct um_tr_cache *cache, struct um_tr_pattern *pattern)
{
    if (!pattern->dead && cache->events.on_pattern_incomplete != NULL) {
        cache->events.on_pattern_incomplete(pattern->user);
    }
}

enum match { NO_MATCH, MATCHED, NOT_NOW };

static enum match match_topic(struct um_tr_cache *cache, struct um_tr_pattern *pattern, const char *topic)
{
    size_t len = strlen(topic);
    if (pattern->dead || um_map_get(&pattern->matched, topic, len) != NULL || !pattern->match(pattern->user, topic)) {
        return NO_MATCH;
    }
    if (um_map_put(&pattern->matched, topic, len, pattern) != 0) {
        incomplete(cache, pattern);
        return NOT_NOW;
    }
    int rc = cache->events.on_pattern_match(pattern->user, topic);
    if (rc == 0 || pattern->dead) {
        return MATCHED;
    }
    um_map_remove(&pattern->matched, topic, len);
    if (rc < 0) {
        incomplete(cache, pattern);
        return NOT_NOW;
    }
    struct um_tr_entry *entry = um_tr_cache_entry(cache, topic, len);
    if (entry != NULL) {
        entry->match_due = true;
    }
    return NOT_NOW;
}

void trc_match_patterns(struct um_tr_cache *cache, const char *topic)
{
    struct um_list *it, *next;
    UM_LIST_FOREACH_SAFE(it, next, &cache->patterns)
    {
        match_topic(cache, UM_CONTAINER_OF(it, struct um_tr_pattern, node), topic);
    }
}

/* ---- a walk over what is known ---- */

/* A receiver and its joins cost as much as looking at some more topics. */
#define MATCH_COST 8u
#define WALK_CHUNK (UM_TR_CACHE_STEP / MATCH_COST)

/* The callbacks add and remove entries: what is looked at together is taken out of the table first. */
static size_t walk_on(struct um_tr_cache *cache, struct um_tr_pattern *pattern, size_t budget)
{
    struct um_table_link *some[WALK_CHUNK];
    size_t cost = 0;
    size_t count = um_table_scan(&cache->entries, &pattern->walk, some, WALK_CHUNK);
    for (size_t i = 0; i < count; i++) {
        struct um_tr_entry *entry = UM_CONTAINER_OF(some[i], struct um_tr_entry, link);
        bool known = !entry->dead && entry->source_count > 0;
        cost += known && match_topic(cache, pattern, entry->name) == MATCHED ? MATCH_COST : 1;
    }
    if (cost < WALK_CHUNK && !pattern->walk.done) {
        cost = WALK_CHUNK; /* most buckets were empty */
    }
    return cost < budget ? budget - cost : 0;
}

static void end_walk(struct um_tr_cache *cache, struct um_tr_pattern *pattern)
{
    bool cut = pattern->walk.cut;
    pattern->walk = (struct um_table_scan){0};
    if (!pattern->walk_again) {
        um_list_remove(&pattern->walk_node);
    }
    pattern->walk_again = false;
    if (cut) {
        incomplete(cache, pattern);
    }
}

static void walk_some(struct um_tr_cache *cache)
{
    size_t budget = UM_TR_CACHE_STEP;
    struct um_list *first;
    while (budget > 0 && (first = um_list_first(&cache->walks)) != NULL) {
        struct um_tr_pattern *pattern = UM_CONTAINER_OF(first, struct um_tr_pattern, walk_node);
        budget = walk_on(cache, pattern, budget);
        if (!pattern->dead && pattern->walk.done) {
            end_walk(cache, pattern);
        }
    }
    cache->walk_due_ns = um_list_empty(&cache->walks) ? UM_NEVER : cache->now_ns + UM_TR_CACHE_STEP_NS;
}

/* A small cache is walked through at once. */
static void start_walking(struct um_tr_cache *cache)
{
    if (cache->walk_due_ns == UM_NEVER) {
        walk_some(cache);
    }
}

void trc_patterns_run(struct um_tr_cache *cache)
{
    if (cache->walk_due_ns > cache->now_ns) {
        return;
    }
    struct um_list *first = um_list_first(&cache->walks);
    walk_some(cache);
    if (first != NULL && um_list_first(&cache->walks) == first) { /* the others, too, have their turns */
        um_list_remove(first);
        um_list_push_back(&cache->walks, first);
    }
}

/* ---- what is asked for ---- */

static void tell_unwanted(struct um_tr_cache *cache, struct um_tr_wanted *wanted, size_t services)
{
    for (size_t i = 0; i < services; i++) {
        struct um_tr_service *service = cache->services[i];
        if (service->ops.pattern_unwanted != NULL) {
            service->ops.pattern_unwanted(service->user, wanted);
        }
    }
}

static int tell_wanted(struct um_tr_cache *cache, struct um_tr_wanted *wanted, const struct um_tr_timing *asking)
{
    for (size_t i = 0; i < cache->service_count; i++) {
        struct um_tr_service *service = cache->services[i];
        if (service->ops.pattern_wanted != NULL && service->ops.pattern_wanted(service->user, wanted, asking) != 0) {
            tell_unwanted(cache, wanted, i);
            return -1;
        }
    }
    return 0;
}

static struct um_tr_wanted *new_wanted(int type, const char *text, size_t len)
{
    struct um_tr_wanted *wanted = um_calloc(1, sizeof *wanted + 1 + len + 1);
    if (wanted != NULL) {
        wanted->len = len;
        wanted->key[0] = (uint8_t)type;
        memcpy(wanted->key + 1, text, len);
        wanted->text = (const char *)wanted->key + 1;
    }
    return wanted;
}

/* The one of this type and text, shared. NULL: out of memory. */
static struct um_tr_wanted *take_wanted(struct um_tr_cache *cache, const char *text, int type,
                                        const struct um_tr_timing *asking)
{
    struct um_tr_wanted *wanted = new_wanted(type, text, strlen(text));
    if (wanted == NULL) {
        return NULL;
    }
    struct um_tr_wanted *known = um_map_get(&cache->wanted, wanted->key, 1 + wanted->len);
    if (known != NULL) {
        um_free(wanted);
        known->users++;
        return known;
    }
    wanted->users = 1;
    if (um_map_put(&cache->wanted, wanted->key, 1 + wanted->len, wanted) != 0) {
        um_free(wanted);
        return NULL;
    }
    if (tell_wanted(cache, wanted, asking) != 0) {
        um_map_remove(&cache->wanted, wanted->key, 1 + wanted->len);
        um_free(wanted);
        return NULL;
    }
    return wanted;
}

static void release_wanted(struct um_tr_cache *cache, struct um_tr_wanted *wanted)
{
    if (--wanted->users == 0) {
        tell_unwanted(cache, wanted, cache->service_count);
        um_map_remove(&cache->wanted, wanted->key, 1 + wanted->len);
        um_free(wanted);
    }
}

struct um_tr_wanted *um_tr_cache_wanted(const struct um_tr_cache *cache, int type, const char *text, size_t len)
{
    uint8_t key[256];
    if (len >= sizeof key) {
        return NULL;
    }
    key[0] = (uint8_t)type;
    memcpy(key + 1, text, len);
    return um_map_get(&cache->wanted, key, 1 + len);
}

struct telling {
    struct um_tr_service *service;
    int rc;
};

static void tell_one(const void *key, size_t len, void *value, void *arg)
{
    struct telling *telling = arg;
    struct um_tr_service *service = telling->service;
    if (telling->rc == 0 && service->ops.pattern_wanted != NULL) {
        telling->rc = service->ops.pattern_wanted(service->user, value, NULL);
    }
}

int trc_tell_patterns(struct um_tr_service *service)
{
    struct telling telling = {.service = service};
    um_map_foreach(&service->cache->wanted, tell_one, &telling);
    return telling.rc;
}

/* ---- interest ---- */

struct um_tr_pattern *um_tr_cache_subscribe_pattern(struct um_tr_cache *cache, uint64_t now_ns, const char *pattern,
                                                    int pattern_type, const struct um_tr_timing *asking,
                                                    bool (*match)(void *pattern_user, const char *topic),
                                                    void *pattern_user)
{
    um_tr_cache_enter(cache, now_ns);
    struct um_tr_pattern *added = um_calloc(1, sizeof *added);
    struct um_tr_wanted *wanted = added == NULL ? NULL : take_wanted(cache, pattern, pattern_type, asking);
    if (wanted == NULL) {
        um_error_nomem("wildcard interest", sizeof *added);
        um_free(added);
        um_tr_cache_leave(cache);
        return NULL;
    }
    added->cache = cache;
    added->wanted = wanted;
    added->match = match;
    added->user = pattern_user;
    um_map_init(&added->matched, NULL);
    um_list_push_back(&cache->patterns, &added->node);
    um_list_init(&added->walk_node);
    um_list_push_back(&cache->walks, &added->walk_node);
    start_walking(cache);
    um_tr_cache_leave(cache);
    return added;
}

void um_tr_cache_unsubscribe_pattern(struct um_tr_cache *cache, uint64_t now_ns, struct um_tr_pattern *pattern)
{
    um_tr_cache_enter(cache, now_ns);
    release_wanted(cache, pattern->wanted);
    pattern->dead = true;
    um_map_clear(&pattern->matched);
    um_list_remove(&pattern->walk_node);
    /* A walk over the patterns may stand on this node: it leaves the list but keeps its successor. */
    pattern->node.prev->next = pattern->node.next;
    pattern->node.next->prev = pattern->node.prev;
    trc_bury(cache, &pattern->grave);
    um_tr_cache_leave(cache);
}

bool um_tr_cache_has_patterns(const struct um_tr_cache *cache)
{
    return !um_list_empty(&cache->patterns);
}

void um_tr_match_pattern_again(struct um_tr_pattern *pattern)
{
    struct um_tr_cache *cache = pattern->cache;
    um_tr_cache_enter(cache, cache->now_ns);
    if (um_list_empty(&pattern->walk_node)) {
        um_list_push_back(&cache->walks, &pattern->walk_node);
        start_walking(cache);
    } else {
        pattern->walk_again = true;
    }
    um_tr_cache_leave(cache);
}

void um_tr_pattern_forget(struct um_tr_pattern *pattern, const char *topic)
{
    um_map_remove(&pattern->matched, topic, strlen(topic));
    struct um_tr_entry *entry = um_tr_cache_entry(pattern->cache, topic, strlen(topic));
    if (entry != NULL && entry->source_count > 0) {
        entry->match_due = true;
    }
}

void trc_patterns_free(struct um_tr_cache *cache)
{
    struct um_list *it, *next;
    UM_LIST_FOREACH_SAFE(it, next, &cache->patterns)
    {
        struct um_tr_pattern *pattern = UM_CONTAINER_OF(it, struct um_tr_pattern, node);
        if (--pattern->wanted->users == 0) {
            um_free(pattern->wanted);
        }
        um_map_clear(&pattern->matched);
        um_free(pattern);
    }
    um_map_clear(&cache->wanted);
}
