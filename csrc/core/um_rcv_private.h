/* The objects of the receiving side and how its files share them:
 * receiver.c (topics, receivers), rcv_source.c (one topic of one source: joining,
 * delivery controller, events), rcv_endings.c (sources that ended lately) and
 * wildcard.c. Everything is [loop] unless noted. */
#ifndef UM_CORE_RCV_PRIVATE_H
#define UM_CORE_RCV_PRIVATE_H

#include <regex.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/um_log.h"
#include "base/um_pattern.h"
#include "core/collector.h"
#include "core/um_context.h"
#include "core/um_event_queue.h"
#include "core/um_message.h"
#include "core/um_receiver.h"
#include "core/um_topic.h"
#include "delivery/um_dc.h"

#define UM_RECEIVER_MAGIC 0x554d5243u /* "UMRC" */
#define UM_WILDCARD_MAGIC 0x554d5743u /* "UMWC" */

/* A receiver topic; one per context and name. */
struct um_rcv_topic {
    struct lbm_topic_t_stct base;    /* first: an lbm_topic_t */
    bool looked_up;                  /* the application has its pointer: lives as long as the context */
    struct um_receiver_options opts; /* of the first lookup or match */
    struct um_tr_topic *tr;          /* NULL: not subscribed */
    struct um_list receivers;        /* lbm_rcv_t.topic_node, in order of creation */
    unsigned generation;             /* of that list */
    struct um_list sources;          /* um_rcv_source.node */
    struct um_list endings;          /* rcv_endings.c: sources that ended lately, oldest first */
    unsigned ending_count;
    atomic_int ready;         /* sources whose session is active; any thread */
    struct um_dc_stats ended; /* counts of the sources that are gone */
};

struct lbm_rcv_t_stct {
    uint32_t magic;
    lbm_context_t *ctx;
    struct um_rcv_topic *topic; /* NULL after deletion */
    struct um_list topic_node;
    struct um_list ctx_node;      /* ctx->receivers; not linked: internal */
    struct um_list wildcard_node; /* wildcard->matches */
    lbm_wildcard_rcv_t *wildcard; /* NULL: created by the application */
    lbm_rcv_cb_proc proc;
    void *clientd;
    lbm_event_queue_t *evq;
    struct um_collector_link *collector; /* NULL: another callback; the wildcard receiver's when internal */
    struct um_event_owner own_events;
    struct um_event_owner *events; /* own_events, or the wildcard receiver's */
    atomic_int refs;               /* any thread: one of the owner, one of each queued event */
    bool greeted;                  /* BOS of the sessions already active has been delivered */
    struct um_timer timer;         /* start after creation; linger of an internal receiver */
    struct um_dc_stats before;     /* counts of the topic when this receiver was created */
    uint64_t not_queued;           /* events and messages lost because there was no memory to queue them */
};

/* One topic of one source: the owner of a delivery controller. */
struct um_rcv_source {
    struct um_list node; /* topic->sources */
    struct um_rcv_topic *topic;
    lbm_transport_source_info_t info;
    struct um_rcv_stream stream;
    struct um_dc *dc;
    struct um_timer loss_timer;
    struct um_timer withdrawn_timer; /* armed: the source is gone, its last messages may still be on their way */
    uint64_t withdrawn_progress;     /* what had arrived when the timer was armed */
    struct um_msg *msg;              /* template: source and topic text filled in */
    void *clientd;                   /* source_notification_function, lbm_rcv_msg_source_clientd */
    uint64_t wall_ns;                /* time in msg->pub.tsp */
    bool bos_seen;
    bool ready;        /* counted in topic->ready: from after its BOS until before its EOS */
    uint64_t id;       /* one of a kind in this process, from 1 */
    bool reading;      /* on_read_end is still to come */
    lbm_rcv_t *direct; /* the only receiver, to be called at once; the template is made up for it. NULL: unknown */
    unsigned direct_generation; /* topic->generation at that time */
    bool held;                  /* the session is left unread for a full collector */
    struct um_list held_node;   /* ctx->held_sources */
    struct um_log_limit discard_log;
};

struct lbm_wildcard_rcv_t_stct {
    uint32_t magic;
    lbm_context_t *ctx;
    struct um_list ctx_node; /* ctx->wildcard_receivers */
    char *pattern;
    struct um_wildcard_receiver_options opts;
    lbm_rcv_topic_attr_t *attr; /* for the internal receivers */
    struct um_pattern *pcre;    /* pattern_type pcre */
    regex_t regex;              /* pattern_type regex */
    struct um_tr_pattern *tr;
    struct um_timer start_timer;
    struct um_list matches;   /* lbm_rcv_t.wildcard_node */
    struct um_dc_stats ended; /* counts of internal receivers that are gone */
    uint64_t ended_not_queued;
    lbm_rcv_cb_proc proc;
    void *clientd;
    lbm_event_queue_t *evq;
    struct um_collector_link *collector; /* NULL: another callback */
    struct um_event_owner events;
};

static inline struct um_timer_wheel *um_rcv_wheel(const struct um_rcv_topic *topic)
{
    return um_loop_wheel(topic->base.ctx->loop);
}

/* receiver.c */
struct um_rcv_topic *um_rcv_topic_find(lbm_context_t *ctx, const char *name);
/* Takes `opts` over on success. NULL + error. */
struct um_rcv_topic *um_rcv_topic_add(lbm_context_t *ctx, const char *name, struct um_receiver_options *opts);
void um_rcv_topic_discard(struct um_rcv_topic *topic); /* frees it when nothing refers to it any more */
lbm_rcv_t *um_rcv_new(struct um_rcv_topic *topic, lbm_rcv_cb_proc proc, void *clientd, lbm_event_queue_t *evq,
                      lbm_wildcard_rcv_t *wildcard); /* NULL + error */
/* Interest in the topic, BOS of what is active already. Tries again after a second without memory. */
void um_rcv_start(lbm_rcv_t *rcv, uint64_t now_ns);
void um_rcv_detach(lbm_rcv_t *rcv);                /* off its topic; leaves sources and resolution with the last one */
void um_rcv_unref(lbm_rcv_t *rcv);                 /* any thread */
void um_rcv_log_refusal(const struct um_msg *msg); /* a callback returned something else than 0 */
static inline void um_rcv_call(lbm_rcv_t *rcv, struct um_msg *msg)
{
    if (__builtin_expect(rcv->proc(rcv, &msg->pub, rcv->clientd) != 0, 0)) {
        um_rcv_log_refusal(msg);
    }
}
/* Hand one message to one receiver: call it, or put a copy on its queue. */
void um_rcv_deliver(lbm_rcv_t *rcv, struct um_msg *msg);
/* An event without payload, made for this receiver alone. */
void um_rcv_deliver_event(lbm_rcv_t *rcv, int type, const char *source, void *source_clientd);
void um_rcv_ready_changed(void); /* wakes um_receiver_wait_ready */

/* rcv_counts.c */
void um_rcv_topic_counts(const struct um_rcv_topic *topic,
                         struct um_dc_stats *out);                 /* all its sources, gone ones too */
void um_rcv_counts(const lbm_rcv_t *rcv, struct um_dc_stats *out); /* since the receiver was created */

/* rcv_source.c */
void um_rcv_source_join(struct um_rcv_topic *topic, const struct um_tr_source *found);
struct um_rcv_source *um_rcv_source_find(struct um_rcv_topic *topic, const lbm_transport_source_info_t *info);
bool um_rcv_same_source(const lbm_transport_source_info_t *a, const lbm_transport_source_info_t *b);
void um_rcv_source_end(struct um_rcv_source *source); /* EOS to the receivers, then gone */
/* Topic resolution says that it is gone: ended when nothing of it arrives any more. */
void um_rcv_source_withdrawn(struct um_rcv_source *source);
void um_rcv_source_leave(struct um_rcv_source *source); /* no EOS */

/* rcv_endings.c */
void um_rcv_note_ending(struct um_rcv_topic *topic, const lbm_transport_source_info_t *info, uint64_t now_ns);
bool um_rcv_ended_lately(struct um_rcv_topic *topic, const lbm_transport_source_info_t *info, uint64_t now_ns);
void um_rcv_forget_endings(struct um_rcv_topic *topic); /* all of them */

/* wildcard.c: an internal receiver's topic has no source any more, one again, or none for the whole linger time. The
 * first two do nothing on other receivers. */
void um_wildcard_linger(lbm_rcv_t *rcv);
void um_wildcard_keep(lbm_rcv_t *rcv);
void um_wildcard_linger_over(lbm_rcv_t *rcv);

#endif
