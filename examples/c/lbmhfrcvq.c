/* lbmhfrcvq: lbmhfrcv with every message delivered through an event queue. The
 * queue has a thread of its own; main() prints the rates. */
#include <lbm/lbm.h>
#include <stdio.h>

#include "ex_failover.h"
#include "ex_options.h"

static struct {
    int exit_at_eos, statistics, summary, verbose, verify;
    unsigned long messages;
} opt;

static const struct ex_option options[] = {
    {'c', NULL, EX_CONFIG, NULL, "FILE", "load a configuration file; may be repeated"},
    {'E', NULL, EX_FLAG, &opt.exit_at_eos, NULL, "exit at the end of a session"},
    {'h', NULL, EX_HELP, NULL, NULL, "show this text"},
    {'r', NULL, EX_UNSIGNED, &opt.messages, "NUM", "exit after NUM messages with a summary"},
    {'s', NULL, EX_FLAG, &opt.statistics, NULL, "print transport statistics with each rate line"},
    {'S', NULL, EX_FLAG, &opt.summary, NULL, "exit at the end of a session with a summary"},
    {'v', NULL, EX_COUNTER, &opt.verbose, NULL, "print messages; twice: with their bytes"},
    {'V', NULL, EX_FLAG, &opt.verify, NULL, "verify payloads"},
    EX_END,
};

static const struct ex_program program = {"Receives each message of a topic once, through an event queue.", "topic", 1,
                                          options};

int main(int argc, char **argv)
{
    int first = ex_parse(argc, argv, &program);
    struct ex_queue queue;
    static struct ex_receive receive = {
        .style = EX_STYLE_FAILOVER, .burst_word = "LOST BURST", .verify_number = EX_VERIFY_0X, .done_text = ""};
    receive.verbose = opt.verbose;
    receive.verify = opt.verify;
    receive.stop_at_eos = opt.exit_at_eos || opt.summary;
    receive.stop_after = opt.messages;
    ex_queue_start(&queue, "event queue threshold exceeded - event 0x%x, sz %lu, delay %lu\n");
    ex_run_failover(&(struct ex_failover){argv[first], queue.evq, opt.statistics, opt.summary || opt.messages > 0},
                    &receive);
    ex_queue_stop(&queue);
    return 0;
}
