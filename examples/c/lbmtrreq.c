/* lbmtrreq: asks all contexts of the topic resolution domain to advertise or
 * query again. Everything happens in main(). */
#include <lbm/lbm.h>
#include <stdio.h>

#include "ex_options.h"

static struct {
    int adverts, queries, wildcard, context_adverts, context_queries, interest, linger, duration, interval;
} opt = {.linger = -1, .duration = -1, .interval = -1};

static const struct ex_option options[] = {
    {'c', "config", EX_CONFIG, NULL, "FILE", "load a configuration file; may be repeated"},
    {'h', "help", EX_HELP, NULL, NULL, "show this text"},
    {'i', "interval", EX_INT, &opt.interval, "MS", "time between requests (1000)"},
    {'d', "duration", EX_INT, &opt.duration, "SEC", "keep asking for so long (10)"},
    {'a', "adverts", EX_FLAG, &opt.adverts, NULL, "ask for advertisements"},
    {'q', "queries", EX_FLAG, &opt.queries, NULL, "ask for queries"},
    {'w', "wildcard", EX_FLAG, &opt.wildcard, NULL, "ask for wildcard queries"},
    {'A', "ctx-ads", EX_FLAG, &opt.context_adverts, NULL, "ask for context advertisements"},
    {'Q', "ctx-queries", EX_FLAG, &opt.context_queries, NULL, "ask for context queries"},
    {'I', "gw-interest", EX_FLAG, &opt.interest, NULL, "ask gateways for their interest"},
    {'L', "linger", EX_INT, &opt.linger, "SEC", "wait before the context is deleted (10)"},
    EX_END,
};

static const struct ex_program program = {"Asks for topic resolution traffic.", "", 0, options};

static void apply_defaults(void)
{
    if (opt.interval < 0) {
        opt.interval = 1000;
        printf("No interval given. Using 1000 milliseconds.\n");
    }
    if (opt.duration < 0) {
        opt.duration = 10;
        printf("No duration given. Using 10 seconds.\n");
    }
    if (opt.linger < 0) {
        opt.linger = 10;
        printf("No linger given. Using 10 seconds.\n");
    }
    if (opt.linger < opt.duration) {
        printf("Linger is less than duration. Context will be deleted before duration expires.\n");
    }
}

int main(int argc, char **argv)
{
    ex_parse(argc, argv, &program);
    lbm_context_t *ctx;
    apply_defaults();
    int flags = (opt.adverts ? LBM_TOPIC_RES_REQUEST_ADVERTISEMENT : 0) |
                (opt.queries ? LBM_TOPIC_RES_REQUEST_QUERY : 0) |
                (opt.wildcard ? LBM_TOPIC_RES_REQUEST_WILDCARD_QUERY : 0) |
                (opt.context_adverts ? LBM_TOPIC_RES_REQUEST_CONTEXT_ADVERTISEMENT : 0) |
                (opt.context_queries ? LBM_TOPIC_RES_REQUEST_CONTEXT_QUERY : 0) |
                (opt.interest ? LBM_TOPIC_RES_REQUEST_GW_REMOTE_INTEREST : 0);
    EX_TRY(lbm_context_create, &ctx, NULL, NULL, NULL);
    EX_TRY(lbm_context_topic_resolution_request, ctx, (lbm_ushort_t)flags, (lbm_ulong_t)opt.interval,
           (lbm_ulong_t)opt.duration);
    printf("Lingering for %lu seconds...\n", (unsigned long)opt.linger);
    fflush(stdout);
    ex_sleep_ms((unsigned long)opt.linger * 1000);
    printf("Deleting context\n");
    EX_TRY(lbm_context_delete, ctx);
    return 0;
}
