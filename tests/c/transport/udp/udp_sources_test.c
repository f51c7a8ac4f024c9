/* Sources over LBT-RM and LBT-RU on real sockets of a private loopback network:
 * end to end with receivers of the library, and against plain sockets that look at
 * the packets. Mapping to sessions, rate limits, repairs, clients, filters, time stamps. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/um_mem.h"
#include "um_test.h"
#include "um_test_net.h"
#include "um_test_rcv.h"
#include "um_test_thread.h"
#include "wire/um_lbmc.h"
#include "wire/um_lbtrm.h"
#include "wire/um_lbtru.h"

#define GROUP "239.101.3.10"

/* ---- objects ---- */

struct source_events {
    atomic_int connects, disconnects, wakeups, stamps;
    int place; /* of the first WAKEUP among those of all sources */
    char client[64];
    lbm_src_event_timestamp_info_t stamp;
};

static atomic_int wakeups_of_all;

static int on_source_event(lbm_src_t *src, int event, void *ed, void *clientd)
{
    struct source_events *events = clientd;
    if (event == LBM_SRC_EVENT_CONNECT) {
        snprintf(events->client, sizeof events->client, "%s", (const char *)ed);
        events->connects++;
    } else if (event == LBM_SRC_EVENT_DISCONNECT) {
        events->disconnects++;
    } else if (event == LBM_SRC_EVENT_WAKEUP) {
        int place = ++wakeups_of_all;
        events->place = events->wakeups++ == 0 ? place : events->place;
    } else if (event == LBM_SRC_EVENT_TIMESTAMP) {
        events->stamp = *(lbm_src_event_timestamp_info_t *)ed;
        events->stamps++;
    }
    return 0;
}

static void ctx_set(lbm_context_attr_t *attr, const char *option, const char *value)
{
    MUST(lbm_context_attr_str_setopt(attr, option, value));
}

/* Everybody's own ports: several tests run at the same time. */
static lbm_context_attr_t *udp_attr(void)
{
    lbm_context_attr_t *attr = net_context_attr();
    ctx_set(attr, "transport_lbtrm_data_rate_limit", "1000000000");
    ctx_set(attr, "transport_lbtrm_retransmit_rate_limit", "500000000");
    ctx_set(attr, "transport_lbtru_data_rate_limit", "1000000000");
    ctx_set(attr, "transport_lbtru_retransmit_rate_limit", "500000000");
    return attr;
}

static lbm_src_t *udp_source_with(lbm_context_t *ctx, const char *name, const char *const *options,
                                  struct source_events *events)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src = NULL;
    MUST(lbm_src_topic_attr_create(&attr));
    for (; *options != NULL; options += 2) {
        MUST(lbm_src_topic_attr_str_setopt(attr, options[0], options[1]));
    }
    MUST(lbm_src_topic_alloc(&topic, ctx, name, attr));
    if (lbm_src_create(&src, ctx, topic, events != NULL ? on_source_event : NULL, events, NULL) != 0) {
        src = NULL;
    }
    lbm_src_topic_attr_delete(attr);
    return src;
}

#define udp_source(ctx, name, events, ...) udp_source_with(ctx, name, (const char *const[]){__VA_ARGS__, NULL}, events)

static void source_text(lbm_src_t *src, char *text, size_t size)
{
    lbm_src_transport_stats_t stats;
    MUST(lbm_src_retrieve_transport_stats(src, &stats));
    snprintf(text, size, "%s", stats.source);
}

/* ---- end to end ---- */

TEST(lbtrm_messages_reach_a_receiver_of_the_library)
{
    TEST_NEEDS_NET();
    struct recorder r = RECORDER_INIT;
    lbm_context_t *ctx = net_context_with(udp_attr()), *other = net_context_with(udp_attr());
    lbm_rcv_t *rcv = net_recording_receiver(other, "rm", &r);
    lbm_src_t *src = udp_source(ctx, "rm", NULL, "transport", "lbt-rm");
    CHECK(src != NULL);
    for (int i = 0; i < HANG_SECONDS * 50 && recorder_count(&r, LBM_MSG_BOS) == 0; i++) {
        net_send(src, "x");
        sleep_ms(20);
    }
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 1));
    int before = recorder_count(&r, LBM_MSG_DATA);
    static char big[100000];
    for (int i = 0; i < 200; i++) {
        MUST(lbm_src_send(src, big, i % 20 == 0 ? sizeof big : 100, 0));
    }
    MUST(lbm_src_flush(src));
    CHECK(recorder_wait(&r, LBM_MSG_DATA, before + 200));
    CHECK_EQ(recorder_count(&r, LBM_MSG_UNRECOVERABLE_LOSS), 0);
    CHECK(strncmp(r.source, "LBTRM:127.0.0.1:143", 19) == 0);
    lbm_rcv_delete(rcv);
    lbm_src_delete(src);
    lbm_context_delete(other);
    lbm_context_delete(ctx);
}

TEST(lbtru_messages_after_connect_reach_a_receiver_of_the_library)
{
    TEST_NEEDS_NET();
    struct recorder r = RECORDER_INIT;
    struct source_events events = {0};
    lbm_context_t *ctx = net_context_with(udp_attr()), *other = net_context_with(udp_attr());
    lbm_rcv_t *rcv = net_recording_receiver(other, "ru", &r);
    lbm_src_t *src = udp_source(ctx, "ru", &events, "transport", "lbt-ru");
    CHECK(src != NULL);
    CHECK_EQ(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000), 0);
    static char big[100000];
    for (int i = 0; i < 200; i++) {
        MUST(lbm_src_send(src, big, i % 20 == 0 ? sizeof big : 100, 0));
    }
    MUST(lbm_src_flush(src));
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 200));
    CHECK_EQ(recorder_count(&r, LBM_MSG_UNRECOVERABLE_LOSS), 0);
    CHECK(strncmp(r.source, "LBT-RU:127.0.0.1:143", 20) == 0);
    for (int i = 0; i < HANG_SECONDS * 200 && events.connects == 0; i++) { /* it is told after it counts as one */
        sleep_ms(5);
    }
    CHECK_EQ(events.connects, 1);
    CHECK(strncmp(events.client, "LBT-RU:127.0.0.1:143", 20) == 0);
    lbm_rcv_delete(rcv);
    lbm_src_delete(src);
    lbm_context_delete(other);
    lbm_context_delete(ctx);
}

/* ---- plain sockets that look at packets ---- */

struct packet {
    uint8_t data[65536];
    size_t len;
    struct sockaddr_in from;
    int ttl;
};

static int udp_socket(const char *ip, uint16_t port)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), one = 1;
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = inet_addr(ip)};
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    setsockopt(fd, IPPROTO_IP, IP_RECVTTL, &one, sizeof one);
    MUST(bind(fd, (struct sockaddr *)&addr, sizeof addr));
    return fd;
}

static int group_socket(const char *group, uint16_t port)
{
    struct ip_mreqn join = {.imr_multiaddr.s_addr = inet_addr(group), .imr_address.s_addr = inet_addr("127.0.0.1")};
    int fd = udp_socket(group, port);
    MUST(setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &join, sizeof join));
    return fd;
}

/* False after `ms` without one. */
static bool next_packet(int fd, struct packet *packet, int ms)
{
    struct pollfd pfd = {.fd = fd, .events = POLLIN};
    char control[64];
    struct iovec iov = {packet->data, sizeof packet->data};
    struct msghdr msg = {.msg_name = &packet->from,
                         .msg_namelen = sizeof packet->from,
                         .msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control,
                         .msg_controllen = sizeof control};
    if (poll(&pfd, 1, ms) <= 0) {
        return false;
    }
    ssize_t len = recvmsg(fd, &msg, 0);
    packet->len = len > 0 ? (size_t)len : 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c != NULL; c = CMSG_NXTHDR(&msg, c)) {
        if (c->cmsg_type == IP_TTL) {
            memcpy(&packet->ttl, CMSG_DATA(c), sizeof packet->ttl);
        }
    }
    return len > 0;
}

/* The next packet of the type within the hang limit. */
static bool next_rm(int fd, enum um_lbtrm_type type, struct packet *packet, struct um_lbtrm_packet *out)
{
    while (next_packet(fd, packet, HANG_SECONDS * 1000)) {
        if (um_lbtrm_decode(packet->data, packet->len, out) == UM_LBTR_OK && out->type == type) {
            return true;
        }
    }
    return false;
}

static bool next_ru(int fd, enum um_lbtru_type type, struct packet *packet, struct um_lbtru_packet *out)
{
    while (next_packet(fd, packet, HANG_SECONDS * 1000)) {
        if (um_lbtru_decode(packet->data, packet->len, out) == UM_LBTR_OK && out->type == type) {
            return true;
        }
    }
    return false;
}

static void send_to(int fd, const char *ip, uint16_t port, const uint8_t *data, size_t len)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = inet_addr(ip)};
    MUST((int)sendto(fd, data, len, 0, (struct sockaddr *)&to, sizeof to));
}

static void send_rm_nak(int fd, const struct um_lbtrm_session *session, uint32_t sqn)
{
    uint8_t nak[UM_LBTR_LIST_BYTES_MAX];
    send_to(fd, "127.0.0.1", session->ucast_port, nak, um_lbtrm_put_nak(nak, session, &sqn, 1));
}

/* ---- LBT-RM on the wire ---- */

static lbm_src_transport_stats_lbtrm_t rm_stats(lbm_src_t *src)
{
    lbm_src_transport_stats_t stats;
    MUST(lbm_src_retrieve_transport_stats(src, &stats));
    return stats.transport.lbtrm;
}

TEST(s4_naks_are_answered_by_repairs_and_refusals_and_counted_by_receiver)
{
    TEST_NEEDS_NET();
    static struct packet p;
    struct um_lbtrm_packet first, again, ncf;
    lbm_context_t *ctx = net_context_with(udp_attr());
    int group = group_socket(GROUP, 24400), nakker = udp_socket("127.0.0.1", 0), other = udp_socket("127.0.0.1", 0);
    lbm_src_t *src =
        udp_source(ctx, "nak", NULL, "transport", "lbtrm", "transport_lbtrm_multicast_address", GROUP,
                   "transport_lbtrm_destination_port", "24400", "transport_lbtrm_ignore_interval", "600000");
    CHECK(src != NULL);
    net_send(src, "hello");
    CHECK(next_rm(group, UM_LBTRM_DATA, &p, &first));
    CHECK_EQ(first.sqn, 0);
    CHECK(!first.retransmission);
    CHECK_EQ(p.ttl, 16);
    struct um_lbmc_msg msg;
    CHECK_EQ(um_lbmc_decode(first.payload.ptr, first.payload.len, &msg), UM_LBMC_OK);
    CHECK_EQ(msg.payload.len, 5);
    send_rm_nak(nakker, &first.session, 0);
    CHECK(next_rm(group, UM_LBTRM_DATA, &p, &again));
    CHECK(again.retransmission);
    CHECK_EQ(again.sqn, 0);
    CHECK_EQ(again.payload.len, first.payload.len);
    send_rm_nak(other, &first.session, 0);
    CHECK(next_rm(group, UM_LBTRM_NCF, &p, &ncf));
    CHECK_EQ(ncf.reason, UM_LBTR_NAK_IGNORED);
    send_rm_nak(nakker, &(struct um_lbtrm_session){first.session.ucast_port, 1}, 0); /* another session */
    send_rm_nak(nakker, &first.session, 0);
    um_src_naks_t naks[4];
    um_src_stats_t counts;
    int count = 0;
    for (int i = 0; i < HANG_SECONDS * 200 && rm_stats(src).naks_rcved < 3; i++) {
        sleep_ms(5);
    }
    count = 4;
    CHECK_EQ(um_src_naks(src, naks, &count), 0);
    CHECK_EQ(count, 2);
    CHECK(strncmp(naks[0].receiver, "127.0.0.1:", 10) == 0);
    CHECK_EQ(naks[0].naks, 2);
    CHECK_EQ(naks[0].nak_packets, 2);
    CHECK_EQ(naks[1].naks, 1);
    count = 1;
    CHECK_EQ(um_src_naks(src, naks, &count), 0);
    CHECK_EQ(count, 2);
    count = -1;
    CHECK_EQ(um_src_naks(src, naks, &count), -1);
    CHECK_EQ(um_src_stats(src, &counts), 0);
    CHECK_EQ(counts.session_ignored_messages, 1);
    lbm_src_transport_stats_lbtrm_t stats = rm_stats(src);
    CHECK_EQ(stats.msgs_sent, 1);
    CHECK_EQ(stats.bytes_sent, UM_LBTRM_DATA_HDR + first.payload.len);
    CHECK_EQ(stats.txw_msgs, 1);
    CHECK_EQ(stats.txw_bytes, 5);
    CHECK_EQ(stats.rxs_sent, 1);
    CHECK_EQ(stats.naks_ignored, 2);
    MUST(lbm_src_reset_transport_stats(src));
    stats = rm_stats(src);
    CHECK_EQ(stats.msgs_sent + stats.naks_rcved + stats.rxs_sent, 0);
    CHECK_EQ(stats.txw_msgs, 1);
    count = 0;
    CHECK_EQ(um_src_naks(src, NULL, &count), 0);
    CHECK_EQ(count, 0);
    lbm_src_delete(src);
    lbm_context_delete(ctx);
    close(group);
    close(nakker);
    close(other);
}

TEST(lbtrm_implicit_sources_take_the_groups_in_turn_and_never_an_explicit_one)
{
    TEST_NEEDS_NET();
    lbm_context_attr_t *attr = udp_attr();
    ctx_set(attr, "transport_lbtrm_multicast_address_low", "239.101.3.20");
    ctx_set(attr, "transport_lbtrm_multicast_address_high", "239.101.3.22");
    lbm_context_t *ctx = net_context_with(attr);
    lbm_src_t *src[8];
    char text[8][LBM_MSG_MAX_SOURCE_LEN];
    lbm_src_t *fixed = udp_source(ctx, "fixed", NULL, "transport", "lbtrm", "transport_lbtrm_multicast_address", GROUP);
    CHECK(fixed != NULL);
    for (int i = 0; i < 8; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%d", i);
        src[i] = i < 7 ? udp_source(ctx, name, NULL, "transport", "lbtrm")
                       : udp_source(ctx, name, NULL, "transport", "lbtrm", "transport_lbtrm_destination_port", "24401");
        CHECK(src[i] != NULL);
        source_text(src[i], text[i], sizeof text[i]);
    }
    CHECK(strstr(text[0], ":239.101.3.20:14400") != NULL);
    CHECK(strstr(text[1], ":239.101.3.21:14400") != NULL);
    CHECK(strstr(text[2], ":239.101.3.22:14400") != NULL);
    CHECK_STR(text[3], text[0]);
    CHECK_STR(text[4], text[1]);
    CHECK_STR(text[5], text[2]);
    CHECK_STR(text[6], text[0]);
    CHECK(strstr(text[7], ":239.101.3.20:24401") != NULL); /* each destination port has its pool */
    lbm_src_transport_stats_t all[8];
    int count = 8;
    MUST(lbm_context_retrieve_src_transport_stats(ctx, &count, all));
    CHECK_EQ(count, 5);
    lbm_src_delete(src[7]);
    src[7] = udp_source(ctx, "again", NULL, "transport", "lbtrm", "transport_lbtrm_destination_port", "24401");
    char again[LBM_MSG_MAX_SOURCE_LEN];
    source_text(src[7], again, sizeof again);
    CHECK(strcmp(again, text[7]) != 0); /* a new session id */
    for (int i = 0; i < 8; i++) {
        lbm_src_delete(src[i]);
    }
    lbm_src_delete(fixed);
    lbm_context_delete(ctx);
}

TEST(lbtrm_exhausted_nak_ports_and_crossed_ranges_name_the_options)
{
    TEST_NEEDS_NET();
    lbm_context_attr_t *attr = udp_attr();
    ctx_set(attr, "transport_lbtrm_source_port_low", "24390");
    ctx_set(attr, "transport_lbtrm_source_port_high", "24390");
    lbm_context_t *ctx = net_context_with(attr);
    lbm_src_t *one = udp_source(ctx, "one", NULL, "transport", "lbtrm");
    CHECK(one != NULL);
    CHECK(udp_source(ctx, "two", NULL, "transport", "lbtrm") == NULL);
    CHECK(strstr(lbm_errmsg(), "CoreApi-5688-3287") != NULL);
    CHECK(strstr(lbm_errmsg(), "transport_lbtrm_source_port_low") != NULL);
    lbm_src_delete(one);
    lbm_context_delete(ctx);
    static const char *const crossed[][3] = {{"transport_lbtrm_source_port_low", "14400", "CoreApi-8812-4"},
                                             {"transport_lbtrm_multicast_address_low", "239.255.0.1", "CoreApi-8812-5"},
                                             {"transport_lbtru_port_low", "14390", "CoreApi-8812-6"}};
    for (int i = 0; i < 3; i++) {
        attr = udp_attr();
        ctx_set(attr, crossed[i][0], crossed[i][1]);
        CHECK_EQ(lbm_context_create(&ctx, attr, NULL, NULL), -1);
        CHECK(strstr(lbm_errmsg(), crossed[i][2]) != NULL);
        lbm_context_attr_delete(attr);
    }
}

/* ---- rate limits ---- */

/* 10,000 bytes in 100 ms. */
static lbm_context_attr_t *slow_attr(void)
{
    lbm_context_attr_t *attr = net_context_attr();
    ctx_set(attr, "transport_lbtrm_data_rate_limit", "800000");
    ctx_set(attr, "transport_lbtrm_rate_interval", "100");
    ctx_set(attr, "transport_lbtru_data_rate_limit", "800000");
    return attr;
}

/* Sends of 1000 bytes until one is refused; how many were accepted. */
static int send_until_refused(lbm_src_t *src)
{
    static char payload[1000];
    for (int i = 0; i < 100; i++) {
        if (lbm_src_send(src, payload, sizeof payload, LBM_MSG_FLUSH | LBM_SRC_NONBLOCK) != 0) {
            return i;
        }
    }
    return 100;
}

TEST(rate_limit_refuses_non_blocking_sends_of_all_sources_of_the_transport_and_wakes_each_once)
{
    TEST_NEEDS_NET();
    struct source_events events[3] = {0};
    lbm_context_t *ctx = net_context_with(slow_attr());
    lbm_src_t *a = udp_source(ctx, "a", &events[0], "transport", "lbtrm");
    lbm_src_t *b = udp_source(ctx, "b", &events[1], "transport", "lbtrm");
    lbm_src_t *tcp = udp_source(ctx, "tcp", &events[2], "transport", "tcp");
    int accepted = send_until_refused(a);
    CHECK(accepted > 5 && accepted < 100);
    CHECK_EQ(lbm_errnum(), LBM_EWOULDBLOCK);
    CHECK(strstr(lbm_errmsg(), "transport_lbtrm_data_rate_limit") != NULL);
    int more = send_until_refused(b); /* the interval may just have changed */
    CHECK(more < 100);
    CHECK_EQ(lbm_src_send(b, "x", 1, LBM_SRC_NONBLOCK), 0); /* joins a batch only */
    CHECK_EQ(lbm_src_send(tcp, "x", 1, LBM_MSG_FLUSH | LBM_SRC_NONBLOCK), 0);
    for (int i = 0; i < HANG_SECONDS * 200 && (events[0].wakeups == 0 || events[1].wakeups == 0); i++) {
        sleep_ms(5);
    }
    CHECK_EQ(events[0].wakeups, 1);
    CHECK_EQ(events[1].wakeups, 1);
    CHECK_EQ(events[2].wakeups, 0);
    CHECK(send_until_refused(a) > 0);
    lbm_src_delete(a);
    lbm_src_delete(b);
    lbm_src_delete(tcp);
    lbm_context_delete(ctx);
}

TEST(the_session_that_has_just_sent_is_woken_last)
{
    TEST_NEEDS_NET();
    static char payload[1000];
    struct source_events events[3] = {0};
    lbm_context_attr_t *attr = slow_attr();
    ctx_set(attr, "operational_mode", "sequential");
    lbm_context_t *ctx = net_context_with(attr);
    lbm_src_t *src[3];
    for (int i = 0; i < 3; i++) {
        src[i] = udp_source(ctx, i == 0 ? "a" : i == 1 ? "b" : "c", &events[i], "transport", "lbtrm");
    }
    while (rm_stats(src[0]).rctlr_data_msgs == 0) {
        MUST(lbm_src_send(src[0], payload, sizeof payload, LBM_MSG_FLUSH | LBM_SRC_NONBLOCK));
    }
    wakeups_of_all = 0;
    for (int i = 2; i >= 0; i--) {
        CHECK_EQ(lbm_src_send(src[i], payload, sizeof payload, LBM_MSG_FLUSH | LBM_SRC_NONBLOCK), -1);
    }
    for (int i = 0; i < HANG_SECONDS * 100 && wakeups_of_all < 3; i++) {
        MUST(lbm_context_process_events(ctx, 10));
    }
    CHECK(events[2].place == 1 && events[1].place == 2 && events[0].place == 3);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(events[i].wakeups, 1);
        lbm_src_delete(src[i]);
    }
    lbm_context_delete(ctx);
}

TEST(rate_limit_blocks_senders_and_nothing_is_lost)
{
    TEST_NEEDS_NET();
    struct recorder r = RECORDER_INIT;
    static char payload[5000];
    lbm_context_t *ctx = net_context_with(slow_attr()), *other = net_context_with(slow_attr());
    lbm_rcv_t *rcv = net_recording_receiver(other, "slow", &r);
    lbm_src_t *src = udp_source(ctx, "slow", NULL, "transport", "lbtru");
    CHECK_EQ(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000), 0);
    for (int i = 0; i < 12; i++) {
        MUST(lbm_src_send(src, payload, sizeof payload, LBM_MSG_FLUSH)); /* 60,000 bytes: six intervals */
    }
    static char big[40000];
    MUST(lbm_src_send(src, big, sizeof big, LBM_MSG_FLUSH));
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 13));
    CHECK_EQ(recorder_count(&r, LBM_MSG_UNRECOVERABLE_LOSS), 0);
    lbm_rcv_delete(rcv);
    lbm_src_delete(src);
    lbm_context_delete(other);
    lbm_context_delete(ctx);
}

TEST(a_non_blocking_message_of_many_fragments_is_accepted_whole_and_leaves_within_the_limit)
{
    TEST_NEEDS_NET();
    static struct packet p;
    struct um_lbtrm_packet data;
    static char big[50000];
    lbm_context_t *ctx = net_context_with(slow_attr());
    int group = group_socket(GROUP, 24402);
    lbm_src_t *src = udp_source(ctx, "whole", NULL, "transport", "lbtrm", "transport_lbtrm_multicast_address", GROUP,
                                "transport_lbtrm_destination_port", "24402");
    CHECK_EQ(lbm_src_send(src, big, sizeof big, LBM_MSG_FLUSH | LBM_SRC_NONBLOCK), 0);
    CHECK_EQ(lbm_src_send(src, big, 1, LBM_MSG_FLUSH | LBM_SRC_NONBLOCK), -1);
    CHECK(rm_stats(src).rctlr_data_msgs > 0);
    for (uint32_t i = 0; i < 7; i++) {
        CHECK(next_rm(group, UM_LBTRM_DATA, &p, &data));
        CHECK_EQ(data.sqn, i);
    }
    CHECK_EQ(rm_stats(src).rctlr_data_msgs, 0);
    lbm_src_delete(src);
    lbm_context_delete(ctx);
    close(group);
}

TEST(a_blocked_sender_of_a_sequential_context_goes_on_by_itself)
{
    TEST_NEEDS_NET();
    static char payload[1000];
    lbm_context_attr_t *attr = slow_attr();
    ctx_set(attr, "operational_mode", "sequential");
    lbm_context_t *ctx = net_context_with(attr);
    lbm_src_t *src = udp_source(ctx, "seq", NULL, "transport", "lbtrm");
    for (int i = 0; i < 50; i++) { /* five intervals; nobody processes events */
        MUST(lbm_src_send(src, payload, sizeof payload, LBM_MSG_FLUSH));
    }
    CHECK(rm_stats(src).msgs_sent >= 40);
    lbm_src_delete(src);
    lbm_context_delete(ctx);
}

struct blocked_sender {
    lbm_src_t *src;
    atomic_int rc, done, tid, sent;
};

static void *send_on(void *arg)
{
    struct blocked_sender *sender = arg;
    static char payload[5000];
    int rc = 0;
    sender->tid = um_test_thread_id();
    while (rc == 0) {
        rc = lbm_src_send(sender->src, payload, sizeof payload, LBM_MSG_FLUSH);
        sender->sent++;
    }
    sender->rc = lbm_errnum();
    sender->done = 1;
    return NULL;
}

TEST(deleting_a_source_wakes_its_blocked_sender)
{
    TEST_NEEDS_NET();
    lbm_context_attr_t *attr = slow_attr();
    ctx_set(attr, "transport_lbtrm_data_rate_limit", "8000");
    lbm_context_t *ctx = net_context_with(attr);
    struct blocked_sender sender = {.src = udp_source(ctx, "del", NULL, "transport", "lbtrm")};
    pthread_t thread;
    pthread_create(&thread, NULL, send_on, &sender);
    int before;
    do { /* until it waits, which is for a tenth of a second at a time */
        before = sender.sent;
        sleep_ms(20);
    } while (sender.tid == 0 || !um_test_thread_sleeps(sender.tid) || sender.sent != before);
    lbm_src_delete(sender.src);
    pthread_join(thread, NULL);
    CHECK_EQ(sender.rc, LBM_EINVAL);
    lbm_context_delete(ctx);
}

/* ---- LBT-RU on the wire ---- */

struct ru_client {
    int fd;
    uint16_t port; /* of the source */
    uint32_t sid;
};

/* A plain socket that is a client of the source. */
static struct ru_client ru_client(lbm_src_t *src)
{
    char text[LBM_MSG_MAX_SOURCE_LEN];
    lbm_transport_source_info_t info;
    source_text(src, text, sizeof text);
    MUST(lbm_transport_source_parse(text, &info, sizeof info));
    return (struct ru_client){udp_socket("127.0.0.1", 0), info.src_port, info.session_id};
}

static void ru_request(const struct ru_client *client)
{
    uint8_t packet[UM_LBTRU_CREQ_MAX];
    send_to(client->fd, "127.0.0.1", client->port, packet, um_lbtru_put_creq(packet, client->sid));
}

static void ru_ack(const struct ru_client *client, uint32_t sqn)
{
    uint8_t packet[UM_LBTRU_ACK_MAX];
    send_to(client->fd, "127.0.0.1", client->port, packet, um_lbtru_put_ack(packet, client->sid, sqn));
}

/* Returns the first number of the new client. */
static uint32_t ru_connect(const struct ru_client *client)
{
    static struct packet p;
    struct um_lbtru_packet packet = {0};
    ru_request(client);
    if (next_ru(client->fd, UM_LBTRU_SM, &p, &packet) && packet.syn) {
        ru_ack(client, packet.lead);
    }
    return packet.trail;
}

static void ru_nak(const struct ru_client *client, uint32_t sqn)
{
    uint8_t packet[UM_LBTR_LIST_BYTES_MAX];
    send_to(client->fd, "127.0.0.1", client->port, packet, um_lbtru_put_nak(packet, client->sid, &sqn, 1));
}

static lbm_src_transport_stats_lbtru_t ru_stats(lbm_src_t *src)
{
    lbm_src_transport_stats_t stats;
    MUST(lbm_src_retrieve_transport_stats(src, &stats));
    return stats.transport.lbtru;
}

TEST(lbtru_clients_connect_and_get_numbers_of_their_own)
{
    TEST_NEEDS_NET();
    static struct packet p;
    struct um_lbtru_packet packet;
    struct source_events events = {0}, late_events = {0};
    lbm_context_t *ctx = net_context_with(udp_attr());
    lbm_src_t *src = udp_source(ctx, "ru1", &events, "transport", "lbtru", "transport_lbtru_port", "24410");
    CHECK(src != NULL);
    struct ru_client first = ru_client(src), second = ru_client(src), stranger = ru_client(src);
    CHECK_EQ(first.port, 24410);
    net_send(src, "nobody hears this");
    uint32_t from = ru_connect(&first);
    CHECK(next_ru(first.fd, UM_LBTRU_DATA, &p, &packet)); /* the last numbers: it is ready */
    CHECK_EQ(packet.sqn, from);
    CHECK_EQ(packet.payload.ptr[0], UM_LBMC_CONTROL);
    for (int i = 0; i < HANG_SECONDS * 200 && events.connects == 0; i++) {
        sleep_ms(5);
    }
    CHECK_EQ(events.connects, 1);
    CHECK(strncmp(events.client, "LBT-RU:127.0.0.1:", 17) == 0);
    net_send(src, "one");
    CHECK(next_ru(first.fd, UM_LBTRU_DATA, &p, &packet));
    CHECK_EQ(packet.sqn, from + 1);
    uint32_t second_from = ru_connect(&second);
    CHECK(second_from != from); /* nobody can guess it */
    CHECK(next_ru(second.fd, UM_LBTRU_DATA, &p, &packet));
    CHECK_EQ(packet.sqn, second_from);
    lbm_src_t *late = udp_source(ctx, "ru2", &late_events, "transport", "lbtru", "transport_lbtru_port", "24410");
    for (int i = 0; i < HANG_SECONDS * 200 && (events.connects < 2 || late_events.connects < 2); i++) {
        sleep_ms(5);
    }
    CHECK_EQ(late_events.connects, 2);
    CHECK_EQ(ru_stats(src).num_clients, 2);
    net_send(src, "two");
    CHECK(next_ru(first.fd, UM_LBTRU_DATA, &p, &packet));
    CHECK_EQ(packet.sqn, from + 2);
    CHECK(next_ru(second.fd, UM_LBTRU_DATA, &p, &packet));
    CHECK_EQ(packet.sqn, second_from + 1);
    ru_nak(&second, second_from + 1);
    CHECK(next_ru(second.fd, UM_LBTRU_DATA, &p, &packet));
    CHECK(packet.retransmission);
    CHECK_EQ(packet.sqn, second_from + 1);
    CHECK(!next_packet(first.fd, &p, 20) || p.data[0] != UM_LBTRU_DATA); /* repairs go to who asked */
    ru_ack(&stranger, 0);
    CHECK(next_ru(stranger.fd, UM_LBTRU_RST, &p, &packet));
    lbm_src_delete(late);
    lbm_src_delete(src);
    lbm_context_delete(ctx);
    close(first.fd);
    close(second.fd);
    close(stranger.fd);
}

TEST(lbtru_clients_are_dropped_when_they_are_silent)
{
    TEST_NEEDS_NET();
    struct source_events events[2] = {0};
    lbm_context_t *ctx = net_context_with(udp_attr());
    lbm_src_t *src[2];
    for (int i = 0; i < 2; i++) {
        src[i] = udp_source(ctx, i == 0 ? "quiet" : "quiet, too", &events[i], "transport", "lbtru",
                            "transport_lbtru_client_activity_timeout", "2000", "transport_lbtru_port", "24411");
        CHECK(src[i] != NULL);
    }
    struct ru_client first = ru_client(src[0]), second = ru_client(src[0]);
    ru_connect(&first);
    ru_connect(&second);
    for (int i = 0; i < HANG_SECONDS * 200 && (events[0].disconnects < 2 || events[1].disconnects < 2); i++) {
        sleep_ms(5);
    }
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(events[i].connects, 2);
        CHECK_EQ(events[i].disconnects, 2);
        CHECK_EQ(um_src_receivers(src[i]), 0);
    }
    CHECK_EQ(ru_stats(src[0]).num_clients, 0);
    lbm_src_delete(src[0]);
    lbm_src_delete(src[1]);
    lbm_context_delete(ctx);
    close(first.fd);
    close(second.fd);
}

static uint64_t strangers_of(lbm_src_t *src)
{
    um_src_stats_t stats;
    MUST(um_src_stats(src, &stats));
    return stats.session_strangers;
}

TEST(f8_an_address_that_proves_nothing_gets_answers_only_and_is_no_client)
{
    TEST_NEEDS_NET();
    static struct packet p;
    struct source_events events = {0};
    size_t got = 0;
    um_src_stats_t stats;
    lbm_context_t *ctx = net_context_with(udp_attr());
    lbm_src_t *src = udp_source(ctx, "strange", &events, "transport", "lbtru");
    struct ru_client stranger = ru_client(src);
    for (int i = 0; i < 10; i++) {
        ru_request(&stranger);
        ru_ack(&stranger, (uint32_t)i);
        net_send(src, "for clients");
    }
    for (int i = 0; i < HANG_SECONDS * 200 && strangers_of(src) < 10; i++) {
        sleep_ms(5);
    }
    while (next_packet(stranger.fd, &p, 100)) {
        got += p.len;
    }
    CHECK(got > 0);
    CHECK(got <= 10 * 10 * UM_LBTRU_CREQ_MAX);
    CHECK_EQ(ru_stats(src).msgs_sent, 0);
    CHECK_EQ(events.connects, 0);
    CHECK_EQ(um_src_stats(src, &stats), 0);
    CHECK_EQ(stats.session_strangers, 10);
    CHECK_EQ(stats.receivers, 0);
    lbm_src_delete(src);
    lbm_context_delete(ctx);
    close(stranger.fd);
}

/* Is the new client told anything: the last numbers, or how to ask for topics? */
static bool greeted(const struct ru_client *client, int ms)
{
    static struct packet p;
    struct um_lbtru_packet packet;
    while (next_packet(client->fd, &p, ms)) {
        if (um_lbtru_decode(p.data, p.len, &packet) == UM_LBTR_OK && packet.type == UM_LBTRU_DATA) {
            return memmem(p.data, p.len, "waits", 5) == NULL;
        }
    }
    return false;
}

TEST(lbtru_requests_with_a_wrong_session_id_leave_the_batch_alone)
{
    TEST_NEEDS_NET();
    static struct packet p;
    struct um_lbtru_packet packet;
    lbm_context_t *ctx = net_context_with(udp_attr());
    lbm_src_t *src = udp_source(ctx, "batched", NULL, "transport", "lbtru", "implicit_batching_interval", "600000",
                                "implicit_batching_minimum_length", "8000");
    CHECK(src != NULL);
    struct ru_client client = ru_client(src), stranger = ru_client(src), late = ru_client(src);
    ru_connect(&client);
    CHECK(greeted(&client, HANG_SECONDS * 1000));
    MUST(lbm_src_send(src, "waits", 5, 0));
    stranger.sid++;
    for (int i = 0; i < 10; i++) {
        ru_request(&stranger);
    }
    while (next_packet(stranger.fd, &p, 100)) {
        CHECK(false); /* it gets no answer */
    }
    CHECK_EQ(ru_stats(src).msgs_sent, 1); /* the numbers */
    ru_connect(&late);                    /* begins behind the batch, which leaves for the others */
    CHECK(greeted(&late, HANG_SECONDS * 1000));
    CHECK(next_ru(client.fd, UM_LBTRU_DATA, &p, &packet));
    CHECK(memmem(p.data, p.len, "waits", 5) != NULL);
    CHECK_EQ(ru_stats(src).msgs_sent, 3);
    close(client.fd);
    close(stranger.fd);
    close(late.fd);
    lbm_src_delete(src);
    lbm_context_delete(ctx);
}

static atomic_bool no_window_memory;

/* The chunks of the transmission window. */
static bool fail_large(size_t size)
{
    return no_window_memory && size >= 16384;
}

TEST(lbtru_clients_that_came_without_memory_are_greeted_when_there_is_some)
{
    TEST_NEEDS_NET();
    for (int filtering = 0; filtering < 2; filtering++) {
        lbm_context_t *ctx = net_context_with(udp_attr());
        lbm_src_t *src = udp_source(ctx, "poor", NULL, "transport", "lbtru", "transport_source_side_filtering_behavior",
                                    filtering ? "inclusion" : "none");
        CHECK(src != NULL);
        struct ru_client first = ru_client(src), second = ru_client(src);
        static char big[7000];
        ru_connect(&first);
        CHECK(greeted(&first, HANG_SECONDS * 1000));
        no_window_memory = true;
        um_mem_set_fail_hook(fail_large);
        while (lbm_src_send(src, big, sizeof big, LBM_MSG_FLUSH | LBM_SRC_NONBLOCK) == 0) {
        }
        CHECK_EQ(lbm_errnum(), LBM_ENOMEM);
        ru_connect(&second);
        CHECK(!greeted(&second, 50));
        no_window_memory = false;
        CHECK(greeted(&second, HANG_SECONDS * 1000)); /* it does not ask again */
        um_mem_set_fail_hook(NULL);
        close(first.fd);
        close(second.fd);
        lbm_src_delete(src);
        lbm_context_delete(ctx);
    }
}

TEST(adaptive_batching_sends_at_once_when_the_session_was_idle)
{
    TEST_NEEDS_NET();
    static struct packet p;
    struct um_lbtrm_packet rm;
    struct um_lbtru_packet ru;
#define ADAPTIVE                                                                                                       \
    "implicit_batching_type", "adaptive", "implicit_batching_interval", "600000", "implicit_batching_minimum_length",  \
        "8000"
    lbm_context_t *ctx = net_context_with(udp_attr());
    int group = group_socket(GROUP, 24405);
    lbm_src_t *a = udp_source(ctx, "am", NULL, "transport", "lbtrm", "transport_lbtrm_multicast_address", GROUP,
                              "transport_lbtrm_destination_port", "24405", ADAPTIVE);
    lbm_src_t *b = udp_source(ctx, "au", NULL, "transport", "lbtru", ADAPTIVE);
    struct ru_client client = ru_client(b);
    ru_connect(&client);
    CHECK(greeted(&client, HANG_SECONDS * 1000));
    for (int i = 0; i < 3; i++) {
        sleep_ms(20); /* idle */
        MUST(lbm_src_send(a, "over RM", 7, 0));
        CHECK(next_rm(group, UM_LBTRM_DATA, &p, &rm));
        CHECK(memmem(p.data, p.len, "over RM", 7) != NULL);
        MUST(lbm_src_send(b, "over RU", 7, 0));
        CHECK(next_ru(client.fd, UM_LBTRU_DATA, &p, &ru));
        CHECK(memmem(p.data, p.len, "over RU", 7) != NULL);
    }
    unsigned long before = rm_stats(a).msgs_sent;
    for (int i = 0; i < 1000; i++) { /* busy: most of them share datagrams */
        MUST(lbm_src_send(a, "burst", 5, 0));
    }
    CHECK(rm_stats(a).msgs_sent - before < 500);
    close(client.fd);
    close(group);
    lbm_src_delete(a);
    lbm_src_delete(b);
    lbm_context_delete(ctx);
}

TEST(lbtru_ports_follow_the_rules_of_the_pool)
{
    TEST_NEEDS_NET();
    lbm_context_attr_t *attr = udp_attr();
    ctx_set(attr, "transport_lbtru_port_low", "24420");
    ctx_set(attr, "transport_lbtru_port_high", "24422");
    ctx_set(attr, "transport_lbtru_maximum_ports", "2");
    lbm_context_t *ctx = net_context_with(attr), *other = net_context_with(udp_attr());
    lbm_src_t *src[8];
    static const char *const expected[] = {":24420:", ":24421:", ":24420:", ":24425:", ":24421:", ":24425:"};
    char text[LBM_MSG_MAX_SOURCE_LEN];
    for (int i = 0; i < 6; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%d", i);
        src[i] = i == 3 ? udp_source(ctx, name, NULL, "transport", "lbtru", "transport_lbtru_port", "24425")
                        : udp_source(ctx, name, NULL, "transport", "lbtru");
        CHECK(src[i] != NULL);
        source_text(src[i], text, sizeof text);
        CHECK(strstr(text, expected[i]) != NULL);
    }
    CHECK(udp_source(other, "taken", NULL, "transport", "lbtru", "transport_lbtru_port", "24425") == NULL);
    CHECK(strstr(lbm_errmsg(), "transport_lbtru_port") != NULL);
    src[6] = udp_source(other, "e1", NULL, "transport", "lbtru", "transport_lbtru_port", "24425",
                        "transport_lbtru_allow_ephemeral", "1");
    src[7] = udp_source(other, "e2", NULL, "transport", "lbtru", "transport_lbtru_port", "24425");
    CHECK(src[6] != NULL);
    CHECK(src[7] != NULL);
    char text2[LBM_MSG_MAX_SOURCE_LEN];
    source_text(src[6], text, sizeof text);
    source_text(src[7], text2, sizeof text2);
    CHECK(strstr(text, ":24425:") == NULL);
    CHECK_STR(text, text2);
    for (int i = 0; i < 8; i++) {
        lbm_src_delete(src[i]);
    }
    lbm_context_delete(ctx);
    lbm_context_delete(other);
}

TEST(lbtru_without_session_ids_leaves_them_out_of_packets_and_names)
{
    TEST_NEEDS_NET();
    static struct packet p;
    struct um_lbtru_packet packet;
    struct recorder r = RECORDER_INIT;
    lbm_context_t *ctx = net_context_with(udp_attr()), *other = net_context_with(udp_attr());
    lbm_src_t *src = udp_source(ctx, "nosid", NULL, "transport", "lbtru", "transport_lbtru_use_session_id", "0",
                                "transport_lbtru_port", "24430");
    struct ru_client client = ru_client(src);
    CHECK_EQ(client.sid, 0);
    ru_connect(&client);
    CHECK(next_ru(client.fd, UM_LBTRU_DATA, &p, &packet));
    CHECK(!packet.has_sid);
    lbm_rcv_t *rcv = net_recording_receiver(other, "nosid", &r);
    CHECK_EQ(um_src_wait_receivers(src, 2, HANG_SECONDS * 1000), 0);
    net_send(src, "x");
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 1));
    lbm_rcv_delete(rcv);
    lbm_src_delete(src);
    lbm_context_delete(other);
    lbm_context_delete(ctx);
    close(client.fd);
}

static bool has_data(struct recorder *r)
{
    return recorder_count(r, LBM_MSG_DATA) > 0;
}

TEST(lbtru_filtering_at_the_source_sends_each_receiver_its_topics_only)
{
    TEST_NEEDS_NET();
    struct recorder r = RECORDER_INIT, both[2] = {RECORDER_INIT, RECORDER_INIT};
    lbm_context_attr_t *attr = udp_attr();
    ctx_set(attr, "request_tcp_port_low", "0");
    ctx_set(attr, "request_tcp_port_high", "0");
    lbm_context_t *ctx = net_context_with(attr), *other = net_context_with(udp_attr()),
                  *third = net_context_with(udp_attr());
#define FILTERED "transport", "lbtru", "transport_lbtru_port", "24440", "transport_source_side_filtering_behavior"
    lbm_src_t *a = udp_source(ctx, "fa", NULL, FILTERED, "inclusion");
    lbm_src_t *b = udp_source(ctx, "fb", NULL, FILTERED, "inclusion");
    CHECK(a != NULL);
    CHECK(b != NULL);
    lbm_rcv_t *rcv = net_recording_receiver(other, "fa", &r);
    lbm_rcv_t *rcv_a = net_recording_receiver(third, "fa", &both[0]);
    lbm_rcv_t *rcv_b = net_recording_receiver(third, "fb", &both[1]);
    for (int i = 0; i < HANG_SECONDS * 100 && !(has_data(&r) && has_data(&both[0]) && has_data(&both[1])); i++) {
        net_send(a, "a"); /* the inclusion travels on another connection: until it has arrived */
        net_send(b, "b");
        sleep_ms(10);
    }
    int before_r = recorder_count(&r, LBM_MSG_DATA);
    int before_a = recorder_count(&both[0], LBM_MSG_DATA), before_b = recorder_count(&both[1], LBM_MSG_DATA);
    for (int i = 0; i < 50; i++) {
        MUST(lbm_src_send(a, "a", 1, 0));
        MUST(lbm_src_send(b, "b", 1, 0));
    }
    MUST(lbm_src_flush(a));
    CHECK(recorder_wait(&r, LBM_MSG_DATA, before_r + 50));
    CHECK(recorder_wait(&both[0], LBM_MSG_DATA, before_a + 50));
    CHECK(recorder_wait(&both[1], LBM_MSG_DATA, before_b + 50));
    lbm_rcv_transport_stats_t stats;
    MUST(lbm_rcv_retrieve_transport_stats(rcv, r.source, &stats));
    CHECK_EQ(stats.transport.lbtru.lbm_msgs_no_topic_rcved, 0);
    CHECK_EQ(recorder_count(&r, LBM_MSG_UNRECOVERABLE_LOSS), 0);
    um_src_stats_t counts;
    CHECK_EQ(um_src_stats(b, &counts), 0);
    CHECK(counts.session_filtered_bytes > 0);
    lbm_rcv_delete(rcv_a);
    lbm_rcv_delete(rcv_b);
    lbm_rcv_delete(rcv);
    lbm_src_delete(a);
    lbm_src_delete(b);
    lbm_context_delete(third);
    lbm_context_delete(other);
    lbm_context_delete(ctx);
}

static bool recorder_has(struct recorder *r, const char *part)
{
    pthread_mutex_lock(&r->lock);
    bool has = strstr(r->text, part) != NULL;
    pthread_mutex_unlock(&r->lock);
    return has;
}

static uint64_t unmatched(lbm_context_t *ctx)
{
    um_context_stats_t stats;
    MUST(um_context_stats(ctx, &stats));
    return stats.unicast_unmatched;
}

/* A stranger connects to the request port and excludes the topic for the first clients of the first sessions. */
TEST(f12_guessed_filter_requests_leave_an_lbtru_receiver_its_topics)
{
    TEST_NEEDS_NET();
    enum { PORT = 24498, SESSIONS = 4, CLIENTS = 100 };
    struct recorder r = RECORDER_INIT;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = inet_addr("127.0.0.1")};
    lbm_transport_source_info_t info;
    size_t info_len = sizeof info;
    lbm_context_attr_t *attr = udp_attr();
    ctx_set(attr, "request_tcp_port", "24498");
    ctx_set(attr, "request_tcp_bind_request_port", "1");
    lbm_context_t *ctx = net_context_with(attr), *other = net_context_with(udp_attr());
    lbm_src_t *src = udp_source(ctx, "guessed", NULL, FILTERED, "inclusion");
    lbm_rcv_t *rcv = net_recording_receiver(other, "guessed", &r);
    for (int i = 0; i < 100 * HANG_SECONDS && recorder_count(&r, LBM_MSG_DATA) == 0; i++) {
        net_send(src, "a"); /* until the inclusion has arrived */
        sleep_ms(10);
    }
    MUST(lbm_transport_source_parse(r.source, &info, info_len));
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQ(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    for (uint32_t i = 0; i < SESSIONS * CLIENTS; i++) {
        uint8_t message[20];
        struct um_lbmc_ssf_creq creq = {1, 1 + i / CLIENTS, info.topic_idx, 1 + i % CLIENTS};
        um_lbmc_encode_ssf_creq(message, &creq);
        CHECK_EQ(send(fd, message, sizeof message, MSG_NOSIGNAL), (ssize_t)sizeof message);
    }
    for (int i = 0; i < HANG_SECONDS * 100 && unmatched(ctx) < SESSIONS * CLIENTS; i++) {
        sleep_ms(10);
    }
    CHECK_EQ(unmatched(ctx), SESSIONS * CLIENTS);
    net_send(src, "last");
    for (int i = 0; i < HANG_SECONDS * 100 && !recorder_has(&r, "=last "); i++) {
        sleep_ms(10);
    }
    CHECK(recorder_has(&r, "=last "));
    close(fd);
    lbm_rcv_delete(rcv);
    lbm_src_delete(src);
    lbm_context_delete(other);
    lbm_context_delete(ctx);
}

/* A second address of this host. */
static bool add_loopback_address(const char *text)
{
    struct ifreq ifr;
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(text)};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    memset(&ifr, 0, sizeof ifr);
    strcpy(ifr.ifr_name, "lo:1");
    memcpy(&ifr.ifr_addr, &addr, sizeof addr);
    bool ok = ioctl(fd, SIOCSIFADDR, &ifr) == 0;
    close(fd);
    return ok;
}

/* Its requests leave from the address by which the source knows it, not from that of the request port. */
static void filtered_by_another_address(const char *transport, const char *interface_option)
{
    struct recorder r = RECORDER_INIT;
    lbm_rcv_topic_attr_t *attr;
    lbm_context_attr_t *open = udp_attr();
    ctx_set(open, "request_tcp_port_low", "0");
    ctx_set(open, "request_tcp_port_high", "0");
    lbm_context_t *ctx = net_context_with(open), *other = net_context_with(udp_attr());
    lbm_src_t *src =
        udp_source(ctx, "homes", NULL, "transport", transport, "transport_source_side_filtering_behavior", "inclusion");
    MUST(lbm_rcv_topic_attr_create(&attr));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, interface_option, "127.0.0.2/32"));
    lbm_rcv_t *rcv = net_receiver(other, "homes", attr, recorder_cb, &r, NULL);
    lbm_rcv_topic_attr_delete(attr);
    for (int i = 0; i < 100 * HANG_SECONDS && recorder_count(&r, LBM_MSG_DATA) == 0; i++) {
        net_send(src, "a"); /* the inclusion travels on another connection: until it has arrived */
        sleep_ms(10);
    }
    CHECK(recorder_count(&r, LBM_MSG_DATA) > 0);
    CHECK_EQ(unmatched(ctx), 0);
    lbm_rcv_delete(rcv);
    lbm_src_delete(src);
    lbm_context_delete(other);
    lbm_context_delete(ctx);
}

TEST(f12_a_receiver_on_another_interface_is_filtered_by_its_own_requests)
{
    TEST_NEEDS_NET();
    if (!add_loopback_address("127.0.0.2")) {
        TEST_SKIP("needs permission to add an address to the loopback interface");
    }
    filtered_by_another_address("tcp", "transport_tcp_interface");
    filtered_by_another_address("lbtru", "transport_lbtru_interface");
}

/* ---- time stamps ---- */

TEST(lbtrm_time_stamps_come_once_for_each_datagram_with_its_first_message_and_again_for_a_repair)
{
    TEST_NEEDS_NET();
    static struct packet p;
    struct um_lbtrm_packet data;
    struct source_events events = {0};
    lbm_context_attr_t *attr = udp_attr();
    ctx_set(attr, "transport_lbtrm_source_timestamp", "1");
    lbm_context_t *ctx = net_context_with(attr);
    int group = group_socket(GROUP, 24450), nakker = udp_socket("127.0.0.1", 0);
    lbm_src_t *src = udp_source(ctx, "stamps", &events, "transport", "lbtrm", "transport_lbtrm_multicast_address",
                                GROUP, "transport_lbtrm_destination_port", "24450");
    CHECK(src != NULL);
    for (int i = 0; i < 3; i++) {
        int64_t before = time(NULL);
        net_send(src, "x");
        for (int k = 0; k < HANG_SECONDS * 200 && events.stamps <= i; k++) {
            sleep_ms(5);
        }
        CHECK_EQ(events.stamps, i + 1);
        CHECK_EQ(events.stamp.sequence_number, i);
        int64_t stamped = events.stamp.hr_timestamp.tv_sec;
        CHECK(stamped >= before - 1 && stamped <= (int64_t)time(NULL) + 1);
    }
    MUST(lbm_src_send(src, "a", 1, 0));
    net_send(src, "b"); /* numbers 3 and 4 in one datagram */
    for (int k = 0; k < HANG_SECONDS * 200 && events.stamps < 4; k++) {
        sleep_ms(5);
    }
    CHECK_EQ(events.stamp.sequence_number, 3);
    CHECK(next_rm(group, UM_LBTRM_DATA, &p, &data));
    send_rm_nak(nakker, &data.session, 1);
    for (int k = 0; k < HANG_SECONDS * 200 && events.stamps < 5; k++) {
        sleep_ms(5);
    }
    CHECK_EQ(events.stamp.sequence_number, 1);
    sleep_ms(30);
    CHECK_EQ(events.stamps, 5);
    lbm_src_delete(src);
    lbm_context_delete(ctx);
    close(group);
    close(nakker);
}

/* The longest NAK packet of a receiver whose datagrams may be larger than those of this source. */
TEST(f14_naks_longer_than_the_datagrams_of_the_source_are_read)
{
    TEST_NEEDS_NET();
    static struct packet p;
    static uint32_t sqns[UM_LBTRM_NAK_MAX];
    struct um_lbtrm_packet rm;
    struct um_lbtru_packet ru;
    lbm_context_attr_t *attr = udp_attr();
    ctx_set(attr, "transport_lbtrm_datagram_max_size", "500");
    ctx_set(attr, "transport_lbtru_datagram_max_size", "500");
    lbm_context_t *ctx = net_context_with(attr);
    int group = group_socket(GROUP, 24408), nakker = udp_socket("127.0.0.1", 0);
    lbm_src_t *a = udp_source(ctx, "small", NULL, "transport", "lbtrm", "transport_lbtrm_multicast_address", GROUP,
                              "transport_lbtrm_destination_port", "24408");
    lbm_src_t *b = udp_source(ctx, "smallu", NULL, "transport", "lbtru");
    struct ru_client client = ru_client(b);
    uint8_t nak[UM_LBTR_LIST_BYTES_MAX];
    net_send(a, "x");
    CHECK(next_rm(group, UM_LBTRM_DATA, &p, &rm));
    for (uint32_t i = 0; i < UM_LBTRM_NAK_MAX; i++) {
        sqns[i] = rm.sqn + i;
    }
    send_to(nakker, "127.0.0.1", rm.session.ucast_port, nak,
            um_lbtrm_put_nak(nak, &rm.session, sqns, UM_LBTRM_NAK_MAX));
    do {
        CHECK(next_rm(group, UM_LBTRM_DATA, &p, &rm));
    } while (!rm.retransmission);
    uint32_t first = ru_connect(&client);
    CHECK(next_ru(client.fd, UM_LBTRU_DATA, &p, &ru));
    for (uint32_t i = 0; i < UM_LBTRU_LIST_MAX; i++) {
        sqns[i] = first + i;
    }
    send_to(client.fd, "127.0.0.1", client.port, nak, um_lbtru_put_nak(nak, client.sid, sqns, UM_LBTRU_LIST_MAX));
    do {
        CHECK(next_ru(client.fd, UM_LBTRU_DATA, &p, &ru));
    } while (!ru.retransmission);
    lbm_src_delete(a);
    lbm_src_delete(b);
    lbm_context_delete(ctx);
    close(group);
    close(nakker);
    close(client.fd);
}

static uint16_t checksum(const uint8_t *bytes, size_t len)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < len; i += 2) {
        sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
    }
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t) ~(sum + (sum >> 16));
}

/* "Port unreachable" for a datagram from `from` to `to`, as anybody could send it. */
static void send_unreachable(const struct sockaddr_in *from, const struct sockaddr_in *to)
{
    uint8_t message[8 + 28] = {3, 3};
    uint8_t *ip = message + 8, *udp = ip + 20;
    struct sockaddr_in host = {.sin_family = AF_INET, .sin_addr = from->sin_addr};
    memcpy(ip, (const uint8_t[]){0x45, 0, 0, 36, 0, 1, 0, 0, 16, IPPROTO_UDP}, 10);
    memcpy(ip + 12, &from->sin_addr, 4);
    memcpy(ip + 16, &to->sin_addr, 4);
    um_put16(ip + 10, checksum(ip, 20));
    memcpy(udp, &from->sin_port, 2);
    memcpy(udp + 2, &to->sin_port, 2);
    um_put16(udp + 4, 16);
    um_put16(message + 2, checksum(message, sizeof message));
    int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
    CHECK_EQ(sendto(fd, message, sizeof message, 0, (struct sockaddr *)&host, sizeof host), (ssize_t)sizeof message);
    close(fd);
}

/* The socket of this process that is connected to a group. */
static int socket_to(const struct sockaddr_in *group)
{
    for (int fd = 0; fd < 256; fd++) {
        struct sockaddr_in peer;
        socklen_t len = sizeof peer;
        if (getpeername(fd, (struct sockaddr *)&peer, &len) == 0 && peer.sin_family == AF_INET &&
            peer.sin_addr.s_addr == group->sin_addr.s_addr && peer.sin_port == group->sin_port) {
            return fd;
        }
    }
    return -1;
}

TEST(an_unreachable_message_does_not_keep_a_loop_with_time_stamps_busy)
{
    TEST_NEEDS_NET();
    lbm_context_attr_t *attr = udp_attr();
    struct sockaddr_in group = {.sin_family = AF_INET, .sin_port = htons(24451)}, local;
    socklen_t len = sizeof local;
    inet_pton(AF_INET, GROUP, &group.sin_addr);
    ctx_set(attr, "transport_lbtrm_source_timestamp", "1");
    ctx_set(attr, "operational_mode", "sequential");
    lbm_context_t *ctx = net_context_with(attr);
    lbm_src_t *src = udp_source(ctx, "unreachable", NULL, "transport", "lbtrm", "transport_lbtrm_multicast_address",
                                GROUP, "transport_lbtrm_destination_port", "24451");
    struct pollfd out = {.fd = socket_to(&group)};
    CHECK(out.fd >= 0);
    CHECK_EQ(getsockname(out.fd, (struct sockaddr *)&local, &len), 0);
    send_unreachable(&local, &group);
    CHECK_EQ(poll(&out, 1, HANG_SECONDS * 1000), 1);
    CHECK(out.revents & POLLERR);
    MUST(lbm_context_process_events(ctx, 1));
    CHECK_EQ(poll(&out, 1, 0), 0);
    lbm_src_delete(src);
    lbm_context_delete(ctx);
}

/* ---- options of a session, and the network ---- */

static char warnings[8192];

static int on_log(int level, const char *message, void *clientd)
{
    strncat(warnings, message, sizeof warnings - strlen(warnings) - 1);
    return 0;
}

TEST(the_first_source_of_a_session_decides_and_others_are_told)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context_with(udp_attr());
    warnings[0] = '\0';
    lbm_log(on_log, NULL);
#define ON_GROUP "transport", "lbtrm", "transport_lbtrm_multicast_address", GROUP
    lbm_src_t *a = udp_source(ctx, "a", NULL, ON_GROUP);
    lbm_src_t *b = udp_source(ctx, "b", NULL, ON_GROUP, "transport_lbtrm_transmission_window_size", "1000000");
    lbm_src_t *c = udp_source(ctx, "c", NULL, "transport", "lbtru", "transport_lbtru_port", "24460");
    lbm_src_t *d = udp_source(ctx, "d", NULL, "transport", "lbtru", "transport_lbtru_port", "24460",
                              "transport_lbtru_sm_minimum_interval", "300");
    lbm_log(NULL, NULL);
    CHECK(strstr(warnings, "Core-5688-1288") != NULL);
    CHECK(strstr(warnings, "transport_lbtrm_transmission_window_size 1000000") != NULL);
    CHECK(strstr(warnings, "25165824") != NULL);
    CHECK(strstr(warnings, "transport_lbtru_sm_minimum_interval 300") != NULL);
    lbm_src_delete(a);
    lbm_src_delete(b);
    lbm_src_delete(c);
    lbm_src_delete(d);
    lbm_context_delete(ctx);
}

TEST(multicast_leaves_with_the_ttl_of_topic_resolution)
{
    TEST_NEEDS_NET();
    static struct packet p;
    struct um_lbtrm_packet data;
    lbm_context_attr_t *attr = udp_attr();
    ctx_set(attr, "resolver_multicast_ttl", "3");
    lbm_context_t *ctx = net_context_with(attr);
    int group = group_socket(GROUP, 24470);
    lbm_src_t *src = udp_source(ctx, "ttl", NULL, ON_GROUP, "transport_lbtrm_destination_port", "24470");
    net_send(src, "x");
    CHECK(next_rm(group, UM_LBTRM_DATA, &p, &data));
    CHECK_EQ(p.ttl, 3);
    lbm_src_delete(src);
    lbm_context_delete(ctx);
    close(group);
}

TEST(large_messages_are_the_same_on_the_wire_with_and_without_segmentation)
{
    TEST_NEEDS_NET();
    static struct packet p;
    static char big[60000];
    for (int with = 0; with < 2; with++) {
        struct um_lbtrm_packet data;
        lbm_context_attr_t *attr = udp_attr();
        ctx_set(attr, "um_udp_segmentation_offload", with ? "1" : "0");
        ctx_set(attr, "transport_lbtrm_datagram_max_size", "1472");
        lbm_context_t *ctx = net_context_with(attr);
        int group = group_socket(GROUP, (uint16_t)(24480 + with));
        lbm_src_t *src =
            udp_source(ctx, "big", NULL, ON_GROUP, "transport_lbtrm_destination_port", with ? "24481" : "24480");
        MUST(lbm_src_send(src, big, sizeof big, LBM_MSG_FLUSH));
        size_t total = 0;
        for (uint32_t sqn = 0; total < sizeof big; sqn++) {
            struct um_lbmc_msg msg;
            CHECK(next_rm(group, UM_LBTRM_DATA, &p, &data));
            CHECK_EQ(data.sqn, sqn);
            CHECK(p.len <= 1472);
            CHECK_EQ(um_lbmc_decode(data.payload.ptr, data.payload.len, &msg), UM_LBMC_OK);
            CHECK_EQ(msg.frag.offset, total);
            total += msg.payload.len;
        }
        CHECK_EQ(total, sizeof big);
        lbm_src_delete(src);
        lbm_context_delete(ctx);
        close(group);
    }
}

TEST(sends_over_an_interface_that_is_down_succeed_are_counted_and_repaired_later)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context_with(udp_attr());
    lbm_src_t *src = udp_source(ctx, "down", NULL, ON_GROUP);
    warnings[0] = '\0';
    lbm_log(on_log, NULL);
    net_send(src, "up");
    MUST(system("ip link set lo down"));
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(lbm_src_send(src, "x", 1, LBM_MSG_FLUSH), 0);
    }
    um_src_stats_t counts = {0};
    for (int i = 0; i < HANG_SECONDS * 200 && strstr(warnings, "Core-5688-3330") == NULL; i++) {
        sleep_ms(5); /* session messages fail too; the loop tells */
    }
    CHECK_EQ(um_src_stats(src, &counts), 0);
    MUST(system("ip link set lo up && ip route replace 224.0.0.0/4 dev lo"));
    lbm_log(NULL, NULL);
    CHECK(counts.session_refused >= 5);
    net_send(src, "up again");
    CHECK_EQ(rm_stats(src).txw_msgs, 7);
    lbm_src_delete(src);
    lbm_context_delete(ctx);
}

/* ---- several interfaces ---- */

static int group_socket_on(const char *group, uint16_t port, const char *interface)
{
    struct ip_mreqn join = {.imr_multiaddr.s_addr = inet_addr(group), .imr_address.s_addr = inet_addr(interface)};
    int fd = udp_socket(group, port), zero = 0;
    MUST(setsockopt(fd, IPPROTO_IP, IP_MULTICAST_ALL, &zero, sizeof zero));
    MUST(setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &join, sizeof join));
    return fd;
}

static lbm_context_t *context_on(const char *interface)
{
    lbm_context_attr_t *attr = udp_attr();
    ctx_set(attr, "default_interface", interface);
    ctx_set(attr, "resolver_multicast_interface", interface);
    return net_context_with(attr);
}

TEST(the_option_chooses_among_several_interfaces_for_sources_and_receivers)
{
    TEST_NEEDS_NET();
    static struct packet p;
    struct um_lbtrm_packet data;
    static const char *const interfaces[] = {"10.97.0.1", "10.98.0.1"};
    if (system("ip link add um0 type veth peer name um0p && ip link add um1 type veth peer name um1p && "
               "ip addr add 10.97.0.1/24 dev um0 && ip addr add 10.98.0.1/24 dev um1 && "
               "for i in um0 um0p um1 um1p; do ip link set $i up || exit 1; done") != 0) {
        TEST_SKIP("needs veth interfaces and ip");
    }
    for (int i = 0; i < 2; i++) {
        struct recorder r = RECORDER_INIT, elsewhere = RECORDER_INIT;
        lbm_context_t *ctx = context_on(interfaces[i]), *near = context_on(interfaces[i]);
        lbm_context_t *far = context_on(interfaces[1 - i]);
        int here = group_socket_on(GROUP, 24406, interfaces[i]);
        int there = group_socket_on(GROUP, 24406, interfaces[1 - i]);
        lbm_rcv_t *rcv = net_recording_receiver(near, "two", &r),
                  *deaf = net_recording_receiver(far, "two", &elsewhere);
        lbm_src_t *src = udp_source(ctx, "two", NULL, "transport", "lbtrm", "transport_lbtrm_multicast_address", GROUP,
                                    "transport_lbtrm_destination_port", "24406");
        CHECK(src != NULL);
        for (int n = 0; n < HANG_SECONDS * 50 && recorder_count(&r, LBM_MSG_DATA) == 0; n++) {
            net_send(src, "x");
            sleep_ms(20);
        }
        CHECK(recorder_count(&r, LBM_MSG_DATA) > 0);
        CHECK(memmem(r.source, sizeof r.source, interfaces[i], strlen(interfaces[i])) != NULL);
        CHECK(next_rm(here, UM_LBTRM_DATA, &p, &data));
        CHECK_EQ(p.from.sin_addr.s_addr, inet_addr(interfaces[i]));
        CHECK(!next_packet(there, &p, 20));
        CHECK_EQ(elsewhere.text[0], '\0');
        lbm_src_delete(src);
        lbm_rcv_delete(rcv);
        lbm_rcv_delete(deaf);
        lbm_context_delete(far);
        lbm_context_delete(near);
        lbm_context_delete(ctx);
        close(here);
        close(there);
    }
    MUST(system("ip link del um0 && ip link del um1"));
}
