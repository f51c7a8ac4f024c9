/* Inside of the SRS engine: its records and what its files call in each other.
 * Everything belongs to the engine's thread.
 *
 * A session is a client across its connections; a peer is one connection. What a
 * peer has been told is not kept for each source: it follows from the state of
 * its interest. Interest that is WAITING has still to be listed; once it is TOLD,
 * every change of the topic is queued. */
#ifndef UM_RESOLVER_UM_SRS_PRIVATE_H
#define UM_RESOLVER_UM_SRS_PRIVATE_H

#include "base/um_list.h"
#include "base/um_log.h"
#include "base/um_pattern.h"
#include "base/um_table.h"
#include "base/um_timer.h"
#include "resolver/um_srs_engine.h"
#include "wire/um_lbmsrs.h"
#include "wire/um_rsocket.h"

#define SRS_TICK_NS (100 * UM_NS_PER_MS) /* unit in which records remember when their client went away */
#define SRS_TICK_MASK 0x3fffffffu        /* what they remember of it */

struct srs_address {
    struct um_table_link link;
    uint32_t ip;
    size_t refs; /* peers, sessions and patterns */
    size_t connections, unregistered, sessions, patterns;
    uint64_t bytes; /* charged for records */
};

struct srs_topic {
    struct um_table_link link;
    struct um_list sources;  /* srs_source.of_topic */
    struct um_list interest; /* srs_interest.of_topic */
    struct um_list matches;  /* srs_match.of_topic */
    uint32_t holds;          /* sources that have ended but wait in queues */
    bool matched;            /* with every pattern that is complete: topics without a source never were */
    uint8_t len;
    char name[];
};

/* What sources of one transport session and context have in common: interned. */
struct srs_shape {
    uint64_t ulb_registration_id;
    uint32_t host_id, functionality_flags, request_ip, domain_id, ulb_source_id, ulb_queue_id, version, version_flags;
    int32_t cost;
    uint16_t request_port, ttl;
    uint8_t encryption, compression, context_type, source_len;
    uint8_t instance[UM_LBMSRS_INSTANCE_LEN];
    char source[UM_LBMSRS_STRING_MAX + 1]; /* cut behind its NUL */
};

struct srs_source {
    struct um_table_link link; /* by OTID; `word` is the topic index */
    struct um_list of_session; /* active or inactive */
    struct um_list of_topic;
    struct srs_topic *topic;
    struct srs_session *session;
    const struct srs_shape *shape; /* interned */
    uint64_t number;               /* counts up with every new source */
    uint32_t refs;                 /* entries of queues */
    uint32_t away_tick : 30;       /* when it became inactive */
    uint32_t inactive : 1;
    uint32_t ended : 1; /* only queues know it still */
    uint8_t otid[UM_LBMSRS_OTID_LEN];
};

enum srs_interest_state {
    SRS_WAITING, /* to be listed */
    SRS_TOLD,
    SRS_ENDED,   /* deleted by the client, which may remember sources up to `until`: told their end */
    SRS_INACTIVE /* its client is away */
};

/* Common to interest in a topic and to a subscription of a pattern. */
struct srs_want {
    struct um_table_link link; /* by (topic or pattern, session) */
    struct um_list of_session; /* active or inactive */
    struct um_list waiting;    /* srs_peer.waiting */
    struct srs_session *session;
    const struct srs_context *context; /* interned */
    uint32_t away_tick;
    uint8_t state; /* enum srs_interest_state */
    bool is_pattern;
};

struct srs_interest {
    struct srs_want want;
    struct um_list of_topic;
    struct srs_topic *topic;
    uint64_t until; /* ENDED, INACTIVE and WAITING: newest source it may remember, whose end it is told */
};

struct srs_subscription {
    struct srs_want want;
    struct um_list of_pattern;
    struct srs_pattern *pattern;
    struct um_table_scan scan; /* topics it has been listed */
    bool missed;               /* a match, for want of room */
};

/* Who has an interest, as routers are told: interned. */
struct srs_context {
    uint32_t domain_id, version, version_flags;
    uint8_t instance[UM_LBMSRS_INSTANCE_LEN];
    uint8_t type;
};

struct srs_pattern {
    struct um_table_link link;
    struct um_pattern *compiled;
    struct srs_address *address; /* whose client had it first: it and its matches are charged there */
    struct um_list subscriptions;
    struct um_list matches;
    struct um_list all;
    uint64_t cost_ns; /* of processor time, with the last new topic */
    bool complete;    /* every topic has been matched; new ones always are */
    uint8_t len;
    char text[];
};

struct srs_match {
    struct um_list of_topic, of_pattern;
    struct srs_pattern *pattern;
    struct srs_topic *topic;
};

struct srs_session {
    struct um_table_link link;
    uint32_t id;
    struct um_srs_engine *engine;
    struct um_srs_peer *peer; /* NULL: away */
    struct srs_address *address;
    struct um_list sources, inactive_sources;
    struct um_list wants, inactive_wants; /* interest and subscriptions */
    struct um_timer expiry;
    size_t source_count, pattern_count;
};

/* Encoded record for a router. */
struct srs_note {
    uint16_t len, id;
    uint8_t bytes[];
};

struct srs_queue {
    uintptr_t *items; /* see um_srs_queue.c */
    size_t capacity, head, count;
};

struct srs_leave {
    uint64_t due_ns;
    struct srs_source *source; /* a reference */
};

enum srs_peer_state { SRS_OPEN, SRS_SET_UP, SRS_REGISTERED };

struct um_srs_peer {
    struct um_srs_engine *engine;
    void *handle;
    struct um_list all, ready, flooded, forwarded; /* lists of the engine */
    struct srs_address *address;
    uint16_t port;
    enum srs_peer_state state;
    uint8_t mode, app_type;
    uint32_t stream;      /* records go there; 0: not asked for */
    uint32_t last_stream; /* of the client: they go up */
    uint32_t credit;
    uint64_t lifetime_ns, heard_ns, id;
    bool doomed;         /* too slow: closed in the next turn */
    uint64_t retry_ns;   /* closed then, to come again: some of its records had no room; 0: none */
    bool blocked;        /* until it is writable */
    bool owes_keepalive; /* answer that waits for it */
    bool flooding;       /* the list of all sources goes on */
    bool forwarding;     /* the list of all interest goes on */
    struct um_table_scan flood, forward_interest, forward_patterns;
    uint64_t flood_until; /* newest source when the list began */
    uint64_t round;       /* last round of telling it was in */
    struct um_timer life;
    struct um_rsocket_reader reader;
    struct srs_session *session;
    struct um_list waiting; /* srs_want.waiting */
    struct srs_queue queue;
    struct srs_leave *leaves; /* ring, in order of due time */
    size_t leave_capacity, leave_head, leave_count;
    struct um_timer leave_timer;
    struct um_srs_client_stats stats;
};

struct um_srs_engine {
    struct um_srs_config config;
    struct um_timer_wheel *wheel;
    struct um_timer service;
    uint64_t start_ns, now_ns;
    uint64_t patient_until_ns; /* nobody is closed for silence before */
    struct um_table addresses, sessions, sources, topics, interest, subscriptions, patterns;
    struct um_list peers, ready, flooded, forwarded, all_patterns;
    size_t connections, unregistered;
    uint64_t bytes, last_number, round;
    uint64_t lines_second;
    unsigned lines;
    struct um_srs_stats stats;
    uint8_t *batch; /* of batch_bytes */
};

/* ---- um_srs_state.c: memory, addresses, topics, sessions ------------------- */

/* Zeroed; NULL: beyond a bound, or no memory; counted. `charge` is what is counted as taken, at least `size`. `address`
 * may be NULL. */
void *srs_state_alloc(struct um_srs_engine *engine, struct srs_address *address, size_t size, size_t charge);
void srs_state_free(struct um_srs_engine *engine, struct srs_address *address, void *ptr, size_t charge);
bool srs_is(struct um_slice text, const char *name, size_t len);
struct srs_address *srs_address_take(struct um_srs_engine *engine, uint32_t ip);
void srs_address_drop(struct um_srs_engine *engine, struct srs_address *address);
struct srs_topic *srs_topic_find(const struct um_srs_engine *engine, struct um_slice name);
struct srs_topic *srs_topic_get(struct um_srs_engine *engine, struct um_slice name); /* makes it; NULL: no room */
void srs_topic_try_free(struct um_srs_engine *engine, struct srs_topic *topic);
struct srs_session *srs_session_find(const struct um_srs_engine *engine, uint32_t id);
struct srs_session *srs_session_get(struct um_srs_engine *engine, uint32_t id, struct srs_address *address);
void srs_session_away(struct srs_session *session); /* its connection has ended; may free it */
void srs_session_try_free(struct srs_session *session);
uint32_t srs_tick(const struct um_srs_engine *engine);
/* Log lines about what clients do: at most a number in a second. */
bool srs_may_log(struct um_srs_engine *engine);

/* ---- um_srs_frames.c: what comes ------------------------------------------- */

void srs_peer_close(struct um_srs_peer *peer, enum um_rsocket_error error); /* error 0: none is sent */
void srs_peer_free(struct um_srs_peer *peer);
void srs_peer_watch(struct um_srs_peer *peer); /* arms its timer */
/* A record had no room: the client is told nothing of it, but loses its connection in a while and says all again. */
void srs_refused(struct um_srs_peer *peer);
const char *srs_peer_name(const struct um_srs_peer *peer, char *out, size_t len);

/* ---- um_srs_sources.c -------------------------------------------------------- */

void srs_on_sir(struct um_srs_peer *peer, const struct um_lbmsrs_record *record);
void srs_on_sdr(struct um_srs_peer *peer, const struct um_lbmsrs_record *record);
void srs_on_slr(struct um_srs_peer *peer, const struct um_lbmsrs_record *record);
void srs_leaves_drop(struct um_srs_peer *peer);
void srs_on_leave_timer(struct um_timer *timer, uint64_t now_ns);
void srs_source_end(struct um_srs_engine *engine, struct srs_source *source); /* tells its end, forgets it */
void srs_source_unref(struct um_srs_engine *engine, struct srs_source *source);
void srs_source_record(const struct srs_source *source, bool end, struct um_lbmsrs_record *out);

/* ---- um_srs_interest.c and um_srs_patterns.c ---------------------------------- */

void srs_on_rir(struct um_srs_peer *peer, const struct um_lbmsrs_record *record);
void srs_on_rdr(struct um_srs_peer *peer, const struct um_lbmsrs_record *record);
void srs_on_wir(struct um_srs_peer *peer, const struct um_lbmsrs_record *record);
void srs_on_wdr(struct um_srs_peer *peer, const struct um_lbmsrs_record *record);
const struct srs_context *srs_context_of(const struct um_lbmsrs_record *record); /* interned; NULL: no memory */
struct srs_interest *srs_interest_find(const struct um_srs_engine *engine, const struct srs_topic *topic,
                                       const struct srs_session *session);
void srs_interest_free(struct um_srs_engine *engine, struct srs_interest *interest);
void srs_subscription_free(struct um_srs_engine *engine, struct srs_subscription *subscription);
void srs_want_free(struct um_srs_engine *engine, struct srs_want *want);
void srs_want_count(struct um_srs_engine *engine, const struct srs_want *want, int active, int inactive);
/* Links a new want, or one that is there again, to be listed. */
void srs_want_begin(struct um_srs_peer *peer, struct srs_want *want);
/* Goes on with what has still to be listed to the peer, a bounded part of it. */
void srs_list_some(struct um_srs_peer *peer);
void srs_topic_match_all(struct um_srs_engine *engine, struct srs_topic *topic);
void srs_topic_unmatch(struct um_srs_engine *engine, struct srs_topic *topic);
/* Has the peer been told of this topic's sources because of another want than this one? */
bool srs_covered(const struct um_srs_peer *peer, const struct srs_topic *topic, const struct srs_want *except);
/* Goes on listing a subscription by one step. SRS_GONE: it was too costly and is no more. */
enum srs_listed { SRS_MORE, SRS_DONE, SRS_GONE };
enum srs_listed srs_subscription_list(struct um_srs_peer *peer, struct srs_subscription *subscription);
uint32_t srs_want_hash(const void *what, const struct srs_session *session);
/* Routers: tell all of them, or the one whose list goes on. */
void srs_forward(struct um_srs_engine *engine, const struct srs_want *want, bool end);
void srs_forward_list(struct um_srs_peer *peer);

/* ---- um_srs_queue.c: what goes out ---------------------------------------------- */

void srs_tell(struct um_srs_engine *engine, struct srs_source *source, bool end);    /* all who want to know */
void srs_push_change(struct um_srs_peer *peer, struct srs_source *source, bool end); /* dooms who takes none */
void srs_push_topic(struct um_srs_peer *peer, struct srs_topic *topic, uint64_t until);
/* A record for a router, to be filled; NULL: no room. */
struct srs_note *srs_note_alloc(struct um_srs_peer *router, size_t len);
void srs_push_note(struct um_srs_peer *peer, struct srs_note *note); /* takes it over */
void srs_queue_drop(struct um_srs_peer *peer);
void srs_peer_ready(struct um_srs_peer *peer);
void srs_on_service(struct um_timer *timer, uint64_t now_ns);
void srs_send_frame(struct um_srs_peer *peer, const struct um_rsocket_frame *frame);

#endif
