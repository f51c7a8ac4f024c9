/* When a withdrawn source is over. */
#include "core/um_rcv_withdrawal.h"
#include "um_test.h"

static struct um_rcv_withdrawal w;

TEST(it_is_over_when_nothing_came_since_the_last_look)
{
    um_rcv_withdrawal_begin(&w, 7, 3);
    CHECK(um_rcv_withdrawal_goes_on(&w, 8, 3, false, false));
    CHECK(!um_rcv_withdrawal_goes_on(&w, 8, 3, false, false));
}

TEST(an_unread_session_and_repairs_are_waited_for_however_long_it_takes)
{
    um_rcv_withdrawal_begin(&w, 7, 3);
    for (int i = 0; i < 1000000; i++) {
        CHECK(um_rcv_withdrawal_goes_on(&w, 7, 3, true, false));
        CHECK(um_rcv_withdrawal_goes_on(&w, 7, 3, false, true));
    }
    CHECK(!um_rcv_withdrawal_goes_on(&w, 7, 3, false, false));
}

TEST(a_session_that_others_keep_busy_does_not_put_the_end_off_for_ever)
{
    unsigned looks = 0;
    um_rcv_withdrawal_begin(&w, 7, 0);
    while (um_rcv_withdrawal_goes_on(&w, 7, looks + 1, looks % 2 == 0, false)) {
        looks++;
        CHECK(looks <= UM_RCV_WITHDRAWAL_LOOKS_MAX);
    }
    CHECK_EQ(looks, UM_RCV_WITHDRAWAL_LOOKS_MAX);
}

TEST(what_comes_of_the_source_begins_the_count_anew)
{
    um_rcv_withdrawal_begin(&w, 0, 0);
    for (unsigned i = 1; i < 10 * UM_RCV_WITHDRAWAL_LOOKS_MAX; i++) {
        CHECK(um_rcv_withdrawal_goes_on(&w, i / UM_RCV_WITHDRAWAL_LOOKS_MAX, i, false, false));
    }
}
