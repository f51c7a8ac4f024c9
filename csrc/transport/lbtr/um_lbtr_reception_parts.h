/* Between the files of the reception (um_lbtr_reception.h): private to them. */
#ifndef UM_TRANSPORT_LBTR_LBTR_RECEPTION_PARTS_H
#define UM_TRANSPORT_LBTR_LBTR_RECEPTION_PARTS_H

#include "transport/lbtr/um_lbtr_reception.h"

static inline void um_lbtr_rx_due(struct um_lbtr_reception *rx, uint64_t at_ns)
{
    if (at_ns < rx->due_ns) {
        rx->due_ns = at_ns;
    }
}

/* ---- um_lbtr_reception.c ---- */

/* [first, end) is missing. */
void um_lbtr_rx_add_gap(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t first, uint32_t end);
/* The trail in a session message or NCF. */
void um_lbtr_rx_hear_trail(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t trail);
/* [first, end) will not come. */
void um_lbtr_rx_report_lost(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t first, uint32_t end,
                            enum um_lbtr_loss why);
void um_lbtr_rx_give_up(struct um_lbtr_reception *rx, uint64_t now_ns, size_t index, enum um_lbtr_loss why);
/* Everything missing before `end`. */
void um_lbtr_rx_give_up_before(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t end, enum um_lbtr_loss why);
/* What is too old to be compared. */
void um_lbtr_rx_forget_old(struct um_lbtr_reception *rx);

/* ---- um_lbtr_doubts.c ---- */

/* A datagram proves that [first, end) was sent. */
void um_lbtr_rx_prove(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t first, uint32_t end);
/* A session message knows of less than was claimed: nothing from `end` on. */
void um_lbtr_rx_retract_claims(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t end);
/* A datagram at or beyond the expected one is about to be counted. */
void um_lbtr_rx_judge_lead(struct um_lbtr_reception *rx, uint32_t sqn);
/* Before anything else is made of a datagram or session message. */
void um_lbtr_rx_settle_lead(struct um_lbtr_reception *rx);
/* What lies before a far lead was repaired. */
void um_lbtr_rx_lead_answered(struct um_lbtr_reception *rx, uint64_t now_ns);
/* The stream is at `at`. */
void um_lbtr_rx_take_back(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t at);
/* Was it never received, although it is older than the newest? */
bool um_lbtr_rx_never_came(struct um_lbtr_reception *rx, uint32_t sqn, bool *before_origin);
/* Such an original has come. */
void um_lbtr_rx_came_behind(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t sqn, bool before_origin);
/* A session message knows of nothing from `end` on. */
void um_lbtr_rx_told_behind(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t end);

/* ---- um_lbtr_naks.c ---- */

/* Wait for one randomised interval, at least `least_ns`. */
void um_lbtr_rx_wait_for(struct um_lbtr_reception *rx, struct um_lbtr_gap *gap, uint64_t now_ns, uint64_t interval_ns,
                         uint64_t least_ns);
/* How late originals are these days; one that was; a repair. */
uint64_t um_lbtr_rx_lateness(struct um_lbtr_reception *rx, uint64_t now_ns);
void um_lbtr_rx_came_late(struct um_lbtr_reception *rx, uint64_t now_ns, uint64_t detected_ns);
void um_lbtr_rx_repair_took(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t sqn, const struct um_lbtr_gap *gap);

#endif
