/* Wildcard patterns: PCRE2 with limits, so that no pattern from an application
 * or from the network can hang or exhaust the process, and a least-recently-used
 * cache of compiled patterns. Confined to one thread (the context's loop). */
#ifndef UM_BASE_PATTERN_H
#define UM_BASE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

struct um_pattern;

/* What went wrong in a compilation; text as PCRE2 words it. */
struct um_pattern_error {
    size_t offset;
    bool no_memory; /* the pattern may be good */
    char text[128];
};

/* NULL: does not compile, or out of memory; `error` (may be NULL) says which. */
struct um_pattern *um_pattern_compile(const char *text, size_t len, struct um_pattern_error *error);
void um_pattern_free(struct um_pattern *pattern); /* NULL is harmless */

enum um_pattern_result { UM_PATTERN_NO = 0, UM_PATTERN_YES = 1, UM_PATTERN_ERROR = -1, UM_PATTERN_NO_MEMORY = -2 };

/* Unanchored, case-sensitive search in the subject. ERROR: a limit was reached; NO_MEMORY: not decided, try again.
 * *code (may be NULL) has PCRE2's number. */
enum um_pattern_result um_pattern_match(const struct um_pattern *pattern, const char *subject, size_t len, int *code);

/* Cache of compiled patterns, at most `capacity`; the least recently used one goes first. */
struct um_pattern_cache;
struct um_pattern_cache *um_pattern_cache_create(size_t capacity); /* NULL: out of memory */
void um_pattern_cache_destroy(struct um_pattern_cache *cache);
/* Valid until the next call on this cache. NULL as um_pattern_compile. */
const struct um_pattern *um_pattern_cache_get(struct um_pattern_cache *cache, const char *text, size_t len,
                                              struct um_pattern_error *error);
bool um_pattern_cache_has(const struct um_pattern_cache *cache, const char *text, size_t len);
void um_pattern_cache_drop(struct um_pattern_cache *cache, const char *text, size_t len);
size_t um_pattern_cache_count(const struct um_pattern_cache *cache);

#endif
