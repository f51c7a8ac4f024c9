/* Requests as applications hold them: opened by any send of a request, ended by
 * lbm_request_delete. What carries a request (a source, an immediate message) opens
 * one, puts its headers into the message, and abandons it when the send fails.
 * Responses come in at the request port of the context. Any thread, except where it
 * says [loop]. */
#ifndef UM_CORE_REQUEST_H
#define UM_CORE_REQUEST_H

#include <stdint.h>
#include <sys/socket.h>

#include <lbm/lbm.h>

#include "base/um_buf.h"
#include "core/um_context.h"
#include "core/um_event_queue.h"
#include "delivery/um_request_table.h"
#include "wire/um_lbmc.h"

/* ---- for those who send a request ---- */

#define UM_REQUEST_HEADERS_LEN (UM_LBMC_CTXINST_HDR_LEN + UM_LBMC_REQUEST_HDR_LEN)

/* The extension headers of a request: CTXINSTR, REQUEST. They go behind TOPICNAME and CTXINST, before BATCH, FRAG and
 * APPHDR_CHAIN, and on every fragment. */
struct um_request_headers {
    uint8_t first;                         /* code of the first one */
    uint8_t bytes[UM_REQUEST_HEADERS_LEN]; /* chain whose last next_hdr is DATA */
};

/* Where the application finds the request, and how it is told of responses. */
struct um_request_call {
    lbm_request_t **reqp;
    lbm_request_cb_proc proc;
    void *clientd;
    lbm_event_queue_t *evq;
};

/* Checks the arguments, opens a request and writes it to *reqp: responses may come before the send has returned. 0, or
 * -1 + error. With request_tcp_bind_request_port 0 it is opened, with a warning: `id` and `what` of the line ("Sending
 * request"). */
int um_request_open(lbm_context_t *ctx, const struct um_request_call *call, const char *api, const char *log_id,
                    const char *what);
void um_request_headers(const lbm_request_t *req, struct um_request_headers *out);
/* The send failed: the request has never been. Keeps the error; *reqp is what it was before. */
void um_request_abandon(lbm_request_t **reqp);

/* ---- responses [loop] ---- */

/* MESSAGE at the request port without a topic name and with an index: a response? False: nothing of ours. */
static inline bool um_request_is_response(const struct um_lbmc_msg *msg)
{
    return msg->type == UM_LBMC_MESSAGE && msg->tidx != 0 && (msg->present & UM_LBMC_HAS_TOPICNAME) == 0;
}
void um_requests_on_response(lbm_context_t *ctx, const struct um_lbmc_msg *msg, struct um_buf *buf,
                             const struct sockaddr_in *from, uint64_t now_ns);

/* ---- deletion ---- */

/* The last callback has returned when this returns, except inside a callback of the context, and with an event queue as
 * its options say. -1 + UM_EINVAL. */
int um_request_delete(lbm_request_t *req, lbm_event_queue_cancel_cb_info_t *cbinfo, const char *api);

/* What became of what came. */
void um_requests_counts(struct um_requests *requests, struct um_request_counts *out);

/* ---- of a context [loop] ---- */

struct um_requests *um_requests_create(lbm_context_t *ctx); /* NULL + error */
/* Open requests end: nothing more is delivered for them. Their objects live until the application deletes them. */
void um_requests_close(struct um_requests *requests);

#endif
