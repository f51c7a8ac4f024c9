/* um_context_topics: what a context's cache of topic resolution knows, for tools and applications that look around.
 * Called by applications, on any thread; the cache is read on the context's loop, some of it at a time. */
#include <lbm/um.h>

#include <stdio.h>
#include <string.h>

#include "api/um_sized.h"
#include "base/um_error.h"
#include "base/um_pattern.h"
#include "base/um_table.h"
#include "core/um_context.h"
#include "net/um_loop.h"
#include "wire/um_source_string.h"

struct search {
    const lbm_context_t *ctx;
    const struct um_pattern *pattern; /* NULL: all */
    unsigned char *out;
    size_t size, room, found;
    enum um_pattern_result failure; /* UM_PATTERN_NO: none */
    struct um_table_scan scan;
};

static void found(void *arg, const struct um_tr_source *source, bool kept, uint64_t age_ns)
{
    struct search *search = arg;
    if (search->pattern != NULL) {
        enum um_pattern_result result = um_pattern_match(search->pattern, source->topic, strlen(source->topic), NULL);
        if (result < 0) {
            search->failure = result;
        }
        if (result != UM_PATTERN_YES) {
            return;
        }
    }
    if (search->found++ >= search->room) {
        return;
    }
    um_topic_source_t row = {.transport = source->info.type, .in_use = kept, .age_ms = age_ns / 1000000u};
    snprintf(row.topic, sizeof row.topic, "%s", source->topic);
    if (um_source_string_format(&source->info, row.source, sizeof row.source) < 0) {
        row.source[0] = '\0';
    }
    um_sized_copy(search->out + (search->found - 1) * search->size, search->size, &row, sizeof row);
}

static int search_on_loop(void *arg)
{
    struct search *search = arg;
    um_resolver_some_sources(search->ctx->resolver, um_loop_now(search->ctx->loop), &search->scan, found, search);
    return 0;
}

static int run(lbm_context_t *ctx, struct search *search, size_t *count)
{
    while (!search->scan.done && search->failure == UM_PATTERN_NO) {
        if (um_loop_call(ctx->loop, search_on_loop, search) != 0) {
            return -1;
        }
    }
    if (search->failure == UM_PATTERN_NO_MEMORY) {
        return um_error(UM_ENOMEM, "CoreApi-9050-3", "um_context_topics: no memory to match the pattern");
    }
    if (search->failure != UM_PATTERN_NO) {
        return um_error(UM_EINVAL, "CoreApi-9050-4",
                        "um_context_topics: the pattern takes too long to match; give a simpler one");
    }
    *count = search->found;
    return 0;
}

int um_context_topics(lbm_context_t *ctx, const char *pattern, um_topic_source_t *sources, size_t size, size_t *count)
{
    if (um_context_check_messaging(ctx, "um_context_topics") != 0) {
        return -1;
    }
    if (count == NULL || (sources == NULL && *count > 0) || (*count > 0 && size == 0)) {
        return um_error(UM_EINVAL, "CoreApi-9050-1",
                        "um_context_topics: count NULL, or room for sources without an array or their size");
    }
    struct search search = {
        .ctx = ctx, .out = (unsigned char *)sources, .size = size, .room = *count, .failure = UM_PATTERN_NO};
    if (pattern == NULL) {
        return run(ctx, &search, count);
    }
    struct um_pattern_error why;
    struct um_pattern *compiled = um_pattern_compile(pattern, strlen(pattern), &why);
    if (compiled == NULL) {
        return um_error(why.no_memory ? UM_ENOMEM : UM_EINVAL, "CoreApi-9050-2",
                        "um_context_topics: pattern \"%.80s\": does not compile: %s at offset %zu", pattern, why.text,
                        why.offset);
    }
    search.pattern = compiled;
    int result = run(ctx, &search, count);
    um_pattern_free(compiled);
    return result;
}
