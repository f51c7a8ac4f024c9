/* Descriptors of the application. One um_fd per descriptor carries up to one
 * registration per event bit; registrations with an event queue are disabled
 * while their event is queued or running. Lists are [loop]; the lock covers what
 * dispatch threads touch. */
#include "core/um_user_fds.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/um_error.h"
#include "base/um_list.h"
#include "base/um_mem.h"
#include "core/um_context.h"
#include "core/um_event_queue.h"
#include "net/um_loop.h"

#define UM_FD_BITS 6

struct um_user_fds {
    pthread_mutex_t lock;
    lbm_context_t *ctx;
    struct um_loop *loop;
    struct um_list watched; /* [loop] */
    atomic_int refs;        /* the context, and each registration */
};

struct um_watched {
    struct um_list node; /* fds->watched */
    struct um_fd ufd;
    struct um_user_fds *fds;
    struct um_list regs; /* [loop] */
};

struct um_fd_reg {
    struct um_list node; /* watched->regs [loop] */
    struct um_user_fds *fds;
    struct um_watched *watched; /* [loop] NULL: cancelled */
    lbm_handle_t handle;
    lbm_ulong_t mask; /* [loop] */
    lbm_fd_cb_proc proc;
    void *clientd;
    bool queued;              /* [loop] the event is queued or running: not watched */
    bool cancelled;           /* lock: must not be posted any more */
    lbm_ulong_t ready;        /* written before the event is queued */
    struct um_command enable; /* back to the loop after the event ran */
    atomic_int refs;          /* its owner, and a dispatch in progress */
    struct um_event event;
    struct um_event_owner owner;
};

static void um_user_fds_unref(struct um_user_fds *fds)
{
    if (atomic_fetch_sub_explicit(&fds->refs, 1, memory_order_acq_rel) == 1) {
        pthread_mutex_destroy(&fds->lock);
        um_free(fds);
    }
}

static void um_fd_reg_unref(struct um_fd_reg *reg)
{
    if (atomic_fetch_sub_explicit(&reg->refs, 1, memory_order_acq_rel) == 1) {
        struct um_user_fds *fds = reg->fds;
        um_free(reg);
        um_user_fds_unref(fds);
    }
}

static void um_fd_reg_on_idle(struct um_event_owner *owner)
{
    um_fd_reg_unref(UM_CONTAINER_OF(owner, struct um_fd_reg, owner));
}

/* ---- event bits and readiness ---- */

static uint32_t um_fd_interest_of(lbm_ulong_t mask)
{
    return ((mask & (LBM_FD_EVENT_READ | LBM_FD_EVENT_ACCEPT)) != 0 ? UM_FD_READ : 0) |
           ((mask & (LBM_FD_EVENT_WRITE | LBM_FD_EVENT_CONNECT)) != 0 ? UM_FD_WRITE : 0) |
           ((mask & LBM_FD_EVENT_EXCEPT) != 0 ? UM_FD_EXCEPT : 0) |
           ((mask & LBM_FD_EVENT_CLOSE) != 0 ? UM_FD_HANGUP : 0);
}

static lbm_ulong_t um_fd_events_of(uint32_t ready)
{
    return ((ready & UM_FD_READ) != 0 ? LBM_FD_EVENT_READ | LBM_FD_EVENT_ACCEPT : 0) |
           ((ready & UM_FD_WRITE) != 0 ? LBM_FD_EVENT_WRITE | LBM_FD_EVENT_CONNECT : 0) |
           ((ready & UM_FD_EXCEPT) != 0 ? LBM_FD_EVENT_EXCEPT : 0) |
           ((ready & UM_FD_HANGUP) != 0 ? LBM_FD_EVENT_CLOSE : 0);
}

static int um_watched_update(struct um_watched *watched)
{
    uint32_t interest = 0;
    struct um_list *node;
    UM_LIST_FOREACH(node, &watched->regs)
    {
        const struct um_fd_reg *reg = UM_CONTAINER_OF(node, struct um_fd_reg, node);
        interest |= reg->queued ? 0 : um_fd_interest_of(reg->mask);
    }
    return um_loop_set_interest(watched->fds->loop, &watched->ufd, interest);
}

/* ---- through an event queue ---- */

static void um_fd_reg_post_enable(struct um_fd_reg *reg)
{
    struct um_user_fds *fds = reg->fds;
    pthread_mutex_lock(&fds->lock);
    if (!reg->cancelled) {
        um_loop_post(fds->loop, &reg->enable);
    }
    pthread_mutex_unlock(&fds->lock);
}

static void um_fd_event_run(struct um_event *event)
{
    struct um_fd_reg *reg = UM_CONTAINER_OF(event, struct um_fd_reg, event);
    reg->proc(reg->fds->ctx, reg->handle, reg->ready, reg->clientd);
    um_fd_reg_post_enable(reg);
}

static void um_fd_event_discard(struct um_event *event)
{
    /* Cancelled, or the queue is shut down: the registration stays disabled. */
}

static const struct um_event_ops um_fd_event_ops = {
    .run = um_fd_event_run, .discard = um_fd_event_discard, .event_class = UM_EVENT_IO};

static void um_fd_reg_on_enable(struct um_command *cmd)
{
    struct um_fd_reg *reg = UM_CONTAINER_OF(cmd, struct um_fd_reg, enable);
    reg->queued = false;
    if (reg->watched != NULL) {
        (void)um_watched_update(reg->watched); /* a closed descriptor is the application's mistake; it stays silent */
    }
}

/* ---- readiness [loop] ---- */

static void um_fd_reg_deliver(struct um_fd_reg *reg, lbm_ulong_t ready)
{
    if (reg->watched == NULL) {
        return; /* cancelled by a callback before this one */
    }
    if (reg->owner.evq != NULL) {
        reg->ready = ready;
        um_event_enqueue(reg->owner.evq, &reg->owner, &reg->event);
    } else {
        reg->proc(reg->fds->ctx, reg->handle, ready, reg->clientd);
    }
}

static void um_watched_on_ready(struct um_fd *ufd, uint32_t ready, uint64_t now_ns)
{
    struct um_watched *watched = UM_CONTAINER_OF(ufd, struct um_watched, ufd);
    lbm_ulong_t events = um_fd_events_of(ready);
    struct um_fd_reg *hits[UM_FD_BITS];
    lbm_ulong_t bits[UM_FD_BITS];
    int count = 0;
    struct um_list *node;
    UM_LIST_FOREACH(node, &watched->regs)
    {
        struct um_fd_reg *reg = UM_CONTAINER_OF(node, struct um_fd_reg, node);
        if (!reg->queued && (reg->mask & events) != 0) {
            atomic_fetch_add_explicit(&reg->refs, 1, memory_order_relaxed);
            hits[count] = reg;
            bits[count++] = reg->mask & events;
            reg->queued = reg->owner.evq != NULL;
        }
    }
    if (count == 0) {
        /* A hang-up that nobody asked for would be reported for ever. */
        (void)um_loop_set_interest(watched->fds->loop, &watched->ufd, 0);
        return;
    }
    (void)um_watched_update(watched);
    /* From here on callbacks may cancel any of them, and with the last the watched descriptor. */
    for (int i = 0; i < count; i++) {
        um_fd_reg_deliver(hits[i], bits[i]);
        um_fd_reg_unref(hits[i]);
    }
}

/* ---- registering ---- */

static struct um_watched *um_user_fds_find(const struct um_user_fds *fds, lbm_handle_t handle)
{
    struct um_list *node;
    UM_LIST_FOREACH(node, &fds->watched)
    {
        struct um_watched *watched = UM_CONTAINER_OF(node, struct um_watched, node);
        if (watched->ufd.fd == handle) {
            return watched;
        }
    }
    return NULL;
}

static struct um_watched *um_watched_new(struct um_user_fds *fds, lbm_handle_t handle)
{
    struct um_watched *watched = um_calloc(1, sizeof *watched);
    if (watched == NULL) {
        um_error_nomem("descriptor registration", sizeof *watched);
        return NULL;
    }
    um_fd_init(&watched->ufd, handle, um_watched_on_ready);
    watched->fds = fds;
    um_list_init(&watched->regs);
    um_list_push_back(&fds->watched, &watched->node);
    return watched;
}

static void um_watched_drop_if_empty(struct um_watched *watched)
{
    if (um_list_empty(&watched->regs)) {
        um_loop_remove_fd(watched->fds->loop, &watched->ufd);
        um_list_remove(&watched->node);
        um_free(watched);
    }
}

static int um_watched_check_free(const struct um_watched *watched, lbm_ulong_t ev)
{
    struct um_list *node;
    UM_LIST_FOREACH(node, &watched->regs)
    {
        const struct um_fd_reg *reg = UM_CONTAINER_OF(node, struct um_fd_reg, node);
        if ((reg->mask & ev) != 0) {
            return um_error(UM_EINVAL, "CoreApi-1050-1",
                            "lbm_register_fd: descriptor %d: events 0x%lx are registered already; cancel them first",
                            reg->handle, (unsigned long)(reg->mask & ev));
        }
    }
    return 0;
}

static int um_user_fd_add(void *arg)
{
    struct um_fd_reg *reg = arg;
    struct um_watched *watched = um_user_fds_find(reg->fds, reg->handle);
    if (watched == NULL && (watched = um_watched_new(reg->fds, reg->handle)) == NULL) {
        return -1;
    }
    if (um_watched_check_free(watched, reg->mask) < 0) {
        return -1; /* it has registrations, so nothing to undo */
    }
    reg->watched = watched;
    um_list_push_back(&watched->regs, &reg->node);
    if (um_watched_update(watched) < 0) {
        um_list_remove(&reg->node);
        um_watched_drop_if_empty(watched);
        return -1;
    }
    return 0;
}

int um_user_fd_register(struct um_user_fds *fds, lbm_handle_t handle, lbm_fd_cb_proc proc, void *clientd,
                        lbm_event_queue_t *evq, lbm_ulong_t ev)
{
    struct um_fd_reg *reg = um_calloc(1, sizeof *reg);
    if (reg == NULL) {
        return um_error_nomem("descriptor registration", sizeof *reg);
    }
    um_list_init(&reg->node);
    um_list_init(&reg->event.node);
    um_command_init(&reg->enable, um_fd_reg_on_enable);
    um_event_owner_init(&reg->owner, evq);
    reg->event.ops = &um_fd_event_ops;
    reg->fds = fds;
    reg->handle = handle;
    reg->mask = ev;
    reg->proc = proc;
    reg->clientd = clientd;
    atomic_init(&reg->refs, 1);
    atomic_fetch_add_explicit(&fds->refs, 1, memory_order_relaxed);
    if (um_loop_call(fds->loop, um_user_fd_add, reg) < 0) {
        um_fd_reg_unref(reg);
        return -1;
    }
    return 0;
}

/* ---- cancelling ---- */

struct um_fd_cancel {
    struct um_user_fds *fds;
    lbm_handle_t handle;
    lbm_ulong_t ev;
    struct um_fd_reg *closed[UM_FD_BITS]; /* out: registrations without events left, to be closed by the caller */
    int count;
};

/* [loop] */
static void um_fd_reg_detach(struct um_fd_reg *reg)
{
    um_list_remove(&reg->node);
    reg->watched = NULL;
    pthread_mutex_lock(&reg->fds->lock);
    reg->cancelled = true;
    pthread_mutex_unlock(&reg->fds->lock);
    um_loop_unpost(reg->fds->loop, &reg->enable);
}

static int um_user_fd_take(void *arg)
{
    struct um_fd_cancel *cancel = arg;
    struct um_watched *watched = um_user_fds_find(cancel->fds, cancel->handle);
    bool found = false;
    struct um_list *node, *next;
    if (watched != NULL) {
        UM_LIST_FOREACH_SAFE(node, next, &watched->regs)
        {
            struct um_fd_reg *reg = UM_CONTAINER_OF(node, struct um_fd_reg, node);
            found |= (reg->mask & cancel->ev) != 0;
            reg->mask &= ~cancel->ev;
            if (reg->mask == 0) {
                um_fd_reg_detach(reg);
                cancel->closed[cancel->count++] = reg;
            }
        }
    }
    if (!found) {
        return um_error(UM_EINVAL, "CoreApi-1050-2",
                        "lbm_cancel_fd: descriptor %d has no registration for events 0x%lx", cancel->handle,
                        (unsigned long)cancel->ev);
    }
    (void)um_watched_update(watched); /* the descriptor may be closed already */
    um_watched_drop_if_empty(watched);
    return 0;
}

int um_user_fd_cancel(struct um_user_fds *fds, lbm_handle_t handle, lbm_ulong_t ev,
                      lbm_event_queue_cancel_cb_info_t *cbinfo)
{
    struct um_fd_cancel cancel = {.fds = fds, .handle = handle, .ev = ev};
    if (um_event_cancel_check(cbinfo, "lbm_cancel_fd_ex") < 0 ||
        um_loop_call(fds->loop, um_user_fd_take, &cancel) < 0) {
        return -1;
    }
    for (int i = 0; i < cancel.count; i++) {
        /* One completion for the call: with the last registration that ends. */
        um_event_owner_close(&cancel.closed[i]->owner, i + 1 == cancel.count ? cbinfo : NULL, um_fd_reg_on_idle);
    }
    if (cancel.count == 0 && cbinfo != NULL && cbinfo->cbproc != NULL) {
        cbinfo->cbproc(0, cbinfo->clientd);
    }
    return 0;
}

struct um_user_fds *um_user_fds_create(lbm_context_t *ctx, struct um_loop *loop)
{
    struct um_user_fds *fds = um_calloc(1, sizeof *fds);
    if (fds == NULL) {
        um_error_nomem("descriptors", sizeof *fds);
        return NULL;
    }
    pthread_mutex_init(&fds->lock, NULL);
    fds->ctx = ctx;
    fds->loop = loop;
    um_list_init(&fds->watched);
    atomic_init(&fds->refs, 1);
    return fds;
}

void um_user_fds_destroy(struct um_user_fds *fds)
{
    if (fds == NULL) {
        return;
    }
    struct um_list *node;
    while ((node = um_list_first(&fds->watched)) != NULL) {
        struct um_watched *watched = UM_CONTAINER_OF(node, struct um_watched, node);
        um_user_fd_cancel(fds, watched->ufd.fd, LBM_FD_EVENT_ALL, NULL);
    }
    um_user_fds_unref(fds);
}
