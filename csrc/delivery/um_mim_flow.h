/* What one sender of multicast immediate messages has sent, on its way to the application: the window of numbers seen,
 * and the delivery controller, which is made with the first message and goes when nothing has come for long. An engine:
 * time and messages come in, deliveries go out by the controller's callbacks. Its owner's thread. */
#ifndef UM_DELIVERY_MIM_FLOW_H
#define UM_DELIVERY_MIM_FLOW_H

#include "delivery/um_dc.h"
#include "delivery/um_sqn_window.h"

struct um_mim_flow_config {
    struct um_dc_config dc;
    size_t window_size, window_step; /* numbers; see um_sqn_window.h */
    uint64_t idle_ns;                /* silent for so long, the delivery controller goes */
};

/* What became of messages before a delivery controller judged them. */
struct um_mim_flow_counts {
    uint64_t duplicates; /* in the window already */
    uint64_t no_room;    /* no memory to begin with */
    uint64_t restarts;   /* delivery controllers made after the first one */
};

struct um_mim_flow {
    const struct um_mim_flow_config *config; /* outlives it */
    const struct um_dc_ops *ops;             /* the same */
    void *user;
    struct um_dc *dc; /* NULL: no message yet, or none for long */
    struct um_sqn_window window;
    bool begun;     /* a message came */
    bool due_known; /* number `due` is the next one, whatever comes first: from the start, or after a controller went */
    uint32_t due;
    uint64_t heard_ns;
    struct um_mim_flow_counts counts;
};

/* Nothing is allocated before the first message. */
void um_mim_flow_init(struct um_mim_flow *flow, const struct um_mim_flow_config *config, const struct um_dc_ops *ops,
                      void *user);
/* Before any message: the sender began while it was listened for, so that what is missing before the first one is lost.
 */
void um_mim_flow_from_start(struct um_mim_flow *flow);
void um_mim_flow_on_data(struct um_mim_flow *flow, uint64_t now_ns, const struct um_lbmc_msg *msg, struct um_buf *buf);
void um_mim_flow_on_timer(struct um_mim_flow *flow, uint64_t now_ns); /* as the controller asked for */
void um_mim_flow_on_progress(struct um_mim_flow *flow, uint64_t now_ns);
/* Every now and then: a controller of a sender that is silent, and for which nothing is waited, goes. */
void um_mim_flow_look(struct um_mim_flow *flow, uint64_t now_ns);
/* The sender is gone. With `tell` what is missing is reported as lost and the rest delivered; without, nobody wants to
 * know. Nothing is left but to forget it. */
void um_mim_flow_end(struct um_mim_flow *flow, uint64_t now_ns, bool tell);

#endif
