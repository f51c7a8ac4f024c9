/* What stream_source sends and stream_sink checks: numbered messages whose bytes
 * follow from their number. Also the helpers both programs share; single-threaded. */
#ifndef STREAM_H
#define STREAM_H

#include <lbm/lbm.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STREAM_TOPIC "stream"

struct stream_header {
    uint64_t stream; /* drawn by each source process */
    uint64_t number; /* from 0 */
    uint64_t due_ns; /* when it was to be sent: CLOCK_MONOTONIC, which all namespaces of a machine share */
    uint64_t length; /* of the whole message */
};

static inline uint64_t stream_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t stream_word(uint64_t stream, uint64_t number, uint64_t at)
{
    uint64_t z = stream ^ (number * 0x9e3779b97f4a7c15u + at);
    z = (z ^ (z >> 29)) * 0xbf58476d1ce4e5b9u;
    return z ^ (z >> 32);
}

static inline void stream_fill(char *out, size_t len, uint64_t stream, uint64_t number, uint64_t due_ns)
{
    struct stream_header header = {stream, number, due_ns, len};
    memcpy(out, &header, sizeof header);
    for (size_t at = sizeof header; at < len; at += 8) {
        uint64_t word = stream_word(stream, number, at);
        memcpy(out + at, &word, len - at < 8 ? len - at : 8);
    }
}

static inline bool stream_good(const char *data, size_t len, struct stream_header *header)
{
    if (len < sizeof *header) {
        return false;
    }
    memcpy(header, data, sizeof *header);
    for (size_t at = sizeof *header; at < len; at += 8) {
        uint64_t word = stream_word(header->stream, header->number, at);
        if (memcmp(data + at, &word, len - at < 8 ? len - at : 8) != 0) {
            return false;
        }
    }
    return header->length == len;
}

static inline void stream_check(int result, const char *what)
{
    if (result == LBM_FAILURE) {
        fprintf(stderr, "%s: %s\n", what, lbm_errmsg());
        exit(1);
    }
}

/* Log lines go to the output, where the test reads them. */
static inline int stream_log(int level, const char *message, void *clientd)
{
    (void)clientd;
    printf("LOG %d %s\n", level, message);
    fflush(stdout);
    return 0;
}

/* ---- percentiles of durations: 32 classes for every power of two ---- */

struct stream_histogram {
    uint64_t counts[64 * 32];
    uint64_t total, max_ns;
};

static inline size_t stream_class(uint64_t ns)
{
    if (ns < 32) {
        return (size_t)ns;
    }
    unsigned power = 63u - (unsigned)__builtin_clzll(ns);
    return (size_t)(power - 4) * 32 + (size_t)(ns >> (power - 5) & 31);
}

static inline uint64_t stream_class_ns(size_t class)
{
    return class < 32 ? class : (32 + class % 32 + 1) << (class / 32 - 1);
}

static inline void stream_histogram_add(struct stream_histogram *histogram, uint64_t ns)
{
    histogram->counts[stream_class(ns)]++;
    histogram->total++;
    histogram->max_ns = ns > histogram->max_ns ? ns : histogram->max_ns;
}

static inline double stream_percentile_us(const struct stream_histogram *histogram, double percent)
{
    uint64_t wanted = (uint64_t)((double)histogram->total * percent / 100), seen = 0;
    for (size_t class = 0; class < sizeof histogram->counts / sizeof histogram->counts[0]; class ++) {
        seen += histogram->counts[class];
        if (seen > wanted) {
            return (double)stream_class_ns(class) / 1000;
        }
    }
    return (double)histogram->max_ns / 1000;
}

static inline void stream_print_histogram(const char *name, const struct stream_histogram *histogram)
{
    printf("\"%s\": {\"p50\": %.1f, \"p90\": %.1f, \"p99\": %.1f, \"p99.9\": %.1f, \"max\": %.1f}", name,
           stream_percentile_us(histogram, 50), stream_percentile_us(histogram, 90),
           stream_percentile_us(histogram, 99), stream_percentile_us(histogram, 99.9),
           (double)histogram->max_ns / 1000);
}

#endif
