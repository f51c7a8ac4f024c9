/* lbmrcvq: lbmrcv with every message delivered through an event queue. The
 * queue has a thread of its own; main() prints the rates. */
#include <lbm/lbm.h>
#include <stdio.h>

#include "ex_options.h"
#include "ex_receiver.h"

static struct {
    int context_stats, exit_at_eos, summary, verbose, verify, max_sources;
    unsigned long messages, statistics;
} opt = {.max_sources = 10};

static const struct ex_option options[] = {
    {'c', "config", EX_CONFIG, NULL, "FILE", "load a configuration file; may be repeated"},
    {'C', "context-stats", EX_FLAG, &opt.context_stats, NULL, "statistics of the context, not of the receiver"},
    {'E', "exit", EX_FLAG, &opt.exit_at_eos, NULL, "exit at the end of a session"},
    {'h', "help", EX_HELP, NULL, NULL, "show this text"},
    {'S', "stop", EX_FLAG, &opt.summary, NULL, "exit at the end of a session with a summary"},
    {'s', NULL, EX_UNSIGNED, &opt.statistics, "SEC", "print transport statistics every SEC seconds"},
    {'r', NULL, EX_UNSIGNED, &opt.messages, "NUM", "delete the receiver after NUM messages"},
    {'v', "verbose", EX_COUNTER, &opt.verbose, NULL, "print messages; twice: with their bytes"},
    {'V', "verify", EX_FLAG, &opt.verify, NULL, "verify payloads"},
    {0, "max-sources", EX_INT, &opt.max_sources, "NUM", "room for the statistics of NUM sources (10)"},
    EX_MONITOR("monitor-ctx", "context", context),
    EX_MONITOR("monitor-rcv", "receiver", object),
    EX_MONITOR("monitor-evq", "event queue", queue),
    EX_COMMON_MONITOR,
    EX_END,
};

static const struct ex_program program = {"Receives messages of a single topic through an event queue.", "topic", 1,
                                          options};

int main(int argc, char **argv)
{
    int first = ex_parse(argc, argv, &program);
    lbm_context_t *ctx;
    lbm_topic_t *topic;
    lbm_rcv_t *rcv;
    struct ex_queue queue;
    static struct ex_receive receive = {.style = EX_STYLE_SHORT, .burst_word = "LOST BURST"};
    receive.verbose = opt.verbose;
    receive.verify = opt.verify;
    receive.stop_at_eos = opt.exit_at_eos || opt.summary;
    receive.stop_after = opt.messages;
    if (opt.max_sources < 1) {
        ex_usage(argv[0], &program, 1);
    }
    ex_queue_start(&queue, "event queue threshold exceeded - event %x, sz %lu, delay %lu\n");
    EX_TRY(lbm_context_create, &ctx, NULL, NULL, NULL);
    EX_TRY(lbm_context_rcv_immediate_msgs, ctx, ex_on_immediate, &receive, queue.evq);
    ex_print_immediate_target(ctx);
    EX_TRY(lbm_rcv_topic_lookup, &topic, ctx, argv[first], NULL);
    EX_TRY(lbm_rcv_create, &rcv, ctx, topic, ex_on_message, &receive, queue.evq);
    ex_monitor_context(ctx);
    ex_monitor_receiver(rcv);
    ex_run_intervals(&(struct ex_interval){.ctx = ctx,
                                           .rcv = opt.context_stats ? NULL : rcv,
                                           .stats_every = opt.statistics,
                                           .long_form = true,
                                           .max_sources = opt.max_sources,
                                           .first_format = "%-6.4g secs.  ",
                                           .burst_label = "loss bursts"},
                     &receive);
    printf("Quitting....\n");
    if (opt.summary) {
        ex_print_summary(receive.last - receive.first, receive.total_messages, receive.total_bytes);
    }
    ex_monitor_stop();
    EX_TRY(lbm_rcv_delete, rcv);
    EX_TRY(lbm_context_delete, ctx); /* the queue is that of its immediate messages, too */
    ex_queue_stop(&queue);
    return 0;
}
