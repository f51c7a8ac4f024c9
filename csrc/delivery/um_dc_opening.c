/* Delivery controller: where a stream begins. What was sent before the first
 * message that came may still be repaired by the transport, or be brought by
 * recovery; until that is over, what comes is held, so that a message sent to a
 * receiver that was ready is not taken for one from before its time. */
#include <stdlib.h>

#include "base/um_mem.h"
#include "base/um_sqn.h"
#include "delivery/um_dc_private.h"

/* Then the beginning is not waited for any longer: messages (half a second at 130,000 a second: several rounds of NAKs
 * with the default intervals), and bytes of the receive buffers that they keep. */
#define HELD_MAX 65536u
#define HELD_BYTES_MAX (64u << 20)

static bool transport_repairs(const struct um_dc *dc, uint32_t position)
{
    return dc->ops->complete_before != NULL && !dc->ops->complete_before(dc->user, position);
}

/* It is known where the stream begins, and what is missing from there on is asked for in the time of recovery, which
 * may be shorter than the transport's. */
static bool recovery_begins(const struct um_dc *dc, uint32_t sqn)
{
    return dc->recovers_hint && dc->ops->recovery_wanted != NULL && um_dc_follows_hint(dc, sqn);
}

bool um_dc_opening_begin(struct um_dc *dc, uint32_t sqn)
{
    if (!um_dc_ordered(dc)) {
        return false;
    }
    uint32_t position = dc->ops->position != NULL ? dc->ops->position(dc->user) : 0;
    if (!dc->awaits_recovery && (recovery_begins(dc, sqn) || !transport_repairs(dc, position))) {
        return false;
    }
    dc->opening = um_calloc(1, sizeof *dc->opening);
    if (dc->opening == NULL) {
        return false;
    }
    dc->opening->position = position;
    um_dc_enter(dc, UM_DC_OPENING);
    return true;
}

bool um_dc_opening_complete(const struct um_dc *dc)
{
    return !dc->awaits_recovery && !transport_repairs(dc, dc->opening->position);
}

static void free_opening(struct um_dc_opening *opening)
{
    for (size_t i = 0; i < opening->count; i++) {
        um_held_release(&opening->items[i]);
    }
    um_free(opening->items);
    um_free(opening);
}

void um_dc_opening_free(struct um_dc *dc)
{
    if (dc->opening != NULL) {
        free_opening(dc->opening);
        dc->opening = NULL;
    }
}

static bool keep(struct um_dc_opening *opening, const struct um_lbmc_msg *msg, struct um_buf *buf)
{
    if (opening->count == opening->capacity) {
        size_t capacity = opening->capacity == 0 ? 16 : opening->capacity * 2;
        struct um_held *items = um_realloc(opening->items, capacity * sizeof *items);
        if (items == NULL) {
            return false;
        }
        opening->items = items;
        opening->capacity = capacity;
    }
    struct um_held *held = &opening->items[opening->count];
    if (!um_held_keep(held, msg, buf)) {
        return false;
    }
    if (opening->count++ == 0) {
        opening->first_sqn = msg->sqn;
    }
    opening->bytes += held->buf != opening->last_kept ? held->buf->capacity : 0;
    opening->last_kept = held->buf;
    return true;
}

static bool is_full(const struct um_dc *dc)
{
    const struct um_dc_opening *opening = dc->opening;
    uint32_t limit = dc->config->map_entries_max;
    return opening->count >= HELD_MAX || opening->bytes >= HELD_BYTES_MAX || (limit != 0 && opening->count >= limit);
}

static void cut(struct um_dc *dc, uint64_t now_ns)
{
    UM_DC_COUNT(dc, openings_cut, 1);
    if (dc->ops->opening_cut != NULL) {
        dc->ops->opening_cut(dc->user, dc->opening->count, dc->opening->bytes, now_ns);
    }
    um_dc_opening_release(dc, false, now_ns);
}

void um_dc_opening_hold(struct um_dc *dc, uint64_t now_ns, const struct um_lbmc_msg *msg, struct um_buf *buf)
{
    struct um_dc_opening *opening = dc->opening;
    if (um_dc_off_transport(msg)) {
        um_dc_discard(dc, UM_DC_UNASKED, msg->sqn, now_ns);
        return;
    }
    /* near each other, so that they can be put in order */
    if (opening->count != 0 && msg->sqn - opening->first_sqn + UM_DC_SPAN_MAX / 2 > UM_DC_SPAN_MAX) {
        um_dc_discard(dc, UM_DC_MALFORMED, msg->sqn, now_ns);
        return;
    }
    if (!keep(opening, msg, buf)) { /* no memory: what is held is told apart from what is not by its place alone */
        um_dc_opening_release(dc, false, now_ns);
        um_dc_place(dc, now_ns, msg, buf);
    } else if (is_full(dc)) {
        cut(dc, now_ns);
    }
}

static int by_number(const void *left, const void *right)
{
    const struct um_held *a = left, *b = right;
    return um_sqn_diff(a->sqn, b->sqn) > 0 ? 1 : a->sqn == b->sqn ? 0 : -1;
}

/* The oldest message from which everything up to the one that came first is here, or all that followed what the source
 * had told. What is older was sent before the stream joined, and came only because others needed the datagram. */
static size_t beginning(const struct um_dc *dc, const struct um_dc_opening *opening)
{
    size_t at = 0;
    while (at < opening->count && opening->items[at].sqn != opening->first_sqn) {
        if (um_dc_follows_hint(dc, opening->items[at].sqn)) {
            return at;
        }
        at++;
    }
    while (at > 0 && opening->items[at].sqn - opening->items[at - 1].sqn <= 1) {
        at--;
    }
    return at;
}

static size_t expected_beginning(const struct um_dc_opening *opening)
{
    size_t at = 0;
    while (at < opening->count && um_sqn_older(opening->items[at].sqn, opening->expect_first)) {
        at++;
    }
    return at;
}

/* Recovery, or the source, told where it begins; else the first message does. Returns the first that is handed on. */
static size_t begin(struct um_dc *dc, const struct um_dc_opening *opening, bool complete, uint64_t now_ns)
{
    if (opening->expects &&
        um_dc_expect(dc, now_ns, opening->expect_first, opening->expect_end - opening->expect_first)) {
        return expected_beginning(opening);
    }
    if (opening->count == 0 && opening->told && um_dc_follows_hint(dc, opening->told_sqn)) {
        um_dc_begin_at_hint(dc);
    }
    return complete ? beginning(dc, opening) : 0;
}

void um_dc_opening_release(struct um_dc *dc, bool complete, uint64_t now_ns)
{
    struct um_dc_opening *opening = dc->opening;
    struct um_lbmc_msg msg;
    dc->opening = NULL;
    dc->awaits_recovery = false;
    um_dc_enter(dc, UM_DC_NOT_BEGUN);
    if (opening->count > 1) {
        qsort(opening->items, opening->count, sizeof *opening->items, by_number);
    }
    size_t start = begin(dc, opening, complete, now_ns);
    for (size_t i = 0; i < opening->count; i++) {
        if (i < start) {
            um_dc_discard(dc, UM_DC_BEFORE, opening->items[i].sqn, now_ns);
        } else {
            um_held_view(&opening->items[i], &msg);
            um_dc_place(dc, now_ns, &msg, opening->items[i].buf);
        }
    }
    if (opening->told && dc->state == UM_DC_OPEN) {
        um_dc_told(dc, now_ns, opening->told_sqn);
    }
    free_opening(opening);
    um_dc_settle(dc, now_ns);
}

void um_dc_on_progress(struct um_dc *dc, uint64_t now_ns)
{
    if (dc->state == UM_DC_OPENING && um_dc_opening_complete(dc)) {
        um_dc_opening_release(dc, true, now_ns);
    }
}
