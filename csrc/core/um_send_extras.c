/* Sends with properties, channels and application headers. See um_send_extras.h. */
#include "core/um_send_extras.h"

#include <string.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "wire/um_lbmc_chain.h"

#define PIECES 8 /* of a message that need no memory */

int um_send_properties_check(const lbm_msg_properties_t *properties, const char *api)
{
    return properties == NULL ? um_error(UM_EINVAL, "CoreApi-6020-8", "%s: exinfo properties must be valid", api)
                              : um_properties_check(properties, api);
}

int um_apphdr_check(const lbm_apphdr_chain_t *chain, const char *api)
{
    if (chain == NULL || chain->magic != UM_APPHDR_MAGIC) {
        return um_error(UM_EINVAL, "CoreApi-6021-1", "%s: chain must be valid", api);
    }
    return 0;
}

int um_send_channel_check(const lbm_src_channel_info_t *channel, const char *api)
{
    return channel != NULL && channel->magic == UM_SRC_CHANNEL_MAGIC
               ? 0
               : um_error(UM_EINVAL, "CoreApi-20232-4", "%s: channel_info %p: must be a channel that is not deleted",
                          api, (const void *)channel);
}

int um_src_channel_create(lbm_src_channel_info_t **chnp, const lbm_src_t *src, lbm_uint32_t number, const char *api)
{
    if (um_source_check(src, api) != 0) {
        return -1;
    }
    if (chnp == NULL) {
        return um_error(UM_EINVAL, "CoreApi-20232-5", "%s: chnp: must not be NULL", api);
    }
    if (um_src_stream_plain_only(&src->stream)) {
        return um_error(UM_EOPNOTSUPP, "CoreApi-20232-6", "%s: topic [%s]: LBT-SMX carries no channels", api,
                        src->topic->base.name);
    }
    lbm_src_channel_info_t *channel = um_malloc(sizeof *channel);
    if (channel == NULL) {
        return um_error_nomem("channel", sizeof *channel);
    }
    *channel = (lbm_src_channel_info_t){.magic = UM_SRC_CHANNEL_MAGIC, .number = number};
    um_chain_put_single_u32(channel->header, UM_CHAIN_CHANNEL, number);
    *chnp = channel;
    return 0;
}

int um_src_channel_delete(lbm_src_channel_info_t *channel, const char *api)
{
    if (um_send_channel_check(channel, api) != 0) {
        return -1;
    }
    channel->magic = 0;
    um_free(channel);
    return 0;
}

/* False: no room. */
static bool add_elements(struct um_chain_writer *chain, struct um_slice elements)
{
    struct um_chain_iter iter;
    struct um_chain_elem elem;
    um_chain_begin(&iter, elements);
    while (um_chain_next(&iter, &elem)) {
        uint8_t *data = um_chain_add(chain, elem.type, elem.res, elem.data.len);
        if (data == NULL) {
            return false;
        }
        memcpy(data, elem.data.ptr, elem.data.len);
    }
    return true;
}

/* The properties are one more piece, behind the data. */
static int send_pieces(lbm_src_t *src, struct um_send *send, struct um_slice piece)
{
    struct iovec few[PIECES + 1], *iov = few;
    if (send->iovcnt > PIECES) {
        iov = um_malloc(((size_t)send->iovcnt + 1) * sizeof *iov);
        if (iov == NULL) {
            return um_error_nomem("send: pieces", ((size_t)send->iovcnt + 1) * sizeof *iov);
        }
    }
    memcpy(iov, send->iov, (size_t)send->iovcnt * sizeof *iov);
    iov[send->iovcnt] = (struct iovec){(void *)piece.ptr, piece.len};
    send->iov = iov;
    send->iovcnt++;
    send->beside_len = send->len > 0 ? piece.len : 0;
    send->len += piece.len;
    int rc = um_source_send(src, send);
    if (iov != few) {
        um_free(iov);
    }
    return rc;
}

static int send_with_piece(lbm_src_t *src, struct um_send *send, struct um_slice piece)
{
    if (send->iovcnt != 1) {
        return send_pieces(src, send, piece);
    }
    const struct iovec two[2] = {send->iov[0], {(void *)piece.ptr, piece.len}};
    send->iov = two;
    send->iovcnt = 2;
    send->beside_len = send->len > 0 ? piece.len : 0;
    send->len += piece.len;
    return um_source_send(src, send);
}

/* Several things in one chain. */
static int send_several(lbm_src_t *src, struct um_send *send, const lbm_src_send_ex_info_t *info, const char *api)
{
    struct um_chain_writer chain;
    struct um_slice blob = {0};
    um_chain_start(&chain);
    if ((info->flags & LBM_SRC_SEND_EX_FLAG_PROPERTIES) != 0) {
        if (um_properties_blob(info->properties, &blob, api) != 0) {
            return -1;
        }
        um_chain_add_u32(&chain, UM_CHAIN_PROPERTIES_LEN, 0, (uint32_t)blob.len);
    }
    if ((info->flags & LBM_SRC_SEND_EX_FLAG_CHANNEL) != 0) {
        um_chain_add_u32(&chain, UM_CHAIN_CHANNEL, 0, info->channel_info->number);
    }
    struct um_slice number = {0}, headers = {0};
    if (send->chain_len > 0) {
        number = (struct um_slice){send->chain + UM_CHAIN_HDR_LEN - 1, send->chain_len - UM_CHAIN_HDR_LEN + 1};
    }
    if ((info->flags & LBM_SRC_SEND_EX_FLAG_APPHDR_CHAIN) != 0) {
        headers = um_apphdr_elements(info->apphdr_chain);
    }
    if (!add_elements(&chain, number) || !add_elements(&chain, headers)) {
        return um_error(UM_EINVAL, "CoreApi-6020-21",
                        "%s: the headers of a message, those of the library among them, have at most %u bytes", api,
                        UM_CHAIN_MAX - UM_CHAIN_HDR_LEN);
    }
    send->chain = chain.bytes;
    send->chain_len = chain.len;
    return blob.len > 0 ? send_with_piece(src, send, blob) : um_source_send(src, send);
}

/* One thing alone has its chain ready, or nearly so. */
int um_source_send_extras(lbm_src_t *src, struct um_send *send, const lbm_src_send_ex_info_t *info, const char *api)
{
    uint8_t header[UM_CHAIN_SINGLE_U32];
    struct um_slice blob;
    if (send->chain_len > 0) {
        return send_several(src, send, info, api);
    }
    switch (info->flags & UM_SEND_EXTRAS) {
    case LBM_SRC_SEND_EX_FLAG_CHANNEL:
        send->chain = info->channel_info->header;
        send->chain_len = sizeof info->channel_info->header;
        return um_source_send(src, send);
    case LBM_SRC_SEND_EX_FLAG_PROPERTIES:
        if (um_properties_blob(info->properties, &blob, api) != 0) {
            return -1;
        }
        um_chain_put_single_u32(header, UM_CHAIN_PROPERTIES_LEN, (uint32_t)blob.len);
        send->chain = header;
        send->chain_len = sizeof header;
        return send_with_piece(src, send, blob);
    case LBM_SRC_SEND_EX_FLAG_APPHDR_CHAIN:
        send->chain = info->apphdr_chain->writer.bytes;
        send->chain_len = info->apphdr_chain->writer.len;
        return um_source_send(src, send);
    default:
        return send_several(src, send, info, api);
    }
}
