/* Processor time that strangers' queries may take, whoever asks and however
 * often: accounts that fill with time, one for all and one for the addresses that
 * share a place. Arithmetic on the caller's clocks; the engine's thread. */
#ifndef UM_RESOLVER_TR_BUDGET_H
#define UM_RESOLVER_TR_BUDGET_H

#include <stdint.h>

#include "base/um_hash.h"
#include "base/um_timer.h"

#define UM_TR_BUDGET_NS_PER_SEC (200 * UM_NS_PER_MS) /* for all */
#define UM_TR_BUDGET_MOST_NS (50 * UM_NS_PER_MS)     /* saved up: by so much a query makes the loop late at most */
#define UM_TR_BUDGET_PLACES 16u                      /* each has half of that */

struct um_tr_account {
    uint64_t left_ns;
    uint64_t filled_ns; /* when */
};

struct um_tr_budget {
    struct um_tr_account all, places[UM_TR_BUDGET_PLACES];
};

static inline void um_tr_account_fill(struct um_tr_account *account, uint64_t now_ns, uint64_t ns_per_sec,
                                      uint64_t most_ns)
{
    uint64_t parts = UM_NS_PER_SEC / ns_per_sec; /* both divide a second */
    uint64_t gained_ns = (now_ns - account->filled_ns) / parts;
    uint64_t sum_ns = account->left_ns + gained_ns;
    account->filled_ns += gained_ns * parts; /* what the division left over counts the next time */
    account->left_ns = sum_ns < most_ns ? sum_ns : most_ns;
}

static inline struct um_tr_account *um_tr_budget_place(struct um_tr_budget *budget, uint32_t ip)
{
    return &budget->places[um_hash_u32(ip) % UM_TR_BUDGET_PLACES];
}

/* What may be spent now for somebody at this address. */
static inline uint64_t um_tr_budget_left(struct um_tr_budget *budget, uint32_t ip, uint64_t now_ns)
{
    struct um_tr_account *place = um_tr_budget_place(budget, ip);
    um_tr_account_fill(&budget->all, now_ns, UM_TR_BUDGET_NS_PER_SEC, UM_TR_BUDGET_MOST_NS);
    um_tr_account_fill(place, now_ns, UM_TR_BUDGET_NS_PER_SEC / 2, UM_TR_BUDGET_MOST_NS / 2);
    return place->left_ns < budget->all.left_ns ? place->left_ns : budget->all.left_ns;
}

static inline void um_tr_budget_spend(struct um_tr_budget *budget, uint32_t ip, uint64_t ns)
{
    struct um_tr_account *place = um_tr_budget_place(budget, ip);
    place->left_ns -= ns < place->left_ns ? ns : place->left_ns;
    budget->all.left_ns -= ns < budget->all.left_ns ? ns : budget->all.left_ns;
}

#endif
