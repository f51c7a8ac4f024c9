/* Sending multicast immediate messages: an LBT-RM session of its own, opened on the loop by the first send and ended
 * there when nothing was sent for mim_src_deletion_timeout. Sends run in the caller's thread. */
#ifndef UM_CORE_MIM_SENDER_H
#define UM_CORE_MIM_SENDER_H

#include "core/um_context.h"
#include "core/um_context_events.h"

#define UM_MIM_MESSAGE_MAX 7866u /* bytes of payload, as documented: a datagram of 8192 with room for headers */

struct um_mim_sender;

struct um_mim_message {
    const char *topic; /* NULL: none; else checked */
    const void *data;
    size_t len;             /* at most UM_MIM_MESSAGE_MAX */
    int flags;              /* LBM_SRC_NONBLOCK */
    const uint8_t *headers; /* more extension headers, whose last next_hdr is DATA; NULL: none */
    size_t headers_len;     /* at most UM_MIM_HEADERS_MAX */
    uint8_t first_header;   /* code of headers[0] */
};
#define UM_MIM_HEADERS_MAX 64u

/* [loop] Nothing is opened. `events` are told of wakeups and live longer. NULL + error. */
struct um_mim_sender *um_mim_sender_create(lbm_context_t *ctx, struct um_context_events *events);
/* [loop] Senders that wait return -1/UM_EINVAL first. NULL is fine. */
void um_mim_sender_destroy(struct um_mim_sender *sender);

/* Any thread. 0, or -1 + error: UM_EWOULDBLOCK (refused, or in a callback of the context), no session (ports,
 * descriptors, memory: the next send tries again), UM_EINVAL (the context is being deleted). */
int um_mim_send(struct um_mim_sender *sender, const struct um_mim_message *message);

#endif
