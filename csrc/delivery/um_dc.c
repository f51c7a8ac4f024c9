/* Delivery controller: what arrives, and in what order it leaves. Called on the
 * loop of the stream's session (core/um_rcv_flow.c) or by the simulator. Where
 * the stream begins, what is missing and what recovery brings are in the files
 * beside this one (um_dc_private.h). */
#include "delivery/um_dc.h"

#include <string.h>

#include "base/um_intern.h"
#include "base/um_mem.h"
#include "base/um_sqn.h"
#include "base/um_timer.h"
#include "delivery/um_dc_private.h"

#define DUPLICATE_WINDOW 4096u /* modes 0 and -1: older repetitions are let through */

/* NULL: out of memory. */
static const struct um_dc_config *share_config(const struct um_dc_config *config)
{
    struct um_dc_config own;
    memset(&own, 0, sizeof own); /* the padding, too */
    own.ordered_delivery = config->ordered_delivery;
    own.maximum_burst_loss = config->maximum_burst_loss > UM_DC_LEAD_MAX ? UM_DC_LEAD_MAX : config->maximum_burst_loss;
    own.gap_timeout_ns = config->gap_timeout_ns;
    own.loss_check_interval_ns = config->loss_check_interval_ns;
    own.map_entries_max = config->map_entries_max;
    own.reassembly_size_max = config->reassembly_size_max;
    own.recovery_timeout_ns = config->recovery_timeout_ns;
    own.caching_proximity = config->caching_proximity;
    own.recovery_entries_max = config->recovery_entries_max;
    own.recovers_bursts = config->recovers_bursts;
    return um_intern(&own, sizeof own);
}

struct um_dc *um_dc_create(const struct um_dc_config *config, const struct um_dc_ops *ops, void *user)
{
    struct um_dc *dc = um_calloc(1, sizeof *dc);
    if (dc == NULL || (dc->config = share_config(config)) == NULL) {
        um_free(dc);
        return NULL;
    }
    dc->mode = (int8_t)dc->config->ordered_delivery;
    dc->ops = ops;
    dc->user = user;
    return dc;
}

static void free_disorder(struct um_dc *dc)
{
    if (dc->disorder != NULL) {
        um_order_map_clear(&dc->disorder->order);
        um_gap_list_free(&dc->disorder->gaps);
        um_free(dc->disorder);
        dc->disorder = NULL;
    }
}

static void clear_reassembly(struct um_dc *dc)
{
    if (dc->reassembly != NULL) {
        um_reassembly_clear(dc->reassembly);
    }
}

void um_dc_destroy(struct um_dc *dc)
{
    if (dc == NULL) {
        return;
    }
    clear_reassembly(dc);
    um_dc_opening_free(dc);
    free_disorder(dc);
    um_free(dc->past);
    um_free(dc->reassembly);
    um_intern_drop(dc->config);
    um_free(dc);
}

/* not begun -> open, or opening; opening -> not begun (its messages are placed then) -> open. */
void um_dc_enter(struct um_dc *dc, enum um_dc_state state)
{
    bool was_opening = dc->state == UM_DC_OPENING, opening = state == UM_DC_OPENING;
    dc->state = (uint8_t)state;
    if (was_opening != opening && dc->ops->opening != NULL) {
        dc->ops->opening(dc->user, opening);
    }
}

void um_dc_settle(struct um_dc *dc, uint64_t now_ns)
{
    um_dc_keep_timer(dc, now_ns);
    if (um_dc_gaps(dc) == 0) {
        free_disorder(dc);
    }
    dc->plain = dc->state == UM_DC_OPEN && dc->disorder == NULL && um_dc_partials(dc) == 0 && !dc->after_expected;
}

/* ---- facts ---- */

struct um_dc_past *um_dc_past_of(struct um_dc *dc)
{
    if (dc->past == NULL) {
        dc->past = um_calloc(1, sizeof *dc->past);
    }
    return dc->past;
}

void um_dc_count(struct um_dc *dc, size_t counter, uint64_t n)
{
    struct um_dc_past *past = um_dc_past_of(dc);
    if (past == NULL) {
        dc->uncounted += n;
    } else {
        *(uint64_t *)((char *)&past->stats + counter) += n;
    }
}

struct um_dc_stats um_dc_stats(const struct um_dc *dc)
{
    struct um_dc_stats stats = {0};
    if (dc->past != NULL) {
        stats = dc->past->stats;
    }
    stats.delivered = dc->delivered;
    stats.discards[UM_DC_NO_ROOM] += dc->uncounted;
    return stats;
}

void um_dc_stats_add(struct um_dc_stats *sum, const struct um_dc_stats *more)
{
    sum->delivered += more->delivered;
    sum->missing += more->missing;
    sum->lost += more->lost;
    sum->bursts += more->bursts;
    sum->expected += more->expected;
    sum->skipped += more->skipped;
    sum->openings_cut += more->openings_cut;
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
    from->expected -= less->expected;
    from->skipped -= less->skipped;
    from->openings_cut -= less->openings_cut;
    from->map_overflow -= less->map_overflow;
    for (int i = 0; i < UM_DC_DISCARD_COUNT; i++) {
        from->discards[i] -= less->discards[i];
    }
}

uint32_t um_dc_due(const struct um_dc *dc)
{
    return um_dc_gaps(dc) == 0 ? dc->next : um_dc_gap(dc, 0)->first;
}

size_t um_dc_held(const struct um_dc *dc)
{
    return (dc->disorder == NULL ? 0 : um_order_map_count(&dc->disorder->order)) +
           (dc->opening == NULL ? 0 : dc->opening->count);
}

size_t um_dc_bytes(const struct um_dc *dc)
{
    size_t bytes = sizeof *dc + (dc->past == NULL ? 0 : sizeof *dc->past);
    if (dc->disorder != NULL) {
        bytes += sizeof *dc->disorder + dc->disorder->gaps.capacity * sizeof(struct um_gap) +
                 um_order_map_bytes(&dc->disorder->order);
    }
    if (dc->opening != NULL) {
        bytes += sizeof *dc->opening + dc->opening->capacity * sizeof(struct um_held);
    }
    return bytes;
}

size_t um_dc_reassembly_bytes(const struct um_dc *dc)
{
    return dc->reassembly == NULL ? 0 : dc->reassembly->bytes;
}

bool um_dc_waits(const struct um_dc *dc, uint64_t now_ns)
{
    if (dc->state == UM_DC_OPENING) {
        return !um_dc_opening_complete(dc);
    }
    if (um_dc_gaps(dc) == 0) {
        return false;
    }
    const struct um_gap *oldest = um_dc_gap(dc, 0);
    return oldest->owner == UM_GAP_RECOVERY || now_ns - oldest->detected_ns < dc->config->gap_timeout_ns;
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
    dc->heard = true;
    dc->delivered++;
    dc->ops->deliver(dc->user, &delivery, now_ns);
}

/* A fragment as it is: mode 0, or a message that consists of one fragment. */
static void deliver_fragment(struct um_dc *dc, const struct um_lbmc_msg *msg, struct um_buf *buf, uint64_t now_ns)
{
    const struct um_dc_delivery delivery = {
        .data = msg->payload.ptr,
        .len = msg->payload.len,
        .sqn = msg->sqn,
        .first_sqn = msg->frag.first_sqn,
        .fragment = dc->mode == UM_DC_FRAGMENTS,
        .fragmented = true,
        .frag_offset = msg->frag.offset,
        .frag_total = msg->frag.len,
        .buf = buf,
        .msg = msg,
        .batch_flags = batch_flags_of(msg),
    };
    dc->heard = true;
    dc->delivered++;
    dc->ops->deliver(dc->user, &delivery, now_ns);
}

static void deliver_reassembled(struct um_dc *dc, const struct um_reassembled *done, const struct um_lbmc_msg *msg,
                                uint64_t now_ns)
{
    struct um_lbmc_msg with_chain;
    if (done->chain_len > 0) {
        with_chain = *msg;
        with_chain.present |= UM_LBMC_HAS_APPHDR_CHAIN;
        with_chain.apphdr_chain = (struct um_slice){done->chain, done->chain_len};
        um_chain_summarise(with_chain.apphdr_chain, &with_chain.chain_summary); /* it was well-formed as it came */
        msg = &with_chain;
    }
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
    dc->heard = true;
    dc->delivered++;
    dc->ops->deliver(dc->user, &delivery, now_ns);
    um_buf_unref(done->buf);
}

void um_dc_discard(struct um_dc *dc, enum um_dc_discard why, uint32_t sqn, uint64_t now_ns)
{
    struct um_dc_past *past = um_dc_past_of(dc);
    if (past != NULL) {
        past->stats.discards[why]++;
    } else {
        dc->uncounted++;
    }
    if (dc->ops->discarded != NULL) {
        dc->ops->discarded(dc->user, why, sqn, now_ns);
    }
}

/* Every number is here, but the message was beyond a bound or contradicted itself. */
static void report_dropped_message(struct um_dc *dc, uint32_t sqn, uint64_t now_ns)
{
    um_dc_discard(dc, UM_DC_REASSEMBLY, sqn, now_ns);
    UM_DC_COUNT(dc, lost, 1);
    dc->ops->loss(dc->user, sqn, now_ns);
}

/* ---- one accepted message or fragment, its turn having come ---- */

static bool can_reassemble(struct um_dc *dc)
{
    if (dc->reassembly == NULL) {
        dc->reassembly = um_malloc(sizeof *dc->reassembly);
        if (dc->reassembly != NULL) {
            um_reassembly_init(dc->reassembly);
        }
    }
    return dc->reassembly != NULL;
}

static void reassemble(struct um_dc *dc, const struct um_lbmc_msg *msg, uint64_t now_ns)
{
    struct um_reassembled done;
    uint32_t evicted;
    bool has_evicted;
    dc->heard = true;
    if (!can_reassemble(dc)) {
        report_dropped_message(dc, msg->sqn, now_ns);
        return;
    }
    enum um_reassembly_rc rc =
        um_reassembly_add(dc->reassembly, dc->config->reassembly_size_max, msg, &done, &evicted, &has_evicted);
    if (has_evicted) {
        report_dropped_message(dc, evicted, now_ns);
    }
    if (rc == UM_REASSEMBLY_COMPLETE) {
        deliver_reassembled(dc, &done, msg, now_ns);
    } else if (rc == UM_REASSEMBLY_GIVEN_UP) {
        report_dropped_message(dc, msg->sqn, now_ns);
    } else if (rc == UM_REASSEMBLY_IGNORED) {
        um_dc_discard(dc, UM_DC_DUPLICATE, msg->sqn, now_ns);
    }
}

/* Mode 1: only one message can be in progress; whatever begins anew ends the one before it. */
static void end_previous(struct um_dc *dc, uint64_t now_ns)
{
    uint32_t first_sqn;
    if (um_reassembly_unfinished(dc->reassembly, &first_sqn)) {
        report_dropped_message(dc, first_sqn, now_ns);
    }
    um_reassembly_clear(dc->reassembly);
}

static void accept(struct um_dc *dc, const struct um_lbmc_msg *msg, struct um_buf *buf, uint64_t now_ns)
{
    bool fragment = (msg->present & UM_LBMC_HAS_FRAG) != 0;
    bool begins = !fragment || msg->frag.offset == 0;
    if (dc->mode == UM_DC_ORDERED && begins && um_dc_partials(dc) != 0) {
        end_previous(dc, now_ns);
    }
    if (!fragment) {
        deliver_whole(dc, msg, buf, now_ns);
    } else if (dc->mode == UM_DC_FRAGMENTS || msg->payload.len == msg->frag.len) {
        deliver_fragment(dc, msg, buf, now_ns);
    } else if (begins || (um_dc_partials(dc) != 0 && um_reassembly_has(dc->reassembly, msg->frag.first_sqn))) {
        reassemble(dc, msg, now_ns);
    } else if (dc->mode == UM_DC_ARRIVAL && !(dc->start_known && um_sqn_older(msg->frag.first_sqn, dc->start_sqn))) {
        reassemble(dc, msg, now_ns);
    } else {
        um_dc_discard(dc, UM_DC_HEADLESS, msg->sqn, now_ns);
    }
}

void um_dc_drain(struct um_dc *dc, uint32_t sqn, uint64_t now_ns)
{
    struct um_lbmc_msg msg;
    uint32_t end = um_dc_due(dc);
    for (; sqn != end; sqn++) {
        struct um_held *held = um_order_map_take(&dc->disorder->order, sqn);
        if (held != NULL) {
            um_held_view(held, &msg);
            accept(dc, &msg, held->buf, now_ns);
            um_order_map_free(held);
        }
    }
}

/* ---- where the stream begins ---- */

static bool frag_ok(struct um_dc *dc, const struct um_lbmc_msg *msg, uint64_t now_ns)
{
    if (!(msg->present & UM_LBMC_HAS_FRAG) || um_reassembly_frag_valid(msg)) {
        return true;
    }
    um_dc_discard(dc, UM_DC_MALFORMED, msg->sqn, now_ns);
    return false;
}

void um_dc_begin_at(struct um_dc *dc, uint32_t start)
{
    um_dc_enter(dc, UM_DC_OPEN);
    dc->next = start;
    dc->start_sqn = start;
    dc->start_known = true;
}

bool um_dc_follows_hint(const struct um_dc *dc, uint32_t sqn)
{
    return dc->hinted && sqn - (dc->hint_sqn + 1) <= UM_DC_LEAD_MAX;
}

void um_dc_begin_at_hint(struct um_dc *dc)
{
    um_dc_begin_at(dc, dc->hint_sqn + 1);
    dc->heard = true;
}

/* The first message decides where the stream begins for us. False: in the middle of a message, nothing begins yet. */
static bool begin(struct um_dc *dc, const struct um_lbmc_msg *msg)
{
    if (um_dc_follows_hint(dc, msg->sqn)) {
        um_dc_begin_at_hint(dc);
    } else if ((msg->present & UM_LBMC_HAS_FRAG) && msg->frag.offset != 0 && dc->mode != UM_DC_FRAGMENTS) {
        return false;
    } else {
        um_dc_begin_at(dc, msg->sqn);
    }
    return true;
}

/* ---- arrivals of an open stream ---- */

/* Newer than all before, perhaps beyond a gap. */
static void on_newer(struct um_dc *dc, uint64_t now_ns, const struct um_lbmc_msg *msg, struct um_buf *buf)
{
    uint32_t sqn = msg->sqn;
    bool live = !um_dc_off_transport(msg);
    if (sqn != dc->next && !live) {
        um_dc_discard(dc, UM_DC_UNASKED, sqn, now_ns);
        return;
    }
    if (sqn != dc->next) {
        if (dc->config->gap_timeout_ns == 0 && um_dc_gaps(dc) == 0 && dc->ops->recovery_wanted == NULL &&
            sqn - dc->next < dc->config->maximum_burst_loss) { /* nothing to wait for: skip the bookkeeping */
            uint32_t first = dc->next;
            um_dc_report_missing(dc, first, sqn - first, now_ns);
            dc->next = sqn;
            um_dc_report_lost(dc, first, sqn, now_ns);
        } else {
            um_dc_open_gap(dc, sqn, now_ns);
        }
    }
    dc->after_expected = dc->after_expected && !live;
    if (live && um_dc_defer(dc, now_ns, sqn)) {
        return;
    }
    if (!um_dc_ordered(dc) || um_dc_gaps(dc) == 0) {
        dc->next = sqn + 1;
        accept(dc, msg, buf, now_ns);
    } else if (um_order_map_hold(&dc->disorder->order, msg, buf)) {
        dc->next = sqn + 1;
    } else {
        um_dc_discard(dc, UM_DC_NO_ROOM, sqn, now_ns); /* as if it had not arrived: a later number opens the gap */
    }
}

/* Older than the newest, and in no gap: late, or here already. */
static void on_known(struct um_dc *dc, uint64_t now_ns, const struct um_lbmc_msg *msg, struct um_buf *buf)
{
    uint32_t sqn = msg->sqn;
    bool let_through = !um_dc_ordered(dc) && dc->next - sqn > DUPLICATE_WINDOW && !um_dc_off_transport(msg) &&
                       !(msg->present & UM_LBMC_HAS_FRAG);
    if (let_through) {
        accept(dc, msg, buf, now_ns);
    } else {
        um_dc_discard(dc, um_dc_given_up(dc, sqn) ? UM_DC_LATE : UM_DC_DUPLICATE, sqn, now_ns);
    }
}

/* Older than the newest: fills a gap, or is known. */
static void on_older(struct um_dc *dc, uint64_t now_ns, const struct um_lbmc_msg *msg, struct um_buf *buf)
{
    uint32_t sqn = msg->sqn;
    struct um_gap *gap = um_dc_gaps(dc) == 0 ? NULL : um_gap_list_find(&dc->disorder->gaps, sqn);
    if (gap == NULL) {
        on_known(dc, now_ns, msg, buf);
        return;
    }
    bool ordered = um_dc_ordered(dc);
    bool due = sqn == um_dc_due(dc);
    bool recovered = gap->owner != UM_GAP_TRANSPORT;
    if (ordered && !due && !um_order_map_hold(&dc->disorder->order, msg, buf)) {
        um_dc_discard(dc, UM_DC_NO_ROOM, sqn, now_ns);
        return;
    }
    if (!um_gap_list_fill(&dc->disorder->gaps, gap, sqn)) {
        struct um_held *held = um_order_map_take(&dc->disorder->order, sqn);
        if (held != NULL) {
            um_order_map_free(held);
        }
        um_dc_discard(dc, UM_DC_NO_ROOM, sqn, now_ns);
        return;
    }
    if (recovered) {
        um_dc_recovered(dc, now_ns, sqn);
    }
    if (!ordered || due) {
        accept(dc, msg, buf, now_ns);
    }
    if (ordered && due) {
        um_dc_drain(dc, sqn + 1, now_ns);
    }
}

void um_dc_place(struct um_dc *dc, uint64_t now_ns, const struct um_lbmc_msg *msg, struct um_buf *buf)
{
    if (dc->state == UM_DC_NOT_BEGUN && !begin(dc, msg)) {
        um_dc_discard(dc, UM_DC_HEADLESS, msg->sqn, now_ns);
        return;
    }
    if (dc->start_known && dc->next - dc->start_sqn > UM_DC_SPAN_MAX) {
        dc->start_known = false;
    }
    if (um_sqn_older(msg->sqn, dc->next)) {
        on_older(dc, now_ns, msg, buf);
    } else {
        on_newer(dc, now_ns, msg, buf);
    }
    if (um_dc_gaps(dc) != 0) {
        um_dc_expire(dc, now_ns, um_dc_off_transport(msg) ? um_dc_due(dc) : msg->sqn);
        um_dc_enforce_limit(dc, now_ns);
    }
}

static void on_data_slow(struct um_dc *dc, uint64_t now_ns, const struct um_lbmc_msg *msg, struct um_buf *buf)
{
    if (!frag_ok(dc, msg, now_ns)) {
        return;
    }
    if (dc->state == UM_DC_NOT_BEGUN && um_dc_off_transport(msg)) {
        um_dc_discard(dc, UM_DC_UNASKED, msg->sqn, now_ns);
    } else if (dc->state == UM_DC_OPENING || (dc->state == UM_DC_NOT_BEGUN && um_dc_opening_begin(dc, msg->sqn))) {
        um_dc_opening_hold(dc, now_ns, msg, buf);
    } else {
        um_dc_place(dc, now_ns, msg, buf);
    }
    um_dc_settle(dc, now_ns);
}

void um_dc_on_data(struct um_dc *dc, uint64_t now_ns, const struct um_lbmc_msg *msg, struct um_buf *buf)
{
    if (msg->sqn == dc->next && dc->plain && !(msg->present & UM_LBMC_HAS_FRAG)) {
        dc->next = msg->sqn + 1;
        deliver_whole(dc, msg, buf, now_ns);
        return;
    }
    on_data_slow(dc, now_ns, msg, buf);
}

bool um_dc_in_order(const struct um_dc *dc, uint32_t *next)
{
    *next = dc->next;
    return dc->plain;
}

void um_dc_took(struct um_dc *dc, uint32_t count)
{
    dc->next += count;
    dc->heard = true;
    dc->delivered += count;
}

bool um_dc_take(struct um_dc *dc, uint32_t sqn)
{
    if (sqn != dc->next || !dc->plain) {
        return false;
    }
    dc->next = sqn + 1;
    dc->heard = true;
    dc->delivered++;
    return true;
}

/* ---- what the source tells, time, the end ---- */

void um_dc_told(struct um_dc *dc, uint64_t now_ns, uint32_t last_sqn)
{
    uint32_t end = last_sqn + 1;
    um_dc_expire(dc, now_ns, end);
    if (um_sqn_newer(end, dc->next)) {
        if (end - dc->next > UM_DC_LEAD_MAX) {
            um_dc_discard(dc, UM_DC_MALFORMED, last_sqn, now_ns);
            return;
        }
        um_dc_open_gap(dc, end, now_ns);
        um_dc_enforce_limit(dc, now_ns);
    }
    dc->after_expected = dc->after_expected && end != dc->next; /* it is known now where the live stream stands */
}

/* Nothing came yet, and the source tells its last number for the first time, or another one: then something was sent to
 * us. */
static void told_not_begun(struct um_dc *dc, uint64_t now_ns, uint32_t last_sqn)
{
    if (!dc->hinted) {
        dc->hinted = true;
        dc->hint_sqn = last_sqn;
        return;
    }
    if (last_sqn == dc->hint_sqn || !um_dc_follows_hint(dc, last_sqn)) {
        return;
    }
    if (um_dc_opening_begin(dc, last_sqn)) {
        dc->opening->told = true;
        dc->opening->told_sqn = last_sqn;
    } else {
        um_dc_begin_at_hint(dc);
        um_dc_told(dc, now_ns, last_sqn);
    }
}

void um_dc_on_tsni(struct um_dc *dc, uint64_t now_ns, uint32_t last_sqn)
{
    switch ((enum um_dc_state)dc->state) {
    case UM_DC_NOT_BEGUN:
        told_not_begun(dc, now_ns, last_sqn);
        break;
    case UM_DC_OPENING:
        if (!dc->opening->told || um_sqn_newer(last_sqn, dc->opening->told_sqn)) {
            dc->opening->told = true;
            dc->opening->told_sqn = last_sqn;
        }
        break;
    case UM_DC_OPEN:
        um_dc_told(dc, now_ns, last_sqn);
        break;
    }
    um_dc_settle(dc, now_ns);
}

void um_dc_on_timer(struct um_dc *dc, uint64_t now_ns)
{
    dc->timer_armed = false;
    um_dc_expire(dc, now_ns, dc->next); /* also what only a TSNI told of on an ordered transport */
    um_dc_settle(dc, now_ns);
}

void um_dc_end(struct um_dc *dc, uint64_t now_ns)
{
    uint32_t first_sqn;
    if (dc->state == UM_DC_OPENING) {
        um_dc_opening_release(dc, um_dc_opening_complete(dc), now_ns);
    }
    um_dc_give_up_all(dc, now_ns);
    while (um_dc_partials(dc) != 0 && um_reassembly_abandon(dc->reassembly, &first_sqn)) {
        um_dc_discard(dc, UM_DC_UNFINISHED, first_sqn, now_ns);
        UM_DC_COUNT(dc, lost, 1);
        dc->ops->loss(dc->user, first_sqn, now_ns);
    }
    um_dc_settle(dc, now_ns);
}

void um_dc_finish(struct um_dc *dc, uint64_t now_ns)
{
    size_t held = um_dc_held(dc) + um_dc_partials(dc);
    uint32_t due = um_dc_due(dc);
    if (dc->state == UM_DC_OPENING) {
        um_dc_enter(dc, UM_DC_NOT_BEGUN);
    }
    um_dc_opening_free(dc);
    if (dc->disorder != NULL) {
        um_order_map_clear(&dc->disorder->order);
    }
    clear_reassembly(dc);
    if (held > 0) {
        UM_DC_COUNT(dc, discards[UM_DC_UNFINISHED], held - 1);
        um_dc_discard(dc, UM_DC_UNFINISHED, due, now_ns);
    }
}
