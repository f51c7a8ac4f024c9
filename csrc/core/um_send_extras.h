/* Sends with message properties, channels and other things that travel in a chain
 * of application headers. The caller's thread. */
#ifndef UM_CORE_SEND_EXTRAS_H
#define UM_CORE_SEND_EXTRAS_H

#include "core/um_apphdr.h"
#include "core/um_properties.h"
#include "core/um_source.h"

/* Flags of lbm_src_send_ex_info_t. */
#define UM_SEND_EXTRAS                                                                                                 \
    (LBM_SRC_SEND_EX_FLAG_PROPERTIES | LBM_SRC_SEND_EX_FLAG_CHANNEL | LBM_SRC_SEND_EX_FLAG_APPHDR_CHAIN)

#define UM_SRC_CHANNEL_MAGIC 0x554d4348u /* "UMCH" */

/* Fixed; for any number of messages, of any thread. */
struct lbm_src_channel_info_t_stct {
    uint32_t magic;
    lbm_uint32_t number;
    uint8_t header[UM_CHAIN_SINGLE_U32]; /* of a message that has nothing else */
};

int um_src_channel_create(lbm_src_channel_info_t **chnp, const lbm_src_t *src, lbm_uint32_t number, const char *api);
int um_src_channel_delete(lbm_src_channel_info_t *channel, const char *api);
int um_send_channel_check(const lbm_src_channel_info_t *channel, const char *api); /* 0, or -1 + UM_EINVAL */

int um_send_properties_check(const lbm_msg_properties_t *properties, const char *api); /* 0, or -1 + UM_EINVAL */
/* As um_source_send(), with what `info` has beside the data; send->len is that of the data. Elements of send->chain, a
 * number of hot failover, go with them. */
int um_source_send_extras(lbm_src_t *src, struct um_send *send, const lbm_src_send_ex_info_t *info, const char *api);
/* The short way of a message with a channel, or with properties that have travelled before and have not changed, and
 * nothing else. False: nothing has happened; it takes the long way, which also knows what is wrong with it. */
static inline bool um_source_send_channel(lbm_src_t *src, struct um_slice data, int flags,
                                          const lbm_src_channel_info_t *channel)
{
    return channel != NULL && channel->magic == UM_SRC_CHANNEL_MAGIC &&
           um_source_send_one_element(src, channel->header, data.ptr, data.len, flags);
}
static inline bool um_source_send_properties(lbm_src_t *src, struct um_slice data, int flags,
                                             const lbm_msg_properties_t *p)
{
    uint8_t header[UM_CHAIN_SINGLE_U32];
    if (p == NULL || p->magic != UM_PROPERTIES_MAGIC || p->state != UM_PROPERTIES_BUILT || p->blob.len == 0) {
        return false;
    }
    um_chain_put_single_u32(header, UM_CHAIN_PROPERTIES_LEN, (uint32_t)p->blob.len);
    return um_source_send_beside(src, header, data, p->blob, flags);
}
static inline bool um_source_send_single(lbm_src_t *src, struct um_slice data, int flags,
                                         const lbm_src_send_ex_info_t *info)
{
    if (info->flags == LBM_SRC_SEND_EX_FLAG_CHANNEL) {
        return um_source_send_channel(src, data, flags, info->channel_info);
    }
    return info->flags == LBM_SRC_SEND_EX_FLAG_PROPERTIES &&
           um_source_send_properties(src, data, flags, info->properties);
}

#endif
