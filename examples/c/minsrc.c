/* The smallest publisher: one message on the topic "Greeting". Default
 * configuration, or what LBM_DEFAULT_CONFIG_FILE names. main() does it all. */
#include <lbm/lbm.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void check(int result, int line)
{
    if (result == LBM_FAILURE) {
        printf("line %d: %s\n", line, lbm_errmsg());
        exit(1);
    }
}

int main(void)
{
    lbm_context_t *ctx;
    lbm_topic_t *topic;
    lbm_src_t *src;
    check(lbm_context_create(&ctx, NULL, NULL, NULL), __LINE__);
    check(lbm_src_topic_alloc(&topic, ctx, "Greeting", NULL), __LINE__);
    check(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL), __LINE__);
    sleep(1); /* time for receivers to find the source */
    check(lbm_src_send(src, "Hello!", 6, LBM_MSG_FLUSH | LBM_SRC_BLOCK), __LINE__);
    sleep(2); /* time for the message to leave */
    check(lbm_src_delete(src), __LINE__);
    check(lbm_context_delete(ctx), __LINE__);
    return 0;
}
