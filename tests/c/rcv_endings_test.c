/* Sources that end, and what resolution says of them afterwards: advertisements are forged, which come by multicast. */
#include <arpa/inet.h>
#include <stdatomic.h>

#include "um_test_rcv.h"
#include "wire/um_lbmr.h"
#include "wire/um_source_string.h"

/* An advertisement of the TCP source with this text, from nobody, to the multicast group. */
static void advertise_again(const char *topic, const char *source)
{
    uint8_t record[UM_LBMR_TIR_MAX], datagram[UM_LBMR_TIR_MAX + UM_LBMR_HEADER_LEN];
    struct um_lbmr_tir_writer writer;
    struct um_lbmr_builder builder;
    lbm_transport_source_info_t info;
    CHECK_EQ(um_source_string_parse(source, &info), 0);
    struct um_lbmr_transport transport = {.code = UM_LBMR_TCP,
                                          .known = true,
                                          .ip = info.src_ip,
                                          .port = (uint16_t)info.src_port,
                                          .session_id = info.session_id};
    um_lbmr_tir_begin(&writer, record, sizeof record, topic, info.topic_idx);
    size_t len = um_lbmr_tir_end(&writer, &transport);
    um_lbmr_begin(&builder, datagram, sizeof datagram, sizeof datagram, UM_LBMR_NORMAL, NULL, 0);
    um_lbmr_add_tir(&builder, record, len);
    len = um_lbmr_finish(&builder);
    struct sockaddr_in group = {.sin_family = AF_INET, .sin_port = htons(12965)};
    struct ip_mreqn lo = {.imr_address.s_addr = htonl(INADDR_LOOPBACK)};
    group.sin_addr.s_addr = inet_addr("224.9.10.11");
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK_EQ(setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &lo, sizeof lo), 0);
    CHECK_EQ(sendto(fd, datagram, len, 0, (struct sockaddr *)&group, sizeof group), (ssize_t)len);
    close(fd);
}

static atomic_int joined, left;

static void *count_joined(const char *source, void *clientd)
{
    atomic_fetch_add(&joined, 1);
    return NULL;
}

static int count_left(const char *source, void *clientd, void *source_clientd)
{
    atomic_fetch_add(&left, 1);
    return 0;
}

/* The end of a connection overtakes advertisements that were sent before it. */
TEST(a_late_advertisement_of_a_source_that_has_ended_brings_no_second_eos)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context(), *sctx = net_context();
    struct recorder r = RECORDER_INIT;
    lbm_rcv_topic_attr_t *attr;
    lbm_rcv_src_notification_func_t func = {count_joined, count_left, NULL};
    MUST(lbm_rcv_topic_attr_create(&attr));
    MUST(lbm_rcv_topic_attr_setopt(attr, "source_notification_function", &func, sizeof func));
    lbm_rcv_t *rcv = net_receiver(ctx, "late", attr, recorder_cb, &r, NULL);
    lbm_rcv_topic_attr_delete(attr);
    lbm_src_t *src = net_source(sctx, "late");
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 1));
    MUST(lbm_src_delete(src));
    CHECK(recorder_wait(&r, LBM_MSG_EOS, 1));
    for (int i = 0; i < HANG_SECONDS * 1000 && atomic_load(&left) < 1; i++) {
        usleep(1000);
    }
    int before = atomic_load(&joined);
    advertise_again("late", r.source);
    for (int i = 0; i < HANG_SECONDS * 1000 && (atomic_load(&joined) == before || atomic_load(&left) <= before); i++) {
        usleep(1000);
    }
    CHECK(atomic_load(&joined) > before); /* tried, and refused */
    src = net_source(sctx, "late");
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 2));
    MUST(lbm_src_delete(src));
    CHECK(recorder_wait(&r, LBM_MSG_EOS, 2));
    CHECK_STR(r.text, "BOS EOS BOS EOS ");
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_context_delete(sctx));
    MUST(lbm_context_delete(ctx));
}

TEST(a_join_that_brings_nothing_ends_with_eos)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct recorder r = RECORDER_INIT;
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "nobody", &r);
    for (int i = 0; i < HANG_SECONDS * 1000 && recorder_count(&r, LBM_MSG_EOS) == 0; i += 10) {
        advertise_again("nobody", "TCP:127.0.0.1:9:1234[5]"); /* until the receiver listens */
        usleep(10000);
    }
    CHECK_STR(r.text, "EOS ");
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_context_delete(ctx));
}
