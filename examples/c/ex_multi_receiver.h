/* What lbmmrcv and lbmmrcvq have in common: many numbered topics received in several
 * contexts, which are made, read and deleted by main(). */
#ifndef EX_MULTI_RECEIVER_H
#define EX_MULTI_RECEIVER_H

#include "ex_receiver.h"

/* Filled in from the command line; receivers[i] is in contexts[i % context_count]. */
struct ex_receivers {
    lbm_context_t **contexts;
    int context_count;
    unsigned long initial, count;
    const char *root;              /* topics are root.N */
    lbm_event_queue_t *const *evq; /* of each context; NULL: none */
    int statistics;                /* print those of transports with each rate line */
    lbm_rcv_t **receivers;
};

void ex_receivers_create_contexts(struct ex_receivers *all, unsigned long socket_buffer_mb);
void ex_receivers_create(struct ex_receivers *all, struct ex_receive *receive);
/* Prints once per second until receive->done, or `end_flag` (NULL: none) is there. */
void ex_receivers_run(const struct ex_receivers *all, struct ex_receive *receive, const char *end_flag);
void ex_receivers_linger(int seconds, const char *format); /* format: with the seconds; 0: not at all */
void ex_receivers_delete(struct ex_receivers *all);        /* the contexts, too */

#endif
