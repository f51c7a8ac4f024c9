/* Delivery controller: per (topic, source) ordering, reassembly and topic-level
 * loss. An engine: time and messages come in, deliveries go out by callback.
 * No clock, socket or lock. The in-order unfragmented path allocates nothing.
 * Bounded: order map by delivery_control_maximum_total_map_entries, reassembly
 * by um_reassembly_maximum_size per message and 64 partial messages. */
#ifndef UM_DELIVERY_DC_H
#define UM_DELIVERY_DC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/um_buf.h"
#include "wire/um_lbmc.h"

struct um_dc;

struct um_dc_config {
    int ordered_delivery;            /* 1, 0, -1 */
    uint32_t maximum_burst_loss;     /* fragments */
    uint64_t gap_timeout_ns;         /* NAK generation interval; 0 = loss at once (TCP) */
    uint64_t loss_check_interval_ns; /* 0 = expiry only on traffic */
    uint32_t map_entries_max;        /* 0 = unlimited */
    size_t reassembly_size_max;      /* bytes per message */
};

/* One delivery. `buf` holds data (ref to keep); for a reassembled message it is a heap buffer of the DC's. */
struct um_dc_delivery {
    const uint8_t *data;
    size_t len;
    uint32_t sqn;       /* of the last fragment */
    uint32_t first_sqn; /* of the first fragment */
    bool fragment;      /* ordered_delivery 0 and a fragmented message */
    bool fragmented;    /* frag_* describe the (last) fragment */
    uint32_t frag_offset, frag_total;
    struct um_buf *buf;
    const struct um_lbmc_msg *msg; /* headers of the (last) fragment: request, apphdr chain, batch flags */
    uint16_t batch_flags;          /* START of the first and END of the last fragment */
};

/* Why an arrival, or a message, is not delivered. */
enum um_dc_discard {
    UM_DC_DUPLICATE,  /* seen before */
    UM_DC_LATE,       /* given up and reported as lost before */
    UM_DC_MALFORMED,  /* bad fragment headers, impossible TSNIs */
    UM_DC_HEADLESS,   /* fragment of a message whose beginning was lost, or sent before we joined */
    UM_DC_REASSEMBLY, /* message beyond the bounds of reassembly; also reported as lost */
    UM_DC_NO_ROOM,    /* no memory to hold it; its number counts as missing */
    UM_DC_UNFINISHED, /* held behind a gap, or part of a message, when the source went away */
    UM_DC_DISCARD_COUNT
};

struct um_dc_ops {
    void (*deliver)(void *user, const struct um_dc_delivery *delivery, uint64_t now_ns);
    void (*loss)(void *user, uint32_t sqn, uint64_t now_ns);
    void (*burst_loss)(void *user, uint32_t first_sqn, uint32_t count, uint64_t now_ns);
    void (*set_timer)(void *user, uint64_t due_ns); /* UM_NEVER disarms */
    /* A gap was seen; it may still be filled. May be NULL. */
    void (*missing)(void *user, uint32_t first_sqn, uint32_t count, uint64_t now_ns);
    /* Something that arrived was thrown away, and counted. May be NULL. */
    void (*discarded)(void *user, enum um_dc_discard why, uint32_t sqn, uint64_t now_ns);
};

struct um_dc_stats {
    uint64_t delivered; /* messages, or fragments in mode 0 */
    uint64_t missing;   /* sequence numbers found missing */
    uint64_t lost;      /* sequence numbers given up, burst losses included */
    uint64_t bursts;
    uint64_t map_overflow;                  /* gaps given up early for want of room; their numbers are lost */
    uint64_t discards[UM_DC_DISCARD_COUNT]; /* by enum um_dc_discard */
};

struct um_dc *um_dc_create(const struct um_dc_config *config, const struct um_dc_ops *ops, void *user);
/* The source is gone: what is held is counted as discarded. Afterwards only um_dc_stats() and um_dc_destroy(). */
void um_dc_finish(struct um_dc *dc, uint64_t now_ns);
void um_dc_destroy(struct um_dc *dc); /* nothing is delivered, nothing reported */
/* The callbacks may not call back into this DC, and may destroy it only through a flag checked by the owner afterwards.
 */
void um_dc_on_data(struct um_dc *dc, uint64_t now_ns, const struct um_lbmc_msg *msg, struct um_buf *buf);
/* The short way for messages in order and without extension headers. True: nothing is held back or missing, and *next
 * is the number that is due: the caller may deliver it and those that follow by itself, and then tells how many it
 * delivered. False: every message must come by um_dc_on_data(). Hot path. */
bool um_dc_in_order(const struct um_dc *dc, uint32_t *next);
void um_dc_took(struct um_dc *dc, uint32_t count);
void um_dc_on_tsni(struct um_dc *dc, uint64_t now_ns, uint32_t last_sqn); /* 0xFFFFFFFF: nothing sent yet */
void um_dc_on_timer(struct um_dc *dc, uint64_t now_ns);
size_t um_dc_held(const struct um_dc *dc);             /* fragments in the order map */
size_t um_dc_reassembly_bytes(const struct um_dc *dc); /* allocated for partial messages */
const struct um_dc_stats *um_dc_stats(const struct um_dc *dc);
void um_dc_stats_add(struct um_dc_stats *sum, const struct um_dc_stats *more);
void um_dc_stats_subtract(struct um_dc_stats *from, const struct um_dc_stats *less);

#endif
