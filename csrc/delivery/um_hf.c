/* The merge of hot failover sources: what is due, what waits, what is lost. See
 * um_hf.h. Resets and sources are in um_hf_source.c. */
#include "delivery/um_hf.h"

#include <string.h>

#include "base/um_timer.h"
#include "delivery/um_hf_private.h"

void um_hf_init(struct um_hf *hf, const struct um_hf_config *config, const struct um_hf_ops *ops, void *user)
{
    memset(hf, 0, sizeof *hf);
    hf->config = *config;
    hf->ops = ops;
    hf->user = user;
    hf->timer_ns = UM_NEVER;
    um_list_init(&hf->sources);
}

void um_hf_discard(struct um_hf *hf, enum um_hf_discard why, uint64_t number, uint64_t now_ns)
{
    hf->stats.discards[why]++;
    if (hf->ops->discarded != NULL) {
        hf->ops->discarded(hf->user, why, number, now_ns);
    }
}

size_t um_hf_waiting(const struct um_hf *hf)
{
    return hf->entries.count + hf->doubts;
}

/* ---- what waits ---- */

static struct um_hf_entry *first_of(const struct um_hf *hf)
{
    return um_hf_entries_first(&hf->entries);
}

static struct um_hf_at find(const struct um_hf *hf, uint64_t number)
{
    return um_hf_entries_find(&hf->entries, number, hf->wide);
}

/* NULL: what is there, if anything, has another number. */
static struct um_hf_entry *entry_of(const struct um_hf *hf, struct um_hf_at at, uint64_t number)
{
    struct um_hf_entry *entry = um_hf_entries_at(&hf->entries, at);
    return entry != NULL && entry->number == number ? entry : NULL;
}

/* False: no memory. */
static bool insert(struct um_hf *hf, struct um_hf_at at, const struct um_hf_entry *entry)
{
    if (!um_hf_entries_insert(&hf->entries, at, entry)) {
        return false;
    }
    hf->bytes += entry->size;
    return true;
}

static struct um_hf_entry take_first(struct um_hf *hf)
{
    struct um_hf_entry entry = um_hf_entries_take_first(&hf->entries);
    hf->bytes -= entry.size;
    return entry;
}

/* ---- deliveries ---- */

static void deliver(struct um_hf *hf, void *msg, uint64_t number, uint16_t flags, bool duplicate)
{
    const struct um_lbmc_hf told = {.sqn = number, .wide = hf->wide, .flags = flags};
    if (duplicate) {
        hf->stats.again++;
    } else {
        hf->stats.delivered++;
    }
    hf->ops->deliver(hf->user, msg, &told, duplicate);
}

/* The first entry is due, or what is before it does not exist any more. */
static void deliver_first(struct um_hf *hf)
{
    struct um_hf_entry entry = take_first(hf);
    if (!entry.copy) {
        hf->due = um_hf_next(hf, entry.number);
    }
    if (entry.held != NULL) {
        deliver(hf, entry.held, entry.number, entry.flags, entry.copy);
        hf->ops->let_go(hf->user, entry.held);
    }
}

/* What others have sent before it: it is proved that nothing else was. */
static void deliver_before(struct um_hf *hf, uint64_t number)
{
    while (hf->entries.count > 0 && um_hf_diff(hf, first_of(hf)->number, number) < 0) {
        deliver_first(hf);
    }
}

static bool is_before_due(const struct um_hf *hf, uint64_t number)
{
    return um_hf_diff(hf, number, hf->due) < 0;
}

/* Nothing that exists is missing before it. */
static bool first_is_due(struct um_hf *hf)
{
    const struct um_hf_entry *entry = first_of(hf);
    if (entry->copy || entry->number == hf->due) {
        return true;
    }
    if (entry->has_before && is_before_due(hf, entry->before)) {
        hf->stats.meant++;
        return true;
    }
    return false;
}

static void keep_timer(struct um_hf *hf)
{
    uint64_t due_ns = um_hf_doubts_due(hf);
    if (hf->entries.count > 0 && first_of(hf)->since_ns + hf->config.gap_timeout_ns < due_ns) {
        due_ns = first_of(hf)->since_ns + hf->config.gap_timeout_ns;
    }
    if (due_ns != hf->timer_ns) {
        hf->timer_ns = due_ns;
        hf->ops->set_timer(hf->user, due_ns);
    }
}

void um_hf_advance(struct um_hf *hf)
{
    while (hf->entries.count > 0 && first_is_due(hf)) {
        deliver_first(hf);
    }
}

/* ---- losses ---- */

static void give_up_first(struct um_hf *hf)
{
    uint64_t first = hf->due, number = first_of(hf)->number;
    uint64_t count = (uint64_t)um_hf_diff(hf, number, first);
    hf->stats.lost += count;
    hf->due = number;
    if (count >= hf->config.maximum_burst_loss) {
        hf->ops->burst_loss(hf->user, first, count);
    } else {
        for (uint64_t lost = first; lost != number; lost = um_hf_next(hf, lost)) {
            hf->ops->loss(hf->user, lost);
        }
    }
    um_hf_advance(hf);
}

static bool over(const struct um_hf *hf)
{
    return (hf->config.entries_max != 0 && um_hf_waiting(hf) > hf->config.entries_max) ||
           (hf->config.bytes_max != 0 && hf->bytes > hf->config.bytes_max);
}

static void keep_bounds(struct um_hf *hf, uint64_t now_ns)
{
    while (over(hf) && um_hf_waiting(hf) > 0) {
        hf->stats.given_early++;
        if (hf->doubts > 0) {
            um_hf_end_oldest_doubts(hf, now_ns);
        } else {
            give_up_first(hf);
        }
    }
}

void um_hf_settle(struct um_hf *hf, uint64_t now_ns)
{
    um_hf_advance(hf);
    keep_bounds(hf, now_ns);
    keep_timer(hf);
}

void um_hf_on_timer(struct um_hf *hf, uint64_t now_ns)
{
    hf->timer_ns = UM_NEVER;
    um_hf_end_doubts_due(hf, now_ns);
    while (hf->entries.count > 0 && first_of(hf)->since_ns + hf->config.gap_timeout_ns <= now_ns) {
        give_up_first(hf);
    }
    um_hf_settle(hf, now_ns);
}

void um_hf_clear(struct um_hf *hf, uint64_t now_ns)
{
    while (hf->entries.count > 0) {
        struct um_hf_entry entry = take_first(hf);
        if (entry.held != NULL) {
            um_hf_discard(hf, UM_HF_ENDED, entry.number, now_ns);
            hf->ops->let_go(hf->user, entry.held);
        }
    }
}

void um_hf_fini(struct um_hf *hf, uint64_t now_ns)
{
    um_hf_clear(hf, now_ns);
    um_hf_entries_free(&hf->entries);
}

/* ---- arrivals ---- */

static bool wanted(const struct um_hf *hf, const struct um_hf_message *m)
{
    return (hf->config.optional && !m->leaves_optional) || (m->hf.flags & UM_LBMC_HF_OPTIONAL) == 0;
}

/* It is its turn. */
void um_hf_take(struct um_hf *hf, const struct um_hf_message *m, uint64_t now_ns)
{
    hf->due = um_hf_next(hf, m->hf.sqn);
    if (wanted(hf, m)) {
        deliver(hf, m->msg, m->hf.sqn, m->hf.flags, false);
    } else {
        um_hf_discard(hf, UM_HF_OPTIONAL, m->hf.sqn, now_ns);
    }
}

/* A further copy: of something delivered, or of something that waits, behind which it waits, too. */
static void take_copy(struct um_hf *hf, const struct um_hf_message *m, struct um_hf_at at, uint64_t now_ns)
{
    const struct um_hf_entry *first = entry_of(hf, at, m->hf.sqn);
    if (!hf->config.duplicates || !wanted(hf, m)) {
        um_hf_discard(hf, UM_HF_DUPLICATE, m->hf.sqn, now_ns);
        return;
    }
    if (first == NULL || first->held == NULL) {
        deliver(hf, m->msg, m->hf.sqn, m->hf.flags, true);
        return;
    }
    struct um_hf_entry entry = {.number = m->hf.sqn,
                                .since_ns = first->since_ns,
                                .size = (uint32_t)m->size,
                                .flags = m->hf.flags,
                                .copy = true,
                                .held = hf->ops->hold(hf->user, m->msg)};
    if (entry.held == NULL || !insert(hf, find(hf, um_hf_next(hf, m->hf.sqn)), &entry)) {
        if (entry.held != NULL) {
            hf->ops->let_go(hf->user, entry.held);
        }
        um_hf_discard(hf, UM_HF_NO_ROOM, m->hf.sqn, now_ns);
    }
}

static uint64_t hole_seen(const struct um_hf *hf, struct um_hf_at at, uint64_t now_ns)
{
    const struct um_hf_entry *above = um_hf_entries_at(&hf->entries, at);
    return above != NULL && above->since_ns < now_ns ? above->since_ns : now_ns;
}

/* Beyond a gap. In arrival order only its number waits. */
static void wait_for_turn(struct um_hf *hf, const struct um_hf_message *m, const struct um_hf_neighbours *by,
                          struct um_hf_at at, uint64_t now_ns)
{
    struct um_hf_entry entry = {.number = m->hf.sqn,
                                .has_before = by->has_before,
                                .before = by->before,
                                .since_ns = hole_seen(hf, at, now_ns),
                                .flags = m->hf.flags};
    bool holds = hf->config.ordered && wanted(hf, m);
    if (holds) {
        entry.held = hf->ops->hold(hf->user, m->msg);
        entry.size = (uint32_t)m->size;
    }
    if ((holds && entry.held == NULL) || !insert(hf, at, &entry)) {
        if (entry.held != NULL) {
            hf->ops->let_go(hf->user, entry.held);
        }
        um_hf_discard(hf, UM_HF_NO_ROOM, m->hf.sqn, now_ns);
        return;
    }
    hf->stats.held += holds;
    if (!wanted(hf, m)) {
        um_hf_discard(hf, UM_HF_OPTIONAL, m->hf.sqn, now_ns);
    } else if (!holds) {
        deliver(hf, m->msg, m->hf.sqn, m->hf.flags, false);
    }
}

/* Nothing exists between `lower` and what waits as `number`. */
void um_hf_link(struct um_hf *hf, uint64_t lower, uint64_t number)
{
    struct um_hf_entry *entry = entry_of(hf, find(hf, number), number);
    if (entry == NULL || um_hf_diff(hf, lower, number) >= 0) {
        return;
    }
    if (!entry->has_before || um_hf_diff(hf, lower, entry->before) < 0) {
        entry->has_before = true;
        entry->before = lower;
    }
    if (is_before_due(hf, lower)) {
        deliver_before(hf, number);
    }
}

static void take_ahead(struct um_hf *hf, const struct um_hf_message *m, const struct um_hf_neighbours *by,
                       struct um_hf_at at, uint64_t now_ns)
{
    bool proved = by->has_before && is_before_due(hf, by->before);
    if (!proved && m->hf.sqn != hf->due) {
        wait_for_turn(hf, m, by, at, now_ns);
        return;
    }
    hf->stats.meant += m->hf.sqn != hf->due;
    deliver_before(hf, m->hf.sqn);
    um_hf_take(hf, m, now_ns);
}

void um_hf_merge(struct um_hf *hf, const struct um_hf_message *m, const struct um_hf_neighbours *by, uint64_t now_ns)
{
    if (!hf->begun) {
        hf->begun = true;
        hf->due = m->hf.sqn;
    }
    if (hf->entries.count == 0 && m->hf.sqn == hf->due) { /* hot path */
        um_hf_take(hf, m, now_ns);
        return;
    }
    int64_t ahead = um_hf_diff(hf, m->hf.sqn, hf->due);
    struct um_hf_at at = find(hf, m->hf.sqn);
    if (ahead >= (int64_t)UM_HF_JUMP_MAX) {
        um_hf_discard(hf, UM_HF_FAR, m->hf.sqn, now_ns);
    } else if (ahead < 0 || entry_of(hf, at, m->hf.sqn) != NULL) {
        take_copy(hf, m, at, now_ns);
        if (ahead >= 0 && by->has_before) {
            um_hf_link(hf, by->before, m->hf.sqn);
        }
    } else {
        take_ahead(hf, m, by, at, now_ns);
    }
}
