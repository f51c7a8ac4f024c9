/* The process-wide log: formats a line and hands it to the application's
 * callback, or to stderr. Owns the callback registration.
 * Any thread; the callback runs in the logging thread, without a lock. */
#include "base/um_debug.h"
#include "base/um_fork.h"
#include "base/um_log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#define UM_LOG_LINE_MAX 2048

static pthread_mutex_t um_log_lock = PTHREAD_MUTEX_INITIALIZER;
UM_FORK_GUARD(um_log_lock)
static um_log_proc um_log_current_proc; /* lock */
static void *um_log_current_clientd;    /* lock */

void um_log_set_proc(um_log_proc proc, void *clientd)
{
    pthread_mutex_lock(&um_log_lock);
    um_log_current_proc = proc;
    um_log_current_clientd = clientd;
    pthread_mutex_unlock(&um_log_lock);
}

static _Thread_local bool um_log_is_benign;

void um_log_set_benign(bool benign)
{
    um_log_is_benign = benign;
}

bool um_log_benign(void)
{
    return um_log_is_benign;
}

/* Lines without an id are the application's own. */
static int um_log_level(int level, const char *id)
{
    bool trouble = level == UM_LOG_WARNING || level == UM_LOG_ERR;
    return trouble && id != NULL && um_log_is_benign ? UM_LOG_INFO : level;
}

static void um_log_emit(int level, const char *line)
{
    UM_DEBUG(UM_DEBUG_LOG, "level %d: %s", level, line);
    pthread_mutex_lock(&um_log_lock);
    um_log_proc proc = um_log_current_proc;
    void *clientd = um_log_current_clientd;
    pthread_mutex_unlock(&um_log_lock);
    if (proc != NULL) {
        proc(level, line, clientd);
    } else {
        fprintf(stderr, "LOG Level %d: %s\n", level, line);
    }
}

static void um_log_format(char *line, size_t size, const char *id, const char *fmt, va_list args)
{
    int head = id != NULL ? snprintf(line, size, "%s: ", id) : 0;
    size_t used = head < 0 ? 0 : (size_t)head < size ? (size_t)head : size - 1;
    vsnprintf(line + used, size - used, fmt, args);
}

void um_log(int level, const char *id, const char *fmt, ...)
{
    int saved = errno;
    char line[UM_LOG_LINE_MAX];
    va_list args;
    va_start(args, fmt);
    um_log_format(line, sizeof line, id, fmt, args);
    va_end(args);
    um_log_emit(um_log_level(level, id), line);
    errno = saved;
}

static bool is_due(uint64_t last_ns, uint64_t now_ns, uint64_t interval_ns)
{
    return last_ns == 0 || now_ns < last_ns || now_ns - last_ns >= interval_ns;
}

bool um_log_held_back(struct um_log_limit *limit, uint64_t now_ns, uint64_t interval_ns)
{
    if (is_due(__atomic_load_n(&limit->last_ns, __ATOMIC_RELAXED), now_ns, interval_ns)) {
        return false;
    }
    __atomic_fetch_add(&limit->suppressed, 1, __ATOMIC_RELAXED);
    return true;
}

void um_log_limited(struct um_log_limit *limit, uint64_t now_ns, uint64_t interval_ns, int level, const char *id,
                    const char *fmt, ...)
{
    uint64_t last_ns = __atomic_load_n(&limit->last_ns, __ATOMIC_RELAXED);
    if (!is_due(last_ns, now_ns, interval_ns) ||
        !__atomic_compare_exchange_n(&limit->last_ns, &last_ns, now_ns != 0 ? now_ns : 1, false, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED)) {
        __atomic_fetch_add(&limit->suppressed, 1, __ATOMIC_RELAXED);
        return;
    }
    unsigned long long suppressed = __atomic_exchange_n(&limit->suppressed, 0, __ATOMIC_RELAXED);
    int saved = errno;
    char line[UM_LOG_LINE_MAX];
    va_list args;
    va_start(args, fmt);
    um_log_format(line, sizeof line - 64, id, fmt, args);
    va_end(args);
    if (suppressed != 0) {
        char held[64];
        snprintf(held, sizeof held, " (%llu similar not logged)", suppressed);
        size_t used = 0;
        while (line[used] != '\0') {
            used++;
        }
        snprintf(line + used, sizeof line - used, "%s", held);
    }
    um_log_emit(um_log_level(level, id), line);
    errno = saved;
}
