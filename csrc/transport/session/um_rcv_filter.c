/* Source-side filtering on the receiving side: sends SSF_CREQ to the request
 * port of a source that filters. The requests travel bare, without stream and
 * destination headers. Everything runs on the loop. */
#include "transport/session/um_rcv_filter.h"

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "transport/session/um_rcv_pool.h"

enum { MODE_INCLUDE = 0, MODE_EXCLUDE = 1 };

static bool send_request(struct um_rcv_session *session, struct um_unicast *unicast, uint32_t tidx, bool include)
{
    uint8_t message[20];
    struct um_lbmc_ssf_creq creq = {.mode = include ? MODE_INCLUDE : MODE_EXCLUDE,
                                    .transport_idx = session->filter.transport_idx,
                                    .topic_idx = tidx,
                                    .client_idx = session->filter.client_idx};
    um_lbmc_encode_ssf_creq(message, &creq);
    if (um_unicast_send_bare(unicast, session->filter.from_ip, session->filter.ip, session->filter.port, message,
                             sizeof message) == 0) {
        return true;
    }
    um_log_limited(um_log_of(session->source), um_clock_ns(), UM_LOG_WARNING, "Core-9002-4",
                   "%s[%u]: the request to %s this topic was not sent: %s", session->source, tidx,
                   include ? "receive" : "stop", um_errmsg());
    return false;
}

void um_rcv_filter_go_on(struct um_rcv_session *session, struct um_unicast *unicast)
{
    struct um_list *it;
    UM_LIST_FOREACH(it, &session->streams)
    {
        struct um_rcv_stream *stream = UM_CONTAINER_OF(it, struct um_rcv_stream, node);
        if (!stream->filter_due) {
            continue;
        }
        if (!send_request(session, unicast, stream->tidx, true)) {
            um_rcv_session_retry_filter(session); /* those behind it would be refused, too */
            return;
        }
        stream->filter_due = false;
    }
}

void um_rcv_filter_set(struct um_rcv_session *session, struct um_unicast *unicast, struct um_rcv_stream *stream,
                       bool include)
{
    if (!session->filter.wanted || unicast == NULL) {
        return;
    }
    if (!include) {
        send_request(session, unicast, stream->tidx, false);
    } else if (session->filter.retry) {
        stream->filter_due = true; /* others wait */
    } else {
        stream->filter_due = !send_request(session, unicast, stream->tidx, true);
        if (stream->filter_due) {
            um_rcv_session_retry_filter(session);
        }
    }
}

void um_rcv_filter_include_all(struct um_rcv_session *session, struct um_unicast *unicast)
{
    struct um_list *it;
    if (!session->filter.wanted || unicast == NULL) {
        return;
    }
    UM_LIST_FOREACH(it, &session->streams)
    {
        UM_CONTAINER_OF(it, struct um_rcv_stream, node)->filter_due = true;
    }
    um_rcv_filter_go_on(session, unicast);
}

void um_rcv_filter_on_init(struct um_rcv_session *session, struct um_unicast *unicast,
                           const struct um_lbmc_ssf_init *init)
{
    if (session->filter.wanted) {
        return; /* once per session: a source cannot send us from address to address */
    }
    if (init->port == 0) {
        um_log_limited(
            um_log_of(session->source), um_loop_now(session->owner->env->loop), UM_LOG_WARNING, "Core-5988-2",
            "%s filters at the source but has no request port (request_tcp_bind_request_port 0 there): none of its "
            "messages will arrive",
            session->source);
        return;
    }
    session->filter.wanted = true;
    session->filter.transport_idx = init->transport_idx;
    session->filter.client_idx = init->client_idx;
    session->filter.port = init->port;
    session->filter.ip = init->ip;
    session->filter.from_ip = session->ops->local_ip != NULL ? session->ops->local_ip(session) : 0;
    if (init->ip == 0) {
        session->filter.ip = session->key.ip;
        um_log_limited(um_log_of(session->source), um_loop_now(session->owner->env->loop), UM_LOG_INFO, "Core-7421-1",
                       "%s gave no address for filter requests: they go to the session's address", session->source);
    }
    um_rcv_filter_include_all(session, unicast);
}
