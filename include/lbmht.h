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

/**
 * Makes a receiver of topics below a prefix, which is text in front of each pattern; NULL or "" for none. Callbacks run
 * on the context's thread, or on those that dispatch evq unless that is NULL. Context thread: no.
 */
LBMExpDLL int lbm_hypertopic_rcv_init(lbm_hypertopic_rcv_t **hrcvp, lbm_context_t *ctx, const char *prefix,
                                      lbm_event_queue_t *evq);

/**
 * Adds a pattern and its callback. Levels are separated by '/'; a level '*' stands for any one, a last level '>' for
 * the rest of the topic. A message on a topic that several patterns match goes to the callback of each. Context thread:
 * no.
 */
LBMExpDLL int lbm_hypertopic_rcv_add(lbm_hypertopic_rcv_t *hrcv, const char *pattern, lbm_hypertopic_rcv_cb_proc proc,
                                     void *clientd);

/**
 * Removes a pattern that was added with the same callback and clientd. cbinfo: called when no callback of it is queued
 * or running any more; NULL for none. Context thread: no.
 */
LBMExpDLL int lbm_hypertopic_rcv_delete(lbm_hypertopic_rcv_t *hrcv, const char *pattern,
                                        lbm_hypertopic_rcv_cb_proc proc, void *clientd, lbm_delete_cb_info_t *cbinfo);

/** Ends it, with the patterns that are left. Context thread: no. */
LBMExpDLL int lbm_hypertopic_rcv_destroy(lbm_hypertopic_rcv_t *hrcv);

#ifdef __cplusplus
}
#endif

#endif
