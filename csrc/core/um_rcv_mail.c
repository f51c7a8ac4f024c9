/* Orders and news between loops. See um_rcv_mail.h. */
#include "core/um_rcv_mail.h"

#include <stdio.h>

#include "base/um_error.h"
#include "base/um_lock.h"
#include "base/um_mem.h"
#include "core/um_rcv_private.h"

struct um_rcv_mail {
    struct um_rcv_flow *flow; /* fixed */
    struct um_command to_flow, to_source;
    struct um_command close, closed; /* the last ones each way: nothing that was posted before them is still to come */
    struct um_lock lock;
    unsigned orders;                  /* lock: enum um_rcv_order, not yet looked at */
    struct um_rcv_audience *audience; /* lock: the newest, with a reference */
    unsigned news;                    /* lock: enum um_rcv_news */
    enum um_rcv_flow_end why;         /* lock: with END */
    char failure[160];                /* of the flow's loop until END, then of the context's */
};

static void fail(struct um_rcv_mail *mail)
{
    snprintf(mail->failure, sizeof mail->failure, "%s", um_errmsg());
    um_rcv_mail_tell(mail, UM_RCV_NEWS_END, UM_RCV_FLOW_FAILED);
}

/* A flow that is over has no audience. */
static void obey(struct um_rcv_mail *mail, unsigned orders, struct um_rcv_audience *audience)
{
    struct um_rcv_flow *flow = mail->flow;
    if ((orders & UM_RCV_ORDER_BEGIN) != 0) {
        if (um_rcv_flow_begin(flow, audience) != 0) {
            fail(mail);
        }
    } else if (audience != NULL) {
        um_rcv_flow_set_audience(flow, audience);
    }
    if ((orders & UM_RCV_ORDER_KEEP) != 0) {
        um_rcv_flow_keep(flow);
    }
    if ((orders & UM_RCV_ORDER_WITHDRAWN) != 0 && flow->audience != NULL) {
        um_rcv_flow_withdrawn(flow);
    }
    if ((orders & UM_RCV_ORDER_MAKE_WAY) != 0 && flow->audience != NULL) {
        um_rcv_flow_make_way(flow);
    }
}

static void on_orders(struct um_command *command)
{
    struct um_rcv_mail *mail = UM_CONTAINER_OF(command, struct um_rcv_mail, to_flow);
    um_lock_take(&mail->lock);
    unsigned orders = mail->orders;
    struct um_rcv_audience *audience = mail->audience;
    mail->orders = 0;
    mail->audience = NULL;
    um_lock_give(&mail->lock);
    if ((orders & UM_RCV_ORDER_CLOSE) == 0) {
        obey(mail, orders, audience);
    } else if (audience != NULL) {
        um_rcv_audience_unref(audience); /* closed in a moment: the rest is of no use */
    }
}

/* The context's loop frees the mail as soon as it hears of this. */
static void on_close(struct um_command *command)
{
    struct um_rcv_mail *mail = UM_CONTAINER_OF(command, struct um_rcv_mail, close);
    um_rcv_flow_close(mail->flow);
    um_loop_post(mail->flow->lane->ctx->loop, &mail->closed);
}

static void on_news(struct um_command *command)
{
    struct um_rcv_mail *mail = UM_CONTAINER_OF(command, struct um_rcv_mail, to_source);
    um_lock_take(&mail->lock);
    unsigned news = mail->news;
    enum um_rcv_flow_end why = mail->why;
    mail->news = 0;
    um_lock_give(&mail->lock);
    um_rcv_source_on_news(um_rcv_source_of(mail->flow), news, why);
}

static void on_closed(struct um_command *command)
{
    struct um_rcv_mail *mail = UM_CONTAINER_OF(command, struct um_rcv_mail, closed);
    um_rcv_source_on_closed(um_rcv_source_of(mail->flow));
}

struct um_rcv_mail *um_rcv_mail_create(struct um_rcv_flow *flow)
{
    struct um_rcv_mail *mail = um_calloc(1, sizeof *mail);
    if (mail != NULL) {
        mail->flow = flow;
        um_command_init(&mail->to_flow, on_orders);
        um_command_init(&mail->to_source, on_news);
        um_command_init(&mail->close, on_close);
        um_command_init(&mail->closed, on_closed);
    }
    return mail;
}

void um_rcv_mail_destroy(struct um_rcv_mail *mail)
{
    um_free(mail);
}

void um_rcv_mail_order(struct um_rcv_mail *mail, enum um_rcv_order order, struct um_rcv_audience *audience)
{
    struct um_rcv_audience *replaced = NULL;
    um_lock_take(&mail->lock);
    if (order == UM_RCV_ORDER_KEEP || order == UM_RCV_ORDER_WITHDRAWN) {
        mail->orders &= ~(unsigned)(UM_RCV_ORDER_KEEP | UM_RCV_ORDER_WITHDRAWN);
    }
    mail->orders |= order;
    if (audience != NULL) {
        replaced = mail->audience;
        mail->audience = audience;
    }
    um_lock_give(&mail->lock);
    if (replaced != NULL) {
        um_rcv_audience_unref(replaced);
    }
    um_loop_post(mail->flow->lane->loop, order == UM_RCV_ORDER_CLOSE ? &mail->close : &mail->to_flow);
}

void um_rcv_mail_tell(struct um_rcv_mail *mail, enum um_rcv_news news, enum um_rcv_flow_end why)
{
    um_lock_take(&mail->lock);
    mail->news |= news;
    if (news == UM_RCV_NEWS_END) {
        mail->why = why;
    }
    um_lock_give(&mail->lock);
    um_loop_post(mail->flow->lane->ctx->loop, &mail->to_source);
}

const char *um_rcv_mail_failure(const struct um_rcv_mail *mail)
{
    return mail->failure;
}
