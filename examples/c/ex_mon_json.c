/* Monitoring records as lines of JSON: the protobuf message of the record, field by field,
 * by its description. Names are those of the .proto files, numbers are numbers, bytes are
 * hexadecimal. Called by the thread of the receive controller. */
#include <stdlib.h>
#include <string.h>

#include "ex_mon.h"

static void print_message(FILE *out, const ProtobufCMessage *message);

/* Bytes of the UTF-8 character at p; 0: what a stranger has sent is none. */
static size_t character(const unsigned char *p)
{
    size_t len = *p >= 0xf0 && *p < 0xf5 ? 4 : *p >= 0xe0 && *p < 0xf0 ? 3 : *p >= 0xc2 && *p < 0xe0 ? 2 : 0;
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    bool surrogate = len == 3 && *p == 0xed && p[1] >= 0xa0;
    bool too_long = (len == 3 && *p == 0xe0 && p[1] < 0xa0) || (len == 4 && *p == 0xf0 && p[1] < 0x90);
    bool too_large = len == 4 && *p == 0xf4 && p[1] > 0x8f;
    return surrogate || too_long || too_large ? 0 : len;
}

static void print_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0';) {
        size_t len = *p < 0x80 ? 1 : character(p);
        if (*p == '"' || *p == '\\') {
            fprintf(out, "\\%c", *p);
        } else if (len == 0) {
            fprintf(out, "\\ufffd");
        } else if (*p < 0x20 || *p == 0x7f) {
            fprintf(out, "\\u%04x", *p);
        } else {
            fwrite(p, 1, len, out);
        }
        p += len > 0 ? len : 1;
    }
    fputc('"', out);
}

static void print_bytes(FILE *out, const ProtobufCBinaryData *bytes)
{
    fputc('"', out);
    for (size_t i = 0; i < bytes->len; i++) {
        fprintf(out, "%02x", bytes->data[i]);
    }
    fputc('"', out);
}

static void print_enum(FILE *out, const ProtobufCFieldDescriptor *field, int number)
{
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(field->descriptor, number);
    if (value != NULL) {
        fprintf(out, "\"%s\"", value->name);
    } else {
        fprintf(out, "%d", number);
    }
}

static void print_value(FILE *out, const ProtobufCFieldDescriptor *field, const void *at)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_MESSAGE:
        print_message(out, *(ProtobufCMessage *const *)at);
        break;
    case PROTOBUF_C_TYPE_STRING:
        print_text(out, *(char *const *)at != NULL ? *(char *const *)at : "");
        break;
    case PROTOBUF_C_TYPE_BYTES:
        print_bytes(out, at);
        break;
    case PROTOBUF_C_TYPE_ENUM:
        print_enum(out, field, *(const int *)at);
        break;
    case PROTOBUF_C_TYPE_UINT64:
        fprintf(out, "%llu", (unsigned long long)*(const uint64_t *)at);
        break;
    case PROTOBUF_C_TYPE_UINT32:
        fprintf(out, "%u", (unsigned)*(const uint32_t *)at);
        break;
    default: /* the schema has no further types than int32 */
        fprintf(out, "%d", (int)*(const int32_t *)at);
        break;
    }
}

static size_t size_of(const ProtobufCFieldDescriptor *field)
{
    return field->type == PROTOBUF_C_TYPE_MESSAGE || field->type == PROTOBUF_C_TYPE_STRING ? sizeof(void *)
           : field->type == PROTOBUF_C_TYPE_BYTES                                          ? sizeof(ProtobufCBinaryData)
           : field->type == PROTOBUF_C_TYPE_UINT64                                         ? sizeof(uint64_t)
                                                                                           : sizeof(uint32_t);
}

/* Whether the field is there: messages may not be, nor all but one of a group. */
static bool is_there(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    const char *base = (const char *)message;
    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 &&
        *(const uint32_t *)(base + field->quantifier_offset) != field->id) {
        return false;
    }
    return field->label == PROTOBUF_C_LABEL_REPEATED || field->type != PROTOBUF_C_TYPE_MESSAGE ||
           *(ProtobufCMessage *const *)(base + field->offset) != NULL;
}

static void print_field(FILE *out, const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    const char *base = (const char *)message;
    fprintf(out, "\"%s\":", field->name);
    if (field->label != PROTOBUF_C_LABEL_REPEATED) {
        print_value(out, field, base + field->offset);
        return;
    }
    size_t count = *(const size_t *)(base + field->quantifier_offset);
    const char *list = *(char *const *)(base + field->offset);
    fputc('[', out);
    for (size_t i = 0; i < count; i++) {
        fputs(i > 0 ? "," : "", out);
        print_value(out, field, list + i * size_of(field));
    }
    fputc(']', out);
}

static void print_message(FILE *out, const ProtobufCMessage *message)
{
    bool first = true;
    fputc('{', out);
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        if (is_there(message, field)) {
            fputs(first ? "" : ",", out);
            print_field(out, message, field);
            first = false;
        }
    }
    fputc('}', out);
}

static void print_line(FILE *out, const void *message)
{
    fprintf(out, "{\"type\":\"%s\",\"message\":", ((const ProtobufCMessage *)message)->descriptor->short_name);
    print_message(out, message);
    fprintf(out, "}\n");
    fflush(out);
}

/* The attributes of a record in the form that the modules take. */
static lbmmon_packet_attributes_t attributes_of(const struct ex_mon_about *about)
{
    lbmmon_packet_attributes_t made;
    memset(&made, 0, sizeof(made));
    made.mPacketAttributesMagic = LBMMON_ATTR_BLOCK_MAGIC;
    made.mFlags = about->has;
    memcpy(&made.mAddress, &about->ipv4, sizeof(made.mAddress));
    made.mTimestamp = about->sent;
    memcpy(made.mApplicationSourceID, about->application, sizeof(about->application));
    made.mObjectID = about->object;
    made.mProcessID = about->process;
    made.mSourceFlag = (lbm_ushort_t)about->source_flag;
    memcpy(made.mContextInstance, about->instance, sizeof(about->instance));
    made.mDomainID = about->domain;
    return made;
}

/* Through the module `pb`, so that JSON says what protobuf says. */
static int pack(const struct ex_mon_record *record, char *packed, size_t *size)
{
    const lbmmon_format_func_t *pb = lbmmon_format_pb_module();
    lbmmon_packet_attributes_t attributes = attributes_of(&record->about);
    unsigned short id;
    switch (record->type) {
    case LBMMON_PACKET_TYPE_SOURCE:
        return pb->mSrcSerialize(packed, size, &id, &attributes, record->stats.source, NULL);
    case LBMMON_PACKET_TYPE_RECEIVER:
        return pb->mRcvSerialize(packed, size, &id, &attributes, record->stats.receiver, NULL);
    case LBMMON_PACKET_TYPE_EVENT_QUEUE:
        return pb->mEvqSerialize(packed, size, &id, &attributes, record->stats.queue, NULL);
    case LBMMON_PACKET_TYPE_CONTEXT:
        return pb->mCtxSerialize(packed, size, &id, &attributes, record->stats.context, NULL);
    case LBMMON_PACKET_TYPE_RECEIVER_TOPIC: {
        const lbm_rcv_topic_stats_t *topic = record->stats.topic;
        size_t count = topic->flags == LBM_RCV_TOPIC_STATS_FLAG_NO_SOURCE ? 0 : record->count;
        return pb->mRcvTopicSerialize(packed, size, &id, &attributes, topic->topic, count, topic, NULL);
    }
    case LBMMON_PACKET_TYPE_WILDCARD_RECEIVER:
        return pb->mWildcardRcvSerialize(packed, size, &id, &attributes, record->stats.wildcard, NULL);
    default:
        return -1;
    }
}

void ex_mon_print_json(FILE *out, const struct ex_mon_record *record)
{
    static char packed[65536]; /* one record at a time */
    size_t size = sizeof(packed);
    if (record->type == LBMMON_PACKET_TYPE_UMESTORE || record->type == LBMMON_PACKET_TYPE_GATEWAY ||
        record->type == LBMMON_PACKET_TYPE_SRS) {
        print_line(out, record->stats.any);
        return;
    }
    if (pack(record, packed, &size) != 0) {
        fprintf(stderr, "a record of type %d is not shown: %s\n", record->type, lbmmon_format_pb_errmsg());
        return;
    }
    Lbmmon__UMSMonMsg *message = lbmmon__umsmon_msg__unpack(NULL, size, (const uint8_t *)packed);
    if (message != NULL) {
        print_line(out, message);
        lbmmon__umsmon_msg__free_unpacked(message, NULL);
    }
}
