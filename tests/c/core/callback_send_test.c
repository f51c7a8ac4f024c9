/* A send that may block, in a callback of the source's own context, on the context's thread or on an XSP: it never
 * waits there. What would have to wait is refused as with LBM_SRC_NONBLOCK, and this is logged once for each context.
 * Each transport is filled up for it. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <unistd.h>

#include "um_test_shm.h"
#include "um_test_xsp.h"

#define PIECES 4
#define MESSAGE 1000
#define SENDS_MAX 100000 /* much more than any limit below */

static const char TOLD[] = "would have to wait in a callback of its own context";
static atomic_int told;
static atomic_bool told_topic;

static int count_told(int level, const char *message, void *clientd)
{
    if (strstr(message, TOLD) != NULL) {
        atomic_fetch_add(&told, 1);
        atomic_store(&told_topic, level == LBM_LOG_WARNING && strstr(message, (const char *)clientd) != NULL);
    }
    return 0;
}

enum place { ON_CONTEXT, ON_XSP };

struct filled {
    lbm_context_t *sending, *receiving;
    lbm_src_t *src;
    lbm_rcv_t *rcv;
    struct mapper mapper; /* of the sending context: what it receives is on an XSP */
    lbm_src_t *calling;   /* of the receiving context: its messages are the callbacks on the XSP */
    lbm_rcv_t *called;
    lbm_timer_cb_proc proc; /* what is to be done there */
    unsigned long sent;     /* by whoever sends; one at a time */
    int pieces;             /* in a group; LBT-SMX queues nothing beside its ring, so that it may take a part of one */
    atomic_ulong received, lost;
    atomic_long last;                                 /* number received; -1: none */
    atomic_bool closed;                               /* the receiver's callback waits */
    int groups_errnum, single_errnum, acquire_errnum; /* of the refusal in the callback; 0: none */
    atomic_bool done;
};

static int gated(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct filled *w = clientd;
    while (atomic_load(&w->closed)) {
        usleep(1000);
    }
    if (msg->type == LBM_MSG_DATA) {
        atomic_fetch_add(&w->received, 1);
        atomic_store(&w->last, msg->sequence_number);
    } else if (msg->type != LBM_MSG_BOS && msg->type != LBM_MSG_EOS) {
        atomic_fetch_add(&w->lost, 1);
    }
    return 0;
}

static bool all_received(struct filled *w)
{
    for (int ms = 0; ms < HANG_SECONDS * 1000 && atomic_load(&w->received) < w->sent; ms++) {
        usleep(1000);
    }
    return atomic_load(&w->received) == w->sent;
}

/* All of a group or nothing: what is refused in the middle could not be told from what is not. */
static void send_groups(struct filled *w, lbm_iovec_t *group)
{
    for (int i = 0; i < SENDS_MAX; i++) {
        if (lbm_src_sendv(w->src, group, w->pieces, LBM_MSG_FLUSH) != 0) {
            w->groups_errnum = lbm_errnum();
            return;
        }
        w->sent += (unsigned)w->pieces;
    }
}

static int in_callback(lbm_context_t *ctx, const void *clientd)
{
    static char bytes[MESSAGE];
    struct filled *w = (struct filled *)clientd;
    void *buffer;
    lbm_iovec_t group[PIECES];
    for (int i = 0; i < PIECES; i++) {
        group[i] = (lbm_iovec_t){bytes, sizeof bytes};
    }
    send_groups(w, group);
    for (int i = 0; i < SENDS_MAX && w->single_errnum == 0; i++) {
        if (lbm_src_send(w->src, bytes, sizeof bytes, LBM_SRC_BLOCK | LBM_MSG_FLUSH) == 0) {
            w->sent++;
        } else {
            w->single_errnum = lbm_errnum();
        }
    }
    if (lbm_src_buff_acquire(w->src, &buffer, MESSAGE, 0) != 0) {
        w->acquire_errnum = lbm_errnum();
    }
    atomic_store(&w->done, true);
    return 0;
}

static lbm_context_t *context_with_limits(struct mapper *mapper)
{
    lbm_context_attr_t *attr = mapping_attr(map, mapper);
    MUST(lbm_context_attr_str_setopt(attr, "request_tcp_bind_request_port", "0"));
    MUST(lbm_context_attr_str_setopt(attr, "resolver_multicast_receiver_socket_buffer", "0"));
    MUST(lbm_context_attr_str_setopt(attr, "transport_lbtrm_data_rate_limit", "4000000"));
    MUST(lbm_context_attr_str_setopt(attr, "transport_lbtru_data_rate_limit", "4000000"));
    return net_context_with(attr);
}

static void world_open(struct filled *w, const char *transport, const char *topic_name)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    memset(w, 0, sizeof *w);
    atomic_store(&w->last, -1);
    w->sending = context_with_limits(&w->mapper);
    w->receiving = net_lean_context();
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", transport));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_lbtipc_behavior", "receiver_paced"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_lbtipc_transmission_window_size", "131072"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_lbtsmx_transmission_window_size", "131072"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_tcp_sender_socket_buffer", "20000"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_session_maximum_buffer", "65536"));
    MUST(lbm_src_topic_alloc(&topic, w->sending, topic_name, attr));
    MUST(lbm_src_create(&w->src, w->sending, topic, NULL, NULL, NULL));
    w->rcv = net_receiver(w->receiving, topic_name, NULL, gated, w, NULL);
    lbm_src_topic_attr_delete(attr);
}

static int called(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct filled *w = clientd;
    return msg->type == LBM_MSG_DATA ? w->proc(w->sending, w) : 0;
}

/* The sending context receives on an XSP. */
static void open_xsp(struct filled *w)
{
    w->mapper.xsps[0] = xsp_with(w->sending, "embedded", NULL, NULL);
    w->mapper.count = 1;
    w->calling = net_source(w->receiving, "callback/calling");
    w->called = net_receiver(w->sending, "callback/calling", NULL, called, w, NULL);
    MUST(um_rcv_wait_ready(w->called, 1, HANG_SECONDS * 1000));
}

static void world_close(struct filled *w)
{
    if (w->called != NULL) {
        MUST(lbm_rcv_delete(w->called));
        MUST(lbm_src_delete(w->calling));
        MUST(lbm_xsp_delete(w->mapper.xsps[0]));
    }
    MUST(lbm_rcv_delete(w->rcv));
    MUST(lbm_src_delete(w->src));
    MUST(lbm_context_delete(w->receiving));
    MUST(lbm_context_delete(w->sending));
}

/* Those sent before the receiver came do not count. */
static bool meet(struct filled *w)
{
    long sent = 0;
    for (int i = 0; i < HANG_SECONDS * 100 && atomic_load(&w->received) == 0; i++, sent++) {
        MUST(lbm_src_send(w->src, "first", 5, LBM_MSG_FLUSH));
        usleep(10000);
    }
    for (int ms = 0; ms < HANG_SECONDS * 1000 && atomic_load(&w->last) < sent - 1; ms++) {
        usleep(1000);
    }
    w->sent = atomic_load(&w->received);
    return w->sent > 0 && atomic_load(&w->last) == sent - 1;
}

static bool run_in_callback(struct filled *w, lbm_timer_cb_proc proc)
{
    atomic_store(&w->done, false);
    w->groups_errnum = w->single_errnum = w->acquire_errnum = 0;
    w->proc = proc;
    if (w->called != NULL) {
        net_send(w->calling, "now");
    } else if (lbm_schedule_timer(w->sending, proc, w, NULL, 1) == -1) {
        return false;
    }
    for (int ms = 0; ms < HANG_SECONDS * 1000 && !atomic_load(&w->done); ms++) {
        usleep(1000);
    }
    return atomic_load(&w->done);
}

static void refuses(const char *transport, const char *topic, enum place place)
{
    struct filled w;
    lbm_context_stats_t stats;
    atomic_store(&told, 0);
    atomic_store(&told_topic, false);
    lbm_log(count_told, (void *)topic);
    world_open(&w, transport, topic);
    w.pieces = strcmp(transport, "lbt-smx") == 0 ? 1 : PIECES;
    CHECK(meet(&w));
    if (place == ON_XSP) {
        open_xsp(&w);
    }
    atomic_store(&w.closed, strcmp(transport, "lbt-rm") != 0 && strcmp(transport, "lbt-ru") != 0);
    for (int round = 0; round < 2; round++) { /* the second finds it full */
        CHECK(run_in_callback(&w, in_callback));
        CHECK_EQ(w.groups_errnum, LBM_EWOULDBLOCK);
        CHECK_EQ(w.single_errnum, LBM_EWOULDBLOCK);
        CHECK_EQ(w.acquire_errnum, strcmp(transport, "lbt-smx") == 0 ? LBM_EWOULDBLOCK : LBM_EOPNOTSUPP);
    }
    CHECK_EQ(atomic_load(&told), 1);
    CHECK(atomic_load(&told_topic));
    MUST(lbm_context_retrieve_stats(w.sending, &stats));
    CHECK(stats.send_would_block >= 4);
    atomic_store(&w.closed, false);
    CHECK(all_received(&w)); /* each group whole */
    MUST(
        lbm_src_send(w.src, "after", 5, LBM_SRC_BLOCK | LBM_MSG_FLUSH)); /* another thread may wait, and says nothing */
    w.sent++;
    CHECK(all_received(&w));
    CHECK_EQ(atomic_load(&w.lost), 0);
    CHECK_EQ(atomic_load(&told), 1);
    world_close(&w);
    lbm_log(NULL, NULL);
}

TEST(tcp_refuses_in_a_callback_what_would_wait_and_says_so_once)
{
    TEST_NEEDS_NET();
    refuses("tcp", "callback/tcp", ON_CONTEXT);
}

TEST(lbtrm_refuses_in_a_callback_what_would_wait_and_says_so_once)
{
    TEST_NEEDS_NET();
    refuses("lbt-rm", "callback/lbtrm", ON_CONTEXT);
}

TEST(lbtru_refuses_in_a_callback_what_would_wait_and_says_so_once)
{
    TEST_NEEDS_NET();
    refuses("lbt-ru", "callback/lbtru", ON_CONTEXT);
}

TEST(lbtipc_refuses_in_a_callback_what_would_wait_and_says_so_once)
{
    TEST_NEEDS_NET();
    refuses("lbt-ipc", "callback/lbtipc", ON_CONTEXT);
}

TEST(lbtsmx_refuses_in_a_callback_what_would_wait_and_says_so_once)
{
    TEST_NEEDS_NET();
    refuses("lbt-smx", "callback/lbtsmx", ON_CONTEXT);
}

TEST(tcp_refuses_on_an_xsp_what_would_wait_and_says_so_once)
{
    TEST_NEEDS_NET();
    refuses("tcp", "callback/tcp/xsp", ON_XSP);
}

TEST(lbtrm_refuses_on_an_xsp_what_would_wait_and_says_so_once)
{
    TEST_NEEDS_NET();
    refuses("lbt-rm", "callback/lbtrm/xsp", ON_XSP);
}

TEST(lbtru_refuses_on_an_xsp_what_would_wait_and_says_so_once)
{
    TEST_NEEDS_NET();
    refuses("lbt-ru", "callback/lbtru/xsp", ON_XSP);
}

TEST(lbtipc_refuses_on_an_xsp_what_would_wait_and_says_so_once)
{
    TEST_NEEDS_NET();
    refuses("lbt-ipc", "callback/lbtipc/xsp", ON_XSP);
}

TEST(lbtsmx_refuses_on_an_xsp_what_would_wait_and_says_so_once)
{
    TEST_NEEDS_NET();
    refuses("lbt-smx", "callback/lbtsmx/xsp", ON_XSP);
}

/* LBM_SRC_NONBLOCK is no mistake there: nothing is said. */
static int without_blocking(lbm_context_t *ctx, const void *clientd)
{
    static char bytes[MESSAGE];
    struct filled *w = (struct filled *)clientd;
    while (lbm_src_send(w->src, bytes, sizeof bytes, LBM_SRC_NONBLOCK | LBM_MSG_FLUSH) == 0) {
        w->sent++;
    }
    w->single_errnum = lbm_errnum();
    atomic_store(&w->done, true);
    return 0;
}

TEST(a_non_blocking_send_in_a_callback_is_refused_without_a_word)
{
    TEST_NEEDS_NET();
    struct filled w;
    atomic_store(&told, 0);
    lbm_log(count_told, (void *)"callback/nonblock");
    world_open(&w, "lbt-smx", "callback/nonblock");
    CHECK(meet(&w));
    atomic_store(&w.closed, true);
    CHECK(run_in_callback(&w, without_blocking));
    CHECK_EQ(w.single_errnum, LBM_EWOULDBLOCK);
    CHECK_EQ(atomic_load(&told), 0);
    atomic_store(&w.closed, false);
    CHECK(all_received(&w));
    world_close(&w);
    lbm_log(NULL, NULL);
}
