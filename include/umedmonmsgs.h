/**
 * umedmonmsgs.h - layouts of the packets that a persistent store publishes about itself. Numbers are in the byte order
 * of the sender, which the magic number tells; the _SZ constants are the bytes on the wire, less than the structures
 * where those end in padding or in a text.
 */
#ifndef LBM_UMEDMONMSGS_H_INCLUDED
#define LBM_UMEDMONMSGS_H_INCLUDED

#include <stddef.h>
#include "lbm/lbm.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Packet types, buffer sizes and flags. */
#define LBM_UMESTORE_DMON_VERSION_STRLEN 256
#define LBM_UMESTORE_DMON_STORE_NAME_STRLEN 256
#define LBM_UMESTORE_DMON_TOPIC_PATTERN_STRLEN 256
#define LBM_UMESTORE_DMON_FILENAME_MAX_STRLEN 256
#define LBM_UMESTORE_DMON_MPG_SMART_HEAP_STATS 1
#define LBM_UMESTORE_DMON_MPG_STORE_STATS 2
#define LBM_UMESTORE_DMON_MPG_REPO_STATS 3
#define LBM_UMESTORE_DMON_MPG_DISK_STATS 4
#define LBM_UMESTORE_DMON_MPG_RCV_STATS 5
#define LBM_UMESTORE_DMON_MPG_STORE_CONFIG 101
#define LBM_UMESTORE_DMON_MPG_STORE_PATTERN_CONFIG 102
#define LBM_UMESTORE_DMON_MPG_STORE_TOPIC_CONFIG 103
#define LBM_UMESTORE_DMON_MPG_REPO_CONFIG 104
#define LBM_UMESTORE_DMON_MPG_RCV_CONFIG 105
#define LBM_UMESTORE_DMON_MAGIC 0x4542     /**< first two bytes, in the order of the sender */
#define LBM_UMESTORE_DMON_ANTIMAGIC 0x4245 /**< the same seen from the other order */
#define LBM_UMESTORE_DMON_VERSION 1
#define UMESTORE_DMON_MSG_HDR_T_SZ                                                                                     \
    (offsetof(umestore_dmon_msg_hdr_t, tv_usec) + sizeof(((umestore_dmon_msg_hdr_t *)0)->tv_usec))
#define UMESTORE_STORE_DMON_CONFIG_MSG_T_MIN_SZ (offsetof(umestore_store_dmon_config_msg_t, string_buffer) + 2)
#define UMESTORE_STORE_PATTERN_DMON_CONFIG_MSG_T_MIN_SZ                                                                \
    (offsetof(umestore_store_pattern_dmon_config_msg_t, pattern_buffer) + 2)
#define UMESTORE_DMON_TOPIC_TYPE_DIRECT 0
#define UMESTORE_DMON_TOPIC_TYPE_PCRE 1
#define UMESTORE_DMON_TOPIC_TYPE_REGEXP 2
#define UMESTORE_TOPIC_DMON_CONFIG_MSG_T_MIN_SZ (offsetof(umestore_topic_dmon_config_msg_t, topic_name) + 2)
#define UMESTORE_REPO_DMON_CONFIG_MSG_T_SZ                                                                             \
    (offsetof(umestore_repo_dmon_config_msg_t, allow_ack_on_reception) +                                               \
     sizeof(((umestore_repo_dmon_config_msg_t *)0)->allow_ack_on_reception))
#define UMESTORE_DMON_REPO_TYPE_NOCACHE 0
#define UMESTORE_DMON_REPO_TYPE_MEMORY 1
#define UMESTORE_DMON_REPO_TYPE_DISK 2
#define UMESTORE_DMON_REPO_DO_NOT_ACK_ON_RECEPTION 0
#define UMESTORE_DMON_REPO_ACK_ON_RECEPTION 1
#define UMESTORE_RCV_DMON_CONFIG_MSG_T_SZ                                                                              \
    (offsetof(umestore_rcv_dmon_config_msg_t, sin_port) + sizeof(((umestore_rcv_dmon_config_msg_t *)0)->sin_port))
#define UMESTORE_SMART_HEAP_DMON_STAT_MSG_T_MIN_SZ                                                                     \
    (offsetof(umestore_smart_heap_dmon_stat_msg_t, umestored_version_buffer) + 2)
#define UMESTORE_STORE_DMON_STAT_MSG_T_SZ                                                                              \
    (offsetof(umestore_store_dmon_stat_msg_t, store_idx) + sizeof(((umestore_store_dmon_stat_msg_t *)0)->store_idx))
#define UMESTORE_REPO_DMON_STAT_MSG_T_SZ                                                                               \
    (offsetof(umestore_repo_dmon_stat_msg_t, flags) + sizeof(((umestore_repo_dmon_stat_msg_t *)0)->flags))
#define UMESTORE_DMON_REPO_FLAG_INTENTIONAL_DROPS 0x1
#define UMESTORE_DMON_REPO_FLAG_ISN_SET 0x2
#define UMESTORE_DMON_REPO_FLAG_DISK_CKSUM 0x4
#define UMESTORE_DMON_REPO_FLAG_SHUTTING_DOWN 0x8
#define UMESTORE_DMON_REPO_FLAG_RPP 0x10
#define UMESTORE_DMON_REPO_FLAG_DELAY_WRITE 0x20
#define UMESTORE_DISK_DMON_STAT_MSG_T_SZ                                                                               \
    (offsetof(umestore_disk_dmon_stat_msg_t, store_idx) + sizeof(((umestore_disk_dmon_stat_msg_t *)0)->store_idx))
#define UMESTORE_RCV_DMON_STAT_MSG_T_SZ                                                                                \
    (offsetof(umestore_rcv_dmon_stat_msg_t, flags) + sizeof(((umestore_rcv_dmon_stat_msg_t *)0)->flags))
#define UMESTORE_DMON_RCV_FLAG_FIRST_ACK 0x1
#define UMESTORE_DMON_RCV_FLAG_OOD 0x2
#define UMESTORE_DMON_RCV_FLAG_CAPABILITY_QC 0x4
#define UMESTORE_DMON_RCV_FLAG_SHUTTING_DOWN 0x8
#define UMESTORE_DMON_RCV_FLAG_DEREGISTERING 0x10
#define UMESTORE_DMON_RCV_FLAG_RPP 0x20
#define UMESTORE_DMON_RCV_FLAG_RPP_IS_NON_BLOCKING 0x40
#define UMESTORE_DMON_RCV_FLAG_KEEPALIVES_DISABLED 0x80

/** Structures and unions defined below. */
typedef struct umestore_dmon_msg_hdr_t_stct umestore_dmon_msg_hdr_t;
typedef struct umestore_store_dmon_config_msg_t_stct umestore_store_dmon_config_msg_t;
typedef struct umestore_store_pattern_dmon_config_msg_t_stct umestore_store_pattern_dmon_config_msg_t;
typedef struct umestore_topic_dmon_config_msg_t_stct umestore_topic_dmon_config_msg_t;
typedef struct umestore_repo_dmon_config_msg_t_stct umestore_repo_dmon_config_msg_t;
typedef struct umestore_rcv_dmon_config_msg_t_stct umestore_rcv_dmon_config_msg_t;
typedef struct umestore_smart_heap_dmon_stat_msg_t_stct umestore_smart_heap_dmon_stat_msg_t;
typedef struct umestore_store_dmon_stat_msg_t_stct umestore_store_dmon_stat_msg_t;
typedef struct umestore_repo_dmon_stat_msg_t_stct umestore_repo_dmon_stat_msg_t;
typedef struct umestore_disk_dmon_stat_msg_t_stct umestore_disk_dmon_stat_msg_t;
typedef struct umestore_rcv_dmon_stat_msg_t_stct umestore_rcv_dmon_stat_msg_t;

/** Start of every packet. */
struct umestore_dmon_msg_hdr_t_stct {
    lbm_uint16_t magic;
    lbm_uint16_t type;
    lbm_uint16_t version;
    lbm_uint16_t length; /**< bytes of the packet */
    lbm_uint32_t tv_sec;
    lbm_uint32_t tv_usec;
};

/** Configuration of a store. Texts are at offsets in string_buffer. */
struct umestore_store_dmon_config_msg_t_stct {
    umestore_dmon_msg_hdr_t hdr;
    lbm_uint32_t store_iface;
    lbm_uint32_t store_max_retransmission_processing_rate;
    lbm_uint16_t store_idx;
    lbm_uint16_t store_port;
    lbm_uint16_t store_name_offset;
    lbm_uint16_t disk_cache_dir_offset;
    lbm_uint16_t disk_state_dir_offset;
    char string_buffer[256 + (2 * 256)];
};

/** A topic pattern of a store. */
struct umestore_store_pattern_dmon_config_msg_t_stct {
    umestore_dmon_msg_hdr_t hdr;
    lbm_uint16_t store_idx;
    lbm_uint16_t type;
    char pattern_buffer[256];
};

/** A topic of a store. */
struct umestore_topic_dmon_config_msg_t_stct {
    umestore_dmon_msg_hdr_t hdr;
    lbm_uint32_t dmon_topic_idx;
    lbm_uint16_t store_idx;
    char topic_name[256];
};

/** Configuration of a repository: sizes in bytes. */
struct umestore_repo_dmon_config_msg_t_stct {
    umestore_dmon_msg_hdr_t hdr;
    lbm_uint64_t sid;
    lbm_uint64_t disk_sz_limit;
    lbm_uint64_t src_flightsz_bytes;
    lbm_uint32_t dmon_topic_idx;
    lbm_uint32_t regid;
    lbm_uint32_t sz_threshold;
    lbm_uint32_t sz_limit;
    lbm_uint32_t age_threshold;
    lbm_uint32_t disk_max_write_aiocbs;
    lbm_uint32_t disk_max_read_aiocbs;
    lbm_uint32_t disk_aio_buffer_len;
    lbm_uint32_t write_delay;
    lbm_uint16_t store_idx;
    lbm_uint8_t type;
    lbm_uint8_t allow_ack_on_reception;
};

/** A receiver registered with a repository. */
struct umestore_rcv_dmon_config_msg_t_stct {
    umestore_dmon_msg_hdr_t hdr;
    lbm_uint64_t sid;
    lbm_uint32_t dmon_topic_idx;
    lbm_uint32_t regid;
    lbm_uint32_t transport_idx;
    lbm_uint32_t topic_idx;
    lbm_uint32_t domain_id;
    lbm_uint32_t sin_addr;
    lbm_uint16_t store_idx;
    lbm_uint16_t sin_port;
};

/** Heap use of a store. */
struct umestore_smart_heap_dmon_stat_msg_t_stct {
    umestore_dmon_msg_hdr_t hdr;
    lbm_int64_t poolsize;
    lbm_int64_t poolcount;
    lbm_uint32_t smallBlockSize;
    lbm_uint32_t pageSize;
    lbm_uint16_t mem_major_version;
    lbm_uint16_t mem_minor_version;
    lbm_uint16_t mem_update_version;
    char umestored_version_buffer[256];
};

/** Retransmission requests of a store: counts. */
struct umestore_store_dmon_stat_msg_t_stct {
    umestore_dmon_msg_hdr_t hdr;
    lbm_uint32_t ume_retx_req_rcv_count;
    lbm_uint32_t ume_retx_req_serviced_count;
    lbm_uint32_t ume_retx_req_drop_count;
    lbm_uint32_t ume_retx_stat_interval;
    lbm_uint32_t ume_retx_req_total_dropped;
    lbm_uint16_t store_idx;
};

/** State of a repository: sizes in bytes, sequence numbers, losses. */
struct umestore_repo_dmon_stat_msg_t_stct {
    umestore_dmon_msg_hdr_t hdr;
    lbm_uint32_t dmon_topic_idx;
    lbm_uint32_t regid;
    lbm_uint32_t message_map_sz;
    lbm_uint32_t memory_sz;
    lbm_uint32_t rpp_memory_sz;
    lbm_uint32_t lead_sqn;
    lbm_uint32_t sync_sqn;
    lbm_uint32_t sync_complete_sqn;
    lbm_uint32_t trail_sqn;
    lbm_uint32_t mem_trail_sqn;
    lbm_uint32_t contig_sqn;
    lbm_uint32_t high_ulb_sqn;
    lbm_uint32_t map_intentional_drops;
    lbm_uint32_t uls;
    lbm_uint32_t ulbs;
    lbm_uint32_t sz_limit_drops;
    lbm_uint16_t store_idx;
    lbm_uint8_t flags;
};

/** Disk use of a repository: offsets in bytes. */
struct umestore_disk_dmon_stat_msg_t_stct {
    umestore_dmon_msg_hdr_t hdr;
    lbm_int64_t max_offset;
    lbm_int64_t num_ios_pending;
    lbm_int64_t num_read_ios_pending;
    lbm_int64_t offset;
    lbm_int64_t start_offset;
    lbm_uint32_t dmon_topic_idx;
    lbm_uint32_t regid;
    lbm_uint16_t store_idx;
};

/** State of a registered receiver. */
struct umestore_rcv_dmon_stat_msg_t_stct {
    umestore_dmon_msg_hdr_t hdr;
    lbm_uint32_t dmon_topic_idx;
    lbm_uint32_t regid;
    lbm_uint32_t high_ack_sqn;
    lbm_uint16_t store_idx;
    lbm_uint16_t flags;
};

#ifdef __cplusplus
}
#endif

#endif
