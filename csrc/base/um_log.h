/* Process-wide logging: one callback set by lbm_log(), default sink stderr
 * ("LOG Level <n>: <text>"). May be called from any thread. */
#ifndef UM_BASE_LOG_H
#define UM_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum um_log_level {
    UM_LOG_EMERG = 1,
    UM_LOG_ALERT = 2,
    UM_LOG_CRIT = 3,
    UM_LOG_ERR = 4,
    UM_LOG_WARNING = 5,
    UM_LOG_NOTICE = 6,
    UM_LOG_INFO = 7,
    UM_LOG_DEBUG = 8
};

/* `id` is the full identifier, for example "Core-5688-539"; the line is "id: text". */
void um_log(int level, const char *id, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Rate-limited: at most one line per `interval_ns`; the next line tells how many were held back. Any thread. */
struct um_log_limit {
    uint64_t last_ns;
    uint64_t suppressed;
};
/* The line would not be written, and is counted among those: for callers to whom its words are expensive. */
bool um_log_held_back(struct um_log_limit *limit, uint64_t now_ns, uint64_t interval_ns);
void um_log_limited(struct um_log_limit *limit, uint64_t now_ns, uint64_t interval_ns, int level, const char *id,
                    const char *fmt, ...) __attribute__((format(printf, 6, 7)));

/* While the calling thread says so, what it makes the library log as errors and warnings is logged as INFO. */
void um_log_set_benign(bool benign);
bool um_log_benign(void);

typedef int (*um_log_proc)(int level, const char *message, void *clientd);
void um_log_set_proc(um_log_proc proc, void *clientd);

#endif
