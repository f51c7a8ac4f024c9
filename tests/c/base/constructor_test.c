/* A program linked with the archive that has made a context and a receiver before main(): its constructors have no
 * priority, and its objects come before the library's. What they put into tables is found there later. */
#include "um_test_rcv.h"

static struct recorder early = RECORDER_INIT;
static lbm_context_t *early_context;
static lbm_rcv_t *early_receiver;

static __attribute__((constructor)) void receive_before_main(void)
{
    if (um_test_net_private()) {
        early_context = net_context();
        early_receiver = net_recording_receiver(early_context, "early", &early);
    }
}

TEST(f6_what_was_made_before_main_receives)
{
    TEST_NEEDS_NET();
    lbm_src_t *src = net_source(early_context, "early");
    CHECK(recorder_wait(&early, LBM_MSG_BOS, 1));
    net_send(src, "hello");
    CHECK(recorder_wait(&early, LBM_MSG_DATA, 1));
    MUST(lbm_src_delete(src));
    MUST(lbm_rcv_delete(early_receiver));
    MUST(lbm_context_delete(early_context));
}
