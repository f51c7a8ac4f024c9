/* LBT-RM and LBT-RU: libum against a bare loop that frames and copies the same bytes
 * into datagrams of the same size and moves them with the same system calls, over a
 * veth cable. One way: A sends as fast as B follows (both count in shared memory, so
 * that nothing is lost for want of room), B counts. Ping-pong: one message in flight. */
#define _GNU_SOURCE
#include "bench_common.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench_um.h"
#include "bench_veth.h"
#include "peers/peer_sides.h"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define MTU 9500
#define PACKET_HEADER 20 /* LBT-RM DATA, LBT-RU DATA with session id */
#define FRAME_HEADER 12  /* the LBMC data header */
#define WINDOW 256       /* datagrams on their way */
#define PORT 24400
#define LIFTED "100000000000" /* bits per second: no limit */

static bool multicast = true; /* --transport rm */
static const char *profile;   /* --profile */

static size_t batch_bytes(void)
{
    return bench_options.batch > 0 ? bench_options.batch : 2048;
}

static size_t messages_per_datagram(void)
{
    size_t count = batch_bytes() / (bench_options.size + FRAME_HEADER);
    return count > 0 ? count : 1;
}

/* Before message `sequence` is sent: B has seen all but a window of them. */
static void pace(uint64_t sequence)
{
    static uint64_t seen;
    uint64_t window = WINDOW * messages_per_datagram();
    if (sequence < seen + window) {
        return;
    }
    uint64_t give_up = bench_now() + 200000000ull;
    while (sequence >= (seen = atomic_load_explicit(&bench_shared->progress, memory_order_relaxed)) + window &&
           !bench_finished()) {
        if (bench_now() > give_up) {
            return; /* some were lost at the end: go on */
        }
    }
}

/* ---- the bare loop ---- */

#define RAW_PACKETS 8
#define RAW_PACKET (65536 + 704)

struct raw {
    int out, in, epoll;
    struct sockaddr_in to;
    uint32_t sequence, datagrams;
    size_t used;
    char buffer[65536];
    struct mmsghdr headers[RAW_PACKETS];
    struct iovec iov[RAW_PACKETS];
    char control[RAW_PACKETS][64];
};

static struct raw raw;
static char raw_packets[RAW_PACKETS][RAW_PACKET];

static struct sockaddr_in raw_address(int role, bool group)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(PORT + role))};
    inet_pton(AF_INET, group ? (role == 0 ? "239.77.0.1" : "239.77.0.2") : BENCH_VETH_ADDRESS(role), &addr.sin_addr);
    return addr;
}

static void *raw_open(int role, bool both)
{
    (void)both;
    int one = 1, size = 8388608;
    struct sockaddr_in own = raw_address(role, multicast);
    raw.in = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    raw.out = multicast ? socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) : raw.in;
    raw.to = raw_address(1 - role, multicast);
    setsockopt(raw.in, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    setsockopt(raw.in, IPPROTO_UDP, UDP_GRO, &one, sizeof one);
    if (bind(raw.in, (struct sockaddr *)&own, sizeof own) != 0) {
        bench_die("raw bind: %s", strerror(errno));
    }
    if (multicast) {
        struct ip_mreqn group = {.imr_multiaddr = own.sin_addr};
        inet_pton(AF_INET, BENCH_VETH_ADDRESS(role), &group.imr_address);
        if (setsockopt(raw.in, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof group) != 0 ||
            setsockopt(raw.out, IPPROTO_IP, IP_MULTICAST_IF, &group, sizeof group) != 0 ||
            connect(raw.out, (struct sockaddr *)&raw.to, sizeof raw.to) != 0) {
            bench_die("raw group: %s", strerror(errno));
        }
    }
    raw.epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(raw.epoll, EPOLL_CTL_ADD, raw.in, &event);
    raw.used = PACKET_HEADER;
    return &raw;
}

static void raw_flush(void *side)
{
    (void)side;
    if (raw.used == PACKET_HEADER) {
        return;
    }
    uint32_t number = htonl(raw.datagrams++);
    memset(raw.buffer, 0, PACKET_HEADER);
    memcpy(raw.buffer + 8, &number, 4);
    struct iovec iov = {raw.buffer, raw.used};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (!multicast) {
        msg.msg_name = &raw.to;
        msg.msg_namelen = sizeof raw.to;
    }
    while (sendmsg(raw.out, &msg, MSG_NOSIGNAL) < 0) {
        if (errno != EAGAIN && errno != EINTR && errno != ECONNREFUSED) {
            bench_die("raw send: %s", strerror(errno));
        }
    }
    raw.used = PACKET_HEADER;
}

static void raw_send(void *side, const void *data, size_t len)
{
    uint64_t kind;
    memcpy(&kind, (const char *)data + offsetof(struct bench_header, kind), sizeof kind);
    if (bench_oneway() && (kind == BENCH_WARM || kind == BENCH_MEASURED)) {
        uint64_t sequence;
        memcpy(&sequence, data, sizeof sequence);
        pace(sequence);
    }
    char *p = raw.buffer + raw.used;
    uint16_t length = htons((uint16_t)(FRAME_HEADER + len));
    uint32_t topic = htonl(7), number = htonl(raw.sequence++);
    p[0] = 0;
    p[1] = 0;
    memcpy(p + 2, &length, 2);
    memcpy(p + 4, &topic, 4);
    memcpy(p + 8, &number, 4);
    memcpy(p + FRAME_HEADER, data, len);
    raw.used += FRAME_HEADER + len;
    if (raw.used - PACKET_HEADER + FRAME_HEADER + len > batch_bytes()) {
        raw_flush(side);
    }
}

static void raw_datagram(const char *data, size_t len, void (*on_message)(const void *data))
{
    for (size_t at = PACKET_HEADER; len - at >= FRAME_HEADER && at < len;) {
        uint16_t length;
        memcpy(&length, data + at + 2, 2);
        length = ntohs(length);
        if (length < FRAME_HEADER || length > len - at) {
            return;
        }
        on_message(data + at + FRAME_HEADER);
        at += length;
    }
}

static size_t raw_segment(struct msghdr *msg, size_t len)
{
    for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg); cmsg != NULL; cmsg = CMSG_NXTHDR(msg, cmsg)) {
        if (cmsg->cmsg_level == SOL_UDP && cmsg->cmsg_type == UDP_GRO) {
            int size;
            memcpy(&size, CMSG_DATA(cmsg), sizeof size);
            return size > 0 ? (size_t)size : len;
        }
    }
    return len;
}

static void raw_poll(void *side, void (*on_message)(const void *data), int timeout_ms)
{
    (void)side;
    struct epoll_event event;
    if (!bench_options.spin && epoll_wait(raw.epoll, &event, 1, timeout_ms) <= 0) {
        return;
    }
    for (int i = 0; i < RAW_PACKETS; i++) {
        raw.iov[i] = (struct iovec){raw_packets[i], sizeof raw_packets[i]};
        raw.headers[i].msg_hdr = (struct msghdr){.msg_iov = &raw.iov[i],
                                                 .msg_iovlen = 1,
                                                 .msg_control = raw.control[i],
                                                 .msg_controllen = sizeof raw.control[i]};
    }
    int count = recvmmsg(raw.in, raw.headers, RAW_PACKETS, MSG_DONTWAIT, NULL);
    for (int i = 0; i < count; i++) {
        size_t len = raw.headers[i].msg_len, size = raw_segment(&raw.headers[i].msg_hdr, len);
        for (size_t at = 0; at < len; at += size) {
            raw_datagram(raw_packets[i] + at, len - at < size ? len - at : size, on_message);
        }
    }
}

static const struct peer raw_peer = {raw_open, raw_send, raw_flush, raw_poll};

/* ---- libum ---- */

struct um_side {
    lbm_context_t *ctx;
    lbm_src_t *src;
    lbm_rcv_t *rcv;
    int role;
    uint64_t begin_ns, sent_ns, sequence; /* ping-pong, role 0 */
    char *message;
};

static struct um_side um;

static void um_send(uint64_t sequence, enum bench_kind kind, int flags)
{
    struct bench_header header = {sequence, kind};
    memcpy(um.message, &header, sizeof header);
    um_check(lbm_src_send(um.src, um.message, bench_options.size, flags), "lbm_src_send");
}

static void um_ping(void)
{
    um.sent_ns = bench_now();
    um_send(++um.sequence, BENCH_MEASURED, LBM_MSG_FLUSH | LBM_SRC_NONBLOCK);
}

static void um_pong(const struct bench_header *header)
{
    uint64_t now = bench_now();
    if (header->sequence != um.sequence) {
        return;
    }
    if (now - um.begin_ns > (uint64_t)(bench_options.warm_seconds * 1e9) &&
        bench_shared->sample_count < BENCH_SAMPLES_MAX) {
        bench_shared->samples[bench_shared->sample_count++] = (uint32_t)(now - um.sent_ns);
    }
    if (now - um.begin_ns > (uint64_t)((bench_options.warm_seconds + bench_options.seconds) * 1e9)) {
        atomic_store(&bench_shared->done, 1);
        return;
    }
    um_ping();
}

static int um_on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *cd)
{
    (void)rcv, (void)cd;
    struct bench_header header;
    if (msg->type != LBM_MSG_DATA) {
        return 0;
    }
    if (bench_oneway()) {
        bench_oneway_message(msg->data);
        return 0;
    }
    memcpy(&header, msg->data, sizeof header);
    if (header.kind == BENCH_HELLO) {
        atomic_store(um.role == 0 ? &bench_shared->seen_a : &bench_shared->seen_b, 1);
    } else if (um.role == 0) {
        um_pong(&header);
    } else {
        um_check(lbm_src_send(um.src, msg->data, msg->len, LBM_MSG_FLUSH | LBM_SRC_NONBLOCK), "lbm_src_send");
    }
    return 0;
}

static lbm_context_t *um_context(void)
{
    static const char *const options[][2] = {{"transport_lbtrm_data_rate_limit", LIFTED},
                                             {"transport_lbtrm_retransmit_rate_limit", LIFTED},
                                             {"transport_lbtru_data_rate_limit", LIFTED},
                                             {"transport_lbtru_retransmit_rate_limit", LIFTED}};
    lbm_context_attr_t *attr = um_context_attr(BENCH_VETH_NETWORK);
    if (profile != NULL) {
        um_check(lbm_context_attr_str_setopt(attr, "um_profile", profile), "um_profile");
    }
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        um_check(lbm_context_attr_str_setopt(attr, options[i][0], options[i][1]), options[i][0]);
    }
    if (bench_options.spin) {
        um_check(lbm_context_attr_str_setopt(attr, "file_descriptor_management_behavior", "busy_wait"), "busy_wait");
    }
    return um_context_of(attr);
}

static void um_source(const char *name)
{
    lbm_src_topic_attr_t *attr = um_source_attr(multicast ? "lbtrm" : "lbtru");
    char text[32];
    if (multicast) { /* each direction its group, as in the bare loop: nobody hears itself */
        snprintf(text, sizeof text, "239.77.0.%d", 10 + um.role);
        um_check(lbm_src_topic_attr_str_setopt(attr, "transport_lbtrm_multicast_address", text), "multicast_address");
    }
    snprintf(text, sizeof text, "%zu", messages_per_datagram() * bench_options.size); /* it counts user bytes */
    um_check(lbm_src_topic_attr_str_setopt(attr, "implicit_batching_minimum_length", text), "batching");
    um.src = um_source_of(um.ctx, name, attr);
}

static void um_send_for(double seconds, enum bench_kind kind, uint64_t *sequence)
{
    uint64_t end = bench_now() + (uint64_t)(seconds * 1e9);
    while (bench_now() < end && !bench_finished()) {
        for (int i = 0; i < 64; i++) {
            pace(*sequence);
            um_send((*sequence)++, kind, 0);
        }
    }
}

static void um_greet(atomic_int *heard)
{
    while (!atomic_load(heard) && !bench_finished()) {
        um_send(0, BENCH_HELLO, LBM_MSG_FLUSH);
        bench_sleep_ms(5);
    }
}

static void um_publish(void)
{
    uint64_t sequence = 0;
    um_greet(&bench_shared->seen_b);
    um_send_for(bench_options.warm_seconds, BENCH_WARM, &sequence);
    um_send_for(bench_options.seconds, BENCH_MEASURED, &sequence);
    bench_shared->sent = sequence;
    while (!bench_finished()) {
        um_send(sequence, BENCH_END, LBM_MSG_FLUSH);
        bench_sleep_ms(5);
    }
}

static void um_run(int role)
{
    um.role = role;
    um.message = calloc(1, bench_options.size);
    um.ctx = um_context();
    if (!bench_oneway() || role == 0) {
        um_source(role == 0 ? "bench/a" : "bench/b");
    }
    if (!bench_oneway() || role == 1) {
        um.rcv = um_receiver(um.ctx, role == 0 ? "bench/b" : "bench/a", um_on_message, NULL);
    }
    bench_meet();
    if (bench_oneway() && role == 0) {
        um_publish();
    } else if (!bench_oneway()) {
        um_greet(role == 0 ? &bench_shared->seen_b : &bench_shared->seen_a);
        bench_meet();
        bench_sleep_ms(20); /* the last greetings have passed */
        if (role == 0) {
            um.begin_ns = bench_now();
            um_ping();
        }
    }
    while (!bench_finished()) {
        bench_sleep_ms(5);
    }
}

static void side(int role)
{
    bench_veth(role, MTU);
    if (strcmp(bench_options.impl, "um") == 0) {
        um_run(role);
    } else if (strcmp(bench_options.impl, "raw") == 0) {
        peer_run(&raw_peer, role);
    } else {
        bench_die("--impl %s: um or raw", bench_options.impl);
    }
}

/* Our own options; the rest is left to bench_main. */
static int take_options(int argc, char **argv)
{
    int kept = 1;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--transport") == 0 && i + 1 < argc) {
            multicast = strcmp(argv[++i], "rm") == 0;
        } else if (strcmp(argv[i], "--profile") == 0 && i + 1 < argc) {
            profile = argv[++i];
        } else {
            argv[kept++] = argv[i];
        }
    }
    return kept;
}

int main(int argc, char **argv)
{
    bench_options.warm_seconds = 0.6; /* until the window of repairs is full and its memory in use again */
    return bench_main(take_options(argc, argv), argv, side);
}
