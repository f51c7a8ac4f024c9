/* Wildcard receiving: pattern type and message from the configuration, interval
 * lines, final count. Runs in main(); messages come on another thread. */
#include "ex_wildcard.h"

#include <stdio.h>

#include "ex_options.h"

static void ex_announce(const struct ex_wildcard *wildcard, lbm_wildcard_rcv_attr_t *attr)
{
    int type = 0;
    size_t length = sizeof(type);
    EX_TRY(lbm_wildcard_rcv_attr_getopt, attr, "pattern_type", &type, &length);
    if (type == LBM_WILDCARD_RCV_PATTERN_TYPE_APP_CB) {
        printf("Creating wildcard receiver for pattern [%s] - using callback\n", wildcard->pattern);
    } else {
        printf("Creating wildcard receiver for pattern [%s] - using %s\n", wildcard->pattern,
               type == LBM_WILDCARD_RCV_PATTERN_TYPE_REGEX ? "regex" : "PCRE");
    }
    fflush(stdout);
}

void ex_run_wildcard(const struct ex_wildcard *wildcard, struct ex_receive *receive)
{
    lbm_context_t *ctx;
    lbm_wildcard_rcv_attr_t *attr;
    lbm_wildcard_rcv_t *wrcv;
    EX_TRY(lbm_context_create, &ctx, NULL, NULL, NULL);
    ex_monitor_context(ctx);
    EX_TRY(lbm_wildcard_rcv_attr_create, &attr);
    ex_announce(wildcard, attr);
    EX_TRY(lbm_wildcard_rcv_create, &wrcv, ctx, wildcard->pattern, NULL, attr, ex_on_message, receive, wildcard->evq);
    EX_TRY(lbm_wildcard_rcv_attr_delete, attr);
    if (wildcard->channel >= 0) {
        EX_TRY(lbm_wildcard_rcv_subscribe_channel, wrcv, (lbm_uint32_t)wildcard->channel, NULL, NULL);
    }
    ex_run_intervals(&(struct ex_interval){.ctx = ctx,
                                           .stats_every = wildcard->statistics ? 1 : 0,
                                           .max_sources = 64,
                                           .first_format = "%-5.4g secs.  ",
                                           .burst_label = wildcard->burst_label},
                     receive);
    printf("Quitting.... received %u messages", (unsigned)receive->total_messages);
    if (receive->total_unrecovered > 0 || receive->total_bursts > 0) {
        printf(", %u msgs unrecovered, %u loss bursts", (unsigned)receive->total_unrecovered,
               (unsigned)receive->total_bursts);
    }
    putchar('\n');
    fflush(stdout);
    ex_monitor_stop();
    EX_TRY(lbm_wildcard_rcv_delete, wrcv);
    EX_TRY(lbm_context_delete, ctx);
}
