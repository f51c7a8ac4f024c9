/* Facts about a receiver's sources: transport statistics, the application's
 * pointer per source, and readiness (decided on the loop, waited for by any
 * thread). */
#include <pthread.h>
#include <string.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_fork.h"
#include "base/um_mem.h"
#include "base/um_wait.h"
#include "core/um_rcv_private.h"
#include "wire/um_source_string.h"

/* ---- by source string ---- */

/* Length of a source string without its "[index]". */
static size_t session_len(const char *source)
{
    return strcspn(source, "[");
}

static bool same_session(const char *a, const char *b)
{
    size_t len = session_len(a);
    return len == session_len(b) && memcmp(a, b, len) == 0;
}

static bool is_on(const struct um_rcv_flow *flow, const char *text)
{
    char source[UM_SOURCE_STRING_MAX];
    return same_session(um_rcv_flow_source(flow, source), text);
}

struct clientd_call {
    lbm_rcv_t *rcv;
    const char *text;
    void *clientd;
};

/* A source, and a session, is on one lane. */
static int set_clientd_on_lane(struct um_rcv_lane *lane, void *arg)
{
    struct clientd_call *c = arg;
    struct um_rcv_flow *flow = NULL;
    int found = 0;
    while ((flow = um_rcv_flow_next(lane, c->rcv->topic, flow)) != NULL) {
        char source[UM_SOURCE_STRING_MAX];
        bool whole = strcmp(um_rcv_flow_source(flow, source), c->text) == 0;
        if (whole || (strchr(c->text, '[') == NULL && is_on(flow, c->text))) {
            flow->clientd = c->clientd;
            found = 1;
        }
    }
    return found;
}

int um_receiver_set_source_clientd(lbm_rcv_t *rcv, const char *source, void *source_clientd)
{
    struct clientd_call call = {rcv, source, source_clientd};
    int found = um_rcv_lanes_each(rcv->ctx, set_clientd_on_lane, &call);
    if (found == 0) {
        return um_error(UM_EINVAL, "CoreApi-20204-1",
                        "lbm_rcv_msg_source_clientd: source [%s]: must be a source this receiver has joined", source);
    }
    return found > 0 ? 0 : -1;
}

/* ---- statistics ---- */

struct stats_call {
    lbm_rcv_t *rcv;
    const lbm_wildcard_rcv_t *wildcard; /* instead of rcv */
    const char *text;
    lbm_rcv_transport_stats_t *stats;
    int count, room; /* of `stats`, when all are gathered */
};

static int stats_on_lane(struct um_rcv_lane *lane, void *arg)
{
    struct stats_call *c = arg;
    struct um_rcv_flow *flow = NULL;
    while ((flow = um_rcv_flow_next(lane, c->rcv->topic, flow)) != NULL) {
        if (!is_on(flow, c->text)) {
            continue;
        }
        if (c->stats != NULL) {
            return um_rcv_stream_stats(&flow->stream, c->stats) != 0 ? -1 : 1;
        }
        um_rcv_stream_stats_reset(&flow->stream);
        return 1;
    }
    return 0;
}

int um_receiver_stats(lbm_rcv_t *rcv, const char *source, lbm_rcv_transport_stats_t *stats)
{
    struct stats_call call = {.rcv = rcv, .text = source, .stats = stats};
    int found = um_rcv_lanes_each(rcv->ctx, stats_on_lane, &call);
    if (found == 0) {
        return um_error(UM_EINVAL, "CoreApi-20204-2",
                        "source [%s]: could not find the given source transport session among those of this receiver",
                        source);
    }
    return found > 0 ? 0 : -1;
}

/* Two sources of a topic may share a session. */
static bool gathered(const struct stats_call *c, const struct um_rcv_flow *flow)
{
    for (int i = 0; i < c->count; i++) {
        if (is_on(flow, c->stats[i].source)) {
            return true;
        }
    }
    return false;
}

/* [loop of the flow] */
static bool is_for_wildcard(const struct um_rcv_flow *flow, const lbm_wildcard_rcv_t *wildcard)
{
    for (unsigned i = 0; flow->audience != NULL && i < flow->audience->count; i++) {
        if (flow->audience->receivers[i]->wildcard == wildcard) {
            return true;
        }
    }
    return false;
}

static int gather_on_lane(struct um_rcv_lane *lane, void *arg)
{
    struct stats_call *c = arg;
    struct um_rcv_flow *flow = NULL;
    while ((flow = um_rcv_flow_next(lane, c->rcv != NULL ? c->rcv->topic : NULL, flow)) != NULL) {
        if (flow->stream.session == NULL || gathered(c, flow) ||
            (c->wildcard != NULL && !is_for_wildcard(flow, c->wildcard))) {
            continue;
        }
        if (c->count == c->room) {
            size_t size = (size_t)(c->room * 2 + 4) * sizeof *c->stats;
            lbm_rcv_transport_stats_t *stats = um_realloc(c->stats, size);
            if (stats == NULL) {
                return um_error_nomem("transport statistics", size);
            }
            c->stats = stats;
            c->room = c->room * 2 + 4;
        }
        if (um_rcv_stream_stats(&flow->stream, &c->stats[c->count]) != 0) {
            return -1;
        }
        c->count++;
    }
    return 0;
}

/* The caller's structure may be of another version: as many bytes as both have. */
static int copy_out(const struct stats_call *c, int *num, int stride, lbm_rcv_transport_stats_t *out)
{
    int room = *num;
    size_t size = (size_t)stride < sizeof *out ? (size_t)stride : sizeof *out;
    *num = c->count;
    if (c->count > room) {
        return um_error(UM_EINVAL, "CoreApi-20204-3",
                        "transport statistics: array of %d entries: must have at least %d (the number of sessions)",
                        room, c->count);
    }
    for (int i = 0; i < c->count; i++) {
        memcpy((char *)out + (size_t)i * (size_t)stride, &c->stats[i], size);
    }
    return 0;
}

static int stats_all(lbm_context_t *ctx, struct stats_call *call, int *num, int stride,
                     lbm_rcv_transport_stats_t *stats)
{
    int rc = um_rcv_lanes_each(ctx, gather_on_lane, call);
    rc = rc != 0 ? rc : copy_out(call, num, stride, stats);
    um_free(call->stats);
    return rc;
}

int um_receiver_stats_all(lbm_rcv_t *rcv, int *num, int stride, lbm_rcv_transport_stats_t *stats)
{
    struct stats_call call = {.rcv = rcv};
    return stats_all(rcv->ctx, &call, num, stride, stats);
}

int um_wildcard_stats_all(lbm_wildcard_rcv_t *w, int *num, lbm_rcv_transport_stats_t *stats)
{
    struct stats_call call = {.wildcard = w};
    return stats_all(w->ctx, &call, num, (int)sizeof *stats, stats);
}

static int reset_on_lane(struct um_rcv_lane *lane, void *arg)
{
    const lbm_rcv_t *rcv = arg;
    struct um_rcv_flow *flow = NULL;
    while ((flow = um_rcv_flow_next(lane, rcv->topic, flow)) != NULL) {
        um_rcv_stream_stats_reset(&flow->stream);
    }
    return 0;
}

int um_receiver_stats_reset_all(lbm_rcv_t *rcv)
{
    return um_rcv_lanes_each(rcv->ctx, reset_on_lane, rcv);
}

/* ---- readiness ---- */

static pthread_mutex_t ready_lock = PTHREAD_MUTEX_INITIALIZER; /* a leaf: nothing else is taken under it */
static pthread_cond_t ready_changed;
UM_FORK_GUARD(ready_lock)
UM_FORK_GUARD_CONDITION(ready_changed)
static atomic_int ready_waiters;

void um_rcv_ready_changed(void)
{
    if (atomic_load(&ready_waiters) != 0) {
        pthread_mutex_lock(&ready_lock);
        pthread_cond_broadcast(&ready_changed);
        pthread_mutex_unlock(&ready_lock);
    }
}

int um_receiver_ready_sources(lbm_rcv_t *rcv)
{
    return atomic_load(&rcv->ready);
}

int um_receiver_wait_ready(lbm_rcv_t *rcv, int sources, int timeout_ms)
{
    uint64_t until_ns = um_clock_ns() + (uint64_t)timeout_ms * UM_NS_PER_MS;
    pthread_mutex_lock(&ready_lock);
    atomic_fetch_add(&ready_waiters, 1);
    while (um_receiver_ready_sources(rcv) < sources && um_clock_ns() < until_ns) {
        um_cond_wait_until(&ready_changed, &ready_lock, until_ns);
    }
    int ready = um_receiver_ready_sources(rcv);
    atomic_fetch_sub(&ready_waiters, 1);
    pthread_mutex_unlock(&ready_lock);
    if (ready >= sources) {
        return 0;
    }
    return um_error(UM_ETIMEDOUT, "CoreApi-20204-4", "receiver on topic [%s]: %d of %d sources ready after %d ms",
                    rcv->topic->base.name, ready, sources, timeout_ms);
}

struct ready_call {
    const lbm_wildcard_rcv_t *wildcard;
    int ready;
};

static int ready_on_lane(struct um_rcv_lane *lane, void *arg)
{
    struct ready_call *c = arg;
    struct um_rcv_flow *flow = NULL;
    while ((flow = um_rcv_flow_next(lane, NULL, flow)) != NULL) {
        c->ready += flow->ready && is_for_wildcard(flow, c->wildcard);
    }
    return 0;
}

int um_wildcard_ready_sources(lbm_wildcard_rcv_t *w)
{
    struct ready_call call = {.wildcard = w};
    return um_rcv_lanes_each(w->ctx, ready_on_lane, &call) == 0 ? call.ready : -1;
}

/* A match with a topic whose sources are ready already tells nobody: look again soon. */
#define READY_LOOK_NS (20 * UM_NS_PER_MS)

int um_wildcard_wait_ready(lbm_wildcard_rcv_t *w, int sources, int timeout_ms)
{
    uint64_t until_ns = um_clock_ns() + (uint64_t)timeout_ms * UM_NS_PER_MS;
    int ready;
    uint64_t now_ns;
    atomic_fetch_add(&ready_waiters, 1);
    while ((ready = um_wildcard_ready_sources(w)) >= 0 && ready < sources && (now_ns = um_clock_ns()) < until_ns) {
        pthread_mutex_lock(&ready_lock);
        uint64_t look_ns = now_ns + READY_LOOK_NS;
        um_cond_wait_until(&ready_changed, &ready_lock, look_ns < until_ns ? look_ns : until_ns);
        pthread_mutex_unlock(&ready_lock);
    }
    atomic_fetch_sub(&ready_waiters, 1);
    if (ready < 0 || ready >= sources) {
        return ready < 0 ? -1 : 0;
    }
    return um_error(UM_ETIMEDOUT, "CoreApi-20204-5",
                    "wildcard receiver of pattern [%s]: %d of %d sources ready after %d ms", w->pattern, ready, sources,
                    timeout_ms);
}
