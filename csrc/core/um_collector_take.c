/* Collectors, taking: batches for the one thread that takes. See um_collector_parts.h. */
#include "core/um_collector_parts.h"

#include "base/um_clock.h"
#include "base/um_error.h"

#define LINE_BATCH 512u /* records of one batch out of a line: they are copied under the lock */

/* Lock. What is drained is used up: next comes what has been gathered meanwhile. False: out of memory. */
bool um_collector_swap(um_collector_t *c)
{
    struct um_chunk *next = c->spare != NULL ? c->spare : um_chunk_get(c->store);
    if (next == NULL) {
        return false;
    }
    c->draining = c->filling;
    c->filling = next;
    c->spare = NULL;
    c->handed_out = 0;
    c->turn++;
    um_chunk_begin(c->store, c->filling);
    if (c->filling->book != c->draining->book) {
        memset(c->routes, 0, sizeof c->routes);
        memset(&c->last, 0, sizeof c->last);
    }
    return true;
}

void um_collector_drained(um_collector_t *c)
{
    c->queued_bytes -= c->draining->name_bytes;
    um_chunk_unref(c->store, c->draining); /* batches have references of their own */
    c->draining = NULL;
    c->telling = NULL; /* the indexes may mean something else in the next chunk */
}

/* Lock. NULL: out of memory. */
static um_batch_t *drain(um_collector_t *c, size_t max_messages)
{
    if (c->draining == NULL && !um_collector_swap(c)) {
        return NULL;
    }
    size_t left = c->draining->count - c->handed_out;
    size_t count = max_messages != 0 && max_messages < left ? max_messages : left;
    um_batch_t *batch = um_batch_create(c->store, c->draining, c->handed_out, count);
    if (batch == NULL) {
        return NULL;
    }
    c->handed_out += count;
    c->queued_records -= count;
    c->queued_bytes -= batch->data_len + count * sizeof(um_record_t);
    if (count == left) {
        um_collector_drained(c);
    }
    return batch;
}

/* Lock. A batch of records that wait one by one; NULL: out of memory. What was moved for a batch that cannot be made is
 * dropped. */
static um_batch_t *take_line(um_collector_t *c, struct um_line *line, size_t max_messages)
{
    struct um_chunk *chunk = um_chunk_get(c->store);
    if (chunk == NULL) {
        return NULL;
    }
    um_chunk_begin(c->store, chunk);
    size_t most = max_messages != 0 && max_messages < LINE_BATCH ? max_messages : LINE_BATCH;
    size_t count = um_line_move(line, chunk, most);
    um_batch_t *batch = count > 0 ? um_batch_create(c->store, chunk, 0, count) : NULL;
    if (count > 0 && batch == NULL) {
        c->stats.dropped += count;
        um_collector_add_lost(c, NULL, count, chunk->records[0].timestamp_ns);
    }
    um_chunk_unref(c->store, chunk);
    c->queued_records -= count;
    return batch;
}

/* Lock. NULL: out of memory. */
static um_batch_t *make_batch(um_collector_t *c, size_t max_messages)
{
    um_batch_t *batch;
    if (c->untold > 0) {
        um_collector_tell_untold(c);
    }
    if (c->gone.count > 0) {
        c->telling = NULL;
        batch = take_line(c, &c->gone, max_messages);
    } else if (c->on_full == UM_ON_FULL_CONFLATE) {
        batch = take_line(c, &c->newest, max_messages);
        c->queued_bytes = c->newest.bytes;
    } else {
        batch = drain(c, max_messages);
    }
    c->stats.taken += batch != NULL ? batch->count : 0;
    if (c->full && c->queued_bytes <= c->max_bytes / 2) {
        um_collector_tell_room(c);
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
        c->taker = UM_TAKER_SLEEPS;
        um_condition_wait_for(&c->changed, &c->lock, timeout_ms > 0 ? until - now : UM_NEVER);
        c->taker = UM_TAKER_INSIDE;
    }
    bool found = c->queued_records > 0 && !c->woken && !c->deleting;
    c->woken = false;
    return found;
}

static int check_taker(const um_collector_t *c, int timeout_ms)
{
    if (c->taker != UM_TAKER_AWAY) {
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
    c->taker = UM_TAKER_INSIDE;
    if (c->spare == NULL) {
        um_lock_give(&c->lock);
        struct um_chunk *spare = um_chunk_get(c->store);
        um_lock_take(&c->lock);
        c->spare = spare;
    }
    if (c->spare == NULL) {
        rc = um_error_nomem("um_collector_take: chunk", sizeof *c->spare);
    } else if (wait_for_records(c, timeout_ms)) {
        *out = make_batch(c, max_messages);
        rc = *out != NULL ? 1 : um_error_nomem("um_collector_take: batch", sizeof **out);
    }
    um_collector_clear_descriptor(c);
    c->taker = UM_TAKER_AWAY;
    if (c->deleting) {
        um_condition_signal_all(&c->changed);
    }
    um_lock_give(&c->lock);
    return rc;
}
