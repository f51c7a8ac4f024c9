/* Recovery of one stream from a retransmitter (its source; a store): late join, and
 * gaps that the transport leaves. It decides what to ask for and when, and hands
 * what comes to the delivery controller, whose gaps it owns. An engine: no clock,
 * no socket, no lock. Same thread as the delivery controller.
 *
 * Late join: asking what there is -> replaying -> nothing more to replay. What it
 * replays ends with the first number that came on the transport; what the
 * controller defers meanwhile is replayed, too. Off-transport recovery begins when
 * a gap has lasted for its initial delay, or too much waits behind it. */
#ifndef UM_DELIVERY_RECOVERY_H
#define UM_DELIVERY_RECOVERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/um_buf.h"
#include "delivery/um_dc.h"

#define UM_RECOVERY_RANGE_MAX (1u << 28) /* numbers that a retransmitter may offer: what retention keeps at most */
#define UM_RECOVERY_OUTSTANDING_MAX (1u << 12) /* requests at one time, whatever the option says */

struct um_recovery_config {
    /* late join */
    bool late_join;
    uint64_t info_interval_ns;
    uint32_t info_maximum;    /* requests for information before the stream goes on without */
    uint32_t request_maximum; /* messages from before the newest; 0: all */
    uint64_t request_interval_ns, request_timeout_ns;
    uint32_t request_outstanding;
    uint32_t
        window;    /* numbers beyond the oldest missing one that are asked for, as what comes is held; 0: not limited */
    bool ask_last; /* of a source that has sent nothing, the last number */
    uint64_t last_interval_ns;
    uint32_t last_maximum;
    /* gaps of the transport */
    bool off_transport;
    uint64_t otr_alert_cooldown_ns; /* since the last alert: only then is the next beginning one */
    uint64_t otr_delay_ns, otr_interval_ns, otr_interval_max_ns, otr_timeout_ns;
    uint32_t otr_outstanding;       /* 0: UM_RECOVERY_OUTSTANDING_MAX */
    uint32_t otr_entries_threshold; /* so many held: at once */
    uint32_t otr_burst; /* a gap of so many numbers, of which none came before the first is given up, is given up whole;
                           0: none is */
};

enum um_recovery_note {
    UM_RECOVERY_SKIPPED,   /* no information came: late join is left out */
    UM_RECOVERY_STARTED,   /* information came; `count` numbers will be asked for */
    UM_RECOVERY_BEYOND,    /* begin() gave a number that is not offered: `count` is where it begins instead */
    UM_RECOVERY_SENSELESS, /* information with a range of `count` numbers: ignored */
    UM_RECOVERY_OTR_ALERT, /* off-transport recovery begins, for the first time or after the cooldown */
    UM_RECOVERY_OTR_AGAIN  /* off-transport recovery begins, again `count` times since the alert */
};

struct um_recovery_ops {
    /* Send a request. One that cannot be sent is asked again in its time. `low` is the oldest number that came on the
     * transport, if any did. */
    void (*ask_info)(void *user, bool has_low, uint32_t low);
    void (*ask)(void *user, uint32_t sqn);
    void (*ask_last)(void *user);
    void (*set_timer)(void *user, uint64_t due_ns);
    /* Where the replay begins: `low` is the oldest number there is, `wanted` the first that request_maximum leaves,
     * `high` the newest. NULL: at `wanted`. */
    uint32_t (*begin)(void *user, uint32_t low, uint32_t wanted, uint32_t high);
    void (*note)(void *user, enum um_recovery_note what, uint32_t count, uint64_t now_ns);
};

enum um_recovery_state {
    UM_RECOVERY_IDLE,     /* no late join, or over */
    UM_RECOVERY_ASKING,   /* for information */
    UM_RECOVERY_REPLAYING /* numbers older than replay_end are asked for at once */
};

struct um_recovery_request {
    uint32_t sqn;
    bool open; /* not answered, not given up */
    uint64_t first_ns, next_ns, interval_ns;
};

struct um_recovery_stats {
    uint64_t asked, repeated; /* requests for numbers */
    uint64_t recovered;       /* answers that were handed on */
    uint64_t unasked;         /* answers that nobody waits for */
    uint64_t timed_out;
};

struct um_recovery {
    struct um_recovery_config config;
    const struct um_recovery_ops *ops;
    void *user;
    struct um_dc *dc;
    enum um_recovery_state state;
    bool unfinished; /* some of what it replays has not come */
    bool otr;        /* off-transport recovery is on */
    bool asks_last;
    bool paused;           /* nobody has room for what would come */
    uint32_t replay_end;   /* valid from REPLAYING on */
    bool replayed;         /* replay_end is valid */
    uint32_t cursor;       /* older numbers were asked for */
    uint32_t times;        /* information, or the last number, was asked for; of this state */
    uint32_t otr_times;    /* it began, since the last alert */
    uint64_t otr_alert_ns; /* the last alert; valid when otr_times > 0 */
    uint64_t answered_ns;  /* a number last came */
    uint64_t ask_ns;       /* for information, or the last number, next */
    uint64_t armed_ns;     /* UM_NEVER: no timer */
    uint32_t answers;      /* came since it was last looked what to ask for */
    /* By number, from request_head on; those that are not open wait until all before them are not either, or for their
     * place to be needed. The first is open. */
    struct um_recovery_request *requests;
    uint32_t request_head, request_span, request_count, request_capacity; /* count: open */
    struct um_recovery_stats stats;
};

void um_recovery_init(struct um_recovery *recovery, const struct um_recovery_config *config,
                      const struct um_recovery_ops *ops, void *user, struct um_dc *dc);
void um_recovery_fini(struct um_recovery *recovery);
/* Before anything came on the transport. */
void um_recovery_start(struct um_recovery *recovery, uint64_t now_ns);

/* The controller's question (um_dc_ops.recovery_wanted). */
bool um_recovery_wanted(struct um_recovery *recovery, uint32_t first, uint32_t count, uint64_t now_ns);

/* Nothing more is asked for until it is resumed; what was asked for may still come. */
void um_recovery_pause(struct um_recovery *recovery);
void um_recovery_resume(struct um_recovery *recovery, uint64_t now_ns);

/* Answers, whose sender was checked. */
void um_recovery_on_info(struct um_recovery *recovery, uint64_t now_ns, uint32_t low, uint32_t high);
bool um_recovery_asked(const struct um_recovery *recovery, uint32_t sqn); /* is it waited for? */
/* False: nobody asked for it; nothing is done. */
bool um_recovery_on_data(struct um_recovery *recovery, uint64_t now_ns, struct um_lbmc_msg *msg, struct um_buf *buf);
void um_recovery_on_last(struct um_recovery *recovery, uint64_t now_ns, uint32_t last_sqn);
void um_recovery_on_timer(struct um_recovery *recovery, uint64_t now_ns);

#endif
