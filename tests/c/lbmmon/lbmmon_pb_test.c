/* The format module `pb`: what is written is read again, whole; options, rooms that are too small, bytes of strangers.
 */
#include <lbm/lbmmon.h>

#include "base/um_mem.h"
#include "lbmmon/um_mon_fields.h"
#include "lbmmon/um_mon_packet.h"
#include "lbmmon/um_mon_pb.h"
#include "um_test.h"

enum { ROOM = 8192 };

static char packed[ROOM];
static size_t size;
static unsigned short id;

static lbmmon_packet_attributes_t full_attributes(void)
{
    lbmmon_packet_attributes_t a;
    um_mon_attributes_init(&a);
    a.mFlags = UM_MON_HAS(LBMMON_ATTR_SENDER_IPV4) | UM_MON_HAS(LBMMON_ATTR_TIMESTAMP) |
               UM_MON_HAS(LBMMON_ATTR_APPSOURCEID) | UM_MON_HAS(LBMMON_ATTR_OBJECTID) |
               UM_MON_HAS(LBMMON_ATTR_PROCESSID) | UM_MON_HAS(LBMMON_ATTR_SOURCE) | UM_MON_HAS(LBMMON_ATTR_CTXINST) |
               UM_MON_HAS(LBMMON_ATTR_DOMAINID);
    a.mAddress = htonl(0x0a010203);
    a.mTimestamp = 1700000000;
    strcpy(a.mApplicationSourceID, "Desk 7");
    a.mObjectID = UINT64_C(0x123456789abcdef0);
    a.mProcessID = 4711;
    a.mSourceFlag = LBMMON_ATTR_SOURCE_IM;
    memcpy(a.mContextInstance, "\1\2\3\4\5\6\7\10", 8);
    a.mDomainID = 9;
    return a;
}

static bool same_attributes(const lbmmon_packet_attributes_t *a, const lbmmon_packet_attributes_t *b)
{
    return a->mAddress == b->mAddress && a->mTimestamp == b->mTimestamp && a->mObjectID == b->mObjectID &&
           a->mProcessID == b->mProcessID && a->mDomainID == b->mDomainID &&
           strcmp(a->mApplicationSourceID, b->mApplicationSourceID) == 0 &&
           memcmp(a->mContextInstance, b->mContextInstance, sizeof a->mContextInstance) == 0;
}

/* A different number in every counter, some of them large. */
static void fill(const struct um_mon_record *record, void *counters)
{
    for (size_t i = 0; i < record->count; i++) {
        um_mon_field_set(&record->fields[i], counters, i == 1 ? ULONG_MAX : (lbm_ulong_t)(i + 1) * 1000003);
    }
}

static bool same(const struct um_mon_record *record, const void *a, const void *b)
{
    for (size_t i = 0; i < record->count; i++) {
        if (um_mon_field_get(&record->fields[i], a) != um_mon_field_get(&record->fields[i], b) &&
            strcmp(record->fields[i].name, "reserved1") != 0) {
            fprintf(stderr, "%s differs\n", record->fields[i].name);
            return false;
        }
    }
    return true;
}

static const int transports[] = {LBM_TRANSPORT_STAT_TCP, LBM_TRANSPORT_STAT_LBTRM, LBM_TRANSPORT_STAT_LBTRU,
                                 LBM_TRANSPORT_STAT_LBTIPC, LBM_TRANSPORT_STAT_LBTSMX};
enum { TRANSPORTS = sizeof transports / sizeof transports[0] };

TEST(receiver_records_of_every_transport_are_read_as_they_were_written)
{
    lbmmon_packet_attributes_t attributes = full_attributes();
    for (size_t i = 0; i < TRANSPORTS; i++) {
        lbm_rcv_transport_stats_t in = {.type = transports[i],
                                        .source = "LBTRM:10.1.1.5:14400:a1b2c3d4:224.1.1.1:14400"};
        lbm_rcv_transport_stats_t out;
        const struct um_mon_record *record = um_mon_rcv_record(transports[i]);
        lbmmon_packet_attributes_t read = {0};
        fill(record, &in.transport);
        size = ROOM;
        CHECK_EQ(lbmmon_rcv_format_pb_serialize(packed, &size, &id, &attributes, &in, NULL), 0);
        CHECK_EQ(id, 0x0201);
        CHECK_EQ(lbmmon_rcv_format_pb_deserialize(&read, &out, packed, size, id, NULL), 0);
        CHECK_EQ(out.type, transports[i]);
        CHECK_STR(out.source, in.source);
        CHECK(same(record, &in.transport, &out.transport));
        CHECK(same_attributes(&attributes, &read));
        CHECK_EQ(read.mSourceFlag, LBMMON_ATTR_SOURCE_IM);
        CHECK_EQ(read.mModuleID, 0x0201);
    }
}

TEST(source_records_of_every_transport_are_read_as_they_were_written)
{
    for (size_t i = 0; i < TRANSPORTS; i++) {
        lbm_src_transport_stats_t in = {.type = transports[i], .source = "TCP:10.1.1.5:14371"};
        lbm_src_transport_stats_t out;
        const struct um_mon_record *record = um_mon_src_record(transports[i]);
        lbmmon_packet_attributes_t read = {0};
        fill(record, &in.transport);
        size = ROOM;
        CHECK_EQ(lbmmon_src_format_pb_serialize(packed, &size, &id, NULL, &in, NULL), 0);
        CHECK_EQ(lbmmon_src_format_pb_deserialize(&read, &out, packed, size, id, NULL), 0);
        CHECK_EQ(out.type, transports[i]);
        CHECK_STR(out.source, in.source);
        CHECK(same(record, &in.transport, &out.transport));
        CHECK(!um_mon_has(&read, LBMMON_ATTR_OBJECTID));
    }
}

TEST(a_source_string_that_fills_its_array_ends_with_it)
{
    lbm_src_transport_stats_t in = {.type = LBM_TRANSPORT_STAT_TCP}, out;
    memset(in.source, 'x', sizeof in.source);
    size = ROOM;
    CHECK_EQ(lbmmon_src_format_pb_serialize(packed, &size, &id, NULL, &in, NULL), 0);
    CHECK_EQ(lbmmon_src_format_pb_deserialize(NULL, &out, packed, size, id, NULL), -1); /* no room for the NUL */
    in.source[sizeof in.source - 1] = '\0';
    size = ROOM;
    CHECK_EQ(lbmmon_src_format_pb_serialize(packed, &size, &id, NULL, &in, NULL), 0);
    CHECK_EQ(lbmmon_src_format_pb_deserialize(NULL, &out, packed, size, id, NULL), 0);
    CHECK_STR(out.source, in.source);
}

TEST(every_counter_of_the_structures_has_a_field_of_its_name)
{
    const ProtobufCMessageDescriptor *context = &lbmmon__umsmon_msg__stats__context__descriptor;
    const ProtobufCMessageDescriptor *queue = &lbmmon__umsmon_msg__stats__event_queue__descriptor;
    CHECK_EQ(context->n_fields, um_mon_context_record.count);
    CHECK_EQ(queue->n_fields, um_mon_evq_record.count);
    for (size_t i = 0; i < um_mon_context_record.count; i++) {
        CHECK(protobuf_c_message_descriptor_get_field_by_name(context, um_mon_context_record.fields[i].name) != NULL);
    }
    for (size_t i = 0; i < um_mon_evq_record.count; i++) {
        CHECK(protobuf_c_message_descriptor_get_field_by_name(queue, um_mon_evq_record.fields[i].name) != NULL);
    }
}

TEST(context_records_are_read_as_they_were_written)
{
    lbm_context_stats_t in, out;
    fill(&um_mon_context_record, &in);
    size = ROOM;
    CHECK_EQ(lbmmon_ctx_format_pb_serialize(packed, &size, &id, NULL, &in, NULL), 0);
    CHECK_EQ(lbmmon_ctx_format_pb_deserialize(NULL, &out, packed, size, id, NULL), 0);
    CHECK(same(&um_mon_context_record, &in, &out));
}

TEST(event_queue_records_are_read_as_they_were_written)
{
    lbm_event_queue_stats_t in, out;
    fill(&um_mon_evq_record, &in);
    size = ROOM;
    CHECK_EQ(lbmmon_evq_format_pb_serialize(packed, &size, &id, NULL, &in, NULL), 0);
    CHECK_EQ(lbmmon_evq_format_pb_deserialize(NULL, &out, packed, size, id, NULL), 0);
    CHECK(same(&um_mon_evq_record, &in, &out));
}

static lbm_rcv_topic_stats_t topic_source(unsigned n, lbm_uint32_t flags)
{
    lbm_rcv_topic_stats_t stats = {.topic = "prices", .flags = flags, .topic_idx = 100 + n, .timestamp_sec = 1 + n};
    snprintf(stats.source, sizeof stats.source, "TCP:10.0.0.%u:14371", n);
    memset(stats.otid, (int)(0xa0 + n), sizeof stats.otid);
    stats.timestamp_usec = 999999;
    return stats;
}

TEST(topic_records_are_read_as_they_were_written)
{
    lbm_rcv_topic_stats_t in[] = {topic_source(1, LBM_RCV_TOPIC_STATS_FLAG_SRC_CREATED),
                                  topic_source(2, LBM_RCV_TOPIC_STATS_FLAG_SRC_DELETED)};
    lbm_rcv_topic_stats_t out[2];
    size_t count = 2;
    size = ROOM;
    CHECK_EQ(lbmmon_rcv_topic_format_pb_serialize(packed, &size, &id, NULL, "prices", 2, in, NULL), 0);
    CHECK_EQ(lbmmon_rcv_topic_format_pb_deserialize(NULL, &count, out, packed, size, id, NULL), 0);
    CHECK_EQ(count, 2);
    for (size_t i = 0; i < 2; i++) {
        CHECK_STR(out[i].topic, "prices");
        CHECK_STR(out[i].source, in[i].source);
        CHECK_EQ(memcmp(out[i].otid, in[i].otid, sizeof in[i].otid), 0);
        CHECK_EQ(out[i].flags, in[i].flags);
        CHECK_EQ(out[i].topic_idx, in[i].topic_idx);
        CHECK_EQ(out[i].timestamp_sec, in[i].timestamp_sec);
        CHECK_EQ(out[i].timestamp_usec, in[i].timestamp_usec);
    }
    count = 1;
    CHECK_EQ(lbmmon_rcv_topic_format_pb_deserialize(NULL, &count, out, packed, size, id, NULL),
             LBMMON_FORMAT_DESERIALIZE_TOO_SMALL);
    CHECK_EQ(count, 2);
}

TEST(a_topic_without_sources_has_one_element_that_says_so)
{
    lbm_rcv_topic_stats_t out;
    size_t count = 1;
    size = ROOM;
    CHECK_EQ(lbmmon_rcv_topic_format_pb_serialize(packed, &size, &id, NULL, "prices", 0, NULL, NULL), 0);
    CHECK_EQ(lbmmon_rcv_topic_format_pb_deserialize(NULL, &count, &out, packed, size, id, NULL), 0);
    CHECK_EQ(count, 1);
    CHECK_STR(out.topic, "prices");
    CHECK_EQ(out.flags, LBM_RCV_TOPIC_STATS_FLAG_NO_SOURCE);
}

TEST(wildcard_records_are_read_as_they_were_written)
{
    lbm_wildcard_rcv_stats_t in = {.pattern = "^a.*", .type = LBM_WILDCARD_RCV_PATTERN_TYPE_PCRE}, out;
    size = ROOM;
    CHECK_EQ(lbmmon_wildcard_rcv_format_pb_serialize(packed, &size, &id, NULL, &in, NULL), 0);
    CHECK_EQ(lbmmon_wildcard_rcv_format_pb_deserialize(NULL, &out, packed, size, id, NULL), 0);
    CHECK_STR(out.pattern, "^a.*");
    CHECK_EQ(out.type, LBM_WILDCARD_RCV_PATTERN_TYPE_PCRE);
}

/* Readers of protobuf refuse a whole record because of one byte; names are any bytes. */
TEST(names_that_are_no_utf8_are_written_as_it)
{
    lbm_rcv_topic_stats_t out;
    lbm_wildcard_rcv_stats_t in = {.pattern = "caf\xe9.*"}, pattern;
    lbmmon_packet_attributes_t about, read;
    size_t count = 1;
    um_mon_attributes_init(&about);
    um_mon_attributes_init(&read);
    about.mFlags = UM_MON_HAS(LBMMON_ATTR_APPSOURCEID);
    strcpy(about.mApplicationSourceID, "b\xf6rse");
    size = ROOM;
    CHECK_EQ(lbmmon_rcv_topic_format_pb_serialize(packed, &size, &id, &about, "\xa3 \xc2\xa3", 0, NULL, NULL), 0);
    CHECK_EQ(lbmmon_rcv_topic_format_pb_deserialize(&read, &count, &out, packed, size, id, NULL), 0);
    CHECK_STR(out.topic, "\xef\xbf\xbd \xc2\xa3");
    CHECK_STR(read.mApplicationSourceID, "b\xef\xbf\xbdrse");
    size = ROOM;
    CHECK_EQ(lbmmon_wildcard_rcv_format_pb_serialize(packed, &size, &id, NULL, &in, NULL), 0);
    CHECK_EQ(lbmmon_wildcard_rcv_format_pb_deserialize(NULL, &pattern, packed, size, id, NULL), 0);
    CHECK_STR(pattern.pattern, "caf\xef\xbf\xbd.*");
}

/* Names as long as they may be stay whole; what a replacement makes too long loses its end. */
TEST(names_of_the_greatest_length_are_written)
{
    lbm_rcv_topic_stats_t out;
    char name[sizeof out.topic];
    for (int last = 'x'; last <= 0xff; last += 0xff - 'x') {
        size_t count = 1;
        memset(name, 'x', sizeof name - 1);
        name[sizeof name - 2] = (char)last;
        name[sizeof name - 1] = '\0';
        size = ROOM;
        CHECK_EQ(lbmmon_rcv_topic_format_pb_serialize(packed, &size, &id, NULL, name, 0, NULL, NULL), 0);
        CHECK_EQ(lbmmon_rcv_topic_format_pb_deserialize(NULL, &count, &out, packed, size, id, NULL), 0);
        CHECK_EQ(strlen(out.topic), sizeof name - (last == 'x' ? 1 : 2));
    }
}

TEST(attributes_of_the_packet_go_before_those_of_the_message)
{
    lbmmon_packet_attributes_t written = full_attributes(), read;
    lbm_context_stats_t stats = {0};
    um_mon_attributes_init(&read);
    read.mFlags = UM_MON_HAS(LBMMON_ATTR_PROCESSID);
    read.mProcessID = 1;
    size = ROOM;
    CHECK_EQ(lbmmon_ctx_format_pb_serialize(packed, &size, &id, &written, &stats, NULL), 0);
    CHECK_EQ(lbmmon_ctx_format_pb_deserialize(&read, &stats, packed, size, id, NULL), 0);
    CHECK_EQ(read.mProcessID, 1);
    CHECK_EQ(read.mObjectID, written.mObjectID);
}

TEST(a_room_that_is_too_small_is_told_what_is_needed)
{
    lbm_context_stats_t stats;
    fill(&um_mon_context_record, &stats);
    size = 3;
    memset(packed, 7, 16);
    CHECK_EQ(lbmmon_ctx_format_pb_serialize(packed, &size, &id, NULL, &stats, NULL), -1);
    CHECK(size > 3 && packed[0] == 7);
    CHECK(strstr(lbmmon_format_pb_errmsg(), "Size 3: must be at least ") != NULL);
    CHECK_EQ(lbmmon_ctx_format_pb_serialize(packed, &size, &id, NULL, &stats, NULL), 0);
}

TEST(transports_without_a_message_are_refused)
{
    lbm_src_transport_stats_t stats = {.type = LBM_TRANSPORT_STAT_BROKER};
    size = ROOM;
    CHECK_EQ(lbmmon_src_format_pb_serialize(packed, &size, &id, NULL, &stats, NULL), -1);
    CHECK(strstr(lbmmon_format_pb_errmsg(), "transport type 128") != NULL);
}

TEST(passthrough_hands_records_on_as_they_are)
{
    lbm_context_stats_t stats = {0};
    void *module = NULL;
    size = ROOM;
    CHECK_EQ(lbmmon_ctx_format_pb_serialize(packed, &size, &id, NULL, &stats, NULL), 0);
    CHECK_EQ(lbmmon_format_pb_init(&module, "unknown=1;passthrough=on"), 0);
    CHECK_EQ(lbmmon_ctx_format_pb_deserialize(NULL, &stats, packed, size, id, module),
             LBMMON_FORMAT_DESERIALIZE_PASSTHROUGH);
    CHECK_EQ(lbmmon_format_pb_apply_format_options(module, "passthrough=sometimes"), -1);
    CHECK(strstr(lbmmon_format_pb_errmsg(), "\"sometimes\": must be off, on or convert") != NULL);
    CHECK_EQ(lbmmon_format_pb_apply_format_options(module, "passthrough=off"), 0);
    CHECK_EQ(lbmmon_ctx_format_pb_deserialize(NULL, &stats, packed, size, id, module), 0);
    CHECK_EQ(lbmmon_format_pb_apply_format_options(module, "passthrough=convert"), 0);
    CHECK_EQ(lbmmon_ctx_format_pb_deserialize(NULL, &stats, packed, size, id, module),
             LBMMON_FORMAT_DESERIALIZE_PASSTHROUGH);
    CHECK_EQ(lbmmon_format_pb_finish(module), 0);
    CHECK_EQ(lbmmon_format_pb_init(&module, "passthrough=x"), -1);
}

TEST(records_of_another_format_or_kind_are_refused)
{
    lbm_context_stats_t context = {0};
    lbm_event_queue_stats_t queue;
    size = ROOM;
    CHECK_EQ(lbmmon_ctx_format_pb_serialize(packed, &size, &id, NULL, &context, NULL), 0);
    CHECK_EQ(lbmmon_ctx_format_pb_deserialize(NULL, &context, packed, size, 0x0105, NULL), -1);
    CHECK_EQ(lbmmon_evq_format_pb_deserialize(NULL, &queue, packed, size, id, NULL), -1);
    CHECK_EQ(lbmmon_ctx_format_pb_deserialize(NULL, &context, "\377\377\377", 3, id, NULL), -1);
    CHECK(strstr(lbmmon_format_pb_errmsg(), "3 bytes: not a lbmmon.UMSMonMsg") != NULL);
}

TEST(store_messages_pass_through_with_the_attributes)
{
    Lbmmon__UMPMonMsg message = LBMMON__UMPMON_MSG__INIT, *read = NULL;
    Lbmmon__UMPMonMsg__Stats stats = LBMMON__UMPMON_MSG__STATS__INIT;
    lbmmon_packet_attributes_t attributes = full_attributes(), got = {0};
    stats.src_count = 3;
    message.stats = &stats;
    size_t needed = 0;
    CHECK_EQ(lbmmon_store_format_pb_serialize(NULL, &needed, NULL, &attributes, &message,
                                              LBMMON_SERIALIZE_CALC_SIZE_ONLY, NULL),
             0);
    size = needed;
    CHECK_EQ(lbmmon_store_format_pb_serialize(packed, &size, &id, &attributes, &message, LBMMON_SERIALIZE_PACK_MESSAGE,
                                              NULL),
             0);
    CHECK_EQ(size, needed);
    CHECK(message.attributes == NULL);
    CHECK_EQ(lbmmon_store_format_pb_deserialize(&got, &read, packed, size, id, NULL), 0);
    CHECK_EQ(read->stats->src_count, 3);
    CHECK(same_attributes(&attributes, &got));
    CHECK_EQ(lbmmon_store_free_unpacked(read), 0);
}

TEST(router_messages_pass_through)
{
    Lbmmon__DROMonMsg message = LBMMON__DROMON_MSG__INIT, *read = NULL;
    Lbmmon__DROMonMsg__Stats stats = LBMMON__DROMON_MSG__STATS__INIT;
    Lbmmon__DROMonMsg__Stats__Portal portal = LBMMON__DROMON_MSG__STATS__PORTAL__INIT, *portals[] = {&portal};
    Lbmmon__DROMonMsg__Stats__Portal__Peer peer = LBMMON__DROMON_MSG__STATS__PORTAL__PEER__INIT;
    peer.interest_topics = 5;
    portal.portal_type_case = LBMMON__DROMON_MSG__STATS__PORTAL__PORTAL_TYPE_PEER;
    portal.peer = &peer;
    stats.portals = portals;
    stats.n_portals = 1;
    message.stats = &stats;
    size = ROOM;
    CHECK_EQ(lbmmon_gateway_format_pb_serialize(packed, &size, &id, NULL, &message, NULL), 0);
    CHECK_EQ(lbmmon_gateway_format_pb_deserialize(NULL, &read, packed, size, id, NULL), 0);
    CHECK_EQ(read->stats->portals[0]->peer->interest_topics, 5);
    CHECK_EQ(lbmmon_gateway_free_unpacked(read), 0);
}

TEST(missing_arguments_are_told)
{
    lbm_context_stats_t stats = {0};
    size = ROOM;
    CHECK_EQ(lbmmon_ctx_format_pb_serialize(NULL, &size, &id, NULL, &stats, NULL), -1);
    CHECK_EQ(lbmmon_ctx_format_pb_serialize(packed, &size, &id, NULL, NULL, NULL), -1);
    CHECK_EQ(lbmmon_ctx_format_pb_deserialize(NULL, &stats, NULL, 0, 0x0201, NULL), -1);
    CHECK_EQ(lbmmon_store_format_pb_serialize(packed, &size, &id, NULL, NULL, 0, NULL), -1);
    CHECK_EQ(lbmmon_format_pb_init(NULL, NULL), -1);
}

/* Two bytes each ask for a structure of half a kilobyte. */
TEST(a_message_gets_no_more_memory_than_its_bound)
{
    enum { QUEUES = 30000 };
    unsigned char *bytes = malloc(4 + 2 * QUEUES);
    unsigned char head[] = {0x12, 0xe0, 0xd4, 0x03}; /* stats, 60,000 bytes */
    lbm_event_queue_stats_t stats;
    memcpy(bytes, head, sizeof head);
    for (size_t i = 0; i < QUEUES; i++) {
        bytes[4 + 2 * i] = 0x22;
        bytes[5 + 2 * i] = 0;
    }
    CHECK_EQ(lbmmon_evq_format_pb_deserialize(NULL, &stats, (char *)bytes, 4 + 2 * QUEUES, 0x0201, NULL), -1);
    bytes[1] = 0x88; /* 5000 bytes: 2500 queues */
    bytes[2] = 0x27;
    memmove(bytes + 3, bytes + 4, 5000);
    CHECK_EQ(lbmmon_evq_format_pb_deserialize(NULL, &stats, (char *)bytes, 3 + 5000, 0x0201, NULL), 0);
    free(bytes);
}

static size_t allowed;

static bool runs_out(size_t bytes)
{
    return allowed-- == 0;
}

TEST(no_memory_at_any_place_is_an_error_without_a_leak)
{
    lbm_rcv_topic_stats_t in[] = {topic_source(1, 1), topic_source(2, 2)}, out[2];
    lbmmon_packet_attributes_t attributes = full_attributes();
    size_t count = 2;
    size = ROOM;
    CHECK_EQ(lbmmon_rcv_topic_format_pb_serialize(packed, &size, &id, &attributes, "prices", 2, in, NULL), 0);
    int rc = -1;
    for (size_t n = 0; rc != 0; n++) {
        CHECK(n < 100);
        allowed = n;
        um_mem_set_fail_hook(runs_out);
        rc = lbmmon_rcv_topic_format_pb_deserialize(NULL, &count, out, packed, size, id, NULL);
        um_mem_set_fail_hook(NULL);
    }
}
