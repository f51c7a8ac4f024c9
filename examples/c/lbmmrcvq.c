/* lbmmrcvq: lbmmrcv with every message delivered through an event queue. Each context
 * has a queue with a thread of its own; main() prints the rates. */
#include <lbm/lbm.h>
#include <signal.h>
#include <stdio.h>

#include "ex_multi_receiver.h"
#include "ex_options.h"

#define MAX_CONTEXTS 4
#define MAX_RECEIVERS 100000

static struct {
    int contexts, linger, statistics, verbose;
    unsigned long bufsize, initial, receivers;
    const char *root;
} opt = {.contexts = 1, .linger = 10, .bufsize = 8, .receivers = 100, .root = "29west.example.multi"};

static const struct ex_option options[] = {
    {'B', "bufsize", EX_UNSIGNED, &opt.bufsize, "MB", "receive socket buffer (8)"},
    {'c', "config", EX_CONFIG, NULL, "FILE", "load a configuration file; may be repeated"},
    {'C', "contexts", EX_INT, &opt.contexts, "NUM", "contexts to spread the receivers over (1, at most 4)"},
    {'h', "help", EX_HELP, NULL, NULL, "show this text"},
    {'i', "initial-topic", EX_UNSIGNED, &opt.initial, "NUM", "number of the first topic (0)"},
    {'L', "linger", EX_INT, &opt.linger, "SEC", "wait before deleting the receivers (10)"},
    {'r', "root", EX_TEXT, &opt.root, "TEXT", "topics are TEXT.N (29west.example.multi)"},
    {'R', "receivers", EX_UNSIGNED, &opt.receivers, "NUM", "topics to receive (100)"},
    {'s', "statistics", EX_FLAG, &opt.statistics, NULL, "print transport statistics with each rate line"},
    {'v', "verbose", EX_COUNTER, &opt.verbose, NULL, "print messages; twice: with their bytes"},
    EX_MONITOR("monitor-ctx", "context", context),
    EX_MONITOR("monitor-rcv", "receivers", object),
    EX_MONITOR("monitor-evq", "event queue", queue),
    EX_COMMON_MONITOR,
    EX_END,
};

static const struct ex_program program = {"Receives messages of many topics through event queues.", "", 0, options};

static struct ex_receive receive = {.style = EX_STYLE_SHORT, .burst_word = "LOST BURST"};

static void on_signal(int number)
{
    receive.done = 1;
}

int main(int argc, char **argv)
{
    ex_parse(argc, argv, &program);
    lbm_context_t *contexts[MAX_CONTEXTS];
    lbm_event_queue_t *evq[MAX_CONTEXTS];
    struct ex_queue queues[MAX_CONTEXTS];
    if (opt.contexts < 1 || opt.contexts > MAX_CONTEXTS || opt.receivers < 1 || opt.receivers > MAX_RECEIVERS) {
        ex_usage(argv[0], &program, 1);
    }
    receive.verbose = opt.verbose;
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    for (int i = 0; i < opt.contexts; i++) {
        ex_queue_start(&queues[i], "event queue threshold exceeded - event 0x%x, sz %lu, delay %lu\n");
        evq[i] = queues[i].evq;
    }
    struct ex_receivers all = {.contexts = contexts,
                               .context_count = opt.contexts,
                               .initial = opt.initial,
                               .count = opt.receivers,
                               .root = opt.root,
                               .evq = evq,
                               .statistics = opt.statistics};
    ex_receivers_create_contexts(&all, opt.bufsize);
    ex_receivers_create(&all, &receive);
    ex_receivers_run(&all, &receive, NULL);
    ex_receivers_linger(opt.linger, "Lingering for %d seconds...\n");
    ex_receivers_delete(&all);
    for (int i = 0; i < opt.contexts; i++) {
        ex_queue_stop(&queues[i]);
    }
    printf("Quitting....\n");
    return 0;
}
