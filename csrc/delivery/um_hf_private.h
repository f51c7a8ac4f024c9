/* How the files of the hot failover engine share it: um_hf.c (what is due, what
 * waits, what is lost) and um_hf_source.c (sources, resets). Its owner's thread. */
#ifndef UM_DELIVERY_HF_PRIVATE_H
#define UM_DELIVERY_HF_PRIVATE_H

#include "delivery/um_hf.h"

/* Numbers wrap at their width. */
static inline int64_t um_hf_diff(const struct um_hf *hf, uint64_t a, uint64_t b)
{
    return um_hf_number_diff(a, b, hf->wide);
}

static inline uint64_t um_hf_cut(const struct um_hf *hf, uint64_t number)
{
    return hf->wide ? number : (uint32_t)number;
}

static inline uint64_t um_hf_next(const struct um_hf *hf, uint64_t number)
{
    return um_hf_cut(hf, number + 1);
}

/* Beyond everything that was delivered or waits. */
static inline uint64_t um_hf_end(const struct um_hf *hf)
{
    return hf->entries.count == 0 ? hf->due : um_hf_next(hf, um_hf_entries_last(&hf->entries)->number);
}

void um_hf_discard(struct um_hf *hf, enum um_hf_discard why, uint64_t number, uint64_t now_ns);
void um_hf_take(struct um_hf *hf, const struct um_hf_message *m, uint64_t now_ns); /* it is due */
/* A message of the present count. */
void um_hf_merge(struct um_hf *hf, const struct um_hf_message *m, const struct um_hf_neighbours *by, uint64_t now_ns);
void um_hf_link(struct um_hf *hf, uint64_t lower, uint64_t number);
void um_hf_clear(struct um_hf *hf, uint64_t now_ns);
void um_hf_advance(struct um_hf *hf);                 /* what is due */
void um_hf_settle(struct um_hf *hf, uint64_t now_ns); /* after something has changed: what is due, bounds, timer */

/* um_hf_source.c */
uint64_t um_hf_doubts_due(const struct um_hf *hf); /* UM_NEVER: there are none */
/* Who calls these settles afterwards: they are part of that. */
void um_hf_end_doubts_due(struct um_hf *hf, uint64_t now_ns);
void um_hf_end_oldest_doubts(struct um_hf *hf, uint64_t now_ns);

#endif
