/* What the engines of LBT-RM cost for each datagram, without sockets: a source that takes,
 * numbers and hands out datagrams, and a receiver that takes them in order. Prints ns per
 * datagram. Usage: bench_lbtr_engines [payload bytes] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "transport/lbtr/um_lbtrm_rcv_engine.h"
#include "transport/lbtr/um_lbtrm_src_engine.h"

#define COUNT 5000000u

static const struct um_lbtrm_session session = {14390, 0xe0679abb};
static uint64_t sum;

static void on_send(void *io, const uint8_t *head, size_t head_len, const uint8_t *body, size_t body_len)
{
    sum += head[11] + body_len;
}

static void on_timer(void *io, uint64_t due_ns)
{
}

static void on_io(void *io)
{
}

static void on_nak(void *io, const uint8_t *data, size_t len)
{
}

static void on_deliver(void *io, uint64_t now_ns, const struct um_slice *payload, uint32_t sqn, bool retransmission)
{
    sum += payload->len;
}

static void on_lost(void *io, uint64_t now_ns, uint32_t first, uint32_t count, enum um_lbtr_loss why)
{
}

static void on_begin(void *io, uint64_t now_ns)
{
}

static void on_end(void *io, uint64_t now_ns, enum um_lbtr_end why)
{
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double send_all(size_t len)
{
    static const struct um_lbtrm_src_engine_ops ops = {
        .send = on_send, .common.set_timer = on_timer, .common.kick = on_io, .common.relieved = on_io};
    struct um_lbtr_limiter limiter;
    um_lbtr_limiter_init(&limiter, &(struct um_lbtr_limiter_config){0, 0, 10 * UM_NS_PER_MS, true});
    struct um_lbtr_src_engine *source =
        um_lbtrm_src_engine_create(&(struct um_lbtrm_src_engine_config){.session = session,
                                                                        .tgsz = 8,
                                                                        .datagram_max = 8192,
                                                                        .window_size = 25165824,
                                                                        .ignore_ns = 500 * UM_NS_PER_MS,
                                                                        .sm_min_ns = 200 * UM_NS_PER_MS,
                                                                        .sm_max_ns = 10 * UM_NS_PER_SEC},
                                   &limiter, &ops, NULL);
    static uint8_t message[8192];
    double begin = now();
    for (uint32_t i = 0; i < COUNT; i++) {
        size_t room;
        memcpy(um_lbtr_src_engine_acquire(source, &room), message, len);
        um_lbtr_src_engine_commit(source, UM_NS_PER_SEC + i * UINT64_C(1000), len, len);
    }
    double ns = (now() - begin) / COUNT;
    um_lbtr_src_engine_destroy(source);
    return ns;
}

static double receive_all(size_t len)
{
    static const struct um_lbtr_rcv_outputs out = {.send = on_nak,
                                                   .deliver = on_deliver,
                                                   .lost = on_lost,
                                                   .begin = on_begin,
                                                   .end = on_end,
                                                   .set_timer = on_timer};
    static uint8_t packet[8192];
    struct um_rng rng;
    um_rng_seed(&rng, 1);
    struct um_lbtrm_rcv_engine_config config = {
        .source_ip = 1,
        .session = session,
        .naks = {50 * UM_NS_PER_MS, 200 * UM_NS_PER_MS, UM_NS_PER_SEC, 10 * UM_NS_PER_SEC, true, 0},
        .activity_ns = 60 * UM_NS_PER_SEC};
    struct um_lbtr_rcv_engine *receiver = um_lbtrm_rcv_engine_create(&config, &rng, &out, NULL, UM_NS_PER_SEC);
    um_lbtrm_put_data(packet, &session, 0, 0, 3, false);
    double begin = now();
    for (uint32_t i = 0; i < COUNT; i++) {
        um_put32(packet + 8, i);
        um_lbtrm_rcv_engine_on_packet(receiver, UM_NS_PER_SEC + i * UINT64_C(1000), packet, UM_LBTRM_DATA_HDR + len, 1);
    }
    double ns = (now() - begin) / COUNT;
    um_lbtr_rcv_engine_destroy(receiver);
    return ns;
}

int main(int argc, char **argv)
{
    size_t len = argc > 1 ? (size_t)atoi(argv[1]) : 700;
    if (len == 0 || len > 8000) {
        fprintf(stderr, "payload bytes: 1..8000\n");
        return 2;
    }
    printf("payload %zu: source %.1f ns, receiver in order %.1f ns for each datagram\n", len, send_all(len),
           receive_all(len));
    return sum == 0;
}
