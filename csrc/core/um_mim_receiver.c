/* The receiving side of multicast immediate messages. See um_mim_receiver.h. */
#include "core/um_mim_receiver.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "core/um_immediate.h"
#include "core/um_mim_sender.h"
#include "delivery/um_mim_flow.h"
#include "wire/um_source_string.h"

/* A session of which so many intervals of session messages told nothing was not there before. */
#define START_INTERVALS 3u

struct um_mim_receiver {
    lbm_context_t *ctx;
    struct um_rcv_listener listener;
    bool listening;
    uint64_t since_ns;               /* when that began */
    struct um_receiver_options opts; /* of the sessions */
    struct um_mim_flow_config flow_config;
    struct um_list unproved, proved; /* struct sender: the one to go first is the first */
    unsigned unproved_count, proved_count;
    uint64_t second_ns; /* when the present second of new senders began ... */
    unsigned fresh;     /* ... and how many it has brought */
    struct um_mim_receiver_counts counts;
    struct um_timer look_timer; /* armed while there are senders */
};

struct sender {
    struct um_mim_receiver *receiver;
    struct um_list node; /* receiver's unproved or proved */
    struct um_rcv_stream stream;
    struct um_mim_flow flow;
    struct um_timer loss_timer;
    uint32_t ip; /* network order */
    bool proved; /* a message came */
    char source[UM_SOURCE_STRING_MAX];
};

static struct um_timer_wheel *wheel(const struct um_mim_receiver *receiver)
{
    return um_loop_wheel(receiver->ctx->loop);
}

/* ---- deliveries ---- */

static void on_dc_deliver(void *user, const struct um_dc_delivery *d, uint64_t now_ns)
{
    const struct sender *sender = user;
    const struct um_lbmc_msg *msg = d->msg;
    const lbm_msg_fragment_info_t fragment = {
        .start_sequence_number = d->first_sqn, .offset = d->frag_offset, .total_message_length = d->frag_total};
    bool topic = (msg->present & UM_LBMC_HAS_TOPICNAME) != 0;
    const struct um_immediate immediate = {
        .source = sender->source,
        .topic = topic ? msg->topic_name.ptr : NULL,
        .topic_len = topic ? msg->topic_name.len : 0,
        .data = d->data,
        .len = d->len,
        .buf = d->buf,
        .sqn = d->sqn,
        .fragment = d->fragmented ? &fragment : NULL,
        .is_fragment = d->fragment,
        .request = (msg->present & UM_LBMC_HAS_REQUEST) != 0 ? msg : NULL,
        .from_ip = sender->ip,
    };
    um_immediate_deliver(sender->receiver->ctx->immediates, &immediate);
}

static void tell_loss(const struct sender *sender, uint32_t sqn)
{
    const lbm_mim_unrecloss_func_t *function = &sender->receiver->ctx->opts.mim_unrecoverable_loss_function;
    if (function->func != NULL) {
        function->func(sender->source, sqn, function->clientd);
    }
}

static void log_loss(const struct sender *sender, uint32_t sqn, uint32_t count, uint64_t now_ns)
{
    lbm_context_t *ctx = sender->receiver->ctx;
    atomic_fetch_add_explicit(&ctx->counters.fragments_unrecoverably_lost, count, memory_order_relaxed);
    um_log_limited(um_log_of(sender->source), now_ns, UM_LOG_WARNING, "Core-20223-3",
                   "immediate messages from %s: %u from sequence number %u on are lost for good", sender->source, count,
                   sqn);
}

/* Whoever takes immediate messages here. */
static void tell_immediates(const struct sender *sender, uint32_t sqn, uint32_t count, bool burst)
{
    um_immediate_lost(sender->receiver->ctx->immediates, sender->source, sqn, count, burst);
}

static void on_dc_loss(void *user, uint32_t sqn, uint64_t now_ns)
{
    log_loss(user, sqn, 1, now_ns);
    tell_loss(user, sqn);
    tell_immediates(user, sqn, 1, false);
}

/* The callback has no count: it is told once, with the first number. */
static void on_dc_burst_loss(void *user, uint32_t first_sqn, uint32_t count, uint64_t now_ns)
{
    log_loss(user, first_sqn, count, now_ns);
    tell_loss(user, first_sqn);
    tell_immediates(user, first_sqn, count, true);
}

static void on_dc_missing(void *user, uint32_t first_sqn, uint32_t count, uint64_t now_ns)
{
    const struct sender *sender = user;
    atomic_fetch_add_explicit(&sender->receiver->ctx->counters.fragments_lost, count, memory_order_relaxed);
}

static void on_dc_set_timer(void *user, uint64_t due_ns)
{
    struct sender *sender = user;
    if (due_ns == UM_NEVER) {
        um_timer_cancel(wheel(sender->receiver), &sender->loss_timer);
    } else {
        um_timer_arm(wheel(sender->receiver), &sender->loss_timer, due_ns);
    }
}

static void on_dc_discarded(void *user, enum um_dc_discard why, uint32_t sqn, uint64_t now_ns)
{
    const struct sender *sender = user;
    um_log_limited(um_log_of(sender->source), now_ns, UM_LOG_INFO, "Core-20223-4",
                   "immediate message %u from %s discarded: it came too late or in pieces that do not fit, or there "
                   "was no memory for it (reason %d)",
                   sqn, sender->source, (int)why);
}

static uint32_t on_dc_position(void *user)
{
    return um_rcv_stream_position(&((const struct sender *)user)->stream);
}

static bool on_dc_complete_before(void *user, uint32_t position)
{
    return um_rcv_stream_complete_before(&((const struct sender *)user)->stream, position);
}

static void on_dc_opening(void *user, bool on)
{
    um_rcv_stream_watch(&((struct sender *)user)->stream, on);
}

static const struct um_dc_ops dc_ops = {.deliver = on_dc_deliver,
                                        .loss = on_dc_loss,
                                        .burst_loss = on_dc_burst_loss,
                                        .set_timer = on_dc_set_timer,
                                        .missing = on_dc_missing,
                                        .discarded = on_dc_discarded,
                                        .position = on_dc_position,
                                        .complete_before = on_dc_complete_before,
                                        .opening = on_dc_opening};

static void on_loss_timer(struct um_timer *timer, uint64_t now_ns)
{
    um_mim_flow_on_timer(&UM_CONTAINER_OF(timer, struct sender, loss_timer)->flow, now_ns);
}

/* ---- senders that go ---- */

static struct sender *sender_at(struct um_list *node)
{
    return UM_CONTAINER_OF(node, struct sender, node);
}

static void unlink_sender(struct sender *sender)
{
    struct um_mim_receiver *receiver = sender->receiver;
    um_list_remove(&sender->node);
    if (sender->proved) {
        receiver->proved_count--;
    } else {
        receiver->unproved_count--;
    }
    if (receiver->proved_count + receiver->unproved_count == 0) {
        um_timer_cancel(wheel(receiver), &receiver->look_timer);
    }
}

/* Its session is left already, or not. With `tell` the application hears of what is missing. */
static void forget(struct sender *sender, bool tell)
{
    struct um_mim_receiver *receiver = sender->receiver;
    unlink_sender(sender);
    um_rcv_stream_leave(&sender->stream);
    um_mim_flow_end(&sender->flow, um_loop_now(receiver->ctx->loop), tell);
    receiver->counts.duplicates += sender->flow.counts.duplicates;
    um_timer_cancel(wheel(receiver), &sender->loss_timer);
    um_free(sender);
}

static void replace(struct sender *victim, uint64_t now_ns)
{
    struct um_mim_receiver *receiver = victim->receiver;
    receiver->counts.replaced++;
    um_log_limited(um_log_of_all(), now_ns, UM_LOG_WARNING, "Core-20223-5",
                   "immediate messages: too many senders: %s makes way, as %llu before (at most %u, of one address %u, "
                   "%u that have sent nothing)",
                   victim->source, (unsigned long long)receiver->counts.replaced - 1, UM_MIM_SENDERS_MAX,
                   UM_MIM_PER_ADDRESS_MAX, UM_MIM_UNPROVED_MAX);
    forget(victim, true);
}

/* ---- the session of a sender ---- */

static void on_data(struct um_rcv_stream *stream, const struct um_lbmc_msg *msg, struct um_buf *buf, uint64_t now_ns);

static void on_tsni(struct um_rcv_stream *stream, uint32_t last_sqn, uint64_t now_ns)
{
}

static void on_bos(struct um_rcv_stream *stream)
{
}

static void on_eos(struct um_rcv_stream *stream)
{
    struct sender *sender = UM_CONTAINER_OF(stream, struct sender, stream);
    sender->receiver->counts.ended++;
    forget(sender, true);
}

static void on_progress(struct um_rcv_stream *stream, uint64_t now_ns)
{
    um_mim_flow_on_progress(&UM_CONTAINER_OF(stream, struct sender, stream)->flow, now_ns);
}

static const struct um_rcv_stream_events stream_events = {
    .on_data = on_data, .on_tsni = on_tsni, .on_bos = on_bos, .on_eos = on_eos, .on_progress = on_progress};

/* Its first message: among those that are worth more. */
static void prove(struct sender *sender, uint64_t now_ns)
{
    struct um_mim_receiver *receiver = sender->receiver;
    if (receiver->proved_count >= UM_MIM_SENDERS_MAX) {
        replace(sender_at(receiver->proved.next), now_ns);
    }
    um_list_remove(&sender->node);
    receiver->unproved_count--;
    sender->proved = true;
    receiver->proved_count++;
    um_list_push_back(&receiver->proved, &sender->node);
}

static void on_data(struct um_rcv_stream *stream, const struct um_lbmc_msg *msg, struct um_buf *buf, uint64_t now_ns)
{
    struct sender *sender = UM_CONTAINER_OF(stream, struct sender, stream);
    struct um_mim_receiver *receiver = sender->receiver;
    if ((msg->present & UM_LBMC_HAS_CTXINST) == 0) {
        receiver->counts.foreign++;
        return;
    }
    if (!sender->proved) {
        prove(sender, now_ns);
    } else if (receiver->proved.prev != &sender->node) {
        um_list_remove(&sender->node);
        um_list_push_back(&receiver->proved, &sender->node);
    }
    um_mim_flow_on_data(&sender->flow, now_ns, msg, buf);
}

/* ---- senders that come ---- */

/* Of the address, the one to go first; and how many it has. */
static struct sender *first_of(struct um_mim_receiver *receiver, uint32_t ip, unsigned *count)
{
    struct um_list *const lists[] = {&receiver->unproved, &receiver->proved};
    struct sender *first = NULL;
    struct um_list *node;
    *count = 0;
    for (int i = 0; i < 2; i++) {
        UM_LIST_FOREACH(node, lists[i])
        {
            struct sender *sender = sender_at(node);
            if (sender->ip == ip) {
                first = first != NULL ? first : sender;
                (*count)++;
            }
        }
    }
    return first;
}

static void make_room(struct um_mim_receiver *receiver, uint32_t ip, uint64_t now_ns)
{
    unsigned count;
    struct sender *of_address = first_of(receiver, ip, &count);
    if (count >= UM_MIM_PER_ADDRESS_MAX) {
        replace(of_address, now_ns);
    } else if (receiver->unproved_count >= UM_MIM_UNPROVED_MAX) {
        replace(sender_at(receiver->unproved.next), now_ns);
    }
}

static bool within_rate(struct um_mim_receiver *receiver, uint64_t now_ns)
{
    if (now_ns - receiver->second_ns >= UM_NS_PER_SEC) {
        receiver->second_ns = now_ns;
        receiver->fresh = 0;
    }
    return receiver->fresh++ < UM_MIM_NEW_PER_SECOND;
}

static void arm_look(struct um_mim_receiver *receiver, uint64_t now_ns)
{
    uint64_t interval_ns = um_ms_ns(receiver->ctx->opts.mim_delivery_control_activity_check_interval);
    um_timer_arm(wheel(receiver), &receiver->look_timer, now_ns + (interval_ns > 0 ? interval_ns : UM_NS_PER_MS));
}

static void on_look_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_mim_receiver *receiver = UM_CONTAINER_OF(timer, struct um_mim_receiver, look_timer);
    struct um_list *node;
    UM_LIST_FOREACH(node, &receiver->proved)
    {
        um_mim_flow_look(&sender_at(node)->flow, now_ns);
    }
    arm_look(receiver, now_ns);
}

/* Has the context listened for long enough to have heard of every session that was there before? */
static bool began_meanwhile(const struct um_mim_receiver *receiver, uint64_t now_ns)
{
    return now_ns - receiver->since_ns >= START_INTERVALS * um_ms_ns(receiver->ctx->opts.mim_sm_maximum_interval);
}

static int join(struct um_mim_receiver *receiver, const lbm_transport_source_info_t *info, uint64_t now_ns)
{
    struct sender *sender = um_calloc(1, sizeof *sender);
    if (sender == NULL) {
        return um_error_nomem("sender of immediate messages", sizeof *sender);
    }
    sender->receiver = receiver;
    sender->ip = info->src_ip;
    sender->stream.events = &stream_events;
    sender->stream.immediate = true;
    sender->stream.from_start = began_meanwhile(receiver, now_ns);
    um_timer_init(&sender->loss_timer, on_loss_timer);
    um_mim_flow_init(&sender->flow, &receiver->flow_config, &dc_ops, sender);
    if (sender->stream.from_start) {
        um_mim_flow_from_start(&sender->flow);
    }
    if (um_source_string_format(info, sender->source, sizeof sender->source) < 0 ||
        um_rcv_sessions_join(receiver->ctx->rcv_sessions, info, &receiver->opts, &sender->stream) != 0) {
        um_free(sender);
        return -1;
    }
    um_list_push_back(&receiver->unproved, &sender->node);
    if (receiver->proved_count + receiver->unproved_count++ == 0) {
        arm_look(receiver, now_ns);
    }
    return 0;
}

static void on_stranger(struct um_rcv_listener *listener, const lbm_transport_source_info_t *info, uint64_t now_ns)
{
    struct um_mim_receiver *receiver = UM_CONTAINER_OF(listener, struct um_mim_receiver, listener);
    bool allowed = within_rate(receiver, now_ns);
    if (allowed) {
        make_room(receiver, info->src_ip, now_ns);
    }
    if (!allowed || join(receiver, info, now_ns) != 0) {
        receiver->counts.refused++;
        um_log_limited(um_log_of_ip(info->src_ip), now_ns, UM_LOG_WARNING, "Core-20223-6",
                       "immediate messages: %llu datagrams of new senders ignored so far: %s",
                       (unsigned long long)receiver->counts.refused,
                       allowed ? um_errmsg() : "more senders in a second than are believed");
    }
}

/* ---- creation and deletion ---- */

static int resolve_options(struct um_mim_receiver *receiver)
{
    const struct um_context_options *ctx_opts = &receiver->ctx->opts;
    struct um_receiver_options *opts = &receiver->opts;
    if (um_receiver_options_resolve(NULL, ctx_opts->context_name, ctx_opts->um_profile, "", opts) != 0) {
        return -1;
    }
    opts->transport_lbtrm_activity_timeout = ctx_opts->mim_activity_timeout;
    opts->transport_lbtrm_preactivity_timeout = 0;
    opts->transport_lbtrm_send_naks = ctx_opts->mim_send_naks;
    opts->transport_lbtrm_nak_initial_backoff_interval = ctx_opts->mim_nak_initial_backoff_interval;
    opts->transport_lbtrm_nak_backoff_interval = ctx_opts->mim_nak_backoff_interval;
    opts->transport_lbtrm_nak_suppress_interval = ctx_opts->mim_nak_suppress_interval;
    opts->transport_lbtrm_nak_generation_interval = ctx_opts->mim_nak_generation_interval;
    opts->um_transport_lbtrm_nak_initial_backoff_interval_us = 0;
    opts->um_transport_lbtrm_nak_backoff_interval_us = 0;
    opts->um_transport_lbtrm_nak_suppress_interval_us = 0;
    opts->um_transport_lbtrm_nak_generation_interval_us = 0;
    return 0;
}

static void fill_flow_config(struct um_mim_receiver *receiver)
{
    const struct um_context_options *ctx_opts = &receiver->ctx->opts;
    size_t entries = ctx_opts->delivery_control_maximum_total_map_entries;
    receiver->flow_config = (struct um_mim_flow_config){
        .dc = {.ordered_delivery = ctx_opts->mim_ordered_delivery,
               .maximum_burst_loss = receiver->opts.delivery_control_maximum_burst_loss,
               .loss_check_interval_ns = um_ms_ns(ctx_opts->mim_delivery_control_loss_check_interval),
               .map_entries_max = entries > UINT32_MAX ? UINT32_MAX : (uint32_t)entries,
               .reassembly_size_max = UM_MIM_MESSAGE_MAX,
               .gap_timeout_ns = um_rcv_transport_gap_timeout_ns(LBM_TRANSPORT_TYPE_LBTRM, &receiver->opts)},
        .window_size = ctx_opts->mim_sqn_window_size,
        .window_step = ctx_opts->mim_sqn_window_increment,
        .idle_ns = um_ms_ns(ctx_opts->mim_delivery_control_activity_timeout),
    };
}

static int listen_to_group(struct um_mim_receiver *receiver)
{
    const struct um_context_options *opts = &receiver->ctx->opts;
    if (um_rcv_sessions_listen(receiver->ctx->rcv_sessions, opts->mim_incoming_address.s_addr,
                               ntohs(opts->mim_incoming_destination_port), &receiver->listener) != 0) {
        return -1;
    }
    receiver->listening = true;
    receiver->since_ns = um_loop_now(receiver->ctx->loop);
    return 0;
}

int um_mim_receiver_create(lbm_context_t *ctx, struct um_mim_receiver **out)
{
    *out = NULL;
    if (ctx->opts.mim_incoming_address.s_addr == INADDR_ANY) {
        return 0;
    }
    if (!um_stream_settings_plain(&ctx->filters.settings)) {
        um_log(UM_LOG_WARNING, "Core-9600-01",
               "Setting mim_address on a security/compression context is not supported. Disabling MIM. (%s is set)",
               ctx->filters.settings.encryption ? "use_tls" : "compression");
        return 0;
    }
    struct um_mim_receiver *receiver = um_calloc(1, sizeof *receiver);
    if (receiver == NULL) {
        return um_error_nomem("receiver of multicast immediate messages", sizeof *receiver);
    }
    receiver->ctx = ctx;
    receiver->listener.on_stranger = on_stranger;
    um_list_init(&receiver->unproved);
    um_list_init(&receiver->proved);
    um_timer_init(&receiver->look_timer, on_look_timer);
    if (resolve_options(receiver) != 0) {
        um_free(receiver);
        return -1;
    }
    fill_flow_config(receiver);
    if (listen_to_group(receiver) != 0) {
        um_mim_receiver_destroy(receiver);
        return -1;
    }
    *out = receiver;
    return 0;
}

void um_mim_receiver_destroy(struct um_mim_receiver *receiver)
{
    struct um_list *node;
    if (receiver == NULL) {
        return;
    }
    while ((node = um_list_first(&receiver->unproved)) != NULL || (node = um_list_first(&receiver->proved)) != NULL) {
        forget(sender_at(node), false);
    }
    if (receiver->listening) {
        const struct um_context_options *opts = &receiver->ctx->opts;
        um_rcv_sessions_unlisten(receiver->ctx->rcv_sessions, opts->mim_incoming_address.s_addr,
                                 ntohs(opts->mim_incoming_destination_port), &receiver->listener);
    }
    um_timer_cancel(wheel(receiver), &receiver->look_timer);
    um_options_clear(UM_SCOPE_RECEIVER, &receiver->opts);
    um_free(receiver);
}

void um_mim_receiver_counts(const struct um_mim_receiver *receiver, struct um_mim_receiver_counts *out)
{
    struct um_list *node;
    *out = receiver->counts;
    out->senders = receiver->proved_count;
    out->unproved = receiver->unproved_count;
    UM_LIST_FOREACH(node, &receiver->proved)
    {
        out->duplicates += sender_at(node)->flow.counts.duplicates;
    }
}
