/* A reader of records that has stopped: who sends them is not held up; what the reader does not take is dropped. */
#include <lbm/lbmmon.h>
#include <lbm/um.h>

#include "um_test.h"
#include "um_test_net.h"
#include "um_test_mon.h"

#include "base/um_clock.h"

static atomic_int heard;

static int on_packet(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    heard += msg->type == LBM_MSG_DATA;
    return 0;
}

/* A context that nobody runs any more once it has joined: its connection fills up. */
static lbm_context_t *sequential_context(void)
{
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "operational_mode", "sequential"));
    return net_context_with(attr);
}

static lbm_rcv_t *reader(lbm_context_t *ctx)
{
    lbm_topic_t *topic;
    lbm_rcv_t *rcv;
    MUST(lbm_rcv_topic_lookup(&topic, ctx, "/29west/statistics", NULL));
    MUST(lbm_rcv_create(&rcv, ctx, topic, on_packet, NULL, NULL));
    return rcv;
}

/* 40 MB of packets past a reader that takes none of them: each send returns, in time or refused. */
TEST(a_reader_that_has_stopped_costs_packets_and_not_time)
{
    TEST_NEEDS_NET();
    enum { PACKETS = 40000, SIZE = 1000 };
    static char packet[SIZE];
    void *end;
    int refused = 0;
    lbm_context_t *stopped = sequential_context();
    CHECK_EQ(lbmmon_transport_lbm_initsrc(&end, MON_NET), 0);
    lbm_rcv_t *rcv = reader(stopped);
    for (int i = 0; i < HANG_SECONDS * 100 && heard == 0; i++) {
        CHECK_EQ(lbmmon_transport_lbm_send(packet, SIZE, end), 0);
        MUST(lbm_context_process_events(stopped, 10));
    }
    CHECK(heard > 0);
    int before = heard;
    uint64_t begin_ns = um_clock_ns();
    for (int i = 0; i < PACKETS; i++) {
        refused += lbmmon_transport_lbm_send(packet, SIZE, end) != 0;
    }
    CHECK(um_clock_ns() - begin_ns < 600 * UINT64_C(1000000000)); /* a quarter of a second for each: 3 hours */
    for (int i = 0; i < 200; i++) {
        MUST(lbm_context_process_events(stopped, 1)); /* it takes what was left for it */
    }
    CHECK(heard - before < PACKETS - refused ||
          refused > 0); /* not all of it: that would have been held up somewhere */
    CHECK_EQ(lbmmon_transport_lbm_src_finish(end), 0);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_context_delete(stopped));
}
