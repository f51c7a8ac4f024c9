/* Shared by the benchmarks: two pinned processes A (sender, ping) and B
 * (receiver, echo), a shared page for their figures, percentiles, and one JSON
 * line per result. Nothing here belongs to the thing measured. */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define BENCH_SAMPLES_MAX (1u << 20)

/* Every message starts with these 16 bytes. */
struct bench_header {
    uint64_t sequence;
    uint64_t kind; /* enum bench_kind */
};
enum bench_kind { BENCH_HELLO, BENCH_WARM, BENCH_MEASURED, BENCH_END };

/* Lives in memory shared by both processes. */
struct bench_shared {
    _Alignas(64) atomic_int ready;          /* calls of bench_meet */
    _Alignas(64) atomic_int seen_a, seen_b; /* a HELLO arrived */
    _Alignas(64) atomic_int done, abort;
    atomic_int far_pid;                     /* of role 1, for bench_veth */
    _Alignas(64) _Atomic uint64_t progress; /* one way: the sequence number B has come to, about */
    _Alignas(64) uint16_t port[2];          /* for the raw loops */
    uint64_t sent;
    uint64_t received;                               /* measured messages seen by B */
    uint64_t out_of_order;                           /* by sequence */
    double seconds;                                  /* B: first to last measured message */
    double cpu[2];                                   /* cores used while measuring */
    _Alignas(64) uint64_t plain_bytes, packed_bytes; /* A: before and after compression; 0: none of its own */
    _Alignas(64) uint64_t sample_count;
    uint32_t samples[BENCH_SAMPLES_MAX]; /* ns */
};

struct bench_options {
    const char *impl; /* um, raw, zmq */
    const char *mode; /* oneway, pingpong; cores: how far they are from each other */
    size_t size;      /* bytes of a message, at least 16 */
    size_t batch;     /* bytes handed to one send; 0 = the implementation's default */
    bool spin;
    double warm_seconds, seconds;
};

static inline uint64_t bench_now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

extern struct bench_shared *bench_shared;
extern struct bench_options bench_options;

static inline bool bench_oneway(void)
{
    return strcmp(bench_options.mode, "oneway") == 0;
}

/* In a loop that spins. */
static inline void bench_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* The times of a ping-pong; A keeps one. */
struct bench_pinger {
    uint64_t measure, end, sent_at, sequence;
};
void bench_pinger_init(struct bench_pinger *p);  /* the run begins now */
bool bench_pinger_reply(struct bench_pinger *p); /* the answer to what went out at sent_at is there; false: over */

void bench_die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
void bench_sleep_ms(unsigned ms);
/* Parse the options, make the shared page, run side(0) and side(1) as processes pinned to cores 0 and 1, print the
 * JSON. */
int bench_main(int argc, char **argv, void (*side)(int role));
/* B's bookkeeping of one-way messages: call per message. */
void bench_oneway_message(const void *data);
/* Lines as of a market feed, always the same ones: for messages that can be compressed, though not to nothing. */
void bench_text(char *text, size_t len);
/* Wait for the other side to come to the same call (both make the same calls in the same order); false on abort or
 * after 15 s. */
bool bench_meet(void);
/* The run is over: an END arrived, or a side gave up. */
bool bench_finished(void);
/* Round trip of one cache line between the two cores, ns: says where the host has put them. */
double bench_core_to_core_ns(void);

#endif
