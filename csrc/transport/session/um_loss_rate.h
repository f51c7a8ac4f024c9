/* Deliberate loss for tests: percent of packets to be thrown away, by transport and side, for the whole process. Set by
 * lbm_set_*_loss_rate() and, at the first use, from the environment. Any thread. */
#ifndef UM_TRANSPORT_SESSION_LOSS_RATE_H
#define UM_TRANSPORT_SESSION_LOSS_RATE_H

#include <stdatomic.h>
#include <stdbool.h>

enum um_loss_kind {
    UM_LOSS_LBTRM_RCV,
    UM_LOSS_LBTRM_SRC,
    UM_LOSS_LBTRU_RCV,
    UM_LOSS_LBTRU_SRC,
    UM_LOSS_UIM,
    UM_LOSS_KINDS
};

/* Percent; what is below 0 counts as 0, above 100 as 100. */
void um_loss_rate_set(enum um_loss_kind kind, int percent);
/* Read the environment variables, unless that was done. Before the first um_loss_drop(): a context does it. */
void um_loss_rate_init(void);

extern atomic_int um_loss_rates[UM_LOSS_KINDS];
bool um_loss_drawn(int percent);

/* Is this packet to be thrown away? One load while nothing is to be lost. */
static inline bool um_loss_drop(enum um_loss_kind kind)
{
    int percent = atomic_load_explicit(&um_loss_rates[kind], memory_order_relaxed);
    return __builtin_expect(percent != 0, 0) && um_loss_drawn(percent);
}

#endif
