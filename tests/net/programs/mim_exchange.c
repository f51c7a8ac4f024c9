/* Multicast immediate messages between two contexts of one process, for captures: so many to a topic, as many without
 * one, one that takes several datagrams, and a request that is answered. Prints what came and ends.
 *
 *     mim_exchange CONFIG COUNT */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <lbm/lbm.h>

#define SECONDS 30 /* only catches hangs */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int messages, topicless, requests, responses;

static void must(int rc, const char *what)
{
    if (rc == -1) {
        fprintf(stderr, "%s: %s\n", what, lbm_errmsg());
        exit(1);
    }
}
#define MUST(call) must((call), #call)

static void note(int *counter)
{
    pthread_mutex_lock(&lock);
    (*counter)++;
    pthread_mutex_unlock(&lock);
}

static int on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv, (void)clientd;
    if (msg->type == LBM_MSG_REQUEST) {
        note(&requests);
        MUST(lbm_send_response(msg->response, "answer", 6, LBM_SRC_NONBLOCK));
    } else if (msg->type == LBM_MSG_DATA) {
        note(&messages);
    }
    return 0;
}

static int on_topicless(lbm_context_t *ctx, lbm_msg_t *msg, void *clientd)
{
    (void)ctx, (void)msg, (void)clientd;
    note(&topicless);
    return 0;
}

static int on_response(lbm_request_t *req, lbm_msg_t *msg, void *clientd)
{
    (void)req, (void)msg, (void)clientd;
    note(&responses);
    return 0;
}

static void await(const int *counter, int count)
{
    for (int i = 0; i < SECONDS * 1000; i++) {
        pthread_mutex_lock(&lock);
        int now = *counter;
        pthread_mutex_unlock(&lock);
        if (now >= count) {
            return;
        }
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    fprintf(stderr, "%d of %d came\n", *counter, count);
    exit(1);
}

int main(int argc, char **argv)
{
    static char large[7000];
    lbm_context_t *sender, *hearer;
    lbm_topic_t *topic;
    lbm_rcv_t *rcv;
    lbm_request_t *req;
    int count = argc == 3 ? atoi(argv[2]) : 0;
    if (count <= 0) {
        fprintf(stderr, "usage: mim_exchange CONFIG COUNT\n");
        return 1;
    }
    MUST(lbm_config(argv[1]));
    MUST(lbm_context_create(&sender, NULL, NULL, NULL));
    MUST(lbm_context_create(&hearer, NULL, NULL, NULL));
    MUST(lbm_rcv_topic_lookup(&topic, hearer, "orders", NULL));
    MUST(lbm_rcv_create(&rcv, hearer, topic, on_message, NULL, NULL));
    MUST(lbm_context_rcv_immediate_msgs(hearer, on_topicless, NULL, NULL));
    for (int i = 0; i < count; i++) {
        MUST(lbm_multicast_immediate_message(sender, "orders", "hello mim", 9, LBM_SRC_BLOCK));
        MUST(lbm_multicast_immediate_message(sender, NULL, "topicless", 9, LBM_SRC_BLOCK));
    }
    MUST(lbm_multicast_immediate_message(sender, "orders", large, sizeof large, LBM_SRC_BLOCK));
    await(&messages, count + 1);
    await(&topicless, count);
    MUST(lbm_multicast_immediate_request(&req, sender, "orders", "ask", 3, on_response, NULL, NULL, LBM_SRC_BLOCK));
    await(&responses, 1);
    MUST(lbm_request_delete(req));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_context_delete(sender));
    MUST(lbm_context_delete(hearer));
    printf("%d messages, %d topicless, %d requests, %d responses\n", messages, topicless, requests, responses);
    return 0;
}
