/* Sources and source topics. Everything is [loop] except where noted and the
 * sends, which go straight to the stream. */
#ifndef UM_CORE_SOURCE_H
#define UM_CORE_SOURCE_H

#include "core/um_context.h"
#include "core/um_event_queue.h"
#include "base/um_fork.h"
#include "core/um_topic.h"

#define UM_SOURCE_MAGIC 0x554d5352u /* "UMSR" */

/* A source topic: made by every lbm_src_topic_alloc, freed with its source or its context. */
struct um_src_topic {
    struct lbm_topic_t_stct base;  /* first: an lbm_topic_t */
    struct um_source_options opts; /* live options change on the loop */
    struct um_list ctx_node;       /* ctx->src_topics */
    lbm_src_t *src;                /* NULL: no source yet */
};

struct lbm_src_t_stct {
    uint32_t magic;
    unsigned fork_generation;
    struct um_src_stream stream;
    lbm_context_t *ctx;
    struct um_src_topic *topic;
    struct um_list ctx_node; /* ctx->sources */
    struct um_tr_advert *advert;
    lbm_src_cb_proc proc; /* may be NULL */
    void *clientd;
    lbm_event_queue_t *evq; /* may be NULL */
    struct um_event_owner events;
};

int um_sources_init(lbm_context_t *ctx);     /* called by core/context.c */
void um_sources_destroy(lbm_context_t *ctx); /* frees topic objects never used; no sources are left by then */

/* -1 + UM_EINVAL when it is not a live source of this process. Any thread. */
int um_source_check(const lbm_src_t *src, const char *api);

/* After a send was refused with UM_EWOULDBLOCK: counts it. Only in a callback of the context is a send refused that may
 * block; this is logged once for each context. Keeps the error. `src` is not looked at otherwise: it may be gone. */
void um_source_refused(lbm_context_t *ctx, const lbm_src_t *src, int flags, const char *api);
/* What the lbm_src_* calls of the same names do; arguments are checked here. Any thread outside of callbacks. */
int um_source_topic_alloc(lbm_topic_t **topicp, lbm_context_t *ctx, const char *symbol,
                          const lbm_src_topic_attr_t *attr);
int um_source_create(lbm_src_t **srcp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_src_cb_proc proc, void *clientd,
                     lbm_event_queue_t *evq);
int um_source_delete(lbm_src_t *src, lbm_event_queue_cancel_cb_info_t *cbinfo, const char *api);
/* Run fn on the source's options on the loop; afterwards the live ones act. Any thread. */
int um_source_with_options(lbm_src_t *src, int (*fn)(struct um_source_options *opts, void *arg), void *arg);
int um_source_wait_receivers(lbm_src_t *src, int receivers, int timeout_ms); /* any thread outside of callbacks */

#endif
