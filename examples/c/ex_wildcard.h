/* The part that lbmwrcv and lbmwrcvq share: a wildcard receiver with the pattern
 * type of the configuration, run until it is told to stop. Called by main(). */
#ifndef EX_WILDCARD_H
#define EX_WILDCARD_H

#include "ex_receiver.h"

struct ex_wildcard {
    const char *pattern;
    lbm_event_queue_t *evq; /* NULL: deliver on the context thread */
    int statistics;
    const char *burst_label;
    long channel; /* to subscribe to; -1: none */
};

/* Creates context and receiver, prints rates until done, deletes both, prints the total. */
void ex_run_wildcard(const struct ex_wildcard *wildcard, struct ex_receive *receive);

#endif
