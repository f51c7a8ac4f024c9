/* Services that feed the cache of topic resolution: which of them are in
 * connection, and what a list that came back has not told again. Part of the
 * cache; its thread. */
#include "resolver/um_tr_cache_private.h"

#define SWEEP_MAX 1000u                     /* withdrawn in one run */
#define BACKLOG_TICK_NS (10 * UM_NS_PER_MS) /* while there are more */

struct um_tr_service *um_tr_cache_add_service(struct um_tr_cache *cache, enum um_tr_service_kind kind,
                                              const struct um_tr_service_ops *ops, void *user)
{
    if (cache->service_count == UM_TR_SERVICES_MAX) {
        um_error(UM_EINVAL, "Resolver-16", "more than %d services of topic resolution", UM_TR_SERVICES_MAX);
        return NULL;
    }
    struct um_tr_service *service = um_calloc(1, sizeof *service);
    if (service == NULL) {
        um_error_nomem("service of topic resolution", sizeof *service);
        return NULL;
    }
    service->cache = cache;
    service->ops = *ops;
    service->user = user;
    service->kind = kind;
    service->sweep_due_ns = UM_NEVER;
    service->bit = (uint8_t)(1u << cache->service_count);
    if (kind == UM_TR_LIST) {
        cache->lists |= service->bit;
    }
    cache->services[cache->service_count++] = service;
    return service;
}

/* Every source that the service told, by a rule for each. No callbacks. */
static void each_source(struct um_tr_service *service, void (*fn)(struct um_tr_service *, struct trc_source *))
{
    struct um_tr_cache *cache = service->cache;
    struct um_table_link *link = NULL;
    size_t cursor = 0;
    while ((link = um_table_next(&cache->source_keys, &cursor, link)) != NULL) {
        struct trc_source *source = UM_CONTAINER_OF(link, struct trc_source, link);
        if ((source->tellers & service->bit) != 0) {
            fn(service, source);
        }
    }
}

static void mark(struct um_tr_service *service, struct trc_source *source)
{
    source->stale |= service->bit;
    trc_source_file(service->cache, source);
}

static void file_anew(struct um_tr_service *service, struct trc_source *source)
{
    trc_source_file(service->cache, source);
}

void um_tr_service_connected(struct um_tr_service *service, uint64_t now_ns)
{
    struct um_tr_cache *cache = service->cache;
    if (service->kind != UM_TR_LIST) {
        return;
    }
    um_tr_cache_enter(cache, now_ns);
    cache->present |= service->bit;
    service->state = TRC_RELISTING;
    service->sweep_due_ns = cache->now_ns + UM_TR_RELIST_NS;
    each_source(service, mark);
    um_tr_cache_leave(cache);
}

void um_tr_service_lost(struct um_tr_service *service, uint64_t now_ns)
{
    struct um_tr_cache *cache = service->cache;
    um_tr_cache_enter(cache, now_ns);
    cache->present &= (uint8_t)~service->bit;
    service->state = TRC_LOST;
    service->sweep_due_ns = UM_NEVER;
    each_source(service, file_anew);
    um_tr_cache_leave(cache);
}

/* What callbacks remove meanwhile is buried and says so. */
static size_t collect_stale(const struct um_tr_service *service, struct trc_source *found[SWEEP_MAX])
{
    struct um_table_link *link = NULL;
    size_t cursor = 0, count = 0;
    while (count < SWEEP_MAX && (link = um_table_next(&service->cache->source_keys, &cursor, link)) != NULL) {
        struct trc_source *source = UM_CONTAINER_OF(link, struct trc_source, link);
        if ((source->stale & service->bit) != 0) {
            found[count++] = source;
        }
    }
    return count;
}

static void sweep(struct um_tr_service *service)
{
    struct um_tr_cache *cache = service->cache;
    struct trc_source *found[SWEEP_MAX];
    size_t count = collect_stale(service, found);
    for (size_t i = 0; i < count; i++) {
        struct trc_source *source = found[i];
        if (source->dead || (source->stale & service->bit) == 0) {
            continue;
        }
        source->stale &= (uint8_t)~service->bit;
        source->tellers &= (uint8_t)~service->bit;
        if ((source->tellers & cache->present) == 0) {
            trc_withdraw(cache, source);
        }
    }
    if (service->state == TRC_RELISTING) { /* callbacks may have ended the connection */
        service->state = count == SWEEP_MAX ? TRC_RELISTING : TRC_LISTED;
        service->sweep_due_ns = count == SWEEP_MAX ? cache->now_ns + BACKLOG_TICK_NS : UM_NEVER;
    }
}

void trc_services_run(struct um_tr_cache *cache)
{
    struct um_tr_service *service;
    TRC_EACH_SERVICE(service, cache)
    {
        if (service->sweep_due_ns <= cache->now_ns) {
            sweep(service);
        }
    }
}

uint64_t trc_services_due(const struct um_tr_cache *cache)
{
    const struct um_tr_service *service;
    uint64_t due_ns = UM_NEVER;
    TRC_EACH_SERVICE(service, cache)
    {
        due_ns = service->sweep_due_ns < due_ns ? service->sweep_due_ns : due_ns;
    }
    return due_ns;
}

void trc_services_free(struct um_tr_cache *cache)
{
    for (size_t i = 0; i < cache->service_count; i++) {
        um_free(cache->services[i]);
    }
}
