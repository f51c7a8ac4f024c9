/* A hash table with a list by age. Objects are told apart by kind, sender, process and source string. */
#include "ex_mon_cache.h"

#include <stdlib.h>
#include <string.h>

struct ex_mon_cache {
    struct ex_mon_cached **buckets;
    struct ex_mon_cached *oldest, *newest;
    size_t most, count;
};

static const char *source_of(const struct ex_mon_cached *cached)
{
    return cached->type == LBMMON_PACKET_TYPE_SOURCE ? cached->stats.source.source : cached->stats.receiver.source;
}

static size_t mix(size_t hash, const void *bytes, size_t length)
{
    for (const unsigned char *p = bytes; length > 0; p++, length--) {
        hash = (hash ^ *p) * 1099511628211u;
    }
    return hash;
}

static size_t bucket_of(const struct ex_mon_cache *cache, int type, const struct ex_mon_about *about,
                        const char *source)
{
    size_t hash = mix(14695981039346656037u, &type, sizeof(type));
    hash = mix(hash, &about->ipv4, sizeof(about->ipv4));
    hash = mix(hash, &about->process, sizeof(about->process));
    hash = mix(hash, &about->object, sizeof(about->object));
    hash = mix(hash, about->application, strlen(about->application));
    return mix(hash, source, strlen(source)) % cache->most;
}

static bool is_same(const struct ex_mon_cached *cached, int type, const struct ex_mon_about *about, const char *source)
{
    return cached->type == type && cached->about.ipv4 == about->ipv4 && cached->about.process == about->process &&
           cached->about.object == about->object && strcmp(cached->about.application, about->application) == 0 &&
           strcmp(source_of(cached), source) == 0;
}

struct ex_mon_cache *ex_mon_cache_create(size_t most)
{
    struct ex_mon_cache *cache = calloc(1, sizeof(*cache));
    if (cache == NULL) {
        return NULL;
    }
    cache->most = most > 0 ? most : 1;
    cache->buckets = calloc(cache->most, sizeof(struct ex_mon_cached *));
    if (cache->buckets == NULL) {
        free(cache);
        return NULL;
    }
    return cache;
}

static void leave_ages(struct ex_mon_cache *cache, struct ex_mon_cached *cached)
{
    *(cached->older != NULL ? &cached->older->newer : &cache->oldest) = cached->newer;
    *(cached->newer != NULL ? &cached->newer->older : &cache->newest) = cached->older;
}

static void become_newest(struct ex_mon_cache *cache, struct ex_mon_cached *cached)
{
    cached->older = cache->newest;
    cached->newer = NULL;
    *(cache->newest != NULL ? &cache->newest->newer : &cache->oldest) = cached;
    cache->newest = cached;
}

static void discard(struct ex_mon_cache *cache, struct ex_mon_cached *cached)
{
    struct ex_mon_cached **at = &cache->buckets[bucket_of(cache, cached->type, &cached->about, source_of(cached))];
    while (*at != cached) {
        at = &(*at)->next;
    }
    *at = cached->next;
    leave_ages(cache, cached);
    cache->count--;
    free(cached);
}

void ex_mon_cache_delete(struct ex_mon_cache *cache)
{
    while (cache->oldest != NULL) {
        discard(cache, cache->oldest);
    }
    free(cache->buckets);
    free(cache);
}

size_t ex_mon_cache_count(const struct ex_mon_cache *cache)
{
    return cache->count;
}

static void take_over(struct ex_mon_cached *cached, const struct ex_mon_record *record, double now)
{
    cached->type = record->type;
    cached->about = record->about;
    cached->seen = now;
    if (record->type == LBMMON_PACKET_TYPE_SOURCE) {
        cached->stats.source = *record->stats.source;
    } else {
        cached->stats.receiver = *record->stats.receiver;
    }
}

int ex_mon_cache_put(struct ex_mon_cache *cache, const struct ex_mon_record *record, double now)
{
    if (record->type != LBMMON_PACKET_TYPE_SOURCE && record->type != LBMMON_PACKET_TYPE_RECEIVER) {
        return -1;
    }
    size_t bucket = bucket_of(cache, record->type, &record->about, ex_mon_source(record));
    struct ex_mon_cached *cached = cache->buckets[bucket];
    while (cached != NULL && !is_same(cached, record->type, &record->about, ex_mon_source(record))) {
        cached = cached->next;
    }
    if (cached != NULL) {
        leave_ages(cache, cached);
        take_over(cached, record, now);
        become_newest(cache, cached);
        return 0;
    }
    if (cache->count == cache->most) {
        discard(cache, cache->oldest);
    }
    cached = calloc(1, sizeof(*cached));
    if (cached == NULL) {
        return -1;
    }
    take_over(cached, record, now);
    cached->next = cache->buckets[bucket];
    cache->buckets[bucket] = cached;
    become_newest(cache, cached);
    cache->count++;
    return 1;
}

size_t ex_mon_cache_expire(struct ex_mon_cache *cache, double before)
{
    size_t count = 0;
    while (cache->oldest != NULL && cache->oldest->seen < before) {
        discard(cache, cache->oldest);
        count++;
    }
    return count;
}

const struct ex_mon_cached *ex_mon_cache_next(const struct ex_mon_cache *cache, const struct ex_mon_cached *after)
{
    return after != NULL ? after->newer : cache->oldest;
}

struct ex_mon_record ex_mon_cache_record(const struct ex_mon_cached *cached)
{
    return (struct ex_mon_record){
        .type = cached->type, .about = cached->about, .stats.any = &cached->stats, .count = 1};
}
