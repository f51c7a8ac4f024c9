/* The smallest subscriber: waits for one message on the topic "Greeting" and
 * ends. The callback runs on the context's thread, main() only waits. */
#include <lbm/lbm.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile int done;

static void check(int result, int line)
{
    if (result == LBM_FAILURE) {
        printf("line %d: %s\n", line, lbm_errmsg());
        exit(1);
    }
}

static int on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    switch (msg->type) {
    case LBM_MSG_DATA:
        printf("Received %d bytes on topic %s: '%.*s'\n", (int)msg->len, msg->topic_name, (int)msg->len, msg->data);
        done = 1;
        break;
    case LBM_MSG_BOS:
        printf("[%s][%s], Beginning of Transport Session\n", msg->topic_name, msg->source);
        break;
    case LBM_MSG_EOS:
        printf("[%s][%s], End of Transport Session\n", msg->topic_name, msg->source);
        break;
    default:
        printf("Unhandled receiver event [%d] from source [%s].\n", msg->type, msg->source);
        break;
    }
    fflush(stdout);
    return 0;
}

int main(void)
{
    lbm_context_t *ctx;
    lbm_topic_t *topic;
    lbm_rcv_t *rcv;
    check(lbm_context_create(&ctx, NULL, NULL, NULL), __LINE__);
    check(lbm_rcv_topic_lookup(&topic, ctx, "Greeting", NULL), __LINE__);
    check(lbm_rcv_create(&rcv, ctx, topic, on_message, NULL, NULL), __LINE__);
    while (!done) {
        usleep(10000);
    }
    check(lbm_rcv_delete(rcv), __LINE__);
    check(lbm_context_delete(ctx), __LINE__);
    return 0;
}
