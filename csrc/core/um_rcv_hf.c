/* Hot failover receivers: messages of flows into the merge, what comes out of it
 * to the application. See um_rcv_hf.h. */
#include "core/um_rcv_hf.h"

#include <string.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "core/um_hfx.h"
#include "core/um_msg_extras.h"
#include "core/um_rcv_private.h"
#include "wire/um_source_string.h"

/* Between these the merge is the caller's. Afterwards the application may have been called. */
static struct um_hf *enter(lbm_hf_rcv_t *hf)
{
    return hf->member != NULL ? um_hfx_enter(hf->member) : &hf->merge;
}

static void leave(lbm_hf_rcv_t *hf)
{
    if (hf->member != NULL) {
        um_hfx_leave(hf->member);
    }
}

/* Of an HFX: when it was entered. */
static uint64_t now_of(const lbm_hf_rcv_t *hf)
{
    return hf->member != NULL ? hf->member->hfx->now_ns : um_loop_now(hf->rcv->ctx->loop);
}

/* ---- to the application ---- */

/* The receiver's own message, so that others of the topic see theirs as it came. What the application retains of it is
 * replaced. */
static void hand_over(lbm_hf_rcv_t *hf, struct um_msg *msg)
{
    if (hf->closing) {
        return;
    }
    um_msg_mark(msg, UM_MSG_DELIVERING, true);
    um_rcv_hand_over(hf->rcv, msg);
    um_msg_mark(msg, UM_MSG_DELIVERING, false);
    if (msg == hf->msg && msg->replacement != NULL) {
        hf->msg = um_msg_template_next(msg);
    }
}

static void no_room_for_extras(lbm_hf_rcv_t *hf)
{
    um_log_limited(um_log_of(hf->msg->pub.topic_name), um_loop_now(hf->rcv->ctx->loop), UM_LOG_ERR, "Core-5402-4",
                   "topic [%s]: out of memory for the properties of a message: it is delivered without",
                   hf->msg->pub.topic_name);
}

static void fill(lbm_hf_rcv_t *hf, const struct um_msg *from)
{
    struct um_msg *msg = hf->msg;
    hf->filled = NULL;
    um_msg_extras_free(msg); /* of the message before */
    msg->pub = from->pub;
    msg->pub.properties = NULL;
    msg->pub.channel_info = NULL;
    msg->channel = from->channel;
    if (hf->member != NULL) {
        msg->rcv = hf->rcv;
        msg->pub.source_clientd = NULL; /* who frees it does not know of another context's callback */
    }
    if (!um_msg_extras_clone(msg, from)) {
        no_room_for_extras(hf); /* for its properties: it is delivered without */
    }
    msg->lost = from->lost;
    msg->buf = from->buf;
    msg->frag = from->frag;
    msg->origin = from->origin;
    um_msg_mark(msg, UM_MSG_FRAGMENT, um_msg_is(from, UM_MSG_FRAGMENT));
    if (from->pub.fragment_info != NULL) {
        msg->pub.fragment_info = &msg->frag;
    }
}

void um_rcv_hf_number(struct um_msg *msg, uint64_t sqn, bool wide)
{
    if (wide) {
        msg->pub.hf_sequence_number.u64 = sqn;
        msg->pub.sequence_number = 0;
    } else {
        msg->pub.hf_sequence_number.u32 = (lbm_uint32_t)sqn;
        msg->pub.sequence_number = (lbm_uint_t)sqn;
    }
    msg->pub.flags |= wide ? LBM_MSG_FLAG_HF_64 : LBM_MSG_FLAG_HF_32;
}

/* It may be another receiver's, too, which sees it as it came. */
static bool is_shared(const struct um_msg *msg)
{
    return msg->origin->audience->count != 1;
}

/* What the merge says of a message, into a message that is the receiver's. */
static void mark(struct um_msg *msg, const struct um_lbmc_hf *told)
{
    msg->pub.osqn = msg->pub.sequence_number;
    um_rcv_hf_number(msg, told->sqn, told->wide);
    msg->pub.flags |= (told->flags & UM_LBMC_HF_OPTIONAL) != 0 ? LBM_MSG_FLAG_HF_OPTIONAL : 0;
}

/* The flow's own message, without a copy. What was written into it is gone afterwards, unless the application has
 * retained it: then the flow has another one. */
static void hand_over_in_place(lbm_hf_rcv_t *hf, struct um_msg *msg, const struct um_lbmc_hf *told, int flags)
{
    if (hf->closing) {
        return;
    }
    mark(msg, told);
    msg->pub.flags |= flags;
    um_rcv_hand_over(hf->rcv, msg);
    if (msg->replacement == NULL) {
        msg->pub.osqn = 0;
        msg->pub.hf_sequence_number.u64 = 0;
    }
}

static void on_deliver(void *user, void *msg, const struct um_lbmc_hf *told, bool duplicate)
{
    lbm_hf_rcv_t *hf = user;
    int flags = duplicate ? LBM_MSG_FLAG_HF_DUPLICATE : 0;
    if (msg == hf->coming && !is_shared(hf->coming)) {
        hand_over_in_place(hf, hf->coming, told, flags);
        return;
    }
    struct um_msg *given = msg;
    if (msg == hf->coming) {
        fill(hf, hf->coming);
        mark(hf->msg, told);
        given = hf->msg;
    }
    given->pub.flags |= flags;
    hand_over(hf, given);
    hf->msg->origin = NULL;
}

/* An event under the source of the message that came last. */
static void tell(lbm_hf_rcv_t *hf, int type, uint64_t sqn, uint32_t count)
{
    struct um_msg *msg = um_msg_create(hf->msg->pub.source, hf->msg->pub.topic_name);
    if (msg == NULL) {
        um_rcv_count_not_queued(hf->rcv, hf->msg->pub.topic_name);
        return;
    }
    msg->pub.type = type;
    msg->pub.tsp = hf->msg->pub.tsp;
    msg->pub.source_clientd = hf->msg->pub.source_clientd;
    msg->lost = count;
    um_rcv_hf_number(msg, sqn, hf->merge.wide);
    hand_over(hf, msg);
    um_msg_release(msg);
}

static void on_reset(void *user, void *msg, const struct um_lbmc_hf *told)
{
    tell(user, LBM_MSG_HF_RESET, told->sqn, 0);
}

static void on_loss(void *user, uint64_t sqn)
{
    tell(user, LBM_MSG_UNRECOVERABLE_LOSS, sqn, 0);
}

static void on_burst_loss(void *user, uint64_t first, uint64_t count)
{
    tell(user, LBM_MSG_UNRECOVERABLE_LOSS_BURST, first, (uint32_t)count);
}

/* What is coming, or what waited in doubt and has its number. */
static void *on_hold(void *user, void *msg)
{
    const lbm_hf_rcv_t *hf = user;
    struct um_msg *held = um_msg_clone_kept(msg);
    if (held != NULL && msg == hf->coming) {
        mark(held, &hf->told);
    }
    return held;
}

static void on_let_go(void *user, void *held)
{
    um_msg_release(held);
}

static void on_set_timer(void *user, uint64_t due_ns)
{
    lbm_hf_rcv_t *hf = user;
    struct um_timer_wheel *wheel = um_loop_wheel(hf->rcv->ctx->loop);
    if (due_ns == UM_NEVER) {
        um_timer_cancel(wheel, &hf->timer);
    } else {
        um_timer_arm(wheel, &hf->timer, due_ns);
    }
}

static void on_discarded(void *user, enum um_hf_discard why, uint64_t sqn, uint64_t now_ns)
{
    lbm_hf_rcv_t *hf = user;
    if (why == UM_HF_WIDTH) {
        um_log_limited(um_log_of(hf->msg->pub.source), now_ns, UM_LOG_WARNING, "Core-5402-1",
                       "topic [%s] source [%s]: hot failover number %llu of %s bits among numbers of %s: dropped, as "
                       "%llu before",
                       hf->msg->pub.topic_name, hf->msg->pub.source, (unsigned long long)sqn,
                       hf->merge.wide ? "32" : "64", hf->merge.wide ? "64" : "32",
                       (unsigned long long)hf->merge.stats.discards[why] - 1);
    } else if (why == UM_HF_NO_ROOM) {
        um_log_limited(um_log_of(hf->msg->pub.topic_name), now_ns, UM_LOG_ERR, "Core-5402-2",
                       "topic [%s]: out of memory for a message that waits: hot failover number %llu counts as missing",
                       hf->msg->pub.topic_name, (unsigned long long)sqn);
    }
}

static const struct um_hf_ops OPS = {.deliver = on_deliver,
                                     .reset = on_reset,
                                     .loss = on_loss,
                                     .burst_loss = on_burst_loss,
                                     .hold = on_hold,
                                     .let_go = on_let_go,
                                     .set_timer = on_set_timer,
                                     .discarded = on_discarded};

static void log_given_early(lbm_hf_rcv_t *hf, uint64_t before, uint64_t now_ns)
{
    if (hf->merge.stats.given_early != before) {
        um_log_limited(um_log_of(hf->msg->pub.topic_name), now_ns, UM_LOG_WARNING, "Core-5402-3",
                       "topic [%s]: a source runs ahead over gaps in its hot failover numbers: %zu messages wait, more "
                       "may not (delivery_control_maximum_total_map_entries, 64 MiB); %llu gaps given up early, %llu "
                       "numbers lost so far",
                       hf->msg->pub.topic_name, um_hf_waiting(&hf->merge),
                       (unsigned long long)hf->merge.stats.given_early, (unsigned long long)hf->merge.stats.lost);
    }
}

static void on_timer(struct um_timer *timer, uint64_t now_ns)
{
    lbm_hf_rcv_t *hf = UM_CONTAINER_OF(timer, lbm_hf_rcv_t, timer);
    um_hf_on_timer(&hf->merge, now_ns);
}

/* ---- from the flows ---- */

/* NULL: nothing came of it before. */
static inline struct um_rcv_hf_place *known_place(const lbm_hf_rcv_t *hf, const struct um_rcv_flow *flow)
{
    struct um_list *node;
    UM_LIST_FOREACH(node, &flow->hf_places)
    {
        struct um_rcv_hf_place *place = UM_CONTAINER_OF(node, struct um_rcv_hf_place, flow_node);
        if (place->hf == hf) {
            return place;
        }
    }
    return NULL;
}

/* NULL: nothing came of it before, and there is no memory. */
static struct um_rcv_hf_place *place_of(lbm_hf_rcv_t *hf, struct um_rcv_flow *flow)
{
    struct um_rcv_hf_place *place = known_place(hf, flow);
    if (place != NULL) {
        return place;
    }
    place = um_calloc(1, sizeof *place);
    if (place != NULL) {
        place->hf = hf;
        um_list_push_back(&flow->hf_places, &place->flow_node);
        um_list_push_back(&hf->places, &place->node);
        um_hf_join(enter(hf), &place->source);
        leave(hf);
    }
    return place;
}

static void free_place(struct um_rcv_hf_place *place)
{
    lbm_hf_rcv_t *hf = place->hf;
    struct um_hf *merge = enter(hf);
    um_hf_leave(merge, &place->source, now_of(hf));
    leave(hf);
    if (hf->filled == place) {
        hf->filled = NULL;
    }
    um_list_remove(&place->node);
    um_list_remove(&place->flow_node);
    um_free(place);
}

static void forget_clientd(struct um_msg *msg, const struct um_rcv_flow *flow, const char *source)
{
    if (msg->pub.source_clientd == flow->clientd && strcmp(msg->pub.source, source) == 0) {
        msg->pub.source_clientd = NULL;
    }
}

struct leaving {
    const struct um_rcv_flow *flow;
    char source[UM_SOURCE_STRING_MAX];
};

static void forget_clientd_of(void *held, void *arg)
{
    struct leaving *leaving = arg;
    forget_clientd(held, leaving->flow, leaving->source);
}

/* The application frees it now; what waits may be delivered long after. */
static void forget_clientds(lbm_hf_rcv_t *hf, const struct um_rcv_flow *flow)
{
    if (flow->clientd != NULL && hf->member == NULL) {
        struct leaving leaving = {.flow = flow};
        um_rcv_flow_source(flow, leaving.source);
        um_hf_entries_each(&hf->merge.entries, forget_clientd_of, &leaving);
        forget_clientd(hf->msg, flow, leaving.source);
    }
}

void um_rcv_hf_flow_left(lbm_rcv_t *rcv, struct um_rcv_flow *flow)
{
    struct um_list *node, *next;
    UM_LIST_FOREACH_SAFE(node, next, &flow->hf_places)
    {
        struct um_rcv_hf_place *place = UM_CONTAINER_OF(node, struct um_rcv_hf_place, flow_node);
        if (place->hf == rcv->hf) {
            free_place(place);
            forget_clientds(rcv->hf, flow);
        }
    }
}

/* Of a flow whose loop is that of the merge. */
static bool is_ours(const struct um_msg *msg)
{
    return msg->origin != NULL && msg->origin->mail == NULL;
}

/* The flag is this receiver's: others of the topic, and who has kept the message, have it as it came. */
static void pass_through_copy(lbm_hf_rcv_t *hf, const struct um_msg *msg, int flag)
{
    struct um_msg *copy = um_msg_clone(msg);
    if (copy == NULL) {
        um_rcv_count_not_queued(hf->rcv, msg->pub.topic_name);
        return;
    }
    copy->pub.flags |= flag;
    if (hf->member != NULL) {
        copy->pub.source_clientd = NULL;
        um_hfx_pass(hf->member, copy);
        return;
    }
    copy->origin = msg->origin; /* a collector that is full has its session left unread */
    um_rcv_hand_over(hf->rcv, copy);
    copy->origin = NULL;
    um_msg_release(copy);
}

static void pass_through(lbm_hf_rcv_t *hf, const struct um_msg *msg)
{
    int flag = msg->pub.type == LBM_MSG_BOS ? 0 : LBM_MSG_FLAG_HF_PASS_THROUGH;
    if (!is_ours(msg)) { /* `closing` and the template belong to the other loop; or it has no source */
        pass_through_copy(hf, msg, flag);
        return;
    }
    fill(hf, msg);
    hf->msg->pub.flags |= flag;
    if (hf->member != NULL) {
        um_hfx_pass(hf->member, hf->msg);
    } else {
        hand_over(hf, hf->msg);
    }
    hf->msg->origin = NULL;
    hf->msg->pub.response = NULL; /* of a request: the flow's, the receiver has got its own */
}

static struct um_hf_message coming(const struct um_msg *msg, struct um_msg *given, const struct um_lbmc_hf *told)
{
    const lbm_msg_fragment_info_t *frag = msg->pub.fragment_info;
    uint32_t last = (uint32_t)msg->pub.sequence_number;
    return (struct um_hf_message){.hf = *told,
                                  .first_sqn = frag != NULL ? (uint32_t)frag->start_sequence_number : last,
                                  .last_sqn = last,
                                  .msg = given};
}

/* The merge of an HFX gets a message of the receiver's own. */
static void merge_as_member(lbm_hf_rcv_t *hf, struct um_rcv_hf_place *place, const struct um_msg *msg,
                            const struct um_lbmc_hf *told)
{
    fill(hf, msg);
    mark(hf->msg, told);
    struct um_hf_message m = coming(msg, hf->msg, told);
    m.size = um_msg_kept_size(hf->msg);
    m.leaves_optional = hf->member->leaves_optional;
    struct um_hf *into = enter(hf);
    if (um_hfx_takes(hf->member, hf->msg, told->sqn)) {
        um_hf_on_message(into, &place->source, &m, now_of(hf));
    }
    leave(hf);
    hf->msg->origin = NULL;
}

/* Of what comes, the template has what events and log lines tell. */
static void remember(lbm_hf_rcv_t *hf, struct um_rcv_hf_place *place, const struct um_msg *msg)
{
    struct um_msg *last = hf->msg;
    if (hf->filled != place) {
        memcpy(last->pub.source, msg->pub.source, sizeof last->pub.source);
        memcpy(last->pub.topic_name, msg->pub.topic_name, sizeof last->pub.topic_name);
        hf->filled = place;
    }
    last->pub.tsp = msg->pub.tsp;
    last->pub.source_clientd = msg->pub.source_clientd;
}

static void merge(lbm_hf_rcv_t *hf, struct um_rcv_hf_place *place, struct um_msg *msg, const struct um_lbmc_hf *told)
{
    if (hf->member != NULL) {
        merge_as_member(hf, place, msg, told);
        return;
    }
    uint64_t before = hf->merge.stats.given_early, now_ns = now_of(hf);
    remember(hf, place, msg);
    struct um_hf_message m = coming(msg, msg, told);
    hf->coming = msg;
    hf->told = *told;
    if (!um_hf_on_next(&hf->merge, &place->source, &m, now_ns)) {
        m.size = um_msg_kept_size(msg);
        um_hf_on_message(&hf->merge, &place->source, &m, now_ns);
        log_given_early(hf, before, now_ns);
    }
    hf->coming = NULL;
}

bool um_rcv_hf_is_copy(struct um_rcv_flow *flow, uint32_t topic_sqn, const struct um_lbmc_hf *told)
{
    const struct um_rcv_audience *audience = flow->audience;
    lbm_hf_rcv_t *hf = audience->count == 1 ? audience->receivers[0]->hf : NULL;
    if (hf == NULL || hf->member != NULL || um_hf_number_diff(told->sqn, hf->merge.due, false) >= 0) {
        return false;
    }
    struct um_rcv_hf_place *place = known_place(hf, flow);
    return place != NULL && um_hf_on_copy(&hf->merge, &place->source, topic_sqn, told);
}

static void merge_passed(lbm_hf_rcv_t *hf, struct um_rcv_hf_place *place, const struct um_msg *msg)
{
    const lbm_msg_fragment_info_t *frag = msg->pub.fragment_info;
    uint32_t last = (uint32_t)msg->pub.sequence_number;
    struct um_hf *into = enter(hf);
    um_hf_on_passed(into, &place->source, frag != NULL ? (uint32_t)frag->start_sequence_number : last, last,
                    now_of(hf));
    leave(hf);
}

/* There is no memory for its source. */
static void count_no_room(lbm_hf_rcv_t *hf, const struct um_lbmc_hf *told)
{
    struct um_hf *into = enter(hf);
    into->stats.discards[UM_HF_NO_ROOM]++;
    into->ops->discarded(into->user, UM_HF_NO_ROOM, told->sqn, now_of(hf));
    leave(hf);
}

/* Whole messages of flows on this loop. */
static bool takes_part(const struct um_msg *msg)
{
    return msg->pub.type == LBM_MSG_DATA && is_ours(msg) && !um_msg_is(msg, UM_MSG_FRAGMENT);
}

void um_rcv_hf_deliver(lbm_rcv_t *rcv, struct um_msg *msg)
{
    lbm_hf_rcv_t *hf = rcv->hf;
    struct um_lbmc_hf told = {.sqn = 0};
    if (is_ours(msg) && um_msg_losses(msg) > 0) {
        return; /* of one source: another one may have it */
    }
    if (!takes_part(msg)) {
        pass_through(hf, msg);
        return;
    }
    struct um_rcv_hf_place *place = place_of(hf, msg->origin);
    struct um_slice chain = msg->origin->lane->chain;
    bool numbered = um_lbmc_get_hf_alone(chain, &told) || um_lbmc_get_hf(chain, &told);
    if (place == NULL) {
        count_no_room(hf, &told);
    } else if (numbered) {
        merge(hf, place, msg, &told);
    } else {
        merge_passed(hf, place, msg);
        pass_through(hf, msg);
    }
}

bool um_rcv_hf_passes_event(lbm_rcv_t *rcv, struct um_msg *msg)
{
    if (rcv->hf == NULL || rcv->hf->member == NULL) {
        return false;
    }
    msg->pub.source_clientd = NULL;
    um_hfx_pass(rcv->hf->member, msg);
    return true;
}

/* ---- life ---- */

bool um_rcv_hf_only(const struct um_rcv_topic *topic)
{
    struct um_list *node;
    UM_LIST_FOREACH(node, &topic->receivers)
    {
        if (UM_CONTAINER_OF(node, lbm_rcv_t, topic_node)->hf == NULL) {
            return false;
        }
    }
    return !um_list_empty(&topic->receivers);
}

static struct um_hf_config config_of(const lbm_rcv_t *rcv)
{
    const struct um_receiver_options *opts = rcv->topic->opts;
    uint64_t rm = um_rcv_transport_gap_timeout_ns(LBM_TRANSPORT_TYPE_LBTRM, opts);
    uint64_t ru = um_rcv_transport_gap_timeout_ns(LBM_TRANSPORT_TYPE_LBTRU, opts);
    size_t entries = rcv->ctx->opts.delivery_control_maximum_total_map_entries;
    return (struct um_hf_config){.ordered = opts->ordered_delivery == 1,
                                 .duplicates = opts->hf_duplicate_delivery != 0,
                                 .optional = opts->hf_optional_messages != 0,
                                 .gap_timeout_ns = rm < ru ? rm : ru,
                                 .maximum_burst_loss = opts->delivery_control_maximum_burst_loss,
                                 .entries_max = entries > UINT32_MAX ? UINT32_MAX : (uint32_t)entries,
                                 .bytes_max = UM_HF_HELD_BYTES_MAX};
}

int um_rcv_hf_attach(lbm_rcv_t *rcv, lbm_hfx_t *hfx)
{
    lbm_hf_rcv_t *hf = um_calloc(1, sizeof *hf);
    struct um_msg *msg = hf == NULL ? NULL : um_msg_create("", rcv->topic->base.name);
    if (msg == NULL) {
        um_free(hf);
        return um_error_nomem("hot failover receiver", sizeof *hf);
    }
    um_msg_mark(msg, UM_MSG_TEMPLATE, true);
    hf->msg = msg;
    hf->rcv = rcv;
    um_list_init(&hf->places);
    um_timer_init(&hf->timer, on_timer);
    if (hfx == NULL) {
        const struct um_hf_config config = config_of(rcv);
        um_hf_init(&hf->merge, &config, &OPS, hf);
        hf->magic = UM_HF_RECEIVER_MAGIC;
    } else if ((hf->member = um_hfx_member_new(hfx, rcv)) == NULL) {
        um_msg_release(msg);
        um_free(hf);
        return -1;
    }
    rcv->hf = hf;
    rcv->indirect = true;
    return 0;
}

void um_rcv_hf_close(lbm_rcv_t *rcv)
{
    lbm_hf_rcv_t *hf = rcv->hf;
    if (hf == NULL) {
        return;
    }
    struct um_list *node;
    hf->closing = true;
    hf->magic = 0;
    while ((node = um_list_first(&hf->places)) != NULL) {
        free_place(UM_CONTAINER_OF(node, struct um_rcv_hf_place, node));
    }
    if (hf->member != NULL) {
        um_hfx_member_leave(hf->member);
        return;
    }
    um_timer_cancel(um_loop_wheel(rcv->ctx->loop), &hf->timer);
    um_hf_fini(&hf->merge, now_of(hf));
}

void um_rcv_hf_free(lbm_rcv_t *rcv)
{
    if (rcv->hf != NULL) {
        if (rcv->hf->member != NULL) {
            um_hfx_member_free(rcv->hf->member);
        }
        um_msg_release(rcv->hf->msg);
        um_free(rcv->hf);
    }
}

/* ---- facts ---- */

struct stats_call {
    const lbm_hf_rcv_t *hf;
    struct um_hf_stats *out;
    uint64_t *waiting;
};

static int stats_on_loop(void *arg)
{
    const struct stats_call *call = arg;
    *call->out = call->hf->merge.stats;
    *call->waiting = um_hf_waiting(&call->hf->merge);
    return 0;
}

int um_rcv_hf_stats(lbm_hf_rcv_t *hf, struct um_hf_stats *out, uint64_t *waiting)
{
    struct stats_call call = {hf, out, waiting};
    return um_loop_call(hf->rcv->ctx->loop, stats_on_loop, &call);
}
