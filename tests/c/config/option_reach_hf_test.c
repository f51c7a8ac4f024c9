/* Options of hot failover reach what they rule (F25). See um_test_options.h. */
#include "um_test.h"
#include "um_test_net.h"
#include "um_test_rcv.h"

#include "core/um_hfx.h"
#include "um_test_options.h"

static void hf_receiver(struct world *w)
{
    lbm_topic_t *topic;
    lbm_hf_rcv_t *hf;
    lbm_context_t *ctx = net_context();
    MUST(lbm_rcv_topic_lookup(&topic, ctx, "hot", w->receiver));
    MUST(lbm_hf_rcv_create(&hf, ctx, topic, recorder_cb, &(struct recorder)RECORDER_INIT, NULL));
    MUST(lbm_hf_rcv_delete(hf));
    MUST(lbm_context_delete(ctx));
}

REACHES(receiver, hf_duplicate_delivery, "1", hf_receiver, seen.hf.duplicates, true);
REACHES(receiver, hf_optional_messages, "0", hf_receiver, seen.hf.optional, false);

static uint64_t hfx_check_ns;

static void hfx(struct world *w)
{
    lbm_hfx_t *made;
    MUST(lbm_hfx_create(&made, w->hfx, "hot", recorder_cb, NULL));
    hfx_check_ns = made->check_ns;
    MUST(lbm_hfx_delete(made));
}

REACHES(hfx, ordered_delivery, "-1", hfx, seen.hf.ordered, false);
REACHES(hfx, duplicate_delivery, "1", hfx, seen.hf.duplicates, true);
REACHES(hfx, delivery_control_max_delay, "7", hfx, seen.hf.gap_timeout_ns, 7000000);
REACHES(hfx, delivery_control_loss_check_interval, "5", hfx, hfx_check_ns, 5000000);
REACHES(hfx, delivery_control_maximum_burst_loss, "9", hfx, seen.hf.maximum_burst_loss, 9);
REACHES(hfx, delivery_control_maximum_total_map_entries, "11", hfx, seen.hf.entries_max, 11);

static void matching_receiver(struct world *w)
{
    lbm_wildcard_rcv_t *wrcv;
    struct recorder r = RECORDER_INIT;
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = net_source(ctx, "wild");
    MUST(lbm_wildcard_rcv_create(&wrcv, ctx, "^wild", NULL, w->wildcard_receiver, recorder_cb, &r, NULL));
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 1));
    MUST(lbm_wildcard_rcv_delete(wrcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

REACHES(wildcard_receiver, hf_receiver, "1", matching_receiver, seen.merges_made, 1);
