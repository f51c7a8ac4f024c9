/* lbmmrcv: receives many numbered topics in one to five contexts and prints the
 * total rate once per second. Messages come on the contexts' threads. */
#include <lbm/lbm.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ex_options.h"
#include "ex_receiver.h"

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
    EX_MONITOR("monitor-ctx", "context"),
    EX_MONITOR("monitor-rcv", "receivers"),
    EX_COMMON_MONITOR,
    EX_END,
};

static const struct ex_program program = {"Receives messages of many topics.", "", 0, options};

static struct ex_receive receive = {.style = EX_STYLE_SHORT, .burst_word = "LOST BURST"};

static void on_signal(int number)
{
    receive.done = 1;
}

static void create_contexts(lbm_context_t **contexts)
{
    lbm_context_attr_t *attr;
    char bytes[32];
    snprintf(bytes, sizeof(bytes), "%lu", opt.bufsize * 1024 * 1024);
    EX_TRY(lbm_context_attr_create, &attr);
    EX_TRY(lbm_context_attr_str_setopt, attr, "transport_tcp_receiver_socket_buffer", bytes);
    for (int i = 0; i < opt.contexts; i++) {
        EX_TRY(lbm_context_create, &contexts[i], attr, NULL, NULL);
    }
    EX_TRY(lbm_context_attr_delete, attr);
    printf("Using %d context(s)\n", opt.contexts);
}

static lbm_rcv_t **create_receivers(lbm_context_t **contexts)
{
    lbm_rcv_t **receivers = calloc(opt.receivers, sizeof(*receivers));
    if (receivers == NULL) {
        fprintf(stderr, "no memory for %lu receivers\n", opt.receivers);
        exit(1);
    }
    printf("Creating %d receivers\n", (int)opt.receivers);
    for (unsigned long i = 0; i < opt.receivers; i++) {
        char name[LBM_MSG_MAX_TOPIC_LEN];
        lbm_topic_t *topic;
        lbm_context_t *ctx = contexts[i % (unsigned long)opt.contexts];
        snprintf(name, sizeof(name), "%s.%lu", opt.root, opt.initial + i);
        EX_TRY(lbm_rcv_topic_lookup, &topic, ctx, name, NULL);
        EX_TRY(lbm_rcv_create, &receivers[i], ctx, topic, ex_on_message, &receive, NULL);
        if ((i + 1) % 1000 == 0) {
            printf("Created %d receivers\n", (int)(i + 1));
        }
    }
    printf("Created %d receivers. Will start calculating aggregate throughput.\n", (int)opt.receivers);
    fflush(stdout);
    return receivers;
}

static unsigned long read_statistics(lbm_context_t **contexts)
{
    unsigned long lost = 0;
    for (int c = 0; c < opt.contexts; c++) {
        int count = 0;
        lbm_rcv_transport_stats_t *stats = ex_all_stats(contexts[c], NULL, 64, &count);
        for (int i = 0; stats != NULL && i < count; i++) {
            lost += ex_lost_packets(&stats[i]);
            if (opt.statistics) {
                printf("stats %u/%u (ctx %u):", (unsigned)i + 1, (unsigned)count, (unsigned)c);
                ex_print_receiver_stats_short(&stats[i]);
            }
        }
        free(stats);
    }
    return lost;
}

static void run(lbm_context_t **contexts)
{
    double last = ex_now();
    unsigned long known_lost = 0;
    while (!receive.done) {
        ex_sleep_until(1.0, &receive.done);
        double now = ex_now();
        unsigned long lost = read_statistics(contexts);
        ex_print_interval(&receive, now - last, "%-5.4g secs.  ", "loss bursts", lost - known_lost);
        known_lost = lost;
        last = now;
        if (opt.end_flag != NULL && access(opt.end_flag, F_OK) == 0) {
            printf("%s detected, cleaning up....\n", opt.end_flag);
            return;
        }
    }
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
    create_contexts(contexts);
    lbm_rcv_t **receivers = create_receivers(contexts);
    run(contexts);
    if (opt.linger > 0) {
        printf("Lingering for %d seconds...\n", opt.linger);
        fflush(stdout);
        ex_sleep_ms((unsigned long)opt.linger * 1000);
    }
    printf("Deleting receivers....\n");
    for (unsigned long i = 0; i < opt.receivers; i++) {
        EX_TRY(lbm_rcv_delete, receivers[i]);
        if ((i + 1) % 1000 == 0) {
            printf("Deleted %d receivers\n", (int)(i + 1));
        }
    }
    free(receivers);
    for (int i = 0; i < opt.contexts; i++) {
        EX_TRY(lbm_context_delete, contexts[i]);
    }
    printf("Quitting.... received %u messages", (unsigned)receive.total_messages);
    if (receive.total_unrecovered > 0 || receive.total_bursts > 0) {
        printf(", %u msgs unrecovered, %u loss bursts", (unsigned)receive.total_unrecovered,
               (unsigned)receive.total_bursts);
    }
    printf("\n");
    return 0;
}
