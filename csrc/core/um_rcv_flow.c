/* What a source sends, on its way to the receivers: session, delivery controller,
 * messages and events. Runs on the loop of the flow's session. The in-order path
 * writes only the fields of the template that change and calls the receivers. An
 * application hears of a source when something was received from it. */
#include "core/um_rcv_flow.h"

#include "base/um_error.h"
#include "base/um_mem.h"
#include "config/um_shared_options.h"
#include "core/um_msg_extras.h"
#include "core/um_rcv_mail.h"
#include "core/um_rcv_private.h"
#include "core/um_response.h"
#include "wire/um_source_string.h"
#include "wire/um_transport_place.h"

#define SPECIAL (UM_LBMC_HAS_REQUEST | UM_LBMC_HAS_APPHDR_CHAIN | UM_LBMC_HAS_APPHDR)

/* A final advertisement overtakes messages still in the connection, and repairs. The source ends when none came for
 * this long, and nothing is missing that may still come. */
#define WITHDRAWN_QUIET_NS (250 * UM_NS_PER_MS)

static struct um_timer_wheel *wheel(const struct um_rcv_flow *flow)
{
    return um_loop_wheel(flow->lane->loop);
}

/* ---- deliveries ---- */

static inline struct um_msg *template_of(struct um_rcv_flow *flow)
{
    return __builtin_expect(flow->msg != NULL, 1) ? flow->msg : um_rcv_template_take(&flow->lane->templates, flow);
}

static inline void deliver_template_by(struct um_rcv_flow *flow, void (*deliver)(lbm_rcv_t *rcv, struct um_msg *msg))
{
    struct um_msg *msg = flow->msg;
    const struct um_rcv_audience *audience = flow->audience;
    um_msg_mark(msg, UM_MSG_DELIVERING, true);
    for (unsigned i = 0; i < audience->count; i++) {
        deliver(audience->receivers[i], msg);
    }
    um_msg_mark(msg, UM_MSG_DELIVERING, false);
    if (__builtin_expect(msg->replacement != NULL, 0)) {
        um_rcv_template_delivered(&flow->lane->templates, flow);
    }
}

static void deliver_template(struct um_rcv_flow *flow)
{
    deliver_template_by(flow, um_rcv_deliver);
}

static void deliver_with_extras(struct um_rcv_flow *flow)
{
    const struct um_msg *msg = flow->msg;
    bool special = msg->channel.flags != 0 || msg->pub.properties != NULL;
    deliver_template_by(flow, special ? um_rcv_deliver_numbered : um_rcv_deliver);
}

static void set_time(struct um_msg *msg, uint64_t wall_ns)
{
    msg->wall_ns = wall_ns;
    msg->pub.tsp.tv_sec = (long)(wall_ns / UM_NS_PER_SEC);
    msg->pub.tsp.tv_usec = (long)(wall_ns % UM_NS_PER_SEC / 1000);
}

static void stamp(struct um_rcv_flow *flow)
{
    uint64_t wall_ns = um_loop_wall_now(flow->lane->loop);
    if (wall_ns != flow->msg->wall_ns) {
        set_time(flow->msg, wall_ns);
    }
}

static void deliver_event(struct um_rcv_flow *flow, int type, uint32_t sqn)
{
    struct um_msg *msg = template_of(flow);
    flow->direct = NULL; /* the template is changed */
    msg->pub.type = type;
    msg->pub.flags = 0;
    msg->pub.data = NULL;
    msg->pub.len = 0;
    msg->pub.sequence_number = sqn;
    msg->pub.source_clientd = flow->clientd;
    msg->pub.fragment_info = NULL;
    msg->pub.hr_timestamp = (lbm_timespec_t){0};
    um_msg_mark(msg, UM_MSG_FRAGMENT, false);
    msg->buf = NULL;
    stamp(flow);
    deliver_template(flow);
}

/* When the network card or the kernel got the (last) fragment, if they were asked to tell. */
static lbm_timespec_t arrival_of(const struct um_lbmc_msg *msg)
{
    if (__builtin_expect((msg->present & UM_LBMC_HAS_STAMP) == 0, 1)) {
        return (lbm_timespec_t){0};
    }
    return (lbm_timespec_t){.tv_sec = (long)(msg->stamp_ns / UM_NS_PER_SEC),
                            .tv_nsec = (long)(msg->stamp_ns % UM_NS_PER_SEC)};
}

static int flags_of(uint16_t batch_flags)
{
    return ((batch_flags & UM_LBMC_BATCH_START) ? LBM_MSG_FLAG_START_BATCH : 0) |
           ((batch_flags & UM_LBMC_BATCH_END) ? LBM_MSG_FLAG_END_BATCH : 0);
}

/* Late join has its flag, recovery of gaps another one. */
static int recovery_flags_of(uint32_t present)
{
    return (present & UM_LBMC_RECOVERED) != 0 ? LBM_MSG_FLAG_OTR : LBM_MSG_FLAG_RETRANSMIT;
}

/* Where the answers go when the request does not say: where its source is heard. */
static uint32_t address_of(const struct um_rcv_flow *flow)
{
    const lbm_transport_source_info_t *info = &um_rcv_source_of(flow)->joining.offer.info;
    return um_transport_place(info->type) == UM_PLACE_MEMORY ? 0 : info->src_ip;
}

static void deliver_request(struct um_rcv_flow *flow, const struct um_lbmc_msg *msg)
{
    struct um_msg *template = flow->msg;
    template->pub.type = LBM_MSG_REQUEST;
    template->pub.response = um_response_create(flow->lane->ctx, msg, address_of(flow));
    deliver_with_extras(flow);
    template = flow->msg; /* retained by somebody when there was no response */
    um_response_free(template->pub.response);
    template->pub.response = NULL;
}

/* A channel, a number of hot failover, properties after others that nobody has looked at: nothing that needs memory.
 * False: it is something else. */
static inline bool begin_simple(struct um_rcv_flow *flow, const struct um_dc_delivery *d)
{
    const struct um_chain_summary *summary = &d->msg->chain_summary;
    if ((d->msg->present & SPECIAL) != UM_LBMC_HAS_APPHDR_CHAIN || (summary->has & UM_CHAIN_HAS_USER_DATA) != 0) {
        return false;
    }
    if ((summary->has & UM_CHAIN_HAS_PROPERTIES) != 0 &&
        (flow->opts->ordered_delivery == 0 || !um_msg_extras_follow(flow->msg, d))) {
        return false;
    }
    if ((summary->has & UM_CHAIN_HAS_CHANNEL) != 0) {
        flow->msg->channel.flags = LBM_MSG_FLAG_NUMBERED_CHANNEL;
        flow->msg->channel.channel_number = summary->channel;
    }
    return true;
}

static inline void deliver_simple(struct um_rcv_flow *flow, const struct um_lbmc_msg *msg)
{
    flow->lane->chain = msg->apphdr_chain;
    if (msg->chain_summary.has != 0) {
        deliver_template_by(flow, um_rcv_deliver_numbered);
    } else {
        deliver_template_by(flow, um_rcv_deliver);
    }
    flow->lane->chain.ptr = NULL;
    flow->lane->chain.len = 0;
    struct um_msg *template = flow->msg;
    template->pub.properties = NULL;
    template->pub.channel_info = NULL;
    template->channel.flags = 0;
}

/* What came with more than a payload. */
static __attribute__((noinline)) void deliver_special(struct um_rcv_flow *flow, const struct um_dc_delivery *d)
{
    if (begin_simple(flow, d)) {
        deliver_simple(flow, d->msg);
        return;
    }
    bool extras = (d->msg->present & (UM_LBMC_HAS_APPHDR_CHAIN | UM_LBMC_HAS_APPHDR)) != 0;
    if (extras) {
        um_msg_extras_begin(flow->msg, d, flow->opts->ordered_delivery != 0);
    }
    if ((d->msg->present & UM_LBMC_HAS_APPHDR_CHAIN) != 0) {
        flow->lane->chain = d->msg->apphdr_chain;
    }
    if ((d->msg->present & UM_LBMC_HAS_REQUEST) != 0) {
        deliver_request(flow, d->msg);
    } else {
        deliver_with_extras(flow);
    }
    flow->lane->chain = (struct um_slice){NULL, 0};
    if (extras) {
        um_msg_extras_end(flow->msg);
    }
}

static void on_dc_deliver(void *user, const struct um_dc_delivery *d, uint64_t now_ns)
{
    struct um_rcv_flow *flow = user;
    struct um_msg *msg = template_of(flow);
    msg->pub.type = LBM_MSG_DATA;
    msg->pub.flags = flags_of(d->batch_flags);
    if (__builtin_expect((d->msg->present & UM_LBMC_OFF_TRANSPORT) != 0, 0)) {
        msg->pub.flags |= recovery_flags_of(d->msg->present);
    }
    msg->pub.data = (const char *)d->data;
    msg->pub.len = d->len;
    msg->pub.sequence_number = d->sqn;
    msg->pub.source_clientd = flow->clientd;
    msg->pub.hr_timestamp = arrival_of(d->msg);
    msg->buf = d->buf;
    um_msg_mark(msg, UM_MSG_FRAGMENT, d->fragment);
    msg->pub.fragment_info = NULL;
    if (__builtin_expect(d->fragmented, 0)) {
        msg->frag.start_sequence_number = d->first_sqn;
        msg->frag.offset = d->frag_offset;
        msg->frag.total_message_length = d->frag_total;
        msg->pub.fragment_info = &msg->frag;
    }
    stamp(flow);
    if (__builtin_expect((d->msg->present & SPECIAL) != 0, 0)) {
        deliver_special(flow, d);
        return;
    }
    deliver_template(flow);
}

static void on_dc_missing(void *user, uint32_t first_sqn, uint32_t count, uint64_t now_ns)
{
    struct um_rcv_flow *flow = user;
    atomic_fetch_add_explicit(&flow->lane->ctx->counters.fragments_lost, count, memory_order_relaxed);
}

static void on_dc_loss(void *user, uint32_t sqn, uint64_t now_ns)
{
    struct um_rcv_flow *flow = user;
    atomic_fetch_add_explicit(&flow->lane->ctx->counters.fragments_unrecoverably_lost, 1, memory_order_relaxed);
    deliver_event(flow, LBM_MSG_UNRECOVERABLE_LOSS, sqn);
}

static void on_dc_burst_loss(void *user, uint32_t first_sqn, uint32_t count, uint64_t now_ns)
{
    struct um_rcv_flow *flow = user;
    atomic_fetch_add_explicit(&flow->lane->ctx->counters.fragments_unrecoverably_lost, count, memory_order_relaxed);
    template_of(flow)->lost = count;
    deliver_event(flow, LBM_MSG_UNRECOVERABLE_LOSS_BURST, first_sqn);
    flow->msg->lost = 0;
}

static void on_dc_set_timer(void *user, uint64_t due_ns)
{
    struct um_rcv_flow *flow = user;
    if (due_ns == UM_NEVER) {
        um_timer_cancel(wheel(flow), &flow->loss_timer);
    } else {
        um_timer_arm(wheel(flow), &flow->loss_timer, due_ns);
    }
}

static void on_dc_discarded(void *user, enum um_dc_discard why, uint32_t sqn, uint64_t now_ns)
{
    static const char *const reasons[UM_DC_DISCARD_COUNT] = {
        [UM_DC_DUPLICATE] = "arrived a second time",
        [UM_DC_LATE] = "arrived after it had been reported as lost",
        [UM_DC_MALFORMED] = "does not fit its own fragment header, or is a sequence number out of reach",
        [UM_DC_HEADLESS] = "is a fragment of a message whose beginning was not received",
        [UM_DC_BEFORE] = "was sent before the stream began here",
        [UM_DC_UNASKED] = "was recovered, and is not waited for",
        [UM_DC_DEFERRED] = "is too far beyond what is being recovered: it is asked for again",
        [UM_DC_REASSEMBLY] = "is part of a message beyond the bounds of reassembly (um_reassembly_maximum_size)",
        [UM_DC_NO_ROOM] = "found no memory to be held",
        [UM_DC_UNFINISHED] = "belongs to something that was not complete at the end",
    };
    struct um_rcv_flow *flow = user;
    char source[UM_SOURCE_STRING_MAX];
    struct um_log_origin topic = um_log_of(um_rcv_source_of(flow)->topic->base.name);
    if (um_log_left_out(topic, now_ns, "Core-20202-4")) {
        return; /* the words cost more than the message */
    }
    um_log_limited(topic, now_ns, UM_LOG_INFO, "Core-20202-4",
                   "topic [%s] source [%s]: sequence number %u %s: discarded, as %llu before for this reason",
                   um_rcv_source_of(flow)->topic->base.name, um_rcv_flow_source(flow, source), sqn, reasons[why],
                   (unsigned long long)um_dc_stats(flow->dc).discards[why] - 1);
}

static uint32_t on_dc_position(void *user)
{
    const struct um_rcv_flow *flow = user;
    return um_rcv_stream_position(&flow->stream);
}

static bool on_dc_complete_before(void *user, uint32_t position)
{
    const struct um_rcv_flow *flow = user;
    return um_rcv_stream_complete_before(&flow->stream, position);
}

static void on_dc_opening(void *user, bool on)
{
    struct um_rcv_flow *flow = user;
    um_rcv_stream_watch(&flow->stream, on);
}

static void on_dc_map_full(void *user, uint64_t now_ns)
{
    const struct um_rcv_flow *flow = user;
    const lbm_topic_t *topic = &um_rcv_source_of(flow)->topic->base;
    struct um_log_origin origin = um_log_of(topic->name);
    char source[UM_SOURCE_STRING_MAX];
    if (um_log_left_out(origin, now_ns, "Core-7506-2")) {
        return;
    }
    um_log_limited(
        origin, now_ns, UM_LOG_WARNING, "Core-7506-2",
        "topic [%s] source [%s]: no more may wait for what is missing: the oldest gap is given up as lost, as "
        "%llu before (delivery_control_maximum_total_map_entries %zu)",
        topic->name, um_rcv_flow_source(flow, source), (unsigned long long)um_dc_stats(flow->dc).map_overflow - 1,
        (size_t)topic->ctx->opts.delivery_control_maximum_total_map_entries);
}

static void on_dc_opening_cut(void *user, size_t messages, size_t bytes, uint64_t now_ns)
{
    const struct um_rcv_flow *flow = user;
    char source[UM_SOURCE_STRING_MAX];
    um_log_limited(um_log_of(um_rcv_source_of(flow)->topic->base.name), now_ns, UM_LOG_WARNING, "Core-9006-15",
                   "topic [%s] source [%s]: %zu messages in %zu bytes of receive buffers are handed on before what was "
                   "sent before them is repaired; what comes later than this may count as old",
                   um_rcv_source_of(flow)->topic->base.name, um_rcv_flow_source(flow, source), messages, bytes);
}

static bool on_dc_recovery_wanted(void *user, uint32_t first_sqn, uint32_t count, uint64_t now_ns)
{
    return um_rcv_recovery_wanted(((struct um_rcv_flow *)user)->recovery, first_sqn, count, now_ns);
}

#define OPS_OF_EVERY_FLOW                                                                                              \
    .deliver = on_dc_deliver, .loss = on_dc_loss, .burst_loss = on_dc_burst_loss, .set_timer = on_dc_set_timer,        \
    .missing = on_dc_missing, .discarded = on_dc_discarded, .position = on_dc_position,                                \
    .complete_before = on_dc_complete_before, .opening = on_dc_opening, .opening_cut = on_dc_opening_cut,              \
    .map_full = on_dc_map_full

static const struct um_dc_ops DC_OPS = {OPS_OF_EVERY_FLOW};
/* Of flows with recovery: of those alone the controller keeps gaps that the transport does not fill. */
static const struct um_dc_ops RECOVERING_DC_OPS = {
    OPS_OF_EVERY_FLOW,
    .recovery_wanted = on_dc_recovery_wanted,
};

static void on_loss_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_rcv_flow *flow = UM_CONTAINER_OF(timer, struct um_rcv_flow, loss_timer);
    um_dc_on_timer(flow->dc, now_ns);
}

/* ---- the end ---- */

static void set_ready(struct um_rcv_flow *flow, bool ready)
{
    int by = ready ? 1 : -1;
    if (flow->ready == ready) {
        return;
    }
    flow->ready = ready;
    atomic_fetch_add(&um_rcv_source_of(flow)->topic->ready, by);
    for (unsigned i = 0; i < flow->audience->count; i++) {
        atomic_fetch_add(&flow->audience->receivers[i]->ready, by);
    }
    um_rcv_ready_changed();
}

/* Takers of batches are woken once for all that a read brought. */
static void read_over(struct um_rcv_flow *flow)
{
    flow->reading = false;
    for (unsigned i = 0; i < flow->audience->count; i++) {
        struct um_collector_link *link = flow->audience->receivers[i]->collector;
        if (link != NULL) {
            um_collector_read_end(link);
        }
    }
}

/* Receivers count what happens between their coming and their going. */
static void count_out(lbm_rcv_t *rcv, void *arg)
{
    struct um_rcv_flow *flow = arg;
    struct um_dc_stats counts = um_dc_stats(flow->dc);
    um_rcv_count(rcv, &counts, UM_RCV_COUNT_UNTIL);
    atomic_fetch_sub(&rcv->ready, flow->ready ? 1 : 0);
    if (rcv->hf != NULL && flow->mail == NULL) {
        um_rcv_hf_flow_left(rcv, flow);
    }
}

static void stop(struct um_rcv_flow *flow)
{
    um_list_remove(&flow->lane_node);
    um_list_remove(&flow->held_node);
    if (flow->reading) {
        read_over(flow);
    }
    set_ready(flow, false);
    if (flow->stream.session != NULL) {
        um_rcv_stream_leave(&flow->stream);
    }
    um_rcv_recovery_end(flow->recovery);
    um_timer_cancel(wheel(flow), &flow->loss_timer);
    um_rcv_flow_keep(flow);
    um_dc_finish(flow->dc, um_loop_now(flow->lane->loop));
    um_rcv_audience_changes(flow->audience, NULL, count_out, NULL, flow);
    um_rcv_audience_unref(flow->audience);
    flow->audience = NULL;
    um_rcv_template_leave(flow);
}

/* Whoever calls this does not touch the flow any more. */
static void end(struct um_rcv_flow *flow, enum um_rcv_flow_end why)
{
    uint64_t now_ns = um_loop_now(flow->lane->loop);
    if (why == UM_RCV_FLOW_LOST && flow->leaving != NULL) {
        why = UM_RCV_FLOW_WITHDRAWN; /* a join of it that fails now is not to be tried again */
    }
    set_ready(flow, false);
    if (flow->bos_seen) {
        um_dc_end(flow->dc, now_ns);
        deliver_event(flow, LBM_MSG_EOS, 0);
    }
    stop(flow);
    if (flow->mail != NULL) {
        um_rcv_mail_tell(flow->mail, UM_RCV_NEWS_END, why);
    } else {
        um_rcv_source_on_end(um_rcv_source_of(flow), why);
    }
}

void um_rcv_flow_close(struct um_rcv_flow *flow)
{
    if (flow->audience != NULL) {
        stop(flow);
    }
}

/* ---- final advertisements ---- */

static uint64_t arrived(const struct um_rcv_flow *flow)
{
    return um_dc_stats(flow->dc).delivered + um_dc_reassembly_bytes(flow->dc);
}

static void look_again(struct um_rcv_flow *flow, uint64_t now_ns)
{
    um_timer_arm(wheel(flow), &flow->leaving->timer, now_ns + WITHDRAWN_QUIET_NS);
}

/* Messages wait in a session that is left unread; one that is read again gets on, too: a late loop may hear of it in
 * the pass in which the timer fires, before it has read anything. Repairs take longer than data. With a source goes
 * what it has retained. */
static bool may_still_come(struct um_rcv_flow *flow, uint64_t now_ns)
{
    bool repairs = um_dc_waits(flow->dc, now_ns) && !um_rcv_recovery_pending(flow->recovery);
    return um_rcv_withdrawal_goes_on(&flow->leaving->withdrawal, arrived(flow), um_rcv_session_resumed(&flow->stream),
                                     um_rcv_session_paused(&flow->stream), repairs);
}

static void on_withdrawn_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_rcv_flow *flow = UM_CONTAINER_OF(timer, struct um_rcv_leaving, timer)->flow;
    if (may_still_come(flow, now_ns)) {
        look_again(flow, now_ns);
    } else {
        end(flow, UM_RCV_FLOW_WITHDRAWN);
    }
}

/* Ended when nothing of it arrives any more, begun or not: the source may have counted this receiver, and sent all it
 * had, before this loop has read anything. At once when there is no memory to wait for that. */
void um_rcv_flow_withdrawn(struct um_rcv_flow *flow)
{
    if (flow->leaving != NULL) {
        return;
    }
    flow->leaving = um_calloc(1, sizeof *flow->leaving);
    if (flow->leaving == NULL) {
        end(flow, UM_RCV_FLOW_WITHDRAWN);
        return;
    }
    flow->leaving->flow = flow;
    um_timer_init(&flow->leaving->timer, on_withdrawn_timer);
    um_rcv_withdrawal_begin(&flow->leaving->withdrawal, arrived(flow), um_rcv_session_resumed(&flow->stream));
    look_again(flow, um_loop_now(flow->lane->loop));
}

void um_rcv_flow_keep(struct um_rcv_flow *flow)
{
    if (flow->leaving != NULL) {
        um_timer_cancel(wheel(flow), &flow->leaving->timer);
        um_free(flow->leaving);
        flow->leaving = NULL;
    }
}

/* ---- the session ---- */

/* A single receiver that is called at once, without a look at the clock: what changes from message to message is then
 * written into the template, and nothing else. Stays until the receivers of the topic change or something else uses the
 * template. */
static bool find_direct(struct um_rcv_flow *flow)
{
    lbm_rcv_t *rcv = flow->audience->count == 1 ? flow->audience->receivers[0] : NULL;
    if (rcv == NULL || rcv->indirect || rcv->ctx->opts.receiver_callback_service_time_enabled != 0) {
        return false;
    }
    struct um_msg *msg = template_of(flow);
    msg->pub.type = LBM_MSG_DATA;
    msg->pub.flags = 0;
    msg->pub.hr_timestamp = (lbm_timespec_t){0};
    msg->pub.fragment_info = NULL;
    um_msg_mark(msg, UM_MSG_FRAGMENT, false);
    msg->buf = NULL;
    flow->direct = rcv;
    flow->direct_numbered = !rcv->wants_subscribed_only && rcv->wildcard == NULL && rcv->collector == NULL;
    flow->stream.no_read_end = rcv->collector == NULL;
    return true;
}

static inline bool has_direct(struct um_rcv_flow *flow)
{
    return __builtin_expect(flow->direct != NULL, 1) || find_direct(flow);
}

static inline bool has_only_channel(const struct um_lbmc_msg *msg)
{
    return msg->present == UM_LBMC_HAS_APPHDR_CHAIN && msg->chain_summary.has == UM_CHAIN_HAS_CHANNEL;
}

/* One that looks at no channels. */
static inline bool has_direct_for_channels(struct um_rcv_flow *flow)
{
    return has_direct(flow) && flow->direct_numbered &&
           atomic_load_explicit(&flow->direct->channels, memory_order_relaxed) == NULL;
}

/* There is one: a message in its turn goes to it past the controller's callbacks. False: nothing has happened. */
static inline bool deliver_directly(struct um_rcv_flow *flow, const struct um_lbmc_msg *msg, struct um_buf *buf)
{
    if (!um_dc_take(flow->dc, msg->sqn)) {
        return false;
    }
    struct um_msg *template = flow->msg;
    flow->reading = true;
    template->pub.data = (const char *)msg->payload.ptr;
    template->pub.len = msg->payload.len;
    template->pub.sequence_number = msg->sqn;
    template->pub.source_clientd = flow->clientd;
    template->buf = buf;
    stamp(flow);
    um_msg_mark(template, UM_MSG_DELIVERING, true);
    um_rcv_call(flow->direct, template);
    um_msg_mark(template, UM_MSG_DELIVERING, false);
    if (__builtin_expect(template->replacement != NULL, 0)) {
        um_rcv_template_delivered(&flow->lane->templates, flow);
        flow->direct = NULL;
    }
    return true;
}

/* What another source has brought already is left before anything is made of it: of two sources in step every second
 * message. */
static inline bool leaves_copy(struct um_rcv_flow *flow, const struct um_lbmc_msg *msg)
{
    struct um_lbmc_hf told;
    uint32_t next;
    if (!um_lbmc_get_hf_alone(msg->apphdr_chain, &told) || !um_dc_in_order(flow->dc, &next) || msg->sqn != next ||
        !um_rcv_hf_is_copy(flow, next, &told)) {
        return false;
    }
    um_dc_took(flow->dc, 1);
    return true;
}

static inline void hand_to_controller(struct um_rcv_flow *flow, const struct um_lbmc_msg *msg, struct um_buf *buf,
                                      uint64_t now_ns)
{
    flow->reading = true;
    flow->direct = NULL; /* the template is changed */
    um_dc_on_data(flow->dc, now_ns, msg, buf);
}

/* On its own, so that others do not pay for it. */
static __attribute__((noinline)) void on_less_usual(struct um_rcv_flow *flow, const struct um_lbmc_msg *msg,
                                                    struct um_buf *buf, uint64_t now_ns)
{
    if (msg->present != UM_LBMC_HAS_APPHDR_CHAIN || !leaves_copy(flow, msg)) {
        hand_to_controller(flow, msg, buf, now_ns);
    }
}

static void on_data(struct um_rcv_stream *stream, const struct um_lbmc_msg *msg, struct um_buf *buf, uint64_t now_ns)
{
    struct um_rcv_flow *flow = UM_CONTAINER_OF(stream, struct um_rcv_flow, stream);
    bool usual = msg->present == 0 ? has_direct(flow) : has_only_channel(msg) && has_direct_for_channels(flow);
    if (!usual || !deliver_directly(flow, msg, buf)) {
        on_less_usual(flow, msg, buf, now_ns);
    }
}

static void on_tsni(struct um_rcv_stream *stream, uint32_t last_sqn, uint64_t now_ns)
{
    um_dc_on_tsni(UM_CONTAINER_OF(stream, struct um_rcv_flow, stream)->dc, now_ns, last_sqn);
}

/* What was held may be delivered now. */
static void on_progress(struct um_rcv_stream *stream, uint64_t now_ns)
{
    struct um_rcv_flow *flow = UM_CONTAINER_OF(stream, struct um_rcv_flow, stream);
    flow->reading = true;
    flow->direct = NULL;
    um_dc_on_progress(flow->dc, now_ns);
}

static const struct um_rcv_stream_events STREAM_EVENTS;

/* A late advertisement may name a source that is gone, at an address that another one has taken since. A session over
 * TCP or LBT-RU that was opened for it begins all the same, but tells nothing of its topic; a source that is there does
 * so at once, and is ready from then on. */
static void become_ready(struct um_rcv_flow *flow)
{
    if (flow->bos_seen && (flow->proved || !flow->opens_session)) {
        set_ready(flow, true);
    }
}

/* An advertisement can name a genuine session; what comes on it under this topic index is more than that. */
static void prove(struct um_rcv_flow *flow)
{
    flow->proved = true;
    become_ready(flow);
    flow->stream.events = &STREAM_EVENTS;
    if (flow->mail != NULL) {
        um_rcv_mail_tell(flow->mail, UM_RCV_NEWS_PROOF, UM_RCV_FLOW_LOST);
    } else {
        um_rcv_source_on_proof(um_rcv_source_of(flow));
    }
}

static void on_first_data(struct um_rcv_stream *stream, const struct um_lbmc_msg *msg, struct um_buf *buf,
                          uint64_t now_ns)
{
    prove(UM_CONTAINER_OF(stream, struct um_rcv_flow, stream));
    on_data(stream, msg, buf, now_ns);
}

static void on_first_tsni(struct um_rcv_stream *stream, uint32_t last_sqn, uint64_t now_ns)
{
    prove(UM_CONTAINER_OF(stream, struct um_rcv_flow, stream));
    on_tsni(stream, last_sqn, now_ns);
}

static int created(void *arg)
{
    struct um_rcv_flow *flow = arg;
    const lbm_rcv_src_notification_func_t *func = &flow->opts->source_notification_function;
    char source[UM_SOURCE_STRING_MAX];
    flow->clientd = func->create_func(um_rcv_flow_source(flow, source), func->clientd);
    return 0;
}

/* On the context's loop, and before BOS. When that loop waits for this one, nobody else runs there. */
static void notify_created(struct um_rcv_flow *flow)
{
    if (flow->opts->source_notification_function.create_func != NULL &&
        um_loop_call(flow->lane->ctx->loop, created, flow) != 0) {
        created(flow);
    }
}

static void on_bos(struct um_rcv_stream *stream)
{
    struct um_rcv_flow *flow = UM_CONTAINER_OF(stream, struct um_rcv_flow, stream);
    if (flow->bos_seen) {
        return;
    }
    if (flow->mail != NULL) {
        um_rcv_mail_tell(flow->mail, UM_RCV_NEWS_BOS, UM_RCV_FLOW_LOST);
    } else {
        um_rcv_source_on_bos(um_rcv_source_of(flow));
    }
    notify_created(flow);
    deliver_event(flow, LBM_MSG_BOS, 0);
    flow->bos_seen = true;
    become_ready(flow);
}

void um_rcv_flow_recovery_begins(struct um_rcv_flow *flow, bool heard)
{
    if (heard) {
        on_bos(&flow->stream); /* its session may be silent */
    }
    if (heard && !flow->proved) {
        prove(flow);
    }
    flow->recovering = true;
    flow->reading = true;
    flow->direct = NULL; /* the template may be changed */
}

void um_rcv_flow_recovery_ends(struct um_rcv_flow *flow)
{
    flow->recovering = false;
    if (flow->reading && flow->audience != NULL) {
        read_over(flow);
    }
}

static void on_eos(struct um_rcv_stream *stream)
{
    end(UM_CONTAINER_OF(stream, struct um_rcv_flow, stream), UM_RCV_FLOW_LOST);
}

static void on_read_end(struct um_rcv_stream *stream, uint64_t now_ns)
{
    read_over(UM_CONTAINER_OF(stream, struct um_rcv_flow, stream));
}

static void not_zero(const lbm_msg_t *msg)
{
    um_rcv_log_refusal(UM_CONTAINER_OF(msg, struct um_msg, pub));
}

static bool direct(struct um_rcv_stream *stream, uint64_t wall_ns, struct um_rcv_direct *out)
{
    struct um_rcv_flow *flow = UM_CONTAINER_OF(stream, struct um_rcv_flow, stream);
    if ((flow->direct == NULL && !find_direct(flow)) || !um_dc_in_order(flow->dc, &out->next)) {
        stream->no_read_end = false;
        return false;
    }
    struct um_msg *msg = flow->msg;
    lbm_rcv_t *rcv = flow->direct;
    if (wall_ns != msg->wall_ns) {
        set_time(msg, wall_ns);
    }
    flow->reading = !stream->no_read_end;
    msg->pub.source_clientd = flow->clientd;
    um_msg_mark(msg, UM_MSG_DELIVERING, true);
    out->msg = &msg->pub;
    out->proc = rcv->proc;
    out->rcv = rcv;
    out->clientd = rcv->clientd;
    out->kept = &msg->replacement;
    out->not_zero = not_zero;
    return true;
}

static void direct_end(struct um_rcv_stream *stream, unsigned count)
{
    struct um_rcv_flow *flow = UM_CONTAINER_OF(stream, struct um_rcv_flow, stream);
    struct um_msg *msg = flow->msg;
    um_msg_mark(msg, UM_MSG_DELIVERING, false);
    um_dc_took(flow->dc, count);
    if (__builtin_expect(msg->replacement != NULL, 0)) {
        um_rcv_template_delivered(&flow->lane->templates, flow);
        flow->direct = NULL;
    }
}

static const struct um_rcv_stream_events STREAM_EVENTS = {.on_data = on_data,
                                                          .on_tsni = on_tsni,
                                                          .on_bos = on_bos,
                                                          .on_eos = on_eos,
                                                          .on_read_end = on_read_end,
                                                          .on_progress = on_progress,
                                                          .direct = direct,
                                                          .direct_end = direct_end};
/* Until something of it comes: then it has more to say. */
static const struct um_rcv_stream_events FIRST_EVENTS = {
    .on_data = on_first_data, .on_tsni = on_first_tsni, .on_bos = on_bos, .on_eos = on_eos, .on_read_end = on_read_end};

void um_rcv_flow_make_way(struct um_rcv_flow *flow)
{
    if (!flow->proved) {
        end(flow, UM_RCV_FLOW_MADE_WAY);
    }
}

/* ---- receivers that come and go ---- */

static void greet(lbm_rcv_t *rcv, void *arg)
{
    struct um_rcv_flow *flow = arg;
    struct um_dc_stats counts = um_dc_stats(flow->dc);
    um_rcv_count(rcv, &counts, UM_RCV_COUNT_FROM);
    if (flow->bos_seen) {
        um_rcv_deliver_event(rcv, LBM_MSG_BOS, um_rcv_source_of(flow)->topic->base.name, flow);
    }
    atomic_fetch_add(&rcv->ready, flow->ready ? 1 : 0);
    um_rcv_ready_changed();
}

void um_rcv_flow_set_audience(struct um_rcv_flow *flow, struct um_rcv_audience *audience)
{
    struct um_rcv_audience *before = flow->audience;
    if (before == NULL) {
        um_rcv_audience_unref(audience); /* it is over */
        return;
    }
    flow->direct = NULL;
    flow->audience = audience;
    um_rcv_audience_changes(before, audience, count_out, greet, flow);
    um_rcv_audience_unref(before);
}

/* ---- the beginning ---- */

static struct um_dc_config dc_config(const struct um_rcv_topic *topic, const lbm_transport_source_info_t *info)
{
    const struct um_receiver_options *opts = topic->opts;
    size_t entries = topic->base.ctx->opts.delivery_control_maximum_total_map_entries;
    struct um_dc_config config = {
        .ordered_delivery = opts->ordered_delivery,
        .maximum_burst_loss = opts->delivery_control_maximum_burst_loss,
        .loss_check_interval_ns = um_ms_ns(opts->delivery_control_loss_check_interval),
        .map_entries_max = entries > UINT32_MAX ? UINT32_MAX : (uint32_t)entries,
        .reassembly_size_max = opts->um_reassembly_maximum_size,
        .gap_timeout_ns = um_rcv_transport_gap_timeout_ns(info->type, opts),
    };
    return config;
}

const char *um_rcv_flow_source(const struct um_rcv_flow *flow, char *out)
{
    lbm_transport_source_info_t info = um_rcv_source_of(flow)->joining.offer.info;
    if (!flow->lane->ctx->opts.source_includes_topic_index) {
        info.topic_idx = 0;
    }
    if (um_source_string_format(&info, out, UM_SOURCE_STRING_MAX) < 0) {
        out[0] = '\0';
    }
    return out;
}

int um_rcv_flow_init(struct um_rcv_flow *flow, struct um_rcv_source *source, struct um_rcv_lane *lane, bool again,
                     const struct um_tr_source *facts)
{
    static atomic_ullong last_id;
    struct um_rcv_topic *topic = source->topic;
    flow->id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
    flow->opts = topic->opts;
    flow->lane = lane;
    um_list_init(&flow->held_node);
    um_list_init(&flow->lane_node);
    um_list_init(&flow->hf_places);
    flow->stream.events = &FIRST_EVENTS; /* STREAM_EVENTS from the first sign of it: nothing to look at later */
    flow->stream.tidx = source->joining.offer.info.topic_idx;
    flow->stream.again = again;
    um_timer_init(&flow->loss_timer, on_loss_timer);
    struct um_dc_config config = dc_config(topic, &source->joining.offer.info);
    char text[UM_SOURCE_STRING_MAX];
    if (um_source_string_format(&source->joining.offer.info, text, sizeof text) < 0 ||
        um_rcv_recovery_create(flow, facts, &flow->recovery) != 0) {
        return -1;
    }
    if (flow->recovery != NULL) {
        um_rcv_recovery_dc_config(flow->recovery, &config);
    } else if (lane == &lane->ctx->rcv_lane && um_rcv_hf_only(topic)) {
        config.ordered_delivery = -1; /* what waits for a repair here, another source may bring: the merge orders */
    }
    flow->dc = um_dc_create(&config, flow->recovery != NULL ? &RECOVERING_DC_OPS : &DC_OPS, flow);
    if (flow->dc == NULL) {
        um_rcv_recovery_destroy(flow->recovery);
        return um_error_nomem("delivery controller", sizeof config);
    }
    um_options_hold(flow->opts);
    return 0;
}

void um_rcv_flow_fini(struct um_rcv_flow *flow)
{
    um_rcv_recovery_destroy(flow->recovery);
    um_dc_destroy(flow->dc);
    um_options_drop(flow->opts);
}

int um_rcv_flow_begin(struct um_rcv_flow *flow, struct um_rcv_audience *audience)
{
    enum um_rcv_join_kind kind =
        um_rcv_sessions_join_kind(flow->lane->sessions, &um_rcv_source_of(flow)->joining.offer.info);
    flow->opens_session = kind == UM_RCV_JOIN_ASKS;
    if (!um_rcv_templates_ready(&flow->lane->templates)) {
        um_rcv_audience_unref(audience);
        return um_error_nomem("message", sizeof *flow->msg);
    }
    if ((flow->recovery != NULL && um_rcv_recovery_begin(flow->recovery) != 0) ||
        um_rcv_sessions_join(flow->lane->sessions, &um_rcv_source_of(flow)->joining.offer.info, flow->opts,
                             &flow->stream) != 0) {
        um_rcv_recovery_end(flow->recovery);
        um_rcv_audience_unref(audience);
        return -1;
    }
    flow->audience = audience;
    um_list_push_back(&flow->lane->flows, &flow->lane_node);
    return 0;
}
