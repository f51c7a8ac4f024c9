/* The allocator of the library: the C library's, behind a hook with which tests
 * make chosen allocations fail. Owns the hook. Any thread. */
#include "base/um_mem.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef bool (*um_mem_hook)(size_t size);
static _Atomic(um_mem_hook) um_mem_fail_hook;

void um_mem_set_fail_hook(bool (*hook)(size_t size))
{
    atomic_store_explicit(&um_mem_fail_hook, hook, memory_order_release);
}

static inline bool um_mem_must_fail(size_t size)
{
    um_mem_hook hook = atomic_load_explicit(&um_mem_fail_hook, memory_order_acquire);
    return hook != NULL && hook(size);
}

void *um_malloc(size_t size)
{
    return um_mem_must_fail(size) ? NULL : malloc(size != 0 ? size : 1);
}

void *um_calloc(size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total) || um_mem_must_fail(total)) {
        return NULL;
    }
    return calloc(1, total != 0 ? total : 1);
}

void *um_realloc(void *ptr, size_t size)
{
    return um_mem_must_fail(size) ? NULL : realloc(ptr, size != 0 ? size : 1);
}

void *um_aligned_alloc(size_t alignment, size_t size)
{
    void *out = NULL;
    if (um_mem_must_fail(size) || posix_memalign(&out, alignment, size != 0 ? size : 1) != 0) {
        return NULL;
    }
    return out;
}

char *um_strdup(const char *text)
{
    return um_strndup(text, strlen(text));
}

char *um_strndup(const char *text, size_t len)
{
    len = strnlen(text, len);
    char *copy = um_malloc(len + 1);
    if (copy != NULL) {
        memcpy(copy, text, len);
        copy[len] = '\0';
    }
    return copy;
}

void um_free(void *ptr)
{
    free(ptr);
}
