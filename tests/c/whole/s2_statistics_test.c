/* Requirement S2: sent, delivered, lost, late and discarded can be read per source and receiver, and add up. */
#include <lbm/lbm.h>
#include <lbm/um.h>

#include "base/um_buf.h"
#include "delivery/um_dc.h"
#include "um_test.h"
#include "um_test_net.h"
#include "um_test_rcv.h"

#define MESSAGES 500

TEST(s2_sent_equals_delivered_when_nothing_is_lost)
{
    TEST_NEEDS_NET();
    struct recorder r = RECORDER_INIT;
    lbm_context_t *ctx = net_context(), *other = net_context();
    lbm_rcv_t *rcv = net_recording_receiver(other, "s2", &r);
    lbm_src_t *src = net_source(ctx, "s2");
    CHECK_EQ(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000), 0);
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 1));
    char payload[20000] = {0};
    for (int i = 0; i < MESSAGES; i++) {
        MUST(lbm_src_send(src, payload, i % 100 == 0 ? sizeof payload : 7, 0)); /* some of them in fragments */
    }
    MUST(lbm_src_flush(src));
    CHECK(recorder_wait(&r, LBM_MSG_DATA, MESSAGES));

    um_src_stats_t sent;
    um_rcv_stats_t got, of_source;
    CHECK_EQ(um_src_stats(src, &sent), 0);
    CHECK_EQ(sent.messages_sent, MESSAGES);
    CHECK_EQ(sent.bytes_sent, r.bytes);
    CHECK_EQ(sent.receivers, 1);
    CHECK_EQ(sent.session_dropped + sent.session_unsent_bytes + sent.session_unheard_bytes, 0);
    CHECK_EQ(um_rcv_stats(rcv, NULL, &got), 0);
    CHECK_EQ(got.delivered, MESSAGES);
    CHECK_EQ(got.sources, 1);
    CHECK_EQ(got.missing + got.lost + got.discarded + got.session_malformed, 0);
    CHECK_EQ(um_rcv_stats(rcv, r.source, &of_source), 0);
    CHECK_EQ(of_source.delivered, MESSAGES);
    CHECK_EQ(um_rcv_stats(rcv, "TCP:1.2.3.4:5:00000006[7]", &of_source), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);

    lbm_src_delete(src);
    CHECK(recorder_wait(&r, LBM_MSG_EOS, 1));
    CHECK_EQ(um_rcv_stats(rcv, NULL, &got), 0); /* the counts outlive the source */
    CHECK_EQ(got.delivered, MESSAGES);
    CHECK_EQ(got.sources, 0);
    lbm_rcv_delete(rcv);
    lbm_context_delete(other);
    lbm_context_delete(ctx);
}

TEST(s2_a_receiver_counts_from_its_own_creation)
{
    TEST_NEEDS_NET();
    struct recorder first = RECORDER_INIT, second = RECORDER_INIT;
    lbm_context_t *ctx = net_context(), *other = net_context();
    lbm_rcv_t *early = net_recording_receiver(other, "s2", &first);
    lbm_src_t *src = net_source(ctx, "s2");
    CHECK_EQ(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000), 0);
    net_send(src, "1");
    net_send(src, "2");
    CHECK(recorder_wait(&first, LBM_MSG_DATA, 2));
    lbm_rcv_t *late = net_recording_receiver(other, "s2", &second);
    CHECK(recorder_wait(&second, LBM_MSG_BOS, 1));
    net_send(src, "3");
    CHECK(recorder_wait(&second, LBM_MSG_DATA, 1));
    um_rcv_stats_t stats;
    CHECK_EQ(um_rcv_stats(early, NULL, &stats), 0);
    CHECK_EQ(stats.delivered, 3);
    CHECK_EQ(um_rcv_stats(late, NULL, &stats), 0);
    CHECK_EQ(stats.delivered, 1);
    lbm_rcv_delete(late);
    lbm_rcv_delete(early);
    lbm_src_delete(src);
    lbm_context_delete(other);
    lbm_context_delete(ctx);
}

TEST(s2_a_wildcard_receiver_adds_up_its_topics)
{
    TEST_NEEDS_NET();
    struct recorder r = RECORDER_INIT;
    lbm_context_t *ctx = net_context(), *other = net_context();
    lbm_src_t *a = net_source(ctx, "s2.a"), *b = net_source(ctx, "s2.b");
    lbm_wildcard_rcv_t *wrcv;
    MUST(lbm_wildcard_rcv_create(&wrcv, other, "^s2\\.", NULL, NULL, recorder_cb, &r, NULL));
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 2));
    net_send(a, "1");
    net_send(b, "2");
    net_send(b, "3");
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 3));
    um_rcv_stats_t stats;
    CHECK_EQ(um_wildcard_rcv_stats(wrcv, &stats), 0);
    CHECK_EQ(stats.delivered, 3);
    CHECK_EQ(stats.sources, 2);
    lbm_wildcard_rcv_delete(wrcv);
    lbm_src_delete(a);
    lbm_src_delete(b);
    lbm_context_delete(other);
    lbm_context_delete(ctx);
}

TEST(s2_what_nobody_hears_is_counted_by_the_source)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = net_source(ctx, "s2");
    net_send(src, "into the void");
    um_src_stats_t stats;
    CHECK_EQ(um_src_stats(src, &stats), 0);
    CHECK_EQ(stats.messages_sent, 1);
    CHECK_EQ(stats.bytes_sent, 13);
    CHECK_EQ(stats.receivers, 0);
    CHECK(stats.session_unheard_bytes >= 13);
    lbm_src_delete(src);
    lbm_context_delete(ctx);
}

/* Lost, late, repeated and headless arrivals cannot be made to happen over a healthy TCP connection, so they are fed to
 * the delivery controller that the receiver's counts come from. */

static char events[256];

static void on_deliver(void *user, const struct um_dc_delivery *d, uint64_t now_ns)
{
    snprintf(events + strlen(events), sizeof events - strlen(events), "d%u ", d->sqn);
}

static void on_loss(void *user, uint32_t sqn, uint64_t now_ns)
{
    snprintf(events + strlen(events), sizeof events - strlen(events), "L%u ", sqn);
}

static void on_burst(void *user, uint32_t first_sqn, uint32_t count, uint64_t now_ns)
{
    snprintf(events + strlen(events), sizeof events - strlen(events), "B%u+%u ", first_sqn, count);
}

static void on_set_timer(void *user, uint64_t due_ns)
{
}

static void on_discarded(void *user, enum um_dc_discard why, uint32_t sqn, uint64_t now_ns)
{
    snprintf(events + strlen(events), sizeof events - strlen(events), "x%u:%d ", sqn, (int)why);
}

static void arrive(struct um_dc *dc, uint64_t now_ns, uint32_t sqn, uint32_t frag_offset)
{
    static const uint8_t bytes[4];
    struct um_lbmc_msg msg = {.sqn = sqn, .payload = {.ptr = bytes, .len = sizeof bytes}};
    if (frag_offset != 0) {
        msg.present = UM_LBMC_HAS_FRAG;
        msg.frag.first_sqn = sqn - frag_offset / 4;
        msg.frag.offset = frag_offset;
        msg.frag.len = frag_offset + 8;
    }
    struct um_buf *buf = um_buf_alloc(16);
    um_dc_on_data(dc, now_ns, &msg, buf);
    um_buf_unref(buf);
}

TEST(s2_late_duplicate_lost_and_headless_arrivals_are_told_apart)
{
    static const struct um_dc_ops ops = {.deliver = on_deliver,
                                         .loss = on_loss,
                                         .burst_loss = on_burst,
                                         .set_timer = on_set_timer,
                                         .discarded = on_discarded};
    struct um_dc_config config = {
        .ordered_delivery = 1, .maximum_burst_loss = 100, .gap_timeout_ns = 10, .reassembly_size_max = 1000};
    struct um_dc *dc = um_dc_create(&config, &ops, NULL);
    CHECK(dc != NULL);
    events[0] = '\0';
    arrive(dc, 0, 1, 0);
    arrive(dc, 0, 4, 0);   /* 2 and 3 are missing */
    arrive(dc, 100, 5, 0); /* they are given up */
    arrive(dc, 100, 3, 0); /* late */
    arrive(dc, 100, 4, 0); /* again */
    arrive(dc, 100, 6, 8); /* the third fragment of something that began with 4: no */
    struct um_dc_stats stats = um_dc_stats(dc);
    CHECK_STR(events, "d1 L2 L3 d4 d5 x3:1 x4:0 x6:3 ");
    CHECK_EQ(stats.delivered, 3);
    CHECK_EQ(stats.missing, 2);
    CHECK_EQ(stats.lost, 2);
    CHECK_EQ(stats.discards[UM_DC_LATE], 1);
    CHECK_EQ(stats.discards[UM_DC_DUPLICATE], 1);
    CHECK_EQ(stats.discards[UM_DC_HEADLESS], 1);
    arrive(dc, 200, 9, 0); /* held behind 7 and 8 when the receivers go away */
    um_dc_finish(dc, 200);
    stats = um_dc_stats(dc);
    CHECK_EQ(stats.discards[UM_DC_UNFINISHED], 1);
    um_dc_destroy(dc);
}
