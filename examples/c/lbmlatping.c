/* Round trips over LBT-SMX in nanoseconds, with lbmlatpong at the other end. The
 * messages are written into shared memory and sent by complete-and-acquire, all
 * inside the receiver callback on the LBT-SMX thread; main() waits and prints. */
#include <lbm/lbm.h>
#include <lbm/um.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ex_options.h"
#include "ex_ticks.h"

#define MIN_LENGTH 16
#define CALIBRATIONS 100
#define READY_MS 60000

static struct {
    unsigned long length, pause_us, warm_up, messages;
} opt = {.length = MIN_LENGTH, .warm_up = 100000, .messages = 1000000};

static const struct ex_option options[] = {
    {'h', "help", EX_HELP, NULL, NULL, "this text"},
    {'c', "config", EX_CONFIG, NULL, "FILE", "load a configuration file; may be repeated"},
    {'l', "length", EX_UNSIGNED, &opt.length, "BYTES", "payload length, at least 16 (default 16)"},
    {'P', "pause", EX_UNSIGNED, &opt.pause_us, "USEC", "busy pause before each message (default 0)"},
    {'i', "ignore", EX_UNSIGNED, &opt.warm_up, "NUM", "messages at the start that do not count (default 100000)"},
    {'M', "messages", EX_UNSIGNED, &opt.messages, "NUM", "messages that count (default 1000000)"},
    EX_END,
};

static const struct ex_program program = {"Measures round trips over LBT-SMX; lbmlatpong reflects them.", "", 0,
                                          options};

/* Owned by the receiver callback until `done`. */
static struct {
    lbm_src_t *src;
    void *next; /* acquired for the next message */
    unsigned long sent;
    uint64_t sent_at;
    uint64_t *ticks; /* of each round trip that counts */
    double ticks_per_ns;
    atomic_int done;
} run;

static void ping(void)
{
    if (opt.pause_us > 0) {
        uint64_t until = ex_ticks() + (uint64_t)((double)opt.pause_us * 1e3 * run.ticks_per_ns);
        while (ex_ticks() < until) {
        }
    }
    uint64_t number = run.sent++;
    memcpy(run.next, &number, sizeof number);
    run.sent_at = ex_ticks();
    EX_TRY(lbm_src_buffs_complete_and_acquire, run.src, &run.next, opt.length, 0);
}

static int on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv, (void)clientd;
    if (msg->type != LBM_MSG_DATA || atomic_load_explicit(&run.done, memory_order_relaxed)) {
        return 0;
    }
    uint64_t now = ex_ticks();
    if (run.sent > opt.warm_up) { /* the first message of all is the invitation of lbmlatpong */
        run.ticks[run.sent - opt.warm_up - 1] = now - run.sent_at;
    }
    if (run.sent == opt.warm_up + opt.messages) {
        atomic_store(&run.done, 1);
    } else {
        ping();
    }
    return 0;
}

static void calibrate(void)
{
    double ticks = 0, seconds = 0;
    for (int i = 0; i < CALIBRATIONS; i++) {
        double begun = ex_now();
        uint64_t before = ex_ticks();
        ex_sleep_ms(5);
        ticks += (double)(ex_ticks() - before);
        seconds += ex_now() - begun;
    }
    run.ticks_per_ns = ticks / (seconds * 1e9);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static double share(double part)
{
    unsigned long at = (unsigned long)(part * (double)opt.messages);
    return (double)run.ticks[at < opt.messages ? at : opt.messages - 1] / run.ticks_per_ns;
}

static void print_results(void)
{
    double sum = 0, squares = 0;
    for (unsigned long i = 0; i < opt.messages; i++) {
        double ns = (double)run.ticks[i] / run.ticks_per_ns;
        sum += ns;
        squares += ns * ns;
    }
    double count = (double)opt.messages, mean = sum / count;
    double variance = squares / count - mean * mean;
    qsort(run.ticks, opt.messages, sizeof run.ticks[0], by_value);
    printf("Successfully sent & received %lu total %lu-byte messages, ignoring the first %lu messages.\n",
           opt.warm_up + opt.messages, opt.length, opt.warm_up);
    printf("Average per-message round-trip latency:  %.0f nanoseconds.\n", mean);
    printf("Round-trip times in nanoseconds, assuming a %f GHz clock:\n", run.ticks_per_ns);
    printf("Min: %.0f, Max %.0f\n", share(0), share(1));
    printf("Mean: %.0f, Median: %.0f, Standard Dev: %.0f\n", mean, share(0.5), variance > 0 ? sqrt(variance) : 0.0);
    printf("99.9%%: %.0f, 99%%: %.0f, 95%%: %.0f, 90%%: %.0f, 80%%: %.0f\n", share(0.999), share(0.99), share(0.95),
           share(0.9), share(0.8));
    fflush(stdout);
}

static lbm_context_t *make_context(void)
{
    lbm_context_attr_t *attr;
    lbm_context_t *ctx;
    EX_TRY(lbm_context_attr_create, &attr);
    EX_TRY(lbm_context_attr_str_setopt, attr, "operational_mode", "sequential");
    EX_TRY(lbm_context_attr_str_setopt, attr, "resolver_cache", "0");
    EX_TRY(lbm_context_attr_str_setopt, attr, "request_tcp_port_high", "50000");
    EX_TRY(lbm_context_create, &ctx, attr, NULL, NULL);
    lbm_context_attr_delete(attr);
    return ctx;
}

static void make_source(lbm_context_t *ctx)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    EX_TRY(lbm_src_topic_attr_create, &attr);
    EX_TRY(lbm_src_topic_attr_str_setopt, attr, "transport", "lbtsmx");
    EX_TRY(lbm_src_topic_attr_str_setopt, attr, "resolver_advertisement_sustain_interval", "0");
    EX_TRY(lbm_src_topic_alloc, &topic, ctx, "lbmlat-ping", attr);
    EX_TRY(lbm_src_create, &run.src, ctx, topic, NULL, NULL, NULL);
    lbm_src_topic_attr_delete(attr);
    EX_TRY(lbm_src_buff_acquire, run.src, &run.next, opt.length, 0);
    memset(run.next, 0, opt.length);
}

int main(int argc, char **argv)
{
    lbm_topic_t *topic;
    lbm_rcv_t *rcv;
    ex_parse(argc, argv, &program);
    if (opt.length < MIN_LENGTH || opt.messages == 0) {
        ex_usage(argv[0], &program, 1);
    }
    run.ticks = malloc(opt.messages * sizeof run.ticks[0]);
    if (run.ticks == NULL) {
        fprintf(stderr, "%lu messages: no memory for their round trips\n", opt.messages);
        return 1;
    }
    memset(run.ticks, 0, opt.messages * sizeof run.ticks[0]);
    calibrate();
    lbm_context_t *ctx = make_context();
    make_source(ctx);
    EX_TRY(lbm_rcv_topic_lookup, &topic, ctx, "lbmlat-pong", NULL);
    EX_TRY(lbm_rcv_create, &rcv, ctx, topic, on_message, NULL, NULL);
    /* Resolution needs this thread; once both ends are connected, nothing of this context does. */
    for (int ms = 0; um_rcv_ready(rcv) < 1 || um_src_receivers(run.src) < 1; ms += 10) {
        if (ms > READY_MS) {
            fprintf(stderr, "no lbmlatpong found\n");
            return 1;
        }
        EX_TRY(lbm_context_process_events, ctx, 10);
    }
    while (!atomic_load(&run.done)) {
        ex_sleep_ms(10);
    }
    print_results();
    EX_TRY(lbm_src_buffs_cancel, run.src);
    EX_TRY(lbm_rcv_delete, rcv);
    EX_TRY(lbm_src_delete, run.src);
    EX_TRY(lbm_context_delete, ctx);
    free(run.ticks);
    return 0;
}
