/* What lbmhfrcv and lbmhfrcvq have in common: a hot-failover receiver of one topic,
 * run until it is told to stop. Called by main(). */
#ifndef EX_FAILOVER_H
#define EX_FAILOVER_H

#include "ex_receiver.h"

struct ex_failover {
    const char *topic;
    lbm_event_queue_t *evq; /* NULL: deliver on the context thread */
    int statistics;         /* print those of transports with each rate line */
    int summary;            /* print one at the end */
};

/* Creates context and receiver, prints rates until done, deletes both. */
void ex_run_failover(const struct ex_failover *failover, struct ex_receive *receive);

#endif
