/* Lines of numbers in decimal. Called by the thread of the receive controller. */
#include "ex_mon_csv.h"

#include <stdint.h>

enum { QUEUE_COUNTERS = 52, CONTEXT_COUNTERS = 19 }; /* those that came later are left out */

int ex_mon_csv_kind(const struct ex_mon_record *record)
{
    static const struct {
        int transport, source, source_immediate;
    } kinds[] = {
        {LBM_TRANSPORT_STAT_TCP, 1, 1},      {LBM_TRANSPORT_STAT_LBTRM, 3, 9},     {LBM_TRANSPORT_STAT_LBTRU, 5, 5},
        {LBM_TRANSPORT_STAT_LBTIPC, 11, 11}, {LBM_TRANSPORT_STAT_LBTRDMA, 13, 13}, {LBM_TRANSPORT_STAT_LBTSMX, 15, 15},
        {LBM_TRANSPORT_STAT_BROKER, 17, 17},
    };
    if (record->type == LBMMON_PACKET_TYPE_EVENT_QUEUE || record->type == LBMMON_PACKET_TYPE_CONTEXT) {
        return record->type == LBMMON_PACKET_TYPE_EVENT_QUEUE ? 7 : 8;
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (kinds[i].transport == ex_mon_transport_type(record)) {
            int kind = record->about.source_flag == LBMMON_ATTR_SOURCE_IM ? kinds[i].source_immediate : kinds[i].source;
            return kind + (record->type == LBMMON_PACKET_TYPE_RECEIVER);
        }
    }
    return 0;
}

/* Quotes in a text would end it. */
static void print_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text != '\0'; text++) {
        ex_mon_put(out, *text == '"' ? "'" : text, 1);
    }
    fputs("\",", out);
}

void ex_mon_csv_about(FILE *out, const struct ex_mon_record *record)
{
    const char *source = ex_mon_source(record);
    fprintf(out, "%lld,", (long long)record->about.sent);
    print_text(out, record->about.address);
    print_text(out, record->about.application);
    print_text(out, source[0] != '\0' ? source : " ");
}

void ex_mon_csv_counters(FILE *out, const struct ex_mon_record *record, bool narrow)
{
    const lbm_ulong_t *counters;
    size_t count = ex_mon_counters(record, &counters);
    if (record->type == LBMMON_PACKET_TYPE_EVENT_QUEUE) {
        count = QUEUE_COUNTERS;
    } else if (record->type == LBMMON_PACKET_TYPE_CONTEXT) {
        count = CONTEXT_COUNTERS;
    }
    for (size_t i = 0; i < count; i++) {
        unsigned long value = (unsigned long)counters[i];
        fprintf(out, "%s%lu", i > 0 ? "," : "", narrow && value > UINT32_MAX ? UINT32_MAX : value);
    }
    fputc('\n', out);
}
