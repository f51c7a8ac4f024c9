/* How long advertised sources are remembered, and how many. A source that the
 * core receives from, or that a list in connection has, is kept; of the others,
 * the one not heard of for the longest time makes room: in its topic, among those
 * at its address, in the whole cache. Part of the cache; its thread. */
#include "resolver/um_tr_cache_private.h"

#define TICK_NS (60 * UM_NS_PER_SEC)        /* how often the old ones are looked for */
#define BACKLOG_TICK_NS (10 * UM_NS_PER_MS) /* while there are more than one run takes */
#define RUN_MAX 2000u
#define EXPIRY_S (24u * 3600) /* quiescent sources say nothing, and may live */
#define EXPIRY_CROWDED_S 600u
#define CROWDED_SHARE 10u /* crowded is a cache with more than this part of what it may hold */
#define HOST_SHARE 2u     /* the part that the sources at one address may take */
#define TOPIC_MAX 4096u   /* sources of one topic that are not in use */

static uint32_t now_s(const struct um_tr_cache *cache)
{
    return (uint32_t)((cache->now_ns - cache->start_ns) / UM_NS_PER_SEC);
}

static struct trc_source *source_of(struct um_list *node)
{
    return UM_CONTAINER_OF(node, struct trc_source, heard);
}

void um_tr_cache_some_sources(const struct um_tr_cache *cache, uint64_t now_ns, struct um_table_scan *scan,
                              void (*visit)(void *arg, const struct um_tr_source *source, bool kept, uint64_t age_ns),
                              void *arg)
{
    struct um_table_link *some[UM_TR_CACHE_STEP];
    size_t count = um_table_scan(&cache->source_keys, scan, some, UM_TR_CACHE_STEP);
    for (size_t i = 0; i < count; i++) {
        const struct trc_source *source = UM_CONTAINER_OF(some[i], struct trc_source, link);
        struct um_tr_source told;
        uint64_t heard_ns = cache->start_ns + source->link.word * UM_NS_PER_SEC;
        trc_source_tell(source, &told);
        visit(arg, &told, !source->ageing, source->ageing && now_ns > heard_ns ? now_ns - heard_ns : 0);
    }
}

/* NULL: out of memory. */
static struct trc_host *host_get(struct um_tr_cache *cache, uint32_t ip)
{
    struct trc_host *host = um_u32_map_get(&cache->hosts, ip);
    if (host != NULL) {
        return host;
    }
    host = um_calloc(1, sizeof *host);
    if (host == NULL) {
        return NULL;
    }
    host->ip = ip;
    um_list_init(&host->heard);
    if (um_u32_map_put(&cache->hosts, ip, host) != 0) {
        um_free(host);
        return NULL;
    }
    return host;
}

/* Without memory for its address the source grows old all the same, only uncounted there. */
void trc_age_add(struct um_tr_cache *cache, struct trc_source *source)
{
    struct trc_host *host = host_get(cache, source->src_ip);
    source->ageing = true;
    source->link.word = now_s(cache);
    um_list_push_back(&cache->heard, &source->heard);
    if (host != NULL) {
        host->count++;
        um_list_push_back(&host->heard, &source->heard_of_host);
    }
    source->entry->ageing_count++;
    if (cache->ageing_due_ns == UM_NEVER) {
        cache->ageing_due_ns = cache->now_ns + TICK_NS;
    }
}

void trc_age_heard(struct um_tr_cache *cache, struct trc_source *source)
{
    source->link.word = now_s(cache);
    um_list_remove(&source->heard);
    um_list_push_back(&cache->heard, &source->heard);
    if (!um_list_empty(&source->heard_of_host)) {
        struct trc_host *host = um_u32_map_get(&cache->hosts, source->src_ip);
        um_list_remove(&source->heard_of_host);
        um_list_push_back(&host->heard, &source->heard_of_host);
    }
}

void trc_age_remove(struct um_tr_cache *cache, struct trc_source *source)
{
    source->ageing = false;
    source->entry->ageing_count--;
    um_list_remove(&source->heard);
    if (um_list_empty(&source->heard_of_host)) {
        return; /* not counted at its address */
    }
    um_list_remove(&source->heard_of_host);
    struct trc_host *host = um_u32_map_get(&cache->hosts, source->src_ip);
    if (--host->count == 0) {
        um_u32_map_remove(&cache->hosts, host->ip);
        um_free(host);
    }
}

static void log_full(struct um_tr_cache *cache)
{
    um_log_limited(um_log_of_all(), cache->now_ns, UM_LOG_WARNING, "Resolver-12",
                   "resolver cache: full with %zu sources, or one topic or address has more than its share: those not "
                   "heard of for the longest time are forgotten (%llu so far); are advertisements forged?",
                   cache->source_keys.count, (unsigned long long)cache->stats.cache_refused);
}

bool trc_age_make_room(struct um_tr_cache *cache, const struct um_tr_entry *entry, uint32_t ip, bool listed)
{
    size_t most = cache->config.max;
    const struct trc_host *host = um_u32_map_get(&cache->hosts, ip);
    struct um_list *oldest = NULL;
    if (!listed && entry != NULL && entry->ageing_count >= TOPIC_MAX) { /* those heard of lately come first */
        oldest = &UM_CONTAINER_OF(entry->ageing.prev, struct trc_source, node)->heard;
    } else if (!listed && host != NULL && host->count >= most / HOST_SHARE) {
        oldest = &UM_CONTAINER_OF(um_list_first(&host->heard), struct trc_source, heard_of_host)->heard;
    } else if (cache->source_keys.count >= most) {
        oldest = um_list_first(&cache->heard);
        if (oldest == NULL && (entry == NULL || entry->subscribers == NULL)) { /* all are kept */
            cache->stats.cache_refused++;
            log_full(cache);
            return false;
        }
    }
    if (oldest != NULL) {
        cache->stats.cache_refused++;
        log_full(cache);
        trc_source_forget(cache, source_of(oldest));
    }
    return true;
}

void trc_age_run(struct um_tr_cache *cache)
{
    if (cache->ageing_due_ns > cache->now_ns) {
        return;
    }
    struct um_list *node;
    for (unsigned i = 0; (node = um_list_first(&cache->heard)) != NULL; i++) {
        bool crowded = cache->source_keys.count > cache->config.max / CROWDED_SHARE;
        struct trc_source *source = source_of(node);
        if (now_s(cache) - source->link.word < (crowded ? EXPIRY_CROWDED_S : EXPIRY_S)) {
            break;
        }
        if (i == RUN_MAX) {
            cache->ageing_due_ns = cache->now_ns + BACKLOG_TICK_NS;
            return;
        }
        cache->stats.cache_expired++;
        trc_source_forget(cache, source);
    }
    cache->ageing_due_ns = um_list_empty(&cache->heard) ? UM_NEVER : cache->now_ns + TICK_NS;
}

void trc_age_free(struct um_tr_cache *cache)
{
    size_t cursor = 0;
    uint32_t ip;
    void *host;
    while (um_u32_map_next(&cache->hosts, &cursor, &ip, &host)) {
        um_free(host);
    }
    um_u32_map_clear(&cache->hosts);
}
