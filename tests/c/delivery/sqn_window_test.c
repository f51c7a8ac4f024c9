/* The window of sequence numbers seen: duplicates, sliding, jumps, the wrap of the numbers. */
#include "delivery/um_sqn_window.h"

#include "base/um_mem.h"
#include "base/um_random.h"
#include "um_test.h"

static struct um_sqn_window made(size_t size, size_t step)
{
    struct um_sqn_window window;
    if (um_sqn_window_init(&window, size, step) != 0) {
        abort();
    }
    return window;
}

TEST(a_number_is_new_once)
{
    struct um_sqn_window window = made(64, 32);
    CHECK_EQ(um_sqn_window_take(&window, 7), UM_SQN_NEW);
    CHECK_EQ(um_sqn_window_take(&window, 7), UM_SQN_SEEN);
    CHECK_EQ(um_sqn_window_take(&window, 8), UM_SQN_NEW);
    CHECK_EQ(um_sqn_window_take(&window, 7), UM_SQN_SEEN);
    um_sqn_window_free(&window);
}

TEST(what_was_sent_before_the_first_number_seen_is_new_when_it_comes)
{
    struct um_sqn_window window = made(64, 32);
    CHECK_EQ(um_sqn_window_take(&window, 100), UM_SQN_NEW);
    CHECK_EQ(um_sqn_window_take(&window, 68), UM_SQN_NEW);
    CHECK_EQ(um_sqn_window_take(&window, 67), UM_SQN_BEHIND);
    um_sqn_window_free(&window);
}

TEST(it_slides_by_its_step)
{
    struct um_sqn_window window = made(64, 16);
    um_sqn_window_take(&window, 48); /* covers 0..63 */
    CHECK_EQ(um_sqn_window_take(&window, 0), UM_SQN_NEW);
    CHECK_EQ(um_sqn_window_take(&window, 63), UM_SQN_NEW);
    CHECK_EQ(um_sqn_window_take(&window, 0), UM_SQN_SEEN);
    CHECK_EQ(um_sqn_window_take(&window, 64), UM_SQN_NEW); /* now 16..79 */
    CHECK_EQ(um_sqn_window_take(&window, 15), UM_SQN_BEHIND);
    CHECK_EQ(um_sqn_window_take(&window, 16), UM_SQN_NEW);
    CHECK_EQ(um_sqn_window_take(&window, 48), UM_SQN_SEEN);
    CHECK_EQ(um_sqn_window_take(&window, 79), UM_SQN_NEW);
    CHECK_EQ(um_sqn_window_take(&window, 63), UM_SQN_SEEN);
    um_sqn_window_free(&window);
}

TEST(a_jump_forgets_everything_before)
{
    struct um_sqn_window window = made(64, 32);
    um_sqn_window_take(&window, 5);
    CHECK_EQ(um_sqn_window_take(&window, 1000000), UM_SQN_NEW);
    CHECK_EQ(um_sqn_window_take(&window, 1000000), UM_SQN_SEEN);
    CHECK_EQ(um_sqn_window_take(&window, 5), UM_SQN_BEHIND);
    CHECK_EQ(um_sqn_window_take(&window, 999999), UM_SQN_NEW);
    um_sqn_window_free(&window);
}

TEST(a_window_larger_than_sense_is_the_largest_one)
{
    struct um_sqn_window window = made((size_t)1 << 40, 8);
    CHECK_EQ(window.size, UM_SQN_WINDOW_MAX);
    CHECK_EQ(um_sqn_window_take(&window, 1), UM_SQN_NEW);
    CHECK_EQ(um_sqn_window_take(&window, 1), UM_SQN_SEEN);
    um_sqn_window_free(&window);
}

/* Against a table of what was taken: over the wrap, with numbers that come late, twice, or from far behind. */
TEST(over_the_wrap_it_never_takes_a_number_for_new_twice_while_it_is_inside)
{
    enum { NUMBERS = 20000, REACH = 300 };
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct um_sqn_window window = made(512, 128);
        struct um_rng rng;
        um_rng_seed(&rng, seed);
        uint8_t *taken = um_calloc(1, NUMBERS + REACH);
        uint32_t origin = (uint32_t)0 - NUMBERS / 2;
        uint32_t newest = REACH;
        CHECK_EQ(um_sqn_window_take(&window, origin + newest), UM_SQN_NEW);
        taken[newest] = 1;
        while (newest < NUMBERS) {
            uint32_t index = um_rng_range(&rng, 0, 1) == 0 ? newest + 1 + (uint32_t)um_rng_range(&rng, 0, 2)
                                                           : newest - (uint32_t)um_rng_range(&rng, 0, REACH - 1);
            enum um_sqn_taken result = um_sqn_window_take(&window, origin + index);
            newest = index > newest ? index : newest;
            CHECK_EQ(result, taken[index] ? UM_SQN_SEEN : UM_SQN_NEW);
            taken[index] = 1;
        }
        um_free(taken);
        um_sqn_window_free(&window);
    }
}
