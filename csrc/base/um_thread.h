/* Threads of the library's own: they take no signal, which are the application's; and what the present thread gets of
 * the processors. Any thread. */
#ifndef UM_BASE_THREAD_H
#define UM_BASE_THREAD_H

#include <pthread.h>
#include <stdint.h>

/* 0, or an errno value. */
int um_thread_start(pthread_t *thread, void *(*main)(void *arg), void *arg);

/* The time in which this thread was ready to run and others ran, since it began (the kernel's run delay, proc(5)
 * schedstat); `untold` where the kernel does not tell. Some microseconds: a file is opened. */
uint64_t um_thread_kept_ns(uint64_t untold);

#endif
