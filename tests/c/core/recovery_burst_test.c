/* Off-transport recovery of a burst, through the public interface: LBT-RM without NAKs loses more numbers in a row than
 * delivery_control_maximum_burst_loss, and the receiver has them all the same, in order. */
#include "um_test.h"
#include "um_test_net.h"
#include "um_test_rcv.h"

enum { MAXIMUM = 16, LOST = 300, BEHIND = 20 };

struct seen {
    pthread_mutex_t lock;
    uint32_t first, next;
    unsigned count, recovered, wrong, lost;
};

static int seen_cb(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct seen *seen = clientd;
    pthread_mutex_lock(&seen->lock);
    if (msg->type == LBM_MSG_DATA) {
        seen->wrong += seen->count != 0 && msg->sequence_number != seen->next;
        seen->first = seen->count == 0 ? msg->sequence_number : seen->first;
        seen->next = msg->sequence_number + 1;
        seen->count++;
        seen->recovered += (msg->flags & LBM_MSG_FLAG_OTR) != 0;
    }
    seen->lost += msg->type == LBM_MSG_UNRECOVERABLE_LOSS || msg->type == LBM_MSG_UNRECOVERABLE_LOSS_BURST;
    pthread_mutex_unlock(&seen->lock);
    return 0;
}

static struct seen look(struct seen *seen)
{
    pthread_mutex_lock(&seen->lock);
    struct seen copy = *seen;
    pthread_mutex_unlock(&seen->lock);
    return copy;
}

/* Until number `next - 1` is here, or a loss. */
static bool wait_for(struct seen *seen, uint32_t next)
{
    for (int i = 0; i < HANG_SECONDS * 100; i++) {
        struct seen now = look(seen);
        if (now.lost != 0 || (now.count != 0 && (int32_t)(now.next - next) >= 0)) {
            return now.lost == 0;
        }
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    return false;
}

static lbm_src_t *source(lbm_context_t *ctx)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", "lbt-rm"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "late_join", "1"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "retransmit_retention_size_threshold", "10000000"));
    MUST(lbm_src_topic_alloc(&topic, ctx, "burst", attr));
    MUST(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL));
    lbm_src_topic_attr_delete(attr);
    return src;
}

static lbm_rcv_t *receiver(lbm_context_t *ctx, struct seen *seen)
{
    lbm_rcv_topic_attr_t *attr;
    MUST(lbm_rcv_topic_attr_create(&attr));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "use_otr", "1"));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "use_late_join", "0"));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "otr_request_initial_delay", "50"));
    int maximum = MAXIMUM;
    MUST(lbm_rcv_topic_attr_setopt(attr, "delivery_control_maximum_burst_loss", &maximum, sizeof maximum));
    lbm_rcv_t *rcv = net_receiver(ctx, "burst", attr, seen_cb, seen, NULL);
    lbm_rcv_topic_attr_delete(attr);
    return rcv;
}

TEST(with_naks_off_a_burst_beyond_its_maximum_is_recovered)
{
    TEST_NEEDS_NET();
    struct seen seen = {.lock = PTHREAD_MUTEX_INITIALIZER};
    lbm_context_t *sender = net_context(), *ctx = net_context();
    MUST(lbm_context_set_nak_cutoff(ctx, LBM_NAK_CUTOFF_FLAG_DISABLE_NAKS));
    lbm_src_t *src = source(sender);
    lbm_rcv_t *rcv = receiver(ctx, &seen);
    uint32_t sent = 0;
    for (int i = 0; i < HANG_SECONDS * 100 && look(&seen).count == 0; i++, sent++) {
        net_send(src, "before");
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    CHECK(wait_for(&seen, sent)); /* whatever was lost so far was not lost on purpose */
    lbm_set_lbtrm_src_loss_rate(100);
    for (int i = 0; i < LOST; i++) {
        net_send(src, "lost");
    }
    lbm_set_lbtrm_src_loss_rate(0);
    for (int i = 0; i < BEHIND; i++) {
        net_send(src, "behind");
    }
    CHECK(wait_for(&seen, sent + LOST + BEHIND));
    struct seen now = look(&seen);
    CHECK_EQ(now.lost, 0);
    CHECK_EQ(now.wrong, 0);
    CHECK_EQ(now.count, sent + LOST + BEHIND - now.first);
    CHECK(now.recovered >= LOST);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
}
