/* The rolling log. See srs_log.h. */
#define _GNU_SOURCE
#include "srs_log.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/um_clock.h"
#include "base/um_fork.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "srs_pack.h"

#define MB 1048576ull
#define REOPEN_NS 1000000000ull /* a log that cannot be opened is tried again after that */
#define PATH_LEN 4096

struct rolled {
    char path[PATH_LEN];
    struct timespec time;
    uint64_t size;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
UM_FORK_GUARD(lock)
static const struct srs_log_settings *settings; /* [lock], as all below */
static FILE *file;
static uint64_t written;       /* bytes in the file */
static bool rolls;             /* it is one: devices, pipes and links (/dev/stdout) keep their names */
static struct tm last_line;    /* when it was written to */
static unsigned long sequence; /* of the last roll */
static uint64_t reopen_ns;
static pthread_t packer; /* the thread of the last roll */
static bool packing;

/* ---- rolled files: packed, counted, deleted, by a thread of its own ------------------ */

static bool is_rolled(const char *name, const char *base)
{
    size_t len = strlen(base);
    return strncmp(name, base, len) == 0 && name[len] == '_' && name[len + 1] >= '0' && name[len + 1] <= '9';
}

static int newest_first(const void *a, const void *b)
{
    const struct rolled *x = a, *y = b;
    if (x->time.tv_sec != y->time.tv_sec) {
        return x->time.tv_sec < y->time.tv_sec ? 1 : -1;
    }
    if (x->time.tv_nsec != y->time.tv_nsec) {
        return x->time.tv_nsec < y->time.tv_nsec ? 1 : -1;
    }
    return 0;
}

/* Rolled files of this log, of this process or an earlier one. */
static size_t list_rolled(struct rolled **out)
{
    const char *slash = strrchr(settings->file, '/');
    const char *base = slash != NULL ? slash + 1 : settings->file;
    char folder[PATH_LEN];
    snprintf(folder, sizeof(folder), "%.*s", slash != NULL ? (int)(slash - settings->file + 1) : 2,
             slash != NULL ? settings->file : "./");
    DIR *dir = opendir(folder);
    size_t count = 0, room = 0;
    struct dirent *entry;
    *out = NULL;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        struct stat info;
        if (!is_rolled(entry->d_name, base)) {
            continue;
        }
        if (count == room) {
            room = room != 0 ? 2 * room : 16;
            struct rolled *more = um_realloc(*out, room * sizeof(**out));
            if (more == NULL) {
                break;
            }
            *out = more;
        }
        struct rolled *rolled = &(*out)[count];
        int len = snprintf(rolled->path, sizeof(rolled->path), "%s%s", folder, entry->d_name);
        if (len < (int)sizeof(rolled->path) && stat(rolled->path, &info) == 0) {
            rolled->time = info.st_mtim;
            rolled->size = (uint64_t)info.st_size;
            count++;
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return count;
}

static void delete_oldest(void)
{
    struct rolled *rolled;
    size_t count = list_rolled(&rolled);
    uint64_t sum = 0;
    if (count > 0) {
        qsort(rolled, count, sizeof(*rolled), newest_first);
    }
    for (size_t i = 0; i < count; i++) {
        sum += rolled[i].size;
        if (i >= settings->max_history || sum > settings->total_size_cap_mb * MB) {
            unlink(rolled[i].path);
        }
    }
    um_free(rolled);
}

static void *pack_and_delete(void *arg)
{
    char *path = arg;
    if (settings->compression != SRS_COMPRESS_NONE) {
        srs_pack(path, settings->compression);
    }
    um_free(path);
    delete_oldest();
    return NULL;
}

static void finish_packing(void)
{
    if (packing) {
        pthread_join(packer, NULL);
        packing = false;
    }
}

/* ---- rolling ---------------------------------------------------------------------------- */

static bool open_file(void)
{
    struct stat info;
    file = settings->file != NULL ? fopen(settings->file, "ae") : stdout;
    written = file != NULL && file != stdout && fstat(fileno(file), &info) == 0 ? (uint64_t)info.st_size : 0;
    rolls = settings->file != NULL && lstat(settings->file, &info) == 0 && S_ISREG(info.st_mode);
    return file != NULL;
}

static bool must_roll(const struct tm *now)
{
    bool day = now->tm_yday != last_line.tm_yday || now->tm_year != last_line.tm_year;
    bool hour = day || now->tm_hour != last_line.tm_hour;
    return written > 0 &&
           ((settings->size_mb > 0 && written >= settings->size_mb * MB) ||
            (settings->frequency == SRS_ROLL_DAILY && day) || (settings->frequency == SRS_ROLL_HOURLY && hour));
}

static void roll(const struct tm *now)
{
    char *path = um_malloc(PATH_LEN), date[16];
    finish_packing();
    if (path == NULL) {
        return;
    }
    strftime(date, sizeof(date), "%Y-%m-%d", now);
    snprintf(path, PATH_LEN, "%s_%ld.%s.%lu", settings->file, (long)getpid(), date, ++sequence);
    fclose(file);
    if (rename(settings->file, path) != 0 || pthread_create(&packer, NULL, pack_and_delete, path) != 0) {
        um_free(path);
    } else {
        packing = true;
    }
    open_file();
}

/* ---- lines -------------------------------------------------------------------------------- */

static const char *severity(int level)
{
    static const char *const names[] = {"",        "EMERGENCY", "ALERT", "CRITICAL", "ERROR",
                                        "WARNING", "NOTICE",    "INFO",  "DEBUG"};
    return names[level >= 1 && level <= UM_LOG_DEBUG ? level : 0];
}

/* Date as date(1) prints it, severity, identifier, text. */
static void write_line(const struct tm *now, int level, const char *message)
{
    char day[32], clock[48];
    strftime(day, sizeof(day), "%a %b", now);
    strftime(clock, sizeof(clock), "%H:%M:%S %Z %Y", now);
    int len = fprintf(file, "%s %d %s [%s]: %s\n", day, now->tm_mday, clock, severity(level), message);
    written += len > 0 ? (uint64_t)len : 0;
    fflush(file);
}

static int on_log(int level, const char *message, void *clientd)
{
    time_t seconds = time(NULL);
    struct tm now;
    localtime_r(&seconds, &now);
    pthread_mutex_lock(&lock);
    if (file != NULL && rolls && must_roll(&now)) {
        roll(&now);
    }
    if (file == NULL && um_clock_ns() >= reopen_ns && !open_file()) {
        reopen_ns = um_clock_ns() + REOPEN_NS;
    }
    last_line = now;
    if (file != NULL) {
        write_line(&now, level, message);
    }
    pthread_mutex_unlock(&lock);
    return 0;
}

bool srs_log_open(const struct srs_log_settings *chosen)
{
    time_t seconds = time(NULL);
    settings = chosen;
    localtime_r(&seconds, &last_line);
    if (!open_file()) {
        fprintf(stderr, "srs: cannot open log file %s: %s\n", settings->file, strerror(errno));
        return false;
    }
    um_log_set_proc(on_log, NULL);
    return true;
}

void srs_log_reopen(void)
{
    pthread_mutex_lock(&lock);
    if (file != stdout) {
        FILE *before = file;
        uint64_t written_before = written;
        if (open_file()) {
            if (before != NULL) {
                fclose(before);
            }
        } else {
            file = before; /* better than none */
            written = written_before;
        }
    }
    pthread_mutex_unlock(&lock);
}

void srs_log_close(void)
{
    um_log_set_proc(NULL, NULL);
    pthread_mutex_lock(&lock);
    finish_packing();
    if (file != NULL && file != stdout) {
        fclose(file);
    }
    file = NULL;
    pthread_mutex_unlock(&lock);
}
