/* Many numbered sources in one context; the statistics timer runs on the
 * context's thread, everything else in main(). */
#include "ex_multi.h"

#include <stdio.h>
#include <stdlib.h>

#include "ex_options.h"
#include "ex_print.h"

static int ex_on_statistics(lbm_context_t *ctx, const void *clientd)
{
    int count = 64;
    lbm_src_transport_stats_t *stats = calloc((size_t)count, sizeof(*stats));
    if (stats == NULL) {
        return 0;
    }
    if (lbm_context_retrieve_src_transport_stats(ctx, &count, stats) == LBM_FAILURE) {
        free(stats);
        stats = count > 64 ? calloc((size_t)count, sizeof(*stats)) : NULL;
        if (stats == NULL || lbm_context_retrieve_src_transport_stats(ctx, &count, stats) == LBM_FAILURE) {
            ex_fail("lbm_context_retrieve_src_transport_stats");
        }
    }
    for (int i = 0; i < count; i++) {
        printf("stats %u/%u: [%s] ", (unsigned)i + 1, (unsigned)count, stats[i].source);
        ex_print_source_stats(&stats[i]);
    }
    free(stats);
    return 0;
}

void ex_multi_create(struct ex_multi *multi, const lbm_context_attr_t *cattr, const lbm_src_topic_attr_t *sattr)
{
    EX_TRY(lbm_context_create, &multi->ctx, cattr, NULL, NULL);
    multi->sources = calloc(multi->count, sizeof(lbm_src_t *));
    if (multi->sources == NULL) {
        fprintf(stderr, "no memory for %lu sources\n", multi->count);
        exit(1);
    }
    ex_monitor_context(multi->ctx);
    printf("Creating %d sources\n", (int)multi->count);
    for (unsigned long i = 0; i < multi->count; i++) {
        char name[LBM_MSG_MAX_TOPIC_LEN];
        lbm_topic_t *topic;
        snprintf(name, sizeof(name), "%s.%lu", multi->root, multi->initial + i);
        EX_TRY(lbm_src_topic_alloc, &topic, multi->ctx, name, sattr);
        if (multi->failover) {
            EX_TRY(lbm_hf_src_create, &multi->sources[i], multi->ctx, topic, multi->on_event, NULL, NULL);
        } else {
            EX_TRY(lbm_src_create, &multi->sources[i], multi->ctx, topic, multi->on_event, NULL, NULL);
        }
        ex_monitor_source(multi->sources[i]);
        if (multi->verbose) {
            printf("Created source %d on topic: %s\n", (int)i, name);
        } else if ((i + 1) % 1000 == 0) {
            printf("Created %d sources\n", (int)(i + 1));
        }
    }
    multi->timer = -1;
    if (multi->statistics > 0) {
        multi->timer = lbm_schedule_timer_recurring(multi->ctx, ex_on_statistics, NULL, NULL, multi->statistics * 1000);
        if (multi->timer == LBM_FAILURE) {
            ex_fail("lbm_schedule_timer_recurring");
        }
    }
    fflush(stdout);
}

void ex_multi_delete_sources(struct ex_multi *multi)
{
    if (multi->timer != -1) {
        lbm_cancel_timer(multi->ctx, multi->timer, NULL);
    }
    ex_monitor_stop();
    printf("Deleting sources....\n");
    for (unsigned long i = 0; i < multi->count; i++) {
        EX_TRY(lbm_src_delete, multi->sources[i]);
        if ((i + 1) % 1000 == 0) {
            printf("Deleted %d sources\n", (int)(i + 1));
        }
    }
    if (multi->count % 1000 != 0) {
        printf("Deleted %d sources\n", (int)multi->count);
    }
    free(multi->sources);
    fflush(stdout);
}
