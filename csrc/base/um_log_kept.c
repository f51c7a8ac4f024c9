/* A ring of the last lines of the log, for monitoring. Owns the ring, which is as old as the process. Any thread. */
#include "base/um_log_kept.h"

#include <pthread.h>
#include <string.h>

#include "base/um_clock.h"
#include "base/um_fork.h"

static pthread_mutex_t um_log_kept_lock = PTHREAD_MUTEX_INITIALIZER;
UM_FORK_GUARD(um_log_kept_lock)

static struct {
    struct um_log_line line;
    unsigned fork_generation; /* of the process that wrote it */
} kept[UM_LOG_KEPT_LINES];    /* lock; by number */
static uint64_t last;         /* lock: number of the newest */

void um_log_keep(int level, const char *text)
{
    uint64_t now = um_clock_wall_ns();
    size_t len = strnlen(text, UM_LOG_KEPT_TEXT - 1);
    pthread_mutex_lock(&um_log_kept_lock);
    last++;
    struct um_log_line *line = &kept[last % UM_LOG_KEPT_LINES].line;
    kept[last % UM_LOG_KEPT_LINES].fork_generation = um_fork_generation();
    line->number = last;
    line->level = level;
    line->wall_ns = now;
    memcpy(line->text, text, len);
    line->text[len] = '\0';
    pthread_mutex_unlock(&um_log_kept_lock);
}

bool um_log_kept_next(uint64_t after, struct um_log_line *out)
{
    bool found = false;
    pthread_mutex_lock(&um_log_kept_lock);
    uint64_t oldest = last > UM_LOG_KEPT_LINES ? last - UM_LOG_KEPT_LINES + 1 : 1;
    for (uint64_t number = after >= oldest ? after + 1 : oldest; number <= last && !found; number++) {
        if (kept[number % UM_LOG_KEPT_LINES].fork_generation == um_fork_generation()) {
            *out = kept[number % UM_LOG_KEPT_LINES].line;
            found = true;
        }
    }
    pthread_mutex_unlock(&um_log_kept_lock);
    return found;
}
