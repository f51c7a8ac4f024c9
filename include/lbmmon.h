/**
 * lbmmon.h - monitoring: sampling the statistics of contexts, sources, receivers and event queues and sending them
 * through a format module and a transport module; receiving and decoding them elsewhere.
 *
 * Functions return 0 or -1, with lbmmon_errnum() and lbmmon_errmsg() per thread. The protobuf messages are declared by
 * the headers in gen/ where protobuf-c is installed.
 */
#ifndef LBM_LBMMON_H_INCLUDED
#define LBM_LBMMON_H_INCLUDED

#include <stdlib.h>
#include <time.h>
#include "lbm/lbm.h"

/* Beside an installed library are the generated headers of the protobuf messages; they need those of protobuf-c. Where
 * either is missing, two types are named, which is all that this header needs. */
#if defined(__has_include)
#if __has_include("gen/ums_mon.pb-c.h") && __has_include(<protobuf-c/protobuf-c.h>)
#include "gen/dro_mon.pb-c.h"
#include "gen/srs_mon.pb-c.h"
#include "gen/um_mon_attributes.pb-c.h"
#include "gen/um_mon_control.pb-c.h"
#include "gen/ump_mon.pb-c.h"
#include "gen/ums_mon.pb-c.h"
#define LBMMON_PROTOBUF_TYPES_DECLARED
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

#ifndef LBMMON_PROTOBUF_TYPES_DECLARED
#define LBMMON_PROTOBUF_TYPES_DECLARED
typedef struct Lbmmon__UMPMonMsg Lbmmon__UMPMonMsg;
typedef struct Lbmmon__DROMonMsg Lbmmon__DROMonMsg;
#endif

/** Error numbers, packet and attribute types, module ids and options of the receiving side. */
#define LBMMON_ERROR_BASE 4096
#define LBMMON_EINVAL 4097
#define LBMMON_ENOMEM 4098
#define LBMMON_EMODFAIL 4099 /**< a module failed */
#define LBMMON_ELBMFAIL 4100 /**< an lbm_* call failed */
#define LBMMON_EAGAIN 4101   /**< try again */
#define LBMMON_EALREADY 4102 /**< already monitored */
#define LBMMON_EOP 4103
#define LBMMON_PACKET_SIGNATURE 0x1b33041b /**< first four bytes of a packet, network order */
#define LBMMON_PACKET_TYPE_SOURCE 0
#define LBMMON_PACKET_TYPE_RECEIVER 1
#define LBMMON_PACKET_TYPE_EVENT_QUEUE 2
#define LBMMON_PACKET_TYPE_CONTEXT 3
#define LBMMON_PACKET_TYPE_RECEIVER_TOPIC 4
#define LBMMON_PACKET_TYPE_WILDCARD_RECEIVER 5
#define LBMMON_PACKET_TYPE_UMESTORE 6
#define LBMMON_PACKET_TYPE_GATEWAY 7
#define LBMMON_PACKET_TYPE_UMDS 8
#define LBMMON_PACKET_TYPE_CONTROL_MESSAGE 9
#define LBMMON_PACKET_TYPE_SRS 10
#define LBMMON_SERIALIZE_PACK_MESSAGE 0
#define LBMMON_SERIALIZE_CALC_SIZE_ONLY 1
#define LBMMON_ATTR_BLOCK_MAGIC 0xABCD /**< marks a decoded attribute block */
#define LBMMON_ATTR_BLOCK_FORMAT_TABLE 0
#define LBMMON_ATTR_BLOCK_FORMAT_PB 1
#define LBMMON_ATTR_SENDER_IPV4 0 /**< network order */
#define LBMMON_ATTR_TIMESTAMP 1
#define LBMMON_ATTR_APPSOURCEID 2
#define LBMMON_ATTR_FORMAT_MODULEID 3
#define LBMMON_ATTR_OBJECTID 4
#define LBMMON_ATTR_CONTEXTID 4 /**< older name of OBJECTID */
#define LBMMON_ATTR_PROCESSID 5
#define LBMMON_ATTR_SOURCE 6
#define LBMMON_ATTR_CTXINST 7
#define LBMMON_ATTR_DOMAINID 8
#define LBMMON_ATTR_SOURCE_NORMAL 0
#define LBMMON_ATTR_SOURCE_IM 1
#define LBMMON_FORMAT_CSV_MODULE_ID 1
#define LBMMON_FORMAT_PB_MODULE_ID 2
#define LBMMON_FORMAT_ATTRIBUTES_PB 1
#define LBMMON_FORMAT_ATTRIBUTES_TABLE 2
#define MAKE_MODULE_VERSION(format, version)                                                                           \
    ((unsigned short)((((unsigned char)(format)) << 8) | ((unsigned char)(version))))
#define MODULE_ID(id) ((unsigned char)(((id)&0xff00) >> 8))
#define MODULE_VERSION(id) ((unsigned char)((id)&0xff))
#define LBMMON_FORMAT_PASSTHROUGH_OFF 0
#define LBMMON_FORMAT_PASSTHROUGH_ON 1
#define LBMMON_FORMAT_PASSTHROUGH_CONVERT 2
#define LBMMON_FORMAT_FILTER_OFF 0
#define LBMMON_FORMAT_FILTER_ON 1
#define LBMMON_FORMAT_FILTER_EQ 2
#define LBMMON_FORMAT_FILTER_NE 3
#define LBMMON_FORMAT_FILTER_LT 4
#define LBMMON_FORMAT_FILTER_GT 5
#define LBMMON_FORMAT_SELECT_EQ 6
#define LBMMON_FORMAT_SELECT_NE 7
#define LBMMON_FORMAT_SELECT_LT 8
#define LBMMON_FORMAT_SELECT_GT 9
#define LBMMON_FORMAT_SELECT_MATCH 10
#define LBMMON_FORMAT_SELECT_MATCH_REGX 11
#define LBMMON_FORMAT_DESERIALIZE_OK 0
#define LBMMON_FORMAT_DESERIALIZE_PASSTHROUGH 1         /**< give the packet on as it is */
#define LBMMON_FORMAT_DESERIALIZE_CONVERT_PASSTHROUGH 2 /**< decoded, and give it on too */
#define LBMMON_FORMAT_DESERIALIZE_FAILURE (-1)
#define LBMMON_FORMAT_DESERIALIZE_TOO_SMALL (-2)
#define LBMMON_RCTL_RECEIVER_CALLBACK 0
#define LBMMON_RCTL_SOURCE_CALLBACK 1
#define LBMMON_RCTL_EVENT_QUEUE_CALLBACK 2
#define LBMMON_RCTL_CONTEXT_CALLBACK 3
#define LBMMON_RCTL_RECEIVER_TOPIC_CALLBACK 4
#define LBMMON_RCTL_WILDCARD_RECEIVER_CALLBACK 5
#define LBMMON_RCTL_UMESTORE_CALLBACK 6
#define LBMMON_RCTL_GATEWAY_CALLBACK 7
#define LBMMON_RCTL_PASSTHROUGH_CALLBACK 8

/** Objects. Their contents are private to the library. */
typedef struct lbmmon_sctl_t_stct lbmmon_sctl_t;
typedef struct lbmmon_rctl_attr_t_stct lbmmon_rctl_attr_t;
typedef struct lbmmon_rctl_t_stct lbmmon_rctl_t;

/** Structures and unions defined below. */
typedef struct lbmmon_packet_hdr_t_stct lbmmon_packet_hdr_t;
typedef struct lbmmon_packet_attributes_t_stct lbmmon_packet_attributes_t;
typedef struct lbmmon_attr_block_t_stct lbmmon_attr_block_t;
typedef struct lbmmon_attr_entry_t_stct lbmmon_attr_entry_t;
typedef struct lbmmon_format_func_t_stct lbmmon_format_func_t;
typedef struct lbmmon_rcv_statistics_func_t_stct lbmmon_rcv_statistics_func_t;
typedef struct lbmmon_src_statistics_func_t_stct lbmmon_src_statistics_func_t;
typedef struct lbmmon_evq_statistics_func_t_stct lbmmon_evq_statistics_func_t;
typedef struct lbmmon_ctx_statistics_func_t_stct lbmmon_ctx_statistics_func_t;
typedef struct lbmmon_rcv_topic_statistics_func_t_stct lbmmon_rcv_topic_statistics_func_t;
typedef struct lbmmon_wildcard_rcv_statistics_func_t_stct lbmmon_wildcard_rcv_statistics_func_t;
typedef struct lbmmon_umestore_statistics_func_t_stct lbmmon_umestore_statistics_func_t;
typedef struct lbmmon_gateway_statistics_func_t_stct lbmmon_gateway_statistics_func_t;
typedef struct lbmmon_passthrough_statistics_func_t_stct lbmmon_passthrough_statistics_func_t;
typedef struct lbmmon_transport_func_t_stct lbmmon_transport_func_t;

/** Start of every monitoring packet. All members are in network order. */
struct lbmmon_packet_hdr_t_stct {
    lbm_uint_t mSignature;
    lbm_ushort_t mType;
    lbm_ushort_t mAttributeBlockLength; /**< bytes */
    lbm_ushort_t mDataLength;           /**< bytes */
    lbm_ushort_t mFiller;
};

/** What a packet says about its sender. */
struct lbmmon_packet_attributes_t_stct {
    lbm_ushort_t mPacketAttributesMagic;
    uint64_t mFlags;
    lbm_uint_t mAddress; /**< network order */
    time_t mTimestamp;
    lbm_ushort_t mModuleID;
    lbm_ushort_t mSourceFlag;
    char mApplicationSourceID[256];
    lbm_uint64_t mObjectID;
    lbm_uint64_t mProcessID;
    unsigned char mContextInstance[8];
    lbm_uint32_t mDomainID;
};

struct lbmmon_attr_block_t_stct {
    lbm_ushort_t mEntryCount;
    lbm_ushort_t mEntryLength;
};

struct lbmmon_attr_entry_t_stct {
    lbm_ushort_t mType;
    lbm_ushort_t mLength;
};

/** Starts a format module. 0 or -1. */
typedef int (*lbmmon_format_init_t)(void **FormatClientData, const void *FormatOptions);

/** Changes its options. */
typedef int (*lbmmon_format_apply_options_t)(void *FormatClientData, const void *FormatOptions);

/**
 * Encode statistics of one kind into Destination; *Size is the room in bytes and becomes the length. Sampling thread.
 * 0 or -1.
 */
typedef int (*lbmmon_rcv_format_serialize_t)(char *Destination, size_t *Size, unsigned short *ModuleID,
                                             const lbmmon_packet_attributes_t *Attributes,
                                             const lbm_rcv_transport_stats_t *Statistics, void *FormatClientData);

typedef int (*lbmmon_src_format_serialize_t)(char *Destination, size_t *Size, unsigned short *ModuleID,
                                             const lbmmon_packet_attributes_t *Attributes,
                                             const lbm_src_transport_stats_t *Statistics, void *FormatClientData);

/** Decode statistics of one kind. Receiving thread. LBMMON_FORMAT_DESERIALIZE_*. */
typedef int (*lbmmon_rcv_format_deserialize_t)(lbmmon_packet_attributes_t *Attributes,
                                               lbm_rcv_transport_stats_t *Statistics, const char *Source, size_t Length,
                                               unsigned short ModuleID, void *FormatClientData);

typedef int (*lbmmon_src_format_deserialize_t)(lbmmon_packet_attributes_t *Attributes,
                                               lbm_src_transport_stats_t *Statistics, const char *Source, size_t Length,
                                               unsigned short ModuleID, void *FormatClientData);

/** Ends it. */
typedef int (*lbmmon_format_finish_t)(void *FormatClientData);

/** Last error of a format module. */
typedef const char *(*lbmmon_format_errmsg_t)(void);

typedef int (*lbmmon_evq_format_serialize_t)(char *Destination, size_t *Size, unsigned short *ModuleID,
                                             const lbmmon_packet_attributes_t *Attributes,
                                             const lbm_event_queue_stats_t *Statistics, void *FormatClientData);

typedef int (*lbmmon_evq_format_deserialize_t)(lbmmon_packet_attributes_t *Attributes,
                                               lbm_event_queue_stats_t *Statistics, const char *Source, size_t Length,
                                               unsigned short ModuleID, void *FormatClientData);

typedef int (*lbmmon_ctx_format_serialize_t)(char *Destination, size_t *Size, unsigned short *ModuleID,
                                             const lbmmon_packet_attributes_t *Attributes,
                                             const lbm_context_stats_t *Statistics, void *FormatClientData);

typedef int (*lbmmon_ctx_format_deserialize_t)(lbmmon_packet_attributes_t *Attributes, lbm_context_stats_t *Statistics,
                                               const char *Source, size_t Length, unsigned short ModuleID,
                                               void *FormatClientData);

typedef int (*lbmmon_rcv_topic_format_serialize_t)(char *Destination, size_t *Size, unsigned short *ModuleID,
                                                   const lbmmon_packet_attributes_t *Attributes, const char *Topic,
                                                   lbm_ulong_t SourceCount, const lbm_rcv_topic_stats_t *Sources,
                                                   void *FormatClientData);

typedef int (*lbmmon_rcv_topic_format_deserialize_t)(lbmmon_packet_attributes_t *Attributes, size_t *Count,
                                                     lbm_rcv_topic_stats_t *Statistics, const char *Source,
                                                     size_t Length, unsigned short ModuleID, void *FormatClientData);

typedef int (*lbmmon_wildcard_rcv_format_serialize_t)(char *Destination, size_t *Size, unsigned short *ModuleID,
                                                      const lbmmon_packet_attributes_t *Attributes,
                                                      const lbm_wildcard_rcv_stats_t *Statistics,
                                                      void *FormatClientData);

typedef int (*lbmmon_wildcard_rcv_format_deserialize_t)(lbmmon_packet_attributes_t *Attributes,
                                                        lbm_wildcard_rcv_stats_t *Statistics, const char *Source,
                                                        size_t Length, unsigned short ModuleID, void *FormatClientData);

typedef int (*lbmmon_umestore_format_serialize_t)(char *Destination, size_t *Size, unsigned short *ModuleID,
                                                  const lbmmon_packet_attributes_t *Attributes,
                                                  Lbmmon__UMPMonMsg *StoreMsg, int Action, void *FormatClientData);

typedef int (*lbmmon_umestore_format_deserialize_t)(lbmmon_packet_attributes_t *Attributes,
                                                    Lbmmon__UMPMonMsg **StoreMsg, const char *Source, size_t Length,
                                                    unsigned short ModuleID, void *FormatClientData);

typedef char *(*lbmmon_umestore_filter_options_t)(const char *FormatOptions);

typedef int (*lbmmon_umestore_free_unpacked_t)(Lbmmon__UMPMonMsg *StoreMsg);

typedef int (*lbmmon_gateway_format_serialize_t)(char *Destination, size_t *Size, unsigned short *ModuleID,
                                                 const lbmmon_packet_attributes_t *Attributes,
                                                 Lbmmon__DROMonMsg *GatewayMsg, void *FormatClientData);

typedef int (*lbmmon_gateway_format_deserialize_t)(lbmmon_packet_attributes_t *Attributes,
                                                   Lbmmon__DROMonMsg **GatewayMsg, const char *Source, size_t Length,
                                                   unsigned short ModuleID, void *FormatClientData);

typedef int (*lbmmon_gateway_free_unpacked_t)(Lbmmon__DROMonMsg *GatewayMsg);

/** A format module: encodes and decodes statistics. Calls that a module does not have are NULL. */
struct lbmmon_format_func_t_stct {
    lbmmon_format_init_t mInit;
    lbmmon_format_apply_options_t mApplyOptions;
    lbmmon_rcv_format_serialize_t mRcvSerialize;
    lbmmon_src_format_serialize_t mSrcSerialize;
    lbmmon_rcv_format_deserialize_t mRcvDeserialize;
    lbmmon_src_format_deserialize_t mSrcDeserialize;
    lbmmon_format_finish_t mFinish;
    lbmmon_format_errmsg_t mErrorMessage;
    lbmmon_evq_format_serialize_t mEvqSerialize;
    lbmmon_evq_format_deserialize_t mEvqDeserialize;
    lbmmon_ctx_format_serialize_t mCtxSerialize;
    lbmmon_ctx_format_deserialize_t mCtxDeserialize;
    lbmmon_rcv_topic_format_serialize_t mRcvTopicSerialize;
    lbmmon_rcv_topic_format_deserialize_t mRcvTopicDeserialize;
    lbmmon_wildcard_rcv_format_serialize_t mWildcardRcvSerialize;
    lbmmon_wildcard_rcv_format_deserialize_t mWildcardRcvDeserialize;
    lbmmon_umestore_format_serialize_t mStoreSerialize;
    lbmmon_umestore_format_deserialize_t mStoreDeserialize;
    lbmmon_umestore_filter_options_t mStoreFilterOptions;
    lbmmon_umestore_free_unpacked_t mStoreFreeUnpacked;
    lbmmon_gateway_format_serialize_t mGatewaySerialize;
    lbmmon_gateway_format_deserialize_t mGatewayDeserialize;
    lbmmon_gateway_free_unpacked_t mGatewayFreeUnpacked;
};

/**
 * Statistics have arrived. The arguments are valid until the callback returns. Receiving thread of the controller.
 */
typedef void (*lbmmon_rcv_statistics_cb)(const void *AttributeBlock, const lbm_rcv_transport_stats_t *Statistics,
                                         void *ClientData);

struct lbmmon_rcv_statistics_func_t_stct {
    lbmmon_rcv_statistics_cb cbfunc;
};

/** As lbmmon_rcv_statistics_cb. */
typedef void (*lbmmon_src_statistics_cb)(const void *AttributeBlock, const lbm_src_transport_stats_t *Statistics,
                                         void *ClientData);

struct lbmmon_src_statistics_func_t_stct {
    lbmmon_src_statistics_cb cbfunc;
};

/** As lbmmon_rcv_statistics_cb. */
typedef void (*lbmmon_evq_statistics_cb)(const void *AttributeBlock, const lbm_event_queue_stats_t *Statistics,
                                         void *ClientData);

struct lbmmon_evq_statistics_func_t_stct {
    lbmmon_evq_statistics_cb cbfunc;
};

/** As lbmmon_rcv_statistics_cb. */
typedef void (*lbmmon_ctx_statistics_cb)(const void *AttributeBlock, const lbm_context_stats_t *Statistics,
                                         void *ClientData);

struct lbmmon_ctx_statistics_func_t_stct {
    lbmmon_ctx_statistics_cb cbfunc;
};

/** As lbmmon_rcv_statistics_cb. */
typedef void (*lbmmon_rcv_topic_statistics_cb)(const void *AttributeBlock, const lbm_rcv_topic_stats_t *Statistics,
                                               void *ClientData);

struct lbmmon_rcv_topic_statistics_func_t_stct {
    lbmmon_rcv_topic_statistics_cb cbfunc;
};

/** As lbmmon_rcv_statistics_cb. */
typedef void (*lbmmon_wildcard_rcv_statistics_cb)(const void *AttributeBlock,
                                                  const lbm_wildcard_rcv_stats_t *Statistics, void *ClientData);

struct lbmmon_wildcard_rcv_statistics_func_t_stct {
    lbmmon_wildcard_rcv_statistics_cb cbfunc;
};

/** As lbmmon_rcv_statistics_cb. */
typedef void (*lbmmon_umestore_statistics_cb)(const void *AttributeBlock, const Lbmmon__UMPMonMsg *StoreMsg,
                                              void *ClientData);

struct lbmmon_umestore_statistics_func_t_stct {
    lbmmon_umestore_statistics_cb cbfunc;
};

/** As lbmmon_rcv_statistics_cb. */
typedef void (*lbmmon_gateway_statistics_cb)(const void *AttributeBlock, const Lbmmon__DROMonMsg *GatewayMsg,
                                             void *ClientData);

struct lbmmon_gateway_statistics_func_t_stct {
    lbmmon_gateway_statistics_cb cbfunc;
};

/** As lbmmon_rcv_statistics_cb. */
typedef void (*lbmmon_passthrough_statistics_cb)(const lbmmon_packet_hdr_t *PacketHeader,
                                                 lbmmon_packet_attributes_t *Attributes, void *AttributeBlock,
                                                 void *Statistics, size_t Length, void *ClientData);

struct lbmmon_passthrough_statistics_func_t_stct {
    lbmmon_passthrough_statistics_cb cbfunc;
};

/** Opens a transport for sending. 0 or -1. */
typedef int (*lbmmon_transport_initsrc_t)(void **TransportClientData, const void *TransportOptions);

/** Opens a transport for receiving. 0 or -1. */
typedef int (*lbmmon_transport_initrcv_t)(void **TransportClientData, const void *TransportOptions);

/** Sends a packet. 0 or -1. Sampling thread. */
typedef int (*lbmmon_transport_send_t)(const char *Data, size_t Length, void *TransportClientData);

/** Waits up to TimeoutMS milliseconds for a packet: 0 data, positive none, -1 failure. */
typedef int (*lbmmon_transport_receive_t)(char *Data, size_t *Length, unsigned int TimeoutMS,
                                          void *TransportClientData);

/** Closes the sending side. */
typedef int (*lbmmon_transport_finishsrc_t)(void *TransportClientData);

/** Closes the receiving side. */
typedef int (*lbmmon_transport_finishrcv_t)(void *TransportClientData);

/** Last error of a transport module. */
typedef const char *(*lbmmon_transport_errmsg_t)(void);

typedef const char *(*lbmmon_transport_ctrlmsgtarget_t)(void);

typedef int (*lbmmon_transport_ctrlmsg_receive_t)(char *Data, size_t *Length, void *TransportClientData);

typedef int (*lbmmon_transport_ctrlmsg_response_t)(const char *Data, size_t Length, void *TransportClientData);

/** 1 when remote debug commands are allowed, else 0. */
typedef int (*lbmmon_transport_allow_debug_t)(void *TransportClientData);

/** A transport module: carries packets. */
struct lbmmon_transport_func_t_stct {
    lbmmon_transport_initsrc_t mInitSource;
    lbmmon_transport_initrcv_t mInitReceiver;
    lbmmon_transport_send_t mSend;
    lbmmon_transport_receive_t mReceive;
    lbmmon_transport_finishsrc_t mFinishSource;
    lbmmon_transport_finishrcv_t mFinishReceiver;
    lbmmon_transport_errmsg_t mErrorMessage;
    lbmmon_transport_ctrlmsgtarget_t mControlMessageTarget;
    lbmmon_transport_ctrlmsg_receive_t mControlMessageReceive;
    lbmmon_transport_ctrlmsg_response_t mControlMessageResponse;
    lbmmon_transport_allow_debug_t mAllowDebug;
};

/* Sending side (sctl), receiving side (rctl), attributes of a received packet and control commands. */

/** Decodes the attribute block of a packet. */
LBMExpDLL int lbmmon_attributes_deserialize(lbmmon_packet_attributes_t *Attributes, char *Source, size_t Length);

/** Starts sending: format and transport modules with their options. */
LBMExpDLL int lbmmon_sctl_create(lbmmon_sctl_t **Control, const lbmmon_format_func_t *Format, const void *FormatOptions,
                                 const lbmmon_transport_func_t *Transport, const void *TransportOptions);

/** Makes an attribute object with the current defaults of receiving options. */
LBMExpDLL int lbmmon_rctl_attr_create(lbmmon_rctl_attr_t **Attributes);

/** Frees it. Objects made from it are not affected. */
LBMExpDLL int lbmmon_rctl_attr_delete(lbmmon_rctl_attr_t *Attributes);

/** Sets an option from its binary form of optlen bytes. */
LBMExpDLL int lbmmon_rctl_attr_setopt(lbmmon_rctl_attr_t *Attributes, int Option, void *Value, size_t Length);

/** Reads an option in binary form. *optlen is the room in bytes and becomes the size. */
LBMExpDLL int lbmmon_rctl_attr_getopt(lbmmon_rctl_attr_t *Attributes, int Option, void *Value, size_t *Length);

/** Starts receiving: modules, their options and the callbacks of Attributes. */
LBMExpDLL int lbmmon_rctl_create(lbmmon_rctl_t **Control, const lbmmon_format_func_t *Format, const void *FormatOptions,
                                 const lbmmon_transport_func_t *Transport, const void *TransportOptions,
                                 lbmmon_rctl_attr_t *Attributes, void *ClientData);

/** Samples the object every Seconds seconds, only on lbmmon_sctl_sample() when 0. */
LBMExpDLL int lbmmon_context_monitor(lbmmon_sctl_t *Control, lbm_context_t *Context, const char *ApplicationSourceID,
                                     unsigned int Seconds);

/** Stops sampling the object; waits for a running sample. */
LBMExpDLL int lbmmon_context_unmonitor(lbmmon_sctl_t *Control, lbm_context_t *Context);

/** Samples the object every Seconds seconds, only on lbmmon_sctl_sample() when 0. */
LBMExpDLL int lbmmon_src_monitor(lbmmon_sctl_t *Control, lbm_src_t *Source, const char *ApplicationSourceID,
                                 unsigned int Seconds);

/** Samples the object every Seconds seconds, only on lbmmon_sctl_sample() when 0. */
LBMExpDLL int lbmmon_ssrc_monitor(lbmmon_sctl_t *Control, lbm_ssrc_t *SmartSource, const char *ApplicationSourceID,
                                  unsigned int Seconds);

/** Stops sampling the object; waits for a running sample. */
LBMExpDLL int lbmmon_src_unmonitor(lbmmon_sctl_t *Control, lbm_src_t *Source);

/** Stops sampling the object; waits for a running sample. */
LBMExpDLL int lbmmon_ssrc_unmonitor(lbmmon_sctl_t *Control, lbm_ssrc_t *SmartSource);

/** Samples the object every Seconds seconds, only on lbmmon_sctl_sample() when 0. */
LBMExpDLL int lbmmon_rcv_monitor(lbmmon_sctl_t *Control, lbm_rcv_t *Receiver, const char *ApplicationSourceID,
                                 unsigned int Seconds);

/** Stops sampling the object; waits for a running sample. */
LBMExpDLL int lbmmon_rcv_unmonitor(lbmmon_sctl_t *Control, lbm_rcv_t *Receiver);

/** Samples the object every Seconds seconds, only on lbmmon_sctl_sample() when 0. */
LBMExpDLL int lbmmon_evq_monitor(lbmmon_sctl_t *Control, lbm_event_queue_t *EventQueue, const char *ApplicationSourceID,
                                 unsigned int Seconds);

/** Stops sampling the object; waits for a running sample. */
LBMExpDLL int lbmmon_evq_unmonitor(lbmmon_sctl_t *Control, lbm_event_queue_t *EventQueue);

/** Ends it; waits for its thread. */
LBMExpDLL int lbmmon_sctl_destroy(lbmmon_sctl_t *Control);

/** Ends it; waits for its thread. */
LBMExpDLL int lbmmon_rctl_destroy(lbmmon_rctl_t *Control);

/** Samples all objects now. */
LBMExpDLL int lbmmon_sctl_sample(lbmmon_sctl_t *Control);

/** Samples all objects now. */
LBMExpDLL int lbmmon_sctl_sample_ex(lbmmon_sctl_t *Control, const char *ApplicationSourceID);

/** Attribute of a received packet; only inside a callback. -1 when absent. */
LBMExpDLL int lbmmon_attr_get_ipv4sender(const void *AttributeBlock, lbm_uint_t *Address);

/** Attribute of a received packet; only inside a callback. -1 when absent. */
LBMExpDLL int lbmmon_attr_get_timestamp(const void *AttributeBlock, time_t *Timestamp);

/** Attribute of a received packet; only inside a callback. -1 when absent. */
LBMExpDLL int lbmmon_attr_get_appsourceid(const void *AttributeBlock, char *ApplicationSourceID, size_t Length);

/** Attribute of a received packet; only inside a callback. -1 when absent. */
LBMExpDLL int lbmmon_attr_get_objectid(const void *AttributeBlock, lbm_ulong_t *ObjectID);

/** Attribute of a received packet; only inside a callback. -1 when absent. */
LBMExpDLL int lbmmon_attr_get_contextid(const void *AttributeBlock, lbm_ulong_t *ContextID);

/** Attribute of a received packet; only inside a callback. -1 when absent. */
LBMExpDLL int lbmmon_attr_get_processid(const void *AttributeBlock, lbm_ulong_t *ProcessID);

/** Attribute of a received packet; only inside a callback. -1 when absent. */
LBMExpDLL int lbmmon_attr_get_source(const void *AttributeBlock, lbm_ulong_t *Source);

/** Attribute of a received packet; only inside a callback. -1 when absent. */
LBMExpDLL int lbmmon_attr_get_ctxinst(const void *AttributeBlock, lbm_uint8_t *ContextInstance, size_t Length);

/** Attribute of a received packet; only inside a callback. -1 when absent. */
LBMExpDLL int lbmmon_attr_get_domainid(const void *AttributeBlock, lbm_uint32_t *DomainID);

/** LBMMON_E* number of the last failure on this thread. */
LBMExpDLL int lbmmon_errnum(void);

/** Its text. */
LBMExpDLL const char *lbmmon_errmsg(void);

/** Next "key=value" of a list separated by semicolons; returns the rest, NULL at the end. */
LBMExpDLL const char *lbmmon_next_key_value_pair(const char *String, char *Key, size_t KeySize, char *Value,
                                                 size_t ValueSize);

/** Writes a control command. */
LBMExpDLL int lbmmon_control_serialize(char *Destination, size_t *Size, int Command, char *Data, int NodeType,
                                       char *ApplicationSourceID);

/** Lists what is known, as text. */
LBMExpDLL const char *lbmmon_control_valid_commands(void);

/** Lists what is known, as text. */
LBMExpDLL const char *lbmmon_control_valid_node_types(void);

/** Number of a command or node type, -1 when unknown. */
LBMExpDLL int lbmmon_control_index_for_command(char *Command);

/** Number of a command or node type, -1 when unknown. */
LBMExpDLL int lbmmon_control_index_for_node_type(char *NodeType);

/** Reads a file; the caller frees *Data with free(). */
LBMExpDLL int lbmmon_control_load_data_from_filename(char *Filename, char **Data);

/** Prints the default filters. */
LBMExpDLL int lbmmon_control_dump_default_filter_options(void);

/** Text of the last control error. */
LBMExpDLL const char *lbmmon_control_errmsg(void);

/** Puts a packet header before data. */
LBMExpDLL void lbmmon_add_header(char *Packet, const char *Data, size_t Length, int PacketType);

#ifdef __cplusplus
}
#endif

#include "lbm/lbmmonfmtcsv.h"
#include "lbm/lbmmonfmtpb.h"
#include "lbm/lbmmontrlbm.h"
#include "lbm/lbmmontrudp.h"
#include "lbm/lbmmontrlbmsnmp.h"

#endif
