/* What the receiving programs have in common: an event queue with its thread,
 * the interval loop with statistics, and the end of a run. Used by main(). */
#ifndef EX_RECEIVER_H
#define EX_RECEIVER_H

#include "ex_print.h"

/* An event queue and the thread that serves it. */
struct ex_queue {
    lbm_event_queue_t *evq;
    unsigned long thread; /* pthread_t */
};
void ex_queue_start(struct ex_queue *queue, const char *warning_format);
void ex_queue_stop(struct ex_queue *queue);

/* What one pass of the interval loop prints and where its statistics come from: `rcv` or else `ctx`. */
struct ex_interval {
    lbm_context_t *ctx;
    lbm_rcv_t *rcv;
    bool sequential;           /* this loop runs the context */
    bool quiet;                /* no interval line */
    unsigned long stats_every; /* seconds; 0: never */
    bool long_form;            /* "source n/m:" lines instead of "stats n/m:" */
    int max_sources;
    const char *first_format, *burst_label;
};

/* Prints once per second until receive->done. */
void ex_run_intervals(const struct ex_interval *interval, struct ex_receive *receive);

/* Statistics of all sessions; returns an array to free() and its count, NULL when there is none. */
lbm_rcv_transport_stats_t *ex_all_stats(lbm_context_t *ctx, lbm_rcv_t *rcv, int max_sources, int *count);

#endif
