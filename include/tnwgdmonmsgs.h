/**
 * tnwgdmonmsgs.h - layouts of the packets that a router publishes about itself. Numbers are in the byte order of the
 * sender, which the magic number tells.
 */
#ifndef LBM_TNWGDMONMSGS_H_INCLUDED
#define LBM_TNWGDMONMSGS_H_INCLUDED

#include <stddef.h>
#include "lbm/lbm.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Packet types, buffer sizes and kinds. */
#define LBM_TNWG_DMON_VERSION 1
#define TNWG_DSTAT_FILENAME_MAX_STRLEN 256
#define TNWG_DSTAT_MAX_PORTAL_NAME_LEN 256
#define TNWG_DSTAT_MAX_GATEWAY_NAME_LEN 256
#define TNWG_DSTATTYPE_INVALID 0
#define TNWG_DSTATTYPE_RM 1
#define TNWG_DSTATTYPE_RM_LOCAL 2
#define TNWG_DSTATTYPE_RM_PORTAL 3
#define TNWG_DSTATTYPE_RM_OTHERGW 4
#define TNWG_DSTATTYPE_RM_OTHERGW_NBR 5
#define TNWG_DSTATTYPE_PORTSTAT 6
#define TNWG_DSTATTYPE_GATEWAYCFG 7
#define TNWG_DSTATTYPE_PORTCFG 8
#define TNWG_DSTATTYPE_MALLINFO 9
#define LBM_TNWG_DAEMON_MAGIC 0x4542     /**< first two bytes, in the order of the sender */
#define LBM_TNWG_DAEMON_ANTIMAGIC 0x4245 /**< the same seen from the other order */
#define TNWG_DSTAT_Portal_Type_Endpoint 0
#define TNWG_DSTAT_Portal_Type_Peer 1
#define TNWG_DSTAT_Domain_Type 0
#define TNWG_DSTAT_Gateway_Type 1
#define MAX_ATTR_TYPE_NAME_LEN 64

/** Structures and unions defined below. */
typedef struct tnwg_dstat_msg_hdr_t_stct tnwg_dstat_msg_hdr_t;
typedef struct tnwg_mallinfo_stat_grp_record_t_stct tnwg_mallinfo_stat_grp_record_t;
typedef struct tnwg_dstat_mallinfo_msg_t_stct tnwg_dstat_mallinfo_msg_t;
typedef struct tnwg_dstat_endpoint_receive_stats_t_stct tnwg_dstat_endpoint_receive_stats_t;
typedef struct tnwg_dstat_endpoint_send_stats_t_stct tnwg_dstat_endpoint_send_stats_t;
typedef struct tnwg_dstat_peer_receive_stats_t_stct tnwg_dstat_peer_receive_stats_t;
typedef struct tnwg_dstat_peer_send_stats_t_stct tnwg_dstat_peer_send_stats_t;
typedef struct tnwg_dstat_peer_udp_receive_stats_t_stct tnwg_dstat_peer_udp_receive_stats_t;
typedef struct tnwg_dstat_peer_udp_send_stats_t_stct tnwg_dstat_peer_udp_send_stats_t;
typedef struct tnwg_portal_endpoint_dstat_record_t_stct tnwg_portal_endpoint_dstat_record_t;
typedef struct tnwg_portal_peer_dstat_record_t_stct tnwg_portal_peer_dstat_record_t;
typedef struct tnwg_portalstats_dstat_record_t_stct tnwg_portalstats_dstat_record_t;
typedef struct tnwg_dstat_record_hdr_t_stct tnwg_dstat_record_hdr_t;
typedef struct tnwg_dstat_portalstats_msg_t_stct tnwg_dstat_portalstats_msg_t;
typedef struct tnwg_dstat_gatewaycfg_msg_t_stct tnwg_dstat_gatewaycfg_msg_t;
typedef struct tnwg_pcfg_stat_grp_rec_hdr_t_stct tnwg_pcfg_stat_grp_rec_hdr_t;
typedef struct tnwg_pcfg_stat_grp_msg_t_stct tnwg_pcfg_stat_grp_msg_t;
typedef struct tnwg_rm_stat_grp_local_info_t_stct tnwg_rm_stat_grp_local_info_t;
typedef struct tnwg_rm_stat_grp_portal_info_t_stct tnwg_rm_stat_grp_portal_info_t;
typedef struct tnwg_rm_stat_grp_othergw_info_t_stct tnwg_rm_stat_grp_othergw_info_t;
typedef struct tnwg_rm_stat_grp_othergw_neighbor_t_stct tnwg_rm_stat_grp_othergw_neighbor_t;
typedef struct tnwg_rm_stat_grp_msg_t_stct tnwg_rm_stat_grp_msg_t;

/** Start of every packet. */
struct tnwg_dstat_msg_hdr_t_stct {
    lbm_uint16_t magic;
    lbm_uint16_t type;
    lbm_uint16_t version;
    lbm_uint16_t length; /**< bytes of the packet */
    lbm_uint32_t tv_sec;
    lbm_uint32_t tv_usec;
};

/** Heap use as mallinfo() reports it, bytes and counts. */
struct tnwg_mallinfo_stat_grp_record_t_stct {
    lbm_uint32_t arena;
    lbm_uint32_t ordblks;
    lbm_uint32_t hblks;
    lbm_uint32_t hblkhd;
    lbm_uint32_t uordblks;
    lbm_uint32_t fordblks;
};

struct tnwg_dstat_mallinfo_msg_t_stct {
    tnwg_dstat_msg_hdr_t hdr;
    tnwg_mallinfo_stat_grp_record_t record;
};

/** What an endpoint portal received since it started: counts, and bytes where the name says so. */
struct tnwg_dstat_endpoint_receive_stats_t_stct {
    uint64_t transport_topic_fragments_rcvd;
    uint64_t transport_topic_fragment_bytes_rcvd;
    uint64_t transport_topic_req_fragments_rcvd;
    uint64_t transport_topic_req_fragment_bytes_rcvd;
    uint64_t transport_topic_control_rcvd;
    uint64_t transport_topic_control_bytes_rcvd;
    uint64_t immediate_topic_fragments_rcvd;
    uint64_t immediate_topic_fragment_bytes_rcvd;
    uint64_t immediate_topic_req_fragments_rcvd;
    uint64_t immediate_topic_req_fragment_bytes_rcvd;
    uint64_t immediate_topicless_fragments_rcvd;
    uint64_t immediate_topicless_fragment_bytes_rcvd;
    uint64_t immediate_topicless_req_fragments_rcvd;
    uint64_t immediate_topicless_req_fragment_bytes_rcvd;
    uint64_t unicast_data_msgs_rcvd;
    uint64_t unicast_data_msg_bytes_rcvd;
    uint64_t unicast_data_msgs_rcvd_no_stream;
    uint64_t unicast_data_msg_bytes_rcvd_no_stream;
    uint64_t unicast_data_msgs_dropped_dup;
    uint64_t unicast_data_msg_bytes_dropped_dup;
    uint64_t unicast_data_msgs_dropped_no_route;
    uint64_t unicast_data_msg_bytes_dropped_no_route;
    uint64_t unicast_cntl_msgs_rcvd;
    uint64_t unicast_cntl_msg_bytes_rcvd;
    uint64_t unicast_cntl_msgs_rcvd_no_stream;
    uint64_t unicast_cntl_msg_bytes_rcvd_no_stream;
    uint64_t unicast_cntl_msgs_dropped_dup;
    uint64_t unicast_cntl_msg_bytes_dropped_dup;
    uint64_t unicast_cntl_msgs_dropped_no_route;
    uint64_t unicast_cntl_msg_bytes_dropped_no_route;
};

/** What an endpoint portal forwarded, sent and dropped since it started: counts, and bytes where the name says so. */
struct tnwg_dstat_endpoint_send_stats_t_stct {
    uint64_t transport_topic_fragments_forwarded;
    uint64_t transport_topic_fragment_bytes_forwarded;
    uint64_t transport_topic_fragments_sent;
    uint64_t transport_topic_fragment_bytes_sent;
    uint64_t transport_topic_req_fragments_sent;
    uint64_t transport_topic_req_fragment_bytes_sent;
    uint64_t transport_topic_fragments_dropped_dup;
    uint64_t transport_topic_fragment_bytes_dropped_dup;
    uint64_t transport_topic_fragments_dropped_would_block;
    uint64_t transport_topic_fragment_bytes_dropped_would_block;
    uint64_t transport_topic_fragments_dropped_error;
    uint64_t transport_topic_fragment_bytes_dropped_error;
    uint64_t transport_topic_fragments_dropped_size_error;
    uint64_t transport_topic_fragment_bytes_dropped_size_error;
    uint64_t immediate_topic_fragments_forwarded;
    uint64_t immediate_topic_fragment_bytes_forwarded;
    uint64_t immediate_topic_fragments_sent;
    uint64_t immediate_topic_fragment_bytes_sent;
    uint64_t immediate_topic_req_fragments_sent;
    uint64_t immediate_topic_req_fragment_bytes_sent;
    uint64_t immediate_topic_fragments_dropped_would_block;
    uint64_t immediate_topic_fragment_bytes_dropped_would_block;
    uint64_t immediate_topic_fragments_dropped_error;
    uint64_t immediate_topic_fragment_bytes_dropped_error;
    uint64_t immediate_topic_fragments_dropped_size_error;
    uint64_t immediate_topic_fragment_bytes_dropped_size_error;
    uint64_t immediate_topicless_fragments_forwarded;
    uint64_t immediate_topicless_fragment_bytes_forwarded;
    uint64_t immediate_topicless_fragments_sent;
    uint64_t immediate_topicless_fragment_bytes_sent;
    uint64_t immediate_topicless_req_fragments_sent;
    uint64_t immediate_topicless_req_fragment_bytes_sent;
    uint64_t immediate_topicless_fragments_dropped_would_block;
    uint64_t immediate_topicless_fragment_bytes_dropped_would_block;
    uint64_t immediate_topicless_fragments_dropped_error;
    uint64_t immediate_topicless_fragment_bytes_dropped_error;
    uint64_t immediate_topicless_fragments_dropped_size_error;
    uint64_t immediate_topicless_fragment_bytes_dropped_size_error;
    uint64_t unicast_msgs_forwarded;
    uint64_t unicast_msg_bytes_forwarded;
    uint64_t unicast_msgs_sent;
    uint64_t unicast_msg_bytes_sent;
    uint64_t unicast_msgs_dropped_error;
    uint64_t unicast_msg_bytes_dropped_error;
    uint64_t data_bytes_enqueued;
    uint64_t data_bytes_enqueued_max;
    uint64_t data_bytes_enqueued_limit;
};

/** What a peer portal received since it started: counts, and bytes where the name says so. */
struct tnwg_dstat_peer_receive_stats_t_stct {
    uint64_t data_msgs_rcvd;
    uint64_t data_msg_bytes_rcvd;
    uint64_t transport_topic_fragment_data_msgs_rcvd;
    uint64_t transport_topic_fragment_data_msg_bytes_rcvd;
    uint64_t transport_topic_fragment_data_msgs_rcvd_unknown_source;
    uint64_t transport_topic_fragment_data_msg_bytes_rcvd_unknown_source;
    uint64_t transport_topic_req_fragment_data_msgs_rcvd;
    uint64_t transport_topic_req_fragment_data_msg_bytes_rcvd;
    uint64_t transport_topic_req_fragment_data_msgs_rcvd_unknown_source;
    uint64_t transport_topic_req_fragment_data_msg_bytes_rcvd_unknown_source;
    uint64_t transport_topic_control_msgs_rcvd;
    uint64_t transport_topic_control_msg_bytes_rcvd;
    uint64_t transport_topic_control_msgs_rcvd_unknown_source;
    uint64_t transport_topic_control_msg_bytes_rcvd_unknown_source;
    uint64_t immediate_topic_fragment_data_msgs_rcvd;
    uint64_t immediate_topic_fragment_data_msg_bytes_rcvd;
    uint64_t immediate_topic_req_fragment_data_msgs_rcvd;
    uint64_t immediate_topic_req_fragment_data_msg_bytes_rcvd;
    uint64_t immediate_topicless_fragment_data_msgs_rcvd;
    uint64_t immediate_topicless_fragment_data_msg_bytes_rcvd;
    uint64_t immediate_topicless_req_fragment_data_msgs_rcvd;
    uint64_t immediate_topicless_req_fragment_data_msg_bytes_rcvd;
    uint64_t unicast_data_msgs_rcvd;
    uint64_t unicast_data_msg_bytes_rcvd;
    uint64_t unicast_data_msgs_rcvd_no_fwd;
    uint64_t unicast_data_msg_bytes_rcvd_no_fwd;
    uint64_t unicast_data_msgs_rcvd_unknown_fwd;
    uint64_t unicast_data_msg_bytes_rcvd_unknown_fwd;
    uint64_t unicast_data_msgs_rcvd_no_stream;
    uint64_t unicast_data_msg_bytes_rcvd_no_stream;
    uint64_t unicast_data_msgs_dropped_no_route;
    uint64_t unicast_data_msg_bytes_dropped_no_route;
    uint64_t cntl_msgs_rcvd;
    uint64_t cntl_msg_bytes_rcvd;
    uint64_t unicast_cntl_msgs_rcvd;
    uint64_t unicast_cntl_msg_bytes_rcvd;
    uint64_t unicast_cntl_rxreq_msgs_rcvd;
    uint64_t unicast_cntl_rxreq_msg_bytes_rcvd;
    uint64_t unicast_cntl_msgs_rcvd_unhandled;
    uint64_t unicast_cntl_msg_bytes_rcvd_unhandled;
    uint64_t unicast_cntl_msgs_rcvd_no_stream;
    uint64_t unicast_cntl_msg_bytes_rcvd_no_stream;
    uint64_t unicast_cntl_msgs_dropped_no_route;
    uint64_t unicast_cntl_msg_bytes_dropped_no_route;
    uint64_t gateway_cntl_msgs_rcvd;
    uint64_t gateway_cntl_msg_bytes_rcvd;
};

/** What a peer portal forwarded, sent and dropped since it started: counts, and bytes where the name says so. */
struct tnwg_dstat_peer_send_stats_t_stct {
    uint64_t data_fragments_forwarded;
    uint64_t data_fragment_bytes_forwarded;
    uint64_t data_fragments_sent;
    uint64_t data_fragment_bytes_sent;
    uint64_t data_fragments_dropped_dup;
    uint64_t data_fragment_bytes_dropped_dup;
    uint64_t data_fragments_dropped_would_block;
    uint64_t data_fragment_bytes_dropped_would_block;
    uint64_t data_fragments_dropped_not_operational;
    uint64_t data_fragment_bytes_dropped_not_operational;
    uint64_t data_fragments_dropped_queue_failure;
    uint64_t data_fragment_bytes_dropped_queue_failure;
    uint64_t unicast_msgs_forwarded;
    uint64_t unicast_msg_bytes_forwarded;
    uint64_t unicast_msgs_sent;
    uint64_t unicast_msg_bytes_sent;
    uint64_t unicast_msgs_dropped_would_block;
    uint64_t unicast_msg_bytes_dropped_would_block;
    uint64_t unicast_msgs_dropped_not_operational;
    uint64_t unicast_msg_bytes_dropped_not_operational;
    uint64_t unicast_msgs_dropped_queue_failure;
    uint64_t unicast_msg_bytes_dropped_queue_failure;
    uint64_t gateway_cntl_msgs;
    uint64_t gateway_cntl_msg_bytes;
    uint64_t gateway_cntl_msgs_sent;
    uint64_t gateway_cntl_msg_bytes_sent;
    uint64_t gateway_cntl_msgs_dropped_would_block;
    uint64_t gateway_cntl_msg_bytes_dropped_would_block;
    uint64_t gateway_cntl_msgs_dropped_not_operational;
    uint64_t gateway_cntl_msg_bytes_dropped_not_operational;
    uint64_t gateway_cntl_msgs_dropped_queue_failure;
    uint64_t gateway_cntl_msg_bytes_dropped_queue_failure;
    uint64_t batches;
    uint64_t batch_msgs_min;
    uint64_t batch_msgs_mean;
    uint64_t batch_msgs_max;
    uint64_t batch_bytes_min;
    uint64_t batch_bytes_mean;
    uint64_t batch_bytes_max;
    uint64_t data_bytes_enqueued;
    uint64_t data_bytes_enqueued_max;
    uint64_t data_bytes_enqueued_limit;
    uint64_t rtt_samples;
    uint64_t rtt_min;
    uint64_t rtt_mean;
    uint64_t rtt_max;
    uint64_t last_ka_time;
    uint64_t unicast_msg_bytes_enqueued;
    uint64_t unicast_msg_bytes_enqueued_max;
    uint64_t unicast_msg_bytes_enqueued_limit;
};

/** Receiving side of a peer link over UDP; members as in lbm_rcv_transport_stats_lbtru_t. */
struct tnwg_dstat_peer_udp_receive_stats_t_stct {
    uint64_t msgs_rcved;
    uint64_t bytes_rcved;
    uint64_t nak_pckts_sent;
    uint64_t naks_sent;
    uint64_t lost;
    uint64_t ncfs_ignored;
    uint64_t ncfs_shed;
    uint64_t ncfs_rx_delay;
    uint64_t ncfs_unknown;
    uint64_t nak_stm_min;
    uint64_t nak_stm_mean;
    uint64_t nak_stm_max;
    uint64_t nak_tx_min;
    uint64_t nak_tx_mean;
    uint64_t nak_tx_max;
    uint64_t duplicate_data;
    uint64_t unrecovered_txw;
    uint64_t unrecovered_tmo;
    uint64_t dgrams_dropped_size;
    uint64_t dgrams_dropped_type;
    uint64_t dgrams_dropped_version;
    uint64_t dgrams_dropped_hdr;
    uint64_t dgrams_dropped_sid;
    uint64_t dgrams_dropped_other;
};

/** Sending side of a peer link over UDP; members as in lbm_src_transport_stats_lbtru_t. */
struct tnwg_dstat_peer_udp_send_stats_t_stct {
    uint64_t msgs_sent;
    uint64_t bytes_sent;
    uint64_t nak_pckts_rcved;
    uint64_t naks_rcved;
    uint64_t naks_ignored;
    uint64_t naks_shed;
    uint64_t naks_rx_delay_ignored;
    uint64_t rxs_sent;
    uint64_t rx_bytes_sent;
};

struct tnwg_portal_endpoint_dstat_record_t_stct {
    tnwg_dstat_endpoint_receive_stats_t receive_stats;
    tnwg_dstat_endpoint_send_stats_t send_stats;
    lbm_uint32_t domain_id;
    lbm_uint32_t ingress_cost;
    lbm_uint32_t local_interest_topics;
    lbm_uint32_t local_interest_pcre_patterns;
    lbm_uint32_t local_interest_regex_patterns;
    lbm_uint32_t remote_interest_topics;
    lbm_uint32_t remote_interest_pcre_patterns;
    lbm_uint32_t remote_interest_regex_patterns;
    lbm_uint32_t proxy_receivers;
    lbm_uint32_t receiver_topics;
    lbm_uint32_t receiver_pcre_patterns;
    lbm_uint32_t receiver_regex_patterns;
    lbm_uint32_t proxy_sources;
    lbm_uint32_t padding;
};

struct tnwg_portal_peer_dstat_record_t_stct {
    tnwg_dstat_peer_receive_stats_t receive_stats;
    tnwg_dstat_peer_send_stats_t send_stats;
    uint32_t ingress_cost;
    uint32_t local_interest_topics;
    uint32_t local_interest_pcre_patterns;
    uint32_t local_interest_regex_patterns;
    uint32_t remote_interest_topics;
    uint32_t remote_interest_pcre_patterns;
    uint32_t remote_interest_regex_patterns;
    uint32_t proxy_receivers;
    uint32_t receiver_topics;
    uint32_t receiver_pcre_patterns;
    uint32_t receiver_regex_patterns;
    uint32_t proxy_sources;
    uint32_t udp_peer;
    tnwg_dstat_peer_udp_receive_stats_t udp_receive_stats;
    tnwg_dstat_peer_udp_send_stats_t udp_send_stats;
};

struct tnwg_portalstats_dstat_record_t_stct {
    union {
        tnwg_portal_endpoint_dstat_record_t endpt;
        tnwg_portal_peer_dstat_record_t peer;
    } ptype;
};

struct tnwg_dstat_record_hdr_t_stct {
    uint32_t portal_type;
    uint32_t index;
    uint32_t record_length;
    uint32_t padding;
    char portal_name[256];
};

struct tnwg_dstat_portalstats_msg_t_stct {
    tnwg_dstat_msg_hdr_t msghdr;
    tnwg_dstat_record_hdr_t rechdr;
    tnwg_portalstats_dstat_record_t record;
};

struct tnwg_dstat_gatewaycfg_msg_t_stct {
    tnwg_dstat_msg_hdr_t msghdr;
    char data;
};

struct tnwg_pcfg_stat_grp_rec_hdr_t_stct {
    uint32_t portal_num;
    uint32_t portal_type;
    uint32_t num_options;
    uint32_t padding;
    char portal_name[256];
    char attr_type[64];
};

struct tnwg_pcfg_stat_grp_msg_t_stct {
    tnwg_dstat_msg_hdr_t msghdr;
    tnwg_pcfg_stat_grp_rec_hdr_t rechdr;
    char data;
};

struct tnwg_rm_stat_grp_local_info_t_stct {
    char gateway_name[256];
    uint64_t gateway_id;
    uint32_t topology_signature;
    uint32_t recalc_duration_sec;
    uint32_t recalc_duration_usec;
    uint32_t graph_version;
    uint16_t self_version;
    uint16_t gateway_count;
    uint16_t trd_count;
};

struct tnwg_rm_stat_grp_portal_info_t_stct {
    uint64_t node_or_adjacent_id;
    uint32_t type;
    uint32_t index;
    uint32_t ingress_cost;
    uint32_t recalc_duration_sec;
    uint32_t recalc_duration_usec;
    uint32_t proxy_rec_recalc_duration_sec;
    uint32_t proxy_rec_recalc_duration_usec;
    char portal_name[256];
};

struct tnwg_rm_stat_grp_othergw_info_t_stct {
    uint64_t gateway_id;
    uint32_t topology;
    uint32_t last_activity_sec;
    uint32_t last_activity_usec;
    uint16_t version;
    uint16_t num_neighbors;
    char gateway_name[256];
};

struct tnwg_rm_stat_grp_othergw_neighbor_t_stct {
    uint64_t node_id;
    uint32_t domain_or_gateway;
    uint32_t ingress_cost;
};

struct tnwg_rm_stat_grp_msg_t_stct {
    tnwg_dstat_msg_hdr_t msghdr;
    union {
        tnwg_rm_stat_grp_local_info_t local;
        tnwg_rm_stat_grp_portal_info_t portal;
        tnwg_rm_stat_grp_othergw_info_t othergw;
        tnwg_rm_stat_grp_othergw_neighbor_t neighbor;
    } msgtype;
};

#ifdef __cplusplus
}
#endif

#endif
