/* Recovery of a flow: the requests of its engine go out over the unicast layer of
 * its lane, and the answers find their way to it. Made on the context's loop with
 * the flow, [loop] of the lane from its beginning to its end. */
#ifndef UM_CORE_RCV_RECOVERY_H
#define UM_CORE_RCV_RECOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/um_map.h"
#include "delivery/um_recovery.h"
#include "transport/unicast/um_unicast.h"

struct um_rcv_flow;
struct um_rcv_lane;
struct um_rcv_recovery;
struct um_tr_source;

#define UM_RCV_ASKS_MAX 64u /* requests that go together */
#define UM_RCV_ASK_LEN (UM_LBMC_CONTROL_HDR_LEN + UM_LBMC_RXREQ_LEN)

/* Of a lane: who waits for answers. */
struct um_rcv_recoveries {
    struct um_unicast *unicast;     /* fixed */
    struct um_u32_map by_topic;     /* topic index -> the first um_rcv_recovery of that index */
    struct um_u32_map by_index;     /* request index -> um_rcv_recovery */
    uint64_t unasked;               /* retransmissions that nobody waits for: answered twice, too late, or forged */
    struct um_recovery_stats ended; /* of recoveries that are over */
    uint32_t ask_count;             /* 0 but while an engine is called: requests of its recovery, to be sent then */
    uint8_t asks[UM_RCV_ASKS_MAX * UM_RCV_ASK_LEN];
};
void um_rcv_recoveries_open(struct um_rcv_recoveries *recoveries, struct um_unicast *unicast);
/* Of all, those that are over included. */
struct um_recovery_stats um_rcv_recoveries_stats(const struct um_rcv_recoveries *recoveries);
void um_rcv_recoveries_close(struct um_rcv_recoveries *recoveries); /* before the unicast layer goes; no flow is left */

/* Does what is known of the source offer recovery, and do the receiver's options want it? Then the flow gets one,
 * before its delivery controller is made. 0, or -1 + error. [loop] of the context */
int um_rcv_recovery_create(struct um_rcv_flow *flow, const struct um_tr_source *facts, struct um_rcv_recovery **out);
void um_rcv_recovery_destroy(struct um_rcv_recovery *recovery); /* [loop] of the context; NULL: nothing */
/* What the delivery controller is to know of it. */
void um_rcv_recovery_dc_config(const struct um_rcv_recovery *recovery, struct um_dc_config *config);

int um_rcv_recovery_begin(struct um_rcv_recovery *recovery); /* before the session is joined; -1 + error */
void um_rcv_recovery_end(struct um_rcv_recovery *recovery);
bool um_rcv_recovery_wanted(struct um_rcv_recovery *recovery, uint32_t first, uint32_t count, uint64_t now_ns);
/* Nothing more is asked for while it is held. NULL: nothing. */
void um_rcv_recovery_hold(struct um_rcv_recovery *recovery, bool held);
/* Something is asked for, and may still be answered. */
bool um_rcv_recovery_pending(const struct um_rcv_recovery *recovery);

#endif
