/* Missing sequence numbers of one delivery controller, as ranges in sequence
 * order, each with the party that may still bring it. Used by the controller
 * only; same thread as the engine. A gap of any size is one entry. */
#ifndef UM_DELIVERY_GAP_LIST_H
#define UM_DELIVERY_GAP_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum um_gap_owner {
    UM_GAP_TRANSPORT, /* repairs it, for as long as the gap timeout */
    UM_GAP_RECOVERY,  /* late join or off-transport recovery: until it says otherwise, or is silent for too long */
    UM_GAP_ABANDONED, /* recovery will not bring it: lost as soon as it is its turn */
    UM_GAP_SKIPPED    /* the same, without a word to the application */
};

struct um_gap {
    uint32_t first, end; /* [first, end), modular */
    enum um_gap_owner owner;
    uint64_t detected_ns;
};

struct um_gap_list {
    struct um_gap *items;
    size_t head, count, capacity; /* live entries are items[head .. head + count) */
};

void um_gap_list_init(struct um_gap_list *list);
void um_gap_list_free(struct um_gap_list *list);
/* Append; the range must be newer than every present one. False: out of memory, list unchanged. */
bool um_gap_list_push(struct um_gap_list *list, const struct um_gap *gap);
/* Put before all others; the range must be older than every present one. False: out of memory, list unchanged. */
bool um_gap_list_push_front(struct um_gap_list *list, const struct um_gap *gap);
struct um_gap *um_gap_list_find(struct um_gap_list *list, uint32_t sqn);
/* Index of the oldest gap that has numbers from `sqn` on; the count when there is none. */
size_t um_gap_list_from(const struct um_gap_list *list, uint32_t sqn);
/* Cut the gap that holds `sqn` in two, the second beginning with it. False: out of memory, list unchanged. */
bool um_gap_list_cut(struct um_gap_list *list, uint32_t sqn);
/* Take one number out of the gap found for it, splitting when needed. False: out of memory, list unchanged. */
bool um_gap_list_fill(struct um_gap_list *list, struct um_gap *gap, uint32_t sqn);
void um_gap_list_remove(struct um_gap_list *list, size_t index);

static inline struct um_gap *um_gap_list_at(const struct um_gap_list *list, size_t index)
{
    return &list->items[list->head + index];
}

#endif
