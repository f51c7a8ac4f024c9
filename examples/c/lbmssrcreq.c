/* lbmssrcreq: lbmreq with a smart source. main() sends requests and deletes them;
 * responses come on the context's thread. */
#include <lbm/lbm.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ex_options.h"
#include "ex_print.h"
#include "ex_smart.h"

static struct {
    unsigned long delay, length, linger, pause, requests;
    const char *port;
    struct ex_rate rate;
    int available, supplied, verbose;
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
    {'a', NULL, EX_FLAG, &opt.available, NULL, "print how much a buffer of the library takes"},
    {'b', NULL, EX_FLAG, &opt.supplied, NULL, "send from memory of the application"},
    EX_END,
};

static const struct ex_program program = {"Sends requests with a smart source and counts the responses.", "topic", 1,
                                          options};

static struct ex_responses responses;

static const char *plural(unsigned long n)
{
    return n == 1 ? "" : "s";
}

static int on_event(lbm_ssrc_t *ssrc, int event, void *ed, void *clientd)
{
    (void)ssrc, (void)ed, (void)clientd;
    if (event != LBM_SRC_EVENT_WAKEUP) {
        printf("Unknown source event %d\n", event);
        fflush(stdout);
    }
    return 0;
}

static int on_response(lbm_request_t *req, lbm_msg_t *msg, void *clientd)
{
    if (msg->type == LBM_MSG_RESPONSE) {
        return ex_on_response(req, msg, clientd);
    }
    printf("Unknown lbm_msg_t type %x [%s]\n", (unsigned)msg->type, msg->source);
    return 0;
}

static void request_once(lbm_ssrc_t *ssrc, const struct ex_smart_buffer *buffer, unsigned number)
{
    lbm_request_t *req;
    lbm_ssrc_send_ex_info_t info = {.flags = buffer->flags, .usr_supplied_buffer = buffer->supplied};
    char text[32];
    atomic_store(&responses.count, 0);
    atomic_store(&responses.bytes, 0);
    int length = snprintf(text, sizeof(text), "request data %u", number);
    memcpy(buffer->data, text, (size_t)length < opt.length ? (size_t)length : opt.length);
    printf("Sending request %u\n", number);
    EX_TRY(lbm_ssrc_send_request_ex, &req, ssrc, buffer->library, opt.length, on_response, &responses, NULL, 0, &info);
    printf("Sent request %u.  \n", number);
    fflush(stdout);
    fprintf(stderr, "Pausing %lu seconds.\n", opt.pause);
    ex_sleep_ms(opt.pause * 1000);
    int count = atomic_load(&responses.count);
    printf("Done waiting for responses. %d response%s (%lu total bytes) received. Deleting request.\n\n", count,
           plural((unsigned long)count), atomic_load(&responses.bytes));
    fflush(stdout);
    EX_TRY(lbm_request_delete, req);
}

static void send_all(lbm_ssrc_t *ssrc)
{
    struct ex_smart_buffer buffer;
    if (opt.available) {
        ex_print_available_space(ssrc);
    }
    printf("Delaying requests for %lu second%s...\n", opt.delay, plural(opt.delay));
    fflush(stdout);
    ex_sleep_ms(opt.delay * 1000);
    printf("Will send %lu request%s\n", opt.requests, plural(opt.requests));
    ex_smart_buffer_get(&buffer, ssrc, opt.supplied, opt.length);
    for (unsigned long i = 0; i < opt.requests; i++) {
        request_once(ssrc, &buffer, (unsigned)i);
    }
    ex_smart_buffer_put(&buffer, ssrc);
}

int main(int argc, char **argv)
{
    int first = ex_parse(argc, argv, &program);
    lbm_context_attr_t *cattr;
    lbm_src_topic_attr_t *sattr;
    lbm_context_t *ctx;
    lbm_topic_t *topic;
    lbm_ssrc_t *ssrc;
    responses.verbose = opt.verbose;
    EX_TRY(lbm_context_attr_create, &cattr);
    EX_TRY(lbm_src_topic_attr_create, &sattr);
    EX_TRY(lbm_context_attr_str_setopt, cattr, "request_tcp_port", opt.port);
    ex_apply_rate(&opt.rate, cattr, sattr);
    ex_apply_smart_transport(sattr);
    EX_TRY(lbm_context_create, &ctx, cattr, NULL, NULL);
    printf("Using TCP port %s for responses\n", opt.port);
    EX_TRY(lbm_src_topic_alloc, &topic, ctx, argv[first], sattr);
    EX_TRY(lbm_ssrc_create, &ssrc, ctx, topic, on_event, NULL, NULL);
    EX_TRY(lbm_context_attr_delete, cattr);
    EX_TRY(lbm_src_topic_attr_delete, sattr);
    send_all(ssrc);
    printf("Lingering for %lu second%s...\n", opt.linger, plural(opt.linger));
    fflush(stdout);
    ex_sleep_ms(opt.linger * 1000);
    printf("Quitting...\n");
    EX_TRY(lbm_ssrc_delete, ssrc);
    EX_TRY(lbm_context_delete, ctx);
    return 0;
}
