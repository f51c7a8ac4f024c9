/* The error state of lbmmon and of its modules. Owns one text for each of them and thread. Any thread. */
#include "lbmmon/um_mon_error.h"

#include <stdarg.h>
#include <stdio.h>

struct text {
    char bytes[512];
};

static _Thread_local int errnum_of_thread;
static _Thread_local struct text text_of_thread;
static _Thread_local struct text module_texts[UM_MON_MODULE_COUNT];

int um_mon_error(int errnum, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(text_of_thread.bytes, sizeof text_of_thread.bytes, fmt, args);
    va_end(args);
    errnum_of_thread = errnum;
    return -1;
}

int um_mon_error_nomem(const char *what, size_t bytes)
{
    return um_mon_error(LBMMON_ENOMEM, "%s: out of memory (%zu bytes)", what, bytes);
}

int um_mon_error_lbm(const char *what)
{
    return um_mon_error(LBMMON_ELBMFAIL, "%s: %s", what, lbm_errmsg());
}

int um_mon_error_module(const char *what, const char *(*errmsg)(void))
{
    const char *why = errmsg != NULL ? errmsg() : NULL;
    return um_mon_error(LBMMON_EMODFAIL, "%s: %s", what, why != NULL ? why : "the module gives no reason");
}

int um_mon_module_error(enum um_mon_module module, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(module_texts[module].bytes, sizeof module_texts[module].bytes, fmt, args);
    va_end(args);
    return -1;
}

const char *um_mon_module_errmsg(enum um_mon_module module)
{
    return module_texts[module].bytes;
}

int lbmmon_errnum(void)
{
    return errnum_of_thread;
}

const char *lbmmon_errmsg(void)
{
    return text_of_thread.bytes;
}
