/* Contexts: creation and deletion, failures on the way, options and statistics of the live object. */
#include "um_test.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include <lbm/lbm.h>

#include "base/um_clock.h"
#include "base/um_mem.h"
#include "um_test_net.h"

static lbm_context_attr_t *attributes(const char *mode)
{
    lbm_context_attr_t *attr = NULL;
    if (lbm_context_attr_create(&attr) != 0 || lbm_context_attr_str_setopt(attr, "operational_mode", mode) != 0 ||
        lbm_context_attr_str_setopt(attr, "default_interface", "127.0.0.1/32") != 0 ||
        lbm_context_attr_str_setopt(attr, "request_tcp_port_low", "0") != 0 ||
        lbm_context_attr_str_setopt(attr, "request_tcp_port_high", "0") != 0) {
        fprintf(stderr, "attributes: %s\n", lbm_errmsg());
        return NULL;
    }
    return attr;
}

static lbm_context_t *make(const char *mode)
{
    lbm_context_t *ctx = NULL;
    lbm_context_attr_t *attr = attributes(mode);
    if (attr == NULL || lbm_context_create(&ctx, attr, NULL, NULL) != 0) {
        fprintf(stderr, "create: %s\n", lbm_errmsg());
    }
    lbm_context_attr_delete(attr);
    return ctx;
}

static int open_descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    return count;
}

TEST(fifty_cycles_of_create_and_delete_leave_no_descriptor)
{
    TEST_NEEDS_NET();
    static const char *const modes[] = {"embedded", "sequential"};
    int before = open_descriptors();
    for (int i = 0; i < 50; i++) {
        lbm_context_t *ctx = make(modes[i % 2]);
        CHECK(ctx != NULL);
        CHECK_EQ(lbm_context_delete(ctx), 0);
    }
    CHECK_EQ(open_descriptors(), before);
}

static int fail_at, allocations;
static bool fail_nth(size_t size)
{
    return allocations++ == fail_at;
}

TEST(creation_undoes_everything_when_any_allocation_fails)
{
    TEST_NEEDS_NET();
    lbm_context_attr_t *attr = attributes("sequential");
    CHECK(attr != NULL);
    lbm_context_delete(make("sequential")); /* what is initialised once per process */
    int before = open_descriptors();
    bool failed = true;
    for (fail_at = 0; failed && fail_at < 3000; fail_at++) {
        lbm_context_t *ctx = NULL;
        allocations = 0;
        um_mem_set_fail_hook(fail_nth);
        int rc = lbm_context_create(&ctx, attr, NULL, NULL);
        um_mem_set_fail_hook(NULL);
        failed = allocations > fail_at;
        if (rc == 0) { /* a failure that the library can do without */
            CHECK_EQ(lbm_context_delete(ctx), 0);
        } else {
            CHECK_EQ(lbm_errnum(), LBM_ENOMEM);
            CHECK(ctx == NULL);
        }
    }
    CHECK(!failed);
    CHECK_EQ(open_descriptors(), before);
    lbm_context_attr_delete(attr);
}

TEST(a_context_with_live_objects_is_not_deleted)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = make("embedded");
    lbm_topic_t *topic;
    lbm_src_topic_attr_t *attr;
    lbm_src_t *src;
    CHECK_EQ(lbm_src_topic_attr_create(&attr), 0);
    CHECK_EQ(lbm_src_topic_attr_str_setopt(attr, "transport", "tcp"), 0);
    CHECK_EQ(lbm_src_topic_attr_str_setopt(attr, "transport_tcp_port", "0"), 0);
    CHECK_EQ(lbm_src_topic_alloc(&topic, ctx, "context test", attr), 0);
    CHECK_EQ(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL), 0);
    CHECK_EQ(lbm_context_delete(ctx), -1);
    CHECK_EQ(lbm_errnum(), LBM_EOP);
    CHECK_CONTAINS(lbm_errmsg(), "1 sources or receivers still exist");
    CHECK_EQ(lbm_src_delete(src), 0);
    CHECK_EQ(lbm_context_delete(ctx), 0);
    lbm_src_topic_attr_delete(attr);
}

TEST(options_of_a_live_context_can_be_read_and_only_live_ones_changed)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = make("embedded");
    char text[256];
    size_t len = sizeof text;
    CHECK_EQ(lbm_context_str_getopt(ctx, "operational_mode", text, &len), 0);
    CHECK_STR(text, "embedded");
    int mode = 0;
    len = sizeof mode;
    CHECK_EQ(lbm_context_getopt(ctx, "operational_mode", &mode, &len), 0);
    CHECK_EQ(mode, LBM_CTX_ATTR_OP_EMBEDDED);
    CHECK_EQ(lbm_context_str_setopt(ctx, "operational_mode", "sequential"), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(lbm_context_str_getopt(ctx, "no_such_option", text, &len), -1);
    CHECK_EQ(lbm_context_str_getopt(ctx, NULL, text, &len), -1);
    int size = lbm_context_attr_option_size();
    lbm_config_option_t *opts = calloc((size_t)size, sizeof *opts);
    CHECK_EQ(lbm_context_dump(ctx, &size, opts), 0);
    CHECK(size > 10);
    free(opts);
    CHECK_EQ(lbm_context_delete(ctx), 0);
}

TEST(statistics_arrays_tell_the_size_they_need)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = make("embedded");
    lbm_context_stats_t stats;
    CHECK_EQ(lbm_context_retrieve_stats(ctx, &stats), 0);
    CHECK_EQ(lbm_context_reset_stats(ctx), 0);
    int num = 0;
    CHECK_EQ(lbm_context_retrieve_src_transport_stats(ctx, &num, NULL), 0);
    CHECK_EQ(num, 0);
    lbm_topic_t *topic;
    lbm_src_topic_attr_t *attr;
    lbm_src_t *src;
    CHECK_EQ(lbm_src_topic_attr_create(&attr), 0);
    CHECK_EQ(lbm_src_topic_attr_str_setopt(attr, "transport", "tcp"), 0);
    CHECK_EQ(lbm_src_topic_attr_str_setopt(attr, "transport_tcp_port", "0"), 0);
    CHECK_EQ(lbm_src_topic_alloc(&topic, ctx, "stats test", attr), 0);
    CHECK_EQ(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL), 0);
    lbm_src_transport_stats_t array[4];
    num = 0;
    CHECK_EQ(lbm_context_retrieve_src_transport_stats(ctx, &num, array), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(num, 1);
    num = 4;
    CHECK_EQ(lbm_context_retrieve_src_transport_stats(ctx, &num, array), 0);
    CHECK_EQ(num, 1);
    CHECK_EQ(array[0].type, LBM_TRANSPORT_STAT_TCP);
    /* A caller with a smaller structure gets the front of each element. */
    struct {
        int type;
        char guard[12];
    } small = {0, "guard"};
    num = 1;
    CHECK_EQ(lbm_context_retrieve_src_transport_stats_ex(ctx, &num, sizeof small.type, (void *)&small), 0);
    CHECK_EQ(small.type, LBM_TRANSPORT_STAT_TCP);
    CHECK_STR(small.guard, "guard");
    CHECK_EQ(lbm_context_retrieve_src_transport_stats_ex(ctx, &num, 0, array), -1);
    CHECK_EQ(lbm_context_reset_src_transport_stats(ctx), 0);
    num = 4;
    lbm_rcv_transport_stats_t rcv[4];
    CHECK_EQ(lbm_context_retrieve_rcv_transport_stats(ctx, &num, rcv), 0);
    CHECK_EQ(num, 0);
    CHECK_EQ(lbm_context_reset_rcv_transport_stats(ctx), 0);
    CHECK_EQ(lbm_src_delete(src), 0);
    CHECK_EQ(lbm_context_delete(ctx), 0);
    lbm_src_topic_attr_delete(attr);
}

TEST(arguments_are_checked_and_unfinished_features_say_so)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = make("embedded");
    CHECK_EQ(lbm_context_create(NULL, NULL, NULL, NULL), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(lbm_context_delete(NULL), -1);
    CHECK_CONTAINS(lbm_errmsg(), "ctx must be valid");
    CHECK_EQ(lbm_context_topic_resolution_request(ctx, 0, 0, 0), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(lbm_context_topic_resolution_request(ctx, 0x8000, 0, 0), -1);
    CHECK_EQ(lbm_context_topic_resolution_request(ctx, LBM_TOPIC_RES_REQUEST_QUERY, 10, 0), 0);
    CHECK_EQ(lbm_context_set_nak_cutoff(ctx, 3), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(lbm_context_set_nak_cutoff(ctx, LBM_NAK_CUTOFF_FLAG_DISABLE_NAKS), 0);
    CHECK_EQ(lbm_context_set_nak_cutoff(ctx, LBM_NAK_CUTOFF_FLAG_ENABLE_NAKS), 0);
    CHECK_EQ(lbm_context_process_lbtipc_messages(ctx, 0, 0), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(lbm_context_lbtipc_unblock(ctx), -1);
    CHECK_EQ(lbm_context_unblock(ctx), -1);
    CHECK_EQ(lbm_context_process_events(ctx, 0), -1);
    CHECK_CONTAINS(lbm_errmsg(), "sequential");
    CHECK_EQ(lbm_context_delete(ctx), 0);
    lbm_context_attr_t *attr = attributes("embedded");
    lbm_context_t *none = NULL;
    int refused =
        lbm_context_attr_str_setopt(attr, "use_tls", "1") != 0 || lbm_context_create(&none, attr, NULL, NULL) != 0;
    CHECK(refused);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_CONTAINS(lbm_errmsg(), "tls_certificate and tls_certificate_key must be set");
    lbm_context_attr_delete(attr);
}

static atomic_bool leave;
static void *process(void *arg)
{
    while (!atomic_load(&leave)) {
        lbm_context_process_events(arg, 50);
    }
    return NULL;
}

TEST(a_sequential_context_answers_other_threads_while_and_while_not_processed)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = make("sequential");
    lbm_context_stats_t stats;
    pthread_t thread;
    CHECK_EQ(lbm_context_retrieve_stats(ctx, &stats), 0);
    atomic_store(&leave, false);
    CHECK_EQ(pthread_create(&thread, NULL, process, ctx), 0);
    for (int i = 0; i < 200; i++) {
        CHECK_EQ(lbm_context_retrieve_stats(ctx, &stats), 0);
    }
    atomic_store(&leave, true);
    CHECK_EQ(lbm_context_unblock(ctx), 0);
    pthread_join(thread, NULL);
    CHECK_EQ(lbm_context_delete(ctx), 0);
}
