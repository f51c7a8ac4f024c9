/* Orders and news between the halves of a source on two loops, in every interleaving that the two threads may have
 * where one posts: the mail is compiled into this test, so that the other loop runs at that very point. What is freed
 * when all is closed must not be in a mailbox any more, nor be posted later. */
#include "um_test.h"

#include "net/um_loop.h"

static void (*before_post)(void); /* the other thread, at the worst moment; once */
static unsigned posted_after_end;

static void post_seam(struct um_loop *loop, struct um_command *command);
#define um_loop_post post_seam
#include "core/um_rcv_mail.c"
#undef um_loop_post

static struct um_loop *context_loop, *xsp_loop;
static struct lbm_context_t_stct context;
static struct um_rcv_lane lane;
static struct um_rcv_source source;
static unsigned begun, kept, closed, told_bos;
static bool gone; /* the context's loop has freed the source */

static void post_seam(struct um_loop *loop, struct um_command *command)
{
    void (*run)(void) = before_post;
    before_post = NULL;
    if (run != NULL) {
        run();
    }
    posted_after_end += gone;
    um_loop_post(loop, command);
}

/* ---- the halves ---- */

int um_rcv_flow_begin(struct um_rcv_flow *flow, struct um_rcv_audience *audience)
{
    flow->audience = audience;
    begun++;
    return 0;
}

void um_rcv_flow_set_audience(struct um_rcv_flow *flow, struct um_rcv_audience *audience)
{
    flow->audience = audience;
}

void um_rcv_flow_withdrawn(struct um_rcv_flow *flow)
{
}

void um_rcv_flow_keep(struct um_rcv_flow *flow)
{
    kept++;
}

void um_rcv_flow_make_way(struct um_rcv_flow *flow)
{
}

void um_rcv_flow_close(struct um_rcv_flow *flow)
{
    flow->audience = NULL;
    closed++;
}

void um_rcv_audience_unref(struct um_rcv_audience *audience)
{
}

void um_rcv_source_on_news(struct um_rcv_source *of, unsigned news, enum um_rcv_flow_end why)
{
    told_bos += (news & UM_RCV_NEWS_BOS) != 0;
}

/* Where the source would be freed: the memory stays, so that the rest shows. */
void um_rcv_source_on_closed(struct um_rcv_source *of)
{
    gone = true;
}

/* ---- threads ---- */

static void run_context(void)
{
    um_loop_run_once(context_loop, 0, 0);
}

static void run_xsp(void)
{
    um_loop_run_once(xsp_loop, 0, 0);
}

static void setup(void)
{
    context_loop = um_loop_create(false, UM_LOOP_PEND, "context");
    xsp_loop = um_loop_create(false, UM_LOOP_PEND, "xsp");
    context.loop = context_loop;
    lane = (struct um_rcv_lane){.ctx = &context, .loop = xsp_loop};
    memset(&source, 0, sizeof source);
    source.flow.lane = &lane;
    source.flow.mail = um_rcv_mail_create(&source.flow);
    before_post = NULL;
    begun = kept = closed = told_bos = posted_after_end = 0;
    gone = false;
}

/* Nothing of it is in a mailbox when it is gone, nor comes later. */
static bool clean_end(void)
{
    const struct um_rcv_mail *mail = source.flow.mail;
    for (int i = 0; i < 4 && !gone; i++) {
        run_xsp();
        run_context();
    }
    bool clean = gone && closed == 1 && posted_after_end == 0 && !mail->to_flow.posted && !mail->to_source.posted;
    run_xsp();
    run_context();
    um_rcv_mail_destroy(source.flow.mail);
    um_loop_destroy(xsp_loop);
    um_loop_destroy(context_loop);
    return clean && closed == 1;
}

static struct um_rcv_audience audience;

TEST(orders_and_news_arrive_and_the_end_comes_last)
{
    setup();
    um_rcv_mail_order(source.flow.mail, UM_RCV_ORDER_BEGIN, &audience);
    run_xsp();
    CHECK_EQ(begun, 1);
    um_rcv_mail_tell(source.flow.mail, UM_RCV_NEWS_BOS, UM_RCV_FLOW_LOST);
    run_context();
    CHECK_EQ(told_bos, 1);
    um_rcv_mail_order(source.flow.mail, UM_RCV_ORDER_KEEP, NULL);
    um_rcv_mail_order(source.flow.mail, UM_RCV_ORDER_CLOSE, NULL);
    CHECK(clean_end());
}

TEST(a_flow_that_is_closed_before_it_began_never_begins)
{
    setup();
    um_rcv_mail_order(source.flow.mail, UM_RCV_ORDER_BEGIN, &audience);
    um_rcv_mail_order(source.flow.mail, UM_RCV_ORDER_CLOSE, NULL);
    CHECK(clean_end());
    CHECK_EQ(begun, 0);
}

/* The flow's loop is at the orders while the last one is being posted. */
TEST(the_order_to_close_is_seen_before_it_is_posted)
{
    setup();
    um_rcv_mail_order(source.flow.mail, UM_RCV_ORDER_BEGIN, &audience);
    run_xsp();
    um_rcv_mail_order(source.flow.mail, UM_RCV_ORDER_KEEP, NULL);
    before_post = run_xsp;
    um_rcv_mail_order(source.flow.mail, UM_RCV_ORDER_CLOSE, NULL);
    run_context(); /* may hear already that it is closed */
    CHECK(clean_end());
}

/* The context's loop is at the news while the flow's tells that it is closed. */
TEST(the_news_of_the_end_are_seen_before_they_are_posted)
{
    setup();
    um_rcv_mail_order(source.flow.mail, UM_RCV_ORDER_BEGIN, &audience);
    run_xsp();
    um_rcv_mail_tell(source.flow.mail, UM_RCV_NEWS_BOS, UM_RCV_FLOW_LOST);
    um_rcv_mail_order(source.flow.mail, UM_RCV_ORDER_CLOSE, NULL);
    before_post = run_context;
    run_xsp();
    CHECK(clean_end());
}
