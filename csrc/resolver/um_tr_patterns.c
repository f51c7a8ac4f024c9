/* UDP topic resolution, wildcard interest: the query streams, one for each pattern
 * text that the cache says is wanted. Part of the engine; its thread. */
#include "resolver/um_tr_private.h"

#include "base/um_error.h"

static struct tr_stream *new_stream(struct um_tr_engine *engine, struct um_tr_wanted *wanted,
                                    const struct um_tr_timing *timing)
{
    struct tr_stream *stream = um_calloc(1, sizeof *stream);
    if (stream == NULL) {
        return NULL;
    }
    stream->wanted = wanted;
    tr_task_init(&stream->task, TR_TASK_WILDCARD, timing);
    engine->stream_count++;
    um_tr_schedule_start(&stream->task.schedule, timing, engine->now_ns);
    tr_task_place(engine, &stream->task);
    return stream;
}

/* Patterns of other types cannot be asked for; neither can those beyond the limit. */
static bool may_ask(struct um_tr_engine *engine, const struct um_tr_wanted *wanted)
{
    if (um_tr_wanted_type(wanted) != LBM_WILDCARD_RCV_PATTERN_TYPE_PCRE || wanted->len > UM_LBMR_NAME_MAX) {
        return false;
    }
    if (engine->stream_count < TR_PATTERN_STREAMS_MAX) {
        return true;
    }
    if (!engine->stream_limit_logged) {
        engine->stream_limit_logged = true;
        um_log(UM_LOG_NOTICE, "Resolver-5",
               "more than %d wildcard patterns: pattern [%s] and later ones send no queries", TR_PATTERN_STREAMS_MAX,
               wanted->text);
    }
    return false;
}

int tr_stream_start(void *service, struct um_tr_wanted *wanted, const struct um_tr_timing *asking)
{
    struct um_tr_engine *engine = service;
    int rc = 0;
    tr_enter(engine, um_tr_cache_now(engine->cache));
    if (may_ask(engine, wanted)) {
        wanted->schedule = new_stream(engine, wanted, asking);
        rc = wanted->schedule == NULL ? -1 : 0;
    }
    tr_leave(engine);
    return rc;
}

void tr_stream_stop(void *service, struct um_tr_wanted *wanted)
{
    struct um_tr_engine *engine = service;
    struct tr_stream *stream = wanted->schedule;
    if (stream == NULL) {
        return;
    }
    tr_enter(engine, um_tr_cache_now(engine->cache));
    if ((stream->task.item.flags & TR_QUERIED) != 0) {
        tr_tm_queue(engine, UM_LBMR_TM_LEAVE, UM_LBMR_TM_PCRE, wanted->text, wanted->len);
    }
    tr_task_idle(&stream->task);
    engine->stream_count--;
    um_free(stream);
    wanted->schedule = NULL;
    tr_leave(engine);
}

struct um_tr_pattern *um_tr_engine_subscribe_pattern(struct um_tr_engine *engine, uint64_t now_ns, const char *pattern,
                                                     int pattern_type, const struct um_tr_timing *timing,
                                                     bool (*match)(void *pattern_user, const char *topic),
                                                     void *pattern_user)
{
    tr_enter(engine, now_ns);
    const struct um_tr_timing *shared = tr_intern_timing(engine, timing);
    struct um_tr_pattern *added = shared == NULL
                                      ? NULL
                                      : um_tr_cache_subscribe_pattern(engine->cache, engine->now_ns, pattern,
                                                                      pattern_type, shared, match, pattern_user);
    tr_leave(engine);
    return added;
}

void um_tr_engine_unsubscribe_pattern(struct um_tr_engine *engine, uint64_t now_ns, struct um_tr_pattern *pattern)
{
    tr_enter(engine, now_ns);
    um_tr_cache_unsubscribe_pattern(engine->cache, engine->now_ns, pattern);
    tr_leave(engine);
}
