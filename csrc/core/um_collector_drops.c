/* Collectors, drops: what goes when there is no room, and the records that tell of it. The loss of a message is told
 * where it would have been, or, of one that waited, before all others. Under the collector's lock, on the thread that
 * appends or takes; see um_collector_parts.h. */
#include "core/um_collector_parts.h"

#define GONE_MAX 1024u /* records that tell of what had to go, or had to go and are events themselves */

/* ---- what has come ---- */

/* Lock. One burst tells of a message that is dropped and of those of its source that follow it into the void. */
static void tell_dropped(um_collector_t *c, struct um_collector_route *route, const struct um_arrival *a, uint64_t lost)
{
    struct um_chunk *chunk = c->filling;
    if (route != NULL && route->source_id != 0 && route->dropping && route->turn == c->turn) {
        unsigned char *told = chunk->data + chunk->records[route->told_at].offset;
        uint64_t count;
        memcpy(&count, told, sizeof count);
        count += lost;
        memcpy(told, &count, sizeof count);
        return;
    }
    if (route == NULL || c->queued_bytes > c->max_bytes + UM_COLLECTOR_LOSS_ROOM ||
        !um_chunk_grow(chunk, sizeof lost)) {
        c->untold += lost;
        c->untold_ns = a->wall_ns;
        return;
    }
    um_record_t burst = um_collector_record_of(a, route);
    burst.type = LBM_MSG_UNRECOVERABLE_LOSS_BURST;
    burst.flags = 0;
    burst.length = sizeof lost;
    route->dropping = true;
    route->turn = c->turn;
    route->told_at = chunk->count;
    um_collector_write(c, burst, &lost, NULL);
}

/* Lock. A message, or an event that is no loss, is dropped. */
void um_collector_count_dropped(um_collector_t *c, const char *source)
{
    c->stats.dropped++;
    um_tally_add(&c->tally, source);
}

/* Lock. What has come is dropped. A loss that it told of was counted where it happened. */
void um_collector_drop(um_collector_t *c, struct um_collector_route *route, const struct um_arrival *a)
{
    uint64_t lost = a->payload ? 1 : um_collector_losses_of(a->msg->type, a->data);
    if (a->payload || lost == 0) {
        um_collector_count_dropped(c, a->msg->source);
    }
    if (lost > 0) {
        tell_dropped(c, route, a, lost);
    }
}

/* ---- what had to go ---- */

/* Lock. The burst of a topic and source among `gone`, made if there is none; NULL: no room for it. */
static struct um_waiting *burst_of(um_collector_t *c, const char *topic, const char *source, const um_record_t *first)
{
    uint64_t none = 0;
    struct um_waiting *burst = um_line_find(&c->gone, topic, source);
    if (burst != NULL || c->gone.count >= GONE_MAX) {
        return burst;
    }
    um_record_t record = *first;
    record.type = LBM_MSG_UNRECOVERABLE_LOSS_BURST;
    record.flags = 0;
    record.length = sizeof none;
    burst = um_line_add(&c->gone, topic, source, true);
    if (burst != NULL && !um_line_set(&c->gone, burst, &record, &none, NULL)) {
        um_line_remove(&c->gone, burst);
        return NULL;
    }
    c->queued_records += burst != NULL;
    return burst;
}

/* Lock. So many messages are lost; NULL: a burst without names tells of them. */
void um_collector_add_lost(um_collector_t *c, struct um_waiting *burst, uint64_t count, int64_t wall_ns)
{
    uint64_t before;
    if (burst == NULL) {
        c->untold += count;
        c->untold_ns = wall_ns;
        return;
    }
    memcpy(&before, burst->data, sizeof before);
    before += count;
    memcpy(burst->data, &before, sizeof before);
}

/* Lock. One burst without topic and source tells of what no other had room for. */
void um_collector_tell_untold(um_collector_t *c)
{
    um_record_t record = {.timestamp_ns = c->untold_ns};
    uint64_t count = c->untold;
    c->untold = 0;
    um_collector_add_lost(c, burst_of(c, "", "", &record), count, c->untold_ns);
}

/* Lock. An event that is no loss outlives the messages before it. */
static void save_event(um_collector_t *c, const char *topic, const char *source, const um_record_t *record,
                       const unsigned char *payload)
{
    struct um_waiting *event = c->gone.count < GONE_MAX ? um_line_add(&c->gone, topic, source, false) : NULL;
    um_record_t bare = *record;
    um_record_tail_t tail;
    bare.length = 0;
    um_tail_get(&tail, record, payload);
    if (event != NULL && !um_line_set(&c->gone, event, &bare, NULL, &tail)) {
        um_line_remove(&c->gone, event);
        event = NULL;
    }
    if (event == NULL) {
        um_collector_count_dropped(c, source);
        return;
    }
    c->queued_records++;
}

/* Lock. The oldest record of a chunk, which is `draining`, goes. */
static void tell_gone(um_collector_t *c, const um_record_t *record)
{
    const struct um_chunk *chunk = c->draining;
    const char *topic = chunk->book->topics.table[record->topic];
    const char *source = chunk->book->sources.table[record->source];
    uint64_t lost =
        um_collector_is_message(record->type) ? 1 : um_collector_losses_of(record->type, chunk->data + record->offset);
    if (lost == 0) {
        save_event(c, topic, source, record, chunk->data + record->offset);
        return;
    }
    if (c->telling == NULL || c->telling_topic != record->topic || c->telling_source != record->source) {
        c->telling = burst_of(c, topic, source, record);
        c->telling_topic = record->topic;
        c->telling_source = record->source;
    }
    if (um_collector_is_message(record->type)) {
        um_collector_count_dropped(c, source);
    }
    um_collector_add_lost(c, c->telling, lost, record->timestamp_ns);
}

/* Lock. Makes room by dropping what has waited longest. False: that is not possible. */
bool um_collector_drop_oldest(um_collector_t *c, size_t len)
{
    while (c->queued_bytes + len + sizeof(um_record_t) > c->max_bytes) {
        if (c->draining == NULL && (c->filling->count == 0 || !um_collector_swap(c))) {
            return c->filling->count == 0;
        }
        const um_record_t *record = &c->draining->records[c->handed_out++];
        c->queued_records--;
        c->queued_bytes -= um_record_room(record, c->draining->data + record->offset) + sizeof *record;
        tell_gone(c, record);
        if (c->handed_out == c->draining->count) {
            um_collector_drained(c);
        }
    }
    return true;
}

/* Lock. What waits longest goes, but not `newest`. */
void um_collector_give_up_topic(um_collector_t *c, const struct um_waiting *newest)
{
    struct um_waiting *oldest = um_line_first(&c->newest);
    if (oldest == newest) {
        oldest = UM_CONTAINER_OF(oldest->node.next, struct um_waiting, node);
    }
    uint64_t lost =
        um_collector_is_message(oldest->record.type) ? 1 : um_collector_losses_of(oldest->record.type, oldest->data);
    c->queued_records--;
    if (lost > 0) {
        if (um_collector_is_message(oldest->record.type)) {
            um_collector_count_dropped(c, oldest->source);
        }
        um_collector_add_lost(c, burst_of(c, oldest->topic, oldest->source, &oldest->record), lost,
                              oldest->record.timestamp_ns);
        um_line_remove(&c->newest, oldest);
    } else if (c->gone.count < GONE_MAX) {
        um_line_pass(&c->newest, oldest, &c->gone);
        c->queued_records++;
    } else {
        um_collector_count_dropped(c, oldest->source);
        um_line_remove(&c->newest, oldest);
    }
}
