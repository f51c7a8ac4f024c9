/* Answers to NAKs. See um_lbtr_answer.h. */
#include "transport/lbtr/um_lbtr_answer.h"

#include <string.h>

#include "base/um_sqn.h"
#include "base/um_timer.h"

#define REFUSE_AGAIN_NS (100 * UM_NS_PER_MS)
#define NCF_BUDGET 32u /* packets per NCF_BUDGET_NS: forged NAKs must not flood the group */
#define NCF_BUDGET_NS (10 * UM_NS_PER_MS)
#define NCF_LIST_MAX 365u
#define UNORDERED_MAX 2048u /* numbers put into order at a time, for peers that do not send them so */

/* The numbers refused so far, by reason. */
struct refusals {
    uint32_t sqns[UM_LBTR_REASONS][NCF_LIST_MAX];
    uint32_t counts[UM_LBTR_REASONS];
};

struct answering {
    struct um_lbtr_answer *answer;
    struct um_lbtr_numbers *numbers;
    struct um_lbtr_limiter *limiter;
    struct um_lbtr_source_counters *counters;
    uint64_t now_ns;
    uint32_t header_len;
    const struct um_lbtr_answer_ops *ops;
    void *user;
    struct refusals refusals;
};

void um_lbtr_answer_init(struct um_lbtr_answer *answer, uint64_t ignore_ns, uint32_t ncf_max, uint32_t ncf_header)
{
    memset(answer, 0, sizeof *answer);
    answer->ignore_ns = ignore_ns;
    answer->ncf_max = ncf_max;
    answer->ncf_header = ncf_header;
}

/* Did it happen, and less than `span_ns` ago? Clocks that threads read a moment apart may run backwards. */
static bool lately(uint64_t now_ns, uint64_t at_ns, uint64_t span_ns)
{
    return at_ns != 0 && (now_ns < at_ns || now_ns - at_ns < span_ns);
}

static bool ncf_allowed(struct um_lbtr_answer *answer, uint64_t now_ns)
{
    if (!lately(now_ns, answer->ncf_budget_ns, NCF_BUDGET_NS)) {
        answer->ncf_budget_ns = now_ns;
        answer->ncf_budget = NCF_BUDGET;
    }
    return answer->ncf_budget > 0 && answer->ncf_budget-- > 0;
}

static void send_refusals(struct answering *a, enum um_lbtr_reason reason)
{
    uint32_t count = a->refusals.counts[reason];
    a->refusals.counts[reason] = 0;
    if (count == 0) {
        return;
    }
    if (!ncf_allowed(a->answer, a->now_ns) ||
        !um_lbtr_limiter_take_ncf(a->limiter, a->now_ns, a->answer->ncf_header + 4 * count)) {
        a->counters->ncfs_withheld++;
        return;
    }
    a->counters->ncfs_sent++;
    a->ops->ncf(a->user, reason, a->refusals.sqns[reason], count);
}

static void refuse(struct answering *a, enum um_lbtr_reason reason, uint32_t sqn)
{
    a->refusals.sqns[reason][a->refusals.counts[reason]++] = sqn;
    if (a->refusals.counts[reason] == a->answer->ncf_max) {
        send_refusals(a, reason);
    }
}

/* A datagram that is still there: only the first refusal within an ignore interval is told. */
static void refuse_once(struct answering *a, enum um_lbtr_reason reason, uint32_t sqn, struct um_lbtr_sent *sent)
{
    if (lately(a->now_ns, sent->confirmed_ns, a->answer->ignore_ns)) {
        return;
    }
    sent->confirmed_ns = a->now_ns;
    refuse(a, reason, sqn);
}

static void refuse_gone(struct answering *a, uint32_t sqn)
{
    unsigned place = sqn % UM_LBTR_REFUSALS;
    if (a->answer->refused[place].sqn == sqn && lately(a->now_ns, a->answer->refused[place].at_ns, REFUSE_AGAIN_NS)) {
        return;
    }
    a->answer->refused[place].at_ns = a->now_ns;
    a->answer->refused[place].sqn = sqn;
    refuse(a, UM_LBTR_DO_NOT_RETRY, sqn);
}

static void repair(const struct um_lbtr_answer_ops *ops, void *user, uint64_t now_ns, uint32_t sqn,
                   struct um_lbtr_sent *sent)
{
    sent->repaired_ns = now_ns;
    ops->repair(user, sqn, sent);
}

/* Room for one more, always for one. */
static bool queue_has_room(const struct answering *a, uint32_t bytes)
{
    uint64_t queued = atomic_load_explicit(&a->limiter->rx_queued, memory_order_relaxed);
    return queued == 0 || a->numbers->queue_count == 0 || queued + bytes <= um_lbtr_limiter_rx_queue_bytes(a->limiter);
}

static void answer_one(struct answering *a, uint32_t sqn)
{
    struct um_lbtr_numbers *numbers = a->numbers;
    if (!um_sqn_older(sqn, numbers->unsent)) {
        return;
    }
    if (um_sqn_older(sqn, numbers->trail)) {
        refuse_gone(a, sqn);
        return;
    }
    struct um_lbtr_sent *sent = um_lbtr_numbers_at(numbers, sqn);
    if (sent->queued) {
        a->counters->naks_rx_delay_ignored++;
        refuse_once(a, UM_LBTR_RX_DELAY, sqn, sent);
    } else if (lately(a->now_ns, sent->repaired_ns, a->answer->ignore_ns)) {
        a->counters->naks_ignored++;
        refuse_once(a, UM_LBTR_NAK_IGNORED, sqn, sent);
    } else if (numbers->queue_count == 0 && !a->ops->full(a->user) &&
               um_lbtr_limiter_take_rx(a->limiter, a->now_ns, a->header_len + sent->len)) {
        repair(a->ops, a->user, a->now_ns, sqn, sent);
    } else if (queue_has_room(a, sent->len) && um_lbtr_numbers_queue(numbers, sqn)) {
        um_lbtr_limiter_rx_waits(a->limiter, sent->len);
        a->counters->naks_rx_delay_ignored++;
        refuse_once(a, UM_LBTR_RX_DELAY, sqn, sent);
    } else {
        a->counters->naks_shed++;
        refuse_once(a, UM_LBTR_NAK_SHED, sqn, sent);
    }
}

static bool ascends(const struct um_lbtr_list *list)
{
    for (size_t i = 1; i < list->count; i++) {
        if (um_sqn_older(um_lbtr_list_at(list, i), um_lbtr_list_at(list, i - 1))) {
            return false;
        }
    }
    return true;
}

/* By one byte after the other: a stranger's list costs no more than its length, and no memory. */
static void sort(uint32_t *sqns, size_t n)
{
    uint32_t sorted[UNORDERED_MAX];
    for (unsigned shift = 0; shift < 32; shift += 8) {
        uint32_t places[257] = {0};
        for (size_t i = 0; i < n; i++) {
            places[(sqns[i] >> shift & 255) + 1]++;
        }
        for (unsigned byte = 1; byte < 256; byte++) {
            places[byte] += places[byte - 1];
        }
        for (size_t i = 0; i < n; i++) {
            sorted[places[sqns[i] >> shift & 255]++] = sqns[i];
        }
        memcpy(sqns, sorted, n * sizeof sqns[0]);
    }
}

/* The oldest numbers have priority, however the list is ordered. Their distance from a number long before the oldest
 * one kept orders all of them. */
static void answer_unordered(struct answering *a, const struct um_lbtr_list *list)
{
    uint32_t sqns[UNORDERED_MAX], base = a->numbers->trail - (1u << 30);
    for (size_t done = 0; done < list->count;) {
        size_t n = list->count - done < UNORDERED_MAX ? list->count - done : UNORDERED_MAX;
        for (size_t i = 0; i < n; i++) {
            sqns[i] = um_lbtr_list_at(list, done + i) - base;
        }
        sort(sqns, n);
        for (size_t i = 0; i < n; i++) {
            answer_one(a, sqns[i] + base);
        }
        done += n;
    }
}

void um_lbtr_answer_naks(struct um_lbtr_answer *answer, struct um_lbtr_numbers *numbers,
                         struct um_lbtr_limiter *limiter, struct um_lbtr_source_counters *counters, uint64_t now_ns,
                         const struct um_lbtr_list *list, uint32_t header_len, const struct um_lbtr_answer_ops *ops,
                         void *user)
{
    struct answering a;
    a.answer = answer;
    a.numbers = numbers;
    a.limiter = limiter;
    a.counters = counters;
    a.now_ns = now_ns;
    a.header_len = header_len;
    a.ops = ops;
    a.user = user;
    memset(a.refusals.counts, 0, sizeof a.refusals.counts); /* the lists are 6 KB: not cleared */
    counters->nak_pckts_rcved++;
    counters->naks_rcved += list->count;
    if (ascends(list)) {
        for (size_t i = 0; i < list->count; i++) {
            answer_one(&a, um_lbtr_list_at(list, i));
        }
    } else {
        answer_unordered(&a, list);
    }
    for (int reason = 0; reason < UM_LBTR_REASONS; reason++) {
        send_refusals(&a, (enum um_lbtr_reason)reason);
    }
}

bool um_lbtr_answer_drain_one(struct um_lbtr_numbers *numbers, struct um_lbtr_limiter *limiter, uint64_t now_ns,
                              uint32_t header_len, const struct um_lbtr_answer_ops *ops, void *user)
{
    uint32_t sqn;
    struct um_lbtr_sent *sent = um_lbtr_numbers_peek(numbers, &sqn);
    if (ops->full(user) || !um_lbtr_limiter_take_rx(limiter, now_ns, header_len + sent->len)) {
        return false;
    }
    um_lbtr_numbers_pop(numbers);
    um_lbtr_limiter_rx_waits_not(limiter, sent->len);
    repair(ops, user, now_ns, sqn, sent);
    return true;
}
