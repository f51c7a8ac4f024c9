/* The pool of LBT-IPC source sessions of a context: which session a topic goes
 * to, creation and end of sessions, session messages, the watch over receivers,
 * statistics. Everything here runs on the loop, except reading facts. */
#include <stdio.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "transport/ipc/um_ipc_src_session.h"
#include "wire/um_source_string.h"

/* How soon a receiver is seen that joins while nothing is sent; sends see it at once. */
#define CLIENT_TICK_NS (50 * UM_NS_PER_MS)
#define REAP_NS UM_NS_PER_SEC /* how often the dead are looked for */
#define STUCK_TICK_NS (5 * UM_NS_PER_MS)

static struct um_ipc_src_session *of_base(const struct um_src_session *base)
{
    return UM_CONTAINER_OF((struct um_src_session *)base, struct um_ipc_src_session, base);
}

/* ---- facts ---- */

static void source_info(const struct um_src_session *base, lbm_transport_source_info_t *out)
{
    const struct um_ipc_src_session *session = of_base(base);
    memset(out, 0, sizeof *out);
    out->type = LBM_TRANSPORT_TYPE_LBTIPC;
    out->session_id = session->segment.session_id;
    out->transport_id = session->segment.transport_id;
}

static void session_stats(struct um_src_session *base, lbm_src_transport_stats_t *out)
{
    struct um_ipc_src_session *session = of_base(base);
    lbm_transport_source_info_t info;
    memset(out, 0, sizeof *out);
    source_info(base, &info);
    out->type = LBM_TRANSPORT_STAT_LBTIPC;
    um_source_string_format(&info, out->source, sizeof out->source);
    um_src_session_lock(base);
    out->transport.lbtipc.num_clients = (lbm_ulong_t)base->clients;
    out->transport.lbtipc.msgs_sent = session->datagrams_sent;
    out->transport.lbtipc.bytes_sent = session->bytes_sent;
    um_src_session_unlock(base);
}

/* Lock. */
static void session_stats_reset(struct um_src_session *base)
{
    struct um_ipc_src_session *session = of_base(base);
    session->datagrams_sent = session->bytes_sent = 0;
}

/* Lock. */
static void session_counts(const struct um_src_session *base, struct um_src_counts *out)
{
    const struct um_ipc_src_session *session = of_base(base);
    int slowest = session->stuck == NULL ? -1 : um_ipc_slowest(&session->writer);
    out->blocked_by = slowest < 0 ? 0 : um_shm_slot_pid(&session->segment.slots[slowest]);
    out->blocked_ns = session->stuck_ns;
    out->receivers_lost = session->receivers_lost;
}

/* ---- timers and the command ---- */

static struct um_timer_wheel *wheel_of(const struct um_ipc_src_session *session)
{
    return um_loop_wheel(session->base.env->loop);
}

static void on_client_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_ipc_src_session *session = UM_CONTAINER_OF(timer, struct um_ipc_src_session, client_timer);
    um_timer_arm(wheel_of(session), timer, now_ns + CLIENT_TICK_NS);
    uint32_t epoch = um_shm_join_epoch(session->segment.header);
    um_src_session_lock(&session->base);
    if (now_ns - session->reaped_ns >= REAP_NS) { /* by the clock: ticks come late on a busy machine */
        session->reaped_ns = now_ns;
        um_ipc_clients_reap(session);
    } else if (epoch != session->epoch) {
        um_ipc_clients_look(session);
    }
    um_src_session_unlock(&session->base);
}

/* The counter tells receivers that the source lives, also where the ring has no room for the message. */
static void on_sm_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_ipc_src_session *session = UM_CONTAINER_OF(timer, struct um_ipc_src_session, sm_timer);
    um_timer_arm(wheel_of(session), timer, now_ns + session->sm_interval_ns);
    um_src_session_lock(&session->base);
    um_shm_show_activity(session->segment.header);
    if (session->stuck == NULL && um_ipc_write(&session->writer, UM_IPC_SM, NULL, 0)) {
        um_ipc_clients_wake(session);
    }
    um_src_session_unlock(&session->base);
}

static void arm_stuck_timer(struct um_ipc_src_session *session)
{
    um_src_session_lock(&session->base);
    bool wanted = session->stuck != NULL && session->base.waiters == 0;
    um_src_session_unlock(&session->base);
    if (wanted && !um_timer_armed(&session->stuck_timer)) {
        um_timer_arm(wheel_of(session), &session->stuck_timer, um_loop_now(session->base.env->loop) + STUCK_TICK_NS);
    }
}

/* What was accepted and found no room while no thread waits: senders that do not block, batches of timers. */
static void on_stuck_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_ipc_src_session *session = UM_CONTAINER_OF(timer, struct um_ipc_src_session, stuck_timer);
    um_src_session_lock(&session->base);
    um_ipc_send_stuck(session);
    if (session->stuck != NULL) {
        um_ipc_clients_reap(session);
    }
    um_src_session_unlock(&session->base);
    arm_stuck_timer(session);
}

static void on_command(struct um_src_session *base)
{
    struct um_ipc_src_session *session = of_base(base);
    arm_stuck_timer(session);
    um_ipc_clients_tell(session);
    um_ipc_clients_report(session);
}

/* ---- sessions ---- */

static void in_force(const struct um_src_session *base, struct um_source_options *out)
{
    const struct um_ipc_src_session *session = of_base(base);
    out->transport_lbtipc_id = session->segment.transport_id;
    out->transport_lbtipc_transmission_window_size = session->segment.ring_len;
    out->transport_lbtipc_maximum_receivers_per_transport = (lbm_ushort_t)session->segment.max_receivers;
}

static const struct um_src_session_ops session_ops = {
    .options = "transport_lbtipc_",
    .in_force = in_force,
    .datagram_option = "transport_lbtipc_datagram_max_size",
    .blocked_by = "a receiver of the session has not read for a whole transport_lbtipc_transmission_window_size",
    .transmit = um_ipc_transmit,
    .wait = um_ipc_wait,
    .resume = um_ipc_resume,
    .interrupt = um_ipc_interrupt,
    .relieved = um_ipc_relieved,
    .announce = um_ipc_clients_announce,
    .on_command = on_command,
    .source_info = source_info,
    .stats = session_stats,
    .stats_reset = session_stats_reset,
    .counts = session_counts,
};

static struct um_shm_spec spec_of(const struct um_transport_env *env, const struct um_source_options *opts, uint16_t id)
{
    uint32_t datagram_max = env->opts->transport_lbtipc_datagram_max_size;
    unsigned receivers = opts->transport_lbtipc_maximum_receivers_per_transport;
    struct um_shm_spec spec = {.kind = UM_SHM_IPC,
                               .transport_id = id,
                               .max_receivers = receivers > UM_SHM_RECEIVERS_MAX ? UM_SHM_RECEIVERS_MAX : receivers,
                               .ring_len =
                                   um_ipc_ring_len(opts->transport_lbtipc_transmission_window_size, datagram_max),
                               .rec_align = UM_IPC_ALIGN,
                               .datagram_max = datagram_max,
                               .sm_interval_ms = opts->transport_lbtipc_sm_interval};
    if (opts->transport_lbtipc_behavior == LBM_SRC_TOPIC_ATTR_LBTIPC_BEHAVIOR_RECEIVER_PACED) {
        spec.flags = UM_SHM_FLAG_RECEIVER_PACED;
    }
    return spec;
}

static int session_open(struct um_ipc_src_session *session, struct um_transport_env *env,
                        const struct um_source_options *opts, uint16_t id)
{
    struct um_shm_spec spec = spec_of(env, opts, id);
    const struct um_src_session_config config = {
        .datagram_max = spec.datagram_max, .coalesce = true, .tell_end = !(spec.flags & UM_SHM_FLAG_RECEIVER_PACED)};
    if (um_shm_check_window("transport_lbtipc_transmission_window_size",
                            opts->transport_lbtipc_transmission_window_size) != 0 ||
        um_shm_create(&session->segment, &spec) != 0) {
        return -1;
    }
    if (um_ipc_clients_init(session) == 0) {
        if (um_src_session_init(&session->base, env, &session_ops, &config, opts) == 0) {
            return 0;
        }
        um_ipc_clients_fini(session);
    }
    um_shm_close(&session->segment);
    return -1;
}

static struct um_src_session *session_create(struct um_transport_env *env, const struct um_source_options *opts,
                                             uint16_t id)
{
    struct um_ipc_src_session *session = um_calloc(1, sizeof *session);
    if (session == NULL) {
        um_error_nomem("LBT-IPC source session", sizeof *session);
        return NULL;
    }
    if (session_open(session, env, opts, id) != 0) {
        um_free(session);
        return NULL;
    }
    um_ipc_writer_init(&session->writer, &session->segment);
    session->waits = session->segment.flags & UM_SHM_FLAG_RECEIVER_PACED;
    session->window = opts->transport_lbtipc_transmission_window_size;
    session->sm_interval_ns = um_ms_ns(opts->transport_lbtipc_sm_interval);
    um_timer_init(&session->client_timer, on_client_timer);
    um_timer_init(&session->sm_timer, on_sm_timer);
    um_timer_init(&session->stuck_timer, on_stuck_timer);
    uint64_t now_ns = um_loop_now(env->loop);
    um_timer_arm(wheel_of(session), &session->client_timer, now_ns + CLIENT_TICK_NS);
    if (session->sm_interval_ns != 0) {
        um_timer_arm(wheel_of(session), &session->sm_timer, now_ns + session->sm_interval_ns);
    }
    return &session->base;
}

/* What the ring has no room for now is lost with the session. */
static void give_up_stuck(struct um_ipc_src_session *session)
{
    um_src_session_lock(&session->base);
    um_ipc_send_stuck(session);
    size_t bytes = um_ipc_drop_stuck(session);
    um_src_session_unlock(&session->base);
    if (bytes > 0) {
        um_log(UM_LOG_WARNING, "Core-5688-656",
               "%s: source deleted while receivers had left no room for the last %zu bytes: lost",
               session->segment.path, bytes);
    }
}

static void session_close(struct um_src_session *base)
{
    struct um_ipc_src_session *session = of_base(base);
    give_up_stuck(session);
    um_ipc_clients_tell(session);
    um_timer_cancel(wheel_of(session), &session->client_timer);
    um_timer_cancel(wheel_of(session), &session->sm_timer);
    um_timer_cancel(wheel_of(session), &session->stuck_timer);
    um_src_session_lock(&session->base);
    um_shm_set_state(session->segment.header, UM_SHM_CLOSED);
    um_ipc_clients_wake(session);
    um_src_session_unlock(&session->base);
    um_src_session_fini(&session->base);
    um_ipc_clients_fini(session);
    um_shm_close(&session->segment);
    um_free(session);
}

/* ---- the pool ---- */

static void sources_place(const struct um_source_options *opts, struct um_src_place *place)
{
    place->id = opts->transport_lbtipc_id;
    place->named = place->id != 0;
}

static uint64_t sources_limit(const struct um_context_options *opts)
{
    unsigned low = opts->transport_lbtipc_id_low, high = opts->transport_lbtipc_id_high;
    return low <= high ? (uint64_t)high - low + 1 : 0;
}

/* A session that a source has named takes its id from the range, and is its own. */
static struct um_src_session *sources_open(struct um_src_transport *pool, const struct um_source_options *opts,
                                           const char *topic, struct um_src_place *place)
{
    unsigned low = pool->env->opts->transport_lbtipc_id_low, high = pool->env->opts->transport_lbtipc_id_high;
    if (!place->named && !um_src_pool_free_id(pool, 0, low, high, &place->id)) {
        um_error(UM_EINVAL, "CoreApi-5688-1301",
                 "transport_lbtipc_id_low %u to transport_lbtipc_id_high %u: every id is in use by a session made with "
                 "transport_lbtipc_id; widen the range",
                 low, high);
        return NULL;
    }
    place->counted = place->id >= low && place->id <= high;
    place->shared = !place->named;
    return session_create(pool->env, opts, (uint16_t)place->id);
}

static void sources_compare(const struct um_src_session *base, const struct um_source_options *opts, const char *topic)
{
    const struct um_ipc_src_session *session = of_base(base);
    const struct um_src_decided list[] = {
        {"Core-5688-1302", "transport_lbtipc_sm_interval", opts->transport_lbtipc_sm_interval,
         session->segment.sm_interval_ms},
        {"Core-5688-1303", "transport_lbtipc_transmission_window_size", opts->transport_lbtipc_transmission_window_size,
         session->window},
        {"Core-5688-1304", "transport_lbtipc_behavior", opts->transport_lbtipc_behavior, session->waits},
        {"Core-5688-1305", "transport_lbtipc_maximum_receivers_per_transport",
         opts->transport_lbtipc_maximum_receivers_per_transport, session->segment.max_receivers},
    };
    um_src_pool_warn(topic, "with LBT-IPC id", session->segment.transport_id, list, sizeof list / sizeof list[0]);
}

static int sources_accept(const struct um_source_options *opts)
{
    if (opts->transport_lbtipc_transmission_window_size < 65536) {
        return um_error(UM_EINVAL, "CoreApi-5688-1306",
                        "transport_lbtipc_transmission_window_size %zu: must be at least 65536",
                        opts->transport_lbtipc_transmission_window_size);
    }
    if (opts->transport_lbtipc_maximum_receivers_per_transport == 0) {
        return um_error(UM_EINVAL, "CoreApi-5688-1307",
                        "transport_lbtipc_maximum_receivers_per_transport 0: must be at least 1");
    }
    return 0;
}

static int sources_check(const struct um_context_options *opts)
{
    if (opts->transport_lbtipc_id_low == 0) {
        return um_error(
            UM_EINVAL, "CoreApi-5688-1308",
            "transport_lbtipc_id_low 0: must be at least 1 (0 is the id of the objects receivers sleep on)");
    }
    return 0;
}

const struct um_src_transport_ops um_ipc_src_transport = {
    .type = LBM_SRC_TOPIC_ATTR_TRANSPORT_LBTIPC,
    .name = "lbt-ipc",
    .check = sources_check,
    .accepts = sources_accept,
    .place = sources_place,
    .limit = sources_limit,
    .open = sources_open,
    .compare = sources_compare,
    .close = session_close,
    .retains = true,
    .retention_least = 8192,
};
