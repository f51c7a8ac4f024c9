/* The lines of the records of routers. */
#include <stdint.h>
#include <string.h>

#include "ex_mon.h"
#include "ex_mon_lines.h"

static const struct line udp_send_lines[] = {
    {"UDP datagrams sent                                        ", "msgs_sent", 0},
    {"UDP datagram bytes sent                                   ", "bytes_sent", 0},
    {"UDP NAK packets received                                  ", "nak_pckts_rcved", 0},
    {"UDP NAKs received                                         ", "naks_rcved", 0},
    {"UDP NAKs ignored                                          ", "naks_ignored", 0},
    {"UDP NAKs shed                                             ", "naks_shed", 0},
    {"UDP NAKs ignored (retransmit delay)                       ", "naks_rx_delay_ignored", 0},
    {"UDP retransmission datagrams sent                         ", "rxs_sent", 0},
    {"UDP retransmission bytes sent                             ", "rx_bytes_sent", 0},
    {NULL, NULL, 0},
};

static const struct line udp_receive_lines[] = {
    {"UDP datagrams received                                    ", "msgs_rcved", 0},
    {"UDP datagram bytes received                               ", "bytes_rcved", 0},
    {"UDP NAK packets sent                                      ", "nak_pckts_sent", 0},
    {"UDP NAKs sent                                             ", "naks_sent", 0},
    {"UDP Lost LBT-RU datagrams detected                        ", "lost", 0},
    {"UDP NCFs received (ignored)                               ", "ncfs_ignored", 0},
    {"UDP NCFs received (shed)                                  ", "ncfs_shed", 0},
    {"UDP NCFs received (retransmit delay)                      ", "ncfs_rx_delay", 0},
    {"UDP NCFs received (unknown)                               ", "ncfs_unknown", 0},
    {"UDP Loss recovery minimum time                            ", "nak_stm_min", 0},
    {"UDP Loss recovery mean time                               ", "nak_stm_mean", 0},
    {"UDP Loss recovery maximum time                            ", "nak_stm_max", 0},
    {"UDP Minimum transmissions per individual NAK              ", "nak_tx_min", 0},
    {"UDP Mean transmissions per individual NAK                 ", "nak_tx_mean", 0},
    {"UDP Maximum transmissions per individual NAK              ", "nak_tx_max", 0},
    {"UDP Duplicate LBT-RU datagrams received                   ", "duplicate_data", 0},
    {"UDP datagrams unrecoverable (window advance)              ", "unrecovered_txw", 0},
    {"UDP datagrams unrecoverable (NAK generation expiration)   ", "unrecovered_tmo", 0},
    {"UDP datagrams dropped (size)                              ", "dgrams_dropped_size", 0},
    {"UDP datagrams dropped (type)                              ", "dgrams_dropped_type", 0},
    {"UDP datagrams dropped (version)                           ", "dgrams_dropped_version", 0},
    {"UDP datagrams dropped (hdr)                               ", "dgrams_dropped_hdr", 0},
    {"UDP LBT-RU datagrams dropped (SID)                        ", "dgrams_dropped_sid", 0},
    {"UDP datagrams dropped (other)                             ", "dgrams_dropped_other", 0},
    {NULL, NULL, 0},
};

static const struct line peer_receive_lines[] = {
    {"Data messages received                                                  ", "data_msgs_rcvd", 0},
    {"Data bytes received                                                     ", "data_msg_bytes_rcvd", 0},
    {"Transport topic fragment data messages received                         ",
     "transport_topic_fragment_data_msgs_rcvd", 0},
    {"Transport topic fragment data messages received bytes                   ",
     "transport_topic_fragment_data_msg_bytes_rcvd", 0},
    {"Transport topic fragment data messages received with unknown source     ",
     "transport_topic_fragment_data_msgs_rcvd_unknown_source", 0},
    {"Transport topic fragment data bytes received with unknown source        ",
     "transport_topic_fragment_data_msg_bytes_rcvd_unknown_source", 0},
    {"Transport topic request fragment data messages received                 ",
     "transport_topic_req_fragment_data_msgs_rcvd", 0},
    {"Transport topic request fragment data bytes received                    ",
     "transport_topic_req_fragment_data_msg_bytes_rcvd", 0},
    {"Transport topic req frag. data messages received with unknown source    ",
     "transport_topic_req_fragment_data_msgs_rcvd_unknown_source", 0},
    {"Transport topic req frag. data bytes received with unknown source       ",
     "transport_topic_req_fragment_data_msg_bytes_rcvd_unknown_source", 0},
    {"Transport topic control messages received                               ", "transport_topic_control_msgs_rcvd",
     0},
    {"Transport topic control bytes received                                  ",
     "transport_topic_control_msg_bytes_rcvd", 0},
    {"Transport topic control messages received with unknown source           ",
     "transport_topic_control_msgs_rcvd_unknown_source", 0},
    {"Transport topic control bytes received with unknown source              ",
     "transport_topic_control_msg_bytes_rcvd_unknown_source", 0},
    {"Immediate topic fragment data messages received                         ",
     "immediate_topic_fragment_data_msgs_rcvd", 0},
    {"Immediate topic fragment data bytes received                            ",
     "immediate_topic_fragment_data_msg_bytes_rcvd", 0},
    {"Immediate topic request fragment data messages received                 ",
     "immediate_topic_req_fragment_data_msgs_rcvd", 0},
    {"Immediate topic request fragment data bytes received                    ",
     "immediate_topic_req_fragment_data_msg_bytes_rcvd", 0},
    {"Immediate topicless fragment data messages received                     ",
     "immediate_topicless_fragment_data_msgs_rcvd", 0},
    {"Immediate topicless fragment data bytes received                        ",
     "immediate_topicless_fragment_data_msg_bytes_rcvd", 0},
    {"Immediate topicless request fragment data messages received             ",
     "immediate_topicless_req_fragment_data_msgs_rcvd", 0},
    {"Immediate topicless request fragment data bytes received                ",
     "immediate_topicless_req_fragment_data_msg_bytes_rcvd", 0},
    {"Unicast data messages received                                          ", "unicast_data_msgs_rcvd", 0},
    {"Unicast data bytes received                                             ", "unicast_data_msg_bytes_rcvd", 0},
    {"Unicast data messages received with no forwarding information           ", "unicast_data_msgs_rcvd_no_fwd", 0},
    {"Unicast data message bytes received with no forwarding information      ", "unicast_data_msg_bytes_rcvd_no_fwd",
     0},
    {"Unicast data messages received with unknown forwarding information      ", "unicast_data_msgs_rcvd_unknown_fwd",
     0},
    {"Unicast data message bytes received with unknown forwarding information ",
     "unicast_data_msg_bytes_rcvd_unknown_fwd", 0},
    {"Unicast data messages received with no stream information               ", "unicast_data_msgs_rcvd_no_stream", 0},
    {"Unicast data message bytes received with no stream information          ",
     "unicast_data_msg_bytes_rcvd_no_stream", 0},
    {"Unicast data messages dropped no route                                  ", "unicast_data_msgs_dropped_no_route",
     0},
    {"Unicast data message bytes dropped no route                             ",
     "unicast_data_msg_bytes_dropped_no_route", 0},
    {"Control messages received                                               ", "cntl_msgs_rcvd", 0},
    {"Control message bytes received                                          ", "cntl_msg_bytes_rcvd", 0},
    {"Unicast control messages received                                       ", "unicast_cntl_msgs_rcvd", 0},
    {"Unicast control message  bytes received                                 ", "unicast_cntl_msg_bytes_rcvd", 0},
    {"Unicast Control retransmission requests received                        ", "unicast_cntl_rxreq_msgs_rcvd", 0},
    {"Unicast Control retransmission bytes received                           ", "unicast_cntl_rxreq_msg_bytes_rcvd",
     0},
    {"Unicast control messages received but unhandled                         ", "unicast_cntl_msgs_rcvd_unhandled", 0},
    {"Unicast control message bytes received but unhandled                    ",
     "unicast_cntl_msg_bytes_rcvd_unhandled", 0},
    {"Unicast control messages received with no stream information            ", "unicast_cntl_msgs_rcvd_no_stream", 0},
    {"Unicast control message bytes received with no stream information       ",
     "unicast_cntl_msg_bytes_rcvd_no_stream", 0},
    {"Unicast control messages dropped no route                               ", "unicast_cntl_msgs_dropped_no_route",
     0},
    {"Unicast control message bytes dropped no route                          ",
     "unicast_cntl_msg_bytes_dropped_no_route", 0},
    {"Gateway control messages received                                       ", "gateway_cntl_msgs_rcvd", 0},
    {"Gateway control message bytes received                                  ", "gateway_cntl_msg_bytes_rcvd", 0},
    {NULL, NULL, 0},
};

static const struct line peer_send_lines[] = {
    {"Data fragments forwarded to this portal                                   ", "data_fragments_forwarded", 0},
    {"Data fragment bytes forwarded to this portal                              ", "data_fragment_bytes_forwarded", 0},
    {"Data fragments sent                                                       ", "data_fragments_sent", 0},
    {"Data fragment bytes sent                                                  ", "data_fragment_bytes_sent", 0},
    {"Duplicate data fragments dropped                                          ", "data_fragments_dropped_dup", 0},
    {"Duplicate data fragment bytes dropped                                     ", "data_fragment_bytes_dropped_dup",
     0},
    {"Data fragments dropped due to EWOULDBLOCK                                 ", "data_fragments_dropped_would_block",
     0},
    {"Data fragment bytes dropped due to EWOULDBLOCK                            ",
     "data_fragment_bytes_dropped_would_block", 0},
    {"Data fragments dropped due to portal not being operational                ",
     "data_fragments_dropped_not_operational", 0},
    {"Data fragment bytes dropped due to portal not being operational           ",
     "data_fragment_bytes_dropped_not_operational", 0},
    {"Data fragments dropped due to queueing failure                            ",
     "data_fragments_dropped_queue_failure", 0},
    {"Data fragment bytes dropped due to queueing failure                       ",
     "data_fragment_bytes_dropped_queue_failure", 0},
    {"Unicast messages forwarded to this portal                                 ", "unicast_msgs_forwarded", 0},
    {"Unicast message bytes forwarded to this portal                            ", "unicast_msg_bytes_forwarded", 0},
    {"Unicast messages sent                                                     ", "unicast_msgs_sent", 0},
    {"Unicast message bytes sent                                                ", "unicast_msg_bytes_sent", 0},
    {"Unicast messages dropped due to EWOULDBLOCK                               ", "unicast_msgs_dropped_would_block",
     0},
    {"Unicast message bytes dropped due to EWOULDBLOCK                          ",
     "unicast_msg_bytes_dropped_would_block", 0},
    {"Unicast messages dropped due to portal not being operational              ",
     "unicast_msgs_dropped_not_operational", 0},
    {"Unicast message bytes dropped due to portal not being operational         ",
     "unicast_msg_bytes_dropped_not_operational", 0},
    {"Unicast messages dropped due to queueing failure                          ", "unicast_msgs_dropped_queue_failure",
     0},
    {"Unicast message bytes dropped due to queueing failure                     ",
     "unicast_msg_bytes_dropped_queue_failure", 0},
    {"Gateway control messages                                                  ", "gateway_cntl_msgs", 0},
    {"Gateway control message bytes                                             ", "gateway_cntl_msg_bytes", 0},
    {"Gateway control messages sent                                             ", "gateway_cntl_msgs_sent", 0},
    {"Gateway control message bytes sent                                        ", "gateway_cntl_msg_bytes_sent", 0},
    {"Gateway control messages dropped due to EWOULDBLOCK                       ",
     "gateway_cntl_msgs_dropped_would_block", 0},
    {"Gateway control message bytes dropped due to EWOULDBLOCK                  ",
     "gateway_cntl_msg_bytes_dropped_would_block", 0},
    {"Gateway control messages dropped due to portal not being operational      ",
     "gateway_cntl_msgs_dropped_not_operational", 0},
    {"Gateway control message bytes dropped due to portal not being operational ",
     "gateway_cntl_msg_bytes_dropped_not_operational", 0},
    {"Gateway control messages dropped due to queueing failure                  ",
     "gateway_cntl_msgs_dropped_queue_failure", 0},
    {"Gateway control message bytes dropped due to queueing failure             ",
     "gateway_cntl_msg_bytes_dropped_queue_failure", 0},
    {"Number of message batches                                                 ", "batches", 0},
    {"Minimum number of messages per batch                                      ", "batch_msgs_min", 0},
    {"Mean number of messages per batch                                         ", "batch_msgs_mean", 0},
    {"Maximum number of messages per batch                                      ", "batch_msgs_max", 0},
    {"Minimum number of bytes per batch                                         ", "batch_bytes_min", 0},
    {"Mean number of bytes per batch                                            ", "batch_bytes_mean", 0},
    {"Maximum number of bytes per batch                                         ", "batch_bytes_max", 0},
    {"Current data bytes enqueued internally                                    ", "data_bytes_enqueued", 0},
    {"Maximum data bytes enqueued internally                                    ", "data_bytes_enqueued_max", 0},
    {"Configured maximum data bytes allowed in queued                           ", "data_bytes_enqueued_limit", 0},
    {"Current UIM Message bytes queued internally                               ", "unicast_msg_bytes_enqueued", 0},
    {"Maximum UIM Message bytes queued                                          ", "unicast_msg_bytes_enqueued_max", 0},
    {"UIM Message bytes Queue Limit                                             ", "unicast_msg_bytes_enqueued_limit",
     0},
    {"Total RTT samples                                                         ", "rtt_samples", 0},
    {"Minimum RTT to companion(microseconds)                                    ", "rtt_min", 0},
    {"Mean RTT to companion(microseconds)                                       ", "rtt_mean", 0},
    {"Maximum RTT to companion(microseconds)                                    ", "rtt_max", 0},
    {"Last Keepalive responded to                                               ", "last_ka_time", 0},
    {NULL, NULL, 0},
};

static const struct line peer_lines[] = {
    {"Adjacent Gateway ID     ", "adjacent_gateway_id", 0},
    {"Interest Topics         ", "interest_topics", 0},
    {"Interest PCRE Patterns  ", "interest_pcre_patterns", 0},
    {"Interest REGEX Patterns ", "interest_regex_patterns", 0},
    {NULL, NULL, 0},
};

static const struct line endpoint_receive_lines[] = {
    {"Transport topic message fragments received                           ", "transport_topic_fragments_rcvd", 0},
    {"Transport topic message fragment bytes received                      ", "transport_topic_fragment_bytes_rcvd", 0},
    {"Transport topic message request fragments received                   ", "transport_topic_req_fragments_rcvd", 0},
    {"Transport topic message request fragment bytes received              ", "transport_topic_req_fragment_bytes_rcvd",
     0},
    {"Transport topic control message received                             ", "transport_topic_control_rcvd", 0},
    {"Transport topic control message bytes received                       ", "transport_topic_control_bytes_rcvd", 0},
    {"Immediate topic message fragments received                           ", "immediate_topic_fragments_rcvd", 0},
    {"Immediate topic message fragment bytes received                      ", "immediate_topic_fragment_bytes_rcvd", 0},
    {"Immediate topic message request fragments received                   ", "immediate_topic_req_fragments_rcvd", 0},
    {"Immediate topic message request fragment bytes received              ", "immediate_topic_req_fragment_bytes_rcvd",
     0},
    {"Immediate topicless message fragments received                       ", "immediate_topicless_fragments_rcvd", 0},
    {"Immediate topicless message fragment bytes received                  ", "immediate_topicless_fragment_bytes_rcvd",
     0},
    {"Immediate topicless message request fragments received               ", "immediate_topicless_req_fragments_rcvd",
     0},
    {"Immediate topicless message request fragment bytes received          ",
     "immediate_topicless_req_fragment_bytes_rcvd", 0},
    {"Unicast data messages received                                       ", "unicast_data_msgs_rcvd", 0},
    {"Unicast data message bytes received                                  ", "unicast_data_msg_bytes_rcvd", 0},
    {"Unicast data messages received with no stream identification         ", "unicast_data_msgs_rcvd_no_stream", 0},
    {"Unicast data message bytes received with no stream identification    ", "unicast_data_msg_bytes_rcvd_no_stream",
     0},
    {"Unicast data messages dropped as duplicates                          ", "unicast_data_msgs_dropped_dup", 0},
    {"Unicast data message bytes dropped as duplicates                     ", "unicast_data_msg_bytes_dropped_dup", 0},
    {"Unicast data messages dropped no route                               ", "unicast_data_msgs_dropped_no_route", 0},
    {"Unicast data message bytes dropped no route                          ", "unicast_data_msg_bytes_dropped_no_route",
     0},
    {"Unicast control messages received                                    ", "unicast_cntl_msgs_rcvd", 0},
    {"Unicast control message bytes received                               ", "unicast_cntl_msg_bytes_rcvd", 0},
    {"Unicast control messages received with no stream identification      ", "unicast_cntl_msgs_rcvd_no_stream", 0},
    {"Unicast control message bytes received with no stream identification ", "unicast_cntl_msg_bytes_rcvd_no_stream",
     0},
    {"Unicast control messages dropped as duplicates                       ", "unicast_cntl_msgs_dropped_dup", 0},
    {"Unicast control message bytes dropped as duplicates                  ", "unicast_cntl_msg_bytes_dropped_dup", 0},
    {"Unicast control messages dropped no route                            ", "unicast_cntl_msgs_dropped_no_route", 0},
    {"Unicast control message bytes dropped no route                       ", "unicast_cntl_msg_bytes_dropped_no_route",
     0},
    {NULL, NULL, 0},
};

static const struct line endpoint_send_lines[] = {
    {"Transport topic fragments forwarded to this portal                    ", "transport_topic_fragments_forwarded",
     0},
    {"Transport topic fragment bytes forwarded to this portal               ",
     "transport_topic_fragment_bytes_forwarded", 0},
    {"Transport topic fragments sent                                        ", "transport_topic_fragments_sent", 0},
    {"Transport topic fragment bytes sent                                   ", "transport_topic_fragment_bytes_sent",
     0},
    {"Transport topic request fragments sent                                ", "transport_topic_req_fragments_sent", 0},
    {"Transport topic request fragment bytes sent                           ",
     "transport_topic_req_fragment_bytes_sent", 0},
    {"Duplicate transport topic fragments dropped                           ", "transport_topic_fragments_dropped_dup",
     0},
    {"Duplicate transport topic fragment bytes dropped                      ",
     "transport_topic_fragment_bytes_dropped_dup", 0},
    {"Transport topic fragments dropped due to EWOULDBLOCK                  ",
     "transport_topic_fragments_dropped_would_block", 0},
    {"Transport topic fragment bytes dropped due to EWOULDBLOCK             ",
     "transport_topic_fragment_bytes_dropped_would_block", 0},
    {"Transport topic fragments dropped due to error                        ",
     "transport_topic_fragments_dropped_error", 0},
    {"Transport topic fragment bytes dropped due to error                   ",
     "transport_topic_fragment_bytes_dropped_error", 0},
    {"Transport topic fragments dropped due to fragment size error          ",
     "transport_topic_fragments_dropped_size_error", 0},
    {"Transport topic fragment bytes dropped due to fragment size error     ",
     "transport_topic_fragment_bytes_dropped_size_error", 0},
    {"Immediate topic fragments forwarded                                   ", "immediate_topic_fragments_forwarded",
     0},
    {"Immediate topic fragment bytes forwarded                              ",
     "immediate_topic_fragment_bytes_forwarded", 0},
    {"Immediate topic fragments sent                                        ", "immediate_topic_fragments_sent", 0},
    {"Immediate topic fragment bytes sent                                   ", "immediate_topic_fragment_bytes_sent",
     0},
    {"Immediate topic request fragments sent                                ", "immediate_topic_req_fragments_sent", 0},
    {"Immediate topic request fragment bytes sent                           ",
     "immediate_topic_req_fragment_bytes_sent", 0},
    {"Immediate topic fragments dropped due to EWOULDBLOCK                  ",
     "immediate_topic_fragments_dropped_would_block", 0},
    {"Immediate topic fragment bytes dropped due to EWOULDBLOCK             ",
     "immediate_topic_fragment_bytes_dropped_would_block", 0},
    {"Immediate topic fragments dropped due to error                        ",
     "immediate_topic_fragments_dropped_error", 0},
    {"Immediate topic fragment bytes dropped due to error                   ",
     "immediate_topic_fragment_bytes_dropped_error", 0},
    {"Immediate topic fragments dropped due to fragment size error          ",
     "immediate_topic_fragments_dropped_size_error", 0},
    {"Immediate topic fragment bytes dropped due to fragment size error     ",
     "immediate_topic_fragment_bytes_dropped_size_error", 0},
    {"Immediate topicless fragments forwarded                               ",
     "immediate_topicless_fragments_forwarded", 0},
    {"Immediate topicless fragment bytes forwarded                          ",
     "immediate_topicless_fragment_bytes_forwarded", 0},
    {"Immediate topicless fragments sent                                    ", "immediate_topicless_fragments_sent", 0},
    {"Immediate topicless fragment bytes sent                               ",
     "immediate_topicless_fragment_bytes_sent", 0},
    {"Immediate topicless request fragments sent                            ", "immediate_topicless_req_fragments_sent",
     0},
    {"Immediate topicless request fragment bytes sent                       ",
     "immediate_topicless_req_fragment_bytes_sent", 0},
    {"Immediate topicless fragments dropped due to EWOULDBLOCK              ",
     "immediate_topicless_fragments_dropped_would_block", 0},
    {"Immediate topicless fragment bytes dropped due to EWOULDBLOCK         ",
     "immediate_topicless_fragment_bytes_dropped_would_block", 0},
    {"Immediate topicless fragments dropped due to error                    ",
     "immediate_topicless_fragments_dropped_error", 0},
    {"Immediate topicless fragment bytes dropped due to error               ",
     "immediate_topicless_fragment_bytes_dropped_error", 0},
    {"Immediate topicless fragments dropped due to fragment size error      ",
     "immediate_topicless_fragments_dropped_size_error", 0},
    {"Immediate topicless fragment bytes dropped due to fragment size error ",
     "immediate_topicless_fragment_bytes_dropped_size_error", 0},
    {"Unicast messages forwarded                                            ", "unicast_msgs_forwarded", 0},
    {"Unicast message bytes forwarded                                       ", "unicast_msg_bytes_forwarded", 0},
    {"Unicast messages sent                                                 ", "unicast_msgs_sent", 0},
    {"Unicast message bytes sent                                            ", "unicast_msg_bytes_sent", 0},
    {"Unicast messages dropped due to error                                 ", "unicast_msgs_dropped_error", 0},
    {"Unicast message bytes dropped due to error                            ", "unicast_msg_bytes_dropped_error", 0},
    {"Current data bytes enqueued internally                                ", "data_bytes_enqueued", 0},
    {"Maximum data bytes enqueued internally                                ", "data_bytes_enqueued_max", 0},
    {"Configured maximum data bytes allowed in queued                       ", "data_bytes_enqueued_limit", 0},
    {NULL, NULL, 0},
};

static const struct line endpoint_lines[] = {
    {"Domain ID                      ", "domain_id", 0},
    {"Local Interest Topics          ", "local_interest_topics", 0},
    {"Local Interest PCRE Patterns   ", "local_interest_pcre_patterns", 0},
    {"Local Interest REGEX Patterns  ", "local_interest_regex_patterns", 0},
    {"Remote Interest Topics         ", "remote_interest_topics", 0},
    {"Remote Interest PCRE Patterns  ", "remote_interest_pcre_patterns", 0},
    {"Remote Interest REGEX Patterns ", "remote_interest_regex_patterns", 0},
    {NULL, NULL, 0},
};

static const struct line malloc_lines[] = {
    {"arena    ", "arena", 0},    {"ordblks  ", "ordblks", 0},  {"hblks    ", "hblks", 0}, {"hblkhd   ", "hblkhd", 0},
    {"uordblks ", "uordblks", 0}, {"fordblks ", "fordblks", 0}, {NULL, NULL, 0},
};

static const struct line local_lines[] = {
    {"gateway_name         ", "gateway_name", 0},
    {"gateway_id           ", "gateway_id", 0},
    {"version              ", "version", 0},
    {"topology_signature   ", "topology_signature", 'x'},
    {"recalc_duration_sec  ", "recalc_duration_sec", 0},
    {"recalc_duration_usec ", "recalc_duration_usec", 0},
    {"graph_version        ", "graph_version", 0},
    {"gateway_count        ", "gateway_count", 0},
    {"trd_count            ", "trd_count", 0},
    {NULL, NULL, 0},
};

static const struct line portal_lines[] = {
    {"cost                           ", "cost", 0},
    {"proxy_receivers                ", "proxy_receivers", 0},
    {"receiver_topics                ", "receiver_topics", 0},
    {"receiver_pcre_patterns         ", "receiver_pcre_patterns", 0},
    {"receiver_regex_patterns        ", "receiver_regex_patterns", 0},
    {"proxy_sources                  ", "proxy_sources", 0},
    {"recalc_duration_sec            ", "recalc_duration_sec", 0},
    {"recalc_duration_usec           ", "recalc_duration_usec", 0},
    {"proxy_rec_recalc_duration_sec  ", "proxy_rec_recalc_duration_sec", 0},
    {"proxy_rec_recalc_duration_usec ", "proxy_rec_recalc_duration_usec", 0},
    {NULL, NULL, 0},
};

static const struct line other_lines[] = {
    {"gateway_id         ", "gateway_id", 0},           {"version            ", "version", 's'},
    {"topology_signature ", "topology_signature", 'x'}, {"last_activity_sec  ", "last_activity_sec", 's'},
    {"last_activity_usec ", "last_activity_usec", 's'}, {NULL, NULL, 0},
};

/* Blanks before the lines of each level. */
static const char *const indents[] = {"", "  ", "    ", "      ", "        "};

static void put_text(FILE *out, const char *indent, const char *label, const char *text, const char *behind)
{
    fprintf(out, "%s%s", indent, label);
    ex_mon_put(out, text, SIZE_MAX);
    fputs(behind, out);
}

static void put_lines(FILE *out, const char *indent, const char *text)
{
    fputs(indent, out);
    const char *end;
    do {
        end = text + strcspn(text, "\n");
        ex_mon_put(out, text, (size_t)(end - text));
        fputc('\n', out);
        text = end + 1;
    } while (*end != '\0');
}

static void print_local(FILE *out, const Lbmmon__DROMonMsg__Stats__Local *local)
{
    fprintf(out, "%s----Local statistics----\n", indents[1]);
    ex_mon_lines(out, indents[2], local_lines, local);
    if (local->malloc_info != NULL) {
        fprintf(out, "%s----Malloc info----\n", indents[2]);
        ex_mon_lines(out, indents[3], malloc_lines, local->malloc_info);
    }
}

static void print_endpoint(FILE *out, const Lbmmon__DROMonMsg__Stats__Portal__Endpoint *endpoint)
{
    ex_mon_lines(out, indents[3], endpoint_lines, endpoint);
    fprintf(out, "%s--- Endpoint Receive Stats ---\n", indents[3]);
    ex_mon_lines(out, indents[4], endpoint_receive_lines, endpoint->receive);
    fprintf(out, "%s--- Endpoint Send Stats ---\n", indents[3]);
    ex_mon_lines(out, indents[4], endpoint_send_lines, endpoint->send);
}

static void print_peer(FILE *out, const Lbmmon__DROMonMsg__Stats__Portal__Peer *peer)
{
    ex_mon_lines(out, indents[3], peer_lines, peer);
    fprintf(out, "%s--- Peer Receive Stats ---\n", indents[3]);
    ex_mon_lines(out, indents[4], peer_receive_lines, peer->receive);
    fprintf(out, "%s--- Peer UDP Receive Stats ---\n", indents[3]);
    ex_mon_lines(out, indents[4], udp_receive_lines, peer->udp_receive);
    fprintf(out, "%s--- Peer Send Stats ---\n", indents[3]);
    ex_mon_lines(out, indents[4], peer_send_lines, peer->send);
    fprintf(out, "%s--- Peer UDP Send Stats ---\n", indents[3]);
    ex_mon_lines(out, indents[4], udp_send_lines, peer->udp_send);
}

static void print_portal(FILE *out, const Lbmmon__DROMonMsg__Stats__Portal *portal)
{
    put_text(out, indents[2], "Portal Name                    : ", portal->portal_name, " \n");
    fprintf(out, "%sportal_index                   : %u\n", indents[2], (unsigned)portal->portal_index);
    fprintf(out, "%sportal_type_case               : %d\n", indents[2], (int)portal->portal_type_case);
    ex_mon_lines(out, indents[2], portal_lines, portal);
    if (portal->portal_type_case == LBMMON__DROMON_MSG__STATS__PORTAL__PORTAL_TYPE_ENDPOINT) {
        fprintf(out, "%s---Portal Endpoint Stats ---\n", indents[2]);
        print_endpoint(out, portal->endpoint);
    } else {
        fprintf(out, "%s NO Portal Endpoint Stats ---\n", indents[2]);
    }
    if (portal->portal_type_case == LBMMON__DROMON_MSG__STATS__PORTAL__PORTAL_TYPE_PEER) {
        fprintf(out, "%s--- Portal Peer Stats ---\n", indents[2]);
        print_peer(out, portal->peer);
    } else {
        fprintf(out, "%s NO Portal Peer Stats ---\n", indents[2]);
    }
}

static void print_other_portal(FILE *out, size_t number,
                               const Lbmmon__DROMonMsg__Stats__OtherGateway__OtherPortal *portal)
{
    fprintf(out, "%s--- Other Portals[%zu]---\n", indents[3], number);
    fprintf(out, "%scost                : %u\n", indents[3], (unsigned)portal->cost);
    fprintf(out, "%sportal_type_case    : %d\n", indents[3], (int)portal->portal_type_case);
    if (portal->portal_type_case ==
        LBMMON__DROMON_MSG__STATS__OTHER_GATEWAY__OTHER_PORTAL__PORTAL_TYPE_ADJACENT_DOMAIN_ID) {
        fprintf(out, "%sadjacent_domain_id  : %lu\n", indents[3], (unsigned long)portal->adjacent_domain_id);
    } else {
        fprintf(out, "%sadjacent_gateway_id : %lu\n", indents[3], (unsigned long)portal->adjacent_gateway_id);
    }
}

static void print_other(FILE *out, const Lbmmon__DROMonMsg__Stats__OtherGateway *other)
{
    put_text(out, indents[2], "Other Gateway Name : (", other->gateway_name, ")---\n");
    ex_mon_lines(out, indents[2], other_lines, other);
    fprintf(out, "%sn_other_portals    :  %zu\n", indents[2], other->n_other_portals);
    fprintf(out, "%s--- Other Gateway Stats - Portals ---\n", indents[2]);
    for (size_t i = 0; i < other->n_other_portals; i++) {
        print_other_portal(out, i, other->other_portals[i]);
    }
}

static void print_statistics(FILE *out, const Lbmmon__DROMonMsg__Stats *stats)
{
    fprintf(out, "%sNumber of portals       : %zu\n", indents[1], stats->n_portals);
    fprintf(out, "%sNumber of other gateways: %zu\n", indents[1], stats->n_other_gateways);
    if (stats->local != NULL) {
        print_local(out, stats->local);
    }
    fprintf(out, "%s----Portal statistics----\n%s--- Portal Stats[] ---\n", indents[1], indents[1]);
    for (size_t i = 0; i < stats->n_portals; i++) {
        fprintf(out, "%s--- Portal[%zu] ---\n", indents[2], i);
        print_portal(out, stats->portals[i]);
    }
    fprintf(out, "%s----Other gateway statistics----\n%s--- Other Gateway Stats[] ---\n", indents[1], indents[1]);
    for (size_t i = 0; i < stats->n_other_gateways; i++) {
        fprintf(out, "%s--- Other Gateway[%zu]---\n", indents[2], i);
        print_other(out, stats->other_gateways[i]);
    }
}

static void print_configuration(FILE *out, const Lbmmon__DROMonMsg__Configs *configs)
{
    if (configs->gateway != NULL) {
        put_lines(out, indents[1], configs->gateway->config_data);
    }
    for (size_t i = 0; i < configs->n_portals; i++) {
        fprintf(out, "%sPortal configuration %zu (%s)\n", indents[1], i,
                configs->portals[i]->portal_type == 0 ? "Endpoint" : "Peer");
        put_text(out, indents[2], "Portal name = ", configs->portals[i]->portal_name, "\n");
    }
}

void ex_mon_print_router(FILE *out, const Lbmmon__DROMonMsg *message)
{
    if (message->configs != NULL) {
        print_configuration(out, message->configs);
    }
    if (message->stats != NULL) {
        print_statistics(out, message->stats);
    }
}
