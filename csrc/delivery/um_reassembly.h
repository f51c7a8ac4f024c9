/* Reassembly of fragmented messages, keyed by the number of the first fragment.
 * Used by um_dc.c only; same thread as the engine. Memory follows the bytes
 * received, never the length a header claims; at most UM_REASSEMBLY_PARTIALS
 * messages are in progress. */
#ifndef UM_DELIVERY_REASSEMBLY_H
#define UM_DELIVERY_REASSEMBLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/um_buf.h"
#include "base/um_list.h"
#include "wire/um_lbmc.h"
#include "wire/um_lbmc_chain.h"

#define UM_REASSEMBLY_PARTIALS 64u

struct um_reassembly {
    struct um_list partials; /* most recently used first */
    unsigned count;
    size_t bytes; /* allocated for data */
};

enum um_reassembly_rc {
    UM_REASSEMBLY_PENDING,  /* stored */
    UM_REASSEMBLY_COMPLETE, /* *done is filled */
    UM_REASSEMBLY_IGNORED,  /* of a message already given up, or a repeated range */
    UM_REASSEMBLY_GIVEN_UP  /* this fragment made the message impossible: report it lost */
};

struct um_reassembled {
    struct um_buf *buf; /* the caller's, refs 1 */
    size_t len;
    uint32_t first_sqn, last_sqn;
    uint32_t last_offset;
    uint16_t batch_flags;
    /* What the chain of application headers of an earlier fragment was, where the completing one has none; else 0. */
    uint8_t chain_len;
    uint8_t chain[UM_CHAIN_MAX];
};

void um_reassembly_init(struct um_reassembly *r);
void um_reassembly_clear(struct um_reassembly *r);
/* Is the fragment header of this message possible at all? */
bool um_reassembly_frag_valid(const struct um_lbmc_msg *msg);
/* At most `size_max` bytes in a message. `evicted` is set to the first number of a message that had to make room, with
 * *has_evicted. */
enum um_reassembly_rc um_reassembly_add(struct um_reassembly *r, size_t size_max, const struct um_lbmc_msg *msg,
                                        struct um_reassembled *done, uint32_t *evicted, bool *has_evicted);
bool um_reassembly_has(const struct um_reassembly *r, uint32_t first_sqn);
/* Number `sqn` is lost for good: give up the message it belongs to. */
void um_reassembly_lost(struct um_reassembly *r, uint32_t sqn);
/* An unfinished message (not one already given up) is in progress; its first number. */
bool um_reassembly_unfinished(const struct um_reassembly *r, uint32_t *first_sqn);
/* Forget the unfinished message that was not touched for the longest time; its first number. False: there is none. */
bool um_reassembly_abandon(struct um_reassembly *r, uint32_t *first_sqn);

#endif
