/* One receive session: demultiplexing of its messages by topic index to the streams on it, BOS, back-pressure, facts.
 * The transport below feeds messages in; core gets stream events; um_rcv_pool.c makes and ends sessions. Everything
 * runs on the loop. */
#include <stdio.h>

#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "transport/session/um_rcv_filter.h"
#include "transport/session/um_rcv_pool.h"

/* --- beginning --- */

/* BOS for streams that joined while the session was active. */
static void report_due_bos(struct um_rcv_session *session)
{
    struct um_list *it;
    while (session->state == UM_RCV_ACTIVE && (it = um_list_first(&session->bos_due)) != NULL) {
        struct um_rcv_stream *stream = UM_CONTAINER_OF(it, struct um_rcv_stream, waiting);
        um_list_remove(it);
        stream->events->on_bos(stream);
    }
}

void um_rcv_session_on_bos_command(struct um_command *command)
{
    struct um_rcv_session *session = UM_CONTAINER_OF(command, struct um_rcv_session, bos_command);
    session->busy++;
    report_due_bos(session);
    um_rcv_session_end(session, um_loop_now(session->owner->env->loop));
}

/* --- receiving --- */

static void report_bos(struct um_rcv_session *session)
{
    session->state = UM_RCV_ACTIVE;
    struct um_list *it;
    UM_LIST_FOREACH(it, &session->streams)
    {
        struct um_rcv_stream *stream = UM_CONTAINER_OF(it, struct um_rcv_stream, node);
        um_list_push_back(&session->bos_due, &stream->waiting);
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
        um_rcv_filter_on_init(session, session->owner->unicast, &msg->ssf_init);
    }
    if ((msg->present & UM_LBMC_HAS_TSNI) != 0) {
        on_tsni(session, msg, now_ns);
    }
}

/* Retransmissions to late joiners and proxies have a header of their own; none of their features exists here. */
static void on_unsupported(struct um_rcv_session *session, const struct um_lbmc_msg *msg, uint64_t now_ns)
{
    session->msgs_unsupported++;
    um_log_limited(um_log_of(session->source), now_ns, UM_LOG_WARNING, "Core-9002-9",
                   "%s: messages of type %u are of no use to this version: %llu ignored so far", session->source,
                   msg->type, (unsigned long long)session->msgs_unsupported);
}

static inline void touch(struct um_rcv_session *session, struct um_rcv_stream *stream)
{
    if (stream->events->on_read_end != NULL && um_list_empty(&stream->touched)) {
        um_list_push_back(&session->touched, &stream->touched);
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
        } else {
            on_unsupported(session, msg, now_ns);
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
    touch(session, stream);
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

/* Each stream that watches now, once; it may make any of them leave or stop watching. */
static void tell_progress(struct um_rcv_session *session, uint64_t now_ns)
{
    struct um_list pass, *it;
    um_list_init(&pass);
    while ((it = um_list_first(&session->watched)) != NULL) {
        um_list_remove(it);
        um_list_push_back(&pass, it);
    }
    while ((it = um_list_first(&pass)) != NULL) {
        struct um_rcv_stream *stream = UM_CONTAINER_OF(it, struct um_rcv_stream, waiting);
        um_list_remove(it);
        um_list_push_back(&session->watched, it);
        touch(session, stream);
        stream->events->on_progress(stream, now_ns);
    }
}

bool um_rcv_session_end(struct um_rcv_session *session, uint64_t now_ns)
{
    if (__builtin_expect(!um_list_empty(&session->watched), 0)) {
        tell_progress(session, now_ns);
    }
    struct um_list *it;
    while ((it = um_list_first(&session->touched)) != NULL) {
        struct um_rcv_stream *stream = UM_CONTAINER_OF(it, struct um_rcv_stream, touched);
        um_list_remove(it);
        stream->events->on_read_end(stream, now_ns);
    }
    bool ended = session->state == UM_RCV_ENDED;
    if (--session->busy == 0 && ended) {
        um_rcv_pool_free(session);
    }
    return !ended;
}

/* --- how far the transport is --- */

uint32_t um_rcv_stream_position(const struct um_rcv_stream *stream)
{
    return stream->session == NULL ? 0 : stream->session->position;
}

bool um_rcv_stream_complete_before(const struct um_rcv_stream *stream, uint32_t position)
{
    struct um_rcv_session *session = stream->session;
    return session != NULL &&
           (session->ops->complete_before == NULL || session->ops->complete_before(session, position));
}

void um_rcv_stream_watch(struct um_rcv_stream *stream, bool on)
{
    um_list_remove(&stream->waiting);
    if (on && stream->session != NULL) {
        um_list_push_back(&stream->session->watched, &stream->waiting);
    }
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
    um_rcv_session_wanted(session);
}

void um_rcv_session_wanted(struct um_rcv_session *session)
{
    if (--session->paused == 0) {
        session->resumed++;
        if (session->ops->set_paused != NULL) {
            session->ops->set_paused(session, false);
        }
    }
}

unsigned um_rcv_session_resumed(const struct um_rcv_stream *stream)
{
    return stream->session != NULL ? stream->session->resumed : 0;
}

bool um_rcv_session_paused(const struct um_rcv_stream *stream)
{
    return stream->session != NULL && stream->session->paused != 0;
}

bool um_rcv_stream_can_pause(const struct um_rcv_stream *stream)
{
    return stream->session != NULL && stream->session->ops->set_paused != NULL;
}

/* --- facts --- */

const char *um_rcv_stream_source(const struct um_rcv_stream *stream)
{
    return stream->session != NULL ? stream->session->source : "";
}

void um_rcv_session_fill_stats(const struct um_rcv_session *session, lbm_rcv_transport_stats_t *out)
{
    memset(out, 0, sizeof *out);
    snprintf(out->source, sizeof out->source, "%s", session->source);
    session->ops->fill_stats(session, out);
}

void um_rcv_session_reset_stats(struct um_rcv_session *session)
{
    session->bytes_rcved = 0;
    session->msgs_rcved = 0;
    session->msgs_no_topic = 0;
    session->reqs_rcved = 0;
    session->msgs_malformed = session->msgs_unsupported = 0;
    if (session->ops->reset_stats != NULL) {
        session->ops->reset_stats(session);
    }
}

int um_rcv_stream_stats(struct um_rcv_stream *stream, lbm_rcv_transport_stats_t *out)
{
    if (stream->session == NULL) {
        return um_error(UM_EINVAL, "Core-9002-3", "the stream of topic index %u is on no transport session",
                        stream->tidx);
    }
    um_rcv_session_fill_stats(stream->session, out);
    return 0;
}

uint64_t um_rcv_stream_malformed(const struct um_rcv_stream *stream)
{
    return stream->session == NULL ? 0 : stream->session->msgs_malformed;
}

void um_rcv_stream_stats_reset(struct um_rcv_stream *stream)
{
    if (stream->session != NULL) {
        um_rcv_session_reset_stats(stream->session);
    }
}

uint64_t um_rcv_stream_unsupported(const struct um_rcv_stream *stream)
{
    return stream->session == NULL ? 0 : stream->session->msgs_unsupported;
}

uint64_t um_rcv_stream_kernel_drops(const struct um_rcv_stream *stream)
{
    const struct um_rcv_session *session = stream->session;
    return session != NULL && session->ops->kernel_drops != NULL ? session->ops->kernel_drops(session) : 0;
}
