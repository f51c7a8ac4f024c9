/* Inside of the topic resolution engine, shared by its files: source side,
 * receiver side, patterns, extended messages. Nothing else includes it.
 * Every field belongs to the thread that calls the engine. */
#ifndef UM_RESOLVER_TR_PRIVATE_H
#define UM_RESOLVER_TR_PRIVATE_H

#include "base/um_list.h"
#include "base/um_log.h"
#include "base/um_map.h"
#include "base/um_mem.h"
#include "base/um_pattern.h"
#include "resolver/um_tr_engine.h"
#include "resolver/um_tr_lane.h"
#include "resolver/um_tr_table.h"
#include "wire/um_lbmr.h"

enum tr_task_kind { TR_TASK_ADVERT, TR_TASK_QUERY, TR_TASK_WILDCARD, TR_TASK_KINDS };

/* Distinct sets of timing options are few; topics point to a shared one. */
struct tr_timing {
    struct um_list node;
    struct um_tr_timing timing;
};

/* What has a schedule: in a lane, or in the engine's list of quiescent ones. */
struct tr_task {
    struct um_tr_item item;
    struct um_tr_schedule schedule;
    const struct um_tr_timing *timing;
    enum tr_task_kind kind;
};

/* Deferred freeing: objects removed while callbacks run. */
struct tr_grave {
    struct tr_grave *next;
};

enum tr_advert_state { TR_ADVERT_LIVE, TR_ADVERT_FINAL };

struct um_tr_advert {
    struct um_tr_link link; /* source-side cache by topic; not in it once FINAL */
    struct tr_task task;
    struct um_list all; /* engine->adverts */
    uint32_t answered_tick;
    uint16_t record_len;
    uint16_t name_len;
    uint8_t finals_left;
    enum tr_advert_state state : 8;
    bool immediate_response : 1;
    bool final_advertisements : 1;
    bool has_options : 1;
    bool has_domain : 1;
    uint8_t record[]; /* encoded TIR, starts with the topic; 8 bytes spare for the domain option */
};

struct tr_entry;

/* An advertised source in the receiver-side cache. */
struct tr_source {
    struct tr_grave grave; /* first: freed through it */
    struct um_tr_link link;
    struct tr_source *next; /* of the same topic */
    struct tr_entry *entry;
    lbm_transport_source_info_t info;
    uint8_t otid[32];
    uint8_t ctxinst[8];
    uint32_t request_ip;
    uint32_t functionality;
    int32_t cost;
    uint32_t domain_id;
    uint16_t request_port;
    bool has_otid : 1;
    bool has_ctxinst : 1;
    bool dead : 1;
};

/* Interest of the core in one topic. */
struct um_tr_topic {
    struct tr_grave grave;
    struct um_tr_topic *next; /* of the same topic */
    struct tr_entry *entry;
    void *user;
    uint64_t sources_threshold;
    uint64_t no_source_threshold;
    bool internal : 1;
    bool notified : 1; /* no-source notification given in this unresolved period */
    bool dead : 1;
};

/* A topic of the receiver-side cache. */
struct tr_entry {
    struct tr_grave grave;
    struct um_tr_link link;
    struct tr_source *sources;
    struct um_tr_topic *subscribers;
    struct tr_task task; /* queries; idle without subscribers */
    uint32_t source_count;
    uint32_t unanswered;      /* queries sent since the topic has no source */
    uint32_t use_answered_ms; /* last topic-use response, engine time */
    uint16_t name_len;
    bool queried : 1;
    bool use_answered : 1;
    bool counted_unresolved : 1;
    bool dead : 1;
    char name[];
};

/* One query stream per pattern text. */
struct tr_pattern_stream {
    struct tr_task task;
    unsigned users;
    uint32_t use_answered_ms;
    bool use_answered;
    bool queried;
    size_t len;
    char text[];
};

struct um_tr_pattern {
    struct tr_grave grave;
    struct um_list node; /* engine->patterns */
    struct um_tr_engine *engine;
    struct tr_pattern_stream *stream; /* NULL: sends no queries */
    bool (*match)(void *user, const char *topic);
    void *user;
    struct um_map matched; /* topic -> this pattern */
    bool dead;
};

/* Topic management records waiting for the next 100 ms tick. */
struct tr_tm_record {
    struct um_list node;
    uint8_t type;
    uint8_t flags;
    uint16_t len;
    char name[];
};

struct tr_request {
    struct um_list node;
    uint64_t due_ns;
    uint64_t end_ns;
    uint64_t interval_ns;
    uint16_t flags;
};

#define TR_PATTERN_STREAMS_MAX 250
#define TR_PATTERN_CACHE 1024
#define TR_TM_QUEUE_MAX 100000
#define TR_BUFFER 65535

struct um_tr_engine {
    struct um_tr_config config;
    struct um_tr_ops ops;
    void *io;
    struct um_resolver_events events;
    void *user;

    uint64_t start_ns;
    uint64_t now_ns;
    unsigned depth;    /* nesting of public calls */
    bool wakeup_stale; /* something was scheduled or sent: the timer is to be set anew */
    struct tr_grave *graves;

    struct um_tr_lane lanes[UM_TR_LANE_COUNT];
    struct um_list quiet[TR_TASK_KINDS]; /* quiescent tasks */
    struct um_list timings;

    struct um_tr_table sources_by_topic; /* um_tr_advert */
    struct um_list adverts;
    size_t advert_topics;
    struct um_tr_table entries;     /* tr_entry */
    struct um_tr_table source_keys; /* tr_source */
    size_t unresolved;
    size_t subscribed_topics;
    struct um_list patterns;
    struct um_map streams;
    size_t stream_count;
    bool stream_limit_logged;
    struct um_pattern_cache *pattern_cache; /* compiled wildcard queries of others */
    uint64_t patterns_trusted_ns;           /* until then only patterns in the cache are searched for */

    struct um_list tm_queue;
    size_t tm_queued;
    uint64_t tm_due_ns; /* UM_NEVER: nothing waits */
    struct um_list requests;

    char *context_name;
    size_t context_name_len;
    uint32_t request_ip;
    uint16_t request_port;
    uint64_t context_answer_due_ns; /* not before this time again */

    uint32_t domain_id;
    uint64_t router_heard_ns; /* 0: never */

    uint8_t trailer[UM_LBMR_TRAILER_MAX];
    size_t trailer_len;
    bool trailer_has_domain;
    uint8_t *buffer; /* datagram being built */
    struct um_tr_stats stats;
    struct um_log_limit fault_log[UM_LBMR_FAULT_COUNT];
    struct um_log_limit source_log, cache_log;
    uint8_t ext_types_logged[32];
};

/* engine */
void tr_enter(struct um_tr_engine *engine, uint64_t now_ns);
void tr_leave(struct um_tr_engine *engine); /* frees graves and sets the timer at the outermost level */
void tr_bury(struct um_tr_engine *engine, struct tr_grave *grave);
const struct um_tr_timing *tr_intern_timing(struct um_tr_engine *engine, const struct um_tr_timing *timing);
void tr_task_init(struct tr_task *task, enum tr_task_kind kind, const struct um_tr_timing *timing);
void tr_task_place(struct um_tr_engine *engine, struct tr_task *task); /* after any change of its schedule */
void tr_task_idle(struct tr_task *task);                               /* out of every list */
uint32_t tr_hash(const struct um_tr_engine *engine, const char *name, size_t len);
const char *tr_printable(const char *name, char out[UM_LBMR_NAME_MAX + 1]); /* a peer's text, fit for a log line */
uint32_t tr_engine_ms(const struct um_tr_engine *engine);
void tr_send(struct um_tr_engine *engine, const uint8_t *data, size_t len);
void tr_refresh_trailer(struct um_tr_engine *engine);
void tr_begin_datagram(struct um_tr_engine *engine, struct um_lbmr_builder *builder, uint8_t type, bool source_side);
void tr_flush_datagram(struct um_tr_engine *engine, struct um_lbmr_builder *builder);

/* source side */
bool tr_advert_add_record(struct um_tr_engine *engine, struct um_lbmr_builder *builder, struct um_tr_advert *advert);
void tr_advert_sent(struct um_tr_engine *engine, struct um_tr_advert *advert);
void tr_take_query(struct um_tr_engine *engine, const char *topic, size_t len);
void tr_take_wildcard_query(struct um_tr_engine *engine, const struct um_lbmr_tqr *query);
void tr_source_side_free(struct um_tr_engine *engine);

/* receiver side */
struct tr_entry *tr_entry_find(const struct um_tr_engine *engine, const char *topic, size_t len);
void tr_take_tir(struct um_tr_engine *engine, const struct um_lbmr_tir *tir, uint32_t from_ip);
bool tr_query_wanted(const struct tr_entry *entry); /* below the threshold of some subscriber */
void tr_query_sent(struct um_tr_engine *engine, struct tr_entry *entry, bool really);
void tr_receiver_side_free(struct um_tr_engine *engine);

/* patterns */
void tr_match_patterns(struct um_tr_engine *engine, const char *topic);
void tr_patterns_free(struct um_tr_engine *engine);

/* topic management, requests, context information */
void tr_tm_queue(struct um_tr_engine *engine, uint8_t type, uint8_t flags, const char *name, size_t len);
void tr_tm_flush(struct um_tr_engine *engine);
void tr_take_topic_mgmt(struct um_tr_engine *engine, struct um_lbmr_cursor *cursor);
void tr_take_extended(struct um_tr_engine *engine, const struct um_lbmr_msg *msg, enum um_lbmr_fault *fault,
                      unsigned *detail);
void tr_requests_run(struct um_tr_engine *engine);
uint64_t tr_requests_next(const struct um_tr_engine *engine);
void tr_ext_free(struct um_tr_engine *engine);

#endif
