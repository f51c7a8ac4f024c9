/* The log lines that begin with one id: how many came, and the last of them. For tests through the public headers. */
#ifndef UM_SUPPORT_TEST_LOG_H
#define UM_SUPPORT_TEST_LOG_H

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <lbm/lbm.h>

#include "um_test_rcv.h" /* MUST() */

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static char log_wanted[64], log_line[2048];
static int log_hits, log_level;

static inline int keep_line(int level, const char *message, void *clientd)
{
    pthread_mutex_lock(&log_lock);
    if (strncmp(message, log_wanted, strlen(log_wanted)) == 0) {
        log_hits++;
        log_level = level;
        snprintf(log_line, sizeof log_line, "%s", message);
    }
    pthread_mutex_unlock(&log_lock);
    return 0;
}

/* From now on, whatever was before. */
static inline void watch_log(const char *id)
{
    pthread_mutex_lock(&log_lock);
    snprintf(log_wanted, sizeof log_wanted, "%s", id);
    log_hits = 0;
    log_line[0] = '\0';
    pthread_mutex_unlock(&log_lock);
    MUST(lbm_log(keep_line, NULL));
}

/* The last line has these words; also while contexts are at work. */
static inline bool log_shows(const char *words)
{
    pthread_mutex_lock(&log_lock);
    bool shows = strstr(log_line, words) != NULL;
    pthread_mutex_unlock(&log_lock);
    return shows;
}

#endif
