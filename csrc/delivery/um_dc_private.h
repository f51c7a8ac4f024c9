/* The delivery controller's structure and how its files share it: um_dc.c (what
 * arrives, and how it leaves), um_dc_opening.c (where the stream begins),
 * um_dc_gaps.c (what is missing, and when it is given up) and um_dc_recovery.c
 * (what recovery is expected to bring). Same thread as the engine. */
#ifndef UM_DELIVERY_DC_PRIVATE_H
#define UM_DELIVERY_DC_PRIVATE_H

#include "delivery/um_dc.h"
#include "delivery/um_gap_list.h"
#include "delivery/um_held.h"
#include "delivery/um_order_map.h"
#include "delivery/um_reassembly.h"

#define UM_DC_LEAD_MAX                                                                                                 \
    UM_DC_BURST_MAX               /* a larger gap is a burst whatever the option says; a TSNI may not claim more       \
                                   */
#define UM_DC_SPAN_MAX (1u << 30) /* from the oldest gap to `next`: keeps modular comparison sound */
#define UM_DC_GIVEN_UP_KEPT 16u   /* ranges given up that are remembered, to tell late ones from repetitions */

enum um_dc_mode { UM_DC_ORDERED = 1, UM_DC_FRAGMENTS = 0, UM_DC_ARRIVAL = -1 };

enum um_dc_state {
    UM_DC_NOT_BEGUN, /* nothing that the stream could begin with has come */
    UM_DC_OPENING,   /* something has, and something before it may: held in `opening` */
    UM_DC_OPEN       /* `next` is known */
};

/* Only while something is missing or held behind it. */
struct um_dc_disorder {
    struct um_gap_list gaps;
    struct um_order_map order; /* mode 1 */
    uint64_t scan_ns;          /* modes 0 and -1: no gap is due before this */
    uint64_t recovered_ns;     /* recovery last brought or said something */
    uint32_t recovered;        /* newest number that it brought; valid with has_recovered */
    bool has_recovered;
};

/* Only while opening. */
struct um_dc_opening {
    uint32_t position;  /* of the transport: what was sent before it is waited for */
    uint32_t first_sqn; /* of the message that came first; valid when count > 0 */
    size_t count, capacity;
    size_t bytes;                   /* of the buffers kept; one that comes again behind another counts twice */
    const struct um_buf *last_kept; /* by the message that came last */
    struct um_held *items;          /* in order of arrival */
    bool told;                      /* a TSNI came meanwhile: */
    uint32_t told_sqn;
    bool expects; /* recovery has told what it brings: */
    uint32_t expect_first, expect_end;
};

/* Only once something was not as it should be; kept, because it is asked for later. */
struct um_dc_past {
    struct um_dc_stats stats; /* all but `delivered` */
    struct {
        uint32_t first, end;
    } given_up[UM_DC_GIVEN_UP_KEPT]; /* a ring; an empty range means unused */
    uint32_t next;
};

/* Invariant when open: every number from the first one on is delivered, held, in the gap list, or given up. `next` is
 * one past the newest number known; the next number due is the start of the oldest gap, or `next`. */
struct um_dc {
    uint32_t next;
    uint8_t state;    /* enum um_dc_state; changed by um_dc_enter() only */
    bool plain;       /* open, and nothing is missing, held, expected or put together: kept by um_dc_settle() */
    bool heard;       /* something of a message was received, or the source or recovery had told where it
                         stands: what is missing from here on is reported. Before, it is leading loss, which is
                         silent */
    bool start_known; /* start_sqn may still be compared with */
    bool hinted;      /* not begun: a TSNI named hint_sqn as the last number sent */
    bool timer_armed;
    bool awaits_recovery; /* it has not told yet what it brings */
    bool recovers_hint;   /* recovery has told what the last number was before us, and brings what follows it */
    bool after_expected;  /* nothing live was heard since it did */
    int8_t mode;          /* enum um_dc_mode: config->ordered_delivery, which is looked at for each message */
    uint32_t start_sqn;   /* where the stream began */
    uint32_t hint_sqn;
    const struct um_dc_ops *ops;
    void *user;
    struct um_dc_disorder *disorder;  /* NULL: everything is here */
    struct um_dc_opening *opening;    /* NULL: not opening */
    struct um_dc_past *past;          /* NULL: nothing but deliveries to tell of */
    struct um_reassembly *reassembly; /* NULL: there was no fragment yet */
    uint64_t delivered;
    uint64_t uncounted;                /* for want of memory for `past`: counts as UM_DC_NO_ROOM */
    const struct um_dc_config *config; /* fixed; shared by those that are configured alike (um_intern.h) */
};

/* Adds to a counter of struct um_dc_stats other than `delivered`. */
#define UM_DC_COUNT(dc, counter, n) um_dc_count((dc), offsetof(struct um_dc_stats, counter), (n))
void um_dc_count(struct um_dc *dc, size_t counter, uint64_t n);
struct um_dc_past *um_dc_past_of(struct um_dc *dc); /* NULL: no memory */

/* Messages that are being put together. */
static inline unsigned um_dc_partials(const struct um_dc *dc)
{
    return dc->reassembly == NULL ? 0 : dc->reassembly->count;
}

static inline bool um_dc_ordered(const struct um_dc *dc)
{
    return dc->mode == UM_DC_ORDERED;
}

static inline size_t um_dc_gaps(const struct um_dc *dc)
{
    return dc->disorder == NULL ? 0 : dc->disorder->gaps.count;
}

static inline struct um_gap *um_dc_gap(const struct um_dc *dc, size_t index)
{
    return um_gap_list_at(&dc->disorder->gaps, index);
}

static inline bool um_dc_off_transport(const struct um_lbmc_msg *msg)
{
    return (msg->present & UM_LBMC_OFF_TRANSPORT) != 0;
}

/* um_dc.c */
void um_dc_enter(struct um_dc *dc, enum um_dc_state state);
void um_dc_begin_at(struct um_dc *dc, uint32_t start);
/* The source had told us its last number: was `sqn` sent after that? */
bool um_dc_follows_hint(const struct um_dc *dc, uint32_t sqn);
void um_dc_begin_at_hint(struct um_dc *dc); /* everything since then was for us */
/* A message of a stream whose beginning is not waited for (any more). */
void um_dc_place(struct um_dc *dc, uint64_t now_ns, const struct um_lbmc_msg *msg, struct um_buf *buf);
/* The source's last number, told to an open stream. */
void um_dc_told(struct um_dc *dc, uint64_t now_ns, uint32_t last_sqn);
/* Mode 1: deliver what is held from `sqn` up to the next gap. */
void um_dc_drain(struct um_dc *dc, uint32_t sqn, uint64_t now_ns);
void um_dc_discard(struct um_dc *dc, enum um_dc_discard why, uint32_t sqn, uint64_t now_ns);
void um_dc_settle(struct um_dc *dc, uint64_t now_ns); /* ends everything that may change what is missing or held */

/* um_dc_gaps.c */
/* [next, end) was never seen. Afterwards next == end. */
void um_dc_open_gap(struct um_dc *dc, uint32_t end, uint64_t now_ns);
bool um_dc_push_gap(struct um_dc *dc, uint32_t first, uint32_t end, enum um_gap_owner owner, uint64_t now_ns);
/* What is due, `arrived` being the number that has come from the transport. */
void um_dc_expire(struct um_dc *dc, uint64_t now_ns, uint32_t arrived);
void um_dc_enforce_limit(struct um_dc *dc, uint64_t now_ns);
void um_dc_keep_timer(struct um_dc *dc, uint64_t now_ns);
void um_dc_give_up_all(struct um_dc *dc, uint64_t now_ns);
void um_dc_report_missing(struct um_dc *dc, uint32_t first, uint32_t count, uint64_t now_ns);
void um_dc_report_lost(struct um_dc *dc, uint32_t first, uint32_t end, uint64_t now_ns);
bool um_dc_given_up(const struct um_dc *dc, uint32_t sqn); /* lately */

/* um_dc_opening.c */
/* Not begun, and this message (NULL: a TSNI) shows that something was sent: does the stream wait for what was sent
 * before it? Then it is opening from here on. */
bool um_dc_opening_begin(struct um_dc *dc, uint32_t sqn);
void um_dc_opening_hold(struct um_dc *dc, uint64_t now_ns, const struct um_lbmc_msg *msg, struct um_buf *buf);
/* The stream begins with what is held. `complete`: nothing older can come any more. */
void um_dc_opening_release(struct um_dc *dc, bool complete, uint64_t now_ns);
bool um_dc_opening_complete(const struct um_dc *dc);
void um_dc_opening_free(struct um_dc *dc);

/* um_dc_recovery.c */
/* In order, a live message too far beyond what recovery brings: left to it. True: done. */
bool um_dc_defer(struct um_dc *dc, uint64_t now_ns, uint32_t sqn);
void um_dc_recovered(struct um_dc *dc, uint64_t now_ns, uint32_t sqn); /* a number that it owned has come */

#endif
