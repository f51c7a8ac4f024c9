/* The source sessions of a context and UDP transport: the rate limits they share,
 * which one is next to be shared, statistics of all. See um_udp_source.h. [loop] */
#include "base/um_error.h"
#include "base/um_mem.h"
#include "transport/udp/um_udp_source.h"
#include "transport/um_src_sessions.h"

static struct um_udp_sources *pool_of(struct um_src_transport *base)
{
    return UM_CONTAINER_OF(base, struct um_udp_sources, base);
}

static struct um_udp_source *source_of(struct um_list *node)
{
    return UM_CONTAINER_OF(node, struct um_udp_source, node);
}

size_t um_udp_datagram_limit(size_t configured, const char *option)
{
    static atomic_bool told;
    if (configured > UM_LBTR_DATAGRAM_MAX && !atomic_exchange(&told, true)) {
        um_log(UM_LOG_WARNING, "Core-9004-3", "%s %zu: datagrams of at most %u bytes are sent, more does not fit UDP",
               option, configured, UM_LBTR_DATAGRAM_MAX);
    }
    return configured > UM_LBTR_DATAGRAM_MAX ? UM_LBTR_DATAGRAM_MAX : configured;
}

struct um_src_transport *um_udp_sources_create(struct um_transport_env *env, const struct um_src_transport_ops *ops,
                                               const struct um_lbtr_limiter_config *limits, size_t datagram_max)
{
    struct um_udp_sources *pool = um_calloc(1, sizeof *pool);
    if (pool == NULL) {
        um_error_nomem("UDP sources", sizeof *pool);
        return NULL;
    }
    pool->reader = um_udp_reader_create(env->opts->multiple_receive_maximum_datagrams, datagram_max, false);
    if (pool->reader == NULL) {
        um_error_nomem("UDP sources: receive buffers", datagram_max);
        um_free(pool);
        return NULL;
    }
    pool->base.ops = ops;
    pool->env = env;
    um_list_init(&pool->sessions);
    um_lbtr_limiter_init(&pool->limiter, limits);
    um_loss_rate_init();
    return &pool->base;
}

void um_udp_sources_destroy(struct um_src_transport *base)
{
    struct um_udp_sources *pool = pool_of(base);
    while (!um_list_empty(&pool->sessions)) {
        um_udp_source_close(source_of(pool->sessions.next));
    }
    um_udp_reader_destroy(pool->reader);
    um_free(pool);
}

static struct um_src_session *session_at(struct um_list *node)
{
    return &source_of(node)->base;
}

int um_udp_sources_stats(struct um_src_transport *base, lbm_src_transport_stats_t *out, int max)
{
    return um_src_sessions_stats(&pool_of(base)->sessions, session_at, out, max);
}

void um_udp_sources_stats_reset(struct um_src_transport *base)
{
    um_src_sessions_stats_reset(&pool_of(base)->sessions, session_at);
}

void um_udp_sources_flush(struct um_src_transport *base)
{
    um_src_sessions_flush(&pool_of(base)->sessions, session_at);
}

int um_udp_sources_count(const struct um_udp_sources *pool, uint16_t port)
{
    const struct um_list *it;
    int count = 0;
    UM_LIST_FOREACH(it, &pool->sessions)
    {
        const struct um_udp_source *source = source_of((struct um_list *)it);
        count += source->in_pool && source->pool_port == port;
    }
    return count;
}

struct um_udp_source *um_udp_sources_pick(struct um_udp_sources *pool, uint16_t port)
{
    struct um_list *start = pool->next != NULL ? &pool->next->node : pool->sessions.next, *it = start;
    do {
        if (it != &pool->sessions) {
            struct um_udp_source *source = source_of(it);
            if (source->in_pool && source->pool_port == port) {
                pool->next = it->next == &pool->sessions ? NULL : source_of(it->next);
                return source;
            }
        }
        it = it->next;
    } while (it != start);
    return NULL;
}

/* ---- the first source of a session decides ---- */

#define COMPARED(id, field)                                                                                            \
    {                                                                                                                  \
        id, #field, (unsigned long)opts->field, (unsigned long)source->first.field                                     \
    }

struct compared {
    const char *id, *option;
    unsigned long wanted, has;
};

static void warn(const struct um_udp_source *source, const char *topic, const struct compared *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i].wanted != list[i].has) {
            um_log(UM_LOG_WARNING, list[i].id,
                   "source \"%s\": %s %lu is ignored: the session on UDP port %u was made by its first source with %lu",
                   topic, list[i].option, list[i].wanted, source->port, list[i].has);
        }
    }
}

void um_lbtrm_source_compare(const struct um_udp_source *source, const struct um_source_options *opts,
                             const char *topic)
{
    const struct compared list[] = {
        COMPARED("Core-5688-1284", transport_lbtrm_tgsz),
        COMPARED("Core-5688-1285", transport_lbtrm_ignore_interval),
        COMPARED("Core-5688-1286", transport_lbtrm_sm_minimum_interval),
        COMPARED("Core-5688-1287", transport_lbtrm_sm_maximum_interval),
        COMPARED("Core-5688-1288", transport_lbtrm_transmission_window_size),
        COMPARED("Core-5688-1289", transport_lbtrm_transmission_window_limit),
        COMPARED("Core-5688-1290", transport_lbtrm_coalesce_threshold),
    };
    warn(source, topic, list, sizeof list / sizeof list[0]);
}

void um_lbtru_source_compare(const struct um_udp_source *source, const struct um_source_options *opts,
                             const char *topic)
{
    const struct compared list[] = {
        COMPARED("Core-5688-1291", transport_lbtru_client_map_size),
        COMPARED("Core-5688-1292", transport_lbtru_transmission_window_size),
        COMPARED("Core-5688-1293", transport_lbtru_transmission_window_limit),
        COMPARED("Core-5688-1294", transport_lbtru_ignore_interval),
        COMPARED("Core-5688-1295", transport_lbtru_sm_minimum_interval),
        COMPARED("Core-5688-1296", transport_lbtru_sm_maximum_interval),
        COMPARED("Core-5688-1297", transport_lbtru_client_activity_timeout),
        COMPARED("Core-5688-1298", transport_lbtru_coalesce_threshold),
        COMPARED("Core-5688-1299", transport_source_side_filtering_behavior),
    };
    warn(source, topic, list, sizeof list / sizeof list[0]);
}
