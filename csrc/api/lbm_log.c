/* lbm_log and the per-thread error state as the public API shows it. Owns the
 * thread's operating-system error text.
 * Any thread. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <lbm/lbm.h>

#include "base/um_error.h"
#include "base/um_log.h"

static _Thread_local char um_strerror_text[128];

int lbm_log(lbm_log_cb_proc proc, void *clientd)
{
    um_log_set_proc(proc, clientd);
    return LBM_OK;
}

void lbm_logf(int level, const char *format, ...)
{
    if (format == NULL) {
        return;
    }
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    um_log(level, NULL, "%s", text);
}

int lbm_errnum(void)
{
    return um_errnum();
}

const char *lbm_errmsg(void)
{
    return um_errmsg();
}

void lbm_seterr(int eno, const char *str)
{
    um_error_set(eno, str != NULL ? str : "");
}

void lbm_seterrf(int eno, const char *format, ...)
{
    char text[512] = "";
    if (format != NULL) {
        va_list args;
        va_start(args, format);
        vsnprintf(text, sizeof text, format, args);
        va_end(args);
    }
    um_error_set(eno, text);
}

const char *lbm_strerror(void)
{
    return lbm_strerror_errnum(errno);
}

const char *lbm_strerror_errnum(int errnum)
{
    int saved = errno;
    const char *text = strerror_r(errnum, um_strerror_text, sizeof um_strerror_text);
    errno = saved;
    return text;
}

void lbm_set_benign_error_flag(void)
{
    um_log_set_benign(true);
}

void lbm_clr_benign_error_flag(void)
{
    um_log_set_benign(false);
}

int lbm_get_benign_error_flag(void)
{
    return um_log_benign();
}
