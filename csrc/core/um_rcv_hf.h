/* Receivers that merge the sources of their topic by hot failover numbers: what
 * a receiver has beside the plain one, and the engine (delivery/um_hf.h) joined
 * to flows, timer and application. Everything is [loop] of the context; what
 * comes on the loop of an XSP is passed through. */
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
    struct um_hf merge;
    struct um_timer timer;
    struct um_list places; /* um_rcv_hf_place.node: flows of which something came */
    struct um_msg *msg;    /* template: what the receiver is given of the message that is being delivered */
    bool closing;          /* nothing more is delivered */
    struct um_log_limit width_log, room_log;
};

/* One flow in the merge of one receiver. */
struct um_rcv_hf_place {
    struct um_hf_source source;
    struct um_list node;      /* of the receiver */
    struct um_list flow_node; /* flow->hf_places */
    lbm_hf_rcv_t *hf;
};

int um_rcv_hf_attach(lbm_rcv_t *rcv); /* makes it one, before it starts. -1 + error */
void um_rcv_hf_close(lbm_rcv_t *rcv); /* off its topic; nothing on other receivers */
void um_rcv_hf_free(lbm_rcv_t *rcv);  /* any thread, when it is closed or has not started */

/* The gaps of sources are the merge's to fill: true when all receivers of the topic want the messages as they come. */
bool um_rcv_hf_only(const struct um_rcv_topic *topic);
/* Instead of handing it to the receiver: data, requests, events of a flow, immediate messages. */
void um_rcv_hf_deliver(lbm_rcv_t *rcv, struct um_msg *msg);
void um_rcv_hf_flow_left(lbm_rcv_t *rcv, struct um_rcv_flow *flow); /* it does not call the receiver any more */

#endif
