/**
 * lbmht.h - HyperTopic receivers: callbacks on hierarchical patterns below one prefix. Deprecated; wildcard receivers
 * do the same.
 */
#ifndef LBM_LBMHT_H_INCLUDED
#define LBM_LBMHT_H_INCLUDED

#include "lbm/lbm.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Internals of the matching tree, kept for source compatibility. */
#define LBM_HT_BASE_MATCH_LEVEL 0
#define LBM_HT_TOKEN_GLOBNAME 0
#define LBM_HT_TOKEN_GLOBPATH 1
#define LBM_HT_TOKEN_NAME 2
#define LBM_HT_INIT_BRANCH_SZ 16
#define LBM_HT_CBVEC_SZ 16
#define LBM_HT_CBVEC_FLAG_ACTIVE 1
#define LBM_HT_CBVEC_FLAG_DELETED 2

/** Objects. Their contents are private to the library. */
typedef struct lbm_hypertopic_rcv_stct lbm_hypertopic_rcv_t;

/** Structures and unions defined below. */
typedef struct lbm_delete_cb_info_t_stct lbm_delete_cb_info_t;

/** A pattern is removed; dispatch_thrd as in lbm_event_queue_cancel_cb_proc. */
typedef void (*lbm_delete_cb_proc)(int dispatch_thrd, void *clientd);

struct lbm_delete_cb_info_t_stct {
    lbm_delete_cb_proc cbproc;
    void *clientd; /**< handed to the callback */
};

/** Message on a topic that matches a hierarchical pattern. Returns 0. */
typedef int (*lbm_hypertopic_rcv_cb_proc)(lbm_hypertopic_rcv_t *hrcv, lbm_msg_t *msg, void *clientd);

/** Starts the module. Context thread: no. */
LBMExpDLL int lbm_hypertopic_rcv_init(lbm_hypertopic_rcv_t **hrcvp, lbm_context_t *ctx, const char *prefix,
                                      lbm_event_queue_t *evq);

/** Adds a pattern and its callback. Context thread: yes. */
LBMExpDLL int lbm_hypertopic_rcv_add(lbm_hypertopic_rcv_t *hrcv, const char *pattern, lbm_hypertopic_rcv_cb_proc proc,
                                     void *clientd);

/** Removes a pattern. Context thread: no. */
LBMExpDLL int lbm_hypertopic_rcv_delete(lbm_hypertopic_rcv_t *hrcv, const char *pattern,
                                        lbm_hypertopic_rcv_cb_proc proc, void *clientd, lbm_delete_cb_info_t *cbinfo);

/** Ends it; waits for its thread. Context thread: no. */
LBMExpDLL int lbm_hypertopic_rcv_destroy(lbm_hypertopic_rcv_t *hrcv);

#ifdef __cplusplus
}
#endif

#endif
