/* What one send takes: a smart source beside lbm_src_send() with LBM_MSG_FLUSH, both
 * over the same transport of one context, each on a session of its own, with a
 * receiver in another process. In one run: rounds of both by turns, so that a
 * disturbance meets both; every send is timed. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench_um.h"

#define ROUND 100u   /* sends of one kind before it is the other's turn */
#define LEAST 50000u /* sends of each kind: what p99.9 is told of */
#define RATE "4000000000"

enum kind { PLAIN, SMART, KINDS };

static struct {
    const char *transport;
    size_t size;
    double seconds;
} run = {"lbt-rm", 64, 0.5};

static struct shared {
    _Atomic uint64_t received[KINDS];
    atomic_bool done;
} * shared;

static struct {
    uint32_t *ns;
    size_t count, max;
    double busy_s; /* inside of sends */
} times[KINDS];
static unsigned left_out; /* rounds */

static lbm_context_t *context(void)
{
    lbm_context_attr_t *attr = um_context_attr("127.0.0.1");
    um_check(lbm_context_attr_str_setopt(attr, "transport_lbtrm_data_rate_limit", RATE), "data rate");
    um_check(lbm_context_attr_str_setopt(attr, "transport_lbtru_data_rate_limit", RATE), "data rate");
    um_check(lbm_context_attr_str_setopt(attr, "request_tcp_port_low", "0"), "request port");
    um_check(lbm_context_attr_str_setopt(attr, "request_tcp_port_high", "0"), "request port");
    return um_context_of(attr);
}

static int on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv;
    if (msg->type == LBM_MSG_DATA) {
        atomic_fetch_add_explicit((_Atomic uint64_t *)clientd, 1, memory_order_relaxed);
    }
    return 0;
}

static void pin(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void receive(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin(1);
    lbm_context_t *ctx = context();
    lbm_rcv_t *plain = um_receiver(ctx, "bench/plain", on_message, &shared->received[PLAIN]);
    lbm_rcv_t *smart = um_receiver(ctx, "bench/smart", on_message, &shared->received[SMART]);
    while (!atomic_load(&shared->done)) {
        bench_sleep_ms(10);
    }
    lbm_rcv_delete(plain);
    lbm_rcv_delete(smart);
    lbm_context_delete(ctx);
}

struct sources {
    lbm_src_t *plain;
    lbm_ssrc_t *smart;
    char *buffer, *message;
};

static int send_one(const struct sources *s, enum kind kind)
{
    return kind == SMART ? lbm_ssrc_send_ex(s->smart, s->buffer, run.size, 0, NULL)
                         : lbm_src_send(s->plain, s->message, run.size, LBM_MSG_FLUSH);
}

/* Both have come to their receiver. */
static void warm_up(const struct sources *s)
{
    uint64_t give_up = bench_now() + 15000000000ull;
    while (atomic_load(&shared->received[PLAIN]) == 0 || atomic_load(&shared->received[SMART]) == 0) {
        if (bench_now() > give_up) {
            bench_die("the receivers heard nothing");
        }
        um_check(send_one(s, PLAIN), "lbm_src_send");
        um_check(send_one(s, SMART), "lbm_ssrc_send_ex");
        bench_sleep_ms(1);
    }
    for (int i = 0; i < 20000; i++) {
        um_check(send_one(s, i % 2 == 0 ? PLAIN : SMART), "send");
    }
}

/* How often the system has taken the core away from this thread. */
static long taken_away(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw + usage.ru_nvcsw;
}

/* A round in which something else ran on the core tells nothing of sending: it is left out. */
static void measure_round(const struct sources *s, enum kind kind)
{
    uint32_t ns[ROUND];
    long away = taken_away();
    uint64_t begin = bench_now(), before = begin;
    for (unsigned i = 0; i < ROUND; i++) {
        um_check(send_one(s, kind), "send");
        uint64_t now = bench_now();
        ns[i] = (uint32_t)(now - before);
        before = now;
    }
    if (taken_away() != away || times[kind].count + ROUND > times[kind].max) {
        left_out++;
        return;
    }
    memcpy(times[kind].ns + times[kind].count, ns, sizeof ns);
    times[kind].count += ROUND;
    times[kind].busy_s += (double)(before - begin) * 1e-9;
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static double at(enum kind kind, double share)
{
    size_t i = (size_t)((double)times[kind].count * share);
    return times[kind].ns[i < times[kind].count ? i : times[kind].count - 1];
}

static void print(void)
{
    for (int k = 0; k < KINDS; k++) {
        qsort(times[k].ns, times[k].count, sizeof *times[k].ns, by_value);
    }
    double rate[KINDS];
    for (int k = 0; k < KINDS; k++) {
        rate[k] = (double)times[k].count / times[k].busy_s;
    }
    printf(
        "{\"bench\": \"smart\", \"transport\": \"%s\", \"size\": %zu, \"plain_p50_ns\": %.0f, \"smart_p50_ns\": %.0f, "
        "\"plain_p999_ns\": %.0f, \"smart_p999_ns\": %.0f, \"plain_per_s\": %.0f, \"smart_per_s\": %.0f, "
        "\"p50_ratio\": %.4f, \"p999_ratio\": %.4f, \"rate_ratio\": %.4f, \"sends\": %zu, \"left_out\": %u}\n",
        run.transport, run.size, at(PLAIN, 0.5), at(SMART, 0.5), at(PLAIN, 0.999), at(SMART, 0.999), rate[PLAIN],
        rate[SMART], at(SMART, 0.5) / at(PLAIN, 0.5), at(SMART, 0.999) / at(PLAIN, 0.999), rate[SMART] / rate[PLAIN],
        times[SMART].count, left_out);
}

static void send_all(void)
{
    pin(0);
    struct sources s = {.message = calloc(1, run.size)};
    lbm_context_t *ctx = context();
    lbm_topic_t *topic;
    char length[32];
    lbm_src_topic_attr_t *attr = um_source_attr(run.transport);
    snprintf(length, sizeof length, "%zu", run.size > 368 ? run.size : 368);
    um_check(lbm_src_topic_attr_str_setopt(attr, "smart_src_max_message_length", length), "length");
    um_check(lbm_src_topic_alloc(&topic, ctx, "bench/smart", attr), "lbm_src_topic_alloc");
    um_check(lbm_ssrc_create(&s.smart, ctx, topic, NULL, NULL, NULL), "lbm_ssrc_create");
    um_check(lbm_ssrc_buff_get(s.smart, &s.buffer, 0), "lbm_ssrc_buff_get");
    memset(s.buffer, 0, run.size);
    s.plain = um_source_of(ctx, "bench/plain", attr);
    for (int k = 0; k < KINDS; k++) {
        times[k].max = (size_t)(run.seconds * 2e6) + LEAST + ROUND;
        times[k].ns = calloc(times[k].max, sizeof *times[k].ns);
        if (times[k].ns == NULL) {
            bench_die("no memory");
        }
        memset(times[k].ns, 1, times[k].max * sizeof *times[k].ns); /* no page is missing later */
    }
    warm_up(&s);
    uint64_t end = bench_now() + (uint64_t)(run.seconds * 1e9);
    for (unsigned round = 0; bench_now() < end || times[PLAIN].count < LEAST || times[SMART].count < LEAST; round++) {
        measure_round(&s, round % 2 == 0 ? PLAIN : SMART);
        measure_round(&s, round % 2 == 0 ? SMART : PLAIN);
    }
    atomic_store(&shared->done, true);
    print();
    um_check(lbm_ssrc_delete(s.smart), "lbm_ssrc_delete");
    um_end(NULL, s.plain, ctx);
}

int main(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--transport") == 0) {
            run.transport = argv[i + 1];
        } else if (strcmp(argv[i], "--size") == 0) {
            run.size = strtoul(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--seconds") == 0) {
            run.seconds = strtod(argv[i + 1], NULL);
        } else {
            bench_die("unknown option %s", argv[i]);
        }
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        bench_die("mmap");
    }
    pid_t child = fork();
    if (child == 0) {
        receive();
        _exit(0);
    }
    send_all();
    return 0;
}
