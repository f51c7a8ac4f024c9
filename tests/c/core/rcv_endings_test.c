/* Sources that end, and what resolution says of them afterwards: advertisements are forged, which come by multicast. */
#include <arpa/inet.h>
#include <stdatomic.h>

#include "um_test_rcv.h"
#include "wire/um_lbmc.h"
#include "wire/um_lbmr.h"
#include "wire/um_source_string.h"

/* A TCP source with a topic index of its own, as a record of topic resolution. */
static size_t advertisement_of(const char *topic, const lbm_transport_source_info_t *info, uint32_t index,
                               uint8_t record[UM_LBMR_TIR_MAX])
{
    struct um_lbmr_tir_writer writer;
    struct um_lbmr_transport transport = {.code = UM_LBMR_TCP,
                                          .known = true,
                                          .ip = info->src_ip,
                                          .port = (uint16_t)info->src_port,
                                          .session_id = info->session_id};
    um_lbmr_tir_begin(&writer, record, UM_LBMR_TIR_MAX, topic, index);
    return um_lbmr_tir_end(&writer, &transport);
}

/* From nobody, to the multicast group. */
static void send_to_group(const uint8_t *datagram, size_t len)
{
    struct sockaddr_in group = {.sin_family = AF_INET, .sin_port = htons(12965)};
    struct ip_mreqn lo = {.imr_address.s_addr = htonl(INADDR_LOOPBACK)};
    group.sin_addr.s_addr = inet_addr("224.9.10.11");
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK_EQ(setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &lo, sizeof lo), 0);
    CHECK_EQ(sendto(fd, datagram, len, 0, (struct sockaddr *)&group, sizeof group), (ssize_t)len);
    close(fd);
}

/* An advertisement of the TCP source with this text. */
static void advertise_again(const char *topic, const char *source)
{
    uint8_t record[UM_LBMR_TIR_MAX], datagram[UM_LBMR_TIR_MAX + UM_LBMR_HEADER_LEN];
    struct um_lbmr_builder builder;
    lbm_transport_source_info_t info;
    CHECK_EQ(um_source_string_parse(source, &info), 0);
    size_t len = advertisement_of(topic, &info, info.topic_idx, record);
    um_lbmr_begin(&builder, datagram, sizeof datagram, sizeof datagram, UM_LBMR_NORMAL, NULL, 0);
    um_lbmr_add_tir(&builder, record, len);
    send_to_group(datagram, um_lbmr_finish(&builder));
}

/* Names the session of that source with `count` other topic indexes from `first` on. The name holds a %u for the number
 * of the topic, or not. */
static void forge_indexes(const char *name, const char *source, unsigned first, unsigned count)
{
    enum { IN_A_DATAGRAM = 20 };
    uint8_t record[UM_LBMR_TIR_MAX], datagram[1400];
    struct um_lbmr_builder builder;
    lbm_transport_source_info_t info;
    CHECK_EQ(um_source_string_parse(source, &info), 0);
    for (unsigned i = 0; i < count; i++) {
        char topic[64];
        snprintf(topic, sizeof topic, name, first + i);
        if (i % IN_A_DATAGRAM == 0) {
            um_lbmr_begin(&builder, datagram, sizeof datagram, sizeof datagram, UM_LBMR_NORMAL, NULL, 0);
        }
        um_lbmr_add_tir(&builder, record, advertisement_of(topic, &info, info.topic_idx + 1000000 + first + i, record));
        if (i % IN_A_DATAGRAM == IN_A_DATAGRAM - 1 || i == count - 1) {
            send_to_group(datagram, um_lbmr_finish(&builder));
        }
    }
}

static atomic_int created, deleted;

static void *count_created(const char *source, void *clientd)
{
    atomic_fetch_add(&created, 1);
    return NULL;
}

static int count_deleted(const char *source, void *clientd, void *source_clientd)
{
    atomic_fetch_add(&deleted, 1);
    return 0;
}

static lbm_rcv_t *counting_receiver(lbm_context_t *ctx, const char *topic, struct recorder *r)
{
    lbm_rcv_topic_attr_t *attr;
    lbm_rcv_src_notification_func_t func = {count_created, count_deleted, NULL};
    atomic_store(&created, 0);
    atomic_store(&deleted, 0);
    MUST(lbm_rcv_topic_attr_create(&attr));
    MUST(lbm_rcv_topic_attr_setopt(attr, "source_notification_function", &func, sizeof func));
    lbm_rcv_t *rcv = net_receiver(ctx, topic, attr, recorder_cb, r, NULL);
    lbm_rcv_topic_attr_delete(attr);
    return rcv;
}

static um_context_stats_t counts(lbm_context_t *ctx)
{
    um_context_stats_t stats;
    MUST(um_context_stats(ctx, &stats));
    return stats;
}

/* The end of a connection overtakes advertisements that were sent before it. */
TEST(a_late_advertisement_of_a_source_that_has_ended_brings_no_second_eos)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context(), *sctx = net_context();
    struct recorder r = RECORDER_INIT;
    lbm_rcv_t *rcv = counting_receiver(ctx, "late", &r);
    lbm_src_t *src = net_source(sctx, "late");
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 1));
    MUST(lbm_src_delete(src));
    CHECK(recorder_wait(&r, LBM_MSG_EOS, 1));
    for (int i = 0; i < HANG_SECONDS * 1000 && atomic_load(&deleted) < 1; i++) {
        usleep(1000);
    }
    uint64_t before = counts(ctx).joins_failed;
    advertise_again("late", r.source);
    for (int i = 0; i < HANG_SECONDS * 1000 && counts(ctx).joins_failed == before; i++) {
        usleep(1000);
    }
    CHECK(counts(ctx).joins_failed > before); /* tried, and refused */
    CHECK_EQ(counts(ctx).joins_waiting, 0);   /* it is gone: not tried again */
    CHECK_EQ(atomic_load(&created), 1);
    CHECK_EQ(atomic_load(&deleted), 1);
    src = net_source(sctx, "late");
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 2));
    MUST(lbm_src_delete(src));
    CHECK(recorder_wait(&r, LBM_MSG_EOS, 2));
    CHECK_STR(r.text, "BOS EOS BOS EOS ");
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_context_delete(sctx));
    MUST(lbm_context_delete(ctx));
}

/* Listens where an advertised source would. */
static int listen_at(uint16_t port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    return bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 4) == 0 ? fd : -1;
}

TEST(f13_a_tcp_source_that_could_not_be_reached_is_joined_and_only_then_heard_of)
{
    TEST_NEEDS_NET();
    enum { PORT = 17913, INDEX = 5, FAILURES = 3 };
    uint8_t tsni[16];
    const uint32_t index = INDEX, last_sqn = UM_LBMC_TSNI_NONE;
    lbm_context_t *ctx = net_context();
    struct recorder r = RECORDER_INIT;
    char source[64];
    snprintf(source, sizeof source, "TCP:127.0.0.1:%d:1234[%d]", PORT, INDEX);
    lbm_rcv_t *rcv = counting_receiver(ctx, "nobody", &r);
    for (int i = 0; i < HANG_SECONDS * 1000 && counts(ctx).joins_failed == 0; i += 10) {
        advertise_again("nobody", source); /* until the receiver listens */
        usleep(10000);
    }
    for (int i = 0; i < HANG_SECONDS * 1000 && counts(ctx).joins_failed < FAILURES; i += 10) {
        usleep(10000); /* it goes on by itself */
    }
    CHECK(counts(ctx).joins_failed >= FAILURES);
    CHECK_EQ(counts(ctx).joins_waiting, 1);
    CHECK(recorder_reads(&r, ""));
    CHECK_EQ(atomic_load(&created), 0);
    CHECK_EQ(atomic_load(&deleted), 0);
    int listener = listen_at(PORT);
    CHECK(listener >= 0);
    int fd = accept(listener, NULL, NULL);
    size_t len = um_lbmc_encode_tsni(tsni, &index, &last_sqn, 1);
    CHECK_EQ(send(fd, tsni, len, MSG_NOSIGNAL), (ssize_t)len);
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 1));
    CHECK_EQ(counts(ctx).joins_waiting, 0);
    CHECK_EQ(atomic_load(&created), 1);
    close(fd);
    CHECK(recorder_wait(&r, LBM_MSG_EOS, 1));
    CHECK(recorder_reads(&r, "BOS EOS "));
    close(listener);
    MUST(lbm_rcv_delete(rcv));
    CHECK_EQ(atomic_load(&deleted), 1);
    MUST(lbm_context_delete(ctx));
}

/* Whoever leaves while a join is under way or waits for its next attempt leaves nothing behind. */
TEST(f13_a_receiver_is_deleted_while_its_source_is_not_joined)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    for (int round = 0; round < 10; round++) {
        struct recorder r = RECORDER_INIT;
        lbm_rcv_t *rcv = net_recording_receiver(ctx, "nobody", &r);
        uint64_t before = counts(ctx).joins_failed;
        for (int i = 0; i < HANG_SECONDS * 1000 && counts(ctx).joins_failed == before; i += 10) {
            advertise_again("nobody", "TCP:127.0.0.1:9:1234[5]");
            usleep(10000);
        }
        usleep((useconds_t)round * 10000);
        MUST(lbm_rcv_delete(rcv));
        CHECK_EQ(counts(ctx).joins_waiting, 0);
        CHECK_STR(r.text, "");
    }
    MUST(lbm_context_delete(ctx));
}

/* The receiver gives up waiting for a source that has sent nothing yet, and tells nobody; it joins again by itself. */
TEST(f43_a_source_of_lbtrm_that_is_silent_for_longer_than_receivers_wait_has_no_end_before_it_begins)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context(), *other = net_context();
    lbm_src_topic_attr_t *src_attr;
    lbm_rcv_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    struct recorder r = RECORDER_INIT;
    MUST(lbm_src_topic_attr_create(&src_attr));
    MUST(lbm_src_topic_attr_str_setopt(src_attr, "transport", "lbtrm"));
    MUST(lbm_src_topic_alloc(&topic, ctx, "silent", src_attr));
    MUST(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL));
    MUST(lbm_rcv_topic_attr_create(&attr));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "transport_lbtrm_activity_timeout", "100"));
    lbm_rcv_t *rcv = net_receiver(other, "silent", attr, recorder_cb, &r, NULL);
    for (int i = 0; i < HANG_SECONDS * 1000 && counts(other).joins_failed == 0; i += 10) {
        usleep(10000);
    }
    CHECK(counts(other).joins_failed > 0);
    CHECK(recorder_reads(&r, ""));
    for (int i = 0; i < HANG_SECONDS * 100 && recorder_count(&r, LBM_MSG_DATA) == 0; i++) {
        net_send(src, "x"); /* heard when it is joined again */
        usleep(10000);
    }
    CHECK(recorder_count(&r, LBM_MSG_DATA) > 0);
    CHECK(strncmp(r.text, "BOS ", 4) == 0);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    lbm_src_topic_attr_delete(src_attr);
    lbm_rcv_topic_attr_delete(attr);
    MUST(lbm_context_delete(other));
    MUST(lbm_context_delete(ctx));
}

/* ---- withdrawn before it was heard ---- */

/* A receiver that is busy elsewhere when its source, which counts it already, sends all it has and ends. The final
 * advertisement is read first: its socket has something before there are messages. */
static void end_before_it_is_heard(const char *transport)
{
    lbm_context_t *here = net_sequential_context(), *there = net_context();
    struct recorder r = RECORDER_INIT;
    lbm_rcv_t *rcv = net_recording_receiver(here, "brief", &r);
    lbm_src_t *src = net_withdrawn_source(there, "brief", transport);
    lbm_src_t *other = net_withdrawn_source(there, "keeps the session", transport);
    bool counted = false;
    for (int i = 0; i < HANG_SECONDS * 100 && !counted; i++) {
        MUST(lbm_context_process_events(here, 0));
        if (strcmp(transport, "lbtrm") != 0) {
            counted = um_src_wait_receivers(src, 1, 10) == 0;
        } else { /* a source of it knows of no receivers */
            counted = counts(here).joins_under_way > 0 || recorder_count(&r, LBM_MSG_BOS) > 0;
            sleep_ms(10);
        }
    }
    CHECK(counted);
    advertise_again("nobody", "TCP:127.0.0.1:9:1234[5]");
    net_send(src, "a");
    net_send(src, "b");
    MUST(lbm_src_delete(src));
    sleep_ms(200); /* for the final advertisement; without it in time the test shows less */
    for (int i = 0; i < HANG_SECONDS * 1000 && recorder_count(&r, LBM_MSG_EOS) == 0; i++) {
        MUST(lbm_context_process_events(here, 1));
    }
    CHECK(recorder_reads(&r, "BOS 0=a 1=b EOS "));
    CHECK_EQ(counts(here).joins_waiting, 0);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(other));
    MUST(lbm_context_delete(there));
    MUST(lbm_context_delete(here));
}

TEST(f38_a_source_that_is_withdrawn_before_it_is_heard_is_heard_to_its_end)
{
    TEST_NEEDS_NET();
    static const char *const transports[] = {"tcp", "lbtrm", "lbtru", "lbtipc", "lbtsmx"};
    for (unsigned i = 0; i < sizeof transports / sizeof transports[0]; i++) {
        fprintf(stderr, "%s\n", transports[i]);
        end_before_it_is_heard(transports[i]);
    }
}

static lbm_context_t *context_with_one_session(void)
{
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "transport_tcp_maximum_ports", "1"));
    return net_context_with(attr);
}

static int open_of(struct recorder *r)
{
    int ended = recorder_count(r, LBM_MSG_EOS);
    return recorder_count(r, LBM_MSG_BOS) - ended;
}

/* The session of a genuine source is named with more indexes of its topic than a session may have of one. */
TEST(f5_forged_indexes_on_a_genuine_session_do_not_keep_out_the_next_source_of_the_topic)
{
    TEST_NEEDS_NET();
    enum { FORGED = 1200, ROUNDS = 100 };
    lbm_context_t *ctx = net_context(), *sctx = context_with_one_session();
    struct recorder r = RECORDER_INIT, other = RECORDER_INIT;
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "victim", &r), *keeper = net_recording_receiver(ctx, "keeper", &other);
    lbm_src_t *keep = net_source(sctx, "keeper");
    CHECK(recorder_wait(&other, LBM_MSG_BOS, 1));
    for (int i = 0; i < ROUNDS && counts(ctx).joins_excess < FORGED - 1024; i++) {
        forge_indexes("victim", other.source, 0, FORGED);
        usleep(50000);
    }
    CHECK(counts(ctx).joins_excess >= FORGED - 1024);
    lbm_src_t *src = net_source(sctx, "victim");
    for (int i = 0; i < HANG_SECONDS * 100 && recorder_count(&r, LBM_MSG_DATA) == 0; i++) {
        net_send(src, "genuine");
        usleep(10000);
    }
    CHECK(recorder_count(&r, LBM_MSG_DATA) > 0);
    forge_indexes("victim", other.source, FORGED, FORGED); /* nor do they end it */
    usleep(50000);
    int before = recorder_count(&r, LBM_MSG_DATA);
    net_send(src, "more");
    CHECK(recorder_wait(&r, LBM_MSG_DATA, before + 1));
    CHECK_EQ(recorder_count(&other, LBM_MSG_EOS), 0);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_rcv_delete(keeper));
    MUST(lbm_src_delete(src));
    MUST(lbm_src_delete(keep));
    MUST(lbm_context_delete(sctx));
    MUST(lbm_context_delete(ctx));
}

/* Names that match a pattern, each with an index of its own on a session from which others receive. */
TEST(f5_forged_topics_on_a_genuine_session_that_match_a_pattern_are_bounded)
{
    TEST_NEEDS_NET();
    enum { FORGED = 17500, BOUND = 4096, AT_ONCE = 500 };
    lbm_context_t *ctx = net_context(), *sctx = context_with_one_session();
    struct recorder r = RECORDER_INIT, other = RECORDER_INIT;
    lbm_wildcard_rcv_t *wrcv;
    lbm_wildcard_rcv_attr_t *wattr;
    MUST(lbm_wildcard_rcv_attr_create(&wattr)); /* none goes for want of a source before there are too many */
    MUST(lbm_wildcard_rcv_attr_str_setopt(wattr, "resolver_no_source_linger_timeout", "600000"));
    MUST(lbm_wildcard_rcv_create(&wrcv, ctx, "^forged", NULL, wattr, recorder_cb, &r, NULL));
    lbm_wildcard_rcv_attr_delete(wattr);
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "genuine", &other);
    lbm_src_t *src = net_source(sctx, "genuine");
    CHECK(recorder_wait(&other, LBM_MSG_BOS, 1));
    for (unsigned first = 0; first < FORGED; first += AT_ONCE) {
        for (int i = 0; i < HANG_SECONDS * 20 && recorder_count(&r, LBM_MSG_BOS) < (int)(first + AT_ONCE); i++) {
            forge_indexes("forged%u", other.source, first, AT_ONCE);
            usleep(50000);
        }
    }
    CHECK(recorder_count(&r, LBM_MSG_BOS) >= FORGED);
    for (int i = 0; i < HANG_SECONDS * 100 && open_of(&r) > BOUND; i++) {
        usleep(10000);
    }
    CHECK(open_of(&r) <= BOUND);
    CHECK(open_of(&r) >= BOUND / 2);
    CHECK(counts(ctx).matches_deferred > 0); /* BOS is of the session: it does not make a topic one that is heard */
    int before = recorder_count(&r, LBM_MSG_BOS);
    for (int i = 0; i < HANG_SECONDS * 20 && recorder_count(&r, LBM_MSG_BOS) < before + AT_ONCE; i++) {
        forge_indexes("forged%u", other.source, 0, AT_ONCE); /* those that made way are joined again */
        usleep(50000);
    }
    CHECK(recorder_count(&r, LBM_MSG_BOS) >= before + AT_ONCE);
    net_send(src, "x");
    CHECK(recorder_wait(&other, LBM_MSG_DATA, 1));
    CHECK_EQ(recorder_count(&other, LBM_MSG_EOS), 0);
    MUST(lbm_wildcard_rcv_delete(wrcv));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(sctx));
    MUST(lbm_context_delete(ctx));
}
