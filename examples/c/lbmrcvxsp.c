/* lbmrcvxsp: receives one topic, its transport sessions spread over XSPs in turn.
 * Messages come on the threads of the XSPs; the mapping and the end of an XSP's
 * last session on the context's; main() prints rates. */
#include <lbm/lbm.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "ex_options.h"
#include "ex_receiver.h"

static struct {
    int ascii, context_stats, defer_deletion, default_xsp, exit_at_eos, preallocate, sequential_xsps, summary, verbose;
    int verify, xsps;
    unsigned long messages, statistics;
} opt = {.xsps = 3};

static const struct ex_option options[] = {
    {'A', "ascii", EX_COUNTER, &opt.ascii, NULL, "print payloads as text; twice: each on a line of its own"},
    {'c', "config", EX_CONFIG, NULL, "FILE", "load a configuration file; may be repeated"},
    {'C', "context-stats", EX_FLAG, &opt.context_stats, NULL, "statistics of the context, not of the receiver"},
    {'d', "defer-xsp-deletion", EX_FLAG, &opt.defer_deletion, NULL, "keep XSPs without sessions until the end"},
    {'D', "default-xsp", EX_FLAG, &opt.default_xsp, NULL, "receive all sessions on the context itself"},
    {'E', "exit", EX_FLAG, &opt.exit_at_eos, NULL, "exit at the end of a session"},
    {'h', "help", EX_HELP, NULL, NULL, "show this text"},
    {'P', "round-robin-preallocate", EX_FLAG, &opt.preallocate, NULL, "make all XSPs at the start"},
    {'Q', "sequential-xsps", EX_FLAG, &opt.sequential_xsps, NULL, "XSPs run on threads of this program"},
    {'r', "msgs", EX_UNSIGNED, &opt.messages, "NUM", "exit after NUM messages"},
    {'R', "round-robin", EX_INT, &opt.xsps, "NUM", "spread sessions over NUM XSPs in turn (3)"},
    {'s', "stats", EX_UNSIGNED, &opt.statistics, "SEC", "print transport statistics every SEC seconds"},
    {'S', "summary", EX_FLAG, &opt.summary, NULL, "exit at the end of a session with a summary"},
    {'v', "verbose", EX_COUNTER, &opt.verbose, NULL, "print messages; twice: with their bytes"},
    {'V', "verify", EX_FLAG, &opt.verify, NULL, "verify payloads"},
    EX_END,
};

static const struct ex_program program = {"Receives messages of a single topic on several threads.", "topic", 1,
                                          options};

/* A place for an XSP. */
struct slot {
    int index;
    lbm_xsp_t *xsp;       /* lock; NULL: none now */
    lbm_xsp_t *processed; /* a sequential one, by its thread */
    pthread_t thread;
    atomic_bool stop;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct slot *slots;
static int next_slot; /* context thread */

/* ---- one XSP ---- */

static void *run_xsp(void *arg)
{
    struct slot *slot = arg;
    while (!atomic_load(&slot->stop)) {
        EX_TRY(lbm_xsp_process_events, slot->processed, 1000);
    }
    return NULL;
}

/* Takes what is in the slot, so that only one thread deletes it; nothing is held while it does. */
static void delete_xsp(struct slot *slot)
{
    pthread_mutex_lock(&lock);
    lbm_xsp_t *xsp = slot->xsp;
    pthread_t thread = slot->thread;
    slot->xsp = NULL;
    pthread_mutex_unlock(&lock);
    if (xsp == NULL) {
        return;
    }
    printf("Deleting XSP at index: %i\n", slot->index);
    fflush(stdout);
    if (opt.sequential_xsps) {
        atomic_store(&slot->stop, true);
        EX_TRY(lbm_xsp_unblock, xsp);
        pthread_join(thread, NULL);
    }
    EX_TRY(lbm_xsp_delete, xsp);
}

static int on_zero_transports(lbm_xsp_t *xsp, void *clientd)
{
    struct slot *slot = clientd;
    (void)xsp;
    printf("The number of transports has dropped to zero on the XSP at index: %i\n", slot->index);
    fflush(stdout);
    if (!opt.defer_deletion) {
        delete_xsp(slot);
    }
    return 0;
}

static void create_xsp(struct slot *slot, lbm_context_t *ctx)
{
    lbm_xsp_attr_t *attr;
    lbm_xsp_t *xsp;
    lbm_xsp_zero_transports_func_t func = {on_zero_transports, slot};
    EX_TRY(lbm_xsp_attr_create, &attr);
    EX_TRY(lbm_xsp_attr_str_setopt, attr, "operational_mode", opt.sequential_xsps ? "sequential" : "embedded");
    EX_TRY(lbm_xsp_attr_setopt, attr, "zero_transports_function", &func, sizeof(func));
    EX_TRY(lbm_xsp_create, &xsp, ctx, NULL, attr);
    EX_TRY(lbm_xsp_attr_delete, attr);
    pthread_mutex_lock(&lock);
    slot->xsp = slot->processed = xsp;
    atomic_store(&slot->stop, false);
    int error = opt.sequential_xsps ? pthread_create(&slot->thread, NULL, run_xsp, slot) : 0;
    pthread_mutex_unlock(&lock);
    if (error != 0) {
        fprintf(stderr, "pthread_create: error %d\n", error);
        exit(1);
    }
}

/* ---- the mapping ---- */

static lbm_xsp_t *map_in_turn(lbm_context_t *ctx)
{
    struct slot *slot = &slots[next_slot];
    next_slot = (next_slot + 1) % opt.xsps;
    printf("Applying 'round_robin' mapping.\n");
    if (slot->xsp == NULL) {
        printf("Creating and using a new XSP at index: %i\n", slot->index);
        create_xsp(slot, ctx);
    } else {
        printf("Using XSP at index: %i\n", slot->index);
    }
    return slot->xsp;
}

static lbm_xsp_t *on_new_transport(lbm_context_t *ctx, lbm_new_transport_info_t *info, void *clientd)
{
    lbm_xsp_t *xsp = NULL;
    (void)clientd;
    printf("NEW TRANSPORT: %s\n", info->source);
    if (opt.default_xsp) {
        printf("Applying 'default_xsp' mapping.\n");
    } else {
        xsp = map_in_turn(ctx);
    }
    fflush(stdout);
    return xsp;
}

/* ---- main ---- */

static bool is_sequential(lbm_context_attr_t *cattr)
{
    int mode = 0;
    size_t length = sizeof(mode);
    EX_TRY(lbm_context_attr_getopt, cattr, "operational_mode", &mode, &length);
    if (mode != LBM_CTX_ATTR_OP_SEQUENTIAL) {
        return false;
    }
    printf("LBM is in sequential mode.\n");
    return true;
}

static void prepare_slots(void)
{
    if (opt.xsps < 1) {
        printf("!! round_robin must be >= 1  -  setting to 1\n");
        opt.xsps = 1;
    }
    slots = calloc((size_t)opt.xsps, sizeof(*slots));
    if (slots == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    for (int i = 0; i < opt.xsps; i++) {
        slots[i].index = i;
    }
    if (!opt.default_xsp) {
        printf("\nUsing a round-robin strategy with %i XSPs.  Preallocation is %s.\n\n", opt.xsps,
               opt.preallocate ? "on" : "off");
    }
}

int main(int argc, char **argv)
{
    int first = ex_parse(argc, argv, &program);
    lbm_context_attr_t *cattr;
    lbm_context_t *ctx;
    lbm_topic_t *topic;
    lbm_rcv_t *rcv;
    lbm_transport_mapping_func_t mapping = {on_new_transport, NULL};
    static struct ex_receive receive = {.style = EX_STYLE_FULL, .burst_word = "LOSS BURST", .done_text = ""};
    receive.verbose = opt.verbose;
    receive.ascii = opt.ascii;
    receive.verify = opt.verify;
    receive.stop_at_eos = opt.exit_at_eos || opt.summary;
    receive.stop_after = opt.messages;
    EX_TRY(lbm_context_attr_create, &cattr);
    bool sequential = is_sequential(cattr);
    prepare_slots();
    EX_TRY(lbm_context_attr_setopt, cattr, "transport_mapping_function", &mapping, sizeof(mapping));
    EX_TRY(lbm_context_create, &ctx, cattr, NULL, NULL);
    EX_TRY(lbm_context_attr_delete, cattr);
    for (int i = 0; opt.preallocate && !opt.default_xsp && i < opt.xsps; i++) {
        create_xsp(&slots[i], ctx);
    }
    EX_TRY(lbm_context_rcv_immediate_msgs, ctx, ex_on_immediate, &receive, NULL);
    ex_print_immediate_target(ctx);
    EX_TRY(lbm_rcv_topic_lookup, &topic, ctx, argv[first], NULL);
    EX_TRY(lbm_rcv_create, &rcv, ctx, topic, ex_on_message, &receive, NULL);
    fflush(stdout);
    ex_run_intervals(&(struct ex_interval){.ctx = ctx,
                                           .rcv = opt.context_stats ? NULL : rcv,
                                           .sequential = sequential,
                                           .quiet = opt.ascii && opt.statistics == 0,
                                           .stats_every = opt.statistics,
                                           .long_form = true,
                                           .max_sources = 10,
                                           .first_format = "%-6.4g secs.  ",
                                           .burst_label = "loss bursts"},
                     &receive);
    if (opt.summary || opt.messages > 0) {
        ex_print_summary(receive.last - receive.first, receive.total_messages, receive.total_bytes);
    }
    EX_TRY(lbm_rcv_delete, rcv);
    for (int i = 0; i < opt.xsps; i++) {
        delete_xsp(&slots[i]);
    }
    EX_TRY(lbm_context_delete, ctx);
    free(slots);
    return 0;
}
