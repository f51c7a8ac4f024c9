/** libum public header lbmht.h */
#ifndef LBM_LBMHT_H_INCLUDED
#define LBM_LBMHT_H_INCLUDED

#include "lbm/lbm.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LBM_HT_BASE_MATCH_LEVEL 0
#define LBM_HT_TOKEN_GLOBNAME 0
#define LBM_HT_TOKEN_GLOBPATH 1
#define LBM_HT_TOKEN_NAME 2
#define LBM_HT_INIT_BRANCH_SZ 16
#define LBM_HT_CBVEC_SZ 16
#define LBM_HT_CBVEC_FLAG_ACTIVE 1
#define LBM_HT_CBVEC_FLAG_DELETED 2

typedef struct lbm_hypertopic_rcv_stct lbm_hypertopic_rcv_t;

typedef struct lbm_delete_cb_info_t_stct lbm_delete_cb_info_t;

typedef void (*lbm_delete_cb_proc)(int dispatch_thrd, void *clientd);

struct lbm_delete_cb_info_t_stct {
    lbm_delete_cb_proc cbproc;
    void *clientd;
};

typedef int (*lbm_hypertopic_rcv_cb_proc)(lbm_hypertopic_rcv_t *hrcv, lbm_msg_t *msg, void *clientd);

LBMExpDLL int lbm_hypertopic_rcv_init(lbm_hypertopic_rcv_t **hrcvp, lbm_context_t *ctx, const char *prefix,
                                      lbm_event_queue_t *evq);
LBMExpDLL int lbm_hypertopic_rcv_add(lbm_hypertopic_rcv_t *hrcv, const char *pattern, lbm_hypertopic_rcv_cb_proc proc,
                                     void *clientd);
LBMExpDLL int lbm_hypertopic_rcv_delete(lbm_hypertopic_rcv_t *hrcv, const char *pattern,
                                        lbm_hypertopic_rcv_cb_proc proc, void *clientd, lbm_delete_cb_info_t *cbinfo);
LBMExpDLL int lbm_hypertopic_rcv_destroy(lbm_hypertopic_rcv_t *hrcv);

#ifdef __cplusplus
}
#endif

#endif
