/* Delivery controller: per (topic, source) where the stream begins, ordering,
 * reassembly and topic-level loss. An engine: time and messages come in,
 * deliveries go out by callback. No clock, socket or lock. The in-order
 * unfragmented path allocates nothing. Bounded: what is held by
 * delivery_control_maximum_total_map_entries, reassembly by
 * um_reassembly_maximum_size per message and 64 partial messages.
 *
 * A stream is not begun, opening or open. It is opening while what was sent
 * before its first message may still come: because the transport repairs, or
 * because recovery will tell what it expects. Then what comes is held.
 *
 * What is missing has an owner: the transport (for as long as the gap timeout)
 * or recovery, which brings it by um_dc_on_data() like everything else, with
 * UM_LBMC_LATE_JOINED or UM_LBMC_RECOVERED in `present`, or abandons it. */
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
    /* Of what recovery brings; all 0 where there is none. */
    uint64_t recovery_timeout_ns;  /* silent for so long, it has abandoned everything; 0 = never */
    uint32_t caching_proximity;    /* ordered: live messages this far beyond what it brings are left to it; 0 = none */
    uint32_t recovery_entries_max; /* ordered: and those beyond so many held ones; 0 = unlimited */
    bool recovers_bursts;          /* gaps of maximum_burst_loss and more are offered to it, too */
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
    UM_DC_BEFORE,     /* sent before we joined; came in a repair for others */
    UM_DC_UNASKED,    /* from recovery, and nobody waits for it */
    UM_DC_DEFERRED,   /* too far beyond what recovery brings to be kept; its number counts as missing */
    UM_DC_REASSEMBLY, /* message beyond the bounds of reassembly; also reported as lost */
    UM_DC_NO_ROOM,    /* no memory to hold it; its number counts as missing */
    UM_DC_UNFINISHED, /* part of a message when the source went away; held behind a gap when the receivers did */
    UM_DC_DISCARD_COUNT
};

/* One table for all streams of a kind; it must outlive them. */
struct um_dc_ops {
    void (*deliver)(void *user, const struct um_dc_delivery *delivery, uint64_t now_ns);
    void (*loss)(void *user, uint32_t sqn, uint64_t now_ns);
    void (*burst_loss)(void *user, uint32_t first_sqn, uint32_t count, uint64_t now_ns);
    void (*set_timer)(void *user, uint64_t due_ns); /* UM_NEVER disarms */
    /* A gap was seen; it may still be filled. May be NULL. */
    void (*missing)(void *user, uint32_t first_sqn, uint32_t count, uint64_t now_ns);
    /* Something that arrived was thrown away, and counted. May be NULL. */
    void (*discarded)(void *user, enum um_dc_discard why, uint32_t sqn, uint64_t now_ns);
    /* A gap is given up early because no more may wait behind it, and counted (map_overflow). May be NULL. */
    void (*map_full)(void *user, uint64_t now_ns);
    /* The four of a transport that repairs, all NULL where it does not: how far it has come; whether nothing sent
     * before that position can come any more; opening (um_dc_on_progress() is wanted from now on) or not any more; and
     * that what is held is handed on before its time, for its size. */
    uint32_t (*position)(void *user);
    bool (*complete_before)(void *user, uint32_t position);
    void (*opening)(void *user, bool on);
    void (*opening_cut)(void *user, size_t messages, size_t bytes, uint64_t now_ns);
    /* Does recovery take this gap over? It is told of it once. May be NULL: no. */
    bool (*recovery_wanted)(void *user, uint32_t first_sqn, uint32_t count, uint64_t now_ns);
};

struct um_dc_stats {
    uint64_t delivered; /* messages, or fragments in mode 0 */
    uint64_t missing;   /* sequence numbers found missing */
    uint64_t lost;      /* sequence numbers given up, burst losses included */
    uint64_t bursts;
    uint64_t expected;                      /* sequence numbers that recovery said it would bring */
    uint64_t skipped;                       /* and, in silence, not */
    uint64_t openings_cut;                  /* beginnings handed on before they were complete, for their size */
    uint64_t map_overflow;                  /* gaps given up early for want of room; their numbers are lost */
    uint64_t discards[UM_DC_DISCARD_COUNT]; /* by enum um_dc_discard */
};

#define UM_DC_BURST_MAX (1u << 20) /* maximum_burst_loss counts as this when it is larger */
struct um_dc *um_dc_create(const struct um_dc_config *config, const struct um_dc_ops *ops, void *user);
/* The source is gone, and who receives is told everything before that: what is missing is reported as lost, what lies
 * behind it is delivered, of each message that is not whole the first number is reported as lost. */
void um_dc_end(struct um_dc *dc, uint64_t now_ns);
/* Nobody wants more: what is held is counted as discarded. Afterwards only um_dc_stats() and um_dc_destroy(). */
void um_dc_finish(struct um_dc *dc, uint64_t now_ns);
/* Something is missing, and its owner still has time to bring it. */
bool um_dc_waits(const struct um_dc *dc, uint64_t now_ns);
void um_dc_destroy(struct um_dc *dc); /* nothing is delivered, nothing reported */
/* The callbacks may not call back into this DC, and may destroy it only through a flag checked by the owner afterwards.
 */
void um_dc_on_data(struct um_dc *dc, uint64_t now_ns, const struct um_lbmc_msg *msg, struct um_buf *buf);
/* The short way for messages in order and without extension headers. True: nothing is held back or missing, and *next
 * is the number that is due: the caller may deliver it and those that follow by itself, and then tells how many it
 * delivered. False: every message must come by um_dc_on_data(). Hot path. */
bool um_dc_in_order(const struct um_dc *dc, uint32_t *next);
void um_dc_took(struct um_dc *dc, uint32_t count);
/* Both for one message: true when it is due and nothing is held back or missing. It counts as delivered then, and the
 * caller delivers it. Hot path. */
bool um_dc_take(struct um_dc *dc, uint32_t sqn);
void um_dc_on_tsni(struct um_dc *dc, uint64_t now_ns, uint32_t last_sqn); /* 0xFFFFFFFF: nothing sent yet */
void um_dc_on_timer(struct um_dc *dc, uint64_t now_ns);
/* The transport has come further; while opening. */
void um_dc_on_progress(struct um_dc *dc, uint64_t now_ns);

/* ---- recovery ---- */

/* Before anything came: recovery will tell by um_dc_expect() what it brings; in order, the stream does not begin before
 * that. */
void um_dc_await_recovery(struct um_dc *dc);
/* Recovery brings [first, first + count), which may be older than everything seen; count 0: nothing. It owns what of it
 * is not here, and what lies between it and the first live message is offered to it whatever its size. False: of a part
 * of it it does not: too late (in order, the stream has begun behind it), or more than a stream can hold. */
bool um_dc_expect(struct um_dc *dc, uint64_t now_ns, uint32_t first, uint32_t count);
/* Recovery brings nothing from before `next`, and what of the numbers from there on is missing when the first live
 * message comes. */
void um_dc_expect_next(struct um_dc *dc, uint64_t now_ns, uint32_t next);
enum um_dc_abandon { UM_DC_LOST, UM_DC_SKIPPED };
/* Recovery will not bring what it owns of [first, first + count): reported as lost when it is its turn (as one burst
 * from maximum_burst_loss on), or passed over in silence. False: no memory, nothing changed. */
bool um_dc_abandon(struct um_dc *dc, uint64_t now_ns, uint32_t first, uint32_t count, enum um_dc_abandon how);
struct um_dc_range {
    uint32_t first, count;
    uint64_t since_ns; /* found missing, or expected */
};
/* The oldest numbers from `from` on that recovery owns and has not brought. False: none. */
bool um_dc_next_missing(const struct um_dc *dc, uint32_t from, struct um_dc_range *out);
/* The oldest of all of them. */
bool um_dc_waits_for_recovery(const struct um_dc *dc, struct um_dc_range *oldest);
/* What comes is held, until the transport has brought what it can of the beginning. */
bool um_dc_opens(const struct um_dc *dc);
/* The oldest number that came on the transport, or that the stream began with. False: none did, or it is long ago. */
bool um_dc_oldest(const struct um_dc *dc, uint32_t *sqn);
/* The next number due, i.e. the oldest one that is missing or not yet sent. Only while open. */
uint32_t um_dc_due(const struct um_dc *dc);

size_t um_dc_held(const struct um_dc *dc);             /* messages and fragments that wait for their turn */
size_t um_dc_bytes(const struct um_dc *dc);            /* of memory, without the messages */
size_t um_dc_reassembly_bytes(const struct um_dc *dc); /* allocated for partial messages */
struct um_dc_stats um_dc_stats(const struct um_dc *dc);
void um_dc_stats_add(struct um_dc_stats *sum, const struct um_dc_stats *more);
void um_dc_stats_subtract(struct um_dc_stats *from, const struct um_dc_stats *less);

#endif
