/* Recovery of a flow. See um_rcv_recovery.h. */
#include "core/um_rcv_recovery.h"

#include <stdio.h>

#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "core/um_rcv_private.h"
#include "wire/um_source_string.h"
#include "wire/um_lbmr.h"

#define PROXIMITY_OFF 0x7fffffffu

struct um_rcv_recovery {
    struct um_recovery engine;
    struct um_rcv_flow *flow;     /* fixed */
    struct um_rcv_recovery *next; /* of the same topic index, of other contexts */
    struct um_timer timer;
    uint32_t index;      /* fixed: in its requests; one space for the context and its XSPs */
    uint32_t ip;         /* fixed: of the source's request port, network order */
    uint16_t port;       /* host order */
    bool has_instance;   /* fixed: */
    uint8_t instance[8]; /* of the source's context */
    bool registered;
};

static struct um_rcv_recoveries *recoveries_of(const struct um_rcv_recovery *recovery)
{
    return &recovery->flow->lane->recoveries;
}

/* ---- requests ---- */

/* One message or several of the same kind, one behind the other. */
static void send_records(const struct um_rcv_recovery *recovery, uint8_t *messages, size_t each, uint32_t count)
{
    const struct iovec iov = {messages, each * count};
    struct um_unicast *unicast = recoveries_of(recovery)->unicast;
    const struct um_unicast_send send = {.ip = recovery->ip,
                                         .port = recovery->port,
                                         .from_ip = um_unicast_addr(unicast).s_addr,
                                         .heading = UM_UNICAST_TO_ADDRESS,
                                         .iov = &iov,
                                         .iovcnt = 1,
                                         .several = count > 1,
                                         .nonblocking = true,
                                         .gathers = true};
    (void)um_unicast_send(unicast, &send); /* asked again in its time */
}

static void on_ask_info(void *user, bool has_low, uint32_t low)
{
    const struct um_rcv_recovery *recovery = user;
    const struct um_receiver_options *opts = recovery->flow->opts;
    const struct um_unicast *unicast = recoveries_of(recovery)->unicast;
    uint8_t message[UM_LBMC_CONTROL_HDR_LEN + UM_LBMC_LJI_REQ_LEN];
    const struct um_lbmc_lji_req req = {.flags =
                                            (uint16_t)(UM_LBMC_LJI_OUTSTANDING | (has_low ? UM_LBMC_LJI_LOW : 0) |
                                                       (opts->retransmit_request_maximum != 0 ? UM_LBMC_LJI_MAX : 0)),
                                        .request_idx = recovery->index,
                                        .topic_idx = recovery->flow->stream.tidx,
                                        .ip = um_unicast_addr(unicast).s_addr,
                                        .port = um_unicast_port(unicast),
                                        .low_sqn = low,
                                        .request_max = (uint32_t)opts->retransmit_request_maximum,
                                        .outstanding_max = (uint32_t)opts->retransmit_request_outstanding_maximum};
    um_lbmc_put_control_hdr(message, UM_LBMC_HDR_LJI_REQ, sizeof message);
    um_lbmc_put_lji_req(message + UM_LBMC_CONTROL_HDR_LEN, UM_LBMC_HDR_NONE, &req);
    send_records(recovery, message, sizeof message, 1);
}

static void put_rxreq(const struct um_rcv_recovery *recovery, uint8_t *message, bool tsni, uint32_t sqn)
{
    const struct um_unicast *unicast = recoveries_of(recovery)->unicast;
    const struct um_lbmc_rxreq req = {.tsni = tsni,
                                      .request_idx = recovery->index,
                                      .id = recovery->flow->stream.tidx,
                                      .sqn = sqn,
                                      .ip = um_unicast_addr(unicast).s_addr,
                                      .port = um_unicast_port(unicast)};
    um_lbmc_put_control_hdr(message, UM_LBMC_HDR_RXREQ, UM_RCV_ASK_LEN);
    um_lbmc_put_rxreq(message + UM_LBMC_CONTROL_HDR_LEN, UM_LBMC_HDR_NONE, &req);
}

/* What the engine asks for in one call goes together. */
static void flush_asks(const struct um_rcv_recovery *recovery)
{
    struct um_rcv_recoveries *recoveries = recoveries_of(recovery);
    if (recoveries->ask_count > 0) {
        send_records(recovery, recoveries->asks, UM_RCV_ASK_LEN, recoveries->ask_count);
        recoveries->ask_count = 0;
    }
}

static void on_ask(void *user, uint32_t sqn)
{
    const struct um_rcv_recovery *recovery = user;
    struct um_rcv_recoveries *recoveries = recoveries_of(recovery);
    if (recoveries->ask_count == UM_RCV_ASKS_MAX) {
        flush_asks(recovery);
    }
    uint8_t *message = recoveries->asks + (size_t)recoveries->ask_count * UM_RCV_ASK_LEN;
    if (recoveries->ask_count++ == 0) {
        put_rxreq(recovery, message, false, sqn);
    } else { /* only the number is another */
        memcpy(message, message - UM_RCV_ASK_LEN, UM_RCV_ASK_LEN);
        um_put32(message + UM_LBMC_CONTROL_HDR_LEN + UM_LBMC_RXREQ_SQN, sqn);
    }
}

static void on_ask_last(void *user)
{
    uint8_t message[UM_RCV_ASK_LEN];
    put_rxreq(user, message, true, 0);
    send_records(user, message, sizeof message, 1);
}

static void on_set_timer(void *user, uint64_t due_ns)
{
    struct um_rcv_recovery *recovery = user;
    um_timer_arm(um_loop_wheel(recovery->flow->lane->loop), &recovery->timer, due_ns);
}

static void on_note(void *user, enum um_recovery_note what, uint32_t count, uint64_t now_ns)
{
    const struct um_rcv_flow *flow = ((const struct um_rcv_recovery *)user)->flow;
    const char *topic = um_rcv_source_of(flow)->topic->base.name;
    char text[UM_SOURCE_STRING_MAX];
    const char *source = um_rcv_flow_source(flow, text);
    struct um_log_origin origin = um_log_of(source);
    switch (what) {
    case UM_RECOVERY_SKIPPED:
        um_log_limited(origin, now_ns, UM_LOG_WARNING, "Core-5480-3",
                       "no response received to late join initiation request - skipping late join [%s][%s]", topic,
                       source);
        break;
    case UM_RECOVERY_BEYOND:
        um_log_limited(
            origin, now_ns, UM_LOG_NOTICE, "Core-10483-1",
            "topic [%s] source [%s]: ume_recovery_sequence_number_info_function chose a sequence number that the "
            "source does not offer: the replay begins with %u",
            topic, source, count);
        break;
    case UM_RECOVERY_SENSELESS:
        um_log_limited(origin, now_ns, UM_LOG_NOTICE, "Core-20212-1",
                       "topic [%s] source [%s]: late join information about %u messages makes no sense: ignored", topic,
                       source, count);
        break;
    case UM_RECOVERY_OTR_ALERT:
        um_log_limited(origin, now_ns, UM_LOG_WARNING, "Core-5480-1", "OTR Initiated for [%s][%s]", topic, source);
        break;
    case UM_RECOVERY_OTR_AGAIN:
        um_log_limited(origin, now_ns, UM_LOG_INFO, "Core-5480-2", "OTR Repeated for [%s][%s] (%u times)", topic,
                       source, count);
        break;
    case UM_RECOVERY_STARTED:
        break;
    }
}

/* The application chooses where the replay begins. */
static uint32_t on_begin(void *user, uint32_t low, uint32_t wanted, uint32_t high)
{
    const struct um_rcv_flow *flow = ((const struct um_rcv_recovery *)user)->flow;
    const lbm_ume_rcv_recovery_info_ex_func_t *function = &flow->opts->ume_recovery_sequence_number_info_function;
    lbm_ume_rcv_recovery_info_ex_func_info_t info = {.low_sequence_number = low,
                                                     .low_rxreq_max_sequence_number = wanted,
                                                     .high_sequence_number = high,
                                                     .source_clientd = flow->clientd};
    char source[UM_SOURCE_STRING_MAX];
    snprintf(info.source, sizeof info.source, "%s", um_rcv_flow_source(flow, source));
    function->func(&info, function->clientd);
    return info.low_sequence_number != low ? info.low_sequence_number : wanted;
}

#define OPS_OF_EVERY_RECOVERY                                                                                          \
    .ask_info = on_ask_info, .ask = on_ask, .ask_last = on_ask_last, .set_timer = on_set_timer, .note = on_note

static const struct um_recovery_ops OPS = {OPS_OF_EVERY_RECOVERY};
static const struct um_recovery_ops CHOOSING_OPS = {OPS_OF_EVERY_RECOVERY, .begin = on_begin};

static bool application_chooses(const struct um_rcv_recovery *recovery)
{
    return recovery->flow->opts->ume_recovery_sequence_number_info_function.func != NULL;
}

static void on_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_rcv_recovery *recovery = UM_CONTAINER_OF(timer, struct um_rcv_recovery, timer);
    um_rcv_flow_recovery_begins(recovery->flow, false);
    um_recovery_on_timer(&recovery->engine, now_ns);
    flush_asks(recovery);
    um_rcv_flow_recovery_ends(recovery->flow);
}

bool um_rcv_recovery_wanted(struct um_rcv_recovery *recovery, uint32_t first, uint32_t count, uint64_t now_ns)
{
    return um_recovery_wanted(&recovery->engine, first, count, now_ns);
}

void um_rcv_recovery_hold(struct um_rcv_recovery *recovery, bool held)
{
    if (recovery == NULL) {
        return;
    }
    if (held) {
        um_recovery_pause(&recovery->engine);
    } else {
        um_recovery_resume(&recovery->engine, um_loop_now(recovery->flow->lane->loop));
    }
}

bool um_rcv_recovery_pending(const struct um_rcv_recovery *recovery)
{
    struct um_dc_range oldest;
    return recovery != NULL &&
           (recovery->engine.state == UM_RECOVERY_ASKING || um_dc_waits_for_recovery(recovery->flow->dc, &oldest));
}

/* ---- answers ---- */

/* A host may answer from another address than it advertises. */
static bool is_from(const struct um_rcv_recovery *recovery, const struct um_lbmc_msg *msg,
                    const struct sockaddr_in *from)
{
    return recovery->ip == from->sin_addr.s_addr ||
           (recovery->has_instance && (msg->present & UM_LBMC_HAS_STREAM) != 0 &&
            memcmp(recovery->instance, msg->stream.ctxinst, sizeof recovery->instance) == 0);
}

static void on_info(void *user, const struct um_lbmc_msg *msg, struct um_buf *buf, const struct sockaddr_in *from,
                    uint64_t now_ns)
{
    struct um_rcv_recoveries *recoveries = user;
    if ((msg->present & UM_LBMC_HAS_LJ_INFO) == 0) {
        return;
    }
    struct um_rcv_recovery *recovery = um_u32_map_get(&recoveries->by_index, msg->lj_info.request_idx);
    if (recovery != NULL && is_from(recovery, msg, from)) {
        um_rcv_flow_recovery_begins(recovery->flow, application_chooses(recovery)); /* which needs its BOS first */
        um_recovery_on_info(&recovery->engine, now_ns, msg->lj_info.low, msg->lj_info.high);
        flush_asks(recovery);
        um_rcv_flow_recovery_ends(recovery->flow);
    }
}

static void on_last(void *user, const struct um_lbmc_msg *msg, struct um_buf *buf, const struct sockaddr_in *from,
                    uint64_t now_ns)
{
    struct um_rcv_recoveries *recoveries = user;
    struct um_lbmc_tsni_iter iter = {0, 0};
    uint32_t topic_idx, last;
    while (um_lbmc_tsni_next(msg, &iter, &topic_idx, &last)) {
        struct um_rcv_recovery *recovery = um_u32_map_get(&recoveries->by_topic, topic_idx);
        for (; recovery != NULL; recovery = recovery->next) {
            if (is_from(recovery, msg, from)) {
                um_recovery_on_last(&recovery->engine, now_ns, last);
            }
        }
    }
}

#define OF_ITS_WAY (UM_LBMC_HAS_STREAM | UM_LBMC_HAS_CTXINSTD | UM_LBMC_HAS_DESTINATION)

/* Most have nothing but a payload: what is filled in is all that is read then. */
static void copy_message(const struct um_rcv_recovery *recovery, const struct um_lbmc_msg *msg, struct um_lbmc_msg *out)
{
    if ((msg->present & ~(uint32_t)OF_ITS_WAY) != 0) {
        *out = *msg;
    } else {
        out->type = msg->type;
        out->next_hdr = UM_LBMC_HDR_DATA;
        out->msglen = msg->msglen;
        out->sqn = msg->sqn;
        out->present = 0;
        out->payload = msg->payload;
    }
    out->tidx = recovery->flow->stream.tidx;
}

static bool take(struct um_rcv_recovery *recovery, const struct um_lbmc_msg *msg, struct um_buf *buf, uint64_t now_ns)
{
    struct um_lbmc_msg copy;
    if (!um_recovery_asked(&recovery->engine, msg->sqn)) {
        return false;
    }
    copy_message(recovery, msg, &copy);
    um_rcv_flow_recovery_begins(recovery->flow, true);
    um_recovery_on_data(&recovery->engine, now_ns, &copy, buf);
    flush_asks(recovery);
    um_rcv_flow_recovery_ends(recovery->flow);
    return true;
}

/* By its topic index; a peer may give the index of our request instead. */
static void on_retransmission(void *user, const struct um_lbmc_msg *msg, struct um_buf *buf,
                              const struct sockaddr_in *from, uint64_t now_ns)
{
    struct um_rcv_recoveries *recoveries = user;
    struct um_rcv_recovery *recovery = um_u32_map_get(&recoveries->by_topic, msg->tidx), *next;
    for (; recovery != NULL; recovery = next) {
        next = recovery->next;
        if (is_from(recovery, msg, from) && take(recovery, msg, buf, now_ns)) {
            return;
        }
    }
    recovery = um_u32_map_get(&recoveries->by_index, msg->tidx);
    if (recovery != NULL && is_from(recovery, msg, from) && take(recovery, msg, buf, now_ns)) {
        return;
    }
    recoveries->unasked++;
    um_log_limited(um_log_of_ip(from->sin_addr.s_addr), now_ns, UM_LOG_INFO, "Core-5688-692",
                   "topic level retransmission request index, %u, not found", msg->tidx);
}

void um_rcv_recoveries_open(struct um_rcv_recoveries *recoveries, struct um_unicast *unicast)
{
    recoveries->unicast = unicast;
    um_u32_map_init(&recoveries->by_topic);
    um_u32_map_init(&recoveries->by_index);
    um_unicast_on_control(unicast, UM_LBMC_HDR_LJ_INFO, on_info, recoveries);
    um_unicast_on_control(unicast, UM_LBMC_HDR_TSNI, on_last, recoveries);
    um_unicast_on_data(unicast, UM_LBMC_RETRANS, on_retransmission, recoveries);
}

static void add_stats(struct um_recovery_stats *sum, const struct um_recovery_stats *stats)
{
    sum->asked += stats->asked;
    sum->repeated += stats->repeated;
    sum->recovered += stats->recovered;
    sum->unasked += stats->unasked;
    sum->timed_out += stats->timed_out;
}

struct um_recovery_stats um_rcv_recoveries_stats(const struct um_rcv_recoveries *recoveries)
{
    struct um_recovery_stats sum = recoveries->ended;
    size_t cursor = 0;
    uint32_t index;
    void *value;
    while (um_u32_map_next(&recoveries->by_index, &cursor, &index, &value)) {
        add_stats(&sum, &((const struct um_rcv_recovery *)value)->engine.stats);
    }
    return sum;
}

void um_rcv_recoveries_close(struct um_rcv_recoveries *recoveries)
{
    um_u32_map_clear(&recoveries->by_topic);
    um_u32_map_clear(&recoveries->by_index);
}

/* ---- of a flow ---- */

/* In order, no more than that is held behind something missing. */
static uint32_t window_of(const struct um_receiver_options *opts)
{
    unsigned long proximity = opts->retransmit_message_caching_proximity;
    unsigned long outstanding = opts->retransmit_request_outstanding_maximum;
    unsigned long window = proximity > outstanding ? proximity : outstanding;
    return opts->ordered_delivery != 1 || window >= PROXIMITY_OFF ? 0 : (uint32_t)window;
}

static struct um_recovery_config config_of(const struct um_receiver_options *opts)
{
    return (struct um_recovery_config){
        .late_join = opts->use_late_join != 0,
        .info_interval_ns = um_ms_ns(opts->late_join_info_request_interval),
        .info_maximum = (uint32_t)opts->late_join_info_request_maximum,
        .request_maximum = (uint32_t)opts->retransmit_request_maximum,
        .request_interval_ns = um_ms_ns(opts->retransmit_request_interval),
        .request_timeout_ns = um_ms_ns(opts->retransmit_request_message_timeout),
        .request_outstanding = (uint32_t)opts->retransmit_request_outstanding_maximum,
        .window = window_of(opts),
        .ask_last = opts->retransmit_initial_sequence_number_request != 0,
        .last_interval_ns = um_ms_ns(opts->transport_topic_sequence_number_info_request_interval),
        .last_maximum = (uint32_t)opts->transport_topic_sequence_number_info_request_maximum,
        .off_transport = opts->use_otr == 1,
        .otr_alert_cooldown_ns = um_s_ns(opts->otr_request_log_alert_cooldown),
        .otr_delay_ns = um_ms_ns(opts->otr_request_initial_delay),
        .otr_interval_ns = um_ms_ns(opts->otr_request_minimum_interval),
        .otr_interval_max_ns = um_ms_ns(opts->otr_request_maximum_interval),
        .otr_timeout_ns = um_ms_ns(opts->otr_request_message_timeout),
        .otr_outstanding = (uint32_t)opts->otr_request_outstanding_maximum,
        .otr_entries_threshold = (uint32_t)opts->otr_message_caching_threshold,
        .otr_burst = opts->delivery_control_maximum_burst_loss,
    };
}

static bool offers(const struct um_tr_source *facts)
{
    return facts != NULL && facts->has_otid && (facts->functionality & UM_LBMR_EXFUNC_LATE_JOIN) != 0 &&
           facts->request_port != 0 && facts->request_ip != 0;
}

/* What the receiver's options ask for and the source does not offer is said. */
static void tell_not_offered(const struct um_rcv_flow *flow)
{
    const struct um_receiver_options *opts = flow->opts;
    bool asked = opts->retransmit_request_maximum != 0 || opts->ume_recovery_sequence_number_info_function.func != NULL;
    uint64_t now_ns = um_loop_now(flow->lane->ctx->loop);
    if (opts->use_late_join != 0) { /* the default: who asked for something beside it meant it */
        um_log_limited(um_log_of(um_rcv_source_of(flow)->topic->base.name), now_ns, asked ? UM_LOG_NOTICE : UM_LOG_INFO,
                       "Core-20212-2",
                       "topic [%s]: a source offers no late join: what it sent before is not replayed; set its source "
                       "option late_join to 1 and retransmit_retention_size_threshold to the bytes it is to retain",
                       um_rcv_source_of(flow)->topic->base.name);
    }
    if (opts->use_otr == 1) {
        um_log_limited(um_log_of(um_rcv_source_of(flow)->topic->base.name), now_ns, UM_LOG_INFO, "Core-5688-3203",
                       "INFO: OTR enabled but receiver is joining source with late join disabled [%s]",
                       um_rcv_source_of(flow)->topic->base.name);
    }
}

int um_rcv_recovery_create(struct um_rcv_flow *flow, const struct um_tr_source *facts, struct um_rcv_recovery **out)
{
    const struct um_receiver_options *opts = flow->opts;
    *out = NULL;
    if (opts->use_late_join == 0 && opts->use_otr != 1) {
        return 0;
    }
    if (!offers(facts) || um_unicast_port(flow->lane->recoveries.unicast) == 0) {
        tell_not_offered(flow);
        return 0;
    }
    struct um_rcv_recovery *recovery = um_calloc(1, sizeof *recovery);
    if (recovery == NULL) {
        return um_error_nomem("recovery of a source", sizeof *recovery);
    }
    recovery->flow = flow;
    recovery->ip = facts->request_ip;
    recovery->port = facts->request_port;
    recovery->has_instance = facts->has_ctxinst;
    memcpy(recovery->instance, facts->ctxinst, sizeof recovery->instance);
    do {
        recovery->index = atomic_fetch_add(&flow->lane->ctx->next_request_idx, 1);
    } while (recovery->index == 0);
    um_timer_init(&recovery->timer, on_timer);
    *out = recovery;
    return 0;
}

void um_rcv_recovery_destroy(struct um_rcv_recovery *recovery)
{
    if (recovery != NULL) {
        um_recovery_fini(&recovery->engine);
        um_free(recovery);
    }
}

/* Recovery, where it is on for gaps, holds no more than half of what begins it (proximity), nor more than that. */
void um_rcv_recovery_dc_config(const struct um_rcv_recovery *recovery, struct um_dc_config *config)
{
    const struct um_receiver_options *opts = recovery->flow->opts;
    unsigned long proximity = opts->retransmit_message_caching_proximity;
    unsigned long threshold = opts->otr_message_caching_threshold;
    config->recovers_bursts = opts->use_otr == 1;
    if (opts->use_otr == 1) {
        config->recovery_entries_max = threshold > UINT32_MAX ? 0 : (uint32_t)threshold;
        if (proximity > threshold && threshold != 0) {
            um_log(UM_LOG_NOTICE, "Core-8576-3",
                   "OTR enabled and otr message caching threshold is less than cache proximity. Reducing "
                   "retransmit_message_caching_proximity [%lu] to half of otr_message_caching_threshold [%lu] for "
                   "topic [%s].",
                   proximity, threshold, um_rcv_source_of(recovery->flow)->topic->base.name);
            proximity = threshold / 2;
        }
    }
    config->caching_proximity = proximity >= PROXIMITY_OFF ? 0 : proximity == 0 ? 1 : (uint32_t)proximity;
}

int um_rcv_recovery_begin(struct um_rcv_recovery *recovery)
{
    struct um_rcv_flow *flow = recovery->flow;
    struct um_rcv_recoveries *recoveries = recoveries_of(recovery);
    const struct um_recovery_config config = config_of(flow->opts);
    um_recovery_init(&recovery->engine, &config, application_chooses(recovery) ? &CHOOSING_OPS : &OPS, recovery,
                     flow->dc);
    recovery->next = um_u32_map_get(&recoveries->by_topic, flow->stream.tidx);
    if (um_u32_map_put(&recoveries->by_index, recovery->index, recovery) != 0) {
        return um_error_nomem("recovery of a source", sizeof *recovery);
    }
    if (um_u32_map_put(&recoveries->by_topic, flow->stream.tidx, recovery) != 0) {
        um_u32_map_remove(&recoveries->by_index, recovery->index);
        return um_error_nomem("recovery of a source", sizeof *recovery);
    }
    recovery->registered = true;
    um_recovery_start(&recovery->engine, um_loop_now(flow->lane->loop));
    return 0;
}

void um_rcv_recovery_end(struct um_rcv_recovery *recovery)
{
    if (recovery == NULL || !recovery->registered) {
        return;
    }
    struct um_rcv_recoveries *recoveries = recoveries_of(recovery);
    uint32_t topic_idx = recovery->flow->stream.tidx;
    struct um_rcv_recovery *first = um_u32_map_get(&recoveries->by_topic, topic_idx);
    recovery->registered = false;
    add_stats(&recoveries->ended, &recovery->engine.stats);
    um_timer_cancel(um_loop_wheel(recovery->flow->lane->loop), &recovery->timer);
    um_u32_map_remove(&recoveries->by_index, recovery->index);
    if (first != recovery) {
        while (first->next != recovery) {
            first = first->next;
        }
        first->next = recovery->next;
    } else if (recovery->next == NULL) {
        um_u32_map_remove(&recoveries->by_topic, topic_idx);
    } else {
        um_u32_map_put(&recoveries->by_topic, topic_idx, recovery->next); /* its place is there: cannot fail */
    }
}
