/* What the SRS sends: a queue of references for each client, batches of records
 * as the client grants frames, and the lists that new interest asks for. What has
 * to be listed is kept where the interest is, so that a queue only grows by
 * changes; who does not take those is closed and may begin anew. */
#include "base/um_mem.h"
#include "resolver/um_srs_private.h"

#define FIRST_ITEMS 64
#define KEPT_ITEMS 4096     /* a longer array is given back when it is empty */
#define LISTED_IN_A_TURN 64 /* steps of listing: a topic, or a part of the table */
#define SHORT_OF_MEMORY 16  /* where half of all memory is taken, a client may leave this part of its queue to wait */

/* An item is a pointer with its kind in the low bits. */
enum item { ITEM_INFO = 0, ITEM_END = 1, ITEM_NOTE = 2, ITEM_MASK = 3 };

/* ---- the queue ------------------------------------------------------------------- */

static void free_items(struct um_srs_peer *peer)
{
    size_t size = peer->queue.capacity * sizeof(*peer->queue.items);
    srs_state_free(peer->engine, NULL, peer->queue.items, size);
}

static bool grow(struct um_srs_peer *peer)
{
    struct srs_queue *queue = &peer->queue;
    size_t capacity = queue->capacity != 0 ? 2 * queue->capacity : FIRST_ITEMS, size = capacity * sizeof(uintptr_t);
    uintptr_t *items = srs_state_alloc(peer->engine, NULL, size, size);
    if (items == NULL) {
        return false;
    }
    for (size_t i = 0; i < queue->count; i++) {
        items[i] = queue->items[(queue->head + i) & (queue->capacity - 1)];
    }
    free_items(peer);
    *queue = (struct srs_queue){items, capacity, 0, queue->count};
    return true;
}

static bool push(struct um_srs_peer *peer, uintptr_t item)
{
    struct srs_queue *queue = &peer->queue;
    if (peer->doomed || (queue->count == queue->capacity && !grow(peer))) {
        peer->doomed = true;
        srs_peer_ready(peer);
        return false;
    }
    queue->items[(queue->head + queue->count++) & (queue->capacity - 1)] = item;
    srs_peer_ready(peer);
    return true;
}

/* What waits keeps sources that have ended: not for long where memory becomes short. */
static void doom_if_slow(struct um_srs_peer *peer)
{
    const struct um_srs_config *config = &peer->engine->config;
    bool is_short = peer->engine->bytes > config->max_state_bytes / 2;
    if (peer->queue.count > config->max_queue / (is_short ? SHORT_OF_MEMORY : 1) && !peer->doomed) {
        peer->doomed = true; /* closed and counted in the next turn, not among those who walk lists now */
        srs_peer_ready(peer);
    }
}

static uintptr_t pop(struct srs_queue *queue)
{
    uintptr_t item = queue->items[queue->head];
    queue->head = (queue->head + 1) & (queue->capacity - 1);
    queue->count--;
    return item;
}

static struct srs_source *source_of(uintptr_t item)
{
    return (struct srs_source *)(item & ~(uintptr_t)ITEM_MASK);
}

static struct srs_note *note_of(uintptr_t item)
{
    return (struct srs_note *)(item & ~(uintptr_t)ITEM_MASK);
}

static void free_note(struct um_srs_peer *peer, struct srs_note *note)
{
    srs_state_free(peer->engine, NULL, note, sizeof(*note) + note->len);
}

static void done_with(struct um_srs_peer *peer, uintptr_t item)
{
    if ((item & ITEM_MASK) == ITEM_NOTE) {
        free_note(peer, note_of(item));
    } else {
        srs_source_unref(peer->engine, source_of(item));
    }
}

void srs_queue_drop(struct um_srs_peer *peer)
{
    while (peer->queue.count > 0) {
        done_with(peer, pop(&peer->queue));
    }
    free_items(peer);
    peer->queue = (struct srs_queue){0};
}

static void push_source(struct um_srs_peer *peer, struct srs_source *source, bool end)
{
    source->refs++;
    if (!push(peer, (uintptr_t)source | (end ? ITEM_END : ITEM_INFO))) {
        source->refs--; /* not the last one: the caller's is there */
    }
}

void srs_push_change(struct um_srs_peer *peer, struct srs_source *source, bool end)
{
    push_source(peer, source, end);
    doom_if_slow(peer);
}

struct srs_note *srs_note_alloc(struct um_srs_peer *router, size_t len)
{
    struct srs_note *note = srs_state_alloc(router->engine, NULL, sizeof(*note) + len, sizeof(*note) + len);
    if (note != NULL) {
        note->len = (uint16_t)len;
    }
    return note;
}

void srs_push_note(struct um_srs_peer *peer, struct srs_note *note)
{
    if (!push(peer, (uintptr_t)note | ITEM_NOTE)) {
        free_note(peer, note);
    }
    doom_if_slow(peer);
}

void srs_push_topic(struct um_srs_peer *peer, struct srs_topic *topic, uint64_t until)
{
    struct um_list *it;
    UM_LIST_FOREACH(it, &topic->sources)
    {
        struct srs_source *source = UM_CONTAINER_OF(it, struct srs_source, of_topic);
        if (source->session != peer->session && source->number <= until) {
            push_source(peer, source, false);
        }
    }
}

/* ---- telling all -------------------------------------------------------------------- */

static void tell_peer(struct um_srs_peer *peer, uint64_t round, struct srs_source *source, bool end)
{
    if (peer->round != round) {
        peer->round = round;
        srs_push_change(peer, source, end);
    }
}

static bool wants_to_know(const struct srs_interest *interest, const struct srs_source *source, bool end)
{
    return interest->want.session->peer != NULL &&
           (interest->want.state == SRS_TOLD || (end && source->number <= interest->until));
}

static void tell_subscribers(struct srs_pattern *pattern, uint64_t round, struct srs_source *source, bool end)
{
    struct um_list *it;
    UM_LIST_FOREACH(it, &pattern->subscriptions)
    {
        const struct srs_want *want = &UM_CONTAINER_OF(it, struct srs_subscription, of_pattern)->want;
        if (want->state == SRS_TOLD) {
            tell_peer(want->session->peer, round, source, end);
        }
    }
}

void srs_tell(struct um_srs_engine *engine, struct srs_source *source, bool end)
{
    uint64_t round = ++engine->round;
    struct um_list *it;
    if (source->session->peer != NULL) {
        source->session->peer->round = round; /* its own are not told to a client */
    }
    UM_LIST_FOREACH(it, &source->topic->interest)
    {
        const struct srs_interest *interest = UM_CONTAINER_OF(it, struct srs_interest, of_topic);
        if (wants_to_know(interest, source, end)) {
            tell_peer(interest->want.session->peer, round, source, end);
        }
    }
    UM_LIST_FOREACH(it, &source->topic->matches)
    {
        tell_subscribers(UM_CONTAINER_OF(it, struct srs_match, of_topic)->pattern, round, source, end);
    }
    UM_LIST_FOREACH(it, &engine->flooded)
    {
        tell_peer(UM_CONTAINER_OF(it, struct um_srs_peer, flooded), round, source, end);
    }
}

/* ---- listing ------------------------------------------------------------------------- */

static void list_flood(struct um_srs_peer *peer)
{
    struct um_table_link *links[LISTED_IN_A_TURN];
    size_t count = um_table_scan(&peer->engine->topics, &peer->flood, links, LISTED_IN_A_TURN);
    for (size_t i = 0; i < count; i++) {
        srs_push_topic(peer, UM_CONTAINER_OF(links[i], struct srs_topic, link), peer->flood_until);
    }
    peer->flooding = !peer->flood.done;
}

/* Who gets everything is listed nothing for an interest. */
static enum srs_listed list_want(struct um_srs_peer *peer, struct srs_want *want)
{
    bool flooded = !(peer->mode & UM_LBMSRS_FILTER);
    if (want->is_pattern && !flooded) {
        return srs_subscription_list(peer, UM_CONTAINER_OF(want, struct srs_subscription, want));
    }
    if (!want->is_pattern && !flooded) {
        struct srs_topic *topic = UM_CONTAINER_OF(want, struct srs_interest, want)->topic;
        if (!srs_covered(peer, topic, want)) {
            srs_push_topic(peer, topic, UINT64_MAX);
        }
    }
    want->state = SRS_TOLD;
    return SRS_DONE;
}

void srs_list_some(struct um_srs_peer *peer)
{
    for (int i = 0; i < LISTED_IN_A_TURN && peer->queue.count < peer->engine->config.batch_records; i++) {
        struct um_list *first = um_list_first(&peer->waiting);
        enum srs_listed listed;
        if (peer->flooding) {
            list_flood(peer);
        } else if (peer->forwarding) {
            srs_forward_list(peer);
        } else if (first == NULL) {
            return;
        } else if ((listed = list_want(peer, UM_CONTAINER_OF(first, struct srs_want, waiting))) == SRS_DONE) {
            um_list_remove(first);
        } else if (listed == SRS_GONE) {
            return; /* it has taken the time of many */
        }
    }
}

static bool has_work(const struct um_srs_peer *peer)
{
    return peer->doomed || peer->queue.count > 0 || peer->flooding || peer->forwarding ||
           !um_list_empty(&peer->waiting);
}

/* ---- sending --------------------------------------------------------------------------- */

static void count_sent(struct um_srs_peer *peer, unsigned id, bool end)
{
    struct um_srs_client_stats *stats = &peer->stats;
    switch (id) {
    case UM_LBMSRS_SIR:
        *(end ? &stats->ser_sent : &stats->sir_sent) += 1;
        break;
    case UM_LBMSRS_RIR:
        stats->rir_sent++;
        break;
    case UM_LBMSRS_RER:
        stats->rer_sent++;
        break;
    case UM_LBMSRS_WIR:
        stats->wir_sent++;
        break;
    default:
        stats->wer_sent++;
    }
}

/* 0: no room. A source that has ended since is passed over: its end follows. */
static size_t put_item(struct um_srs_peer *peer, uintptr_t item, uint8_t *out, size_t room, bool *fits)
{
    *fits = true;
    if ((item & ITEM_MASK) == ITEM_NOTE) {
        const struct srs_note *note = note_of(item);
        *fits = note->len <= room;
        if (*fits) {
            memcpy(out, note->bytes, note->len);
            count_sent(peer, note->id, false);
        }
        return *fits ? note->len : 0;
    }
    bool end = (item & ITEM_MASK) == ITEM_END;
    const struct srs_source *source = source_of(item);
    struct um_lbmsrs_record record;
    if (source->ended && !end) {
        return 0;
    }
    srs_source_record(source, end, &record);
    size_t len = um_lbmsrs_put(&record, out, room);
    *fits = len > 0;
    if (*fits) {
        count_sent(peer, UM_LBMSRS_SIR, end);
    }
    return len;
}

/* One batch of what is queued. False: there was nothing to say. */
static bool send_batch(struct um_srs_peer *peer)
{
    struct um_srs_engine *engine = peer->engine;
    size_t len = UM_RSOCKET_HEAD_LEN;
    unsigned records = 0;
    while (peer->queue.count > 0 && records < engine->config.batch_records) {
        bool fits;
        uintptr_t item = peer->queue.items[peer->queue.head];
        size_t put = put_item(peer, item, engine->batch + len, engine->config.batch_bytes - len, &fits);
        if (!fits) {
            break;
        }
        pop(&peer->queue);
        done_with(peer, item);
        len += put;
        records += put > 0;
    }
    if (records == 0) {
        return false;
    }
    um_rsocket_put_head(engine->batch, peer->stream, UM_RSOCKET_PAYLOAD, UM_RSOCKET_NEXT, len - UM_RSOCKET_HEAD_LEN);
    peer->credit -= peer->credit != UM_RSOCKET_STREAM_MAX; /* the largest one means: without end */
    peer->blocked = !engine->config.send(engine->config.arg, peer->handle, engine->batch, len);
    return true;
}

void srs_send_frame(struct um_srs_peer *peer, const struct um_rsocket_frame *frame)
{
    uint8_t bytes[64];
    size_t len = um_rsocket_encode(frame, bytes, sizeof(bytes));
    peer->blocked = !peer->engine->config.send(peer->engine->config.arg, peer->handle, bytes, len) || peer->blocked;
}

static bool may_send(const struct um_srs_peer *peer)
{
    return peer->stream != 0 && peer->credit > 0 && !peer->blocked;
}

/* True: there is more to do at once. */
static bool serve(struct um_srs_peer *peer)
{
    for (uint32_t i = 0; i < peer->engine->config.turn_batches && may_send(peer); i++) {
        srs_list_some(peer);
        if (peer->doomed || (!send_batch(peer) && peer->queue.count == 0)) {
            break;
        }
    }
    if (peer->queue.count == 0 && peer->queue.capacity > KEPT_ITEMS) {
        srs_queue_drop(peer);
    }
    return peer->doomed || (may_send(peer) && has_work(peer));
}

static void link_ready(struct um_srs_peer *peer)
{
    if (peer->ready.next == &peer->ready) {
        um_list_push_back(&peer->engine->ready, &peer->ready);
    }
}

void srs_peer_ready(struct um_srs_peer *peer)
{
    struct um_srs_engine *engine = peer->engine;
    if (!peer->doomed && !may_send(peer)) {
        return; /* comes again when it may */
    }
    link_ready(peer);
    bool full = peer->doomed || peer->queue.count >= engine->config.batch_records;
    uint64_t due = engine->now_ns + (full ? 0 : engine->config.service_interval_ns);
    if (!um_timer_armed(&engine->service) || due < engine->service.due_ns) {
        um_timer_arm(engine->wheel, &engine->service, due);
    }
}

void srs_on_service(struct um_timer *timer, uint64_t now_ns)
{
    struct um_srs_engine *engine = UM_CONTAINER_OF(timer, struct um_srs_engine, service);
    struct um_list turn, *first;
    um_list_init(&turn);
    while ((first = um_list_first(&engine->ready)) != NULL) {
        um_list_remove(first);
        um_list_push_back(&turn, first);
    }
    bool more = false;
    while ((first = um_list_first(&turn)) != NULL) {
        struct um_srs_peer *peer = UM_CONTAINER_OF(first, struct um_srs_peer, ready);
        um_list_remove(first);
        if (serve(peer)) {
            link_ready(peer); /* what it was listed may have done so already */
            more = true;
        }
        if (peer->doomed) {
            char name[64];
            engine->stats.slow_clients++;
            um_log_limited(um_log_of_ip(peer->address->ip), engine->now_ns, UM_LOG_WARNING, "SRS-um-4",
                           "client[%s] is too slow: %zu changes wait for it; its connection is closed",
                           srs_peer_name(peer, name, sizeof(name)), peer->queue.count);
            srs_peer_close(peer, UM_RSOCKET_CONNECTION_ERROR);
        }
    }
    if (more) {
        um_timer_arm(engine->wheel, timer, now_ns);
    }
}
