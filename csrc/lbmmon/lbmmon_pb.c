/* The format module `pb`, version 1: records of messaging processes as UMSMonMsg, one object in each. Owns its options,
 * one set for each controller. Called by the sampling thread, the receive thread, and by applications that use the
 * module themselves. Records of daemons: lbmmon_pb_daemons.c. */
#include <string.h>

#include <lbm/lbmmon.h>

#include "base/um_mem.h"
#include "base/um_utf8.h"
#include "lbmmon/um_mon_error.h"
#include "lbmmon/um_mon_pb.h"
#include "lbmmon/um_mon_pb_module.h"

typedef Lbmmon__UMSMonMsg__Stats__ReceiverTransport ReceiverTransport;
typedef Lbmmon__UMSMonMsg__Stats__SourceTransport SourceTransport;
typedef Lbmmon__UMSMonMsg__Events__ReceiverTopic ReceiverTopic;
typedef Lbmmon__UMSMonMsg__Events__ReceiverTopic__Source TopicSource;
typedef Lbmmon__UMSMonMsg__Events__WildcardReceiver WildcardReceiver;

enum {
    OTID_LEN = 32,
    TOPIC_SOURCES_MAX = 4096 /* of one record, which has 65,535 bytes at most */
};

/* ---- writing ---- */

/* A message with its parts, on the stack of the function that writes a record. */
struct outgoing {
    Lbmmon__UMSMonMsg message;
    Lbmmon__UMSMonMsg__Stats stats;
    Lbmmon__UMSMonMsg__Events events;
    struct um_mon_pb_attributes attributes;
};

/* -1: an argument is missing. */
static int begin_writing(struct outgoing *out, const char *destination, const size_t *size, const unsigned short *id,
                         const lbmmon_packet_attributes_t *attributes, const void *statistics, const char *api)
{
    if (destination == NULL || size == NULL || id == NULL || statistics == NULL) {
        return um_mon_module_error(UM_MON_PB, "%s: Destination, Size, ModuleID and Statistics: must not be NULL", api);
    }
    lbmmon__umsmon_msg__init(&out->message);
    lbmmon__umsmon_msg__stats__init(&out->stats);
    lbmmon__umsmon_msg__events__init(&out->events);
    if (attributes != NULL) {
        um_mon_pb_put_attributes(&out->attributes, attributes);
        out->message.attributes = &out->attributes.message;
    }
    return 0;
}

static int end_writing(const struct outgoing *out, char *destination, size_t *size, unsigned short *id,
                       const void *client_data, const char *api)
{
    return um_mon_pb_finish_writing(&out->message, destination, size, id, client_data, api);
}

static bool is_immediate(const lbmmon_packet_attributes_t *attributes)
{
    return attributes != NULL && attributes->mSourceFlag == LBMMON_ATTR_SOURCE_IM;
}

/* Room for the counters of any transport. */
union any_counters {
    ProtobufCMessage base;
    Lbmmon__UMSMonMsg__Stats__ReceiverTransport__LBTRM receiver_lbtrm;
    Lbmmon__UMSMonMsg__Stats__ReceiverTransport__LBTRU receiver_lbtru;
    Lbmmon__UMSMonMsg__Stats__SourceTransport__LBTRM source_lbtrm;
};

/* Puts the counters into the field of a ReceiverTransport or SourceTransport. -1: it has none for the transport. */
static int put_transport(void *transport, union any_counters *room, int type, const struct um_mon_record *record,
                         const void *counters, const char *api)
{
    const ProtobufCFieldDescriptor *field = um_mon_pb_transport_field(transport, type);
    if (field == NULL || record == NULL) {
        return um_mon_module_error(
            UM_MON_PB, "%s: transport type %d: must be TCP, LBT-RM, LBT-RU, LBT-IPC or LBT-SMX in protobuf", api, type);
    }
    const ProtobufCMessageDescriptor *kind = field->descriptor;
    uint32_t number = field->id;
    void *body = room;
    kind->message_init(body);
    um_mon_pb_put_counters(body, record, counters);
    memcpy((char *)transport + field->offset, &body, sizeof body);
    memcpy((char *)transport + field->quantifier_offset, &number, sizeof number);
    return 0;
}

_Static_assert(sizeof(Lbmmon__UMSMonMsg__Stats__ReceiverTransport__TransportTypeCase) == sizeof(uint32_t),
               "protobuf-c keeps the number of a chosen field in 32 bits");

/* Texts of statistics end at a NUL or with the array. Those of protobuf are UTF-8, or the whole record is refused:
 * names of topics and applications may be anything. */
#define TEXT(name, from)                                                                                               \
    char name[sizeof(from) + 1];                                                                                       \
    memcpy(name, from, sizeof(from));                                                                                  \
    name[sizeof(from)] = '\0'

int lbmmon_rcv_format_pb_serialize(char *Destination, size_t *Size, unsigned short *ModuleID,
                                   const lbmmon_packet_attributes_t *Attributes,
                                   const lbm_rcv_transport_stats_t *Statistics, void *FormatClientData)
{
    struct outgoing out;
    if (begin_writing(&out, Destination, Size, ModuleID, Attributes, Statistics, __func__) != 0) {
        return -1;
    }
    union any_counters room;
    ReceiverTransport transport, *list[] = {&transport};
    TEXT(source, Statistics->source);
    lbmmon__umsmon_msg__stats__receiver_transport__init(&transport);
    transport.source_string = source;
    transport.source_flag = is_immediate(Attributes);
    if (put_transport(&transport, &room, Statistics->type, um_mon_rcv_record(Statistics->type), &Statistics->transport,
                      __func__) != 0) {
        return -1;
    }
    out.stats.receiver_transports = list;
    out.stats.n_receiver_transports = 1;
    out.message.stats = &out.stats;
    return end_writing(&out, Destination, Size, ModuleID, FormatClientData, __func__);
}

int lbmmon_src_format_pb_serialize(char *Destination, size_t *Size, unsigned short *ModuleID,
                                   const lbmmon_packet_attributes_t *Attributes,
                                   const lbm_src_transport_stats_t *Statistics, void *FormatClientData)
{
    struct outgoing out;
    if (begin_writing(&out, Destination, Size, ModuleID, Attributes, Statistics, __func__) != 0) {
        return -1;
    }
    union any_counters room;
    SourceTransport transport, *list[] = {&transport};
    TEXT(source, Statistics->source);
    lbmmon__umsmon_msg__stats__source_transport__init(&transport);
    transport.source_string = source;
    transport.source_flag = is_immediate(Attributes);
    if (put_transport(&transport, &room, Statistics->type, um_mon_src_record(Statistics->type), &Statistics->transport,
                      __func__) != 0) {
        return -1;
    }
    out.stats.source_transports = list;
    out.stats.n_source_transports = 1;
    out.message.stats = &out.stats;
    return end_writing(&out, Destination, Size, ModuleID, FormatClientData, __func__);
}

int lbmmon_evq_format_pb_serialize(char *Destination, size_t *Size, unsigned short *ModuleID,
                                   const lbmmon_packet_attributes_t *Attributes,
                                   const lbm_event_queue_stats_t *Statistics, void *FormatClientData)
{
    struct outgoing out;
    if (begin_writing(&out, Destination, Size, ModuleID, Attributes, Statistics, __func__) != 0) {
        return -1;
    }
    Lbmmon__UMSMonMsg__Stats__EventQueue queue, *list[] = {&queue};
    lbmmon__umsmon_msg__stats__event_queue__init(&queue);
    um_mon_pb_put_counters(&queue, &um_mon_evq_record, Statistics);
    out.stats.event_queues = list;
    out.stats.n_event_queues = 1;
    out.message.stats = &out.stats;
    return end_writing(&out, Destination, Size, ModuleID, FormatClientData, __func__);
}

int lbmmon_ctx_format_pb_serialize(char *Destination, size_t *Size, unsigned short *ModuleID,
                                   const lbmmon_packet_attributes_t *Attributes, const lbm_context_stats_t *Statistics,
                                   void *FormatClientData)
{
    struct outgoing out;
    if (begin_writing(&out, Destination, Size, ModuleID, Attributes, Statistics, __func__) != 0) {
        return -1;
    }
    Lbmmon__UMSMonMsg__Stats__Context context;
    lbmmon__umsmon_msg__stats__context__init(&context);
    um_mon_pb_put_counters(&context, &um_mon_context_record, Statistics);
    out.stats.context = &context;
    out.message.stats = &out.stats;
    return end_writing(&out, Destination, Size, ModuleID, FormatClientData, __func__);
}

/* What a source of a topic is made of. */
struct topic_part {
    TopicSource message;
    char source[sizeof(((lbm_rcv_topic_stats_t *)NULL)->source) + 1];
    char otid[2 * OTID_LEN + 1];
};

static void fill_topic_part(struct topic_part *part, const lbm_rcv_topic_stats_t *of)
{
    static const char digits[] = "0123456789abcdef";
    lbmmon__umsmon_msg__events__receiver_topic__source__init(&part->message);
    memcpy(part->source, of->source, sizeof of->source);
    part->source[sizeof of->source] = '\0';
    for (size_t i = 0; i < OTID_LEN; i++) {
        part->otid[2 * i] = digits[of->otid[i] >> 4];
        part->otid[2 * i + 1] = digits[of->otid[i] & 15];
    }
    part->otid[2 * (size_t)OTID_LEN] = '\0';
    part->message.source_string = part->source;
    part->message.otid = part->otid;
    part->message.topic_idx = of->topic_idx;
    part->message.source_state = (of->flags & LBM_RCV_TOPIC_STATS_FLAG_SRC_DELETED) != 0   ? 2
                                 : (of->flags & LBM_RCV_TOPIC_STATS_FLAG_SRC_CREATED) != 0 ? 1
                                                                                           : 0;
    part->message.timestamp_sec = of->timestamp_sec;
    part->message.timestamp_usec = of->timestamp_usec;
}

int lbmmon_rcv_topic_format_pb_serialize(char *Destination, size_t *Size, unsigned short *ModuleID,
                                         const lbmmon_packet_attributes_t *Attributes, const char *Topic,
                                         lbm_ulong_t SourceCount, const lbm_rcv_topic_stats_t *Sources,
                                         void *FormatClientData)
{
    struct outgoing out;
    if (begin_writing(&out, Destination, Size, ModuleID, Attributes, Topic, __func__) != 0) {
        return -1;
    }
    if (SourceCount > TOPIC_SOURCES_MAX || (SourceCount > 0 && Sources == NULL)) {
        return um_mon_module_error(UM_MON_PB, "%s: SourceCount %lu: must be at most %d, with as many Sources", __func__,
                                   (unsigned long)SourceCount, TOPIC_SOURCES_MAX);
    }
    struct topic_part *parts = um_malloc((SourceCount + 1) * (sizeof *parts + sizeof(TopicSource *)));
    if (parts == NULL) {
        return um_mon_module_error(UM_MON_PB, "%s: out of memory", __func__);
    }
    TopicSource **list = (TopicSource **)(parts + SourceCount + 1);
    for (lbm_ulong_t i = 0; i < SourceCount; i++) {
        fill_topic_part(&parts[i], &Sources[i]);
        list[i] = &parts[i].message;
    }
    char name[sizeof Sources->topic];
    ReceiverTopic topic, *topics[] = {&topic};
    lbmmon__umsmon_msg__events__receiver_topic__init(&topic);
    topic.topic = um_utf8_copy(name, sizeof name, Topic);
    topic.sources = list;
    topic.n_sources = SourceCount;
    out.events.receiver_topics = topics;
    out.events.n_receiver_topics = 1;
    out.message.events = &out.events;
    int rc = end_writing(&out, Destination, Size, ModuleID, FormatClientData, __func__);
    um_free(parts);
    return rc;
}

int lbmmon_wildcard_rcv_format_pb_serialize(char *Destination, size_t *Size, unsigned short *ModuleID,
                                            const lbmmon_packet_attributes_t *Attributes,
                                            const lbm_wildcard_rcv_stats_t *Statistics, void *FormatClientData)
{
    struct outgoing out;
    if (begin_writing(&out, Destination, Size, ModuleID, Attributes, Statistics, __func__) != 0) {
        return -1;
    }
    WildcardReceiver wildcard, *list[] = {&wildcard};
    TEXT(given, Statistics->pattern);
    char pattern[sizeof given];
    lbmmon__umsmon_msg__events__wildcard_receiver__init(&wildcard);
    wildcard.pattern = um_utf8_copy(pattern, sizeof pattern, given);
    wildcard.type = Statistics->type;
    out.events.wildcard_receivers = list;
    out.events.n_wildcard_receivers = 1;
    out.message.events = &out.events;
    return end_writing(&out, Destination, Size, ModuleID, FormatClientData, __func__);
}

/* ---- reading ---- */

/* As um_mon_pb_begin_reading(), of a record of a messaging process. */
static int begin_reading(Lbmmon__UMSMonMsg **message, const char *source, size_t len, unsigned short id,
                         const void *statistics, const void *client_data, const char *api)
{
    return um_mon_pb_begin_reading((ProtobufCMessage **)message, &lbmmon__umsmon_msg__descriptor, source, len, id,
                                   statistics, client_data, api);
}

/* Ends with the answer for a record that was `good`. */
static int end_reading(Lbmmon__UMSMonMsg *message, lbmmon_packet_attributes_t *attributes, unsigned short id, bool good,
                       const char *api)
{
    if (good) {
        um_mon_pb_get_attributes(message->attributes, id, attributes);
    }
    um_mon_pb_free(message);
    return good ? LBMMON_FORMAT_DESERIALIZE_OK
                : um_mon_module_error(UM_MON_PB,
                                      "%s: there is no object of this kind in the record, or its text is too "
                                      "long",
                                      api);
}

/* The immediate-message flag is a field of transports here and an attribute elsewhere. */
static void take_flag(lbmmon_packet_attributes_t *attributes, int flag, unsigned short id)
{
    um_mon_pb_get_attributes(NULL, id, attributes);
    if (attributes != NULL && flag == LBMMON_ATTR_SOURCE_IM) {
        attributes->mSourceFlag = LBMMON_ATTR_SOURCE_IM;
        attributes->mFlags |= UINT64_C(1) << LBMMON_ATTR_SOURCE;
    }
}

/* The counters of a ReceiverTransport or SourceTransport: the message in its oneof. NULL: none. */
static const void *chosen(const void *transport, unsigned number)
{
    const ProtobufCMessage *message = transport;
    const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(message->descriptor, number);
    const void *body = NULL;
    if (field != NULL && um_mon_pb_transport_type(number) >= 0) {
        memcpy(&body, (const char *)transport + field->offset, sizeof body);
    }
    return body;
}

int lbmmon_rcv_format_pb_deserialize(lbmmon_packet_attributes_t *Attributes, lbm_rcv_transport_stats_t *Statistics,
                                     const char *Source, size_t Length, unsigned short ModuleID, void *FormatClientData)
{
    Lbmmon__UMSMonMsg *message;
    int rc = begin_reading(&message, Source, Length, ModuleID, Statistics, FormatClientData, __func__);
    if (rc != 0) {
        return rc;
    }
    memset(Statistics, 0, sizeof *Statistics);
    bool good = message->stats != NULL && message->stats->n_receiver_transports > 0;
    if (good) {
        const ReceiverTransport *transport = message->stats->receiver_transports[0];
        const void *counters = chosen(transport, transport->transport_type_case);
        good =
            counters != NULL && um_mon_pb_copy(Statistics->source, sizeof Statistics->source, transport->source_string);
        if (good) {
            Statistics->type = um_mon_pb_transport_type(transport->transport_type_case);
            um_mon_pb_get_counters(counters, um_mon_rcv_record(Statistics->type), &Statistics->transport);
            take_flag(Attributes, (int)transport->source_flag, ModuleID);
        }
    }
    return end_reading(message, Attributes, ModuleID, good, __func__);
}

int lbmmon_src_format_pb_deserialize(lbmmon_packet_attributes_t *Attributes, lbm_src_transport_stats_t *Statistics,
                                     const char *Source, size_t Length, unsigned short ModuleID, void *FormatClientData)
{
    Lbmmon__UMSMonMsg *message;
    int rc = begin_reading(&message, Source, Length, ModuleID, Statistics, FormatClientData, __func__);
    if (rc != 0) {
        return rc;
    }
    memset(Statistics, 0, sizeof *Statistics);
    bool good = message->stats != NULL && message->stats->n_source_transports > 0;
    if (good) {
        const SourceTransport *transport = message->stats->source_transports[0];
        const void *counters = chosen(transport, transport->transport_type_case);
        good =
            counters != NULL && um_mon_pb_copy(Statistics->source, sizeof Statistics->source, transport->source_string);
        if (good) {
            Statistics->type = um_mon_pb_transport_type(transport->transport_type_case);
            um_mon_pb_get_counters(counters, um_mon_src_record(Statistics->type), &Statistics->transport);
            take_flag(Attributes, (int)transport->source_flag, ModuleID);
        }
    }
    return end_reading(message, Attributes, ModuleID, good, __func__);
}

int lbmmon_evq_format_pb_deserialize(lbmmon_packet_attributes_t *Attributes, lbm_event_queue_stats_t *Statistics,
                                     const char *Source, size_t Length, unsigned short ModuleID, void *FormatClientData)
{
    Lbmmon__UMSMonMsg *message;
    int rc = begin_reading(&message, Source, Length, ModuleID, Statistics, FormatClientData, __func__);
    if (rc != 0) {
        return rc;
    }
    memset(Statistics, 0, sizeof *Statistics);
    bool good = message->stats != NULL && message->stats->n_event_queues > 0;
    if (good) {
        um_mon_pb_get_counters(message->stats->event_queues[0], &um_mon_evq_record, Statistics);
    }
    return end_reading(message, Attributes, ModuleID, good, __func__);
}

int lbmmon_ctx_format_pb_deserialize(lbmmon_packet_attributes_t *Attributes, lbm_context_stats_t *Statistics,
                                     const char *Source, size_t Length, unsigned short ModuleID, void *FormatClientData)
{
    Lbmmon__UMSMonMsg *message;
    int rc = begin_reading(&message, Source, Length, ModuleID, Statistics, FormatClientData, __func__);
    if (rc != 0) {
        return rc;
    }
    memset(Statistics, 0, sizeof *Statistics);
    bool good = message->stats != NULL && message->stats->context != NULL;
    if (good) {
        um_mon_pb_get_counters(message->stats->context, &um_mon_context_record, Statistics);
    }
    return end_reading(message, Attributes, ModuleID, good, __func__);
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* 64 hexadecimal digits; an empty text is zeros. */
static bool read_otid(const char *text, lbm_uint8_t *out)
{
    if (text[0] == '\0') {
        return true;
    }
    for (size_t i = 0; i < OTID_LEN; i++) {
        int high = hex_digit(text[2 * i]);
        int low = high >= 0 ? hex_digit(text[2 * i + 1]) : -1;
        if (low < 0) {
            return false;
        }
        out[i] = (lbm_uint8_t)(high << 4 | low);
    }
    return text[2 * (size_t)OTID_LEN] == '\0';
}

static bool read_topic_source(const TopicSource *of, lbm_rcv_topic_stats_t *out)
{
    out->flags = of->source_state == 2   ? LBM_RCV_TOPIC_STATS_FLAG_SRC_DELETED
                 : of->source_state == 1 ? LBM_RCV_TOPIC_STATS_FLAG_SRC_CREATED
                                         : LBM_RCV_TOPIC_STATS_FLAG_NO_SOURCE;
    out->topic_idx = (lbm_uint32_t)of->topic_idx;
    out->timestamp_sec = of->timestamp_sec;
    out->timestamp_usec = of->timestamp_usec;
    return um_mon_pb_copy(out->source, sizeof out->source, of->source_string) && read_otid(of->otid, out->otid);
}

/* One element for each source; a topic without sources has one that says so. */
int lbmmon_rcv_topic_format_pb_deserialize(lbmmon_packet_attributes_t *Attributes, size_t *Count,
                                           lbm_rcv_topic_stats_t *Statistics, const char *Source, size_t Length,
                                           unsigned short ModuleID, void *FormatClientData)
{
    Lbmmon__UMSMonMsg *message;
    int rc = begin_reading(&message, Source, Length, ModuleID, Count, FormatClientData, __func__);
    if (rc != 0) {
        return rc;
    }
    if (message->events == NULL || message->events->n_receiver_topics == 0) {
        return end_reading(message, Attributes, ModuleID, false, __func__);
    }
    const ReceiverTopic *topic = message->events->receiver_topics[0];
    size_t room = *Count;
    *Count = topic->n_sources > 0 ? topic->n_sources : 1;
    if (*Count > room || Statistics == NULL) {
        um_mon_module_error(UM_MON_PB, "%s: Count %zu: must be at least %zu", __func__, room, *Count);
        um_mon_pb_free(message);
        return LBMMON_FORMAT_DESERIALIZE_TOO_SMALL;
    }
    memset(Statistics, 0, *Count * sizeof *Statistics);
    bool good = um_mon_pb_copy(Statistics[0].topic, sizeof Statistics[0].topic, topic->topic);
    for (size_t i = 0; i < topic->n_sources && good; i++) {
        memcpy(Statistics[i].topic, Statistics[0].topic, sizeof Statistics[0].topic);
        good = read_topic_source(topic->sources[i], &Statistics[i]);
    }
    return end_reading(message, Attributes, ModuleID, good, __func__);
}

int lbmmon_wildcard_rcv_format_pb_deserialize(lbmmon_packet_attributes_t *Attributes,
                                              lbm_wildcard_rcv_stats_t *Statistics, const char *Source, size_t Length,
                                              unsigned short ModuleID, void *FormatClientData)
{
    Lbmmon__UMSMonMsg *message;
    int rc = begin_reading(&message, Source, Length, ModuleID, Statistics, FormatClientData, __func__);
    if (rc != 0) {
        return rc;
    }
    memset(Statistics, 0, sizeof *Statistics);
    bool good = message->events != NULL && message->events->n_wildcard_receivers > 0;
    if (good) {
        const WildcardReceiver *wildcard = message->events->wildcard_receivers[0];
        Statistics->type = (lbm_uint8_t)wildcard->type;
        good = wildcard->type >= 0 && wildcard->type <= UINT8_MAX &&
               um_mon_pb_copy(Statistics->pattern, sizeof Statistics->pattern, wildcard->pattern);
    }
    return end_reading(message, Attributes, ModuleID, good, __func__);
}
