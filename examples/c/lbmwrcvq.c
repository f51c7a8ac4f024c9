/* lbmwrcvq: lbmwrcv with every message delivered through an event queue. The
 * queue has a thread of its own; main() prints the rates. */
#include <lbm/lbm.h>
#include <stdio.h>

#include "ex_options.h"
#include "ex_wildcard.h"

static struct {
    int exit_at_eos, statistics, verbose;
    unsigned long messages;
} opt;

static const struct ex_option options[] = {
    {'c', "config", EX_CONFIG, NULL, "FILE", "load a configuration file; may be repeated"},
    {'E', "exit", EX_FLAG, &opt.exit_at_eos, NULL, "exit at the end of a session"},
    {'h', "help", EX_HELP, NULL, NULL, "show this text"},
    {'r', NULL, EX_UNSIGNED, &opt.messages, "NUM", "delete the receiver after NUM messages"},
    {'s', "statistics", EX_FLAG, &opt.statistics, NULL, "print transport statistics with each rate line"},
    {'v', "verbose", EX_COUNTER, &opt.verbose, NULL, "print messages; twice: with their bytes"},
    EX_MONITOR("monitor-ctx", "context", context),
    EX_MONITOR("monitor-evq", "event queue", queue),
    EX_COMMON_MONITOR,
    EX_END,
};

static const struct ex_program program = {
    "Receives messages of all topics that match a pattern, through an event queue.", "pattern", 1, options};

int main(int argc, char **argv)
{
    int first = ex_parse(argc, argv, &program);
    struct ex_queue queue;
    static struct ex_receive receive = {.style = EX_STYLE_SHORT, .burst_word = "LOST BURST", .announce_topics = 1};
    receive.verbose = opt.verbose;
    receive.stop_at_eos = opt.exit_at_eos;
    receive.stop_after = opt.messages;
    ex_queue_start(&queue, "event queue threshold exceeded - event 0x%x, sz %lu, delay %lu\n");
    ex_run_wildcard(&(struct ex_wildcard){argv[first], queue.evq, opt.statistics, "bursts", -1}, &receive);
    ex_queue_stop(&queue);
    return 0;
}
