/* Options of hot failover reach what they rule (F25). See um_test_options.h. */
#include "um_test.h"
#include "um_test_net.h"
#include "um_test_rcv.h"

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
