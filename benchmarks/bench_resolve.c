/* Topic resolution: process A holds N sources, process B then creates N
 * receivers; how long until every receiver has seen the beginning of its
 * session, and how much memory a topic costs on either side. A few more topics
 * come first, so that the sessions that all of them share are there already. */
#define _GNU_SOURCE
#include <lbm/lbm.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct shared {
    atomic_int sources_up, done;
    double source_seconds, source_bytes, receiver_bytes, resolve_seconds;
    atomic_int resolved;
};

#define FIRST_TOPICS 10 /* as many as a context opens sessions: transport_tcp_maximum_ports */

static struct shared *shared;
static int topics = 1000;
static int unlimited;

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static double resident_bytes(void)
{
    long pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f == NULL || fscanf(f, "%ld %ld", &pages, &resident) != 2) {
        resident = 0;
    }
    if (f != NULL) {
        fclose(f);
    }
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static void check(int rc, const char *what)
{
    if (rc != 0) {
        fprintf(stderr, "%s: %s\n", what, lbm_errmsg());
        atomic_store(&shared->done, -1);
        _exit(3);
    }
}

static lbm_context_t *make_context(void)
{
    static const char *const off[] = {"resolver_initial_advertisement_bps",
                                      "resolver_initial_advertisements_per_second", "resolver_initial_query_bps",
                                      "resolver_initial_queries_per_second"};
    lbm_context_attr_t *attr;
    lbm_context_t *ctx;
    check(lbm_context_attr_create(&attr), "attr");
    check(lbm_context_attr_str_setopt(attr, "default_interface", "127.0.0.1"), "default_interface");
    check(lbm_context_attr_str_setopt(attr, "resolver_multicast_interface", "127.0.0.1"), "interface");
    for (size_t i = 0; unlimited && i < sizeof off / sizeof *off; i++) {
        check(lbm_context_attr_str_setopt(attr, off[i], "0"), off[i]);
    }
    check(lbm_context_create(&ctx, attr, NULL, NULL), "lbm_context_create");
    lbm_context_attr_delete(attr);
    return ctx;
}

static void make_source(lbm_context_t *ctx, int i)
{
    char name[64];
    lbm_topic_t *topic;
    lbm_src_t *src;
    snprintf(name, sizeof name, "bench/resolve/topic/%06d", i);
    check(lbm_src_topic_alloc(&topic, ctx, name, NULL), "lbm_src_topic_alloc");
    check(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL), "lbm_src_create");
}

static void side_sources(void)
{
    lbm_context_t *ctx = make_context();
    for (int i = 0; i < FIRST_TOPICS; i++) {
        make_source(ctx, i);
    }
    double before = resident_bytes(), start = now();
    for (int i = 0; i < topics; i++) {
        make_source(ctx, FIRST_TOPICS + i);
    }
    shared->source_seconds = now() - start;
    shared->source_bytes = (resident_bytes() - before) / topics;
    atomic_store(&shared->sources_up, 1);
    while (atomic_load(&shared->done) == 0) {
        usleep(2000);
    }
}

static int on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv, (void)clientd;
    if (msg->type == LBM_MSG_BOS) {
        atomic_fetch_add(&shared->resolved, 1);
    }
    return 0;
}

static void make_receiver(lbm_context_t *ctx, int i)
{
    char name[64];
    lbm_topic_t *topic;
    lbm_rcv_t *rcv;
    snprintf(name, sizeof name, "bench/resolve/topic/%06d", i);
    check(lbm_rcv_topic_lookup(&topic, ctx, name, NULL), "lbm_rcv_topic_lookup");
    check(lbm_rcv_create(&rcv, ctx, topic, on_message, NULL, NULL), "lbm_rcv_create");
}

static void wait_resolved(int count, double start)
{
    while (atomic_load(&shared->resolved) < count && now() - start < 120) {
        usleep(500);
    }
}

static void side_receivers(void)
{
    while (atomic_load(&shared->sources_up) == 0 && atomic_load(&shared->done) == 0) {
        usleep(1000);
    }
    lbm_context_t *ctx = make_context();
    for (int i = 0; i < FIRST_TOPICS; i++) {
        make_receiver(ctx, i);
    }
    wait_resolved(FIRST_TOPICS, now());
    double before = resident_bytes(), start = now();
    for (int i = 0; i < topics; i++) {
        make_receiver(ctx, FIRST_TOPICS + i);
    }
    wait_resolved(FIRST_TOPICS + topics, start);
    shared->resolve_seconds = now() - start;
    shared->receiver_bytes = (resident_bytes() - before) / topics;
    atomic_store(&shared->done, 1);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--unlimited") == 0) {
            unlimited = 1;
        } else if (strcmp(argv[i], "--topics") == 0 && i + 1 < argc) {
            topics = atoi(argv[++i]);
        } else {
            fprintf(stderr, "usage: %s --topics N [--unlimited]\n", argv[0]);
            return 2;
        }
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t a = fork();
    if (a == 0) {
        side_sources();
        _exit(0);
    }
    pid_t b = fork();
    if (b == 0) {
        side_receivers();
        _exit(0);
    }
    int status_a = 1, status_b = 1;
    waitpid(b, &status_b, 0);
    if (status_b != 0) {
        atomic_store(&shared->done, -1);
    }
    waitpid(a, &status_a, 0);
    if (status_a != 0 || status_b != 0) {
        return 1;
    }
    printf("{\"topics\": %d, \"limiters\": \"%s\", \"resolved\": %d, \"create_sources_s\": %.3f, \"resolve_s\": %.3f, "
           "\"bytes_per_source\": %.0f, \"bytes_per_receiver\": %.0f}\n",
           topics, unlimited ? "off" : "default", atomic_load(&shared->resolved) - FIRST_TOPICS, shared->source_seconds,
           shared->resolve_seconds, shared->source_bytes, shared->receiver_bytes);
    return 0;
}
