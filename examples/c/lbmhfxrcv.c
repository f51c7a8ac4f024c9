/* lbmhfxrcv: receives each message of a topic once, whichever of several contexts
 * brings it first: one context for each interface given. Messages come on the
 * threads of the contexts, one at a time, or on a queue thread with -q; main()
 * prints rates. */
#include <lbm/lbm.h>
#include <stdio.h>
#include <stdlib.h>

#include "ex_options.h"
#include "ex_receiver.h"

static struct {
    int arrival, ascii, context_stats, copies, exit_at_eos, summary, order, queue, loss, verbose, verify, max_sources;
    unsigned long messages, statistics;
    struct ex_list interfaces;
} opt = {.max_sources = 10};

static const struct ex_option options[] = {
    {'A', "ascii", EX_COUNTER, &opt.ascii, NULL, "print payloads as text; twice: each on a line of its own"},
    {'a', "arrival-order", EX_FLAG, &opt.arrival, NULL, "deliver messages as they arrive"},
    {'c', "config", EX_CONFIG, NULL, "FILE", "load a configuration file; may be repeated"},
    {'C', "context-stats", EX_FLAG, &opt.context_stats, NULL, "statistics of the contexts, not of the receivers"},
    {'d', "deliver-dups", EX_FLAG, &opt.copies, NULL, "deliver duplicates, too"},
    {'E', "exit", EX_FLAG, &opt.exit_at_eos, NULL, "exit at the end of a session"},
    {'h', "help", EX_HELP, NULL, NULL, "show this text"},
    {'I', "iface", EX_LIST, &opt.interfaces, "CIDR", "a context on this interface; may be repeated"},
    {'O', "orderchecks", EX_FLAG, &opt.order, NULL, "check that sequence numbers follow each other"},
    {'q', "eventq", EX_FLAG, &opt.queue, NULL, "receive through an event queue"},
    {'r', "msgs", EX_UNSIGNED, &opt.messages, "NUM", "exit after NUM messages"},
    {'s', "stats", EX_UNSIGNED, &opt.statistics, "SEC", "print transport statistics every SEC seconds"},
    {'S', "summary", EX_FLAG, &opt.summary, NULL, "exit at the end of a session with a summary"},
    {'U', "losslev", EX_INT, &opt.loss, "PCT", "exit when PCT percent were lost"},
    {'v', "verbose", EX_COUNTER, &opt.verbose, NULL, "print messages; twice: with their bytes"},
    {'V', "verify", EX_FLAG, &opt.verify, NULL, "verify payloads"},
    {0, "max-sources", EX_INT, &opt.max_sources, "NUM", "room for the statistics of NUM sources (10)"},
    EX_MONITOR("monitor-ctx", "context", context),
    EX_MONITOR("monitor-rcv", "receiver", object),
    EX_COMMON_MONITOR,
    EX_END,
};

static const struct ex_program program = {"Receives each message of a topic once, over several contexts.", "topic", 1,
                                          options};

struct path {
    lbm_context_t *ctx;
    lbm_hfx_rcv_t *rcv;
};

static struct path paths[EX_LIST_MAX];
static int path_count;
static bool sequential;

static int on_immediate_loss(const char *source, lbm_uint_t number, void *clientd)
{
    printf("MIM Loss: [%s][%u]\n", source, number);
    fflush(stdout);
    return 0;
}

static void refuse_queue_in_sequential_mode(lbm_context_attr_t *attr)
{
    int mode = 0;
    size_t length = sizeof(mode);
    EX_TRY(lbm_context_attr_getopt, attr, "operational_mode", &mode, &length);
    sequential = mode == LBM_CTX_ATTR_OP_SEQUENTIAL;
    if (!sequential) {
        return;
    }
    printf("LBM is in sequential mode.\n");
    if (opt.queue) {
        printf("Running an event queue on the same thread as the context can cause deadlock.\n");
        printf("Please use embedded mode or run this example again without an event queue.\n");
        exit(1);
    }
}

/* `interface` NULL: the default one. */
static lbm_context_t *create_context(const char *interface)
{
    lbm_context_t *ctx;
    lbm_context_attr_t *attr;
    lbm_mim_unrecloss_func_t loss = {on_immediate_loss, NULL};
    EX_TRY(lbm_context_attr_create, &attr);
    EX_TRY(lbm_context_attr_setopt, attr, "mim_unrecoverable_loss_function", &loss, sizeof(loss));
    if (interface != NULL) {
        EX_TRY(lbm_context_attr_str_setopt, attr, "default_interface", interface);
    }
    refuse_queue_in_sequential_mode(attr);
    EX_TRY(lbm_context_create, &ctx, attr, NULL, NULL);
    EX_TRY(lbm_context_attr_delete, attr);
    return ctx;
}

static lbm_hfx_t *create_hfx(const char *topic, lbm_event_queue_t *evq)
{
    lbm_hfx_t *hfx;
    lbm_hfx_attr_t *attr;
    EX_TRY(lbm_hfx_attr_create, &attr);
    if (opt.arrival) {
        EX_TRY(lbm_hfx_attr_str_setopt, attr, "ordered_delivery", "-1");
    }
    if (opt.copies) {
        EX_TRY(lbm_hfx_attr_str_setopt, attr, "duplicate_delivery", "1");
    }
    EX_TRY(lbm_hfx_create, &hfx, attr, topic, ex_on_message, evq);
    EX_TRY(lbm_hfx_attr_delete, attr);
    return hfx;
}

static void create_paths(lbm_hfx_t *hfx, lbm_event_queue_t *evq, struct ex_receive *receive)
{
    path_count = opt.interfaces.count > 0 ? opt.interfaces.count : 1;
    for (int i = 0; i < path_count; i++) {
        struct path *path = &paths[i];
        path->ctx = create_context(opt.interfaces.count > 0 ? opt.interfaces.texts[i] : NULL);
        EX_TRY(lbm_context_rcv_immediate_msgs, path->ctx, ex_on_immediate, receive, evq);
        EX_TRY(lbm_hfx_rcv_create, &path->rcv, hfx, path->ctx, NULL, receive);
        ex_monitor_context(path->ctx);
        ex_monitor_receiver(lbm_rcv_from_hfx_rcv(path->rcv));
    }
}

/* Packets that transports found missing. */
static unsigned long read_statistics(bool print)
{
    unsigned long lost = 0;
    for (int p = 0; p < path_count; p++) {
        int count = 0;
        lbm_rcv_t *rcv = opt.context_stats ? NULL : lbm_rcv_from_hfx_rcv(paths[p].rcv);
        lbm_rcv_transport_stats_t *stats = ex_all_stats(paths[p].ctx, rcv, opt.max_sources, &count);
        for (int i = 0; stats != NULL && i < count; i++) {
            lost += ex_lost_packets(&stats[i]);
            if (print) {
                printf("source %u/%u:", (unsigned)i + 1, (unsigned)count);
                ex_print_receiver_stats_long(&stats[i]);
            }
        }
        free(stats);
    }
    return lost;
}

static void wait_second(const struct ex_receive *receive)
{
    if (!sequential) {
        ex_sleep_until(1.0, &receive->done);
        return;
    }
    for (double end = ex_now() + 1.0; ex_now() < end && !receive->done;) {
        for (int i = 0; i < path_count; i++) {
            EX_TRY(lbm_context_process_events, paths[i].ctx, 10);
        }
    }
}

static void run(struct ex_receive *receive)
{
    bool quiet = opt.ascii && opt.statistics == 0;
    double last = ex_now();
    unsigned long known_lost = 0;
    for (unsigned long passes = 1; !receive->done; passes++) {
        wait_second(receive);
        double now = ex_now();
        unsigned long lost = read_statistics(opt.statistics > 0 && passes % opt.statistics == 0);
        if (!quiet) {
            ex_print_interval(receive, now - last, "%-6.4g secs.  ", "loss bursts", lost - known_lost);
        }
        known_lost = lost;
        last = now;
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    int first = ex_parse(argc, argv, &program);
    struct ex_queue queue = {NULL, 0};
    static struct ex_receive receive = {
        .style = EX_STYLE_FAILOVER, .burst_word = "LOSS BURST", .verify_number = EX_VERIFY_0X, .done_text = ""};
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
    if (opt.queue) {
        ex_queue_start(&queue, "event queue threshold exceeded - event 0x%x, sz %lu, delay %lu\n");
        printf("Using an LBM event queue.\n");
    }
    lbm_hfx_t *hfx = create_hfx(argv[first], queue.evq);
    create_paths(hfx, queue.evq, &receive);
    fflush(stdout);
    run(&receive);
    if (opt.summary || opt.messages > 0) {
        ex_print_summary(receive.last - receive.first, receive.total_messages, receive.total_bytes);
    }
    ex_monitor_stop();
    for (int i = 0; i < path_count; i++) {
        EX_TRY(lbm_hfx_rcv_delete, paths[i].rcv);
    }
    EX_TRY(lbm_hfx_delete, hfx);
    if (opt.queue) {
        ex_queue_stop(&queue);
    }
    for (int i = 0; i < path_count; i++) {
        EX_TRY(lbm_context_delete, paths[i].ctx);
    }
    return 0;
}
