/* Topic resolution of one context, as core sees it: advertise, subscribe, match.
 * Behind it: the scheduler engine (um_tr_engine: no I/O, simulator-driven), the
 * LBMR codec, and agents that move datagrams (multicast, unicast lbmrd).
 * Everything is [loop]. */
#ifndef UM_RESOLVER_RESOLVER_H
#define UM_RESOLVER_RESOLVER_H

#include <stdbool.h>
#include <stdint.h>

#include <lbm/lbm.h>

#include "config/um_options.h"
#include "net/um_loop.h"

struct um_resolver;
struct um_tr_advert;  /* an advertised source */
struct um_tr_topic;   /* interest in one topic */
struct um_tr_pattern; /* interest in one pattern */

/* A source as found in the receiver-side cache; valid during the callback. */
struct um_tr_source {
    const char *topic;
    lbm_transport_source_info_t info; /* type, ip, port, session id, topic_idx; 0.0.0.0 already replaced */
    uint8_t otid[32];
    bool has_otid;
    uint8_t ctxinst[8];
    bool has_ctxinst;
    uint32_t request_ip; /* EXFUNC, network order; 0 = none */
    uint16_t request_port;
    uint32_t functionality; /* EXFUNC flags */
    int32_t cost;
    uint32_t domain_id;
    uint32_t told_by; /* sender of the datagram, network order; with lbmrd, that daemon */
};

struct um_table_scan; /* base/um_table.h */

struct um_resolver_events {
    /* A source of a subscribed topic is known (new, or offered again by a later advertisement while not joined). */
    void (*on_source)(void *topic_user, const struct um_tr_source *source);
    /* It was withdrawn (final advertisement), or would be if it were in the cache: deliver EOS if it is joined. */
    void (*on_source_gone)(void *topic_user, const struct um_tr_source *source);
    /* resolution_no_source_notification_threshold reached, once per unresolved period; `internal`: the 10 queries after
     * which receivers of wildcards begin to linger. */
    void (*on_no_source)(void *topic_user, bool internal);
    /* A topic of the cache matches a pattern for the first time: create the internal receiver (subscribe from inside).
     * -1: no memory now; on_pattern_incomplete follows. 1: no room now; asked again with the next advertisement. */
    int (*on_pattern_match)(void *pattern_user, const char *topic);
    /* Every newly discovered source of any topic (resolver_source_notification_function). */
    void (*on_any_source)(void *user, const struct um_tr_source *source);
    /* Known topics could not all be matched (no memory): call um_resolver_match_pattern_again() later. */
    void (*on_pattern_incomplete)(void *pattern_user);
};

/* Opens sockets as the options say (multicast, or one per lbmrd). NULL + error. */
struct um_resolver *um_resolver_create(struct um_loop *loop, const struct um_context_options *opts,
                                       const uint8_t ctxinst[8], const struct um_resolver_events *events, void *user);
void um_resolver_destroy(struct um_resolver *resolver);

/* What a source advertises; ip 0.0.0.0 is written as such. functionality 0: no EXFUNC option. */
struct um_tr_advert_spec {
    const char *topic;
    lbm_transport_source_info_t info;
    uint32_t functionality;
    uint32_t request_ip;
    uint16_t request_port;
};
/* What tells this host's shared memory from others'; before the first advertisement. 0: every host's is taken for ours.
 */
void um_resolver_set_host_id(struct um_resolver *resolver, uint32_t host_id);
struct um_tr_advert *um_resolver_advertise(struct um_resolver *resolver, const struct um_tr_advert_spec *spec,
                                           const struct um_source_options *opts);
void um_resolver_withdraw(struct um_resolver *resolver,
                          struct um_tr_advert *advert); /* final advertisements if configured */

/* Starts the query phases; nothing is offered yet. */
struct um_tr_topic *um_resolver_lookup(struct um_resolver *resolver, const char *topic,
                                       const struct um_receiver_options *opts, void *topic_user);
/* There is a receiver: on_source is called from inside for every source already known, the first time. `internal`: of a
 * wildcard. */
void um_resolver_receive(struct um_resolver *resolver, struct um_tr_topic *topic, bool internal);
void um_resolver_unsubscribe(struct um_resolver *resolver, struct um_tr_topic *topic);
void um_resolver_topic_set_thresholds(struct um_tr_topic *topic, uint64_t sources_query_threshold,
                                      uint64_t no_source_threshold, bool internal); /* live options */
/* Sources currently known for a topic (for thresholds and linger). */
unsigned um_resolver_topic_sources(const struct um_tr_topic *topic);
/* What is known of a source now. False: it is not remembered. */
bool um_resolver_source_facts(const struct um_resolver *resolver, const char *topic,
                              const lbm_transport_source_info_t *info, struct um_tr_source *out);
/* Something was received from this source: it is remembered while it lasts. */
void um_resolver_source_used(struct um_resolver *resolver, const char *topic, const lbm_transport_source_info_t *info);
/* The session of this source ended (EOS): remove it from the cache, re-query by the threshold rule. */
void um_resolver_source_ended(struct um_resolver *resolver, const char *topic, const lbm_transport_source_info_t *info);

/* `match` decides (PCRE2, POSIX regex or the application's callback live in core); pattern text goes into queries.
 * on_pattern_match is called for every topic already in the cache: the first from inside, the rest by and by. */
struct um_tr_pattern *um_resolver_subscribe_pattern(struct um_resolver *resolver, const char *pattern, int pattern_type,
                                                    const struct um_wildcard_receiver_options *opts,
                                                    bool (*match)(void *pattern_user, const char *topic),
                                                    void *pattern_user);
void um_resolver_unsubscribe_pattern(struct um_resolver *resolver, struct um_tr_pattern *pattern);
/* The internal receiver of this topic was deleted after linger: a later source matches anew. */
void um_resolver_pattern_forget(struct um_tr_pattern *pattern, const char *topic);
/* Match the topics of the cache that have not matched yet. Not from inside an event. */
void um_resolver_match_pattern_again(struct um_tr_pattern *pattern);

/* lbm_context_topic_resolution_request. */
int um_resolver_request(struct um_resolver *resolver, uint16_t flags, uint32_t interval_ms, uint32_t duration_sec);

/* Answers context information queries for this name (NULL or empty: none) with the request address (ip in network
 * order, 0: not bound; port in host order). 0 / -1 out of memory. */
int um_resolver_set_context_info(struct um_resolver *resolver, const char *name, uint32_t request_ip,
                                 uint16_t request_port);

/* Writes the addresses, ports and buffer sizes that its sockets have. The list of lbmrd must be the caller's to change.
 */
void um_resolver_in_force(const struct um_resolver *resolver, struct um_context_options *out);

/* Fills the tr_* fields. */
void um_resolver_stats(const struct um_resolver *resolver, lbm_context_stats_t *out);
void um_resolver_stats_reset(struct um_resolver *resolver);
/* Sources in the cache, step by step; see um_tr_cache_some_sources(). */
void um_resolver_some_sources(const struct um_resolver *resolver, uint64_t now_ns, struct um_table_scan *scan,
                              void (*visit)(void *arg, const struct um_tr_source *source, bool kept, uint64_t age_ns),
                              void *arg);
/* The topic resolution domain this context is in, as far as it has heard; 0: unknown. */
uint32_t um_resolver_domain_id(const struct um_resolver *resolver);
/* What lbm_context_stats_t has no field for. */
struct um_resolver_discards {
    uint64_t unknown_sender, refused_patterns, answers_deferred, cache_refused, cache_expired;
};
void um_resolver_discards(const struct um_resolver *resolver, struct um_resolver_discards *out);
/* Of the connections to resolution servers together; all 0 without resolver_service. */
struct um_resolver_service_stats {
    uint64_t connected; /* now */
    uint64_t connections, lost, failed;
    uint64_t records_sent, sources, ends, ignored, invalid;
};
void um_resolver_service_stats(const struct um_resolver *resolver, struct um_resolver_service_stats *out);

#endif
