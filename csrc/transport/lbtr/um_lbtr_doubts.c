/* Numbers that may be forged or damaged: claims of session messages, datagrams far ahead of all others, and rows of
 * datagrams behind the newest one. What is believed of them, when it is taken back, and where the stream is then. Part
 * of um_lbtr_reception.h; its thread. */
#include "base/um_sqn.h"
#include "transport/lbtr/um_lbtr_reception_parts.h"

#define FAR_LEAD 1024u                    /* a datagram so far ahead of all others needs a second one to confirm it */
#define BEHIND_ROW 3u                     /* so many originals in a row, over so long a time, show where the ... */
#define BEHIND_ROW_NS (50 * UM_NS_PER_MS) /* ... stream is: twice as long as originals are ever late */
#define BEHIND_SKIP 64u                   /* numbers that may be missing between two of the row */

/* ---- claims ---- */

/* It was claimed some time ago that [first, end) was sent; now a datagram proves it. Its time to be repaired begins
 * here: a forged claim must not have used it up. */
void um_lbtr_rx_prove(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t first, uint32_t end)
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

/* A session message knows of less than another one claimed: the claim falls. What is missing up to `end` is looked for
 * anew, also if it was given up while it was a claim only. */
void um_lbtr_rx_retract_claims(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t end)
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
        um_lbtr_rx_add_gap(rx, now_ns, known, end);
    }
    if (um_sqn_newer(told, rx->expected)) {
        um_lbtr_rx_add_gap(rx, now_ns, rx->expected, told);
    }
}

/* ---- far leads ---- */

/* Does anything but this datagram speak for its number? Two far leads may be one lie: then it began before the first.
 * Not when the stream went on far behind the first. */
void um_lbtr_rx_judge_lead(struct um_lbtr_reception *rx, uint32_t sqn)
{
    bool far = um_sqn_diff(sqn, rx->claim_end) >= (int32_t)FAR_LEAD;
    if (far && !rx->far_lead) {
        bool near = rx->unanswered && rx->expected - rx->lead_end < FAR_LEAD;
        rx->confirmed = near ? rx->confirmed : rx->expected;
        rx->unanswered = true;
    }
    rx->lead_end = far ? sqn + 1 : rx->lead_end;
    rx->far_lead = far;
}

/* The source was asked for what lies before a far lead, and has it. */
void um_lbtr_rx_lead_answered(struct um_lbtr_reception *rx, uint64_t now_ns)
{
    rx->far_lead = rx->unanswered = false;
    if (rx->next_hearsay_ns > now_ns) {
        rx->next_hearsay_ns = 0;
        um_lbtr_rx_due(rx, now_ns);
    }
}

/* The stream went on, and what lies before the far lead is not missing any more: it is a lead like any other. */
void um_lbtr_rx_settle_lead(struct um_lbtr_reception *rx)
{
    if (rx->expected != rx->lead_end) {
        rx->far_lead = false;
    }
    if (rx->unanswered && !rx->far_lead) {
        size_t index = um_lbtr_gaps_find(&rx->gaps, rx->confirmed);
        rx->unanswered = index < rx->gaps.count && um_sqn_older(um_lbtr_gaps_at(&rx->gaps, index)->first, rx->expected);
    }
}

/* ---- the way back ---- */

/* The stream is at `at`, and what was received beyond is none of it. A row behind the newest number ends: it must not
 * speak against the stream when that has come to the same number again. */
void um_lbtr_rx_take_back(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t at)
{
    rx->counters.false_leads++;
    um_lbtr_gaps_take_out_from(&rx->gaps, at);
    um_lbtr_gaps_take_out_from(&rx->given_up, at);
    rx->expected = rx->claim_end = at;
    rx->far_lead = rx->unanswered = rx->trail_known = rx->behind.any = false;
    rx->far_count = 0;
    rx->ops->taken_back(rx->user, now_ns, at);
}

/* Of what is before `end`, this was given up although it may be there still: what was not sent then, from the range
 * that holds `first` on, and what a trail did away with. It is asked for again. */
static void revive(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t first, uint32_t end)
{
    for (size_t i = 0; i < rx->given_up.count;) {
        struct um_lbtr_gap gone = *um_lbtr_gaps_at(&rx->given_up, i);
        if (!um_sqn_older(gone.first, end)) {
            return;
        }
        gone.end = um_sqn_newer(gone.end, end) ? end : gone.end;
        if (gone.untried || um_sqn_newer(gone.end, first)) {
            um_lbtr_rx_add_gap(rx, now_ns, gone.first, gone.end); /* takes it out of given_up */
            i = um_lbtr_gaps_find(&rx->given_up, gone.end);
        } else {
            i++;
        }
    }
}

/* Does the row show where the stream is? Then `expected` is `at`, behind the row. Originals that were late begin one
 * too, and what comes long after them may be a lie: so late there must be two. */
static void judge_row(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t at)
{
    uint32_t first = rx->behind.first, origin = rx->origin;
    uint64_t before_ns = rx->behind.last_ns;
    rx->behind.last_ns = now_ns;
    if (rx->behind.count < BEHIND_ROW || before_ns < rx->behind.since_ns + BEHIND_ROW_NS) {
        return;
    }
    if (!rx->behind.before_origin && um_sqn_newer(rx->behind.end, at)) {
        at = rx->behind.end;
    }
    um_lbtr_rx_take_back(rx, now_ns, at);
    um_lbtr_rx_prove(rx, now_ns, first - BEHIND_SKIP, at);
    revive(rx, now_ns, first - BEHIND_SKIP, at);
    if (rx->behind.before_origin) { /* so far none of them was passed up */
        rx->origin = first;
        um_lbtr_rx_add_gap(rx, now_ns, first, um_sqn_older(at, origin) ? at : origin);
    }
}

/* An original behind the newest number that never came before. A whole row of them, and nothing new meanwhile: the
 * stream is here; the newest number was a lie, or the origin was. */
void um_lbtr_rx_came_behind(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t sqn, bool before_origin)
{
    if (!rx->behind.any || rx->behind.expected != rx->expected) {
        rx->behind.any = true;
        rx->behind.expected = rx->expected;
        rx->behind.end = sqn;
        rx->behind.count = 0;
    }
    if (rx->behind.count == 0 || sqn - rx->behind.next >= BEHIND_SKIP) {
        rx->behind.first = sqn;
        rx->behind.since_ns = rx->behind.last_ns = now_ns;
        rx->behind.count = 0;
        rx->behind.before_origin = false;
    }
    rx->behind.count++;
    rx->behind.next = sqn + 1;
    rx->behind.before_origin = rx->behind.before_origin || before_origin;
    judge_row(rx, now_ns, sqn);
    if (um_sqn_newer(sqn + 1, rx->behind.end)) {
        rx->behind.end = sqn + 1;
    }
}

/* A session message that knows of nothing newer than the row belongs to it. */
void um_lbtr_rx_told_behind(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t end)
{
    if (rx->behind.any && rx->behind.count > 0 && rx->behind.expected == rx->expected && end == rx->behind.next) {
        rx->behind.count++;
        judge_row(rx, now_ns, end);
    }
}

/* Was it never received, although it is older than the newest? */
bool um_lbtr_rx_never_came(struct um_lbtr_reception *rx, uint32_t sqn, bool *before_origin)
{
    const struct um_lbtr_gaps *const both[] = {&rx->gaps, &rx->given_up};
    *before_origin = rx->origin_known && um_sqn_older(sqn, rx->origin);
    for (int i = 0; i < 2; i++) {
        size_t index = um_lbtr_gaps_find(both[i], sqn);
        if (index < both[i]->count && !um_sqn_older(sqn, um_lbtr_gaps_at(both[i], index)->first)) {
            return true;
        }
    }
    return *before_origin;
}
