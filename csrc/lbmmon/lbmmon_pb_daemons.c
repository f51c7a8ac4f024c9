/* The format module `pb`: its life, its table, and the records of daemons, which are messages already (UMPMonMsg of
 * stores, DROMonMsg of routers) and pass through as they are. Owns the options of a controller. Called by the sampling
 * thread, the receive thread, and by applications that use the module themselves. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lbm/lbmmon.h>

#include "base/um_mem.h"
#include "lbmmon/um_mon_error.h"
#include "lbmmon/um_mon_options.h"
#include "lbmmon/um_mon_pb.h"
#include "lbmmon/um_mon_pb_module.h"

static const struct um_mon_pb_options defaults = {LBMMON_FORMAT_PASSTHROUGH_OFF, NULL, NULL};

/* ---- life ---- */

const struct um_mon_pb_options *um_mon_pb_options(const void *client_data)
{
    return client_data != NULL ? client_data : &defaults;
}

static int fail(const char *api, const char *why)
{
    return um_mon_module_error(UM_MON_PB, "%s: %s", api, why);
}

static int read_passthrough(int *passthrough, const char *text)
{
    struct um_mon_option option;
    while ((text = um_mon_option_next(text, &option)) != NULL) {
        if (strcmp(option.name, "passthrough") == 0) {
            int value = um_mon_passthrough(option.value);
            if (value < 0) {
                return um_mon_module_error(UM_MON_PB, "passthrough \"%.40s\": must be off, on or convert",
                                           option.value);
            }
            *passthrough = value;
        }
    }
    return 0;
}

/* All or nothing: with a wrong value the options stay as they were. Rules take the place of those before; a text
 * without any brings back those of the beginning. */
static int set_options(struct um_mon_pb_options *options, const char *text)
{
    int passthrough = options->passthrough;
    if (read_passthrough(&passthrough, text) != 0) {
        return -1;
    }
    struct um_mon_rules *rules = um_mon_rules_read(text);
    if (rules != NULL && !rules->given && options->first_rules != NULL) {
        um_mon_rules_free(rules);
        rules = um_mon_rules_read(options->first_rules);
    }
    if (rules == NULL) {
        return -1;
    }
    um_mon_rules_free(options->rules);
    options->rules = rules;
    options->passthrough = passthrough;
    return 0;
}

/* Rules as a text of its own. NULL: out of memory. */
static char *print_rules(const struct um_mon_rules *rules, const ProtobufCMessageDescriptor *record)
{
    size_t len = um_mon_rules_print(rules, record, NULL, 0);
    char *text = malloc(len + 1); /* applications free it */
    if (text == NULL) {
        um_mon_module_error(UM_MON_PB, "filters: out of memory");
    } else {
        um_mon_rules_print(rules, record, text, len + 1);
    }
    return text;
}

static int begin(struct um_mon_pb_options *options, const char *text)
{
    if (set_options(options, text) != 0) {
        return -1;
    }
    options->first_rules = print_rules(options->rules, NULL);
    return options->first_rules != NULL ? 0 : -1;
}

int lbmmon_format_pb_init(void **FormatClientData, const void *FormatOptions)
{
    if (FormatClientData == NULL) {
        return fail(__func__, "FormatClientData: must not be NULL");
    }
    struct um_mon_pb_options *options = um_malloc(sizeof *options);
    if (options == NULL) {
        return fail(__func__, "out of memory");
    }
    *options = defaults;
    if (begin(options, FormatOptions) != 0) {
        lbmmon_format_pb_finish(options);
        return -1;
    }
    *FormatClientData = options;
    return 0;
}

int lbmmon_format_pb_apply_format_options(void *FormatClientData, const void *FormatOptions)
{
    if (FormatClientData == NULL) {
        return fail(__func__, "FormatClientData: must not be NULL");
    }
    return set_options(FormatClientData, FormatOptions);
}

int lbmmon_format_pb_finish(void *FormatClientData)
{
    struct um_mon_pb_options *options = FormatClientData;
    if (options != NULL) {
        um_mon_rules_free(options->rules);
        free(options->first_rules);
    }
    um_free(options);
    return 0;
}

const char *lbmmon_format_pb_errmsg(void)
{
    return um_mon_module_errmsg(UM_MON_PB);
}

/* ---- shared by all records ---- */

int um_mon_pb_finish_writing(const void *message, char *destination, size_t *size, unsigned short *id,
                             const void *client_data, const char *api)
{
    const ProtobufCMessage *any = message;
    size_t room = *size;
    if (um_mon_pb_pack(message, destination, size) != 0) {
        return um_mon_module_error(UM_MON_PB, "%s: Size %zu: must be at least %zu", api, room, *size);
    }
    *id = MAKE_MODULE_VERSION(LBMMON_FORMAT_PB_MODULE_ID, LBMMON_FORMAT_PB_VERSION_CURRENT);
    return um_mon_rules_apply(um_mon_pb_options(client_data)->rules, any->descriptor, destination, size)
               ? 0
               : UM_MON_PB_KEPT_BACK;
}

int um_mon_pb_begin_reading(ProtobufCMessage **message, const ProtobufCMessageDescriptor *kind, const char *source,
                            size_t len, unsigned short id, const void *out, const void *client_data, const char *api)
{
    if (source == NULL || out == NULL) {
        return fail(api, "Source and where it goes to: must not be NULL");
    }
    if (MODULE_ID(id) != LBMMON_FORMAT_PB_MODULE_ID || MODULE_VERSION(id) < LBMMON_FORMAT_PB_VERSION_1) {
        return um_mon_module_error(UM_MON_PB, "%s: module id 0x%04x: must be protobuf (2) of version 1 or later", api,
                                   id);
    }
    if (um_mon_pb_options(client_data)->passthrough != LBMMON_FORMAT_PASSTHROUGH_OFF) {
        return LBMMON_FORMAT_DESERIALIZE_PASSTHROUGH; /* it is what is asked for, without conversion */
    }
    *message = um_mon_pb_unpack(kind, source, len);
    return *message != NULL ? LBMMON_FORMAT_DESERIALIZE_OK
                            : um_mon_module_error(UM_MON_PB, "%s: %zu bytes: not a %s", api, len, kind->name);
}

/* ---- filters ---- */

void um_mon_pb_describe_rules(const void *client_data, char *out, size_t room)
{
    const struct um_mon_rules *rules = um_mon_pb_options(client_data)->rules;
    unsigned all = rules != NULL ? rules->count : 0;
    unsigned own = um_mon_rules_about(rules, &lbmmon__umsmon_msg__descriptor);
    if (own > 0 || all == 0) {
        snprintf(out, room, "ok: %u rules, %u of them about records of this process", all, own);
    } else {
        snprintf(out, room,
                 "ok: %u rules, kept, but this process has nothing for them to filter: they are about records "
                 "of stores or routers",
                 all);
    }
}

static int check_room(const char *api, size_t needed, const char *out, size_t room)
{
    return out != NULL && needed < room
               ? 0
               : um_mon_module_error(UM_MON_PB, "%s: FormatOptions must be valid and Size at least %zu", api,
                                     needed + 1);
}

/* A line for each field of the library's own records, and the rules that the module was begun with. Given back to it,
 * the text sets what holds without any. */
int lbmmon_format_pb_default_filter_options(void *FormatClientData, char *FormatOptions, size_t Size)
{
    const char *own = um_mon_pb_options(FormatClientData)->first_rules;
    size_t len = um_mon_rules_print_fields(&lbmmon__umsmon_msg__descriptor, NULL, 0);
    if (check_room(__func__, len + (own != NULL ? strlen(own) : 0), FormatOptions, Size) != 0) {
        return -1;
    }
    um_mon_rules_print_fields(&lbmmon__umsmon_msg__descriptor, FormatOptions, Size);
    strcpy(FormatOptions + len, own != NULL ? own : "");
    return 0;
}

/* The same for records of stores. */
int lbmmon_format_pb_default_store_filter_options(char *FormatOptions, size_t Size)
{
    size_t len = um_mon_rules_print_fields(&lbmmon__umpmon_msg__descriptor, NULL, 0);
    if (check_room(__func__, len, FormatOptions, Size) != 0) {
        return -1;
    }
    um_mon_rules_print_fields(&lbmmon__umpmon_msg__descriptor, FormatOptions, Size);
    return 0;
}

/* Of an option string, the rules about records of stores; the caller frees it. NULL: a wrong rule. */
char *lbmmon_store_format_pb_filter_options(const char *FormatOptions)
{
    struct um_mon_rules *rules = um_mon_rules_read(FormatOptions);
    char *text = rules != NULL ? print_rules(rules, &lbmmon__umpmon_msg__descriptor) : NULL;
    um_mon_rules_free(rules);
    return text;
}

/* ---- stores and routers ---- */

/* Action: LBMMON_SERIALIZE_*. The message is not changed; attributes that it has are kept. A calculated size is that
 * without filters. */
int lbmmon_store_format_pb_serialize(char *Destination, size_t *Size, unsigned short *ModuleID,
                                     const lbmmon_packet_attributes_t *Attributes, Lbmmon__UMPMonMsg *StoreMsg,
                                     int Action, void *FormatClientData)
{
    if (Size == NULL || StoreMsg == NULL || (Action != LBMMON_SERIALIZE_CALC_SIZE_ONLY && ModuleID == NULL)) {
        return fail(__func__, "Size, ModuleID and StoreMsg: must not be NULL");
    }
    Lbmmon__UMPMonMsg message = *StoreMsg;
    struct um_mon_pb_attributes attributes;
    if (Attributes != NULL && message.attributes == NULL) {
        um_mon_pb_put_attributes(&attributes, Attributes);
        message.attributes = &attributes.message;
    }
    if (Action == LBMMON_SERIALIZE_CALC_SIZE_ONLY) {
        *Size = lbmmon__umpmon_msg__get_packed_size(&message);
        return 0;
    }
    return um_mon_pb_finish_writing(&message, Destination, Size, ModuleID, FormatClientData, __func__);
}

/* The message belongs to the caller: lbmmon_store_free_unpacked(). */
int lbmmon_store_format_pb_deserialize(lbmmon_packet_attributes_t *Attributes, Lbmmon__UMPMonMsg **StoreMsg,
                                       const char *Source, size_t Length, unsigned short ModuleID,
                                       void *FormatClientData)
{
    ProtobufCMessage *message;
    int rc = um_mon_pb_begin_reading(&message, &lbmmon__umpmon_msg__descriptor, Source, Length, ModuleID, StoreMsg,
                                     FormatClientData, __func__);
    if (rc == LBMMON_FORMAT_DESERIALIZE_OK) {
        *StoreMsg = (Lbmmon__UMPMonMsg *)message;
        um_mon_pb_get_attributes((*StoreMsg)->attributes, ModuleID, Attributes);
    }
    return rc;
}

int lbmmon_store_free_unpacked(Lbmmon__UMPMonMsg *StoreMsg)
{
    um_mon_pb_free(StoreMsg);
    return 0;
}

int lbmmon_gateway_format_pb_serialize(char *Destination, size_t *Size, unsigned short *ModuleID,
                                       const lbmmon_packet_attributes_t *Attributes, Lbmmon__DROMonMsg *GatewayMsg,
                                       void *FormatClientData)
{
    if (Size == NULL || ModuleID == NULL || GatewayMsg == NULL) {
        return fail(__func__, "Size, ModuleID and GatewayMsg: must not be NULL");
    }
    Lbmmon__DROMonMsg message = *GatewayMsg;
    struct um_mon_pb_attributes attributes;
    if (Attributes != NULL && message.attributes == NULL) {
        um_mon_pb_put_attributes(&attributes, Attributes);
        message.attributes = &attributes.message;
    }
    return um_mon_pb_finish_writing(&message, Destination, Size, ModuleID, FormatClientData, __func__);
}

/* The message belongs to the caller: lbmmon_gateway_free_unpacked(). */
int lbmmon_gateway_format_pb_deserialize(lbmmon_packet_attributes_t *Attributes, Lbmmon__DROMonMsg **GatewayMsg,
                                         const char *Source, size_t Length, unsigned short ModuleID,
                                         void *FormatClientData)
{
    ProtobufCMessage *message;
    int rc = um_mon_pb_begin_reading(&message, &lbmmon__dromon_msg__descriptor, Source, Length, ModuleID, GatewayMsg,
                                     FormatClientData, __func__);
    if (rc == LBMMON_FORMAT_DESERIALIZE_OK) {
        *GatewayMsg = (Lbmmon__DROMonMsg *)message;
        um_mon_pb_get_attributes((*GatewayMsg)->attributes, ModuleID, Attributes);
    }
    return rc;
}

int lbmmon_gateway_free_unpacked(Lbmmon__DROMonMsg *GatewayMsg)
{
    um_mon_pb_free(GatewayMsg);
    return 0;
}

const lbmmon_format_func_t *lbmmon_format_pb_module(void)
{
    static const lbmmon_format_func_t table = {
        .mInit = lbmmon_format_pb_init,
        .mApplyOptions = lbmmon_format_pb_apply_format_options,
        .mRcvSerialize = lbmmon_rcv_format_pb_serialize,
        .mSrcSerialize = lbmmon_src_format_pb_serialize,
        .mRcvDeserialize = lbmmon_rcv_format_pb_deserialize,
        .mSrcDeserialize = lbmmon_src_format_pb_deserialize,
        .mFinish = lbmmon_format_pb_finish,
        .mErrorMessage = lbmmon_format_pb_errmsg,
        .mEvqSerialize = lbmmon_evq_format_pb_serialize,
        .mEvqDeserialize = lbmmon_evq_format_pb_deserialize,
        .mCtxSerialize = lbmmon_ctx_format_pb_serialize,
        .mCtxDeserialize = lbmmon_ctx_format_pb_deserialize,
        .mRcvTopicSerialize = lbmmon_rcv_topic_format_pb_serialize,
        .mRcvTopicDeserialize = lbmmon_rcv_topic_format_pb_deserialize,
        .mWildcardRcvSerialize = lbmmon_wildcard_rcv_format_pb_serialize,
        .mWildcardRcvDeserialize = lbmmon_wildcard_rcv_format_pb_deserialize,
        .mStoreSerialize = lbmmon_store_format_pb_serialize,
        .mStoreDeserialize = lbmmon_store_format_pb_deserialize,
        .mStoreFilterOptions = lbmmon_store_format_pb_filter_options,
        .mStoreFreeUnpacked = lbmmon_store_free_unpacked,
        .mGatewaySerialize = lbmmon_gateway_format_pb_serialize,
        .mGatewayDeserialize = lbmmon_gateway_format_pb_deserialize,
        .mGatewayFreeUnpacked = lbmmon_gateway_free_unpacked,
    };
    return &table;
}
