/* Loops shared by the receiving example programs. The interval loop runs in
 * main(); the queue thread only dispatches. */
#include "ex_receiver.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "ex_options.h"

static int ex_on_queue_warning(lbm_event_queue_t *evq, int event, size_t size, lbm_ulong_t delay, void *clientd)
{
    printf(clientd, event, (unsigned long)size, delay);
    fflush(stdout);
    return 0;
}

static void *ex_dispatch(void *arg)
{
    const struct ex_queue *queue = arg;
    if (lbm_event_dispatch(queue->evq, LBM_EVENT_QUEUE_BLOCK) == LBM_FAILURE) {
        ex_fail("lbm_event_dispatch");
    }
    return NULL;
}

void ex_queue_start(struct ex_queue *queue, const char *warning_format)
{
    pthread_t thread;
    EX_TRY(lbm_event_queue_create, &queue->evq, ex_on_queue_warning, (void *)warning_format, NULL);
    ex_monitor_queue(queue->evq);
    int error = pthread_create(&thread, NULL, ex_dispatch, queue);
    if (error != 0) {
        fprintf(stderr, "pthread_create: error %d\n", error);
        exit(1);
    }
    queue->thread = (unsigned long)thread;
}

void ex_queue_stop(struct ex_queue *queue)
{
    ex_monitor_stop();
    EX_TRY(lbm_event_dispatch_unblock, queue->evq);
    pthread_join((pthread_t)queue->thread, NULL);
    EX_TRY(lbm_event_queue_delete, queue->evq);
}

static int ex_retrieve(lbm_context_t *ctx, lbm_rcv_t *rcv, int *count, lbm_rcv_transport_stats_t *stats)
{
    if (rcv != NULL) {
        return lbm_rcv_retrieve_all_transport_stats(rcv, count, stats);
    }
    return lbm_context_retrieve_rcv_transport_stats(ctx, count, stats);
}

lbm_rcv_transport_stats_t *ex_all_stats(lbm_context_t *ctx, lbm_rcv_t *rcv, int max_sources, int *count)
{
    int capacity = max_sources;
    for (int attempt = 0; attempt < 4; attempt++) {
        lbm_rcv_transport_stats_t *stats = calloc((size_t)capacity, sizeof(*stats));
        if (stats == NULL) {
            return NULL;
        }
        *count = capacity;
        if (ex_retrieve(ctx, rcv, count, stats) != LBM_FAILURE) {
            return stats;
        }
        free(stats);
        if (*count <= capacity) {
            ex_fail(rcv ? "lbm_rcv_retrieve_all_transport_stats" : "lbm_context_retrieve_rcv_transport_stats");
        }
        capacity = *count; /* more sources than expected: the call has told how many */
    }
    return NULL;
}

static unsigned long ex_print_statistics(const struct ex_interval *interval, bool print)
{
    int count = 0;
    unsigned long lost = 0;
    lbm_rcv_transport_stats_t *stats = ex_all_stats(interval->ctx, interval->rcv, interval->max_sources, &count);
    for (int i = 0; stats != NULL && i < count; i++) {
        lost += ex_lost_packets(&stats[i]);
        if (print) {
            printf(interval->long_form ? "source %u/%u:" : "stats %u/%u:", (unsigned)i + 1, (unsigned)count);
            if (interval->long_form) {
                ex_print_receiver_stats_long(&stats[i]);
            } else {
                ex_print_receiver_stats_short(&stats[i]);
            }
        }
    }
    free(stats);
    return lost;
}

static void ex_wait_second(const struct ex_interval *interval, const struct ex_receive *receive)
{
    if (!interval->sequential) {
        ex_sleep_until(1.0, &receive->done);
        return;
    }
    for (double end = ex_now() + 1.0; ex_now() < end && !receive->done;) {
        EX_TRY(lbm_context_process_events, interval->ctx, 50);
    }
}

void ex_run_intervals(const struct ex_interval *interval, struct ex_receive *receive)
{
    double last = ex_now();
    unsigned long known_lost = 0, passes = 0;
    while (!receive->done) {
        ex_wait_second(interval, receive);
        double now = ex_now();
        passes++;
        bool due = interval->stats_every > 0 && passes % interval->stats_every == 0;
        unsigned long lost = ex_print_statistics(interval, due);
        if (!interval->quiet) {
            ex_print_interval(receive, now - last, interval->first_format, interval->burst_label, lost - known_lost);
        }
        known_lost = lost;
        last = now;
        fflush(stdout);
    }
}
