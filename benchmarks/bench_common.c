/* See bench_common.h. */
#define _GNU_SOURCE
#include "bench_common.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct bench_shared *bench_shared;
struct bench_options bench_options = {
    .impl = "um", .mode = "oneway", .size = 64, .batch = 0, .spin = false, .warm_seconds = 0.2, .seconds = 1.0};

void bench_die(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    if (bench_shared != NULL) {
        atomic_store(&bench_shared->abort, 1);
    }
    _exit(3);
}

void bench_sleep_ms(unsigned ms)
{
    struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&ts, NULL);
}

static void pin(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    (void)sched_setaffinity(0, sizeof set, &set);
}

static double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

void bench_pinger_init(struct bench_pinger *p)
{
    *p = (struct bench_pinger){.measure = bench_now() + (uint64_t)(bench_options.warm_seconds * 1e9)};
    p->end = p->measure + (uint64_t)(bench_options.seconds * 1e9);
}

bool bench_pinger_reply(struct bench_pinger *p)
{
    uint64_t now = bench_now();
    if (p->sent_at > p->measure && bench_shared->sample_count < BENCH_SAMPLES_MAX) {
        bench_shared->samples[bench_shared->sample_count++] = (uint32_t)(now - p->sent_at);
    }
    if (now > p->end) {
        atomic_store(&bench_shared->done, 1);
        return false;
    }
    return true;
}

static uint64_t first_ns, last_ns, expected;

/* The clock is read for the first message and every 256th: the rate is taken between two such readings. */
void bench_oneway_message(const void *data)
{
    struct bench_header header;
    memcpy(&header, data, sizeof header);
    if ((header.sequence & 63) == 0) {
        atomic_store_explicit(&bench_shared->progress, header.sequence, memory_order_relaxed);
    }
    if (header.kind == BENCH_MEASURED) {
        if (first_ns == 0) {
            first_ns = bench_now();
            expected = header.sequence;
        }
        if (header.sequence != expected) {
            bench_shared->out_of_order++;
        }
        expected = header.sequence + 1;
        if ((++bench_shared->received & 255) == 0) {
            last_ns = bench_now();
            bench_shared->seconds = (double)(last_ns - first_ns) * 1e-9;
        }
    } else if (header.kind == BENCH_HELLO) {
        atomic_store(&bench_shared->seen_b, 1);
    } else if (header.kind == BENCH_END) {
        atomic_store(&bench_shared->done, 1);
    }
}

void bench_text(char *text, size_t len)
{
    static const char *const symbols[] = {"AAPL", "MSFT", "NVDA", "AMZN", "GOOG", "META", "TSLA", "JPM",
                                          "XOM",  "SAP",  "SIE",  "ALV",  "BAS",  "VOW3", "BAYN", "DTE"};
    uint32_t random = 1;
    for (size_t at = 0; at < len;) {
        char line[96];
        uint32_t draws[4];
        for (int i = 0; i < 4; i++) {
            random = random * 1664525u + 1013904223u;
            draws[i] = random >> 8;
        }
        size_t n = (size_t)snprintf(line, sizeof line, "symbol=%s;bid=%u.%02u;ask=%u.%02u;size=%u;time=%u\n",
                                    symbols[draws[0] % 16], 100 + draws[1] % 100, draws[1] % 97, 100 + draws[2] % 100,
                                    draws[2] % 97, 100 * (1 + draws[3] % 50), draws[0]);
        n = n < len - at ? n : len - at;
        memcpy(text + at, line, n);
        at += n;
    }
}

bool bench_meet(void)
{
    static int meetings;
    int expected = 2 * ++meetings;
    atomic_fetch_add(&bench_shared->ready, 1);
    for (int i = 0; i < 15000 && !bench_finished(); i++) {
        if (atomic_load(&bench_shared->ready) >= expected) {
            return true;
        }
        bench_sleep_ms(1);
    }
    return false;
}

bool bench_finished(void)
{
    return atomic_load_explicit(&bench_shared->done, memory_order_relaxed) != 0 ||
           atomic_load_explicit(&bench_shared->abort, memory_order_relaxed) != 0;
}

static struct {
    _Alignas(128) atomic_uint_fast64_t to, from;
    double ns;
} probe;

#define PROBE_ROUNDS 20000

static void *probe_echo(void *arg)
{
    (void)arg;
    pin(1);
    for (uint64_t i = 1; i <= PROBE_ROUNDS; i++) {
        while (atomic_load_explicit(&probe.to, memory_order_acquire) != i) {
        }
        atomic_store_explicit(&probe.from, i, memory_order_release);
    }
    return NULL;
}

static void *probe_ping(void *arg)
{
    (void)arg;
    pin(0);
    uint64_t start = bench_now();
    for (uint64_t i = 1; i <= PROBE_ROUNDS; i++) {
        atomic_store_explicit(&probe.to, i, memory_order_release);
        while (atomic_load_explicit(&probe.from, memory_order_acquire) != i) {
        }
    }
    probe.ns = (double)(bench_now() - start) / PROBE_ROUNDS;
    return NULL;
}

double bench_core_to_core_ns(void)
{
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
        return 0;
    }
    pthread_t ping, echo;
    atomic_store(&probe.to, 0);
    atomic_store(&probe.from, 0);
    if (pthread_create(&echo, NULL, probe_echo, NULL) != 0) {
        return 0;
    }
    if (pthread_create(&ping, NULL, probe_ping, NULL) != 0) {
        exit(3);
    }
    pthread_join(ping, NULL);
    pthread_join(echo, NULL);
    return probe.ns;
}

static int compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static double percentile_us(double share)
{
    uint64_t n = bench_shared->sample_count;
    uint64_t index = (uint64_t)((double)n * share);
    return n == 0 ? 0 : bench_shared->samples[index < n ? index : n - 1] / 1e3;
}

static void print_result(double core_to_core)
{
    const struct bench_options *o = &bench_options;
    printf("{\"impl\": \"%s\", \"mode\": \"%s\", \"size\": %zu, \"batch\": %zu, \"wait\": \"%s\", \"core_to_core_ns\": "
           "%.0f, "
           "\"cpu_a\": %.2f, \"cpu_b\": %.2f",
           o->impl, o->mode, o->size, o->batch, o->spin ? "spin" : "block", core_to_core, bench_shared->cpu[0],
           bench_shared->cpu[1]);
    if (strcmp(o->mode, "oneway") != 0) {
        qsort(bench_shared->samples, bench_shared->sample_count, sizeof(uint32_t), compare_u32);
        printf(", \"samples\": %llu, \"p50_us\": %.2f, \"p99_us\": %.2f, \"p999_us\": %.2f, \"max_us\": %.2f}\n",
               (unsigned long long)bench_shared->sample_count, percentile_us(0.5), percentile_us(0.99),
               percentile_us(0.999), percentile_us(1.0));
    } else {
        double rate =
            bench_shared->seconds > 0 ? (double)(bench_shared->received & ~255ull) / bench_shared->seconds : 0;
        printf(", \"sent\": %llu, \"received\": %llu, \"out_of_order\": %llu, \"msgs_per_s\": %.0f, \"mb_per_s\": %.1f",
               (unsigned long long)bench_shared->sent, (unsigned long long)bench_shared->received,
               (unsigned long long)bench_shared->out_of_order, rate, rate * (double)o->size / 1e6);
        if (bench_shared->plain_bytes > 0) {
            printf(", \"compressed_to\": %.3f", (double)bench_shared->packed_bytes / (double)bench_shared->plain_bytes);
        }
        puts("}");
    }
}

static void parse(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(name, "--spin") == 0) {
            bench_options.spin = true;
            continue;
        }
        i++;
        if (strcmp(name, "--impl") == 0) {
            bench_options.impl = value;
        } else if (strcmp(name, "--mode") == 0) {
            bench_options.mode = value;
        } else if (strcmp(name, "--size") == 0) {
            bench_options.size = strtoul(value, NULL, 10);
        } else if (strcmp(name, "--batch") == 0) {
            bench_options.batch = strtoul(value, NULL, 10);
        } else if (strcmp(name, "--seconds") == 0) {
            bench_options.seconds = strtod(value, NULL);
        } else if (strcmp(name, "--warm") == 0) {
            bench_options.warm_seconds = strtod(value, NULL);
        } else {
            bench_die("usage: %s --impl um|raw|zmq --mode oneway|pingpong|cores --size BYTES --batch BYTES --seconds S "
                      "--warm S [--spin]",
                      argv[0]);
        }
    }
    if (bench_options.size < sizeof(struct bench_header)) {
        bench_die("--size %zu: must be at least %zu", bench_options.size, sizeof(struct bench_header));
    }
}

static pid_t start(int role, void (*side)(int role))
{
    pid_t pid = fork();
    if (pid == 0) {
        pin(role);
        double cpu = cpu_seconds();
        uint64_t begin = bench_now();
        side(role);
        bench_shared->cpu[role] = (cpu_seconds() - cpu) / ((double)(bench_now() - begin) * 1e-9);
        _exit(0);
    }
    return pid;
}

int bench_main(int argc, char **argv, void (*side)(int role))
{
    parse(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    bench_shared = mmap(NULL, sizeof *bench_shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (bench_shared == MAP_FAILED) {
        return 3;
    }
    double core_to_core = bench_core_to_core_ns();
    if (strcmp(bench_options.mode, "cores") == 0) { /* nothing but their distance */
        printf("{\"core_to_core_ns\": %.0f}\n", core_to_core);
        return 0;
    }
    pid_t pids[2] = {start(0, side), start(1, side)};
    int left = 2, failed = 0;
    for (int waited_ms = 0; left > 0; waited_ms++) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid > 0) {
            left--;
            if (status != 0) {
                failed = 1;
                atomic_store(&bench_shared->abort, 1);
            }
            pids[pid == pids[0] ? 0 : 1] = 0;
        } else {
            bench_sleep_ms(1);
            if (waited_ms > 60000) {
                failed = 1;
                for (int i = 0; i < 2; i++) {
                    if (pids[i] > 0) {
                        kill(pids[i], SIGKILL);
                    }
                }
            }
        }
    }
    if (failed) {
        fprintf(stderr, "%s %s: a side failed\n", bench_options.impl, bench_options.mode);
        return 1;
    }
    print_result(core_to_core);
    return 0;
}
