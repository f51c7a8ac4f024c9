/* Calls that this version does not implement yet: the lbmmon format and transport modules.
 * Each one records LBM_EOPNOTSUPP with the name of the feature and fails; the tables of a module's functions are there,
 * because programs call through them without a look. Called from application threads. */
#include <lbm/lbmmon.h>

#include "api/not_implemented/um_not_implemented.h"

#define FEATURE "monitoring (lbmmon) is"
#define MODULE UM_MODULE_MON

UM_NOT_IMPLEMENTED(lbmmon_format_csv_init, void **FormatClientData, const void *FormatOptions)
UM_NOT_IMPLEMENTED(lbmmon_rcv_format_csv_serialize, char *Destination, size_t *Size, unsigned short *ModuleID,
                   const lbmmon_packet_attributes_t *Attributes, const lbm_rcv_transport_stats_t *Statistics,
                   void *FormatClientData)
UM_NOT_IMPLEMENTED(lbmmon_src_format_csv_serialize, char *Destination, size_t *Size, unsigned short *ModuleID,
                   const lbmmon_packet_attributes_t *Attributes, const lbm_src_transport_stats_t *Statistics,
                   void *FormatClientData)
UM_NOT_IMPLEMENTED(lbmmon_evq_format_csv_serialize, char *Destination, size_t *Size, unsigned short *ModuleID,
                   const lbmmon_packet_attributes_t *Attributes, const lbm_event_queue_stats_t *Statistics,
                   void *FormatClientData)
UM_NOT_IMPLEMENTED(lbmmon_ctx_format_csv_serialize, char *Destination, size_t *Size, unsigned short *ModuleID,
                   const lbmmon_packet_attributes_t *Attributes, const lbm_context_stats_t *Statistics,
                   void *FormatClientData)
UM_NOT_IMPLEMENTED(lbmmon_rcv_format_csv_deserialize, lbmmon_packet_attributes_t *Attributes,
                   lbm_rcv_transport_stats_t *Statistics, const char *Source, size_t Length, unsigned short ModuleID,
                   void *FormatClientData)
UM_NOT_IMPLEMENTED(lbmmon_src_format_csv_deserialize, lbmmon_packet_attributes_t *Attributes,
                   lbm_src_transport_stats_t *Statistics, const char *Source, size_t Length, unsigned short ModuleID,
                   void *FormatClientData)
UM_NOT_IMPLEMENTED(lbmmon_evq_format_csv_deserialize, lbmmon_packet_attributes_t *Attributes,
                   lbm_event_queue_stats_t *Statistics, const char *Source, size_t Length, unsigned short ModuleID,
                   void *FormatClientData)
UM_NOT_IMPLEMENTED(lbmmon_ctx_format_csv_deserialize, lbmmon_packet_attributes_t *Attributes,
                   lbm_context_stats_t *Statistics, const char *Source, size_t Length, unsigned short ModuleID,
                   void *FormatClientData)
UM_NOT_IMPLEMENTED(lbmmon_rcv_topic_format_csv_serialize, char *Destination, size_t *Size, unsigned short *ModuleID,
                   const lbmmon_packet_attributes_t *Attributes, const char *Topic, lbm_ulong_t SourceCount,
                   const lbm_rcv_topic_stats_t *Sources, void *FormatClientData)
UM_NOT_IMPLEMENTED(lbmmon_rcv_topic_format_csv_deserialize, lbmmon_packet_attributes_t *Attributes, size_t *Count,
                   lbm_rcv_topic_stats_t *Statistics, const char *Source, size_t Length, unsigned short ModuleID,
                   void *FormatClientData)
UM_NOT_IMPLEMENTED(lbmmon_wildcard_rcv_format_csv_serialize, char *Destination, size_t *Size, unsigned short *ModuleID,
                   const lbmmon_packet_attributes_t *Attributes, const lbm_wildcard_rcv_stats_t *Statistics,
                   void *FormatClientData)
UM_NOT_IMPLEMENTED(lbmmon_wildcard_rcv_format_csv_deserialize, lbmmon_packet_attributes_t *Attributes,
                   lbm_wildcard_rcv_stats_t *Statistics, const char *Source, size_t Length, unsigned short ModuleID,
                   void *FormatClientData)
UM_NOT_IMPLEMENTED(lbmmon_store_format_csv_serialize, char *Destination, size_t *Size, unsigned short *ModuleID,
                   const lbmmon_packet_attributes_t *Attributes, Lbmmon__UMPMonMsg *StoreMsg, int Action,
                   void *FormatClientData)
UM_NOT_IMPLEMENTED(lbmmon_store_format_csv_deserialize, lbmmon_packet_attributes_t *Attributes,
                   Lbmmon__UMPMonMsg **StoreMsg, const char *Source, size_t Length, unsigned short ModuleID,
                   void *FormatClientData)
UM_NOT_IMPLEMENTED(lbmmon_gateway_format_csv_serialize, char *Destination, size_t *Size, unsigned short *ModuleID,
                   const lbmmon_packet_attributes_t *Attributes, Lbmmon__DROMonMsg *GatewayMsg, void *FormatClientData)
UM_NOT_IMPLEMENTED(lbmmon_gateway_format_csv_deserialize, lbmmon_packet_attributes_t *Attributes,
                   Lbmmon__DROMonMsg **GatewayMsg, const char *Source, size_t Length, unsigned short ModuleID,
                   void *FormatClientData)
UM_NOT_IMPLEMENTED(lbmmon_format_csv_finish, void *FormatClientData)
UM_NOT_IMPLEMENTED(lbmmon_format_pb_init, void **FormatClientData, const void *FormatOptions)
UM_NOT_IMPLEMENTED(lbmmon_format_pb_apply_format_options, void *FormatClientData, const void *FormatOptions)
UM_NOT_IMPLEMENTED(lbmmon_format_pb_default_filter_options, void *FormatClientData, char *FormatOptions, size_t Size)
UM_NOT_IMPLEMENTED(lbmmon_format_pb_default_store_filter_options, char *FormatOptions, size_t Size)
UM_NOT_IMPLEMENTED(lbmmon_rcv_format_pb_serialize, char *Destination, size_t *Size, unsigned short *ModuleID,
                   const lbmmon_packet_attributes_t *Attributes, const lbm_rcv_transport_stats_t *Statistics,
                   void *FormatClientData)
UM_NOT_IMPLEMENTED(lbmmon_src_format_pb_serialize, char *Destination, size_t *Size, unsigned short *ModuleID,
                   const lbmmon_packet_attributes_t *Attributes, const lbm_src_transport_stats_t *Statistics,
                   void *FormatClientData)
UM_NOT_IMPLEMENTED(lbmmon_evq_format_pb_serialize, char *Destination, size_t *Size, unsigned short *ModuleID,
                   const lbmmon_packet_attributes_t *Attributes, const lbm_event_queue_stats_t *Statistics,
                   void *FormatClientData)
UM_NOT_IMPLEMENTED(lbmmon_ctx_format_pb_serialize, char *Destination, size_t *Size, unsigned short *ModuleID,
                   const lbmmon_packet_attributes_t *Attributes, const lbm_context_stats_t *Statistics,
                   void *FormatClientData)
UM_NOT_IMPLEMENTED(lbmmon_rcv_format_pb_deserialize, lbmmon_packet_attributes_t *Attributes,
                   lbm_rcv_transport_stats_t *Statistics, const char *Source, size_t Length, unsigned short ModuleID,
                   void *FormatClientData)
UM_NOT_IMPLEMENTED(lbmmon_src_format_pb_deserialize, lbmmon_packet_attributes_t *Attributes,
                   lbm_src_transport_stats_t *Statistics, const char *Source, size_t Length, unsigned short ModuleID,
                   void *FormatClientData)
UM_NOT_IMPLEMENTED(lbmmon_evq_format_pb_deserialize, lbmmon_packet_attributes_t *Attributes,
                   lbm_event_queue_stats_t *Statistics, const char *Source, size_t Length, unsigned short ModuleID,
                   void *FormatClientData)
UM_NOT_IMPLEMENTED(lbmmon_ctx_format_pb_deserialize, lbmmon_packet_attributes_t *Attributes,
                   lbm_context_stats_t *Statistics, const char *Source, size_t Length, unsigned short ModuleID,
                   void *FormatClientData)
UM_NOT_IMPLEMENTED(lbmmon_rcv_topic_format_pb_serialize, char *Destination, size_t *Size, unsigned short *ModuleID,
                   const lbmmon_packet_attributes_t *Attributes, const char *Topic, lbm_ulong_t SourceCount,
                   const lbm_rcv_topic_stats_t *Sources, void *FormatClientData)
UM_NOT_IMPLEMENTED(lbmmon_rcv_topic_format_pb_deserialize, lbmmon_packet_attributes_t *Attributes, size_t *Count,
                   lbm_rcv_topic_stats_t *Statistics, const char *Source, size_t Length, unsigned short ModuleID,
                   void *FormatClientData)
UM_NOT_IMPLEMENTED(lbmmon_wildcard_rcv_format_pb_serialize, char *Destination, size_t *Size, unsigned short *ModuleID,
                   const lbmmon_packet_attributes_t *Attributes, const lbm_wildcard_rcv_stats_t *Statistics,
                   void *FormatClientData)
UM_NOT_IMPLEMENTED(lbmmon_wildcard_rcv_format_pb_deserialize, lbmmon_packet_attributes_t *Attributes,
                   lbm_wildcard_rcv_stats_t *Statistics, const char *Source, size_t Length, unsigned short ModuleID,
                   void *FormatClientData)
UM_NOT_IMPLEMENTED(lbmmon_store_format_pb_serialize, char *Destination, size_t *Size, unsigned short *ModuleID,
                   const lbmmon_packet_attributes_t *Attributes, Lbmmon__UMPMonMsg *StoreMsg, int Action,
                   void *FormatClientData)
UM_NOT_IMPLEMENTED(lbmmon_store_format_pb_deserialize, lbmmon_packet_attributes_t *Attributes,
                   Lbmmon__UMPMonMsg **StoreMsg, const char *Source, size_t Length, unsigned short ModuleID,
                   void *FormatClientData)
UM_NOT_IMPLEMENTED_VALUE(char *, NULL, lbmmon_store_format_pb_filter_options, const char *FormatOptions)
UM_NOT_IMPLEMENTED(lbmmon_store_free_unpacked, Lbmmon__UMPMonMsg *StoreMsg)
UM_NOT_IMPLEMENTED(lbmmon_gateway_format_pb_serialize, char *Destination, size_t *Size, unsigned short *ModuleID,
                   const lbmmon_packet_attributes_t *Attributes, Lbmmon__DROMonMsg *GatewayMsg, void *FormatClientData)
UM_NOT_IMPLEMENTED(lbmmon_gateway_format_pb_deserialize, lbmmon_packet_attributes_t *Attributes,
                   Lbmmon__DROMonMsg **GatewayMsg, const char *Source, size_t Length, unsigned short ModuleID,
                   void *FormatClientData)
UM_NOT_IMPLEMENTED(lbmmon_gateway_free_unpacked, Lbmmon__DROMonMsg *GatewayMsg)
UM_NOT_IMPLEMENTED(lbmmon_format_pb_finish, void *FormatClientData)
UM_NOT_IMPLEMENTED(lbmmon_transport_lbm_initsrc, void **TransportClientData, const void *TransportOptions)
UM_NOT_IMPLEMENTED(lbmmon_transport_lbm_initrcv, void **TransportClientData, const void *TransportOptions)
UM_NOT_IMPLEMENTED(lbmmon_transport_lbm_send, const char *Data, size_t Length, void *TransportClientData)
UM_NOT_IMPLEMENTED(lbmmon_transport_lbm_receive, char *Data, size_t *Length, unsigned int TimeoutMS,
                   void *TransportClientData)
UM_NOT_IMPLEMENTED(lbmmon_transport_lbm_src_finish, void *TransportClientData)
UM_NOT_IMPLEMENTED(lbmmon_transport_lbm_rcv_finish, void *TransportClientData)
UM_NOT_IMPLEMENTED_VALUE(int, 0, lbmmon_transport_allow_debug, void *TransportClientData)
UM_NOT_IMPLEMENTED_VALUE(const char *, NULL, lbmmon_transport_lbm_ctrlmsgtarget, void)
UM_NOT_IMPLEMENTED(lbmmon_transport_lbm_ctrlmsg_receive, char *Data, size_t *Length, void *TransportClientData)
UM_NOT_IMPLEMENTED(lbmmon_transport_lbm_ctrlmsg_response, const char *Data, size_t Length, void *TransportClientData)
UM_NOT_IMPLEMENTED(lbmmon_transport_udp_initsrc, void **TransportClientData, const void *TransportOptions)
UM_NOT_IMPLEMENTED(lbmmon_transport_udp_initrcv, void **TransportClientData, const void *TransportOptions)
UM_NOT_IMPLEMENTED(lbmmon_transport_udp_send, const char *Data, size_t Length, void *TransportClientData)
UM_NOT_IMPLEMENTED(lbmmon_transport_udp_receive, char *Data, size_t *Length, unsigned int TimeoutMS,
                   void *TransportClientData)
UM_NOT_IMPLEMENTED(lbmmon_transport_udp_src_finish, void *TransportClientData)
UM_NOT_IMPLEMENTED(lbmmon_transport_udp_rcv_finish, void *TransportClientData)
UM_NOT_IMPLEMENTED(lbmmon_transport_lbmsnmp_initsrc, void **TransportClientData, const void *TransportOptions)
UM_NOT_IMPLEMENTED(lbmmon_transport_lbmsnmp_initrcv, void **TransportClientData, const void *TransportOptions)
UM_NOT_IMPLEMENTED(lbmmon_transport_lbmsnmp_send, const char *Data, size_t Length, void *TransportClientData)
UM_NOT_IMPLEMENTED(lbmmon_transport_lbmsnmp_receive, char *Data, size_t *Length, unsigned int TimeoutMS,
                   void *TransportClientData)
UM_NOT_IMPLEMENTED(lbmmon_transport_lbmsnmp_src_finish, void *TransportClientData)
UM_NOT_IMPLEMENTED(lbmmon_transport_lbmsnmp_rcv_finish, void *TransportClientData)

UM_NOT_IMPLEMENTED_QUIET(const char *, um_module_errmsg(MODULE), lbmmon_format_csv_errmsg, void)
UM_NOT_IMPLEMENTED_QUIET(const char *, um_module_errmsg(MODULE), lbmmon_format_pb_errmsg, void)
UM_NOT_IMPLEMENTED_QUIET(const char *, um_module_errmsg(MODULE), lbmmon_transport_lbm_errmsg, void)
UM_NOT_IMPLEMENTED_QUIET(const char *, um_module_errmsg(MODULE), lbmmon_transport_udp_errmsg, void)
UM_NOT_IMPLEMENTED_QUIET(const char *, um_module_errmsg(MODULE), lbmmon_transport_lbmsnmp_errmsg, void)

#define FORMAT_CALLS(module)                                                                                           \
    .mInit = lbmmon_format_##module##_init, .mRcvSerialize = lbmmon_rcv_format_##module##_serialize,                   \
    .mSrcSerialize = lbmmon_src_format_##module##_serialize,                                                           \
    .mRcvDeserialize = lbmmon_rcv_format_##module##_deserialize,                                                       \
    .mSrcDeserialize = lbmmon_src_format_##module##_deserialize, .mFinish = lbmmon_format_##module##_finish,           \
    .mErrorMessage = lbmmon_format_##module##_errmsg, .mEvqSerialize = lbmmon_evq_format_##module##_serialize,         \
    .mEvqDeserialize = lbmmon_evq_format_##module##_deserialize,                                                       \
    .mCtxSerialize = lbmmon_ctx_format_##module##_serialize,                                                           \
    .mCtxDeserialize = lbmmon_ctx_format_##module##_deserialize,                                                       \
    .mRcvTopicSerialize = lbmmon_rcv_topic_format_##module##_serialize,                                                \
    .mRcvTopicDeserialize = lbmmon_rcv_topic_format_##module##_deserialize,                                            \
    .mWildcardRcvSerialize = lbmmon_wildcard_rcv_format_##module##_serialize,                                          \
    .mWildcardRcvDeserialize = lbmmon_wildcard_rcv_format_##module##_deserialize,                                      \
    .mStoreSerialize = lbmmon_store_format_##module##_serialize,                                                       \
    .mStoreDeserialize = lbmmon_store_format_##module##_deserialize,                                                   \
    .mGatewaySerialize = lbmmon_gateway_format_##module##_serialize,                                                   \
    .mGatewayDeserialize = lbmmon_gateway_format_##module##_deserialize

#define TRANSPORT_CALLS(module)                                                                                        \
    .mInitSource = lbmmon_transport_##module##_initsrc, .mInitReceiver = lbmmon_transport_##module##_initrcv,          \
    .mSend = lbmmon_transport_##module##_send, .mReceive = lbmmon_transport_##module##_receive,                        \
    .mFinishSource = lbmmon_transport_##module##_src_finish,                                                           \
    .mFinishReceiver = lbmmon_transport_##module##_rcv_finish, .mErrorMessage = lbmmon_transport_##module##_errmsg

static const lbmmon_format_func_t csv_table = {FORMAT_CALLS(csv)};

static const lbmmon_format_func_t pb_table = {FORMAT_CALLS(pb), .mApplyOptions = lbmmon_format_pb_apply_format_options,
                                              .mStoreFilterOptions = lbmmon_store_format_pb_filter_options,
                                              .mStoreFreeUnpacked = lbmmon_store_free_unpacked,
                                              .mGatewayFreeUnpacked = lbmmon_gateway_free_unpacked};

static const lbmmon_transport_func_t lbm_table = {
    TRANSPORT_CALLS(lbm), .mControlMessageTarget = lbmmon_transport_lbm_ctrlmsgtarget,
    .mControlMessageReceive = lbmmon_transport_lbm_ctrlmsg_receive,
    .mControlMessageResponse = lbmmon_transport_lbm_ctrlmsg_response, .mAllowDebug = lbmmon_transport_allow_debug};

static const lbmmon_transport_func_t udp_table = {TRANSPORT_CALLS(udp)};

static const lbmmon_transport_func_t lbmsnmp_table = {TRANSPORT_CALLS(lbmsnmp)};

UM_NOT_IMPLEMENTED_QUIET(const lbmmon_format_func_t *, &csv_table, lbmmon_format_csv_module, void)
UM_NOT_IMPLEMENTED_QUIET(const lbmmon_format_func_t *, &pb_table, lbmmon_format_pb_module, void)
UM_NOT_IMPLEMENTED_QUIET(const lbmmon_transport_func_t *, &lbm_table, lbmmon_transport_lbm_module, void)
UM_NOT_IMPLEMENTED_QUIET(const lbmmon_transport_func_t *, &udp_table, lbmmon_transport_udp_module, void)
UM_NOT_IMPLEMENTED_QUIET(const lbmmon_transport_func_t *, &lbmsnmp_table, lbmmon_transport_lbmsnmp_module, void)
