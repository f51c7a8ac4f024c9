/* lbmpong: round-trip times between a "ping" and a "pong" process. The receiver
 * callback answers (pong) or measures and sends the next message (ping). */
#include <lbm/lbm.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ex_options.h"
#include "ex_print.h"
#include "ex_receiver.h"

#define LARGE_RTT_MS 100.0 /* above this the usual reason is batching at the other end */

static struct {
    int collect, warm_up, queue, print_rtt, verbose, immediate;
    unsigned long length, messages, pause, seconds, seed;
    const char *prefix;
    struct ex_rate rate;
} opt = {.length = 20, .messages = 200, .warm_up = -1, .seconds = 300, .prefix = "lbmpong"};

static const struct ex_option options[] = {
    {'C', NULL, EX_FLAG, &opt.collect, NULL, "keep every round-trip time for median and standard deviation"},
    {'c', NULL, EX_CONFIG, NULL, "FILE", "load a configuration file; may be repeated"},
    {'h', NULL, EX_HELP, NULL, NULL, "show this text"},
    {'i', NULL, EX_INT, &opt.warm_up, "NUM", "messages at the start that do not count (0)"},
    {'o', NULL, EX_LATER_ARG, "persistence", "NUM", "offset of the registration ids"},
    {'I', NULL, EX_FLAG, &opt.immediate, NULL, "use multicast immediate messages"},
    {'l', NULL, EX_UNSIGNED, &opt.length, "BYTES", "message length (20)"},
    {'M', NULL, EX_UNSIGNED, &opt.messages, "NUM", "round trips (200)"},
    {'P', NULL, EX_UNSIGNED, &opt.pause, "MS", "pause before each message (0)"},
    {'q', NULL, EX_FLAG, &opt.queue, NULL, "receive through an event queue"},
    {'r', NULL, EX_RATE, &opt.rate, "[U|M]DATA/RETR", "LBT-RU or LBT-RM with these rate limits"},
    {'R', NULL, EX_FLAG, &opt.print_rtt, NULL, "print each round-trip time"},
    {'s', NULL, EX_UNSIGNED, &opt.seed, "NUM", "fill messages from this random seed (0: zeros)"},
    {'t', NULL, EX_UNSIGNED, &opt.seconds, "SEC", "longest run (300)"},
    {'T', NULL, EX_TEXT, &opt.prefix, "NAME", "topics are NAME/ping and NAME/pong (lbmpong)"},
    {'v', NULL, EX_FLAG, &opt.verbose, NULL, "print every message"},
    EX_END,
};

static const struct ex_program program = {"Measures round trips between two processes.", "ping|pong", 1, options};

/* What both ends know of each other's message; the time is only meaningful to the ping that wrote it. */
struct payload {
    uint64_t sent_ns;
    uint32_t number;
};

/* Owned by the receiver callback; main() reads it once the run is over. */
static struct {
    lbm_context_t *ctx;
    lbm_src_t *src; /* NULL with -I */
    char topic[LBM_MSG_MAX_TOPIC_LEN];
    char *data;
    bool ping;
    double *rtt_ms;                          /* with -C */
    uint32_t warm_up_left, counted, awaited; /* number of the pong that counts */
    double sum_ms, min_ms, max_ms, first, last;
    unsigned long min_number, max_number;
    volatile int ready, done;
} run;

static uint64_t now_ns(void)
{
    return (uint64_t)(ex_now() * 1e9);
}

static int send_message(const char *data, size_t length)
{
    const int flags = LBM_MSG_FLUSH | LBM_SRC_NONBLOCK;
    if (opt.immediate) {
        return lbm_multicast_immediate_message(run.ctx, run.topic, data, length, flags);
    }
    return lbm_src_send(run.src, data, length, flags);
}

static void send_ping(uint32_t number)
{
    struct payload payload = {now_ns(), number};
    if (opt.pause > 0) {
        ex_sleep_ms(opt.pause);
        payload.sent_ns = now_ns();
    }
    memcpy(run.data, &payload, sizeof(payload));
    EX_TRY(send_message, run.data, opt.length);
}

static void count_rtt(double ms)
{
    if (run.counted == 0 || ms < run.min_ms) {
        run.min_ms = ms;
        run.min_number = run.counted;
    }
    if (run.counted == 0 || ms > run.max_ms) {
        run.max_ms = ms;
        run.max_number = run.counted;
    }
    if (run.rtt_ms != NULL) {
        run.rtt_ms[run.counted] = ms;
    }
    run.sum_ms += ms;
    run.counted++;
}

static void on_pong(const lbm_msg_t *msg)
{
    struct payload payload;
    if (msg->len < sizeof(payload) || run.done) {
        return;
    }
    memcpy(&payload, msg->data, sizeof(payload));
    if (payload.number != run.awaited) {
        return; /* the answer to another of the first pings with -I */
    }
    run.awaited++;
    run.ready = 1;
    double ms = (double)(now_ns() - payload.sent_ns) / 1e6;
    if (run.warm_up_left > 0) {
        if (opt.print_rtt) {
            printf("RTT ignore (%d) %.04g msec\n", (int)run.warm_up_left, ms);
        }
        if (--run.warm_up_left == 0) {
            run.first = ex_now();
        }
    } else {
        count_rtt(ms);
        if (opt.print_rtt && opt.verbose) {
            printf("RTT %.04g msec, msg %d\n", ms, (int)run.counted);
        } else if (opt.print_rtt) {
            printf("RTT %.04g msec\n", ms);
        }
    }
    run.last = ex_now();
    if (run.counted >= opt.messages) {
        run.done = 1;
        return;
    }
    send_ping(payload.number + 1);
}

static void on_ping(const lbm_msg_t *msg)
{
    if (send_message(msg->data, msg->len) == LBM_FAILURE) {
        fprintf(stderr, "%s\n", lbm_errmsg());
    }
}

static int on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    switch (msg->type) {
    case LBM_MSG_DATA:
        if (opt.verbose && msg->hr_timestamp.tv_sec != 0) {
            printf("RX HR_TS: %lu.%.9lu  for SQN %u\n", (unsigned long)msg->hr_timestamp.tv_sec,
                   (unsigned long)msg->hr_timestamp.tv_nsec, msg->sequence_number);
        }
        if (opt.verbose && !run.ping) {
            printf("[%s][%s][%u], %lu bytes\n", msg->topic_name, msg->source, msg->sequence_number,
                   (unsigned long)msg->len);
        }
        if (run.ping) {
            on_pong(msg);
        } else {
            on_ping(msg);
        }
        return 0;
    case LBM_MSG_BOS:
        printf("[%s][%s], Beginning of Transport Session\n", msg->topic_name, msg->source);
        run.ready = 1;
        break;
    case LBM_MSG_EOS:
        printf("[%s][%s], End of Transport Session\n", msg->topic_name, msg->source);
        break;
    case LBM_MSG_UNRECOVERABLE_LOSS:
        printf("[%s][%s][%u], LOST\n", msg->topic_name, msg->source, msg->sequence_number);
        break;
    case LBM_MSG_UNRECOVERABLE_LOSS_BURST:
        printf("[%s][%s][%u], LOST BURST\n", msg->topic_name, msg->source, msg->sequence_number);
        break;
    default:
        printf("Unhandled receiver event [%d] from source [%s].\n", msg->type, msg->source);
        break;
    }
    fflush(stdout);
    return 0;
}

static atomic_int connected;

static int on_source_event(lbm_src_t *src, int event, void *ed, void *clientd)
{
    if (event == LBM_SRC_EVENT_CONNECT) {
        connected = 1;
    }
    return ex_on_source_event(src, event, ed, NULL);
}

static int compare_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_collected(void)
{
    double mean = run.sum_ms / run.counted, squares = 0;
    for (uint32_t i = 0; i < run.counted; i++) {
        squares += (run.rtt_ms[i] - mean) * (run.rtt_ms[i] - mean);
    }
    qsort(run.rtt_ms, run.counted, sizeof(double), compare_double);
    uint32_t half = run.counted / 2;
    double median = run.counted % 2 ? run.rtt_ms[half] : (run.rtt_ms[half - 1] + run.rtt_ms[half]) / 2;
    double deviation = run.counted > 1 ? sqrt(squares / (run.counted - 1)) : 0;
    printf("min/max msg = %d/%d median/stddev %.04g/%.04g msec\n", (int)run.min_number, (int)run.max_number, median,
           deviation);
}

static void print_loss(lbm_rcv_t *rcv)
{
    int count = 0;
    unsigned long lost = 0;
    int type = LBM_TRANSPORT_STAT_TCP;
    lbm_rcv_transport_stats_t *stats = ex_all_stats(lbm_context_from_rcv(rcv), rcv, 8, &count);
    for (int i = 0; stats != NULL && i < count; i++) {
        lost += ex_lost_packets(&stats[i]);
        type = stats[i].type;
    }
    free(stats);
    if (lost > 0) {
        printf("The latency for this LBT-%s session of lbmpong might be skewed by loss\n",
               type == LBM_TRANSPORT_STAT_LBTRM ? "RM" : "RU");
        printf("Source loss: %lu    Receiver loss: %lu\n", 0ul, lost);
    }
}

static void print_result(lbm_rcv_t *rcv)
{
    if (run.counted == 0) {
        return;
    }
    double mean = run.sum_ms / run.counted;
    printf("Elapsed time %.04g secs. %lu messages (RTTs). %.04g msec RTT, %.04g msec latency\n", run.last - run.first,
           (unsigned long)run.counted, mean, mean / 2);
    print_loss(rcv);
    if (run.rtt_ms != NULL) {
        print_collected();
    }
    printf("%u RTT measurements. ", (unsigned)run.counted);
    printf("RTT min/avg/max = %.04g/%.04g/%.04g ms\n", run.min_ms, mean, run.max_ms);
    if (mean > LARGE_RTT_MS) {
        printf("Large RTT detected--perhaps you forgot the '-R' in 'lbmpong -R pong'?\n");
    }
}

static void prepare(void)
{
    if (opt.length < sizeof(struct payload)) {
        opt.length = sizeof(struct payload);
    }
    run.warm_up_left = opt.warm_up > 0 ? (uint32_t)opt.warm_up : 0;
    run.data = calloc(1, opt.length);
    run.rtt_ms = opt.collect ? calloc(opt.messages + 1, sizeof(double)) : NULL;
    if (run.data == NULL || (opt.collect && run.rtt_ms == NULL)) {
        fprintf(stderr, "no memory for %lu bytes and %lu measurements\n", opt.length, opt.messages);
        exit(1);
    }
    if (opt.seed != 0) {
        srand((unsigned)opt.seed);
        for (unsigned long i = 0; i < opt.length; i++) {
            run.data[i] = (char)rand();
        }
    }
}

/* The first ping goes out when both directions stand: our receiver has its session and our source its receiver. */
static void start_ping(double deadline)
{
    while ((!run.ready || !connected) && ex_now() < deadline) {
        ex_sleep_ms(10);
    }
    if (run.ready && connected) {
        run.first = ex_now();
        send_ping(0);
    }
}

/* Immediate messages have no session that begins: the first ping is sent until it is answered. */
static void start_immediate_ping(double deadline)
{
    run.first = ex_now();
    while (!run.ready && ex_now() < deadline) {
        struct payload payload = {now_ns(), 0};
        char *first = calloc(1, opt.length); /* run.data belongs to the callback as soon as an answer comes */
        if (first == NULL) {
            ex_fail("calloc");
        }
        memcpy(first, &payload, sizeof(payload));
        EX_TRY(send_message, first, opt.length);
        free(first);
        ex_sleep_until(0.2, &run.ready);
    }
}

/* What is sent to the group is to be received from it, too, where the configuration says nothing else. */
static void listen_to_group(lbm_context_attr_t *cattr)
{
    char group[256];
    size_t len = sizeof(group);
    EX_TRY(lbm_context_attr_str_getopt, cattr, "mim_incoming_address", group, &len);
    if (strcmp(group, "0.0.0.0") == 0) {
        len = sizeof(group);
        EX_TRY(lbm_context_attr_str_getopt, cattr, "mim_outgoing_address", group, &len);
        EX_TRY(lbm_context_attr_str_setopt, cattr, "mim_incoming_address", group);
    }
}

static void create_source(lbm_context_t *ctx, const lbm_src_topic_attr_t *sattr)
{
    lbm_topic_t *topic;
    run.ctx = ctx;
    snprintf(run.topic, sizeof(run.topic), "%s/%s", opt.prefix, run.ping ? "ping" : "pong");
    if (!opt.immediate) {
        EX_TRY(lbm_src_topic_alloc, &topic, ctx, run.topic, sattr);
        EX_TRY(lbm_src_create, &run.src, ctx, topic, on_source_event, NULL, NULL);
    }
}

int main(int argc, char **argv)
{
    int first = ex_parse(argc, argv, &program);
    run.ping = strcmp(argv[first], "ping") == 0;
    if (!run.ping && strcmp(argv[first], "pong") != 0) {
        ex_usage(argv[0], &program, 1);
    }
    lbm_context_attr_t *cattr;
    lbm_src_topic_attr_t *sattr;
    lbm_context_t *ctx;
    lbm_topic_t *topic;
    lbm_rcv_t *rcv;
    struct ex_queue queue = {NULL, 0};
    char name[LBM_MSG_MAX_TOPIC_LEN];
    prepare();
    EX_TRY(lbm_context_attr_create, &cattr);
    EX_TRY(lbm_src_topic_attr_create, &sattr);
    if (opt.immediate) {
        ex_apply_immediate_rate(&opt.rate, cattr);
        listen_to_group(cattr);
    } else {
        ex_apply_rate(&opt.rate, cattr, sattr);
    }
    if (opt.queue) {
        ex_queue_start(&queue, "event queue threshold exceeded - event %x, sz %lu, delay %lu\n");
    }
    printf(opt.queue ? "Event queue in use\n" : "No event queue\n");
    EX_TRY(lbm_context_create, &ctx, cattr, NULL, NULL);
    create_source(ctx, sattr);
    snprintf(name, sizeof(name), "%s/%s", opt.prefix, run.ping ? "pong" : "ping");
    EX_TRY(lbm_rcv_topic_lookup, &topic, ctx, name, NULL);
    EX_TRY(lbm_rcv_create, &rcv, ctx, topic, on_message, NULL, queue.evq);
    fflush(stdout);
    double deadline = ex_now() + (double)opt.seconds;
    if (run.ping) {
        (opt.immediate ? start_immediate_ping : start_ping)(deadline);
    }
    ex_sleep_until(deadline - ex_now(), &run.done);
    print_result(rcv);
    printf("Quitting....\n");
    fflush(stdout);
    EX_TRY(lbm_rcv_delete, rcv);
    if (run.src != NULL) {
        EX_TRY(lbm_src_delete, run.src);
    }
    EX_TRY(lbm_context_delete, ctx);
    if (opt.queue) {
        ex_queue_stop(&queue);
    }
    EX_TRY(lbm_src_topic_attr_delete, sattr);
    EX_TRY(lbm_context_attr_delete, cattr);
    free(run.data);
    free(run.rtt_ms);
    return 0;
}
