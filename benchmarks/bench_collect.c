/* Rates of collectors and of sending many, 64-byte messages by default:
 *   gather  hands one message after the other to a collector on the context
 *           thread while another thread takes batches and is busy for a moment
 *           with each of them, as programs are: the collector alone;
 *   tcp     um_src_send_array over TCP on loopback to a receiver with a
 *           collector, taken in batches: everything between the two calls;
 *   send    um_src_send_array to a source without receivers, and lbm_src_send
 *           beside it: what the call itself costs.
 * One JSON line per run. */
#define _GNU_SOURCE
#include <lbm/lbm.h>
#include <lbm/um.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BLOCK 1024

static const char *mode = "gather";
static size_t size = 64;
static size_t count = 10000000;
static bool one_by_one;

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void check(int rc, const char *what)
{
    if (rc == -1) {
        fprintf(stderr, "%s: %s\n", what, lbm_errmsg());
        exit(3);
    }
}

static void pin(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

/* The context's thread stays on the core its creator is pinned to. */
static lbm_context_t *make_context(int core)
{
    lbm_context_attr_t *attr;
    lbm_context_t *ctx;
    pin(core);
    check(lbm_context_attr_create(&attr), "attr");
    check(lbm_context_attr_str_setopt(attr, "default_interface", "127.0.0.1"), "default_interface");
    check(lbm_context_attr_str_setopt(attr, "resolver_multicast_interface", "127.0.0.1"), "interface");
    check(lbm_context_create(&ctx, attr, NULL, NULL), "lbm_context_create");
    lbm_context_attr_delete(attr);
    return ctx;
}

static lbm_src_t *make_source(lbm_context_t *ctx)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    check(lbm_src_topic_attr_create(&attr), "attr");
    check(lbm_src_topic_attr_str_setopt(attr, "implicit_batching_minimum_length", "65536"), "batching");
    check(lbm_src_topic_alloc(&topic, ctx, "bench", attr), "lbm_src_topic_alloc");
    check(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL), "lbm_src_create");
    lbm_src_topic_attr_delete(attr);
    return src;
}

static lbm_rcv_t *make_receiver(lbm_context_t *ctx, lbm_rcv_cb_proc proc, void *clientd)
{
    lbm_topic_t *topic;
    lbm_rcv_t *rcv;
    check(lbm_rcv_topic_lookup(&topic, ctx, "bench", NULL), "lbm_rcv_topic_lookup");
    check(lbm_rcv_create(&rcv, ctx, topic, proc, clientd, NULL), "lbm_rcv_create");
    return rcv;
}

static void report(const char *what, size_t messages, double seconds, size_t batches)
{
    printf("{\"mode\": \"%s\", \"size\": %zu, \"messages\": %zu, \"msgs_per_s\": %.0f, \"batches\": %zu}\n", what, size,
           messages, (double)messages / seconds, batches);
}

/* Takes until `messages` have come, busy_us between two; returns the number of batches. Sums lengths, so that records
 * are looked at. */
static size_t take_all(um_collector_t *collector, size_t messages, long busy_us)
{
    size_t taken = 0, batches = 0, bytes = 0;
    while (taken < messages) {
        um_batch_t *batch;
        int rc = um_collector_take(collector, 0, 15000, &batch);
        check(rc, "um_collector_take");
        if (rc == 0) {
            fprintf(stderr, "nothing came for 15 s after %zu messages\n", taken);
            exit(3);
        }
        for (size_t i = 0; i < batch->count; i++) {
            taken += batch->records[i].type == LBM_MSG_DATA;
            bytes += batch->records[i].length;
        }
        um_batch_release(batch);
        batches++;
        if (busy_us > 0) {
            nanosleep(&(struct timespec){0, busy_us * 1000}, NULL);
        }
    }
    if (bytes != messages * size) {
        fprintf(stderr, "%zu bytes instead of %zu\n", bytes, messages * size);
        exit(3);
    }
    return batches;
}

/* ---- gather ---- */

static um_collector_t *fed;

/* One message that really arrived is handed over again and again. */
static int repeat(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    um_collector_stats_t stats;
    if (msg->type != LBM_MSG_DATA) {
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        if (i % BLOCK == 0) { /* nothing may be dropped: this receiver has no back-pressure */
            do {
                um_collector_stats(fed, &stats);
            } while (stats.queued_bytes > (32u << 20));
        }
        um_collector_rcv_cb(rcv, msg, fed);
    }
    return 0;
}

static void gather(void)
{
    lbm_context_t *here = make_context(0), *there = make_context(1);
    check(um_collector_create(&fed, 0), "um_collector_create");
    lbm_rcv_t *rcv = make_receiver(here, repeat, NULL);
    lbm_src_t *src = make_source(there);
    check(um_src_wait_receivers(src, 1, 15000), "um_src_wait_receivers");
    check(um_rcv_wait_ready(rcv, 1, 15000), "um_rcv_wait_ready");
    void *data = calloc(1, size);
    double start = now();
    check(lbm_src_send(src, data, size, LBM_MSG_FLUSH), "lbm_src_send");
    size_t batches = take_all(fed, count, 50);
    report("gather", count, now() - start, batches);
    free(data);
    check(lbm_rcv_delete(rcv), "lbm_rcv_delete");
    check(um_collector_delete(fed), "um_collector_delete");
    check(lbm_src_delete(src), "lbm_src_delete");
    check(lbm_context_delete(here), "lbm_context_delete");
    check(lbm_context_delete(there), "lbm_context_delete");
}

/* ---- sending ---- */

static void send_all(lbm_src_t *src)
{
    char *data = calloc(BLOCK, size);
    for (size_t done = 0; done < count;) {
        size_t n = count - done < BLOCK ? count - done : BLOCK;
        if (one_by_one) {
            for (size_t i = 0; i < n; i++) {
                check(lbm_src_send(src, data + i * size, size, LBM_SRC_BLOCK), "lbm_src_send");
            }
        } else {
            check(um_src_send_array(src, data, size, size, n, LBM_SRC_BLOCK, NULL), "um_src_send_array");
        }
        done += n;
    }
    check(lbm_src_flush(src), "lbm_src_flush");
    free(data);
}

static void send_only(void)
{
    lbm_context_t *ctx = make_context(1);
    lbm_src_t *src = make_source(ctx);
    pin(0);
    double start = now();
    send_all(src);
    report("send", count, now() - start, 0);
    check(lbm_src_delete(src), "lbm_src_delete");
    check(lbm_context_delete(ctx), "lbm_context_delete");
}

/* ---- tcp ---- */

static void *sender(void *src)
{
    pin(0);
    send_all(src);
    return NULL;
}

static void tcp(void)
{
    um_collector_t *collector;
    lbm_context_t *here = make_context(1), *there = make_context(0);
    check(um_collector_create(&collector, 0), "um_collector_create");
    lbm_rcv_t *rcv = make_receiver(here, um_collector_rcv_cb, collector);
    lbm_src_t *src = make_source(there);
    check(um_src_wait_receivers(src, 1, 15000), "um_src_wait_receivers");
    check(um_rcv_wait_ready(rcv, 1, 15000), "um_rcv_wait_ready");
    pthread_t thread;
    double start = now();
    pthread_create(&thread, NULL, sender, src);
    pin(1);
    size_t batches = take_all(collector, count, 0);
    report("tcp", count, now() - start, batches);
    pthread_join(thread, NULL);
    check(lbm_rcv_delete(rcv), "lbm_rcv_delete");
    check(um_collector_delete(collector), "um_collector_delete");
    check(lbm_src_delete(src), "lbm_src_delete");
    check(lbm_context_delete(here), "lbm_context_delete");
    check(lbm_context_delete(there), "lbm_context_delete");
}

int main(int argc, char **argv)
{
    int opt;
    while ((opt = getopt(argc, argv, "m:s:n:1")) != -1) {
        if (opt == 'm') {
            mode = optarg;
        } else if (opt == 's') {
            size = (size_t)atol(optarg);
        } else if (opt == 'n') {
            count = (size_t)atol(optarg);
        } else if (opt == '1') {
            one_by_one = true;
        } else {
            fprintf(stderr, "usage: %s [-m gather|tcp|send] [-s bytes] [-n messages] [-1 (one call per message)]\n",
                    argv[0]);
            return 2;
        }
    }
    void (*run)(void) = strcmp(mode, "tcp") == 0 ? tcp : strcmp(mode, "send") == 0 ? send_only : gather;
    run();
    return 0;
}
