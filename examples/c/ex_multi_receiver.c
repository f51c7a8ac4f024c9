/* Receivers of many numbered topics; main() calls everything here. */
#include "ex_multi_receiver.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ex_options.h"

void ex_receivers_create_contexts(struct ex_receivers *all, unsigned long socket_buffer_mb)
{
    lbm_context_attr_t *attr;
    char bytes[32];
    snprintf(bytes, sizeof(bytes), "%lu", socket_buffer_mb * 1024 * 1024);
    EX_TRY(lbm_context_attr_create, &attr);
    EX_TRY(lbm_context_attr_str_setopt, attr, "transport_tcp_receiver_socket_buffer", bytes);
    for (int i = 0; i < all->context_count; i++) {
        EX_TRY(lbm_context_create, &all->contexts[i], attr, NULL, NULL);
        ex_monitor_context(all->contexts[i]);
    }
    EX_TRY(lbm_context_attr_delete, attr);
    printf("Using %d context(s)\n", all->context_count);
}

void ex_receivers_create(struct ex_receivers *all, struct ex_receive *receive)
{
    all->receivers = calloc(all->count, sizeof(*all->receivers));
    if (all->receivers == NULL) {
        fprintf(stderr, "no memory for %lu receivers\n", all->count);
        exit(1);
    }
    printf("Creating %d receivers\n", (int)all->count);
    for (unsigned long i = 0; i < all->count; i++) {
        char name[LBM_MSG_MAX_TOPIC_LEN];
        lbm_topic_t *topic;
        unsigned long where = i % (unsigned long)all->context_count;
        lbm_context_t *ctx = all->contexts[where];
        snprintf(name, sizeof(name), "%s.%lu", all->root, all->initial + i);
        EX_TRY(lbm_rcv_topic_lookup, &topic, ctx, name, NULL);
        EX_TRY(lbm_rcv_create, &all->receivers[i], ctx, topic, ex_on_message, receive,
               all->evq != NULL ? all->evq[where] : NULL);
        ex_monitor_receiver(all->receivers[i]);
        if ((i + 1) % 1000 == 0) {
            printf("Created %d receivers\n", (int)(i + 1));
        }
    }
    printf("Created %d receivers. Will start calculating aggregate throughput.\n", (int)all->count);
    fflush(stdout);
}

static unsigned long read_statistics(const struct ex_receivers *all)
{
    unsigned long lost = 0;
    for (int c = 0; c < all->context_count; c++) {
        int count = 0;
        lbm_rcv_transport_stats_t *stats = ex_all_stats(all->contexts[c], NULL, 64, &count);
        for (int i = 0; stats != NULL && i < count; i++) {
            lost += ex_lost_packets(&stats[i]);
            if (all->statistics) {
                printf("stats %u/%u (ctx %u):", (unsigned)i + 1, (unsigned)count, (unsigned)c);
                ex_print_receiver_stats_short(&stats[i]);
            }
        }
        free(stats);
    }
    return lost;
}

void ex_receivers_run(const struct ex_receivers *all, struct ex_receive *receive, const char *end_flag)
{
    double last = ex_now();
    unsigned long known_lost = 0;
    while (!receive->done) {
        ex_sleep_until(1.0, &receive->done);
        double now = ex_now();
        unsigned long lost = read_statistics(all);
        ex_print_interval(receive, now - last, "%-5.4g secs.  ", "loss bursts", lost - known_lost);
        known_lost = lost;
        last = now;
        if (end_flag != NULL && access(end_flag, F_OK) == 0) {
            printf("%s detected, cleaning up....\n", end_flag);
            return;
        }
    }
}

void ex_receivers_linger(int seconds, const char *format)
{
    if (seconds > 0) {
        printf(format, seconds);
        fflush(stdout);
        ex_sleep_ms((unsigned long)seconds * 1000);
    }
}

void ex_receivers_delete(struct ex_receivers *all)
{
    ex_monitor_stop();
    printf("Deleting receivers....\n");
    for (unsigned long i = 0; i < all->count; i++) {
        EX_TRY(lbm_rcv_delete, all->receivers[i]);
        if ((i + 1) % 1000 == 0) {
            printf("Deleted %d receivers\n", (int)(i + 1));
        }
    }
    free(all->receivers);
    for (int i = 0; i < all->context_count; i++) {
        EX_TRY(lbm_context_delete, all->contexts[i]);
    }
}
