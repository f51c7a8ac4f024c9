/* Delivery controller: what is missing. A gap is opened, given to the transport
 * or to recovery, and given up when its owner's time is over, when there is no
 * room for what waits behind it, or with the source. In order the oldest gap
 * comes first, because what lies behind it waits; else each for itself. */
#include "base/um_mem.h"
#include "base/um_sqn.h"
#include "base/um_timer.h"
#include "delivery/um_dc_private.h"

/* ---- reports ---- */

static void remember_given_up(struct um_dc *dc, uint32_t first, uint32_t end)
{
    struct um_dc_past *past = um_dc_past_of(dc);
    if (past == NULL) {
        return; /* what comes of it late counts as repeated */
    }
    uint32_t newest = (past->next + UM_DC_GIVEN_UP_KEPT - 1) % UM_DC_GIVEN_UP_KEPT;
    if (past->given_up[newest].first != past->given_up[newest].end && past->given_up[newest].end == first) {
        past->given_up[newest].end = end;
        return;
    }
    past->given_up[past->next].first = first;
    past->given_up[past->next].end = end;
    past->next = (past->next + 1) % UM_DC_GIVEN_UP_KEPT;
}

bool um_dc_given_up(const struct um_dc *dc, uint32_t sqn)
{
    for (uint32_t i = 0; dc->past != NULL && i < UM_DC_GIVEN_UP_KEPT; i++) {
        if (sqn - dc->past->given_up[i].first < dc->past->given_up[i].end - dc->past->given_up[i].first) {
            return true;
        }
    }
    return false;
}

void um_dc_report_missing(struct um_dc *dc, uint32_t first, uint32_t count, uint64_t now_ns)
{
    UM_DC_COUNT(dc, missing, count);
    if (dc->ops->missing != NULL) {
        dc->ops->missing(dc->user, first, count, now_ns);
    }
}

/* The messages that [first, end) belongs to cannot be completed any more. */
static void lose_partials(struct um_dc *dc, uint32_t first, uint32_t end)
{
    for (uint32_t sqn = first; sqn != end && um_dc_partials(dc) != 0; sqn++) {
        um_reassembly_lost(dc->reassembly, sqn);
    }
}

void um_dc_report_lost(struct um_dc *dc, uint32_t first, uint32_t end, uint64_t now_ns)
{
    remember_given_up(dc, first, end);
    lose_partials(dc, first, end);
    UM_DC_COUNT(dc, lost, end - first);
    for (uint32_t sqn = first; sqn != end && dc->heard; sqn++) {
        dc->ops->loss(dc->user, sqn, now_ns);
    }
}

static void report_burst(struct um_dc *dc, uint32_t first, uint32_t count, uint64_t now_ns)
{
    remember_given_up(dc, first, first + count);
    UM_DC_COUNT(dc, bursts, 1);
    UM_DC_COUNT(dc, lost, count);
    if (dc->heard) {
        dc->ops->burst_loss(dc->user, first, count, now_ns);
    }
}

/* Of a range of any size: in order one message is in progress, else its owner cannot become whole. */
static void lose_range(struct um_dc *dc, uint32_t first)
{
    if (um_dc_partials(dc) == 0) {
        return;
    }
    if (um_dc_ordered(dc)) {
        um_reassembly_clear(dc->reassembly);
    } else {
        um_reassembly_lost(dc->reassembly, first);
    }
}

/* ---- giving up ---- */

static void give_up(struct um_dc *dc, size_t index, uint64_t now_ns)
{
    struct um_gap gap = *um_dc_gap(dc, index);
    uint32_t count = gap.end - gap.first;
    bool large = count >= dc->config->maximum_burst_loss; /* then never number by number */
    um_gap_list_remove(&dc->disorder->gaps, index);
    if (large) {
        lose_range(dc, gap.first);
    }
    if (gap.owner == UM_GAP_SKIPPED) {
        remember_given_up(dc, gap.first, gap.end);
        UM_DC_COUNT(dc, skipped, count);
        if (!large) {
            lose_partials(dc, gap.first, gap.end);
        }
    } else if (large) {
        report_burst(dc, gap.first, count, now_ns);
    } else {
        um_dc_report_lost(dc, gap.first, gap.end, now_ns);
    }
    if (um_dc_ordered(dc)) {
        um_dc_drain(dc, gap.end, now_ns);
    }
}

void um_dc_give_up_all(struct um_dc *dc, uint64_t now_ns)
{
    while (um_dc_gaps(dc) != 0) {
        give_up(dc, 0, now_ns);
    }
}

/* When the owner's time is over; UM_NEVER: it is not a matter of time. */
static uint64_t due_ns(const struct um_dc *dc, const struct um_gap *gap)
{
    const struct um_dc_disorder *disorder = dc->disorder;
    switch (gap->owner) {
    case UM_GAP_TRANSPORT:
        return gap->detected_ns + dc->config->gap_timeout_ns;
    case UM_GAP_RECOVERY:
        if (dc->config->recovery_timeout_ns == 0) {
            return UM_NEVER;
        }
        return (gap->detected_ns > disorder->recovered_ns ? gap->detected_ns : disorder->recovered_ns) +
               dc->config->recovery_timeout_ns;
    case UM_GAP_ABANDONED:
    case UM_GAP_SKIPPED:
        break;
    }
    return 0;
}

/* Without a gap timeout (an ordered transport) a gap is lost as soon as something newer arrives. */
static bool is_due(const struct um_dc *dc, const struct um_gap *gap, uint64_t now_ns, uint32_t arrived)
{
    if (gap->owner == UM_GAP_TRANSPORT && dc->config->gap_timeout_ns == 0) {
        return um_sqn_older(gap->first, arrived);
    }
    return now_ns >= due_ns(dc, gap);
}

/* Modes 0 and -1: one that is waited for does not keep the others. */
static void scan(struct um_dc *dc, uint64_t now_ns, uint32_t arrived)
{
    if (dc->config->gap_timeout_ns != 0 && now_ns < dc->disorder->scan_ns) {
        return;
    }
    uint64_t earliest = UM_NEVER;
    for (size_t i = 0; i < um_dc_gaps(dc);) {
        const struct um_gap *gap = um_dc_gap(dc, i);
        if (is_due(dc, gap, now_ns, arrived)) {
            give_up(dc, i, now_ns);
            continue;
        }
        uint64_t at = due_ns(dc, gap);
        earliest = at < earliest ? at : earliest;
        i++;
    }
    dc->disorder->scan_ns = earliest;
}

void um_dc_expire(struct um_dc *dc, uint64_t now_ns, uint32_t arrived)
{
    if (um_dc_gaps(dc) == 0) {
        return;
    }
    if (!um_dc_ordered(dc)) {
        scan(dc, now_ns, arrived);
        return;
    }
    while (um_dc_gaps(dc) != 0 && is_due(dc, um_dc_gap(dc, 0), now_ns, arrived)) {
        give_up(dc, 0, now_ns);
    }
}

static bool over_limit(const struct um_dc *dc)
{
    if (um_dc_gaps(dc) == 0) {
        return false;
    }
    if (dc->next - um_dc_due(dc) > UM_DC_SPAN_MAX) {
        return true;
    }
    uint32_t limit = dc->config->map_entries_max;
    size_t entries = um_dc_ordered(dc) ? um_order_map_count(&dc->disorder->order) : um_dc_gaps(dc);
    return limit != 0 && entries > limit;
}

static void count_overflow(struct um_dc *dc, uint64_t now_ns)
{
    UM_DC_COUNT(dc, map_overflow, 1);
    if (dc->ops->map_full != NULL && dc->heard) {
        dc->ops->map_full(dc->user, now_ns);
    }
}

void um_dc_enforce_limit(struct um_dc *dc, uint64_t now_ns)
{
    while (over_limit(dc)) {
        count_overflow(dc, now_ns);
        give_up(dc, 0, now_ns);
    }
}

/* Looks for what is due on traffic, at the interval of the loss check if there is one, and where recovery is silent. */
void um_dc_keep_timer(struct um_dc *dc, uint64_t now_ns)
{
    uint64_t at = UM_NEVER;
    if (um_dc_gaps(dc) != 0) {
        const struct um_gap *oldest = um_dc_gap(dc, 0);
        if (dc->config->loss_check_interval_ns != 0) {
            at = now_ns + dc->config->loss_check_interval_ns;
        } else if (oldest->owner == UM_GAP_RECOVERY) {
            at = due_ns(dc, oldest);
        }
    }
    bool wanted = at != UM_NEVER;
    if (wanted != dc->timer_armed) {
        dc->timer_armed = wanted;
        dc->ops->set_timer(dc->user, at);
    }
}

/* ---- opening ---- */

static struct um_dc_disorder *disorder_of(struct um_dc *dc)
{
    if (dc->disorder == NULL && (dc->disorder = um_calloc(1, sizeof *dc->disorder)) != NULL) {
        um_gap_list_init(&dc->disorder->gaps);
        um_order_map_init(&dc->disorder->order);
    }
    return dc->disorder;
}

bool um_dc_push_gap(struct um_dc *dc, uint32_t first, uint32_t end, enum um_gap_owner owner, uint64_t now_ns)
{
    struct um_dc_disorder *disorder = disorder_of(dc);
    if (disorder == NULL) {
        return false;
    }
    const struct um_gap gap = {.first = first, .end = end, .owner = owner, .detected_ns = now_ns};
    struct um_gap_list *gaps = &disorder->gaps;
    size_t count = gaps->count;
    if (count != 0 && owner == UM_GAP_RECOVERY && um_dc_gap(dc, count - 1)->owner == owner &&
        um_dc_gap(dc, count - 1)->end == first) {
        um_dc_gap(dc, count - 1)->end = end; /* what is deferred message by message stays one gap */
        um_dc_gap(dc, count - 1)->detected_ns = now_ns;
        return true;
    }
    if (count != 0 && um_sqn_older(first, um_dc_gap(dc, 0)->first) ? !um_gap_list_push_front(gaps, &gap)
                                                                   : !um_gap_list_push(gaps, &gap)) {
        return false;
    }
    uint64_t at = due_ns(dc, &gap);
    disorder->scan_ns = gaps->count == 1 || at < disorder->scan_ns ? at : disorder->scan_ns;
    return true;
}

static void burst(struct um_dc *dc, uint32_t end, uint64_t now_ns)
{
    uint32_t first = dc->next;
    if (um_dc_ordered(dc) && dc->disorder != NULL) {
        first = um_dc_due(dc);
        um_order_map_clear(&dc->disorder->order);
        um_gap_list_free(&dc->disorder->gaps);
    }
    lose_range(dc, first);
    dc->next = end;
    report_burst(dc, first, end - first, now_ns);
}

/* Where nothing live lies between what recovery was expected to bring and here it is part of that, whatever its size.
 */
static enum um_gap_owner owner_of(struct um_dc *dc, uint32_t count, uint64_t now_ns)
{
    bool any_size = dc->after_expected || dc->config->recovers_bursts;
    bool offered = count < dc->config->maximum_burst_loss || (any_size && count <= UM_DC_LEAD_MAX);
    return offered && dc->ops->recovery_wanted != NULL && dc->ops->recovery_wanted(dc->user, dc->next, count, now_ns)
               ? UM_GAP_RECOVERY
               : UM_GAP_TRANSPORT;
}

void um_dc_open_gap(struct um_dc *dc, uint32_t end, uint64_t now_ns)
{
    uint32_t first = dc->next, count = end - first;
    um_dc_report_missing(dc, first, count, now_ns);
    enum um_gap_owner owner = owner_of(dc, count, now_ns);
    if (owner == UM_GAP_TRANSPORT && count >= dc->config->maximum_burst_loss) {
        burst(dc, end, now_ns);
        return;
    }
    if (um_dc_push_gap(dc, first, end, owner, now_ns)) {
        dc->next = end;
        return;
    }
    count_overflow(dc, now_ns); /* no memory to remember it: lost now, after what is older */
    um_dc_give_up_all(dc, now_ns);
    dc->next = end;
    if (count >= dc->config->maximum_burst_loss) {
        lose_range(dc, first);
        report_burst(dc, first, count, now_ns);
    } else {
        um_dc_report_lost(dc, first, end, now_ns);
    }
}
