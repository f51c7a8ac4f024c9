/* The objects of the receiving side and how its files share them: um_receiver.c (topics, receivers),
 * um_rcv_source.c and um_rcv_flow.c (one topic of one source: joining; receiving), um_rcv_mail.c (between the two on
 * different loops), um_rcv_audience.c (who hears a topic), um_rcv_endings.c (sources that ended lately),
 * um_join_retries.c (joins that brought nothing), um_rcv_hearsay.c (sources of which nothing was received yet) and
 * um_wildcard.c. Everything is [loop] unless noted. */
#ifndef UM_CORE_RCV_PRIVATE_H
#define UM_CORE_RCV_PRIVATE_H

#include <regex.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/um_log.h"
#include "base/um_mem.h"
#include "base/um_pattern.h"
#include "core/um_collector.h"
#include "core/um_context.h"
#include "core/um_event_queue.h"
#include "core/um_join_retries.h"
#include "core/um_message.h"
#include "core/um_rcv_audience.h"
#include "core/um_rcv_channels.h"
#include "core/um_rcv_flow.h"
#include "core/um_rcv_hf.h"
#include "core/um_rcv_hearsay.h"
#include "core/um_rcv_joins.h"
#include "core/um_receiver.h"
#include "core/um_topic.h"
#include "delivery/um_dc.h"

#define UM_RECEIVER_MAGIC 0x554d5243u /* "UMRC" */
#define UM_WILDCARD_MAGIC 0x554d5743u /* "UMWC" */

/* A receiver topic; one per context and name. */
struct um_rcv_topic {
    struct lbm_topic_t_stct base;           /* first: an lbm_topic_t */
    struct um_table_link link;              /* ctx->rcv_topics */
    bool looked_up;                         /* the application has its pointer */
    bool awaited;                           /* looked up, and no receiver made since: it is kept */
    struct um_list idle_node;               /* ctx->idle_topics: its last receiver is gone */
    const struct um_receiver_options *opts; /* of the first lookup or match; shared, replaced when one changes */
    struct um_tr_topic *tr;                 /* NULL: not subscribed */
    struct um_list receivers;               /* lbm_rcv_t.topic_node, in order of creation */
    struct um_rcv_audience *audience;       /* those of them that have started; NULL: none has yet */
    struct um_rcv_audience *spare;          /* memory for the next one when a receiver goes; NULL: to be allocated */
    struct um_list sources;                 /* um_rcv_source.node */
    struct um_list endings;                 /* rcv_endings.c: sources that ended lately, oldest first */
    struct um_join_retry_topic retries;     /* join_retries.c: joins that brought nothing */
    struct um_rcv_join_topic joins;         /* rcv_joins.c: sources that wait to be joined */
    struct um_rcv_hearsay_topic hearsay;    /* rcv_hearsay.c */
    unsigned ending_count;                  /* in `endings` */
    unsigned closing;                       /* sources whose flows on other loops still refer to the topic */
    unsigned proved;                        /* sources of which something was received */
    atomic_int ready;                       /* sources whose session is active; any thread */
};

/* Of a receiver of a wildcard. */
struct um_rcv_match {
    lbm_rcv_t *rcv;
    struct um_list node;        /* wildcard->matches */
    struct um_list silent_node; /* ctx->silent_matches: nothing was received for it yet */
    uint64_t matched_ns;        /* when it got there */
};

/* Of a receiver of the application that has an event queue. */
struct um_rcv_events {
    lbm_rcv_t *rcv;
    struct um_event_owner owner;
};

struct lbm_rcv_t_stct {
    _Atomic uint32_t magic; /* any thread reads, also while the object is deleted */
    atomic_int ready;       /* sources whose session is active and whose flow calls it; any thread reads */
    lbm_context_t *ctx;
    struct um_rcv_topic *topic; /* NULL after deletion */
    struct um_list topic_node;
    struct um_list ctx_node;      /* ctx->receivers; not linked: internal */
    lbm_wildcard_rcv_t *wildcard; /* NULL: created by the application */
    lbm_rcv_cb_proc proc;
    void *clientd;
    lbm_event_queue_t *evq;
    struct um_collector_link *collector; /* NULL: another callback; the wildcard receiver's when internal */
    lbm_hf_rcv_t *hf;                    /* fixed before it starts; NULL: it does not merge its sources */
    bool indirect;            /* the same: messages go into its event queue, through its merge, or are not all wanted */
    bool wants_channels_only; /* null_channel_behavior discard */
    bool wants_subscribed_only;                 /* unrecognized_channel_behavior discard */
    bool started;                               /* in the topic's audience, whose flows call it */
    atomic_int refs;                            /* any thread: one of the owner, one of each queued event */
    _Atomic(struct um_rcv_channels *) channels; /* any loop reads; NULL: no subscription, or the wildcard receiver's */
    union {
        struct um_rcv_match *match;   /* with a wildcard */
        struct um_rcv_events *events; /* without; NULL: no event queue */
    };
    struct um_timer timer; /* start after creation; linger of an internal receiver */
    /* What became of messages in the flows that called it, and call it no more; minus the counts of those that do, from
     * before they did. ctx->counts_lock */
    struct um_dc_stats *counted; /* NULL: nothing yet */
    uint64_t uncounted;          /* for want of memory for `counted`: times; reported as no_room. ctx->counts_lock */
    atomic_ullong not_queued;    /* any thread: events and messages lost because there was no memory to queue them */
};

/* One topic of one source. `flow` belongs to the loop of its session. */
struct um_rcv_source {
    struct um_list node;           /* topic->sources */
    struct um_rcv_topic *topic;    /* fixed; outlives it, its flow included */
    struct um_rcv_joining joining; /* rcv_joins.c; its offer.info is fixed from the beginning */
    struct um_rcv_route *route;    /* rcv_routes.c: of its session; NULL: nobody is asked for a lane */
    bool closing;                  /* off topic->sources; its flow, on another loop, has not closed yet */
    bool proved;                   /* something of it was received, not only of its session */
    struct um_join_retry *retry;   /* until BOS: what this join is another attempt of; NULL: the first one */
    struct um_rcv_hearer hearer;   /* rcv_hearsay.c: until something of this source itself is received */
    struct um_rcv_flow flow;       /* rcv_flow.c */
};

struct lbm_wildcard_rcv_t_stct {
    _Atomic uint32_t magic; /* any thread reads, also while the object is deleted */
    lbm_context_t *ctx;
    struct um_list ctx_node; /* ctx->wildcard_receivers */
    char *pattern;
    struct um_wildcard_receiver_options opts;
    lbm_rcv_topic_attr_t *attr; /* for the internal receivers */
    struct um_pattern *pcre;    /* pattern_type pcre */
    regex_t regex;              /* pattern_type regex */
    struct um_tr_pattern *tr;
    struct um_timer start_timer;
    struct um_list matches;   /* um_rcv_match.node */
    struct um_dc_stats ended; /* counts of internal receivers that are gone */
    uint64_t ended_not_queued;
    lbm_rcv_cb_proc proc;
    void *clientd;
    lbm_event_queue_t *evq;
    struct um_collector_link *collector;        /* NULL: another callback */
    _Atomic(struct um_rcv_channels *) channels; /* of all its receivers; any loop reads. NULL: no subscription */
    struct um_event_owner events;
    lbm_rcv_t *stand_in; /* whom immediate messages for topics without an internal receiver name; NULL: none came yet */
};

/* The half of a flow on the context's loop: what is fixed in it may be read by the flow, and the name of its topic. */
static inline struct um_rcv_source *um_rcv_source_of(const struct um_rcv_flow *flow)
{
    return UM_CONTAINER_OF(flow, struct um_rcv_source, flow);
}

static inline struct um_timer_wheel *um_rcv_wheel(const struct um_rcv_topic *topic)
{
    return um_loop_wheel(topic->base.ctx->loop);
}

/* receiver.c */
struct um_rcv_topic *um_rcv_topic_find(lbm_context_t *ctx, const char *name);
/* Takes `opts` over (struct um_receiver_options of its own, not shared yet) on success. NULL + error. */
struct um_rcv_topic *um_rcv_topic_add(lbm_context_t *ctx, const char *name, struct um_receiver_options *opts);
void um_rcv_topic_discard(struct um_rcv_topic *topic); /* frees it when nothing refers to it any more */
lbm_rcv_t *um_rcv_new(struct um_rcv_topic *topic, lbm_rcv_cb_proc proc, void *clientd, lbm_event_queue_t *evq,
                      lbm_wildcard_rcv_t *wildcard); /* NULL + error */
/* Interest in the topic, BOS of what is active already. Tries again after a second without memory. */
void um_rcv_start(lbm_rcv_t *rcv, uint64_t now_ns);
int um_rcv_may_detach(lbm_rcv_t *rcv); /* 0: the memory for um_rcv_detach() is there; or -1 + UM_ENOMEM */
void um_rcv_detach(lbm_rcv_t *rcv);    /* off its topic; leaves sources and resolution with the last one */
/* 0; in a callback -1 + UM_EOP where a deletion would wait for the caller itself, or for XSPs. Asked before
 * anything waits. */
int um_rcv_may_delete(const lbm_context_t *ctx, const char *api);
/* Off its topics by `detach`, then, when no loop calls it any more, the rest: at once where there are no XSPs. */
int um_rcv_delete_on_loops(lbm_context_t *ctx, const char *api, int (*detach)(void *arg), int (*rest)(void *arg),
                           void *arg);
void um_rcv_apply_thresholds(struct um_rcv_topic *topic); /* of its options, to the resolver */
void um_rcv_unref(lbm_rcv_t *rcv);                        /* any thread */
void um_rcv_log_refusal(const struct um_msg *msg);        /* a callback returned something else than 0 */
static inline void um_rcv_call(lbm_rcv_t *rcv, struct um_msg *msg)
{
    if (__builtin_expect(rcv->proc(rcv, &msg->pub, rcv->clientd) != 0, 0)) {
        um_rcv_log_refusal(msg);
    }
}
/* Hand one message to one receiver: call it, or put a copy on its queue; before that it may have to go through the
 * merge of a hot failover receiver. */
void um_rcv_deliver(lbm_rcv_t *rcv, struct um_msg *msg);
void um_rcv_deliver_numbered(lbm_rcv_t *rcv, struct um_msg *msg);     /* the same for one with channel or properties */
void um_rcv_hand_over(lbm_rcv_t *rcv, struct um_msg *msg);            /* without that; to whom its channel is given */
void um_rcv_count_not_queued(lbm_rcv_t *rcv, const char *topic_name); /* for want of memory: counted and logged */
/* An event without payload, made for this receiver alone; of a flow, or with NULL of no source. */
void um_rcv_deliver_event(lbm_rcv_t *rcv, int type, const char *topic_name, struct um_rcv_flow *flow);
void um_rcv_ready_changed(void); /* wakes um_receiver_wait_ready */

/* rcv_counts.c: a flow calls the receiver from these counts of its delivery controller on, or has called it until then.
 * [loop] of the flow */
enum um_rcv_count { UM_RCV_COUNT_FROM, UM_RCV_COUNT_UNTIL };
void um_rcv_counted(lbm_rcv_t *rcv, struct um_dc_stats *out); /* rcv->counted; any thread */
void um_rcv_count(lbm_rcv_t *rcv, const struct um_dc_stats *counts, enum um_rcv_count when);

/* rcv_source.c */
void um_rcv_source_join(struct um_rcv_topic *topic, const struct um_tr_source *found);
struct um_rcv_source *um_rcv_source_find(struct um_rcv_topic *topic, const lbm_transport_source_info_t *info);
bool um_rcv_same_source(const lbm_transport_source_info_t *a, const lbm_transport_source_info_t *b);
/* News of the flow: it has begun; something of its topic was received; it is over, the source is gone with it. */
void um_rcv_source_on_bos(struct um_rcv_source *source);
void um_rcv_source_on_proof(struct um_rcv_source *source);
void um_rcv_source_on_end(struct um_rcv_source *source, enum um_rcv_flow_end why);
/* News of a flow on another loop: enum um_rcv_news. */
void um_rcv_source_on_news(struct um_rcv_source *source, unsigned news, enum um_rcv_flow_end why);
void um_rcv_source_on_closed(struct um_rcv_source *source);   /* frees the source */
void um_rcv_sources_set_audience(struct um_rcv_topic *topic); /* the flows get the topic's new one */
/* Topic resolution says that a source is gone: joined, waiting to be joined again, or unknown. */
void um_rcv_source_gone(struct um_rcv_topic *topic, const lbm_transport_source_info_t *info);
extern const struct um_join_retry_ops um_rcv_join_retry_ops;
void um_rcv_source_leave(struct um_rcv_source *source); /* no EOS */
extern const struct um_rcv_join_ops um_rcv_join_ops;
extern const struct um_rcv_hearsay_ops um_rcv_hearsay_ops;

/* rcv_endings.c */
void um_rcv_note_ending(struct um_rcv_topic *topic, const lbm_transport_source_info_t *info, uint64_t now_ns);
bool um_rcv_ended_lately(struct um_rcv_topic *topic, const lbm_transport_source_info_t *info, uint64_t now_ns);
void um_rcv_forget_endings(struct um_rcv_topic *topic); /* all of them */

/* wildcard.c: an internal receiver's topic has no source any more, one again, or none for the whole linger time. The
 * first two do nothing on other receivers. */
void um_wildcard_linger(lbm_rcv_t *rcv);
void um_wildcard_keep(lbm_rcv_t *rcv);
void um_wildcard_linger_over(lbm_rcv_t *rcv);
void um_wildcard_heard(lbm_rcv_t *rcv); /* something was received on the topic: it is not forged */
/* Hands an immediate message to every wildcard receiver whose pattern matches its topic, each time after `before`;
 * false: to none. */
bool um_wildcards_deliver(lbm_context_t *ctx, struct um_msg *msg, void (*before)(void *arg), void *arg);

#endif
