/* Counters of a received session. See um_lbtr_reception.h. */
#include <string.h>

#include "transport/lbtr/um_lbtr_reception.h"

void um_lbtr_counters_reset(struct um_lbtr_receiver_counters *counters)
{
    memset(counters, 0, sizeof *counters);
    counters->stm_min = counters->tx_min = UINT64_MAX;
}

void um_lbtr_counters_drop(struct um_lbtr_receiver_counters *counters, enum um_lbtr_rc rc)
{
    uint64_t *const which[] = {[UM_LBTR_SIZE] = &counters->dropped_size,
                               [UM_LBTR_TYPE] = &counters->dropped_type,
                               [UM_LBTR_VERSION] = &counters->dropped_version,
                               [UM_LBTR_HEADER] = &counters->dropped_hdr,
                               [UM_LBTR_OTHER] = &counters->dropped_other};
    ++*which[rc];
}

void um_lbtr_counters_recovered(struct um_lbtr_receiver_counters *c, uint64_t ms, uint64_t naks)
{
    bool first = c->stm_min == UINT64_MAX;
    c->stm_min = ms < c->stm_min ? ms : c->stm_min;
    c->stm_max = ms > c->stm_max ? ms : c->stm_max;
    c->tx_min = naks < c->tx_min ? naks : c->tx_min;
    c->tx_max = naks > c->tx_max ? naks : c->tx_max;
    if (first) {
        c->stm_mean256 = ms * 256;
        c->tx_mean256 = naks * 256;
    } else {
        c->stm_mean256 = (uint64_t)((int64_t)c->stm_mean256 + ((int64_t)(ms * 256) - (int64_t)c->stm_mean256) / 8);
        c->tx_mean256 = (uint64_t)((int64_t)c->tx_mean256 + ((int64_t)(naks * 256) - (int64_t)c->tx_mean256) / 8);
    }
}
