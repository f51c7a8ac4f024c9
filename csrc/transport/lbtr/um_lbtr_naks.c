/* When missing numbers are asked for: intervals and what the network takes, NAK confirmations, rounds of NAKs within
 * their rate, and what time does away with. Part of um_lbtr_reception.h; its thread. */
#include "base/um_sqn.h"
#include "transport/lbtr/um_lbtr_reception_parts.h"

/* Intervals shorter than the network takes give way to what is measured, but not beyond the shortest time that the
 * default intervals (50 and 200 ms) leave. */
#define LATE_MAX_NS (25 * UM_NS_PER_MS)
#define LATE_FADES_NS (UM_NS_PER_SEC / 4)
#define REPAIR_MAX_NS (100 * UM_NS_PER_MS)
#define NAK_SPAN_NS (10 * UM_NS_PER_MS) /* in this time at most ... */
#define NAK_PACKETS 20u                 /* ... so many packets */
#define NAK_FULL 8u                     /* ... with no more numbers than so many full ones have */
#define CROWDED 1024u                   /* with more ranges than this, rounds keep a distance */
#define FEW 64u
#define CROWDED_SCAN_NS (5 * UM_NS_PER_MS)

/* ---- timing ---- */

/* Wait for one randomised interval: between a half and one and a half of it; more if that is less than `least_ns`. */
void um_lbtr_rx_wait_for(struct um_lbtr_reception *rx, struct um_lbtr_gap *gap, uint64_t now_ns, uint64_t interval_ns,
                         uint64_t least_ns)
{
    uint64_t shortest = interval_ns / 2 > least_ns ? interval_ns / 2 : least_ns;
    gap->next_ns = now_ns + (interval_ns == 0 ? shortest : um_rng_range(rx->rng, shortest, shortest + interval_ns));
    um_lbtr_rx_due(rx, gap->next_ns);
}

/* An original came after all: it was late, not lost. */
void um_lbtr_rx_came_late(struct um_lbtr_reception *rx, uint64_t now_ns, uint64_t detected_ns)
{
    uint64_t late_ns = now_ns > detected_ns ? now_ns - detected_ns : 0;
    late_ns = late_ns < LATE_MAX_NS ? late_ns : LATE_MAX_NS;
    if (late_ns >= rx->pace.late_ns / 2) {
        rx->pace.late_seen_ns = now_ns;
        rx->pace.late_ns = late_ns > rx->pace.late_ns ? late_ns : rx->pace.late_ns;
    }
}

/* What was seen some time ago counts less and less. */
uint64_t um_lbtr_rx_lateness(struct um_lbtr_reception *rx, uint64_t now_ns)
{
    while (rx->pace.late_ns > 0 && now_ns > rx->pace.late_seen_ns + LATE_FADES_NS) {
        rx->pace.late_seen_ns += LATE_FADES_NS;
        rx->pace.late_ns /= 2;
    }
    return rx->pace.late_ns;
}

/* A repair came. It may be the answer to an earlier NAK than the last one. */
void um_lbtr_rx_repair_took(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t sqn, const struct um_lbtr_gap *gap)
{
    rx->pace.repaired[sqn % UM_LBTR_REPAIRED].sqn = sqn;
    rx->pace.repaired[sqn % UM_LBTR_REPAIRED].detected_ns = gap->detected_ns;
    if (gap->naks > 0) {
        uint64_t took_ns = now_ns > gap->asked_ns ? now_ns - gap->asked_ns : 0;
        took_ns = took_ns < REPAIR_MAX_NS ? took_ns : REPAIR_MAX_NS;
        rx->pace.repair_ns = rx->pace.repair_ns - rx->pace.repair_ns / 8 + took_ns / 8;
    }
}

static void wait_for_repair(struct um_lbtr_reception *rx, struct um_lbtr_gap *gap, uint64_t now_ns)
{
    uint64_t least_ns = 2 * rx->pace.repair_ns;
    um_lbtr_rx_wait_for(rx, gap, now_ns, rx->config.backoff_ns, least_ns < REPAIR_MAX_NS ? least_ns : REPAIR_MAX_NS);
}

static bool naks_flow(const struct um_lbtr_reception *rx)
{
    return rx->config.send_naks && !rx->cutoff;
}

bool um_lbtr_reception_complete_before(const struct um_lbtr_reception *rx, uint32_t sqn)
{
    return rx->gaps.count == 0 || !naks_flow(rx) || !um_sqn_older(um_lbtr_gaps_at(&rx->gaps, 0)->first, sqn);
}

/* ---- NAK confirmations ---- */

static void suppress(struct um_lbtr_reception *rx, struct um_lbtr_gap *gap, uint64_t now_ns)
{
    if (!gap->suppressed) {
        uint64_t base = gap->next_ns > now_ns ? gap->next_ns : now_ns;
        gap->next_ns = base + rx->config.suppress_ns;
        gap->suppressed = true;
        um_lbtr_rx_due(rx, gap->next_ns);
    }
}

/* Only session messages told of it, or a datagram that nothing confirms. */
static bool is_hearsay(const struct um_lbtr_reception *rx, const struct um_lbtr_gap *gap)
{
    return !um_sqn_older(gap->first, rx->far_lead || rx->unanswered ? rx->confirmed : rx->expected);
}

/* May a range be split for the sake of an NCF? Not when there are many, and of hearsay not even when there are some: a
 * forged list must not cost much. Then the whole range waits. */
static bool may_split(const struct um_lbtr_reception *rx, const struct um_lbtr_gap *gap)
{
    return rx->gaps.count < (is_hearsay(rx, gap) ? FEW : CROWDED);
}

/* The source spoke of [first, end). */
static void suppress_run(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t first, uint32_t end)
{
    for (size_t i = um_lbtr_gaps_find(&rx->gaps, first); i < rx->gaps.count; i++) {
        struct um_lbtr_gap *gap = um_lbtr_gaps_at(&rx->gaps, i);
        if (!um_sqn_older(gap->first, end)) {
            return;
        }
        bool split = may_split(rx, gap);
        if (split && um_sqn_older(gap->first, first) && um_lbtr_gaps_split(&rx->gaps, i, first)) {
            gap = um_lbtr_gaps_at(&rx->gaps, ++i);
        }
        if (split && um_sqn_newer(gap->end, end) && um_lbtr_gaps_split(&rx->gaps, i, end)) {
            gap = um_lbtr_gaps_at(&rx->gaps, i);
        }
        suppress(rx, gap, now_ns);
    }
}

void um_lbtr_reception_ncf(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t trail, uint8_t reason,
                           const struct um_lbtr_list *list)
{
    if (reason >= UM_LBTR_REASONS) {
        rx->counters.ncfs_unknown += list->count;
    } else {
        rx->counters.ncfs[reason] += list->count;
    }
    if (!rx->synced || rx->gaps.count == 0) {
        return;
    }
    for (size_t i = 0; i < list->count;) {
        uint32_t first = um_lbtr_list_at(list, i), end = first + 1;
        for (i++; i < list->count && um_lbtr_list_at(list, i) == end; i++) {
            end++;
        }
        suppress_run(rx, now_ns, first, end);
    }
    um_lbtr_rx_hear_trail(rx, now_ns, trail);
}

/* ---- NAKs ---- */

/* When a NAK may go out for it. */
static uint64_t nak_at(const struct um_lbtr_reception *rx, const struct um_lbtr_gap *gap)
{
    uint64_t at = gap->next_ns > rx->next_round_ns ? gap->next_ns : rx->next_round_ns;
    return is_hearsay(rx, gap) && rx->next_hearsay_ns > at ? rx->next_hearsay_ns : at;
}

struct nak_round {
    struct um_lbtr_reception *rx;
    uint64_t now_ns;
    bool cut; /* more is due than may be asked for now */
    uint32_t hearsay;
    size_t count;
    uint32_t sqns[UM_LBTR_NAK_LIST_MAX];
};

static void send_nak(struct nak_round *round)
{
    if (round->count > 0) {
        round->rx->counters.nak_pckts_sent++;
        round->rx->counters.naks_sent += round->count;
        round->rx->ops->nak(round->rx->user, round->sqns, round->count);
        round->count = 0;
        round->rx->span.packets++;
    }
}

/* How many more numbers may be asked for now. Of what only a session message told, one packet full. */
static uint32_t budget_for(const struct nak_round *round, const struct um_lbtr_gap *gap)
{
    const struct um_lbtr_reception *rx = round->rx;
    if (rx->span.packets >= NAK_PACKETS) {
        return 0;
    }
    if (is_hearsay(rx, gap)) {
        return rx->nak_list_max - round->hearsay;
    }
    return NAK_FULL * rx->nak_list_max - rx->span.numbers;
}

/* Ask for a range, as far as this round may; what is left stays due. */
static void ask_for(struct nak_round *round, size_t index)
{
    struct um_lbtr_reception *rx = round->rx;
    struct um_lbtr_gap *gap = um_lbtr_gaps_at(&rx->gaps, index);
    uint32_t budget = budget_for(round, gap);
    if (gap->end - gap->first > budget) {
        round->cut = round->cut || !is_hearsay(rx, gap) || rx->span.packets >= NAK_PACKETS;
        if (budget == 0) {
            return;
        }
        if (!um_lbtr_gaps_split(&rx->gaps, index, gap->first + budget)) {
            wait_for_repair(rx, gap, round->now_ns);
            return;
        }
        gap = um_lbtr_gaps_at(&rx->gaps, index);
    }
    if (is_hearsay(rx, gap)) {
        round->hearsay += gap->end - gap->first;
    } else {
        rx->span.numbers += gap->end - gap->first;
    }
    for (uint32_t sqn = gap->first; sqn != gap->end; sqn++) {
        round->sqns[round->count++] = sqn;
        if (round->count == rx->nak_list_max) {
            send_nak(round);
        }
    }
    gap->asked_ns = gap->naks == 0 ? round->now_ns : gap->asked_ns;
    gap->naks++;
    gap->suppressed = false;
    wait_for_repair(rx, gap, round->now_ns);
}

/* Ask for everything that is due. */
static void send_naks(struct um_lbtr_reception *rx, uint64_t now_ns)
{
    struct nak_round round;
    round.rx = rx;
    round.now_ns = now_ns;
    round.cut = false;
    round.count = 0;
    round.hearsay = 0;
    if (now_ns >= rx->span.end_ns) {
        rx->span.end_ns = now_ns + NAK_SPAN_NS;
        rx->span.packets = rx->span.numbers = 0;
    }
    for (size_t i = 0; i < rx->gaps.count; i++) {
        struct um_lbtr_gap *gap = um_lbtr_gaps_at(&rx->gaps, i);
        if (gap->doom_ns == 0 && nak_at(rx, gap) <= now_ns) {
            ask_for(&round, i);
        }
    }
    send_nak(&round);
    rx->next_round_ns = round.cut ? rx->span.end_ns : now_ns;
    if (round.hearsay >= rx->nak_list_max) { /* more only when a repair proves that the session message was true */
        rx->next_hearsay_ns = now_ns + rx->config.backoff_ns;
    }
}

/* What time has done; true: a NAK is due. */
static bool expire(struct um_lbtr_reception *rx, uint64_t now_ns)
{
    bool nak = false;
    for (size_t i = 0; i < rx->gaps.count;) {
        struct um_lbtr_gap *gap = um_lbtr_gaps_at(&rx->gaps, i);
        if (gap->doom_ns != 0 && now_ns >= gap->doom_ns) {
            um_lbtr_rx_give_up(rx, now_ns, i, UM_LBTR_LOSS_WINDOW);
        } else if (now_ns >= gap->limit_ns && rx->far_lead && !um_sqn_older(gap->first, rx->confirmed)) {
            um_lbtr_rx_take_back(rx, now_ns, rx->confirmed);
        } else if (now_ns >= gap->limit_ns) {
            um_lbtr_rx_give_up(rx, now_ns, i, UM_LBTR_LOSS_TIME);
        } else {
            nak = nak || (gap->doom_ns == 0 && now_ns >= nak_at(rx, gap));
            i++;
        }
    }
    return nak;
}

static void schedule(struct um_lbtr_reception *rx, uint64_t now_ns)
{
    uint64_t next = UM_NEVER;
    for (size_t i = 0; i < rx->gaps.count; i++) {
        const struct um_lbtr_gap *gap = um_lbtr_gaps_at(&rx->gaps, i);
        uint64_t at = gap->limit_ns;
        if (gap->doom_ns != 0) {
            at = gap->doom_ns < at ? gap->doom_ns : at;
        } else if (naks_flow(rx)) {
            uint64_t nak = nak_at(rx, gap);
            at = nak < at ? nak : at;
        }
        next = at < next ? at : next;
    }
    if (rx->gaps.count > CROWDED && next < now_ns + CROWDED_SCAN_NS) {
        next = now_ns + CROWDED_SCAN_NS;
    }
    rx->due_ns = next;
}

void um_lbtr_reception_on_timer(struct um_lbtr_reception *rx, uint64_t now_ns)
{
    um_lbtr_rx_forget_old(rx);
    if (now_ns < rx->due_ns) {
        return;
    }
    if (rx->gaps.count > CROWDED && now_ns - rx->last_scan_ns < CROWDED_SCAN_NS) {
        rx->due_ns = rx->last_scan_ns + CROWDED_SCAN_NS;
        return;
    }
    rx->last_scan_ns = now_ns;
    if (expire(rx, now_ns) && naks_flow(rx)) {
        send_naks(rx, now_ns);
    }
    schedule(rx, now_ns);
}

void um_lbtr_reception_set_cutoff(struct um_lbtr_reception *rx, uint64_t now_ns, bool cutoff)
{
    if (rx->cutoff && !cutoff) {
        for (size_t i = 0; i < rx->gaps.count; i++) {
            um_lbtr_rx_wait_for(rx, um_lbtr_gaps_at(&rx->gaps, i), now_ns, rx->config.initial_ns, 0);
        }
    }
    rx->cutoff = cutoff;
}
