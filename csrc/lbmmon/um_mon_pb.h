/* Protobuf messages of monitoring: packing into a room, unpacking bytes that may say anything within a bound of memory,
 * counters and attributes by the names of their fields. Owns nothing. For the module `pb` and the tools; any thread. */
#ifndef UM_LBMMON_PB_H
#define UM_LBMMON_PB_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <stddef.h>

#include <lbm/lbmmon.h>

#include "lbmmon/um_mon_fields.h"
#include "lbmmon/um_mon_packet.h"

enum { UM_MON_PB_MEMORY_MAX = 4 << 20 }; /* bytes that are allocated for one message, whatever it says */

/* NULL: not such a message, or it asks for more memory than one may have. */
ProtobufCMessage *um_mon_pb_unpack(const ProtobufCMessageDescriptor *kind, const void *bytes, size_t len);
void um_mon_pb_free(void *message);

/* *size is the room and becomes the length. -1: it is what the message needs; nothing has been written. */
int um_mon_pb_pack(const void *message, char *out, size_t *size);

/* Members of the same name; a message may have fewer. */
void um_mon_pb_put_counters(void *message, const struct um_mon_record *record, const void *counters);
void um_mon_pb_get_counters(const void *message, const struct um_mon_record *record, void *counters);

/* The field of a ReceiverTransport or SourceTransport for a LBM_TRANSPORT_STAT_*; NULL: the schema has none. And back:
 * -1, nothing of a transport is in it. */
const ProtobufCFieldDescriptor *um_mon_pb_transport_field(const void *transport, int type);
int um_mon_pb_transport_type(unsigned field_number);

/* Copies a text that has to fit with its NUL. */
bool um_mon_pb_copy(char *out, size_t room, const char *text);

struct um_mon_pb_attributes {
    Lbmmon__UMMonAttributes message; /* points into what it was made of */
    char address[INET_ADDRSTRLEN], application[UM_MON_APPID_MAX + 1];
};
void um_mon_pb_put_attributes(struct um_mon_pb_attributes *out, const lbmmon_packet_attributes_t *attributes);
/* Adds those that are not there yet: the block of the packet goes first. NULL message: none. */
void um_mon_pb_get_attributes(const Lbmmon__UMMonAttributes *message, unsigned short module_id,
                              lbmmon_packet_attributes_t *attributes);

#endif
