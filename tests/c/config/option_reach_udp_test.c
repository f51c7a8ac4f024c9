/* Options of LBT-RM and LBT-RU reach what they rule (F25). See um_test_options.h. */
#include "um_test.h"
#include "um_test_net.h"
#include "um_test_rcv.h"

#include <arpa/inet.h>

#include "um_test_options.h"

static void nothing(struct world *w)
{
    (void)w;
}

static void no_interface(struct world *w)
{
    SET_context(w, "default_interface", "0.0.0.0");
}

/* UDP readers made for datagrams of this size. */
static int readers_of(size_t datagram_max)
{
    int count = 0;
    for (int i = 0; i < seen.reader_count; i++) {
        count += seen.readers[i].datagram_max == datagram_max;
    }
    return count;
}

/* Of the engine, and of the session that fills datagrams. */
static bool source_sizes(size_t engine, size_t session, size_t wanted)
{
    return engine == wanted && session < wanted && session > wanted - 64;
}

/* Of a socket, and of the reader that all share. */
static bool receiver_sizes(enum seam_udp kind, size_t wanted, int readers)
{
    return seen.udp[kind].datagram_max == wanted && readers_of(wanted) == readers;
}

#define SESSION (w->src->stream.session)
#define UDP um_udp_src_session_of(SESSION)

/* ---- LBT-RM sources ---- */

static void two_rm_sources(struct world *w)
{
    rm_source(w);
    second_source(w);
}

static bool group_is(const struct world *w, const char *group)
{
    return source_info(w->src).mc_group == inet_addr(group);
}

/* The second uses the only address of the pool together with the first. */
static bool pool_of_one(struct world *w)
{
    two_rm_sources(w);
    return same_session(w);
}

REACHES(context, transport_lbtrm_data_rate_limit, "7770001", rm_source, seen.limits[SEAM_RM].data_bps, 7770001);
REACHES(context, transport_lbtrm_datagram_max_size, "17776", rm_receiver,
        source_sizes(seen.rm_source.datagram_max, SESSION->datagram_max, 17776) &&
            receiver_sizes(SEAM_RM_RECEIVER, 17776, 1),
        true);
REACHES(context, transport_lbtrm_multicast_address_high, "224.10.10.10", nothing, pool_of_one(w), true);
REACHES(context, transport_lbtrm_multicast_address_low, "224.10.10.12", rm_source, group_is(w, "224.10.10.12"), true);
REACHES(context, transport_lbtrm_rate_interval, "50", rm_source, seen.limits[SEAM_RM].interval_ns, MS(50));
REACHES(context, transport_lbtrm_receiver_datagram_max_size, "17777", rm_receiver,
        receiver_sizes(SEAM_RM_RECEIVER, 17777, 1), true);
REACHES(context, transport_lbtrm_receiver_socket_buffer, "54327", rm_receiver,
        seen.udp[SEAM_RM_RECEIVER].socket_buffer == 54327 && seen.udp[SEAM_RM_SOURCE].socket_buffer == 54327, true);
REACHES(context, transport_lbtrm_receiver_timestamp, "1", rm_receiver, seen.udp[SEAM_RM_RECEIVER].timestamps, true);
REACHES(context, transport_lbtrm_retransmit_rate_limit, "7770002", rm_source, seen.limits[SEAM_RM].retransmit_bps,
        7770002);
REACHES(context, transport_lbtrm_source_datagram_max_size, "7778", rm_source,
        source_sizes(seen.rm_source.datagram_max, SESSION->datagram_max, 7778), true);
REACHES(context, transport_lbtrm_source_port_high, "24398", rm_source, seen.udp_high[SEAM_RM_SOURCE], 24398);
REACHES(context, transport_lbtrm_source_port_low, "14393", rm_source, seen.udp_low[SEAM_RM_SOURCE].port, 14393);
REACHES(context, transport_lbtrm_source_socket_buffer, "54328", rm_source,
        seams_named("transport_lbtrm_source_socket_buffer"), 54328);
REACHES(context, transport_lbtrm_source_timestamp, "1", rm_source, seen.stamps, 1);

#define RM seen.rm_source
REACHES(source, transport_lbtrm_destination_port, "24401", two_rm_sources,
        source_info(w->src).dest_port == 24401 && source_info(w->second).dest_port == 24401 &&
            source_info(w->src).mc_group != source_info(w->second).mc_group,
        true);
REACHES(source, transport_lbtrm_ignore_interval, "7020", rm_source, RM.ignore_ns, MS(7020));
REACHES(source, transport_lbtrm_multicast_address, "224.10.10.99", rm_source, group_is(w, "224.10.10.99"), true);
REACHES(source, transport_lbtrm_sm_maximum_interval, "7021", rm_source, RM.sm_max_ns, MS(7021));
REACHES(source, transport_lbtrm_sm_minimum_interval, "701", rm_source, RM.sm_min_ns, MS(701));
REACHES(source, transport_lbtrm_tgsz, "16", rm_source, RM.tgsz, 16);
REACHES(source, transport_lbtrm_transmission_window_limit, "7770003", rm_source,
        RM.window_limit == 7770003 && seen.window_limit == 7770003, true);
REACHES(source, transport_lbtrm_transmission_window_size, "7770004", rm_source,
        RM.window_size == 7770004 && seen.window_size == 7770004, true);

/* ---- LBT-RM receivers ---- */

#define RM_NAKS seen.rm_receiver.naks
REACHES(receiver, transport_lbtrm_activity_timeout, "17022", rm_receiver, seen.rm_receiver.activity_ns, MS(17022));
REACHES(receiver, transport_lbtrm_nak_backoff_interval, "7023", rm_receiver, RM_NAKS.backoff_ns, MS(7023));
REACHES(receiver, transport_lbtrm_nak_generation_interval, "7024", rm_receiver,
        RM_NAKS.generation_ns == MS(7024) && seen.dc.gap_timeout_ns == MS(7024), true);
REACHES(receiver, transport_lbtrm_nak_initial_backoff_interval, "7025", rm_receiver, RM_NAKS.initial_ns, MS(7025));
REACHES(receiver, transport_lbtrm_nak_suppress_interval, "7026", rm_receiver, RM_NAKS.suppress_ns, MS(7026));
REACHES(receiver, transport_lbtrm_preactivity_timeout, "7027", rm_receiver, seen.rm_receiver.preactivity_ns, MS(7027));
REACHES(receiver, transport_lbtrm_send_naks, "0", rm_receiver, RM_NAKS.send_naks, false);
REACHES(receiver, um_transport_lbtrm_nak_backoff_interval_us, "7028", rm_receiver, RM_NAKS.backoff_ns, 7028000);
REACHES(receiver, um_transport_lbtrm_nak_generation_interval_us, "7029", rm_receiver,
        RM_NAKS.generation_ns == 7029000 && seen.dc.gap_timeout_ns == 7029000, true);
REACHES(receiver, um_transport_lbtrm_nak_initial_backoff_interval_us, "7030", rm_receiver, RM_NAKS.initial_ns, 7030000);
REACHES(receiver, um_transport_lbtrm_nak_suppress_interval_us, "7031", rm_receiver, RM_NAKS.suppress_ns, 7031000);

/* ---- LBT-RU sources ---- */

static void two_ru_sources(struct world *w)
{
    ru_source(w);
    second_source(w);
}

static void ru_source_nameless(struct world *w)
{
    no_interface(w);
    ru_source(w);
}

/* The port it names is somebody else's. */
static bool ephemeral(struct world *w)
{
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(24104), .sin_addr.s_addr = inet_addr("127.0.0.1")};
    lbm_topic_t *topic;
    bool taken = bind(fd, (struct sockaddr *)&at, sizeof at) == 0;
    SET_source(w, "transport", "lbt-ru");
    SET_source(w, "transport_lbtru_port", "24104");
    context_only(w);
    MUST(lbm_src_topic_alloc(&topic, w->ctx, "option", w->source));
    bool created = lbm_src_create(&w->src, w->ctx, topic, NULL, NULL, NULL) == 0;
    close(fd);
    return taken && created;
}

REACHES(context, transport_lbtru_data_rate_limit, "7770005", ru_source, seen.limits[SEAM_RU].data_bps, 7770005);
REACHES(context, transport_lbtru_datagram_max_size, "17779", ru_receiver,
        source_sizes(seen.ru_source.datagram_max, SESSION->datagram_max, 17779) &&
            receiver_sizes(SEAM_RU_RECEIVER, 17779, 1),
        true);
REACHES(context, transport_lbtru_maximum_ports, "1", two_ru_sources, same_session(w), true);
REACHES(context, transport_lbtru_port_high, "24399", ru_source, seen.udp_high[SEAM_RU_SOURCE], 24399);
REACHES(context, transport_lbtru_port_low, "14383", ru_source, seen.udp_low[SEAM_RU_SOURCE].port, 14383);
REACHES(context, transport_lbtru_rate_interval, "50", ru_source, seen.limits[SEAM_RU].interval_ns, MS(50));
REACHES(context, transport_lbtru_receiver_datagram_max_size, "17780", ru_receiver,
        receiver_sizes(SEAM_RU_RECEIVER, 17780, 1), true);
REACHES(context, transport_lbtru_receiver_socket_buffer, "54329", ru_receiver,
        seen.udp[SEAM_RU_RECEIVER].socket_buffer == 54329 && seen.udp[SEAM_RU_SOURCE].socket_buffer == 54329, true);
REACHES(context, transport_lbtru_retransmit_rate_limit, "7770006", ru_source, seen.limits[SEAM_RU].retransmit_bps,
        7770006);
REACHES(context, transport_lbtru_source_datagram_max_size, "7781", ru_source,
        source_sizes(seen.ru_source.datagram_max, SESSION->datagram_max, 7781), true);
REACHES(context, transport_lbtru_source_socket_buffer, "54330", ru_source,
        seams_named("transport_lbtru_source_socket_buffer"), 54330);

#define RU seen.ru_source
REACHES(source, transport_lbtru_allow_ephemeral, "1", nothing, ephemeral(w), true);
REACHES(source, transport_lbtru_client_activity_timeout, "7032", ru_source, RU.client_activity_ns, MS(7032));
REACHES(source, transport_lbtru_client_map_size, "13", ru_source, RU.client_map_size, 13);
REACHES(source, transport_lbtru_ignore_interval, "7033", ru_source, RU.ignore_ns, MS(7033));
REACHES(source, transport_lbtru_interface, "127.0.0.1/32", ru_source_nameless, UDP->addr.s_addr,
        inet_addr("127.0.0.1"));
REACHES(source, transport_lbtru_port, "24105", ru_source, UDP->port, 24105);
REACHES(source, transport_lbtru_sm_maximum_interval, "7034", ru_source, RU.sm_max_ns, MS(7034));
REACHES(source, transport_lbtru_sm_minimum_interval, "702", ru_source, RU.sm_min_ns, MS(702));
REACHES(source, transport_lbtru_transmission_window_limit, "7770007", ru_source,
        RU.window_limit == 7770007 && seen.window_limit == 7770007, true);
REACHES(source, transport_lbtru_transmission_window_size, "7770008", ru_source,
        RU.window_size == 7770008 && seen.window_size == 7770008, true);
REACHES(source, transport_lbtru_use_session_id, "0", ru_source, UDP->session_id, 0);

/* ---- LBT-RU receivers ---- */

static void ru_receiver_nameless(struct world *w)
{
    no_interface(w);
    ru_receiver(w);
}

#define RU_NAKS seen.ru_receiver.naks
REACHES(receiver, transport_lbtru_acknowledgement_interval, "7035", ru_receiver, seen.ru_receiver.ack_ns, MS(7035));
REACHES(receiver, transport_lbtru_activity_timeout, "17036", ru_receiver, seen.ru_receiver.activity_ns, MS(17036));
REACHES(receiver, transport_lbtru_connect_interval, "7037", ru_receiver, seen.ru_receiver.connect_ns, MS(7037));
REACHES(receiver, transport_lbtru_interface, "127.0.0.1/32", ru_receiver_nameless, seen.udp_low[SEAM_RU_RECEIVER].addr,
        inet_addr("127.0.0.1"));
REACHES(receiver, transport_lbtru_maximum_connect_attempts, "77", ru_receiver, seen.ru_receiver.connect_attempts, 77);
REACHES(receiver, transport_lbtru_nak_backoff_interval, "7038", ru_receiver, RU_NAKS.backoff_ns, MS(7038));
REACHES(receiver, transport_lbtru_nak_generation_interval, "7039", ru_receiver,
        RU_NAKS.generation_ns == MS(7039) && seen.dc.gap_timeout_ns == MS(7039), true);
REACHES(receiver, transport_lbtru_nak_initial_backoff_interval, "7040", ru_receiver, RU_NAKS.initial_ns, MS(7040));
REACHES(receiver, transport_lbtru_nak_suppress_interval, "7041", ru_receiver, RU_NAKS.suppress_ns, MS(7041));
REACHES(receiver, transport_lbtru_port_high, "24397", ru_receiver, seen.udp_high[SEAM_RU_RECEIVER], 24397);
REACHES(receiver, transport_lbtru_port_low, "14363", ru_receiver, seen.udp_low[SEAM_RU_RECEIVER].port, 14363);
REACHES(receiver, transport_lbtru_send_naks, "0", ru_receiver, RU_NAKS.send_naks, false);
REACHES(receiver, um_transport_lbtru_nak_backoff_interval_us, "7042", ru_receiver, RU_NAKS.backoff_ns, 7042000);
REACHES(receiver, um_transport_lbtru_nak_generation_interval_us, "7043", ru_receiver,
        RU_NAKS.generation_ns == 7043000 && seen.dc.gap_timeout_ns == 7043000, true);
REACHES(receiver, um_transport_lbtru_nak_initial_backoff_interval_us, "7044", ru_receiver, RU_NAKS.initial_ns, 7044000);
REACHES(receiver, um_transport_lbtru_nak_suppress_interval_us, "7045", ru_receiver, RU_NAKS.suppress_ns, 7045000);

/* ---- both ---- */

/* The limit of either kind of receiver. */
static bool leads(struct world *w, uint32_t wanted)
{
    rm_receiver(w);
    SET_source(w, "transport", "lbt-ru");
    second_source(w);
    second_receiver_joined(w);
    return RM_NAKS.lead_max == wanted && RU_NAKS.lead_max == wanted;
}

static bool offloads(struct world *w)
{
    rm_receiver(w);
    bool offload = seen.outs_segmenting != 0;
    for (int i = 0; i < seen.reader_count; i++) {
        offload |= seen.readers[i].offload;
    }
    return offload;
}

REACHES(context, um_lead_maximum, "77777", nothing, leads(w, 77777), true);
REACHES(context, um_udp_segmentation_offload, "0", nothing, offloads(w), false);
