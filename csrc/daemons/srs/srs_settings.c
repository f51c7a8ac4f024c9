/* Reading the configuration file: libxml2 checks it against the schema, so that
 * what is read here is there once and in its range. See srs_settings.h. */
#include "srs_settings.h"

#include <inttypes.h>
#include <libxml/parser.h>
#include <libxml/xmlschemas.h>
#include <stdlib.h>
#include <string.h>

#include "base/um_log.h"
#include "base/um_mem.h"

#define PING_MIN_MS 100u
#define PING_MAX_MS 3600000u
#define OTID_SHARDS 4

const char *const srs_interval_names[SRS_INTERVAL_COUNT] = {"default",         "srs-stats",
                                                            "um-client-stats", "connection-events",
                                                            "srs-error-stats", "um-client-error-stats",
                                                            "config-opts",     "internal-config-opts"};

bool srs_settings_default(struct srs_settings *settings)
{
    *settings = (struct srs_settings){
        .log = {.size_mb = 10, .max_history = 10, .total_size_cap_mb = 1000},
        .interface = um_strdup("localhost"),
        .port = 27000,
        .state_lifetime_s = 86400,
        .source_lifetime_s = 86400,
        .interest_lifetime_s = 86400,
        .route_lifetime_s = 30,
        .name_lifetime_s = 86400,
        .leave_backoff_ms = 500,
        .stream_max = 128,
        .service_ms = 10,
        .batch_records = 100,
        .batch_bytes = 65536,
        .monitor = {.ping_ms = 60000},
    };
    return settings->interface != NULL;
}

void srs_settings_free(struct srs_settings *settings)
{
    um_free(settings->log.file);
    um_free(settings->pid_file);
    um_free(settings->interface);
    um_free(settings->application_id);
    um_free(settings->monitor.topic);
    for (unsigned i = 0; i < settings->monitor.attribute_count; i++) {
        um_free(settings->monitor.attributes[i].scope);
        um_free(settings->monitor.attributes[i].name);
        um_free(settings->monitor.attributes[i].value);
    }
    *settings = (struct srs_settings){0};
}

/* ---- the checked document ------------------------------------------------------- */

static xmlNodePtr child(xmlNodePtr node, const char *name)
{
    for (xmlNodePtr it = node != NULL ? node->children : NULL; it != NULL; it = it->next) {
        if (it->type == XML_ELEMENT_NODE && strcmp((const char *)it->name, name) == 0) {
            return it;
        }
    }
    return NULL;
}

/* White space at both ends does not count, as in the schema. */
static char *trimmed(xmlChar *text)
{
    char *from = (char *)text;
    size_t len;
    from += from != NULL ? strspn(from, " \t\r\n") : 0;
    len = from != NULL ? strlen(from) : 0;
    while (len > 0 && strchr(" \t\r\n", from[len - 1]) != NULL) {
        len--;
    }
    char *copy = from != NULL ? um_strndup(from, len) : NULL;
    xmlFree(text);
    return copy;
}

static char *text_of(xmlNodePtr node)
{
    return trimmed(xmlNodeGetContent(node));
}

static char *attribute_of(xmlNodePtr node, const char *name)
{
    return trimmed(xmlGetProp(node, (const xmlChar *)name));
}

/* Replaces the value when the element is there. */
static void take_text(xmlNodePtr parent, const char *name, char **out)
{
    xmlNodePtr node = child(parent, name);
    char *text = node != NULL ? text_of(node) : NULL;
    if (text != NULL) {
        um_free(*out);
        *out = text;
    }
}

static bool take_number(xmlNodePtr parent, const char *name, uint64_t *out)
{
    xmlNodePtr node = child(parent, name);
    char *text = node != NULL ? text_of(node) : NULL;
    if (text != NULL) {
        *out = strtoull(text, NULL, 10);
    }
    um_free(text);
    return node != NULL;
}

static void take_number_attribute(xmlNodePtr node, const char *name, uint64_t *out)
{
    char *text = attribute_of(node, name);
    if (text != NULL) {
        *out = strtoull(text, NULL, 10);
    }
    um_free(text);
}

/* Index of the attribute's value among the names; `out` stays when it is not there. */
static void take_choice(xmlNodePtr node, const char *name, const char *const *names, int *out)
{
    char *text = attribute_of(node, name);
    for (int i = 0; text != NULL && names[i] != NULL; i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = i;
        }
    }
    um_free(text);
}

/* ---- its parts --------------------------------------------------------------------- */

static const char *const frequencies[] = {"disable", "daily", "hourly", NULL};
static const char *const compressions[] = {"none", "zip", "gzip", NULL};
static const char *const types[] = {"file", "console", NULL};
static const char *const booleans[] = {"false", "true", NULL};

static bool read_log(struct srs_log_settings *log, xmlNodePtr node, FILE *errors)
{
    int frequency = SRS_ROLL_DISABLE, compression = SRS_COMPRESS_NONE, type = 0;
    if (node == NULL) {
        return true;
    }
    take_choice(node, "type", types, &type);
    take_choice(node, "frequency", frequencies, &frequency);
    take_choice(node, "compression", compressions, &compression);
    take_number_attribute(node, "size", &log->size_mb);
    take_number_attribute(node, "max-history", &log->max_history);
    take_number_attribute(node, "total-size-cap", &log->total_size_cap_mb);
    log->frequency = (enum srs_log_roll)frequency;
    log->compression = (enum srs_log_compression)compression;
    if (type == 0) {
        log->file = text_of(node);
        if (log->file == NULL || log->file[0] == '\0') {
            fprintf(errors, "SRS-10386-1303: log of type \"file\": must have the name of the file as its content\n");
            return false;
        }
    }
    return true;
}

static void read_srs(struct srs_settings *settings, xmlNodePtr srs)
{
    xmlNodePtr actor = child(srs, "clientactor");
    uint64_t port = settings->port;
    take_text(srs, "interface", &settings->interface);
    take_number(srs, "port", &port);
    settings->port = (uint16_t)port;
    if (take_number(srs, "state-lifetime", &settings->state_lifetime_s)) {
        settings->source_lifetime_s = settings->interest_lifetime_s = settings->state_lifetime_s;
    }
    take_number(srs, "source-state-lifetime", &settings->source_lifetime_s);
    take_number(srs, "interest-state-lifetime", &settings->interest_lifetime_s);
    take_number(srs, "route-state-lifetime", &settings->route_lifetime_s);
    take_number(srs, "context-name-state-lifetime", &settings->name_lifetime_s);
    take_number(srs, "source-leave-backoff", &settings->leave_backoff_ms);
    take_text(srs, "application-id", &settings->application_id);
    take_number(actor, "request-stream-max-msg-count", &settings->stream_max);
    take_number(actor, "record-queue-service-interval", &settings->service_ms);
    take_number(actor, "batch-frame-max-record-count", &settings->batch_records);
    take_number(actor, "batch-frame-max-datagram-size", &settings->batch_bytes);
}

static void take_permission(xmlNodePtr monitor, const char *name, bool *out)
{
    int allow = *out;
    xmlNodePtr node = child(monitor, name);
    if (node != NULL) {
        take_choice(node, "allow", booleans, &allow);
    }
    *out = allow;
}

static void read_attributes(struct srs_monitor_settings *monitor, xmlNodePtr attributes)
{
    for (xmlNodePtr it = attributes != NULL ? attributes->children : NULL; it != NULL; it = it->next) {
        if (it->type == XML_ELEMENT_NODE && monitor->attribute_count < SRS_ATTRIBUTES_MAX) {
            struct srs_attribute *attribute = &monitor->attributes[monitor->attribute_count++];
            attribute->scope = attribute_of(it, "scope");
            attribute->name = attribute_of(it, "name");
            attribute->value = attribute_of(it, "value");
        }
    }
}

static void clip_ping(struct srs_monitor_settings *monitor)
{
    if (monitor->ping_ms < PING_MIN_MS) {
        um_log(UM_LOG_WARNING, "SRS-10563-15", "ping-interval %" PRIu64 " ms is below %u ms, which is taken",
               monitor->ping_ms, PING_MIN_MS);
        monitor->ping_ms = PING_MIN_MS;
    } else if (monitor->ping_ms > PING_MAX_MS) {
        um_log(UM_LOG_WARNING, "SRS-10563-16", "ping-interval %" PRIu64 " ms is above %u ms, which is taken",
               monitor->ping_ms, PING_MAX_MS);
        monitor->ping_ms = PING_MAX_MS;
    }
}

static void read_monitors(struct srs_settings *settings, xmlNodePtr debug, xmlNodePtr node)
{
    struct srs_monitor_settings *monitor = &settings->monitor;
    xmlNodePtr intervals = child(node, "publishing-interval");
    char *text = NULL;
    bool debug_ping = take_number(debug, "ping-interval", &monitor->ping_ms);
    if (take_number(node, "ping-interval", &monitor->ping_ms) && debug_ping) {
        um_log(UM_LOG_WARNING, "SRS-11195-1", "the ping-interval of daemon-monitor replaces that of debug-monitor");
    }
    clip_ping(monitor);
    take_text(debug, "enabled", &text);
    settings->debug_monitor = text != NULL && strcmp(text, "true") == 0;
    um_free(text);
    if (node == NULL) {
        return;
    }
    monitor->topic = attribute_of(node, "topic");
    take_number(intervals, "default", &monitor->interval_ms[SRS_INTERVAL_DEFAULT]);
    for (int i = 1; i < SRS_INTERVAL_COUNT; i++) {
        monitor->interval_ms[i] = monitor->interval_ms[SRS_INTERVAL_DEFAULT];
        take_number(intervals, srs_interval_names[i], &monitor->interval_ms[i]);
    }
    read_attributes(monitor, child(node, "lbm-attributes"));
    take_permission(node, "publish-connection-events", &monitor->events_allowed);
    take_permission(node, "remote-snapshot-request", &monitor->snapshots_allowed);
    take_permission(node, "remote-config-changes-request", &monitor->changes_allowed);
    text = NULL;
    take_text(node, "monitor-format", &text);
    monitor->protobuf = text != NULL && strcmp(text, "pb") == 0;
    um_free(text);
}

/* ---- the file ------------------------------------------------------------------------ */

struct complaints {
    FILE *errors;
    const char *path;
};

#if LIBXML_VERSION >= 21200
static void complain(void *arg, const xmlError *error)
#else
static void complain(void *arg, xmlErrorPtr error)
#endif
{
    struct complaints *complaints = arg;
    fprintf(complaints->errors, "SRS-10386-1303: %s:%d: %s", complaints->path, error->line,
            error->message != NULL ? error->message : "not well-formed\n");
}

static bool is_valid(xmlDocPtr doc, struct complaints *complaints)
{
    xmlSchemaParserCtxtPtr parser = xmlSchemaNewMemParserCtxt(srs_schema, (int)strlen(srs_schema));
    xmlSchemaPtr schema = parser != NULL ? xmlSchemaParse(parser) : NULL;
    xmlSchemaValidCtxtPtr context = schema != NULL ? xmlSchemaNewValidCtxt(schema) : NULL;
    int rc = -1;
    if (context != NULL) {
        xmlSchemaSetValidStructuredErrors(context, complain, complaints);
        rc = xmlSchemaValidateDoc(context, doc);
    }
    xmlSchemaFreeValidCtxt(context);
    xmlSchemaFree(schema);
    xmlSchemaFreeParserCtxt(parser);
    return rc == 0;
}

bool srs_settings_load(struct srs_settings *settings, const char *path, FILE *errors)
{
    struct complaints complaints = {errors, path};
    xmlSetStructuredErrorFunc(&complaints, complain);
    xmlDocPtr doc = xmlReadFile(path, NULL, XML_PARSE_NONET); /* entities stay as they are, and the schema knows none */
    bool good = doc != NULL && xmlGetIntSubset(doc) == NULL && is_valid(doc, &complaints);
    if (doc != NULL && xmlGetIntSubset(doc) != NULL) {
        fprintf(errors, "SRS-10386-1303: %s: must have no DOCTYPE\n", path);
    }
    if (good) {
        xmlNodePtr root = xmlDocGetRootElement(doc), daemon = child(root, "daemon");
        take_text(daemon, "pid-file", &settings->pid_file);
        read_srs(settings, child(root, "srs"));
        read_monitors(settings, child(root, "debug-monitor"), child(root, "daemon-monitor"));
        good = read_log(&settings->log, child(daemon, "log"), errors);
    }
    xmlFreeDoc(doc);
    xmlSetStructuredErrorFunc(NULL, NULL);
    return good;
}

/* ---- what is in force -------------------------------------------------------------------- */

struct reporter {
    void (*fn)(void *arg, const char *path, const char *value);
    void *arg;
};

static void report(const struct reporter *reporter, const char *path, const char *value)
{
    if (value != NULL) {
        reporter->fn(reporter->arg, path, value);
    }
}

static void report_number(const struct reporter *reporter, const char *path, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, value);
    report(reporter, path, text);
}

static void report_srs(const struct reporter *reporter, const struct srs_settings *settings)
{
    report(reporter, "um-srs.srs.interface", settings->interface);
    report_number(reporter, "um-srs.srs.port", settings->port);
    report_number(reporter, "um-srs.srs.state-lifetime", settings->state_lifetime_s);
    report_number(reporter, "um-srs.srs.source-state-lifetime", settings->source_lifetime_s);
    report_number(reporter, "um-srs.srs.interest-state-lifetime", settings->interest_lifetime_s);
    report_number(reporter, "um-srs.srs.route-state-lifetime", settings->route_lifetime_s);
    report_number(reporter, "um-srs.srs.context-name-state-lifetime", settings->name_lifetime_s);
    report_number(reporter, "um-srs.srs.source-leave-backoff", settings->leave_backoff_ms);
    report(reporter, "um-srs.srs.application-id", settings->application_id);
    report_number(reporter, "um-srs.srs.clientactor.request-stream-max-msg-count", settings->stream_max);
    report_number(reporter, "um-srs.srs.clientactor.record-queue-service-interval", settings->service_ms);
    report_number(reporter, "um-srs.srs.clientactor.batch-frame-max-record-count", settings->batch_records);
    report_number(reporter, "um-srs.srs.clientactor.batch-frame-max-datagram-size", settings->batch_bytes);
}

static void report_monitor(const struct reporter *reporter, const struct srs_monitor_settings *monitor)
{
    char path[512];
    report(reporter, "um-srs.daemon-monitor.topic", monitor->topic);
    report_number(reporter, "um-srs.daemon-monitor.ping-interval", monitor->ping_ms);
    for (int i = 0; i < SRS_INTERVAL_COUNT; i++) {
        snprintf(path, sizeof(path), "um-srs.daemon-monitor.publishing-interval.%s", srs_interval_names[i]);
        report_number(reporter, path, monitor->interval_ms[i]);
    }
    for (unsigned i = 0; i < monitor->attribute_count; i++) {
        snprintf(path, sizeof(path), "um-srs.daemon-monitor.lbm-attributes.%s.%s", monitor->attributes[i].scope,
                 monitor->attributes[i].name);
        report(reporter, path, monitor->attributes[i].value);
    }
    report(reporter, "um-srs.daemon-monitor.publish-connection-events.allow", booleans[monitor->events_allowed]);
    report(reporter, "um-srs.daemon-monitor.remote-snapshot-request.allow", booleans[monitor->snapshots_allowed]);
    report(reporter, "um-srs.daemon-monitor.remote-config-changes-request.allow", booleans[monitor->changes_allowed]);
    report(reporter, "um-srs.daemon-monitor.monitor-format", monitor->protobuf ? "pb" : "json");
}

void srs_settings_each(const struct srs_settings *settings, void (*fn)(void *arg, const char *path, const char *value),
                       void *arg)
{
    struct reporter reporter = {fn, arg};
    report(&reporter, "um-srs.version", "1.0");
    report(&reporter, "um-srs.daemon.log", settings->log.file);
    report(&reporter, "um-srs.daemon.log.type", types[settings->log.file == NULL]);
    report(&reporter, "um-srs.daemon.log.frequency", frequencies[settings->log.frequency]);
    report_number(&reporter, "um-srs.daemon.log.size", settings->log.size_mb);
    report_number(&reporter, "um-srs.daemon.log.max-history", settings->log.max_history);
    report_number(&reporter, "um-srs.daemon.log.total-size-cap", settings->log.total_size_cap_mb);
    report(&reporter, "um-srs.daemon.log.compression", compressions[settings->log.compression]);
    report(&reporter, "um-srs.daemon.pid-file", settings->pid_file);
    report_srs(&reporter, settings);
    report(&reporter, "um-srs.debug-monitor.enabled", booleans[settings->debug_monitor]);
    report_monitor(&reporter, &settings->monitor);
}

void srs_settings_each_internal(const struct srs_settings *settings,
                                void (*fn)(void *arg, const char *path, const char *value), void *arg)
{
    struct reporter reporter = {fn, arg};
    report_number(&reporter, "um-srs.srs.otidmap.shards", OTID_SHARDS);
    report_number(&reporter, "um-srs.srs.topicmap.shards", 1);
    report_number(&reporter, "um-srs.srs.routemap.shards", 1);
    report_number(&reporter, "um-srs.srs.namemap.shards", 1);
}

static void put_text(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '<':
            fputs("&lt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            fputc(*text, out);
        }
    }
}

static void put_element(FILE *out, int depth, const char *name, const char *text)
{
    if (text != NULL) {
        fprintf(out, "%*s<%s>", 2 * depth, "", name);
        put_text(out, text);
        fprintf(out, "</%s>\n", name);
    }
}

static void put_number(FILE *out, int depth, const char *name, uint64_t value)
{
    fprintf(out, "%*s<%s>%" PRIu64 "</%s>\n", 2 * depth, "", name, value, name);
}

static void dump_daemon(const struct srs_settings *settings, FILE *out)
{
    const struct srs_log_settings *log = &settings->log;
    fprintf(out,
            "  <daemon>\n    <log type=\"%s\" frequency=\"%s\" size=\"%" PRIu64 "\" max-history=\"%" PRIu64
            "\" total-size-cap=\"%" PRIu64 "\" compression=\"%s\">",
            types[log->file == NULL], frequencies[log->frequency], log->size_mb, log->max_history,
            log->total_size_cap_mb, compressions[log->compression]);
    put_text(out, log->file != NULL ? log->file : "");
    fprintf(out, "</log>\n");
    put_element(out, 2, "pid-file", settings->pid_file);
    fprintf(out, "  </daemon>\n");
}

static void dump_srs(const struct srs_settings *settings, FILE *out)
{
    fprintf(out, "  <srs>\n");
    put_element(out, 2, "interface", settings->interface);
    put_number(out, 2, "port", settings->port);
    put_number(out, 2, "state-lifetime", settings->state_lifetime_s);
    put_number(out, 2, "source-state-lifetime", settings->source_lifetime_s);
    put_number(out, 2, "interest-state-lifetime", settings->interest_lifetime_s);
    put_number(out, 2, "route-state-lifetime", settings->route_lifetime_s);
    put_number(out, 2, "context-name-state-lifetime", settings->name_lifetime_s);
    put_number(out, 2, "source-leave-backoff", settings->leave_backoff_ms);
    put_element(out, 2, "application-id", settings->application_id);
    fprintf(out, "    <otidmap>\n      <shards>%d</shards>\n    </otidmap>\n    <clientactor>\n", OTID_SHARDS);
    put_number(out, 3, "request-stream-max-msg-count", settings->stream_max);
    put_number(out, 3, "record-queue-service-interval", settings->service_ms);
    put_number(out, 3, "batch-frame-max-record-count", settings->batch_records);
    put_number(out, 3, "batch-frame-max-datagram-size", settings->batch_bytes);
    fprintf(out, "    </clientactor>\n  </srs>\n");
}

static void dump_monitor(const struct srs_monitor_settings *monitor, FILE *out)
{
    fprintf(out, "  <daemon-monitor");
    if (monitor->topic != NULL) {
        fprintf(out, " topic=\"");
        put_text(out, monitor->topic);
        fprintf(out, "\"");
    }
    fprintf(out, ">\n");
    put_number(out, 2, "ping-interval", monitor->ping_ms);
    fprintf(out, "    <publishing-interval>\n");
    for (int i = 0; i < SRS_INTERVAL_COUNT; i++) {
        put_number(out, 3, srs_interval_names[i], monitor->interval_ms[i]);
    }
    fprintf(out, "    </publishing-interval>\n    <lbm-attributes>\n");
    for (unsigned i = 0; i < monitor->attribute_count; i++) {
        fprintf(out, "      <option scope=\"%s\" name=\"", monitor->attributes[i].scope);
        put_text(out, monitor->attributes[i].name);
        fprintf(out, "\" value=\"");
        put_text(out, monitor->attributes[i].value);
        fprintf(out, "\"/>\n");
    }
    fprintf(out,
            "    </lbm-attributes>\n    <publish-connection-events allow=\"%s\"/>\n"
            "    <remote-snapshot-request allow=\"%s\"/>\n    <remote-config-changes-request allow=\"%s\"/>\n"
            "    <monitor-format>%s</monitor-format>\n  </daemon-monitor>\n",
            booleans[monitor->events_allowed], booleans[monitor->snapshots_allowed], booleans[monitor->changes_allowed],
            monitor->protobuf ? "pb" : "json");
}

void srs_settings_dump(const struct srs_settings *settings, FILE *out)
{
    fprintf(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<um-srs version=\"1.0\">\n");
    dump_daemon(settings, out);
    dump_srs(settings, out);
    dump_monitor(&settings->monitor, out);
    fprintf(out, "</um-srs>\n");
}
