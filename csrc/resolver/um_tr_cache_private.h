/* Inside of the cache of topic resolution, shared by its files: entries, sources,
 * services, interest, patterns, ageing. Nothing else includes it.
 * Every field belongs to the thread that calls the cache. */
#ifndef UM_RESOLVER_TR_CACHE_PRIVATE_H
#define UM_RESOLVER_TR_CACHE_PRIVATE_H

#include <string.h>

#include "base/um_error.h"
#include "base/um_list.h"
#include "base/um_log.h"
#include "base/um_map.h"
#include "base/um_mem.h"
#include "resolver/um_tr_cache.h"
#include "resolver/um_tr_otid.h"

/* Deferred freeing: objects removed while callbacks run. First in whatever is buried. */
struct trc_grave {
    struct trc_grave *next;
};

/* An advertised source. What is one of its kind has 500,000 of them to fear: every byte counts. */
struct trc_source {
    union {
        struct um_table_link link; /* by topic and transport; its word: when it was heard of last, in seconds */
        struct trc_grave grave;
    };
    struct um_list node;                 /* entry->ageing or entry->kept */
    struct um_list heard, heard_of_host; /* cache->heard and host->heard, while ageing */
    struct um_tr_entry *entry;
    union um_tr_otid otid;
    uint8_t ctxinst[8];
    uint32_t src_ip;
    uint32_t group_or_id; /* multicast group, or the transport id of shared memory */
    uint32_t session_id;
    uint32_t topic_idx;
    uint32_t request_ip;
    uint32_t functionality;
    int32_t cost;
    uint32_t domain_id;
    uint32_t told_by; /* sender of the last advertisement; of a list, once it is on one */
    uint16_t src_port;
    uint16_t dest_port;
    uint16_t request_port;
    uint8_t type;
    uint8_t tellers; /* services that told it and did not withdraw it */
    uint8_t stale;   /* of these, lists that came back and have not told it again */
    enum um_tr_otid_form otid_form : 2;
    bool has_ctxinst : 1;
    bool ageing : 1;
    bool used : 1; /* the core receives from it */
    bool dead : 1;
    bool offer_due : 1; /* um_tr_cache_interest.c: the walk under way has not come to it */
};

/* Interest of the core in one topic. */
struct um_tr_topic {
    union {
        void *user;
        struct trc_grave grave;
    };
    struct um_tr_topic *next; /* of the same entry */
    struct um_tr_entry *entry;
    uint32_t sources_threshold;
    uint32_t no_source_threshold;
    bool receiving : 1; /* there are receivers; until then it was only looked up */
    bool internal : 1;  /* some of them are a wildcard's */
    bool notified : 1;  /* no-source notification given in this unresolved period */
    bool internal_notified : 1;
    bool dead : 1;
};

/* An address that advertised sources name. */
struct trc_host {
    struct um_list heard; /* trc_source.heard_of_host: ageing, oldest first */
    size_t count;
    uint32_t ip;
};

struct um_tr_entry {
    union {
        struct um_table_link link; /* by name; its word: queries sent since the topic has no source */
        struct trc_grave grave;
    };
    struct um_list ageing; /* heard of lately first */
    struct um_list kept;   /* used, or on a list in connection */
    struct um_tr_topic *subscribers;
    void *schedule;
    uint32_t source_count; /* of both lists */
    uint32_t ageing_count;
    uint16_t name_len;
    bool counted_unresolved : 1;
    bool
        match_due : 1; /* the core had no room for a receiver of a pattern: offered again with the next advertisement */
    bool dead : 1;
    char name[];
};

struct um_tr_pattern {
    struct trc_grave grave;
    struct um_list node; /* cache->patterns */
    struct um_tr_cache *cache;
    struct um_tr_wanted *wanted;
    bool (*match)(void *user, const char *topic);
    void *user;
    struct um_map matched;     /* topic -> this pattern */
    struct um_list walk_node;  /* cache->walks */
    struct um_table_scan walk; /* over the entries; while linked there */
    bool walk_again;           /* once more when it is through */
    bool dead;
};

enum trc_service_state { TRC_LOST, TRC_RELISTING, TRC_LISTED };

struct um_tr_service {
    struct um_tr_cache *cache;
    struct um_tr_service_ops ops;
    void *user;
    enum um_tr_service_kind kind;
    enum trc_service_state state;
    uint64_t sweep_due_ns; /* while RELISTING */
    uint8_t bit;
};

struct um_tr_cache {
    struct um_tr_cache_config config;
    struct um_tr_cache_owner owner;
    struct um_resolver_events events;
    void *user;

    uint64_t start_ns, now_ns;
    uint64_t offer_walks; /* begun */
    unsigned depth;       /* nesting of public calls */
    struct trc_grave *graves;
    uint64_t told_due_ns; /* what the owner's timer is set to */

    struct um_table entries;     /* um_tr_entry */
    struct um_table source_keys; /* trc_source */
    size_t unresolved;
    size_t wanted_topics;

    struct um_list heard;    /* trc_source.heard: ageing, oldest first */
    struct um_u32_map hosts; /* address -> trc_host */
    uint64_t ageing_due_ns;  /* UM_NEVER: no source to grow old */

    struct um_list patterns;
    struct um_list walks; /* um_tr_pattern.walk_node: known topics are being matched; the next to go on is first */
    uint64_t walk_due_ns; /* UM_NEVER: none */
    struct um_map wanted; /* type and text -> um_tr_wanted */

    struct um_tr_service *services[UM_TR_SERVICES_MAX];
    size_t service_count;
    uint8_t lists;   /* bits of the services that are lists */
    uint8_t present; /* of these, in connection */

    struct um_tr_cache_stats stats;
};

/* um_tr_cache.c */
void trc_bury(struct um_tr_cache *cache, struct trc_grave *grave);
struct um_tr_entry *trc_entry_get(struct um_tr_cache *cache, const char *topic, size_t len); /* NULL: out of memory */
void trc_entry_release_if_empty(struct um_tr_cache *cache, struct um_tr_entry *entry);
void trc_update_unresolved(struct um_tr_cache *cache, struct um_tr_entry *entry);

/* um_tr_cache_sources.c */
struct trc_source *trc_source_find(const struct um_tr_cache *cache, const struct um_tr_entry *entry,
                                   const lbm_transport_source_info_t *info);
struct trc_source *trc_source_new(struct um_tr_cache *cache, struct um_tr_entry *entry, const struct um_tr_source *told,
                                  uint8_t teller); /* NULL: out of memory */
void trc_source_update(struct trc_source *source, const struct um_tr_source *told);
void trc_source_tell(const struct trc_source *source, struct um_tr_source *out); /* valid until the entry is freed */
void trc_source_unlink(struct um_tr_cache *cache, struct trc_source *source);
void trc_source_forget(struct um_tr_cache *cache, struct trc_source *source); /* without a word to the core */
/* Into the list where it belongs: kept or ageing. */
void trc_source_file(struct um_tr_cache *cache, struct trc_source *source);

/* um_tr_cache_feed.c */
void trc_withdraw(struct um_tr_cache *cache, struct trc_source *source);

/* um_tr_cache_interest.c */
void trc_offer(struct um_tr_cache *cache, struct um_tr_entry *entry, const struct um_tr_source *source);
void trc_tell_gone(struct um_tr_cache *cache, struct um_tr_entry *entry, const struct um_tr_source *source);
void trc_source_lost(struct um_tr_cache *cache, struct um_tr_entry *entry);

/* um_tr_cache_ageing.c */
void trc_age_add(struct um_tr_cache *cache, struct trc_source *source);
void trc_age_heard(struct um_tr_cache *cache, struct trc_source *source);
void trc_age_remove(struct um_tr_cache *cache, struct trc_source *source);
/* Before one more source of this topic (NULL: a new one) at this address is added. false: there is no room. */
bool trc_age_make_room(struct um_tr_cache *cache, const struct um_tr_entry *entry, uint32_t ip, bool listed);
void trc_age_run(struct um_tr_cache *cache);
void trc_age_free(struct um_tr_cache *cache);

/* um_tr_cache_patterns.c */
void trc_match_patterns(struct um_tr_cache *cache, const char *topic);
int trc_tell_patterns(struct um_tr_service *service);
void trc_patterns_run(struct um_tr_cache *cache);
void trc_patterns_free(struct um_tr_cache *cache);

/* um_tr_cache_services.c */
void trc_services_run(struct um_tr_cache *cache);
uint64_t trc_services_due(const struct um_tr_cache *cache);
void trc_services_free(struct um_tr_cache *cache);

#define TRC_EACH_SERVICE(service, cache)                                                                               \
    for (size_t i_ = 0; i_ < (cache)->service_count && ((service) = (cache)->services[i_], true); i_++)

#endif
