/* Sources over LBT-RM and LBT-RU on real sockets of a private loopback network:
 * end to end with receivers of the library, and against plain sockets that look at
 * the packets. Mapping to sessions, rate limits, repairs, clients, filters, time stamps. */
#include <arpa/inet.h>
#include <poll.h>
#include <stdatomic.h>
#include <unistd.h>

#include "um_test.h"
#include "um_test_net.h"
#include "um_test_rcv.h"
#include "wire/um_lbmc.h"
#include "wire/um_lbtrm.h"
#include "wire/um_lbtru.h"

#define GROUP "239.101.3.10"

/* ---- objects ---- */

struct source_events {
    atomic_int connects, disconnects, wakeups, stamps;
    char client[64];
    lbm_src_event_timestamp_info_t stamp;
};

static int on_source_event(lbm_src_t *src, int event, void *ed, void *clientd)
{
    struct source_events *events = clientd;
    if (event == LBM_SRC_EVENT_CONNECT) {
        snprintf(events->client, sizeof events->client, "%s", (const char *)ed);
        events->connects++;
    } else if (event == LBM_SRC_EVENT_DISCONNECT) {
        events->disconnects++;
    } else if (event == LBM_SRC_EVENT_WAKEUP) {
        events->wakeups++;
    } else if (event == LBM_SRC_EVENT_TIMESTAMP) {
        events->stamp = *(lbm_src_event_timestamp_info_t *)ed;
        events->stamps++;
    }
    return 0;
}

static void ctx_set(lbm_context_attr_t *attr, const char *option, const char *value)
{
    MUST(lbm_context_attr_str_setopt(attr, option, value));
}

/* Everybody's own ports: several tests run at the same time. */
static lbm_context_attr_t *udp_attr(void)
{
    lbm_context_attr_t *attr = net_context_attr();
    ctx_set(attr, "transport_lbtrm_data_rate_limit", "1000000000");
    ctx_set(attr, "transport_lbtrm_retransmit_rate_limit", "500000000");
    ctx_set(attr, "transport_lbtru_data_rate_limit", "1000000000");
    ctx_set(attr, "transport_lbtru_retransmit_rate_limit", "500000000");
    return attr;
}

static lbm_src_t *udp_source_with(lbm_context_t *ctx, const char *name, const char *const *options,
                                  struct source_events *events)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src = NULL;
    MUST(lbm_src_topic_attr_create(&attr));
    for (; *options != NULL; options += 2) {
        MUST(lbm_src_topic_attr_str_setopt(attr, options[0], options[1]));
    }
    MUST(lbm_src_topic_alloc(&topic, ctx, name, attr));
    if (lbm_src_create(&src, ctx, topic, events != NULL ? on_source_event : NULL, events, NULL) != 0) {
        src = NULL;
    }
    lbm_src_topic_attr_delete(attr);
    return src;
}

#define udp_source(ctx, name, events, ...) udp_source_with(ctx, name, (const char *const[]){__VA_ARGS__, NULL}, events)

static void source_text(lbm_src_t *src, char *text, size_t size)
{
    lbm_src_transport_stats_t stats;
    MUST(lbm_src_retrieve_transport_stats(src, &stats));
    snprintf(text, size, "%s", stats.source);
}

static void sleep_ms(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

/* ---- end to end ---- */

TEST(lbtrm_messages_reach_a_receiver_of_the_library)
{
    TEST_NEEDS_NET();
    struct recorder r = RECORDER_INIT;
    lbm_context_t *ctx = net_context_with(udp_attr()), *other = net_context_with(udp_attr());
    lbm_rcv_t *rcv = net_recording_receiver(other, "rm", &r);
    lbm_src_t *src = udp_source(ctx, "rm", NULL, "transport", "lbt-rm");
    CHECK(src != NULL);
    for (int i = 0; i < 200 && recorder_count(&r, LBM_MSG_BOS) == 0; i++) {
        net_send(src, "x");
        sleep_ms(20);
    }
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 1));
    int before = recorder_count(&r, LBM_MSG_DATA);
    static char big[100000];
    for (int i = 0; i < 200; i++) {
        MUST(lbm_src_send(src, big, i % 20 == 0 ? sizeof big : 100, 0));
    }
    MUST(lbm_src_flush(src));
    CHECK(recorder_wait(&r, LBM_MSG_DATA, before + 200));
    CHECK_EQ(recorder_count(&r, LBM_MSG_UNRECOVERABLE_LOSS), 0);
    CHECK(strncmp(r.source, "LBTRM:127.0.0.1:143", 19) == 0);
    lbm_rcv_delete(rcv);
    lbm_src_delete(src);
    lbm_context_delete(other);
    lbm_context_delete(ctx);
}

TEST(lbtru_messages_after_connect_reach_a_receiver_of_the_library)
{
    TEST_NEEDS_NET();
    struct recorder r = RECORDER_INIT;
    struct source_events events = {0};
    lbm_context_t *ctx = net_context_with(udp_attr()), *other = net_context_with(udp_attr());
    lbm_rcv_t *rcv = net_recording_receiver(other, "ru", &r);
    lbm_src_t *src = udp_source(ctx, "ru", &events, "transport", "lbt-ru");
    CHECK(src != NULL);
    CHECK_EQ(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000), 0);
    static char big[100000];
    for (int i = 0; i < 200; i++) {
        MUST(lbm_src_send(src, big, i % 20 == 0 ? sizeof big : 100, 0));
    }
    MUST(lbm_src_flush(src));
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 200));
    CHECK_EQ(recorder_count(&r, LBM_MSG_UNRECOVERABLE_LOSS), 0);
    CHECK(strncmp(r.source, "LBT-RU:127.0.0.1:143", 20) == 0);
    CHECK_EQ(events.connects, 1);
    CHECK(strncmp(events.client, "LBT-RU:127.0.0.1:143", 20) == 0);
    lbm_rcv_delete(rcv);
    lbm_src_delete(src);
    lbm_context_delete(other);
    lbm_context_delete(ctx);
}
