/* Makes packets of a sample: the format module writes the record, attributes and head come before it, the transport
 * module sends it. Owns nothing. Called by sampling threads, with no lock held. */
#include <string.h>

#include "base/um_clock.h"
#include "base/um_debug.h"
#include "base/um_timer.h"
#include "lbmmon/um_mon_pb_module.h"
#include "lbmmon/um_mon_sctl.h"

void um_mon_complain(lbmmon_sctl_t *control, const char *what, const char *(*errmsg)(void))
{
    const char *why = errmsg != NULL ? errmsg() : NULL;
    UM_DEBUG(UM_DEBUG_MONITOR, "source controller %p: %s: %s", (void *)control, what,
             why != NULL ? why : "no reason given");
    um_log_limited(um_log_of(what), um_clock_ns(), UM_LOG_WARNING, "OpenUM-9060-1", "monitoring: %s: %s", what,
                   why != NULL ? why : "no reason given");
}

void um_mon_send_packet(lbmmon_sctl_t *control, unsigned type, const lbmmon_packet_attributes_t *attributes,
                        size_t data_len)
{
    uint8_t block[UM_MON_ATTRIBUTES_MAX];
    size_t block_len = um_mon_attributes_write(attributes, block, sizeof block);
    uint8_t *from = control->packet + UM_MON_DATA_AT - block_len - UM_MON_HEAD_LEN;
    um_mon_head_write(from, type, block_len, data_len);
    memcpy(from + UM_MON_HEAD_LEN, block, block_len);
    if (control->transport->mSend((const char *)from, UM_MON_HEAD_LEN + block_len + data_len,
                                  control->transport_data) != 0) {
        atomic_fetch_add(&control->counts.not_sent, 1);
        um_mon_complain(control, "a packet was not sent", control->transport->mErrorMessage);
        return;
    }
    atomic_fetch_add(&control->counts.packets, 1);
    UM_DEBUG(UM_DEBUG_MONITOR, "source controller %p: sent a packet of type %u, %zu bytes of data", (void *)control,
             type, data_len);
}

/* A record on its way through the format module. */
struct record {
    lbmmon_sctl_t *control;
    lbmmon_packet_attributes_t attributes;
    char *data;
    size_t size;
    unsigned short module_id;
};

static void begin(struct record *record, lbmmon_sctl_t *control, const struct um_mon_sample *sample)
{
    record->control = control;
    record->data = (char *)control->packet + UM_MON_DATA_AT;
    record->size = UM_MON_PART_MAX;
    record->module_id = 0;
    um_mon_sample_attributes(sample, control->ip, &record->attributes);
}

static void end(struct record *record, unsigned type, int written)
{
    if (written == UM_MON_PB_KEPT_BACK) {
        atomic_fetch_add(&record->control->counts.filtered, 1);
        return;
    }
    if (written != 0 || record->size > UM_MON_PART_MAX) {
        atomic_fetch_add(&record->control->counts.not_written, 1);
        um_mon_complain(record->control, "a record was not written", record->control->format->mErrorMessage);
        return;
    }
    record->attributes.mModuleID = record->module_id;
    record->attributes.mFlags |= UM_MON_HAS(LBMMON_ATTR_FORMAT_MODULEID);
    um_mon_send_packet(record->control, type, &record->attributes, record->size);
}

static void set_source_flag(struct record *record, int flag)
{
    record->attributes.mSourceFlag = (lbm_ushort_t)flag;
    record->attributes.mFlags |= UM_MON_HAS(LBMMON_ATTR_SOURCE);
}

static void send_sources(lbmmon_sctl_t *control, const struct um_mon_sample *sample,
                         const struct um_mon_sessions *sessions, int flag)
{
    const lbm_src_transport_stats_t *stats = sessions->stats;
    for (int i = 0; i < sessions->count && control->format->mSrcSerialize != NULL; i++) {
        struct record r;
        begin(&r, control, sample);
        set_source_flag(&r, flag);
        end(&r, LBMMON_PACKET_TYPE_SOURCE,
            control->format->mSrcSerialize(r.data, &r.size, &r.module_id, &r.attributes, &stats[i],
                                           control->format_data));
    }
}

static void send_receivers(lbmmon_sctl_t *control, const struct um_mon_sample *sample,
                           const struct um_mon_sessions *sessions, int flag)
{
    const lbm_rcv_transport_stats_t *stats = sessions->stats;
    for (int i = 0; i < sessions->count && control->format->mRcvSerialize != NULL; i++) {
        struct record r;
        begin(&r, control, sample);
        set_source_flag(&r, flag);
        end(&r, LBMMON_PACKET_TYPE_RECEIVER,
            control->format->mRcvSerialize(r.data, &r.size, &r.module_id, &r.attributes, &stats[i],
                                           control->format_data));
    }
}

static void send_context(lbmmon_sctl_t *control, const struct um_mon_sample *sample)
{
    struct record r;
    if (control->format->mCtxSerialize != NULL) {
        begin(&r, control, sample);
        end(&r, LBMMON_PACKET_TYPE_CONTEXT,
            control->format->mCtxSerialize(r.data, &r.size, &r.module_id, &r.attributes, &sample->context,
                                           control->format_data));
    }
    send_sources(control, sample, &sample->sources, LBMMON_ATTR_SOURCE_NORMAL);
    send_receivers(control, sample, &sample->receivers, LBMMON_ATTR_SOURCE_NORMAL);
    send_sources(control, sample, &sample->im_sources, LBMMON_ATTR_SOURCE_IM);
    send_receivers(control, sample, &sample->im_receivers, LBMMON_ATTR_SOURCE_IM);
}

static void send_event_queue(lbmmon_sctl_t *control, const struct um_mon_sample *sample)
{
    struct record r;
    if (control->format->mEvqSerialize != NULL) {
        begin(&r, control, sample);
        end(&r, LBMMON_PACKET_TYPE_EVENT_QUEUE,
            control->format->mEvqSerialize(r.data, &r.size, &r.module_id, &r.attributes, &sample->event_queue,
                                           control->format_data));
    }
}

/* A record has as many sources as fit into a packet in any format: about 300 bytes of each. */
static void send_topic(lbmmon_sctl_t *control, const struct um_mon_sample *sample)
{
    enum { SOURCES_OF_A_RECORD = 150 };
    const struct um_monitored_topic *topic = &sample->topic;
    size_t at = 0;
    do {
        struct record r;
        size_t left = topic->count - at;
        size_t some = left < SOURCES_OF_A_RECORD ? left : SOURCES_OF_A_RECORD;
        if (control->format->mRcvTopicSerialize == NULL) {
            return;
        }
        begin(&r, control, sample);
        end(&r, LBMMON_PACKET_TYPE_RECEIVER_TOPIC,
            control->format->mRcvTopicSerialize(r.data, &r.size, &r.module_id, &r.attributes, topic->name, some,
                                                some > 0 ? topic->sources + at : NULL, control->format_data));
        at += some;
    } while (at < topic->count);
}

static void send_pattern(lbmmon_sctl_t *control, const struct um_mon_sample *sample)
{
    struct record r;
    if (control->format->mWildcardRcvSerialize != NULL) {
        begin(&r, control, sample);
        end(&r, LBMMON_PACKET_TYPE_WILDCARD_RECEIVER,
            control->format->mWildcardRcvSerialize(r.data, &r.size, &r.module_id, &r.attributes, &sample->pattern,
                                                   control->format_data));
    }
}

void um_mon_send_sample(lbmmon_sctl_t *control, const struct um_mon_sample *sample)
{
    switch (sample->what) {
    case UM_MON_CONTEXT:
        send_context(control, sample);
        break;
    case UM_MON_SOURCE:
        send_sources(control, sample, &sample->sources, LBMMON_ATTR_SOURCE_NORMAL);
        break;
    case UM_MON_RECEIVER:
        send_receivers(control, sample, &sample->receivers, LBMMON_ATTR_SOURCE_NORMAL);
        break;
    case UM_MON_EVENT_QUEUE:
        send_event_queue(control, sample);
        break;
    case UM_MON_TOPIC:
        send_topic(control, sample);
        break;
    case UM_MON_PATTERN:
        send_pattern(control, sample);
        break;
    }
}
