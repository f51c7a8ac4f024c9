/* Fuzz target: protobuf records of monitoring. The first byte chooses the kind, the rest are a stranger's bytes. What
 * is read is written and read again, and is the same then, names that are no UTF-8 made so. Rules of filters, in the
 * same bytes, and what they leave. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <lbm/lbmmon.h>

#include "base/um_utf8.h"
#include "lbmmon/um_mon_filter.h"
#include "lbmmon/um_mon_pb.h"

enum { ID = 0x0201, SOURCES = 64, ROOM = 65536 };

static char written[ROOM];

static void check(int holds)
{
    if (!holds) {
        abort();
    }
}

/* As a name is written. */
static void make_utf8(char *name, size_t size)
{
    char copy[256] = {0};
    check(size == sizeof copy);
    um_utf8_copy(copy, sizeof copy, name);
    memcpy(name, copy, size);
}

static void no_name(const void *statistics)
{
    (void)statistics;
}

static void clean_pattern(lbm_wildcard_rcv_stats_t *wildcard)
{
    make_utf8(wildcard->pattern, sizeof wildcard->pattern);
}

#define ROUND_TRIP(kind, type, clean)                                                                                  \
    do {                                                                                                               \
        type first, second;                                                                                            \
        lbmmon_packet_attributes_t attributes = {0};                                                                   \
        if (lbmmon_##kind##_format_pb_deserialize(&attributes, &first, source, len, ID, NULL) == 0) {                  \
            check(lbmmon_##kind##_format_pb_serialize(written, &size, &id, &attributes, &first, NULL) == 0);           \
            check(lbmmon_##kind##_format_pb_deserialize(NULL, &second, written, size, id, NULL) == 0);                 \
            clean(&first);                                                                                             \
            check(memcmp(&first, &second, sizeof first) == 0);                                                         \
        }                                                                                                              \
    } while (0)

static void topics(const char *source, size_t len)
{
    static lbm_rcv_topic_stats_t first[SOURCES], second[SOURCES];
    size_t count = SOURCES, again = SOURCES, size = ROOM;
    unsigned short id;
    int rc = lbmmon_rcv_topic_format_pb_deserialize(NULL, &count, first, source, len, ID, NULL);
    if (rc == LBMMON_FORMAT_DESERIALIZE_TOO_SMALL) {
        check(count > SOURCES);
    } else if (rc == 0) {
        check(lbmmon_rcv_topic_format_pb_serialize(written, &size, &id, NULL, first[0].topic, count, first, NULL) == 0);
        check(lbmmon_rcv_topic_format_pb_deserialize(NULL, &again, second, written, size, id, NULL) == 0);
        for (size_t i = 0; i < count; i++) {
            make_utf8(first[i].topic, sizeof first[i].topic);
        }
        check(count == again && memcmp(first, second, count * sizeof first[0]) == 0);
    }
}

static void daemons(const char *source, size_t len)
{
    lbmmon_packet_attributes_t attributes = {0};
    Lbmmon__UMPMonMsg *store;
    Lbmmon__DROMonMsg *router;
    unsigned short id;
    if (lbmmon_store_format_pb_deserialize(&attributes, &store, source, len, ID, NULL) == 0) {
        size_t needed, size = ROOM;
        lbmmon_store_format_pb_serialize(NULL, &needed, NULL, &attributes, store, LBMMON_SERIALIZE_CALC_SIZE_ONLY,
                                         NULL);
        int rc = lbmmon_store_format_pb_serialize(written, &size, &id, &attributes, store, 0, NULL);
        check(size == needed && (rc == 0) == (needed <= ROOM));
        lbmmon_store_free_unpacked(store);
    }
    if (lbmmon_gateway_format_pb_deserialize(&attributes, &router, source, len, ID, NULL) == 0) {
        size_t size = ROOM;
        lbmmon_gateway_format_pb_serialize(written, &size, &id, NULL, router, NULL);
        lbmmon_gateway_free_unpacked(router);
    }
}

/* Rules from the bytes up to a NUL, or some of our own, about the record that is behind it: it becomes no longer, and
 * what was a record stays one. */
static void filters(const char *source, size_t len)
{
    static const char some[] = "select|ums.stats.receiver_transports.lbtrm.lost=gt 1;filter|ums.stats.context=off;"
                               "select|ums.events.receiver_topics.sources.source_string=match_regx ^T;"
                               "filter|ums.stats.source_transports.tcp.num_clients=lt 9;filter|ums.attributes=off";
    const ProtobufCMessageDescriptor *kind = &lbmmon__umsmon_msg__descriptor;
    const char *nul = memchr(source, 0, len);
    struct um_mon_rules *rules = um_mon_rules_read(nul != NULL && nul > source ? source : some);
    size_t rest = nul != NULL ? len - (size_t)(nul + 1 - source) : 0, now = rest;
    if (rules == NULL || rest > ROOM) {
        um_mon_rules_free(rules);
        return;
    }
    memcpy(written, nul != NULL ? nul + 1 : source, rest);
    ProtobufCMessage *before = um_mon_pb_unpack(kind, written, rest);
    um_mon_rules_apply(rules, kind, written, &now);
    check(now <= rest);
    if (before != NULL) {
        ProtobufCMessage *after = um_mon_pb_unpack(kind, written, now);
        check(after != NULL);
        um_mon_pb_free(after);
        um_mon_pb_free(before);
    }
    um_mon_rules_free(rules);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes == 0) {
        return 0;
    }
    const char *source = (const char *)data + 1;
    size_t len = bytes - 1, size = ROOM;
    unsigned short id;
    switch (data[0] % 8) {
    case 0:
        ROUND_TRIP(src, lbm_src_transport_stats_t, no_name);
        break;
    case 1:
        ROUND_TRIP(rcv, lbm_rcv_transport_stats_t, no_name);
        break;
    case 2:
        ROUND_TRIP(evq, lbm_event_queue_stats_t, no_name);
        break;
    case 3:
        ROUND_TRIP(ctx, lbm_context_stats_t, no_name);
        break;
    case 4:
        topics(source, len);
        break;
    case 5:
        ROUND_TRIP(wildcard_rcv, lbm_wildcard_rcv_stats_t, clean_pattern);
        break;
    case 6:
        daemons(source, len);
        break;
    default:
        filters(source, len);
        break;
    }
    return 0;
}
