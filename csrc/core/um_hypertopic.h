/* HyperTopic receivers, behind lbm_hypertopic_rcv_*: callbacks on patterns of
 * hierarchical topics below one prefix. Each pattern is a wildcard receiver
 * (um_wildcard.c) with a pattern of its own making. Application threads. */
#ifndef UM_CORE_HYPERTOPIC_H
#define UM_CORE_HYPERTOPIC_H

#include <stddef.h>

#include <lbm/lbmht.h>

/* The regular expression for a pattern below a prefix, in um_malloc() memory. NULL + error. */
char *um_hypertopic_expression(const char *prefix, const char *pattern, const char *api);

int um_hypertopic_init(lbm_hypertopic_rcv_t **out, lbm_context_t *ctx, const char *prefix, lbm_event_queue_t *evq);
int um_hypertopic_add(lbm_hypertopic_rcv_t *h, const char *pattern, lbm_hypertopic_rcv_cb_proc proc, void *clientd);
int um_hypertopic_delete(lbm_hypertopic_rcv_t *h, const char *pattern, lbm_hypertopic_rcv_cb_proc proc, void *clientd,
                         const lbm_delete_cb_info_t *cbinfo);
int um_hypertopic_destroy(lbm_hypertopic_rcv_t *h);

#endif
