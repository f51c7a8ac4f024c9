/* Collectors: appending on context threads, taking by swapping, the bound and
 * what happens at it. One short lock per collector; nothing waits inside it.
 *
 * Life of a byte: appended to `filling`; the taker swaps `filling` for an empty
 * chunk when it has handed out all of `draining`; batches are views of it. */
#include "core/collector.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "core/collector_store.h"
#include "core/um_object_counts.h"
#include "core/um_rcv_private.h"
#include "net/um_loop.h"

#define COLLECTOR_MAGIC 0x554d434cu /* "UMCL" */
#define DEFAULT_MAX_BYTES (64u << 20)
#define ROUTES 1024u           /* power of two */
#define LOSS_ROOM (64u * 1024) /* beyond the bound, for events and the records of losses */

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* The indexes of a source seen before, by its number. */
struct route {
    uint64_t source_id; /* 0: unused */
    uint32_t topic, source;
    bool dropping; /* a record tells of the loss already */
};

struct um_collector_stct {
    uint32_t magic;
    struct um_lock lock;
    struct um_condition changed; /* with lock */
    size_t max_bytes;            /* fixed */
    struct um_store *store;
    struct um_chunk *filling;    /* lock */
    size_t queued_bytes;         /* lock; records included */
    size_t queued_records;       /* lock */
    atomic_bool full;            /* changed under lock: TCP sessions are left unread until half is taken */
    bool sleeping;               /* lock: the taker waits and nobody has woken it yet */
    bool woken;                  /* lock: the running or next take returns 0 */
    bool taking;                 /* lock: a thread is inside take */
    bool deleting;               /* lock */
    bool signaled;               /* lock: the descriptor is readable */
    int fd;                      /* lock; -1: not asked for yet */
    int users;                   /* lock: receivers */
    struct um_list links;        /* lock */
    struct um_chunk *draining;   /* taker: NULL when all of it is handed out */
    size_t handed_out;           /* taker: records of draining */
    struct um_chunk *spare;      /* taker: becomes `filling` at the swap */
    um_collector_stats_t stats;  /* lock */
    struct route last;           /* lock */
    struct route routes[ROUTES]; /* lock */
};

struct um_collector_link {
    struct um_list node; /* collector->links */
    um_collector_t *collector;
    lbm_context_t *ctx;
    int uses;                  /* collector's lock */
    bool holding;              /* collector's lock: sessions of the context may be held since the last news */
    struct um_command release; /* runs on the context's loop */
};

/* ---- life ---- */

int um_collector_open(um_collector_t **out, size_t max_bytes)
{
    um_collector_t *c = um_calloc(1, sizeof *c);
    if (c == NULL || (c->store = um_store_create()) == NULL || (c->filling = um_chunk_get(c->store)) == NULL) {
        if (c != NULL && c->store != NULL) {
            um_store_unref(c->store);
        }
        um_free(c);
        return um_error_nomem("um_collector_create: collector", sizeof *c);
    }
    c->magic = COLLECTOR_MAGIC;
    c->max_bytes = max_bytes != 0 ? max_bytes : DEFAULT_MAX_BYTES;
    c->fd = -1;
    um_list_init(&c->links);
    um_object_count(UM_OBJECT_COLLECTOR, 1);
    *out = c;
    return 0;
}

int um_collector_check(const um_collector_t *c, const char *api)
{
    if (c == NULL || c->magic != COLLECTOR_MAGIC) {
        return um_error(UM_EINVAL, "CoreApi-20207-1", "%s: collector %p: must be a live collector", api,
                        (const void *)c);
    }
    return 0;
}

static void free_chunk(um_collector_t *c, struct um_chunk *chunk)
{
    if (chunk != NULL) {
        um_chunk_unref(c->store, chunk);
    }
}

int um_collector_close(um_collector_t *c)
{
    um_lock_take(&c->lock);
    if (c->users > 0) {
        int users = c->users;
        um_lock_give(&c->lock);
        return um_error(UM_EOP, "CoreApi-20207-2", "um_collector_delete: %d receivers still use it; delete them first",
                        users);
    }
    c->deleting = true;
    um_condition_signal_all(&c->changed);
    while (c->taking) {
        um_condition_wait(&c->changed, &c->lock);
    }
    c->magic = 0;
    um_lock_give(&c->lock);
    free_chunk(c, c->filling);
    free_chunk(c, c->draining);
    free_chunk(c, c->spare);
    um_store_unref(c->store);
    if (c->fd >= 0) {
        close(c->fd);
    }
    um_free(c);
    um_object_count(UM_OBJECT_COLLECTOR, -1);
    return 0;
}

/* ---- links ---- */

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

bool um_collector_full(const struct um_collector_link *link)
{
    return atomic_load_explicit(&link->collector->full, memory_order_relaxed);
}

/* Lock. Half is taken: the contexts may read again. */
static void tell_room(um_collector_t *c)
{
    atomic_store_explicit(&c->full, false, memory_order_relaxed);
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

/* ---- appending ---- */

/* Lock. Records wait: wake the taker if it sleeps, make the descriptor readable if somebody asked for it. */
static void notify(um_collector_t *c)
{
    if (c->sleeping) {
        c->sleeping = false;
        um_condition_signal_all(&c->changed);
    }
    if (c->fd >= 0 && !c->signaled) {
        uint64_t one = 1;
        c->signaled = write(c->fd, &one, sizeof one) == sizeof one;
    }
}

static inline bool wants_notice(const um_collector_t *c)
{
    return c->sleeping || (c->fd >= 0 && !c->signaled);
}

void um_collector_read_end(struct um_collector_link *link)
{
    um_collector_t *c = link->collector;
    um_lock_take(&c->lock);
    if (c->queued_records > 0 && wants_notice(c)) {
        notify(c);
    }
    um_lock_give(&c->lock);
}

/* Lock. NULL: out of memory for a new name. Messages that do not come from a source have no number. */
static __attribute__((noinline)) struct route *new_route(um_collector_t *c, const lbm_msg_t *msg, uint64_t source_id)
{
    uint32_t topic, source;
    if (!um_names_index(&c->store->topics, msg->topic_name, &topic) ||
        !um_names_index(&c->store->sources, msg->source, &source)) {
        return NULL;
    }
    struct route *route = source_id != 0 ? &c->routes[source_id & (ROUTES - 1)] : &c->last;
    *route = (struct route){.source_id = source_id, .topic = topic, .source = source};
    return route;
}

static inline struct route *find_route(um_collector_t *c, const lbm_msg_t *msg, const struct um_rcv_source *origin)
{
    uint64_t id = origin != NULL ? origin->id : 0;
    struct route *route = &c->routes[id & (ROUTES - 1)];
    return likely(route->source_id == id && id != 0) ? route : new_route(c, msg, id);
}

/* The card's or the kernel's time where it was asked for, else that of the read. */
static inline int64_t arrival_ns(const lbm_msg_t *msg, int64_t wall_ns)
{
    const lbm_timespec_t *hr = &msg->hr_timestamp;
    return likely(hr->tv_sec == 0) ? wall_ns : (int64_t)(hr->tv_sec * UM_NS_PER_SEC + hr->tv_nsec);
}

/* Lock; there is room. */
static inline void write_record(um_collector_t *c, const struct route *route, const lbm_msg_t *msg, int type,
                                size_t len, int64_t wall_ns)
{
    struct um_chunk *chunk = c->filling;
    bool precise = msg->hr_timestamp.tv_sec != 0;
    chunk->records[chunk->count++] = (um_record_t){
        .offset = chunk->data_len,
        .length = (uint32_t)len,
        .sequence_number = msg->sequence_number,
        .flags = msg->flags | (precise ? UM_MSG_FLAG_HR_TIMESTAMP : 0),
        .type = type,
        .topic = route->topic,
        .source = route->source,
        .timestamp_ns = arrival_ns(msg, wall_ns),
    };
    if (len > 0) {
        memcpy(chunk->data + chunk->data_len, msg->data, len);
        chunk->data_len += len;
    }
    c->queued_records++;
    c->queued_bytes += len + sizeof(um_record_t);
}

static void log_dropped(const lbm_msg_t *msg, const char *why)
{
    static struct um_log_limit limit;
    um_log_limited(&limit, um_clock_ns(), 10 * UM_NS_PER_SEC, UM_LOG_WARNING, "Core-20207-4",
                   "topic [%s] source [%s]: sequence number %u: collector %s; dropped", msg->topic_name, msg->source,
                   msg->sequence_number, why);
}

/* Lock. The newest message is dropped. One record tells of it and of those that follow it into the void. */
static void drop(um_collector_t *c, struct route *route, const lbm_msg_t *msg, int64_t wall_ns)
{
    c->stats.dropped++;
    if (route == NULL || (route->source_id != 0 && route->dropping) || c->queued_bytes > c->max_bytes + LOSS_ROOM ||
        !um_chunk_grow(c->filling, 0)) {
        return;
    }
    route->dropping = true;
    write_record(c, route, msg, LBM_MSG_UNRECOVERABLE_LOSS, 0, wall_ns);
}

enum verdict { ACCEPT, ACCEPT_AND_HOLD, DROP_FULL };

/* Lock. The message goes beyond the bound. What has been read from a TCP session always finds a place; its source is
 * kept from sending more. Events are small and may use the room beyond the bound. */
static __attribute__((noinline)) enum verdict at_the_bound(um_collector_t *c, struct um_collector_link *link,
                                                           const struct um_rcv_source *origin, bool payload)
{
    if (link != NULL && origin != NULL && um_rcv_source_can_hold(origin)) {
        atomic_store_explicit(&c->full, true, memory_order_relaxed);
        link->holding = true;
        c->stats.pauses += !origin->held;
        return ACCEPT_AND_HOLD;
    }
    if (payload) {
        return c->queued_records == 0 ? ACCEPT : DROP_FULL;
    }
    return c->queued_bytes <= c->max_bytes + LOSS_ROOM ? ACCEPT : DROP_FULL;
}

void um_collector_append(um_collector_t *c, lbm_rcv_t *rcv, const lbm_msg_t *msg)
{
    struct um_rcv_source *origin = ((const struct um_msg *)msg)->origin;
    struct um_collector_link *link =
        likely(rcv->collector != NULL && rcv->collector->collector == c) ? rcv->collector : NULL;
    int64_t wall_ns = (int64_t)um_loop_wall_now(rcv->ctx->loop);
    bool payload = msg->type == LBM_MSG_DATA || msg->type == LBM_MSG_REQUEST;
    size_t len = payload ? msg->len : 0;
    enum verdict verdict = ACCEPT;
    const char *failure = NULL;
    um_lock_take(&c->lock);
    struct route *route = find_route(c, msg, origin);
    if (unlikely(c->queued_bytes + len + sizeof(um_record_t) > c->max_bytes)) {
        verdict = at_the_bound(c, link, origin, payload);
        failure = verdict == DROP_FULL ? "is full" : NULL;
    }
    if (unlikely(route == NULL || (!um_chunk_has_room(c->filling, len) && !um_chunk_grow(c->filling, len)))) {
        failure = "is out of memory";
    }
    if (likely(failure == NULL)) {
        route->dropping = false;
        write_record(c, route, msg, msg->type, len, wall_ns);
        c->stats.messages += payload;
        c->stats.bytes += len;
    } else {
        drop(c, route, msg, wall_ns);
    }
    if (wants_notice(c) && c->queued_records > 0 && (link == NULL || origin == NULL || !origin->reading)) {
        notify(c);
    }
    um_lock_give(&c->lock);
    if (unlikely(verdict == ACCEPT_AND_HOLD)) {
        um_rcv_source_hold(origin);
    }
    if (unlikely(failure != NULL)) {
        log_dropped(msg, failure);
    }
}

/* ---- taking ---- */

/* Lock. Nothing waits any more: the descriptor is not readable until it does again. */
static void clear_descriptor(um_collector_t *c)
{
    if (c->queued_records == 0 && c->signaled) {
        uint64_t writes;
        c->signaled = read(c->fd, &writes, sizeof writes) < 0 && errno != EAGAIN;
    }
}

/* Lock. The taker's chunk is used up: it gets what has been gathered meanwhile. */
static void swap_chunks(um_collector_t *c)
{
    if (c->draining == NULL) {
        c->draining = c->filling;
        c->filling = c->spare;
        c->spare = NULL;
        c->handed_out = 0;
    }
}

/* Lock. */
static um_batch_t *make_batch(um_collector_t *c, size_t max_messages)
{
    size_t left = c->draining->count - c->handed_out;
    size_t count = max_messages != 0 && max_messages < left ? max_messages : left;
    um_batch_t *batch = um_batch_create(c->store, c->draining, c->handed_out, count);
    if (batch == NULL) {
        return NULL;
    }
    c->handed_out += count;
    if (count == left) {
        um_chunk_unref(c->store, c->draining); /* the batch has a reference of its own */
        c->draining = NULL;
    }
    c->queued_records -= count;
    c->queued_bytes -= batch->data_len + count * sizeof(um_record_t);
    c->stats.taken += count;
    if (atomic_load_explicit(&c->full, memory_order_relaxed) && c->queued_bytes <= c->max_bytes / 2) {
        tell_room(c);
    }
    return batch;
}

/* Lock, given up while waiting. True: records wait. */
static bool wait_for_records(um_collector_t *c, int timeout_ms)
{
    uint64_t now = timeout_ms > 0 ? um_clock_ns() : 0;
    uint64_t until = timeout_ms > 0 ? now + (uint64_t)timeout_ms * UM_NS_PER_MS : 0;
    while (c->queued_records == 0 && !c->woken && !c->deleting && timeout_ms != 0) {
        if (timeout_ms > 0 && (now = um_clock_ns()) >= until) {
            break;
        }
        c->sleeping = true;
        um_condition_wait_for(&c->changed, &c->lock, timeout_ms > 0 ? until - now : UM_NEVER);
        c->sleeping = false;
    }
    bool found = c->queued_records > 0 && !c->woken && !c->deleting;
    c->woken = false;
    return found;
}

static int check_taker(const um_collector_t *c, int timeout_ms)
{
    if (c->taking) {
        return um_error(UM_EOP, "CoreApi-20207-5",
                        "um_collector_take: another thread is taking; one thread at a time takes");
    }
    if (timeout_ms != 0 && um_loop_in_any()) {
        return um_error(UM_EOP, "CoreApi-20207-6",
                        "um_collector_take: timeout_ms %d: must be 0 in a callback that runs on a context thread",
                        timeout_ms);
    }
    return 0;
}

int um_collector_take_batch(um_collector_t *c, size_t max_messages, int timeout_ms, um_batch_t **out)
{
    int rc = 0;
    um_lock_take(&c->lock);
    if (check_taker(c, timeout_ms) != 0) {
        um_lock_give(&c->lock);
        return -1;
    }
    c->taking = true;
    if (c->spare == NULL) {
        um_lock_give(&c->lock);
        struct um_chunk *spare = um_chunk_get(c->store);
        um_lock_take(&c->lock);
        c->spare = spare;
    }
    if (c->spare == NULL) {
        rc = um_error_nomem("um_collector_take: chunk", sizeof *c->spare);
    } else if (wait_for_records(c, timeout_ms)) {
        swap_chunks(c);
        *out = make_batch(c, max_messages);
        rc = *out != NULL ? 1 : um_error_nomem("um_collector_take: batch", sizeof **out);
    }
    clear_descriptor(c);
    c->taking = false;
    if (c->deleting) {
        um_condition_signal_all(&c->changed);
    }
    um_lock_give(&c->lock);
    return rc;
}

void um_collector_interrupt(um_collector_t *c)
{
    um_lock_take(&c->lock);
    c->woken = true;
    um_condition_signal_all(&c->changed);
    um_lock_give(&c->lock);
}

int um_collector_descriptor(um_collector_t *c)
{
    um_lock_take(&c->lock);
    if (c->fd < 0) {
        c->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (c->fd >= 0 && c->queued_records > 0) {
            notify(c);
        }
    }
    int fd = c->fd;
    int err = errno;
    um_lock_give(&c->lock);
    if (fd < 0) {
        return um_error(UM_EOS, "CoreApi-20207-7", "um_collector_fd: eventfd: %s", strerror(err));
    }
    return fd;
}

void um_collector_counts(um_collector_t *c, um_collector_stats_t *out)
{
    um_lock_take(&c->lock);
    *out = c->stats;
    out->queued_messages = c->queued_records;
    out->queued_bytes = c->queued_bytes;
    um_lock_give(&c->lock);
}
