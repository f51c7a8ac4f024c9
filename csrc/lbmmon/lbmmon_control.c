/* lbmmon_control_* and lbmmon_add_header: control messages, at the operator's side; and lbm_src_send_lbmmon_stats, for
 * daemons that have records of their own. Owns nothing. Any thread. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/um_error.h"
#include "lbmmon/um_mon_error.h"
#include "lbmmon/um_mon_packet.h"

enum { FILE_MAX = 64 << 10 };

/* Names are those of the message's own description: there is one list. */
static int index_of(const ProtobufCEnumDescriptor *names, const char *name)
{
    for (unsigned i = 0; name != NULL && i < names->n_values; i++) {
        if (strcasecmp(names->values[i].name, name) == 0) {
            return names->values[i].value;
        }
    }
    return -1;
}

static const char *list_of(const ProtobufCEnumDescriptor *names, char *out, size_t room)
{
    size_t len = 0;
    out[0] = '\0';
    for (unsigned i = 0; i < names->n_values && len < room; i++) {
        len += (size_t)snprintf(out + len, room - len, "%s%s", i > 0 ? ", " : "", names->values[i].name);
    }
    return out;
}

const char *lbmmon_control_valid_commands(void)
{
    static _Thread_local char text[256];
    return list_of(&lbmmon__ummon_control_msg__command__descriptor, text, sizeof text);
}

const char *lbmmon_control_valid_node_types(void)
{
    static _Thread_local char text[256];
    return list_of(&lbmmon__ummon_control_msg__node_type__descriptor, text, sizeof text);
}

int lbmmon_control_index_for_command(char *Command)
{
    int index = index_of(&lbmmon__ummon_control_msg__command__descriptor, Command);
    return index >= 0 ? index
                      : um_mon_module_error(UM_MON_CONTROL, "command \"%.40s\": must be one of %s",
                                            Command != NULL ? Command : "", lbmmon_control_valid_commands());
}

int lbmmon_control_index_for_node_type(char *NodeType)
{
    int index = index_of(&lbmmon__ummon_control_msg__node_type__descriptor, NodeType);
    return index >= 0 ? index
                      : um_mon_module_error(UM_MON_CONTROL, "node type \"%.40s\": must be one of %s",
                                            NodeType != NULL ? NodeType : "", lbmmon_control_valid_node_types());
}

static bool is_value(const ProtobufCEnumDescriptor *names, int value)
{
    return protobuf_c_enum_descriptor_get_value(names, value) != NULL;
}

int lbmmon_control_serialize(char *Destination, size_t *Size, int Command, char *Data, int NodeType,
                             char *ApplicationSourceID)
{
    if (Size == NULL || (Destination == NULL && *Size > 0)) {
        return um_mon_module_error(UM_MON_CONTROL, "Destination and Size: must not be NULL");
    }
    if (!is_value(&lbmmon__ummon_control_msg__command__descriptor, Command) ||
        !is_value(&lbmmon__ummon_control_msg__node_type__descriptor, NodeType)) {
        return um_mon_module_error(UM_MON_CONTROL, "Command %d, NodeType %d: must be numbers of the lists", Command,
                                   NodeType);
    }
    Lbmmon__UMMonControlMsg message = LBMMON__UMMON_CONTROL_MSG__INIT;
    message.command = (Lbmmon__UMMonControlMsg__Command)Command;
    message.node_type = (Lbmmon__UMMonControlMsg__NodeType)NodeType;
    message.data = Data != NULL ? Data : message.data;
    message.application_id = ApplicationSourceID != NULL ? ApplicationSourceID : message.application_id;
    size_t len = lbmmon__ummon_control_msg__get_packed_size(&message), room = *Size;
    *Size = len;
    if (len > room || len > UM_MON_PART_MAX) {
        return um_mon_module_error(UM_MON_CONTROL, "Size %zu: must be at least %zu, which must not exceed %d", room,
                                   len, UM_MON_PART_MAX);
    }
    lbmmon__ummon_control_msg__pack(&message, (uint8_t *)Destination);
    return 0;
}

const char *lbmmon_control_errmsg(void)
{
    return um_mon_module_errmsg(UM_MON_CONTROL);
}

/* ---- files ---- */

static int read_whole(FILE *file, const char *name, char **out)
{
    char *text = malloc(FILE_MAX + 1); /* the caller frees it */
    if (text == NULL) {
        return um_mon_module_error(UM_MON_CONTROL, "%s: out of memory", name);
    }
    size_t len = fread(text, 1, FILE_MAX + 1, file);
    if (ferror(file) || len > FILE_MAX) {
        free(text);
        return um_mon_module_error(UM_MON_CONTROL, "%s: must be a readable file of at most %d bytes", name, FILE_MAX);
    }
    text[len] = '\0';
    *out = text;
    return 0;
}

int lbmmon_control_load_data_from_filename(char *Filename, char **Data)
{
    if (Filename == NULL || Data == NULL) {
        return um_mon_module_error(UM_MON_CONTROL, "Filename and Data: must not be NULL");
    }
    FILE *file = fopen(Filename, "re");
    if (file == NULL) {
        return um_mon_module_error(UM_MON_CONTROL, "%s: %s", Filename, strerror(errno));
    }
    int rc = read_whole(file, Filename, Data);
    fclose(file);
    return rc;
}

/* The one call of the library that prints: that is what it is for. */
int lbmmon_control_dump_default_filter_options(void)
{
    enum { ROOM = 64 << 10 };
    char *text = malloc(ROOM);
    if (text == NULL) {
        return um_mon_module_error(UM_MON_CONTROL, "default filters: out of memory");
    }
    int rc = 0;
    if (lbmmon_format_pb_default_filter_options(NULL, text, ROOM / 2) != 0 ||
        lbmmon_format_pb_default_store_filter_options(text + strlen(text), ROOM / 2) != 0) {
        rc = um_mon_module_error(UM_MON_CONTROL, "default filters: %s", lbmmon_format_pb_errmsg());
    } else if (fputs(text, stdout) < 0 || fflush(stdout) != 0) {
        rc = um_mon_module_error(UM_MON_CONTROL, "default filters: %s", strerror(errno));
    }
    free(text);
    return rc;
}

/* ---- heads ---- */

void lbmmon_add_header(char *Packet, const char *Data, size_t Length, int PacketType)
{
    if (Packet == NULL || (Data == NULL && Length > 0) || Length > UM_MON_PART_MAX || PacketType < 0 ||
        PacketType > UINT16_MAX) {
        um_mon_error(LBMMON_EINVAL, "lbmmon_add_header: Packet and Data: must not be NULL, Length %zu at most %d",
                     Length, UM_MON_PART_MAX);
        return;
    }
    memmove(Packet + UM_MON_HEAD_LEN, Data, Length); /* it may be made in place */
    um_mon_head_write(Packet, (unsigned)PacketType, 0, Length);
}

int lbm_src_send_lbmmon_stats(lbm_src_t *src, char *msg, size_t len, int lbmmon_type)
{
    uint8_t head[UM_MON_HEAD_LEN], block[UM_MON_ATTRIBUTES_MAX];
    lbmmon_packet_attributes_t attributes;
    if ((msg == NULL && len > 0) || len > UM_MON_PART_MAX || lbmmon_type < 0 || lbmmon_type > UINT16_MAX) {
        return um_error(UM_EINVAL, "CoreApi-9060-8",
                        "lbm_src_send_lbmmon_stats: msg must be valid, len %zu at most %d, and lbmmon_type %d one of "
                        "LBMMON_PACKET_TYPE_*",
                        len, UM_MON_PART_MAX, lbmmon_type);
    }
    um_mon_attributes_init(&attributes);
    attributes.mModuleID = MAKE_MODULE_VERSION(LBMMON_FORMAT_PB_MODULE_ID, LBMMON_FORMAT_PB_VERSION_CURRENT);
    attributes.mFlags = UM_MON_HAS(LBMMON_ATTR_FORMAT_MODULEID);
    size_t block_len = um_mon_attributes_write(&attributes, block, sizeof block);
    um_mon_head_write(head, (unsigned)lbmmon_type, block_len, len);
    const lbm_iovec_t pieces[] = {{(char *)head, sizeof head}, {(char *)block, block_len}, {msg, len}};
    return lbm_src_sendv(src, pieces, 3, LBM_MSG_IOV_GATHER | LBM_SRC_NONBLOCK);
}
