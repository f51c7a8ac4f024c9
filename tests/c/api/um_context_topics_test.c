/* um_context_topics: the sources that a context knows by topic resolution, found by pattern, without joining them. */
#include "um_test.h"

#include <lbm/lbm.h>
#include <lbm/um.h>

#include "um_test_rcv.h"

/* How many are known once there are as many as expected; the time only catches hangs. */
static size_t known(lbm_context_t *ctx, const char *pattern, um_topic_source_t *out, size_t room, size_t expected)
{
    size_t count = 0;
    for (int i = 0; i < HANG_SECONDS * 100; i++) {
        count = room;
        MUST(um_context_topics(ctx, pattern, out, sizeof *out, &count));
        if (count == expected) {
            break;
        }
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    return count;
}

TEST(topics_are_known_by_pattern_without_being_joined)
{
    TEST_NEEDS_NET();
    lbm_context_t *sending = net_context(), *looking = net_context();
    lbm_src_t *one = net_source(sending, "prices.one"), *two = net_source(sending, "prices.two");
    lbm_src_t *other = net_source(sending, "news");
    um_topic_source_t rows[4];
    memset(rows, 0, sizeof rows);
    CHECK_EQ(known(looking, NULL, rows, 4, 3), 3);
    CHECK_EQ(known(looking, "^news$", rows, 4, 1), 1);
    CHECK_STR(rows[0].topic, "news");
    CHECK(strncmp(rows[0].source, "TCP:127.0.0.1:", 14) == 0);
    CHECK_EQ(rows[0].transport, LBM_TRANSPORT_TYPE_TCP);
    CHECK_EQ(rows[0].in_use, 0);
    CHECK_EQ(um_src_receivers(other), 0); /* nobody has joined */
    MUST(lbm_src_delete(other));
    MUST(lbm_src_delete(one));
    MUST(lbm_src_delete(two));
    MUST(lbm_context_delete(looking));
    MUST(lbm_context_delete(sending));
}

TEST(what_has_no_room_is_counted_and_an_older_callers_structure_is_not_overrun)
{
    TEST_NEEDS_NET();
    enum { OLD = sizeof(((um_topic_source_t *)0)->topic) }; /* a caller that knows the first field only */
    lbm_context_t *ctx = net_context();
    lbm_src_t *one = net_source(ctx, "prices.one"), *two = net_source(ctx, "prices.two");
    um_topic_source_t row;
    unsigned char old[2 * OLD + 1];
    size_t count = 1;
    CHECK_EQ(known(ctx, "^prices", &row, 1, 2), 2);
    memset(old, 0xee, sizeof old);
    count = 2;
    MUST(um_context_topics(ctx, "^prices", (um_topic_source_t *)(void *)old, OLD, &count));
    CHECK_EQ(count, 2);
    CHECK(strncmp((char *)old, "prices.", 7) == 0 && strncmp((char *)old + OLD, "prices.", 7) == 0);
    CHECK_EQ(old[sizeof old - 1], 0xee);
    count = 0;
    MUST(um_context_topics(ctx, NULL, NULL, 0, &count));
    CHECK_EQ(count, 2);
    MUST(lbm_src_delete(one));
    MUST(lbm_src_delete(two));
    MUST(lbm_context_delete(ctx));
}

TEST(wrong_arguments_are_refused)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    um_topic_source_t row;
    size_t count = 1;
    CHECK_EQ(um_context_topics(ctx, "(", &row, sizeof row, &count), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_CONTAINS(lbm_errmsg(), "does not compile");
    CHECK_EQ(um_context_topics(ctx, NULL, NULL, sizeof row, &count), -1);
    CHECK_EQ(um_context_topics(ctx, NULL, &row, 0, &count), -1);
    CHECK_EQ(um_context_topics(ctx, NULL, &row, sizeof row, NULL), -1);
    CHECK_EQ(um_context_topics(NULL, NULL, &row, sizeof row, &count), -1);
    MUST(lbm_context_delete(ctx));
}
