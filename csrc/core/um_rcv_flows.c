/* The flows of a lane: which they are, and those whose sessions are left unread for
 * full collectors. See um_rcv_flow.h. Runs on the loop of the lane. Owns nothing. */
#include "core/um_rcv_flow.h"

#include "base/um_mem.h"
#include "core/um_rcv_private.h"

/* The context knows them by topic; an XSP has few. Those of its own loop are never closing. */
static struct um_rcv_flow *next_of_topic(struct um_rcv_lane *lane, const struct um_rcv_topic *topic,
                                         const struct um_rcv_flow *after)
{
    struct um_list *node = after == NULL ? topic->sources.next : um_rcv_source_of(after)->node.next;
    for (; node != &topic->sources; node = node->next) {
        struct um_rcv_flow *flow = &UM_CONTAINER_OF(node, struct um_rcv_source, node)->flow;
        if (flow->lane == lane) {
            return flow;
        }
    }
    return NULL;
}

struct um_rcv_flow *um_rcv_flow_next(struct um_rcv_lane *lane, const struct um_rcv_topic *topic,
                                     const struct um_rcv_flow *after)
{
    if (topic != NULL && lane == &lane->ctx->rcv_lane) {
        return next_of_topic(lane, topic, after);
    }
    struct um_list *node = after == NULL ? lane->flows.next : after->lane_node.next;
    for (; node != &lane->flows; node = node->next) {
        struct um_rcv_flow *flow = UM_CONTAINER_OF(node, struct um_rcv_flow, lane_node);
        if (topic == NULL || um_rcv_source_of(flow)->topic == topic) {
            return flow;
        }
    }
    return NULL;
}

/* ---- sessions left unread for full collectors ---- */

bool um_rcv_flow_can_hold(const struct um_rcv_flow *flow)
{
    return um_rcv_stream_can_pause(&flow->stream) || flow->recovering;
}

void um_rcv_flow_hold(struct um_rcv_flow *flow)
{
    if (!flow->held) {
        flow->held = true;
        um_list_push_back(&flow->lane->held, &flow->held_node);
        if (um_rcv_stream_can_pause(&flow->stream)) {
            um_rcv_session_pause(&flow->stream);
        }
        um_rcv_recovery_hold(flow->recovery, true);
    }
}

static bool wanted_held(const struct um_rcv_flow *flow)
{
    for (unsigned i = 0; i < flow->audience->count; i++) {
        struct um_collector_link *link = flow->audience->receivers[i]->collector;
        if (link != NULL && um_collector_await_room(link)) {
            return true;
        }
    }
    return false;
}

void um_rcv_flows_release(struct um_rcv_lane *lane)
{
    struct um_list *node, *next;
    UM_LIST_FOREACH_SAFE(node, next, &lane->held)
    {
        struct um_rcv_flow *flow = UM_CONTAINER_OF(node, struct um_rcv_flow, held_node);
        if (!wanted_held(flow)) {
            flow->held = false;
            um_list_remove(node);
            um_rcv_recovery_hold(flow->recovery, false);
            um_rcv_session_resume(&flow->stream);
        }
    }
}
