/* Bodies for the calls of later features: each records LBM_EOPNOTSUPP for the calling thread and fails.
 * A file defines FEATURE ("hot failover is") and MODULE, then lists its functions; the compiler checks each against its
 * public prototype. lbmmon keeps errors of its own as well, per thread. */
#ifndef UM_API_NOT_IMPLEMENTED_H
#define UM_API_NOT_IMPLEMENTED_H

#include <lbm/lbm.h>

enum um_module {
    UM_MODULE_LBM, /* lbm_errnum() only */
    UM_MODULE_MON,
    UM_MODULE_COUNT
};

/* Records "<function>: <feature> not implemented in this version (see docs/roadmap.md)"; always returns -1. */
int um_not_implemented(enum um_module module, const char *function, const char *feature);

void um_not_implemented_void(enum um_module module, const char *function, const char *feature);

int um_module_errnum(enum um_module module);
const char *um_module_errmsg(enum um_module module);

#define UM_NOT_IMPLEMENTED(name, ...)                                                                                  \
    int name(__VA_ARGS__)                                                                                              \
    {                                                                                                                  \
        return um_not_implemented(MODULE, #name, FEATURE);                                                             \
    }

#define UM_NOT_IMPLEMENTED_VALUE(type, value, name, ...)                                                               \
    type name(__VA_ARGS__)                                                                                             \
    {                                                                                                                  \
        (void)um_not_implemented(MODULE, #name, FEATURE);                                                              \
        return value;                                                                                                  \
    }

/* Calls that fail not although their feature is missing: the table of a module's functions, the text of the last one
 * that failed, handlers that are kept. These record nothing. */
#define UM_NOT_IMPLEMENTED_QUIET(type, value, name, ...)                                                               \
    type name(__VA_ARGS__)                                                                                             \
    {                                                                                                                  \
        return value;                                                                                                  \
    }

/* A call without a result would fail silently: these also log a warning. */
#define UM_NOT_IMPLEMENTED_VOID(name, ...)                                                                             \
    void name(__VA_ARGS__)                                                                                             \
    {                                                                                                                  \
        um_not_implemented_void(MODULE, #name, FEATURE);                                                               \
    }

#endif
