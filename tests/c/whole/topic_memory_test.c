/* What one more topic costs, resolved and without a session of its own: at most 1 KiB at its source and 1.5 KiB at its
 * receiver, the caches of topic resolution included. Counted in what the allocator has given out, not in time. */
#include <malloc.h>

#include "um_test_rcv.h"

#define TOPICS 2000 /* what comes once for all of them, such as message templates, is a part of it */
#define SOURCE_BYTES 1024
#define RECEIVER_BYTES 1536

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__) || !__GLIBC_PREREQ(2, 33)
static bool memory_in_use(size_t *bytes)
{
    (void)bytes;
    return false;
}
#else
static bool memory_in_use(size_t *bytes)
{
    struct mallinfo2 info = mallinfo2();
    *bytes = info.uordblks + info.hblkhd;
    return true;
}
#endif

/* One session for all, and no waiting for turns. */
static lbm_context_t *one_session_context(void)
{
    static const char *const unlimited[] = {"resolver_initial_advertisement_bps",
                                            "resolver_initial_advertisements_per_second", "resolver_initial_query_bps",
                                            "resolver_initial_queries_per_second"};
    lbm_context_attr_t *attr = net_context_attr();
    for (size_t i = 0; i < sizeof unlimited / sizeof *unlimited; i++) {
        MUST(lbm_context_attr_str_setopt(attr, unlimited[i], "0"));
    }
    MUST(lbm_context_attr_str_setopt(attr, "transport_tcp_maximum_ports", "1"));
    return net_context_with(attr);
}

/* As long as those of applications are. */
static const char *topic_name(int i)
{
    static char name[32];
    snprintf(name, sizeof name, "memory/of/a/topic/%08d", i);
    return name;
}

static int count_bos(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv;
    if (msg->type == LBM_MSG_BOS) {
        atomic_fetch_add((atomic_int *)clientd, 1);
    }
    return 0;
}

static bool wait_for(atomic_int *count, int wanted)
{
    for (int i = 0; i < HANG_SECONDS * 1000 && atomic_load(count) < wanted; i++) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return atomic_load(count) >= wanted;
}

TEST(one_more_topic_costs_its_source_1_kib_and_its_receiver_1_5_kib)
{
    TEST_NEEDS_NET();
    size_t before, after;
    if (!memory_in_use(&before)) {
        TEST_SKIP("the allocator does not tell what it has given out");
    }
    static lbm_src_t *sources[TOPICS + 1];
    static lbm_rcv_t *receivers[TOPICS + 1];
    atomic_int own = 0, resolved = 0;

    lbm_context_t *src_ctx = one_session_context();
    sources[TOPICS] = net_source(src_ctx, topic_name(TOPICS));
    lbm_rcv_t *first = net_receiver(src_ctx, topic_name(TOPICS), NULL, count_bos, &own, NULL);
    CHECK(wait_for(&own, 1));
    memory_in_use(&before);
    for (int i = 0; i < TOPICS; i++) {
        sources[i] = net_source(src_ctx, topic_name(i));
    }
    /* Their advertisements come back to their own context, this one after the others. */
    lbm_rcv_t *last = net_receiver(src_ctx, topic_name(TOPICS - 1), NULL, count_bos, &own, NULL);
    CHECK(wait_for(&own, 2));
    memory_in_use(&after);
    size_t per_source = (after - before) / TOPICS;

    lbm_context_t *rcv_ctx = one_session_context();
    receivers[TOPICS] = net_receiver(rcv_ctx, topic_name(TOPICS), NULL, count_bos, &resolved, NULL);
    CHECK(wait_for(&resolved, 1));
    memory_in_use(&before);
    for (int i = 0; i < TOPICS; i++) {
        receivers[i] = net_receiver(rcv_ctx, topic_name(i), NULL, count_bos, &resolved, NULL);
    }
    CHECK(wait_for(&resolved, TOPICS + 1));
    memory_in_use(&after);
    size_t per_receiver = (after - before) / TOPICS;
    fprintf(stderr, "%zu bytes for each source, %zu for each receiver\n", per_source, per_receiver);

    MUST(lbm_rcv_delete(first));
    MUST(lbm_rcv_delete(last));
    for (int i = 0; i <= TOPICS; i++) {
        MUST(lbm_rcv_delete(receivers[i]));
        MUST(lbm_src_delete(sources[i]));
    }
    MUST(lbm_context_delete(rcv_ctx));
    MUST(lbm_context_delete(src_ctx));
    CHECK(per_source <= SOURCE_BYTES);
    CHECK(per_receiver <= RECEIVER_BYTES);
}
