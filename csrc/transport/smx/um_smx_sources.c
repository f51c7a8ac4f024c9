/* The pool of LBT-SMX source sessions of a context: which session a topic goes
 * to, creation and end of sessions, session messages, dead receivers, statistics.
 * Everything here runs on the loop, except reading facts of a session. */
#include <string.h>

#include "base/um_error.h"
#include "base/um_log.h"
#include "transport/smx/um_smx_source.h"
#include "transport/um_src_sessions.h"
#include "wire/um_source_string.h"

#define WATCH_NS UM_NS_PER_SEC
#define STALL_NS (10 * UM_NS_PER_MS)
#define RECORD_ALIGN 16           /* records lie close: what counts is how many cache lines change hands */
#define DATAGRAM_LIMIT (1u << 28) /* the length of a record has 28 bits */

static struct um_smx_session *session_at(struct um_list *node)
{
    return UM_CONTAINER_OF(node, struct um_smx_session, node);
}

/* ---- facts ---- */

static void source_info(const struct um_src_session *base, lbm_transport_source_info_t *out)
{
    const struct um_smx_session *session = um_smx_session_of((struct um_src_session *)base);
    memset(out, 0, sizeof *out);
    out->type = LBM_TRANSPORT_TYPE_LBTSMX;
    out->session_id = session->segment.session_id;
    out->transport_id = session->segment.transport_id;
}

static int session_clients(const struct um_src_session *base)
{
    return (int)um_shm_receivers(&um_smx_session_of((struct um_src_session *)base)->segment, true);
}

static void session_stats(struct um_src_session *base, lbm_src_transport_stats_t *out)
{
    struct um_smx_session *session = um_smx_session_of(base);
    lbm_transport_source_info_t info;
    memset(out, 0, sizeof *out);
    out->type = LBM_TRANSPORT_STAT_LBTSMX;
    source_info(base, &info);
    um_source_string_format(&info, out->source, sizeof out->source);
    out->transport.lbtsmx.num_clients = (lbm_ulong_t)session_clients(base);
    out->transport.lbtsmx.msgs_sent = atomic_load_explicit(&session->writer.messages, memory_order_relaxed);
    out->transport.lbtsmx.bytes_sent = atomic_load_explicit(&session->writer.bytes, memory_order_relaxed);
}

/* Lock. */
static void session_stats_reset(struct um_src_session *base)
{
    struct um_smx_session *session = um_smx_session_of(base);
    atomic_store_explicit(&session->writer.messages, 0, memory_order_relaxed);
    atomic_store_explicit(&session->writer.bytes, 0, memory_order_relaxed);
}

static void session_counts(const struct um_src_session *base, struct um_src_counts *out)
{
    const struct um_smx_session *session = um_smx_session_of((struct um_src_session *)base);
    out->blocked_by = atomic_load_explicit(&session->blocked_by, memory_order_relaxed);
    out->blocked_ns = atomic_load_explicit(&session->blocked_ns, memory_order_relaxed);
    out->receivers_lost = atomic_load_explicit(&session->receivers_lost, memory_order_relaxed);
}

/* ---- timers and events ---- */

static struct um_timer_wheel *wheel_of(const struct um_smx_session *session)
{
    return um_loop_wheel(session->base.env->loop);
}

static void on_activity_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_smx_session *session = UM_CONTAINER_OF(timer, struct um_smx_session, activity_timer);
    atomic_fetch_add_explicit(&session->segment.header->activity, 1, memory_order_release);
    um_timer_arm(wheel_of(session), timer, now_ns + session->segment.sm_interval_ms * UM_NS_PER_MS);
}

static void on_watch_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_smx_session *session = UM_CONTAINER_OF(timer, struct um_smx_session, watch_timer);
    um_smx_reap(session);
    um_timer_arm(wheel_of(session), timer, now_ns + WATCH_NS);
}

/* A sender was refused: look for room until there is some, then WAKEUP goes out. */
static void on_stall_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_smx_session *session = UM_CONTAINER_OF(timer, struct um_smx_session, stall_timer);
    um_smx_reap(session);
    um_src_session_lock(&session->base);
    um_src_session_relieve(&session->base);
    bool stalled = session->base.wakeups_wanted && !session->base.wakeups_due;
    um_src_session_unlock(&session->base);
    if (stalled) {
        um_timer_arm(wheel_of(session), timer, now_ns + STALL_NS);
    }
}

static void on_command(struct um_src_session *base)
{
    struct um_smx_session *session = um_smx_session_of(base);
    um_smx_tell_evictions(session);
    um_src_session_lock(base);
    bool stalled = base->wakeups_wanted;
    um_src_session_unlock(base);
    if (stalled && !um_timer_armed(&session->stall_timer)) {
        um_timer_arm(wheel_of(session), &session->stall_timer, um_loop_now(base->env->loop) + STALL_NS);
    }
}

/* LBT-SMX reports no CONNECT events. */
static void announce(struct um_src_session *base, struct um_src_stream *stream)
{
}

static void interrupt(struct um_src_session *base)
{
}

/* ---- sessions ---- */

static void session_destroy(struct um_smx_session *session)
{
    struct um_timer_wheel *wheel = wheel_of(session);
    um_smx_tell_evictions(session);
    um_timer_cancel(wheel, &session->activity_timer);
    um_timer_cancel(wheel, &session->watch_timer);
    um_timer_cancel(wheel, &session->stall_timer);
    um_list_remove(&session->node);
    um_src_session_fini(&session->base);
    um_shm_close(&session->segment);
    um_free(session);
}

static void stream_gone(struct um_src_session *base, uint32_t tidx)
{
    if (um_list_empty(&base->streams)) {
        session_destroy(um_smx_session_of(base));
    }
}

const struct um_src_session_ops um_smx_session_ops = {
    .datagram_option = "transport_lbtsmx_datagram_max_size",
    .blocked_by = "a receiver of the session is slow (transport_lbtsmx_transmission_window_size)",
    .takeover = &um_smx_takeover,
    .interrupt = interrupt,
    .relieved = um_smx_relieved,
    .announce = announce,
    .on_command = on_command,
    .stream_gone = stream_gone,
    .source_info = source_info,
    .stats = session_stats,
    .stats_reset = session_stats_reset,
    .clients = session_clients,
    .counts = session_counts,
};

/* A power of two with room for two datagrams. */
static uint64_t window_size(const struct um_source_options *opts, const char *topic)
{
    uint64_t wanted = opts->transport_lbtsmx_transmission_window_size;
    uint64_t least = 2 * (uint64_t)opts->transport_lbtsmx_datagram_max_size;
    uint64_t size = 64;
    while (size < wanted || size < least) {
        size *= 2;
    }
    if (wanted < least) {
        um_log(UM_LOG_WARNING, "Core-6976-11",
               "source \"%s\": transport_lbtsmx_transmission_window_size %llu: too small for two datagrams of %u bytes "
               "(transport_lbtsmx_datagram_max_size): raised to %llu",
               topic, (unsigned long long)wanted, opts->transport_lbtsmx_datagram_max_size, (unsigned long long)size);
    } else if (size != wanted) {
        um_log(UM_LOG_WARNING, "Core-6976-32",
               "source \"%s\": transport_lbtsmx_transmission_window_size %llu: not a power of two: rounded up to %llu",
               topic, (unsigned long long)wanted, (unsigned long long)size);
    }
    return size;
}

static int check_options(const struct um_source_options *opts, const char *topic)
{
    if (opts->transport_lbtsmx_datagram_max_size >= DATAGRAM_LIMIT) {
        return um_error(UM_EINVAL, "CoreApi-6976-12",
                        "source \"%s\": transport_lbtsmx_datagram_max_size %u: must be below %u", topic,
                        opts->transport_lbtsmx_datagram_max_size, DATAGRAM_LIMIT);
    }
    unsigned receivers = opts->transport_lbtsmx_maximum_receivers_per_transport;
    if (receivers < 1 || receivers > UM_SHM_RECEIVERS_MAX) {
        return um_error(UM_EINVAL, "CoreApi-6976-13",
                        "source \"%s\": transport_lbtsmx_maximum_receivers_per_transport %u: must be 1..%u", topic,
                        receivers, UM_SHM_RECEIVERS_MAX);
    }
    if (opts->transport_lbtsmx_sm_interval == 0) {
        return um_error(UM_EINVAL, "CoreApi-6976-14", "source \"%s\": transport_lbtsmx_sm_interval 0: must be above 0",
                        topic);
    }
    return 0;
}

static int open_segment(struct um_smx_session *session, const struct um_source_options *opts, uint16_t id,
                        const char *topic)
{
    struct um_shm_spec spec = {
        .kind = UM_SHM_SMX,
        .transport_id = id,
        .max_receivers = opts->transport_lbtsmx_maximum_receivers_per_transport,
        .ring_len = window_size(opts, topic),
        .rec_align = RECORD_ALIGN,
        .datagram_max = opts->transport_lbtsmx_datagram_max_size,
        .flags = UM_SHM_FLAG_RECEIVER_PACED,
        .sm_interval_ms = opts->transport_lbtsmx_sm_interval,
    };
    return um_shm_create(&session->segment, &spec);
}

static struct um_smx_session *session_create(struct um_smx_sources *pool, const struct um_source_options *opts,
                                             uint16_t id, bool explicit_id, const char *topic)
{
    if (check_options(opts, topic) != 0) {
        return NULL;
    }
    struct um_smx_session *session = um_aligned_alloc(64, (sizeof *session + 63) / 64 * 64);
    if (session == NULL) {
        um_error_nomem("LBT-SMX session", sizeof *session);
        return NULL;
    }
    memset(session, 0, sizeof *session);
    if (open_segment(session, opts, id, topic) != 0) {
        um_free(session);
        return NULL;
    }
    struct um_src_session_config config = {.datagram_max = session->segment.datagram_max};
    if (um_src_session_init(&session->base, pool->env, &um_smx_session_ops, &config, opts) != 0) {
        um_shm_close(&session->segment);
        um_free(session);
        return NULL;
    }
    um_smx_writer_init(&session->writer, session->segment.header, session->segment.slots, session->segment.ring);
    session->base.writer = &session->writer;
    session->writer.counting = pool->env->opts->transport_lbtsmx_message_statistics_enabled != 0;
    session->pool = pool;
    session->explicit_id = explicit_id;
    session->window = opts->transport_lbtsmx_transmission_window_size;
    um_timer_init(&session->activity_timer, on_activity_timer);
    um_timer_init(&session->watch_timer, on_watch_timer);
    um_timer_init(&session->stall_timer, on_stall_timer);
    uint64_t now_ns = um_loop_now(pool->env->loop);
    um_timer_arm(wheel_of(session), &session->activity_timer, now_ns + session->segment.sm_interval_ms * UM_NS_PER_MS);
    um_timer_arm(wheel_of(session), &session->watch_timer, now_ns + WATCH_NS);
    um_list_push_back(&pool->sessions, &session->node);
    return session;
}

static struct um_smx_session *find(struct um_smx_sources *pool, uint16_t id)
{
    struct um_list *it;
    UM_LIST_FOREACH(it, &pool->sessions)
    {
        if (session_at(it)->segment.transport_id == id) {
            return session_at(it);
        }
    }
    return NULL;
}

/* Ids of the range that have no session first, then all of them in turn. */
static struct um_smx_session *choose(struct um_smx_sources *pool, const struct um_source_options *opts,
                                     const char *topic)
{
    uint16_t id = opts->transport_lbtsmx_id;
    struct um_smx_session *session;
    if (id != 0) {
        session = find(pool, id);
        return session != NULL ? session : session_create(pool, opts, id, true, topic);
    }
    unsigned low = pool->env->opts->transport_lbtsmx_id_low, high = pool->env->opts->transport_lbtsmx_id_high;
    for (unsigned next = low; next <= high; next++) {
        if (find(pool, (uint16_t)next) == NULL) {
            return session_create(pool, opts, (uint16_t)next, false, topic);
        }
    }
    session = find(pool, (uint16_t)(low + pool->next % (high - low + 1)));
    pool->next++;
    return session;
}

static void warn_if_other(const struct um_smx_session *session, const char *topic, const char *id, const char *option,
                          uint64_t wanted, uint64_t has)
{
    if (wanted != has) {
        um_log(UM_LOG_WARNING, id,
               "source \"%s\": %s %llu is ignored: the session with transport id %u was made by its first source with "
               "%llu",
               topic, option, (unsigned long long)wanted, session->segment.transport_id, (unsigned long long)has);
    }
}

static void compare_options(const struct um_smx_session *session, const struct um_source_options *opts,
                            const char *topic)
{
    warn_if_other(session, topic, "Core-6976-103", "transport_lbtsmx_sm_interval", opts->transport_lbtsmx_sm_interval,
                  session->segment.sm_interval_ms);
    warn_if_other(session, topic, "Core-6976-104", "transport_lbtsmx_transmission_window_size",
                  opts->transport_lbtsmx_transmission_window_size, session->window);
    warn_if_other(session, topic, "Core-6976-105", "transport_lbtsmx_datagram_max_size",
                  opts->transport_lbtsmx_datagram_max_size, session->segment.datagram_max);
    warn_if_other(session, topic, "Core-6976-106", "transport_lbtsmx_maximum_receivers_per_transport",
                  opts->transport_lbtsmx_maximum_receivers_per_transport, session->segment.max_receivers);
}

static int sources_attach(struct um_src_transport *base, const struct um_source_options *opts, const char *topic,
                          struct um_src_stream *stream)
{
    struct um_smx_sources *pool = UM_CONTAINER_OF(base, struct um_smx_sources, base);
    struct um_smx_session *session = choose(pool, opts, topic);
    if (session == NULL) {
        return -1;
    }
    if (!um_list_empty(&session->base.streams)) {
        compare_options(session, opts, topic);
    }
    stream->tsni_interval_ns = 0;
    um_src_session_add(&session->base, stream);
    return 0;
}

/* ---- options that mean nothing here ---- */

void um_smx_notices(const struct um_source_options *opts, const char *topic)
{
    const struct {
        bool set;
        const char *id, *what;
    } features[] = {
        {opts->ume_store.count > 0 || opts->ume_store_name.count > 0, "Core-6976-6", "persistence (UMP)"},
        {opts->umq_ulb_application_set.count > 0, "Core-6976-7", "load balancing (ULB)"},
        {opts->umq_queue_name != NULL && opts->umq_queue_name[0] != '\0', "Core-6976-8", "queuing (UMQ)"},
        {opts->late_join != 0, "Core-6976-9", "late join"},
        {opts->implicit_batching_type == LBM_SRC_TOPIC_ATTR_IMPLICIT_BATCH_TYPE_ADAPTIVE, "Core-6976-10",
         "adaptive batching"},
    };
    for (size_t i = 0; i < sizeof features / sizeof features[0]; i++) {
        if (features[i].set) {
            um_log(UM_LOG_NOTICE, features[i].id, "topic [%s]: LBT-SMX has no %s: ignored", topic, features[i].what);
        }
    }
}

/* ---- the pool ---- */

static struct um_src_transport *sources_create(struct um_transport_env *env)
{
    struct um_smx_sources *pool = um_calloc(1, sizeof *pool);
    if (pool == NULL) {
        um_error_nomem("LBT-SMX sources", sizeof *pool);
        return NULL;
    }
    pool->base.ops = &um_smx_src_transport;
    pool->env = env;
    um_list_init(&pool->sessions);
    return &pool->base;
}

static void sources_destroy(struct um_src_transport *base)
{
    struct um_smx_sources *pool = UM_CONTAINER_OF(base, struct um_smx_sources, base);
    while (!um_list_empty(&pool->sessions)) {
        session_destroy(session_at(pool->sessions.next));
    }
    um_free(pool);
}

static void sources_flush(struct um_src_transport *base)
{
    /* every general send is published at once; buffers that were acquired belong to their callers */
}

static struct um_list *sessions_of(struct um_src_transport *base)
{
    return &UM_CONTAINER_OF(base, struct um_smx_sources, base)->sessions;
}

static struct um_src_session *base_at(struct um_list *node)
{
    return &session_at(node)->base;
}

static int sources_stats(struct um_src_transport *base, lbm_src_transport_stats_t *out, int max)
{
    return um_src_sessions_stats(sessions_of(base), base_at, out, max);
}

static void sources_stats_reset(struct um_src_transport *base)
{
    um_src_sessions_stats_reset(sessions_of(base), base_at);
}

const struct um_src_transport_ops um_smx_src_transport = {
    .type = LBM_SRC_TOPIC_ATTR_TRANSPORT_LBTSMX,
    .name = "lbt-smx",
    .create = sources_create,
    .destroy = sources_destroy,
    .attach = sources_attach,
    .stats = sources_stats,
    .stats_reset = sources_stats_reset,
    .flush = sources_flush,
};
