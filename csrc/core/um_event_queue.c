/* Event queues. One lock per queue, taken once per event on each side; events,
 * monitor and cancel callbacks run without it. Producers are any thread,
 * dispatchers are the threads inside um_event_queue_dispatch. */
#define _GNU_SOURCE
#include "core/um_event_queue.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "base/um_timer.h"
#include "base/um_wait.h"
#include "base/um_fork.h"
#include "core/um_monitored.h"

#define UM_EVENT_QUEUE_MAGIC 0x554d4551u /* "UMEQ" */
#define UM_MEAN_WEIGHT 8                 /* exponentially weighted means: 1/8 of each new sample */
#define UM_PURGED_AT_ONCE 1024           /* events taken out before others get the lock */

/* Microseconds; count 0: nothing sampled since the reset. */
struct um_event_samples {
    uint64_t min, mean, max;
    bool sampled;
};

struct um_event_class_stats {
    uint64_t now, total;
    struct um_event_samples service;
};

struct lbm_event_queue_t_stct {
    _Atomic uint32_t magic; /* any thread reads, also while the object is deleted */
    unsigned fork_generation;
    lbm_event_queue_monitor_proc monitor;
    void *monitor_clientd;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct um_event_queue_options opts; /* lock */
    struct um_list events;              /* lock */
    struct um_list deferred;            /* lock: wait until nothing is closing; older than all in events */
    uint64_t steps;                     /* lock: see um_event_queue_steps() */
    size_t size;                        /* lock: events without unblock markers */
    int sleepers;                       /* lock: dispatchers waiting and not yet signalled */
    int dispatchers;                    /* lock: threads inside dispatch */
    int closing;                        /* lock: closed owners with a callback in progress or events to drop */
    bool shut_down;                     /* lock */
    struct um_event_samples age;        /* lock */
    uint64_t total;                     /* lock */
    struct um_event_class_stats stats[UM_EVENT_CLASS_COUNT]; /* lock */
};

/* ---- statistics ---- */

static void um_samples_add(struct um_event_samples *samples, uint64_t us)
{
    if (!samples->sampled) {
        *samples = (struct um_event_samples){us, us, us, true};
        return;
    }
    samples->min = us < samples->min ? us : samples->min;
    samples->max = us > samples->max ? us : samples->max;
    samples->mean = (samples->mean * (UM_MEAN_WEIGHT - 1) + us) / UM_MEAN_WEIGHT;
}

static enum um_event_class um_event_class_of(const struct um_event *event)
{
    return event->ops->event_class;
}

/* lock held */
static void um_event_count_in(lbm_event_queue_t *evq, enum um_event_class event_class)
{
    struct um_event_class_stats *stats = &evq->stats[event_class];
    stats->now++;
    if (evq->opts.queue_count_enabled) {
        stats->total++;
        evq->total += event_class != UM_EVENT_UNBLOCK;
    }
}

/* ---- adding and taking events ---- */

static void um_unblock_free(struct um_event *event)
{
    um_free(event);
}

static const struct um_event_ops um_unblock_ops = {
    .run = um_unblock_free, .discard = um_unblock_free, .event_class = UM_EVENT_UNBLOCK};

static bool um_event_is_unblock(const struct um_event *event)
{
    return event->ops == &um_unblock_ops;
}

/* lock held, and the signal is given under it: a dispatcher that takes the event may be the one whose end lets the
 * application delete the queue. */
static void um_event_wake_one(lbm_event_queue_t *evq)
{
    if (evq->sleepers > 0) {
        evq->sleepers--;
        pthread_cond_signal(&evq->wake);
    }
}

/* lock held */
static void um_event_push(lbm_event_queue_t *evq, struct um_event *event)
{
    um_list_push_back(&evq->events, &event->node);
    um_list_init(&event->owner_node);
    if (event->owner != NULL) {
        event->owner->pending++;
        um_list_push_back(&event->owner->events, &event->owner_node);
    }
    evq->size += !um_event_is_unblock(event);
    um_event_count_in(evq, um_event_class_of(event));
    um_event_wake_one(evq);
}

/* lock held: unlink and keep the counts */
static void um_event_unlink(lbm_event_queue_t *evq, struct um_event *event)
{
    um_list_remove(&event->node);
    um_list_remove(&event->owner_node);
    evq->size -= !um_event_is_unblock(event);
    evq->stats[um_event_class_of(event)].now--;
    if (event->owner != NULL) {
        event->owner->pending--;
    }
}

/* lock held */
static bool um_event_wants_clock(const lbm_event_queue_t *evq)
{
    return evq->opts.queue_delay_warning != 0 || evq->opts.queue_age_enabled;
}

void um_event_owner_init(struct um_event_owner *owner, lbm_event_queue_t *evq)
{
    *owner = (struct um_event_owner){.evq = evq};
    um_list_init(&owner->events);
}

void um_event_enqueue(lbm_event_queue_t *evq, struct um_event_owner *owner, struct um_event *event)
{
    event->owner = owner;
    event->enqueue_ns = 0;
    pthread_mutex_lock(&evq->lock);
    if (evq->shut_down || (owner != NULL && owner->state != UM_OWNER_OPEN)) {
        pthread_mutex_unlock(&evq->lock);
        event->ops->discard(event);
        return;
    }
    if (um_event_wants_clock(evq)) {
        event->enqueue_ns = um_clock_ns();
    }
    um_event_push(evq, event);
    bool notify = evq->opts.queue_enqueue_notification && evq->monitor != NULL;
    pthread_mutex_unlock(&evq->lock);
    if (notify) {
        evq->monitor(evq, LBM_EVENT_QUEUE_ENQUEUE_NOTIFICATION, 1, 0, evq->monitor_clientd);
    }
}

/* lock held: the first event that may run now, not unlinked; NULL when there is none. Those that must wait are put
 * aside, so that each is passed over once. */
static struct um_event *um_event_first(lbm_event_queue_t *evq)
{
    struct um_list *node;
    while ((node = um_list_first(&evq->events)) != NULL) {
        struct um_event *event = UM_CONTAINER_OF(node, struct um_event, node);
        if (evq->closing == 0 || !event->ops->after_closes) {
            return event;
        }
        um_list_remove(node);
        um_list_push_back(&evq->deferred, node);
        evq->steps++;
    }
    return NULL;
}

/* lock held: back to where they were. */
static void um_event_end_deferral(lbm_event_queue_t *evq)
{
    struct um_list *first = um_list_first(&evq->deferred), *last = evq->deferred.prev;
    if (first != NULL) {
        last->next = evq->events.next;
        last->next->prev = last;
        evq->events.next = first;
        first->prev = &evq->events;
        um_list_init(&evq->deferred);
    }
}

/* ---- owners ---- */

/* lock held: is this the moment of on_idle? Marks it as taken. */
static bool um_event_owner_take_idle(struct um_event_owner *owner)
{
    if (owner->state != UM_OWNER_CLOSING || owner->pending > 0 || owner->running > 0) {
        return false;
    }
    owner->state = UM_OWNER_IDLE;
    return true;
}

/* lock held; after the last event of a closing owner. Events that waited for it may run now. */
static void um_event_closing_done(lbm_event_queue_t *evq)
{
    evq->closing--;
    if (evq->closing == 0) {
        um_event_end_deferral(evq);
    }
    if (evq->closing == 0 && !um_list_empty(&evq->events)) {
        evq->sleepers = 0;
        pthread_cond_broadcast(&evq->wake);
    }
}

static void um_event_owner_finish(struct um_event_owner *owner, int dispatch_thread)
{
    if (owner->cancel_proc != NULL) {
        owner->cancel_proc(dispatch_thread, owner->cancel_clientd);
    }
    if (owner->on_idle != NULL) {
        owner->on_idle(owner);
    }
}

/* lock held: move events of the owner to `out` */
static void um_event_purge(lbm_event_queue_t *evq, const struct um_event_owner *owner, struct um_list *out)
{
    struct um_list *node;
    for (int i = 0; i < UM_PURGED_AT_ONCE && (node = um_list_first(&owner->events)) != NULL; i++) {
        struct um_event *event = UM_CONTAINER_OF(node, struct um_event, owner_node);
        um_event_unlink(evq, event);
        um_list_push_back(out, &event->node);
        evq->steps++;
    }
}

static void um_event_discard_all(struct um_list *events)
{
    struct um_list *node;
    while ((node = um_list_first(events)) != NULL) {
        um_list_remove(node);
        struct um_event *event = UM_CONTAINER_OF(node, struct um_event, node);
        event->ops->discard(event);
    }
}

int um_event_cancel_check(const lbm_event_queue_cancel_cb_info_t *cbinfo, const char *api)
{
    if (cbinfo == NULL) {
        return 0;
    }
    if (um_event_queue_check(cbinfo->event_queue, api) < 0) {
        return -1;
    }
    pthread_mutex_lock(&cbinfo->event_queue->lock);
    bool enabled = cbinfo->event_queue->opts.queue_cancellation_callbacks_enabled != 0;
    pthread_mutex_unlock(&cbinfo->event_queue->lock);
    return enabled
               ? 0
               : um_error(
                     UM_EINVAL, "CoreApi-1040-1",
                     "%s: the event queue of cbinfo was created with queue_cancellation_callbacks_enabled 0: must be 1",
                     api);
}

/* lock held at entry and exit, released while the events are discarded. Counted as running meanwhile, so that the owner
 * (which may hold the events) outlives them. */
static void um_event_owner_purge(lbm_event_queue_t *evq, struct um_event_owner *owner)
{
    struct um_list purged;
    um_list_init(&purged);
    owner->running++;
    while (owner->pending > 0) {
        um_event_purge(evq, owner, &purged);
        pthread_mutex_unlock(&evq->lock);
        um_event_discard_all(&purged);
        pthread_mutex_lock(&evq->lock);
    }
    owner->running--;
}

void um_event_owner_end(struct um_event_owner *owner, lbm_event_queue_cancel_cb_proc cancel, void *clientd,
                        void (*on_idle)(struct um_event_owner *owner))
{
    lbm_event_queue_t *evq = owner->evq;
    if (evq != NULL) {
        pthread_mutex_lock(&evq->lock);
    }
    owner->state = UM_OWNER_CLOSING;
    owner->cancel_proc = cancel;
    owner->cancel_clientd = clientd;
    owner->on_idle = on_idle;
    if (evq != NULL && owner->pending > 0 && evq->opts.queue_objects_purged_on_close) {
        um_event_owner_purge(evq, owner);
    }
    bool idle = um_event_owner_take_idle(owner);
    if (evq != NULL) {
        evq->closing += !idle;
        pthread_mutex_unlock(&evq->lock);
    }
    if (idle) {
        um_event_owner_finish(owner, 0);
    }
}

int um_event_owner_close(struct um_event_owner *owner, lbm_event_queue_cancel_cb_info_t *cbinfo,
                         void (*on_idle)(struct um_event_owner *owner))
{
    if (um_event_cancel_check(cbinfo, "delete or cancel") < 0) {
        return -1;
    }
    um_event_owner_end(owner, cbinfo != NULL ? cbinfo->cbproc : NULL, cbinfo != NULL ? cbinfo->clientd : NULL, on_idle);
    return 0;
}

/* ---- dispatching ---- */

/* lock held: what the monitor must be told before this event runs; *age_us gets the time in the queue. */
static int um_event_warnings(lbm_event_queue_t *evq, const struct um_event *event, uint64_t *age_us)
{
    int warnings = 0;
    *age_us = 0;
    if (event->enqueue_ns != 0) {
        *age_us = (um_clock_ns() - event->enqueue_ns) / 1000;
        if (evq->opts.queue_age_enabled) {
            um_samples_add(&evq->age, *age_us);
        }
        if (evq->opts.queue_delay_warning != 0 && *age_us > evq->opts.queue_delay_warning) {
            warnings |= LBM_EVENT_QUEUE_DELAY_WARNING;
        }
    }
    if (evq->opts.queue_size_warning != 0 && evq->size > evq->opts.queue_size_warning) {
        warnings |= LBM_EVENT_QUEUE_SIZE_WARNING;
    }
    return evq->monitor != NULL ? warnings : 0;
}

/* lock held at entry and exit, released while the event runs. */
static void um_event_run(lbm_event_queue_t *evq, struct um_event *event)
{
    struct um_event_owner *owner = event->owner;
    enum um_event_class event_class = um_event_class_of(event);
    uint64_t age_us;
    int warnings = um_event_warnings(evq, event, &age_us);
    size_t size = evq->size;
    um_event_unlink(evq, event);
    if (owner != NULL) {
        owner->running++;
    }
    bool timed = evq->opts.queue_service_time_enabled != 0;
    pthread_mutex_unlock(&evq->lock);
    if (warnings != 0) {
        evq->monitor(evq, warnings, size, (lbm_ulong_t)age_us, evq->monitor_clientd);
    }
    uint64_t started = timed ? um_clock_ns() : 0;
    event->ops->run(event);
    uint64_t took_us = timed ? (um_clock_ns() - started) / 1000 : 0;
    pthread_mutex_lock(&evq->lock);
    if (timed) {
        um_samples_add(&evq->stats[event_class].service, took_us);
    }
    if (owner != NULL) {
        owner->running--;
    }
}

/* lock held at entry and exit: throw the event away. Counted as running, so that its owner outlives it. */
static void um_event_drop(lbm_event_queue_t *evq, struct um_event *event)
{
    struct um_event_owner *owner = event->owner;
    um_event_unlink(evq, event);
    if (owner != NULL) {
        owner->running++;
    }
    pthread_mutex_unlock(&evq->lock);
    event->ops->discard(event);
    pthread_mutex_lock(&evq->lock);
    if (owner != NULL) {
        owner->running--;
    }
}

/* lock held at entry and exit: report the end of a closing owner when its last event is over. The waiting events
 * (event sync) are let go only after the cancel callback. */
static void um_event_owner_settle(lbm_event_queue_t *evq, struct um_event_owner *owner)
{
    if (owner == NULL || !um_event_owner_take_idle(owner)) {
        return;
    }
    bool reports = owner->cancel_proc != NULL;
    if (reports) {
        um_event_count_in(evq, UM_EVENT_CANCEL);
    }
    pthread_mutex_unlock(&evq->lock);
    um_event_owner_finish(owner, 1);
    pthread_mutex_lock(&evq->lock);
    evq->stats[UM_EVENT_CANCEL].now -= reports;
    um_event_closing_done(evq);
}

/* lock held: wait until an event may run */
static struct um_event *um_event_wait(lbm_event_queue_t *evq, bool poll)
{
    struct um_event *event;
    while ((event = um_event_first(evq)) == NULL && !poll) {
        evq->sleepers++;
        pthread_cond_wait(&evq->wake, &evq->lock);
    }
    return event;
}

int um_event_queue_dispatch(lbm_event_queue_t *evq, lbm_ulong_t tmo)
{
    bool poll = tmo == LBM_EVENT_QUEUE_POLL;
    bool timed = !poll && tmo != LBM_EVENT_QUEUE_BLOCK;
    uint64_t entered_ns = timed ? um_clock_ns() : 0;
    int count = 0;
    struct um_event *event;
    pthread_mutex_lock(&evq->lock);
    evq->dispatchers++;
    while ((event = um_event_wait(evq, poll)) != NULL) {
        struct um_event_owner *owner = event->owner;
        if (um_event_is_unblock(event)) {
            um_event_unlink(evq, event);
            um_free(event);
            break;
        }
        if (owner != NULL && owner->state != UM_OWNER_OPEN) {
            um_event_drop(evq, event);
            um_event_owner_settle(evq, owner);
            continue;
        }
        um_event_run(evq, event);
        um_event_owner_settle(evq, owner);
        count += count < INT_MAX;
        if (poll || (timed && (um_clock_ns() - entered_ns) / UM_NS_PER_MS >= tmo)) {
            break;
        }
    }
    evq->dispatchers--;
    pthread_mutex_unlock(&evq->lock);
    return count;
}

/* ---- the queue ---- */

static int um_event_queue_init(lbm_event_queue_t *evq)
{
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(&evq->lock, &attr);
    pthread_mutexattr_destroy(&attr);
    um_cond_init(&evq->wake);
    um_list_init(&evq->events);
    um_list_init(&evq->deferred);
    evq->fork_generation = um_fork_generation();
    evq->magic = UM_EVENT_QUEUE_MAGIC;
    return 0;
}

int um_event_queue_create(lbm_event_queue_t **out, lbm_event_queue_monitor_proc proc, void *clientd,
                          const lbm_event_queue_attr_t *attr)
{
    lbm_event_queue_t *evq = um_calloc(1, sizeof *evq);
    if (evq == NULL) {
        return um_error_nomem("event queue", sizeof *evq);
    }
    if (um_event_queue_options_resolve(attr, &evq->opts) < 0) {
        um_free(evq);
        return -1;
    }
    evq->monitor = proc;
    evq->monitor_clientd = clientd;
    um_event_queue_init(evq);
    const struct um_monitor_settings settings = {.interval_sec = evq->opts.monitor_interval,
                                                 .transport = evq->opts.monitor_transport,
                                                 .format = evq->opts.monitor_format,
                                                 .transport_opts = evq->opts.monitor_transport_opts,
                                                 .format_opts = evq->opts.monitor_format_opts,
                                                 .appid = evq->opts.monitor_appid};
    um_monitored_created(UM_MONITORED_EVENT_QUEUE, evq, &settings);
    *out = evq;
    return 0;
}

int um_event_queue_check(const lbm_event_queue_t *evq, const char *api)
{
    if (evq == NULL || evq->magic != UM_EVENT_QUEUE_MAGIC) {
        return um_error(UM_EINVAL, "CoreApi-1040-2", "%s: evq must be valid", api);
    }
    if (evq->fork_generation != um_fork_generation()) {
        return um_error(UM_EINVAL, "CoreApi-1040-3",
                        "%s: the event queue was inherited through fork; create a new one in the child", api);
    }
    return 0;
}

void um_event_queue_shutdown(lbm_event_queue_t *evq)
{
    struct um_list unblocks;
    struct um_list *node;
    um_list_init(&unblocks);
    pthread_mutex_lock(&evq->lock);
    evq->shut_down = true;
    um_event_end_deferral(evq);
    while ((node = um_list_first(&evq->events)) != NULL) {
        struct um_event *event = UM_CONTAINER_OF(node, struct um_event, node);
        if (um_event_is_unblock(event)) {
            um_list_remove(node);
            um_list_push_back(&unblocks, node);
        } else {
            struct um_event_owner *owner = event->owner;
            um_event_drop(evq, event);
            um_event_owner_settle(evq, owner);
        }
        um_event_end_deferral(evq); /* dispatchers may have put events aside while the lock was not held */
    }
    /* Dispatchers still wait for their unblock events. */
    while ((node = um_list_first(&unblocks)) != NULL) {
        um_list_remove(node);
        um_list_push_back(&evq->events, node);
    }
    pthread_mutex_unlock(&evq->lock);
}

int um_event_queue_delete(lbm_event_queue_t *evq)
{
    pthread_mutex_lock(&evq->lock);
    int dispatchers = evq->dispatchers;
    pthread_mutex_unlock(&evq->lock);
    if (dispatchers > 0) {
        return um_error(UM_EOP, "CoreApi-1040-4",
                        "lbm_event_queue_delete: %d threads are dispatching; unblock and join them first", dispatchers);
    }
    bool told;
    if (um_monitored_closing(evq, NULL, &told) != 0) {
        return -1;
    }
    um_event_queue_shutdown(evq);
    evq->magic = 0;
    um_event_discard_all(&evq->events); /* unblock events that nobody took */
    um_options_clear(UM_SCOPE_EVENT_QUEUE, &evq->opts);
    pthread_cond_destroy(&evq->wake);
    pthread_mutex_destroy(&evq->lock);
    um_monitored_closed(told, evq, true); /* its address is nobody else's yet */
    um_free(evq);
    return 0;
}

int um_event_queue_unblock(lbm_event_queue_t *evq)
{
    struct um_event *event = um_calloc(1, sizeof *event);
    if (event == NULL) {
        return um_error_nomem("unblock event", sizeof *event);
    }
    event->ops = &um_unblock_ops;
    pthread_mutex_lock(&evq->lock);
    um_event_push(evq, event);
    pthread_mutex_unlock(&evq->lock);
    return 0;
}

int um_event_queue_size(lbm_event_queue_t *evq)
{
    pthread_mutex_lock(&evq->lock);
    bool allowed = evq->opts.queue_size_warning != 0;
    size_t size = evq->size;
    pthread_mutex_unlock(&evq->lock);
    if (!allowed) {
        return um_error(UM_EINVAL, "CoreApi-1040-5",
                        "lbm_event_queue_size: queue_size_warning 0: must be set to a size for this call");
    }
    return size > INT_MAX ? INT_MAX : (int)size;
}

uint64_t um_event_queue_steps(lbm_event_queue_t *evq)
{
    pthread_mutex_lock(&evq->lock);
    uint64_t steps = evq->steps;
    pthread_mutex_unlock(&evq->lock);
    return steps;
}

int um_event_queue_with_options(lbm_event_queue_t *evq, int (*fn)(struct um_event_queue_options *opts, void *arg),
                                void *arg)
{
    pthread_mutex_lock(&evq->lock);
    int rc = fn(&evq->opts, arg);
    pthread_mutex_unlock(&evq->lock);
    return rc;
}

#define UM_EVENT_STATS_OUT(out, prefix, stats)                                                                         \
    do {                                                                                                               \
        (out)->prefix = (stats)->now;                                                                                  \
        (out)->prefix##_tot = (stats)->total;                                                                          \
        (out)->prefix##_svc_min = (stats)->service.min;                                                                \
        (out)->prefix##_svc_mean = (stats)->service.mean;                                                              \
        (out)->prefix##_svc_max = (stats)->service.max;                                                                \
    } while (0)

void um_event_queue_stats(lbm_event_queue_t *evq, lbm_event_queue_stats_t *out)
{
    struct um_event_class_stats copy[UM_EVENT_CLASS_COUNT];
    memset(out, 0, sizeof *out);
    pthread_mutex_lock(&evq->lock);
    memcpy(copy, evq->stats, sizeof copy);
    bool counted = evq->opts.queue_count_enabled != 0;
    out->events = counted ? evq->size : 0;
    out->events_tot = evq->total;
    out->age_min = evq->age.min;
    out->age_mean = evq->age.mean;
    out->age_max = evq->age.max;
    pthread_mutex_unlock(&evq->lock);
    for (int i = 0; !counted && i < UM_EVENT_CLASS_COUNT; i++) {
        copy[i].now = 0;
    }
    UM_EVENT_STATS_OUT(out, data_msgs, &copy[UM_EVENT_DATA]);
    UM_EVENT_STATS_OUT(out, resp_msgs, &copy[UM_EVENT_RESPONSE]);
    UM_EVENT_STATS_OUT(out, topicless_im_msgs, &copy[UM_EVENT_TOPICLESS_IM]);
    UM_EVENT_STATS_OUT(out, wrcv_msgs, &copy[UM_EVENT_WILDCARD]);
    UM_EVENT_STATS_OUT(out, io_events, &copy[UM_EVENT_IO]);
    UM_EVENT_STATS_OUT(out, timer_events, &copy[UM_EVENT_TIMER]);
    UM_EVENT_STATS_OUT(out, source_events, &copy[UM_EVENT_SOURCE]);
    UM_EVENT_STATS_OUT(out, context_source_events, &copy[UM_EVENT_CONTEXT_SOURCE]);
    UM_EVENT_STATS_OUT(out, cancel_events, &copy[UM_EVENT_CANCEL]);
    UM_EVENT_STATS_OUT(out, callback_events, &copy[UM_EVENT_CALLBACK]);
    out->unblock_events = copy[UM_EVENT_UNBLOCK].now;
    out->unblock_events_tot = copy[UM_EVENT_UNBLOCK].total;
}

void um_event_queue_stats_reset(lbm_event_queue_t *evq)
{
    pthread_mutex_lock(&evq->lock);
    for (int i = 0; i < UM_EVENT_CLASS_COUNT; i++) {
        evq->stats[i].total = 0;
        evq->stats[i].service = (struct um_event_samples){0};
    }
    evq->total = 0;
    evq->age = (struct um_event_samples){0};
    pthread_mutex_unlock(&evq->lock);
}
