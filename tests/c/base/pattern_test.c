/* Wildcard patterns: search semantics, limits against hostile patterns, cache. */
#include "um_test.h"

#include <stdio.h>

#include "base/um_pattern.h"

static enum um_pattern_result match(const char *pattern, const char *subject)
{
    struct um_pattern *compiled = um_pattern_compile(pattern, strlen(pattern), NULL);
    if (compiled == NULL) {
        return UM_PATTERN_ERROR;
    }
    enum um_pattern_result result = um_pattern_match(compiled, subject, strlen(subject), NULL);
    um_pattern_free(compiled);
    return result;
}

TEST(search_is_unanchored_and_case_sensitive)
{
    CHECK_EQ(match("rde", "orders"), UM_PATTERN_YES);
    CHECK_EQ(match("^ord.*$", "orders"), UM_PATTERN_YES);
    CHECK_EQ(match("^ord.*$", "quotes"), UM_PATTERN_NO);
    CHECK_EQ(match("ORD", "orders"), UM_PATTERN_NO);
}

TEST(bad_pattern_is_refused_with_offset_and_text)
{
    struct um_pattern_error error;
    CHECK(um_pattern_compile("ab(c", 4, &error) == NULL);
    CHECK_EQ(error.offset, 4);
    CHECK(error.text[0] != '\0');
}

TEST(hostile_pattern_stops_at_a_limit)
{
    char subject[247];
    memset(subject, 'a', 246);
    subject[245] = '!';
    subject[246] = '\0';
    CHECK_EQ(match("^(a+)+$", subject), UM_PATTERN_ERROR);
    CHECK_EQ(match("(a*)*(a*)*(a*)*[bc]$", subject), UM_PATTERN_ERROR);
}

TEST(pattern_that_would_compile_to_a_giant_is_refused)
{
    CHECK(um_pattern_compile("((((a{1,200}){1,200}){1,50}))", 29, NULL) == NULL);
}

TEST(cache_keeps_at_most_its_capacity_and_drops_the_oldest)
{
    struct um_pattern_cache *cache = um_pattern_cache_create(8);
    char text[16];
    for (int i = 0; i < 100; i++) {
        int len = snprintf(text, sizeof text, "^p%d$", i);
        CHECK(um_pattern_cache_get(cache, text, (size_t)len, NULL) != NULL);
        CHECK(um_pattern_cache_get(cache, "keep", 4, NULL) != NULL);
    }
    CHECK_EQ(um_pattern_cache_count(cache), 8);
    CHECK(um_pattern_cache_get(cache, "(", 1, NULL) == NULL);
    um_pattern_cache_destroy(cache);
}
