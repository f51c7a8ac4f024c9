/* See um_thread.h. Owns nothing. */
#include "base/um_thread.h"

#include <signal.h>

int um_thread_start(pthread_t *thread, void *(*main)(void *arg), void *arg)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(thread, NULL, main, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}
