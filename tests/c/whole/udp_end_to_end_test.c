/* LBT-RM and LBT-RU from source to receiver through the public interface, on a
 * private loopback network: repair under loss on purpose, losses that stay, ends
 * of sessions, retained messages, time stamps, NAK cut-off, waiting modes. */
#include "um_test_net.h"
#include "um_test_rcv.h"

#include <lbm/um.h>

#define GROUP_ONE "224.0.77.1"
#define GROUP_TWO "224.0.77.2"

static bool wait_for(bool (*met)(void *arg), void *arg)
{
    for (int i = 0; i < HANG_SECONDS * 100; i++) {
        if (met(arg)) {
            return true;
        }
        sleep_ms(10);
    }
    return false;
}

static lbm_context_t *fast_context(const char *option, const char *value)
{
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "um_profile", "low_latency"));
    MUST(lbm_context_attr_str_setopt(attr, "request_tcp_bind_request_port", "0"));
    if (option != NULL) {
        MUST(lbm_context_attr_str_setopt(attr, option, value));
    }
    return net_context_with(attr);
}

static lbm_src_t *udp_source_ending(lbm_context_t *ctx, const char *name, const char *transport, const char *group,
                                    const char *finals)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", transport));
    MUST(lbm_src_topic_attr_str_setopt(attr, "resolver_send_final_advertisements", finals));
    /* An idle source speaks more often than receivers wait for it. */
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_lbtrm_sm_maximum_interval", "400"));
    if (group != NULL) {
        MUST(lbm_src_topic_attr_str_setopt(attr, "transport_lbtrm_multicast_address", group));
    }
    MUST(lbm_src_topic_alloc(&topic, ctx, name, attr));
    MUST(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL));
    lbm_src_topic_attr_delete(attr);
    return src;
}

/* EOS by silence. */
static lbm_src_t *udp_source(lbm_context_t *ctx, const char *name, const char *transport, const char *group)
{
    return udp_source_ending(ctx, name, transport, group, "0");
}

static lbm_rcv_t *udp_receiver(lbm_context_t *ctx, const char *name, const char *options, lbm_rcv_cb_proc proc,
                               void *clientd, lbm_event_queue_t *evq)
{
    lbm_rcv_topic_attr_t *attr;
    char name_buf[128], value_buf[128];
    int used;
    MUST(lbm_rcv_topic_attr_create(&attr));
    while (options != NULL && sscanf(options, "%127s %127s %n", name_buf, value_buf, &used) == 2) {
        MUST(lbm_rcv_topic_attr_str_setopt(attr, name_buf, value_buf));
        options += used;
    }
    lbm_rcv_t *rcv = net_receiver(ctx, name, attr, proc, clientd, evq);
    lbm_rcv_topic_attr_delete(attr);
    return rcv;
}

/* Numbered messages: in order, each once, and what is reported as lost. */
struct order {
    pthread_mutex_t lock;
    long data, lost, bursts, bos, eos;
    unsigned next;
    bool wrong;
    lbm_timespec_t last_hr;
    bool hr_back;
};
#define ORDER_INIT                                                                                                     \
    {                                                                                                                  \
        .lock = PTHREAD_MUTEX_INITIALIZER                                                                              \
    }

static int order_cb(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct order *o = clientd;
    pthread_mutex_lock(&o->lock);
    switch (msg->type) {
    case LBM_MSG_DATA: {
        unsigned number;
        memcpy(&number, msg->data, sizeof number);
        o->wrong |= o->data + o->lost + o->bursts > 0 && number != o->next;
        o->next = number + 1;
        o->data++;
        o->hr_back |= msg->hr_timestamp.tv_sec < o->last_hr.tv_sec;
        o->last_hr = msg->hr_timestamp;
        break;
    }
    case LBM_MSG_UNRECOVERABLE_LOSS:
        o->wrong |= o->data > 0 && msg->sequence_number != o->next;
        o->next = msg->sequence_number + 1;
        o->lost++;
        break;
    case LBM_MSG_UNRECOVERABLE_LOSS_BURST:
        o->bursts++;
        o->wrong |= msg->sequence_number != o->next;
        o->next = 12; /* of the only test with a burst */
        break;
    case LBM_MSG_BOS:
        o->bos++;
        break;
    case LBM_MSG_EOS:
        o->eos++;
        break;
    }
    pthread_mutex_unlock(&o->lock);
    return 0;
}

struct count_wait {
    struct order *order;
    long data, eos;
};

static bool reached(void *arg)
{
    struct count_wait *w = arg;
    pthread_mutex_lock(&w->order->lock);
    bool ok = w->order->data + w->order->lost >= w->data && w->order->eos >= w->eos;
    pthread_mutex_unlock(&w->order->lock);
    return ok;
}

static bool order_wait(struct order *order, long data, long eos)
{
    struct count_wait w = {order, data, eos};
    return wait_for(reached, &w);
}

struct next_wait {
    struct order *order;
    unsigned next;
};

static bool reached_next(void *arg)
{
    struct next_wait *w = arg;
    pthread_mutex_lock(&w->order->lock);
    bool ok = w->order->data > 0 && w->order->next == w->next;
    pthread_mutex_unlock(&w->order->lock);
    return ok;
}

/* All before number `next` has come, number 0 or not: it may have been sent before the receiver had joined. */
static bool order_wait_next(struct order *order, unsigned next)
{
    struct next_wait w = {order, next};
    return wait_for(reached_next, &w);
}

static void send_numbers(lbm_src_t *src, unsigned first, unsigned count, size_t size)
{
    char message[4096] = {0};
    for (unsigned i = first; i < first + count; i++) {
        memcpy(message, &i, sizeof i);
        MUST(lbm_src_send(src, message, size, LBM_MSG_FLUSH | LBM_SRC_BLOCK));
    }
}

static void check_repair(const char *transport, void (*set_loss)(int))
{
    struct order order = ORDER_INIT;
    lbm_context_t *src_ctx = fast_context(NULL, NULL), *rcv_ctx = fast_context(NULL, NULL);
    lbm_rcv_t *rcv = udp_receiver(rcv_ctx, "repair", NULL, order_cb, &order, NULL);
    lbm_src_t *src = udp_source(src_ctx, "repair", transport, NULL);
    if (strcmp(transport, "lbtru") == 0) {
        CHECK_EQ(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000), 0);
    } else {
        send_numbers(src, 0, 1, 500);
    }
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    send_numbers(src, 1, 1, 500); /* what is lost before the first message is not missed */
    CHECK(order_wait_next(&order, 2));
    long already = order.data;
    set_loss(10);
    send_numbers(src, 2, 3000, 500);
    bool all = order_wait(&order, already + 2900, 0);
    set_loss(0);
    send_numbers(src, 3002, 1, 500); /* shows what is missing at the end */
    CHECK(all && order_wait(&order, already + 3001, 0));
    CHECK_EQ(order.lost + order.bursts, 0);
    CHECK(!order.wrong);
    CHECK_EQ(order.next, 3003);
    lbm_rcv_transport_stats_t stats;
    int num = 1;
    CHECK_EQ(lbm_rcv_retrieve_all_transport_stats(rcv, &num, &stats), 0);
    CHECK_EQ(num, 1);
    if (strcmp(transport, "lbtru") == 0) {
        CHECK(stats.transport.lbtru.naks_sent > 100 && stats.transport.lbtru.lost > 100);
        CHECK_EQ(stats.transport.lbtru.unrecovered_tmo + stats.transport.lbtru.unrecovered_txw, 0);
    } else {
        CHECK(stats.transport.lbtrm.naks_sent > 100 && stats.transport.lbtrm.lost > 100);
        CHECK_EQ(stats.transport.lbtrm.unrecovered_tmo + stats.transport.lbtrm.unrecovered_txw, 0);
    }
    um_context_stats_t counts;
    CHECK_EQ(um_context_stats(rcv_ctx, &counts), 0);
    CHECK(counts.udp_injected > 100);
    lbm_rcv_delete(rcv);
    lbm_src_delete(src);
    lbm_context_delete(rcv_ctx);
    lbm_context_delete(src_ctx);
}

/* It has come to the delivery of messages: what arrived behind it is held. */
static bool found_missing(void *arg)
{
    um_rcv_stats_t stats;
    MUST(um_rcv_stats(arg, NULL, &stats));
    return stats.missing == 1;
}

/* Number 1 is lost and not asked for, 2 is held behind it when the source goes away. */
static void end_behind_a_gap(const char *transport, void (*set_source_loss)(int), const char *finals,
                             const char *options)
{
    struct order order = ORDER_INIT;
    lbm_context_t *src_ctx = fast_context(NULL, NULL), *rcv_ctx = fast_context(NULL, NULL);
    lbm_src_t *src = udp_source_ending(src_ctx, "end", transport, NULL, finals);
    lbm_rcv_t *rcv = udp_receiver(rcv_ctx, "end", options, order_cb, &order, NULL);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    send_numbers(src, 0, 1, 100);
    CHECK(order_wait(&order, 1, 0));
    set_source_loss(100);
    send_numbers(src, 1, 1, 100);
    set_source_loss(0);
    send_numbers(src, 2, 1, 100);
    CHECK(wait_for(found_missing, rcv)); /* 2 arrives before the advertisement of the end */
    lbm_src_delete(src);
    CHECK(order_wait(&order, 0, 1));
    CHECK_EQ(order.data, 2);
    CHECK_EQ(order.lost, 1);
    CHECK_EQ(order.next, 3);
    CHECK(!order.wrong);
    lbm_rcv_delete(rcv);
    lbm_context_delete(rcv_ctx);
    lbm_context_delete(src_ctx);
}

#define RM_GAP "transport_lbtrm_send_naks 0 transport_lbtrm_activity_timeout 4000 "
#define RU_GAP "transport_lbtru_send_naks 0 transport_lbtru_activity_timeout 4000 "

TEST(f38_a_gap_is_told_and_what_lies_behind_it_delivered_when_an_lbtrm_session_falls_silent)
{
    TEST_NEEDS_NET();
    end_behind_a_gap("lbtrm", lbm_set_lbtrm_src_loss_rate, "0", RM_GAP "transport_lbtrm_nak_generation_interval 60000");
}

TEST(f38_a_gap_is_told_and_what_lies_behind_it_delivered_when_an_lbtru_session_falls_silent)
{
    TEST_NEEDS_NET();
    end_behind_a_gap("lbtru", lbm_set_lbtru_src_loss_rate, "0", RU_GAP "transport_lbtru_nak_generation_interval 60000");
}

TEST(f38_a_gap_is_told_and_what_lies_behind_it_delivered_when_an_lbtrm_source_is_withdrawn)
{
    TEST_NEEDS_NET();
    end_behind_a_gap("lbtrm", lbm_set_lbtrm_src_loss_rate, "1",
                     RM_GAP "transport_lbtrm_nak_generation_interval 500 delivery_control_loss_check_interval 0");
}

TEST(lbtrm_repairs_ten_percent_loss_in_order)
{
    TEST_NEEDS_NET();
    check_repair("lbtrm", lbm_set_lbtrm_loss_rate);
}

TEST(lbtru_repairs_ten_percent_loss_in_order)
{
    TEST_NEEDS_NET();
    check_repair("lbtru", lbm_set_lbtru_loss_rate);
}

/* ---- M3 ---- */

struct m3 {
    lbm_src_t *src[2];
    lbm_rcv_t *rcv[2][2]; /* context, source */
};

/* What the receivers say they have asked source `s` for, and what it says it was asked for. */
static bool naks_agree(void *arg)
{
    struct m3 *m = arg;
    for (int s = 0; s < 2; s++) {
        lbm_src_transport_stats_t at_source;
        lbm_ulong_t sent = 0;
        MUST(lbm_src_retrieve_transport_stats(m->src[s], &at_source));
        for (int r = 0; r < 2; r++) {
            lbm_rcv_transport_stats_t stats;
            int num = 1;
            MUST(lbm_rcv_retrieve_all_transport_stats(m->rcv[r][s], &num, &stats));
            sent += stats.transport.lbtrm.naks_sent;
        }
        if (sent == 0 || sent != at_source.transport.lbtrm.naks_rcved) {
            return false;
        }
    }
    return true;
}

TEST(m3_every_nak_of_two_receivers_reaches_its_source_when_all_share_host_group_and_port)
{
    TEST_NEEDS_NET();
    static const char *const names[2] = {"m3 first", "m3 second"};
    struct order orders[2][2];
    lbm_context_t *src_ctx[2], *rcv_ctx[2];
    struct m3 m;
    for (int r = 0; r < 2; r++) {
        rcv_ctx[r] = fast_context(NULL, NULL);
        for (int s = 0; s < 2; s++) {
            orders[r][s] = (struct order)ORDER_INIT;
            m.rcv[r][s] = udp_receiver(rcv_ctx[r], names[s], NULL, order_cb, &orders[r][s], NULL);
        }
    }
    for (int s = 0; s < 2; s++) {
        src_ctx[s] = fast_context(NULL, NULL);
        m.src[s] = udp_source(src_ctx[s], names[s], "lbtrm", GROUP_ONE);
        send_numbers(m.src[s], 0, 1, 100);
    }
    for (int r = 0; r < 2; r++) {
        for (int s = 0; s < 2; s++) {
            CHECK_EQ(um_rcv_wait_ready(m.rcv[r][s], 1, HANG_SECONDS * 1000), 0);
        }
    }
    for (int s = 0; s < 2; s++) { /* each has its first message */
        send_numbers(m.src[s], 1, 1, 100);
        for (int r = 0; r < 2; r++) {
            CHECK(order_wait(&orders[r][s], 1, 0));
        }
    }
    lbm_set_lbtrm_loss_rate(10);
    for (unsigned i = 2; i <= 1000; i++) {
        send_numbers(m.src[0], i, 1, 100);
        send_numbers(m.src[1], i, 1, 100);
    }
    sleep_ms(100);
    lbm_set_lbtrm_loss_rate(0);
    for (int s = 0; s < 2; s++) {
        send_numbers(m.src[s], 1001, 1, 100);
    }
    for (int r = 0; r < 2; r++) {
        for (int s = 0; s < 2; s++) {
            struct count_wait w = {&orders[r][s], 1001, 0};
            CHECK(wait_for(reached, &w));
            CHECK(!orders[r][s].wrong);
            CHECK_EQ(orders[r][s].lost + orders[r][s].bursts, 0);
        }
    }
    CHECK(wait_for(naks_agree, &m));
    for (int i = 0; i < 2; i++) {
        lbm_rcv_delete(m.rcv[i][0]);
        lbm_rcv_delete(m.rcv[i][1]);
        lbm_src_delete(m.src[i]);
        lbm_context_delete(rcv_ctx[i]);
        lbm_context_delete(src_ctx[i]);
    }
}

/* ---- M4 ---- */

TEST(m4_groups_that_share_a_port_do_not_meet)
{
    TEST_NEEDS_NET();
    static const char *const groups[2] = {GROUP_ONE, GROUP_TWO};
    static const char *const names[2] = {"m4 first", "m4 second"};
    struct order orders[2] = {ORDER_INIT, ORDER_INIT};
    lbm_context_t *src_ctx = fast_context(NULL, NULL), *rcv_ctx[2];
    lbm_rcv_t *rcv[2];
    lbm_src_t *src[2];
    for (int i = 0; i < 2; i++) {
        rcv_ctx[i] = fast_context(NULL, NULL);
        rcv[i] = udp_receiver(rcv_ctx[i], names[i], NULL, order_cb, &orders[i], NULL);
        src[i] = udp_source(src_ctx, names[i], "lbtrm", groups[i]);
        send_numbers(src[i], 0, 1, 100);
        CHECK_EQ(um_rcv_wait_ready(rcv[i], 1, HANG_SECONDS * 1000), 0);
    }
    for (unsigned i = 1; i <= 500; i++) {
        send_numbers(src[0], i, 1, 100);
        send_numbers(src[1], i, 1, 100);
    }
    for (int i = 0; i < 2; i++) {
        lbm_context_stats_t stats;
        CHECK(order_wait(&orders[i], 500, 0));
        CHECK_EQ(lbm_context_retrieve_stats(rcv_ctx[i], &stats), 0);
        CHECK_EQ(stats.lbtrm_unknown_msgs_rcved, 0);
    }
    for (int i = 0; i < 2; i++) {
        lbm_rcv_delete(rcv[i]);
        lbm_src_delete(src[i]);
        lbm_context_delete(rcv_ctx[i]);
    }
    lbm_context_delete(src_ctx);
}

/* ---- the beginning ---- */

/* More is lost than a burst: only a stream that waits for its beginning has all of it. */
static void check_beginning(const char *transport, void (*set_source_loss)(int))
{
    struct order order = ORDER_INIT;
    lbm_context_t *src_ctx = fast_context(NULL, NULL), *rcv_ctx = fast_context(NULL, NULL);
    lbm_rcv_t *rcv = udp_receiver(rcv_ctx, "first", NULL, order_cb, &order, NULL);
    lbm_src_t *src = udp_source(src_ctx, "first", transport, NULL);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    set_source_loss(100);
    send_numbers(src, 0, 1500, 100);
    set_source_loss(0);
    send_numbers(src, 1500, 10, 100);
    CHECK(order_wait(&order, 1510, 0));
    CHECK_EQ(order.data, 1510);
    CHECK_EQ(order.lost + order.bursts, 0);
    CHECK(!order.wrong);
    lbm_rcv_delete(rcv);
    lbm_src_delete(src);
    lbm_context_delete(rcv_ctx);
    lbm_context_delete(src_ctx);
}

TEST(l1_first_messages_over_lbtrm_that_are_repaired_come_first)
{
    TEST_NEEDS_NET();
    check_beginning("lbtrm", lbm_set_lbtrm_src_loss_rate);
}

TEST(l1_first_messages_over_lbtru_that_are_repaired_come_first)
{
    TEST_NEEDS_NET();
    check_beginning("lbtru", lbm_set_lbtru_src_loss_rate);
}

/* ---- losses that stay ---- */

TEST(what_cannot_be_repaired_is_reported_in_order_and_the_stream_goes_on)
{
    TEST_NEEDS_NET();
    struct order order = ORDER_INIT;
    lbm_context_t *src_ctx = fast_context(NULL, NULL), *rcv_ctx = fast_context(NULL, NULL);
    lbm_rcv_t *rcv =
        udp_receiver(rcv_ctx, "gone", "transport_lbtrm_nak_generation_interval 100 transport_lbtrm_send_naks 0",
                     order_cb, &order, NULL);
    lbm_src_t *src = udp_source(src_ctx, "gone", "lbtrm", NULL);
    send_numbers(src, 0, 1, 100);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    send_numbers(src, 1, 10, 100);
    CHECK(order_wait_next(&order, 11));
    long before = order.data;
    lbm_set_lbtrm_src_loss_rate(100);
    send_numbers(src, 11, 20, 100);
    lbm_set_lbtrm_src_loss_rate(0);
    send_numbers(src, 31, 5, 100);
    sleep_ms(300); /* longer than the generation interval */
    send_numbers(src, 36, 5, 100);
    CHECK(order_wait(&order, before + 30, 0));
    CHECK_EQ(order.lost, 20);
    CHECK_EQ(order.data, before + 10);
    CHECK(!order.wrong);
    lbm_rcv_transport_stats_t stats;
    int num = 1;
    CHECK_EQ(lbm_rcv_retrieve_all_transport_stats(rcv, &num, &stats), 0);
    CHECK_EQ(stats.transport.lbtrm.unrecovered_tmo, 20);
    CHECK_EQ(stats.transport.lbtrm.naks_sent, 0);
    lbm_rcv_delete(rcv);
    lbm_src_delete(src);
    lbm_context_delete(rcv_ctx);
    lbm_context_delete(src_ctx);
}

TEST(a_gap_of_the_burst_limit_is_one_event_at_once)
{
    TEST_NEEDS_NET();
    struct order order = ORDER_INIT;
    lbm_context_t *src_ctx = fast_context(NULL, NULL), *rcv_ctx = fast_context(NULL, NULL);
    lbm_rcv_t *rcv = udp_receiver(rcv_ctx, "burst", "delivery_control_maximum_burst_loss 10", order_cb, &order, NULL);
    lbm_src_t *src = udp_source(src_ctx, "burst", "lbtrm", NULL);
    send_numbers(src, 0, 1, 100);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    send_numbers(src, 1, 1, 100);
    CHECK(order_wait_next(&order, 2));
    long before = order.data;
    MUST(lbm_context_set_nak_cutoff(rcv_ctx, LBM_NAK_CUTOFF_FLAG_DISABLE_NAKS));
    lbm_set_lbtrm_src_loss_rate(100);
    send_numbers(src, 2, 10, 100);
    lbm_set_lbtrm_src_loss_rate(0);
    send_numbers(src, 12, 1, 100);
    CHECK(order_wait(&order, before + 1, 0));
    CHECK_EQ(order.bursts, 1);
    CHECK_EQ(order.next, 13);
    CHECK(!order.wrong);
    CHECK_EQ(order.lost, 0);
    lbm_rcv_delete(rcv);
    lbm_src_delete(src);
    lbm_context_delete(rcv_ctx);
    lbm_context_delete(src_ctx);
}

/* ---- sessions end and begin ---- */

TEST(a_restarted_lbtrm_source_is_a_new_session_after_eos_of_the_old_one)
{
    TEST_NEEDS_NET();
    struct order order = ORDER_INIT;
    lbm_context_t *rcv_ctx = fast_context(NULL, NULL);
    lbm_rcv_t *rcv = udp_receiver(rcv_ctx, "again", "transport_lbtrm_activity_timeout 2000", order_cb, &order, NULL);
    for (int round = 1; round <= 2; round++) {
        lbm_context_t *src_ctx = fast_context(NULL, NULL);
        lbm_src_t *src = udp_source(src_ctx, "again", "lbtrm", NULL);
        unsigned first = 100 * (unsigned)round;
        send_numbers(src, first, 1, 100);
        CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
        send_numbers(src, first + 1, 3, 100);
        CHECK(order_wait_next(&order, first + 4));
        lbm_src_delete(src);
        lbm_context_delete(src_ctx);
        CHECK(order_wait(&order, 0, round));
        CHECK_EQ(order.bos, round);
        CHECK(order.data >= 3 * round);
    }
    CHECK_EQ(order.lost + order.bursts, 0);
    lbm_rcv_delete(rcv);
    lbm_context_delete(rcv_ctx);
}

/* ---- what receivers may do with messages ---- */

#define RETAINED 200

struct retaining {
    lbm_msg_t *msgs[RETAINED];
    unsigned count;
};

static int retain_cb(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct retaining *r = clientd;
    if (msg->type == LBM_MSG_DATA && r->count < RETAINED) {
        MUST(lbm_msg_retain(msg));
        r->msgs[r->count++] = msg;
    }
    return 0;
}

TEST(retained_messages_stay_as_they_were_when_context_and_socket_are_gone)
{
    TEST_NEEDS_NET();
    static struct retaining r;
    lbm_context_t *src_ctx = fast_context(NULL, NULL), *rcv_ctx = fast_context(NULL, NULL);
    lbm_event_queue_t *evq;
    MUST(lbm_event_queue_create(&evq, NULL, NULL, NULL));
    lbm_rcv_t *rcv = udp_receiver(rcv_ctx, "kept", NULL, retain_cb, &r, evq);
    lbm_src_t *src = udp_source(src_ctx, "kept", "lbtrm", NULL);
    send_numbers(src, 0, 1, 1000);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    send_numbers(src, 1, RETAINED + 1, 1000);
    for (int i = 0; i < HANG_SECONDS * 100 && r.count < RETAINED; i++) {
        lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL);
        sleep_ms(r.count < RETAINED ? 1 : 0);
    }
    lbm_rcv_delete(rcv);
    lbm_src_delete(src);
    lbm_context_delete(rcv_ctx);
    lbm_context_delete(src_ctx);
    lbm_event_queue_delete(evq);
    CHECK_EQ(r.count, RETAINED);
    unsigned first, number;
    memcpy(&first, r.msgs[0]->data, sizeof first);
    for (unsigned i = 0; i < RETAINED; i++) {
        memcpy(&number, r.msgs[i]->data, sizeof number);
        CHECK_EQ(number, first + i);
        CHECK_EQ(r.msgs[i]->len, 1000);
        lbm_msg_delete(r.msgs[i]);
    }
}

TEST(time_stamps_come_with_messages_and_batches_when_the_option_is_on)
{
    TEST_NEEDS_NET();
    for (int on = 0; on < 2; on++) {
        struct order order = ORDER_INIT;
        lbm_context_t *src_ctx = fast_context(NULL, NULL);
        lbm_context_t *rcv_ctx = fast_context("transport_lbtrm_receiver_timestamp", on ? "1" : "0");
        um_collector_t *collector;
        MUST(um_collector_create(&collector, 0));
        lbm_rcv_t *rcv = udp_receiver(rcv_ctx, "stamps", NULL, order_cb, &order, NULL);
        lbm_rcv_t *gathering = udp_receiver(rcv_ctx, "stamps", NULL, um_collector_rcv_cb, collector, NULL);
        lbm_src_t *src = udp_source(src_ctx, "stamps", "lbtrm", NULL);
        send_numbers(src, 0, 1, 100);
        CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
        for (unsigned i = 1; i <= 500; i++) {
            send_numbers(src, i, 1, 100);
            if (i % 50 == 0) {
                sleep_ms(5);
            }
        }
        CHECK(order_wait_next(&order, 501));
        CHECK(!order.hr_back);
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        if (on) {
            CHECK((long)order.last_hr.tv_sec >= now.tv_sec - HANG_SECONDS && (long)order.last_hr.tv_sec <= now.tv_sec);
        } else {
            CHECK_EQ(order.last_hr.tv_sec + order.last_hr.tv_nsec, 0);
        }
        um_batch_t *batch = NULL;
        const um_record_t *last;
        do { /* the last message may still be on its way to this receiver */
            um_batch_release(batch);
            CHECK(um_collector_take(collector, 100000, HANG_SECONDS * 1000, &batch) > 0);
            last = &batch->records[batch->count - 1];
        } while (last->sequence_number < 500);
        CHECK_EQ(last->type, LBM_MSG_DATA);
        if (on) {
            CHECK_EQ(last->timestamp_ns, order.last_hr.tv_sec * 1000000000ll + order.last_hr.tv_nsec);
        } else {
            CHECK(last->timestamp_ns / 1000000000ll <= now.tv_sec);
        }
        um_batch_release(batch);
        lbm_rcv_delete(rcv);
        lbm_rcv_delete(gathering);
        um_collector_delete(collector);
        lbm_src_delete(src);
        lbm_context_delete(rcv_ctx);
        lbm_context_delete(src_ctx);
    }
}

TEST(nak_cutoff_stops_and_restores_repairs)
{
    TEST_NEEDS_NET();
    struct order order = ORDER_INIT;
    lbm_context_t *src_ctx = fast_context(NULL, NULL), *rcv_ctx = fast_context(NULL, NULL);
    lbm_rcv_t *rcv = udp_receiver(rcv_ctx, "cutoff", NULL, order_cb, &order, NULL);
    lbm_src_t *src = udp_source(src_ctx, "cutoff", "lbtrm", NULL);
    CHECK_EQ(lbm_context_set_nak_cutoff(rcv_ctx, 0), -1);
    CHECK_EQ(lbm_context_set_nak_cutoff(rcv_ctx, 3), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    send_numbers(src, 0, 1, 100);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    send_numbers(src, 1, 1, 100);
    CHECK(order_wait_next(&order, 2));
    long before = order.data;
    CHECK_EQ(lbm_context_set_nak_cutoff(rcv_ctx, LBM_NAK_CUTOFF_FLAG_DISABLE_NAKS), 0);
    lbm_set_lbtrm_src_loss_rate(100);
    send_numbers(src, 2, 5, 100);
    lbm_set_lbtrm_src_loss_rate(0);
    send_numbers(src, 7, 1, 100);
    sleep_ms(100);
    lbm_src_transport_stats_t stats;
    CHECK_EQ(lbm_src_retrieve_transport_stats(src, &stats), 0);
    CHECK_EQ(stats.transport.lbtrm.naks_rcved, 0);
    CHECK_EQ(order.data, before);
    CHECK_EQ(lbm_context_set_nak_cutoff(rcv_ctx, LBM_NAK_CUTOFF_FLAG_ENABLE_NAKS), 0);
    CHECK(order_wait(&order, before + 6, 0));
    CHECK(!order.wrong);
    lbm_rcv_delete(rcv);
    lbm_src_delete(src);
    lbm_context_delete(rcv_ctx);
    lbm_context_delete(src_ctx);
}

/* ---- waiting modes ---- */

TEST(busy_waiting_contexts_receive_over_both_transports)
{
    TEST_NEEDS_NET();
    static const char *const transports[] = {"lbtrm", "lbtru"};
    for (int t = 0; t < 2; t++) {
        struct order order = ORDER_INIT;
        lbm_context_t *src_ctx = fast_context(NULL, NULL);
        lbm_context_t *rcv_ctx = fast_context("file_descriptor_management_behavior", "busy_wait");
        lbm_rcv_t *rcv = udp_receiver(rcv_ctx, "spin", NULL, order_cb, &order, NULL);
        lbm_src_t *src = udp_source(src_ctx, "spin", transports[t], NULL);
        send_numbers(src, 0, 1, 100);
        CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
        send_numbers(src, 1, 1, 100);
        CHECK(order_wait_next(&order, 2));
        send_numbers(src, 2, 300, 100);
        CHECK(order_wait_next(&order, 302));
        CHECK_EQ(order.lost, 0);
        CHECK(!order.wrong);
        lbm_rcv_delete(rcv);
        lbm_src_delete(src);
        lbm_context_delete(rcv_ctx);
        lbm_context_delete(src_ctx);
    }
}

TEST(a_sequential_context_receives_and_repairs_while_it_processes_events)
{
    TEST_NEEDS_NET();
    struct order order = ORDER_INIT;
    lbm_context_t *src_ctx = fast_context(NULL, NULL);
    lbm_context_t *rcv_ctx = fast_context("operational_mode", "sequential");
    lbm_rcv_t *rcv = udp_receiver(rcv_ctx, "sequential", NULL, order_cb, &order, NULL);
    lbm_src_t *src = udp_source(src_ctx, "sequential", "lbtrm", NULL);
    for (unsigned i = 0; i < 1000; i++) { /* some before the receiver knows of the source */
        send_numbers(src, i, 1, 100);
        if (i == 300) {
            for (int n = 0; n < HANG_SECONDS * 100 && um_rcv_ready(rcv) < 1; n++) {
                lbm_context_process_events(rcv_ctx, 10);
                send_numbers(src, ++i, 1, 100);
            }
            lbm_set_lbtrm_loss_rate(5);
        }
        lbm_context_process_events(rcv_ctx, 0);
    }
    lbm_set_lbtrm_loss_rate(0);
    send_numbers(src, 100000, 1, 100);
    for (int n = 0; n < HANG_SECONDS * 100 && order.next != 100001; n++) {
        lbm_context_process_events(rcv_ctx, 10);
    }
    CHECK_EQ(order.next, 100001);
    CHECK_EQ(order.lost + order.bursts, 0);
    lbm_rcv_delete(rcv);
    lbm_src_delete(src);
    lbm_context_delete(rcv_ctx);
    lbm_context_delete(src_ctx);
}
