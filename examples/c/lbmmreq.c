/* lbmmreq: sends many requests on one topic, one right after the other, and keeps all of
 * them open until the end. main() sends and deletes; responses come on the context's
 * thread. */
#include <lbm/lbm.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "ex_options.h"
#include "ex_print.h"

#define MAX_REQUESTS 100000
#define PATIENCE 30.0 /* seconds without a response after which no more is waited for */

static struct {
    unsigned long delay, length, requests;
    int verbose;
} opt = {.delay = 1, .length = 25, .requests = MAX_REQUESTS};

static const struct ex_option options[] = {
    {'c', NULL, EX_CONFIG, NULL, "FILE", "load a configuration file; may be repeated"},
    {'d', NULL, EX_UNSIGNED, &opt.delay, "SEC", "wait before the first request (1)"},
    {'h', NULL, EX_HELP, NULL, NULL, "show this text"},
    {'l', NULL, EX_UNSIGNED, &opt.length, "BYTES", "length of requests (25)"},
    {'R', NULL, EX_UNSIGNED, &opt.requests, "NUM", "send NUM requests (100000, at most 100000)"},
    {'v', NULL, EX_COUNTER, &opt.verbose, NULL, "print responses; twice: with their bytes"},
    EX_END,
};

static const struct ex_program program = {"Sends many requests on a topic, all of them open at a time.", "topic", 1,
                                          options};

static atomic_uint response_count;

static int on_response(lbm_request_t *req, lbm_msg_t *msg, void *clientd)
{
    if (msg->type != LBM_MSG_RESPONSE) {
        printf("Unknown message type %d from [%s]\n", msg->type, msg->source);
        return 0;
    }
    unsigned count = atomic_fetch_add(&response_count, 1) + 1;
    if (opt.verbose > 0) {
        printf("Response [%s], %lu bytes\n", msg->source, (unsigned long)msg->len);
        if (opt.verbose > 1) {
            ex_dump(msg->data, msg->len);
        }
    }
    if (opt.verbose > 0 || count % 1000 == 0) {
        printf("Received %u responses\n", count);
        fflush(stdout);
    }
    return 0;
}

static lbm_request_t **send_requests(lbm_src_t *src)
{
    lbm_request_t **requests = calloc(opt.requests, sizeof(lbm_request_t *));
    char *message = calloc(1, opt.length + 1);
    if (requests == NULL || message == NULL) {
        fprintf(stderr, "no memory for %lu requests\n", opt.requests);
        exit(1);
    }
    printf("Sending requests...\n");
    fflush(stdout);
    for (unsigned long i = 0; i < opt.requests; i++) {
        snprintf(message, opt.length + 1, "request data %lu", i);
        EX_TRY(lbm_send_request, &requests[i], src, message, opt.length, on_response, NULL, NULL,
               LBM_MSG_FLUSH | LBM_SRC_BLOCK);
        if ((i + 1) % 1000 == 0 || i + 1 == opt.requests) {
            printf("Sent request %d\n", (int)i);
            fflush(stdout);
        }
    }
    free(message);
    return requests;
}

/* Until there are as many responses as requests, or none has come for long. */
static void linger(void)
{
    unsigned seen = atomic_load(&response_count);
    double last = ex_now();
    printf("Lingering...\n");
    fflush(stdout);
    while (seen < opt.requests && ex_now() - last < PATIENCE) {
        ex_sleep_ms(100);
        unsigned count = atomic_load(&response_count);
        last = count != seen ? ex_now() : last;
        seen = count;
    }
}

static void delete_requests(lbm_request_t **requests)
{
    printf("Deleting requests...\n");
    for (unsigned long i = 0; i < opt.requests; i++) {
        EX_TRY(lbm_request_delete, requests[i]);
    }
    printf("Deleted %u requests\n", (unsigned)opt.requests);
    free(requests);
}

static void print_port(lbm_context_t *ctx)
{
    char port[256];
    size_t len = sizeof(port);
    EX_TRY(lbm_context_str_getopt, ctx, "request_tcp_port", port, &len);
    printf("Using TCP port %s for responses\n", port);
}

int main(int argc, char **argv)
{
    int first = ex_parse(argc, argv, &program);
    lbm_context_t *ctx;
    lbm_topic_t *topic;
    lbm_src_t *src;
    if (opt.requests < 1 || opt.requests > MAX_REQUESTS) {
        ex_usage(argv[0], &program, 1);
    }
    EX_TRY(lbm_context_create, &ctx, NULL, NULL, NULL);
    print_port(ctx);
    EX_TRY(lbm_src_topic_alloc, &topic, ctx, argv[first], NULL);
    EX_TRY(lbm_src_create, &src, ctx, topic, ex_on_source_event, NULL, NULL);
    printf("Delaying requests for %lu second%s...\n", opt.delay, opt.delay == 1 ? "" : "s");
    fflush(stdout);
    ex_sleep_ms(opt.delay * 1000);
    lbm_request_t **requests = send_requests(src);
    linger();
    delete_requests(requests);
    printf("Received %u responses\n", atomic_load(&response_count));
    printf("Quitting...\n");
    EX_TRY(lbm_src_delete, src);
    EX_TRY(lbm_context_delete, ctx);
    return 0;
}
