/* Calls that this version does not implement yet: the format module pb of lbmmon.
 * Each one records LBM_EOPNOTSUPP with the name of the feature and fails; the table of its functions is there,
 * because programs call through it without a look. Called from application threads. */
#include <lbm/lbmmon.h>

#include "api/not_implemented/um_not_implemented.h"

#define FEATURE "monitoring (lbmmon) is"
#define MODULE UM_MODULE_MON

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
UM_NOT_IMPLEMENTED_QUIET(const char *, um_module_errmsg(MODULE), lbmmon_format_pb_errmsg, void)
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

static const lbmmon_format_func_t pb_table = {FORMAT_CALLS(pb), .mApplyOptions = lbmmon_format_pb_apply_format_options,
                                              .mStoreFilterOptions = lbmmon_store_format_pb_filter_options,
                                              .mStoreFreeUnpacked = lbmmon_store_free_unpacked,
                                              .mGatewayFreeUnpacked = lbmmon_gateway_free_unpacked};

UM_NOT_IMPLEMENTED_QUIET(const lbmmon_format_func_t *, &pb_table, lbmmon_format_pb_module, void)
