/* Smart sources: a source on a session whose memory is all there before the first
 * message, and the buffers that the application writes into. Creation and deletion
 * are control calls; buffers and sends belong to one thread at a time. */
#ifndef UM_CORE_SMART_SOURCE_H
#define UM_CORE_SMART_SOURCE_H

#include "core/um_source.h"
#include "wire/um_lbmc_chain.h"

/* Bits of the environment variable LBM_SMART_SOURCE_CHECK. The other bits ask for what is always checked. */
enum um_smart_check {
    UM_SMART_CHECK_THREAD = 2,   /* sends of a session come from one thread */
    UM_SMART_CHECK_POINTER = 4,  /* the buffer is one of the source's */
    UM_SMART_CHECK_STRUCTURE = 8 /* it is handed out, and nothing was written in front of it */
};

struct lbm_ssrc_t_stct {
    lbm_src_t src; /* first; its stream is smart */
    lbm_ssrc_cb_proc proc;
    void *clientd;
    lbm_mem_mgt_callbacks_t memory; /* malloc_cb_func NULL: the library's own */
    unsigned checks;                /* enum um_smart_check */
    size_t space, stride;           /* bytes of payload; from one buffer to the next */
    size_t lead;                    /* from the beginning of a buffer to its payload */
    uint32_t count, unused;         /* buffers; those not handed out */
    void *allocated;                /* what is to be given back */
    uint8_t *buffers;
    uint32_t *stack; /* the numbers of those not handed out */
};

static inline bool um_smart_source_usable(const lbm_ssrc_t *ssrc)
{
    return ssrc != NULL && ssrc->src.magic == UM_SOURCE_MAGIC && ssrc->src.fork_generation == um_fork_generation() &&
           ssrc->src.stream.smart;
}
int um_smart_source_check(const lbm_ssrc_t *ssrc, const char *api); /* -1 + UM_EINVAL */
/* What the environment asks to be checked of a buffer and its sender. 0, or -1 + UM_EINVAL. */
int um_smart_source_inspect(lbm_ssrc_t *ssrc, const char *buffer, const char *api);

int um_smart_source_create(lbm_ssrc_t **ssrcp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_ssrc_cb_proc proc,
                           void *clientd, lbm_event_queue_t *evq);
int um_smart_source_delete(lbm_ssrc_t *ssrc);
int um_smart_source_get(lbm_ssrc_t *ssrc, char **buffer); /* -1 + UM_ENOMEM: all are handed out */
int um_smart_source_put(lbm_ssrc_t *ssrc, const char *buffer);
/* The headers that `info` asks for, or that the buffer has from a send before: the chain, and the properties that go
 * behind the payload. Empty: none. 0, or -1 + UM_EINVAL: the buffer is as it was. */
int um_smart_source_headers(lbm_ssrc_t *ssrc, const char *buffer, const lbm_ssrc_send_ex_info_t *info, const char *api,
                            struct um_chain_writer *chain, struct um_slice *properties);
/* Writes what was rounded at creation. */
void um_smart_source_in_force(const lbm_ssrc_t *ssrc, struct um_source_options *out);

#endif
