/* The lines of the log that the documentation names for late join, recovery, requests and immediate messages, each
 * brought about by what it tells of; those that tests of their features bring about are looked for there. */
#include "um_test_uim.h"

#include "core/um_source.h"
#include "wire/um_lbmr.h"

static lbm_src_t *source_with(lbm_context_t *ctx, const char *name, const char *const options[][2], size_t count)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_attr_create(&attr));
    for (size_t i = 0; i < count; i++) {
        MUST(lbm_src_topic_attr_str_setopt(attr, options[i][0], options[i][1]));
    }
    MUST(lbm_src_topic_alloc(&topic, ctx, name, attr));
    MUST(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL));
    lbm_src_topic_attr_delete(attr);
    return src;
}

static lbm_src_t *retaining_source(lbm_context_t *ctx, const char *name)
{
    static const char *const OPTIONS[][2] = {{"late_join", "1"}, {"retransmit_retention_size_threshold", "1000000"}};
    return source_with(ctx, name, OPTIONS, 2);
}

/* A receiver that recovers gaps, joined to the source of its topic. */
static void join_with_recovery(lbm_context_t *ctx, const char *name, const char *threshold)
{
    struct recorder r = RECORDER_INIT;
    lbm_rcv_topic_attr_t *attr;
    MUST(lbm_rcv_topic_attr_create(&attr));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "use_otr", "1"));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "otr_message_caching_threshold", threshold));
    lbm_rcv_t *rcv = net_receiver(ctx, name, attr, recorder_cb, &r, NULL);
    lbm_rcv_topic_attr_delete(attr);
    MUST(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000));
    MUST(lbm_rcv_delete(rcv));
}

/* True: the line came, at its level, with its text in it. */
static bool told(const char *id, int level, const char *text)
{
    pthread_mutex_lock(&log_lock);
    bool ok = strcmp(log_wanted, id) == 0 && log_hits > 0 && log_level == level && strstr(log_line, text) != NULL;
    if (!ok) {
        fprintf(stderr, "%s: %d lines, the last of level %d: %s\n", log_wanted, log_hits, log_level, log_line);
    }
    pthread_mutex_unlock(&log_lock);
    return ok;
}

static bool told_in_time(const char *id, int level, const char *text)
{
    for (int i = 0; i < HANG_SECONDS * 1000 && hits() == 0; i++) {
        sleep_ms(1);
    }
    return told(id, level, text);
}

TEST(recovery_that_a_source_does_not_offer_is_told_of)
{
    TEST_NEEDS_NET();
    lbm_context_t *sender = net_context(), *ctx = net_context();
    lbm_src_t *src = net_source(sender, "plain");
    watch_log("Core-5688-3203");
    join_with_recovery(ctx, "plain", "10000");
    CHECK(told("Core-5688-3203", LBM_LOG_INFO, "late join disabled [plain]"));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
}

TEST(a_threshold_below_the_proximity_reduces_it_with_a_line)
{
    TEST_NEEDS_NET();
    lbm_context_t *sender = net_context(), *ctx = net_context();
    lbm_src_t *src = retaining_source(sender, "near"), *other = retaining_source(sender, "nearer");
    watch_log("Core-8576-3");
    join_with_recovery(ctx, "near", "10000");
    CHECK_EQ(hits(), 0);
    join_with_recovery(ctx, "nearer", "100");
    CHECK(told("Core-8576-3", LBM_LOG_NOTICE, "proximity [5000] to half of otr_message_caching_threshold [100]"));
    MUST(lbm_src_delete(other));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
}

TEST(a_retention_limit_below_a_datagram_is_told_of)
{
    static const char *const OPTIONS[][2] = {{"late_join", "1"}, {"retransmit_retention_size_limit", "100"}};
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    watch_log("Core-5688-538");
    lbm_src_t *src = source_with(ctx, "small", OPTIONS, 2);
    CHECK(told("Core-5688-538", LBM_LOG_WARNING, "retransmit_retention_size_limit 100 is below 8192"));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

/* ---- an advertisement that offers late join, and no port to ask at ---- */

struct portless {
    const lbm_src_t *src; /* whose session it names */
    struct um_tr_advert *advert;
};

static int advertise_on_loop(void *arg)
{
    struct portless *portless = arg;
    const lbm_src_t *src = portless->src;
    struct um_tr_advert_spec spec = {
        .topic = "portless", .functionality = UM_LBMR_EXFUNC_LATE_JOIN, .request_ip = src->ctx->env.request_ip.s_addr};
    um_src_stream_source_info(&src->stream, &spec.info);
    portless->advert = um_resolver_advertise(src->ctx->resolver, &spec, src->topic->opts);
    return portless->advert != NULL ? 0 : -1;
}

static int withdraw_on_loop(void *arg)
{
    struct portless *portless = arg;
    um_resolver_withdraw(portless->src->ctx->resolver, portless->advert);
    return 0;
}

TEST(late_join_that_is_offered_without_a_request_port_is_told_of_and_left_out)
{
    TEST_NEEDS_NET();
    struct recorder r = RECORDER_INIT;
    lbm_context_t *sender = net_context(), *ctx = net_context();
    struct portless portless = {.src = net_source(sender, "genuine")};
    MUST(um_loop_call(sender->loop, advertise_on_loop, &portless));
    watch_log("Core-5988-5");
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "portless", &r);
    CHECK(told_in_time("Core-5988-5", LBM_LOG_WARNING, "Topic Advertisement [portless] contains late join"));
    MUST(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000));
    net_send((lbm_src_t *)portless.src, "live"); /* its index is that of the session */
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 1));
    MUST(lbm_rcv_delete(rcv));
    MUST(um_loop_call(sender->loop, withdraw_on_loop, &portless));
    MUST(lbm_src_delete((lbm_src_t *)portless.src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
}

/* ---- requests and retransmissions out of nowhere ---- */

/* Says it to a fresh context with a source that retains and one that does not: a line of each kind comes once in a
 * minute. */
static bool answered_with(const char *id, const char *text, size_t (*write_it)(uint8_t *out, const lbm_src_t *plain))
{
    uint8_t wire[256] = {0};
    lbm_context_t *ctx = open_context(NULL, NULL);
    lbm_src_t *keeps = retaining_source(ctx, "keeps"), *plain = net_source(ctx, "plain");
    watch_log(id);
    int fd = connect_to(port_of(ctx));
    size_t len = write_it(wire, plain);
    REQUIRE(write(fd, wire, len) == (ssize_t)len);
    bool ok = told_in_time(id, LBM_LOG_INFO, text);
    close(fd);
    MUST(lbm_src_delete(plain));
    MUST(lbm_src_delete(keeps));
    MUST(lbm_context_delete(ctx));
    return ok;
}

static size_t lji_req(uint8_t *out, uint32_t topic_idx)
{
    const struct um_lbmc_lji_req req = {
        .request_idx = 1, .topic_idx = topic_idx, .ip = htonl(INADDR_LOOPBACK), .port = 1};
    um_lbmc_put_control_hdr(out, UM_LBMC_HDR_LJI_REQ, UM_LBMC_CONTROL_HDR_LEN + UM_LBMC_LJI_REQ_LEN);
    um_lbmc_put_lji_req(out + UM_LBMC_CONTROL_HDR_LEN, UM_LBMC_HDR_NONE, &req);
    return UM_LBMC_CONTROL_HDR_LEN + UM_LBMC_LJI_REQ_LEN;
}

static size_t join_at_nothing(uint8_t *out, const lbm_src_t *plain)
{
    return lji_req(out, plain->stream.tidx + 1000);
}

static size_t join_at_plain(uint8_t *out, const lbm_src_t *plain)
{
    return lji_req(out, plain->stream.tidx);
}

static size_t ask_nothing(uint8_t *out, const lbm_src_t *plain)
{
    const struct um_lbmc_rxreq req = {
        .request_idx = 1, .id = plain->stream.tidx + 1000, .ip = htonl(INADDR_LOOPBACK), .port = 1};
    um_lbmc_put_control_hdr(out, UM_LBMC_HDR_RXREQ, UM_LBMC_CONTROL_HDR_LEN + UM_LBMC_RXREQ_LEN);
    um_lbmc_put_rxreq(out + UM_LBMC_CONTROL_HDR_LEN, UM_LBMC_HDR_NONE, &req);
    return UM_LBMC_CONTROL_HDR_LEN + UM_LBMC_RXREQ_LEN;
}

static size_t ask_last_of_nothing(uint8_t *out, const lbm_src_t *plain)
{
    const struct um_lbmc_rxreq req = {
        .request_idx = 1, .id = plain->stream.tidx + 1000, .tsni = true, .ip = htonl(INADDR_LOOPBACK), .port = 1};
    um_lbmc_put_control_hdr(out, UM_LBMC_HDR_RXREQ, UM_LBMC_CONTROL_HDR_LEN + UM_LBMC_RXREQ_LEN);
    um_lbmc_put_rxreq(out + UM_LBMC_CONTROL_HDR_LEN, UM_LBMC_HDR_NONE, &req);
    return UM_LBMC_CONTROL_HDR_LEN + UM_LBMC_RXREQ_LEN;
}

static size_t retransmit_unasked(uint8_t *out, const lbm_src_t *plain)
{
    (void)plain;
    um_lbmc_put_data_hdr(out, UM_LBMC_HDR_DATA, UM_LBMC_DATA_HDR_LEN + 1, 77, 0);
    out[0] = (uint8_t)((out[0] & 0xf0) | UM_LBMC_RETRANS);
    return UM_LBMC_DATA_HDR_LEN + 1;
}

TEST(requests_for_what_is_not_kept_or_not_there_and_answers_nobody_asked_for_are_told_apart)
{
    TEST_NEEDS_NET();
    CHECK(
        answered_with("Core-5688-699", "received lji request for unknown source: from ip[127.0.0.1]", join_at_nothing));
    CHECK(answered_with("Core-9612-2", "Late-Join not configured: from ip[127.0.0.1]", join_at_plain));
    CHECK(answered_with("Core-5688-696", "received retransmit request for unknown source[", ask_nothing));
    CHECK(answered_with("Core-7427-1", "received TSNI request for unknown source[", ask_last_of_nothing));
    CHECK(answered_with("Core-5688-692", "request index, 77, not found", retransmit_unasked));
}

/* ---- requests that cannot be answered ---- */

static int never(lbm_request_t *req, lbm_msg_t *msg, void *clientd)
{
    (void)req, (void)msg;
    atomic_fetch_add((atomic_int *)clientd, 1);
    return 0;
}

TEST(immediate_requests_without_a_request_port_are_sent_with_a_warning)
{
    TEST_NEEDS_NET();
    atomic_int answers = 0;
    lbm_request_t *req;
    lbm_context_t *ctx = net_lean_context(), *other = open_context(NULL, NULL);
    watch_log("Core-5688-3723");
    MUST(lbm_unicast_immediate_request(&req, ctx, target_of(other).text, NULL, "?", 1, never, &answers, NULL, 0));
    CHECK(told("Core-5688-3723", LBM_LOG_WARNING, "unicast immediate request with request port binding disabled"));
    MUST(lbm_request_delete(req));
    watch_log("Core-5688-3919");
    MUST(lbm_multicast_immediate_request(&req, ctx, NULL, "?", 1, never, &answers, NULL, 0));
    CHECK(told("Core-5688-3919", LBM_LOG_WARNING, "multicast immediate request with request port binding disabled"));
    MUST(lbm_request_delete(req));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(other));
    CHECK_EQ(atomic_load(&answers), 0);
}
