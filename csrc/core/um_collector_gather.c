/* Collectors, gathering: what becomes of messages that receivers are given, on the threads of their contexts. See
 * um_collector_parts.h. */
#include "core/um_collector_parts.h"

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "core/um_properties.h"
#include "core/um_response.h"
#include "wire/um_lbmc_hf.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* ---- links: the contexts whose receivers feed it ---- */

int um_collector_check_receiver(lbm_rcv_cb_proc proc, void *clientd, const lbm_event_queue_t *evq, const char *api)
{
    if (proc != um_collector_rcv_cb) {
        return 0;
    }
    if (evq != NULL) {
        return um_error(UM_EINVAL, "CoreApi-20207-3",
                        "%s: evq: must be NULL with um_collector_rcv_cb; a collector is a queue itself", api);
    }
    return um_collector_check(clientd, api);
}

static void on_release(struct um_command *command)
{
    um_rcv_sources_release(UM_CONTAINER_OF(command, struct um_collector_link, release)->ctx);
}

static struct um_collector_link *find_link(um_collector_t *c, const lbm_context_t *ctx)
{
    struct um_list *node;
    UM_LIST_FOREACH(node, &c->links)
    {
        struct um_collector_link *link = UM_CONTAINER_OF(node, struct um_collector_link, node);
        if (link->ctx == ctx) {
            return link;
        }
    }
    return NULL;
}

int um_collector_attach(lbm_rcv_cb_proc proc, void *clientd, lbm_context_t *ctx, struct um_collector_link **linkp)
{
    *linkp = NULL;
    if (proc != um_collector_rcv_cb) {
        return 0;
    }
    um_collector_t *c = clientd;
    struct um_collector_link *fresh = um_calloc(1, sizeof *fresh);
    if (fresh == NULL) {
        return um_error_nomem("receiver with a collector", sizeof *fresh);
    }
    um_lock_take(&c->lock);
    struct um_collector_link *link = find_link(c, ctx);
    if (link == NULL) {
        link = fresh;
        fresh = NULL;
        link->collector = c;
        link->ctx = ctx;
        um_command_init(&link->release, on_release);
        um_list_push_back(&c->links, &link->node);
    }
    link->uses++;
    c->users++;
    um_lock_give(&c->lock);
    um_free(fresh);
    *linkp = link;
    return 0;
}

void um_collector_detach(struct um_collector_link *link)
{
    if (link == NULL) {
        return;
    }
    um_collector_t *c = link->collector;
    struct um_loop *loop = link->ctx->loop;
    um_lock_take(&c->lock);
    bool last = --link->uses == 0;
    if (last) {
        um_list_remove(&link->node);
    }
    c->users--;
    um_lock_give(&c->lock);
    if (last) {
        um_loop_unpost(loop, &link->release);
        um_free(link);
    }
}

/* Another context may have filled it again since this one was told of room: then it has to be told again. */
bool um_collector_await_room(struct um_collector_link *link)
{
    um_collector_t *c = link->collector;
    um_lock_take(&c->lock);
    bool full = c->full;
    link->holding |= full;
    um_lock_give(&c->lock);
    return full;
}

/* Lock. Half is taken: the contexts may read again. */
void um_collector_tell_room(um_collector_t *c)
{
    c->full = false;
    struct um_list *node;
    UM_LIST_FOREACH(node, &c->links)
    {
        struct um_collector_link *link = UM_CONTAINER_OF(node, struct um_collector_link, node);
        if (link->holding) {
            link->holding = false;
            um_loop_post(link->ctx->loop, &link->release);
        }
    }
}

/* ---- names ---- */

/* Lock. NULL: a new name that must not be added, or for which there is no memory. Messages that do not come from a
 * source have no number. */
static __attribute__((noinline)) struct um_collector_route *new_route(um_collector_t *c, const lbm_msg_t *msg,
                                                                      uint64_t source_id, bool may_add)
{
    uint32_t topic, source;
    struct um_chunk *chunk = c->filling;
    struct um_book *book = chunk->book;
    bool known;
    if (may_add) {
        size_t before = chunk->name_bytes;
        known = um_names_index(&book->topics, msg->topic_name, &topic, &chunk->name_bytes) &&
                um_names_index(&book->sources, msg->source, &source, &chunk->name_bytes);
        c->queued_bytes += chunk->name_bytes - before;
    } else {
        known = um_names_find(&book->topics, msg->topic_name, &topic) &&
                um_names_find(&book->sources, msg->source, &source);
    }
    if (!known) {
        return NULL;
    }
    struct um_collector_route *route = source_id != 0 ? &c->routes[source_id & (UM_COLLECTOR_ROUTES - 1)] : &c->last;
    *route = (struct um_collector_route){.source_id = source_id, .topic = topic, .source = source};
    return route;
}

static inline struct um_collector_route *find_route(um_collector_t *c, const lbm_msg_t *msg,
                                                    const struct um_rcv_flow *origin, bool may_add)
{
    uint64_t id = origin != NULL ? origin->id : 0;
    struct um_collector_route *route = &c->routes[id & (UM_COLLECTOR_ROUTES - 1)];
    return likely(route->source_id == id && id != 0) ? route : new_route(c, msg, id, may_add);
}

/* ---- into the chunk ---- */

enum verdict { ACCEPT, ACCEPT_AND_HOLD, DROP_FULL };

/* Lock. The message goes beyond the bound. What has been read from a TCP session that is held always finds a place; its
 * source is kept from sending more. So does what recovery brings: no more is asked for. Events are small and may use
 * the room beyond the bound. */
static __attribute__((noinline)) enum verdict at_the_bound(um_collector_t *c, const struct um_arrival *a)
{
    const struct um_rcv_flow *origin = a->origin;
    if (c->on_full == UM_ON_FULL_DROP_OLDEST) {
        return um_collector_drop_oldest(c, um_collector_room_of(a)) ? ACCEPT : DROP_FULL;
    }
    if (c->on_full == UM_ON_FULL_PAUSE && a->link != NULL && origin != NULL && um_rcv_flow_can_hold(origin)) {
        c->full = true;
        a->link->holding = true;
        c->stats.pauses += !origin->held;
        return ACCEPT_AND_HOLD;
    }
    if (a->payload) {
        return c->queued_records == 0 ? ACCEPT : DROP_FULL;
    }
    return c->queued_bytes <= c->max_bytes + UM_COLLECTOR_LOSS_ROOM ? ACCEPT : DROP_FULL;
}

/* Lock. Into the chunk. NULL, or why it was dropped. */
static inline const char *gather(um_collector_t *c, const struct um_arrival *a, bool *hold)
{
    const char *failure = NULL;
    size_t room = um_collector_room_of(a);
    if (unlikely(c->queued_bytes + room + sizeof(um_record_t) > c->max_bytes)) {
        enum verdict verdict = at_the_bound(c, a);
        failure = verdict == DROP_FULL ? "is full" : NULL;
        *hold = verdict == ACCEPT_AND_HOLD;
    }
    /* What is dropped brings names only while its loss may still be recorded. */
    struct um_collector_route *route =
        find_route(c, a->msg, a->origin, failure == NULL || c->queued_bytes <= c->max_bytes + UM_COLLECTOR_LOSS_ROOM);
    if (likely(failure == NULL) &&
        unlikely(route == NULL || (!um_chunk_has_room(c->filling, room) && !um_chunk_grow(c->filling, room)))) {
        failure = "is out of memory";
    }
    if (unlikely(failure != NULL)) {
        um_collector_drop(c, route, a);
        return failure;
    }
    route->dropping = false;
    um_collector_write(c, um_collector_record_of(a, route), a->data, &a->tail);
    c->stats.messages += a->payload;
    c->stats.bytes += a->payload ? a->len : 0;
    return NULL;
}

/* ---- the newest message of each topic ---- */

/* Lock. In the place of the message of its topic that waits, or at the end; events are not replaced. NULL, or why it
 * was dropped. */
static const char *conflate(um_collector_t *c, const struct um_arrival *a)
{
    static const struct um_collector_route nowhere;
    const lbm_msg_t *msg = a->msg;
    struct um_waiting *waiting = a->payload ? um_line_find(&c->newest, msg->topic_name, NULL) : NULL;
    bool fresh = waiting == NULL;
    um_record_t record = um_collector_record_of(a, &nowhere);
    if (fresh) {
        waiting = um_line_add(&c->newest, msg->topic_name, msg->source, a->payload);
    }
    if (waiting == NULL || (!fresh && !um_line_set_source(&c->newest, waiting, msg->source)) ||
        !um_line_set(&c->newest, waiting, &record, a->data, &a->tail)) {
        if (fresh && waiting != NULL) {
            um_line_remove(&c->newest, waiting);
        }
        um_collector_count_dropped(c, msg->source);
        um_collector_add_lost(c, NULL, 1, a->wall_ns);
        return "is out of memory";
    }
    c->queued_records += fresh;
    c->stats.conflated += !fresh;
    c->stats.messages += a->payload;
    c->stats.bytes += a->payload ? a->len : 0;
    while (c->newest.bytes > c->max_bytes && c->newest.count > 1) {
        um_collector_give_up_topic(c, waiting);
    }
    c->queued_bytes = c->newest.bytes;
    return NULL;
}

/* ---- both ---- */

static void log_dropped(const lbm_msg_t *msg, const char *why)
{
    um_log_limited(um_log_of(msg->source), um_clock_ns(), UM_LOG_WARNING, "Core-20207-4",
                   "topic [%s] source [%s]: sequence number %u: collector %s; dropped", msg->topic_name, msg->source,
                   msg->sequence_number, why);
}

static inline struct um_collector_link *link_of(const um_collector_t *c, const lbm_rcv_t *rcv)
{
    return likely(rcv->collector != NULL && rcv->collector->collector == c) ? rcv->collector : NULL;
}

/* Lock. A read that goes on notifies at its end. */
static inline void notify_of(um_collector_t *c, const struct um_collector_link *link, const struct um_rcv_flow *origin)
{
    if (c->queued_records > 0 && (link == NULL || origin == NULL || !origin->reading)) {
        um_collector_notify(c);
    }
}

/* What goes with the record of a message: whoever gets a request as a copy answers it later; properties are kept as
 * they came. */
static void find_tail(struct um_arrival *a, lbm_serialized_response_t *way_back)
{
    const lbm_msg_t *msg = a->msg;
    if (msg->response != NULL && um_response_serialize(msg->response, way_back, "um_collector") == 0) {
        a->tail.way_back = way_back;
        a->tail_flags |= UM_MSG_FLAG_ANSWERABLE;
    }
    if (msg->properties != NULL) {
        struct um_slice came = um_properties_received(msg->properties);
        a->tail.properties = came.ptr;
        a->tail.properties_len = came.len;
        a->tail_flags |= UM_MSG_FLAG_PROPERTIES;
    }
    if (msg->channel_info != NULL) {
        a->tail.channel = msg->channel_info->channel_number;
        a->tail_flags |= UM_MSG_FLAG_CHANNEL;
    }
}

/* For who wants to know, what the source says of a message that no receiver of hot failover has merged, and of its
 * channel. */
static void find_numbers_of_source(struct um_arrival *a)
{
    const struct um_msg *msg = (const struct um_msg *)a->msg;
    struct um_lbmc_hf told;
    if (!a->payload) {
        return;
    }
    if (msg->channel.flags != 0) {
        a->tail.channel = msg->channel.channel_number;
        a->tail_flags |= UM_MSG_FLAG_CHANNEL;
    }
    if (a->origin != NULL && (a->msg->flags & UM_RECORD_HF) == 0 && um_lbmc_get_hf(a->origin->lane->chain, &told)) {
        a->tail.hf_number = told.sqn;
        a->tail_flags |= told.wide ? LBM_MSG_FLAG_HF_64 : LBM_MSG_FLAG_HF_32;
        a->tail_flags |= (told.flags & UM_LBMC_HF_OPTIONAL) != 0 ? LBM_MSG_FLAG_HF_OPTIONAL : 0;
        a->tail_flags |= (told.flags & UM_LBMC_HF_RESET) != 0 ? UM_MSG_FLAG_HF_RESET : 0;
    }
}

static void find_number(struct um_arrival *a)
{
    const lbm_hf_sequence_number_t *number = &a->msg->hf_sequence_number;
    if (a->msg->flags & UM_RECORD_HF) {
        a->tail.hf_number = a->msg->flags & LBM_MSG_FLAG_HF_64 ? number->u64 : number->u32;
    }
}

/* Whatever comes, and whatever has to be done for it. `link` NULL: no session is held for it. */
static __attribute__((noinline)) void append_any(um_collector_t *c, struct um_collector_link *link,
                                                 const lbm_msg_t *msg, uint64_t wall_ns)
{
    struct um_arrival a = {.msg = msg,
                           .origin = ((const struct um_msg *)msg)->origin,
                           .data = msg->data,
                           .len = msg->len,
                           .link = link,
                           .payload = um_collector_is_message(msg->type),
                           .wall_ns = (int64_t)wall_ns};
    lbm_serialized_response_t way_back;
    bool hold = false;
    const char *failure;
    if (!a.payload) {
        bool burst = msg->type == LBM_MSG_UNRECOVERABLE_LOSS_BURST;
        a.lost = um_msg_losses((const struct um_msg *)msg);
        a.data = &a.lost;
        a.len = burst ? sizeof a.lost : 0;
    } else {
        find_tail(&a, &way_back);
    }
    find_number(&a);
    if (c->sees_numbers) {
        find_numbers_of_source(&a);
    }
    um_lock_take(&c->lock);
    failure = c->on_full != UM_ON_FULL_CONFLATE ? gather(c, &a, &hold) : conflate(c, &a);
    if (um_collector_wants_notice(c)) {
        notify_of(c, link, a.origin);
    }
    um_lock_give(&c->lock);
    if (hold) {
        um_rcv_flow_hold(((const struct um_msg *)msg)->origin);
    }
    if (failure != NULL) {
        log_dropped(msg, failure);
    }
}

/* Lock. A message of a source that is known, for which there is room: as gather() would. False: it is another. */
static inline bool append_plain(um_collector_t *c, const lbm_msg_t *msg, uint64_t id, int64_t wall_ns)
{
    struct um_chunk *chunk = c->filling;
    struct um_collector_route *route = &c->routes[id & (UM_COLLECTOR_ROUTES - 1)];
    size_t len = msg->len, queued = c->queued_bytes + len + sizeof(um_record_t);
    if (unlikely(queued > c->plain_max || route->source_id != id || !um_chunk_has_room(chunk, len))) {
        return false;
    }
    route->dropping = false;
    um_record_t *record = &chunk->records[chunk->count++];
    um_collector_fill(record, msg, len, wall_ns);
    record->topic = route->topic;
    record->source = route->source;
    record->offset = chunk->data_len;
    if (likely(len > 0)) {
        memcpy(chunk->data + chunk->data_len, msg->data, len);
    }
    chunk->data_len += len;
    c->queued_bytes = queued;
    c->queued_records++;
    c->stats.messages++;
    c->stats.bytes += len;
    return true;
}

static inline bool has_tail(const um_collector_t *c, const struct um_rcv_flow *origin, const lbm_msg_t *msg)
{
    return msg->properties != NULL || msg->channel_info != NULL || (msg->flags & UM_RECORD_HF) != 0 ||
           (unlikely(c->sees_numbers) && origin->lane->chain.len > 0);
}

/* What an HFX has kept may come on the thread of another context, which must not look at the clock of this one. */
static uint64_t wall_of(const lbm_rcv_t *rcv, const lbm_msg_t *msg)
{
    return um_loop_on_thread(rcv->ctx->loop)
               ? um_loop_wall_now(rcv->ctx->loop)
               : (uint64_t)msg->tsp.tv_sec * UM_NS_PER_SEC + (uint64_t)msg->tsp.tv_usec * 1000;
}

void um_collector_append(um_collector_t *c, lbm_rcv_t *rcv, const lbm_msg_t *msg)
{
    const struct um_rcv_flow *origin = ((const struct um_msg *)msg)->origin;
    uint64_t wall_ns = likely(origin != NULL) ? um_loop_wall_now(origin->lane->loop) : wall_of(rcv, msg);
    bool done = false;
    if (likely(origin != NULL && c->plain_max > 0 && msg->type == LBM_MSG_DATA && !has_tail(c, origin, msg))) {
        um_lock_take(&c->lock);
        done = append_plain(c, msg, origin->id, (int64_t)wall_ns);
        if (done && unlikely(um_collector_wants_notice(c))) {
            notify_of(c, link_of(c, rcv), origin);
        }
        um_lock_give(&c->lock);
    }
    if (unlikely(!done)) {
        append_any(c, link_of(c, rcv), msg, wall_ns);
    }
}

void um_collector_look_for_numbers(um_collector_t *c)
{
    c->sees_numbers = true;
}

/* A callback like those of the application; core knows a receiver with a collector by its address. */
int um_collector_rcv_cb(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    um_collector_append(clientd, rcv, msg);
    return 0;
}

int um_collector_immediate_cb(lbm_context_t *ctx, lbm_msg_t *msg, void *clientd)
{
    append_any(clientd, NULL, msg, um_loop_wall_now(ctx->loop));
    return 0;
}
