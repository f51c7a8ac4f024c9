/* Byte streams: plain TCP, and a filter that is as awkward as may be. */
#include "net/um_stream.h"

#include "um_test_awkward.h"
#include "um_test_streams.h"

/* ---- plain ---- */

TEST(plain_stream_carries_bytes_both_ways_and_knows_its_addresses)
{
    struct pair pair;
    CHECK(pair_start(&pair, NULL));
    CHECK(pair_open(&pair));
    CHECK(carry(&pair, 100000));
    CHECK_EQ(ntohs(um_stream_peer(&pair.a).sin_port), pair.port);
    CHECK_EQ(um_stream_local(&pair.a).sin_port, um_stream_peer(&pair.b).sin_port);
    CHECK_EQ(um_stream_local(&pair.b).sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    pair_close(&pair);
    CHECK_EQ(pair.a.fd, -1);
    CHECK_EQ(um_stream_local(&pair.a).sin_port, 0);
    um_stream_close(&pair.a, UM_STREAM_NOW); /* again: no effect */
}

TEST(plain_stream_that_is_full_takes_nothing_and_says_what_it_waits_for)
{
    struct pair pair;
    static uint8_t data[65536];
    CHECK(pair_start(&pair, NULL));
    CHECK(pair_open(&pair));
    ssize_t n;
    while ((n = um_stream_write(&pair.a, data, sizeof data)) > 0) {
    }
    CHECK_EQ(n, 0);
    CHECK_EQ(um_stream_interest(&pair.a, UM_FD_READ), UM_FD_READ);
    CHECK_EQ(um_stream_interest(&pair.a, UM_FD_READ | UM_FD_WRITE), UM_FD_READ | UM_FD_WRITE);
    CHECK_EQ(pair.a.end, UM_STREAM_LIVES);
    pair_close(&pair);
}

TEST(refused_connection_ends_the_opening_with_a_reason)
{
    struct in_addr loopback = {.s_addr = htonl(INADDR_LOOPBACK)}, any = {0};
    struct um_stream stream;
    uint16_t port = 0;
    close(test_listen(&port));
    CHECK_EQ(um_stream_connect(&stream, any, loopback, port, NULL), 0);
    int rc = 0;
    while ((rc = um_stream_open(&stream)) == 0) {
    }
    CHECK_EQ(rc, -1);
    CHECK_EQ(stream.end, UM_STREAM_FAILED);
    CHECK_EQ(stream.err, ECONNREFUSED);
    CHECK_CONTAINS(um_stream_reason(&stream), "refused");
    um_stream_close(&stream, UM_STREAM_NOW);
}

/* A listener whose queue is full answers nobody. */
TEST(connection_that_is_under_way_is_not_open_yet)
{
    struct in_addr loopback = {.s_addr = htonl(INADDR_LOOPBACK)}, any = {0};
    struct um_stream first, stream;
    uint16_t port = 0;
    int listener = test_listen(&port);
    CHECK_EQ(listen(listener, 0), 0); /* room for one */
    CHECK_EQ(um_stream_connect(&first, any, loopback, port, NULL), 0);
    CHECK_EQ(poll(&(struct pollfd){.fd = listener, .events = POLLIN}, 1, -1), 1);
    CHECK_EQ(um_stream_connect(&stream, any, loopback, port, NULL), 0);
    CHECK_EQ(um_stream_open(&stream), 0);
    CHECK_EQ(stream.end, UM_STREAM_LIVES);
    um_stream_close(&stream, UM_STREAM_NOW);
    um_stream_close(&first, UM_STREAM_NOW);
    close(listener);
}

TEST(end_in_order_and_reset_are_told_apart)
{
    struct pair pair;
    uint8_t byte;
    CHECK(pair_start(&pair, NULL));
    CHECK(pair_open(&pair));
    um_stream_close(&pair.b, UM_STREAM_GENTLY);
    ssize_t n;
    while ((n = um_stream_read(&pair.a, &byte, 1)) == 0) {
    }
    CHECK_EQ(n, -1);
    CHECK_EQ(pair.a.end, UM_STREAM_EOF);
    CHECK_CONTAINS(um_stream_reason(&pair.a), "closed by the other side");
    pair_close(&pair);

    CHECK(pair_start(&pair, NULL));
    CHECK(pair_open(&pair));
    CHECK_EQ(um_stream_write(&pair.a, "unread", 6), 6);
    CHECK(ready(&pair.b, UM_FD_READ));
    um_stream_close(&pair.b, UM_STREAM_NOW);
    while ((n = um_stream_read(&pair.a, &byte, 1)) == 0 || pair.a.end == UM_STREAM_EOF) {
        if (pair.a.end == UM_STREAM_EOF) { /* the end came before the reset */
            break;
        }
    }
    CHECK(pair.a.end != UM_STREAM_LIVES);
    pair_close(&pair);
}

TEST(gentle_close_does_not_lose_what_was_written)
{
    struct pair pair;
    static uint8_t data[30000];
    CHECK(pair_start(&pair, NULL));
    CHECK(pair_open(&pair));
    CHECK_EQ(um_stream_write(&pair.b, data, sizeof data), sizeof data);
    CHECK_EQ(um_stream_write(&pair.a, "nobody reads this", 17), 17);
    CHECK(ready(&pair.b, UM_FD_READ));
    um_stream_close(&pair.b, UM_STREAM_GENTLY);
    size_t got = 0;
    ssize_t n;
    while ((n = um_stream_read(&pair.a, data, sizeof data)) >= 0) {
        got += (size_t)n;
    }
    CHECK_EQ(got, sizeof data);
    CHECK_EQ(pair.a.end, UM_STREAM_EOF);
    pair_close(&pair);
}

TEST(aborted_stream_wakes_who_watches_it)
{
    struct pair pair;
    uint8_t byte;
    CHECK(pair_start(&pair, NULL));
    CHECK(pair_open(&pair));
    CHECK(!ready(&pair.a, UM_FD_READ));
    um_stream_abort(&pair.a);
    CHECK(ready(&pair.a, UM_FD_READ));
    CHECK_EQ(um_stream_read(&pair.a, &byte, 1), -1);
    CHECK_EQ(um_stream_write(&pair.a, &byte, 1), -1);
    CHECK_EQ(pair.a.end, UM_STREAM_FAILED);
    pair_close(&pair);
}

/* ---- filters ---- */

TEST(handshake_comes_before_the_first_byte)
{
    struct pair pair;
    CHECK(pair_start(&pair, &awkward_layer));
    CHECK(!pair.b.opened);
    int rc = um_stream_open(&pair.b); /* its own side is sent, the other one's has not come */
    CHECK_EQ(rc, 0);
    CHECK_EQ(um_stream_interest(&pair.b, UM_FD_READ | UM_FD_WRITE), UM_FD_READ);
    CHECK(pair_open(&pair));
    pair_close(&pair);
    CHECK_EQ(awkward_live, 0);
}

TEST(awkward_stream_carries_everything_to_who_keeps_the_rules)
{
    struct pair pair;
    CHECK(pair_start(&pair, &awkward_layer));
    CHECK(pair_open(&pair));
    CHECK(carry(&pair, 5000));
    pair_close(&pair);
    CHECK_EQ(awkward_live, 0);
}

TEST(filters_can_be_stacked)
{
    struct pair pair;
    CHECK(pair_start(&pair, &awkward_twice));
    CHECK(pair_open(&pair));
    CHECK(carry(&pair, 2000));
    pair_close(&pair);
    CHECK_EQ(awkward_live, 0);
}

TEST(bytes_are_pending_without_the_descriptor_being_readable)
{
    struct pair pair;
    uint8_t bytes[8];
    CHECK(pair_start(&pair, &awkward_layer));
    CHECK(pair_open(&pair));
    CHECK_EQ(um_stream_write(&pair.a, "12345", 5), 5);
    while (um_stream_read(&pair.b, bytes, sizeof bytes) == 0) {
    }
    CHECK(pair.b.pending);
    CHECK(!ready(&pair.b, UM_FD_READ));
    CHECK(um_stream_read(&pair.b, bytes, sizeof bytes) > 0);
    CHECK(!pair.b.pending);
    pair_close(&pair);
}

TEST(stream_may_have_to_read_in_order_to_write)
{
    struct pair pair;
    size_t sent = 0;
    ssize_t n;
    CHECK(pair_start(&pair, &awkward_layer));
    CHECK(pair_open(&pair));
    while ((n = um_stream_write(&pair.a, "xxxxx", 5)) > 0) {
        sent += (size_t)n;
    }
    CHECK_EQ(sent, AWKWARD_CREDIT);
    CHECK_EQ(um_stream_interest(&pair.a, UM_FD_WRITE), UM_FD_READ);
    CHECK(um_stream_ready(&pair.a, UM_FD_READ) & UM_FD_WRITE);
    pair_close(&pair);
}

TEST(filter_ends_the_stream_in_its_own_words)
{
    struct pair pair;
    uint8_t byte;
    CHECK(pair_start(&pair, &awkward_layer));
    CHECK(pair_open(&pair));
    awkward_fail_reads = 0;
    CHECK_EQ(um_stream_read(&pair.a, &byte, 1), -1);
    awkward_fail_reads = -1;
    CHECK_EQ(pair.a.end, UM_STREAM_FAILED);
    CHECK_CONTAINS(um_stream_reason(&pair.a), "awkward on purpose");
    pair_close(&pair);
}

TEST(peer_without_the_filter_is_refused)
{
    struct pair pair;
    CHECK(pair_start(&pair, &awkward_layer));
    int fd = test_connect(pair.port);
    struct um_stream stranger;
    struct sockaddr_in peer;
    while (um_stream_accept(&stranger, pair.listener, &peer) != 1) {
    }
    CHECK_EQ(awkward_layer.cover(&awkward_layer, &stranger, UM_STREAM_ACCEPTS), 0);
    CHECK_EQ(write(fd, "GET / HTTP/1.0\r\n", 16), 16);
    int rc;
    while ((rc = um_stream_open(&stranger)) == 0) {
    }
    CHECK_EQ(rc, -1);
    CHECK_CONTAINS(um_stream_reason(&stranger), "not an awkward stream");
    um_stream_close(&stranger, UM_STREAM_NOW);
    close(fd);
    pair_close(&pair);
}
