/* Measures one encoding: SAMPLES different messages in turn, in batches that take some hundred microseconds. The figure
 * is the median of the batches, so that what interrupts a few of them does not count. One thread, nothing is sent. */
#include "nine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../bench_common.h"

#define SAMPLES 16
#define ROUNDS 16 /* of the samples in a batch */
#define BATCHES_MAX 100000

enum task { SERIALISE, PARSE, VIEW };

static struct nine samples[SAMPLES];
static uint8_t encoded[SAMPLES][NINE_BYTES_MAX];
static size_t lengths[SAMPLES];
static uint64_t sum;

static void die(const char *encoding, const char *what)
{
    fprintf(stderr, "%s: %s\n", encoding, what);
    exit(1);
}

static void make_samples(void)
{
    for (int i = 0; i < SAMPLES; i++) {
        struct nine *one = &samples[i];
        one->flag = true;
        one->number = 7 + i * 1000003;
        one->price = 3.14f + (float)i;
        memcpy(one->fixed, "Hello World!", sizeof one->fixed);
        snprintf(one->text, sizeof one->text, "variable length value%.*s", i % 4, " ...");
        one->flags[0] = one->flags[2] = true;
        one->count = 5;
        for (int k = 0; k < one->count; k++) {
            one->values[k] = k + 1 + i;
        }
        memcpy(one->pair[0], "aaaaa", sizeof one->pair[0]);
        memcpy(one->pair[1], "bbbbb", sizeof one->pair[1]);
    }
}

static void check(const struct nine_encoding *encoding)
{
    for (int i = 0; i < SAMPLES; i++) {
        struct nine back;
        memset(&back, 0, sizeof back);
        const uint8_t *bytes = encoding->serialise(&samples[i], encoded[i], &lengths[i]);
        if (bytes == NULL || lengths[i] > NINE_BYTES_MAX) {
            die(encoding->name, "the values are not written");
        }
        memmove(encoded[i], bytes, lengths[i]);
        if (!encoding->parse(encoded[i], lengths[i], &back)) {
            die(encoding->name, "its own bytes are not read");
        }
        if (memcmp(&back, &samples[i], sizeof back) != 0) {
            die(encoding->name, "the values are not those that were written");
        }
        if (encoding->parse(encoded[i], lengths[i] / 2, &back)) {
            die(encoding->name, "half of a message is taken for a whole one");
        }
    }
}

static void one(const struct nine_encoding *encoding, enum task task, int i)
{
    static uint8_t room[NINE_BYTES_MAX];
    static struct nine values;
    size_t len = 0;
    if (task == SERIALISE) {
        sum += encoding->serialise(&samples[i], room, &len)[20] + len;
    } else if (task == PARSE) {
        sum += encoding->parse(encoded[i], lengths[i], &values) + (uint64_t)values.number;
    } else {
        sum += encoding->view(encoded[i], lengths[i], &sum);
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double measure(const struct nine_encoding *encoding, enum task task, double seconds)
{
    static double batches[BATCHES_MAX];
    size_t count = 0;
    uint64_t begin = bench_now(), end = begin + (uint64_t)(seconds * 1e9), now = begin;
    while ((now < end || count == 0) && count < BATCHES_MAX) {
        for (int i = 0; i < SAMPLES * ROUNDS; i++) {
            one(encoding, task, i % SAMPLES);
        }
        uint64_t then = now;
        now = bench_now();
        batches[count++] = (double)(now - then) / (SAMPLES * ROUNDS);
    }
    qsort(batches, count, sizeof batches[0], ascending);
    return batches[count / 2];
}

int nine_main(int argc, char **argv, const struct nine_encoding *encoding)
{
    double seconds = argc == 3 && strcmp(argv[1], "--seconds") == 0 ? atof(argv[2]) : 0;
    if (seconds <= 0) {
        fprintf(stderr, "usage: %s --seconds S\n", argv[0]);
        return 2;
    }
    make_samples();
    check(encoding);
    measure(encoding, SERIALISE, seconds / 10); /* warm */
    double serialise = measure(encoding, SERIALISE, seconds / 2), parse = measure(encoding, PARSE, seconds / 2);
    double view = encoding->view == NULL ? parse : measure(encoding, VIEW, seconds / 2);
    printf("{\"encoding\": \"%s\", \"bytes\": %zu, \"serialise_ns\": %.1f, \"parse_ns\": %.1f, \"view_ns\": %.1f, "
           "\"both_ns\": %.1f}\n",
           encoding->name, lengths[0], serialise, parse, view, serialise + parse);
    return sum == 0;
}
