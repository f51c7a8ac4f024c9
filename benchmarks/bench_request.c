/* Requests and responses over TCP: libum, and libzmq DEALER/ROUTER beside it. A asks,
 * B answers with what it was asked. Ping-pong: one request at a time, every round trip
 * timed by A (the bare loop to hold it against is `rawpair` of bench_tcp). One way:
 * --batch requests are kept under way, and A counts the answers. */
#define _GNU_SOURCE
#include "bench_common.h"
#include "bench_um.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef UM_BENCH_ZMQ
#include <zmq.h>
#endif

#define UNDER_WAY 512      /* requests, where --batch does not say */
#define BUFFER "4194304"   /* bytes that may wait for a connection: everything under way has room */
#define CLOCK_EVERY 256ull /* answers between two looks at the clock */

static size_t under_way(void)
{
    if (!bench_oneway()) {
        return 1;
    }
    return bench_options.batch > 0 ? bench_options.batch : UNDER_WAY;
}

/* ---- A, whatever the library: what to ask next, what came back ---- */

struct asker {
    struct bench_pinger times;
    enum bench_kind kind;
    char *message;
};

static struct asker asker;

static void asker_init(void)
{
    asker.message = calloc(1, bench_options.size);
    asker.kind = BENCH_WARM;
    bench_pinger_init(&asker.times);
}

/* The next request; its first 16 bytes come back as those of its answer. */
static const void *next_request(void)
{
    if (bench_oneway() && asker.times.sequence % CLOCK_EVERY == 0) {
        uint64_t now = bench_now();
        asker.kind = now < asker.times.measure ? BENCH_WARM : now < asker.times.end ? BENCH_MEASURED : BENCH_END;
    }
    struct bench_header header = {++asker.times.sequence, asker.kind};
    memcpy(asker.message, &header, sizeof header);
    if (!bench_oneway()) {
        asker.times.sent_at = bench_now();
    }
    bench_shared->sent = header.sequence;
    return asker.message;
}

/* False: the run is over. */
static bool take_answer(const void *data)
{
    if (bench_oneway()) {
        bench_oneway_message(data);
        return !bench_finished();
    }
    return bench_pinger_reply(&asker.times);
}

/* ---- libum ---- */

static lbm_src_t *um_asks;

static int um_on_answer(lbm_request_t *req, lbm_msg_t *msg, void *clientd);

/* Alone it goes at once; of many, batches are sent as of other messages. */
static void um_ask(void)
{
    lbm_request_t *req;
    int flags = LBM_SRC_NONBLOCK | (bench_oneway() ? 0 : LBM_MSG_FLUSH);
    um_check(lbm_send_request(&req, um_asks, next_request(), bench_options.size, um_on_answer, NULL, NULL, flags),
             "lbm_send_request");
}

static int um_on_answer(lbm_request_t *req, lbm_msg_t *msg, void *clientd)
{
    (void)clientd;
    if (msg->type == LBM_MSG_RESPONSE) {
        bool more = take_answer(msg->data);
        um_check(lbm_request_delete(req), "lbm_request_delete");
        if (more) {
            um_ask();
        }
    }
    return 0;
}

static int um_on_request(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv, (void)clientd;
    if (msg->type == LBM_MSG_REQUEST && lbm_send_response(msg->response, msg->data, msg->len, LBM_SRC_NONBLOCK) < 0 &&
        !bench_finished()) {
        bench_die("lbm_send_response: %s", lbm_errmsg());
    }
    return 0;
}

static lbm_context_t *um_context(void)
{
    static const char *const options[][2] = {{"request_tcp_interface", "127.0.0.1"},
                                             {"request_tcp_port_low", "0"},
                                             {"request_tcp_port_high", "0"},
                                             {"response_tcp_nodelay", "1"},
                                             {"response_session_maximum_buffer", BUFFER}};
    lbm_context_attr_t *attr = um_context_attr("127.0.0.1");
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        um_check(lbm_context_attr_str_setopt(attr, options[i][0], options[i][1]), options[i][0]);
    }
    if (bench_options.spin) {
        um_check(lbm_context_attr_str_setopt(attr, "file_descriptor_management_behavior", "busy_wait"), "busy_wait");
    }
    return um_context_of(attr);
}

static void um_begin(lbm_context_t *ctx)
{
    lbm_src_topic_attr_t *attr = um_source_attr("tcp");
    um_check(lbm_src_topic_attr_str_setopt(attr, "transport_session_maximum_buffer", BUFFER), "maximum_buffer");
    um_asks = um_source_of(ctx, "bench/request", attr);
    um_check(um_src_wait_receivers(um_asks, 1, 15000), "um_src_wait_receivers");
    asker_init();
    for (size_t i = 0; i < under_way(); i++) {
        um_ask();
    }
    um_check(lbm_src_flush(um_asks), "lbm_src_flush");
}

static void um_side(int role)
{
    lbm_context_t *ctx = um_context();
    if (role == 1) {
        um_receiver(ctx, "bench/request", um_on_request, NULL);
    }
    bench_meet();
    if (role == 0) {
        um_begin(ctx);
    }
    while (!bench_finished()) {
        bench_sleep_ms(5);
    }
}

/* ---- libzmq ---- */
#ifdef UM_BENCH_ZMQ
static void *zmq_end(int role)
{
    int hwm = 100000, timeout = 20, linger = 0;
    char endpoint[64] = "tcp://127.0.0.1:*";
    size_t len = sizeof endpoint;
    void *socket = zmq_socket(zmq_ctx_new(), role == 0 ? ZMQ_DEALER : ZMQ_ROUTER);
    zmq_setsockopt(socket, ZMQ_SNDHWM, &hwm, sizeof hwm);
    zmq_setsockopt(socket, ZMQ_RCVHWM, &hwm, sizeof hwm);
    zmq_setsockopt(socket, ZMQ_RCVTIMEO, &timeout, sizeof timeout);
    zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger);
    if (role == 1) {
        if (zmq_bind(socket, endpoint) != 0 || zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &len) != 0) {
            bench_die("zmq_bind: %s", zmq_strerror(errno));
        }
        bench_shared->port[0] = (uint16_t)atoi(strrchr(endpoint, ':') + 1);
    }
    bench_meet();
    if (role == 0) {
        snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%u", bench_shared->port[0]);
        if (zmq_connect(socket, endpoint) != 0) {
            bench_die("zmq_connect: %s", zmq_strerror(errno));
        }
    }
    return socket;
}

static void zmq_answer(void *socket)
{
    static char peer[256], data[65536];
    while (!bench_finished()) {
        int peer_len = zmq_recv(socket, peer, sizeof peer, 0);
        if (peer_len <= 0) {
            continue;
        }
        int len = zmq_recv(socket, data, sizeof data, 0);
        if (len > 0) {
            zmq_send(socket, peer, (size_t)peer_len, ZMQ_SNDMORE);
            zmq_send(socket, data, (size_t)len, 0);
        }
    }
}

static void zmq_side(int role)
{
    static char data[65536];
    void *socket = zmq_end(role);
    if (role == 1) {
        zmq_answer(socket);
        return;
    }
    asker_init();
    for (size_t i = 0; i < under_way(); i++) {
        zmq_send(socket, next_request(), bench_options.size, 0);
    }
    while (!bench_finished()) {
        if (zmq_recv(socket, data, sizeof data, 0) > 0 && take_answer(data)) {
            zmq_send(socket, next_request(), bench_options.size, 0);
        }
    }
}
#endif

static void side(int role)
{
    if (strcmp(bench_options.impl, "um") == 0) {
        um_side(role);
#ifdef UM_BENCH_ZMQ
    } else if (strcmp(bench_options.impl, "zmq") == 0) {
        zmq_side(role);
#endif
    } else {
        bench_die("--impl %s: not built in (um, zmq)", bench_options.impl);
    }
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, side);
}
