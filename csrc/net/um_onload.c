/* Onload's extension library. See um_onload.h. */
#define _GNU_SOURCE
#include "net/um_onload.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/um_log.h"

/* As Onload's onload/extensions.h has them. */
enum { THIS_THREAD = 0, ALL_THREADS = 1 };
enum { SCOPE_NO_CHANGE = 0, SCOPE_GLOBAL = 4 };

static int (*set_stackname)(int who, int scope, const char *stack);

static void find_library(void)
{
    static const char *const names[] = {"libonload_ext.so.2", "libonload_ext.so.1", "libonload_ext.so"};
    if (getenv("LBM_SUPPRESS_ONLOAD") != NULL) {
        return;
    }
    void *found = dlsym(RTLD_DEFAULT, "onload_set_stackname");
    for (size_t i = 0; found == NULL && i < sizeof names / sizeof names[0]; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        found = library != NULL ? dlsym(library, "onload_set_stackname") : NULL;
    }
    memcpy(&set_stackname, &found, sizeof found);
}

static bool set(int who, int scope, const char *stack)
{
    if (set_stackname(who, scope, stack) == 0) {
        return true;
    }
    um_log(UM_LOG_WARNING, "Core-7911-3", "onload_acceleration_stack_name \"%s\": not set: %s; going on without", stack,
           strerror(errno));
    return false;
}

bool um_onload_enter(const char *stack)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (stack == NULL || stack[0] == '\0') {
        return false;
    }
    pthread_once(&once, find_library);
    if (set_stackname == NULL) {
        um_log(UM_LOG_WARNING, "Core-7911-3",
               "onload_acceleration_stack_name \"%s\": Onload's extension library is not there: going on without",
               stack);
        return false;
    }
    return set(THIS_THREAD, SCOPE_GLOBAL, stack);
}

void um_onload_leave(bool entered)
{
    if (entered) {
        set(ALL_THREADS, SCOPE_NO_CHANGE, "");
    }
}
