/* Structures of um.h that grow at their end: the caller says how large its own is. Called by the functions of um.h that
 * fill one in; any thread. */
#ifndef UM_API_SIZED_H
#define UM_API_SIZED_H

#include <stddef.h>
#include <string.h>

/* What the caller knows of `from`; what only the caller knows is 0. */
static inline void um_sized_copy(void *out, size_t size, const void *from, size_t known)
{
    memcpy(out, from, size < known ? size : known);
    if (size > known) {
        memset((char *)out + known, 0, size - known);
    }
}

#endif
