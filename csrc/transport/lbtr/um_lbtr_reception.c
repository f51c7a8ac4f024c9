/* Receiving side of a number space: what each datagram and session message means for it, what is missing, and what is
 * given up. See um_lbtr_reception.h; whether numbers are to be believed is in um_lbtr_doubts.c, NAKs are in
 * um_lbtr_naks.c. */
#include <string.h>

#include "base/um_sqn.h"
#include "transport/lbtr/um_lbtr_reception_parts.h"

#define FAR_STREAM 16u              /* datagrams in a row that make a distant stream the real one */
#define GIVEN_UP_KEPT 256u          /* ranges */
#define NUMBERS_COMPARED (1u << 30) /* how far back, at most */

void um_lbtr_reception_init(struct um_lbtr_reception *rx, const struct um_lbtr_nak_config *config,
                            const struct um_lbtr_reception_ops *ops, void *user, struct um_rng *rng,
                            uint32_t nak_list_max)
{
    memset(rx, 0, sizeof *rx);
    rx->config = *config;
    if (rx->config.lead_max == 0) {
        rx->config.lead_max = UM_LBTR_LEAD_MAX;
    }
    rx->ops = ops;
    rx->user = user;
    rx->rng = rng;
    rx->nak_list_max = nak_list_max < UM_LBTR_NAK_LIST_MAX ? nak_list_max : UM_LBTR_NAK_LIST_MAX;
    rx->due_ns = UM_NEVER;
    um_lbtr_gaps_init(&rx->gaps);
    um_lbtr_gaps_init(&rx->given_up);
    um_lbtr_counters_reset(&rx->counters);
}

void um_lbtr_reception_free(struct um_lbtr_reception *rx)
{
    um_lbtr_gaps_free(&rx->gaps);
    um_lbtr_gaps_free(&rx->given_up);
}

void um_lbtr_reception_start(struct um_lbtr_reception *rx, uint32_t expected)
{
    rx->expected = rx->claim_end = rx->origin = expected;
    rx->synced = rx->origin_known = true;
}

/* ---- giving up ---- */

/* What is given up may come all the same, above all where a forged number made it look older than it is: then it is
 * late, not repeated. Claims are not remembered: data that goes beyond them asks for them anew. */
static void remember_given_up(struct um_lbtr_reception *rx, uint32_t first, uint32_t end, bool untried)
{
    struct um_lbtr_gaps *gone = &rx->given_up;
    struct um_lbtr_gap range = {
        .first = first, .end = um_sqn_newer(end, rx->expected) ? rx->expected : end, .untried = untried};
    if (!um_sqn_older(range.first, range.end)) {
        return;
    }
    size_t index = um_lbtr_gaps_find(gone, first);
    if (index > 0 && um_lbtr_gaps_at(gone, index - 1)->end == range.first &&
        um_lbtr_gaps_at(gone, index - 1)->untried == untried) {
        um_lbtr_gaps_at(gone, index - 1)->end = range.end;
        return;
    }
    if (gone->count >= GIVEN_UP_KEPT) { /* a forged number makes a large one, and that is where the stream is */
        um_lbtr_gaps_remove_smallest(gone);
        index = um_lbtr_gaps_find(gone, first);
    }
    um_lbtr_gaps_insert(gone, index, &range); /* no memory: they stay lost */
}

void um_lbtr_rx_report_lost(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t first, uint32_t end,
                            enum um_lbtr_loss why)
{
    uint32_t count = end - first;
    remember_given_up(rx, first, end, why == UM_LBTR_LOSS_WINDOW);
    if (why == UM_LBTR_LOSS_WINDOW) {
        rx->counters.unrecovered_txw += count;
    } else {
        rx->counters.unrecovered_tmo += count;
    }
    rx->ops->lost(rx->user, now_ns, first, count, why);
}

void um_lbtr_rx_give_up(struct um_lbtr_reception *rx, uint64_t now_ns, size_t index, enum um_lbtr_loss why)
{
    struct um_lbtr_gap gap = *um_lbtr_gaps_at(&rx->gaps, index);
    um_lbtr_gaps_remove(&rx->gaps, index);
    um_lbtr_rx_report_lost(rx, now_ns, gap.first, gap.end, why);
}

/* Everything missing before `end`. */
void um_lbtr_rx_give_up_before(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t end, enum um_lbtr_loss why)
{
    while (rx->gaps.count > 0) {
        struct um_lbtr_gap *oldest = um_lbtr_gaps_at(&rx->gaps, 0);
        if (!um_sqn_older(oldest->first, end)) {
            return;
        }
        if (um_sqn_newer(oldest->end, end)) {
            uint32_t first = oldest->first;
            oldest->first = end;
            um_lbtr_rx_report_lost(rx, now_ns, first, end, why);
            return;
        }
        um_lbtr_rx_give_up(rx, now_ns, 0, why);
    }
}

/* Half of the number space further on, what is remembered of a number would look newer than the stream. A range that
 * was given up counts by its end: the stream may still be in it, if it was a lie that it is beyond. */
void um_lbtr_rx_forget_old(struct um_lbtr_reception *rx)
{
    uint32_t old = rx->expected - NUMBERS_COMPARED;
    rx->origin_known = rx->origin_known && !um_sqn_older(rx->origin, old);
    rx->trail_known = rx->trail_known && !um_sqn_older(rx->trail, old);
    rx->behind.any = rx->behind.any && !um_sqn_older(rx->behind.expected, old);
    rx->doomed.any = rx->doomed.any && !um_sqn_older(rx->doomed.all_before, old);
    rx->far_lead = rx->far_lead && !um_sqn_older(rx->confirmed, old);
    rx->unanswered = rx->unanswered && !um_sqn_older(rx->confirmed, old);
    while (rx->given_up.count > 0 && um_sqn_older(um_lbtr_gaps_at(&rx->given_up, 0)->end, old)) {
        um_lbtr_gaps_remove(&rx->given_up, 0);
    }
}

/* ---- finding out ---- */

/* [first, end) is missing. Without room for one more range the oldest is given up; without memory this one. */
void um_lbtr_rx_add_gap(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t first, uint32_t end)
{
    struct um_lbtr_gap gap = {
        .first = first, .end = end, .detected_ns = now_ns, .limit_ns = now_ns + rx->config.generation_ns};
    rx->counters.lost += end - first;
    um_lbtr_gaps_take_out_range(&rx->given_up, first, end);
    if (um_sqn_older(first, rx->doomed.all_before)) {
        rx->doomed.all_before = first;
    }
    um_lbtr_rx_wait_for(rx, &gap, now_ns, rx->config.initial_ns, um_lbtr_rx_lateness(rx, now_ns));
    um_lbtr_rx_due(rx, gap.limit_ns);
    if (rx->gaps.count >= UM_LBTR_GAPS_MAX) {
        um_lbtr_rx_give_up(rx, now_ns, 0, UM_LBTR_LOSS_TIME);
    }
    if (!um_lbtr_gaps_insert(&rx->gaps, um_lbtr_gaps_find(&rx->gaps, first), &gap)) {
        um_lbtr_rx_report_lost(rx, now_ns, first, end, UM_LBTR_LOSS_TIME);
    }
}

/* The trail in a session message or NCF is hearsay: what is older is asked for no more, and given up if no datagram
 * contradicts for a suppress interval. What an earlier trail has done away with is not looked at again. */
void um_lbtr_rx_hear_trail(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t trail)
{
    if (rx->gaps.count == 0 || um_sqn_newer(trail, rx->claim_end)) {
        return;
    }
    if (!rx->doomed.any) {
        rx->doomed.any = true;
        rx->doomed.all_before = rx->doomed.some_before = um_lbtr_gaps_at(&rx->gaps, 0)->first;
    }
    for (size_t i = um_lbtr_gaps_find(&rx->gaps, rx->doomed.all_before); i < rx->gaps.count; i++) {
        struct um_lbtr_gap *gap = um_lbtr_gaps_at(&rx->gaps, i);
        if (!um_sqn_older(gap->first, trail)) {
            break;
        }
        if (um_sqn_newer(gap->end, trail) && !um_lbtr_gaps_split(&rx->gaps, i, trail)) {
            trail = gap->first;
            break;
        }
        gap = um_lbtr_gaps_at(&rx->gaps, i);
        if (gap->doom_ns == 0) {
            gap->doom_ns = now_ns + rx->config.suppress_ns;
            um_lbtr_rx_due(rx, gap->doom_ns);
        }
    }
    rx->doomed.all_before = um_sqn_newer(trail, rx->doomed.all_before) ? trail : rx->doomed.all_before;
    rx->doomed.some_before = um_sqn_newer(trail, rx->doomed.some_before) ? trail : rx->doomed.some_before;
}

/* A datagram says that the source still has what is not older than `trail`. Something is missing. */
static void trail_contradicts(struct um_lbtr_reception *rx, uint32_t trail)
{
    uint32_t oldest = um_lbtr_gaps_at(&rx->gaps, 0)->first;
    trail = um_sqn_older(trail, oldest) ? oldest : trail;
    if (!rx->doomed.any || !um_sqn_older(trail, rx->doomed.some_before)) {
        return;
    }
    for (size_t i = um_lbtr_gaps_find(&rx->gaps, trail); i < rx->gaps.count; i++) {
        struct um_lbtr_gap *gap = um_lbtr_gaps_at(&rx->gaps, i);
        if (!um_sqn_older(gap->first, rx->doomed.some_before)) {
            break;
        }
        if (gap->doom_ns != 0 && !um_sqn_older(gap->first, trail)) {
            gap->doom_ns = 0; /* its NAKs go on where they were */
            um_lbtr_rx_due(rx, gap->next_ns);
        }
    }
    rx->doomed.some_before = trail;
    rx->doomed.all_before = um_sqn_older(trail, rx->doomed.all_before) ? trail : rx->doomed.all_before;
}

/* The trail of a datagram. That of two is the source's word: what is older is gone. One alone may be forged, and so may
 * those behind a far lead: they are hearsay. */
static void note_trail(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t trail)
{
    uint32_t sure = um_sqn_older(rx->trail, trail) ? rx->trail : trail;
    if (rx->unanswered && um_sqn_newer(sure, rx->confirmed)) {
        sure = rx->confirmed;
    }
    if (rx->trail_known) {
        um_lbtr_rx_give_up_before(rx, now_ns, sure, UM_LBTR_LOSS_WINDOW);
    }
    if (rx->gaps.count > 0) {
        trail_contradicts(rx, trail);
        um_lbtr_rx_hear_trail(rx, now_ns, trail);
    }
    rx->trail = trail;
    rx->trail_known = true;
}

/* ---- datagrams ---- */

/* A datagram older than the newest: does it fill a gap? */
static enum um_lbtr_arrival fill(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t sqn, bool retransmission)
{
    size_t index = um_lbtr_gaps_find(&rx->gaps, sqn);
    struct um_lbtr_gap *gap = index < rx->gaps.count ? um_lbtr_gaps_at(&rx->gaps, index) : NULL;
    if (gap == NULL || um_sqn_older(sqn, gap->first)) {
        if (!retransmission && rx->pace.repaired[sqn % UM_LBTR_REPAIRED].sqn == sqn &&
            rx->pace.repaired[sqn % UM_LBTR_REPAIRED].detected_ns != 0) {
            um_lbtr_rx_came_late(rx, now_ns, rx->pace.repaired[sqn % UM_LBTR_REPAIRED].detected_ns);
            rx->pace.repaired[sqn % UM_LBTR_REPAIRED].detected_ns = 0;
        }
        return UM_LBTR_DUPLICATE;
    }
    if (retransmission) {
        uint64_t took_ns = now_ns > gap->detected_ns ? now_ns - gap->detected_ns : 0;
        um_lbtr_counters_recovered(&rx->counters, took_ns / UM_NS_PER_MS, gap->naks);
        um_lbtr_rx_repair_took(rx, now_ns, sqn, gap);
    } else {
        rx->counters.out_of_order++;
        if (gap->naks > 0) {
            um_lbtr_rx_came_late(rx, now_ns, gap->detected_ns);
        }
    }
    if (!um_lbtr_gaps_take_out(&rx->gaps, index, sqn)) { /* no room for one more range: the older part is given up */
        uint32_t first = gap->first;
        gap->first = sqn + 1;
        um_lbtr_rx_report_lost(rx, now_ns, first, sqn, UM_LBTR_LOSS_TIME);
    }
    return UM_LBTR_ACCEPTED;
}

/* Does it come after it was given up? */
static enum um_lbtr_arrival come_late(struct um_lbtr_reception *rx, uint32_t sqn)
{
    size_t index = um_lbtr_gaps_find(&rx->given_up, sqn);
    if (index == rx->given_up.count || um_sqn_older(sqn, um_lbtr_gaps_at(&rx->given_up, index)->first)) {
        return UM_LBTR_DUPLICATE;
    }
    if (!um_lbtr_gaps_take_out(&rx->given_up, index, sqn)) {
        um_lbtr_gaps_at(&rx->given_up, index)->first = sqn + 1;
    }
    rx->counters.late_data++;
    return UM_LBTR_ACCEPTED;
}

/* A datagram behind the newest number. */
static enum um_lbtr_arrival older(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t sqn, bool retransmission)
{
    if ((rx->far_lead || rx->unanswered) && !um_sqn_older(sqn, rx->confirmed)) {
        if (retransmission) {
            um_lbtr_rx_lead_answered(rx, now_ns);
        } else {
            rx->confirmed = sqn + 1;
        }
    }
    enum um_lbtr_arrival arrival = fill(rx, now_ns, sqn, retransmission);
    return arrival == UM_LBTR_ACCEPTED ? arrival : come_late(rx, sqn);
}

/* A datagram at or beyond the expected one. Numbers between that no session message had told of become missing. */
static enum um_lbtr_arrival advance(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t sqn, bool retransmission)
{
    uint32_t from = rx->expected;
    um_lbtr_rx_judge_lead(rx, sqn);
    rx->expected = sqn + 1;
    if (rx->claim_end == from) {
        rx->claim_end = rx->expected;
        if (sqn != from) {
            um_lbtr_rx_add_gap(rx, now_ns, from, sqn);
        }
        return UM_LBTR_ACCEPTED;
    }
    if (rx->next_hearsay_ns > now_ns) {
        rx->next_hearsay_ns = 0;
        um_lbtr_rx_due(rx, now_ns);
    }
    size_t index = um_lbtr_gaps_find(&rx->gaps, from);
    uint32_t told = index < rx->gaps.count ? um_lbtr_gaps_at(&rx->gaps, index)->first : rx->claim_end;
    if (um_sqn_older(told, from)) {
        told = from;
    }
    if (um_sqn_newer(rx->expected, rx->claim_end)) {
        if (um_sqn_newer(sqn, rx->claim_end)) {
            um_lbtr_rx_add_gap(rx, now_ns, rx->claim_end, sqn);
        }
        rx->claim_end = rx->expected;
    }
    if (um_sqn_newer(told, sqn)) {
        told = sqn;
    }
    if (sqn != from) {
        um_lbtr_rx_prove(rx, now_ns, from, sqn);
    }
    if (um_sqn_newer(told, from)) { /* told of, given up, and now there is proof that it was sent */
        um_lbtr_rx_add_gap(rx, now_ns, from, told);
    }
    fill(rx, now_ns, sqn, retransmission);
    return UM_LBTR_ACCEPTED;
}

/* A number too far ahead is believed when a whole run of datagrams confirms it, and none came nearby meanwhile:
 * everything up to there is lost, but what was known to be missing has the rest of its time. */
static enum um_lbtr_arrival far_ahead(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t sqn, bool retransmission)
{
    if (retransmission || rx->far_count == 0 || sqn != rx->far_next) {
        rx->far_count = retransmission ? 0 : 1;
        rx->far_next = sqn + 1;
        return UM_LBTR_INSANE;
    }
    rx->far_next++;
    if (++rx->far_count < FAR_STREAM) {
        return UM_LBTR_INSANE;
    }
    uint32_t first = rx->claim_end; /* what was claimed before is a gap, or was reported */
    rx->expected = rx->claim_end = sqn + 1;
    um_lbtr_rx_forget_old(rx);
    um_lbtr_rx_give_up_before(rx, now_ns, sqn - NUMBERS_COMPARED, UM_LBTR_LOSS_TIME);
    rx->counters.lost += sqn - first;
    um_lbtr_rx_report_lost(rx, now_ns, first, sqn, UM_LBTR_LOSS_TIME);
    rx->far_lead = rx->unanswered = rx->trail_known = false;
    rx->far_count = 0;
    return UM_LBTR_ACCEPTED;
}

void um_lbtr_reception_restart(struct um_lbtr_reception *rx, uint32_t expected)
{
    rx->gaps.count = rx->gaps.head = rx->given_up.count = rx->given_up.head = 0;
    rx->proven = rx->far_lead = rx->unanswered = rx->trail_known = rx->behind.any = rx->doomed.any = false;
    rx->far_count = 0;
    um_lbtr_reception_start(rx, expected);
}

/* The origin was the word of a session message, and the first datagram contradicts: the stream begins here. What was
 * claimed since is forgotten. */
static enum um_lbtr_arrival begin_again(struct um_lbtr_reception *rx, uint32_t sqn)
{
    um_lbtr_reception_restart(rx, sqn);
    rx->expected = rx->claim_end = sqn + 1;
    rx->proven = true;
    return UM_LBTR_ACCEPTED;
}

enum um_lbtr_arrival um_lbtr_reception_unexpected(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t sqn,
                                                  uint32_t trail, bool retransmission)
{
    int32_t ahead = um_sqn_diff(sqn, rx->expected);
    enum um_lbtr_arrival arrival;
    bool before_origin;
    if (!um_lbtr_trail_is_sane(trail, sqn)) {
        return UM_LBTR_INSANE;
    }
    um_lbtr_rx_settle_lead(rx);
    if (!rx->proven && !retransmission && (ahead < 0 || ahead > (int32_t)rx->config.lead_max)) {
        return begin_again(rx, sqn);
    }
    if (ahead > (int32_t)rx->config.lead_max) {
        return far_ahead(rx, now_ns, sqn, retransmission);
    }
    rx->far_count = 0;
    if (ahead < 0 && !retransmission && um_lbtr_rx_never_came(rx, sqn, &before_origin)) {
        um_lbtr_rx_came_behind(rx, now_ns, sqn, before_origin);
        ahead = um_sqn_diff(sqn, rx->expected);
    }
    arrival = ahead < 0 ? older(rx, now_ns, sqn, retransmission) : advance(rx, now_ns, sqn, retransmission);
    rx->proven = rx->proven || arrival == UM_LBTR_ACCEPTED;
    if (arrival == UM_LBTR_ACCEPTED) {
        note_trail(rx, now_ns, trail);
    }
    return arrival;
}

/* ---- session messages ---- */

bool um_lbtr_reception_sm(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t lead, uint32_t trail)
{
    uint32_t end = lead + 1;
    if (!um_lbtr_trail_is_sane(trail, lead) || um_sqn_diff(end, rx->expected) > (int32_t)rx->config.lead_max) {
        return false;
    }
    um_lbtr_rx_settle_lead(rx);
    if (rx->far_lead && !um_sqn_older(end, rx->expected)) {
        rx->far_lead = false;
    } else if (rx->far_lead && !um_sqn_older(end, rx->confirmed)) {
        um_lbtr_rx_take_back(rx, now_ns, rx->confirmed);
    }
    um_lbtr_rx_told_behind(rx, now_ns, end);
    /* From half of the number space behind it would be newer than what was claimed, though not than the stream. */
    if (um_sqn_newer(end, rx->claim_end) && um_sqn_newer(end, rx->expected)) {
        uint32_t from = rx->claim_end;
        rx->claim_end = end;
        um_lbtr_rx_add_gap(rx, now_ns, from, end);
    } else if (um_sqn_older(end, rx->claim_end) && !um_sqn_older(end, rx->expected)) {
        um_lbtr_rx_retract_claims(rx, now_ns, end);
    }
    um_lbtr_rx_hear_trail(rx, now_ns, trail);
    return true;
}
