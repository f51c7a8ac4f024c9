/* TCP: libum against a bare loop that frames and copies the same bytes with the
 * same system calls, and against libzmq PUB/SUB. One way: A sends as fast as it
 * is let, B counts. Ping-pong: one message in flight, every round trip timed by A. */
#define _GNU_SOURCE
#include "bench_common.h"
#include "bench_lz4.h"
#include "bench_tls.h"
#include "bench_um.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#ifdef UM_BENCH_ZMQ
#include <zmq.h>
#endif

#define FRAME_HEADER 12 /* the LBMC data header: type, next header, length, topic index, sequence number */
#define RECEIVE_BUFFER (256 * 1024)

/* Compression has texts to do, of which LZ4's 64 KiB hold no two alike; otherwise messages are of zeros. */
#define TEXT_BYTES (1024 * 1024)

static bool compresses(void)
{
    return strcmp(bench_options.impl, "rawlz4") == 0 || strcmp(bench_options.impl, "umlz4") == 0;
}

static size_t message_count(void)
{
    return compresses() ? TEXT_BYTES / bench_options.size + 1 : 1;
}

static char *messages_create(void)
{
    size_t len = message_count() * bench_options.size;
    char *messages = calloc(1, len);
    if (messages != NULL && compresses()) {
        bench_text(messages, len);
    }
    return messages;
}

/* ---- one-way sender, common: send(context, bytes, flush) as fast as it is let ---- */
static void run_sender(void (*send_one)(void *arg, const void *data, bool flush), void *arg)
{
    char *messages = messages_create(), *message = messages;
    char *end_of_messages = messages + message_count() * bench_options.size;
    struct bench_header header = {0, BENCH_HELLO};
    while (!atomic_load(&bench_shared->seen_b) && !bench_finished()) {
        memcpy(message, &header, sizeof header);
        send_one(arg, message, true);
        bench_sleep_ms(1);
    }
    bench_sleep_ms(20);
    uint64_t start = bench_now();
    uint64_t measure = start + (uint64_t)(bench_options.warm_seconds * 1e9);
    uint64_t end = measure + (uint64_t)(bench_options.seconds * 1e9);
    header.kind = BENCH_WARM;
    for (uint64_t now = start; now < end && !bench_finished(); now = bench_now()) {
        header.kind = now < measure ? BENCH_WARM : BENCH_MEASURED;
        for (int i = 0; i < 256; i++) {
            memcpy(message, &header, sizeof header);
            send_one(arg, message, false);
            header.sequence++;
            message += bench_options.size;
            message = message == end_of_messages ? messages : message;
        }
    }
    bench_shared->sent = header.sequence;
    header.kind = BENCH_END;
    for (int i = 0; i < 500 && !bench_finished(); i++) {
        memcpy(message, &header, sizeof header);
        send_one(arg, message, true);
        bench_sleep_ms(10);
    }
    free(messages);
}

/* ---- ping-pong, common part of A: called when a reply arrived; returns false when the run is over ---- */
struct pinger {
    struct bench_pinger times;
    char *message;
};

static void pinger_init(struct pinger *p)
{
    p->message = calloc(1, bench_options.size);
    bench_pinger_init(&p->times);
}

static const void *pinger_next(struct pinger *p)
{
    struct bench_header header = {++p->times.sequence, BENCH_MEASURED};
    memcpy(p->message, &header, sizeof header);
    p->times.sent_at = bench_now();
    return p->message;
}

static bool pinger_reply(struct pinger *p, const void *data)
{
    struct bench_header header;
    memcpy(&header, data, sizeof header);
    return header.sequence == p->times.sequence && bench_pinger_reply(&p->times);
}

/* ---- the bare loop: `raw` plays ping-pong over one connection, `rawpair` over one for each direction, as libum does,
 * whose transport sessions carry data one way only ---- */
static int raw_connect(int role)
{
    int one = 1;
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (role == 0) {
        if (bind(fd, (struct sockaddr *)&addr, sizeof addr) != 0 || listen(fd, 1) != 0 ||
            getsockname(fd, (struct sockaddr *)&addr, &len) != 0) {
            bench_die("raw listen: %s", strerror(errno));
        }
        bench_shared->port[0] = ntohs(addr.sin_port);
        bench_meet();
        int accepted = accept(fd, NULL, NULL);
        close(fd);
        fd = accepted;
    } else {
        bench_meet();
        addr.sin_port = htons(bench_shared->port[0]);
        if (connect(fd, (struct sockaddr *)&addr, sizeof addr) != 0) {
            bench_die("raw connect: %s", strerror(errno));
        }
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

struct raw_filter {
    struct bench_tls *tls; /* `rawtls`: NULL otherwise */
    struct bench_lz4 *lz4; /* `rawlz4`: NULL otherwise */
};

struct raw_out {
    int fd;
    struct raw_filter filter;
    size_t used, limit;
    uint32_t sequence;
    char buffer[RECEIVE_BUFFER];
};

static void raw_write(struct raw_out *out, const char *data, size_t len)
{
#ifdef UM_BENCH_TLS
    if (out->filter.tls != NULL) {
        bench_tls_write(out->filter.tls, data, len);
        return;
    }
#endif
#ifdef UM_BENCH_LZ4
    if (out->filter.lz4 != NULL) {
        data = bench_lz4_pack(out->filter.lz4, data, len, &len);
    }
#endif
    while (len > 0) {
        ssize_t n = send(out->fd, data, len, MSG_NOSIGNAL);
        if (n < 0) {
            if (bench_finished()) {
                return;
            }
            bench_die("raw send: %s", strerror(errno));
        }
        data += n;
        len -= (size_t)n;
    }
}

static void raw_send(void *arg, const void *data, bool flush)
{
    struct raw_out *out = arg;
    char *p = out->buffer + out->used;
    uint16_t length = htons((uint16_t)(FRAME_HEADER + bench_options.size));
    uint32_t topic = htonl(7), sequence = htonl(out->sequence++);
    p[0] = 0;
    p[1] = 0;
    memcpy(p + 2, &length, 2);
    memcpy(p + 4, &topic, 4);
    memcpy(p + 8, &sequence, 4);
    memcpy(p + FRAME_HEADER, data, bench_options.size);
    out->used += FRAME_HEADER + bench_options.size;
    if (flush || out->used + FRAME_HEADER + bench_options.size > out->limit) {
        raw_write(out, out->buffer, out->used);
        out->used = 0;
    }
}

static ssize_t raw_read(int fd, const struct raw_filter *filter, char *data, size_t len)
{
    int flags = bench_options.spin ? MSG_DONTWAIT : 0;
#ifdef UM_BENCH_TLS
    if (filter->tls != NULL) {
        return bench_tls_read(filter->tls, data, len);
    }
#endif
#ifdef UM_BENCH_LZ4
    if (filter->lz4 != NULL) {
        return bench_lz4_read(filter->lz4, fd, flags, data, len);
    }
#endif
    return recv(fd, data, len, flags);
}

/* Read and parse frames, calling on_message for each payload, until finished. */
static void raw_receive(int fd, const struct raw_filter *filter, void (*on_message)(void *arg, const char *data),
                        void *arg)
{
    static char buffer[RECEIVE_BUFFER];
    size_t have = 0;
    while (!bench_finished()) {
        ssize_t n = raw_read(fd, filter, buffer + have, sizeof buffer - have);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            continue;
        }
        if (n <= 0) {
            return;
        }
        have += (size_t)n;
        size_t at = 0;
        while (have - at >= FRAME_HEADER) {
            uint16_t length;
            memcpy(&length, buffer + at + 2, 2);
            length = ntohs(length);
            if (have - at < length) {
                break;
            }
            on_message(arg, buffer + at + FRAME_HEADER);
            at += length;
        }
        memmove(buffer, buffer + at, have - at);
        have -= at;
    }
}

static void raw_count(void *arg, const char *data)
{
    (void)arg;
    bench_oneway_message(data);
}

struct raw_pong {
    struct raw_out *out;
    struct pinger pinger;
};

static void raw_pong(void *arg, const char *data)
{
    struct raw_pong *pong = arg;
    if (pinger_reply(&pong->pinger, data)) {
        raw_send(pong->out, pinger_next(&pong->pinger), true);
    }
}

static void raw_echo(void *arg, const char *data)
{
    raw_send(arg, data, true);
}

static void raw_side(int role)
{
    static struct raw_out out;
    int in = out.fd = raw_connect(role);
#ifdef UM_BENCH_TLS
    out.filter.tls = strcmp(bench_options.impl, "rawtls") == 0 ? bench_tls_open(in, role == 0) : NULL;
#endif
#ifdef UM_BENCH_LZ4
    out.filter.lz4 = compresses() ? bench_lz4_open() : NULL;
#endif
    if (strcmp(bench_options.impl, "rawpair") == 0) {
        in = raw_connect(role);
        if (role == 1) {
            int first = out.fd;
            out.fd = in;
            in = first;
        }
    }
    out.limit = bench_options.batch > 0 ? bench_options.batch : 2048;
    if (bench_oneway() && role == 0) {
        run_sender(raw_send, &out);
    } else if (bench_oneway()) {
        raw_receive(in, &out.filter, raw_count, NULL);
    } else if (role == 0) {
        struct raw_pong pong = {.out = &out};
        pinger_init(&pong.pinger);
        raw_send(&out, pinger_next(&pong.pinger), true);
        raw_receive(in, &out.filter, raw_pong, &pong);
        shutdown(out.fd, SHUT_RDWR);
        shutdown(in, SHUT_RDWR);
    } else {
        raw_receive(in, &out.filter, raw_echo, &out);
    }
}

/* ---- libum ---- */
struct um_side {
    lbm_context_t *ctx;
    lbm_src_t *src;
    lbm_rcv_t *rcv;
    struct pinger pinger;
};

static void um_reply(struct um_side *side, const void *data)
{
    if (lbm_src_send(side->src, data, bench_options.size, LBM_MSG_FLUSH | LBM_SRC_NONBLOCK) != 0) {
        bench_die("lbm_src_send: %s", lbm_errmsg());
    }
}

static int um_on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *cd)
{
    struct um_side *side = cd;
    (void)rcv;
    if (msg->type != LBM_MSG_DATA) {
        return 0;
    }
    if (side->src == NULL) {
        bench_oneway_message(msg->data);
    } else if (side->pinger.message == NULL) {
        um_reply(side, msg->data);
    } else if (pinger_reply(&side->pinger, msg->data)) {
        um_reply(side, pinger_next(&side->pinger));
    }
    return 0;
}

static void encrypt(lbm_context_attr_t *attr, const char *name)
{
    char file[512];
    um_check(lbm_context_attr_str_setopt(attr, "use_tls", "1"), "use_tls");
    snprintf(file, sizeof file, "%s/%s.pem", UM_BENCH_CERTIFICATES, name);
    um_check(lbm_context_attr_str_setopt(attr, "tls_certificate", file), "tls_certificate");
    snprintf(file, sizeof file, "%s/%s.key", UM_BENCH_CERTIFICATES, name);
    um_check(lbm_context_attr_str_setopt(attr, "tls_certificate_key", file), "tls_certificate_key");
    um_check(lbm_context_attr_str_setopt(attr, "tls_trusted_certificates", UM_BENCH_CERTIFICATES "/ca.pem"), "trusted");
}

static lbm_context_t *um_context(int role)
{
    lbm_context_attr_t *attr = um_context_attr("127.0.0.1");
    if (strcmp(bench_options.impl, "umtls") == 0) {
        encrypt(attr, role == 0 ? "host" : "peer");
    }
    if (compresses()) {
        um_check(lbm_context_attr_str_setopt(attr, "compression", "lz4"), "compression");
    }
    if (bench_options.spin) {
        um_check(lbm_context_attr_str_setopt(attr, "file_descriptor_management_behavior", "busy_wait"), "busy_wait");
    }
    return um_context_of(attr);
}

static lbm_src_t *um_source(lbm_context_t *ctx, const char *name)
{
    lbm_src_topic_attr_t *attr = um_source_attr("tcp");
    char text[32];
    if (bench_options.batch > 0) {
        /* The option counts user bytes; the comparison is by bytes handed to one send. */
        size_t messages = bench_options.batch / (bench_options.size + FRAME_HEADER);
        size_t user = (messages > 0 ? messages : 1) * bench_options.size;
        snprintf(text, sizeof text, "%zu", user < 65000 ? user : 65000);
        um_check(lbm_src_topic_attr_str_setopt(attr, "implicit_batching_minimum_length", text), "batching");
        um_check(lbm_src_topic_attr_str_setopt(attr, "transport_session_maximum_buffer", "262144"), "maximum_buffer");
    }
    return um_source_of(ctx, name, attr);
}

static void um_send(void *arg, const void *data, bool flush)
{
    struct um_side *side = arg;
    if (lbm_src_send(side->src, data, bench_options.size, flush ? LBM_MSG_FLUSH : 0) != 0) {
        bench_die("lbm_src_send: %s", lbm_errmsg());
    }
}

static void um_side_run(int role)
{
    static struct um_side side;
    side.ctx = um_context(role);
    if (bench_oneway()) {
        if (role == 0) {
            side.src = um_source(side.ctx, "bench/a");
        } else {
            side.rcv = um_receiver(side.ctx, "bench/a", um_on_message, &side);
        }
        bench_meet();
        if (role == 0) {
            um_check(um_src_wait_receivers(side.src, 1, 15000), "um_src_wait_receivers");
            run_sender(um_send, &side);
        }
    } else {
        side.src = um_source(side.ctx, role == 0 ? "bench/a" : "bench/b");
        side.rcv = um_receiver(side.ctx, role == 0 ? "bench/b" : "bench/a", um_on_message, &side);
        bench_meet();
        um_check(um_src_wait_receivers(side.src, 1, 15000), "um_src_wait_receivers");
        um_check(um_rcv_wait_ready(side.rcv, 1, 15000), "um_rcv_wait_ready");
        bench_meet(); /* both directions are up before the first ping */
        if (role == 0) {
            pinger_init(&side.pinger);
            um_send(&side, pinger_next(&side.pinger), true);
        }
    }
    while (!bench_finished()) {
        bench_sleep_ms(5);
    }
}

/* ---- libzmq ---- */
#ifdef UM_BENCH_ZMQ
static void zmq_send_one(void *socket, const void *data, bool flush)
{
    (void)flush;
    while (zmq_send(socket, data, bench_options.size, 0) < 0 && (errno == EAGAIN || errno == EINTR)) {
    }
}

static void *zmq_publisher(void *context, int role)
{
    int hwm = 10000, one = 1, linger = 0;
    char endpoint[64] = "tcp://127.0.0.1:*";
    size_t len = sizeof endpoint;
    void *socket = zmq_socket(context, ZMQ_PUB);
    zmq_setsockopt(socket, ZMQ_SNDHWM, &hwm, sizeof hwm);
    zmq_setsockopt(socket, ZMQ_XPUB_NODROP, &one, sizeof one);
    zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger);
    if (zmq_bind(socket, endpoint) != 0 || zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &len) != 0) {
        bench_die("zmq_bind: %s", zmq_strerror(errno));
    }
    bench_shared->port[role] = (uint16_t)atoi(strrchr(endpoint, ':') + 1);
    return socket;
}

static void *zmq_subscriber(void *context, int publisher_role)
{
    int hwm = 10000, timeout = 20;
    char endpoint[64];
    void *socket = zmq_socket(context, ZMQ_SUB);
    zmq_setsockopt(socket, ZMQ_RCVHWM, &hwm, sizeof hwm);
    zmq_setsockopt(socket, ZMQ_RCVTIMEO, &timeout, sizeof timeout);
    zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0);
    snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%u", bench_shared->port[publisher_role]);
    if (zmq_connect(socket, endpoint) != 0) {
        bench_die("zmq_connect: %s", zmq_strerror(errno));
    }
    return socket;
}

static void zmq_side(int role)
{
    static char buffer[RECEIVE_BUFFER];
    void *context = zmq_ctx_new(), *publisher = NULL, *subscriber = NULL;
    if (!bench_oneway() || role == 0) {
        publisher = zmq_publisher(context, role);
    }
    bench_meet();
    if (!bench_oneway() || role == 1) {
        subscriber = zmq_subscriber(context, 1 - role);
    }
    if (bench_oneway() && role == 0) {
        run_sender(zmq_send_one, publisher);
        return;
    }
    struct pinger pinger = {0};
    if (role == 0) {
        bench_sleep_ms(500); /* PUB/SUB has no readiness: let both subscriptions arrive */
        pinger_init(&pinger);
        zmq_send_one(publisher, pinger_next(&pinger), true);
    }
    while (!bench_finished()) {
        int n = zmq_recv(subscriber, buffer, sizeof buffer, 0);
        if (n < (int)sizeof(struct bench_header)) {
            continue;
        }
        if (bench_oneway()) {
            bench_oneway_message(buffer);
        } else if (role == 1) {
            zmq_send_one(publisher, buffer, true);
        } else if (pinger_reply(&pinger, buffer)) {
            zmq_send_one(publisher, pinger_next(&pinger), true);
        }
    }
}
#endif

static void side(int role)
{
    if (strncmp(bench_options.impl, "um", 2) == 0) {
        um_side_run(role);
#ifdef UM_BENCH_ZMQ
    } else if (strcmp(bench_options.impl, "zmq") == 0) {
        zmq_side(role);
#endif
#ifndef UM_BENCH_TLS
    } else if (strcmp(bench_options.impl, "rawtls") == 0) {
        bench_die("--impl rawtls: OpenSSL's headers were not there when this was built");
#endif
#ifndef UM_BENCH_LZ4
    } else if (strcmp(bench_options.impl, "rawlz4") == 0) {
        bench_die("--impl rawlz4: liblz4's headers were not there when this was built");
#endif
    } else if (strncmp(bench_options.impl, "raw", 3) == 0) {
        raw_side(role);
    } else {
        bench_die("--impl %s: not built in (um, umtls, umlz4, raw, rawpair, rawtls, rawlz4, zmq)", bench_options.impl);
    }
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, side);
}
