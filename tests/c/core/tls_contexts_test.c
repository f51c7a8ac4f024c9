/* Encrypted contexts through the public interface: what they exchange, whom they do not hear, and what strangers get
 * who connect to them. */
#include "um_test.h"
#include "um_test_net.h"
#include "um_test_rcv.h"

#include <poll.h>
#include <sys/socket.h>

#include "core/um_source.h"
#include "um_test_log.h"
#include "um_test_tls.h"
#include "um_test_uim.h"

#define TIMEOUT_MS "300"

static lbm_context_attr_t *attr_of(const struct um_tls_config *config)
{
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "request_tcp_port_low", "0"));
    MUST(lbm_context_attr_str_setopt(attr, "request_tcp_port_high", "0"));
    MUST(lbm_context_attr_str_setopt(attr, "transport_tcp_port_low", "0"));
    MUST(lbm_context_attr_str_setopt(attr, "transport_tcp_port_high", "0"));
    MUST(lbm_context_attr_str_setopt(attr, "request_tcp_interface", "127.0.0.1/32"));
    if (config != NULL) {
        MUST(lbm_context_attr_str_setopt(attr, "use_tls", "1"));
        MUST(lbm_context_attr_str_setopt(attr, "tls_certificate", config->certificate));
        MUST(lbm_context_attr_str_setopt(attr, "tls_certificate_key", config->key));
        MUST(lbm_context_attr_str_setopt(attr, "tls_trusted_certificates", config->trusted));
    }
    return attr;
}

/* NULL: a plain one. */
static lbm_context_t *context_of(const struct um_tls_config *config)
{
    return net_context_with(attr_of(config));
}

static lbm_context_t *impatient_context(void)
{
    lbm_context_attr_t *attr = attr_of(&test_tls_host);
    MUST(lbm_context_attr_str_setopt(attr, "tls_compression_negotiation_timeout", TIMEOUT_MS));
    return net_context_with(attr);
}

/* ---- what they exchange ---- */

TEST(encrypted_contexts_exchange_messages_of_all_sizes)
{
    TEST_NEEDS_NET();
    struct recorder r = RECORDER_INIT;
    lbm_context_t *sender = context_of(&test_tls_host), *ctx = context_of(&test_tls_peer);
    lbm_src_t *src = net_source(sender, "encrypted");
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "encrypted", &r);
    static char megabyte[1 << 20];
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 1));
    net_send(src, "first");
    MUST(lbm_src_send(src, megabyte, sizeof megabyte, LBM_SRC_BLOCK | LBM_MSG_FLUSH));
    for (int i = 0; i < 1000; i++) {
        MUST(lbm_src_send(src, "x", 1, LBM_SRC_BLOCK));
    }
    net_send(src, "last");
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 1003));
    CHECK_EQ(r.bytes, 5 + sizeof megabyte + 1000 + 4);
    MUST(lbm_src_delete(src));
    CHECK(recorder_wait(&r, LBM_MSG_EOS, 1));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
}

static int respond(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    if (msg->type == LBM_MSG_REQUEST) {
        MUST(lbm_send_response(msg->response, "yes", 3, LBM_SRC_NONBLOCK));
    }
    return recorder_cb(rcv, msg, clientd);
}

static int on_response(lbm_request_t *request, lbm_msg_t *msg, void *clientd)
{
    (void)request;
    return msg->type == LBM_MSG_RESPONSE ? recorder_cb(NULL, msg, clientd) : 0;
}

TEST(requests_responses_and_immediate_messages_are_encrypted_too)
{
    TEST_NEEDS_NET();
    struct recorder r = RECORDER_INIT, answers = RECORDER_INIT, immediate = RECORDER_INIT;
    lbm_context_t *sender = context_of(&test_tls_host), *ctx = context_of(&test_tls_peer);
    lbm_src_t *src = net_source(sender, "asked");
    lbm_rcv_t *rcv = net_receiver(ctx, "asked", NULL, respond, &r, NULL);
    lbm_request_t *request;
    MUST(lbm_context_rcv_immediate_msgs(ctx, immediate_cb, &immediate, NULL));
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 1));
    MUST(lbm_send_request(&request, src, "well?", 5, on_response, &answers, NULL, LBM_SRC_BLOCK | LBM_MSG_FLUSH));
    CHECK(recorder_wait(&answers, LBM_MSG_RESPONSE, 1));
    MUST(lbm_request_delete(request));
    MUST(send_text(sender, target_of(ctx).text, NULL, "now", LBM_SRC_BLOCK));
    CHECK(recorder_wait(&immediate, LBM_MSG_DATA, 1));
    CHECK_STR(immediate.text, "0=now ");
    MUST(lbm_src_delete(src));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
}

TEST(late_join_is_encrypted_too)
{
    TEST_NEEDS_NET();
    struct recorder late = RECORDER_INIT;
    lbm_context_t *sender = context_of(&test_tls_host), *ctx = context_of(&test_tls_peer);
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "late_join", "1"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "retransmit_retention_size_threshold", "1000000"));
    MUST(lbm_src_topic_alloc(&topic, sender, "kept", attr));
    MUST(lbm_src_create(&src, sender, topic, NULL, NULL, NULL));
    lbm_src_topic_attr_delete(attr);
    for (int i = 0; i < 20; i++) {
        net_send(src, "kept");
    }
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "kept", &late);
    CHECK(recorder_wait(&late, LBM_MSG_DATA, 20));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
}

/* ---- whom they do not hear ---- */

static bool drops_by_type(void *arg)
{
    lbm_context_stats_t stats;
    MUST(lbm_context_retrieve_stats(arg, &stats));
    return stats.tr_dgrams_dropped_type > 0;
}

static unsigned long rcv_topics(lbm_context_t *ctx)
{
    lbm_context_stats_t stats;
    MUST(lbm_context_retrieve_stats(ctx, &stats));
    return stats.tr_rcv_unresolved_topics;
}

/* Each has a source of one topic and receives that of the other. */
static void do_not_meet(lbm_context_t *a, lbm_context_t *b)
{
    struct recorder of_a = RECORDER_INIT, of_b = RECORDER_INIT;
    lbm_src_t *src_a = net_source(a, "of a"), *src_b = net_source(b, "of b");
    lbm_rcv_t *rcv_a = net_recording_receiver(a, "of b", &of_a), *rcv_b = net_recording_receiver(b, "of a", &of_b);
    CHECK(comes_true(drops_by_type, a));
    CHECK(comes_true(drops_by_type, b));
    net_send(src_a, "x");
    net_send(src_b, "x");
    CHECK_EQ(rcv_topics(a), 1);
    CHECK_EQ(rcv_topics(b), 1);
    CHECK_EQ(recorder_count(&of_a, LBM_MSG_DATA) + recorder_count(&of_b, LBM_MSG_DATA), 0);
    MUST(lbm_rcv_delete(rcv_a));
    MUST(lbm_rcv_delete(rcv_b));
    MUST(lbm_src_delete(src_a));
    MUST(lbm_src_delete(src_b));
}

TEST(plain_and_encrypted_contexts_never_connect_and_both_count_it)
{
    TEST_NEEDS_NET();
    lbm_context_t *plain = context_of(NULL), *encrypted = context_of(&test_tls_host);
    do_not_meet(plain, encrypted);
    MUST(lbm_context_delete(plain));
    MUST(lbm_context_delete(encrypted));
}

static bool logged(void *arg)
{
    (void)arg;
    return hits() > 0;
}

static void refuses_its_certificate(const struct um_tls_config *sources, const struct um_tls_config *receivers,
                                    const char *id)
{
    struct recorder r = RECORDER_INIT;
    watch_log(id);
    lbm_context_t *sender = context_of(sources), *ctx = context_of(receivers);
    lbm_src_t *src = net_source(sender, "refused");
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "refused", &r);
    CHECK(comes_true(logged, NULL));
    net_send(src, "secret");
    CHECK(log_shows("refused"));
    CHECK_EQ(recorder_count(&r, LBM_MSG_DATA), 0);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
    MUST(lbm_log(NULL, NULL));
}

TEST(contexts_with_certificates_of_another_authority_are_closed_out)
{
    TEST_NEEDS_NET();
    refuses_its_certificate(&test_tls_host, &test_tls_stranger, "Core-9565-28");
    refuses_its_certificate(&test_tls_stranger, &test_tls_host, "Core-9565-27");
}

/* ---- what goes over other transports ---- */

TEST(sources_of_other_transports_are_refused_in_encrypted_contexts)
{
    TEST_NEEDS_NET();
    static const char *const transports[] = {"lbt-rm", "lbt-ru", "lbt-ipc", "lbt-smx"};
    lbm_context_t *ctx = context_of(&test_tls_host);
    for (size_t i = 0; i < sizeof transports / sizeof transports[0]; i++) {
        lbm_src_topic_attr_t *attr;
        lbm_topic_t *topic;
        lbm_src_t *src;
        MUST(lbm_src_topic_attr_create(&attr));
        MUST(lbm_src_topic_attr_str_setopt(attr, "transport", transports[i]));
        MUST(lbm_src_topic_alloc(&topic, ctx, "open", attr));
        CHECK_EQ(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL), -1);
        CHECK_CONTAINS(lbm_errmsg(), "CoreApi-9565-11");
        CHECK_CONTAINS(lbm_errmsg(), transports[i]);
        CHECK_CONTAINS(lbm_errmsg(), "use transport tcp");
        lbm_src_topic_attr_delete(attr);
    }
    MUST(lbm_context_delete(ctx));
}

TEST(multicast_immediate_messages_are_off_in_encrypted_contexts)
{
    TEST_NEEDS_NET();
    lbm_context_attr_t *attr = attr_of(&test_tls_host);
    MUST(lbm_context_attr_str_setopt(attr, "mim_address", "224.10.10.21"));
    watch_log("Core-9600-01");
    lbm_context_t *ctx = net_context_with(attr);
    CHECK_EQ(hits(), 1);
    CHECK_EQ(lbm_multicast_immediate_message(ctx, "topic", "x", 1, LBM_SRC_BLOCK), -1);
    CHECK_EQ(lbm_errnum(), LBM_EOPNOTSUPP);
    CHECK_CONTAINS(lbm_errmsg(), "use_tls");
    MUST(lbm_context_delete(ctx));
    MUST(lbm_log(NULL, NULL));
}

/* One context says in its advertisements that it is encrypted, and sends in the open all the same. */
TEST(advertised_sources_of_other_transports_are_not_joined_by_encrypted_contexts)
{
    TEST_NEEDS_NET();
    struct recorder r = RECORDER_INIT;
    watch_log("Core-9565-46");
    lbm_context_t *forger = context_of(&test_tls_host), *ctx = context_of(&test_tls_peer);
    forger->filters.settings.encryption = false;
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", "lbt-rm"));
    MUST(lbm_src_topic_alloc(&topic, forger, "forged", attr));
    MUST(lbm_src_create(&src, forger, topic, NULL, NULL, NULL));
    lbm_src_topic_attr_delete(attr);
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "forged", &r);
    CHECK(comes_true(logged, NULL));
    CHECK(log_shows("LBT-RM"));
    net_send(src, "forged");
    CHECK_EQ(recorder_count(&r, LBM_MSG_BOS) + recorder_count(&r, LBM_MSG_DATA), 0);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_log(NULL, NULL));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(forger));
}

/* ---- strangers ---- */

/* Until the other side closes; bytes that came before it did. */
static long bytes_until_closed(int fd)
{
    char data[256];
    long bytes = 0;
    for (;;) {
        REQUIRE(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, HANG_SECONDS * 1000) == 1);
        ssize_t got = recv(fd, data, sizeof data, 0);
        if (got <= 0) {
            close(fd);
            return bytes;
        }
        bytes += got;
    }
}

TEST(strangers_who_say_nothing_are_closed_out_after_the_negotiation_timeout)
{
    TEST_NEEDS_NET();
    watch_log("Core-9003-19");
    lbm_context_t *ctx = impatient_context();
    lbm_src_t *src = net_source(ctx, "waiting");
    lbm_transport_source_info_t info;
    um_src_stream_source_info(&src->stream, &info);
    CHECK_EQ(bytes_until_closed(connect_to(port_of(ctx))), 0);
    CHECK(log_shows("negotiate timeout with peer"));
    watch_log("Core-5688-3934");
    CHECK_EQ(bytes_until_closed(connect_to(info.src_port)), 0);
    CHECK_EQ(hits(), 1);
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_log(NULL, NULL));
}

/* A listening socket in place of a source that never answers the hello. */
TEST(contexts_leave_peers_that_do_not_negotiate)
{
    TEST_NEEDS_NET();
    uint16_t port;
    int deaf = deaf_port(&port);
    char target[64];
    watch_log("Core-5927-1");
    lbm_context_t *ctx = impatient_context();
    snprintf(target, sizeof target, "TCP:127.0.0.1:%u", port);
    MUST(send_text(ctx, target, NULL, "hello?", LBM_SRC_BLOCK));
    CHECK(comes_true(logged, NULL));
    CHECK(log_shows("negotiate timeout with peer"));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_log(NULL, NULL));
    close(deaf);
}

TEST(a_plain_context_closes_connections_that_begin_with_tls_and_says_so)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = context_of(NULL);
    lbm_src_t *src = net_source(ctx, "plain");
    lbm_transport_source_info_t info;
    um_src_stream_source_info(&src->stream, &info);
    uint16_t ports[] = {port_of(ctx), (uint16_t)info.src_port};
    for (size_t i = 0; i < 2; i++) {
        watch_log("Core-9565-38");
        int fd = connect_to(ports[i]);
        CHECK_EQ(send(fd, "\x16\x03\x01\x02\x00\x01\x00", 7, MSG_NOSIGNAL), 7);
        bytes_until_closed(fd);
        CHECK(comes_true(logged, NULL));
        CHECK(log_shows("use_tls 0"));
    }
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_log(NULL, NULL));
}

/* Ports of this network on which something listens. */
static int listening_ports(uint16_t *out, int max)
{
    FILE *table = fopen("/proc/thread-self/net/tcp", "re");
    char line[256];
    int count = 0;
    REQUIRE(table != NULL);
    while (fgets(line, sizeof line, table) != NULL && count < max) {
        unsigned port, state;
        if (sscanf(line, " %*d: %*8[0-9A-Fa-f]:%4x %*8[0-9A-Fa-f]:%*4x %2x", &port, &state) == 2 && state == 0x0a) {
            out[count++] = (uint16_t)port;
        }
    }
    fclose(table);
    return count;
}

/* The session id of a receiver, a message, a request in HTTP, zeros, a TLS record that is none. */
static const struct {
    const char *bytes;
    size_t len;
} plaintexts[] = {{"\x08\x6b\x00\x0c\xff\x08\x00\x00\xf1\x78\x9b\xcc", 12},
                  {"\x00\x00\x00\x11\x5b\xc8\xf9\xa1\x00\x00\x00\x00hello", 17},
                  {"GET / HTTP/1.0\r\n\r\n", 18},
                  {"\x00\x00\x00\x00\x00\x00\x00\x00", 8},
                  {"\x16\x03\x03\x00\x05hello\x00\x00\x00\x00", 14}};

TEST(x5_every_listening_socket_refuses_plaintext_where_encryption_is_required)
{
    TEST_NEEDS_NET();
    struct recorder r = RECORDER_INIT;
    uint16_t ports[64];
    int others = listening_ports(ports, 64);
    lbm_context_t *ctx = context_of(&test_tls_host), *peer = context_of(&test_tls_peer);
    lbm_src_t *src = net_source(ctx, "guarded"), *second = net_source(ctx, "guarded as well");
    lbm_xsp_t *xsp;
    MUST(lbm_xsp_create(&xsp, ctx, NULL, NULL)); /* has a request port of its own */
    lbm_rcv_t *rcv = net_recording_receiver(peer, "guarded", &r);
    MUST(lbm_context_rcv_immediate_msgs(ctx, immediate_cb, &r, NULL));
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 1));
    int count = listening_ports(ports, 64);
    CHECK_EQ(others, 0);
    CHECK(count >= 5); /* three request ports, two sources */
    for (int i = 0; i < count; i++) {
        for (size_t k = 0; k < sizeof plaintexts / sizeof plaintexts[0]; k++) {
            int fd = connect_to(ports[i]);
            CHECK_EQ(send(fd, plaintexts[k].bytes, plaintexts[k].len, MSG_NOSIGNAL), plaintexts[k].len);
            CHECK(bytes_until_closed(fd) <= 7); /* an alert of TLS at the most */
        }
    }
    net_send(src, "meanwhile");
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 1));
    CHECK_EQ(recorder_count(&r, LBM_MSG_DATA), 1);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_src_delete(second));
    MUST(lbm_xsp_delete(xsp));
    MUST(lbm_context_delete(peer));
    MUST(lbm_context_delete(ctx));
}
