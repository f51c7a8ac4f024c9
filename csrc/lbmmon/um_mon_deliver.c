/* What becomes of a packet: the format that its module id names decodes it, and a callback is called. Owns nothing. On
 * the receive thread, with no lock held. */
#include <string.h>

#include "base/um_debug.h"
#include "base/um_mem.h"
#include "lbmmon/um_mon_rctl.h"

/* A packet on its way. */
struct delivery {
    lbmmon_rctl_t *control;
    const struct um_mon_format *format;
    struct um_mon_packet packet;
    lbmmon_packet_attributes_t attributes;
};

static void count(atomic_ullong *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* ---- which format ---- */

static const lbmmon_format_func_t *built_in(unsigned id)
{
    return id == LBMMON_FORMAT_CSV_MODULE_ID  ? lbmmon_format_csv_module()
           : id == LBMMON_FORMAT_PB_MODULE_ID ? lbmmon_format_pb_module()
                                              : NULL;
}

/* Senders of both built-in formats may be mixed, whichever the controller was made with; a format of the application
 * gets every packet. */
static const struct um_mon_format *choose_format(lbmmon_rctl_t *control, unsigned module_id)
{
    const lbmmon_format_func_t *named = built_in(MODULE_ID(module_id)), *own = control->format.calls;
    bool own_is_built_in = own == lbmmon_format_csv_module() || own == lbmmon_format_pb_module();
    if (named == NULL || named == own || !own_is_built_in) {
        return &control->format;
    }
    struct um_mon_format *other = &control->other;
    if (!other->tried) {
        other->tried = true;
        other->calls = named->mInit(&other->data, control->format_opts) == 0 ? named : NULL;
    }
    return other->calls != NULL ? other : &control->format;
}

/* ---- passing through ---- */

static void pass_through(struct delivery *d, void *block, size_t block_len, void *data, size_t data_len)
{
    lbmmon_passthrough_statistics_cb callback = d->control->callbacks.passthrough;
    lbmmon_packet_hdr_t head;
    if (callback != NULL) {
        um_mon_head_write(&head, d->packet.type, block_len, data_len);
        callback(&head, &d->attributes, block, data, data_len, d->control->clientd);
    }
}

static void pass_through_raw(struct delivery *d)
{
    pass_through(d, (void *)d->packet.attributes, d->packet.attributes_len, (void *)d->packet.data, d->packet.data_len);
}

/* The converted record, with attributes that name its format. Filters are for those that send: none acts here. */
static void pass_through_converted(struct delivery *d, int written, size_t size, unsigned short module_id)
{
    uint8_t block[UM_MON_ATTRIBUTES_MAX];
    if (written != 0) {
        count(&d->control->counts.undecodable);
        return;
    }
    d->attributes.mModuleID = module_id;
    d->attributes.mFlags |= UM_MON_HAS(LBMMON_ATTR_FORMAT_MODULEID);
    size_t block_len = um_mon_attributes_write(&d->attributes, block, sizeof block);
    pass_through(d, block, block_len, d->control->converted, size);
}

/* The pb module and room for what it writes. NULL: it cannot be had. */
static const struct um_mon_format *converter(lbmmon_rctl_t *control)
{
    const struct um_mon_format *format = choose_format(control, MAKE_MODULE_VERSION(LBMMON_FORMAT_PB_MODULE_ID, 1));
    if (control->converted == NULL) {
        control->converted = um_malloc(UM_MON_PART_MAX);
    }
    return control->converted != NULL && format->calls == lbmmon_format_pb_module() ? format : NULL;
}

/* Whether the answer of a format module is that of a decoded record; the others are dealt with. */
static bool is_decoded(struct delivery *d, int answer)
{
    switch (answer) {
    case LBMMON_FORMAT_DESERIALIZE_OK:
    case LBMMON_FORMAT_DESERIALIZE_CONVERT_PASSTHROUGH:
        return true;
    case LBMMON_FORMAT_DESERIALIZE_PASSTHROUGH:
        pass_through_raw(d);
        return false;
    default:
        count(&d->control->counts.undecodable);
        return false;
    }
}

/* ---- the kinds of records ---- */

/* Those of one structure are alike: decode, then the callback, or the converted record to the other one. */
#define DELIVER_KIND(function, type, decode, encode, callback)                                                         \
    static void function(struct delivery *d)                                                                           \
    {                                                                                                                  \
        type statistics;                                                                                               \
        if (d->format->calls->decode == NULL) {                                                                        \
            count(&d->control->counts.unknown);                                                                        \
            return;                                                                                                    \
        }                                                                                                              \
        int answer = d->format->calls->decode(&d->attributes, &statistics, (const char *)d->packet.data,               \
                                              d->packet.data_len, d->attributes.mModuleID, d->format->data);           \
        if (!is_decoded(d, answer)) {                                                                                  \
            return;                                                                                                    \
        }                                                                                                              \
        if (answer == LBMMON_FORMAT_DESERIALIZE_OK) {                                                                  \
            if (d->control->callbacks.callback != NULL) {                                                              \
                d->control->callbacks.callback(&d->attributes, &statistics, d->control->clientd);                      \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        const struct um_mon_format *pb = converter(d->control);                                                        \
        size_t size = UM_MON_PART_MAX;                                                                                 \
        unsigned short id = 0;                                                                                         \
        int written =                                                                                                  \
            pb != NULL ? pb->calls->encode(d->control->converted, &size, &id, &d->attributes, &statistics, NULL) : -1; \
        pass_through_converted(d, written, size, id);                                                                  \
    }

DELIVER_KIND(deliver_source, lbm_src_transport_stats_t, mSrcDeserialize, mSrcSerialize, source)
DELIVER_KIND(deliver_receiver, lbm_rcv_transport_stats_t, mRcvDeserialize, mRcvSerialize, receiver)
DELIVER_KIND(deliver_event_queue, lbm_event_queue_stats_t, mEvqDeserialize, mEvqSerialize, event_queue)
DELIVER_KIND(deliver_context, lbm_context_stats_t, mCtxDeserialize, mCtxSerialize, context)
DELIVER_KIND(deliver_wildcard, lbm_wildcard_rcv_stats_t, mWildcardRcvDeserialize, mWildcardRcvSerialize, wildcard)

/* Room grows to what the module asks for, which a packet bounds: 64 KiB hold no more sources than that. */
static int decode_topic(struct delivery *d, size_t *topics)
{
    lbmmon_rctl_t *control = d->control;
    for (int tries = 0; tries < 2; tries++) {
        *topics = control->topic_room;
        int answer = d->format->calls->mRcvTopicDeserialize(&d->attributes, topics, control->topics,
                                                            (const char *)d->packet.data, d->packet.data_len,
                                                            d->attributes.mModuleID, d->format->data);
        if (answer != LBMMON_FORMAT_DESERIALIZE_TOO_SMALL || *topics > UM_MON_PART_MAX / 2) {
            return answer;
        }
        lbm_rcv_topic_stats_t *more = um_realloc(control->topics, *topics * sizeof *more);
        if (more == NULL) {
            break;
        }
        control->topics = more;
        control->topic_room = *topics;
    }
    return LBMMON_FORMAT_DESERIALIZE_FAILURE;
}

static void deliver_topic(struct delivery *d)
{
    lbmmon_rctl_t *control = d->control;
    size_t topics = 0;
    if (d->format->calls->mRcvTopicDeserialize == NULL) {
        count(&control->counts.unknown);
        return;
    }
    int answer = decode_topic(d, &topics);
    if (!is_decoded(d, answer)) {
        return;
    }
    for (size_t i = 0; answer == LBMMON_FORMAT_DESERIALIZE_OK && i < topics && control->callbacks.topic != NULL; i++) {
        control->callbacks.topic(&d->attributes, &control->topics[i], control->clientd);
    }
    if (answer != LBMMON_FORMAT_DESERIALIZE_OK && topics > 0) {
        const struct um_mon_format *pb = converter(control);
        size_t size = UM_MON_PART_MAX;
        unsigned short id = 0;
        bool none = control->topics[0].flags == LBM_RCV_TOPIC_STATS_FLAG_NO_SOURCE;
        int written = pb != NULL ? pb->calls->mRcvTopicSerialize(control->converted, &size, &id, &d->attributes,
                                                                 control->topics[0].topic, none ? 0 : topics,
                                                                 control->topics, NULL)
                                 : -1;
        pass_through_converted(d, written, size, id);
    }
}

static void deliver_store(struct delivery *d)
{
    Lbmmon__UMPMonMsg *message = NULL;
    const lbmmon_format_func_t *calls = d->format->calls;
    if (calls->mStoreDeserialize == NULL) {
        count(&d->control->counts.unknown);
        return;
    }
    int answer = calls->mStoreDeserialize(&d->attributes, &message, (const char *)d->packet.data, d->packet.data_len,
                                          d->attributes.mModuleID, d->format->data);
    if (is_decoded(d, answer) && message != NULL && d->control->callbacks.store != NULL) {
        d->control->callbacks.store(&d->attributes, message, d->control->clientd);
    }
    if (message != NULL && calls->mStoreFreeUnpacked != NULL) {
        calls->mStoreFreeUnpacked(message);
    }
}

static void deliver_gateway(struct delivery *d)
{
    Lbmmon__DROMonMsg *message = NULL;
    const lbmmon_format_func_t *calls = d->format->calls;
    if (calls->mGatewayDeserialize == NULL) {
        count(&d->control->counts.unknown);
        return;
    }
    int answer = calls->mGatewayDeserialize(&d->attributes, &message, (const char *)d->packet.data, d->packet.data_len,
                                            d->attributes.mModuleID, d->format->data);
    if (is_decoded(d, answer) && message != NULL && d->control->callbacks.gateway != NULL) {
        d->control->callbacks.gateway(&d->attributes, message, d->control->clientd);
    }
    if (message != NULL && calls->mGatewayFreeUnpacked != NULL) {
        calls->mGatewayFreeUnpacked(message);
    }
}

/* Lines of a log have no structure in lbmmon.h: only who asks for packets gets them. */
static void deliver_log(struct delivery *d)
{
    if (d->control->passthrough != LBMMON_FORMAT_PASSTHROUGH_OFF) {
        pass_through_raw(d);
    }
}

/* Has no callback of its own. */
static void deliver_srs(struct delivery *d)
{
    if (d->control->passthrough != LBMMON_FORMAT_PASSTHROUGH_OFF) {
        pass_through_raw(d);
    } else {
        count(&d->control->counts.unknown);
    }
}

/* A bare head, as of lbmmon_add_header(), has protobuf behind it: the attributes are in there. */
static int read_attributes(struct delivery *d)
{
    if (d->packet.attributes_len > 0) {
        return um_mon_attributes_read(d->packet.attributes, d->packet.attributes_len, &d->attributes);
    }
    um_mon_attributes_init(&d->attributes);
    d->attributes.mModuleID = MAKE_MODULE_VERSION(LBMMON_FORMAT_PB_MODULE_ID, LBMMON_FORMAT_PB_VERSION_CURRENT);
    d->attributes.mFlags = UM_MON_HAS(LBMMON_ATTR_FORMAT_MODULEID);
    return 0;
}

void um_mon_deliver(lbmmon_rctl_t *control, const char *bytes, size_t len)
{
    static void (*const kinds[])(struct delivery *) = {
        [LBMMON_PACKET_TYPE_SOURCE] = deliver_source,
        [LBMMON_PACKET_TYPE_RECEIVER] = deliver_receiver,
        [LBMMON_PACKET_TYPE_EVENT_QUEUE] = deliver_event_queue,
        [LBMMON_PACKET_TYPE_CONTEXT] = deliver_context,
        [LBMMON_PACKET_TYPE_RECEIVER_TOPIC] = deliver_topic,
        [LBMMON_PACKET_TYPE_WILDCARD_RECEIVER] = deliver_wildcard,
        [LBMMON_PACKET_TYPE_UMESTORE] = deliver_store,
        [LBMMON_PACKET_TYPE_GATEWAY] = deliver_gateway,
        [LBMMON_PACKET_TYPE_SRS] = deliver_srs,
    };
    struct delivery d = {.control = control};
    count(&control->counts.packets);
    if (um_mon_packet_read(bytes, len, &d.packet) != 0 || read_attributes(&d) != 0) {
        count(&control->counts.malformed);
        UM_DEBUG(UM_DEBUG_MONITOR, "receive controller %p: a packet of %zu bytes is malformed", (void *)control, len);
        return;
    }
    UM_DEBUG(UM_DEBUG_MONITOR, "receive controller %p: a packet of type %u, %zu bytes of data", (void *)control,
             (unsigned)d.packet.type, (size_t)d.packet.data_len);
    if (d.packet.type == UM_MON_PACKET_LOG) {
        deliver_log(&d);
        return;
    }
    if (d.packet.type >= sizeof kinds / sizeof kinds[0] || kinds[d.packet.type] == NULL) {
        count(&control->counts.unknown);
        return;
    }
    d.format = choose_format(control, d.attributes.mModuleID);
    kinds[d.packet.type](&d);
}
