/* Hot failover: one ordered stream out of several sources that send the same
 * messages under the same numbers. An engine: messages and time come in,
 * deliveries go out by callback. No clock, socket or lock; its owner's thread.
 *
 * A message that is due is delivered and the next number is expected. Beyond a
 * gap it waits (ordered) until the gap is closed: by the missing number, from
 * any source; by proof that a source has sent nothing between what is delivered
 * and what waits, so the gap is meant (its topic sequence numbers have no hole
 * there); or by time, then what is missing is lost. In arrival order a message
 * is delivered at once, and its number waits in the same way to be counted.
 *
 * A reset begins a new count. A source that has not sent the reset that another
 * one has sent is behind: what it sends belongs to the old count until it sends
 * the reset, too, or its numbers show the new one.
 *
 * Memory: what waits is bounded by entries_max and bytes_max, beyond that the
 * oldest gap is given up and its numbers are lost; each source has
 * UM_HF_RUNS_MAX runs. */
#ifndef UM_DELIVERY_HF_H
#define UM_DELIVERY_HF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/um_list.h"
#include "delivery/um_hf_entries.h"
#include "delivery/um_hf_runs.h"
#include "wire/um_lbmc_hf.h"

#define UM_HF_JUMP_MAX 1073741824u /* numbers that may be left out; what is farther ahead counts as old */

struct um_hf_config {
    bool ordered;
    bool duplicates; /* deliver every copy */
    bool optional;   /* deliver optional messages; else all leave them */
    uint64_t gap_timeout_ns;
    uint32_t maximum_burst_loss; /* so many numbers or more are lost as one burst */
    uint32_t entries_max;        /* messages and numbers that wait; 0: no limit */
    size_t bytes_max;            /* of what waits; 0: no limit */
};

struct um_hf_message {
    struct um_lbmc_hf hf;
    uint32_t first_sqn, last_sqn; /* of its topic on its source */
    size_t size;                  /* bytes it takes when it waits */
    bool leaves_optional;         /* who brings it does not want it if it is optional */
    void *msg;                    /* the owner's, valid during the call */
};

enum um_hf_discard {
    UM_HF_DUPLICATE, /* delivered before, or reported as lost */
    UM_HF_OPTIONAL,  /* not wanted */
    UM_HF_WIDTH,     /* 32 bits among 64, or the other way round */
    UM_HF_FAR,       /* beyond UM_HF_JUMP_MAX */
    UM_HF_BEHIND,    /* of the count before the last reset */
    UM_HF_NO_ROOM,   /* no memory to let it wait; its number counts as missing */
    UM_HF_ENDED,     /* waited when the receiver was deleted, or a reset came */
    UM_HF_DISCARD_COUNT
};

struct um_hf_stats {
    uint64_t delivered;   /* first copies */
    uint64_t again;       /* further copies, delivered on request */
    uint64_t held;        /* messages that had to wait */
    uint64_t meant;       /* gaps that a source has made on purpose */
    uint64_t lost;        /* numbers */
    uint64_t given_early; /* gaps given up for want of room; their numbers are in `lost` */
    uint64_t resets;
    uint64_t discards[UM_HF_DISCARD_COUNT];
};

struct um_hf_ops {
    void (*deliver)(void *user, void *msg, const struct um_lbmc_hf *hf, bool duplicate);
    void (*reset)(void *user, void *msg, const struct um_lbmc_hf *hf);
    void (*loss)(void *user, uint64_t number);
    void (*burst_loss)(void *user, uint64_t first, uint64_t count);
    void *(*hold)(void *user, void *msg);           /* a copy that stays; NULL: no memory */
    void (*let_go)(void *user, void *held);         /* not wanted any more, delivered or not */
    void (*set_timer)(void *user, uint64_t due_ns); /* UM_NEVER disarms */
    void (*discarded)(void *user, enum um_hf_discard why, uint64_t number, uint64_t now_ns); /* may be NULL */
};

/* A message over a hole whose number goes back: the hole may hide a reset. */
struct um_hf_doubt {
    struct um_hf_message message; /* msg: held */
    struct um_list node;
};

struct um_hf_source {
    struct um_list node; /* of the engine; not linked: not attached */
    struct um_hf_runs runs;
    struct um_list doubts;
    uint64_t doubts_since_ns;
    uint64_t last; /* number of the newest message; with has_last */
    uint32_t resets;
    uint32_t floor; /* topic sequence number of its last reset; with has_floor */
    bool has_last, has_floor, behind;
    uint32_t entered;   /* the count that it has begun without its own reset, as a number of resets; 0: none */
    uint32_t entry_sqn; /* with this message */
    uint64_t entry_number;
};

struct um_hf {
    struct um_hf_config config;
    const struct um_hf_ops *ops;
    void *user;
    struct um_list sources;
    bool begun, wide;
    uint32_t resets;
    uint64_t reset_to; /* by the last one; ahead of everything before it: */
    bool reset_ahead;
    uint64_t due; /* the next number */
    struct um_hf_entries entries;
    size_t doubts, bytes;
    uint64_t timer_ns;
    struct um_hf_stats stats;
};

void um_hf_init(struct um_hf *hf, const struct um_hf_config *config, const struct um_hf_ops *ops, void *user);
void um_hf_fini(struct um_hf *hf, uint64_t now_ns); /* all sources have left; what waits is let go */
void um_hf_join(struct um_hf *hf, struct um_hf_source *source);
void um_hf_leave(struct um_hf *hf, struct um_hf_source *source, uint64_t now_ns);

void um_hf_on_message(struct um_hf *hf, struct um_hf_source *source, const struct um_hf_message *message,
                      uint64_t now_ns);
/* The usual cases in few steps: the message follows on the one before it on its source, nothing waits, and it is due,
 * or was brought already by another source. `size` is not looked at. False: it is something else, and nothing has
 * happened. Hot path. */
bool um_hf_on_next(struct um_hf *hf, struct um_hf_source *source, const struct um_hf_message *message, uint64_t now_ns);
/* Only the second of the two, of a message that nobody has looked at but for its numbers. */
bool um_hf_on_copy(struct um_hf *hf, struct um_hf_source *source, uint32_t topic_sqn, const struct um_lbmc_hf *told);
/* A message of the source without a number: passed through by the owner, it only proves that nothing is missing. */
void um_hf_on_passed(struct um_hf *hf, struct um_hf_source *source, uint32_t first_sqn, uint32_t last_sqn,
                     uint64_t now_ns);
void um_hf_on_timer(struct um_hf *hf, uint64_t now_ns);
size_t um_hf_waiting(const struct um_hf *hf); /* messages and numbers */

#endif
