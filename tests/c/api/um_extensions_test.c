/* um.h: readiness of receivers and sources, told and waited for; counts of the request port. */
#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "um_test_rcv.h"

#include "core/um_message.h"

static int drop_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    return 0;
}

static lbm_rcv_t *receiver(lbm_context_t *ctx, const char *name)
{
    lbm_topic_t *topic;
    lbm_rcv_t *rcv;
    MUST(lbm_rcv_topic_lookup(&topic, ctx, name, NULL));
    MUST(lbm_rcv_create(&rcv, ctx, topic, drop_message, NULL, NULL));
    return rcv;
}

TEST(receiver_is_ready_when_each_source_has_begun)
{
    TEST_NEEDS_NET();
    lbm_context_t *here = net_context(), *there = net_context(), *elsewhere = net_context();
    lbm_rcv_t *rcv = receiver(here, "ready");
    CHECK_EQ(um_rcv_ready(rcv), 0);
    CHECK_EQ(um_rcv_wait_ready(rcv, 0, 0), 0);
    lbm_src_t *one = net_source(there, "ready");
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    CHECK_EQ(um_rcv_ready(rcv), 1);
    lbm_src_t *two = net_source(elsewhere, "ready");
    CHECK_EQ(um_rcv_wait_ready(rcv, 2, HANG_SECONDS * 1000), 0);
    CHECK_EQ(um_rcv_ready(rcv), 2);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(one));
    MUST(lbm_src_delete(two));
    MUST(lbm_context_delete(here));
    MUST(lbm_context_delete(there));
    MUST(lbm_context_delete(elsewhere));
}

TEST(source_counts_the_receiving_contexts_of_its_session)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context(), *first = net_context(), *second = net_context();
    lbm_src_t *src = net_source(ctx, "clients");
    CHECK_EQ(um_src_receivers(src), 0);
    lbm_rcv_t *a = receiver(first, "clients"), *b = receiver(second, "clients");
    CHECK_EQ(um_src_wait_receivers(src, 2, HANG_SECONDS * 1000), 0);
    CHECK_EQ(um_src_receivers(src), 2);
    MUST(lbm_rcv_delete(a));
    MUST(lbm_rcv_delete(b));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(first));
    MUST(lbm_context_delete(second));
}

TEST(waiting_ends_with_the_time)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_rcv_t *rcv = receiver(ctx, "nobody");
    lbm_src_t *src = net_source(ctx, "nobody else");
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, 10), -1);
    CHECK_EQ(lbm_errnum(), LBM_ETIMEDOUT);
    CHECK_EQ(um_src_wait_receivers(src, 1, 10), -1);
    CHECK_EQ(lbm_errnum(), LBM_ETIMEDOUT);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

TEST(bad_arguments_are_refused)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_rcv_t *rcv = receiver(ctx, "arguments");
    CHECK_EQ(um_rcv_ready(NULL), -1);
    CHECK_EQ(um_wildcard_rcv_ready(NULL), -1);
    CHECK_EQ(um_wildcard_rcv_wait_ready(NULL, 1, 0), -1);
    CHECK_EQ(um_wildcard_rcv_transport_stats(NULL, NULL, NULL), -1);
    CHECK_EQ(um_collector_keep_readable(NULL, 1), -1);
    CHECK_EQ(um_collector_see_numbers(NULL), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(um_src_receivers(NULL), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(um_src_wait_receivers(NULL, 1, 0), -1);
    CHECK_EQ(um_rcv_wait_ready(NULL, 1, 0), -1);
    CHECK_EQ(um_rcv_wait_ready(rcv, -1, 0), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, -1), -1);
    CHECK_CONTAINS(lbm_errmsg(), "timeout_ms -1");
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_context_delete(ctx));
}

struct inside {
    lbm_rcv_t *rcv;
    lbm_src_t *src;
    int rcv_errnum, src_errnum;
    struct recorder done; /* its lock and condition only */
};

TEST(events_of_losses_tell_how_many_messages_are_lost)
{
    static const struct {
        int type;
        uint32_t lost;
        uint64_t told;
    } cases[] = {
        {LBM_MSG_UNRECOVERABLE_LOSS, 0, 1},
        {LBM_MSG_UNRECOVERABLE_LOSS_BURST, 2000, 2000},
        {LBM_MSG_UNRECOVERABLE_LOSS_BURST, 0, 1},
        {LBM_MSG_DATA, 0, 0},
        {LBM_MSG_EOS, 0, 0},
    };
    struct um_msg *msg = um_msg_create("S", "T");
    uint64_t count;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        msg->pub.type = cases[i].type;
        msg->lost = cases[i].lost;
        MUST(um_msg_lost(&msg->pub, &count));
        CHECK_EQ(count, cases[i].told);
    }
    CHECK(um_msg_lost(&msg->pub, NULL) == -1 && lbm_errnum() == LBM_EINVAL);
    CHECK(um_msg_lost(NULL, &count) == -1 && lbm_errnum() == LBM_EINVAL);
    um_msg_release(msg);
}

static int wait_inside(lbm_context_t *ctx, const void *clientd)
{
    struct inside *inside = (struct inside *)clientd;
    inside->rcv_errnum = um_rcv_wait_ready(inside->rcv, 1, 1000) == -1 ? lbm_errnum() : 0;
    inside->src_errnum = um_src_wait_receivers(inside->src, 1, 1000) == -1 ? lbm_errnum() : 0;
    lbm_msg_t finished = {.type = LBM_MSG_DATA, .data = ""};
    return recorder_cb(NULL, &finished, &inside->done);
}

TEST(waiting_on_the_context_thread_is_refused_at_once)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct inside inside = {
        .rcv = receiver(ctx, "inside"), .src = net_source(ctx, "inside too"), .done = RECORDER_INIT};
    MUST(lbm_schedule_timer(ctx, wait_inside, &inside, NULL, 0));
    CHECK(recorder_wait(&inside.done, LBM_MSG_DATA, 1));
    CHECK_EQ(inside.rcv_errnum, LBM_EOP);
    CHECK_EQ(inside.src_errnum, LBM_EOP);
    MUST(lbm_rcv_delete(inside.rcv));
    MUST(lbm_src_delete(inside.src));
    MUST(lbm_context_delete(ctx));
}

/* ---- counts of the request port ---- */

#define PLACES 1024

static int connect_from(uint32_t ip, uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(ip)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    MUST(bind(fd, (struct sockaddr *)&from, sizeof from));
    MUST(connect(fd, (struct sockaddr *)&to, sizeof to));
    return fd;
}

TEST(connections_that_make_room_for_others_at_the_request_port_are_counted)
{
    TEST_NEEDS_NET();
    static int fds[PLACES + 3];
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < 2 * PLACES + 100) {
        TEST_SKIP("too few descriptors");
    }
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "request_tcp_port", "24101"));
    MUST(lbm_context_attr_str_setopt(attr, "request_tcp_listen_backlog", "2048")); /* nobody has to try again */
    lbm_context_t *ctx = net_context_with(attr);
    um_context_stats_t stats;
    MUST(um_context_stats(ctx, &stats));
    CHECK_EQ(stats.unicast_displaced + stats.unicast_expired + stats.unicast_no_destination, 0);
    for (int i = 0; i < PLACES + 3; i++) { /* one address takes all the places, another one comes */
        fds[i] = connect_from(INADDR_LOOPBACK + (i >= PLACES), 24101);
    }
    for (int i = 0; i < HANG_SECONDS * 1000 && stats.unicast_displaced < 3; i++) {
        usleep(1000);
        MUST(um_context_stats(ctx, &stats));
    }
    CHECK_EQ(stats.unicast_displaced, 3);
    CHECK_EQ(stats.unicast_refused, 0);
    for (int i = 0; i < PLACES + 3; i++) {
        close(fds[i]);
    }
    MUST(lbm_context_delete(ctx));
}

/* ---- structures that grow ---- */

enum { CANARY = 0xee, OLD = sizeof(uint64_t) /* the first field */, ROOM = 2048 };

struct objects {
    lbm_context_t *ctx;
    lbm_src_t *src;
    lbm_rcv_t *rcv;
    lbm_wildcard_rcv_t *wrcv;
    um_collector_t *collector;
};

static int fill_src(struct objects *o, void *out, size_t size)
{
    return um_src_stats_sized(o->src, out, size);
}

static int fill_rcv(struct objects *o, void *out, size_t size)
{
    return um_rcv_stats_sized(o->rcv, NULL, out, size);
}

static int fill_wildcard(struct objects *o, void *out, size_t size)
{
    return um_wildcard_rcv_stats_sized(o->wrcv, out, size);
}

static int fill_context(struct objects *o, void *out, size_t size)
{
    return um_context_stats_sized(o->ctx, out, size);
}

static int fill_collector(struct objects *o, void *out, size_t size)
{
    return um_collector_stats_sized(o->collector, out, size);
}

static int fill_counts(struct objects *o, void *out, size_t size)
{
    return um_object_counts_sized(out, size);
}

static const struct {
    const char *name;
    int (*fill)(struct objects *o, void *out, size_t size);
    size_t known;
} SIZED[] = {{"um_src_stats", fill_src, sizeof(um_src_stats_t)},
             {"um_rcv_stats", fill_rcv, sizeof(um_rcv_stats_t)},
             {"um_wildcard_rcv_stats", fill_wildcard, sizeof(um_rcv_stats_t)},
             {"um_context_stats", fill_context, sizeof(um_context_stats_t)},
             {"um_collector_stats", fill_collector, sizeof(um_collector_stats_t)},
             {"um_object_counts", fill_counts, sizeof(um_object_counts_t)}};

/* All of these bytes. */
static bool all_are(const unsigned char *from, const unsigned char *to, int byte)
{
    while (from < to && *from == byte) {
        from++;
    }
    return from == to;
}

static void check_sizes(struct objects *o, size_t call)
{
    unsigned char old[ROOM], same[ROOM], newer[ROOM];
    size_t known = SIZED[call].known;
    memset(old, CANARY, sizeof old);
    memset(same, CANARY, sizeof same);
    memset(newer, CANARY, sizeof newer);
    MUST(SIZED[call].fill(o, same, known));
    MUST(SIZED[call].fill(o, old, OLD));
    MUST(SIZED[call].fill(o, newer, known + 40));
    if (memcmp(old, same, OLD) != 0 || !all_are(old + OLD, old + ROOM, CANARY)) {
        TEST_FAIL("%s: wrote more than an older caller has", SIZED[call].name);
    }
    if (memcmp(newer, same, OLD) != 0 || !all_are(newer + known, newer + known + 40, 0) ||
        !all_are(newer + known + 40, newer + ROOM, CANARY)) {
        TEST_FAIL("%s: what only a newer caller knows is not 0", SIZED[call].name);
    }
    CHECK_EQ(SIZED[call].fill(o, old, 0), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
}

TEST(structures_of_older_and_newer_callers_are_filled_as_far_as_both_know)
{
    TEST_NEEDS_NET();
    struct objects o = {.ctx = net_context()};
    o.src = net_source(o.ctx, "sized");
    o.rcv = receiver(o.ctx, "sized");
    MUST(lbm_wildcard_rcv_create(&o.wrcv, o.ctx, "^sized", NULL, NULL, drop_message, NULL, NULL));
    MUST(um_collector_create(&o.collector, 0));
    CHECK_EQ(um_rcv_wait_ready(o.rcv, 1, HANG_SECONDS * 1000), 0); /* so that no counter grows between two calls */
    CHECK_EQ(um_wildcard_rcv_wait_ready(o.wrcv, 1, HANG_SECONDS * 1000), 0);
    for (size_t i = 0; i < sizeof SIZED / sizeof SIZED[0]; i++) {
        check_sizes(&o, i);
    }
    int count = 1;
    unsigned char naks[64];
    CHECK_EQ(um_src_naks_sized(o.src, (um_src_naks_t *)(void *)naks, 0, &count), -1);
    MUST(um_src_naks_sized(o.src, (um_src_naks_t *)(void *)naks, 32, &count));
    CHECK_EQ(count, 0);
    MUST(um_collector_delete(o.collector));
    MUST(lbm_wildcard_rcv_delete(o.wrcv));
    MUST(lbm_rcv_delete(o.rcv));
    MUST(lbm_src_delete(o.src));
    MUST(lbm_context_delete(o.ctx));
}
