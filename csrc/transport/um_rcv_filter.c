/* Source-side filtering on the receiving side: sends SSF_CREQ to the request
 * port of a source that filters. The requests travel bare, without stream and
 * destination headers. Everything runs on the loop. */
#include "transport/um_rcv_filter.h"

#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "transport/um_rcv_transport.h"

enum { MODE_INCLUDE = 0, MODE_EXCLUDE = 1 };

void um_rcv_filter_set(struct um_rcv_session *session, struct um_uim *uim, uint32_t tidx, bool include)
{
    if (!session->filter.wanted || uim == NULL) {
        return;
    }
    uint8_t message[20];
    struct um_lbmc_ssf_creq creq = {.mode = include ? MODE_INCLUDE : MODE_EXCLUDE,
                                    .transport_idx = session->filter.transport_idx,
                                    .topic_idx = tidx,
                                    .client_idx = session->filter.client_idx};
    um_lbmc_encode_ssf_creq(message, &creq);
    if (um_uim_send_bare(uim, session->filter.ip, session->filter.port, message, sizeof message) != 0) {
        um_log(UM_LOG_WARNING, "Core-9002-4", "%s[%u]: the request to %s this topic was not sent: %s", session->source,
               tidx, include ? "receive" : "stop", um_errmsg());
        if (include) {
            um_rcv_session_retry_filter(session);
        }
    }
}

void um_rcv_filter_include_all(struct um_rcv_session *session, struct um_uim *uim)
{
    struct um_list *it;
    UM_LIST_FOREACH(it, &session->streams)
    {
        um_rcv_filter_set(session, uim, UM_CONTAINER_OF(it, struct um_rcv_stream, node)->tidx, true);
    }
}

void um_rcv_filter_on_init(struct um_rcv_session *session, struct um_uim *uim, const struct um_lbmc_ssf_init *init)
{
    if (session->filter.wanted) {
        return; /* once per session: a source cannot send us from address to address */
    }
    if (init->port == 0) {
        um_log(UM_LOG_WARNING, "Core-5988-2",
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
    if (init->ip == 0) {
        session->filter.ip = session->key.ip;
        um_log(UM_LOG_INFO, "Core-7421-1", "%s gave no address for filter requests: they go to the session's address",
               session->source);
    }
    um_rcv_filter_include_all(session, uim);
}
