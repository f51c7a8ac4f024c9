/* The receive side of one loop: its sessions, and the flows on them. A context has
 * one on its own loop, and one on the loop of each of its XSPs. Everything is
 * [loop] of the lane unless noted. */
#ifndef UM_CORE_RCV_LANE_H
#define UM_CORE_RCV_LANE_H

#include <stdatomic.h>
#include <stdbool.h>

#include <lbm/lbm.h>

#include "base/um_list.h"
#include "base/um_lock.h"
#include "core/um_rcv_recovery.h"
#include "core/um_rcv_templates.h"
#include "net/um_loop.h"
#include "transport/session/um_rcv_session.h"

struct um_rcv_lane {
    lbm_context_t *ctx;   /* fixed */
    struct um_loop *loop; /* fixed */
    struct um_rcv_sessions *sessions;
    struct um_rcv_recoveries recoveries; /* um_rcv_recovery.c: flows that ask sources for what they miss */
    struct um_list flows;                /* um_rcv_flow.lane_node */
    struct um_rcv_templates templates;
    struct um_slice chain;     /* during a delivery: its application headers; ptr NULL: it has none */
    struct um_list held;       /* um_rcv_flow.held_node: left unread for full collectors */
    struct um_command release; /* of an XSP: read again those for which there is room */
    struct um_list node;       /* lanes->list; lanes lock */
    unsigned users;            /* lanes lock: calls of other threads under way */
    bool closing;              /* lanes lock: no more of them */
    unsigned routes;           /* [loop] of the context: sessions that are, or are to be, on it (um_rcv_routes) */
    /* [loop] of the context: the last of them is gone. NULL: nobody cares. */
    void (*on_unused)(struct um_rcv_lane *lane);
};

/* The lanes of a context's XSPs. */
struct um_rcv_lanes {
    struct um_lock lock;
    struct um_condition changed; /* with lock: users */
    struct um_list list;         /* lock */
    atomic_uint count;           /* written under the lock */
};

void um_rcv_lane_init(struct um_rcv_lane *lane, lbm_context_t *ctx, struct um_loop *loop,
                      struct um_rcv_sessions *sessions, struct um_unicast *unicast);

/* Any thread. */
void um_rcv_lanes_init(struct um_rcv_lanes *lanes);
void um_rcv_lane_enter(struct um_rcv_lane *lane); /* among those of its context */
/* Nobody calls it from here on; waits for those who do. -1 + UM_EOP: it would wait for itself; nothing is changed. */
int um_rcv_lane_close(struct um_rcv_lane *lane);
void um_rcv_lane_reopen(struct um_rcv_lane *lane);                          /* they may again */
void um_rcv_lane_leave(struct um_rcv_lane *lane);                           /* off the list */
bool um_rcv_lane_known(lbm_context_t *ctx, const struct um_rcv_lane *lane); /* looks at the address only */

/* Runs fn for each lane of the context on its loop, that of the calling thread first, its own next, until it does not
 * return 0. Returns what the last one did, errors included. Any thread. */
int um_rcv_lanes_each(lbm_context_t *ctx, int (*fn)(struct um_rcv_lane *lane, void *arg), void *arg);
/* What the context's loop ordered before, the XSPs have done, and the context has heard of it. Not [loop] of any. 0, or
 * -1 + error. */
int um_rcv_lanes_sync(lbm_context_t *ctx);
void um_rcv_lanes_release_held(lbm_context_t *ctx); /* on all XSPs, soon */

#endif
