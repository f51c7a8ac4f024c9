/* Sending and receiving unicast immediate messages over the connections of
 * transport/unicast. See um_uim.h. */
#include "core/um_uim.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/uio.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_lock.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "base/um_table.h"
#include "core/um_context.h"
#include "core/um_context_events.h"
#include "core/um_immediate.h"
#include "core/um_topic.h"
#include "core/um_uim_target.h"
#include "wire/um_source_string.h"

/* Topic resolution is asked for a source once in this time, however many messages go there. */
#define MEMO_NS UM_NS_PER_SEC
#define MEMOS 16u

/* Where the request port of a source was a moment ago. */
struct memo {
    lbm_transport_source_info_t source;
    uint32_t ip;
    uint16_t port;
    uint64_t until_ns; /* 0: empty */
};

struct um_uim {
    lbm_context_t *ctx;
    struct um_lock lock;      /* a leaf */
    struct memo memos[MEMOS]; /* lock */
    unsigned next_memo;       /* lock */
    struct um_uim_counters {  /* any thread */
        _Atomic uint64_t sent, blocked, would_block, rcved, uim_fragments;
    } counters;
};

/* ---- where a source is ---- */

static bool same_source(const lbm_transport_source_info_t *wanted, const lbm_transport_source_info_t *known)
{
    return wanted->type == known->type && wanted->src_ip == known->src_ip && wanted->src_port == known->src_port &&
           wanted->session_id == known->session_id && wanted->mc_group == known->mc_group &&
           wanted->dest_port == known->dest_port && wanted->transport_id == known->transport_id &&
           (wanted->topic_idx == 0 || wanted->topic_idx == known->topic_idx);
}

struct search {
    struct um_uim *uim;
    const lbm_transport_source_info_t *wanted;
    bool known;
    uint32_t ip; /* 0: it tells none */
    uint16_t port;
    uint32_t domain;
    struct um_table_scan scan;
};

static void look_at(void *arg, const struct um_tr_source *source, bool kept, uint64_t age_ns)
{
    struct search *search = arg;
    if (!same_source(search->wanted, &source->info)) {
        return;
    }
    search->known = true;
    if (source->request_port != 0 && source->request_ip != 0) {
        search->ip = source->request_ip;
        search->port = source->request_port;
    }
}

/* [loop] */
static int search_on_loop(void *arg)
{
    struct search *search = arg;
    const lbm_context_t *ctx = search->uim->ctx;
    um_resolver_some_sources(ctx->resolver, um_loop_now(ctx->loop), &search->scan, look_at, search);
    return 0;
}

static bool recall(struct um_uim *uim, const lbm_transport_source_info_t *source, struct um_uim_target *out)
{
    uint64_t now_ns = um_clock_ns();
    bool found = false;
    um_lock_take(&uim->lock);
    for (unsigned i = 0; i < MEMOS && !found; i++) {
        const struct memo *memo = &uim->memos[i];
        if (now_ns < memo->until_ns && memcmp(&memo->source, source, sizeof *source) == 0) {
            out->ip = memo->ip;
            out->port = memo->port;
            found = true;
        }
    }
    um_lock_give(&uim->lock);
    return found;
}

static void remember(struct um_uim *uim, const struct search *found)
{
    struct memo memo = {
        .source = *found->wanted, .ip = found->ip, .port = found->port, .until_ns = um_clock_ns() + MEMO_NS};
    um_lock_take(&uim->lock);
    uim->memos[uim->next_memo++ % MEMOS] = memo;
    um_lock_give(&uim->lock);
}

static int find_source(struct um_uim *uim, const char *text, struct um_uim_target *target, const char *api)
{
    struct search search = {.uim = uim, .wanted = &target->source};
    if (recall(uim, &target->source, target)) {
        return 0;
    }
    while (!search.scan.done && search.ip == 0) {
        if (um_loop_call(uim->ctx->loop, search_on_loop, &search) != 0) {
            return -1;
        }
    }
    if (!search.known) {
        return um_error(UM_EINVAL, "CoreApi-20222-2",
                        "%s: target \"%.100s\": no such source is known to this context: look its topic up first", api,
                        text);
    }
    if (search.ip == 0) {
        return um_error(
            UM_EINVAL, "CoreApi-20222-3",
            "%s: target \"%.100s\": the source does not advertise a request port: set late_join 1 there, or "
            "use TCP:ip:port",
            api, text);
    }
    remember(uim, &search);
    target->ip = search.ip;
    target->port = search.port;
    return 0;
}

/* [loop] */
static int domain_on_loop(void *arg)
{
    struct search *search = arg;
    search->domain = um_resolver_domain_id(search->uim->ctx->resolver);
    return 0;
}

/* Another domain is reached through routers, of which there are none yet. */
static int check_domain(struct um_uim *uim, const char *text, uint32_t domain, const char *api)
{
    struct search search = {.uim = uim};
    if (domain == 0) {
        return 0;
    }
    if (um_loop_call(uim->ctx->loop, domain_on_loop, &search) != 0) {
        return -1;
    }
    if (search.domain != 0 && search.domain != domain) {
        return um_error(UM_EOPNOTSUPP, "CoreApi-20222-7",
                        "%s: target \"%.100s\": this context is in domain %u, and routers between domains are not "
                        "implemented in this version",
                        api, text, search.domain);
    }
    return 0;
}

static int find_target(struct um_uim *uim, const char *text, struct um_uim_target *target, const char *api)
{
    if (um_uim_target_parse(text, target, api) != 0) {
        return -1;
    }
    if (target->kind == UM_UIM_TO_SOURCE) {
        return find_source(uim, text, target, api);
    }
    return check_domain(uim, text, target->domain, api);
}

/* ---- sending ---- */

static int check_send(const struct um_uim_send *send, const char *api)
{
    if ((send->data == NULL && send->len > 0) || send->len > UM_UIM_MAX_LEN) {
        return um_error(UM_EINVAL, "CoreApi-20222-4", "%s: data %s, len %zu: must be given, and at most %u bytes", api,
                        send->data == NULL ? "NULL" : "given", send->len, UM_UIM_MAX_LEN);
    }
    return send->topic != NULL ? um_topic_name_check(send->topic, api) : 0;
}

/* Fixed header, TOPICNAME and the caller's headers. Returns their length. */
static size_t put_headers(uint8_t *out, const struct um_uim_send *send)
{
    uint8_t after_topic = send->headers != NULL ? send->first_header : UM_LBMC_HDR_DATA;
    size_t at = UM_LBMC_DATA_HDR_LEN;
    um_lbmc_put_data_hdr(out, send->topic != NULL ? UM_LBMC_HDR_TOPICNAME : after_topic, 0, 0, 0);
    if (send->topic != NULL) {
        at += um_lbmc_put_topicname(out + at, after_topic, send->topic, strlen(send->topic));
    }
    if (send->headers != NULL) {
        memcpy(out + at, send->headers, send->headers_len);
        at += send->headers_len;
    }
    return at;
}

static void count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* Waits only where it must, so that it is known whether it did. */
static int send_counted(struct um_uim *uim, struct um_unicast_send *unicast, bool nonblocking,
                        enum um_context_sends kind)
{
    lbm_context_t *ctx = uim->ctx;
    unicast->nonblocking = true;
    unicast->waker = nonblocking ? um_context_events_waker(ctx->events, kind) : NULL;
    int rc = um_unicast_send(ctx->unicast, unicast);
    if (rc != 0 && um_errnum() == UM_EWOULDBLOCK && !nonblocking) {
        count(&uim->counters.blocked);
        atomic_fetch_add_explicit(&ctx->counters.send_blocked, 1, memory_order_relaxed);
        unicast->nonblocking = false;
        rc = um_unicast_send(ctx->unicast, unicast);
    }
    if (rc != 0 && um_errnum() == UM_EWOULDBLOCK) {
        count(&uim->counters.would_block);
        atomic_fetch_add_explicit(&ctx->counters.send_would_block, 1, memory_order_relaxed);
    }
    if (rc == 0) {
        count(&uim->counters.sent);
    }
    return rc;
}

int um_uim_send(struct um_uim *uim, const struct um_uim_send *send, const char *api)
{
    struct um_uim_target target;
    uint8_t headers[UM_LBMC_DATA_HDR_LEN + UINT8_MAX + 64];
    if (check_send(send, api) != 0 || find_target(uim, send->target, &target, api) != 0) {
        return -1;
    }
    size_t headers_len = put_headers(headers, send);
    if (headers_len + send->len > UM_LBMC_MAX_MSGLEN) {
        return um_error(UM_EINVAL, "CoreApi-20222-5",
                        "%s: len %zu and a topic of %zu characters: together they must be at most %zu", api, send->len,
                        strlen(send->topic), UM_LBMC_MAX_MSGLEN - (headers_len - strlen(send->topic)));
    }
    const struct iovec iov[2] = {{headers, headers_len}, {(void *)send->data, send->len}};
    struct um_unicast_send unicast = {.ip = target.ip,
                                      .port = target.port,
                                      .domain = target.domain,
                                      .heading = UM_UNICAST_TO_ADDRESS,
                                      .iov = iov,
                                      .iovcnt = send->len > 0 ? 2 : 1,
                                      .numbered = true};
    if (headers_len + send->len > UM_UNICAST_MAX_MESSAGE) {
        um_put16(headers + 2, (uint16_t)(headers_len + send->len));
        unicast.heading = UM_UNICAST_BARE; /* the longest message with the longest topic: there is no room for more */
    }
    bool nonblocking = (send->flags & LBM_SRC_NONBLOCK) != 0 || um_loop_in_family(uim->ctx->loop);
    return send_counted(uim, &unicast, nonblocking, send->headers != NULL ? UM_SENDS_REQUEST : UM_SENDS_UIM);
}

/* ---- receiving [loop] ---- */

/* The request port of the sender, where it says so; else where its connection comes from. */
static void source_of(const struct um_lbmc_msg *msg, const struct sockaddr_in *from, char out[UM_SOURCE_STRING_MAX])
{
    lbm_transport_source_info_t info = {
        .type = LBM_TRANSPORT_TYPE_TCP, .src_ip = from->sin_addr.s_addr, .src_port = ntohs(from->sin_port)};
    if ((msg->present & UM_LBMC_HAS_DESTINATION) != 0 && msg->destination.orig_port != 0) {
        info.src_port = msg->destination.orig_port;
        info.src_ip = msg->destination.orig_ip != INADDR_ANY ? msg->destination.orig_ip : info.src_ip;
    }
    if (um_source_string_format(&info, out, UM_SOURCE_STRING_MAX) < 0) {
        out[0] = '\0';
    }
}

void um_uim_on_message(struct um_uim *uim, const struct um_lbmc_msg *msg, struct um_buf *buf,
                       const struct sockaddr_in *from, uint64_t now_ns)
{
    char source[UM_SOURCE_STRING_MAX];
    bool topic = (msg->present & UM_LBMC_HAS_TOPICNAME) != 0;
    source_of(msg, from, source);
    if ((msg->present & UM_LBMC_HAS_FRAG) != 0) {
        atomic_fetch_add_explicit(&uim->counters.uim_fragments, 1, memory_order_relaxed);
        um_log_limited(um_log_of_ip(from->sin_addr.s_addr), now_ns, UM_LOG_INFO, "Core-20222-6",
                       "immediate message from %s dropped: a fragment; such messages come in one piece", source);
        return;
    }
    count(&uim->counters.rcved);
    const struct um_immediate immediate = {
        .source = source,
        .topic = topic ? msg->topic_name.ptr : NULL,
        .topic_len = topic ? msg->topic_name.len : 0,
        .data = msg->payload.ptr,
        .len = msg->payload.len,
        .buf = buf,
        .sqn = msg->sqn,
        .request = (msg->present & UM_LBMC_HAS_REQUEST) != 0 ? msg : NULL,
        .from_ip = from->sin_addr.s_addr,
    };
    um_immediate_deliver(uim->ctx->immediates, &immediate);
}

/* ---- beginning and end ---- */

struct um_uim *um_uim_create(lbm_context_t *ctx)
{
    struct um_uim *uim = um_calloc(1, sizeof *uim);
    if (uim == NULL) {
        um_error_nomem("unicast immediate messages", sizeof *uim);
        return NULL;
    }
    uim->ctx = ctx;
    return uim;
}

void um_uim_destroy(struct um_uim *uim)
{
    um_free(uim);
}

void um_uim_stats(const struct um_uim *uim, struct um_uim_stats *out)
{
    const struct um_uim_counters *counters = &uim->counters;
#define READ(name) .name = atomic_load_explicit(&counters->name, memory_order_relaxed)
    *out = (struct um_uim_stats){READ(sent), READ(blocked), READ(would_block), READ(rcved), READ(uim_fragments)};
#undef READ
}
