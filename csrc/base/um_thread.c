/* See um_thread.h. Owns nothing. */
#include "base/um_thread.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

int um_thread_start(pthread_t *thread, void *(*main)(void *arg), void *arg)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(thread, NULL, main, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

uint64_t um_thread_kept_ns(uint64_t untold)
{
    char text[64];
    int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return untold;
    }
    ssize_t len = read(fd, text, sizeof text - 1);
    close(fd);
    if (len <= 0) {
        return untold;
    }
    text[len] = '\0';
    char *after_used, *end;
    strtoull(text, &after_used, 10);
    uint64_t kept_ns = strtoull(after_used, &end, 10);
    return end == after_used ? untold : kept_ns;
}
