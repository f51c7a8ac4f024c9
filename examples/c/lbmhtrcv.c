/* lbmhtrcv: receives what matches patterns of hierarchical topics, read from stdin,
 * one on each line. Messages come on the context's thread, or on a queue thread
 * with -q; main() prints rates and, with -d, deletes one pattern after the other. */
#include <lbm/lbmht.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ex_options.h"
#include "ex_receiver.h"

#define LINE_MAX_LENGTH 1024

static struct {
    int queue, statistics, verbose, exit_when_deleted;
    unsigned long delete_every;
    const char *prefix;
} opt;

static const struct ex_option options[] = {
    {'d', NULL, EX_UNSIGNED, &opt.delete_every, "MS", "delete one pattern every MS milliseconds"},
    {'h', "help", EX_HELP, NULL, NULL, "show this text"},
    {'p', NULL, EX_TEXT, &opt.prefix, "PREFIX", "text in front of each pattern"},
    {'q', NULL, EX_FLAG, &opt.queue, NULL, "receive through an event queue"},
    {'s', "statistics", EX_FLAG, &opt.statistics, NULL, "print transport statistics with each rate line"},
    {'v', "verbose", EX_COUNTER, &opt.verbose, NULL, "print messages; twice: with their bytes"},
    {'x', NULL, EX_FLAG, &opt.exit_when_deleted, NULL, "exit when all patterns are deleted"},
    EX_END,
};

static const struct ex_program program = {"Receives patterns of hierarchical topics, read from stdin.", "", 0, options};

static struct ex_receive counters = {.burst_word = "LOST BURST", .done_text = ""};
static char **patterns;
static unsigned long pattern_count;
static atomic_ulong deleted;

/* ---- patterns ---- */

static void add_pattern(const char *line)
{
    char **grown = realloc(patterns, (pattern_count + 1) * sizeof(*patterns));
    char *copy = strdup(line);
    if (grown == NULL || copy == NULL) {
        fprintf(stderr, "no memory for %lu patterns\n", pattern_count + 1);
        exit(1);
    }
    patterns = grown;
    patterns[pattern_count++] = copy;
}

static void read_patterns(void)
{
    char line[LINE_MAX_LENGTH];
    while (fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\r\n")] = '\0';
        if (line[0] != '\0') {
            add_pattern(line);
        }
    }
}

static void on_deleted(int dispatch_thread, void *clientd)
{
    unsigned long number = atomic_fetch_add(&deleted, 1) + 1;
    printf("%d. %s deletion complete (thread=%d)\n", (int)number, (const char *)clientd, dispatch_thread);
    fflush(stdout);
}

/* ---- messages ---- */

static void on_data(const lbm_msg_t *msg, const char *pattern)
{
    counters.messages++;
    counters.total_messages++;
    counters.bytes += msg->len;
    counters.total_bytes += msg->len;
    counters.off_transport += (msg->flags & LBM_MSG_FLAG_OTR) != 0;
    counters.repaired += (msg->flags & (LBM_MSG_FLAG_OTR | LBM_MSG_FLAG_RETRANSMIT)) == LBM_MSG_FLAG_RETRANSMIT;
    if (opt.verbose > 0) {
        printf("[%s][%s][%u]%s%s, %lu bytes (%s)\n", msg->topic_name, msg->source, msg->sequence_number,
               msg->flags & LBM_MSG_FLAG_RETRANSMIT ? "-RX-" : "", msg->flags & LBM_MSG_FLAG_OTR ? "-OTR-" : "",
               (unsigned long)msg->len, pattern);
    }
    if (opt.verbose > 1) {
        ex_dump(msg->data, msg->len);
    }
}

static int on_message(lbm_hypertopic_rcv_t *hrcv, lbm_msg_t *msg, void *clientd)
{
    const char *pattern = clientd;
    flockfile(stdout);
    switch (msg->type) {
    case LBM_MSG_DATA:
    case LBM_MSG_REQUEST:
        on_data(msg, pattern);
        break;
    case LBM_MSG_UNRECOVERABLE_LOSS:
        counters.unrecovered++;
        if (opt.verbose > 0) {
            printf("[%s][%s][%u], LOST (%s)\n", msg->topic_name, msg->source, msg->sequence_number, pattern);
        }
        break;
    case LBM_MSG_UNRECOVERABLE_LOSS_BURST:
        counters.bursts++;
        printf("[%s][%s][%u], LOST BURST (%s)\n", msg->topic_name, msg->source, msg->sequence_number, pattern);
        break;
    case LBM_MSG_BOS:
        printf("[%s][%s], Beginning of Transport Session (%s)\n", msg->topic_name, msg->source, pattern);
        break;
    case LBM_MSG_EOS:
        printf("[%s][%s], End of Transport Session (%s)\n", msg->topic_name, msg->source, pattern);
        break;
    default:
        printf("msg type = %d\n", msg->type);
        break;
    }
    fflush(stdout);
    funlockfile(stdout);
    return 0;
}

/* ---- the run ---- */

static unsigned long print_statistics(lbm_context_t *ctx)
{
    int count = 0;
    unsigned long lost = 0;
    lbm_rcv_transport_stats_t *stats = ex_all_stats(ctx, NULL, 64, &count);
    for (int i = 0; stats != NULL && i < count; i++) {
        lost += ex_lost_packets(&stats[i]);
        if (opt.statistics) {
            printf("stats %u/%u:", (unsigned)i + 1, (unsigned)count);
            ex_print_receiver_stats_short(&stats[i]);
        }
    }
    free(stats);
    return lost;
}

static void delete_pattern(lbm_hypertopic_rcv_t *hrcv, unsigned long which)
{
    lbm_delete_cb_info_t told = {on_deleted, patterns[which]};
    EX_TRY(lbm_hypertopic_rcv_delete, hrcv, patterns[which], on_message, patterns[which], &told);
}

/* One second, or until the next pattern is due with -d, which a signal (ex_sleep_ms) makes now. False: the program is
 * over. */
static bool wait_a_while(lbm_hypertopic_rcv_t *hrcv, unsigned long *next)
{
    static double due;
    bool deletes = opt.delete_every > 0 && *next < pattern_count;
    double start = ex_now(), seconds = 1.0;
    if (due == 0) {
        due = start + (double)opt.delete_every / 1000;
    }
    if (deletes && due - start < seconds) {
        seconds = due > start ? due - start : 0;
    }
    ex_sleep_ms((unsigned long)(seconds * 1000 + 0.999));
    double now = ex_now();
    if (deletes && (now >= due || now - start < seconds)) {
        delete_pattern(hrcv, (*next)++);
        due = now + (double)opt.delete_every / 1000;
    }
    return !(opt.exit_when_deleted && *next == pattern_count && deleted == pattern_count && pattern_count > 0);
}

static void run(lbm_context_t *ctx, lbm_hypertopic_rcv_t *hrcv)
{
    unsigned long next = 0, known_lost = 0;
    double last = ex_now();
    while (wait_a_while(hrcv, &next)) {
        double now = ex_now();
        if (now - last >= 1.0) {
            unsigned long lost = print_statistics(ctx);
            ex_print_interval(&counters, now - last, "%-5.4g secs.  ", "bursts", lost - known_lost);
            known_lost = lost;
            last = now;
            fflush(stdout);
        }
    }
}

int main(int argc, char **argv)
{
    lbm_context_t *ctx;
    lbm_hypertopic_rcv_t *hrcv;
    struct ex_queue queue = {NULL, 0};
    ex_parse(argc, argv, &program);
    read_patterns();
    EX_TRY(lbm_context_create, &ctx, NULL, NULL, NULL);
    if (opt.queue) {
        ex_queue_start(&queue, "event queue threshold exceeded - event %x, sz %lu, delay %lu\n");
    }
    EX_TRY(lbm_hypertopic_rcv_init, &hrcv, ctx, opt.prefix, queue.evq);
    for (unsigned long i = 0; i < pattern_count; i++) {
        EX_TRY(lbm_hypertopic_rcv_add, hrcv, patterns[i], on_message, patterns[i]);
    }
    printf("%d patterns loaded\n", (int)pattern_count);
    fflush(stdout);
    run(ctx, hrcv);
    EX_TRY(lbm_hypertopic_rcv_destroy, hrcv);
    if (opt.queue) {
        ex_queue_stop(&queue);
    }
    EX_TRY(lbm_context_delete, ctx);
    for (unsigned long i = 0; i < pattern_count; i++) {
        free(patterns[i]);
    }
    free(patterns);
    return 0;
}
