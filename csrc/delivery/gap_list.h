/* Missing sequence numbers of one delivery controller, as ranges in sequence
 * order. Used by um_dc.c only; same thread as the engine. A gap of any size is
 * one entry. */
#ifndef UM_DELIVERY_GAP_LIST_H
#define UM_DELIVERY_GAP_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct um_gap {
    uint32_t first, end; /* [first, end), modular */
    uint64_t detected_ns;
};

struct um_gap_list {
    struct um_gap *items;
    size_t head, count, capacity; /* live entries are items[head .. head + count) */
};

void um_gap_list_init(struct um_gap_list *list);
void um_gap_list_free(struct um_gap_list *list);
/* Append; the range must be newer than every present one. False: out of memory, list unchanged. */
bool um_gap_list_push(struct um_gap_list *list, uint32_t first, uint32_t end, uint64_t now_ns);
struct um_gap *um_gap_list_find(struct um_gap_list *list, uint32_t sqn);
/* Take one number out of the gap found for it, splitting when needed. False: out of memory, list unchanged. */
bool um_gap_list_fill(struct um_gap_list *list, struct um_gap *gap, uint32_t sqn);
void um_gap_list_pop(struct um_gap_list *list); /* the oldest */

static inline struct um_gap *um_gap_list_oldest(struct um_gap_list *list)
{
    return list->count == 0 ? NULL : &list->items[list->head];
}

#endif
