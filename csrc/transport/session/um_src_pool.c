/* The source sessions of one context and transport. See um_src_pool.h. */
#include "transport/session/um_src_pool.h"

#include <string.h>

#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"

static struct um_src_session *session_at(const struct um_list *node)
{
    return UM_CONTAINER_OF((struct um_list *)node, struct um_src_session, pool_node);
}

struct um_src_transport *um_src_pool_create(const struct um_src_transport_ops *ops, struct um_transport_env *env)
{
    struct um_src_transport *pool = ops->create != NULL ? ops->create(env) : um_calloc(1, sizeof *pool);
    if (pool == NULL) {
        if (ops->create == NULL) {
            um_error_nomem("sources of a transport", sizeof *pool);
        }
        return NULL;
    }
    pool->ops = ops;
    pool->env = env;
    um_list_init(&pool->sessions);
    return pool;
}

/* ---- which session ---- */

struct um_src_session *um_src_pool_find(const struct um_src_transport *pool, uint32_t part, uint32_t id)
{
    const struct um_list *it;
    UM_LIST_FOREACH(it, &pool->sessions)
    {
        struct um_src_session *session = session_at(it);
        const struct um_src_place *place = &session->place;
        if (!place->apart && place->part == part && (place->id == id || (place->alias == id && id != 0))) {
            return session;
        }
    }
    return NULL;
}

bool um_src_pool_free_id(const struct um_src_transport *pool, uint32_t part, uint32_t low, uint32_t high, uint32_t *id)
{
    for (uint64_t i = low; i <= high; i++) { /* among one more than there are sessions, one is free */
        if (um_src_pool_find(pool, part, (uint32_t)i) == NULL) {
            *id = (uint32_t)i;
            return true;
        }
    }
    return false;
}

static uint64_t counted(const struct um_src_transport *pool, uint32_t part)
{
    const struct um_list *it;
    uint64_t count = 0;
    UM_LIST_FOREACH(it, &pool->sessions)
    {
        const struct um_src_place *place = &session_at(it)->place;
        count += place->counted && place->part == part;
    }
    return count;
}

static struct um_list *after(struct um_src_transport *pool, struct um_list *node)
{
    return node->next == &pool->sessions ? NULL : node->next;
}

/* The one whose turn it is. NULL: none is shared. */
static struct um_src_session *next_shared(struct um_src_transport *pool, uint32_t part, bool smart)
{
    struct um_list *start = pool->next != NULL ? pool->next : pool->sessions.next, *it = start;
    do {
        const struct um_src_place *place = it != &pool->sessions ? &session_at(it)->place : NULL;
        if (place != NULL && place->shared && place->part == part && place->smart == smart) {
            return session_at(it);
        }
        it = it->next;
    } while (it != start);
    return NULL;
}

static struct um_src_session *open_session(struct um_src_transport *pool, const struct um_source_options *opts,
                                           const char *topic, struct um_src_place *place)
{
    bool apart = place->apart;
    place->counted = !place->named;
    place->shared = true;
    struct um_src_session *session = pool->ops->open(pool, opts, topic, place);
    if (session != NULL) {
        place->counted = place->counted && !apart;
        place->shared = place->shared && !apart;
        session->pool = pool;
        session->place = *place;
        um_lock_take(&pool->lock);
        um_list_push_back(&pool->sessions, &session->pool_node);
        um_lock_give(&pool->lock);
    }
    return session;
}

/* Smart sources and others never share a session, and the first smart one decides the size of the buffers. */
static bool may_join(const struct um_src_session *session, const struct um_source_options *opts, const char *topic,
                     bool smart)
{
    if (session->place.smart != smart) {
        um_error(
            UM_EINVAL, smart ? "CoreApi-10160-5575" : "CoreApi-10160-5565",
            "source \"%s\": the session that its options name belongs to %s sources: smart sources and others cannot "
            "share one; name another, or none",
            topic, smart ? "other" : "smart");
        return false;
    }
    if (smart && um_src_smart_message_max(opts) > um_src_smart_message_max(&session->first)) {
        um_error(
            UM_EINVAL, "CoreApi-10160-5566",
            "source \"%s\": smart_src_max_message_length %d: must be at most %d, and "
            "smart_src_message_property_int_count %d at most %d: the first smart source of the session has fixed the "
            "size of its buffers",
            topic, opts->smart_src_max_message_length, session->first.smart_src_max_message_length,
            opts->smart_src_message_property_int_count, session->first.smart_src_message_property_int_count);
        return false;
    }
    return true;
}

/* The pool is full, and none of its sessions is one of these. */
static struct um_src_session *none_to_share(const char *topic, bool smart)
{
    um_error(UM_EINVAL, smart ? "CoreApi-10160-5575" : "CoreApi-10160-5565",
             "source \"%s\": every session that the context allows belongs to %s sources: smart sources and others "
             "cannot share one; allow more sessions",
             topic, smart ? "other" : "smart");
    return NULL;
}

static struct um_src_session *choose(struct um_src_transport *pool, const struct um_source_options *opts,
                                     const char *topic, bool smart)
{
    struct um_src_place place = {.smart = smart};
    struct um_src_session *session = NULL;
    pool->ops->place(opts, &place);
    if (place.named) {
        session = um_src_pool_find(pool, place.part, place.id);
    } else if (counted(pool, place.part) >= pool->ops->limit(pool->env->opts)) {
        session = next_shared(pool, place.part, smart);
        if (session == NULL && next_shared(pool, place.part, !smart) != NULL) {
            return none_to_share(topic, smart);
        }
    }
    if (session == NULL) {
        return open_session(pool, opts, topic, &place);
    }
    if (!place.named) {
        pool->next = after(pool, &session->pool_node); /* whose turn is over */
    }
    return may_join(session, opts, topic, smart) ? session : NULL;
}

int um_src_pool_attach(struct um_src_transport *pool, const struct um_source_options *opts, const char *topic,
                       struct um_src_stream *stream)
{
    if (pool->ops->accepts != NULL && pool->ops->accepts(opts) != 0) {
        return -1;
    }
    struct um_src_session *session = choose(pool, opts, topic, stream->smart);
    if (session == NULL) {
        return -1;
    }
    if (!um_list_empty(&session->streams)) {
        pool->ops->compare(session, opts, topic);
    }
    um_src_session_add(session, stream);
    return 0;
}

int um_src_pool_attach_apart(struct um_src_transport *pool, const struct um_source_options *opts, const char *name,
                             struct um_src_stream *stream)
{
    struct um_src_place place = {.apart = true};
    pool->ops->place(opts, &place);
    struct um_src_session *session = open_session(pool, opts, name, &place);
    if (session == NULL) {
        return -1;
    }
    um_src_session_add(session, stream);
    return 0;
}

void um_src_pool_warn(const char *topic, const char *where, unsigned number, const struct um_src_decided *list,
                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i].wanted != list[i].has) {
            um_log(UM_LOG_WARNING, list[i].id,
                   "source \"%s\": %s %llu is ignored: the session %s %u was made by its first source with %llu", topic,
                   list[i].option, (unsigned long long)list[i].wanted, where, number, (unsigned long long)list[i].has);
        }
    }
}

/* ---- the end ---- */

void um_src_pool_close(struct um_src_session *session)
{
    struct um_src_transport *pool = session->pool;
    if (pool->next == &session->pool_node) {
        pool->next = after(pool, &session->pool_node);
    }
    um_lock_take(&pool->lock);
    um_list_remove(&session->pool_node);
    um_lock_give(&pool->lock);
    pool->ops->close(session);
}

void um_src_pool_destroy(struct um_src_transport *pool)
{
    while (!um_list_empty(&pool->sessions)) {
        um_src_pool_close(session_at(pool->sessions.next));
    }
    if (pool->ops->destroy != NULL) {
        pool->ops->destroy(pool);
    } else {
        um_free(pool);
    }
}

/* ---- all of them ---- */

static int stats_of(struct um_src_transport *pool, bool apart, lbm_src_transport_stats_t *out, int max)
{
    struct um_list *it;
    int count = 0;
    UM_LIST_FOREACH(it, &pool->sessions)
    {
        if (session_at(it)->place.apart != apart) {
            continue;
        }
        if (count < max) {
            session_at(it)->ops->stats(session_at(it), &out[count]);
        }
        count++;
    }
    return count;
}

int um_src_pool_stats(struct um_src_transport *pool, lbm_src_transport_stats_t *out, int max)
{
    return stats_of(pool, false, out, max);
}

int um_src_pool_apart_stats(struct um_src_transport *pool, lbm_src_transport_stats_t *out, int max)
{
    return stats_of(pool, true, out, max);
}

static void reset_stats_of(struct um_src_transport *pool, bool apart)
{
    struct um_list *it;
    UM_LIST_FOREACH(it, &pool->sessions)
    {
        struct um_src_session *session = session_at(it);
        if (session->place.apart != apart) {
            continue;
        }
        um_src_session_lock(session);
        memset(&session->drops, 0, sizeof session->drops);
        if (session->ops->stats_reset != NULL) {
            session->ops->stats_reset(session);
        }
        um_src_session_unlock(session);
    }
}

void um_src_pool_stats_reset(struct um_src_transport *pool)
{
    reset_stats_of(pool, false);
}

void um_src_pool_apart_stats_reset(struct um_src_transport *pool)
{
    reset_stats_of(pool, true);
}

void um_src_pool_flush(struct um_src_transport *pool)
{
    struct um_list *it;
    UM_LIST_FOREACH(it, &pool->sessions)
    {
        struct um_src_session *session = session_at(it);
        um_src_session_lock(session);
        um_src_session_flush(session);
        um_src_session_unlock(session);
    }
}

struct um_src_stream *um_src_session_stream(struct um_src_session *session, uint32_t tidx)
{
    struct um_list *it;
    UM_LIST_FOREACH(it, &session->streams)
    {
        struct um_src_stream *stream = UM_CONTAINER_OF(it, struct um_src_stream, node);
        if (stream->tidx == tidx) {
            return stream;
        }
    }
    return NULL;
}
