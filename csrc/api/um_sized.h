/* Structures of um.h that grow at their end: the caller says how large its own is. Called by the functions of um.h that
 * fill one in; any thread. */
#ifndef UM_API_SIZED_H
#define UM_API_SIZED_H

#include <stddef.h>
#include <string.h>

#include "base/um_error.h"

/* 0, or -1 + UM_EINVAL: there is nothing to fill in. */
static inline int um_sized_check(const void *stats, size_t size, const char *api)
{
    return stats != NULL && size > 0
               ? 0
               : um_error(UM_EINVAL, "CoreApi-9014-3", "%s: stats: must not be NULL, nor its size 0", api);
}

/* What the caller knows of `from`; what only the caller knows is 0. */
static inline void um_sized_copy(void *out, size_t size, const void *from, size_t known)
{
    memcpy(out, from, size < known ? size : known);
    if (size > known) {
        memset((char *)out + known, 0, size - known);
    }
}

#endif
