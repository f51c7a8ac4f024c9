/* Sources and source topics. Everything is [loop] except where noted and the
 * sends, which go straight to the stream. */
#ifndef UM_CORE_SOURCE_H
#define UM_CORE_SOURCE_H

#include "core/um_context.h"
#include "core/um_event_queue.h"
#include "base/um_fork.h"
#include "core/um_src_msg_buffs.h"
#include "core/um_topic.h"

#define UM_SOURCE_MAGIC 0x554d5352u /* "UMSR" */

/* A source topic: made by every lbm_src_topic_alloc, freed with its source or its context. */
struct um_src_topic {
    struct lbm_topic_t_stct base;         /* first: an lbm_topic_t */
    const struct um_source_options *opts; /* shared, fixed: what changes while it lives is the stream's */
    struct um_list ctx_node;              /* ctx->src_topics */
    lbm_src_t *src;                       /* NULL: no source yet */
};

/* Hot failover: what numbers a source sends. */
enum um_source_hf { UM_SOURCE_NOT_HF, UM_SOURCE_HF, UM_SOURCE_HF_32, UM_SOURCE_HF_64 };

struct lbm_src_t_stct {
    _Atomic uint32_t magic; /* any thread reads, also while the object is deleted */
    unsigned fork_generation;
    _Atomic(enum um_source_hf) hf; /* UM_SOURCE_HF until the first numbered send */
    struct um_src_stream stream;
    lbm_context_t *ctx;
    struct um_src_topic *topic;
    struct um_list ctx_node; /* ctx->sources */
    struct um_tr_advert *advert;
    struct um_src_retention *retention; /* NULL: nothing is kept [loop]; which of both is fixed */
    struct um_src_msg_buffs msg_buffs;  /* any thread */
    lbm_src_cb_proc proc;               /* may be NULL */
    void *clientd;
    lbm_event_queue_t *evq; /* may be NULL */
    struct um_event_owner events;
};

int um_sources_init(lbm_context_t *ctx);     /* called by core/um_context.c */
void um_sources_destroy(lbm_context_t *ctx); /* frees topic objects never used; no sources are left by then */

/* -1 + UM_EINVAL when it is not a live source of this process. Any thread. */
int um_source_check(const lbm_src_t *src, const char *api);
/* The same without saying why not. Hot path. */
static inline bool um_source_is_usable(const lbm_src_t *src)
{
    return src != NULL && src->magic == UM_SOURCE_MAGIC && src->fork_generation == um_fork_generation();
}

/* Every message of an application goes through these, whose arguments are checked: what belongs to a source rather than
 * to its stream (late join, hot failover numbers, headers of requests) has its seat here. Results as those of the
 * stream; whoever calls tells um_source_waited() of a send that waited or failed. Hot path. */
static inline int um_source_send_plain(lbm_src_t *src, const void *data, size_t len, int flags, bool *waited)
{
    return um_src_stream_send_plain(&src->stream, data, len, flags, waited);
}
static inline int um_source_send(lbm_src_t *src, struct um_send *send)
{
    return um_src_stream_send(&src->stream, send);
}
static inline bool um_source_send_parts(lbm_src_t *src, const struct um_src_parts *parts, int flags)
{
    return um_src_stream_send_parts(&src->stream, parts, flags);
}
static inline bool um_source_send_one_element(lbm_src_t *src, const uint8_t chain[UM_CHAIN_SINGLE_U32],
                                              const void *data, size_t len, int flags)
{
    return um_src_stream_send_single(&src->stream, chain, data, len, flags);
}
static inline bool um_source_send_beside(lbm_src_t *src, const uint8_t chain[UM_CHAIN_SINGLE_U32], struct um_slice data,
                                         struct um_slice beside, int flags)
{
    return um_src_stream_send_beside(&src->stream, chain, data, beside, flags);
}
static inline int um_source_send_run(lbm_src_t *src, struct um_send_run *run)
{
    return um_src_stream_send_run(&src->stream, run);
}
/* Buffers to write messages into. NULL: the source has none. */
static inline const struct um_src_buffers *um_source_buffers(const lbm_src_t *src)
{
    return src->stream.buffers;
}
/* Counts a send that waited or was refused; returns `rc` and keeps the error. The source may be gone: another thread
 * has deleted it while the call waited. */
int um_source_waited(lbm_context_t *ctx, const lbm_src_t *src, int rc, int flags, const char *api);

/* What the lbm_src_* calls of the same names do; arguments are checked here. Any thread outside of callbacks. */
int um_source_topic_alloc(lbm_topic_t **topicp, lbm_context_t *ctx, const char *symbol,
                          const lbm_src_topic_attr_t *attr);
int um_source_create(lbm_src_t **srcp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_src_cb_proc proc, void *clientd,
                     lbm_event_queue_t *evq);
int um_source_create_hf(lbm_src_t **srcp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_src_cb_proc proc, void *clientd,
                        lbm_event_queue_t *evq);
/* A source that is prepared but for its magic: `src` is the first member of what is freed with it, and has ctx, topic,
 * proc, clientd and stream.smart. `prepare`, if any, is called on the caller's thread when the stream has its session
 * and nobody knows of the source. *srcp is set before any event. -1 + error: nothing is freed, the topic is usable. */
int um_source_start(lbm_src_t **srcp, lbm_src_t *src, lbm_event_queue_t *evq, int (*prepare)(lbm_src_t *src),
                    const char *api);
int um_source_delete(lbm_src_t *src, lbm_event_queue_cancel_cb_info_t *cbinfo, const char *api);
/* Run fn on the loop on the options as they are in force; afterwards the live ones act. Strings and lists are the
 * source's and must not change. Any thread. */
int um_source_with_options(lbm_src_t *src, int (*fn)(struct um_source_options *opts, void *arg), void *arg);
int um_source_wait_receivers(lbm_src_t *src, int receivers, int timeout_ms); /* any thread outside of callbacks */

#endif
