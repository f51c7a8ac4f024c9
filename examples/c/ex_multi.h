/* Many numbered sources in one context, for lbmmsrc and lbmstrm: creation with
 * progress lines, statistics timer, deletion. Called by main(). */
#ifndef EX_MULTI_H
#define EX_MULTI_H

#include <lbm/lbm.h>

#define EX_MAX_THREADS 16

struct ex_multi {
    const char *root;
    unsigned long initial, count; /* topics are root.initial .. root.(initial + count - 1) */
    unsigned long statistics;     /* seconds; 0: never */
    int verbose;                  /* one line for each source */
    int failover;                 /* hot-failover sources */
    lbm_src_cb_proc on_event;
    lbm_context_t *ctx;
    lbm_src_t **sources;
    int timer;
};

void ex_multi_create(struct ex_multi *multi, const lbm_context_attr_t *cattr, const lbm_src_topic_attr_t *sattr);
void ex_multi_delete_sources(struct ex_multi *multi);

#endif
