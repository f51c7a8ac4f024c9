/* Message buffers of sources. See um_src_msg_buffs.h. */
#include "core/um_src_msg_buffs.h"

#include <stdalign.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "core/um_source.h"

struct um_src_msg_buff {
    struct um_src_msg_buff *older;
    size_t len;
    alignas(max_align_t) char bytes[];
};

static int check_source(const lbm_src_t *src, const char *api)
{
    const char *what = !um_src_transports_msg_buffs(src->topic->opts->transport) ? "only LBT-RM has message buffers"
                       : src->retention != NULL                                  ? "not with late join"
                       : src->hf != UM_SOURCE_NOT_HF                             ? "not with hot failover"
                                                                                 : NULL;
    return what == NULL
               ? 0
               : um_error(UM_EOPNOTSUPP, "CoreApi-20233-1", "%s: topic [%s]: %s", api, src->topic->base.name, what);
}

int um_src_msg_buff_alloc(lbm_src_t *src, void **buffer, size_t len, void **handle)
{
    static const char api[] = "lbm_src_alloc_msg_buff";
    if (check_source(src, api) != 0) {
        return -1;
    }
    size_t max = um_src_stream_whole_max(&src->stream);
    if (len > max) {
        return um_error(UM_EINVAL, "CoreApi-20233-2", "%s: topic [%s]: length %zu: a datagram has room for %zu", api,
                        src->topic->base.name, len, max);
    }
    struct um_src_msg_buff *buff = um_malloc(sizeof *buff + len);
    if (buff == NULL) {
        return um_error_nomem("message buffer", sizeof *buff + len);
    }
    buff->len = len;
    um_lock_take(&src->msg_buffs.lock);
    buff->older = src->msg_buffs.newest;
    src->msg_buffs.newest = buff;
    um_lock_give(&src->msg_buffs.lock);
    *buffer = buff->bytes;
    *handle = buff;
    return 0;
}

/* Handles are looked for: nothing is read through one that was sent before. NULL: it is none of the source's. */
static struct um_src_msg_buff *take(lbm_src_t *src, const void *handle, size_t len)
{
    um_lock_take(&src->msg_buffs.lock);
    struct um_src_msg_buff **at = &src->msg_buffs.newest, *buff;
    while (*at != NULL && *at != handle) {
        at = &(*at)->older;
    }
    buff = *at;
    if (buff != NULL && len <= buff->len) {
        *at = buff->older;
    } else {
        buff = NULL;
    }
    um_lock_give(&src->msg_buffs.lock);
    return buff;
}

static void put_back(lbm_src_t *src, struct um_src_msg_buff *buff)
{
    um_lock_take(&src->msg_buffs.lock);
    buff->older = src->msg_buffs.newest;
    src->msg_buffs.newest = buff;
    um_lock_give(&src->msg_buffs.lock);
}

/* A send that waits may find the source deleted; one that may not wait does not. */
int um_src_msg_buff_send(lbm_src_t *src, const void *handle, size_t len, int flags, bool *waited)
{
    static const char api[] = "lbm_src_send";
    *waited = false;
    if (check_source(src, api) != 0) {
        return -1;
    }
    if (flags & LBM_MSG_COMPLETE_BATCH) {
        return um_error(UM_EINVAL, "CoreApi-20233-3",
                        "%s: topic [%s]: LBM_MSG_BUFF_ALLOC: not together with LBM_MSG_START_BATCH or "
                        "LBM_MSG_END_BATCH",
                        api, src->topic->base.name);
    }
    struct um_src_msg_buff *buff = take(src, handle, len);
    if (buff == NULL) {
        return um_error(UM_EINVAL, "CoreApi-20233-4",
                        "%s: topic [%s]: LBM_MSG_BUFF_ALLOC: msg must be a handle of lbm_src_alloc_msg_buff() that was "
                        "not sent yet, and length %zu at most what was asked for",
                        api, src->topic->base.name, len);
    }
    int rc = um_source_send_plain(src, buff->bytes, len, flags & ~LBM_MSG_BUFF_ALLOC, waited);
    if (rc != 0 && um_errnum() == UM_EWOULDBLOCK) {
        put_back(src, buff);
    } else {
        um_free(buff);
    }
    return rc;
}

void um_src_msg_buffs_free(struct um_src_msg_buffs *buffs)
{
    while (buffs->newest != NULL) {
        struct um_src_msg_buff *buff = buffs->newest;
        buffs->newest = buff->older;
        um_free(buff);
    }
}
