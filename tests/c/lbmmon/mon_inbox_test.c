/* The bounded queue of packets: order, bounds in number and bytes, what does not fit, and waiting. */
#include "lbmmon/um_mon_inbox.h"

#include "um_test.h"

static int forgotten;

static void forget(void *tag)
{
    forgotten += (int)(intptr_t)tag;
}

TEST(packets_come_out_in_order_with_their_tags)
{
    struct um_mon_inbox inbox;
    char out[8];
    size_t len = sizeof out;
    void *tag;
    um_mon_inbox_init(&inbox, 100, 10);
    CHECK_EQ(um_mon_inbox_take(&inbox, out, &len, 1, &tag), 1);
    CHECK(um_mon_inbox_put(&inbox, "one", 3, (void *)1));
    CHECK(um_mon_inbox_put(&inbox, "two2", 4, (void *)2));
    CHECK_EQ(um_mon_inbox_take(&inbox, out, &len, 0, &tag), 0);
    CHECK_EQ(len, 3);
    CHECK(memcmp(out, "one", 3) == 0 && tag == (void *)1);
    forgotten = 0;
    um_mon_inbox_clear(&inbox, forget);
    CHECK_EQ(forgotten, 2);
}

TEST(what_goes_beyond_the_bounds_is_dropped_and_counted)
{
    struct um_mon_inbox inbox;
    char out[8];
    size_t len = sizeof out;
    um_mon_inbox_init(&inbox, 10, 3);
    CHECK(um_mon_inbox_put(&inbox, "123456", 6, NULL));
    CHECK(!um_mon_inbox_put(&inbox, "12345", 5, NULL)); /* eleven bytes */
    CHECK(um_mon_inbox_put(&inbox, "1234", 4, NULL));
    CHECK(um_mon_inbox_put(&inbox, "", 0, NULL));
    CHECK(!um_mon_inbox_put(&inbox, "", 0, NULL)); /* four packets */
    CHECK_EQ(um_mon_inbox_dropped(&inbox), 2);
    CHECK_EQ(um_mon_inbox_take(&inbox, out, &len, 0, NULL), 0);
    CHECK(um_mon_inbox_put(&inbox, "12345", 5, NULL)); /* room again */
    um_mon_inbox_clear(&inbox, NULL);
}

TEST(a_packet_that_does_not_fit_is_gone_and_tells_its_length)
{
    struct um_mon_inbox inbox;
    char out[4];
    size_t len = sizeof out;
    um_mon_inbox_init(&inbox, 100, 10);
    CHECK(um_mon_inbox_put(&inbox, "12345", 5, NULL));
    CHECK_EQ(um_mon_inbox_take(&inbox, out, &len, 0, NULL), -1);
    CHECK_EQ(len, 5);
    len = sizeof out;
    CHECK_EQ(um_mon_inbox_take(&inbox, out, &len, 0, NULL), 1);
    um_mon_inbox_clear(&inbox, NULL);
}
