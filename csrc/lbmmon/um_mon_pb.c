/* Protobuf messages of monitoring, by protobuf-c. Owns nothing. Any thread. */
#include "lbmmon/um_mon_pb.h"

#include <string.h>

#include "base/um_mem.h"
#include "base/um_utf8.h"

/* ---- memory ---- */

struct budget {
    size_t left;
};

static void *take(void *arg, size_t size)
{
    struct budget *budget = arg;
    if (size > budget->left) {
        return NULL;
    }
    budget->left -= size;
    return um_malloc(size > 0 ? size : 1);
}

static void give_back(void *arg, void *memory)
{
    um_free(memory);
}

/* The schema has no message within itself, so that its depth is that of the schema. */
ProtobufCMessage *um_mon_pb_unpack(const ProtobufCMessageDescriptor *kind, const void *bytes, size_t len)
{
    struct budget budget = {UM_MON_PB_MEMORY_MAX};
    ProtobufCAllocator allocator = {take, give_back, &budget};
    return protobuf_c_message_unpack(kind, &allocator, len, bytes);
}

void um_mon_pb_free(void *message)
{
    ProtobufCAllocator allocator = {take, give_back, NULL};
    protobuf_c_message_free_unpacked(message, &allocator);
}

int um_mon_pb_pack(const void *message, char *out, size_t *size)
{
    size_t room = *size;
    *size = protobuf_c_message_get_packed_size(message);
    if (*size > room || out == NULL) {
        return -1;
    }
    protobuf_c_message_pack(message, (uint8_t *)out);
    return 0;
}

/* ---- counters ---- */

static const ProtobufCFieldDescriptor *counter(const ProtobufCMessage *message, const char *name)
{
    const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);
    return field != NULL && field->type == PROTOBUF_C_TYPE_UINT64 ? field : NULL;
}

void um_mon_pb_put_counters(void *message, const struct um_mon_record *record, const void *counters)
{
    for (size_t i = 0; i < record->count; i++) {
        const ProtobufCFieldDescriptor *field = counter(message, record->fields[i].name);
        if (field != NULL) {
            uint64_t value = um_mon_field_get(&record->fields[i], counters);
            memcpy((char *)message + field->offset, &value, sizeof value);
        }
    }
}

void um_mon_pb_get_counters(const void *message, const struct um_mon_record *record, void *counters)
{
    for (size_t i = 0; i < record->count; i++) {
        const ProtobufCFieldDescriptor *field = counter(message, record->fields[i].name);
        if (field != NULL) {
            uint64_t value;
            memcpy(&value, (const char *)message + field->offset, sizeof value);
            um_mon_field_set(&record->fields[i], counters, (lbm_ulong_t)value);
        }
    }
}

/* ---- transports ---- */

static const struct {
    int type;
    unsigned number;
} transports[] = {
    {LBM_TRANSPORT_STAT_TCP, 3},    {LBM_TRANSPORT_STAT_LBTRM, 4},  {LBM_TRANSPORT_STAT_LBTRU, 5},
    {LBM_TRANSPORT_STAT_LBTIPC, 6}, {LBM_TRANSPORT_STAT_LBTSMX, 7},
};

const ProtobufCFieldDescriptor *um_mon_pb_transport_field(const void *transport, int type)
{
    const ProtobufCMessage *message = transport;
    for (size_t i = 0; i < sizeof transports / sizeof transports[0]; i++) {
        if (transports[i].type == type) {
            return protobuf_c_message_descriptor_get_field(message->descriptor, transports[i].number);
        }
    }
    return NULL;
}

int um_mon_pb_transport_type(unsigned field_number)
{
    for (size_t i = 0; i < sizeof transports / sizeof transports[0]; i++) {
        if (transports[i].number == field_number) {
            return transports[i].type;
        }
    }
    return -1;
}

/* ---- texts and attributes ---- */

bool um_mon_pb_copy(char *out, size_t room, const char *text)
{
    size_t len = strlen(text);
    if (len >= room) {
        return false;
    }
    memcpy(out, text, len + 1);
    return true;
}

void um_mon_pb_put_attributes(struct um_mon_pb_attributes *out, const lbmmon_packet_attributes_t *attributes)
{
    Lbmmon__UMMonAttributes *message = &out->message;
    lbmmon__ummon_attributes__init(message);
    if (um_mon_has(attributes, LBMMON_ATTR_SENDER_IPV4)) {
        struct in_addr address = {attributes->mAddress};
        inet_ntop(AF_INET, &address, out->address, sizeof out->address);
        message->sender_ipv4_address = out->address;
    }
    if (um_mon_has(attributes, LBMMON_ATTR_TIMESTAMP)) {
        message->timestamp = (uint64_t)attributes->mTimestamp;
    }
    if (um_mon_has(attributes, LBMMON_ATTR_APPSOURCEID)) {
        message->application_id =
            um_utf8_copy(out->application, sizeof out->application, attributes->mApplicationSourceID);
    }
    if (um_mon_has(attributes, LBMMON_ATTR_OBJECTID)) {
        message->object_id = attributes->mObjectID;
    }
    if (um_mon_has(attributes, LBMMON_ATTR_PROCESSID)) {
        message->process_id = attributes->mProcessID;
    }
    if (um_mon_has(attributes, LBMMON_ATTR_CTXINST)) {
        message->context_instance.data = (uint8_t *)attributes->mContextInstance;
        message->context_instance.len = sizeof attributes->mContextInstance;
    }
    if (um_mon_has(attributes, LBMMON_ATTR_DOMAINID)) {
        message->domain_id = attributes->mDomainID;
    }
}

/* Whether an attribute of this type is to be set; says that it is there now. */
static bool fills(lbmmon_packet_attributes_t *attributes, unsigned type, bool told)
{
    if (!told || um_mon_has(attributes, type)) {
        return false;
    }
    attributes->mFlags |= UM_MON_HAS(type);
    return true;
}

void um_mon_pb_get_attributes(const Lbmmon__UMMonAttributes *message, unsigned short module_id,
                              lbmmon_packet_attributes_t *attributes)
{
    struct in_addr address;
    if (attributes == NULL) {
        return;
    }
    if (attributes->mPacketAttributesMagic != LBMMON_ATTR_BLOCK_MAGIC) {
        um_mon_attributes_init(attributes);
    }
    if (fills(attributes, LBMMON_ATTR_FORMAT_MODULEID, true)) {
        attributes->mModuleID = module_id;
    }
    if (message == NULL) {
        return;
    }
    if (fills(attributes, LBMMON_ATTR_SENDER_IPV4, inet_pton(AF_INET, message->sender_ipv4_address, &address) == 1)) {
        attributes->mAddress = address.s_addr;
    }
    if (fills(attributes, LBMMON_ATTR_TIMESTAMP, message->timestamp != 0)) {
        attributes->mTimestamp = (time_t)message->timestamp;
    }
    if (fills(attributes, LBMMON_ATTR_APPSOURCEID,
              message->application_id[0] != '\0' && strlen(message->application_id) <= UM_MON_APPID_MAX)) {
        strcpy(attributes->mApplicationSourceID, message->application_id);
    }
    if (fills(attributes, LBMMON_ATTR_OBJECTID, message->object_id != 0)) {
        attributes->mObjectID = message->object_id;
    }
    if (fills(attributes, LBMMON_ATTR_PROCESSID, message->process_id != 0)) {
        attributes->mProcessID = message->process_id;
    }
    if (fills(attributes, LBMMON_ATTR_CTXINST, message->context_instance.len == sizeof attributes->mContextInstance)) {
        memcpy(attributes->mContextInstance, message->context_instance.data, sizeof attributes->mContextInstance);
    }
    if (fills(attributes, LBMMON_ATTR_DOMAINID, message->domain_id != 0)) {
        attributes->mDomainID = message->domain_id;
    }
}
