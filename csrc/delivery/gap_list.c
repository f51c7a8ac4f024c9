/* Missing sequence numbers as an ordered array of ranges. Gaps are added at the
 * new end and given up at the old end, so both ends are cheap; filling in the
 * middle is a binary search and at worst one memmove. */
#include "delivery/gap_list.h"

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

bool um_gap_list_push(struct um_gap_list *list, uint32_t first, uint32_t end, uint64_t now_ns)
{
    if (!reserve(list)) {
        return false;
    }
    list->items[list->head + list->count++] = (struct um_gap){first, end, now_ns};
    return true;
}

struct um_gap *um_gap_list_find(struct um_gap_list *list, uint32_t sqn)
{
    size_t low = list->head, high = list->head + list->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        struct um_gap *gap = &list->items[mid];
        if (um_sqn_older(sqn, gap->first)) {
            high = mid;
        } else if (um_sqn_older(sqn, gap->end)) {
            return gap;
        } else {
            low = mid + 1;
        }
    }
    return NULL;
}

bool um_gap_list_fill(struct um_gap_list *list, struct um_gap *gap, uint32_t sqn)
{
    size_t index = (size_t)(gap - list->items);
    if (sqn == gap->first) {
        gap->first++;
    } else if (sqn == gap->end - 1) {
        gap->end--;
    } else {
        size_t offset = index - list->head;
        if (!reserve(list)) {
            return false;
        }
        index = list->head + offset; /* reserve() may have moved the entries */
        gap = &list->items[index];
        memmove(gap + 1, gap, (list->count - offset) * sizeof *gap);
        list->count++;
        gap[0].end = sqn;
        gap[1].first = sqn + 1;
        return true;
    }
    if (gap->first == gap->end) {
        if (index == list->head) {
            um_gap_list_pop(list);
        } else {
            memmove(gap, gap + 1, (list->head + list->count - index - 1) * sizeof *gap);
            list->count--;
        }
    }
    return true;
}

void um_gap_list_pop(struct um_gap_list *list)
{
    list->head++;
    if (--list->count == 0) {
        list->head = 0;
    }
}
