/* Structures kept by their bytes: equal ones are one, and go with the last reference. */
#include "um_test.h"

#include "base/um_intern.h"
#include "base/um_mem.h"

TEST(equal_bytes_are_kept_once)
{
    const char *a = um_intern("alike", 6), *b = um_intern("alike", 6), *c = um_intern("other", 6);
    CHECK(a == b);
    CHECK(a != c);
    CHECK_STR(a, "alike");
    CHECK_EQ(um_intern_count(), 2);
    um_intern_drop(a);
    um_intern_drop(c);
    CHECK_EQ(um_intern_count(), 1);
    CHECK_STR(b, "alike");
    um_intern_drop(b);
    um_intern_drop(NULL);
    CHECK_EQ(um_intern_count(), 0);
}

TEST(the_beginning_of_longer_bytes_is_something_else)
{
    const char *a = um_intern("alike", 5), *b = um_intern("alike", 3);
    CHECK(a != b);
    um_intern_drop(a);
    um_intern_drop(b);
    CHECK_EQ(um_intern_count(), 0);
}

static int allowed;

static bool fail_when_used_up(size_t size)
{
    (void)size;
    return allowed-- <= 0;
}

TEST(without_memory_nothing_is_kept)
{
    for (int n = 0; n < 3; n++) {
        allowed = n;
        um_mem_set_fail_hook(fail_when_used_up);
        const char *kept = um_intern("alike", 6);
        um_mem_set_fail_hook(NULL);
        CHECK_EQ(kept != NULL, n == 2);
        CHECK_EQ(um_intern_count(), kept != NULL);
        um_intern_drop(kept);
    }
}
