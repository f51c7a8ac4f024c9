/* See um_debug.h. One lock for all of it: whoever writes debug lines has time. */
#define _GNU_SOURCE
#include "base/um_debug.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_fork.h"
#include "base/um_list.h"
#include "base/um_log.h"
#include "base/um_mem.h"

#define LINE_LEN 2300     /* a line of the log and what stands before it */
#define BUFFER_LEN 65536  /* where lines wait that are not flushed each */
#define RING_MIN 4096     /* a few lines */
#define RING_MAX 16777216 /* of each thread */
#define RINGS_MAX 256     /* of threads that are no more, too: then the oldest of those gives way */
#define FILE_SIZE_MAX UINT64_C(0xffffffff)
#define ROLLED_MAX 1000u

_Atomic uint64_t um_debug_kinds;

struct ring {
    struct um_list node;
    long thread;
    bool ended; /* its thread has */
    size_t at, filled;
    char data[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
UM_FORK_GUARD(lock)
static struct {
    char *file;
    int fd; /* -1: to be opened */
    uint64_t written, file_size;
    uint32_t rolled;
    bool rolls; /* the file is one: devices, pipes and links keep their names */
    bool buffered, to_log, walltime;
    bool fixed_mask, fixed_file, fixed_size, fixed_rolled; /* by the environment */
    uint64_t always;                                       /* kinds, whatever the mask */
    uint64_t retry_ns;                                     /* a file that cannot be opened is tried again then */
    size_t ring_size, rings;
    unsigned ring_version; /* counts the changes of ring_size */
    size_t waiting;
    int trouble;         /* errno of what was lost last; 0: nothing was, or it is told */
    uint64_t lost_bytes; /* in all */
    char buffer[BUFFER_LEN];
} debug = {.fd = -1, .rolled = 10};             /* lock */
static struct um_list rings = {&rings, &rings}; /* lock */

static _Thread_local struct ring *own_ring; /* lock; of this version: */
static _Thread_local unsigned own_version;
static _Thread_local bool inside; /* a line that a line causes is none */
static pthread_key_t ring_key;
static pthread_once_t ring_key_once = PTHREAD_ONCE_INIT;

/* ---- the file --------------------------------------------------------------------- */

static void lose(size_t len, int err)
{
    debug.trouble = err;
    debug.lost_bytes += len;
}

static void write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t count = write(fd, bytes, len);
        if (count <= 0 && (count == 0 || errno != EINTR)) {
            lose(len, count == 0 ? EIO : errno);
            return;
        }
        bytes += count > 0 ? count : 0;
        len -= count > 0 ? (size_t)count : 0;
    }
}

static void flush_buffer(void)
{
    if (debug.fd >= 0) {
        write_all(debug.fd, debug.buffer, debug.waiting);
    }
    debug.waiting = 0;
}

struct loss {
    int err; /* 0: none that is not told yet */
    uint64_t bytes;
    char file[256];
};

static struct loss take_loss(void)
{
    struct loss loss = {.err = debug.trouble, .bytes = debug.lost_bytes};
    if (loss.err != 0) {
        snprintf(loss.file, sizeof(loss.file), "%s", debug.file != NULL ? debug.file : "(standard error)");
    }
    debug.trouble = 0;
    return loss;
}

static void tell_loss(const struct loss *loss)
{
    um_log_limited(um_log_of(loss->file), um_clock_ns(), UM_LOG_WARNING, "Core-9040-5",
                   "debug file %s: %s: %" PRIu64 " bytes of lines were lost so far; make room, or name another file by "
                   "lbm_debug_filename() or LBM_DEBUG_FILENAME",
                   loss->file, strerror(loss->err), loss->bytes);
}

static void close_file(void)
{
    flush_buffer();
    if (debug.fd >= 0 && debug.file != NULL) {
        um_fd_close(debug.fd);
    }
    debug.fd = -1;
}

static bool open_file(void)
{
    struct stat info;
    if (debug.fd < 0 && debug.file == NULL) {
        debug.fd = STDERR_FILENO;
    } else if (debug.fd < 0 && um_clock_ns() >= debug.retry_ns) {
        debug.fd = um_fd_own(open(debug.file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0640));
        debug.trouble = debug.fd >= 0 ? debug.trouble : errno;
        debug.written = debug.fd >= 0 && fstat(debug.fd, &info) == 0 ? (uint64_t)info.st_size : 0;
        debug.rolls = lstat(debug.file, &info) == 0 && S_ISREG(info.st_mode);
        debug.retry_ns = debug.fd >= 0 ? 0 : um_clock_ns() + 1000000000u;
    }
    return debug.fd >= 0;
}

/* NAME becomes NAME.1, that NAME.2, and so on. */
static void roll(void)
{
    char from[4096], to[4096];
    close_file();
    for (uint32_t i = debug.rolled; i > 0; i--) {
        int len = snprintf(to, sizeof(to), "%s.%" PRIu32, debug.file, i);
        snprintf(from, sizeof(from), i > 1 ? "%s.%" PRIu32 : "%s", debug.file, i - 1);
        if (len > 0 && len < (int)sizeof(to)) {
            rename(from, to);
        }
    }
    if (debug.rolled == 0) {
        unlink(debug.file);
    }
    open_file();
}

static void to_file(const char *line, size_t len)
{
    if (!open_file()) {
        debug.lost_bytes += len;
        return;
    }
    if (debug.file != NULL && debug.rolls && debug.file_size > 0 && debug.written > 0 &&
        debug.written + len > debug.file_size) {
        roll();
    }
    if (debug.fd < 0) {
        debug.lost_bytes += len;
        return;
    }
    if (debug.waiting + len > sizeof(debug.buffer)) {
        flush_buffer();
    }
    memcpy(debug.buffer + debug.waiting, line, len);
    debug.waiting += len;
    debug.written += len;
    if (!debug.buffered) {
        flush_buffer();
    }
}

/* ---- rings -------------------------------------------------------------------------- */

static void drop_ring(struct ring *ring)
{
    um_list_remove(&ring->node);
    debug.rings--;
    um_free(ring);
}

static void on_thread_end(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    if (own_ring != NULL && own_version == debug.ring_version) {
        own_ring->ended = true;
    }
    own_ring = NULL;
    pthread_mutex_unlock(&lock);
}

static void make_key(void)
{
    pthread_key_create(&ring_key, on_thread_end);
}

/* NULL: no room. */
static struct ring *ring_of_thread(void)
{
    struct um_list *it;
    if (own_ring != NULL && own_version == debug.ring_version) {
        return own_ring;
    }
    if (debug.rings >= RINGS_MAX) {
        UM_LIST_FOREACH(it, &rings)
        {
            struct ring *ring = UM_CONTAINER_OF(it, struct ring, node);
            if (ring->ended) {
                drop_ring(ring);
                break;
            }
        }
    }
    struct ring *ring = debug.rings < RINGS_MAX ? um_malloc(sizeof(*ring) + debug.ring_size) : NULL;
    if (ring != NULL) {
        *ring = (struct ring){.thread = syscall(SYS_gettid)};
        um_list_push_back(&rings, &ring->node);
        debug.rings++;
        pthread_setspecific(ring_key, &ring_key);
    }
    own_ring = ring;
    own_version = debug.ring_version;
    return ring;
}

static void to_ring(const char *line, size_t len)
{
    struct ring *ring = ring_of_thread();
    if (ring == NULL) {
        return;
    }
    for (size_t done = 0; done < len;) {
        size_t room = debug.ring_size - ring->at, part = len - done < room ? len - done : room;
        memcpy(ring->data + ring->at, line + done, part);
        ring->at = (ring->at + part) % debug.ring_size;
        done += part;
    }
    ring->filled = ring->filled + len < debug.ring_size ? ring->filled + len : debug.ring_size;
}

/* The oldest line may have lost its beginning to newer ones: it is left out. */
static void put_ring(FILE *out, const struct ring *ring)
{
    size_t from = ring->filled < debug.ring_size ? 0 : ring->at, skip = 0;
    fprintf(out, "== thread %ld%s\n", ring->thread, ring->ended ? ", which has ended" : "");
    if (ring->filled == debug.ring_size) {
        while (skip < ring->filled && ring->data[(from + skip) % debug.ring_size] != '\n') {
            skip++;
        }
        skip++;
    }
    for (size_t i = skip; i < ring->filled; i++) {
        fputc(ring->data[(from + i) % debug.ring_size], out);
    }
}

int um_debug_dump(const char *name, bool append)
{
    struct um_list *it;
    FILE *out = name != NULL ? fopen(name, append ? "ae" : "we") : NULL;
    if (out == NULL) {
        return name == NULL ? um_error(UM_EINVAL, "CoreApi-9040-1", "lbm_debug_dump: filename: must not be NULL")
                            : um_error_os(errno, "CoreApi-9040-2", "lbm_debug_dump: file %s cannot be opened", name);
    }
    pthread_mutex_lock(&lock);
    UM_LIST_FOREACH(it, &rings)
    {
        put_ring(out, UM_CONTAINER_OF(it, struct ring, node));
    }
    flush_buffer();
    pthread_mutex_unlock(&lock);
    bool good = ferror(out) == 0;
    if (fclose(out) != 0 || !good) {
        return um_error_os(errno, "CoreApi-9040-3", "lbm_debug_dump: file %s cannot be written", name);
    }
    return 0;
}

/* ---- lines ------------------------------------------------------------------------------ */

static const char *kind_name(unsigned kind)
{
    return kind == UM_DEBUG_LOG        ? "log"
           : kind == UM_DEBUG_ERROR    ? "error"
           : kind == UM_DEBUG_OBJECT   ? "object"
           : kind == UM_DEBUG_RESOLVER ? "resolver"
           : kind == UM_DEBUG_MONITOR  ? "monitor"
                                       : "session";
}

static size_t put_head(char *line, size_t size, bool wall, unsigned kind)
{
    uint64_t now_ns = wall ? um_clock_wall_ns() : um_clock_ns();
    time_t seconds = (time_t)(now_ns / 1000000000u);
    struct tm day;
    size_t used;
    if (wall) {
        localtime_r(&seconds, &day);
        used = strftime(line, size, "%Y-%m-%d %H:%M:%S", &day);
    } else {
        used = (size_t)snprintf(line, size, "%lld", (long long)seconds);
    }
    return used + (size_t)snprintf(line + used, size - used, ".%06ld [%ld] %s: ", (long)(now_ns % 1000000000u / 1000),
                                   (long)syscall(SYS_gettid), kind_name(kind));
}

void um_debug_line(unsigned kind, const char *fmt, ...)
{
    char line[LINE_LEN];
    va_list args;
    int saved = errno;
    if (inside) {
        return;
    }
    inside = true;
    pthread_mutex_lock(&lock);
    bool ring = debug.ring_size > 0, to_log = debug.to_log, wall = !ring || debug.walltime;
    size_t head = put_head(line, sizeof(line), wall, kind), len = head;
    va_start(args, fmt);
    int body = vsnprintf(line + len, sizeof(line) - len - 1, fmt, args);
    va_end(args);
    len += body < 0 ? 0 : (size_t)body < sizeof(line) - len - 1 ? (size_t)body : sizeof(line) - len - 2;
    line[len++] = '\n';
    if (ring) {
        to_ring(line, len);
    } else {
        to_file(line, len);
    }
    /* Errors may be made under a lock, and the log is the application's: another line tells. */
    struct loss loss = kind != UM_DEBUG_ERROR ? take_loss() : (struct loss){0};
    pthread_mutex_unlock(&lock);
    if (loss.err != 0) {
        tell_loss(&loss);
    }
    if (to_log && (kind & (UM_DEBUG_LOG | UM_DEBUG_ERROR)) == 0) {
        line[len - 1] = '\0';
        um_log(UM_LOG_DEBUG, NULL, "%s: %s", kind_name(kind), line + head);
    }
    inside = false;
    errno = saved;
}

/* ---- settings ------------------------------------------------------------------------------ */

void um_debug_set_mask(uint64_t mask)
{
    pthread_mutex_lock(&lock);
    if (!debug.fixed_mask) {
        atomic_store_explicit(&um_debug_kinds, mask | debug.always, memory_order_relaxed);
    }
    pthread_mutex_unlock(&lock);
}

static void take_file(const char *name)
{
    char *copy = name != NULL && name[0] != '\0' ? um_strdup(name) : NULL;
    close_file();
    um_free(debug.file);
    debug.file = copy;
    debug.retry_ns = 0;
}

void um_debug_set_file(const char *name)
{
    pthread_mutex_lock(&lock);
    if (!debug.fixed_file) {
        take_file(name);
    }
    pthread_mutex_unlock(&lock);
}

/* True: it was more than there may be. */
static bool take_size(uint64_t bytes)
{
    debug.file_size = bytes < FILE_SIZE_MAX ? bytes : FILE_SIZE_MAX;
    return bytes > FILE_SIZE_MAX;
}

static void tell_capped(const char *what, uint64_t bytes)
{
    um_log(UM_LOG_WARNING, "Core-5688-1807", "%s %" PRIu64 ": more than %" PRIu64 ", which is taken", what, bytes,
           FILE_SIZE_MAX);
}

void um_debug_set_file_size(uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    bool capped = !debug.fixed_size && take_size(bytes);
    pthread_mutex_unlock(&lock);
    if (capped) {
        tell_capped("lbm_debugfile_maxsize", bytes);
    }
}

void um_debug_set_file_count(uint32_t rolled)
{
    pthread_mutex_lock(&lock);
    if (!debug.fixed_rolled) {
        debug.rolled = rolled < ROLLED_MAX ? rolled : ROLLED_MAX;
    }
    pthread_mutex_unlock(&lock);
}

void um_debug_set_flush(bool each_line)
{
    pthread_mutex_lock(&lock);
    debug.buffered = !each_line;
    if (each_line) {
        flush_buffer();
    }
    pthread_mutex_unlock(&lock);
}

void um_debug_set_to_log(bool on)
{
    pthread_mutex_lock(&lock);
    debug.to_log = on;
    pthread_mutex_unlock(&lock);
}

void um_debug_set_ring_walltime(bool on)
{
    pthread_mutex_lock(&lock);
    debug.walltime = on;
    pthread_mutex_unlock(&lock);
}

void um_debug_set_ring(size_t bytes)
{
    struct um_list *first;
    pthread_once(&ring_key_once, make_key);
    pthread_mutex_lock(&lock);
    while ((first = um_list_first(&rings)) != NULL) {
        drop_ring(UM_CONTAINER_OF(first, struct ring, node));
    }
    debug.ring_version++;
    debug.ring_size = bytes == 0 ? 0 : bytes < RING_MIN ? RING_MIN : bytes > RING_MAX ? RING_MAX : bytes;
    pthread_mutex_unlock(&lock);
}

/* What waits is written when the library goes. */
__attribute__((destructor)) static void flush_at_end(void)
{
    pthread_mutex_lock(&lock);
    flush_buffer();
    pthread_mutex_unlock(&lock);
}

/* The child has lost the descriptor, whose number may soon be another's, and what waited is its parent's. */
static void forget_in_child(void)
{
    debug.fd = debug.file != NULL ? -1 : debug.fd;
    debug.waiting = 0;
}

UM_RUN_EARLY static void mend_children(void)
{
    um_fork_guard_child(forget_in_child);
}

/* ---- the environment ---------------------------------------------------------------------------- */

/* False: not there, or no number, which is told. */
static bool number_of(const char *variable, uint64_t *out)
{
    const char *text = getenv(variable);
    char *end;
    if (text == NULL) {
        return false;
    }
    errno = 0;
    *out = strtoull(text, &end, 0);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0) {
        um_log(UM_LOG_WARNING, "Core-9040-4",
               "environment variable %s '%.100s': must be a decimal number or 0x...: "
               "it is ignored",
               variable, text);
        return false;
    }
    return true;
}

static void read_environment(void)
{
    uint64_t mask, size, rolled;
    const char *file = getenv("LBM_DEBUG_FILENAME");
    bool has_mask = number_of("LBM_DEBUG_MASK", &mask), has_size = number_of("LBM_DEBUG_MAXSIZE", &size);
    bool has_rolled = number_of("LBM_DEBUG_MAX_ROLLOVER_FILES", &rolled);
    pthread_mutex_lock(&lock);
    if (file != NULL && file[0] != '\0') {
        take_file(file);
        debug.fixed_file = true;
    }
    bool capped = has_size && take_size(size);
    debug.fixed_size = has_size;
    debug.fixed_rolled = has_rolled;
    if (has_rolled) {
        debug.rolled = rolled < ROLLED_MAX ? (uint32_t)rolled : ROLLED_MAX;
    }
    debug.fixed_mask = has_mask;
    if (has_mask) {
        atomic_store_explicit(&um_debug_kinds, mask | debug.always, memory_order_relaxed);
    }
    pthread_mutex_unlock(&lock);
    if (capped) {
        tell_capped("LBM_DEBUG_MAXSIZE", size);
    }
}

void um_debug_environment(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_environment);
}

static void read_monitoring(void)
{
    const char *text = getenv("LBM_DEBUG_LBMMON");
    um_debug_environment();
    if (text != NULL && text[0] != '\0' && strcmp(text, "0") != 0) {
        pthread_mutex_lock(&lock);
        debug.always = UM_DEBUG_MONITOR;
        atomic_fetch_or_explicit(&um_debug_kinds, UM_DEBUG_MONITOR, memory_order_relaxed);
        pthread_mutex_unlock(&lock);
    }
}

void um_debug_monitoring(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_monitoring);
}
