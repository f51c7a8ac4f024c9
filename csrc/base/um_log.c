/* The process-wide log: formats a line and hands it to the application's
 * callback, or to stderr. Owns the callback registration, and what is left out.
 * Any thread; the callback runs in the logging thread, without a lock. */
#include "base/um_log.h"
#include "base/um_log_kept.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/um_debug.h"
#include "base/um_early.h"
#include "base/um_fork.h"
#include "base/um_hash.h"
#include "base/um_log_limits.h"

#define UM_LOG_LINE_MAX 2048

static pthread_mutex_t um_log_lock = PTHREAD_MUTEX_INITIALIZER;
UM_FORK_GUARD(um_log_lock)
static um_log_proc um_log_current_proc; /* lock */
static void *um_log_current_clientd;    /* lock */
static struct um_log_limits limits;     /* lock */
static _Atomic uint64_t limits_due_ns = UINT64_MAX;
static struct {
    char what[64]; /* "": nothing to tell */
    unsigned long bytes;
    int level;
} no_memory; /* lock */

UM_RUN_EARLY static void clear_limits(void)
{
    um_log_limits_clear(&limits);
}

/* With the lock. */
static void begin_anew(void)
{
    um_log_limits_clear(&limits);
    no_memory.what[0] = '\0';
    atomic_store_explicit(&limits_due_ns, UINT64_MAX, memory_order_relaxed);
}

void um_log_set_proc(um_log_proc proc, void *clientd)
{
    pthread_mutex_lock(&um_log_lock);
    um_log_current_proc = proc;
    um_log_current_clientd = clientd;
    begin_anew();
    pthread_mutex_unlock(&um_log_lock);
}

void um_log_begin_anew(void)
{
    pthread_mutex_lock(&um_log_lock);
    begin_anew();
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

static void um_log_emit(int level, const char *id, const char *line)
{
    if (level <= UM_LOG_NOTICE && id != NULL) {
        um_log_keep(level, line);
    }
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
    um_log_emit(um_log_level(level, id), id, line);
    errno = saved;
}

/* ---- lines that others can cause ---- */

struct um_log_origin um_log_of_ip(uint32_t ip)
{
    return (struct um_log_origin){.key = ip};
}

struct um_log_origin um_log_of(const char *name)
{
    return (struct um_log_origin){.key = (uint64_t)1 << 32 | um_hash_bytes(name, strlen(name))};
}

struct um_log_origin um_log_of_all(void)
{
    return (struct um_log_origin){.key = UM_LOG_ORIGIN_ALL};
}

/* With the lock. */
static void note_due(void)
{
    uint64_t due_ns = no_memory.what[0] != '\0' ? 0 : um_log_limits_due_ns(&limits);
    atomic_store_explicit(&limits_due_ns, due_ns, memory_order_relaxed);
}

uint64_t um_log_due_ns(void)
{
    return atomic_load_explicit(&limits_due_ns, memory_order_relaxed);
}

static void emit_left_out(const struct um_log_left_out *left)
{
    char line[UM_LOG_LINE_MAX];
    snprintf(line, sizeof(line), "%s: %" PRIu64 " similar lines were left out in the last 60 s: %s", left->id,
             left->count, left->words);
    um_log_emit(left->level, left->id, line);
}

void um_log_no_memory(const char *what, unsigned long bytes)
{
    pthread_mutex_lock(&um_log_lock);
    snprintf(no_memory.what, sizeof(no_memory.what), "%s", what);
    no_memory.bytes = bytes;
    no_memory.level = um_log_is_benign ? UM_LOG_INFO : UM_LOG_ERR;
    note_due();
    pthread_mutex_unlock(&um_log_lock);
}

static void tell_no_memory(uint64_t now_ns)
{
    pthread_mutex_lock(&um_log_lock);
    char what[sizeof(no_memory.what)];
    memcpy(what, no_memory.what, sizeof(what));
    unsigned long bytes = no_memory.bytes;
    int level = no_memory.level;
    no_memory.what[0] = '\0';
    pthread_mutex_unlock(&um_log_lock);
    if (what[0] != '\0') {
        um_log_limited(um_log_of(what), now_ns, level, "Core-10055-131", "%s: an allocation of %lu bytes has failed",
                       what, bytes);
    }
}

void um_log_tell_left_out(uint64_t now_ns)
{
    struct um_log_left_out left;
    int saved = errno;
    tell_no_memory(now_ns);
    for (bool due = true; due;) {
        pthread_mutex_lock(&um_log_lock);
        due = um_log_limits_next_due(&limits, now_ns, &left);
        note_due();
        pthread_mutex_unlock(&um_log_lock);
        if (due) {
            emit_left_out(&left);
        }
    }
    errno = saved;
}

bool um_log_left_out(struct um_log_origin origin, uint64_t now_ns, const char *id)
{
    pthread_mutex_lock(&um_log_lock);
    bool left_out = um_log_limits_left_out(&limits, now_ns, id, origin.key);
    pthread_mutex_unlock(&um_log_lock);
    return left_out;
}

void um_log_limited(struct um_log_origin origin, uint64_t now_ns, int level, const char *id, const char *fmt, ...)
{
    int saved = errno;
    char line[UM_LOG_LINE_MAX];
    struct um_log_left_out left;
    va_list args;
    level = um_log_level(level, id);
    pthread_mutex_lock(&um_log_lock);
    bool due = um_log_limits_next_due(&limits, now_ns, &left);
    bool taken = um_log_limits_take(&limits, now_ns, id, origin.key, level);
    note_due();
    pthread_mutex_unlock(&um_log_lock);
    bool debugged = (atomic_load_explicit(&um_debug_kinds, memory_order_relaxed) & UM_DEBUG_LOG) != 0;
    if (taken || debugged) { /* before anybody is called, who may change what the words are made of */
        va_start(args, fmt);
        um_log_format(line, sizeof(line), id, fmt, args);
        va_end(args);
    }
    if (due) {
        emit_left_out(&left);
        um_log_tell_left_out(now_ns);
    }
    if (taken) {
        pthread_mutex_lock(&um_log_lock);
        um_log_limits_words(&limits, id, origin.key, line + strlen(id) + 2);
        pthread_mutex_unlock(&um_log_lock);
        um_log_emit(level, id, line);
    } else if (debugged) {
        um_debug_line(UM_DEBUG_LOG, "level %d, left out: %s", level, line);
    }
    errno = saved;
}
