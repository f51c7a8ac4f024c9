/* Delivery controller: what recovery (late join, off-transport recovery) brings.
 * It says what it will bring and what not; the controller offers it the gaps it
 * finds and, in order, leaves live messages to it that are too far beyond. */
#include "base/um_sqn.h"
#include "delivery/um_dc_private.h"

void um_dc_recovered(struct um_dc *dc, uint64_t now_ns, uint32_t sqn)
{
    struct um_dc_disorder *disorder = dc->disorder;
    disorder->recovered_ns = now_ns;
    if (!disorder->has_recovered || um_sqn_newer(sqn, disorder->recovered)) {
        disorder->has_recovered = true;
        disorder->recovered = sqn;
    }
}

/* ---- what it will bring ---- */

void um_dc_await_recovery(struct um_dc *dc)
{
    dc->awaits_recovery = dc->state == UM_DC_NOT_BEGUN;
}

static bool expect_newer(struct um_dc *dc, uint64_t now_ns, uint32_t first, uint32_t end)
{
    if (first != dc->next) {
        um_dc_open_gap(dc, first, now_ns);
    }
    if (!um_dc_push_gap(dc, first, end, UM_GAP_RECOVERY, now_ns)) {
        return false;
    }
    UM_DC_COUNT(dc, expected, end - first);
    dc->next = end;
    dc->after_expected = true;
    return true;
}

/* Modes 0 and -1: nothing waits for its turn, so what is older than the stream may be added to it. */
static bool expect_older(struct um_dc *dc, uint64_t now_ns, uint32_t first)
{
    if (!dc->start_known || dc->next - first > UM_DC_SPAN_MAX ||
        !um_dc_push_gap(dc, first, dc->start_sqn, UM_GAP_RECOVERY, now_ns)) {
        return false;
    }
    UM_DC_COUNT(dc, expected, dc->start_sqn - first);
    dc->start_sqn = first;
    return true;
}

/* The parts of [first, end) that are not known yet. False: not all of them. */
static bool expect_more(struct um_dc *dc, uint64_t now_ns, uint32_t first, uint32_t end)
{
    bool all = true;
    if (dc->start_known && um_sqn_older(first, dc->start_sqn)) {
        all = !um_dc_ordered(dc) && !um_sqn_older(end, dc->start_sqn) && expect_older(dc, now_ns, first);
    }
    if (um_sqn_newer(end, dc->next)) {
        all = end - um_dc_due(dc) <= UM_DC_SPAN_MAX &&
              expect_newer(dc, now_ns, um_sqn_older(first, dc->next) ? dc->next : first, end) && all;
    }
    return all;
}

bool um_dc_expect(struct um_dc *dc, uint64_t now_ns, uint32_t first, uint32_t count)
{
    bool expects = true;
    if (count > UM_DC_SPAN_MAX / 2) {
        return false;
    }
    dc->awaits_recovery = false;
    if (dc->state == UM_DC_OPENING) {
        dc->opening->expects = count != 0;
        dc->opening->expect_first = first;
        dc->opening->expect_end = first + count;
        if (count != 0) { /* what is missing from there on is not waited for: the transport brings it, or recovery */
            um_dc_opening_release(dc, false, now_ns);
        } else {
            um_dc_on_progress(dc, now_ns);
        }
        return true;
    }
    if (count == 0) {
        return true;
    }
    if (dc->state == UM_DC_NOT_BEGUN) {
        um_dc_begin_at(dc, first);
        dc->heard = true;
        expects = expect_newer(dc, now_ns, first, first + count);
    } else {
        expects = expect_more(dc, now_ns, first, first + count);
    }
    um_dc_settle(dc, now_ns);
    return expects;
}

void um_dc_expect_next(struct um_dc *dc, uint64_t now_ns, uint32_t next)
{
    dc->recovers_hint = true;
    um_dc_expect(dc, now_ns, next, 0);
    um_dc_on_tsni(dc, now_ns, next - 1);
}

/* ---- what it will not ---- */

bool um_dc_abandon(struct um_dc *dc, uint64_t now_ns, uint32_t first, uint32_t count, enum um_dc_abandon how)
{
    uint32_t end = first + count;
    if (um_dc_gaps(dc) == 0 || count == 0) {
        return true;
    }
    struct um_gap_list *gaps = &dc->disorder->gaps;
    if (!um_gap_list_cut(gaps, first) || !um_gap_list_cut(gaps, end)) {
        return false;
    }
    for (size_t i = um_gap_list_from(gaps, first); i < gaps->count && um_sqn_older(um_dc_gap(dc, i)->first, end); i++) {
        if (um_dc_gap(dc, i)->owner == UM_GAP_RECOVERY) {
            um_dc_gap(dc, i)->owner = how == UM_DC_LOST ? UM_GAP_ABANDONED : UM_GAP_SKIPPED;
            dc->disorder->scan_ns = 0;
        }
    }
    dc->disorder->recovered_ns = now_ns;
    um_dc_expire(dc, now_ns, um_dc_due(dc));
    um_dc_settle(dc, now_ns);
    return true;
}

/* ---- what it is asked ---- */

bool um_dc_next_missing(const struct um_dc *dc, uint32_t from, struct um_dc_range *out)
{
    if (um_dc_gaps(dc) == 0) {
        return false;
    }
    const struct um_gap_list *gaps = &dc->disorder->gaps;
    if (um_sqn_older(from, um_dc_due(dc))) {
        from = um_dc_due(dc); /* what is far before the oldest gap would be behind the others */
    }
    for (size_t i = um_gap_list_from(gaps, from); i < gaps->count; i++) {
        const struct um_gap *gap = um_dc_gap(dc, i);
        if (gap->owner == UM_GAP_RECOVERY) {
            out->first = um_sqn_newer(from, gap->first) ? from : gap->first;
            out->count = gap->end - out->first;
            out->since_ns = gap->detected_ns;
            return true;
        }
    }
    return false;
}

bool um_dc_waits_for_recovery(const struct um_dc *dc, struct um_dc_range *oldest)
{
    return um_dc_gaps(dc) != 0 && um_dc_next_missing(dc, um_dc_gap(dc, 0)->first, oldest);
}

bool um_dc_opens(const struct um_dc *dc)
{
    return dc->state == UM_DC_OPENING;
}

bool um_dc_oldest(const struct um_dc *dc, uint32_t *sqn)
{
    if (dc->state == UM_DC_OPEN && dc->start_known) {
        *sqn = dc->start_sqn;
        return true;
    }
    if (dc->state != UM_DC_OPENING || dc->opening->count == 0) {
        return false;
    }
    const struct um_dc_opening *opening = dc->opening;
    *sqn = opening->first_sqn;
    for (size_t i = 0; i < opening->count; i++) {
        *sqn = um_sqn_older(opening->items[i].sqn, *sqn) ? opening->items[i].sqn : *sqn;
    }
    return true;
}

/* ---- what is left to it ---- */

/* Counted from the newest number that it brought, or from what is in order already. */
static bool too_far(const struct um_dc *dc, uint32_t sqn)
{
    const struct um_dc_config *config = dc->config;
    if (!um_dc_ordered(dc) || um_dc_gaps(dc) == 0 || um_dc_gap(dc, 0)->owner != UM_GAP_RECOVERY) {
        return false;
    }
    uint32_t reached = um_dc_due(dc) - 1;
    if (dc->disorder->has_recovered && um_sqn_newer(dc->disorder->recovered, reached)) {
        reached = dc->disorder->recovered;
    }
    return (config->caching_proximity != 0 && um_sqn_newer(sqn, reached) &&
            sqn - reached >= config->caching_proximity) ||
           (config->recovery_entries_max != 0 &&
            um_order_map_count(&dc->disorder->order) >= config->recovery_entries_max);
}

bool um_dc_defer(struct um_dc *dc, uint64_t now_ns, uint32_t sqn)
{
    if (!too_far(dc, sqn) || dc->ops->recovery_wanted == NULL || !dc->ops->recovery_wanted(dc->user, sqn, 1, now_ns) ||
        !um_dc_push_gap(dc, sqn, sqn + 1, UM_GAP_RECOVERY, now_ns)) {
        return false;
    }
    dc->next = sqn + 1;
    um_dc_discard(dc, UM_DC_DEFERRED, sqn, now_ns);
    return true;
}
