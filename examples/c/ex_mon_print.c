/* Monitoring records in words: a heading, then a line for each value. Called by the thread
 * of the receive controller, or by main(). */
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "ex_mon.h"

static const char *title(int type)
{
    switch (type) {
    case LBMMON_PACKET_TYPE_SOURCE:
        return "Source statistics received";
    case LBMMON_PACKET_TYPE_RECEIVER:
        return "Receiver statistics received";
    case LBMMON_PACKET_TYPE_EVENT_QUEUE:
        return "Event queue statistics received";
    case LBMMON_PACKET_TYPE_CONTEXT:
        return "Context statistics received";
    case LBMMON_PACKET_TYPE_RECEIVER_TOPIC:
        return "Receiver topic statistics received";
    case LBMMON_PACKET_TYPE_WILDCARD_RECEIVER:
        return "Wildcard receiver statistics received";
    case LBMMON_PACKET_TYPE_UMESTORE:
        return "Store statistics received";
    case LBMMON_PACKET_TYPE_GATEWAY:
        return "Gateway statistics received";
    default:
        return "SRS statistics received";
    }
}

static void print_heading(FILE *out, const struct ex_mon_record *record)
{
    const struct ex_mon_about *about = &record->about;
    fprintf(out, "\n%s", title(record->type));
    if (ex_mon_has(about, LBMMON_ATTR_APPSOURCEID)) {
        fprintf(out, " from %s", about->application);
    }
    if (ex_mon_has(about, LBMMON_ATTR_SENDER_IPV4)) {
        fprintf(out, " at %s", about->address);
    }
    if (ex_mon_has(about, LBMMON_ATTR_PROCESSID)) {
        fprintf(out, ", process ID=%0lx", (unsigned long)about->process);
    }
    if (ex_mon_has(about, LBMMON_ATTR_OBJECTID)) {
        fprintf(out, ", object ID=%0lx", (unsigned long)about->object);
    }
    if (ex_mon_has(about, LBMMON_ATTR_CTXINST)) {
        fprintf(out, ", context instance=");
        for (size_t i = 0; i < sizeof(about->instance); i++) {
            fprintf(out, "%02x", about->instance[i]);
        }
    }
    if (ex_mon_has(about, LBMMON_ATTR_DOMAINID)) {
        fprintf(out, ", domain ID=%u", (unsigned)about->domain);
    }
    char text[32] = "\n";
    if (ex_mon_has(about, LBMMON_ATTR_TIMESTAMP) && ctime_r(&about->sent, text) != NULL) {
        fprintf(out, ", sent %s", text);
    } else {
        fprintf(out, "\n");
    }
}

static void print_text(FILE *out, const char *label, const char *text, size_t max)
{
    fputs(label, out);
    ex_mon_put(out, text, max);
    fputc('\n', out);
}

static void print_counters(FILE *out, const struct ex_mon_record *record)
{
    const lbm_ulong_t *counters;
    size_t count = ex_mon_counters(record, &counters);
    const struct ex_mon_labels *table = ex_mon_labels(record->type, ex_mon_transport_type(record));
    if (table == NULL) {
        return;
    }
    if (table->transport != NULL) {
        print_text(out, "Source: ", ex_mon_source(record), SIZE_MAX);
        fprintf(out, "Transport: %s\n", table->transport);
    }
    for (size_t i = 0; i < table->count; i++) {
        size_t at = table->order != NULL ? table->order[i] : i;
        if (at < count) {
            fprintf(out, "\t%s: %lu%s\n", table->labels[i].text, (unsigned long)counters[at], table->labels[i].unit);
        }
    }
}

static const char *state_of(lbm_uint32_t flags)
{
    return (flags & LBM_RCV_TOPIC_STATS_FLAG_SRC_DELETED) != 0   ? "Deleted"
           : (flags & LBM_RCV_TOPIC_STATS_FLAG_SRC_CREATED) != 0 ? "Created"
                                                                 : "No source";
}

static void print_topic(FILE *out, const lbm_rcv_topic_stats_t *stats, size_t count)
{
    print_text(out, "\tTopic                                              : ", stats->topic, sizeof(stats->topic));
    for (size_t i = 0; i < count; i++) {
        const lbm_rcv_topic_stats_t *one = &stats[i];
        if (one->flags == LBM_RCV_TOPIC_STATS_FLAG_NO_SOURCE) {
            fprintf(out, "\tNo known sources\n");
            continue;
        }
        print_text(out, "\tSource                                             : ", one->source, sizeof(one->source));
        fprintf(out, "\tOTID                                               : ");
        for (size_t n = 0; n < sizeof(one->otid); n++) {
            fprintf(out, "%02x", one->otid[n]);
        }
        fprintf(out, "\n\tTopic index                                        : %u\n", (unsigned)one->topic_idx);
        char text[32] = "";
        time_t when = (time_t)one->timestamp_sec;
        if (when != 0 && ctime_r(&when, text) != NULL) {
            text[strcspn(text, "\n")] = '\0';
            fprintf(out, "\tSource state                                       : %s on %s (%ld usec)\n",
                    state_of(one->flags), text, (long)one->timestamp_usec);
        }
    }
}

void ex_mon_print(FILE *out, const struct ex_mon_record *record)
{
    print_heading(out, record);
    switch (record->type) {
    case LBMMON_PACKET_TYPE_RECEIVER_TOPIC:
        print_topic(out, record->stats.topic, record->count);
        break;
    case LBMMON_PACKET_TYPE_WILDCARD_RECEIVER:
        print_text(out, "\tWildcard receiver pattern   : ", record->stats.wildcard->pattern,
                   sizeof(record->stats.wildcard->pattern));
        fprintf(out, "\tWildcard receiver type      : 0x%0x\n", record->stats.wildcard->type);
        break;
    case LBMMON_PACKET_TYPE_UMESTORE:
        ex_mon_print_store(out, record->stats.store);
        break;
    case LBMMON_PACKET_TYPE_GATEWAY:
        ex_mon_print_router(out, record->stats.router);
        break;
    default:
        print_counters(out, record);
        break;
    }
    fflush(out);
}
