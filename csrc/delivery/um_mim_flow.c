/* The flow of one sender of immediate messages. See um_mim_flow.h. */
#include "delivery/um_mim_flow.h"

#include "base/um_timer.h"

void um_mim_flow_init(struct um_mim_flow *flow, const struct um_mim_flow_config *config, const struct um_dc_ops *ops,
                      void *user)
{
    *flow = (struct um_mim_flow){.config = config, .ops = ops, .user = user};
}

void um_mim_flow_from_start(struct um_mim_flow *flow)
{
    flow->due_known = true;
    flow->due = 0;
}

/* False: no memory. */
static bool ready(struct um_mim_flow *flow, uint64_t now_ns)
{
    if (flow->window.bits == NULL &&
        um_sqn_window_init(&flow->window, flow->config->window_size, flow->config->window_step) != 0) {
        return false;
    }
    if (flow->dc == NULL) {
        flow->dc = um_dc_create(&flow->config->dc, flow->ops, flow->user);
        flow->counts.restarts += flow->dc != NULL && flow->begun;
        if (flow->dc != NULL && flow->due_known) {
            um_dc_on_tsni(flow->dc, now_ns, flow->due - 1);
        }
    }
    return flow->dc != NULL;
}

/* What is older than the window the controller judges, which knows how far it has come. */
void um_mim_flow_on_data(struct um_mim_flow *flow, uint64_t now_ns, const struct um_lbmc_msg *msg, struct um_buf *buf)
{
    flow->heard_ns = now_ns;
    if (!ready(flow, now_ns)) {
        flow->counts.no_room++;
        if (flow->ops->discarded != NULL) {
            flow->ops->discarded(flow->user, UM_DC_NO_ROOM, msg->sqn, now_ns);
        }
        return;
    }
    flow->begun = true;
    if (um_sqn_window_take(&flow->window, msg->sqn) == UM_SQN_SEEN) {
        flow->counts.duplicates++;
        return;
    }
    um_dc_on_data(flow->dc, now_ns, msg, buf);
}

void um_mim_flow_on_timer(struct um_mim_flow *flow, uint64_t now_ns)
{
    if (flow->dc != NULL) {
        um_dc_on_timer(flow->dc, now_ns);
    }
}

void um_mim_flow_on_progress(struct um_mim_flow *flow, uint64_t now_ns)
{
    if (flow->dc != NULL) {
        um_dc_on_progress(flow->dc, now_ns);
    }
}

static void free_controller(struct um_mim_flow *flow)
{
    um_dc_destroy(flow->dc);
    flow->dc = NULL;
    flow->ops->set_timer(flow->user, UM_NEVER);
}

void um_mim_flow_look(struct um_mim_flow *flow, uint64_t now_ns)
{
    if (flow->dc == NULL || now_ns - flow->heard_ns < flow->config->idle_ns || um_dc_opens(flow->dc) ||
        um_dc_waits(flow->dc, now_ns)) {
        return;
    }
    um_dc_end(flow->dc, now_ns); /* of messages that never got whole it tells the loss */
    flow->due_known = true;
    flow->due = um_dc_due(flow->dc);
    free_controller(flow);
}

void um_mim_flow_end(struct um_mim_flow *flow, uint64_t now_ns, bool tell)
{
    if (flow->dc != NULL) {
        if (tell) {
            um_dc_end(flow->dc, now_ns);
        }
        um_dc_finish(flow->dc, now_ns);
        free_controller(flow);
    }
    um_sqn_window_free(&flow->window);
}
