/* TLS as a byte stream, over connections of the loopback: what it carries, whom it refuses, how it ends. */
#include "net/um_tls.h"

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/um_error.h"
#include "net/um_socket.h"
#include "um_test_loop.h"
#include "um_test_tls.h"

/* One side of a context's settings, as the users of streams see it. */
struct side {
    struct um_stream_layer layer;
    struct um_tls *tls; /* NULL: plain TCP */
    struct um_stream stream;
};

struct pair {
    struct side a, b; /* a connects, b accepts */
    int listener;
};

static int cover(const struct um_stream_layer *layer, struct um_stream *stream, enum um_stream_role role)
{
    return um_tls_cover(UM_CONTAINER_OF((struct um_stream_layer *)layer, struct side, layer)->tls, stream, role);
}

static bool side_start(struct side *side, const struct um_tls_config *config)
{
    side->layer = (struct um_stream_layer){.cover = cover};
    side->tls = config != NULL ? um_tls_create(config) : NULL;
    um_stream_init(&side->stream);
    if (config != NULL && side->tls == NULL && test_fail_in == -1) {
        fprintf(stderr, "%s\n", um_errmsg());
    }
    return config == NULL || side->tls != NULL;
}

static bool pair_start(struct pair *pair, const struct um_tls_config *a, const struct um_tls_config *b)
{
    struct in_addr loopback = {.s_addr = htonl(INADDR_LOOPBACK)}, any = {0};
    struct sockaddr_in peer;
    uint16_t port = 0;
    test_log_start();
    pair->listener = test_listen(&port);
    if (!side_start(&pair->a, a) || !side_start(&pair->b, b) ||
        um_stream_connect(&pair->a.stream, any, loopback, port, a != NULL ? &pair->a.layer : NULL) != 0) {
        return false;
    }
    for (int rc = 0; rc == 0;) {
        rc = um_stream_accept(&pair->b.stream, pair->listener, &peer);
    }
    return b == NULL || pair->b.layer.cover(&pair->b.layer, &pair->b.stream, UM_STREAM_ACCEPTS) == 0;
}

static void pair_close(struct pair *pair)
{
    um_stream_close(&pair->a.stream, UM_STREAM_NOW);
    um_stream_close(&pair->b.stream, UM_STREAM_NOW);
    um_tls_destroy(pair->a.tls);
    um_tls_destroy(pair->b.tls);
    close(pair->listener);
}

static bool ready(const struct um_stream *stream, uint32_t wants)
{
    struct pollfd pfd = {.fd = stream->fd,
                         .events = (short)((wants & UM_FD_READ ? POLLIN : 0) | (wants & UM_FD_WRITE ? POLLOUT : 0))};
    return poll(&pfd, 1, 0) > 0;
}

/* Goes on with one side if what it waits for has happened. False: it is at its end. */
static bool go_on(struct um_stream *stream)
{
    if (stream->end != UM_STREAM_LIVES) {
        return false;
    }
    if (!stream->opened) {
        return !ready(stream, stream->open_wants) || um_stream_open(stream) >= 0;
    }
    uint8_t byte;
    return !ready(stream, um_stream_interest(stream, UM_FD_READ)) || um_stream_read(stream, &byte, 0) >= 0;
}

/* Both sides, by the rules, until both are open or one has ended. */
static bool pair_open(struct pair *pair)
{
    uint64_t give_up = um_clock_ns() + HANG_LIMIT_NS;
    bool lives = true;
    while (lives && (!pair->a.stream.opened || !pair->b.stream.opened) && um_clock_ns() < give_up) {
        lives = go_on(&pair->a.stream) && go_on(&pair->b.stream);
    }
    return pair->a.stream.opened && pair->b.stream.opened;
}

/* What a side that is refused reads: its end. */
static const char *end_of(struct um_stream *stream)
{
    uint64_t give_up = um_clock_ns() + HANG_LIMIT_NS;
    uint8_t byte;
    while (stream->end == UM_STREAM_LIVES && um_clock_ns() < give_up) {
        if (!stream->opened) {
            um_stream_open(stream);
        } else {
            um_stream_read(stream, &byte, 1);
        }
    }
    return stream->end == UM_STREAM_LIVES ? "no end" : um_stream_reason(stream);
}

/* Carry `len` counted bytes each way, in pieces of changing sizes, waiting only by the rules. */
static bool carry(struct pair *pair, size_t len)
{
    struct um_stream *side[2] = {&pair->a.stream, &pair->b.stream};
    static uint8_t out[40000], in[50000];
    size_t sent[2] = {0}, got[2] = {0};
    unsigned turn = 0;
    uint64_t give_up = um_clock_ns() + HANG_LIMIT_NS;
    while ((got[0] < len || got[1] < len || side[0]->unsent || side[1]->unsent) && um_clock_ns() < give_up) {
        for (int i = 0; i < 2; i++) {
            struct um_stream *stream = side[i];
            bool writes = sent[i] < len;
            if (!stream->pending &&
                !ready(stream, um_stream_interest(stream, UM_FD_READ | (writes ? UM_FD_WRITE : 0)))) {
                continue;
            }
            size_t part = 1 + turn++ * 7919 % sizeof out;
            part = part < len - sent[i] ? part : len - sent[i];
            for (size_t k = 0; k < part; k++) {
                out[k] = (uint8_t)((sent[i] + k) * 7 + (size_t)i);
            }
            struct iovec iov[3] = {{out, part / 3}, {out + part / 3, part / 2}, {out + part / 3 + part / 2, 0}};
            iov[2].iov_len = part - iov[0].iov_len - iov[1].iov_len;
            ssize_t n = um_stream_writev(stream, iov, writes ? 3 : 0);
            if (n < 0) {
                return false;
            }
            sent[i] += (size_t)n;
            n = um_stream_read(stream, in, 1 + turn * 104729 % sizeof in);
            if (n < 0) {
                return false;
            }
            for (ssize_t k = 0; k < n; k++, got[i]++) {
                if (in[k] != (uint8_t)(got[i] * 7 + (size_t)!i)) {
                    return false;
                }
            }
        }
    }
    return got[0] == len && got[1] == len;
}

static struct um_tls_config with_suites(const char *suites)
{
    struct um_tls_config config = test_tls_host;
    config.suites = suites;
    return config;
}

/* ---- what it carries ---- */

static void carries_with(const struct um_tls_config *a, const struct um_tls_config *b)
{
    struct pair pair;
    CHECK(pair_start(&pair, a, b));
    CHECK(pair_open(&pair));
    CHECK(carry(&pair, 1000000));
    CHECK_EQ(ntohl(um_stream_peer(&pair.a.stream).sin_addr.s_addr), INADDR_LOOPBACK);
    pair_close(&pair);
}

TEST(tls_streams_carry_bytes_both_ways)
{
    carries_with(&test_tls_host, &test_tls_peer);
}

TEST(tls_1_2_and_1_3_are_spoken_as_the_suites_say)
{
    static const char *const suites[] = {"DHE-RSA-AES256-GCM-SHA384, TLS_AES_128_GCM_SHA256",
                                         "ECDHE-RSA-AES256-GCM-SHA384,ECDHE-RSA-AES128-GCM-SHA256",
                                         "TLS_CHACHA20_POLY1305_SHA256"};
    for (size_t i = 0; i < sizeof suites / sizeof suites[0]; i++) {
        struct um_tls_config config = with_suites(suites[i]);
        carries_with(&config, &config);
    }
    struct um_tls_config old = with_suites(UM_TLS_DEFAULT_SUITES ",ECDHE-RSA-AES256-GCM-SHA384");
    carries_with(&old, &test_tls_peer);
    carries_with(&test_tls_peer, &old);
}

TEST(tls_with_keys_of_elliptic_curves)
{
    struct um_tls_config ec = test_tls_host;
    ec.certificate = CERTIFICATES "ec.pem";
    ec.key = CERTIFICATES "ec.key";
    carries_with(&ec, &test_tls_peer);
}

TEST(tls_contexts_without_a_suite_in_common_do_not_connect)
{
    struct um_tls_config old = with_suites("ECDHE-RSA-AES256-GCM-SHA384"), new = with_suites("TLS_AES_256_GCM_SHA384"),
                         other = with_suites("ECDHE-RSA-AES128-GCM-SHA256");
    struct pair pair;
    CHECK(pair_start(&pair, &old, &new));
    CHECK(!pair_open(&pair));
    CHECK_CONTAINS(end_of(&pair.b.stream), "protocol");
    CHECK(strstr(end_of(&pair.a.stream), "no end") == NULL);
    pair_close(&pair);
    CHECK(pair_start(&pair, &old, &other));
    CHECK(!pair_open(&pair));
    CHECK_CONTAINS(end_of(&pair.b.stream), "no shared cipher");
    CHECK_CONTAINS(end_of(&pair.a.stream), "handshake failure");
    pair_close(&pair);
}

TEST(tls_stream_that_is_full_keeps_no_more_than_a_record_and_goes_on_later)
{
    struct pair pair;
    static uint8_t data[65536], in[65536];
    CHECK(pair_start(&pair, &test_tls_host, &test_tls_peer));
    CHECK(pair_open(&pair));
    size_t sent = 0, got = 0;
    ssize_t n;
    while ((n = um_stream_write(&pair.a.stream, data, sizeof data)) > 0) {
        sent += (size_t)n;
    }
    CHECK_EQ(n, 0);
    CHECK(pair.a.stream.unsent);
    CHECK_EQ(um_stream_interest(&pair.a.stream, 0), UM_FD_WRITE);
    CHECK_EQ(um_stream_write(&pair.a.stream, data, 1), 0);
    uint64_t give_up = um_clock_ns() + HANG_LIMIT_NS;
    while (got < sent && um_clock_ns() < give_up) {
        CHECK((n = um_stream_read(&pair.b.stream, in, sizeof in)) >= 0);
        got += (size_t)n;
        CHECK(um_stream_flush(&pair.a.stream));
    }
    CHECK_EQ(got, sent);
    CHECK(!pair.a.stream.unsent);
    pair_close(&pair);
}

/* ---- ends ---- */

TEST(tls_stream_that_is_closed_ends_in_order_and_loses_nothing)
{
    struct pair pair;
    uint8_t in[64];
    CHECK(pair_start(&pair, &test_tls_host, &test_tls_peer));
    CHECK(pair_open(&pair));
    CHECK_EQ(um_stream_write(&pair.a.stream, "the last words", 14), 14);
    um_stream_close(&pair.a.stream, UM_STREAM_GENTLY);
    CHECK_EQ(poll(&(struct pollfd){.fd = pair.b.stream.fd, .events = POLLIN}, 1, -1), 1);
    ssize_t n;
    while ((n = um_stream_read(&pair.b.stream, in, sizeof in)) == 0) {
    }
    CHECK_EQ(n, 14);
    CHECK_CONTAINS(end_of(&pair.b.stream), "closed by the other side");
    CHECK_EQ(pair.b.stream.end, UM_STREAM_EOF);
    pair_close(&pair);
}

TEST(tls_stream_that_is_cut_off_is_told_from_one_that_ended)
{
    struct pair pair;
    CHECK(pair_start(&pair, &test_tls_host, &test_tls_peer));
    CHECK(pair_open(&pair));
    CHECK_EQ(um_stream_write(&pair.a.stream, "x", 1), 1);
    shutdown(pair.a.stream.fd, SHUT_WR); /* as anyone on the way can */
    CHECK_CONTAINS(end_of(&pair.b.stream), "cut off");
    CHECK_EQ(pair.b.stream.end, UM_STREAM_FAILED);
    pair_close(&pair);
}

TEST(tls_stream_whose_bytes_were_changed_on_the_way_fails)
{
    struct pair pair;
    uint8_t forged[40] = {0x17, 3, 3, 0, 35};
    CHECK(pair_start(&pair, &test_tls_host, &test_tls_peer));
    CHECK(pair_open(&pair));
    CHECK_EQ(send(pair.a.stream.fd, forged, sizeof forged, MSG_NOSIGNAL), sizeof forged);
    CHECK_CONTAINS(end_of(&pair.b.stream), "bad record mac");
    CHECK_EQ(pair.b.stream.end, UM_STREAM_FAILED);
    pair_close(&pair);
}

/* ---- whom it refuses ---- */

TEST(tls_certificates_of_others_are_refused_by_either_side)
{
    struct pair pair;
    CHECK(pair_start(&pair, &test_tls_stranger, &test_tls_host));
    CHECK(!pair_open(&pair));
    CHECK_CONTAINS(end_of(&pair.b.stream), "unable to get local issuer certificate");
    CHECK_EQ(test_log_count("Core-9565-28"), 1);
    CHECK_CONTAINS(end_of(&pair.a.stream), "unknown ca");
    pair_close(&pair);
    CHECK(pair_start(&pair, &test_tls_host, &test_tls_stranger));
    CHECK(!pair_open(&pair));
    CHECK_CONTAINS(end_of(&pair.a.stream), "unable to get local issuer certificate");
    CHECK_EQ(test_log_count("Core-9565-27"), 1);
    CHECK_CONTAINS(end_of(&pair.b.stream), "unknown ca");
    pair_close(&pair);
}

/* `names` of the one who accepts; the other one's certificate has peer.test and 10.1.2.3. */
static bool accepts_peer(const char *names)
{
    struct um_tls_config config = test_tls_host;
    config.peer_names = names;
    struct pair pair;
    bool opens = pair_start(&pair, &test_tls_peer, &config) && pair_open(&pair);
    bool told = test_log_count("um_tls_peer_names") == 1;
    pair_close(&pair);
    if (opens == told) {
        fprintf(stderr, "%s: opens %d, told %d\n", names, opens, told);
    }
    return opens && !told;
}

TEST(tls_certificates_must_have_one_of_the_names_that_peers_have)
{
    CHECK(accepts_peer(NULL));
    CHECK(accepts_peer("other.test, peer.test"));
    CHECK(accepts_peer("10.1.2.3"));
    CHECK(accepts_peer(".test")); /* any name below it */
    CHECK(!accepts_peer("other.test"));
    CHECK(!accepts_peer("peer.tes"));
    CHECK(!accepts_peer("address")); /* it comes from 127.0.0.1 */
    CHECK(!accepts_peer(","));
    struct um_tls_config config = test_tls_peer; /* connects to host.test, whose certificate has 127.0.0.1 */
    config.peer_names = "address";
    struct pair pair;
    CHECK(pair_start(&pair, &config, &test_tls_host));
    CHECK(pair_open(&pair));
    pair_close(&pair);
}

TEST(tls_and_plain_streams_refuse_each_other)
{
    struct pair pair;
    CHECK(pair_start(&pair, NULL, &test_tls_host));
    CHECK(ready(&pair.a.stream, UM_FD_WRITE) && um_stream_open(&pair.a.stream) == 1);
    CHECK_EQ(um_stream_write(&pair.a.stream, "\x08\x6b\x00\x0c", 4), 4);
    CHECK_CONTAINS(end_of(&pair.b.stream), "does not use TLS");
    CHECK_EQ(test_log_count("Core-9565-38"), 1);
    CHECK_EQ(test_log_count("0x08"), 1);
    pair_close(&pair);
    CHECK(pair_start(&pair, &test_tls_host, NULL));
    CHECK(ready(&pair.a.stream, UM_FD_WRITE) && um_stream_open(&pair.a.stream) == 0);
    CHECK_EQ(um_stream_write(&pair.b.stream, "\x08\x10\x00\x18", 4), 4);
    CHECK_CONTAINS(end_of(&pair.a.stream), "does not use TLS");
    CHECK_EQ(test_log_count("Core-9565-38"), 1);
    pair_close(&pair);
}

/* Reads what one side wrote, at the socket, and writes it to the other side byte by byte. */
static void dribble(int from, int to)
{
    uint8_t byte;
    while (recv(from, &byte, 1, MSG_DONTWAIT) == 1) {
        CHECK_EQ(send(to, &byte, 1, MSG_NOSIGNAL), 1);
    }
}

TEST(tls_handshake_that_comes_byte_by_byte_succeeds_and_blocks_nobody)
{
    struct pair left, right; /* the relay stands between the plain sides */
    CHECK(pair_start(&left, &test_tls_peer, NULL));
    CHECK(pair_start(&right, NULL, &test_tls_host));
    uint64_t give_up = um_clock_ns() + HANG_LIMIT_NS;
    while ((!left.a.stream.opened || !right.b.stream.opened) && um_clock_ns() < give_up) {
        CHECK(go_on(&left.a.stream));
        CHECK(go_on(&right.b.stream));
        dribble(left.b.stream.fd, right.a.stream.fd);
        dribble(right.a.stream.fd, left.b.stream.fd);
    }
    CHECK(left.a.stream.opened && right.b.stream.opened);
    pair_close(&left);
    pair_close(&right);
}

TEST(tls_handshakes_of_strangers_have_a_budget_of_processor_time)
{
    struct pair pair;
    uint64_t now = 5 * UM_NS_PER_SEC;
    CHECK(pair_start(&pair, &test_tls_host, &test_tls_peer));
    CHECK(!um_tls_busy(pair.b.tls, now));
    CHECK(pair_open(&pair));
    CHECK(atomic_load(&pair.b.tls->worked_ns) > 0);
    CHECK_EQ(atomic_load(&pair.a.tls->worked_ns), 0); /* it has chosen to connect */
    atomic_store(&pair.b.tls->worked_ns, UM_TLS_WINDOW_WORK_NS);
    CHECK(um_tls_busy(pair.b.tls, now + UM_TLS_WINDOW_NS - 1));
    CHECK(!um_tls_busy(pair.b.tls, now + UM_TLS_WINDOW_NS));
    CHECK(!um_tls_busy(pair.b.tls, now + UM_TLS_WINDOW_NS + 1));
    pair_close(&pair);
}

/* ---- settings ---- */

static void refuses(const struct um_tls_config *config, const char *option, const char *words)
{
    struct um_tls *tls = um_tls_create(config);
    bool refused = tls == NULL;
    um_tls_destroy(tls);
    CHECK(refused);
    CHECK_CONTAINS(um_errmsg(), option);
    CHECK_CONTAINS(um_errmsg(), words);
}

#define REFUSES(words, option, ...)                                                                                    \
    do {                                                                                                               \
        struct um_tls_config config = test_tls_host;                                                                   \
        __VA_ARGS__;                                                                                                   \
        refuses(&config, option, words);                                                                               \
    } while (0)

TEST(tls_certificate_that_cannot_be_used_is_an_error_with_a_remedy)
{
    REFUSES("No such file", "tls_certificate " CERTIFICATES "none.pem", config.certificate = CERTIFICATES "none.pem");
    REFUSES("cannot be read", "tls_certificate ", config.certificate = CERTIFICATES);
    REFUSES("PEM", "tls_certificate ", config.certificate = "/proc/self/cmdline");
    REFUSES("empty", "tls_certificate /dev/null", config.certificate = "/dev/null");
    REFUSES("expired at 2021-01-01", "tls_certificate ", config.certificate = CERTIFICATES "expired.pem");
    REFUSES("not valid before 2110-01-01", "tls_certificate ", config.certificate = CERTIFICATES "future.pem");
    REFUSES("must be set", "tls_certificate", config.certificate = config.key = NULL);
    REFUSES("tls_certificate_key is not", "tls_certificate", config.key = NULL);
    REFUSES("tls_certificate is not", "tls_certificate_key", config.certificate = "");
}

TEST(tls_key_that_cannot_be_used_is_an_error_with_a_remedy)
{
    REFUSES("No such file", "tls_certificate_key ", config.key = CERTIFICATES "none.key");
    REFUSES("not the key of the certificate", "tls_certificate_key ", config.key = CERTIFICATES "peer.key");
    REFUSES("not the key of the certificate", "tls_certificate_key ", config.key = CERTIFICATES "ec.key");
    REFUSES("PEM", "tls_certificate_key ", config.key = CERTIFICATES "ca.pem");
    REFUSES("tls_certificate_key_password", "encrypted", config.key = CERTIFICATES "encrypted.key");
    REFUSES("does not open it", "tls_certificate_key_password", config.key = CERTIFICATES "encrypted.key";
            config.password = "guess");
    struct um_tls_config right = test_tls_host;
    right.key = CERTIFICATES "encrypted.key";
    right.password = TEST_KEY_PASSWORD;
    carries_with(&right, &test_tls_peer);
}

TEST(tls_trusted_certificates_that_cannot_be_used_are_an_error)
{
    REFUSES("No such file", "tls_trusted_certificates ", config.trusted = CERTIFICATES "none.pem");
    REFUSES("PEM", "tls_trusted_certificates ", config.trusted = CERTIFICATES "host.key");
    struct um_tls_config system = test_tls_host;
    system.trusted = NULL;
    struct pair pair;
    CHECK(pair_start(&pair, &test_tls_peer, &system)); /* the system's authorities have not signed it */
    CHECK(!pair_open(&pair));
    CHECK_CONTAINS(end_of(&pair.b.stream), "certificate");
    pair_close(&pair);
}

TEST(tls_cipher_suites_that_are_unknown_or_weak_are_errors)
{
    static const char *const unknown[] = {"NO-SUCH-SUITE",
                                          "TLS_NO_SUCH_SUITE",
                                          "ALL",
                                          "HIGH:!aNULL",
                                          "@SECLEVEL=0",
                                          "ECDHE-RSA-AES256-GCM-SHA384,,",
                                          "AES256-GCM-SHA384 AES128-SHA"};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        REFUSES("unknown cipher suite", "tls_cipher_suites", config.suites = unknown[i]);
    }
    REFUSES("weak", "tls_cipher_suites", config.suites = "NULL-SHA256");
    REFUSES("weak", "tls_cipher_suites", config.suites = "ECDHE-RSA-AES256-GCM-SHA384,ADH-AES256-GCM-SHA384");
    struct um_tls *tls = um_tls_create(&test_tls_host); /* looking at weak ones left nothing behind */
    CHECK(tls != NULL);
    um_tls_destroy(tls);
}

TEST(tls_overrides_of_the_environment_act_and_unknown_ones_are_told)
{
    struct um_tls_config config = test_tls_host;
    config.overrides = "SSL_OP_NO_TLSv1_3|SSL_OP_MADE_UP,SSL_OP_NO_TICKET";
    struct um_tls_config new = with_suites("TLS_AES_256_GCM_SHA384");
    struct pair pair;
    CHECK(pair_start(&pair, &new, &config));
    CHECK_EQ(test_log_count("Core-9565-26"), 1);
    CHECK_EQ(test_log_count("\"SSL_OP_MADE_UP\""), 1);
    CHECK(!pair_open(&pair));
    pair_close(&pair);
}

/* ---- memory ---- */

TEST(tls_streams_survive_every_failing_allocation_of_ours)
{
    bool reached = true;
    for (long fail_at = 0; reached && fail_at < 60; fail_at++) {
        struct pair pair = {.listener = -1};
        um_stream_init(&pair.a.stream);
        um_stream_init(&pair.b.stream);
        test_fail_start(fail_at);
        bool good = pair_start(&pair, &test_tls_host, &test_tls_peer) && pair_open(&pair) && carry(&pair, 50000);
        reached = test_fail_stop();
        pair_close(&pair);
        CHECK(good != reached);
    }
    CHECK(!reached);
}
