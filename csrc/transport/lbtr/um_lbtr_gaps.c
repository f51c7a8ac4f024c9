/* Missing numbers as ranges. Whatever is inserted or removed moves the smaller side:
 * repairs come oldest first and new gaps come last, so both are cheap. See um_lbtr_gaps.h. */
#include "transport/lbtr/um_lbtr_gaps.h"

#include <string.h>

#include "base/um_mem.h"
#include "base/um_sqn.h"

#define GAPS_INITIAL 16u

void um_lbtr_gaps_init(struct um_lbtr_gaps *gaps)
{
    memset(gaps, 0, sizeof *gaps);
}

void um_lbtr_gaps_free(struct um_lbtr_gaps *gaps)
{
    um_free(gaps->items);
    um_lbtr_gaps_init(gaps);
}

size_t um_lbtr_gaps_find(const struct um_lbtr_gaps *gaps, uint32_t sqn)
{
    size_t low = 0, high = gaps->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (um_sqn_older(sqn, um_lbtr_gaps_at(gaps, mid)->end)) {
            high = mid;
        } else {
            low = mid + 1;
        }
    }
    return low;
}

/* Room for one more behind the last one, or in front of the first. */
static bool reserve(struct um_lbtr_gaps *gaps)
{
    if (gaps->head + gaps->count < gaps->capacity) {
        return true;
    }
    if (gaps->head > gaps->capacity / 2) { /* most of it is spent: slide down instead of growing */
        memmove(gaps->items, gaps->items + gaps->head, gaps->count * sizeof *gaps->items);
        gaps->head = 0;
        return true;
    }
    size_t capacity = gaps->capacity == 0 ? GAPS_INITIAL : gaps->capacity * 2;
    struct um_lbtr_gap *items = um_realloc(gaps->items, capacity * sizeof *items);
    if (items == NULL) {
        return false;
    }
    gaps->items = items;
    gaps->capacity = capacity;
    return true;
}

bool um_lbtr_gaps_insert(struct um_lbtr_gaps *gaps, size_t index, const struct um_lbtr_gap *gap)
{
    struct um_lbtr_gap copy = *gap; /* may point into the array */
    if (gaps->count >= UM_LBTR_GAPS_MAX) {
        return false;
    }
    if (gaps->head > 0 && index < gaps->count / 2) {
        gaps->head--;
        memmove(gaps->items + gaps->head, gaps->items + gaps->head + 1, index * sizeof copy);
    } else {
        if (!reserve(gaps)) {
            return false;
        }
        struct um_lbtr_gap *place = um_lbtr_gaps_at(gaps, index);
        memmove(place + 1, place, (gaps->count - index) * sizeof copy);
    }
    gaps->count++;
    *um_lbtr_gaps_at(gaps, index) = copy;
    return true;
}

void um_lbtr_gaps_remove(struct um_lbtr_gaps *gaps, size_t index)
{
    struct um_lbtr_gap *gap = um_lbtr_gaps_at(gaps, index);
    if (index < gaps->count / 2) {
        memmove(gaps->items + gaps->head + 1, gaps->items + gaps->head, index * sizeof *gap);
        gaps->head++;
    } else {
        memmove(gap, gap + 1, (gaps->count - index - 1) * sizeof *gap);
    }
    if (--gaps->count == 0) {
        gaps->head = 0;
    }
}

void um_lbtr_gaps_remove_smallest(struct um_lbtr_gaps *gaps)
{
    size_t smallest = 0;
    for (size_t i = 1; i < gaps->count; i++) {
        const struct um_lbtr_gap *gap = um_lbtr_gaps_at(gaps, i), *other = um_lbtr_gaps_at(gaps, smallest);
        smallest = gap->end - gap->first < other->end - other->first ? i : smallest;
    }
    um_lbtr_gaps_remove(gaps, smallest);
}

bool um_lbtr_gaps_split(struct um_lbtr_gaps *gaps, size_t index, uint32_t at)
{
    struct um_lbtr_gap *gap = um_lbtr_gaps_at(gaps, index);
    if (at == gap->first || at == gap->end) {
        return true;
    }
    struct um_lbtr_gap newer = *gap;
    newer.first = at;
    if (!um_lbtr_gaps_insert(gaps, index + 1, &newer)) {
        return false;
    }
    um_lbtr_gaps_at(gaps, index)->end = at;
    return true;
}

bool um_lbtr_gaps_take_out(struct um_lbtr_gaps *gaps, size_t index, uint32_t sqn)
{
    struct um_lbtr_gap *gap = um_lbtr_gaps_at(gaps, index);
    if (sqn == gap->first) {
        gap->first++;
    } else if (sqn + 1 == gap->end) {
        gap->end--;
    } else if (um_lbtr_gaps_split(gaps, index, sqn)) {
        um_lbtr_gaps_at(gaps, index + 1)->first++;
    } else {
        return false;
    }
    gap = um_lbtr_gaps_at(gaps, index);
    if (gap->first == gap->end) {
        um_lbtr_gaps_remove(gaps, index);
    }
    return true;
}

void um_lbtr_gaps_take_out_range(struct um_lbtr_gaps *gaps, uint32_t first, uint32_t end)
{
    size_t i = um_lbtr_gaps_find(gaps, first);
    while (i < gaps->count && um_sqn_older(um_lbtr_gaps_at(gaps, i)->first, end)) {
        if (um_sqn_older(um_lbtr_gaps_at(gaps, i)->first, first)) {
            if (!um_lbtr_gaps_split(gaps, i, first)) {
                um_lbtr_gaps_at(gaps, i)->end = first;
            }
            i++;
        } else if (um_sqn_newer(um_lbtr_gaps_at(gaps, i)->end, end)) {
            um_lbtr_gaps_at(gaps, i)->first = end;
            return;
        } else {
            um_lbtr_gaps_remove(gaps, i);
        }
    }
}

void um_lbtr_gaps_take_out_from(struct um_lbtr_gaps *gaps, uint32_t first)
{
    while (gaps->count > 0) {
        struct um_lbtr_gap *newest = um_lbtr_gaps_at(gaps, gaps->count - 1);
        if (um_sqn_older(newest->first, first)) {
            newest->end = um_sqn_newer(newest->end, first) ? first : newest->end;
            return;
        }
        um_lbtr_gaps_remove(gaps, gaps->count - 1);
    }
}
