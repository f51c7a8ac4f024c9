/* lbmstrm: sends on many numbered topics at a fixed total rate. Each thread
 * sends its share of the rate; main() prints the rate once per second. */
#include <inttypes.h>
#include <lbm/lbm.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ex_multi.h"
#include "ex_options.h"
#include "ex_print.h"

#define MIN_BUFFER 48
#define MAX_SOURCES 100000
#define ENDLESS 0xEFFFFFFFul

static struct {
    int bits, failover, linger, threads, tight;
    unsigned long initial, late_join, length, rate_per_second, sources, statistics;
    const char *messages, *root;
    struct ex_rate rate;
} opt = {.bits = 32,
         .length = 25,
         .linger = 10,
         .messages = "10000000",
         .rate_per_second = 10000,
         .root = "29west.example.multi",
         .sources = 100,
         .threads = 1};

static const struct ex_option options[] = {
    {'c', "config", EX_CONFIG, NULL, "FILE", "load a configuration file; may be repeated"},
    {'h', "help", EX_HELP, NULL, NULL, "show this text"},
    {'H', "hf", EX_FLAG, &opt.failover, NULL, "hot-failover sources"},
    {'i', "initial-topic", EX_UNSIGNED, &opt.initial, "NUM", "number of the first topic (0)"},
    {'j', "late-join", EX_UNSIGNED, &opt.late_join, "BYTES", "retain so many bytes for late joiners"},
    {'l', "length", EX_UNSIGNED, &opt.length, "BYTES", "message length (25)"},
    {'L', "linger", EX_INT, &opt.linger, "SEC", "wait before deleting the sources (10)"},
    {'m', "message-rate", EX_UNSIGNED, &opt.rate_per_second, "NUM", "messages per second over all topics (10000)"},
    {'M', "messages", EX_TEXT, &opt.messages, "NUM", "messages to send in all (10000000), or I: without end"},
    {'r', "root", EX_TEXT, &opt.root, "TEXT", "topics are TEXT.N (29west.example.multi)"},
    {'R', "rate", EX_RATE, &opt.rate, "[U|M]DATA/RETR", "LBT-RU or LBT-RM with these rate limits"},
    {'s', "statistics", EX_UNSIGNED, &opt.statistics, "SEC", "print transport statistics every SEC seconds"},
    {'S', "sources", EX_UNSIGNED, &opt.sources, "NUM", "topics (100)"},
    {'t', "tight", EX_FLAG, &opt.tight, NULL, "spin instead of sleeping between messages"},
    {'T', "threads", EX_INT, &opt.threads, "NUM", "sending threads (1, at most 16)"},
    {'x', "bits", EX_INT, &opt.bits, "BITS", "width of hot-failover sequence numbers: 32 (default) or 64"},
    EX_MONITOR("monitor-ctx", "context", context),
    EX_MONITOR("monitor-src", "sources", object),
    EX_COMMON_MONITOR,
    EX_END,
};

static const struct ex_program program = {"Sends messages on many topics at a fixed rate.", "", 0, options};

static struct ex_multi multi;
static unsigned long total_messages;
static atomic_ulong sent;
static atomic_int finished;

static int on_event(lbm_src_t *src, int event, void *ed, void *clientd)
{
    if (event == LBM_SRC_EVENT_CONNECT || event == LBM_SRC_EVENT_DISCONNECT) {
        return 0; /* one for each source of a session is too much to read */
    }
    return ex_on_source_event(src, event, ed, NULL);
}

/* `number`: of hot failover. */
static int try_to_send(lbm_src_t *src, const char *data, uint64_t number)
{
    if (!opt.failover) {
        return lbm_src_send(src, data, opt.length, LBM_SRC_NONBLOCK);
    }
    if (opt.bits == 32) {
        return lbm_hf_src_send(src, data, opt.length, (lbm_uint_t)number, LBM_SRC_NONBLOCK);
    }
    lbm_src_send_ex_info_t extras = {.flags = LBM_SRC_SEND_EX_FLAG_HF_64, .hf_sqn.u64 = number};
    return lbm_hf_src_send_ex(src, data, opt.length, 0, LBM_SRC_NONBLOCK, &extras);
}

static void send_one(lbm_src_t *src, const char *data, uint64_t number)
{
    for (unsigned blocked = 0; try_to_send(src, data, number) == LBM_FAILURE;) {
        if (lbm_errnum() != LBM_EWOULDBLOCK) {
            ex_fail(opt.failover ? "lbm_hf_src_send" : "lbm_src_send");
        }
        if (++blocked == 1000) {
            printf("LBM send blocked 1000 times\n");
            fflush(stdout);
            blocked = 0;
        }
        ex_sleep_ms(1);
    }
}

static void wait_until(double due)
{
    for (double now = ex_now(); now < due; now = ex_now()) {
        if (!opt.tight) {
            ex_sleep_ms(1);
        }
    }
}

/* The topic after `topic`. Those of hot failover have one thread each, which sends their numbers in order. */
static unsigned long next_topic(unsigned long topic, unsigned long thread)
{
    unsigned long next = topic + (unsigned long)opt.threads;
    if (next < opt.sources) {
        return next;
    }
    return opt.failover ? thread : next % opt.sources;
}

static void *send_share(void *arg)
{
    int thread = (int)(intptr_t)arg;
    unsigned long threads = (unsigned long)opt.threads;
    unsigned long messages = total_messages / threads + ((unsigned long)thread < total_messages % threads ? 1 : 0);
    unsigned long topic = (unsigned long)thread % opt.sources;
    double interval = (double)opt.threads / (double)opt.rate_per_second, begin = ex_now();
    char *data = calloc(1, opt.length > MIN_BUFFER ? opt.length : MIN_BUFFER);
    if (data == NULL) {
        fprintf(stderr, "no memory for a message of %lu bytes\n", opt.length);
        exit(1);
    }
    uint64_t round = 0; /* one message to each topic of this thread: their number */
    for (unsigned long count = 0; count < messages; count++) {
        wait_until(begin + (double)count * interval);
        snprintf(data, MIN_BUFFER, "message %" PRIu64 " (%d)", (uint64_t)count, (int)topic);
        send_one(multi.sources[topic], data, round);
        sent++;
        unsigned long next = next_topic(topic, (unsigned long)thread);
        round += next <= topic;
        topic = next;
    }
    free(data);
    finished++;
    return NULL;
}

static void run(void)
{
    pthread_t threads[EX_MAX_THREADS];
    printf("Created %d Sources. Will start sending data now.\n", (int)opt.sources);
    printf("Using %d threads to send.\n", opt.threads);
    fflush(stdout);
    for (int i = 0; i < opt.threads; i++) {
        int error = pthread_create(&threads[i], NULL, send_share, (void *)(intptr_t)i);
        if (error != 0) {
            fprintf(stderr, "pthread_create: error %d\n", error);
            exit(1);
        }
    }
    double last = ex_now();
    unsigned long last_sent = 0;
    while (finished < opt.threads) {
        ex_sleep_ms(100);
        double now = ex_now();
        if (now - last >= 1.0 || finished == opt.threads) {
            unsigned long current = sent;
            printf("%d msgs/sec\n", (int)((double)(current - last_sent) / (now - last)));
            fflush(stdout);
            last = now;
            last_sent = current;
        }
    }
    for (int i = 0; i < opt.threads; i++) {
        pthread_join(threads[i], NULL);
    }
    EX_TRY(lbm_flush_all, multi.ctx);
}

static bool sends_final_advertisements(lbm_src_topic_attr_t *attr)
{
    int on = 0;
    size_t length = sizeof(on);
    EX_TRY(lbm_src_topic_attr_getopt, attr, "resolver_send_final_advertisements", &on, &length);
    return on != 0;
}

int main(int argc, char **argv)
{
    ex_parse(argc, argv, &program);
    lbm_context_attr_t *cattr;
    lbm_src_topic_attr_t *sattr;
    total_messages = opt.messages[0] == 'I' ? ENDLESS : strtoul(opt.messages, NULL, 10);
    if (opt.sources < 1 || opt.sources > MAX_SOURCES || opt.threads < 1 || opt.threads > EX_MAX_THREADS ||
        opt.rate_per_second < 1 || (opt.bits != 32 && opt.bits != 64) ||
        (opt.failover && (unsigned long)opt.threads > opt.sources)) {
        ex_usage(argv[0], &program, 1);
    }
    EX_TRY(lbm_context_attr_create, &cattr);
    EX_TRY(lbm_src_topic_attr_create, &sattr);
    ex_apply_late_join(opt.late_join, sattr);
    ex_apply_rate(&opt.rate, cattr, sattr);
    multi = (struct ex_multi){opt.root,     opt.initial, opt.sources, opt.statistics, 0,
                              opt.failover, on_event,    NULL,        NULL,           -1};
    ex_multi_create(&multi, cattr, sattr);
    run();
    if (opt.linger > 0) {
        printf("Lingering for %d seconds...\n", opt.linger);
        fflush(stdout);
        ex_sleep_ms((unsigned long)opt.linger * 1000);
    }
    ex_multi_delete_sources(&multi);
    if (sends_final_advertisements(sattr)) {
        printf("Lingering an additional %d seconds for final advertisements...\n", 11);
        fflush(stdout);
        ex_sleep_ms(11000);
    }
    printf("Quitting....\n");
    EX_TRY(lbm_context_delete, multi.ctx);
    EX_TRY(lbm_src_topic_attr_delete, sattr);
    EX_TRY(lbm_context_attr_delete, cattr);
    return 0;
}
