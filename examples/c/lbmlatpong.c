/* The other end of lbmlatping: sends every message back over LBT-SMX, inside the
 * receiver callback. Runs until it is interrupted. */
#include <lbm/lbm.h>
#include <lbm/um.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "ex_options.h"

#define INVITATION 16

static const struct ex_option options[] = {
    {'h', "help", EX_HELP, NULL, NULL, "this text"},
    {'c', "config", EX_CONFIG, NULL, "FILE", "load a configuration file; may be repeated"},
    EX_END,
};

static const struct ex_program program = {"Reflects the messages of lbmlatping over LBT-SMX.", "", 0, options};

/* Owned by main() until the first message of lbmlatping, then by the receiver callback. */
static struct {
    lbm_src_t *src;
    void *next; /* acquired for the next message */
    size_t length;
} run;

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

static int on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv, (void)clientd;
    if (msg->type != LBM_MSG_DATA) {
        return 0;
    }
    if (msg->len != run.length) {
        EX_TRY(lbm_src_buffs_cancel, run.src);
        EX_TRY(lbm_src_buff_acquire, run.src, &run.next, msg->len, 0);
        run.length = msg->len;
    }
    memcpy(run.next, msg->data, msg->len);
    EX_TRY(lbm_src_buffs_complete_and_acquire, run.src, &run.next, run.length, 0);
    return 0;
}

static void make_source(lbm_context_t *ctx)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    EX_TRY(lbm_src_topic_attr_create, &attr);
    EX_TRY(lbm_src_topic_attr_str_setopt, attr, "transport", "lbtsmx");
    EX_TRY(lbm_src_topic_alloc, &topic, ctx, "lbmlat-pong", attr);
    EX_TRY(lbm_src_create, &run.src, ctx, topic, NULL, NULL, NULL);
    lbm_src_topic_attr_delete(attr);
    run.length = INVITATION;
    EX_TRY(lbm_src_buff_acquire, run.src, &run.next, run.length, 0);
    memset(run.next, 0, run.length);
}

int main(int argc, char **argv)
{
    lbm_context_t *ctx;
    lbm_topic_t *topic;
    lbm_rcv_t *rcv;
    ex_parse(argc, argv, &program);
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    EX_TRY(lbm_context_create, &ctx, NULL, NULL, NULL);
    make_source(ctx);
    EX_TRY(lbm_rcv_topic_lookup, &topic, ctx, "lbmlat-ping", NULL);
    EX_TRY(lbm_rcv_create, &rcv, ctx, topic, on_message, NULL, NULL);
    /* Each pinger is invited once both directions are connected. */
    int invited = 0;
    while (!stop) {
        int there = um_rcv_ready(rcv) > 0 && um_src_receivers(run.src) > 0;
        if (there && !invited) {
            EX_TRY(lbm_src_buffs_complete_and_acquire, run.src, &run.next, run.length, 0);
        }
        invited = there;
        ex_sleep_ms(10);
    }
    EX_TRY(lbm_src_buffs_cancel, run.src);
    EX_TRY(lbm_rcv_delete, rcv);
    EX_TRY(lbm_src_delete, run.src);
    EX_TRY(lbm_context_delete, ctx);
    return 0;
}
