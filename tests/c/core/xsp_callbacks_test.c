/* What is refused in a callback on the thread of a context is refused in one on an XSP of it, too: nothing there waits
 * for the context. On a private loopback network. */
#include "um_test_xsp.h"

struct objects {
    lbm_context_t *ctx;
    lbm_xsp_t *xsp;
    lbm_src_t *src;
    lbm_rcv_t *rcv;
    lbm_wildcard_rcv_t *wrcv;
    lbm_event_queue_t *evq;
    lbm_topic_t *src_topic, *rcv_topic;
};

static int ignore(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    return 0;
}

static int create_context(struct objects *o)
{
    lbm_context_t *made;
    return lbm_context_create(&made, NULL, NULL, NULL);
}

static int delete_context(struct objects *o)
{
    return lbm_context_delete(o->ctx);
}

static int alloc_topic(struct objects *o)
{
    lbm_topic_t *made;
    return lbm_src_topic_alloc(&made, o->ctx, "refused/alloc", NULL);
}

static int create_source(struct objects *o)
{
    lbm_src_t *made;
    return lbm_src_create(&made, o->ctx, o->src_topic, NULL, NULL, NULL);
}

static int delete_source(struct objects *o)
{
    return lbm_src_delete(o->src);
}

static int flush_source(struct objects *o)
{
    return lbm_src_flush(o->src);
}

static int wait_receivers(struct objects *o)
{
    return um_src_wait_receivers(o->src, 1, 10000);
}

static int lookup_topic(struct objects *o)
{
    lbm_topic_t *made;
    return lbm_rcv_topic_lookup(&made, o->ctx, "refused/lookup", NULL);
}

static int create_receiver(struct objects *o)
{
    lbm_rcv_t *made;
    return lbm_rcv_create(&made, o->ctx, o->rcv_topic, ignore, NULL, NULL);
}

static int delete_receiver(struct objects *o)
{
    return lbm_rcv_delete(o->rcv);
}

static int wait_ready(struct objects *o)
{
    return um_rcv_wait_ready(o->rcv, 1, 10000);
}

static int create_wildcard(struct objects *o)
{
    lbm_wildcard_rcv_t *made;
    return lbm_wildcard_rcv_create(&made, o->ctx, "^refused", NULL, NULL, ignore, NULL, NULL);
}

static int delete_wildcard(struct objects *o)
{
    return lbm_wildcard_rcv_delete(o->wrcv);
}

static int dispatch(struct objects *o)
{
    return lbm_event_dispatch(o->evq, 10);
}

static int process_ipc(struct objects *o)
{
    return lbm_context_process_lbtipc_messages(o->ctx, 10, 1);
}

static int process_xsp(struct objects *o)
{
    return lbm_xsp_process_events(o->xsp, 0);
}

static int create_xsp(struct objects *o)
{
    lbm_xsp_t *made;
    return lbm_xsp_create(&made, o->ctx, NULL, NULL);
}

static int delete_xsp(struct objects *o)
{
    return lbm_xsp_delete(o->xsp);
}

static const struct {
    const char *api;
    int (*fn)(struct objects *o);
} REFUSED[] = {{"lbm_context_create", create_context},
               {"lbm_context_delete", delete_context},
               {"lbm_src_topic_alloc", alloc_topic},
               {"lbm_src_create", create_source},
               {"lbm_src_delete", delete_source},
               {"lbm_src_flush", flush_source},
               {"um_src_wait_receivers", wait_receivers},
               {"lbm_rcv_topic_lookup", lookup_topic},
               {"lbm_rcv_create", create_receiver},
               {"lbm_rcv_delete", delete_receiver},
               {"um_rcv_wait_ready", wait_ready},
               {"lbm_wildcard_rcv_create", create_wildcard},
               {"lbm_wildcard_rcv_delete", delete_wildcard},
               {"lbm_event_dispatch", dispatch},
               {"lbm_context_process_lbtipc_messages", process_ipc},
               {"lbm_xsp_process_events", process_xsp},
               {"lbm_xsp_create", create_xsp},
               {"lbm_xsp_delete", delete_xsp}};

#define CALLS (sizeof REFUSED / sizeof REFUSED[0])

struct attempt {
    struct objects *o;
    int rc[CALLS], errnum[CALLS];
    char text[CALLS][300];
    atomic_int done;
};

static void try_all(struct attempt *a)
{
    for (size_t i = 0; i < CALLS && atomic_load(&a->done) == 0; i++) {
        a->rc[i] = REFUSED[i].fn(a->o);
        a->errnum[i] = lbm_errnum();
        snprintf(a->text[i], sizeof a->text[i], "%s", lbm_errmsg());
    }
    atomic_store(&a->done, 1);
}

static int try_on_data(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    if (msg->type == LBM_MSG_DATA) {
        try_all(clientd);
    }
    return 0;
}

static int try_on_timer(lbm_context_t *ctx, const void *clientd)
{
    try_all((struct attempt *)(uintptr_t)clientd);
    return 0;
}

static void check_all_refused(const struct attempt *a)
{
    for (size_t i = 0; i < CALLS; i++) {
        if (a->rc[i] != -1 || a->errnum[i] != LBM_EOP || strstr(a->text[i], REFUSED[i].api) == NULL) {
            TEST_FAIL("%s: returned %d, error %d: %s", REFUSED[i].api, a->rc[i], a->errnum[i], a->text[i]);
        }
    }
}

static void open_objects(struct objects *o, lbm_xsp_t *xsp)
{
    o->xsp = xsp;
    o->src = net_source(o->ctx, "refused/source");
    o->rcv = net_receiver(o->ctx, "refused/receiver", NULL, ignore, NULL, NULL);
    MUST(lbm_wildcard_rcv_create(&o->wrcv, o->ctx, "^nothing", NULL, NULL, ignore, NULL, NULL));
    MUST(lbm_event_queue_create(&o->evq, NULL, NULL, NULL));
    MUST(lbm_src_topic_alloc(&o->src_topic, o->ctx, "refused/create", NULL));
    MUST(lbm_rcv_topic_lookup(&o->rcv_topic, o->ctx, "refused/create", NULL));
}

static void close_objects(struct objects *o)
{
    MUST(lbm_src_delete(o->src));
    MUST(lbm_rcv_delete(o->rcv));
    MUST(lbm_wildcard_rcv_delete(o->wrcv));
    MUST(lbm_event_queue_delete(o->evq));
}

TEST(what_a_callback_of_a_context_may_not_call_one_of_its_xsps_may_not_either)
{
    TEST_NEEDS_NET();
    struct mapper m = {0};
    lbm_context_t *sender = sending_context(), *ctx = world(&m, 1);
    struct objects o = {.ctx = ctx};
    static struct attempt on_ctx, on_xsp;
    on_ctx.o = on_xsp.o = &o;
    lbm_xsp_t *sequential = xsp_with(ctx, "sequential", NULL, NULL);
    open_objects(&o, sequential);
    lbm_src_t *src = net_source(sender, "refused/trigger");
    lbm_rcv_t *rcv = net_receiver(ctx, "refused/trigger", NULL, try_on_data, &on_xsp, NULL);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    CHECK(lbm_schedule_timer(ctx, try_on_timer, &on_ctx, NULL, 0) != -1);
    CHECK(wait_above(&on_ctx.done, 1));
    check_all_refused(&on_ctx);
    net_send(src, "now");
    CHECK(wait_above(&on_xsp.done, 1));
    check_all_refused(&on_xsp);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    close_objects(&o);
    MUST(lbm_xsp_delete(sequential));
    end_world(ctx, &m);
    MUST(lbm_context_delete(sender));
}

struct processing {
    lbm_context_t *ctx;
    int rc, errnum, ex_rc, ex_errnum;
    atomic_int begun, done;
};

static int process_context(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct processing *p = clientd;
    if (msg->type != LBM_MSG_DATA) {
        atomic_store(&p->begun, 1);
        return 0;
    }
    p->rc = lbm_context_process_events(p->ctx, 0);
    p->errnum = lbm_errnum();
    p->ex_rc = lbm_context_process_events_ex(p->ctx, 0, NULL);
    p->ex_errnum = lbm_errnum();
    atomic_store(&p->done, 1);
    return 0;
}

/* Nobody else processes the context's events meanwhile: nothing but the callback's thread is the reason. */
TEST(a_callback_on_an_xsp_does_not_process_the_events_of_its_sequential_context)
{
    TEST_NEEDS_NET();
    struct mapper m = {0};
    lbm_context_attr_t *attr = mapping_attr(map, &m);
    MUST(lbm_context_attr_str_setopt(attr, "operational_mode", "sequential"));
    lbm_context_t *sender = sending_context(), *ctx = net_context_with(attr);
    struct processing p = {.ctx = ctx};
    m.xsps[0] = xsp_with(ctx, "embedded", NULL, NULL);
    m.count = 1;
    lbm_src_t *src = net_source(sender, "processing");
    lbm_rcv_t *rcv = net_receiver(ctx, "processing", NULL, process_context, &p, NULL);
    for (int i = 0; i < HANG_SECONDS * 100 && atomic_load(&p.begun) == 0; i++) {
        MUST(lbm_context_process_events(ctx, 10));
    }
    net_send(src, "now");
    CHECK(wait_above(&p.done, 1));
    CHECK_EQ(p.rc, -1);
    CHECK_EQ(p.errnum, LBM_EOP);
    CHECK_EQ(p.ex_rc, -1);
    CHECK_EQ(p.ex_errnum, LBM_EOP);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    end_world(ctx, &m);
    MUST(lbm_context_delete(sender));
}
