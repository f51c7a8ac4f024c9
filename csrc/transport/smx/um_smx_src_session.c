/* The pool of LBT-SMX source sessions of a context: which session a topic goes
 * to, creation and end of sessions, session messages, dead receivers, statistics.
 * Everything here runs on the loop, except reading facts of a session. */
#include <string.h>

#include "base/um_error.h"
#include "base/um_log.h"
#include "transport/smx/um_smx_src_session.h"
#include "wire/um_source_string.h"

#define WATCH_NS UM_NS_PER_SEC
#define STALL_NS (10 * UM_NS_PER_MS)
#define RECORD_ALIGN 16           /* records lie close: what counts is how many cache lines change hands */
#define DATAGRAM_LIMIT (1u << 28) /* the length of a record has 28 bits */

/* ---- facts ---- */

static void source_info(const struct um_src_session *base, lbm_transport_source_info_t *out)
{
    const struct um_smx_src_session *session = um_smx_src_session_of((struct um_src_session *)base);
    memset(out, 0, sizeof *out);
    out->type = LBM_TRANSPORT_TYPE_LBTSMX;
    out->session_id = session->segment.session_id;
    out->transport_id = session->segment.transport_id;
}

static int session_clients(const struct um_src_session *base)
{
    return (int)um_shm_receivers(&um_smx_src_session_of((struct um_src_session *)base)->segment, true);
}

/* Buffers given back are taken off the counter again, also behind a reset. */
static uint64_t since(const _Atomic uint64_t *counter, const _Atomic uint64_t *reset)
{
    uint64_t before = atomic_load_explicit(reset, memory_order_relaxed);
    uint64_t now = atomic_load_explicit(counter, memory_order_relaxed);
    return now > before ? now - before : 0;
}

static void note(const _Atomic uint64_t *counter, _Atomic uint64_t *reset)
{
    atomic_store_explicit(reset, atomic_load_explicit(counter, memory_order_relaxed), memory_order_relaxed);
}

static void session_stats(struct um_src_session *base, lbm_src_transport_stats_t *out)
{
    struct um_smx_src_session *session = um_smx_src_session_of(base);
    lbm_transport_source_info_t info;
    memset(out, 0, sizeof *out);
    out->type = LBM_TRANSPORT_STAT_LBTSMX;
    source_info(base, &info);
    um_source_string_format(&info, out->source, sizeof out->source);
    out->transport.lbtsmx.num_clients = (lbm_ulong_t)session_clients(base);
    out->transport.lbtsmx.msgs_sent = since(&session->writer.messages, &session->messages_reset);
    out->transport.lbtsmx.bytes_sent = since(&session->writer.bytes, &session->bytes_reset);
}

/* Lock. The counters belong to the sender: a reset only notes where they stand. */
static void session_stats_reset(struct um_src_session *base)
{
    struct um_smx_src_session *session = um_smx_src_session_of(base);
    note(&session->writer.messages, &session->messages_reset);
    note(&session->writer.bytes, &session->bytes_reset);
}

static void session_counts(const struct um_src_session *base, struct um_src_counts *out)
{
    const struct um_smx_src_session *session = um_smx_src_session_of((struct um_src_session *)base);
    out->blocked_by = atomic_load_explicit(&session->blocked_by, memory_order_relaxed);
    out->blocked_ns = atomic_load_explicit(&session->blocked_ns, memory_order_relaxed);
    out->receivers_lost = atomic_load_explicit(&session->receivers_lost, memory_order_relaxed);
}

/* ---- timers and events ---- */

static struct um_timer_wheel *wheel_of(const struct um_smx_src_session *session)
{
    return um_loop_wheel(session->base.env->loop);
}

static void on_activity_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_smx_src_session *session = UM_CONTAINER_OF(timer, struct um_smx_src_session, activity_timer);
    um_shm_show_activity(session->segment.header);
    um_timer_arm(wheel_of(session), timer, now_ns + um_ms_ns(session->segment.sm_interval_ms));
}

static void on_watch_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_smx_src_session *session = UM_CONTAINER_OF(timer, struct um_smx_src_session, watch_timer);
    um_smx_reap(session);
    um_timer_arm(wheel_of(session), timer, now_ns + WATCH_NS);
}

/* A sender was refused: look for room until there is some, then WAKEUP goes out. */
static void on_stall_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_smx_src_session *session = UM_CONTAINER_OF(timer, struct um_smx_src_session, stall_timer);
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
    struct um_smx_src_session *session = um_smx_src_session_of(base);
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

static void session_close(struct um_src_session *base)
{
    struct um_smx_src_session *session = um_smx_src_session_of(base);
    struct um_timer_wheel *wheel = wheel_of(session);
    um_smx_tell_evictions(session);
    um_timer_cancel(wheel, &session->activity_timer);
    um_timer_cancel(wheel, &session->watch_timer);
    um_timer_cancel(wheel, &session->stall_timer);
    um_src_session_fini(&session->base);
    um_shm_close(&session->segment);
    um_free(session);
}

static void in_force(const struct um_src_session *base, struct um_source_options *out)
{
    const struct um_smx_src_session *session = um_smx_src_session_of((struct um_src_session *)base);
    out->transport_lbtsmx_id = session->segment.transport_id;
    out->transport_lbtsmx_transmission_window_size = session->segment.ring_len;
}

const struct um_src_session_ops um_smx_src_session_ops = {
    .options = "transport_lbtsmx_",
    .in_force = in_force,
    .datagram_option = "transport_lbtsmx_datagram_max_size",
    .blocked_by = "a receiver of the session is slow (transport_lbtsmx_transmission_window_size)",
    .takeover = &um_smx_takeover,
    .interrupt = interrupt,
    .relieved = um_smx_relieved,
    .announce = announce,
    .on_command = on_command,
    .source_info = source_info,
    .stats = session_stats,
    .stats_reset = session_stats_reset,
    .clients = session_clients,
    .counts = session_counts,
};

/* A power of two with room for two datagrams. The options were checked. */
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
    return um_shm_check_window("transport_lbtsmx_transmission_window_size",
                               opts->transport_lbtsmx_transmission_window_size);
}

static int open_segment(struct um_smx_src_session *session, const struct um_source_options *opts, uint16_t id,
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

static struct um_src_session *session_create(struct um_src_transport *pool, const struct um_source_options *opts,
                                             uint16_t id, const char *topic)
{
    if (check_options(opts, topic) != 0) {
        return NULL;
    }
    struct um_smx_src_session *session = um_aligned_alloc(64, (sizeof *session + 63) / 64 * 64);
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
    if (um_src_session_init(&session->base, pool->env, &um_smx_src_session_ops, &config, opts) != 0) {
        um_shm_close(&session->segment);
        um_free(session);
        return NULL;
    }
    um_smx_writer_init(&session->writer, session->segment.header, session->segment.slots, session->segment.ring);
    session->base.writer = &session->writer;
    session->writer.counting = pool->env->opts->transport_lbtsmx_message_statistics_enabled != 0;
    session->window = opts->transport_lbtsmx_transmission_window_size;
    um_timer_init(&session->activity_timer, on_activity_timer);
    um_timer_init(&session->watch_timer, on_watch_timer);
    um_timer_init(&session->stall_timer, on_stall_timer);
    uint64_t now_ns = um_loop_now(pool->env->loop);
    um_timer_arm(wheel_of(session), &session->activity_timer, now_ns + um_ms_ns(session->segment.sm_interval_ms));
    um_timer_arm(wheel_of(session), &session->watch_timer, now_ns + WATCH_NS);
    return &session->base;
}

/* ---- the pool ---- */

static void sources_place(const struct um_source_options *opts, struct um_src_place *place)
{
    place->id = opts->transport_lbtsmx_id;
    place->named = place->id != 0;
}

static uint64_t sources_limit(const struct um_context_options *opts)
{
    unsigned low = opts->transport_lbtsmx_id_low, high = opts->transport_lbtsmx_id_high;
    return low <= high ? (uint64_t)high - low + 1 : 0;
}

/* A session with an id of the range is one of the pool, whoever named it. */
static struct um_src_session *sources_open(struct um_src_transport *pool, const struct um_source_options *opts,
                                           const char *topic, struct um_src_place *place)
{
    unsigned low = pool->env->opts->transport_lbtsmx_id_low, high = pool->env->opts->transport_lbtsmx_id_high;
    if (!place->named && !um_src_pool_free_id(pool, 0, low, high, &place->id)) {
        um_error(UM_EINVAL, "CoreApi-6976-17",
                 "source \"%s\": no id in transport_lbtsmx_id_low %u to transport_lbtsmx_id_high %u", topic, low, high);
        return NULL;
    }
    place->counted = place->shared = place->id >= low && place->id <= high;
    return session_create(pool, opts, (uint16_t)place->id, topic);
}

static void sources_compare(const struct um_src_session *base, const struct um_source_options *opts, const char *topic)
{
    const struct um_smx_src_session *session = um_smx_src_session_of((struct um_src_session *)base);
    const struct um_src_decided list[] = {
        {"Core-6976-103", "transport_lbtsmx_sm_interval", opts->transport_lbtsmx_sm_interval,
         session->segment.sm_interval_ms},
        {"Core-6976-104", "transport_lbtsmx_transmission_window_size", opts->transport_lbtsmx_transmission_window_size,
         session->window},
        {"Core-6976-105", "transport_lbtsmx_datagram_max_size", opts->transport_lbtsmx_datagram_max_size,
         session->segment.datagram_max},
        {"Core-6976-106", "transport_lbtsmx_maximum_receivers_per_transport",
         opts->transport_lbtsmx_maximum_receivers_per_transport, session->segment.max_receivers},
    };
    um_src_pool_warn(topic, "with transport id", session->segment.transport_id, list, sizeof list / sizeof list[0]);
}

/* ---- options that mean nothing here ---- */

static void notices(const struct um_source_options *opts, const char *topic)
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

const struct um_src_transport_ops um_smx_src_transport = {
    .type = LBM_SRC_TOPIC_ATTR_TRANSPORT_LBTSMX,
    .name = "lbt-smx",
    .notices = notices,
    .place = sources_place,
    .limit = sources_limit,
    .open = sources_open,
    .compare = sources_compare,
    .close = session_close,
};
