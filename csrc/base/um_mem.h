/* Allocation. All library memory comes from here, so that tests can make the
 * n-th allocation fail (um_mem_set_fail_hook). NULL means out of memory. */
#ifndef UM_BASE_MEM_H
#define UM_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>

void *um_malloc(size_t size);
void *um_calloc(size_t count, size_t size);
void *um_realloc(void *ptr, size_t size);
void *um_aligned_alloc(size_t alignment, size_t size);
char *um_strdup(const char *text);
char *um_strndup(const char *text, size_t len);
void um_free(void *ptr);

/* Test hook: called before each allocation; returning true makes it fail. */
void um_mem_set_fail_hook(bool (*hook)(size_t size));

#define UM_CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#endif
