/* Calls that this version does not implement yet: lbmmon.h without its modules, and lbm_src_send_lbmmon_stats.
 * Each one records LBM_EOPNOTSUPP with the name of the feature and fails. Called from application threads. */
#include <lbm/lbmmon.h>

#include "api/not_implemented/um_not_implemented.h"

#define FEATURE "monitoring (lbmmon) is"
#define MODULE UM_MODULE_MON

UM_NOT_IMPLEMENTED(lbmmon_attributes_deserialize, lbmmon_packet_attributes_t *Attributes, char *Source, size_t Length)
UM_NOT_IMPLEMENTED(lbmmon_sctl_create, lbmmon_sctl_t **Control, const lbmmon_format_func_t *Format,
                   const void *FormatOptions, const lbmmon_transport_func_t *Transport, const void *TransportOptions)
UM_NOT_IMPLEMENTED(lbmmon_rctl_attr_create, lbmmon_rctl_attr_t **Attributes)
UM_NOT_IMPLEMENTED(lbmmon_rctl_attr_delete, lbmmon_rctl_attr_t *Attributes)
UM_NOT_IMPLEMENTED(lbmmon_rctl_attr_setopt, lbmmon_rctl_attr_t *Attributes, int Option, void *Value, size_t Length)
UM_NOT_IMPLEMENTED(lbmmon_rctl_attr_getopt, lbmmon_rctl_attr_t *Attributes, int Option, void *Value, size_t *Length)
UM_NOT_IMPLEMENTED(lbmmon_rctl_create, lbmmon_rctl_t **Control, const lbmmon_format_func_t *Format,
                   const void *FormatOptions, const lbmmon_transport_func_t *Transport, const void *TransportOptions,
                   lbmmon_rctl_attr_t *Attributes, void *ClientData)
UM_NOT_IMPLEMENTED(lbmmon_context_monitor, lbmmon_sctl_t *Control, lbm_context_t *Context,
                   const char *ApplicationSourceID, unsigned int Seconds)
UM_NOT_IMPLEMENTED(lbmmon_context_unmonitor, lbmmon_sctl_t *Control, lbm_context_t *Context)
UM_NOT_IMPLEMENTED(lbmmon_src_monitor, lbmmon_sctl_t *Control, lbm_src_t *Source, const char *ApplicationSourceID,
                   unsigned int Seconds)
UM_NOT_IMPLEMENTED(lbmmon_ssrc_monitor, lbmmon_sctl_t *Control, lbm_ssrc_t *SmartSource,
                   const char *ApplicationSourceID, unsigned int Seconds)
UM_NOT_IMPLEMENTED(lbmmon_src_unmonitor, lbmmon_sctl_t *Control, lbm_src_t *Source)
UM_NOT_IMPLEMENTED(lbmmon_ssrc_unmonitor, lbmmon_sctl_t *Control, lbm_ssrc_t *SmartSource)
UM_NOT_IMPLEMENTED(lbmmon_rcv_monitor, lbmmon_sctl_t *Control, lbm_rcv_t *Receiver, const char *ApplicationSourceID,
                   unsigned int Seconds)
UM_NOT_IMPLEMENTED(lbmmon_rcv_unmonitor, lbmmon_sctl_t *Control, lbm_rcv_t *Receiver)
UM_NOT_IMPLEMENTED(lbmmon_evq_monitor, lbmmon_sctl_t *Control, lbm_event_queue_t *EventQueue,
                   const char *ApplicationSourceID, unsigned int Seconds)
UM_NOT_IMPLEMENTED(lbmmon_evq_unmonitor, lbmmon_sctl_t *Control, lbm_event_queue_t *EventQueue)
UM_NOT_IMPLEMENTED(lbmmon_sctl_destroy, lbmmon_sctl_t *Control)
UM_NOT_IMPLEMENTED(lbmmon_rctl_destroy, lbmmon_rctl_t *Control)
UM_NOT_IMPLEMENTED(lbmmon_sctl_sample, lbmmon_sctl_t *Control)
UM_NOT_IMPLEMENTED(lbmmon_sctl_sample_ex, lbmmon_sctl_t *Control, const char *ApplicationSourceID)
UM_NOT_IMPLEMENTED(lbmmon_attr_get_ipv4sender, const void *AttributeBlock, lbm_uint_t *Address)
UM_NOT_IMPLEMENTED(lbmmon_attr_get_timestamp, const void *AttributeBlock, time_t *Timestamp)
UM_NOT_IMPLEMENTED(lbmmon_attr_get_appsourceid, const void *AttributeBlock, char *ApplicationSourceID, size_t Length)
UM_NOT_IMPLEMENTED(lbmmon_attr_get_objectid, const void *AttributeBlock, lbm_ulong_t *ObjectID)
UM_NOT_IMPLEMENTED(lbmmon_attr_get_contextid, const void *AttributeBlock, lbm_ulong_t *ContextID)
UM_NOT_IMPLEMENTED(lbmmon_attr_get_processid, const void *AttributeBlock, lbm_ulong_t *ProcessID)
UM_NOT_IMPLEMENTED(lbmmon_attr_get_source, const void *AttributeBlock, lbm_ulong_t *Source)
UM_NOT_IMPLEMENTED(lbmmon_attr_get_ctxinst, const void *AttributeBlock, lbm_uint8_t *ContextInstance, size_t Length)
UM_NOT_IMPLEMENTED(lbmmon_attr_get_domainid, const void *AttributeBlock, lbm_uint32_t *DomainID)
UM_NOT_IMPLEMENTED_VALUE(const char *, NULL, lbmmon_next_key_value_pair, const char *String, char *Key, size_t KeySize,
                         char *Value, size_t ValueSize)
UM_NOT_IMPLEMENTED(lbmmon_control_serialize, char *Destination, size_t *Size, int Command, char *Data, int NodeType,
                   char *ApplicationSourceID)
UM_NOT_IMPLEMENTED_VALUE(const char *, NULL, lbmmon_control_valid_commands, void)
UM_NOT_IMPLEMENTED_VALUE(const char *, NULL, lbmmon_control_valid_node_types, void)
UM_NOT_IMPLEMENTED(lbmmon_control_index_for_command, char *Command)
UM_NOT_IMPLEMENTED(lbmmon_control_index_for_node_type, char *NodeType)
UM_NOT_IMPLEMENTED(lbmmon_control_load_data_from_filename, char *Filename, char **Data)
UM_NOT_IMPLEMENTED(lbmmon_control_dump_default_filter_options, void)
UM_NOT_IMPLEMENTED_VALUE(const char *, um_module_errmsg(MODULE), lbmmon_control_errmsg, void)
UM_NOT_IMPLEMENTED_VOID(lbmmon_add_header, char *Packet, const char *Data, size_t Length, int PacketType)
UM_NOT_IMPLEMENTED(lbm_src_send_lbmmon_stats, lbm_src_t *src, char *msg, size_t len, int lbmmon_type)

int lbmmon_errnum(void)
{
    return um_module_errnum(UM_MODULE_MON);
}

const char *lbmmon_errmsg(void)
{
    return um_module_errmsg(UM_MODULE_MON);
}
