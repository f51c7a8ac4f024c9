/* The last lines of the log, kept for monitoring: those of level NOTICE and above which the library has written itself.
 * A line is numbered when it is kept. Any thread; the lock is a leaf, held while one line is copied. */
#ifndef UM_BASE_LOG_KEPT_H
#define UM_BASE_LOG_KEPT_H

#include <stdbool.h>
#include <stdint.h>

enum { UM_LOG_KEPT_LINES = 64, UM_LOG_KEPT_TEXT = 400 };

struct um_log_line {
    uint64_t number; /* 1, 2, ... in this process */
    int level;
    uint64_t wall_ns;            /* since 1970 */
    char text[UM_LOG_KEPT_TEXT]; /* cut to this, with its NUL */
};

void um_log_keep(int level, const char *line);
/* The oldest line with a number beyond `after` that is still there. False: none; a child of fork() has its own only. */
bool um_log_kept_next(uint64_t after, struct um_log_line *out);

#endif
