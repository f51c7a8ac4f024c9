/* The format module `csv`: writes version 5, reads versions 1 to 5. Owns its options, one set for each controller.
 * Called by the sampling thread, the receive thread, and by applications that use the module themselves. */
#include <string.h>

#include <lbm/lbmmon.h>

#include "base/um_mem.h"
#include "lbmmon/um_mon_csv_text.h"
#include "lbmmon/um_mon_error.h"
#include "lbmmon/um_mon_options.h"

enum { CSV_VERSION = 5, CSV_OLDEST = 1, OTID_LEN = 32 };

struct csv {
    char separator;
    int passthrough; /* LBMMON_FORMAT_PASSTHROUGH_* */
};

static const struct csv defaults = {',', LBMMON_FORMAT_PASSTHROUGH_OFF};

static int fail(const char *api, const char *why)
{
    return um_mon_module_error(UM_MON_CSV, "%s: %s", api, why);
}

/* ---- life ---- */

static int set_option(struct csv *csv, const struct um_mon_option *option)
{
    if (strcmp(option->name, "separator") == 0) {
        if (strlen(option->value) != 1 || strchr("0123456789abcdefABCDEF\"", option->value[0]) != NULL) {
            return um_mon_module_error(UM_MON_CSV, "separator \"%.40s\": must be one character, no digit and no quote",
                                       option->value);
        }
        csv->separator = option->value[0];
    } else if (strcmp(option->name, "passthrough") == 0) {
        csv->passthrough = um_mon_passthrough(option->value);
        if (csv->passthrough < 0) {
            return um_mon_module_error(UM_MON_CSV, "passthrough \"%.40s\": must be off, on or convert", option->value);
        }
    }
    return 0;
}

int lbmmon_format_csv_init(void **FormatClientData, const void *FormatOptions)
{
    if (FormatClientData == NULL) {
        return fail(__func__, "FormatClientData: must not be NULL");
    }
    struct csv *csv = um_malloc(sizeof *csv);
    if (csv == NULL) {
        return fail(__func__, "out of memory");
    }
    *csv = defaults;
    struct um_mon_option option;
    const char *rest = FormatOptions;
    while ((rest = um_mon_option_next(rest, &option)) != NULL) {
        if (set_option(csv, &option) != 0) {
            um_free(csv);
            return -1;
        }
    }
    *FormatClientData = csv;
    return 0;
}

int lbmmon_format_csv_finish(void *FormatClientData)
{
    um_free(FormatClientData);
    return 0;
}

const char *lbmmon_format_csv_errmsg(void)
{
    return um_mon_module_errmsg(UM_MON_CSV);
}

/* ---- writing ---- */

static int begin_writing(struct um_mon_csv_writer *w, char *out, const size_t *size, const unsigned short *id,
                         const void *statistics, const void *client_data, const char *api)
{
    if (out == NULL || size == NULL || id == NULL || statistics == NULL) {
        return fail(api, "Destination, Size, ModuleID and Statistics: must not be NULL");
    }
    const struct csv *csv = client_data != NULL ? client_data : &defaults;
    *w = (struct um_mon_csv_writer){.out = out, .room = *size, .separator = csv->separator};
    return 0;
}

static int end_writing(const struct um_mon_csv_writer *w, size_t *size, unsigned short *id, const char *api)
{
    if (w->len > w->room) {
        return um_mon_module_error(UM_MON_CSV, "%s: Size %zu: must be at least %zu", api, w->room, w->len);
    }
    *size = w->len;
    *id = MAKE_MODULE_VERSION(LBMMON_FORMAT_CSV_MODULE_ID, CSV_VERSION);
    return 0;
}

static int unknown_transport(const char *api, int type)
{
    return um_mon_module_error(UM_MON_CSV, "%s: transport type %d: must be one of LBM_TRANSPORT_STAT_*", api, type);
}

int lbmmon_rcv_format_csv_serialize(char *Destination, size_t *Size, unsigned short *ModuleID,
                                    const lbmmon_packet_attributes_t *Attributes,
                                    const lbm_rcv_transport_stats_t *Statistics, void *FormatClientData)
{
    struct um_mon_csv_writer w;
    if (begin_writing(&w, Destination, Size, ModuleID, Statistics, FormatClientData, __func__) != 0) {
        return -1;
    }
    const struct um_mon_record *record = um_mon_rcv_record(Statistics->type);
    if (record == NULL) {
        return unknown_transport(__func__, Statistics->type);
    }
    um_mon_csv_put_decimal(&w, Statistics->type);
    um_mon_csv_put_text(&w, Statistics->source, sizeof Statistics->source);
    um_mon_csv_put_record(&w, record, &Statistics->transport);
    return end_writing(&w, Size, ModuleID, __func__);
}

int lbmmon_src_format_csv_serialize(char *Destination, size_t *Size, unsigned short *ModuleID,
                                    const lbmmon_packet_attributes_t *Attributes,
                                    const lbm_src_transport_stats_t *Statistics, void *FormatClientData)
{
    struct um_mon_csv_writer w;
    if (begin_writing(&w, Destination, Size, ModuleID, Statistics, FormatClientData, __func__) != 0) {
        return -1;
    }
    const struct um_mon_record *record = um_mon_src_record(Statistics->type);
    if (record == NULL) {
        return unknown_transport(__func__, Statistics->type);
    }
    um_mon_csv_put_decimal(&w, Statistics->type);
    um_mon_csv_put_text(&w, Statistics->source, sizeof Statistics->source);
    um_mon_csv_put_record(&w, record, &Statistics->transport);
    return end_writing(&w, Size, ModuleID, __func__);
}

int lbmmon_evq_format_csv_serialize(char *Destination, size_t *Size, unsigned short *ModuleID,
                                    const lbmmon_packet_attributes_t *Attributes,
                                    const lbm_event_queue_stats_t *Statistics, void *FormatClientData)
{
    struct um_mon_csv_writer w;
    if (begin_writing(&w, Destination, Size, ModuleID, Statistics, FormatClientData, __func__) != 0) {
        return -1;
    }
    um_mon_csv_put_record(&w, &um_mon_evq_record, Statistics);
    return end_writing(&w, Size, ModuleID, __func__);
}

int lbmmon_ctx_format_csv_serialize(char *Destination, size_t *Size, unsigned short *ModuleID,
                                    const lbmmon_packet_attributes_t *Attributes, const lbm_context_stats_t *Statistics,
                                    void *FormatClientData)
{
    struct um_mon_csv_writer w;
    if (begin_writing(&w, Destination, Size, ModuleID, Statistics, FormatClientData, __func__) != 0) {
        return -1;
    }
    um_mon_csv_put_record(&w, &um_mon_context_record, Statistics);
    return end_writing(&w, Size, ModuleID, __func__);
}

int lbmmon_rcv_topic_format_csv_serialize(char *Destination, size_t *Size, unsigned short *ModuleID,
                                          const lbmmon_packet_attributes_t *Attributes, const char *Topic,
                                          lbm_ulong_t SourceCount, const lbm_rcv_topic_stats_t *Sources,
                                          void *FormatClientData)
{
    struct um_mon_csv_writer w;
    if (begin_writing(&w, Destination, Size, ModuleID, Topic, FormatClientData, __func__) != 0) {
        return -1;
    }
    if (SourceCount > 0 && Sources == NULL) {
        return fail(__func__, "Sources: must not be NULL");
    }
    um_mon_csv_put_text(&w, Topic, sizeof Sources->topic);
    um_mon_csv_put_hex(&w, SourceCount);
    for (lbm_ulong_t i = 0; i < SourceCount; i++) {
        um_mon_csv_put_text(&w, Sources[i].source, sizeof Sources[i].source);
        um_mon_csv_put_bytes(&w, Sources[i].otid, OTID_LEN);
        um_mon_csv_put_hex(&w, Sources[i].topic_idx);
    }
    return end_writing(&w, Size, ModuleID, __func__);
}

int lbmmon_wildcard_rcv_format_csv_serialize(char *Destination, size_t *Size, unsigned short *ModuleID,
                                             const lbmmon_packet_attributes_t *Attributes,
                                             const lbm_wildcard_rcv_stats_t *Statistics, void *FormatClientData)
{
    struct um_mon_csv_writer w;
    if (begin_writing(&w, Destination, Size, ModuleID, Statistics, FormatClientData, __func__) != 0) {
        return -1;
    }
    um_mon_csv_put_text(&w, Statistics->pattern, sizeof Statistics->pattern);
    um_mon_csv_put_hex(&w, Statistics->type);
    return end_writing(&w, Size, ModuleID, __func__);
}

/* ---- reading ---- */

/* 0: go on; LBMMON_FORMAT_DESERIALIZE_*: that is the answer. */
static int begin_reading(struct um_mon_csv_reader *r, const char *source, size_t len, unsigned short id,
                         const void *out, const void *client_data, const char *api)
{
    const struct csv *csv = client_data != NULL ? client_data : &defaults;
    if (source == NULL || out == NULL) {
        return fail(api, "Source and Statistics: must not be NULL");
    }
    if (MODULE_ID(id) != LBMMON_FORMAT_CSV_MODULE_ID || MODULE_VERSION(id) < CSV_OLDEST ||
        MODULE_VERSION(id) > CSV_VERSION) {
        return um_mon_module_error(UM_MON_CSV, "%s: module id 0x%04x: must be CSV (1) of version %d to %d", api, id,
                                   CSV_OLDEST, CSV_VERSION);
    }
    um_mon_csv_reader_init(r, source, len, csv->separator);
    return csv->passthrough == LBMMON_FORMAT_PASSTHROUGH_ON ? LBMMON_FORMAT_DESERIALIZE_PASSTHROUGH : 0;
}

static int end_reading(bool good, const void *client_data, const char *api)
{
    const struct csv *csv = client_data != NULL ? client_data : &defaults;
    if (!good) {
        return fail(api, "the record has a field that is missing or makes no sense");
    }
    return csv->passthrough == LBMMON_FORMAT_PASSTHROUGH_CONVERT ? LBMMON_FORMAT_DESERIALIZE_CONVERT_PASSTHROUGH
                                                                 : LBMMON_FORMAT_DESERIALIZE_OK;
}

/* Versions before the present one had fewer fields. */
static bool may_miss(unsigned short id)
{
    return MODULE_VERSION(id) < CSV_VERSION;
}

int lbmmon_rcv_format_csv_deserialize(lbmmon_packet_attributes_t *Attributes, lbm_rcv_transport_stats_t *Statistics,
                                      const char *Source, size_t Length, unsigned short ModuleID,
                                      void *FormatClientData)
{
    struct um_mon_csv_reader r;
    int rc = begin_reading(&r, Source, Length, ModuleID, Statistics, FormatClientData, __func__);
    if (rc != 0) {
        return rc;
    }
    memset(Statistics, 0, sizeof *Statistics);
    const struct um_mon_record *record = NULL;
    bool good = um_mon_csv_get_decimal(&r, &Statistics->type) &&
                um_mon_csv_get_text(&r, Statistics->source, sizeof Statistics->source) &&
                (record = um_mon_rcv_record(Statistics->type)) != NULL &&
                um_mon_csv_get_record(&r, record, may_miss(ModuleID), &Statistics->transport);
    return end_reading(good, FormatClientData, __func__);
}

int lbmmon_src_format_csv_deserialize(lbmmon_packet_attributes_t *Attributes, lbm_src_transport_stats_t *Statistics,
                                      const char *Source, size_t Length, unsigned short ModuleID,
                                      void *FormatClientData)
{
    struct um_mon_csv_reader r;
    int rc = begin_reading(&r, Source, Length, ModuleID, Statistics, FormatClientData, __func__);
    if (rc != 0) {
        return rc;
    }
    memset(Statistics, 0, sizeof *Statistics);
    const struct um_mon_record *record = NULL;
    bool good = um_mon_csv_get_decimal(&r, &Statistics->type) &&
                um_mon_csv_get_text(&r, Statistics->source, sizeof Statistics->source) &&
                (record = um_mon_src_record(Statistics->type)) != NULL &&
                um_mon_csv_get_record(&r, record, may_miss(ModuleID), &Statistics->transport);
    return end_reading(good, FormatClientData, __func__);
}

int lbmmon_evq_format_csv_deserialize(lbmmon_packet_attributes_t *Attributes, lbm_event_queue_stats_t *Statistics,
                                      const char *Source, size_t Length, unsigned short ModuleID,
                                      void *FormatClientData)
{
    struct um_mon_csv_reader r;
    int rc = begin_reading(&r, Source, Length, ModuleID, Statistics, FormatClientData, __func__);
    return rc != 0 ? rc
                   : end_reading(um_mon_csv_get_record(&r, &um_mon_evq_record, may_miss(ModuleID), Statistics),
                                 FormatClientData, __func__);
}

int lbmmon_ctx_format_csv_deserialize(lbmmon_packet_attributes_t *Attributes, lbm_context_stats_t *Statistics,
                                      const char *Source, size_t Length, unsigned short ModuleID,
                                      void *FormatClientData)
{
    struct um_mon_csv_reader r;
    int rc = begin_reading(&r, Source, Length, ModuleID, Statistics, FormatClientData, __func__);
    return rc != 0 ? rc
                   : end_reading(um_mon_csv_get_record(&r, &um_mon_context_record, may_miss(ModuleID), Statistics),
                                 FormatClientData, __func__);
}

static bool read_topic_source(struct um_mon_csv_reader *r, const char *topic, lbm_rcv_topic_stats_t *out)
{
    unsigned long long index;
    memset(out, 0, sizeof *out);
    memcpy(out->topic, topic, sizeof out->topic);
    out->flags = LBM_RCV_TOPIC_STATS_FLAG_SRC_CREATED;
    bool good = um_mon_csv_get_text(r, out->source, sizeof out->source) &&
                um_mon_csv_get_bytes(r, out->otid, OTID_LEN) && um_mon_csv_get_hex(r, &index);
    out->topic_idx = good ? (lbm_uint32_t)index : 0;
    return good;
}

/* One element for each source; a topic without sources has one that says so. */
int lbmmon_rcv_topic_format_csv_deserialize(lbmmon_packet_attributes_t *Attributes, size_t *Count,
                                            lbm_rcv_topic_stats_t *Statistics, const char *Source, size_t Length,
                                            unsigned short ModuleID, void *FormatClientData)
{
    struct um_mon_csv_reader r;
    int rc = begin_reading(&r, Source, Length, ModuleID, Count, FormatClientData, __func__);
    if (rc != 0) {
        return rc;
    }
    char topic[sizeof Statistics->topic] = "";
    unsigned long long sources;
    if (!um_mon_csv_get_text(&r, topic, sizeof topic) || !um_mon_csv_get_hex(&r, &sources) ||
        sources > Length / (2 * OTID_LEN)) {
        return fail(__func__, "the record has a field that is missing or makes no sense");
    }
    size_t room = *Count;
    *Count = sources > 0 ? (size_t)sources : 1;
    if (*Count > room || Statistics == NULL) {
        fail(__func__, "Count: too small");
        return LBMMON_FORMAT_DESERIALIZE_TOO_SMALL;
    }
    bool good = true;
    if (sources == 0) {
        memset(Statistics, 0, sizeof *Statistics);
        memcpy(Statistics->topic, topic, sizeof topic);
    }
    for (size_t i = 0; i < sources && good; i++) {
        good = read_topic_source(&r, topic, &Statistics[i]);
    }
    return end_reading(good, FormatClientData, __func__);
}

int lbmmon_wildcard_rcv_format_csv_deserialize(lbmmon_packet_attributes_t *Attributes,
                                               lbm_wildcard_rcv_stats_t *Statistics, const char *Source, size_t Length,
                                               unsigned short ModuleID, void *FormatClientData)
{
    struct um_mon_csv_reader r;
    int rc = begin_reading(&r, Source, Length, ModuleID, Statistics, FormatClientData, __func__);
    if (rc != 0) {
        return rc;
    }
    memset(Statistics, 0, sizeof *Statistics);
    unsigned long long type = 0;
    bool good =
        um_mon_csv_get_text(&r, Statistics->pattern, sizeof Statistics->pattern) && um_mon_csv_get_hex(&r, &type);
    Statistics->type = (lbm_uint8_t)type;
    return end_reading(good && type <= UINT8_MAX, FormatClientData, __func__);
}

/* ---- what CSV cannot say ---- */

static int protobuf_only(const char *api)
{
    return um_mon_module_error(UM_MON_CSV, "%s: stores and routers have records in the format pb only", api);
}

int lbmmon_store_format_csv_serialize(char *Destination, size_t *Size, unsigned short *ModuleID,
                                      const lbmmon_packet_attributes_t *Attributes, Lbmmon__UMPMonMsg *StoreMsg,
                                      int Action, void *FormatClientData)
{
    return protobuf_only(__func__);
}

int lbmmon_store_format_csv_deserialize(lbmmon_packet_attributes_t *Attributes, Lbmmon__UMPMonMsg **StoreMsg,
                                        const char *Source, size_t Length, unsigned short ModuleID,
                                        void *FormatClientData)
{
    return protobuf_only(__func__);
}

int lbmmon_gateway_format_csv_serialize(char *Destination, size_t *Size, unsigned short *ModuleID,
                                        const lbmmon_packet_attributes_t *Attributes, Lbmmon__DROMonMsg *GatewayMsg,
                                        void *FormatClientData)
{
    return protobuf_only(__func__);
}

int lbmmon_gateway_format_csv_deserialize(lbmmon_packet_attributes_t *Attributes, Lbmmon__DROMonMsg **GatewayMsg,
                                          const char *Source, size_t Length, unsigned short ModuleID,
                                          void *FormatClientData)
{
    return protobuf_only(__func__);
}

const lbmmon_format_func_t *lbmmon_format_csv_module(void)
{
    static const lbmmon_format_func_t table = {
        .mInit = lbmmon_format_csv_init,
        .mRcvSerialize = lbmmon_rcv_format_csv_serialize,
        .mSrcSerialize = lbmmon_src_format_csv_serialize,
        .mRcvDeserialize = lbmmon_rcv_format_csv_deserialize,
        .mSrcDeserialize = lbmmon_src_format_csv_deserialize,
        .mFinish = lbmmon_format_csv_finish,
        .mErrorMessage = lbmmon_format_csv_errmsg,
        .mEvqSerialize = lbmmon_evq_format_csv_serialize,
        .mEvqDeserialize = lbmmon_evq_format_csv_deserialize,
        .mCtxSerialize = lbmmon_ctx_format_csv_serialize,
        .mCtxDeserialize = lbmmon_ctx_format_csv_deserialize,
        .mRcvTopicSerialize = lbmmon_rcv_topic_format_csv_serialize,
        .mRcvTopicDeserialize = lbmmon_rcv_topic_format_csv_deserialize,
        .mWildcardRcvSerialize = lbmmon_wildcard_rcv_format_csv_serialize,
        .mWildcardRcvDeserialize = lbmmon_wildcard_rcv_format_csv_deserialize,
        .mStoreSerialize = lbmmon_store_format_csv_serialize,
        .mStoreDeserialize = lbmmon_store_format_csv_deserialize,
        .mGatewaySerialize = lbmmon_gateway_format_csv_serialize,
        .mGatewayDeserialize = lbmmon_gateway_format_csv_deserialize,
    };
    return &table;
}
