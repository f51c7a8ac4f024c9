/* What the source sessions of a context and UDP transport share: the rate limits,
 * the reader, the warnings of later sources. See um_udp_src_session.h. [loop] */
#include "base/um_error.h"
#include "base/um_mem.h"
#include "transport/udp/um_udp_src_session.h"

size_t um_udp_datagram_limit(size_t configured, const char *option)
{
    static atomic_bool told;
    if (configured > UM_LBTR_DATAGRAM_MAX && !atomic_exchange(&told, true)) {
        um_log(UM_LOG_WARNING, "Core-9004-3", "%s %zu: datagrams of at most %u bytes are sent, more does not fit UDP",
               option, configured, UM_LBTR_DATAGRAM_MAX);
    }
    return configured > UM_LBTR_DATAGRAM_MAX ? UM_LBTR_DATAGRAM_MAX : configured;
}

size_t um_udp_smart_datagram(const struct um_source_options *opts, size_t datagram_max, size_t transport_overhead)
{
    size_t wanted = um_src_smart_message_max(opts) + UM_SRC_SMART_HEADERS + transport_overhead;
    return wanted < datagram_max ? wanted : datagram_max;
}

uint32_t um_udp_smart_buffers(uint32_t wanted, size_t datagram_max, const char *option, const char *topic)
{
    return um_src_smart_count(wanted, UM_LBTR_WINDOW_DATAGRAMS_MAX, datagram_max, option, "Core-9941-3131", topic);
}

struct um_src_transport *um_udp_sources_create(struct um_transport_env *env,
                                               const struct um_lbtr_limiter_config *limits)
{
    struct um_udp_sources *pool = um_calloc(1, sizeof *pool);
    if (pool == NULL) {
        um_error_nomem("UDP sources", sizeof *pool);
        return NULL;
    }
    /* NAKs are as long as their senders allow: what this side sends at most says nothing about that. */
    pool->reader = um_udp_reader_create(env->opts->multiple_receive_maximum_datagrams, UM_LBTR_DATAGRAM_MAX, false);
    if (pool->reader == NULL) {
        um_error_nomem("UDP sources: receive buffers", UM_LBTR_DATAGRAM_MAX);
        um_free(pool);
        return NULL;
    }
    struct um_lbtr_limiter_config repairs = *limits;
    repairs.data_bps = 0;
    um_lbtr_limiter_init(&pool->smart_limiter, &repairs);
    um_lbtr_limiter_init(&pool->limiter, limits);
    um_loss_rate_init();
    return &pool->base;
}

void um_udp_sources_destroy(struct um_src_transport *base)
{
    struct um_udp_sources *pool = um_udp_sources_of(base);
    um_udp_reader_destroy(pool->reader);
    um_free(pool);
}

/* ---- the first source of a session decides ---- */

#define COMPARED(id, field)                                                                                            \
    {                                                                                                                  \
        id, #field, (unsigned long)opts->field, (unsigned long)base->first.field                                       \
    }

static void warn(const struct um_src_session *base, const char *topic, const struct um_src_decided *list, size_t count)
{
    um_src_pool_warn(topic, "on UDP port", um_udp_src_session_of(base)->port, list, count);
}

/* Smart sessions reserve their window by the count of its buffers, which is a power of two. */
#define COMPARED_BUFFERS(id, field)                                                                                    \
    {                                                                                                                  \
        id, #field, um_src_smart_power((uint32_t)opts->field, UM_LBTR_WINDOW_DATAGRAMS_MAX),                           \
            (unsigned long)base->first.field                                                                           \
    }

void um_lbtrm_src_engine_compare(const struct um_src_session *base, const struct um_source_options *opts,
                                 const char *topic)
{
    const struct um_src_decided list[] = {
        COMPARED("Core-5688-1284", transport_lbtrm_tgsz),
        COMPARED("Core-5688-1285", transport_lbtrm_ignore_interval),
        COMPARED("Core-5688-1286", transport_lbtrm_sm_minimum_interval),
        COMPARED("Core-5688-1287", transport_lbtrm_sm_maximum_interval),
        COMPARED("Core-5688-1290", transport_lbtrm_coalesce_threshold),
    };
    const struct um_src_decided windows[] = {
        COMPARED("Core-5688-1288", transport_lbtrm_transmission_window_size),
        COMPARED("Core-5688-1289", transport_lbtrm_transmission_window_limit),
    };
    const struct um_src_decided smart[] = {
        COMPARED_BUFFERS("Core-5688-1301", transport_lbtrm_smart_src_transmission_window_buffer_count),
    };
    warn(base, topic, list, sizeof list / sizeof list[0]);
    warn(base, topic, base->place.smart ? smart : windows, base->place.smart ? 1 : 2);
}

void um_lbtru_src_engine_compare(const struct um_src_session *base, const struct um_source_options *opts,
                                 const char *topic)
{
    const struct um_src_decided list[] = {
        COMPARED("Core-5688-1291", transport_lbtru_client_map_size),
        COMPARED("Core-5688-1294", transport_lbtru_ignore_interval),
        COMPARED("Core-5688-1295", transport_lbtru_sm_minimum_interval),
        COMPARED("Core-5688-1296", transport_lbtru_sm_maximum_interval),
        COMPARED("Core-5688-1297", transport_lbtru_client_activity_timeout),
        COMPARED("Core-5688-1298", transport_lbtru_coalesce_threshold),
        COMPARED("Core-5688-1299", transport_source_side_filtering_behavior),
    };
    const struct um_src_decided windows[] = {
        COMPARED("Core-5688-1292", transport_lbtru_transmission_window_size),
        COMPARED("Core-5688-1293", transport_lbtru_transmission_window_limit),
    };
    const struct um_src_decided smart[] = {
        COMPARED_BUFFERS("Core-5688-1302", transport_lbtru_smart_src_transmission_window_buffer_count),
    };
    warn(base, topic, list, sizeof list / sizeof list[0]);
    warn(base, topic, base->place.smart ? smart : windows, base->place.smart ? 1 : 2);
}
