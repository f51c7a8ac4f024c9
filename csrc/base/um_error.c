/* The last error of each thread, in thread-local storage. Nothing here
 * allocates, so that running out of memory can always be reported.
 * Any thread; each sees only its own. */
#define _GNU_SOURCE
#include "base/um_error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/um_debug.h"
#include "base/um_log.h"

static _Thread_local struct um_error_state um_last_error;

/* "id: text" into the thread's state, returning the length used. */
static size_t um_error_format(int errnum, const char *id, const char *fmt, va_list args)
{
    /* Formatted aside first: an argument may be the present error text. */
    char text[sizeof um_last_error.text];
    int head = snprintf(text, sizeof text, "%s: ", id);
    size_t used = head < 0 ? 0 : (size_t)head < sizeof text ? (size_t)head : sizeof text - 1;
    int body = vsnprintf(text + used, sizeof text - used, fmt, args);
    if (body > 0) {
        used += (size_t)body < sizeof text - used ? (size_t)body : sizeof text - used - 1;
    }
    memcpy(um_last_error.text, text, used);
    um_last_error.text[used] = '\0';
    um_last_error.errnum = errnum;
    return used;
}

int um_error(int errnum, const char *id, const char *fmt, ...)
{
    int saved = errno;
    va_list args;
    va_start(args, fmt);
    um_error_format(errnum, id, fmt, args);
    va_end(args);
    UM_DEBUG(UM_DEBUG_ERROR, "%d %s", errnum, um_last_error.text);
    errno = saved;
    return -1;
}

int um_error_os(int saved_errno, const char *id, const char *fmt, ...)
{
    int saved = errno;
    va_list args;
    va_start(args, fmt);
    size_t used = um_error_format(UM_EOS, id, fmt, args);
    va_end(args);
    char reason[128];
    const char *text = strerror_r(saved_errno, reason, sizeof reason);
    snprintf(um_last_error.text + used, sizeof um_last_error.text - used, ": %s", text);
    UM_DEBUG(UM_DEBUG_ERROR, "%d %s", UM_EOS, um_last_error.text);
    errno = saved;
    return -1;
}

int um_error_nomem(const char *what, unsigned long bytes)
{
    um_log_no_memory(what, bytes);
    return um_error(UM_ENOMEM, "CoreApi-1000-1", "%s: out of memory (%lu bytes)", what, bytes);
}

void um_error_set(int errnum, const char *text)
{
    char copy[sizeof um_last_error.text]; /* the text may be the present one */
    snprintf(copy, sizeof copy, "%s", text);
    memcpy(um_last_error.text, copy, sizeof copy);
    um_last_error.errnum = errnum;
}

int um_errnum(void)
{
    return um_last_error.errnum;
}

const char *um_errmsg(void)
{
    return um_last_error.text;
}

void um_error_save(struct um_error_state *out)
{
    *out = um_last_error;
}

void um_error_restore(const struct um_error_state *state)
{
    um_last_error = *state;
}
