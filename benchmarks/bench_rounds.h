/* Rounds of several kinds of messages by turns, between a sender on core 0 and a
 * receiver in another process on core 1. Rates of a kind are medians over its rounds;
 * its share is that of its rate beside the rate of kind 0 in the same turn. Processor
 * time is a mean: some kernels count it in ticks, of which a round has few. */
#ifndef BENCH_ROUNDS_H
#define BENCH_ROUNDS_H

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench_um.h"

#define BENCH_KINDS_MAX 8
#define BENCH_ROUNDS_MAX 4096

/* Lives in memory shared by both processes. */
static struct bench_rounds {
    _Alignas(64) _Atomic uint64_t arrived; /* messages of all rounds; the receiver alone writes it */
    _Alignas(64) atomic_bool over;
    clockid_t clock; /* processor time of the receiver's process */
} * rounds;

struct bench_rounds_plan {
    unsigned kinds;
    const char *const *names;
    unsigned count;                                         /* that arrive in a round */
    double seconds;                                         /* of all kinds together */
    const char *only;                                       /* this kind alone, for a profiler; NULL: all */
    void (*send)(void *arg, unsigned kind, unsigned count); /* a round, flushed at its end */
    void *arg;
};

static inline void bench_count(_Atomic uint64_t *counter)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1, memory_order_release);
}

static inline void bench_rounds_wait_end(void)
{
    while (!atomic_load(&rounds->over)) {
        bench_sleep_ms(10);
    }
}

static inline void bench_pin(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static inline void bench_rounds_sides(void (*sender)(void), void (*receiver)(void))
{
    rounds = mmap(NULL, sizeof *rounds, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (rounds == MAP_FAILED) {
        bench_die("mmap");
    }
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        bench_pin(1);
        receiver();
        _exit(0);
    }
    if (child < 0 || clock_getcpuclockid(child, &rounds->clock) != 0) {
        bench_die("fork");
    }
    bench_pin(0);
    sender();
    atomic_store(&rounds->over, true);
    waitpid(child, NULL, 0);
}

/* Messages a second; processor time for each, ns: of the thread that sends, of the receiver's process. */
struct bench_round {
    double rate, sending, receiving;
};

static inline double bench_seconds(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static inline struct bench_round bench_one_round(const struct bench_rounds_plan *plan, unsigned kind)
{
    uint64_t want = atomic_load(&rounds->arrived) + plan->count;
    double receiving = bench_seconds(rounds->clock), sending = bench_seconds(CLOCK_THREAD_CPUTIME_ID);
    uint64_t begin = bench_now(), looks = 0;
    plan->send(plan->arg, kind, plan->count);
    sending = bench_seconds(CLOCK_THREAD_CPUTIME_ID) - sending;
    while (atomic_load_explicit(&rounds->arrived, memory_order_acquire) < want) {
        if (++looks % 65536 == 0 && bench_now() - begin > 20000000000ull) {
            bench_die("%s: messages of a round have not arrived", plan->names[kind]);
        }
        bench_relax();
    }
    double seconds = (double)(bench_now() - begin) * 1e-9;
    receiving = bench_seconds(rounds->clock) - receiving;
    return (struct bench_round){plan->count / seconds, sending * 1e9 / plan->count, receiving * 1e9 / plan->count};
}

static inline int bench_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline double bench_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, bench_by_value);
    return values[count / 2];
}

enum bench_figure { BENCH_RATE, BENCH_SENDING, BENCH_RECEIVING, BENCH_SHARE, BENCH_FIGURES };

static inline double bench_figure_of(const struct bench_round *of, const struct bench_round *plain,
                                     enum bench_figure figure)
{
    switch (figure) {
    case BENCH_RATE:
        return of->rate;
    case BENCH_SENDING:
        return of->sending;
    case BENCH_RECEIVING:
        return of->receiving;
    default:
        return of->rate / plain->rate;
    }
}

static inline void bench_one_kind(const struct bench_rounds_plan *plan)
{
    unsigned kind = 0;
    while (kind < plan->kinds && strcmp(plan->names[kind], plan->only) != 0) {
        kind++;
    }
    if (kind == plan->kinds) {
        bench_die("no kind of messages is called %s", plan->only);
    }
    double rate = 0;
    unsigned turns = 0;
    for (uint64_t end = bench_now() + (uint64_t)(plan->seconds * 1e9); bench_now() < end || turns < 5; turns++) {
        rate += bench_one_round(plan, kind).rate;
    }
    printf("\"%s_per_s\": %.4f, \"turns\": %u", plan->only, rate / turns, turns);
}

static inline double bench_mean(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += values[i];
    }
    return sum / (double)count;
}

/* Writes the figures as members of a JSON object: of each kind NAME_per_s, NAME_sending_ns and NAME_receiving_ns of
 * processor time, NAME_share. */
static inline void bench_rounds_run(const struct bench_rounds_plan *plan)
{
    static const char *const figures[BENCH_FIGURES] = {"per_s", "sending_ns", "receiving_ns", "share"};
    static struct bench_round got[BENCH_KINDS_MAX][BENCH_ROUNDS_MAX];
    double values[BENCH_ROUNDS_MAX];
    size_t turns = 0;
    if (plan->only != NULL) {
        bench_one_kind(plan);
        return;
    }
    for (unsigned kind = 0; kind < plan->kinds; kind++) {
        bench_one_round(plan, kind);
    }
    uint64_t end = bench_now() + (uint64_t)(plan->seconds * 1e9);
    for (; turns < BENCH_ROUNDS_MAX && (bench_now() < end || turns < 5); turns++) {
        for (unsigned i = 0; i < plan->kinds; i++) { /* who is first is another one each time */
            unsigned kind = (unsigned)(i + turns) % plan->kinds;
            got[kind][turns] = bench_one_round(plan, kind);
        }
    }
    for (unsigned kind = 0; kind < plan->kinds; kind++) {
        for (int figure = 0; figure < BENCH_FIGURES; figure++) {
            for (size_t i = 0; i < turns; i++) {
                values[i] = bench_figure_of(&got[kind][i], &got[0][i], (enum bench_figure)figure);
            }
            bool time = figure == BENCH_SENDING || figure == BENCH_RECEIVING;
            printf("\"%s_%s\": %.4f, ", plan->names[kind], figures[figure],
                   time ? bench_mean(values, turns) : bench_median(values, turns));
        }
    }
    printf("\"turns\": %zu", turns);
}

#endif
