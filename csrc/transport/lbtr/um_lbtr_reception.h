/* Receiving side of a number space: what is new, missing, repeated or given up, and
 * when NAKs are due. Shared by LBT-RM and LBT-RU. Keeps no payload: datagrams are passed
 * up as they come. Owned by a receiving engine; its thread. */
#ifndef UM_TRANSPORT_LBTR_RECEPTION_H
#define UM_TRANSPORT_LBTR_RECEPTION_H

#include "base/um_random.h"
#include "base/um_timer.h"
#include "transport/lbtr/um_lbtr_gaps.h"
#include "wire/um_lbtr.h"

#define UM_LBTR_LEAD_MAX (1u << 20) /* default: how far ahead of the newest datagram a number may run */
#define UM_LBTR_NAK_LIST_MAX 365u
#define UM_LBTR_REPAIRED 128u

struct um_lbtr_nak_config {
    uint64_t initial_ns, backoff_ns, suppress_ns, generation_ns;
    bool send_naks;
    uint32_t lead_max; /* 0: UM_LBTR_LEAD_MAX */
};

/* Counters of a received session; the public statistics are made of them, and of what the session above counts. */
struct um_lbtr_receiver_counters {
    uint64_t msgs_rcved, bytes_rcved, nak_pckts_sent, naks_sent, lost;
    uint64_t ncfs[UM_LBTR_REASONS], ncfs_unknown; /* per number, by reason */
    uint64_t stm_min, stm_mean256, stm_max;       /* ms; the mean in 1/256 ms */
    uint64_t tx_min, tx_mean256, tx_max;
    uint64_t duplicate_data, unrecovered_txw, unrecovered_tmo, out_of_order;
    uint64_t late_data;   /* came after they were given up, and were passed up */
    uint64_t false_leads; /* numbers far ahead that nothing confirmed or the stream contradicted: taken back */
    uint64_t dropped_size, dropped_type, dropped_version, dropped_hdr, dropped_sid, dropped_other;
};

/* What lbm_rcv_transport_stats_lbtrm_t and ..._lbtru_t have in common, as initializers. */
#define UM_LBTR_RECEIVER_STATS(c)                                                                                      \
    .msgs_rcved = (c)->msgs_rcved, .bytes_rcved = (c)->bytes_rcved, .nak_pckts_sent = (c)->nak_pckts_sent,             \
    .naks_sent = (c)->naks_sent, .lost = (c)->lost, .ncfs_ignored = (c)->ncfs[UM_LBTR_NAK_IGNORED],                    \
    .ncfs_shed = (c)->ncfs[UM_LBTR_NAK_SHED], .ncfs_rx_delay = (c)->ncfs[UM_LBTR_RX_DELAY],                            \
    .ncfs_unknown = (c)->ncfs_unknown, .nak_stm_min = (c)->stm_min, .nak_stm_mean = (c)->stm_mean256 / 256,            \
    .nak_stm_max = (c)->stm_max, .nak_tx_min = (c)->tx_min, .nak_tx_mean = (c)->tx_mean256 / 256,                      \
    .nak_tx_max = (c)->tx_max, .duplicate_data = (c)->duplicate_data, .unrecovered_txw = (c)->unrecovered_txw,         \
    .unrecovered_tmo = (c)->unrecovered_tmo, .dgrams_dropped_size = (c)->dropped_size,                                 \
    .dgrams_dropped_type = (c)->dropped_type, .dgrams_dropped_version = (c)->dropped_version,                          \
    .dgrams_dropped_hdr = (c)->dropped_hdr, .dgrams_dropped_other = (c)->dropped_other

enum um_lbtr_loss { UM_LBTR_LOSS_WINDOW /* left the source's window */, UM_LBTR_LOSS_TIME /* NAKs were in vain */ };

/* How a session ends, seen by a receiver. */
enum um_lbtr_end { UM_LBTR_END_SILENCE, UM_LBTR_END_NO_ANSWER, UM_LBTR_END_RESET, UM_LBTR_ENDS };

struct um_lbtr_reception_ops {
    /* Send one NAK packet. */
    void (*nak)(void *user, const uint32_t *sqns, size_t count);
    /* Numbers [first, first + count) will not come any more. */
    void (*lost)(void *user, uint64_t now_ns, uint32_t first, uint32_t count, enum um_lbtr_loss why);
    /* Numbers were forged or damaged: the stream is at `next`, and what was received or reported lost beyond was not
     * it. */
    void (*taken_back)(void *user, uint64_t now_ns, uint32_t next);
};

struct um_lbtr_reception {
    struct um_lbtr_nak_config config;
    const struct um_lbtr_reception_ops *ops;
    void *user;
    struct um_rng *rng;    /* of the context */
    uint32_t nak_list_max; /* numbers per packet */
    bool synced;
    bool proven;     /* a datagram was accepted: the origin is not the word of a session message alone */
    uint32_t origin; /* nothing before it was received; while origin_known */
    bool origin_known;
    bool trail_known;
    uint32_t trail;     /* of the datagram received last */
    uint32_t expected;  /* behind the newest datagram received */
    uint32_t claim_end; /* behind the newest number a session message told; not before `expected` */
    struct um_lbtr_gaps gaps;
    struct um_lbtr_gaps given_up; /* numbers before `expected` that never came and are not asked for any more */
    bool far_lead;                /* the newest datagram came far ahead of all others, and nothing confirmed it yet */
    bool unanswered;    /* nothing that lies before it was repaired so far: it is not asked for at full rate */
    uint32_t confirmed; /* while either: what is missing from here on has only its word */
    uint32_t lead_end;  /* behind the last datagram that came far ahead */
    struct {
        uint32_t first, next, count; /* of the row: the first one, behind the last, how many */
        uint64_t since_ns, last_ns;  /* when the first one and the newest one came */
        bool before_origin;          /* some of them */
        bool any;
        uint32_t expected; /* nothing new came since the first one; `end` is behind the newest one since then */
        uint32_t end;
    } behind; /* originals in a row that never came before, although the stream seemed to have passed them */
    struct {
        bool any;             /* a trail was heard */
        uint32_t all_before;  /* of the ranges that end up to here, every one is doomed */
        uint32_t some_before; /* no range that begins here or later is */
    } doomed;
    bool cutoff;        /* NAKs are switched off for the context */
    uint32_t far_next;  /* a stream that runs too far ahead: its next number ... */
    uint32_t far_count; /* ... and how many came in a row */
    uint64_t due_ns;    /* when on_timer has something to do; UM_NEVER */
    uint64_t last_scan_ns;
    uint64_t next_round_ns;   /* no NAK before: the last round could not ask for all that was due */
    uint64_t next_hearsay_ns; /* nor, for what only a session message told of, before this; a datagram of it lifts it */
    struct {
        uint64_t end_ns;
        uint32_t packets, numbers; /* asked for */
    } span;                        /* what bounds the rate of NAKs */
    struct {
        uint64_t late_ns;      /* so late come originals that were asked for in vain */
        uint64_t late_seen_ns; /* when that was seen last, or has faded */
        uint64_t repair_ns;    /* from the first NAK to the repair, on average */
        struct {
            uint64_t detected_ns;
            uint32_t sqn;
        } repaired[UM_LBTR_REPAIRED]; /* by number: whose original may still come */
    } pace;                           /* what the network takes; shorter intervals give way to it */
    struct um_lbtr_receiver_counters counters;
};

/* What became of a datagram. */
enum um_lbtr_arrival { UM_LBTR_ACCEPTED, UM_LBTR_DUPLICATE, UM_LBTR_INSANE };

void um_lbtr_reception_init(struct um_lbtr_reception *rx, const struct um_lbtr_nak_config *config,
                            const struct um_lbtr_reception_ops *ops, void *user, struct um_rng *rng,
                            uint32_t nak_list_max);
void um_lbtr_reception_free(struct um_lbtr_reception *rx);
/* The next number expected; nothing earlier is ever asked for. */
void um_lbtr_reception_start(struct um_lbtr_reception *rx, uint32_t expected);
/* What was received so far was of no stream, or may have been: it begins here, unless the first datagram contradicts.
 */
void um_lbtr_reception_restart(struct um_lbtr_reception *rx, uint32_t expected);
/* A trail beyond the number behind it makes no sense. */
static inline bool um_lbtr_trail_is_sane(uint32_t trail, uint32_t lead)
{
    return (int32_t)(trail - lead) <= 1;
}
/* Everything but the expected datagram while nothing is missing: use um_lbtr_reception_data(). */
enum um_lbtr_arrival um_lbtr_reception_unexpected(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t sqn,
                                                  uint32_t trail, bool retransmission);
/* False: a number that makes no sense. */
bool um_lbtr_reception_sm(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t lead, uint32_t trail);
void um_lbtr_reception_ncf(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t trail, uint8_t reason,
                           const struct um_lbtr_list *list);
void um_lbtr_reception_set_cutoff(struct um_lbtr_reception *rx, uint64_t now_ns, bool cutoff);
/* Is nothing older than `sqn` missing, or nothing asked for? */
bool um_lbtr_reception_complete_before(const struct um_lbtr_reception *rx, uint32_t sqn);
/* When something is due; and when nothing is, at least once for a quarter of the number space. */
void um_lbtr_reception_on_timer(struct um_lbtr_reception *rx, uint64_t now_ns);
void um_lbtr_counters_drop(struct um_lbtr_receiver_counters *counters, enum um_lbtr_rc rc);
void um_lbtr_counters_reset(struct um_lbtr_receiver_counters *counters);
/* A number was repaired: so long after it was missed, and after so many NAKs. */
void um_lbtr_counters_recovered(struct um_lbtr_receiver_counters *counters, uint64_t ms, uint64_t naks);

static inline enum um_lbtr_arrival um_lbtr_reception_data(struct um_lbtr_reception *rx, uint64_t now_ns, uint32_t sqn,
                                                          uint32_t trail, bool retransmission)
{
    if (__builtin_expect(
            sqn == rx->expected && rx->claim_end == sqn && rx->gaps.count == 0 && (int32_t)(trail - sqn) <= 1, 1)) {
        rx->expected = rx->claim_end = sqn + 1;
        rx->far_count = 0;
        rx->proven = true;
        return UM_LBTR_ACCEPTED;
    }
    return um_lbtr_reception_unexpected(rx, now_ns, sqn, trail, retransmission);
}

#endif
