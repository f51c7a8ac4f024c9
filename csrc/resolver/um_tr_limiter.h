/* One of the five rate limiters of topic resolution: a bit budget per interval
 * without carry-over, and a record count per second. Pure arithmetic; called by
 * the engine, one thread. */
#ifndef UM_RESOLVER_TR_LIMITER_H
#define UM_RESOLVER_TR_LIMITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct um_tr_rate {
    uint64_t bits_per_second;    /* 0: not limited */
    uint64_t records_per_second; /* 0: not limited */
};

struct um_tr_limiter {
    struct um_tr_rate rate;
    uint64_t interval_ns;
    uint64_t bits_used; /* in this interval */
    uint64_t second_start_ns;
    uint64_t records_used; /* in this second */
};

void um_tr_limiter_init(struct um_tr_limiter *limiter, const struct um_tr_rate *rate, uint64_t interval_ns,
                        uint64_t now_ns);
void um_tr_limiter_interval(struct um_tr_limiter *limiter, uint64_t now_ns); /* a new interval begins */
bool um_tr_limiter_allows(const struct um_tr_limiter *limiter);              /* asked before each record */
void um_tr_limiter_record(struct um_tr_limiter *limiter, size_t bytes);
void um_tr_limiter_overhead(struct um_tr_limiter *limiter, size_t bytes); /* header and trailer, once per datagram */

#endif
