/* A source session, whatever the transport below: its streams, its command on the
 * loop, and the facts about it. Sending, batching, waiting, explicit batches and
 * TSNI are in the um_src_*.c beside this. */
#include <string.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "config/um_option_table.h"
#include "transport/session/um_src_numbers.h"
#include "transport/session/um_src_parts.h"
#include "transport/session/um_src_pool.h"

#define UM_HEADER_RESERVE 326u /* fixed worst case subtracted without dynamic_fragmentation_reduction */
#define UM_INTERVAL_MIN_NS (3 * UM_NS_PER_MS)

static const atomic_int open_gate;

static void announce_streams(struct um_src_session *session)
{
    struct um_list *it, *tmp;
    UM_LIST_FOREACH_SAFE(it, tmp, &session->streams)
    {
        struct um_src_stream *stream = UM_CONTAINER_OF(it, struct um_src_stream, node);
        if (stream->announce_pending) {
            stream->announce_pending = false;
            session->ops->announce(session, stream);
        }
    }
}

static void on_command(struct um_command *command)
{
    struct um_src_session *session = UM_CONTAINER_OF(command, struct um_src_session, command);
    um_src_session_lock(session);
    bool wakeups = session->wakeups_due;
    bool resume = session->resume_wanted;
    session->wakeups_due = false;
    session->resume_wanted = false;
    if (wakeups) {
        session->wakeups_wanted = false;
    }
    um_src_batch_timers_arm(session);
    um_src_session_unlock(session);
    if (wakeups) {
        um_src_report_wakeups(session);
    }
    if (resume) {
        um_src_tsni_resume_streams(session);
    }
    if (session->announce_wanted) {
        session->announce_wanted = false;
        announce_streams(session);
    }
    session->ops->on_command(session);
}

int um_src_session_init(struct um_src_session *session, struct um_transport_env *env,
                        const struct um_src_session_ops *ops, const struct um_src_session_config *config,
                        const struct um_source_options *opts)
{
    memset(session, 0, sizeof *session);
    session->ops = ops;
    session->env = env;
    session->first = *opts;
    session->datagram_max = config->datagram_max;
    session->gate = config->gate != NULL ? config->gate : &open_gate;
    session->one_topic = config->one_topic;
    session->connectionless = config->connectionless;
    session->batches_blocked = config->batches_blocked;
    session->tell_end = config->tell_end;
    session->dynamic_reduction = env->opts->dynamic_fragmentation_reduction != 0;
    session->header_reserve = UM_HEADER_RESERVE - config->transport_overhead;
    if (config->smart) {
        session->smart = true;
        session->dynamic_reduction = false;
        session->header_reserve = UM_SRC_SMART_HEADERS;
    }
    size_t reserve = session->dynamic_reduction ? UM_LBMC_DATA_HDR_LEN : session->header_reserve;
    session->plain_end = ops->takeover != NULL || session->one_topic ? 0 : session->datagram_max - reserve + 1;
    if (ops->takeover == NULL) {
        session->batch = ops->acquire != NULL ? ops->acquire(session) : um_datagram_get(session);
        if (session->batch == NULL) {
            return um_error_nomem("source session: batch buffer", session->datagram_max);
        }
    }
    session->minimum_length = opts->implicit_batching_minimum_length;
    session->flush_at = session->minimum_length;
    session->coalesce_max = config->coalesce && um_loop_embedded(env->loop) ? session->datagram_max : 0;
    session->adaptive = opts->implicit_batching_type == LBM_SRC_TOPIC_ATTR_IMPLICIT_BATCH_TYPE_ADAPTIVE;
    session->interval_ns = um_ms_ns(opts->implicit_batching_interval);
    if (session->interval_ns < UM_INTERVAL_MIN_NS) {
        session->interval_ns = UM_INTERVAL_MIN_NS;
    }
    um_list_init(&session->streams);
    um_list_init(&session->line);
    um_command_init(&session->command, on_command);
    um_src_batch_timers_init(session);
    um_src_tsni_init(session);
    return 0;
}

void um_src_session_fini(struct um_src_session *session)
{
    um_loop_unpost(session->env->loop, &session->command);
    um_src_batch_timers_cancel(session);
    um_src_tsni_fini(session);
    um_src_session_lock(session); /* a woken sender may still be on its way out of the lock */
    if (session->ops->acquire == NULL) {
        um_free(session->batch);
    }
    while (session->free_list != NULL) {
        struct um_datagram *datagram = session->free_list;
        session->free_list = datagram->next_free;
        um_free(datagram);
    }
    um_src_session_unlock(session);
}

void um_src_session_add(struct um_src_session *session, struct um_src_stream *stream)
{
    um_list_init(&stream->explicit_batch);
    stream->next_sqn = 0;
    stream->numbered = false;
    stream->keeper = NULL;
    stream->special = 0;
    stream->wakeup_wanted = false;
    stream->waiters = 0;
    stream->last_data_ns = um_clock_ns();
    if (session->ops->takeover != NULL) {
        stream->tsni_interval_ns = 0; /* it has no control messages */
    }
    um_src_session_lock(session);
    um_list_push_back(&session->streams, &stream->node);
    stream->announce_pending = session->clients > 0;
    um_src_session_unlock(session);
    stream->session = session;
    stream->writer = session->writer;
    stream->buffers = session->ops->takeover != NULL ? session->ops->takeover->buffers : NULL;
    if (stream->announce_pending) {
        session->announce_wanted = true;
        um_loop_post(session->env->loop, &session->command);
    }
    um_src_tsni_add(session, stream);
}

void um_src_stream_end_sends(struct um_src_stream *stream)
{
    struct um_src_session *session = stream->session;
    um_src_session_lock(session);
    stream->special |= UM_STREAM_CLOSING;
    um_src_wake_waiters(session);
    um_src_session_unlock(session);
}

void um_src_stream_detach(struct um_src_stream *stream)
{
    struct um_src_session *session = stream->session;
    if (session == NULL) {
        return;
    }
    um_src_tsni_remove(session, stream);
    um_src_session_lock(session);
    stream->special |= UM_STREAM_CLOSING;
    um_src_wake_waiters(session);
    while (stream->waiters > 0) {
        um_condition_wait(&session->changed, &session->lock);
    }
    um_src_release_held(session, stream);
    size_t dropped = um_src_drop_held(session, &stream->explicit_batch);
    if (session->tell_end && um_src_number_next(stream) != 0) {
        um_src_session_tell_numbers(session, stream);
    }
    um_src_session_flush(session);
    um_list_remove(&stream->node);
    um_src_session_unlock(session);
    if (dropped > 0) {
        um_log_limited(um_log_of_all(), um_clock_ns(), UM_LOG_ERR, "Core-5688-3933",
                       "topic index %u: source deleted without memory to send the %zu bytes of an explicit batch",
                       stream->tidx, dropped);
    }
    stream->session = NULL;
    stream->writer = NULL;
    stream->buffers = NULL;
    if (session->ops->forget_topic != NULL) {
        session->ops->forget_topic(session, stream->tidx);
    }
    if (um_list_empty(&session->streams)) {
        um_src_pool_close(session);
    }
}

/* ---- facts ---- */

void um_src_stream_source_info(const struct um_src_stream *stream, lbm_transport_source_info_t *out)
{
    stream->session->ops->source_info(stream->session, out);
    out->topic_idx = stream->tidx;
}

/* Options of the session that the first source has set for all. */
static bool is_of_session(const struct um_src_session *session, const struct um_option *option)
{
    const char *own = session->ops->options;
    bool of_transport =
        strncmp(option->name, "transport_tcp_", 14) == 0 || strncmp(option->name, "transport_lbt", 13) == 0;
    return option->alias_of == NULL && (option->flags & UM_OPT_SESSION) != 0 && option->kind != UM_KIND_STRING &&
           (!of_transport || strncmp(option->name, own, strlen(own)) == 0);
}

void um_src_stream_in_force(const struct um_src_stream *stream, struct um_source_options *out)
{
    struct um_src_session *session = stream->session;
    size_t rows;
    const struct um_option *table = um_option_table(UM_SCOPE_SOURCE, &rows);
    for (size_t i = 0; i < rows; i++) {
        if (is_of_session(session, &table[i])) {
            memcpy(um_option_field(&table[i], out), um_option_const_field(&table[i], &session->first), table[i].size);
        }
    }
    um_src_session_lock(session);
    if (um_ms_ns(out->implicit_batching_interval) != session->interval_ns) {
        out->implicit_batching_interval = session->interval_ns / UM_NS_PER_MS;
    }
    out->implicit_batching_minimum_length = session->minimum_length;
    out->implicit_batching_type = session->adaptive ? LBM_SRC_TOPIC_ATTR_IMPLICIT_BATCH_TYPE_ADAPTIVE
                                                    : LBM_SRC_TOPIC_ATTR_IMPLICIT_BATCH_TYPE_DEFAULT;
    um_src_session_unlock(session);
    session->ops->in_force(session, out);
}

int um_src_stream_stats(struct um_src_stream *stream, lbm_src_transport_stats_t *out)
{
    stream->session->ops->stats(stream->session, out);
    return 0;
}

void um_src_stream_stats_reset(struct um_src_stream *stream)
{
    um_src_session_lock(stream->session);
    memset(&stream->session->drops, 0, sizeof stream->session->drops);
    if (stream->session->ops->stats_reset != NULL) {
        stream->session->ops->stats_reset(stream->session);
    }
    um_src_session_unlock(stream->session);
}

void um_src_stream_drops(const struct um_src_stream *stream, struct um_src_drops *out)
{
    um_src_session_lock(stream->session);
    *out = stream->session->drops;
    um_src_session_unlock(stream->session);
}

void um_src_stream_counts(const struct um_src_stream *stream, struct um_src_counts *out)
{
    struct um_src_session *session = stream->session;
    *out = (struct um_src_counts){.clients = um_src_stream_clients(stream)};
    um_src_session_lock(session);
    out->messages = atomic_load_explicit(&stream->messages_sent, memory_order_relaxed);
    out->bytes = atomic_load_explicit(&stream->bytes_sent, memory_order_relaxed);
    out->drops = session->drops;
    if (session->ops->counts != NULL) {
        session->ops->counts(session, out);
    }
    um_src_session_unlock(session);
}

int um_src_stream_naks(const struct um_src_stream *stream, struct um_src_nak_count *out, int max)
{
    struct um_src_session *session = stream->session;
    if (session->ops->naks == NULL) {
        return 0;
    }
    um_src_session_lock(session);
    int count = session->ops->naks(session, out, max);
    um_src_session_unlock(session);
    return count;
}

void um_src_stream_set_batching(struct um_src_stream *stream, uint64_t interval_ns, size_t minimum_length,
                                bool adaptive)
{
    struct um_src_session *session = stream->session;
    um_src_session_lock(session);
    um_src_session_flush(session); /* what waits was batched by the old rules, whose timers may not see it any more */
    session->interval_ns = interval_ns < UM_INTERVAL_MIN_NS ? UM_INTERVAL_MIN_NS : interval_ns;
    session->minimum_length = minimum_length;
    session->flush_at = minimum_length;
    session->adaptive = adaptive;
    if (session->timer_wanted) {
        um_loop_post(session->env->loop, &session->command); /* arms anew with the new interval */
    }
    um_src_session_unlock(session);
}

int um_src_stream_clients(const struct um_src_stream *stream)
{
    if (stream->session->ops->clients != NULL) {
        return stream->session->ops->clients(stream->session);
    }
    um_src_session_lock(stream->session);
    int clients = stream->session->clients;
    um_src_session_unlock(stream->session);
    return clients;
}

bool um_src_stream_plain_only(const struct um_src_stream *stream)
{
    return stream->session->ops->takeover != NULL;
}
