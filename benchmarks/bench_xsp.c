/* Two busy sessions on one loop or on two XSPs: how much more the same work does when
 * the sessions are received in parallel. Everything is sent beforehand, while the
 * receiving threads wait in their first callback, so that the two cores are the
 * receivers' alone; then they are let go, and the last message of both ends the time.
 * Each callback does the same fixed number of multiplications. The two ways take
 * turns, with the same work on one and on two bare threads between them: what two
 * cores of this machine give at best. */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench_um.h"

#define SESSIONS 2
#define ROUNDS_MAX 64
#define RM_MESSAGES_MAX 5000 /* of a session: what surely fits the socket's buffer beforehand */

static struct {
    bool multicast;
    double work_us, seconds;
    int rounds;
    uint64_t messages; /* of a session in a round */
    uint64_t steps;    /* of the work for one message */
} run = {.work_us = 50, .seconds = 0.5, .rounds = 3};

/* ---- the work ---- */

static uint64_t work(uint64_t value)
{
    for (uint64_t i = 0; i < run.steps; i++) {
        value = value * 6364136223846793005ull + 1442695040888963407ull;
    }
    return value;
}

static atomic_uint_fast64_t work_result; /* keeps the work from being left out */

/* The quickest of several, because the machine may be disturbed. */
static void calibrate(void)
{
    uint64_t best = UINT64_MAX;
    run.steps = 1000000;
    for (int i = 0; i < 20; i++) {
        uint64_t begin = bench_now();
        atomic_fetch_add(&work_result, work((uint64_t)i));
        uint64_t taken = bench_now() - begin;
        best = taken < best ? taken : best;
    }
    run.steps = (uint64_t)(run.work_us * 1e3 * 1e6 / (double)best);
}

/* ---- bare threads ---- */

static void *bare_main(void *arg)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < *(uint64_t *)arg; i++) {
        sum += work(i);
    }
    atomic_fetch_add(&work_result, sum);
    return NULL;
}

/* Messages a second. */
static double bare(int threads)
{
    pthread_t ids[SESSIONS];
    uint64_t each = SESSIONS * run.messages / (uint64_t)threads, begin = bench_now();
    for (int i = 0; i < threads; i++) {
        if (pthread_create(&ids[i], NULL, bare_main, &each) != 0) {
            bench_die("pthread_create failed");
        }
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
    }
    return (double)(SESSIONS * run.messages) / ((double)(bench_now() - begin) * 1e-9);
}

/* ---- libum ---- */

struct session {
    lbm_src_t *src;
    lbm_rcv_t *rcv;
    atomic_bool heard; /* it is joined */
    uint64_t expected, sum, lost;
};

/* One round. */
static struct {
    lbm_xsp_t *xsps[SESSIONS];
    int mapped;
    atomic_bool open;
    sem_t waiting, over;
    atomic_uint_fast64_t left;
    uint64_t ended_ns; /* whoever takes the last message writes it, then posts `over` */
} world;

static lbm_xsp_t *map(lbm_context_t *ctx, lbm_new_transport_info_t *info, void *clientd)
{
    (void)ctx, (void)info, (void)clientd;
    return world.xsps[world.mapped++ % SESSIONS];
}

/* The thread is held until everything has been sent. */
static void wait_for_start(void)
{
    if (!atomic_load(&world.open)) {
        sem_post(&world.waiting);
        while (!atomic_load(&world.open)) {
            bench_sleep_ms(1);
        }
    }
}

static int on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv;
    struct session *session = clientd;
    struct bench_header header;
    if (msg->type == LBM_MSG_UNRECOVERABLE_LOSS || msg->type == LBM_MSG_UNRECOVERABLE_LOSS_BURST) {
        session->lost++;
    }
    if (msg->type != LBM_MSG_DATA) {
        return 0;
    }
    memcpy(&header, msg->data, sizeof header);
    if (header.kind == BENCH_HELLO) {
        atomic_store(&session->heard, true);
        return 0;
    }
    if (header.kind == BENCH_WARM) {
        wait_for_start();
        return 0;
    }
    session->lost += header.sequence != session->expected;
    session->expected = header.sequence + 1;
    session->sum += work(header.sequence);
    if (atomic_fetch_sub(&world.left, 1) == 1) {
        world.ended_ns = bench_now();
        sem_post(&world.over);
    }
    return 0;
}

static void set(lbm_context_attr_t *attr, const char *name, const char *value)
{
    um_check(lbm_context_attr_str_setopt(attr, name, value), name);
}

static lbm_context_t *sending_context(void)
{
    lbm_context_attr_t *attr = um_context_attr("127.0.0.1");
    set(attr, "transport_lbtrm_data_rate_limit", "100000000000");
    set(attr, "transport_lbtrm_retransmit_rate_limit", "100000000000");
    return um_context_of(attr);
}

static lbm_context_t *receiving_context(bool xsps)
{
    lbm_context_attr_t *attr = um_context_attr("127.0.0.1");
    lbm_transport_mapping_func_t func = {map, NULL};
    set(attr, "request_tcp_port_low", "0"); /* any free port: each XSP has one, too */
    set(attr, "request_tcp_port_high", "0");
    um_check(lbm_context_attr_setopt(attr, "transport_mapping_function", &func, sizeof func), "mapping function");
    lbm_context_t *ctx = um_context_of(attr);
    for (int i = 0; i < SESSIONS; i++) {
        world.xsps[i] = NULL;
        if (xsps) {
            um_check(lbm_xsp_create(&world.xsps[i], ctx, NULL, NULL), "lbm_xsp_create");
        }
    }
    return ctx;
}

static lbm_src_t *source(lbm_context_t *ctx, const char *name, int index)
{
    lbm_src_topic_attr_t *attr = um_source_attr(run.multicast ? "lbtrm" : "tcp");
    char group[32];
    snprintf(group, sizeof group, "239.77.1.%d", 1 + index);
    if (run.multicast) {
        um_check(lbm_src_topic_attr_str_setopt(attr, "transport_lbtrm_multicast_address", group), "multicast_address");
    } else { /* what the sockets do not take waits with the source */
        um_check(lbm_src_topic_attr_str_setopt(attr, "transport_session_maximum_buffer", "268435456"), "buffer");
    }
    return um_source_of(ctx, name, attr);
}

static void send_one(const struct session *session, uint64_t sequence, enum bench_kind kind, int flags)
{
    struct bench_header header = {sequence, kind};
    um_check(lbm_src_send(session->src, (const char *)&header, sizeof header, flags), "lbm_src_send");
}

static void wait_for(sem_t *sem, const char *what)
{
    for (uint64_t give_up = bench_now() + 60000000000ull; sem_trywait(sem) != 0; bench_sleep_ms(1)) {
        if (bench_now() > give_up) {
            bench_die("%s: not within 60 s", what);
        }
    }
}

/* A session of LBT-RM is joined when something of it has come. */
static void greet(const struct session *session)
{
    for (int i = 0; !atomic_load(&session->heard); i++) {
        if (i == 3000) {
            bench_die("nothing received within 15 s");
        }
        send_one(session, 0, BENCH_HELLO, LBM_MSG_FLUSH);
        bench_sleep_ms(5);
    }
}

/* Both loops, or the one, wait in a callback while everything is sent. */
static void send_all(const struct session *sessions, int loops)
{
    for (int i = 0; i < SESSIONS; i++) {
        send_one(&sessions[i], 0, BENCH_WARM, LBM_MSG_FLUSH);
    }
    for (int i = 0; i < loops; i++) {
        wait_for(&world.waiting, "a receiving thread with its first message");
    }
    for (int i = 0; i < SESSIONS; i++) {
        for (uint64_t n = 0; n < run.messages; n++) {
            send_one(&sessions[i], n, BENCH_MEASURED, n + 1 == run.messages ? LBM_MSG_FLUSH : 0);
        }
    }
    bench_sleep_ms(20); /* the last packets have arrived */
}

static void open_world(void)
{
    world.mapped = 0;
    atomic_store(&world.open, false);
    atomic_store(&world.left, SESSIONS * run.messages);
    sem_init(&world.waiting, 0, 0);
    sem_init(&world.over, 0, 0);
}

/* Messages a second, received by one loop or by two XSPs. */
static double libum(bool xsps)
{
    struct session sessions[SESSIONS] = {0};
    open_world();
    lbm_context_t *sender = sending_context(), *ctx = receiving_context(xsps);
    for (int i = 0; i < SESSIONS; i++) {
        char name[32];
        snprintf(name, sizeof name, "bench/xsp/%d", i);
        sessions[i].src = source(sender, name, i);
        sessions[i].rcv = um_receiver(ctx, name, on_message, &sessions[i]);
        greet(&sessions[i]);
    }
    send_all(sessions, xsps ? SESSIONS : 1);
    uint64_t begin = bench_now();
    atomic_store(&world.open, true);
    wait_for(&world.over, "all messages");
    double taken = (double)(world.ended_ns - begin) * 1e-9;
    for (int i = 0; i < SESSIONS; i++) {
        if (sessions[i].lost > 0 || sessions[i].expected != run.messages) {
            bench_die("session %d: messages were lost or out of order", i);
        }
        lbm_rcv_delete(sessions[i].rcv);
        lbm_src_delete(sessions[i].src);
        atomic_fetch_add(&work_result, sessions[i].sum);
    }
    for (int i = 0; i < SESSIONS && xsps; i++) {
        um_check(lbm_xsp_delete(world.xsps[i]), "lbm_xsp_delete");
    }
    lbm_context_delete(ctx);
    lbm_context_delete(sender);
    return (double)(SESSIONS * run.messages) / taken;
}

/* ---- the run ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, (size_t)run.rounds, sizeof *values, by_value);
    return values[run.rounds / 2];
}

static void measure(void)
{
    double one[ROUNDS_MAX], two[ROUNDS_MAX], bare_one[ROUNDS_MAX], bare_two[ROUNDS_MAX];
    double ratio[ROUNDS_MAX], bare_ratio[ROUNDS_MAX];
    for (int i = 0; i < run.rounds; i++) {
        one[i] = libum(false);
        two[i] = libum(true);
        bare_one[i] = bare(1);
        bare_two[i] = bare(2);
        ratio[i] = two[i] / one[i];
        bare_ratio[i] = bare_two[i] / bare_one[i];
    }
    double loop = median(one), alone = median(bare_one);
    printf("{\"transport\": \"%s\", \"work_us\": %.1f, \"messages\": %llu, \"rounds\": %d, \"one_loop_per_s\": %.0f, "
           "\"two_xsps_per_s\": %.0f, \"ratio\": %.3f, \"bare_ratio\": %.3f, \"work_share\": %.3f}\n",
           run.multicast ? "rm" : "tcp", run.work_us, (unsigned long long)run.messages, run.rounds, loop, median(two),
           median(ratio), median(bare_ratio), loop / alone);
}

static void parse(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        if (strcmp(name, "--transport") == 0) {
            run.multicast = strcmp(value, "rm") == 0;
        } else if (strcmp(name, "--work-us") == 0) {
            run.work_us = atof(value);
        } else if (strcmp(name, "--seconds") == 0) {
            run.seconds = atof(value);
        } else if (strcmp(name, "--rounds") == 0) {
            run.rounds = atoi(value);
        } else {
            bench_die("usage: %s --transport tcp|rm --work-us US --seconds S --rounds N", argv[0]);
        }
    }
    if (run.work_us <= 0 || run.seconds <= 0 || run.rounds < 1 || run.rounds > ROUNDS_MAX) {
        bench_die("--work-us and --seconds must be above 0, --rounds 1..%d", ROUNDS_MAX);
    }
    run.messages = (uint64_t)fmax(1, run.seconds * 1e6 / run.work_us);
    if (run.multicast && run.messages > RM_MESSAGES_MAX) {
        run.messages = RM_MESSAGES_MAX;
    }
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    calibrate();
    measure();
    return 0;
}
