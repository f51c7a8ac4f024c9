/* Late join: a receiver comes to a source that retains many messages, and more keep
 * arriving. In one run: how fast a receiver from the beginning gets them all (live);
 * how fast the late joiner gets what it missed; how long it takes until it stands
 * where the stream is; what another receiver's latency does meanwhile; and what it
 * all keeps in memory. With the default options, or with those that --fast names.
 *
 * One process: the sending thread, and a context for the source and for each of the
 * receivers, whose clocks are the same. Until the late joiner comes, a receiver without
 * late join stands in its place: that a message goes to one more is not measured. */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench_exchange.h"
#include "bench_um.h"

#define LATENCIES_MAX (1u << 22)
#define DEFAULT_OUTSTANDING 10u /* retransmit_request_outstanding_maximum */
#define PACE_STEP_NS 200000u    /* the sender wakes up so often, and sends what is due */
#define LIVE_CORE 0             /* of the sender and the other receiver, where they are placed */
#define REPLAY_CORE 1           /* of the source's context, which answers, and the late joiner's */
#define REPLAY_TIMED_EVERY 64u  /* messages: the clock is read for none of the live rate's, either */

static struct {
    uint64_t retained, size;
    double rate, seconds, give_up;
    bool fast, placed;
    const char *outstanding, *buffer; /* options for speed, docs/performance.md names them */
} run = {.retained = 1000000,
         .size = 64,
         .rate = 50000,
         .seconds = 3,
         .give_up = 300,
         .outstanding = "2048",
         .buffer = "16777216"};

/* ---- placement ---- */

/* The calling thread, and those that it creates from here on, run on this core, where they are to be placed. */
static void on_core(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)core, &set);
    if (run.placed && sched_setaffinity(0, sizeof set, &set) != 0) {
        bench_die("core %d", core);
    }
}

/* What a receiver has seen. Written by its context's thread. */
struct taker {
    _Atomic uint64_t delivered, replayed, lost, last; /* last: sequence number + 1 */
    _Atomic uint64_t first_ns, replayed_ns;           /* the first message, the last replayed one */
    atomic_bool timing;
    uint32_t *latencies;
    _Atomic uint32_t latency_count;
};

static int on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv;
    struct taker *taker = clientd;
    if (msg->type == LBM_MSG_UNRECOVERABLE_LOSS || msg->type == LBM_MSG_UNRECOVERABLE_LOSS_BURST) {
        atomic_fetch_add(&taker->lost, 1);
    }
    if (msg->type != LBM_MSG_DATA) {
        return 0;
    }
    uint64_t sent_at;
    memcpy(&sent_at, msg->data, sizeof sent_at);
    if ((msg->flags & LBM_MSG_FLAG_RETRANSMIT) != 0) {
        uint64_t replayed = atomic_fetch_add_explicit(&taker->replayed, 1, memory_order_relaxed);
        if (replayed % REPLAY_TIMED_EVERY == 0) {
            atomic_store_explicit(&taker->replayed_ns, bench_now(), memory_order_relaxed);
        }
    } else if (atomic_load_explicit(&taker->timing, memory_order_relaxed) && taker->latency_count < LATENCIES_MAX) {
        taker->latencies[taker->latency_count++] = (uint32_t)(bench_now() - sent_at);
    }
    if (atomic_fetch_add_explicit(&taker->delivered, 1, memory_order_relaxed) == 0) {
        atomic_store(&taker->first_ns, bench_now());
    }
    atomic_store_explicit(&taker->last, (uint64_t)msg->sequence_number + 1, memory_order_relaxed);
    return 0;
}

/* ---- the objects ---- */

static void set_context(lbm_context_attr_t *attr, const char *name, const char *value)
{
    um_check(lbm_context_attr_str_setopt(attr, name, value), name);
}

static lbm_context_t *context(void)
{
    lbm_context_attr_t *attr = um_context_attr("127.0.0.1");
    set_context(attr, "request_tcp_port_low", "0");
    set_context(attr, "request_tcp_port_high", "0");
    if (run.fast) {
        set_context(attr, "response_session_maximum_buffer", run.buffer);
        set_context(attr, "response_tcp_nodelay", "1");
    }
    return um_context_of(attr);
}

static lbm_src_t *source(lbm_context_t *ctx, const char *name, bool retains)
{
    char text[32];
    lbm_src_topic_attr_t *attr = um_source_attr("tcp");
    um_check(lbm_src_topic_attr_str_setopt(attr, "transport_session_maximum_buffer", "1048576"), "buffer");
    if (retains) {
        snprintf(text, sizeof text, "%llu",
                 (unsigned long long)((run.retained * 4 + (uint64_t)(run.rate * run.give_up)) * (run.size + 76)));
        um_check(lbm_src_topic_attr_str_setopt(attr, "late_join", "1"), "late_join");
        um_check(lbm_src_topic_attr_str_setopt(attr, "retransmit_retention_size_threshold", text), "threshold");
    }
    return um_source_of(ctx, name, attr);
}

static lbm_rcv_t *receiver(lbm_context_t *ctx, const char *name, bool late, struct taker *taker)
{
    lbm_topic_t *topic;
    lbm_rcv_t *rcv;
    lbm_rcv_topic_attr_t *attr;
    um_check(lbm_rcv_topic_attr_create(&attr), "lbm_rcv_topic_attr_create");
    um_check(lbm_rcv_topic_attr_str_setopt(attr, "use_late_join", late ? "1" : "0"), "use_late_join");
    if (run.fast) {
        um_check(lbm_rcv_topic_attr_str_setopt(attr, "retransmit_request_outstanding_maximum", run.outstanding),
                 "outstanding");
    }
    um_check(lbm_rcv_topic_lookup(&topic, ctx, name, attr), "lbm_rcv_topic_lookup");
    um_check(lbm_rcv_create(&rcv, ctx, topic, on_message, taker, NULL), "lbm_rcv_create");
    lbm_rcv_topic_attr_delete(attr);
    return rcv;
}

/* The late joiner comes in a thread of its own: the sender keeps its pace while the receiver is made. */
struct joiner {
    lbm_context_t *ctx, *before_ctx; /* before: of who stood in its place */
    lbm_rcv_t *before;
    struct taker *taker;
    lbm_rcv_t *rcv;
};

static void *join_late(void *arg)
{
    struct joiner *joiner = arg;
    on_core(REPLAY_CORE);
    um_end(joiner->before, NULL, joiner->before_ctx);
    joiner->rcv = receiver(joiner->ctx, "bench/late", true, joiner->taker);
    return NULL;
}

static void taker_init(struct taker *taker)
{
    memset(taker, 0, sizeof *taker);
    taker->latencies = malloc(LATENCIES_MAX * sizeof *taker->latencies);
    if (taker->latencies == NULL) {
        bench_die("no memory");
    }
}

static void send_one(lbm_src_t *src, int flags)
{
    static char *message;
    uint64_t now = bench_now();
    message = message != NULL ? message : calloc(1, run.size);
    memcpy(message, &now, sizeof now);
    um_check(lbm_src_send(src, message, run.size, flags), "lbm_src_send");
}

static void wait_delivered(const struct taker *taker, uint64_t count)
{
    uint64_t give_up = bench_now() + (uint64_t)(run.give_up * 1e9);
    while (atomic_load(&taker->delivered) < count) {
        if (bench_now() > give_up) {
            bench_die("%llu of %llu messages came", (unsigned long long)taker->delivered, (unsigned long long)count);
        }
        bench_sleep_ms(1);
    }
}

/* ---- measuring ---- */

static uint64_t resident_bytes(void)
{
    unsigned long long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%llu %llu", &pages, &resident) != 2) {
        bench_die("/proc/self/statm");
    }
    fclose(file);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static double p99_us(struct taker *taker)
{
    atomic_store(&taker->timing, false);
    bench_sleep_ms(20);
    uint32_t count = taker->latency_count;
    qsort(taker->latencies, count, sizeof *taker->latencies, by_value);
    double p99 = count == 0 ? 0 : taker->latencies[(uint64_t)count * 99 / 100] * 1e-3;
    taker->latency_count = 0;
    return p99;
}

/* Messages a second from a source as it is let. */
static double send_and_count(lbm_src_t *src, struct taker *taker)
{
    um_check(um_src_wait_receivers(src, 1, 15000), "um_src_wait_receivers");
    uint64_t begin = bench_now();
    for (uint64_t i = 0; i < run.retained; i++) {
        send_one(src, i + 1 == run.retained ? LBM_MSG_FLUSH : 0);
    }
    wait_delivered(taker, run.retained);
    return (double)run.retained / ((double)(bench_now() - begin) * 1e-9);
}

/* Sends at the pace until the time is over, or the late joiner stands where the stream is. Returns the seconds. */
static double send_paced(lbm_src_t *src, const struct taker *late, double seconds, uint64_t *sent)
{
    uint64_t begin = bench_now(), first = *sent;
    for (;;) {
        uint64_t now = bench_now();
        double passed = (double)(now - begin) * 1e-9;
        uint64_t due = first + (uint64_t)(passed * run.rate);
        while (*sent < due) {
            send_one(src, ++*sent == due ? LBM_MSG_FLUSH : 0);
        }
        bool there = late != NULL && atomic_load(&late->last) + (uint64_t)(run.rate / 20) >= *sent;
        if (passed >= seconds || there) {
            return passed;
        }
        nanosleep(&(struct timespec){0, PACE_STEP_NS}, NULL);
    }
}

/* Latency of live messages while a bare replay takes place that has nothing to do with them: what late join costs
 * others on these cores at least. Also how many messages a second that replays. */
static double p99_beside_bare_replay(lbm_src_t *src, struct taker *other, uint64_t *sent, double *bare_rate)
{
    static struct bench_exchange bare;
    on_core(REPLAY_CORE);
    bench_exchange_begin(&bare, run.fast ? (uint32_t)atoi(run.outstanding) : DEFAULT_OUTSTANDING, run.size,
                         run.retained);
    on_core(LIVE_CORE);
    bench_sleep_ms(20);
    atomic_store(&other->timing, true);
    double seconds = send_paced(src, NULL, run.seconds, sent);
    double p99 = p99_us(other);
    *bare_rate = (double)bench_exchange_end(&bare) / (seconds + 0.04); /* p99_us() waits as well */
    return p99;
}

/* A source that retains nothing and one receiver: what the transport gives on this machine now. */
static double live_throughput(void)
{
    static struct taker taker;
    taker_init(&taker);
    lbm_context_t *sending = context(), *receiving = context();
    lbm_rcv_t *rcv = receiver(receiving, "bench/live", false, &taker);
    lbm_src_t *src = source(sending, "bench/live", false);
    double rate = send_and_count(src, &taker);
    um_end(rcv, NULL, receiving);
    um_end(NULL, src, sending);
    free(taker.latencies);
    return rate;
}

static void measure(void)
{
    static struct taker other, late, standing;
    taker_init(&other);
    taker_init(&standing);
    taker_init(&late);
    double live = live_throughput();
    on_core(REPLAY_CORE);
    lbm_context_t *sending = context(), *joining = context();
    struct joiner joiner = {.ctx = joining, .taker = &late, .before_ctx = context()};
    joiner.before = receiver(joiner.before_ctx, "bench/late", false, &standing);
    on_core(LIVE_CORE);
    lbm_context_t *receiving = context();
    lbm_rcv_t *rcv = receiver(receiving, "bench/late", false, &other);
    lbm_src_t *src = source(sending, "bench/late", true);
    um_check(um_src_wait_receivers(src, 2, 15000), "um_src_wait_receivers");
    double retaining = send_and_count(src, &other);
    uint64_t sent = run.retained;
    send_paced(src, NULL, run.seconds / 3, &sent);
    atomic_store(&other.timing, true);
    send_paced(src, NULL, run.seconds, &sent);
    double bare_rate, before = p99_us(&other), beside = p99_beside_bare_replay(src, &other, &sent, &bare_rate);
    uint64_t resident = resident_bytes(), missed = sent, joined = bench_now();
    atomic_store(&other.timing, true);
    pthread_t joins;
    if (pthread_create(&joins, NULL, join_late, &joiner) != 0) {
        bench_die("no thread");
    }
    double caught_up = send_paced(src, &late, run.give_up, &sent);
    pthread_join(joins, NULL);
    double during = p99_us(&other);
    uint64_t grown = resident_bytes() - resident, kept = (sent - missed) * (run.size + 76);
    bool there = atomic_load(&late.last) + (uint64_t)(run.rate / 20) >= sent;
    double replay_seconds = (double)(late.replayed_ns - late.first_ns) * 1e-9;
    double wait_seconds = (double)(late.first_ns - joined) * 1e-9;
    double replay = replay_seconds > 0 ? (double)late.replayed / replay_seconds : 0;
    bench_sleep_ms(200);
    printf("{\"fast\": %d, \"retained\": %llu, \"size\": %llu, \"rate\": %.0f, \"live_per_s\": %.0f, "
           "\"retaining_per_s\": %.0f, \"replay_per_s\": %.0f, \"ratio\": %.3f, \"caught_up\": %d, \"seconds\": %.2f, "
           "\"wait_s\": %.3f, \"replayed\": %llu, \"lost\": %llu, \"p99_before_us\": %.1f, \"p99_bare_us\": %.1f, "
           "\"p99_during_us\": %.1f, \"p99_ratio\": %.3f, \"p99_of_bare\": %.3f, \"bare_per_s\": %.0f, "
           "\"memory_bytes\": %lld}\n",
           run.fast, (unsigned long long)run.retained, (unsigned long long)run.size, run.rate, live, retaining, replay,
           replay / live, there, caught_up, wait_seconds, (unsigned long long)late.replayed,
           (unsigned long long)(late.lost + other.lost), before, beside, during, before > 0 ? during / before : 0,
           during / beside, bare_rate, (long long)grown - (long long)kept);
    um_end(joiner.rcv, NULL, joining);
    um_end(rcv, NULL, receiving);
    um_end(NULL, src, sending);
}

static void parse(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        if (strcmp(name, "--retained") == 0) {
            run.retained = strtoull(value, NULL, 10);
        } else if (strcmp(name, "--size") == 0) {
            run.size = strtoull(value, NULL, 10);
        } else if (strcmp(name, "--rate") == 0) {
            run.rate = atof(value);
        } else if (strcmp(name, "--seconds") == 0) {
            run.seconds = atof(value);
        } else if (strcmp(name, "--give-up") == 0) {
            run.give_up = atof(value);
        } else if (strcmp(name, "--fast") == 0) {
            run.fast = atoi(value) != 0;
        } else if (strcmp(name, "--placed") == 0) {
            run.placed = atoi(value) != 0;
        } else if (strcmp(name, "--outstanding") == 0) {
            run.outstanding = value;
        } else if (strcmp(name, "--buffer") == 0) {
            run.buffer = value;
        } else {
            bench_die("usage: %s --retained N --size BYTES --rate PER_S --seconds S --give-up S --fast 0|1 "
                      "--outstanding N --buffer BYTES",
                      argv[0]);
        }
    }
    if (run.retained < 1 || run.size < sizeof(uint64_t) || run.size > 60000 || run.rate <= 0 || run.seconds <= 0) {
        bench_die("--retained, --rate and --seconds must be above 0, --size 8..60000");
    }
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    measure();
    return 0;
}
