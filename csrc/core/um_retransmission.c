/* What sources retain, and the answers to those who ask for it. See
 * um_retransmission.h. Messages are kept in the sender's thread, under the session
 * lock and a lock of their own; requests are answered on the context's loop. */
#include "core/um_retransmission.h"

#include <arpa/inet.h>
#include <assert.h>
#include <string.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_lock.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "delivery/um_retention.h"

static_assert(UM_RETRANSMITTER_PACES == UM_SRC_TRANSPORTS_MAX, "a pace for each");

#define REQUEST_NS_MAX 2000u /* an answer takes less, unless the thread is interrupted */
/* Of so many requests the first few are measured together, if they come in one pass of the loop, else the first alone:
 * to look at the clock takes as long as a third of an answer. */
#define MEASURED_EVERY 64u
#define MEASURED_TOGETHER 8u
#define LOOK_INTERVAL_NS (100 * UM_NS_PER_MS)

struct um_src_retention {
    struct um_src_keeper keeper; /* first */
    struct um_lock lock;         /* a leaf, inside the session's */
    struct um_retention *kept;   /* lock */
    bool ages;                   /* fixed: there is an age to look at */
    unsigned pace;               /* fixed: that of its transport */
    struct um_retention_run run; /* [loop] behind what was asked for last: so that senders need not wait for answers */
};

struct um_retransmissions {
    lbm_context_t *ctx;
    struct um_u32_map by_topic; /* topic index -> um_src_retention */
    struct um_retransmitter *engine;
    struct um_timer timer; /* of those who wait for the pace */
    uint32_t requests;     /* [loop] all that came */
    uint64_t request_ns;   /* [loop] what one took when they were last measured */
    uint64_t begin_ns;     /* [loop] of those that are measured */
    uint64_t pass_ns;      /* [loop] in which they came */
    bool together;         /* [loop] the last that were measured came in one pass */
    uint64_t next_look_ns; /* for a source that somebody asks for in vain */
};

/* ---- what is kept ---- */

static void keep(struct um_src_keeper *keeper, struct um_src_stream *stream, uint32_t sqn, const uint8_t *message,
                 size_t headers, size_t len)
{
    struct um_src_retention *retention = UM_CONTAINER_OF(keeper, struct um_src_retention, keeper);
    um_lock_take(&retention->lock);
    um_retention_keep(retention->kept, retention->ages ? um_clock_ns() : 0, sqn, message, len);
    um_lock_give(&retention->lock);
}

/* ---- answers [loop] ---- */

static bool on_range(void *user, uint32_t topic_idx, uint32_t *low, uint32_t *high)
{
    const struct um_retransmissions *retransmissions = user;
    struct um_src_retention *retention = um_u32_map_get(&retransmissions->by_topic, topic_idx);
    if (retention == NULL) {
        return false;
    }
    um_lock_take(&retention->lock);
    um_retention_expire(retention->kept, retention->ages ? um_clock_ns() : 0);
    if (!um_retention_range(retention->kept, low, high)) {
        *low = 0;
        *high = UINT32_MAX;
    }
    um_lock_give(&retention->lock);
    return true;
}

/* A replay asks for one number behind the other. What has an age is looked for each time: it may be too old by now. */
static const struct um_retained *find_locked(struct um_src_retention *retention, uint32_t sqn)
{
    if (!retention->ages) {
        return um_retention_open_run(retention->kept, sqn, &retention->run);
    }
    um_retention_expire(retention->kept, um_clock_ns());
    return um_retention_find(retention->kept, sqn);
}

static size_t on_copy(void *user, uint32_t topic_idx, uint32_t sqn, uint8_t *out, unsigned *pace)
{
    const struct um_retransmissions *retransmissions = user;
    struct um_src_retention *retention = um_u32_map_get(&retransmissions->by_topic, topic_idx);
    if (retention == NULL) {
        return UM_RETRANSMITTER_NO_TOPIC;
    }
    *pace = retention->pace;
    const struct um_retained *record = um_retention_run_next(&retention->run, sqn);
    bool locked = record == NULL;
    if (locked) {
        um_lock_take(&retention->lock);
        record = find_locked(retention, sqn);
    }
    size_t len = record != NULL ? record->len : 0;
    if (len > 0) {
        memcpy(out, record->message, len);
    }
    if (locked) {
        um_lock_give(&retention->lock);
    }
    return len;
}

static bool on_send(void *user, const struct um_retransmitter_answer *to, const uint8_t *message, size_t len)
{
    const struct um_retransmissions *retransmissions = user;
    const struct iovec iov = {(void *)message, len};
    struct um_unicast_send send = {
        .ip = to->ip, .port = to->port, .iov = &iov, .iovcnt = 1, .nonblocking = true, .gathers = true};
    if (len > UM_UNICAST_MAX_MESSAGE) {
        send.heading = UM_UNICAST_BARE;
    } else if (to->instance != NULL) {
        send.heading = UM_UNICAST_TO_INSTANCE;
        send.instance = to->instance;
    } else {
        send.heading = UM_UNICAST_TO_ADDRESS;
    }
    return um_unicast_send(retransmissions->ctx->unicast, &send) == 0;
}

static bool has_source(const lbm_context_t *ctx, uint32_t topic_idx)
{
    struct um_list *node;
    UM_LIST_FOREACH(node, &ctx->sources)
    {
        if (UM_CONTAINER_OF(node, lbm_src_t, ctx_node)->stream.tidx == topic_idx) {
            return true;
        }
    }
    return false;
}

/* All sources are looked at for the line only: not for every request of a flood. */
static void log_no_source(struct um_retransmissions *retransmissions, const struct um_retransmitter_asker *asker,
                          const char *ip, uint32_t topic_idx, uint64_t now_ns)
{
    if (now_ns < retransmissions->next_look_ns) {
        return;
    }
    retransmissions->next_look_ns = now_ns + LOOK_INTERVAL_NS;
    struct um_log_origin origin = um_log_of_ip(asker->ip);
    if (has_source(retransmissions->ctx, topic_idx)) {
        um_log_limited(origin, now_ns, UM_LOG_INFO, "Core-9612-2",
                       "received lji request, but Late-Join not configured: from ip[%s] for topic[%u]", ip, topic_idx);
    } else if (asker->begins) {
        um_log_limited(origin, now_ns, UM_LOG_INFO, "Core-5688-699",
                       "received lji request for unknown source: from ip[%s] for topic[%u]", ip, topic_idx);
    } else if (asker->tsni) {
        um_log_limited(origin, now_ns, UM_LOG_INFO, "Core-7427-1",
                       "received TSNI request for unknown source[%u] from ip[%s]", topic_idx, ip);
    } else {
        um_log_limited(origin, now_ns, UM_LOG_INFO, "Core-5688-696",
                       "received retransmit request for unknown source[%u] from ip[%s]", topic_idx, ip);
    }
}

static void on_dropped(void *user, enum um_retransmitter_drop why, const struct um_retransmitter_asker *asker,
                       uint32_t topic_idx, uint64_t now_ns)
{
    struct um_retransmissions *retransmissions = user;
    struct in_addr addr = {asker->ip};
    char ip[INET_ADDRSTRLEN] = "";
    inet_ntop(AF_INET, &addr, ip, sizeof ip);
    switch (why) {
    case UM_RETRANSMITTER_NO_PORT:
        um_log_limited(um_log_of_ip(asker->ip), now_ns, UM_LOG_WARNING, "Core-5988-1",
                       "Attempting to Respond to a Request from %s with port set to zero.", ip);
        break;
    case UM_RETRANSMITTER_NO_SOURCE:
        log_no_source(retransmissions, asker, ip, topic_idx, now_ns);
        break;
    case UM_RETRANSMITTER_NOT_KEPT:
        um_log_limited(um_log_of_ip(asker->ip), now_ns, UM_LOG_DEBUG, "Core-20211-1",
                       "topic[%u]: a message that %s asks for is not retained any more", topic_idx, ip);
        break;
    case UM_RETRANSMITTER_UNPROVED:
        um_log_limited(um_log_of_ip(asker->ip), now_ns, UM_LOG_NOTICE, "Core-20211-2",
                       "topic[%u]: a request from %s names another address for its answer, which is too long to be "
                       "sent to an address that has proved nothing",
                       topic_idx, ip);
        break;
    case UM_RETRANSMITTER_OVER_BUDGET:
        um_log_limited(um_log_of_ip(asker->ip), now_ns, UM_LOG_NOTICE, "Core-20211-3",
                       "topic[%u]: more requests in a second than are answered, the last from %s", topic_idx, ip);
        break;
    case UM_RETRANSMITTER_OVER_PACE:
    case UM_RETRANSMITTER_BLOCKED: /* asked for again in time */
    case UM_RETRANSMITTER_DROPS:
        break;
    }
}

static void on_set_timer(void *user, uint64_t due_ns)
{
    struct um_retransmissions *retransmissions = user;
    um_timer_arm(um_loop_wheel(retransmissions->ctx->loop), &retransmissions->timer, due_ns);
}

static void on_timer(struct um_timer *timer, uint64_t now_ns)
{
    um_retransmitter_on_timer(UM_CONTAINER_OF(timer, struct um_retransmissions, timer)->engine, now_ns);
}

static const struct um_retransmitter_ops OPS = {
    .range = on_range, .copy = on_copy, .send = on_send, .set_timer = on_set_timer, .dropped = on_dropped};

static struct um_retransmitter_asker asker_of(const struct um_lbmc_msg *msg, const struct sockaddr_in *from)
{
    return (struct um_retransmitter_asker){.ip = from->sin_addr.s_addr,
                                           .len = msg->msglen,
                                           .instance =
                                               (msg->present & UM_LBMC_HAS_STREAM) != 0 ? msg->stream.ctxinst : NULL};
}

/* Less what others of this machine had of it meanwhile. */
static uint64_t measured_ns(const struct um_retransmissions *retransmissions, uint64_t count)
{
    uint64_t each_ns = (um_clock_ns() - retransmissions->begin_ns) / count;
    return each_ns < REQUEST_NS_MAX ? each_ns : REQUEST_NS_MAX;
}

static void begin_measuring(struct um_retransmissions *retransmissions, uint64_t now_ns)
{
    if (retransmissions->requests % MEASURED_EVERY == 0) {
        retransmissions->pass_ns = now_ns;
        retransmissions->begin_ns = um_clock_ns();
    }
}

static void end_measuring(struct um_retransmissions *retransmissions, uint64_t now_ns)
{
    uint32_t nth = retransmissions->requests++ % MEASURED_EVERY;
    if (nth == 0) {
        if (!retransmissions->together) {
            retransmissions->request_ns = measured_ns(retransmissions, 1);
        }
        retransmissions->together = false;
    } else if (nth == MEASURED_TOGETHER - 1 && retransmissions->pass_ns == now_ns) {
        retransmissions->request_ns = measured_ns(retransmissions, MEASURED_TOGETHER);
        retransmissions->together = true;
    }
}

static void on_request(void *user, const struct um_lbmc_msg *msg, struct um_buf *buf, const struct sockaddr_in *from,
                       uint64_t now_ns)
{
    struct um_retransmissions *retransmissions = user;
    struct um_retransmitter_asker asker = asker_of(msg, from);
    begin_measuring(retransmissions, now_ns);
    if ((msg->present & UM_LBMC_HAS_LJI_REQ) != 0) {
        asker.begins = true;
        um_retransmitter_on_lji_req(retransmissions->engine, now_ns, &msg->lji_req, &asker);
    }
    if ((msg->present & UM_LBMC_HAS_RXREQ) != 0) {
        asker.begins = false;
        asker.tsni = msg->rxreq.tsni;
        um_retransmitter_on_rxreq(retransmissions->engine, now_ns, &msg->rxreq, &asker);
    }
    end_measuring(retransmissions, now_ns);
    um_retransmitter_worked(retransmissions->engine, asker.ip, retransmissions->request_ns);
}

/* ---- creation and deletion [loop] ---- */

static struct um_retransmissions *create(lbm_context_t *ctx)
{
    uint64_t paces[UM_RETRANSMITTER_PACES];
    um_src_transports_retransmit_limits(&ctx->opts, paces);
    struct um_retransmissions *retransmissions = um_calloc(1, sizeof *retransmissions);
    if (retransmissions == NULL) {
        return NULL;
    }
    retransmissions->ctx = ctx;
    um_timer_init(&retransmissions->timer, on_timer);
    retransmissions->engine = um_retransmitter_create(paces, &OPS, retransmissions);
    if (retransmissions->engine == NULL) {
        um_free(retransmissions);
        return NULL;
    }
    um_unicast_on_control(ctx->unicast, UM_LBMC_HDR_LJI_REQ, on_request, retransmissions);
    um_unicast_on_control(ctx->unicast, UM_LBMC_HDR_RXREQ, on_request, retransmissions);
    return retransmissions;
}

void um_retransmissions_destroy(struct um_retransmissions *retransmissions)
{
    if (retransmissions == NULL) {
        return;
    }
    um_unicast_on_control(retransmissions->ctx->unicast, UM_LBMC_HDR_LJI_REQ, NULL, NULL);
    um_unicast_on_control(retransmissions->ctx->unicast, UM_LBMC_HDR_RXREQ, NULL, NULL);
    um_timer_cancel(um_loop_wheel(retransmissions->ctx->loop), &retransmissions->timer);
    um_retransmitter_destroy(retransmissions->engine);
    um_u32_map_clear(&retransmissions->by_topic);
    um_free(retransmissions);
}

struct um_retransmitter_stats um_retransmissions_stats(const struct um_retransmissions *retransmissions)
{
    return retransmissions != NULL ? um_retransmitter_stats(retransmissions->engine)
                                   : (struct um_retransmitter_stats){0};
}

/* The limit is never below what the threshold asks for, nor below one datagram. */
static struct um_retention_config config_of(const struct um_source_options *opts)
{
    size_t least = um_src_transports_retention_least(opts->transport);
    size_t limit = opts->retransmit_retention_size_limit;
    limit = limit < least ? least : limit;
    limit = limit < opts->retransmit_retention_size_threshold ? opts->retransmit_retention_size_threshold : limit;
    return (struct um_retention_config){.size_threshold = opts->retransmit_retention_size_threshold,
                                        .size_limit = limit,
                                        .message_threshold = opts->um_retransmit_retention_message_threshold,
                                        .age_ns = um_s_ns(opts->retransmit_retention_age_threshold)};
}

/* What a smart source sends has its place before it is sent. */
static int smart_config_of(const lbm_src_t *src, struct um_retention_config *config)
{
    uint32_t wanted = (uint32_t)src->topic->opts->smart_src_retention_buffer_count;
    size_t record_max = um_src_stream_whole_max(&src->stream) + UM_SRC_SMART_HEADERS;
    uint32_t count = um_src_smart_count(wanted, UM_RETENTION_RECORDS_MAX, record_max,
                                        "smart_src_retention_buffer_count", "Core-9941-2212", src->topic->base.name);
    *config = (struct um_retention_config){.records = count, .record_max = record_max};
    return count != 0 ? 0 : -1;
}

static void free_retention(struct um_src_retention *retention)
{
    um_retention_destroy(retention->kept);
    um_free(retention);
}

static struct um_src_retention *new_retention(lbm_src_t *src)
{
    const struct um_source_options *opts = src->topic->opts;
    struct um_retention_config config;
    if (!src->stream.smart) {
        config = config_of(opts);
    } else if (smart_config_of(src, &config) != 0) {
        return NULL;
    }
    struct um_src_retention *retention = um_calloc(1, sizeof *retention);
    if (retention == NULL || (retention->kept = um_retention_create(&config)) == NULL) {
        um_free(retention);
        return NULL;
    }
    retention->keeper.keep = keep;
    retention->ages = config.age_ns != 0;
    retention->pace = um_src_transports_index(opts->transport);
    lbm_context_t *ctx = src->ctx;
    if ((ctx->retransmissions == NULL && (ctx->retransmissions = create(ctx)) == NULL) ||
        um_u32_map_put(&ctx->retransmissions->by_topic, src->stream.tidx, retention) != 0) {
        free_retention(retention);
        return NULL;
    }
    return retention;
}

static bool may_retain(const lbm_src_t *src)
{
    if (!um_src_transports_retains(src->topic->opts->transport)) {
        return false; /* told when the topic was allocated */
    }
    if (src->ctx->env.request_port == 0) {
        um_log(UM_LOG_WARNING, "Core-20211-4",
               "topic [%s]: late_join is 1 and request_tcp_bind_request_port 0: late joiners have no port to ask at, "
               "nothing is retained",
               src->topic->base.name);
        return false;
    }
    return true;
}

int um_src_retention_begin(lbm_src_t *src, struct um_src_retention **out)
{
    const struct um_source_options *opts = src->topic->opts;
    *out = NULL;
    if (opts->late_join == 0 || !may_retain(src)) {
        return 0;
    }
    struct um_src_retention *retention = new_retention(src);
    if (retention == NULL) {
        return um_error_nomem("retention of a source", sizeof *retention);
    }
    if (um_src_stream_set_keeper(&src->stream, &retention->keeper) != 0) {
        um_src_retention_end(src, retention);
        return -1;
    }
    if (!src->stream.smart && opts->retransmit_retention_size_threshold == 0 &&
        opts->retransmit_retention_age_threshold == 0 && opts->um_retransmit_retention_message_threshold == 0) {
        um_log(UM_LOG_WARNING, "Core-5688-539",
               "NOTICE: Source \"%s\" has no retention settings (1 message retained max)", src->topic->base.name);
    }
    *out = retention;
    return 0;
}

void um_src_retention_end(lbm_src_t *src, struct um_src_retention *retention)
{
    if (retention != NULL) {
        um_u32_map_remove(&src->ctx->retransmissions->by_topic, src->stream.tidx);
        free_retention(retention);
    }
}
