/* The messages in which the flows of a lane deliver: templates, each made up for one flow at a time, so that only what
 * changes is written for a message. A few of them serve the flows that delivered last; a flow that has none takes the
 * one that has been with its flow for the longest time, and fills in source and topic. Everything is [loop] of the
 * lane. */
#ifndef UM_CORE_RCV_TEMPLATES_H
#define UM_CORE_RCV_TEMPLATES_H

#include <stdbool.h>

#include "core/um_message.h"

#define UM_RCV_TEMPLATES_MAX 64u /* 50 KB of a lane */

struct um_rcv_templates {
    struct um_msg *list[UM_RCV_TEMPLATES_MAX]; /* origin: the flow that has it, or NULL */
    unsigned count;
    unsigned turn; /* whose is taken next when all are out */
};

bool um_rcv_templates_ready(struct um_rcv_templates *templates); /* there is one; false: no memory */
void um_rcv_templates_clear(struct um_rcv_templates *templates); /* no flow has one any more */
/* For a flow without one, after um_rcv_templates_ready(): flow->msg, also returned. Never fails. */
struct um_msg *um_rcv_template_take(struct um_rcv_templates *templates, struct um_rcv_flow *flow);
/* What the flow has delivered in may be the application's now: then flow->msg is another one. */
void um_rcv_template_delivered(struct um_rcv_templates *templates, struct um_rcv_flow *flow);
void um_rcv_template_leave(struct um_rcv_flow *flow); /* it is over; nothing when it has none */

#endif
