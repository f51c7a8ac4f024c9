/* The resolver of a context: options into engine configuration, the engine and
 * its cache on the loop's timer, datagrams through the multicast or unicast agent.
 * Everything runs on the context's loop. */
#include "resolver/um_resolver.h"

#include <time.h>

#include <stdio.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "base/um_iface.h"
#include "base/um_thread.h"
#include "resolver/um_tr_agent.h"
#include "resolver/um_tr_srs.h"

struct um_resolver {
    struct um_loop *loop;
    struct um_tr_engine *engine;
    struct um_timer timer;
    struct um_tr_inbox *inbox;
    struct um_tr_multicast *multicast; /* at most one of the two */
    struct um_tr_lbmrd *lbmrd;
    struct um_tr_srs *srs; /* NULL: no resolver_service */
    bool udp;              /* false: resolver_disable_udp_topic_resolution */
    uint32_t host_id;
    uint64_t kept_ns; /* from the thread, when it was last told */
    lbm_str_hash_func_t hash;
    lbm_str_hash_func_ex_t hash_ex;
};

static uint64_t ms(unsigned long value)
{
    return um_ms_ns(value);
}

/* 0 stays 0 (disabled); anything else is at least one tick. */
static uint64_t interval(unsigned long value_ms, uint64_t tick_ns)
{
    return value_ms == 0 ? 0 : (ms(value_ms) > tick_ns ? ms(value_ms) : tick_ns);
}

/* ---- engine operations ---- */

static enum um_tr_sent send_datagram(void *io, const uint8_t *data, size_t len)
{
    struct um_resolver *resolver = io;
    if (resolver->lbmrd != NULL) {
        return um_tr_lbmrd_send(resolver->lbmrd, data, len);
    }
    return resolver->multicast != NULL ? um_tr_multicast_send(resolver->multicast, data, len) : UM_TR_DISCARDED;
}

static void set_timer(void *io, uint64_t due_ns)
{
    struct um_resolver *resolver = io;
    if (!resolver->udp) { /* what the cache knows of other services grows old all the same */
        due_ns = um_tr_cache_due(um_tr_engine_cache(resolver->engine));
    }
    if (due_ns == UM_NEVER) {
        um_timer_cancel(um_loop_wheel(resolver->loop), &resolver->timer);
    } else if (!um_timer_armed(&resolver->timer) || resolver->timer.due_ns != due_ns) {
        um_timer_arm(um_loop_wheel(resolver->loop), &resolver->timer, due_ns);
    }
}

static void on_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_resolver *resolver = UM_CONTAINER_OF(timer, struct um_resolver, timer);
    if (resolver->udp) {
        um_tr_engine_on_timer(resolver->engine, now_ns);
    } else {
        um_tr_cache_on_timer(um_tr_engine_cache(resolver->engine), now_ns);
    }
}

/* ---- creation ---- */

static uint32_t hash_topic(const char *name, size_t len, void *user)
{
    struct um_resolver *resolver = user;
    char text[256];
    if (resolver->hash_ex.hashfunc != NULL) {
        return (uint32_t)resolver->hash_ex.hashfunc(name, len, resolver->hash_ex.clientd);
    }
    snprintf(text, sizeof text, "%.*s", (int)len, name);
    return (uint32_t)resolver->hash.hashfunc(text);
}

static size_t datagram_max(unsigned own, unsigned common)
{
    return own != 0 ? own : common;
}

static void fill_rates(const struct um_context_options *opts, struct um_tr_rate rates[UM_TR_LANE_COUNT])
{
    rates[UM_TR_LANE_INITIAL_ADVERT] =
        (struct um_tr_rate){opts->resolver_initial_advertisement_bps, opts->resolver_initial_advertisements_per_second};
    rates[UM_TR_LANE_SUSTAIN_ADVERT] =
        (struct um_tr_rate){opts->resolver_sustain_advertisement_bps, opts->resolver_sustain_advertisements_per_second};
    rates[UM_TR_LANE_INITIAL_QUERY] =
        (struct um_tr_rate){opts->resolver_initial_query_bps, opts->resolver_initial_queries_per_second};
    rates[UM_TR_LANE_SUSTAIN_QUERY] =
        (struct um_tr_rate){opts->resolver_sustain_query_bps, opts->resolver_sustain_queries_per_second};
    rates[UM_TR_LANE_WILDCARD_QUERY] =
        (struct um_tr_rate){opts->resolver_wildcard_query_bps, opts->resolver_wildcard_queries_per_second};
}

static void fill_config(struct um_resolver *resolver, const struct um_context_options *opts, const uint8_t ctxinst[8],
                        struct um_tr_config *out)
{
    memset(out, 0, sizeof *out);
    memcpy(out->ctxinst, ctxinst, sizeof out->ctxinst);
    out->cache = opts->resolver_cache != 0;
    out->extended_options = opts->disable_extended_topic_resolution_message_options == 0;
    out->queries_possible = resolver->udp;
    um_stream_settings_of(opts, &out->streams);
    out->source_datagram_max = datagram_max(opts->resolver_source_datagram_max_size, opts->resolver_datagram_max_size);
    out->receiver_datagram_max =
        datagram_max(opts->resolver_receiver_datagram_max_size, opts->resolver_datagram_max_size);
    out->domain_timeout = opts->resolver_domain_id_active_propagation_timeout;
    fill_rates(opts, out->rates);
    resolver->hash = opts->resolver_string_hash_function;
    resolver->hash_ex = opts->resolver_string_hash_function_ex;
    if (resolver->hash.hashfunc != NULL || resolver->hash_ex.hashfunc != NULL) {
        out->hash = hash_topic;
        out->hash_user = resolver;
    }
}

static int open_agents(struct um_resolver *resolver, const struct um_context_options *opts)
{
    if (!resolver->udp) {
        if (opts->resolver_service.count == 0) {
            um_log(UM_LOG_WARNING, "Resolver-8",
                   "resolver_disable_udp_topic_resolution 1 without resolver_service: nothing will be resolved");
        }
        return 0;
    }
    resolver->inbox = um_tr_inbox_create();
    if (resolver->inbox == NULL) {
        return -1;
    }
    if (um_tr_lbmrd_configured(opts)) {
        resolver->lbmrd = um_tr_lbmrd_create(resolver->loop, opts, resolver->inbox, resolver->engine);
        return resolver->lbmrd == NULL ? -1 : 0;
    }
    resolver->multicast = um_tr_multicast_create(resolver->loop, opts, resolver->inbox, resolver->engine);
    return resolver->multicast == NULL ? -1 : 0;
}

/* The services, beside or instead of datagrams. They tell once, so what they tell has to be remembered. */
static int open_services(struct um_resolver *resolver, const struct um_context_options *opts, const uint8_t ctxinst[8])
{
    if (opts->resolver_service.count == 0) {
        return 0;
    }
    if (opts->resolver_cache == 0) {
        return um_error(UM_EINVAL, "Resolver-21", "resolver_cache 0: must be 1 with resolver_service");
    }
    resolver->srs = um_tr_srs_create(resolver->loop, opts, ctxinst, resolver->engine);
    return resolver->srs == NULL ? -1 : 0;
}

static uint64_t thread_cpu_ns(void *io)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * UM_NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

static uint64_t thread_kept_ns(void *io)
{
    struct um_resolver *resolver = io;
    return resolver->kept_ns = um_thread_kept_ns(resolver->kept_ns);
}

/* Sources in the memory of another host cannot be joined: their advertisements are passed over in silence. */
static bool host_is_local(void *io, uint32_t host_id)
{
    const struct um_resolver *resolver = io;
    return resolver->host_id == 0 || host_id == resolver->host_id;
}

void um_resolver_set_host_id(struct um_resolver *resolver, uint32_t host_id)
{
    resolver->host_id = host_id;
    if (resolver->srs != NULL) {
        um_tr_srs_set_host_id(resolver->srs, host_id);
    }
    um_tr_engine_set_host_id(resolver->engine, host_id);
}

struct um_resolver *um_resolver_create(struct um_loop *loop, const struct um_context_options *opts,
                                       const uint8_t ctxinst[8], const struct um_resolver_events *events, void *user)
{
    static const struct um_tr_ops ops = {.send = send_datagram,
                                         .set_timer = set_timer,
                                         .host_is_local = host_is_local,
                                         .cpu_ns = thread_cpu_ns,
                                         .kept_ns = thread_kept_ns};
    struct um_tr_config config;
    struct um_resolver *resolver = um_calloc(1, sizeof *resolver);
    if (resolver == NULL) {
        um_error_nomem("resolver", sizeof *resolver);
        return NULL;
    }
    resolver->loop = loop;
    resolver->udp = opts->resolver_disable_udp_topic_resolution == 0;
    um_timer_init(&resolver->timer, on_timer);
    fill_config(resolver, opts, ctxinst, &config);
    resolver->engine = um_tr_engine_create(&config, &ops, resolver, events, user, um_loop_now(loop));
    if (resolver->engine == NULL || open_agents(resolver, opts) != 0 || open_services(resolver, opts, ctxinst) != 0) {
        um_resolver_destroy(resolver);
        return NULL;
    }
    return resolver;
}

void um_resolver_destroy(struct um_resolver *resolver)
{
    if (resolver == NULL) {
        return;
    }
    if (resolver->engine != NULL && resolver->udp) {
        um_tr_engine_flush(resolver->engine, um_loop_now(resolver->loop));
    }
    um_tr_srs_close(resolver->srs);
    um_timer_cancel(um_loop_wheel(resolver->loop), &resolver->timer);
    um_tr_multicast_close(resolver->multicast);
    um_tr_lbmrd_close(resolver->lbmrd);
    um_tr_inbox_free(resolver->inbox);
    um_tr_engine_destroy(resolver->engine);
    um_free(resolver);
}

/* ---- the API of um_resolver.h ---- */

static void something_to_resolve(struct um_resolver *resolver)
{
    if (resolver->lbmrd != NULL) {
        um_tr_lbmrd_start(resolver->lbmrd);
    }
}

static int tell_services(struct um_resolver *resolver, struct um_tr_advert *advert)
{
    struct um_tr_source source;
    if (resolver->srs == NULL) {
        return 0;
    }
    um_tr_engine_advert_source(resolver->engine, advert, &source);
    struct um_srs_item *item = um_tr_srs_add_source(resolver->srs, &source);
    um_tr_engine_set_advert_user(advert, item);
    return item == NULL ? -1 : 0;
}

struct um_tr_advert *um_resolver_advertise(struct um_resolver *resolver, const struct um_tr_advert_spec *spec,
                                           const struct um_source_options *opts)
{
    struct um_tr_advert_options options = {
        .timing = {.min_initial_ns =
                       interval(opts->resolver_advertisement_minimum_initial_interval, UM_TR_INITIAL_ADVERT_TICK_NS),
                   .max_initial_ns =
                       interval(opts->resolver_advertisement_maximum_initial_interval, UM_TR_INITIAL_ADVERT_TICK_NS),
                   .initial_duration_ns = ms(opts->resolver_advertisement_minimum_initial_duration),
                   .sustain_ns = interval(opts->resolver_advertisement_sustain_interval, UM_TR_SUSTAIN_TICK_NS),
                   .sustain_duration_ns = um_s_ns(opts->resolver_advertisement_minimum_sustain_duration),
                   .first_at_once = opts->resolver_send_initial_advertisement != 0},
        .immediate_response = opts->resolver_advertisement_send_immediate_response != 0,
        .final_advertisements = opts->resolver_send_final_advertisements != 0,
    };
    struct um_tr_advert *advert = um_tr_engine_advertise(resolver->engine, um_loop_now(resolver->loop), spec, &options);
    if (advert != NULL && tell_services(resolver, advert) != 0) {
        um_tr_engine_withdraw(resolver->engine, um_loop_now(resolver->loop), advert);
        return NULL;
    }
    if (advert != NULL) {
        something_to_resolve(resolver);
    }
    return advert;
}

void um_resolver_withdraw(struct um_resolver *resolver, struct um_tr_advert *advert)
{
    if (resolver->srs != NULL) {
        um_tr_srs_remove_source(resolver->srs, um_tr_engine_advert_user(advert));
    }
    um_tr_engine_withdraw(resolver->engine, um_loop_now(resolver->loop), advert);
}

struct um_tr_topic *um_resolver_lookup(struct um_resolver *resolver, const char *topic,
                                       const struct um_receiver_options *opts, void *topic_user)
{
    struct um_tr_query_options options = {
        .timing = {.min_initial_ns =
                       interval(opts->resolver_query_minimum_initial_interval, UM_TR_INITIAL_QUERY_TICK_NS),
                   .max_initial_ns =
                       interval(opts->resolver_query_maximum_initial_interval, UM_TR_INITIAL_QUERY_TICK_NS),
                   .initial_duration_ns = ms(opts->resolver_query_minimum_initial_duration),
                   .sustain_ns = interval(opts->resolver_query_sustain_interval, UM_TR_SUSTAIN_TICK_NS),
                   .sustain_duration_ns = um_s_ns(opts->resolver_query_minimum_sustain_duration)},
        .sources_threshold = opts->resolution_number_of_sources_query_threshold,
        .no_source_threshold = opts->resolution_no_source_notification_threshold,
    };
    options.timing.first_at_once = options.timing.min_initial_ns != 0 && options.timing.max_initial_ns != 0;
    something_to_resolve(resolver);
    return um_tr_engine_lookup(resolver->engine, um_loop_now(resolver->loop), topic, &options, topic_user);
}

void um_resolver_receive(struct um_resolver *resolver, struct um_tr_topic *topic, bool internal)
{
    um_tr_engine_receive(resolver->engine, um_loop_now(resolver->loop), topic, internal);
}

void um_resolver_unsubscribe(struct um_resolver *resolver, struct um_tr_topic *topic)
{
    um_tr_engine_unsubscribe(resolver->engine, um_loop_now(resolver->loop), topic);
}

void um_resolver_topic_set_thresholds(struct um_tr_topic *topic, uint64_t sources_query_threshold,
                                      uint64_t no_source_threshold, bool internal)
{
    um_tr_topic_set_thresholds(topic, sources_query_threshold, no_source_threshold, internal);
}

unsigned um_resolver_topic_sources(const struct um_tr_topic *topic)
{
    return um_tr_topic_sources(topic);
}

bool um_resolver_source_facts(const struct um_resolver *resolver, const char *topic,
                              const lbm_transport_source_info_t *info, struct um_tr_source *out)
{
    return um_tr_engine_source_facts(resolver->engine, topic, info, out);
}

void um_resolver_source_used(struct um_resolver *resolver, const char *topic, const lbm_transport_source_info_t *info)
{
    um_tr_engine_source_used(resolver->engine, um_loop_now(resolver->loop), topic, info);
}

void um_resolver_source_ended(struct um_resolver *resolver, const char *topic, const lbm_transport_source_info_t *info)
{
    um_tr_engine_source_ended(resolver->engine, um_loop_now(resolver->loop), topic, info);
}

struct um_tr_pattern *um_resolver_subscribe_pattern(struct um_resolver *resolver, const char *pattern, int pattern_type,
                                                    const struct um_wildcard_receiver_options *opts,
                                                    bool (*match)(void *pattern_user, const char *topic),
                                                    void *pattern_user)
{
    struct um_tr_timing timing = {
        .min_initial_ns = interval(opts->resolver_query_minimum_interval, UM_TR_WILDCARD_TICK_NS),
        .max_initial_ns = interval(opts->resolver_query_maximum_interval, UM_TR_WILDCARD_TICK_NS),
        .initial_duration_ns = um_s_ns(opts->resolver_query_minimum_duration),
    };
    timing.first_at_once = timing.min_initial_ns != 0 && timing.max_initial_ns != 0;
    something_to_resolve(resolver);
    return um_tr_engine_subscribe_pattern(resolver->engine, um_loop_now(resolver->loop), pattern, pattern_type, &timing,
                                          match, pattern_user);
}

void um_resolver_unsubscribe_pattern(struct um_resolver *resolver, struct um_tr_pattern *pattern)
{
    um_tr_engine_unsubscribe_pattern(resolver->engine, um_loop_now(resolver->loop), pattern);
}

void um_resolver_pattern_forget(struct um_tr_pattern *pattern, const char *topic)
{
    um_tr_pattern_forget(pattern, topic);
}

void um_resolver_match_pattern_again(struct um_tr_pattern *pattern)
{
    um_tr_match_pattern_again(pattern);
}

int um_resolver_request(struct um_resolver *resolver, uint16_t flags, uint32_t interval_ms, uint32_t duration_sec)
{
    return um_tr_engine_request(resolver->engine, um_loop_now(resolver->loop), flags, interval_ms, duration_sec);
}

int um_resolver_set_context_info(struct um_resolver *resolver, const char *name, uint32_t request_ip,
                                 uint16_t request_port)
{
    return um_tr_engine_set_context_info(resolver->engine, name, request_ip, request_port);
}

void um_resolver_in_force(const struct um_resolver *resolver, struct um_context_options *out)
{
    if (resolver->multicast != NULL) {
        um_tr_multicast_in_force(resolver->multicast, out);
    } else if (resolver->lbmrd != NULL) {
        um_tr_lbmrd_in_force(resolver->lbmrd, out);
    }
}

void um_resolver_stats(const struct um_resolver *resolver, lbm_context_stats_t *out)
{
    struct um_tr_stats stats;
    um_tr_engine_get_stats(resolver->engine, &stats);
    out->tr_dgrams_sent = stats.datagrams_sent;
    out->tr_bytes_sent = stats.bytes_sent;
    out->tr_dgrams_rcved = stats.datagrams_received;
    out->tr_bytes_rcved = stats.bytes_received;
    out->tr_dgrams_dropped_ver = stats.dropped_version;
    out->tr_dgrams_dropped_type = stats.dropped_type;
    out->tr_dgrams_dropped_malformed = stats.dropped_malformed;
    out->tr_dgrams_send_failed = stats.send_failed;
    out->tr_src_topics = stats.source_topics;
    out->tr_rcv_topics = stats.receiver_topics;
    out->tr_rcv_unresolved_topics = stats.unresolved_topics;
}

void um_resolver_discards(const struct um_resolver *resolver, struct um_resolver_discards *out)
{
    struct um_tr_stats stats;
    um_tr_engine_get_stats(resolver->engine, &stats);
    *out = (struct um_resolver_discards){.unknown_sender = stats.unknown_sender,
                                         .refused_patterns = stats.refused_patterns,
                                         .answers_deferred = stats.answers_deferred,
                                         .cache_refused = stats.cache_refused,
                                         .cache_expired = stats.cache_expired};
}

void um_resolver_service_stats(const struct um_resolver *resolver, struct um_resolver_service_stats *out)
{
    struct um_srs_link_stats stats = {0};
    unsigned connected = 0;
    if (resolver->srs != NULL) {
        um_tr_srs_get_stats(resolver->srs, &stats, &connected);
    }
    *out = (struct um_resolver_service_stats){.connected = connected,
                                              .connections = stats.connections,
                                              .lost = stats.lost,
                                              .failed = stats.failed,
                                              .records_sent = stats.records_sent,
                                              .sources = stats.sources,
                                              .ends = stats.ends,
                                              .ignored = stats.ignored,
                                              .invalid = stats.invalid};
}

uint32_t um_resolver_domain_id(const struct um_resolver *resolver)
{
    return um_tr_engine_domain_id(resolver->engine);
}

void um_resolver_stats_reset(struct um_resolver *resolver)
{
    um_tr_engine_reset_stats(resolver->engine);
    if (resolver->srs != NULL) {
        um_tr_srs_reset_stats(resolver->srs);
    }
}

void um_resolver_some_sources(const struct um_resolver *resolver, uint64_t now_ns, struct um_table_scan *scan,
                              void (*visit)(void *arg, const struct um_tr_source *source, bool kept, uint64_t age_ns),
                              void *arg)
{
    um_tr_cache_some_sources(um_tr_engine_cache(resolver->engine), now_ns, scan, visit, arg);
}
