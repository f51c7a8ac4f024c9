/* Messages of a lane that go from flow to flow. See um_rcv_templates.h. */
#include "core/um_rcv_templates.h"

#include "core/um_rcv_private.h"
#include "wire/um_source_string.h"

static struct um_msg *add(struct um_rcv_templates *templates)
{
    struct um_msg *msg = templates->count < UM_RCV_TEMPLATES_MAX ? um_msg_create("", "") : NULL;
    if (msg != NULL) {
        um_msg_mark(msg, UM_MSG_TEMPLATE, true);
        msg->slot = (uint8_t)templates->count;
        templates->list[templates->count++] = msg;
    }
    return msg;
}

bool um_rcv_templates_ready(struct um_rcv_templates *templates)
{
    return templates->count > 0 || add(templates) != NULL;
}

void um_rcv_templates_clear(struct um_rcv_templates *templates)
{
    for (unsigned i = 0; i < templates->count; i++) {
        um_msg_release(templates->list[i]);
    }
    templates->count = 0;
}

void um_rcv_template_leave(struct um_rcv_flow *flow)
{
    if (flow->msg != NULL) {
        flow->msg->origin = NULL;
        flow->msg = NULL;
        flow->direct = NULL;
    }
}

/* The one in whose delivery this is, if any, stays. */
static struct um_msg *next_in_turn(struct um_rcv_templates *templates)
{
    struct um_msg *msg;
    do {
        msg = templates->list[templates->turn];
        templates->turn = (templates->turn + 1) % templates->count;
    } while (um_msg_is(msg, UM_MSG_DELIVERING));
    return msg;
}

struct um_msg *um_rcv_template_take(struct um_rcv_templates *templates, struct um_rcv_flow *flow)
{
    struct um_msg *msg = add(templates);
    if (msg == NULL) {
        msg = next_in_turn(templates);
    }
    if (msg->origin != NULL) {
        um_rcv_template_leave(msg->origin);
    }
    um_rcv_flow_source(flow, msg->pub.source);
    um_msg_set_topic(msg, um_rcv_source_of(flow)->topic->base.name);
    msg->origin = flow;
    flow->msg = msg;
    return msg;
}

void um_rcv_template_delivered(struct um_rcv_templates *templates, struct um_rcv_flow *flow)
{
    struct um_msg *next = um_msg_template_next(flow->msg);
    templates->list[next->slot] = next;
    flow->msg = next;
}
