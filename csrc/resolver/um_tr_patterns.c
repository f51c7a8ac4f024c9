/* Topic resolution, wildcard interest: matching the cache against patterns and
 * the query streams, one per pattern text. Part of the engine; its thread. */
#include "resolver/um_tr_private.h"

#include "base/um_error.h"

static void incomplete(struct um_tr_engine *engine, struct um_tr_pattern *pattern)
{
    if (!pattern->dead && engine->events.on_pattern_incomplete != NULL) {
        engine->events.on_pattern_incomplete(pattern->user);
    }
}

static void match_topic(struct um_tr_engine *engine, struct um_tr_pattern *pattern, const char *topic)
{
    size_t len = strlen(topic);
    if (pattern->dead || um_map_get(&pattern->matched, topic, len) != NULL || !pattern->match(pattern->user, topic)) {
        return;
    }
    if (um_map_put(&pattern->matched, topic, len, pattern) != 0) {
        incomplete(engine, pattern);
    } else if (engine->events.on_pattern_match(pattern->user, topic) != 0) {
        um_map_remove(&pattern->matched, topic, len);
        incomplete(engine, pattern);
    }
}

void tr_match_patterns(struct um_tr_engine *engine, const char *topic)
{
    struct um_list *it, *next;
    UM_LIST_FOREACH_SAFE(it, next, &engine->patterns)
    {
        match_topic(engine, UM_CONTAINER_OF(it, struct um_tr_pattern, node), topic);
    }
}

/* The callbacks add entries to the table that is searched: take the names first. */
static void match_cache(struct um_tr_engine *engine, struct um_tr_pattern *pattern)
{
    size_t count = 0, cursor = 0;
    struct tr_entry **known = um_malloc((engine->entries.count + 1) * sizeof *known);
    if (known == NULL) {
        incomplete(engine, pattern);
        return;
    }
    struct um_tr_link *link = NULL;
    while ((link = um_tr_table_next(&engine->entries, &cursor, link)) != NULL) {
        struct tr_entry *entry = UM_CONTAINER_OF(link, struct tr_entry, link);
        if (entry->source_count > 0) {
            known[count++] = entry;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (!known[i]->dead) {
            match_topic(engine, pattern, known[i]->name);
        }
    }
    um_free(known);
}

static struct tr_pattern_stream *new_stream(struct um_tr_engine *engine, const char *text, size_t len,
                                            const struct um_tr_timing *timing)
{
    struct tr_pattern_stream *stream = um_calloc(1, sizeof *stream + len + 1);
    if (stream == NULL) {
        return NULL;
    }
    memcpy(stream->text, text, len);
    stream->len = len;
    tr_task_init(&stream->task, TR_TASK_WILDCARD, timing);
    if (um_map_put(&engine->streams, text, len, stream) != 0) {
        um_free(stream);
        return NULL;
    }
    engine->stream_count++;
    um_tr_schedule_start(&stream->task.schedule, timing, engine->now_ns);
    tr_task_place(engine, &stream->task);
    return stream;
}

/* The stream of this text, shared; NULL without error where none may be started. */
static struct tr_pattern_stream *take_stream(struct um_tr_engine *engine, const char *text, int type,
                                             const struct um_tr_timing *timing)
{
    size_t len = strlen(text);
    if (type != LBM_WILDCARD_RCV_PATTERN_TYPE_PCRE || len > UM_LBMR_NAME_MAX) {
        return NULL;
    }
    struct tr_pattern_stream *stream = um_map_get(&engine->streams, text, len);
    if (stream == NULL && engine->stream_count >= TR_PATTERN_STREAMS_MAX) {
        if (!engine->stream_limit_logged) {
            engine->stream_limit_logged = true;
            um_log(UM_LOG_NOTICE, "Resolver-5",
                   "more than %d wildcard patterns: pattern [%s] and later ones send no queries",
                   TR_PATTERN_STREAMS_MAX, text);
        }
        return NULL;
    }
    if (stream == NULL) {
        stream = new_stream(engine, text, len, timing);
    }
    if (stream != NULL) {
        stream->users++;
    }
    return stream;
}

struct um_tr_pattern *um_tr_engine_subscribe_pattern(struct um_tr_engine *engine, uint64_t now_ns, const char *pattern,
                                                     int pattern_type, const struct um_tr_timing *timing,
                                                     bool (*match)(void *pattern_user, const char *topic),
                                                     void *pattern_user)
{
    tr_enter(engine, now_ns);
    const struct um_tr_timing *shared = tr_intern_timing(engine, timing);
    struct um_tr_pattern *added = shared == NULL ? NULL : um_calloc(1, sizeof *added);
    if (added == NULL) {
        um_error_nomem("wildcard interest", sizeof *added);
        tr_leave(engine);
        return NULL;
    }
    added->engine = engine;
    added->match = match;
    added->user = pattern_user;
    um_map_init(&added->matched, NULL);
    added->stream = take_stream(engine, pattern, pattern_type, shared);
    um_list_push_back(&engine->patterns, &added->node);
    match_cache(engine, added);
    tr_leave(engine);
    return added;
}

static void release_stream(struct um_tr_engine *engine, struct tr_pattern_stream *stream)
{
    if (--stream->users > 0) {
        return;
    }
    if (stream->queried) {
        tr_tm_queue(engine, UM_LBMR_TM_LEAVE, UM_LBMR_TM_PCRE, stream->text, stream->len);
    }
    tr_task_idle(&stream->task);
    um_map_remove(&engine->streams, stream->text, stream->len);
    engine->stream_count--;
    um_free(stream);
}

void um_tr_engine_unsubscribe_pattern(struct um_tr_engine *engine, uint64_t now_ns, struct um_tr_pattern *pattern)
{
    tr_enter(engine, now_ns);
    if (pattern->stream != NULL) {
        release_stream(engine, pattern->stream);
    }
    pattern->dead = true;
    um_map_clear(&pattern->matched);
    /* A walk over the patterns may stand on this node: it leaves the list but keeps its successor. */
    pattern->node.prev->next = pattern->node.next;
    pattern->node.next->prev = pattern->node.prev;
    tr_bury(engine, &pattern->grave);
    tr_leave(engine);
}

void um_tr_match_pattern_again(struct um_tr_pattern *pattern)
{
    struct um_tr_engine *engine = pattern->engine;
    tr_enter(engine, engine->now_ns);
    match_cache(engine, pattern);
    tr_leave(engine);
}

void um_tr_pattern_forget(struct um_tr_pattern *pattern, const char *topic)
{
    um_map_remove(&pattern->matched, topic, strlen(topic));
}

void tr_patterns_free(struct um_tr_engine *engine)
{
    struct um_list *it, *next;
    UM_LIST_FOREACH_SAFE(it, next, &engine->patterns)
    {
        struct um_tr_pattern *pattern = UM_CONTAINER_OF(it, struct um_tr_pattern, node);
        if (pattern->stream != NULL && --pattern->stream->users == 0) {
            um_free(pattern->stream);
        }
        um_map_clear(&pattern->matched);
        um_free(pattern);
    }
    um_map_clear(&engine->streams);
}
