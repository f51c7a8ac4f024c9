/* Records of the SRS daemon as JSON. See srs_records.h. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/um_json.h"
#include "srs_records.h"

static void put_member(FILE *out, const char *name, const char *text)
{
    um_json_put_text(out, name);
    fputc(':', out);
    um_json_put_text(out, text);
}

static void put_client(FILE *out, const struct srs_client *client)
{
    char ip[INET_ADDRSTRLEN];
    fprintf(out, ",\"srsRegistrationInfo\":{\"ip\":\"%s\",\"port\":\"%u\",\"sessionId\":\"0x%08" PRIx32 "\"}",
            inet_ntop(AF_INET, &client->ip, ip, sizeof(ip)), (unsigned)client->port, client->session);
}

static void put_values(FILE *out, const struct srs_record *record)
{
    bool options = record->category == SRS_INTERVAL_CONFIG || record->category == SRS_INTERVAL_INTERNAL_CONFIG;
    fprintf(out, ",\"%s\":[", options ? "configOptions" : "stats");
    for (size_t i = 0; i < record->count; i++) {
        const struct srs_value *value = &record->values[i];
        fputs(i > 0 ? ",{" : "{", out);
        put_member(out, "name", value->name);
        if (value->text != NULL) {
            fputc(',', out);
            put_member(out, "value", value->text);
            fputc('}', out);
        } else {
            fprintf(out, ",\"value\":%" PRIu64 "}", value->number);
        }
    }
    fputc(']', out);
}

/* As date(1) prints it, as in the log. */
static void put_time(FILE *out, time_t seconds)
{
    char day[32], clock[48];
    struct tm now;
    localtime_r(&seconds, &now);
    strftime(day, sizeof(day), "%a %b", &now);
    strftime(clock, sizeof(clock), "%H:%M:%S %Z %Y", &now);
    fprintf(out, ",\"connectionEventTime\":\"%s %d %s\"", day, now.tm_mday, clock);
}

static void put_event(FILE *out, const struct srs_event *event)
{
    fputc(',', out);
    put_member(out, "connectionEventType", event->type);
    fputs(",\"events\":[{", out);
    if (event->topic != NULL) {
        put_member(out, "topic", event->topic);
        fputc(',', out);
        put_member(out, "source", event->source != NULL ? event->source : "");
        fputc(',', out);
    }
    put_member(out, "connectionEventType", event->type);
    put_time(out, event->time);
    fputs("}]", out);
}

char *srs_record_json(const struct srs_record *record, size_t *len)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, len);
    if (out == NULL) {
        return NULL;
    }
    fputc('{', out);
    put_member(out, "monitorInfoCategory", srs_category_name(record->category));
    if (record->client != NULL) {
        put_client(out, record->client);
    }
    if (record->event != NULL) {
        put_event(out, record->event);
    } else {
        put_values(out, record);
    }
    fputc('}', out);
    bool good = ferror(out) == 0;
    if (fclose(out) != 0 || !good) {
        free(text);
        return NULL;
    }
    (*len)++; /* the NUL */
    return text;
}
