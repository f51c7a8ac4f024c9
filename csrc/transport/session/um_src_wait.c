/* Senders of a source session that must wait, and those refused who are told when
 * they may go on. Called under the session lock, which is given up while waiting;
 * reporting runs on the loop without it. */
#include "base/um_error.h"
#include "base/um_mem.h"
#include "transport/session/um_src_parts.h"

/* A waiting sender's place in the line: first come, first served, but those between two fragments of their message have
 * had their turn. Who comes while nothing is blocked goes on without waiting, or every message would cost a change of
 * threads as long as anybody waits; once blocked it stands behind the others. Lives on the sender's stack. */
struct place {
    struct um_list node;
    bool in_message;
};

static void line_up(struct um_src_session *session, struct place *place)
{
    struct um_list *before = session->line.next;
    while (before != &session->line &&
           (!place->in_message || UM_CONTAINER_OF(before, struct place, node)->in_message)) {
        before = before->next;
    }
    um_list_insert_before(before, &place->node);
}

static void wait_for_change(struct um_src_session *session, struct um_src_stream *stream)
{
    session->waiters++;
    stream->waiters++;
    if (session->polling) {
        um_condition_wait(&session->changed, &session->lock);
    } else {
        session->polling = true;
        session->ops->wait(session);
        session->polling = false;
        um_condition_signal_all(&session->changed); /* another waiting thread takes over the polling */
    }
    stream->waiters--;
    session->waiters--;
    if (stream->special & UM_STREAM_CLOSING) {
        um_condition_signal_all(&session->changed);
    }
}

void um_src_wake_waiters(struct um_src_session *session)
{
    if (session->waiters > 0) {
        um_condition_signal_all(&session->changed);
        if (session->polling) {
            session->ops->interrupt(session);
        }
    }
}

void um_src_session_relieve(struct um_src_session *session)
{
    if ((session->waiters == 0 && !session->wakeups_wanted) || !session->ops->relieved(session)) {
        return;
    }
    um_src_wake_waiters(session);
    if (session->wakeups_wanted) {
        session->wakeups_due = true;
        um_loop_post(session->env->loop, &session->command);
    }
}

int um_src_session_refuse(struct um_src_session *session, struct um_src_stream *stream)
{
    stream->wakeup_wanted = true;
    session->wakeups_wanted = true;
    if (session->batches_blocked) {
        um_src_session_relieve(session); /* has the transport tell when it is over */
    }
    return um_error(UM_EWOULDBLOCK, "CoreApi-5688-3232",
                    "send would block: %s; wait for the wakeup event, or send without LBM_SRC_NONBLOCK outside of "
                    "callbacks",
                    session->ops->blocked_by);
}

int um_src_closing_error(void)
{
    return um_error(UM_EINVAL, "CoreApi-5688-3233", "send: the source was deleted while the call waited");
}

int um_src_wait_turn(struct um_src_session *session, struct um_src_stream *stream, bool own_message)
{
    unsigned others = own_message ? 0 : UM_STREAM_IN_MESSAGE;
    struct place place = {.in_message = own_message};
    bool was_blocked = false;
    line_up(session, &place);
    while (!(stream->special & UM_STREAM_CLOSING)) {
        was_blocked |= um_src_session_blocked(session);
        bool held_up = was_blocked && !session->ops->relieved(session);
        if (!held_up && session->line.next == &place.node && !(stream->special & others)) {
            break;
        }
        wait_for_change(session, stream);
    }
    um_list_remove(&place.node);
    um_src_wake_waiters(session); /* the next one looks */
    if (session->waiters == 0) {
        session->ops->resume(session);
    }
    return stream->special & UM_STREAM_CLOSING ? um_src_closing_error() : 0;
}

/* While the rate limit holds data back, a message that only joins the batch is welcome. */
static bool stays_in_batch(const struct um_src_session *session, const struct um_send *send)
{
    return session->batches_blocked && session->batch != NULL && !(send->flags & (LBM_MSG_FLUSH | LBM_MSG_END_BATCH)) &&
           !send->leads && !session->one_topic &&
           session->batch->len + UM_LBMC_DATA_HDR_LEN + send->headers_len + send->len <=
               session->datagram_max - session->header_reserve &&
           session->batch_user_bytes + send->len < session->flush_at;
}

int um_src_session_admitted(struct um_src_session *session, struct um_src_stream *stream, struct um_send *send)
{
    if (stream->special & UM_STREAM_CLOSING) {
        return um_src_closing_error();
    }
    if ((!um_src_session_blocked(session) || send->unconditional || stays_in_batch(session, send)) &&
        !(stream->special & UM_STREAM_IN_MESSAGE)) {
        return 0;
    }
    if ((send->flags & LBM_SRC_NONBLOCK) || um_loop_in_family(session->env->loop)) {
        return um_src_session_refuse(session, stream);
    }
    send->waited = true;
    return um_src_wait_turn(session, stream, false);
}

void um_src_report_wakeups(struct um_src_session *session)
{
    struct um_list *it, *tmp;
    UM_LIST_FOREACH_SAFE(it, tmp, &session->streams)
    {
        struct um_src_stream *stream = UM_CONTAINER_OF(it, struct um_src_stream, node);
        um_src_session_lock(session);
        bool wanted = stream->wakeup_wanted;
        stream->wakeup_wanted = false;
        um_src_session_unlock(session);
        if (wanted) {
            stream->events->on_wakeup(stream);
        }
    }
}
