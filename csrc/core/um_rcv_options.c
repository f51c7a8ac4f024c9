/* Live options of receivers: changed and read on the loop. */
#include "config/um_shared_options.h"
#include "core/um_rcv_private.h"

struct option_call {
    lbm_rcv_t *rcv;
    const char *name;
    const void *value;
    size_t value_len;
    const char *text;
    void *out;
    size_t *out_len;
    int *count;
    lbm_config_option_t *dump;
};

static int change_option(void *opts, void *arg)
{
    const struct option_call *c = arg;
    return c->text != NULL ? um_options_str_set(UM_SCOPE_RECEIVER, opts, c->name, c->text, true)
                           : um_options_set(UM_SCOPE_RECEIVER, opts, c->name, c->value, c->value_len, true);
}

static int setopt_on_loop(void *arg)
{
    struct option_call *c = arg;
    struct um_rcv_topic *topic = c->rcv->topic;
    const struct um_receiver_options *opts = um_options_share_changed(topic->opts, change_option, c);
    if (opts == NULL) {
        return -1;
    }
    um_options_drop(topic->opts);
    topic->opts = opts;
    um_rcv_apply_thresholds(topic);
    return 0;
}

/* The options with what is in force instead of what was set; strings and lists are the topic's. */
static struct um_receiver_options options_in_force(const lbm_rcv_t *rcv)
{
    struct um_receiver_options seen = *rcv->topic->opts;
    um_rcv_sessions_in_force(rcv->ctx->rcv_sessions, &seen);
    if (seen.delivery_control_maximum_burst_loss > UM_DC_BURST_MAX) {
        seen.delivery_control_maximum_burst_loss = UM_DC_BURST_MAX;
    }
    return seen;
}

static int getopt_on_loop(void *arg)
{
    struct option_call *c = arg;
    struct um_receiver_options seen = options_in_force(c->rcv);
    return um_options_get(UM_SCOPE_RECEIVER, &seen, c->name, c->out, c->out_len);
}

static int str_getopt_on_loop(void *arg)
{
    struct option_call *c = arg;
    struct um_receiver_options seen = options_in_force(c->rcv);
    return um_options_str_get(UM_SCOPE_RECEIVER, &seen, c->name, c->out, c->out_len);
}

static int dump_on_loop(void *arg)
{
    struct option_call *c = arg;
    struct um_receiver_options seen = options_in_force(c->rcv);
    return um_options_dump(UM_SCOPE_RECEIVER, &seen, c->count, c->dump);
}

int um_receiver_setopt(lbm_rcv_t *rcv, const char *name, const void *value, size_t len, const char *text)
{
    struct option_call call = {.rcv = rcv, .name = name, .value = value, .value_len = len, .text = text};
    return um_loop_call(rcv->ctx->loop, setopt_on_loop, &call);
}

int um_receiver_getopt(lbm_rcv_t *rcv, const char *name, void *value, size_t *len)
{
    struct option_call call = {.rcv = rcv, .name = name, .out = value, .out_len = len};
    return um_loop_call(rcv->ctx->loop, getopt_on_loop, &call);
}

int um_receiver_str_getopt(lbm_rcv_t *rcv, const char *name, char *text, size_t *len)
{
    struct option_call call = {.rcv = rcv, .name = name, .out = text, .out_len = len};
    return um_loop_call(rcv->ctx->loop, str_getopt_on_loop, &call);
}

int um_receiver_dump(lbm_rcv_t *rcv, int *count, lbm_config_option_t *out)
{
    struct option_call call = {.rcv = rcv, .count = count, .dump = out};
    return um_loop_call(rcv->ctx->loop, dump_on_loop, &call);
}
