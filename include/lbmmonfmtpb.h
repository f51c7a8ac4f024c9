/** lbmmonfmtpb.h - the monitoring format module that writes statistics as protocol buffers. */
#ifndef LBM_LBMMONFMTPB_H_INCLUDED
#define LBM_LBMMONFMTPB_H_INCLUDED

#include <stdlib.h>
#include "lbm/lbmmon.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Versions of this format. */
#define LBMMON_FORMAT_PB_VERSION_1 1
#define LBMMON_FORMAT_PB_VERSION_CURRENT 1

/** Function table of the module; static. */
LBMExpDLL const lbmmon_format_func_t *lbmmon_format_pb_module(void);

/**
 * Starts the module. FormatOptions: `passthrough=off|on|convert`, and filters, one rule in each option or line, which
 * the functions that encode follow: filter|FIELD=off            never send the field, or the message that it is
 *   filter|FIELD=on             send it (the default)
 *   filter|FIELD=eq|ne|lt|gt N  send it if it compares so
 *   select|FIELD=eq|ne|lt|gt N  send the record, or the element of a list, that has the field only if it compares so
 *   select|FIELD=match TEXT     or if it is this text
 *   select|FIELD=match_regx P   or if this pattern (PCRE) is found in it
 * FIELD is a path of the .proto files, beginning with ums, ump or dro, as in ums.stats.receiver_transports.lbtrm.lost.
 * Enumerations compare by number or name. 0 or -1; lbmmon_format_pb_errmsg() names a wrong rule.
 */
LBMExpDLL int lbmmon_format_pb_init(void **FormatClientData, const void *FormatOptions);

/**
 * Changes options while running; wrong ones change nothing. Rules take the place of all before; a text without any
 * brings back those that the module was started with. Not while another thread uses the module's data.
 */
LBMExpDLL int lbmmon_format_pb_apply_format_options(void *FormatClientData, const void *FormatOptions);

/**
 * Writes the rules that hold unless others are set, as text that lbmmon_format_pb_apply_format_options() takes: each
 * field of the library's own records with `on`, then the rules that the module was started with (FormatClientData NULL:
 * none). Size in bytes; about 16 KiB are needed. 0; -1: no room.
 */
LBMExpDLL int lbmmon_format_pb_default_filter_options(void *FormatClientData, char *FormatOptions, size_t Size);

/** As lbmmon_format_pb_default_filter_options(), each field of the records of stores. About 8 KiB are needed. */
LBMExpDLL int lbmmon_format_pb_default_store_filter_options(char *FormatOptions, size_t Size);

/**
 * Encodes one kind of statistics; *Size is the room in bytes and becomes the length. 0; -1: an error; 1: a filter keeps
 * the record back, nothing is to be sent. So do the others.
 */
LBMExpDLL int lbmmon_rcv_format_pb_serialize(char *Destination, size_t *Size, unsigned short *ModuleID,
                                             const lbmmon_packet_attributes_t *Attributes,
                                             const lbm_rcv_transport_stats_t *Statistics, void *FormatClientData);

/** Encodes one kind of statistics; *Size is the room in bytes and becomes the length. */
LBMExpDLL int lbmmon_src_format_pb_serialize(char *Destination, size_t *Size, unsigned short *ModuleID,
                                             const lbmmon_packet_attributes_t *Attributes,
                                             const lbm_src_transport_stats_t *Statistics, void *FormatClientData);

/** Encodes one kind of statistics; *Size is the room in bytes and becomes the length. */
LBMExpDLL int lbmmon_evq_format_pb_serialize(char *Destination, size_t *Size, unsigned short *ModuleID,
                                             const lbmmon_packet_attributes_t *Attributes,
                                             const lbm_event_queue_stats_t *Statistics, void *FormatClientData);

/** Encodes one kind of statistics; *Size is the room in bytes and becomes the length. */
LBMExpDLL int lbmmon_ctx_format_pb_serialize(char *Destination, size_t *Size, unsigned short *ModuleID,
                                             const lbmmon_packet_attributes_t *Attributes,
                                             const lbm_context_stats_t *Statistics, void *FormatClientData);

/** Decodes one kind of statistics. */
LBMExpDLL int lbmmon_rcv_format_pb_deserialize(lbmmon_packet_attributes_t *Attributes,
                                               lbm_rcv_transport_stats_t *Statistics, const char *Source, size_t Length,
                                               unsigned short ModuleID, void *FormatClientData);

/** Decodes one kind of statistics. */
LBMExpDLL int lbmmon_src_format_pb_deserialize(lbmmon_packet_attributes_t *Attributes,
                                               lbm_src_transport_stats_t *Statistics, const char *Source, size_t Length,
                                               unsigned short ModuleID, void *FormatClientData);

/** Decodes one kind of statistics. */
LBMExpDLL int lbmmon_evq_format_pb_deserialize(lbmmon_packet_attributes_t *Attributes,
                                               lbm_event_queue_stats_t *Statistics, const char *Source, size_t Length,
                                               unsigned short ModuleID, void *FormatClientData);

/** Decodes one kind of statistics. */
LBMExpDLL int lbmmon_ctx_format_pb_deserialize(lbmmon_packet_attributes_t *Attributes, lbm_context_stats_t *Statistics,
                                               const char *Source, size_t Length, unsigned short ModuleID,
                                               void *FormatClientData);

/** Encodes one kind of statistics; *Size is the room in bytes and becomes the length. */
LBMExpDLL int lbmmon_rcv_topic_format_pb_serialize(char *Destination, size_t *Size, unsigned short *ModuleID,
                                                   const lbmmon_packet_attributes_t *Attributes, const char *Topic,
                                                   lbm_ulong_t SourceCount, const lbm_rcv_topic_stats_t *Sources,
                                                   void *FormatClientData);

/** Decodes one kind of statistics. */
LBMExpDLL int lbmmon_rcv_topic_format_pb_deserialize(lbmmon_packet_attributes_t *Attributes, size_t *Count,
                                                     lbm_rcv_topic_stats_t *Statistics, const char *Source,
                                                     size_t Length, unsigned short ModuleID, void *FormatClientData);

/** Encodes one kind of statistics; *Size is the room in bytes and becomes the length. */
LBMExpDLL int lbmmon_wildcard_rcv_format_pb_serialize(char *Destination, size_t *Size, unsigned short *ModuleID,
                                                      const lbmmon_packet_attributes_t *Attributes,
                                                      const lbm_wildcard_rcv_stats_t *Statistics,
                                                      void *FormatClientData);

/** Decodes one kind of statistics. */
LBMExpDLL int lbmmon_wildcard_rcv_format_pb_deserialize(lbmmon_packet_attributes_t *Attributes,
                                                        lbm_wildcard_rcv_stats_t *Statistics, const char *Source,
                                                        size_t Length, unsigned short ModuleID, void *FormatClientData);

/** Encodes one kind of statistics; *Size is the room in bytes and becomes the length. */
LBMExpDLL int lbmmon_store_format_pb_serialize(char *Destination, size_t *Size, unsigned short *ModuleID,
                                               const lbmmon_packet_attributes_t *Attributes,
                                               Lbmmon__UMPMonMsg *StoreMsg, int Action, void *FormatClientData);

/** Decodes one kind of statistics. */
LBMExpDLL int lbmmon_store_format_pb_deserialize(lbmmon_packet_attributes_t *Attributes, Lbmmon__UMPMonMsg **StoreMsg,
                                                 const char *Source, size_t Length, unsigned short ModuleID,
                                                 void *FormatClientData);

/**
 * Of an option string, the rules about records of stores, as an option string that the caller frees with free(); it may
 * be empty. NULL: a rule is wrong, or there is no memory.
 */
LBMExpDLL char *lbmmon_store_format_pb_filter_options(const char *FormatOptions);

/** Frees a decoded message. */
LBMExpDLL int lbmmon_store_free_unpacked(Lbmmon__UMPMonMsg *StoreMsg);

/** Encodes one kind of statistics; *Size is the room in bytes and becomes the length. */
LBMExpDLL int lbmmon_gateway_format_pb_serialize(char *Destination, size_t *Size, unsigned short *ModuleID,
                                                 const lbmmon_packet_attributes_t *Attributes,
                                                 Lbmmon__DROMonMsg *GatewayMsg, void *FormatClientData);

/** Decodes one kind of statistics. */
LBMExpDLL int lbmmon_gateway_format_pb_deserialize(lbmmon_packet_attributes_t *Attributes,
                                                   Lbmmon__DROMonMsg **GatewayMsg, const char *Source, size_t Length,
                                                   unsigned short ModuleID, void *FormatClientData);

/** Frees a decoded message. */
LBMExpDLL int lbmmon_gateway_free_unpacked(Lbmmon__DROMonMsg *GatewayMsg);

/** Ends the module. */
LBMExpDLL int lbmmon_format_pb_finish(void *FormatClientData);

/** Last error of the module. */
LBMExpDLL const char *lbmmon_format_pb_errmsg(void);

#ifdef __cplusplus
}
#endif

#endif
