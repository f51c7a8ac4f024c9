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

/* Who has caused a line: an address (network order) where strangers can cause it; else what the line is about, as a
 * name of a source or topic; or nobody in particular. */
struct um_log_origin {
    uint64_t key;
};
struct um_log_origin um_log_of_ip(uint32_t ip);
struct um_log_origin um_log_of(const char *name);
struct um_log_origin um_log_of_all(void);

/* Lines that others can cause, and may cause often: of each identifier (a constant) and origin one in 60 s is logged,
 * then one that says how many were left out. That one comes before the next line of this kind, or from the loop of some
 * context. `now_ns` is that of the caller's clock. Any thread. */
void um_log_limited(struct um_log_origin origin, uint64_t now_ns, int level, const char *id, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* The line would be left out, and is counted: for callers to whom its words are expensive. */
bool um_log_left_out(struct um_log_origin origin, uint64_t now_ns, const char *id);

/* An allocation has failed: logged by the loop of some context, since locks may be held here. `what` is copied. */
void um_log_no_memory(const char *what, unsigned long bytes);

/* For loops: when um_log_tell_left_out() may have something to log; UINT64_MAX: never, as things are. */
uint64_t um_log_due_ns(void);
void um_log_tell_left_out(uint64_t now_ns);

/* While the calling thread says so, what it makes the library log as errors and warnings is logged as INFO. */
void um_log_set_benign(bool benign);
bool um_log_benign(void);

/* Whoever takes the lines now has been told of nothing yet: what was left out before is forgotten. */
typedef int (*um_log_proc)(int level, const char *message, void *clientd);
void um_log_set_proc(um_log_proc proc, void *clientd);
/* The same for whoever takes them: a simulated world begins. Also wanted where um_hash_set_key() is used. */
void um_log_begin_anew(void);

#endif
