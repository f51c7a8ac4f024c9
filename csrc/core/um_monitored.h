/* What core says to whoever monitors its objects, and what it tells of them beside their statistics. The functions of
 * `um_monitor` are those of csrc/lbmmon, which stands above the public calls; core knows no more of it than this.
 * Called where objects are made and deleted; the facts on any thread but a loop's. */
#ifndef UM_CORE_MONITORED_H
#define UM_CORE_MONITORED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <lbm/lbm.h>

#include "config/um_options.h"

enum um_monitored_kind {
    UM_MONITORED_CONTEXT,
    UM_MONITORED_SOURCE,
    UM_MONITORED_SMART_SOURCE,
    UM_MONITORED_RECEIVER,
    UM_MONITORED_WILDCARD,
    UM_MONITORED_EVENT_QUEUE
};

/* The name of the contexts that carry monitoring records; several of a process may have it. */
#define UM_MONITORING_CONTEXT_NAME "29west_statistics_context"

/* The options monitor_* that rule the automatic monitoring of an object. Strings are the object's. */
struct um_monitor_settings {
    unsigned long interval_sec; /* 0: none */
    int transport, format;
    const char *transport_opts, *format_opts, *appid;
};

struct um_loop;

struct um_monitor {
    /* An object with an interval was made. Nobody has it before this returns, which does not wait: it may be [loop]. */
    void (*created)(enum um_monitored_kind kind, void *object, const struct um_monitor_settings *settings);
    /* It is to be deleted: returns when nobody looks at it any more, and nobody begins to until it is `closed`. */
    void (*closing)(void *object);
    void (*closed)(void *object, bool gone); /* it is gone, or the deletion has failed */
};
extern const struct um_monitor um_monitor;

extern atomic_uint um_monitored_objects; /* monitored now: without any, deletions ask nobody */

void um_monitored_created(enum um_monitored_kind kind, void *object, const struct um_monitor_settings *settings);
void um_monitored_context_created(lbm_context_t *ctx);
void um_monitored_receiver_created(lbm_rcv_t *rcv);
void um_monitored_wildcard_created(lbm_wildcard_rcv_t *wrcv);

/* Around a deletion that may fail, not on the object's loop: whether anybody was told. -1 + UM_EOP: whoever looks at
 * the object waits for its loop, which waits for a loop of the calling thread. `loop` NULL: it has none. */
int um_monitored_closing(void *object, struct um_loop *loop, bool *told);
static inline void um_monitored_closed(bool told, void *object, bool gone)
{
    if (told) {
        um_monitor.closed(object, gone);
    }
}

/* Of a context, or of the one an object belongs to: what packets say of it. */
struct um_monitored_facts {
    uint32_t ip;         /* network order; of its request port */
    uint8_t instance[8]; /* all zero: it has none */
    uint32_t domain_id;  /* 0: unknown */
};
/* 0, or -1 + error. */
int um_monitored_facts(lbm_context_t *ctx, struct um_monitored_facts *out);

/* Interest: the topic of a receiver with the sources it has joined; the pattern of a wildcard receiver. */
struct um_monitored_topic {
    char name[256];
    lbm_rcv_topic_stats_t *sources; /* the caller's, to be given back by um_free */
    size_t count;
};
int um_monitored_topic(lbm_rcv_t *rcv, struct um_monitored_topic *out);
void um_monitored_pattern(const lbm_wildcard_rcv_t *wrcv, lbm_wildcard_rcv_stats_t *out);

#endif
