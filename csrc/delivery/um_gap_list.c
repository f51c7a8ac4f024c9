/* Missing sequence numbers as an ordered array of ranges. Gaps are added at the
 * new end and given up at the old end, so both ends are cheap; filling in the
 * middle is a binary search and at worst one memmove. */
#include "delivery/um_gap_list.h"

#include <string.h>

#include "base/um_mem.h"
#include "base/um_sqn.h"

#define GAPS_INITIAL 8u

void um_gap_list_init(struct um_gap_list *list)
{
    memset(list, 0, sizeof *list);
}

void um_gap_list_free(struct um_gap_list *list)
{
    um_free(list->items);
    um_gap_list_init(list);
}

/* Room for one more entry at the end. */
static bool reserve(struct um_gap_list *list)
{
    if (list->head + list->count < list->capacity) {
        return true;
    }
    if (list->head > list->count) { /* more than half is spent: slide down instead of growing */
        memcpy(list->items, list->items + list->head, list->count * sizeof *list->items);
        list->head = 0;
        return true;
    }
    size_t capacity = list->capacity == 0 ? GAPS_INITIAL : list->capacity * 2;
    struct um_gap *items = um_realloc(list->items, capacity * sizeof *items);
    if (items == NULL) {
        return false;
    }
    list->items = items;
    list->capacity = capacity;
    return true;
}

bool um_gap_list_push(struct um_gap_list *list, const struct um_gap *gap)
{
    if (!reserve(list)) {
        return false;
    }
    list->items[list->head + list->count++] = *gap;
    return true;
}

/* Room for one more entry at `index`, which is not the end. */
static bool insert(struct um_gap_list *list, size_t index, const struct um_gap *gap)
{
    if (!reserve(list)) {
        return false;
    }
    struct um_gap *at = um_gap_list_at(list, index);
    memmove(at + 1, at, (list->count - index) * sizeof *at);
    list->count++;
    *at = *gap;
    return true;
}

bool um_gap_list_push_front(struct um_gap_list *list, const struct um_gap *gap)
{
    if (list->head > 0) {
        list->items[--list->head] = *gap;
        list->count++;
        return true;
    }
    return insert(list, 0, gap);
}

size_t um_gap_list_from(const struct um_gap_list *list, uint32_t sqn)
{
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (um_sqn_newer(um_gap_list_at(list, mid)->end, sqn)) {
            high = mid;
        } else {
            low = mid + 1;
        }
    }
    return low;
}

struct um_gap *um_gap_list_find(struct um_gap_list *list, uint32_t sqn)
{
    size_t index = um_gap_list_from(list, sqn);
    if (index == list->count || um_sqn_newer(um_gap_list_at(list, index)->first, sqn)) {
        return NULL;
    }
    return um_gap_list_at(list, index);
}

bool um_gap_list_cut(struct um_gap_list *list, uint32_t sqn)
{
    size_t index = um_gap_list_from(list, sqn);
    if (index == list->count || !um_sqn_older(um_gap_list_at(list, index)->first, sqn)) {
        return true; /* nothing lies across it */
    }
    struct um_gap older = *um_gap_list_at(list, index);
    older.end = sqn;
    if (!insert(list, index, &older)) {
        return false;
    }
    um_gap_list_at(list, index + 1)->first = sqn;
    return true;
}

bool um_gap_list_fill(struct um_gap_list *list, struct um_gap *gap, uint32_t sqn)
{
    size_t index = (size_t)(gap - list->items) - list->head;
    if (sqn == gap->first) {
        gap->first++;
    } else if (sqn == gap->end - 1) {
        gap->end--;
    } else {
        struct um_gap older = *gap;
        older.end = sqn;
        if (!insert(list, index, &older)) {
            return false;
        }
        um_gap_list_at(list, index + 1)->first = sqn + 1;
        return true;
    }
    if (gap->first == gap->end) {
        um_gap_list_remove(list, index);
    }
    return true;
}

void um_gap_list_remove(struct um_gap_list *list, size_t index)
{
    if (index == 0) {
        list->head++;
    } else {
        struct um_gap *gap = um_gap_list_at(list, index);
        memmove(gap, gap + 1, (list->count - index - 1) * sizeof *gap);
    }
    if (--list->count == 0) {
        list->head = 0;
    }
}
