/* Hot-failover receiving: interval lines until done, summary. Runs in main();
 * messages come on another thread. */
#include "ex_failover.h"

#include <stdio.h>

#include "ex_options.h"

void ex_run_failover(const struct ex_failover *failover, struct ex_receive *receive)
{
    lbm_context_t *ctx;
    lbm_topic_t *topic;
    lbm_hf_rcv_t *rcv;
    EX_TRY(lbm_context_create, &ctx, NULL, NULL, NULL);
    EX_TRY(lbm_rcv_topic_lookup, &topic, ctx, failover->topic, NULL);
    EX_TRY(lbm_hf_rcv_create, &rcv, ctx, topic, ex_on_message, receive, failover->evq);
    ex_run_intervals(&(struct ex_interval){.ctx = ctx,
                                           .stats_every = failover->statistics ? 1 : 0,
                                           .max_sources = 64,
                                           .first_format = "%-5.4g secs.  ",
                                           .burst_label = "bursts"},
                     receive);
    if (failover->summary) {
        ex_print_summary(receive->last - receive->first, receive->total_messages, receive->total_bytes);
    }
    EX_TRY(lbm_hf_rcv_delete, rcv);
    EX_TRY(lbm_context_delete, ctx);
}
