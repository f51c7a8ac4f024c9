/* A number space of a source: which datagram of the window bears which sequence
 * number, what was repaired when, and which repairs wait. LBT-RM has one per session,
 * LBT-RU one per client. Owned by a source engine; its thread or lock. */
#ifndef UM_TRANSPORT_LBTR_NUMBERS_H
#define UM_TRANSPORT_LBTR_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/lbtr/um_lbtr_window.h"

struct um_lbtr_sent {
    struct um_lbtr_slot *slot;
    uint64_t index;                     /* of the slot: told even when it is gone */
    uint64_t repaired_ns, confirmed_ns; /* last retransmission, last NCF; 0 = never */
    uint32_t len;                       /* of the payload */
    bool queued;                        /* a repair waits */
};

struct um_lbtr_numbers {
    struct um_lbtr_sent *entries; /* ring */
    uint32_t capacity;            /* power of two */
    uint32_t trail;               /* oldest number kept */
    uint32_t unsent;              /* next to go out; lead is one before */
    uint32_t next;                /* next to be given */
    uint32_t *queue;              /* repairs that wait: heap, oldest first */
    size_t queue_count, queue_capacity;
    uint32_t queue_bytes; /* payload */
};

bool um_lbtr_numbers_init(struct um_lbtr_numbers *numbers, uint32_t capacity, uint32_t first);
void um_lbtr_numbers_touch(struct um_lbtr_numbers *numbers); /* just made: the first numbers find the pages there */
void um_lbtr_numbers_free(struct um_lbtr_numbers *numbers);
/* The next number for this slot. Without memory to grow, the oldest number is given up. */
uint32_t um_lbtr_numbers_add(struct um_lbtr_numbers *numbers, struct um_lbtr_slot *slot);
/* Slots below `first` are gone, their numbers and the repairs that waited for them too. */
void um_lbtr_numbers_trim(struct um_lbtr_numbers *numbers, uint64_t first);

/* Repairs that wait. Push false: out of memory. Peek NULL: none. */
bool um_lbtr_numbers_queue(struct um_lbtr_numbers *numbers, uint32_t sqn);
struct um_lbtr_sent *um_lbtr_numbers_peek(const struct um_lbtr_numbers *numbers, uint32_t *sqn);
void um_lbtr_numbers_pop(struct um_lbtr_numbers *numbers);

/* The number is between trail and next. */
static inline struct um_lbtr_sent *um_lbtr_numbers_at(const struct um_lbtr_numbers *numbers, uint32_t sqn)
{
    return &numbers->entries[sqn & (numbers->capacity - 1)];
}

#endif
