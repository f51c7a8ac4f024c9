/* The stream of one source as the loop of its transport session sees it: the half
 * of a um_rcv_source that receives. It owns the stream, the delivery controller,
 * its timers and the message template, and calls the receivers of its audience.
 * The other half, on the context's loop, gives the orders declared here and hears
 * the news of um_rcv_source_on_*(), through the mail when the flow's loop is
 * another one. Everything is [loop] of the flow's lane. */
#ifndef UM_CORE_RCV_FLOW_H
#define UM_CORE_RCV_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/um_log.h"
#include "base/um_timer.h"
#include "core/um_message.h"
#include "core/um_rcv_audience.h"
#include "core/um_rcv_lane.h"
#include "core/um_rcv_withdrawal.h"
#include "delivery/um_dc.h"
#include "transport/session/um_rcv_session.h"

struct um_rcv_mail;
struct um_rcv_source;
struct um_rcv_topic;
struct um_tr_source;

/* Why a flow ended by itself. */
enum um_rcv_flow_end {
    UM_RCV_FLOW_LOST,      /* its session is over */
    UM_RCV_FLOW_WITHDRAWN, /* as ordered: nothing came any more */
    UM_RCV_FLOW_MADE_WAY,  /* as ordered: nothing had come */
    UM_RCV_FLOW_FAILED     /* its session could not be joined; told by the mail only */
};

/* Of a source that is gone, whose last messages may still be on their way: few are, at any time. */
struct um_rcv_leaving {
    struct um_rcv_flow *flow;
    struct um_timer timer; /* armed until it is over */
    struct um_rcv_withdrawal withdrawal;
};

struct um_rcv_flow {
    struct um_rcv_stream stream;
    struct um_dc *dc;
    struct um_rcv_recovery *recovery; /* fixed; NULL: the source offers none, or nobody wants it */
    struct um_msg *msg; /* template: source and topic text filled in. NULL: others of the lane have them all */
    struct um_rcv_audience *audience;
    lbm_rcv_t *direct; /* the only receiver, to be called at once; the template is made up for it. NULL: unknown */
    void *clientd;     /* source_notification_function, lbm_rcv_msg_source_clientd */
    struct um_rcv_lane *lane;               /* fixed */
    const struct um_receiver_options *opts; /* fixed: those of the topic when the source was found; a reference */
    struct um_rcv_mail *mail;               /* fixed: between it and the source; NULL: the lane is the context's own */
    uint64_t id;                            /* fixed: one of a kind in this process, from 1 */
    bool direct_numbered; /* with `direct`: also what has a channel, as long as the receiver has subscribed to none */
    bool bos_seen;
    bool proved;        /* something of it was received, not only of its session */
    bool opens_session; /* fixed: over TCP or LBT-RU, the session was opened for it */
    bool ready;      /* counted in topic->ready: from after its BOS (or proof, see become_ready) until before its EOS */
    bool reading;    /* on_read_end is still to come */
    bool recovering; /* what comes now, recovery has brought or let go */
    bool held;       /* the session is left unread for a full collector */
    struct um_list held_node; /* lane->held */
    struct um_list lane_node; /* lane->flows; not linked: not begun, or over */
    struct um_timer loss_timer;
    struct um_rcv_leaving *leaving; /* NULL: topic resolution knows it, or it is over */
    struct um_list hf_places;       /* rcv_hf.c: what hot failover receivers know of it */
};

/* [loop] of the context, before the flow is handed to its lane. 0, or -1 + error: nothing is left. `again`: its source
 * ended a moment ago. `facts`: what topic resolution knows of it; NULL: nothing. */
int um_rcv_flow_init(struct um_rcv_flow *flow, struct um_rcv_source *source, struct um_rcv_lane *lane, bool again,
                     const struct um_tr_source *facts);
/* Its source string, in UM_SOURCE_STRING_MAX bytes, which are returned. Any thread. */
const char *um_rcv_flow_source(const struct um_rcv_flow *flow, char *out);
void um_rcv_flow_fini(struct um_rcv_flow *flow); /* [loop] of the context, when it is over */

/* Joins the session. Takes over a reference on the audience. -1 + error: it is over. */
int um_rcv_flow_begin(struct um_rcv_flow *flow, struct um_rcv_audience *audience);
/* These are the receivers from now on; those that are new hear of a source that has begun. Takes over a reference. */
void um_rcv_flow_set_audience(struct um_rcv_flow *flow, struct um_rcv_audience *audience);
void um_rcv_flow_withdrawn(struct um_rcv_flow *flow); /* topic resolution says that it is gone */
void um_rcv_flow_keep(struct um_rcv_flow *flow);      /* it is not */
void um_rcv_flow_make_way(struct um_rcv_flow *flow);  /* unless something has come, others need the room */
void um_rcv_flow_close(struct um_rcv_flow *flow);     /* over, without EOS. Nothing when it is over already */

/* Around what the engine of recovery does with the flow: deliveries may follow. `heard`: something of the source came.
 */
void um_rcv_flow_recovery_begins(struct um_rcv_flow *flow, bool heard);
void um_rcv_flow_recovery_ends(struct um_rcv_flow *flow);

/* Of the lane: of this topic, or with NULL all. `after` NULL: the first one. NULL: no more. */
struct um_rcv_flow *um_rcv_flow_next(struct um_rcv_lane *lane, const struct um_rcv_topic *topic,
                                     const struct um_rcv_flow *after);

/* For full collectors sessions are left unread, and nothing more is asked for. What recovery brings, and what waited
 * for that, came because this side asked: no more than what is asked for already comes after it. */
bool um_rcv_flow_can_hold(const struct um_rcv_flow *flow);
void um_rcv_flow_hold(struct um_rcv_flow *flow);
void um_rcv_flows_release(struct um_rcv_lane *lane); /* those whose receivers' collectors all have room again */

#endif
