/* lbmhfrcv: receives a topic from several hot-failover sources, each number once.
 * Messages come on the context's thread; main() prints rates. */
#include <lbm/lbm.h>
#include <stdio.h>

#include "ex_failover.h"
#include "ex_options.h"

static struct {
    int ascii, exit_at_eos, statistics, summary, verbose, verify;
    unsigned long messages, pause;
} opt;

static const struct ex_option options[] = {
    {'A', NULL, EX_COUNTER, &opt.ascii, NULL, "print payloads as text; twice: each on a line of its own"},
    {'c', NULL, EX_CONFIG, NULL, "FILE", "load a configuration file; may be repeated"},
    {'d', NULL, EX_UNSIGNED, &opt.pause, "MS", "sleep after each message"},
    {'E', NULL, EX_FLAG, &opt.exit_at_eos, NULL, "exit at the end of a session"},
    {'h', NULL, EX_HELP, NULL, NULL, "show this text"},
    {'r', NULL, EX_UNSIGNED, &opt.messages, "NUM", "exit after NUM messages with a summary"},
    {'s', NULL, EX_FLAG, &opt.statistics, NULL, "print transport statistics with each rate line"},
    {'S', NULL, EX_FLAG, &opt.summary, NULL, "exit at the end of a session with a summary"},
    {'v', NULL, EX_COUNTER, &opt.verbose, NULL, "print messages; twice: with their bytes"},
    {'V', NULL, EX_FLAG, &opt.verify, NULL, "verify payloads"},
    EX_END,
};

static const struct ex_program program = {"Receives each message of a topic once, from any number of sources.", "topic",
                                          1, options};

int main(int argc, char **argv)
{
    int first = ex_parse(argc, argv, &program);
    static struct ex_receive receive = {
        .style = EX_STYLE_WILDCARD, .burst_word = "LOST BURST", .verify_number = EX_VERIFY_DECIMAL, .done_text = ""};
    receive.verbose = opt.verbose;
    receive.ascii = opt.ascii;
    receive.verify = opt.verify;
    receive.pause_ms = opt.pause;
    receive.stop_at_eos = opt.exit_at_eos || opt.summary;
    receive.stop_after = opt.messages;
    ex_run_failover(&(struct ex_failover){.topic = argv[first],
                                          .statistics = opt.statistics,
                                          .summary = opt.summary || opt.messages > 0},
                    &receive);
    return 0;
}
