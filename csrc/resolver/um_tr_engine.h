/* UDP topic resolution without I/O: advertisements, queries, limiters, answers,
 * beside the cache that it feeds (um_tr_cache.h), which it makes and owns. The
 * agents of um_resolver.c drive it with sockets, the simulator with a virtual clock.
 * Not thread-safe: confined to the context's loop. Callbacks run inside the
 * calls below and may call back into the engine; nothing they hold is freed
 * before the outermost call returns. */
#ifndef UM_RESOLVER_TR_ENGINE_H
#define UM_RESOLVER_TR_ENGINE_H

#include "config/um_stream_settings.h"
#include "resolver/um_resolver.h"
#include "resolver/um_tr_cache.h"
#include "resolver/um_tr_limiter.h"
#include "resolver/um_tr_schedule.h"

struct um_tr_engine;

enum um_tr_lane_kind {
    UM_TR_LANE_INITIAL_ADVERT,
    UM_TR_LANE_SUSTAIN_ADVERT,
    UM_TR_LANE_INITIAL_QUERY,
    UM_TR_LANE_SUSTAIN_QUERY,
    UM_TR_LANE_WILDCARD_QUERY,
    UM_TR_LANE_COUNT
};

/* major << 24 | minor << 16 | service << 8 of the release whose formats these are; informational. */
#define UM_TR_WIRE_VERSION 0x06110000u

#define UM_TR_INITIAL_ADVERT_TICK_NS (10 * UM_NS_PER_MS)
#define UM_TR_INITIAL_QUERY_TICK_NS (20 * UM_NS_PER_MS)
#define UM_TR_WILDCARD_TICK_NS (30 * UM_NS_PER_MS)
#define UM_TR_SUSTAIN_TICK_NS (100 * UM_NS_PER_MS)

struct um_tr_config {
    uint8_t ctxinst[8];
    bool cache;                        /* resolver_cache */
    size_t cache_max;                  /* sources remembered; beyond, only those in use. 0: UM_TR_CACHE_MAX */
    bool extended_options;             /* not disable_extended_topic_resolution_message_options */
    bool queries_possible;             /* false: no agent sends queries (UDP topic resolution disabled) */
    struct um_stream_settings streams; /* only those with the same are heard */
    size_t source_datagram_max;        /* advertisements */
    size_t receiver_datagram_max;      /* queries and the rest */
    int domain_timeout;                /* resolver_domain_id_active_propagation_timeout */
    struct um_tr_rate rates[UM_TR_LANE_COUNT];
    uint32_t host_id;                                           /* of IPC and SMX advertisements */
    uint32_t (*hash)(const char *name, size_t len, void *user); /* of own sources' topics; NULL: um_hash_bytes */
    void *hash_user;
};

enum um_tr_sent { UM_TR_SENT = 0, UM_TR_DISCARDED = 1, UM_TR_SEND_FAILED = -1 };

struct um_tr_ops {
    enum um_tr_sent (*send)(void *io, const uint8_t *data, size_t len);
    /* The engine wants um_tr_engine_on_timer at this time (UM_NEVER: not at all); replaces the earlier wish. */
    void (*set_timer)(void *io, uint64_t due_ns);
    bool (*host_is_local)(void *io, uint32_t host_id); /* NULL: every host_id is */
    uint64_t (*cpu_ns)(void *io); /* time used by this thread, to bound the work of others' patterns; NULL: no bound */
    /* Time in which it was ready and others ran: of that nobody has a share. NULL: none. */
    uint64_t (*kept_ns)(void *io);
};

struct um_tr_stats {
    uint64_t datagrams_sent, bytes_sent, datagrams_received, bytes_received;
    uint64_t dropped_version, dropped_type, dropped_malformed, send_failed;
    uint64_t unknown_sender;   /* datagrams the unicast agent did not pass on */
    uint64_t refused_patterns; /* wildcard queries of unknown type or with an unusable or costly pattern */
    uint64_t cache_refused;    /* sources forgotten before their time, because there were too many */
    uint64_t cache_expired;    /* sources forgotten because nothing was heard of them for long */
    uint64_t answers_deferred; /* answers to queries that waited for the schedule, as there were too many */
    uint64_t source_topics, receiver_topics, unresolved_topics; /* now */
    uint64_t records_sent[UM_TR_LANE_COUNT];
};

/* Options of one source as the engine uses them. */
struct um_tr_advert_options {
    struct um_tr_timing timing;
    bool immediate_response;
    bool final_advertisements;
};

struct um_tr_query_options {
    struct um_tr_timing timing;
    uint64_t sources_threshold;
    uint64_t no_source_threshold;
};

/* NULL + error. events and ops are copied. */
struct um_tr_engine *um_tr_engine_create(const struct um_tr_config *config, const struct um_tr_ops *ops, void *io,
                                         const struct um_resolver_events *events, void *user, uint64_t now_ns);
void um_tr_engine_destroy(struct um_tr_engine *engine);
/* Host id of LBT-IPC and LBT-SMX advertisements; before the first advertisement. */
void um_tr_engine_set_host_id(struct um_tr_engine *engine, uint32_t host_id);
/* What is waiting for a tick without being limited (leave records) goes out now; before destroy. */
void um_tr_engine_flush(struct um_tr_engine *engine, uint64_t now_ns);

/* from_ip in network order, from_port in host order. */
void um_tr_engine_on_packet(struct um_tr_engine *engine, uint64_t now_ns, const uint8_t *data, size_t len,
                            uint32_t from_ip, uint16_t from_port);
void um_tr_engine_on_timer(struct um_tr_engine *engine, uint64_t now_ns);

struct um_tr_advert *um_tr_engine_advertise(struct um_tr_engine *engine, uint64_t now_ns,
                                            const struct um_tr_advert_spec *spec,
                                            const struct um_tr_advert_options *options);
void um_tr_engine_withdraw(struct um_tr_engine *engine, uint64_t now_ns, struct um_tr_advert *advert);

/* Starts the phases of a topic; sources are offered from um_tr_engine_receive() on, those known by then from inside. */
struct um_tr_topic *um_tr_engine_lookup(struct um_tr_engine *engine, uint64_t now_ns, const char *topic,
                                        const struct um_tr_query_options *options, void *topic_user);
void um_tr_engine_receive(struct um_tr_engine *engine, uint64_t now_ns, struct um_tr_topic *topic, bool internal);
/* Both at once. */
struct um_tr_topic *um_tr_engine_subscribe(struct um_tr_engine *engine, uint64_t now_ns, const char *topic,
                                           const struct um_tr_query_options *options, bool internal, void *topic_user);
void um_tr_engine_unsubscribe(struct um_tr_engine *engine, uint64_t now_ns, struct um_tr_topic *topic);
/* The core receives from this source: it is kept until it ends or the topic is unsubscribed. */
bool um_tr_engine_source_facts(const struct um_tr_engine *engine, const char *topic,
                               const lbm_transport_source_info_t *info, struct um_tr_source *out);
void um_tr_engine_source_used(struct um_tr_engine *engine, uint64_t now_ns, const char *topic,
                              const lbm_transport_source_info_t *info);
void um_tr_engine_source_ended(struct um_tr_engine *engine, uint64_t now_ns, const char *topic,
                               const lbm_transport_source_info_t *info);

struct um_tr_pattern *um_tr_engine_subscribe_pattern(struct um_tr_engine *engine, uint64_t now_ns, const char *pattern,
                                                     int pattern_type, const struct um_tr_timing *timing,
                                                     bool (*match)(void *pattern_user, const char *topic),
                                                     void *pattern_user);
void um_tr_engine_unsubscribe_pattern(struct um_tr_engine *engine, uint64_t now_ns, struct um_tr_pattern *pattern);

/* The advert's word for whoever tells other services of it; NULL at first. */
void um_tr_engine_set_advert_user(struct um_tr_advert *advert, void *user);
void *um_tr_engine_advert_user(const struct um_tr_advert *advert);

/* For other services beside this one. */
struct um_tr_cache *um_tr_engine_cache(const struct um_tr_engine *engine);

int um_tr_engine_request(struct um_tr_engine *engine, uint64_t now_ns, uint16_t flags, uint32_t interval_ms,
                         uint32_t duration_sec);
/* Answers context information queries for this name (NULL: none) with this request address. -1: out of memory. */
int um_tr_engine_set_context_info(struct um_tr_engine *engine, const char *name, uint32_t request_ip,
                                  uint16_t request_port);

uint32_t um_tr_engine_domain_id(const struct um_tr_engine *engine); /* 0: unknown */
/* Another service has learnt it. Once; not 0. */
void um_tr_engine_set_domain_id(struct um_tr_engine *engine, uint32_t domain_id);
/* What other services are to say of an advertised source; `topic` lives as long as the advert. */
void um_tr_engine_advert_source(const struct um_tr_engine *engine, const struct um_tr_advert *advert,
                                struct um_tr_source *out);
/* Does the context have anything to resolve? Sources; receivers of any kind. */
bool um_tr_engine_has_sources(const struct um_tr_engine *engine);
bool um_tr_engine_has_receivers(const struct um_tr_engine *engine);
void um_tr_engine_get_stats(const struct um_tr_engine *engine, struct um_tr_stats *out);
void um_tr_engine_reset_stats(struct um_tr_engine *engine);
void um_tr_engine_count_unknown_sender(struct um_tr_engine *engine);
void um_tr_engine_count_sent(struct um_tr_engine *engine, enum um_tr_sent result, size_t len); /* agents' keepalives */

#endif
