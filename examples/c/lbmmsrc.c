/* lbmmsrc: sends on many numbered topics as fast as it may, from one to sixteen
 * threads. Each thread sends on its own share of the sources. */
#include <inttypes.h>
#include <lbm/lbm.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "ex_multi.h"
#include "ex_options.h"
#include "ex_print.h"
#include "ex_verify.h"

#define MIN_BUFFER 32
#define MAX_SOURCES 1000001

static struct {
    int delay, linger, threads, verbose, verify;
    unsigned long batch, initial, late_join, length, messages, pause, sources, statistics;
    const char *root;
    struct ex_rate rate;
} opt = {.batch = 1,
         .delay = 1,
         .length = 25,
         .linger = 1,
         .messages = 10000000,
         .root = "29west.example.multi",
         .sources = 100,
         .threads = 1};

static const struct ex_option options[] = {
    {'b', "batch", EX_UNSIGNED, &opt.batch, "NUM", "messages between two pauses (1)"},
    {'c', "config", EX_CONFIG, NULL, "FILE", "load a configuration file; may be repeated"},
    {'d', "delay", EX_INT, &opt.delay, "SEC", "wait before the first message (1)"},
    {'h', "help", EX_HELP, NULL, NULL, "show this text"},
    {'i', "initial-topic", EX_UNSIGNED, &opt.initial, "NUM", "number of the first topic (0)"},
    {'j', "late-join", EX_UNSIGNED, &opt.late_join, "BYTES", "retain so many bytes for late joiners"},
    {'l', "length", EX_UNSIGNED, &opt.length, "BYTES", "message length (25)"},
    {'L', "linger", EX_INT, &opt.linger, "SEC", "wait before deleting the sources (1)"},
    {'M', "messages", EX_UNSIGNED, &opt.messages, "NUM", "messages to send in all (10000000)"},
    {'P', "pause", EX_UNSIGNED, &opt.pause, "MS", "pause after each batch (0)"},
    {'r', "root", EX_TEXT, &opt.root, "TEXT", "topics are TEXT.N (29west.example.multi)"},
    {'R', "rate", EX_RATE, &opt.rate, "[U|M]DATA/RETR", "LBT-RU or LBT-RM with these rate limits"},
    {'s', "statistics", EX_UNSIGNED, &opt.statistics, "SEC", "print transport statistics every SEC seconds"},
    {'S', "sources", EX_UNSIGNED, &opt.sources, "NUM", "topics (100)"},
    {'T', "threads", EX_INT, &opt.threads, "NUM", "sending threads (1, at most 16)"},
    {'v', "verbose", EX_COUNTER, &opt.verbose, NULL, "print sources and transmission timestamps"},
    {'V', "verifiable_msg", EX_FLAG, &opt.verify, NULL, "send verifiable payloads"},
    EX_MONITOR("monitor-ctx", "context", context),
    EX_MONITOR("monitor-src", "sources", object),
    EX_COMMON_MONITOR,
    EX_END,
};

static const struct ex_program program = {"Sends messages on many topics.", "", 0, options};

static struct ex_multi multi;

static int on_event(lbm_src_t *src, int event, void *ed, void *clientd)
{
    if (event == LBM_SRC_EVENT_TIMESTAMP && opt.verbose) {
        const lbm_src_event_timestamp_info_t *info = ed;
        printf("Transmitted packet timestamp : %" PRIu64 ".%.9" PRIu64 " SQN : %u \n",
               (uint64_t)info->hr_timestamp.tv_sec, (uint64_t)info->hr_timestamp.tv_nsec, info->sequence_number);
        return 0;
    }
    if ((event == LBM_SRC_EVENT_CONNECT || event == LBM_SRC_EVENT_DISCONNECT) && !opt.verbose) {
        return 0; /* one for each source of a session is too much to read */
    }
    return ex_on_source_event(src, event, ed, NULL);
}

static unsigned long share(unsigned long total, int thread)
{
    unsigned long threads = (unsigned long)opt.threads;
    return total / threads + ((unsigned long)thread < total % threads ? 1 : 0);
}

static void *send_share(void *arg)
{
    int thread = (int)(intptr_t)arg;
    unsigned long messages = share(opt.messages, thread), topic = (unsigned long)thread % opt.sources;
    char *data = calloc(1, opt.length > MIN_BUFFER ? opt.length : MIN_BUFFER);
    if (data == NULL) {
        fprintf(stderr, "no memory for a message of %lu bytes\n", opt.length);
        exit(1);
    }
    for (unsigned long count = 0; count < messages; count++) {
        if (opt.verify) {
            ex_verify_fill(data, opt.length);
        } else {
            snprintf(data, MIN_BUFFER, "message %lu", count);
        }
        EX_TRY(lbm_src_send, multi.sources[topic], data, opt.length, LBM_SRC_BLOCK);
        topic = (topic + (unsigned long)opt.threads) % opt.sources;
        if (opt.pause > 0 && (count + 1) % opt.batch == 0) {
            ex_sleep_ms(opt.pause);
        }
    }
    free(data);
    if (thread != 0) {
        printf("Thread %d done\n", thread);
        fflush(stdout);
    }
    return NULL;
}

static void send_all(void)
{
    pthread_t threads[EX_MAX_THREADS];
    printf("Created %d Sources. Will start sending data now.\n", (int)opt.sources);
    printf("Using %d threads to send %u messages of size %lu bytes (%u messages per thread).\n", opt.threads,
           (unsigned)opt.messages, opt.length, (unsigned)(opt.messages / (unsigned long)opt.threads));
    fflush(stdout);
    double begin = ex_now();
    for (int i = 1; i < opt.threads; i++) {
        int error = pthread_create(&threads[i], NULL, send_share, (void *)(intptr_t)i);
        if (error != 0) {
            fprintf(stderr, "pthread_create: error %d\n", error);
            exit(1);
        }
    }
    send_share((void *)0);
    if (opt.threads > 1) {
        printf("Done sending on thread 0. Waiting for any other threads to finish.\n");
    }
    for (int i = 1; i < opt.threads; i++) {
        printf("Joining thread %d\n", i);
        pthread_join(threads[i], NULL);
        printf("Joined thread %d\n", i);
    }
    EX_TRY(lbm_flush_all, multi.ctx);
    ex_print_source_rate(ex_now() - begin, (double)opt.messages, (double)opt.messages * (double)opt.length);
}

int main(int argc, char **argv)
{
    ex_parse(argc, argv, &program);
    lbm_context_attr_t *cattr;
    lbm_src_topic_attr_t *sattr;
    if (opt.sources < 1 || opt.sources > MAX_SOURCES || opt.threads < 1 || opt.threads > EX_MAX_THREADS ||
        opt.batch < 1) {
        ex_usage(argv[0], &program, 1);
    }
    if (opt.verify) {
        opt.length = ex_verify_length(opt.length);
    }
    EX_TRY(lbm_context_attr_create, &cattr);
    EX_TRY(lbm_src_topic_attr_create, &sattr);
    ex_apply_late_join(opt.late_join, sattr);
    ex_apply_rate(&opt.rate, cattr, sattr);
    multi =
        (struct ex_multi){opt.root, opt.initial, opt.sources, opt.statistics, opt.verbose, 0, on_event, NULL, NULL, -1};
    ex_multi_create(&multi, cattr, sattr);
    if (opt.delay > 0) {
        printf("Delaying sending for %d second%s...\n", opt.delay, opt.delay > 1 ? "s" : "");
        fflush(stdout);
        ex_sleep_ms((unsigned long)opt.delay * 1000);
    }
    send_all();
    if (opt.linger > 0) {
        printf("Lingering for %d seconds...\n", opt.linger);
        fflush(stdout);
        ex_sleep_ms((unsigned long)opt.linger * 1000);
    }
    ex_multi_delete_sources(&multi);
    EX_TRY(lbm_context_delete, multi.ctx);
    EX_TRY(lbm_src_topic_attr_delete, sattr);
    EX_TRY(lbm_context_attr_delete, cattr);
    return 0;
}
