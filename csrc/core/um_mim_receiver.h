/* Receiving multicast immediate messages: listens on mim_incoming_address, joins the session of every sender heard
 * there, and hands what comes to core/um_immediate.c. Nobody advertises the senders, so anybody can pretend to be some:
 * how many are remembered, from where and how fast is bounded, and each has its end. Everything is [loop] of the
 * context.
 */
#ifndef UM_CORE_MIM_RECEIVER_H
#define UM_CORE_MIM_RECEIVER_H

#include "core/um_context.h"

struct um_mim_receiver;

/* Senders remembered. */
#define UM_MIM_UNPROVED_MAX 256u    /* that have sent no message yet; one more takes the place of the oldest */
#define UM_MIM_SENDERS_MAX 1024u    /* that have; one more takes the place of the one silent for the longest time */
#define UM_MIM_PER_ADDRESS_MAX 256u /* of both, of one address; one more takes the place of one of its own */
#define UM_MIM_NEW_PER_SECOND 1000u /* more are heard again by their next datagram */

struct um_mim_receiver_counts {
    uint64_t senders, unproved; /* remembered now */
    uint64_t replaced;          /* gave way to others */
    uint64_t refused;           /* datagrams of new senders, beyond the rate, or without memory */
    uint64_t foreign;           /* messages that are no immediate ones */
    uint64_t duplicates;        /* messages, by their numbers */
    uint64_t ended;             /* fell silent */
};

/* *out is NULL when mim_incoming_address is 0.0.0.0. 0, or -1 + error: the group cannot be joined, no memory. */
int um_mim_receiver_create(lbm_context_t *ctx, struct um_mim_receiver **out);
/* Nothing is reported any more. NULL is fine. */
void um_mim_receiver_destroy(struct um_mim_receiver *receiver);
void um_mim_receiver_counts(const struct um_mim_receiver *receiver, struct um_mim_receiver_counts *out);

#endif
