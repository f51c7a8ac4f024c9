/* lbmresp: answers the requests on a topic, one at a time. The context's thread takes
 * the response out of a request; main() answers, or with -f passes the response on to
 * another lbmresp as bytes. */
#include <lbm/lbm.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ex_options.h"
#include "ex_print.h"

#define REQUEST_ROOM 1024 /* of a request that is forwarded */

static struct {
    int exit_at_eos, verbose;
    unsigned long length, responses;
    const char *forward;
} opt = {.length = 25, .responses = 1};

static const struct ex_option options[] = {
    {'c', NULL, EX_CONFIG, NULL, "FILE", "load a configuration file; may be repeated"},
    {'E', NULL, EX_FLAG, &opt.exit_at_eos, NULL, "exit at the end of a session"},
    {'h', NULL, EX_HELP, NULL, NULL, "show this text"},
    {'l', NULL, EX_UNSIGNED, &opt.length, "BYTES", "length of responses (25)"},
    {'r', NULL, EX_UNSIGNED, &opt.responses, "NUM", "responses to each request (1)"},
    {'v', NULL, EX_COUNTER, &opt.verbose, NULL, "print requests; twice: with their bytes"},
    {'f', NULL, EX_TEXT, &opt.forward, "TOPIC", "let who listens to TOPIC answer"},
    EX_END,
};

static const struct ex_program program = {"Answers the requests on a topic.", "topic", 1, options};

/* What main() is to do. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    lbm_response_t *response; /* NULL: nothing */
    char request[REQUEST_ROOM];
    int ended;
} work = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attr);
    pthread_condattr_destroy(&attr);
}

static lbm_context_t *ctx;

/* False: another request is being answered. Takes the response over. */
static int take(lbm_response_t *response, const char *text, size_t len)
{
    pthread_mutex_lock(&work.lock);
    int taken = work.response == NULL && response != NULL;
    if (taken) {
        work.response = response;
        snprintf(work.request, sizeof work.request, "%.*s", (int)(len < REQUEST_ROOM ? len : REQUEST_ROOM - 1), text);
        pthread_cond_signal(&work.changed);
    }
    pthread_mutex_unlock(&work.lock);
    return taken;
}

static void on_request(lbm_msg_t *msg)
{
    int taken = take(msg->response, msg->data, msg->len);
    if (taken) {
        msg->response = NULL;
    }
    if (opt.verbose > 0) {
        const char *ignored = taken ? "" : " (ignored)";
        if (msg->topic_name[0] == '\0') {
            printf("IM Request [%s][%u], %lu bytes%s\n", msg->source, msg->sequence_number, (unsigned long)msg->len,
                   ignored);
        } else {
            printf("Request [%s][%s][%u], %lu bytes%s\n", msg->topic_name, msg->source, msg->sequence_number,
                   (unsigned long)msg->len, ignored);
        }
        if (opt.verbose > 1) {
            ex_dump(msg->data, msg->len);
        }
    }
}

/* A message, or a request that another lbmresp has forwarded: a response as bytes, then the request's text. */
static void on_data(const lbm_msg_t *msg)
{
    lbm_serialized_response_t bytes;
    lbm_response_t *response = NULL;
    if (msg->len > sizeof bytes) {
        memcpy(&bytes, msg->data, sizeof bytes);
        response = lbm_deserialize_response(ctx, &bytes);
    }
    if (response != NULL) {
        const char *text = msg->data + sizeof bytes;
        size_t len = msg->len - sizeof bytes;
        printf("Received forwarded request: %.*s\n", (int)strnlen(text, len), text);
        if (!take(response, text, len)) {
            lbm_response_delete(response);
        }
        return;
    }
    if (opt.verbose > 0) {
        printf("[%s][%s][%u], %lu bytes\n", msg->topic_name, msg->source, msg->sequence_number,
               (unsigned long)msg->len);
    }
}

static int on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv;
    (void)clientd;
    switch (msg->type) {
    case LBM_MSG_REQUEST:
        on_request(msg);
        break;
    case LBM_MSG_DATA:
        on_data(msg);
        break;
    case LBM_MSG_BOS:
        printf("[%s][%s], Beginning of Transport Session\n", msg->topic_name, msg->source);
        break;
    case LBM_MSG_EOS:
        printf("[%s][%s], End of Transport Session\n", msg->topic_name, msg->source);
        pthread_mutex_lock(&work.lock);
        work.ended = opt.exit_at_eos;
        pthread_cond_signal(&work.changed);
        pthread_mutex_unlock(&work.lock);
        break;
    default:
        break;
    }
    fflush(stdout);
    return 0;
}

static void forward(lbm_src_t *src, lbm_response_t *response)
{
    char message[sizeof(lbm_serialized_response_t) + REQUEST_ROOM];
    size_t len = strlen(work.request) + 1; /* main()'s while work.response is set */
    lbm_serialized_response_t *bytes = lbm_serialize_response(response);
    if (bytes == NULL) {
        ex_fail("lbm_serialize_response");
    }
    memcpy(message, bytes, sizeof *bytes);
    memcpy(message + sizeof *bytes, work.request, len);
    printf("Forwarding request to topic \"%s\".\n", opt.forward);
    EX_TRY(lbm_src_send, src, message, sizeof *bytes + len, LBM_MSG_FLUSH | LBM_SRC_BLOCK);
    EX_TRY(lbm_serialized_response_delete, bytes);
    printf("Done forwarding requests.  Deleting response.\n");
}

static void answer(lbm_response_t *response, char *message)
{
    printf("Sending response. %lu response%s of %lu bytes%s (%lu total bytes).\n", opt.responses,
           opt.responses == 1 ? "" : "s", opt.length, opt.responses == 1 ? "" : " each", opt.responses * opt.length);
    for (unsigned long i = 0; i < opt.responses; i++) {
        snprintf(message, opt.length + 1, "response data %lu", i);
        if (lbm_send_response(response, message, opt.length, LBM_SRC_BLOCK) == LBM_FAILURE) {
            fprintf(stderr, "lbm_send_response: %s\n", lbm_errmsg()); /* a requester's fault; there are others */
            break;
        }
    }
    printf("Done sending responses. Deleting response.\n\n");
}

/* Until the session ends, with -E. */
static void serve(lbm_src_t *forwarder, char *message)
{
    pthread_mutex_lock(&work.lock);
    for (;;) {
        while (work.response == NULL && !work.ended) {
            pthread_cond_wait(&work.changed, &work.lock);
        }
        lbm_response_t *response = work.response;
        if (response == NULL) {
            break;
        }
        pthread_mutex_unlock(&work.lock);
        if (forwarder != NULL) {
            forward(forwarder, response);
        } else {
            answer(response, message);
        }
        fflush(stdout);
        EX_TRY(lbm_response_delete, response);
        pthread_mutex_lock(&work.lock);
        work.response = NULL;
    }
    pthread_mutex_unlock(&work.lock);
}

static lbm_src_t *create_forwarder(void)
{
    lbm_topic_t *topic;
    lbm_src_t *src;
    EX_TRY(lbm_src_topic_alloc, &topic, ctx, opt.forward, NULL);
    EX_TRY(lbm_src_create, &src, ctx, topic, NULL, NULL, NULL);
    return src;
}

int main(int argc, char **argv)
{
    int first = ex_parse(argc, argv, &program);
    lbm_topic_t *topic;
    lbm_rcv_t *rcv;
    if (opt.responses == 0) {
        ex_usage(argv[0], &program, 1);
    }
    char *message = calloc(1, opt.length + 1);
    if (message == NULL) {
        fprintf(stderr, "out of memory\n");
        return 1;
    }
    condition_init(&work.changed);
    EX_TRY(lbm_context_create, &ctx, NULL, NULL, NULL);
    lbm_src_t *forwarder = opt.forward != NULL ? create_forwarder() : NULL;
    EX_TRY(lbm_rcv_topic_lookup, &topic, ctx, argv[first], NULL);
    EX_TRY(lbm_rcv_create, &rcv, ctx, topic, on_message, NULL, NULL);
    serve(forwarder, message);
    printf("Quitting\n");
    EX_TRY(lbm_rcv_delete, rcv);
    if (forwarder != NULL) {
        EX_TRY(lbm_src_delete, forwarder);
    }
    EX_TRY(lbm_context_delete, ctx);
    free(message);
    return 0;
}
