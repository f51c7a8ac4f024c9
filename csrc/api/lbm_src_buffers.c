/* lbm_src_buff_*: buffers of the session of a source (LBT-SMX), handed to
 * the application to write into. Callers take turns per session; no protocol
 * logic. */
#include <lbm/lbm.h>

#include "base/um_error.h"
#include "core/um_source.h"

#define likely(x) __builtin_expect(!!(x), 1)

static __attribute__((noinline)) int refuse(const lbm_src_t *src, const char *api, const char *id)
{
    if (um_source_check(src, api) != 0) {
        return -1;
    }
    return um_error(UM_EOPNOTSUPP, id,
                    "%s: topic [%s]: only LBT-SMX has such buffers; create the source with transport lbtsmx", api,
                    src->topic->base.name);
}

static inline bool usable(const lbm_src_t *src)
{
    return likely(src != NULL && src->magic == UM_SOURCE_MAGIC && src->fork_generation == um_fork_generation() &&
                  um_source_buffers(src) != NULL);
}

int lbm_src_buff_acquire(lbm_src_t *const src, void **const bufp, const size_t len, const int flags)
{
    if (!usable(src)) {
        return refuse(src, "lbm_src_buff_acquire", "CoreApi-6976-73");
    }
    if (bufp == NULL) {
        return um_error(UM_EINVAL, "CoreApi-6976-74", "lbm_src_buff_acquire: bufp must be valid");
    }
    return um_source_buffers(src)->acquire(&src->stream, bufp, len, flags);
}

int lbm_src_buffs_complete(lbm_src_t *const src)
{
    if (!usable(src)) {
        return refuse(src, "lbm_src_buffs_complete", "CoreApi-6976-76");
    }
    um_source_buffers(src)->complete(&src->stream);
    return 0;
}

int lbm_src_buffs_complete_and_acquire(lbm_src_t *const src, void **const bufp, const size_t len, const int flags)
{
    if (!usable(src)) {
        return refuse(src, "lbm_src_buffs_complete_and_acquire", "CoreApi-6976-80");
    }
    if (bufp == NULL) {
        return um_error(UM_EINVAL, "CoreApi-6976-81", "lbm_src_buffs_complete_and_acquire: bufp must be valid");
    }
    return um_source_buffers(src)->complete_and_acquire(&src->stream, bufp, len, flags);
}

int lbm_src_buffs_cancel(lbm_src_t *const src)
{
    if (!usable(src)) {
        return refuse(src, "lbm_src_buffs_cancel", "CoreApi-6976-83");
    }
    um_source_buffers(src)->cancel(&src->stream);
    return 0;
}
