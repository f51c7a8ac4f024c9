/* What a context knows of topics: who advertises them, who here wants them, which
 * patterns they match, and when that is forgotten. No protocol and no I/O: services
 * (the UDP schedule, clients of resolution servers) say what they heard as
 * struct um_tr_source and are told what is wanted.
 * Confined to the context's loop. Callbacks run inside the calls below and may call
 * back; nothing they hold is freed before the outermost call returns. */
#ifndef UM_RESOLVER_TR_CACHE_H
#define UM_RESOLVER_TR_CACHE_H

#include "base/um_table.h"
#include "resolver/um_resolver.h"
#include "resolver/um_tr_schedule.h"

#define UM_TR_CACHE_MAX 500000u /* some 170 MB: a flood of forged advertisements may not take more */
#define UM_TR_NAME_MAX 255      /* characters of a topic */
#define UM_TR_SERVICES_MAX 8
#define UM_TR_RELIST_NS (10 * UM_NS_PER_SEC)
/* What is looked at of the cache before others on the loop have their turn, and when a walk goes on. */
#define UM_TR_CACHE_STEP 512u
#define UM_TR_CACHE_STEP_NS UM_NS_PER_MS

struct um_tr_cache;
struct um_tr_entry;   /* a topic that is known or wanted */
struct um_tr_service; /* who tells and is told */

struct um_tr_cache_config {
    bool remember; /* resolver_cache; without it, only sources of topics that are wanted */
    size_t max;    /* sources remembered; beyond, only those in use. 0: UM_TR_CACHE_MAX */
};

struct um_tr_cache_stats {
    uint64_t cache_refused; /* sources forgotten before their time or not remembered, because there were too many */
    uint64_t cache_expired; /* sources forgotten because nothing was heard of them for long */
    uint64_t topics, unresolved_topics; /* now */
};

struct um_tr_cache_owner {
    /* The cache wants um_tr_cache_on_timer() at this time (UM_NEVER: not at all); replaces the earlier wish. */
    void (*set_timer)(void *owner, uint64_t due_ns);
    void *owner;
};

/* NULL + error. The tables are copied; `events` and `user` are the core's. */
struct um_tr_cache *um_tr_cache_create(const struct um_tr_cache_config *config, const struct um_tr_cache_owner *owner,
                                       const struct um_resolver_events *events, void *user, uint64_t now_ns);
/* Without a word to anybody; services free what they keep of topics and patterns before. */
void um_tr_cache_destroy(struct um_tr_cache *cache);
void um_tr_cache_on_timer(struct um_tr_cache *cache, uint64_t now_ns);
uint64_t um_tr_cache_now(const struct um_tr_cache *cache); /* of the latest call */
uint64_t um_tr_cache_due(const struct um_tr_cache *cache);
/* What happens between the two is one call to the outside: nothing is freed, the timer is set at the end. They nest. */
void um_tr_cache_enter(struct um_tr_cache *cache, uint64_t now_ns);
void um_tr_cache_leave(struct um_tr_cache *cache);
void um_tr_cache_get_stats(const struct um_tr_cache *cache, struct um_tr_cache_stats *out);
void um_tr_cache_reset_stats(struct um_tr_cache *cache);

/* ---- services ---- */

enum um_tr_service_kind {
    /* Datagrams of anybody. Its sources grow old when they are not repeated; a withdrawal holds whoever else knows the
     * source. */
    UM_TR_HEARSAY,
    /* A list kept over a connection. What is on it stays while the connection lasts, unrepeated; a source withdrawn by
     * one list goes when no other list in connection has it. */
    UM_TR_LIST,
};

/* A pattern text that one or more wildcard receivers ask for. */
struct um_tr_wanted {
    void *schedule; /* of the service that asks for it by and by, if any */
    unsigned users;
    size_t len;
    const char *text;
    uint8_t key[]; /* pattern type, text with its NUL */
};

static inline int um_tr_wanted_type(const struct um_tr_wanted *wanted)
{
    return wanted->key[0];
}

/* What a service is told; any may be NULL. `asking`: how often to ask, as the first who wants it says. */
struct um_tr_service_ops {
    /* The topic is looked up for the first time; -1 out of memory, and the look-up fails. */
    int (*topic_wanted)(void *service, struct um_tr_entry *entry, const struct um_tr_timing *asking);
    void (*topic_received)(void *service, struct um_tr_entry *entry); /* it has its first receiver */
    void (*topic_unwanted)(void *service, struct um_tr_entry *entry);
    int (*pattern_wanted)(void *service, struct um_tr_wanted *wanted, const struct um_tr_timing *asking);
    void (*pattern_unwanted)(void *service, struct um_tr_wanted *wanted);
    /* A wanted topic lost a source: ask again when it is below a threshold. Is it being asked for, and counted by
     * um_tr_cache_query_sent(), when it has none left? */
    bool (*source_lost)(void *service, struct um_tr_entry *entry);
    /* The session of a source on this service's list ended: it may be asked for it again. */
    void (*source_ended)(void *service, const struct um_tr_source *source);
};

/* NULL: too many, or out of memory (error set). A list is not in connection yet; hearsay needs none. */
struct um_tr_service *um_tr_cache_add_service(struct um_tr_cache *cache, enum um_tr_service_kind kind,
                                              const struct um_tr_service_ops *ops, void *service);
/* A list is in connection (again): it will be told anew. What was on it and is not told again within UM_TR_RELIST_NS is
 * withdrawn. */
void um_tr_service_connected(struct um_tr_service *service, uint64_t now_ns);
/* What was on the list is kept, and grows old from now on. */
void um_tr_service_lost(struct um_tr_service *service, uint64_t now_ns);
/* Calls topic_wanted, topic_received and pattern_wanted of this service for all that is wanted (asking: NULL); they may
 * not call back here. 0 / -1 as soon as one of them fails. */
int um_tr_service_tell_wanted(struct um_tr_service *service, uint64_t now_ns);

/* ---- what services hear ---- */

enum um_tr_taken {
    UM_TR_TAKEN_NEW,
    UM_TR_TAKEN_KNOWN,
    UM_TR_NOT_KEPT,   /* no room, no memory, or nobody asks; notices were given all the same */
    UM_TR_CONTRADICTS /* another OTID than the source of this transport and index has */
};

/* The service heard of this source, for the first time or again; its kind and addresses are filled in. */
enum um_tr_taken um_tr_cache_found(struct um_tr_service *service, uint64_t now_ns, const struct um_tr_source *source);
/* The service heard that it was withdrawn. */
void um_tr_cache_gone(struct um_tr_service *service, uint64_t now_ns, const struct um_tr_source *source);

/* ---- what the core says and wants; see um_resolver.h ---- */

bool um_tr_cache_source_facts(const struct um_tr_cache *cache, const char *topic,
                              const lbm_transport_source_info_t *info, struct um_tr_source *out);
void um_tr_cache_source_used(struct um_tr_cache *cache, uint64_t now_ns, const char *topic,
                             const lbm_transport_source_info_t *info);
void um_tr_cache_source_ended(struct um_tr_cache *cache, uint64_t now_ns, const char *topic,
                              const lbm_transport_source_info_t *info);

struct um_tr_interest {
    const struct um_tr_timing *asking; /* lives as long as the cache */
    uint64_t sources_threshold;
    uint64_t no_source_threshold;
};
struct um_tr_topic *um_tr_cache_lookup(struct um_tr_cache *cache, uint64_t now_ns, const char *topic,
                                       const struct um_tr_interest *interest, void *topic_user);
void um_tr_cache_receive(struct um_tr_cache *cache, uint64_t now_ns, struct um_tr_topic *topic, bool internal);
void um_tr_cache_unsubscribe(struct um_tr_cache *cache, uint64_t now_ns, struct um_tr_topic *topic);
void um_tr_topic_set_thresholds(struct um_tr_topic *topic, uint64_t sources_threshold, uint64_t no_source_threshold,
                                bool internal);
unsigned um_tr_topic_sources(const struct um_tr_topic *topic);
size_t um_tr_cache_wanted_topics(const struct um_tr_cache *cache);
/* Some of the sources that are known, in no order: those of one step of `scan`, at most UM_TR_CACHE_STEP. `age_ns`
 * since it was heard of last, 0 while something keeps it. The visitor may not call back. */
void um_tr_cache_some_sources(const struct um_tr_cache *cache, uint64_t now_ns, struct um_table_scan *scan,
                              void (*visit)(void *arg, const struct um_tr_source *source, bool kept, uint64_t age_ns),
                              void *arg);

/* Topics that are known are matched step by step, the first step inside the call, the others by the timer. */
struct um_tr_pattern *um_tr_cache_subscribe_pattern(struct um_tr_cache *cache, uint64_t now_ns, const char *pattern,
                                                    int pattern_type, const struct um_tr_timing *asking,
                                                    bool (*match)(void *pattern_user, const char *topic),
                                                    void *pattern_user);
void um_tr_cache_unsubscribe_pattern(struct um_tr_cache *cache, uint64_t now_ns, struct um_tr_pattern *pattern);
void um_tr_pattern_forget(struct um_tr_pattern *pattern, const char *topic);
void um_tr_match_pattern_again(struct um_tr_pattern *pattern);
bool um_tr_cache_has_patterns(const struct um_tr_cache *cache);

/* ---- for the service that asks by and by ---- */

struct um_tr_entry *um_tr_cache_entry(const struct um_tr_cache *cache, const char *topic, size_t len); /* NULL: none */
struct um_tr_wanted *um_tr_cache_wanted(const struct um_tr_cache *cache, int pattern_type, const char *text,
                                        size_t len);
const char *um_tr_entry_name(const struct um_tr_entry *entry, size_t *len);
/* The service's own word in the entry, from topic_wanted to topic_unwanted. */
void *um_tr_entry_schedule(const struct um_tr_entry *entry);
void um_tr_entry_set_schedule(struct um_tr_entry *entry, void *schedule);
bool um_tr_cache_query_needed(const struct um_tr_entry *entry); /* below the threshold of some receiver */
void um_tr_cache_query_sent(struct um_tr_cache *cache, uint64_t now_ns, struct um_tr_entry *entry);

const char *um_tr_printable(const char *name, char out[256]); /* a peer's text, fit for a log line */

#endif
