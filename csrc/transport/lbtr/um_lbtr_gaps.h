/* Missing sequence numbers of a received session, as ranges in sequence order, each
 * with the state of its NAKs. A gap of any size is one range; the number of ranges is
 * bounded. Owned by a receiving engine; its thread. */
#ifndef UM_TRANSPORT_LBTR_GAPS_H
#define UM_TRANSPORT_LBTR_GAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UM_LBTR_GAPS_MAX 65536u

struct um_lbtr_gap {
    uint32_t first, end; /* [first, end), modular */
    uint64_t detected_ns;
    uint64_t asked_ns; /* the first NAK */
    uint64_t limit_ns; /* NAKs are in vain from here on */
    uint64_t next_ns;  /* a NAK is due */
    uint64_t doom_ns;  /* the source seems to have given it up: given up here too; 0 = not */
    uint32_t naks;     /* sent for each of its numbers */
    bool suppressed;
    bool untried; /* of what was given up: before the time for its repair was over */
};

struct um_lbtr_gaps {
    struct um_lbtr_gap *items;
    size_t head, count, capacity; /* live ranges are items[head .. head + count) */
};

void um_lbtr_gaps_init(struct um_lbtr_gaps *gaps);
void um_lbtr_gaps_free(struct um_lbtr_gaps *gaps);
/* Index of the first range that ends behind sqn: the one that holds it, or the next newer one, or count. */
size_t um_lbtr_gaps_find(const struct um_lbtr_gaps *gaps, uint32_t sqn);
/* False: out of memory, or as many ranges as there may be; nothing changed. */
bool um_lbtr_gaps_insert(struct um_lbtr_gaps *gaps, size_t index, const struct um_lbtr_gap *gap);
void um_lbtr_gaps_remove(struct um_lbtr_gaps *gaps, size_t index);
/* The range of the fewest numbers; there is one. */
void um_lbtr_gaps_remove_smallest(struct um_lbtr_gaps *gaps);
/* Make [first, at) and [at, end) of one range; true also when `at` is one of its ends. */
bool um_lbtr_gaps_split(struct um_lbtr_gaps *gaps, size_t index, uint32_t at);

/* Remove one number of a range. False: no room to make two ranges of one; nothing changed. */
bool um_lbtr_gaps_take_out(struct um_lbtr_gaps *gaps, size_t index, uint32_t sqn);
/* Remove whatever ranges hold of [first, end). Without room for one more range they lose what lies behind it too. */
void um_lbtr_gaps_take_out_range(struct um_lbtr_gaps *gaps, uint32_t first, uint32_t end);
/* Remove `first` and everything newer. */
void um_lbtr_gaps_take_out_from(struct um_lbtr_gaps *gaps, uint32_t first);

static inline struct um_lbtr_gap *um_lbtr_gaps_at(const struct um_lbtr_gaps *gaps, size_t index)
{
    return &gaps->items[gaps->head + index];
}

#endif
