/* lbmrespq: answers the requests on a topic through an event queue, whose thread
 * receives and answers; main() prints the rate of requests. */
#include <lbm/lbm.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "ex_options.h"
#include "ex_print.h"
#include "ex_receiver.h"

static struct {
    int silent, verbose;
    unsigned long pause, requests;
} opt;

static const struct ex_option options[] = {
    {'c', NULL, EX_CONFIG, NULL, "FILE", "load a configuration file; may be repeated"},
    {'h', NULL, EX_HELP, NULL, NULL, "show this text"},
    {'P', NULL, EX_UNSIGNED, &opt.pause, "MS", "wait before each response (0)"},
    {'r', NULL, EX_UNSIGNED, &opt.requests, "NUM", "delete the receiver after NUM requests"},
    {'s', NULL, EX_FLAG, &opt.silent, NULL, "print no rates"},
    {'v', NULL, EX_COUNTER, &opt.verbose, NULL, "print requests; twice: with their bytes"},
    EX_END,
};

static const struct ex_program program = {"Answers the requests on a topic through an event queue.", "topic", 1,
                                          options};

static atomic_ulong requests, total, unrecovered, bursts; /* the first three since the last line */
static volatile int done;

static void on_request(lbm_msg_t *msg)
{
    static const char text[] = "response";
    if (opt.verbose > 0) {
        printf("Request [%s][%s][%u], %lu bytes\n", msg->topic_name, msg->source, msg->sequence_number,
               (unsigned long)msg->len);
        if (opt.verbose > 1) {
            ex_dump(msg->data, msg->len);
        }
    }
    if (opt.pause > 0) {
        ex_sleep_ms(opt.pause);
    }
    if (msg->response != NULL && lbm_send_response(msg->response, text, sizeof text, LBM_SRC_BLOCK) == LBM_FAILURE) {
        fprintf(stderr, "lbm_send_response: %s\n", lbm_errmsg()); /* a requester's fault; there are others */
    }
    atomic_fetch_add(&requests, 1);
    done = opt.requests > 0 && atomic_fetch_add(&total, 1) + 1 >= opt.requests;
}

static int on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv;
    (void)clientd;
    switch (msg->type) {
    case LBM_MSG_REQUEST:
        if (!done) {
            on_request(msg);
        }
        break;
    case LBM_MSG_DATA:
        if (opt.verbose > 0) {
            printf("[%s][%s][%u], %lu bytes\n", msg->topic_name, msg->source, msg->sequence_number,
                   (unsigned long)msg->len);
        }
        break;
    case LBM_MSG_BOS:
        printf("[%s][%s], Beginning of Transport Session\n", msg->topic_name, msg->source);
        break;
    case LBM_MSG_EOS:
        printf("[%s][%s], End of Transport Session\n", msg->topic_name, msg->source);
        break;
    case LBM_MSG_UNRECOVERABLE_LOSS:
        atomic_fetch_add(&unrecovered, 1);
        break;
    case LBM_MSG_UNRECOVERABLE_LOSS_BURST:
        atomic_fetch_add(&bursts, 1);
        break;
    default:
        break;
    }
    fflush(stdout);
    return 0;
}

static void print_rate(double seconds)
{
    double rate = seconds > 0 ? (double)atomic_exchange(&requests, 0) / seconds : 0;
    char scale = ex_scale_rate(&rate);
    unsigned long lost = atomic_exchange(&unrecovered, 0), runs = atomic_exchange(&bursts, 0);
    if (lost > 0 || runs > 0) {
        printf("%.04g secs. %.04g%c requests/sec. [%lu unrecoverable, %lu bursts]\n", seconds, rate, scale, lost, runs);
    } else {
        printf("%.04g secs. %.04g%c requests/sec.\n", seconds, rate, scale);
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int first = ex_parse(argc, argv, &program);
    lbm_context_t *ctx;
    lbm_topic_t *topic;
    lbm_rcv_t *rcv;
    struct ex_queue queue;
    ex_queue_start(&queue, "event queue threshold exceeded - event 0x%x, sz %lu, delay %lu\n");
    EX_TRY(lbm_context_create, &ctx, NULL, NULL, NULL);
    EX_TRY(lbm_rcv_topic_lookup, &topic, ctx, argv[first], NULL);
    EX_TRY(lbm_rcv_create, &rcv, ctx, topic, on_message, NULL, queue.evq);
    while (!done) {
        double began = ex_now();
        ex_sleep_until(1.0, &done);
        if (!opt.silent) {
            print_rate(ex_now() - began);
        }
    }
    printf("Quitting....\n");
    EX_TRY(lbm_rcv_delete, rcv);
    ex_queue_stop(&queue);
    EX_TRY(lbm_context_delete, ctx);
    return 0;
}
