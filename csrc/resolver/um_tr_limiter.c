/* Rate limiter of topic resolution. See um_tr_limiter.h. */
#include "resolver/um_tr_limiter.h"

#include "base/um_timer.h"

void um_tr_limiter_init(struct um_tr_limiter *limiter, const struct um_tr_rate *rate, uint64_t interval_ns,
                        uint64_t now_ns)
{
    *limiter = (struct um_tr_limiter){.rate = *rate, .interval_ns = interval_ns, .second_start_ns = now_ns};
}

void um_tr_limiter_interval(struct um_tr_limiter *limiter, uint64_t now_ns)
{
    limiter->bits_used = 0;
    uint64_t elapsed = now_ns - limiter->second_start_ns;
    if (elapsed >= UM_NS_PER_SEC) {
        limiter->second_start_ns += elapsed / UM_NS_PER_SEC * UM_NS_PER_SEC;
        limiter->records_used = 0;
    }
}

bool um_tr_limiter_allows(const struct um_tr_limiter *limiter)
{
    if (limiter->rate.records_per_second != 0 && limiter->records_used >= limiter->rate.records_per_second) {
        return false;
    }
    if (limiter->rate.bits_per_second == 0) {
        return true;
    }
    double budget = (double)limiter->rate.bits_per_second * (double)limiter->interval_ns / (double)UM_NS_PER_SEC;
    return (double)limiter->bits_used < budget;
}

void um_tr_limiter_record(struct um_tr_limiter *limiter, size_t bytes)
{
    limiter->bits_used += bytes * 8;
    limiter->records_used++;
}

void um_tr_limiter_overhead(struct um_tr_limiter *limiter, size_t bytes)
{
    limiter->bits_used += bytes * 8;
}
