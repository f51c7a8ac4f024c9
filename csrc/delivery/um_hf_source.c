/* Sources of the hot failover engine: which count they are in, resets, and
 * messages over a hole that may hide one. See um_hf.h. */
#include "base/um_sqn.h"
#include "base/um_timer.h"
#include "base/um_mem.h"
#include "delivery/um_hf_private.h"

void um_hf_join(struct um_hf *hf, struct um_hf_source *source)
{
    *source = (struct um_hf_source){.resets = hf->resets};
    um_list_init(&source->doubts);
    um_list_push_back(&hf->sources, &source->node);
}

/* ---- doubts ---- */

static bool doubts(const struct um_hf_source *source)
{
    return !um_list_empty(&source->doubts);
}

/* Without memory it is not kept; then it is what it would be without a doubt. */
static bool doubt(struct um_hf *hf, struct um_hf_source *source, const struct um_hf_message *m, uint64_t now_ns)
{
    struct um_hf_doubt *kept = um_malloc(sizeof *kept);
    if (kept == NULL || (kept->message = *m, kept->message.msg = hf->ops->hold(hf->user, m->msg)) == NULL) {
        um_free(kept);
        return false;
    }
    if (!doubts(source)) {
        source->doubts_since_ns = now_ns;
    }
    um_list_push_back(&source->doubts, &kept->node);
    hf->doubts++;
    hf->bytes += m->size;
    hf->stats.held++;
    return true;
}

static struct um_hf_doubt *take_doubt(struct um_hf *hf, struct um_hf_source *source)
{
    struct um_hf_doubt *kept = UM_CONTAINER_OF(um_list_first(&source->doubts), struct um_hf_doubt, node);
    um_list_remove(&kept->node);
    hf->doubts--;
    hf->bytes -= kept->message.size;
    return kept;
}

static void free_doubt(struct um_hf *hf, struct um_hf_doubt *kept)
{
    hf->ops->let_go(hf->user, kept->message.msg);
    um_free(kept);
}

/* Of the count before the last reset? In a source that is behind, numbers that go back show the new count, or after a
 * reset to higher numbers those that have come there. */
static bool still_behind(const struct um_hf *hf, const struct um_hf_source *source, uint64_t number)
{
    bool reached = um_hf_diff(hf, number, hf->reset_to) >= 0;
    bool back = source->has_last && um_hf_diff(hf, number, source->last) <= 0;
    return source->behind && !(reached && (back || hf->reset_ahead));
}

/* It follows the reset of another source, its own one has not come. */
static void enter_count(const struct um_hf *hf, struct um_hf_source *source, const struct um_hf_message *m)
{
    if (source->resets != hf->resets && source->entered != hf->resets) {
        source->entered = hf->resets;
        source->entry_sqn = m->first_sqn;
        source->entry_number = m->hf.sqn;
    }
    source->behind = false;
}

/* Sent before the reset that rules: the source's own, or before the message with which it followed another one's. */
static bool is_before_reset(const struct um_hf *hf, const struct um_hf_source *source, const struct um_hf_message *m)
{
    if (source->has_floor && um_sqn_older(m->first_sqn, source->floor)) {
        return true;
    }
    return source->entered != 0 && source->entered == hf->resets && um_sqn_older(m->first_sqn, source->entry_sqn) &&
           (um_hf_diff(hf, m->hf.sqn, hf->reset_to) < 0 || um_hf_diff(hf, m->hf.sqn, source->entry_number) >= 0);
}

/* Each is what its number says. Nothing is known of what was before it. No more waits afterwards than before; the
 * bounds are the caller's, which may be keeping them just now. */
static void end_doubts(struct um_hf *hf, struct um_hf_source *source, uint64_t now_ns)
{
    const struct um_hf_neighbours unknown = {.newest = true};
    while (doubts(source)) {
        struct um_hf_doubt *kept = take_doubt(hf, source);
        const struct um_hf_message *m = &kept->message;
        if (is_before_reset(hf, source, m) || still_behind(hf, source, m->hf.sqn)) {
            um_hf_discard(hf, UM_HF_BEHIND, m->hf.sqn, now_ns);
        } else {
            enter_count(hf, source, m);
            source->has_last = true;
            source->last = m->hf.sqn;
            um_hf_merge(hf, m, &unknown, now_ns);
            um_hf_advance(hf);
        }
        free_doubt(hf, kept);
    }
}

static struct um_hf_source *oldest_doubts(const struct um_hf *hf)
{
    struct um_hf_source *oldest = NULL;
    struct um_list *node;
    UM_LIST_FOREACH(node, &hf->sources)
    {
        struct um_hf_source *source = UM_CONTAINER_OF(node, struct um_hf_source, node);
        if (doubts(source) && (oldest == NULL || source->doubts_since_ns < oldest->doubts_since_ns)) {
            oldest = source;
        }
    }
    return oldest;
}

uint64_t um_hf_doubts_due(const struct um_hf *hf)
{
    const struct um_hf_source *source = hf->doubts == 0 ? NULL : oldest_doubts(hf);
    return source == NULL ? UM_NEVER : source->doubts_since_ns + hf->config.gap_timeout_ns;
}

void um_hf_end_oldest_doubts(struct um_hf *hf, uint64_t now_ns)
{
    struct um_hf_source *source = oldest_doubts(hf);
    if (source != NULL) {
        end_doubts(hf, source, now_ns);
    }
}

void um_hf_end_doubts_due(struct um_hf *hf, uint64_t now_ns)
{
    while (um_hf_doubts_due(hf) <= now_ns) {
        um_hf_end_oldest_doubts(hf, now_ns);
    }
}

void um_hf_leave(struct um_hf *hf, struct um_hf_source *source, uint64_t now_ns)
{
    if (doubts(source)) {
        end_doubts(hf, source, now_ns);
        um_hf_settle(hf, now_ns);
    }
    um_list_remove(&source->node);
}

/* ---- resets ---- */

static void fall_behind(struct um_hf *hf, const struct um_hf_source *leader)
{
    struct um_list *node;
    UM_LIST_FOREACH(node, &hf->sources)
    {
        struct um_hf_source *source = UM_CONTAINER_OF(node, struct um_hf_source, node);
        source->behind = source != leader && source->has_last;
    }
}

static void apply_reset(struct um_hf *hf, const struct um_hf_source *source, const struct um_hf_message *m,
                        uint64_t now_ns)
{
    hf->reset_ahead = hf->begun && um_hf_diff(hf, m->hf.sqn, um_hf_end(hf)) >= 0;
    um_hf_clear(hf, now_ns);
    hf->begun = true;
    hf->due = hf->reset_to = m->hf.sqn;
    hf->stats.resets++;
    fall_behind(hf, source);
    hf->ops->reset(hf->user, m->msg, &m->hf);
}

/* Of other sources, what their doubts are about may be this reset: they have sent it, too, and it was lost. */
static void look_at_doubts(struct um_hf *hf, const struct um_hf_source *leader, uint64_t now_ns)
{
    struct um_list *node;
    UM_LIST_FOREACH(node, &hf->sources)
    {
        struct um_hf_source *source = UM_CONTAINER_OF(node, struct um_hf_source, node);
        if (source != leader && doubts(source)) {
            const struct um_hf_doubt *first = UM_CONTAINER_OF(um_list_first(&source->doubts), struct um_hf_doubt, node);
            if (!still_behind(hf, source, first->message.hf.sqn)) {
                end_doubts(hf, source, now_ns);
            }
        }
    }
}

/* Its place among what came of the source: that of the number before the one it resets to. */
static void place_reset(struct um_hf *hf, struct um_hf_source *source, const struct um_hf_message *m)
{
    struct um_hf_neighbours by;
    const struct um_hf_place place = {m->first_sqn, m->last_sqn, true, um_hf_cut(hf, m->hf.sqn - 1)};
    um_hf_runs_add(&source->runs, &place, &by);
    if (by.newest) { /* what was before it is of another count */
        um_hf_runs_clear(&source->runs);
        um_hf_runs_add(&source->runs, &place, &by);
        source->has_last = true;
        source->last = place.number;
    } else if (by.has_link) {
        um_hf_link(hf, place.number, by.follows);
    }
}

/* A source that resets after another one did follows that one. One that comes behind a later reset of its own source
 * only counts. */
static void on_reset(struct um_hf *hf, struct um_hf_source *source, const struct um_hf_message *m, uint64_t now_ns)
{
    bool late = source->has_floor && um_sqn_older(m->last_sqn, source->floor);
    source->resets++;
    bool leads = (int32_t)(source->resets - hf->resets) > 0;
    if (leads) {
        hf->resets = source->resets;
    }
    if (!late) {
        source->has_floor = true;
        source->floor = m->last_sqn;
        source->behind = (int32_t)(source->resets - hf->resets) < 0;
    }
    if (leads && !late) {
        apply_reset(hf, source, m, now_ns);
    } else {
        um_hf_discard(hf, UM_HF_DUPLICATE, m->hf.sqn, now_ns);
    }
    place_reset(hf, source, m);
    end_doubts(hf, source, now_ns);
    look_at_doubts(hf, source, now_ns);
}

/* It has begun the new count: what was before this message is of the old one. */
static void catch_up(struct um_hf *hf, struct um_hf_source *source, const struct um_hf_message *m,
                     struct um_hf_neighbours *by)
{
    const struct um_hf_place place = {m->first_sqn, m->last_sqn, true, m->hf.sqn};
    struct um_hf_neighbours alone;
    enter_count(hf, source, m);
    by->has_before = by->has_link = false;
    um_hf_runs_clear(&source->runs);
    um_hf_runs_add(&source->runs, &place, &alone);
}

/* ---- arrivals ---- */

static bool fits_width(struct um_hf *hf, const struct um_hf_message *m)
{
    if (!hf->begun) {
        hf->wide = m->hf.wide;
    }
    return hf->wide == m->hf.wide;
}

static void on_numbered(struct um_hf *hf, struct um_hf_source *source, const struct um_hf_message *m, uint64_t now_ns)
{
    struct um_hf_neighbours by;
    const struct um_hf_place place = {m->first_sqn, m->last_sqn, true, m->hf.sqn};
    um_hf_runs_add(&source->runs, &place, &by);
    if (is_before_reset(hf, source, m)) {
        um_hf_discard(hf, UM_HF_BEHIND, m->hf.sqn, now_ns);
        return;
    }
    bool behind = source->behind && (!by.newest || still_behind(hf, source, m->hf.sqn));
    bool back = source->has_last && um_hf_diff(hf, m->hf.sqn, source->last) < 0;
    bool over_hole = by.newest && (doubts(source) || (by.after_hole && (behind || (back && !source->behind))));
    bool in_doubt = doubts(source) && (behind || um_hf_diff(hf, m->hf.sqn, hf->due) < 0);
    if ((over_hole || in_doubt) && doubt(hf, source, m, now_ns)) {
        return;
    }
    if (behind) {
        um_hf_discard(hf, UM_HF_BEHIND, m->hf.sqn, now_ns);
        source->last = by.newest ? m->hf.sqn : source->last;
        return;
    }
    if (source->behind) {
        catch_up(hf, source, m, &by);
    }
    if (by.newest) {
        source->has_last = true;
        source->last = m->hf.sqn;
    }
    um_hf_merge(hf, m, &by, now_ns);
    if (by.has_link) {
        um_hf_link(hf, by.lower, by.follows);
    }
}

/* Nothing waits, and the message follows on the one before it on its source, in the count that rules: the usual case.
 * What a reset leaves behind is looked at anew each time, so that this holds again when it is over. */
static inline bool follows_on(const struct um_hf *hf, const struct um_hf_source *source, uint32_t first_sqn,
                              const struct um_lbmc_hf *told)
{
    const struct um_hf_runs *runs = &source->runs;
    const struct um_hf_run *newest = &runs->list[runs->count - 1];
    return hf->entries.count + hf->doubts == 0 && hf->timer_ns == UM_NEVER && hf->begun && hf->wide == told->wide &&
           (told->flags & UM_LBMC_HF_RESET) == 0 && runs->count > 0 && newest->numbered && newest->end == first_sqn &&
           !source->behind && (source->entered == 0 || source->entered != hf->resets) &&
           !(source->has_floor && um_sqn_older(first_sqn, source->floor));
}

static inline bool is_old_copy(const struct um_hf *hf, uint64_t number)
{
    return !hf->config.duplicates && um_hf_diff(hf, number, hf->due) < 0;
}

static inline void went_on(struct um_hf_source *source, uint32_t last_sqn, uint64_t number)
{
    struct um_hf_run *newest = &source->runs.list[source->runs.count - 1];
    newest->end = last_sqn + 1;
    newest->high = source->last = number;
    source->has_last = true;
}

bool um_hf_on_copy(struct um_hf *hf, struct um_hf_source *source, uint32_t topic_sqn, const struct um_lbmc_hf *told)
{
    if (!is_old_copy(hf, told->sqn) || !follows_on(hf, source, topic_sqn, told)) {
        return false;
    }
    went_on(source, topic_sqn, told->sqn);
    hf->stats.discards[UM_HF_DUPLICATE]++; /* nobody is told of these one by one */
    return true;
}

bool um_hf_on_next(struct um_hf *hf, struct um_hf_source *source, const struct um_hf_message *m, uint64_t now_ns)
{
    bool due = m->hf.sqn == hf->due;
    if ((!due && !is_old_copy(hf, m->hf.sqn)) || !follows_on(hf, source, m->first_sqn, &m->hf)) {
        return false;
    }
    went_on(source, m->last_sqn, m->hf.sqn);
    if (due) {
        um_hf_take(hf, m, now_ns);
    } else {
        um_hf_discard(hf, UM_HF_DUPLICATE, m->hf.sqn, now_ns);
    }
    return true;
}

void um_hf_on_message(struct um_hf *hf, struct um_hf_source *source, const struct um_hf_message *m, uint64_t now_ns)
{
    if (um_hf_on_next(hf, source, m, now_ns)) {
        return;
    }
    if (!fits_width(hf, m)) {
        um_hf_discard(hf, UM_HF_WIDTH, m->hf.sqn, now_ns);
        um_hf_on_passed(hf, source, m->first_sqn, m->last_sqn, now_ns);
        return;
    }
    if ((m->hf.flags & UM_LBMC_HF_RESET) != 0) {
        on_reset(hf, source, m, now_ns);
    } else {
        on_numbered(hf, source, m, now_ns);
    }
    if (um_hf_waiting(hf) != 0 || hf->timer_ns != UM_NEVER) {
        um_hf_settle(hf, now_ns);
    }
}

void um_hf_on_passed(struct um_hf *hf, struct um_hf_source *source, uint32_t first_sqn, uint32_t last_sqn,
                     uint64_t now_ns)
{
    struct um_hf_neighbours by;
    const struct um_hf_place place = {first_sqn, last_sqn, false, 0};
    um_hf_runs_add(&source->runs, &place, &by);
    if (by.has_link) {
        um_hf_link(hf, by.lower, by.follows);
        um_hf_settle(hf, now_ns);
    }
}
