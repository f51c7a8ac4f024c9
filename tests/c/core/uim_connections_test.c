/* Connections of unicast immediate messages: when they close, what becomes of messages when the other side does not
 * read, or sends nonsense, and how the sender hears that there is room again. */
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/um_context.h"
#include "core/um_object_counts.h"
#include "core/um_uim.h"
#include "um_test_uim.h"

/* ---- connections ---- */

static bool none_outgoing(void *arg)
{
    return layer_of(arg).outgoing == 0;
}

TEST(uim_share_a_connection_that_is_closed_when_it_was_idle)
{
    TEST_NEEDS_NET();
    lbm_context_t *sender = open_context("response_tcp_deletion_timeout", "300"), *ctx = open_context(NULL, NULL);
    struct recorder bare = RECORDER_INIT;
    MUST(lbm_context_rcv_immediate_msgs(ctx, immediate_cb, &bare, NULL));
    struct target target = target_of(ctx);
    for (int i = 0; i < 100; i++) {
        MUST(send_text(sender, target.text, NULL, "a", 0));
    }
    CHECK(recorder_wait(&bare, LBM_MSG_DATA, 100));
    uint64_t before = layer_of(ctx).accepted; /* one, unless this machine stood still between two of them */
    CHECK(before < 10);
    CHECK(comes_true(none_outgoing, sender));
    MUST(send_text(sender, target.text, NULL, "b", 0));
    CHECK(recorder_wait(&bare, LBM_MSG_DATA, 101));
    CHECK_EQ(layer_of(ctx).accepted, before + 1);
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
}

TEST(uim_flood_against_a_receiver_that_does_not_read_is_refused_within_its_bound)
{
    TEST_NEEDS_NET();
    uint16_t port;
    int fd = deaf_port(&port);
    lbm_context_t *ctx = open_context("response_session_sender_socket_buffer", "8192");
    struct target target;
    snprintf(target.text, sizeof target.text, "TCP:127.0.0.1:%u", port);
    static char data[1000];
    int sent = 0;
    while (lbm_unicast_immediate_message(ctx, target.text, NULL, data, sizeof data, LBM_SRC_NONBLOCK) == 0 &&
           sent < 1000000) {
        sent++;
    }
    CHECK_EQ(lbm_errnum(), LBM_EWOULDBLOCK);
    CHECK_CONTAINS(lbm_errmsg(), "response_session_maximum_buffer 65536");
    CHECK(sent >= 60); /* 64 KiB are queued, whatever the sockets took */
    lbm_context_stats_t stats;
    MUST(lbm_context_retrieve_stats(ctx, &stats));
    CHECK_EQ(stats.send_would_block, 1);
    struct recorder bare = RECORDER_INIT; /* others are served */
    MUST(lbm_context_rcv_immediate_msgs(ctx, immediate_cb, &bare, NULL));
    MUST(send_text(ctx, target_of(ctx).text, NULL, "me", LBM_SRC_NONBLOCK));
    CHECK(recorder_wait(&bare, LBM_MSG_DATA, 1));
    MUST(lbm_context_delete(ctx));
    close(fd);
}

/* ---- the context hears when it may go on ---- */

struct wakeups {
    pthread_mutex_t lock;
    int count, flags;
};

static int wakeup_cb(lbm_context_t *ctx, int event, void *ed, void *clientd)
{
    (void)ctx;
    struct wakeups *wakeups = clientd;
    pthread_mutex_lock(&wakeups->lock);
    if (event == LBM_SRC_EVENT_WAKEUP) {
        wakeups->count++;
        wakeups->flags |= ((lbm_src_event_wakeup_t *)ed)->flags;
    }
    pthread_mutex_unlock(&wakeups->lock);
    return 0;
}

static bool woken(struct wakeups *wakeups, int flags)
{
    pthread_mutex_lock(&wakeups->lock);
    bool ok = wakeups->count > 0 && wakeups->flags == flags;
    pthread_mutex_unlock(&wakeups->lock);
    return ok;
}

/* Reads until the context has heard of it. */
static bool wakes_when_read(int listener, struct wakeups *wakeups, int flags)
{
    static char buffer[1 << 16];
    int peer = accept(listener, NULL, NULL);
    for (int i = 0; i < HANG_SECONDS * 1000 && !woken(wakeups, flags); i++) {
        while (recv(peer, buffer, sizeof buffer, MSG_DONTWAIT) > 0) {
        }
        sleep_ms(1);
    }
    close(peer);
    return woken(wakeups, flags);
}

static lbm_context_t *waking_context(struct wakeups *wakeups)
{
    const lbm_context_src_event_func_t function = {.func = wakeup_cb, .clientd = wakeups};
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "response_session_sender_socket_buffer", "8192"));
    MUST(lbm_context_attr_setopt(attr, "source_event_function", (void *)&function, sizeof function));
    return net_context_with(attr);
}

TEST(uim_refused_is_followed_by_a_wakeup_when_there_is_room_again)
{
    TEST_NEEDS_NET();
    struct wakeups wakeups = {.lock = PTHREAD_MUTEX_INITIALIZER};
    static const char data[1000];
    struct target target;
    uint16_t port;
    int fd = deaf_port(&port), rc = 0;
    lbm_context_t *ctx = waking_context(&wakeups);
    snprintf(target.text, sizeof target.text, "TCP:127.0.0.1:%u", port);
    while (rc == 0) {
        rc = lbm_unicast_immediate_message(ctx, target.text, NULL, data, sizeof data, LBM_SRC_NONBLOCK);
    }
    CHECK_EQ(lbm_errnum(), LBM_EWOULDBLOCK);
    CHECK(wakes_when_read(fd, &wakeups, LBM_SRC_EVENT_WAKEUP_FLAG_UIM));
    MUST(lbm_context_delete(ctx));
    close(fd);
}

static int no_answer_cb(lbm_request_t *req, lbm_msg_t *msg, void *clientd)
{
    (void)req;
    (void)msg;
    (void)clientd;
    return 0;
}

TEST(uim_request_refused_is_followed_by_a_wakeup_of_its_own)
{
    TEST_NEEDS_NET();
    enum { MOST = 10000 };
    struct wakeups wakeups = {.lock = PTHREAD_MUTEX_INITIALIZER};
    static lbm_request_t *requests[MOST];
    static const char data[1000];
    struct target target;
    uint16_t port;
    int fd = deaf_port(&port), sent = 0;
    lbm_context_t *ctx = waking_context(&wakeups);
    snprintf(target.text, sizeof target.text, "TCP:127.0.0.1:%u", port);
    while (sent < MOST && lbm_unicast_immediate_request(&requests[sent], ctx, target.text, NULL, data, sizeof data,
                                                        no_answer_cb, NULL, NULL, LBM_SRC_NONBLOCK) == 0) {
        sent++;
    }
    CHECK_EQ(lbm_errnum(), LBM_EWOULDBLOCK);
    CHECK(wakes_when_read(fd, &wakeups, LBM_SRC_EVENT_WAKEUP_FLAG_REQUEST));
    for (int i = 0; i < sent; i++) {
        MUST(lbm_request_delete(requests[i]));
    }
    MUST(lbm_context_delete(ctx));
    close(fd);
}

/* A wakeup that is still due goes with the context. */
TEST(uim_refused_before_the_context_ends_leaves_nothing_to_it)
{
    TEST_NEEDS_NET();
    struct wakeups wakeups = {.lock = PTHREAD_MUTEX_INITIALIZER};
    static const char data[1000];
    struct target target;
    uint16_t port;
    int fd = deaf_port(&port), rc = 0;
    lbm_context_t *ctx = waking_context(&wakeups);
    snprintf(target.text, sizeof target.text, "TCP:127.0.0.1:%u", port);
    while (rc == 0) {
        rc = lbm_unicast_immediate_message(ctx, target.text, NULL, data, sizeof data, LBM_SRC_NONBLOCK);
    }
    CHECK_EQ(lbm_errnum(), LBM_EWOULDBLOCK);
    MUST(lbm_context_delete(ctx));
    close(fd);
}

struct blocked {
    lbm_context_t *ctx;
    struct target target;
    atomic_int sent;
    atomic_int rc;
    int errnum;
};

static void *send_until_it_fails(void *arg)
{
    struct blocked *b = arg;
    static char data[10000];
    while (b->rc == 0 && atomic_load(&b->sent) < 1000) {
        b->rc = lbm_unicast_immediate_message(b->ctx, b->target.text, NULL, data, sizeof data, LBM_SRC_BLOCK);
        b->errnum = b->rc == 0 ? 0 : lbm_errnum();
        atomic_fetch_add(&b->sent, b->rc == 0);
    }
    return NULL;
}

static bool send_blocks(void *arg)
{
    lbm_context_stats_t stats;
    MUST(lbm_context_retrieve_stats(arg, &stats));
    return stats.send_blocked > 0;
}

TEST(uim_blocking_sender_waits_and_goes_on_when_the_receiver_reads)
{
    TEST_NEEDS_NET();
    struct blocked b = {.ctx = open_context("response_session_sender_socket_buffer", "8192")};
    uint16_t port;
    int fd = deaf_port(&port);
    pthread_t thread;
    snprintf(b.target.text, sizeof b.target.text, "TCP:127.0.0.1:%u", port);
    pthread_create(&thread, NULL, send_until_it_fails, &b);
    CHECK(comes_true(send_blocks, b.ctx));
    CHECK(atomic_load(&b.sent) < 1000);
    int peer = accept(fd, NULL, NULL);
    static char buffer[1 << 16];
    while (atomic_load(&b.sent) < 1000) {
        if (recv(peer, buffer, sizeof buffer, MSG_DONTWAIT) <= 0) {
            sleep_ms(1); /* the last one may have been sent since */
        }
        CHECK_EQ(b.rc, 0);
    }
    pthread_join(thread, NULL);
    CHECK_EQ(b.rc, 0);
    close(peer);
    close(fd);
    MUST(lbm_context_delete(b.ctx));
}

static int sending_cb(lbm_context_t *ctx, lbm_msg_t *msg, void *clientd)
{
    struct blocked *b = clientd;
    send_until_it_fails(b);
    atomic_store(&b->sent, -1);
    return 0;
}

TEST(uim_sent_in_a_callback_never_wait)
{
    TEST_NEEDS_NET();
    struct blocked b = {.ctx = open_context("response_session_sender_socket_buffer", "8192")};
    uint16_t port;
    int fd = deaf_port(&port);
    snprintf(b.target.text, sizeof b.target.text, "TCP:127.0.0.1:%u", port);
    MUST(lbm_context_rcv_immediate_msgs(b.ctx, sending_cb, &b, NULL));
    MUST(send_text(b.ctx, target_of(b.ctx).text, NULL, "go", 0));
    for (int i = 0; i < HANG_SECONDS * 1000 && atomic_load(&b.sent) != -1; i++) {
        sleep_ms(1);
    }
    CHECK_EQ(b.rc, -1);
    CHECK_EQ(b.errnum, LBM_EWOULDBLOCK);
    MUST(lbm_context_delete(b.ctx));
    close(fd);
}

TEST(uim_loss_rate_drops_what_comes)
{
    TEST_NEEDS_NET();
    lbm_context_t *sender = open_context(NULL, NULL), *ctx = open_context(NULL, NULL);
    struct recorder bare = RECORDER_INIT;
    MUST(lbm_context_rcv_immediate_msgs(ctx, immediate_cb, &bare, NULL));
    lbm_set_uim_loss_rate(100);
    for (int i = 0; i < 10; i++) {
        MUST(send_text(sender, target_of(ctx).text, NULL, "lost", 0));
    }
    while (layer_of(ctx).msgs_rcved < 10) {
        sleep_ms(1);
    }
    lbm_set_uim_loss_rate(0);
    MUST(send_text(sender, target_of(ctx).text, NULL, "kept", 0));
    CHECK(recorder_wait(&bare, LBM_MSG_DATA, 1));
    CHECK(recorder_reads(&bare, "10=kept "));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
}

/* ---- strangers ---- */

/* One immediate message with the headers that `present` names. */
static size_t forge(uint8_t *out, uint32_t present, uint32_t stream_sqn, const char *topic, const char *data)
{
    static const uint8_t instance[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    uint8_t *p = out + UM_LBMC_DATA_HDR_LEN;
    uint8_t order[5], count = 0, at = 0;
    if ((present & UM_LBMC_HAS_STREAM) != 0) {
        order[count++] = UM_LBMC_HDR_STREAM;
    }
    if (topic != NULL) {
        order[count++] = UM_LBMC_HDR_TOPICNAME;
    }
    if ((present & UM_LBMC_HAS_FRAG) != 0) {
        order[count++] = UM_LBMC_HDR_FRAG;
    }
    order[count] = UM_LBMC_HDR_DATA;
    if ((present & UM_LBMC_HAS_STREAM) != 0) {
        p += um_lbmc_put_stream(p, order[++at], 1, stream_sqn, instance);
    }
    if (topic != NULL) {
        p += um_lbmc_put_topicname(p, order[++at], topic, strlen(topic));
    }
    if ((present & UM_LBMC_HAS_FRAG) != 0) {
        p += um_lbmc_put_frag(p, order[++at], 0, 0, 1u << 30);
    }
    memcpy(p, data, strlen(data));
    p += strlen(data);
    um_lbmc_put_data_hdr(out, order[0], (uint16_t)(p - out), 0, 5);
    return (size_t)(p - out);
}

TEST(uim_repeated_and_streamless_messages_are_counted_and_the_former_dropped)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = open_context(NULL, NULL);
    struct recorder bare = RECORDER_INIT;
    uint8_t wire[512];
    MUST(lbm_context_rcv_immediate_msgs(ctx, immediate_cb, &bare, NULL));
    int fd = connect_to(port_of(ctx));
    static const uint32_t sqns[] = {0, 1, 1, 0, 2};
    size_t len = 0;
    for (size_t i = 0; i < sizeof sqns / sizeof sqns[0]; i++) {
        len += forge(wire + len, UM_LBMC_HAS_STREAM, sqns[i], NULL, "s");
    }
    len += forge(wire + len, 0, 0, NULL, "n");
    CHECK_EQ(write(fd, wire, len), len);
    CHECK(recorder_wait(&bare, LBM_MSG_DATA, 4));
    CHECK(recorder_reads(&bare, "5=s 5=s 5=s 5=n "));
    lbm_context_stats_t stats;
    MUST(lbm_context_retrieve_stats(ctx, &stats));
    CHECK_EQ(stats.uim_dup_msgs_rcved, 2);
    CHECK_EQ(stats.uim_msgs_no_stream_rcved, 1);
    MUST(lbm_context_reset_stats(ctx));
    MUST(lbm_context_retrieve_stats(ctx, &stats));
    CHECK_EQ(stats.uim_dup_msgs_rcved + stats.uim_msgs_no_stream_rcved, 0);
    close(fd);
    MUST(lbm_context_delete(ctx));
}

TEST(uim_forged_messages_are_bounded_and_counted)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = open_context(NULL, NULL), *sender = open_context(NULL, NULL);
    struct recorder bare = RECORDER_INIT;
    uint8_t wire[1024];
    char topic[16];
    int fd = connect_to(port_of(ctx));
    for (int i = 0; i < 20000; i++) { /* to topics nobody wants */
        snprintf(topic, sizeof topic, "t%d", i);
        size_t len = forge(wire, 0, 0, topic, "x");
        CHECK_EQ(write(fd, wire, len), len);
    }
    for (int i = 0; i < 1000; i++) {
        size_t len = forge(wire, UM_LBMC_HAS_FRAG, 0, "t", "x");
        CHECK_EQ(write(fd, wire, len), len);
    }
    memset(wire, 0, sizeof wire); /* the longest name a header can hold is no topic */
    um_lbmc_put_data_hdr(wire, UM_LBMC_HDR_TOPICNAME, UM_LBMC_DATA_HDR_LEN + 255, 0, 0);
    wire[UM_LBMC_DATA_HDR_LEN + 1] = 255;
    memset(wire + UM_LBMC_DATA_HDR_LEN + 4, 'n', 251);
    CHECK_EQ(write(fd, wire, UM_LBMC_DATA_HDR_LEN + 255), UM_LBMC_DATA_HDR_LEN + 255);
    MUST(lbm_context_rcv_immediate_msgs(ctx, immediate_cb, &bare, NULL));
    size_t len = forge(wire, 0, 0, NULL, "end");
    CHECK_EQ(write(fd, wire, len), len);
    CHECK(recorder_wait(&bare, LBM_MSG_DATA, 1));
    um_context_stats_t stats;
    MUST(um_context_stats(ctx, &stats));
    CHECK_EQ(stats.immediate_dropped, 20001);
    CHECK_EQ(stats.immediate_fragments, 1000);
    CHECK_EQ(ctx->rcv_topics.count, 0);
    MUST(send_text(sender, target_of(ctx).text, NULL, "on", 0));
    CHECK(recorder_wait(&bare, LBM_MSG_DATA, 2));
    close(fd);
    MUST(lbm_context_delete(sender));
    MUST(lbm_context_delete(ctx));
}

static bool raise_descriptors(rlim_t wanted)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < wanted) {
        limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    return limit.rlim_cur >= wanted;
}

static long resident_kb(void)
{
    long pages = 0, ignored;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file != NULL && fscanf(file, "%ld %ld", &ignored, &pages) != 2) {
        pages = 0;
    }
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

enum { PEERS = 1000, PEER_BUFFER = 4096, PEER_MESSAGE = 500 };

/* They are sent to, and do not read: each costs its queue, which has a bound, and the context goes on. */
TEST(uim_thousand_peers_that_do_not_read_cost_bounded_memory_and_the_context_goes_on)
{
    TEST_NEEDS_NET();
    if (!raise_descriptors(4096)) {
        TEST_SKIP("needs 4096 descriptors");
    }
    uint16_t port;
    int fd = deaf_port(&port);
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "response_session_sender_socket_buffer", "4608"));
    MUST(lbm_context_attr_str_setopt(attr, "response_session_maximum_buffer", "4096"));
    lbm_context_t *ctx = net_context_with(attr);
    struct recorder bare = RECORDER_INIT;
    MUST(lbm_context_rcv_immediate_msgs(ctx, immediate_cb, &bare, NULL));
    static char data[PEER_MESSAGE];
    long before = resident_kb(), refused = 0;
    for (int round = 0; round < 40; round++) {
        for (int peer = 0; peer < PEERS; peer++) {
            struct target target;
            snprintf(target.text, sizeof target.text, "TCP:127.0.%d.%d:%u", 1 + peer / 200, 1 + peer % 200, port);
            if (lbm_unicast_immediate_message(ctx, target.text, NULL, data, sizeof data, LBM_SRC_NONBLOCK) != 0) {
                CHECK_EQ(lbm_errnum(), LBM_EWOULDBLOCK);
                refused++;
            }
        }
    }
    CHECK(refused >= PEERS);
    CHECK_EQ(layer_of(ctx).outgoing, PEERS);
    long grown = resident_kb() - before;
    printf("1000 peers: %ld KB, %ld refused\n", grown, refused);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they keep books of their own */
    CHECK(grown < PEERS * 4L * PEER_BUFFER / 1024);
#endif
    MUST(send_text(ctx, target_of(ctx).text, NULL, "me", LBM_SRC_NONBLOCK));
    CHECK(recorder_wait(&bare, LBM_MSG_DATA, 1));
    MUST(lbm_context_delete(ctx));
    close(fd);
}

/* They connect to the request port, say half a message or nothing, and never read. */
TEST(uim_thousand_connections_that_say_nothing_keep_nobody_out)
{
    TEST_NEEDS_NET();
    if (!raise_descriptors(4096)) {
        TEST_SKIP("needs 4096 descriptors");
    }
    lbm_context_t *ctx = open_context("request_tcp_listen_backlog", "1000"), *sender = open_context(NULL, NULL);
    struct recorder bare = RECORDER_INIT;
    MUST(lbm_context_rcv_immediate_msgs(ctx, immediate_cb, &bare, NULL));
    static int fds[PEERS];
    long before = resident_kb();
    uint16_t port = port_of(ctx);
    for (int i = 0; i < PEERS; i++) {
        fds[i] = connect_to(port);
        if (i % 2 == 0) {
            static const uint8_t half[] = {0, 0, 0xff, 0xff, 0, 0, 0, 0};
            CHECK_EQ(write(fds[i], half, sizeof half), sizeof half);
        }
    }
    MUST(send_text(sender, target_of(ctx).text, NULL, "x", 0));
    CHECK(recorder_wait(&bare, LBM_MSG_DATA, 1));
    long grown = resident_kb() - before;
    printf("1000 silent connections: %ld KB\n", grown);
    for (int i = 0; i < PEERS; i++) {
        close(fds[i]);
    }
    MUST(lbm_context_delete(sender));
    MUST(lbm_context_delete(ctx));
}
