/* Lines of the log go with the records of a process: those of level NOTICE and above that the library has written, each
 * once, in a packet that readers of structures pass over. */
#include <lbm/gen/um_log_mon.pb-c.h>
#include <lbm/lbmmon.h>
#include <lbm/um.h>

#include "um_test.h"
#include "um_test_net.h"
#include "um_test_mon.h"

#include "base/um_log.h"
#include "base/um_log_kept.h"
#include "lbmmon/um_mon_packet.h"

static int silent(int level, const char *message, void *clientd)
{
    return 0;
}

/* Packets of one sampling, kept by a transport in memory. */
enum { PACKETS = 8 };
static struct {
    char bytes[UM_MON_PACKET_MAX];
    size_t len;
} sent[PACKETS];
static int sent_count;

static int keep_packet(const char *data, size_t len, void *clientd)
{
    if (sent_count < PACKETS) {
        memcpy(sent[sent_count].bytes, data, len);
        sent[sent_count++].len = len;
    }
    return 0;
}

static const lbmmon_transport_func_t in_memory = {.mSend = keep_packet};

/* A controller of a context, its thread, and what it sends when it is asked. */
struct monitored {
    lbm_context_t *ctx;
    lbmmon_sctl_t *control;
};

static struct monitored monitored(const lbmmon_format_func_t *format, const char *format_opts)
{
    struct monitored made = {.ctx = net_context_with(net_context_attr())};
    MON_MUST(lbmmon_sctl_create(&made.control, format, format_opts, &in_memory, NULL));
    MON_MUST(lbmmon_context_monitor(made.control, made.ctx, "logs", 0));
    return made;
}

/* The packet with lines among those of a sample; false: there is none. */
static bool sampled(const struct monitored *from, struct um_mon_packet *out)
{
    sent_count = 0;
    MON_MUST(lbmmon_sctl_sample(from->control));
    for (int i = 0; i < sent_count; i++) {
        REQUIRE(um_mon_packet_read(sent[i].bytes, sent[i].len, out) == 0);
        if (out->type == UM_MON_PACKET_LOG) {
            return true;
        }
    }
    return false;
}

static void end(const struct monitored *one)
{
    MON_MUST(lbmmon_sctl_destroy(one->control));
    MUST(lbm_context_delete(one->ctx));
}

static bool has_text(const Openum__LogMonMsg *message, size_t at, const char *text)
{
    return at < message->n_lines && message->lines[at]->text.len == strlen(text) &&
           memcmp(message->lines[at]->text.data, text, strlen(text)) == 0;
}

static void check_lines_are_told_once(const lbmmon_format_func_t *format)
{
    struct um_mon_packet packet;
    struct monitored one = monitored(format, NULL);
    sampled(&one, &packet); /* what was logged before */
    um_log(UM_LOG_WARNING, "OpenUM-1-1", "a %s", "warning");
    um_log(UM_LOG_INFO, "OpenUM-1-2", "not told");
    lbm_logf(LBM_LOG_WARNING, "the application's own");
    um_log(UM_LOG_NOTICE, "OpenUM-1-3", "a notice");
    REQUIRE(sampled(&one, &packet));
    Openum__LogMonMsg *message = openum__log_mon_msg__unpack(NULL, packet.data_len, packet.data);
    REQUIRE(message != NULL);
    CHECK_EQ(message->n_lines, 2);
    CHECK(has_text(message, 0, "OpenUM-1-1: a warning"));
    CHECK(has_text(message, 1, "OpenUM-1-3: a notice"));
    CHECK_EQ(message->lines[0]->level, UM_LOG_WARNING);
    CHECK_EQ(message->lines[1]->number, message->lines[0]->number + 1);
    CHECK_STR(message->attributes->application_id, "logs");
    CHECK_EQ(message->attributes->process_id, getpid());
    openum__log_mon_msg__free_unpacked(message, NULL);
    CHECK(!sampled(&one, &packet));
    end(&one);
}

TEST(lines_of_the_log_are_told_once_with_records_of_either_format)
{
    CHECK_EQ(lbm_log(silent, NULL), 0);
    check_lines_are_told_once(lbmmon_format_csv_module());
    check_lines_are_told_once(lbmmon_format_pb_module());
    CHECK_EQ(lbm_log(NULL, NULL), 0);
}

TEST(lines_of_the_log_are_not_told_with_log_off)
{
    struct um_mon_packet packet;
    CHECK_EQ(lbm_log(silent, NULL), 0);
    struct monitored one = monitored(lbmmon_format_csv_module(), "separator=,;log=off");
    um_log(UM_LOG_WARNING, "OpenUM-1-1", "a warning");
    CHECK(!sampled(&one, &packet));
    CHECK(sent_count > 0);
    end(&one);
    CHECK_EQ(lbm_log(NULL, NULL), 0);
}

TEST(of_many_lines_the_last_are_kept_and_long_ones_are_cut)
{
    struct um_log_line line;
    char expected[32];
    uint64_t at = 0;
    int count = 0;
    CHECK_EQ(lbm_log(silent, NULL), 0);
    for (int i = 0; i < 1000; i++) {
        um_log(UM_LOG_WARNING, "OpenUM-1-1", "%d %2000d", i, i);
    }
    while (um_log_kept_next(at, &line)) {
        count++;
        CHECK(at == 0 || line.number == at + 1);
        at = line.number;
        snprintf(expected, sizeof expected, "OpenUM-1-1: %d ", 1000 - UM_LOG_KEPT_LINES + count - 1);
        CHECK(strncmp(line.text, expected, strlen(expected)) == 0);
        CHECK_EQ(strlen(line.text), UM_LOG_KEPT_TEXT - 1);
    }
    CHECK_EQ(count, UM_LOG_KEPT_LINES);
    CHECK_EQ(lbm_log(NULL, NULL), 0);
}

TEST(readers_of_structures_pass_over_lines_and_others_get_the_packet)
{
    struct mon_seen plain = MON_SEEN_INIT, raw = MON_SEEN_INIT;
    lbmmon_sctl_t *control[2];
    lbm_context_t *ctx = net_context_with(net_context_attr());
    const char *options[] = {"address=127.0.0.1;port=29331", "address=127.0.0.1;port=29332"};
    CHECK_EQ(lbm_log(silent, NULL), 0);
    mon_listen(&plain, lbmmon_format_csv_module(), NULL, lbmmon_transport_udp_module(), options[0]);
    mon_listen(&raw, lbmmon_format_csv_module(), "passthrough=on", lbmmon_transport_udp_module(), options[1]);
    um_log(UM_LOG_WARNING, "OpenUM-1-1", "a warning");
    for (int i = 0; i < 2; i++) {
        MON_MUST(lbmmon_sctl_create(&control[i], lbmmon_format_csv_module(), NULL, lbmmon_transport_udp_module(),
                                    options[i]));
        MON_MUST(lbmmon_context_monitor(control[i], ctx, "logs", 0));
        MON_MUST(lbmmon_sctl_sample(control[i]));
        MON_MUST(lbmmon_sctl_sample(control[i]));
    }
    CHECK(mon_wait(&plain, &plain.contexts, 2));
    CHECK(mon_wait(&raw, &raw.passed, 3));
    um_mon_rcv_stats_t stats;
    MUST(um_mon_rcv_stats(plain.control, &stats));
    CHECK_EQ(stats.packets, 3); /* a record, the lines, a record */
    CHECK_EQ(stats.unknown + stats.undecodable + stats.malformed, 0);
    for (int i = 0; i < 2; i++) {
        MON_MUST(lbmmon_sctl_destroy(control[i]));
    }
    MON_MUST(lbmmon_rctl_destroy(plain.control));
    MON_MUST(lbmmon_rctl_destroy(raw.control));
    MUST(lbm_context_delete(ctx));
    CHECK_EQ(lbm_log(NULL, NULL), 0);
}
