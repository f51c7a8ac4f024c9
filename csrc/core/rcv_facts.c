/* Facts about a receiver's sources: transport statistics, the application's
 * pointer per source, and readiness (decided on the loop, waited for by any
 * thread). */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/um_error.h"
#include "base/um_fork.h"
#include "base/um_mem.h"
#include "core/um_rcv_private.h"

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

static struct um_rcv_source *find_session(lbm_rcv_t *rcv, const char *text)
{
    struct um_list *node;
    UM_LIST_FOREACH(node, &rcv->topic->sources)
    {
        struct um_rcv_source *source = UM_CONTAINER_OF(node, struct um_rcv_source, node);
        if (same_session(source->msg->pub.source, text)) {
            return source;
        }
    }
    return NULL;
}

struct clientd_call {
    lbm_rcv_t *rcv;
    const char *text;
    void *clientd;
};

static int set_clientd_on_loop(void *arg)
{
    struct clientd_call *c = arg;
    struct um_list *node;
    bool found = false;
    UM_LIST_FOREACH(node, &c->rcv->topic->sources)
    {
        struct um_rcv_source *source = UM_CONTAINER_OF(node, struct um_rcv_source, node);
        bool whole = strcmp(source->msg->pub.source, c->text) == 0;
        if (whole || (strchr(c->text, '[') == NULL && same_session(source->msg->pub.source, c->text))) {
            source->clientd = c->clientd;
            found = true;
        }
    }
    if (!found) {
        return um_error(UM_EINVAL, "CoreApi-20204-1",
                        "lbm_rcv_msg_source_clientd: source [%s]: must be a source this receiver has joined", c->text);
    }
    return 0;
}

int um_receiver_set_source_clientd(lbm_rcv_t *rcv, const char *source, void *source_clientd)
{
    struct clientd_call call = {rcv, source, source_clientd};
    return um_loop_call(rcv->ctx->loop, set_clientd_on_loop, &call);
}

/* ---- statistics ---- */

struct stats_call {
    lbm_rcv_t *rcv;
    const char *text;
    lbm_rcv_transport_stats_t *stats;
    int *num;
    int stride;
};

static int stats_on_loop(void *arg)
{
    struct stats_call *c = arg;
    struct um_rcv_source *source = find_session(c->rcv, c->text);
    if (source == NULL) {
        return um_error(UM_EINVAL, "CoreApi-20204-2",
                        "source [%s]: could not find the given source transport session among those of this receiver",
                        c->text);
    }
    if (c->stats == NULL) {
        um_rcv_stream_stats_reset(&source->stream);
        return 0;
    }
    return um_rcv_stream_stats(&source->stream, c->stats);
}

int um_receiver_stats(lbm_rcv_t *rcv, const char *source, lbm_rcv_transport_stats_t *stats)
{
    struct stats_call call = {.rcv = rcv, .text = source, .stats = stats};
    return um_loop_call(rcv->ctx->loop, stats_on_loop, &call);
}

/* Is this the first source of the topic on its session? Two sources of a topic may share one. */
static bool first_of_session(const struct um_rcv_source *source)
{
    struct um_list *node;
    for (node = source->node.prev; node != &source->topic->sources; node = node->prev) {
        struct um_rcv_source *other = UM_CONTAINER_OF(node, struct um_rcv_source, node);
        if (same_session(other->msg->pub.source, source->msg->pub.source)) {
            return false;
        }
    }
    return true;
}

/* The caller's structure may be of another version: as many bytes as both have. */
static void copy_out(struct stats_call *c, int index, const lbm_rcv_transport_stats_t *stats)
{
    size_t size = (size_t)c->stride < sizeof *stats ? (size_t)c->stride : sizeof *stats;
    memcpy((char *)c->stats + (size_t)index * (size_t)c->stride, stats, size);
}

static int check_room(struct stats_call *c, int needed)
{
    int room = *c->num;
    *c->num = needed;
    if (needed > room) {
        return um_error(UM_EINVAL, "CoreApi-20204-3",
                        "transport statistics: array of %d entries: must have at least %d (the number of sessions)",
                        room, needed);
    }
    return 0;
}

static int stats_all_on_loop(void *arg)
{
    struct stats_call *c = arg;
    struct um_list *node;
    int needed = 0;
    UM_LIST_FOREACH(node, &c->rcv->topic->sources)
    {
        needed += first_of_session(UM_CONTAINER_OF(node, struct um_rcv_source, node));
    }
    if (check_room(c, needed) != 0) {
        return -1;
    }
    int index = 0;
    UM_LIST_FOREACH(node, &c->rcv->topic->sources)
    {
        struct um_rcv_source *source = UM_CONTAINER_OF(node, struct um_rcv_source, node);
        lbm_rcv_transport_stats_t stats;
        if (first_of_session(source)) {
            if (um_rcv_stream_stats(&source->stream, &stats) != 0) {
                return -1;
            }
            copy_out(c, index++, &stats);
        }
    }
    return 0;
}

int um_receiver_stats_all(lbm_rcv_t *rcv, int *num, int stride, lbm_rcv_transport_stats_t *stats)
{
    struct stats_call call = {.rcv = rcv, .num = num, .stride = stride, .stats = stats};
    return um_loop_call(rcv->ctx->loop, stats_all_on_loop, &call);
}

static int reset_all_on_loop(void *arg)
{
    lbm_rcv_t *rcv = arg;
    struct um_list *node;
    UM_LIST_FOREACH(node, &rcv->topic->sources)
    {
        um_rcv_stream_stats_reset(&UM_CONTAINER_OF(node, struct um_rcv_source, node)->stream);
    }
    return 0;
}

int um_receiver_stats_reset_all(lbm_rcv_t *rcv)
{
    return um_loop_call(rcv->ctx->loop, reset_all_on_loop, rcv);
}

/* ---- readiness ---- */

static pthread_mutex_t ready_lock = PTHREAD_MUTEX_INITIALIZER; /* a leaf: nothing else is taken under it */
static pthread_cond_t ready_changed = PTHREAD_COND_INITIALIZER;
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
    return atomic_load(&rcv->topic->ready);
}

int um_receiver_wait_ready(lbm_rcv_t *rcv, int sources, int timeout_ms)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    if (timeout_ms > 0) {
        until.tv_sec += timeout_ms / 1000;
        until.tv_nsec += timeout_ms % 1000 * 1000000l;
        if (until.tv_nsec >= 1000000000l) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000l;
        }
    }
    int rc = 0;
    pthread_mutex_lock(&ready_lock);
    atomic_fetch_add(&ready_waiters, 1);
    while (um_receiver_ready_sources(rcv) < sources && rc != ETIMEDOUT) {
        rc = timeout_ms < 0 ? pthread_cond_wait(&ready_changed, &ready_lock)
                            : pthread_cond_timedwait(&ready_changed, &ready_lock, &until);
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
