/* Loss detection and NAK generation. See um_lbtr_reception.h. */
#include "transport/lbtr/um_lbtr_reception.h"

#include <string.h>

#include "base/um_sqn.h"

/* Intervals shorter than the network takes give way to what is measured, but not beyond the shortest time that the
 * default intervals (50 and 200 ms) leave. */
#define LATE_MAX_NS (25 * UM_NS_PER_MS)
#define LATE_FADES_NS (UM_NS_PER_SEC / 4)
#define REPAIR_MAX_NS (100 * UM_NS_PER_MS)
#define FAR_STREAM 16u                  /* datagrams in a row that make a distant stream the real one */
#define NAK_SPAN_NS (10 * UM_NS_PER_MS) /* in this time at most ... */
#define NAK_PACKETS 20u                 /* ... so many packets */
#define NAK_FULL 8u                     /* ... with no more numbers than so many full ones have */
#define CROWDED 1024u                   /* with more ranges than this, rounds keep a distance */
#define FEW 64u
#define CROWDED_SCAN_NS (5 * UM_NS_PER_MS)

void um_lbtr_counters_reset(struct um_lbtr_receiver_counters *counters)
{
    memset(counters, 0, sizeof *counters);
    counters->stm_min = counters->tx_min = UINT64_MAX;
}

void um_lbtr_counters_drop(struct um_lbtr_receiver_counters *counters, enum um_lbtr_rc rc)
{
    uint64_t *const which[] = {[UM_LBTR_SIZE] = &counters->dropped_size,
                               [UM_LBTR_TYPE] = &counters->dropped_type,
                               [UM_LBTR_VERSION] = &counters->dropped_version,
                               [UM_LBTR_HEADER] = &counters->dropped_hdr,
                               [UM_LBTR_OTHER] = &counters->dropped_other};
    ++*which[rc];
}

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
    um_lbtr_counters_reset(&rx->counters);
}

void um_lbtr_reception_free(struct um_lbtr_reception *rx)
{
    um_lbtr_gaps_free(&rx->gaps);
}

void um_lbtr_reception_start(struct um_lbtr_reception *rx, uint32_t expected)
{
    rx->expected = rx->claim_end = expected;
    rx->synced = true;
}

/* ---- timing ---- */

static void due(struct um_lbtr_reception *rx, uint64_t at_ns)
{
    if (at_ns < rx->due_ns) {
        rx->due_ns = at_ns;
    }
}

/* Wait for one randomised interval: between a half and one and a half of it; more if that is less than `least_ns`. */
static void wait_for(struct um_lbtr_reception *rx, struct um_lbtr_gap *gap, uint64_t now_ns, uint64_t interval_ns,
                     uint64_t least_ns)
{
    uint64_t shortest = interval_ns / 2 > least_ns ? interval_ns / 2 : least_ns;
    gap->next_ns = now_ns + (interval_ns == 0 ? shortest : um_rng_range(rx->rng, shortest, shortest + interval_ns));
    due(rx, gap->next_ns);
}

/* An original came after all: it was late, not lost. */
static void came_late(struct um_lbtr_reception *rx, uint64_t now_ns, uint64_t detected_ns)
{
    uint64_t late_ns = now_ns > detected_ns ? now_ns - detected_ns : 0;
    late_ns = late_ns < LATE_MAX_NS ? late_ns : LATE_MAX_NS;
    if (late_ns >= rx->pace.late_ns / 2) {
        rx->pace.late_seen_ns = now_ns;
        rx->pace.late_ns = late_ns > rx->pace.late_ns ? late_ns : rx->pace.late_ns;
    }
}

/* What was seen some time ago counts less and less. */
static uint64_t usual_lateness(struct um_lbtr_reception *rx, uint64_t now_ns)
{
    while (rx->pace.late_ns > 0 && now_ns > rx->pace.late_seen_ns + LATE_FADES_NS) {
        rx->pace.late_seen_ns += LATE_FADES_NS;
        rx->pace.late_ns /= 2;
    }
    return rx->pace.late_ns;
}

/* A repair came. It may be the answer to an earlier NAK than the last one. */
static void repair_took(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t sqn, const struct um_lbtr_gap *gap)
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
    wait_for(rx, gap, now_ns, rx->config.backoff_ns, least_ns < REPAIR_MAX_NS ? least_ns : REPAIR_MAX_NS);
}

static bool naks_flow(const struct um_lbtr_reception *rx)
{
    return rx->config.send_naks && !rx->cutoff;
}

bool um_lbtr_reception_complete_before(const struct um_lbtr_reception *rx, uint32_t sqn)
{
    return rx->gaps.count == 0 || !naks_flow(rx) || !um_sqn_older(um_lbtr_gaps_at(&rx->gaps, 0)->first, sqn);
}

/* ---- giving up ---- */

static void report(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t first, uint32_t end, enum um_lbtr_loss why)
{
    uint32_t count = end - first;
    if (why == UM_LBTR_LOSS_WINDOW) {
        rx->counters.unrecovered_txw += count;
    } else {
        rx->counters.unrecovered_tmo += count;
    }
    rx->ops->lost(rx->user, now_ns, first, count, why);
}

static void give_up(struct um_lbtr_reception *rx, uint64_t now_ns, size_t index, enum um_lbtr_loss why)
{
    struct um_lbtr_gap gap = *um_lbtr_gaps_at(&rx->gaps, index);
    um_lbtr_gaps_remove(&rx->gaps, index);
    report(rx, now_ns, gap.first, gap.end, why);
}

/* Everything missing before `end`. */
static void give_up_before(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t end, enum um_lbtr_loss why)
{
    while (rx->gaps.count > 0) {
        struct um_lbtr_gap *oldest = um_lbtr_gaps_at(&rx->gaps, 0);
        if (!um_sqn_older(oldest->first, end)) {
            return;
        }
        if (um_sqn_newer(oldest->end, end)) {
            uint32_t first = oldest->first;
            oldest->first = end;
            report(rx, now_ns, first, end, why);
            return;
        }
        give_up(rx, now_ns, 0, why);
    }
}

/* ---- finding out ---- */

/* [first, end) is missing. Without room for one more range the oldest is given up; without memory this one. */
static void add_gap(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t first, uint32_t end)
{
    struct um_lbtr_gap gap = {
        .first = first, .end = end, .detected_ns = now_ns, .limit_ns = now_ns + rx->config.generation_ns};
    rx->counters.lost += end - first;
    wait_for(rx, &gap, now_ns, rx->config.initial_ns, usual_lateness(rx, now_ns));
    due(rx, gap.limit_ns);
    if (rx->gaps.count >= UM_LBTR_GAPS_MAX) {
        give_up(rx, now_ns, 0, UM_LBTR_LOSS_TIME);
    }
    if (!um_lbtr_gaps_insert(&rx->gaps, um_lbtr_gaps_find(&rx->gaps, first), &gap)) {
        report(rx, now_ns, first, end, UM_LBTR_LOSS_TIME);
    }
}

/* The trail in a datagram is the source's own word: what is older is gone, what is not is still there. */
static void believe_trail(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t trail)
{
    give_up_before(rx, now_ns, trail, UM_LBTR_LOSS_WINDOW);
    if (!rx->any_doomed) {
        return;
    }
    rx->any_doomed = false;
    for (size_t i = 0; i < rx->gaps.count; i++) {
        struct um_lbtr_gap *gap = um_lbtr_gaps_at(&rx->gaps, i);
        if (gap->doom_ns != 0) {
            gap->doom_ns = 0; /* its NAKs go on where they were */
            due(rx, gap->next_ns);
        }
    }
}

/* The trail in a session message or NCF is hearsay: what is older is asked for no more, and given up if no datagram
 * contradicts for a suppress interval. */
static void hear_trail(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t trail)
{
    if (um_sqn_newer(trail, rx->claim_end)) {
        return;
    }
    for (size_t i = 0; i < rx->gaps.count; i++) {
        struct um_lbtr_gap *gap = um_lbtr_gaps_at(&rx->gaps, i);
        if (!um_sqn_older(gap->first, trail) ||
            (um_sqn_newer(gap->end, trail) && !um_lbtr_gaps_split(&rx->gaps, i, trail))) {
            return;
        }
        gap = um_lbtr_gaps_at(&rx->gaps, i);
        if (gap->doom_ns == 0) {
            gap->doom_ns = now_ns + rx->config.suppress_ns;
            rx->any_doomed = true;
            due(rx, gap->doom_ns);
        }
    }
}

static void note_recovery(struct um_lbtr_receiver_counters *c, uint64_t ms, uint64_t naks)
{
    bool first = c->stm_min == UINT64_MAX;
    c->stm_min = ms < c->stm_min ? ms : c->stm_min;
    c->stm_max = ms > c->stm_max ? ms : c->stm_max;
    c->tx_min = naks < c->tx_min ? naks : c->tx_min;
    c->tx_max = naks > c->tx_max ? naks : c->tx_max;
    if (first) {
        c->stm_mean256 = ms * 256;
        c->tx_mean256 = naks * 256;
    } else {
        c->stm_mean256 = (uint64_t)((int64_t)c->stm_mean256 + ((int64_t)(ms * 256) - (int64_t)c->stm_mean256) / 8);
        c->tx_mean256 = (uint64_t)((int64_t)c->tx_mean256 + ((int64_t)(naks * 256) - (int64_t)c->tx_mean256) / 8);
    }
}

/* A datagram older than the newest: does it fill a gap? */
static enum um_lbtr_arrival fill(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t sqn, bool retransmission)
{
    size_t index = um_lbtr_gaps_find(&rx->gaps, sqn);
    struct um_lbtr_gap *gap = index < rx->gaps.count ? um_lbtr_gaps_at(&rx->gaps, index) : NULL;
    if (gap == NULL || um_sqn_older(sqn, gap->first)) {
        if (!retransmission && rx->pace.repaired[sqn % UM_LBTR_REPAIRED].sqn == sqn &&
            rx->pace.repaired[sqn % UM_LBTR_REPAIRED].detected_ns != 0) {
            came_late(rx, now_ns, rx->pace.repaired[sqn % UM_LBTR_REPAIRED].detected_ns);
            rx->pace.repaired[sqn % UM_LBTR_REPAIRED].detected_ns = 0;
        }
        return UM_LBTR_DUPLICATE;
    }
    if (retransmission) {
        uint64_t took_ns = now_ns > gap->detected_ns ? now_ns - gap->detected_ns : 0;
        note_recovery(&rx->counters, took_ns / UM_NS_PER_MS, gap->naks);
        repair_took(rx, now_ns, sqn, gap);
    } else {
        rx->counters.out_of_order++;
        if (gap->naks > 0) {
            came_late(rx, now_ns, gap->detected_ns);
        }
    }
    if (sqn == gap->first) {
        gap->first++;
    } else if (sqn + 1 == gap->end) {
        gap->end--;
    } else if (um_lbtr_gaps_split(&rx->gaps, index, sqn)) {
        um_lbtr_gaps_at(&rx->gaps, index + 1)->first++;
    } else { /* no room for one more range: the older part is given up */
        uint32_t first = gap->first;
        gap->first = sqn + 1;
        report(rx, now_ns, first, sqn, UM_LBTR_LOSS_TIME);
    }
    gap = um_lbtr_gaps_at(&rx->gaps, index);
    if (gap->first == gap->end) {
        um_lbtr_gaps_remove(&rx->gaps, index);
    }
    return UM_LBTR_ACCEPTED;
}

/* Session messages told of [first, end) some time ago; now a datagram proves that it was sent. Its time to be repaired
 * begins here: a forged session message must not have used it up. */
static void proven(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t first, uint32_t end)
{
    for (size_t i = um_lbtr_gaps_find(&rx->gaps, first); i < rx->gaps.count; i++) {
        if (!um_sqn_older(um_lbtr_gaps_at(&rx->gaps, i)->first, end)) {
            return;
        }
        if (um_sqn_newer(um_lbtr_gaps_at(&rx->gaps, i)->end, end)) {
            um_lbtr_gaps_split(&rx->gaps, i, end);
        }
        um_lbtr_gaps_at(&rx->gaps, i)->limit_ns = now_ns + rx->config.generation_ns;
    }
}

/* A datagram at or beyond the expected one. Numbers between that no session message had told of become missing. */
static enum um_lbtr_arrival advance(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t sqn, bool retransmission)
{
    uint32_t from = rx->expected;
    rx->expected = sqn + 1;
    if (rx->claim_end == from) {
        rx->claim_end = rx->expected;
        if (sqn != from) {
            add_gap(rx, now_ns, from, sqn);
        }
        return UM_LBTR_ACCEPTED;
    }
    if (rx->next_hearsay_ns > now_ns) {
        rx->next_hearsay_ns = 0;
        due(rx, now_ns);
    }
    size_t index = um_lbtr_gaps_find(&rx->gaps, from);
    uint32_t told = index < rx->gaps.count ? um_lbtr_gaps_at(&rx->gaps, index)->first : rx->claim_end;
    if (um_sqn_older(told, from)) {
        told = from;
    }
    if (um_sqn_newer(rx->expected, rx->claim_end)) {
        if (um_sqn_newer(sqn, rx->claim_end)) {
            add_gap(rx, now_ns, rx->claim_end, sqn);
        }
        rx->claim_end = rx->expected;
    }
    if (um_sqn_newer(told, sqn)) {
        told = sqn;
    }
    if (sqn != from) {
        proven(rx, now_ns, from, sqn);
    }
    if (um_sqn_newer(told, from)) { /* told of, given up, and now there is proof that it was sent */
        add_gap(rx, now_ns, from, told);
    }
    fill(rx, now_ns, sqn, retransmission);
    return UM_LBTR_ACCEPTED;
}

/* A number too far ahead is believed when a whole run of datagrams confirms it, and none came nearby meanwhile:
 * everything up to there is lost. */
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
    give_up_before(rx, now_ns, first, UM_LBTR_LOSS_TIME);
    rx->counters.lost += sqn - first;
    report(rx, now_ns, first, sqn, UM_LBTR_LOSS_TIME);
    rx->expected = rx->claim_end = sqn + 1;
    rx->far_count = 0;
    return UM_LBTR_ACCEPTED;
}

/* The origin was the word of a session message, and the first datagram contradicts: the stream begins here. What was
 * claimed since is forgotten. */
static enum um_lbtr_arrival begin_again(struct um_lbtr_reception *rx, uint32_t sqn)
{
    while (rx->gaps.count > 0) {
        um_lbtr_gaps_remove(&rx->gaps, rx->gaps.count - 1);
    }
    um_lbtr_reception_start(rx, sqn + 1);
    rx->proven = true;
    return UM_LBTR_ACCEPTED;
}

enum um_lbtr_arrival um_lbtr_reception_unexpected(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t sqn,
                                                  uint32_t trail, bool retransmission)
{
    int32_t ahead = um_sqn_diff(sqn, rx->expected);
    enum um_lbtr_arrival arrival;
    if (!um_lbtr_trail_is_sane(trail, sqn)) {
        return UM_LBTR_INSANE;
    }
    if (!rx->proven && !retransmission && (ahead < 0 || ahead > (int32_t)rx->config.lead_max)) {
        return begin_again(rx, sqn);
    }
    if (ahead > (int32_t)rx->config.lead_max) {
        return far_ahead(rx, now_ns, sqn, retransmission);
    }
    rx->far_count = 0;
    arrival = ahead < 0 ? fill(rx, now_ns, sqn, retransmission) : advance(rx, now_ns, sqn, retransmission);
    rx->proven = rx->proven || arrival == UM_LBTR_ACCEPTED;
    if (rx->gaps.count > 0 && arrival == UM_LBTR_ACCEPTED) {
        believe_trail(rx, now_ns, trail);
    }
    return arrival;
}

/* A session message knows of less than another one claimed: the claim falls. What is missing up to `end` is looked for
 * anew, also if it was given up while it was a claim only. */
static void retract_claims(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t end)
{
    uint32_t known = rx->expected; /* behind the last gap */
    rx->claim_end = end;
    while (rx->gaps.count > 0) {
        struct um_lbtr_gap *newest = um_lbtr_gaps_at(&rx->gaps, rx->gaps.count - 1);
        if (um_sqn_older(newest->first, end)) {
            newest->end = um_sqn_newer(newest->end, end) ? end : newest->end;
            known = um_sqn_newer(newest->end, known) ? newest->end : known;
            break;
        }
        um_lbtr_gaps_remove(&rx->gaps, rx->gaps.count - 1);
    }
    size_t index = um_lbtr_gaps_find(&rx->gaps, rx->expected);
    uint32_t told = index < rx->gaps.count ? um_lbtr_gaps_at(&rx->gaps, index)->first : rx->expected;
    if (um_sqn_newer(end, known)) {
        add_gap(rx, now_ns, known, end);
    }
    if (um_sqn_newer(told, rx->expected)) {
        add_gap(rx, now_ns, rx->expected, told);
    }
}

bool um_lbtr_reception_sm(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t lead, uint32_t trail)
{
    uint32_t end = lead + 1;
    if (!um_lbtr_trail_is_sane(trail, lead) || um_sqn_diff(end, rx->expected) > (int32_t)rx->config.lead_max) {
        return false;
    }
    if (um_sqn_newer(end, rx->claim_end)) {
        uint32_t from = rx->claim_end;
        rx->claim_end = end;
        add_gap(rx, now_ns, from, end);
    } else if (um_sqn_older(end, rx->claim_end) && !um_sqn_older(end, rx->expected)) {
        retract_claims(rx, now_ns, end);
    }
    hear_trail(rx, now_ns, trail);
    return true;
}

/* ---- NAK confirmations ---- */

static void suppress(struct um_lbtr_reception *rx, struct um_lbtr_gap *gap, uint64_t now_ns)
{
    if (!gap->suppressed) {
        uint64_t base = gap->next_ns > now_ns ? gap->next_ns : now_ns;
        gap->next_ns = base + rx->config.suppress_ns;
        gap->suppressed = true;
        due(rx, gap->next_ns);
    }
}

/* May a range be split for the sake of an NCF? Not when there are many, and of hearsay not even when there are some: a
 * forged list must not cost much. Then the whole range waits. */
static bool may_split(const struct um_lbtr_reception *rx, const struct um_lbtr_gap *gap)
{
    return rx->gaps.count < (um_sqn_older(gap->first, rx->expected) ? CROWDED : FEW);
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
    hear_trail(rx, now_ns, trail);
}

/* ---- NAKs ---- */

/* Only session messages told of it, no datagram yet. */
static bool is_hearsay(const struct um_lbtr_reception *rx, const struct um_lbtr_gap *gap)
{
    return !um_sqn_older(gap->first, rx->expected);
}

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
            give_up(rx, now_ns, i, UM_LBTR_LOSS_WINDOW);
        } else if (now_ns >= gap->limit_ns) {
            give_up(rx, now_ns, i, UM_LBTR_LOSS_TIME);
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
            wait_for(rx, um_lbtr_gaps_at(&rx->gaps, i), now_ns, rx->config.initial_ns, 0);
        }
    }
    rx->cutoff = cutoff;
}
