/* Event queues: unbounded FIFO of events, many producers, many dispatchers.
 * An owner groups the events of one object (receiver, source, timer, fd), so
 * that deleting the object purges them and cancel callbacks fire when the last
 * one has run. No lock is held while an event runs. */
#ifndef UM_CORE_EVENT_QUEUE_H
#define UM_CORE_EVENT_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include <lbm/lbm.h>

#include "base/um_list.h"
#include "config/um_options.h"

struct um_event;

/* What the statistics of lbm_event_queue_stats_t count an event as. */
enum um_event_class {
    UM_EVENT_CALLBACK, /* anything without a class of its own */
    UM_EVENT_DATA,
    UM_EVENT_RESPONSE,
    UM_EVENT_TOPICLESS_IM,
    UM_EVENT_WILDCARD,
    UM_EVENT_IO,
    UM_EVENT_TIMER,
    UM_EVENT_SOURCE,
    UM_EVENT_CONTEXT_SOURCE,
    UM_EVENT_CANCEL,
    UM_EVENT_UNBLOCK,
    UM_EVENT_CLASS_COUNT
};

struct um_event_ops {
    void (*run)(struct um_event *event);     /* on a dispatch thread; frees the event */
    void (*discard)(struct um_event *event); /* never delivered; frees the event */
    enum um_event_class event_class;
    bool after_closes; /* waits until the objects being closed have run their last callback (event sync: timers) */
};

enum um_event_owner_state {
    UM_OWNER_OPEN,
    UM_OWNER_CLOSING, /* nothing more is queued or begun; what is queued or running may have to end first */
    UM_OWNER_IDLE,    /* nothing is queued or running any more: on_idle has been or is being called */
};

struct um_event_owner {
    lbm_event_queue_t *evq;                     /* NULL: the object has no event queue */
    struct um_list events;                      /* queue lock: um_event.owner_node, oldest first */
    int pending, running;                       /* queue lock */
    enum um_event_owner_state state;            /* queue lock */
    lbm_event_queue_cancel_cb_proc cancel_proc; /* set by close */
    void *cancel_clientd;
    void (*on_idle)(struct um_event_owner *owner); /* after the last event of a closed owner: frees the object */
};

struct um_event {
    struct um_list node;
    struct um_list owner_node; /* so that a deletion finds the object's events without a look at the others */
    const struct um_event_ops *ops;
    struct um_event_owner *owner; /* may be NULL */
    uint64_t enqueue_ns;
};

void um_event_owner_init(struct um_event_owner *owner, lbm_event_queue_t *evq);
/* Any thread. A closed owner or a shut-down queue discards the event at once. */
void um_event_enqueue(lbm_event_queue_t *evq, struct um_event_owner *owner, struct um_event *event);
/* The object is being deleted: purge or mark its events (queue_objects_purged_on_close). `on_idle` is called exactly
 * once, when no event of it is queued or running (perhaps inside this call). cbinfo as in the *_ex calls, NULL for the
 * plain forms. -1 + UM_EINVAL when cbinfo's queue was not created with queue_cancellation_callbacks_enabled. */
int um_event_owner_close(struct um_event_owner *owner, lbm_event_queue_cancel_cb_info_t *cbinfo,
                         void (*on_idle)(struct um_event_owner *owner));
/* The same without a look at the options of a queue: `cancel` may be NULL. */
void um_event_owner_end(struct um_event_owner *owner, lbm_event_queue_cancel_cb_proc cancel, void *clientd,
                        void (*on_idle)(struct um_event_owner *owner));
/* Check cbinfo before anything is torn down. */
int um_event_cancel_check(const lbm_event_queue_cancel_cb_info_t *cbinfo, const char *api);

/* The queue itself, as csrc/api/lbm_event_queue.c sees it. Any thread. Every call returns -1 + error on failure. */
int um_event_queue_create(lbm_event_queue_t **out, lbm_event_queue_monitor_proc proc, void *clientd,
                          const lbm_event_queue_attr_t *attr);
/* UM_EINVAL when evq is NULL, not a live queue, or inherited through fork. */
int um_event_queue_check(const lbm_event_queue_t *evq, const char *api);
int um_event_queue_delete(lbm_event_queue_t *evq);                    /* UM_EOP while a thread dispatches */
int um_event_queue_dispatch(lbm_event_queue_t *evq, lbm_ulong_t tmo); /* events run */
int um_event_queue_unblock(lbm_event_queue_t *evq);
int um_event_queue_size(lbm_event_queue_t *evq);
void um_event_queue_shutdown(lbm_event_queue_t *evq);
void um_event_queue_stats(lbm_event_queue_t *evq, lbm_event_queue_stats_t *out);
void um_event_queue_stats_reset(lbm_event_queue_t *evq);
/* Events moved or taken out otherwise than to run them, since the creation: what deletions cost. */
uint64_t um_event_queue_steps(lbm_event_queue_t *evq);
/* Run fn on the options of the queue with its lock held. */
int um_event_queue_with_options(lbm_event_queue_t *evq, int (*fn)(struct um_event_queue_options *opts, void *arg),
                                void *arg);

#endif
