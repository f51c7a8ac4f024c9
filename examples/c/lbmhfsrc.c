/* lbmhfsrc: a hot-failover source. Several of them send the same numbers on one
 * topic, and receivers take each number once. main() sends; source events and the
 * statistics timer run on the context's thread. */
#include <inttypes.h>
#include <lbm/lbm.h>
#include <stdio.h>
#include <stdlib.h>

#include "ex_numbers.h"
#include "ex_options.h"
#include "ex_print.h"
#include "ex_verify.h"

#define MIN_BUFFER 32

static struct {
    int bits, delay, linger, verify;
    unsigned long length, messages, pause, statistics;
    unsigned long long first;
    const char *file;
    struct ex_rate rate;
} opt = {.bits = 32, .delay = 1, .linger = 5, .length = 25, .messages = 10000000};

static const struct ex_option options[] = {
    {'c', NULL, EX_CONFIG, NULL, "FILE", "load a configuration file; may be repeated"},
    {'d', NULL, EX_INT, &opt.delay, "SEC", "wait before the first message (1)"},
    {'h', NULL, EX_HELP, NULL, NULL, "show this text"},
    {'i', NULL, EX_NUMBER, &opt.first, "NUM", "first sequence number (0), also as 0x1f"},
    {'L', NULL, EX_INT, &opt.linger, "SEC", "wait before deleting the source (5)"},
    {'l', NULL, EX_UNSIGNED, &opt.length, "BYTES", "message length (25)"},
    {'M', NULL, EX_UNSIGNED, &opt.messages, "NUM", "messages to send (10000000)"},
    {'P', NULL, EX_UNSIGNED, &opt.pause, "MS", "pause after each message (0)"},
    {'R', NULL, EX_RATE, &opt.rate, "[U|M]DATA/RETR", "LBT-RU or LBT-RM with these rate limits"},
    {'s', NULL, EX_UNSIGNED, &opt.statistics, "SEC", "print transport statistics every SEC seconds"},
    {'t', NULL, EX_TEXT, &opt.file, "FILE", "sequence numbers from FILE, - for stdin: 13, 14o (optional), 1r (reset)"},
    {'V', NULL, EX_FLAG, &opt.verify, NULL, "send verifiable payloads"},
    {'x', NULL, EX_INT, &opt.bits, "BITS", "width of sequence numbers: 32 (default) or 64"},
    EX_END,
};

static const struct ex_program program = {"Sends messages that other sources send too, for hot failover.", "topic", 1,
                                          options};

static int on_statistics(lbm_context_t *ctx, const void *clientd)
{
    lbm_src_transport_stats_t stats;
    (void)ctx;
    if (lbm_src_retrieve_transport_stats((lbm_src_t *)clientd, &stats) == LBM_FAILURE) {
        ex_fail("lbm_src_retrieve_transport_stats");
    }
    ex_print_source_stats(&stats);
    return 0;
}

static void send_one(lbm_src_t *src, char *data, const struct ex_number *number)
{
    lbm_src_send_ex_info_t extras = {.flags = number->optional ? LBM_SRC_SEND_EX_FLAG_HF_OPTIONAL : 0};
    if (opt.bits == 64) {
        extras.flags |= LBM_SRC_SEND_EX_FLAG_HF_64;
        extras.hf_sqn.u64 = number->value;
    } else {
        extras.flags |= LBM_SRC_SEND_EX_FLAG_HF_32;
        extras.hf_sqn.u32 = (lbm_uint32_t)number->value;
    }
    if (number->reset) {
        EX_TRY(lbm_hf_src_send_rcv_reset, src, LBM_SRC_BLOCK, &extras);
        return;
    }
    if (opt.verify) {
        srand((unsigned)number->value); /* every source fills the same message with the same bytes */
        ex_verify_fill(data, opt.length);
    } else {
        snprintf(data, MIN_BUFFER, "message %" PRIu64, number->value);
    }
    EX_TRY(lbm_hf_src_send_ex, src, data, opt.length, 0, LBM_SRC_BLOCK, &extras);
}

static void send_all(lbm_src_t *src, char *data)
{
    struct ex_numbers numbers;
    struct ex_number number;
    uint64_t sent = 0;
    ex_numbers_open(&numbers, opt.file, opt.first, opt.bits);
    double begin = ex_now();
    for (; sent < opt.messages && ex_numbers_next(&numbers, &number); sent++) {
        send_one(src, data, &number);
        if (opt.pause > 0) {
            ex_sleep_ms(opt.pause);
        }
    }
    double seconds = ex_now() - begin;
    ex_numbers_close(&numbers);
    EX_TRY(lbm_src_flush, src);
    printf("Sent %" PRIu64 " messages of size %lu bytes in %.04g seconds.\n", sent, opt.length, seconds);
    ex_print_source_rate(seconds, (double)sent, (double)sent * (double)opt.length);
}

static void wait_seconds(int seconds, const char *format)
{
    if (seconds > 0) {
        printf(format, seconds, seconds > 1 ? "s" : "");
        fflush(stdout);
        ex_sleep_ms((unsigned long)seconds * 1000);
    }
}

static void run(const char *name, lbm_context_attr_t *cattr, lbm_src_topic_attr_t *sattr, char *data)
{
    lbm_context_t *ctx;
    lbm_topic_t *topic;
    lbm_src_t *src;
    int timer = -1;
    EX_TRY(lbm_context_create, &ctx, cattr, NULL, NULL);
    EX_TRY(lbm_src_topic_alloc, &topic, ctx, name, sattr);
    EX_TRY(lbm_hf_src_create, &src, ctx, topic, ex_on_source_event, NULL, NULL);
    if (opt.statistics > 0) {
        timer = lbm_schedule_timer_recurring(ctx, on_statistics, src, NULL, opt.statistics * 1000);
        if (timer == LBM_FAILURE) {
            ex_fail("lbm_schedule_timer_recurring");
        }
    }
    wait_seconds(opt.delay, "Will start sending in %d second%s...\n");
    printf("Sending %lu messages of size %lu bytes to topic [%s]\n", opt.messages, opt.length, name);
    fflush(stdout);
    send_all(src, data);
    wait_seconds(opt.linger, "Lingering for %d seconds...\n");
    if (timer != -1) {
        lbm_cancel_timer(ctx, timer, NULL);
    }
    EX_TRY(lbm_src_delete, src);
    EX_TRY(lbm_context_delete, ctx);
}

int main(int argc, char **argv)
{
    int first = ex_parse(argc, argv, &program);
    lbm_context_attr_t *cattr;
    lbm_src_topic_attr_t *sattr;
    if ((opt.bits != 32 && opt.bits != 64) || (opt.bits == 32 && opt.first > UINT32_MAX)) {
        ex_usage(argv[0], &program, 1);
    }
    if (opt.verify) {
        opt.length = ex_verify_length(opt.length);
    }
    char *data = calloc(1, opt.length > MIN_BUFFER ? opt.length : MIN_BUFFER);
    if (data == NULL) {
        fprintf(stderr, "no memory for a message of %lu bytes\n", opt.length);
        return 1;
    }
    EX_TRY(lbm_context_attr_create, &cattr);
    EX_TRY(lbm_src_topic_attr_create, &sattr);
    ex_apply_rate(&opt.rate, cattr, sattr);
    run(argv[first], cattr, sattr, data);
    EX_TRY(lbm_src_topic_attr_delete, sattr);
    EX_TRY(lbm_context_attr_delete, cattr);
    free(data);
    return 0;
}
