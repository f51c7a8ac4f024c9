/* Receivers that merge the sources of their topic by hot failover numbers: what
 * a receiver has beside the plain one, and the engine (delivery/um_hf.h) joined
 * to flows, timer and application. The engine is its own, or that of an HFX
 * (um_hfx.h), of which the receiver is a member then. Everything is [loop] of the
 * context; what comes on the loop of an XSP is passed through. */
#ifndef UM_CORE_RCV_HF_H
#define UM_CORE_RCV_HF_H

#include "base/um_log.h"
#include "base/um_timer.h"
#include "core/um_message.h"
#include "delivery/um_hf.h"

#define UM_HF_RECEIVER_MAGIC 0x554d4846u /* "UMHF" */
#define UM_HF_HELD_BYTES_MAX (64u << 20) /* of messages that wait, with what belongs to them */

struct um_rcv_topic;

struct lbm_hf_rcv_t_stct {
    _Atomic uint32_t magic; /* any thread reads, also while the object is deleted */
    lbm_rcv_t *rcv;         /* fixed */
    lbm_hfx_rcv_t *member;  /* fixed: of an HFX, which merges; NULL: */
    struct um_hf merge;     /* it does */
    struct um_timer timer;
    struct um_list places;          /* um_rcv_hf_place.node: flows of which something came */
    struct um_msg *msg;             /* template: what the receiver is given where it is not the flow's message */
    struct um_msg *coming;          /* the flow's, while it is in the merge; NULL: none is */
    struct um_lbmc_hf told;         /* its number */
    struct um_rcv_hf_place *filled; /* whose source and topic `msg` has; NULL: it is not known */
    bool closing;                   /* nothing more is delivered */
};

/* One flow in the merge of one receiver. */
struct um_rcv_hf_place {
    struct um_hf_source source;
    struct um_list node;      /* of the receiver */
    struct um_list flow_node; /* flow->hf_places */
    lbm_hf_rcv_t *hf;
};

/* Makes it one, before it starts; `hfx`: a member of that one, or NULL. -1 + error. */
int um_rcv_hf_attach(lbm_rcv_t *rcv, lbm_hfx_t *hfx);
void um_rcv_hf_close(lbm_rcv_t *rcv); /* off its topic; nothing on other receivers */
void um_rcv_hf_free(lbm_rcv_t *rcv);  /* any thread, when it is closed or has not started */

/* What the merge has counted, and what waits in it now. Any thread; 0, or -1 + UM_EOP. */
int um_rcv_hf_stats(lbm_hf_rcv_t *hf, struct um_hf_stats *out, uint64_t *waiting);

/* The gaps of sources are the merge's to fill: true when all receivers of the topic want the messages as they come. */
bool um_rcv_hf_only(const struct um_rcv_topic *topic);
/* Instead of handing it to the receiver: data, requests, events of a flow, immediate messages. */
void um_rcv_hf_deliver(lbm_rcv_t *rcv, struct um_msg *msg);
/* A message of the flow, in its turn there, that has nothing beside its payload but a number of 32 bits: has another
 * source brought the number to the only receiver of the topic, so that it is done with? False: it is to be delivered,
 * or it is not clear. Hot path. */
bool um_rcv_hf_is_copy(struct um_rcv_flow *flow, uint32_t topic_sqn, const struct um_lbmc_hf *told);
void um_rcv_hf_flow_left(lbm_rcv_t *rcv, struct um_rcv_flow *flow); /* it does not call the receiver any more */
/* An event made for the receiver alone: true when it is one of an HFX, which tells it in its turn and takes the library
 * hold over. Any loop. */
bool um_rcv_hf_passes_event(lbm_rcv_t *rcv, struct um_msg *msg);
void um_rcv_hf_number(struct um_msg *msg, uint64_t sqn, bool wide); /* in the fields that applications read */

#endif
