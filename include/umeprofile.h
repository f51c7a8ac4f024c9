/** umeprofile.h - reading the state and cache files of a persistent store from outside of it. */
#ifndef LBM_UMEPROFILE_H_INCLUDED
#define LBM_UMEPROFILE_H_INCLUDED

#include <sys/time.h>
#include "lbm/lbm.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef UMEStoreExpDLL
#define UMEStoreExpDLL
#endif

/** Limits and results. */
#define LBM_SRP_MAX_DIRECTORY_STRLEN 256
#define LBM_SRP_MAX_PATH_STRLEN 296
#define LBM_SRP_TOPICNAME_MAX_LEN 264
#define LBM_SRP_DISK_MAX_CKSUM_MSG_LEN 8192
#define LBM_SRP_LBMC_HDR_SZ 12
typedef enum {
    LBM_SRP_SCAN_STATE_DIR_ERROR = -1,
    LBM_SRP_FINDFFIRSTFILE_ERROR = -2,
    LBM_SRP_FINDNEXTFILE_ERROR = -3,
} lbm_srp_error_t;
typedef enum {
    LBM_SRP_REPO_VALID = 1,
    LBM_SRP_INVALID_STATE_FILE_NAME = -1,
    LBM_SRP_STATE_FILE_OPEN_FAILURE = -2,
    LBM_SRP_STATE_FILE_FSTAT_FAILURE = -3,
    LBM_SRP_STATE_FILE_TOO_SMALL = -4,
    LBM_SRP_STATE_FILE_GETSZ_FAILURE = -5,
    LBM_SRP_STATE_FILE_READ_FAILURE = -6,
    LBM_SRP_STATE_FILE_READ_TOO_SHORT = -7,
    LBM_SRP_STATE_FILE_BAD_MAGIC = -8,
    LBM_SRP_CACHE_FILE_OPEN_FAILURE = -9,
    LBM_SRP_CACHE_MSG_CREATE_EVENT_FAILED = -10,
    LBM_SRP_CACHE_MSG_READFILE_FAILED = -11,
    LBM_SRP_CACHE_GETOVERLAPPEDRESULT_FAILED = -12,
    LBM_SRP_CACHE_MSG_HEADER_UNDERSIZED = -13,
    LBM_SRP_CACHE_MSG_HEADER_READ_MISMATCHED = -14,
    LBM_SRP_CACHE_MSG_BAD_REC_HEADER_LENGTH = -15,
    LBM_SRP_CACHE_MSG_BAD_CHECKSUM = -16,
    LBM_SRP_CACHE_MSG_BAD_MRKR_HEADER_LENGTH = -17,
    LBM_SRP_CACHE_MSG_UNKNOWN_HEADER = -18,
    LBM_SRP_CACHE_MSG_MISSING_FIRST_REC = -19,
    LBM_SRP_CACHE_MSG_FIRST_REC_SQN_MISMATCH = -20,
    LBM_SRP_CACHE_MSG_MISSING_LAST_REC = -21,
    LBM_SRP_CACHE_MSG_LAST_REC_SQN_MISMATCH = -22,
    LBM_SRP_CACHE_MSG_SQN_OUT_OF_RANGE = -23,
    LBM_SRP_CACHE_MSG_READ_LENGTH_MISMATCH = -24,
    LBM_SRP_CACHE_DERIVED_LOW_SQN_MISMATCH = -25,
} lbm_srp_repo_status_t;

/** Objects. Their contents are private to the library. */
typedef struct lbm_srp_t lbm_srp_t;

/** Structures and unions defined below. */
typedef struct lbm_srp_repo_msg_t_stct lbm_srp_repo_msg_t;
typedef struct lbm_srp_repo_rcvr_t_stct lbm_srp_repo_rcvr_t;
typedef struct lbm_srp_repo_t_stct lbm_srp_repo_t;

/** A message of a repository. */
struct lbm_srp_repo_msg_t_stct {
    lbm_uint32_t sqn;
    lbm_uint8_t flags;
    size_t disk_len;
    lbm_uint64_t disk_offset;
    struct timeval tsp;
    char *buff;
    lbm_uint8_t lbmc_ver_type;
    lbm_uint8_t lbmc_next_hdr;
    lbm_uint16_t lbmc_msglen;
    lbm_uint32_t lbmc_tidx;
    lbm_uint32_t lbmc_sqn;
    lbm_uint8_t frag_next_hdr;
    lbm_uint8_t frag_hdr_len;
    lbm_uint16_t frag_flags;
    lbm_uint32_t frag_first_sqn;
    lbm_uint32_t frag_offset;
    lbm_uint32_t frag_len;
    lbm_uint32_t lbmc_msg_offset;
    char fragment;
};

/** A receiver registered with the store. */
struct lbm_srp_repo_rcvr_t_stct {
    lbm_uint32_t regid;
    lbm_uint32_t sqn;
    lbm_uint16_t store_id;
    lbm_uint16_t rcv_port;
    lbm_uint32_t rcv_addr;
    lbm_uint32_t transport_idx;
    lbm_uint32_t topic_idx;
    lbm_uint64_t sid;
    lbm_uint16_t flags;
    lbm_uint8_t otid[32];
    lbm_uint8_t ctxinst[8];
    lbm_uint32_t rcv_domain_id;
    lbm_ulong_t considered_activity_tmo;
    lbm_ulong_t considered_state_lifetime;
};

/** The repository of one source. */
struct lbm_srp_repo_t_stct {
    char state_filename[256 + 40];
    char cache_filename[256 + 40];
    lbm_uint32_t ume_stored_version;
    int cache_fd;
    lbm_srp_repo_status_t repo_status;
    int error_info;
    lbm_uint32_t num_msgs;
    lbm_uint32_t low_sqn;
    lbm_uint32_t high_sqn;
    lbm_uint64_t start_offset;
    lbm_uint64_t end_offset;
    void *msg_map;
    int num_msg_duplicates;
    char topicname[256 + 8];
    lbm_uint32_t transport_idx;
    lbm_uint32_t topic_idx;
    lbm_uint32_t src_addr;
    lbm_uint16_t src_port;
    lbm_uint16_t store_id;
    lbm_uint16_t num_rcvs;
    lbm_uint16_t num_stores;
    lbm_uint32_t num_grps;
    lbm_uint64_t sid;
    lbm_uint8_t otid[32];
    lbm_uint8_t ctxinst[8];
    lbm_uint8_t rpp_mode;
    lbm_uint8_t repo_type;
    lbm_ulong_t considered_src_activity_tmo;
    lbm_ulong_t considered_src_state_lifetime;
    size_t sz_threshold;
    size_t sz_limit;
    lbm_ulong_t disk_sz_limit;
    lbm_uint32_t write_delay;
    lbm_uint64_t src_flightsz_bytes;
    lbm_uint32_t src_domain_id;
    lbm_uint8_t allow_ack_on_reception;
    lbm_uint8_t use_proxy;
    lbm_srp_repo_rcvr_t **rcvs;
};

/** Opens the state and cache files of a store. */
UMEStoreExpDLL int lbm_srp_create(const char *state_pathname, const char *cache_pathname, const int check_checksum,
                                  const lbm_srp_t **srp_handle);

/** Closes them. */
UMEStoreExpDLL int lbm_srp_delete(const lbm_srp_t **srp_handle);

/** Reads the state of one repository. */
UMEStoreExpDLL int lbm_srp_get_repo_state(const lbm_srp_t **srp_handle, int repo_idx, lbm_srp_repo_t **srp_repo);

/** Reads one message of a repository. */
UMEStoreExpDLL int lbm_srp_get_repo_message(lbm_srp_repo_t *srp_repo, int sqn, lbm_srp_repo_msg_t *repo_msg);

/** Frees what lbm_srp_get_repo_state() filled in. */
UMEStoreExpDLL int lbm_srp_free_repo_state(lbm_srp_repo_t *srp_repo);

#ifdef __cplusplus
}
#endif

#endif
