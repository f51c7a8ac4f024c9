/* passthrough=convert: records in CSV arrive as protobuf, equal to those of a sender in protobuf; and controllers of
 * either format hear senders of both. */
#include <lbm/lbmmon.h>

#include "um_test.h"
#include "um_test_net.h"
#include "um_test_mon.h"

#include "lbmmon/um_mon_packet.h"

/* A transport in memory: one packet at a time. */
static pthread_mutex_t wire_lock = PTHREAD_MUTEX_INITIALIZER;
static char wire[UM_MON_PACKET_MAX];
static size_t wire_len;

static int wire_receive(char *data, size_t *len, unsigned timeout_ms, void *clientd)
{
    pthread_mutex_lock(&wire_lock);
    bool some = wire_len > 0;
    memcpy(data, wire, wire_len);
    *len = wire_len;
    wire_len = 0;
    pthread_mutex_unlock(&wire_lock);
    if (!some) {
        sleep_ms(1);
    }
    return some ? 0 : 1;
}

static const lbmmon_transport_func_t wire_transport = {.mReceive = wire_receive};

static lbm_context_stats_t context;
static lbm_event_queue_stats_t queue;
static lbm_src_transport_stats_t source = {.type = LBM_TRANSPORT_STAT_TCP, .source = "TCP:10.1.1.5:14371:00000001"};
static lbm_rcv_transport_stats_t receiver = {.type = LBM_TRANSPORT_STAT_LBTRM,
                                             .source = "LBTRM:10.1.1.5:14400:a1b2c3d4:224.1.1.1:14400"};
static lbm_rcv_topic_stats_t topic = {
    .topic = "topic", .flags = LBM_RCV_TOPIC_STATS_FLAG_SRC_CREATED, .source = "TCP:10.1.1.5:14371:00000001"};
static lbm_wildcard_rcv_stats_t pattern = {.pattern = "^a", .type = LBM_WILDCARD_RCV_PATTERN_TYPE_PCRE};

/* The record of a kind in a format; its length. */
static size_t write_record(const lbmmon_format_func_t *format, int type, char *out, unsigned short *id,
                           const lbmmon_packet_attributes_t *attributes)
{
    size_t len = UM_MON_PART_MAX;
    int rc = -1;
    void *data = NULL;
    REQUIRE(format->mInit(&data, NULL) == 0);
    switch (type) {
    case LBMMON_PACKET_TYPE_SOURCE:
        rc = format->mSrcSerialize(out, &len, id, attributes, &source, data);
        break;
    case LBMMON_PACKET_TYPE_RECEIVER:
        rc = format->mRcvSerialize(out, &len, id, attributes, &receiver, data);
        break;
    case LBMMON_PACKET_TYPE_EVENT_QUEUE:
        rc = format->mEvqSerialize(out, &len, id, attributes, &queue, data);
        break;
    case LBMMON_PACKET_TYPE_CONTEXT:
        rc = format->mCtxSerialize(out, &len, id, attributes, &context, data);
        break;
    case LBMMON_PACKET_TYPE_RECEIVER_TOPIC:
        rc = format->mRcvTopicSerialize(out, &len, id, attributes, "topic", 1, &topic, data);
        break;
    default:
        rc = format->mWildcardRcvSerialize(out, &len, id, attributes, &pattern, data);
        break;
    }
    REQUIRE(rc == 0);
    format->mFinish(data);
    return len;
}

static void fill(void *counters, size_t size)
{
    for (size_t i = 0; i < size / sizeof(lbm_ulong_t); i++) {
        ((lbm_ulong_t *)counters)[i] = 1000 + i;
    }
}

static void attributes_of(lbmmon_packet_attributes_t *a)
{
    um_mon_attributes_init(a);
    a->mFlags = (UM_MON_HAS(LBMMON_ATTR_DOMAINID) << 1) - 1;
    a->mFlags &= ~UM_MON_HAS(LBMMON_ATTR_FORMAT_MODULEID);
    a->mAddress = 0x0501010a;
    a->mTimestamp = 1700000000;
    strcpy(a->mApplicationSourceID, "application");
    a->mObjectID = 42;
    a->mProcessID = 4321;
    memcpy(a->mContextInstance, "instance", 8);
    a->mDomainID = 9;
    fill(&context, sizeof context);
    fill(&queue, sizeof queue);
    fill(&source.transport, sizeof source.transport.tcp);
    fill(&receiver.transport, sizeof receiver.transport.lbtrm);
    memset(topic.otid, 0xab, sizeof topic.otid);
    topic.topic_idx = 7;
}

static void put_on_wire(const lbmmon_format_func_t *format, int type)
{
    static char record[UM_MON_PART_MAX];
    lbmmon_packet_attributes_t attributes;
    unsigned short id;
    attributes_of(&attributes);
    size_t len = write_record(format, type, record, &id, &attributes);
    attributes.mModuleID = id;
    attributes.mFlags |= UM_MON_HAS(LBMMON_ATTR_FORMAT_MODULEID);
    pthread_mutex_lock(&wire_lock);
    size_t block = um_mon_attributes_write(&attributes, wire + UM_MON_HEAD_LEN, UM_MON_ATTRIBUTES_MAX);
    um_mon_head_write(wire, (unsigned)type, block, len);
    memcpy(wire + UM_MON_HEAD_LEN + block, record, len);
    wire_len = UM_MON_HEAD_LEN + block + len;
    pthread_mutex_unlock(&wire_lock);
}

/* What came last is byte by byte what a sender in protobuf writes. */
static void check_passed(struct mon_seen *seen, int type)
{
    static char wanted[UM_MON_PART_MAX];
    lbmmon_packet_attributes_t attributes;
    unsigned short id;
    attributes_of(&attributes);
    size_t len = write_record(lbmmon_format_pb_module(), type, wanted, &id, &attributes);
    CHECK_EQ(seen->passed_type, type);
    CHECK_EQ(seen->attributes.mModuleID, id);
    CHECK_STR(seen->attributes.mApplicationSourceID, "application");
    CHECK_EQ(seen->passed_len, len);
    CHECK(memcmp(seen->passed_data, wanted, len) == 0);
}

static void convert_all(const lbmmon_format_func_t *own, const lbmmon_format_func_t *sender)
{
    struct mon_seen seen = MON_SEEN_INIT;
    mon_listen(&seen, own, "passthrough=convert", &wire_transport, NULL);
    for (int type = LBMMON_PACKET_TYPE_SOURCE; type <= LBMMON_PACKET_TYPE_WILDCARD_RECEIVER; type++) {
        put_on_wire(sender, type);
        CHECK(mon_wait(&seen, &seen.passed, type + 1));
        check_passed(&seen, type);
    }
    CHECK_EQ(seen.sources + seen.receivers + seen.event_queues + seen.contexts + seen.topics + seen.patterns, 0);
    MON_MUST(lbmmon_rctl_destroy(seen.control));
}

TEST(check_7_csv_converted_by_a_controller_of_csv)
{
    convert_all(lbmmon_format_csv_module(), lbmmon_format_csv_module());
}

TEST(check_7_csv_converted_by_a_controller_of_pb)
{
    convert_all(lbmmon_format_pb_module(), lbmmon_format_csv_module());
}

TEST(check_7_protobuf_is_passed_through_as_it_is)
{
    convert_all(lbmmon_format_pb_module(), lbmmon_format_pb_module());
    convert_all(lbmmon_format_csv_module(), lbmmon_format_pb_module());
}

static void hear_all(const lbmmon_format_func_t *own, const lbmmon_format_func_t *sender)
{
    struct mon_seen seen = MON_SEEN_INIT;
    const int *const counts[] = {&seen.sources,  &seen.receivers, &seen.event_queues,
                                 &seen.contexts, &seen.topics,    &seen.patterns};
    mon_listen(&seen, own, NULL, &wire_transport, NULL);
    for (int type = LBMMON_PACKET_TYPE_SOURCE; type <= LBMMON_PACKET_TYPE_WILDCARD_RECEIVER; type++) {
        put_on_wire(sender, type);
        CHECK(mon_wait(&seen, counts[type], 1));
    }
    CHECK(memcmp(&seen.context, &context, sizeof context) == 0);
    CHECK(memcmp(&seen.event_queue, &queue, sizeof queue) == 0);
    CHECK(memcmp(&seen.receiver.transport.lbtrm, &receiver.transport.lbtrm, sizeof receiver.transport.lbtrm) == 0);
    CHECK_STR(seen.pattern.pattern, "^a");
    CHECK_EQ(seen.attributes.mObjectID, 42);
    MON_MUST(lbmmon_rctl_destroy(seen.control));
}

TEST(controllers_of_either_format_hear_senders_of_both)
{
    const lbmmon_format_func_t *const formats[] = {lbmmon_format_csv_module(), lbmmon_format_pb_module()};
    for (int own = 0; own < 2; own++) {
        for (int sender = 0; sender < 2; sender++) {
            hear_all(formats[own], formats[sender]);
        }
    }
}
