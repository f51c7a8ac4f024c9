/* Rules of the relay and what they do to a frame: seeded, without clock or socket,
 * so that the same frames meet the same fate under the same seed. Called by the
 * relay's only thread and by its unit test. */
#ifndef RELAY_IMPAIR_H
#define RELAY_IMPAIR_H

#include "frame.h"

#define IMPAIR_PORTS 8
#define IMPAIR_RULES 32
#define IMPAIR_COPIES 8

/* What one rule has done to the frames that leave through one port. */
struct impair_counts {
    uint64_t matched, lost, duplicated, delayed, reordered, corrupted, overflowed;
};

struct impair_rule {
    char name[32];
    uint32_t from, to; /* bits of ports */
    uint32_t kinds;    /* bits of enum frame_kind; all but ARP, whose loss would cost a second, if not given */
    uint16_t port_low, port_high; /* either end's UDP or TCP port */
    bool with_sqn;                /* only numbered frames from sqn_low to sqn_high */
    uint32_t sqn_low, sqn_high;
    bool shared;                     /* one draw of loss for all ports that a frame leaves through */
    double loss;                     /* probability, as the following */
    double burst_enter, burst_leave; /* Gilbert-Elliott: everything is lost in the bad state */
    double duplicate, reorder, corrupt;
    bool corrupt_unseen; /* the checksum is put right again */
    uint64_t delay_ns, jitter_ns, reorder_ns;
    uint64_t rate_bps, queue_ns; /* a link of this rate with a queue of this time */
    uint64_t skip, count;        /* with count: only matching frames skip+1 to skip+count; lost by default */
    struct {                     /* by port of leaving; [0] for shared draws */
        uint64_t random;
        bool bad;
        uint64_t busy_until_ns;
    } state[IMPAIR_PORTS];
    uint64_t shared_serial;
    bool shared_lost;
    struct impair_counts counts[IMPAIR_PORTS];
};

struct impair {
    uint64_t seed;
    unsigned ports;
    size_t rules_used;
    struct impair_rule rules[IMPAIR_RULES];
    uint32_t cut; /* bits of ports whose cable is pulled */
};

/* What becomes of a frame: nothing (copies 0: lost), or copies that leave at their time. */
struct impair_fate {
    unsigned copies;
    struct {
        uint64_t due_ns;
        bool corrupt;
        bool fix_checksum;
        uint32_t corrupt_at; /* offset of the byte to be changed */
    } copy[IMPAIR_COPIES];
};

void impair_init(struct impair *impair, uint64_t seed, unsigned ports);

/* "rule NAME key=value...", "clear [NAME]", "cut PORT", "mend PORT"; false with a reason in `reply` when refused. */
bool impair_command(struct impair *impair, const char *line, char *reply, size_t reply_len);

/* `serial` tells frames apart: the same for all ports that one frame leaves through. */
void impair_frame(struct impair *impair, uint64_t now_ns, uint64_t serial, unsigned in, unsigned out,
                  const struct frame_info *info, size_t len, struct impair_fate *fate);

#endif
