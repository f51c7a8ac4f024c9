/* Receive sessions of a context: the table by address, the streams on each,
 * demultiplexing by topic index, BOS and EOS, statistics. The transport below
 * feeds messages in; core gets stream events. Everything runs on the loop. */
#include "transport/um_rcv_session.h"

#include <stdio.h>

#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "net/um_onload.h"
#include "transport/smx/um_smx_receiver.h"
#include "transport/ipc/um_ipc_receiver.h"
#include "transport/tcp/um_tcp_receiver.h"
#include "transport/udp/um_udp_receivers.h"
#include "transport/um_rcv_filter.h"
#include "transport/um_rcv_opening.h"
#include "transport/um_rcv_transport.h"
#include "wire/um_source_string.h"

/* One receive takes at most this much; a message (64 KiB) always fits, and 256 KiB is what one system call moves
 * efficiently while staying inside the second-level cache. */
#define RECEIVE_BUFFER_SIZE (256u * 1024u)
#define RECEIVE_BUFFERS_KEPT 16u

/* A connection that brought no message is not tried again before this. */
#define RETRY_DELAY_NS UM_NS_PER_SEC

/* Filter requests that could not be sent are repeated after this. */
#define FILTER_RETRY_NS UM_NS_PER_SEC

struct um_rcv_sessions {
    struct um_transport_env *env;
    struct um_uim *uim;
    struct um_map by_key;
    struct um_list list;
    struct um_list failures; /* struct failure, oldest first */
    struct um_buf_pool *pool;
    struct um_udp_receivers *udp;
    struct um_smx_receivers *smx;
    struct um_ipc_receivers *ipc;
    struct um_timer filter_timer; /* armed while a session's filter requests are to be repeated */
    unsigned unavailable_logged;  /* bit per transport type */
};

struct failure {
    struct um_list node;
    struct um_rcv_session_key key;
    uint64_t until_ns;
};

static bool same_key(const struct um_rcv_session_key *a, const struct um_rcv_session_key *b)
{
    return memcmp(a, b, sizeof *a) == 0; /* all words, no padding */
}

static void on_uim_reconnect(void *user, uint32_t ip, uint16_t port)
{
    struct um_rcv_sessions *sessions = user;
    struct um_list *it;
    UM_LIST_FOREACH(it, &sessions->list)
    {
        struct um_rcv_session *session = UM_CONTAINER_OF(it, struct um_rcv_session, node);
        if (session->filter.wanted && session->filter.ip == ip && session->filter.port == port) {
            um_rcv_filter_include_all(session, sessions->uim);
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
            um_rcv_filter_include_all(session, sessions->uim);
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

struct um_rcv_sessions *um_rcv_sessions_create(struct um_transport_env *env, struct um_uim *uim)
{
    struct um_rcv_sessions *sessions = um_calloc(1, sizeof *sessions);
    if (sessions == NULL) {
        um_error_nomem("receive sessions", sizeof *sessions);
        return NULL;
    }
    sessions->pool = um_buf_pool_create(RECEIVE_BUFFER_SIZE, RECEIVE_BUFFERS_KEPT);
    if (sessions->pool == NULL) {
        um_free(sessions);
        um_error_nomem("receive buffer pool", RECEIVE_BUFFER_SIZE);
        return NULL;
    }
    sessions->udp = um_udp_receivers_create(env);
    sessions->smx = sessions->udp != NULL ? um_smx_receivers_create(env) : NULL;
    sessions->ipc = sessions->smx != NULL ? um_ipc_receivers_create(env) : NULL;
    if (sessions->ipc == NULL) {
        um_smx_receivers_destroy(sessions->smx);
        um_udp_receivers_destroy(sessions->udp);
        um_buf_pool_release(sessions->pool);
        um_free(sessions);
        return NULL;
    }
    sessions->env = env;
    sessions->uim = uim;
    um_timer_init(&sessions->filter_timer, on_filter_timer);
    um_map_init(&sessions->by_key, NULL);
    um_list_init(&sessions->list);
    um_list_init(&sessions->failures);
    if (uim != NULL) {
        um_uim_on_reconnect(uim, on_uim_reconnect, sessions);
    }
    return sessions;
}

/* --- connections that failed lately --- */

static void forget_failures(struct um_rcv_sessions *sessions, uint64_t now_ns)
{
    struct um_list *it;
    while ((it = um_list_first(&sessions->failures)) != NULL) {
        struct failure *failure = UM_CONTAINER_OF(it, struct failure, node);
        if (failure->until_ns > now_ns) {
            return;
        }
        um_list_remove(it);
        um_free(failure);
    }
}

/* Without memory the next attempt is merely not delayed. */
static void remember_failure(struct um_rcv_sessions *sessions, const struct um_rcv_session_key *key, uint64_t now_ns)
{
    struct failure *failure = um_calloc(1, sizeof *failure);
    if (failure != NULL) {
        failure->key = *key;
        failure->until_ns = now_ns + RETRY_DELAY_NS;
        um_list_push_back(&sessions->failures, &failure->node);
    }
}

/* Earliest time at which a connection to this address may be tried again; 0 = at once. */
static uint64_t retry_at(struct um_rcv_sessions *sessions, const struct um_rcv_session_key *key, uint64_t now_ns)
{
    uint64_t until_ns = 0;
    struct um_list *it;
    forget_failures(sessions, now_ns);
    UM_LIST_FOREACH(it, &sessions->failures)
    {
        const struct failure *failure = UM_CONTAINER_OF(it, struct failure, node);
        if (same_key(&failure->key, key)) {
            until_ns = failure->until_ns;
        }
    }
    return until_ns;
}

/* --- the life of a session --- */

static void detach(struct um_rcv_stream *stream)
{
    struct um_rcv_session *session = stream->session;
    um_rcv_opening_forget(stream);
    um_list_remove(&stream->node);
    um_list_remove(&stream->touched);
    um_list_remove(&stream->bos_due);
    um_u32_map_remove(&session->topics, stream->tidx);
    if (session->last_stream == stream) {
        session->last_stream = NULL;
    }
    stream->session = NULL;
    stream->paused = false;
}

static void free_session(struct um_rcv_session *session)
{
    um_u32_map_clear(&session->topics);
    session->ops->destroy(session);
}

/* Leave the table: from here on a join of the same address makes a new session. */
static void retire(struct um_rcv_session *session)
{
    um_map_remove(&session->owner->by_key, &session->key, sizeof session->key);
    um_list_remove(&session->node);
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
    if (session->state == UM_RCV_JOINING && session->key.type == LBM_TRANSPORT_TYPE_TCP) {
        remember_failure(session->owner, &session->key, now_ns);
    }
    session->busy++;
    retire(session);
    struct um_list *it;
    while ((it = um_list_first(&session->streams)) != NULL) {
        struct um_rcv_stream *stream = UM_CONTAINER_OF(it, struct um_rcv_stream, node);
        if (stream->opening != NULL && !um_rcv_opening_release(stream, now_ns)) {
            continue;
        }
        detach(stream);
        stream->events->on_eos(stream);
    }
    if (--session->busy == 0) {
        free_session(session);
    }
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
            free_session(session);
        }
        return;
    }
    um_rcv_filter_set(session, session->owner->uim, stream->tidx, false);
    if (was_paused && --session->paused == 0 && session->ops->set_paused != NULL) {
        session->ops->set_paused(session, false);
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
        free_session(session);
    }
    forget_failures(sessions, UM_NEVER);
    um_timer_cancel(um_loop_wheel(sessions->env->loop), &sessions->filter_timer);
    if (sessions->uim != NULL) {
        um_uim_on_reconnect(sessions->uim, NULL, NULL);
    }
    um_map_clear(&sessions->by_key);
    um_ipc_receivers_destroy(sessions->ipc);
    um_smx_receivers_destroy(sessions->smx);
    um_udp_receivers_destroy(sessions->udp);
    um_buf_pool_release(sessions->pool);
    um_free(sessions);
}

struct um_ipc_receivers *um_rcv_sessions_ipc(struct um_rcv_sessions *sessions)
{
    return sessions->ipc;
}

/* --- joining --- */

/* BOS for streams that joined while the session was active. */
static void report_due_bos(struct um_rcv_session *session)
{
    struct um_list *it;
    while (session->state == UM_RCV_ACTIVE && (it = um_list_first(&session->bos_due)) != NULL) {
        struct um_rcv_stream *stream = UM_CONTAINER_OF(it, struct um_rcv_stream, bos_due);
        um_list_remove(it);
        stream->events->on_bos(stream);
    }
}

static void on_bos_command(struct um_command *command)
{
    struct um_rcv_session *session = UM_CONTAINER_OF(command, struct um_rcv_session, bos_command);
    session->busy++;
    report_due_bos(session);
    um_rcv_session_end(session, um_loop_now(session->owner->env->loop));
}

static void format_source(struct um_rcv_session *session, const lbm_transport_source_info_t *info)
{
    lbm_transport_source_info_t whole = *info;
    whole.topic_idx = 0;
    um_source_string_format(&whole, session->source, sizeof session->source);
}

static struct um_rcv_session_key key_of(const lbm_transport_source_info_t *info)
{
    struct um_rcv_session_key key = {.type = (uint32_t)info->type, .session_id = info->session_id};
    switch (info->type) {
    case LBM_TRANSPORT_TYPE_LBTRM:
        key.group = info->mc_group;
        key.dest_port = info->dest_port;
        key.ip = info->src_ip;
        key.port = info->src_port;
        break;
    case LBM_TRANSPORT_TYPE_TCP:
    case LBM_TRANSPORT_TYPE_LBTRU:
        key.ip = info->src_ip;
        key.port = info->src_port;
        break;
    default:
        key.transport_id = info->transport_id;
        break;
    }
    return key;
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

static struct um_rcv_session *create_transport(struct um_rcv_sessions *sessions, const struct um_rcv_session_key *key,
                                               const struct um_receiver_options *opts)
{
    switch (key->type) {
    case LBM_TRANSPORT_TYPE_TCP:
        return um_tcp_receiver_create(sessions->env, opts, key, sessions->pool);
    case LBM_TRANSPORT_TYPE_LBTRM:
        return um_lbtrm_session_create(sessions->udp, opts, key);
    case LBM_TRANSPORT_TYPE_LBTRU:
        return um_lbtru_session_create(sessions->udp, opts, key);
    case LBM_TRANSPORT_TYPE_LBTSMX:
        return um_smx_receiver_create(sessions->smx, opts, key);
    case LBM_TRANSPORT_TYPE_LBTIPC:
        return um_ipc_receiver_create(sessions->ipc, opts, key);
    default:
        return not_available(sessions, (int)key->type);
    }
}

static struct um_rcv_session *create_session(struct um_rcv_sessions *sessions, const struct um_rcv_session_key *key,
                                             const lbm_transport_source_info_t *info,
                                             const struct um_receiver_options *opts)
{
    const char *stack = sessions->env->opts->onload_acceleration_stack_name; /* comes before that of the receiver */
    bool onload = um_onload_enter(stack != NULL ? stack : opts->onload_acceleration_stack_name);
    struct um_rcv_session *session = create_transport(sessions, key, opts);
    um_onload_leave(onload);
    if (session == NULL) {
        return NULL;
    }
    session->owner = sessions;
    session->key = *key;
    session->state = UM_RCV_JOINING;
    session->attention = true;
    um_list_init(&session->node);
    um_list_init(&session->streams);
    um_list_init(&session->touched);
    um_list_init(&session->bos_due);
    um_u32_map_init(&session->topics);
    um_command_init(&session->bos_command, on_bos_command);
    format_source(session, info);
    if (um_map_put(&sessions->by_key, key, sizeof *key, session) != 0) {
        session->ops->destroy(session);
        um_error_nomem("receive session", sizeof *key);
        return NULL;
    }
    um_list_push_back(&sessions->list, &session->node);
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
    stream->open = session->ops->complete_before == NULL || !stream->in_order;
    stream->opening = NULL;
    um_list_init(&stream->node);
    um_list_init(&stream->touched);
    um_list_init(&stream->bos_due);
    um_list_push_back(&session->streams, &stream->node);
    return 0;
}

int um_rcv_sessions_join(struct um_rcv_sessions *sessions, const lbm_transport_source_info_t *info,
                         const struct um_receiver_options *opts, struct um_rcv_stream *stream)
{
    struct um_rcv_session_key key = key_of(info);
    struct um_rcv_session *session = um_map_get(&sessions->by_key, &key, sizeof key);
    bool created = session == NULL;
    if (created && (session = create_session(sessions, &key, info, opts)) == NULL) {
        return -1;
    }
    if (attach(session, stream) != 0) {
        if (created) {
            retire(session);
            free_session(session);
        }
        return -1;
    }
    if (created) {
        uint64_t now_ns = um_loop_now(sessions->env->loop);
        session->again = stream->again;
        if (session->ops->start != NULL) {
            session->ops->start(session, retry_at(sessions, &key, now_ns), now_ns);
        }
        return 0;
    }
    if (session->ops->compare != NULL) {
        session->ops->compare(session, opts);
    }
    if (session->state == UM_RCV_ACTIVE) {
        um_list_push_back(&session->bos_due, &stream->bos_due);
        session->attention = true;
        um_loop_post(sessions->env->loop, &session->bos_command);
    }
    um_rcv_filter_set(session, sessions->uim, stream->tidx, true);
    return 0;
}

/* --- receiving --- */

static void report_bos(struct um_rcv_session *session)
{
    session->state = UM_RCV_ACTIVE;
    struct um_list *it;
    UM_LIST_FOREACH(it, &session->streams)
    {
        struct um_rcv_stream *stream = UM_CONTAINER_OF(it, struct um_rcv_stream, node);
        um_list_push_back(&session->bos_due, &stream->bos_due);
    }
    report_due_bos(session);
}

/* The rare things that come before a message. False: the session has ended. */
static bool attend(struct um_rcv_session *session)
{
    if (session->state == UM_RCV_JOINING) {
        report_bos(session);
    } else {
        report_due_bos(session);
    }
    if (session->state == UM_RCV_ENDED) {
        return false;
    }
    session->attention = false;
    return true;
}

static struct um_rcv_stream *find_stream(struct um_rcv_session *session, uint32_t tidx)
{
    struct um_rcv_stream *stream = session->last_stream;
    if (stream == NULL || stream->tidx != tidx) {
        stream = um_u32_map_get(&session->topics, tidx);
        if (stream != NULL) {
            session->last_stream = stream;
        }
    }
    return stream;
}

static void on_tsni(struct um_rcv_session *session, const struct um_lbmc_msg *msg, uint64_t now_ns)
{
    struct um_lbmc_tsni_iter iter = {0, 0};
    uint32_t tidx, last_sqn;
    while (session->state == UM_RCV_ACTIVE && um_lbmc_tsni_next(msg, &iter, &tidx, &last_sqn)) {
        struct um_rcv_stream *stream = um_u32_map_get(&session->topics, tidx);
        if (stream != NULL) {
            stream->events->on_tsni(stream, last_sqn, now_ns);
        }
    }
}

static void on_control(struct um_rcv_session *session, const struct um_lbmc_msg *msg, uint64_t now_ns)
{
    if ((msg->present & UM_LBMC_HAS_SSF_INIT) != 0) {
        um_rcv_filter_on_init(session, session->owner->uim, &msg->ssf_init);
    }
    if ((msg->present & UM_LBMC_HAS_TSNI) != 0) {
        on_tsni(session, msg, now_ns);
    }
}

bool um_rcv_session_message(struct um_rcv_session *session, const struct um_lbmc_msg *msg, struct um_buf *buf,
                            uint64_t now_ns)
{
    if (session->attention && !attend(session)) {
        return false;
    }
    if (msg->type != UM_LBMC_MESSAGE) {
        if (msg->type == UM_LBMC_CONTROL) {
            on_control(session, msg, now_ns);
        }
        return session->state != UM_RCV_ENDED;
    }
    session->msgs_rcved++;
    if ((msg->present & UM_LBMC_HAS_REQUEST) != 0) {
        session->reqs_rcved++;
    }
    struct um_rcv_stream *stream = find_stream(session, msg->tidx);
    if (stream == NULL) {
        session->msgs_no_topic++;
        return true;
    }
    if (__builtin_expect(!stream->open, 0) && um_rcv_opening_hold(session, stream, msg, buf, now_ns)) {
        return session->state != UM_RCV_ENDED;
    }
    if (stream->events->on_read_end != NULL && um_list_empty(&stream->touched)) {
        um_list_push_back(&session->touched, &stream->touched);
    }
    stream->events->on_data(stream, msg, buf, now_ns);
    return session->state != UM_RCV_ENDED;
}

bool um_rcv_session_malformed(struct um_rcv_session *session)
{
    session->msgs_malformed++;
    return !session->attention || attend(session);
}

bool um_rcv_session_activity(struct um_rcv_session *session)
{
    return !session->attention || attend(session);
}

bool um_rcv_session_end(struct um_rcv_session *session, uint64_t now_ns)
{
    if (__builtin_expect(session->openings != 0, 0)) {
        um_rcv_openings_check(session, now_ns);
    }
    struct um_list *it;
    while ((it = um_list_first(&session->touched)) != NULL) {
        struct um_rcv_stream *stream = UM_CONTAINER_OF(it, struct um_rcv_stream, touched);
        um_list_remove(it);
        stream->events->on_read_end(stream, now_ns);
    }
    bool ended = session->state == UM_RCV_ENDED;
    if (--session->busy == 0 && ended) {
        free_session(session);
    }
    return !ended;
}

/* --- back-pressure --- */

void um_rcv_session_pause(struct um_rcv_stream *stream)
{
    struct um_rcv_session *session = stream->session;
    if (session == NULL || stream->paused) {
        return;
    }
    stream->paused = true;
    if (session->paused++ == 0 && session->ops->set_paused != NULL) {
        session->ops->set_paused(session, true);
    }
}

void um_rcv_session_resume(struct um_rcv_stream *stream)
{
    struct um_rcv_session *session = stream->session;
    if (session == NULL || !stream->paused) {
        return;
    }
    stream->paused = false;
    if (--session->paused == 0 && session->ops->set_paused != NULL) {
        session->ops->set_paused(session, false);
    }
}

/* --- facts --- */

const char *um_rcv_stream_source(const struct um_rcv_stream *stream)
{
    return stream->session != NULL ? stream->session->source : "";
}

static void fill_stats(const struct um_rcv_session *session, lbm_rcv_transport_stats_t *out)
{
    memset(out, 0, sizeof *out);
    snprintf(out->source, sizeof out->source, "%s", session->source);
    session->ops->fill_stats(session, out);
}

static void reset_stats(struct um_rcv_session *session)
{
    session->bytes_rcved = 0;
    session->msgs_rcved = 0;
    session->msgs_no_topic = 0;
    session->reqs_rcved = 0;
    session->msgs_malformed = 0;
    session->openings_cut = 0;
    if (session->ops->reset_stats != NULL) {
        session->ops->reset_stats(session);
    }
}

int um_rcv_sessions_stats(struct um_rcv_sessions *sessions, lbm_rcv_transport_stats_t *out, int max)
{
    int count = 0;
    struct um_list *it;
    UM_LIST_FOREACH(it, &sessions->list)
    {
        if (count < max) {
            fill_stats(UM_CONTAINER_OF(it, struct um_rcv_session, node), &out[count]);
        }
        count++;
    }
    return count;
}

void um_rcv_sessions_stats_reset(struct um_rcv_sessions *sessions)
{
    struct um_list *it;
    UM_LIST_FOREACH(it, &sessions->list)
    {
        reset_stats(UM_CONTAINER_OF(it, struct um_rcv_session, node));
    }
}

int um_rcv_stream_stats(struct um_rcv_stream *stream, lbm_rcv_transport_stats_t *out)
{
    if (stream->session == NULL) {
        return um_error(UM_EINVAL, "Core-9002-3", "the stream of topic index %u is on no transport session",
                        stream->tidx);
    }
    fill_stats(stream->session, out);
    return 0;
}

uint64_t um_rcv_stream_malformed(const struct um_rcv_stream *stream)
{
    return stream->session == NULL ? 0 : stream->session->msgs_malformed;
}

void um_rcv_stream_stats_reset(struct um_rcv_stream *stream)
{
    if (stream->session != NULL) {
        reset_stats(stream->session);
    }
}

/* --- UDP --- */

void um_rcv_sessions_set_nak_cutoff(struct um_rcv_sessions *sessions, bool cutoff)
{
    um_udp_receivers_set_nak_cutoff(sessions->udp, cutoff);
}

void um_rcv_sessions_udp_counts(const struct um_rcv_sessions *sessions, struct um_udp_rcv_counts *out)
{
    um_udp_receivers_counts(sessions->udp, out);
}

void um_rcv_sessions_udp_counts_reset(struct um_rcv_sessions *sessions)
{
    um_udp_receivers_counts_reset(sessions->udp);
}

uint64_t um_rcv_stream_kernel_drops(const struct um_rcv_stream *stream)
{
    const struct um_rcv_session *session = stream->session;
    bool udp = session != NULL &&
               (session->key.type == LBM_TRANSPORT_TYPE_LBTRM || session->key.type == LBM_TRANSPORT_TYPE_LBTRU);
    return udp ? um_udp_session_kernel_drops(session) : 0;
}
