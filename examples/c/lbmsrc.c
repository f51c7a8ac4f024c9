/* lbmsrc: sends messages on one topic as fast as it may. main() sends; source
 * events and the statistics timer run on the context's thread. */
#include <inttypes.h>
#include <lbm/lbm.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ex_options.h"
#include "ex_print.h"
#include "ex_verify.h"

#define MIN_BUFFER 25

static struct {
    int delay, linger, nonblock, verbose, verify;
    unsigned long late_join, length, messages, pause, statistics;
    long channel;
    struct ex_rate rate;
    struct ex_datagram datagram;
} opt = {.channel = -1, .delay = 1, .linger = 5, .length = 25, .messages = 10000000};

static const struct ex_option options[] = {
    {'c', "config", EX_CONFIG, NULL, "FILE", "load a configuration file; may be repeated"},
    {'d', "delay", EX_INT, &opt.delay, "SEC", "wait before the first message (1)"},
    {'j', "late-join", EX_UNSIGNED, &opt.late_join, "BYTES", "retain so many bytes for late joiners"},
    {'h', "help", EX_HELP, NULL, NULL, "show this text"},
    {'L', "linger", EX_INT, &opt.linger, "SEC", "wait before deleting the source (5)"},
    {'l', "length", EX_UNSIGNED, &opt.length, "BYTES", "message length (25)"},
    {'M', "messages", EX_UNSIGNED, &opt.messages, "NUM", "messages to send (10000000)"},
    {'n', "non-block", EX_FLAG, &opt.nonblock, NULL, "send without blocking, wait for wakeup events"},
    {'N', "channel", EX_CHANNEL, &opt.channel, "NUM", "send on this channel"},
    {'P', "pause", EX_UNSIGNED, &opt.pause, "MS", "pause after each message (0)"},
    {'R', "rate", EX_RATE, &opt.rate, "[U|M]DATA/RETR", "LBT-RU or LBT-RM with these rate limits"},
    {'s', "statistics", EX_UNSIGNED, &opt.statistics, "SEC", "print transport statistics every SEC seconds"},
    {'v', "verbose", EX_COUNTER, &opt.verbose, NULL, "print transmission timestamps and immediate messages"},
    {'V', "verifiable", EX_FLAG, &opt.verify, NULL, "send verifiable payloads"},
    {'G', "datagram", EX_DATAGRAM, &opt.datagram, "U|M|S+NUM", "largest datagram of LBT-RU, LBT-RM or the resolver"},
    EX_MONITOR("monitor-ctx", "context", context),
    EX_MONITOR("monitor-src", "source", object),
    EX_COMMON_MONITOR,
    EX_END,
};

static const struct ex_program program = {"Sends messages on a single topic.", "topic", 1, options};

static atomic_int blocked;
static volatile sig_atomic_t loss_rate;

static void on_loss_signal(int number)
{
    int rate = number == SIGUSR2 ? 0 : (int)loss_rate + (number == SIGHUP ? 5 : 10);
    loss_rate = rate > 100 ? 100 : rate;
}

/* Signal handlers only note the rate; it is put into force between two sends. */
static void apply_loss_rate(void)
{
    static sig_atomic_t in_force;
    if (in_force != loss_rate) {
        in_force = loss_rate;
        lbm_set_lbtrm_src_loss_rate(in_force);
        lbm_set_lbtru_src_loss_rate(in_force);
    }
}

static int on_event(lbm_src_t *src, int event, void *ed, void *clientd)
{
    if (event == LBM_SRC_EVENT_TIMESTAMP) {
        const lbm_src_event_timestamp_info_t *info = ed;
        if (opt.verbose) {
            printf("The timestamp of the transmitted packet was %" PRIu64 ".%.9" PRIu64 "  for SQN %u\n",
                   (uint64_t)info->hr_timestamp.tv_sec, (uint64_t)info->hr_timestamp.tv_nsec, info->sequence_number);
        }
        return 0;
    }
    return ex_on_source_event(src, event, ed, &blocked);
}

static int on_immediate(lbm_context_t *ctx, lbm_msg_t *msg, void *clientd)
{
    const char *what = msg->type == LBM_MSG_REQUEST ? "Request" : "Data";
    printf("IM %s [%s][%u], %lu bytes\n", what, msg->source, msg->sequence_number, (unsigned long)msg->len);
    fflush(stdout);
    return 0;
}

static int on_statistics(lbm_context_t *ctx, const void *clientd)
{
    lbm_src_transport_stats_t stats;
    EX_TRY(lbm_src_retrieve_transport_stats, (lbm_src_t *)clientd, &stats);
    ex_print_source_stats(&stats);
    return 0;
}

/* `extras`: NULL for messages without a channel. */
static void send_one(lbm_src_t *src, const char *data, lbm_src_send_ex_info_t *extras)
{
    int flags = opt.nonblock ? LBM_SRC_NONBLOCK : 0;
    for (;;) {
        atomic_store(&blocked, 1); /* before the send: the wakeup may overtake its return */
        int rc = extras != NULL ? lbm_src_send_ex(src, data, opt.length, flags, extras)
                                : lbm_src_send(src, data, opt.length, flags);
        if (rc != LBM_FAILURE) {
            return;
        }
        if (lbm_errnum() != LBM_EWOULDBLOCK) {
            ex_fail(extras != NULL ? "lbm_src_send_ex" : "lbm_src_send");
        }
        while (atomic_load(&blocked)) {
            ex_sleep_ms(100);
        }
    }
}

static void send_all(lbm_src_t *src, char *data)
{
    lbm_src_send_ex_info_t extras = {.flags = LBM_SRC_SEND_EX_FLAG_CHANNEL};
    if (opt.channel >= 0) {
        EX_TRY(lbm_src_channel_create, &extras.channel_info, src, (lbm_uint32_t)opt.channel);
    }
    double begin = ex_now();
    for (unsigned long count = 0; count < opt.messages; count++) {
        if (opt.verify) {
            ex_verify_fill(data, opt.length);
        } else {
            snprintf(data, MIN_BUFFER, "message %u", (unsigned)count);
        }
        apply_loss_rate();
        send_one(src, data, opt.channel >= 0 ? &extras : NULL);
        if (opt.pause > 0) {
            ex_sleep_ms(opt.pause);
        }
    }
    double seconds = ex_now() - begin;
    if (extras.channel_info != NULL) {
        EX_TRY(lbm_src_channel_delete, extras.channel_info);
    }
    printf("Sent %u messages of size %u bytes in %.04g seconds.\n", (unsigned)opt.messages, (unsigned)opt.length,
           seconds);
    ex_print_source_rate(seconds, (double)opt.messages, (double)opt.messages * (double)opt.length);
}

static bool sends_final_advertisements(const lbm_src_topic_attr_t *attr)
{
    int on = 0;
    size_t length = sizeof(on);
    EX_TRY(lbm_src_topic_attr_getopt, (lbm_src_topic_attr_t *)attr, "resolver_send_final_advertisements", &on, &length);
    return on != 0;
}

static void run(const char *name, lbm_context_attr_t *cattr, lbm_src_topic_attr_t *sattr)
{
    lbm_context_t *ctx;
    lbm_topic_t *topic;
    lbm_src_t *src;
    int timer = -1;
    EX_TRY(lbm_context_create, &ctx, cattr, NULL, NULL);
    if (opt.verbose) {
        EX_TRY(lbm_context_rcv_immediate_msgs, ctx, on_immediate, NULL, NULL);
    }
    EX_TRY(lbm_src_topic_alloc, &topic, ctx, name, sattr);
    EX_TRY(lbm_src_create, &src, ctx, topic, on_event, NULL, NULL);
    ex_monitor_context(ctx);
    ex_monitor_source(src);
    if (opt.statistics > 0) {
        timer = lbm_schedule_timer_recurring(ctx, on_statistics, src, NULL, opt.statistics * 1000);
        if (timer == LBM_FAILURE) {
            ex_fail("lbm_schedule_timer_recurring");
        }
    }
    if (opt.delay > 0) {
        printf("Will start sending in %d second%s...\n", opt.delay, opt.delay > 1 ? "s" : "");
        fflush(stdout);
        ex_sleep_ms((unsigned long)opt.delay * 1000);
    }
    if (opt.channel >= 0) {
        printf("Sending on channel %ld\n", opt.channel);
    }
    printf("Sending %u messages of size %u bytes to topic [%s]\n", (unsigned)opt.messages, (unsigned)opt.length, name);
    fflush(stdout);
    char *data = calloc(1, opt.length > MIN_BUFFER ? opt.length : MIN_BUFFER);
    if (data == NULL) {
        fprintf(stderr, "no memory for a message of %lu bytes\n", opt.length);
        exit(1);
    }
    send_all(src, data);
    free(data);
    EX_TRY(lbm_src_flush, src);
    if (timer != -1) {
        printf("Delaying to catch last stats timer... \n");
        fflush(stdout);
        ex_sleep_ms(opt.statistics * 1000);
        lbm_cancel_timer(ctx, timer, NULL);
    }
    if (opt.linger > 0) {
        printf("Lingering for %d seconds...\n", opt.linger);
        fflush(stdout);
        ex_sleep_ms((unsigned long)opt.linger * 1000);
    }
    ex_monitor_stop();
    printf("Deleting source\n");
    EX_TRY(lbm_src_delete, src);
    if (sends_final_advertisements(sattr)) {
        printf("Waiting 11 seconds for final advertisements to be sent...\n");
        fflush(stdout);
        ex_sleep_ms(11000);
    }
    printf("Deleting context\n");
    EX_TRY(lbm_context_delete, ctx);
}

int main(int argc, char **argv)
{
    int first = ex_parse(argc, argv, &program);
    lbm_context_attr_t *cattr;
    lbm_src_topic_attr_t *sattr;
    if (opt.verify) {
        opt.length = ex_verify_length(opt.length);
    }
    signal(SIGHUP, on_loss_signal);
    signal(SIGUSR1, on_loss_signal);
    signal(SIGUSR2, on_loss_signal);
    EX_TRY(lbm_context_attr_create, &cattr);
    EX_TRY(lbm_src_topic_attr_create, &sattr);
    ex_apply_late_join(opt.late_join, sattr);
    ex_apply_rate(&opt.rate, cattr, sattr);
    ex_apply_source_datagram(&opt.datagram, cattr, sattr);
    run(argv[first], cattr, sattr);
    EX_TRY(lbm_src_topic_attr_delete, sattr);
    EX_TRY(lbm_context_attr_delete, cattr);
    return 0;
}
