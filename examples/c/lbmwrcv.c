/* lbmwrcv: receives all topics whose names match a pattern. Messages come on
 * the context's thread, or on a queue thread with -q; main() prints rates. */
#include <lbm/lbm.h>
#include <stdio.h>

#include "ex_options.h"
#include "ex_wildcard.h"

static struct {
    int exit_at_eos, queue, statistics, verbose;
    unsigned long messages;
    long channel;
} opt = {.channel = -1};

static const struct ex_option options[] = {
    {'c', "config", EX_CONFIG, NULL, "FILE", "load a configuration file; may be repeated"},
    {'D', "deregister", EX_LATER, "persistence", NULL, "deregister from the stores after 1000 messages"},
    {'E', "exit", EX_FLAG, &opt.exit_at_eos, NULL, "exit at the end of a session"},
    {'h', "help", EX_HELP, NULL, NULL, "show this text"},
    {'q', NULL, EX_FLAG, &opt.queue, NULL, "receive through an event queue"},
    {'r', NULL, EX_UNSIGNED, &opt.messages, "NUM", "delete the receiver after NUM messages"},
    {'N', "channel", EX_CHANNEL, &opt.channel, "NUM", "receive this channel"},
    {'s', "statistics", EX_FLAG, &opt.statistics, NULL, "print transport statistics with each rate line"},
    {'v', "verbose", EX_COUNTER, &opt.verbose, NULL, "print messages; twice: with their bytes"},
    EX_MONITOR("monitor-ctx", "context", context),
    EX_COMMON_MONITOR,
    EX_END,
};

static const struct ex_program program = {"Receives messages of all topics that match a pattern.", "pattern", 1,
                                          options};

int main(int argc, char **argv)
{
    int first = ex_parse(argc, argv, &program);
    struct ex_queue queue = {NULL, 0};
    static struct ex_receive receive = {.style = EX_STYLE_WILDCARD, .burst_word = "LOST BURST", .announce_topics = 1};
    receive.verbose = opt.verbose;
    receive.stop_at_eos = opt.exit_at_eos;
    receive.stop_after = opt.messages;
    if (opt.queue) {
        printf("Using Event Queue\n");
        ex_queue_start(&queue, "event queue threshold exceeded - event %x, sz %lu, delay %lu\n");
    }
    ex_run_wildcard(&(struct ex_wildcard){argv[first], queue.evq, opt.statistics, "loss bursts", opt.channel},
                    &receive);
    if (opt.queue) {
        ex_queue_stop(&queue);
    }
    return 0;
}
