/* The error of SDM calls, one for each thread: number and text. Any thread. */
#include <stdarg.h>
#include <stdio.h>

#include "sdm/um_sdm.h"

static _Thread_local struct {
    int errnum;
    char text[512];
} last;

int um_sdm_error(int errnum, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    last.errnum = errnum;
    vsnprintf(last.text, sizeof last.text, format, args);
    va_end(args);
    return LBMSDM_FAILURE;
}

int um_sdm_no_memory(size_t bytes)
{
    return um_sdm_error(LBMSDM_ERR_ENOMEM, "out of memory (%zu bytes)", bytes);
}

int um_sdm_errnum(void)
{
    return last.errnum;
}

const char *um_sdm_errmsg(void)
{
    return last.text;
}
