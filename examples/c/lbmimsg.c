/* lbmimsg: sends immediate messages, to everybody by multicast or to one context with
 * -T. Everything happens in main(). */
#include <lbm/lbm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ex_options.h"
#include "ex_print.h"

static struct {
    int delay, linger, topicless;
    unsigned long length, messages, numbers, pause;
    const char *target;
    struct ex_rate rate;
} opt = {.delay = 1, .linger = 5, .length = 25, .messages = 10000000};

static const struct ex_option options[] = {
    {'c', NULL, EX_CONFIG, NULL, "FILE", "load a configuration file; may be repeated"},
    {'d', NULL, EX_INT, &opt.delay, "SEC", "wait before the first message (1)"},
    {'h', NULL, EX_HELP, NULL, NULL, "show this text"},
    {'L', NULL, EX_INT, &opt.linger, "SEC", "wait before the context is deleted (5)"},
    {'l', NULL, EX_UNSIGNED, &opt.length, "BYTES", "message length (25)"},
    {'M', NULL, EX_UNSIGNED, &opt.messages, "NUM", "messages to send (10000000)"},
    {'n', NULL, EX_UNSIGNED, &opt.numbers, "NUM", "append 1..NUM in turn to the topic"},
    {'o', NULL, EX_FLAG, &opt.topicless, NULL, "send without a topic"},
    {'P', NULL, EX_UNSIGNED, &opt.pause, "MS", "pause after each message (0)"},
    {'R', NULL, EX_RATE, &opt.rate, "[U|M]DATA/RETR", "rate limits of LBT-RM"},
    {'T', NULL, EX_TEXT, &opt.target, "TARGET", "send to this context, as in TCP:10.1.2.3:14391; without: multicast"},
    EX_END,
};

static const struct ex_program program = {"Sends immediate messages.", "[topic]", 0, options};

/* A number is put behind the topic when -n was given. */
static const char *topic_of(const char *topic, unsigned long count, char *room, size_t size)
{
    if (topic == NULL || opt.numbers == 0) {
        return topic;
    }
    snprintf(room, size, "%s%lu", topic, count % opt.numbers + 1);
    return room;
}

static void send_one(lbm_context_t *ctx, const char *topic, const char *data)
{
    if (opt.target != NULL) {
        EX_TRY(lbm_unicast_immediate_message, ctx, opt.target, topic, data, opt.length, LBM_SRC_BLOCK);
    } else {
        EX_TRY(lbm_multicast_immediate_message, ctx, topic, data, opt.length, LBM_SRC_BLOCK);
    }
}

static void send_all(lbm_context_t *ctx, const char *topic)
{
    char name[LBM_MSG_MAX_TOPIC_LEN + 24], *data = calloc(1, opt.length > 32 ? opt.length : 32);
    if (data == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    double begin = ex_now();
    for (unsigned long count = 0; count < opt.messages; count++) {
        snprintf(data, 32, "message %lu", count);
        send_one(ctx, topic_of(topic, count, name, sizeof name), data);
        if (opt.pause > 0) {
            ex_sleep_ms(opt.pause);
        }
    }
    double seconds = ex_now() - begin;
    printf("Sent %u%s immediate messages of size %lu bytes in %.04g seconds.\n", (unsigned)opt.messages,
           opt.topicless ? " topic-less" : "", opt.length, seconds);
    ex_print_source_rate(seconds, (double)opt.messages, (double)opt.messages * (double)opt.length);
    free(data);
}

int main(int argc, char **argv)
{
    int first = ex_parse(argc, argv, &program);
    const char *topic = first < argc ? argv[first] : NULL;
    lbm_context_attr_t *cattr;
    lbm_context_t *ctx;
    if (opt.topicless && topic != NULL) {
        fprintf(stderr, "lbmimsg: error--selected topic-less option and still specified topic\n");
        ex_usage(argv[0], &program, 1);
    }
    if (!opt.topicless && topic == NULL) {
        ex_usage(argv[0], &program, 1);
    }
    EX_TRY(lbm_context_attr_create, &cattr);
    ex_apply_immediate_rate(&opt.rate, cattr);
    EX_TRY(lbm_context_create, &ctx, cattr, NULL, NULL);
    EX_TRY(lbm_context_attr_delete, cattr);
    if (opt.delay > 0) {
        printf("Will start sending in %d second%s...\n", opt.delay, opt.delay > 1 ? "s" : "");
        fflush(stdout);
        ex_sleep_ms((unsigned long)opt.delay * 1000);
    }
    printf("Sending %u%s immediate messages of size %lu bytes to target <%s> topic <%s>\n", (unsigned)opt.messages,
           opt.topicless ? " topic-less" : "", opt.length, opt.target != NULL ? opt.target : "",
           topic != NULL ? topic : "");
    fflush(stdout);
    send_all(ctx, topic);
    if (opt.linger > 0) {
        printf("Lingering for %d seconds...\n", opt.linger);
        fflush(stdout);
        ex_sleep_ms((unsigned long)opt.linger * 1000);
    }
    EX_TRY(lbm_context_delete, ctx);
    return 0;
}
