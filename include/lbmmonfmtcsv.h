/** lbmmonfmtcsv.h - the monitoring format module that writes statistics as comma-separated values. */
#ifndef LBM_LBMMONFMTCSV_H_INCLUDED
#define LBM_LBMMONFMTCSV_H_INCLUDED

#include <stdlib.h>
#include "lbm/lbmmon.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Function table of the module; static. */
LBMExpDLL const lbmmon_format_func_t *lbmmon_format_csv_module(void);

/** Starts the module. */
LBMExpDLL int lbmmon_format_csv_init(void **FormatClientData, const void *FormatOptions);

/** Encodes one kind of statistics; *Size is the room in bytes and becomes the length. */
LBMExpDLL int lbmmon_rcv_format_csv_serialize(char *Destination, size_t *Size, unsigned short *ModuleID,
                                              const lbmmon_packet_attributes_t *Attributes,
                                              const lbm_rcv_transport_stats_t *Statistics, void *FormatClientData);

/** Encodes one kind of statistics; *Size is the room in bytes and becomes the length. */
LBMExpDLL int lbmmon_src_format_csv_serialize(char *Destination, size_t *Size, unsigned short *ModuleID,
                                              const lbmmon_packet_attributes_t *Attributes,
                                              const lbm_src_transport_stats_t *Statistics, void *FormatClientData);

/** Encodes one kind of statistics; *Size is the room in bytes and becomes the length. */
LBMExpDLL int lbmmon_evq_format_csv_serialize(char *Destination, size_t *Size, unsigned short *ModuleID,
                                              const lbmmon_packet_attributes_t *Attributes,
                                              const lbm_event_queue_stats_t *Statistics, void *FormatClientData);

/** Encodes one kind of statistics; *Size is the room in bytes and becomes the length. */
LBMExpDLL int lbmmon_ctx_format_csv_serialize(char *Destination, size_t *Size, unsigned short *ModuleID,
                                              const lbmmon_packet_attributes_t *Attributes,
                                              const lbm_context_stats_t *Statistics, void *FormatClientData);

/** Decodes one kind of statistics. */
LBMExpDLL int lbmmon_rcv_format_csv_deserialize(lbmmon_packet_attributes_t *Attributes,
                                                lbm_rcv_transport_stats_t *Statistics, const char *Source,
                                                size_t Length, unsigned short ModuleID, void *FormatClientData);

/** Decodes one kind of statistics. */
LBMExpDLL int lbmmon_src_format_csv_deserialize(lbmmon_packet_attributes_t *Attributes,
                                                lbm_src_transport_stats_t *Statistics, const char *Source,
                                                size_t Length, unsigned short ModuleID, void *FormatClientData);

/** Decodes one kind of statistics. */
LBMExpDLL int lbmmon_evq_format_csv_deserialize(lbmmon_packet_attributes_t *Attributes,
                                                lbm_event_queue_stats_t *Statistics, const char *Source, size_t Length,
                                                unsigned short ModuleID, void *FormatClientData);

/** Decodes one kind of statistics. */
LBMExpDLL int lbmmon_ctx_format_csv_deserialize(lbmmon_packet_attributes_t *Attributes, lbm_context_stats_t *Statistics,
                                                const char *Source, size_t Length, unsigned short ModuleID,
                                                void *FormatClientData);

/** Encodes one kind of statistics; *Size is the room in bytes and becomes the length. */
LBMExpDLL int lbmmon_rcv_topic_format_csv_serialize(char *Destination, size_t *Size, unsigned short *ModuleID,
                                                    const lbmmon_packet_attributes_t *Attributes, const char *Topic,
                                                    lbm_ulong_t SourceCount, const lbm_rcv_topic_stats_t *Sources,
                                                    void *FormatClientData);

/** Decodes one kind of statistics. */
LBMExpDLL int lbmmon_rcv_topic_format_csv_deserialize(lbmmon_packet_attributes_t *Attributes, size_t *Count,
                                                      lbm_rcv_topic_stats_t *Statistics, const char *Source,
                                                      size_t Length, unsigned short ModuleID, void *FormatClientData);

/** Encodes one kind of statistics; *Size is the room in bytes and becomes the length. */
LBMExpDLL int lbmmon_wildcard_rcv_format_csv_serialize(char *Destination, size_t *Size, unsigned short *ModuleID,
                                                       const lbmmon_packet_attributes_t *Attributes,
                                                       const lbm_wildcard_rcv_stats_t *Statistics,
                                                       void *FormatClientData);

/** Decodes one kind of statistics. */
LBMExpDLL int lbmmon_wildcard_rcv_format_csv_deserialize(lbmmon_packet_attributes_t *Attributes,
                                                         lbm_wildcard_rcv_stats_t *Statistics, const char *Source,
                                                         size_t Length, unsigned short ModuleID,
                                                         void *FormatClientData);

/** Encodes one kind of statistics; *Size is the room in bytes and becomes the length. */
LBMExpDLL int lbmmon_store_format_csv_serialize(char *Destination, size_t *Size, unsigned short *ModuleID,
                                                const lbmmon_packet_attributes_t *Attributes,
                                                Lbmmon__UMPMonMsg *StoreMsg, int Action, void *FormatClientData);

/** Decodes one kind of statistics. */
LBMExpDLL int lbmmon_store_format_csv_deserialize(lbmmon_packet_attributes_t *Attributes, Lbmmon__UMPMonMsg **StoreMsg,
                                                  const char *Source, size_t Length, unsigned short ModuleID,
                                                  void *FormatClientData);

/** Encodes one kind of statistics; *Size is the room in bytes and becomes the length. */
LBMExpDLL int lbmmon_gateway_format_csv_serialize(char *Destination, size_t *Size, unsigned short *ModuleID,
                                                  const lbmmon_packet_attributes_t *Attributes,
                                                  Lbmmon__DROMonMsg *GatewayMsg, void *FormatClientData);

/** Decodes one kind of statistics. */
LBMExpDLL int lbmmon_gateway_format_csv_deserialize(lbmmon_packet_attributes_t *Attributes,
                                                    Lbmmon__DROMonMsg **GatewayMsg, const char *Source, size_t Length,
                                                    unsigned short ModuleID, void *FormatClientData);

/** Ends the module. */
LBMExpDLL int lbmmon_format_csv_finish(void *FormatClientData);

/** Last error of the module. */
LBMExpDLL const char *lbmmon_format_csv_errmsg(void);

#ifdef __cplusplus
}
#endif

#endif
