/* Inside of the engine of UDP topic resolution, shared by its files: source side,
 * receiver side, patterns, extended messages. Nothing else includes it.
 * Every field belongs to the thread that calls the engine. */
#ifndef UM_RESOLVER_TR_PRIVATE_H
#define UM_RESOLVER_TR_PRIVATE_H

#include "base/um_list.h"
#include "base/um_log.h"
#include "base/um_map.h"
#include "base/um_mem.h"
#include "base/um_pattern.h"
#include "resolver/um_tr_budget.h"
#include "resolver/um_tr_cache.h"
#include "resolver/um_tr_engine.h"
#include "resolver/um_tr_lane.h"
#include "base/um_table.h"
#include "wire/um_lbmr.h"

enum tr_task_kind { TR_TASK_ADVERT, TR_TASK_QUERY, TR_TASK_WILDCARD, TR_TASK_KINDS };

/* Distinct sets of timing options are few; topics point to a shared one. */
struct tr_timing {
    struct um_list node;
    struct um_tr_timing timing;
};

/* Of a query or stream. */
enum tr_task_flag { TR_QUERIED = 1, TR_USE_ANSWERED = 2 };

/* What has a schedule: in a lane, or in the engine's list of quiescent ones. */
struct tr_task {
    struct um_tr_item item;         /* kind: tr_task_kind; flags: tr_task_flag */
    struct um_tr_schedule schedule; /* word: when something was answered last: tick of an advert, ms of the others */
    const struct um_tr_timing *timing;
};

enum tr_advert_state { TR_ADVERT_LIVE, TR_ADVERT_FINAL };

struct um_tr_advert {
    struct um_table_link link; /* source-side cache by topic; not in it once FINAL */
    struct tr_task task;
    lbm_transport_source_info_t info;
    void *user; /* um_tr_engine_set_advert_user() */
    uint32_t functionality;
    uint32_t request_ip;
    uint32_t domain_id; /* in its OTID: as it was known at creation */
    uint16_t request_port;
    uint16_t name_len;
    uint8_t finals_left;
    enum tr_advert_state state : 2;
    bool immediate_response : 1;
    bool final_advertisements : 1;
    char name[];
};

/* The queries for a topic that somebody here wants; hangs on the cache's entry. */
struct tr_query {
    struct tr_task task;
    struct um_tr_entry *entry;
};

/* The queries for a pattern text; hangs on what the cache says is wanted. */
struct tr_stream {
    struct tr_task task;
    struct um_tr_wanted *wanted;
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
    struct um_tr_cache *cache;
    struct um_tr_service *hearsay; /* what datagrams say, in the cache */

    uint64_t start_ns;
    uint64_t now_ns;
    unsigned depth;    /* nesting of public calls */
    bool wakeup_stale; /* something was scheduled or sent: the timer is to be set anew */

    struct um_tr_lane lanes[UM_TR_LANE_COUNT];
    struct um_list quiet[TR_TASK_KINDS]; /* quiescent tasks */
    struct um_list timings;

    struct um_table sources_by_topic; /* um_tr_advert */
    size_t advert_count;              /* those with final advertisements to send, too */
    size_t advert_topics;
    size_t stream_count;
    bool stream_limit_logged;
    struct um_pattern_cache *pattern_cache; /* compiled wildcard queries of others */
    uint64_t patterns_trusted_ns;           /* until then only patterns in the cache are searched for */
    struct um_tr_budget budget;             /* processor time for what strangers ask */
    uint64_t had_ns, had_asked_ns, kept_ns; /* its clock, when that was last set and what the operation said */
    uint32_t from_ip;                       /* sender of the datagram that is looked at */

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
    uint8_t ext_types_logged[32];
};

/* engine */
void tr_enter(struct um_tr_engine *engine, uint64_t now_ns);
void tr_leave(struct um_tr_engine *engine); /* sets the timer at the outermost level */
const struct um_tr_timing *tr_intern_timing(struct um_tr_engine *engine, const struct um_tr_timing *timing);
void tr_task_init(struct tr_task *task, enum tr_task_kind kind, const struct um_tr_timing *timing);
void tr_task_place(struct um_tr_engine *engine, struct tr_task *task); /* after any change of its schedule */
void tr_task_idle(struct tr_task *task);                               /* out of every list */
/* Of the topics of own sources alone: the application names those, and may name their hash. What strangers name is
 * under um_hash_bytes. */
uint32_t tr_own_hash(const struct um_tr_engine *engine, const char *name, size_t len);
uint32_t tr_engine_ms(const struct um_tr_engine *engine);
void tr_send(struct um_tr_engine *engine, const uint8_t *data, size_t len);
void tr_refresh_trailer(struct um_tr_engine *engine);
void tr_begin_datagram(struct um_tr_engine *engine, struct um_lbmr_builder *builder, uint8_t type, bool source_side);
void tr_flush_datagram(struct um_tr_engine *engine, struct um_lbmr_builder *builder);

/* source side */
bool tr_advert_add_record(struct um_tr_engine *engine, struct um_lbmr_builder *builder,
                          const struct um_tr_advert *advert);
void tr_advert_sent(struct um_tr_engine *engine, struct um_tr_advert *advert);
void tr_take_query(struct um_tr_engine *engine, const char *topic, size_t len);
void tr_take_wildcard_query(struct um_tr_engine *engine, const struct um_lbmr_tqr *query);

/* receiver side */
extern const struct um_tr_service_ops tr_hearsay_ops;
void tr_take_tir(struct um_tr_engine *engine, const struct um_lbmr_tir *tir, uint32_t from_ip);
bool tr_query_add_record(struct um_lbmr_builder *builder, const struct tr_query *query);
bool tr_query_suppressed(const struct tr_query *query);
void tr_query_sent(struct um_tr_engine *engine, struct tr_query *query, bool really); /* may free it */

/* patterns */
int tr_stream_start(void *service, struct um_tr_wanted *wanted, const struct um_tr_timing *asking);
void tr_stream_stop(void *service, struct um_tr_wanted *wanted);

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
