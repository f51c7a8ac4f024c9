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

struct um_event;

struct um_event_ops {
    void (*run)(struct um_event *event);     /* on a dispatch thread; frees the event */
    void (*discard)(struct um_event *event); /* never delivered; frees the event */
};

struct um_event_owner {
    lbm_event_queue_t *evq; /* NULL: the object has no event queue */
    int pending, running;   /* queue lock */
    bool closed;            /* queue lock */
    lbm_event_queue_cancel_cb_proc cancel_proc; /* set by close */
    void *cancel_clientd;
    void (*on_idle)(struct um_event_owner *owner); /* after the last event of a closed owner: frees the object */
};

struct um_event {
    struct um_list node;
    const struct um_event_ops *ops;
    struct um_event_owner *owner; /* may be NULL */
    uint64_t enqueue_ns;
};

void um_event_owner_init(struct um_event_owner *owner, lbm_event_queue_t *evq);
/* Any thread. A closed owner or a shut-down queue discards the event at once. */
void um_event_enqueue(lbm_event_queue_t *evq, struct um_event_owner *owner, struct um_event *event);
/* The object is being deleted: purge or mark its events (queue_objects_purged_on_close). `on_idle` is called exactly once, when no
 * event of it is queued or running (perhaps inside this call). cbinfo as in the *_ex calls, NULL for the plain forms.
 * -1 + UM_EINVAL when cbinfo's queue was not created with queue_cancellation_callbacks_enabled. */
int um_event_owner_close(struct um_event_owner *owner, lbm_event_queue_cancel_cb_info_t *cbinfo,
                         void (*on_idle)(struct um_event_owner *owner));
/* Check cbinfo before anything is torn down. */
int um_event_cancel_check(const lbm_event_queue_cancel_cb_info_t *cbinfo, const char *api);

#endif
