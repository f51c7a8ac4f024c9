/* lbmrcv: receives one topic and prints rates, messages or both. Messages come
 * on the context's thread, or on a queue thread with -q; main() prints rates. */
#include <lbm/lbm.h>
#include <stdio.h>
#include <stdlib.h>

#include "ex_options.h"
#include "ex_receiver.h"

static struct {
    int ascii, context_stats, exit_at_eos, failover, summary, order, queue, loss, verbose, verify, max_sources;
    unsigned long messages, statistics;
    long channel;
    struct ex_datagram datagram;
} opt = {.channel = -1, .max_sources = 10};

static const struct ex_option options[] = {
    {'A', "ascii", EX_COUNTER, &opt.ascii, NULL, "print payloads as text; twice: each on a line of its own"},
    {'c', "config", EX_CONFIG, NULL, "FILE", "load a configuration file; may be repeated"},
    {'C', "context-stats", EX_FLAG, &opt.context_stats, NULL, "statistics of the context, not of the receiver"},
    {'E', "exit", EX_FLAG, &opt.exit_at_eos, NULL, "exit at the end of a session"},
    {'f', "failover", EX_FLAG, &opt.failover, NULL, "hot-failover receiver"},
    {'h', "help", EX_HELP, NULL, NULL, "show this text"},
    {'O', "orderchecks", EX_FLAG, &opt.order, NULL, "check that sequence numbers follow each other"},
    {'q', "eventq", EX_FLAG, &opt.queue, NULL, "receive through an event queue"},
    {'r', "msgs", EX_UNSIGNED, &opt.messages, "NUM", "exit after NUM messages"},
    {'N', "channel", EX_CHANNEL, &opt.channel, "NUM", "receive this channel"},
    {'s', "stats", EX_UNSIGNED, &opt.statistics, "SEC", "print transport statistics every SEC seconds"},
    {'S', "summary", EX_FLAG, &opt.summary, NULL, "exit at the end of a session with a summary"},
    {'U', "losslev", EX_INT, &opt.loss, "PCT", "exit when PCT percent were lost"},
    {'v', "verbose", EX_COUNTER, &opt.verbose, NULL, "print messages; twice: with their bytes"},
    {'V', "verify", EX_FLAG, &opt.verify, NULL, "verify payloads"},
    {'G', "datagram", EX_DATAGRAM, &opt.datagram, "U|M|S+NUM", "largest datagram of LBT-RU, LBT-RM or the resolver"},
    {0, "max-sources", EX_INT, &opt.max_sources, "NUM", "room for the statistics of NUM sources (10)"},
    EX_MONITOR("monitor-ctx", "context", context),
    EX_MONITOR("monitor-rcv", "receiver", object),
    EX_COMMON_MONITOR,
    EX_END,
};

static const struct ex_program program = {"Receives messages of a single topic.", "topic", 1, options};

static bool is_sequential(lbm_context_attr_t *cattr)
{
    int mode = 0;
    size_t length = sizeof(mode);
    EX_TRY(lbm_context_attr_getopt, cattr, "operational_mode", &mode, &length);
    if (mode != LBM_CTX_ATTR_OP_SEQUENTIAL) {
        return false;
    }
    printf("LBM is in sequential mode.\n");
    if (opt.queue) {
        printf("Running an event queue on the same thread as the context can cause deadlock.\n");
        printf("Please use embedded mode or run this example again without an event queue.\n");
        exit(1);
    }
    return true;
}

/* What was created: a hot-failover receiver is deleted as one. */
struct receiver {
    lbm_rcv_t *rcv;
    lbm_hf_rcv_t *failover; /* NULL: `rcv` is a plain one */
};

static struct receiver create_receiver(lbm_context_t *ctx, lbm_topic_t *topic, struct ex_receive *receive,
                                       lbm_event_queue_t *evq)
{
    struct receiver made = {NULL, NULL};
    if (opt.failover) {
        printf("Using Hot Failover.\n");
        EX_TRY(lbm_hf_rcv_create, &made.failover, ctx, topic, ex_on_message, receive, evq);
        made.rcv = lbm_rcv_from_hf_rcv(made.failover);
    } else {
        EX_TRY(lbm_rcv_create, &made.rcv, ctx, topic, ex_on_message, receive, evq);
    }
    if (opt.channel >= 0) {
        printf("Listening for messages on channel %ld\n", opt.channel);
        EX_TRY(lbm_rcv_subscribe_channel, made.rcv, (lbm_uint32_t)opt.channel, NULL, NULL);
    }
    return made;
}

static void delete_receiver(const struct receiver *receiver)
{
    if (receiver->failover != NULL) {
        EX_TRY(lbm_hf_rcv_delete, receiver->failover);
    } else {
        EX_TRY(lbm_rcv_delete, receiver->rcv);
    }
}

int main(int argc, char **argv)
{
    int first = ex_parse(argc, argv, &program);
    lbm_context_attr_t *cattr;
    lbm_context_t *ctx;
    lbm_topic_t *topic;
    struct ex_queue queue = {NULL, 0};
    static struct ex_receive receive = {.style = EX_STYLE_FULL, .burst_word = "LOSS BURST", .done_text = ""};
    receive.verbose = opt.verbose;
    receive.ascii = opt.ascii;
    receive.verify = opt.verify;
    receive.order_checks = opt.order;
    receive.stop_at_eos = opt.exit_at_eos || opt.summary;
    receive.stop_after = opt.messages;
    receive.loss_percent = opt.loss;
    if (opt.max_sources < 1) {
        ex_usage(argv[0], &program, 1);
    }
    EX_TRY(lbm_context_attr_create, &cattr);
    bool sequential = is_sequential(cattr);
    ex_apply_receiver_datagram(&opt.datagram, cattr);
    EX_TRY(lbm_context_create, &ctx, cattr, NULL, NULL);
    EX_TRY(lbm_context_attr_delete, cattr);
    if (opt.queue) {
        ex_queue_start(&queue, "event queue threshold exceeded - event %x, sz %lu, delay %lu\n");
    }
    EX_TRY(lbm_context_rcv_immediate_msgs, ctx, ex_on_immediate, &receive, queue.evq);
    ex_print_immediate_target(ctx);
    EX_TRY(lbm_rcv_topic_lookup, &topic, ctx, argv[first], NULL);
    if (opt.queue) {
        printf("Using an LBM event queue.\n");
    }
    const struct receiver receiver = create_receiver(ctx, topic, &receive, queue.evq);
    ex_monitor_context(ctx);
    ex_monitor_receiver(receiver.rcv);
    fflush(stdout);
    ex_run_intervals(&(struct ex_interval){.ctx = ctx,
                                           .rcv = opt.context_stats ? NULL : receiver.rcv,
                                           .sequential = sequential,
                                           .quiet = opt.ascii && opt.statistics == 0,
                                           .stats_every = opt.statistics,
                                           .long_form = true,
                                           .max_sources = opt.max_sources,
                                           .first_format = "%-6.4g secs.  ",
                                           .burst_label = "loss bursts"},
                     &receive);
    if (opt.summary || opt.messages > 0) {
        ex_print_summary(receive.last - receive.first, receive.total_messages, receive.total_bytes);
    }
    ex_sleep_ms(5000);
    ex_monitor_stop();
    delete_receiver(&receiver);
    if (opt.queue) {
        ex_queue_stop(&queue);
    }
    EX_TRY(lbm_context_delete, ctx);
    return 0;
}
