/* Delivery controller: which topic sequence numbers are due, missing, held or
 * given up, and in what order messages leave. Called on the loop of the context
 * (core/receiver.c) or by the simulator.
 *
 * Invariant: every number from the first one on is delivered, held in the order
 * map (mode 1), in the gap list, or given up. `next` is one past the newest
 * number known; the next number due is the start of the oldest gap, or `next`. */
#include "delivery/um_dc.h"

#include <string.h>

#include "base/um_mem.h"
#include "base/um_sqn.h"
#include "base/um_timer.h"
#include "delivery/gap_list.h"
#include "delivery/order_map.h"
#include "delivery/reassembly.h"

#define DUPLICATE_WINDOW 4096u /* modes 0 and -1: older repetitions are let through */
#define LEAD_MAX (1u << 20)    /* a larger gap is a burst whatever the option says; a TSNI may not claim more */
#define GIVEN_UP_KEPT 16u      /* ranges of numbers given up that are remembered, to tell late ones from repetitions */
#define SPAN_MAX (1u << 30)    /* from the oldest gap to `next`: keeps modular comparison sound */

enum dc_mode { DC_ORDERED = 1, DC_FRAGMENTS = 0, DC_ARRIVAL = -1 };
enum dc_state { DC_NEW, DC_LIVE };

struct um_dc {
    struct um_dc_config config;
    struct um_dc_ops ops;
    void *user;
    enum dc_state state;
    bool delivered_any; /* before: no loss events (leading loss) */
    bool start_known;   /* start_sqn may still be compared with */
    bool hinted;        /* DC_NEW: a TSNI named hint_sqn as the last number sent */
    bool timer_armed;
    uint32_t next;
    uint32_t start_sqn;
    uint32_t hint_sqn;
    struct um_gap_list gaps;
    struct um_order_map order;
    struct um_reassembly reassembly;
    struct um_gap given_up[GIVEN_UP_KEPT]; /* a ring; an empty range means unused */
    uint32_t given_up_next;
    struct um_dc_stats stats;
};

struct um_dc *um_dc_create(const struct um_dc_config *config, const struct um_dc_ops *ops, void *user)
{
    struct um_dc *dc = um_calloc(1, sizeof *dc);
    if (dc == NULL) {
        return NULL;
    }
    dc->config = *config;
    if (dc->config.maximum_burst_loss > LEAD_MAX) {
        dc->config.maximum_burst_loss = LEAD_MAX;
    }
    dc->ops = *ops;
    dc->user = user;
    um_gap_list_init(&dc->gaps);
    um_order_map_init(&dc->order);
    um_reassembly_init(&dc->reassembly, config->reassembly_size_max);
    return dc;
}

void um_dc_destroy(struct um_dc *dc)
{
    if (dc == NULL) {
        return;
    }
    um_reassembly_clear(&dc->reassembly);
    um_order_map_clear(&dc->order);
    um_gap_list_free(&dc->gaps);
    um_free(dc);
}

const struct um_dc_stats *um_dc_stats(const struct um_dc *dc)
{
    return &dc->stats;
}

void um_dc_stats_add(struct um_dc_stats *sum, const struct um_dc_stats *more)
{
    sum->delivered += more->delivered;
    sum->missing += more->missing;
    sum->lost += more->lost;
    sum->bursts += more->bursts;
    sum->map_overflow += more->map_overflow;
    for (int i = 0; i < UM_DC_DISCARD_COUNT; i++) {
        sum->discards[i] += more->discards[i];
    }
}

void um_dc_stats_subtract(struct um_dc_stats *from, const struct um_dc_stats *less)
{
    from->delivered -= less->delivered;
    from->missing -= less->missing;
    from->lost -= less->lost;
    from->bursts -= less->bursts;
    from->map_overflow -= less->map_overflow;
    for (int i = 0; i < UM_DC_DISCARD_COUNT; i++) {
        from->discards[i] -= less->discards[i];
    }
}

size_t um_dc_held(const struct um_dc *dc)
{
    return um_order_map_count(&dc->order);
}

size_t um_dc_reassembly_bytes(const struct um_dc *dc)
{
    return dc->reassembly.bytes;
}

/* ---- outputs ---- */

static inline uint16_t batch_flags_of(const struct um_lbmc_msg *msg)
{
    return (msg->present & UM_LBMC_HAS_BATCH) ? msg->batch_flags : 0;
}

static inline void deliver_whole(struct um_dc *dc, const struct um_lbmc_msg *msg, struct um_buf *buf, uint64_t now_ns)
{
    const struct um_dc_delivery delivery = {
        .data = msg->payload.ptr,
        .len = msg->payload.len,
        .sqn = msg->sqn,
        .first_sqn = msg->sqn,
        .buf = buf,
        .msg = msg,
        .batch_flags = batch_flags_of(msg),
    };
    dc->delivered_any = true;
    dc->stats.delivered++;
    dc->ops.deliver(dc->user, &delivery, now_ns);
}

/* A fragment as it is: mode 0, or a message that consists of one fragment. */
static void deliver_fragment(struct um_dc *dc, const struct um_lbmc_msg *msg, struct um_buf *buf, uint64_t now_ns)
{
    const struct um_dc_delivery delivery = {
        .data = msg->payload.ptr,
        .len = msg->payload.len,
        .sqn = msg->sqn,
        .first_sqn = msg->frag.first_sqn,
        .fragment = dc->config.ordered_delivery == DC_FRAGMENTS,
        .fragmented = true,
        .frag_offset = msg->frag.offset,
        .frag_total = msg->frag.len,
        .buf = buf,
        .msg = msg,
        .batch_flags = batch_flags_of(msg),
    };
    dc->delivered_any = true;
    dc->stats.delivered++;
    dc->ops.deliver(dc->user, &delivery, now_ns);
}

static void deliver_reassembled(struct um_dc *dc, const struct um_reassembled *done, const struct um_lbmc_msg *msg,
                                uint64_t now_ns)
{
    const struct um_dc_delivery delivery = {
        .data = done->buf->data,
        .len = done->len,
        .sqn = done->last_sqn,
        .first_sqn = done->first_sqn,
        .fragmented = true,
        .frag_offset = done->last_offset,
        .frag_total = (uint32_t)done->len,
        .buf = done->buf,
        .msg = msg,
        .batch_flags = done->batch_flags,
    };
    dc->delivered_any = true;
    dc->stats.delivered++;
    dc->ops.deliver(dc->user, &delivery, now_ns);
    um_buf_unref(done->buf);
}

static inline uint32_t due_sqn(struct um_dc *dc)
{
    struct um_gap *oldest = um_gap_list_oldest(&dc->gaps);
    return oldest == NULL ? dc->next : oldest->first;
}

static void discard(struct um_dc *dc, enum um_dc_discard why, uint32_t sqn, uint64_t now_ns)
{
    dc->stats.discards[why]++;
    if (dc->ops.discarded != NULL) {
        dc->ops.discarded(dc->user, why, sqn, now_ns);
    }
}

static void remember_given_up(struct um_dc *dc, uint32_t first, uint32_t end)
{
    struct um_gap *newest = &dc->given_up[(dc->given_up_next + GIVEN_UP_KEPT - 1) % GIVEN_UP_KEPT];
    if (newest->first != newest->end && newest->end == first) {
        newest->end = end;
        return;
    }
    dc->given_up[dc->given_up_next] = (struct um_gap){first, end, 0};
    dc->given_up_next = (dc->given_up_next + 1) % GIVEN_UP_KEPT;
}

static enum um_dc_discard late_or_duplicate(const struct um_dc *dc, uint32_t sqn)
{
    for (uint32_t i = 0; i < GIVEN_UP_KEPT; i++) {
        if (sqn - dc->given_up[i].first < dc->given_up[i].end - dc->given_up[i].first) {
            return UM_DC_LATE;
        }
    }
    return UM_DC_DUPLICATE;
}

void um_dc_finish(struct um_dc *dc, uint64_t now_ns)
{
    size_t held = um_order_map_count(&dc->order) + dc->reassembly.count;
    um_order_map_clear(&dc->order);
    um_reassembly_clear(&dc->reassembly);
    if (held > 0) {
        dc->stats.discards[UM_DC_UNFINISHED] += held - 1;
        discard(dc, UM_DC_UNFINISHED, due_sqn(dc), now_ns);
    }
}

/* Report [first, end) as lost; the messages they belong to cannot be completed any more. */
static void report_lost(struct um_dc *dc, uint32_t first, uint32_t end, uint64_t now_ns)
{
    remember_given_up(dc, first, end);
    for (uint32_t sqn = first; sqn != end; sqn++) {
        dc->stats.lost++;
        if (dc->reassembly.count != 0) {
            um_reassembly_lost(&dc->reassembly, sqn);
        }
        if (dc->delivered_any) {
            dc->ops.loss(dc->user, sqn, now_ns);
        }
    }
}

static void report_burst(struct um_dc *dc, uint32_t first, uint32_t count, uint64_t now_ns)
{
    remember_given_up(dc, first, first + count);
    dc->stats.bursts++;
    dc->stats.lost += count;
    if (dc->delivered_any) {
        dc->ops.burst_loss(dc->user, first, count, now_ns);
    }
}

/* Every number is here, but the message was beyond a bound or contradicted itself. */
static void report_dropped_message(struct um_dc *dc, uint32_t sqn, uint64_t now_ns)
{
    discard(dc, UM_DC_REASSEMBLY, sqn, now_ns);
    dc->stats.lost++;
    dc->ops.loss(dc->user, sqn, now_ns);
}

static void report_missing(struct um_dc *dc, uint32_t first, uint32_t count, uint64_t now_ns)
{
    dc->stats.missing += count;
    if (dc->ops.missing != NULL) {
        dc->ops.missing(dc->user, first, count, now_ns);
    }
}

/* ---- one accepted message or fragment, its turn having come ---- */

static void reassemble(struct um_dc *dc, const struct um_lbmc_msg *msg, uint64_t now_ns)
{
    struct um_reassembled done;
    uint32_t evicted;
    bool has_evicted;
    enum um_reassembly_rc rc = um_reassembly_add(&dc->reassembly, msg, &done, &evicted, &has_evicted);
    if (has_evicted) {
        report_dropped_message(dc, evicted, now_ns);
    }
    if (rc == UM_REASSEMBLY_COMPLETE) {
        deliver_reassembled(dc, &done, msg, now_ns);
    } else if (rc == UM_REASSEMBLY_GIVEN_UP) {
        report_dropped_message(dc, msg->sqn, now_ns);
    } else if (rc == UM_REASSEMBLY_IGNORED) {
        discard(dc, UM_DC_DUPLICATE, msg->sqn, now_ns);
    }
}

/* Mode 1: only one message can be in progress; whatever begins anew ends the one before it. */
static void end_previous(struct um_dc *dc, uint64_t now_ns)
{
    uint32_t first_sqn;
    if (um_reassembly_unfinished(&dc->reassembly, &first_sqn)) {
        report_dropped_message(dc, first_sqn, now_ns);
    }
    um_reassembly_clear(&dc->reassembly);
}

static void accept(struct um_dc *dc, const struct um_lbmc_msg *msg, struct um_buf *buf, uint64_t now_ns)
{
    bool fragment = (msg->present & UM_LBMC_HAS_FRAG) != 0;
    bool begins = !fragment || msg->frag.offset == 0;
    if (dc->config.ordered_delivery == DC_ORDERED && begins && dc->reassembly.count != 0) {
        end_previous(dc, now_ns);
    }
    if (!fragment) {
        deliver_whole(dc, msg, buf, now_ns);
    } else if (dc->config.ordered_delivery == DC_FRAGMENTS || msg->payload.len == msg->frag.len) {
        deliver_fragment(dc, msg, buf, now_ns);
    } else if (begins || um_reassembly_has(&dc->reassembly, msg->frag.first_sqn)) {
        reassemble(dc, msg, now_ns);
    } else if (dc->config.ordered_delivery == DC_ARRIVAL &&
               !(dc->start_known && um_sqn_older(msg->frag.first_sqn, dc->start_sqn))) {
        reassemble(dc, msg, now_ns);
    } else {
        discard(dc, UM_DC_HEADLESS, msg->sqn, now_ns);
    }
}

/* ---- gaps ---- */

/* Mode 1: deliver what is held from `sqn` up to the next gap. */
static void drain(struct um_dc *dc, uint32_t sqn, uint64_t now_ns)
{
    uint32_t end = due_sqn(dc);
    for (; sqn != end; sqn++) {
        struct um_held *held = um_order_map_take(&dc->order, sqn);
        if (held != NULL) {
            accept(dc, &held->msg, held->buf, now_ns);
            um_held_free(held);
        }
    }
}

static void give_up_oldest(struct um_dc *dc, uint64_t now_ns)
{
    struct um_gap gap = *um_gap_list_oldest(&dc->gaps);
    um_gap_list_pop(&dc->gaps);
    report_lost(dc, gap.first, gap.end, now_ns);
    if (dc->config.ordered_delivery == DC_ORDERED) {
        drain(dc, gap.end, now_ns);
    }
}

/* Without a gap timeout (an ordered transport) a gap is lost as soon as something newer arrives. */
static void expire(struct um_dc *dc, uint64_t now_ns, uint32_t arrived)
{
    struct um_gap *gap;
    while ((gap = um_gap_list_oldest(&dc->gaps)) != NULL) {
        bool due = dc->config.gap_timeout_ns == 0 ? um_sqn_older(gap->first, arrived)
                                                  : now_ns - gap->detected_ns >= dc->config.gap_timeout_ns;
        if (!due) {
            break;
        }
        give_up_oldest(dc, now_ns);
    }
}

static bool over_limit(struct um_dc *dc)
{
    if (dc->gaps.count == 0) {
        return false;
    }
    if (dc->next - due_sqn(dc) > SPAN_MAX) {
        return true;
    }
    uint32_t limit = dc->config.map_entries_max;
    size_t entries = dc->config.ordered_delivery == DC_ORDERED ? um_order_map_count(&dc->order) : dc->gaps.count;
    return limit != 0 && entries > limit;
}

static void enforce_limit(struct um_dc *dc, uint64_t now_ns)
{
    while (over_limit(dc)) {
        dc->stats.map_overflow++;
        give_up_oldest(dc, now_ns);
    }
}

static void keep_timer(struct um_dc *dc, uint64_t now_ns)
{
    if (dc->config.loss_check_interval_ns == 0) {
        return;
    }
    bool wanted = dc->gaps.count != 0;
    if (wanted != dc->timer_armed) {
        dc->timer_armed = wanted;
        dc->ops.set_timer(dc->user, wanted ? now_ns + dc->config.loss_check_interval_ns : UM_NEVER);
    }
}

/* [next, end) was never seen. Afterwards next == end. */
static void open_gap(struct um_dc *dc, uint32_t end, uint64_t now_ns)
{
    uint32_t count = end - dc->next;
    report_missing(dc, dc->next, count, now_ns);
    if (count >= dc->config.maximum_burst_loss) {
        uint32_t first = dc->next;
        if (dc->config.ordered_delivery == DC_ORDERED) {
            first = due_sqn(dc);
            um_order_map_clear(&dc->order);
            um_gap_list_free(&dc->gaps);
            um_reassembly_clear(&dc->reassembly);
        } else {
            um_reassembly_lost(&dc->reassembly, first); /* its owner cannot become whole */
        }
        dc->next = end;
        report_burst(dc, first, end - first, now_ns);
        return;
    }
    if (um_gap_list_push(&dc->gaps, dc->next, end, now_ns)) {
        dc->next = end;
        return;
    }
    dc->stats.map_overflow++; /* no memory to remember it: lost now, after what is older */
    while (dc->gaps.count != 0) {
        give_up_oldest(dc, now_ns);
    }
    uint32_t first = dc->next;
    dc->next = end;
    report_lost(dc, first, end, now_ns);
}

/* ---- inputs ---- */

static bool frag_ok(struct um_dc *dc, const struct um_lbmc_msg *msg, uint64_t now_ns)
{
    if (!(msg->present & UM_LBMC_HAS_FRAG) || um_reassembly_frag_valid(msg)) {
        return true;
    }
    discard(dc, UM_DC_MALFORMED, msg->sqn, now_ns);
    return false;
}

/* The first message decides where the stream begins for us. False: in the middle of a message, nothing begins yet. */
static bool begin(struct um_dc *dc, const struct um_lbmc_msg *msg)
{
    uint32_t start = msg->sqn;
    uint32_t ahead = msg->sqn - (dc->hint_sqn + 1);
    if (dc->hinted && ahead < dc->config.maximum_burst_loss) {
        start = dc->hint_sqn + 1;
    } else if ((msg->present & UM_LBMC_HAS_FRAG) && msg->frag.offset != 0 &&
               dc->config.ordered_delivery != DC_FRAGMENTS) {
        return false;
    }
    dc->state = DC_LIVE;
    dc->next = start;
    dc->start_sqn = start;
    dc->start_known = true;
    return true;
}

/* Newer than all before, perhaps beyond a gap. */
static void on_newer(struct um_dc *dc, uint64_t now_ns, const struct um_lbmc_msg *msg, struct um_buf *buf)
{
    uint32_t sqn = msg->sqn;
    if (sqn != dc->next) {
        if (dc->config.gap_timeout_ns == 0 && dc->gaps.count == 0 &&
            sqn - dc->next < dc->config.maximum_burst_loss) { /* nothing to wait for: skip the bookkeeping */
            uint32_t first = dc->next;
            report_missing(dc, first, sqn - first, now_ns);
            dc->next = sqn;
            report_lost(dc, first, sqn, now_ns);
        } else {
            open_gap(dc, sqn, now_ns);
        }
    }
    if (dc->config.ordered_delivery != DC_ORDERED || dc->gaps.count == 0) {
        dc->next = sqn + 1;
        accept(dc, msg, buf, now_ns);
    } else if (um_order_map_hold(&dc->order, msg, buf)) {
        dc->next = sqn + 1;
    } else {
        discard(dc, UM_DC_NO_ROOM, sqn, now_ns); /* as if it had not arrived: a later number opens the gap */
    }
}

/* Older than the newest: fills a gap, or is a repetition. */
static void on_older(struct um_dc *dc, uint64_t now_ns, const struct um_lbmc_msg *msg, struct um_buf *buf)
{
    uint32_t sqn = msg->sqn;
    struct um_gap *gap = um_gap_list_find(&dc->gaps, sqn);
    if (gap == NULL) {
        bool let_through = dc->config.ordered_delivery != DC_ORDERED && dc->next - sqn > DUPLICATE_WINDOW &&
                           !(msg->present & UM_LBMC_HAS_FRAG);
        if (let_through) {
            accept(dc, msg, buf, now_ns);
        } else {
            discard(dc, late_or_duplicate(dc, sqn), sqn, now_ns);
        }
        return;
    }
    bool ordered = dc->config.ordered_delivery == DC_ORDERED;
    bool due = sqn == due_sqn(dc);
    if (ordered && !due && !um_order_map_hold(&dc->order, msg, buf)) {
        discard(dc, UM_DC_NO_ROOM, sqn, now_ns);
        return;
    }
    if (!um_gap_list_fill(&dc->gaps, gap, sqn)) {
        struct um_held *held = um_order_map_take(&dc->order, sqn);
        if (held != NULL) {
            um_held_free(held);
        }
        discard(dc, UM_DC_NO_ROOM, sqn, now_ns);
        return;
    }
    if (!ordered || due) {
        accept(dc, msg, buf, now_ns);
    }
    if (ordered && due) {
        drain(dc, sqn + 1, now_ns);
    }
}

static void on_data_slow(struct um_dc *dc, uint64_t now_ns, const struct um_lbmc_msg *msg, struct um_buf *buf)
{
    if (!frag_ok(dc, msg, now_ns)) {
        return;
    }
    if (dc->state == DC_NEW && !begin(dc, msg)) {
        discard(dc, UM_DC_HEADLESS, msg->sqn, now_ns);
        return;
    }
    if (dc->start_known && dc->next - dc->start_sqn > SPAN_MAX) {
        dc->start_known = false;
    }
    if (um_sqn_older(msg->sqn, dc->next)) {
        on_older(dc, now_ns, msg, buf);
    } else {
        on_newer(dc, now_ns, msg, buf);
    }
    if (dc->gaps.count != 0) {
        expire(dc, now_ns, msg->sqn);
        enforce_limit(dc, now_ns);
    }
    keep_timer(dc, now_ns);
}

void um_dc_on_data(struct um_dc *dc, uint64_t now_ns, const struct um_lbmc_msg *msg, struct um_buf *buf)
{
    if (msg->sqn == dc->next && dc->state == DC_LIVE && dc->gaps.count == 0 && dc->reassembly.count == 0 &&
        !(msg->present & UM_LBMC_HAS_FRAG)) {
        dc->next = msg->sqn + 1;
        deliver_whole(dc, msg, buf, now_ns);
        return;
    }
    on_data_slow(dc, now_ns, msg, buf);
}

bool um_dc_in_order(const struct um_dc *dc, uint32_t *next)
{
    *next = dc->next;
    return dc->state == DC_LIVE && dc->gaps.count == 0 && dc->reassembly.count == 0;
}

void um_dc_took(struct um_dc *dc, uint32_t count)
{
    dc->next += count;
    dc->delivered_any = true;
    dc->stats.delivered += count;
}

void um_dc_on_tsni(struct um_dc *dc, uint64_t now_ns, uint32_t last_sqn)
{
    if (dc->state == DC_NEW) {
        if (!dc->hinted) {
            dc->hinted = true;
            dc->hint_sqn = last_sqn;
        }
        return;
    }
    if (dc->gaps.count != 0) {
        expire(dc, now_ns, last_sqn + 1);
    }
    uint32_t end = last_sqn + 1;
    if (um_sqn_newer(end, dc->next)) {
        if (end - dc->next > LEAD_MAX) {
            discard(dc, UM_DC_MALFORMED, last_sqn, now_ns);
        } else {
            open_gap(dc, end, now_ns);
            enforce_limit(dc, now_ns);
        }
    }
    keep_timer(dc, now_ns);
}

void um_dc_on_timer(struct um_dc *dc, uint64_t now_ns)
{
    dc->timer_armed = false;
    if (dc->config.gap_timeout_ns != 0) {
        expire(dc, now_ns, dc->next);
    } else {
        while (dc->gaps.count != 0) { /* only a TSNI leaves a gap open on an ordered transport */
            give_up_oldest(dc, now_ns);
        }
    }
    keep_timer(dc, now_ns);
}
