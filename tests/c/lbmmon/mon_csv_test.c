/* Records in CSV: what is written is read again, older versions are read, and text that makes no sense is refused. */
#include <lbm/lbmmon.h>

#include "lbmmon/um_mon_fields.h"
#include "um_test.h"

enum { VERSION_5 = 0x0105, VERSION_3 = 0x0103 };

static char text[65536];

/* Every counter has another value; the last is the largest there is. */
static void fill(const struct um_mon_record *record, void *counters)
{
    for (size_t i = 0; i < record->count; i++) {
        um_mon_field_set(&record->fields[i], counters, i + 1 == record->count ? UINT64_MAX : i * 0x1234567u + 1);
    }
}

static size_t fields_of(const char *csv, size_t len)
{
    size_t count = 1;
    for (size_t i = 0; i < len; i++) {
        count += csv[i] == ',';
    }
    return count;
}

static const int types[] = {LBM_TRANSPORT_STAT_TCP,    LBM_TRANSPORT_STAT_LBTRM,  LBM_TRANSPORT_STAT_LBTRU,
                            LBM_TRANSPORT_STAT_LBTIPC, LBM_TRANSPORT_STAT_LBTSMX, LBM_TRANSPORT_STAT_LBTRDMA,
                            LBM_TRANSPORT_STAT_BROKER, LBM_TRANSPORT_STAT_DAEMON};

TEST(check_3_receiver_records_of_every_transport_come_back)
{
    static const size_t counts[] = {4, 27, 27, 5, 5, 5, 2, 1};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        lbm_rcv_transport_stats_t sent = {.type = types[i], .source = "LBTRM:10.1.1.5:14400:a1b2c3d4:224.1.1.1:14400"};
        lbm_rcv_transport_stats_t got;
        unsigned short id;
        size_t size = sizeof text;
        fill(um_mon_rcv_record(types[i]), &sent.transport);
        CHECK_EQ(lbmmon_rcv_format_csv_serialize(text, &size, &id, NULL, &sent, NULL), 0);
        CHECK_EQ(id, VERSION_5);
        CHECK_EQ(fields_of(text, size), counts[i] + 2);
        CHECK_EQ(lbmmon_rcv_format_csv_deserialize(NULL, &got, text, size, id, NULL), 0);
        CHECK(memcmp(&sent, &got, sizeof got) == 0);
    }
}

TEST(check_3_source_records_of_every_transport_come_back)
{
    static const size_t counts[] = {2, 13, 10, 3, 3, 3, 2, 1};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        lbm_src_transport_stats_t sent = {.type = types[i], .source = "TCP:10.1.1.5:14371:00000001"}, got;
        unsigned short id;
        size_t size = sizeof text;
        fill(um_mon_src_record(types[i]), &sent.transport);
        CHECK_EQ(lbmmon_src_format_csv_serialize(text, &size, &id, NULL, &sent, NULL), 0);
        CHECK_EQ(fields_of(text, size), counts[i] + 2);
        CHECK_EQ(lbmmon_src_format_csv_deserialize(NULL, &got, text, size, id, NULL), 0);
        CHECK(memcmp(&sent, &got, sizeof got) == 0);
    }
}

TEST(check_3_contexts_and_event_queues_come_back)
{
    lbm_context_stats_t context, context_got;
    lbm_event_queue_stats_t queue, queue_got;
    unsigned short id;
    size_t size = sizeof text;
    CHECK_EQ(sizeof context, um_mon_context_record.count * sizeof(lbm_ulong_t)); /* every field is in the table */
    CHECK_EQ(sizeof queue, um_mon_evq_record.count * sizeof(lbm_ulong_t));
    fill(&um_mon_context_record, &context);
    CHECK_EQ(lbmmon_ctx_format_csv_serialize(text, &size, &id, NULL, &context, NULL), 0);
    CHECK_EQ(fields_of(text, size), 24);
    CHECK_EQ(lbmmon_ctx_format_csv_deserialize(NULL, &context_got, text, size, id, NULL), 0);
    CHECK(memcmp(&context, &context_got, sizeof context) == 0);
    size = sizeof text;
    fill(&um_mon_evq_record, &queue);
    CHECK_EQ(lbmmon_evq_format_csv_serialize(text, &size, &id, NULL, &queue, NULL), 0);
    CHECK_EQ(fields_of(text, size), 57);
    CHECK_EQ(lbmmon_evq_format_csv_deserialize(NULL, &queue_got, text, size, id, NULL), 0);
    CHECK(memcmp(&queue, &queue_got, sizeof queue) == 0);
}

/* Every member of the unions is a row of counters and nothing else: the tables miss none. */
TEST(check_3_tables_have_every_counter_of_the_structures)
{
    const lbm_rcv_transport_stats_t rcv = {0};
    const lbm_src_transport_stats_t src = {0};
    const size_t rcv_sizes[] = {sizeof rcv.transport.tcp,    sizeof rcv.transport.lbtrm,  sizeof rcv.transport.lbtru,
                                sizeof rcv.transport.lbtipc, sizeof rcv.transport.lbtsmx, sizeof rcv.transport.lbtrdma,
                                sizeof rcv.transport.broker, sizeof rcv.transport.daemon};
    const size_t src_sizes[] = {sizeof src.transport.tcp,    sizeof src.transport.lbtrm,  sizeof src.transport.lbtru,
                                sizeof src.transport.lbtipc, sizeof src.transport.lbtsmx, sizeof src.transport.lbtrdma,
                                sizeof src.transport.broker, sizeof src.transport.daemon};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        CHECK_EQ(um_mon_rcv_record(types[i])->count * sizeof(lbm_ulong_t), rcv_sizes[i]);
        CHECK_EQ(um_mon_src_record(types[i])->count * sizeof(lbm_ulong_t), src_sizes[i]);
    }
}

TEST(check_3_topics_and_patterns_come_back)
{
    lbm_rcv_topic_stats_t sent[3] = {{.flags = LBM_RCV_TOPIC_STATS_FLAG_SRC_CREATED, .topic_idx = 7}}, got[3];
    unsigned short id;
    size_t size = sizeof text, count = 3;
    for (int i = 0; i < 3; i++) {
        sent[i] = sent[0];
        snprintf(sent[i].topic, sizeof sent[i].topic, "a \"quoted\", name");
        snprintf(sent[i].source, sizeof sent[i].source, "TCP:10.1.1.%d:14371:00000001", i);
        memset(sent[i].otid, 0xa0 + i, sizeof sent[i].otid);
    }
    CHECK_EQ(lbmmon_rcv_topic_format_csv_serialize(text, &size, &id, NULL, "plain", 3, sent, NULL), 0);
    CHECK_EQ(lbmmon_rcv_topic_format_csv_deserialize(NULL, &count, got, text, size, id, NULL), 0);
    CHECK_EQ(count, 3);
    for (int i = 0; i < 3; i++) {
        snprintf(sent[i].topic, sizeof sent[i].topic, "plain");
        memset(sent[i].topic + 5, 0, sizeof sent[i].topic - 5);
        CHECK(memcmp(&sent[i], &got[i], sizeof got[i]) == 0);
    }
    count = 2;
    CHECK_EQ(lbmmon_rcv_topic_format_csv_deserialize(NULL, &count, got, text, size, id, NULL),
             LBMMON_FORMAT_DESERIALIZE_TOO_SMALL);
    CHECK_EQ(count, 3);

    lbm_wildcard_rcv_stats_t pattern = {.pattern = "^a,b.*\"$", .type = LBM_WILDCARD_RCV_PATTERN_TYPE_REGEX}, again;
    size = sizeof text;
    CHECK_EQ(lbmmon_wildcard_rcv_format_csv_serialize(text, &size, &id, NULL, &pattern, NULL), 0);
    CHECK_EQ(lbmmon_wildcard_rcv_format_csv_deserialize(NULL, &again, text, size, id, NULL), 0);
    CHECK(memcmp(&pattern, &again, sizeof again) == 0);
}

TEST(topic_without_sources_has_one_element_that_says_so)
{
    lbm_rcv_topic_stats_t got;
    unsigned short id;
    size_t size = sizeof text, count = 1;
    CHECK_EQ(lbmmon_rcv_topic_format_csv_serialize(text, &size, &id, NULL, "quiet", 0, NULL, NULL), 0);
    CHECK_EQ(lbmmon_rcv_topic_format_csv_deserialize(NULL, &count, &got, text, size, id, NULL), 0);
    CHECK_EQ(count, 1);
    CHECK_EQ(got.flags, LBM_RCV_TOPIC_STATS_FLAG_NO_SOURCE);
    CHECK_STR(got.topic, "quiet");
}

TEST(records_look_as_documented)
{
    lbm_rcv_transport_stats_t stats = {.type = LBM_TRANSPORT_STAT_TCP, .source = "TCP:10.1.1.5:14371:00000001"};
    unsigned short id;
    size_t size = sizeof text;
    stats.transport.tcp.bytes_rcved = 1000;
    stats.transport.tcp.lbm_msgs_rcved = 255;
    CHECK_EQ(lbmmon_rcv_format_csv_serialize(text, &size, &id, NULL, &stats, NULL), 0);
    text[size] = '\0';
    CHECK_STR(text, "0,\"TCP:10.1.1.5:14371:00000001\",3e8,ff,0,0");
}

/* LBT-RM receiver with 26 of 27 counters. */
static size_t short_lbtrm(char *out, size_t room)
{
    size_t len = (size_t)snprintf(out, room, "16,\"LBTRM:10.1.1.5:14400:a1b2c3d4:224.1.1.1:14400\"");
    for (unsigned i = 1; i <= 26; i++) {
        len += (size_t)snprintf(out + len, room - len, ",%x", i);
    }
    return len;
}

TEST(check_4_version_3_may_lack_the_last_counter_of_lbtrm)
{
    lbm_rcv_transport_stats_t got;
    size_t len = short_lbtrm(text, sizeof text);
    CHECK_EQ(lbmmon_rcv_format_csv_deserialize(NULL, &got, text, len, VERSION_3, NULL), 0);
    CHECK_EQ(got.transport.lbtrm.dgrams_dropped_other, 26);
    CHECK_EQ(got.transport.lbtrm.out_of_order, 0);
    CHECK_EQ(lbmmon_rcv_format_csv_deserialize(NULL, &got, text, len, VERSION_5, NULL), -1);
    CHECK_CONTAINS(lbmmon_format_csv_errmsg(), "missing");
    CHECK_EQ(lbmmon_rcv_format_csv_deserialize(NULL, &got, text, len, 0x0106, NULL), -1);
    CHECK_EQ(lbmmon_rcv_format_csv_deserialize(NULL, &got, text, len, 0x0205, NULL), -1);
    CHECK_CONTAINS(lbmmon_format_csv_errmsg(), "must be CSV");
}

TEST(separator_is_an_option)
{
    lbm_context_stats_t sent, got;
    unsigned short id;
    size_t size = sizeof text;
    void *data;
    fill(&um_mon_context_record, &sent);
    CHECK_EQ(lbmmon_format_csv_init(&data, "unknown=7; separator=:"), 0);
    CHECK_EQ(lbmmon_ctx_format_csv_serialize(text, &size, &id, NULL, &sent, data), 0);
    CHECK(memchr(text, ',', size) == NULL && memchr(text, ':', size) != NULL);
    CHECK_EQ(lbmmon_ctx_format_csv_deserialize(NULL, &got, text, size, id, NULL), -1);
    CHECK_EQ(lbmmon_ctx_format_csv_deserialize(NULL, &got, text, size, id, data), 0);
    CHECK(memcmp(&sent, &got, sizeof got) == 0);
    CHECK_EQ(lbmmon_format_csv_finish(data), 0);
    CHECK_EQ(lbmmon_format_csv_init(&data, "separator=a"), -1);
    CHECK_CONTAINS(lbmmon_format_csv_errmsg(), "separator \"a\"");
    CHECK_EQ(lbmmon_format_csv_init(&data, "passthrough=maybe"), -1);
    CHECK_CONTAINS(lbmmon_format_csv_errmsg(), "must be off, on or convert");
}

TEST(passthrough_says_what_is_to_be_done_with_the_packet)
{
    lbm_context_stats_t stats = {0};
    unsigned short id;
    size_t size = sizeof text;
    void *on, *convert;
    CHECK_EQ(lbmmon_format_csv_init(&on, "passthrough=on"), 0);
    CHECK_EQ(lbmmon_format_csv_init(&convert, "passthrough=convert"), 0);
    CHECK_EQ(lbmmon_ctx_format_csv_serialize(text, &size, &id, NULL, &stats, NULL), 0);
    CHECK_EQ(lbmmon_ctx_format_csv_deserialize(NULL, &stats, text, size, id, on),
             LBMMON_FORMAT_DESERIALIZE_PASSTHROUGH);
    CHECK_EQ(lbmmon_ctx_format_csv_deserialize(NULL, &stats, text, size, id, convert),
             LBMMON_FORMAT_DESERIALIZE_CONVERT_PASSTHROUGH);
    lbmmon_format_csv_finish(on);
    lbmmon_format_csv_finish(convert);
}

TEST(room_that_is_too_small_is_told_with_what_is_needed)
{
    lbm_context_stats_t stats = {0};
    unsigned short id;
    size_t size = 10;
    CHECK_EQ(lbmmon_ctx_format_csv_serialize(text, &size, &id, NULL, &stats, NULL), -1);
    CHECK_CONTAINS(lbmmon_format_csv_errmsg(), "must be at least 47");
}

TEST(text_that_makes_no_sense_is_refused)
{
    static const char *const bad[] = {"",
                                      ",",
                                      "\"",
                                      "0",
                                      "0,",
                                      "0,\"",
                                      "0,\"x",
                                      "0,\"x\"",
                                      "0,\"x\",g,0,0,0",
                                      "0,\"x\",1,,0,0",
                                      "99,\"x\",1,1,1,1",
                                      "12345678901,\"x\",1,1,1,1",
                                      "-1,\"x\",1,1,1,1",
                                      "0,x,1,1,1,1",
                                      "0,\"x\"y,1,1,1,1"};
    lbm_rcv_transport_stats_t got;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_EQ(lbmmon_rcv_format_csv_deserialize(NULL, &got, bad[i], strlen(bad[i]), VERSION_5, NULL), -1);
    }
    memset(text, 'x', sizeof text);
    memcpy(text, "0,\"", 3);
    CHECK_EQ(lbmmon_rcv_format_csv_deserialize(NULL, &got, text, sizeof text, VERSION_5, NULL), -1);
}

/* A number longer than the counters: its last digits count. */
/* In memory of its own size, so that the address sanitizer sees a look behind its end. */
TEST(text_that_ends_with_a_separator_is_read_to_its_end_only)
{
    static const char *const cut[] = {"16,", "16,\"", "16,\"x\",", "10,"};
    for (size_t i = 0; i < sizeof cut / sizeof cut[0]; i++) {
        size_t len = strlen(cut[i]);
        char *exact = malloc(len);
        lbm_rcv_transport_stats_t got;
        lbm_wildcard_rcv_stats_t pattern;
        memcpy(exact, cut[i], len);
        CHECK_EQ(lbmmon_rcv_format_csv_deserialize(NULL, &got, exact, len, VERSION_5, NULL), -1);
        CHECK_EQ(lbmmon_wildcard_rcv_format_csv_deserialize(NULL, &pattern, exact + 3, len - 3, VERSION_5, NULL), -1);
        free(exact);
    }
}

TEST(numbers_that_are_too_long_lose_their_first_digits)
{
    lbm_src_transport_stats_t got;
    const char csv[] = "0,\"x\",ff0000000000000001,2";
    CHECK_EQ(lbmmon_src_format_csv_deserialize(NULL, &got, csv, sizeof csv - 1, VERSION_5, NULL), 0);
    CHECK_EQ(got.transport.tcp.num_clients, 1);
    CHECK_EQ(got.transport.tcp.bytes_buffered, 2);
}

TEST(a_forged_number_of_sources_asks_for_no_memory)
{
    size_t count = 0;
    const char csv[] = "\"topic\",ffffffff";
    CHECK_EQ(lbmmon_rcv_topic_format_csv_deserialize(NULL, &count, NULL, csv, sizeof csv - 1, VERSION_5, NULL), -1);
    CHECK_EQ(count, 0);
}

TEST(stores_and_routers_have_no_csv)
{
    CHECK_EQ(lbmmon_store_format_csv_serialize(NULL, NULL, NULL, NULL, NULL, 0, NULL), -1);
    CHECK_EQ(lbmmon_gateway_format_csv_deserialize(NULL, NULL, NULL, 0, 0, NULL), -1);
    CHECK_CONTAINS(lbmmon_format_csv_errmsg(), "format pb only");
}
