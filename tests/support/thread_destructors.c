/*
 * Loaded before the sanitizer's users in processes of Python (interpreter.py): what the C library keeps for the
 * destructor of a thread-local object is no leak. Threads of Arrow, polars and DuckDB live to the end with theirs. The
 * suppressions of such reports tell files only, and the C library's is no place to look away from.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sanitizer/lsan_interface.h>
#include <stdatomic.h>

typedef int register_fn(void (*destroy)(void *), void *object, void *library);

__attribute__((visibility("default"))) register_fn __cxa_thread_atexit_impl;

int __cxa_thread_atexit_impl(void (*destroy)(void *), void *object, void *library)
{
    static _Atomic(register_fn *) next; /* any thread; all would find the same */
    register_fn *found = atomic_load_explicit(&next, memory_order_relaxed);
    if (found == NULL) {
        *(void **)&found = dlsym(RTLD_NEXT, "__cxa_thread_atexit_impl");
        atomic_store_explicit(&next, found, memory_order_relaxed);
    }
    __lsan_disable();
    int status = found(destroy, object, library);
    __lsan_enable();
    return status;
}
