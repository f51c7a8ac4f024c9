/* Threads of the library's own: they take no signal, which are the application's. Any thread. */
#ifndef UM_BASE_THREAD_H
#define UM_BASE_THREAD_H

#include <pthread.h>

/* 0, or an errno value. */
int um_thread_start(pthread_t *thread, void *(*main)(void *arg), void *arg);

#endif
