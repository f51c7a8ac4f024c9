/* lbmreq: sends requests on a topic and counts the responses to each. main() sends and
 * deletes; responses come on the context's thread, or with -q to main(), which then
 * serves an event queue until a timer stops it. */
#include <lbm/lbm.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ex_options.h"
#include "ex_print.h"

static struct {
    unsigned long delay, length, linger, pause, requests;
    const char *port;
    struct ex_rate rate;
    int verbose, queue;
} opt = {.delay = 1, .length = 25, .linger = 5, .pause = 5, .requests = 10000000, .port = "14392"};

static const struct ex_option options[] = {
    {'c', NULL, EX_CONFIG, NULL, "FILE", "load a configuration file; may be repeated"},
    {'d', NULL, EX_UNSIGNED, &opt.delay, "SEC", "wait before the first request (1)"},
    {'h', NULL, EX_HELP, NULL, NULL, "show this text"},
    {'l', NULL, EX_UNSIGNED, &opt.length, "BYTES", "length of requests (25)"},
    {'L', NULL, EX_UNSIGNED, &opt.linger, "SEC", "wait before everything is deleted (5)"},
    {'P', NULL, EX_UNSIGNED, &opt.pause, "SEC", "wait for responses to each request (5)"},
    {'p', NULL, EX_TEXT, &opt.port, "PORT", "TCP port for responses (14392); 0: the first free one of the range"},
    {'r', NULL, EX_RATE, &opt.rate, "[U|M]DATA/RETR", "LBT-RU or LBT-RM with these rate limits"},
    {'R', NULL, EX_UNSIGNED, &opt.requests, "NUM", "send NUM requests (10000000)"},
    {'v', NULL, EX_COUNTER, &opt.verbose, NULL, "print responses; twice: with their bytes"},
    {'q', NULL, EX_FLAG, &opt.queue, NULL, "use an event queue"},
    EX_END,
};

static const struct ex_program program = {"Sends requests on a topic and counts the responses.", "topic", 1, options};

static struct ex_responses responses;

static int on_pause_over(lbm_context_t *ctx, const void *clientd)
{
    (void)ctx;
    printf("Timer fired, unblocking queue\n");
    lbm_event_dispatch_unblock((lbm_event_queue_t *)clientd);
    return 0;
}

static const char *plural(unsigned long n)
{
    return n == 1 ? "" : "s";
}

/* Returns when the pause is over. */
static void wait_for_responses(lbm_context_t *ctx, lbm_event_queue_t *evq)
{
    if (evq == NULL) {
        fprintf(stderr, "Pausing %lu seconds.\n", opt.pause);
        ex_sleep_ms(opt.pause * 1000);
        return;
    }
    fprintf(stderr, "Starting event pump for %lu seconds.\n", opt.pause);
    EX_TRY(lbm_schedule_timer, ctx, on_pause_over, evq, NULL, opt.pause * 1000);
    EX_TRY(lbm_event_dispatch, evq, LBM_EVENT_QUEUE_BLOCK);
}

static void request_once(lbm_context_t *ctx, lbm_src_t *src, lbm_event_queue_t *evq, unsigned number, char *message)
{
    lbm_request_t *req;
    atomic_store(&responses.count, 0);
    atomic_store(&responses.bytes, 0);
    snprintf(message, opt.length + 1, "request data %u", number);
    printf("Sending request %u\n", number);
    EX_TRY(lbm_send_request, &req, src, message, opt.length, ex_on_response, &responses, evq,
           LBM_MSG_FLUSH | LBM_SRC_BLOCK);
    printf("Sent request %u.  \n", number);
    fflush(stdout);
    wait_for_responses(ctx, evq);
    int count = atomic_load(&responses.count);
    printf("Done waiting for responses. %d response%s (%lu total bytes) received. Deleting request.\n\n", count,
           plural((unsigned long)count), atomic_load(&responses.bytes));
    fflush(stdout);
    EX_TRY(lbm_request_delete, req);
}

static lbm_src_t *create_source(lbm_context_t *ctx, lbm_src_topic_attr_t *sattr, const char *name)
{
    lbm_topic_t *topic;
    lbm_src_t *src;
    EX_TRY(lbm_src_topic_alloc, &topic, ctx, name, sattr);
    EX_TRY(lbm_src_create, &src, ctx, topic, ex_on_source_event, NULL, NULL);
    return src;
}

int main(int argc, char **argv)
{
    int first = ex_parse(argc, argv, &program);
    lbm_context_attr_t *cattr;
    lbm_src_topic_attr_t *sattr;
    lbm_context_t *ctx;
    lbm_event_queue_t *evq = NULL;
    char *message = calloc(1, opt.length + 1);
    if (message == NULL) {
        fprintf(stderr, "out of memory\n");
        return 1;
    }
    responses.verbose = opt.verbose;
    EX_TRY(lbm_context_attr_create, &cattr);
    EX_TRY(lbm_src_topic_attr_create, &sattr);
    EX_TRY(lbm_context_attr_str_setopt, cattr, "request_tcp_port", opt.port);
    ex_apply_rate(&opt.rate, cattr, sattr);
    if (opt.queue) {
        printf("Event queue in use\n");
        EX_TRY(lbm_event_queue_create, &evq, NULL, NULL, NULL);
    }
    EX_TRY(lbm_context_create, &ctx, cattr, NULL, NULL);
    printf("Using TCP port %s for responses\n", opt.port);
    lbm_src_t *src = create_source(ctx, sattr, argv[first]);
    lbm_context_attr_delete(cattr);
    lbm_src_topic_attr_delete(sattr);
    printf("Delaying requests for %lu second%s...\n", opt.delay, plural(opt.delay));
    fflush(stdout);
    ex_sleep_ms(opt.delay * 1000);
    printf("Will send %lu request%s\n", opt.requests, plural(opt.requests));
    for (unsigned long i = 0; i < opt.requests; i++) {
        request_once(ctx, src, evq, (unsigned)i, message);
    }
    printf("Lingering for %lu second%s...\n", opt.linger, plural(opt.linger));
    fflush(stdout);
    ex_sleep_ms(opt.linger * 1000);
    printf("Quitting...\n");
    EX_TRY(lbm_src_delete, src);
    EX_TRY(lbm_context_delete, ctx);
    if (evq != NULL) {
        EX_TRY(lbm_event_queue_delete, evq);
    }
    free(message);
    return 0;
}
