/* Errors of lbmmon, per thread: the state of lbmmon_errnum() and lbmmon_errmsg(), and the last text of each module
 * (mErrorMessage of its table). Any thread; a thread sees its own only. */
#ifndef UM_LBMMON_ERROR_H
#define UM_LBMMON_ERROR_H

#include <lbm/lbmmon.h>

/* Modules that keep a text of their own. */
enum um_mon_module {
    UM_MON_CSV,
    UM_MON_PB,
    UM_MON_LBM,
    UM_MON_UDP,
    UM_MON_LBMSNMP,
    UM_MON_CONTROL,
    UM_MON_MODULE_COUNT
};

/* Each returns -1. The text is cut at 511 bytes. */
int um_mon_error(int errnum, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int um_mon_error_nomem(const char *what, size_t bytes);
/* A messaging call failed: LBMMON_ELBMFAIL, with lbm_errmsg() behind the text. */
int um_mon_error_lbm(const char *what);
/* A function of a module failed: LBMMON_EMODFAIL, with the module's own text. */
int um_mon_error_module(const char *what, const char *(*errmsg)(void));

/* The text of a module; returns -1, which its functions return. */
int um_mon_module_error(enum um_mon_module module, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *um_mon_module_errmsg(enum um_mon_module module);

#endif
