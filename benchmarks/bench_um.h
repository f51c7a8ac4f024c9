/* The libum side of the benchmarks: contexts, sources and receivers for a run, every
 * failure an end with its text. Each program sets its options between `attr` and
 * the object, which deletes the attributes. */
#ifndef BENCH_UM_H
#define BENCH_UM_H

#include <lbm/lbm.h>
#include <lbm/um.h>

#include "bench_common.h"

static inline void um_check(int rc, const char *what)
{
    if (rc != 0) {
        bench_die("%s: %s", what, lbm_errmsg());
    }
}

/* On one interface. */
static inline lbm_context_attr_t *um_context_attr(const char *interface)
{
    lbm_context_attr_t *attr;
    um_check(lbm_context_attr_create(&attr), "lbm_context_attr_create");
    um_check(lbm_context_attr_str_setopt(attr, "default_interface", interface), "default_interface");
    um_check(lbm_context_attr_str_setopt(attr, "resolver_multicast_interface", interface),
             "resolver_multicast_interface");
    return attr;
}

static inline lbm_context_t *um_context_of(lbm_context_attr_t *attr)
{
    lbm_context_t *ctx;
    um_check(lbm_context_create(&ctx, attr, NULL, NULL), "lbm_context_create");
    lbm_context_attr_delete(attr);
    return ctx;
}

static inline lbm_src_topic_attr_t *um_source_attr(const char *transport)
{
    lbm_src_topic_attr_t *attr;
    um_check(lbm_src_topic_attr_create(&attr), "lbm_src_topic_attr_create");
    um_check(lbm_src_topic_attr_str_setopt(attr, "transport", transport), "transport");
    return attr;
}

static inline lbm_src_t *um_source_of(lbm_context_t *ctx, const char *name, lbm_src_topic_attr_t *attr)
{
    lbm_topic_t *topic;
    lbm_src_t *src;
    um_check(lbm_src_topic_alloc(&topic, ctx, name, attr), "lbm_src_topic_alloc");
    um_check(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL), "lbm_src_create");
    lbm_src_topic_attr_delete(attr);
    return src;
}

static inline lbm_rcv_t *um_receiver(lbm_context_t *ctx, const char *name, lbm_rcv_cb_proc proc, void *clientd)
{
    lbm_topic_t *topic;
    lbm_rcv_t *rcv;
    um_check(lbm_rcv_topic_lookup(&topic, ctx, name, NULL), "lbm_rcv_topic_lookup");
    um_check(lbm_rcv_create(&rcv, ctx, topic, proc, clientd, NULL), "lbm_rcv_create");
    return rcv;
}

/* NULL: there is none. */
static inline void um_end(lbm_rcv_t *rcv, lbm_src_t *src, lbm_context_t *ctx)
{
    if (rcv != NULL) {
        lbm_rcv_delete(rcv);
    }
    if (src != NULL) {
        lbm_src_delete(src);
    }
    lbm_context_delete(ctx);
}

#endif
