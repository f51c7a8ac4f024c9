/* See srs_commands.h. */
#include "srs_commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <lbm/lbm.h>

#include "base/um_json.h"
#include "srs_records.h"

#define COMMAND_MAX 1024

/* The answer; nothing is to be done. */
#define ANSWER(out, ...) ((void)snprintf((out)->answer, sizeof((out)->answer), __VA_ARGS__))

/* False: there is no such category, which is answered. */
static bool take_category(const struct um_json_object *object, struct srs_command *out)
{
    const char *name = um_json_text(object, "monitorInfoCategory");
    out->category = name != NULL ? srs_category_find(name) : SRS_INTERVAL_DEFAULT;
    if (out->category != SRS_INTERVAL_DEFAULT) {
        return true;
    }
    ANSWER(out,
           "monitorInfoCategory %.64s: must be SRS_STATS, SRS_ERROR_STATS, UM_CLIENT_STATS, UM_CLIENT_ERROR_STATS, "
           "CONNECTION_EVENTS, CONFIG_OPTS or INTERNAL_CONFIG_OPTS",
           name != NULL ? name : "(none)");
    return false;
}

static void take_snapshot(const struct srs_monitor_settings *settings, struct srs_command *out)
{
    const char *name = srs_category_name(out->category);
    if (!settings->snapshots_allowed) {
        ANSWER(out, "snap %s - refused: remote-snapshot-request does not allow it", name);
    } else if (out->category == SRS_INTERVAL_EVENTS && !settings->events_allowed) {
        ANSWER(out, "snap %s - refused: publish-connection-events does not allow it", name);
    } else {
        out->kind = SRS_COMMAND_SNAPSHOT;
        ANSWER(out, "snap %s - OK!", name);
    }
}

static void take_interval(const struct srs_monitor_settings *settings, const struct um_json_object *object,
                          struct srs_command *out)
{
    const char *name = srs_category_name(out->category);
    const uint64_t *interval = um_json_number(object, "publishingInterval");
    if (!settings->changes_allowed) {
        ANSWER(out, "%s - refused: remote-config-changes-request does not allow it", name);
    } else if (interval == NULL || !srs_interval_good(*interval)) {
        ANSWER(out, "%s - refused: publishingInterval must be 0 or %" PRIu64 "..%" PRIu64 " milliseconds", name,
               SRS_INTERVAL_MIN_MS, SRS_INTERVAL_MAX_MS);
    } else {
        out->kind = SRS_COMMAND_INTERVAL;
        out->interval_ms = *interval;
        ANSWER(out, "%s %" PRIu64 " - OK!", name, *interval);
    }
}

void srs_command_read(const struct srs_monitor_settings *settings, const char *data, size_t len,
                      struct srs_command *out)
{
    struct um_json_object object;
    const char *why = "longer than 1024 bytes", *type;
    *out = (struct srs_command){.kind = SRS_COMMAND_NONE};
    while (len > 0 && data[len - 1] == '\0') { /* the end of a C string, for those who send it */
        len--;
    }
    if (len > COMMAND_MAX || !um_json_read(data, len, &object, &why)) {
        ANSWER(out, "not a command: %s", why);
        return;
    }
    type = um_json_text(&object, "commandMessageType");
    if (type != NULL && strcmp(type, "REPORT_SRS_VERSION") == 0) {
        ANSWER(out, "SRS Version %d.%d", LBM_VERS_MAJOR, LBM_VERS_MINOR);
    } else if (type != NULL && strcmp(type, "REPORT_MONITOR_INFO") == 0) {
        if (take_category(&object, out)) {
            take_snapshot(settings, out);
        }
    } else if (type != NULL && strcmp(type, "SET_PUBLISHING_INTERVAL") == 0) {
        if (take_category(&object, out)) {
            take_interval(settings, &object, out);
        }
    } else {
        ANSWER(out,
               "commandMessageType %.64s: must be REPORT_SRS_VERSION, REPORT_MONITOR_INFO or SET_PUBLISHING_INTERVAL",
               type != NULL ? type : "(none)");
    }
}
