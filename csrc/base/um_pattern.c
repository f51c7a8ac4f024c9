/* Wildcard patterns on PCRE2 with match, depth, heap and size limits, and an
 * LRU cache of compiled ones. Used by core (wildcard receivers) and by the
 * resolver (queries from the network), on the context's thread. */
#include "base/um_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <string.h>

#include "base/um_list.h"
#include "base/um_map.h"
#include "base/um_mem.h"

/* A topic name has at most 246 characters: honest patterns need a small part of this. */
#define PATTERN_MATCH_LIMIT 5000 /* per starting position */
#define PATTERN_DEPTH_LIMIT 500
#define PATTERN_HEAP_LIMIT_KIB 256
#define PATTERN_TEXT_MAX 1024
#define PATTERN_COMPILED_MAX (64 * 1024)
#define PATTERN_NEST_LIMIT 50

struct um_pattern {
    pcre2_code *code;
    pcre2_match_data *match_data;
    pcre2_match_context *match_context;
};

static void *pattern_malloc(PCRE2_SIZE size, void *unused)
{
    (void)unused;
    return um_malloc(size);
}

static void pattern_free(void *ptr, void *unused)
{
    (void)unused;
    um_free(ptr);
}

static void set_error(struct um_pattern_error *error, size_t offset, const char *text)
{
    if (error != NULL) {
        error->offset = offset;
        error->no_memory = false;
        snprintf(error->text, sizeof error->text, "%s", text);
    }
}

static void set_no_memory(struct um_pattern_error *error)
{
    set_error(error, 0, "out of memory");
    if (error != NULL) {
        error->no_memory = true;
    }
}

static pcre2_code *compile_limited(pcre2_general_context *general, const char *text, size_t len,
                                   struct um_pattern_error *error)
{
    int number = 0;
    PCRE2_SIZE offset = 0, size = 0;
    pcre2_compile_context *context = pcre2_compile_context_create(general);
    if (context == NULL) {
        set_no_memory(error);
        return NULL;
    }
    pcre2_set_max_pattern_length(context, PATTERN_TEXT_MAX);
    pcre2_set_parens_nest_limit(context, PATTERN_NEST_LIMIT);
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)text, len, 0, &number, &offset, context);
    pcre2_compile_context_free(context);
    if (code == NULL && number == PCRE2_ERROR_HEAP_FAILED) {
        set_no_memory(error);
    } else if (code == NULL) {
        char message[128] = "";
        pcre2_get_error_message(number, (PCRE2_UCHAR *)message, sizeof message);
        set_error(error, offset, message);
    } else if (pcre2_pattern_info(code, PCRE2_INFO_SIZE, &size) != 0 || size > PATTERN_COMPILED_MAX) {
        pcre2_code_free(code);
        set_error(error, 0, "compiled pattern too large");
        return NULL;
    }
    return code;
}

static bool prepare_match(struct um_pattern *pattern, pcre2_general_context *general)
{
    pattern->match_data = pcre2_match_data_create(1, general);
    pattern->match_context = pcre2_match_context_create(general);
    if (pattern->match_data == NULL || pattern->match_context == NULL) {
        return false;
    }
    pcre2_set_match_limit(pattern->match_context, PATTERN_MATCH_LIMIT);
    pcre2_set_depth_limit(pattern->match_context, PATTERN_DEPTH_LIMIT);
    pcre2_set_heap_limit(pattern->match_context, PATTERN_HEAP_LIMIT_KIB);
    return true;
}

struct um_pattern *um_pattern_compile(const char *text, size_t len, struct um_pattern_error *error)
{
    set_error(error, 0, "");
    pcre2_general_context *general = pcre2_general_context_create(pattern_malloc, pattern_free, NULL);
    struct um_pattern *pattern = um_calloc(1, sizeof *pattern);
    if (general == NULL || pattern == NULL) {
        set_no_memory(error);
    } else {
        pattern->code = compile_limited(general, text, len, error);
        if (pattern->code != NULL && !prepare_match(pattern, general)) {
            set_no_memory(error);
            pcre2_code_free(pattern->code);
            pattern->code = NULL;
        }
    }
    pcre2_general_context_free(general);
    if (pattern == NULL || pattern->code == NULL) {
        um_pattern_free(pattern);
        return NULL;
    }
    return pattern;
}

void um_pattern_free(struct um_pattern *pattern)
{
    if (pattern == NULL) {
        return;
    }
    pcre2_match_context_free(pattern->match_context);
    pcre2_match_data_free(pattern->match_data);
    pcre2_code_free(pattern->code);
    um_free(pattern);
}

enum um_pattern_result um_pattern_match(const struct um_pattern *pattern, const char *subject, size_t len, int *code)
{
    int result =
        pcre2_match(pattern->code, (PCRE2_SPTR)subject, len, 0, 0, pattern->match_data, pattern->match_context);
    if (code != NULL) {
        *code = result;
    }
    if (result >= 0) {
        return UM_PATTERN_YES;
    }
    switch (result) {
    case PCRE2_ERROR_NOMATCH:
        return UM_PATTERN_NO;
    case PCRE2_ERROR_NOMEMORY:
        return UM_PATTERN_NO_MEMORY;
    default:
        return UM_PATTERN_ERROR;
    }
}

struct cache_entry {
    struct um_list node;
    struct um_pattern *pattern;
    size_t len;
    char text[];
};

struct um_pattern_cache {
    struct um_map by_text;
    struct um_list recent; /* most recently used first */
    size_t capacity;
};

struct um_pattern_cache *um_pattern_cache_create(size_t capacity)
{
    struct um_pattern_cache *cache = um_calloc(1, sizeof *cache);
    if (cache != NULL) {
        um_map_init(&cache->by_text, NULL);
        um_list_init(&cache->recent);
        cache->capacity = capacity;
    }
    return cache;
}

static void drop_entry(struct um_pattern_cache *cache, struct cache_entry *entry)
{
    um_list_remove(&entry->node);
    um_map_remove(&cache->by_text, entry->text, entry->len);
    um_pattern_free(entry->pattern);
    um_free(entry);
}

static struct cache_entry *oldest(struct um_pattern_cache *cache)
{
    return UM_CONTAINER_OF(cache->recent.prev, struct cache_entry, node);
}

void um_pattern_cache_destroy(struct um_pattern_cache *cache)
{
    if (cache == NULL) {
        return;
    }
    while (!um_list_empty(&cache->recent)) {
        drop_entry(cache, oldest(cache));
    }
    um_map_clear(&cache->by_text);
    um_free(cache);
}

static struct cache_entry *add_entry(struct um_pattern_cache *cache, const char *text, size_t len,
                                     struct um_pattern_error *error)
{
    struct cache_entry *entry = um_malloc(sizeof *entry + len + 1);
    struct um_pattern *pattern = um_pattern_compile(text, len, error);
    if (entry == NULL || pattern == NULL) {
        if (entry == NULL) {
            set_no_memory(error);
        }
        um_pattern_free(pattern);
        um_free(entry);
        return NULL;
    }
    um_list_init(&entry->node);
    entry->pattern = pattern;
    entry->len = len;
    memcpy(entry->text, text, len);
    entry->text[len] = '\0';
    if (um_map_put(&cache->by_text, text, len, entry) != 0) {
        set_no_memory(error);
        um_pattern_free(pattern);
        um_free(entry);
        return NULL;
    }
    um_list_push_front(&cache->recent, &entry->node);
    return entry;
}

const struct um_pattern *um_pattern_cache_get(struct um_pattern_cache *cache, const char *text, size_t len,
                                              struct um_pattern_error *error)
{
    struct cache_entry *entry = um_map_get(&cache->by_text, text, len);
    if (entry != NULL) {
        um_list_remove(&entry->node);
        um_list_push_front(&cache->recent, &entry->node);
        return entry->pattern;
    }
    if (um_map_count(&cache->by_text) >= cache->capacity && !um_list_empty(&cache->recent)) {
        drop_entry(cache, oldest(cache));
    }
    entry = add_entry(cache, text, len, error);
    return entry == NULL ? NULL : entry->pattern;
}

bool um_pattern_cache_has(const struct um_pattern_cache *cache, const char *text, size_t len)
{
    return um_map_get(&cache->by_text, text, len) != NULL;
}

void um_pattern_cache_drop(struct um_pattern_cache *cache, const char *text, size_t len)
{
    struct cache_entry *entry = um_map_get(&cache->by_text, text, len);
    if (entry != NULL) {
        drop_entry(cache, entry);
    }
}

size_t um_pattern_cache_count(const struct um_pattern_cache *cache)
{
    return um_map_count(&cache->by_text);
}
