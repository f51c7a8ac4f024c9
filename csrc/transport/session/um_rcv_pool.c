/* The pool of receive sessions of a loop, whatever their transport: see um_rcv_pool.h. Everything runs on the loop. */
#include "transport/session/um_rcv_pool.h"

#include <stdio.h>

#include "base/um_debug.h"
#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "net/um_onload.h"
#include "transport/session/um_rcv_filter.h"
#include "transport/session/um_rcv_transports.h"
#include "wire/um_source_string.h"

#define FAILURES_MAX 4096u /* remembered; beyond, the oldest is tried again earlier */

/* Filter requests that could not be sent are repeated after this. */
#define FILTER_RETRY_NS UM_NS_PER_SEC

struct failure {
    struct um_list node;
    struct um_rcv_session_key key;
    uint64_t until_ns;
};

/* A request port is connected again, or some are (ip 0): what they were asked for may be lost. */
static void on_unicast_reconnect(struct um_unicast_listener *listener, uint32_t ip, uint16_t port)
{
    struct um_rcv_sessions *sessions = UM_CONTAINER_OF(listener, struct um_rcv_sessions, unicast_listener);
    struct um_list *it;
    UM_LIST_FOREACH(it, &sessions->list)
    {
        struct um_rcv_session *session = UM_CONTAINER_OF(it, struct um_rcv_session, node);
        bool meant = ip == 0 || (session->filter.ip == ip && session->filter.port == port);
        if (session->filter.wanted && meant) {
            um_rcv_filter_include_all(session, sessions->unicast);
        }
    }
}

static void on_filter_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_rcv_sessions *sessions = UM_CONTAINER_OF(timer, struct um_rcv_sessions, filter_timer);
    struct um_list *it;
    UM_LIST_FOREACH(it, &sessions->list)
    {
        struct um_rcv_session *session = UM_CONTAINER_OF(it, struct um_rcv_session, node);
        if (session->filter.retry) {
            session->filter.retry = false;
            um_rcv_filter_go_on(session, sessions->unicast);
        }
    }
}

void um_rcv_session_retry_filter(struct um_rcv_session *session)
{
    struct um_rcv_sessions *sessions = session->owner;
    session->filter.retry = true;
    if (!um_timer_armed(&sessions->filter_timer)) {
        um_timer_arm(um_loop_wheel(sessions->env->loop), &sessions->filter_timer,
                     um_loop_now(sessions->env->loop) + FILTER_RETRY_NS);
    }
}

struct um_rcv_sessions *um_rcv_sessions_create(struct um_transport_env *env, struct um_unicast *unicast)
{
    struct um_rcv_sessions *sessions = um_calloc(1, sizeof *sessions);
    if (sessions == NULL) {
        um_error_nomem("receive sessions", sizeof *sessions);
        return NULL;
    }
    sessions->transports = um_rcv_transports_create(env);
    if (sessions->transports == NULL) {
        um_free(sessions);
        return NULL;
    }
    sessions->env = env;
    sessions->unicast = unicast;
    um_timer_init(&sessions->filter_timer, on_filter_timer);
    um_map_init(&sessions->by_key, NULL);
    um_list_init(&sessions->list);
    um_list_init(&sessions->failures);
    um_map_init(&sessions->failures_by_key, NULL);
    if (unicast != NULL) {
        sessions->unicast_listener.loop = env->loop;
        sessions->unicast_listener.fn = on_unicast_reconnect;
        um_unicast_listen(unicast, &sessions->unicast_listener);
    }
    return sessions;
}

/* --- connections that failed lately --- */

static void forget_failure(struct um_rcv_sessions *sessions, struct failure *failure)
{
    um_map_remove(&sessions->failures_by_key, &failure->key, sizeof failure->key);
    um_list_remove(&failure->node);
    um_free(failure);
}

static void forget_failures(struct um_rcv_sessions *sessions, uint64_t now_ns)
{
    struct um_list *it;
    while ((it = um_list_first(&sessions->failures)) != NULL) {
        struct failure *failure = UM_CONTAINER_OF(it, struct failure, node);
        if (failure->until_ns > now_ns && um_map_count(&sessions->failures_by_key) <= FAILURES_MAX) {
            return;
        }
        forget_failure(sessions, failure);
    }
}

/* Without memory the next attempt is merely not delayed. */
static void remember_failure(const struct um_rcv_session *session, uint64_t now_ns)
{
    struct um_rcv_sessions *sessions = session->owner;
    const struct um_rcv_session_key *key = &session->key;
    struct failure *failure = um_map_get(&sessions->failures_by_key, key, sizeof *key);
    if (failure != NULL) {
        forget_failure(sessions, failure);
    }
    failure = um_calloc(1, sizeof *failure);
    if (failure == NULL || um_map_put(&sessions->failures_by_key, key, sizeof *key, failure) != 0) {
        um_free(failure);
        return;
    }
    failure->key = *key;
    failure->until_ns = now_ns + session->transport->ops->retry_delay_ns;
    um_list_push_back(&sessions->failures, &failure->node);
    forget_failures(sessions, now_ns);
}

/* Earliest time at which a connection to this address may be tried again; 0 = at once. */
static uint64_t retry_at(struct um_rcv_sessions *sessions, const struct um_rcv_session_key *key, uint64_t now_ns)
{
    forget_failures(sessions, now_ns);
    const struct failure *failure = um_map_get(&sessions->failures_by_key, key, sizeof *key);
    return failure == NULL ? 0 : failure->until_ns;
}

/* --- the life of a session --- */

static void detach(struct um_rcv_stream *stream)
{
    struct um_rcv_session *session = stream->session;
    um_list_remove(&stream->node);
    um_list_remove(&stream->touched);
    um_list_remove(&stream->waiting);
    um_u32_map_remove(&session->topics, stream->tidx);
    if (session->last_stream == stream) {
        session->last_stream = NULL;
    }
    stream->session = NULL;
    stream->paused = false;
}

void um_rcv_pool_free(struct um_rcv_session *session)
{
    UM_DEBUG(UM_DEBUG_SESSION, "session %p left", (void *)session);
    um_u32_map_clear(&session->topics);
    session->ops->destroy(session);
}

/* Leave the table: from here on a join of the same address makes a new session. */
static void retire(struct um_rcv_session *session)
{
    um_map_remove(&session->owner->by_key, &session->key, sizeof session->key);
    um_list_remove(&session->node);
    um_list_remove(&session->transport_node);
    um_loop_unpost(session->owner->env->loop, &session->bos_command);
    session->state = UM_RCV_ENDED;
    session->attention = true;
    session->ops->stop(session);
}

void um_rcv_session_lost(struct um_rcv_session *session, uint64_t now_ns)
{
    if (session->state == UM_RCV_ENDED) {
        return;
    }
    if (session->state == UM_RCV_JOINING && session->transport->ops->retry_delay_ns != 0) {
        remember_failure(session, now_ns);
    }
    session->busy++;
    retire(session);
    struct um_list *it;
    while ((it = um_list_first(&session->streams)) != NULL) {
        struct um_rcv_stream *stream = UM_CONTAINER_OF(it, struct um_rcv_stream, node);
        detach(stream);
        stream->over = session->over;
        stream->events->on_eos(stream);
    }
    if (--session->busy == 0) {
        um_rcv_pool_free(session);
    }
}

void um_rcv_session_over(struct um_rcv_session *session, uint64_t now_ns)
{
    session->over = true;
    um_rcv_session_lost(session, now_ns);
}

void um_rcv_session_tell_failure(struct um_rcv_session *session, int level, const char *id, const char *what,
                                 const char *why, uint64_t now_ns)
{
    um_log_limited(um_log_of(session->source), now_ns, session->again ? UM_LOG_INFO : level, id, "%s: %s: %s",
                   session->source, what, why);
}

void um_rcv_stream_leave(struct um_rcv_stream *stream)
{
    struct um_rcv_session *session = stream->session;
    if (session == NULL) {
        return;
    }
    bool was_paused = stream->paused;
    detach(stream);
    if (session->state == UM_RCV_ENDED) {
        return;
    }
    if (um_list_empty(&session->streams)) {
        retire(session);
        if (session->busy == 0) {
            um_rcv_pool_free(session);
        }
        return;
    }
    um_rcv_filter_set(session, session->owner->unicast, stream, false);
    if (was_paused) {
        um_rcv_session_wanted(session);
    }
}

void um_rcv_sessions_destroy(struct um_rcv_sessions *sessions)
{
    if (sessions == NULL) {
        return;
    }
    struct um_list *it, *tmp;
    while ((it = um_list_first(&sessions->list)) != NULL) {
        struct um_rcv_session *session = UM_CONTAINER_OF(it, struct um_rcv_session, node);
        retire(session);
        UM_LIST_FOREACH_SAFE(it, tmp, &session->streams)
        {
            detach(UM_CONTAINER_OF(it, struct um_rcv_stream, node));
        }
        um_rcv_pool_free(session);
    }
    forget_failures(sessions, UM_NEVER);
    um_timer_cancel(um_loop_wheel(sessions->env->loop), &sessions->filter_timer);
    if (sessions->unicast != NULL) {
        um_unicast_unlisten(sessions->unicast, &sessions->unicast_listener);
    }
    um_map_clear(&sessions->by_key);
    um_map_clear(&sessions->failures_by_key);
    um_rcv_transports_destroy(sessions->transports);
    um_free(sessions);
}

/* --- joining --- */

static void format_source(struct um_rcv_session *session, const lbm_transport_source_info_t *info)
{
    lbm_transport_source_info_t whole = *info;
    whole.topic_idx = 0;
    um_source_string_format(&whole, session->source, sizeof session->source);
}

static struct um_rcv_session *not_available(struct um_rcv_sessions *sessions, int type)
{
    unsigned bit = 1u << ((unsigned)type & 31u);
    if ((sessions->unavailable_logged & bit) == 0) {
        sessions->unavailable_logged |= bit;
        um_log(UM_LOG_WARNING, "Core-9002-1",
               "sources of transport type 0x%x cannot be joined by this version; their topics stay unresolved",
               (unsigned)type);
    }
    um_error(UM_EOPNOTSUPP, "Core-9002-1", "transport type 0x%x is not available to receivers", (unsigned)type);
    return NULL;
}

/* Advertisements can be forged: what is not encrypted is not received where encryption is asked for. */
static bool is_allowed(struct um_rcv_sessions *sessions, const struct um_rcv_transport_ops *ops)
{
    const struct um_stream_settings *settings = sessions->env->stream_settings;
    if (settings == NULL || um_stream_settings_plain(settings) || ops->streams) {
        return true;
    }
    unsigned bit = 1u << ((unsigned)ops->type & 31u);
    if ((sessions->unavailable_logged & bit) == 0) {
        sessions->unavailable_logged |= bit;
        um_log(UM_LOG_WARNING, "Core-9565-46",
               "a source of transport %s is advertised to a context with %s: not joined, and not told of again",
               ops->name, settings->encryption ? "use_tls 1" : "compression");
    }
    um_stream_settings_allow(settings, "a source that is advertised", ops->name);
    return false;
}

static struct um_rcv_session *join_transport(struct um_rcv_sessions *sessions, const struct um_rcv_session_key *key,
                                             const struct um_receiver_options *opts)
{
    if (!um_rcv_transports_have((int)key->type)) {
        return not_available(sessions, (int)key->type);
    }
    struct um_rcv_transport *transport = um_rcv_transports_get(sessions->transports, (int)key->type);
    bool joins = transport != NULL && is_allowed(sessions, transport->ops);
    struct um_rcv_session *session = joins ? transport->ops->join(transport, opts, key) : NULL;
    if (session != NULL) {
        session->transport = transport;
    }
    return session;
}

static struct um_rcv_session *create_session(struct um_rcv_sessions *sessions, const struct um_rcv_session_key *key,
                                             const lbm_transport_source_info_t *info,
                                             const struct um_receiver_options *opts)
{
    const char *stack = sessions->env->opts->onload_acceleration_stack_name; /* comes before that of the receiver */
    bool onload = um_onload_enter(stack != NULL ? stack : opts->onload_acceleration_stack_name);
    struct um_rcv_session *session = join_transport(sessions, key, opts);
    um_onload_leave(onload);
    if (session == NULL) {
        return NULL;
    }
    session->owner = sessions;
    session->key = *key;
    session->state = UM_RCV_JOINING;
    session->attention = true;
    um_list_init(&session->node);
    um_list_init(&session->transport_node);
    um_list_init(&session->streams);
    um_list_init(&session->touched);
    um_list_init(&session->bos_due);
    um_list_init(&session->watched);
    um_u32_map_init(&session->topics);
    um_command_init(&session->bos_command, um_rcv_session_on_bos_command);
    format_source(session, info);
    if (um_map_put(&sessions->by_key, key, sizeof *key, session) != 0) {
        session->ops->destroy(session);
        um_error_nomem("receive session", sizeof *key);
        return NULL;
    }
    um_list_push_back(&sessions->list, &session->node);
    um_list_push_back(&session->transport->sessions, &session->transport_node);
    UM_DEBUG(UM_DEBUG_SESSION, "session %p[%s] joined", (void *)session, session->source);
    return session;
}

static int attach(struct um_rcv_session *session, struct um_rcv_stream *stream)
{
    if (um_u32_map_get(&session->topics, stream->tidx) != NULL) {
        return um_error(UM_EINVAL, "Core-9002-2", "%s[%u]: this topic index is already joined", session->source,
                        stream->tidx);
    }
    if (um_u32_map_put(&session->topics, stream->tidx, stream) != 0) {
        return um_error_nomem("topic of a receive session", sizeof *stream);
    }
    stream->session = session;
    stream->paused = false;
    um_list_init(&stream->node);
    um_list_init(&stream->touched);
    um_list_init(&stream->waiting);
    um_list_push_back(&session->streams, &stream->node);
    return 0;
}

enum um_rcv_join_kind um_rcv_sessions_join_kind(const struct um_rcv_sessions *sessions,
                                                const lbm_transport_source_info_t *info)
{
    struct um_rcv_session_key key = um_rcv_transports_key(info);
    return um_map_get(&sessions->by_key, &key, sizeof key) != NULL
               ? UM_RCV_JOIN_FREE
               : um_rcv_transports_join_kind(sessions->transports, &key);
}

int um_rcv_sessions_join(struct um_rcv_sessions *sessions, const lbm_transport_source_info_t *info,
                         const struct um_receiver_options *opts, struct um_rcv_stream *stream)
{
    struct um_rcv_session_key key = um_rcv_transports_key(info);
    struct um_rcv_session *session = um_map_get(&sessions->by_key, &key, sizeof key);
    bool created = session == NULL;
    if (created && (session = create_session(sessions, &key, info, opts)) == NULL) {
        stream->over = um_rcv_transports_nobody_there(&key);
        return -1;
    }
    if (attach(session, stream) != 0) {
        if (created) {
            retire(session);
            um_rcv_pool_free(session);
        }
        return -1;
    }
    if (created) {
        uint64_t now_ns = um_loop_now(sessions->env->loop);
        session->again = stream->again;
        session->immediate = stream->immediate;
        if (stream->from_start && session->ops->from_start != NULL) {
            session->ops->from_start(session);
        }
        if (session->ops->start != NULL) {
            session->ops->start(session, retry_at(sessions, &key, now_ns), now_ns);
        }
        return 0;
    }
    if (session->ops->compare != NULL) {
        session->ops->compare(session, opts);
    }
    if (session->state == UM_RCV_ACTIVE) {
        um_list_push_back(&session->bos_due, &stream->waiting);
        session->attention = true;
        um_loop_post(sessions->env->loop, &session->bos_command);
    }
    um_rcv_filter_set(session, sessions->unicast, stream, true);
    return 0;
}

/* --- all sessions --- */

static int stats_of(struct um_rcv_sessions *sessions, bool immediate, lbm_rcv_transport_stats_t *out, int max)
{
    int count = 0;
    struct um_list *it;
    UM_LIST_FOREACH(it, &sessions->list)
    {
        struct um_rcv_session *session = UM_CONTAINER_OF(it, struct um_rcv_session, node);
        if (session->immediate != immediate) {
            continue;
        }
        if (count < max) {
            um_rcv_session_fill_stats(session, &out[count]);
        }
        count++;
    }
    return count;
}

int um_rcv_sessions_stats(struct um_rcv_sessions *sessions, lbm_rcv_transport_stats_t *out, int max)
{
    return stats_of(sessions, false, out, max);
}

int um_rcv_sessions_immediate_stats(struct um_rcv_sessions *sessions, lbm_rcv_transport_stats_t *out, int max)
{
    return stats_of(sessions, true, out, max);
}

static void reset_stats_of(struct um_rcv_sessions *sessions, bool immediate)
{
    struct um_list *it;
    UM_LIST_FOREACH(it, &sessions->list)
    {
        struct um_rcv_session *session = UM_CONTAINER_OF(it, struct um_rcv_session, node);
        if (session->immediate == immediate) {
            um_rcv_session_reset_stats(session);
        }
    }
}

void um_rcv_sessions_stats_reset(struct um_rcv_sessions *sessions)
{
    reset_stats_of(sessions, false);
}

void um_rcv_sessions_immediate_stats_reset(struct um_rcv_sessions *sessions)
{
    reset_stats_of(sessions, true);
}

/* --- groups on which everybody is heard --- */

int um_rcv_sessions_listen(struct um_rcv_sessions *sessions, uint32_t group, uint16_t port,
                           struct um_rcv_listener *listener)
{
    struct um_rcv_transport *transport = um_rcv_transports_get(sessions->transports, LBM_TRANSPORT_TYPE_LBTRM);
    return transport != NULL ? transport->ops->listen(transport, group, port, listener) : -1;
}

void um_rcv_sessions_unlisten(struct um_rcv_sessions *sessions, uint32_t group, uint16_t port,
                              struct um_rcv_listener *listener)
{
    struct um_rcv_transport *transport = um_rcv_transports_get(sessions->transports, LBM_TRANSPORT_TYPE_LBTRM);
    if (transport != NULL) {
        transport->ops->unlisten(transport, group, port, listener);
    }
}

/* --- what the transports answer --- */

void um_rcv_sessions_set_nak_cutoff(struct um_rcv_sessions *sessions, bool cutoff)
{
    um_rcv_transports_set_nak_cutoff(sessions->transports, cutoff);
}

void um_rcv_sessions_in_force(const struct um_rcv_sessions *sessions, struct um_receiver_options *out)
{
    um_rcv_transports_in_force(sessions->env, out);
}

void um_rcv_sessions_add_counts(const struct um_rcv_sessions *sessions, int type, struct um_rcv_datagram_counts *sum)
{
    um_rcv_transports_add_counts(sessions->transports, type, sum);
}

void um_rcv_sessions_counts_reset(struct um_rcv_sessions *sessions)
{
    um_rcv_transports_counts_reset(sessions->transports);
}

int um_rcv_sessions_process(struct um_rcv_sessions *sessions, int type, uint64_t wait_ms, uint64_t rounds)
{
    return um_rcv_transports_process(sessions->transports, type, wait_ms, rounds);
}

int um_rcv_sessions_unblock(struct um_rcv_sessions *sessions, int type)
{
    return um_rcv_transports_unblock(sessions->transports, type);
}
