/* Answers to NAKs. See um_lbtr_answer.h. */
#include "transport/lbtr/um_lbtr_answer.h"

#include <string.h>

#include "base/um_sqn.h"
#include "base/um_timer.h"

#define REFUSE_AGAIN_NS (100 * UM_NS_PER_MS)
#define NCF_BUDGET 32u /* packets per NCF_BUDGET_NS: forged NAKs must not flood the group */
#define NCF_BUDGET_NS (10 * UM_NS_PER_MS)
#define NCF_LIST_MAX 365u

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

void um_lbtr_answer_init(struct um_lbtr_answer *answer, uint64_t ignore_ns, uint32_t ncf_max)
{
    memset(answer, 0, sizeof *answer);
    answer->ignore_ns = ignore_ns;
    answer->ncf_max = ncf_max;
}

static bool ncf_allowed(struct um_lbtr_answer *answer, uint64_t now_ns)
{
    if (answer->ncf_budget_ns == 0 || now_ns - answer->ncf_budget_ns >= NCF_BUDGET_NS) {
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
    if (!ncf_allowed(a->answer, a->now_ns)) {
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
    if (sent->confirmed_ns != 0 && a->now_ns - sent->confirmed_ns < a->answer->ignore_ns) {
        return;
    }
    sent->confirmed_ns = a->now_ns;
    refuse(a, reason, sqn);
}

static void refuse_gone(struct answering *a, uint32_t sqn)
{
    unsigned place = sqn % UM_LBTR_REFUSALS;
    uint64_t at_ns = a->answer->refused[place].at_ns;
    if (at_ns != 0 && a->answer->refused[place].sqn == sqn && a->now_ns - at_ns < REFUSE_AGAIN_NS) {
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
    } else if (sent->repaired_ns != 0 && a->now_ns - sent->repaired_ns < a->answer->ignore_ns) {
        a->counters->naks_ignored++;
        refuse_once(a, UM_LBTR_NAK_IGNORED, sqn, sent);
    } else if (numbers->queue_count == 0 && um_lbtr_limiter_take_rx(a->limiter, a->now_ns, a->header_len + sent->len)) {
        repair(a->ops, a->user, a->now_ns, sqn, sent);
    } else if (queue_has_room(a, sent->len) && um_lbtr_numbers_queue(numbers, sqn)) {
        atomic_fetch_add_explicit(&a->limiter->rx_queued, sent->len, memory_order_relaxed);
        a->counters->naks_rx_delay_ignored++;
        refuse_once(a, UM_LBTR_RX_DELAY, sqn, sent);
    } else {
        a->counters->naks_shed++;
        refuse_once(a, UM_LBTR_NAK_SHED, sqn, sent);
    }
}

void um_lbtr_answer_naks(struct um_lbtr_answer *answer, struct um_lbtr_numbers *numbers,
                         struct um_lbtr_limiter *limiter, struct um_lbtr_source_counters *counters, uint64_t now_ns,
                         const struct um_lbtr_list *list, uint32_t header_len, const struct um_lbtr_answer_ops *ops,
                         void *user)
{
    struct answering a = {.answer = answer,
                          .numbers = numbers,
                          .limiter = limiter,
                          .counters = counters,
                          .now_ns = now_ns,
                          .header_len = header_len,
                          .ops = ops,
                          .user = user};
    counters->nak_pckts_rcved++;
    counters->naks_rcved += list->count;
    for (size_t i = 0; i < list->count; i++) {
        answer_one(&a, um_lbtr_list_at(list, i));
    }
    for (int reason = 0; reason < UM_LBTR_REASONS; reason++) {
        send_refusals(&a, (enum um_lbtr_reason)reason);
    }
}

bool um_lbtr_answer_drain(struct um_lbtr_numbers *numbers, struct um_lbtr_limiter *limiter, uint64_t now_ns,
                          uint32_t header_len, const struct um_lbtr_answer_ops *ops, void *user)
{
    uint32_t sqn;
    struct um_lbtr_sent *sent;
    while ((sent = um_lbtr_numbers_peek(numbers, &sqn)) != NULL) {
        if (!um_lbtr_limiter_take_rx(limiter, now_ns, header_len + sent->len)) {
            return false;
        }
        um_lbtr_numbers_pop(numbers);
        atomic_fetch_sub_explicit(&limiter->rx_queued, sent->len, memory_order_relaxed);
        repair(ops, user, now_ns, sqn, sent);
    }
    return true;
}
