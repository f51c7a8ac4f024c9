/* Outgoing datagrams of a socket: order, trains with and without segmentation, a
 * socket that takes no more, failures. A pair of local datagram sockets stands in for
 * a network that is full; the rest is UDP on loopback. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/um_udp_send.h"
#include "um_test.h"
#include "um_test_net.h"

static struct um_udp_out out;
static const struct sockaddr_in nowhere;

/* A datagram of a head that holds the number and a body of `body` bytes. */
static void put(uint32_t number, const uint8_t *body, size_t len, bool hold)
{
    uint8_t head[20] = {0};
    memcpy(head, &number, sizeof number);
    um_udp_out_put(&out, &nowhere, head, sizeof head, body, len, number, hold);
}

/* The number in the next datagram, whose length must be `len`; -1: none. */
static int take(int fd, size_t len)
{
    uint8_t data[65536];
    uint32_t number;
    struct pollfd pfd = {.fd = fd, .events = POLLIN};
    if (poll(&pfd, 1, 200) <= 0) {
        return -1;
    }
    ssize_t got = recv(fd, data, sizeof data, 0);
    memcpy(&number, data, sizeof number);
    return got == (ssize_t)len ? (int)number : -2;
}

static void local_pair(int pair[2])
{
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair) != 0) {
        abort();
    }
}

static void udp_pair(int pair[2])
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;
    pair[1] = socket(AF_INET, SOCK_DGRAM, 0);
    pair[0] = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    if (bind(pair[1], (struct sockaddr *)&addr, sizeof addr) != 0 ||
        getsockname(pair[1], (struct sockaddr *)&addr, &len) != 0 ||
        connect(pair[0], (struct sockaddr *)&addr, sizeof addr) != 0) {
        abort();
    }
}

TEST(a_full_socket_keeps_datagrams_in_order_until_there_is_room)
{
    int pair[2];
    static uint8_t body[500];
    local_pair(pair);
    um_udp_out_init(&out, pair[0], true, false);
    uint32_t sent = 0;
    while (!out.blocked) {
        put(sent++, body, sizeof body, false);
    }
    put(sent++, body, sizeof body, false);
    put(sent++, body, sizeof body, true);
    CHECK_EQ(out.count, 3);
    CHECK_EQ(out.oldest, sent - 3);
    CHECK(!um_udp_out_push(&out));
    CHECK_EQ(out.counters.full, 1);
    for (uint32_t i = 0; i < sent; i++) {
        CHECK_EQ(take(pair[1], 520), (int)i);
        um_udp_out_push(&out);
    }
    CHECK(!out.blocked);
    CHECK_EQ(out.oldest, UINT64_MAX);
    CHECK_EQ(out.counters.datagrams, sent);
    CHECK_EQ(out.counters.dropped, 0);
    close(pair[0]);
    close(pair[1]);
}

TEST(beyond_its_places_a_full_socket_drops_and_counts)
{
    int pair[2];
    static uint8_t body[10], long_head[UM_UDP_HEAD_MAX + 1];
    local_pair(pair);
    um_udp_out_init(&out, pair[0], true, false);
    while (!out.blocked) {
        put(0, body, sizeof body, false);
    }
    um_udp_out_put(&out, &nowhere, long_head, sizeof long_head, NULL, 0, 0, false);
    CHECK_EQ(out.counters.dropped, 1);
    for (unsigned i = 0; i < UM_UDP_TRAIN + 5; i++) {
        put(i, body, sizeof body, true);
    }
    CHECK_EQ(out.count, UM_UDP_TRAIN);
    CHECK_EQ(out.counters.dropped, 1 + 6);
    close(pair[0]);
    close(pair[1]);
}

static void train(bool segment, uint64_t *calls)
{
    int pair[2];
    static uint8_t body[1000];
    udp_pair(pair);
    um_udp_out_init(&out, pair[0], true, segment);
    for (uint32_t i = 0; i < 40; i++) { /* 20 long, 10 short, 10 long ones */
        put(i, body, i >= 20 && i < 30 ? 100 : 1000, true);
    }
    CHECK_EQ(out.counters.system_calls, 0);
    CHECK(um_udp_out_push(&out));
    CHECK_EQ(out.counters.datagrams, 40);
    for (uint32_t i = 0; i < 40; i++) {
        CHECK_EQ(take(pair[1], i >= 20 && i < 30 ? 120 : 1020), (int)i);
    }
    *calls = out.counters.system_calls;
    close(pair[0]);
    close(pair[1]);
}

TEST(a_train_leaves_with_few_system_calls_and_arrives_as_it_was)
{
    TEST_NEEDS_NET();
    uint64_t with = 0, without = 0;
    train(true, &with);
    train(false, &without);
    CHECK_EQ(without, 1); /* sendmmsg */
    CHECK(with >= 1 && with <= 4);
}

TEST(more_datagrams_than_a_train_has_places_go_out_in_between)
{
    TEST_NEEDS_NET();
    int pair[2];
    static uint8_t body[100];
    udp_pair(pair);
    um_udp_out_init(&out, pair[0], true, true);
    for (uint32_t i = 0; i < 3 * UM_UDP_TRAIN + 1; i++) {
        put(i, body, sizeof body, true);
    }
    put(3 * UM_UDP_TRAIN + 1, body, sizeof body, false); /* behind all that were kept */
    for (uint32_t i = 0; i < 3 * UM_UDP_TRAIN + 2; i++) {
        CHECK_EQ(take(pair[1], 120), (int)i);
    }
    close(pair[0]);
    close(pair[1]);
}

TEST(datagrams_too_long_for_segments_of_the_device_go_one_by_one)
{
    TEST_NEEDS_NET();
    int pair[2];
    static uint8_t body[8000];
    if (system("ip link set lo mtu 1500") != 0) {
        TEST_SKIP("cannot change the MTU of lo");
    }
    udp_pair(pair);
    um_udp_out_init(&out, pair[0], true, true);
    for (uint32_t i = 0; i < 6; i++) {
        put(i, body, i < 3 ? 8000 : 800, true);
    }
    CHECK(um_udp_out_push(&out));
    CHECK_EQ(out.counters.failed, 0);
    for (uint32_t i = 0; i < 6; i++) {
        CHECK_EQ(take(pair[1], i < 3 ? 8020 : 820), (int)i);
    }
    CHECK(out.segment);
    CHECK(out.segment_max < 8020);
    CHECK_EQ(system("ip link set lo mtu 65536"), 0);
    close(pair[0]);
    close(pair[1]);
}

TEST(what_the_system_refuses_is_counted_and_the_rest_goes_on)
{
    TEST_NEEDS_NET();
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0), pair[2];
    struct sockaddr_in good = {.sin_family = AF_INET}, bad = {.sin_family = AF_INET, .sin_port = htons(9)};
    socklen_t len = sizeof good;
    uint8_t head[4] = {0}, body[4] = {0};
    udp_pair(pair);
    CHECK_EQ(getsockname(pair[1], (struct sockaddr *)&good, &len), 0);
    bad.sin_addr.s_addr = htonl(0x0a000001); /* no route in this network */
    for (int hold = 0; hold < 2; hold++) {
        um_udp_out_init(&out, fd, false, true);
        um_udp_out_put(&out, &good, head, sizeof head, body, sizeof body, 0, hold);
        um_udp_out_put(&out, &bad, head, sizeof head, body, sizeof body, 1, hold);
        um_udp_out_put(&out, &bad, head, sizeof head, body, sizeof body, 2, hold);
        um_udp_out_put(&out, &good, head, sizeof head, body, sizeof body, 3, hold);
        CHECK(um_udp_out_push(&out));
        CHECK_EQ(out.counters.failed, 2);
        CHECK_EQ(out.counters.datagrams, 2);
        CHECK_EQ(out.last_error, ENETUNREACH);
        CHECK_EQ(take(pair[1], 8), 0);
        CHECK_EQ(take(pair[1], 8), 0);
    }
    close(fd);
    close(pair[0]);
    close(pair[1]);
}
