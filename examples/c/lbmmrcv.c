/* lbmmrcv: receives many numbered topics in one to five contexts and prints the
 * total rate once per second. Messages come on the contexts' threads. */
#include <lbm/lbm.h>
#include <signal.h>
#include <stdio.h>

#include "ex_multi_receiver.h"
#include "ex_options.h"

#define MAX_CONTEXTS 5
#define MAX_RECEIVERS 1000001

static struct {
    int contexts, exit_at_eos, linger, statistics, verbose, verify;
    unsigned long bufsize, initial, receivers;
    const char *end_flag, *root;
} opt = {.contexts = 1, .bufsize = 8, .receivers = 100, .root = "29west.example.multi"};

static const struct ex_option options[] = {
    {'B', "bufsize", EX_UNSIGNED, &opt.bufsize, "MB", "receive socket buffer (8)"},
    {'c', "config", EX_CONFIG, NULL, "FILE", "load a configuration file; may be repeated"},
    {'C', "contexts", EX_INT, &opt.contexts, "NUM", "contexts to spread the receivers over (1, at most 5)"},
    {'E', NULL, EX_FLAG, &opt.exit_at_eos, NULL, "exit at the end of a session"},
    {'e', "end-flag", EX_TEXT, &opt.end_flag, "FILE", "clean up and exit when FILE appears"},
    {'h', "help", EX_HELP, NULL, NULL, "show this text"},
    {'i', "initial-topic", EX_UNSIGNED, &opt.initial, "NUM", "number of the first topic (0)"},
    {'o', "regid-offset", EX_LATER_ARG, "persistence", "NUM", "offset of the registration ids"},
    {'L', "linger", EX_INT, &opt.linger, "SEC", "wait before deleting the receivers (0)"},
    {'r', "root", EX_TEXT, &opt.root, "TEXT", "topics are TEXT.N (29west.example.multi)"},
    {'R', "receivers", EX_UNSIGNED, &opt.receivers, "NUM", "topics to receive (100)"},
    {'s', "statistics", EX_FLAG, &opt.statistics, NULL, "print transport statistics with each rate line"},
    {'v', "verbose", EX_COUNTER, &opt.verbose, NULL, "print messages; twice: with their bytes"},
    {'V', "verify_msg", EX_FLAG, &opt.verify, NULL, "verify payloads"},
    EX_MONITOR("monitor-ctx", "context", context),
    EX_MONITOR("monitor-rcv", "receivers", object),
    EX_COMMON_MONITOR,
    EX_END,
};

static const struct ex_program program = {"Receives messages of many topics.", "", 0, options};

static struct ex_receive receive = {.style = EX_STYLE_SHORT, .burst_word = "LOST BURST"};

static void on_signal(int number)
{
    receive.done = 1;
}

int main(int argc, char **argv)
{
    ex_parse(argc, argv, &program);
    lbm_context_t *contexts[MAX_CONTEXTS];
    if (opt.contexts < 1 || opt.contexts > MAX_CONTEXTS || opt.receivers < 1 || opt.receivers > MAX_RECEIVERS) {
        ex_usage(argv[0], &program, 1);
    }
    receive.verbose = opt.verbose;
    receive.verify = opt.verify;
    receive.stop_at_eos = opt.exit_at_eos;
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    struct ex_receivers all = {.contexts = contexts,
                               .context_count = opt.contexts,
                               .initial = opt.initial,
                               .count = opt.receivers,
                               .root = opt.root,
                               .statistics = opt.statistics};
    ex_receivers_create_contexts(&all, opt.bufsize);
    ex_receivers_create(&all, &receive);
    ex_receivers_run(&all, &receive, opt.end_flag);
    ex_receivers_linger(opt.linger, "Lingering for %d seconds...\n");
    ex_receivers_delete(&all);
    printf("Quitting.... received %u messages", (unsigned)receive.total_messages);
    if (receive.total_unrecovered > 0 || receive.total_bursts > 0) {
        printf(", %u msgs unrecovered, %u loss bursts", (unsigned)receive.total_unrecovered,
               (unsigned)receive.total_bursts);
    }
    printf("\n");
    return 0;
}
