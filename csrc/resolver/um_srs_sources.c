/* Sources of the SRS, by OTID: announced, changed, deleted, left and ended. */
#include "base/um_hash.h"
#include "base/um_intern.h"
#include "base/um_mem.h"
#include "resolver/um_srs_private.h"
#include "resolver/um_tr_cache.h"

/* What the shape of a source may take, which is shared by those that are alike: charged as if it were not. */
#define SOURCE_CHARGE (sizeof(struct srs_source) + sizeof(struct srs_shape))
#define FIRST_LEAVES 16

static struct srs_source *find(const struct um_srs_engine *engine, const uint8_t *otid)
{
    struct um_table_link *link = um_table_find(&engine->sources, um_hash_bytes(otid, UM_LBMSRS_OTID_LEN));
    for (; link != NULL; link = um_table_find_next(link)) {
        struct srs_source *source = UM_CONTAINER_OF(link, struct srs_source, link);
        if (memcmp(source->otid, otid, UM_LBMSRS_OTID_LEN) == 0) {
            return source;
        }
    }
    return NULL;
}

/* Interned; NULL: no memory. */
static const struct srs_shape *shape_of(const struct um_lbmsrs_record *record)
{
    struct srs_shape shape;
    memset(&shape, 0, sizeof(shape)); /* padding counts */
    shape.ulb_registration_id = record->ulb_registration_id;
    shape.host_id = record->host_id;
    shape.functionality_flags = record->functionality_flags;
    shape.request_ip = record->request_ip;
    shape.domain_id = record->domain_id;
    shape.ulb_source_id = record->ulb_source_id;
    shape.ulb_queue_id = record->ulb_queue_id;
    shape.version = record->version;
    shape.version_flags = record->version_flags;
    shape.cost = record->cost;
    shape.request_port = record->request_port;
    shape.ttl = record->ttl;
    shape.encryption = record->encryption;
    shape.compression = record->compression;
    shape.context_type = record->context_type;
    shape.source_len = (uint8_t)record->source.len;
    memcpy(shape.instance, record->context_instance, sizeof(shape.instance));
    memcpy(shape.source, record->source.ptr, record->source.len);
    return um_intern(&shape, offsetof(struct srs_shape, source) + record->source.len + 1);
}

void srs_source_record(const struct srs_source *source, bool end, struct um_lbmsrs_record *out)
{
    const struct srs_shape *shape = source->shape;
    *out = (struct um_lbmsrs_record){.id = UM_LBMSRS_SIR,
                                     .otid = source->otid,
                                     .topic = {(const uint8_t *)source->topic->name, source->topic->len},
                                     .source = {(const uint8_t *)shape->source, shape->source_len},
                                     .host_id = shape->host_id,
                                     .topic_index = source->link.word,
                                     .functionality_flags = shape->functionality_flags,
                                     .request_ip = shape->request_ip,
                                     .request_port = shape->request_port,
                                     .encryption = shape->encryption,
                                     .compression = shape->compression,
                                     .ulb_source_id = shape->ulb_source_id,
                                     .ulb_queue_id = shape->ulb_queue_id,
                                     .ulb_registration_id = shape->ulb_registration_id,
                                     .ttl = shape->ttl,
                                     .cost = end ? UM_LBMSRS_COST_END : shape->cost,
                                     .domain_id = shape->domain_id,
                                     .context_instance = shape->instance,
                                     .context_type = shape->context_type,
                                     .version = shape->version,
                                     .version_flags = shape->version_flags};
}

/* ---- beginning and end ----------------------------------------------------------- */

static void count_active(struct srs_session *session, int count)
{
    session->source_count += (size_t)count;
    if (session->peer != NULL) {
        struct um_srs_client_stats *stats = &session->peer->stats;
        stats->max_sources = session->source_count > stats->max_sources ? session->source_count : stats->max_sources;
    }
}

static void add(struct um_srs_peer *peer, const struct um_lbmsrs_record *record, const struct srs_shape *shape)
{
    struct um_srs_engine *engine = peer->engine;
    struct srs_session *session = peer->session;
    struct srs_topic *topic = srs_topic_get(engine, record->topic);
    struct srs_source *source =
        topic != NULL ? srs_state_alloc(engine, session->address, sizeof(*source), SOURCE_CHARGE) : NULL;
    if (source == NULL ||
        um_table_add(&engine->sources, &source->link, um_hash_bytes(record->otid, UM_LBMSRS_OTID_LEN)) != 0) {
        if (source != NULL) {
            srs_state_free(engine, session->address, source, SOURCE_CHARGE);
        }
        if (topic != NULL) {
            srs_topic_try_free(engine, topic);
        }
        um_intern_drop(shape);
        srs_refused(peer);
        return;
    }
    memcpy(source->otid, record->otid, UM_LBMSRS_OTID_LEN);
    source->link.word = record->topic_index;
    source->topic = topic;
    source->session = session;
    source->shape = shape;
    source->number = ++engine->last_number;
    source->refs = 1;
    um_list_push_back(&session->sources, &source->of_session);
    um_list_push_back(&topic->sources, &source->of_topic);
    srs_topic_match_all(engine, topic);
    engine->stats.active_sources++;
    count_active(session, 1);
    srs_tell(engine, source, false);
}

void srs_source_unref(struct um_srs_engine *engine, struct srs_source *source)
{
    if (--source->refs > 0) {
        return;
    }
    struct srs_topic *topic = source->topic;
    um_intern_drop(source->shape);
    srs_state_free(engine, NULL, source, SOURCE_CHARGE);
    topic->holds--;
    srs_topic_try_free(engine, topic);
}

void srs_source_end(struct um_srs_engine *engine, struct srs_source *source)
{
    struct srs_session *session = source->session;
    srs_tell(engine, source, true);
    um_table_remove(&engine->sources, &source->link);
    um_list_remove(&source->of_session);
    um_list_remove(&source->of_topic);
    source->ended = 1;
    source->session = NULL;
    source->topic->holds++;
    session->address->bytes -= SOURCE_CHARGE; /* what waits in queues of others is not its address's fault */
    if (source->inactive) {
        engine->stats.inactive_sources--;
    } else {
        engine->stats.active_sources--;
    }
    count_active(session, -1);
    srs_source_unref(engine, source);
}

/* ---- SIR ---------------------------------------------------------------------------- */

/* One that is known: from its own client, or left behind by one that is away. */
static void again(struct um_srs_peer *peer, struct srs_source *source, const struct um_lbmsrs_record *record,
                  const struct srs_shape *shape)
{
    struct um_srs_engine *engine = peer->engine;
    struct srs_session *before = source->session;
    bool changed = shape != source->shape || record->topic_index != source->link.word;
    um_intern_drop(source->shape);
    source->shape = shape;
    source->link.word = record->topic_index;
    if (source->inactive) {
        source->inactive = 0;
        um_list_remove(&source->of_session);
        um_list_push_back(&peer->session->sources, &source->of_session);
        engine->stats.inactive_sources--;
        engine->stats.active_sources++;
        if (before != peer->session) {
            before->address->bytes -= SOURCE_CHARGE;
            peer->session->address->bytes += SOURCE_CHARGE;
            source->session = peer->session;
            count_active(before, -1);
            count_active(peer->session, 1);
            srs_session_try_free(before);
        }
    } else if (!changed) {
        engine->stats.duplicate_sources++;
    }
    if (changed) {
        srs_tell(engine, source, false);
    }
}

static void refuse_source(struct um_srs_peer *peer, const struct um_lbmsrs_record *record, const char *id,
                          const char *why)
{
    char name[64], topic[256];
    peer->engine->stats.refused_records++;
    peer->stats.invalid_messages++;
    um_log_limited(um_log_of_ip(peer->address->ip), peer->engine->now_ns, UM_LOG_WARNING, id,
                   "SIR of client[%s] for topic[%s]: %s", srs_peer_name(peer, name, sizeof(name)),
                   um_tr_printable((const char *)record->topic.ptr, topic), why);
}

void srs_on_sir(struct um_srs_peer *peer, const struct um_lbmsrs_record *record)
{
    struct srs_source *source = find(peer->engine, record->otid);
    if (um_lbmsrs_is_end(record)) { /* a client deletes with an SDR; a negative cost would be told as an end */
        refuse_source(peer, record, "SRS-um-16", "a source end record is the SRS's to send");
        return;
    }
    if (source != NULL && !srs_is(record->topic, source->topic->name, source->topic->len)) {
        refuse_source(peer, record, "SRS-10563-5", "its OTID belongs to a source of another topic");
        return;
    }
    if (source != NULL && source->session != peer->session && !source->inactive) {
        refuse_source(peer, record, "SRS-um-2", "its OTID belongs to a source of another client");
        return;
    }
    const struct srs_shape *shape = shape_of(record);
    if (shape == NULL) {
        peer->engine->stats.refused_records++;
        srs_refused(peer);
    } else if (source == NULL) {
        add(peer, record, shape);
    } else {
        again(peer, source, record, shape);
    }
}

/* ---- SDR ------------------------------------------------------------------------------ */

static void refuse_delete(struct um_srs_peer *peer, const struct um_lbmsrs_record *record, uint64_t *counter,
                          const char *why)
{
    char name[64], topic[256];
    (*counter)++;
    peer->stats.invalid_sdr++;
    um_log_limited(um_log_of_ip(peer->address->ip), peer->engine->now_ns, UM_LOG_INFO, "SRS-10386-1014",
                   "SDR of client[%s] for topic[%s]: %s", srs_peer_name(peer, name, sizeof(name)),
                   um_tr_printable((const char *)record->topic.ptr, topic), why);
}

void srs_on_sdr(struct um_srs_peer *peer, const struct um_lbmsrs_record *record)
{
    struct um_srs_stats *stats = &peer->engine->stats;
    struct srs_source *source = find(peer->engine, record->otid);
    if (source == NULL && srs_topic_find(peer->engine, record->topic) == NULL) {
        refuse_delete(peer, record, &stats->delete_unknown_topic, "there is no such topic");
    } else if (source == NULL) {
        refuse_delete(peer, record, &stats->delete_unknown_otid, "there is no source with its OTID");
    } else if (source->session != peer->session || !srs_is(record->topic, source->topic->name, source->topic->len)) {
        refuse_delete(peer, record, &stats->delete_of_others, "the source is of another client or topic");
    } else {
        stats->delete_of_inactive_source += source->inactive;
        srs_source_end(peer->engine, source);
    }
}

/* ---- SLR ------------------------------------------------------------------------------- */

static struct srs_leave *leave_at(struct um_srs_peer *peer, size_t at)
{
    return &peer->leaves[(peer->leave_head + at) & (peer->leave_capacity - 1)];
}

static bool leave_waits(struct um_srs_peer *peer, const struct srs_source *source)
{
    for (size_t i = 0; i < peer->leave_count; i++) {
        if (leave_at(peer, i)->source == source) {
            return true;
        }
    }
    return false;
}

static bool grow_leaves(struct um_srs_peer *peer)
{
    if (peer->leave_count < peer->leave_capacity) {
        return true;
    }
    size_t capacity = peer->leave_capacity != 0 ? 2 * peer->leave_capacity : FIRST_LEAVES;
    struct srs_leave *leaves =
        peer->leave_count < peer->engine->config.max_leaves ? um_malloc(capacity * sizeof(*leaves)) : NULL;
    if (leaves == NULL) {
        return false;
    }
    for (size_t i = 0; i < peer->leave_count; i++) {
        leaves[i] = *leave_at(peer, i);
    }
    um_free(peer->leaves);
    peer->leaves = leaves;
    peer->leave_capacity = capacity;
    peer->leave_head = 0;
    return true;
}

static void pop_leave(struct um_srs_peer *peer)
{
    struct srs_source *source = leave_at(peer, 0)->source;
    peer->leave_head = (peer->leave_head + 1) & (peer->leave_capacity - 1);
    peer->leave_count--;
    srs_source_unref(peer->engine, source);
}

void srs_leaves_drop(struct um_srs_peer *peer)
{
    while (peer->leave_count > 0) {
        pop_leave(peer);
    }
    um_free(peer->leaves);
    peer->leaves = NULL;
    peer->leave_capacity = 0;
    um_timer_cancel(peer->engine->wheel, &peer->leave_timer);
}

void srs_on_leave_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_srs_peer *peer = UM_CONTAINER_OF(timer, struct um_srs_peer, leave_timer);
    while (peer->leave_count > 0 && leave_at(peer, 0)->due_ns <= now_ns) {
        struct srs_source *source = leave_at(peer, 0)->source;
        if (!source->ended) {
            srs_push_change(peer, source, false);
        }
        pop_leave(peer);
    }
    if (peer->leave_count > 0) {
        um_timer_arm(peer->engine->wheel, timer, leave_at(peer, 0)->due_ns);
    }
}

void srs_on_slr(struct um_srs_peer *peer, const struct um_lbmsrs_record *record)
{
    struct um_srs_engine *engine = peer->engine;
    struct srs_source *source = find(engine, record->otid);
    char name[64], left[256], topic[256], now[256];
    if (srs_topic_find(engine, record->topic) == NULL) {
        engine->stats.leave_unknown_topic++;
        return;
    }
    if (source == NULL) {
        engine->stats.leave_unknown_otid++;
        return;
    }
    if (!srs_is(record->source, source->shape->source, source->shape->source_len)) {
        um_log_limited(um_log_of_ip(peer->address->ip), engine->now_ns, UM_LOG_INFO, "SRS-10655-2",
                       "client[%s] leaves source[%s] of topic[%s], which is source[%s] by now",
                       srs_peer_name(peer, name, sizeof(name)), um_tr_printable((const char *)record->source.ptr, left),
                       um_tr_printable(source->topic->name, topic), um_tr_printable(source->shape->source, now));
    }
    if (leave_waits(peer, source)) {
        return;
    }
    if (!grow_leaves(peer)) {
        engine->stats.refused_records++;
        return;
    }
    source->refs++;
    *leave_at(peer, peer->leave_count++) = (struct srs_leave){engine->now_ns + engine->config.leave_backoff_ns, source};
    um_timer_arm(engine->wheel, &peer->leave_timer, leave_at(peer, 0)->due_ns);
}
