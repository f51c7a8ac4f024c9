/* lbmireq: sends immediate requests, to everybody by multicast or to one context with
 * -T, and counts the responses to each, which come on the context's thread. */
#include <lbm/lbm.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "ex_options.h"
#include "ex_print.h"

static struct {
    int linger, pause, verbose;
    unsigned long length, requests;
    const char *port, *target;
    struct ex_rate rate;
} opt = {.linger = 5, .pause = 5, .length = 25, .requests = 1, .port = "14392"};

static const struct ex_option options[] = {
    {'c', NULL, EX_CONFIG, NULL, "FILE", "load a configuration file; may be repeated"},
    {'h', NULL, EX_HELP, NULL, NULL, "show this text"},
    {'L', NULL, EX_INT, &opt.linger, "SEC", "wait before the context is deleted (5)"},
    {'l', NULL, EX_UNSIGNED, &opt.length, "BYTES", "length of requests (25)"},
    {'P', NULL, EX_INT, &opt.pause, "SEC", "wait for responses to each request (5)"},
    {'p', NULL, EX_TEXT, &opt.port, "PORT", "TCP port for responses (14392); 0: the first free one of the range"},
    {'r', NULL, EX_RATE, &opt.rate, "[U|M]DATA/RETR", "rate limits of LBT-RM"},
    {'R', NULL, EX_UNSIGNED, &opt.requests, "NUM", "requests to send (1)"},
    {'T', NULL, EX_TEXT, &opt.target, "TARGET", "ask this context, as in TCP:10.1.2.3:14391; without: multicast"},
    {'v', NULL, EX_COUNTER, &opt.verbose, NULL, "print responses; twice: with their bytes"},
    EX_END,
};

static const struct ex_program program = {"Sends immediate requests and counts the responses.", "[topic]", 0, options};

static struct ex_responses responses;

static void request_once(lbm_context_t *ctx, const char *topic, unsigned number, char *data)
{
    lbm_request_t *req;
    atomic_store(&responses.count, 0);
    atomic_store(&responses.bytes, 0);
    snprintf(data, 32, "request data %u", number);
    printf("Sending request %u\n", number);
    if (opt.target != NULL) {
        EX_TRY(lbm_unicast_immediate_request, &req, ctx, opt.target, topic, data, opt.length, ex_on_response,
               &responses, NULL, LBM_SRC_BLOCK);
    } else {
        EX_TRY(lbm_multicast_immediate_request, &req, ctx, topic, data, opt.length, ex_on_response, &responses, NULL,
               LBM_SRC_BLOCK);
    }
    printf("Sent request %d. Pausing %d seconds.\n", (int)number, opt.pause);
    fflush(stdout);
    ex_sleep_ms((unsigned long)opt.pause * 1000);
    printf("Done waiting for responses. %d responses (%lu bytes) received. Deleting request.\n",
           atomic_load(&responses.count), atomic_load(&responses.bytes));
    fflush(stdout);
    EX_TRY(lbm_request_delete, req);
}

int main(int argc, char **argv)
{
    int first = ex_parse(argc, argv, &program);
    const char *topic = first < argc ? argv[first] : NULL;
    lbm_context_attr_t *cattr;
    lbm_context_t *ctx;
    char *data = calloc(1, opt.length > 32 ? opt.length : 32);
    if (data == NULL || opt.linger < 0 || opt.pause < 0) {
        ex_usage(argv[0], &program, 1);
    }
    responses.verbose = opt.verbose;
    EX_TRY(lbm_context_attr_create, &cattr);
    EX_TRY(lbm_context_attr_str_setopt, cattr, "request_tcp_port", opt.port);
    ex_apply_immediate_rate(&opt.rate, cattr);
    EX_TRY(lbm_context_create, &ctx, cattr, NULL, NULL);
    EX_TRY(lbm_context_attr_delete, cattr);
    printf("Using TCP port %s for responses\n", opt.port);
    fflush(stdout);
    ex_sleep_ms(1000);
    printf("Sending %u requests of size %lu bytes to target <%s> topic <%s>\n", (unsigned)opt.requests, opt.length,
           opt.target != NULL ? opt.target : "", topic != NULL ? topic : "");
    for (unsigned long i = 0; i < opt.requests; i++) {
        request_once(ctx, topic, (unsigned)i, data);
    }
    printf("Quitting...\n");
    if (opt.linger > 0) {
        printf("Lingering for %d seconds...\n", opt.linger);
        fflush(stdout);
        ex_sleep_ms((unsigned long)opt.linger * 1000);
    }
    EX_TRY(lbm_context_delete, ctx);
    free(data);
    return 0;
}
