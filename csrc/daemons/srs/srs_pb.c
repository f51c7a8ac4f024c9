/* Records of the SRS daemon as protobuf. Fields are found by the names of values:
 * those of the messages are the same with underscores. See srs_records.h. */
#include <arpa/inet.h>
#include <ctype.h>
#include <inttypes.h>
#include <lbm/gen/srs_mon.pb-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/um_bytes.h"
#include "base/um_utf8.h"
#include "srs_records.h"

#define SIGNATURE 0x1b33041bu
#define PACKET_TYPE 10u
#define HEAD_LEN 12u
#define ATTRIBUTES_MAX 512u
#define MODULE 0x0201u /* protobuf, version 1 */
#define NAME_MAX_LEN 128
#define PATH_HEAD "um-srs."
#define ATTRIBUTES_HEAD "um-srs.daemon-monitor.lbm-attributes."

/* ---- messages ------------------------------------------------------------------------ */

/* Of a value: lower case, with underscores in place of dots and hyphens. */
static const ProtobufCFieldDescriptor *field_of(const ProtobufCMessageDescriptor *message, const char *name)
{
    char field[NAME_MAX_LEN];
    size_t len = 0;
    for (; name[len] != '\0' && len < sizeof(field) - 1; len++) {
        field[len] = name[len] == '.' || name[len] == '-' ? '_' : (char)tolower((unsigned char)name[len]);
    }
    field[len] = '\0';
    return protobuf_c_message_descriptor_get_field_by_name(message, field);
}

/* Values that the message does not have are in JSON alone. */
static void fill(ProtobufCMessage *message, const struct srs_record *record)
{
    for (size_t i = 0; i < record->count; i++) {
        const struct srs_value *value = &record->values[i];
        const char *name = value->name;
        if (strncmp(name, PATH_HEAD, strlen(PATH_HEAD)) == 0) {
            name += strlen(PATH_HEAD);
        }
        const ProtobufCFieldDescriptor *field = field_of(message->descriptor, name);
        if (field != NULL && value->text != NULL && field->type == PROTOBUF_C_TYPE_STRING) {
            memcpy((char *)message + field->offset, &value->text, sizeof(value->text));
        } else if (field != NULL && value->text == NULL && field->type == PROTOBUF_C_TYPE_UINT64) {
            memcpy((char *)message + field->offset, &value->number, sizeof(value->number));
        }
    }
}

struct parts {
    Lbmmon__SRSMonMsg message;
    Lbmmon__UMMonAttributes attributes;
    Lbmmon__SRSMonMsg__UMClientInfo client;
    Lbmmon__SRSMonMsg__Stats stats;
    Lbmmon__SRSMonMsg__Stats__SRS srs;
    Lbmmon__SRSMonMsg__Stats__SRSError srs_error;
    Lbmmon__SRSMonMsg__Stats__UMClient um_client;
    Lbmmon__SRSMonMsg__Stats__UMClientError um_client_error;
    Lbmmon__SRSMonMsg__Configs configs;
    Lbmmon__SRSMonMsg__Configs__Internal internal;
    Lbmmon__SRSMonMsg__Configs__DaemonMonitorLBMAttribute lbm[SRS_ATTRIBUTES_MAX], *lbm_list[SRS_ATTRIBUTES_MAX];
    char lbm_scope[SRS_ATTRIBUTES_MAX][16];
    Lbmmon__SRSMonMsg__Events events;
    Lbmmon__SRSMonMsg__Events__UMClientConnect connect;
    Lbmmon__SRSMonMsg__Events__UMClientDisconnect disconnect;
    Lbmmon__SRSMonMsg__Events__SourceInfo source;
    Lbmmon__SRSMonMsg__Events__SourceInfoRecord source_info, *source_infos;
    Lbmmon__SRSMonMsg__Events__SourceDeleteRecord source_delete, *source_deletes;
    Lbmmon__SRSMonMsg__Events__SourceLeaveRecord source_leave, *source_leaves;
    Lbmmon__SRSMonMsg__Events__ReceiverInfo receiver;
    Lbmmon__SRSMonMsg__Events__ReceiverInfoRecord receiver_info, *receiver_infos;
    Lbmmon__SRSMonMsg__Events__ReceiverDeleteRecord receiver_delete, *receiver_deletes;
    Lbmmon__SRSMonMsg__Events__WildcardReceiverInfo wildcard;
    Lbmmon__SRSMonMsg__Events__WildcardReceiverInfoRecord wildcard_info, *wildcard_infos;
    Lbmmon__SRSMonMsg__Events__WildcardReceiverDeleteRecord wildcard_delete, *wildcard_deletes;
    char host[INET_ADDRSTRLEN], ip[INET_ADDRSTRLEN], session[16];
    char topic[3 * 256], origin[3 * 256]; /* as UTF-8 */
};

static Lbmmon__SRSMonMsg__UMClientInfo *put_client(struct parts *parts, const struct srs_client *client)
{
    lbmmon__srsmon_msg__umclient_info__init(&parts->client);
    snprintf(parts->session, sizeof(parts->session), "0x%08" PRIx32, client->session);
    parts->client.ip = (char *)inet_ntop(AF_INET, &client->ip, parts->ip, sizeof(parts->ip));
    parts->client.port = client->port;
    parts->client.session_id = parts->session;
    return &parts->client;
}

static void put_stats(struct parts *parts, const struct srs_record *record)
{
    Lbmmon__SRSMonMsg__Stats *stats = &parts->stats;
    lbmmon__srsmon_msg__stats__init(stats);
    parts->message.stats = stats;
    switch (record->category) {
    case SRS_INTERVAL_SRS_STATS:
        lbmmon__srsmon_msg__stats__srs__init(stats->srs = &parts->srs);
        fill(&stats->srs->base, record);
        break;
    case SRS_INTERVAL_SRS_ERRORS:
        lbmmon__srsmon_msg__stats__srserror__init(stats->srs_error = &parts->srs_error);
        fill(&stats->srs_error->base, record);
        break;
    case SRS_INTERVAL_CLIENT_STATS:
        lbmmon__srsmon_msg__stats__umclient__init(stats->um_client = &parts->um_client);
        stats->um_client->um_client_info = put_client(parts, record->client);
        fill(&stats->um_client->base, record);
        break;
    default:
        lbmmon__srsmon_msg__stats__umclient_error__init(stats->um_client_error = &parts->um_client_error);
        stats->um_client_error->um_client_info = put_client(parts, record->client);
        fill(&stats->um_client_error->base, record);
    }
}

static void put_lbm_attribute(struct parts *parts, const struct srs_value *value)
{
    const char *path = value->name + strlen(ATTRIBUTES_HEAD), *dot = strchr(path, '.');
    size_t at = parts->configs.n_daemon_monitor_lbm_attributes;
    if (dot == NULL || at == SRS_ATTRIBUTES_MAX) {
        return;
    }
    Lbmmon__SRSMonMsg__Configs__DaemonMonitorLBMAttribute *attribute = &parts->lbm[at];
    lbmmon__srsmon_msg__configs__daemon_monitor_lbmattribute__init(attribute);
    snprintf(parts->lbm_scope[at], sizeof(parts->lbm_scope[at]), "%.*s", (int)(dot - path), path);
    attribute->scope = parts->lbm_scope[at];
    attribute->name = (char *)(dot + 1);
    attribute->value = (char *)value->text;
    parts->lbm_list[at] = attribute;
    parts->configs.n_daemon_monitor_lbm_attributes++;
}

static void put_configs(struct parts *parts, const struct srs_record *record)
{
    Lbmmon__SRSMonMsg__Configs *configs = &parts->configs;
    lbmmon__srsmon_msg__configs__init(configs);
    parts->message.configs = configs;
    if (record->category == SRS_INTERVAL_INTERNAL_CONFIG) {
        lbmmon__srsmon_msg__configs__internal__init(configs->internal = &parts->internal);
        fill(&configs->internal->base, record);
        return;
    }
    configs->daemon_monitor_lbm_attributes = parts->lbm_list;
    for (size_t i = 0; i < record->count; i++) {
        if (strncmp(record->values[i].name, ATTRIBUTES_HEAD, strlen(ATTRIBUTES_HEAD)) == 0) {
            put_lbm_attribute(parts, &record->values[i]);
        }
    }
    fill(&configs->base, record);
}

/* ---- events --------------------------------------------------------------------------------- */

/* One record of a kind in its list, with what it is about. */
#define PUT_RECORD(parts, kind, init, field, about)                                                                    \
    do {                                                                                                               \
        init(&(parts)->kind);                                                                                          \
        (parts)->kind.field = (about);                                                                                 \
        (parts)->kind##s = &(parts)->kind;                                                                             \
        (parts)->events.n_##kind##_records = 1;                                                                        \
        (parts)->events.kind##_records = &(parts)->kind##s;                                                            \
    } while (0)

static void put_source_event(struct parts *parts, const struct srs_event *event)
{
    Lbmmon__SRSMonMsg__Events__SourceInfo *about = &parts->source;
    lbmmon__srsmon_msg__events__source_info__init(about);
    about->topic = um_utf8_copy(parts->topic, sizeof(parts->topic), event->topic);
    about->source = um_utf8_copy(parts->origin, sizeof(parts->origin), event->source);
    about->timestamp = (uint64_t)event->time;
    if (strcmp(event->type, "SIR") == 0) {
        PUT_RECORD(parts, source_info, lbmmon__srsmon_msg__events__source_info_record__init, source_info, about);
    } else if (strcmp(event->type, "SDR") == 0) {
        PUT_RECORD(parts, source_delete, lbmmon__srsmon_msg__events__source_delete_record__init, source_info, about);
    } else {
        PUT_RECORD(parts, source_leave, lbmmon__srsmon_msg__events__source_leave_record__init, source_info, about);
    }
}

static void put_receiver_event(struct parts *parts, const struct srs_event *event)
{
    Lbmmon__SRSMonMsg__Events__ReceiverInfo *about = &parts->receiver;
    lbmmon__srsmon_msg__events__receiver_info__init(about);
    about->topic = um_utf8_copy(parts->topic, sizeof(parts->topic), event->topic);
    about->timestamp = (uint64_t)event->time;
    if (strcmp(event->type, "RIR") == 0) {
        PUT_RECORD(parts, receiver_info, lbmmon__srsmon_msg__events__receiver_info_record__init, receiver_info, about);
    } else {
        PUT_RECORD(parts, receiver_delete, lbmmon__srsmon_msg__events__receiver_delete_record__init, receiver_info,
                   about);
    }
}

static void put_wildcard_event(struct parts *parts, const struct srs_event *event)
{
    Lbmmon__SRSMonMsg__Events__WildcardReceiverInfo *about = &parts->wildcard;
    lbmmon__srsmon_msg__events__wildcard_receiver_info__init(about);
    about->pattern = um_utf8_copy(parts->topic, sizeof(parts->topic), event->topic);
    about->timestamp = (uint64_t)event->time;
    if (strcmp(event->type, "WIR") == 0) {
        lbmmon__srsmon_msg__events__wildcard_receiver_info_record__init(&parts->wildcard_info);
        parts->wildcard_info.wildcard_receiver_info = about;
        parts->wildcard_infos = &parts->wildcard_info;
        parts->events.n_wildcard_receiver_info_records = 1;
        parts->events.wildcard_receiver_info_records = &parts->wildcard_infos;
    } else {
        lbmmon__srsmon_msg__events__wildcard_receiver_delete_record__init(&parts->wildcard_delete);
        parts->wildcard_delete.wildcard_receiver_info = about;
        parts->wildcard_deletes = &parts->wildcard_delete;
        parts->events.n_wildcard_receiver_delete_records = 1;
        parts->events.wildcard_receiver_delete_records = &parts->wildcard_deletes;
    }
}

static void put_event(struct parts *parts, const struct srs_record *record)
{
    const struct srs_event *event = record->event;
    lbmmon__srsmon_msg__events__init(&parts->events);
    parts->message.events = &parts->events;
    parts->events.um_client_info = put_client(parts, record->client);
    if (strcmp(event->type, "UM_CLIENT_CONNECT") == 0) {
        lbmmon__srsmon_msg__events__umclient_connect__init(parts->events.um_client_connect = &parts->connect);
        parts->connect.timestamp = (uint64_t)event->time;
    } else if (strcmp(event->type, "UM_CLIENT_DISCONNECT") == 0) {
        lbmmon__srsmon_msg__events__umclient_disconnect__init(parts->events.um_client_disconnect = &parts->disconnect);
        parts->disconnect.timestamp = (uint64_t)event->time;
    } else if (event->type[0] == 'S') {
        put_source_event(parts, event);
    } else if (event->type[0] == 'R') {
        put_receiver_event(parts, event);
    } else {
        put_wildcard_event(parts, event);
    }
}

/* ---- the packet --------------------------------------------------------------------------------- */

static uint8_t *put_attribute(uint8_t *at, uint16_t type, const void *value, size_t len)
{
    um_put16(at, type);
    um_put16(at + 2, (uint16_t)len);
    memcpy(at + 4, value, len);
    return at + 4 + len;
}

/* The table that records of every format have; `out` has ATTRIBUTES_MAX bytes. */
static size_t put_attributes(uint8_t *out, const Lbmmon__UMMonAttributes *attributes, uint32_t host)
{
    uint8_t *at = out + 4, number[8];
    uint16_t count = 4;
    size_t len = strlen(attributes->application_id);
    at = put_attribute(at, 0, &host, sizeof(host));
    um_put32(number, (uint32_t)attributes->timestamp);
    at = put_attribute(at, 1, number, 4);
    um_put16(number, MODULE);
    at = put_attribute(at, 3, number, 2);
    um_put64(number, attributes->process_id);
    at = put_attribute(at, 5, number, 8);
    if (len > 0 && len <= 256) {
        at = put_attribute(at, 2, attributes->application_id, len);
        count++;
    }
    um_put16(out, count);
    um_put16(out + 2, (uint16_t)(at - out));
    return (size_t)(at - out);
}

static char *pack(struct parts *parts, uint32_t host, size_t *len)
{
    uint8_t attributes[ATTRIBUTES_MAX];
    size_t head = put_attributes(attributes, &parts->attributes, host);
    size_t body = lbmmon__srsmon_msg__get_packed_size(&parts->message);
    uint8_t *packet = body <= UINT16_MAX ? malloc(HEAD_LEN + head + body) : NULL;
    if (packet == NULL) {
        return NULL;
    }
    um_put32(packet, SIGNATURE);
    um_put16(packet + 4, PACKET_TYPE);
    um_put16(packet + 6, (uint16_t)head);
    um_put16(packet + 8, (uint16_t)body);
    um_put16(packet + 10, 0);
    memcpy(packet + HEAD_LEN, attributes, head);
    lbmmon__srsmon_msg__pack(&parts->message, packet + HEAD_LEN + head);
    *len = HEAD_LEN + head + body;
    return (char *)packet;
}

char *srs_record_packet(const struct srs_record *record, uint32_t host, const char *application, size_t *len)
{
    struct parts *parts = calloc(1, sizeof(*parts));
    if (parts == NULL) {
        return NULL;
    }
    lbmmon__srsmon_msg__init(&parts->message);
    lbmmon__ummon_attributes__init(parts->message.attributes = &parts->attributes);
    parts->attributes.sender_ipv4_address = (char *)inet_ntop(AF_INET, &host, parts->host, sizeof(parts->host));
    parts->attributes.timestamp = (uint64_t)time(NULL);
    parts->attributes.process_id = (uint64_t)getpid();
    parts->attributes.application_id = (char *)(application != NULL ? application : "");
    if (record->event != NULL) {
        put_event(parts, record);
    } else if (record->category == SRS_INTERVAL_CONFIG || record->category == SRS_INTERVAL_INTERNAL_CONFIG) {
        put_configs(parts, record);
    } else {
        put_stats(parts, record);
    }
    char *packet = pack(parts, host, len);
    free(parts);
    return packet;
}
