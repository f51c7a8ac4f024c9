/* lbmssrc: sends messages on one topic with a smart source, which has all its memory
 * before the first message. main() sends; the statistics timer runs on the context's
 * thread. */
#include <inttypes.h>
#include <lbm/lbm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ex_options.h"
#include "ex_print.h"
#include "ex_smart.h"
#include "ex_verify.h"

#define MIN_BUFFER 25

static struct {
    int available, delay, linger, supplied, verbose, verify;
    unsigned long late_join, length, messages, pause, statistics;
    long channel;
    struct ex_properties properties;
    const char *timing;
} opt = {.delay = 1, .linger = 5, .length = 25, .messages = 10000000, .channel = -1};

static const struct ex_option options[] = {
    {'a', "available-data-space", EX_FLAG, &opt.available, NULL, "print how much a buffer of the library takes"},
    {'b', "user-supplied-buffer", EX_FLAG, &opt.supplied, NULL, "send from memory of the application"},
    {'c', "config", EX_CONFIG, NULL, "FILE", "load a configuration file; may be repeated"},
    {'d', "delay", EX_INT, &opt.delay, "SEC", "wait before the first message (1)"},
    {'j', "late-join", EX_UNSIGNED, &opt.late_join, "NUM", "retain so many messages for late joiners"},
    {'h', "help", EX_HELP, NULL, NULL, "show this text"},
    {'i', "int-mprop", EX_PROPERTY, &opt.properties, "VAL,KEY", "an integer property; may be repeated (16)"},
    {'L', "linger", EX_INT, &opt.linger, "SEC", "wait before deleting the source (5)"},
    {'l', "length", EX_UNSIGNED, &opt.length, "BYTES", "message length (25)"},
    {'M', "messages", EX_UNSIGNED, &opt.messages, "NUM", "messages to send (10000000)"},
    {'N', "channel", EX_CHANNEL, &opt.channel, "NUM", "send on this channel"},
    {'P', "pause", EX_UNSIGNED, &opt.pause, "MS", "pause after each message (0)"},
    {'S', "perf-stats", EX_TEXT, &opt.timing, "NUM[,USEC]", "times of NUM messages each; sends above USEC (10) apart"},
    {'s', "statistics", EX_UNSIGNED, &opt.statistics, "SEC", "print transport statistics every SEC seconds"},
    {'v', "verbose", EX_COUNTER, &opt.verbose, NULL, "print transmission timestamps"},
    {'V', "verifiable", EX_FLAG, &opt.verify, NULL, "send verifiable payloads"},
    EX_MONITOR("monitor-ctx", "context", context),
    EX_MONITOR("monitor-src", "source", object),
    EX_COMMON_MONITOR,
    EX_END,
};

static const struct ex_program program = {"Sends messages on a single topic with a smart source.", "topic", 1, options};

static int on_event(lbm_ssrc_t *ssrc, int event, void *ed, void *clientd)
{
    (void)ssrc, (void)clientd;
    if (event == LBM_SRC_EVENT_TIMESTAMP) {
        const lbm_src_event_timestamp_info_t *info = ed;
        if (opt.verbose) {
            printf("The timestamp of the transmitted packet was %" PRIu64 ".%.9" PRIu64 "  for SQN %u\n",
                   (uint64_t)info->hr_timestamp.tv_sec, (uint64_t)info->hr_timestamp.tv_nsec, info->sequence_number);
        }
    } else if (event != LBM_SRC_EVENT_WAKEUP && event != LBM_SRC_EVENT_SEQUENCE_NUMBER_INFO) {
        printf("Unhandled source event [%d].\n", event);
    }
    fflush(stdout);
    return 0;
}

static int on_statistics(lbm_context_t *ctx, const void *clientd)
{
    lbm_src_transport_stats_t stats;
    (void)ctx;
    if (lbm_ssrc_retrieve_transport_stats((lbm_ssrc_t *)clientd, &stats) == LBM_FAILURE) {
        ex_fail("lbm_ssrc_retrieve_transport_stats");
    }
    ex_print_source_stats(&stats);
    return 0;
}

/* ---- times of sends (-S) ---- */

struct timing {
    unsigned long every, threshold_us; /* 0: no report */
    unsigned long count, outliers;
    double total, outlier_total, longest; /* microseconds */
};

static bool read_timing(struct timing *timing)
{
    char *end;
    timing->threshold_us = 10;
    if (opt.timing == NULL) {
        return true;
    }
    timing->every = strtoul(opt.timing, &end, 10);
    if (*end == ',') {
        timing->threshold_us = strtoul(end + 1, &end, 10);
    }
    return timing->every > 0 && *end == '\0';
}

static void add_time(struct timing *timing, double us)
{
    timing->total += us;
    timing->longest = us > timing->longest ? us : timing->longest;
    if (us > (double)timing->threshold_us) {
        timing->outliers++;
        timing->outlier_total += us;
    }
    if (++timing->count < timing->every) {
        return;
    }
    printf("PERFORMANCE: %d usec to send %d msgs; outliers (%d usec thresh): cnt: %d out time: %d max: %d\n",
           (int)timing->total, (int)timing->count, (int)timing->threshold_us, (int)timing->outliers,
           (int)timing->outlier_total, (int)timing->longest);
    fflush(stdout);
    *timing = (struct timing){.every = timing->every, .threshold_us = timing->threshold_us};
}

/* ---- sending ---- */

static void fill(char *data, unsigned long count)
{
    if (opt.verify) {
        ex_verify_fill(data, opt.length);
    } else if (opt.length >= MIN_BUFFER) {
        snprintf(data, MIN_BUFFER, "message %u", (unsigned)count);
    } else {
        char text[MIN_BUFFER];
        snprintf(text, sizeof(text), "message %u", (unsigned)count);
        memcpy(data, text, opt.length);
    }
}

/* What goes with each message, once the buffer is built. */
static lbm_ssrc_send_ex_info_t extras_of(const struct ex_smart_buffer *buffer)
{
    lbm_ssrc_send_ex_info_t info = {.flags = buffer->flags, .usr_supplied_buffer = buffer->supplied};
    if (opt.channel >= 0) {
        info.flags |= LBM_SSRC_SEND_EX_FLAG_CHANNEL;
        info.channel = (lbm_uint32_t)opt.channel;
    }
    if (opt.properties.count > 0) {
        info.flags |= LBM_SSRC_SEND_EX_FLAG_PROPERTIES;
        info.mprop_int_cnt = opt.properties.count;
        info.mprop_int_keys = opt.properties.keys;
        info.mprop_int_vals = opt.properties.values;
    }
    return info;
}

static void send_all(lbm_ssrc_t *ssrc, struct timing *timing)
{
    struct ex_smart_buffer buffer;
    ex_smart_buffer_get(&buffer, ssrc, opt.supplied, opt.length);
    lbm_ssrc_send_ex_info_t info = extras_of(&buffer);
    double begin = ex_now();
    for (unsigned long count = 0; count < opt.messages; count++) {
        fill(buffer.data, count);
        double before = timing->every > 0 ? ex_now() : 0;
        EX_TRY(lbm_ssrc_send_ex, ssrc, buffer.library, opt.length, 0, info.flags != 0 ? &info : NULL);
        if (timing->every > 0) {
            add_time(timing, (ex_now() - before) * 1e6);
        }
        if (opt.pause > 0) {
            ex_sleep_ms(opt.pause);
        }
    }
    double seconds = ex_now() - begin;
    ex_smart_buffer_put(&buffer, ssrc);
    printf("Sent %u messages of size %u bytes in %.04g seconds.\n", (unsigned)opt.messages, (unsigned)opt.length,
           seconds);
    ex_print_source_rate(seconds, (double)opt.messages, (double)opt.messages * (double)opt.length);
}

static void announce(lbm_ssrc_t *ssrc, const struct timing *timing, const char *name)
{
    if (opt.available) {
        ex_print_available_space(ssrc);
    }
    if (timing->every > 0) {
        printf("Displaying performance measurements every %d messages with an outlier threshold of %d usecs\n",
               (int)timing->every, (int)timing->threshold_us);
    }
    if (opt.delay > 0) {
        printf("Will start sending in %d second%s...\n", opt.delay, opt.delay > 1 ? "s" : "");
        fflush(stdout);
        ex_sleep_ms((unsigned long)opt.delay * 1000);
    }
    if (opt.channel >= 0) {
        printf("Sending on channel %ld\n", opt.channel);
    }
    if (opt.properties.count > 0) {
        printf("Sending integer message properties:\n");
    }
    for (int i = 0; i < opt.properties.count; i++) {
        printf("\tproperty #%d: %s = %d\n", i, opt.properties.keys[i], opt.properties.values[i]);
    }
    printf("lbmssrc - Sending %u messages of size %u bytes to topic [%s]\n", (unsigned)opt.messages,
           (unsigned)opt.length, name);
    fflush(stdout);
}

static void run(const char *name, const lbm_src_topic_attr_t *sattr, struct timing *timing)
{
    lbm_context_t *ctx;
    lbm_topic_t *topic;
    lbm_ssrc_t *ssrc;
    int timer = -1;
    EX_TRY(lbm_context_create, &ctx, NULL, NULL, NULL);
    EX_TRY(lbm_src_topic_alloc, &topic, ctx, name, (lbm_src_topic_attr_t *)sattr);
    EX_TRY(lbm_ssrc_create, &ssrc, ctx, topic, on_event, NULL, NULL);
    ex_monitor_context(ctx);
    ex_monitor_smart_source(ssrc);
    if (opt.statistics > 0) {
        timer = lbm_schedule_timer_recurring(ctx, on_statistics, ssrc, NULL, opt.statistics * 1000);
        if (timer == LBM_FAILURE) {
            ex_fail("lbm_schedule_timer_recurring");
        }
    }
    announce(ssrc, timing, name);
    send_all(ssrc, timing);
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
    printf("Deleting smart source\n");
    EX_TRY(lbm_ssrc_delete, ssrc);
    printf("Deleting context\n");
    EX_TRY(lbm_context_delete, ctx);
}

static void set_number(lbm_src_topic_attr_t *sattr, const char *option, unsigned long value)
{
    char number[32];
    snprintf(number, sizeof(number), "%lu", value);
    EX_TRY(lbm_src_topic_attr_str_setopt, sattr, option, number);
}

int main(int argc, char **argv)
{
    int first = ex_parse(argc, argv, &program);
    lbm_src_topic_attr_t *sattr;
    struct timing timing = {0};
    if (!read_timing(&timing)) {
        ex_usage(argv[0], &program, 1);
    }
    if (opt.verify) {
        opt.length = ex_verify_length(opt.length);
    }
    EX_TRY(lbm_src_topic_attr_create, &sattr);
    ex_apply_smart_transport(sattr);
    if (opt.late_join > 0) {
        EX_TRY(lbm_src_topic_attr_str_setopt, sattr, "late_join", "1");
        set_number(sattr, "smart_src_retention_buffer_count", opt.late_join);
        printf("Enabled Late Join with message retention buffer count set to %d.\n", (int)opt.late_join);
    }
    if (opt.channel >= 0) {
        EX_TRY(lbm_src_topic_attr_str_setopt, sattr, "smart_src_enable_spectrum_channel", "1");
    }
    if (opt.properties.count > 0) {
        set_number(sattr, "smart_src_message_property_int_count", (unsigned long)opt.properties.count);
    }
    run(argv[first], sattr, &timing);
    EX_TRY(lbm_src_topic_attr_delete, sattr);
    return 0;
}
