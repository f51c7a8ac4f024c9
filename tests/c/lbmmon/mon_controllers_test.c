/* Source and receive controllers over both transports: what the API counts is what arrives, with the attributes. */
#include <arpa/inet.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lbm/lbmmon.h>

#include "um_test.h"
#include "um_test_net.h"
#include "um_test_mon.h"

#define UDP_TO "address=127.0.0.1;port=2933"

static lbmmon_sctl_t *udp_sender(void)
{
    lbmmon_sctl_t *control;
    MON_MUST(lbmmon_sctl_create(&control, lbmmon_format_csv_module(), "", lbmmon_transport_udp_module(), UDP_TO));
    return control;
}

TEST(check_5_datagrams_of_udp_are_packets)
{
    TEST_NEEDS_NET();
    uint8_t bytes[2048];
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(2933), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK_EQ(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    lbm_context_t *ctx = net_context();
    lbmmon_sctl_t *control = udp_sender();
    MON_MUST(lbmmon_context_monitor(control, ctx, "app", 0));
    MON_MUST(lbmmon_sctl_sample(control));
    ssize_t len = recv(fd, bytes, sizeof bytes, 0);
    CHECK(len > 12);
    CHECK(memcmp(bytes, "\x1b\x33\x04\x1b", 4) == 0);
    CHECK_EQ(bytes[4] << 8 | bytes[5], LBMMON_PACKET_TYPE_CONTEXT);
    CHECK_EQ(12 + (bytes[6] << 8 | bytes[7]) + (bytes[8] << 8 | bytes[9]), len);
    close(fd);
    MON_MUST(lbmmon_sctl_destroy(control));
    MUST(lbm_context_delete(ctx));
}

/* A source and a receiver in two contexts, with messages on their way. */
struct pair {
    struct recorder recorder;
    lbm_context_t *ctx, *other;
    lbm_src_t *src;
    lbm_rcv_t *rcv;
};

static void pair_open(struct pair *pair)
{
    *pair = (struct pair){.recorder = RECORDER_INIT};
    pair->ctx = net_context();
    pair->other = net_context();
    pair->rcv = net_recording_receiver(pair->other, "topic", &pair->recorder);
    pair->src = net_source(pair->ctx, "topic");
    MUST(um_src_wait_receivers(pair->src, 1, HANG_SECONDS * 1000));
    for (int i = 0; i < 10; i++) {
        MUST(lbm_src_send(pair->src, "message", 7, LBM_MSG_FLUSH));
    }
    REQUIRE(recorder_wait(&pair->recorder, LBM_MSG_DATA, 10));
}

static void pair_close(struct pair *pair)
{
    MUST(lbm_rcv_delete(pair->rcv));
    MUST(lbm_src_delete(pair->src));
    MUST(lbm_context_delete(pair->other));
    MUST(lbm_context_delete(pair->ctx));
}

TEST(records_of_objects_equal_what_the_api_counts)
{
    TEST_NEEDS_NET();
    struct pair pair;
    struct mon_seen seen = MON_SEEN_INIT;
    lbm_rcv_transport_stats_t rcv_stats;
    lbm_src_transport_stats_t src_stats;
    int one = 1;
    pair_open(&pair);
    mon_listen(&seen, lbmmon_format_csv_module(), NULL, lbmmon_transport_udp_module(), UDP_TO);
    lbmmon_sctl_t *control = udp_sender();
    MON_MUST(lbmmon_rcv_monitor(control, pair.rcv, "the application", 0));
    MON_MUST(lbmmon_src_monitor(control, pair.src, NULL, 0));
    MUST(lbm_rcv_retrieve_all_transport_stats_ex(pair.rcv, &one, sizeof rcv_stats, &rcv_stats));
    MUST(lbm_src_retrieve_transport_stats(pair.src, &src_stats));
    MON_MUST(lbmmon_sctl_sample(control));
    CHECK(mon_wait(&seen, &seen.receivers, 1) && mon_wait(&seen, &seen.sources, 1));
    CHECK(memcmp(&seen.receiver.transport.tcp, &rcv_stats.transport.tcp, sizeof rcv_stats.transport.tcp) == 0);
    CHECK_EQ(seen.receiver.transport.tcp.lbm_msgs_rcved, 10);
    CHECK_STR(seen.receiver.source, rcv_stats.source);
    CHECK_EQ(seen.source.transport.tcp.num_clients, src_stats.transport.tcp.num_clients);
    CHECK_STR(seen.source.source, src_stats.source);
    MON_MUST(lbmmon_sctl_destroy(control));
    MON_MUST(lbmmon_rctl_destroy(seen.control));
    pair_close(&pair);
}

TEST(packets_say_who_sent_them)
{
    TEST_NEEDS_NET();
    struct mon_seen seen = MON_SEEN_INIT;
    lbm_context_t *ctx = net_context();
    lbm_uint8_t instance[8];
    lbm_ulong_t process, object;
    lbm_uint_t address;
    char appid[256];
    time_t before = time(NULL), timestamp;
    mon_listen(&seen, lbmmon_format_csv_module(), NULL, lbmmon_transport_udp_module(), UDP_TO);
    lbmmon_sctl_t *control = udp_sender();
    MON_MUST(lbmmon_context_monitor(control, ctx, "own id", 0));
    MON_MUST(lbmmon_sctl_sample(control));
    CHECK(mon_wait(&seen, &seen.contexts, 1));
    CHECK_EQ(lbmmon_attr_get_ipv4sender(&seen.attributes, &address), 0);
    CHECK_EQ(address, htonl(INADDR_LOOPBACK));
    CHECK_EQ(lbmmon_attr_get_timestamp(&seen.attributes, &timestamp), 0);
    CHECK(timestamp >= before && timestamp <= time(NULL));
    CHECK_EQ(lbmmon_attr_get_appsourceid(&seen.attributes, appid, sizeof appid), 0);
    CHECK_STR(appid, "own id");
    CHECK_EQ(seen.attributes.mModuleID, 0x0105);
    CHECK_EQ(lbmmon_attr_get_objectid(&seen.attributes, &object), 0);
    CHECK(object != 0);
    CHECK_EQ(lbmmon_attr_get_processid(&seen.attributes, &process), 0);
    CHECK_EQ(process, getpid());
    CHECK_EQ(lbmmon_attr_get_ctxinst(&seen.attributes, instance, sizeof instance), 0);
    /* Another application id for one sample; and none: the program's name. */
    MON_MUST(lbmmon_sctl_sample_ex(control, "for once"));
    CHECK(mon_wait(&seen, &seen.contexts, 2));
    CHECK_STR(seen.attributes.mApplicationSourceID, "for once");
    MON_MUST(lbmmon_context_unmonitor(control, ctx));
    MON_MUST(lbmmon_context_monitor(control, ctx, "", 0));
    MON_MUST(lbmmon_sctl_sample(control));
    CHECK(mon_wait(&seen, &seen.contexts, 3));
    CHECK_CONTAINS(seen.attributes.mApplicationSourceID, "mon_controllers");
    CHECK(seen.attributes.mObjectID != object); /* a new registration of an object nobody knew any more */
    MON_MUST(lbmmon_sctl_destroy(control));
    MON_MUST(lbmmon_rctl_destroy(seen.control));
    MUST(lbm_context_delete(ctx));
}

TEST(a_context_brings_the_sessions_of_its_sources_and_receivers)
{
    TEST_NEEDS_NET();
    struct pair pair;
    struct mon_seen seen = MON_SEEN_INIT;
    lbm_ulong_t flag;
    pair_open(&pair);
    mon_listen(&seen, lbmmon_format_csv_module(), NULL, lbmmon_transport_udp_module(), UDP_TO);
    lbmmon_sctl_t *control = udp_sender();
    MON_MUST(lbmmon_context_monitor(control, pair.ctx, "sending", 0));
    MON_MUST(lbmmon_context_monitor(control, pair.other, "receiving", 0));
    MON_MUST(lbmmon_sctl_sample(control));
    CHECK(mon_wait(&seen, &seen.contexts, 2) && mon_wait(&seen, &seen.sources, 1) &&
          mon_wait(&seen, &seen.receivers, 1));
    CHECK_EQ(seen.receiver.transport.tcp.lbm_msgs_rcved, 10);
    CHECK_EQ(lbmmon_attr_get_source(&seen.attributes, &flag), 0);
    CHECK_EQ(flag, LBMMON_ATTR_SOURCE_NORMAL);
    MON_MUST(lbmmon_sctl_destroy(control));
    MON_MUST(lbmmon_rctl_destroy(seen.control));
    pair_close(&pair);
}

TEST(event_queues_are_monitored)
{
    TEST_NEEDS_NET();
    struct mon_seen seen = MON_SEEN_INIT;
    lbm_event_queue_t *evq;
    lbm_event_queue_attr_t *attr;
    lbm_event_queue_stats_t stats;
    MUST(lbm_event_queue_attr_create(&attr));
    MUST(lbm_event_queue_attr_str_setopt(attr, "queue_count_enabled", "1"));
    MUST(lbm_event_queue_create(&evq, NULL, NULL, attr));
    lbm_event_queue_attr_delete(attr);
    MUST(lbm_event_dispatch_unblock(evq));
    mon_listen(&seen, lbmmon_format_csv_module(), NULL, lbmmon_transport_udp_module(), UDP_TO);
    lbmmon_sctl_t *control = udp_sender();
    MON_MUST(lbmmon_evq_monitor(control, evq, "queue", 0));
    MUST(lbm_event_queue_retrieve_stats(evq, &stats));
    MON_MUST(lbmmon_sctl_sample(control));
    CHECK(mon_wait(&seen, &seen.event_queues, 1));
    CHECK(memcmp(&seen.event_queue, &stats, sizeof stats) == 0);
    CHECK_EQ(stats.unblock_events, 1);
    lbm_uint8_t instance[8];
    CHECK_EQ(lbmmon_attr_get_ctxinst(&seen.attributes, instance, sizeof instance), -1); /* it has no context */
    MON_MUST(lbmmon_sctl_destroy(control));
    MON_MUST(lbmmon_rctl_destroy(seen.control));
    MUST(lbm_event_queue_delete(evq));
}

TEST(smart_sources_are_monitored_until_they_are_deleted)
{
    TEST_NEEDS_NET();
    struct mon_seen seen = MON_SEEN_INIT;
    lbm_context_t *ctx = net_context();
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_ssrc_t *ssrc;
    lbm_src_transport_stats_t stats;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", "lbt-rm"));
    MUST(lbm_src_topic_alloc(&topic, ctx, "smart", attr));
    lbm_src_topic_attr_delete(attr);
    MUST(lbm_ssrc_create(&ssrc, ctx, topic, NULL, NULL, NULL));
    mon_listen(&seen, lbmmon_format_csv_module(), NULL, lbmmon_transport_udp_module(), UDP_TO);
    lbmmon_sctl_t *control = udp_sender();
    MON_MUST(lbmmon_ssrc_monitor(control, ssrc, "smart one", 0));
    MUST(lbm_ssrc_retrieve_transport_stats(ssrc, &stats));
    MON_MUST(lbmmon_sctl_sample(control));
    CHECK(mon_wait(&seen, &seen.sources, 1));
    CHECK_EQ(seen.source.type, LBM_TRANSPORT_STAT_LBTRM);
    CHECK_STR(seen.source.source, stats.source);
    MUST(lbm_ssrc_delete(ssrc)); /* the controller forgets it */
    MON_MUST(lbmmon_sctl_sample(control));
    CHECK_EQ(lbmmon_ssrc_unmonitor(control, ssrc), -1);
    MON_MUST(lbmmon_sctl_destroy(control));
    MON_MUST(lbmmon_rctl_destroy(seen.control));
    CHECK_EQ(seen.sources, 1);
    MUST(lbm_context_delete(ctx));
}

TEST(records_go_over_the_topic_at_their_intervals)
{
    TEST_NEEDS_NET();
    struct mon_seen seen = MON_SEEN_INIT;
    lbmmon_sctl_t *control;
    lbm_context_t *ctx = net_context();
    mon_listen(&seen, lbmmon_format_csv_module(), NULL, lbmmon_transport_lbm_module(), MON_NET);
    MON_MUST(lbmmon_sctl_create(&control, lbmmon_format_csv_module(), NULL, lbmmon_transport_lbm_module(), MON_NET));
    MON_MUST(lbmmon_context_monitor(control, ctx, "lbm", 1));
    CHECK(mon_wait(&seen, &seen.contexts, 2));
    CHECK_STR(mon_now(&seen).attributes.mApplicationSourceID, "lbm");
    MON_MUST(lbmmon_sctl_destroy(control));
    MON_MUST(lbmmon_rctl_destroy(seen.control));
    MUST(lbm_context_delete(ctx));
}

TEST(topic_and_pattern_of_the_transport_are_options)
{
    TEST_NEEDS_NET();
    struct mon_seen seen = MON_SEEN_INIT, other = MON_SEEN_INIT;
    lbmmon_sctl_t *control;
    lbm_context_t *ctx = net_context();
    mon_listen(&seen, lbmmon_format_csv_module(), NULL, lbmmon_transport_lbm_module(), MON_NET ";wctopic=^mine/.*");
    mon_listen(&other, lbmmon_format_csv_module(), NULL, lbmmon_transport_lbm_module(), MON_NET);
    MON_MUST(lbmmon_sctl_create(&control, lbmmon_format_csv_module(), NULL, lbmmon_transport_lbm_module(),
                                MON_NET ";topic=mine/statistics"));
    MON_MUST(lbmmon_context_monitor(control, ctx, "lbm", 1));
    CHECK(mon_wait(&seen, &seen.contexts, 1));
    CHECK_EQ(mon_count(&other, &other.contexts), 0);
    MON_MUST(lbmmon_sctl_destroy(control));
    MON_MUST(lbmmon_rctl_destroy(seen.control));
    MON_MUST(lbmmon_rctl_destroy(other.control));
    MUST(lbm_context_delete(ctx));
}

TEST(passthrough_gives_packets_on_as_they_are)
{
    TEST_NEEDS_NET();
    struct mon_seen seen = MON_SEEN_INIT;
    lbm_context_t *ctx = net_context();
    mon_listen(&seen, lbmmon_format_csv_module(), "passthrough=on", lbmmon_transport_udp_module(), UDP_TO);
    lbmmon_sctl_t *control = udp_sender();
    MON_MUST(lbmmon_context_monitor(control, ctx, "raw", 0));
    MON_MUST(lbmmon_sctl_sample(control));
    CHECK(mon_wait(&seen, &seen.passed, 1));
    CHECK_EQ(seen.passed_type, LBMMON_PACKET_TYPE_CONTEXT);
    CHECK_STR(seen.attributes.mApplicationSourceID, "raw");
    lbm_context_stats_t stats;
    CHECK_EQ(lbmmon_ctx_format_csv_deserialize(NULL, &stats, seen.passed_data, seen.passed_len, 0x0105, NULL), 0);
    CHECK_EQ(mon_count(&seen, &seen.contexts), 0);
    MON_MUST(lbmmon_sctl_destroy(control));
    MON_MUST(lbmmon_rctl_destroy(seen.control));
    MUST(lbm_context_delete(ctx));
}

TEST(an_object_is_monitored_once_by_a_controller)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbmmon_sctl_t *control = udp_sender();
    MON_MUST(lbmmon_context_monitor(control, ctx, "a", 5));
    CHECK_EQ(lbmmon_context_monitor(control, ctx, "b", 5), -1);
    CHECK_EQ(lbmmon_errnum(), LBMMON_EALREADY);
    MON_MUST(lbmmon_context_unmonitor(control, ctx));
    CHECK_EQ(lbmmon_context_unmonitor(control, ctx), -1);
    CHECK_EQ(lbmmon_errnum(), LBMMON_EINVAL);
    MON_MUST(lbmmon_context_monitor(control, ctx, "c", 5));
    MON_MUST(lbmmon_sctl_destroy(control)); /* what it still monitors goes with it */
    MUST(lbm_context_delete(ctx));
}

TEST(wrong_arguments_are_refused_with_a_text)
{
    lbmmon_sctl_t *control;
    CHECK_EQ(lbmmon_sctl_create(NULL, lbmmon_format_csv_module(), NULL, lbmmon_transport_udp_module(), NULL), -1);
    CHECK_EQ(lbmmon_errnum(), LBMMON_EINVAL);
    CHECK_EQ(lbmmon_sctl_create(&control, NULL, NULL, lbmmon_transport_udp_module(), NULL), -1);
    CHECK_CONTAINS(lbmmon_errmsg(), "Format");
    CHECK_EQ(lbmmon_sctl_create(&control, lbmmon_format_csv_module(), NULL, lbmmon_transport_udp_module(), NULL), -1);
    CHECK_EQ(lbmmon_errnum(), LBMMON_EMODFAIL);
    CHECK_CONTAINS(lbmmon_errmsg(), "set address, mcgroup or bcaddress");
    CHECK_EQ(
        lbmmon_sctl_create(&control, lbmmon_format_csv_module(), "separator=no", lbmmon_transport_udp_module(), UDP_TO),
        -1);
    CHECK_CONTAINS(lbmmon_errmsg(), "separator \"no\"");
    CHECK_EQ(lbmmon_sctl_create(&control, lbmmon_format_csv_module(), NULL, lbmmon_transport_lbm_module(),
                                "context|no_such_option=1"),
             -1);
    CHECK_CONTAINS(lbmmon_errmsg(), "no_such_option");
    CHECK_EQ(lbmmon_sctl_destroy(NULL), -1);
    CHECK_EQ(lbmmon_sctl_sample(NULL), -1);
    CHECK_EQ(lbmmon_context_monitor(NULL, NULL, NULL, 0), -1);
    CHECK_EQ(lbmmon_rctl_destroy(NULL), -1);
    MON_MUST(lbmmon_sctl_create(&control, lbmmon_format_csv_module(), NULL, lbmmon_transport_udp_module(), UDP_TO));
    int refused[] = {lbmmon_context_monitor(control, NULL, NULL, 0), lbmmon_src_monitor(control, NULL, NULL, 0),
                     lbmmon_ssrc_monitor(control, NULL, NULL, 0), lbmmon_rcv_monitor(control, NULL, NULL, 0),
                     lbmmon_evq_monitor(control, NULL, NULL, 0)};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        CHECK_EQ(refused[i], -1);
    }
    CHECK_EQ(lbmmon_errnum(), LBMMON_EINVAL);
    CHECK_CONTAINS(lbmmon_errmsg(), "lbmmon_evq_monitor: EventQueue: must not be NULL");
    MON_MUST(lbmmon_sctl_destroy(control));
    lbmmon_rctl_attr_t *attr;
    lbmmon_ctx_statistics_func_t function = {mon_on_context}, read = {NULL};
    size_t len = sizeof read;
    MON_MUST(lbmmon_rctl_attr_create(&attr));
    CHECK_EQ(lbmmon_rctl_attr_setopt(attr, 9, &function, sizeof function), -1);
    CHECK_EQ(lbmmon_rctl_attr_setopt(attr, LBMMON_RCTL_CONTEXT_CALLBACK, &function, 4), -1);
    MON_MUST(lbmmon_rctl_attr_setopt(attr, LBMMON_RCTL_CONTEXT_CALLBACK, &function, sizeof function));
    MON_MUST(lbmmon_rctl_attr_getopt(attr, LBMMON_RCTL_CONTEXT_CALLBACK, &read, &len));
    CHECK(read.cbfunc == mon_on_context);
    MON_MUST(lbmmon_rctl_attr_delete(attr));
}

/* Until it comes; false after HANG_SECONDS. */
static bool recorder_has(struct recorder *r, const char *part)
{
    bool has = false;
    for (int i = 0; i < HANG_SECONDS * 1000 && !has; i++) {
        pthread_mutex_lock(&r->lock);
        has = strstr(r->text, part) != NULL;
        pthread_mutex_unlock(&r->lock);
        if (!has) {
            sleep_ms(1);
        }
    }
    return has;
}

TEST(check_1_counts_of_lbtrm_and_their_reset)
{
    TEST_NEEDS_NET();
    enum { MESSAGES = 1000 };
    struct recorder r = RECORDER_INIT;
    lbm_context_t *ctx = net_context(), *other = net_context();
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    lbm_rcv_transport_stats_t received;
    lbm_src_transport_stats_t sent;
    char payload[100] = {0};
    int one = 1;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", "lbt-rm"));
    MUST(lbm_src_topic_alloc(&topic, ctx, "check", attr));
    lbm_src_topic_attr_delete(attr);
    MUST(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL));
    lbm_rcv_t *rcv = net_recording_receiver(other, "check", &r);
    while (um_rcv_wait_ready(rcv, 1, 20) != 0) {
        MUST(lbm_src_send(src, "first", 5, LBM_MSG_FLUSH)); /* sources of LBT-RM do not know who listens */
    }
    MUST(lbm_src_send(src, "last", 4, LBM_MSG_FLUSH));
    CHECK(recorder_has(&r, "=last ")); /* what was under way has come */
    int before = recorder_count(&r, LBM_MSG_DATA);
    MUST(lbm_src_reset_transport_stats(src));
    MUST(lbm_rcv_reset_all_transport_stats(rcv));
    for (int i = 0; i < MESSAGES; i++) {
        MUST(lbm_src_send(src, payload, sizeof payload, 0));
    }
    MUST(lbm_src_flush(src));
    CHECK(recorder_wait(&r, LBM_MSG_DATA, before + MESSAGES));
    MUST(lbm_src_retrieve_transport_stats(src, &sent));
    MUST(lbm_rcv_retrieve_all_transport_stats_ex(rcv, &one, sizeof received, &received));
    CHECK(sent.transport.lbtrm.msgs_sent >=
          MESSAGES * sizeof payload / 8192); /* at least one datagram for each batch */
    CHECK(sent.transport.lbtrm.bytes_sent >= MESSAGES * sizeof payload);
    CHECK_EQ(received.transport.lbtrm.lbm_msgs_rcved, MESSAGES);
    MUST(lbm_src_reset_transport_stats(src));
    MUST(lbm_rcv_reset_all_transport_stats(rcv));
    MUST(lbm_src_retrieve_transport_stats(src, &sent));
    MUST(lbm_rcv_retrieve_all_transport_stats_ex(rcv, &one, sizeof received, &received));
    CHECK_EQ(sent.transport.lbtrm.msgs_sent, 0);
    CHECK_EQ(received.transport.lbtrm.lbm_msgs_rcved, 0);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(other));
    MUST(lbm_context_delete(ctx));
}

/* What a child inherits is of no use to it; it may monitor objects of its own. */
static int in_child(lbmmon_sctl_t *control, lbmmon_rctl_t *receiving)
{
    if (lbmmon_sctl_sample(control) != -1 || lbmmon_errnum() != LBMMON_EINVAL || lbmmon_sctl_destroy(control) != -1 ||
        lbmmon_rctl_destroy(receiving) != -1) {
        return 1;
    }
#ifdef __SANITIZE_THREAD__
    return 0; /* the sanitizer does not let such a child start threads */
#else
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "monitor_interval", "1"));
    MUST(lbm_context_attr_str_setopt(attr, "monitor_transport_opts", MON_NET));
    lbm_context_t *own = net_context_with(attr);
    return lbm_context_delete(own) == 0 ? 0 : 2;
#endif
}

TEST(a_child_of_fork_may_not_use_what_it_inherits)
{
    TEST_NEEDS_NET();
    struct mon_seen seen = MON_SEEN_INIT;
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "monitor_interval", "1")); /* the parent monitors automatically, too */
    MUST(lbm_context_attr_str_setopt(attr, "monitor_transport_opts", MON_NET));
    lbm_context_t *ctx = net_context_with(attr);
    mon_listen(&seen, lbmmon_format_csv_module(), NULL, lbmmon_transport_udp_module(), UDP_TO);
    lbmmon_sctl_t *control = udp_sender();
    MON_MUST(lbmmon_context_monitor(control, ctx, NULL, 0));
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        _exit(in_child(control, seen.control));
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
    MON_MUST(lbmmon_sctl_sample(control)); /* the parent does not notice */
    CHECK(mon_wait(&seen, &seen.contexts, 1));
    MON_MUST(lbmmon_sctl_destroy(control));
    MON_MUST(lbmmon_rctl_destroy(seen.control));
    MUST(lbm_context_delete(ctx));
}

/* ---- modules of the application ---- */

static char own_packet[4096];
static size_t own_len;
static pthread_mutex_t own_lock = PTHREAD_MUTEX_INITIALIZER;

static int own_send(const char *data, size_t len, void *clientd)
{
    pthread_mutex_lock(&own_lock);
    own_len = len < sizeof own_packet ? len : sizeof own_packet;
    memcpy(own_packet, data, own_len);
    pthread_mutex_unlock(&own_lock);
    return 0;
}

static int own_receive(char *data, size_t *len, unsigned timeout_ms, void *clientd)
{
    pthread_mutex_lock(&own_lock);
    bool some = own_len > 0;
    if (some) {
        memcpy(data, own_packet, own_len);
        *len = own_len;
        own_len = 0;
    }
    pthread_mutex_unlock(&own_lock);
    if (!some) {
        sleep_ms(1);
    }
    return some ? 0 : 1;
}

static int own_serialize(char *out, size_t *size, unsigned short *id, const lbmmon_packet_attributes_t *attributes,
                         const lbm_context_stats_t *stats, void *clientd)
{
    memcpy(out, stats, sizeof *stats);
    *size = sizeof *stats;
    *id = 0x7701;
    return 0;
}

static int own_deserialize(lbmmon_packet_attributes_t *attributes, lbm_context_stats_t *stats, const char *source,
                           size_t len, unsigned short id, void *clientd)
{
    if (id != 0x7701 || len != sizeof *stats) {
        return -1;
    }
    memcpy(stats, source, len);
    return 0;
}

TEST(modules_of_the_application_format_and_carry_records)
{
    TEST_NEEDS_NET();
    static const lbmmon_format_func_t format = {.mCtxSerialize = own_serialize, .mCtxDeserialize = own_deserialize};
    static const lbmmon_transport_func_t transport = {.mSend = own_send, .mReceive = own_receive};
    struct mon_seen seen = MON_SEEN_INIT;
    lbmmon_sctl_t *control;
    lbm_context_t *ctx = net_context();
    mon_listen(&seen, &format, NULL, &transport, NULL);
    MON_MUST(lbmmon_sctl_create(&control, &format, NULL, &transport, NULL));
    MON_MUST(lbmmon_context_monitor(control, ctx, "own", 0));
    MON_MUST(lbmmon_sctl_sample(control));
    CHECK(mon_wait(&seen, &seen.contexts, 1));
    CHECK_STR(seen.attributes.mApplicationSourceID, "own");
    MON_MUST(lbmmon_sctl_destroy(control));
    MON_MUST(lbmmon_rctl_destroy(seen.control));
    MUST(lbm_context_delete(ctx));
}

/* ---- callbacks of a context ---- */

static lbmmon_sctl_t *in_callback;
static atomic_int callback_errors[3];
static atomic_int callback_done;

static int on_timer(lbm_context_t *ctx, const void *clientd)
{
    callback_errors[0] = lbmmon_sctl_sample(in_callback);
    callback_errors[1] = lbmmon_context_unmonitor(in_callback, ctx) == -1 ? lbmmon_errnum() : 0;
    callback_errors[2] = lbmmon_sctl_destroy(in_callback) == -1 ? lbmmon_errnum() : 0;
    callback_done = 1;
    return 0;
}

TEST(a_sample_may_be_asked_for_in_a_callback_but_not_waited_for)
{
    TEST_NEEDS_NET();
    struct mon_seen seen = MON_SEEN_INIT;
    lbm_context_t *ctx = net_context();
    mon_listen(&seen, lbmmon_format_csv_module(), NULL, lbmmon_transport_udp_module(), UDP_TO);
    in_callback = udp_sender();
    MON_MUST(lbmmon_context_monitor(in_callback, ctx, "timer", 0));
    REQUIRE(lbm_schedule_timer(ctx, on_timer, NULL, NULL, 1) != -1);
    CHECK(mon_wait(&seen, &seen.contexts, 1));
    for (int i = 0; i < HANG_SECONDS * 1000 && !callback_done; i++) {
        sleep_ms(1);
    }
    CHECK_EQ(callback_errors[0], 0);
    CHECK_EQ(callback_errors[1], LBMMON_EOP);
    CHECK_EQ(callback_errors[2], LBMMON_EOP);
    MON_MUST(lbmmon_sctl_destroy(in_callback));
    MON_MUST(lbmmon_rctl_destroy(seen.control));
    MUST(lbm_context_delete(ctx));
}
