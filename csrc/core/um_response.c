/* Responses. See um_response.h. Whoever uses the unicast layer of the context is
 * counted in its responder, so that the context's deletion can wait for it; no lock is
 * held meanwhile. */
#include "core/um_response.h"

#include <arpa/inet.h>
#include <stdatomic.h>
#include <string.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_fork.h"
#include "base/um_lock.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "core/um_context_events.h"
#include "core/um_object_counts.h"

#define UM_RESPONSE_MAGIC 0x554d5250u /* "UMRP" */
#define SERIALIZED_VERSION 1
#define FRAGMENT_MIN 256u /* user bytes, however small the datagrams are to be */

struct um_responder {
    atomic_int refs; /* the context, and each response */
    struct um_lock lock;
    struct um_condition left; /* with lock: users */
    unsigned users;           /* lock: calls under way that use ctx */
    lbm_context_t *ctx;       /* lock; NULL: it is being deleted */
};

/* Where it goes. Fixed. */
struct way {
    uint32_t index, domain;
    uint32_t ip;   /* network order */
    uint16_t port; /* host order; 0: the requester listens nowhere */
    bool has_instance;
    uint8_t instance[8];
};

struct lbm_response_t_stct {
    _Atomic uint32_t magic; /* any thread reads */
    unsigned fork_generation;
    atomic_int refs; /* the application or its message; each send under way; each other one of the same request */
    struct um_responder *responder;
    struct way way;
    lbm_response_t *first; /* fixed: whose sequence numbers are used; NULL: its own */
    atomic_uint next_sqn;
    struct um_unicast_hold hold;
};

/* ---- the responder ---- */

static void responder_unref(struct um_responder *responder)
{
    if (atomic_fetch_sub_explicit(&responder->refs, 1, memory_order_acq_rel) == 1) {
        um_free(responder);
    }
}

/* The context, which lives until leave(). NULL: it is being deleted, or gone. */
static lbm_context_t *enter(struct um_responder *responder)
{
    um_lock_take(&responder->lock);
    lbm_context_t *ctx = responder->ctx;
    responder->users += ctx != NULL;
    um_lock_give(&responder->lock);
    return ctx;
}

static void leave(struct um_responder *responder)
{
    um_lock_take(&responder->lock);
    if (--responder->users == 0 && responder->ctx == NULL) {
        um_condition_signal_all(&responder->left);
    }
    um_lock_give(&responder->lock);
}

struct um_responder *um_responder_create(lbm_context_t *ctx)
{
    struct um_responder *responder = um_calloc(1, sizeof *responder);
    if (responder == NULL) {
        um_error_nomem("responder", sizeof *responder);
        return NULL;
    }
    atomic_init(&responder->refs, 1);
    responder->ctx = ctx;
    return responder;
}

void um_responder_close(struct um_responder *responder)
{
    if (responder == NULL) {
        return;
    }
    um_lock_take(&responder->lock);
    lbm_context_t *ctx = responder->ctx;
    responder->ctx = NULL;
    um_lock_give(&responder->lock);
    um_unicast_close(ctx->unicast);
    um_lock_take(&responder->lock);
    while (responder->users > 0) {
        um_condition_wait(&responder->left, &responder->lock);
    }
    um_lock_give(&responder->lock);
    responder_unref(responder);
}

/* ---- responses ---- */

/* NULL: out of memory. */
static lbm_response_t *new_response(struct um_responder *responder, const struct way *way)
{
    lbm_response_t *resp = um_calloc(1, sizeof *resp);
    if (resp == NULL) {
        return NULL;
    }
    atomic_init(&resp->refs, 1);
    resp->fork_generation = um_fork_generation();
    atomic_fetch_add_explicit(&responder->refs, 1, memory_order_relaxed);
    resp->responder = responder;
    resp->way = *way;
    resp->magic = UM_RESPONSE_MAGIC;
    um_object_count(UM_OBJECT_RESPONSE, 1);
    return resp;
}

static void unref(lbm_response_t *resp)
{
    while (resp != NULL && atomic_fetch_sub_explicit(&resp->refs, 1, memory_order_acq_rel) == 1) {
        lbm_response_t *first = resp->first;
        responder_unref(resp->responder);
        um_free(resp);
        resp = first;
    }
}

/* A connection that cannot be had now is made by the answer. */
static void hold(lbm_response_t *resp, lbm_context_t *ctx)
{
    if (resp->way.port != 0) {
        um_unicast_hold(ctx->unicast, resp->way.ip, resp->way.port, &resp->hold);
    }
}

static void log_port_zero(struct um_responder *responder, uint32_t ip, uint64_t now_ns)
{
    struct in_addr addr = {ip};
    char text[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &addr, text, sizeof text);
    um_log_limited(um_log_of_ip(ip), now_ns, UM_LOG_WARNING, "Core-5988-1",
                   "Attempting to Respond to a Request from %s with port set to zero.", text);
}

static struct way way_of(const struct um_lbmc_msg *msg, uint32_t from_ip)
{
    struct way way = {.index = msg->request.qidx, .ip = msg->request.ip, .port = msg->request.port};
    if (way.ip == 0) {
        way.ip = from_ip != 0 ? from_ip : htonl(INADDR_LOOPBACK);
    }
    if ((msg->present & UM_LBMC_HAS_ODOMAIN) != 0) {
        way.domain = msg->odomain;
    }
    if ((msg->present & UM_LBMC_HAS_CTXINSTR) != 0) {
        way.has_instance = true;
        memcpy(way.instance, msg->ctxinstr, sizeof way.instance);
    }
    return way;
}

lbm_response_t *um_response_create(lbm_context_t *ctx, const struct um_lbmc_msg *msg, uint32_t from_ip)
{
    struct um_responder *responder = ctx->responder;
    const struct way way = way_of(msg, from_ip);
    lbm_response_t *resp = new_response(responder, &way);
    uint64_t now_ns = um_clock_ns();
    if (resp == NULL) {
        um_log_limited(um_log_of_all(), now_ns, UM_LOG_ERR, "Core-20213-7",
                       "out of memory: request %u is delivered without a response object", way.index);
        return NULL;
    }
    if (way.port == 0) {
        log_port_zero(responder, way.ip, now_ns);
    }
    hold(resp, ctx);
    return resp;
}

lbm_response_t *um_response_again(lbm_response_t *resp)
{
    lbm_context_t *ctx = enter(resp->responder);
    lbm_response_t *again = new_response(resp->responder, &resp->way);
    if (again != NULL) {
        again->first = resp->first != NULL ? resp->first : resp;
        atomic_fetch_add_explicit(&again->first->refs, 1, memory_order_relaxed);
        if (ctx != NULL) {
            hold(again, ctx);
        }
    }
    if (ctx != NULL) {
        leave(resp->responder);
    }
    return again;
}

void um_response_free(lbm_response_t *resp)
{
    if (resp == NULL) {
        return;
    }
    resp->magic = 0;
    um_object_count(UM_OBJECT_RESPONSE, -1);
    lbm_context_t *ctx = enter(resp->responder);
    if (ctx != NULL) {
        um_unicast_release(ctx->unicast, &resp->hold);
        leave(resp->responder);
    }
    unref(resp);
}

static int check(const lbm_response_t *resp, const char *api)
{
    if (resp == NULL || resp->magic != UM_RESPONSE_MAGIC) {
        return um_error(UM_EINVAL, "CoreApi-20213-8", "%s: resp must be a live response", api);
    }
    if (resp->fork_generation != um_fork_generation()) {
        return um_error(UM_EINVAL, "CoreApi-20213-9", "%s: the response was inherited through fork", api);
    }
    return 0;
}

int um_response_delete(lbm_response_t *resp, const char *api)
{
    if (check(resp, api) != 0) {
        return -1;
    }
    um_response_free(resp);
    return 0;
}

/* ---- sending ---- */

/* What is sent of one response. */
struct job {
    const lbm_response_t *resp;
    lbm_context_t *ctx;
    const uint8_t *data;
    size_t len, size; /* all of it; of a fragment at most */
    uint32_t first_sqn;
    bool nonblocking, waited;
};

/* The fixed header and FRAG if there are several. */
static size_t put_headers(const struct job *job, uint32_t i, uint8_t *out)
{
    bool fragmented = job->len > job->size;
    um_lbmc_put_data_hdr(out, fragmented ? UM_LBMC_HDR_FRAG : UM_LBMC_HDR_DATA, 0, job->resp->way.index,
                         job->first_sqn + i); /* the layer writes the length when it adds its own headers */
    size_t len = UM_LBMC_DATA_HDR_LEN;
    if (fragmented) {
        len += um_lbmc_put_frag(out + len, UM_LBMC_HDR_DATA, job->first_sqn, (uint32_t)(i * job->size),
                                (uint32_t)job->len);
    }
    return len;
}

/* A send that has to wait is tried once without, so that it is known and counted. */
static int send_part(struct job *job, uint32_t i)
{
    const struct way *way = &job->resp->way;
    uint8_t headers[UM_LBMC_DATA_HDR_LEN + UM_LBMC_FRAG_HDR_LEN];
    size_t at = i * job->size;
    struct iovec iov[2] = {{headers, put_headers(job, i, headers)},
                           {(void *)(job->data + at), job->len - at < job->size ? job->len - at : job->size}};
    struct um_unicast_send send = {.ip = way->ip,
                                   .port = way->port,
                                   .domain = way->domain,
                                   .heading = way->has_instance && way->domain == 0 ? UM_UNICAST_TO_INSTANCE
                                                                                    : UM_UNICAST_TO_ADDRESS,
                                   .instance = way->instance,
                                   .iov = iov,
                                   .iovcnt = job->len > 0 ? 2 : 1,
                                   .nonblocking = true,
                                   .in_a_row = true,
                                   .unconditional = i > 0 && job->nonblocking};
    send.waker = job->nonblocking ? um_context_events_waker(job->ctx->events, UM_SENDS_RESPONSE) : NULL;
    int rc = um_unicast_send(job->ctx->unicast, &send);
    if (rc != 0 && !job->nonblocking && um_errnum() == UM_EWOULDBLOCK) {
        job->waited = true;
        send.nonblocking = false;
        rc = um_unicast_send(job->ctx->unicast, &send);
    }
    return rc;
}

/* User bytes in a message that is not longer than datagrams of TCP are to be. */
static size_t fragment_size(const lbm_context_t *ctx)
{
    const size_t headers =
        UM_LBMC_STREAM_HDR_LEN + UM_LBMC_DESTINATION_HDR_LEN + UM_LBMC_DATA_HDR_LEN + UM_LBMC_FRAG_HDR_LEN;
    size_t most = ctx->opts.transport_tcp_datagram_max_size;
    most = most > UM_LBMC_MAX_MSGLEN ? UM_LBMC_MAX_MSGLEN : most;
    return most > headers + FRAGMENT_MIN ? most - headers : FRAGMENT_MIN;
}

static int send_all(lbm_response_t *resp, lbm_context_t *ctx, const void *data, size_t len, int flags)
{
    struct job job = {.resp = resp, .ctx = ctx, .data = data, .len = len, .size = fragment_size(ctx)};
    uint32_t count = len > job.size ? (uint32_t)((len + job.size - 1) / job.size) : 1;
    atomic_uint *numbers = resp->first != NULL ? &resp->first->next_sqn : &resp->next_sqn;
    job.nonblocking = (flags & LBM_SRC_NONBLOCK) != 0 || um_loop_in_family(ctx->loop);
    job.first_sqn = atomic_fetch_add_explicit(numbers, count, memory_order_relaxed);
    int rc = 0;
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        rc = send_part(&job, i);
    }
    if (job.waited) {
        atomic_fetch_add_explicit(&ctx->counters.resp_blocked, 1, memory_order_relaxed);
    }
    if (rc != 0 && um_errnum() == UM_EWOULDBLOCK) {
        atomic_fetch_add_explicit(&ctx->counters.resp_would_block, 1, memory_order_relaxed);
    }
    return rc;
}

static int check_send(const lbm_response_t *resp, const void *data, size_t len, const char *api)
{
    if (check(resp, api) != 0) {
        return -1;
    }
    if ((data == NULL && len > 0) || len > INT32_MAX) {
        return um_error(UM_EINVAL, "CoreApi-20213-10", "%s: data must be valid and its length (%zu) at most %d bytes",
                        api, len, INT32_MAX);
    }
    if (resp->way.port == 0) {
        log_port_zero(resp->responder, resp->way.ip, um_clock_ns());
        return um_error(UM_EINVAL, "CoreApi-20213-11",
                        "%s: the requester has no request port (its request_tcp_bind_request_port is 0): it cannot be "
                        "answered",
                        api);
    }
    return 0;
}

static int gone(const char *api)
{
    return um_error(UM_EINVAL, "CoreApi-20213-12", "%s: the context of the response is being deleted", api);
}

int um_response_send(lbm_response_t *resp, const void *data, size_t len, int flags, const char *api)
{
    if (check_send(resp, data, len, api) != 0) {
        return -1;
    }
    atomic_fetch_add_explicit(&resp->refs, 1, memory_order_relaxed);
    lbm_context_t *ctx = enter(resp->responder);
    int rc = ctx != NULL ? send_all(resp, ctx, data, len, flags) : gone(api);
    if (ctx != NULL) {
        leave(resp->responder);
    }
    unref(resp);
    return rc;
}

/* ---- as bytes: version, transport, port, index, address, domain, instance, and whether there is one ---- */

int um_response_serialize(lbm_response_t *resp, lbm_serialized_response_t *out, const char *api)
{
    if (check(resp, api) != 0) {
        return -1;
    }
    uint8_t *p = (uint8_t *)out->serial_response;
    memset(p, 0, sizeof out->serial_response);
    p[0] = SERIALIZED_VERSION;
    um_put16(p + 2, resp->way.port);
    um_put32(p + 4, resp->way.index);
    memcpy(p + 8, &resp->way.ip, 4);
    um_put32(p + 12, resp->way.domain);
    memcpy(p + 16, resp->way.instance, 8);
    p[24] = resp->way.has_instance;
    return 0;
}

lbm_response_t *um_response_deserialize(lbm_context_t *ctx, const lbm_serialized_response_t *in, const char *api)
{
    if (um_context_check_messaging(ctx, api) != 0) {
        return NULL;
    }
    const uint8_t *p = (const uint8_t *)in->serial_response;
    struct way way = {
        .index = um_get32(p + 4), .domain = um_get32(p + 12), .port = um_get16(p + 2), .has_instance = p[24] != 0};
    memcpy(&way.ip, p + 8, 4);
    memcpy(way.instance, p + 16, 8);
    if (p[0] != SERIALIZED_VERSION || p[1] != 0 || p[24] > 1 || way.index == 0 || way.ip == 0) {
        um_error(UM_EINVAL, "CoreApi-20213-13", "%s: the bytes are not those of a response", api);
        return NULL;
    }
    lbm_response_t *resp = new_response(ctx->responder, &way);
    if (resp == NULL) {
        um_error_nomem("response", sizeof *resp);
        return NULL;
    }
    hold(resp, ctx);
    return resp;
}
