/* Hot failover over several contexts: life of the objects and of their members.
 * See um_hfx.h. Application threads unless noted. */
#include "core/um_hfx.h"

#include <string.h>

#include "base/um_error.h"
#include "base/um_fork.h"
#include "base/um_mem.h"
#include "config/um_config.h"
#include "core/um_rcv_private.h"

int um_hfx_check(const lbm_hfx_t *hfx, const char *api)
{
    if (hfx == NULL || hfx->magic != UM_HFX_MAGIC) {
        return um_error(UM_EINVAL, "CoreApi-20217-1", "%s: hfx %p: must be a live HFX", api, (const void *)hfx);
    }
    if (hfx->fork_generation != um_fork_generation()) {
        return um_error(UM_EINVAL, "CoreApi-20217-2",
                        "%s: the HFX was inherited through fork; create a new one in the child", api);
    }
    return 0;
}

int um_hfx_check_rcv(const lbm_hfx_rcv_t *member, const char *api)
{
    if (member == NULL || member->magic != UM_HFX_MEMBER_MAGIC) {
        return um_error(UM_EINVAL, "CoreApi-20217-3", "%s: hfrcv %p: must be a live receiver of an HFX", api,
                        (const void *)member);
    }
    return um_receiver_check(member->rcv, api);
}

/* A callback in progress may be what a deletion would have to wait for. */
static int check_thread(const char *api)
{
    return !um_loop_in_any() ? 0
                             : um_error(UM_EOP, "CoreApi-20217-4",
                                        "%s: must not be called in a callback that runs on the thread of a context; "
                                        "call it from another thread",
                                        api);
}

/* ---- the object ---- */

static struct um_hf_config config_of(const struct um_hfx_options *opts)
{
    size_t entries = opts->delivery_control_maximum_total_map_entries;
    return (struct um_hf_config){.ordered = opts->ordered_delivery == 1,
                                 .duplicates = opts->duplicate_delivery != 0,
                                 .optional = true, /* each member says for itself */
                                 .gap_timeout_ns = um_ms_ns(opts->delivery_control_max_delay),
                                 .maximum_burst_loss = opts->delivery_control_maximum_burst_loss,
                                 .entries_max = entries > UINT32_MAX ? UINT32_MAX : (uint32_t)entries,
                                 .bytes_max = UM_HFX_HELD_BYTES_MAX};
}

static void free_hfx(lbm_hfx_t *hfx)
{
    um_options_clear(UM_SCOPE_HFX, &hfx->opts);
    um_free(hfx->topic);
    um_free(hfx);
}

static lbm_hfx_t *new_hfx(const lbm_hfx_attr_t *attr, const char *symbol)
{
    lbm_hfx_t *hfx = um_calloc(1, sizeof *hfx);
    if (hfx == NULL) {
        um_error_nomem("HFX", sizeof *hfx);
        return NULL;
    }
    if (um_hfx_options_resolve(attr, symbol, &hfx->opts) != 0) {
        um_free(hfx);
        return NULL;
    }
    size_t size = strlen(symbol) + 1;
    hfx->topic = um_malloc(size);
    if (hfx->topic == NULL) {
        free_hfx(hfx);
        um_error_nomem("HFX", size);
        return NULL;
    }
    memcpy(hfx->topic, symbol, size);
    return hfx;
}

int um_hfx_create(lbm_hfx_t **hfxp, const lbm_hfx_attr_t *attr, const char *symbol, lbm_rcv_cb_proc proc,
                  lbm_event_queue_t *evq)
{
    static const char api[] = "lbm_hfx_create";
    if (hfxp == NULL || proc == NULL) {
        return um_error(UM_EINVAL, "CoreApi-20217-5", "%s: %s: must not be NULL", api, proc == NULL ? "proc" : "hfxp");
    }
    if (um_topic_name_check(symbol, api) != 0 || (evq != NULL && um_event_queue_check(evq, api) != 0)) {
        return -1;
    }
    lbm_hfx_t *hfx = new_hfx(attr, symbol);
    if (hfx == NULL) {
        return -1;
    }
    hfx->fork_generation = um_fork_generation();
    hfx->proc = proc;
    hfx->evq = evq;
    hfx->check_ns = um_ms_ns(hfx->opts.delivery_control_loss_check_interval);
    hfx->due_ns = UM_NEVER;
    atomic_init(&hfx->refs, 1);
    um_list_init(&hfx->members);
    um_list_init(&hfx->line);
    const struct um_hf_config config = config_of(&hfx->opts);
    um_hf_init(&hfx->merge, &config, &um_hfx_ops, hfx);
    hfx->magic = UM_HFX_MAGIC;
    *hfxp = hfx;
    return 0;
}

/* Any thread. Events of its receivers may be on their way after its deletion. */
static void unref(lbm_hfx_t *hfx, int dispatching)
{
    if (atomic_fetch_sub_explicit(&hfx->refs, 1, memory_order_acq_rel) == 1) {
        if (hfx->deletion.cbproc != NULL) {
            hfx->deletion.cbproc(dispatching, hfx->deletion.clientd);
        }
        free_hfx(hfx);
    }
}

/* One without a queue is told as well. */
static int check_cbinfo(const lbm_event_queue_cancel_cb_info_t *cbinfo, const char *api)
{
    return cbinfo == NULL || cbinfo->event_queue == NULL ? 0 : um_event_cancel_check(cbinfo, api);
}

int um_hfx_delete(lbm_hfx_t *hfx, const lbm_event_queue_cancel_cb_info_t *cbinfo, const char *api)
{
    if (um_hfx_check(hfx, api) != 0 || check_cbinfo(cbinfo, api) != 0 || check_thread(api) != 0) {
        return -1;
    }
    um_lock_take(&hfx->lock);
    bool used = !um_list_empty(&hfx->members);
    um_lock_give(&hfx->lock);
    if (used) {
        return um_error(UM_EOP, "CoreApi-20217-6",
                        "%s: topic [%s]: the HFX has receivers: delete them first, with lbm_hfx_rcv_delete", api,
                        hfx->topic);
    }
    hfx->magic = 0;
    um_hfx_empty(hfx);
    if (cbinfo != NULL) {
        hfx->deletion = *cbinfo;
    }
    unref(hfx, 0);
    return 0;
}

/* ---- members ---- */

lbm_hfx_rcv_t *um_hfx_member_new(lbm_hfx_t *hfx, lbm_rcv_t *rcv)
{
    lbm_hfx_rcv_t *member = um_calloc(1, sizeof *member);
    if (member == NULL) {
        um_error_nomem("receiver of an HFX", sizeof *member);
        return NULL;
    }
    atomic_fetch_add_explicit(&hfx->refs, 1, memory_order_relaxed);
    member->hfx = hfx;
    member->rcv = rcv;
    member->leaves_optional = rcv->topic->opts->hf_optional_messages == 0;
    um_list_init(&member->node);
    um_timer_init(&member->timer, um_hfx_on_timer);
    member->timer_ns = UM_NEVER;
    um_command_init(&member->look, um_hfx_on_look);
    return member;
}

static void open_member(lbm_hfx_rcv_t *member)
{
    lbm_hfx_t *hfx = member->hfx;
    um_lock_take(&hfx->lock);
    um_list_push_back(&hfx->members, &member->node);
    if (!um_list_empty(&hfx->line) || hfx->due_ns != UM_NEVER) {
        um_hfx_have_looked(hfx); /* from the time when there was no member */
    }
    um_lock_give(&hfx->lock);
}

void um_hfx_member_open(lbm_hfx_rcv_t *member)
{
    member->magic = UM_HFX_MEMBER_MAGIC;
    open_member(member);
}

/* Nothing is delivered through it any more, and no callback with it is in progress. */
static void close_member(lbm_hfx_rcv_t *member)
{
    lbm_hfx_t *hfx = member->hfx;
    um_lock_take(&hfx->lock);
    um_list_remove(&member->node);
    hfx->awaited++;
    while (hfx->calling == member) {
        um_condition_wait(&hfx->called, &hfx->lock);
    }
    hfx->awaited--;
    um_lock_give(&hfx->lock);
}

/* What it has been asked to do is left to others. */
void um_hfx_member_leave(lbm_hfx_rcv_t *member)
{
    lbm_hfx_t *hfx = member->hfx;
    struct um_loop *loop = member->rcv->ctx->loop;
    member->magic = 0;
    um_timer_cancel(um_loop_wheel(loop), &member->timer);
    um_loop_unpost(loop, &member->look);
    um_lock_take(&hfx->lock);
    um_hfx_have_looked(hfx);
    um_lock_give(&hfx->lock);
}

void um_hfx_member_free(lbm_hfx_rcv_t *member)
{
    lbm_hfx_t *hfx = member->hfx;
    um_free(member);
    unref(hfx, 1);
}

static bool has_member_of(lbm_hfx_t *hfx, const lbm_context_t *ctx)
{
    bool found = false;
    struct um_list *node;
    um_lock_take(&hfx->lock);
    UM_LIST_FOREACH(node, &hfx->members)
    {
        found |= UM_CONTAINER_OF(node, lbm_hfx_rcv_t, node)->rcv->ctx == ctx;
    }
    um_lock_give(&hfx->lock);
    return found;
}

int um_hfx_rcv_create(lbm_hfx_rcv_t **out, lbm_hfx_t *hfx, lbm_context_t *ctx, const lbm_rcv_topic_attr_t *attr,
                      void *clientd)
{
    static const char api[] = "lbm_hfx_rcv_create";
    lbm_topic_t *topic;
    if (um_hfx_check(hfx, api) != 0 || um_context_check_messaging(ctx, api) != 0 || check_thread(api) != 0) {
        return -1;
    }
    if (out == NULL) {
        return um_error(UM_EINVAL, "CoreApi-20217-7", "%s: hfrcvp: must not be NULL", api);
    }
    if (has_member_of(hfx, ctx)) {
        return um_error(UM_EINVAL, "CoreApi-20217-8",
                        "%s: topic [%s]: the HFX has a receiver in this context already; it has one in each", api,
                        hfx->topic);
    }
    if (ctx->opts.delivery_control_message_batching != 0) {
        um_log(UM_LOG_NOTICE, "Core-8342-1",
               "topic [%s]: delivery_control_message_batching 1 has no effect on receivers of an HFX", hfx->topic);
    }
    return um_receiver_topic_lookup(&topic, ctx, hfx->topic, attr) != 0
               ? -1
               : um_receiver_create_hfx(out, hfx, ctx, topic, clientd);
}

/* The queue of the HFX stands for none given. */
static int delete_receiver(lbm_rcv_t *rcv, const lbm_hfx_t *hfx, const lbm_event_queue_cancel_cb_info_t *cbinfo,
                           const char *api)
{
    if (cbinfo == NULL) {
        return um_receiver_delete(rcv, NULL, api);
    }
    lbm_event_queue_cancel_cb_info_t info = *cbinfo;
    if (info.event_queue == NULL) {
        info.event_queue = hfx->evq;
    }
    if (info.event_queue != NULL) {
        return um_receiver_delete(rcv, &info, api);
    }
    if (um_receiver_delete(rcv, NULL, api) != 0) {
        return -1;
    }
    if (info.cbproc != NULL) {
        info.cbproc(0, info.clientd);
    }
    return 0;
}

int um_hfx_rcv_delete(lbm_hfx_rcv_t *member, const lbm_event_queue_cancel_cb_info_t *cbinfo, const char *api)
{
    if (um_hfx_check_rcv(member, api) != 0 || check_cbinfo(cbinfo, api) != 0 || check_thread(api) != 0) {
        return -1;
    }
    close_member(member);
    if (delete_receiver(member->rcv, member->hfx, cbinfo, api) != 0) {
        open_member(member);
        return -1;
    }
    return 0;
}
