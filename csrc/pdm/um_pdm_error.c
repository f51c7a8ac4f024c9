/* The error of the last call that failed, for each thread; and what the types are. */
#include "pdm/um_pdm.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local struct {
    int errnum;
    char text[192];
} last;

int um_pdm_error(int errnum, const char *fmt, ...)
{
    va_list args;
    last.errnum = errnum;
    va_start(args, fmt);
    (void)vsnprintf(last.text, sizeof last.text, fmt, args);
    va_end(args);
    return PDM_FAILURE;
}

bool um_pdm_error_is(int errnum)
{
    return last.errnum == errnum;
}

int lbmpdm_errnum(void)
{
    return last.errnum;
}

const char *lbmpdm_errmsg(void)
{
    return last.text;
}

#define NUMBER(code, type)                                                                                             \
    [code] = {UM_PDM_NUMBER, sizeof(type), sizeof(type), false},                                                       \
    [(code) + PDM_TYPE_BOOLEAN_ARR] = {UM_PDM_NUMBER, sizeof(type), sizeof(type), true}
#define OTHER(code, kind, wire, host)                                                                                  \
    [code] = {kind, wire, host, false}, [(code) + PDM_TYPE_BOOLEAN_ARR] = {kind, wire, host, true}

static const struct um_pdm_type types[] = {
    NUMBER(PDM_TYPE_BOOLEAN, uint8_t),
    NUMBER(PDM_TYPE_INT8, int8_t),
    NUMBER(PDM_TYPE_UINT8, uint8_t),
    NUMBER(PDM_TYPE_INT16, int16_t),
    NUMBER(PDM_TYPE_UINT16, uint16_t),
    NUMBER(PDM_TYPE_INT32, int32_t),
    NUMBER(PDM_TYPE_UINT32, uint32_t),
    NUMBER(PDM_TYPE_INT64, int64_t),
    NUMBER(PDM_TYPE_UINT64, uint64_t),
    NUMBER(PDM_TYPE_FLOAT, float),
    NUMBER(PDM_TYPE_DOUBLE, double),
    OTHER(PDM_TYPE_DECIMAL, UM_PDM_DECIMAL, 9, sizeof(lbmpdm_decimal_t)),
    OTHER(PDM_TYPE_TIMESTAMP, UM_PDM_TIMESTAMP, 8, sizeof(lbmpdm_timestamp_t)),
    OTHER(PDM_TYPE_FIX_STRING, UM_PDM_SLOT, 0, 0),
    OTHER(PDM_TYPE_STRING, UM_PDM_VARIABLE, 0, 0),
    OTHER(PDM_TYPE_FIX_UNICODE, UM_PDM_SLOT, 0, 0),
    OTHER(PDM_TYPE_UNICODE, UM_PDM_VARIABLE, 0, 0),
    OTHER(PDM_TYPE_BLOB, UM_PDM_VARIABLE, 0, 0),
    OTHER(PDM_TYPE_MESSAGE, UM_PDM_NESTED, 0, 0),
};

const struct um_pdm_type *um_pdm_type(int code)
{
    return code >= 0 && code <= PDM_TYPE_MESSAGE_ARR ? &types[code] : NULL;
}
