/* Fuzz target of monitoring: packets, attributes and CSV records of every kind, as a receive controller reads them.
 * What was read is written and read again, and must be the same. Run by the fuzz stage of the build; seeds in
 * corpus/mon_packet_fuzz. */
#include <stdlib.h>
#include <string.h>

#include <lbm/lbmmon.h>

#include "lbmmon/um_mon_packet.h"

static char text[UM_MON_PART_MAX];

#define AGAIN(type, decode, encode)                                                                                    \
    do {                                                                                                               \
        type first, second;                                                                                            \
        unsigned short written_id;                                                                                     \
        size_t written = sizeof text;                                                                                  \
        memset(&first, 0, sizeof first);                                                                               \
        memset(&second, 0, sizeof second);                                                                             \
        if (decode(&attributes, &first, data, len, id, NULL) == 0 &&                                                   \
            (encode(text, &written, &written_id, &attributes, &first, NULL) != 0 ||                                    \
             decode(&attributes, &second, text, written, written_id, NULL) != 0 ||                                     \
             memcmp(&first, &second, sizeof first) != 0)) {                                                            \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

static void read_topics(const char *data, size_t len, unsigned short id)
{
    static lbm_rcv_topic_stats_t topics[UM_MON_PART_MAX / 64 + 1];
    lbmmon_packet_attributes_t attributes;
    size_t count = sizeof topics / sizeof topics[0];
    memset(&attributes, 0, sizeof attributes);
    if (lbmmon_rcv_topic_format_csv_deserialize(&attributes, &count, topics, data, len, id, NULL) == 0 &&
        (count == 0 || count > sizeof topics / sizeof topics[0])) {
        abort();
    }
}

static void read_record(const struct um_mon_packet *packet, unsigned short id)
{
    const char *data = (const char *)packet->data;
    size_t len = packet->data_len;
    lbmmon_packet_attributes_t attributes;
    um_mon_attributes_init(&attributes);
    switch (packet->type) {
    case LBMMON_PACKET_TYPE_SOURCE:
        AGAIN(lbm_src_transport_stats_t, lbmmon_src_format_csv_deserialize, lbmmon_src_format_csv_serialize);
        break;
    case LBMMON_PACKET_TYPE_RECEIVER:
        AGAIN(lbm_rcv_transport_stats_t, lbmmon_rcv_format_csv_deserialize, lbmmon_rcv_format_csv_serialize);
        break;
    case LBMMON_PACKET_TYPE_EVENT_QUEUE:
        AGAIN(lbm_event_queue_stats_t, lbmmon_evq_format_csv_deserialize, lbmmon_evq_format_csv_serialize);
        break;
    case LBMMON_PACKET_TYPE_CONTEXT:
        AGAIN(lbm_context_stats_t, lbmmon_ctx_format_csv_deserialize, lbmmon_ctx_format_csv_serialize);
        break;
    case LBMMON_PACKET_TYPE_WILDCARD_RECEIVER:
        AGAIN(lbm_wildcard_rcv_stats_t, lbmmon_wildcard_rcv_format_csv_deserialize,
              lbmmon_wildcard_rcv_format_csv_serialize);
        break;
    default:
        read_topics(data, len, id);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct um_mon_packet packet;
    lbmmon_packet_attributes_t attributes, again;
    uint8_t block[UM_MON_ATTRIBUTES_MAX];
    if (um_mon_packet_read(data, size, &packet) != 0 ||
        um_mon_attributes_read(packet.attributes, packet.attributes_len, &attributes) != 0) {
        return 0;
    }
    size_t len = um_mon_attributes_write(&attributes, block, sizeof block);
    if (len == 0 || um_mon_attributes_read(block, len, &again) != 0 || again.mFlags != attributes.mFlags ||
        strcmp(again.mApplicationSourceID, attributes.mApplicationSourceID) != 0) {
        abort();
    }
    read_record(&packet, attributes.mModuleID);
    return 0;
}
