/* The context's own source events. See um_context_events.h. */
#include "core/um_context_events.h"

#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "core/um_event_queue.h"

/* Of one kind of sends. */
struct unicast_sends {
    struct um_unicast_waker waker;
    struct um_context_events *events;
    int flag;
};

struct um_context_events {
    lbm_context_t *ctx;
    struct unicast_sends sends[UM_SENDS_KINDS];
    lbm_context_src_event_func_t function;
    struct um_event_owner owner; /* it is freed with its last event */
};

/* An event on its way through the queue. */
struct wakeup_event {
    struct um_event event;
    struct um_context_events *events;
    lbm_src_event_wakeup_t wakeup;
};

static void call(const struct um_context_events *events, lbm_src_event_wakeup_t *wakeup)
{
    events->function.func(events->ctx, LBM_SRC_EVENT_WAKEUP, wakeup, events->function.clientd);
}

static void run_event(struct um_event *event)
{
    struct wakeup_event *e = UM_CONTAINER_OF(event, struct wakeup_event, event);
    call(e->events, &e->wakeup);
    um_free(e);
}

static void discard_event(struct um_event *event)
{
    um_free(UM_CONTAINER_OF(event, struct wakeup_event, event));
}

static const struct um_event_ops event_ops = {
    .run = run_event,
    .discard = discard_event,
    .event_class = UM_EVENT_CONTEXT_SOURCE,
};

static void on_room(struct um_unicast_waker *waker)
{
    const struct unicast_sends *sends = UM_CONTAINER_OF(waker, struct unicast_sends, waker);
    um_context_event_wakeup(sends->events, sends->flag);
}

static void init_sends(struct um_context_events *events)
{
    static const int flags[UM_SENDS_KINDS] = {[UM_SENDS_UIM] = LBM_SRC_EVENT_WAKEUP_FLAG_UIM,
                                              [UM_SENDS_REQUEST] = LBM_SRC_EVENT_WAKEUP_FLAG_REQUEST,
                                              [UM_SENDS_RESPONSE] = LBM_SRC_EVENT_WAKEUP_FLAG_RESPONSE};
    for (int i = 0; i < UM_SENDS_KINDS; i++) {
        events->sends[i] = (struct unicast_sends){.waker = {.fn = on_room}, .events = events, .flag = flags[i]};
    }
}

struct um_unicast_waker *um_context_events_waker(struct um_context_events *events, enum um_context_sends kind)
{
    return &events->sends[kind].waker;
}

struct um_context_events *um_context_events_create(lbm_context_t *ctx)
{
    struct um_context_events *events = um_calloc(1, sizeof *events);
    if (events == NULL) {
        um_error_nomem("context events", sizeof *events);
        return NULL;
    }
    events->ctx = ctx;
    events->function = ctx->opts.source_event_function;
    init_sends(events);
    um_event_owner_init(&events->owner, events->function.evq);
    return events;
}

static void on_owner_idle(struct um_event_owner *owner)
{
    um_free(UM_CONTAINER_OF(owner, struct um_context_events, owner));
}

void um_context_events_destroy(struct um_context_events *events)
{
    if (events != NULL) {
        for (int i = 0; i < UM_SENDS_KINDS; i++) {
            um_unicast_waker_cancel(events->ctx->unicast, &events->sends[i].waker);
        }
        um_event_owner_close(&events->owner, NULL, on_owner_idle);
    }
}

void um_context_event_wakeup(struct um_context_events *events, int flags)
{
    lbm_src_event_wakeup_t wakeup = {.flags = flags};
    if (events->function.func == NULL) {
        return;
    }
    if (events->function.evq == NULL) {
        call(events, &wakeup);
        return;
    }
    struct wakeup_event *e = um_calloc(1, sizeof *e);
    if (e == NULL) {
        um_log(UM_LOG_ERR, "Core-20223-1", "out of memory: wakeup 0x%x of the context not delivered", (unsigned)flags);
        return;
    }
    e->event.ops = &event_ops;
    e->events = events;
    e->wakeup = wakeup;
    um_event_enqueue(events->function.evq, &events->owner, &e->event);
}
