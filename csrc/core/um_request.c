/* Requests. See um_request.h. The table of open requests has one lock: requests are
 * opened and deleted by any thread, responses come on the context's loop, which gives
 * the lock up while it calls the application. A request knows the table, not the
 * context, and the table outlives the context while requests do. */
#include "core/um_request.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_fork.h"
#include "base/um_lock.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "core/um_message.h"
#include "core/um_object_counts.h"

#define UM_REQUEST_MAGIC 0x554d5251u /* "UMRQ" */

struct um_requests {
    atomic_int refs; /* the context, and each request */
    struct um_lock lock;
    struct um_condition called;    /* with lock: a callback has returned */
    struct um_request_table table; /* lock */
    lbm_context_t *ctx;            /* lock; NULL: it is being deleted */
    struct um_timer expiry_timer;  /* [loop] */
};

struct lbm_request_t_stct {
    _Atomic uint32_t magic; /* any thread reads */
    unsigned fork_generation;
    struct um_requests *requests;
    struct um_request_entry entry; /* lock */
    struct um_request_headers headers;
    lbm_request_cb_proc proc;
    void *clientd;
    lbm_request_t *before; /* what the caller's pointer held, for when the send fails */
    struct um_event_owner events;
    bool calling;                            /* lock: the loop is in its callback, or is queuing an event */
    bool deleted;                            /* lock: in its callback; the loop does the rest */
    bool has_cancel;                         /* with `deleted`: `cancel` is set */
    lbm_event_queue_cancel_cb_info_t cancel; /* with `deleted` */
};

static void unref(struct um_requests *requests)
{
    if (atomic_fetch_sub_explicit(&requests->refs, 1, memory_order_acq_rel) == 1) {
        um_request_table_fini(&requests->table);
        um_free(requests);
    }
}

/* ---- opening ---- */

static int check(lbm_context_t *ctx, const struct um_request_call *call, const char *api)
{
    if (um_context_check_messaging(ctx, api) != 0) {
        return -1;
    }
    if (call->reqp == NULL) {
        return um_error(UM_EINVAL, "CoreApi-20213-1", "%s: reqp must be valid", api);
    }
    if (call->proc == NULL) {
        return um_error(UM_EINVAL, "CoreApi-10571-2", "%s: proc must be valid: it is told of responses", api);
    }
    return call->evq != NULL ? um_event_queue_check(call->evq, api) : 0;
}

/* Without a name of its own where it listens on all: who hears the request answers to where it came from. */
static void make_headers(lbm_request_t *req, const lbm_context_t *ctx)
{
    uint8_t *p = req->headers.bytes;
    req->headers.first = UM_LBMC_HDR_CTXINSTR;
    p += um_lbmc_put_ctxinst(p, UM_LBMC_HDR_REQUEST, ctx->instance);
    um_lbmc_put_request(p, UM_LBMC_HDR_DATA, req->entry.index, ctx->env.request_ip.s_addr, ctx->env.request_port);
}

static void free_request(struct um_event_owner *owner)
{
    lbm_request_t *req = UM_CONTAINER_OF(owner, lbm_request_t, events);
    struct um_requests *requests = req->requests;
    um_free(req);
    unref(requests);
}

int um_request_open(lbm_context_t *ctx, const struct um_request_call *call, const char *api, const char *log_id,
                    const char *what)
{
    if (check(ctx, call, api) != 0) {
        return -1;
    }
    lbm_request_t *req = um_calloc(1, sizeof *req);
    if (req == NULL) {
        return um_error_nomem("request", sizeof *req);
    }
    struct um_requests *requests = ctx->requests;
    req->requests = requests;
    req->proc = call->proc;
    req->clientd = call->clientd;
    req->fork_generation = um_fork_generation();
    um_event_owner_init(&req->events, call->evq);
    um_lock_take(&requests->lock);
    int rc = um_request_table_open(&requests->table, &req->entry);
    um_lock_give(&requests->lock);
    if (rc != 0) {
        um_free(req);
        return um_error_nomem("request", sizeof *req);
    }
    atomic_fetch_add_explicit(&requests->refs, 1, memory_order_relaxed);
    make_headers(req, ctx);
    req->magic = UM_REQUEST_MAGIC;
    um_object_count(UM_OBJECT_REQUEST, 1);
    if (ctx->env.request_port == 0) {
        um_log(UM_LOG_WARNING, log_id, "%s with request port binding disabled.", what);
    }
    req->before = *call->reqp;
    *call->reqp = req;
    return 0;
}

void um_request_headers(const lbm_request_t *req, struct um_request_headers *out)
{
    *out = req->headers;
}

/* ---- responses [loop] ---- */

/* The loop, or a dispatch thread. */
static void call_back(lbm_request_t *req, struct um_msg *msg)
{
    if (req->proc(req, &msg->pub, req->clientd) != 0) {
        um_log_limited(um_log_of(msg->pub.source), um_clock_ns(), UM_LOG_WARNING, "Core-20213-2",
                       "response from [%s]: request callback returned -1; the value must be 0", msg->pub.source);
    }
    um_msg_release(msg);
}

static void run_event(struct um_event *event)
{
    call_back(UM_CONTAINER_OF(event->owner, lbm_request_t, events), UM_CONTAINER_OF(event, struct um_msg, event));
}

static void discard_event(struct um_event *event)
{
    um_msg_release(UM_CONTAINER_OF(event, struct um_msg, event));
}

static const struct um_event_ops EVENT_OPS = {run_event, discard_event, UM_EVENT_RESPONSE, false};

/* By its request port where it tells it, else by the port of its connection. */
static void name_responder(const struct um_lbmc_msg *msg, const struct sockaddr_in *from, char *out, size_t size)
{
    bool told = (msg->present & UM_LBMC_HAS_DESTINATION) != 0 && msg->destination.orig_port != 0;
    struct in_addr addr = from->sin_addr;
    uint16_t port = ntohs(from->sin_port);
    if (told) {
        addr.s_addr = msg->destination.orig_ip != 0 ? msg->destination.orig_ip : addr.s_addr;
        port = msg->destination.orig_port;
    }
    char ip[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &addr, ip, sizeof ip);
    snprintf(out, size, "TCP:%s:%u", ip, (unsigned)port);
}

/* NULL: out of memory. Takes over the reference of an owned buffer. */
static struct um_msg *message_of(const struct um_response *response, const struct um_lbmc_msg *msg,
                                 const struct sockaddr_in *from, uint64_t wall_ns)
{
    char source[sizeof "TCP:255.255.255.255:65535"];
    name_responder(msg, from, source, sizeof source);
    struct um_msg *out = um_msg_create(source, "");
    if (out == NULL) {
        if (response->owned) {
            um_buf_unref(response->buf);
        }
        return NULL;
    }
    if (!response->owned) {
        um_buf_ref(response->buf);
    }
    out->pub.type = LBM_MSG_RESPONSE;
    out->pub.data = (const char *)response->data;
    out->pub.len = response->len;
    out->pub.sequence_number = response->sqn;
    out->pub.tsp.tv_sec = (long)(wall_ns / UM_NS_PER_SEC);
    out->pub.tsp.tv_usec = (long)(wall_ns % UM_NS_PER_SEC / 1000);
    out->buf = response->buf;
    um_msg_mark(out, UM_MSG_BUF_HELD, true);
    return out;
}

static struct um_response_sender sender_of(const struct um_lbmc_msg *msg, const struct sockaddr_in *from)
{
    struct um_response_sender sender = {{0}};
    if ((msg->present & UM_LBMC_HAS_STREAM) != 0) {
        memcpy(sender.id, msg->stream.ctxinst, sizeof sender.id);
    } else {
        memcpy(sender.id, &from->sin_addr, 4);
        memcpy(sender.id + 4, &from->sin_port, 2);
    }
    return sender;
}

static void on_expiry(struct um_timer *timer, uint64_t now_ns)
{
    struct um_requests *requests = UM_CONTAINER_OF(timer, struct um_requests, expiry_timer);
    um_lock_take(&requests->lock);
    um_request_table_expire(&requests->table, now_ns);
    uint64_t next_ns = um_request_table_next_ns(&requests->table);
    um_lock_give(&requests->lock);
    if (next_ns != UINT64_MAX) {
        um_timer_arm(um_loop_wheel(requests->ctx->loop), timer, next_ns);
    }
}

/* The application has deleted it in its own callback. */
static void finish_deleted(lbm_request_t *req)
{
    um_event_owner_close(&req->events, req->has_cancel ? &req->cancel : NULL, free_request);
}

/* Its callback has returned, or what it was for is not delivered. */
static void end_call(lbm_request_t *req)
{
    struct um_requests *requests = req->requests;
    um_lock_take(&requests->lock);
    req->calling = false;
    bool deleted = req->deleted;
    um_condition_signal_all(&requests->called);
    um_lock_give(&requests->lock);
    if (deleted) {
        finish_deleted(req);
    }
}

static void deliver(lbm_request_t *req, struct um_msg *msg)
{
    if (req->events.evq != NULL) {
        msg->event.ops = &EVENT_OPS;
        msg->event.owner = &req->events;
        um_event_enqueue(req->events.evq, &req->events, &msg->event);
    } else {
        call_back(req, msg);
    }
    end_call(req);
}

static void on_dropped(enum um_response_rc rc, const struct um_lbmc_msg *msg, const struct sockaddr_in *from,
                       uint64_t now_ns)
{
    if (rc == UM_RESPONSE_UNKNOWN) {
        um_log_limited(um_log_of_ip(from->sin_addr.s_addr), now_ns, UM_LOG_INFO, "Core-5688-3698",
                       "Response for request query index %u received. No request known.", msg->tidx);
    } else if (rc == UM_RESPONSE_DROPPED) {
        um_log_limited(um_log_of_ip(from->sin_addr.s_addr), now_ns, UM_LOG_INFO, "Core-6056-1",
                       "Malformed fragment header detected, discarding. Response for request query index %u.",
                       msg->tidx);
    }
}

void um_requests_on_response(lbm_context_t *ctx, const struct um_lbmc_msg *msg, struct um_buf *buf,
                             const struct sockaddr_in *from, uint64_t now_ns)
{
    struct um_requests *requests = ctx->requests;
    const struct um_response_sender sender = sender_of(msg, from);
    struct um_response response;
    lbm_request_t *req = NULL;
    um_lock_take(&requests->lock);
    enum um_response_rc rc = um_request_table_on_response(&requests->table, now_ns, msg, buf, &sender, &response);
    if (rc == UM_RESPONSE_COMPLETE) {
        req = UM_CONTAINER_OF(response.entry, lbm_request_t, entry);
        req->calling = true;
    }
    uint64_t expiry_ns = um_request_table_next_ns(&requests->table);
    um_lock_give(&requests->lock);
    if (expiry_ns != UINT64_MAX && !um_timer_armed(&requests->expiry_timer)) {
        um_timer_arm(um_loop_wheel(ctx->loop), &requests->expiry_timer, expiry_ns);
    }
    if (req == NULL) {
        on_dropped(rc, msg, from, now_ns);
        return;
    }
    struct um_msg *out = message_of(&response, msg, from, um_loop_wall_now(ctx->loop));
    if (out != NULL) {
        deliver(req, out);
        return;
    }
    um_log_limited(um_log_of_all(), now_ns, UM_LOG_ERR, "Core-20213-3",
                   "out of memory: a response to request %u is not delivered", msg->tidx);
    end_call(req);
}

/* ---- deletion ---- */

static int check_request(const lbm_request_t *req, const char *api)
{
    if (req == NULL || req->magic != UM_REQUEST_MAGIC) {
        return um_error(UM_EINVAL, "CoreApi-20213-4", "%s: req must be a live request", api);
    }
    if (req->fork_generation != um_fork_generation()) {
        return um_error(UM_EINVAL, "CoreApi-20213-5", "%s: the request was inherited through fork", api);
    }
    return 0;
}

/* Lock. False: not on a thread of the loop, nor where the loop waits for the caller in turn: then the caller is noted
 * as waiting for the loop. */
static bool must_not_wait(const struct um_requests *requests)
{
    struct um_error_state before;
    if (um_loop_in_family(requests->ctx->loop)) {
        return true;
    }
    um_error_save(&before);
    bool circle = um_loop_wait_begin(requests->ctx->loop) != 0;
    um_error_restore(&before);
    return circle;
}

/* Lock, given up while waiting. True: the loop, which is in the request's callback, finishes it. */
static bool wait_for_callback(lbm_request_t *req, lbm_event_queue_cancel_cb_info_t *cbinfo)
{
    struct um_requests *requests = req->requests;
    if (!req->calling) {
        return false;
    }
    bool noted = requests->ctx != NULL;
    if (noted && must_not_wait(requests)) {
        req->deleted = true;
        req->has_cancel = cbinfo != NULL;
        req->cancel = cbinfo != NULL ? *cbinfo : (lbm_event_queue_cancel_cb_info_t){0};
        return true;
    }
    while (req->calling) {
        um_condition_wait(&requests->called, &requests->lock);
    }
    if (noted) {
        um_loop_wait_end();
    }
    return false;
}

static void end(lbm_request_t *req, lbm_event_queue_cancel_cb_info_t *cbinfo)
{
    struct um_requests *requests = req->requests;
    req->magic = 0;
    um_object_count(UM_OBJECT_REQUEST, -1);
    um_lock_take(&requests->lock);
    um_request_table_close(&requests->table, &req->entry);
    bool loop_finishes = wait_for_callback(req, cbinfo);
    um_lock_give(&requests->lock);
    if (!loop_finishes) {
        um_event_owner_close(&req->events, cbinfo, free_request);
    }
}

int um_request_delete(lbm_request_t *req, lbm_event_queue_cancel_cb_info_t *cbinfo, const char *api)
{
    if (check_request(req, api) != 0 || um_event_cancel_check(cbinfo, api) != 0) {
        return -1;
    }
    end(req, cbinfo);
    return 0;
}

void um_request_abandon(lbm_request_t **reqp)
{
    struct um_error_state why;
    lbm_request_t *req = *reqp;
    um_error_save(&why);
    *reqp = req->before;
    end(req, NULL);
    um_error_restore(&why);
}

void um_requests_counts(struct um_requests *requests, struct um_request_counts *out)
{
    um_lock_take(&requests->lock);
    *out = requests->table.counts;
    um_lock_give(&requests->lock);
}

/* ---- of a context [loop] ---- */

struct um_requests *um_requests_create(lbm_context_t *ctx)
{
    struct um_requests *requests = um_calloc(1, sizeof *requests);
    if (requests == NULL) {
        um_error_nomem("requests", sizeof *requests);
        return NULL;
    }
    atomic_init(&requests->refs, 1);
    requests->ctx = ctx;
    um_request_table_init(&requests->table, &ctx->next_request_idx);
    um_timer_init(&requests->expiry_timer, on_expiry);
    return requests;
}

void um_requests_close(struct um_requests *requests)
{
    if (requests == NULL) {
        return;
    }
    um_timer_cancel(um_loop_wheel(requests->ctx->loop), &requests->expiry_timer);
    um_lock_take(&requests->lock);
    size_t open = requests->table.open.count;
    um_request_table_fini(&requests->table);
    requests->ctx = NULL;
    um_lock_give(&requests->lock);
    if (open > 0) {
        um_log(UM_LOG_NOTICE, "Core-20213-6",
               "%zu requests were open when their context was deleted: nothing more comes for them; delete requests "
               "before their context",
               open);
    }
    unref(requests);
}
