/* Shared token buckets and the order of waiting sessions. See um_lbtr_limiter.h. */
#include "transport/lbtr/um_lbtr_limiter.h"

#include "base/um_mem.h"
#include "base/um_timer.h"

#define CREDIT_MAX ((double)INT32_MAX)

static void bucket_init(struct um_lbtr_bucket *bucket, uint64_t bps, uint64_t interval_ns)
{
    double per_interval = (double)bps / 8.0 * (double)interval_ns / (double)UM_NS_PER_SEC;
    bucket->allowance = (uint32_t)(bps == 0 || per_interval > CREDIT_MAX ? CREDIT_MAX
                                   : per_interval >= 1                   ? per_interval
                                                                         : 1);
    bucket->interval_ns = interval_ns;
    atomic_init(&bucket->saving, 0);
    atomic_init(&bucket->state, bucket->allowance);
}

void um_lbtr_limiter_init(struct um_lbtr_limiter *limiter, const struct um_lbtr_limiter_config *config)
{
    limiter->retransmissions_count = config->retransmissions_count;
    bucket_init(&limiter->data, config->data_bps, config->interval_ns);
    bucket_init(&limiter->rx, config->retransmit_bps, config->interval_ns);
    bucket_init(&limiter->ncf, config->retransmit_bps / 4, UM_NS_PER_SEC);
    atomic_init(&limiter->rx_queued, 0);
    atomic_init(&limiter->blocked, 0);
    limiter->lock = (struct um_lock){0};
    um_list_init(&limiter->holders);
    um_list_init(&limiter->notices);
}

/* The state as of now: a new interval brings its allowance; credit adds up only for an oversized datagram. A clock that
 * another thread read a moment ago changes nothing; one that was set back starts a new interval. */
static uint64_t refreshed(const struct um_lbtr_bucket *bucket, uint64_t state, uint32_t interval)
{
    int32_t passed = (int32_t)(interval - (uint32_t)(state >> 32));
    if (passed == 0 || passed == -1) {
        return state;
    }
    uint64_t credit = bucket->allowance;
    uint32_t saving = atomic_load_explicit(&bucket->saving, memory_order_relaxed);
    if (saving > bucket->allowance && passed > 0) {
        credit = (uint32_t)state + (uint64_t)passed * bucket->allowance;
        credit = credit < saving ? credit : saving;
    }
    return (uint64_t)interval << 32 | credit;
}

static uint32_t bucket_credit(struct um_lbtr_bucket *bucket, uint64_t now_ns)
{
    uint64_t state = atomic_load_explicit(&bucket->state, memory_order_relaxed);
    return (uint32_t)refreshed(bucket, state, (uint32_t)(now_ns / bucket->interval_ns));
}

static bool bucket_take(struct um_lbtr_bucket *bucket, uint64_t now_ns, uint32_t bytes, uint32_t leave)
{
    uint32_t interval = (uint32_t)(now_ns / bucket->interval_ns);
    uint64_t state = atomic_load_explicit(&bucket->state, memory_order_relaxed), fresh;
    do {
        fresh = refreshed(bucket, state, interval);
        if ((uint64_t)(uint32_t)fresh < (uint64_t)bytes + leave) {
            if (bytes > bucket->allowance) {
                atomic_store_explicit(&bucket->saving, bytes, memory_order_relaxed);
                atomic_compare_exchange_strong_explicit(&bucket->state, &state, fresh, memory_order_relaxed,
                                                        memory_order_relaxed);
            }
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&bucket->state, &state, fresh - bytes, memory_order_relaxed,
                                                    memory_order_relaxed));
    if (bytes > bucket->allowance) {
        atomic_store_explicit(&bucket->saving, 0, memory_order_relaxed);
    }
    return true;
}

static void bucket_refund(struct um_lbtr_bucket *bucket, uint32_t bytes)
{
    atomic_fetch_add_explicit(&bucket->state, bytes, memory_order_relaxed);
    if (bytes > bucket->allowance) {
        atomic_store_explicit(&bucket->saving, bytes, memory_order_relaxed);
    }
}

/* What original data must leave over for repairs that wait: no more than these may take in this interval. */
static uint32_t kept_for_rx(struct um_lbtr_limiter *limiter, uint64_t now_ns)
{
    uint32_t queued = atomic_load_explicit(&limiter->rx_queued, memory_order_relaxed);
    if (queued == 0 || !limiter->retransmissions_count) {
        return 0;
    }
    uint32_t credit = bucket_credit(&limiter->rx, now_ns), half = limiter->data.allowance / 2;
    credit = credit < half ? credit : half;
    return queued < credit ? queued : credit;
}

bool um_lbtr_limiter_take_data(struct um_lbtr_limiter *limiter, uint64_t now_ns, uint32_t bytes,
                               const struct um_lbtr_turn *turn, bool insist)
{
    if (um_lbtr_limiter_blocked(limiter)) {
        um_lock_take(&limiter->lock);
        bool mine = um_list_empty(&limiter->holders) || limiter->holders.next == &turn->node;
        um_lock_give(&limiter->lock);
        if (!mine) {
            return false;
        }
    }
    uint32_t leave = insist || bytes > limiter->data.allowance ? 0 : kept_for_rx(limiter, now_ns);
    return bucket_take(&limiter->data, now_ns, bytes, leave);
}

bool um_lbtr_limiter_take_rx(struct um_lbtr_limiter *limiter, uint64_t now_ns, uint32_t bytes)
{
    if (!bucket_take(&limiter->rx, now_ns, bytes, 0)) {
        return false;
    }
    if (limiter->retransmissions_count && !bucket_take(&limiter->data, now_ns, bytes, 0)) {
        bucket_refund(&limiter->rx, bytes);
        return false;
    }
    return true;
}

bool um_lbtr_limiter_take_ncf(struct um_lbtr_limiter *limiter, uint64_t now_ns, uint32_t bytes)
{
    return bucket_take(&limiter->ncf, now_ns, bytes, 0);
}

void um_lbtr_limiter_rx_waits(struct um_lbtr_limiter *limiter, uint32_t bytes)
{
    atomic_fetch_add_explicit(&limiter->rx_queued, bytes, memory_order_relaxed);
}

/* Without any that waits nothing is saved up for an oversized one. */
void um_lbtr_limiter_rx_waits_not(struct um_lbtr_limiter *limiter, uint32_t bytes)
{
    if (bytes > 0 && atomic_fetch_sub_explicit(&limiter->rx_queued, bytes, memory_order_relaxed) == bytes) {
        atomic_store_explicit(&limiter->rx.saving, 0, memory_order_relaxed);
    }
}

uint64_t um_lbtr_limiter_next_interval(const struct um_lbtr_limiter *limiter, uint64_t now_ns)
{
    return (now_ns / limiter->data.interval_ns + 1) * limiter->data.interval_ns;
}

uint64_t um_lbtr_limiter_rx_queue_bytes(const struct um_lbtr_limiter *limiter)
{
    uint64_t bytes = (uint64_t)limiter->rx.allowance * (UM_NS_PER_SEC / limiter->rx.interval_ns);
    return bytes < INT32_MAX ? bytes : INT32_MAX; /* rx_queued must not wrap */
}

/* ---- turns ---- */

void um_lbtr_turn_init(struct um_lbtr_turn *turn, void (*fn)(struct um_lbtr_turn *turn))
{
    um_list_init(&turn->node);
    turn->kind = UM_LBTR_TURN_NONE;
    turn->fn = fn;
}

static void leave_locked(struct um_lbtr_limiter *limiter, struct um_lbtr_turn *turn)
{
    bool first = limiter->holders.next == &turn->node;
    enum um_lbtr_turn_kind kind = turn->kind;
    um_list_remove(&turn->node);
    turn->kind = UM_LBTR_TURN_NONE;
    if (kind != UM_LBTR_TURN_DATA) {
        return;
    }
    if (atomic_fetch_sub_explicit(&limiter->blocked, 1, memory_order_acq_rel) > 1) {
        if (first) {
            struct um_lbtr_turn *next = UM_CONTAINER_OF(limiter->holders.next, struct um_lbtr_turn, node);
            next->fn(next);
        }
        return;
    }
    while (!um_list_empty(&limiter->notices)) {
        struct um_lbtr_turn *next = UM_CONTAINER_OF(limiter->notices.next, struct um_lbtr_turn, node);
        um_list_remove(&next->node);
        next->kind = UM_LBTR_TURN_NONE;
        next->fn(next);
    }
}

bool um_lbtr_turn_join(struct um_lbtr_limiter *limiter, struct um_lbtr_turn *turn, enum um_lbtr_turn_kind kind)
{
    um_lock_take(&limiter->lock);
    bool joined = true;
    if (turn->kind != kind && turn->kind != UM_LBTR_TURN_DATA) {
        um_list_remove(&turn->node);
        turn->kind = UM_LBTR_TURN_NONE;
        if (kind == UM_LBTR_TURN_DATA) {
            atomic_fetch_add_explicit(&limiter->blocked, 1, memory_order_acq_rel);
            um_list_push_back(&limiter->holders, &turn->node);
            turn->kind = kind;
        } else if (um_lbtr_limiter_blocked(limiter)) {
            um_list_push_back(&limiter->notices, &turn->node);
            turn->kind = kind;
        } else {
            joined = false;
        }
    }
    um_lock_give(&limiter->lock);
    return joined;
}

bool um_lbtr_turn_may_send(struct um_lbtr_limiter *limiter, struct um_lbtr_turn *turn, bool *relief_wanted)
{
    if (!um_lbtr_limiter_blocked(limiter)) {
        return true;
    }
    if (relief_wanted != NULL) {
        *relief_wanted = turn->kind != UM_LBTR_TURN_NONE || um_lbtr_turn_join(limiter, turn, UM_LBTR_TURN_NOTICE);
    }
    return relief_wanted != NULL && !*relief_wanted;
}

void um_lbtr_turn_leave(struct um_lbtr_limiter *limiter, struct um_lbtr_turn *turn)
{
    um_lock_take(&limiter->lock);
    leave_locked(limiter, turn);
    um_lock_give(&limiter->lock);
}
