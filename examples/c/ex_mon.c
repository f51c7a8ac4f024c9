/* Receiving monitoring records: the controller, its callbacks, and what each record is made
 * of. With passthrough the raw packets come instead, and are read here. */
#include "ex_mon.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { TOPIC_SOURCES_MAX = 1024 }; /* that are read of one raw packet */

/* What the callbacks are given. One controller in a program. */
static struct {
    ex_mon_on_record on_record;
    void *clientd;
} handler;

bool ex_mon_has(const struct ex_mon_about *about, int attribute)
{
    return (about->has & (1U << attribute)) != 0;
}

void ex_mon_fail(const char *function)
{
    fflush(stdout);
    fprintf(stderr, "%s: %s\n", function, lbmmon_errmsg());
    exit(1);
}

/* ---- what is said of the sender ---- */

static void note(struct ex_mon_about *about, int attribute, int rc)
{
    if (rc == 0) {
        about->has |= 1U << attribute;
    }
}

/* What is printed goes to a terminal. */
static char plain(char c)
{
    return (unsigned char)c < 0x20 || c == 0x7f ? '?' : c;
}

void ex_mon_put(FILE *out, const char *text, size_t max)
{
    for (size_t i = 0; i < max && text[i] != '\0'; i++) {
        fputc(plain(text[i]), out);
    }
}

static void read_about(const void *block, struct ex_mon_about *about)
{
    memset(about, 0, sizeof(*about));
    note(about, LBMMON_ATTR_SENDER_IPV4, lbmmon_attr_get_ipv4sender(block, &about->ipv4));
    note(about, LBMMON_ATTR_TIMESTAMP, lbmmon_attr_get_timestamp(block, &about->sent));
    note(about, LBMMON_ATTR_APPSOURCEID,
         lbmmon_attr_get_appsourceid(block, about->application, sizeof(about->application)));
    note(about, LBMMON_ATTR_OBJECTID, lbmmon_attr_get_objectid(block, &about->object));
    note(about, LBMMON_ATTR_PROCESSID, lbmmon_attr_get_processid(block, &about->process));
    note(about, LBMMON_ATTR_SOURCE, lbmmon_attr_get_source(block, &about->source_flag));
    note(about, LBMMON_ATTR_CTXINST, lbmmon_attr_get_ctxinst(block, about->instance, sizeof(about->instance)));
    note(about, LBMMON_ATTR_DOMAINID, lbmmon_attr_get_domainid(block, &about->domain));
    struct in_addr address = {about->ipv4};
    inet_ntop(AF_INET, &address, about->address, sizeof(about->address));
    for (char *p = about->application; *p != '\0'; p++) {
        *p = plain(*p);
    }
}

static void hand_over(int type, const void *block, const void *stats, size_t count)
{
    struct ex_mon_record record = {.type = type, .stats.any = stats, .count = count};
    read_about(block, &record.about);
    handler.on_record(&record, handler.clientd);
}

/* ---- callbacks of decoded records ---- */

static void on_source(const void *block, const lbm_src_transport_stats_t *stats, void *clientd)
{
    hand_over(LBMMON_PACKET_TYPE_SOURCE, block, stats, 1);
}

static void on_receiver(const void *block, const lbm_rcv_transport_stats_t *stats, void *clientd)
{
    hand_over(LBMMON_PACKET_TYPE_RECEIVER, block, stats, 1);
}

static void on_queue(const void *block, const lbm_event_queue_stats_t *stats, void *clientd)
{
    hand_over(LBMMON_PACKET_TYPE_EVENT_QUEUE, block, stats, 1);
}

static void on_context(const void *block, const lbm_context_stats_t *stats, void *clientd)
{
    hand_over(LBMMON_PACKET_TYPE_CONTEXT, block, stats, 1);
}

static void on_topic(const void *block, const lbm_rcv_topic_stats_t *stats, void *clientd)
{
    hand_over(LBMMON_PACKET_TYPE_RECEIVER_TOPIC, block, stats, 1);
}

static void on_wildcard(const void *block, const lbm_wildcard_rcv_stats_t *stats, void *clientd)
{
    hand_over(LBMMON_PACKET_TYPE_WILDCARD_RECEIVER, block, stats, 1);
}

static void on_store(const void *block, const Lbmmon__UMPMonMsg *message, void *clientd)
{
    hand_over(LBMMON_PACKET_TYPE_UMESTORE, block, message, 1);
}

static void on_router(const void *block, const Lbmmon__DROMonMsg *message, void *clientd)
{
    hand_over(LBMMON_PACKET_TYPE_GATEWAY, block, message, 1);
}

/* ---- raw packets ---- */

/* What a raw packet is read into. On the heap of the program: too large for a stack. */
static union {
    lbm_src_transport_stats_t source;
    lbm_rcv_transport_stats_t receiver;
    lbm_event_queue_stats_t queue;
    lbm_context_stats_t context;
    lbm_rcv_topic_stats_t topics[TOPIC_SOURCES_MAX];
    lbm_wildcard_rcv_stats_t wildcard;
} room;

/* The answer of the module; *count becomes that of the topic's sources. */
static int read_packet(const lbmmon_format_func_t *format, int type, lbmmon_packet_attributes_t *attributes,
                       const char *data, size_t length, size_t *count)
{
    unsigned short id = attributes->mModuleID;
    switch (type) {
    case LBMMON_PACKET_TYPE_SOURCE:
        return format->mSrcDeserialize(attributes, &room.source, data, length, id, NULL);
    case LBMMON_PACKET_TYPE_RECEIVER:
        return format->mRcvDeserialize(attributes, &room.receiver, data, length, id, NULL);
    case LBMMON_PACKET_TYPE_EVENT_QUEUE:
        return format->mEvqDeserialize(attributes, &room.queue, data, length, id, NULL);
    case LBMMON_PACKET_TYPE_CONTEXT:
        return format->mCtxDeserialize(attributes, &room.context, data, length, id, NULL);
    case LBMMON_PACKET_TYPE_RECEIVER_TOPIC:
        *count = TOPIC_SOURCES_MAX;
        return format->mRcvTopicDeserialize(attributes, count, room.topics, data, length, id, NULL);
    case LBMMON_PACKET_TYPE_WILDCARD_RECEIVER:
        return format->mWildcardRcvDeserialize(attributes, &room.wildcard, data, length, id, NULL);
    default:
        return LBMMON_FORMAT_DESERIALIZE_FAILURE;
    }
}

static void not_readable(int rc, const char *why)
{
    printf("ERROR!  Deserialize function returned %d, %s\n", rc, why);
    fflush(stdout);
}

/* Messages of daemons are handed over as they are. */
static void read_daemon(int type, lbmmon_packet_attributes_t *attributes, const char *data, size_t length)
{
    const lbmmon_format_func_t *pb = lbmmon_format_pb_module();
    Lbmmon__UMPMonMsg *store;
    Lbmmon__DROMonMsg *router;
    Lbmmon__SRSMonMsg *srs;
    int rc = 0;
    if (type == LBMMON_PACKET_TYPE_UMESTORE) {
        rc = pb->mStoreDeserialize(attributes, &store, data, length, attributes->mModuleID, NULL);
        if (rc == 0) {
            hand_over(type, attributes, store, 1);
            pb->mStoreFreeUnpacked(store);
        }
    } else if (type == LBMMON_PACKET_TYPE_GATEWAY) {
        rc = pb->mGatewayDeserialize(attributes, &router, data, length, attributes->mModuleID, NULL);
        if (rc == 0) {
            hand_over(type, attributes, router, 1);
            pb->mGatewayFreeUnpacked(router);
        }
    } else if ((srs = lbmmon__srsmon_msg__unpack(NULL, length, (const uint8_t *)data)) != NULL) {
        hand_over(type, attributes, srs, 1);
        lbmmon__srsmon_msg__free_unpacked(srs, NULL);
    } else {
        not_readable(LBMMON_FORMAT_DESERIALIZE_FAILURE, "not a message of an SRS");
    }
    if (rc != 0) {
        not_readable(rc, pb->mErrorMessage());
    }
}

static void on_packet(const lbmmon_packet_hdr_t *header, lbmmon_packet_attributes_t *attributes, void *block,
                      void *data, size_t length, void *clientd)
{
    int type = ntohs(header->mType);
    size_t count = 1;
    int module = MODULE_ID(attributes->mModuleID);
    if (module != LBMMON_FORMAT_CSV_MODULE_ID && module != LBMMON_FORMAT_PB_MODULE_ID) {
        printf("ERROR! Invalid Module ID %d.\n", module);
        fflush(stdout);
        return;
    }
    if (type == LBMMON_PACKET_TYPE_UMESTORE || type == LBMMON_PACKET_TYPE_GATEWAY || type == LBMMON_PACKET_TYPE_SRS) {
        read_daemon(type, attributes, data, length);
        return;
    }
    const lbmmon_format_func_t *format =
        module == LBMMON_FORMAT_PB_MODULE_ID ? lbmmon_format_pb_module() : lbmmon_format_csv_module();
    int rc = read_packet(format, type, attributes, data, length, &count);
    if (rc == 0) {
        hand_over(type, attributes, &room, count);
    } else {
        not_readable(rc, format->mErrorMessage());
    }
}

/* ---- starting ---- */

const lbmmon_transport_func_t *ex_mon_transport(const char *name)
{
    return name == NULL || strcasecmp(name, "lbm") == 0 ? lbmmon_transport_lbm_module()
           : strcasecmp(name, "udp") == 0               ? lbmmon_transport_udp_module()
           : strcasecmp(name, "lbmsnmp") == 0           ? lbmmon_transport_lbmsnmp_module()
                                                        : NULL;
}

const lbmmon_format_func_t *ex_mon_format(const char *name)
{
    return name == NULL || strcasecmp(name, "csv") == 0 ? lbmmon_format_csv_module()
           : strcasecmp(name, "pb") == 0                ? lbmmon_format_pb_module()
                                                        : NULL;
}

/* With passthrough the raw packets are asked for, and only they: each record is shown once. */
static bool wants_packets(const char *options)
{
    char name[64], value[64];
    bool wanted = false;
    while ((options = lbmmon_next_key_value_pair(options, name, sizeof(name), value, sizeof(value))) != NULL) {
        if (strcmp(name, "passthrough") == 0) {
            wanted = strcasecmp(value, "off") != 0;
        }
    }
    return wanted;
}

#define CALLBACK(option, type, function)                                                                               \
    do {                                                                                                               \
        type callback = {function};                                                                                    \
        if (lbmmon_rctl_attr_setopt(attributes, option, &callback, sizeof(callback)) != 0) {                           \
            ex_mon_fail("lbmmon_rctl_attr_setopt");                                                                    \
        }                                                                                                              \
    } while (0)

static void set_callbacks(lbmmon_rctl_attr_t *attributes, bool packets)
{
    CALLBACK(LBMMON_RCTL_PASSTHROUGH_CALLBACK, lbmmon_passthrough_statistics_func_t, on_packet);
    if (packets) {
        return;
    }
    CALLBACK(LBMMON_RCTL_SOURCE_CALLBACK, lbmmon_src_statistics_func_t, on_source);
    CALLBACK(LBMMON_RCTL_RECEIVER_CALLBACK, lbmmon_rcv_statistics_func_t, on_receiver);
    CALLBACK(LBMMON_RCTL_EVENT_QUEUE_CALLBACK, lbmmon_evq_statistics_func_t, on_queue);
    CALLBACK(LBMMON_RCTL_CONTEXT_CALLBACK, lbmmon_ctx_statistics_func_t, on_context);
    CALLBACK(LBMMON_RCTL_RECEIVER_TOPIC_CALLBACK, lbmmon_rcv_topic_statistics_func_t, on_topic);
    CALLBACK(LBMMON_RCTL_WILDCARD_RECEIVER_CALLBACK, lbmmon_wildcard_rcv_statistics_func_t, on_wildcard);
    CALLBACK(LBMMON_RCTL_UMESTORE_CALLBACK, lbmmon_umestore_statistics_func_t, on_store);
    CALLBACK(LBMMON_RCTL_GATEWAY_CALLBACK, lbmmon_gateway_statistics_func_t, on_router);
}

lbmmon_rctl_t *ex_mon_start(const struct ex_mon_options *options, ex_mon_on_record on_record, void *clientd)
{
    const lbmmon_transport_func_t *transport = ex_mon_transport(options->transport);
    const lbmmon_format_func_t *format = ex_mon_format(options->format);
    lbmmon_rctl_attr_t *attributes;
    lbmmon_rctl_t *controller;
    if (transport == NULL || format == NULL) {
        fprintf(stderr, "the transport must be lbm, udp or lbmsnmp, the format csv or pb\n");
        exit(1);
    }
    handler.on_record = on_record;
    handler.clientd = clientd;
    if (lbmmon_rctl_attr_create(&attributes) != 0) {
        ex_mon_fail("lbmmon_rctl_attr_create");
    }
    set_callbacks(attributes, wants_packets(options->format_opts));
    if (lbmmon_rctl_create(&controller, format, options->format_opts, transport, options->transport_opts, attributes,
                           NULL) != 0) {
        ex_mon_fail("lbmmon_rctl_create");
    }
    lbmmon_rctl_attr_delete(attributes);
    return controller;
}

/* ---- counters ---- */

#define COUNTERS(type) (sizeof(type) / sizeof(lbm_ulong_t))

static size_t transport_counters(bool source, int transport)
{
    switch (transport) {
    case LBM_TRANSPORT_STAT_TCP:
        return source ? COUNTERS(lbm_src_transport_stats_tcp_t) : COUNTERS(lbm_rcv_transport_stats_tcp_t);
    case LBM_TRANSPORT_STAT_LBTRM:
        return source ? COUNTERS(lbm_src_transport_stats_lbtrm_t) : COUNTERS(lbm_rcv_transport_stats_lbtrm_t);
    case LBM_TRANSPORT_STAT_LBTRU:
        return source ? COUNTERS(lbm_src_transport_stats_lbtru_t) : COUNTERS(lbm_rcv_transport_stats_lbtru_t);
    case LBM_TRANSPORT_STAT_LBTIPC:
        return source ? COUNTERS(lbm_src_transport_stats_lbtipc_t) : COUNTERS(lbm_rcv_transport_stats_lbtipc_t);
    case LBM_TRANSPORT_STAT_LBTSMX:
        return source ? COUNTERS(lbm_src_transport_stats_lbtsmx_t) : COUNTERS(lbm_rcv_transport_stats_lbtsmx_t);
    case LBM_TRANSPORT_STAT_LBTRDMA:
        return source ? COUNTERS(lbm_src_transport_stats_lbtrdma_t) : COUNTERS(lbm_rcv_transport_stats_lbtrdma_t);
    case LBM_TRANSPORT_STAT_BROKER:
        return source ? COUNTERS(lbm_src_transport_stats_broker_t) : COUNTERS(lbm_rcv_transport_stats_broker_t);
    default:
        return 0;
    }
}

size_t ex_mon_counters(const struct ex_mon_record *record, const lbm_ulong_t **counters)
{
    switch (record->type) {
    case LBMMON_PACKET_TYPE_SOURCE:
        *counters = (const lbm_ulong_t *)&record->stats.source->transport;
        return transport_counters(true, record->stats.source->type);
    case LBMMON_PACKET_TYPE_RECEIVER:
        *counters = (const lbm_ulong_t *)&record->stats.receiver->transport;
        return transport_counters(false, record->stats.receiver->type);
    case LBMMON_PACKET_TYPE_EVENT_QUEUE:
        *counters = (const lbm_ulong_t *)record->stats.queue;
        return COUNTERS(lbm_event_queue_stats_t);
    case LBMMON_PACKET_TYPE_CONTEXT:
        *counters = (const lbm_ulong_t *)record->stats.context;
        return COUNTERS(lbm_context_stats_t);
    default:
        return 0;
    }
}

int ex_mon_transport_type(const struct ex_mon_record *record)
{
    return record->type == LBMMON_PACKET_TYPE_SOURCE     ? record->stats.source->type
           : record->type == LBMMON_PACKET_TYPE_RECEIVER ? record->stats.receiver->type
                                                         : -1;
}

const char *ex_mon_source(const struct ex_mon_record *record)
{
    return record->type == LBMMON_PACKET_TYPE_SOURCE     ? record->stats.source->source
           : record->type == LBMMON_PACKET_TYPE_RECEIVER ? record->stats.receiver->source
                                                         : "";
}

sigset_t ex_mon_ends(void)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    return ends;
}
