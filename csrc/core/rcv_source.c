/* One topic of one source as its receivers see it: joins the transport session,
 * feeds the delivery controller and turns its output into messages. Runs on the
 * loop of the context. The in-order path writes only the fields of the template
 * that change and calls the receivers. */
#include <string.h>

#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "core/um_rcv_private.h"
#include "transport/smx/um_smx_ring.h"
#include "wire/um_source_string.h"

#define DISCARD_LOG_INTERVAL_NS (10 * UM_NS_PER_SEC)

/* A final advertisement overtakes messages still in the connection. The source ends when none came for this long. */
#define WITHDRAWN_QUIET_NS (250 * UM_NS_PER_MS)

static lbm_context_t *context_of(const struct um_rcv_source *source)
{
    return source->topic->base.ctx;
}

bool um_rcv_same_source(const lbm_transport_source_info_t *a, const lbm_transport_source_info_t *b)
{
    return a->type == b->type && a->src_ip == b->src_ip && a->src_port == b->src_port &&
           a->session_id == b->session_id && a->topic_idx == b->topic_idx && a->mc_group == b->mc_group &&
           a->dest_port == b->dest_port && a->transport_id == b->transport_id;
}

struct um_rcv_source *um_rcv_source_find(struct um_rcv_topic *topic, const lbm_transport_source_info_t *info)
{
    struct um_list *node;
    UM_LIST_FOREACH(node, &topic->sources)
    {
        struct um_rcv_source *source = UM_CONTAINER_OF(node, struct um_rcv_source, node);
        if (um_rcv_same_source(&source->info, info)) {
            return source;
        }
    }
    return NULL;
}

/* ---- deliveries ---- */

static void deliver_template(struct um_rcv_source *source)
{
    struct um_msg *msg = source->msg;
    struct um_list *node;
    msg->delivering = true;
    UM_LIST_FOREACH(node, &source->topic->receivers)
    {
        um_rcv_deliver(UM_CONTAINER_OF(node, lbm_rcv_t, topic_node), msg);
    }
    msg->delivering = false;
    source->msg = um_msg_template_next(msg);
    if (source->msg != msg) {
        source->wall_ns = 0; /* the new template has no time yet */
    }
}

static void set_time(struct um_rcv_source *source, uint64_t wall_ns)
{
    source->wall_ns = wall_ns;
    source->msg->pub.tsp.tv_sec = (long)(wall_ns / UM_NS_PER_SEC);
    source->msg->pub.tsp.tv_usec = (long)(wall_ns % UM_NS_PER_SEC / 1000);
}

static void stamp(struct um_rcv_source *source)
{
    uint64_t wall_ns = um_loop_wall_now(context_of(source)->loop);
    if (wall_ns != source->wall_ns) {
        set_time(source, wall_ns);
    }
}

static void deliver_event(struct um_rcv_source *source, int type, uint32_t sqn)
{
    struct um_msg *msg = source->msg;
    source->direct = NULL; /* the template is changed */
    msg->pub.type = type;
    msg->pub.flags = 0;
    msg->pub.data = NULL;
    msg->pub.len = 0;
    msg->pub.sequence_number = sqn;
    msg->pub.source_clientd = source->clientd;
    msg->pub.fragment_info = NULL;
    msg->pub.hr_timestamp = (lbm_timespec_t){0};
    msg->is_fragment = false;
    msg->buf = NULL;
    stamp(source);
    deliver_template(source);
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

static void note_request(struct um_rcv_source *source)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&told)) {
        um_log(UM_LOG_WARNING, "Core-20202-1",
               "topic [%s]: a request arrived; responses are not implemented in this version, so msg->response is NULL",
               source->topic->base.name);
    }
}

static void on_dc_deliver(void *user, const struct um_dc_delivery *d, uint64_t now_ns)
{
    struct um_rcv_source *source = user;
    struct um_msg *msg = source->msg;
    msg->pub.type = LBM_MSG_DATA;
    if (__builtin_expect((d->msg->present & UM_LBMC_HAS_REQUEST) != 0, 0)) {
        msg->pub.type = LBM_MSG_REQUEST;
        note_request(source);
    }
    msg->pub.flags = flags_of(d->batch_flags);
    msg->pub.data = (const char *)d->data;
    msg->pub.len = d->len;
    msg->pub.sequence_number = d->sqn;
    msg->pub.source_clientd = source->clientd;
    msg->pub.hr_timestamp = arrival_of(d->msg);
    msg->buf = d->buf;
    msg->is_fragment = d->fragment;
    msg->pub.fragment_info = NULL;
    if (__builtin_expect(d->fragmented, 0)) {
        msg->frag.start_sequence_number = d->first_sqn;
        msg->frag.offset = d->frag_offset;
        msg->frag.total_message_length = d->frag_total;
        msg->pub.fragment_info = &msg->frag;
    }
    stamp(source);
    deliver_template(source);
}

static void on_dc_missing(void *user, uint32_t first_sqn, uint32_t count, uint64_t now_ns)
{
    struct um_rcv_source *source = user;
    atomic_fetch_add_explicit(&context_of(source)->counters.fragments_lost, count, memory_order_relaxed);
}

static void on_dc_loss(void *user, uint32_t sqn, uint64_t now_ns)
{
    struct um_rcv_source *source = user;
    atomic_fetch_add_explicit(&context_of(source)->counters.fragments_unrecoverably_lost, 1, memory_order_relaxed);
    deliver_event(source, LBM_MSG_UNRECOVERABLE_LOSS, sqn);
}

static void on_dc_burst_loss(void *user, uint32_t first_sqn, uint32_t count, uint64_t now_ns)
{
    struct um_rcv_source *source = user;
    atomic_fetch_add_explicit(&context_of(source)->counters.fragments_unrecoverably_lost, count, memory_order_relaxed);
    deliver_event(source, LBM_MSG_UNRECOVERABLE_LOSS_BURST, first_sqn);
}

static void on_dc_set_timer(void *user, uint64_t due_ns)
{
    struct um_rcv_source *source = user;
    if (due_ns == UM_NEVER) {
        um_timer_cancel(um_rcv_wheel(source->topic), &source->loss_timer);
    } else {
        um_timer_arm(um_rcv_wheel(source->topic), &source->loss_timer, due_ns);
    }
}

static void on_dc_discarded(void *user, enum um_dc_discard why, uint32_t sqn, uint64_t now_ns)
{
    static const char *const reasons[UM_DC_DISCARD_COUNT] = {
        [UM_DC_DUPLICATE] = "arrived a second time",
        [UM_DC_LATE] = "arrived after it had been reported as lost",
        [UM_DC_MALFORMED] = "does not fit its own fragment header, or is a sequence number out of reach",
        [UM_DC_HEADLESS] = "is a fragment of a message whose beginning was not received",
        [UM_DC_REASSEMBLY] = "is part of a message beyond the bounds of reassembly (um_reassembly_maximum_size)",
        [UM_DC_NO_ROOM] = "found no memory to be held",
        [UM_DC_UNFINISHED] = "waited for something missing when the source went away",
    };
    struct um_rcv_source *source = user;
    um_log_limited(&source->discard_log, now_ns, DISCARD_LOG_INTERVAL_NS, UM_LOG_INFO, "Core-20202-4",
                   "topic [%s] source [%s]: sequence number %u %s: discarded, as %llu before for this reason",
                   source->topic->base.name, source->msg->pub.source, sqn, reasons[why],
                   (unsigned long long)um_dc_stats(source->dc)->discards[why] - 1);
}

static const struct um_dc_ops DC_OPS = {
    .deliver = on_dc_deliver,
    .loss = on_dc_loss,
    .burst_loss = on_dc_burst_loss,
    .set_timer = on_dc_set_timer,
    .missing = on_dc_missing,
    .discarded = on_dc_discarded,
};

static void on_loss_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_rcv_source *source = UM_CONTAINER_OF(timer, struct um_rcv_source, loss_timer);
    um_dc_on_timer(source->dc, now_ns);
}

/* ---- final advertisements ---- */

static void watch_withdrawn(struct um_rcv_source *source, uint64_t now_ns)
{
    source->withdrawn_progress = um_dc_stats(source->dc)->delivered + um_dc_reassembly_bytes(source->dc);
    um_timer_arm(um_rcv_wheel(source->topic), &source->withdrawn_timer, now_ns + WITHDRAWN_QUIET_NS);
}

static void on_withdrawn_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_rcv_source *source = UM_CONTAINER_OF(timer, struct um_rcv_source, withdrawn_timer);
    if (source->withdrawn_progress != um_dc_stats(source->dc)->delivered + um_dc_reassembly_bytes(source->dc)) {
        watch_withdrawn(source, now_ns);
    } else {
        um_rcv_source_end(source);
    }
}

void um_rcv_source_withdrawn(struct um_rcv_source *source)
{
    if (!source->bos_seen) {
        um_rcv_source_end(source);
    } else if (!um_timer_armed(&source->withdrawn_timer)) {
        watch_withdrawn(source, um_loop_now(context_of(source)->loop));
    }
}

/* ---- the session ---- */

static void on_data(struct um_rcv_stream *stream, const struct um_lbmc_msg *msg, struct um_buf *buf, uint64_t now_ns)
{
    struct um_rcv_source *source = UM_CONTAINER_OF(stream, struct um_rcv_source, stream);
    source->reading = true;
    source->direct = NULL; /* the template is changed */
    um_dc_on_data(source->dc, now_ns, msg, buf);
}

static void on_tsni(struct um_rcv_stream *stream, uint32_t last_sqn, uint64_t now_ns)
{
    um_dc_on_tsni(UM_CONTAINER_OF(stream, struct um_rcv_source, stream)->dc, now_ns, last_sqn);
}

static void on_bos(struct um_rcv_stream *stream)
{
    struct um_rcv_source *source = UM_CONTAINER_OF(stream, struct um_rcv_source, stream);
    if (source->bos_seen) {
        return;
    }
    deliver_event(source, LBM_MSG_BOS, 0);
    source->bos_seen = true;
    source->ready = true;
    atomic_fetch_add(&source->topic->ready, 1);
    um_rcv_ready_changed();
}

static void not_ready(struct um_rcv_source *source)
{
    if (source->ready) {
        source->ready = false;
        atomic_fetch_sub(&source->topic->ready, 1);
        um_rcv_ready_changed();
    }
}

static void on_eos(struct um_rcv_stream *stream)
{
    struct um_rcv_source *source = UM_CONTAINER_OF(stream, struct um_rcv_source, stream);
    lbm_context_t *ctx = context_of(source);
    struct um_rcv_topic *topic = source->topic;
    lbm_transport_source_info_t info = source->info;
    um_rcv_source_end(source);
    um_resolver_source_ended(ctx->resolver, topic->base.name, &info);
}

/* Takers of batches are woken once for all that a read brought. */
static void read_over(struct um_rcv_source *source)
{
    source->reading = false;
    struct um_list *node;
    UM_LIST_FOREACH(node, &source->topic->receivers)
    {
        struct um_collector_link *link = UM_CONTAINER_OF(node, lbm_rcv_t, topic_node)->collector;
        if (link != NULL) {
            um_collector_read_end(link);
        }
    }
}

static void on_read_end(struct um_rcv_stream *stream, uint64_t now_ns)
{
    read_over(UM_CONTAINER_OF(stream, struct um_rcv_source, stream));
}

/* A single receiver that is called at once, without a look at the clock: what changes from message to message is then
 * written into the template, and nothing else. Stays until the receivers of the topic change or something else uses the
 * template. */
static bool find_direct(struct um_rcv_source *source)
{
    struct um_list *node = um_list_first(&source->topic->receivers);
    lbm_rcv_t *rcv = node == NULL ? NULL : UM_CONTAINER_OF(node, lbm_rcv_t, topic_node);
    if (rcv == NULL || node->next != &source->topic->receivers || rcv->evq != NULL || !rcv->greeted ||
        rcv->ctx->opts.receiver_callback_service_time_enabled != 0) {
        return false;
    }
    struct um_msg *msg = source->msg;
    msg->pub.type = LBM_MSG_DATA;
    msg->pub.flags = 0;
    msg->pub.hr_timestamp = (lbm_timespec_t){0};
    msg->pub.fragment_info = NULL;
    msg->is_fragment = false;
    msg->buf = NULL;
    source->direct = rcv;
    source->direct_generation = source->topic->generation;
    source->stream.no_read_end = rcv->collector == NULL;
    return true;
}

static unsigned on_ring(struct um_rcv_stream *stream, struct um_smx_reader *reader, unsigned most, uint64_t wall_ns,
                        uint64_t *bytes)
{
    struct um_rcv_source *source = UM_CONTAINER_OF(stream, struct um_rcv_source, stream);
    bool direct = source->direct != NULL && source->direct_generation == source->topic->generation;
    uint32_t next;
    if ((!direct && !find_direct(source)) || !um_dc_in_order(source->dc, &next)) {
        stream->no_read_end = false;
        return 0;
    }
    struct um_msg *msg = source->msg;
    lbm_rcv_t *rcv = source->direct;
    struct um_smx_reader view = *reader; /* nobody else moves it meanwhile: kept in registers */
    struct um_smx_message m;
    uint32_t tidx = stream->tidx;
    uint64_t size, sum = 0;
    unsigned count = 0, linger = reader->linger;
    view.drained = false;
    if (wall_ns != source->wall_ns) {
        set_time(source, wall_ns);
    }
    source->reading = !stream->no_read_end;
    msg->pub.source_clientd = source->clientd;
    msg->delivering = true;
    while (count < most) {
        if ((size = um_smx_peek(&view, &m)) == 0) {
            if (!view.drained || linger == 0) {
                break;
            }
            um_smx_release(&view);
            linger = um_smx_await(&view, linger);
            continue;
        }
        if (m.sqn != next || m.topic_idx != tidx) {
            break;
        }
        msg->pub.data = (const char *)m.data;
        msg->pub.len = m.len;
        msg->pub.sequence_number = next++;
        view.pos += size;
        sum += m.len;
        count++;
        um_rcv_call(rcv, msg);
        if (__builtin_expect(msg->replacement != NULL, 0)) {
            break;
        }
        if (__builtin_expect(um_smx_release_due(&view), 0)) {
            um_smx_release(&view);
        }
    }
    reader->pos = view.pos;
    reader->released = view.released;
    reader->drained = view.drained;
    *bytes += sum;
    msg->delivering = false;
    um_dc_took(source->dc, count);
    if (__builtin_expect(msg->replacement != NULL, 0)) {
        source->msg = um_msg_template_next(msg);
        source->wall_ns = 0;
        source->direct = NULL;
    }
    return count;
}

static const struct um_rcv_stream_events STREAM_EVENTS = {on_data, on_tsni, on_bos, on_eos, on_read_end, on_ring};

/* ---- sessions left unread for full collectors ---- */

bool um_rcv_source_can_hold(const struct um_rcv_source *source)
{
    return source->info.type == LBM_TRANSPORT_TYPE_TCP && source->stream.session != NULL;
}

void um_rcv_source_hold(struct um_rcv_source *source)
{
    if (!source->held) {
        source->held = true;
        um_list_push_back(&context_of(source)->held_sources, &source->held_node);
        um_rcv_session_pause(&source->stream);
    }
}

static bool wanted_held(const struct um_rcv_source *source)
{
    struct um_list *node;
    UM_LIST_FOREACH(node, &source->topic->receivers)
    {
        const struct um_collector_link *link = UM_CONTAINER_OF(node, lbm_rcv_t, topic_node)->collector;
        if (link != NULL && um_collector_full(link)) {
            return true;
        }
    }
    return false;
}

void um_rcv_sources_release(lbm_context_t *ctx)
{
    struct um_list *node, *next;
    UM_LIST_FOREACH_SAFE(node, next, &ctx->held_sources)
    {
        struct um_rcv_source *source = UM_CONTAINER_OF(node, struct um_rcv_source, held_node);
        if (!wanted_held(source)) {
            source->held = false;
            um_list_remove(node);
            um_rcv_session_resume(&source->stream);
        }
    }
}

/* ---- joining and leaving ---- */

/* The cost function may reject a source; other costs choose between routes and mean nothing here. */
static bool rejected(struct um_rcv_topic *topic, const struct um_tr_source *found)
{
    const lbm_src_cost_func_t *func = &topic->base.ctx->opts.source_cost_evaluation_function;
    if (func->cost_cb == NULL) {
        return false;
    }
    lbm_uint32_t cost = found->cost < 0 ? 0 : (lbm_uint32_t)found->cost;
    return func->cost_cb(topic->base.name, &found->info, 0, cost, func->clientd) == LBM_SRC_COST_FUNCTION_REJECT;
}

/* The time the transport has for repairs: in milliseconds, unless the extension in microseconds is set. */
static uint64_t generation_ns(lbm_ulong_t ms, lbm_ulong_t us)
{
    return us != 0 ? us * (UM_NS_PER_MS / 1000) : ms * UM_NS_PER_MS;
}

static struct um_dc_config dc_config(const struct um_rcv_topic *topic, const lbm_transport_source_info_t *info)
{
    const struct um_receiver_options *opts = &topic->opts;
    size_t entries = topic->base.ctx->opts.delivery_control_maximum_total_map_entries;
    struct um_dc_config config = {
        .ordered_delivery = opts->ordered_delivery,
        .maximum_burst_loss = opts->delivery_control_maximum_burst_loss,
        .loss_check_interval_ns = opts->delivery_control_loss_check_interval * UM_NS_PER_MS,
        .map_entries_max = entries > UINT32_MAX ? UINT32_MAX : (uint32_t)entries,
        .reassembly_size_max = opts->um_reassembly_maximum_size,
    };
    switch (info->type) {
    case LBM_TRANSPORT_TYPE_LBTRM:
        config.gap_timeout_ns = generation_ns(opts->transport_lbtrm_nak_generation_interval,
                                              opts->um_transport_lbtrm_nak_generation_interval_us);
        break;
    case LBM_TRANSPORT_TYPE_LBTRU:
        config.gap_timeout_ns = generation_ns(opts->transport_lbtru_nak_generation_interval,
                                              opts->um_transport_lbtru_nak_generation_interval_us);
        break;
    case LBM_TRANSPORT_TYPE_LBTIPC: /* what a router brings out of order */
        config.gap_timeout_ns = opts->transport_lbtipc_dro_loss_recovery_timeout * UM_NS_PER_MS;
        break;
    default: /* the stream is ordered: a gap cannot be filled any more */
        config.gap_timeout_ns = 0;
        break;
    }
    return config;
}

static int make_template(struct um_rcv_source *source)
{
    lbm_transport_source_info_t info = source->info;
    char text[UM_SOURCE_STRING_MAX];
    if (!context_of(source)->opts.source_includes_topic_index) {
        info.topic_idx = 0;
    }
    if (um_source_string_format(&info, text, sizeof text) < 0) {
        return -1;
    }
    source->msg = um_msg_create(text, source->topic->base.name);
    if (source->msg == NULL) {
        return um_error_nomem("message", sizeof *source->msg);
    }
    source->msg->is_template = true;
    source->msg->origin = source;
    return 0;
}

static void free_source(struct um_rcv_source *source)
{
    um_dc_destroy(source->dc);
    if (source->msg != NULL) {
        um_msg_release(source->msg);
    }
    um_free(source);
}

static struct um_rcv_source *new_source(struct um_rcv_topic *topic, const lbm_transport_source_info_t *info)
{
    struct um_rcv_source *source = um_calloc(1, sizeof *source);
    if (source == NULL) {
        um_error_nomem("receiver's source", sizeof *source);
        return NULL;
    }
    static atomic_ullong last_id;
    source->id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
    source->topic = topic;
    source->info = *info;
    um_list_init(&source->held_node);
    source->stream.events = &STREAM_EVENTS;
    source->stream.tidx = info->topic_idx;
    source->stream.in_order = topic->opts.ordered_delivery == 1;
    um_timer_init(&source->loss_timer, on_loss_timer);
    um_timer_init(&source->withdrawn_timer, on_withdrawn_timer);
    struct um_dc_config config = dc_config(topic, info);
    source->dc = um_dc_create(&config, &DC_OPS, source);
    if (source->dc == NULL) {
        um_error_nomem("delivery controller", sizeof config);
    }
    if (source->dc == NULL || make_template(source) != 0) {
        free_source(source);
        return NULL;
    }
    return source;
}

static void notify_created(struct um_rcv_source *source)
{
    const lbm_rcv_src_notification_func_t *func = &source->topic->opts.source_notification_function;
    if (func->create_func != NULL) {
        source->clientd = func->create_func(source->msg->pub.source, func->clientd);
    }
}

static void notify_deleted(struct um_rcv_source *source)
{
    const lbm_rcv_src_notification_func_t *func = &source->topic->opts.source_notification_function;
    if (func->delete_func != NULL) {
        func->delete_func(source->msg->pub.source, func->clientd, source->clientd);
    }
}

void um_rcv_source_join(struct um_rcv_topic *topic, const struct um_tr_source *found)
{
    if (um_list_empty(&topic->receivers)) {
        return;
    }
    struct um_rcv_source *source = um_rcv_source_find(topic, &found->info);
    if (source != NULL) {
        um_timer_cancel(um_rcv_wheel(topic), &source->withdrawn_timer); /* advertised again: it is not gone */
        return;
    }
    if (rejected(topic, found)) {
        return;
    }
    source = new_source(topic, &found->info);
    if (source == NULL) {
        um_log(UM_LOG_ERR, "Core-20202-2", "topic [%s]: cannot receive from a new source: %s", topic->base.name,
               um_errmsg());
        return;
    }
    source->stream.again = um_rcv_ended_lately(topic, &found->info, um_loop_now(topic->base.ctx->loop));
    if (um_rcv_sessions_join(topic->base.ctx->rcv_sessions, &found->info, &topic->opts, &source->stream) != 0) {
        um_log(UM_LOG_DEBUG, "Core-20202-3", "topic [%s]: source [%s] not joined: %s", topic->base.name,
               source->msg->pub.source, um_errmsg());
        free_source(source);
        return;
    }
    um_list_push_back(&topic->sources, &source->node);
    notify_created(source);
    struct um_list *node;
    UM_LIST_FOREACH(node, &topic->receivers)
    {
        um_wildcard_keep(UM_CONTAINER_OF(node, lbm_rcv_t, topic_node));
    }
}

static void remove_source(struct um_rcv_source *source)
{
    um_list_remove(&source->node);
    um_list_remove(&source->held_node);
    if (source->reading) {
        read_over(source);
    }
    not_ready(source);
    if (source->stream.session != NULL) {
        um_rcv_stream_leave(&source->stream);
    }
    um_timer_cancel(um_rcv_wheel(source->topic), &source->loss_timer);
    um_timer_cancel(um_rcv_wheel(source->topic), &source->withdrawn_timer);
    notify_deleted(source);
    um_dc_finish(source->dc, um_loop_now(context_of(source)->loop));
    um_dc_stats_add(&source->topic->ended, um_dc_stats(source->dc));
    free_source(source);
}

void um_rcv_source_leave(struct um_rcv_source *source)
{
    remove_source(source);
}

void um_rcv_source_end(struct um_rcv_source *source)
{
    struct um_rcv_topic *topic = source->topic;
    not_ready(source);
    if (source->bos_seen || !source->stream.again) {
        deliver_event(source, LBM_MSG_EOS, 0);
    }
    um_rcv_note_ending(topic, &source->info, um_loop_now(topic->base.ctx->loop));
    remove_source(source);
    /* Without UDP queries nobody counts them unanswered: the linger starts with the loss of the last source. */
    if (um_list_empty(&topic->sources) && topic->base.ctx->opts.resolver_disable_udp_topic_resolution) {
        struct um_list *node;
        UM_LIST_FOREACH(node, &topic->receivers)
        {
            um_wildcard_linger(UM_CONTAINER_OF(node, lbm_rcv_t, topic_node));
        }
    }
}
