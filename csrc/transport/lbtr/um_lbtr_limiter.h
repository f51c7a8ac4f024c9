/* Rate limits of LBT-RM or of LBT-RU in one context: a bucket for original data and
 * one for retransmissions, shared by all source sessions, and the order in which
 * sessions that must wait go on. Buckets: any thread, atomics. Turns: the lock inside;
 * a turn's function runs under it and may only post. */
#ifndef UM_TRANSPORT_LBTR_LIMITER_H
#define UM_TRANSPORT_LBTR_LIMITER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/um_list.h"
#include "base/um_lock.h"

/* Credit of one interval; what is not used is gone, except while a datagram larger than the allowance waits. */
struct um_lbtr_bucket {
    _Atomic uint64_t state;  /* interval number << 32 | credit in bytes */
    _Atomic uint32_t saving; /* size of the oversized datagram that waits, 0: none */
    uint32_t allowance;      /* fixed: bytes per interval */
    uint64_t interval_ns;    /* fixed */
};

enum um_lbtr_turn_kind { UM_LBTR_TURN_NONE, UM_LBTR_TURN_DATA, UM_LBTR_TURN_NOTICE };

/* A session's place in the order; embedded in the session. */
struct um_lbtr_turn {
    struct um_list node;                   /* limiter lock */
    _Atomic(enum um_lbtr_turn_kind) kind;  /* changed under the limiter lock; the owner reads it without */
    void (*fn)(struct um_lbtr_turn *turn); /* DATA: it is your turn. NOTICE: nobody blocks any more. Only posts */
};

struct um_lbtr_limiter {
    bool retransmissions_count; /* fixed: the data limit covers retransmissions too (LBT-RM) */
    struct um_lbtr_bucket data, rx;
    struct um_lbtr_bucket ncf;  /* refusals that NAKs cause: in a second, a quarter of what repairs may take */
    _Atomic uint32_t rx_queued; /* bytes of retransmissions waiting in all sessions */
    atomic_int blocked;         /* sessions that hold datagrams back */
    struct um_lock lock;
    struct um_list holders; /* lock: turns of kind DATA, first come first served */
    struct um_list notices; /* lock: turns of kind NOTICE */
};

/* What became of a datagram that was handed to a source. */
enum um_lbtr_commit { UM_LBTR_SENT, UM_LBTR_HELD /* by the rate limit; goes out by itself */ };

struct um_lbtr_limiter_config {
    uint64_t data_bps, retransmit_bps; /* 0: as good as unlimited */
    uint64_t interval_ns;
    bool retransmissions_count;
};

void um_lbtr_limiter_init(struct um_lbtr_limiter *limiter, const struct um_lbtr_limiter_config *config);
/* Take credit for an original datagram: only by the session whose turn it is, or when nobody waits. Leaves over what
 * waiting repairs may take, unless `insist`: the datagram has waited a whole interval already. */
bool um_lbtr_limiter_take_data(struct um_lbtr_limiter *limiter, uint64_t now_ns, uint32_t bytes,
                               const struct um_lbtr_turn *turn, bool insist);
bool um_lbtr_limiter_take_rx(struct um_lbtr_limiter *limiter, uint64_t now_ns, uint32_t bytes);
bool um_lbtr_limiter_take_ncf(struct um_lbtr_limiter *limiter, uint64_t now_ns, uint32_t bytes);
/* Repairs of this size wait for credit, or do not wait any more. */
void um_lbtr_limiter_rx_waits(struct um_lbtr_limiter *limiter, uint32_t bytes);
void um_lbtr_limiter_rx_waits_not(struct um_lbtr_limiter *limiter, uint32_t bytes);
uint64_t um_lbtr_limiter_next_interval(const struct um_lbtr_limiter *limiter, uint64_t now_ns);
/* Bytes of retransmissions a session may queue: a second's worth. */
uint64_t um_lbtr_limiter_rx_queue_bytes(const struct um_lbtr_limiter *limiter);

void um_lbtr_turn_init(struct um_lbtr_turn *turn, void (*fn)(struct um_lbtr_turn *turn));
/* Hold data back (DATA) or ask to be told when nobody blocks (NOTICE; told at once by false when nobody does). */
bool um_lbtr_turn_join(struct um_lbtr_limiter *limiter, struct um_lbtr_turn *turn, enum um_lbtr_turn_kind kind);
/* May data be accepted? If not, `relief_wanted` (may be NULL) is set, and the turn is in the order to be told. */
bool um_lbtr_turn_may_send(struct um_lbtr_limiter *limiter, struct um_lbtr_turn *turn, bool *relief_wanted);
void um_lbtr_turn_leave(struct um_lbtr_limiter *limiter, struct um_lbtr_turn *turn);

static inline bool um_lbtr_limiter_blocked(const struct um_lbtr_limiter *limiter)
{
    return atomic_load_explicit(&limiter->blocked, memory_order_acquire) != 0;
}

#endif
